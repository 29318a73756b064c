// The .approx functions, with polynomials of our own: same bits on every host.  Bounds as in
// PTX ISA 9.7.3; tests/test_lanes_approx.c measures them.

// 2^x.  x = n + f, n nearest integer, |f| <= 1/2; 2^f by its Taylor series (degree 7 leaves
// 2^-28); scaled by 2^n in two exact halves so that results round once into the subnormals.
INLINE float ex2_f32(float x) {
  float t = x < -160.0f ? -160.0f : x;
  t = t > 160.0f ? 160.0f : t;
  float shifted = t + 0x1.8p23f; // adding 1.5 * 2^23 rounds to an integer
  int32_t n = (int32_t)(f32_bits(shifted) - 0x4B400000u);
  float f = t - (shifted - 0x1.8p23f);
  float p = 0x1.ffcbfcp-17f;                // ln2^7 / 7!
  p = p * f + 0x1.430912p-13f;              // ln2^6 / 6!
  p = p * f + 0x1.5d87fep-10f;              // ln2^5 / 5!
  p = p * f + 0x1.3b2ab6p-7f;               // ln2^4 / 4!
  p = p * f + 0x1.c6b08ep-5f;               // ln2^3 / 3!
  p = p * f + 0x1.ebfbep-3f;                // ln2^2 / 2!
  p = p * f + 0x1.62e43p-1f;                // ln2
  p = p * f + 1.0f;
  int32_t half = n >> 1;
  float r = p * f32_of((uint32_t)(half + 127) << 23) * f32_of((uint32_t)(n - half + 127) << 23);
  return x != x ? x : r;
}

// log2 of a positive finite x, in double: x = m 2^e, m in [sqrt 1/2, sqrt 2), s = (m-1)/(m+1),
// log2 m = 2/ln2 (s + s^3/3 + s^5/5 ...); |s| < 0.172, so s^15 leaves 2^-40 of the first term.
INLINE float lg2_f32(float x) {
  uint64_t u = f64_bits((double)x);
  uint64_t k = u - 0x3FE6A09E00000000u; // exponent changes at sqrt 1/2
  int64_t e = (int64_t)k >> 52;
  double m = f64_of(u - ((uint64_t)e << 52));
  double s = (m - 1.0) / (m + 1.0), q = s * s;
  double p = 1.0 / 13;
  p = p * q + 1.0 / 11;
  p = p * q + 1.0 / 9;
  p = p * q + 1.0 / 7;
  p = p * q + 1.0 / 5;
  p = p * q + 1.0 / 3;
  p = p * q + 1.0;
  double r = (double)(int32_t)e + 0x1.71547652b82fep1 * s * p;
  float out = (float)r;
  out = x == __builtin_inff() ? x : out;
  out = x == 0.0f ? -__builtin_inff() : out;
  return x < 0.0f || x != x ? __builtin_nanf("") : out;
}

// sin of a whole turn's fraction: sin(2 pi t), t in [-1/2, 1/2], folded to [-1/4, 1/4].
INLINE double sin_turn(double t) {
  double a = t < 0 ? -t : t;
  a = a > 0.25 ? 0.5 - a : a;
  double w = a * 0x1.921fb54442d18p2, q = w * w;
  double p = -1.0 / 1307674368000;
  p = p * q + 1.0 / 6227020800;
  p = p * q - 1.0 / 39916800;
  p = p * q + 1.0 / 362880;
  p = p * q - 1.0 / 5040;
  p = p * q + 1.0 / 120;
  p = p * q - 1.0 / 6;
  p = w + w * q * p;
  return t < 0 ? -p : p;
}
// x / 2 pi less its nearest integer; beyond 2^51 turns every value is an integer.
INLINE double turns(float x) {
  double t = (double)x * 0x1.45f306dc9c883p-3;
  double far = t < 0 ? -t : t;
  double n = (t + 0x1.8p52) - 0x1.8p52;
  return far < 0x1p51 ? t - n : 0.0;
}
INLINE float sin_f32(float x) {
  float r = (float)sin_turn(turns(x));
  r = x == 0.0f ? x : r;
  return x - x != 0.0f ? __builtin_nanf("") : r; // infinities and NaN
}
INLINE float cos_f32(float x) {
  double t = turns(x) + 0.25;
  t = t > 0.5 ? t - 1.0 : t;
  return x - x != 0.0f ? __builtin_nanf("") : (float)sin_turn(t);
}

// tanh x = 1 - 2 / (1 + e^2x); near zero by its series, where the difference would cancel.
INLINE float tanh_f32(float x) {
  float a = f32_of(f32_bits(x) & 0x7FFFFFFFu);
  double e = (double)ex2_f32((a > 20.0f ? 20.0f : a) * 0x1.715476p1f);
  double far = 1.0 - 2.0 / (1.0 + e);
  double v = a, q = v * v;
  double near = v * (1.0 + q * (-1.0 / 3 + q * (2.0 / 15 - q * (17.0 / 315))));
  float r = (float)(a < 0.3f ? near : far);
  r = f32_bits(x) >> 31 ? -r : r;
  return x != x ? x : r;
}

INLINE float rsqrt_f32(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }

// a * (1/b): for |b| in (2^126, 2^128) the reciprocal is flushed, as the ISA says.
INLINE float div_approx(float a, float b) {
  float mag = b < 0 ? -b : b;
  float r = a / b;
  float zero = f32_of((f32_bits(a) ^ f32_bits(b)) & 0x80000000u);
  float lost = a - a != 0.0f ? __builtin_nanf("") : zero;
  return mag > 0x1p126f && mag < __builtin_inff() ? lost : r;
}

// rcp and rsqrt .approx.ftz.f64 look at the high word only and give a zero low word.
INLINE double high_word(double x) { return f64_of(f64_bits(x) & 0xFFFFFFFF00000000u); }
