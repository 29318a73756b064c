// Inputs of the mutants' runs, with what is expected of the answer: mutants.h runs them.
//
// Three forms.  The first goes through verification's own runner: strided tensors, NaN in the rows
// that nobody may see.  The others are dense and end where the last row ends, so that a read beyond
// it leaves the buffer; scores there are some hundreds apart, or there is no LSE.
#ifndef PTXSMITH_MUTANT_INPUTS_H
#define PTXSMITH_MUTANT_INPUTS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "verify_gates.h"

typedef enum InputForm { IN_STRIDED, IN_LARGE, IN_NO_LSE, INPUT_FORMS } InputForm;

typedef struct Input {
  AttnInputs in;
  Reference ref;
  Outputs base;                // of the kernel itself
  double *o_slack, *lse_slack; // NULL, or of every element, beside gate 2's tolerance
} Input;

static inline void input_free(Input *x) {
  outputs_free(&x->base);
  inputs_free(&x->in);
  reference_free(&x->ref);
  free(x->o_slack), free(x->lse_slack);
}

static inline void grow_input(HostTensor *h, double scale) {
  const int64_t *n = h->t.shape;
  for (int64_t b = 0; b < n[0]; b++)
    for (int64_t i = 0; i < n[1]; i++)
      for (int64_t k = 0; k < n[2]; k++)
        for (int64_t e = 0; e < n[3]; e++)
          host_set(h, b, i, k, e, scale * host_get(h, b, i, k, e));
}

// Sinks so low and so high that a row's own scores don't count beside them.
static inline void grow_sinks(AttnInputs *in) {
  for (int64_t h = 0; in->sinks.host && h < in->sinks.t.shape[0]; h++)
    ((float *)in->sinks.host)[h * in->sinks.t.stride[0]] *= 100;
}

// Infinities that leave an answer, where every row sees every key: in batch 0 two keys of 16 have
// the score -inf, and two others infinite values; in batch 1 all scores of two queries are -inf.
// They lie at both ends of rows and of 16 keys, where the first and the last fragments of a tile
// find them.  Where V is a part of K no key is infinite: 0 times it is no answer.
static inline void infinite_input(const Problem *p, AttnInputs *in) {
  const int64_t *q = in->q.t.shape, *k = in->k.t.shape;
  if (q[0] < 2 || q[1] < 1 || k[1] < 4) return;
  if (problem_int(p, "causal", 0) || problem_windowed(p)) return;
  int64_t row[2] = {0, q[1] > 31 ? 31 : q[1] - 1}, key[2] = {0, 14}, value[2] = {2, 13};
  bool shared = in->v.host == in->k.host;
  int64_t e[2] = {1, q[3] - 1}, column[2] = {0, in->v.t.shape[3] - 1};
  for (int x = 0; x < 2; x++)
    for (int64_t h = 0; h < k[2]; h++) {
      for (int64_t j = key[x]; j < k[1] && !shared; j += 16)
        host_set(&in->k, 0, j, h, e[x], -INFINITY);
      for (int64_t j = value[x]; j < k[1] && !shared; j += 16)
        host_set(&in->v, 0, j, h, column[x], INFINITY);
      for (int64_t j = 0; j < k[1]; j++) host_set(&in->k, 1, j, h, e[x], -1);
    }
  for (int x = 0; x < 2; x++)
    for (int64_t h = 0; h < q[2]; h++) {
      for (int64_t i = 0; i < q[1] && !shared; i++) host_set(&in->q, 0, i, h, e[x], 1);
      host_set(&in->q, 1, row[x], h, e[x], INFINITY);
    }
}

static inline void dense_input(HostTensor *h, Diag *d) {
  HostTensor dense;
  const int64_t *n = h->t.shape;
  assert_int_equal(host_tensor_make(&dense, h->t.dtype, 4, n, &layout_dense, FILL_ZERO, d), ST_OK);
  for (int64_t b = 0; b < n[0]; b++)
    for (int64_t i = 0; i < n[1]; i++)
      for (int64_t k = 0; k < n[2]; k++)
        for (int64_t e = 0; e < n[3]; e++)
          host_set(&dense, b, i, k, e, host_get(h, b, i, k, e));
  host_tensor_free(h);
  *h = dense;
}

static inline void dense_inputs(AttnInputs *in, Diag *d) {
  bool shared = in->v.host == in->k.host; // V is a part of K
  int64_t dim_v = in->v.t.shape[3];
  dense_input(&in->q, d);
  dense_input(&in->k, d);
  if (!shared) return dense_input(&in->v, d);
  in->v = in->k;
  in->v.t.shape[3] = dim_v;
}

// ---- what an order of sums may change -----------------------------------------------------------
// Gate 2 measures the error e of one order of sums and allows 2 e.  With scores of some hundreds
// that is no bound: few rows have more than one key of weight, so e is the rounding of few numbers,
// and another order, as right as this one, may round three times worse.  So it is in fp32 where few
// rows see any key.  What every order keeps to, to first order (Higham, Accuracy and
// Stability, 3.1), with u = 2^-23 for sums that are cut:
//     |dt_j| <= d_j = (head_dim + 8) u (scale sum_e |q_e k_je| + |slope| far + cap)
//     |dO_e| <= sum_j p_j (d_j + D) |v_je - O_e|,   |dLSE| <= D = sum_j p_j d_j
typedef struct SlackRow {
  double *p, *d; // of the keys
  double mean;   // D
} SlackRow;

static inline void slack_scores(const Problem *p, const AttnInputs *in, int64_t b, int64_t h,
                                int64_t i, SlackRow *r) {
  int64_t dim = in->q.t.shape[3], sq = problem_len_q(p, b), sk = problem_len_k(p, b);
  int64_t h_kv = h / (in->q.t.shape[2] / in->k.t.shape[2]);
  double scale = problem_float(p, "scale", 1 / sqrt((double)dim));
  double cap = problem_float(p, "softcap", 0), slope = 0, top = -INFINITY, sum = 0;
  KeyRange keys = visible_range(p, b, i);
  if (in->slopes.host)
    slope = ((float *)in->slopes.host)[b * in->slopes.t.stride[0] + h * in->slopes.t.stride[1]];
  if (in->sinks.host) top = ((float *)in->sinks.host)[h];
  double sink = top;
  for (int64_t j = keys.from; j < keys.to; j++) {
    double s = 0, size = 0, far = fabs((double)(i + sk - sq - j));
    for (int64_t e = 0; e < dim; e++) {
      double x = host_get(&in->q, b, i, h, e) * host_get(&in->k, b, j, h_kv, e);
      s += x, size += fabs(x);
    }
    s *= scale;
    if (cap > 0) s = cap * tanh(s / cap);
    r->p[j] = s - slope * far;
    r->d[j] = (double)(dim + 8) * 0x1p-23 * (fabs(scale) * size + fabs(slope) * far + cap);
    top = fmax(top, r->p[j]);
  }
  if (!isinf(sink)) sum = exp(sink - top);
  for (int64_t j = keys.from; j < keys.to; j++) sum += r->p[j] = exp(r->p[j] - top);
  r->mean = 0;
  for (int64_t j = keys.from; j < keys.to; j++) r->mean += (r->p[j] /= sum) * r->d[j];
}

static inline void slack_row(const Problem *p, Input *x, int64_t b, int64_t h, int64_t i,
                             SlackRow *r) {
  const int64_t *q = x->in.q.t.shape, dim_v = x->in.v.t.shape[3];
  int64_t row = ((b * q[1] + i) * q[2] + h) * dim_v, h_kv = h / (q[2] / x->in.k.t.shape[2]);
  KeyRange keys = visible_range(p, b, i);
  slack_scores(p, &x->in, b, h, i, r);
  x->lse_slack[(b * q[2] + h) * q[1] + i] = r->mean;
  for (int64_t e = 0; e < dim_v; e++) {
    double slack = 0;
    for (int64_t j = keys.from; j < keys.to; j++)
      slack += r->p[j] * (r->d[j] + r->mean) *
               fabs(host_get(&x->in.v, b, j, h_kv, e) - x->ref.o[row + e]);
    x->o_slack[row + e] = slack;
  }
}

static inline bool few_keys(const Problem *p) { return problem_int(p, "seqlen_k", 0) < 16; }

static inline void input_slack(const Problem *p, Input *x) {
  const int64_t *q = x->in.q.t.shape, sk = x->in.k.t.shape[1];
  size_t rows = (size_t)(q[0] * q[1] * q[2]);
  x->o_slack = calloc(rows * (size_t)x->in.v.t.shape[3] + 1, sizeof *x->o_slack);
  x->lse_slack = calloc(rows + 1, sizeof *x->lse_slack);
  SlackRow r = {calloc((size_t)sk + 1, sizeof *r.p), calloc((size_t)sk + 1, sizeof *r.d), 0};
  for (int64_t b = 0; b < q[0]; b++)
    for (int64_t h = 0; h < q[2]; h++)
      for (int64_t i = 0; i < problem_len_q(p, b); i++) slack_row(p, x, b, h, i, &r);
  free(r.p), free(r.d);
}

// ---- an answer ----------------------------------------------------------------------------------
static inline bool agrees(double want, double got, double allowed) {
  return isinf(want) || isinf(got) ? want == got : fabs(got - want) <= allowed;
}

static inline bool slack_agrees(const Problem *p, const Input *x, const Outputs *out,
                                const Expected *want) {
  const int64_t *q = x->in.q.t.shape, dim_v = x->in.v.t.shape[3];
  bool all = true;
  for (int64_t b = 0; b < q[0]; b++)
    for (int64_t i = 0; i < problem_len_q(p, b); i++)
      for (int64_t h = 0; h < q[2]; h++) {
        int64_t row = ((b * q[1] + i) * q[2] + h) * dim_v, lse = (b * q[2] + h) * q[1] + i;
        for (int64_t e = 0; e < dim_v; e++)
          all &= agrees(x->ref.o[row + e], host_get(&out->o, b, i, h, e),
                        want->o_max.abs + x->o_slack[row + e]);
        if (out->lse.host)
          all &= agrees(x->ref.lse[lse], host_get(&out->lse, b, h, i, 0),
                        want->lse_max.abs + x->lse_slack[lse]);
      }
  return all;
}

// split: products of numbers split in two tf32 (expect_of_run() has the factors).
static inline GateResult compare_run(const Runner *runner, const Problem *p, const Input *x,
                                     const Outputs *out, bool split) {
  GateRun g = {.runner = runner, .split = split};
  Expected want = expect_of_run(&g, p, &x->ref, out, 1);
  GateResult r = {.passed = true};
  if (!out->lse.host) want.lse = NULL;
  if (x->o_slack)
    r.passed = slack_agrees(p, x, out, &want);
  else
    compare_outputs(&want, &out->o, out->lse.host ? &out->lse : NULL, &r);
  r.passed &= !out->damaged;
  return r;
}

#endif
