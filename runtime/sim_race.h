// The race detector of sanitized runs: docs/sanitizer.md has the model.
//
//   sim_race.c    accesses against the shadow       sim_order.c   barriers, fences, atomics
//   sim_clock.c   what a thread knows of others     sim_async.c   the asynchronous proxy
//   sim_report.c  findings as messages              sim_schedule.c  seeds and orders
#ifndef PTXSMITH_SIM_RACE_H
#define PTXSMITH_SIM_RACE_H

#include "sim_clock.h"
#include "sim_mem.h"

// ---- events -------------------------------------------------------------------------------------
// One warp, one instruction, no release in between: accesses that no other thread can tell apart.
// An event's number is its time: it is larger than that of every event before it.
typedef struct Event {
  uint64_t who;
  const Op *op;
  uint32_t lanes; // of one access by several lanes to the same bytes; 0: the cell has the lane
  uint32_t number; // of an asynchronous operation, in the launch
} Event;

// A cell is event << 5 | lane; 0: nobody.  Events fit so that cells are positive int32_t.
enum { RACE_LANE_BITS = 5, RACE_MAX_EVENTS = 1 << 26, RACE_READERS = 2 };

// For every 4 bytes of a memory (every byte or 2, once something narrower touched it): who wrote
// it last, weakly and strongly, and two of those who read it since.
typedef struct RaceCells {
  int32_t *write, *read[RACE_READERS];
  int32_t *strong; // strong writes, NULL until there is one: they hide no weak write
  uint64_t n;
  int shift; // log2 of the bytes of a cell
} RaceCells;

// ---- what threads know --------------------------------------------------------------------------
typedef enum ViewClock {
  V_NOW,          // happened before the thread's next access
  V_FENCED,       // ... before its last fence (of any scope)
  V_FENCED_WIDE,  // ... its last fence of cluster scope or wider
  V_PENDING,      // will have, after the next fence: seen by relaxed loads
  V_PENDING_WIDE, // the same, from other CTAs: needs a fence of wide scope
  V_PROXIED,      // behind a fence.proxy.async of whoever did it
  V_READER,       // behind a fence.proxy.async of somebody after it
  V_INITED,       // behind that fence, or fence.mbarrier_init, of whoever did it
  V_CLOCKS,
} ViewClock;

typedef struct View {
  Clock c[V_CLOCKS];
  uint32_t self[V_CLOCKS]; // each lane's own events up to here belong to that clock too
} View;

// Events that were found to be known: what is known once stays so for the CTA.  By the event's low
// bits.
enum { RACE_SEEN = 64 };
typedef struct SeenEvents { uint32_t event[RACE_SEEN]; } SeenEvents;

typedef struct RaceWarp {
  SeenEvents seen;    // all their lanes, to all lanes of this warp
  SeenEvents proxied; // ... and visible to the asynchronous operations of `proxied_lane`
  uint32_t proxied_lane;
  View all;           // of the lanes that are not in `split`
  View *lane[32];
  uint32_t split;
  uint32_t epoch;     // events up to here may be known to others: they get no further accesses
  int32_t floor;      // cells up to here are known to every lane
  uint32_t *last;     // Op -> its latest event
} RaceWarp;

typedef struct RaceCta {
  struct Race *race;
  RaceWarp *warp; int nwarps;
  RaceCells shared;
  int32_t start;      // cells up to here are of CTAs before this one
  bool alone;         // no other CTA runs at the same time
  View bar[SIM_BARRIERS];
  View meeting[2];    // barrier.cluster, of rank 0: this phase, and the one that is complete
  uint32_t met[SIM_BARRIERS][SIM_MAX_WARPS]; // events: arrivals at the generation before
  uint32_t come[SIM_BARRIERS][SIM_MAX_WARPS]; // at this one
} RaceCta;

// Where strong accesses meet: what their releases have passed on.
typedef struct SyncVar {
  uint64_t key;       // address; 0: free
  uint64_t owner;     // CTA of a shared address, else 0
  Clock narrow, wide; // by scope
  View phase, pending; // of an mbarrier: of the last complete phase, of the current one
} SyncVar;

typedef enum FindingKind {
  FIND_RACE,
  FIND_IN_FLIGHT,
  FIND_REUSE,
  FIND_NO_PROXY_FENCE,
  FIND_LATE_PROXY_FENCE,
  FIND_NO_INIT_FENCE,
  FIND_OVERLAP, // with the launch before
} FindingKind;
typedef struct Finding {
  FindingKind kind;
  const Op *op, *other;
  uint64_t cta, other_cta;
  uint32_t thread, other_thread;
  char what[256];
} Finding;

// A launch of the past: while its kernel lives and nothing has waited for its end.
typedef struct LaunchBefore {
  const Program *prog; // NULL: none
  uint32_t grid[3], block[3];
} LaunchBefore;
// The launch before as a CTA, for clocks: who executed griddepcontrol.wait knows all that it did.
#define RACE_BEFORE (UINT64_C(1) << 50)

enum { SIM_MAX_FINDINGS = 20 };
// What a device keeps for its sanitized launches.  Times go on from launch to launch: what an
// earlier one did lies in front of `base`, and cells need no clearing.
typedef struct Race {
  SimDevice *dev;
  Grid *grid;
  uint32_t now, base;
  uint32_t older; // a dependent launch: events up to base and after these are of the one before
  LaunchBefore last, before; // this one, when it is over; the one that this one may overlap
  uint32_t nasync;     // asynchronous operations
  bool full;           // out of events: nothing more is noted
  Event *events; uint32_t cap;  // [event - older - 1]
  SyncVar *vars; int nvars, cap_vars;
  uint8_t *strength;   // Op -> how it orders, 0: not looked at yet
  Finding found[SIM_MAX_FINDINGS]; int nfound, more;
} Race;

// ---- launches and CTAs --------------------------------------------------------------------------
Race *race_new(SimDevice *dev); // NULL: out of host memory
void race_free(Race *r);
void race_begin(Race *r, Grid *g);
void race_settle(Race *r); // the last launch is over for whatever comes next; NULL is taken
void race_cells_free(RaceCells *c);
void race_cells_clear(RaceCells *c);
void race_vars_free(Race *r);

RaceCta *race_cta_new(Cta *c);
void race_cta_start(Cta *c); // a CTA begins on what another one used
void race_cta_free(RaceCta *rc);

Status race_report(const Race *r, const Grid *g, Diag *d); // ST_FAILED when an error was found

// ---- for the Ops --------------------------------------------------------------------------------
// Every function here does nothing when the CTA is not sanitized.
void sim_race_access(Warp *w, const Op *op, const uint64_t a[32], AccessKind kind, const Access *s);

// Barrier `id`: lanes of a warp arrive, lanes of a warp go on, the generation ends.
void sim_order_arrive(Warp *w, const Op *op, int id);
void sim_order_complete(Cta *c, int id);
void sim_order_go_on(Warp *w, uint32_t lanes, int id);
void sim_order_reset(Cta *c, int id);
void sim_order_lanes(Warp *w, uint32_t lanes); // bar.warp.sync
void sim_order_fence(Warp *w, const Op *op);
void sim_order_launch(Warp *w); // griddepcontrol.wait
// An atomic, or a load or store that may be strong, by the active lanes; `a`: their addresses.
void sim_order_strong(Warp *w, const Op *op, const uint64_t a[32], AccessKind kind);

// An mbarrier (its generic or shared address is the key): threads release into the current phase,
// what waits acquires the phase that is complete.
void sim_order_signal(Warp *w, uint32_t lanes, uint64_t owner, uint64_t key);
void sim_order_phase(Cta *c, uint64_t owner, uint64_t key);
void sim_order_wait(Warp *w, uint32_t lanes, uint64_t owner, uint64_t key);
// barrier.cluster: the active lanes arrive, go on; a phase is complete.
void sim_order_cluster_arrive(Warp *w, const Op *op);
void sim_order_cluster_phase(Cluster *k);
void sim_order_cluster_wait(Warp *w);

// ---- asynchronous operations --------------------------------------------------------------------
// Bytes that an operation of `lane` reads or writes.
typedef struct AsyncTouch {
  Cta *owner;     // whose shared memory; NULL: global memory
  uint64_t at;    // offset there, or global address
  uint64_t bytes;
  AccessKind kind;
  bool remote;    // st.async, red.async: no fence between the proxies is due
} AsyncTouch;
// An operation of the asynchronous proxy has an event of its own: nobody knows of it before it is
// done.  0 when the CTA is not sanitized.
uint32_t sim_race_async_event(Warp *w, const Op *op, uint32_t lane);
void sim_race_async_begin(Warp *w, const Op *op, uint32_t lane, uint32_t event,
                          const AsyncTouch *a);
// The same for n pieces of this CTA's shared memory that lane 0's operation reads, each of `bytes`.
typedef struct AsyncRun { uint32_t at, bytes; } AsyncRun;
void sim_race_async_reads(Warp *w, const Op *op, uint32_t event, const AsyncRun *runs, int n);
// It will signal the mbarrier at `at` of `owner`, whose mbarrier.init must be fenced towards it:
// V_INITED, or, where no proxy lies between them (st.async, red.async), have happened before it:
// V_NOW.
void sim_race_async_mbarrier(Warp *w, const Op *op, uint32_t lane, Cta *owner, uint64_t at,
                             ViewClock since);
// It is done: those lanes of `c`, which waited for it, know; so will those that see the mbarrier's
// phase.
void sim_race_async_end(Cta *c, int warp, uint32_t lanes, uint32_t event);
void sim_race_async_signal(Cta *c, uint64_t owner, uint64_t key, uint32_t event);
// cp.async: its write belongs to the thread, at issue and again when it is done.
void sim_race_copy(Warp *w, const Op *op, uint32_t lane, const AsyncTouch *a, bool done);
// One lane's access to a range of shared memory, as an instruction of the generic proxy makes it.
void sim_race_lane(Warp *w, const Op *op, uint32_t lane, const AsyncTouch *a);

// ---- shared by the files of the detector --------------------------------------------------------
typedef enum OrderBits { // Race.strength
  ORDER_KNOWN = 1, ORDER_STRONG = 2, ORDER_ACQUIRE = 4, ORDER_RELEASE = 8,
  ORDER_CLUSTER = 16, ORDER_WIDE = 32, // gpu or sys
} OrderBits;
uint8_t race_strength(Race *r, const Op *op); // of this launch's program
uint8_t race_inst_strength(const PtxInst *in);
View *race_view(const RaceWarp *rw, uint32_t lane);
bool race_knows(const RaceWarp *rw, uint32_t lanes, ViewClock which, uint64_t who, uint32_t by,
                uint32_t event);
uint32_t race_event(Warp *w, const Op *op, uint32_t lanes);
uint32_t race_new_event(Race *r, uint64_t who, const Op *op, uint32_t lanes);
const Event *race_event_of(const Race *r, int32_t cell);
bool race_is_wide(const Race *r, uint8_t strength);
// One access, as the functions below take it.
typedef struct RaceSpan { RaceCells *cells; uint64_t offset; bool shared; } RaceSpan;
typedef struct Touch {
  Warp *w;
  const Op *op;
  Race *race;
  RaceWarp *rw;
  AccessKind kind;
  uint8_t strength;
  const uint64_t *a;          // of the lanes
  RaceSpan span;
  int32_t base, start, floor; // what is known: up to base; after start up to floor
  uint32_t event;
  bool remote;                // AsyncTouch.remote
} Touch;
void race_set_known(Touch *t);
// What all lanes of the event's warp, or the asynchronous operation, did is known to all lanes
// here.
bool race_all_know(const Touch *t, const Event *e, uint32_t event);
// True when all lanes of the warp may read these cells: nothing there is unknown to any of them.
bool race_touch(const Touch *t, uint64_t first, uint64_t n, uint32_t lanes);
void race_judge_before(const Touch *t, const Event *e, uint32_t event, uint32_t lanes,
                       uint32_t other_lane, uint64_t cell, bool wrote);
void race_tell(const Touch *t, const Event *e, FindingKind kind, uint32_t lane, uint32_t other_lane,
               uint64_t cell, bool wrote);
RaceCells *race_shared_cells(Cta *c);
RaceCells *race_buffer_cells(Buffer *b);
Cta *race_owner(Cta *c, uint64_t shared); // whose shared memory an address is in
bool race_refine(RaceCells *c, uint64_t bytes);
void race_found(Race *r, const Finding *f);

#endif
