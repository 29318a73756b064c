// Compare: NaN fails, infinities must agree, tolerances mean what they say, the place is named.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "compare.h"
#include "verify_data.h"

static bool agrees(double expected, double got, Tolerance tol) {
  double err;
  return element_agrees(expected, got, tol, DT_F16, &err);
}

static void nan_and_infinity(void **state) {
  (void)state;
  Tolerance wide = {.abs = 1e300};
  assert_false(agrees(1, NAN, wide));
  assert_false(agrees(NAN, 1, wide));
  assert_true(agrees(NAN, NAN, wide));
  assert_false(agrees(1, INFINITY, wide));
  assert_false(agrees(INFINITY, 1, wide));
  assert_false(agrees(INFINITY, -INFINITY, wide));
  assert_false(agrees(INFINITY, NAN, wide));
  assert_true(agrees(-INFINITY, -INFINITY, (Tolerance){0}));
}

static void tolerances(void **state) {
  (void)state;
  assert_true(agrees(0.5, 0.5, (Tolerance){0}));
  assert_false(agrees(0.5, nextafter(0.5, 1), (Tolerance){0}));
  assert_true(agrees(0, -0.0, (Tolerance){0}));
  assert_true(agrees(2, 2.25, (Tolerance){.abs = 0.25}));
  assert_false(agrees(2, 2.26, (Tolerance){.abs = 0.25}));
  assert_true(agrees(-4, -5, (Tolerance){.rel = 0.25}));
  assert_false(agrees(-4, -2, (Tolerance){.rel = 0.25})); // twice off where the reference is < 0
  assert_false(agrees(-4, 4, (Tolerance){.rel = 0.25}));
  assert_true(agrees(1, 1 + 0x1p-10, (Tolerance){.ulps = 1}));
  assert_false(agrees(1, 1 + 0x1.8p-10, (Tolerance){.ulps = 1}));
  // One rounding: half an ulp (f16: 2^-11 at 1, 2^-25 among the smallest), but 0 is never rounded.
  assert_true(agrees(1, 1 + 0x1p-11, (Tolerance){.rounded = true}));
  assert_false(agrees(1, 1 + 0x1.8p-11, (Tolerance){.rounded = true}));
  assert_true(agrees(0x1p-24, 0x1p-24 + 0x1p-25, (Tolerance){.rounded = true}));
  assert_true(agrees(0, 0, (Tolerance){.rounded = true}));
  assert_false(agrees(0, 0x1p-25, (Tolerance){.rounded = true}));
  assert_true(agrees(0, 0x1p-24, (Tolerance){.ulps = 1}));
}

typedef struct Outputs {
  Diag *d;
  HostTensor o, lse;
  double want_o[2 * 3 * 4 * 5], want_lse[2 * 4 * 3];
} Outputs;

static int setup(void **state) {
  Outputs *x = test_calloc(1, sizeof *x);
  x->d = diag_new();
  int64_t o[4] = {2, 3, 4, 5}, lse[3] = {2, 4, 3};
  assert_int_equal(host_tensor_make(&x->o, DT_F32, 4, o, &layout_o, FILL_NAN, x->d), ST_OK);
  assert_int_equal(host_tensor_make(&x->lse, DT_F32, 3, lse, &layout_dense, FILL_NAN, x->d), ST_OK);
  int n = 0;
  for (int64_t b = 0; b < 2; b++)
    for (int64_t i = 0; i < 3; i++)
      for (int64_t h = 0; h < 4; h++)
        for (int64_t e = 0; e < 5; e++) host_set(&x->o, b, i, h, e, x->want_o[n] = n / 8.0), n++;
  n = 0;
  for (int64_t b = 0; b < 2; b++)
    for (int64_t h = 0; h < 4; h++)
      for (int64_t i = 0; i < 3; i++) host_set(&x->lse, b, h, i, 0, x->want_lse[n] = n), n++;
  *state = x;
  return 0;
}

static int teardown(void **state) {
  Outputs *x = *state;
  host_tensor_free(&x->o);
  host_tensor_free(&x->lse);
  diag_free(x->d);
  test_free(x);
  return 0;
}

static GateResult run(Outputs *x, Expected want) {
  GateResult g = {.run = true, .passed = true};
  want.o = x->want_o;
  want.lse = x->want_lse;
  compare_outputs(&want, &x->o, &x->lse, &g);
  return g;
}

static void equal_outputs_pass(void **state) {
  GateResult g = run(*state, (Expected){.o_mean = 0});
  assert_true(g.passed);
  assert_int_equal(g.compared, 2 * 3 * 4 * 5 + 2 * 4 * 3);
  assert_true(g.max_error == 0);
}

static void the_first_bad_element_is_named(void **state) {
  Outputs *x = *state;
  host_set(&x->o, 1, 2, 3, 4, 1000);  // worst
  host_set(&x->o, 1, 0, 2, 3, -6.25); // first; expected ((1*3+0)*4+2)*5+3 = 73, over 8
  GateResult g = run(x, (Expected){.o_max = {.abs = 0.5}, .o_mean = 1e9});
  assert_false(g.passed);
  assert_string_equal(g.bad.tensor, "o");
  assert_int_equal(g.bad.batch, 1);
  assert_int_equal(g.bad.row, 0);
  assert_int_equal(g.bad.head, 2);
  assert_int_equal(g.bad.col, 3);
  assert_true(g.bad.expected == 9.125 && g.bad.got == -6.25);
  assert_true(g.max_error == 1000 - 119 / 8.0);
}

static void one_nan_fails_at_any_tolerance(void **state) {
  Outputs *x = *state;
  host_set(&x->o, 0, 1, 0, 0, NAN);
  GateResult g = run(x, (Expected){.o_max = {.abs = 1e30}, .o_mean = 1e30});
  assert_false(g.passed);
  assert_int_equal(g.bad.row, 1);
  assert_true(isnan(g.bad.got));
  assert_true(isnan(g.max_error) && isnan(g.mean_error)); // not the largest of the others, 0
  host_set(&x->o, 0, 1, 0, 0, INFINITY);
  g = run(x, (Expected){.o_max = {.abs = 1e30}, .o_mean = 1e30});
  assert_true(!g.passed && g.max_error == INFINITY);
  host_set(&x->o, 0, 2, 0, 0, NAN); // after it, and worse
  host_set(&x->o, 1, 2, 0, 0, 7);
  g = run(x, (Expected){.o_max = {.abs = 1e30}, .o_mean = 1e30});
  assert_true(isnan(g.max_error));
}

static void a_nan_lse_fails(void **state) {
  Outputs *x = *state;
  host_set(&x->lse, 1, 3, 2, 0, NAN);
  GateResult g = run(x, (Expected){.lse_max = {.abs = 1e30}});
  assert_false(g.passed);
  assert_string_equal(g.bad.tensor, "lse");
  assert_int_equal(g.bad.head, 3);
  assert_true(g.bad.expected == 23);
  assert_true(isnan(g.lse_error) && g.max_error == 0);
}

// Every element within the largest error, but all of them off: the mean says so.
static void the_mean_has_its_own_limit(void **state) {
  Outputs *x = *state;
  int n = 0;
  for (int64_t b = 0; b < 2; b++)
    for (int64_t i = 0; i < 3; i++)
      for (int64_t h = 0; h < 4; h++)
        for (int64_t e = 0; e < 5; e++) host_set(&x->o, b, i, h, e, n++ / 8.0 + 0.5);
  GateResult g = run(x, (Expected){.o_max = {.abs = 0.5}, .o_mean = 0.5});
  assert_true(g.passed);
  g = run(x, (Expected){.o_max = {.abs = 0.5}, .o_mean = 0.4});
  assert_false(g.passed);
  assert_true(g.bad.found);
  g = run(x, (Expected){.o_max = {.abs = 0.5}, .o_mean = -1});
  assert_true(g.passed);
}

static void a_sample_skips_the_other_rows(void **state) {
  Outputs *x = *state;
  host_set(&x->o, 0, 1, 0, 0, 99); // row number 1
  assert_true(run(x, (Expected){.o_mean = -1, .every = 2}).passed);
  host_set(&x->o, 0, 2, 0, 0, 99); // row number 2
  assert_false(run(x, (Expected){.o_mean = -1, .every = 2}).passed);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nan_and_infinity), cmocka_unit_test(tolerances),      T(equal_outputs_pass),
      T(the_first_bad_element_is_named),  T(one_nan_fails_at_any_tolerance), T(a_nan_lse_fails),
      T(the_mean_has_its_own_limit),      T(a_sample_skips_the_other_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
