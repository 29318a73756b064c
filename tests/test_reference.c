// The oracle against a naive long-double formula, closed values, and its own promises.
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "reference.h"
#include "verify_data.h"

typedef struct Fixture {
  Arena *a;
  Diag *d;
  Problem *p;
  AttnInputs in;
  Reference ref;
} Fixture;

static int setup(void **state) {
  Fixture *f = test_calloc(1, sizeof *f);
  f->a = arena_new();
  f->d = diag_new();
  *state = f;
  return 0;
}

static void drop(Fixture *f) {
  inputs_free(&f->in);
  reference_free(&f->ref);
}

static int teardown(void **state) {
  Fixture *f = *state;
  drop(f);
  arena_free(f->a);
  diag_free(f->d);
  test_free(f);
  return 0;
}

static void start(Fixture *f, const char *problem, Dtype t) {
  drop(f);
  if (problem_parse(f->a, problem, &f->p, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
  assert_int_equal(inputs_make(f->p, t, FILL_NAN, &f->in, f->d), ST_OK);
}

static void solve(Fixture *f, int threads) {
  reference_free(&f->ref);
  assert_int_equal(reference_attention(f->p, &f->in, threads, &f->ref, f->d), ST_OK);
}

static int64_t get(Fixture *f, const char *name) { return problem_int(f->p, name, 0); }

static double o_at(Fixture *f, int64_t b, int64_t i, int64_t h, int64_t e) {
  return f->ref.o[((b * get(f, "sq") + i) * get(f, "hq") + h) * get(f, "d") + e];
}

static double lse_at(Fixture *f, int64_t b, int64_t h, int64_t i) {
  return f->ref.lse[(b * get(f, "hq") + h) * get(f, "sq") + i];
}

// O and LSE of one row straight from the definition, masked keys by weight zero.
static long double naive(Fixture *f, int64_t b, int64_t i, int64_t h, int64_t e, long double *lse) {
  int64_t sk = get(f, "sk"), sq = get(f, "sq"), hkv = h / (get(f, "hq") / get(f, "hkv"));
  long double l = 0, o = 0;
  for (int64_t j = 0; j < sk; j++) {
    if (get(f, "causal") && j > i + sk - sq) continue;
    long double s = 0;
    for (int64_t x = 0; x < get(f, "d"); x++)
      s += (long double)host_get(&f->in.q, b, i, h, x) * host_get(&f->in.k, b, j, hkv, x);
    long double p = expl(s * problem_float(f->p, "scale", 1 / sqrt((double)get(f, "d"))));
    l += p;
    o += p * host_get(&f->in.v, b, j, hkv, e);
  }
  *lse = logl(l);
  return l > 0 ? o / l : 0;
}

static void agrees_with_the_definition(void **state) {
  Fixture *f = *state;
  const char *problems[] = {
      "b=2,hq=4,hkv=2,sq=3,sk=37,d=24", "b=2,hq=6,hkv=3,sq=19,sk=16,d=8,causal=1",
      "b=1,hq=2,hkv=1,sq=17,sk=33,d=16,causal=1,scale=0.3", "b=3,hq=1,sq=1,sk=1,d=1"};
  Dtype types[] = {DT_F32, DT_F16, DT_BF16, DT_F32};
  for (int t = 0; t < 4; t++) {
    start(f, problems[t], types[t]);
    inputs_fill_random(&f->in, 7 + (uint64_t)t);
    solve(f, 2);
    for (int64_t b = 0; b < get(f, "b"); b++)
      for (int64_t i = 0; i < get(f, "sq"); i++)
        for (int64_t h = 0; h < get(f, "hq"); h++) {
          long double lse = 0;
          for (int64_t e = 0; e < get(f, "d"); e++)
            assert_true(fabsl(naive(f, b, i, h, e, &lse) - o_at(f, b, i, h, e)) < 1e-13L);
          double got = lse_at(f, b, h, i);
          assert_true(isinf(lse) ? got == -INFINITY : fabsl(lse - got) < 1e-13L);
        }
  }
}

static double index_value(void *ctx, int64_t i, int64_t j, int64_t k, int64_t e) {
  (void)ctx, (void)e;
  return (double)j + 1000.0 * (double)k + 100000.0 * (double)i;
}

static double zero_value(void *ctx, int64_t i, int64_t j, int64_t k, int64_t e) {
  (void)ctx, (void)i, (void)j, (void)k, (void)e;
  return 0;
}

// Q = 0: every weight is equal, so O is the mean of the visible values and LSE = ln(count).
static void closed_values_bottom_right(void **state) {
  Fixture *f = *state;
  start(f, "b=2,hq=4,hkv=2,sq=2,sk=5,d=4,causal=1", DT_F32);
  host_fill_with(&f->in.q, zero_value, NULL);
  host_fill_with(&f->in.k, index_value, NULL);
  host_fill_with(&f->in.v, index_value, NULL);
  solve(f, 1);
  for (int64_t b = 0; b < 2; b++)
    for (int64_t h = 0; h < 4; h++) {
      double base = 1000.0 * (double)(h / 2) + 100000.0 * (double)b;
      assert_true(o_at(f, b, 0, h, 3) == base + 1.5); // keys 0..3
      assert_true(o_at(f, b, 1, h, 0) == base + 2.0); // keys 0..4
      assert_true(fabs(lse_at(f, b, h, 0) - log(4)) < 1e-15);
      assert_true(fabs(lse_at(f, b, h, 1) - log(5)) < 1e-15);
    }
}

static void no_visible_key(void **state) {
  Fixture *f = *state;
  start(f, "b=1,hq=2,sq=3,sk=1,d=4,causal=1", DT_F32);
  inputs_fill_random(&f->in, 1);
  solve(f, 1);
  for (int i = 0; i < 2; i++) { // rows 0 and 1 come before the only key
    assert_true(o_at(f, 0, i, 1, 2) == 0);
    assert_true(lse_at(f, 0, 1, i) == -INFINITY);
  }
  assert_true(o_at(f, 0, 2, 1, 2) == host_get(&f->in.v, 0, 0, 1, 2));
  start(f, "b=1,hq=2,sq=3,sk=0,d=4", DT_F32);
  inputs_fill_random(&f->in, 1);
  solve(f, 2);
  assert_true(o_at(f, 0, 2, 1, 2) == 0);
  assert_true(lse_at(f, 0, 0, 2) == -INFINITY);
  assert_true(f->ref.plain_max == 0 && f->ref.plain_mean == 0);
  start(f, "b=0,hq=2,sq=3,sk=4,d=4", DT_F32);
  solve(f, 2);
}

// One query sees one key: O is that V to the bit, whatever the value, in every element type.
static double every_value(void *ctx, int64_t i, int64_t j, int64_t k, int64_t e) {
  uint16_t bits = (uint16_t)(j * 256 + e);
  (void)i, (void)k;
  return *(Dtype *)ctx == DT_F16 ? f16_to_double(bits) : bf16_to_double(bits);
}

static void one_key_gives_back_every_16_bit_value(void **state) {
  Fixture *f = *state;
  Dtype types[] = {DT_F16, DT_BF16};
  for (int t = 0; t < 2; t++)
    for (int64_t row = 0; row < 256; row++) {
      start(f, "b=1,hq=1,sq=1,sk=1,d=256", types[t]);
      host_fill_with(&f->in.q, zero_value, NULL);
      host_fill_with(&f->in.k, zero_value, NULL);
      for (int64_t e = 0; e < 256; e++)
        host_set(&f->in.v, 0, 0, 0, e, every_value(&types[t], 0, row, 0, e));
      solve(f, 1);
      for (int64_t e = 0; e < 256; e++) {
        double v = every_value(&types[t], 0, row, 0, e), o = o_at(f, 0, 0, 0, e);
        assert_true(isnan(v) ? isnan(o) : o == v);
      }
    }
}

// What a query doesn't see must not be read into its answer, NaN or not.
static void masked_keys_do_not_leak(void **state) {
  Fixture *f = *state;
  start(f, "b=1,hq=1,sq=2,sk=3,d=4,causal=1", DT_F32);
  inputs_fill_random(&f->in, 5);
  for (int64_t e = 0; e < 4; e++) host_set(&f->in.k, 0, 2, 0, e, NAN);
  for (int64_t e = 0; e < 4; e++) host_set(&f->in.v, 0, 2, 0, e, NAN);
  solve(f, 1);
  for (int64_t e = 0; e < 4; e++) {
    assert_true(isfinite(o_at(f, 0, 0, 0, e)));
    assert_true(isnan(o_at(f, 0, 1, 0, e)));
  }
}

// 128 x 64 x 64 = 524288 is past f16's range; two equal keys give the mean of their values.
static void large_scores_do_not_overflow(void **state) {
  Fixture *f = *state;
  start(f, "b=1,hq=1,sq=1,sk=2,d=128,scale=1", DT_F16);
  for (int64_t e = 0; e < 128; e++) {
    host_set(&f->in.q, 0, 0, 0, e, 64);
    for (int64_t j = 0; j < 2; j++) host_set(&f->in.k, 0, j, 0, e, 64);
    host_set(&f->in.v, 0, 0, 0, e, 1);
    host_set(&f->in.v, 0, 1, 0, e, 2);
  }
  solve(f, 1);
  assert_true(o_at(f, 0, 0, 0, 77) == 1.5);
  assert_true(fabs(lse_at(f, 0, 0, 0) - (524288 + log(2))) < 1e-9);
}

// The plain formula's error: of the order of the dtype's rounding of P and O (of S where O is
// fp32), and zero where nothing is rounded.
static void plain_error_is_the_dtypes(void **state) {
  Fixture *f = *state;
  Dtype types[] = {DT_F32, DT_F16, DT_BF16};
  const double least[] = {1e-7, 1e-4, 1e-3}, most[] = {1e-5, 4e-3, 3e-2};
  for (int t = 0; t < 3; t++) {
    start(f, "b=1,hq=2,sq=8,sk=300,d=32", types[t]);
    inputs_fill_random(&f->in, 9);
    solve(f, 2);
    assert_true(f->ref.plain_max > least[t] && f->ref.plain_max < most[t]);
    assert_true(f->ref.plain_mean > 0 && f->ref.plain_mean < f->ref.plain_max);
    assert_true(f->ref.plain_lse_max > 0 && f->ref.plain_lse_max < 1e-5);
  }
  start(f, "b=1,hq=1,sq=1,sk=1,d=32", DT_BF16);
  inputs_fill_random(&f->in, 9);
  solve(f, 1);
  assert_true(f->ref.plain_max == 0);
}

// The error of a few rows, whichever numbers they hold, is that of many: as many draws as make 1024
// rows.  One draw of four rows may be a tenth of it.
static void a_few_rows_are_drawn_often(void **state) {
  Fixture *f = *state;
  double least = INFINITY, once = INFINITY;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    start(f, "b=1,hq=4,hkv=2,sq=1,sk=60,d=64", DT_F32);
    inputs_fill_random(&f->in, seed);
    solve(f, 1);
    assert_int_equal(f->ref.draws, REF_DRAWS);
    least = fmin(least, f->ref.plain_max);
    Reference one;
    ReferenceOpts opts = {.threads = 1, .draws = 1};
    assert_int_equal(reference_rows(f->p, &f->in, &opts, &one, f->d), ST_OK);
    assert_int_equal(one.draws, 1);
    assert_memory_equal(one.o, f->ref.o, 4 * 64 * sizeof(double)); // the answer is the first draw's
    assert_true(one.plain_max <= f->ref.plain_max && one.plain_mean <= f->ref.plain_mean);
    assert_true(one.plain_lse_max <= f->ref.plain_lse_max && one.v_max == f->ref.v_max);
    once = fmin(once, one.plain_max);
    reference_free(&one);
  }
  start(f, "b=8,hq=4,hkv=2,sq=32,sk=60,d=64", DT_F32);
  inputs_fill_random(&f->in, 1);
  solve(f, 2);
  assert_int_equal(f->ref.draws, 1); // 1024 rows
  double many = f->ref.plain_max;
  assert_true(least > many / 6 && once < many / 10);
  start(f, "b=8,hq=4,hkv=2,sq=30,sk=60,d=64", DT_F32);
  inputs_fill_random(&f->in, 1);
  solve(f, 2);
  assert_int_equal(f->ref.draws, 2); // 960 rows
}

static void same_key(AttnInputs *in, int64_t keys) {
  for (int64_t j = 1; j < keys; j++)
    for (int64_t e = 0; e < in->k.t.shape[3]; e++)
      host_set(&in->k, 0, j, 0, e, host_get(&in->k, 0, 0, 0, e));
}

// Weights that are exact stay so in every draw: one key, or equal scores, whatever maximum a draw
// takes.
static void draws_keep_what_is_exact(void **state) {
  Fixture *f = *state;
  const Dtype types[] = {DT_F32, DT_F16, DT_BF16};
  for (int t = 0; t < 3; t++) {
    start(f, "hq=2,hkv=1,sq=3,sk=1,d=64", types[t]);
    inputs_fill_random(&f->in, 9);
    solve(f, 1);
    assert_true(f->ref.draws == REF_DRAWS && f->ref.plain_max == 0 && f->ref.plain_lse_max < 1e-5);
    start(f, "hq=1,sq=1,sk=4,d=64", types[t]); // integers: O's only rounding is none
    inputs_fill_random(&f->in, 9);
    same_key(&f->in, 4);
    host_fill_with(&f->in.v, index_value, NULL);
    solve(f, 1);
    assert_true(o_at(f, 0, 0, 0, 5) == 1.5 && f->ref.plain_max == 0);
  }
}

// O of 8-bit inputs is rounded to the type that it has: equal weights leave that error alone, half
// an ulp at most (plus what accumulators of 14 digits cut off four keys: nothing).
static void o_of_eight_bits_is_rounded_to_its_type(void **state) {
  Fixture *f = *state;
  start(f, "hq=1,sq=1,sk=3,d=64,scale=0", DT_E4M3);
  inputs_fill_random(&f->in, 9);
  const Dtype types[] = {DT_F32, DT_F16, DT_BF16};
  double e[3];
  for (int t = 0; t < 3; t++) {
    ReferenceOpts opts = {.threads = 1, .has_dtype_o = true, .dtype_o = types[t]};
    assert_int_equal(reference_rows(f->p, &f->in, &opts, &f->ref, f->d), ST_OK);
    e[t] = f->ref.plain_max;
    reference_free(&f->ref);
  }
  assert_true(e[0] < 1e-6); // means below 4: ulps are 2^-22 2^-9, 2^-6 at most
  assert_true(e[1] > 0x1p-13 && e[1] <= 0x1p-10);
  assert_true(e[2] > 0x1p-10 && e[2] <= 0x1p-7);
}

// An accumulator of 8-bit products keeps 14 digits: 2^14 and 32 keys later 1 more is 2^14 still.
static double far_apart(void *ctx, int64_t i, int64_t j, int64_t k, int64_t e) {
  (void)ctx, (void)i, (void)k, (void)e;
  return j % 32 ? 0 : j ? 0.0078125 : 256;
}

static void sums_of_eight_bits_are_cut(void **state) {
  Fixture *f = *state;
  start(f, "hq=1,sq=1,sk=64,d=32,scale=0", DT_E4M3);
  inputs_fill_random(&f->in, 9);
  host_fill_with(&f->in.v, far_apart, NULL);
  ReferenceOpts opts = {.threads = 1, .draws = 1};
  assert_int_equal(reference_rows(f->p, &f->in, &opts, &f->ref, f->d), ST_OK);
  assert_true(o_at(f, 0, 0, 0, 0) == 256.0078125 / 64 && f->ref.plain_max == 0.0078125 / 64);
}

static void threads_do_not_change_the_bits(void **state) {
  Fixture *f = *state;
  start(f, "b=2,hq=4,hkv=2,sq=70,sk=65,d=40,causal=1", DT_BF16);
  inputs_fill_random(&f->in, 11);
  solve(f, 1);
  Reference one = f->ref;
  f->ref = (Reference){0};
  solve(f, 5);
  size_t rows = 2 * 4 * 70;
  assert_memory_equal(one.o, f->ref.o, rows * 40 * sizeof(double));
  assert_memory_equal(one.lse, f->ref.lse, rows * sizeof(double));
  assert_true(one.plain_max == f->ref.plain_max && one.draws == 2);
  reference_free(&one);
}

static void a_sample_of_rows_is_the_same_rows(void **state) {
  Fixture *f = *state;
  start(f, "b=2,hq=2,sq=33,sk=20,d=8", DT_F32);
  inputs_fill_random(&f->in, 13);
  solve(f, 2);
  Reference some;
  ReferenceOpts opts = {.threads = 2, .every = 7};
  assert_int_equal(reference_rows(f->p, &f->in, &opts, &some, f->d), ST_OK);
  for (int64_t r = 0; r < 2 * 2 * 33; r++) // r numbers (batch, head, query), as lse does
    assert_true(r % 7 ? isnan(some.lse[r]) : some.lse[r] == f->ref.lse[r]);
  reference_free(&some);
}

// A rule that masks odd keys and adds the head's number.
static Status rule(void *ctx, const ScoreRow *at, double *s, float *s32) {
  (void)ctx;
  for (int64_t j = 0; j < at->n; j++) {
    s32[j] = j % 2 ? -INFINITY : s32[j] + (float)at->head;
    if (s) s[j] = j % 2 ? -INFINITY : s[j] + (double)at->head;
  }
  return ST_OK;
}

static void score_rules_apply(void **state) {
  Fixture *f = *state;
  start(f, "b=1,hq=3,sq=1,sk=7,d=4", DT_F32);
  host_fill_with(&f->in.q, zero_value, NULL);
  host_fill_with(&f->in.k, zero_value, NULL);
  host_fill_with(&f->in.v, index_value, NULL);
  ReferenceOpts opts = {.threads = 1, .score = rule};
  assert_int_equal(reference_rows(f->p, &f->in, &opts, &f->ref, f->d), ST_OK);
  for (int64_t h = 0; h < 3; h++) {
    assert_true(o_at(f, 0, 0, h, 1) == 3 + 1000.0 * (double)h); // keys 0, 2, 4, 6
    assert_true(fabs(lse_at(f, 0, h, 0) - (log(4) + (double)h)) < 1e-14);
  }
}

// ---- window, cap, slopes, sinks: values by hand ------------------------------------------------
static void start_flat(Fixture *f, const char *problem) { // every score is 0 before the rules
  start(f, problem, DT_F32);
  host_fill_with(&f->in.q, zero_value, NULL);
  host_fill_with(&f->in.k, zero_value, NULL);
  host_fill_with(&f->in.v, index_value, NULL);
}

static void expect_keys(Fixture *f, int64_t i, int64_t from, int64_t to) {
  KeyRange r = visible_range(f->p, 0, i);
  assert_int_equal(r.from, from);
  assert_int_equal(r.to, to);
  bool none = from == to;
  double mean = none ? 0 : (double)(from + to - 1) / 2, keys = (double)(to - from);
  assert_true(fabs(o_at(f, 0, i, 0, 0) - mean) < 1e-12);
  assert_true(none ? lse_at(f, 0, 0, i) == -INFINITY
                   : fabs(lse_at(f, 0, 0, i) - log(keys)) < 1e-14);
}

static void windows_are_aligned_bottom_right(void **state) {
  Fixture *f = *state;
  start_flat(f, "hq=1,sq=3,sk=8,d=4,wl=2,wr=1"); // shift 5: query i is at key i + 5
  solve(f, 1);
  expect_keys(f, 0, 3, 7);
  expect_keys(f, 1, 4, 8);
  expect_keys(f, 2, 5, 8);
  start_flat(f, "hq=1,sq=3,sk=8,d=4,wl=2,wr=0,causal=1");
  solve(f, 1);
  expect_keys(f, 0, 3, 6);
  expect_keys(f, 2, 5, 8);
  start_flat(f, "hq=1,sq=5,sk=2,d=4,wl=0,wr=0"); // shift -3
  solve(f, 1);
  for (int64_t i = 0; i < 3; i++) expect_keys(f, i, 0, 0);
  expect_keys(f, 3, 0, 1);
  expect_keys(f, 4, 1, 2);
  start_flat(f, "hq=1,sq=1,sk=40,d=4,wr=0"); // the left side is open
  solve(f, 1);
  expect_keys(f, 0, 0, 40);
  start_flat(f, "hq=1,sq=30,sk=40,d=4,wl=20"); // whole blocks of keys before the window
  solve(f, 1);
  expect_keys(f, 29, 19, 40);
}

static void keys_before_a_window_do_not_leak(void **state) {
  Fixture *f = *state;
  start_flat(f, "hq=1,sq=2,sk=40,d=4,wl=3");
  for (int64_t j = 0; j < 35; j++)
    for (int64_t e = 0; e < 4; e++) {
      host_set(&f->in.k, 0, j, 0, e, NAN);
      host_set(&f->in.v, 0, j, 0, e, NAN);
    }
  solve(f, 1);
  expect_keys(f, 0, 35, 40);
  expect_keys(f, 1, 36, 40);
}

static double ones(void *ctx, int64_t b, int64_t j, int64_t h, int64_t e) {
  (void)ctx, (void)b, (void)j, (void)h, (void)e;
  return 1;
}

static void caps_bend_the_scaled_score(void **state) {
  Fixture *f = *state;
  start_flat(f, "hq=1,sq=1,sk=1,d=4,scale=0.5,softcap=3"); // s = 2: 3 tanh(2/3), not tanh(2) 3
  host_fill_with(&f->in.q, ones, NULL);
  host_fill_with(&f->in.k, ones, NULL);
  solve(f, 1);
  assert_true(fabs(lse_at(f, 0, 0, 0) - 1.7483488360437307) < 1e-14);
}

static void slopes_lower_far_keys_on_both_sides(void **state) {
  Fixture *f = *state;
  start_flat(f, "b=2,hq=2,sq=2,sk=4,d=4,alibi=1"); // query 0 is at key 2: distances 2 1 0 1
  assert_true(((float *)f->in.slopes.host)[1] == 0.03125f); // 2^-(1 + 8 / 2)
  solve(f, 1);
  for (int64_t b = 0; b < 2; b++)
    for (int64_t h = 0; h < 2; h++) {
      double m = (h ? 0.03125 : 0.5) / (double)(1 + b);
      assert_true(fabs(lse_at(f, b, h, 0) - log(exp(-2 * m) + exp(-m) + 1 + exp(-m))) < 1e-14);
    }
}

static void a_sink_takes_weight_and_has_no_value(void **state) {
  Fixture *f = *state;
  start_flat(f, "hq=3,hkv=1,sq=3,sk=2,d=4,causal=1,sinks=1"); // query 0 sees no key
  float *sink = f->in.sinks.host;
  sink[0] = 0, sink[1] = -2, sink[2] = 50;
  solve(f, 1);
  for (int64_t h = 0; h < 3; h++) {
    double w = exp(sink[h]);
    assert_true(o_at(f, 0, 0, h, 0) == 0);
    assert_true(fabs(lse_at(f, 0, h, 0) - sink[h]) < 1e-14); // the sink alone
    assert_true(fabs(o_at(f, 0, 2, h, 0) - 1 / (2 + w)) < 1e-14); // values 0 and 1
    assert_true(fabs(lse_at(f, 0, h, 2) - log(2 + w)) < 1e-13);
  }
}

static void values_have_their_own_length(void **state) {
  Fixture *f = *state;
  const char *const dims[] = {"hq=1,sq=1,sk=3,d=4,dv=20", "hq=1,sq=1,sk=3,d=20,dv=4"};
  for (int n = 0; n < 2; n++) {
    start_flat(f, dims[n]);
    int64_t dv = get(f, "dv");
    for (int64_t j = 0; j < 3; j++)
      for (int64_t e = 0; e < dv; e++) host_set(&f->in.v, 0, j, 0, e, (double)(3 * e + j));
    solve(f, 1);
    for (int64_t e = 0; e < dv; e++)
      assert_true(fabs(f->ref.o[e] - (double)(3 * e + 1)) < 1e-12);
  }
  assert_true(problem_flops(f->p) == 2 * 3 * (20 + 4));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(agrees_with_the_definition),
      T(closed_values_bottom_right),
      T(no_visible_key),
      T(one_key_gives_back_every_16_bit_value),
      T(masked_keys_do_not_leak),
      T(large_scores_do_not_overflow),
      T(plain_error_is_the_dtypes), T(a_few_rows_are_drawn_often), T(draws_keep_what_is_exact),
      T(o_of_eight_bits_is_rounded_to_its_type), T(sums_of_eight_bits_are_cut),
      T(threads_do_not_change_the_bits),
      T(a_sample_of_rows_is_the_same_rows),
      T(score_rules_apply),
      T(windows_are_aligned_bottom_right),
      T(keys_before_a_window_do_not_leak),
      T(caps_bend_the_scaled_score),
      T(slopes_lower_far_keys_on_both_sides),
      T(a_sink_takes_weight_and_has_no_value),
      T(values_have_their_own_length),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
