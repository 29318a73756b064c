// sim_matrix_core.c: products of tiles for one instruction set (LANE_SET): see sim_matrix.h.
//
// The model in single precision: p = a * b is exact, emax the largest sum of the operands'
// exponents or c's exponent, and p * 2^(fraction - emax) cut to an integer is p truncated to the
// quantum.  Sums are 32-bit integers.  Where an exponent or a sum leaves the range in which that
// holds, the element is computed anew by matrix_exact.
//
// Rows g and g + 8 go together: their exponents are the halves of 32-bit words, so that one
// instruction adds or compares those of 16 elements.
#include "sim_matrix.h"

#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { W = 8 }; // columns of a tile, elements of a vector
typedef float VF __attribute__((vector_size(4 * W)));
typedef int32_t VI __attribute__((vector_size(4 * W)));
typedef uint32_t VU __attribute__((vector_size(4 * W)));
typedef int16_t VH __attribute__((vector_size(4 * W))); // halves: row g, row g + 8

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
  default: return u & ~0x1fffu; // tf32: a NaN of low bits only becomes an infinity, as on the GPU
  }
}

typedef struct Lanes {
  uint32_t value[32] __attribute__((aligned(64)));
  uint32_t exponent[32] __attribute__((aligned(64))); // 16 bits of it
  bool special;
} Lanes;

static const int least_exponent[] = {
#define X(id, bits, emin) emin,
    MATRIX_TYPES(X)
#undef X
};

// Element `e` of each word.
INLINE void convert(MatrixType t, const uint32_t *words, int e, Lanes *out) {
  int bits = t == MATRIX_TF32 ? 32 : t >= MATRIX_E4M3 ? 8 : 16;
  uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1, special = 0;
  int32_t least = least_exponent[t] + 127;
  for (int i = 0; i < 32; i++) {
    uint32_t r = widen(t, words[i] >> (bits * e) & mask);
    int32_t x = (int32_t)(r >> 23 & 255);
    special |= (uint32_t)(x == 255);
    x = x < least ? least : x;
    x = r << 1 ? x - 127 : MATRIX_NO_EXPONENT;
    out->value[i] = r;
    out->exponent[i] = (uint32_t)x & 0xffff;
  }
  out->special = special;
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

// Registers come in pairs: rows g, then rows g + 8.
INLINE void load_a_as(MatrixType t, MatrixA *a, int k, const uint32_t *const *words) {
  int each = t == MATRIX_TF32 ? 1 : t >= MATRIX_E4M3 ? 4 : 2, nregs = k / (2 * each);
  Lanes v, w;
  for (int r = 0; r < nregs; r += 2)
    for (int e = 0; e < each; e++) {
      convert(t, words[r], e, &v);
      convert(t, words[r + 1], e, &w);
      a->special |= v.special | w.special;
      for (int i = 0; i < 32; i++)
        v.exponent[i] |= w.exponent[i] << 16;
      size_t at = (size_t)slot_in(t, k, r >> 1, e);
      for (int g = 0; g < 8; g++, at += (size_t)k) {
        memcpy(a->value + at, v.value + 4 * g, 16);
        memcpy(a->value + 8 * k + at, w.value + 4 * g, 16);
        memcpy(a->exponent + at, v.exponent + 4 * g, 16);
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
INLINE void transpose(void *out, const uint32_t *from) {
  VU v[4], lo, hi;
  uint32_t *to = out;
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
      for (int i = 0; i < 32; i++)
        v.exponent[i] |= v.exponent[i] << 16;
      size_t at = (size_t)(slot_in(t, k, r, e) * W);
      transpose(b->value + at, v.value);
      transpose(b->exponent + at, v.exponent);
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
  a->special = false;
  a->least = (int8_t)least_exponent[t];
#define CALL(type) load_a_as(type, a, k, words)
  EACH_TYPE(CALL)
#undef CALL
}

static void load_b(MatrixB *b, MatrixType t, int k, const uint32_t *const *words) {
  b->special = false;
  b->least = (int8_t)least_exponent[t];
#define CALL(type) load_b_as(type, b, k, words)
  EACH_TYPE(CALL)
#undef CALL
}

// ---- products -----------------------------------------------------------------------------------
INLINE VI splat(uint32_t u) { return (VI){0} + (int32_t)u; }
INLINE VI pick(VI mask, VI a, VI b) { return (mask & a) | (~mask & b); }
INLINE VI truncate(VF v) { return __builtin_convertvector(v, VI); }

INLINE VI larger(VI a, VI b) {
#if defined(__AVX2__)
  return (VI)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
  return pick(a > b, a, b);
#endif
}

INLINE VH larger_half(VH a, VH b) {
#if defined(__AVX2__)
  return (VH)_mm256_max_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  __m128i x[2], y[2];
  memcpy(x, &a, sizeof x);
  memcpy(y, &b, sizeof y);
  x[0] = _mm_max_epi16(x[0], y[0]);
  x[1] = _mm_max_epi16(x[1], y[1]);
  memcpy(&a, x, sizeof a);
  return a;
#else
  VH gt = a > b;
  return (gt & a) | (~gt & b);
#endif
}

INLINE bool any(VI v) {
#if defined(__AVX__)
  return !_mm256_testz_si256((__m256i)v, (__m256i)v);
#else
  uint64_t u[W / 2];
  memcpy(u, &v, sizeof u);
  return u[0] | u[1] | u[2] | u[3];
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

// Conversions of sums to f32 truncate where the host can be told to: what is called between these
// must not be inlined, the compiler knows nothing of modes.
#if defined(__SSE2__)
enum { CAN_CUT = 1 };
INLINE uint32_t round_as(uint32_t mode) {
  uint32_t old = _mm_getcsr();
  _mm_setcsr((old & ~(uint32_t)_MM_ROUND_MASK) | mode);
  return old;
}
INLINE void restore(uint32_t old) { _mm_setcsr(old); }
enum { NEAREST = _MM_ROUND_NEAREST, TO_ZERO = _MM_ROUND_TOWARD_ZERO };
#else
enum { CAN_CUT = 0, NEAREST, TO_ZERO };
INLINE uint32_t round_as(uint32_t mode) { return mode; }
INLINE void restore(uint32_t old) { (void)old; }
#endif

// Nearest f16, ties to even: adding 2^(e+13) leaves 11 digits of a positive v in [2^e, 2^(e+1)).
INLINE VF round_half(VF v) {
  VI e = larger((VI)v & (int32_t)EXPONENT, splat(POWER(-14)));
  VF far = (VF)e * 0x1p13f;
  VF r = (v + far) - far;
  VI over = (r >= 0x1p16f) | (v == (VF)splat(EXPONENT)); // of an infinity, r is no number
  return (VF)pick(over, splat(EXPONENT), (VI)r);
}

// Powers in [2^LOW, 2^HIGH]: products, quantum and result are then exact in floats, and products
// that underflow are below the quantum anyway.
enum { LOW = -96, HIGH = 96 };

// How a tile is computed: constants where this is inlined.
typedef struct How {
  int k, fraction, digits;
  bool half, emulated, cut; // cut: the host's conversions truncate
} How;

// The sum in 32 bits as a float: truncated, or (half) rounded to odd, which a second rounding to 11
// bits does not notice.
INLINE VF finish(VI sum, VI quantum, How h, VI *bad) {
  VI rest = splat(h.digits < 24 && !h.half ? (1u << (24 - h.digits)) - 1 : 0);
  if (h.cut)
    return (VF)((VI)__builtin_convertvector(sum, VF) & ~rest) * (VF)quantum;
  VI sign = sum >> 31, mag = (VI)((VU)(sum ^ sign) - (VU)sign);
  *bad |= (mag > 0x7fffff00) | (mag < 0);
  VF f = __builtin_convertvector(mag, VF);
  VI back = truncate(f), bits = (VI)f + (back > mag); // the comparison is -1: the float below
  if (h.half)
    bits |= (back != mag) & 1;
  f = (VF)(bits & ~rest) * (VF)quantum;
  if (h.half)
    f = round_half(f);
  return (VF)((VI)f | (sign & (int32_t)SIGN & (f > 0))); // what rounds to zero is +0
}

// The largest exponent of a product, biased as a float's: 0 where all are zero, else 1 to 254, and
// those mean that much or less, that much or more.
INLINE VH top_exponents(const uint32_t *a, const uint32_t *b, int n) {
  const VH *bx = (const VH *)b;
  VH top = (VH){0} + 2 * MATRIX_NO_EXPONENT;
  for (int i = 0; i < n; i++)
    top = larger_half(top, (VH)splat(a[i]) + bx[i]);
  VH some = top > MATRIX_NO_EXPONENT / 2;
  top = larger_half(top + 127, (VH){0} + 1) & some;
  return -larger_half(-top, (VH){0} - 254);
}

// Truncated products and c, from the bits of the products' largest power.  `bad` marks elements
// that this can't do.
INLINE VF row_group(const float *a, const float *b, int n, VF c, VI power, How h, VI *bad) {
  const VF *bv = (const VF *)b;
  VI mag = (VI)c & 0x7fffffff;
  if (h.half) // exponents below the type's least count as that
    mag = larger(mag, splat(POWER(-14))) & (mag != 0);
  VI m = larger(mag, power); // its exponent is what counts
  VI below = (VI)((VU)m + 0x7fffffffu) < (int32_t)(POWER(LOW) + 0x7fffffffu); // and not 0
  *bad = below | (m >= (int32_t)POWER(HIGH + 1));
  VI e = larger(m & (int32_t)EXPONENT, splat(POWER(LOW)));
  VF scale = (VF)(((uint32_t)(254 + h.fraction) << 23) - (VU)e);
  VI quantum = e - (h.fraction << 23);
  // 16 products and c of up to 2^27 quanta: two sums, and a look at their carry.
  VU sum = (VU)truncate(c * scale), second = {0};
  int first = n > 8 && h.fraction == 25 ? n / 2 : n;
  for (int i = 0; i < first; i++)
    sum += (VU)truncate(a[i] * bv[i] * scale);
  for (int i = first; i < n; i++)
    second += (VU)truncate(a[i] * bv[i] * scale);
  if (first < n) {
    VU both = sum + second;
    *bad |= (VI)((sum ^ both) & (second ^ both)) >> 31;
    sum = both;
  }
  return finish((VI)sum, quantum, h, bad);
}

// One group of slots for rows g and g + 8.
INLINE void pair_group(const MatrixA *a, const MatrixB *b, int g, int first, int n, const VF c[2],
                       How h, VF out[2], VI bad[2]) {
  VI top = (VI)top_exponents(a->exponent + g * h.k + first, b->exponent + first * W, n);
  const float *at = a->value + g * h.k + first, *b_at = b->value + first * W;
  out[0] = row_group(at, b_at, n, c[0], (top & 0xffff) << 23, h, &bad[0]);
  out[1] = row_group(at + 8 * h.k, b_at, n, c[1], top >> 16 << 23, h, &bad[1]);
}

// Elements beyond the range, one by one.
static __attribute__((noinline)) VF mend(const MatrixRule *rule, int k, const MatrixA *a, int row,
                                         const MatrixB *b, VF c, VF d, VI bad) {
  uint32_t mode = round_as(NEAREST);
  MatrixLine x = {a->value + row * k, 1, a->least};
  for (int n = 0; n < W; n++)
    if (bad[n])
      d[n] = matrix_exact(rule, k, x, (MatrixLine){b->value + n, W, b->least}, c[n]);
  restore(mode);
  return d;
}

// Two groups from zero, then + c.
INLINE void emulated_pair(const MatrixA *a, const MatrixB *b, int g, const VF c[2], How h,
                          VF out[2], VI bad[2]) {
  VF s[2] = {0}, t[2];
  VI bad_first[2];
  pair_group(a, b, g, 0, h.k / 2, s, h, t, bad_first);
  pair_group(a, b, g, h.k / 2, h.k / 2, t, h, s, bad);
  for (int i = 0; i < 2; i++) {
    VI over = ((VI)c[i] & (int32_t)EXPONENT) == (int32_t)EXPONENT;
    bad[i] |= bad_first[i] | over;
    VF d = s[i] + c[i];
    VI sign = (VI)d & (int32_t)SIGN;
    out[i] = h.half ? (VF)((VI)round_half((VF)((VI)d & 0x7fffffff)) | sign) : d;
  }
}

INLINE void tile(const MatrixRule *rule, How h, const MatrixA *a, const MatrixB *b,
                 const float *const c[4], float *const d[4]) {
  VI special = splat(a->special || b->special ? ~0u : 0);
  for (int g = 0; g < 8; g++) {
    VF acc[2] = {join(c[0] + 4 * g, c[1] + 4 * g), join(c[2] + 4 * g, c[3] + 4 * g)}, out[2];
    VI bad[2];
    if (h.emulated)
      emulated_pair(a, b, g, acc, h, out, bad);
    else
      pair_group(a, b, g, 0, h.k, acc, h, out, bad);
    bad[0] |= special;
    bad[1] |= special;
    if (any(bad[0] | bad[1]))
      for (int i = 0; i < 2; i++)
        out[i] = mend(rule, h.k, a, g + 8 * i, b, acc[i], out[i], bad[i]);
    for (int i = 0; i < 2; i++) {
      memcpy(d[2 * i] + 4 * g, &out[i], 16);
      memcpy(d[2 * i + 1] + 4 * g, (char *)&out[i] + 16, 16);
    }
  }
}

//    rule              K   fraction, digits, half, emulated
#define TILES(X)                                                                                   \
  X(MATRIX_RULE_F32, 16, 25, 24, false, false)                                                     \
  X(MATRIX_RULE_F32, 8, 25, 24, false, false)                                                      \
  X(MATRIX_RULE_F32, 4, 25, 24, false, false)                                                      \
  X(MATRIX_RULE_F16, 16, 25, 11, true, false)                                                      \
  X(MATRIX_RULE_F16, 8, 25, 11, true, false)                                                       \
  X(MATRIX_RULE_MMA8_F32, 32, 25, 24, false, true)                                                 \
  X(MATRIX_RULE_MMA8_F16, 32, 25, 11, true, true)                                                  \
  X(MATRIX_RULE_WGMMA8_F32, 32, 13, 14, false, false)                                              \
  X(MATRIX_RULE_WGMMA8_F16, 32, 13, 11, true, false)

#define X(id, k, fraction, digits, half, emulated)                                                 \
  static __attribute__((noinline)) void tile_##id##_##k(                                           \
      const MatrixA *a, const MatrixB *b, const float *const c[4], float *const d[4]) {            \
    How h = {k, fraction, digits, half, emulated, CAN_CUT && !(half) && !(emulated)};              \
    tile(&matrix_rules[id], h, a, b, c, d);                                                        \
  }
TILES(X)
#undef X

static void multiply(const MatrixRule *rule, int k, const MatrixA *a, const MatrixB *b,
                     const float *const c[4], float *const d[4]) {
  bool cut = !rule->half && !rule->emulated;
  uint32_t mode = cut ? round_as(TO_ZERO) : 0;
  switch ((int)(rule - matrix_rules) << 8 | k) {
#define X(id, k, ...) case id << 8 | (k): tile_##id##_##k(a, b, c, d); break;
    TILES(X)
#undef X
  }
  if (cut)
    restore(mode);
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
