// device.c: chooses an implementation by its spec and dispatches to it.
#include <stdlib.h>
#include <string.h>

#include "device.h"

static Status open_cuda(const char *spec, Device **out, Diag *d) {
  const char *digits = spec + strlen("cuda:");
  char *end;
  long index = strtol(digits, &end, 10);
  if (*digits < '0' || *digits > '9' || *end || index > 1023)
    return diag_fail(d, ST_INPUT, "device \"%s\": cuda:N takes a device number", spec);
  return cuda_open((int)index, out, d);
}

// A GPU if there is one.  Why there is none is no news here: the messages go nowhere.
static Status open_auto(Device **out, Diag *d) {
  Diag *quiet = diag_new();
  bool found = cuda_device_count(quiet) > 0 && cuda_open(0, out, quiet) == ST_OK;
  diag_free(quiet);
  return found ? ST_OK : sim_open(out, d);
}

Status device_open(const char *spec, Device **out, Diag *d) {
  *out = NULL;
  if (!strcmp(spec, "auto"))
    return open_auto(out, d);
  if (!strcmp(spec, "sim"))
    return sim_open(out, d);
  if (!strncmp(spec, "cuda:", 5))
    return open_cuda(spec, out, d);
  if (!strcmp(spec, "cuda"))
    return cuda_open(0, out, d);
  return diag_fail(d, ST_INPUT, "no device \"%s\": auto, sim or cuda:N", spec);
}

void device_close(Device *dev) {
  if (!dev)
    return;
  if (dev->bench_free)
    dev->bench_free(dev);
  dev->ops->close(dev);
}

const DeviceInfo *device_info(const Device *dev) { return &dev->info; }
bool device_alive(const Device *dev) { return !dev->dead; }

// ---- memory ------------------------------------------------------------------------------------
Status device_alloc(Device *dev, uint64_t bytes, const char *what, DevPtr *out, Diag *d) {
  *out = 0;
  return dev->ops->alloc(dev, bytes, what, out, d);
}

void device_free(Device *dev, DevPtr p) {
  if (p)
    dev->ops->free(dev, p);
}

Status device_write(Device *dev, DevPtr to, const void *from, uint64_t bytes, Diag *d) {
  return bytes ? dev->ops->write(dev, to, from, bytes, d) : ST_OK;
}

Status device_read(Device *dev, void *to, DevPtr from, uint64_t bytes, Diag *d) {
  return bytes ? dev->ops->read(dev, to, from, bytes, d) : ST_OK;
}

Status device_copy(Device *dev, DevPtr to, DevPtr from, uint64_t bytes, Diag *d) {
  return bytes ? dev->ops->copy(dev, to, from, bytes, d) : ST_OK;
}

bool device_written(Device *dev, DevPtr p, uint64_t bytes, uint8_t *marks) {
  return dev->ops->written && dev->ops->written(dev, p, bytes, marks);
}

Status device_fill32(Device *dev, DevPtr to, uint32_t word, uint64_t bytes, Diag *d) {
  if (bytes % 4 || to % 4)
    return diag_fail(d, ST_INPUT, "%s: fill of %llu bytes at 0x%llx: whole words only",
                     dev->info.id, (unsigned long long)bytes, (unsigned long long)to);
  return bytes ? dev->ops->fill32(dev, to, word, bytes, d) : ST_OK;
}

// ---- kernels -----------------------------------------------------------------------------------
Status device_load(Device *dev, const Variant *v, Kernel **out, Diag *d) {
  *out = NULL;
  Status st = dev->ops->load(dev, v->ptx, &v->map, v->module, v->entry->name, out, d);
  if (st || !dev->ops->occupancy)
    return st;
  uint32_t threads = dim3_product(v->launch.block), smem = v->launch.smem_bytes;
  st = dev->ops->occupancy(*out, threads, smem, &(*out)->info.blocks_per_sm, d);
  if (!st && dev->ops->clusters && dim3_product(v->launch.cluster) > 1)
    st = dev->ops->clusters(*out, v->launch.cluster, threads, smem, &(*out)->info.clusters, d);
  if (st) {
    kernel_free(*out);
    *out = NULL;
  }
  return st;
}

Status device_load_ptx(Device *dev, const Source *ptx, const LineMap *map, const char *entry,
                       Kernel **out, Diag *d) {
  *out = NULL;
  return dev->ops->load(dev, ptx, map, NULL, entry, out, d);
}

void kernel_free(Kernel *k) {
  if (k)
    k->dev->ops->kernel_free(k);
}

const KernelInfo *kernel_info(const Kernel *k) { return &k->info; }

Status device_launch(Device *dev, const Launch *l, Diag *d) { return dev->ops->launch(dev, l, d); }
Status device_sync(Device *dev, Diag *d) { return dev->ops->sync(dev, d); }

Status device_set_stream(Device *dev, void *cu_stream, Diag *d) {
  if (!dev->ops->set_stream)
    return diag_fail(d, ST_INPUT, "%s has no streams", dev->info.id);
  return dev->ops->set_stream(dev, cu_stream, d);
}

// ---- events and graphs -------------------------------------------------------------------------
static Status bad_slot(int slot, Diag *d) {
  return diag_fail(d, ST_INPUT, "event %d: there are %d", slot, DEVICE_EVENTS);
}

Status device_record(Device *dev, int slot, Diag *d) {
  if (slot < 0 || slot >= DEVICE_EVENTS)
    return bad_slot(slot, d);
  return dev->ops->record(dev, slot, d);
}

Status device_elapsed(Device *dev, int from, int to, double *ms, Diag *d) {
  if (from < 0 || from >= DEVICE_EVENTS)
    return bad_slot(from, d);
  if (to < 0 || to >= DEVICE_EVENTS)
    return bad_slot(to, d);
  return dev->ops->elapsed(dev, from, to, ms, d);
}

Status device_graph_begin(Device *dev, Diag *d) { return dev->ops->graph_begin(dev, d); }

Status device_graph_end(Device *dev, Graph **out, Diag *d) {
  *out = NULL;
  return dev->ops->graph_end(dev, out, d);
}

Status device_graph_launch(Device *dev, Graph *g, Diag *d) {
  return dev->ops->graph_launch(dev, g, d);
}

void device_graph_free(Device *dev, Graph *g) {
  if (g)
    dev->ops->graph_free(dev, g);
}

// ---- sim only ----------------------------------------------------------------------------------
void device_counters(Device *dev, Counters *out, bool reset) {
  memset(out, 0, sizeof *out);
  if (dev->ops->counters)
    dev->ops->counters(dev, out, reset);
}

const char *const flop_kind_name[FLOP_KIND_COUNT] = {
#define X(id, name) name,
    FLOP_KINDS(X)
#undef X
};

bool kernel_counts(Kernel *k, KernelCounts *out) {
  const DeviceOps *ops = k->dev->ops;
  return ops->kernel_counts && ops->kernel_counts(k, out);
}

void device_sim_opts(Device *dev, const SimOpts *o) {
  if (dev->ops->sim_opts)
    dev->ops->sim_opts(dev, o);
}
