// What the interpreter's tests share: a device, kernels from tests/sim/, buffers of words.
#ifndef PTXSMITH_SIM_KIT_H
#define PTXSMITH_SIM_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device.h"

// A test whose kernels race on purpose says false before it includes this.
#ifndef KIT_SANITIZE
#define KIT_SANITIZE true
#endif

typedef struct Kit {
  Device *dev;
  Diag *diag;
  Arena *arena;
} Kit;

static inline int kit_open(void **state, const char *device) {
  Kit *k = calloc(1, sizeof *k);
  k->diag = diag_new();
  k->arena = arena_new();
  if (device_open(device, &k->dev, k->diag) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
  device_sim_opts(k->dev, &(SimOpts){.threads = 1, .sanitize = KIT_SANITIZE});
  *state = k;
  return 0;
}

static inline int kit_setup(void **state) { return kit_open(state, "sim"); }

// PTXSMITH_DEVICE, else sim: for kernels that are right.
static inline int kit_setup_anywhere(void **state) {
  const char *device = getenv("PTXSMITH_DEVICE");
  return kit_open(state, device ? device : "sim");
}

static inline int kit_teardown(void **state) {
  Kit *k = *state;
  device_close(k->dev);
  diag_free(k->diag);
  arena_free(k->arena);
  free(k);
  return 0;
}

static inline Kernel *kit_load(Kit *k, const char *file, const char *entry) {
  Source *src;
  char *path = arena_printf(k->arena, "%s/sim/%s", TESTS_DIR, file);
  Kernel *kernel = NULL;
  if (source_read(k->arena, path, &src, k->diag) == ST_OK)
    src->name = file, device_load_ptx(k->dev, src, NULL, entry, &kernel, k->diag);
  if (!kernel)
    fail_msg("%s", diag_text(k->diag));
  return kernel;
}

// A kernel given as the lines between its braces: p0, p1 ... are the addresses in %rd0 ..., and
// %tid.x is in %r0.
static inline Kernel *kit_body_of(Kit *k, int nargs, const char *directives, const char *body) {
  char *text = arena_strdup(k->arena, ".version 9.0\n.target sm_90a\n.address_size 64\n"
                                      ".visible .entry k(");
  for (int i = 0; i < nargs; i++)
    text = arena_printf(k->arena, "%s%s.param .u64 p%d", text, i ? ", " : "", i);
  text = arena_printf(k->arena, "%s) %s {\n.reg .pred %%p<8>; .reg .b16 %%h<16>; "
                                ".reg .b32 %%r<32>; .reg .b64 %%rd<32>; .reg .f32 %%f<16>; "
                                ".reg .f64 %%fd<8>;\n", text, directives);
  for (int i = 0; i < nargs; i++)
    text = arena_printf(k->arena, "%sld.param.u64 %%rd%d, [p%d];\n", text, i, i);
  text = arena_printf(k->arena, "%smov.u32 %%r0, %%tid.x;\n%s\n}\n", text, body);
  Source *src = source_new(k->arena, "k.ptx", text, strlen(text));
  Kernel *kernel = NULL;
  if (device_load_ptx(k->dev, src, NULL, NULL, &kernel, k->diag) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
  return kernel;
}

static inline Kernel *kit_body(Kit *k, int nargs, const char *body) {
  return kit_body_of(k, nargs, "", body);
}

static inline DevPtr kit_words(Kit *k, const char *name, const uint32_t *words, uint32_t n) {
  DevPtr p;
  assert_int_equal(device_alloc(k->dev, n * 4, name, &p, k->diag), ST_OK);
  if (words)
    assert_int_equal(device_write(k->dev, p, words, n * 4, k->diag), ST_OK);
  return p;
}

static inline DevPtr kit_fill(Kit *k, const char *name, uint32_t word, uint32_t n) {
  DevPtr p = kit_words(k, name, NULL, n);
  assert_int_equal(device_fill32(k->dev, p, word, n * 4, k->diag), ST_OK);
  return p;
}

static inline Status kit_try(Kit *k, Kernel *kernel, uint32_t grid, uint32_t block,
                             const void *args, uint32_t bytes) {
  Launch l = {.kernel = kernel, .grid = {grid, 1, 1}, .block = {block, 1, 1}, .args = args,
              .arg_bytes = bytes};
  Status st = device_launch(k->dev, &l, k->diag);
  return st == ST_OK ? device_sync(k->dev, k->diag) : st;
}

static inline void kit_run(Kit *k, Kernel *kernel, uint32_t grid, uint32_t block, const void *args,
                           uint32_t bytes) {
  if (kit_try(k, kernel, grid, block, args, bytes) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
}

static inline void kit_read(Kit *k, DevPtr p, uint32_t *words, uint32_t n) {
  assert_int_equal(device_read(k->dev, words, p, n * 4, k->diag), ST_OK);
}

#endif
