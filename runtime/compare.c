#include "compare.h"

#include <math.h>

#include "parallel.h"
#include "verify_data.h"

// What is allowed there.
static double tolerance_at(Tolerance tol, Dtype t, double expected) {
  double allowed = tol.abs + tol.rel * fabs(expected);
  double ulps = tol.ulps + (tol.rounded && expected != 0 ? 0.5 : 0);
  return ulps > 0 ? allowed + ulps * dtype_ulp(t, expected) : allowed;
}

bool element_agrees(double expected, double got, Tolerance tol, Dtype t, double *err) {
  *err = 0;
  bool as_expected = isnan(expected) ? isnan(got) : expected == got;
  if (as_expected) return true;
  if (!isfinite(expected) || !isfinite(got)) {
    *err = isnan(expected) || isnan(got) ? NAN : INFINITY;
    return false;
  }
  *err = fabs(got - expected);
  return *err <= tolerance_at(tol, t, expected);
}

// The state of one tensor's comparison.
typedef struct Tally {
  const char *name;
  Dtype dtype;
  Tolerance tol;
  double max, sum;
  int64_t count;
  Mismatch first, worst;
  bool failed;
} Tally;

// A NaN is worse than any number.
bool worse(double err, double than) { return isnan(err) ? !isnan(than) : err > than; }

static void tally(Tally *t, Mismatch at) {
  double err;
  bool ok = element_agrees(at.expected, at.got, t->tol, t->dtype, &err);
  t->count++;
  t->sum += err;
  at.found = true;
  at.tensor = t->name;
  if (worse(err, t->max) || !t->worst.found) {
    t->max = err;
    t->worst = at;
  }
  if (ok || t->failed) return;
  t->failed = true;
  t->first = at;
}

static bool sampled(const Expected *x, int64_t row) { return x->every <= 1 || row % x->every == 0; }

static int64_t queries_of(const Expected *x, int64_t batch, int64_t all) {
  return x->problem ? problem_len_q(x->problem, batch) : all;
}

typedef struct Comparison {
  const Expected *x;
  const HostTensor *got;
  Tally *part; // of each piece
} Comparison;

static void compare_rows_o(void *ctx, int chunk, int64_t from, int64_t to) {
  const Expected *x = ((Comparison *)ctx)->x;
  const HostTensor *o = ((Comparison *)ctx)->got;
  Tally *t = &((Comparison *)ctx)->part[chunk];
  const int64_t *n = o->t.shape; // batch, seqlen, heads, dim
  for (int64_t row = from; row < to; row++) {
    int64_t b = row / n[1], i = row % n[1];
    if (i >= queries_of(x, b, n[1])) continue;
    for (int64_t h = 0; h < n[2]; h++) {
      if (!sampled(x, (b * n[2] + h) * n[1] + i)) continue;
      const double *want = x->o + ((b * n[1] + i) * n[2] + h) * n[3];
      // Columns with (e + h / group) % forms == form.
      int64_t step = x->forms ? x->forms : 1;
      int64_t first = x->forms ? (x->form + step - h / x->group % step) % step : 0;
      for (int64_t e = first; e < n[3]; e += step)
        tally(t, (Mismatch){.batch = b,
                            .head = h,
                            .row = i,
                            .col = e,
                            .expected = want[e],
                            .got = host_get(o, b, i, h, e)});
    }
  }
}

// What a later piece found joins what earlier ones did.
static void join(Tally *t, const Tally *later) {
  if (later->worst.found && (worse(later->max, t->max) || !t->worst.found)) {
    t->max = later->max;
    t->worst = later->worst;
  }
  t->sum += later->sum;
  t->count += later->count;
  if (later->failed && !t->failed) t->first = later->first;
  t->failed |= later->failed;
}

static void compare_o(const Expected *x, const HostTensor *o, Tally *t) {
  Tally part[PARALLEL_CHUNKS];
  for (int c = 0; c < PARALLEL_CHUNKS; c++) part[c] = *t;
  const int64_t *n = o->t.shape;
  parallel_ranges(n[0] * n[1], (1 << 16) / (n[2] * n[3] + 1), compare_rows_o,
                  &(Comparison){.x = x, .got = o, .part = part});
  for (int c = 0; c < PARALLEL_CHUNKS; c++) join(t, &part[c]);
}

static void compare_lse(const Expected *x, const HostTensor *lse, Tally *t) {
  const int64_t *n = lse->t.shape; // batch, heads, seqlen
  for (int64_t b = 0; b < n[0]; b++) {
    int64_t queries = queries_of(x, b, n[2]);
    for (int64_t h = 0; h < n[1]; h++)
      for (int64_t i = 0; i < queries && i < n[2]; i++) {
        int64_t row = (b * n[1] + h) * n[2] + i;
        if (sampled(x, row))
          tally(t, (Mismatch){.batch = b,
                              .head = h,
                              .row = i,
                              .col = 0,
                              .expected = x->lse[row],
                              .got = host_get(lse, b, h, i, 0)});
      }
  }
}

// What the largest allowance over the elements seen came to, for the report.
static double allowed_at(const Tally *t) {
  if (!t->worst.found || !isfinite(t->worst.expected)) return t->tol.abs;
  return tolerance_at(t->tol, t->dtype, t->worst.expected);
}

static void fail_at(GateResult *g, const Mismatch *at) {
  g->passed = false;
  if (!g->bad.found) g->bad = *at;
}

void compare_outputs(const Expected *x, const HostTensor *o, const HostTensor *lse, GateResult *g) {
  if (x->o && o) {
    Tally t = {.name = "o", .dtype = o->t.dtype, .tol = x->o_max};
    compare_o(x, o, &t);
    double mean = t.count ? t.sum / (double)t.count : 0;
    g->compared += t.count;
    if (worse(t.max, g->max_error) || g->compared == t.count) {
      g->max_error = t.max;
      g->max_allowed = allowed_at(&t);
    }
    if (worse(mean, g->mean_error)) g->mean_error = mean;
    g->mean_allowed = x->o_mean < 0 ? INFINITY : x->o_mean;
    if (t.failed) fail_at(g, &t.first);
    else if (!(mean <= g->mean_allowed)) fail_at(g, &t.worst);
  }
  if (x->lse && lse) {
    Tally t = {.name = "lse", .dtype = lse->t.dtype, .tol = x->lse_max};
    compare_lse(x, lse, &t);
    g->compared += t.count;
    if (!worse(g->lse_error, t.max)) {
      g->lse_error = t.max;
      g->lse_allowed = allowed_at(&t);
    }
    if (t.failed) fail_at(g, &t.first);
  }
}
