// sim_trap.c: what went wrong, said with its place.
#include <stdio.h>

#include "sim_async.h"
#include "sim_run.h"
#include "sim_wgmma.h"

void sim_thread_of(const Cta *c, uint32_t linear, uint32_t out[3]) {
  const uint32_t *block = c->grid->launch.block;
  out[0] = linear % block[0];
  out[1] = linear / block[0] % block[1];
  out[2] = linear / block[0] / block[1];
}

const Op *sim_trap_at(Warp *w, const Op *op, uint32_t lane, const char *fmt, ...) {
  TrapInfo *t = &w->cta->trap;
  t->set = true;
  t->op = op;
  t->nwaits = t->more_waits = 0;
  t->cta = w->cta->index;
  memcpy(t->block, w->cta->id, sizeof t->block);
  sim_thread_of(w->cta, (uint32_t)w->index * 32 + lane, t->thread);
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(t->what, sizeof t->what, fmt, ap);
  va_end(ap);
  return sim_leave(w, EV_TRAP, op);
}

const Op *sim_trap_note(Cta *c, const Op *op, const Op *at, const char *fmt, ...) {
  TrapInfo *t = &c->trap;
  if (t->nwaits == SIM_MAX_WAITS)
    return op;
  t->waits[t->nwaits].op = at;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(t->waits[t->nwaits++].what, sizeof t->waits[0].what, fmt, ap);
  va_end(ap);
  return op;
}

const Op *sim_trap_party(Warp *w, const Op *op, const Op *at, uint32_t thread) {
  uint32_t t[3];
  sim_thread_of(w->cta, thread, t);
  return sim_trap_note(w->cta, op, at, "the other party: thread (%u,%u,%u) of the same block", t[0],
                       t[1], t[2]);
}

// ---- deadlock -----------------------------------------------------------------------------------
// The bytes that phase expects, and what came.
static void describe_bytes(const Mbarrier *b, char *out, size_t n) {
  *out = 0;
  if (b->tx > 0)
    snprintf(out, n, "; %lld bytes are missing: %llu expected at line %u, %llu copied",
             (long long)b->tx, (unsigned long long)b->expected_bytes,
             b->expect ? b->expect->in->line : 0, (unsigned long long)b->copied_bytes);
  else if (b->tx < 0)
    snprintf(out, n, "; %lld bytes too many came: %llu expected, %llu copied", -(long long)b->tx,
             (unsigned long long)b->expected_bytes, (unsigned long long)b->copied_bytes);
}

static void describe_mbarrier(const Cta *c, const Warp *w, const Group *g, char *out, size_t n) {
  const Mbarrier *b = sim_mbar_find(c, g->mbar);
  char bytes[128];
  describe_bytes(b, bytes, sizeof bytes);
  snprintf(out, n, "warp %d, lanes %08x: for phase %llu of the mbarrier at %llu (line %u), where "
           "%u of %u arrivals are missing%s", w->index, g->mask, (unsigned long long)g->phase,
           (unsigned long long)b->at, b->init->in->line, b->pending, b->expected, bytes);
}

static void describe_wait(const Cta *c, const Warp *w, const Group *g, char *out, size_t n) {
  uint32_t missing, arrived, expected;
  if (c->cluster->n > 1) {
    int used = snprintf(out, n, "block (%u,%u,%u) ", c->id[0], c->id[1], c->id[2]);
    out += used;
    n -= (size_t)used;
  }
  switch (g->state) {
  case GROUP_MBARRIER:
    describe_mbarrier(c, w, g, out, n);
    break;
  case GROUP_BARRIER: {
    const Barrier *b = &c->bar[g->bar];
    snprintf(out, n, "warp %d, lanes %08x: at barrier %d, where %u of %u threads have arrived",
             w->index, g->mask, g->bar, sim_barrier_arrived(c, b), sim_barrier_expected(c, b));
    break;
  }
  case GROUP_CLUSTER:
    sim_cluster_barrier(c->cluster, &arrived, &expected);
    snprintf(out, n, "warp %d, lanes %08x: at the cluster barrier, where %u of %u threads have "
             "arrived", w->index, g->mask, arrived, expected);
    break;
  case GROUP_REGISTERS:
    sim_maxnreg_describe(w, g, out, n);
    break;
  case GROUP_WGMMA:
    sim_wgmma_describe(w, g, out, n);
    break;
  default:
    missing = g->need & ~g->mask;
    snprintf(out, n, "warp %d, lanes %08x: for lanes %08x of their warp to come here", w->index,
             g->mask, missing);
  }
}

// The instruction a waiting group stands at; behind a barrier it has arrived already.
static const Op *waiting_op(const Group *g) {
  return g->state == GROUP_BARRIER ? g->pc - 1 : g->pc;
}

static void note_wait(Cta *c, Warp *w, const Group *g, TrapInfo *t) {
  if (t->nwaits == SIM_MAX_WAITS) {
    t->more_waits++;
    return;
  }
  t->waits[t->nwaits].op = waiting_op(g);
  describe_wait(c, w, g, t->waits[t->nwaits].what, sizeof t->waits[0].what);
  t->nwaits++;
  const Mbarrier *b = g->state == GROUP_MBARRIER ? sim_mbar_find(c, g->mbar) : NULL;
  for (int i = 0; i < t->nwaits && b; i++)
    if (t->waits[i].op == b->init)
      b = NULL; // said already
  if (b)
    sim_trap_note(c, b->init, b->init, "the mbarrier at %llu was initialised here",
                  (unsigned long long)b->at);
}

static void note_waits(Cta *c, Warp *w, TrapInfo **t) {
  for (int lane = 0; lane < 32; lane++) // groups by their first lane
    for (int k = 0; k < w->ngroups; k++) {
      const Group *g = &w->groups[k];
      if (sim_first(g->mask) != lane)
        continue;
      if (!*t) {
        sim_trap_at(w, waiting_op(g), (uint32_t)lane, "deadlock: no thread of the %s can go on",
                    c->cluster->n > 1 ? "cluster" : "block");
        *t = &c->trap;
      }
      note_wait(c, w, g, *t);
    }
}

void sim_trap_deadlock(Cluster *k) {
  TrapInfo *t = NULL;
  for (int r = 0; r < k->n; r++)
    for (int i = 0; i < k->ctas[r]->nwarps; i++)
      note_waits(k->ctas[r], &k->ctas[r]->warps[i], &t);
}

// ---- as messages --------------------------------------------------------------------------------
static Place place(const Program *p, const PtxInst *in) {
  return (Place){p->module->src, in->line, in->col, 0, linemap_at(p->map, in->line)};
}

Status sim_trap_report(const Grid *g, const TrapInfo *t, Diag *d) {
  const Program *p = g->prog;
  const PtxInst *in = t->op->in;
  Arena *a = arena_new();
  const char *text = ptx_print_inst(a, p->module, t->op->func->ptx, in);
  diag_error(d, place(p, in), "%s: %s in block (%u,%u,%u) thread (%u,%u,%u)", t->what, text,
             t->block[0], t->block[1], t->block[2], t->thread[0], t->thread[1], t->thread[2]);
  for (int i = 0; i < t->nwaits; i++)
    diag_add(d, SEV_NOTE, place(p, t->waits[i].op->in), "%s", t->waits[i].what);
  if (t->more_waits)
    diag_add(d, SEV_NOTE, NOWHERE, "and %d more wait", t->more_waits);
  arena_free(a);
  return ST_FAILED;
}
