// What the tests of verification share: a session, the interpreter, and calls of verify().
#ifndef PTXSMITH_VERIFY_KIT_H
#define PTXSMITH_VERIFY_KIT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "verify.h"
#include "verify_data.h"

typedef struct Fixture {
  Arena *a;
  Diag *d;
  Session *s;
  Device *sim;
} Fixture;

static inline void fixture_open(Fixture *f) {
  *f = (Fixture){.a = arena_new(), .d = diag_new()};
  f->s = session_open(NULL, f->d);
  if (!f->s || device_open("sim", &f->sim, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
}

static inline void fixture_close(Fixture *f) {
  device_close(f->sim);
  session_close(f->s);
  arena_free(f->a);
  diag_free(f->d);
}

static inline int fixture_setup(void **state) {
  fixture_open(*state = test_calloc(1, sizeof(Fixture)));
  return 0;
}

static inline int fixture_teardown(void **state) {
  fixture_close(*state);
  test_free(*state);
  return 0;
}

static inline void fixture_ok(const Fixture *f, Status st) {
  if (st != ST_OK) fail_msg("status %d: %s", (int)st, diag_text(f->d));
}

static inline Problem *fixture_problem(Fixture *f, const char *text) {
  Problem *p;
  diag_reset(f->d);
  if (problem_parse(f->a, text, &p, f->d) != ST_OK) fail_msg("%s: %s", text, diag_text(f->d));
  return p;
}

// "decode_mma warps=2 stages=3": the template's name, and its parameters.
static inline const char *fixture_variant(Fixture *f, const char *text, Params *params) {
  char word[64];
  int n;
  assert_int_equal(sscanf(text, "%63s%n", word, &n), 1);
  const char *name = arena_strdup(f->a, word);
  *params = (Params){0};
  for (text += n; sscanf(text, "%63s%n", word, &n) == 1; text += n)
    fixture_ok(f, params_parse(f->a, params, word, f->d));
  return name;
}

static inline void fixture_unexpected(Fixture *f, const char *variant, const char *problem,
                                      Status st, const Verdict *v) {
  fail_msg("%s %s: status %d\n%s%s", variant, problem, (int)st, diag_text(f->d),
           verdict_text(f->a, v));
}

// Fails unless the gates, or the problem before them, end with `want`.
static inline Verdict fixture_verify(Fixture *f, const char *variant, const char *problem,
                                     const VerifyOpts *opts, Status want) {
  Problem *p;
  Params given;
  Verdict v = {0};
  diag_reset(f->d);
  const char *name = fixture_variant(f, variant, &given);
  const char *hook = opts->build.hook_path;
  Status st = hook ? problem_open_hooked(f->s, f->a, problem, hook, &p, f->d)
                   : problem_parse(f->a, problem, &p, f->d);
  if (st == ST_OK) st = verify(f->s, f->sim, name, &given, p, opts, &v, f->a, f->d);
  if (st != want) fixture_unexpected(f, variant, problem, st, &v);
  return v;
}

static inline void fixture_pass(Fixture *f, const char *variant, const char *problem) {
  fixture_verify(f, variant, problem, &(VerifyOpts){.seed = 3, .threads = 2}, ST_OK);
}

// With the hook in a file.
static inline Verdict fixture_hooked(Fixture *f, const char *variant, const char *hook,
                                     const char *problem, Status want) {
  VerifyOpts opts = {.seed = 3, .threads = 2, .build = {.hook_path = hook}};
  return fixture_verify(f, variant, problem, &opts, want);
}

// Refused as a mistake of the user's, in one message that says why.
static inline void fixture_refused(Fixture *f, const char *variant, const char *problem,
                                   const char *why) {
  fixture_verify(f, variant, problem, &(VerifyOpts){.seed = 3, .threads = 2}, ST_INPUT);
  if (f->d->errors != 1 || !strstr(diag_text(f->d), why))
    fail_msg("%s %s: not \"%s\" but\n%s", variant, problem, why, diag_text(f->d));
}

static inline void fixture_sanitized(Fixture *f, const char *variant, const char *problem,
                                     uint64_t schedule) {
  device_sim_opts(f->sim, &(SimOpts){.threads = 1, .sanitize = true, .seed = schedule});
  VerifyOpts opts = {.seed = schedule, .threads = 2, .sanitize = true, .schedule = schedule};
  fixture_verify(f, variant, problem, &opts, ST_OK);
  device_sim_opts(f->sim, &(SimOpts){.threads = 0});
}

// ---- rows of a table ----------------------------------------------------------------------------
typedef struct GateCase {
  const char *variant, *problem;
} GateCase;

typedef struct Refusal {
  const char *variant, *problem, *why;
} Refusal;

static inline void fixture_pass_all(Fixture *f, const GateCase *cases, size_t n) {
  for (size_t i = 0; i < n; i++) fixture_pass(f, cases[i].variant, cases[i].problem);
}

static inline void fixture_refused_all(Fixture *f, const Refusal *cases, size_t n) {
  for (size_t i = 0; i < n; i++)
    fixture_refused(f, cases[i].variant, cases[i].problem, cases[i].why);
}

#define PASS_ALL(f, cases) fixture_pass_all(f, cases, sizeof cases / sizeof *cases)
#define REFUSED_ALL(f, cases) fixture_refused_all(f, cases, sizeof cases / sizeof *cases)

// ---- problems that every attention template is held against -------------------------------------
// One key or query less or more than a tile: few queries over many keys, and many over few.
static inline void fixture_edges(Fixture *f, const char *variant, const char *rest,
                                 const int *edges, int n) {
  for (int i = 0; i < n; i++)
    fixture_pass(f, variant,
                 arena_printf(f->a, "b=1,hq=2,sq=%d,sk=%d,causal=%d,%s", edges[n - 1 - i], edges[i],
                              i % 2, rest));
}

static inline void fixture_nothing(Fixture *f, const char *variant, const char *rest) {
  static const char *const none[] = {"b=2,hq=2,sq=3,sk=0", "b=2,hq=2,sq=0,sk=5",
                                     "b=0,hq=2,sq=3,sk=5"};
  for (int i = 0; i < 3; i++) fixture_pass(f, variant, arena_printf(f->a, "%s,%s", none[i], rest));
}

// Infinities of K and V: a weight of 0 where the score is -inf, NaN where it is +inf, an infinite
// output; the other rows and columns as ever.
static inline void fixture_infinities(Fixture *f, const char *variant, const char *problem) {
  AttnInputs in = {0};
  const Problem *p = fixture_problem(f, problem);
  fixture_ok(f, inputs_make(p, p->dtype, FILL_NAN, &in, f->d));
  inputs_fill_random(&in, 5);
  host_set(&in.k, 0, 40, 0, 3, -INFINITY); // some rows see it, with causal
  host_set(&in.v, 0, 5, 0, 7, INFINITY);   // and all this
  VerifyOpts opts = {.seed = 3, .threads = 2, .real = &in};
  fixture_verify(f, variant, problem, &opts, ST_OK);
  inputs_free(&in);
}

#endif
