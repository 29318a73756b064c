// sim_cluster.c: the CTAs of a cluster take turns on one host thread; their barrier; addresses in
// each other's shared memory.  ISA 5.1.5 (shared), 9.7.9.23-24 (mapa, getctarank), 9.7.13.3.
#include <stdlib.h>

#include "sim_async.h"
#include "sim_race.h"
#include "sim_run.h"
#include "sim_wgmma.h"

// ---- a cluster ----------------------------------------------------------------------------------
Cluster *sim_cluster_new(Grid *g) {
  Cluster *k = calloc(1, sizeof *k);
  if (!k)
    return NULL;
  k->grid = g;
  k->n = (int)(g->cluster[0] * g->cluster[1] * g->cluster[2]);
  for (int i = 0; i < k->n; i++) {
    k->ctas[i] = sim_cta_new(k, i);
    if (!k->ctas[i]) {
      sim_cluster_free(k);
      return NULL;
    }
  }
  return k;
}

void sim_cluster_free(Cluster *k) {
  if (!k)
    return;
  for (int i = 0; i < k->n; i++)
    sim_cta_free(k->ctas[i]);
  free(k);
}

static void split3(uint64_t index, const uint32_t extent[3], uint32_t out[3]) {
  out[0] = (uint32_t)(index % extent[0]);
  out[1] = (uint32_t)(index / extent[0] % extent[1]);
  out[2] = (uint32_t)(index / extent[0] / extent[1]);
}

static void start(Cluster *k, uint64_t order) {
  uint64_t index = sim_schedule_cluster(k->grid, order);
  const Grid *g = k->grid;
  const uint32_t *grid = g->launch.grid;
  uint32_t clusters[3], first[3], in[3];
  for (int i = 0; i < 3; i++)
    clusters[i] = grid[i] / g->cluster[i];
  k->index = index;
  k->order = order;
  k->barriers = 0;
  split3(index, clusters, first);
  for (int r = 0; r < k->n; r++) {
    Cta *c = k->ctas[r];
    split3((uint64_t)r, g->cluster, in);
    for (int i = 0; i < 3; i++)
      c->id[i] = first[i] * g->cluster[i] + in[i];
    c->index = c->id[0] + (uint64_t)grid[0] * (c->id[1] + (uint64_t)grid[1] * c->id[2]);
    sim_cta_start(c);
  }
}

static bool ended(const Cluster *k) {
  for (int i = 0; i < k->n; i++)
    if (!sim_cta_ended(k->ctas[i]))
      return false;
  return true;
}

const TrapInfo *sim_cluster_trap(const Cluster *k) {
  for (int i = 0; i < k->n; i++)
    if (k->ctas[i]->trap.set)
      return &k->ctas[i]->trap;
  return NULL;
}

bool sim_cluster_run(Cluster *k, uint64_t order) {
  start(k, order);
  for (bool moved = true; moved;) {
    uint8_t turns[SIM_MAX_CLUSTER];
    sim_schedule_turns(k->ctas[0], turns, k->n);
    moved = false;
    for (int i = 0; i < k->n; i++)
      if (!sim_cta_round(k->ctas[turns[i]], &moved))
        return false;
    if (!moved && k->ctas[0]->async && !ended(k))
      moved = sim_async_advance(k) && !sim_cluster_trap(k);
  }
  if (sim_cluster_trap(k))
    return false;
  if (!ended(k))
    sim_trap_deadlock(k);
  else if (k->ctas[0]->async)
    sim_async_finish(k);
  for (int i = 0; i < k->n && !sim_cluster_trap(k); i++) {
    sim_maxnreg_finish(k->ctas[i]);
    if (k->ctas[i]->wgmma)
      sim_wgmma_finish(k->ctas[i]);
  }
  return !sim_cluster_trap(k);
}

// ---- barrier.cluster ----------------------------------------------------------------------------
// A phase is complete when every thread of the cluster that has not ended has arrived in it.
void sim_cluster_barrier(const Cluster *k, uint32_t *arrived, uint32_t *expected) {
  *arrived = *expected = 0;
  for (int i = 0; i < k->n; i++)
    for (int j = 0; j < k->ctas[i]->nwarps; j++) {
      const Warp *w = &k->ctas[i]->warps[j];
      *expected += (uint32_t)__builtin_popcount(w->lanes & ~w->gone);
      *arrived += (uint32_t)__builtin_popcount(w->at_cluster & ~w->gone);
    }
}

static void wake(Warp *w) {
  w->at_cluster = 0;
  for (int i = 0; i < w->ngroups; i++)
    if (w->groups[i].state == GROUP_CLUSTER)
      w->groups[i].state = GROUP_READY;
}

static void complete_phase(Cluster *k) {
  uint32_t arrived, expected;
  sim_cluster_barrier(k, &arrived, &expected);
  if (!arrived || arrived < expected)
    return;
  k->barriers++;
  k->ctas[0]->barriers++; // counted once
  sim_order_cluster_phase(k);
  for (int i = 0; i < k->n; i++)
    for (int j = 0; j < k->ctas[i]->nwarps; j++)
      wake(&k->ctas[i]->warps[j]);
}

void sim_cluster_lanes_ended(Cluster *k) { complete_phase(k); }

static const Op *op_arrive(Warp *w, const Op *op) {
  const Op *stop = op->kind ? sim_aligned_barrier(w, op) : NULL; // .aligned
  if (stop)
    return stop;
  uint32_t twice = w->active & w->owe_wait;
  if (twice)
    return sim_trap_at(w, op, (uint32_t)sim_first(twice),
                       "cluster barrier: arrived at again before barrier.cluster.wait");
  w->at_cluster |= w->active;
  sim_order_cluster_arrive(w, op);
  w->owe_wait |= w->active;
  complete_phase(w->cta->cluster);
  return op + 1;
}

static const Op *op_wait(Warp *w, const Op *op) {
  const Op *stop = op->kind ? sim_aligned_barrier(w, op) : NULL; // .aligned
  if (stop)
    return stop;
  uint32_t early = w->active & ~w->owe_wait;
  if (early)
    return sim_trap_at(w, op, (uint32_t)sim_first(early),
                       "cluster barrier: waited for without having arrived");
  if (w->active & w->at_cluster) {
    w->groups[w->cur].state = GROUP_CLUSTER;
    return sim_leave(w, EV_BLOCK, op);
  }
  w->owe_wait &= ~w->active;
  sim_order_cluster_wait(w);
  return op + 1;
}

bool sim_barcluster(Decoder *x, const PtxInst *in) {
  sim_split_guard(x);
  Op *op = sim_emit(x, ptx_inst_has(in, "arrive") ? op_arrive : op_wait);
  op->kind = ptx_inst_has(in, "aligned");
  return true;
}

// ---- addresses ----------------------------------------------------------------------------------
const char *sim_remote(const Warp *w, uint8_t space, uint64_t address, Memory *out) {
  const Cluster *k = w->cta->cluster;
  uint64_t rank = (address >> SIM_RANK_SHIFT) - 1;
  if (rank >= (uint64_t)k->n)
    return NULL; // out of the own block's bounds
  const Cta *c = k->ctas[rank];
  *out = c->shared;
  out->base = (rank + 1) << SIM_RANK_SHIFT;
  if (c == w->cta)
    return NULL;
  return space == PTX_S_SHARED ? ".shared::cta reaches the own block's memory only"
         : sim_cta_ended(c)    ? "that block has ended, and its memory is gone"
         : !k->barriers        ? "that block may not have started: no cluster barrier has completed"
                               : NULL;
}

static uint64_t map_rank(const Warp *w, uint64_t address, uint32_t rank) {
  uint64_t offset = address & ((UINT64_C(1) << SIM_RANK_SHIFT) - 1);
  return rank == w->cta->rank ? offset : offset | (uint64_t)(rank + 1) << SIM_RANK_SHIFT;
}

static uint64_t lane_address(const Warp *w, const Op *op, uint32_t lane) {
  return op->bytes == 8 ? sim_r64(w, op->a)[lane] : sim_r32(w, op->a)[lane];
}

// Generic addresses (kind) must be of shared memory.
static const Op *check_window(Warp *w, const Op *op) {
  if (op->kind)
    SIM_LANES(i, w->active) {
      uint64_t a = lane_address(w, op, i);
      if ((a & ~SIM_OFFSET_MASK) != SIM_WINDOW_SHARED)
        return sim_trap_at(w, op, i, "the generic address 0x%llx is not one of shared memory",
                           (unsigned long long)a);
    }
  return NULL;
}

static const Op *op_mapa(Warp *w, const Op *op) {
  const Op *stop = check_window(w, op);
  if (stop)
    return stop;
  uint32_t n = (uint32_t)w->cta->cluster->n, t32[32] = {0};
  uint64_t t64[32] = {0};
  const uint32_t *rank = sim_r32(w, op->b);
  SIM_LANES(i, w->active) {
    uint64_t a = lane_address(w, op, i);
    if (rank[i] >= n)
      return sim_trap_at(w, op, i, "block rank %u: the cluster has %u block%s", rank[i], n,
                         n == 1 ? "" : "s");
    t64[i] = map_rank(w, a & SIM_OFFSET_MASK, rank[i]) | (a & ~SIM_OFFSET_MASK);
    t32[i] = (uint32_t)t64[i];
  }
  sim_put(w, op->d, op->width == 8 ? (void *)t64 : (void *)t32, op->width);
  return op + 1;
}

static const Op *op_getctarank(Warp *w, const Op *op) {
  const Op *stop = check_window(w, op);
  if (stop)
    return stop;
  uint32_t t[32];
  for (uint32_t i = 0; i < 32; i++) {
    uint64_t high = (lane_address(w, op, i) & SIM_OFFSET_MASK) >> SIM_RANK_SHIFT;
    t[i] = high ? (uint32_t)high - 1 : w->cta->rank;
  }
  sim_put(w, op->d, t, 4);
  return op + 1;
}

static Op *emit_address(Decoder *x, const PtxInst *in, OpFn fn, int width) {
  PtxType t = (PtxType)in->type[0];
  uint32_t a = sim_source(x, &in->opnds[1], t, 0);
  uint32_t d = sim_dest(x, &in->opnds[0], width);
  Op *op = sim_emit(x, fn);
  op->d = d, op->a = a;
  op->width = (uint8_t)width;
  op->bytes = (uint8_t)sim_width(t);
  op->kind = in->space == PTX_S_GENERIC;
  return op;
}

bool sim_mapa(Decoder *x, const PtxInst *in) {
  uint32_t rank = sim_source(x, &in->opnds[2], PTX_T_U32, 4);
  emit_address(x, in, op_mapa, sim_width((PtxType)in->type[0]))->b = rank;
  return true;
}

bool sim_getctarank(Decoder *x, const PtxInst *in) {
  emit_address(x, in, op_getctarank, 4);
  return true;
}
