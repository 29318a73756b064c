// Inner loops of the oracle.  Written with the compiler's vector types and built for two
// instruction sets; products and sums are separate operations, so that both give the same bits.
#include <string.h>

#include "reference.h"

// No wider than the registers: gcc keeps what is wider in memory.
typedef double F64x4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef float F32x8 __attribute__((vector_size(32), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE void dot_f64(const double *q, const double *kt, int64_t dim, double *s) {
  F64x4 a = {0}, b = {0}, c = {0}, d = {0}, *to = (F64x4 *)s;
  const F64x4 *x = (const F64x4 *)kt;
  for (int64_t e = 0; e < dim; e++, x += REF_KEYS / 4) {
    a += q[e] * x[0];
    b += q[e] * x[1];
    c += q[e] * x[2];
    d += q[e] * x[3];
  }
  to[0] = a, to[1] = b, to[2] = c, to[3] = d;
}

INLINE void dot_f32(const float *q, const float *kt, int64_t dim, float *s) {
  F32x8 a = {0}, b = {0}, *to = (F32x8 *)s;
  const F32x8 *x = (const F32x8 *)kt;
  for (int64_t e = 0; e < dim; e++, x += REF_KEYS / 8) {
    a += q[e] * x[0];
    b += q[e] * x[1];
  }
  to[0] = a, to[1] = b;
}

INLINE void add_f64(double *o, double p, const double *v, int64_t padded) {
  for (int64_t e = 0; e < padded; e += 4)
    *(F64x4 *)(o + e) += p * *(const F64x4 *)(v + e);
}

INLINE void add_f32(float *o, float p, const float *v, int64_t padded) {
  for (int64_t e = 0; e < padded; e += 8)
    *(F32x8 *)(o + e) += p * *(const F32x8 *)(v + e);
}

#define BUILD(set, target)                                                                         \
  target static void dot_f64_##set(const double *q, const double *kt, int64_t n, double *s) {      \
    dot_f64(q, kt, n, s);                                                                          \
  }                                                                                                \
  target static void dot_f32_##set(const float *q, const float *kt, int64_t n, float *s) {         \
    dot_f32(q, kt, n, s);                                                                          \
  }                                                                                                \
  target static void add_f64_##set(double *o, double p, const double *v, int64_t n) {              \
    add_f64(o, p, v, n);                                                                           \
  }                                                                                                \
  target static void add_f32_##set(float *o, float p, const float *v, int64_t n) {                 \
    add_f32(o, p, v, n);                                                                           \
  }                                                                                                \
  static const ReferenceMath math_##set = {dot_f64_##set, dot_f32_##set, add_f64_##set,            \
                                           add_f32_##set};

BUILD(baseline, )
#if defined(__x86_64__)
BUILD(avx2, __attribute__((target("avx2"))))
#endif

const ReferenceMath *reference_math(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return &math_avx2;
#endif
  return &math_baseline;
}
