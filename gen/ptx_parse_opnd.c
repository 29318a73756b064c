#include "ptx_parse.h"

#include <string.h>

PtxOperand *parse_keep(Parser *p, const PtxOperand *v, int n) {
  PtxOperand *copy = arena_array(p->arena, PtxOperand, n ? n : 1);
  if (n) memcpy(copy, v, sizeof *v * (size_t)n);
  return copy;
}

static bool float_operand(Parser *p, bool negative, PtxOperand *o) {
  o->kind = PTX_O_FLOAT;
  o->is_f32 = p->tok.is_f32;
  o->bits = p->tok.bits;
  if (negative) o->bits ^= o->is_f32 ? 0x80000000u : 0x8000000000000000u;
  parse_next(p);
  return true;
}

static bool immediate(Parser *p, PtxOperand *o) {
  o->col = p->tok.col;
  if (p->tok.kind == TK_FLOAT) return float_operand(p, false, o);
  if (parse_is(p, '-') && lex_peek(&p->lex) != '(') {
    // A minus may belong to a float; an integer is an expression.
    Lex at = p->lex;
    Token minus = p->tok;
    lex_next(&p->lex, &p->tok);
    if (p->tok.kind == TK_FLOAT) return float_operand(p, true, o);
    p->lex = at;
    p->tok = minus;
  }
  o->kind = PTX_O_INT;
  return parse_const(p, &o->i);
}

// {a, b, ...} or (a, b, ...): up to `close`.
static bool sequence(Parser *p, char close, PtxOperandKind kind, PtxOperand *o) {
  PtxOperand *v = NULL;
  int n = 0, cap = 0;
  o->col = p->tok.col;
  parse_next(p);
  while (!parse_is(p, close)) {
    if (n == 256) return parse_error(p, &p->tok, "more than 256 operands in one list");
    PtxOperand one = {0};
    if (parse_is(p, '{')) return parse_error(p, &p->tok, "a vector can't hold a vector");
    if (!parse_operand(p, &one)) return false;
    *arena_push(p->arena, v, n, cap) = one;
    if (!parse_is(p, ',')) break;
    parse_next(p);
  }
  o->kind = (uint8_t)kind;
  o->n = (uint16_t)n;
  o->v = parse_keep(p, v, n);
  if (n == 0 && kind == PTX_O_VEC) return parse_error(p, &p->tok, "an empty vector");
  return parse_expect(p, close, kind == PTX_O_VEC ? "the vector" : "the list");
}

bool parse_list(Parser *p, PtxOperand *o) { return sequence(p, ')', PTX_O_LIST, o); }

// ", {coordinates}]" behind a map's address.
static bool tensor_coordinates(Parser *p, PtxOperand *o) {
  PtxOperand map = *o, coords = {0};
  parse_next(p);
  if (!parse_is(p, '{')) return parse_error(p, &p->tok, "tensor coordinates {x, y, ...} expected");
  if (!sequence(p, '}', PTX_O_VEC, &coords)) return false;
  PtxOperand *v = arena_array(p->arena, PtxOperand, coords.n + 1);
  v[0] = map;
  memcpy(v + 1, coords.v, sizeof *v * coords.n);
  *o = (PtxOperand){.kind = PTX_O_TMAP, .n = (uint16_t)(coords.n + 1), .col = map.col, .v = v};
  return parse_expect(p, ']', "the coordinates");
}

static bool offset(Parser *p, int64_t *off) {
  bool minus = parse_is(p, '-');
  if (!minus && !parse_is(p, '+')) return true;
  parse_next(p);
  if (!parse_const(p, off)) return false;
  if (minus) *off = (int64_t)(0 - (uint64_t)*off);
  return true;
}

// [reg], [reg+4], [sym], [sym+4], [16]
static bool address(Parser *p, PtxOperand *o) {
  uint32_t col = p->tok.col;
  parse_next(p);
  Token t = p->tok;
  if (t.kind == TK_WORD && !token_is(&t, "WARP_SZ")) {
    parse_next(p);
    if (!sym_operand(p, &t, o)) return false;
    if (o->kind != PTX_O_REG && o->kind != PTX_O_SYM)
      return parse_error(p, &t, "\"%.*s\" can't be an address", (int)t.len, t.text);
    o->base = o->kind;
    o->off = 0;
    if (!offset(p, &o->off)) return false;
  } else {
    o->base = PTX_O_INT;
    if (!parse_const(p, &o->off)) return false;
  }
  o->kind = PTX_O_ADDR;
  o->col = col;
  if (parse_is(p, ',')) return tensor_coordinates(p, o);
  return parse_expect(p, ']', "the address");
}

static bool sink_here(const Parser *p) { return token_is(&p->tok, "_"); }

static bool name_or_sink(Parser *p, PtxOperand *o) {
  Token t = p->tok;
  if (t.kind != TK_WORD) return parse_error(p, &t, "a register is expected here");
  bool sink = sink_here(p);
  parse_next(p);
  if (!sink) return sym_operand(p, &t, o);
  *o = (PtxOperand){.kind = PTX_O_SINK, .col = t.col};
  return true;
}

// a|b: `o` is a.
static bool pair(Parser *p, PtxOperand *o) {
  PtxOperand v[2] = {*o, {0}};
  parse_next(p);
  if (!name_or_sink(p, &v[1])) return false;
  *o = (PtxOperand){.kind = PTX_O_PAIR, .n = 2, .col = v[0].col, .v = parse_keep(p, v, 2)};
  return true;
}

bool parse_operand(Parser *p, PtxOperand *o) {
  *o = (PtxOperand){.col = p->tok.col};
  if (p->tok.kind == TK_WORD && !token_is(&p->tok, "WARP_SZ")) {
    if (!name_or_sink(p, o)) return false;
    if (parse_is(p, '|')) return pair(p, o);
    if (o->kind == PTX_O_SYM) return offset(p, &o->off);
    return true;
  }
  if (parse_is(p, '{')) return sequence(p, '}', PTX_O_VEC, o);
  if (parse_is(p, '[')) return address(p, o);
  if (parse_is(p, '!') && (lex_peek(&p->lex) == '%' || lex_peek(&p->lex) > '9')) {
    uint32_t col = p->tok.col;
    parse_next(p);
    if (!name_or_sink(p, o)) return false;
    if (o->kind != PTX_O_REG) return parse_error(p, &p->tok, "only a predicate can be negated");
    o->negate = 1;
    o->col = col;
    return true;
  }
  return immediate(p, o);
}
