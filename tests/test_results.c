// Results read back from a store, rows of the planner's table made of them, and put into a table.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder_kit.h"
#include "json.h"
#include "planner.h"
#include "results.h"
#include "store.h"

// ---- lines --------------------------------------------------------------------------------------

static void what_the_writer_writes_is_read(void **state) {
  (void)state;
  Arena *a = arena_new();
  Json j;
  Params p = {0};
  static const char odd[] = "a\"b\\c/\b\f\n\r\t\x01\x1f \xc3\xa9 \xe2\x82\xac";
  json_begin(&j, a);
  json_str(&j, "odd", odd);
  json_str(&j, "\"name\"", "");
  json_num(&j, "x", 1.06496e+06);
  json_num(&j, "y", -2.5e-300);
  json_uint(&j, "u", UINT64_MAX);
  json_bool(&j, "yes", true);
  json_bool(&j, "no", false);
  json_null(&j, "nothing");
  assert_true(result_parse(a, json_end(&j), &p));
  assert_int_equal(p.n, 8);
  assert_string_equal(params_get(&p, "odd"), odd);
  assert_string_equal(params_get(&p, "\"name\""), "");
  assert_true(strtod(params_get(&p, "x"), NULL) == 1.06496e+06);
  assert_true(strtod(params_get(&p, "y"), NULL) == -2.5e-300);
  assert_string_equal(params_get(&p, "u"), "18446744073709551615");
  assert_string_equal(params_get(&p, "yes"), "1");
  assert_string_equal(params_get(&p, "no"), "0");
  assert_string_equal(params_get(&p, "nothing"), "");
  p = (Params){0};
  assert_true(result_parse(a, " { } ", &p));
  assert_true(result_parse(a, "{ \"a\" : \"\\u00e9\" , \"b\": 7 }\n", &p));
  assert_string_equal(params_get(&p, "a"), "\xc3\xa9");
  assert_string_equal(params_get(&p, "b"), "7");
  arena_free(a);
}

static void other_lines_are_refused(void **state) {
  (void)state;
  Arena *a = arena_new();
  static const char *const lines[] = {
      "", "{", "{}x", "[]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}x", "{\"a\":1 \"b\":2}", "{\"a\":1",
      "{\"a\":\"b}", "{\"a\":\"\\", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"a\":[1]}",
      "{\"a\":{}}", "{\"a\":1.2.3}", "{\"a\":tru}", "{\"a", "\"a\":1", "{\"a\":-}",
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    Params p = {0};
    if (result_parse(a, lines[i], &p)) fail_msg("%s", lines[i]);
  }
  arena_free(a);
}

// ---- a store ------------------------------------------------------------------------------------

typedef struct Line { // a result's fields that matter here; NULL and 0: as `usual`
  const char *template_name, *problem, *point, *hash, *kind, *extra;
  double us, rate;
  int modelled, graph, grid, warm;
} Line;

#define SHORT "b=32,hq=16,hkv=16,sq=512,sk=512,d=128,causal=1"

static const char *with_default(const char *x, const char *otherwise) { return x ? x : otherwise; }

static const char *line_text(Arena *a, const Line *l) {
  const char *name = with_default(l->template_name, "prefill_mma");
  Json j;
  json_begin(&j, a);
  json_str(&j, "record", "result");
  json_str(&j, "time", "2026-12-01T00:00:00Z");
  json_str(&j, "template", name);
  json_str(&j, "problem", with_default(l->problem, SHORT));
  json_str(&j, "id", arena_printf(a, "%s head_dim=128 dtype=bf16 causal=1", name));
  json_str(&j, "hash", with_default(l->hash, "0123456789abcdef"));
  json_str(&j, "device_name", "NVIDIA H200");
  json_str(&j, "driver", "580.10"); // no number, whatever it looks like
  json_num(&j, "median_us", l->us);
  json_num(&j, "rate", l->rate);
  json_num(&j, "roof", 2 * l->rate);
  json_num(&j, "by_bytes", strncmp(name, "decode", 6) == 0);
  json_num(&j, "modelled", l->modelled);
  json_num(&j, "graph", l->graph);
  json_num(&j, "grid", l->grid);
  json_num(&j, "cold", !l->warm);
  json_num(&j, "gates", 10);
  json_str(&j, "point", with_default(l->point, "defaults"));
  json_str(&j, "kind", with_default(l->kind, "ok"));
  if (l->extra) json_str(&j, l->extra, "given");
  return json_end(&j);
}

static void write_store(Arena *a, const Line *lines, int n, Diag *d) {
  Store s;
  unlink(path);
  assert_int_equal(store_open(a, path, &s, d), ST_OK);
  for (int i = 0; i < n; i++)
    assert_int_equal(store_append(&s, line_text(a, &lines[i]), false, d), ST_OK);
  store_close(&s);
}

#define STORE(a, d, ...)                                                                           \
  do {                                                                                             \
    const Line lines_[] = {__VA_ARGS__};                                                           \
    write_store(a, lines_, sizeof lines_ / sizeof *lines_, d);                                     \
  } while (0)

static void append_raw(const char *text) {
  FILE *f = fopen(path, "ab");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

#define SHAPE "dtype=bf16 d=128 group=1 causal=1 sq=512 sk=512 work=512"

static const char *text_hash(Session *s, Arena *a, const char *name, const char *problem,
                             const char *point, Diag *d) {
  Params params = {0};
  Problem *p;
  Operator *op;
  if (*point && params_parse(a, &params, point, d)) fail_msg("%s", point);
  if (problem_parse(a, problem, &p, d)) fail_msg("%s", problem);
  if (operator_make(s, name, &params, p, NULL, &op, d)) fail_msg("%s", diag_text(d));
  const char *hash = arena_strdup(a, op->step[0].variant->hash);
  operator_free(op);
  return hash;
}

static void rows_of_store(Session *s, PlannerRows *r, Diag *d) {
  if (planner_rows_from(s, d->arena, path, r, d)) fail_msg("%s", diag_text(d));
}

static void the_fastest_of_each_shape_and_template(void **state) {
  (void)state;
  Diag *d = diag_new();
  Arena *a = d->arena;
  Session *s = session_open(NULL, d);
  PlannerRows r;
  STORE(a, d, {.us = 9, .rate = 300, .point = "tile_q=64"},
        {.us = 8, .rate = 340.25, .point = "tile_q=128 warps=8"},
        {.us = 7,
         .rate = 330,
         .point = "tile_k=32",
         .problem = "b=33,hq=16,sq=600,sk=600,d=128,causal=1"},
        {.us = 2, .rate = 900, .kind = "failed"}, {.us = 2, .rate = 900, .modelled = 1},
        {.us = 2, .rate = 900, .extra = "hook"}, {.us = 2, .rate = 900, .extra = "target"},
        {.us = 2, .rate = 900, .problem = "nonsense"}, {.us = 2, .rate = 900, .grid = 8},
        {.us = 2, .rate = 900, .point = "tile_q=77"},
        {.us = 2, .rate = 900, .template_name = "ceiling_read", .problem = "words=1000"},
        {.us = 2, .rate = 900, .template_name = "combine"},
        {.us = 2, .rate = 900, .template_name = "prefill_gone"},
        {.us = 5, .rate = 500, .template_name = "prefill_wgmma"},
        {.us = 4,
         .rate = 3000,
         .template_name = "decode_span",
         .point = "stages=3",
         .problem = "b=8,hq=32,hkv=8,sq=1,sk=8192,d=128,chunks=64,dtype=bf16"});
  append_raw("{\"record\":\"result\",\"kind\":\"ok\",\"med");
  rows_of_store(s, &r, d);
  assert_int_equal(r.n, 3);
  assert_string_equal(r.v[0], "NVIDIA H200 | 580.10 | 0123456789abcdef | prefill_mma | " SHAPE
                              " | tile_q=128 warps=8 | 8.00 us, 340.2 GFLOP/s, "
                              "50.0 % of roof, 2026-12-01T00:00:00Z");
  assert_string_equal(r.v[1], "NVIDIA H200 | 580.10 | 0123456789abcdef | prefill_wgmma | " SHAPE
                              " |  | 5.00 us, 500.0 GFLOP/s, 50.0 % of roof, 2026-12-01T00:00:00Z");
  assert_string_equal(r.v[2], "NVIDIA H200 | 580.10 | 0123456789abcdef | decode_span | "
                              "dtype=bf16 d=128 group=4 causal=1 sq=1 sk=8192 work=64 | "
                              "stages=3 chunks=64 | 4.00 us, 3000.0 GB/s, 50.0 % of roof, "
                              "2026-12-01T00:00:00Z");
  static const int left[LEFT_COUNT] = {
      [LEFT_MODELLED] = 1, [LEFT_FAILED] = 1,  [LEFT_BUILD] = 2,  [LEFT_UNREADABLE] = 1,
      [LEFT_GRID] = 1,     [LEFT_UNBUILT] = 1, [LEFT_TEMPLATE] = 3, [LEFT_SLOWER] = 2,
      [LEFT_DAMAGED] = 1};
  for (int i = 0; i < LEFT_COUNT; i++)
    if (r.left[i] != left[i])
      fail_msg("%s", planner_left_text(d->arena, (PlannerLeft)i, r.left[i]));
  session_close(s);
  diag_free(d);
}

// What was measured otherwise says nothing by its rate.
static void only_what_compares_competes(void **state) {
  (void)state;
  Diag *d = diag_new();
  Arena *a = d->arena;
  Session *s = session_open(NULL, d);
  PlannerRows r;
  const char *now = text_hash(s, a, "prefill_mma", SHORT ",dtype=bf16", "tile_q=64", d);
  struct {
    Line first, second;
    int taken;        // which makes the row
    PlannerLeft left; // why the other does not
  } cases[] = {
      {{.us = 9, .rate = 300}, {.us = 8, .rate = 310}, 1, LEFT_SLOWER},
      {{.us = 9, .rate = 300}, {.us = 9, .rate = 300}, 0, LEFT_SLOWER}, // counted, too
      {{.us = 9, .rate = 300}, {.us = 8, .rate = 310, .warm = 1}, 0, LEFT_WARM},
      {{.us = 9, .rate = 300, .warm = 1}, {.us = 8, .rate = 200}, 1, LEFT_WARM},
      {{.us = 9, .rate = 300}, {.us = 8, .rate = 200, .graph = 1}, 1, LEFT_EAGER},
      {{.us = 9, .rate = 300, .graph = 1}, {.us = 8, .rate = 400}, 0, LEFT_EAGER},
      {{.us = 9, .rate = 300, .graph = 1, .warm = 1}, {.us = 8, .rate = 200}, 1, LEFT_WARM},
      // The present text's stands before any older one's, however it was measured.
      {{.us = 9, .rate = 300, .point = "tile_q=64", .hash = now}, {.us = 8, .rate = 999}, 0,
       LEFT_OLDER},
      {{.us = 8, .rate = 999}, {.us = 9, .rate = 3, .point = "tile_q=64", .hash = now, .warm = 1},
       1, LEFT_OLDER},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    STORE(a, d, cases[i].first, cases[i].second);
    rows_of_store(s, &r, d);
    assert_int_equal(r.n, 1);
    const Line *want = cases[i].taken ? &cases[i].second : &cases[i].first;
    if (!strstr(r.v[0], arena_printf(a, "| %.2f us", want->us))) fail_msg("%zu: %s", i, r.v[0]);
    for (int k = 0; k < LEFT_COUNT; k++)
      if (r.left[k] != (k == (int)cases[i].left))
        fail_msg("%zu: %s", i, planner_left_text(a, (PlannerLeft)k, r.left[k]));
  }
  session_close(s);
  diag_free(d);
}

// Where no result makes a row, how many were left out and why is all that there is to say.
static void what_was_left_out_is_told_where_nothing_is_left(void **state) {
  (void)state;
  Diag *d = diag_new();
  Session *s = session_open(NULL, d);
  PlannerRows r;
  STORE(d->arena, d, {.us = 9, .rate = 300, .modelled = 1}, {.us = 8, .rate = 340, .modelled = 1});
  assert_int_equal(planner_rows_from(s, d->arena, path, &r, d), ST_INPUT);
  assert_string_equal(d->first->what,
                      arena_printf(d->arena,
                                   "%s: makes no row: left out: 2 results whose times sim "
                                   "modelled; a row of the planner's table is a measurement",
                                   path));
  diag_reset(d);
  STORE(d->arena, d, {.us = 9, .rate = 300, .kind = "died"});
  assert_int_equal(planner_rows_from(s, d->arena, path, &r, d), ST_INPUT);
  assert_string_equal(d->first->what,
                      arena_printf(d->arena,
                                   "%s: makes no row: left out: 1 result that did not pass", path));
  diag_reset(d);
  STORE(d->arena, d, {.us = 9, .rate = 300, .kind = "died"}, {.us = 8, .rate = 300, .grid = 4},
        {.us = 9, .rate = 300, .kind = "died"});
  assert_int_equal(planner_rows_from(s, d->arena, path, &r, d), ST_INPUT);
  assert_string_equal(d->first->what,
                      arena_printf(d->arena,
                                   "%s: makes no row: left out: 2 results that did not pass, "
                                   "1 result of a fixed grid",
                                   path));
  session_close(s);
  diag_free(d);
}

// ---- into a table -------------------------------------------------------------------------------

#define ROW(driver, hash, name, shape, params, measured)                                           \
  "GPU | " driver " | " hash " | " name " | " shape " | " params " | " measured
#define HASH "0123456789abcdef"
#define S1 "dtype=bf16 d=128 group=1 causal=0 sq=512 sk=512 work=32"
#define S2 "dtype=bf16 d=128 group=1 causal=0 sq=1024 sk=1024 work=32"

static const char *merged(Session *s, Arena *a, const char *table, const char *row,
                          PlannerMerge *done, Diag *d) {
  Source *text;
  PlannerRows rows = {.v = &row, .n = 1};
  const Source *src = table ? source_new(a, "t.txt", table, strlen(table)) : NULL;
  if (planner_merge(s, a, src, &rows, &text, done, d)) fail_msg("%s", diag_text(d));
  assert_int_equal(strlen(text->text), text->len);
  return text->text;
}

static void rows_go_where_they_belong(void **state) {
  (void)state;
  Diag *d = diag_new();
  Arena *a = d->arena;
  Session *s = session_open(NULL, d);
  PlannerMerge m;
  static const char mma[] = ROW("1", HASH, "prefill_mma", S1, "", "9 us, 300.0 GFLOP/s, x"),
                    fma[] = ROW("1", HASH, "prefill_fma", S1, "", "0.05 TFLOP/s, y"),
                    far[] = ROW("1", HASH, "prefill_mma", S2, "", "9 us, 310.0 GFLOP/s"),
                    old[] = ROW("0", HASH, "prefill_mma", S1, "", "99 GFLOP/s"),
                    wgmma[] = ROW("1", HASH, "prefill_wgmma", S1, "", "4 us, 610.0 GFLOP/s"),
                    again[] = ROW("1", "00000000000000aa", "prefill_mma", S1, "tile_q=64",
                                  "8 us, 0.35 TFLOP/s"),
                    slow[] = ROW("1", HASH, "prefill_tile", S1, "", "7 us, 1.5 GFLOP/s"),
                    other[] = ROW("2", HASH, "prefill_mma", S1, "", "7 us, 305.0 GFLOP/s");
  const char *table = arena_printf(a, "# head\n\n%s\n%s\n# tail\n%s\n%s\n", mma, fma, far, old);
  // Faster than those of its shape: in front of the first of them.
  assert_string_equal(
      merged(s, a, table, wgmma, &m, d),
      arena_printf(a, "# head\n\n%s\n%s\n%s\n# tail\n%s\n%s\n", wgmma, mma, fma, far, old));
  assert_int_equal(m.added, 1);
  // The same template and shape: in its place.
  assert_string_equal(merged(s, a, table, again, &m, d),
                      arena_printf(a, "# head\n\n%s\n%s\n# tail\n%s\n%s\n", again, fma, far, old));
  assert_int_equal(m.added, 0);
  assert_int_equal(m.replaced, 1);
  // Slower than all: behind them.  Another driver's rows are another matter.
  assert_string_equal(
      merged(s, a, table, slow, &m, d),
      arena_printf(a, "# head\n\n%s\n%s\n%s\n# tail\n%s\n%s\n", mma, fma, slow, far, old));
  assert_string_equal(merged(s, a, table, other, &m, d), arena_printf(a, "%s%s\n", table, other));
  assert_string_equal(merged(s, a, NULL, other, &m, d), arena_printf(a, "%s\n", other));
  // A faster row gives way when its text is no longer made, and stays when it is.
  static const char now[] = ROW("1", HASH, "prefill_mma", S1, "", "9 us, 200.0 GFLOP/s");
  assert_string_equal(merged(s, a, mma, now, &m, d), arena_printf(a, "%s\n", now));
  assert_int_equal(m.replaced, 1);
  PlannerRow row = {.hash = HASH, .template_name = "prefill_mma", .shape = S1, .params = ""};
  const char *why, *hash = text_hash(s, a, "prefill_mma",
                                     "b=1,hq=32,sq=512,sk=512,d=128,dtype=bf16,causal=0", "", d);
  assert_int_equal(planner_row_text(s, a, &row, &why), TEXT_OTHER);
  const char *present =
      arena_printf(a, "GPU | 1 | %s | prefill_mma | " S1 " |  | 300.0 GFLOP/s", hash);
  assert_string_equal(merged(s, a, present, now, &m, d), arena_printf(a, "%s\n", present));
  assert_int_equal(m.left[LEFT_OLDER], 1);
  const char *slower =
      arena_printf(a, "GPU | 1 | %s | prefill_mma | " S1 " |  | 200.0 GFLOP/s", hash);
  assert_string_equal(merged(s, a, present, slower, &m, d), arena_printf(a, "%s\n", present));
  assert_int_equal(m.kept, 1);
  assert_int_equal(m.added + m.replaced, 0);
  const char *twice = arena_printf(a, "%s\n%s\n", present, mma); // kept: no other row goes
  assert_string_equal(merged(s, a, twice, now, &m, d), twice);
  session_close(s);
  diag_free(d);
}

// A row that is there gives way to what it compares with, and to the present text.
static void rows_of_other_conditions_stay(void **state) {
  (void)state;
  Diag *d = diag_new();
  Arena *a = d->arena;
  Session *s = session_open(NULL, d);
  const char *hash =
      text_hash(s, a, "prefill_mma", "b=1,hq=32,sq=512,sk=512,d=128,dtype=bf16,causal=0", "", d);
  static const char cold[] = "9.00 us, 300.0 GFLOP/s",
                    warm[] = "7.00 us from a warm L2, 400 GFLOP/s",
                    graph[] = "9.50 us by graph replay, 290.0 GFLOP/s";
  const struct {
    const char *there, *there_hash, *row, *row_hash;
    PlannerLeft left; // LEFT_COUNT: the new one is taken
  } cases[] = {
      {cold, hash, warm, hash, LEFT_WARM},        {warm, hash, cold, hash, LEFT_COUNT},
      {cold, hash, graph, hash, LEFT_COUNT},      {graph, hash, cold, hash, LEFT_EAGER},
      {warm, hash, graph, hash, LEFT_COUNT},
      {cold, hash, "1 us, 999 GFLOP/s", HASH, LEFT_OLDER},
      {cold, HASH, "99 us, 9 GFLOP/s", hash, LEFT_COUNT}, {cold, HASH, warm, hash, LEFT_COUNT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    PlannerMerge m;
    const char *form = "GPU | 1 | %s | prefill_mma | " S1 " |  | %s";
    const char *there = arena_printf(a, form, cases[i].there_hash, cases[i].there);
    const char *row = arena_printf(a, form, cases[i].row_hash, cases[i].row);
    const char *text = merged(s, a, arena_printf(a, "%s\n", there), row, &m, d);
    bool taken = cases[i].left == LEFT_COUNT;
    assert_string_equal(text, arena_printf(a, "%s\n", taken ? row : there));
    assert_int_equal(m.replaced, taken);
    for (int k = 0; k < LEFT_COUNT; k++) assert_int_equal(m.left[k], k == (int)cases[i].left);
  }
  // GB/s and GFLOP/s, and other conditions, are no order: behind what is there.
  PlannerMerge m;
  static const char span[] = ROW("1", HASH, "decode_span", S1, "", "9 us, 100.0 GB/s");
  const char *mma = ROW("1", HASH, "prefill_mma", S1, "", "9 us, 900.0 GFLOP/s");
  assert_string_equal(merged(s, a, span, mma, &m, d), arena_printf(a, "%s\n%s\n", span, mma));
  mma = ROW("1", HASH, "prefill_mma", S1, "", "9 us, 900.0 GB/s");
  assert_string_equal(merged(s, a, span, mma, &m, d), arena_printf(a, "%s\n%s\n", mma, span));
  mma = ROW("1", HASH, "prefill_mma", S1, "", "9 us by graph replay, 900.0 GB/s");
  assert_string_equal(merged(s, a, span, mma, &m, d), arena_printf(a, "%s\n%s\n", span, mma));
  session_close(s);
  diag_free(d);
}

// Processes that put rows into one table: none of them is lost.
static void writers_of_one_table_wait(void **state) {
  (void)state;
  enum { WRITERS = 4, EACH = 12 };
  Diag *d = diag_new();
  const char *table = arena_printf(d->arena, "%s.txt", path);
  pid_t pid[WRITERS];
  for (int w = 0; w < WRITERS; w++) {
    pid[w] = fork();
    for (int i = 0; !pid[w] && i < EACH; i++) {
      PlannerMerge m;
      const char *row = arena_printf(
          d->arena, ROW("1", HASH, "prefill_gone", "dtype=f32 d=%d", "", "9 us, 1 GB/s"),
          100 * w + i);
      const PlannerRows rows = {.v = &row, .n = 1};
      if (planner_put(NULL, d->arena, table, &rows, &m, d) || m.added != 1) _exit(1);
    }
    if (!pid[w]) _exit(0);
  }
  for (int w = 0; w < WRITERS; w++) {
    int status;
    assert_int_equal(waitpid(pid[w], &status, 0), pid[w]);
    assert_int_equal(status, 0);
  }
  Source *src;
  PlannerTable t = {0};
  assert_int_equal(source_read(d->arena, table, &src, d), ST_OK);
  assert_int_equal(planner_parse(d->arena, src, &t, d), ST_OK);
  assert_int_equal(t.n, WRITERS * EACH);
  assert_int_equal(unlink(table), 0);
  diag_free(d);
}

static void a_table_that_cannot_be_read_is_left_alone(void **state) {
  (void)state;
  Diag *d = diag_new();
  const char *row = ROW("1", HASH, "prefill_mma", S1, "", "9 us");
  Source *text;
  PlannerMerge m;
  PlannerRows rows = {.v = &row, .n = 1};
  Session *s = session_open(NULL, d);
  const Source *bad = source_new(d->arena, "t.txt", "GPU | x\n", 8);
  assert_int_equal(planner_merge(s, d->arena, bad, &rows, &text, &m, d), ST_INPUT);
  session_close(s);
  diag_free(d);
}

// What is no row of the shape stays to the byte: NULs, carriage returns, a byte order mark, which
// stays in front of all.  A row that is put in ends as the first line does.
static void all_other_bytes_stay(void **state) {
  (void)state;
#define BOM "\xef\xbb\xbf"
  static const char far[] = ROW("1", HASH, "prefill_gone", S2, "", "9 us"),
                    row[] = ROW("1", HASH, "prefill_gone", S1, "", "9 us, 2 GB/s"),
                    slow[] = ROW("1", HASH, "prefill_fma", S1, "", "9 us, 1 GB/s");
  const struct { const char *head, *tail, *end; } texts[] = {
      {"# a\0b \n", "", "\n"}, {BOM "# x\r\n\r\n", "# \0\r y\n", "\r\n"}, {BOM, "\r\n# z\n", "\n"},
  };
  const size_t heads[] = {7, 10, 3}, tails[] = {0, 7, 6};
  Diag *d = diag_new();
  const char *rows_text = row;
  const PlannerRows rows = {.v = &rows_text, .n = 1};
  Session *s = session_open(NULL, d);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    for (int before = 0; before < 2; before++) {
      char was[1024], want[1024];
      size_t n = 0, m = 0;
#define ADD(to, at, text, bytes) (memcpy((to) + (at), text, bytes), (at) += (bytes))
      const char *there = before ? slow : far, *end = texts[i].end;
      ADD(was, n, texts[i].head, heads[i]), ADD(want, m, texts[i].head, heads[i]);
      if (before) ADD(want, m, row, strlen(row)), ADD(want, m, end, strlen(end));
      ADD(was, n, there, strlen(there)), ADD(was, n, end, strlen(end));
      ADD(want, m, there, strlen(there)), ADD(want, m, end, strlen(end));
      ADD(was, n, texts[i].tail, tails[i]), ADD(want, m, texts[i].tail, tails[i]);
      if (!before) ADD(want, m, row, strlen(row)), ADD(want, m, end, strlen(end));
      was[n] = 0;
      PlannerMerge done;
      Source *text;
      const Source *table = source_new(d->arena, "t.txt", was, n);
      if (planner_merge(s, d->arena, table, &rows, &text, &done, d)) fail_msg("%s", diag_text(d));
      assert_int_equal(done.added, 1);
      if (text->len != m || memcmp(text->text, want, m))
        fail_msg("%zu %d: %s", i, before, text->text);
    }
  session_close(s);
  diag_free(d);
}

// A device is written, not read before: /dev/full has no end.
static void a_device_is_no_table(void **state) {
  (void)state;
  const char *row = ROW("1", HASH, "prefill_gone", S1, "", "9 us, 2 GB/s");
  const PlannerRows rows = {.v = &row, .n = 1};
  Diag *d = diag_new();
  Session *s = session_open(NULL, d);
  PlannerMerge m;
  assert_int_equal(planner_put(s, d->arena, "/dev/null", &rows, &m, d), ST_OK);
  assert_int_equal(m.added, 1);
  assert_int_equal(planner_put(s, d->arena, "/dev/full", &rows, &m, d), ST_INPUT);
  assert_string_equal(d->first->what, "/dev/full: can't be written: No space left on device");
  session_close(s);
  diag_free(d);
}

// A row of clusters does not hold for every problem of its shape: the best of the others stays
// behind it.
static void rows_of_clusters_leave_the_others(void **state) {
  (void)state;
  Diag *d = diag_new();
  Arena *a = d->arena;
  Session *s = session_open(NULL, d);
  PlannerMerge m;
#define DECODE "dtype=bf16 d=128 group=1 causal=0 sq=1 sk=1024 work=8"
  static const char two[] = ROW("1", HASH, "decode_span", DECODE, "cluster=2", "200.0 GB/s"),
                    eight[] = ROW("1", HASH, "decode_span", DECODE, "cluster=8", "220.0 GB/s"),
                    slow[] = ROW("1", HASH, "decode_span", DECODE, "cluster=4", "90.0 GB/s"),
                    plain[] = ROW("1", HASH, "decode_span", DECODE, "stages=4", "100.0 GB/s"),
                    better[] = ROW("1", HASH, "decode_span", DECODE, "", "210.0 GB/s");
  const char *table = arena_printf(a, "%s\n", plain);
  table = merged(s, a, table, two, &m, d); // in front, and no other's place
  assert_string_equal(table, arena_printf(a, "%s\n%s\n", two, plain));
  assert_int_equal(m.added, 1);
  table = merged(s, a, table, eight, &m, d); // in the place of the clusters
  assert_string_equal(table, arena_printf(a, "%s\n%s\n", eight, plain));
  assert_int_equal(m.replaced, 1);
  table = merged(s, a, table, better, &m, d); // in the place of the others
  assert_string_equal(table, arena_printf(a, "%s\n%s\n", eight, better));
  assert_int_equal(m.replaced, 1);
  table = merged(s, a, arena_printf(a, "%s\n", two), better, &m, d); // clusters are behind: gone
  assert_string_equal(table, arena_printf(a, "%s\n", better));
  table = arena_printf(a, "%s\n", plain);
  const char *hash = text_hash(s, a, "decode_span",
                               "b=1,hq=8,sq=1,sk=1024,d=128,dtype=bf16,causal=0", "stages=4", d);
  table =
      arena_printf(a, "GPU | 1 | %s | decode_span | " DECODE " | stages=4 | 100.0 GB/s\n", hash);
  assert_string_equal(merged(s, a, table, slow, &m, d), table); // none that is behind the others
  assert_int_equal(m.added + m.replaced, 0);
  session_close(s);
  diag_free(d);
}

// Of a store: both, the clusters in front where they are faster; none of clusters that were
// measured with more items than the least problem of the shape has, or with different lengths.
static void a_store_makes_rows_of_clusters_and_of_others(void **state) {
  (void)state;
  Diag *d = diag_new();
  Session *s = session_open(NULL, d);
#define OF(...) .template_name = "decode_span", __VA_ARGS__
#define ITEMS(n) "b=1,hq=" n ",sq=1,sk=1100,d=128,dtype=bf16"
#define VARLEN "hq=1,sq=1,seqlens_k=1100/1100/1100/1100/1100/1100/1100/1100,d=128,dtype=bf16"
  static const struct {
    Line line[3];
    const char *first, *second;
    PlannerLeft left;
  } cases[] = {
      {{{OF(.us = 9, .rate = 300, .point = "stages=4", .problem = ITEMS("8"))},
        {OF(.us = 7, .rate = 400, .point = "cluster=2", .problem = ITEMS("8"))},
        {OF(.us = 8, .rate = 350, .point = "cluster=4", .problem = ITEMS("8"))}},
       "cluster=2", "stages=4", LEFT_SLOWER},
      {{{OF(.us = 7, .rate = 400, .point = "cluster=2", .problem = ITEMS("8"))},
        {OF(.us = 6, .rate = 500, .point = "cluster=4", .problem = ITEMS("9"))},
        {OF(.us = 9, .rate = 300, .point = "stages=4", .problem = ITEMS("15"))}},
       "cluster=2", "stages=4", LEFT_CLUSTERS},
      {{{OF(.us = 9, .rate = 300, .point = "cluster=2", .problem = ITEMS("8"))},
        {OF(.us = 9, .rate = 300, .point = "stages=4", .problem = ITEMS("9"))},
        {.us = 9, .rate = 300, .kind = "died"}},
       "stages=4", NULL, LEFT_SLOWER},
      {{{OF(.us = 7, .rate = 400, .point = "cluster=2", .problem = VARLEN)},
        {OF(.us = 9, .rate = 300, .point = "stages=4", .problem = VARLEN)},
        {.us = 9, .rate = 300, .kind = "died"}},
       "stages=4", NULL, LEFT_CLUSTERS},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    PlannerRows r;
    write_store(d->arena, cases[i].line, 3, d);
    rows_of_store(s, &r, d);
    if (r.n != 1 + (cases[i].second != NULL)) fail_msg("%zu: %d rows", i, r.n);
    const char *want[] = {cases[i].first, cases[i].second};
    for (int k = 0; k < r.n; k++)
      if (!strstr(r.v[k], arena_printf(d->arena, "| %s |", want[k])))
        fail_msg("%zu: %s", i, r.v[k]);
    assert_int_equal(r.left[cases[i].left], 1);
  }
  session_close(s);
  diag_free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_the_writer_writes_is_read),
      cmocka_unit_test(other_lines_are_refused),
      cmocka_unit_test(the_fastest_of_each_shape_and_template),
      cmocka_unit_test(all_other_bytes_stay),
      cmocka_unit_test(a_device_is_no_table),
      cmocka_unit_test(rows_of_clusters_leave_the_others),
      cmocka_unit_test(a_store_makes_rows_of_clusters_and_of_others),
      cmocka_unit_test(what_was_left_out_is_told_where_nothing_is_left),
      cmocka_unit_test(only_what_compares_competes),
      cmocka_unit_test(rows_go_where_they_belong),
      cmocka_unit_test(rows_of_other_conditions_stay),
      cmocka_unit_test(writers_of_one_table_wait),
      cmocka_unit_test(a_table_that_cannot_be_read_is_left_alone),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
