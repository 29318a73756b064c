// sim_report.c: findings of a sanitized launch, as messages.
#include <stdio.h>
#include <string.h>

#include "sim_race.h"
#include "sim_run.h"

static bool same_pair(const Finding *a, const Finding *b) {
  const PtxInst *x = a->op->in, *y = a->other->in, *u = b->op->in, *v = b->other->in;
  return a->kind == b->kind && ((x == u && y == v) || (x == v && y == u));
}

void race_found(Race *r, const Finding *f) {
  for (int i = 0; i < r->nfound; i++)
    if (same_pair(&r->found[i], f))
      return;
  if (r->nfound < SIM_MAX_FINDINGS)
    r->found[r->nfound++] = *f;
  else
    r->more++;
}

static char *who_text(Arena *a, const uint32_t *n, const uint32_t *b, uint64_t cta,
                      uint32_t thread) {
  return arena_printf(a, "block (%llu,%llu,%llu) thread (%u,%u,%u)",
                      (unsigned long long)(cta % n[0]), (unsigned long long)(cta / n[0] % n[1]),
                      (unsigned long long)(cta / n[0] / n[1]), thread % b[0], thread / b[0] % b[1],
                      thread / b[0] / b[1]);
}

static Place place(const Program *p, const Op *op) {
  return (Place){p->module->src, op->in->line, op->in->col, 0, linemap_at(p->map, op->in->line)};
}

static const char *const cures[] = {
    [FIND_RACE] = "nothing orders the two: no barrier, no release and acquire",
    [FIND_REUSE] = "nothing tells that this arrival at the generation before has happened",
    [FIND_IN_FLIGHT] = "nothing waited for the operation to complete",
    [FIND_NO_PROXY_FENCE] = "no fence.proxy.async by the thread that made this access, between it "
                            "and the synchronisation",
    [FIND_LATE_PROXY_FENCE] = "the fence.proxy.async is on the reader's side only: it belongs to "
                              "the thread that made this access, before the barrier",
    [FIND_OVERLAP] = "this launch may begin before that one has ended: no griddepcontrol.wait "
                     "orders the two",
    [FIND_NO_INIT_FENCE] = "no fence.mbarrier_init or fence.proxy.async by the thread that "
                           "initialised the mbarrier, between it and the synchronisation",
};

// What much code gets away with.
static bool is_warning(const Finding *f) {
  return f->kind == FIND_LATE_PROXY_FENCE || f->kind == FIND_NO_INIT_FENCE;
}

static void tell(Arena *a, const Race *r, const Grid *g, const Finding *f, Diag *d) {
  const Program *p = g->prog, *q = p;
  const uint32_t *grid = g->launch.grid, *block = g->launch.block;
  Severity s = is_warning(f) ? SEV_WARNING : SEV_ERROR;
  diag_add(d, s, place(p, f->op), "%s: %s in %s", f->what,
           ptx_print_inst(a, p->module, f->op->func->ptx, f->op->in),
           who_text(a, grid, block, f->cta, f->thread));
  bool before = f->kind == FIND_OVERLAP;
  if (before)
    q = r->before.prog, grid = r->before.grid, block = r->before.block;
  diag_add(d, SEV_NOTE, place(q, f->other), "the other party%s: %s in %s; %s",
           before ? ", of the launch before" : "",
           ptx_print_inst(a, q->module, f->other->func->ptx, f->other->in),
           who_text(a, grid, block, f->other_cta, f->other_thread), cures[f->kind]);
}

Status race_report(const Race *r, const Grid *g, Diag *d) {
  Arena *a = arena_new();
  Status st = ST_OK;
  for (int i = 0; i < r->nfound; i++) {
    tell(a, r, g, &r->found[i], d);
    if (!is_warning(&r->found[i]))
      st = ST_FAILED;
  }
  if (r->more)
    diag_add(d, SEV_NOTE, NOWHERE, "and %d more pairs of instructions", r->more);
  if (r->full)
    diag_add(d, SEV_WARNING, NOWHERE,
             "the launch is too long: races were looked for in its first %d events only",
             RACE_MAX_EVENTS - 1 - (int)r->base);
  arena_free(a);
  return st;
}
