// Initialisers of .global and .const variables: bytes, and symbols' addresses to fill in later.
#include "ptx_parse.h"

#include "dtype.h"

#include <string.h>

typedef struct Init {
  Parser *p;
  PtxVar *v;
  const uint64_t *dims;
  int ndims;
  uint8_t *bytes;
  uint64_t size, cap; // cap: bytes allocated
  uint64_t elem;      // bytes of one
  bool open;          // the first size was left out: grows
  int relocs_cap;
} Init;

enum { LARGEST = 1 << 28 }; // bytes of an initialised variable

static bool reserve(Init *in, uint64_t end, const Token *at) {
  if (end > in->size && !in->open)
    return parse_error(in->p, at, "more values than the array holds");
  if (end > LARGEST) return parse_error(in->p, at, "an initialised variable is too large");
  if (end > in->size) in->size = end;
  if (end > in->cap) {
    uint64_t cap = end < 64 ? 64 : end * 2;
    in->bytes = arena_grow(in->p->arena, in->bytes, in->cap, cap);
    in->cap = cap;
  }
  return true;
}

static uint64_t float_bits(const Token *t, PtxType type, bool negative) {
  double v;
  float f;
  if (t->is_f32) {
    uint32_t b = (uint32_t)t->bits;
    memcpy(&f, &b, sizeof f);
    if (type == PTX_T_F32) return b ^ (negative ? 0x80000000u : 0); // NaN payloads stay
    v = f;
  } else {
    memcpy(&v, &t->bits, sizeof v);
  }
  if (negative) v = -v;
  uint64_t bits = 0;
  if (type == PTX_T_F64) memcpy(&bits, &v, 8);
  else if (type == PTX_T_F16) bits = f16_from_double(v);
  else f = (float)v, memcpy(&bits, &f, 4);
  return bits;
}

// As ptxas has it: an address stands in a .u32 or .u64, one byte of it in a .u8 as well.
static bool check_address(Init *in, uint64_t mask, bool masked) {
  Parser *p = in->p;
  PtxType type = in->v->type;
  if (masked && (!mask || mask != UINT64_C(0xff) << (__builtin_ctzll(mask) & ~7)))
    return parse_error(p, &p->tok, "0x%llx is no mask of a byte: 0xFF, 0xFF00 ...",
                       (unsigned long long)mask);
  if (type == PTX_T_U32 || type == PTX_T_U64 || (type == PTX_T_U8 && masked)) return true;
  return parse_error(p, &p->tok, "an address can't stand in a .%s: take .u64%s",
                     ptx_type_text(type),
                     type == PTX_T_U8 ? ", or its bytes, 0xFF(x), 0xFF00(x) ..." : "");
}

// mask 0: all of the address.
static bool symbol_value(Init *in, uint64_t at, uint64_t mask, bool generic) {
  Parser *p = in->p;
  Token t = p->tok;
  PtxReloc r = {.at = at, .var = -1, .func = -1, .generic = generic, .mask = mask};
  if (t.kind != TK_WORD)
    return parse_error(p, &t, "the name of a variable or function is expected");
  Sym *s = sym_find(p, t.text, t.len, sym_hash(t.text, t.len), SYM_VAR | SYM_FUNC);
  if (!s) return parse_error(p, &t, "\"%.*s\" is not declared", (int)t.len, t.text);
  if (s->kind == SYM_VAR) r.var = s->index;
  else r.func = s->index;
  parse_next(p);
  if (generic && !parse_expect(p, ')', "the variable")) return false;
  if (parse_is(p, '+') || parse_is(p, '-')) {
    bool minus = parse_is(p, '-');
    parse_next(p);
    if (!parse_const(p, &r.addend)) return false;
    if (minus) r.addend = (int64_t)(0 - (uint64_t)r.addend);
  }
  *arena_push(p->arena, in->v->relocs, in->v->nrelocs, in->relocs_cap) = r;
  return true;
}

static bool is_float(PtxType t) { return ptx_type_class(t) == 'F'; }

static bool number_value(Init *in, uint64_t at) {
  Parser *p = in->p;
  PtxType type = in->v->type;
  bool negative = parse_is(p, '-') && is_float(type);
  if (negative) parse_next(p);
  Token t = p->tok;
  uint64_t bits;
  if (t.kind == TK_FLOAT) {
    if (!is_float(type))
      return parse_error(p, &t, "a .%s can't hold a floating-point value", ptx_type_text(type));
    bits = float_bits(&t, type, negative);
    parse_next(p);
  } else {
    int64_t v;
    if (!parse_const(p, &v)) return false;
    if (parse_is(p, '(')) { // 0xFF(sym)
      parse_next(p);
      bool generic = token_is(&p->tok, "generic");
      if (generic) parse_next(p), parse_next(p);
      return check_address(in, (uint64_t)v, true) &&
             symbol_value(in, at, (uint64_t)v, generic) && parse_expect(p, ')', "the variable");
    }
    bits = (uint64_t)v;
    if (is_float(type)) {
      double d = negative ? -(double)v : (double)v;
      Token as = {.kind = TK_FLOAT};
      memcpy(&as.bits, &d, 8);
      bits = float_bits(&as, type, false);
    }
  }
  for (uint64_t i = 0; i < in->elem; i++) in->bytes[at + i] = i < 8 ? (uint8_t)(bits >> 8 * i) : 0;
  return true;
}

static bool scalar(Init *in, uint64_t at) {
  Token t = in->p->tok;
  if (!reserve(in, at + in->elem, &t)) return false;
  if (t.kind != TK_WORD || token_is(&t, "WARP_SZ")) return number_value(in, at);
  bool generic = token_is(&t, "generic") && lex_peek(&in->p->lex) == '(';
  if (generic) parse_next(in->p), parse_next(in->p);
  return check_address(in, 0, false) && symbol_value(in, at, 0, generic);
}

// Bytes of one element of dimension `level`.
static uint64_t stride(const Init *in, int level) {
  uint64_t n = in->elem * in->v->vec;
  for (int i = level + 1; i < in->ndims; i++) n *= in->dims[i];
  return n;
}

static bool values(Init *in, int level, uint64_t at, uint64_t end) {
  Parser *p = in->p;
  if (!parse_expect(p, '{', "=")) return false;
  while (!parse_is(p, '}')) {
    Token t = p->tok;
    if (at >= end && !(in->open && level == 0))
      return parse_error(p, &t, "more values than the array holds");
    if (parse_is(p, '{')) {
      if (level + 1 > in->ndims) return parse_error(p, &t, "too many braces");
      uint64_t n = level < in->ndims ? stride(in, level) : in->elem;
      if (!values(in, level + 1, at, at + n)) return false;
      at += n;
    } else {
      if (!scalar(in, at)) return false;
      at += in->elem;
    }
    if (!parse_is(p, ',')) break;
    parse_next(p);
  }
  return parse_expect(p, '}', "the values");
}

bool parse_initialiser(Parser *p, PtxVar *v, const uint64_t *dims, int ndims) {
  Init in = {.p = p, .v = v, .dims = dims, .ndims = ndims, .size = v->bytes,
             .elem = (uint64_t)ptx_type_bits(v->type) / 8, .open = ndims > 0 && dims[0] == 0};
  Token t = p->tok;
  bool ok = parse_is(p, '{') ? values(&in, 0, 0, in.size) : scalar(&in, 0);
  if (!ok) return false;
  if (in.open) {
    uint64_t row = stride(&in, 0);
    in.size = (in.size + row - 1) / row * row;
  }
  if (in.size && !reserve(&in, in.size, &t)) return false;
  v->bytes = in.size;
  v->init = in.bytes;
  return true;
}
