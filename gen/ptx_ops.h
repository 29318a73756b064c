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
// handler    the decoder sim_NAME of the interpreter, or LATER: known, printed, checked, not executed
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

#define PTX_FORMS(F)                                                                               \
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
  F("fns", ".b32", "d:b32 a:b32 b:b32 c:s32", 60, 30, ALU, "-", LATER)                             \
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
    LATER)                                                                                         \
  F("lop3", ".b32", "d:b32 a:b32 b:b32 c:b32 i:u32", 43, 50, ALU, "-", alu)                        \
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
  F("mapa", "{(.shared::cluster)} T(.u32|.u64)", "d:T a:T@ b:u32", 78, 90, ALU, "-", LATER)        \
  F("getctarank", "{(.shared::cluster)} T(.u32|.u64)", "d:u32 a:T@", 78, 90, ALU, "-", LATER)      \
  /* memory */                                                                                     \
  F("ld", "{.weak}{.global}{" L1HINT "}" L2HINT "{.L2::cache_hint}{" L2PRE                         \
    "}.v8 T(.b32|.u32|.s32|.f32)", "d:>T* [a] h:b64?", 88, 100, LSU, "R", ld)                      \
  F("ld", "{.weak}{.global}{" L1HINT "}" L2HINT "{.L2::cache_hint}{" L2PRE                         \
    "}.v4 T(.b64|.u64|.s64|.f64)", "d:>T* [a] h:b64?", 88, 100, LSU, "R", ld)                      \
  F("ld", "{.weak}{" SPACE "}{(.ca|.cg|.cs|.lu|.cv)}" LDHINTS VEC "T" MEMT, "d:>T* [a] h:b64?",    \
    10, 10, LSU, "R", ld)                                                                          \
  F("ld", ".volatile{" ATSPACE "}{" L2PRE "}" VEC "T" MEMT, "d:>T* [a]", 10, 10, LSU, "R", ld)     \
  F("ld", "(.relaxed|.acquire)" SCOPE "{" ATSPACE "}" LDHINTS VEC "T" MEMT, "d:>T* [a] h:b64?",    \
    60, 70, LSU, "R", ld)                                                                          \
  F("ld", ".global.nc{" L1HINT "}" L2HINT "{.L2::cache_hint}{" L2PRE                               \
    "}.v8 T(.b32|.u32|.s32|.f32)", "d:>T* [a] h:b64?", 88, 100, LSU, "R", ld)                      \
  F("ld", ".global.nc{" L1HINT "}" L2HINT "{.L2::cache_hint}{" L2PRE                               \
    "}.v4 T(.b64|.u64|.s64|.f64)", "d:>T* [a] h:b64?", 88, 100, LSU, "R", ld)                      \
  F("ld", ".global{(.ca|.cg|.cs)}.nc" LDHINTS VEC "T" MEMT, "d:>T* [a] h:b64?", 31, 32, LSU,       \
    "R", ld)                                                                                       \
  F("ldu",                                                                                         \
    "{.global}{(.v2|.v4)}T(.b8|.b16|.b32|.b64|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64)",   \
    "d:>T* [a]", 20, 20, LSU, "R", ld)                                                             \
  F("st", "{.weak}{.global}{" L1HINT "}" L2HINT "{.L2::cache_hint}.v8 T(.b32|.u32|.s32|.f32)",     \
    "[a] b:>T* h:b64?", 88, 100, LSU, "W", st)                                                     \
  F("st", "{.weak}{.global}{" L1HINT "}" L2HINT "{.L2::cache_hint}.v4 T(.b64|.u64|.s64|.f64)",     \
    "[a] b:>T* h:b64?", 88, 100, LSU, "W", st)                                                     \
  F("st", "{.weak}{" STSPACE "}{(.wb|.cg|.cs|.wt)}" STHINTS VEC "T" MEMT, "[a] b:>T* h:b64?",      \
    10, 10, LSU, "W", st)                                                                          \
  F("st", ".volatile{" ATSPACE "}" VEC "T" MEMT, "[a] b:>T*", 10, 10, LSU, "W", st)                \
  F("st", "(.relaxed|.release)" SCOPE "{" ATSPACE "}" STHINTS VEC "T" MEMT, "[a] b:>T* h:b64?",    \
    60, 70, LSU, "W", st)                                                                          \
  F("st",                                                                                          \
    ".async{.weak}.shared::cluster.mbarrier::complete_tx::bytes{(.v2|.v4)}"                        \
    "T(.b32|.b64|.u32|.u64|.s32|.s64|.f32|.f64)", "[a] b:T* [m]", 81, 90, LSU, "WA", LATER)        \
  F("prefetch", "{(.global|.local)}(.L1|.L2)", "[a]", 20, 20, LSU, "-", nop)                       \
  F("prefetch", "{(.param|.const)}.tensormap", "[a]", 80, 90, LSU, "-", nop)                       \
  F("prefetch", ".global(.L2::evict_last|.L2::evict_normal)", "[a]", 74, 80, LSU, "-", nop)        \
  F("prefetchu", ".L1", "[a]", 20, 20, LSU, "-", nop)                                              \
  F("applypriority", "{.global}.L2::evict_normal", "[a] i:u32", 74, 80, LSU, "-", nop)             \
  F("discard", "{.global}.L2", "[a] i:u32", 74, 80, LSU, "W", LATER)                               \
  F("createpolicy", ".fractional (.L2::evict_last|.L2::evict_normal|.L2::evict_first|"             \
    ".L2::evict_unchanged){(.L2::evict_first|.L2::evict_unchanged)}.b64", "d:b64 a:f32?", 74,      \
    80, ALU, "-", createpolicy)                                                                    \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE "}.cas T.b16",           \
    "d:T [a] b:T c:T", 63, 70, LSU, "RW", atom)                                                    \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE "}.cas T(.b32|.b64)",    \
    "d:T [a] b:T c:T", 11, 11, LSU, "RW", atom)                                                    \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}.sys{" ATSPACE "}.cas T.b128",                 \
    "d:T [a] b:T c:T", 84, 90, LSU, "RW", LATER)                                                   \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}.sys{" ATSPACE                                 \
    "}.exch{.L2::cache_hint} T.b128", "d:T [a] b:T h:b64?", 84, 90, LSU, "RW", LATER)              \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{(.cta|.cluster|.gpu)}{" ATSPACE               \
    "}.cas T.b128", "d:T [a] b:T c:T", 83, 90, LSU, "RW", LATER)                                   \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{(.cta|.cluster|.gpu)}{" ATSPACE               \
    "}.exch{.L2::cache_hint} T.b128", "d:T [a] b:T h:b64?", 83, 90, LSU, "RW", LATER)              \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}(.and|.or|.xor|.exch){.L2::cache_hint} T(.b32|.b64)", "d:T_ [a] b:T h:b64?", 11, 11, LSU,    \
    "RW", atom)                                                                                    \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}.add{.L2::cache_hint} T(.u32|.s32|.u64|.f32)", "d:T_ [a] b:T h:b64?", 11, 11, LSU, "RW",     \
    atom)                                                                                          \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}.add{.L2::cache_hint} T.f64", "d:T_ [a] b:T h:b64?", 50, 60, LSU, "RW", atom)                \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}(.min|.max){.L2::cache_hint} T(.u32|.s32)", "d:T_ [a] b:T h:b64?", 11, 11, LSU, "RW", atom)  \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}(.min|.max){.L2::cache_hint} T(.u64|.s64)", "d:T_ [a] b:T h:b64?", 31, 32, LSU, "RW", atom)  \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}(.inc|.dec){.L2::cache_hint} T.u32", "d:T_ [a] b:T h:b64?", 11, 11, LSU, "RW", atom)         \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}.add.noftz{.L2::cache_hint} T.f16x2", "d:T_ [a] b:T h:b64?", 62, 60, LSU, "RW", atom)        \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}.add.noftz{.L2::cache_hint} T.f16", "d:T_ [a] b:T h:b64?", 63, 70, LSU, "RW", atom)          \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}.add.noftz{.L2::cache_hint} T(.bf16|.bf16x2)", "d:T_ [a] b:T h:b64?", 78, 90, LSU, "RW",     \
    atom)                                                                                          \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE                                       \
    "}.global.add{.L2::cache_hint}(.v2|.v4) T.f32", "d:T*_ [a] b:T* h:b64?", 81, 90, LSU, "RW",    \
    LATER)                                                                                         \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE                                       \
    "}.global(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4|.v8) T(.f16|.bf16)",                  \
    "d:T*_ [a] b:T* h:b64?", 81, 90, LSU, "RW", LATER)                                             \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE                                       \
    "}.global(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4) T(.f16x2|.bf16x2)",                  \
    "d:T*_ [a] b:T* h:b64?", 81, 90, LSU, "RW", LATER)                                             \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE                                             \
    "}(.and|.or|.xor){.L2::cache_hint} T(.b32|.b64)", "[a] b:T h:b64?", 12, 11, LSU, "RW", atom)   \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE                                             \
    "}.add{.L2::cache_hint} T(.u32|.s32|.u64|.f32)", "[a] b:T h:b64?", 12, 11, LSU, "RW", atom)    \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE "}.add{.L2::cache_hint} T.f64",             \
    "[a] b:T h:b64?", 50, 60, LSU, "RW", atom)                                                     \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE                                             \
    "}(.min|.max){.L2::cache_hint} T(.u32|.s32)", "[a] b:T h:b64?", 12, 11, LSU, "RW", atom)       \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE                                             \
    "}(.min|.max){.L2::cache_hint} T(.u64|.s64)", "[a] b:T h:b64?", 31, 32, LSU, "RW", atom)       \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE "}(.inc|.dec){.L2::cache_hint} T.u32",      \
    "[a] b:T h:b64?", 12, 11, LSU, "RW", atom)                                                     \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE "}.add.noftz{.L2::cache_hint} T.f16x2",     \
    "[a] b:T h:b64?", 62, 60, LSU, "RW", atom)                                                     \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE "}.add.noftz{.L2::cache_hint} T.f16",       \
    "[a] b:T h:b64?", 63, 70, LSU, "RW", atom)                                                     \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE                                             \
    "}.add.noftz{.L2::cache_hint} T(.bf16|.bf16x2)", "[a] b:T h:b64?", 78, 90, LSU, "RW", atom)    \
  F("red", "{(.relaxed|.release)}{" SCOPE "}.global.add{.L2::cache_hint}(.v2|.v4) T.f32",          \
    "[a] b:T* h:b64?", 81, 90, LSU, "RW", LATER)                                                   \
  F("red", "{(.relaxed|.release)}{" SCOPE                                                          \
    "}.global(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4|.v8) T(.f16|.bf16)",                  \
    "[a] b:T* h:b64?", 81, 90, LSU, "RW", LATER)                                                   \
  F("red", "{(.relaxed|.release)}{" SCOPE                                                          \
    "}.global(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4) T(.f16x2|.bf16x2)",                  \
    "[a] b:T* h:b64?", 81, 90, LSU, "RW", LATER)                                                   \
  /* control flow */                                                                               \
  F("bra", "{.uni}", "L", 10, 10, CTRL, "C", bra)                                                  \
  F("brx", ".idx{.uni}", "a:u32 SYM", 60, 30, CTRL, "C", brx)                                      \
  F("call", "{.uni}", "FN", 10, 10, CTRL, "C", call)                                               \
  F("ret", "{.uni}", "", 10, 10, CTRL, "C", ret)                                                   \
  F("exit", "", "", 10, 10, CTRL, "C", exit)                                                       \
  F("trap", "", "", 10, 10, CTRL, "C", trap)                                                       \
  F("brkpt", "", "", 10, 11, CTRL, "-", nop)                                                       \
  F("nanosleep", ".u32", "a:u32", 63, 70, CTRL, "-", nop)                                          \
  F("pmevent", "{.mask}", "i:u32", 14, 10, CTRL, "-", nop)                                         \
  /* barriers, fences, warp collectives */                                                         \
  F("bar", "{.cta}.sync", "a:u32 b:u32?", 10, 10, CTRL, "BS", bar)                                 \
  F("bar", "{.cta}.arrive", "a:u32 b:u32", 20, 20, CTRL, "BS", bar)                                \
  F("bar", "{.cta}.red.popc.u32", "d:u32 a:u32 b:u32? c:pred!", 20, 20, CTRL, "BS", bar)           \
  F("bar", "{.cta}.red(.and|.or).pred", "d:pred a:u32 b:u32? c:pred!", 20, 20, CTRL, "BS", bar)    \
  F("bar", ".warp.sync", "a:b32", 60, 30, CTRL, "BS", barwarp)                                     \
  F("barrier", "{.cta}.sync{.aligned}", "a:u32 b:u32?", 60, 30, CTRL, "BS", bar)                   \
  F("barrier", "{.cta}.arrive{.aligned}", "a:u32 b:u32", 60, 30, CTRL, "BS", bar)                  \
  F("barrier", "{.cta}.red.popc{.aligned}.u32", "d:u32 a:u32 b:u32? c:pred!", 60, 30, CTRL,        \
    "BS", bar)                                                                                     \
  F("barrier", "{.cta}.red(.and|.or){.aligned}.pred", "d:pred a:u32 b:u32? c:pred!", 60, 30,       \
    CTRL, "BS", bar)                                                                               \
  F("barrier", ".cluster.arrive{.aligned}", "", 78, 90, CTRL, "BS", LATER)                         \
  F("barrier", ".cluster.arrive(.release|.relaxed){.aligned}", "", 80, 90, CTRL, "BS", LATER)      \
  F("barrier", ".cluster.wait{.aligned}", "", 78, 90, CTRL, "BS", LATER)                           \
  F("barrier", ".cluster.wait.acquire{.aligned}", "", 80, 90, CTRL, "BS", LATER)                   \
  F("membar", "(.cta|.gl|.sys)", "", 14, 10, CTRL, "B", fence)                                     \
  F("fence", "{(.sc|.acq_rel|.acquire|.release)}" SCOPE, "", 60, 70, CTRL, "B", fence)             \
  F("fence", ".proxy.alias", "", 75, 70, CTRL, "B", fence)                                         \
  F("fence", ".proxy.async{(.global|.shared::cta|.shared::cluster)}", "", 80, 90, CTRL, "B",       \
    fence)                                                                                         \
  F("fence", ".proxy.tensormap::generic.release" SCOPE, "", 83, 90, CTRL, "B", LATER)              \
  F("fence", ".proxy.tensormap::generic.acquire" SCOPE, "[a] i:u32", 83, 90, CTRL, "B", LATER)     \
  F("fence", ".mbarrier_init.release.cluster", "", 80, 90, CTRL, "B", fence)                       \
  F("activemask", ".b32", "d:b32", 62, 30, ALU, "-", activemask)                                   \
  F("vote", ".sync(.all|.any|.uni).pred", "d:pred a:pred! m:b32", 60, 30, ALU, "S", vote)          \
  F("vote", ".sync.ballot.b32", "d:b32 a:pred! m:b32", 60, 30, ALU, "S", vote)                     \
  F("match", ".any.sync T(.b32|.b64)", "d:b32 a:T m:b32", 60, 70, ALU, "S", match)                 \
  F("match", ".all.sync T(.b32|.b64)", "d:b32| a:T m:b32", 60, 70, ALU, "S", match)                \
  F("shfl", ".sync(.up|.down|.bfly|.idx).b32", "d:b32| a:b32 b:u32 c:u32 m:b32", 60, 30, LSU,      \
    "S", shfl)                                                                                     \
  F("redux", ".sync(.add|.min|.max) T(.u32|.s32)", "d:T a:T m:b32", 70, 80, ALU, "S", redux)       \
  F("redux", ".sync(.and|.or|.xor) T.b32", "d:T a:T m:b32", 70, 80, ALU, "S", redux)               \
  F("redux", ".sync(.min|.max){.abs}{.NaN} T.f32", "d:T a:T m:b32", 86, A100, ALU, "S", LATER)     \
  F("elect", ".sync", "d:b32||_ m:b32", 80, 90, ALU, "S", LATER)                                   \
  F("griddepcontrol", "(.launch_dependents|.wait)", "", 78, 90, CTRL, "B", LATER)                  \
  F("setmaxnreg", "(.inc|.dec).sync.aligned.u32", "i:u32", 80, A90UP, CTRL, "S", LATER)            \
  /* matrix instructions by warp */                                                                \
  F("ldmatrix", ".sync.aligned.m8n8(.x1|.x2|.x4){.trans}{(.shared|.shared::cta)}.b16",             \
    "d:b32# [a]", 65, 75, LSU, "RS", ldmatrix)                                                     \
  F("stmatrix", ".sync.aligned.m8n8(.x1|.x2|.x4){.trans}{(.shared|.shared::cta)}.b16",             \
    "[a] b:b32#", 78, 90, LSU, "WS", stmatrix)                                                     \
  F("movmatrix", ".sync.aligned.m8n8.trans.b16", "d:b32 a:b32", 78, 75, ALU, "S", movmatrix)       \
  F("mma", ".sync.aligned.m16n8k8.row.col T.f32 U.f16 V.f16 W.f32",                                \
    "d:f32{4} a:b32{2} b:b32{1}~ c:f32{4}", 65, 75, TENSOR, "S", mma)                              \
  F("mma", ".sync.aligned.m16n8k8.row.col T.f32 U.bf16 V.bf16 W.f32",                              \
    "d:f32{4} a:b32{2} b:b32{1}~ c:f32{4}", 70, 80, TENSOR, "S", mma)                              \
  F("mma", ".sync.aligned.m16n8k8.row.col T.f16 U.f16 V.f16 W.f16",                                \
    "d:b32{2} a:b32{2} b:b32{1}~ c:b32{2}", 65, 75, TENSOR, "S", mma)                              \
  F("mma", ".sync.aligned.m16n8k16.row.col T.f32 U.f16 V.f16 W.f32",                               \
    "d:f32{4} a:b32{4} b:b32{2} c:f32{4}", 70, 80, TENSOR, "S", mma)                               \
  F("mma", ".sync.aligned.m16n8k16.row.col T.f32 U.bf16 V.bf16 W.f32",                             \
    "d:f32{4} a:b32{4} b:b32{2} c:f32{4}", 70, 80, TENSOR, "S", mma)                               \
  F("mma", ".sync.aligned.m16n8k16.row.col T.f16 U.f16 V.f16 W.f16",                               \
    "d:b32{2} a:b32{4} b:b32{2} c:b32{2}", 70, 80, TENSOR, "S", mma)                               \
  F("mma", ".sync.aligned.m16n8k4.row.col T.f32 U.tf32 V.tf32 W.f32",                              \
    "d:f32{4} a:b32{2} b:b32{1}~ c:f32{4}", 70, 80, TENSOR, "S", mma)                              \
  F("mma", ".sync.aligned.m16n8k8.row.col T.f32 U.tf32 V.tf32 W.f32",                              \
    "d:f32{4} a:b32{4} b:b32{2} c:f32{4}", 70, 80, TENSOR, "S", mma)                               \
  F("mma", ".sync.aligned.m16n8k32.row.col T.f32 U" FP8 "V" FP8 "W.f32",                           \
    "d:f32{4} a:b32{4} b:b32{2} c:f32{4}", 84, 89, TENSOR, "S", mma)                               \
  F("mma", ".sync.aligned.m16n8k32.row.col T.f16 U" FP8 "V" FP8 "W.f16",                           \
    "d:b32{2} a:b32{4} b:b32{2} c:b32{2}", 87, 89, TENSOR, "S", mma)                               \
  F("mma", ".sync.aligned.m16n8k16.row.col{.satfinite} T.s32 U(.s8|.u8) V(.s8|.u8) W.s32",         \
    "d:s32{4} a:b32{2} b:b32{1}~ c:s32{4}", 70, 80, TENSOR, "S", imma)                             \
  F("mma", ".sync.aligned.m16n8k32.row.col{.satfinite} T.s32 U(.s8|.u8) V(.s8|.u8) W.s32",         \
    "d:s32{4} a:b32{4} b:b32{2} c:s32{4}", 70, 80, TENSOR, "S", imma)                              \
  F("wmma", ".load.a.sync.aligned(.row|.col)" WSHAPE WSPACE "T.f16",                               \
    "d:b32{8} [a] s:u32?", 60, 70, LSU, "RS", wmma_load)                                           \
  F("wmma", ".load.b.sync.aligned(.row|.col)" WSHAPE WSPACE "T.f16",                               \
    "d:b32{8} [a] s:u32?", 60, 70, LSU, "RS", wmma_load)                                           \
  F("wmma", ".load.a.sync.aligned(.row|.col).m16n16k16" WSPACE "T.bf16",                           \
    "d:b32{4} [a] s:u32?", 70, 80, LSU, "RS", wmma_load)                                           \
  F("wmma", ".load.a.sync.aligned(.row|.col).m32n8k16" WSPACE "T.bf16",                            \
    "d:b32{8} [a] s:u32?", 70, 80, LSU, "RS", wmma_load)                                           \
  F("wmma", ".load.a.sync.aligned(.row|.col).m8n32k16" WSPACE "T.bf16",                            \
    "d:b32{2} [a] s:u32?", 70, 80, LSU, "RS", wmma_load)                                           \
  F("wmma", ".load.a.sync.aligned(.row|.col).m16n16k8" WSPACE "T.tf32",                            \
    "d:b32{4} [a] s:u32?", 70, 80, LSU, "RS", wmma_load)                                           \
  F("wmma", ".load.b.sync.aligned(.row|.col).m16n16k16" WSPACE "T.bf16",                           \
    "d:b32{4} [a] s:u32?", 70, 80, LSU, "RS", wmma_load)                                           \
  F("wmma", ".load.b.sync.aligned(.row|.col).m32n8k16" WSPACE "T.bf16",                            \
    "d:b32{2} [a] s:u32?", 70, 80, LSU, "RS", wmma_load)                                           \
  F("wmma", ".load.b.sync.aligned(.row|.col).m8n32k16" WSPACE "T.bf16",                            \
    "d:b32{8} [a] s:u32?", 70, 80, LSU, "RS", wmma_load)                                           \
  F("wmma", ".load.b.sync.aligned(.row|.col).m16n16k8" WSPACE "T.tf32",                            \
    "d:b32{4} [a] s:u32?", 70, 80, LSU, "RS", wmma_load)                                           \
  F("wmma", ".load.c.sync.aligned(.row|.col)" WSHAPE WSPACE "T.f16",                               \
    "d:b32{4} [a] s:u32?", 60, 70, LSU, "RS", wmma_load)                                           \
  F("wmma", ".load.c.sync.aligned(.row|.col)" WSHAPE WSPACE "T.f32",                               \
    "d:f32{8} [a] s:u32?", 60, 70, LSU, "RS", wmma_load)                                           \
  F("wmma", ".load.c.sync.aligned(.row|.col).m16n16k8" WSPACE "T.f32",                             \
    "d:f32{8} [a] s:u32?", 70, 80, LSU, "RS", wmma_load)                                           \
  F("wmma", ".store.d.sync.aligned(.row|.col)" WSHAPE WSPACE "T.f16",                              \
    "[a] b:b32{4} s:u32?", 60, 70, LSU, "WS", wmma_store)                                          \
  F("wmma", ".store.d.sync.aligned(.row|.col)" WSHAPE WSPACE "T.f32",                              \
    "[a] b:f32{8} s:u32?", 60, 70, LSU, "WS", wmma_store)                                          \
  F("wmma", ".store.d.sync.aligned(.row|.col).m16n16k8" WSPACE "T.f32",                            \
    "[a] b:f32{8} s:u32?", 70, 80, LSU, "WS", wmma_store)                                          \
  F("wmma", ".mma.sync.aligned(.row|.col)(.row|.col)" WSHAPE "T.f32 W.f32",                        \
    "d:f32{8} a:b32{8} b:b32{8} c:f32{8}", 60, 70, TENSOR, "S", wmma_mma)                          \
  F("wmma", ".mma.sync.aligned(.row|.col)(.row|.col)" WSHAPE "T.f32 W.f16",                        \
    "d:f32{8} a:b32{8} b:b32{8} c:b32{4}", 60, 70, TENSOR, "S", wmma_mma)                          \
  F("wmma", ".mma.sync.aligned(.row|.col)(.row|.col)" WSHAPE "T.f16 W.f32",                        \
    "d:b32{4} a:b32{8} b:b32{8} c:f32{8}", 60, 70, TENSOR, "S", wmma_mma)                          \
  F("wmma", ".mma.sync.aligned(.row|.col)(.row|.col)" WSHAPE "T.f16 W.f16",                        \
    "d:b32{4} a:b32{8} b:b32{8} c:b32{4}", 60, 70, TENSOR, "S", wmma_mma)                          \
  F("wmma", ".mma.sync.aligned(.row|.col)(.row|.col).m16n16k16 T.f32 U.bf16 V.bf16 W.f32",         \
    "d:f32{8} a:b32{4} b:b32{4} c:f32{8}", 70, 80, TENSOR, "S", wmma_mma)                          \
  F("wmma", ".mma.sync.aligned(.row|.col)(.row|.col).m32n8k16 T.f32 U.bf16 V.bf16 W.f32",          \
    "d:f32{8} a:b32{8} b:b32{2} c:f32{8}", 70, 80, TENSOR, "S", wmma_mma)                          \
  F("wmma", ".mma.sync.aligned(.row|.col)(.row|.col).m8n32k16 T.f32 U.bf16 V.bf16 W.f32",          \
    "d:f32{8} a:b32{2} b:b32{8} c:f32{8}", 70, 80, TENSOR, "S", wmma_mma)                          \
  F("wmma", ".mma.sync.aligned(.row|.col)(.row|.col).m16n16k8 T.f32 U.tf32 V.tf32 W.f32",          \
    "d:f32{8} a:b32{4} b:b32{4} c:f32{8}", 70, 80, TENSOR, "S", wmma_mma)                          \
  /* asynchronous copies */                                                                        \
  F("cp", ".async.ca(.shared|.shared::cta).global{.L2::cache_hint}{" L2PRE "}",                    \
    "[d] [a] i:u32 n:u32? h:b64?", 70, 80, LSU, "RWA", LATER)                                      \
  F("cp", ".async.cg(.shared|.shared::cta).global{.L2::cache_hint}{" L2PRE "}",                    \
    "[d] [a] i:u32 n:u32? h:b64?", 70, 80, LSU, "RWA", LATER)                                      \
  F("cp", ".async.commit_group", "", 70, 80, LSU, "A", LATER)                                      \
  F("cp", ".async.wait_group", "i:u32", 70, 80, CTRL, "B", LATER)                                  \
  F("cp", ".async.wait_all", "", 70, 80, CTRL, "B", LATER)                                         \
  F("cp", ".async.mbarrier.arrive{.noinc}{.shared}.b64", "[a]", 70, 80, LSU, "A", LATER)           \
  F("cp", ".async.mbarrier.arrive{.noinc}.shared::cta.b64", "[a]", 78, 80, LSU, "A", LATER)        \
  F("cp",                                                                                          \
    ".async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{.multicast::cluster}"         \
    "{.L2::cache_hint}", "[d] [a] n:u32 [m] x:u16? h:b64?", 80, 90, TMA, "RWA", LATER)             \
  F("cp", ".async.bulk.shared::cta.global.mbarrier::complete_tx::bytes{.L2::cache_hint}",          \
    "[d] [a] n:u32 [m] h:b64?", 86, 90, TMA, "RWA", LATER)                                         \
  F("cp", ".async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",                  \
    "[d] [a] n:u32 [m]", 80, 90, TMA, "RWA", LATER)                                                \
  F("cp", ".async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}", "[d] [a] n:u32 h:b64?",    \
    80, 90, TMA, "RWA", LATER)                                                                     \
  F("cp", ".async.bulk.prefetch.L2.global{.L2::cache_hint}", "[a] n:u32 h:b64?", 80, 90, TMA,      \
    "A", nop)                                                                                      \
  F("cp", ".async.bulk.commit_group", "", 80, 90, TMA, "A", LATER)                                 \
  F("cp", ".async.bulk.wait_group{.read}", "i:u32", 80, 90, CTRL, "B", LATER)                      \
  F("cp",                                                                                          \
    ".async.bulk.tensor(.1d|.2d|.3d|.4d|.5d).shared::cluster.global{.tile}"                        \
    ".mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint}",                         \
    "[d] TMAP [m] x:u16? h:b64?", 80, 90, TMA, "RWA", LATER)                                       \
  F("cp",                                                                                          \
    ".async.bulk.tensor(.1d|.2d|.3d|.4d|.5d).shared::cta.global{.tile}"                            \
    ".mbarrier::complete_tx::bytes{.L2::cache_hint}", "[d] TMAP [m] h:b64?", 86, 90, TMA, "RWA",   \
    LATER)                                                                                         \
  F("cp", ".async.bulk.tensor(.1d|.2d|.3d|.4d|.5d).global.shared::cta{.tile}.bulk_group"           \
    "{.L2::cache_hint}", "TMAP [a] h:b64?", 80, 90, TMA, "RWA", LATER)                             \
  F("cp", ".async.bulk.prefetch.tensor(.1d|.2d|.3d|.4d|.5d).L2.global{.tile}{.L2::cache_hint}",    \
    "TMAP h:b64?", 80, 90, TMA, "A", nop)                                                          \
  F("cp",                                                                                          \
    ".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}(.and|.or|.xor)"             \
    " T(.b32|.b64)", "[d] [a] n:u32 h:b64?", 80, 90, TMA, "RWA", LATER)                            \
  F("cp", ".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}(.inc|.dec) T.u32",    \
    "[d] [a] n:u32 h:b64?", 80, 90, TMA, "RWA", LATER)                                             \
  F("cp",                                                                                          \
    ".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}"                            \
    ".add T(.u32|.s32|.u64|.f32|.f64)", "[d] [a] n:u32 h:b64?", 80, 90, TMA, "RWA", LATER)         \
  F("cp",                                                                                          \
    ".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}(.min|.max)"                 \
    " T(.u32|.s32|.u64|.s64|.f16|.bf16)", "[d] [a] n:u32 h:b64?", 80, 90, TMA, "RWA", LATER)       \
  F("cp",                                                                                          \
    ".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.add.noftz T(.f16|.bf16)",   \
    "[d] [a] n:u32 h:b64?", 80, 90, TMA, "RWA", LATER)                                             \
  F("cp", ".reduce.async.bulk.tensor(.1d|.2d|.3d|.4d|.5d).global.shared::cta"                      \
    "(.add|.min|.max|.inc|.dec|.and|.or|.xor){.tile}.bulk_group{.L2::cache_hint}",                 \
    "TMAP [a] h:b64?", 80, 90, TMA, "RWA", LATER)                                                  \
  /* mbarrier */                                                                                   \
  F("mbarrier", ".init{(.shared|.shared::cta)}.b64", "[a] n:u32", 70, 80, LSU, "W", LATER)         \
  F("mbarrier", ".inval{(.shared|.shared::cta)}.b64", "[a]", 70, 80, LSU, "W", LATER)              \
  F("mbarrier",                                                                                    \
    ".expect_tx{.relaxed(.cta|.cluster)}{(.shared|.shared::cta|.shared::cluster)}.b64",            \
    "[a] n:u32", 80, 90, LSU, "WB", LATER)                                                         \
  F("mbarrier",                                                                                    \
    ".complete_tx{.relaxed(.cta|.cluster)}{(.shared|.shared::cta|.shared::cluster)}.b64",          \
    "[a] n:u32", 80, 90, LSU, "WB", LATER)                                                         \
  F("mbarrier",                                                                                    \
    ".arrive.expect_tx{.release(.cta|.cluster)}{(.shared|.shared::cta|.shared::cluster)}.b64",     \
    "d:b64_ [a] n:u32", 80, 90, LSU, "WB", LATER)                                                  \
  F("mbarrier",                                                                                    \
    ".arrive.expect_tx.relaxed(.cta|.cluster){(.shared|.shared::cta|.shared::cluster)}.b64",       \
    "d:b64_ [a] n:u32", 86, 90, LSU, "WB", LATER)                                                  \
  F("mbarrier", ".arrive.noComplete{(.shared|.shared::cta)}.b64", "d:b64_ [a] n:u32", 70, 80,      \
    LSU, "WB", LATER)                                                                              \
  F("mbarrier", ".arrive.noComplete.release.cta{(.shared|.shared::cta)}.b64",                      \
    "d:b64_ [a] n:u32", 80, 80, LSU, "WB", LATER)                                                  \
  F("mbarrier", ".arrive{(.shared|.shared::cta)}.b64", "d:b64_ [a]", 70, 80, LSU, "WB", LATER)     \
  F("mbarrier", ".arrive{(.shared|.shared::cta)}.b64", "d:b64_ [a] n:u32", 78, 90, LSU, "WB",      \
    LATER)                                                                                         \
  F("mbarrier", ".arrive.release.cta{(.shared|.shared::cta)}.b64", "d:b64_ [a]", 80, 80, LSU,      \
    "WB", LATER)                                                                                   \
  F("mbarrier", ".arrive{.release(.cta|.cluster)}{(.shared|.shared::cta|.shared::cluster)}.b64",   \
    "d:b64_ [a] n:u32?", 80, 90, LSU, "WB", LATER)                                                 \
  F("mbarrier", ".arrive.relaxed(.cta|.cluster){(.shared|.shared::cta|.shared::cluster)}.b64",     \
    "d:b64_ [a] n:u32?", 86, 90, LSU, "WB", LATER)                                                 \
  F("mbarrier", ".arrive_drop{(.shared|.shared::cta)}.b64", "d:b64_ [a]", 70, 80, LSU, "WB",       \
    LATER)                                                                                         \
  F("mbarrier", ".arrive_drop{(.shared|.shared::cta)}.b64", "d:b64_ [a] n:u32", 78, 90, LSU,       \
    "WB", LATER)                                                                                   \
  F("mbarrier", ".arrive_drop.release.cta{(.shared|.shared::cta)}.b64", "d:b64_ [a]", 80, 80,      \
    LSU, "WB", LATER)                                                                              \
  F("mbarrier",                                                                                    \
    ".arrive_drop{.release(.cta|.cluster)}{(.shared|.shared::cta|.shared::cluster)}.b64",          \
    "d:b64_ [a] n:u32?", 80, 90, LSU, "WB", LATER)                                                 \
  F("mbarrier",                                                                                    \
    ".arrive_drop.relaxed(.cta|.cluster){(.shared|.shared::cta|.shared::cluster)}.b64",            \
    "d:b64_ [a] n:u32?", 86, 90, LSU, "WB", LATER)                                                 \
  F("mbarrier", ".test_wait{(.shared|.shared::cta)}.b64", "d:pred [a] s:b64", 70, 80, LSU, "RB",   \
    LATER)                                                                                         \
  F("mbarrier", ".test_wait.acquire.cta{(.shared|.shared::cta)}.b64", "d:pred [a] s:b64", 80,      \
    80, LSU, "RB", LATER)                                                                          \
  F("mbarrier", ".test_wait.acquire.cluster{(.shared|.shared::cta)}.b64", "d:pred [a] s:b64",      \
    80, 90, LSU, "RB", LATER)                                                                      \
  F("mbarrier", ".test_wait.relaxed(.cta|.cluster){(.shared|.shared::cta)}.b64",                   \
    "d:pred [a] s:b64", 86, 90, LSU, "RB", LATER)                                                  \
  F("mbarrier", ".test_wait.parity{(.shared|.shared::cta)}.b64", "d:pred [a] s:u32", 71, 80,       \
    LSU, "RB", LATER)                                                                              \
  F("mbarrier", ".test_wait.parity.acquire.cta{(.shared|.shared::cta)}.b64", "d:pred [a] s:u32",   \
    80, 80, LSU, "RB", LATER)                                                                      \
  F("mbarrier", ".test_wait.parity.acquire.cluster{(.shared|.shared::cta)}.b64",                   \
    "d:pred [a] s:u32", 80, 90, LSU, "RB", LATER)                                                  \
  F("mbarrier", ".test_wait.parity.relaxed(.cta|.cluster){(.shared|.shared::cta)}.b64",            \
    "d:pred [a] s:u32", 86, 90, LSU, "RB", LATER)                                                  \
  F("mbarrier", ".try_wait{(.shared|.shared::cta)}.b64", "d:pred [a] s:b64 t:u32?", 78, 90, LSU,   \
    "RB", LATER)                                                                                   \
  F("mbarrier", ".try_wait.acquire.cta{(.shared|.shared::cta)}.b64", "d:pred [a] s:b64 t:u32?",    \
    80, 90, LSU, "RB", LATER)                                                                      \
  F("mbarrier", ".try_wait.acquire.cluster{(.shared|.shared::cta)}.b64",                           \
    "d:pred [a] s:b64 t:u32?", 80, 90, LSU, "RB", LATER)                                           \
  F("mbarrier", ".try_wait.relaxed(.cta|.cluster){(.shared|.shared::cta)}.b64",                    \
    "d:pred [a] s:b64 t:u32?", 86, 90, LSU, "RB", LATER)                                           \
  F("mbarrier", ".try_wait.parity{(.shared|.shared::cta)}.b64", "d:pred [a] s:u32 t:u32?", 78,     \
    90, LSU, "RB", LATER)                                                                          \
  F("mbarrier", ".try_wait.parity.acquire.cta{(.shared|.shared::cta)}.b64",                        \
    "d:pred [a] s:u32 t:u32?", 80, 90, LSU, "RB", LATER)                                           \
  F("mbarrier", ".try_wait.parity.acquire.cluster{(.shared|.shared::cta)}.b64",                    \
    "d:pred [a] s:u32 t:u32?", 80, 90, LSU, "RB", LATER)                                           \
  F("mbarrier", ".try_wait.parity.relaxed(.cta|.cluster){(.shared|.shared::cta)}.b64",             \
    "d:pred [a] s:u32 t:u32?", 86, 90, LSU, "RB", LATER)                                           \
  F("mbarrier", ".pending_count.b64", "d:u32 a:b64", 70, 80, ALU, "-", LATER)                      \
  /* warpgroup matrix instructions; SHAPE = .m64n8k16 ... .m64n256k32: any .m64nNkK */             \
  F("wgmma", ".fence.sync.aligned", "", 80, A90, TENSOR, "BS", LATER)                              \
  F("wgmma", ".commit_group.sync.aligned", "", 80, A90, TENSOR, "AS", LATER)                       \
  F("wgmma", ".wait_group.sync.aligned", "i:u32", 80, A90, TENSOR, "BS", LATER)                    \
  F("wgmma", ".mma_async.sync.aligned .m64nNk16 T(.f32|.f16) U.f16 V.f16",                         \
    "D:T{n} A:b64@ b:b64 p:pred! i:s32 i:s32 i:u32 i:u32?", 80, A90, TENSOR, "RAS", LATER)         \
  F("wgmma", ".mma_async.sync.aligned .m64nNk16 T.f32 U.bf16 V.bf16",                              \
    "D:T{n} A:b64@ b:b64 p:pred! i:s32 i:s32 i:u32 i:u32?", 80, A90, TENSOR, "RAS", LATER)         \
  F("wgmma", ".mma_async.sync.aligned .m64nNk8 T.f32 U.tf32 V.tf32",                               \
    "D:T{n} A:b64@ b:b64 p:pred! i:s32 i:s32", 80, A90, TENSOR, "RAS", LATER)                      \
  F("wgmma", ".mma_async.sync.aligned .m64nNk32 T(.f32|.f16) U" FP8 "V" FP8,                       \
    "D:T{n} A:b64@ b:b64 p:pred! i:s32 i:s32", 80, A90, TENSOR, "RAS", LATER)                      \
  F("wgmma", ".mma_async.sync.aligned .m64nNk32{.satfinite} T.s32 U.s8 V.s8",                      \
    "D:T{n} A:b64@ b:b64 p:pred!", 80, A90, TENSOR, "RAS", LATER)                                  \
  F("wgmma", ".mma_async.sync.aligned .m64nNk32{.satfinite} T.s32 U.u8 V.u8",                      \
    "D:T{n} A:b64@ b:b64 p:pred!", 80, A90, TENSOR, "RAS", LATER)                                  \
  F("wgmma", ".mma_async.sync.aligned .m64nNk32{.satfinite} T.s32 U.s8 V.u8",                      \
    "D:T{n} A:b64@ b:b64 p:pred!", 84, A90, TENSOR, "RAS", LATER)                                  \
  F("wgmma", ".mma_async.sync.aligned .m64nNk32{.satfinite} T.s32 U.u8 V.s8",                      \
    "D:T{n} A:b64@ b:b64 p:pred!", 84, A90, TENSOR, "RAS", LATER)

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
