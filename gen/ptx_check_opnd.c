// Operand types and widths (ISA 9.2 to 9.4), vectors, immediates.
#include "ptx_check.h"

#include <string.h>

static bool is_int(char class) { return class == 'U' || class == 'S'; }

// May a register of type `reg` stand where the instruction wants `want`?  `wider`: ld, st and cvt
// take registers that are wider than the type they move.
static bool type_fits(PtxType reg, PtxType want, bool wider) {
  if (reg == PTX_T_NONE || reg == want) return true;
  if (reg == PTX_T_PRED || want == PTX_T_PRED) return false;
  int rb = ptx_type_bits(reg), wb = ptx_type_bits(want);
  char rc = ptx_type_class(reg), wc = ptx_type_class(want);
  if (rb < wb || (rb > wb && !wider)) return false;
  if (rb == wb) return rc == 'B' || wc == 'B' || (is_int(rc) && is_int(wc));
  if (wc == 'B') return true;
  if (is_int(wc)) return rc == 'B' || is_int(rc);
  return wc == 'F' && rc == 'B';
}

static void check_register(Check *c, const PtxInst *in, const PtxSpec *s, const PtxOperand *o,
                           PtxType want) {
  if (type_fits((PtxType)o->type, want, s->wider)) return;
  check_opnd_error(c, in, o, "%s is .%s; %s takes .%s here", check_operand_text(c, o),
                   ptx_type_text((PtxType)o->type), ptx_inst_form(in)->stem, ptx_type_text(want));
}

// Integers fit when they fit as signed or as unsigned numbers.
static bool int_fits(int64_t v, int bits) {
  if (bits >= 64) return true;
  return v >= -(1ll << (bits - 1)) && v < 1ll << bits;
}

static void check_int(Check *c, const PtxInst *in, const PtxOperand *o, PtxType want) {
  char class = ptx_type_class(want);
  if (class == 'F' || class == 'X') {
    check_opnd_error(c, in, o, "an integer can't stand for a .%s%s", ptx_type_text(want),
                     class == 'F' ? "; write it as a floating-point constant" : "; use a register");
  } else if (class != 'P' && !int_fits(o->i, ptx_type_bits(want))) {
    check_opnd_error(c, in, o, "%lld does not fit in .%s", (long long)o->i, ptx_type_text(want));
  }
}

static void check_float(Check *c, const PtxInst *in, const PtxOperand *o, PtxType want) {
  bool ok = want == PTX_T_F32 || want == PTX_T_F64 || (want == PTX_T_B32 && o->is_f32) ||
            (want == PTX_T_B64 && !o->is_f32);
  if (ok) return;
  check_opnd_error(c, in, o, "a floating-point constant can't stand for a .%s",
                   ptx_type_text(want));
}

static void check_sreg(Check *c, const PtxInst *in, const PtxOperand *o, PtxType want) {
  if (type_fits((PtxType)o->type, want, false)) return;
  check_opnd_error(c, in, o, "%s is .%s; %s takes .%s here", check_operand_text(c, o),
                   ptx_type_text((PtxType)o->type), ptx_inst_form(in)->stem, ptx_type_text(want));
}

static void check_symbol(Check *c, const PtxInst *in, const PtxOperand *o, PtxType want) {
  int bits = ptx_type_bits(want);
  char class = ptx_type_class(want);
  bool near = o->kind == PTX_O_SYM && (c->m->vars[o->sym].space == PTX_S_SHARED ||
                                       c->m->vars[o->sym].space == PTX_S_LOCAL);
  bool ok = (class == 'B' || is_int(class)) && (bits == c->m->address_size || (near && bits == 32));
  if (!ok)
    check_opnd_error(c, in, o, "the address %s does not fit in .%s", check_operand_text(c, o),
                     ptx_type_text(want));
}

static void check_scalar(Check *c, const PtxInst *in, const PtxSpec *s, const PtxOperand *o,
                         PtxType want) {
  switch (o->kind) {
  case PTX_O_REG: check_register(c, in, s, o, want); break;
  case PTX_O_INT: check_int(c, in, o, want); break;
  case PTX_O_FLOAT: check_float(c, in, o, want); break;
  case PTX_O_SREG: check_sreg(c, in, o, want); break;
  case PTX_O_SYM: case PTX_O_FUNC: check_symbol(c, in, o, want); break;
  default: break;
  }
}

// ---- vectors -----------------------------------------------------------------------------------
// How many registers the form wants; 0: any number.
static int vector_length(const PtxSpec *s, const PtxInst *in, PtxType want) {
  if (s->by_vec) return in->vec ? in->vec : 1;
  if (s->count > 0) return s->count;
  if (s->count < 0) return in->shape_n / (want == PTX_T_F16 ? 4 : 2); // 64 x N over 128 threads
  for (int i = 0; s->by_x && i < in->nmods; i++)
    if (ptx_mod_info(in->mods[i])->x) return ptx_mod_info(in->mods[i])->x;
  return 0;
}

// mov.b64 d, {a, b}: the parts are equally wide and make up the whole.
static void check_pack(Check *c, const PtxInst *in, const PtxOperand *v, PtxType want) {
  int bits = ptx_type_bits(want), part = v->n ? bits / v->n : 0;
  if (ptx_type_class(want) != 'B' || (v->n != 2 && v->n != 4) || part < 8) {
    check_opnd_error(c, in, v, "%d parts can't make up a .%s", v->n, ptx_type_text(want));
    return;
  }
  for (int i = 0; i < v->n; i++) {
    const PtxOperand *o = &v->v[i];
    int has =
        o->kind == PTX_O_REG || o->kind == PTX_O_SREG ? ptx_type_bits((PtxType)o->type) : part;
    if (o->type == PTX_T_NONE) has = part;
    bool byte = part == 8 && has == 16; // there are no 8-bit registers
    if (has == part || byte) continue;
    check_opnd_error(c, in, o, "%s is .%s; one of %d parts of a .%s has %d bits",
                     check_operand_text(c, o), ptx_type_text((PtxType)o->type), v->n,
                     ptx_type_text(want), part);
    return;
  }
}

static void check_vector(Check *c, const PtxInst *in, const PtxSpec *s, const PtxOperand *v,
                         PtxType want) {
  if (s->special && !s->dest && s->name == 'A') want = PTX_T_B32; // wgmma: A in registers
  else if (s->special) return check_pack(c, in, v, want);
  int need = s->name == 'A' && s->special ? 4 : vector_length(s, in, want);
  if (need && v->n != need) {
    check_opnd_error(c, in, v, "%d registers here; this form takes %d", v->n, need);
    return;
  }
  if (s->count < 0 && want == PTX_T_F16) want = PTX_T_B32; // packed pairs
  for (int i = 0; i < v->n; i++) {
    const PtxOperand *o = &v->v[i];
    if (s->dest && o->kind != PTX_O_REG && o->kind != PTX_O_SINK) {
      check_opnd_error(c, in, o, "a result needs a register");
      return;
    }
    check_scalar(c, in, s, o, want);
  }
}

static void check_pair(Check *c, const PtxInst *in, const PtxSpec *s, const PtxOperand *v,
                       PtxType want) {
  check_scalar(c, in, s, &v->v[0], want);
  if (v->v[1].kind == PTX_O_REG && v->v[1].type != PTX_T_PRED && v->v[1].type != PTX_T_NONE)
    check_opnd_error(c, in, &v->v[1], "the second result is a predicate; %s is .%s",
                     check_operand_text(c, &v->v[1]), ptx_type_text((PtxType)v->v[1].type));
}

static void check_coordinates(Check *c, const PtxInst *in, const PtxOperand *v) {
  for (int i = 1; i < v->n; i++) {
    PtxSpec s = {0};
    check_scalar(c, in, &s, &v->v[i], PTX_T_S32);
  }
  // .1d .. .5d
  for (int i = 0; i < in->nmods; i++) {
    const char *t = ptx_mod_text(in->mods[i]);
    if (t[0] >= '1' && t[0] <= '5' && !strcmp(t + 1, "d") && t[0] - '0' != v->n - 1)
      check_opnd_error(c, in, v, "%d coordinate%s for a .%s tensor", v->n - 1,
                       v->n == 2 ? "" : "s", t);
  }
}

void check_operands(Check *c, const PtxInst *in) {
  int nspecs;
  const PtxSpec *specs = ptx_form_specs(in->form, &nspecs);
  if (nspecs && specs[0].kind == PTX_SPEC_CALL) return;
  for (int i = 0; i < in->nopnds; i++) {
    const PtxSpec *s = &specs[in->slot[i]];
    const PtxOperand *o = &in->opnds[i];
    if (s->kind == PTX_SPEC_TMAP) check_coordinates(c, in, o);
    if (s->kind != PTX_SPEC_VALUE) continue;
    PtxType want = ptx_spec_type(s, in);
    if (o->kind == PTX_O_VEC) check_vector(c, in, s, o, want);
    else if (o->kind == PTX_O_PAIR) check_pair(c, in, s, o, want);
    else check_scalar(c, in, s, o, want);
  }
}
