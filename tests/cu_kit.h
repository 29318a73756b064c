// What the tests of the CUDA device share: the fake driver, fresh, and what it must say.
#ifndef PTXSMITH_TESTS_CU_KIT_H
#define PTXSMITH_TESTS_CU_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>

#include "cu_device.h"
#include "fake_cuda.h"

#define FAKE BUILD_DIR "/tests/libfake_cuda.so"
#define FAKE_OLD_LIB BUILD_DIR "/tests/libfake_cuda_old.so"
#define FAKE_LACKS_LIB BUILD_DIR "/tests/libfake_cuda_lacks.so"

static inline FakeCuda *fake_of(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
  FakeCudaState state;
  *(void **)&state = dlsym(library, "fake_cuda_state");
  return state();
}

static inline FakeCuda *fresh(const char *path) {
  FakeCuda *f = fake_of(path);
  *f = (FakeCuda){.devices = 2, .driver_version = 12000, .clusters = 60,
                  .free_bytes = (size_t)1 << 30};
  return f;
}

static inline void assert_nothing_left(const FakeCuda *f) {
  assert_int_equal(f->contexts, 0);
  assert_int_equal(f->streams, 0);
  assert_int_equal(f->buffers, 0);
  assert_int_equal(f->modules, 0);
  assert_int_equal(f->events, 0);
  assert_int_equal(f->graphs, 0);
  assert_int_equal(f->execs, 0);
}

static inline void assert_says(const Diag *d, const char *part) {
  if (!strstr(diag_text(d), part)) fail_msg("no \"%s\" in:\n%s", part, diag_text(d));
}

static const char three_lines[] __attribute__((unused)) = ".version 8.0\n"
                                  ".target sm_90a // .entry no\n"
                                  ".visible .entry k(.param .u64 p) { ret; }\n";

static inline Source *source_of(Arena *a, const char *text) {
  return source_new(a, "k.ptx", text, strlen(text));
}

static inline Device *opened(const char *path, Diag *d) {
  Device *dev;
  if (cu_open(path, 0, &dev, d)) fail_msg("%s", diag_text(d));
  return dev;
}

static inline Status load(Device *dev, const char *text, const LineMap *map, Kernel **k, Diag *d) {
  return device_load_ptx(dev, source_of(d->arena, text), map, NULL, k, d);
}

#endif
