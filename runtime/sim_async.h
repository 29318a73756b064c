// Asynchronous operations: what is in flight, what it touches, and when it completes.
//
//   sim_async.c     what operations in flight touch; when nobody can move; the end of a CTA
//   sim_cpasync.c   cp.async and its groups        sim_bulk.c     bulk copies and their groups
//   sim_mbarrier.c  mbarriers                      sim_tensor.c   tensor maps, boxes, swizzles
//
// An operation is queued by the thread that issues it.  When it completes is SimOpts.completion:
// late (a wait needs it, or nobody could move without it), at a random moment, or at issue.  Until
// then the shadow of shared memory keeps everyone else away, and traps name both places.
#ifndef PTXSMITH_SIM_ASYNC_H
#define PTXSMITH_SIM_ASYNC_H

#include "sim_mem.h"

// ---- what operations in flight touch ------------------------------------------------------------
// ISA 8: bulk copies are of the asynchronous proxy, cp.async is not; nor are st.async and
// red.async, whose bytes are a thread's that nobody knows of before the mbarrier says so.
typedef enum Proxy { PROXY_GENERIC, PROXY_ASYNC, PROXY_REMOTE } Proxy;

// One range that one operation reads or writes, from its issue to its completion.
typedef struct AsyncAccess {
  Cta *cta;         // of the thread that issued it
  uint32_t thread;  // in that CTA
  const Op *op;
  Proxy proxy;
  AccessKind kind;  // ATOMIC: a reduction
  Cta *owner;       // whose shared memory; NULL: global memory
  uint64_t at;      // offset in shared memory, or global address
  uint64_t bytes;
  uint32_t event;   // not PROXY_GENERIC: of the race detector, 0 when it is off
} AsyncAccess;

// Every asynchronous access begins and ends here, once for each range.  begin: NULL, or a trap
// about `lane` of `w` when another operation in flight, or an mbarrier, is in the way.
const Op *sim_async_begin(Warp *w, uint32_t lane, const AsyncAccess *a);
void sim_async_end(const AsyncAccess *a);
// Traps of a generic access at offset `at` of the shared memory of `owner`: the shadow said so.
const Op *sim_async_trap(Warp *w, const Op *op, uint32_t lane, Cta *owner, AccessKind kind,
                         uint64_t at, uint64_t bytes);
// The same for global memory, which has no such marks: NULL when nothing in flight is there.
const Op *sim_async_global(Warp *w, const Op *op, const uint64_t a[32], AccessKind kind);
const Op *sim_async_global_range(Warp *w, const Op *op, uint32_t lane, uint64_t at, uint64_t bytes,
                                 AccessKind kind);

// ---- clusters -----------------------------------------------------------------------------------
// The CTA of that rank in the cluster of `c`, NULL beyond its end.
Cta *sim_cluster_cta(Cta *c, uint32_t rank);
// Whose shared memory a shared::cta, shared::cluster or generic address is in, and where, with
// bounds and alignment checked; NULL when all is well, else a trap that calls it `what`.
const Op *sim_shared_check(Warp *w, const Op *op, uint32_t lane, uint8_t space, uint64_t address,
                           uint64_t bytes, uint64_t align, const char *what, Cta **owner,
                           uint64_t *at);

// ---- mbarriers ----------------------------------------------------------------------------------
enum { MBAR_MAX = (1 << 20) - 1 }; // arrivals, and bytes either way

typedef struct Mbarrier {
  uint64_t at;                  // offset in shared memory
  uint32_t expected, pending;   // arrivals of a phase; missing in this one
  int64_t tx;                   // bytes expected and not yet copied
  uint64_t phase;
  const Op *init, *expect;      // who made it; who last expected bytes
  uint64_t expected_bytes, copied_bytes; // in this phase
  uint32_t due;                 // operations in flight that will signal it
} Mbarrier;

Mbarrier *sim_mbar_find(const Cta *c, uint64_t at); // valid until the next init
// Signals of operations that complete, from the thread that issued them: false after a trap.
bool sim_mbar_complete_tx(Warp *w, const Op *op, uint32_t lane, Cta *owner, uint64_t at,
                          uint64_t bytes);
bool sim_mbar_arrive_async(Warp *w, const Op *op, uint32_t lane, Cta *owner, uint64_t at);
// One arrival more is missing in this phase.
const Op *sim_mbar_raise(Warp *w, const Op *op, uint32_t lane, Cta *owner, uint64_t at);
// An operation that will signal: NULL, or a trap when no mbarrier is there.
const Op *sim_mbar_due(Warp *w, const Op *op, uint32_t lane, Cta *owner, uint64_t at);

// ---- operands of asynchronous instructions ------------------------------------------------------
enum { SIM_MAX_RANK = 5 };
typedef struct AsyncArgs {
  Address to, from, mbar;          // from: not of cp.async, whose source is the Op's own address
  uint32_t coords[SIM_MAX_RANK];   // registers, innermost dimension first
  int rank;                        // of a tensor; 0: bytes
  uint32_t bytes, multicast;       // registers; 0: none
  uint8_t kind;                    // BulkKind
  uint8_t atom, type;              // of a reduction: AtomKind, PtxType
  uint32_t value[4];               // st.async, red.async: registers
  uint8_t nvalues, width;          // of an element in its register
} AsyncArgs;

static inline uint64_t sim_lane_address(const Warp *w, const Address *a, uint32_t lane) {
  if (a->uniform)
    return a->offset;
  return a->width == 8 ? sim_r64(w, a->at)[lane] + a->offset
                       : (uint32_t)(sim_r32(w, a->at)[lane] + (uint32_t)a->offset);
}

// ---- the queues of a CTA ------------------------------------------------------------------------
// cp.async of a warp: the lanes of one instruction that have the same number of groups behind them.
typedef struct Copies {
  const Op *op;
  uint32_t left;      // lanes whose copy is in flight
  uint64_t group;     // groups these lanes had committed
  uint64_t seq;
  uint8_t bytes;      // 4, 8, 16; 0: cp.async.mbarrier.arrive
  uint8_t size[32];   // bytes copied, the rest is zero
  uint64_t from[32];  // global
  uint64_t low, high; // all lanes read in [low, high)
  uint32_t to[32];    // shared; or the mbarrier
} Copies;

typedef struct CopyQueue { // in order of issue
  Copies *v; int n, cap;
  uint64_t committed[32];
} CopyQueue;

typedef struct Bulk Bulk; // sim_bulk.h

typedef struct Async {
  Arena *arena;
  AsyncAccess *held; int nheld, cap_held; // in flight in this CTA's shared memory, but cp.async
  Mbarrier *bars; int nbars, cap_bars;
  CopyQueue *copies;     // one a warp
  Bulk *bulk; int nbulk, cap_bulk;
  uint64_t *bulk_groups; // of each thread: committed
  uint32_t global;       // operations in flight that touch global memory
  uint64_t seq;          // of the next operation
  uint64_t seen;         // events of the cluster when it was last stuck
  int fruitless;         // times that everyone was woken for nothing
} Async;

bool sim_async_new(Cta *c);   // when the program has asynchronous operations
void sim_async_free(Cta *c);
void sim_async_start(Cta *c);
// Nobody can move: completes what someone waits for, or lets waits with a time limit return.
// False: deadlock.
bool sim_async_advance(Cluster *k);
void sim_async_random(Cta *c); // SIM_RANDOM: some of what is in flight completes
// The cluster has ended: what it leaves in flight is a trap.
void sim_async_finish(Cluster *k);

static inline SimCompletion sim_completion(const Cta *c) {
  return c->grid->dev->opts.completion;
}

// sim_cpasync.c: the parts of the above.
// The oldest in flight that will arrive at that mbarrier, by its number; and its completion.
bool sim_copies_signal(Cta *c, const Cta *owner, uint64_t at, uint64_t *seq);
void sim_copies_complete(Cta *c, uint64_t seq);
void sim_copies_random(Cta *c);
void sim_copies_finish(Cta *c);
// Who fills that byte of shared memory; who reads that global memory: NULL when nobody does.
const Op *sim_copies_holder(const Cta *c, uint64_t at, uint32_t *thread);
const Op *sim_copies_reader(const Cta *c, uint64_t at, uint64_t bytes, uint32_t *thread);

#endif
