// Gate 1: answers known in closed form.
//
// With Q = 0 every score is 0 and every visible key weighs the same: O is the mean of the visible
// values and LSE is ln of their number.  One launch serves five such tests: column e of key head h
// holds form (e + h) % 5, so that every column holds every form in some head.
#include <math.h>
#include <stdlib.h>

#include "parallel.h"
#include "verify_gates.h"

enum { FORM_CLOSED, FORM_INTEGER, FORM_CONSTANT, FORM_CANCEL, FORM_ONE_HOT, FORMS };
static const char *const form_names[FORMS] = {"closed-form", "integer", "constant-v", "cancelling",
                                              "one-hot"};

typedef struct EqualV {
  const int64_t *keys; // of each sequence
  int64_t heads, dim;
} EqualV;

// The key whose one-hot sits in column e of (batch b, head h): the first, the last, its neighbours,
// then spread over all keys, differently in each head.
static int64_t probe(const EqualV *x, int64_t b, int64_t h, int64_t e) {
  int64_t n = x->keys[b], slot = e / FORMS, at = b * x->heads + h;
  if (n == 0) return 0;
  if (slot == 0) return at % n;
  if (slot == 1) return n - 1 - at % n;
  return (int64_t)(random_bits(17, (uint64_t)(at * x->dim + slot)) % (uint64_t)n);
}

static double equal_value(void *ctx, int64_t b, int64_t j, int64_t h, int64_t e) {
  const EqualV *x = ctx;
  switch ((e + h) % FORMS) {
  case FORM_CLOSED: return 0.01 * (double)j + (double)((b * x->heads + h) % 8);
  case FORM_INTEGER: return (double)((j + 7 * (b * x->heads + h)) % 256);
  case FORM_CONSTANT: return (double)(1 + (e + 3 * (b * x->heads + h)) % 127);
  case FORM_CANCEL: // +a -a +b -b ...: the sum of an even number is 0, one key more or less shows
    return (double)(1 + j / 2 % 127) * (j % 2 ? -1 : 1);
  default: return j == probe(x, b, h, e);
  }
}

// Means over the visible keys, from running sums.  V is exact in fp64 and so are all sums but those
// of the closed form, whose error (n 2^-53) is nothing beside the bound.
typedef struct Means {
  const Problem *p;
  const HostTensor *v, *factor;
  Reference *ref;
  int64_t heads_q, heads_kv, seqlen_q, dim;
  double *sums; // `dim` for each batch and key head
} Means;

static void add_row(const HostTensor *v, int64_t b, int64_t j, int64_t k, double sign,
                    double *sum) {
  for (int64_t e = 0; e < v->t.shape[3]; e++) sum[e] += sign * host_get(v, b, j, k, e);
}

static void means_of_head(const Means *m, int64_t b, int64_t k, double *sum) {
  int64_t group = m->heads_q / m->heads_kv, j = 0, first = 0, rows = problem_len_q(m->p, b);
  const HostTensor *factor = m->factor;
  double of_v = factor->host ? ((const float *)factor->host)[b * factor->t.stride[0] + k] : 1;
  for (int64_t i = 0; i < rows; i++) {
    KeyRange keys = visible_range(m->p, b, i);
    double n = (double)(keys.to - keys.from);
    for (; j < keys.to; j++) add_row(m->v, b, j, k, 1, sum);
    for (; first < keys.from; first++) add_row(m->v, b, first, k, -1, sum);
    for (int64_t h = k * group; h < (k + 1) * group; h++) {
      double *o = m->ref->o + ((b * m->seqlen_q + i) * m->heads_q + h) * m->dim;
      for (int64_t e = 0; e < m->dim; e++) o[e] = n > 0 ? sum[e] / n * of_v : 0;
      m->ref->lse[(b * m->heads_q + h) * m->seqlen_q + i] = n > 0 ? log(n) : -INFINITY;
    }
  }
}

static void means_of_heads(void *ctx, int chunk, int64_t from, int64_t to) {
  (void)chunk;
  const Means *m = ctx;
  for (int64_t x = from; x < to; x++)
    means_of_head(m, x / m->heads_kv, x % m->heads_kv, m->sums + x * m->dim);
}

static Status expected_means(const Problem *p, const AttnInputs *in, Reference *ref, Diag *d) {
  Means m = {.p = p,
             .v = &in->v,
             .factor = &in->descale[2],
             .ref = ref,
             .heads_q = problem_int(p, "heads_q", 1),
             .seqlen_q = problem_int(p, "seqlen_q", 1),
             .dim = problem_head_dim_v(p)};
  m.heads_kv = problem_int(p, "heads_kv", m.heads_q);
  int64_t heads = problem_int(p, "batch", 1) * m.heads_kv;
  m.sums = calloc((size_t)(heads * m.dim + 1), sizeof *m.sums);
  if (!m.sums) return diag_fail(d, ST_INPUT, "not enough host memory for the expected means");
  parallel_ranges(heads, 1 + (1 << 16) / (1 + m.seqlen_q * m.dim), means_of_heads, &m);
  free(m.sums);
  return ST_OK;
}

// fp32 arithmetic with exact sums leaves one division: 1 ulp of fp32 (2^-23 relative) for those
// that multiply by a reciprocal, then one rounding to the dtype; an exact 0 stays 0.  The closed
// form adds n rounded numbers of one sign: (n - 1) 2^-24 relative in any order, and 8 more
// roundings for merging and dividing.
//
// Accumulators of 8-bit products keep 14 digits: each of n terms, or the sum that it joins, loses
// less than 2^-13 of the largest magnitude so far.  That is the sum itself where all have one sign,
// and 128 where they cancel: n 2^-13 128 / n = 2^-6 of the mean, twice that with a factor of 2.
static Tolerance form_tolerance8(int form, int64_t keys) {
  switch (form) {
  case FORM_CANCEL: return (Tolerance){.abs = 0x1p-5, .ulps = 0.5};
  case FORM_ONE_HOT: return (Tolerance){.rel = 0x1p-23, .ulps = 0.5};
  default: return (Tolerance){.rel = (double)(keys + 8) * 0x1p-13, .ulps = 0.5};
  }
}

static Tolerance form_tolerance(int form, int64_t keys, Dtype in, Dtype o) {
  if (in == DT_E4M3) return form_tolerance8(form, keys);
  if (o == DT_F64) return (Tolerance){.rel = 0x1p-40};
  bool rounded = dtype_mantissa(o) < 24;
  switch (form) {
  case FORM_CLOSED: return (Tolerance){.rel = ((double)keys + 8) * 0x1p-24, .rounded = rounded};
  case FORM_CONSTANT: return (Tolerance){0};
  default: return (Tolerance){.rel = 0x1p-23, .rounded = rounded};
  }
}

char *exact_settings(Arena *a) {
  static const Dtype in[] = {DT_F32, DT_BF16, DT_E4M3, DT_F64};
  char *text = arena_strdup(a, "");
  for (int form = 0; form < FORMS; form++)
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
      Tolerance t = form_tolerance(form, 1000, in[i], in[i]);
      text = arena_printf(a, "%s %s %a %a %a %d", text, form_names[form], t.abs, t.rel, t.ulps,
                          t.rounded);
    }
  return text;
}

// Every sequence with a power-of-two number of keys, `most` at most; one without any stays so.
static Problem *powers_of_two(const GateRun *g, int64_t most) {
  Problem *p = problem_with(g->arena, g->problem, "seqlen_k", most);
  const Value *v = problem_value(p, "seqlens_k");
  if (!v) return p;
  int64_t *list = arena_array(g->arena, int64_t, v->nlist + 1);
  for (int i = 0; i < v->nlist; i++) {
    for (list[i] = 1; 2 * list[i] <= v->list[i];) list[i] *= 2;
    if (!v->list[i]) list[i] = 0;
  }
  problem_set_list(p, "seqlens_k", list, v->nlist);
  return p;
}

static void compare_forms(GateRun *g, const Problem *p, const Reference *ref, const Outputs *out,
                          bool only_one_hot) {
  int64_t sk = problem_int(p, "seqlen_k", 0), hq = problem_int(p, "heads_q", 1);
  for (int form = only_one_hot ? FORM_ONE_HOT : 0; form < FORMS; form++) {
    bool exact_sums = form == FORM_CLOSED || form == FORM_ONE_HOT || sk <= 65536;
    if (!exact_sums) {
      gate_skip(g, form_names[form], "seqlen_k > 65536: sums may not be exact in fp32");
      continue;
    }
    GateResult *r = gate_new(g, only_one_hot ? "one-hot-exact" : form_names[form]);
    Expected x = {.problem = p,
                  .o = ref->o,
                  .o_max = form_tolerance(form, sk, g->runner->in_dtype, out->o.t.dtype),
                  .o_mean = -1,
                  .forms = FORMS,
                  .form = form,
                  .group = hq / problem_int(p, "heads_kv", hq)};
    if (only_one_hot) x.o_max = (Tolerance){0};
    if (g->split && !only_one_hot) x.o_max.rel += SPLIT_LOSS;
    if (form == FORM_CLOSED) { // lg2.approx: 2^-22.6 relative, and as much absolute near 1
      x.lse = ref->lse;
      x.lse_max = (Tolerance){.abs = 0x1p-21, .rel = 0x1p-21};
    }
    compare_outputs(&x, &out->o, out->lse.host ? &out->lse : NULL, r);
    gate_note_damage(g, r, out);
  }
}

static Status reference_room(const Problem *p, Reference *ref, Diag *d) {
  int64_t rows =
      problem_int(p, "batch", 1) * problem_int(p, "seqlen_q", 1) * problem_int(p, "heads_q", 1);
  size_t n = (size_t)(rows > 0 ? rows : 1);
  *ref = (Reference){.o = calloc(n * (size_t)problem_head_dim_v(p), sizeof(double)),
                     .lse = calloc(n, sizeof(double))};
  if (ref->o && ref->lse) return ST_OK;
  reference_free(ref);
  return diag_fail(d, ST_INPUT, "not enough host memory for %lld expected rows", (long long)rows);
}

static double nought(void *ctx, int64_t b, int64_t j, int64_t h, int64_t e) {
  (void)ctx, (void)b, (void)j, (void)h, (void)e;
  return 0;
}

static Status equal_case(void *ctx, KeptCase *out, Diag *d) {
  const CaseMaker *x = ctx;
  AttnInputs *in = &out->in;
  Status st = inputs_make(x->p, x->g->runner->in_dtype, FILL_NAN, in, d);
  if (st == ST_OK) st = reference_room(x->p, &out->ref, d);
  if (st != ST_OK) return st;
  int64_t *keys = arena_array(x->g->arena, int64_t, (size_t)in->v.t.shape[0] + 1);
  for (int64_t b = 0; b < in->v.t.shape[0]; b++) keys[b] = problem_len_k(x->p, b);
  EqualV v = {.keys = keys, .heads = in->v.t.shape[2], .dim = in->v.t.shape[3]};
  host_fill_with(&in->q, nought, NULL);
  host_fill_random(&in->k, x->g->opts->seed + 11, 1);
  host_fill_with(&in->v, equal_value, &v);
  inputs_end(x->p, in);
  SpentOn was = spent_on(x->g->opts->spent, SPENT_REFERENCE);
  st = expected_means(x->p, in, &out->ref, d);
  spent_on(x->g->opts->spent, was);
  return st;
}

static Status equal_weights(GateRun *g, const Problem *p, bool only_one_hot, Diag *d) {
  const KeptCase *c;
  Outputs out = {0};
  Status st = gate_case(g, "equal weights", p, equal_case, NULL, &c, d);
  if (st == ST_OK) st = gate_run(g, p, c, g->opts->grid, &out, d);
  SpentOn was = spent_on(g->opts->spent, SPENT_COMPARE);
  if (st == ST_OK) compare_forms(g, p, &c->ref, &out, only_one_hot);
  outputs_free(&out);
  kept_release(c);
  spent_on(g->opts->spent, was);
  return st;
}

static const char *why_unequal(const GateRun *g) {
  if (g->rule) return "a hook changes the scores; the reference gate applies its rule";
  bool more = problem_int(g->problem, "alibi", 0) || problem_int(g->problem, "sinks", 0);
  return more ? "slopes and sinks make weights unequal; the reference gate has them" : NULL;
}

// One-hot V over a power-of-two number of keys is exact to the bit: 2^-k, and every partial sum
// too.
static const char *why_no_power(const GateRun *g) {
  if (!problem_int(g->problem, "seqlen_k", 0)) return "there are no keys";
  bool masked = problem_int(g->problem, "causal", 0) || problem_windowed(g->problem);
  return masked ? "under a mask rows see other numbers of keys than powers of two" : NULL;
}

Status gate_equal_weights(GateRun *g, Diag *d) {
  const char *why = why_unequal(g);
  for (int form = 0; form < FORMS && why; form++) gate_skip(g, form_names[form], why);
  Status st = why ? ST_OK : equal_weights(g, g->problem, false, d);
  if (st != ST_OK || g->opts->quick) return st;
  if (!why) why = why_no_power(g);
  if (why) {
    gate_skip(g, "one-hot-exact", why);
    return ST_OK;
  }
  int64_t sk = problem_int(g->problem, "seqlen_k", 0), exact = 1;
  while (exact * 2 <= sk && exact < 16384) exact *= 2; // 2^-14 is still a normal f16
  bool same = !problem_varlen(g->problem) && exact == sk;
  return equal_weights(g, same ? g->problem : powers_of_two(g, exact), true, d);
}

// The only weight is 2^r, r what rounding the maximum m left of s log2 e: half an ulp of it.  O = v
// round(2^r) / 2^r errs by the least of r ln 2 and P's rounding, and not at all where O's rounding
// hides it.
static Tolerance one_key_tolerance(const GateRun *g, const Reference *ref) {
  if (g->split) return (Tolerance){.rel = 2 * SPLIT_LOSS}; // 2^r is split as well
  Dtype in = g->runner->in_dtype, o = g->runner->o_dtype;
  if (dtype_mantissa(o) >= 24) return (Tolerance){0};
  double off = dtype_ulp(DT_F32, ref->score_max * 1.4426950408889634) / 2 * 0.6931471805599453;
  double of_p = ldexp(1, -dtype_mantissa(in));
  double err = off < of_p ? off : of_p;
  if (err < ldexp(1, -dtype_mantissa(o) - 1)) return (Tolerance){0};
  return (Tolerance){.rel = err, .rounded = true};
}

static Status one_key_case(void *ctx, KeptCase *out, Diag *d) {
  const CaseMaker *x = ctx;
  Status st = inputs_make(x->p, x->g->runner->in_dtype, FILL_INF, &out->in, d);
  if (st != ST_OK) return st;
  inputs_fill_random(&out->in, x->g->opts->seed + 5);
  inputs_end(x->p, &out->in);
  return gate_reference_of(x->g, x->p, out, d);
}

// One visible key: its weight is 1, O is its V to the bit, LSE its score.
Status gate_one_key(GateRun *g, Diag *d) {
  if (g->rule) {
    gate_skip(g, "one-key", "a hook may mask the only key");
    return ST_OK;
  }
  if (problem_int(g->problem, "sinks", 0)) {
    gate_skip(g, "one-key", "the only key shares its weight with the sink");
    return ST_OK;
  }
  const Problem *p = problem_with(g->arena, g->problem, "seqlen_k", 1);
  const KeptCase *c;
  Outputs out = {0};
  Status st = gate_case(g, "one key", p, one_key_case, NULL, &c, d);
  if (st == ST_OK) st = gate_run(g, p, c, g->opts->grid, &out, d);
  SpentOn was = spent_on(g->opts->spent, SPENT_COMPARE);
  if (st == ST_OK) {
    GateResult *r = gate_new(g, "one-key");
    Expected x = expect_of_run(g, p, &c->ref, &out, 1);
    x.o_max = one_key_tolerance(g, &c->ref);
    x.o_mean = x.o_max.rel > 0 ? -1 : 0;
    compare_outputs(&x, &out.o, out.lse.host ? &out.lse : NULL, r);
    gate_note_damage(g, r, &out);
  }
  outputs_free(&out);
  kept_release(c);
  spent_on(g->opts->spent, was);
  return st;
}
