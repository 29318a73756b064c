// What every lane function is made of: value types, loads and stores by PTX type, the lane loop,
// and the table rows.  Included by sim_lanes.c only, once per instruction set.
#ifndef PTXSMITH_SIM_LANES_BASE_H
#define PTXSMITH_SIM_LANES_BASE_H

#include <string.h>

typedef unsigned __int128 Wide128;
typedef __int128 SWide128;

enum { LANES = 32 };

// Modifiers that change a function's details, not its kind: passed in imm.
enum {
  M_RN = 0, M_RZ = 1, M_RM = 2, M_RP = 3, M_RNA = 4, M_ROUND = 7,
  M_FTZ = 0x08, M_SAT = 0x10, M_RELU = 0x20, M_NAN = 0x40, M_XORSIGN = 0x80, M_INTEGER = 0x100,
  M_SATFINITE = 0x200,
};

// For each PTX type: S storage of a lane, V value, U the value's bits, A unsigned arithmetic that
// can't overflow an int, W twice as wide.
#define TYPE_ROW(T, S, V, U, A, W)                                                                 \
  typedef S S_##T;                                                                                 \
  typedef V V_##T;                                                                                 \
  typedef U U_##T;                                                                                 \
  typedef A A_##T;                                                                                 \
  typedef W W_##T;
TYPE_ROW(u8, uint32_t, uint8_t, uint8_t, uint32_t, uint16_t)
TYPE_ROW(s8, uint32_t, int8_t, uint8_t, uint32_t, int16_t)
TYPE_ROW(u16, uint32_t, uint16_t, uint16_t, uint32_t, uint32_t)
TYPE_ROW(s16, uint32_t, int16_t, uint16_t, uint32_t, int32_t)
TYPE_ROW(b16, uint32_t, uint16_t, uint16_t, uint32_t, uint32_t)
TYPE_ROW(u32, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t)
TYPE_ROW(s32, uint32_t, int32_t, uint32_t, uint32_t, int64_t)
TYPE_ROW(b32, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t)
TYPE_ROW(u64, uint64_t, uint64_t, uint64_t, uint64_t, Wide128)
TYPE_ROW(s64, uint64_t, int64_t, uint64_t, uint64_t, SWide128)
TYPE_ROW(b64, uint64_t, uint64_t, uint64_t, uint64_t, Wide128)
TYPE_ROW(f32, uint32_t, float, uint32_t, uint32_t, double)
TYPE_ROW(f64, uint64_t, double, uint64_t, uint64_t, double)
// Half types are handled as bits; sim_lanes_half.h knows their values.
TYPE_ROW(f16, uint32_t, uint16_t, uint16_t, uint32_t, uint32_t)
TYPE_ROW(bf16, uint32_t, uint16_t, uint16_t, uint32_t, uint32_t)
TYPE_ROW(f16x2, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t)
TYPE_ROW(bf16x2, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t)

#define INLINE static inline __attribute__((always_inline, unused))

INLINE float f32_of(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
INLINE uint32_t f32_bits(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
INLINE double f64_of(uint64_t u) { double f; memcpy(&f, &u, 8); return f; }
INLINE uint64_t f64_bits(double f) { uint64_t u; memcpy(&u, &f, 8); return u; }

// Canonical NaNs.  f32: PTX ISA, "NaN payloads are not preserved".  f64: what the hardware makes
// of inf - inf; payloads are dropped here so that every host gives the same bits.
#define NAN_F16 0x7FFFu
#define NAN_BF16 0x7FFFu
#define NAN_F32 0x7FFFFFFFu
#define NAN_F64 0xFFF8000000000000u

INLINE bool is_nan32(uint32_t u) { return (u & 0x7FFFFFFFu) > 0x7F800000u; }
INLINE bool is_nan64(uint64_t u) { return (u & ~(1ull << 63)) > 0x7FF0000000000000u; }
INLINE uint32_t flush32(uint32_t u) { return (u & 0x7F800000u) ? u : u & 0x80000000u; }
INLINE uint64_t flush64(uint64_t u) {
  return (u & 0x7FF0000000000000u) ? u : u & 0x8000000000000000u;
}

#define LD_u8(u) ((uint8_t)(u))
#define LD_s8(u) ((int8_t)(u))
#define LD_u16(u) ((uint16_t)(u))
#define LD_s16(u) ((int16_t)(u))
#define LD_b16(u) ((uint16_t)(u))
#define LD_f16(u) ((uint16_t)(u))
#define LD_bf16(u) ((uint16_t)(u))
#define LD_u32(u) (u)
#define LD_s32(u) ((int32_t)(u))
#define LD_b32(u) (u)
#define LD_f16x2(u) (u)
#define LD_bf16x2(u) (u)
#define LD_u64(u) (u)
#define LD_s64(u) ((int64_t)(u))
#define LD_b64(u) (u)
#define LD_f32(u) f32_of(u)
#define LD_f64(u) f64_of(u)

// d may be the same register as a source, never a shifted one: lanes are independent.
#ifdef __clang__
#define LANES_APART // clang checks for overlap when it runs
#else
#define LANES_APART _Pragma("GCC ivdep")
#endif
#define EACH_LANE LANES_APART for (int i = 0; i < LANES; i++)

#define LANE_ARGS                                                                                  \
  void *D, const void *A, const void *B, const void *C, const void *E, uint64_t imm
#define UNUSED_ARGS (void)D, (void)A, (void)B, (void)C, (void)E, (void)imm

// The shapes of functions.  DEF(id, T, e): d[i] = e, where e may use x, y, z, v (the sources),
// the types V, U, Arith, W of T, and BITS.
#define PROLOGUE(T)                                                                                \
  UNUSED_ARGS;                                                                                     \
  typedef V_##T V __attribute__((unused));                                                         \
  typedef U_##T U __attribute__((unused));                                                         \
  typedef A_##T Arith __attribute__((unused));                                                     \
  typedef W_##T W __attribute__((unused));                                                         \
  enum { BITS __attribute__((unused)) = 8 * sizeof(U) }
#define OUT(S) S *d = __builtin_assume_aligned(D, 64)
#define IN(S, p, P) const S *p = __builtin_assume_aligned(P, 64)

// DT, AT, BT, CT, ET: types of the operands.
#define DEF1(id, T, DT, AT, e)                                                                     \
  static void id(LANE_ARGS) {                                                                      \
    PROLOGUE(T);                                                                                   \
    OUT(S_##DT); IN(S_##AT, a, A);                                                                 \
    EACH_LANE { V_##AT x = LD_##AT(a[i]); d[i] = (U_##DT)(e); }                                    \
  }
#define DEF2(id, T, DT, AT, BT, e)                                                                 \
  static void id(LANE_ARGS) {                                                                      \
    PROLOGUE(T);                                                                                   \
    OUT(S_##DT); IN(S_##AT, a, A); IN(S_##BT, b, B);                                               \
    EACH_LANE { V_##AT x = LD_##AT(a[i]); V_##BT y = LD_##BT(b[i]); d[i] = (U_##DT)(e); }          \
  }
#define DEF3(id, T, DT, AT, BT, CT, e)                                                             \
  static void id(LANE_ARGS) {                                                                      \
    PROLOGUE(T);                                                                                   \
    OUT(S_##DT); IN(S_##AT, a, A); IN(S_##BT, b, B); IN(S_##CT, c, C);                             \
    EACH_LANE {                                                                                    \
      V_##AT x = LD_##AT(a[i]); V_##BT y = LD_##BT(b[i]); V_##CT z = LD_##CT(c[i]);                \
      d[i] = (U_##DT)(e);                                                                          \
    }                                                                                              \
  }
#define DEF4(id, T, DT, AT, BT, CT, ET, e)                                                         \
  static void id(LANE_ARGS) {                                                                      \
    PROLOGUE(T);                                                                                   \
    OUT(S_##DT); IN(S_##AT, a, A); IN(S_##BT, b, B); IN(S_##CT, c, C); IN(S_##ET, f, E);           \
    EACH_LANE {                                                                                    \
      V_##AT x = LD_##AT(a[i]); V_##BT y = LD_##BT(b[i]); V_##CT z = LD_##CT(c[i]);                \
      V_##ET v = LD_##ET(f[i]);                                                                    \
      d[i] = (U_##DT)(e);                                                                          \
    }                                                                                              \
  }

typedef struct LaneRow {
  const char *key; // "mul.lo.u32": stem and modifiers
  LaneFn fn;
  LaneFn fn_ftz;   // with .ftz and no other M_ modifier, when not NULL
  LaneFn fn_any;   // with M_ modifiers, which it reads from imm, when not NULL
  uint8_t width[5];
  uint8_t flops;
  uint64_t imm;
} LaneRow;

#define ST(T) sizeof(S_##T)

#endif
