#include "verify_hook.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "verify_data.h"
#include "verify_ranges.h"

// The interpreter makes a draw's scores.
enum { HOOK_DRAWS = 8 };

struct HookRule {
  Session *session;
  Arena *arena;
  const char *path;
  uint64_t seed, step_limit;
  int64_t heads, seqlen_q, seqlen_k;
  int64_t every, samples; // rows (batch, head, query) numbered 0, every, 2 every ..
  // [samples, seqlen_k]: scores of the oracle, rounded to fp32 as the hook gets them, and of the
  // plain formula's draws, whose error is to be that of fp32 scores under the same rule.
  float *scores[1 + HOOK_DRAWS];
  int draws;
  HookRanges ranges;
  atomic_bool no_number; // it made NaN or +inf of a finite score
};

HookRule *hook_rule_new(Session *s, const char *path, uint64_t seed, uint64_t step_limit) {
  HookRule *h = calloc(1, sizeof *h);
  if (!h) abort();
  *h = (HookRule){.session = s,
                  .arena = arena_new(),
                  .path = path,
                  .seed = seed,
                  .step_limit = step_limit};
  return h;
}

void hook_rule_free(HookRule *h) {
  if (!h) return;
  for (int i = 0; i <= HOOK_DRAWS; i++) free(h->scores[i]);
  ranges_free(&h->ranges);
  arena_free(h->arena);
  free(h);
}

// ---- the hook's own tensors --------------------------------------------------------------------
static bool is_own(const char *name) {
  const char *const own[] = {"q", "k", "v", "scores"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (!strcmp(own[i], name)) return true;
  return false;
}

static double extra_value(Dtype t, uint64_t r) {
  if (!dtype_mantissa(t)) return (double)(r % 16);
  return (double)(int64_t)(r % 257 - 128) / 64; // in [-2, 2], exact in every type
}

static Status extra_fill(const Operator *op, const ArgDecl *arg, const Tensor *t, uint64_t seed,
                         char *host, Diag *d) {
  uint64_t own = seed ^ content_hash(arg->name, strlen(arg->name));
  int64_t step = dtype_bytes(t->dtype);
  if (lengths_tensor(arg->name))
    return lengths_fill(op->problem, arg->name, seed, (int32_t *)(void *)host, d);
  if (arg->sorted) return sorted_fill(t, own, host, d);
  for (int64_t i = 0; i < tensor_elements(t); i++)
    dtype_store(t->dtype, host + i * step, extra_value(t->dtype, random_bits(own, (uint64_t)i)));
  return ST_OK;
}

static Status extra_make(Operator *op, Device *dev, const ArgDecl *arg, uint64_t seed, Extras *out,
                         Diag *d) {
  Tensor t = {.dtype = arg->dtype, .rank = arg->rank};
  Status st = arg_shape(arg, op->problem, t.shape, d);
  if (st != ST_OK) return st;
  if (out->n == EXTRA_MAX)
    return diag_fail(d, ST_INPUT, "%s: a hook may bring %d tensors at most", arg->name, EXTRA_MAX);
  tensor_dense(&t);
  uint64_t bytes = tensor_span_bytes(&t);
  char *host = malloc(bytes ? bytes : 1);
  if (!host) return diag_fail(d, ST_INPUT, "not enough host memory for tensor %s", arg->name);
  Extra *own = &out->v[out->n++];
  *own = (Extra){.name = arg->name, .host = host, .bytes = bytes};
  st = extra_fill(op, arg, &t, seed, host, d);
  if (st == ST_OK) st = device_alloc(dev, bytes, arg->name, &own->at, d);
  t.data = own->at;
  if (st == ST_OK) st = device_write(dev, t.data, host, bytes, d);
  return st == ST_OK ? operator_bind(op, arg->name, &t, d) : st;
}

static bool in_workspace(const Operator *op, const char *name) {
  for (int i = 0; i < op->nslots; i++)
    if (!strcmp(op->slot[i].arg->name, name)) return true;
  return false;
}

Status extras_bind(Operator *op, Device *dev, uint64_t seed, Extras *out, Diag *d) {
  Status st = ST_OK;
  for (int s = 0; s < op->nsteps; s++) {
    const Variant *v = op->step[s].variant;
    for (int i = 0; i < v->nargs && st == ST_OK; i++) {
      const ArgDecl *arg = &v->args[i];
      bool first = operator_arg(op, arg->name) == arg;
      if (first && arg->role == ARG_IN && !is_own(arg->name) && !in_workspace(op, arg->name))
        st = extra_make(op, dev, arg, seed, out, d);
    }
  }
  return st;
}

Status extras_check(const Extras *x, Device *dev, Outputs *out, Diag *d) {
  for (int i = 0; i < x->n; i++) {
    const Extra *e = &x->v[i];
    char *now = malloc(e->bytes + 1);
    if (!now) return diag_fail(d, ST_INPUT, "not enough host memory for tensor %s", e->name);
    Status st = device_read(dev, now, e->at, e->bytes, d);
    uint64_t at = 0;
    while (st == ST_OK && at < e->bytes && now[at] == e->host[at]) at++;
    free(now);
    if (st != ST_OK) return st;
    if (at < e->bytes) outputs_damage(out, "input overwritten:", e->name, at);
  }
  return ST_OK;
}

void extras_free(Extras *x, Device *dev) {
  for (int i = 0; i < x->n; i++) {
    if (x->v[i].at) device_free(dev, x->v[i].at);
    free(x->v[i].host);
  }
  x->n = 0;
}

// ---- the rule ----------------------------------------------------------------------------------
static float *row_of(const HookRule *h, int which, const ScoreRow *at) {
  int64_t number = (at->batch * h->heads + at->head) * h->seqlen_q + at->row;
  return h->scores[which] + number / h->every * h->seqlen_k;
}

static Status collect(void *ctx, const ScoreRow *at, double *s, float *s32) {
  float *exact = row_of(ctx, 0, at), *plain = row_of(ctx, 1 + at->draw, at);
  for (int64_t j = 0; s && j < at->n; j++) exact[j] = (float)s[j];
  for (int64_t j = 0; j < at->n; j++) plain[j] = s32[j];
  return ST_OK;
}

bool hook_rule_no_number(const HookRule *h) { return atomic_load(&h->no_number); }

Status hook_rule_score(void *ctx, const ScoreRow *at, double *s, float *s32) {
  HookRule *h = ctx;
  const float *exact = row_of(ctx, 0, at), *plain = row_of(ctx, 1 + at->draw, at);
  for (int64_t j = 0; s && j < at->n; j++) {
    if (isfinite(s[j]) && !(exact[j] < INFINITY)) atomic_store(&h->no_number, true);
    s[j] = exact[j];
  }
  for (int64_t j = 0; j < at->n; j++) s32[j] = plain[j];
  return ST_OK;
}

static Tensor score_tensor(const HookRule *h) {
  Tensor t = {.dtype = DT_F32, .rank = 2, .shape = {h->samples, h->seqlen_k}};
  tensor_dense(&t);
  return t;
}

// A tensor of hook_eval's own; whoever closes the device frees it.
static Status bind_new(Operator *op, Device *dev, const char *name, Tensor *t, Diag *d) {
  Status st = device_alloc(dev, tensor_span_bytes(t), name, &t->data, d);
  return st == ST_OK ? operator_bind(op, name, t, d) : st;
}

static Status prepare_operator(const HookRule *h, Operator *op, Device *dev, Tensor *scores,
                               Extras *extras, Diag *d) {
  Status st = operator_load(op, dev, d);
  if (st == ST_OK) st = operator_plan(op, dev, NULL, d);
  if (st == ST_OK) st = bind_new(op, dev, "scores", scores, d);
  return st == ST_OK ? extras_bind(op, dev, h->seed, extras, d) : st;
}

static Status run_rule(HookRule *h, Operator *op, Device *dev, Diag *d) {
  Tensor t = score_tensor(h);
  Extras extras = {0};
  Status st = prepare_operator(h, op, dev, &t, &extras, d);
  uint64_t bytes = tensor_span_bytes(&t);
  for (int i = 0; i <= h->draws && st == ST_OK; i++) {
    st = device_write(dev, t.data, h->scores[i], bytes, d);
    if (st == ST_OK) st = operator_launch(op, dev, d);
    if (st == ST_OK) st = device_sync(dev, d);
    if (st == ST_OK) st = device_read(dev, h->scores[i], t.data, bytes, d);
  }
  extras_free(&extras, dev);
  return st;
}

static Status run_ranges(HookRule *h, Operator *op, Device *dev, Diag *d) {
  Tensor t = score_tensor(h), unmasked = score_tensor(h);
  Tensor ends = {.dtype = DT_I32, .rank = 3, .shape = {h->samples, RANGE_BLOCKS, RANGE_ENDS}};
  tensor_dense(&ends);
  Extras extras = {0};
  HookRanges *r = &h->ranges;
  uint64_t bytes = tensor_span_bytes(&t), end_bytes = tensor_span_bytes(&ends);
  r->unmasked = malloc(bytes + 1), r->ends = malloc(end_bytes + 1);
  if (!r->unmasked || !r->ends)
    return diag_fail(d, ST_INPUT, "not enough host memory for the ranges of %lld rows",
                     (long long)h->samples);
  Status st = prepare_operator(h, op, dev, &t, &extras, d);
  if (st == ST_OK) st = bind_new(op, dev, "unmasked", &unmasked, d);
  if (st == ST_OK) st = bind_new(op, dev, "ranges_of", &ends, d);
  if (st == ST_OK) st = device_write(dev, t.data, r->raw, bytes, d);
  if (st == ST_OK) st = operator_launch(op, dev, d);
  if (st == ST_OK) st = device_sync(dev, d);
  if (st == ST_OK) st = device_read(dev, r->unmasked, unmasked.data, bytes, d);
  if (st == ST_OK) st = device_read(dev, r->ends, ends.data, end_bytes, d);
  extras_free(&extras, dev);
  return st;
}

static Status make_operator(const HookRule *h, const Problem *p, bool ranges, Operator **op,
                            Diag *d) {
  PlanOpts opts = {.build = {.hook_path = h->path}};
  Arena *a = arena_new();
  Params params = {0};
  Problem *sampled = problem_copy(a, p);
  problem_set_int(sampled, "samples", h->samples);
  problem_set_int(sampled, "every", h->every);
  params_set(a, &params, "sampled", "true");
  if (ranges) params_set(a, &params, "ranges", "true");
  if (problem_varlen(p)) params_set(a, &params, "varlen", "true");
  Status st = operator_make(h->session, "hook_eval", &params, sampled, &opts, op, d);
  arena_free(a);
  return st;
}

// Where the hook has ranges: they are asked for with the scores as they were before the rule.
static Status note_ranges(HookRule *h, const Variant *v, Diag *d) {
  HookRanges *r = &h->ranges;
  ranges_free(r);
  if (v->keys_any_at) r->any_at = arena_strdup(h->arena, v->keys_any_at);
  if (v->keys_all_at) r->all_at = arena_strdup(h->arena, v->keys_all_at);
  if (!hook_rule_has_ranges(h)) return ST_OK;
  size_t bytes = (size_t)(h->samples * h->seqlen_k) * sizeof *r->raw;
  r->raw = malloc(bytes + 1);
  if (!r->raw) return diag_fail(d, ST_INPUT, "not enough host memory for a hook's scores");
  memcpy(r->raw, h->scores[0], bytes);
  return ST_OK;
}

static Status apply_rule(HookRule *h, const Problem *p, Diag *d) {
  Device *sim;
  Operator *op = NULL, *ranges = NULL;
  Status st = device_open("sim", &sim, d);
  if (st != ST_OK) return st;
  device_sim_opts(sim, &(SimOpts){.step_limit = h->step_limit});
  st = make_operator(h, p, false, &op, d);
  if (st == ST_OK) st = note_ranges(h, op->step[0].variant, d);
  if (st == ST_OK) st = run_rule(h, op, sim, d);
  if (st == ST_OK && hook_rule_has_ranges(h)) {
    st = make_operator(h, p, true, &ranges, d);
    if (st == ST_OK) st = run_ranges(h, ranges, sim, d);
  }
  operator_free(ranges);
  operator_free(op);
  device_close(sim); // and what is left on it
  return st;
}

bool hook_rule_has_ranges(const HookRule *h) { return h->ranges.any_at || h->ranges.all_at; }

const char *hook_rule_wrong_range(const HookRule *h, const Problem *p, Arena *a) {
  RangeRows rows = {.heads = h->heads,
                    .seqlen_q = h->seqlen_q,
                    .seqlen_k = h->seqlen_k,
                    .every = h->every,
                    .samples = h->samples,
                    .scores = h->scores[0]};
  return hook_rule_has_ranges(h) ? ranges_wrong(a, p, &h->ranges, &rows) : NULL;
}

Status hook_rule_prepare(HookRule *h, const Problem *p, const AttnInputs *in,
                         ReferenceOpts *opts, Diag *d) {
  const int64_t *n = in->q.t.shape;
  h->heads = n[2];
  h->seqlen_q = n[1];
  h->seqlen_k = in->k.t.shape[1];
  h->every = opts->every > 1 ? opts->every : 1;
  int64_t rows = 1, bytes = 4;
  for (int i = 0; i < 3; i++)
    if (__builtin_mul_overflow(rows, n[i], &rows)) rows = INT64_MAX;
  h->samples = rows / h->every + (rows % h->every != 0);
  if (rows > INT32_MAX || __builtin_mul_overflow(h->samples, 4 * h->seqlen_k, &bytes))
    bytes = INT64_MAX;
  h->draws = reference_draws(p, opts);
  if (h->draws > HOOK_DRAWS) h->draws = HOOK_DRAWS;
  opts->draws = h->draws;
  bool all = true;
  for (int i = 0; i <= h->draws; i++) {
    free(h->scores[i]);
    h->scores[i] = bytes > INT32_MAX ? NULL : calloc((size_t)bytes + 1, 1);
    all &= h->scores[i] != NULL;
  }
  if (!all)
    return diag_fail(d, ST_INPUT,
                     "verifying a hook takes the scores of %lld rows of %lld keys at once, which "
                     "is too many; use a smaller problem",
                     (long long)h->samples, (long long)h->seqlen_k);
  ReferenceOpts first = *opts;
  first.score = collect;
  first.ctx = h;
  Reference ignored;
  Status st = reference_rows(p, in, &first, &ignored, d);
  if (st != ST_OK) return st;
  reference_free(&ignored);
  return apply_rule(h, p, d);
}

// ---- problems with a hook's values -------------------------------------------------------------
static Status open_with_hook(Session *s, Arena *a, const char *spec, const char *hook_path,
                             Problem **out, Diag *d) {
  Variant *v;
  VariantOpts opts = {.hook_path = hook_path};
  Status st = variant_build(s, "hook_eval", NULL, &opts, &v, d);
  if (st != ST_OK) return st;
  const char **names = arena_array(a, const char *, v->nargs);
  int n = 0;
  for (int i = 0; i < v->nargs; i++)
    if (v->args[i].role == ARG_VALUE && !problem_name_find(v->args[i].name))
      names[n++] = arena_strdup(a, v->args[i].name);
  variant_free(v);
  return problem_open_with(s, a, spec, names, n, out, d);
}

Status problem_open_planned(Session *s, Arena *a, const char *spec, const char *hook_path,
                            Problem **out, Diag *d) {
  *out = NULL;
  Status st = hook_path ? open_with_hook(s, a, spec, hook_path, out, d)
                        : problem_open(s, a, spec, out, d);
  return st == ST_OK ? lengths_check_pages(*out, d) : st; // no template would take it
}

Status problem_open_hooked(Session *s, Arena *a, const char *spec, const char *hook_path,
                           Problem **out, Diag *d) {
  Status st = problem_open_planned(s, a, spec, hook_path, out, d);
  return st == ST_OK ? lengths_check_whole(*out, d) : st;
}
