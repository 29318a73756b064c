// A sample of the mutants of our kernels: every barrier, wait and fence and every 7th mask, on one
// problem under three schedules.  test_mutants_full.c takes them all.
#include "mutant_cases.h"

static void test_sample(void **state) {
  (void)state;
  Diag *d = diag_new();
  Session *s = session_open(NULL, d);
  Device *dev;
  const TemplateInfo **t;
  int n, uncaught = 0, unplaced = 0;
  assert_int_equal(device_open("sim", &dev, d), ST_OK);
  assert_int_equal(session_templates(s, &t, &n, d), ST_OK);
  for (int i = 0; i < n; i++) {
    if (!is_scored(t[i])) continue;
    Bench b;
    bench_open(&b, s, dev, t[i], NULL);
    bench_base(&b, 1, (Depth){3, 7, false});
    print_score(&b);
    assert_int_equal(b.wrong, 0);
    for (int k = 0; k < b.score.n; k++) {
      const Scored *x = &b.score.v[k];
      if (x->j.changed && !is_caught(x)) uncaught++, print_error("not caught: %s\n", x->key);
      if (x->j.unplaced) unplaced++, print_error("a report without template line: %s\n", x->key);
    }
    bench_close(&b);
  }
  device_close(dev);
  session_close(s);
  diag_free(d);
  assert_int_equal(uncaught, 0);
  assert_int_equal(unplaced, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sample)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
