// sim_matrix_exact.c: the sum of a group of products, element by element, in integers.
#include <string.h>

#include "sim_matrix.h"

const MatrixRule matrix_rules[MATRIX_RULE_COUNT] = {
    [MATRIX_RULE_F32] = {.fraction = 25, .digits = 24},
    [MATRIX_RULE_F16] = {.fraction = 25, .digits = 11, .half = true},
    [MATRIX_RULE_MMA8_F32] = {.fraction = 25, .digits = 24, .emulated = true},
    [MATRIX_RULE_MMA8_F16] = {.fraction = 25, .digits = 11, .half = true, .emulated = true},
    [MATRIX_RULE_WGMMA8_F32] = {.fraction = 13, .digits = 14},
    [MATRIX_RULE_WGMMA8_F16] = {.fraction = 13, .digits = 11, .half = true},
};

static uint32_t bits_of(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static float float_of(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

// x = fraction * 2^(exponent - 23), with no exponent below -126.
static int64_t fraction_of(float x) {
  uint32_t u = bits_of(x), field = u >> 23 & 255;
  int64_t m = (u & 0x7fffff) | (uint32_t)(field != 0) << 23;
  return u >> 31 ? -m : m;
}
static int exponent(float x) {
  int field = (int)(bits_of(x) >> 23 & 255);
  return (field ? field : 1) - 127;
}

static bool is_nan(float x) { return x != x; }
static bool is_inf(float x) { return (bits_of(x) & 0x7fffffff) == 0x7f800000; }

// m / 2^shift, toward zero; shift may be negative: far so only for a zero.
static int64_t scaled(int64_t m, int shift) {
  if (!m)
    return 0;
  if (shift <= 0)
    return m * (INT64_C(1) << -shift);
  if (shift > 62)
    return 0;
  return m < 0 ? -(-m >> shift) : m >> shift;
}

static MatrixLine from(MatrixLine x, int first) {
  x.value += first * x.step;
  return x;
}

// Infinities and NaN: true when the result is one, which is then in *out.
static bool is_special(int k, MatrixLine a, MatrixLine b, float c, float *out) {
  bool nan = is_nan(c), plus = c > 0 && is_inf(c), minus = c < 0 && is_inf(c);
  for (int i = 0; i < k; i++) {
    float x = a.value[i * a.step], y = b.value[i * b.step];
    bool inf = is_inf(x) || is_inf(y);
    nan |= is_nan(x) || is_nan(y) || (inf && (x == 0 || y == 0));
    bool negative = (bits_of(x) ^ bits_of(y)) >> 31;
    plus |= inf && !negative;
    minus |= inf && negative;
  }
  nan |= plus && minus;
  *out = float_of(nan ? MATRIX_NAN : minus ? 0xff800000u : 0x7f800000u);
  return nan || plus || minus;
}

// sum * 2^quantum, truncated to `digits` bits (a float's subnormals: to 2^-149), or rounded to f16.
static float finish(const MatrixRule *rule, int64_t sum, int quantum) {
  uint64_t m = (uint64_t)(sum < 0 ? -sum : sum);
  if (!m)
    return 0;
  int digits = rule->half ? 11 : rule->digits, least = rule->half ? -24 : -149;
  int shift = 64 - __builtin_clzll(m) - digits; // bits that go
  if (shift < least - quantum)
    shift = least - quantum;
  if (shift > 63) // half a unit or more is 2^shift-1 and up: m is below it
    m = 0;
  else if (shift > 0) {
    uint64_t rest = m & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
    m >>= shift;
    if (rule->half && (rest > half || (rest == half && (m & 1))))
      m++;
  } else {
    shift = 0;
  }
  double v = __builtin_ldexp((double)m, shift + quantum); // at most 24 bits
  if (v >= (rule->half ? 0x1p16 : 0x1p128))
    v = __builtin_inf();
  return (float)(sum < 0 && v != 0 ? -v : v); // what rounds to zero is +0
}

static int at_least(int e, int least) { return e < least ? least : e; }

static float group(const MatrixRule *rule, int k, MatrixLine a, MatrixLine b, float c) {
  float special;
  if (is_special(k, a, b, c, &special))
    return special;
  enum { NONE = -100000 };
  int emax = c != 0 ? at_least(exponent(c), rule->half ? -14 : -126) : NONE;
  for (int i = 0; i < k; i++) {
    float x = a.value[i * a.step], y = b.value[i * b.step];
    if (x == 0 || y == 0)
      continue;
    int e = at_least(exponent(x), a.least) + at_least(exponent(y), b.least);
    emax = e > emax ? e : emax;
  }
  if (emax == NONE)
    return 0;
  int quantum = emax - rule->fraction;
  int64_t sum = scaled(fraction_of(c), quantum - (exponent(c) - 23));
  for (int i = 0; i < k; i++) {
    float x = a.value[i * a.step], y = b.value[i * b.step];
    sum += scaled(fraction_of(x) * fraction_of(y), quantum - (exponent(x) + exponent(y) - 46));
  }
  return finish(rule, sum, quantum);
}

float matrix_exact(const MatrixRule *rule, int k, MatrixLine a, MatrixLine b, float c) {
  if (!rule->emulated)
    return group(rule, k, a, b, c);
  float s = group(rule, k / 2, a, b, 0);
  s = group(rule, k / 2, from(a, k / 2), from(b, k / 2), s);
  // The addition of f16 values in single precision, then rounded to f16: as if rounded once.
  float sum = s + c, special;
  if (is_special(0, a, b, sum, &special))
    return special;
  if (!rule->half || sum == 0)
    return sum;
  return finish(rule, fraction_of(sum), exponent(sum) - 23);
}

void matrix_words_across(uint32_t (*words)[32], const void *lines, size_t pitch, int n, int k) {
  const uint8_t *p = lines;
  int blocks = n / 8;
  for (int i = 0; i < k; i += 2)
    for (int row = 0; row < n; row++) {
      uint16_t low, high; // elements i and i + 1 of one row of A, or column of B
      memcpy(&low, p + (size_t)i * pitch + 2 * row, 2);
      memcpy(&high, p + (size_t)(i + 1) * pitch + 2 * row, 2);
      uint32_t *word = &words[(i >> 3) * blocks + (row >> 3)][4 * (row & 7) + (i & 7) / 2];
      *word = low | (uint32_t)high << 16;
    }
}
