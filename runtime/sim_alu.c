// sim_alu.c: arithmetic through the lane functions; moves, packing, carries.
#include <math.h>

#include "sim_decode.h"
#include "sim_ops.h"

// ---- what runs ----------------------------------------------------------------------------------
static const Op *op_lane(Warp *w, const Op *op) {
  uint8_t *r = w->regs;
  if (sim_all(w) && op->width != 1) {
    op->lane(r + op->d, r + op->a, r + op->b, r + op->c, r + op->e, op->imm);
    return op + 1;
  }
  uint64_t t[64] __attribute__((aligned(64)));
  op->lane(t, r + op->a, r + op->b, r + op->c, r + op->e, op->imm);
  sim_merge(r + op->d, (const uint8_t *)t, op->width, w->active);
  return op + 1;
}

// ex2 and lg2 of small arguments are more instructions of the machine: counted, with x < -126 or
// |x| < 2^-126 as its predicates have it (never of NaN).
static const Op *op_small(Warp *w, const Op *op) {
  const float *x = (const float *)sim_r32(w, op->a);
  if (w->cta->counts) {
    uint64_t n = 0;
    SIM_LANES(i, w->active) n += op->kind ? fabsf(x[i]) < 0x1p-126f : x[i] < -126.0f;
    w->cta->counts[op->site].small += n;
  }
  return op_lane(w, op);
}

// The flag is read and written by the function: it works on a copy.
static const Op *op_carry(Warp *w, const Op *op) {
  uint8_t *r = w->regs;
  uint64_t t[32] __attribute__((aligned(64)));
  uint32_t flag[16] __attribute__((aligned(64))) = {*sim_mask(w, op->e)};
  op->lane(t, r + op->a, r + op->b, r + op->c, flag, op->imm);
  sim_put(w, op->d, t, op->width);
  sim_merge(r + op->e, (const uint8_t *)flag, 1, w->active);
  return op + 1;
}

static const Op *op_mov(Warp *w, const Op *op) {
  if (sim_all(w) && op->width != 1) {
    if (op->d != op->a)
      memcpy(w->regs + op->d, w->regs + op->a, 32 * (size_t)op->width);
  } else {
    sim_merge(w->regs + op->d, w->regs + op->a, op->width, w->active);
  }
  return op + 1;
}

// Lane values of a vector's elements, laid into `bits` pieces from the low end.
static const Op *op_pack(Warp *w, const Op *op) {
  uint64_t t[64] = {0};
  for (int k = 0; k < op->vec; k++) {
    int shift = k * op->kind; // kind: bits of an element
    uint64_t *to = t + (shift >= 64 ? 32 : 0);
    const uint32_t *s32 = sim_r32(w, op->more->v[k]);
    const uint64_t *s64 = sim_r64(w, op->more->v[k]);
    for (int i = 0; i < 32; i++)
      to[i] |= (op->kind == 64 ? s64[i] : s32[i]) << (shift & 63);
  }
  if (op->width == 4) {
    uint32_t narrow[32];
    for (int i = 0; i < 32; i++)
      narrow[i] = (uint32_t)t[i];
    sim_put(w, op->d, narrow, 4);
  } else {
    sim_put(w, op->d, t, op->width);
  }
  return op + 1;
}

static const Op *op_unpack(Warp *w, const Op *op) {
  uint64_t t[64] = {0}; // a destination may be the source
  if (op->width == 4)
    for (int i = 0; i < 32; i++)
      t[i] = sim_r32(w, op->a)[i];
  else
    memcpy(t, w->regs + op->a, 32 * (size_t)op->width);
  for (int k = 0; k < op->vec; k++) {
    if (op->more->skip[k])
      continue;
    int shift = k * op->kind;
    const uint64_t *from = t + (shift >= 64 ? 32 : 0);
    uint64_t keep = op->kind == 64 ? ~UINT64_C(0) : (UINT64_C(1) << op->kind) - 1;
    uint64_t v64[32];
    uint32_t v32[32];
    for (int i = 0; i < 32; i++) {
      v64[i] = from[i] >> (shift & 63) & keep;
      v32[i] = (uint32_t)v64[i];
    }
    sim_put(w, op->more->v[k], op->kind == 64 ? (void *)v64 : (void *)v32, op->kind == 64 ? 8 : 4);
  }
  return op + 1;
}

// ---- decoding -----------------------------------------------------------------------------------
// The type an immediate is taken for.
static PtxType source_type(const PtxInst *in, int k) {
  const PtxForm *f = ptx_inst_form(in);
  bool second = !strcmp(f->stem, "set") || !strcmp(f->stem, "cvt");
  PtxType t = second && in->type[1] ? (PtxType)in->type[1] : (PtxType)in->type[0];
  if (k == 3 && ptx_inst_has(in, "wide"))
    t = ptx_type_bits(t) == 16 ? PTX_T_B32 : PTX_T_B64;
  return t;
}

// An immediate beside a narrower operand (a shift's amount) must not be cut to the type's bits.
static uint32_t lane_source(Decoder *x, const PtxInst *in, int k, int width) {
  const PtxOperand *o = &in->opnds[k];
  PtxType t = source_type(in, k);
  if (width == 1)
    return o->kind == PTX_O_REG ? x->func->reg[o->reg] : sim_pred_source(x, o);
  if (sim_width(t) != width)
    t = width == 8 ? PTX_T_B64 : PTX_T_B32;
  return sim_source(x, o, t, width);
}

// A destination register wider than what the function makes gets it extended.
static void extend(Decoder *x, const PtxInst *in, uint32_t at, uint32_t temp) {
  bool sign = ptx_type_class((PtxType)in->type[0]) == 'S';
  Op *op = sim_emit(x, sign ? sim_op_sign_extend : sim_op_widen);
  op->d = at;
  op->a = temp;
  op->width = 8;
}

static bool emit_lane(Decoder *x, const PtxInst *in, const LaneOp *f, OpFn fn,
                      const PtxOperand *dest, uint64_t imm) {
  uint32_t at[5] = {0};
  for (int k = 1; k < 5 && f->width[k] && k < in->nopnds; k++)
    at[k] = lane_source(x, in, k, f->width[k]);
  int have = dest->kind == PTX_O_REG ? sim_width(x->ptx->regs[dest->reg].type) : f->width[0];
  bool wider = have == 8 && f->width[0] == 4;
  uint32_t d = wider ? sim_temp(x, 4) : sim_dest(x, dest, f->width[0]);
  Op *op = sim_emit(x, fn);
  op->lane = f->fn;
  op->imm = imm;
  op->d = d;
  op->a = at[1], op->b = at[2], op->c = at[3], op->e = at[4];
  op->width = f->width[0];
  op->flops = f->flops;
  if (wider)
    extend(x, in, x->func->reg[dest->reg], d);
  return true;
}

static bool find(Decoder *x, const PtxInst *in, LaneOp *f) {
  if (x->isa->find(in, f))
    return true;
  return sim_unsupported(x, in, sim_name(x, in));
}

bool sim_alu(Decoder *x, const PtxInst *in) {
  LaneOp f;
  if (!find(x, in, &f))
    return false;
  const char *stem = ptx_inst_form(in)->stem;
  bool lg2 = !strcmp(stem, "lg2"), scales = (lg2 || !strcmp(stem, "ex2")) &&
                                            in->type[0] == PTX_T_F32 && !ptx_inst_has(in, "ftz");
  if (!emit_lane(x, in, &f, scales ? op_small : op_lane, &in->opnds[0], f.imm))
    return false;
  if (scales)
    x->prog->ops[x->prog->nops - 1].kind = lg2;
  return true;
}

bool sim_cvt(Decoder *x, const PtxInst *in) { return sim_alu(x, in); }

bool sim_setp(Decoder *x, const PtxInst *in) {
  LaneOp f;
  if (!find(x, in, &f))
    return false;
  const PtxOperand *d = &in->opnds[0];
  if (d->kind != PTX_O_PAIR)
    return emit_lane(x, in, &f, op_lane, d, f.imm);
  // p may be the predicate that q is joined with: both are made before either is written.
  uint32_t p = sim_temp(x, 1), q = sim_temp(x, 1);
  uint32_t made[2] = {p, q};
  for (int i = 0; i < 2; i++) {
    emit_lane(x, in, &f, op_lane, &d->v[i], f.imm | (i ? LANE_SECOND : 0));
    x->prog->ops[x->prog->nops - 1].d = made[i];
  }
  for (int i = 0; i < 2; i++) {
    if (d->v[i].kind == PTX_O_SINK)
      continue;
    Op *op = sim_emit(x, op_mov);
    op->d = x->func->reg[d->v[i].reg];
    op->a = made[i];
    op->width = 1;
  }
  return true;
}

// d = lop3(a, b, c), p = (d != 0) op q.  All of q is read before p, which may be q, is written.
static const Op *op_join_nonzero(Warp *w, const Op *op) {
  const uint32_t *v = sim_r32(w, op->a);
  uint32_t nonzero = 0, q = *sim_mask(w, op->b);
  for (int i = 0; i < 32; i++)
    nonzero |= (uint32_t)(v[i] != 0) << i;
  uint32_t p = op->kind ? nonzero | q : nonzero & q;
  sim_merge(w->regs + op->d, (const uint8_t *)&p, 1, w->active);
  return op + 1;
}

bool sim_lop3(Decoder *x, const PtxInst *in) {
  LaneOp f;
  const PtxOperand *d = &in->opnds[0];
  if (d->kind != PTX_O_PAIR)
    return sim_alu(x, in);
  if (!find(x, in, &f))
    return false;
  uint32_t made = sim_temp(x, 4); // d may be a sink
  PtxOperand none = {.kind = PTX_O_SINK};
  emit_lane(x, in, &f, op_lane, &none, f.imm);
  x->prog->ops[x->prog->nops - 1].d = made;
  if (d->v[1].kind == PTX_O_REG) {
    uint32_t q = sim_pred_source(x, &in->opnds[5]);
    Op *op = sim_emit(x, op_join_nonzero);
    op->d = x->func->reg[d->v[1].reg];
    op->a = made;
    op->b = q;
    op->kind = ptx_inst_has(in, "or");
  }
  if (d->v[0].kind == PTX_O_REG) {
    Op *op = sim_emit(x, op_mov);
    op->d = x->func->reg[d->v[0].reg];
    op->a = made;
    op->width = 4;
  }
  return true;
}

bool sim_carry(Decoder *x, const PtxInst *in) {
  LaneOp f;
  if (!find(x, in, &f))
    return false;
  if (!x->carry)
    x->carry = sim_temp(x, 1);
  emit_lane(x, in, &f, op_carry, &in->opnds[0], f.imm);
  x->prog->ops[x->prog->nops - 1].e = x->carry;
  return true;
}

static Op *emit_vector(Decoder *x, OpFn fn, const PtxOperand *vec, int bits) {
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  for (int k = 0; k < vec->n; k++) {
    more->skip[k] = vec->v[k].kind == PTX_O_SINK;
    if (!more->skip[k])
      more->v[k] = sim_source(x, &vec->v[k], bits / vec->n == 64 ? PTX_T_B64 : PTX_T_B32, 0);
  }
  Op *op = sim_emit(x, fn);
  op->more = more;
  op->vec = (uint8_t)vec->n;
  op->kind = (uint8_t)(bits / vec->n);
  return op;
}

bool sim_mov(Decoder *x, const PtxInst *in) {
  PtxType t = (PtxType)in->type[0];
  const PtxOperand *d = &in->opnds[0], *a = &in->opnds[1];
  int width = sim_width(t);
  if ((a->kind == PTX_O_VEC && a->n > SIM_MAX_VEC) || (d->kind == PTX_O_VEC && d->n > SIM_MAX_VEC))
    return sim_unsupported(x, in, "a vector this long");
  Op *op;
  if (a->kind == PTX_O_VEC) {
    op = emit_vector(x, op_pack, a, ptx_type_bits(t));
    op->d = x->func->reg[d->reg];
  } else if (d->kind == PTX_O_VEC) {
    uint32_t from = sim_source(x, a, t, width);
    op = emit_vector(x, op_unpack, d, ptx_type_bits(t));
    op->a = from;
  } else {
    uint32_t from = width == 1 ? sim_pred_source(x, a) : sim_source(x, a, t, width);
    op = sim_emit(x, op_mov);
    op->d = sim_dest(x, d, width);
    op->a = from;
  }
  op->width = (uint8_t)width;
  return true;
}
