// sim_race_async.c: accesses of asynchronous operations against the shadow.
//
// What the generic proxy wrote is visible to the asynchronous one only behind a fence.proxy.async
// of the thread that wrote, which comes before whatever orders the two threads (ISA 8, 9.7.13.4).
#include <string.h>

#include "sim_bulk.h"
#include "sim_ops.h"
#include "sim_race.h"

static Touch touch_of(Warp *w, const Op *op, uint32_t lane, AccessKind kind, uint64_t a[32],
                      uint64_t address) {
  RaceCta *rc = w->cta->race;
  a[lane] = address;
  return (Touch){.w = w, .op = op, .race = rc->race, .rw = &rc->warp[w->index], .kind = kind,
                 .strength = race_strength(rc->race, op), .a = a};
}

// The cells of a range; false when there are none.
static bool find_cells(Touch *t, const AsyncTouch *a, uint64_t *first, uint64_t *n) {
  Buffer *b = a->owner ? NULL : sim_buffer(t->race->dev, a->at);
  t->span.shared = a->owner != NULL;
  t->span.offset = a->owner ? a->at : a->at & SIM_OFFSET_MASK;
  t->span.cells = a->owner ? race_shared_cells(a->owner) : b ? race_buffer_cells(b) : NULL;
  bool whole = !(t->span.offset % 4) && !(a->bytes % 4);
  if (!t->span.cells || !a->bytes || !race_refine(t->span.cells, whole ? 4 : 1))
    return false;
  race_set_known(t);
  *first = t->span.offset >> t->span.cells->shift;
  *n = a->bytes >> t->span.cells->shift;
  return true;
}

// ---- the asynchronous proxy ---------------------------------------------------------------------
uint32_t sim_race_async_event(Warp *w, const Op *op, uint32_t lane) {
  RaceCta *rc = w->cta->race;
  if (!rc || rc->race->full)
    return 0;
  return race_new_event(rc->race, who_of(w->cta->index, WHO_ASYNC), op,
                        (uint32_t)w->index * 32 + lane);
}

// Is a write of the generic proxy, which happened before, behind its fence?
static void judge_proxy(const Touch *t, const Event *e, uint32_t lane, uint32_t by, bool own,
                        uint32_t event, uint64_t cell) {
  uint32_t bit = 1u << lane, other = (uint32_t)sim_first(by);
  bool self = own && race_view(t->rw, lane)->self[V_PROXIED] >= event;
  if (self || race_knows(t->rw, bit, V_PROXIED, e->who, by, event))
    return;
  bool late = race_knows(t->rw, bit, V_READER, e->who, by, event);
  race_tell(t, e, late ? FIND_LATE_PROXY_FENCE : FIND_NO_PROXY_FENCE, lane, other, cell, true);
}

// All that the event's warp did with this instruction happened before, behind a fence between the
// proxies where one is due.
static bool settled(const Touch *t, const Event *e, uint32_t lane, uint32_t event, bool wrote) {
  if (!race_all_know(t, e, event))
    return false;
  if (!wrote || t->remote || (e->who & 63) == WHO_ASYNC)
    return true;
  RaceWarp *rw = t->rw;
  if (rw->proxied_lane != lane)
    rw->proxied = (SeenEvents){{0}};
  rw->proxied_lane = lane;
  uint32_t *seen = &rw->proxied.event[event % RACE_SEEN];
  if (*seen == event)
    return true;
  if (!race_knows(rw, 1u << lane, V_PROXIED, e->who, SIM_FULL, event))
    return false;
  *seen = event;
  return true;
}

static void judge(const Touch *t, int32_t prior, uint32_t lane, uint64_t cell, bool wrote) {
  const Event *e = race_event_of(t->race, prior);
  uint32_t event = (uint32_t)prior >> RACE_LANE_BITS, bit = 1u << lane;
  if (!e || event == t->event || settled(t, e, lane, event, wrote))
    return;
  if (event <= t->race->base) {
    race_judge_before(t, e, event, bit, (uint32_t)prior & 31, cell, wrote);
    return;
  }
  if ((e->who & 63) == WHO_ASYNC) {
    if (!(t->kind == ACCESS_ATOMIC && sim_async_reduces(e->op)) &&
        !race_knows(t->rw, bit, V_NOW, e->who, e->number, event))
      race_tell(t, e, FIND_IN_FLIGHT, lane, 0, cell, wrote);
    return;
  }
  uint32_t by = e->lanes ? e->lanes : 1u << (prior & 31);
  bool own = e->who == who_of(t->w->cta->index, t->w->index) && by == bit;
  if (!own && !race_knows(t->rw, bit, V_NOW, e->who, by, event))
    race_tell(t, e, FIND_RACE, lane, (uint32_t)sim_first(by), cell, wrote);
  else if (wrote && !t->remote)
    judge_proxy(t, e, lane, by, own, event, cell);
}

// Neighbours mostly have one event and one verdict: a cell like the one before is not judged again.
static void look(const Touch *t, const int32_t *cells, uint64_t first, uint64_t n, uint32_t lane,
                 bool wrote) {
  int32_t last = 0;
  for (uint64_t i = first; i < first + n; i++) {
    if (cells[i] == last || cells[i] <= t->base)
      continue;
    last = cells[i];
    judge(t, last, lane, i, wrote);
  }
}

static void begin(const Touch *t, uint64_t first, uint64_t n, uint32_t lane) {
  RaceCells *x = t->span.cells;
  look(t, x->write, first, n, lane, true);
  if (x->strong && t->kind != ACCESS_ATOMIC) // cp.reduce is a strong update
    look(t, x->strong, first, n, lane, true);
  for (int k = 0; k < RACE_READERS && t->kind != ACCESS_READ; k++)
    look(t, x->read[k], first, n, lane, false);
  int32_t *to = t->kind == ACCESS_READ ? x->read[t->event & 1] : x->write;
  for (uint64_t i = first; i < first + n; i++)
    to[i] = (int32_t)(t->event << RACE_LANE_BITS);
}

void sim_race_async_begin(Warp *w, const Op *op, uint32_t lane, uint32_t event,
                          const AsyncTouch *a) {
  if (!w->cta->race || !event)
    return;
  uint64_t addresses[32] = {0}, first, n;
  Touch t = touch_of(w, op, lane, a->kind, addresses, a->at);
  t.event = event;
  t.remote = a->remote;
  if (find_cells(&t, a, &first, &n))
    begin(&t, first, n, lane);
}

void sim_race_async_reads(Warp *w, const Op *op, uint32_t event, const AsyncRun *runs, int n) {
  if (!w->cta->race || !event || !n)
    return;
  uint64_t addresses[32] = {0}, first, cells;
  Touch t = touch_of(w, op, 0, ACCESS_READ, addresses, 0);
  t.event = event;
  AsyncTouch all = {.owner = w->cta, .at = runs[0].at, .bytes = runs[0].bytes, .kind = ACCESS_READ};
  if (!find_cells(&t, &all, &first, &cells))
    return;
  int shift = t.span.cells->shift;
  for (int i = 0; i < n; i++)
    begin(&t, runs[i].at >> shift, runs[i].bytes >> shift, 0);
}

// mbarrier.init is a write of the generic proxy too; fence.mbarrier_init is for it alone.
void sim_race_async_mbarrier(Warp *w, const Op *op, uint32_t lane, Cta *owner, uint64_t at,
                             ViewClock since) {
  if (!w->cta->race || w->cta->race->race->full)
    return;
  AsyncTouch a = {.owner = owner, .at = at, .bytes = 8};
  uint64_t addresses[32] = {0}, first, n;
  Touch t = touch_of(w, op, lane, ACCESS_READ, addresses, at);
  if (!find_cells(&t, &a, &first, &n) || t.span.cells->write[first] <= t.base)
    return;
  int32_t prior = t.span.cells->write[first];
  const Event *e = race_event_of(t.race, prior);
  if (!e || strcmp(ptx_inst_form(e->op->in)->stem, "mbarrier") || !ptx_inst_has(e->op->in, "init"))
    return;
  uint32_t event = (uint32_t)prior >> RACE_LANE_BITS, by = e->lanes ? e->lanes : 1u << (prior & 31);
  bool own = e->who == who_of(w->cta->index, w->index) && by == 1u << lane;
  bool fenced = own && (since == V_NOW || race_view(t.rw, lane)->self[since] >= event);
  if (!fenced && !race_knows(t.rw, 1u << lane, since, e->who, by, event))
    race_tell(&t, e, FIND_NO_INIT_FENCE, lane, (uint32_t)sim_first(by), first, true);
}

// ---- one lane of the generic proxy --------------------------------------------------------------
void sim_race_lane(Warp *w, const Op *op, uint32_t lane, const AsyncTouch *a) {
  if (!w->cta->race || w->cta->race->race->full)
    return;
  uint64_t addresses[32] = {0}, first, n;
  Touch t = touch_of(w, op, lane, a->kind, addresses, a->at);
  t.event = race_event(w, op, 0);
  if (t.event && find_cells(&t, a, &first, &n))
    race_touch(&t, first, n, 1u << lane);
}

void sim_race_copy(Warp *w, const Op *op, uint32_t lane, const AsyncTouch *a, bool done) {
  if (!w->cta->race || w->cta->race->race->full)
    return;
  if (!done) {
    sim_race_lane(w, op, lane, a);
    return;
  }
  uint64_t addresses[32] = {0}, first, n;
  Touch t = touch_of(w, op, lane, a->kind, addresses, a->at);
  t.event = race_event(w, op, 0);
  if (t.event && find_cells(&t, a, &first, &n))
    for (uint64_t i = first; i < first + n; i++)
      t.span.cells->write[i] = (int32_t)(t.event << RACE_LANE_BITS | lane);
}
