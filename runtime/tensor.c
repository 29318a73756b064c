// Shapes: the dimensions a template declares, evaluated with a Problem's values.
#include <assert.h>
#include <string.h>

#include "problem.h"

bool problem_whole(const Problem *p, const char *name, int64_t *out) {
  const Value *v = problem_value(p, name);
  if (!v || v->is_float) return problem_derived(p, name, out);
  *out = v->i;
  return true;
}

static Status eval_at(const Dim *dim, const Problem *p, Place at, int64_t *out, Diag *d) {
  int64_t n = dim->n;
  if (dim->name) {
    bool of_pages = !strcmp(dim->name, "pages") || !strcmp(dim->name, "pool_pages");
    if (!problem_whole(p, dim->name, &n))
      return diag_error(d, at, "problem: no value for %s, which the %s's shapes need",
                        of_pages ? "page_size" : dim->name, at.origin ? "hook" : "template");
  }
  int64_t div = dim->div > 1 ? dim->div : 1;
  *out = n / div + (n % div > 0);
  return ST_OK;
}

Status dim_eval(const Dim *dim, const Problem *p, int64_t *out, Diag *d) {
  return eval_at(dim, p, NOWHERE, out, d);
}

Status arg_shape(const ArgDecl *arg, const Problem *p, int64_t shape[], Diag *d) {
  int64_t bytes = dtype_bytes(arg->dtype);
  Place at = {.origin = arg->origin};
  for (int i = 0; i < arg->rank; i++) {
    Status st = eval_at(&arg->dim[i], p, at, &shape[i], d);
    if (st != ST_OK) return st;
    if (__builtin_mul_overflow(bytes, shape[i] > 1 ? shape[i] : 1, &bytes))
      return diag_error(d, at, "problem: the bytes of tensor %s overflow 63 bits", arg->name);
  }
  return ST_OK;
}

void tensor_dense(Tensor *t) {
  int64_t n = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    t->stride[i] = n;
    n *= t->shape[i] > 1 ? t->shape[i] : 1;
  }
}

int64_t tensor_elements(const Tensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->rank; i++) n *= t->shape[i];
  return n;
}

uint64_t tensor_span_bytes(const Tensor *t) {
  uint64_t last = 0; // offset of the last element
  for (int i = 0; i < t->rank; i++) {
    if (t->shape[i] == 0) return 0;
    assert(t->stride[i] >= 0);
    last += (uint64_t)(t->shape[i] - 1) * (uint64_t)t->stride[i];
  }
  return (last + 1) * (uint64_t)dtype_bytes(t->dtype);
}
