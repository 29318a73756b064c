// The planner's table: rows that can't be read, rows that no longer hold, the choice.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner.h"
#include "worker.h"

static Source *source_of(Arena *a, const char *text) {
  return source_new(a, "p.txt", text, strlen(text));
}

static Problem *problem_of(Arena *a, const char *text, Diag *d) {
  Problem *p;
  if (problem_parse(a, text, &p, d)) fail_msg("%s", diag_text(d));
  return p;
}

static void bad_rows_are_named_and_the_others_kept(void **state) {
  (void)state;
  Diag *d = diag_new();
  PlannerTable t = {0};
  const char *text = "# a comment\n"
                     "\n"
                     "GPU | 1.2 | 0123456789abcdef | x | d=64 | vec=4 | fast\n"
                     "GPU | 1.2 | 0123456789abcdef | x | d=64 | vec=4\n"
                     "GPU | 1.2 | 0123456789abcde | x | d=64 | vec=4 | short hash\n"
                     "GPU | 1.2 | 0123456789abcdef | x | d64 | vec=4 | no pair\n"
                     "GPU | 1.2 | 0123456789abcdef | x | d=64 | vec= | no value\n"
                     " | 1.2 | 0123456789abcdef | x | d=64 | vec=4 | no device\n"
                     "GPU | 1.2 | 0123456789abcdef | x | d=64 | vec=4 | a | b\n"
                     "\xff\xff\xff\xff\n"
                     "  B |  | 0123456789abcdef | x | d=64  sk=1 |  | no driver, no parameters";
  assert_int_equal(planner_parse(d->arena, source_of(d->arena, text), &t, d), ST_INPUT);
  assert_int_equal(t.n, 2);
  assert_string_equal(t.v[0].params, "vec=4");
  assert_int_equal(t.v[0].line, 3);
  assert_string_equal(t.v[1].device, "B");
  assert_string_equal(t.v[1].driver, "");
  assert_string_equal(t.v[1].measured, "no driver, no parameters");
  static const struct { uint32_t line; const char *what; } want[] = {
      {4, "a planner row has 7 columns separated by |, this one 6"},
      {5, "the hash \"0123456789abcde\" is not 16 hexadecimal digits"},
      {6, "the column shape is not a list of name=value"},
      {7, "the column params is not a list of name=value"},
      {8, "the column device is empty"},
      {9, "a planner row has 7 columns separated by |, this one 8"},
      {10, "a planner row has 7 columns separated by |, this one 1"},
  };
  const DiagMsg *m = d->first;
  for (size_t i = 0; i < sizeof want / sizeof *want; i++, m = m->next) {
    assert_non_null(m);
    assert_int_equal(m->line, want[i].line);
    assert_string_equal(m->what, want[i].what);
  }
  assert_null(m);
  diag_free(d);
}

static void shapes_are_buckets(void **state) {
  (void)state;
  Diag *d = diag_new();
  Arena *a = d->arena;
  assert_string_equal(
      planner_shape(a, problem_of(a, "b=3,hq=32,hkv=8,sq=1,sk=16384,d=128,dtype=bf16", d)),
      "dtype=bf16 d=128 group=4 causal=0 sq=1 sk=16384 work=16");
  // One key less is another bucket, one more is not; one query is not two.
  assert_string_equal(planner_shape(a, problem_of(a, "b=1,hq=8,hkv=8,sq=2,sk=16383,d=64,causal=1", d)),
                      "dtype=f32 d=64 group=1 causal=1 sq=2 sk=8192 work=8");
  assert_string_equal(planner_shape(a, problem_of(a, "b=1,hq=8,hkv=8,sq=3,sk=16385,d=64", d)),
                      "dtype=f32 d=64 group=1 causal=0 sq=2 sk=16384 work=8");
  assert_string_equal(planner_shape(a, problem_of(a, "b=0,hq=8,hkv=8,sq=1,sk=0,d=64", d)),
                      "dtype=f32 d=64 group=1 causal=0 sq=1 sk=0 work=0");
  diag_free(d);
}

// ---- choosing -----------------------------------------------------------------------------------

typedef struct Setup {
  Diag *d;
  Session *s;
  Problem *p;
  DeviceInfo gpu;
  char hash[17]; // of decode_splitk with vec=2 on the problem
} Setup;

static Setup make_setup(void) {
  Setup u = {.d = diag_new(), .gpu = {.name = "GPU", .driver = "1.2"}};
  u.s = session_open(NULL, u.d);
  u.p = problem_of(u.d->arena, "b=1,hq=8,hkv=8,sq=1,sk=1024,d=64", u.d);
  Params params = {0};
  Operator *op;
  params_set(u.d->arena, &params, "vec", "2");
  if (operator_make(u.s, "decode_splitk", &params, u.p, NULL, &op, u.d))
    fail_msg("%s", diag_text(u.d));
  memcpy(u.hash, op->step[0].variant->hash, sizeof u.hash);
  operator_free(op);
  return u;
}

static void close_setup(Setup *u) {
  session_close(u->s);
  diag_free(u->d);
}

static PlannerChoice choose(Setup *u, const char *row) {
  PlannerTable t = {0};
  PlannerChoice c;
  Arena *a = u->d->arena;
  const char *text = arena_printf(a, "%s\n", row);
  if (planner_parse(a, source_of(a, text), &t, u->d)) fail_msg("%s", diag_text(u->d));
  if (planner_choose(u->s, a, &t, &(PlannerAsk){0}, u->p, &u->gpu, &c, u->d)) fail_msg("%s", diag_text(u->d));
  return c;
}

static const char *row_of(Setup *u, const char *device, const char *driver, const char *hash,
                          const char *shape, const char *params) {
  return arena_printf(u->d->arena, "%s | %s | %s | decode_splitk | %s | %s | 9 us", device, driver,
                      hash, shape ? shape : planner_shape(u->d->arena, u->p), params);
}

static void row_that_holds_is_taken(void **state) {
  (void)state;
  Setup u = make_setup();
  PlannerChoice c = choose(&u, row_of(&u, "GPU", "1.2", u.hash, NULL, "vec=2 chunks=7"));
  assert_non_null(c.row);
  assert_string_equal(c.template_name, "decode_splitk");
  assert_string_equal(params_get(&c.params, "vec"), "2");
  assert_null(params_get(&c.params, "chunks")); // a value of the problem
  assert_int_equal(problem_int(c.problem, "chunks", 0), 7);
  assert_string_equal(c.why, "p.txt:1: 9 us");
  assert_int_equal(c.npassed, 0);
  close_setup(&u);
}

static void assert_passed(Setup *u, const char *row, const char *why) {
  PlannerChoice c = choose(u, row);
  assert_null(c.row);
  assert_string_equal(c.template_name, "decode_splitk"); // the default for one query
  assert_int_equal(c.params.n, 0);
  assert_int_equal(problem_int(c.problem, "chunks", 0), 0);
  if (!why) {
    assert_int_equal(c.npassed, 0);
    return;
  }
  assert_int_equal(c.npassed, 1);
  if (!strstr(c.passed[0], why)) fail_msg("%s", c.passed[0]);
}

static void rows_that_do_not_hold_are_passed_with_the_reason(void **state) {
  (void)state;
  Setup u = make_setup();
  assert_passed(&u, row_of(&u, "OTHER", "1.2", u.hash, NULL, "vec=2 chunks=7"), "measured on OTHER");
  assert_passed(&u, row_of(&u, "GPU", "1.3", u.hash, NULL, "vec=2"),
                "measured with driver 1.3, this is 1.2");
  assert_passed(&u, row_of(&u, "GPU", "1.2", "0123456789abcdef", NULL, "vec=2"),
                "the generator makes another text now");
  assert_passed(&u, row_of(&u, "GPU", "1.2", u.hash, NULL, "vec=4"), "another text"); // not its hash
  assert_passed(&u, row_of(&u, "GPU", "1.2", u.hash, NULL, "vek=2"), "can't be built any more");
  assert_passed(&u, row_of(&u, "GPU", "1.2", u.hash, "d=64", "vec=2"), NULL); // another shape
  close_setup(&u);
}

static void prefill_is_the_default_for_several_queries(void **state) {
  (void)state;
  Setup u = make_setup();
  problem_set_int(u.p, "seqlen_q", 2);
  PlannerChoice c = choose(&u, "# nothing");
  assert_string_equal(c.template_name, "prefill_thread");
  close_setup(&u);
}

// ---- rows from sweeps ---------------------------------------------------------------------------

static Params row_fields(Arena *a, const char *point, const char *kind, const char *us,
                         const char *modelled) {
  const char *const fields[][2] = {
      {"point", point},        {"kind", kind},     {"median_us", us},  {"modelled", modelled},
      {"device_name", "GPU"},  {"driver", "1.2"},  {"hash", "0123456789abcdef"},
      {"rate", "100"},         {"roof", "200"},    {"by_bytes", "1"}};
  Params p = {0};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    params_set(a, &p, fields[i][0], fields[i][1]);
  return p;
}

static void sweeps_make_rows_that_parse(void **state) {
  (void)state;
  Diag *d = diag_new();
  Arena *a = d->arena;
  Run run = {.template_name = "decode_splitk",
             .problem = problem_of(a, "b=1,hq=8,hkv=8,sq=1,sk=1024,d=64", d)};
  const Params rows[] = {row_fields(a, "vec=1", "ok", "9.5", "0"),
                         row_fields(a, "vec=2 chunks=4", "ok", "7.25", "0"),
                         row_fields(a, "vec=4", "failed", "1", "0")};
  const char *row = planner_row_of(a, &run, rows, 3);
  assert_non_null(row);
  PlannerTable t = {0};
  assert_int_equal(planner_parse(a, source_of(a, row), &t, d), ST_OK);
  assert_int_equal(t.n, 1);
  assert_string_equal(t.v[0].params, "vec=2 chunks=4");
  assert_string_equal(t.v[0].shape, planner_shape(a, run.problem));
  assert_int_equal(strncmp(t.v[0].measured, "7.25 us, 100.0 GB/s, 50.0 % of roof, ", 36), 0);
  // A modelled time is no measurement.
  const Params sim = row_fields(a, "vec=1", "ok", "9.5", "1");
  assert_null(planner_row_of(a, &run, &sim, 1));
  diag_free(d);
}

static void the_built_in_table_parses(void **state) {
  (void)state;
  Diag *d = diag_new();
  Session *s = session_open(NULL, d);
  const Source *src;
  PlannerTable t = {0};
  assert_int_equal(session_file(s, "lua/planner.txt", &src, d), ST_OK);
  if (planner_parse(d->arena, src, &t, d)) fail_msg("%s", diag_text(d));
  session_close(s);
  diag_free(d);
}

static void decode_has_a_default_for_every_problem(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"hq=8,sq=1,sk=1024,d=128", "decode_splitk"},
      {"b=16,hq=8,sq=1,sk=1024,d=128,dtype=bf16", "decode_mma"},
      {"b=17,hq=8,sq=1,sk=1024,d=128,dtype=f16", "decode_span"},
      {"hq=8,sq=1,seqlens_k=7,d=64,dtype=bf16", "decode_span"},
      {"hq=8,sq=1,sk=9,d=64,dtype=bf16,dtype_kv=e4m3", "decode_span"},
  };
  Setup u = make_setup();
  PlannerTable none = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    PlannerChoice c;
    u.p = problem_of(u.d->arena, cases[i][0], u.d);
    if (planner_choose(u.s, u.d->arena, &none, &(PlannerAsk){0}, u.p, &u.gpu, &c, u.d))
      fail_msg("%s", diag_text(u.d));
    assert_string_equal(c.template_name, cases[i][1]);
  }
  close_setup(&u);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bad_rows_are_named_and_the_others_kept),
      cmocka_unit_test(shapes_are_buckets),
      cmocka_unit_test(row_that_holds_is_taken),
      cmocka_unit_test(rows_that_do_not_hold_are_passed_with_the_reason),
      cmocka_unit_test(prefill_is_the_default_for_several_queries),
      cmocka_unit_test(decode_has_a_default_for_every_problem),
      cmocka_unit_test(sweeps_make_rows_that_parse),
      cmocka_unit_test(the_built_in_table_parses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
