// A sample of the mutants of our kernels; test_mutants_full.c takes them all.
#include "mutants.h"

static void test_sample(void **state) {
  (void)state;
  static const MutantCase cases[] = {
      {"prefill_thread", "b=1,hq=1,sq=5,sk=21,d=32,causal=1"},
      {"decode_splitk", "b=1,hq=2,hkv=1,sq=1,sk=70,d=32,chunks=2"},
  };
  Score s = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    score_mutants(&cases[i], 7, &s);
  print_message("%d mutants: %d behave differently; the sanitizer tells %d, the verifier %d\n",
                s.made, s.changed, s.caught_by_sanitizer, s.caught_by_verifier);
  assert_int_equal(s.uncaught, 0);
  assert_true(s.changed > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sample)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
