// The f32 and f64 forms: one row each.  Included twice by sim_lanes.c.
//   FOPn(key, function, T, flops, value)   through flush, rounding, saturation, canonical NaN
//   ROPn(key, function, T, flops, bits)    bits to bits; imm holds the modifiers
#define FF2(key, id, flops, e)                                                                     \
  FOP2(key ".f32", id##_f32, f32, flops, e) FOP2(key ".f64", id##_f64, f64, flops, e)
FF2("add", add, 1, x + y)
FF2("sub", sub, 1, x - y)
FF2("mul", mul, 1, x * y)
FF2("div", div, 1, x / y)
FOP3("fma.f32", fma_f32, f32, 2, __builtin_fmaf(x, y, z))
FOP3("fma.f64", fma_f64, f64, 2, __builtin_fma(x, y, z))
FOP3("mad.f32", mad_f32, f32, 2, __builtin_fmaf(x, y, z))
FOP3("mad.f64", mad_f64, f64, 2, __builtin_fma(x, y, z))
FOP1("rcp.f32", rcp_f32, f32, 1, 1.0f / x)
FOP1("rcp.f64", rcp_f64, f64, 1, 1.0 / x)
FOP1("sqrt.f32", sqrt_f32, f32, 1, __builtin_sqrtf(x))
FOP1("sqrt.f64", sqrt_f64, f64, 1, __builtin_sqrt(x))

FOP2("div.approx.f32", div_approx_f32, f32, 1, div_approx(x, y))
FOP2("div.full.f32", div_full_f32, f32, 1, x / y)
FOP1("rcp.approx.f32", rcp_approx_f32, f32, 0, 1.0f / x)
FOP1("rcp.approx.f64", rcp_approx_f64, f64, 0, high_word(1.0 / high_word(x)))
FOP1("sqrt.approx.f32", sqrt_approx_f32, f32, 0, __builtin_sqrtf(x))
FOP1("rsqrt.approx.f32", rsqrt_approx_f32, f32, 0, rsqrt_f32(x))
FOP1("rsqrt.approx.f64", rsqrt_approx_f64, f64, 0,
    (imm & M_FTZ) ? high_word(1.0 / __builtin_sqrt(high_word(x))) : 1.0 / __builtin_sqrt(x))
FOP1("sin.approx.f32", sin_approx, f32, 0, sin_f32(x))
FOP1("cos.approx.f32", cos_approx, f32, 0, cos_f32(x))
FOP1("lg2.approx.f32", lg2_approx, f32, 0, lg2_f32(x))
FOP1("ex2.approx.f32", ex2_approx, f32, 0, ex2_f32(x))
FOP1("tanh.approx.f32", tanh_approx, f32, 0, tanh_f32(x))

ROP1("abs.f32", abs_f32, f32, 0, pre32(x, imm) & 0x7FFFFFFFu)
ROP1("abs.f64", abs_f64, f64, 0, x & ~(1ull << 63))
ROP1("neg.f32", neg_f32, f32, 0, pre32(x, imm) ^ 0x80000000u)
ROP1("neg.f64", neg_f64, f64, 0, x ^ (1ull << 63))
ROP2("min.f32", min_f32, f32, 0, minmax32(x, y, false, imm, 0x7F800000u, NAN_F32))
ROP2("max.f32", max_f32, f32, 0, minmax32(x, y, true, imm, 0x7F800000u, NAN_F32))
ROP2("min.f64", min_f64, f64, 0, minmax64(x, y, false))
ROP2("max.f64", max_f64, f64, 0, minmax64(x, y, true))
// The sign of a on the magnitude of b.
ROP2("copysign.f32", copysign_f32, f32, 0, (x & 0x80000000u) | (y & 0x7FFFFFFFu))
ROP2("copysign.f64", copysign_f64, f64, 0, (x & (1ull << 63)) | (y & ~(1ull << 63)))

// Conversions; 16-bit types stand as bits.
OP1("cvt.f32.f16", cvt_f32_f16, f16, u32, u32, cvt_widen(f16_value(x)))
OP1("cvt.f32.bf16", cvt_f32_bf16, bf16, u32, u32, x << 16)
OP1("cvt.rn.f16.f32", cvt_f16_f32, f32, u32, f32, f16_of_f32(x))
OP1("cvt.rn.bf16.f32", cvt_bf16_f32, f32, u32, f32, bf16_of_f32(x))
OP2("cvt.rn.f16x2.f32", cvt_f16x2_f32, f32, u32, f32, f32, f16_of_f32(x) << 16 | f16_of_f32(y))
OP2("cvt.rn.bf16x2.f32", cvt_bf16x2_f32, f32, u32, f32, f32, bf16_of_f32(x) << 16 | bf16_of_f32(y))
#define FROM_FP8(F)                                                                                \
  OP1("cvt.rn.f16x2." #F "x2", cvt_f16x2_##F, b16, u32, b16,                                       \
      f16_of_##F((uint32_t)x >> 8) << 16 | f16_of_##F(x & 0xFFu))
#define TO_FP8(F)                                                                                  \
  OP2("cvt.rn.satfinite." #F "x2.f32", cvt_##F##x2_f32, f32, u32, f32, f32,                        \
      F##_of_f32(x) << 8 | F##_of_f32(y))
FROM_FP8(e4m3) FROM_FP8(e5m2) TO_FP8(e4m3) TO_FP8(e5m2)
#undef FROM_FP8
#undef TO_FP8
OP1("cvt.rn.f32.s32", cvt_f32_s32, s32, u32, s32, f32_bits((float)x))
OP1("cvt.rn.f32.u32", cvt_f32_u32, u32, u32, u32, f32_bits((float)x))
OP1("cvt.rn.f64.s32", cvt_rn_f64_s32, s32, u64, s32, f64_bits((double)x))
OP1("cvt.rn.f64.u32", cvt_rn_f64_u32, u32, u64, u32, f64_bits((double)x))
OP1("cvt.f64.f32", cvt_f64_f32, f32, u64, f32, fin64((double)x, 0))
OP1("cvt.rn.f32.f64", cvt_f32_f64, f64, u32, f64, fin32((float)x, 0))
#define CVT_F32_F32(mod, id, e) OP1("cvt." #mod ".f32.f32", id, f32, u32, f32, fin32(e, 0))
CVT_F32_F32(rni, cvt_rni_f32, __builtin_rintf(x))
CVT_F32_F32(rzi, cvt_rzi_f32, __builtin_truncf(x))
CVT_F32_F32(rmi, cvt_rmi_f32, __builtin_floorf(x))
CVT_F32_F32(rpi, cvt_rpi_f32, __builtin_ceilf(x))
OP1("cvt.rni.s32.f32", cvt_rni_s32_f32, f32, s32, f32, s32_of_f32(__builtin_rintf(x)))
OP1("cvt.rzi.s32.f32", cvt_rzi_s32_f32, f32, s32, f32, s32_of_f32(x))
OP1("cvt.rmi.s32.f32", cvt_rmi_s32_f32, f32, s32, f32, s32_of_f32(__builtin_floorf(x)))
OP1("cvt.rpi.s32.f32", cvt_rpi_s32_f32, f32, s32, f32, s32_of_f32(__builtin_ceilf(x)))
#undef CVT_F32_F32
#undef FF2
