// sim_sync.c: barriers of the CTA and of the warp, fences.  ISA 9.7.13.1-4.
#include "sim_decode.h"
#include "sim_ops.h"
#include "sim_race.h"
#include "sim_run.h"

typedef enum BarKind { BAR_SYNC, BAR_ARRIVE, BAR_POPC, BAR_AND, BAR_OR } BarKind;

// ---- generations --------------------------------------------------------------------------------
// What a warp has brought: lanes that ended or never were count with the others.
static uint32_t contribution(const Warp *w, const Barrier *b) {
  uint32_t here = b->arrived[w->index];
  return here ? (uint32_t)__builtin_popcount(here | w->gone) : 0;
}

uint32_t sim_barrier_arrived(const Cta *c, const Barrier *b) {
  uint32_t n = 0;
  for (int i = 0; i < c->nwarps; i++)
    n += contribution(&c->warps[i], b);
  return n;
}

uint32_t sim_barrier_expected(const Cta *c, const Barrier *b) {
  if (b->count)
    return b->count;
  uint32_t n = 0;
  for (int i = 0; i < c->nwarps; i++)
    if (c->warps[i].gone != SIM_FULL || b->arrived[i])
      n += 32;
  return n;
}

static uint32_t reduce(const Cta *c, const Barrier *b) {
  uint32_t n = 0, all = 1, any = 0;
  for (int i = 0; i < c->nwarps; i++) {
    uint32_t here = b->arrived[i], on = b->value[i] & here;
    n += (uint32_t)__builtin_popcount(on);
    all &= on == here;
    any |= on != 0;
  }
  return b->kind == BAR_POPC ? n : b->kind == BAR_AND ? (all ? SIM_FULL : 0) : (any ? SIM_FULL : 0);
}

// The result of bar.red goes into the registers of a group that waited.
static void give_result(Warp *w, const Group *g, const Op *op, uint32_t result) {
  if (op->kind < BAR_POPC)
    return;
  uint8_t *saved = w->regs;
  uint32_t active = w->active, lbase = w->lbase, t[32];
  sim_enter(w, g);
  for (int i = 0; i < 32; i++)
    t[i] = result;
  sim_merge(w->regs + op->d, (const uint8_t *)t, op->width, g->mask);
  w->regs = saved;
  w->active = active;
  w->lbase = lbase;
}

static void release(Cta *c, int id) {
  Barrier *b = &c->bar[id];
  uint32_t result = b->kind >= BAR_POPC ? reduce(c, b) : 0;
  sim_order_complete(c, id);
  for (int i = 0; i < c->nwarps; i++) {
    Warp *w = &c->warps[i];
    for (int k = 0; k < w->ngroups; k++) {
      Group *g = &w->groups[k];
      if (g->state != GROUP_BARRIER || g->bar != id)
        continue;
      give_result(w, g, g->pc - 1, result);
      sim_order_go_on(w, g->mask, id);
      g->state = GROUP_READY;
    }
  }
  sim_order_reset(c, id);
  *b = (Barrier){0};
}

static bool complete(const Cta *c, const Barrier *b) {
  return b->open && sim_barrier_arrived(c, b) >= sim_barrier_expected(c, b);
}

void sim_lanes_ended(Warp *w) {
  for (int id = 0; id < SIM_BARRIERS; id++)
    if (complete(w->cta, &w->cta->bar[id]))
      release(w->cta, id);
  sim_cluster_lanes_ended(w->cta->cluster);
}

// ---- bar ----------------------------------------------------------------------------------------
static bool same_in_all(const Warp *w, uint32_t at, uint32_t *value) {
  const uint32_t *r = sim_r32(w, at);
  *value = r[sim_first(w->active)];
  uint32_t differs = 0;
  SIM_LANES(i, w->active) differs |= r[i] ^ *value;
  return !differs;
}

// What is wrong with this arrival, or NULL.  `count` 0: all threads.
static const Op *bad_arrival(Warp *w, const Op *op, uint32_t id, uint32_t count, bool has_count) {
  uint32_t lane = (uint32_t)sim_first(w->active);
  if (id >= SIM_BARRIERS)
    return sim_trap_at(w, op, lane, "barrier %u: there are 16, 0 to 15", id);
  const Barrier *b = &w->cta->bar[id];
  if (has_count && (count % 32 || !count))
    return sim_trap_at(w, op, lane, "barrier %u: a count of %u is not a multiple of 32", id, count);
  if (!b->open)
    return NULL;
  if (b->count != count)
    sim_trap_at(w, op, lane,
                "barrier %u: a count of %u, but line %u arrived with %u (0: all threads)", id,
                count, b->op->in->line, b->count);
  else if ((b->kind >= BAR_POPC || op->kind >= BAR_POPC) && b->kind != op->kind)
    sim_trap_at(w, op, lane, "barrier %u: a reduction is mixed with line %u", id, b->op->in->line);
  else if (b->arrived[w->index] & w->active)
    sim_trap_at(w, op, lane, "barrier %u: arrived at twice before it was complete", id);
  else
    return NULL;
  return sim_trap_party(w, op, b->op, b->thread);
}

const Op *sim_aligned_barrier(Warp *w, const Op *op) {
  uint32_t live = w->lanes & ~w->gone;
  return live & ~w->active ? sim_wait_lanes(w, op, live) : NULL;
}

static const Op *op_bar(Warp *w, const Op *op) {
  const Op *stop = op->vec ? sim_aligned_barrier(w, op) : NULL;
  if (stop)
    return stop;
  uint32_t id = 0, count = 0;
  if (!same_in_all(w, op->a, &id) || (op->b && !same_in_all(w, op->b, &count)))
    return sim_trap_at(w, op, (uint32_t)sim_first(w->active),
                       "the lanes of a warp name different barriers or counts");
  stop = bad_arrival(w, op, id, count, op->b != 0);
  if (stop)
    return stop;
  Cta *c = w->cta;
  Barrier *b = &c->bar[id];
  if (!b->open) {
    *b = (Barrier){.open = true, .count = count, .kind = op->kind, .op = op,
                   .thread = (uint32_t)w->index * 32 + (uint32_t)sim_first(w->active)};
    c->barriers++;
  }
  b->arrived[w->index] |= w->active;
  sim_order_arrive(w, op, (int)id);
  if (op->kind >= BAR_POPC)
    b->value[w->index] = (b->value[w->index] & ~w->active) | (*sim_mask(w, op->c) & w->active);
  if (op->kind == BAR_ARRIVE) {
    if (complete(c, b))
      release(c, (int)id);
    return op + 1;
  }
  Group *g = &w->groups[w->cur];
  g->state = GROUP_BARRIER;
  g->bar = (int)id;
  sim_leave(w, EV_BLOCK, op + 1);
  if (complete(c, b))
    release(c, (int)id);
  return op + 1;
}

bool sim_bar(Decoder *x, const PtxInst *in) {
  sim_split_guard(x);
  BarKind kind = ptx_inst_has(in, "arrive") ? BAR_ARRIVE
                 : ptx_inst_has(in, "popc") ? BAR_POPC
                 : ptx_inst_has(in, "and")  ? BAR_AND
                 : ptx_inst_has(in, "or")   ? BAR_OR
                                            : BAR_SYNC;
  int first = kind >= BAR_POPC, last = in->nopnds - (kind >= BAR_POPC);
  uint32_t id = sim_source(x, &in->opnds[first], PTX_T_U32, 4);
  uint32_t count = last > first + 1 ? sim_source(x, &in->opnds[first + 1], PTX_T_U32, 4) : 0;
  uint32_t pred = kind >= BAR_POPC ? sim_pred_source(x, &in->opnds[in->nopnds - 1]) : 0;
  Op *op = sim_emit(x, op_bar);
  op->a = id;
  op->b = count;
  op->c = pred;
  op->kind = (uint8_t)kind;
  op->width = kind == BAR_POPC ? 4 : 1;
  op->vec = !strcmp(ptx_inst_form(in)->stem, "bar") || ptx_inst_has(in, "aligned");
  if (kind >= BAR_POPC)
    op->d = x->func->reg[in->opnds[0].reg];
  return true;
}

// ---- bar.warp.sync ------------------------------------------------------------------------------
// Lanes may come from different bar.warp.sync instructions; the masks must agree.
static const Op *op_barwarp(Warp *w, const Op *op) {
  uint32_t need, lane = (uint32_t)sim_first(w->active);
  if (!same_in_all(w, op->a, &need))
    return sim_trap_at(w, op, lane, "the lanes name different masks");
  need &= w->lanes;
  if (w->active & ~need)
    return sim_trap_at(w, op, (uint32_t)sim_first(w->active & ~need),
                       "the mask %08x does not name the lane that executes", need);
  if (need & w->gone)
    return sim_trap_at(w, op, lane, "lanes %08x of the mask have ended", need & w->gone);
  uint32_t here = w->active;
  for (int i = 0; i < w->ngroups; i++)
    if (w->groups[i].state == GROUP_WARPBAR && w->groups[i].need == need)
      here |= w->groups[i].mask;
  if ((here & need) == need) {
    sim_order_lanes(w, need);
    for (int i = 0; i < w->ngroups; i++)
      if (w->groups[i].state == GROUP_WARPBAR && w->groups[i].need == need) {
        w->groups[i].state = GROUP_READY;
        w->groups[i].pc++;
      }
    return here == w->active ? op + 1 : sim_leave(w, EV_SPLIT, op + 1);
  }
  Group *g = &w->groups[w->cur];
  g->state = GROUP_WARPBAR;
  g->need = need;
  return sim_leave(w, EV_BLOCK, op);
}

bool sim_barwarp(Decoder *x, const PtxInst *in) {
  sim_split_guard(x);
  uint32_t mask = sim_source(x, &in->opnds[0], PTX_T_B32, 4);
  sim_emit(x, op_barwarp)->a = mask;
  return true;
}

static const Op *op_fence(Warp *w, const Op *op) {
  sim_order_fence(w, op);
  atomic_thread_fence(memory_order_seq_cst);
  return op + 1;
}

bool sim_fence(Decoder *x, const PtxInst *in) {
  (void)in;
  sim_emit(x, op_fence);
  return true;
}
