// campaign: predict, then measure, rung by rung.
#include "cmd_tune.h"
#include "interrupt.h"
#include "progress.h"
#include "wire.h"

#include <inttypes.h>
#include <string.h>

typedef struct Campaign {
  Cmd *c;
  Session *session;
  Script *script;
  Tuner tuner;
  Store predictions;
  DeviceInfo device;
  Progress progress;
  int64_t done, total;
  bool json, wrong, empty, left_out;
  const char *broken;
} Campaign;

typedef struct Expected {
  double us; // 0: the point can't be built, so it has no prediction
  const char *hash;
} Expected;

// ---- before the first launch --------------------------------------------------------------------

// What is known of a variant without running it.
static Params counted_work(Arena *a, const Operator *op) {
  const Step *step = &op->step[0];
  const Variant *v = step->variant;
  Params work = {0};
  PtxStats stats = {0};
  if (v->module && v->entry) ptx_stats(v->module, v->entry, &stats);
  const uint32_t *b = v->launch.block;
  const struct { const char *name; double value; } fields[] = {
      {"insts", stats.insts},
      {"registers", stats.live_max},
      {"shared_bytes", stats.shared_bytes + v->launch.smem_bytes},
      {"loop_insts", stats.loop_insts},
      {"loop_flops", stats.loop_flops},
      {"loop_global_bytes", stats.loop_global_bytes},
      {"loop_shared_bytes", stats.loop_shared_bytes},
      {"intensity", stats.loop_intensity},
      {"blocks", (double)step->work},
      {"threads", (double)(b[0] ? b[0] : 1) * (b[1] ? b[1] : 1) * (b[2] ? b[2] : 1)},
      {"launches", op->nsteps},
      {"chunks", (double)problem_int(op->problem, "chunks", 0)},
  };
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    wire_put_number(a, &work, fields[i].name, fields[i].value);
  return work;
}

// One line, whose hash is that of what stands before it.  On the disk when this returns.
static Status write_prediction(Campaign *k, const Run *r, const char *point, const Prediction *p,
                               const Ceiling *ceiling, Expected *out) {
  Arena *a = k->c->arena;
  Json j;
  json_begin(&j, a);
  json_str(&j, "record", "prediction");
  json_str(&j, "time", utc_now(a));
  json_str(&j, "campaign", script_name(k->script));
  json_str(&j, "rung", r->name);
  json_str(&j, "template", r->template_name);
  json_str(&j, "problem", r->spec);
  json_str(&j, "params", point);
  json_str(&j, "device", k->device.name);
  json_num(&j, "expected_us", p->us);
  json_str(&j, "why", p->why);
  json_num(&j, "read_gbs", ceiling->read_gbs);
  json_num(&j, "fma_gflops", ceiling->fma_gflops);
  json_bool(&j, "modelled", ceiling->modelled);
  const char *line = json_end(&j);
  size_t n = strlen(line) - 2; // without the brace and the newline
  out->us = p->us;
  out->hash =
      arena_printf(a, "%016llx", (unsigned long long)content_hash(line, n));
  line = arena_printf(a, "%.*s,\"hash\":\"%s\"}\n", (int)n, line, out->hash);
  return store_append(&k->predictions, line, true, k->c->diag);
}

static Status predict_point(Campaign *k, const Run *r, int point, const Ceiling *ceiling,
                            Expected *out) {
  Arena *a = k->c->arena;
  Diag *d = k->c->diag, *quiet = diag_new();
  Params params = {0};
  Problem *problem;
  Operator *op = NULL;
  *out = (Expected){0};
  Status st = tune_point(&k->tuner, r, r->points[point], &params, &problem, d);
  // A combination that can't be built is pruned later, with its reason.
  PlanOpts opts = {.build = k->tuner.opts.build};
  bool built = !st && !operator_make(k->session, r->template_name, &params, problem, &opts, &op,
                                     quiet) &&
               !operator_plan(op, NULL, NULL, quiet);
  diag_free(quiet);
  if (!st && built) {
    Params work = counted_work(a, op);
    Prediction p;
    st = script_predict(k->script, r, point, &work, ceiling, k->device.sm_count, &p, d);
    if (!st) st = write_prediction(k, r, r->points[point], &p, ceiling, out);
  }
  operator_free(op);
  return st;
}

// The device's ceilings at the rung's size.  The device is closed again: the workers have their
// own, and its memory is theirs.
static Status measure_ceilings(Campaign *k, const Run *r, Ceiling *out) {
  Device *dev;
  Status st = cmd_device(k->c, &dev);
  if (st) return st;
  st = ceiling_measure(k->session, dev, (uint64_t)problem_kv_bytes(r->problem), out, k->c->diag);
  device_close(dev);
  k->c->device = NULL;
  return st;
}

static Status predict_rung(Campaign *k, const Run *r, Expected *out) {
  Ceiling ceiling;
  Status st = measure_ceilings(k, r, &ceiling);
  for (int i = 0; i < r->npoints && !st; i++) st = predict_point(k, r, i, &ceiling, &out[i]);
  return st;
}

// ---- measuring ----------------------------------------------------------------------------------

// A line a point: a rung may take long, and whoever reads a log sees that it goes on.
static void tell_point(Campaign *k, const Outcome *o, double expected) {
  if (o->kind == OUT_PRUNED || o->kind == OUT_AGAIN) return;
  progress_clear(&k->progress);
  printf("  %" PRId64 " of %" PRId64 ": %s: ", k->done, k->total, params_get(&o->fields, "point"));
  if (o->kind == OUT_OK)
    printf("%s%.2f us, expected %.2f\n", wire_number(&o->fields, "modelled") ? "modelled " : "",
           wire_number(&o->fields, "median_us"), expected);
  else
    printf("%s\n", outcome_name(o->kind));
  fflush(stdout);
}

static Status measure_rung(Campaign *k, const Run *r, const Expected *expected, Rows *rows) {
  Status st = ST_OK;
  tune_begin_run(&k->tuner);
  for (int i = 0; i < r->npoints && !st; i++) {
    Outcome o;
    progress_at(&k->progress, k->done++);
    st = tune_run(&k->tuner, r, i, expected[i].us, expected[i].hash, &o, k->c->diag);
    if (st && st != ST_INTERRUPTED) return st;
    if (!o.fields.n) break; // Ctrl-C between two points
    rows_add(k->c->arena, rows, &o);
    if (k->json) cmd_outcome_json(k->c, r, &o);
    else tell_point(k, &o, expected[i].us);
  }
  return st;
}

static Status print_rung(Campaign *k, const Run *r, const Rows *rows) {
  const char *text;
  if (k->json) return ST_OK;
  progress_clear(&k->progress);
  Status st = script_report(k->script, "rung", r, rows->v, rows->n, &text, k->c->diag);
  if (!st) printf("%s\n", text);
  return st;
}

// What is about to be tried, before the first of it runs: a rung may take long.
static void announce(Campaign *k, const Run *r) {
  if (k->json) return;
  printf("%s: %d point%s of %s on %s\n", r->name, r->npoints, r->npoints == 1 ? "" : "s",
         r->template_name, r->spec);
  fflush(stdout);
}

static void announce_expected(Campaign *k, const Run *r, const Expected *expected) {
  double least = 0, most = 0;
  int n = 0;
  for (int i = 0; i < r->npoints; i++) {
    double us = expected[i].us;
    if (!us) continue;
    least = !n || us < least ? us : least;
    most = !n || us > most ? us : most;
    n++;
  }
  if (k->json) return;
  if (least < most) printf("expected: %.4g to %.4g us, of %d that can be built\n", least, most, n);
  else if (n) printf("expected: %.4g us\n", least);
  else printf("expected: nothing, none can be built\n");
  fflush(stdout);
}

static Status predict(Campaign *k, const Run *r, Expected **expected) {
  if (!r->predicts) {
    fprintf(stderr, "%s: no prediction, so it is not measured\n", r->name);
    k->left_out = true;
    return ST_OK;
  }
  *expected = arena_array(k->c->arena, Expected, r->npoints + 1);
  announce(k, r);
  Status st = predict_rung(k, r, *expected);
  if (!st) announce_expected(k, r, *expected);
  return st;
}

static Status climb(Campaign *k, const Run *r, const Expected *expected) {
  Rows rows = {0};
  if (!k->json) printf("%s%s: measuring %s\n", k->done ? "" : "\n", r->name, r->spec);
  Status st = measure_rung(k, r, expected, &rows);
  k->wrong |= rows.wrong > 0;
  if (!k->broken) k->broken = rows.broken;
  k->empty |= rows.ok == 0;
  Status printed = st && st != ST_INTERRUPTED ? st : print_rung(k, r, &rows);
  return st ? st : printed;
}

// All predictions stand before the first measurement.
static Status climb_all(Campaign *k) {
  int n;
  const Run *runs = script_runs(k->script, &n);
  Expected **expected = arena_array(k->c->arena, Expected *, n + 1);
  for (int i = 0; i < n; i++) k->total += runs[i].predicts ? runs[i].npoints : 0;
  progress_begin(&k->progress, stderr, "variants", k->total);
  Status st = ST_OK;
  for (int i = 0; i < n && !st; i++) {
    if (interrupt_pending()) return ST_INTERRUPTED;
    st = predict(k, &runs[i], &expected[i]);
  }
  for (int i = 0; i < n && !st; i++)
    if (expected[i]) st = climb(k, &runs[i], expected[i]);
  progress_clear(&k->progress);
  return st;
}

Status cmd_campaign(Cmd *c) {
  TuneOpts opts;
  Campaign k = {.c = c, .json = cli_has(c->cli, OPT_JSON), .predictions = {.fd = -1}};
  Params given = {0};
  Status st = cmd_session(c, &k.session);
  if (!st) st = cmd_device_info(c, &k.device); // shapes are smaller on sim
  if (!st) params_set(c->arena, &given, "device", k.device.is_sim ? "sim" : "cuda");
  if (!st) st = script_open(k.session, c->cli->operand[0], &given, c->cli->text[OPT_HOOK],
                           &k.script, c->diag);
  if (!st) st = cmd_tune_opts(c, k.session, k.script, &opts);
  if (st) {
    script_close(k.script);
    return st;
  }
  const char *name = script_name(k.script);
  const char *path = arena_printf(c->arena, "%s/%s.predictions.jsonl", opts.out_dir, name);
  st = store_open(c->arena, path, &k.predictions, c->diag);
  if (!st) st = tune_open(k.session, &opts, name, &k.tuner, c->diag);
  if (!st) {
    st = climb_all(&k);
    bool say = !k.json && (!st || st == ST_INTERRUPTED);
    if (say && k.predictions.fd >= 0) printf("predictions: %s\n", path);
    if (say && k.tuner.store.fd >= 0) printf("results: %s\n", k.tuner.store.path);
    tune_close(&k.tuner);
  }
  store_close(&k.predictions);
  script_close(k.script);
  if (st) return st;
  Status verdict = cmd_tune_verdict(k.wrong, k.broken, c->diag);
  if (verdict) return verdict;
  if (k.left_out) return diag_fail(c->diag, ST_FAILED, "a rung without a prediction was left out");
  if (k.empty)
    return diag_fail(c->diag, ST_FAILED, "a rung ended without a variant that was timed");
  return ST_OK;
}
