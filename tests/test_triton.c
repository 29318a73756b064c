// Attention as Triton compiles it (tests/triton/), against the formula in fp64: mma.sync with
// cp.async for sm_80, wgmma with cp.async for sm_90, on PTXSMITH_DEVICE (else sim, sanitized).
#include <math.h>

#include "dtype.h"
#include "sim_kit.h"

enum { HEADS = 2, QUERIES = 77, KEYS = 101, D = 64, TILE_Q = 64 };

typedef struct Tensors {
  uint16_t q[HEADS * QUERIES * D], k[HEADS * KEYS * D], v[HEADS * KEYS * D];
  double o[HEADS * QUERIES * D];
} Tensors;

static void fill(uint16_t *x, int n, uint32_t seed) {
  for (int i = 0; i < n; i++) {
    seed = seed * 1664525 + 1013904223;
    x[i] = f16_from_double((double)(int32_t)seed / 1e9); // -2.1 to 2.1
  }
}

static void answer_row(Tensors *t, int head, int i, bool causal) {
  const uint16_t *q = t->q + (head * QUERIES + i) * D;
  double *o = t->o + (head * QUERIES + i) * D, p[KEYS], top = -INFINITY, sum = 0;
  int keys = causal ? i + KEYS - QUERIES + 1 : KEYS;
  for (int j = 0; j < keys; j++) {
    p[j] = 0;
    for (int e = 0; e < D; e++)
      p[j] += f16_to_double(q[e]) * f16_to_double(t->k[(head * KEYS + j) * D + e]) / 8;
    top = fmax(top, p[j]);
  }
  memset(o, 0, D * sizeof *o);
  for (int j = 0; j < keys; j++) {
    sum += p[j] = exp(p[j] - top);
    for (int e = 0; e < D; e++)
      o[e] += p[j] * f16_to_double(t->v[(head * KEYS + j) * D + e]);
  }
  for (int e = 0; e < D; e++)
    o[e] /= sum;
}

static DevPtr upload(Kit *k, const char *name, const uint16_t *x, uint64_t n) {
  DevPtr p;
  assert_int_equal(device_alloc(k->dev, 2 * n, name, &p, k->diag), ST_OK);
  assert_int_equal(device_write(k->dev, p, x, 2 * n, k->diag), ST_OK);
  return p;
}

// The kernel's text; `fenced`: with the fence that it lacks after each wait for cp.async.
static Source *text_of(Kit *k, const char *build, bool causal, bool fenced) {
  static const char wait[] = "cp.async.wait_group \t0;",
                    fence[] = " fence.proxy.async.shared::cta;";
  Source *src;
  char *path = arena_printf(k->arena, "%s/triton/attention.%s.%s.ptx", TESTS_DIR, build,
                            causal ? "causal" : "full");
  if (source_read(k->arena, path, &src, k->diag) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
  if (!fenced)
    return src;
  char *text = arena_strdup(k->arena, ""), *from = (char *)src->text;
  for (char *at; (at = strstr(from, wait)); from = at + strlen(wait))
    text = arena_printf(k->arena, "%s%.*s%s%s", text, (int)(at - from), from, wait, fence);
  text = arena_printf(k->arena, "%s%s", text, from);
  return source_new(k->arena, "fenced.ptx", text, strlen(text));
}

static Status run(Kit *k, const Source *src, bool causal, uint32_t smem) {
  Tensors *t = calloc(1, sizeof *t);
  fill(t->q, HEADS * QUERIES * D, 1);
  fill(t->k, HEADS * KEYS * D, 2);
  fill(t->v, HEADS * KEYS * D, 3);
  for (int row = 0; row < HEADS * QUERIES; row++)
    answer_row(t, row / QUERIES, row % QUERIES, causal);
  Kernel *kernel;
  if (device_load_ptx(k->dev, src, NULL, NULL, &kernel, k->diag) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
  uint16_t got[HEADS * QUERIES * D];
  memset(got, 0xff, sizeof got); // NaN
  struct { DevPtr q, k, v, o; float scale; int32_t queries, keys; DevPtr scratch[2]; } args = {
      upload(k, "q", t->q, HEADS * QUERIES * D), upload(k, "k", t->k, HEADS * KEYS * D),
      upload(k, "v", t->v, HEADS * KEYS * D), upload(k, "o", got, HEADS * QUERIES * D),
      0.125f, QUERIES, KEYS, {0, 0}};
  Launch l = {.kernel = kernel, .grid = {(QUERIES + TILE_Q - 1) / TILE_Q, HEADS, 1},
              .block = {128, 1, 1}, .args = &args, .arg_bytes = sizeof args, .smem = smem};
  Status st = device_launch(k->dev, &l, k->diag);
  if (!st) st = device_sync(k->dev, k->diag);
  if (!st) st = device_read(k->dev, got, args.o, sizeof got, k->diag);
  // P and O are rounded to f16: 2^-11 each, of values up to 2.1
  for (int i = 0; i < HEADS * QUERIES * D && !st; i++)
    if (!(fabs(f16_to_double(got[i]) - t->o[i]) <= 2e-3))
      fail_msg("%s: o[%d] is %g, not %g", src->name, i, f16_to_double(got[i]), t->o[i]);
  free(t);
  return st;
}

static void expect_right(Kit *k, const char *build, bool causal, bool fenced, uint32_t smem) {
  if (run(k, text_of(k, build, causal, fenced), causal, smem) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
}

static void test_mma(void **state) {
  expect_right(*state, "sm_80", false, false, 16384);
  expect_right(*state, "sm_80", true, false, 16384);
}

// cp.async writes through the generic proxy and wgmma reads through the asynchronous one.
// Triton 3.6 puts no fence between them, which the memory model asks for and hardware lets pass.
static void test_wgmma(void **state) {
  Kit *k = *state;
  for (int causal = 0; causal < 2; causal++) {
    expect_right(k, "sm_90", causal, true, 24576);
    device_sim_opts(k->dev, &(SimOpts){.threads = 1});
    expect_right(k, "sm_90", causal, false, 24576);
    device_sim_opts(k->dev, &(SimOpts){.threads = 1, .sanitize = true});
  }
}

static void test_missing_fence(void **state) {
  Kit *k = *state;
  assert_int_equal(run(k, text_of(k, "sm_90", false, false), false, 24576), ST_FAILED);
  const DiagMsg *first = k->diag->first;
  assert_int_equal(first->line, 274);
  assert_non_null(strstr(first->what,
                         "missing fence.proxy.async: reads byte 8192 of shared memory, "
                         "which another thread wrote: wgmma.mma_async"));
  assert_non_null(strstr(diag_text(k->diag), "the other party: cp.async.cg.shared.global"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_mma, kit_setup_anywhere, kit_teardown),
      cmocka_unit_test_setup_teardown(test_wgmma, kit_setup_anywhere, kit_teardown),
      cmocka_unit_test_setup_teardown(test_missing_fence, kit_setup, kit_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
