// What the matrix instructions of a warp share.
#ifndef PTXSMITH_SIM_MATRIX_OPS_H
#define PTXSMITH_SIM_MATRIX_OPS_H

#include "sim_decode.h"
#include "sim_ops.h"

// .sync.aligned: all 32 lanes must be here; NULL when they are, else what the Op returns.
const Op *sim_together(Warp *w, const Op *op);

void sim_list_regs(Decoder *x, OpMore *more, const PtxOperand *o, PtxType type, bool dest);
void sim_words(const Warp *w, const uint32_t *list, int n, uint32_t *words[]);
MatrixType sim_matrix_type(PtxType t);
void sim_matrix_shape(const PtxInst *in, int shape[3]); // M, N, K

// Accumulators of a 16 x 8 tile as floats; `half`: their registers hold pairs of f16.
typedef struct Acc {
  float v[4][32] __attribute__((aligned(64)));
  float *p[4];
} Acc;
void sim_load_acc(const MatrixIsa *isa, Acc *acc, uint32_t *const *regs, bool half);
void sim_store_acc(const MatrixIsa *isa, const Acc *acc, uint32_t *const *regs, bool half);

#endif
