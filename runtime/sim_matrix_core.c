// sim_matrix_core.c: products of tiles for one instruction set (LANE_SET): see sim_matrix.h.
//
// The model in single precision: p = a * b is exact, 2^emax the largest product of the operands'
// powers, and p * 2^(fraction - emax) cut to an integer is p truncated to the quantum.  Sums are
// 32-bit integers.  Where a power or a sum leaves the range in which that holds, the element is
// computed anew by matrix_exact.
#include "sim_matrix.h"

#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { W = 8 }; // columns of a tile, elements of a vector
typedef float VF __attribute__((vector_size(4 * W)));
typedef int32_t VI __attribute__((vector_size(4 * W)));
typedef uint32_t VU __attribute__((vector_size(4 * W)));

#define INLINE static inline __attribute__((always_inline))

INLINE uint32_t bits_of(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}
INLINE float float_of(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}
#define POWER(e) ((uint32_t)(127 + (e)) << 23) // bits of 2^e
#define EXPONENT 0x7f800000u
#define SIGN 0x80000000u

// ---- conversion ---------------------------------------------------------------------------------
// An 8 or 16-bit float: magnitude shifted to a float's fields, then the exponent's bias changed.  A
// subnormal is read as 1.fraction at the least exponent, less the one.
INLINE uint32_t widen_small(uint32_t u, int bits, int shift, int bias, uint32_t inf, bool has_inf) {
  uint32_t sign = u >> (bits - 1) << 31, mag = u & ((1u << (bits - 1)) - 1), x = mag << shift;
  uint32_t one = (uint32_t)(bias + 1) << 23;
  uint32_t low = bits_of(float_of(x + one) - float_of(one));
  uint32_t r = x < 1u << 23 ? low : x + ((uint32_t)bias << 23);
  uint32_t special = has_inf ? x | EXPONENT : MATRIX_NAN;
  return (mag >= inf ? special : r) | sign;
}

INLINE uint32_t widen(MatrixType t, uint32_t u) {
  switch (t) {
  case MATRIX_F16: return widen_small(u, 16, 13, 112, 0x7c00, true);
  case MATRIX_E5M2: return widen_small(u, 8, 21, 112, 0x7c, true);
  case MATRIX_E4M3: return widen_small(u, 8, 20, 120, 0x7f, false);
  case MATRIX_BF16: return u << 16;
  default: return (u & ~0x1fffu) | (uint32_t)((u & 0x7fffffff) > EXPONENT) << 22; // tf32, NaN kept
  }
}

typedef struct Lanes {
  uint32_t value[32] __attribute__((aligned(64)));
  uint32_t power[32] __attribute__((aligned(64)));
  bool special, tiny;
} Lanes;

// Element `e` of each word.
INLINE void convert(MatrixType t, const uint32_t *words, int e, Lanes *out) {
  static const uint32_t least[] = {
#define X(id, bits, emin) POWER(emin),
      MATRIX_TYPES(X)
#undef X
  };
  int bits = t == MATRIX_TF32 ? 32 : t >= MATRIX_E4M3 ? 8 : 16;
  uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1, special = 0, tiny = 0;
  for (int i = 0; i < 32; i++) {
    uint32_t r = widen(t, words[i] >> (bits * e) & mask), p = r & EXPONENT;
    special |= (uint32_t)(p == EXPONENT);
    p = p < least[t] ? least[t] : p;
    p = r << 1 ? p : 0;
    tiny |= (uint32_t)(p - 1 < POWER(-48) - 1);
    out->value[i] = r;
    out->power[i] = p;
  }
  out->special = special;
  out->tiny = tiny;
}

// Slot of element (word half, e), q = 0: the order within K is free, as long as A and B agree; that
// of 8-bit types puts k with (k & 2) == 0 first, as the emulated rule groups them.
INLINE int slot_of(MatrixType t, int half, int e) {
  return t == MATRIX_TF32 ? 4 * half : t < MATRIX_E4M3 ? 8 * half + 4 * e
                                      : 16 * (e >> 1) + 8 * half + 4 * (e & 1);
}
// With 16 bytes of 8-bit elements there is one half only.
INLINE int slot_in(MatrixType t, int k, int half, int e) {
  return t >= MATRIX_E4M3 && k == 16 ? 4 * e : slot_of(t, half, e);
}

INLINE void load_a_as(MatrixType t, MatrixA *a, int k, const uint32_t *const *words) {
  int each = t == MATRIX_TF32 ? 1 : t >= MATRIX_E4M3 ? 4 : 2, nregs = k / (2 * each);
  Lanes v;
  for (int r = 0; r < nregs; r++)
    for (int e = 0; e < each; e++) {
      convert(t, words[r], e, &v);
      a->special |= v.special;
      a->tiny |= v.tiny;
      size_t at = (size_t)(8 * (r & 1) * k + slot_in(t, k, r >> 1, e));
      for (int g = 0; g < 8; g++, at += (size_t)k) {
        memcpy(a->value + at, v.value + 4 * g, 16);
        memcpy(a->power + at, v.power + 4 * g, 16);
      }
    }
}

// Elements of a, then of b, by constant positions.
#ifdef __clang__
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else // GCC has the other one from version 12 on
#define PICK(a, b, ...) __builtin_shuffle(a, b, (VU){__VA_ARGS__})
#endif

// to[q][4 * (g & 1) + (g >> 1)] = from[4 * g + q]
INLINE void transpose(float *to, const uint32_t *from) {
  VU v[4], lo, hi;
  memcpy(v, from, sizeof v);
  // Columns g, g+4: pairs of the same parity side by side.
  VU a = PICK(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13);   // g 0 2 | 1 3, q 0 1
  VU b = PICK(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15); // q 2 3
  VU c = PICK(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13);   // g 4 6 | 5 7
  VU d = PICK(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
  lo = PICK(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
  hi = PICK(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
  memcpy(to, &lo, sizeof lo);
  memcpy(to + W, &hi, sizeof hi);
  lo = PICK(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
  hi = PICK(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
  memcpy(to + 2 * W, &lo, sizeof lo);
  memcpy(to + 3 * W, &hi, sizeof hi);
}

INLINE void load_b_as(MatrixType t, MatrixB *b, int k, const uint32_t *const *words) {
  int each = t == MATRIX_TF32 ? 1 : t >= MATRIX_E4M3 ? 4 : 2, nregs = k / (4 * each);
  Lanes v;
  for (int r = 0; r < nregs; r++)
    for (int e = 0; e < each; e++) {
      convert(t, words[r], e, &v);
      b->special |= v.special;
      b->tiny |= v.tiny;
      size_t at = (size_t)(slot_in(t, k, r, e) * W);
      transpose(b->value + at, v.value);
      transpose(b->power + at, v.power);
    }
}

#define EACH_TYPE(call)                                                                            \
  switch (t) {                                                                                     \
  case MATRIX_F16: call(MATRIX_F16); break;                                                        \
  case MATRIX_BF16: call(MATRIX_BF16); break;                                                      \
  case MATRIX_TF32: call(MATRIX_TF32); break;                                                      \
  case MATRIX_E4M3: call(MATRIX_E4M3); break;                                                      \
  case MATRIX_E5M2: call(MATRIX_E5M2); break;                                                      \
  }

static void load_a(MatrixA *a, MatrixType t, int k, const uint32_t *const *words) {
  a->special = a->tiny = false;
#define CALL(type) load_a_as(type, a, k, words)
  EACH_TYPE(CALL)
#undef CALL
}

static void load_b(MatrixB *b, MatrixType t, int k, const uint32_t *const *words) {
  b->special = b->tiny = false;
#define CALL(type) load_b_as(type, b, k, words)
  EACH_TYPE(CALL)
#undef CALL
}

// ---- products -----------------------------------------------------------------------------------
INLINE VI splat(uint32_t u) { return (VI){0} + (int32_t)u; }

INLINE VF larger(VF a, VF b) {
#if defined(__AVX__)
  return (VF)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
  __m128 x[2], y[2];
  memcpy(x, &a, sizeof x);
  memcpy(y, &b, sizeof y);
  x[0] = _mm_max_ps(x[0], y[0]);
  x[1] = _mm_max_ps(x[1], y[1]);
  memcpy(&a, x, sizeof a);
  return a;
#else
  VI gt = a > b;
  return (VF)(((VI)a & gt) | ((VI)b & ~gt));
#endif
}

// Two halves side by side, from registers: through memory they would wait for each other.
INLINE VF join(const float *low, const float *high) {
#if defined(__AVX__)
  return (VF)_mm256_set_m128(_mm_loadu_ps(high), _mm_loadu_ps(low));
#else
  VF v;
  memcpy(&v, low, sizeof v / 2);
  memcpy((char *)&v + sizeof v / 2, high, sizeof v / 2);
  return v;
#endif
}

INLINE VI pick(VI mask, VI a, VI b) { return (mask & a) | (~mask & b); }
INLINE VI truncate(VF v) { return __builtin_convertvector(v, VI); }
INLINE bool any(VI v) {
  uint64_t u[W / 2];
  memcpy(u, &v, sizeof u);
  return u[0] | u[1] | u[2] | u[3];
}

// Powers of accumulators: exponents below the type's least count as that.
INLINE VF power_of(VF c, bool half) {
  VI e = (VI)c & (int32_t)EXPONENT, zero = ((VI)c & 0x7fffffff) == 0;
  VF p = larger((VF)e, (VF)splat(half ? POWER(-14) : POWER(-126)));
  return (VF)((VI)p & ~zero);
}

// Nearest f16, ties to even: adding 2^(e+13) leaves 11 digits of a positive v in [2^e, 2^(e+1)).
INLINE VF round_half(VF v) {
  VF e = larger((VF)((VI)v & (int32_t)EXPONENT), (VF)splat(POWER(-14)));
  VF far = e * 0x1p13f;
  VF r = (v + far) - far;
  VI over = r >= 0x1p16f;
  return (VF)pick(over, splat(EXPONENT), (VI)r);
}

// Powers in [2^LOW, 2^HIGH]: products, quantum and result are then exact in floats, and products
// that underflow are below the quantum anyway.
enum { LOW = -96, HIGH = 96 };

// The sum in 32 bits as a float: truncated, or (half) rounded to odd, which a second rounding to 11
// bits does not notice.
INLINE VF finish(VI sum, VI quantum, int digits, bool half, VI *bad) {
  VI sign = sum >> 31, mag = (VI)((VU)(sum ^ sign) - (VU)sign);
  *bad |= (mag > 0x7fffff00) | (mag < 0);
  VF f = __builtin_convertvector(mag, VF);
  VI back = truncate(f), bits = (VI)f + (back > mag); // the comparison is -1: the float below
  if (half)
    bits |= (back != mag) & 1;
  if (digits < 24 && !half)
    bits &= ~((1 << (24 - digits)) - 1);
  f = (VF)bits * (VF)quantum;
  if (half)
    f = round_half(f);
  return (VF)((VI)f | (sign & (int32_t)SIGN & (f > 0))); // what rounds to zero is +0
}

// One row of A against the 8 columns: the group of n slots.  `bad` marks elements that this can't
// do.
INLINE VF row_group(const float *a, const float *a_power, const float *b, const float *b_power,
                    int n, VF c, int fraction, int digits, bool half, VI small, VI *bad) {
  const VF *bp = (const VF *)b_power, *bv = (const VF *)b;
  VF top = power_of(c, half);
  for (int i = 0; i < n; i++)
    top = larger(top, a_power[i] * bp[i]);
  VI e = (VI)top;
  *bad = (e > (int32_t)POWER(HIGH)) | ((e < (int32_t)POWER(LOW)) & ((e != 0) | small));
  e = (VI)larger(top, (VF)splat(POWER(LOW)));
  VF scale = (VF)(((uint32_t)(254 + fraction) << 23) - (VU)e);
  VI quantum = e - (fraction << 23);
  // 16 products and c of up to 2^27 quanta: two sums, and a look at their carry.
  VU sum = (VU)truncate(c * scale), second = {0};
  int first = n > 8 && fraction == 25 ? n / 2 : n;
  for (int i = 0; i < first; i++)
    sum += (VU)truncate(a[i] * bv[i] * scale);
  for (int i = first; i < n; i++)
    second += (VU)truncate(a[i] * bv[i] * scale);
  if (first < n) {
    VU both = sum + second;
    *bad |= (VI)((sum ^ both) & (second ^ both)) >> 31;
    sum = both;
  }
  return finish((VI)sum, quantum, digits, half, bad);
}

// Elements beyond the range, one by one.
static __attribute__((noinline)) VF mend(const MatrixRule *rule, int k, const float *a,
                                         const float *a_power, const float *b,
                                         const float *b_power, VF c, VF d, VI bad) {
  for (int n = 0; n < W; n++)
    if (bad[n])
      d[n] = matrix_exact(rule, k, a, a_power, b + n, b_power + n, W, c[n]);
  return d;
}

INLINE VF emulated_row(const float *a, const float *a_power, const float *b, const float *b_power,
                       int k, VF c, bool half, VI small, VI *bad) {
  int n = k / 2, digits = half ? 11 : 24;
  VI bad_second;
  VF s = row_group(a, a_power, b, b_power, n, (VF){0}, 25, digits, half, small, bad);
  s = row_group(a + n, a_power + n, b + n * W, b_power + n * W, n, s, 25, digits, half, small,
                &bad_second);
  VI over = ((VI)c & (int32_t)EXPONENT) == (int32_t)EXPONENT;
  *bad |= bad_second | over;
  VF d = s + c;
  if (!half)
    return d;
  VI sign = (VI)d & (int32_t)SIGN;
  return (VF)((VI)round_half((VF)((VI)d & 0x7fffffff)) | sign);
}

INLINE void tile(const MatrixRule *rule, int k, bool emulated, int fraction, int digits, bool half,
                 const MatrixA *a, const MatrixB *b, const float *const c[4], float *const d[4]) {
  VI small = splat(a->tiny || b->tiny ? ~0u : 0);
  VI special = splat(a->special || b->special ? ~0u : 0);
  for (int row = 0; row < 16; row++) {
    int i = row >> 3 << 1, g = 4 * (row & 7);
    const float *av = a->value + row * k, *ap = a->power + row * k;
    VF acc = join(c[i] + g, c[i + 1] + g), out;
    VI bad;
    if (emulated)
      out = emulated_row(av, ap, b->value, b->power, k, acc, half, small, &bad);
    else
      out = row_group(av, ap, b->value, b->power, k, acc, fraction, digits, half, small, &bad);
    bad |= special;
    if (any(bad))
      out = mend(rule, k, av, ap, b->value, b->power, acc, out, bad);
    memcpy(d[i] + g, &out, 16);
    memcpy(d[i + 1] + g, (char *)&out + 16, 16);
  }
}

static void multiply(const MatrixRule *rule, int k, const MatrixA *a, const MatrixB *b,
                     const float *const c[4], float *const d[4]) {
#define TILE(k, emulated, fraction, digits, half)                                                  \
  tile(rule, k, emulated, fraction, digits, half, a, b, c, d)
  if (rule->emulated && rule->half)
    TILE(32, true, 25, 11, true);
  else if (rule->emulated)
    TILE(32, true, 25, 24, false);
  else if (rule->fraction == 13 && rule->half)
    TILE(32, false, 13, 11, true);
  else if (rule->fraction == 13)
    TILE(32, false, 13, 14, false);
  else if (rule->half && k == 16)
    TILE(16, false, 25, 11, true);
  else if (rule->half)
    TILE(8, false, 25, 11, true);
  else if (k == 16)
    TILE(16, false, 25, 24, false);
  else if (k == 8)
    TILE(8, false, 25, 24, false);
  else
    TILE(4, false, 25, 24, false);
#undef TILE
}

// ---- f16 accumulators ---------------------------------------------------------------------------
static void unpack(float *const f[4], const uint32_t *const pairs[2]) {
  for (int i = 0; i < 4; i++)
    for (int lane = 0; lane < 32; lane++)
      f[i][lane] = float_of(widen(MATRIX_F16, pairs[i >> 1][lane] >> 16 * (i & 1) & 0xffff));
}

// Bits of a float that is an f16's value.
INLINE uint32_t narrow(float v) {
  uint32_t u = bits_of(v), mag = u & 0x7fffffff;
  uint32_t low = (uint32_t)(int32_t)(float_of(mag) * 0x1p24f); // a subnormal's fraction
  uint32_t r = mag < POWER(-14) ? low : (mag - (112u << 23)) >> 13;
  r = mag >= EXPONENT ? 0x7c00 : r;
  return mag > EXPONENT ? 0x7fff : r | u >> 31 << 15;
}

static void pack(uint32_t *const pairs[2], const float *const f[4]) {
  for (int r = 0; r < 2; r++)
    for (int lane = 0; lane < 32; lane++)
      pairs[r][lane] = narrow(f[2 * r][lane]) | narrow(f[2 * r + 1][lane]) << 16;
}

#define NAME(set) NAME_(set)
#define NAME_(set) matrix_isa_##set
const MatrixIsa NAME(LANE_SET) = {load_a, load_b, multiply, unpack, pack};
