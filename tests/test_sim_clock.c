// What clocks know of asynchronous operations: sets that grow to both sides; joins, copies, resets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "sim_clock.h"

static bool knows(const Clock *c, uint32_t number) {
  return clock_knows(c, who_of(7, WHO_ASYNC), number, 1);
}

static int known(const Clock *c, uint32_t upto) {
  int n = 0;
  for (uint32_t i = 0; i < upto; i++)
    n += knows(c, i);
  return n;
}

static void grows_to_both_sides(void **state) {
  (void)state;
  Clock c = {0};
  clock_reset(&c, 7, 4, 0);
  assert_false(knows(&c, 0));
  const uint32_t order[] = {200, 63, 64, 1000, 0, 199, 201};
  for (int i = 0; i < 7; i++) {
    clock_add_async(&c, order[i]);
    for (int k = 0; k < 7; k++)
      assert_int_equal(knows(&c, order[k]), k <= i);
    assert_int_equal(known(&c, 4096), i + 1);
  }
  clock_reset(&c, 7, 4, 0);
  assert_int_equal(known(&c, 4096), 0);
  clock_add_async(&c, 3000); // behind a reset nothing old comes back
  assert_int_equal(known(&c, 4096), 1);
  clock_free(&c);
}

static void joins_and_copies(void **state) {
  (void)state;
  Clock a = {0}, b = {0}, other = {0};
  clock_reset(&a, 7, 4, 0);
  clock_reset(&b, 7, 4, 0);
  clock_reset(&other, 8, 2, 0);
  clock_add_async(&a, 500);
  clock_add_async(&b, 10);
  clock_add_async(&b, 900);
  clock_add_async(&other, 501);
  clock_join(&a, &b);
  clock_join(&a, &other); // another CTA's clock knows operations by the same numbers
  assert_true(knows(&a, 500) && knows(&a, 10) && knows(&a, 900) && knows(&a, 501));
  assert_int_equal(known(&a, 4096), 4);
  assert_int_equal(known(&b, 4096), 2);
  clock_copy(&b, &a);
  assert_int_equal(known(&b, 4096), 4);
  clock_add_async(&b, 7);
  assert_false(knows(&a, 7));
  clock_copy(&a, &other); // a smaller set takes the place of a larger one
  assert_true(knows(&a, 501));
  assert_int_equal(known(&a, 4096), 1);
  clock_free(&a), clock_free(&b), clock_free(&other);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(grows_to_both_sides),
                                     cmocka_unit_test(joins_and_copies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
