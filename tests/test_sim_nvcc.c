// Compiler-made PTX (tests/nvcc/) on PTXSMITH_DEVICE (else sim): optimised, plain and debug code of
// both targets give what the source says, and where approximations enter, the same bits as each
// other.
#include <math.h>

#include "dtype.h"
#include "sim_kit.h"

static const char *const builds[] = {"sm_80.O3",  "sm_80.O0",  "sm_80.debug",
                                     "sm_90a.O3", "sm_90a.O0", "sm_90a.debug"};
enum { BUILDS = 6 };

static Kernel *load(Kit *k, const char *file, int build, const char *entry) {
  Source *src;
  Kernel *kernel = NULL;
  char *path = arena_printf(k->arena, "%s/nvcc/%s.%s.ptx", TESTS_DIR, file, builds[build]);
  if (source_read(k->arena, path, &src, k->diag) != ST_OK ||
      device_load_ptx(k->dev, src, NULL, entry, &kernel, k->diag) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
  return kernel;
}

static float f32_of(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

static uint32_t bits_of(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

// The source lets lanes 8 to 31 execute a shuffle whose mask names lanes 0 to 7 only: undefined by
// the ISA, and unnoticed on hardware.  Everything before it ran: loads, shuffles, the barrier.
static void test_reduce(void **state) {
  Kit *k = *state;
  DevPtr x = kit_fill(k, "x", 0, 2048);
  for (int b = 0; b < BUILDS; b++) {
    Kernel *kernel = load(k, "shared", b, "reduce");
    struct { DevPtr x, out; int32_t n; } args = {x, kit_fill(k, "out", 0, 1), 512};
    assert_int_equal(kit_try(k, kernel, 3, 256, &args, 20), ST_FAILED);
    assert_non_null(strstr(k->diag->first->what, "the mask 000000ff does not name the lane that "
                                                 "executes: shfl.sync.down.b32"));
    assert_non_null(strstr(k->diag->first->what, "in block (0,0,0) thread (8,0,0)"));
    diag_reset(k->diag);
  }
}

// A local array passed to a function by pointer; strings in global memory found through pointers.
static void test_local_array(void **state) {
  Kit *k = *state;
  for (int b = 0; b < BUILDS; b++)
    for (int32_t n = 8; n < 16; n++) {
      Kernel *kernel = load(k, "scalar", b, "local_array");
      uint32_t in[17] = {0}, got[17];
      for (uint32_t i = 0; i < 16; i++)
        in[i] = bits_of((float)(i + 2) / 4);
      struct { DevPtr out; int32_t n; } args = {kit_words(k, "out", in, 17), n};
      kit_run(k, kernel, 1, 1, &args, 12);
      kit_read(k, args.out, got, 17);
      float c[8], r = 0, at = f32_of(in[n & 7]);
      for (int i = 0; i < 8; i++)
        c[i] = f32_of(in[i]) * (float)i;
      for (int i = 0; i < (n & 7); i++)
        r = fmaf(r, at, c[i]);
      r += (float)(n & 1 ? "second" : "first")[n & 3];
      assert_int_equal(got[n], bits_of(r));
      kernel_free(kernel);
      device_free(k->dev, args.out);
    }
}

// ---- scalar_mix, in C ---------------------------------------------------------------------------
static uint32_t reversed(uint32_t v) {
  uint32_t r = 0;
  for (int i = 0; i < 32; i++) r |= (v >> i & 1) << (31 - i);
  return r;
}

static int32_t to_int(double v) { // cvt.rzi.s32: saturates, NaN is 0
  if (isnan(v)) return 0;
  return v >= INT32_MAX ? INT32_MAX : v <= INT32_MIN ? INT32_MIN : (int32_t)v;
}

static uint32_t mixed_bits(uint32_t u, int n) {
  switch (n % 7) {
  case 0: return u + (uint32_t)__builtin_popcount(u);
  case 1: return u ? (uint32_t)__builtin_clz(u) : 32;
  case 2: return (uint32_t)__builtin_ffs((int)u);
  case 3: return u / 7;
  case 4: return u % 13;
  case 5: return u; // bytes 3, 2, 1, 0 of the first
  default: return ~u;
  }
}

// *about: how far approximated functions may move the result.
static uint32_t mixed(float x, double y, int64_t z, int n, int i, double *about) {
  static const float table[4] = {1.0f, 2.5f, -3.0f, 1e-20f};
  float a = fmaf(x, table[i & 3], 0.5f);
  double b = y / (1.0 + a), r = a;
  int64_t c = z * n + (z >> 3);
  uint32_t u = mixed_bits((uint32_t)((uint64_t)(uint32_t)c * 0x9e3779b9u >> 32) ^
                          reversed((uint32_t)n), n);
  double s = sin(r) + 1 / sqrt(r) + exp2(r) + sqrt(r) + log(r) + fmax(r, 0.25) + fabs(r);
  *about = isnan(s) ? 0 : s > INT32_MAX ? 0 : 1 + fabs(s) * 0x1p-20;
  return (uint32_t)to_int(s) + (uint32_t)to_int(b) + (uint32_t)(c % 1000003) + u +
         (uint32_t)to_int(rint(r)) + (uint32_t)(int64_t)b;
}

static void test_scalar_mix(void **state) {
  Kit *k = *state;
  enum { N = 50 };
  float x[N];
  double y[N];
  int64_t z[N];
  for (int i = 0; i < N; i++) {
    x[i] = 0.3f + 0.37f * (float)i;
    y[i] = 1e6 / (i + 1);
    z[i] = (i - 20) * INT64_C(0x123456789);
  }
  DevPtr dx = kit_words(k, "x", (uint32_t *)x, N), dy = kit_words(k, "y", (uint32_t *)y, 2 * N);
  DevPtr dz = kit_words(k, "z", (uint32_t *)z, 2 * N);
  for (int32_t n = N - 7; n < N; n++) { // every case of the switch
    uint32_t first[N], got[N];
    for (int b = 0; b < BUILDS; b++) {
      Kernel *kernel = load(k, "scalar", b, "scalar_mix");
      struct { DevPtr x, y, z, out; int32_t n; } args = {dx, dy, dz, kit_fill(k, "out", 0, N), n};
      kit_run(k, kernel, 2, 32, &args, 36);
      kit_read(k, args.out, got, N);
      if (b == 0)
        memcpy(first, got, sizeof got);
      assert_memory_equal(first, got, sizeof got);
      for (int i = 0; i < n; i++) {
        double about, off = (int32_t)(got[i] - mixed(x[i], y[i], z[i], n, i, &about));
        if (fabs(off) > about)
          fail_msg("%s: n %d, [%d] is %g off, %g allowed", builds[b], n, i, off, about);
      }
      assert_int_equal(got[n], 0);
      kernel_free(kernel);
      device_free(k->dev, args.out);
    }
  }
}

static void test_half_mix(void **state) {
  Kit *k = *state;
  enum { N = 40 };
  uint32_t a[N], b[N], first[3 * N], got[3 * N];
  for (uint32_t i = 0; i < N; i++) {
    a[i] = f16_from_double(0.1 * i - 2) | (uint32_t)f16_from_double(0.05 * i) << 16;
    b[i] = bf16_from_double(0.3 * i - 5) | (uint32_t)bf16_from_double(-0.2 * i) << 16;
  }
  DevPtr da = kit_words(k, "a", a, N), db = kit_words(k, "b", b, N);
  for (int v = 0; v < BUILDS; v++) {
    Kernel *kernel = load(k, "half", v, "half_mix");
    DevPtr out = kit_fill(k, "out", 0, 3 * N);
    struct { DevPtr a, b, o, p, f; int32_t n; } args = {da, db, out, out + 4 * N, out + 8 * N, N};
    kit_run(k, kernel, 1, 64, &args, 44);
    kit_read(k, out, got, 3 * N);
    if (v == 0)
      memcpy(first, got, sizeof got);
    assert_memory_equal(first, got, sizeof got);
    for (uint32_t i = 0; i < N; i++) {
      // o.y = a.y^2 + 0.5 rounded once, + 2^a.y; the latter within f16's spacing
      double y = f16_to_double((uint16_t)(a[i] >> 16));
      double want = f16_to_double(f16_from_double(y * y + 0.5)) + exp2(y);
      double high = f16_to_double((uint16_t)(got[i] >> 16)), xx = f16_to_double((uint16_t)a[i]);
      assert_true(fabs(high - want) <= 2 * ldexp(want, -10));
      // p: the upper half of o, and max(b^2, b) of the lower half of b, each rounded to bf16
      double bx = bf16_to_double((uint16_t)b[i]), by = bf16_to_double((uint16_t)(b[i] >> 16));
      double low_b = fmax(bf16_to_double(bf16_from_double(bx * bx)), bx);
      double high_b = fmax(bf16_to_double(bf16_from_double(by * by)), by);
      assert_int_equal(got[N + i], bf16_from_double(high) | (uint32_t)bf16_from_double(low_b)
                                                                << 16);
      // f = x.x + max(b.y^2, b.y) + (x.x > x.y), and o.x is f rounded to f16
      double low = f16_to_double(f16_from_double(xx * xx + 0.5)) + exp2(xx);
      double f = f32_of(got[2 * N + i]), sum = low + high_b;
      double slack = 2 * ldexp(low, -10) + 0x1p-20 * sum;
      assert_true(fabs(f - sum) <= slack || fabs(f - sum - 1) <= slack);
      if (fabs(low - high) > 4 * ldexp(want + low, -10))
        assert_true(fabs(f - sum - (low > high)) <= slack);
      assert_int_equal(got[i] & 0xffff, f16_from_double(f));
    }
  }
}

// Each block turns its vectors round; all lanes that have one x add how many they are, and 32 n.
static void test_staged(void **state) {
  Kit *k = *state;
  enum { N = 64, BLOCK = 32 };
  float x[4 * N], want[4 * N], got[4 * N];
  for (int i = 0; i < 4 * N; i++)
    x[i] = (float)(i % 4 ? i : i / 8 % 5);
  for (int i = 0; i < N; i++) {
    int from = i / BLOCK * BLOCK + BLOCK - 1 - i % BLOCK, same = 0;
    memcpy(want + 4 * i, x + 4 * from, 16);
    for (int j = i / BLOCK * BLOCK; j < i / BLOCK * BLOCK + BLOCK; j++)
      same += x[4 * j] == x[4 * from];
    want[4 * i + 3] += (float)(same + 32 * 3);
  }
  for (int b = 0; b < BUILDS; b++) {
    Kernel *kernel = load(k, "shared", b, "staged");
    struct { DevPtr x, y; int32_t n; } args = {kit_words(k, "x", (uint32_t *)x, 4 * N),
                                               kit_fill(k, "y", 0, 4 * N), 3};
    Launch l = {.kernel = kernel, .grid = {N / BLOCK, 1, 1}, .block = {BLOCK, 1, 1},
                .smem = 16 * BLOCK, .args = &args, .arg_bytes = 20};
    assert_int_equal(device_launch(k->dev, &l, k->diag), ST_OK);
    kit_read(k, args.y, (uint32_t *)got, 4 * N);
    assert_memory_equal(got, want, sizeof want);
    kernel_free(kernel);
  }
}

// Small integers: exact.
static void test_product(void **state) {
  Kit *k = *state;
  uint16_t a[256], bm[128];
  float want[128], got[128];
  for (int i = 0; i < 256; i++) a[i] = f16_from_double(i * 7 % 13 - 6);
  for (int i = 0; i < 128; i++) bm[i] = f16_from_double(i * 5 % 11 - 5);
  for (int t = 0; t < 32; t++)
    for (int e = 0; e < 4; e++) {
      int row = t / 4 + e / 2 * 8, col = t % 4 * 2 + e % 2;
      want[4 * t + e] = 0;
      for (int i = 0; i < 16; i++)
        want[4 * t + e] += (float)(f16_to_double(a[row * 16 + i]) * f16_to_double(bm[i * 8 + col]));
    }
  for (int b = 0; b < BUILDS; b++) {
    Kernel *kernel = load(k, "shared", b, "product");
    DevPtr args[3] = {kit_words(k, "a", (uint32_t *)a, 128), kit_words(k, "b", (uint32_t *)bm, 64),
                      kit_fill(k, "c", 0, 128)};
    Launch l = {.kernel = kernel, .grid = {1, 1, 1}, .block = {32, 1, 1}, .smem = 768,
                .args = args, .arg_bytes = sizeof args};
    assert_int_equal(device_launch(k->dev, &l, k->diag), ST_OK);
    kit_read(k, args[2], (uint32_t *)got, 128);
    assert_memory_equal(got, want, sizeof want);
    kernel_free(kernel);
  }
}

// ---- hopper -------------------------------------------------------------------------------------
enum { TILE_A = 64 * 64, TILE_B = 8 * 64, PIECE = 2 * TILE_A + TILE_B, THREADS = 256 }; // halves

// Element (row, k) of a K-major tile whose 16-byte chunks are swizzled by 128 bytes.
static int swizzled(int row, int k) { return row * 64 + ((k / 8) ^ (row & 7)) * 8 + k % 8; }

static double small(int i) { return (i * 7 + i / 9 * 5) % 9 - 4; }

static void hopper_answer(uint16_t *x, float *want) {
  float d[2][THREADS][4], sum[2][THREADS];
  for (int block = 0; block < 2; block++) {
    uint16_t *at = x + block * PIECE;
    int seed = 1000 * block;
    for (int row = 0; row < 136; row++) // two A of 64 rows, then B
      for (int k = 0; k < 64; k++)
        at[row / 64 * TILE_A + swizzled(row % 64, k)] = f16_from_double(small(seed + row * 64 + k));
    for (int t = 0; t < THREADS; t++) {
      sum[block][t] = 0;
      for (int e = 0; e < 4; e++) {
        int row = t / 128 * 64 + t % 128 / 32 * 16 + t % 32 / 4 + e / 2 * 8,
            col = t % 4 * 2 + e % 2;
        double s = 0;
        for (int k = 0; k < 64; k++)
          s += small(seed + row * 64 + k) * small(seed + (128 + col) * 64 + k);
        d[block][t][e] = (float)s;
        sum[block][t] += d[block][t][e];
      }
    }
  }
  for (int i = 0; i < 2 * THREADS; i++)
    for (int e = 0; e < 4; e++)
      want[4 * i + e] = d[i / THREADS][i % THREADS][e] + sum[1 - i / THREADS][i % THREADS];
}

// A cluster of two blocks: bulk copies, wgmma, setmaxnreg, distributed shared memory; exact.
static void test_hopper(void **state) {
  Kit *k = *state;
  static uint16_t x[2 * PIECE];
  static float want[2 * THREADS * 4], got[2 * THREADS * 4];
  hopper_answer(x, want);
  static const char *const names[] = {"O3", "O0", "debug", "lineinfo"};
  for (int b = 0; b < 4; b++) {
    Source *src;
    Kernel *kernel = NULL;
    char *path = arena_printf(k->arena, "%s/nvcc/hopper.sm_90a.%s.ptx", TESTS_DIR, names[b]);
    if (source_read(k->arena, path, &src, k->diag) != ST_OK ||
        device_load_ptx(k->dev, src, NULL, "hopper", &kernel, k->diag) != ST_OK)
      fail_msg("%s", diag_text(k->diag));
    DevPtr args[2] = {kit_words(k, "x", (uint32_t *)x, PIECE),
                      kit_fill(k, "out", 0, 2 * THREADS * 4)};
    kit_run(k, kernel, 2, THREADS, args, sizeof args);
    kit_read(k, args[1], (uint32_t *)got, 2 * THREADS * 4);
    for (int i = 0; i < 2 * THREADS * 4; i++)
      if (got[i] != want[i])
        fail_msg("%s: [%d] is %g, not %g", names[b], i, got[i], want[i]);
    kernel_free(kernel);
  }
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup_anywhere, kit_teardown)
  const struct CMUnitTest tests[] = {
      T(test_local_array), T(test_scalar_mix), T(test_half_mix), T(test_staged), T(test_product),
      T(test_hopper),
      cmocka_unit_test_setup_teardown(test_reduce, kit_setup, kit_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
