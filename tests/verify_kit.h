// What the tests of verification share: a session, the interpreter, and one call of verify().
#ifndef PTXSMITH_VERIFY_KIT_H
#define PTXSMITH_VERIFY_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "verify.h"

typedef struct Fixture {
  Arena *a;
  Diag *d;
  Session *s;
  Device *sim;
} Fixture;

static inline int fixture_setup(void **state) {
  Fixture *f = test_calloc(1, sizeof *f);
  f->a = arena_new();
  f->d = diag_new();
  f->s = session_open(NULL, f->d);
  assert_non_null(f->s);
  if (device_open("sim", &f->sim, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
  *state = f;
  return 0;
}

static inline int fixture_teardown(void **state) {
  Fixture *f = *state;
  device_close(f->sim);
  session_close(f->s);
  arena_free(f->a);
  diag_free(f->d);
  test_free(f);
  return 0;
}

static inline Params fixture_params(Fixture *f, const char *text) {
  Params params = {0};
  char word[64];
  for (int n; sscanf(text, "%63s%n", word, &n) == 1; text += n)
    assert_int_equal(params_parse(f->a, &params, word, f->d), ST_OK);
  return params;
}

// Fails unless the gates end with `want`.
static inline Verdict fixture_verify(Fixture *f, const char *name, const char *params,
                                     const char *problem, const VerifyOpts *opts, Status want) {
  Problem *p;
  Verdict v = {0};
  diag_reset(f->d);
  if (problem_parse(f->a, problem, &p, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
  Params given = fixture_params(f, params);
  Status st = verify(f->s, f->sim, name, &given, p, opts, &v, f->a, f->d);
  if (st != want)
    fail_msg("%s %s %s: status %d\n%s%s", name, params, problem, (int)st, diag_text(f->d),
             verdict_text(f->a, &v));
  return v;
}

#endif
