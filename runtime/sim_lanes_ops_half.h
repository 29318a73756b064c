// The f16, f16x2, bf16 and bf16x2 forms: one row each, four functions a row.  Included twice.
//   HOP(key, function, n operands, flops, value)   HRAW_OP: bits to bits
#define HALVES(R, key, id, n, flops, e) R(key, id, f16, n, flops, e) R(key, id, bf16, n, flops, e)
HALVES(HOP, "add", add, 2, 1, sum_to_odd(x, y))
HALVES(HOP, "sub", sub, 2, 1, sum_to_odd(x, -y))
HALVES(HOP, "mul", mul, 2, 1, x *y)
HALVES(HOP, "fma", fma, 3, 2, sum_to_odd(x *y, z))
HALVES(HOP, "ex2.approx", ex2, 1, 0, (double)ex2_f32((float)x))
HALVES(HOP, "tanh.approx", tanh, 1, 0, (double)tanh_f32((float)x))
HROP("abs", abs, f16, 1, 0, pre_f16(x, imm) & 0x7FFFu)
HROP("abs", abs, bf16, 1, 0, x & 0x7FFFu)
HROP("neg", neg, f16, 1, 0, pre_f16(x, imm) ^ 0x8000u)
HROP("neg", neg, bf16, 1, 0, x ^ 0x8000u)
HROP("min", min, f16, 2, 0, minmax_f16(x, y, false, imm))
HROP("max", max, f16, 2, 0, minmax_f16(x, y, true, imm))
HROP("min", min, bf16, 2, 0, minmax_bf16(x, y, false, imm))
HROP("max", max, bf16, 2, 0, minmax_bf16(x, y, true, imm))
#undef HALVES
