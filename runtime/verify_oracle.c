#include "verify_oracle.h"

#include <math.h>
#include <stdlib.h>

#include "compare.h"
#include "verify_kept.h"

static void copy_outputs(const Outputs *from, Reference *to) {
  const int64_t *n = from->o.t.shape;
  int64_t at = 0;
  for (int64_t b = 0; b < n[0]; b++)
    for (int64_t i = 0; i < n[1]; i++)
      for (int64_t h = 0; h < n[2]; h++)
        for (int64_t e = 0; e < n[3]; e++) to->o[at++] = host_get(&from->o, b, i, h, e);
  at = 0;
  for (int64_t b = 0; b < n[0]; b++)
    for (int64_t h = 0; h < n[2]; h++)
      for (int64_t i = 0; i < n[1]; i++) to->lse[at++] = host_get(&from->lse, b, h, i, 0);
}

// ---- the two oracles agree ---------------------------------------------------------------------
static double largest(const HostTensor *x, const HostTensor *factor) {
  const int64_t *n = x->t.shape;
  double max = 0;
  for (int64_t b = 0; b < n[0]; b++)
    for (int64_t i = 0; i < n[1]; i++)
      for (int64_t h = 0; h < n[2]; h++) {
        double by = factor->host ? ((const float *)factor->host)[b * factor->t.stride[0] + h] : 1;
        for (int64_t e = 0; e < n[3]; e++) {
          double v = fabs(by * host_get(x, b, i, h, e));
          if (v > max && isfinite(v)) max = v;
        }
      }
  return max;
}

// With scores d apart an LSE differs by d and O by 2 d max |v|.  fp64's own scores are sums of some
// hundred terms, 2^-46 of the largest apart.  A hook gets them in fp32, 2^-24, and may take a
// function that is only good to 2^-21.
static double scores_apart(const Reference *sample, bool hook) {
  double most = sample->score_max > 1 ? sample->score_max : 1;
  return hook ? 0x1p-20 * most : 0x1p-46 * most;
}

static Status hold_against_host(const DeviceOracle *o, const Problem *p, const AttnInputs *in,
                                const Outputs *out, const Reference *sample, int64_t every,
                                Diag *d) {
  GateResult r = {.passed = true};
  double apart = scores_apart(sample, o->hook_path != NULL);
  Expected x = {
      .problem = p,
      .o = sample->o,
      .lse = sample->lse,
      .o_max = {.abs = 0x1p-40 + 2 * apart * largest(&in->v, &in->descale[2]), .rel = 0x1p-40},
      .lse_max = {.abs = 0x1p-40 + apart, .rel = 0x1p-40},
      .o_mean = -1,
      .every = every};
  compare_outputs(&x, &out->o, &out->lse, &r);
  if (r.passed && !out->damaged) return ST_OK;
  if (out->damaged) return diag_fail(d, ST_FAILED, "the device's fp64 oracle: %s", out->note);
  return diag_fail(d, ST_FAILED,
                   "the device's fp64 oracle differs from the host's: %s at batch %lld, head %lld, "
                   "row %lld, column %lld: expected %.17g, found %.17g",
                   r.bad.tensor, (long long)r.bad.batch, (long long)r.bad.head,
                   (long long)r.bad.row, (long long)r.bad.col, r.bad.expected, r.bad.got);
}

// ---- the run -----------------------------------------------------------------------------------
// Pages are how a kernel gets its keys, and a tensor that has values too; the oracle gets the same
// ones row by row, and V as a tensor of its own.
static Problem *unpaged(Arena *a, const Problem *p) {
  Problem *c = problem_copy(a, p);
  const char *const dropped[] = {"page_size", "pages", "pool_pages", "block_table", "chunks",
                                 "shared_kv"};
  for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) problem_drop(c, dropped[i]);
  return c;
}

static Status run_oracle(const DeviceOracle *o, const Problem *p, const AttnInputs *in,
                         Outputs *out, Diag *d) {
  DeviceRun run = {.dev = o->dev, .seed = o->seed, .plan = {.build = {.hook_path = o->hook_path}}};
  Runner runner;
  Operator *made;
  Status st = operator_make(o->session, "oracle_f64", NULL, p, &run.plan, &made, d);
  if (st != ST_OK) return st;
  run.op = kept_operator(o->kept, o->dev, made);
  bool kept = run.op != NULL;
  if (kept) operator_free(made);
  else st = operator_load(run.op = made, o->dev, d);
  if (st == ST_OK && !kept) kept = kept_take_operator(o->kept, run.op);
  if (st == ST_OK) st = operator_replan(run.op, p, o->dev, &run.plan, d);
  if (st == ST_OK) st = runner_of_operator(&run, &runner, d);
  if (st == ST_OK) st = runner.run(runner.ctx, p, in, 0, out, d);
  device_run_end(&run);
  if (!kept) operator_free(run.op);
  return st;
}

Status device_oracle(void *ctx, const Problem *p, const AttnInputs *in, Reference *sample,
                     int64_t every, Reference *out, Diag *d) {
  Outputs made = {0};
  Arena *a = arena_new();
  *out = (Reference){0};
  Status st = run_oracle(ctx, unpaged(a, p), in, &made, d);
  if (st == ST_OK) st = hold_against_host(ctx, p, in, &made, sample, every, d);
  if (st == ST_OK) {
    size_t rows = (size_t)tensor_elements(&made.lse.t), all = (size_t)tensor_elements(&made.o.t);
    *out = (Reference){.o = malloc((all + 1) * sizeof(double)),
                       .lse = malloc((rows + 1) * sizeof(double))};
    if (out->o && out->lse) copy_outputs(&made, out);
    else st = diag_fail(d, ST_INPUT, "not enough host memory for the oracle's answer");
  }
  if (st != ST_OK) reference_free(out);
  outputs_free(&made);
  arena_free(a);
  return st;
}
