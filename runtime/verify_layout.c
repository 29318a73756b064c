#include "verify_layout.h"

#include <stdlib.h>
#include <string.h>

const char *const input_names[NINPUTS] = {
    "q",         "k",          "v",         "alibi_slopes", "sinks",
    "descale_q", "descale_k",  "descale_v", "cu_seqlens_q", "cu_seqlens_k",
    "seqlens_k", "block_table"};

enum { TAIL_ROWS = 5 }; // memory past the last key, which no query may see

static bool takes(const Operator *op, int input) {
  return operator_arg(op, input_names[input]) != NULL;
}

// ---- i32 tensors -------------------------------------------------------------------------------
// Dense first, then row by row into a layout with gaps.
static Status make_lengths(const Operator *op, int input, uint64_t seed, HostTensor *out, Diag *d) {
  const ArgDecl *arg = operator_arg(op, input_names[input]);
  int64_t shape[TENSOR_MAX_RANK] = {0};
  Status st = arg_shape(arg, op->problem, shape, d);
  if (st != ST_OK) return st;
  int64_t rows = arg->rank == 2 ? shape[0] : 1, columns = shape[arg->rank - 1];
  int32_t *dense = malloc(sizeof *dense * (size_t)(rows * columns + 1));
  if (!dense) return diag_fail(d, ST_INPUT, "not enough host memory for %s", arg->name);
  st = lengths_fill(op->problem, arg->name, seed, dense, d);
  if (st == ST_OK) st = host_tensor_make(out, DT_I32, arg->rank, shape, &layout_q, FILL_ZERO, d);
  for (int64_t r = 0; st == ST_OK && r < rows; r++)
    memcpy((int32_t *)out->host + (arg->rank == 2 ? r * out->t.stride[0] : 0), dense + r * columns,
           sizeof *dense * (size_t)columns);
  free(dense);
  return st;
}

// ---- rows --------------------------------------------------------------------------------------
static void copy_row(const HostTensor *from, int64_t b, int64_t i, HostTensor *to, int64_t x,
                     int64_t y) {
  const int64_t *n = from->t.shape;
  size_t bytes = (size_t)n[3] * (size_t)dtype_bytes(from->t.dtype);
  size_t size = (size_t)dtype_bytes(from->t.dtype);
  for (int64_t h = 0; h < n[2]; h++)
    memcpy((char *)to->host + (size_t)tensor_at(&to->t, x, y, h, 0) * size,
           (char *)from->host + (size_t)tensor_at(&from->t, b, i, h, 0) * size, bytes);
}

static Status pack(const Problem *p, const HostTensor *from, bool keys, const Layout *l, Fill fill,
                   HostTensor *to, Diag *d) {
  const int64_t *n = from->t.shape;
  int64_t total = 0;
  for (int64_t b = 0; b < n[0]; b++) total += keys ? problem_len_k(p, b) : problem_len_q(p, b);
  int64_t shape[4] = {1, total + (keys ? TAIL_ROWS : 0), n[2], n[3]}, at = 0;
  Status st = host_tensor_make(to, from->t.dtype, 4, shape, l, fill, d);
  if (st != ST_OK) return st;
  to->t.shape[1] = total;
  for (int64_t b = 0; b < n[0]; b++)
    for (int64_t i = 0; i < (keys ? problem_len_k(p, b) : problem_len_q(p, b)); i++)
      copy_row(from, b, i, to, 0, at++);
  return ST_OK;
}

enum { TILE_MOST = 256 };

int64_t rows_of_page(const Problem *p, int64_t size) {
  int64_t longest = 0, batch = problem_int(p, "batch", 1);
  for (int64_t b = 0; b < batch; b++)
    if (problem_len_k(p, b) > longest) longest = problem_len_k(p, b);
  return size < longest + TILE_MOST ? size : longest + TILE_MOST;
}

static Status page(const Problem *p, const HostTensor *from, const HostTensor *table,
                   const Layout *l, Fill fill, HostTensor *to, Diag *d) {
  const int64_t *n = from->t.shape;
  int64_t size = problem_int(p, "page_size", 1), pool = 0;
  if (!problem_whole(p, "pool_pages", &pool))
    return diag_fail(d, ST_INPUT, "problem: no value for page_size");
  int64_t shape[4] = {pool, rows_of_page(p, size), n[2], n[3]};
  Status st = host_tensor_make(to, from->t.dtype, 4, shape, l, fill, d);
  to->t.shape[1] = size;
  for (int64_t b = 0; st == ST_OK && b < n[0]; b++)
    for (int64_t i = 0; i < problem_len_k(p, b); i++) {
      int32_t place = ((const int32_t *)table->host)[b * table->t.stride[0] + i / size];
      if (place >= 0 && place < pool) copy_row(from, b, i, to, place, i % size);
    }
  return st;
}

Status kernel_inputs(const Operator *op, const AttnInputs *in, uint64_t seed, KernelInputs *out,
                     Diag *d) {
  const Problem *p = op->problem;
  *out = (KernelInputs){.t = {in->q, in->k, in->v, in->slopes, in->sinks, in->descale[0],
                                in->descale[1], in->descale[2]}};
  if (!takes(op, IN_V)) out->t[IN_V] = (HostTensor){0}; // a part of K
  Status st = ST_OK;
  for (int i = IN_OFFSETS_Q; i < NINPUTS && st == ST_OK; i++) {
    if (!takes(op, i)) continue;
    out->own[i] = true;
    st = make_lengths(op, i, seed, &out->t[i], d);
  }
  const HostTensor *from[] = {&in->q, &in->k, &in->v};
  const Layout *l[] = {&layout_q, &layout_k, &layout_v};
  for (int i = 0; i <= IN_V && st == ST_OK; i++) {
    if (!out->t[i].host) continue;
    bool paged = i && takes(op, IN_TABLE), packed = takes(op, i ? IN_OFFSETS_K : IN_OFFSETS_Q);
    if (!paged && !packed) continue;
    out->own[i] = true;
    out->t[i] = (HostTensor){0};
    st = paged ? page(p, from[i], &out->t[IN_TABLE], l[i], in->fill, &out->t[i], d)
               : pack(p, from[i], i > 0, l[i], in->fill, &out->t[i], d);
  }
  if (st != ST_OK) kernel_inputs_free(out);
  return st;
}

void kernel_inputs_free(KernelInputs *x) {
  for (int i = 0; i < NINPUTS; i++)
    if (x->own[i]) host_tensor_free(&x->t[i]);
  *x = (KernelInputs){0};
}

// ---- outputs -----------------------------------------------------------------------------------
// The argument's shape with ones in front.
static Status full_shape(const Operator *op, const ArgDecl *arg, int rank, int64_t shape[],
                         Diag *d) {
  for (int i = 0; i < rank - arg->rank; i++) shape[i] = 1;
  return arg_shape(arg, op->problem, shape + (rank > arg->rank ? rank - arg->rank : 0), d);
}

Status kernel_outputs(const Operator *op, Outputs *out, Diag *d) {
  const ArgDecl *o = operator_arg(op, "o"), *lse = operator_arg(op, "lse");
  int64_t o_shape[TENSOR_MAX_RANK], lse_shape[TENSOR_MAX_RANK];
  Status st = full_shape(op, o, 4, o_shape, d);
  if (st == ST_OK && lse) st = full_shape(op, lse, 3, lse_shape, d);
  if (st != ST_OK) return st;
  return outputs_make(o_shape, o->dtype, lse ? lse_shape : NULL, lse ? lse->dtype : DT_F32, out, d);
}

// Row `at` of all sequences is query `at` - first of sequence *batch.
static int64_t sequence_of(const Problem *p, int64_t at, int64_t *batch) {
  for (*batch = 0; at >= problem_len_q(p, *batch); ++*batch) at -= problem_len_q(p, *batch);
  return at;
}

Status outputs_spread(const Operator *op, Outputs *o, Diag *d) {
  const Problem *p = op->problem;
  if (!takes(op, IN_OFFSETS_Q)) return ST_OK;
  Outputs to;
  const int64_t *n = o->o.t.shape; // [1, rows, heads, dim]
  int64_t batch = problem_int(p, "batch", 1), rows = problem_int(p, "seqlen_q", 1);
  int64_t o_shape[4] = {batch, rows, n[2], n[3]}, lse_shape[3] = {batch, n[2], rows}, at = 0;
  Status st =
      outputs_make(o_shape, o->o.t.dtype, o->lse.host ? lse_shape : NULL, o->lse.t.dtype, &to, d);
  if (st != ST_OK) return st;
  for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < problem_len_q(p, b); i++, at++)
      for (int64_t h = 0; h < n[2]; h++) {
        size_t size = (size_t)dtype_bytes(to.o.t.dtype), one = (size_t)dtype_bytes(to.lse.t.dtype);
        memcpy((char *)to.o.host + (size_t)tensor_at(&to.o.t, b, i, h, 0) * size,
               (char *)o->o.host + (size_t)tensor_at(&o->o.t, 0, at, h, 0) * size,
               (size_t)n[3] * size);
        if (to.lse.host)
          memcpy((char *)to.lse.host + (size_t)tensor_at(&to.lse.t, b, h, i, 0) * one,
                 (char *)o->lse.host + (size_t)tensor_at(&o->lse.t, 0, h, at, 0) * one, one);
      }
  to.damaged = o->damaged;
  to.where = o->where;
  memcpy(to.note, o->note, sizeof to.note);
  if (to.where.found) to.where.row = sequence_of(p, to.where.row, &to.where.batch);
  outputs_free(o);
  *o = to;
  return ST_OK;
}

Tensor layout_bound(const ArgDecl *arg, const HostTensor *t, DevPtr data) {
  Tensor x = t->t;
  int drop = x.rank - arg->rank;
  x.data = data;
  if (drop <= 0) return x;
  x.rank = arg->rank;
  memmove(x.shape, x.shape + drop, sizeof *x.shape * (size_t)x.rank);
  memmove(x.stride, x.stride + drop, sizeof *x.stride * (size_t)x.rank);
  return x;
}
