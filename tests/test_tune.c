// Sweeps on sim: scripts, faulty variants, workers that die, order and interruption.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interrupt.h"
#include "measure.h"
#include "outfile.h"
#include "planner.h"
#include "tune.h"
#include "wire.h"

#define PROGRAM BUILD_DIR "/ptxsmith"

static char folder[] = "/tmp/ptxsmith_tune_XXXXXX";

// ---- a template with faults to choose from ------------------------------------------------------
// prefill_thread, with one more parameter and its deeds.

static char *replaced(Arena *a, const char *text, const char *what, const char *with) {
  const char *at = strstr(text, what);
  if (!at) fail_msg("prefill_thread has no \"%s\" any more", what);
  return arena_printf(a, "%.*s%s%s", (int)(at - text), text, with, at + strlen(what));
}

static void write_text(Arena *a, const char *name, const char *text) {
  FILE *f = fopen(arena_printf(a, "%s/%s", folder, name), "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static int make_templates(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  signal(SIGPIPE, SIG_IGN);
  Arena *a = arena_new();
  Diag *d = diag_new();
  Source *src;
  assert_int_equal(source_read(a, SOURCE_DIR "/templates/prefill_thread.ptx.in", &src, d), ST_OK);
  assert_int_equal(outfile_folder(a, arena_printf(a, "%s/templates", folder), d), ST_OK);
  char *text =
      replaced(a, src->text, "| param { \"block\"",
               "| param { \"fault\", {\"none\", \"endless\", \"shared\", \"text\"}, \"what "
               "goes wrong\", default = \"none\" }\n| param { \"block\"");
  text = replaced(a, text, "block = block }",
                  "block = block, smem = fault == \"shared\" and 262144 or 0 }");
  text = replaced(a, text, "| load_args()\n",
                  "| load_args()\n"
                  "|   if fault == \"endless\" then\n"
                  "        .reg .s32 %count;\n"
                  "        .reg .pred %always;\n"
                  "        mov.s32 %count, 0;\n"
                  "L_ever:\n"
                  "        add.s32 %count, %count, 1;\n"
                  "        setp.ge.s32 %always, %batch, 0;\n"
                  "        @%always bra L_ever;\n"
                  "|   end\n"
                  "|   if fault == \"text\" then\n"
                  "        add.f32 %nowhere, %nowhere, %nowhere;\n"
                  "|   end\n");
  write_text(a, "templates/faulty.ptx.in", text);
  diag_free(d);
  arena_free(a);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  char command[96];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

// ---- a sweep ------------------------------------------------------------------------------------

typedef struct Sweep {
  Diag *d;
  Session *s;
  Script *script;
  Tuner tuner;
} Sweep;

static const char *const sim_args[] = {"--device", "sim", "--templates", folder, NULL};

static Status open_script(Sweep *w, const char *lua) {
  *w = (Sweep){.d = diag_new()};
  w->s = session_open(folder, w->d);
  write_text(w->d->arena, "sweep.lua", lua);
  return script_open(w->s, arena_printf(w->d->arena, "%s/sweep.lua", folder), NULL, NULL,
                     &w->script, w->d);
}

static void close_sweep(Sweep *w) {
  if (w->tuner.arena) tune_close(&w->tuner);
  script_close(w->script);
  session_close(w->s);
  diag_free(w->d);
}

static void open_tuner(Sweep *w, double limit_s) {
  TuneOpts o = {.worker = {.program = PROGRAM, .args = sim_args}, .out_dir = folder, .seed = 1,
                .threads = 1, .limit_s = limit_s};
  if (tune_open(w->s, &o, "test", &w->tuner, w->d)) fail_msg("%s", diag_text(w->d));
}

static Outcome run_point(Sweep *w, const Run *r, int point) {
  Outcome o;
  if (tune_run(&w->tuner, r, point, 0, NULL, &o, w->d)) fail_msg("%s", diag_text(w->d));
  return o;
}

#define PROBLEM "\"b=1,hq=1,hkv=1,sq=3,sk=5,d=32\""

static void faults_cost_only_themselves(void **state) {
  (void)state;
  Sweep w;
  Status st = open_script(&w, "return { template = 'faulty', problems = { " PROBLEM " },\n"
                              "  params = { fault = { 'endless', 'none', 'shared', 'text' },\n"
                              "             vec = { 1, 8 } } }\n");
  if (st) fail_msg("%s", diag_text(w.d));
  int n;
  const Run *r = script_runs(w.script, &n);
  assert_int_equal(n, 1);
  assert_int_equal(r->npoints, 8);
  open_tuner(&w, 60);
  static const struct { const char *point; OutcomeKind kind; const char *why; } want[] = {
      {"fault=endless vec=1", OUT_LATE, "over its time limit of 1 s"},
      {"fault=endless vec=8", OUT_PRUNED, "vec x sizeof(dtype) is one load: 16 bytes at most"},
      {"fault=none vec=1", OUT_OK, ""},
      {"fault=none vec=8", OUT_PRUNED, "vec x sizeof(dtype) is one load: 16 bytes at most"},
      {"fault=shared vec=1", OUT_PRUNED, "262144 bytes of shared memory"},
      {"fault=shared vec=8", OUT_PRUNED, ""},
      {"fault=text vec=1", OUT_FAILED, "%nowhere"},
      {"fault=text vec=8", OUT_PRUNED, ""},
  };
  for (int i = 0; i < r->npoints; i++) {
    w.tuner.opts.limit_s = want[i].kind == OUT_LATE ? 1 : 60; // a busy machine is no fault
    Outcome o = run_point(&w, r, i);
    assert_string_equal(o.point, want[i].point);
    if (o.kind != want[i].kind) fail_msg("%s: %s: %s", o.point, outcome_name(o.kind), o.why);
    if (!strstr(o.why, want[i].why)) fail_msg("%s: %s", o.point, o.why);
  }
  close_sweep(&w);
}

static char *ranked_once(const char *lua) {
  Sweep w;
  if (open_script(&w, lua)) fail_msg("%s", diag_text(w.d));
  int n;
  const Run *r = script_runs(w.script, &n);
  Params *rows = arena_array(w.d->arena, Params, r->npoints);
  open_tuner(&w, 20);
  for (int i = 0; i < r->npoints; i++) rows[i] = run_point(&w, r, i).fields;
  const char *text;
  if (script_report(w.script, "sweep", r, rows, r->npoints, &text, w.d))
    fail_msg("%s", diag_text(w.d));
  char *copy = strdup(text);
  close_sweep(&w);
  return copy;
}

static void ranking_is_the_same_every_time(void **state) {
  (void)state;
  const char *lua = "return { name = 'widths', template = 'prefill_thread',\n"
                    "  problems = { 'b=1,hq=2,hkv=1,sq=33,sk=40,d=32' },\n"
                    "  params = { vec = { 1, 4, 2 }, block = 32 },\n"
                    "  where = function(p, problem) return p.vec * problem.heads_q ~= 4 end }\n";
  char *first = ranked_once(lua), *second = ranked_once(lua);
  assert_string_equal(first, second);
  // Wider loads are fewer instructions; vec = 2 is what `where` leaves out.
  const char *wide = strstr(first, "1  block=32 vec=4"),
             *narrow = strstr(first, "2  block=32 vec=1");
  if (!wide || !narrow || narrow < wide) fail_msg("%s", first);
  assert_non_null(strstr(first, "pruned 1: the script's where"));
  assert_non_null(strstr(first, "modelled from counted work, not measured"));
  assert_null(strstr(first, "vec=2"));
  free(first);
  free(second);
}

static void chunks_are_values_and_equal_variants_run_once(void **state) {
  (void)state;
  Sweep w;
  Status st = open_script(&w, "return { template = 'decode_splitk',\n"
                              "  problems = { 'b=1,hq=1,hkv=1,sq=1,sk=3,d=32' },\n"
                              "  params = { chunks = { 2, 3, 100 } } }\n");
  if (st) fail_msg("%s", diag_text(w.d));
  int n;
  const Run *r = script_runs(w.script, &n);
  open_tuner(&w, 20);
  Outcome o = run_point(&w, r, 0);
  assert_int_equal(o.kind, OUT_OK);
  assert_string_equal(params_get(&o.fields, "chunks"), "2");
  assert_int_equal(run_point(&w, r, 1).kind, OUT_OK);
  assert_int_equal(run_point(&w, r, 2).kind, OUT_AGAIN); // clamped to seqlen_k
  close_sweep(&w);
}

// Other values of the problem make other points of one variant; chunks below 1 take nobody's place.
static void points_of_other_problems_all_run(void **state) {
  (void)state;
  Sweep w;
  Status st = open_script(&w, "return { template = 'decode_splitk',\n"
                              "  problems = { 'b=1,hq=1,hkv=1,sq=1,sk=3,d=32' },\n"
                              "  params = { seqlen_k = { 3, 5 }, chunks = { 0, -1, 1 } } }\n");
  if (st) fail_msg("%s", diag_text(w.d));
  int n, ran = 0, refused = 0;
  const Run *r = script_runs(w.script, &n);
  open_tuner(&w, 20);
  assert_int_equal(r->npoints, 6);
  for (int i = 0; i < r->npoints; i++) {
    Outcome o = run_point(&w, r, i);
    ran += o.kind == OUT_OK;
    refused += strstr(o.why, "chunks is at least 1") != NULL;
  }
  assert_int_equal(ran, 2);
  assert_int_equal(refused, 4);
  close_sweep(&w);
}

static void results_are_stored_and_point_at_predictions(void **state) {
  (void)state;
  Sweep w;
  Outcome o;
  assert_int_equal(open_script(&w, "return { template = 'faulty', problems = { " PROBLEM " } }"),
                   ST_OK);
  int n;
  const Run *r = script_runs(w.script, &n);
  open_tuner(&w, 20);
  unlink(w.tuner.store.path);
  store_close(&w.tuner.store);
  assert_int_equal(store_open(w.d->arena, w.tuner.store.path, &w.tuner.store, w.d), ST_OK);
  assert_int_equal(tune_run(&w.tuner, r, 0, 2.5, "0123456789012345", &o, w.d), ST_OK);
  Source *src;
  assert_int_equal(source_read(w.d->arena, w.tuner.store.path, &src, w.d), ST_OK);
  assert_non_null(strstr(src->text, "\"expected_us\":2.5,\"prediction\":\"0123456789012345\""));
  assert_non_null(strstr(src->text, "\"point\":\"defaults\",\"kind\":\"ok\""));
  assert_non_null(strstr(src->text, "\"modelled\":1"));
  assert_int_equal(src->nlines, 1);
  close_sweep(&w);
}

// ---- going on where a sweep ended ---------------------------------------------------------------

#define FOUR                                                                                       \
  "return { template = 'faulty', problems = { " PROBLEM " },\n"                                    \
  "  params = { vec = { 1, 2, 4, 8 }, ahead = 0 } }\n"

static char *store_text(Arena *a, const char *name, uint32_t *nlines) {
  Source *src;
  Diag *d = diag_new();
  if (source_read(a, arena_printf(a, "%s/%s.jsonl", folder, name), &src, d))
    fail_msg("%s", diag_text(d));
  diag_free(d);
  *nlines = src->nlines;
  return (char *)src->text;
}

static void open_resumed(Sweep *w, const char *name, int samples, const char *driver) {
  TuneOpts o = {.worker = {.program = PROGRAM, .args = sim_args}, .out_dir = folder, .seed = 1,
                .threads = 1, .limit_s = 60, .samples = samples};
  DeviceInfo dev = {.name = "sim"};
  snprintf(dev.driver, sizeof dev.driver, "%s", driver);
  if (tune_open(w->s, &o, name, &w->tuner, w->d) || tune_resume(&w->tuner, &dev, w->d))
    fail_msg("%s", diag_text(w->d));
}

// A store as kill -9 leaves it: three points, the last one's line torn.
static void a_killed_sweep_goes_on(void **state) {
  (void)state;
  Sweep w;
  uint32_t n;
  if (open_script(&w, FOUR)) fail_msg("%s", diag_text(w.d));
  const Run *r = script_runs(w.script, &(int){0});
  assert_int_equal(r->npoints, 4);
  open_resumed(&w, "killed", 0, ""); // there is no store yet
  assert_int_equal(w.tuner.before.n, 0);
  Outcome first = run_point(&w, r, 0);
  assert_null(first.stored);
  const char *hash = arena_strdup(w.d->arena, params_get(&first.fields, "hash"));
  run_point(&w, r, 1);
  run_point(&w, r, 2);
  tune_close(&w.tuner);
  char *text = store_text(w.d->arena, "killed", &n);
  assert_int_equal(n, 3);
  char *torn = strstr(text, "\n") + 1;
  torn = strstr(torn, "\n") + 1; // the third line
  torn[strlen(torn) / 2] = 0;
  write_text(w.d->arena, "killed.jsonl", text);

  open_resumed(&w, "killed", 0, "");
  assert_int_equal(w.tuner.before.n, 2);
  assert_int_equal(w.tuner.before.damaged, 1);
  tune_begin_run(&w.tuner);
  Outcome o = run_point(&w, r, 0);
  assert_int_equal(o.kind, OUT_OK);
  assert_non_null(o.stored);
  assert_string_equal(params_get(&o.fields, "stored"), o.stored);
  assert_string_equal(params_get(&o.fields, "hash"), hash);
  assert_string_equal(params_get(&o.fields, "point"), "ahead=0 vec=1");
  assert_true(wire_number(&o.fields, "median_us") > 0);
  assert_null(params_get(&o.fields, "sum"));
  assert_non_null(run_point(&w, r, 1).stored);
  assert_int_equal(w.tuner.worker.pid, 0); // nobody was needed
  o = run_point(&w, r, 2);                 // the torn one is measured
  assert_int_equal(o.kind, OUT_OK);
  assert_null(o.stored);
  assert_int_equal(run_point(&w, r, 3).kind, OUT_PRUNED);
  store_text(w.d->arena, "killed", &n);
  assert_int_equal(n, 5); // two, the torn one, the third again, the pruned one
  close_sweep(&w);
}

// Another driver, other samples, another problem, a text that is another: measured.  Results that
// did not pass, of whatever else is the same, count for nothing.
static void only_the_same_measurement_stands(void **state) {
  (void)state;
  Sweep w;
  if (open_script(&w, FOUR)) fail_msg("%s", diag_text(w.d));
  const Run *r = script_runs(w.script, &(int){0});
  open_resumed(&w, "same", 3, "");
  run_point(&w, r, 0);
  tune_close(&w.tuner);
  open_resumed(&w, "same", 3, "1.2");
  assert_int_equal(w.tuner.before.n, 0);
  tune_close(&w.tuner);
  open_resumed(&w, "same", 4, "");
  assert_int_equal(w.tuner.before.n, 1);
  tune_begin_run(&w.tuner);
  assert_null(run_point(&w, r, 0).stored);
  tune_close(&w.tuner);
  open_resumed(&w, "same", 3, "");
  Run other = *r;
  if (problem_parse(w.d->arena, "b=1,hq=1,hkv=1,sq=3,sk=6,d=32", (Problem **)&other.problem, w.d))
    fail_msg("%s", diag_text(w.d));
  tune_begin_run(&w.tuner);
  assert_null(run_point(&w, &other, 0).stored);
  tune_begin_run(&w.tuner);
  assert_non_null(run_point(&w, r, 0).stored);
  Params *before = &w.tuner.before.v[0];
  static const char *const spoilt[][2] = {
      {"texts", "0123456789abcdef"}, {"seed", "2"},         {"hot", "1"},
      {"graph", "1"},                {"grid", "7"},         {"checks", "sanitized"},
      {"hook", "x.inc"},             {"target", "sm_90"},   {"samples", "9"},
      {"problem", "b=2"},            {"template", "prefill_thread"},
      {"steps", "1000"},             {"stamp", "0.0.1 0123456789abcdef"},
  };
  for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
    const char *was = params_get(before, spoilt[i][0]);
    params_set(w.d->arena, before, spoilt[i][0], spoilt[i][1]);
    w.tuner.before.n = 1;
    tune_begin_run(&w.tuner);
    if (run_point(&w, r, 0).stored) fail_msg("%s", spoilt[i][0]);
    params_set(w.d->arena, before, spoilt[i][0], was ? was : "");
  }
  // One without a stamp is of the time before there were any, and stands while that is this one.
  const char *stamp = tune_stamp(w.d->arena);
  assert_string_equal(params_get(before, "stamp"), stamp);
  params_set(w.d->arena, before, "stamp", "");
  w.tuner.before.n = 1;
  tune_begin_run(&w.tuner);
  assert_int_equal(run_point(&w, r, 0).stored != NULL, !strcmp(stamp, TUNE_FIRST_STAMP));
  tune_close(&w.tuner);
  uint32_t n;
  char *text = store_text(w.d->arena, "same", &n), *ok;
  while ((ok = strstr(text, "\"kind\":\"ok\""))) memcpy(ok, "\"kind\":\"no\"", 11);
  write_text(w.d->arena, "same.jsonl", text); // and their sums are wrong by now
  open_resumed(&w, "same", 3, "");
  assert_int_equal(w.tuner.before.n, 0);
  assert_int_equal(w.tuner.before.damaged, (int)n);
  Params failed = {0};
  params_set(w.d->arena, &failed, "kind", "failed");
  params_set(w.d->arena, &failed, "gates", "10");
  params_set(w.d->arena, &failed, "median_us", "3");
  assert_false(result_passed(&failed));
  params_set(w.d->arena, &failed, "kind", "ok");
  assert_true(result_passed(&failed));
  params_set(w.d->arena, &failed, "gates", "0");
  assert_false(result_passed(&failed));
  close_sweep(&w);
}

// What a stamp is made of: the tolerances as the page has them, and how long is timed.
static void stamps_are_of_gates_and_timer(void **state) {
  (void)state;
  Arena *a = arena_new();
  const char *gates = verify_settings(a);
  // 2 e + ulp(1) of bf16, f16's ulp is none of them; 4 e + ulp(1) for e4m3's bf16.
  assert_non_null(strstr(gates, arena_printf(a, " %a ", 2 + 0x1p-7)));
  assert_non_null(strstr(gates, arena_printf(a, " %a ", 4 + 0x1p-7)));
  assert_null(strstr(gates, arena_printf(a, " %a ", 2 + 0x1p-10)));
  assert_non_null(strstr(gates, " unseen grid "));
  assert_true(!strncmp(timer_settings(a), "timer 5 200 20 2000 20 5 ", 25));
  assert_true(!strncmp(tune_stamp(a), "0.1.0 ", 6));
  assert_int_equal(strlen(tune_stamp(a)), 6 + 16);
  arena_free(a);
}

// ---- scripts that are wrong ---------------------------------------------------------------------

static void assert_script_says(const char *lua, const char *what) {
  Sweep w;
  assert_int_equal(open_script(&w, lua), ST_INPUT);
  if (!strstr(diag_text(w.d), what)) fail_msg("no \"%s\" in:\n%s", what, diag_text(w.d));
  close_sweep(&w);
}

static void wrong_scripts_are_told_apart(void **state) {
  (void)state;
  assert_script_says("return 7", "the script returns a number, not a table");
  assert_script_says("return {}", "neither a sweep nor a list of them");
  assert_script_says("return { template = 'x' }", "sweep 1: problems is missing");
  assert_script_says("return { template = 'x', problems = {} }", "sweep 1: problems is empty");
  assert_script_says("return { template = 'x', problem = 'b=1' }",
                     "sweep 1 has a field problem; known are doc, limit, name");
  assert_script_says("return { template = 'x', problems = { 'b=1,hq=3,hkv=2' } }", "heads_q");
  assert_script_says("return { template = 'x', problems = { " PROBLEM
                     " }, params = { vec = 1.5 } }",
                     "params: vec has a value that is neither an integer");
  assert_script_says("return { template = 'x', problems = { " PROBLEM " }, params = { vec = {} } }",
                     "params: vec has no values");
  assert_script_says("local x = 1\nreturn x.y.z", "sweep.lua:2");
  assert_script_says("while true do end", "sweep.lua:1");
  assert_script_says("return require('ptxsmith.nowhere')", "nowhere");
  assert_script_says("return require('../secret')", "no name of a module");
}

// Built-in scripts are for GPUs that are not at hand: each run has a point that can be built for
// it, and of those of the planner's rows, which are listed one by one, every one can.
static void built_in_scripts_can_be_run(void **state) {
  (void)state;
  static const char *const devices[] = {"cuda", "sim"};
  static const char *const names[] = {"prefill_rows", "features_rows", "decode_rows",
                                      "prefill_f32",  "ceilings",      "quickstart",
                                      "foundation",   "prefill",       "decode"};
  const DeviceInfo h200 = {.name = "H200", .sm = 90, .sm_suffix = 'a', .smem_optin = 232448};
  for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
    const char *name = names[i / 2];
    Diag *d = diag_new();
    Session *s = session_open(NULL, d);
    Script *script;
    Params given = {0};
    int n;
    params_set(d->arena, &given, "device", devices[i % 2]);
    if (script_open(s, name, &given, NULL, &script, d)) fail_msg("%s: %s", name, diag_text(d));
    const Run *r = script_runs(script, &n);
    assert_int_equal(tune_check(s, r, n, d), ST_OK);
    for (int k = 0; k < n; k++) {
      const TemplateInfo *info;
      assert_int_equal(session_template(s, r[k].template_name, &info, d), ST_OK);
      bool good = info->kind == KIND_CEILING, every = strstr(name, "_rows") != NULL;
      Fit fit = {0};
      for (int p = 0; p < r[k].npoints && (every || !good); p++) {
        PlannerChoice choice;
        fit = planner_fit(s, d->arena, r[k].points[p], &(PlannerAsk){0}, r[k].problem, &h200,
                          r[k].template_name, &choice);
        good = fit.step == FIT_DONE;
        if (every && !good) fail_msg("%s, %s: %s", r[k].name, r[k].points[p], fit.why);
      }
      if (!good) fail_msg("%s, %s: %s", name, r[k].name, fit.why ? fit.why : "no point");
    }
    script_close(script);
    session_close(s);
    diag_free(d);
  }
}

static void unknown_axis_is_named_with_its_neighbour(void **state) {
  (void)state;
  Sweep w;
  Outcome o;
  assert_int_equal(open_script(&w, "return { template = 'prefill_thread', problems = { " PROBLEM
                                   " }, params = { vek = 1 } }"),
                   ST_OK);
  int n;
  const Run *r = script_runs(w.script, &n);
  open_tuner(&w, 20);
  assert_int_equal(tune_run(&w.tuner, r, 0, 0, NULL, &o, w.d), ST_INPUT);
  assert_non_null(strstr(diag_text(w.d), "no parameter \"vek\" (did you mean \"vec\"?)"));
  close_sweep(&w);
}

static void predictions_come_from_the_script(void **state) {
  (void)state;
  Sweep w;
  Prediction p;
  Status st = open_script(
      &w,
      "local attention = require('ptxsmith.attention')\n"
      "return { { template = 'faulty', problems = { 'b=1,hq=1,hkv=1,sq=4,sk=5,d=32,causal=1' },\n"
      "  params = { vec = { 1, 4 } }, predict = function(p, work, c)\n"
      "    assert(attention.pairs_seen(p) == 2 + 3 + 4 + 5)\n"
      "    return { us = p.seqlen_k * work.params.vec * work.threads + c.read_gbs, why = 'so' }\n"
      "  end }, { template = 'faulty', problems = { " PROBLEM " }, predict = function() end } }");
  if (st) fail_msg("%s", diag_text(w.d));
  int n;
  const Run *r = script_runs(w.script, &n);
  assert_int_equal(n, 2);
  assert_true(r[0].predicts);
  Params work = {0};
  params_set(w.d->arena, &work, "threads", "100");
  Ceiling c = {.read_gbs = 0.5};
  st = script_predict(w.script, &r[0], 1, &work, &c, 132, &p, w.d);
  if (st) fail_msg("%s", diag_text(w.d));
  assert_true(p.us == 5 * 4 * 100 + 0.5);
  assert_string_equal(p.why, "so");
  assert_int_equal(script_predict(w.script, &r[1], 0, &work, &c, 132, &p, w.d), ST_INPUT);
  assert_non_null(strstr(diag_text(w.d), "predict gave no time"));
  close_sweep(&w);
}

// ---- the end ------------------------------------------------------------------------------------

// Last: the interrupt stays pending for the rest of the process.
static void ctrl_c_keeps_what_is_done(void **state) {
  (void)state;
  Sweep w;
  Outcome o;
  assert_int_equal(open_script(&w, "return { template = 'faulty', problems = { " PROBLEM " },\n"
                                   "  params = { vec = { 1, 2 } } }"),
                   ST_OK);
  int n;
  const Run *r = script_runs(w.script, &n);
  open_tuner(&w, 20);
  assert_int_equal(run_point(&w, r, 0).kind, OUT_OK);
  interrupt_install();
  raise(SIGINT);
  assert_int_equal(tune_run(&w.tuner, r, 1, 0, NULL, &o, w.d), ST_INTERRUPTED);
  assert_int_equal(o.fields.n, 0);
  close_sweep(&w);
}

// Sequences, then heads are left out down to 2^15 query rows, and nothing else changes.
static void large_prefill_is_verified_as_one_of_its_class(void **state) {
  (void)state;
  static const struct {
    TemplateKind kind;
    const char *given, *checked;
  } cases[] = {
      {KIND_PREFILL, "b=4,hq=16,hkv=16,sq=4096,sk=4096,d=128,causal=1",
       "b=1,hq=8,hkv=8,sq=4096,sk=4096,d=128,causal=1"},
      {KIND_PREFILL, "b=1,hq=64,hkv=8,sq=8192,sk=100,d=64", "b=1,hq=8,hkv=1,sq=8192,sk=100,d=64"},
      {KIND_PREFILL, "b=3,hq=6,hkv=1,sq=2231,sk=2231,d=64", "b=3,hq=6,hkv=1,sq=2231,sk=2231,d=64"},
      {KIND_PREFILL, "hq=32,hkv=32,sq=1000,seqlens_k=900/1000/800,d=64",
       "hq=32,hkv=32,sq=1000,seqlens_k=900/1000/800,d=64"},
      {KIND_DECODE, "b=64,hq=32,hkv=8,sq=64,sk=4096,d=128",
       "b=64,hq=32,hkv=8,sq=64,sk=4096,d=128"},
  };
  Arena *a = arena_new();
  Diag *d = diag_new();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Problem *p, *want;
    assert_int_equal(problem_parse(a, cases[i].given, &p, d), ST_OK);
    assert_int_equal(problem_parse(a, cases[i].checked, &want, d), ST_OK);
    assert_string_equal(problem_text(a, measure_class(a, cases[i].kind, p)), problem_text(a, want));
  }
  diag_free(d);
  arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(large_prefill_is_verified_as_one_of_its_class),
      cmocka_unit_test(faults_cost_only_themselves),
      cmocka_unit_test(ranking_is_the_same_every_time),
      cmocka_unit_test(chunks_are_values_and_equal_variants_run_once),
      cmocka_unit_test(points_of_other_problems_all_run),
      cmocka_unit_test(results_are_stored_and_point_at_predictions),
      cmocka_unit_test(a_killed_sweep_goes_on),
      cmocka_unit_test(only_the_same_measurement_stands),
      cmocka_unit_test(stamps_are_of_gates_and_timer),
      cmocka_unit_test(wrong_scripts_are_told_apart),
      cmocka_unit_test(built_in_scripts_can_be_run),
      cmocka_unit_test(unknown_axis_is_named_with_its_neighbour),
      cmocka_unit_test(predictions_come_from_the_script),
      cmocka_unit_test(ctrl_c_keeps_what_is_done),
  };
  return cmocka_run_group_tests(tests, make_templates, remove_folder);
}
