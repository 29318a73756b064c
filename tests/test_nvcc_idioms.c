// Compiler-made PTX of standard idioms (tests/nvcc/), every build on PTXSMITH_DEVICE (else sim)
// against an answer computed here.
#include <math.h>

#include "dtype.h"
#include "sim_kit.h"

static const char *const builds[] = {"sm_80.O3",  "sm_80.O0",  "sm_80.debug",
                                     "sm_90a.O3", "sm_90a.O0", "sm_90a.debug"};
enum { BUILDS = 6 };

static Status try_load(Kit *k, const char *file, int build, const char *entry, Kernel **out) {
  Source *src;
  char *path = arena_printf(k->arena, "%s/nvcc/%s.%s.ptx", TESTS_DIR, file, builds[build]);
  Status st = source_read(k->arena, path, &src, k->diag);
  return st ? st : device_load_ptx(k->dev, src, NULL, entry, out, k->diag);
}

// What a kernel takes: arrays that are written before it runs (in == NULL: zeros), then integers.
typedef struct Array { const void *in; uint32_t bytes; } Array;
typedef struct Call {
  const char *file, *entry;
  uint32_t grid[2], block[2];
  Array array[3]; int narrays;
  int32_t scalar[2]; int nscalars;
} Call;

// Runs one build; the array `which` afterwards goes to `got`.
static void run_build(Kit *k, const Call *c, int build, int which, void *got) {
  Kernel *kernel = NULL;
  if (try_load(k, c->file, build, c->entry, &kernel) != ST_OK)
    fail_msg("%s %s: %s", c->entry, builds[build], diag_text(k->diag));
  uint8_t args[64];
  uint32_t at = 0;
  DevPtr p[3];
  for (int i = 0; i < c->narrays; i++, at += 8) {
    uint32_t words = (c->array[i].bytes + 3) / 4;
    p[i] = kit_fill(k, "array", 0, words);
    if (c->array[i].in)
      assert_int_equal(device_write(k->dev, p[i], c->array[i].in, c->array[i].bytes, k->diag),
                       ST_OK);
    memcpy(args + at, &p[i], 8);
  }
  for (int i = 0; i < c->nscalars; i++, at += 4)
    memcpy(args + at, &c->scalar[i], 4);
  Launch l = {.kernel = kernel, .grid = {c->grid[0], c->grid[1], 1},
              .block = {c->block[0], c->block[1], 1}, .args = args, .arg_bytes = at};
  if (device_launch(k->dev, &l, k->diag) != ST_OK)
    fail_msg("%s %s: %s", c->entry, builds[build], diag_text(k->diag));
  assert_int_equal(device_read(k->dev, got, p[which], c->array[which].bytes, k->diag), ST_OK);
  for (int i = 0; i < c->narrays; i++)
    device_free(k->dev, p[i]);
  kernel_free(kernel);
}

// Every build gives exactly `want`.
static void expect_bytes(Kit *k, const Call *c, int which, const void *want) {
  uint32_t n = c->array[which].bytes;
  uint8_t *got = arena_alloc(k->arena, n);
  for (int b = 0; b < BUILDS; b++) {
    run_build(k, c, b, which, got);
    for (uint32_t i = 0; i < n; i++)
      if (got[i] != ((const uint8_t *)want)[i])
        fail_msg("%s %s: byte %u is %02x, not %02x", c->entry, builds[b], i, got[i],
                 ((const uint8_t *)want)[i]);
  }
}

// Every build is within `relative` of `want`.
static void expect_floats(Kit *k, const Call *c, int which, const double *want, double relative) {
  uint32_t n = c->array[which].bytes / 4;
  float *got = arena_array(k->arena, float, (int)n);
  for (int b = 0; b < BUILDS; b++) {
    run_build(k, c, b, which, got);
    for (uint32_t i = 0; i < n; i++)
      if (!(fabs(got[i] - want[i]) <= relative * (fabs(want[i]) + 1e-3)))
        fail_msg("%s %s: [%u] is %.9g, not %.9g", c->entry, builds[b], i, got[i], want[i]);
  }
}

static int32_t number(int i) { return (int32_t)(((uint32_t)i * 2654435761u) >> 7) - 5000000; }

static void test_block_sum(void **state) {
  int32_t x[1000], want = 0;
  for (int i = 0; i < 1000; i++)
    want += x[i] = number(i) % 1000;
  Call c = {"idioms", "block_sum", {3, 1}, {128, 1}, {{x, sizeof x}, {NULL, 4}}, 2, {1000}, 1};
  expect_bytes(*state, &c, 1, &want);
}

static void test_scan(void **state) {
  int32_t x[128], want[128], sum = 0;
  for (int i = 0; i < 128; i++)
    want[i] = sum += x[i] = number(i) % 100;
  Call c = {"idioms", "scan", {1, 1}, {128, 1}, {{x, sizeof x}, {NULL, sizeof want}}, 2, {0}, 0};
  expect_bytes(*state, &c, 1, want);
}

static void test_histogram(void **state) {
  uint8_t x[1000];
  uint32_t want[256] = {0};
  for (int i = 0; i < 1000; i++)
    want[x[i] = (uint8_t)(number(i) & (i % 3 ? 0xff : 7))]++;
  Call c = {"idioms", "histogram", {2, 1}, {96, 1}, {{x, sizeof x}, {NULL, sizeof want}},
            2,        {1000},      1};
  expect_bytes(*state, &c, 1, want);
}

static void test_transpose(void **state) {
  enum { ROWS = 40, COLS = 70 };
  static float x[ROWS * COLS], want[COLS * ROWS];
  for (int r = 0; r < ROWS; r++)
    for (int c = 0; c < COLS; c++)
      want[c * ROWS + r] = x[r * COLS + c] = (float)(r * 100 + c);
  Call c = {"idioms", "transpose", {3, 2}, {32, 8}, {{x, sizeof x}, {NULL, sizeof want}}, 2,
            {ROWS, COLS}, 2};
  expect_bytes(*state, &c, 1, want);
}

static void test_product(void **state) {
  enum { N = 32 };
  float a[N * N], b[N * N], want[N * N];
  for (int i = 0; i < N * N; i++) {
    a[i] = (float)(number(i) % 64) / 8;
    b[i] = (float)(number(i + 7) % 64) / 16;
  }
  for (int r = 0; r < N; r++)
    for (int c = 0; c < N; c++) {
      want[r * N + c] = 0;
      for (int k = 0; k < N; k++)
        want[r * N + c] = fmaf(a[r * N + k], b[k * N + c], want[r * N + c]);
    }
  Call c = {
      "idioms", "product", {2, 2}, {16, 16}, {{a, sizeof a}, {b, sizeof b}, {NULL, sizeof want}},
      3,        {N},       1};
  expect_bytes(*state, &c, 2, want);
}

enum { ROWS = 3, N = 75 };
static void fill_rows(float x[ROWS * N]) {
  for (int i = 0; i < ROWS * N; i++)
    x[i] = (float)(number(i) % 1000) / 250;
}

static void test_softmax(void **state) {
  float x[ROWS * N];
  double want[ROWS * N];
  fill_rows(x);
  for (int r = 0; r < ROWS; r++) {
    double s = 0;
    for (int i = 0; i < N; i++)
      s += want[r * N + i] = exp(x[r * N + i]);
    for (int i = 0; i < N; i++)
      want[r * N + i] /= s;
  }
  Call c = {"idioms", "softmax", {ROWS, 1}, {32, 1}, {{x, sizeof x}, {NULL, sizeof x}}, 2, {N}, 1};
  expect_floats(*state, &c, 1, want, 1e-6);
}

static void test_layer_norm(void **state) {
  float x[ROWS * N], g[N];
  double want[ROWS * N];
  fill_rows(x);
  for (int i = 0; i < N; i++)
    g[i] = 1 + (float)i / 64;
  for (int r = 0; r < ROWS; r++) {
    double mean = 0, q = 0;
    for (int i = 0; i < N; i++)
      mean += (double)x[r * N + i] / N;
    for (int i = 0; i < N; i++)
      q += (x[r * N + i] - mean) * (x[r * N + i] - mean);
    for (int i = 0; i < N; i++)
      want[r * N + i] = (x[r * N + i] - mean) / sqrt(q / N + 1e-5) * g[i];
  }
  Call c = {
      "idioms", "layer_norm", {ROWS, 1}, {32, 1}, {{x, sizeof x}, {g, sizeof g}, {NULL, sizeof x}},
      3,        {N},          1};
  expect_floats(*state, &c, 2, want, 2e-5);
}

static void test_functions(void **state) {
  uint32_t ackermann[32];
  double structs[32];
  for (int i = 0; i < 32; i++) {
    ackermann[i] = 2 * (uint32_t)(i & 3) + 3;
    structs[i] = 1.5 * 3 + i + 3 + 2 * 7;
  }
  Call r = {"idioms", "recursion", {1, 1}, {32, 1}, {{NULL, sizeof ackermann}}, 1, {0}, 0};
  expect_bytes(*state, &r, 0, ackermann);
  Call s = {"idioms", "structs", {1, 1}, {32, 1}, {{NULL, sizeof structs}}, 1, {0}, 0};
  expect_bytes(*state, &s, 0, structs);
}

static int ascending(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

static void test_sort_local(void **state) {
  int32_t x[32 * 16], want[32 * 16];
  for (int i = 0; i < 32 * 16; i++)
    want[i] = x[i] = number(i) % 50;
  for (int t = 0; t < 32; t++)
    qsort(want + 16 * t, 16, 4, ascending);
  Call c = {"idioms", "sort_local", {1, 1}, {32, 1}, {{x, sizeof x}, {NULL, sizeof x}}, 2, {0}, 0};
  expect_bytes(*state, &c, 1, want);
}

static int32_t switched(int32_t v) {
  switch (v & 15) {
  case 0: return v * 3;
  case 1: return v ^ 0x55;
  case 2: return v >> 3;
  case 3: return -v;
  case 4: return (int32_t)((uint32_t)v * (uint32_t)v);
  case 5: return v % 7;
  case 6: return v / 5;
  case 7: return ~v;
  case 8: return v + 1000;
  default: return 0;
  }
}

static void test_switches(void **state) {
  int32_t x[64], want[64];
  for (int i = 0; i < 64; i++)
    want[i] = switched(x[i] = number(i));
  Call c = {"idioms", "switches", {1, 1}, {64, 1}, {{x, sizeof x}, {NULL, sizeof x}}, 2, {0}, 0};
  expect_bytes(*state, &c, 1, want);
}

static void test_wide(void **state) {
  int64_t x[32], y[32], want[32 * 6];
  for (int i = 0; i < 32; i++) {
    int64_t a = x[i] = (int64_t)((uint64_t)number(i) * UINT64_C(0x1234567890b)); // wraps
    int64_t b = y[i] = i % 5 ? number(i + 3) : i + 1;
    int64_t *o = want + 6 * i;
    o[0] = (int64_t)((uint64_t)a * (uint64_t)b);
    o[1] = (int64_t)(((__int128)a * b) >> 64);
    o[2] = a / b;
    o[3] = a % b;
    o[4] = (int64_t)((uint64_t)a / (uint64_t)b);
    o[5] = (int64_t)((uint64_t)a << (b & 63)) ^ (a >> (b & 63));
  }
  Call c = {"idioms", "wide", {1, 1}, {32, 1}, {{x, sizeof x}, {y, sizeof y}, {NULL, sizeof want}},
            3,        {0},    0};
  expect_bytes(*state, &c, 2, want);
}

static void test_doubles(void **state) {
  double x[32], y[32], want[32 * 5];
  for (int i = 0; i < 32; i++) {
    double a = x[i] = number(i) / 3.0e3, b = y[i] = number(i + 9) / 7.0e5, *o = want + 5 * i;
    o[0] = a / b;
    o[1] = sqrt(fabs(a));
    o[2] = fma(a, b, 1.0);
    o[3] = (double)(float)a;
    o[4] = floor(a) + rint(b) + (double)(int64_t)a;
  }
  Call c = {
      "idioms", "doubles", {1, 1}, {32, 1}, {{x, sizeof x}, {y, sizeof y}, {NULL, sizeof want}},
      3,        {0},       0};
  expect_bytes(*state, &c, 2, want);
}

static void test_bits(void **state) {
  uint32_t x[32], want[32 * 8], odd = 0;
  for (uint32_t i = 0; i < 32; i++) {
    x[i] = i ? (uint32_t)number((int)i) << (i % 4) : 0;
    odd |= (x[i] & 1) << i;
  }
  for (int i = 0; i < 32; i++) {
    uint32_t v = x[i], n = v & 31, *o = want + 8 * i, r = 0;
    for (int b = 0; b < 32; b++)
      r |= (v >> b & 1) << (31 - b);
    o[0] = (uint32_t)__builtin_popcount(v);
    o[1] = v ? (uint32_t)__builtin_clz(v) : 32;
    o[2] = r;
    o[3] = (uint32_t)__builtin_ffs((int)v);
    o[4] = n ? ~v << n | v >> (32 - n) : ~v;
    // bytes 6, 0, 1, 5 of {~v, v}, lowest first
    uint64_t both = (uint64_t)~v << 32 | v;
    o[5] = (uint32_t)((both >> 48 & 255) | (both & 255) << 8 | (both >> 8 & 255) << 16 |
                      (both >> 40 & 255) << 24);
    o[6] = (uint32_t)((uint64_t)v * 0x9e3779b9u >> 32);
    o[7] = odd;
  }
  Call c = {"idioms", "bits", {1, 1}, {32, 1}, {{x, sizeof x}, {NULL, sizeof want}}, 2, {0}, 0};
  expect_bytes(*state, &c, 1, want);
}

// A call through a pointer is outside of what the interpreter executes: named with its line.
static void test_indirect(void **state) {
  Kit *k = *state;
  for (int b = 0; b < BUILDS; b++) {
    Kernel *kernel = NULL;
    assert_int_equal(try_load(k, "pointers", b, "indirect", &kernel), ST_INPUT);
    assert_null(kernel);
    assert_true(k->diag->first->line > 0);
    assert_non_null(strstr(k->diag->first->what, "indirect call"));
    diag_reset(k->diag);
  }
}

static void test_small_floats(void **state) {
  float x[32], want[32 * 6];
  for (int i = 0; i < 32; i++) {
    float v = x[i] = (float)(number(i) % 4000) / 37, *o = want + 6 * i;
    double h = f16_to_double(f16_from_double(v)), bf = bf16_to_double(bf16_from_double(v));
    o[0] = (float)f16_to_double(f16_from_double(h + 0.25));
    o[1] = (float)f16_to_double(f16_from_double(h * h));
    o[2] = (float)bf;
    o[3] = (float)bf16_to_double(bf16_from_double(bf * 2 + 1));
    o[4] = (float)e4m3_to_double(e4m3_from_double(v));
    o[5] = (float)(fabs(h) > fabs(v) ? h - copysign(dtype_ulp(DT_F16, v), h) : h);
  }
  Call c = {"tensor", "small_floats", {1, 1}, {32, 1}, {{x, sizeof x}, {NULL, sizeof want}}, 2, {0},
            0};
  expect_bytes(*state, &c, 1, want);
}

// Products of small integers: exact in any order.
static void test_tiles(void **state) {
  uint16_t a[1024], b[1024];
  float want[1024];
  for (int i = 0; i < 1024; i++) {
    a[i] = f16_from_double(number(i) % 9);
    b[i] = f16_from_double(number(i + 5) % 9);
  }
  for (int r = 0; r < 32; r++)
    for (int c = 0; c < 32; c++) {
      double s = 0;
      for (int k = 0; k < 32; k++)
        s += f16_to_double(a[r * 32 + k]) * f16_to_double(b[k * 32 + c]);
      want[r * 32 + c] = (float)s;
    }
  Call c = {"tensor", "tiles", {2, 1}, {32, 2}, {{a, sizeof a}, {b, sizeof b}, {NULL, sizeof want}},
            3,        {0},     0};
  expect_bytes(*state, &c, 2, want);
}

// Copies that are waited for one stage behind.
static void test_pipeline(void **state) {
  float x[16 * 128], want[32] = {0};
  for (int i = 0; i < 16 * 128; i++)
    want[i % 32] += x[i] = (float)(number(i) % 100);
  Call c = {"tensor", "pipeline", {1, 1}, {32, 1}, {{x, sizeof x}, {NULL, sizeof want}}, 2, {0}, 0};
  expect_bytes(*state, &c, 1, want);
}

// Sums of eights, of the block, and what the odd threads of a warp find out together.
static void test_groups(void **state) {
  int32_t x[128], eights[16] = {0}, all = 0, want[3 * 128];
  for (int i = 0; i < 128; i++) {
    x[i] = number(i) % 1000;
    eights[i / 8] += x[i];
    all += x[i];
  }
  for (int i = 0; i < 128; i++) {
    want[3 * i] = eights[i / 8] + (i ^ 3);
    want[3 * i + 1] = all;
    want[3 * i + 2] = i & 1 ? 16 * 100 + x[(i & ~31) + 1] : 0;
  }
  Call c = {"groups", "groups", {1, 1}, {128, 1}, {{x, sizeof x}, {NULL, sizeof want}}, 2, {0}, 0};
  expect_bytes(*state, &c, 1, want);
}

// wmma fed by asynchronous copies; products of small integers, exact in any order.
static void test_tiled(void **state) {
  enum { M = 32, DEPTH = 64 };
  uint16_t a[M * DEPTH], b[DEPTH * M];
  float want[M * M];
  for (int i = 0; i < M * DEPTH; i++) {
    a[i] = f16_from_double(number(i) % 9);
    b[i] = f16_from_double(number(i + 5) % 9);
  }
  for (int r = 0; r < M; r++)
    for (int c = 0; c < M; c++) {
      double s = 0;
      for (int k = 0; k < DEPTH; k++)
        s += f16_to_double(a[r * DEPTH + k]) * f16_to_double(b[k * M + c]);
      want[r * M + c] = (float)s;
    }
  Call c = {
      "groups", "tiled", {1, 1}, {128, 1}, {{a, sizeof a}, {b, sizeof b}, {NULL, sizeof want}},
      3,        {0},     0};
  expect_bytes(*state, &c, 2, want);
}

// sm_80 has no conversions to fp8: the compiler's integer code, against the instructions of sm_90.
static void test_eighths(void **state) {
  float x[32], want[32 * 3];
  for (int i = 0; i < 32; i++) {
    float v = x[i] = (float)(number(i) % 4000) / 37, *o = want + 3 * i;
    o[0] = (float)e4m3_to_double(e4m3_from_double(v));
    o[1] = (float)e4m3_to_double(e4m3_from_double(-v));
    o[2] = (float)e5m2_to_double(e5m2_from_double(v));
  }
  Call c = {"groups", "eighths", {1, 1}, {32, 1}, {{x, sizeof x}, {NULL, sizeof want}}, 2, {0}, 0};
  expect_bytes(*state, &c, 1, want);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup_anywhere, kit_teardown)
#define T_SIM(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {
      T(test_block_sum), T(test_scan),      T(test_histogram),    T(test_transpose),
      T(test_product),   T(test_softmax),   T(test_layer_norm),   T(test_functions),
      T(test_sort_local), T(test_switches), T(test_wide),         T(test_doubles),
      T(test_bits),      T_SIM(test_indirect),  T(test_small_floats), T(test_tiles),
      T(test_pipeline),  T(test_groups),   T(test_tiled),        T(test_eighths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
