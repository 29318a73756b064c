// The fake driver: device memory is host memory, kernels do nothing.
#include "fake_cuda.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static FakeCuda fake;
static _Thread_local int depth; // of this thread's context stack

EXPORT FakeCuda *fake_cuda_state(void);
FakeCuda *fake_cuda_state(void) { return &fake; }

// What a program under test finds: FAKE_CUDA_DEVICES GPUs with FAKE_CUDA_FREE bytes free.
__attribute__((constructor)) static void read_environment(void) {
  const char *devices = getenv("FAKE_CUDA_DEVICES"), *free_bytes = getenv("FAKE_CUDA_FREE");
  fake.driver_version = 13000;
  fake.clusters = 60;
  if (devices) fake.devices = atoi(devices);
  if (free_bytes) fake.free_bytes = strtoull(free_bytes, NULL, 10);
}

static bool sticky(CuResult r) { return r == 700 || (r >= 715 && r <= 719); }

// Every function begins here: the result to give, 0 to go on.
static CuResult enter(const char *name) {
  if (fake.stuck) return fake.stuck;
  if (!fake.fail_call || strcmp(name, fake.fail_call) || fake.fail_skip-- > 0) return 0;
  if (sticky(fake.fail_result)) fake.stuck = fake.fail_result;
  return fake.fail_result;
}

#define ENTER()                                                                                    \
  do {                                                                                             \
    CuResult result = enter(__func__ + sizeof "fake_" - 1);                                        \
    if (result) return result;                                                                     \
  } while (0)
#define ENTER_CURRENT()                                                                            \
  do {                                                                                             \
    ENTER();                                                                                       \
    if (depth < 1) return 201; /* no context on this thread */                                     \
  } while (0)

// What a stream capture does not allow: it breaks the capture, as the driver does.
#define ENTER_NOT_IN_CAPTURE()                                                                     \
  do {                                                                                             \
    ENTER_CURRENT();                                                                               \
    if (fake.capturing) return fake.capture_broken = true, 900;                                    \
  } while (0)

#define X(need, name, suffix, ...) CuResult fake_##name(__VA_ARGS__);
CU_SYMBOLS(X)
#undef X

// Destroying gives the same results as everything else, but always destroys: counts stay honest
// after a failure that was asked for.
static CuResult destroy(int *alive, const char *name) {
  --*alive;
  return enter(name);
}

CuResult fake_cuInit(unsigned flags) {
  ENTER();
  return flags ? 1 : 0;
}
CuResult fake_cuDriverGetVersion(int *v) {
  ENTER();
  return *v = fake.driver_version, 0;
}

CuResult fake_cuGetErrorName(CuResult r, const char **name) {
  static const struct { CuResult r; const char *name; } names[] = {
      {1, "CUDA_ERROR_INVALID_VALUE"},     {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {100, "CUDA_ERROR_NO_DEVICE"},       {201, "CUDA_ERROR_INVALID_CONTEXT"},
      {218, "CUDA_ERROR_INVALID_PTX"},     {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {500, "CUDA_ERROR_NOT_FOUND"},       {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"}, {999, "CUDA_ERROR_UNKNOWN"},
  };
  *name = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].r == r) *name = names[i].name;
  return *name ? 0 : 1;
}
CuResult fake_cuGetErrorString(CuResult r, const char **text) {
  *text = r == 999 ? NULL : "the driver's own words";
  return *text ? 0 : 1;
}

CuResult fake_cuDeviceGetCount(int *n) {
  ENTER();
  return *n = fake.devices, 0;
}
CuResult fake_cuDeviceGet(CuDeviceId *dev, int index) {
  ENTER();
  return *dev = index, 0;
}
CuResult fake_cuDeviceGetName(char *name, int cap, CuDeviceId dev) {
  ENTER();
  (void)dev;
  strncpy(name, "Fake GPU", (size_t)cap);
  return 0;
}
CuResult fake_cuDeviceGetAttribute(int *value, int attribute, CuDeviceId dev) {
  ENTER();
  (void)dev;
  switch (attribute) {
  case CU_DEV_SM_MAJOR: *value = 9; break;
  case CU_DEV_SM_MINOR: *value = 0; break;
  case CU_DEV_SM_COUNT: *value = 132; break;
  case CU_DEV_SMEM_PER_BLOCK: *value = 49152; break;
  case CU_DEV_SMEM_OPTIN: *value = 232448; break;
  default: *value = attribute; break;
  }
  return 0;
}
CuResult fake_cuDeviceTotalMem(size_t *bytes, CuDeviceId dev) {
  ENTER();
  (void)dev;
  return *bytes = (size_t)8 << 30, 0;
}

CuResult fake_cuDevicePrimaryCtxRetain(CuContext *ctx, CuDeviceId dev) {
  ENTER();
  fake.contexts++;
  *ctx = (CuContext)(uintptr_t)(0x1000 + dev);
  return 0;
}
CuResult fake_cuDevicePrimaryCtxRelease(CuDeviceId dev) {
  (void)dev;
  return destroy(&fake.contexts, "cuDevicePrimaryCtxRelease");
}
CuResult fake_cuCtxPushCurrent(CuContext ctx) {
  ENTER();
  if (!ctx) return 201;
  fake.pushes++;
  return depth++, 0;
}
CuResult fake_cuCtxPopCurrent(CuContext *ctx) {
  *ctx = NULL;
  if (depth < 1) abort(); // an unbalanced pop is a fault of the caller
  return depth--, 0;
}
CuResult fake_cuCtxGetDevice(CuDeviceId *dev) {
  ENTER_CURRENT();
  return *dev = 0, 0;
}

CuResult fake_cuMemGetInfo(size_t *free_bytes, size_t *total) {
  ENTER_CURRENT();
  *free_bytes = fake.free_bytes;
  *total = (size_t)8 << 30;
  return 0;
}
CuResult fake_cuMemAlloc(CuPtr *p, size_t bytes) {
  ENTER_NOT_IN_CAPTURE();
  fake.buffers++;
  fake.allocations++;
  *p = (CuPtr)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  for (int i = 0; i < FAKE_BUFFERS; i++)
    if (!fake.buffer[i].at) {
      fake.buffer[i].at = *p, fake.buffer[i].bytes = bytes;
      break;
    }
  return 0;
}
CuResult fake_cuMemFree(CuPtr p) {
  for (int i = 0; i < FAKE_BUFFERS; i++)
    if (fake.buffer[i].at == p) fake.buffer[i].at = 0;
  free((void *)(uintptr_t)p);
  return destroy(&fake.buffers, "cuMemFree");
}
CuResult fake_cuMemcpyHtoDAsync(CuPtr to, const void *from, size_t bytes, CuStream s) {
  ENTER_CURRENT();
  (void)s;
  fake.copies++;
  fake.bytes_in += bytes;
  return memcpy((void *)(uintptr_t)to, from, bytes), 0;
}
CuResult fake_cuMemcpyDtoHAsync(void *to, CuPtr from, size_t bytes, CuStream s) {
  ENTER_CURRENT();
  (void)s;
  fake.copies++;
  fake.bytes_out += bytes;
  return memcpy(to, (void *)(uintptr_t)from, bytes), 0;
}
CuResult fake_cuMemcpyDtoDAsync(CuPtr to, CuPtr from, size_t bytes, CuStream s) {
  ENTER_CURRENT();
  (void)s;
  return memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes), 0;
}
CuResult fake_cuMemsetD32Async(CuPtr to, unsigned word, size_t words, CuStream s) {
  ENTER_CURRENT();
  (void)s;
  for (size_t i = 0; i < words; i++) ((unsigned *)(uintptr_t)to)[i] = word;
  return 0;
}

CuResult fake_cuStreamCreate(CuStream *s, unsigned flags) {
  ENTER_CURRENT();
  fake.streams++;
  return *s = (CuStream)(uintptr_t)(0x2000 + flags), 0;
}
CuResult fake_cuStreamDestroy(CuStream s) {
  (void)s;
  return destroy(&fake.streams, "cuStreamDestroy");
}
CuResult fake_cuStreamSynchronize(CuStream s) {
  ENTER_NOT_IN_CAPTURE();
  (void)s;
  return 0;
}

static void give_log(const char *log, void *buffer, void **bytes) {
  size_t cap = (size_t)(uintptr_t)*bytes, n = log ? strlen(log) : 0;
  if (n >= cap) n = cap - 1;
  memcpy(buffer, log ? log : "", n);
  ((char *)buffer)[n] = 0;
  *bytes = (void *)(uintptr_t)n; // as the driver does: the option's value becomes the length
}

CuResult fake_cuModuleLoadDataEx(CuModule *m, const void *image, unsigned n, int *opts,
                                 void **values) {
  fake.image_bytes = strlen(image);
  for (unsigned i = 0; i < n; i++) {
    if (opts[i] == CU_JIT_INFO_LOG) give_log(fake.info_log, values[i], &values[i + 1]);
    if (opts[i] == CU_JIT_ERROR_LOG) give_log(fake.error_log, values[i], &values[i + 1]);
  }
  ENTER_NOT_IN_CAPTURE();
  fake.modules++;
  fake.loads++;
  // Who runs kernels is given the text; to everybody else a module is as good as another.
  return *m = fake.run ? (CuModule)strdup(image) : (CuModule)(uintptr_t)0x3000, 0;
}
CuResult fake_cuModuleUnload(CuModule m) {
  if ((uintptr_t)m != 0x3000) free(m);
  return destroy(&fake.modules, "cuModuleUnload");
}
CuResult fake_cuModuleGetFunction(CuFunction *f, CuModule m, const char *name) {
  ENTER_CURRENT();
  strncpy(fake.entry, name, sizeof fake.entry - 1);
  return *f = fake.run ? (CuFunction)m : (CuFunction)(uintptr_t)0x4000, 0;
}
CuResult fake_cuFuncGetAttribute(int *value, int attribute, CuFunction f) {
  ENTER_CURRENT();
  (void)f;
  return *value = attribute == CU_FUNC_STATIC_SMEM ? 1024 : 10 + attribute, 0;
}
CuResult fake_cuFuncSetAttribute(CuFunction f, int attribute, int value) {
  ENTER_CURRENT();
  (void)f;
  if (attribute == CU_FUNC_LARGE_CLUSTER && value == 1) return fake.large_cluster++, 0;
  if (attribute != CU_FUNC_MAX_DYNAMIC_SMEM) return 1;
  return fake.smem_allowed = value, 0;
}
CuResult fake_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CuFunction f, int threads,
                                                          size_t smem) {
  ENTER_CURRENT();
  (void)f, (void)smem;
  return *blocks = 2048 / threads, 0;
}

CuResult fake_cuOccupancyMaxActiveClusters(int *clusters, CuFunction f, const CuLaunchConfig *c) {
  ENTER_CURRENT();
  if (!f || c->nattrs != 1 || c->attrs->id != CU_ATTR_CLUSTER_DIMENSION) return 1;
  fake.asked_cluster = c->attrs->value.cluster.x;
  fake.asked_threads = c->block[0] * c->block[1] * c->block[2];
  fake.asked_smem = c->smem_bytes;
  if (!c->grid[0] || c->grid[0] % fake.asked_cluster) return 1;
  return *clusters = fake.clusters, 0;
}

static void note_launch(CuFunction f, void **params, void **extra) {
  if (extra) abort(); // a packed buffer would have to follow the machine code's layout
  uint32_t at = 0;
  for (int i = 0; i < fake.nparams; i++) {
    if (at + fake.param_size[i] > sizeof fake.args) abort();
    memcpy(fake.args + at, params[i], fake.param_size[i]);
    at += fake.param_size[i];
  }
  fake.launches++;
  fake.captured += fake.capturing;
  fake.in_graph += fake.capturing;
  fake.ran += !fake.capturing;
  if (fake.run && !fake.capturing)
    fake.run(fake.run_ctx, &(FakeLaunch){.ptx = (const char *)f,
                                         .grid = fake.grid,
                                         .block = fake.block,
                                         .cluster = fake.cluster,
                                         .smem = fake.smem,
                                         .params = params});
}
CuResult fake_cuLaunchKernel(CuFunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                             unsigned by, unsigned bz, unsigned smem, CuStream s, void **params,
                             void **extra) {
  ENTER_CURRENT();
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  memcpy(fake.grid, grid, sizeof grid);
  memcpy(fake.block, block, sizeof block);
  memset(fake.cluster, 0, sizeof fake.cluster);
  fake.smem = smem;
  fake.stream = s;
  note_launch(f, params, extra);
  return 0;
}
CuResult fake_cuLaunchKernelEx(const CuLaunchConfig *c, CuFunction f, void **params, void **extra) {
  ENTER_CURRENT();
  memcpy(fake.grid, c->grid, sizeof c->grid);
  memcpy(fake.block, c->block, sizeof c->block);
  fake.serialize = 0;
  for (unsigned i = 0; i < c->nattrs; i++) {
    if (c->attrs[i].id == CU_ATTR_CLUSTER_DIMENSION)
      memcpy(fake.cluster, &c->attrs[i].value.cluster, sizeof fake.cluster);
    else if (c->attrs[i].id == CU_ATTR_PROGRAMMATIC_SERIALIZATION)
      fake.serialize = c->attrs[i].value.serialize;
  }
  fake.smem = c->smem_bytes;
  fake.stream = c->stream;
  note_launch(f, params, extra);
  return 0;
}

CuResult fake_cuEventCreate(CuEvent *e, unsigned flags) {
  ENTER_CURRENT();
  (void)flags;
  int i = fake.made_events++ % FAKE_EVENTS;
  fake.events++;
  fake.at[i] = 0;
  return *e = (CuEvent)(uintptr_t)(0x5000 + i), 0;
}
CuResult fake_cuEventDestroy(CuEvent e) {
  (void)e;
  return destroy(&fake.events, "cuEventDestroy");
}
CuResult fake_cuEventRecord(CuEvent e, CuStream s) {
  ENTER_CURRENT();
  (void)s;
  fake.at[(uintptr_t)e - 0x5000] = fake.ran + 1;
  return 0;
}
CuResult fake_cuEventSynchronize(CuEvent e) {
  ENTER_NOT_IN_CAPTURE();
  (void)e;
  return 0;
}
CuResult fake_cuEventElapsedTime(float *ms, CuEvent from, CuEvent to) {
  ENTER_CURRENT();
  int begun = fake.at[(uintptr_t)from - 0x5000], ended = fake.at[(uintptr_t)to - 0x5000];
  if (!begun || !ended) return 400; // never recorded
  return *ms = 1e-3f * FAKE_LAUNCH_US * (float)(ended - begun), 0;
}

CuResult fake_cuTensorMapEncodeTiled(CuTensorMap *map, int type, uint32_t rank, void *address,
                                     const uint64_t *dims, const uint64_t *strides,
                                     const uint32_t *box, const uint32_t *steps, int interleave,
                                     int swizzle, int l2, int fill) {
  ENTER_CURRENT();
  if ((uintptr_t)map % 64) return 1;
  fake.map.type = type, fake.map.rank = rank, fake.map.address = (uintptr_t)address;
  for (uint32_t i = 0; i < rank; i++) {
    fake.map.dims[i] = dims[i], fake.map.box[i] = box[i], fake.map.steps[i] = steps[i];
    if (i) fake.map.strides[i - 1] = strides[i - 1];
  }
  fake.map.interleave = interleave, fake.map.swizzle = swizzle;
  fake.map.l2 = l2, fake.map.fill = fill;
  for (int i = 0; i < 128; i++) map->bytes[i] = (uint8_t)(i + 1);
  return 0;
}

CuResult fake_cuStreamBeginCapture(CuStream s, int mode) {
  ENTER_CURRENT();
  if (mode != CU_CAPTURE_THREAD_LOCAL) return 1;
  fake.capturing = true;
  fake.capture_broken = false;
  fake.in_graph = 0;
  return fake.captured_stream = s, 0;
}
CuResult fake_cuStreamEndCapture(CuStream s, CuGraph *g) {
  fake.capturing = false;
  ENTER_CURRENT();
  if (s != fake.captured_stream || fake.capture_broken) return *g = NULL, 901;
  fake.graphs++;
  return *g = (CuGraph)(uintptr_t)(0x6000 + fake.in_graph), 0;
}
CuResult fake_cuGraphInstantiateWithFlags(CuGraphExec *e, CuGraph g, unsigned long long flags) {
  ENTER_CURRENT();
  (void)flags;
  fake.execs++;
  return *e = (CuGraphExec)((uintptr_t)g + 0x1000), 0;
}
CuResult fake_cuGraphLaunch(CuGraphExec e, CuStream s) {
  ENTER_CURRENT();
  (void)s;
  fake.ran += (int)((uintptr_t)e - 0x7000);
  return 0;
}
CuResult fake_cuGraphExecDestroy(CuGraphExec e) {
  (void)e;
  return destroy(&fake.execs, "cuGraphExecDestroy");
}
CuResult fake_cuGraphDestroy(CuGraph g) {
  (void)g;
  return destroy(&fake.graphs, "cuGraphDestroy");
}

// ---- how the functions are found ----------------------------------------------------------------
#ifdef FAKE_OLD
#define X(need, name, suffix, ...)                                                                 \
  extern CuResult old_##name(__VA_ARGS__) __asm__(#name suffix)                                    \
      __attribute__((alias("fake_" #name), visibility("default")));
CU_SYMBOLS(X)
#undef X
#else
EXPORT CuResult cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags,
                                    int *status);
CuResult cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags,
                             int *status) {
  static const struct { const char *name; void *fn; } table[] = {
#define X(need, name, suffix, ...) {#name, (void *)fake_##name},
      CU_SYMBOLS(X)
#undef X
  };
  *fn = NULL;
  *status = 1; // not found
  if (version != CU_API_VERSION || flags) return 1;
#ifdef FAKE_LACKS
  if (!strcmp(name, FAKE_LACKS)) return 500;
#endif
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i].name, name)) {
      *fn = table[i].fn;
      *status = 0;
    }
  return *fn ? 0 : 500;
}
#endif
