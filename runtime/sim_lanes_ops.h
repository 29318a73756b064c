// The integer, logic and move forms: one row each.  Included twice by sim_lanes.c, once to define
// the functions and once to list them.
//   OPn(key, function, T, types of d, a, b, ..., value of d in terms of x, y, z, v)
#define I1(key, id, T, e) OP1(key "." #T, id##_##T, T, T, T, e)
#define I2(key, id, T, e) OP2(key "." #T, id##_##T, T, T, T, T, e)
#define I3(key, id, T, e) OP3(key "." #T, id##_##T, T, T, T, T, T, e)
#define SHIFT(key, id, T, e) OP2(key "." #T, id##_##T, T, T, T, u32, e)
#define UNS(R, key, id, e) R(key, id, u16, e) R(key, id, u32, e) R(key, id, u64, e)
#define SGN(R, key, id, e) R(key, id, s16, e) R(key, id, s32, e) R(key, id, s64, e)
#define BTS(R, key, id, e) R(key, id, b16, e) R(key, id, b32, e) R(key, id, b64, e)
#define ANY(R, key, id, e) UNS(R, key, id, e) SGN(R, key, id, e)

ANY(I2, "add", add, (Arith)x + (Arith)y)
ANY(I2, "sub", sub, (Arith)x - (Arith)y)
I2("add.sat", add_sat, s32, sat_s32((int64_t)x + y))
I2("sub.sat", sub_sat, s32, sat_s32((int64_t)x - y))
ANY(I2, "mul.lo", mul_lo, (Arith)x * (Arith)y)
ANY(I2, "mul.hi", mul_hi, ((W)x * (W)y) >> BITS)
ANY(I3, "mad.lo", mad_lo, (Arith)x * (Arith)y + (Arith)z)
ANY(I3, "mad.hi", mad_hi, (Arith)(((W)x * (W)y) >> BITS) + (Arith)z)
I3("mad.hi.sat", mad_hi_sat, s32, sat_s32((((int64_t)x * y) >> 32) + z))
OP2("mul.wide.u16", mul_wide_u16, u16, u32, u16, u16, (W)x * (W)y)
OP2("mul.wide.s16", mul_wide_s16, s16, s32, s16, s16, (W)x * (W)y)
OP2("mul.wide.u32", mul_wide_u32, u32, u64, u32, u32, (W)x * (W)y)
OP2("mul.wide.s32", mul_wide_s32, s32, s64, s32, s32, (W)x * (W)y)
OP3("mad.wide.u16", mad_wide_u16, u16, u32, u16, u16, u32, (uint32_t)((W)x * (W)y) + z)
OP3("mad.wide.s16", mad_wide_s16, s16, s32, s16, s16, s32, (uint32_t)((W)x * (W)y) + (uint32_t)z)
OP3("mad.wide.u32", mad_wide_u32, u32, u64, u32, u32, u64, (uint64_t)((W)x * (W)y) + z)
OP3("mad.wide.s32", mad_wide_s32, s32, s64, s32, s32, s64, (uint64_t)((W)x * (W)y) + (uint64_t)z)
I2("mul24.lo", mul24_lo, u32, mul24_u32(x, y))
I2("mul24.lo", mul24_lo, s32, mul24_s32(x, y))
I2("mul24.hi", mul24_hi, u32, mul24_u32(x, y) >> 16)
I2("mul24.hi", mul24_hi, s32, mul24_s32(x, y) >> 16)
I3("mad24.lo", mad24_lo, u32, mul24_u32(x, y) + z)
I3("mad24.lo", mad24_lo, s32, (uint64_t)mul24_s32(x, y) + (uint64_t)z)
I3("mad24.hi", mad24_hi, u32, (mul24_u32(x, y) >> 16) + z)
I3("mad24.hi", mad24_hi, s32, (uint64_t)(mul24_s32(x, y) >> 16) + (uint64_t)z)
ANY(I3, "sad", sad, (Arith)z + (x < y ? (Arith)y - (Arith)x : (Arith)x - (Arith)y))
// x / 0 is all ones and x % 0 is x, as the hardware's division sequence gives.
UNS(I2, "div", div, y == 0 ? (Arith)-1 : (Arith)x / (Arith)y)
UNS(I2, "rem", rem, y == 0 ? (Arith)x : (Arith)x % (Arith)y)
SGN(I2, "div", div, y == 0 ? (Arith)-1 : y == -1 ? 0 - (Arith)x : (Arith)(x / y))
SGN(I2, "rem", rem, y == 0 ? (Arith)x : y == -1 ? 0 : (Arith)(x % y))
SGN(I1, "abs", abs, x < 0 ? 0 - (Arith)x : (Arith)x)
SGN(I1, "neg", neg, 0 - (Arith)x)
ANY(I2, "min", min, x < y ? x : y)
ANY(I2, "max", max, x > y ? x : y)

BTS(I2, "and", and, x & y)
BTS(I2, "or", or, x | y)
BTS(I2, "xor", xor, x ^ y)
BTS(I1, "not", not, ~x)
BTS(I1, "cnot", cnot, x == 0)
// Amounts at or above the width shift everything out.
BTS(SHIFT, "shl", shl, y >= BITS ? 0 : (Arith)x << (y & (BITS - 1)))
BTS(SHIFT, "shr", shr, y >= BITS ? 0 : (Arith)x >> (y & (BITS - 1)))
UNS(SHIFT, "shr", shr, y >= BITS ? 0 : (Arith)x >> (y & (BITS - 1)))
SGN(SHIFT, "shr", shr, x >> (y >= BITS ? BITS - 1 : (int)y))
OP3("shf.l.clamp.b32", shf_l_clamp, b32, b32, b32, b32, u32,
    (((uint64_t)y << 32 | x) << clamp32(z)) >> 32)
OP3("shf.l.wrap.b32", shf_l_wrap, b32, b32, b32, b32, u32,
    (((uint64_t)y << 32 | x) << (z & 31)) >> 32)
OP3("shf.r.clamp.b32", shf_r_clamp, b32, b32, b32, b32, u32, ((uint64_t)y << 32 | x) >> clamp32(z))
OP3("shf.r.wrap.b32", shf_r_wrap, b32, b32, b32, b32, u32, ((uint64_t)y << 32 | x) >> (z & 31))
OP3("fns.b32", fns_b32, b32, b32, b32, b32, s32, fns(x, y, z))
LOP3("lop3.b32", lop3_b32, lop3(x, y, z, (uint32_t)imm))
OP3("prmt.b32", prmt_index, b32, b32, b32, b32, b32, prmt(x, y, z))
OP3("prmt.b32.f4e", prmt_f4e, b32, b32, b32, b32, b32, PRMT_MODE(0x3210, 0x4321, 0x5432, 0x6543))
OP3("prmt.b32.b4e", prmt_b4e, b32, b32, b32, b32, b32, PRMT_MODE(0x5670, 0x6701, 0x7012, 0x0123))
OP3("prmt.b32.rc8", prmt_rc8, b32, b32, b32, b32, b32, PRMT_MODE(0x0000, 0x1111, 0x2222, 0x3333))
OP3("prmt.b32.ecl", prmt_ecl, b32, b32, b32, b32, b32, PRMT_MODE(0x3210, 0x3211, 0x3222, 0x3333))
OP3("prmt.b32.ecr", prmt_ecr, b32, b32, b32, b32, b32, PRMT_MODE(0x0000, 0x1110, 0x2210, 0x3210))
OP3("prmt.b32.rc16", prmt_rc16, b32, b32, b32, b32, b32, PRMT_MODE(0x1010, 0x3232, 0x1010, 0x3232))

OP1("popc.b32", popc_b32, b32, u32, b32, (uint32_t)__builtin_popcount(x))
OP1("popc.b64", popc_b64, b64, u32, b64, (uint32_t)__builtin_popcountll(x))
OP1("clz.b32", clz_b32, b32, u32, b32, clz32(x))
OP1("clz.b64", clz_b64, b64, u32, b64, clz64(x))
OP1("brev.b32", brev_b32, b32, b32, b32, brev32(x))
OP1("brev.b64", brev_b64, b64, b64, b64, brev64(x))
OP1("bfind.u32", bfind_u32, u32, u32, u32, bfind64(x))
OP1("bfind.s32", bfind_s32, s32, u32, s32, bfind64((uint32_t)(x < 0 ? ~x : x)))
OP1("bfind.u64", bfind_u64, u64, u32, u64, bfind64(x))
OP1("bfind.s64", bfind_s64, s64, u32, s64, bfind64((uint64_t)(x < 0 ? ~x : x)))
// The shift that brings the found bit to the top.
OP1("bfind.shiftamt.u32", bfinds_u32, u32, u32, u32, x ? clz32(x) : ~0u)
OP1("bfind.shiftamt.s32", bfinds_s32, s32, u32, s32,
    (x ^ (x >> 31)) ? clz32((uint32_t)(x ^ (x >> 31))) : ~0u)
OP1("bfind.shiftamt.u64", bfinds_u64, u64, u32, u64, x ? clz64(x) : ~0u)
OP1("bfind.shiftamt.s64", bfinds_s64, s64, u32, s64,
    (x ^ (x >> 63)) ? clz64((uint64_t)(x ^ (x >> 63))) : ~0u)
// Position and length are the low 8 bits of their registers.
OP3("bfe.u32", bfe_u32, u32, u32, u32, u32, u32, bfe_u(x, y & 0xFF, z & 0xFF))
OP3("bfe.u64", bfe_u64, u64, u64, u64, u32, u32, bfe_u(x, y & 0xFF, z & 0xFF))
OP3("bfe.s32", bfe_s32, s32, s32, s32, u32, u32, bfe_s(x, y & 0xFF, z & 0xFF))
OP3("bfe.s64", bfe_s64, s64, s64, s64, u32, u32, bfe_s(x, y & 0xFF, z & 0xFF))
OP4("bfi.b32", bfi_b32, b32, b32, b32, b32, u32, u32, bfi_u(x, y, z & 0xFF, v & 0xFF))
OP4("bfi.b64", bfi_b64, b64, b64, b64, b64, u32, u32, bfi_u(x, y, z & 0xFF, v & 0xFF))
I2("bmsk.clamp", bmsk_clamp, b32, bmsk(clamp32(x), clamp32(y)))
I2("bmsk.wrap", bmsk_wrap, b32, bmsk(x & 31, y & 31))
OP2("szext.clamp.u32", szext_clamp_u32, u32, u32, u32, u32, zext_from(x, clamp32(y)))
OP2("szext.wrap.u32", szext_wrap_u32, u32, u32, u32, u32, zext_from(x, y & 31))
OP2("szext.clamp.s32", szext_clamp_s32, u32, u32, u32, u32, sext_from(x, clamp32(y)))
OP2("szext.wrap.s32", szext_wrap_s32, u32, u32, u32, u32, sext_from(x, y & 31))
OP3("dp4a.u32.u32", dp4a_uu, b32, b32, b32, b32, b32, DP4A(uint8_t, uint8_t))
OP3("dp4a.u32.s32", dp4a_us, b32, b32, b32, b32, b32, DP4A(uint8_t, int8_t))
OP3("dp4a.s32.u32", dp4a_su, b32, b32, b32, b32, b32, DP4A(int8_t, uint8_t))
OP3("dp4a.s32.s32", dp4a_ss, b32, b32, b32, b32, b32, DP4A(int8_t, int8_t))

// Two bytes of b (its low or high half) with the two halves of a.
#define DP2A(half, shift, a, b, TA, TB)                                                            \
  OP3("dp2a." #half "." #a "." #b, dp2a_##half##_##a##b, b32, b32, b32, b32, b32,                  \
      z + (uint32_t)((int32_t)(TA)x * (TB)(y >> (shift)) +                                         \
                     (int32_t)(TA)(x >> 16) * (TB)(y >> ((shift) + 8))))
#define DP2AS(half, shift)                                                                         \
  DP2A(half, shift, u32, u32, uint16_t, uint8_t) DP2A(half, shift, u32, s32, uint16_t, int8_t)     \
  DP2A(half, shift, s32, u32, int16_t, uint8_t) DP2A(half, shift, s32, s32, int16_t, int8_t)
DP2AS(lo, 0) DP2AS(hi, 16)

// Both halves at once.
#define HALVES2(lo, hi) ((uint32_t)(hi) << 16 | ((uint32_t)(lo) & 0xFFFFu))
#define PICK(op, T, x, y) ((T)(x) op (T)(y) ? (T)(x) : (T)(y))
#define RELU(v) ((v) < 0 ? 0 : (v))
#define PICK2(key, id, op, T)                                                                      \
  OP2(key, id, b32, b32, b32, b32, HALVES2(PICK(op, T, x, y), PICK(op, T, x >> 16, y >> 16)))
OP2("add.u16x2", add_u16x2, b32, b32, b32, b32, HALVES2(x + y, (x >> 16) + (y >> 16)))
OP2("add.s16x2", add_s16x2, b32, b32, b32, b32, HALVES2(x + y, (x >> 16) + (y >> 16)))
PICK2("min.u16x2", min_u16x2, <, uint16_t) PICK2("max.u16x2", max_u16x2, >, uint16_t)
PICK2("min.s16x2", min_s16x2, <, int16_t) PICK2("max.s16x2", max_s16x2, >, int16_t)
OP2("min.relu.s16x2", min_relu_s16x2, b32, b32, b32, b32,
    HALVES2(RELU(PICK(<, int16_t, x, y)), RELU(PICK(<, int16_t, x >> 16, y >> 16))))
OP2("max.relu.s16x2", max_relu_s16x2, b32, b32, b32, b32,
    HALVES2(RELU(PICK(>, int16_t, x, y)), RELU(PICK(>, int16_t, x >> 16, y >> 16))))
I2("min.relu", min_relu, s32, RELU(PICK(<, int32_t, x, y)))
I2("max.relu", max_relu, s32, RELU(PICK(>, int32_t, x, y)))

// Conversions of integers whose registers are just as wide as the types; others: sim_lanes_cvt.h.
#define WIDTHS(DT, AT) OP1("cvt." #DT "." #AT, cvt_##DT##_##AT, AT, DT, AT, x)
WIDTHS(u64, u32) WIDTHS(s64, s32) WIDTHS(u64, s32) WIDTHS(s64, u32)
WIDTHS(u32, u64) WIDTHS(s32, s64) WIDTHS(u32, s64) WIDTHS(s32, u64)
WIDTHS(u32, u16) WIDTHS(s32, s16) WIDTHS(u32, s16) WIDTHS(s32, u16)
WIDTHS(u16, u32) WIDTHS(s16, s32) WIDTHS(u64, u16) WIDTHS(s64, s16)
WIDTHS(u32, s32) WIDTHS(s32, u32)

#define MOV(T, S) OP1("mov." #T, mov_##T, S, S, S, x)
MOV(b16, u32) MOV(u16, u32) MOV(s16, u32) MOV(b32, u32) MOV(u32, u32) MOV(s32, u32) MOV(f32, u32)
MOV(b64, u64) MOV(u64, u64) MOV(s64, u64) MOV(f64, u64)

SELECT(b16) SELECT(u16) SELECT(s16) SELECT(b32) SELECT(u32) SELECT(s32) SELECT(f32)
SELECT(b64) SELECT(u64) SELECT(s64) SELECT(f64)

CARRY("addc", addc, u32, 0, 0) CARRY("addc", addc, u64, 0, 0)
CARRY("madc.lo", madc_lo, u32, 1, (Arith)x * (Arith)y)
CARRY("madc.lo", madc_lo, u64, 1, (Arith)x * (Arith)y)
CARRY("madc.hi", madc_hi, u32, 1, ((W)x * (W)y) >> BITS)
CARRY("madc.hi", madc_hi, u64, 1, ((W)x * (W)y) >> BITS)
CARRY("madc.hi", madc_hi, s32, 1, ((W)x * (W)y) >> BITS)
CARRY("madc.hi", madc_hi, s64, 1, ((W)x * (W)y) >> BITS)

#undef I1
#undef I2
#undef I3
#undef SHIFT
#undef UNS
#undef SGN
#undef BTS
#undef ANY
#undef WIDTHS
#undef DP2A
#undef DP2AS
#undef HALVES2
#undef PICK
#undef PICK2
#undef RELU
#undef MOV
