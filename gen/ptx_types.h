// PTX's fundamental types, state spaces and comparison of register classes.
#ifndef PTXSMITH_PTX_TYPES_H
#define PTXSMITH_PTX_TYPES_H

//    id       text         bits class     class: B bits, U unsigned, S signed, F float, X packed, P
#define PTX_TYPES(X)                                                                               \
  X(B8, "b8", 8, 'B')                                                                              \
  X(B16, "b16", 16, 'B')                                                                           \
  X(B32, "b32", 32, 'B')                                                                           \
  X(B64, "b64", 64, 'B')                                                                           \
  X(B128, "b128", 128, 'B')                                                                        \
  X(U8, "u8", 8, 'U')                                                                              \
  X(U16, "u16", 16, 'U')                                                                           \
  X(U32, "u32", 32, 'U')                                                                           \
  X(U64, "u64", 64, 'U')                                                                           \
  X(S8, "s8", 8, 'S')                                                                              \
  X(S16, "s16", 16, 'S')                                                                           \
  X(S32, "s32", 32, 'S')                                                                           \
  X(S64, "s64", 64, 'S')                                                                           \
  X(F16, "f16", 16, 'F')                                                                           \
  X(F32, "f32", 32, 'F')                                                                           \
  X(F64, "f64", 64, 'F')                                                                           \
  X(F16X2, "f16x2", 32, 'X')                                                                       \
  X(BF16, "bf16", 16, 'X')                                                                         \
  X(BF16X2, "bf16x2", 32, 'X')                                                                     \
  X(TF32, "tf32", 32, 'X')                                                                         \
  X(E4M3, "e4m3", 8, 'X')                                                                          \
  X(E5M2, "e5m2", 8, 'X')                                                                          \
  X(E4M3X2, "e4m3x2", 16, 'X')                                                                     \
  X(E5M2X2, "e5m2x2", 16, 'X')                                                                     \
  X(U16X2, "u16x2", 32, 'X')                                                                       \
  X(S16X2, "s16x2", 32, 'X')                                                                       \
  X(F32X2, "f32x2", 64, 'X')                                                                       \
  X(PRED, "pred", 1, 'P')

typedef enum PtxType {
  PTX_T_NONE = 0,
#define X(id, ...) PTX_T_##id,
  PTX_TYPES(X)
#undef X
  PTX_T_COUNT
} PtxType;

typedef struct PtxTypeInfo {
  const char *text;
  int bits;
  char class;
} PtxTypeInfo;
extern const PtxTypeInfo ptx_type_infos[PTX_T_COUNT];
static inline int ptx_type_bits(PtxType t) { return ptx_type_infos[t].bits; }
static inline char ptx_type_class(PtxType t) { return ptx_type_infos[t].class; }
// "f32", without the dot.
static inline const char *ptx_type_text(PtxType t) { return ptx_type_infos[t].text; }

typedef enum PtxSpace {
  PTX_S_GENERIC = 0, // no space written
  PTX_S_REG,
  PTX_S_GLOBAL,
  PTX_S_SHARED, // .shared and .shared::cta
  PTX_S_CLUSTER, // .shared::cluster
  PTX_S_LOCAL,
  PTX_S_PARAM, // kernel parameters, and the parameters of calls
  PTX_S_CONST,
  PTX_S_COUNT
} PtxSpace;
const char *ptx_space_text(PtxSpace s);

#endif
