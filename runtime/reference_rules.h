// Inside of the oracle: what its two files share.
#ifndef PTXSMITH_REFERENCE_RULES_H
#define PTXSMITH_REFERENCE_RULES_H

#include <math.h>
#include <stdatomic.h>

#include "reference.h"
#include "verify_data.h"

typedef struct Shape {
  int64_t batch, heads_q, heads_kv, group, seqlen_q, seqlen_k, dim, dim_v, padded;
  Dtype dtype, dtype_o;
  double scale, softcap;
} Shape;

typedef struct Job {
  Shape n;
  const Problem *problem;
  const AttnInputs *in;
  const ReferenceOpts *opts;
  Reference *out;
  const ReferenceMath *math;
  int64_t tasks, blocks; // tasks = batch x heads_kv x blocks of queries
  int64_t span, rows;    // queries of a block; rows of them and of one head that are wanted
  int draws;
  atomic_llong next;
  atomic_int status;
} Job;

// What one thread adds up, and its scratch memory.
typedef struct Worker {
  Job *job;
  Diag *diag;
  int draw;                 // of the plain formula, now
  double sum[REF_DRAWS];    // of errors in each draw
  double max, lse_max, score_max, q_max, k_max, v_max; // the last four: largest magnitudes
  int64_t count;            // of errors in a draw
  double *kt, *v, *s, *o, *q; // kt, v: one block of keys; s: [row][keys]; o, q: [row][padded]
  float *kt32, *v32, *s32, *o32, *q32;
} Worker;

typedef struct Row {
  int64_t head, query, first, visible; // keys [first, visible)
  double m, l;
  float m32, l32;
} Row;

// The largest finite magnitude so far.
static inline void note_size(double *max, double x) {
  if (fabs(x) > *max && isfinite(x)) *max = fabs(x);
}
// A head's factor of q, k or v (which = 0, 1, 2): 1 where there is none.
float factor_of(const Worker *w, int which, int64_t b, int64_t head);

// Where a draw finds the x-th of n things: another permutation for each, the first as they stand.
typedef struct Order { int64_t step, from, n; } Order;

Order order_of(int draw, int64_t n);
static inline int64_t order_at(const Order *o, int64_t x) { return (o->from + x * o->step) % o->n; }

// Products q . k of a row become weights; sets m and l of both precisions, of a later draw those of
// fp32.
Status make_weights(Worker *w, int64_t b, Row *row, double *s, float *s32);

#endif
