// Kernels of the fake driver run on the interpreter: a GPU that answers rightly and counts.
#ifndef PTXSMITH_TESTS_FAKE_RUN_H
#define PTXSMITH_TESTS_FAKE_RUN_H

#include "cu_kit.h"

typedef struct FakeRun {
  FakeCuda *fake;
  Device *sim;
} FakeRun;

// A pointer into a buffer of the fake driver becomes one into its copy.
typedef struct FakeCopy {
  CuPtr from;
  size_t bytes;
  DevPtr at;
} FakeCopy;

static inline DevPtr fake_copied(FakeRun *r, FakeCopy *c, int *n, uint64_t p, Diag *d) {
  for (int i = 0; i < FAKE_BUFFERS; i++) {
    CuPtr at = r->fake->buffer[i].at;
    size_t bytes = r->fake->buffer[i].bytes;
    if (!at || p < at || p >= at + bytes) continue;
    for (int k = 0; k < *n; k++)
      if (c[k].from == at) return c[k].at + (p - at);
    FakeCopy *own = &c[(*n)++];
    *own = (FakeCopy){.from = at, .bytes = bytes};
    if (device_alloc(r->sim, bytes, "a copy", &own->at, d) ||
        device_write(r->sim, own->at, (void *)(uintptr_t)at, bytes, d))
      fail_msg("%s", diag_text(d));
    return own->at + (p - at);
  }
  return p;
}

static inline void fake_run(void *ctx, const FakeLaunch *l) {
  FakeRun *r = ctx;
  Arena *a = arena_new();
  Diag *d = diag_new();
  Kernel *k;
  Source *ptx = source_of(a, l->ptx);
  const PtxModule *m = ptx_parse(a, ptx, NULL, d);
  const PtxFunc *f = m ? ptx_entry(m, NULL) : NULL;
  if (!f || device_load_ptx(r->sim, ptx, NULL, NULL, &k, d)) fail_msg("%s", diag_text(d));
  uint8_t *args = arena_alloc(a, f->param_bytes);
  FakeCopy copy[32];
  int n = 0;
  for (int i = 0; i < f->nparams; i++) {
    uint32_t at = m->vars[f->params[i]].offset;
    uint32_t end = i + 1 < f->nparams ? m->vars[f->params[i + 1]].offset : f->param_bytes;
    uint64_t value = 0;
    memcpy(&value, l->params[i], end - at < 8 ? end - at : 8);
    if (end - at >= 8) value = fake_copied(r, copy, &n, value, d);
    memcpy(args + at, &value, end - at < 8 ? end - at : 8);
  }
  Launch launch = {.kernel = k, .smem = l->smem, .args = args, .arg_bytes = f->param_bytes};
  for (int i = 0; i < 3; i++) {
    launch.grid[i] = l->grid[i];
    launch.block[i] = l->block[i];
    launch.cluster[i] = l->cluster[i] ? l->cluster[i] : 1;
  }
  if (device_launch(r->sim, &launch, d) || device_sync(r->sim, d)) fail_msg("%s", diag_text(d));
  for (int i = 0; i < n; i++) {
    if (device_read(r->sim, (void *)(uintptr_t)copy[i].from, copy[i].at, copy[i].bytes, d))
      fail_msg("%s", diag_text(d));
    device_free(r->sim, copy[i].at);
  }
  kernel_free(k);
  diag_free(d);
  arena_free(a);
}

// A fresh fake driver whose kernels run on `sim`.
static inline FakeCuda *fake_that_runs(FakeRun *r, Device *sim) {
  *r = (FakeRun){.fake = fresh(FAKE), .sim = sim};
  r->fake->driver_version = 13000;
  r->fake->run = fake_run;
  r->fake->run_ctx = r;
  return r->fake;
}

#endif
