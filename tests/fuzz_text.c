// Fuzzing what users and files say in words: problems, the planner's rows and shapes, a store's
// results, the lines of workers, parameters and targets.  Whatever the bytes, each gives a message
// or a value, and a value's own text means that value again.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "parse.h"
#include "planner.h"
#include "results.h"
#include "wire.h"

static void broken(const char *what, const char *text, const char *more) {
  fprintf(stderr, "%s\n----\n%s\n----\n%s\n", what, text, more);
  abort();
}

// ---- problems and shapes -----------------------------------------------------------------------
static void shape(Arena *a, const char *text, Diag *d) {
  Problem *p;
  diag_reset(d);
  if (planner_shape_problem(a, text, &p, d) == ST_OK) planner_shape(a, p);
  else if (!d->errors) broken("no problem of the shape and no message", text, "");
}

// What every problem is asked: none of it may overflow.
static void ask(const Problem *p, Diag *d) {
  static const char *const whole[] = {"rows", "total_q", "total_k", "offsets", "pages",
                                      "pool_pages", "batch"};
  int64_t n;
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) problem_whole(p, whole[i], &n);
  problem_kv_bytes(p);
  problem_flops(p);
  problem_head_dim_v(p);
  problem_windowed(p);
  lengths_check_whole(p, d);
  int64_t last = problem_len_q(p, 0) - 1;
  if (last >= 0) {
    KeyRange r = visible_range(p, 0, last);
    if (r.from < 0 || r.to > problem_len_k(p, 0)) abort();
  }
}

static void problem(Arena *a, const char *text, Diag *d) {
  Problem *p, *again;
  diag_reset(d);
  if (problem_parse(a, text, &p, d) != ST_OK) {
    if (!d->errors) broken("no problem and no message", text, "");
    return;
  }
  const char *once = problem_text(a, p);
  if (problem_parse(a, once, &again, d) != ST_OK) broken("its text is none", once, diag_text(d));
  if (strcmp(once, problem_text(a, again))) broken("not the same again", once, text);
  ask(p, d);
  shape(a, planner_shape(a, p), d);
}

// ---- tables ------------------------------------------------------------------------------------
static void table(Arena *a, const char *text, size_t size, Diag *d) {
  PlannerTable t = {0};
  diag_reset(d);
  Status st = planner_parse(a, source_new(a, "fuzz.txt", text, size), &t, d);
  if ((st == ST_OK) != (d->errors == 0)) broken("status and messages", text, diag_text(d));
  for (int i = 0; i < t.n; i++) {
    Params params = {0};
    diag_reset(d);
    parse_params(a, t.v[i].params, &params, d);
    shape(a, t.v[i].shape, d);
  }
}

// ---- lines -------------------------------------------------------------------------------------
static void same(const Params *x, const Params *y, const char *line) {
  if (x->n != y->n) broken("other fields", line, "");
  for (int i = 0; i < x->n; i++)
    if (strcmp(x->v[i].name, y->v[i].name) || strcmp(x->v[i].value, y->v[i].value))
      broken("another field", line, x->v[i].name);
}

static const char *as_json(Arena *a, const Params *fields) {
  Json j;
  json_begin(&j, a);
  for (int i = 0; i < fields->n; i++) json_str(&j, fields->v[i].name, fields->v[i].value);
  return json_end(&j);
}

// What is no UTF-8 is written as U+FFFD: after that the text stays.
static void result(Arena *a, const char *line) {
  Params fields = {0}, again = {0}, last = {0};
  if (!result_parse(a, line, &fields)) return;
  const char *once = as_json(a, &fields);
  if (!result_parse(a, once, &again)) broken("can't be read back", line, once);
  if (!result_parse(a, as_json(a, &again), &last)) broken("can't be read back", once, "");
  same(&again, &last, once);
  result_passed(&fields);
}

static void wire(Arena *a, const char *line) {
  Params fields = {0}, again = {0};
  const char *verb, *other;
  if (!wire_parse(a, line, &verb, &fields)) return;
  const char *once = wire_line(a, verb, &fields);
  if (!wire_parse(a, once, &other, &again) || strcmp(verb, other)) broken("no line", line, once);
  same(&fields, &again, line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Arena *a = arena_new();
  Diag *d = diag_new();
  char *text = arena_strndup(a, (const char *)data, size), suffix;
  int sm;
  Params params = {0};
  table(a, text, size, d);
  for (char *at = text; *at;) { // a line is each of them
    size_t n = strcspn(at, "\n");
    const char *line = arena_strndup(a, at, n);
    problem(a, line, d);
    shape(a, line, d);
    result(a, line);
    wire(a, line);
    diag_reset(d);
    parse_target(line, &sm, &suffix, d);
    parse_params(a, line, &params, d);
    at += n + (at[n] == '\n');
  }
  diag_free(d);
  arena_free(a);
  return 0;
}
