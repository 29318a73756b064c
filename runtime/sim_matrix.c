// sim_matrix.c: mma.sync on the fragments of a warp's registers.  ISA 9.7.14.5; sim_matrix.h.
#include <stdlib.h>

#include "sim_matrix_ops.h"

const Op *sim_together(Warp *w, const Op *op) {
  if (w->active == SIM_FULL)
    return NULL;
  uint32_t lane = (uint32_t)sim_first(w->active);
  if (w->lanes != SIM_FULL)
    return sim_trap_at(w, op, lane, "a matrix instruction needs 32 threads: this warp has %d",
                       __builtin_popcount(w->lanes));
  if (w->gone)
    return sim_trap_at(w, op, lane, ".aligned needs all lanes of the warp: lanes %08x have ended",
                       w->gone);
  return sim_wait_lanes(w, op, SIM_FULL);
}

// ---- operands -----------------------------------------------------------------------------------
// Registers of a vector, or of a scalar that stands for a vector of one, behind those in the list.
void sim_list_regs(Decoder *x, OpMore *more, const PtxOperand *o, PtxType type, bool dest) {
  int n = o->kind == PTX_O_VEC ? o->n : 1;
  for (int i = 0; i < n; i++) {
    const PtxOperand *e = o->kind == PTX_O_VEC ? &o->v[i] : o;
    uint32_t at = dest ? sim_dest(x, e, 4) : sim_source(x, e, type, 4);
    *arena_push(x->prog->arena, more->list, more->nlist, more->cap) = at;
  }
}

void sim_words(const Warp *w, const uint32_t *list, int n, uint32_t *words[]) {
  for (int i = 0; i < n; i++)
    words[i] = sim_r32(w, list[i]);
}

MatrixType sim_matrix_type(PtxType t) {
  switch (t) {
  case PTX_T_BF16: return MATRIX_BF16;
  case PTX_T_TF32: return MATRIX_TF32;
  case PTX_T_E4M3: return MATRIX_E4M3;
  case PTX_T_E5M2: return MATRIX_E5M2;
  default: return MATRIX_F16;
  }
}

// ".m16n8k32"
void sim_matrix_shape(const PtxInst *in, int shape[3]) {
  for (int i = 0; i < in->nmods; i++) {
    char *p = (char *)ptx_mod_text(in->mods[i]);
    if (p[0] != 'm' || p[1] < '0' || p[1] > '9')
      continue;
    for (int k = 0; k < 3; k++)
      shape[k] = (int)strtol(p + 1, &p, 10);
  }
}

// ---- accumulators -------------------------------------------------------------------------------
// One 16 x 8 tile of them: four registers of f32, or two of f16 pairs.
void sim_load_acc(const MatrixIsa *isa, Acc *acc, uint32_t *const *regs, bool half) {
  for (int i = 0; i < 4; i++)
    acc->p[i] = acc->v[i]; // cppcheck-suppress uninitvar ; an array: its address is taken
  if (half)
    isa->unpack(acc->p, (const uint32_t *const *)regs);
  else
    for (int i = 0; i < 4; i++)
      memcpy(acc->v[i], regs[i], sizeof acc->v[i]);
}

void sim_store_acc(const MatrixIsa *isa, const Acc *acc, uint32_t *const *regs, bool half) {
  if (half)
    isa->pack(regs, (const float *const *)acc->p);
  else
    for (int i = 0; i < 4; i++)
      memcpy(regs[i], acc->v[i], sizeof acc->v[i]);
}

// ---- mma on floats ------------------------------------------------------------------------------
enum { MAX_WORDS = 4 };

// kind, type: types of A and B; bytes: K; vec: rule.  list: d, a, b, c.
static const Op *op_mma(Warp *w, const Op *op) {
  const Op *stop = sim_together(w, op);
  if (stop)
    return stop;
  const MatrixIsa *isa = w->cta->grid->dev->isa->matrix;
  const MatrixRule *rule = &matrix_rules[op->vec];
  const uint32_t *list = op->more->list;
  int k = op->bytes, na = k * matrix_type_bits(op->kind) / 64, nc = rule->half ? 2 : 4;
  uint32_t *d[MAX_WORDS], *a[MAX_WORDS], *b[MAX_WORDS], *c[MAX_WORDS];
  sim_words(w, list, nc, d);
  sim_words(w, list += nc, na, a);
  sim_words(w, list += na, na / 2, b);
  sim_words(w, list += na / 2, nc, c);
  MatrixA x;
  MatrixB y;
  Acc acc;
  isa->load_a(&x, op->kind, k, (const uint32_t *const *)a);
  isa->load_b(&y, op->type, k, (const uint32_t *const *)b);
  sim_load_acc(isa, &acc, c, rule->half);
  isa->multiply(rule, k, &x, &y, (const float *const *)acc.p, acc.p);
  sim_store_acc(isa, &acc, d, rule->half);
  return op + 1;
}

static Op *emit_mma(Decoder *x, const PtxInst *in, OpFn fn) {
  sim_split_guard(x);
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  int shape[3];
  sim_matrix_shape(in, shape);
  sim_list_regs(x, more, &in->opnds[0], PTX_T_NONE, true);
  sim_list_regs(x, more, &in->opnds[1], PTX_T_B32, false);
  sim_list_regs(x, more, &in->opnds[2], PTX_T_B32, false);
  sim_list_regs(x, more, &in->opnds[3], in->type[3] == PTX_T_F16 ? PTX_T_B32 : in->type[3], false);
  Op *op = sim_emit(x, fn);
  op->more = more;
  op->bytes = (uint8_t)shape[2];
  op->flops = (uint16_t)(2 * shape[0] * shape[1] * shape[2] / 32);
  return op;
}

bool sim_mma(Decoder *x, const PtxInst *in) {
  Op *op = emit_mma(x, in, op_mma);
  op->kind = (uint8_t)sim_matrix_type(in->type[1]);
  op->type = (uint8_t)sim_matrix_type(in->type[2]);
  bool half = in->type[0] == PTX_T_F16, small = matrix_type_bits(op->kind) == 8;
  op->vec = small ? (half ? MATRIX_RULE_MMA8_F16 : MATRIX_RULE_MMA8_F32)
                  : (half ? MATRIX_RULE_F16 : MATRIX_RULE_F32);
  return true;
}

// ---- mma on integers ----------------------------------------------------------------------------
// Bytes of row (or column) g of a tile as integers: words of lanes 4g to 4g + 3, then the next 16.
static void bytes_of(int32_t *to, uint32_t *const *words, int step, int nwords, int g, bool sign) {
  for (int r = 0; r < nwords; r++)
    for (int i = 0; i < 16; i++) {
      uint8_t u = (uint8_t)(words[r * step][4 * g + (i >> 2)] >> 8 * (i & 3));
      to[16 * r + i] = sign ? (int8_t)u : u;
    }
}

static int32_t add_product(int32_t c, const int32_t *a, const int32_t *b, int k, bool saturate) {
  int64_t sum = c;
  for (int i = 0; i < k; i++)
    sum += a[i] * b[i];
  if (saturate)
    sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
  return (int32_t)(uint32_t)sum;
}

// kind, type: A, B signed; vec: .satfinite; bytes: K.
static const Op *op_imma(Warp *w, const Op *op) {
  const Op *stop = sim_together(w, op);
  if (stop)
    return stop;
  const uint32_t *list = op->more->list;
  int k = op->bytes, nb = k / 16;
  uint32_t *d[4], *a[4], *b[2], *c[4], out[4][32];
  sim_words(w, list, 4, d);
  sim_words(w, list + 4, 2 * nb, a);
  sim_words(w, list + 4 + 2 * nb, nb, b);
  sim_words(w, list + 4 + 3 * nb, 4, c);
  int32_t row[32], col[8][32];
  for (int n = 0; n < 8; n++)
    bytes_of(col[n], b, 1, nb, n, op->type);
  for (int m = 0; m < 16; m++) {
    bytes_of(row, a + (m >> 3), 2, nb, m & 7, op->kind);
    for (int n = 0; n < 8; n++) {
      int i = 2 * (m >> 3) + (n & 1), lane = 4 * (m & 7) + (n >> 1);
      out[i][lane] = (uint32_t)add_product((int32_t)c[i][lane], row, col[n], k, op->vec);
    }
  }
  for (int i = 0; i < 4; i++)
    memcpy(d[i], out[i], sizeof out[i]);
  return op + 1;
}

bool sim_imma(Decoder *x, const PtxInst *in) {
  Op *op = emit_mma(x, in, op_imma);
  op->kind = in->type[1] == PTX_T_S8;
  op->type = in->type[2] == PTX_T_S8;
  op->vec = ptx_inst_has(in, "satfinite");
  return true;
}
