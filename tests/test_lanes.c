// Known answers of the lane functions: the places where one goes wrong.
#include "dtype.h"
#include "lanes_util.h"

#define P1 " %p1,%p2;"
#define H1 " %h1,%h2;"
#define H2 " %h1,%h2,%h3;"
#define H3 " %h1,%h2,%h3,%h4;"
#define R1 " %r1,%r2;"
#define R2 " %r1,%r2,%r3;"
#define R3 " %r1,%r2,%r3,%r4;"
#define R4 " %r1,%r2,%r3,%r4,%r5;"
#define D1 " %d1,%d2;"
#define D2 " %d1,%d2,%d3;"
#define D3 " %d1,%d2,%d3,%d4;"

#define F1 0x3F800000u   // 1.0
#define F_INF 0x7F800000u
#define F_NAN 0x7FFFFFFFu
#define NEG 0x80000000u
#define SNAN 0x7F800001u
#define D_1 0x3FF0000000000000u
#define D_INF 0x7FF0000000000000u
#define I_MIN 0x80000000u
#define L_MIN 0x8000000000000000u

typedef struct Case {
  const char *inst;
  uint64_t in[4], want;
} Case;

static void check_all(const Case *cases, size_t n) {
  Arena *a = arena_new();
  for (int s = 0; s < NLANE_SETS; s++) {
    const LaneIsa *isa = lane_isa(lane_sets[s]);
    if (!isa) continue;
    for (size_t i = 0; i < n; i++) {
      const Case *c = &cases[i];
      LaneOp op;
      const PtxInst *in = lanes_parse(a, arena_printf(a, "%s\n", c->inst), NULL);
      if (!in) fail_msg("%s does not parse", c->inst);
      if (!isa->find(in, &op)) fail_msg("%s: %s has no function", isa->name, c->inst);
      Operand src[4], d;
      memset(&d, 0xA5, sizeof d);
      for (int k = 0; k < 4; k++)
        for (int lane = 0; lane < 32; lane++) lane_put(&src[k], op.width[k + 1], lane, c->in[k]);
      lanes_call(&op, &d, src, op.imm);
      for (int lane = 0; lane < 32; lane++) {
        uint64_t got = lane_get(&d, op.width[0], lane);
        if (got != c->want)
          fail_msg("%s: %s (%llx, %llx, %llx, %llx) lane %d: %llx, expected %llx", isa->name,
                   c->inst, (unsigned long long)c->in[0], (unsigned long long)c->in[1],
                   (unsigned long long)c->in[2], (unsigned long long)c->in[3], lane,
                   (unsigned long long)got, (unsigned long long)c->want);
      }
    }
  }
  arena_free(a);
}
#define CHECK(cases) check_all(cases, sizeof cases / sizeof *cases)

static void integers(void **state) {
  (void)state;
  static const Case cases[] = {
      {"add.u16" H2, {0xFFFF, 2}, 1},
      {"add.sat.s32" R2, {0x7FFFFFFF, 1}, 0x7FFFFFFF},
      {"sub.sat.s32" R2, {I_MIN, 1}, I_MIN},
      {"sub.s64" D2, {0, 1}, ~0ull},
      {"mul.lo.u16" H2, {0xFFFF, 0xFFFF}, 1},
      {"mul.hi.s16" H2, {0x8000, 0x8000}, 0x4000},
      {"mul.hi.u16" H2, {0xFFFF, 0xFFFF}, 0xFFFE},
      {"mul.hi.s32" R2, {0xFFFFFFFF, 2}, 0xFFFFFFFF},
      {"mul.hi.u32" R2, {0xFFFFFFFF, 2}, 1},
      {"mul.hi.u64" D2, {~0ull, ~0ull}, ~0ull - 1},
      {"mul.hi.s64" D2, {L_MIN, L_MIN}, 1ull << 62},
      {"mul.wide.s32 %d1,%r2,%r3;", {0xFFFFFFFF, 3}, (uint64_t)-3},
      {"mul.wide.u32 %d1,%r2,%r3;", {0xFFFFFFFF, 3}, 0x2FFFFFFFDull},
      {"mul.wide.s16 %r1,%h2,%h3;", {0x8000, 0x8000}, 0x40000000},
      {"mad.wide.s32 %d1,%r2,%r3,%d4;", {0xFFFFFFFF, 1, 1}, 0},
      {"mad.lo.s32" R3, {0x10000, 0x10000, 7}, 7},
      {"mad.hi.u32" R3, {I_MIN, 4, 5}, 7},
      {"mad.hi.sat.s32" R3, {0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF}, 0x7FFFFFFF},
      {"mul24.lo.s32" R2, {0xFFFFFF, 2}, 0xFFFFFFFE},
      {"mul24.hi.u32" R2, {0xFFFFFF, 0xFFFFFF}, 0xFFFFFE00},
      {"sad.s32" R3, {0xFFFFFFFF, 1, 10}, 12},
      {"sad.u32" R3, {0xFFFFFFFF, 1, 10}, 8},
      {"div.u32" R2, {7, 0}, 0xFFFFFFFF},
      {"div.s32" R2, {I_MIN, 0xFFFFFFFF}, I_MIN},
      {"div.s32" R2, {0xFFFFFFF9, 2}, 0xFFFFFFFD}, // -7 / 2 = -3
      {"rem.s32" R2, {0xFFFFFFF9, 2}, 0xFFFFFFFF}, // -7 % 2 = -1
      {"rem.s32" R2, {I_MIN, 0xFFFFFFFF}, 0},
      {"div.s64" D2, {L_MIN, ~0ull}, L_MIN},
      {"div.u16" H2, {9, 0}, 0xFFFF},
      {"abs.s32" R1, {I_MIN}, I_MIN},
      {"neg.s16" H1, {0x8000}, 0x8000},
      {"abs.s16" H1, {0xFFFF}, 1},
      {"min.s16" H2, {0xFFFF, 1}, 0xFFFF},
      {"max.u16" H2, {0xFFFF, 1}, 0xFFFF},
      {"max.s64" D2, {L_MIN, 0}, 0},
      {"popc.b64 %r1,%d2;", {0xF00000000000000Full}, 8},
      {"clz.b32" R1, {0}, 32},
      {"clz.b64 %r1,%d2;", {1}, 63},
      {"brev.b32" R1, {1}, 0x80000000},
      {"brev.b64" D1, {2}, 1ull << 62},
      {"bfind.u32" R1, {0}, 0xFFFFFFFF},
      {"bfind.s32" R1, {0xFFFFFFFF}, 0xFFFFFFFF},
      {"bfind.s32" R1, {I_MIN}, 30},
      {"bfind.shiftamt.u32" R1, {1}, 31},
      {"bfind.shiftamt.s32" R1, {0xFFFFFFFE}, 31},
      {"bfind.s64 %r1,%d2;", {L_MIN}, 62},
  };
  CHECK(cases);
}

static void bits(void **state) {
  (void)state;
  static const Case cases[] = {
      {"shl.b32" R2, {1, 32}, 0},
      {"shl.b32" R2, {1, 0xFFFFFFFF}, 0},
      {"shl.b16 %h1,%h2,%r3;", {0x8001, 1}, 2},
      {"shl.b64 %d1,%d2,%r3;", {1, 64}, 0},
      {"shr.u32" R2, {I_MIN, 33}, 0},
      {"shr.s32" R2, {I_MIN, 33}, 0xFFFFFFFF},
      {"shr.s16 %h1,%h2,%r3;", {0x8000, 15}, 0xFFFF},
      {"shr.b32" R2, {I_MIN, 31}, 1},
      {"shr.s64 %d1,%d2,%r3;", {L_MIN, 1000}, ~0ull},
      {"shf.l.wrap.b32" R3, {0x80000001, 0x12345678, 33}, 0x2468ACF1},
      {"shf.l.clamp.b32" R3, {0x11111111, 0x22222222, 40}, 0x11111111},
      {"shf.r.clamp.b32" R3, {0x11111111, 0x22222222, 32}, 0x22222222},
      {"shf.r.wrap.b32" R3, {0x11111111, 0x22222222, 32}, 0x11111111},
      {"bfe.u32" R3, {0xFFFFFFFF, 32, 8}, 0},
      {"bfe.u32" R3, {0xFFFFFFFF, 28, 8}, 0xF},
      {"bfe.s32" R3, {I_MIN, 32, 1}, 0xFFFFFFFF},
      {"bfe.s32" R3, {I_MIN, 0, 0}, 0},
      {"bfe.s32" R3, {0x00000080, 0, 8}, 0xFFFFFF80},
      {"bfe.s32" R3, {I_MIN, 28, 16}, 0xFFFFFFF8},
      {"bfe.u32" R3, {0x12345678, 0x104, 0x108}, 0x67}, // only 8 bits of position and length
      {"bfe.s64 %d1,%d2,%r3,%r4;", {0x80ull << 32, 32, 8}, 0xFFFFFFFFFFFFFF80ull},
      {"bfe.u64 %d1,%d2,%r3,%r4;", {~0ull, 60, 64}, 0xF},
      {"bfi.b32" R4, {0xFF, 0, 28, 8}, 0xF0000000},
      {"bfi.b32" R4, {0xFF, 0x12345678, 32, 8}, 0x12345678},
      {"bfi.b32" R4, {0xFF, 0x12345678, 4, 0}, 0x12345678},
      {"bfi.b64 %d1,%d2,%d3,%r4,%r5;", {1, 0, 63, 5}, L_MIN},
      {"bmsk.clamp.b32" R2, {0, 32}, 0xFFFFFFFF},
      {"bmsk.clamp.b32" R2, {30, 9}, 0xC0000000},
      {"bmsk.clamp.b32" R2, {40, 3}, 0},
      {"bmsk.wrap.b32" R2, {33, 33}, 2},
      {"szext.clamp.s32" R2, {0x80, 8}, 0xFFFFFF80},
      {"szext.clamp.u32" R2, {0xFFFFFFFF, 40}, 0xFFFFFFFF},
      {"szext.wrap.s32" R2, {0xFFFFFFFF, 32}, 0},
      {"lop3.b32 %r1,%r2,%r3,%r4,0x96;", {0xF0, 0xCC, 0xAA}, 0x96},
      {"lop3.b32 %r1,%r2,%r3,%r4,0x2A;", {0xF0, 0xCC, 0xAA}, 0x2A},
      {"prmt.b32" R3, {0x33221100, 0x77665544, 0x7531}, 0x77553311},
      {"prmt.b32" R3, {0x00008000, 0, 0xFFF9}, 0x000000FF}, // bit 3: the byte's sign
      {"prmt.b32.f4e" R3, {0x33221100, 0x77665544, 1}, 0x44332211},
      {"prmt.b32.b4e" R3, {0x33221100, 0x77665544, 0}, 0x55667700},
      {"prmt.b32.rc8" R3, {0x33221100, 0x77665544, 2}, 0x22222222},
      {"prmt.b32.ecl" R3, {0x33221100, 0x77665544, 1}, 0x33221111},
      {"prmt.b32.ecr" R3, {0x33221100, 0x77665544, 1}, 0x11111100},
      {"prmt.b32.rc16" R3, {0x33221100, 0x77665544, 5}, 0x33223322},
      {"dp4a.s32.u32" R3, {0xFF, 0xFF, 0}, (uint32_t)-255},
      {"dp4a.u32.u32" R3, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, 260099},
      {"dp2a.hi.s32.u32" R3, {0xFFFF0002, 0xFF030000, 1}, (uint32_t)(6 - 255 + 1)},
      {"min.s16x2" R2, {0x80000001, 0x00018000}, 0x80008000},
      {"max.relu.s16x2" R2, {0x80000001, 0xFFFF8000}, 0x00000001},
      {"add.u16x2" R2, {0x0001FFFF, 0x00010001}, 0x00020000}, // no carry between the halves
      {"min.s32" R2, {I_MIN, 1}, I_MIN},
      {"min.relu.s32" R2, {I_MIN, 1}, 0},
      {"cnot.b32" R1, {0}, 1},
      {"cnot.b16" H1, {7}, 0},
      {"not.b16" H1, {0}, 0xFFFF},
      {"not.pred" P1, {1}, 0},
      {"xor.pred %p1,%p2,%p3;", {1, 1}, 0},
  };
  CHECK(cases);
}

static void floats(void **state) {
  (void)state;
  static const Case cases[] = {
      {"add.f32" R2, {SNAN, F1}, F_NAN}, // payloads are not kept
      {"add.f32" R2, {F_INF, F_INF | NEG}, F_NAN},
      {"add.f32" R2, {NEG, 0}, 0},
      {"add.rm.f32" R2, {F1, F1 | NEG}, NEG},
      {"add.rn.f32" R2, {0x4B800000, F1}, 0x4B800000}, // 2^24 + 1: the tie goes to even
      {"add.rp.f32" R2, {0x4B800000, F1}, 0x4B800001},
      {"add.rz.f32" R2, {0xCB800000, 0xBF800000}, 0xCB800000},
      {"add.rm.f32" R2, {0xCB800000, 0xBF800000}, 0xCB800001},
      {"add.f32" R2, {1, 1}, 2}, // subnormals are kept ...
      {"add.ftz.f32" R2, {1, 1}, 0}, // ... unless .ftz
      {"add.ftz.f32" R2, {0x00800001, 0x80800000}, 0},
      {"mul.ftz.f32" R2, {0x80800000, 0x3F000000}, NEG}, // a zero result keeps its sign
      {"mul.f32" R2, {0x7F7FFFFF, 0x40000000}, F_INF},
      {"mul.rz.f32" R2, {0x7F7FFFFF, 0x40000000}, 0x7F7FFFFF},
      {"mul.rm.f32" R2, {0xFF7FFFFF, 0x40000000}, 0xFF800000},
      {"mul.f32" R2, {0, F_INF}, F_NAN},
      {"add.sat.f32" R2, {F_INF, F_INF | NEG}, 0}, // NaN saturates to +0
      {"add.sat.f32" R2, {0xBF800000, 0}, 0},
      {"add.sat.f32" R2, {F1, F1}, F1},
      // One rounding: (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24, lost when the product is rounded first.
      {"fma.rn.f32" R3, {0x3F800800, 0x3F800800, 0xBF801000}, 0x33800000},
      {"fma.rz.f32" R3, {F1, F1, 1}, F1},
      {"fma.rp.f32" R3, {F1, F1, 1}, 0x3F800001},
      {"fma.rm.f32" R3, {F1, F1, 0x80000001}, 0x3F7FFFFF},
      {"fma.rn.ftz.f32" R3, {1, F1, F1}, F1},
      {"mad.rn.f32" R3, {0x3F800800, 0x3F800800, 0xBF801000}, 0x33800000},
      {"div.rn.f32" R2, {F1, 0x40400000}, 0x3EAAAAAB},
      {"div.rz.f32" R2, {F1, 0x40400000}, 0x3EAAAAAA},
      {"div.rn.f32" R2, {F1, NEG}, F_INF | NEG},
      {"div.rn.f32" R2, {0, 0}, F_NAN},
      {"div.rn.f32" R2, {0x00800000, 0x40000000}, 0x00400000},
      {"div.rn.ftz.f32" R2, {0x00800000, 0x40000000}, 0},
      {"rcp.rp.f32" R1, {0x40400000}, 0x3EAAAAAB},
      {"rcp.rm.f32" R1, {0x40400000}, 0x3EAAAAAA},
      {"sqrt.rn.f32" R1, {0x40000000}, 0x3FB504F3},
      {"sqrt.rp.f32" R1, {0x40000000}, 0x3FB504F4},
      {"sqrt.rn.f32" R1, {NEG}, NEG},
      {"sqrt.rn.f32" R1, {0xBF800000}, F_NAN},
      {"add.rz.f64" D2, {D_1, 0x3CA0000000000000}, D_1},
      {"add.rp.f64" D2, {D_1, 1}, D_1 + 1},
      {"fma.rm.f64" D3, {D_1, D_1, 0x8000000000000001}, D_1 - 1},
      {"div.rz.f64" D2, {D_1, 0x4008000000000000}, 0x3FD5555555555555},
      {"div.rp.f64" D2, {D_1, 0x4008000000000000}, 0x3FD5555555555556},
      {"sqrt.rm.f64" D1, {0x4000000000000000}, 0x3FF6A09E667F3BCC},
      {"sqrt.rn.f64" D1, {0x4000000000000000}, 0x3FF6A09E667F3BCD},
      {"rcp.rn.f64" D1, {L_MIN}, D_INF | L_MIN},
      {"min.f32" R2, {NEG, 0}, NEG},
      {"max.f32" R2, {NEG, 0}, 0},
      {"max.f32" R2, {0, NEG}, 0},
      {"min.f32" R2, {F_NAN, F1}, F1},
      {"max.f32" R2, {F_INF | NEG, SNAN}, F_INF | NEG},
      {"max.NaN.f32" R2, {F_INF, SNAN}, F_NAN},
      {"max.f32" R2, {SNAN, 0xFFC00000}, F_NAN},
      {"max.ftz.f32" R2, {1, NEG}, 0},
      {"max.xorsign.abs.f32" R2, {0xC0000000, F1}, 0xC0000000},
      {"min.xorsign.abs.f32" R2, {0xC0000000, 0xBF800000}, F1},
      {"min.f64" D2, {L_MIN, 0}, L_MIN},
      {"max.f64" D2, {D_INF + 1, D_1}, D_1},
      {"abs.f32" R1, {0xFF800000}, F_INF},
      {"neg.ftz.f32" R1, {1}, NEG},
      {"copysign.f32" R2, {NEG, F1}, 0xBF800000},
      {"testp.normal.f32 %p1,%r2;", {0}, 1},
      {"testp.normal.f32 %p1,%r2;", {1}, 0},
      {"testp.subnormal.f32 %p1,%r2;", {0}, 0},
      {"testp.notanumber.f32 %p1,%r2;", {SNAN}, 1},
      {"testp.number.f64 %p1,%d2;", {D_INF}, 1},
      {"testp.finite.f64 %p1,%d2;", {D_INF}, 0},
  };
  CHECK(cases);
}

static void halves(void **state) {
  (void)state;
  static const Case cases[] = {
      {"add.f16" H2, {0x3C00, 0x1000}, 0x3C00}, // 1 + 2^-11: the tie goes to even
      {"add.f16" H2, {0x3C01, 0x1000}, 0x3C02},
      {"add.f16" H2, {0x7BFF, 0x4C00}, 0x7C00}, // 65504 + 16 is the tie that overflows
      {"add.f16" H2, {0x7BFF, 0x4BFF}, 0x7BFF},
      {"mul.f16" H2, {0x0001, 0x3800}, 0}, // 2^-25: the subnormal tie goes to even
      {"mul.f16" H2, {0x0003, 0x3800}, 2},
      {"mul.ftz.f16" H2, {0x0400, 0x3800}, 0},
      {"mul.f16" H2, {0x7C00, 0}, 0x7FFF},
      {"sub.f16" H2, {0x8000, 0}, 0x8000},
      {"sub.f16" H2, {0, 0}, 0},
      {"add.sat.f16" H2, {0x3C00, 0x3C00}, 0x3C00},
      {"add.sat.f16" H2, {0x7E00, 0x3C00}, 0},
      // (1+2^-10)(1+2^-10) = 1 + 2^-9 + 2^-20: the last bit decides the fma of a tie.
      {"fma.rn.f16" H3, {0x3C01, 0x3C01, 0x9000}, 0x3C02},
      // 65504 * 65504 - inf and a product far outside f16 that comes back.
      {"fma.rn.f16" H3, {0x7BFF, 0x4000, 0xFBFF}, 0x7BFF},
      {"fma.rn.relu.f16" H3, {0xBC00, 0x3C00, 0}, 0},
      {"fma.rn.relu.f16" H3, {0x7E01, 0x3C00, 0}, 0x7FFF},
      {"fma.rn.f16x2" R3, {0x3C004000, 0x40004000, 0x00003C00}, 0x40004500},
      {"add.bf16" H2, {0x3F80, 0x3B80}, 0x3F80}, // 1 + 2^-8: tie to even
      {"add.bf16" H2, {0x3F81, 0x3B80}, 0x3F82},
      {"mul.bf16" H2, {0x7F7F, 0x4000}, 0x7F80},
      {"add.bf16" H2, {0x0001, 0x0001}, 0x0002},
      // p = 1.00000001b exactly between two bf16, c far below: it must tip the tie.
      {"fma.rn.bf16" H3, {0x3F88, 0x3F88, 0x0001}, 0x3F91},
      {"fma.rn.bf16" H3, {0x3F88, 0x3F88, 0x8001}, 0x3F90},
      {"fma.rn.bf16x2" R3, {0x3F803F80, 0x40004000, 0x3F800000}, 0x40404000},
      {"max.f16" H2, {0x8000, 0}, 0},
      {"min.f16x2" R2, {0x7E003C00, 0x3C008000}, 0x3C008000},
      {"max.NaN.bf16" H2, {0x7F81, 0x3F80}, 0x7FFF},
      {"abs.bf16" H1, {0x8001}, 1},
      {"neg.f16x2" R1, {0x00008000}, 0x80000000},
  };
  CHECK(cases);
}

static void comparisons(void **state) {
  (void)state;
  static const Case cases[] = {
      {"setp.lt.s32 %p1,%r2,%r3;", {0xFFFFFFFF, 0}, 1},
      {"setp.lt.u32 %p1,%r2,%r3;", {0xFFFFFFFF, 0}, 0},
      {"setp.hs.u64 %p1,%d2,%d3;", {~0ull, 1}, 1},
      {"setp.gt.s16 %p1,%h2,%h3;", {0x8000, 1}, 0},
      {"setp.ne.f32 %p1,%r2,%r3;", {F_NAN, F_NAN}, 0}, // ordered: false with a NaN
      {"setp.neu.f32 %p1,%r2,%r3;", {F_NAN, F_NAN}, 1},
      {"setp.equ.f32 %p1,%r2,%r3;", {F_NAN, F1}, 1},
      {"setp.geu.f32 %p1,%r2,%r3;", {0, F1}, 0},
      {"setp.nan.f32 %p1,%r2,%r3;", {F1, F_NAN}, 1},
      {"setp.num.f64 %p1,%d2,%d3;", {D_1, D_INF}, 1},
      {"setp.eq.f32 %p1,%r2,%r3;", {NEG, 0}, 1},
      {"setp.gt.f32 %p1,%r2,%r3;", {1, 0}, 1},
      {"setp.gt.ftz.f32 %p1,%r2,%r3;", {1, 0}, 0},
      {"setp.lt.f16 %p1,%h2,%h3;", {0x0001, 0x0002}, 1},
      {"setp.lt.and.s32 %p1,%r2,%r3,!%p4;", {0, 1, 1}, 0},
      {"setp.lt.or.s32 %p1,%r2,%r3,!%p4;", {1, 0, 0}, 1},
      {"setp.lt.xor.s32 %p1,%r2,%r3,%p4;", {0, 1, 1}, 0},
      {"set.lt.u32.s32" R2, {0xFFFFFFFF, 0}, 0xFFFFFFFF},
      {"set.ge.f32.f32" R2, {F1, F1}, F1},
      {"set.nan.s32.f64 %r1,%d2,%d3;", {D_1, D_INF + 1}, 0xFFFFFFFF},
      {"set.lt.f16x2.f16x2" R2, {0x3C000000, 0x00003C00}, 0x00003C00},
      {"set.eq.f16.f16" H2, {0x8000, 0}, 0x3C00},
      {"set.eq.bf16.bf16" H2, {0x8000, 0}, 0x3F80},
      {"set.lt.u32.f16x2" R2, {0x00003C00, 0x3C000000}, 0xFFFF0000},
      {"selp.b64 %d1,%d2,%d3,%p4;", {1, 2, 0}, 2},
      {"slct.f32.s32" R3, {1, 2, 0xFFFFFFFF}, 2},
      {"slct.f32.f32" R3, {1, 2, NEG}, 1},
      {"slct.f32.f32" R3, {1, 2, F_NAN}, 2},
      {"slct.ftz.u32.f32" R3, {1, 2, 0x80000001}, 1},
  };
  CHECK(cases);
}

static void conversions(void **state) {
  (void)state;
  static const Case cases[] = {
      {"cvt.rz.f32.s32" R1, {16777217}, 0x4B800000},
      {"cvt.rp.f32.s32" R1, {16777217}, 0x4B800001},
      {"cvt.rn.f32.s32" R1, {16777219}, 0x4B800002}, // tie to even
      {"cvt.rn.f32.u32" R1, {0xFFFFFFFF}, 0x4F800000},
      {"cvt.rz.f32.u64 %r1,%d2;", {~0ull}, 0x5F7FFFFF},
      {"cvt.rn.f64.u64" D1, {~0ull}, 0x43F0000000000000},
      {"cvt.rm.f32.s64 %r1,%d2;", {(uint64_t)-16777217}, 0xCB800001},
      {"cvt.rn.f16.u32 %h1,%r2;", {65520}, 0x7C00},
      {"cvt.rz.f16.u32 %h1,%r2;", {100000}, 0x7BFF},
      {"cvt.rzi.s32.f32" R1, {0x4F000000}, 0x7FFFFFFF}, // saturates
      {"cvt.rzi.s32.f32" R1, {0xFF800000}, I_MIN},
      {"cvt.rzi.s32.f32" R1, {F_NAN}, 0},
      {"cvt.rzi.s32.f32" R1, {0xBFFFFFFF}, 0xFFFFFFFF},
      {"cvt.rni.s32.f32" R1, {0x40200000}, 2}, // 2.5
      {"cvt.rmi.s32.f32" R1, {0xBF000000}, 0xFFFFFFFF},
      {"cvt.rpi.s32.f32" R1, {0x3F000000}, 1},
      {"cvt.rzi.u32.f32" R1, {0xBF800000}, 0},
      {"cvt.rzi.u8.f32 %h1,%r2;", {0x43960000}, 255}, // 300
      {"cvt.rzi.s64.f32 %d1,%r2;", {F_NAN}, L_MIN},
      {"cvt.rzi.s32.f64 %r1,%d2;", {D_INF + 1}, I_MIN},
      {"cvt.rzi.u64.f64" D1, {D_INF}, ~0ull},
      {"cvt.rni.f32.f32" R1, {0x3F000000}, 0},
      {"cvt.rni.f32.f32" R1, {0xBF000000}, NEG}, // the sign of a zero stays
      {"cvt.rpi.f32.f32" R1, {0xBF000000}, NEG},
      {"cvt.rmi.f64.f64" D1, {0xBFE0000000000000}, 0xBFF0000000000000},
      {"cvt.f32.f16 %r1,%h2;", {0x0001}, 0x33800000},
      {"cvt.f32.f16 %r1,%h2;", {0xFC00}, 0xFF800000},
      {"cvt.f32.f16 %r1,%h2;", {0x7E00}, F_NAN},
      {"cvt.f32.bf16 %r1,%h2;", {0x8001}, 0x80010000},
      {"cvt.f64.f16 %d1,%h2;", {0x0001}, 0x3E70000000000000},
      {"cvt.rn.f16.f32 %h1,%r2;", {0x33000000}, 0}, // 2^-25: half the least subnormal, to even
      {"cvt.rn.f16.f32 %h1,%r2;", {0x33000001}, 1},
      {"cvt.rn.f16.f32 %h1,%r2;", {0x33C00000}, 2}, // 1.5 units: to even
      {"cvt.rn.f16.f32 %h1,%r2;", {0x387FE000}, 0x0400}, // rounds up into the normals
      {"cvt.rn.f16.f32 %h1,%r2;", {0x477FEFFF}, 0x7BFF},
      {"cvt.rn.f16.f32 %h1,%r2;", {0x477FF000}, 0x7C00},
      {"cvt.rz.f16.f32 %h1,%r2;", {0x7F7FFFFF}, 0x7BFF},
      {"cvt.rn.f16.f32 %h1,%r2;", {SNAN}, 0x7FFF},
      {"cvt.rn.relu.f16.f32 %h1,%r2;", {0xBF800000}, 0},
      {"cvt.rn.bf16.f32 %h1,%r2;", {0x3F808000}, 0x3F80},
      {"cvt.rn.bf16.f32 %h1,%r2;", {0x3F818000}, 0x3F82},
      {"cvt.rn.bf16.f32 %h1,%r2;", {0x3FFF8000}, 0x4000}, // the carry moves to the next binade
      {"cvt.rn.bf16.f32 %h1,%r2;", {0x7F7F8000}, 0x7F80},
      {"cvt.rz.bf16.f32 %h1,%r2;", {0x3FFFFFFF}, 0x3FFF},
      {"cvt.rn.bf16.f32 %h1,%r2;", {0xFFFFFFFF}, 0x7FFF},
      {"cvt.rn.f16x2.f32" R2, {F1, 0x40000000}, 0x3C004000}, // a goes to the high half
      {"cvt.rn.bf16x2.f32" R2, {F1, 0x40000000}, 0x3F804000},
      {"cvt.rn.relu.bf16x2.f32" R2, {0xBF800000, F1}, 0x00003F80},
      {"cvt.rn.satfinite.f16x2.f32" R2, {0x7F7FFFFF, 0xFF800000}, 0x7BFFFBFF},
      {"cvt.rna.tf32.f32" R1, {0x3F801000}, 0x3F802000}, // tie away from zero
      {"cvt.rn.tf32.f32" R1, {0x3F801000}, 0x3F800000},
      {"cvt.rn.satfinite.e4m3x2.f32 %h1,%r2,%r3;", {0x43E80000, 0xC3E80000}, 0x7EFE}, // 464
      {"cvt.rn.satfinite.e4m3x2.f32 %h1,%r2,%r3;", {F_INF, SNAN}, 0x7E7F},
      {"cvt.rn.satfinite.e4m3x2.f32 %h1,%r2,%r3;", {0x3A800000, 0x3A800001}, 0x0001}, // 2^-10
      {"cvt.rn.satfinite.e4m3x2.f32 %h1,%r2,%r3;", {0x3F880000, 0x3F980000}, 0x383A},
      {"cvt.rn.satfinite.relu.e4m3x2.f32 %h1,%r2,%r3;", {0xBF800000, F1}, 0x0038},
      {"cvt.rn.satfinite.e5m2x2.f32 %h1,%r2,%r3;", {0x7F000000, 0x37000000}, 0x7B00},
      {"cvt.rn.satfinite.e4m3x2.f16x2 %h1,%r2;", {0x3C004000}, 0x3840},
      {"cvt.rn.f16x2.e4m3x2 %r1,%h2;", {0x7E01}, 0x5F001800},
      {"cvt.rn.f16x2.e4m3x2 %r1,%h2;", {0xFFFE}, 0x7FFFDF00},
      {"cvt.rn.f16x2.e5m2x2 %r1,%h2;", {0x7C01}, 0x7C000100},
      {"cvt.rn.f32.f64 %r1,%d2;", {0x3FF0000010000000}, F1},
      {"cvt.rp.f32.f64 %r1,%d2;", {0x3FF0000000000001}, 0x3F800001},
      {"cvt.rn.f32.f64 %r1,%d2;", {0x3690000000000000}, 0}, // 2^-150
      {"cvt.rn.ftz.f32.f64 %r1,%d2;", {0x3800000000000000 - (1ull << 52)}, 0},
      {"cvt.ftz.f64.f32 %d1,%r2;", {0x80000001}, L_MIN},
      {"cvt.f64.f32 %d1,%r2;", {1}, 0x36A0000000000000},
      {"cvt.sat.f32.f32" R1, {F_NAN}, 0},
      {"cvt.sat.f32.f32" R1, {0x40000000}, F1},
      {"cvt.rn.sat.f16.f32 %h1,%r2;", {0xBF800000}, 0},
      {"cvt.u64.u32 %d1,%r2;", {0xFFFFFFFF}, 0xFFFFFFFF},
      {"cvt.s64.s32 %d1,%r2;", {0xFFFFFFFF}, ~0ull},
      {"cvt.u32.u64 %r1,%d2;", {0x123456789ull}, 0x23456789},
      {"cvt.s8.s32" R1, {0x180}, 0xFFFFFF80}, // extended to the register
      {"cvt.s8.s32 %h1,%r2;", {0x180}, 0xFF80},
      {"cvt.u8.s32" R1, {0xFFFFFFFF}, 0xFF},
      {"cvt.sat.u8.s32" R1, {0xFFFFFFFF}, 0},
      {"cvt.sat.s8.s32" R1, {300}, 127},
      {"cvt.sat.s32.u32" R1, {0xFFFFFFFF}, 0x7FFFFFFF},
      {"cvt.sat.s32.s64 %r1,%d2;", {L_MIN}, I_MIN},
      {"cvt.u32.s16 %r1,%h2;", {0x8000}, 0xFFFF8000},
      {"cvt.s32.s8 %r1,%r2;", {0x180}, 0xFFFFFF80},
      {"cvt.s64.s8 %d1,%d2;", {0xFF80}, (uint64_t)-128},
  };
  CHECK(cases);
}

static void approximations(void **state) {
  (void)state;
  static const Case cases[] = {
      {"ex2.approx.f32" R1, {0xFF800000}, 0},
      {"ex2.approx.f32" R1, {F_INF}, F_INF},
      {"ex2.approx.f32" R1, {NEG}, F1},
      {"ex2.approx.f32" R1, {SNAN}, F_NAN},
      {"ex2.approx.f32" R1, {0x43000000}, F_INF}, // 128
      {"ex2.approx.f32" R1, {0xC3150000}, 1},     // 2^-149
      {"ex2.approx.ftz.f32" R1, {0xC3150000}, 0},
      {"ex2.approx.f32" R1, {0xC2FC0000}, 0x00800000}, // 2^-126
      {"lg2.approx.f32" R1, {NEG}, 0xFF800000},
      {"lg2.approx.f32" R1, {0xBF800000}, F_NAN},
      {"lg2.approx.f32" R1, {F_INF}, F_INF},
      {"lg2.approx.f32" R1, {F1}, 0},
      {"lg2.approx.f32" R1, {1}, 0xC3150000},
      {"lg2.approx.ftz.f32" R1, {1}, 0xFF800000},
      {"rcp.approx.f32" R1, {NEG}, 0xFF800000},
      {"rcp.approx.f32" R1, {0xFF800000}, NEG},
      {"rcp.approx.ftz.f32" R1, {1}, F_INF},
      {"rsqrt.approx.f32" R1, {NEG}, 0xFF800000},
      {"rsqrt.approx.f32" R1, {F_INF}, 0},
      {"rsqrt.approx.f32" R1, {0xBF800000}, F_NAN},
      {"sqrt.approx.f32" R1, {NEG}, NEG},
      {"sqrt.approx.f32" R1, {F_INF}, F_INF},
      {"div.approx.f32" R2, {F1, 0x7F000000}, 0}, // |b| > 2^126
      {"div.approx.f32" R2, {F_INF, 0x7F000000}, F_NAN},
      {"sin.approx.f32" R1, {NEG}, NEG},
      {"sin.approx.f32" R1, {F_INF}, F_NAN},
      {"cos.approx.f32" R1, {0}, F1},
      {"tanh.approx.f32" R1, {NEG}, NEG},
      {"tanh.approx.f32" R1, {0xFF800000}, 0xBF800000},
      {"ex2.approx.f16" H1, {0xFC00}, 0},
      {"ex2.approx.f16x2" R1, {0xBC003C00}, 0x38004000},
      {"ex2.approx.ftz.bf16" H1, {0x8001}, 0x3F80},
      {"tanh.approx.bf16x2" R1, {0x7F80FF80}, 0x3F80BF80},
      {"rcp.approx.ftz.f64" D1, {0x4000000000000000}, 0x3FE0000000000000},
      {"rcp.approx.ftz.f64" D1, {1}, D_INF},
  };
  CHECK(cases);
}

static uint32_t op_word(const LaneOp *op, uint32_t a, uint32_t b) {
  Operand src[4], d;
  for (int i = 0; i < 32; i++) src[0].w[i] = a, src[1].w[i] = b;
  lanes_call(op, &d, src, op->imm);
  return d.w[31];
}

// Every code of the 8-bit types widened, and every f16 value and midpoint narrowed to them.
static void eight_bits(void **state) {
  (void)state;
  Arena *a = arena_new();
  for (int e5 = 0; e5 < 2; e5++) {
    const char *t = e5 ? "e5m2" : "e4m3";
    LaneOp widen, narrow;
    const char *body = arena_printf(
        a, "cvt.rn.f16x2.%sx2 %%r1,%%h2;\ncvt.rn.satfinite.%sx2.f32 %%h1,%%r2,%%r3;\n", t, t);
    const PtxInst *in = lanes_parse(a, body, NULL);
    assert_non_null(in);
    assert_true(lane_isa(NULL)->find(&in[0], &widen) && lane_isa(NULL)->find(&in[1], &narrow));
    for (uint32_t v = 0; v < 256; v++) {
      double x = e5 ? e5m2_to_double((uint8_t)v) : e4m3_to_double((uint8_t)v);
      uint32_t got = op_word(&widen, v << 8 | (v ^ 0x80), 0);
      assert_int_equal(got >> 16, f16_from_double(x));
    }
    const double top = e5 ? 57344 : 448;
    for (uint32_t h = 0; h < 0x10000; h++) {
      float x = (float)f16_to_double((uint16_t)h);
      uint32_t bits;
      memcpy(&bits, &x, 4);
      double y = x > top ? top : x < -top ? -top : x;
      uint32_t want = e5 ? e5m2_from_double(y) : e4m3_from_double(y);
      assert_int_equal(op_word(&narrow, bits, F1) >> 8, want);
    }
  }
  arena_free(a);
}

// Two destinations, immediates and the carry chain go through the core: what it relies on.
static void second_destination(void **state) {
  (void)state;
  Arena *a = arena_new();
  const PtxInst *in = lanes_parse(a, "setp.lt.and.f32 %p1|%p2,%r1,%r2,%p3;\n", NULL);
  assert_non_null(in);
  LaneOp op;
  assert_true(lane_isa("baseline")->find(in, &op));
  Operand src[4] = {0}, d;
  src[0].w[1] = F_NAN; // lane 1 compares false, so its opposite is true
  src[1].w[2] = F1;    // lane 2 compares true
  src[2].w[0] = 0x0000FFFF;
  lanes_call(&op, &d, src, op.imm);
  assert_int_equal((uint32_t)d.u[0], 0x4);
  lanes_call(&op, &d, src, op.imm | LANE_SECOND);
  assert_int_equal((uint32_t)d.u[0], 0x0000FFFB);

  in = lanes_parse(a, "setp.lt.f16x2 %p1|%p2,%r1,%r2;\n", NULL);
  assert_true(lane_isa("baseline")->find(in, &op));
  memset(src, 0, sizeof src);
  src[1].w[3] = 0x3C000000; // the high half alone
  lanes_call(&op, &d, src, op.imm);
  assert_int_equal((uint32_t)d.u[0], 0);
  lanes_call(&op, &d, src, op.imm | LANE_SECOND);
  assert_int_equal((uint32_t)d.u[0], 8);
  arena_free(a);
}

static uint64_t carry_step(Arena *a, const LaneIsa *isa, const char *inst, uint64_t x, uint64_t y,
                           uint64_t z, uint32_t *cc) {
  LaneOp op;
  const PtxInst *in = lanes_parse(a, inst, NULL);
  assert_non_null(in);
  if (!isa->find(in, &op)) fail_msg("no function for %s", inst);
  Operand src[4] = {0}, d;
  for (int i = 0; i < 32; i++) {
    lane_put(&src[0], op.width[1], i, x);
    lane_put(&src[1], op.width[2], i, y);
    lane_put(&src[2], op.width[3] ? op.width[3] : 8, i, z);
  }
  src[3].u[0] = *cc;
  lanes_call(&op, &d, src, op.imm);
  *cc = (uint32_t)src[3].u[0];
  return lane_get(&d, op.width[0], 31);
}

static void carries(void **state) {
  (void)state;
  Arena *a = arena_new();
  for (int s = 0; s < NLANE_SETS; s++) {
    const LaneIsa *isa = lane_isa(lane_sets[s]);
    if (!isa) continue;
    uint32_t cc = 0;
    assert_int_equal(carry_step(a, isa, "add.cc.u32" R2, 0xFFFFFFFF, 1, 0, &cc), 0);
    assert_int_equal(cc, 0xFFFFFFFF);
    assert_int_equal(carry_step(a, isa, "addc.u32" R2, 5, 6, 0, &cc), 12);
    assert_int_equal(cc, 0xFFFFFFFF); // addc without .cc leaves it
    assert_int_equal(carry_step(a, isa, "addc.cc.s64" D2, ~0ull, 0, 0, &cc), 0);
    assert_int_equal(cc, 0xFFFFFFFF); // the carry in alone made the carry out
    assert_int_equal(carry_step(a, isa, "sub.cc.u32" R2, 1, 2, 0, &cc), 0xFFFFFFFF);
    assert_int_equal(cc, 0xFFFFFFFF);
    assert_int_equal(carry_step(a, isa, "subc.cc.u32" R2, 1, 0, 0, &cc), 0);
    assert_int_equal(cc, 0);
    assert_int_equal(carry_step(a, isa, "mad.lo.cc.u32" R3, 0x10000, 0xFFFF, 0x10000, &cc), 0);
    assert_int_equal(cc, 0xFFFFFFFF);
    assert_int_equal(carry_step(a, isa, "madc.hi.s32" R3, 0xFFFFFFFF, 2, 10, &cc), 10);
    assert_int_equal(carry_step(a, isa, "madc.hi.u32" R3, 0xFFFFFFFF, 2, 10, &cc), 12);
  }
  arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers),      cmocka_unit_test(bits),
      cmocka_unit_test(floats),        cmocka_unit_test(halves),
      cmocka_unit_test(comparisons),   cmocka_unit_test(conversions),
      cmocka_unit_test(approximations), cmocka_unit_test(second_destination),
      cmocka_unit_test(carries),       cmocka_unit_test(eight_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
