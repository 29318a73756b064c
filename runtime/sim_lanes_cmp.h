// setp, set, testp, selp, slct and predicate logic.  PTX ISA 9.7.6.
//
// imm of setp: M_FTZ; how the comparison joins predicate c; whether c is negated; LANE_SECOND.
enum { P_SHIFT = 12, P_AND = 1, P_OR = 2, P_XOR = 3, P_NEGATE = 0x4000 };
// imm of set, besides: which comparison, and what a true half or word looks like.
enum { SET_KIND_SHIFT = 20, SET_FN_SHIFT = 32 };
enum { SET_ONES32, SET_F32, SET_ONES16, SET_F16, SET_BF16, SET_F16X2, SET_BF16X2, SET_ONES16X2 };

// 1 << i: turns a lane's truth into its bit by an and, which every host vectorises.
static const uint32_t lane_bit[LANES] __attribute__((aligned(64))) = {
#define B4(n) 1u << (n), 1u << ((n) + 1), 1u << ((n) + 2), 1u << ((n) + 3)
    B4(0), B4(4), B4(8), B4(12), B4(16), B4(20), B4(24), B4(28)};
#undef B4

INLINE void setp_finish(void *D, uint32_t m, const void *C, uint64_t imm) {
  if (imm >> P_SHIFT & 3) {
    uint32_t c = *(const uint32_t *)C;
    if (imm & P_NEGATE) c = ~c;
    switch (imm >> P_SHIFT & 3) {
    case P_AND: m &= c; break;
    case P_OR: m |= c; break;
    default: m ^= c; break;
    }
  }
  *(uint32_t *)D = m;
}

// Values to compare, from a lane's bits.  Packed types: the second destination is the high half.
#define CMP_f32(u) f32_of((imm & M_FTZ) ? flush32(u) : (u))
#define CMP_f64(u) f64_of(u)
#define CMP_f16(u) f16_value(pre_f16(u, imm))
#define CMP_bf16(u) bf16_value(u)
#define HALF_OF(u) ((imm & LANE_SECOND) ? (u) >> 16 : (u) & 0xFFFFu)
#define CMP_f16x2(u) f16_value(pre_f16(HALF_OF(u), imm))
#define CMP_bf16x2(u) bf16_value(HALF_OF(u))
#define CMP_u16(u) LD_u16(u)
#define CMP_s16(u) LD_s16(u)
#define CMP_b16(u) LD_u16(u)
#define CMP_u32(u) LD_u32(u)
#define CMP_s32(u) LD_s32(u)
#define CMP_b32(u) LD_u32(u)
#define CMP_u64(u) LD_u64(u)
#define CMP_s64(u) LD_s64(u)
#define CMP_b64(u) LD_u64(u)

#define SETP_DEF(op, T, packed, e)                                                                 \
  static void setp_##op##_##T(LANE_ARGS) {                                                         \
    UNUSED_ARGS;                                                                                   \
    IN(S_##T, a, A); IN(S_##T, b, B);                                                              \
    uint32_t m = 0;                                                                                \
    for (int i = 0; i < LANES; i++) {                                                              \
      __auto_type x = CMP_##T(a[i]);                                                               \
      __auto_type y = CMP_##T(b[i]);                                                               \
      m |= (e) ? lane_bit[i] : 0;                                                                  \
    }                                                                                              \
    if (!(packed) && (imm & LANE_SECOND)) m = ~m;                                                  \
    setp_finish(D, m, C, imm);                                                                     \
  }

#define TESTP_DEF(name, what)                                                                      \
  static void testp_##name##_f32(LANE_ARGS) {                                                      \
    UNUSED_ARGS;                                                                                   \
    IN(uint32_t, a, A);                                                                            \
    uint32_t m = 0;                                                                                \
    for (int i = 0; i < LANES; i++)                                                                \
      m |= testp(a[i] & 0x7FFFFFFFu, 0x7F800000u, 0x00800000u, what) ? lane_bit[i] : 0;            \
    *(uint32_t *)D = m;                                                                            \
  }                                                                                                \
  static void testp_##name##_f64(LANE_ARGS) {                                                      \
    UNUSED_ARGS;                                                                                   \
    IN(uint64_t, a, A);                                                                            \
    uint32_t m = 0;                                                                                \
    for (int i = 0; i < LANES; i++)                                                                \
      m |= testp(a[i] & ~(1ull << 63), 0x7FF0000000000000u, 0x0010000000000000u, what)             \
               ? lane_bit[i] : 0;                                                                  \
    *(uint32_t *)D = m;                                                                            \
  }

#define SELECT_DEF(T)                                                                              \
  static void selp_##T(LANE_ARGS) {                                                                \
    UNUSED_ARGS;                                                                                   \
    OUT(S_##T); IN(S_##T, a, A); IN(S_##T, b, B);                                                  \
    uint32_t p = *(const uint32_t *)C;                                                             \
    EACH_LANE d[i] = (p & lane_bit[i]) ? a[i] : b[i];                                              \
  }                                                                                                \
  static void slct_##T##_s32(LANE_ARGS) {                                                          \
    UNUSED_ARGS;                                                                                   \
    OUT(S_##T); IN(S_##T, a, A); IN(S_##T, b, B); IN(uint32_t, c, C);                              \
    EACH_LANE d[i] = (int32_t)c[i] >= 0 ? a[i] : b[i];                                             \
  }                                                                                                \
  static void slct_##T##_f32(LANE_ARGS) { /* -0 counts as >= 0, NaN does not */                    \
    UNUSED_ARGS;                                                                                   \
    OUT(S_##T); IN(S_##T, a, A); IN(S_##T, b, B); IN(uint32_t, c, C);                              \
    EACH_LANE d[i] = f32_of(pre32(c[i], imm)) >= 0.0f ? a[i] : b[i];                               \
  }

#define PRED_DEF(name, e)                                                                          \
  static void name##_pred(LANE_ARGS) {                                                             \
    UNUSED_ARGS;                                                                                   \
    uint32_t x = *(const uint32_t *)A, y = B ? *(const uint32_t *)B : 0;                           \
    (void)y;                                                                                       \
    *(uint32_t *)D = (e);                                                                          \
  }
PRED_DEF(mov, x)
PRED_DEF(not, ~x)
PRED_DEF(and, x & y)
PRED_DEF(or, x | y)
PRED_DEF(xor, x ^ y)

// Every comparison: one row.  Unordered forms are true when an operand is NaN.
#define CMP_BITS(X, T) X(eq, T, 0, x == y) X(ne, T, 0, x != y)
#define CMP_INT(X, T)                                                                              \
  CMP_BITS(X, T) X(lt, T, 0, x < y) X(le, T, 0, x <= y) X(gt, T, 0, x > y) X(ge, T, 0, x >= y)
#define CMP_UNS(X, T)                                                                              \
  CMP_INT(X, T) X(lo, T, 0, x < y) X(ls, T, 0, x <= y) X(hi, T, 0, x > y) X(hs, T, 0, x >= y)
#define CMP_FLOAT(X, T, packed)                                                                    \
  X(eq, T, packed, x == y) X(ne, T, packed, x < y || x > y) X(lt, T, packed, x < y)                \
  X(le, T, packed, x <= y) X(gt, T, packed, x > y) X(ge, T, packed, x >= y)                        \
  X(equ, T, packed, !(x < y || x > y)) X(neu, T, packed, x != y) X(ltu, T, packed, !(x >= y))      \
  X(leu, T, packed, !(x > y)) X(gtu, T, packed, !(x <= y)) X(geu, T, packed, !(x < y))             \
  X(num, T, packed, x == x && y == y) X(nan, T, packed, x != x || y != y)
#define COMPARISONS(X)                                                                             \
  CMP_BITS(X, b16) CMP_BITS(X, b32) CMP_BITS(X, b64)                                               \
  CMP_UNS(X, u16) CMP_UNS(X, u32) CMP_UNS(X, u64)                                                  \
  CMP_INT(X, s16) CMP_INT(X, s32) CMP_INT(X, s64)                                                  \
  CMP_FLOAT(X, f32, 0) CMP_FLOAT(X, f64, 0) CMP_FLOAT(X, f16, 0) CMP_FLOAT(X, bf16, 0)             \
  CMP_FLOAT(X, f16x2, 1) CMP_FLOAT(X, bf16x2, 1)

COMPARISONS(SETP_DEF)
static const LaneFn setp_fns[] = {
#define X(op, T, packed, e) setp_##op##_##T,
    COMPARISONS(X)
#undef X
};
typedef struct SetpRow {
  const char *key; // "lt.f32"
  uint8_t width;
} SetpRow;
static const SetpRow setp_rows[] = {
#define X(op, T, packed, e) {#op "." #T, ST(T)},
    COMPARISONS(X)
#undef X
};

// set: the mask of the comparison, spread into values.  Packed sources compare both halves.
static void set_spread(LANE_ARGS) {
  static const uint32_t truth[] = {~0u, 0x3F800000u, 0xFFFFu, 0x3C00u, 0x3F80u, 0x3C00u, 0x3F80u,
                                   0xFFFFu};
  unsigned kind = imm >> SET_KIND_SHIFT & 15;
  LaneFn compare = setp_fns[imm >> SET_FN_SHIFT];
  OUT(uint32_t);
  uint32_t lo = 0, hi = 0, value = truth[kind];
  compare(&lo, A, B, C, E, imm & ~(uint64_t)LANE_SECOND);
  if (kind >= SET_F16X2) compare(&hi, A, B, C, E, imm | LANE_SECOND);
  for (int i = 0; i < LANES; i++) {
    uint32_t high = (hi & lane_bit[i]) ? value << 16 : 0;
    d[i] = ((lo & lane_bit[i]) ? value : 0) | high;
  }
}

#define TESTPS(X)                                                                                  \
  X(finite, TP_FINITE) X(infinite, TP_INFINITE) X(number, TP_NUMBER)                               \
  X(notanumber, TP_NOTANUMBER) X(normal, TP_NORMAL) X(subnormal, TP_SUBNORMAL)
TESTPS(TESTP_DEF)
