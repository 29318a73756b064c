#include "cmd_tune.h"
#include "spent.h"
#include "wire.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// This very program, even when the file was replaced since or argv[0] is relative to elsewhere.
static const char *own_program(Cmd *c) {
  char path[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  return n > 0 ? arena_strndup(c->arena, path, (size_t)n) : c->program;
}

// The options that a worker takes over as they were given.
static const char *const *worker_args(Cmd *c) {
  static const CliOptId passed[] = {OPT_DEVICE, OPT_THREADS,   OPT_ISA,      OPT_SEED,
                                    OPT_HOOK,   OPT_TARGET,    OPT_TEMPLATES, OPT_SCHEDULE,
                                    OPT_SANITIZE, OPT_STEPS};
  enum { N = sizeof passed / sizeof *passed };
  const char **args = arena_array(c->arena, const char *, 2 * N + 1);
  int n = 0;
  for (int i = 0; i < N; i++) {
    if (!cli_has(c->cli, passed[i])) continue;
    args[n++] = arena_printf(c->arena, "--%s", cli_opts[passed[i]].name);
    if (cli_opts[passed[i]].takes != TAKES_FLAG) args[n++] = c->cli->text[passed[i]];
  }
  return args;
}

Status cmd_tune_opts(Cmd *c, Session *s, const Script *script, TuneOpts *out) {
  const Cli *cli = c->cli;
  *out = (TuneOpts){
      .worker = {.program = own_program(c), .args = worker_args(c)},
      .out_dir = cli_has(cli, OPT_OUT) ? cli->text[OPT_OUT] : "out",
      .seed = cli->number[OPT_SEED],
      .grid = (uint32_t)cli->number[OPT_GRID],
      .samples = (int)cli->number[OPT_SAMPLES],
      .threads = (int)cli->number[OPT_THREADS],
      .steps = cli->number[OPT_STEPS],
      .hot = cli_has(cli, OPT_HOT),
      .graph = cli_has(cli, OPT_GRAPH),
  };
  if (cli_has(cli, OPT_SANITIZE) || cli->number[OPT_SCHEDULE])
    out->checks = arena_printf(c->arena, "%s schedule %llu",
                               cli_has(cli, OPT_SANITIZE) ? "sanitized," : "plain,",
                               (unsigned long long)cli->number[OPT_SCHEDULE]);
  int n;
  const Run *runs = script_runs(script, &n);
  Status st = cmd_build_opts(c, &out->build);
  return st ? st : tune_check(s, runs, n, c->diag);
}

void cmd_outcome_json(Cmd *c, const Run *r, const Outcome *o) {
  Json j;
  json_begin(&j, c->arena);
  json_str(&j, "run", r->name);
  json_str(&j, "template", r->template_name);
  json_str(&j, "problem", r->spec);
  for (int i = 0; i < o->fields.n; i++) tune_json_field(&j, &o->fields.v[i]);
  fputs(json_end(&j), stdout);
  fflush(stdout);
}

Status cmd_device_info(Cmd *c, DeviceInfo *out) {
  Device *dev;
  Status st = cmd_device(c, &dev);
  if (st) return st;
  *out = *device_info(dev);
  device_close(dev);
  c->device = NULL;
  return ST_OK;
}

void rows_add(Arena *a, Rows *rows, const Outcome *o) {
  if (o->kind == OUT_AGAIN) return;
  rows->ok += o->kind == OUT_OK;
  rows->stored += o->stored != NULL;
  Status st = (Status)wire_number(&o->fields, "status"); // ST_INPUT: no device or problem for it
  rows->wrong += o->kind == OUT_FAILED && st == ST_FAILED;
  bool broken = o->kind == OUT_DIED || (o->kind == OUT_FAILED && st != ST_FAILED && st != ST_INPUT);
  if (broken && !rows->broken)
    rows->broken = arena_printf(a, "%s %s: %s", params_get(&o->fields, "point"),
                                outcome_name(o->kind), o->why);
  *arena_push(a, rows->v, rows->n, rows->cap) = o->fields;
}

char *rows_spent(Arena *a, const Rows *rows) {
  Spent sum = {0};
  int n = 0;
  for (int r = 0; r < rows->n; r++) {
    const Params *row = &rows->v[r];
    if (params_get(row, "stored") || !params_get(row, spent_names[SPENT_TIME])) continue;
    n++;
    for (int i = 0; i < SPENT_PLACES_N; i++) sum.s[i] += wire_number(row, spent_names[i]);
  }
  return n ? spent_text(a, &sum, n) : NULL;
}

Status cmd_tune_verdict(bool wrong, const char *broken, Diag *d) {
  if (broken) return diag_fail(d, ST_FAILED, "%s", broken);
  return wrong ? diag_fail(d, ST_FAILED, "a variant did not pass verification") : ST_OK;
}
