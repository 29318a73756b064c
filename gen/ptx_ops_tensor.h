#ifndef PTXSMITH_PTX_OPS_TENSOR_H
#define PTXSMITH_PTX_OPS_TENSOR_H

// Rows of the opcode-form table: matrix instructions of a warp and of a warpgroup.
// The notation is explained in ptx_ops.h, which puts the table together.

#define PTX_FORMS_TENSOR(F)                                                                        \
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
  /* warpgroup matrix instructions; SHAPE = .m64n8k16 ... .m64n256k32: any .m64nNkK */             \
  F("wgmma", ".fence.sync.aligned", "", 80, A90, TENSOR, "BS", wgmma)                              \
  F("wgmma", ".commit_group.sync.aligned", "", 80, A90, TENSOR, "AS", wgmma)                       \
  F("wgmma", ".wait_group.sync.aligned", "i:u32", 80, A90, TENSOR, "BS", wgmma)                    \
  F("wgmma", ".mma_async.sync.aligned .m64nNk16 T(.f32|.f16) U.f16 V.f16",                         \
    "D:T{n} A:b64@ b:b64 p:pred! i:s32 i:s32 i:u32 i:u32?", 80, A90, TENSOR, "RAS", wgmma)         \
  F("wgmma", ".mma_async.sync.aligned .m64nNk16 T.f32 U.bf16 V.bf16",                              \
    "D:T{n} A:b64@ b:b64 p:pred! i:s32 i:s32 i:u32 i:u32?", 80, A90, TENSOR, "RAS", wgmma)         \
  F("wgmma", ".mma_async.sync.aligned .m64nNk8 T.f32 U.tf32 V.tf32",                               \
    "D:T{n} A:b64@ b:b64 p:pred! i:s32 i:s32", 80, A90, TENSOR, "RAS", wgmma)                      \
  F("wgmma", ".mma_async.sync.aligned .m64nNk32 T(.f32|.f16) U" FP8 "V" FP8,                       \
    "D:T{n} A:b64@ b:b64 p:pred! i:s32 i:s32", 80, A90, TENSOR, "RAS", wgmma)                      \
  F("wgmma", ".mma_async.sync.aligned .m64nNk32{.satfinite} T.s32 U.s8 V.s8",                      \
    "D:T{n} A:b64@ b:b64 p:pred!", 80, A90, TENSOR, "RAS", wgmma)                                  \
  F("wgmma", ".mma_async.sync.aligned .m64nNk32{.satfinite} T.s32 U.u8 V.u8",                      \
    "D:T{n} A:b64@ b:b64 p:pred!", 80, A90, TENSOR, "RAS", wgmma)                                  \
  F("wgmma", ".mma_async.sync.aligned .m64nNk32{.satfinite} T.s32 U.s8 V.u8",                      \
    "D:T{n} A:b64@ b:b64 p:pred!", 84, A90, TENSOR, "RAS", wgmma)                                  \
  F("wgmma", ".mma_async.sync.aligned .m64nNk32{.satfinite} T.s32 U.u8 V.s8",                      \
    "D:T{n} A:b64@ b:b64 p:pred!", 84, A90, TENSOR, "RAS", wgmma)

#endif
