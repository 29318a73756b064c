// The CUDA driver API as we use it: our own declarations, resolved from libcuda.so.1 at run time,
// so that neither building nor starting the program needs anything of CUDA.
#ifndef PTXSMITH_CU_API_H
#define PTXSMITH_CU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../gen/diag.h"

typedef int CuResult; // 0 is success
typedef int CuDeviceId;
typedef uint64_t CuPtr;
typedef struct CUctx_st *CuContext;
typedef struct CUmod_st *CuModule;
typedef struct CUfunc_st *CuFunction;
typedef struct CUstream_st *CuStream;
typedef struct CUevent_st *CuEvent;
typedef struct CUgraph_st *CuGraph;
typedef struct CUgraphExec_st *CuGraphExec;

// The API version our declarations are written for.  It chooses the ABI, so it is not the driver's.
enum { CU_API_VERSION = 12000 };

// Results that this code asks for by name; cu_error.c has the ones that get advice.
enum {
  CU_SUCCESS = 0,
  CU_OUT_OF_MEMORY = 2,
  CU_NO_DEVICE = 100,
  CU_INVALID_PTX = 218,
  CU_UNSUPPORTED_PTX_VERSION = 222,
};

enum { // CUdevice_attribute
  CU_DEV_SMEM_PER_BLOCK = 8,
  CU_DEV_CLOCK_KHZ = 13,
  CU_DEV_SM_COUNT = 16,
  CU_DEV_L2_BYTES = 38,
  CU_DEV_THREADS_PER_SM = 39,
  CU_DEV_SM_MAJOR = 75,
  CU_DEV_SM_MINOR = 76,
  CU_DEV_SMEM_PER_SM = 81,
  CU_DEV_REGS_PER_SM = 82,
  CU_DEV_SMEM_OPTIN = 97,
  CU_DEV_CLUSTER_LAUNCH = 120,
};

enum { // CUfunction_attribute
  CU_FUNC_MAX_THREADS = 0,
  CU_FUNC_STATIC_SMEM = 1,
  CU_FUNC_LOCAL_BYTES = 3,
  CU_FUNC_REGS = 4,
  CU_FUNC_MAX_DYNAMIC_SMEM = 8,
  CU_FUNC_LARGE_CLUSTER = 14, // more than CU_PORTABLE_CLUSTER blocks, if the GPU has room for them
};

enum { // CUjit_option
  CU_JIT_INFO_LOG = 3,
  CU_JIT_INFO_LOG_BYTES = 4,
  CU_JIT_ERROR_LOG = 5,
  CU_JIT_ERROR_LOG_BYTES = 6,
  CU_JIT_LOG_VERBOSE = 12,
};

enum { CU_PORTABLE_CLUSTER = 8, CU_MOST_CLUSTER = 16 }; // blocks
enum { CU_STREAM_NON_BLOCKING = 1, CU_CAPTURE_THREAD_LOCAL = 1, CU_EVENT_DEFAULT = 0 };

typedef struct CuLaunchAttr {
  int id; // CU_ATTR_*
  int pad;
  union {
    char bytes[64];
    struct { unsigned x, y, z; } cluster;
    int serialize; // programmatic stream serialization: 1 allows it
  } value;
} CuLaunchAttr;
enum { CU_ATTR_CLUSTER_DIMENSION = 4, CU_ATTR_PROGRAMMATIC_SERIALIZATION = 6 };

typedef struct CuLaunchConfig {
  unsigned grid[3], block[3], smem_bytes;
  CuStream stream;
  CuLaunchAttr *attrs;
  unsigned nattrs;
} CuLaunchConfig;

typedef struct CuTensorMap { _Alignas(128) uint8_t bytes[128]; } CuTensorMap;

//   need: R required, O optional (the pointer is NULL when the driver lacks it)
//   suffix: of the exported symbol, for drivers without cuGetProcAddress_v2
#define CU_SYMBOLS(X)                                                                              \
  X(R, cuInit, "", unsigned flags)                                                                 \
  X(R, cuDriverGetVersion, "", int *version)                                                       \
  X(R, cuGetErrorName, "", CuResult r, const char **name)                                          \
  X(R, cuGetErrorString, "", CuResult r, const char **text)                                        \
  X(R, cuDeviceGetCount, "", int *n)                                                               \
  X(R, cuDeviceGet, "", CuDeviceId *dev, int index)                                                \
  X(R, cuDeviceGetName, "", char *name, int cap, CuDeviceId dev)                                   \
  X(R, cuDeviceGetAttribute, "", int *value, int attribute, CuDeviceId dev)                        \
  X(R, cuDeviceTotalMem, "_v2", size_t *bytes, CuDeviceId dev)                                     \
  X(R, cuDevicePrimaryCtxRetain, "", CuContext *ctx, CuDeviceId dev)                               \
  X(R, cuDevicePrimaryCtxRelease, "_v2", CuDeviceId dev)                                           \
  X(R, cuCtxPushCurrent, "_v2", CuContext ctx)                                                     \
  X(R, cuCtxPopCurrent, "_v2", CuContext *ctx)                                                     \
  X(R, cuCtxGetDevice, "", CuDeviceId *dev)                                                        \
  X(R, cuMemGetInfo, "_v2", size_t *free_bytes, size_t *total)                                     \
  X(R, cuMemAlloc, "_v2", CuPtr *p, size_t bytes)                                                  \
  X(R, cuMemFree, "_v2", CuPtr p)                                                                  \
  X(R, cuMemcpyHtoDAsync, "_v2", CuPtr to, const void *from, size_t bytes, CuStream s)             \
  X(R, cuMemcpyDtoHAsync, "_v2", void *to, CuPtr from, size_t bytes, CuStream s)                   \
  X(R, cuMemcpyDtoDAsync, "_v2", CuPtr to, CuPtr from, size_t bytes, CuStream s)                   \
  X(R, cuMemsetD32Async, "", CuPtr to, unsigned word, size_t words, CuStream s)                    \
  X(R, cuStreamCreate, "", CuStream *s, unsigned flags)                                            \
  X(R, cuStreamDestroy, "_v2", CuStream s)                                                         \
  X(R, cuStreamSynchronize, "", CuStream s)                                                        \
  X(R, cuModuleLoadDataEx, "", CuModule *m, const void *image, unsigned n, int *opts, void **vals) \
  X(R, cuModuleUnload, "", CuModule m)                                                             \
  X(R, cuModuleGetFunction, "", CuFunction *f, CuModule m, const char *name)                       \
  X(R, cuFuncGetAttribute, "", int *value, int attribute, CuFunction f)                            \
  X(R, cuFuncSetAttribute, "", CuFunction f, int attribute, int value)                             \
  X(R, cuOccupancyMaxActiveBlocksPerMultiprocessor, "", int *blocks, CuFunction f, int threads,    \
    size_t dynamic_smem)                                                                           \
  X(R, cuLaunchKernel, "", CuFunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,       \
    unsigned by, unsigned bz, unsigned smem, CuStream s, void **params, void **extra)              \
  X(O, cuOccupancyMaxActiveClusters, "", int *n, CuFunction f, const CuLaunchConfig *c)            \
  X(O, cuLaunchKernelEx, "", const CuLaunchConfig *c, CuFunction f, void **params, void **extra)   \
  X(R, cuEventCreate, "", CuEvent *e, unsigned flags)                                              \
  X(R, cuEventDestroy, "_v2", CuEvent e)                                                           \
  X(R, cuEventRecord, "", CuEvent e, CuStream s)                                                   \
  X(R, cuEventSynchronize, "", CuEvent e)                                                          \
  X(R, cuEventElapsedTime, "", float *ms, CuEvent from, CuEvent to)                                \
  X(O, cuTensorMapEncodeTiled, "", CuTensorMap *map, int type, uint32_t rank, void *address,       \
    const uint64_t *dims, const uint64_t *strides, const uint32_t *box, const uint32_t *steps,     \
    int interleave, int swizzle, int l2, int fill)                                                 \
  X(O, cuStreamBeginCapture, "_v2", CuStream s, int mode)                                          \
  X(O, cuStreamEndCapture, "", CuStream s, CuGraph *g)                                             \
  X(O, cuGraphInstantiateWithFlags, "", CuGraphExec *e, CuGraph g, unsigned long long flags)       \
  X(O, cuGraphLaunch, "", CuGraphExec e, CuStream s)                                               \
  X(O, cuGraphExecDestroy, "", CuGraphExec e)                                                      \
  X(O, cuGraphDestroy, "", CuGraph g)

typedef struct CuApi {
  void *library;
#define X(need, name, suffix, ...) CuResult (*name)(__VA_ARGS__);
  CU_SYMBOLS(X)
#undef X
} CuApi;

// Opens the driver's library and initialises it.  `path` NULL: $PTXSMITH_LIBCUDA, else
// libcuda.so.1.  ST_DEVICE with one message when there is none, it lacks a function, or it says no.
Status cu_api_open(const char *path, CuApi *out, Diag *d);

#endif
