// The verifier verified: right answers pass every gate, and answers made wrong in one of the ways
// that kernels go wrong are rejected, at every shape class.  The answers come from the oracle with
// the fault built in, so what is tested is the gates, not a kernel.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "verify_gates.h"

//   id             what is wrong with the answers
#define MUTANTS(X)                                                                                 \
  X(NONE, "nothing")                                                                               \
  X(ZEROS, "all zeros")                                                                            \
  X(CONSTANT, "one constant everywhere")                                                           \
  X(DROP_FIRST, "the first key dropped")                                                           \
  X(DROP_MIDDLE, "a key in the middle dropped")                                                    \
  X(DROP_LAST, "the last key dropped")                                                             \
  X(DOUBLE_FIRST, "the first key counted twice")                                                   \
  X(DOUBLE_MIDDLE, "a key in the middle counted twice")                                            \
  X(SWAP_HEADS, "two heads swapped")                                                               \
  X(BATCH_OFFSET, "every batch reads K and V of batch 0")                                          \
  X(TOP_LEFT, "mask aligned top-left")                                                             \
  X(ONE_KEY_OFF, "one key too few for every row")                                                  \
  X(READS_PAST, "one key past the end is read")                                                    \
  X(HALF_WRITTEN, "only the first half of O is written")                                           \
  X(ROW_MISSING, "the last row of LSE is not written")                                             \
  X(ONE_NAN, "one NaN")                                                                            \
  X(ALL_NAN, "all NaN")                                                                            \
  X(SCALE, "scores not scaled")                                                                    \
  X(LSE_BASE_2, "LSE to base 2")                                                                   \
  X(LSE_OFF, "LSE without its maximum")                                                            \
  X(GRID, "one bit depends on the grid")                                                           \
  X(WINDOW_WIDE, "a window one key too wide on the left")                                          \
  X(WINDOW_NARROW, "a window one key too narrow on the left")                                      \
  X(WINDOW_RIGHT, "a window one key too wide on the right")                                        \
  X(NO_CAP, "scores not capped")                                                                   \
  X(NO_SLOPES, "slopes left out")                                                                  \
  X(SLOPE_SIGN, "far keys raised, not lowered")                                                    \
  X(NO_SINKS, "sinks left out")                                                                    \
  X(NO_FACTOR_Q, "q's factors left out")                                                           \
  X(NO_FACTOR_K, "k's factors left out")                                                           \
  X(NO_FACTOR_V, "v's factors left out")                                                           \
  X(ONE_FACTOR, "the first head's factor of v for all")                                            \
  X(GAP, "a gap between rows overwritten")                                                         \
  X(ROUNDS_TWICE, "a right answer rounded to 6 bits on the way")

typedef enum Mutant {
#define X(id, what) M_##id,
  MUTANTS(X)
#undef X
      MUTANT_COUNT
} Mutant;
static const char *const mutant_text[] = {
#define X(id, what) what,
    MUTANTS(X)
#undef X
};

typedef struct Faulty {
  Mutant mutant;
  int64_t seqlen_q, seqlen_k; // of the run at hand
} Faulty;

// Faults that are a wrong choice of keys, as a score rule.
static Status rule(void *ctx, const ScoreRow *at, double *s, float *s32) {
  const Faulty *f = ctx;
  int64_t n = at->n;
  (void)s32; // no gate looks at a mutant's own plain formula
  if (n == 0) return ST_OK;
  switch (f->mutant) {
  case M_DROP_FIRST: s[0] = -INFINITY; break;
  case M_DROP_MIDDLE: s[n / 2] = -INFINITY; break;
  case M_DROP_LAST:
    if (n == f->seqlen_k) s[n - 1] = -INFINITY;
    break;
  case M_ONE_KEY_OFF: s[n - 1] = -INFINITY; break;
  case M_DOUBLE_FIRST: s[0] += log(2); break;
  case M_DOUBLE_MIDDLE: s[n / 2] += log(2); break;
  case M_TOP_LEFT:
    for (int64_t j = at->row + 1; j < n; j++) s[j] = -INFINITY;
    break;
  default: break;
  }
  return ST_OK;
}

static void negate(HostTensor *x) {
  float *f = x->host;
  for (uint64_t i = 0; i < x->bytes / sizeof *f; i++) f[i] = -f[i];
}

static void break_rules(Mutant m, Problem *q, AttnInputs *x) {
  int64_t left = problem_int(q, "window_left", -1), right = problem_int(q, "window_right", -1);
  switch (m) {
  case M_WINDOW_WIDE: problem_set_int(q, "window_left", left + 1); break;
  case M_WINDOW_NARROW: problem_set_int(q, "window_left", left - 1); break;
  case M_WINDOW_RIGHT: problem_set_int(q, "window_right", right + 1); break;
  case M_NO_CAP: problem_set_float(q, "softcap", 0); break;
  case M_NO_SLOPES: x->slopes.host = NULL; break;
  case M_NO_SINKS: x->sinks.host = NULL; break;
  case M_NO_FACTOR_Q: x->descale[0].host = NULL; break;
  case M_NO_FACTOR_K: x->descale[1].host = NULL; break;
  case M_NO_FACTOR_V: x->descale[2].host = NULL; break;
  default: break;
  }
}

static Status solve(const Faulty *f, const Problem *p, const AttnInputs *in, Reference *ref,
                    Diag *d) {
  Problem *q = problem_copy(d->arena, p);
  AttnInputs x = *in;
  if (f->mutant == M_SCALE) problem_set_float(q, "scale", 1);
  if (f->mutant == M_BATCH_OFFSET) x.k.t.stride[0] = x.v.t.stride[0] = 0;
  if (f->mutant == M_READS_PAST && !problem_int(p, "causal", 0)) {
    problem_set_int(q, "seqlen_k", problem_int(p, "seqlen_k", 0) + 1);
    x.k.t.shape[1]++;
    x.v.t.shape[1]++;
  }
  break_rules(f->mutant, q, &x);
  ReferenceOpts opts = {.threads = 1, .draws = 1, .score = rule, .ctx = (void *)f};
  float one[8] = {0};
  if (f->mutant == M_ONE_FACTOR && x.descale[2].host) {
    for (int i = 0; i < 8; i++) one[i] = ((float *)x.descale[2].host)[0];
    x.descale[2].host = one;
    x.descale[2].t.stride[0] = 0;
  }
  if (f->mutant == M_SLOPE_SIGN) negate(&x.slopes);
  Status st = reference_rows(q, &x, &opts, ref, d);
  if (f->mutant == M_SLOPE_SIGN) negate(&x.slopes);
  return st;
}

static double mutate(const Faulty *f, uint32_t grid, int64_t b, int64_t i, int64_t h, int64_t e,
                     double o) {
  bool first = b + i + h + e == 0;
  switch (f->mutant) {
  case M_ZEROS: return 0;
  case M_CONSTANT: return 0.25;
  case M_ONE_NAN: return first ? NAN : o;
  case M_ALL_NAN: return NAN;
  case M_GRID: return grid == 1 && first ? o + 0x1p-7 * (fabs(o) + 1) : o;
  case M_ROUNDS_TWICE:
    if (o == 0 || !isfinite(o)) return o; // ilogb has no exponent for them
    return ldexp(nearbyint(ldexp(o, 6 - ilogb(o))), ilogb(o) - 6);
  default: return o;
  }
}

static void write_o(const Faulty *f, const Reference *ref, uint32_t grid, HostTensor *o) {
  const int64_t *n = o->t.shape;
  int64_t at = 0, total = tensor_elements(&o->t);
  for (int64_t b = 0; b < n[0]; b++)
    for (int64_t i = 0; i < n[1]; i++)
      for (int64_t h = 0; h < n[2]; h++)
        for (int64_t e = 0; e < n[3]; e++, at++) {
          if (f->mutant == M_HALF_WRITTEN && at >= total / 2) continue;
          int64_t to = f->mutant == M_SWAP_HEADS && n[2] > 1 && h < 2 ? 1 - h : h;
          host_set(o, b, i, to, e, mutate(f, grid, b, i, h, e, ref->o[at]));
        }
  if (f->mutant == M_GAP && total) // just after the first row
    dtype_store(o->t.dtype, (char *)o->host + n[3] * dtype_bytes(o->t.dtype), 0);
}

static void write_lse(const Faulty *f, const Reference *ref, HostTensor *lse) {
  const int64_t *n = lse->t.shape;
  int64_t at = 0, total = tensor_elements(&lse->t);
  for (int64_t b = 0; b < n[0]; b++)
    for (int64_t h = 0; h < n[1]; h++)
      for (int64_t i = 0; i < n[2]; i++, at++) {
        if (f->mutant == M_ROW_MISSING && at == total - 1) continue;
        double x = ref->lse[at];
        if (f->mutant == M_LSE_BASE_2) x *= 1.4426950408889634;
        if (f->mutant == M_LSE_OFF) x -= 0.001;
        host_set(lse, b, h, i, 0, x);
      }
}

static Dtype output_type(Dtype in) { return in == DT_E4M3 ? DT_BF16 : in; }

static Status faulty_run(void *ctx, const Problem *p, const AttnInputs *in, uint32_t grid,
                         Outputs *out, Diag *d) {
  Faulty *f = ctx;
  *out = (Outputs){0};
  Reference ref;
  f->seqlen_q = problem_int(p, "seqlen_q", 1);
  f->seqlen_k = problem_int(p, "seqlen_k", 0);
  const int64_t *n = in->q.t.shape;
  int64_t o[4] = {n[0], n[1], n[2], in->v.t.shape[3]}, lse[3] = {n[0], n[2], n[1]};
  assert_int_equal(solve(f, p, in, &ref, d), ST_OK);
  assert_int_equal(outputs_make(o, output_type(in->q.t.dtype), lse, DT_F32, out, d), ST_OK);
  write_o(f, &ref, grid, &out->o);
  write_lse(f, &ref, &out->lse);
  reference_free(&ref);
  return outputs_check(out, d);
}

// ---- running all gates
// -----------------------------------------------------------------------------
typedef struct Fixture {
  Arena *a;
  Diag *d;
  Source *expect;
} Fixture;

static int setup(void **state) {
  Fixture *f = test_calloc(1, sizeof *f);
  f->a = arena_new();
  f->d = diag_new();
  assert_int_equal(source_read(f->a, SOURCE_DIR "/lua/expect.txt", &f->expect, f->d), ST_OK);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  arena_free(f->a);
  diag_free(f->d);
  test_free(f);
  return 0;
}

static bool all_passed(const Verdict *v) {
  bool passed = true;
  for (int i = 0; i < v->ngates; i++) passed &= !v->gate[i].run || v->gate[i].passed;
  return passed;
}

// `whole`: all gates, else up to the first one that fails; the reference, last, takes longest.
static Verdict judge_by(Fixture *f, Mutant m, const char *problem, Dtype t, bool whole) {
  Problem *p;
  if (problem_parse(f->a, problem, &p, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
  problem_set_float(p, "scale", (float)(1 / sqrt(problem_float(p, "d", 1))));
  Faulty faulty = {.mutant = m};
  Runner runner = {.run = faulty_run,
                   .ctx = &faulty,
                   .in_dtype = t,
                   .o_dtype = output_type(t),
                   .lse_dtype = DT_F32};
  VerifyOpts opts = {.seed = 1, .threads = 1};
  Verdict v = {0};
  GateRun g = {.runner = &runner, .problem = p, .opts = &opts, .arena = f->a, .verdict = &v};
  assert_int_equal(gate_equal_weights(&g, f->d), ST_OK);
  assert_int_equal(gate_expect(&g, f->expect, f->d), ST_OK);
  assert_int_equal(gate_one_key(&g, f->d), ST_OK);
  if (whole || all_passed(&v)) assert_int_equal(gate_reference(&g, f->d), ST_OK);
  v.passed = all_passed(&v);
  return v;
}

static Verdict judge(Fixture *f, Mutant m, const char *problem, Dtype t) {
  return judge_by(f, m, problem, t, true);
}

// The shapes that are tuned and their edges: prefill and decode, grouped heads, tails, every dtype.
static const struct {
  const char *problem;
  Dtype dtype;
} classes[] = {
    {"b=2,hq=4,hkv=2,sq=33,sk=70,d=32,causal=1", DT_F32},
    {"b=2,hq=4,hkv=2,sq=33,sk=70,d=64,causal=1", DT_F16},
    {"b=2,hq=2,sq=17,sk=65,d=64,causal=0", DT_BF16},
    {"b=2,hq=8,hkv=2,sq=1,sk=512,d=64", DT_F32},
    {"b=2,hq=8,hkv=2,sq=1,sk=700,d=32", DT_BF16},
    {"b=2,hq=4,hkv=2,sq=1,sk=260,d=128", DT_F16},
    {"b=2,hq=4,hkv=2,sq=1,sk=17,d=64", DT_F32},
};
enum { CLASSES = sizeof classes / sizeof *classes };

static bool applies(Mutant m, const char *problem) {
  bool causal = strstr(problem, "causal=1") != NULL;
  if (m == M_TOP_LEFT) return causal;
  if (m == M_READS_PAST) return !causal;
  const struct {
    Mutant m;
    const char *needs;
  } rules[] = {{M_WINDOW_WIDE, "wl="}, {M_WINDOW_NARROW, "wl="}, {M_WINDOW_RIGHT, "wr="},
               {M_NO_CAP, "softcap="}, {M_NO_SLOPES, "alibi="},  {M_SLOPE_SIGN, "alibi="},
               {M_NO_SINKS, "sinks="},
               {M_NO_FACTOR_Q, "descale="}, {M_NO_FACTOR_K, "descale="},
               {M_NO_FACTOR_V, "descale="}, {M_ONE_FACTOR, "descale="}};
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (m == rules[i].m) return strstr(problem, rules[i].needs) != NULL;
  return true;
}

// Rounding to 6 bits is what bf16 may nearly do; it is a fault for the finer types.
static bool must_fail(Mutant m, Dtype t) { return m != M_ROUNDS_TWICE || t != DT_BF16; }

static void right_answers_pass(void **state) {
  Fixture *f = *state;
  for (int c = 0; c < CLASSES; c++) {
    Verdict v = judge(f, M_NONE, classes[c].problem, classes[c].dtype);
    if (!v.passed) fail_msg("%s:\n%s", classes[c].problem, verdict_text(f->a, &v));
    for (int i = 0; i < v.ngates; i++)
      if (!v.gate[i].run && strcmp(v.gate[i].name, "one-hot-exact")) // rows differ under a mask
        fail_msg("%s: gate %s not run", classes[c].problem, v.gate[i].name);
  }
}

static void every_mutant_is_rejected(void **state) {
  Fixture *f = *state;
  for (int c = 0; c < CLASSES; c++)
    for (Mutant m = M_NONE + 1; m < MUTANT_COUNT; m++) {
      if (!applies(m, classes[c].problem) || !must_fail(m, classes[c].dtype)) continue;
      Verdict v = judge_by(f, m, classes[c].problem, classes[c].dtype, false);
      if (v.passed) fail_msg("%s passes with %s", classes[c].problem, mutant_text[m]);
    }
}

static const GateResult *gate(const Verdict *v, const char *name) {
  for (int i = 0; i < v->ngates; i++)
    if (!strcmp(v->gate[i].name, name)) return &v->gate[i];
  fail_msg("no gate %s", name);
  return NULL;
}

// A wrong choice of keys, in the gate against the oracle alone, whose allowance is widest for few
// rows.
static void few_rows_show_a_wrong_key(void **state) {
  Fixture *f = *state;
  const char *const problems[] = {"b=1,hq=4,hkv=2,sq=1,sk=197,d=64", "b=1,hq=2,sq=3,sk=17,d=64",
                                  "b=1,hq=2,sq=1,sk=2,d=64"};
  const Mutant mutants[] = {M_NONE, M_DROP_FIRST, M_DROP_MIDDLE, M_DROP_LAST, M_DOUBLE_FIRST,
                            M_DOUBLE_MIDDLE, M_ONE_KEY_OFF, M_READS_PAST};
  for (int c = 0; c < 3; c++)
    for (size_t m = 0; m < sizeof mutants / sizeof *mutants; m++) {
      Verdict v = judge(f, mutants[m], problems[c], DT_F32);
      if (gate(&v, "reference")->passed != (mutants[m] == M_NONE))
        fail_msg("%s, %s:\n%s", problems[c], mutant_text[mutants[m]], verdict_text(f->a, &v));
    }
}

// Faults in one rule, at problems that have it: alone and with all others.
static void broken_rules_are_rejected(void **state) {
  Fixture *f = *state;
  const char *const problems[] = {
      "b=2,hq=4,hkv=2,sq=33,sk=70,d=32,wl=20,wr=5",
      "b=2,hq=4,hkv=2,sq=33,sk=70,d=64,dv=32,causal=1,wl=9",
      "b=2,hq=4,hkv=2,sq=9,sk=70,d=32,softcap=2",
      "b=2,hq=4,hkv=2,sq=9,sk=70,d=32,alibi=1",
      "b=2,hq=4,hkv=2,sq=9,sk=70,d=32,sinks=1",
      "b=2,hq=8,hkv=2,sq=4,sk=300,d=32,causal=1,wl=40,softcap=5,alibi=1,sinks=1",
  };
  const Dtype dtypes[] = {DT_F32, DT_F16, DT_BF16};
  for (int c = 0; c < 18; c++) {
    const char *problem = problems[c / 3];
    Verdict v = judge(f, M_NONE, problem, dtypes[c % 3]);
    if (!v.passed) fail_msg("%s:\n%s", problem, verdict_text(f->a, &v));
    for (Mutant m = M_WINDOW_WIDE; m <= M_NO_SINKS; m++) {
      if (!applies(m, problem)) continue;
      v = judge(f, m, problem, dtypes[c % 3]);
      if (v.passed) fail_msg("%s passes with %s", problem, mutant_text[m]);
    }
  }
}

// 8-bit inputs with a factor for each head: gates of 4 e and 3 e, sums of 14 digits, no committed
// row.
static void eight_bits(void **state) {
  Fixture *f = *state;
  const char *const problems[] = {"b=2,hq=4,hkv=2,sq=33,sk=70,d=64,causal=1,descale=1",
                                  "b=2,hq=4,hkv=2,sq=17,sk=300,d=128,descale=1"};
  for (int c = 0; c < 2; c++)
    for (Mutant m = M_NONE; m < MUTANT_COUNT; m++) {
      if ((m != M_NONE && !applies(m, problems[c])) || m == M_ROUNDS_TWICE) continue;
      Verdict v = judge(f, m, problems[c], DT_E4M3);
      if (v.passed != (m == M_NONE))
        fail_msg("%s, %s:\n%s", problems[c], mutant_text[m], verdict_text(f->a, &v));
    }
}

// The gate that is meant for a fault is the one that sees it.
static void each_gate_does_its_part(void **state) {
  Fixture *f = *state;
  const char *decode = "b=2,hq=8,hkv=2,sq=1,sk=512,d=64";
  Verdict v = judge(f, M_GRID, decode, DT_F32);
  assert_false(gate(&v, "grid")->passed);
  assert_true(gate(&v, "reference")->passed);
  assert_true(gate(&v, "grid")->bad.found);
  v = judge(f, M_READS_PAST, decode, DT_F32);
  assert_false(gate(&v, "closed-form")->passed);
  assert_false(gate(&v, "reference")->passed);
  v = judge(f, M_DROP_MIDDLE, decode, DT_F32);
  assert_false(gate(&v, "cancelling")->passed);
  assert_true(gate(&v, "constant-v")->passed); // a mean of equal values misses nothing
  v = judge(f, M_HALF_WRITTEN, decode, DT_F32);
  assert_non_null(strstr(gate(&v, "reference")->note, "element not written: o"));
  assert_int_equal(gate(&v, "reference")->bad.batch, 1);
  v = judge(f, M_GAP, decode, DT_F32);
  assert_non_null(strstr(gate(&v, "reference")->note, "gap between rows overwritten in o"));
  v = judge(f, M_LSE_BASE_2, decode, DT_F32);
  assert_string_equal(gate(&v, "closed-form")->bad.tensor, "lse");
  v = judge(f, M_SCALE, decode, DT_F32);
  assert_false(gate(&v, "expect")->passed);
  assert_true(gate(&v, "closed-form")->passed); // Q = 0 has no scale to lose
}

static void a_failure_names_its_place(void **state) {
  Fixture *f = *state;
  Verdict v = judge(f, M_ONE_NAN, "b=2,hq=4,hkv=2,sq=3,sk=70,d=32,causal=1", DT_F32);
  const char *text = verdict_text(f->a, &v);
  assert_non_null(strstr(text, "FAIL"));
  assert_non_null(strstr(text, "o batch 0, head 0, row 0, column 0: expected 0.335"));
  assert_non_null(strstr(text, "found nan"));
  assert_non_null(strstr(text, "reference      FAIL  worst error NaN (allowed"));
  assert_non_null(strstr(text, "mean NaN (allowed"));
}

// Nothing to see: O = 0 and LSE = -inf, and an empty batch is no fault.
static void empty_problems_pass(void **state) {
  Fixture *f = *state;
  const char *problems[] = {"b=2,hq=2,sq=3,sk=0,d=32", "b=2,hq=2,sq=3,sk=0,d=32,causal=1",
                            "b=0,hq=2,sq=3,sk=5,d=32", "b=2,hq=2,sq=5,sk=2,d=32,causal=1",
                            "b=2,hq=2,sq=1,sk=1,d=32"};
  for (int i = 0; i < 5; i++) {
    Verdict v = judge(f, M_NONE, problems[i], DT_F16);
    if (!v.passed) fail_msg("%s:\n%s", problems[i], verdict_text(f->a, &v));
  }
  Verdict v = judge(f, M_CONSTANT, problems[0], DT_F16);
  assert_false(v.passed);
}

// The committed rows are what the oracle makes of the committed input.
static void committed_rows_are_the_oracles(void **state) {
  Fixture *f = *state;
  int dims[] = {32, 64, 96, 128, 192, 256};
  for (int k = 0; k < 12; k++) {
    char text[64];
    snprintf(text, sizeof text, "hq=1,sq=1,sk=1,d=%d,causal=%d", dims[k / 2], k % 2);
    Problem *p;
    assert_int_equal(problem_parse(f->a, text, &p, f->d), ST_OK);
    p = expect_problem(f->a, p);
    Reference row, ref;
    AttnInputs in;
    assert_true(expect_row(f->expect, p, &row));
    assert_int_equal(inputs_make(p, DT_BF16, FILL_NAN, &in, f->d), ST_OK); // all exact in bf16
    expect_inputs(&in);
    assert_int_equal(reference_attention(p, &in, 1, &ref, f->d), ST_OK);
    int64_t seen = 0, dim = dims[k / 2];
    for (int64_t i = 0; i < 4 * dim; i++) {
      if (isnan(row.o[i])) continue;
      seen++;
      assert_true(fabs(row.o[i] - ref.o[i]) < 1e-14);
    }
    assert_int_equal(seen, dim / 2);
    for (int i = 0; i < 4; i++) assert_true(fabs(row.lse[i] - ref.lse[i]) < 1e-14);
    reference_free(&row);
    reference_free(&ref);
    inputs_free(&in);
  }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(right_answers_pass),        T(every_mutant_is_rejected),  T(few_rows_show_a_wrong_key),
      T(each_gate_does_its_part),   T(broken_rules_are_rejected), T(eight_bits),
      T(a_failure_names_its_place), T(empty_problems_pass),       T(committed_rows_are_the_oracles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
