// sim: the PTX interpreter as a Device.  This header is private to runtime/sim_*.c.
//
//   sim_device.c   buffers, graphs, options          sim_program.c  PTX module -> Program
//   sim_launch.c   a grid: CTAs on host threads      sim_decode*.c  PTX instruction -> Ops
//   sim_pool.c     the host threads                  sim_assign.c   which reads need a check
//   sim_cluster.c  CTAs that run together            sim_alu.c ...  what Ops do
//   sim_cta.c      a CTA: warps take turns
//   sim_warp.c     a warp: groups of lanes           sim_trap.c     what went wrong, as text
//   sim_count.c    what instructions did, in numbers  sim_race.h   the race detector
#ifndef PTXSMITH_SIM_H
#define PTXSMITH_SIM_H

#include <pthread.h>
#include <stdatomic.h>

#include "device.h"
#include "sim_lanes.h"

// ---- addresses ----------------------------------------------------------------------------------
// A global address is (buffer id << 40) + offset, so that bounds are exact for each allocation and
// a pointer that runs out of its buffer can't land in another.  Shared, local and parameter
// addresses are offsets in their space; as generic addresses they get the number of a window.
enum { SIM_ID_SHIFT = 40 };
#define SIM_OFFSET_MASK ((UINT64_C(1) << SIM_ID_SHIFT) - 1)
#define SIM_WINDOW_SHARED (UINT64_C(0xffff01) << SIM_ID_SHIFT)
#define SIM_WINDOW_LOCAL (UINT64_C(0xffff02) << SIM_ID_SHIFT)
#define SIM_WINDOW_PARAM (UINT64_C(0xffff03) << SIM_ID_SHIFT)

// Memory with bounds and a byte of shadow for every byte: what may be done to it.  Only shared
// memory of programs with asynchronous operations (`watched`) knows more than SHADOW_WRITTEN.
enum {
  SHADOW_WRITTEN = 1,
  SHADOW_FILLING = 2,  // an operation in flight will write it: nobody may touch it
  SHADOW_MBARRIER = 4, // part of an mbarrier: no data
  SHADOW_READER = 16,  // counts (to 15) operations in flight that read it: nobody may write it
};
typedef struct Memory {
  uint64_t base;   // address of the first byte
  uint64_t bytes;
  uint8_t *data;
  uint8_t *shadow; // NULL: written everywhere
  struct Cta *watched; // whose shared memory it is, NULL: no operation in flight can be here
} Memory;

typedef struct Buffer {
  Memory mem;
  char name[64];
  bool is_const; // a .const variable
  _Atomic uint64_t *touched[2]; // bit for each sector read, written; NULL until a launch counts
  _Atomic bool dirty;           // some bit is set
  void *raw;     // what to free
  struct RaceCells *cells; // of the race detector, NULL until a sanitized launch comes by
} Buffer;

// ---- decoded code -------------------------------------------------------------------------------
typedef struct Warp Warp;
typedef struct Op Op;
typedef const Op *(*OpFn)(Warp *w, const Op *op); // returns the next Op

enum { SIM_MAX_VEC = 8 };
// What does not fit in an Op.
typedef struct OpMore {
  uint32_t v[SIM_MAX_VEC];     // registers of a vector
  uint8_t skip[SIM_MAX_VEC];   // its sinks
  uint32_t *list; int nlist, cap; // masks of registers to check or mark; branch targets
  uint32_t *names; int cap2;      // check, mark: register indices
  struct CallCopy *copies; int nargs, ncopies; // call: arguments, then results
  const struct Func *callee;
  const struct WmmaPart *wmma;    // wmma.load and store: which matrix
  const struct AsyncArgs *async;  // asynchronous copies: their addresses
  const struct WgmmaShape *wgmma; // wgmma.mma_async: what it multiplies
} OpMore;

struct Op {
  OpFn fn;
  LaneFn lane;
  uint64_t imm;
  uint32_t d, a, b, c, e; // byte offsets in the frame of registers
  uint32_t guard;         // of the guard predicate
  uint32_t target;        // Op index in the program
  uint32_t mask_xor;      // ~0 for a negated guard
  OpFn guarded;           // what the guard protects
  const PtxInst *in;      // NULL for Ops of our own
  const struct Func *func;
  OpMore *more;
  uint8_t width;          // bytes of a lane of d
  uint8_t space, vec, bytes; // memory: PtxSpace, elements, bytes of one
  uint8_t kind, type;     // depends on fn
  bool counted;           // guarded: the Op that counts for its instruction
  uint16_t flops;         // of a lane
  uint32_t site;          // of the instruction, in Program.sites
};

typedef struct Func {
  const PtxFunc *ptx;
  const struct Program *prog;
  uint32_t first, end;                 // Ops
  uint32_t frame, frame_bytes;         // registers: offset in the warp's file, size of one level
  uint32_t local, local_bytes;         // per-lane memory: likewise
  uint32_t init_at, init_bytes;        // the masks of written lanes
  int levels;                          // > 1 when it can call itself
  uint32_t *reg;                       // register -> offset in the frame
  uint32_t *init;                      // register -> offset of its mask, 0: reads are proven
} Func;

// A place that is the same in every warp: immediates; or filled for each CTA: special registers.
typedef struct FrameConst {
  uint32_t at;
  uint8_t width;
  uint64_t value;
  const Func *func;
} FrameConst;
typedef struct FrameSreg { uint32_t at; uint8_t width, sreg, dim; const Func *func; } FrameSreg;

enum { SIM_MAX_LEVELS = 32 }; // calls of one function inside itself

typedef struct Program {
  Arena *arena;
  const PtxModule *module;
  const LineMap *map;
  Func *funcs; int nfuncs; // index = PtxModule.funcs
  const Func *entry;
  Op *ops; int nops, cap;
  FrameConst *consts; int nconsts, consts_cap;
  FrameSreg *sregs; int nsregs, sregs_cap;
  int nblocks;
  InstSite *sites; int nsites, sites_cap;
  uint32_t *var_at;        // variable -> offset in its space (shared, local, call parameters)
  uint64_t *var_address;   // global and const: address
  uint32_t file_bytes, local_bytes, shared_bytes;
  uint32_t dynamic_at;     // where `.extern .shared` begins, ahead of alignment
  bool has_dynamic;
  bool uses_async;         // some instruction completes later
  bool asks_others;        // may learn from global memory what other CTAs do meanwhile
  bool uses_wgmma; int wgmma_suspects; // registers written without a fence, perhaps
} Program;

typedef struct SimKernel {
  Kernel base;
  Arena *arena;
  Program *prog;
  struct SimKernel *next, *prev;
  DevPtr *vars; int nvars; // buffers of the module's variables
  // Counted since the last reset, NULL before the first launch that counts.
  InstCount *counts;
  Counters total;
  BufferCount *touched; int ntouched, touched_cap;
  uint64_t launches;
} SimKernel;

// ---- a warp -------------------------------------------------------------------------------------
// Return addresses.  Equal stacks are the same node, so that lanes meet again inside callees.
typedef struct Frame {
  const struct Frame *up;
  const Op *ret;       // where the caller goes on
  const Func *func;
  int level, depth;
} Frame;

typedef enum GroupState {
  GROUP_READY,
  GROUP_SYNC,    // waits for other lanes of its warp at this very instruction
  GROUP_WARPBAR, // at a bar.warp.sync
  GROUP_BARRIER, // at barrier `bar` of the CTA
  GROUP_CLUSTER, // at the barrier of the cluster
  GROUP_MBARRIER, // in test_wait or try_wait, until a phase completes
  GROUP_REGISTERS, // in setmaxnreg.inc, until `need` are free
  GROUP_WGMMA,   // in wgmma.wait_group, until all warps of the warpgroup have issued
} GroupState;

typedef struct Group {
  uint32_t mask;
  const Op *pc;
  const Frame *frame;
  GroupState state;
  uint32_t need; // SYNC, WARPBAR: lanes that must come
  int bar;
  bool waiting, expired; // a wait on an mbarrier has begun; it may return false
  uint64_t mbar, phase;  // which one, and the phase that it waits for
} Group;

typedef enum WarpEvent {
  EV_NONE,
  EV_SLICE, // its turn is over
  EV_BLOCK, // the group can't go on
  EV_SPLIT, // groups were added or changed
  EV_EXIT,  // lanes ended
  EV_TRAP,
} WarpEvent;

enum { SIM_MAX_FRAMES = 512 };

struct Warp {
  uint8_t *regs;       // frame of the running group
  const Op *limit;     // run on while below: the next group's place, or NULL to stop at once
  uint32_t active;     // lanes that execute
  uint32_t gone;       // lanes that ended or never were: their registers don't matter
  int64_t left;        // instructions left of this turn
  struct BlockCount *blocks;
  struct Cta *cta;
  uint8_t *file;       // all frames of registers
  uint8_t *local, *local_shadow;
  uint32_t lbase;      // of the running frame, in per-lane memory
  WarpEvent event;
  int cur, ngroups;
  int turn, last;      // short turns taken, and by which group
  int waited;          // turns that those ahead have waited
  int64_t turn_length;
  Group groups[32];
  int index;           // in the CTA
  uint32_t lanes;      // that exist
  Frame *frames; int nframes;
  uint32_t at_cluster; // lanes that arrived at the cluster barrier's phase under way
  uint32_t owe_wait;   // lanes that arrived and have not waited since
};

typedef struct BlockCount { uint64_t warps, threads; } BlockCount;

enum { SIM_BARRIERS = 16, SIM_MAX_WARPS = 32 };
typedef struct Barrier {
  uint32_t count;                  // threads expected; 0: all of the CTA
  bool open;                       // a generation is under way
  uint8_t kind;                    // of the first arrival (sim_sync.c)
  uint32_t arrived[SIM_MAX_WARPS]; // lanes
  uint32_t value[SIM_MAX_WARPS];   // red: predicate of those lanes
  const Op *op;                    // of the first arrival
  uint32_t thread;                 // that arrived first
} Barrier;

// setmaxnreg: registers a thread of each warp, and which warps of a group have executed it.
typedef struct RegPool {
  uint32_t entry; // at the start; 0: not known
  uint16_t held[SIM_MAX_WARPS];
  uint8_t came[SIM_MAX_WARPS / 4];
  const Op *op[SIM_MAX_WARPS / 4];
} RegPool;

// What a trap says, before it becomes a message.
enum { SIM_MAX_WAITS = 8 };
typedef struct TrapInfo {
  bool set;
  const Op *op;
  uint64_t cta;
  uint32_t block[3], thread[3];
  char what[512];
  struct { const Op *op; char what[256]; } waits[SIM_MAX_WAITS]; // deadlock: who waits where
  int nwaits, more_waits;
} TrapInfo;

// Everything one host thread needs to run CTAs of a launch.
typedef struct Cta {
  struct Grid *grid;
  struct Cluster *cluster;
  uint32_t rank;       // in the cluster
  uint64_t index;
  uint32_t id[3];
  Warp *warps; int nwarps;
  Frame *frames;       // SIM_MAX_FRAMES for each warp
  Memory shared;
  struct Wgmma *wgmma; // NULL: the program has none
  RegPool pool;
  Barrier bar[SIM_BARRIERS];
  TrapInfo trap;
  InstCount *counts;   // of Program.sites; unguarded instructions come from `blocks`.  NULL: off
  uint64_t barriers;   // completed
  BlockCount *blocks;
  uint64_t steps, told; // instructions run; of those the Grid knows
  int64_t turn;         // length of a warp's turn
  uint64_t random;
  struct RaceCta *race; // NULL: not sanitized
  uint64_t events;     // polls of memory, changes of mbarriers: what could free a waiting thread
  struct Async *async; // NULL: the program has no asynchronous operations
  uint8_t *memory;     // one block for files, local and shared memory
} Cta;

// CTAs that take turns on one host thread.  Without clusters each is one of its own.
enum { SIM_MAX_CLUSTER = 16 };
typedef struct Cluster {
  struct Grid *grid;
  uint64_t index;   // in the grid of clusters
  uint64_t order;   // its place in the schedule
  int n;
  Cta *ctas[SIM_MAX_CLUSTER]; // index = rank
  uint64_t barriers; // phases completed
} Cluster;

typedef struct Grid {
  struct SimDevice *dev;
  const SimKernel *kernel;
  const Program *prog;
  Launch launch;
  uint32_t cluster[3];  // blocks
  bool is_cluster;      // asked for, of one block even
  uint64_t nclusters;
  Memory params;
  uint32_t dynamic_at; // aligned
  _Atomic uint64_t next;      // place in the schedule to take
  _Atomic uint64_t first_bad; // first place whose cluster trapped
  _Atomic uint64_t steps;
  _Atomic bool stopped;       // Ctrl-C
  _Atomic bool no_memory;
  pthread_mutex_t lock;
  TrapInfo trap;              // of first_bad
  InstCount *counts;          // NULL: off
  uint64_t barriers;
} Grid;

// ---- the device ---------------------------------------------------------------------------------
struct Graph { Launch *launches; int n, cap; };

typedef struct SimDevice {
  Device base;
  Buffer **buffers; uint32_t nbuffers, cap_buffers; // index = id; [0] unused
  uint64_t used;
  SimKernel *kernels;
  SimOpts opts;
  const LaneIsa *isa;
  struct SimPool *pool;
  Graph *capture;
  Counters count;
  struct Race *race;        // of sanitized launches, NULL until there is one
  pthread_mutex_t wide;     // atom.b128
} SimDevice;

// A .shared::cluster address is an offset, in the high bits of which stands 1 + the rank of the CTA
// whose memory it is in; 0: the own one, as in .shared::cta.
enum { SIM_RANK_SHIFT = 24 };
// Of a block's shared memory the system's own (ISA 10, %reserved_smem_offset): the last of what can
// be named.  There is no memory behind it here.  Of 1024 bytes an H200 has 288 in use.
enum {
  SIM_RESERVED_BYTES = 1024,
  SIM_RESERVED_USED = 288,
  SIM_RESERVED = (1 << SIM_RANK_SHIFT) - SIM_RESERVED_BYTES
};

static inline SimDevice *sim_of(Device *dev) { return (SimDevice *)dev; }

// The buffer an address names, or NULL.
static inline Buffer *sim_buffer(const SimDevice *dev, uint64_t address) {
  uint64_t id = address >> SIM_ID_SHIFT;
  return id < dev->nbuffers ? dev->buffers[id] : NULL;
}

Status sim_alloc(SimDevice *dev, uint64_t bytes, const char *what, bool is_const, Buffer **out,
                 Diag *d);
void sim_free(SimDevice *dev, DevPtr p);
Status sim_load(Device *dev, const Source *ptx, const LineMap *map, const PtxModule *module,
                const char *entry, Kernel **out, Diag *d);
void sim_kernel_free(Kernel *k);
Status sim_launch(SimDevice *dev, const Launch *l, Diag *d);

Status sim_tensor_map(Device *dev, const TensorMapDesc *m, void *map, Diag *d);

// Runs `job(arg, worker)` on `n` threads, the caller's included, and waits.
typedef struct SimPool SimPool;
SimPool *sim_pool_new(void);
void sim_pool_free(SimPool *p);
void sim_pool_run(SimPool *p, int n, void (*job)(void *arg, int worker), void *arg);

#endif
