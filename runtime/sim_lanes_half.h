// 16-bit floating point: every operation is exact in double, or rounded to odd there, and then
// rounded once to the type.  PTX ISA 9.7.4.

INLINE float f16_value(uint32_t h) { // exact, subnormals too; NaN stays a NaN
  uint32_t mag = h & 0x7FFFu;
  float scaled = f32_of(mag << 13) * 0x1p112f;
  uint32_t u = mag >= 0x7C00u ? 0x7F800000u | mag << 13 : f32_bits(scaled);
  return f32_of(u | (h & 0x8000u) << 16);
}
INLINE uint32_t cvt_widen(float x) { return is_nan32(f32_bits(x)) ? NAN_F32 : f32_bits(x); }
INLINE float bf16_value(uint32_t h) { return f32_of(h << 16); }

// Nearest, ties to even.  Adding 2^(e + 52 - m) to |x| rounds it to a multiple of the unit of its
// binade (e clamped to the least exponent), and leaves that multiple k in the low bits; the code
// is (e - emin) * 2^m + k, in which a carry moves to the next binade by itself.
#define NARROW64(name, m, emin, inf, top)                                                          \
  INLINE uint32_t name(double x) {                                                                 \
    uint64_t u = f64_bits(x), mag = u & ~(1ull << 63);                                             \
    uint64_t big = f64_bits(top);                                                                  \
    uint64_t capped = mag > big ? big : mag, e = capped >> 52;                                     \
    e = e < 1023 + (emin) ? 1023 + (emin) : e;                                                     \
    double sum = f64_of(capped) + f64_of((e + 52 - (m)) << 52);                                    \
    uint32_t code = (uint32_t)((e - (1023 + (emin))) << (m)) + (uint32_t)f64_bits(sum);            \
    code = code > (inf) ? (inf) : code;                                                            \
    code |= (uint32_t)(u >> 63) << 15;                                                             \
    return mag > 0x7FF0000000000000u ? 0x7FFFu : code;                                             \
  }
NARROW64(f16_of_f64, 10, -14, 0x7C00u, 0x1p17)
NARROW64(bf16_of_f64, 7, -126, 0x7F80u, 0x1p129)

INLINE uint32_t f16_of_f32(float x) { // the same in single precision
  uint32_t u = f32_bits(x), mag = u & 0x7FFFFFFFu;
  uint32_t capped = mag > 0x48000000u ? 0x48000000u : mag, e = capped >> 23; // 2^17
  e = e < 113 ? 113 : e;
  float sum = f32_of(capped) + f32_of((e + 13) << 23);
  uint32_t code = ((e - 113) << 10) + (f32_bits(sum) & 0x7FFFFFu);
  code = code > 0x7C00u ? 0x7C00u : code;
  return mag > 0x7F800000u ? NAN_F16 : code | (u >> 31) << 15;
}
INLINE uint32_t bf16_of_f32(float x) {
  uint32_t u = f32_bits(x);
  uint32_t code = (u + 0x7FFFu + ((u >> 16) & 1)) >> 16;
  return is_nan32(u) ? NAN_BF16 : code;
}

// 8-bit types, saturating at `top` (infinities too).  NaN is 7F.
#define NARROW_FP8(name, m, emin, top)                                                             \
  INLINE uint32_t name(float x) {                                                                  \
    uint32_t u = f32_bits(x), mag = u & 0x7FFFFFFFu, most = f32_bits(top);                         \
    uint32_t capped = mag > most ? most : mag, e = capped >> 23;                                   \
    e = e < 127 + (emin) ? 127 + (emin) : e;                                                       \
    float sum = f32_of(capped) + f32_of((e + 23 - (m)) << 23);                                     \
    uint32_t code = ((e - (127 + (emin))) << (m)) + (f32_bits(sum) & 0x7FFFFFu);                   \
    return mag > 0x7F800000u ? 0x7Fu : code | (u >> 31) << 7;                                      \
  }
NARROW_FP8(e4m3_of_f32, 3, -6, 448.0f)
NARROW_FP8(e5m2_of_f32, 2, -14, 57344.0f)

INLINE uint32_t f16_of_e4m3(uint32_t v) {
  uint32_t mag = v & 0x7Fu;
  uint32_t code = f16_of_f32(f32_of(mag << 20) * 0x1p120f);
  return mag == 0x7Fu ? NAN_F16 : code | (v & 0x80u) << 8;
}
INLINE uint32_t f16_of_e5m2(uint32_t v) { return (v & 0x7Fu) > 0x7Cu ? NAN_F16 : v << 8; }

// p + c rounded to odd: the two-sum tells the exact error, and an inexact even result moves one
// unit towards it.  Rounding that to 11 or 8 bits equals rounding the exact sum.
INLINE double sum_to_odd(double p, double c) {
  double s = p + c, t = s - p, err = (p - (s - t)) + (c - t);
  uint64_t u = f64_bits(s), e = f64_bits(err);
  uint64_t towards = 1 - 2 * ((e ^ u) >> 63); // grow when the error has the sum's sign
  int64_t size = (int64_t)(e & ~(1ull << 63));
  bool inexact = size != 0 && size <= 0x7FF0000000000000; // NaN after infinities
  return f64_of(u + (inexact ? towards & (~u & 1 ? ~0ull : 0) : 0));
}

INLINE uint32_t pre_f16(uint32_t h, uint64_t imm) {
  return (imm & M_FTZ) && !(h & 0x7C00u) ? h & 0x8000u : h;
}
INLINE uint32_t pre_bf16(uint32_t h, uint64_t imm) {
  return (imm & M_FTZ) && !(h & 0x7F80u) ? h & 0x8000u : h;
}
// Saturation and relu act on the rounded result; relu keeps NaN.
INLINE uint32_t fin_half(uint32_t h, uint64_t imm, uint32_t inf, uint32_t one) {
  uint32_t mag = h & 0x7FFFu;
  if (imm & M_SAT) h = mag > inf || (h & 0x8000u) ? 0 : h > one ? one : h;
  if (imm & M_RELU) h = mag <= inf && (h & 0x8000u) ? 0 : h;
  return h;
}
INLINE uint32_t fin_f16(double r, uint64_t imm) {
  return fin_half(pre_f16(f16_of_f64(r), imm), imm, 0x7C00u, 0x3C00u);
}
INLINE uint32_t fin_bf16(double r, uint64_t imm) {
  return fin_half(pre_bf16(bf16_of_f64(r), imm), imm, 0x7F80u, 0x3F80u);
}

INLINE uint32_t minmax_f16(uint32_t x, uint32_t y, bool want_max, uint64_t imm) {
  return minmax32(x << 16, y << 16, want_max, imm, 0x7C000000u, NAN_F16 << 16) >> 16;
}
INLINE uint32_t minmax_bf16(uint32_t x, uint32_t y, bool want_max, uint64_t imm) {
  return minmax32(x << 16, y << 16, want_max, imm, 0x7F800000u, NAN_BF16 << 16) >> 16;
}

// From one expression in x, y, z (doubles): the scalar and the packed function, plain and with
// modifiers from imm.
#define HALF_FNS(id, body)                                                                         \
  static void id(LANE_ARGS) { (void)imm; body(D, A, B, C, E, 0); }                                 \
  static __attribute__((noinline)) void id##_any(LANE_ARGS) { body(D, A, B, C, E, imm); }

#define HALF_LOOPS(id, F, n)                                                                       \
  INLINE void id##_##F##_body(LANE_ARGS) {                                                         \
    UNUSED_ARGS;                                                                                   \
    OUT(uint32_t); IN(uint32_t, a, A); IN(uint32_t, b, (n) > 1 ? B : A);                           \
    IN(uint32_t, c, (n) > 2 ? C : A);                                                              \
    EACH_LANE d[i] = id##_##F##_one(a[i], b[i], c[i], imm);                                        \
  }                                                                                                \
  HALF_FNS(id##_##F, id##_##F##_body)                                                              \
  INLINE void id##_##F##x2_body(LANE_ARGS) {                                                       \
    UNUSED_ARGS;                                                                                   \
    OUT(uint32_t); IN(uint32_t, a, A); IN(uint32_t, b, (n) > 1 ? B : A);                           \
    IN(uint32_t, c, (n) > 2 ? C : A);                                                              \
    EACH_LANE {                                                                                    \
      uint32_t lo = id##_##F##_one(a[i] & 0xFFFF, b[i] & 0xFFFF, c[i] & 0xFFFF, imm);              \
      uint32_t hi = id##_##F##_one(a[i] >> 16, b[i] >> 16, c[i] >> 16, imm);                       \
      d[i] = hi << 16 | lo;                                                                        \
    }                                                                                              \
  }                                                                                                \
  HALF_FNS(id##_##F##x2, id##_##F##x2_body)
#define HDEF(id, F, n, e)                                                                          \
  INLINE uint32_t id##_##F##_one(uint32_t a, uint32_t b, uint32_t c, uint64_t imm) {               \
    double x = (double)F##_value(pre_##F(a, imm)), y = (double)F##_value(pre_##F(b, imm));         \
    double z = (double)F##_value(pre_##F(c, imm));                                                 \
    (void)x, (void)y, (void)z;                                                                     \
    return fin_##F(e, imm);                                                                        \
  }                                                                                                \
  HALF_LOOPS(id, F, n)
// x, y: the bits of the operands; e: the bits of the result.
#define HRAW(id, F, n, e)                                                                          \
  INLINE uint32_t id##_##F##_one(uint32_t x, uint32_t y, uint32_t z, uint64_t imm) {               \
    (void)x, (void)y, (void)z, (void)imm;                                                          \
    return (e);                                                                                    \
  }                                                                                                \
  HALF_LOOPS(id, F, n)
