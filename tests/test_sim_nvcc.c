// Compiler-made PTX (tests/nvcc/) in the interpreter: optimised and debug code of both targets give
// what the source says, or where approximations enter, the same bits as each other.
#include <math.h>

#include "dtype.h"
#include "sim_kit.h"

static const char *const builds[] = {"sm_80.O3", "sm_80.debug", "sm_90a.O3", "sm_90a.debug"};
enum { BUILDS = 4 };

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
      assert_int_not_equal(got[n - 1], 0);
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
      assert_true(fabs(f16_to_double((uint16_t)(got[i] >> 16)) - want) <= 2 * ldexp(want, -10));
    }
  }
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {T(test_reduce), T(test_local_array), T(test_scalar_mix),
                                     T(test_half_mix)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
