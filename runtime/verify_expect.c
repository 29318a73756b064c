// Gate 3: committed values for a committed input (lua/expect.txt), by a launch of one block.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../gen/number.h"
#include "verify_gates.h"

// The fixed problem and input of tests/data/make_expect.py.
enum { HEADS = 2, SEQLEN_Q = 2, SEQLEN_K = 149, FORMS = 8 };

typedef struct Whole {
  uint64_t seed;
  int64_t heads, dim;
  double unit;
} Whole;

static double whole(void *ctx, int64_t b, int64_t j, int64_t h, int64_t e) {
  (void)b;
  const Whole *w = ctx;
  uint64_t r = random_bits(w->seed, (uint64_t)((j * w->heads + h) * w->dim + e));
  return ((double)(r % 129) - 64) * w->unit;
}

Problem *expect_problem(Arena *a, const Problem *like) {
  Problem *p = problem_copy(a, like);
  const char *const lengths[] = {"seqlens_q", "seqlens_k",  "total_q",    "total_k",
                                 "pages",     "pool_pages", "block_table"};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) problem_drop(p, lengths[i]);
  problem_set_int(p, "batch", 1);
  problem_set_int(p, "heads_q", HEADS);
  problem_set_int(p, "heads_kv", 1);
  problem_set_int(p, "seqlen_q", SEQLEN_Q);
  problem_set_int(p, "seqlen_k", SEQLEN_K);
  problem_set_float(p, "scale", 0.125);
  if (problem_value(like, "chunks")) problem_set_int(p, "chunks", 3);
  return p;
}

void expect_inputs(AttnInputs *in) {
  int64_t dim = in->q.t.shape[3];
  host_fill_with(&in->q, whole, &(Whole){1, HEADS, dim, 1.0 / 16});
  host_fill_with(&in->k, whole, &(Whole){2, 1, dim, 1.0 / 64});
  host_fill_with(&in->v, whole, &(Whole){3, 1, dim, 1.0 / 64});
}

// The number that a line ends with, where it has one.
static void last_number(const char *text, double *out) {
  char *end;
  double x = number_parse(text, &end);
  if (end != text) *out = x;
}

// Reads the case's lines into o [query][head][dim] and lse [head][query].  False: no such case.
static bool read_case(const Source *rows, int64_t dim, bool causal, double *o, double *lse) {
  bool inside = false, found = false;
  for (uint32_t n = 1; n <= rows->nlines; n++) {
    size_t len;
    const char *text = source_line(rows, n, &len);
    char line[96];
    snprintf(line, sizeof line, "%.*s", (int)(len < sizeof line ? len : sizeof line - 1), text);
    int a, b, e, at = 0;
    if (sscanf(line, "case %d %d", &a, &b) == 2) {
      inside = a == dim && b == causal;
      found |= inside;
    }
    if (!inside) continue;
    if (sscanf(line, "lse %d %d %n", &a, &b, &at) == 2 && a < HEADS && b < SEQLEN_Q)
      last_number(line + at, &lse[a * SEQLEN_Q + b]);
    if (sscanf(line, "o %d %d %d %n", &a, &b, &e, &at) == 3 && a < HEADS && b < SEQLEN_Q && e < dim)
      last_number(line + at, &o[(b * HEADS + a) * dim + e]);
  }
  return found;
}

bool expect_row(const Source *rows, const Problem *p, Reference *out) {
  int64_t dim = problem_int(p, "head_dim", 0), n = HEADS * SEQLEN_Q;
  *out = (Reference){.o = malloc(sizeof(double) * (size_t)(n * dim)),
                     .lse = malloc(sizeof(double) * (size_t)n)};
  // What a line is missing for is NaN, which no number agrees with.
  for (int64_t i = 0; out->o && i < n * dim; i++) out->o[i] = NAN;
  for (int64_t i = 0; out->lse && i < n; i++) out->lse[i] = NAN;
  if (out->o && out->lse && read_case(rows, dim, problem_int(p, "causal", 0), out->o, out->lse))
    return true;
  reference_free(out);
  return false;
}

static Status expect_case(void *ctx, KeptCase *out, Diag *d) {
  const CaseMaker *x = ctx;
  Status st = inputs_make(x->p, x->g->runner->in_dtype, FILL_NAN, &out->in, d);
  if (st != ST_OK) return st;
  expect_inputs(&out->in);
  return gate_reference_of(x->g, x->p, out, d); // for the tolerance alone
}

static Status run_expect(GateRun *g, const Problem *p, Reference *row, Diag *d) {
  const KeptCase *c;
  Outputs out = {0};
  Status st = gate_case(g, "committed", p, expect_case, NULL, &c, d);
  if (st == ST_OK) st = gate_run(g, p, c, runner_blocks(g->runner, 1), &out, d);
  SpentOn was = spent_on(g->opts->spent, SPENT_COMPARE);
  if (st == ST_OK) {
    GateResult *r = gate_new(g, "expect");
    Expected x = expect_of_run(g, p, &c->ref, &out, 1);
    x.o = row->o;
    x.lse = row->lse;
    x.o_mean = -1; // a few columns only
    x.forms = FORMS;
    x.form = 0;
    x.group = 1;
    compare_outputs(&x, &out.o, out.lse.host ? &out.lse : NULL, r);
    gate_note_damage(g, r, &out);
  }
  outputs_free(&out);
  kept_release(c);
  spent_on(g->opts->spent, was);
  return st;
}

Status gate_expect(GateRun *g, const Source *rows, Diag *d) {
  if (g->rule) {
    gate_skip(g, "expect", "the committed rows are without a hook");
    return ST_OK;
  }
  Dtype kv = problem_kv_dtype(g->problem, g->runner->in_dtype);
  if (dtype_bytes(kv) == 1) {
    gate_skip(g, "expect", kv == DT_E4M3 ? "the committed input has more digits than e4m3"
                                         : "the committed input has more digits than e5m2");
    return ST_OK;
  }
  if (problem_has_rules(g->problem)) {
    gate_skip(g, "expect",
              "the committed rows are without windows, caps, slopes, sinks, factors or head_dim_v");
    return ST_OK;
  }
  Problem *p = expect_problem(g->arena, g->problem);
  if (!g->runner->max_chunks) problem_drop(p, "chunks"); // chunks=1 of a prefill
  Reference row;
  if (!expect_row(rows, p, &row)) {
    gate_skip(g, "expect", "no committed row for this head_dim");
    return ST_OK;
  }
  Status st = run_expect(g, p, &row, d);
  reference_free(&row);
  return st;
}
