// Kernels on the CUDA device: loading PTX, what the driver says of it, launching.
#include "cu_device.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { JIT_LOG_BYTES = 64 * 1024 };

typedef struct JitLogs {
  char *info, *error;
} JitLogs;

static CuResult jit(CuDevice *cu, const Source *ptx, const JitLogs *logs, CuModule *out) {
  int opts[] = {CU_JIT_INFO_LOG, CU_JIT_INFO_LOG_BYTES, CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES,
                CU_JIT_LOG_VERBOSE};
  // Integers travel cast into the pointers; the driver writes the lengths it used back into them.
  void *values[] = {logs->info, (void *)(uintptr_t)(JIT_LOG_BYTES - 1), logs->error,
                    (void *)(uintptr_t)(JIT_LOG_BYTES - 1), (void *)(uintptr_t)1};
  assert(ptx->text[ptx->len] == 0); // the image ends at its NUL
  return cu->api.cuModuleLoadDataEx(out, ptx->text, sizeof opts / sizeof *opts, opts, values);
}

static Status too_new(CuDevice *cu, const Source *ptx, const PtxModule *module, Diag *d) {
  int has = module->version, takes = cu->base.info.ptx_version;
  const char *driver = cu_driver_for(has);
  return diag_fail(
      d, ST_DEVICE,
      "%s: loading %s: %s: the file says .version %d.%d, this driver takes %d.%d at most; lower "
      "the `ptx` of the template's target line, or the file's .version, to %d.%d, or install "
      "driver %s "
      "or newer",
      cu->base.info.id, ptx->name, cu_result_name(&cu->api, d->arena, CU_UNSUPPORTED_PTX_VERSION),
      has / 10, has % 10, takes / 10, takes % 10, takes / 10, takes % 10,
      driver ? driver : "of a later CUDA release");
}

static Status load_failed(CuDevice *cu, CuResult r, const Source *ptx, const LineMap *map,
                          const PtxModule *module, const char *error_log, Diag *d) {
  cu_jit_errors(error_log, ptx, map, d);
  if (r == CU_UNSUPPORTED_PTX_VERSION) return too_new(cu, ptx, module, d);
  return cu_failed(cu, r, d, "loading %s", ptx->name);
}

static Status read_function(CuDevice *cu, CuKernel *k, Diag *d) {
  int regs = 0, threads = 0, smem = 0, local = 0;
  const struct { int attribute; int *to; } wanted[] = {
      {CU_FUNC_REGS, &regs},
      {CU_FUNC_MAX_THREADS, &threads},
      {CU_FUNC_STATIC_SMEM, &smem},
      {CU_FUNC_LOCAL_BYTES, &local},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    CuResult r = cu->api.cuFuncGetAttribute(wanted[i].to, wanted[i].attribute, k->function);
    if (r) return cu_failed(cu, r, d, "reading attribute %d of %s", wanted[i].attribute, k->name);
  }
  k->base.info.regs = regs;
  k->base.info.max_threads = threads;
  k->base.info.static_smem = (uint32_t)smem;
  k->base.info.local_bytes = (uint32_t)local;
  return ST_OK;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static Status load_module(CuDevice *cu, CuKernel *k, const Source *ptx, const LineMap *map,
                          const PtxModule *module, Diag *d) {
  JitLogs logs = {calloc(JIT_LOG_BYTES, 1), calloc(JIT_LOG_BYTES, 1)};
  Status st = ST_OK;
  if (!logs.info || !logs.error)
    st = diag_fail(d, ST_DEVICE, "out of host memory");
  else {
    double start = now_ms();
    CuResult r = jit(cu, ptx, &logs, &k->module);
    k->base.info.load_ms = now_ms() - start;
    if (r) {
      k->module = NULL;
      st = load_failed(cu, r, ptx, map, module, logs.error, d);
    } else if (!(k->log = cu_jit_info(logs.info, ptx, map, d)))
      st = diag_fail(d, ST_DEVICE, "out of host memory");
  }
  free(logs.info);
  free(logs.error);
  k->base.info.log = k->log ? k->log : "";
  return st;
}

// Where each parameter lies in the packed block: the launch hands the driver one pointer each,
// since the machine code may lay them out otherwise (ptxas moves those with .align 64).
static Status read_params(CuKernel *k, const PtxModule *module, const PtxFunc *f, Diag *d) {
  if (f->nparams > CU_MAX_PARAMS)
    return diag_fail(d, ST_INPUT, "%s takes %d parameters; %d at most", f->name, f->nparams,
                     CU_MAX_PARAMS);
  k->param_at = calloc((size_t)f->nparams + 1, sizeof *k->param_at);
  if (!k->param_at) return diag_fail(d, ST_DEVICE, "out of host memory");
  for (int i = 0; i < f->nparams; i++) k->param_at[i] = module->vars[f->params[i]].offset;
  k->nparams = f->nparams;
  k->param_bytes = f->param_bytes;
  return ST_OK;
}

static Status read_entry(CuKernel *k, const Source *ptx, const PtxModule *module,
                         const char *entry, Diag *d) {
  const PtxFunc *f = ptx_entry(module, entry);
  if (!f && entry) return diag_fail(d, ST_INPUT, "%s: there is no .entry %s", ptx->name, entry);
  if (!f)
    return diag_fail(d, ST_INPUT, "%s: there is not exactly one .entry; name the one to load",
                     ptx->name);
  size_t n = strlen(f->name);
  if (n >= sizeof k->name)
    return diag_fail(d, ST_INPUT, "%s: the entry's name is too long", ptx->name);
  memcpy(k->name, f->name, n + 1);
  return read_params(k, module, f, d);
}

static void unlink_kernel(CuKernel *k) {
  *k->link = k->next;
  if (k->next) k->next->link = k->link;
}

static void link_kernel(CuDevice *cu, CuKernel *k) {
  k->next = cu->kernels;
  k->link = &cu->kernels;
  if (k->next) k->next->link = &k->next;
  cu->kernels = k;
}

static Status load_entry(CuDevice *cu, CuKernel *k, const Source *ptx, const LineMap *map,
                         const PtxModule *module, const char *entry, Diag *d) {
  Status st = read_entry(k, ptx, module, entry, d);
  if (!st) st = cu_enter(cu, CU_NOT_IN_CAPTURE, "loading a kernel", d);
  if (st) return st;
  st = load_module(cu, k, ptx, map, module, d);
  CuResult r = st ? CU_SUCCESS : cu->api.cuModuleGetFunction(&k->function, k->module, k->name);
  if (r) st = cu_failed(cu, r, d, "looking for entry %s in %s", k->name, ptx->name);
  if (!st) st = read_function(cu, k, d);
  cu_leave(cu);
  return st;
}

Status cu_load(Device *dev, const Source *ptx, const LineMap *map, const PtxModule *module,
               const char *entry, Kernel **out, Diag *d) {
  CuDevice *cu = cu_of(dev);
  *out = NULL;
  CuKernel *k = calloc(1, sizeof *k);
  if (!k) return diag_fail(d, ST_DEVICE, "out of host memory");
  k->base.dev = dev;
  link_kernel(cu, k);
  Arena *a = module ? NULL : arena_new();
  if (!module) module = ptx_parse(a, ptx, map, d);
  Status st = module ? load_entry(cu, k, ptx, map ? map : module->map, module, entry, d) : ST_INPUT;
  arena_free(a);
  if (st) {
    cu_kernel_free(&k->base);
    return st;
  }
  *out = &k->base;
  return ST_OK;
}

void cu_kernel_free(Kernel *kernel) {
  CuKernel *k = (CuKernel *)kernel;
  CuDevice *cu = cu_of(kernel->dev);
  if (k->module && !cu->api.cuCtxPushCurrent(cu->context)) {
    cu->api.cuModuleUnload(k->module);
    cu_leave(cu);
  }
  unlink_kernel(k);
  free(k->log);
  free(k->param_at);
  free(k);
}

// ---- launching ----------------------------------------------------------------------------------

// More than 48 KiB of dynamic shared memory has to be asked for, once per kernel.
static Status allow_smem(CuDevice *cu, CuKernel *k, uint32_t smem, Diag *d) {
  enum { FREE_OF_ASKING = 48 * 1024 };
  uint64_t all = (uint64_t)smem + k->base.info.static_smem;
  if (smem <= k->smem_allowed || all <= FREE_OF_ASKING) return ST_OK;
  uint32_t most = cu->base.info.smem_optin;
  if (all > most)
    return diag_fail(d, ST_DEVICE,
                     "%s: %s wants %llu bytes of shared memory (%u dynamic, %u static); a block "
                     "may have %u on this GPU",
                     cu->base.info.id, k->name, (unsigned long long)all, smem,
                     k->base.info.static_smem, most);
  CuResult r = cu->api.cuFuncSetAttribute(k->function, CU_FUNC_MAX_DYNAMIC_SMEM, (int)smem);
  if (r) return cu_failed(cu, r, d, "allowing %s %u bytes of shared memory", k->name, smem);
  k->smem_allowed = smem;
  return ST_OK;
}

// So have clusters of more blocks than every GPU with clusters takes.
static Status allow_cluster(CuDevice *cu, CuKernel *k, uint32_t blocks, Diag *d) {
  if (blocks <= CU_PORTABLE_CLUSTER || k->large_cluster) return ST_OK;
  CuResult r = cu->api.cuFuncSetAttribute(k->function, CU_FUNC_LARGE_CLUSTER, 1);
  if (r) return cu_failed(cu, r, d, "allowing %s clusters of %u blocks", k->name, blocks);
  k->large_cluster = true;
  return ST_OK;
}

Status cu_occupancy(Kernel *kernel, uint32_t threads, uint32_t smem, int *blocks, Diag *d) {
  CuKernel *k = (CuKernel *)kernel;
  CuDevice *cu = cu_of(kernel->dev);
  *blocks = 0;
  Status st = cu_enter(cu, CU_ANY_TIME, "asking for the occupancy", d);
  if (st) return st;
  if (!(st = allow_smem(cu, k, smem, d))) {
    CuResult r = cu->api.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, k->function,
                                                                     (int)threads, smem);
    if (r) st = cu_failed(cu, r, d, "asking for the occupancy of %s", k->name);
  }
  cu_leave(cu);
  return st;
}

static CuLaunchAttr cluster_attr(const uint32_t cluster[3]) {
  CuLaunchAttr attr = {.id = CU_ATTR_CLUSTER_DIMENSION};
  attr.value.cluster.x = cluster[0] ? cluster[0] : 1;
  attr.value.cluster.y = cluster[1] ? cluster[1] : 1;
  attr.value.cluster.z = cluster[2] ? cluster[2] : 1;
  return attr;
}

// The grid's size does not matter to the driver, but must be of whole clusters.
Status cu_clusters(Kernel *kernel, const uint32_t cluster[3], uint32_t threads, uint32_t smem,
                   int *n, Diag *d) {
  CuKernel *k = (CuKernel *)kernel;
  CuDevice *cu = cu_of(kernel->dev);
  *n = 0;
  if (!cu->api.cuOccupancyMaxActiveClusters) return ST_OK; // before r520: not known
  Status st = cu_enter(cu, CU_ANY_TIME, "asking for the clusters that run at once", d);
  if (st) return st;
  st = allow_smem(cu, k, smem, d);
  if (!st) st = allow_cluster(cu, k, dim3_product(cluster), d);
  if (!st) {
    CuLaunchAttr attr = cluster_attr(cluster);
    const CuLaunchConfig config = {
        .grid = {attr.value.cluster.x, attr.value.cluster.y, attr.value.cluster.z},
        .block = {threads, 1, 1}, .smem_bytes = smem, .attrs = &attr, .nattrs = 1};
    CuResult r = cu->api.cuOccupancyMaxActiveClusters(n, k->function, &config);
    if (r) st = cu_failed(cu, r, d, "asking how many clusters of %s run at once", k->name);
    else if (*n < 1)
      st = diag_fail(d, ST_DEVICE, "%s: no cluster of %u blocks of %s fits this GPU",
                     cu->base.info.id, dim3_product(cluster), k->name);
  }
  cu_leave(cu);
  return st;
}

static CuResult launch_with(CuDevice *cu, CuKernel *k, const Launch *l, bool cluster,
                            void **params) {
  CuLaunchAttr attrs[2];
  CuLaunchConfig config = {.smem_bytes = l->smem, .stream = cu->stream, .attrs = attrs};
  if (cluster)
    attrs[config.nattrs++] = cluster_attr(l->cluster);
  if (l->dependent)
    attrs[config.nattrs++] =
        (CuLaunchAttr){.id = CU_ATTR_PROGRAMMATIC_SERIALIZATION, .value.serialize = 1};
  memcpy(config.grid, l->grid, sizeof config.grid);
  memcpy(config.block, l->block, sizeof config.block);
  return cu->api.cuLaunchKernelEx(&config, k->function, params, NULL);
}

static CuResult launch(CuDevice *cu, CuKernel *k, const Launch *l, bool cluster) {
  void *params[CU_MAX_PARAMS];
  for (int i = 0; i < k->nparams; i++)
    params[i] = (uint8_t *)(uintptr_t)l->args + k->param_at[i]; // the driver only reads them
  if (cluster || l->dependent) return launch_with(cu, k, l, cluster, params);
  return cu->api.cuLaunchKernel(k->function, l->grid[0], l->grid[1], l->grid[2], l->block[0],
                                l->block[1], l->block[2], l->smem, cu->stream, params, NULL);
}

Status cu_launch(Device *dev, const Launch *l, Diag *d) {
  CuDevice *cu = cu_of(dev);
  CuKernel *k = (CuKernel *)l->kernel;
  if (!l->grid[0] || !l->grid[1] || !l->grid[2]) return ST_OK; // no work
  if (l->arg_bytes != k->param_bytes)
    return diag_fail(d, ST_INPUT, "launch: %u bytes of arguments, %s takes %llu", l->arg_bytes,
                     k->name, (unsigned long long)k->param_bytes);
  for (int i = 0; i < 3; i++)
    if (l->cluster[i] > CU_MOST_CLUSTER)
      return diag_fail(d, ST_INPUT, "launch: cluster.%c is %u: %d blocks in a cluster at most",
                       'x' + i, l->cluster[i], CU_MOST_CLUSTER);
  bool cluster = dim3_product(l->cluster) > 1;
  if (cluster && !cu->api.cuLaunchKernelEx)
    return diag_fail(d, ST_DEVICE, "%s: %s needs clusters, which this driver lacks (r520 has them)",
                     cu->base.info.id, k->name);
  if (l->dependent && !cu->api.cuLaunchKernelEx)
    return diag_fail(d, ST_DEVICE,
                     "%s: %s is to overlap the launch before it, which this driver lacks "
                     "(r520 has it)",
                     cu->base.info.id, k->name);
  Status st = cu_enter(cu, CU_ANY_TIME, "launching a kernel", d);
  if (st) return st;
  st = allow_smem(cu, k, l->smem, d);
  if (!st) st = allow_cluster(cu, k, dim3_product(l->cluster), d);
  if (!st) {
    CuResult r = launch(cu, k, l, cluster);
    if (r)
      st = cu_failed(cu, r, d, "launching %s with %u x %u x %u blocks of %u threads, %u bytes of "
                     "shared memory, %d registers", k->name, l->grid[0], l->grid[1], l->grid[2],
                     dim3_product(l->block), l->smem, k->base.info.regs);
  }
  cu_leave(cu);
  return st;
}
