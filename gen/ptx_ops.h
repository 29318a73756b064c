#ifndef PTXSMITH_PTX_OPS_H
#define PTXSMITH_PTX_OPS_H

// The opcode-form table: one row per instruction form.  From it come the name lookup, the checker,
// the canonical printer, the statistics and the interpreter's dispatch.
//
//   F(stem, modifiers, operands, ptx, sm, pipe, effects, handler)
//
// stem       the name up to the first dot; every form of a stem stands here, most specific first.
// modifiers  the manual's notation, matched left to right:
//              .x        this modifier                  (.x|.y)   exactly one of these
//              {...}     the group or nothing           T U V W   in front of .x or (..): it is a
//              type, kept as type[0..3] of the instruction.  Spaces mean nothing.
// operands   separated by spaces, in order; a name, ':' and a type, then marks:
//              name   d = a destination register (D: read and written); any other name is a source
//                     (register or immediate);  r = register only;  i = immediate only
//              [a]    a memory operand: [reg], [reg+imm], [sym], [sym+imm], [imm]
//              type   T U V W (that modifier's), 2T (twice as wide), pred, b32, u64 ...,
//                     >T a register may be wider than T (ld, st, cvt)
//              marks  *  a scalar, or a {vector} as long as .v2/.v4/.v8 says   {n} a vector of n
//                     #  scalar or vector, by .x1 .x2 .x4 (matrix loads)       ?  may be left out
//                     |  may be followed by |second destination of type pred, || must   !  may be
//                        negated
//                     _  the sink _ is allowed   ~  a vector of one may stand without its braces
//                     @  T: also a {vector} that makes up one T, a symbol's address or a special
//                        register;  b64 (wgmma): a descriptor, or a {vector} of four b32
//              An optional h, x or q is there if and only if .L2::cache_hint, .multicast::cluster
//              or one of .and .or .xor is written.
//              L = a label, FN = call syntax, TMAP = [map, {coordinates}], SYM = a branch table
//              Rows may share modifiers: the operands tell them apart, or, where those are the same
//              too, the first row that the .version and .target allow counts.
// ptx, sm    the least PTX ISA version (major*10+minor) and target; sm 900+'a' marks the
//            architecture-specific targets: A90 = sm_90a and others of the `a` family that have it
// pipe       which hardware pipe issues it: for statistics and counters
// effects    R reads memory, W writes memory, B barrier or fence, C control flow, S warp-collective
//            (.sync), A asynchronous, - none; may be combined, as RW
// handler    the decoder sim_NAME of the interpreter, or LATER: known, printed, checked, not run
//
// Facts: PTX ISA 9.0; tests/test_ptx_forms_full.c holds every row against ptxas (13.0).

#define A90 (90 | PTX_SM_ARCH)
#define A90UP (90 | PTX_SM_ARCH_UP)

#define INT "(.u16|.u32|.u64|.s16|.s32|.s64)"
#define INT32 "(.u32|.s32)"
#define B163264 "(.b16|.b32|.b64)"
#define RNDI "(.rni|.rzi|.rmi|.rpi)"
#define RND "(.rn|.rz|.rm|.rp)"
#define MEMT "(.b8|.b16|.b32|.b64|.b128|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64)"
#define CMPI "(.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs)"
#define CMPS "(.eq|.ne|.lt|.le|.gt|.ge)"
#define CMPF "(.eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan)"
#define BOOLOP "(.and|.or|.xor)"
#define SCOPE "(.cta|.cluster|.gpu|.sys)"
#define SPACE "(.global|.shared|.shared::cta|.shared::cluster|.local|.param|.const)"
#define STSPACE "(.global|.shared|.shared::cta|.shared::cluster|.local|.param)"
#define ATSPACE "(.global|.shared|.shared::cta|.shared::cluster)"
#define L1HINT                                                                                     \
  "(.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate)"
#define L2HINT "(.L2::evict_normal|.L2::evict_first|.L2::evict_last)"
#define L2PRE "(.L2::64B|.L2::128B|.L2::256B)"
#define LDHINTS "{" L1HINT "}{.L2::cache_hint}{" L2PRE "}"
#define STHINTS "{" L1HINT "}{.L2::cache_hint}"
#define VEC "{(.v2|.v4|.v8)}"
#define FP8 "(.e4m3|.e5m2)"
#define WSHAPE "(.m16n16k16|.m32n8k16|.m8n32k16)"
#define WSPACE "{(.global|.shared|.shared::cta)}"

#include "ptx_ops_memory.h"
#include "ptx_ops_tensor.h"

// The whole table, by area.
#define PTX_FORMS(F) PTX_FORMS_SCALAR(F) PTX_FORMS_MEMORY(F) PTX_FORMS_TENSOR(F)

#define PTX_FORMS_SCALAR(F)                                                                        \
  /* integer arithmetic */                                                                         \
  F("add", ".sat T.s32", "d:T a:T b:T", 10, 10, ALU, "-", alu)                                     \
  F("add", "T" INT, "d:T a:T b:T", 10, 10, ALU, "-", alu)                                          \
  F("add", "T(.u16x2|.s16x2)", "d:T a:T b:T", 80, 90, ALU, "-", alu)                               \
  F("add", ".cc T(.u32|.s32|.u64|.s64)", "d:T a:T b:T", 12, 10, ALU, "-", carry)                   \
  F("addc", "{.cc} T(.u32|.s32|.u64|.s64)", "d:T a:T b:T", 12, 10, ALU, "-", carry)                \
  F("sub", ".sat T.s32", "d:T a:T b:T", 10, 10, ALU, "-", alu)                                     \
  F("sub", "T" INT, "d:T a:T b:T", 10, 10, ALU, "-", alu)                                          \
  F("sub", ".cc T(.u32|.s32|.u64|.s64)", "d:T a:T b:T", 12, 10, ALU, "-", carry)                   \
  F("subc", "{.cc} T(.u32|.s32|.u64|.s64)", "d:T a:T b:T", 12, 10, ALU, "-", carry)                \
  F("mul", "(.hi|.lo) T" INT, "d:T a:T b:T", 10, 10, FMA, "-", alu)                                \
  F("mul", ".wide T(.u16|.s16|.u32|.s32)", "d:2T a:T b:T", 10, 10, FMA, "-", alu)                  \
  F("mad", ".hi.sat T.s32", "d:T a:T b:T c:T", 10, 10, FMA, "-", alu)                              \
  F("mad", "(.hi|.lo) T" INT, "d:T a:T b:T c:T", 10, 10, FMA, "-", alu)                            \
  F("mad", ".wide T(.u16|.s16|.u32|.s32)", "d:2T a:T b:T c:2T", 10, 10, FMA, "-", alu)             \
  F("mad", "(.hi|.lo) .cc T(.u32|.s32|.u64|.s64)", "d:T a:T b:T c:T", 30, 20, FMA, "-", carry)     \
  F("madc", "(.hi|.lo) {.cc} T(.u32|.s32|.u64|.s64)", "d:T a:T b:T c:T", 30, 20, FMA, "-", carry)  \
  F("mul24", "(.hi|.lo) T" INT32, "d:T a:T b:T", 10, 10, FMA, "-", alu)                            \
  F("mad24", "(.hi|.lo) T" INT32, "d:T a:T b:T c:T", 10, 10, FMA, "-", alu)                        \
  F("sad", "T" INT, "d:T a:T b:T c:T", 10, 10, ALU, "-", alu)                                      \
  F("div", "T" INT, "d:T a:T b:T", 10, 10, ALU, "-", alu)                                          \
  F("rem", "T" INT, "d:T a:T b:T", 10, 10, ALU, "-", alu)                                          \
  F("abs", "T(.s16|.s32|.s64)", "d:T a:T", 10, 10, ALU, "-", alu)                                  \
  F("neg", "T(.s16|.s32|.s64)", "d:T a:T", 10, 10, ALU, "-", alu)                                  \
  F("min", ".relu T(.s32|.s16x2)", "d:T a:T b:T", 80, 90, ALU, "-", alu)                           \
  F("min", "T(.u16x2|.s16x2)", "d:T a:T b:T", 80, 90, ALU, "-", alu)                               \
  F("min", "T" INT, "d:T a:T b:T", 10, 10, ALU, "-", alu)                                          \
  F("max", ".relu T(.s32|.s16x2)", "d:T a:T b:T", 80, 90, ALU, "-", alu)                           \
  F("max", "T(.u16x2|.s16x2)", "d:T a:T b:T", 80, 90, ALU, "-", alu)                               \
  F("max", "T" INT, "d:T a:T b:T", 10, 10, ALU, "-", alu)                                          \
  F("popc", "T(.b32|.b64)", "d:u32 a:T", 20, 20, ALU, "-", alu)                                    \
  F("clz", "T(.b32|.b64)", "d:u32 a:T", 20, 20, ALU, "-", alu)                                     \
  F("bfind", "{.shiftamt} T(.u32|.u64|.s32|.s64)", "d:u32 a:T", 20, 20, ALU, "-", alu)             \
  F("fns", ".b32", "d:b32 a:b32 b:b32 c:s32", 60, 30, ALU, "-", alu)                               \
  F("brev", "T(.b32|.b64)", "d:T a:T", 20, 20, ALU, "-", alu)                                      \
  F("bfe", "T(.u32|.u64|.s32|.s64)", "d:T a:T b:u32 c:u32", 20, 20, ALU, "-", alu)                 \
  F("bfi", "T(.b32|.b64)", "d:T a:T b:T c:u32 e:u32", 20, 20, ALU, "-", alu)                       \
  F("bmsk", "(.clamp|.wrap) .b32", "d:b32 a:u32 b:u32", 76, 70, ALU, "-", alu)                     \
  F("szext", "(.clamp|.wrap) T(.u32|.s32)", "d:T a:T b:u32", 76, 70, ALU, "-", alu)                \
  F("dp4a", "T(.u32|.s32) U(.u32|.s32)", "d:b32 a:b32 b:b32 c:b32", 50, 61, FMA, "-", alu)         \
  F("dp2a", "(.lo|.hi) T(.u32|.s32) U(.u32|.s32)", "d:b32 a:b32 b:b32 c:b32", 50, 61, FMA, "-",    \
    alu)                                                                                           \
  /* floating point */                                                                             \
  F("add", "{" RND "}{.ftz}{.sat} T.f32", "d:T a:T b:T", 10, 10, FMA, "-", alu)                    \
  F("add", "{" RND "} T.f64", "d:T a:T b:T", 10, 13, FP64, "-", alu)                               \
  F("add", "{.rn}{.ftz}{.sat} T(.f16|.f16x2)", "d:T a:T b:T", 42, 53, HALF, "-", alu)              \
  F("add", "{.rn} T(.bf16|.bf16x2)", "d:T a:T b:T", 78, 90, HALF, "-", alu)                        \
  F("add", "{" RND "}{.ftz} T.f32x2", "d:T a:T b:T", 86, 100, FMA, "-", LATER)                     \
  F("sub", "{" RND "}{.ftz}{.sat} T.f32", "d:T a:T b:T", 10, 10, FMA, "-", alu)                    \
  F("sub", "{" RND "} T.f64", "d:T a:T b:T", 10, 13, FP64, "-", alu)                               \
  F("sub", "{.rn}{.ftz}{.sat} T(.f16|.f16x2)", "d:T a:T b:T", 42, 53, HALF, "-", alu)              \
  F("sub", "{.rn} T(.bf16|.bf16x2)", "d:T a:T b:T", 78, 90, HALF, "-", alu)                        \
  F("mul", "{" RND "}{.ftz}{.sat} T.f32", "d:T a:T b:T", 10, 10, FMA, "-", alu)                    \
  F("mul", "{" RND "} T.f64", "d:T a:T b:T", 10, 13, FP64, "-", alu)                               \
  F("mul", "{.rn}{.ftz}{.sat} T(.f16|.f16x2)", "d:T a:T b:T", 42, 53, HALF, "-", alu)              \
  F("mul", "{.rn} T(.bf16|.bf16x2)", "d:T a:T b:T", 78, 90, HALF, "-", alu)                        \
  F("mul", "{" RND "}{.ftz} T.f32x2", "d:T a:T b:T", 86, 100, FMA, "-", LATER)                     \
  F("fma", RND "{.ftz}{.sat} T.f32", "d:T a:T b:T c:T", 20, 20, FMA, "-", alu)                     \
  F("fma", RND " T.f64", "d:T a:T b:T c:T", 14, 13, FP64, "-", alu)                                \
  F("fma", ".rn{.ftz}{.sat} T(.f16|.f16x2)", "d:T a:T b:T c:T", 42, 53, HALF, "-", alu)            \
  F("fma", ".rn{.ftz}.relu T(.f16|.f16x2)", "d:T a:T b:T c:T", 70, 80, HALF, "-", alu)             \
  F("fma", ".rn{.relu} T(.bf16|.bf16x2)", "d:T a:T b:T c:T", 70, 80, HALF, "-", alu)               \
  F("fma", RND "{.ftz} T.f32x2", "d:T a:T b:T c:T", 86, 100, FMA, "-", LATER)                      \
  F("mad", RND "{.ftz}{.sat} T.f32", "d:T a:T b:T c:T", 10, 20, FMA, "-", alu)                     \
  F("mad", RND " T.f64", "d:T a:T b:T c:T", 10, 13, FP64, "-", alu)                                \
  F("div", "(.approx|.full){.ftz} T.f32", "d:T a:T b:T", 14, 10, XU, "-", alu)                     \
  F("div", RND "{.ftz} T.f32", "d:T a:T b:T", 14, 20, FMA, "-", alu)                               \
  F("div", RND " T.f64", "d:T a:T b:T", 14, 13, FP64, "-", alu)                                    \
  F("abs", "{.ftz} T.f32", "d:T a:T", 10, 10, ALU, "-", alu)                                       \
  F("abs", "{.ftz} T(.f16|.f16x2)", "d:T a:T", 65, 53, ALU, "-", alu)                              \
  F("abs", "T.f64", "d:T a:T", 10, 13, ALU, "-", alu)                                              \
  F("abs", "T(.bf16|.bf16x2)", "d:T a:T", 70, 80, ALU, "-", alu)                                   \
  F("neg", "{.ftz} T.f32", "d:T a:T", 10, 10, ALU, "-", alu)                                       \
  F("neg", "{.ftz} T(.f16|.f16x2)", "d:T a:T", 60, 53, ALU, "-", alu)                              \
  F("neg", "T.f64", "d:T a:T", 10, 13, ALU, "-", alu)                                              \
  F("neg", "T(.bf16|.bf16x2)", "d:T a:T", 70, 80, ALU, "-", alu)                                   \
  F("min", "{.ftz} T.f32", "d:T a:T b:T", 10, 10, ALU, "-", alu)                                   \
  F("min", "{.ftz}.NaN T.f32", "d:T a:T b:T", 70, 80, ALU, "-", alu)                               \
  F("min", "{.ftz}{.NaN}.xorsign.abs T.f32", "d:T a:T b:T", 72, 86, ALU, "-", alu)                 \
  F("min", "{.ftz}{.NaN}{.abs} T.f32", "d:T a:T b:T c:T", 88, 100, ALU, "-", LATER)                \
  F("min", "T.f64", "d:T a:T b:T", 10, 13, FP64, "-", alu)                                         \
  F("min", "{.ftz}{.NaN} T(.f16|.f16x2)", "d:T a:T b:T", 70, 80, HALF, "-", alu)                   \
  F("min", "{.ftz}{.NaN}.xorsign.abs T(.f16|.f16x2)", "d:T a:T b:T", 72, 86, HALF, "-", alu)       \
  F("min", "{.NaN} T(.bf16|.bf16x2)", "d:T a:T b:T", 70, 80, HALF, "-", alu)                       \
  F("min", "{.NaN}.xorsign.abs T(.bf16|.bf16x2)", "d:T a:T b:T", 72, 86, HALF, "-", alu)           \
  F("max", "{.ftz} T.f32", "d:T a:T b:T", 10, 10, ALU, "-", alu)                                   \
  F("max", "{.ftz}.NaN T.f32", "d:T a:T b:T", 70, 80, ALU, "-", alu)                               \
  F("max", "{.ftz}{.NaN}.xorsign.abs T.f32", "d:T a:T b:T", 72, 86, ALU, "-", alu)                 \
  F("max", "{.ftz}{.NaN}{.abs} T.f32", "d:T a:T b:T c:T", 88, 100, ALU, "-", LATER)                \
  F("max", "T.f64", "d:T a:T b:T", 10, 13, FP64, "-", alu)                                         \
  F("max", "{.ftz}{.NaN} T(.f16|.f16x2)", "d:T a:T b:T", 70, 80, HALF, "-", alu)                   \
  F("max", "{.ftz}{.NaN}.xorsign.abs T(.f16|.f16x2)", "d:T a:T b:T", 72, 86, HALF, "-", alu)       \
  F("max", "{.NaN} T(.bf16|.bf16x2)", "d:T a:T b:T", 70, 80, HALF, "-", alu)                       \
  F("max", "{.NaN}.xorsign.abs T(.bf16|.bf16x2)", "d:T a:T b:T", 72, 86, HALF, "-", alu)           \
  F("rcp", ".approx{.ftz} T.f32", "d:T a:T", 14, 10, XU, "-", alu)                                 \
  F("rcp", RND "{.ftz} T.f32", "d:T a:T", 14, 20, FMA, "-", alu)                                   \
  F("rcp", ".approx.ftz T.f64", "d:T a:T", 21, 20, XU, "-", alu)                                   \
  F("rcp", RND " T.f64", "d:T a:T", 14, 13, FP64, "-", alu)                                        \
  F("sqrt", ".approx{.ftz} T.f32", "d:T a:T", 14, 10, XU, "-", alu)                                \
  F("sqrt", RND "{.ftz} T.f32", "d:T a:T", 14, 20, FMA, "-", alu)                                  \
  F("sqrt", RND " T.f64", "d:T a:T", 14, 13, FP64, "-", alu)                                       \
  F("rsqrt", ".approx{.ftz} T.f32", "d:T a:T", 14, 10, XU, "-", alu)                               \
  F("rsqrt", ".approx{.ftz} T.f64", "d:T a:T", 14, 13, XU, "-", alu)                               \
  F("sin", ".approx{.ftz} T.f32", "d:T a:T", 14, 10, XU, "-", alu)                                 \
  F("cos", ".approx{.ftz} T.f32", "d:T a:T", 14, 10, XU, "-", alu)                                 \
  F("lg2", ".approx{.ftz} T.f32", "d:T a:T", 14, 10, XU, "-", alu)                                 \
  F("ex2", ".approx{.ftz} T.f32", "d:T a:T", 14, 10, XU, "-", alu)                                 \
  F("ex2", ".approx T(.f16|.f16x2)", "d:T a:T", 70, 75, XU, "-", alu)                              \
  F("ex2", ".approx.ftz T(.bf16|.bf16x2)", "d:T a:T", 78, 90, XU, "-", alu)                        \
  F("tanh", ".approx T.f32", "d:T a:T", 70, 75, XU, "-", alu)                                      \
  F("tanh", ".approx T(.f16|.f16x2)", "d:T a:T", 70, 75, XU, "-", alu)                             \
  F("tanh", ".approx T(.bf16|.bf16x2)", "d:T a:T", 78, 90, XU, "-", alu)                           \
  F("testp", "(.finite|.infinite|.number|.notanumber|.normal|.subnormal) T(.f32|.f64)",            \
    "d:pred a:T", 20, 20, ALU, "-", alu)                                                           \
  F("copysign", "T(.f32|.f64)", "d:T a:T b:T", 20, 20, ALU, "-", alu)                              \
  /* comparison and selection */                                                                   \
  F("set", "(.eq|.ne){" BOOLOP "} T(.u32|.s32|.f32) U" B163264, "d:T a:U b:U q:pred!?", 10, 10,    \
    ALU, "-", setp)                                                                                \
  F("set", CMPS "{" BOOLOP "} T(.u32|.s32|.f32) U(.s16|.s32|.s64)", "d:T a:U b:U q:pred!?", 10,    \
    10, ALU, "-", setp)                                                                            \
  F("set", CMPI "{" BOOLOP "} T(.u32|.s32|.f32) U(.u16|.u32|.u64)", "d:T a:U b:U q:pred!?", 10,    \
    10, ALU, "-", setp)                                                                            \
  F("set", CMPF "{" BOOLOP "}{.ftz} T(.u32|.s32|.f32) U(.f32|.f64)", "d:T a:U b:U q:pred!?", 10,   \
    10, ALU, "-", setp)                                                                            \
  F("set", CMPF "{" BOOLOP "}{.ftz} T.f16 U.f16", "d:T a:U b:U q:pred!?", 42, 53, HALF, "-",       \
    setp)                                                                                          \
  F("set", CMPF "{" BOOLOP "}{.ftz} T(.u16|.s16|.u32|.s32) U.f16", "d:T a:U b:U q:pred!?", 65,     \
    53, HALF, "-", setp)                                                                           \
  F("set", CMPF "{" BOOLOP "}{.ftz} T.f16x2 U.f16x2", "d:T a:U b:U q:pred!?", 42, 53, HALF, "-",   \
    setp)                                                                                          \
  F("set", CMPF "{" BOOLOP "}{.ftz} T(.u32|.s32) U.f16x2", "d:T a:U b:U q:pred!?", 65, 53, HALF,   \
    "-", setp)                                                                                     \
  F("set", CMPF "{" BOOLOP "} T(.bf16|.u16|.s16|.u32|.s32) U.bf16", "d:T a:U b:U q:pred!?", 78,    \
    90, HALF, "-", setp)                                                                           \
  F("set", CMPF "{" BOOLOP "} T(.bf16x2|.u32|.s32) U.bf16x2", "d:T a:U b:U q:pred!?", 78, 90,      \
    HALF, "-", setp)                                                                               \
  F("setp", "(.eq|.ne){" BOOLOP "} T" B163264, "d:pred|_ a:T b:T q:pred!?", 10, 10, ALU, "-",      \
    setp)                                                                                          \
  F("setp", CMPS "{" BOOLOP "} T(.s16|.s32|.s64)", "d:pred|_ a:T b:T q:pred!?", 10, 10, ALU,       \
    "-", setp)                                                                                     \
  F("setp", CMPI "{" BOOLOP "} T(.u16|.u32|.u64)", "d:pred|_ a:T b:T q:pred!?", 10, 10, ALU,       \
    "-", setp)                                                                                     \
  F("setp", CMPF "{" BOOLOP "}{.ftz} T.f32", "d:pred|_ a:T b:T q:pred!?", 10, 10, ALU, "-", setp)  \
  F("setp", CMPF "{" BOOLOP "} T.f64", "d:pred|_ a:T b:T q:pred!?", 10, 13, FP64, "-", setp)       \
  F("setp", CMPF "{" BOOLOP "}{.ftz} T(.f16|.f16x2)", "d:pred|_ a:T b:T q:pred!?", 42, 53, HALF,   \
    "-", setp)                                                                                     \
  F("setp", CMPF "{" BOOLOP "} T(.bf16|.bf16x2)", "d:pred|_ a:T b:T q:pred!?", 78, 90, HALF,       \
    "-", setp)                                                                                     \
  F("selp", "T(.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64)", "d:T a:T b:T c:pred",     \
    10, 10, ALU, "-", alu)                                                                         \
  F("slct", "T(.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64) U.s32",                     \
    "d:T a:T b:T c:U", 10, 10, ALU, "-", alu)                                                      \
  F("slct", "{.ftz} T(.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64) U.f32",              \
    "d:T a:T b:T c:U", 10, 10, ALU, "-", alu)                                                      \
  /* logic and shifts */                                                                           \
  F("and", "T(.pred|.b16|.b32|.b64)", "d:T a:T b:T", 10, 10, ALU, "-", alu)                        \
  F("or", "T(.pred|.b16|.b32|.b64)", "d:T a:T b:T", 10, 10, ALU, "-", alu)                         \
  F("xor", "T(.pred|.b16|.b32|.b64)", "d:T a:T b:T", 10, 10, ALU, "-", alu)                        \
  F("not", "T(.pred|.b16|.b32|.b64)", "d:T a:T", 10, 10, ALU, "-", alu)                            \
  F("cnot", "T" B163264, "d:T a:T", 10, 10, ALU, "-", alu)                                         \
  F("lop3", "(.and|.or) .b32", "d:b32||_ a:b32 b:b32 c:b32 i:u32 q:pred!", 82, 70, ALU, "-",       \
    lop3)                                                                                          \
  F("lop3", ".b32", "d:b32 a:b32 b:b32 c:b32 i:u32", 43, 50, ALU, "-", lop3)                       \
  F("shf", "(.l|.r)(.clamp|.wrap) .b32", "d:b32 a:b32 b:b32 c:u32", 31, 32, ALU, "-", alu)         \
  F("shl", "T" B163264, "d:T a:T b:u32", 10, 10, ALU, "-", alu)                                    \
  F("shr", "T(.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64)", "d:T a:T b:u32", 10, 10, ALU, "-",   \
    alu)                                                                                           \
  F("prmt", ".b32 {(.f4e|.b4e|.rc8|.ecl|.ecr|.rc16)}", "d:b32 a:b32 b:b32 c:b32", 20, 20, ALU,     \
    "-", alu)                                                                                      \
  /* moves and conversions; mov also packs and unpacks: mov.b32 d, {a, b} */                       \
  F("mov", "T(.pred|.b16|.b32|.b64|.b128|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64)", "d:T@ a:T@",   \
    10, 10, ALU, "-", mov)                                                                         \
  F("cvt", "(.rn|.rz){.relu} T(.f16x2|.bf16x2) U.f32", "d:T a:U b:U", 70, 80, CVT, "-", cvt)       \
  F("cvt", "(.rn|.rz){.relu}.satfinite T(.f16x2|.bf16x2) U.f32", "d:T a:U b:U", 81, 80, CVT,       \
    "-", cvt)                                                                                      \
  F("cvt", "(.rn|.rz){.relu} T.bf16 U.f32", "d:b16 a:U", 70, 80, CVT, "-", cvt)                    \
  F("cvt", "(.rn|.rz){.relu}.satfinite T.bf16 U.f32", "d:b16 a:U", 81, 80, CVT, "-", cvt)          \
  F("cvt", "(.rn|.rz).satfinite T.f16 U.f32", "d:b16 a:U", 81, 53, CVT, "-", cvt)                  \
  F("cvt", "(.rn|.rz).relu{.satfinite} T.f16 U.f32", "d:b16 a:U", 81, 80, CVT, "-", cvt)           \
  F("cvt", "(.rn|.rz).relu T.f16 U.f32", "d:b16 a:U", 70, 80, CVT, "-", cvt)                       \
  F("cvt", ".rna T.tf32 U.f32", "d:b32 a:U", 70, 80, CVT, "-", cvt)                                \
  F("cvt", ".rna.satfinite T.tf32 U.f32", "d:b32 a:U", 81, 80, CVT, "-", cvt)                      \
  F("cvt", "(.rn|.rz){.relu} T.tf32 U.f32", "d:b32 a:U", 78, 90, CVT, "-", cvt)                    \
  F("cvt", ".rn.satfinite{.relu} T(.e4m3x2|.e5m2x2) U.f32", "d:b16 a:U b:U", 78, 90, CVT, "-",     \
    cvt)                                                                                           \
  F("cvt", ".rn.satfinite{.relu} T(.e4m3x2|.e5m2x2) U.f16x2", "d:b16 a:b32", 78, 90, CVT, "-",     \
    cvt)                                                                                           \
  F("cvt", ".rn{.relu} T.f16x2 U(.e4m3x2|.e5m2x2)", "d:b32 a:b16", 78, 90, CVT, "-", cvt)          \
  F("cvt", ".rn.satfinite{.relu} T(.e4m3x2|.e5m2x2) U.f32", "d:b16 a:U b:U", 81, 89, CVT, "-",     \
    cvt)                                                                                           \
  F("cvt", ".rn.satfinite{.relu} T(.e4m3x2|.e5m2x2) U.f16x2", "d:b16 a:b32", 81, 89, CVT, "-",     \
    cvt)                                                                                           \
  F("cvt", ".rn{.relu} T.f16x2 U(.e4m3x2|.e5m2x2)", "d:b32 a:b16", 81, 89, CVT, "-", cvt)          \
  F("cvt", RND " T.bf16 U(.u16|.u32|.u64|.s16|.s32|.s64)", "d:T a:>U@", 78, 90, CVT, "-", cvt)     \
  F("cvt", RND " T.bf16 U(.f16|.f64)", "d:T a:>U", 78, 90, CVT, "-", cvt)                          \
  F("cvt", RNDI " T.bf16 U.bf16", "d:T a:U", 78, 90, CVT, "-", cvt)                                \
  F("cvt", RNDI " T(.u16|.u32|.u64|.s16|.s32|.s64) U.bf16", "d:>T a:U", 78, 90, CVT, "-", cvt)     \
  F("cvt", "T.f64 U.bf16", "d:>T a:U", 78, 90, CVT, "-", cvt)                                      \
  F("cvt", RND " T.f16 U.bf16", "d:>T a:U", 78, 90, CVT, "-", cvt)                                 \
  F("cvt", "T.f32 U.bf16", "d:>T a:U", 71, 80, CVT, "-", cvt)                                      \
  F("cvt", ".ftz T.f32 U.bf16", "d:>T a:U", 78, 90, CVT, "-", cvt)                                 \
  F("cvt",                                                                                         \
    "{.sat} T(.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64) U(.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64)",    \
    "d:>T a:>U@", 10, 10, CVT, "-", cvt)                                                           \
  F("cvt", RND "{.ftz}{.sat} T.f32 U(.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64)", "d:>T a:>U@", 10,    \
    10, CVT, "-", cvt)                                                                             \
  F("cvt", RND "{.sat} T(.f16|.f64) U(.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64)", "d:>T a:>U@", 10,   \
    10, CVT, "-", cvt)                                                                             \
  F("cvt", RNDI "{.ftz}{.sat} T(.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64) U.f32", "d:>T a:>U", 10,    \
    10, CVT, "-", cvt)                                                                             \
  F("cvt", RNDI "{.sat} T(.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64) U(.f16|.f64)", "d:>T a:>U", 10,   \
    10, CVT, "-", cvt)                                                                             \
  F("cvt", RND "{.ftz}{.sat} T.f32 U.f64", "d:>T a:>U", 10, 10, CVT, "-", cvt)                     \
  F("cvt", RND "{.ftz}{.sat} T.f16 U.f32", "d:>T a:>U", 10, 10, CVT, "-", cvt)                     \
  F("cvt", RND "{.sat} T.f16 U.f64", "d:>T a:>U", 10, 10, CVT, "-", cvt)                           \
  F("cvt", "{.ftz}{.sat} T.f32 U(.f16|.f32)", "d:>T a:>U", 10, 10, CVT, "-", cvt)                  \
  F("cvt", "{.ftz}{.sat} T.f64 U.f32", "d:>T a:>U", 10, 10, CVT, "-", cvt)                         \
  F("cvt", "{.sat} T.f64 U(.f16|.f64)", "d:>T a:>U", 10, 10, CVT, "-", cvt)                        \
  F("cvt", "{.sat} T.f16 U.f16", "d:>T a:>U", 10, 10, CVT, "-", cvt)                               \
  F("cvt", RNDI "{.ftz}{.sat} T.f32 U.f32", "d:>T a:>U", 10, 10, CVT, "-", cvt)                    \
  F("cvt", RNDI "{.sat} T.f64 U.f64", "d:>T a:>U", 10, 10, CVT, "-", cvt)                          \
  F("cvt", RNDI "{.sat} T.f16 U.f16", "d:>T a:>U", 10, 10, CVT, "-", cvt)                          \
  F("cvta", "{.to}" "(.global|.shared|.shared::cta|.shared::cluster|.local|.const|.param)"         \
    "T(.u32|.u64)", "d:T a:T@", 20, 20, ALU, "-", cvta)                                            \
  F("isspacep", SPACE, "d:pred a:u64", 20, 20, ALU, "-", isspacep)                                 \
  F("mapa", "{(.shared::cluster)} T(.u32|.u64)", "d:T a:T@ b:u32", 78, 90, ALU, "-", mapa)         \
  F("getctarank", "{(.shared::cluster)} T(.u32|.u64)", "d:u32 a:T@", 78, 90, ALU, "-", getctarank)

// PTX_SM_ARCH is or'ed into `sm` where only the `a` (or `f`) targets of that chip have the form;
// PTX_SM_ARCH_UP where those of that chip and of every later one have it.
#define PTX_SM_ARCH 0x1000
#define PTX_SM_ARCH_UP 0x2000
#define A100 (100 | PTX_SM_ARCH)

// Modifiers that came later than the forms they stand in:  M(stem or "*", modifier, ptx, sm)
#define PTX_MOD_MINIMA(M)                                                                          \
  M("ld", "shared::cta", 78, 30)                                                                   \
  M("st", "shared::cta", 78, 30)                                                                   \
  M("atom", "shared::cta", 78, 30)                                                                 \
  M("red", "shared::cta", 78, 30)                                                                  \
  M("cvta", "shared::cta", 78, 30)                                                                 \
  M("isspacep", "shared::cta", 78, 30)                                                             \
  M("mbarrier", "shared::cta", 78, 30)                                                             \
  M("ldmatrix", "shared::cta", 78, 30)                                                             \
  M("wmma", "shared::cta", 78, 30)                                                                 \
  M("fence", "shared::cta", 78, 30)                                                                \
  M("*", "shared::cluster", 78, 90)                                                                \
  M("*", "L2::cache_hint", 74, 80)                                                                 \
  M("*", "L1::no_allocate", 74, 70)                                                                \
  M("*", "L1::evict_normal", 74, 70)                                                               \
  M("*", "L1::evict_unchanged", 74, 70)                                                            \
  M("*", "L1::evict_first", 74, 70)                                                                \
  M("*", "L1::evict_last", 74, 70)                                                                 \
  M("*", "L2::64B", 74, 75)                                                                        \
  M("*", "L2::128B", 74, 75)                                                                       \
  M("*", "L2::256B", 74, 80)                                                                       \
  M("*", "cluster", 78, 90)                                                                        \
  M("*", "b128", 83, 70)                                                                           \
  M("bar", "cta", 78, 30)                                                                          \
  M("barrier", "cta", 78, 30)                                                                      \
  M("cvta", "param", 77, 70)                                                                       \
  M("isspacep", "param", 77, 70)

#define PTX_PIPES(X)                                                                               \
  X(ALU) X(FMA) X(HALF) X(FP64) X(XU) X(CVT) X(LSU) X(CTRL) X(TENSOR) X(TMA)
typedef enum PtxPipe {
#define X(p) PTX_PIPE_##p,
  PTX_PIPES(X)
#undef X
  PTX_PIPE_COUNT
} PtxPipe;

#endif
