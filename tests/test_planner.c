// The planner's table: rows that can't be read, rows that no longer hold, the choice.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner.h"
#include "wire.h"

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
  assert_string_equal(
      planner_shape(a, problem_of(a, "b=1,hq=8,hkv=8,sq=2,sk=16383,d=64,causal=1", d)),
      "dtype=f32 d=64 group=1 causal=1 sq=2 sk=8192 work=8");
  assert_string_equal(planner_shape(a, problem_of(a, "b=1,hq=8,hkv=8,sq=3,sk=16385,d=64", d)),
                      "dtype=f32 d=64 group=1 causal=0 sq=2 sk=16384 work=8");
  assert_string_equal(planner_shape(a, problem_of(a, "b=0,hq=8,hkv=8,sq=1,sk=0,d=64", d)),
                      "dtype=f32 d=64 group=1 causal=0 sq=1 sk=0 work=0");
  diag_free(d);
}

// Editors put a byte order mark in front of a text, which is none of the first column.
static void a_table_may_begin_with_a_byte_order_mark(void **state) {
  (void)state;
  static const char row[] = "\xef\xbb\xbfGPU | 1.2 | 0123456789abcdef | x | d=64 | vec=4 | fast\n",
                    comment[] = "\xef\xbb\xbf# a comment\n",
                    nul[] = "# a \0 comment\n"
                            "GPU | 1.2 | 0123456789abcdef | x | d=64 | v=4 | fa\0st\n",
                    late[] = "\n\xef\xbb\xbf# none here\n";
  Diag *d = diag_new();
  PlannerTable t = {0};
  assert_int_equal(planner_parse(d->arena, source_of(d->arena, row), &t, d), ST_OK);
  assert_int_equal(t.n, 1);
  assert_string_equal(t.v[0].device, "GPU");
  assert_int_equal(planner_parse(d->arena, source_of(d->arena, comment), &t, d), ST_OK);
  const Source *src = source_new(d->arena, "p.txt", nul, sizeof nul - 1);
  assert_int_equal(planner_parse(d->arena, src, &t, d), ST_INPUT);
  assert_string_equal(d->last->what, "a planner row has a NUL in it");
  assert_int_equal(d->last->line, 2);
  assert_int_equal(planner_parse(d->arena, source_of(d->arena, late), &t, d), ST_INPUT);
  assert_int_equal(t.n, 1);
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

static PlannerChoice choose_with(Setup *u, const char *row, const PlannerAsk *ask) {
  PlannerTable t = {0};
  PlannerChoice c;
  Arena *a = u->d->arena;
  const char *text = arena_printf(a, "%s\n", row);
  if (planner_parse(a, source_of(a, text), &t, u->d)) fail_msg("%s", diag_text(u->d));
  if (planner_choose(u->s, a, &t, ask, u->p, &u->gpu, &c, u->d)) fail_msg("%s", diag_text(u->d));
  return c;
}

static PlannerChoice choose(Setup *u, const char *row) {
  return choose_with(u, row, &(PlannerAsk){.template_name = "decode_splitk"});
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
  assert_string_equal(c.template_name, "decode_splitk"); // as asked for
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
  assert_passed(&u, row_of(&u, "OTHER", "1.2", u.hash, NULL, "vec=2 chunks=7"),
                "measured on OTHER");
  assert_passed(&u, row_of(&u, "GPU", "1.3", u.hash, NULL, "vec=2"),
                "measured with driver 1.3, this is 1.2");
  assert_passed(&u, row_of(&u, "GPU", "1.2", u.hash, NULL, "vek=2"), "can't be built any more");
  assert_passed(&u, row_of(&u, "GPU", "1.2", u.hash, NULL, "vec=8"), "16 bytes at most");
  assert_passed(&u, row_of(&u, "GPU", "1.2", u.hash, "d=64", "vec=2"), NULL); // another shape
  close_setup(&u);
}

// What a row turns on besides, the caller could not know that it has to bind.
static void row_with_other_arguments_is_passed(void **state) {
  (void)state;
  Setup u = make_setup();
  u.p = problem_of(u.d->arena, "b=2,hq=4,hkv=2,sq=1,sk=64,d=64,dtype=bf16", u.d);
#define VALUES "batch heads_q heads_kv seqlen_q seqlen_k scale "
  static const char *const rows[][2] = {
      {"softcap=1", "softcap=1, and the problem does not say so"},
      {"varlen=1", "varlen=1, and the problem does not say so"},
      {"append=1", "the arguments " VALUES "q k v k_new v_new o lse, and the problem has " VALUES
                   "q k v o lse"},
  };
#undef VALUES
  const PlannerAsk ask = {.template_name = "decode_span"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *shape = planner_shape(u.d->arena, u.p);
    PlannerChoice c = choose_with(
        &u,
        arena_printf(u.d->arena, "GPU | 1.2 | %s | decode_span | %s | %s | 9 us", u.hash, shape,
                     rows[i][0]),
        &ask);
    assert_null(c.row);
    assert_int_equal(c.npassed, 1);
    assert_string_equal(c.passed[0],
                        arena_printf(u.d->arena, "p.txt:1: measured with %s", rows[i][1]));
  }
  close_setup(&u);
}

// Parameters that belong to the problem's shape find the rows of that shape, whether the problem
// says it or they do; the row is not of an older text for them.
static void what_is_given_is_part_of_the_shape(void **state) {
  (void)state;
  Setup u = make_setup();
  Arena *a = u.d->arena;
  static const struct { const char *problem, *given[2][2], *shape, *params; } cases[] = {
      {"b=9,hq=8,hkv=2,sq=1,sk=600,d=64,dtype=bf16",
       {{"varlen", "1"}},
       "dtype=bf16 d=64 group=4 causal=0 sq=1 sk=512 work=16 varlen=1", "stages=3"},
      {"b=9,hq=8,hkv=2,sq=1,sk=600,d=64,dtype=bf16,page=16",
       {{"varlen", "true"}, {"append", "1"}},
       "dtype=bf16 d=64 group=4 causal=0 sq=1 sk=512 work=16 varlen=1 paged=1 page=16", "stages=3"},
      {"b=9,hq=8,hkv=2,sq=1,sk=600",
       {{"head_dim", "96"}, {"dtype", "f16"}},
       "dtype=f16 d=96 group=4 causal=0 sq=1 sk=512 work=16", "stages=3"},
      {"b=9,hq=8,hkv=2,sq=1,sk=600,d=64,dtype=bf16",
       {{"dtype_kv", "e4m3"}, {"alibi", "1"}},
       "dtype=bf16/e4m3 d=64 group=4 causal=0 sq=1 sk=512 work=16 alibi=1", "stages=3"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    PlannerRow plain = {.hash = "", .template_name = "decode_span", .shape = cases[i].shape,
                        .params = cases[i].params};
    Problem *least;
    PlannerChoice c = {0};
    if (planner_shape_problem(a, plain.shape, &least, u.d)) fail_msg("%s", diag_text(u.d));
    Fit fit = planner_fit(u.s, a, plain.params, &(PlannerAsk){0}, least, &u.gpu, "decode_span", &c);
    if (fit.step != FIT_DONE) fail_msg("%s", fit.why);
    Params given = {0};
    for (int k = 0; k < 2 && cases[i].given[k][0]; k++)
      params_set(a, &given, cases[i].given[k][0], cases[i].given[k][1]);
    u.p = problem_of(a, cases[i].problem, u.d);
    const char *row = arena_printf(a, "GPU | 1.2 | %s | decode_span | %s | %s | 9 us", fit.hash,
                                   plain.shape, plain.params);
    for (int named = 0; named < 2; named++) {
      c = choose_with(&u, row, &(PlannerAsk){.template_name = named ? "decode_span" : NULL,
                                             .given = &given});
      assert_string_equal(c.shape, plain.shape);
      if (!c.row) fail_msg("%zu: %s", i, c.npassed ? c.passed[c.npassed - 1] : "not found");
      assert_false(c.older);
      assert_string_equal(params_get(&c.params, "stages"), "3");
      assert_string_equal(params_get(&c.params, given.v[0].name), given.v[0].value);
      assert_string_equal(c.why, i == 1 ? "p.txt:1: 9 us; measured without append=1"
                                        : "p.txt:1: 9 us");
    }
  }
  close_setup(&u);
}

// Another text since: the parameters stay the best that are known, and the choice says so.
static void row_of_an_older_text_is_taken_and_said(void **state) {
  (void)state;
  Setup u = make_setup();
  PlannerChoice c = choose(&u, row_of(&u, "GPU", "1.2", u.hash, NULL, "vec=2"));
  assert_false(c.older);
  assert_string_equal(c.why, "p.txt:1: 9 us");
  const char *old = row_of(&u, "GPU", "1.2", "0123456789abcdef", NULL, "vec=2 chunks=7");
  c = choose(&u, old);
  assert_non_null(c.row);
  assert_true(c.older);
  assert_string_equal(c.why, "p.txt:1: 9 us; measured on an older text of the template");
  assert_string_equal(params_get(&c.params, "vec"), "2");
  assert_int_equal(problem_int(c.problem, "chunks", 0), 7);
  // It stands before a later row of the present text: what is chosen does not change by the hash.
  const char *next = row_of(&u, "GPU", "1.2", u.hash, NULL, "vec=2 chunks=3");
  c = choose(&u, arena_printf(u.d->arena, "%s\n%s", old, next));
  assert_int_equal(c.row->line, 1);
  // One that can't be built is passed for the next.
  old = row_of(&u, "GPU", "1.2", "0123456789abcdef", NULL, "vec=8");
  c = choose(&u, arena_printf(u.d->arena, "%s\n%s", old, next));
  assert_int_equal(c.row->line, 2);
  assert_false(c.older);
  assert_int_equal(c.npassed, 1);
  close_setup(&u);
}

// Two that go together and neither adds an argument are no features, though one can't be had alone.
static void two_parameters_that_go_together_are_no_features(void **state) {
  (void)state;
  Setup u = make_setup();
  Params given = {0};
  u.p = problem_of(u.d->arena, "b=2,hq=4,hkv=2,sq=1,sk=64,d=64,dtype=bf16", u.d);
  params_set(u.d->arena, &given, "overlap", "1");
  params_set(u.d->arena, &given, "fused", "0");
  u.gpu.sm = 90;
  const char *shape = planner_shape(u.d->arena, u.p);
  const char *row = arena_printf(
      u.d->arena, "GPU | 1.2 | 0123456789abcdef | decode_span | %s |  | 9 us", shape);
  PlannerChoice c =
      choose_with(&u, row, &(PlannerAsk){.template_name = "decode_span", .given = &given});
  assert_null(c.row);
  assert_string_equal(c.passed[0], "p.txt:1: measured with other parameters than those given");
  close_setup(&u);
}

static void given_parameters_must_be_the_rows(void **state) {
  (void)state;
  Setup u = make_setup();
  const char *rows[] = {row_of(&u, "GPU", "1.2", u.hash, NULL, "vec=2"),
                        row_of(&u, "GPU", "1.2", "0123456789abcdef", NULL, "vec=2")};
  for (int i = 0; i < 2; i++) { // whatever became of the text
    Params given = {0};
    PlannerAsk ask = {.template_name = "decode_splitk", .given = &given};
    params_set(u.d->arena, &given, "causal", "0"); // the default, in another spelling
    params_set(u.d->arena, &given, "warps", "4");
    PlannerChoice c = choose_with(&u, rows[i], &ask);
    assert_non_null(c.row);
    assert_int_equal(c.older, i);
    assert_string_equal(params_get(&c.params, "vec"), "2");
    params_set(u.d->arena, &given, "vec", "4");
    c = choose_with(&u, rows[i], &ask);
    assert_null(c.row);
    assert_string_equal(params_get(&c.params, "vec"), "4");
    assert_string_equal(c.passed[0], "p.txt:1: measured with other parameters than those given");
  }
  close_setup(&u);
}

// What a template is best run with says nothing of another one that was not measured.
static void a_row_does_not_outvote_a_better_template(void **state) {
  (void)state;
  Setup u = make_setup();
  Arena *a = u.d->arena;
  static const struct { const char *problem, *first, *second, *want, *passed; } cases[] = {
      {"b=1,hq=4,sq=512,sk=512,d=64,dtype=bf16", "prefill_mma", NULL, NULL,
       "p.txt:1: prefill_wgmma is usually faster than prefill_mma, and has no row of this shape"},
      {"b=1,hq=4,sq=512,sk=512,d=64,dtype=bf16", "prefill_mma", "prefill_wgmma", "prefill_mma",
       NULL},
      {"b=1,hq=4,sq=512,sk=512,d=64,dtype=bf16", "prefill_wgmma", "prefill_mma", "prefill_wgmma",
       NULL},
      {"b=1,hq=4,sq=512,sk=512,d=64,dtype=bf16", "decode_span", NULL, NULL,
       "p.txt:1: prefill_wgmma is usually faster than decode_span, and has no row of this shape"},
      // decode_mma comes first for few items alone; decode_span may be faster there.
      {"b=1,hq=4,sq=1,sk=512,d=64,dtype=bf16", "decode_span", NULL, "decode_span", NULL},
      // The bucket of 128 to 255 items has both sides of 132, and its rows are of all of them.
      {"b=32,hq=4,sq=1,sk=512,d=64,dtype=bf16", "decode_mma", NULL, "decode_mma", NULL},
      {"b=33,hq=4,sq=1,sk=512,d=64,dtype=bf16", "decode_mma", NULL, "decode_mma", NULL},
      {"b=63,hq=4,sq=1,sk=512,d=64,dtype=bf16", "decode_mma", NULL, "decode_mma", NULL},
      {"b=64,hq=4,sq=1,sk=512,d=64,dtype=bf16", "decode_mma", NULL, NULL,
       "p.txt:1: decode_span is usually faster than decode_mma, and has no row of this shape"},
      // 256 keys and 2 queries are prefill's, 257 decode's: one bucket.
      {"b=1,hq=4,sq=2,sk=300,d=64,dtype=bf16", "prefill_wgmma", NULL, "prefill_wgmma", NULL},
      {"b=1,hq=4,sq=2,sk=600,d=64,dtype=bf16", "prefill_wgmma", NULL, NULL,
       "p.txt:1: decode_mma is usually faster than prefill_wgmma, and has no row of this shape"},
      {"b=99,hq=4,sq=1,sk=512,d=64,dtype=bf16", "decode_mma", NULL, NULL,
       "p.txt:1: decode_span is usually faster than decode_mma, and has no row of this shape"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    u.p = problem_of(a, cases[i].problem, u.d);
    const char *form = "GPU | 1.2 | 0123456789abcdef | %s | %s |  | 9 us\n";
    const char *shape = planner_shape(a, u.p);
    const char *rows = arena_printf(a, form, cases[i].first, shape);
    if (cases[i].second)
      rows = arena_printf(a, "%s%s", rows, arena_printf(a, form, cases[i].second, shape));
    PlannerChoice c = choose_with(&u, rows, &(PlannerAsk){0});
    if (cases[i].want) {
      if (!c.row) fail_msg("%zu: %s", i, c.passed[0]);
      assert_string_equal(c.template_name, cases[i].want);
    } else {
      assert_null(c.row);
      assert_string_equal(c.passed[0], cases[i].passed);
    }
    c = choose_with(&u, rows, &(PlannerAsk){.template_name = cases[i].first}); // named: its own
    assert_int_equal(c.row->line, 1);
  }
  close_setup(&u);
}

static void a_rows_parameters_with_a_hook(void **state) {
  (void)state;
  Setup u = make_setup();
  PlannerAsk ask = {.template_name = "decode_splitk",
                    .build = {.hook_path = SOURCE_DIR "/examples/hooks/causal.hook"}};
  PlannerChoice c = choose_with(&u, row_of(&u, "GPU", "1.2", u.hash, NULL, "vec=2"), &ask);
  assert_non_null(c.row);
  assert_false(c.older); // what was measured is of the present text
  assert_string_equal(c.why, "p.txt:1: 9 us; measured without a hook");
  ask.build = (VariantOpts){.hook_path = "/nowhere.hook"};
  c = choose_with(&u, row_of(&u, "GPU", "1.2", u.hash, NULL, "vec=2"), &ask);
  assert_null(c.row);
  assert_non_null(
      strstr(c.passed[0], "can't be built with what is given: can't open '/nowhere.hook'"));
  close_setup(&u);
}

// A row of plain attention says nothing of a problem that asks for more, and the other way.
static void rules_are_part_of_the_shape(void **state) {
  (void)state;
  Setup u = make_setup();
  static const char *const more[][2] = {{"wl=3", " window=1 left=4"},
                                        {"wr=0", " window=1 right=1"},
                                        {"softcap=3", " softcap=1"},
                                        {"alibi=1,sinks=1", " alibi=1 sinks=1"},
                                        {"seqlens_k=9", " varlen=1"},
                                        {"page=16", " paged=1 page=16"},
                                        {"dv=32", " dv=32"},
                                        {"shared=1,dv=32", " dv=32 shared=1"},
                                        {"descale=1", ""},
                                        {"dv=64", ""}};
  Arena *a = u.d->arena;
  const char *plain = planner_shape(a, u.p);
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
    u.p = problem_of(a, arena_printf(a, "b=1,hq=8,hkv=8,sq=1,sk=1024,d=64,%s", more[i][0]), u.d);
    assert_string_equal(planner_shape(a, u.p), arena_printf(a, "%s%s", plain, more[i][1]));
  }
  close_setup(&u);
}

static void prefill_is_the_default_for_several_queries(void **state) {
  (void)state;
  Setup u = make_setup();
  problem_set_int(u.p, "seqlen_q", 1024);
  PlannerChoice c = choose_with(&u, "# nothing", &(PlannerAsk){0});
  assert_string_equal(c.template_name, "prefill_wgmma");
  assert_int_equal(c.problem->dtype, DT_BF16); // where nobody says, the template does
  assert_string_equal(c.shape, "dtype=bf16 d=64 group=1 causal=0 sq=1024 sk=1024 work=8");
  problem_set_dtype(u.p, "dtype", DT_F32);
  c = choose_with(&u, "# nothing", &(PlannerAsk){0});
  assert_string_equal(c.template_name, "prefill_mma");
  // Named or chosen, the type and the head size that nobody gives are the same.
  u.p = problem_of(u.d->arena, "b=1,hq=8,hkv=8,sq=1,sk=1024", u.d);
  c = choose_with(&u, "# nothing", &(PlannerAsk){0});
  PlannerChoice named = choose_with(&u, "# nothing", &(PlannerAsk){.template_name = "decode_mma"});
  assert_string_equal(c.template_name, "decode_mma");
  assert_string_equal(c.shape, "dtype=bf16 d=128 group=1 causal=0 sq=1 sk=1024 work=8");
  assert_string_equal(named.shape, c.shape);
  assert_int_equal(problem_int(c.problem, "head_dim", 0), 128);
  close_setup(&u);
}

// ---- rows from sweeps ---------------------------------------------------------------------------

static Params row_fields(Arena *a, const char *point, const char *kind, const char *us,
                         const char *modelled) {
  const char *const fields[][2] = {
      {"point", point},        {"kind", kind},     {"median_us", us},  {"modelled", modelled},
      {"device_name", "GPU"},  {"driver", "1.2"},  {"hash", "0123456789abcdef"},
      {"rate", "100"},         {"roof", "200"},    {"by_bytes", "1"},
      {"cold", "1"},           {"id", "decode_splitk head_dim=64 dtype=f32"}};
  Params p = {0};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    params_set(a, &p, fields[i][0], fields[i][1]);
  return p;
}

static void sweeps_make_rows_that_parse(void **state) {
  (void)state;
  Diag *d = diag_new();
  Arena *a = d->arena;
  Session *s = session_open(NULL, d);
  Run run = {.template_name = "decode_splitk",
             .problem = problem_of(a, "b=1,hq=8,hkv=8,sq=1,sk=1024,d=64", d)};
  const Params rows[] = {row_fields(a, "vec=1", "ok", "9.5", "0"),
                         row_fields(a, "vec=2 chunks=4", "ok", "7.25", "0"),
                         row_fields(a, "vec=4", "failed", "1", "0")};
  const char *row = planner_row_of(s, a, &run, rows, 3);
  assert_non_null(row);
  PlannerTable t = {0};
  assert_int_equal(planner_parse(a, source_of(a, row), &t, d), ST_OK);
  assert_int_equal(t.n, 1);
  assert_string_equal(t.v[0].params, "vec=2 chunks=4");
  assert_string_equal(t.v[0].shape, planner_shape(a, run.problem));
  assert_int_equal(strncmp(t.v[0].measured, "7.25 us, 100.0 GB/s, 50.0 % of roof, ", 36), 0);
  // A modelled time is no measurement.
  const Params sim = row_fields(a, "vec=1", "ok", "9.5", "1");
  assert_null(planner_row_of(s, a, &run, &sim, 1));
  run.template_name = "ceiling_read"; // nothing that the planner takes
  assert_null(planner_row_of(s, a, &run, rows, 3));
  session_close(s);
  diag_free(d);
}

// Rows whose text has changed since are told here (and by `ptxsmith plan --rows`); one that can't
// be built any more is wrong.
static void the_built_in_table_can_be_built(void **state) {
  (void)state;
  Diag *d = diag_new();
  Session *s = session_open(NULL, d);
  const Source *src;
  PlannerTable t = {0};
  assert_int_equal(session_file(s, "lua/planner.txt", &src, d), ST_OK);
  if (planner_parse(d->arena, src, &t, d)) fail_msg("%s", diag_text(d));
  int older = 0, broken = 0;
  for (int i = 0; i < t.n; i++) {
    const char *why;
    PlannerText text = planner_row_text(s, d->arena, &t.v[i], &why);
    older += text == TEXT_OTHER;
    if (text == TEXT_OTHER)
      print_message("lua/planner.txt:%u: measured on an older text of %s\n", t.v[i].line,
                    t.v[i].template_name);
    if (text != TEXT_NONE) continue;
    print_error("lua/planner.txt:%u: can't be built: %s\n", t.v[i].line, why);
    broken++;
  }
  print_message("lua/planner.txt: %d rows, %d of an older text\n", t.n, older);
  assert_int_equal(broken, 0);
  session_close(s);
  diag_free(d);
}

static void what_became_of_a_rows_text(void **state) {
  (void)state;
  Setup u = make_setup();
  static const struct {
    const char *name, *shape, *params;
    PlannerText want;
    const char *why;
  } cases[] = {
      {"decode_splitk", NULL, "vec=2", TEXT_SAME, NULL},
      {"decode_splitk", NULL, "vec=2 chunks=7", TEXT_SAME, NULL},
      {"decode_splitk", NULL, "vec=4", TEXT_OTHER, NULL},
      {"decode_splitk", NULL, "vec=8", TEXT_NONE, "16 bytes at most"},
      {"decode_splitk", NULL, "vec=2 chunks=0", TEXT_NONE, "chunks=0: chunks is at least 1"},
      {"decode_splitk", NULL, "vec=2 chunks=-7", TEXT_NONE, "chunks=-7: chunks is at least 1"},
      {"decode_splitk", NULL, "vec=2 vec=2", TEXT_NONE, "parameter vec is given twice"},
      {"decode_splitk", NULL, "chunks=2 vec=2 chunks=3", TEXT_NONE,
       "parameter chunks is given twice"},
      {"decode_splitk", NULL, "vek=2", TEXT_NONE, "no parameter \"vek\""},
      {"decode_gone", NULL, "", TEXT_NONE, "decode_gone"},
      {"decode_splitk", "d=64", "vec=2", TEXT_NONE, "is no shape"},
      {"decode_splitk", "dtype=f32 d=64 group=1 causal=0 sq=1 sk=1000 work=8", "vec=2", TEXT_NONE,
       "is no shape"},
      {"decode_splitk", "dtype=f32 d=64 group=4 causal=0 sq=1 sk=1024 work=4611686018427387904",
       "vec=2", TEXT_NONE, "is no shape"},
      {"decode_splitk", "dtype=f32 d=64 group=1 causal=0 sq=1 sk=1024 work=8 window=2", "vec=2",
       TEXT_NONE, "is no shape"},
      {"decode_splitk", "dtype=f32 d=64 group=1 causal=0 sq=1 sk=1024 work=8 window=1", "vec=2",
       TEXT_NONE, "decode_splitk has no sliding window"},
      {"decode_span", "dtype=bf16/e4m3 d=64 group=8 causal=0 sq=1 sk=1024 work=1 varlen=1 paged=1",
       "", TEXT_OTHER, NULL},
      {"prefill_mma", "dtype=f16 d=192 group=1 causal=1 sq=64 sk=64 work=2 dv=128 alibi=1", "",
       TEXT_OTHER, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *shape = cases[i].shape ? cases[i].shape : planner_shape(u.d->arena, u.p), *why;
    PlannerRow r = {.hash = u.hash, .template_name = cases[i].name, .shape = shape,
                    .params = cases[i].params};
    PlannerText text = planner_row_text(u.s, u.d->arena, &r, &why);
    if (text != cases[i].want) fail_msg("%zu: %d: %s", i, (int)text, why ? why : "");
    if (cases[i].why && !strstr(why, cases[i].why)) fail_msg("%zu: %s", i, why);
  }
  close_setup(&u);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bad_rows_are_named_and_the_others_kept),
      cmocka_unit_test(a_table_may_begin_with_a_byte_order_mark),
      cmocka_unit_test(shapes_are_buckets),
      cmocka_unit_test(row_that_holds_is_taken),
      cmocka_unit_test(rows_that_do_not_hold_are_passed_with_the_reason),
      cmocka_unit_test(prefill_is_the_default_for_several_queries),
      cmocka_unit_test(row_with_other_arguments_is_passed),
      cmocka_unit_test(what_is_given_is_part_of_the_shape),
      cmocka_unit_test(row_of_an_older_text_is_taken_and_said),
      cmocka_unit_test(given_parameters_must_be_the_rows),
      cmocka_unit_test(two_parameters_that_go_together_are_no_features),
      cmocka_unit_test(a_row_does_not_outvote_a_better_template),
      cmocka_unit_test(a_rows_parameters_with_a_hook),
      cmocka_unit_test(rules_are_part_of_the_shape),
      cmocka_unit_test(sweeps_make_rows_that_parse),
      cmocka_unit_test(the_built_in_table_can_be_built),
      cmocka_unit_test(what_became_of_a_rows_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
