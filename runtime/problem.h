// Problem: named values and tensor bindings for the Args a template declares.
#ifndef PTXSMITH_PROBLEM_H
#define PTXSMITH_PROBLEM_H

#include "device.h"

typedef struct Value { const char *name; bool is_float; int64_t i; double f; } Value;

// Values by their long names: batch heads_q heads_kv seqlen_q seqlen_k head_dim causal chunks scale,
// dtype as text in `dtype`, and any name that a hook declares.
typedef struct Problem {
  Arena *arena;
  const char *name; // "llama3-8b/decode-16k", or "" when made by hand
  Value *v; int n, cap;
  bool has_dtype; Dtype dtype;
} Problem;

// Short and long names are equal: b batch, hq heads_q, hkv heads_kv, sq seqlen_q, sk seqlen_k,
// d head_dim, causal, chunks, scale, dtype.  Table in problem.c; no other list anywhere.
// "b=1,hq=32,...".  Unknown names, values that are not numbers, negative or overflowing sizes,
// heads_q not a multiple of heads_kv: ST_INPUT, one message each.
Status problem_parse(Arena *a, const char *text, Problem **out, Diag *d);
Status problem_check(const Problem *p, Diag *d);
const Value *problem_value(const Problem *p, const char *name);        // NULL when absent
int64_t problem_int(const Problem *p, const char *name, int64_t otherwise);
void problem_set_int(Problem *p, const char *name, int64_t i);
void problem_set_float(Problem *p, const char *name, double f);
char *problem_text(Arena *a, const Problem *p); // canonical "b=1,hq=32,..."; parses back

// The template's Params that the Problem fixes (head_dim, causal, dtype): fills in those that are
// not given, ST_INPUT when a given one disagrees.
Status problem_fix_params(Arena *a, const Problem *p, const TemplateInfo *t, Params *params, Diag *d);

// Standard work figures (see ../docs/measurements.md): FLOPs 4 B Hq (visible query-key pairs) D;
// KV bytes 2 B Hkv Sk D sizeof(dtype).
double problem_flops(const Problem *p);
double problem_kv_bytes(const Problem *p);

// Tensor: a binding.  Strides in elements; the last dimension is contiguous (stride 1).
typedef struct Tensor {
  Dtype dtype;
  int rank;
  int64_t shape[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK];
  DevPtr data;
} Tensor;

// Evaluates a declared dimension or shape with the Problem's values.  ST_INPUT when a value lacks.
Status dim_eval(const Dim *dim, const Problem *p, int64_t *out, Diag *d);
Status arg_shape(const ArgDecl *arg, const Problem *p, int64_t shape[], Diag *d);
// Contiguous strides; bytes of the span a strided tensor covers (0 for an empty one).
void tensor_dense(Tensor *t);
uint64_t tensor_span_bytes(const Tensor *t);

#endif
