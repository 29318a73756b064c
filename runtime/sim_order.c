// sim_order.c: what puts accesses of different threads in order.  PTX ISA 8 (memory consistency).
//
// A release hands what a thread knows, itself included, to a barrier or to the place of a strong
// write; an acquire takes it from there.  A fence with relaxed accesses does the same in two steps.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_ops.h"
#include "sim_race.h"

// ---- views --------------------------------------------------------------------------------------
static void view_reset(View *v, uint64_t cta, int nwarps, uint32_t base) {
  for (int i = 0; i < V_CLOCKS; i++) {
    clock_reset(&v->c[i], cta, nwarps, base);
    v->self[i] = 0;
  }
}

static void view_free(View *v) {
  for (int i = 0; i < V_CLOCKS; i++)
    clock_free(&v->c[i]);
}

static void view_copy(View *to, const View *from) {
  for (int i = 0; i < V_CLOCKS; i++)
    clock_copy(&to->c[i], &from->c[i]);
  memcpy(to->self, from->self, sizeof to->self);
}

static void view_join(View *to, const View *from) {
  for (int i = 0; i < V_CLOCKS; i++)
    clock_join(&to->c[i], &from->c[i]);
}

View *race_view(const RaceWarp *rw, uint32_t lane) {
  return rw->split >> lane & 1 ? rw->lane[lane] : (View *)&rw->all;
}

// After a change of what lanes know.
static void race_refresh(RaceWarp *rw) {
  uint32_t least = rw->all.c[V_NOW].floor; // no lane knows less than the warp's view
  rw->floor = (int32_t)(least << RACE_LANE_BITS | 31);
}

static RaceWarp *warp_of(const Warp *w) { return &w->cta->race->warp[w->index]; }
static uint64_t who(const Warp *w) { return who_of(w->cta->index, w->index); }

// Lanes that ended or never were come along with the others of their warp.
static bool is_whole(const Warp *w, uint32_t lanes) { return (lanes | w->gone) == SIM_FULL; }

// A view that belongs to `lane` alone.
static View *own_view(const Warp *w, uint32_t lane) {
  RaceWarp *rw = warp_of(w);
  if (rw->split >> lane & 1)
    return rw->lane[lane];
  if (!rw->lane[lane] && !(rw->lane[lane] = calloc(1, sizeof(View))))
    abort();
  view_copy(rw->lane[lane], &rw->all);
  rw->split |= 1u << lane;
  return rw->lane[lane];
}

bool race_knows(const RaceWarp *rw, uint32_t lanes, ViewClock which, uint64_t who, uint32_t by,
                uint32_t event) {
  if (lanes & ~rw->split && !clock_knows(&rw->all.c[which], who, by, event))
    return false;
  SIM_LANES(i, lanes & rw->split)
    if (!clock_knows(&rw->lane[i]->c[which], who, by, event))
      return false;
  return true;
}

// ---- CTAs ---------------------------------------------------------------------------------------
RaceCta *race_cta_new(Cta *c) {
  RaceCta *rc = calloc(1, sizeof *rc);
  if (!rc || !(rc->warp = calloc((size_t)c->nwarps, sizeof *rc->warp)))
    abort();
  rc->race = c->grid->dev->race;
  rc->nwarps = c->nwarps;
  for (int i = 0; i < c->nwarps; i++)
    if (!(rc->warp[i].last = calloc((size_t)c->grid->prog->nops, sizeof(uint32_t))))
      abort();
  return rc;
}

void race_cta_start(Cta *c) {
  RaceCta *rc = c->race;
  uint32_t base = rc->race->base, now = rc->race->now;
  rc->start = (int32_t)(now << RACE_LANE_BITS | 31);
  rc->alone = c->cluster->n == 1;
  if (!rc->alone)
    race_cells_clear(&rc->shared);
  for (int i = 0; i < rc->nwarps; i++) {
    RaceWarp *rw = &rc->warp[i];
    view_reset(&rw->all, c->index, rc->nwarps, base);
    // Nothing of this CTA is older than its start.
    for (int k = 0; k < rc->nwarps; k++)
      clock_add(&rw->all.c[V_NOW], who_of(c->index, k), SIM_FULL, now);
    rw->split = 0;
    rw->epoch = now;
    rw->seen = rw->proxied = (SeenEvents){{0}};
    race_refresh(rw);
  }
  for (int i = 0; i < SIM_BARRIERS; i++)
    view_reset(&rc->bar[i], c->index, rc->nwarps, base);
  for (int i = 0; i < 2; i++)
    view_reset(&rc->meeting[i], c->index, rc->nwarps, base);
  memset(rc->met, 0, sizeof rc->met);
  memset(rc->come, 0, sizeof rc->come);
}

void race_cta_free(RaceCta *rc) {
  if (!rc)
    return;
  for (int i = 0; i < rc->nwarps; i++) {
    RaceWarp *rw = &rc->warp[i];
    view_free(&rw->all);
    for (int k = 0; k < 32; k++)
      if (rw->lane[k]) {
        view_free(rw->lane[k]);
        free(rw->lane[k]);
      }
    free(rw->last);
  }
  for (int i = 0; i < SIM_BARRIERS; i++)
    view_free(&rc->bar[i]);
  for (int i = 0; i < 2; i++)
    view_free(&rc->meeting[i]);
  race_cells_free(&rc->shared);
  free(rc->warp);
  free(rc);
}

// ---- release and acquire ------------------------------------------------------------------------
// Adds what lanes know to `to`: their views, and what is their own.
static void release(Warp *w, uint32_t lanes, View *to) {
  RaceWarp *rw = warp_of(w);
  uint32_t named = is_whole(w, lanes) ? SIM_FULL : lanes;
  if (lanes & ~rw->split) {
    view_join(to, &rw->all);
    for (int i = 0; i < V_CLOCKS; i++)
      if (rw->all.self[i])
        clock_add(&to->c[i], who(w), rw->split ? lanes & ~rw->split : named, rw->all.self[i]);
  }
  SIM_LANES(k, lanes & rw->split) {
    view_join(to, rw->lane[k]);
    for (int i = 0; i < V_CLOCKS; i++)
      if (rw->lane[k]->self[i])
        clock_add(&to->c[i], who(w), 1u << k, rw->lane[k]->self[i]);
  }
  clock_add(&to->c[V_NOW], who(w), named, w->cta->race->race->now);
  rw->epoch = w->cta->race->race->now;
}

// What single lanes know of themselves alone, for the view of all.
static void keep_self(const Warp *w, RaceWarp *rw, uint32_t lane) {
  for (int i = 0; i < V_CLOCKS; i++)
    if (rw->lane[lane]->self[i] > rw->all.self[i])
      clock_add(&rw->all.c[i], who(w), 1u << lane, rw->lane[lane]->self[i]);
}

static bool async_within(const View *v, const View *of) {
  for (int i = 0; i < V_CLOCKS; i++)
    if (!clock_async_within(&v->c[i], &of->c[i]))
      return false;
  return true;
}

// `from` holds what these lanes knew themselves when they released it: they all know the same now,
// but for a copy of a lane's own that has ended since, while it waited at a barrier.
static void unite(Warp *w, uint32_t lanes, const View *from) {
  RaceWarp *rw = warp_of(w);
  if (is_whole(w, lanes)) {
    uint32_t more = 0;
    view_join(&rw->all, from);
    SIM_LANES(k, rw->split & lanes) keep_self(w, rw, k);
    SIM_LANES(k, rw->split & lanes) {
      if (async_within(rw->lane[k], &rw->all)) continue;
      view_join(rw->lane[k], &rw->all);
      more |= 1u << k;
    }
    rw->split = more;
  } else {
    SIM_LANES(k, lanes) view_join(own_view(w, k), from);
  }
  race_refresh(rw);
}

static void acquire(Warp *w, uint32_t lanes, const View *from) {
  RaceWarp *rw = warp_of(w);
  uint32_t shared = w->lanes & ~w->gone & ~rw->split;
  if (shared && !(shared & ~lanes)) { // all that use the warp's view
    view_join(&rw->all, from);
    lanes &= rw->split;
  }
  SIM_LANES(k, lanes) view_join(own_view(w, k), from);
  race_refresh(rw);
}

// ---- barriers -----------------------------------------------------------------------------------
// An arrival must come after all those of the generation before, or it may be counted with them.
static void check_reuse(const Warp *w, const Op *op, int id) {
  RaceCta *rc = w->cta->race;
  for (int i = 0; i < rc->nwarps; i++) {
    uint32_t e = rc->met[id][i];
    const Event *other = e ? race_event_of(rc->race, (int32_t)(e << RACE_LANE_BITS)) : NULL;
    if (!other || i == w->index ||
        race_knows(warp_of(w), w->active, V_NOW, other->who, SIM_FULL, e))
      continue;
    Finding f = {.kind = FIND_REUSE, .op = op, .other = other->op, .cta = w->cta->index,
                 .other_cta = w->cta->index, .other_thread = (uint32_t)i * 32,
                 .thread = (uint32_t)w->index * 32 + (uint32_t)sim_first(w->active)};
    snprintf(f.what, sizeof f.what,
             "barrier %d: arrived at again while its last generation may not be complete", id);
    race_found(rc->race, &f);
  }
}

void sim_order_arrive(Warp *w, const Op *op, int id) {
  RaceCta *rc = w->cta->race;
  if (!rc || rc->race->full)
    return;
  check_reuse(w, op, id);
  rc->come[id][w->index] = race_event(w, op, 0);
  release(w, w->active, &rc->bar[id]);
}

// Warps that have ended count as arrived.
void sim_order_complete(Cta *c, int id) {
  if (!c->race)
    return;
  for (int i = 0; i < c->nwarps; i++)
    if (c->warps[i].gone == SIM_FULL)
      clock_add(&c->race->bar[id].c[V_NOW], who_of(c->index, i), SIM_FULL, c->race->race->now);
}

void sim_order_go_on(Warp *w, uint32_t lanes, int id) {
  if (w->cta->race)
    unite(w, lanes, &w->cta->race->bar[id]);
}

void sim_order_reset(Cta *c, int id) {
  if (!c->race)
    return;
  view_reset(&c->race->bar[id], c->index, c->nwarps, c->race->race->base);
  memcpy(c->race->met[id], c->race->come[id], sizeof c->race->met[id]);
  memset(c->race->come[id], 0, sizeof c->race->come[id]);
}

void sim_order_lanes(Warp *w, uint32_t lanes) {
  if (!w->cta->race)
    return;
  static const View none;
  View v = none;
  view_reset(&v, w->cta->index, w->cta->nwarps, w->cta->race->race->base);
  release(w, lanes, &v);
  unite(w, lanes, &v);
  view_free(&v);
}

// ---- fences -------------------------------------------------------------------------------------
// One direction is enough for what it is used for, and orders both here.
static bool is_async_fence(const PtxInst *in) {
  for (int i = 0; i < in->nmods; i++)
    if (strstr(ptx_mod_text(in->mods[i]), "async"))
      return true;
  return false;
}

static void fence_view(View *v, bool wide, uint32_t now) {
  clock_join(&v->c[V_NOW], &v->c[V_PENDING]);
  clock_join(&v->c[V_FENCED], &v->c[V_NOW]);
  v->self[V_FENCED] = now;
  if (!wide)
    return;
  clock_join(&v->c[V_NOW], &v->c[V_PENDING_WIDE]);
  clock_join(&v->c[V_FENCED_WIDE], &v->c[V_NOW]);
  v->self[V_FENCED_WIDE] = now;
}

static void proxy_view(View *v, uint32_t now) {
  v->self[V_PROXIED] = v->self[V_INITED] = now;
  clock_join(&v->c[V_READER], &v->c[V_NOW]);
}

void sim_order_fence(Warp *w, const Op *op) {
  if (!w->cta->race)
    return;
  RaceWarp *rw = warp_of(w);
  Race *r = w->cta->race->race;
  bool proxy = is_async_fence(op->in), wide = race_is_wide(r, race_strength(r, op));
  bool inits = ptx_inst_has(op->in, "mbarrier_init");
  if (!proxy && ptx_inst_has(op->in, "proxy"))
    return;
  bool whole = is_whole(w, w->active) && !rw->split;
  SIM_LANES(k, whole ? 1u << sim_first(w->active) : w->active) {
    View *v = whole ? &rw->all : own_view(w, k);
    if (proxy)
      proxy_view(v, r->now);
    else
      fence_view(v, wide, r->now);
    if (inits)
      v->self[V_INITED] = r->now;
  }
  rw->epoch = r->now;
  race_refresh(rw);
}

// All that the launch before did, to the lanes that waited for it and those they tell.
void sim_order_launch(Warp *w) {
  Race *r = w->cta->race ? w->cta->race->race : NULL;
  if (!r || !r->before.prog)
    return;
  bool whole = is_whole(w, w->active) && !warp_of(w)->split;
  SIM_LANES(k, whole ? 1u << sim_first(w->active) : w->active) {
    View *v = whole ? &warp_of(w)->all : own_view(w, k);
    clock_add(&v->c[V_NOW], who_of(RACE_BEFORE, WHO_ALL), SIM_FULL, r->base);
  }
  race_refresh(warp_of(w));
}

// ---- strong accesses ----------------------------------------------------------------------------
bool race_is_wide(const Race *r, uint8_t strength) {
  const uint32_t *k = r->grid->cluster;
  bool clusters = k[0] * k[1] * k[2] > 1;
  return (strength & ORDER_WIDE) || (clusters && (strength & ORDER_CLUSTER));
}

static uint8_t scope_of(const PtxInst *in) {
  if (ptx_inst_has(in, "cta"))
    return 0;
  if (ptx_inst_has(in, "cluster"))
    return ORDER_CLUSTER;
  return ORDER_CLUSTER | ORDER_WIDE; // .gl, .gpu, .sys; atom and volatile have no narrower default
}

uint8_t race_inst_strength(const PtxInst *in) {
  const char *stem = ptx_inst_form(in)->stem;
  bool fence = !strcmp(stem, "membar") || !strcmp(stem, "fence");
  bool atomic = !strcmp(stem, "atom") || !strcmp(stem, "red");
  bool acquire = ptx_inst_has(in, "acquire"), release = ptx_inst_has(in, "release");
  bool both = ptx_inst_has(in, "acq_rel");
  bool strong = atomic || acquire || release || both || ptx_inst_has(in, "relaxed") ||
                ptx_inst_has(in, "volatile");
  uint8_t out = ORDER_KNOWN;
  if (strong || fence)
    out |= (strong ? ORDER_STRONG : 0) | scope_of(in);
  if (acquire || both)
    out |= ORDER_ACQUIRE;
  if (release || both)
    out |= ORDER_RELEASE;
  return out;
}

uint8_t race_strength(Race *r, const Op *op) {
  uint8_t *at = &r->strength[op - r->grid->prog->ops];
  if (!*at)
    *at = race_inst_strength(op->in);
  return *at;
}

static SyncVar *slot(Race *r, uint64_t owner, uint64_t key) {
  uint64_t h = (key ^ owner * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
  for (int i = (int)(h >> 40) & (r->cap_vars - 1);; i = (i + 1) & (r->cap_vars - 1)) {
    SyncVar *v = &r->vars[i];
    if (!v->key || (v->key == key && v->owner == owner))
      return v;
  }
}

static void grow_vars(Race *r) {
  SyncVar *old = r->vars;
  int n = r->cap_vars;
  r->cap_vars = n ? 2 * n : 64;
  r->vars = calloc((size_t)r->cap_vars, sizeof *r->vars);
  if (!r->vars)
    abort();
  for (int i = 0; i < n; i++)
    if (old[i].key)
      *slot(r, old[i].owner, old[i].key) = old[i];
  free(old);
}

// NULL when there is none and it is not to be made.
static SyncVar *find_var(Race *r, const Cta *c, uint64_t owner, uint64_t key, bool make) {
  if (!r->cap_vars && !make)
    return NULL;
  if (make && 2 * (r->nvars + 1) > r->cap_vars)
    grow_vars(r);
  SyncVar *v = slot(r, owner, key);
  if (v->key)
    return v;
  if (!make)
    return NULL;
  r->nvars++;
  v->key = key;
  v->owner = owner;
  clock_reset(&v->narrow, c->index, c->nwarps, r->base);
  clock_reset(&v->wide, c->index, c->nwarps, r->base);
  view_reset(&v->phase, c->index, c->nwarps, r->base);
  view_reset(&v->pending, c->index, c->nwarps, r->base);
  return v;
}

void race_vars_free(Race *r) {
  for (int i = 0; i < r->cap_vars; i++) {
    clock_free(&r->vars[i].narrow);
    clock_free(&r->vars[i].wide);
    view_free(&r->vars[i].phase);
    view_free(&r->vars[i].pending);
  }
  free(r->vars);
  r->vars = NULL;
  r->nvars = r->cap_vars = 0;
}

static void take(Warp *w, uint32_t lane, const SyncVar *v, uint8_t strength, bool wide) {
  View *to = own_view(w, lane);
  bool now = strength & ORDER_ACQUIRE;
  if (v->narrow.cta == w->cta->index)
    clock_join(&to->c[now ? V_NOW : V_PENDING], &v->narrow);
  if (wide)
    clock_join(&to->c[now ? V_NOW : V_PENDING_WIDE], &v->wide);
}

static void pass(Warp *w, uint32_t lane, Clock *to, ViewClock which, uint8_t strength) {
  const View *v = race_view(warp_of(w), lane);
  uint32_t now = w->cta->race->race->now, bit = 1u << lane;
  if (strength & ORDER_RELEASE) {
    clock_join(to, &v->c[V_NOW]);
    clock_add(to, who(w), bit, now);
    return;
  }
  clock_join(to, &v->c[which]);
  if (v->self[which])
    clock_add(to, who(w), bit, v->self[which]);
  clock_add(to, who(w) | WHO_EXACT, bit, now); // the strong write itself
}

static void give(Warp *w, uint32_t lane, SyncVar *v, uint8_t strength, bool wide) {
  const Cta *c = w->cta;
  if (v->narrow.cta != c->index)
    clock_reset(&v->narrow, c->index, c->nwarps, c->race->race->base);
  pass(w, lane, &v->narrow, V_FENCED, strength);
  if (wide)
    pass(w, lane, &v->wide, V_FENCED_WIDE, strength);
}

static bool releases(const Warp *w, uint32_t lane, uint8_t strength) {
  return (strength & ORDER_RELEASE) || race_view(warp_of(w), lane)->c[V_FENCED].used ||
         race_view(warp_of(w), lane)->self[V_FENCED];
}

static void one_lane(Warp *w, const Op *op, uint32_t lane, uint64_t address, AccessKind kind) {
  Race *r = w->cta->race->race;
  uint8_t strength = race_strength(r, op);
  bool wide = race_is_wide(r, strength);
  bool shared = op->space == PTX_S_SHARED || op->space == PTX_S_CLUSTER ||
                (address & ~SIM_OFFSET_MASK) == SIM_WINDOW_SHARED;
  uint64_t offset = address & ((UINT64_C(1) << SIM_RANK_SHIFT) - 1);
  uint64_t key = shared ? offset | SIM_WINDOW_SHARED : address;
  uint64_t owner = shared ? race_owner(w->cta, address)->index + 1 : 0;
  bool gives = (kind & ACCESS_WRITE) && releases(w, lane, strength);
  SyncVar *v = find_var(r, w->cta, owner, key, gives);
  if (!v)
    return;
  if (kind == ACCESS_WRITE) { // who reads it reads nothing of the writes before it (ISA 8.8)
    clock_reset(&v->narrow, w->cta->index, w->cta->nwarps, r->base);
    clock_reset(&v->wide, w->cta->index, w->cta->nwarps, r->base);
  }
  if (kind & ACCESS_READ)
    take(w, lane, v, strength, wide);
  if (gives)
    give(w, lane, v, strength, wide);
}

void sim_order_strong(Warp *w, const Op *op, const uint64_t a[32], AccessKind kind) {
  if (!w->cta->race || !(race_strength(w->cta->race->race, op) & ORDER_STRONG))
    return;
  SIM_LANES(i, w->active) one_lane(w, op, i, a[i], kind);
  RaceWarp *rw = warp_of(w);
  rw->epoch = w->cta->race->race->now;
  race_refresh(rw);
}

// ---- barrier.cluster ----------------------------------------------------------------------------
// A .relaxed arrival hands on what lies before a fence.
void sim_order_cluster_arrive(Warp *w, const Op *op) {
  if (!w->cta->race)
    return;
  View *to = &w->cta->cluster->ctas[0]->race->meeting[0];
  if (!ptx_inst_has(op->in, "relaxed"))
    release(w, w->active, to);
  else
    SIM_LANES(i, w->active) pass(w, i, &to->c[V_NOW], V_FENCED_WIDE, 0);
  warp_of(w)->epoch = w->cta->race->race->now;
}

void sim_order_cluster_phase(Cluster *k) {
  Cta *c = k->ctas[0];
  if (!c->race)
    return;
  View done = c->race->meeting[0];
  c->race->meeting[0] = c->race->meeting[1];
  c->race->meeting[1] = done;
  view_reset(&c->race->meeting[0], c->index, c->nwarps, c->race->race->base);
}

void sim_order_cluster_wait(Warp *w) {
  if (w->cta->race)
    acquire(w, w->active, &w->cta->cluster->ctas[0]->race->meeting[1]);
}

// ---- mbarriers ----------------------------------------------------------------------------------
void sim_order_signal(Warp *w, uint32_t lanes, uint64_t owner, uint64_t key) {
  if (w->cta->race)
    release(w, lanes, &find_var(w->cta->race->race, w->cta, owner + 1, key | SIM_WINDOW_SHARED,
                                true)->pending);
}

void sim_order_phase(Cta *c, uint64_t owner, uint64_t key) {
  if (!c->race)
    return;
  SyncVar *v = find_var(c->race->race, c, owner + 1, key | SIM_WINDOW_SHARED, true);
  View done = v->pending;
  v->pending = v->phase;
  v->phase = done;
  view_reset(&v->pending, c->index, c->nwarps, c->race->race->base);
}

void sim_order_wait(Warp *w, uint32_t lanes, uint64_t owner, uint64_t key) {
  if (!w->cta->race)
    return;
  SyncVar *v = find_var(w->cta->race->race, w->cta, owner + 1, key | SIM_WINDOW_SHARED, false);
  if (v)
    acquire(w, lanes, &v->phase);
}

void sim_race_async_signal(Cta *c, uint64_t owner, uint64_t key, uint32_t event) {
  if (!c->race || !event)
    return;
  SyncVar *v = find_var(c->race->race, c, owner + 1, key | SIM_WINDOW_SHARED, true);
  const Event *e = race_event_of(c->race->race, (int32_t)(event << RACE_LANE_BITS));
  if (e)
    clock_add_async(&v->pending.c[V_NOW], e->number);
}

void sim_race_async_end(Cta *c, int warp, uint32_t lanes, uint32_t event) {
  if (!c->race || !event)
    return;
  const Event *e = race_event_of(c->race->race, (int32_t)(event << RACE_LANE_BITS));
  if (!e)
    return;
  const Warp *w = &c->warps[warp];
  RaceWarp *rw = warp_of(w);
  uint32_t shared = w->lanes & ~w->gone & ~rw->split;
  if (shared && !(shared & ~lanes)) { // all that use the warp's view
    clock_add_async(&rw->all.c[V_NOW], e->number);
    lanes &= rw->split;
  }
  SIM_LANES(k, lanes)
    clock_add_async(&own_view(w, k)->c[V_NOW], e->number);
}
