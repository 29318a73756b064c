// sim_race.c: every access against the shadow: who touched these bytes before, and does this thread
// know of it?  After FastTrack (Flanagan, Freund, PLDI 2009) with events in the place of epochs.
//
// What most accesses meet lies in front of a barrier, and is settled by comparing cells with two
// numbers, four cells at a time.  The rest is looked at cell by cell.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim_ops.h"
#include "sim_bulk.h"
#include "sim_race.h"

// ---- the device's state -------------------------------------------------------------------------
Race *race_new(SimDevice *dev) {
  Race *r = calloc(1, sizeof *r);
  if (r)
    r->dev = dev;
  return r;
}

void race_free(Race *r) {
  if (!r)
    return;
  race_vars_free(r);
  free(r->events), free(r->strength);
  free(r);
}

void race_cells_clear(RaceCells *c) {
  if (!c->write)
    return;
  memset(c->write, 0, (1 + RACE_READERS) * c->n * sizeof *c->write);
  if (c->strong)
    memset(c->strong, 0, c->n * sizeof *c->strong);
}

void race_settle(Race *r) {
  if (r)
    r->last.prog = NULL;
}

// The events of the launch before stay, if this one may run beside it.
static void keep_before(Race *r, const Grid *g) {
  bool overlaps = g->launch.dependent && r->last.prog;
  uint32_t n = r->now - r->base;
  if (overlaps && n)
    memmove(r->events, r->events + (r->base - r->older), n * sizeof *r->events);
  r->older = overlaps ? r->base : r->now;
  r->before = overlaps ? r->last : (LaunchBefore){0};
  r->last = (LaunchBefore){.prog = g->prog};
  memcpy(r->last.grid, g->launch.grid, sizeof r->last.grid);
  memcpy(r->last.block, g->launch.block, sizeof r->last.block);
}

void race_begin(Race *r, Grid *g) {
  if (r->now > RACE_MAX_EVENTS / 2) { // start again: all that was is forgotten
    for (uint32_t i = 1; i < r->dev->nbuffers; i++)
      if (r->dev->buffers[i] && r->dev->buffers[i]->cells)
        race_cells_clear(r->dev->buffers[i]->cells);
    r->now = r->base = r->older = 0;
    race_settle(r);
  }
  keep_before(r, g);
  r->grid = g;
  r->base = r->now;
  r->nasync = 0;
  r->full = false;
  r->nfound = r->more = 0;
  race_vars_free(r);
  free(r->strength);
  r->strength = calloc((size_t)g->prog->nops + 1, 1);
  if (!r->strength)
    abort();
}

// ---- events -------------------------------------------------------------------------------------
uint32_t race_new_event(Race *r, uint64_t who, const Op *op, uint32_t lanes) {
  if (r->now == RACE_MAX_EVENTS - 1) {
    r->full = true;
    return 0;
  }
  uint32_t at = r->now++ - r->older;
  if (at >= r->cap) {
    r->cap = r->cap ? 2 * r->cap : 4096;
    r->events = realloc(r->events, r->cap * sizeof *r->events);
    if (!r->events)
      abort();
  }
  bool async = (who & 63) == WHO_ASYNC;
  r->events[at] = (Event){who, op, lanes, async ? r->nasync++ : 0};
  return r->now;
}

const Event *race_event_of(const Race *r, int32_t cell) {
  uint32_t e = (uint32_t)cell >> RACE_LANE_BITS;
  return e > r->older && e <= r->now ? &r->events[e - r->older - 1] : NULL;
}

uint32_t race_event(Warp *w, const Op *op, uint32_t lanes) {
  Race *r = w->cta->race->race;
  RaceWarp *rw = &w->cta->race->warp[w->index];
  uint32_t *last = &rw->last[op - r->grid->prog->ops];
  if (*last > rw->epoch && *last <= r->now && r->events[*last - r->older - 1].lanes == lanes)
    return *last;
  return *last = race_new_event(r, who_of(w->cta->index, w->index), op, lanes);
}

// ---- cells --------------------------------------------------------------------------------------
void race_cells_free(RaceCells *c) {
  free(c->write), free(c->strong);
  *c = (RaceCells){0};
}

static bool cells_make(RaceCells *c, uint64_t bytes, int shift) {
  c->shift = shift;
  c->n = (bytes >> shift) + 64;
  c->write = calloc((1 + RACE_READERS) * c->n, sizeof *c->write);
  for (int k = 0; k < RACE_READERS && c->write; k++)
    c->read[k] = c->write + (uint64_t)(k + 1) * c->n;
  return c->write != NULL;
}

static bool make_strong(RaceCells *c) {
  if (!c->strong)
    c->strong = calloc(c->n, sizeof *c->strong);
  return c->strong != NULL;
}

// Makes cells fine enough for accesses of `bytes`; what stands in a cell stands in all its parts.
bool race_refine(RaceCells *c, uint64_t bytes) {
  int shift = bytes >= 4 ? 2 : bytes == 2 ? 1 : 0;
  if (c->shift <= shift)
    return true;
  RaceCells fine = {0};
  if (!cells_make(&fine, (c->n - 64) << c->shift, shift))
    return false;
  int each = c->shift - shift;
  if (c->strong && !make_strong(&fine)) {
    race_cells_free(&fine);
    return false;
  }
  for (uint64_t i = 0; i < (c->n - 64) << each; i++) {
    fine.write[i] = c->write[i >> each];
    if (c->strong)
      fine.strong[i] = c->strong[i >> each];
    for (int k = 0; k < RACE_READERS; k++)
      fine.read[k][i] = c->read[k][i >> each];
  }
  race_cells_free(c);
  *c = fine;
  return true;
}

RaceCells *race_buffer_cells(Buffer *b) {
  if (!b->cells) {
    b->cells = calloc(1, sizeof *b->cells);
    if (b->cells && !cells_make(b->cells, (b->mem.bytes + 3) & ~UINT64_C(3), 2)) {
      free(b->cells);
      b->cells = NULL;
    }
  }
  return b->cells;
}

RaceCells *race_shared_cells(Cta *c) {
  RaceCells *x = &c->race->shared;
  if (!x->write && !cells_make(x, (c->shared.bytes + 3) & ~UINT64_C(3), 2))
    return NULL;
  return x;
}

Cta *race_owner(Cta *c, uint64_t shared) {
  uint64_t rank = (shared & SIM_OFFSET_MASK) >> SIM_RANK_SHIFT;
  return rank && rank <= (uint64_t)c->cluster->n ? c->cluster->ctas[rank - 1] : c;
}

// False for memory that threads don't share.
static bool race_span(Cta *c, uint8_t space, uint64_t address, RaceSpan *out) {
  uint64_t window = address & ~SIM_OFFSET_MASK;
  bool generic = space == PTX_S_GENERIC;
  out->offset = address & SIM_OFFSET_MASK;
  out->shared = space == PTX_S_SHARED || space == PTX_S_CLUSTER ||
                (generic && window == SIM_WINDOW_SHARED);
  if (out->shared) {
    out->offset &= (UINT64_C(1) << SIM_RANK_SHIFT) - 1;
    out->cells = race_shared_cells(race_owner(c, address));
    return out->cells != NULL;
  }
  if (space != PTX_S_GLOBAL && !generic)
    return false;
  Buffer *b = sim_buffer(c->grid->dev, address);
  out->cells = b && !b->is_const ? race_buffer_cells(b) : NULL;
  return out->cells != NULL;
}

// ---- one access ---------------------------------------------------------------------------------
void race_set_known(Touch *t) {
  const RaceCta *rc = t->w->cta->race;
  t->floor = t->rw->floor;
  t->base = (int32_t)(t->race->older << RACE_LANE_BITS | 31);
  t->start = rc->alone ? rc->start : INT32_MAX;
  if (t->span.shared && rc->alone) // nobody before this CTA touched it
    t->base = rc->start;
}

static bool is_known(const Touch *t, int32_t cell) {
  return cell <= t->base || (cell > t->start && cell <= t->floor);
}

static inline bool is_seen(const Touch *t, int32_t cell) {
  uint32_t event = (uint32_t)cell >> RACE_LANE_BITS;
  return t->rw->seen.event[event % RACE_SEEN] == event;
}

bool race_all_know(const Touch *t, const Event *e, uint32_t event) {
  uint32_t *seen = &t->rw->seen.event[event % RACE_SEEN];
  if (*seen == event)
    return true;
  bool async = (e->who & 63) == WHO_ASYNC;
  if (!race_knows(t->rw, SIM_FULL, V_NOW, e->who, async ? e->number : SIM_FULL, event))
    return false;
  *seen = event;
  return true;
}

// Stores of one instruction may meet when they bring the same value.
static bool same_value(const Touch *t, uint32_t x, uint32_t y) {
  const Op *op = t->op;
  if (strcmp(ptx_inst_form(op->in)->stem, "st") || t->a[x] != t->a[y])
    return false;
  size_t step = op->width == 4 ? 4 : 8;
  for (int k = 0; k < op->vec; k++) {
    const uint8_t *v = t->w->regs + (op->vec > 1 ? op->more->v[k] : op->b);
    size_t n = op->bytes < step ? op->bytes : step;
    if (memcmp(v + x * step, v + y * step, n))
      return false;
    if (op->width == 16 && memcmp(v + 256 + x * 8, v + 256 + y * 8, 8))
      return false;
  }
  return true;
}

// A store of all lanes to one place, with one value.
static bool one_value(const Touch *t) {
  uint32_t first = (uint32_t)sim_first(t->w->active);
  SIM_LANES(i, t->w->active)
    if (!same_value(t, first, i))
      return false;
  return t->kind == ACCESS_WRITE && !(t->strength & ORDER_STRONG);
}

// Two strong accesses whose scopes hold both threads don't race.
static bool both_strong(const Touch *t, const Event *e) {
  uint8_t other = race_strength(t->race, e->op);
  if (!(t->strength & other & ORDER_STRONG))
    return false;
  return e->who >> 6 == t->w->cta->index ||
         (race_is_wide(t->race, t->strength) && race_is_wide(t->race, other));
}

void race_tell(const Touch *t, const Event *e, FindingKind kind, uint32_t lane, uint32_t other_lane,
               uint64_t cell, bool wrote) {
  static const char *const what[] = {[FIND_RACE] = "data race",
                                     [FIND_IN_FLIGHT] = "access to bytes in flight",
                                     [FIND_REUSE] = "barrier",
                                     [FIND_NO_PROXY_FENCE] = "missing fence.proxy.async",
                                     [FIND_LATE_PROXY_FENCE] = "late fence.proxy.async",
                                     [FIND_NO_INIT_FENCE] = "missing fence.mbarrier_init",
                                     [FIND_OVERLAP] = "data race"};
  bool async = (e->who & 63) == WHO_ASYNC;
  Finding f = {.kind = kind, .op = t->op, .other = e->op, .cta = t->w->cta->index,
               .other_cta = e->who >> 6, .thread = (uint32_t)t->w->index * 32 + lane,
               .other_thread = async ? e->lanes : (uint32_t)(e->who & 63) * 32 + other_lane};
  const char *how = t->kind == ACCESS_READ    ? "reads"
                    : t->kind == ACCESS_WRITE ? "writes"
                                              : "updates";
  const Buffer *b = t->span.shared ? NULL : sim_buffer(t->race->dev, t->a[lane]);
  snprintf(f.what, sizeof f.what, "%s: %s byte %llu of %s%s%s, which %s %s", what[kind], how,
           (unsigned long long)(cell << t->span.cells->shift), b ? "\"" : "",
           b ? b->name : "shared memory", b ? "\"" : "",
           kind == FIND_OVERLAP ? "the launch before" : async ? "an asynchronous operation"
                                                              : "another thread",
           wrote ? "wrote" : "read");
  race_found(t->race, &f);
}

// An access of the launch before, which may still run: who waited for its end knows all of it.
void race_judge_before(const Touch *t, const Event *e, uint32_t event, uint32_t lanes,
                       uint32_t other_lane, uint64_t cell, bool wrote) {
  uint8_t other = race_inst_strength(e->op->in);
  if ((t->strength & other & ORDER_STRONG) && race_is_wide(t->race, t->strength) &&
      race_is_wide(t->race, other))
    return;
  SIM_LANES(m, lanes)
    if (!race_knows(t->rw, 1u << m, V_NOW, who_of(RACE_BEFORE, 0), SIM_FULL, event)) {
      race_tell(t, e, FIND_OVERLAP, m, other_lane, cell, wrote);
      return;
    }
}

// A cell that is not known for sure, against `lanes`.
static void judge(const Touch *t, int32_t prior, uint32_t lanes, uint64_t cell, bool wrote) {
  const Event *e = race_event_of(t->race, prior);
  if (!e)
    return;
  uint32_t by = e->lanes ? e->lanes : 1u << (prior & 31), event = (uint32_t)prior >> RACE_LANE_BITS;
  if (event <= t->race->base) {
    race_judge_before(t, e, event, lanes, (uint32_t)sim_first(by), cell, wrote);
    return;
  }
  uint64_t me = who_of(t->w->cta->index, t->w->index);
  if (e->who == me && by == lanes && !(by & (by - 1)))
    return;
  if (race_all_know(t, e, (uint32_t)prior >> RACE_LANE_BITS))
    return;
  if ((e->who & 63) == WHO_ASYNC) {
    if (!(t->kind == ACCESS_ATOMIC && sim_async_reduces(e->op)) &&
        !race_knows(t->rw, lanes, V_NOW, e->who, e->number, (uint32_t)prior >> RACE_LANE_BITS))
      race_tell(t, e, FIND_IN_FLIGHT, (uint32_t)sim_first(lanes), 0, cell, wrote);
    return;
  }
  if (both_strong(t, e))
    return;
  SIM_LANES(m, lanes) {
    if (wrote && t->kind == ACCESS_READ && e->who == me && (by >> m & 1))
      continue; // it wrote that value itself
    uint32_t others = e->who == me ? by & ~(1u << m) : by;
    if (!others)
      continue;
    if (race_knows(t->rw, 1u << m, V_NOW, e->who, others, (uint32_t)prior >> RACE_LANE_BITS))
      continue;
    uint32_t x = (uint32_t)sim_first(others);
    bool together = (uint32_t)prior >> RACE_LANE_BITS == t->event && wrote &&
                    (t->w->active >> x & 1) && same_value(t, m, x);
    if (together)
      continue;
    race_tell(t, e, FIND_RACE, m, x, cell, wrote);
    return;
  }
}

// ---- cells of one access ------------------------------------------------------------------------
static inline bool is_settled(const Touch *t, int32_t cell) {
  return is_known(t, cell) || is_seen(t, cell);
}

static inline bool look(const Touch *t, uint64_t cell, uint32_t lanes) {
  const RaceCells *x = t->span.cells;
  bool written = !is_settled(t, x->write[cell]);
  bool strong = x->strong && !is_settled(t, x->strong[cell]);
  if (written)
    judge(t, x->write[cell], lanes, cell, true);
  if (strong)
    judge(t, x->strong[cell], lanes, cell, true);
  if (t->kind & ACCESS_WRITE)
    for (int k = 0; k < RACE_READERS; k++)
      if (!is_settled(t, x->read[k][cell]))
        judge(t, x->read[k][cell], lanes, cell, false);
  return !written && !strong;
}

// A read takes the place of one that happened before it; else of either in turn.
static int place_for(const Touch *t, uint64_t cell, int32_t mine) {
  const RaceCells *x = t->span.cells;
  int32_t a = x->read[0][cell], b = x->read[1][cell];
  if (a == mine || b == mine)
    return a == mine ? 0 : 1;
  if (is_known(t, a))
    return 0;
  return is_known(t, b) ? 1 : (int)((t->event ^ cell) & 1);
}

static void note(const Touch *t, uint64_t cell, int32_t mine) {
  RaceCells *x = t->span.cells;
  if ((t->kind & ACCESS_WRITE) && (t->strength & ORDER_STRONG) && make_strong(x))
    x->strong[cell] = mine;
  else if (t->kind & ACCESS_WRITE)
    x->write[cell] = mine;
  else
    x->read[place_for(t, cell, mine)][cell] = mine;
}

bool race_touch(const Touch *t, uint64_t first, uint64_t n, uint32_t lanes) {
  bool all = true;
  int32_t mine = (int32_t)(t->event << RACE_LANE_BITS | (uint32_t)sim_first(lanes));
  for (uint64_t i = first; i < first + n; i++) {
    all &= look(t, i, lanes);
    note(t, i, mine);
  }
  return all;
}

// ---- 32 lanes side by side ----------------------------------------------------------------------
typedef int32_t Four __attribute__((vector_size(16), aligned(4), may_alias));

static bool any(Four x) { return (x[0] | x[1] | x[2] | x[3]) != 0; }

static Four unknown(Four cell, Four base, Four start, Four floor) {
  return (cell > base) & ((cell <= start) | (cell > floor));
}

static bool row_unknown(const Touch *t, const int32_t *cells, uint64_t n) {
  Four base = (Four){} + t->base, start = (Four){} + t->start, floor = (Four){} + t->floor,
       bad = {};
  for (uint64_t i = 0; i < n; i += 4)
    bad |= unknown(*(const Four *)(cells + i), base, start, floor);
  return any(bad);
}

// Cells of lane 0, lane 1 ...: 1 << per of each.
static Four row_start(int32_t mine, int per) {
  static const Four steps[3] = {{0, 1, 2, 3}, {0, 0, 1, 1}, {0, 0, 0, 0}};
  return (Four){} + mine + steps[per < 2 ? per : 2];
}

// From four cells to the next four; `i`: the first.
static int32_t row_step(uint64_t i, int per) {
  return per < 2 ? 4 >> per : !((i + 4) & ((UINT64_C(1) << per) - 1));
}

static void row_fill(int32_t *cells, uint64_t n, int32_t mine, int per) {
  Four v = row_start(mine, per);
  for (uint64_t i = 0; i < n; i += 4) {
    *(Four *)(cells + i) = v;
    v += row_step(i, per);
  }
}

static bool is_mine(const int32_t *cells, uint64_t n, int32_t mine) {
  return cells[0] == mine && cells[n - 1] == mine + 31;
}

// One earlier instruction of this warp, side by side as this one: each lane meets itself.
static bool row_own(const Touch *t, const int32_t *cells, uint64_t n, int per) {
  const Event *e = race_event_of(t->race, cells[0]);
  if (!e || e->lanes || e->who != who_of(t->w->cta->index, t->w->index))
    return false;
  Four v = row_start(cells[0] & ~31, per), bad = {};
  for (uint64_t i = 0; i < n; i += 4) {
    bad |= *(const Four *)(cells + i) ^ v;
    v += row_step(i, per);
  }
  return !any(bad);
}

// What is not known for sure is of few instructions, and all of it happened before.
static bool row_before(const Touch *t, const int32_t *cells, uint64_t n) {
  uint32_t last = 0;
  for (uint64_t i = 0; i < n; i++) {
    uint32_t event = (uint32_t)cells[i] >> RACE_LANE_BITS;
    if (event == last || is_known(t, cells[i]))
      continue;
    const Event *e = race_event_of(t->race, cells[i]);
    if (!e || !race_all_know(t, e, event))
      return false;
    last = event;
  }
  return true;
}

static bool row_odd(const Touch *t, const int32_t *cells, uint64_t n, int per) {
  return row_unknown(t, cells, n) && !row_own(t, cells, n, per) && !row_before(t, cells, n);
}

static void row_look(const Touch *t, uint64_t first, uint64_t n, int per) {
  const RaceCells *x = t->span.cells;
  bool odd = row_odd(t, x->write + first, n, per);
  if (x->strong)
    odd |= row_odd(t, x->strong + first, n, per);
  if (t->kind & ACCESS_WRITE)
    for (int k = 0; k < RACE_READERS; k++)
      odd |= row_odd(t, x->read[k] + first, n, per);
  if (odd)
    for (uint64_t i = 0; i < n; i++)
      look(t, first + i, 1u << (i >> per));
}

static void row_note(const Touch *t, uint64_t first, uint64_t n, int per) {
  RaceCells *x = t->span.cells;
  int32_t mine = (int32_t)(t->event << RACE_LANE_BITS);
  if (t->kind & ACCESS_WRITE) {
    bool strong = (t->strength & ORDER_STRONG) && make_strong(x);
    row_fill(strong ? x->strong + first : x->write + first, n, mine, per);
    return;
  }
  int32_t *a = x->read[0] + first, *b = x->read[1] + first;
  if (is_mine(a, n, mine) || is_mine(b, n, mine))
    return;
  if (!row_unknown(t, a, n))
    row_fill(a, n, mine, per);
  else if (!row_unknown(t, b, n) || (t->event & 1))
    row_fill(b, n, mine, per);
  else
    row_fill(a, n, mine, per);
}

// ---- the hook -----------------------------------------------------------------------------------
// All in one memory: the same buffer, or the shared memory of one CTA.
static bool one_memory(const uint64_t a[32], uint32_t lanes, bool shared) {
  uint64_t first = a[sim_first(lanes)], other = 0;
  SIM_LANES(i, lanes) other |= a[i] ^ first;
  return !(other >> (shared ? SIM_RANK_SHIFT : SIM_ID_SHIFT));
}

// Places that lanes of one load share.  Where nothing is unknown to any lane, two readers are noted
// (there is room for no more), the others need not look.
enum { PLACES = 8 };
typedef struct Shared {
  uint64_t at[PLACES];
  int readers[PLACES], n;
  bool none; // so many lanes and no two at one place: no more are looked for
} Shared;

static int *readers_at(Shared *s, uint64_t address) {
  if (s->none)
    return NULL;
  for (int i = 0; i < s->n; i++)
    if (s->at[i] == address)
      return &s->readers[i];
  return NULL;
}

static void share(Shared *s, uint64_t address) {
  if (s->n == PLACES) {
    s->none = true;
    for (int i = 0; i < PLACES; i++)
      s->none &= s->readers[i] == 1;
    return;
  }
  s->at[s->n] = address;
  s->readers[s->n++] = 1;
}

static void lanes_apart(Touch *t, uint64_t size) {
  uint32_t lanes = t->w->active, first = (uint32_t)sim_first(lanes);
  bool there = race_span(t->w->cta, t->op->space, t->a[first], &t->span) &&
               race_refine(t->span.cells, size);
  bool same = there && one_memory(t->a, lanes, t->span.shared);
  if (there)
    race_set_known(t);
  uint64_t offset = t->span.offset;
  Shared shared; // its places are set as they come
  shared.n = 0;
  shared.none = t->kind != ACCESS_READ;
  SIM_LANES(i, lanes) {
    int *readers = readers_at(&shared, t->a[i]);
    if (readers && ++*readers > RACE_READERS)
      continue;
    if (same)
      t->span.offset = offset + t->a[i] - t->a[first];
    else if (!race_span(t->w->cta, t->op->space, t->a[i], &t->span) ||
             !race_refine(t->span.cells, size))
      continue;
    else
      race_set_known(t);
    int shift = t->span.cells->shift;
    uint64_t cells = (size + (UINT64_C(1) << shift) - 1) >> shift;
    if (race_touch(t, t->span.offset >> shift, cells, 1u << i) && !readers && !shared.none)
      share(&shared, t->a[i]);
  }
}

void sim_race_access(Warp *w, const Op *op, const uint64_t a[32], AccessKind kind,
                     const Access *s) {
  Race *r = w->cta->race->race;
  if (r->full || op->space == PTX_S_LOCAL || op->space == PTX_S_PARAM || op->space == PTX_S_CONST)
    return;
  uint64_t size = (uint64_t)op->bytes * op->vec;
  uint32_t first = (uint32_t)sim_first(w->active);
  Touch t = {.w = w, .op = op, .race = r, .rw = &w->cta->race->warp[w->index], .kind = kind,
             .strength = race_strength(r, op), .a = a};
  bool together = s->strided && s->stride == 0 && (kind == ACCESS_READ || one_value(&t));
  t.event = race_event(w, op, together && (w->active & (w->active - 1)) ? w->active : 0);
  if (!t.event)
    return;
  bool row = s->strided && s->stride == (int64_t)size && w->active == SIM_FULL;
  if (!row && !together) {
    lanes_apart(&t, size);
  } else if (race_span(w->cta, op->space, a[first], &t.span) && race_refine(t.span.cells, size)) {
    int shift = t.span.cells->shift, per = __builtin_ctzll(size) - shift;
    race_set_known(&t);
    if (together) {
      race_touch(&t, t.span.offset >> shift, size >> shift, w->active);
    } else {
      row_look(&t, t.span.offset >> shift, UINT64_C(32) << per, per);
      row_note(&t, t.span.offset >> shift, UINT64_C(32) << per, per);
    }
  }
  if (t.strength & ORDER_STRONG)
    sim_order_strong(w, op, a, kind);
}
