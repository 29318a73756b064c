#include "ptx_parse.h"

#include <string.h>

// ---- the opcode --------------------------------------------------------------------------------
static void note_mod(PtxInst *in, PtxMod m) {
  const PtxModInfo *info = ptx_mod_info(m);
  if (info->space && !in->space) in->space = info->space;
  if (info->vec) in->vec = info->vec;
  if (info->shape_n) in->shape_n = info->shape_n;
}

// Splits "fma.rn.f32" and looks its modifiers up.  false: one of them is in no row at all.
static bool split_mods(const Token *t, uint32_t stem_len, PtxInst *in) {
  const char *s = t->text + stem_len, *end = t->text + t->len;
  in->vec = 1;
  while (s < end) {
    const char *e = ++s;
    while (e < end && *e != '.') e++;
    PtxMod m = ptx_mod_find(s, (size_t)(e - s));
    if (!m || in->nmods == PTX_MAX_MODS) return false;
    in->mods[in->nmods++] = m;
    note_mod(in, m);
    s = e;
  }
  return true;
}

static bool next_taking(PtxInst *in, int form) {
  for (; form >= 0; form = ptx_form_next(form))
    if (ptx_form_takes(form, in->mods, in->nmods, in->type)) {
      in->form = (uint16_t)form;
      return true;
    }
  return false;
}

static bool decode_opcode(Parser *p, const Token *t, PtxInst *in) {
  Memo *memo = &p->memo[sym_hash(t->text, t->len) % MEMO_SLOTS];
  if (memo->len == t->len && !memcmp(memo->text, t->text, t->len)) {
    *in = memo->inst;
    return true;
  }
  const char *dot = memchr(t->text, '.', t->len);
  uint32_t stem_len = dot ? (uint32_t)(dot - t->text) : t->len;
  *in = (PtxInst){.guard = -1};
  int form = ptx_stem_first(t->text, stem_len);
  if (form < 0 || !split_mods(t, stem_len, in) || !next_taking(in, form)) {
    parse_unknown(p, t);
    return false;
  }
  *memo = (Memo){t->text, t->len, *in};
  return true;
}

// ---- operands ----------------------------------------------------------------------------------
static bool parse_guard(Parser *p, PtxInst *in) {
  parse_next(p);
  in->guard_negate = parse_is(p, '!');
  if (in->guard_negate) parse_next(p);
  Token t = p->tok;
  PtxOperand o = {0};
  if (t.kind != TK_WORD) return parse_error(p, &t, "a predicate is expected behind @");
  parse_next(p);
  if (!sym_operand(p, &t, &o)) return false;
  if (o.kind != PTX_O_REG || (o.type != PTX_T_PRED && o.type != PTX_T_NONE))
    return parse_error(p, &t, "\"%.*s\" guards an instruction but is not a predicate", (int)t.len,
                       t.text);
  in->guard = o.reg;
  return true;
}

static void keep_operands(Parser *p, PtxInst *in, const PtxOperand *v, int n) {
  in->nopnds = (uint8_t)n;
  in->opnds = parse_keep(p, v, n);
}

static bool parse_branch(Parser *p, PtxInst *in) {
  Token t = p->tok;
  if (t.kind != TK_WORD) return parse_error(p, &t, "a label is expected here");
  parse_next(p);
  PtxOperand o = {.kind = PTX_O_LABEL, .col = t.col, .target = -1, .sym = -1};
  keep_operands(p, in, &o, 1);
  label_use(p, &t, &in->opnds[0].target, &in->opnds[0].sym);
  return true;
}

// call {(results),} function {, (arguments)} {, prototype};
static bool parse_call(Parser *p, PtxInst *in) {
  PtxOperand v[4] = {0};
  int n = 0;
  if (parse_is(p, '(')) {
    if (!parse_list(p, &v[n++]) || !parse_expect(p, ',', "the results")) return false;
  }
  Token t = p->tok;
  if (!parse_operand(p, &v[n])) return false;
  if (v[n].kind != PTX_O_FUNC && v[n].kind != PTX_O_REG)
    return parse_error(p, &t, "\"%.*s\" is no function", (int)t.len, t.text);
  bool indirect = v[n++].kind == PTX_O_REG;
  while (parse_is(p, ',') && n < 4) {
    parse_next(p);
    t = p->tok;
    if (parse_is(p, '(')) {
      if (!parse_list(p, &v[n++])) return false;
    } else if (!parse_operand(p, &v[n++]) || v[n - 1].kind != PTX_O_TABLE) {
      return parse_error(p, &t, "a prototype or a list of arguments is expected here");
    }
  }
  if (indirect && v[n - 1].kind != PTX_O_TABLE)
    return parse_error(p, &t, "an indirect call needs its .callprototype");
  keep_operands(p, in, v, n);
  return true;
}

static bool parse_operands(Parser *p, PtxOperand *v, int *n) {
  *n = 0;
  while (!parse_is(p, ';')) {
    if (*n == PTX_MAX_OPERANDS) return parse_error(p, &p->tok, "too many operands");
    if (!parse_operand(p, &v[(*n)++])) return false;
    if (!parse_is(p, ',')) break;
    parse_next(p);
    if (parse_is(p, ';')) return parse_error(p, &p->tok, "an operand is missing");
  }
  return true;
}

// The form that takes both the modifiers and the operands; several rows may share modifiers.
static bool choose_form(PtxInst *in, const PtxOperand *v, int n) {
  PtxInst first = *in;
  do {
    if (ptx_form_fits(in->form, in, v, n, in->slot)) return true;
  } while (next_taking(in, ptx_form_next(in->form)));
  *in = first;
  return false;
}

static bool parse_plain(Parser *p, PtxInst *in, const Token *opcode) {
  PtxOperand v[PTX_MAX_OPERANDS];
  int n;
  if (!parse_operands(p, v, &n)) return false;
  if (!parse_is(p, ';')) {
    Token t = p->tok;
    return parse_error(p, &t, "\";\" or \",\" is expected here");
  }
  bool fits = choose_form(in, v, n);
  keep_operands(p, in, v, n);
  if (!fits) parse_misfit(p, opcode, in);
  return fits;
}

bool parse_instruction(Parser *p) {
  PtxInst guard = {.guard = -1}, in;
  Token start = p->tok;
  if (parse_is(p, '@') && !parse_guard(p, &guard)) return false;
  Token opcode = p->tok;
  if (opcode.kind != TK_WORD) return parse_error(p, &opcode, "an instruction is expected here");
  lex_opcode(&p->lex, &opcode);
  if (!decode_opcode(p, &opcode, &in)) return false;
  parse_next(p);
  in.guard = guard.guard;
  in.guard_negate = guard.guard_negate;
  in.line = opcode.line;
  in.col = start.line == opcode.line ? start.col : opcode.col;
  int nspecs;
  const PtxSpec *spec = ptx_form_specs(in.form, &nspecs);
  bool ok = nspecs && spec->kind == PTX_SPEC_LABEL  ? parse_branch(p, &in)
            : nspecs && spec->kind == PTX_SPEC_CALL ? parse_call(p, &in)
                                                    : parse_plain(p, &in, &opcode);
  if (!ok) return false;
  if (!parse_is(p, ';')) return parse_error(p, &p->tok, "\";\" is expected behind an instruction");
  PtxFunc *f = p->f;
  parse_item(p, PTX_I_INST, f->ninsts);
  *arena_push(p->arena, f->insts, f->ninsts, p->insts_cap) = in;
  parse_next(p);
  return true;
}
