// Gates 2, 4 and 5: random inputs against the oracle, the same bits from any grid, and memory that
// must not be seen or touched.
#include "verify_gates.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parallel.h"

// ---- results -----------------------------------------------------------------------------------
const char *const gate_names[] = {"closed-form", "integer", "constant-v", "cancelling",
                                  "one-hot", "one-hot-exact", "expect", "one-key",
                                  "reference", "unseen", "grid"};
const int gate_nnames = sizeof gate_names / sizeof *gate_names;

GateResult *gate_new(GateRun *g, const char *name) {
  assert(g->verdict->ngates < VERIFY_MAX_GATES);
  GateResult *r = &g->verdict->gate[g->verdict->ngates++];
  *r = (GateResult){.name = name, .run = true, .passed = true};
  return r;
}

void gate_skip(GateRun *g, const char *name, const char *why) {
  GateResult *r = gate_new(g, name);
  r->run = false;
  r->why_not = why;
}

void gate_note_damage(GateRun *g, GateResult *r, const Outputs *out) {
  if (!out->damaged) return;
  r->passed = false;
  r->note = arena_strdup(g->arena, out->note);
  if (out->where.found) r->bad = out->where; // more to the point than what its poison compares as
}

// What the host's oracle may take: about ten seconds of two cores.
#define ORACLE_FLOPS 0x1p34

static int64_t sample_step(const GateRun *g, const Problem *p) {
  double most = g->opts->host_flops > 0 ? g->opts->host_flops : ORACLE_FLOPS;
  double ratio = problem_flops(p) / most;
  return ratio <= 1 ? 1 : ((int64_t)ratio | 1) + 2; // odd: heads and rows all get their turn
}

// ---- cases -------------------------------------------------------------------------------------
// All that inputs and answers follow from.  Chunks are how a kernel goes about it.
static const char *case_key(const GateRun *g, const char *what, const Problem *p) {
  if (!what || !g->opts->kept || g->rule) return NULL;
  Problem *c = problem_copy(g->arena, p);
  problem_drop(c, "chunks");
  return arena_printf(g->arena, "%s: %s; %s to %s, seed %llu, rows by %lld%s", what,
                      problem_text(g->arena, c), dtype_name(g->runner->in_dtype),
                      dtype_name(g->runner->o_dtype), (unsigned long long)g->opts->seed,
                      (long long)sample_step(g, p), g->all_rows ? " and the device's oracle" : "");
}

Status gate_case(GateRun *g, const char *what, const Problem *p, CaseFn make, const void *ctx,
                 const KeptCase **out, Diag *d) {
  SpentOn was = spent_on(g->opts->spent, SPENT_INPUTS);
  Status st = kept_case(g->opts->kept, case_key(g, what, p), make,
                        &(CaseMaker){.g = g, .p = p, .ctx = ctx}, out, d);
  spent_on(g->opts->spent, was);
  return st;
}

Status gate_run(const GateRun *g, const Problem *p, const KeptCase *c, uint32_t grid, Outputs *out,
                Diag *d) {
  return g->runner->run(g->runner->ctx, p, &c->in, grid, out, d);
}

Status gate_reference_of(const GateRun *g, const Problem *p, KeptCase *out, Diag *d) {
  SpentOn was = spent_on(g->opts->spent, SPENT_REFERENCE);
  ReferenceOpts opts = reference_opts(g);
  Status st = reference_rows(p, &out->in, &opts, &out->ref, d);
  spent_on(g->opts->spent, was);
  return st;
}

ReferenceOpts reference_opts(const GateRun *g) {
  return (ReferenceOpts){
      .threads = g->opts->threads, .has_dtype_o = true, .dtype_o = g->runner->o_dtype};
}

Problem *problem_with(Arena *a, const Problem *p, const char *name, int64_t value) {
  Problem *c = problem_copy(a, p);
  problem_set_int(c, name, value);
  problem_fit_lengths(c);
  return c;
}

// ---- gate 2 ------------------------------------------------------------------------------------
typedef struct Sizes {
  const double *x;
  double max[PARALLEL_CHUNKS];
} Sizes;

static void largest_of(void *ctx, int chunk, int64_t from, int64_t to) {
  Sizes *s = ctx;
  double max = 0;
  for (int64_t i = from; i < to; i++)
    if (isfinite(s->x[i]) && fabs(s->x[i]) > max) max = fabs(s->x[i]);
  s->max[chunk] = max;
}

static double largest(const double *x, int64_t n) {
  Sizes s = {.x = x};
  double max = 0;
  parallel_ranges(n, 1 << 16, largest_of, &s);
  for (int c = 0; c < PARALLEL_CHUNKS; c++)
    if (s.max[c] > max) max = s.max[c];
  return max;
}

// LSE = (max + lg2 sum) ln 2 in fp32: lg2.approx is good to 2^-22 (of its result where that is
// large), and four roundings follow at the size of the LSE.
static double lse_slack(double lse) { return 0x1p-21 + 4 * dtype_ulp(DT_F32, lse) / 2; }

// The LSE has the error of the scores.  A tensor core may cut off what an fp32 sum would round (PTX
// ISA 9.7.14.5), and adds in an order of its own: twice the error of the plain formula, twice
// again.
static double lse_allowed(const Reference *ref, const Outputs *out) {
  double slack = lse_slack(largest(ref->lse, tensor_elements(&out->lse.t)));
  return (dtype_bytes(out->o.t.dtype) < 4 ? 2 : 1) * (2 * ref->plain_lse_max + slack);
}

// Two means over R rows of peaked weights differ by chance, by about 1/sqrt(R) of themselves; that
// of the worst of many draws of R rows has met it.  Means of fp32 outputs are fractions of an ulp
// besides.
static double mean_allowed(const Reference *ref, const Outputs *out, double max_o) {
  const int64_t *n = out->o.t.shape;
  int64_t there = 0; // rows past a sequence's end and those that were left out are NaN
  for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) there += !isnan(ref->lse[i]);
  double rows = (double)there * (ref->draws > 1 ? ref->draws : 1);
  double chance = 1 + 4 / sqrt(rows > 1 ? rows : 1);
  double floor = out->o.t.dtype == DT_F32 ? dtype_ulp(DT_F32, max_o) / 4 : 0;
  return 1.5 * ref->plain_mean * chance + floor;
}

static Expected expect_reference(const Reference *ref, const Outputs *out, int64_t every) {
  Dtype t = out->o.t.dtype;
  double max_o = largest(ref->o, tensor_elements(&out->o.t));
  Expected x = {.o = ref->o,
                .lse = ref->lse,
                .o_max = {.abs = 2 * ref->plain_max + dtype_ulp(t, max_o)},
                .o_mean = mean_allowed(ref, out, max_o),
                .every = every};
  if (t == DT_F64) { // the fp64 kernel: nothing is rounded to less, so e says nothing
    x.o_max = x.lse_max = (Tolerance){.abs = 0x1p-40, .rel = 0x1p-40};
    x.o_mean = 0x1p-44;
  } else if (out->lse.host) {
    x.lse_max.abs = lse_allowed(ref, out);
  }
  return x;
}

// wgmma cuts terms and sums of 8-bit products to 14 digits (docs/numerics.md), head_dim / 32 times
// a score, by the size of its largest term or partial sum: that of the largest score, or term, of
// all.
static double score_slack8(const Problem *p, const Reference *ref) {
  return 0x1p-13 * 2 * ref->score_max * (double)problem_int(p, "head_dim", 32) / 32;
}

Expected expect_of_run(const GateRun *g, const Problem *p, const Reference *ref, const Outputs *out,
                       int64_t every) {
  Expected x = expect_reference(ref, out, every);
  x.problem = p;
  if (g->runner->in_dtype == DT_E4M3) { // 4 e and 3 e in all
    x.o_max.abs += 2 * ref->plain_max;
    x.o_mean *= 2;
    x.lse_max.abs += score_slack8(p, ref);
  }
  if (g->split) {
    // the big products of a score are cut to 24 digits head_dim / 8 times
    x.lse_max.abs += 0x1p-23 * ref->score_max * (double)problem_int(p, "head_dim", 32) / 8;
    x.o_max.abs += 2 * SPLIT_LOSS * ref->v_max; // of weights and of values
    x.o_mean += SPLIT_LOSS * ref->v_max;
  }
  return x;
}

// ---- gate 4 ------------------------------------------------------------------------------------
// Rows whose bits may differ.
typedef struct Skip {
  const Problem *problem;
  bool last;  // a sequence's last query
  int parity; // sequences with keys that are even (0) or odd (1) among those; -1: none
} Skip;

// Asked for every sequence in turn: *number of the sequence among those with keys.
static bool spoiled(const Skip *s, int64_t batch, int64_t *number) {
  if (s->parity < 0) return false;
  bool yes = *number % 2 == s->parity;
  *number += problem_len_k(s->problem, batch) > 0;
  return yes;
}

// The last query where it is not compared; -1: all are.
static int64_t skipped_row(const Skip *s, int64_t batch) {
  return s && s->last ? problem_len_q(s->problem, batch) - 1 : -1;
}

// One place where the bits may differ.
static void compare_element(const char *name, const HostTensor *a, const HostTensor *b,
                            const int64_t at[4], GateResult *r) {
  size_t bytes = (size_t)dtype_bytes(a->t.dtype);
  size_t from = (size_t)tensor_at(&a->t, at[0], at[1], at[2], at[3]) * bytes;
  if (!memcmp((char *)a->host + from, (char *)b->host + from, bytes)) return;
  bool rows = a->t.rank == 4;
  double x = host_get(a, at[0], at[1], at[2], at[3]), y = host_get(b, at[0], at[1], at[2], at[3]);
  if (worse(fabs(y - x), r->max_error)) r->max_error = fabs(y - x);
  r->passed = false;
  if (r->bad.found) return;
  r->bad = (Mismatch){.found = true,
                      .tensor = name,
                      .batch = at[0],
                      .head = at[rows ? 2 : 1],
                      .row = at[rows ? 1 : 2],
                      .col = at[3],
                      .expected = x,
                      .got = y};
}

// The same bits, row by row: of a row of O all at once.
static void compare_bits(const char *name, const HostTensor *a, const HostTensor *b,
                         const Skip *skip, GateResult *r) {
  const int64_t *n = a->t.shape;
  bool rows = a->t.rank == 4; // [batch, seqlen, heads, dim], else [batch, heads, seqlen]
  int64_t last = rows ? n[3] : 1, number = 0;
  size_t bytes = (size_t)dtype_bytes(a->t.dtype);
  for (int64_t i = 0; i < n[0]; i++) {
    if (skip && spoiled(skip, i, &number)) continue;
    int64_t left_out = skipped_row(skip, i);
    for (int64_t j = 0; j < n[1]; j++)
      for (int64_t k = 0; k < n[2]; k++) {
        if ((rows ? j : k) == left_out) continue;
        size_t at = (size_t)tensor_at(&a->t, i, j, k, 0) * bytes;
        r->compared += last;
        if (!memcmp((char *)a->host + at, (char *)b->host + at, (size_t)last * bytes)) continue;
        for (int64_t e = 0; e < last; e++)
          compare_element(name, a, b, (const int64_t[]){i, j, k, e}, r);
      }
  }
}

static void compare_runs(const Outputs *first, const Outputs *again, const Skip *skip,
                         GateResult *r) {
  compare_bits("o", &first->o, &again->o, skip, r);
  if (first->lse.host) compare_bits("lse", &first->lse, &again->lse, skip, r);
}

static Status grid_run(GateRun *g, const Problem *p, const KeptCase *c, const Outputs *first,
                       uint32_t grid, GateResult *r, Diag *d) {
  Outputs out;
  Status st = gate_run(g, p, c, grid, &out, d);
  if (st != ST_OK) return st;
  SpentOn was = spent_on(g->opts->spent, SPENT_COMPARE);
  compare_runs(first, &out, NULL, r);
  gate_note_damage(g, r, &out);
  if (!r->passed && !r->note) r->note = arena_printf(g->arena, "with %u block(s)", grid);
  outputs_free(&out);
  spent_on(g->opts->spent, was);
  return ST_OK;
}

static Status compare_grids(GateRun *g, const Problem *p, const KeptCase *c, const Outputs *first,
                            Diag *d) {
  GateResult *r = gate_new(g, "grid");
  Status st = grid_run(g, p, c, first, runner_blocks(g->runner, 1), r, d);
  if (st == ST_OK && r->passed)
    st = grid_run(g, p, c, first, runner_blocks(g->runner, 2), r, d);
  return st;
}

// One block does all the work of a launch: a problem of the same kind that one block can do in
// time.
static Problem *smaller(Arena *a, const Problem *p, double flops) {
  Problem *c = problem_copy(a, p);
  int64_t group = problem_int(p, "heads_q", 1) / problem_int(p, "heads_kv", 1);
  while (problem_flops(c) > flops) {
    int64_t b = problem_int(c, "batch", 1), hkv = problem_int(c, "heads_kv", 1);
    int64_t sq = problem_int(c, "seqlen_q", 1), sk = problem_int(c, "seqlen_k", 1);
    if (b > 1) problem_set_int(c, "batch", b / 2);
    else if (hkv > 1) problem_set_int(c, "heads_kv", hkv / 2);
    else if (sq > 300) problem_set_int(c, "seqlen_q", sq / 2);
    else if (sk > 300) problem_set_int(c, "seqlen_k", sk / 2);
    else break;
    problem_set_int(c, "heads_q", problem_int(c, "heads_kv", 1) * group);
    problem_fit_lengths(c);
  }
  return c;
}

#define GRID_FLOPS 0x1p32

static Status random_inputs(void *ctx, KeptCase *out, Diag *d) {
  const CaseMaker *x = ctx;
  Status st = inputs_make(x->p, x->g->runner->in_dtype, FILL_NAN, &out->in, d);
  if (st != ST_OK) return st;
  inputs_fill_random(&out->in, x->g->opts->seed + 1);
  inputs_end(x->p, &out->in);
  return ST_OK;
}

static Status gate_grid(GateRun *g, const KeptCase *c, const Outputs *first, Diag *d) {
  if (problem_flops(g->problem) <= GRID_FLOPS) return compare_grids(g, g->problem, c, first, d);
  const Problem *p = smaller(g->arena, g->problem, GRID_FLOPS);
  const KeptCase *small;
  Outputs out = {0};
  Status st = gate_case(g, "random, without an answer", p, random_inputs, NULL, &small, d);
  if (st == ST_OK) st = gate_run(g, p, small, 0, &out, d);
  if (st == ST_OK) st = compare_grids(g, p, small, &out, d);
  outputs_free(&out);
  kept_release(small);
  return st;
}

// ---- gate 5 ------------------------------------------------------------------------------------
static double same_value(void *ctx, int64_t i, int64_t j, int64_t k, int64_t e) {
  return host_get(ctx, i, j, k, e);
}

static void refill_gaps(const AttnInputs *from, AttnInputs *to) {
  AttnInputs source = *from;
  host_fill_with(&to->q, same_value, &source.q);
  host_fill_with(&to->k, same_value, &source.k);
  host_fill_with(&to->v, same_value, &source.v);
}

typedef struct Rows {
  const HostTensor *from;
  HostTensor *to;
} Rows;

static void copy_rows(void *ctx, int chunk, int64_t from, int64_t to) {
  (void)chunk;
  const HostTensor *x = ((Rows *)ctx)->from;
  HostTensor *y = ((Rows *)ctx)->to;
  const int64_t *n = x->t.shape, size = dtype_bytes(x->t.dtype);
  for (int64_t row = from; row < to; row++)
    for (int64_t k = 0; k < n[2]; k++)
      memcpy((char *)y->host + tensor_at(&y->t, row / n[1], row % n[1], k, 0) * size,
             (const char *)x->host + tensor_at(&x->t, row / n[1], row % n[1], k, 0) * size,
             (size_t)(n[3] * size));
}

// The same numbers between other gaps; of inputs that were made for one problem.
static void copy_inputs(const AttnInputs *from, AttnInputs *to) {
  const HostTensor *x[] = {&from->q, &from->k, &from->v};
  HostTensor *y[] = {&to->q, &to->k, &to->v};
  for (int i = 0; i < 3; i++)
    parallel_ranges(x[i]->t.shape[0] * x[i]->t.shape[1], 1 << 10, copy_rows,
                    &(Rows){.from = x[i], .to = y[i]});
}

// K and V of one key, of all heads.
static void spoil_key(AttnInputs *in, int64_t b, int64_t j, double k, double v) {
  const int64_t *n = in->k.t.shape;
  for (int64_t h = 0; h < n[2]; h++) {
    for (int64_t e = 0; e < n[3]; e++) host_set(&in->k, b, j, h, e, k);
    for (int64_t e = 0; e < in->v.t.shape[3]; e++) host_set(&in->v, b, j, h, e, v);
  }
}

// The last key is seen by the last query only: there K is NaN and V large.
static void spoil_last_key(const Problem *p, AttnInputs *in) {
  for (int64_t b = 0; b < in->k.t.shape[0]; b++)
    if (problem_len_k(p, b) > 0) spoil_key(in, b, problem_len_k(p, b) - 1, NAN, 16384);
}

// Keys that the window of no query reaches: K is NaN; V is too where no tile of 256 keys can hold a
// visible one as well, and large where one may.
static void spoil_unreached(const Problem *p, AttnInputs *in) {
  for (int64_t b = 0; b < in->k.t.shape[0]; b++) {
    int64_t rows = problem_len_q(p, b);
    if (!rows) continue;
    int64_t first = visible_range(p, b, 0).from, last = visible_range(p, b, rows - 1).to;
    for (int64_t j = 0; j < problem_len_k(p, b); j++)
      if (j < first || j >= last)
        spoil_key(in, b, j, NAN, j + 256 <= first || j >= last + 256 ? NAN : 16384);
  }
}

// Other sequences are nobody's: every second one is NaN altogether.
static void spoil_sequences(const Skip *skip, AttnInputs *in) {
  int64_t number = 0;
  for (int64_t b = 0; b < in->k.t.shape[0]; b++) {
    if (!spoiled(skip, b, &number)) continue;
    for (int64_t j = 0; j < problem_len_k(skip->problem, b); j++) spoil_key(in, b, j, NAN, NAN);
    for (int64_t i = 0; i < problem_len_q(skip->problem, b); i++)
      for (int64_t h = 0; h < in->q.t.shape[2]; h++)
        for (int64_t e = 0; e < in->q.t.shape[3]; e++) host_set(&in->q, b, i, h, e, NAN);
  }
}

typedef struct Unseen {
  const AttnInputs *in; // of the run to compare with
  const Skip *skip;
} Unseen;

static Status unseen_inputs(void *ctx, KeptCase *out, Diag *d) {
  const CaseMaker *x = ctx;
  const Unseen *u = x->ctx;
  Status st = inputs_make(x->p, x->g->runner->in_dtype, FILL_INF, &out->in, d);
  if (st != ST_OK) return st;
  copy_inputs(u->in, &out->in);
  inputs_end(x->p, &out->in);
  if (problem_windowed(x->p)) spoil_unreached(x->p, &out->in);
  if (u->skip->last) spoil_last_key(x->p, &out->in);
  spoil_sequences(u->skip, &out->in);
  return ST_OK;
}

static Status unseen_run(GateRun *g, const AttnInputs *in, const Outputs *first, const Skip *skip,
                         GateResult *r, Diag *d) {
  const KeptCase *c;
  Outputs out = {0};
  const char *what =
      arena_printf(g->arena, "unseen, last %d, parity %d", skip->last, skip->parity);
  Status st = gate_case(g, g->opts->real ? NULL : what, g->problem, unseen_inputs,
                        &(Unseen){.in = in, .skip = skip}, &c, d);
  if (st == ST_OK) st = gate_run(g, g->problem, c, g->opts->grid, &out, d);
  SpentOn was = spent_on(g->opts->spent, SPENT_COMPARE);
  if (st == ST_OK) {
    compare_runs(first, &out, skip, r);
    gate_note_damage(g, r, &out);
  }
  outputs_free(&out);
  kept_release(c);
  spent_on(g->opts->spent, was);
  return st;
}

// Infinite where the first run had NaN, and under a causal mask a NaN that only the last row sees:
// every other row must come out with the same bits.  With lengths of their own, the even sequences
// must not notice that the odd ones are NaN, nor the other way round.
static Status gate_unseen(GateRun *g, const AttnInputs *in, const Outputs *first, Diag *d) {
  const Problem *p = g->problem;
  bool last = problem_int(p, "causal", 0) && problem_int(p, "seqlen_q", 1) > 1 &&
              problem_int(p, "seqlen_k", 0) > 0;
  GateResult *r = gate_new(g, "unseen");
  if (!problem_varlen(p)) return unseen_run(g, in, first, &(Skip){p, last, -1}, r, d);
  Status st = unseen_run(g, in, first, &(Skip){p, last, 0}, r, d);
  return st == ST_OK ? unseen_run(g, in, first, &(Skip){p, last, 1}, r, d) : st;
}

// ---- gates 2, 4 and 5 together -----------------------------------------------------------------
static Status device_rows(const GateRun *g, const Problem *p, KeptCase *c, Diag *d) {
  SpentOn was = spent_on(g->opts->spent, SPENT_ORACLE);
  Reference all, *sample = &c->ref;
  Status st = g->all_rows(g->all_rows_ctx, p, &c->in, sample, c->every, &all, d);
  if (st == ST_OK) {
    all.plain_max = sample->plain_max;
    all.plain_mean = sample->plain_mean;
    all.plain_lse_max = sample->plain_lse_max;
    all.score_max = sample->score_max;
    all.v_max = sample->v_max;
    all.draws = sample->draws;
    c->every = 1;
  }
  reference_free(sample);
  if (st == ST_OK) *sample = all;
  spent_on(g->opts->spent, was);
  return st;
}

static Status oracle_rows(const GateRun *g, const Problem *p, KeptCase *c, Diag *d) {
  SpentOn was = spent_on(g->opts->spent, SPENT_REFERENCE);
  c->every = sample_step(g, p);
  ReferenceOpts opts = reference_opts(g);
  opts.every = c->every;
  Status st = g->rule ? hook_rule_prepare(g->rule, p, &c->in, &opts, d) : ST_OK;
  opts.score = g->rule ? hook_rule_score : NULL;
  opts.ctx = g->rule;
  if (st == ST_OK) st = reference_rows(p, &c->in, &opts, &c->ref, d);
  if (st == ST_OK && c->every > 1 && g->all_rows) st = device_rows(g, p, c, d);
  spent_on(g->opts->spent, was);
  return st;
}

// A weight is 2^(s log2 e - max): beyond SCORE_MOST fp32 has no digit left after the point there,
// and kernels round max and s log2 e apart.
static Status check_scores(const GateRun *g, const Reference *ref, Diag *d) {
  if (g->rule && hook_rule_no_number(g->rule))
    return diag_fail(d, ST_INPUT,
                     "the hook makes NaN or +inf of a finite score; a masked key's score is -inf");
  if (ref->score_max <= SCORE_MOST || g->runner->o_dtype == DT_F64) return ST_OK;
  return diag_fail(d, ST_INPUT,
                   "%s makes scores of %.3g: beyond %d fp32 has no digits left for their weights%s",
                   g->rule ? "the hook" : "the input", ref->score_max, SCORE_MOST,
                   g->rule ? "; a masked key's score is -inf" : "");
}

// The ranges are asked without the template: its tiles may hide that one is wrong.
static void gate_ranges(GateRun *g) {
  if (!g->rule) return;
  if (!hook_rule_has_ranges(g->rule)) {
    gate_skip(g, "hook-ranges", "the hook has neither keys_any() nor keys_all()");
    return;
  }
  GateResult *r = gate_new(g, "hook-ranges");
  r->note = hook_rule_wrong_range(g->rule, g->problem, g->arena);
  r->passed = !r->note;
}

static Status compare_reference(GateRun *g, const KeptCase *c, const Outputs *out, Diag *d) {
  Status st = check_scores(g, &c->ref, d);
  if (st != ST_OK) return st;
  SpentOn was = spent_on(g->opts->spent, SPENT_COMPARE);
  GateResult *r = gate_new(g, "reference");
  Expected x = expect_of_run(g, g->problem, &c->ref, out, c->every);
  compare_outputs(&x, &out->o, out->lse.host ? &out->lse : NULL, r);
  gate_note_damage(g, r, out);
  gate_ranges(g);
  spent_on(g->opts->spent, was);
  return ST_OK;
}

static Status reference_case(void *ctx, KeptCase *out, Diag *d) {
  const CaseMaker *x = ctx;
  const GateRun *g = x->g;
  Status st = inputs_make(x->p, g->runner->in_dtype, FILL_NAN, &out->in, d);
  if (st != ST_OK) return st;
  if (g->opts->real) refill_gaps(g->opts->real, &out->in);
  else inputs_fill_random(&out->in, g->opts->seed + 1);
  inputs_end(x->p, &out->in);
  return oracle_rows(g, x->p, out, d);
}

Status gate_reference(GateRun *g, Diag *d) {
  const KeptCase *c;
  Outputs out = {0};
  const char *what = g->opts->real ? NULL : "random";
  Status st = gate_case(g, what, g->problem, reference_case, NULL, &c, d);
  if (st == ST_OK) st = gate_run(g, g->problem, c, g->opts->grid, &out, d);
  if (st == ST_OK) st = compare_reference(g, c, &out, d);
  if (st == ST_OK && g->opts->save_dir) st = save_outputs(g->arena, g->opts->save_dir, &out, d);
  if (st == ST_OK) st = gate_unseen(g, &c->in, &out, d);
  if (st == ST_OK) st = gate_grid(g, c, &out, d);
  outputs_free(&out);
  kept_release(c);
  return st;
}
