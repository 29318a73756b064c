// sim_collective.c: vote, match, shfl, redux, activemask, elect.  ISA 9.7.9.6, 9.7.13.8-12.
//
// A lane's mask names the lanes that must execute the same instruction with the same mask.  A group
// in which some lanes have theirs together and others do not is split: the former go on.
#include "sim_decode.h"
#include "sim_ops.h"

// ---- who is here --------------------------------------------------------------------------------
static uint32_t complete_lanes(const Warp *w, const uint32_t *masks) {
  uint32_t done = 0;
  SIM_LANES(i, w->active) {
    if (done >> i & 1)
      continue;
    uint32_t m = masks[i], same = 0;
    if (m & ~w->active)
      continue;
    SIM_LANES(k, m) same |= (uint32_t)(masks[k] == m) << k;
    if (same == m)
      done |= m;
  }
  return done;
}

static const Op *check_masks(Warp *w, const Op *op, const uint32_t *masks) {
  SIM_LANES(i, w->active) {
    if (!(masks[i] >> i & 1))
      return sim_trap_at(w, op, i, "the mask %08x does not name the lane that executes", masks[i]);
    if (masks[i] & w->gone & w->lanes)
      return sim_trap_at(w, op, i, "lanes %08x of the mask %08x have ended",
                         masks[i] & w->gone & w->lanes, masks[i]);
  }
  return NULL;
}

// NULL when every active lane has all lanes of its mask beside it (those that lack some wait from
// now on, and are not active any more); else what the Op returns.  Lanes that never were are taken
// out of the masks.
static const Op *gather(Warp *w, const Op *op, uint32_t mask_at, uint32_t masks[32]) {
  const uint32_t *r = sim_r32(w, mask_at);
  uint32_t differs = 0;
  for (int i = 0; i < 32; i++) {
    masks[i] = r[i] & w->lanes;
    differs |= masks[i] ^ w->active;
  }
  if (!differs)
    return NULL;
  const Op *stop = check_masks(w, op, masks);
  if (stop)
    return stop;
  uint32_t done = complete_lanes(w, masks);
  if (done == w->active)
    return NULL;
  if (!done) {
    uint32_t need = 0;
    SIM_LANES(i, w->active) need |= masks[i];
    return sim_wait_lanes(w, op, need);
  }
  // Those that are complete go on at once: as a group that is still at this place they would meet
  // the others again, and be told apart again, for ever.
  Group *rest = sim_split(w, w->active & ~done, op);
  rest->state = GROUP_SYNC;
  rest->need = masks[sim_first(rest->mask)];
  sim_enter(w, &w->groups[w->cur]);
  return NULL;
}

// ---- vote ---------------------------------------------------------------------------------------
typedef enum VoteKind { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT } VoteKind;

static const Op *op_vote(Warp *w, const Op *op) {
  uint32_t masks[32], p = *sim_mask(w, op->a), t[32], bits = 0;
  const Op *stop = gather(w, op, op->b, masks);
  if (stop)
    return stop;
  SIM_LANES(i, w->active) {
    uint32_t on = p & masks[i];
    bool yes = op->kind == VOTE_ALL   ? on == masks[i]
               : op->kind == VOTE_ANY ? on != 0
                                      : on == 0 || on == masks[i];
    bits |= (uint32_t)yes << i;
    t[i] = on;
  }
  if (op->kind == VOTE_BALLOT)
    sim_merge(w->regs + op->d, (const uint8_t *)t, 4, w->active);
  else
    sim_merge(w->regs + op->d, (const uint8_t *)&bits, 1, w->active);
  return op + 1;
}

bool sim_vote(Decoder *x, const PtxInst *in) {
  sim_split_guard(x);
  uint32_t p = sim_pred_source(x, &in->opnds[1]);
  uint32_t mask = sim_source(x, &in->opnds[2], PTX_T_B32, 4);
  VoteKind kind = ptx_inst_has(in, "all")   ? VOTE_ALL
                  : ptx_inst_has(in, "any") ? VOTE_ANY
                  : ptx_inst_has(in, "uni") ? VOTE_UNI
                                            : VOTE_BALLOT;
  uint32_t d = sim_dest(x, &in->opnds[0], kind == VOTE_BALLOT ? 4 : 1);
  Op *op = sim_emit(x, op_vote);
  op->d = d;
  op->a = p;
  op->b = mask;
  op->kind = (uint8_t)kind;
  return true;
}

// ---- match --------------------------------------------------------------------------------------
static const Op *op_match(Warp *w, const Op *op) {
  uint32_t masks[32], t[32], bits = 0;
  const Op *stop = gather(w, op, op->b, masks);
  if (stop)
    return stop;
  SIM_LANES(i, w->active) {
    uint32_t same = 0;
    SIM_LANES(k, masks[i]) {
      bool equal = op->width == 8 ? sim_r64(w, op->a)[k] == sim_r64(w, op->a)[i]
                                  : sim_r32(w, op->a)[k] == sim_r32(w, op->a)[i];
      same |= (uint32_t)equal << k;
    }
    bool all = same == masks[i];
    t[i] = op->kind ? (all ? masks[i] : 0) : same;
    bits |= (uint32_t)all << i;
  }
  if (op->d)
    sim_merge(w->regs + op->d, (const uint8_t *)t, 4, w->active);
  if (op->c)
    sim_merge(w->regs + op->c, (const uint8_t *)&bits, 1, w->active);
  return op + 1;
}

// d|p: offsets of both, 0 for what is not wanted.
static void pair_dest(const Decoder *x, const PtxOperand *o, uint32_t *d, uint32_t *p) {
  const PtxOperand *first = o->kind == PTX_O_PAIR ? &o->v[0] : o;
  *d = first->kind == PTX_O_REG ? x->func->reg[first->reg] : 0;
  *p = o->kind == PTX_O_PAIR && o->v[1].kind == PTX_O_REG ? x->func->reg[o->v[1].reg] : 0;
}

bool sim_match(Decoder *x, const PtxInst *in) {
  sim_split_guard(x);
  PtxType t = (PtxType)in->type[0];
  uint32_t a = sim_source(x, &in->opnds[1], t, 0), d, p;
  uint32_t mask = sim_source(x, &in->opnds[2], PTX_T_B32, 4);
  pair_dest(x, &in->opnds[0], &d, &p);
  Op *op = sim_emit(x, op_match);
  op->d = d, op->c = p;
  op->a = a, op->b = mask;
  op->width = (uint8_t)sim_width(t);
  op->kind = ptx_inst_has(in, "all");
  return true;
}

// ---- shfl ---------------------------------------------------------------------------------------
typedef enum ShflKind { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX } ShflKind;

// Source lane of lane l; *ok is the predicate.  c: bits 12:8 segment mask, 4:0 clamp.
static uint32_t shfl_lane(ShflKind kind, uint32_t l, uint32_t b, uint32_t c, bool *ok) {
  uint32_t segment = c >> 8 & 31, clamp = c & 31;
  uint32_t low = l & segment, high = low | (clamp & ~segment & 31), j;
  b &= 31;
  switch (kind) {
  case SHFL_UP:
    j = l - b;
    *ok = (int32_t)j >= (int32_t)high;
    break;
  case SHFL_DOWN:
    j = l + b;
    *ok = j <= high;
    break;
  case SHFL_BFLY:
    j = l ^ b;
    *ok = j <= high;
    break;
  default:
    j = low | (b & ~segment & 31);
    *ok = j <= high;
    break;
  }
  return *ok ? j : l;
}

static const Op *op_shfl(Warp *w, const Op *op) {
  uint32_t masks[32], t[32] __attribute__((aligned(64))), bits = 0;
  const Op *stop = gather(w, op, op->e, masks);
  if (stop)
    return stop;
  const uint32_t *a = sim_r32(w, op->a), *b = sim_r32(w, op->b), *c = sim_r32(w, op->c);
  SIM_LANES(i, w->active) {
    bool ok;
    uint32_t j = shfl_lane((ShflKind)op->kind, i, b[i], c[i], &ok);
    if (!(masks[i] >> j & 1))
      return sim_trap_at(w, op, i, "reads lane %u, which is not in the mask %08x", j, masks[i]);
    t[i] = a[j];
    bits |= (uint32_t)ok << i;
  }
  if (op->d)
    sim_put(w, op->d, t, 4);
  if (op->imm)
    sim_merge(w->regs + op->imm, (const uint8_t *)&bits, 1, w->active);
  return op + 1;
}

bool sim_shfl(Decoder *x, const PtxInst *in) {
  sim_split_guard(x);
  uint32_t at[5], d, p;
  for (int k = 1; k < 5; k++)
    at[k] = sim_source(x, &in->opnds[k], PTX_T_B32, 4);
  pair_dest(x, &in->opnds[0], &d, &p);
  Op *op = sim_emit(x, op_shfl);
  op->d = d, op->imm = p;
  op->a = at[1], op->b = at[2], op->c = at[3], op->e = at[4];
  op->kind = ptx_inst_has(in, "up")     ? SHFL_UP
             : ptx_inst_has(in, "down") ? SHFL_DOWN
             : ptx_inst_has(in, "bfly") ? SHFL_BFLY
                                        : SHFL_IDX;
  return true;
}

// ---- redux --------------------------------------------------------------------------------------
typedef enum ReduxKind {
  REDUX_ADD,
  REDUX_MIN,
  REDUX_MAX,
  REDUX_AND,
  REDUX_OR,
  REDUX_XOR
} ReduxKind;

static uint32_t join(ReduxKind kind, bool sign, uint32_t x, uint32_t y) {
  bool less = sign ? (int32_t)x < (int32_t)y : x < y;
  switch (kind) {
  case REDUX_ADD: return x + y;
  case REDUX_MIN: return less ? x : y;
  case REDUX_MAX: return less ? y : x;
  case REDUX_AND: return x & y;
  case REDUX_OR: return x | y;
  default: return x ^ y;
  }
}

static const Op *op_redux(Warp *w, const Op *op) {
  uint32_t masks[32], t[32];
  const Op *stop = gather(w, op, op->b, masks);
  if (stop)
    return stop;
  const uint32_t *a = sim_r32(w, op->a);
  SIM_LANES(i, w->active) {
    uint32_t first = (uint32_t)sim_first(masks[i]), v = a[first];
    SIM_LANES(k, masks[i] & (masks[i] - 1)) v = join((ReduxKind)op->kind, op->type, v, a[k]);
    t[i] = v;
  }
  sim_merge(w->regs + op->d, (const uint8_t *)t, 4, w->active);
  return op + 1;
}

bool sim_redux(Decoder *x, const PtxInst *in) {
  static const char *const names[] = {"add", "min", "max", "and", "or", "xor"};
  sim_split_guard(x);
  int kind = 0;
  while (!ptx_inst_has(in, names[kind]))
    kind++;
  uint32_t a = sim_source(x, &in->opnds[1], (PtxType)in->type[0], 4);
  uint32_t mask = sim_source(x, &in->opnds[2], PTX_T_B32, 4);
  uint32_t d = sim_dest(x, &in->opnds[0], 4);
  Op *op = sim_emit(x, op_redux);
  op->d = d, op->a = a, op->b = mask;
  op->kind = (uint8_t)kind;
  op->type = in->type[0] == PTX_T_S32;
  return true;
}

// ---- activemask ---------------------------------------------------------------------------------
static const Op *op_activemask(Warp *w, const Op *op) {
  uint32_t t[32];
  for (int i = 0; i < 32; i++)
    t[i] = w->active;
  sim_put(w, op->d, t, 4);
  return op + 1;
}

bool sim_activemask(Decoder *x, const PtxInst *in) {
  uint32_t d = sim_dest(x, &in->opnds[0], 4);
  sim_emit(x, op_activemask)->d = d;
  return true;
}

// ---- elect --------------------------------------------------------------------------------------
// The leader is the lowest lane of the mask.
static const Op *op_elect(Warp *w, const Op *op) {
  uint32_t masks[32], t[32] = {0}, bits = 0;
  const Op *stop = gather(w, op, op->a, masks);
  if (stop)
    return stop;
  SIM_LANES(i, w->active) {
    t[i] = (uint32_t)sim_first(masks[i]);
    bits |= (uint32_t)(t[i] == i) << i;
  }
  if (op->d)
    sim_put(w, op->d, t, 4);
  sim_merge(w->regs + op->c, (const uint8_t *)&bits, 1, w->active);
  return op + 1;
}

bool sim_elect(Decoder *x, const PtxInst *in) {
  sim_split_guard(x);
  uint32_t mask = sim_source(x, &in->opnds[1], PTX_T_B32, 4), d, p;
  pair_dest(x, &in->opnds[0], &d, &p);
  Op *op = sim_emit(x, op_elect);
  op->a = mask;
  op->d = d, op->c = p;
  return true;
}
