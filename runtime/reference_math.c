// Inner loops of the oracle.  Written with the compiler's vector types and built for two
// instruction sets; products and sums are separate operations, so that both give the same bits.
#include <string.h>

#include "reference.h"

typedef double F64x8 __attribute__((vector_size(64), aligned(8)));
typedef float F32x16 __attribute__((vector_size(64), aligned(4)));

#define INLINE static inline __attribute__((always_inline))

INLINE void dot_f64(const double *q, const double *kt, int64_t dim, double *s) {
  F64x8 a = {0}, b = {0}, x, y;
  for (int64_t e = 0; e < dim; e++) {
    memcpy(&x, kt + e * REF_KEYS, sizeof x);
    memcpy(&y, kt + e * REF_KEYS + 8, sizeof y);
    a += q[e] * x;
    b += q[e] * y;
  }
  memcpy(s, &a, sizeof a);
  memcpy(s + 8, &b, sizeof b);
}

INLINE void dot_f32(const float *q, const float *kt, int64_t dim, float *s) {
  F32x16 a = {0}, x;
  for (int64_t e = 0; e < dim; e++) {
    memcpy(&x, kt + e * REF_KEYS, sizeof x);
    a += q[e] * x;
  }
  memcpy(s, &a, sizeof a);
}

INLINE void add_f64(double *o, double p, const double *v, int64_t padded) {
  F64x8 x, y;
  for (int64_t e = 0; e < padded; e += 8) {
    memcpy(&x, o + e, sizeof x);
    memcpy(&y, v + e, sizeof y);
    x += p * y;
    memcpy(o + e, &x, sizeof x);
  }
}

INLINE void add_f32(float *o, float p, const float *v, int64_t padded) {
  F32x16 x, y;
  for (int64_t e = 0; e < padded; e += 16) {
    memcpy(&x, o + e, sizeof x);
    memcpy(&y, v + e, sizeof y);
    x += p * y;
    memcpy(o + e, &x, sizeof x);
  }
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
