// The .approx functions against double precision over dense samples: within the bounds of the PTX
// ISA 9.7.3 (the bound stands in each row, the largest error found is printed).
#include <math.h>

#include "dtype.h"
#include "lanes_util.h"

typedef enum Measure { ULPS, RELATIVE, ABSOLUTE } Measure;

typedef struct Bound {
  const char *inst;
  double (*exact)(double);
  double from, to; // samples are spread over this range, by value or (steps < 0) by exponent
  int steps;
  Measure measure;
  double bound;
} Bound;

static double rcp(double x) { return 1 / x; }
static double rsqrt(double x) { return 1 / sqrt(x); }

static double f32_value(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static uint32_t f32_code(double x) { float f = (float)x; uint32_t u; memcpy(&u, &f, 4); return u; }

static double ulp_f32(double x) {
  int e;
  frexp(x, &e);
  return ldexp(1, (e < -125 ? -125 : e) - 24);
}

static double error_of(Measure m, double got, double want) {
  double diff = fabs(got - want);
  if (m == ULPS) return diff / ulp_f32(want);
  return m == RELATIVE ? (want ? diff / fabs(want) : diff) : diff;
}

static double sample(const Bound *b, int i) {
  int n = b->steps < 0 ? -b->steps : b->steps;
  double t = (i + 0.37) / n;
  return b->steps < 0 ? b->from * pow(b->to / b->from, t) : b->from + (b->to - b->from) * t;
}

static void check_bound(const Bound *b, const LaneOp *op) {
  int n = b->steps < 0 ? -b->steps : b->steps;
  double worst = 0, worst_at = 0;
  for (int i = 0; i < n; i += 32) {
    Operand src[4] = {0}, d;
    for (int k = 0; k < 32; k++) src[0].w[k] = f32_code(sample(b, i + k));
    lanes_call(op, &d, src, op->imm);
    for (int k = 0; k < 32; k++) {
      double x = f32_value(src[0].w[k]), e = error_of(b->measure, f32_value(d.w[k]), b->exact(x));
      if (!(e <= worst)) worst = e, worst_at = x; // a NaN is the worst
    }
  }
  print_message("%-24s [%g, %g]: %.3g of %.3g at %.9g\n", b->inst, b->from, b->to, worst, b->bound,
                worst_at);
  if (!(worst <= b->bound)) fail_msg("%s is off by %g at %.9g", b->inst, worst, worst_at);
}

static void single(void **state) {
  (void)state;
  const double pi2 = 6.283185307179586;
  const Bound bounds[] = {
      {"ex2.approx.f32", exp2, -149, 128, 1 << 18, ULPS, 2},
      {"ex2.approx.f32", exp2, -1, 1, 1 << 18, ULPS, 2},
      {"ex2.approx.f32", exp2, 1e-30, 1e-3, -(1 << 14), ULPS, 2},
      {"lg2.approx.f32", log2, 0.5, 2, 1 << 17, ABSOLUTE, 0x1p-22},
      {"lg2.approx.f32", log2, 0x1p-149, 0.5, -(1 << 17), RELATIVE, 0x1p-22},
      {"lg2.approx.f32", log2, 2, 0x1.fp127, -(1 << 17), RELATIVE, 0x1p-22},
      {"rcp.approx.f32", rcp, 0x1p-126, 0x1p127, -(1 << 17), ULPS, 1},
      {"rcp.approx.f32", rcp, 1, 2, 1 << 16, ULPS, 1},
      {"rsqrt.approx.f32", rsqrt, 0x1p-149, 0x1p127, -(1 << 17), RELATIVE, 0x1p-22},
      {"sqrt.approx.f32", sqrt, 0x1p-126, 0x1p127, -(1 << 17), RELATIVE, 0x1p-23},
      {"sin.approx.f32", sin, -pi2, pi2, 1 << 17, ABSOLUTE, 0x1p-20},
      {"cos.approx.f32", cos, -pi2, pi2, 1 << 17, ABSOLUTE, 0x1p-20},
      {"sin.approx.f32", sin, -314, 314, 1 << 16, ABSOLUTE, 0x1p-14},
      {"cos.approx.f32", cos, -314, 314, 1 << 16, ABSOLUTE, 0x1p-14},
      {"tanh.approx.f32", tanh, -10, 10, 1 << 17, RELATIVE, 0x1p-11},
      {"tanh.approx.f32", tanh, 0x1p-126, 1, -(1 << 16), RELATIVE, 0x1p-11},
  };
  Arena *a = arena_new();
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
    LaneOp op;
    const PtxInst *in = lanes_parse(a, arena_printf(a, "%s %%r1,%%r2;\n", bounds[i].inst), NULL);
    assert_non_null(in);
    assert_true(lane_isa(NULL)->find(in, &op));
    check_bound(&bounds[i], &op);
  }
  arena_free(a);
}

// Every finite f16 and bf16 input.
static void every_half(const char *inst, bool bf16, double (*exact)(double), double bound) {
  Arena *a = arena_new();
  LaneOp op;
  const PtxInst *in = lanes_parse(a, arena_printf(a, "%s %%h1,%%h2;\n", inst), NULL);
  assert_non_null(in);
  assert_true(lane_isa(NULL)->find(in, &op));
  const double least = bf16 ? 0x1p-126 : 0x1p-14, most = bf16 ? 0x1.fep127 : 65504;
  for (uint32_t u = 0; u < 0x10000; u += 32) {
    Operand src[4] = {0}, d;
    for (uint32_t k = 0; k < 32; k++) src[0].w[k] = u + k;
    lanes_call(&op, &d, src, op.imm);
    for (uint32_t k = 0; k < 32; k++) {
      double x = bf16 ? bf16_to_double((uint16_t)(u + k)) : f16_to_double((uint16_t)(u + k));
      double want = exact(x);
      if (!isfinite(x) || fabs(want) < least || fabs(want) > most) continue;
      double got = bf16 ? bf16_to_double((uint16_t)d.w[k]) : f16_to_double((uint16_t)d.w[k]);
      if (!(fabs(got - want) <= bound * fabs(want)))
        fail_msg("%s(%g) = %g, exactly %g", inst, x, got, want);
    }
  }
  arena_free(a);
}

static void half(void **state) {
  (void)state;
  every_half("ex2.approx.f16", false, exp2, exp2(-9.9));
  every_half("ex2.approx.ftz.bf16", true, exp2, exp2(-7));
  every_half("tanh.approx.f16", false, tanh, exp2(-10.987));
  every_half("tanh.approx.bf16", true, tanh, exp2(-8));
}

// Two units in the last place for 2^-126 <= |b| <= 2^126.
static void division(void **state) {
  (void)state;
  Arena *a = arena_new();
  LaneOp op;
  const PtxInst *in = lanes_parse(a, "div.approx.f32 %r1,%r2,%r3;\n", NULL);
  assert_non_null(in);
  assert_true(lane_isa(NULL)->find(in, &op));
  uint32_t seed = 12345;
  for (int i = 0; i < 4096; i++) {
    Operand src[4] = {0}, d;
    for (int k = 0; k < 32; k++) {
      seed = seed * 1664525 + 1013904223;
      src[0].w[k] = 0x3F800000u + (seed >> 9);
      seed = seed * 1664525 + 1013904223;
      src[1].w[k] = 0x2F800000u + (seed >> 4); // 2^-32 to 2^0 and beyond
    }
    lanes_call(&op, &d, src, op.imm);
    for (int k = 0; k < 32; k++) {
      double want = f32_value(src[0].w[k]) / f32_value(src[1].w[k]);
      assert_true(error_of(ULPS, f32_value(d.w[k]), want) <= 2);
    }
  }
  arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(single), cmocka_unit_test(half),
                                     cmocka_unit_test(division)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
