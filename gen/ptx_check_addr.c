// Addresses: state spaces, width of the base, alignment where base and offset are known.
#include "ptx_check.h"

#include <string.h>

// The space the instruction names for its n-th address: the n-th space among its modifiers.
static PtxSpace space_at(const PtxInst *in, int n) {
  PtxSpace last = PTX_S_GENERIC;
  int seen = 0;
  for (int i = 0; i < in->nmods; i++) {
    PtxSpace s = (PtxSpace)ptx_mod_info(in->mods[i])->space;
    if (s == PTX_S_GENERIC) continue;
    last = s;
    if (seen++ == n) return s;
  }
  // The mbarrier of a bulk copy stands last and is in shared memory.
  bool copy = !strcmp(ptx_inst_form(in)->stem, "cp");
  return copy && seen ? PTX_S_SHARED : last;
}

static bool same_window(PtxSpace a, PtxSpace b) {
  bool shared =
      (a == PTX_S_SHARED || a == PTX_S_CLUSTER) && (b == PTX_S_SHARED || b == PTX_S_CLUSTER);
  return a == b || shared;
}

static void check_space(Check *c, const PtxInst *in, const PtxOperand *o, PtxSpace space) {
  const PtxVar *v = &c->m->vars[o->sym];
  if (space == PTX_S_GENERIC) {
    if (v->space == PTX_S_PARAM)
      check_opnd_error(c, in, o, "\"%s\" is a parameter: say .param", v->name);
    return;
  }
  if (!same_window(space, v->space))
    check_opnd_error(c, in, o, "\"%s\" is in .%s; the instruction says .%s", v->name,
                     ptx_space_text(v->space), ptx_space_text(space));
  else if (space == PTX_S_PARAM && strchr(ptx_inst_form(in)->effects, 'W') &&
           (c->f->entry && !v->call_param))
    check_opnd_error(c, in, o, "kernel parameter \"%s\" can't be written", v->name);
}

static void check_base(Check *c, const PtxInst *in, const PtxOperand *o, PtxSpace space) {
  PtxType t = c->f->regs[o->reg].type;
  if (t == PTX_T_NONE) return;
  int bits = ptx_type_bits(t);
  char class = ptx_type_class(t);
  bool wide = space == PTX_S_GENERIC || space == PTX_S_GLOBAL || space == PTX_S_CONST;
  bool ok = (class == 'B' || class == 'U' || class == 'S') &&
            (bits == c->m->address_size || (bits == 32 && !wide));
  if (!ok)
    check_opnd_error(c, in, o, "%s is .%s; an address in .%s needs %s", c->f->regs[o->reg].name,
                     ptx_type_text(t), space ? ptx_space_text(space) : "generic space",
                     wide && c->m->address_size == 64 ? "64 bits"
                                                      : "an integer register of 32 or 64 bits");
}

// Bytes that the address must be a multiple of; 0: no rule known here.
static uint64_t alignment(const PtxInst *in, int n) {
  const PtxForm *f = ptx_inst_form(in);
  if (!strcmp(f->stem, "ld") || !strcmp(f->stem, "st") || !strcmp(f->stem, "ldu"))
    return n ? 8 : (uint64_t)ptx_type_bits((PtxType)in->type[0]) / 8 * in->vec;
  if (!strcmp(f->stem, "atom") || !strcmp(f->stem, "red"))
    return (uint64_t)ptx_type_bits((PtxType)in->type[0]) / 8 * in->vec;
  if (!strcmp(f->stem, "mbarrier")) return 8;
  if (!strcmp(f->stem, "ldmatrix") || !strcmp(f->stem, "stmatrix")) return 16;
  if (strcmp(f->stem, "cp")) return 0;
  if (f->pipe == PTX_PIPE_TMA) return n < 2 && !ptx_inst_has(in, "tensor") ? 16 : 0;
  bool copy = in->nopnds >= 3 && in->opnds[2].kind == PTX_O_INT;
  return copy && in->opnds[2].i > 0 ? (uint64_t)in->opnds[2].i : 0;
}

static void check_alignment(Check *c, const PtxInst *in, const PtxOperand *o, int n) {
  uint64_t need = alignment(in, n);
  if (need < 2) return;
  uint64_t base = 0; // absolute addresses: alignment of 0
  const char *name = NULL;
  if (o->base == PTX_O_SYM) {
    const PtxVar *v = &c->m->vars[o->sym];
    base = v->align;
    name = v->name;
    if (v->space == PTX_S_PARAM && v->offset) base = v->offset & (0 - (uint64_t)v->offset);
    if (v->space == PTX_S_PARAM) base = base && base < v->align ? base : v->align;
  } else if (o->base != PTX_O_INT) {
    return;
  }
  // A base that is declared with less alignment than the access needs is a mistake even where
  // luck would align it.
  bool known = base == 0 || base >= need;
  if (known && (uint64_t)o->off % need == 0) return;
  if (!known)
    check_opnd_error(c, in, o,
                     "\"%s\" is aligned to %llu bytes; this access of %llu bytes needs %llu", name,
                     (unsigned long long)base, (unsigned long long)need, (unsigned long long)need);
  else
    check_opnd_error(c, in, o, "offset %lld is not a multiple of the %llu bytes this access needs",
                     (long long)o->off, (unsigned long long)need);
}

static void check_bounds(Check *c, const PtxInst *in, const PtxOperand *o) {
  const PtxVar *v = &c->m->vars[o->sym];
  if (v->is_extern || !v->bytes) return;
  const char *stem = ptx_inst_form(in)->stem;
  if (strcmp(stem, "ld") && strcmp(stem, "st") && strcmp(stem, "atom") && strcmp(stem, "red"))
    return;
  uint64_t size = (uint64_t)ptx_type_bits((PtxType)in->type[0]) / 8 * in->vec;
  if (o->off >= 0 && (uint64_t)o->off + size <= v->bytes) return;
  check_opnd_error(c, in, o, "bytes %lld to %lld of \"%s\", which has %llu", (long long)o->off,
                   (long long)(o->off + (int64_t)size - 1), v->name, (unsigned long long)v->bytes);
}

static void check_address(Check *c, const PtxInst *in, const PtxOperand *o, int n, PtxSpace space) {
  int before = c->diag->errors;
  if (o->base == PTX_O_SYM) check_space(c, in, o, space);
  if (o->base == PTX_O_REG) check_base(c, in, o, space);
  if (c->diag->errors != before) return;
  check_alignment(c, in, o, n);
  if (o->base == PTX_O_SYM && n == 0 && c->diag->errors == before) check_bounds(c, in, o);
}

void check_addresses(Check *c, const PtxInst *in) {
  int n = 0;
  for (int i = 0; i < in->nopnds; i++) {
    const PtxOperand *o = &in->opnds[i];
    if (o->kind == PTX_O_ADDR) {
      check_address(c, in, o, n, space_at(in, n));
      n++;
    } else if (o->kind == PTX_O_TMAP) {
      if (o->v[0].base == PTX_O_REG) check_base(c, in, &o->v[0], PTX_S_GENERIC);
      n++;
    }
  }
  if (n && in->space == PTX_S_CONST && strchr(ptx_inst_form(in)->effects, 'W'))
    check_inst_error(c, in, ".const memory can't be written");
}
