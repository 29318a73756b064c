// Host tensors for verification: layouts that differ, fills that a stray read or write can't miss.
#ifndef PTXSMITH_VERIFY_DATA_H
#define PTXSMITH_VERIFY_DATA_H

#include "verify.h"

// Physical order of the dimensions but the last, outermost first, and elements left free after each
// row (of the last dimension).  Q, K, V and O get four different ones, so that no two swapped
// strides can cancel.
typedef struct Layout {
  int order[TENSOR_MAX_RANK - 1];
  int gap_bytes;
} Layout;
extern const Layout layout_dense, layout_q, layout_k, layout_v, layout_o;


// Allocates the span.  The shape's product must have been checked (problem_check).
Status host_tensor_make(HostTensor *h, Dtype t, int rank, const int64_t shape[], const Layout *l,
                        Fill fill, Diag *d);
void host_tensor_free(HostTensor *h);

// Element access in [batch, seqlen, heads, dim] (rank 4) or [batch, heads, seqlen] (rank 3) order.
static inline int64_t tensor_at(const Tensor *t, int64_t i, int64_t j, int64_t k, int64_t e) {
  int64_t at = i * t->stride[0] + j * t->stride[1] + k * t->stride[2];
  return t->rank == 4 ? at + e * t->stride[3] : at;
}
static inline void host_set(HostTensor *h, int64_t i, int64_t j, int64_t k, int64_t e, double x) {
  dtype_store(h->t.dtype,
              (char *)h->host + tensor_at(&h->t, i, j, k, e) * dtype_bytes(h->t.dtype), x);
}
static inline double host_get(const HostTensor *h, int64_t i, int64_t j, int64_t k, int64_t e) {
  return dtype_load(h->t.dtype, (const char *)h->host +
                                    tensor_at(&h->t, i, j, k, e) * dtype_bytes(h->t.dtype));
}

// Values by coordinates: f(ctx, i, j, k, e), rounded to the dtype.  Called from several threads.
typedef double (*ValueFn)(void *ctx, int64_t i, int64_t j, int64_t k, int64_t e);
void host_fill_with(HostTensor *h, ValueFn f, void *ctx);

// Near-normal numbers of variance 1 from a seed (sum of four uniform ones; the same on every host).
void host_fill_random(HostTensor *h, uint64_t seed, double scale);
uint64_t random_bits(uint64_t seed, uint64_t n); // n-th number of a stream

// A dense tensor's rows of numbers from 0 to their length - 1, each row in order.
Status sorted_fill(const Tensor *t, uint64_t seed, char *host, Diag *d);

// The three inputs of a problem in their layouts.  K and V have rows of memory past seqlen_k, which
// no query may see: they hold what the gaps hold.
Status inputs_make(const Problem *p, Dtype t, Fill fill, AttnInputs *out, Diag *d);
// Rows past a sequence's own get back what the gaps hold.
void inputs_end(const Problem *p, AttnInputs *in);
void inputs_free(AttnInputs *in);
void inputs_fill_random(AttnInputs *in, uint64_t seed);
#endif
