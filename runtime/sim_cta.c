// sim_cta.c: one CTA: its warps take turns.
#include <stdlib.h>

#include "interrupt.h"
#include "sim_async.h"
#include "sim_race.h"
#include "sim_run.h"
#include "sim_wgmma.h"

enum { TURN = 1 << 16 }; // warp instructions

// ---- memory -------------------------------------------------------------------------------------
static size_t up64(size_t n) { return (n + 63) & ~(size_t)63; }

static void fill_consts(Warp *w) {
  const Program *p = w->cta->grid->prog;
  for (int i = 0; i < p->nconsts; i++) {
    const FrameConst *k = &p->consts[i];
    for (int level = 0; level < k->func->levels; level++) {
      uint8_t *at = w->file + k->func->frame + (size_t)level * k->func->frame_bytes + k->at;
      if (k->width == 1) {
        *(uint32_t *)at = (uint32_t)k->value;
        continue;
      }
      for (int lane = 0; lane < 32; lane++) {
        if (k->width == 4)
          ((uint32_t *)at)[lane] = (uint32_t)k->value;
        else
          ((uint64_t *)at)[lane] = k->value; // of 16 bytes the high half stays 0
      }
    }
  }
}

static void make_warp(Cta *c, int index, uint8_t *at, size_t file, size_t local) {
  Warp *w = &c->warps[index];
  w->cta = c;
  w->index = index;
  w->blocks = c->blocks;
  w->file = at;
  w->local = at + file;
  w->local_shadow = at + file + local;
  const uint32_t *b = c->grid->launch.block;
  uint32_t threads = b[0] * b[1] * b[2], left = threads - (uint32_t)index * 32;
  w->lanes = left >= 32 ? SIM_FULL : (1u << left) - 1;
  fill_consts(w);
}

Cta *sim_cta_new(Cluster *k, int rank) {
  Grid *g = k->grid;
  const Program *p = g->prog;
  const uint32_t *b = g->launch.block;
  Cta *c = calloc(1, sizeof *c);
  if (!c)
    return NULL;
  c->grid = g;
  c->cluster = k;
  c->rank = (uint32_t)rank;
  c->nwarps = (int)((b[0] * b[1] * b[2] + 31) / 32);
  size_t file = up64(p->file_bytes), local = up64((size_t)p->local_bytes * 32);
  size_t shared = up64(g->dynamic_at + g->launch.smem), one = file + 2 * local;
  c->memory = aligned_alloc(64, one * (size_t)c->nwarps + 2 * shared + 64);
  c->warps = calloc((size_t)c->nwarps, sizeof *c->warps);
  c->blocks = calloc((size_t)p->nblocks + 1, sizeof *c->blocks);
  c->frames = calloc((size_t)c->nwarps * SIM_MAX_FRAMES, sizeof *c->frames);
  if (g->counts)
    c->counts = calloc((size_t)p->nsites + 1, sizeof *c->counts);
  bool async = !p->uses_async || sim_async_new(c), wgmma = !p->uses_wgmma || sim_wgmma_new(c);
  if (!c->memory || !c->warps || !c->blocks || !c->frames || (g->counts && !c->counts) || !async ||
      !wgmma) {
    sim_cta_free(c);
    return NULL;
  }
  memset(c->memory, 0, one * (size_t)c->nwarps);
  uint8_t *at = c->memory + one * (size_t)c->nwarps;
  c->shared = (Memory){.bytes = g->dynamic_at + g->launch.smem, .data = at, .shadow = at + shared,
                       .watched = p->uses_async ? c : NULL};
  if (!p->has_dynamic && !g->launch.smem)
    c->shared.bytes = p->shared_bytes;
  for (int i = 0; i < c->nwarps; i++) {
    make_warp(c, i, c->memory + one * (size_t)i, file, local);
    c->warps[i].frames = c->frames + (size_t)i * SIM_MAX_FRAMES;
  }
  if (g->dev->opts.sanitize)
    c->race = race_cta_new(c);
  sim_sregs_fixed(c);
  return c;
}

void sim_cta_free(Cta *c) {
  if (!c)
    return;
  race_cta_free(c->race);
  sim_async_free(c);
  sim_wgmma_free(c);
  free(c->memory), free(c->warps), free(c->blocks), free(c->frames), free(c->counts);
  free(c);
}

// ---- a new CTA ----------------------------------------------------------------------------------
static void start_warp(Warp *w) {
  const Program *p = w->cta->grid->prog;
  const Func *f = p->entry;
  w->gone = ~w->lanes;
  w->turn = w->last = w->waited = 0;
  w->at_cluster = w->owe_wait = 0;
  w->nframes = 1;
  w->frames[0] = (Frame){.func = f};
  w->ngroups = 1;
  w->groups[0] = (Group){.mask = w->lanes, .pc = p->ops + f->first, .frame = &w->frames[0]};
  memset(w->file + f->frame + f->init_at, 0, f->init_bytes);
  if (p->local_bytes)
    memset(w->local_shadow, 0, (size_t)p->local_bytes * 32);
}

void sim_cta_start(Cta *c) {
  c->trap.set = false;
  memset(c->bar, 0, sizeof c->bar);
  memset(c->shared.shadow, 0, c->shared.bytes);
  sim_maxnreg_start(c);
  if (c->wgmma)
    sim_wgmma_start(c);
  sim_sregs_block(c);
  sim_schedule_block(c);
  if (c->race)
    race_cta_start(c);
  if (c->async)
    sim_async_start(c);
  for (int i = 0; i < c->nwarps; i++)
    start_warp(&c->warps[i]);
}

// ---- turns --------------------------------------------------------------------------------------
// The Grid adds up instructions of all CTAs: for the limit.  A block's instructions are charged
// when it begins; what would go beyond the limit does not run.  (Host threads each see what was
// left when a turn began, so that several may go beyond it a little; whether the launch fails does
// not depend on them.)
static bool within_limits(Cta *c, Warp *w) {
  Grid *g = c->grid;
  uint64_t limit = g->dev->opts.step_limit;
  if (!limit && c->steps - c->told < TURN)
    return true;
  uint64_t total = atomic_fetch_add(&g->steps, c->steps - c->told) + c->steps - c->told;
  c->told = c->steps;
  if (interrupt_pending())
    atomic_store(&g->stopped, true);
  if (atomic_load(&g->stopped) || atomic_load(&g->first_bad) < c->cluster->order)
    return false;
  if (!limit || total <= limit)
    return true;
  const Group *at = &w->groups[0]; // of a warp that has ended: its last one
  const Op *op = at->pc;
  while (!op->in)
    op++;
  sim_trap_at(w, op, at->mask ? (uint32_t)sim_first(at->mask) : 0,
              "the limit of %llu warp instructions is reached", (unsigned long long)limit);
  return false;
}

// Warp instructions that the next warp may run before others have their turn.
static int64_t turn_length(Cta *c) {
  int64_t turn = c->grid->dev->opts.seed ? sim_schedule_turn(c) : TURN;
  uint64_t limit = c->grid->dev->opts.step_limit, done = atomic_load(&c->grid->steps);
  if (limit && limit < done + (uint64_t)turn)
    return limit > done ? (int64_t)(limit - done) : 0;
  return turn;
}

bool sim_cta_round(Cta *c, bool *moved) {
  uint8_t order[SIM_MAX_WARPS];
  sim_schedule_turns(c, order, c->nwarps);
  for (int i = 0; i < c->nwarps; i++) {
    Warp *w = &c->warps[order[i]];
    if (!sim_warp_ready(w))
      continue;
    *moved = true;
    c->turn = turn_length(c);
    sim_warp_run(w);
    if (c->async && sim_completion(c) == SIM_RANDOM)
      sim_async_random(c);
    if (c->wgmma && c->wgmma->in_flight && sim_completion(c) == SIM_RANDOM)
      sim_wgmma_random(c);
    if (sim_cluster_trap(c->cluster) || !within_limits(c, w))
      return false;
  }
  return true;
}

bool sim_cta_ended(const Cta *c) {
  for (int i = 0; i < c->nwarps; i++)
    if (c->warps[i].ngroups)
      return false;
  return true;
}
