// sim_field.c: loads that are no use of what was not written, in local memory, which no other
// thread sees.
//
// Without optimisation a compiler sets a bit field by load, and, or, store of the word around it,
// be that word written or not: the word counts as written from there on, its other bits hold ones.
// And it copies a struct with its padding and whatever nobody has set: what was not written is not
// written in the copy either.
#include "sim_mem.h"

enum { STEPS = 6 }; // from the load to the store at most

typedef struct Uses {
  int32_t reg;
  int reads, writes;
} Uses;

static void count(void *ctx, int32_t reg, bool write) {
  Uses *u = ctx;
  if (reg == u->reg)
    *(write ? &u->writes : &u->reads) += 1;
}

static bool reads(const PtxInst *in, int32_t reg) {
  Uses u = {.reg = reg};
  sim_visit_regs(in, count, &u);
  return u.reads > 0;
}

// Written by one instruction and read by one, of the whole function.
static bool is_link(const PtxFunc *f, int32_t reg) {
  Uses u = {.reg = reg};
  for (int i = 0; i < f->ninsts; i++)
    sim_visit_regs(&f->insts[i], count, &u);
  return u.reads == 1 && u.writes == 1;
}

static bool same_place(const PtxInst *ld, const PtxInst *st) {
  const PtxOperand *a = &ld->opnds[1], *b = &st->opnds[0];
  return a->base == b->base && a->off == b->off && ld->space == st->space &&
         ptx_type_bits((PtxType)ld->type[0]) == ptx_type_bits((PtxType)st->type[0]) &&
         (a->base == PTX_O_REG ? a->reg == b->reg : a->base == PTX_O_SYM && a->sym == b->sym);
}

// Control goes on from one instruction to the next, so that the same lanes are at both.
static bool is_straight(const PtxInst *in) { return !strchr(ptx_inst_form(in)->effects, 'C'); }

const PtxInst *sim_copy_of(const PtxFunc *f, const PtxFlow *flow, const PtxInst *ld) {
  bool local = ld->space == PTX_S_LOCAL || ld->space == PTX_S_GENERIC;
  const PtxOperand *d = &ld->opnds[0], *a = &ld->opnds[1];
  if (!local || ld->guard >= 0 || d->kind != PTX_O_REG ||
      (a->base == PTX_O_REG && a->reg == d->reg) || !is_link(f, d->reg))
    return NULL;
  int block = flow->block_of[ld - f->insts];
  const PtxInst *end = f->insts + f->ninsts;
  for (const PtxInst *in = ld + 1; in < end && is_straight(in); in++) {
    if (flow->block_of[in - f->insts] != block) return NULL;
    if (!reads(in, d->reg)) continue;
    bool stored = !strcmp(ptx_inst_form(in)->stem, "st") && in->guard < 0 &&
                  (in->space == PTX_S_LOCAL || in->space == PTX_S_GENERIC) &&
                  in->opnds[1].kind == PTX_O_REG && in->opnds[1].reg == d->reg &&
                  ptx_type_bits((PtxType)ld->type[0]) == ptx_type_bits((PtxType)in->type[0]);
    return stored ? in : NULL;
  }
  return NULL;
}

bool sim_sets_field(const PtxFunc *f, const PtxInst *ld) {
  bool local = ld->space == PTX_S_LOCAL || ld->space == PTX_S_GENERIC;
  if (!local || ld->guard >= 0 || ld->opnds[0].kind != PTX_O_REG)
    return false;
  int32_t value = ld->opnds[0].reg;
  bool cut = false;
  const PtxInst *end = f->insts + f->ninsts, *in = ld + 1;
  for (int k = 0; k < STEPS && in < end; k++, in++) {
    if (!reads(in, value))
      continue;
    const char *stem = ptx_inst_form(in)->stem;
    if (!strcmp(stem, "st"))
      return cut && in->guard < 0 && in->opnds[1].kind == PTX_O_REG && in->opnds[1].reg == value &&
             same_place(ld, in) && is_link(f, value);
    bool is_and = !strcmp(stem, "and") && in->nopnds == 3 && in->opnds[2].kind == PTX_O_INT;
    if ((!is_and && strcmp(stem, "or")) || in->guard >= 0 || in->opnds[0].kind != PTX_O_REG ||
        !is_link(f, value))
      return false;
    cut |= is_and;
    value = in->opnds[0].reg;
  }
  return false;
}
