// A driver that is told what to answer and remembers what it was asked.  fake_cuda.c is built as
// libfake_cuda.so (hands its functions out through cuGetProcAddress_v2 alone),
// libfake_cuda_old.so (exports them with their suffixes, as drivers before 12.0 do) and
// libfake_cuda_lacks.so (like the first, without cuEventElapsedTime).
#ifndef PTXSMITH_FAKE_CUDA_H
#define PTXSMITH_FAKE_CUDA_H

#include "cu_api.h"

enum { FAKE_EVENTS = 64, FAKE_LAUNCH_US = 50, FAKE_BUFFERS = 128 };

typedef struct FakeLaunch {
  const char *ptx; // of the module, as it was loaded
  const unsigned *grid, *block, *cluster;
  unsigned smem;
  void **params;
} FakeLaunch;

typedef struct FakeCuda {
  // What it answers.
  int devices, driver_version;
  size_t free_bytes;
  const char *fail_call; // this function returns fail_result ...
  CuResult fail_result;
  int fail_skip;         // ... after that many good calls
  const char *info_log, *error_log;
  int clusters; // that run at once, of whatever
  int nparams; // of every kernel, and their sizes
  uint32_t param_size[4];
  void (*run)(void *ctx, const FakeLaunch *l); // what a kernel does; NULL: nothing
  void *run_ctx;
  // What it saw.
  CuResult stuck; // a sticky result was returned: now every call returns it
  int contexts, streams, buffers, modules, events, graphs, execs; // alive now
  int allocations, pushes, launches;
  int loads, copies; // modules ever loaded; copies to and from the device
  size_t bytes_in, bytes_out;
  struct { CuPtr at; size_t bytes; } buffer[FAKE_BUFFERS]; // alive
  size_t image_bytes;
  char entry[64];
  uint8_t args[256]; // of the last launch, one parameter behind the other
  unsigned grid[3], block[3], cluster[3], smem;
  int serialize;
  unsigned asked_cluster, asked_threads, asked_smem; // how many clusters run at once
  int smem_allowed, large_cluster; // asked for, the latter so often
  CuStream stream; // of the last launch
  bool capturing, capture_broken;
  CuStream captured_stream;
  int captured; // launches while capturing
  // Its clock: a launch takes FAKE_LAUNCH_US, in a graph too; nothing else takes time.
  int ran, in_graph; // launches until now, those of the graph that is being captured
  int made_events, at[FAKE_EVENTS]; // `ran` when the event was recorded, and 1
  struct { // the last tensor map
    int type, interleave, swizzle, l2, fill;
    uint32_t rank, box[5], steps[5];
    uint64_t address, dims[5], strides[4];
  } map;
} FakeCuda;

typedef FakeCuda *(*FakeCudaState)(void); // exported as "fake_cuda_state"

#endif
