// The CUDA device: contexts, buffers, copies.
#include "cu_device.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- context on this thread, errors -------------------------------------------------------------

Status cu_enter(CuDevice *cu, CuWhen when, const char *what, Diag *d) {
  if (cu->base.dead)
    return diag_fail(d, ST_DEVICE, "%s: %s is lost since this error: %s; open it again", what,
                     cu->base.info.id, cu->death);
  if (cu->capturing && when == CU_NOT_IN_CAPTURE)
    return diag_fail(d, ST_DEVICE, "%s: not while a graph is being captured", what);
  CuResult r = cu->api.cuCtxPushCurrent(cu->context);
  return r ? cu_failed(cu, r, d, "%s", what) : ST_OK;
}

void cu_leave(CuDevice *cu) {
  CuContext ours;
  cu->api.cuCtxPopCurrent(&ours);
}

Status cu_failed(CuDevice *cu, CuResult r, Diag *d, const char *what, ...) {
  va_list ap;
  va_start(ap, what);
  char *doing = arena_vprintf(d->arena, what, ap);
  va_end(ap);
  if (cu_sticky(r) && !cu->base.dead) {
    cu->base.dead = true;
    snprintf(cu->death, sizeof cu->death, "%s: %s", doing,
             cu_result_name(&cu->api, d->arena, r));
  }
  return cu_result(&cu->api, r, d, "%s: %s", cu->base.info.id, doing);
}

// ---- buffers ------------------------------------------------------------------------------------

static bool remember(CuDevice *cu, CuPtr p) {
  if (cu->nbuffers == cu->buffers_cap) {
    int cap = cu->buffers_cap ? 2 * cu->buffers_cap : 64;
    CuPtr *grown = realloc(cu->buffers, sizeof *grown * (size_t)cap);
    if (!grown) return false;
    cu->buffers = grown;
    cu->buffers_cap = cap;
  }
  cu->buffers[cu->nbuffers++] = p;
  return true;
}

static double gib(uint64_t bytes) { return (double)bytes / (double)(1u << 30); }

static Status check_room(CuDevice *cu, uint64_t bytes, const char *what, Diag *d) {
  size_t free_bytes = 0, total = 0;
  CuResult r = cu->api.cuMemGetInfo(&free_bytes, &total);
  if (r) return cu_failed(cu, r, d, "asking for free memory");
  cu->base.info.memory_free = free_bytes;
  if (bytes <= free_bytes) return ST_OK;
  return diag_fail(d, ST_DEVICE,
                   "%s: not enough memory for %s: %.3f GiB (%llu bytes) needed, %.3f GiB free of "
                   "%.3f GiB; nothing was allocated",
                   cu->base.info.id, what, gib(bytes), (unsigned long long)bytes, gib(free_bytes),
                   gib(total));
}

static Status cu_alloc(Device *dev, uint64_t bytes, const char *what, DevPtr *out, Diag *d) {
  CuDevice *cu = cu_of(dev);
  *out = 0;
  Status st = cu_enter(cu, CU_NOT_IN_CAPTURE, "allocating memory", d);
  if (st) return st;
  CuPtr p = 0;
  if (!(st = check_room(cu, bytes, what, d))) {
    CuResult r = cu->api.cuMemAlloc(&p, bytes ? bytes : 1); // an empty tensor has an address too
    if (r)
      st = cu_failed(cu, r, d, "allocating %llu bytes for %s", (unsigned long long)bytes, what);
    else if (!remember(cu, p)) {
      cu->api.cuMemFree(p);
      st = diag_fail(d, ST_DEVICE, "out of host memory");
    } else
      *out = p;
  }
  cu_leave(cu);
  return st;
}

static void cu_free(Device *dev, DevPtr p) {
  CuDevice *cu = cu_of(dev);
  if (!p) return;
  int i = 0;
  while (i < cu->nbuffers && cu->buffers[i] != p) i++;
  assert(i < cu->nbuffers && "not a buffer of this device");
  cu->buffers[i] = cu->buffers[--cu->nbuffers];
  if (cu->base.dead || cu->api.cuCtxPushCurrent(cu->context)) return;
  cu->api.cuMemFree(p);
  cu_leave(cu);
}

// ---- copies: in the stream's order, done when they return ---------------------------------------

static Status finish_copy(CuDevice *cu, CuResult r, const char *what, uint64_t bytes, Diag *d) {
  if (!r) r = cu->api.cuStreamSynchronize(cu->stream);
  Status st =
      r ? cu_failed(cu, r, d, "%s %llu bytes", what, (unsigned long long)bytes) : ST_OK;
  cu_leave(cu);
  return st;
}

static Status cu_write(Device *dev, DevPtr to, const void *from, uint64_t bytes, Diag *d) {
  CuDevice *cu = cu_of(dev);
  if (!bytes) return ST_OK;
  Status st = cu_enter(cu, CU_NOT_IN_CAPTURE, "writing to the device", d);
  if (st) return st;
  CuResult r = cu->api.cuMemcpyHtoDAsync(to, from, bytes, cu->stream);
  return finish_copy(cu, r, "writing", bytes, d);
}

static Status cu_read(Device *dev, void *to, DevPtr from, uint64_t bytes, Diag *d) {
  CuDevice *cu = cu_of(dev);
  if (!bytes) return ST_OK;
  Status st = cu_enter(cu, CU_NOT_IN_CAPTURE, "reading from the device", d);
  if (st) return st;
  CuResult r = cu->api.cuMemcpyDtoHAsync(to, from, bytes, cu->stream);
  return finish_copy(cu, r, "reading", bytes, d);
}

static Status cu_copy(Device *dev, DevPtr to, DevPtr from, uint64_t bytes, Diag *d) {
  CuDevice *cu = cu_of(dev);
  if (!bytes) return ST_OK;
  Status st = cu_enter(cu, CU_NOT_IN_CAPTURE, "copying on the device", d);
  if (st) return st;
  CuResult r = cu->api.cuMemcpyDtoDAsync(to, from, bytes, cu->stream);
  return finish_copy(cu, r, "copying", bytes, d);
}

static Status cu_fill32(Device *dev, DevPtr to, uint32_t word, uint64_t bytes, Diag *d) {
  CuDevice *cu = cu_of(dev);
  if (!bytes) return ST_OK;
  Status st = cu_enter(cu, CU_NOT_IN_CAPTURE, "filling device memory", d);
  if (st) return st;
  CuResult r = cu->api.cuMemsetD32Async(to, word, bytes / 4, cu->stream);
  return finish_copy(cu, r, "filling", bytes, d);
}

static Status cu_sync(Device *dev, Diag *d) {
  CuDevice *cu = cu_of(dev);
  Status st = cu_enter(cu, CU_NOT_IN_CAPTURE, "waiting for the device", d);
  if (st) return st;
  CuResult r = cu->api.cuStreamSynchronize(cu->stream);
  if (r) st = cu_failed(cu, r, d, "waiting for the kernels launched");
  cu_leave(cu);
  return st;
}

static Status cu_set_stream(Device *dev, void *stream, Diag *d) {
  CuDevice *cu = cu_of(dev);
  if (!cu->adopted)
    return diag_fail(d, ST_INPUT, "%s was opened, not adopted: it keeps its own stream",
                     dev->info.id);
  if (cu->capturing)
    return diag_fail(d, ST_INPUT, "%s: the stream can't change while a graph is captured",
                     dev->info.id);
  cu->stream = stream;
  return ST_OK;
}

static Status cu_tensor_map(Device *dev, const TensorMapDesc *m, void *map, Diag *d) {
  CuDevice *cu = cu_of(dev);
  if (!cu->api.cuTensorMapEncodeTiled)
    return diag_fail(d, ST_DEVICE, "%s: tensor maps need a driver of CUDA 12", cu->base.info.id);
  Status st = cu_enter(cu, CU_ANY_TIME, "making a tensor map", d);
  if (st) return st;
  CuTensorMap made;
  uint32_t step[5];
  for (int i = 0; i < 5; i++) step[i] = m->step[i] ? m->step[i] : 1;
  CuResult r = cu->api.cuTensorMapEncodeTiled(
      &made, m->type, m->rank, (void *)(uintptr_t)m->address, m->dim, m->stride, m->box, step,
      m->interleave, m->swizzle, m->l2, m->fill);
  if (r)
    st = cu_failed(cu, r, d, "making a tensor map");
  else
    memcpy(map, &made, sizeof made);
  cu_leave(cu);
  return st;
}

// ---- open and close -----------------------------------------------------------------------------

static void cu_close(Device *dev) {
  CuDevice *cu = cu_of(dev);
  // After a sticky error the calls below fail and change nothing; the host side is freed anyway.
  bool current = cu->context && !cu->api.cuCtxPushCurrent(cu->context);
  if (current && cu->stream) cu->api.cuStreamSynchronize(cu->stream);
  while (cu->graphs) cu_graph_free(dev, cu->graphs);
  while (cu->kernels) cu_kernel_free(&cu->kernels->base);
  cu_events_free(cu);
  for (int i = 0; i < cu->nbuffers; i++) cu->api.cuMemFree(cu->buffers[i]);
  free(cu->buffers);
  if (cu->stream && !cu->adopted) cu->api.cuStreamDestroy(cu->stream);
  if (current) cu_leave(cu);
  if (cu->context && !cu->adopted) cu->api.cuDevicePrimaryCtxRelease(cu->id);
  free(cu);
}

static const DeviceOps cuda_ops = {
    .close = cu_close,
    .alloc = cu_alloc,
    .free = cu_free,
    .write = cu_write,
    .read = cu_read,
    .copy = cu_copy,
    .fill32 = cu_fill32,
    .load = cu_load,
    .kernel_free = cu_kernel_free,
    .occupancy = cu_occupancy,
    .clusters = cu_clusters,
    .launch = cu_launch,
    .sync = cu_sync,
    .set_stream = cu_set_stream,
    .record = cu_record,
    .elapsed = cu_elapsed,
    .graph_begin = cu_graph_begin,
    .graph_end = cu_graph_end,
    .graph_launch = cu_graph_launch,
    .graph_free = cu_graph_free,
    .tensor_map = cu_tensor_map,
};

// The kernel module's version, which is the driver's: the driver API only tells the CUDA version.
static void driver_release(char *out, size_t cap) {
  FILE *f = fopen("/proc/driver/nvidia/version", "r");
  char line[256] = "";
  *out = 0;
  if (!f) return;
  if (!fgets(line, sizeof line, f)) line[0] = 0;
  fclose(f);
  char *save = NULL;
  for (char *w = strtok_r(line, " \t\n", &save); w; w = strtok_r(NULL, " \t\n", &save))
    if (strchr(w, '.') && w[strspn(w, "0123456789.")] == 0) {
      snprintf(out, cap, "%s", w);
      return;
    }
}

static Status read_attributes(CuDevice *cu, Diag *d) {
  DeviceInfo *info = &cu->base.info;
  int major = 0, minor = 0, smem = 0, optin = 0, per_sm = 0, regs = 0, threads = 0, l2 = 0;
  const struct { int attribute; int *to; } wanted[] = {
      {CU_DEV_SM_MAJOR, &major},         {CU_DEV_SM_MINOR, &minor},
      {CU_DEV_SM_COUNT, &info->sm_count}, {CU_DEV_CLOCK_KHZ, &info->clock_khz},
      {CU_DEV_SMEM_PER_BLOCK, &smem},    {CU_DEV_SMEM_OPTIN, &optin},
      {CU_DEV_SMEM_PER_SM, &per_sm},     {CU_DEV_REGS_PER_SM, &regs},
      {CU_DEV_THREADS_PER_SM, &threads}, {CU_DEV_L2_BYTES, &l2},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    CuResult r = cu->api.cuDeviceGetAttribute(wanted[i].to, wanted[i].attribute, cu->id);
    if (r) return cu_failed(cu, r, d, "reading device attribute %d", wanted[i].attribute);
  }
  info->sm = 10 * major + minor;
  info->sm_suffix = info->sm >= 90 ? 'a' : 0;
  info->smem_per_block = (uint32_t)smem;
  info->smem_optin = (uint32_t)optin;
  info->smem_per_sm = (uint32_t)per_sm;
  info->regs_per_sm = (uint32_t)regs;
  info->threads_per_sm = (uint32_t)threads;
  info->l2_bytes = (uint64_t)l2;
  return ST_OK;
}

static Status read_info(CuDevice *cu, Diag *d) {
  DeviceInfo *info = &cu->base.info;
  Status st = read_attributes(cu, d);
  if (st) return st;
  size_t total = 0;
  CuResult r = cu->api.cuDeviceGetName(info->name, sizeof info->name, cu->id);
  if (!r) r = cu->api.cuDeviceTotalMem(&total, cu->id);
  if (!r) r = cu->api.cuDriverGetVersion(&info->driver_version);
  if (r) return cu_failed(cu, r, d, "reading the device's properties");
  info->memory_bytes = total;
  info->ptx_version = ptx_version_of_driver(info->driver_version);
  driver_release(info->driver, sizeof info->driver);
  return ST_OK;
}

static Status find_device(CuDevice *cu, int index, Diag *d) {
  int n = 0;
  CuResult r = cu->api.cuDeviceGetCount(&n);
  if (r) return cu_result(&cu->api, r, d, "counting GPUs");
  if (!n) return cu_result(&cu->api, CU_NO_DEVICE, d, "opening cuda:%d", index);
  if (index < 0 || index >= n)
    return diag_fail(d, ST_DEVICE, "there is no cuda:%d; this machine has cuda:0%s%s", index,
                     n > 1 ? " to cuda:" : "",
                     n > 1 ? arena_printf(d->arena, "%d", n - 1) : " only");
  r = cu->api.cuDeviceGet(&cu->id, index);
  return r ? cu_result(&cu->api, r, d, "opening cuda:%d", index) : ST_OK;
}

static CuDevice *cu_new(const char *path, Status *st, Diag *d) {
  CuDevice *cu = calloc(1, sizeof *cu);
  if (!cu) {
    *st = diag_fail(d, ST_DEVICE, "out of host memory");
    return NULL;
  }
  cu->base.ops = &cuda_ops;
  if ((*st = cu_api_open(path, &cu->api, d))) {
    free(cu);
    return NULL;
  }
  return cu;
}

static Status read_free_memory(CuDevice *cu, Diag *d) {
  Status st = cu_enter(cu, CU_ANY_TIME, "asking for free memory", d);
  if (st) return st;
  st = check_room(cu, 0, "nothing", d);
  cu_leave(cu);
  return st;
}

static Status open_context(CuDevice *cu, int index, Diag *d) {
  Status st = find_device(cu, index, d);
  if (st) return st;
  snprintf(cu->base.info.id, sizeof cu->base.info.id, "cuda:%d", index);
  if ((st = read_info(cu, d))) return st;
  CuResult r = cu->api.cuDevicePrimaryCtxRetain(&cu->context, cu->id);
  if (r) {
    cu->context = NULL;
    return cu_failed(cu, r, d, "retaining the primary context");
  }
  if ((st = cu_enter(cu, CU_ANY_TIME, "creating a stream", d))) return st;
  if ((r = cu->api.cuStreamCreate(&cu->stream, CU_STREAM_NON_BLOCKING))) {
    cu->stream = NULL;
    st = cu_failed(cu, r, d, "creating a stream");
  }
  cu_leave(cu);
  return st ? st : read_free_memory(cu, d);
}

Status cu_open(const char *path, int index, Device **out, Diag *d) {
  Status st;
  *out = NULL;
  CuDevice *cu = cu_new(path, &st, d);
  if (!cu) return st;
  if ((st = open_context(cu, index, d))) {
    cu_close(&cu->base);
    return st;
  }
  *out = &cu->base;
  return ST_OK;
}

static Status take_context(CuDevice *cu, Diag *d) {
  snprintf(cu->base.info.id, sizeof cu->base.info.id, "cuda");
  Status st = cu_enter(cu, CU_ANY_TIME, "adopting a context", d);
  if (st) return st;
  CuResult r = cu->api.cuCtxGetDevice(&cu->id);
  cu_leave(cu);
  if (r) return cu_failed(cu, r, d, "asking the adopted context for its device");
  snprintf(cu->base.info.id, sizeof cu->base.info.id, "cuda:%d", cu->id);
  if ((st = read_info(cu, d))) return st;
  return read_free_memory(cu, d);
}

Status cu_adopt(const char *path, void *context, void *stream, Device **out, Diag *d) {
  Status st;
  *out = NULL;
  if (!context) return diag_fail(d, ST_INPUT, "the CUDA context to adopt is NULL");
  CuDevice *cu = cu_new(path, &st, d);
  if (!cu) return st;
  cu->context = context;
  cu->stream = stream;
  cu->adopted = true;
  if ((st = take_context(cu, d))) {
    cu_close(&cu->base);
    return st;
  }
  *out = &cu->base;
  return ST_OK;
}

Status cuda_open(int index, Device **out, Diag *d) { return cu_open(NULL, index, out, d); }

Status device_adopt(void *cu_context, void *cu_stream, Device **out, Diag *d) {
  return cu_adopt(NULL, cu_context, cu_stream, out, d);
}

int cuda_device_count(Diag *d) {
  CuApi api;
  int n = 0;
  if (cu_api_open(NULL, &api, d)) return 0;
  CuResult r = api.cuDeviceGetCount(&n);
  if (r) cu_result(&api, r, d, "counting GPUs");
  return r ? 0 : n;
}
