// sim_async.c: what operations in flight touch; what happens when nobody can move; the end.
#include <stdlib.h>

#include "sim_bulk.h"
#include "sim_race.h"
#include "sim_run.h"
#include "sim_wgmma.h"

// ---- the state of a CTA -------------------------------------------------------------------------
bool sim_async_new(Cta *c) {
  Async *s = calloc(1, sizeof *s);
  if (!s)
    return false;
  const uint32_t *b = c->grid->launch.block;
  s->arena = arena_new();
  s->copies = arena_array(s->arena, CopyQueue, c->nwarps);
  s->bulk_groups = arena_array(s->arena, uint64_t, b[0] * b[1] * b[2]);
  c->async = s;
  return true;
}

void sim_async_free(Cta *c) {
  if (!c->async)
    return;
  sim_bulk_drop(c);
  arena_free(c->async->arena);
  free(c->async);
}

void sim_async_start(Cta *c) {
  Async *s = c->async;
  const uint32_t *b = c->grid->launch.block;
  sim_bulk_drop(c); // of a CTA that trapped
  s->nheld = s->nbars = s->fruitless = 0;
  s->global = 0;
  s->seq = s->seen = c->events = 0;
  memset(s->bulk_groups, 0, sizeof *s->bulk_groups * b[0] * b[1] * b[2]);
  for (int i = 0; i < c->nwarps; i++) {
    s->copies[i].n = 0;
    memset(s->copies[i].committed, 0, sizeof s->copies[i].committed);
  }
}

// ---- clusters -----------------------------------------------------------------------------------
Cta *sim_cluster_cta(Cta *c, uint32_t rank) {
  return rank < (uint32_t)c->cluster->n ? c->cluster->ctas[rank] : NULL;
}

const Op *sim_shared_check(Warp *w, const Op *op, uint32_t lane, uint8_t space, uint64_t address,
                           uint64_t bytes, uint64_t align, const char *what, Cta **owner,
                           uint64_t *at) {
  if (space == PTX_S_GENERIC && (address & ~SIM_OFFSET_MASK) != SIM_WINDOW_SHARED)
    return sim_trap_at(w, op, lane, "%s: 0x%llx is no address in shared memory", what,
                       (unsigned long long)address);
  address = space == PTX_S_GENERIC ? address & SIM_OFFSET_MASK : address;
  uint8_t reach = space == PTX_S_SHARED ? PTX_S_SHARED : PTX_S_CLUSTER;
  Memory m = w->cta->shared;
  const char *why = address >> SIM_RANK_SHIFT ? sim_remote(w, reach, address, &m) : NULL;
  if (why)
    return sim_trap_at(w, op, lane, "%s is in the shared memory of block rank %u: %s", what,
                       (uint32_t)(address >> SIM_RANK_SHIFT) - 1, why);
  *owner = m.watched;
  *at = address - m.base;
  if (*at > m.bytes || bytes > m.bytes - *at)
    return sim_trap_at(w, op, lane, "out of bounds: %s is %llu bytes at offset %llu of shared "
                       "memory (%llu bytes)", what, (unsigned long long)bytes,
                       (unsigned long long)*at, (unsigned long long)m.bytes);
  if (*at & (align - 1))
    return sim_trap_at(w, op, lane,
                       "misaligned: %s is at offset %llu of shared memory, which is no "
                       "multiple of %llu",
                       what, (unsigned long long)*at, (unsigned long long)align);
  return NULL;
}

// ---- marks --------------------------------------------------------------------------------------
typedef struct Holder { const Op *op; const Cta *cta; uint32_t thread; } Holder; // op NULL: nobody

// Who touches that byte of shared memory.
static Holder holder_of(Cta *owner, uint64_t at) {
  const Async *s = owner->async;
  for (int i = 0; i < s->nheld; i++)
    if (at - s->held[i].at < s->held[i].bytes)
      return (Holder){s->held[i].op, s->held[i].cta, s->held[i].thread};
  Holder h = {.cta = owner};
  h.op = sim_copies_holder(owner, at, &h.thread);
  return h;
}

// Atomics meet nothing there but reductions in flight, which are atomic as well.
static bool only_reductions(Cta *owner, AccessKind kind, uint64_t at) {
  const Async *s = owner->async;
  bool any = false;
  for (int i = 0; kind == ACCESS_ATOMIC && i < s->nheld; i++) {
    const AsyncAccess *h = &s->held[i];
    if (at - h->at >= h->bytes)
      continue;
    if (h->kind != ACCESS_ATOMIC)
      return false;
    any = true;
  }
  return any;
}

static const char *verb(AccessKind kind) {
  return kind == ACCESS_READ ? "reads" : kind == ACCESS_WRITE ? "writes" : "updates";
}

static void note_issue(Cta *c, const Cta *issuer, const Op *op, uint32_t thread) {
  uint32_t t[3];
  sim_thread_of(issuer, thread, t);
  sim_trap_note(c, op, op, "the other party: it was issued here by thread (%u,%u,%u), and nothing "
                "that makes it complete has been waited for", t[0], t[1], t[2]);
}

static const Op *trap_held(Warp *w, const Op *op, uint32_t lane, Cta *owner, AccessKind kind,
                           uint64_t at, uint64_t bytes, bool filling) {
  Holder h = holder_of(owner, at);
  sim_trap_at(w, op, lane, "in flight: %s %llu bytes of shared memory, of which byte %llu %s",
              verb(kind), (unsigned long long)bytes, (unsigned long long)at,
              filling ? "is not written yet by an operation in flight"
                      : "is still read by an operation in flight");
  if (h.op)
    note_issue(w->cta, h.cta, h.op, h.thread);
  return op;
}

const Op *sim_async_trap(Warp *w, const Op *op, uint32_t lane, Cta *owner, AccessKind kind,
                         uint64_t at, uint64_t bytes) {
  const uint8_t *shadow = owner->shared.shadow;
  for (uint64_t i = at; i < at + bytes; i++) {
    uint8_t s = shadow[i];
    if (s & SHADOW_MBARRIER) {
      const Mbarrier *b = sim_mbar_find(owner, i & ~UINT64_C(7));
      const Op *stop = sim_trap_at(w, op, lane, "the mbarrier at offset %llu of shared memory is "
                                   "used as data", (unsigned long long)(i & ~UINT64_C(7)));
      if (b)
        sim_trap_note(w->cta, op, b->init, "it was initialised here; mbarrier.inval ends its life");
      return stop;
    }
    if (s & SHADOW_FILLING)
      return trap_held(w, op, lane, owner, kind, i, bytes, true);
    if (s >= SHADOW_READER && (kind & ACCESS_WRITE) && !only_reductions(owner, kind, i))
      return trap_held(w, op, lane, owner, kind, i, bytes, false);
  }
  return NULL;
}

static void race_begins(Warp *w, uint32_t lane, const AsyncAccess *a) {
  AsyncTouch t = {a->owner, a->at, a->bytes, a->kind, a->proxy == PROXY_REMOTE};
  if (a->proxy != PROXY_GENERIC)
    sim_race_async_begin(w, a->op, lane, a->event, &t);
  else
    sim_race_copy(w, a->op, lane, &t, false);
}

static void race_ends(const AsyncAccess *a) {
  AsyncTouch t = {.owner = a->owner, .at = a->at, .bytes = a->bytes, .kind = a->kind};
  int warp = (int)(a->thread / 32);
  if (a->proxy != PROXY_GENERIC)
    sim_race_async_end(a->cta, warp, 1u << a->thread % 32, a->event);
  else
    sim_race_copy(&a->cta->warps[warp], a->op, a->thread % 32, &t, true);
}

const Op *sim_async_begin(Warp *w, uint32_t lane, const AsyncAccess *a) {
  if (!a->owner) {
    race_begins(w, lane, a);
    return NULL;
  }
  const Op *stop = sim_async_trap(w, a->op, lane, a->owner, a->kind, a->at, a->bytes);
  if (stop)
    return stop;
  if (a->kind != ACCESS_READ && a->owner->wgmma)
    stop = sim_wgmma_reads(w, a->op, lane, a->owner, a->at, a->bytes);
  if (stop)
    return stop;
  uint8_t *shadow = a->owner->shared.shadow + a->at;
  for (uint64_t i = 0; i < a->bytes; i++) {
    if (a->kind == ACCESS_WRITE)
      shadow[i] |= SHADOW_FILLING;
    else if (!(shadow[i] & SHADOW_WRITTEN))
      return sim_trap_at(w, a->op, lane,
                         "uninitialised read: byte %llu of shared memory was never written",
                         (unsigned long long)(a->at + i));
    else if (shadow[i] < 15 * SHADOW_READER)
      shadow[i] += SHADOW_READER;
  }
  Async *s = a->owner->async;
  if (a->proxy != PROXY_GENERIC) // cp.async is found in its queue
    *arena_push(s->arena, s->held, s->nheld, s->cap_held) = *a;
  race_begins(w, lane, a);
  return NULL;
}

static void forget(Async *s, const AsyncAccess *a) {
  for (int i = 0; i < s->nheld; i++) {
    const AsyncAccess *h = &s->held[i];
    if (h->op == a->op && h->at == a->at && h->thread == a->thread && h->cta == a->cta) {
      s->held[i] = s->held[--s->nheld];
      return;
    }
  }
}

void sim_async_end(const AsyncAccess *a) {
  race_ends(a);
  if (!a->owner)
    return;
  uint8_t *shadow = a->owner->shared.shadow + a->at;
  if (a->kind == ACCESS_WRITE)
    memset(shadow, SHADOW_WRITTEN, a->bytes);
  else
    for (uint64_t i = 0; i < a->bytes; i++)
      shadow[i] = shadow[i] >= SHADOW_READER ? (uint8_t)(shadow[i] - SHADOW_READER) : shadow[i];
  if (a->proxy != PROXY_GENERIC)
    forget(a->owner->async, a);
}

// ---- global memory ------------------------------------------------------------------------------
const Op *sim_async_global_range(Warp *w, const Op *op, uint32_t lane, uint64_t at, uint64_t bytes,
                                 AccessKind kind) {
  uint32_t thread = 0;
  const Op *other = sim_bulk_writer(w->cta, at, bytes, kind, &thread);
  bool writes = other != NULL;
  if (!other && kind != ACCESS_READ)
    other = sim_bulk_reader(w->cta, at, bytes, &thread);
  if (!other && kind != ACCESS_READ)
    other = sim_copies_reader(w->cta, at, bytes, &thread);
  if (!other)
    return NULL;
  sim_trap_at(
      w, op, lane, "in flight: %s %llu bytes of global memory that an operation in flight %s",
      verb(kind), (unsigned long long)bytes, writes ? "has not written yet" : "still reads");
  note_issue(w->cta, w->cta, other, thread);
  return op;
}

// Few programs touch global memory while copies are in flight: each lane is compared with each.
const Op *sim_async_global(Warp *w, const Op *op, const uint64_t a[32], AccessKind kind) {
  if (op->space != PTX_S_GLOBAL && op->space != PTX_S_GENERIC)
    return NULL;
  SIM_LANES(i, w->active) {
    uint64_t bytes = (uint64_t)op->bytes * op->vec;
    const Op *stop = sim_async_global_range(w, op, i, a[i], bytes, kind);
    if (stop)
      return stop;
  }
  return NULL;
}

// ---- when nobody can move -----------------------------------------------------------------------
// The oldest operation that will signal that mbarrier completes; false when there is none.
static bool complete_for(Cta *c, uint64_t at) {
  Cta *of = NULL, *issuer;
  uint64_t best = UINT64_MAX, seq;
  bool bulk = false;
  for (uint32_t rank = 0; (issuer = sim_cluster_cta(c, rank)); rank++) {
    if (sim_copies_signal(issuer, c, at, &seq) && seq < best)
      of = issuer, best = seq, bulk = false;
    if (sim_bulk_signal(issuer, c, at, &seq) && seq < best)
      of = issuer, best = seq, bulk = true;
  }
  if (!of)
    return false;
  if (bulk)
    sim_bulk_complete(of, best);
  else
    sim_copies_complete(of, best);
  return true;
}

// Waits may return false after a while: a thread that then does something else may free others.
// Woken again and again to no effect, they are what keeps the block from going on.
enum { FRUITLESS = 4096 };

static bool wake_all(Cta *c) {
  bool any = false;
  for (int i = 0; i < c->nwarps; i++)
    for (int k = 0; k < c->warps[i].ngroups; k++) {
      Group *g = &c->warps[i].groups[k];
      if (g->state != GROUP_MBARRIER)
        continue;
      g->state = GROUP_READY;
      g->expired = any = true;
    }
  return any;
}

static bool expire(Cluster *k) {
  uint64_t events = 0;
  for (int r = 0; r < k->n; r++)
    events += k->ctas[r]->events;
  Async *s = k->ctas[0]->async;
  s->fruitless = events == s->seen ? s->fruitless + 1 : 0;
  s->seen = events;
  bool any = false;
  for (int r = 0; s->fruitless <= FRUITLESS && r < k->n; r++)
    any |= wake_all(k->ctas[r]);
  return any;
}

static bool advance_one(Cta *c) {
  for (int i = 0; i < c->nwarps; i++)
    for (int k = 0; k < c->warps[i].ngroups; k++) {
      const Group *g = &c->warps[i].groups[k];
      if (g->state == GROUP_MBARRIER && complete_for(c, g->mbar))
        return true;
    }
  return false;
}

bool sim_async_advance(Cluster *k) {
  for (int r = 0; r < k->n; r++)
    if (advance_one(k->ctas[r]))
      return true;
  return expire(k);
}

void sim_async_random(Cta *c) {
  sim_copies_random(c);
  sim_bulk_random(c);
}

// ---- the end ------------------------------------------------------------------------------------
// Bytes that never balanced.
static void finish_mbarriers(Cta *c) {
  const Async *s = c->async;
  for (int i = 0; i < s->nbars; i++) {
    const Mbarrier *b = &s->bars[i];
    if (!b->tx)
      continue;
    const Op *at = b->expect ? b->expect : b->init;
    sim_trap_at(&c->warps[0], at, 0,
                "the block ends while the mbarrier at offset %llu has %lld bytes "
                "%s in phase %llu",
                (unsigned long long)b->at, (long long)(b->tx < 0 ? -b->tx : b->tx),
                b->tx < 0 ? "more than were expected" : "still to come",
                (unsigned long long)b->phase);
    return;
  }
}

void sim_async_finish(Cluster *k) {
  for (int r = 0; r < k->n && !sim_cluster_trap(k); r++) {
    Cta *c = k->ctas[r];
    sim_copies_finish(c);
    if (!c->trap.set)
      sim_bulk_finish(c);
  }
  for (int r = 0; r < k->n && !sim_cluster_trap(k); r++)
    finish_mbarriers(k->ctas[r]);
}
