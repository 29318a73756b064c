// Device: one interface, two implementations (sim and cuda).  Verification, benchmarks, sweeps and
// tests are written once, against it.  A Device and its Kernels belong to one thread at a time.
#ifndef PTXSMITH_DEVICE_H
#define PTXSMITH_DEVICE_H

#include "../gen/variant.h"

typedef uint64_t DevPtr; // 0 is never a valid buffer

typedef struct DeviceInfo {
  char name[128];       // "NVIDIA H200", "sim"
  char id[16];          // "cuda:0", "sim"
  bool is_sim;
  int sm;               // 90; sim: the highest target it executes
  char sm_suffix;
  int sm_count, clock_khz;
  uint64_t memory_bytes, l2_bytes, memory_free;
  uint32_t smem_per_block, smem_optin, smem_per_sm, regs_per_sm, threads_per_sm;
  int driver_version;   // CUDA version, 13000
  char driver[32];      // "580.95.05" where known
  int ptx_version;      // highest .version it takes
} DeviceInfo;

typedef struct KernelInfo {
  int regs, max_threads, blocks_per_sm; // blocks_per_sm for the variant's own block and smem
  int clusters; // of the variant's own, that run at once; 0: it has none, or nobody knows
  uint32_t static_smem, local_bytes;
  const char *log;                      // JIT info log, mapped to template lines; "" when none
  double load_ms;
} KernelInfo;

typedef struct Device Device;
typedef struct Kernel Kernel;

typedef struct Launch {
  Kernel *kernel;
  uint32_t grid[3], block[3], cluster[3], smem;
  const void *args; uint32_t arg_bytes; // the packed argument block
  bool dependent; // may begin before the launch in front of it has ended: griddepcontrol.wait in
                  // it waits for that (programmatic stream serialization, sm_90)
} Launch;

static inline uint32_t dim3_product(const uint32_t v[3]) { // 0 stands for 1
  return (v[0] ? v[0] : 1) * (v[1] ? v[1] : 1) * (v[2] ? v[2] : 1);
}

// "auto" (a GPU if there is one, else sim), "sim", "cuda:N".  ST_DEVICE when it is not there.
Status device_open(const char *spec, Device **out, Diag *d);
// The caller's CUDA context and stream (CUcontext, CUstream): nothing of theirs is destroyed.
Status device_adopt(void *cu_context, void *cu_stream, Device **out, Diag *d);
// What is queued from now on goes to this CUstream.  ST_INPUT unless the device was adopted.
Status device_set_stream(Device *dev, void *cu_stream, Diag *d);
void device_close(Device *dev); // frees every buffer and kernel still there
const DeviceInfo *device_info(const Device *dev);

Status device_alloc(Device *dev, uint64_t bytes, const char *what, DevPtr *out, Diag *d);
void device_free(Device *dev, DevPtr p);
Status device_write(Device *dev, DevPtr to, const void *from, uint64_t bytes, Diag *d);
Status device_read(Device *dev, void *to, DevPtr from, uint64_t bytes, Diag *d);
Status device_copy(Device *dev, DevPtr to, DevPtr from, uint64_t bytes, Diag *d);
Status device_fill32(Device *dev, DevPtr to, uint32_t word, uint64_t bytes, Diag *d);
// marks[i] = 1 where byte i of the buffer at `p` was ever written, else 0.  False where the device
// does not know (cuda).
bool device_written(Device *dev, DevPtr p, uint64_t bytes, uint8_t *marks);

// Loads exactly variant->ptx.  Messages of the JIT are mapped to template lines.  The Variant lives
// at least as long as the Kernel: traps of sim speak of its lines.
Status device_load(Device *dev, const Variant *v, Kernel **out, Diag *d);
// Any PTX text (dump, tests, examples); `entry` NULL: its only entry.
Status device_load_ptx(Device *dev, const Source *ptx, const LineMap *map, const char *entry,
                       Kernel **out, Diag *d);
void kernel_free(Kernel *k);
const KernelInfo *kernel_info(const Kernel *k);

// Queues a launch; errors of the kernel itself may only appear at device_sync.  sim has run it when
// this returns: a trap is ST_FAILED with its message, and the device goes on.
Status device_launch(Device *dev, const Launch *l, Diag *d);
Status device_sync(Device *dev, Diag *d);
// False after a sticky error (700, 715-719 ...): only closing helps.
bool device_alive(const Device *dev);

// Events: slots 0 .. DEVICE_EVENTS-1.  On sim device_elapsed returns ST_DEVICE: sim has no times.
enum { DEVICE_EVENTS = 64 };
Status device_record(Device *dev, int slot, Diag *d);
Status device_elapsed(Device *dev, int from, int to, double *ms, Diag *d); // waits for `to`

// Graphs: launches between begin and end are captured, not run.  sim replays the list.
typedef struct Graph Graph;
Status device_graph_begin(Device *dev, Diag *d);
Status device_graph_end(Device *dev, Graph **out, Diag *d);
Status device_graph_launch(Device *dev, Graph *g, Diag *d);
void device_graph_free(Device *dev, Graph *g);

// ---- tensor maps --------------------------------------------------------------------------------
// What bulk tensor copies know of a tensor in global memory (sm_90): its 128 bytes are a kernel
// parameter (`.param .align 64 .b8 map[128]`) or lie in global memory.  Numbers are the driver's.
typedef enum TensorType {
  TENSOR_U8, TENSOR_U16, TENSOR_U32, TENSOR_S32, TENSOR_U64, TENSOR_S64, TENSOR_F16, TENSOR_F32,
  TENSOR_F64, TENSOR_BF16, TENSOR_F32_FTZ, TENSOR_TF32, TENSOR_TF32_FTZ, TENSOR_U4_ALIGN8,
  TENSOR_U4_ALIGN16, TENSOR_U6_ALIGN16, TENSOR_TYPES
} TensorType;
int tensor_type_bytes(TensorType t); // 0 for the packed ones
enum { TENSOR_SWIZZLE_NONE, TENSOR_SWIZZLE_32B, TENSOR_SWIZZLE_64B, TENSOR_SWIZZLE_128B };
enum { TENSOR_FILL_ZERO, TENSOR_FILL_NAN };
enum { TENSOR_MAP_BYTES = 128 };

typedef struct TensorMapDesc { // dimension 0 is the contiguous one
  DevPtr address;
  uint64_t dim[5];    // elements
  uint64_t stride[4]; // bytes, of dimensions 1 to 4
  uint32_t box[5];    // elements that one copy covers
  uint32_t step[5];   // of them, every step-th is taken; 0 is 1
  uint8_t type, rank, interleave, swizzle, l2, fill; // l2: promotion, a matter of speed
} TensorMapDesc;
// ST_INPUT with the rule that is broken: those of cuTensorMapEncodeTiled, on every device.
Status device_tensor_map(Device *dev, const TensorMapDesc *m, void *map, Diag *d);

// ---- sim only: work counted by the last launches (zeros on cuda) --------------------------------
// docs/counters.md defines every counter and names the profiler's.
//                  id     shown as
#define FLOP_KINDS(X)                                                                              \
  X(F16, "f16") X(BF16, "bf16") X(F32, "f32") X(F64, "f64") X(TENSOR_F16, "tensor f16")            \
  X(TENSOR_BF16, "tensor bf16") X(TENSOR_TF32, "tensor tf32") X(TENSOR_F8, "tensor fp8")           \
  X(TENSOR_F64, "tensor f64") X(TENSOR_INT, "tensor int")
typedef enum FlopKind {
#define X(id, name) FLOP_##id,
  FLOP_KINDS(X)
#undef X
  FLOP_KIND_COUNT, // none: no floating-point operation
} FlopKind;
extern const char *const flop_kind_name[FLOP_KIND_COUNT];

typedef struct Counters {
  uint64_t warp_insts, thread_insts, by_pipe[PTX_PIPE_COUNT]; // by_pipe counts thread instructions
  uint64_t warps_by_pipe[PTX_PIPE_COUNT];
  uint64_t flops, xu_ops; // flops: TENSOR_INT left out
  uint64_t flops_by_kind[FLOP_KIND_COUNT];
  uint64_t global_read_requests, global_write_requests;
  uint64_t global_read_bytes, global_write_bytes, shared_read_bytes, shared_write_bytes;
  uint64_t global_read_sectors, global_write_sectors; // 32 bytes
  uint64_t global_read_ideal, global_write_ideal;     // sectors that the bytes would fill
  uint64_t distinct_read_bytes, distinct_write_bytes; // sectors touched in a launch, once each
  uint64_t distinct_bytes;                            // read or written
  uint64_t shared_read_requests, shared_write_requests;
  uint64_t shared_read_wavefronts, shared_write_wavefronts, shared_conflicts;
  uint64_t local_read_sectors, local_write_sectors;
  uint64_t barriers, barrier_warps; // completed; times that a warp came to one
  uint64_t branches, divergent_branches;
} Counters;
void device_counters(Device *dev, Counters *out, bool reset);

// Accesses of one instruction to one space.  Units are sectors of 32 bytes in global and local
// memory, wavefronts in shared memory; `ideal` is the least that the same bytes could take.
typedef struct SpaceCount { uint64_t requests, units, ideal, bytes; } SpaceCount;

// The ways to memory that the hardware's units, and the profiler's metrics, keep apart.
//  id, shown as; of global memory: reads, writes; of shared memory: reads, writes
#define COUNT_WAYS(X)                                                                              \
  X(LOAD, "load", 1, 0, 1, 0) X(STORE, "store", 0, 1, 0, 1)                                        \
  X(ATOM, "atom", 1, 1, 1, 1) X(RED, "red", 1, 1, 1, 1)                                            \
  X(COPY, "cp_async", 1, 0, 0, 1)                                                                  \
  X(BULK_READ, "bulk_read", 1, 0, 1, 0) X(BULK_WRITE, "bulk_write", 0, 1, 0, 1)                    \
  X(BULK_RED, "bulk_red", 1, 1, 1, 1)                                                              \
  X(ST_ASYNC, "st_async", 0, 0, 0, 1)                                                              \
  X(WGMMA, "wgmma", 0, 0, 1, 0)
typedef enum CountWay {
#define X(id, ...) COUNT_##id,
  COUNT_WAYS(X)
#undef X
  COUNT_FORMS,
} CountWay;
typedef struct CountWayInfo {
  const char *name;
  bool global_read, global_write, shared_read, shared_write;
} CountWayInfo;
extern const CountWayInfo count_way[COUNT_FORMS];

typedef struct InstCount {
  uint64_t warps, threads; // executed; threads: those whose guard was true
  uint64_t divergent;      // times that its lanes went different ways
  uint64_t small;          // threads of ex2 and lg2 whose argument the machine scales first
  SpaceCount global[COUNT_FORMS], shared[COUNT_FORMS];
  SpaceCount local[COUNT_STORE + 1]; // loads and stores only
} InstCount;

// An instruction of a kernel, or of a function it calls.
typedef struct InstSite {
  const PtxInst *in;
  const PtxFunc *func;
  int block;       // whose passes count it, -1: it has a guard and is counted when it runs
  uint8_t flop;    // FlopKind
  uint16_t flops;  // of a lane
  uint8_t way[3];  // CountWay of its reads, its writes, and what does both
} InstSite;

// Sectors of one buffer that a launch touched, in bytes, added up over launches.  DRAM sends them
// in twos: read64 counts both of a pair where one is read, cold64 where one is read and not
// written.
typedef struct BufferCount {
  char name[64];
  uint64_t bytes, read, written, either, read64, cold64;
} BufferCount;

// What a kernel's launches did since the counters were reset.  Lives as long as the Kernel.
typedef struct KernelCounts {
  const PtxModule *module;
  const LineMap *map; // NULL for PTX of others
  const PtxFunc *entry;
  uint64_t launches;
  Counters total;
  const InstSite *site;
  const InstCount *count; int n; // of site[i]
  const BufferCount *buffer; int nbuffers;
} KernelCounts;
// False when nothing was counted: another device, counters off, no launch.
bool kernel_counts(Kernel *k, KernelCounts *out);

// When asynchronous copies and products complete on sim.
typedef enum SimCompletion {
  SIM_LATE,   // when a wait needs it: a missing wait reads what is not there yet, and traps
  SIM_RANDOM, // at a moment that the seed chooses
  SIM_EAGER,  // when issued: nothing is ever in flight
} SimCompletion;

typedef struct SimOpts {
  int threads;          // host threads for CTAs; 0 = all cores
  const char *isa;      // NULL best, or "baseline" "avx2" "avx512"
  uint64_t seed;        // schedule; 0 = the fixed order
  uint64_t step_limit;  // warp instructions per launch, 0 = none
  bool counters;        // count; divergent warps may meet elsewhere under another schedule
  bool sanitize;        // look for races; one host thread, so that a seed decides everything
  SimCompletion completion;
} SimOpts;
void device_sim_opts(Device *dev, const SimOpts *o); // no-op on cuda
// Schedule 0 is the fixed one, with late completion; of the others every third each.
static inline SimCompletion sim_completion_of(uint64_t seed) {
  return seed ? (SimCompletion)(seed % 3) : SIM_LATE;
}

// ---- the implementations ------------------------------------------------------------------------
// Each implementation embeds Device as its first member and fills this table; the functions above
// dispatch through it.
typedef struct DeviceOps {
  void (*close)(Device *);
  Status (*alloc)(Device *, uint64_t, const char *, DevPtr *, Diag *);
  void (*free)(Device *, DevPtr);
  Status (*write)(Device *, DevPtr, const void *, uint64_t, Diag *);
  Status (*read)(Device *, void *, DevPtr, uint64_t, Diag *);
  Status (*copy)(Device *, DevPtr, DevPtr, uint64_t, Diag *);
  Status (*fill32)(Device *, DevPtr, uint32_t, uint64_t, Diag *);
  bool (*written)(Device *, DevPtr, uint64_t, uint8_t *); // NULL: not known
  Status (*load)(Device *, const Source *, const LineMap *, const PtxModule *, const char *entry,
                 Kernel **, Diag *); // module NULL: parse it (sim) or do without (cuda)
  void (*kernel_free)(Kernel *);
  // Blocks an SM holds at once with that many threads and bytes of dynamic shared memory.  NULL
  // where the device has no such limit (sim): one.
  Status (*occupancy)(Kernel *, uint32_t threads, uint32_t smem, int *blocks, Diag *);
  // Clusters of such blocks that run at once.  NULL: not known.
  Status (*clusters)(Kernel *, const uint32_t cluster[3], uint32_t threads, uint32_t smem, int *n,
                     Diag *);
  Status (*launch)(Device *, const Launch *, Diag *);
  Status (*sync)(Device *, Diag *);
  Status (*set_stream)(Device *, void *, Diag *); // NULL: the device has no streams (sim)
  Status (*record)(Device *, int, Diag *);
  Status (*elapsed)(Device *, int, int, double *, Diag *);
  Status (*graph_begin)(Device *, Diag *);
  Status (*graph_end)(Device *, Graph **, Diag *);
  Status (*graph_launch)(Device *, Graph *, Diag *);
  void (*graph_free)(Device *, Graph *);
  Status (*tensor_map)(Device *, const TensorMapDesc *, void *map, Diag *); // checked already
  void (*counters)(Device *, Counters *, bool);
  bool (*kernel_counts)(Kernel *, KernelCounts *); // NULL: the device counts nothing
  void (*sim_opts)(Device *, const SimOpts *);
} DeviceOps;

struct Device {
  const DeviceOps *ops;
  DeviceInfo info;
  bool dead;
  struct Bench *bench;         // what timing keeps here (bench.h)
  void (*bench_free)(Device *); // set with it; device_close calls it first
};
struct Kernel {
  Device *dev;
  KernelInfo info;
};

Status sim_open(Device **out, Diag *d);
Status cuda_open(int index, Device **out, Diag *d);
int cuda_device_count(Diag *d); // 0 with a message when there is no driver

#endif
