// Dtype conversions, held against every representable value and every midpoint between two.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dtype.h"

typedef struct Small {
  Dtype t;
  int bits;
  uint32_t max, nan;
  bool has_inf;
} Small;

static const Small smalls[] = {
    {DT_F16, 16, 0x7bff, 0x7fff, true},
    {DT_BF16, 16, 0x7f7f, 0x7fff, true},
    {DT_E4M3, 8, 0x7e, 0x7f, false},
    {DT_E5M2, 8, 0x7b, 0x7f, true},
};
enum { NSMALLS = sizeof smalls / sizeof *smalls };

static double value(const Small *s, uint32_t bits) {
  return s->bits == 8 ? dtype_load(s->t, &(uint8_t){(uint8_t)bits})
                      : dtype_load(s->t, &(uint16_t){(uint16_t)bits});
}

static uint32_t narrow(const Small *s, double x) {
  uint8_t b;
  uint16_t h;
  if (s->bits == 8) return dtype_store(s->t, &b, x), b;
  return dtype_store(s->t, &h, x), h;
}

static void every_value_comes_back(void **state) {
  (void)state;
  for (int i = 0; i < NSMALLS; i++) {
    const Small *s = &smalls[i];
    for (uint32_t b = 0; b < 1u << s->bits; b++) {
      double x = value(s, b);
      uint32_t magnitude = b & ((1u << (s->bits - 1)) - 1);
      bool inf = s->has_inf && magnitude == s->max + 1;
      if (magnitude <= s->max || inf) {
        assert_int_equal(isinf(x) != 0, inf);
        assert_int_equal(narrow(s, x), b);
      } else {
        assert_true(isnan(x));
        assert_int_equal(narrow(s, x), s->nan);
      }
    }
  }
}

// Between neighbours a < b: the midpoint goes to the even one, anything past it to the nearer one.
static void midpoints_go_to_even(void **state) {
  (void)state;
  for (int i = 0; i < NSMALLS; i++) {
    const Small *s = &smalls[i];
    for (uint32_t b = 0; b < s->max; b++) {
      double lo = value(s, b), hi = value(s, b + 1), mid = (lo + hi) / 2;
      assert_true(lo < hi);
      assert_int_equal(narrow(s, mid), b & 1 ? b + 1 : b);
      assert_int_equal(narrow(s, nextafter(mid, hi)), b + 1);
      assert_int_equal(narrow(s, nextafter(mid, lo)), b);
      assert_int_equal(narrow(s, -mid), (b & 1 ? b + 1 : b) | 1u << (s->bits - 1));
      assert_true(dtype_ulp(s->t, lo) == hi - lo);
    }
  }
}

static void overflow_and_specials(void **state) {
  (void)state;
  assert_int_equal(f16_from_double(65519.99), 0x7bff);
  assert_int_equal(f16_from_double(65520), 0x7c00); // the midpoint to 65536 rounds up to infinity
  assert_int_equal(f16_from_double(-INFINITY), 0xfc00);
  assert_int_equal(bf16_from_double(1e39), 0x7f80);
  assert_int_equal(e4m3_from_double(1000), 0x7e); // saturates
  assert_int_equal(e4m3_from_double(-INFINITY), 0xfe);
  assert_int_equal(e5m2_from_double(61440), 0x7c);
  assert_int_equal(f16_from_double(0x1p-25), 0); // half the smallest subnormal: to even
  assert_int_equal(f16_from_double(nextafter(0x1p-25, 1)), 1);
  assert_int_equal(f16_from_double(-0.0), 0x8000);
  assert_int_equal(f16_from_double(5e-324), 0);
  // Straight from double: by way of float this would be a tie and go down to even.
  assert_int_equal(f16_from_double(1 + 0x1p-11 + 0x1p-40), 0x3c01);
  for (Dtype t = 0; t < DT_COUNT; t++)
    if (dtype_mantissa(t) && t != DT_E4M3) assert_true(isinf(dtype_round(t, INFINITY)));
  uint32_t nan32;
  dtype_store(DT_F32, &nan32, NAN);
  assert_int_equal(nan32, 0x7fffffff);
}

static void known_values(void **state) {
  (void)state;
  assert_true(f16_to_double(0x3555) == 0.333251953125);
  assert_true(bf16_to_double(0x4049) == 3.140625);
  assert_true(e4m3_to_double(0x01) == 0x1p-9);
  assert_true(e4m3_to_double(0x7e) == 448);
  assert_true(e5m2_to_double(0x7b) == 57344);
  assert_true(bf16_to_double(0x7f7f) == 0x1.fep127);
  assert_true(f16_to_double(0x7bff) == 65504);
  assert_true(dtype_ulp(DT_BF16, 1.99) == 0x1p-7);
  assert_true(dtype_ulp(DT_F32, 1) == 0x1p-23);
  assert_true(dtype_ulp(DT_F64, -4) == 0x1p-50);
  assert_true(dtype_ulp(DT_F16, 0) == 0x1p-24);
  assert_true(dtype_ulp(DT_I32, 1e6) == 1);
}

static void integers_saturate(void **state) {
  (void)state;
  int32_t i;
  int64_t l;
  uint8_t u;
  dtype_store(DT_I32, &i, 3e9), assert_int_equal(i, INT32_MAX);
  dtype_store(DT_I32, &i, -3e9), assert_int_equal(i, INT32_MIN);
  dtype_store(DT_I32, &i, 2.5), assert_int_equal(i, 2);
  dtype_store(DT_I32, &i, NAN), assert_int_equal(i, 0);
  dtype_store(DT_I64, &l, 1e19), assert_true(l == INT64_MAX);
  dtype_store(DT_I64, &l, -0x1p62), assert_true(l == -(1ll << 62));
  dtype_store(DT_U8, &u, -1), assert_int_equal(u, 0);
  dtype_store(DT_U8, &u, 254.6), assert_int_equal(u, 255);
}

static void names_parse(void **state) {
  (void)state;
  Dtype t;
  for (Dtype i = 0; i < DT_COUNT; i++) {
    assert_true(dtype_parse(dtype_name(i), &t));
    assert_int_equal(t, i);
  }
  assert_false(dtype_parse("half", &t));
  assert_int_equal(dtype_bytes(DT_BF16), 2);
  assert_int_equal(dtype_mantissa(DT_F16), 11);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_value_comes_back), cmocka_unit_test(midpoints_go_to_even),
      cmocka_unit_test(overflow_and_specials),  cmocka_unit_test(known_values),
      cmocka_unit_test(integers_saturate),      cmocka_unit_test(names_parse),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
