// f32 and f64 arithmetic.  PTX ISA 9.7.3.
#include <fenv.h>

// Rounding modes other than nearest: the host's own, per thread.  The calls can't be moved across
// the loop, whose loads and stores they might change for all the compiler knows.
INLINE int rounding_begin(uint64_t imm) {
  static const int mode[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  int old = fegetround();
  fesetround(mode[imm & 3]);
  return old;
}

INLINE uint32_t pre32(uint32_t u, uint64_t imm) { return (imm & M_FTZ) ? flush32(u) : u; }

INLINE uint32_t fin32(float r, uint64_t imm) {
  uint32_t u = f32_bits(r);
  if (imm & M_SAT) { // [0, 1]; NaN becomes +0
    u = r > 0.0f ? u : 0;
    return r > 1.0f ? 0x3F800000u : pre32(u, imm);
  }
  u = r != r ? NAN_F32 : u;
  return pre32(u, imm);
}
INLINE uint64_t fin64(double r, uint64_t imm) {
  uint64_t u = f64_bits(r);
  u = r != r ? NAN_F64 : u;
  return (imm & M_FTZ) ? flush64(u) : u;
}
INLINE uint64_t pre64(uint64_t u, uint64_t imm) { return (imm & M_FTZ) ? flush64(u) : u; }

#define PRE_f32 pre32
#define PRE_f64 pre64
#define FIN_f32 fin32
#define FIN_f64 fin64

// Three functions from one body: plain, .ftz, and one that reads every modifier from imm.  `raw`
// variants give the result's bits themselves.
#define FLOAT_FNS(id)                                                                              \
  static void id(LANE_ARGS) { (void)imm; id##_body(D, A, B, C, E, 0); }                            \
  static void id##_ftz(LANE_ARGS) { (void)imm; id##_body(D, A, B, C, E, M_FTZ); }                  \
  static __attribute__((noinline)) void id##_any(LANE_ARGS) {                                      \
    int old = rounding_begin(imm);                                                                 \
    id##_body(D, A, B, C, E, imm);                                                                 \
    fesetround(old);                                                                               \
  }
#define FDEF1(id, T, e)                                                                            \
  INLINE void id##_body(LANE_ARGS) {                                                               \
    PROLOGUE(T);                                                                                   \
    OUT(S_##T); IN(S_##T, a, A);                                                                   \
    EACH_LANE { V x = LD_##T(PRE_##T(a[i], imm)); d[i] = FIN_##T(e, imm); }                        \
  }                                                                                                \
  FLOAT_FNS(id)
#define FDEF2(id, T, e)                                                                            \
  INLINE void id##_body(LANE_ARGS) {                                                               \
    PROLOGUE(T);                                                                                   \
    OUT(S_##T); IN(S_##T, a, A); IN(S_##T, b, B);                                                  \
    EACH_LANE {                                                                                    \
      V x = LD_##T(PRE_##T(a[i], imm)), y = LD_##T(PRE_##T(b[i], imm));                            \
      d[i] = FIN_##T(e, imm);                                                                      \
    }                                                                                              \
  }                                                                                                \
  FLOAT_FNS(id)
#define FDEF3(id, T, e)                                                                            \
  INLINE void id##_body(LANE_ARGS) {                                                               \
    PROLOGUE(T);                                                                                   \
    OUT(S_##T); IN(S_##T, a, A); IN(S_##T, b, B); IN(S_##T, c, C);                                 \
    EACH_LANE {                                                                                    \
      V x = LD_##T(PRE_##T(a[i], imm)), y = LD_##T(PRE_##T(b[i], imm));                            \
      V z = LD_##T(PRE_##T(c[i], imm));                                                            \
      d[i] = FIN_##T(e, imm);                                                                      \
    }                                                                                              \
  }                                                                                                \
  FLOAT_FNS(id)
// x, y: the operands' bits; e: the result's bits.
#define RDEF1(id, T, e)                                                                            \
  INLINE void id##_body(LANE_ARGS) {                                                               \
    PROLOGUE(T);                                                                                   \
    OUT(S_##T); IN(S_##T, a, A);                                                                   \
    EACH_LANE { S_##T x = a[i]; d[i] = (U)(e); }                                                   \
  }                                                                                                \
  FLOAT_FNS(id)
#define RDEF2(id, T, e)                                                                            \
  INLINE void id##_body(LANE_ARGS) {                                                               \
    PROLOGUE(T);                                                                                   \
    OUT(S_##T); IN(S_##T, a, A); IN(S_##T, b, B);                                                  \
    EACH_LANE { S_##T x = a[i], y = b[i]; d[i] = (U)(e); }                                         \
  }                                                                                                \
  FLOAT_FNS(id)

// Minimum and maximum by an order of bits in which -0 < +0.  A NaN loses unless .NaN is written;
// .xorsign.abs compares magnitudes and gives the xor of the signs.  16-bit types come shifted to
// the top half; inf tells the type.
INLINE uint32_t minmax32(uint32_t a, uint32_t b, bool want_max, uint64_t imm, uint32_t inf,
                         uint32_t nan) {
  const uint32_t sign = 0x80000000u;
  if (imm & M_FTZ) {
    a = (a & inf) ? a : a & sign;
    b = (b & inf) ? b : b & sign;
  }
  uint32_t xored = (a ^ b) & sign;
  bool na = (a & ~sign) > inf, nb = (b & ~sign) > inf;
  if (imm & M_XORSIGN) a &= ~sign, b &= ~sign;
  int32_t ka = (int32_t)(a ^ ((uint32_t)((int32_t)a >> 31) >> 1));
  int32_t kb = (int32_t)(b ^ ((uint32_t)((int32_t)b >> 31) >> 1));
  uint32_t r = ((ka < kb) ^ want_max) ? a : b;
  r = na ? b : nb ? a : r;
  if (imm & M_XORSIGN) r |= xored;
  bool bad = (imm & M_NAN) ? na | nb : na & nb;
  return bad ? nan : r;
}
INLINE uint64_t minmax64(uint64_t a, uint64_t b, bool want_max) {
  int64_t ka = (int64_t)(a ^ ((uint64_t)((int64_t)a >> 63) >> 1));
  int64_t kb = (int64_t)(b ^ ((uint64_t)((int64_t)b >> 63) >> 1));
  bool na = is_nan64(a), nb = is_nan64(b);
  uint64_t r = ((ka < kb) ^ want_max) ? a : b;
  r = na ? b : nb ? a : r;
  return (na & nb) ? NAN_F64 : r;
}

// testp: zeros count as normal numbers.
enum { TP_FINITE, TP_INFINITE, TP_NUMBER, TP_NOTANUMBER, TP_NORMAL, TP_SUBNORMAL };
INLINE bool testp(uint64_t mag, uint64_t inf, uint64_t least_normal, int what) {
  switch (what) {
  case TP_FINITE: return mag < inf;
  case TP_INFINITE: return mag == inf;
  case TP_NUMBER: return mag <= inf;
  case TP_NOTANUMBER: return mag > inf;
  case TP_NORMAL: return mag == 0 || (mag >= least_normal && mag < inf);
  default: return mag != 0 && mag < least_normal;
  }
}

// Truncates; out of range saturates, NaN gives 0.
INLINE int32_t s32_of_f32(float x) {
  float t = x > 0x1.fffffep30f ? 0x1.fffffep30f : x;
  t = t < -0x1p31f ? -0x1p31f : t;
  t = x != x ? 0.0f : t;
  int32_t r = (int32_t)t;
  return x >= 0x1p31f ? INT32_MAX : r;
}
