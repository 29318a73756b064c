// sim_space.c: cvta, isspacep, createpolicy.
#include "sim_decode.h"
#include "sim_ops.h"

static uint64_t window_of(uint8_t space) {
  switch (space) {
  case PTX_S_SHARED:
  case PTX_S_CLUSTER:
    return SIM_WINDOW_SHARED;
  case PTX_S_LOCAL:
    return SIM_WINDOW_LOCAL;
  case PTX_S_PARAM:
    return SIM_WINDOW_PARAM;
  default:
    return 0;
  }
}

// imm: the window; 0 where generic addresses are the space's own.
static const Op *op_cvta(Warp *w, const Op *op) {
  uint64_t t[32];
  const uint64_t *a = sim_r64(w, op->a);
  for (int i = 0; i < 32; i++)
    t[i] = op->kind ? a[i] & SIM_OFFSET_MASK : a[i] | op->imm;
  sim_put(w, op->d, t, 8);
  return op + 1;
}

bool sim_cvta(Decoder *x, const PtxInst *in) {
  if (in->type[0] != PTX_T_U64)
    return sim_unsupported(x, in, "32-bit generic addresses");
  uint64_t window = window_of(in->space);
  uint32_t a = sim_source(x, &in->opnds[1], PTX_T_U64, 8);
  Op *op = sim_emit(x, op_cvta);
  op->d = x->func->reg[in->opnds[0].reg];
  op->a = a;
  op->imm = window;
  op->kind = window && ptx_inst_has(in, "to");
  return true;
}

static const Op *op_isspacep(Warp *w, const Op *op) {
  const uint64_t *a = sim_r64(w, op->a);
  uint32_t bits = 0;
  SIM_LANES(i, w->active) {
    uint64_t window = a[i] & ~SIM_OFFSET_MASK;
    bool yes = window == op->imm;
    if (!op->imm) {
      const Buffer *b = sim_buffer(w->cta->grid->dev, a[i]);
      yes = b && b->is_const == (op->space == PTX_S_CONST);
    }
    if (op->space == PTX_S_SHARED) // .shared::cta: the own block's
      yes &= !((a[i] & SIM_OFFSET_MASK) >> SIM_RANK_SHIFT);
    bits |= (uint32_t)yes << i;
  }
  sim_merge(w->regs + op->d, (const uint8_t *)&bits, 1, w->active);
  return op + 1;
}

bool sim_isspacep(Decoder *x, const PtxInst *in) {
  uint32_t a = sim_source(x, &in->opnds[1], PTX_T_U64, 8);
  uint32_t d = sim_dest(x, &in->opnds[0], 1);
  Op *op = sim_emit(x, op_isspacep);
  op->d = d, op->a = a;
  op->space = in->space;
  op->imm = window_of(in->space);
  return true;
}

// A cache policy is opaque, and there are no caches: any value that was written will do.
static const Op *op_createpolicy(Warp *w, const Op *op) {
  uint64_t t[32];
  for (int i = 0; i < 32; i++)
    t[i] = 1;
  sim_put(w, op->d, t, 8);
  return op + 1;
}

bool sim_createpolicy(Decoder *x, const PtxInst *in) {
  uint32_t d = sim_dest(x, &in->opnds[0], 8);
  sim_emit(x, op_createpolicy)->d = d;
  return true;
}
