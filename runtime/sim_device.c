// sim_device.c: the interpreter's side of device.h: buffers, graphs, options.
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim_count.h"
#include "sim_race.h"

// ---- buffers ------------------------------------------------------------------------------------
enum { MOST_IDS = (int)(SIM_WINDOW_SHARED >> SIM_ID_SHIFT) };

static uint32_t free_id(SimDevice *dev) {
  // Ids are not used again while others are left: a stale pointer must not find a new buffer.
  if (dev->nbuffers == MOST_IDS) {
    uint32_t id = 1;
    while (id < MOST_IDS && dev->buffers[id])
      id++;
    return id < MOST_IDS ? id : 0;
  }
  if (dev->nbuffers == dev->cap_buffers) {
    uint32_t cap = dev->cap_buffers ? dev->cap_buffers * 2 : 64;
    Buffer **grown = realloc(dev->buffers, cap * sizeof *grown);
    if (!grown)
      return 0;
    memset(grown + dev->cap_buffers, 0, (cap - dev->cap_buffers) * sizeof *grown);
    dev->buffers = grown;
    dev->cap_buffers = cap;
  }
  if (dev->nbuffers == 0)
    dev->nbuffers = 1; // 0 is no buffer
  return dev->nbuffers++;
}

Status sim_alloc(SimDevice *dev, uint64_t bytes, const char *what, bool is_const, Buffer **out,
                 Diag *d) {
  const DeviceInfo *info = &dev->base.info;
  uint64_t free_bytes = dev->used < info->memory_bytes ? info->memory_bytes - dev->used : 0;
  if (bytes > free_bytes || bytes > SIM_OFFSET_MASK)
    return diag_fail(d, ST_DEVICE, "sim: %s needs %llu bytes, %llu of %llu are free", what,
                     (unsigned long long)bytes, (unsigned long long)free_bytes,
                     (unsigned long long)info->memory_bytes);
  Buffer *b = calloc(1, sizeof *b);
  // Aligned as cuMemAlloc aligns; calloc leaves large ones to the kernel's zero pages.
  uint8_t *data = calloc(1, bytes + 256), *shadow = calloc(1, bytes ? bytes : 1);
  uint32_t id = b && data && shadow ? free_id(dev) : 0;
  if (!id) {
    free(b), free(data), free(shadow);
    return diag_fail(d, ST_DEVICE, "sim: out of host memory for %s (%llu bytes)", what,
                     (unsigned long long)bytes);
  }
  b->raw = data;
  b->mem = (Memory){.base = (uint64_t)id << SIM_ID_SHIFT, .bytes = bytes, .shadow = shadow};
  b->mem.data = (uint8_t *)(((uintptr_t)data + 255) & ~(uintptr_t)255);
  b->is_const = is_const;
  strncpy(b->name, what ? what : "", sizeof b->name - 1);
  dev->buffers[id] = b;
  dev->used += bytes;
  *out = b;
  return ST_OK;
}

void sim_free(SimDevice *dev, DevPtr p) {
  Buffer *b = sim_buffer(dev, p);
  assert(b && b->mem.base == p && "freed a pointer that device_alloc did not give");
  dev->buffers[p >> SIM_ID_SHIFT] = NULL;
  dev->used -= b->mem.bytes;
  free((void *)b->touched[0]), free((void *)b->touched[1]);
  if (b->cells)
    race_cells_free(b->cells);
  free(b->raw), free(b->mem.shadow), free(b->cells), free(b);
}

static Status op_alloc(Device *dev, uint64_t bytes, const char *what, DevPtr *out, Diag *d) {
  Buffer *b;
  Status st = sim_alloc(sim_of(dev), bytes, what, false, &b, d);
  if (st == ST_OK)
    *out = b->mem.base;
  return st;
}

static void op_free(Device *dev, DevPtr p) { sim_free(sim_of(dev), p); }

// The buffer that holds [at, at + bytes), or NULL with a message.
static Buffer *span(Device *dev, DevPtr at, uint64_t bytes, const char *verb, Diag *d) {
  Buffer *b = sim_buffer(sim_of(dev), at);
  if (!b) {
    diag_fail(d, ST_INPUT, "sim: %s at 0x%llx: no buffer there", verb, (unsigned long long)at);
    return NULL;
  }
  uint64_t offset = at & SIM_OFFSET_MASK;
  if (offset > b->mem.bytes || bytes > b->mem.bytes - offset) {
    diag_fail(d, ST_INPUT, "sim: %s of %llu bytes at offset %llu of \"%s\" (%llu bytes)", verb,
              (unsigned long long)bytes, (unsigned long long)offset, b->name,
              (unsigned long long)b->mem.bytes);
    return NULL;
  }
  race_settle(sim_of(dev)->race); // copies and fills come behind the launches before them
  return b;
}

static void mark_written(Memory *m, uint64_t offset, uint64_t bytes) {
  if (!m->shadow)
    return;
  if (bytes == m->bytes) {
    free(m->shadow);
    m->shadow = NULL;
  } else {
    memset(m->shadow + offset, 1, bytes);
  }
}

// The shadow of a buffer that had none: all of it is written.
static uint8_t *all_written(uint64_t bytes) {
  uint8_t *shadow = malloc(bytes);
  return shadow ? memset(shadow, SHADOW_WRITTEN, bytes) : NULL;
}

static Status op_write(Device *dev, DevPtr to, const void *from, uint64_t bytes, Diag *d) {
  Buffer *b = span(dev, to, bytes, "write", d);
  if (!b)
    return ST_INPUT;
  memcpy(b->mem.data + (to & SIM_OFFSET_MASK), from, bytes);
  mark_written(&b->mem, to & SIM_OFFSET_MASK, bytes);
  return ST_OK;
}

static Status op_read(Device *dev, void *to, DevPtr from, uint64_t bytes, Diag *d) {
  Buffer *b = span(dev, from, bytes, "read", d);
  if (!b)
    return ST_INPUT;
  memcpy(to, b->mem.data + (from & SIM_OFFSET_MASK), bytes);
  return ST_OK;
}

static Status op_copy(Device *dev, DevPtr to, DevPtr from, uint64_t bytes, Diag *d) {
  Buffer *src = span(dev, from, bytes, "copy", d);
  Buffer *dst = src ? span(dev, to, bytes, "copy", d) : NULL;
  if (!dst)
    return ST_INPUT;
  uint64_t at = to & SIM_OFFSET_MASK, src_at = from & SIM_OFFSET_MASK;
  memmove(dst->mem.data + at, src->mem.data + src_at, bytes);
  if (!src->mem.shadow) {
    mark_written(&dst->mem, at, bytes);
    return ST_OK;
  }
  if (!dst->mem.shadow && !(dst->mem.shadow = all_written(dst->mem.bytes)))
    return diag_fail(d, ST_DEVICE, "sim: out of host memory");
  // What was not written is not written in the copy.
  memmove(dst->mem.shadow + at, src->mem.shadow + src_at, bytes);
  return ST_OK;
}

static Status op_fill32(Device *dev, DevPtr to, uint32_t word, uint64_t bytes, Diag *d) {
  Buffer *b = span(dev, to, bytes, "fill", d);
  if (!b)
    return ST_INPUT;
  uint32_t *at = (uint32_t *)(b->mem.data + (to & SIM_OFFSET_MASK));
  for (uint64_t i = 0; i < bytes / 4; i++)
    at[i] = word;
  mark_written(&b->mem, to & SIM_OFFSET_MASK, bytes);
  return ST_OK;
}

static bool op_written(Device *dev, DevPtr p, uint64_t bytes, uint8_t *marks) {
  Buffer *b = sim_buffer(sim_of(dev), p);
  uint64_t at = p & SIM_OFFSET_MASK;
  if (!b || at > b->mem.bytes || bytes > b->mem.bytes - at)
    return false;
  if (!b->mem.shadow)
    memset(marks, 1, bytes);
  for (uint64_t i = 0; b->mem.shadow && i < bytes; i++)
    marks[i] = b->mem.shadow[at + i] & SHADOW_WRITTEN;
  return true;
}

// ---- launches and graphs ------------------------------------------------------------------------
// A graph is the list of its launches, each with its own copy of the arguments.
static Status capture(SimDevice *dev, const Launch *l, Diag *d) {
  Graph *g = dev->capture;
  if (g->n == g->cap) {
    int cap = g->cap ? g->cap * 2 : 8;
    Launch *grown = realloc(g->launches, (size_t)cap * sizeof *grown);
    if (!grown)
      return diag_fail(d, ST_DEVICE, "sim: out of host memory for a graph");
    g->launches = grown;
    g->cap = cap;
  }
  void *args = malloc(l->arg_bytes ? l->arg_bytes : 1);
  if (!args)
    return diag_fail(d, ST_DEVICE, "sim: out of host memory for a graph");
  if (l->arg_bytes)
    memcpy(args, l->args, l->arg_bytes);
  g->launches[g->n] = *l;
  g->launches[g->n++].args = args;
  return ST_OK;
}

static Status op_launch(Device *dev, const Launch *l, Diag *d) {
  SimDevice *sim = sim_of(dev);
  return sim->capture ? capture(sim, l, d) : sim_launch(sim, l, d);
}

static Status op_sync(Device *dev, Diag *d) { // launches are done when they return
  (void)d;
  race_settle(sim_of(dev)->race);
  return ST_OK;
}

static Status op_record(Device *dev, int slot, Diag *d) {
  (void)dev, (void)slot, (void)d;
  return ST_OK;
}

static Status op_elapsed(Device *dev, int from, int to, double *ms, Diag *d) {
  (void)dev, (void)from, (void)to;
  *ms = 0;
  return diag_fail(d, ST_DEVICE, "sim measures no times");
}

static Status op_graph_begin(Device *dev, Diag *d) {
  SimDevice *sim = sim_of(dev);
  if (sim->capture)
    return diag_fail(d, ST_INPUT, "sim: a graph is being captured already");
  sim->capture = calloc(1, sizeof *sim->capture);
  return sim->capture ? ST_OK : diag_fail(d, ST_DEVICE, "sim: out of host memory for a graph");
}

static Status op_graph_end(Device *dev, Graph **out, Diag *d) {
  SimDevice *sim = sim_of(dev);
  if (!sim->capture)
    return diag_fail(d, ST_INPUT, "sim: no graph is being captured");
  *out = sim->capture;
  sim->capture = NULL;
  return ST_OK;
}

static Status op_graph_launch(Device *dev, Graph *g, Diag *d) {
  for (int i = 0; i < g->n; i++) {
    Status st = op_launch(dev, &g->launches[i], d);
    if (st != ST_OK)
      return st;
  }
  return ST_OK;
}

static void op_graph_free(Device *dev, Graph *g) {
  (void)dev;
  for (int i = 0; i < g->n; i++)
    free((void *)g->launches[i].args);
  free(g->launches);
  free(g);
}

// ---- options, counters, opening and closing -----------------------------------------------------
static void op_counters(Device *dev, Counters *out, bool reset) {
  SimDevice *sim = sim_of(dev);
  *out = sim->count;
  if (reset)
    sim_count_reset(sim);
}

static void op_sim_opts(Device *dev, const SimOpts *o) {
  SimDevice *sim = sim_of(dev);
  sim->opts = *o;
  const LaneIsa *isa = o->isa ? lane_isa(o->isa) : NULL;
  sim->isa = isa ? isa : lane_isa(NULL);
  sim->opts.isa = sim->isa->name;
}

static void op_close(Device *dev) {
  SimDevice *sim = sim_of(dev);
  while (sim->kernels)
    sim_kernel_free(&sim->kernels->base);
  for (uint32_t i = 1; i < sim->nbuffers; i++)
    if (sim->buffers[i])
      sim_free(sim, sim->buffers[i]->mem.base);
  if (sim->capture)
    op_graph_free(dev, sim->capture);
  race_free(sim->race);
  sim_pool_free(sim->pool);
  pthread_mutex_destroy(&sim->wide);
  free(sim->buffers);
  free(sim);
}

static const DeviceOps sim_ops = {
    .close = op_close,
    .alloc = op_alloc,
    .free = op_free,
    .write = op_write,
    .read = op_read,
    .copy = op_copy,
    .fill32 = op_fill32,
    .written = op_written,
    .load = sim_load,
    .kernel_free = sim_kernel_free,
    .launch = op_launch,
    .sync = op_sync,
    .record = op_record,
    .elapsed = op_elapsed,
    .graph_begin = op_graph_begin,
    .graph_end = op_graph_end,
    .graph_launch = op_graph_launch,
    .graph_free = op_graph_free,
    .tensor_map = sim_tensor_map,
    .counters = op_counters,
    .kernel_counts = sim_kernel_counts,
    .sim_opts = op_sim_opts,
};

Status sim_open(Device **out, Diag *d) {
  SimDevice *sim = calloc(1, sizeof *sim);
  if (!sim)
    return diag_fail(d, ST_DEVICE, "sim: out of host memory");
  sim->base.ops = &sim_ops;
  // Limits are those of sm_90, so that what fits here fits there; SMs as an H200 has them, so that
  // a persistent kernel is as many blocks as there.
  sim->base.info = (DeviceInfo){.name = "sim", .id = "sim", .is_sim = true, .sm = 90,
                                .sm_suffix = 'a', .sm_count = 132, .smem_per_block = 49152,
                                .smem_optin = 232448, .smem_per_sm = 233472, .regs_per_sm = 65536,
                                .threads_per_sm = 2048, .ptx_version = 90};
  sim->base.info.memory_bytes =
      (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  sim->base.info.memory_free = sim->base.info.memory_bytes;
  pthread_mutex_init(&sim->wide, NULL);
  sim->isa = lane_isa(NULL);
  sim->pool = sim_pool_new();
  *out = &sim->base;
  return ST_OK;
}
