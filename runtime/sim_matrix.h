// The tensor cores' products, bit for bit as an H200 gives them: docs/numerics.md has the model.
//
// sim_matrix_core.c is compiled once per host instruction set, as sim_lanes.c is, with the same
// bits from each.  Operands are converted once to floats, with the power of two of each beside it;
// a B that many rows use (wgmma) is converted once for all of them.
//
// Words.  Whatever the type, an A tile is 16 rows of K elements and a B tile 8 columns of K, and
// both come as words of 4 bytes, 32 to a register, lane = 4 * g + q:
//     A register r:  row g + 8 * (r & 1), bytes 16 * (r >> 1) + 4 * q ... + 3 of the row
//     B register r:  column g,            bytes 16 * r + 4 * q ... + 3 of the column
// that is the fragments of mma.sync and of wgmma's A in registers (ISA 9.7.14.5, 9.7.15.5).
// Accumulators of a 16 x 8 tile are four registers of 32 floats:
//     register i:  row g + 8 * (i >> 1), column 2 * q + (i & 1)
// a warp's wgmma accumulators are N/8 of these, one after the other.
#ifndef PTXSMITH_SIM_MATRIX_H
#define PTXSMITH_SIM_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MATRIX_MAX_K = 32 };

//    id     bits  least normal exponent
#define MATRIX_TYPES(X)                                                                            \
  X(F16, 16, -14) X(BF16, 16, -126) X(TF32, 32, -126) X(E4M3, 8, -6) X(E5M2, 8, -14)
typedef enum MatrixType {
#define X(id, ...) MATRIX_##id,
  MATRIX_TYPES(X)
#undef X
} MatrixType;

static inline int matrix_type_bits(MatrixType t) {
  static const uint8_t bits[] = {
#define X(id, bits, ...) bits,
      MATRIX_TYPES(X)
#undef X
  };
  return bits[t];
}

// How a group of products is summed: all are truncated to multiples of 2^(emax - fraction), where
// 2^emax is the largest power of a product or of c, and added exactly; the sum is truncated to
// `digits` significant bits, or (half) rounded to the nearest f16.
typedef struct MatrixRule {
  uint8_t fraction, digits;
  bool half;
  bool emulated; // mma.sync on 8-bit floats: two groups from zero, then c is added and rounded
} MatrixRule;

typedef enum MatrixRuleId {
  MATRIX_RULE_F32,      // 16 and 32-bit inputs, f32 accumulator
  MATRIX_RULE_F16,      // f16 inputs and accumulator
  MATRIX_RULE_MMA8_F32, // mma.sync on 8-bit floats
  MATRIX_RULE_MMA8_F16,
  MATRIX_RULE_WGMMA8_F32, // wgmma on 8-bit floats
  MATRIX_RULE_WGMMA8_F16,
  MATRIX_RULE_COUNT
} MatrixRuleId;
extern const MatrixRule matrix_rules[MATRIX_RULE_COUNT];

// Converted tiles.  An element's exponent is max(its own, the type's least), or MATRIX_NO_EXPONENT
// for a zero: the sum of two of them is that of their product.
enum { MATRIX_NO_EXPONENT = -0x2000 };
typedef struct MatrixA {
  float value[16 * MATRIX_MAX_K] __attribute__((aligned(64))); // [row][slot], K slots
  // [row & 7][slot]: of row g in the low half, of row g + 8 in the high one
  uint32_t exponent[8 * MATRIX_MAX_K] __attribute__((aligned(64)));
  bool special; // an infinity or NaN
  int8_t least; // exponent of the type's smallest normal number
} MatrixA;

typedef struct MatrixB {
  float value[8 * MATRIX_MAX_K] __attribute__((aligned(64))); // [slot][4 * (n & 1) + (n >> 1)]
  uint32_t exponent[8 * MATRIX_MAX_K] __attribute__((aligned(64))); // the same, in both halves
  bool special;
  int8_t least;
} MatrixB;

typedef struct MatrixIsa {
  // K elements of type t from 2 * K * bytes / 16 registers of words (A), or half as many (B).
  void (*load_a)(MatrixA *a, MatrixType t, int k, const uint32_t *const *words);
  void (*load_b)(MatrixB *b, MatrixType t, int k, const uint32_t *const *words);
  // d = a b + c for one tile; d may be c.  half: c and d hold values of f16.  K: 4, 8, 16 or 32 as
  // the rule's instructions have it.
  void (*multiply)(const MatrixRule *rule, int k, const MatrixA *a, const MatrixB *b,
                   const float *const c[4], float *const d[4]);
  // f16 accumulators: two registers of pairs (columns 2q, 2q + 1) to four of floats and back.
  void (*unpack)(float *const f[4], const uint32_t *const pairs[2]);
  void (*pack)(uint32_t *const pairs[2], const float *const f[4]);
} MatrixIsa;

extern const MatrixIsa matrix_isa_baseline;
#if defined(__x86_64__)
extern const MatrixIsa matrix_isa_avx2, matrix_isa_avx512;
#endif

// The model itself, for one element: a and b of K elements that are `step` apart, of types with
// these least exponents.  The vector code gives the same and calls this where its 32-bit sums do
// not reach.
typedef struct MatrixLine { const float *value; int step, least; } MatrixLine;
float matrix_exact(const MatrixRule *rule, int k, MatrixLine a, MatrixLine b, float c);

// Memory as words, K across the lines (MN-major, 16-bit types only): k lines of n = 16 (A) or 8 (B)
// elements, `pitch` bytes apart.
void matrix_words_across(uint32_t (*words)[32], const void *lines, size_t pitch, int n, int k);

#define MATRIX_NAN 0x7fffffffu // what any invalid operation gives; f16: 0x7fff

#endif
