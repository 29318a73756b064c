// All mutants of our attention kernels, with their score.
#include "mutants.h"

static void test_all(void **state) {
  (void)state;
  static const MutantCase cases[] = {
      {"prefill_thread", "b=1,hq=1,sq=5,sk=21,d=32,causal=1"},
      {"prefill_thread", "b=1,hq=2,hkv=1,sq=3,sk=37,d=64"},
      {"decode_splitk", "b=1,hq=2,hkv=1,sq=1,sk=70,d=32,chunks=2"},
      {"decode_splitk", "b=2,hq=4,hkv=2,sq=2,sk=100,d=64,chunks=3,causal=1"},
  };
  int uncaught = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Score s = {0};
    score_mutants(&cases[i], 1, &s);
    print_message("%s %s: %d mutants, %d behave differently, the sanitizer tells %d, the verifier "
                  "%d, no effect %d\n",
                  cases[i].template_name, cases[i].problem, s.made, s.changed,
                  s.caught_by_sanitizer, s.caught_by_verifier, s.quiet);
    uncaught += s.uncaught;
  }
  assert_int_equal(uncaught, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
