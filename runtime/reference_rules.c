// From products q . k to weights: scale, soft cap, slopes, the user's rule, softmax with its sink,
// in fp64 and in the plain formula's fp32.
#include "reference_rules.h"

#include <stdlib.h>

// ---- orders -------------------------------------------------------------------------------------
static int64_t common_factor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

Order order_of(int draw, int64_t n) {
  Order o = {.step = 1, .n = n > 0 ? n : 1};
  if (!draw) return o;
  o.from = (int64_t)(random_bits(31, (uint64_t)draw) % (uint64_t)o.n);
  o.step = 1 + (int64_t)(random_bits(37, (uint64_t)draw) % (uint64_t)o.n);
  while (common_factor(o.step, o.n) != 1) o.step++;
  return o;
}

// ---- rules --------------------------------------------------------------------------------------
float factor_of(const Worker *w, int which, int64_t b, int64_t head) {
  const HostTensor *x = &w->job->in->descale[which];
  return x->host ? ((const float *)x->host)[b * x->t.stride[0] + head] : 1;
}

static const float LOG2_E = 1.44269504f, LN_2 = 0.693147182f;

// exp(x - m); a masked key (-inf) weighs nothing even where every key of the row is masked.
static double weight(double s, double m) { return s == -INFINITY ? 0 : exp(s - m); }

// 2^(s log2 e - m log2 e), the second product rounded before it is taken off and the first one not:
// as kernels with one multiply-add a weight do it.  Of the largest score that is 1 but for a
// rounding of m.
static float weight32(float s, float m) {
  float top = m * LOG2_E;
  return s == -INFINITY ? 0 : exp2f((float)((double)s * LOG2_E - top));
}

// Scale, soft cap and slopes.
typedef struct Rules {
  float of_q, of_k, slope;
  bool sloped;
  int64_t at; // the key where the query stands
} Rules;

static Rules rules_of(const Worker *w, int64_t b, const Row *row) {
  const HostTensor *slopes = &w->job->in->slopes;
  const Problem *p = w->job->problem;
  Rules x = {.of_q = factor_of(w, 0, b, row->head),
             .of_k = factor_of(w, 1, b, row->head / w->job->n.group),
             .sloped = slopes->host,
             .at = row->query + problem_len_k(p, b) - problem_len_q(p, b)};
  if (x.sloped)
    x.slope =
        ((const float *)slopes->host)[b * slopes->t.stride[0] + row->head * slopes->t.stride[1]];
  return x;
}

static int64_t distance(const Rules *x, int64_t j) { return llabs((long long)(x->at - j)); }

static void apply_rules(const Worker *w, const Rules *x, const Row *row, double *s) {
  double scale = w->job->n.scale * x->of_q * x->of_k, cap = w->job->n.softcap;
  for (int64_t j = row->first; j < row->visible; j++) {
    s[j] *= scale;
    if (cap > 0) s[j] = cap * tanh(s[j] / cap);
    if (x->sloped) s[j] -= (double)x->slope * (double)distance(x, j);
  }
}

// cap tanh(s / cap).  Later draws have what kernels may err by, drawn for each key: 2^-24 of the
// result, its rounding, and from |s| = cap / 4 on 2^-22 (1 - |tanh|) cap, since they take tanh as
// 1 - 2 / (1 + e^(2 s / cap)) with an exponential and a reciprocal that are right to 2^-22.
static float soften32(const Worker *w, const Row *row, int64_t j, float s, float cap) {
  float t = tanhf(s / cap), off = 0x1p-24f * fabsf(t);
  if (!w->draw) return cap * t;
  if (fabsf(s / cap) >= 0.25f) off += 0x1p-22f * (1 - fabsf(t));
  int64_t at = (row->head * 8191 + row->query) * 65537 + j;
  uint64_t bits = random_bits(41 + (uint64_t)w->draw, (uint64_t)at);
  double drawn = (double)(bits >> 11) * 0x1p-52 - 1; // [-1, 1)
  return (float)((double)cap * ((double)t + drawn * (double)off));
}

static void apply_rules32(const Worker *w, const Rules *x, const Row *row, float *s) {
  float scale = (float)w->job->n.scale * x->of_q * x->of_k, cap = (float)w->job->n.softcap;
  for (int64_t j = row->first; j < row->visible; j++) {
    s[j] *= scale;
    if (cap > 0) s[j] = soften32(w, row, j, s[j], cap);
    if (x->sloped) s[j] -= x->slope * (float)distance(x, j);
  }
}

// The softmax starts from the sink's logit, or from nothing.
static float start_of(const Worker *w, const Row *row) {
  const HostTensor *sinks = &w->job->in->sinks;
  return sinks->host ? ((const float *)sinks->host)[row->head * sinks->t.stride[0]] : -INFINITY;
}

// P as the product takes it.  A weight of 8 bits is lifted first, to where e4m3 has most digits:
// 2^8 is the last power of two below 448.
static float round_weight(Dtype t, float p) {
  if (t == DT_F32) return p;
  double lift = t == DT_E4M3 ? 0x1p8 : 1;
  return (float)(dtype_round(t, p * lift) / lift);
}

// What a draw's weights are relative to: a kernel's maximum is that of the keys so far, or of its
// share of them.  That of one key, brought to within a factor of 2 of the row's by a power of 2,
// which moves no digit: a single key, or equal scores, weigh 1 in every draw.
static float drawn_max(const Worker *w, const Row *row, const float *s, float m) {
  if (!w->draw || row->visible <= row->first) return m;
  Order order = order_of(w->draw, row->visible - row->first);
  float other = s[row->first + order_at(&order, row->query + row->head)];
  float steps = ceilf((m - other) / LN_2);
  return isfinite(other) && isfinite(m) && steps < 1024 ? other + steps * LN_2 : m;
}

static void softmax32(const Worker *w, Row *row, float *s) {
  float sink = row->m32 = start_of(w, row);
  // A rule's result is an fp32 number; kernels bring it to base 2 by one more fp32 product.
  for (int64_t j = row->first; w->job->opts->score && j < row->visible; j++)
    s[j] = s[j] * LOG2_E / LOG2_E;
  for (int64_t j = row->first; j < row->visible; j++) row->m32 = s[j] > row->m32 ? s[j] : row->m32;
  row->m32 = drawn_max(w, row, s, row->m32);
  row->l32 = weight32(sink, row->m32);
  for (int64_t j = row->first; j < row->visible; j++) {
    float p = weight32(s[j], row->m32);
    row->l32 += p;
    s[j] = round_weight(w->job->n.dtype, p);
  }
}

static void softmax(Worker *w, Row *row, double *s) {
  double sink = row->m = start_of(w, row);
  // A NaN is passed over here and comes back in l.
  for (int64_t j = row->first; j < row->visible; j++) {
    note_size(&w->score_max, s[j]);
    row->m = s[j] > row->m ? s[j] : row->m;
  }
  row->l = weight(sink, row->m);
  for (int64_t j = row->first; j < row->visible; j++) row->l += s[j] = weight(s[j], row->m);
}

Status make_weights(Worker *w, int64_t b, Row *row, double *s, float *s32) {
  const ReferenceOpts *opts = w->job->opts;
  Rules rules = rules_of(w, b, row);
  if (!w->draw) apply_rules(w, &rules, row, s);
  apply_rules32(w, &rules, row, s32);
  if (opts->score) {
    Status st = opts->score(opts->ctx, &(ScoreRow){b, row->head, row->query, w->draw, row->visible},
                            w->draw ? NULL : s, s32);
    if (st != ST_OK) return st;
  }
  if (!w->draw) softmax(w, row, s);
  softmax32(w, row, s32);
  return ST_OK;
}

