// sweep: verifies, times and ranks the variants that a script asks for.
#include "cmd_tune.h"
#include "outfile.h"
#include "planner.h"
#include "progress.h"
#include "wire.h"

typedef struct Sweep {
  Cmd *c;
  Script *script;
  Tuner tuner;
  Progress progress;
  int64_t done;
  bool json, wrong, empty, on_sim;
  int timed;
  const char *broken;
} Sweep;

static int64_t points_to_try(const Run *r, int64_t first) {
  return first && first < r->npoints ? first : r->npoints;
}

// Which points are the store's: names where others were measured now.
static void tell_stored(const Rows *rows) {
  enum { NAMED = 8 };
  int told = 0;
  printf("  from the store, not measured again (--again measures): %d of %d", rows->stored,
         rows->ok);
  for (int i = 0; i < rows->n && rows->stored < rows->ok; i++)
    if (params_get(&rows->v[i], "stored") && told++ < NAMED)
      printf("%s %s", told > 1 ? "," : ":", params_get(&rows->v[i], "point"));
  if (told > NAMED) printf(" and %d more", told - NAMED);
  putchar('\n');
}

static Status print_run(Sweep *s, const Run *r, const Rows *rows) {
  const char *text;
  if (s->json) return ST_OK;
  progress_clear(&s->progress);
  Status st = script_report(s->script, "sweep", r, rows->v, rows->n, &text, s->c->diag);
  if (st) return st;
  fputs(text, stdout);
  if (rows->stored) tell_stored(rows);
  const TuneOpts *o = &s->tuner.opts;
  bool plain = !o->grid && !o->build.hook_path && !o->build.sm; // as the planner launches
  const char *row = NULL;
  if (plain) row = planner_row_of(s->tuner.session, s->c->arena, r, rows->v, rows->n);
  if (row) printf("  planner row: %s\n", row);
  const char *spent = s->on_sim ? NULL : rows_spent(s->c->arena, rows);
  if (spent) printf("  %s\n", spent);
  putchar('\n');
  fflush(stdout); // the next run may take long
  return ST_OK;
}

static Status one_run(Sweep *s, const Run *r, int64_t n) {
  Rows rows = {0};
  Status st = ST_OK;
  tune_begin_run(&s->tuner);
  for (int i = 0; i < n && !st; i++) {
    Outcome o;
    progress_at(&s->progress, s->done++);
    st = tune_run(&s->tuner, r, i, 0, NULL, &o, s->c->diag);
    if (st && st != ST_INTERRUPTED) return st;
    if (!o.fields.n) break; // Ctrl-C between two points
    rows_add(s->c->arena, &rows, &o);
    s->progress.found += o.stored != NULL;
    s->on_sim |= wire_number(&o.fields, "modelled") != 0; // its times are nobody's
    if (s->json) cmd_outcome_json(s->c, r, &o);
  }
  s->wrong |= rows.wrong > 0;
  s->timed += rows.ok;
  if (!s->broken) s->broken = rows.broken;
  s->empty |= rows.ok == 0;
  Status printed = print_run(s, r, &rows);
  return st ? st : printed;
}

static Status all_runs(Sweep *s) {
  int n;
  const Run *runs = script_runs(s->script, &n);
  int64_t first = (int64_t)s->c->cli->number[OPT_FIRST], total = 0;
  for (int i = 0; i < n; i++) total += points_to_try(&runs[i], first);
  progress_begin(&s->progress, stderr, "variants", total);
  Status st = ST_OK;
  for (int i = 0; i < n && !st; i++) st = one_run(s, &runs[i], points_to_try(&runs[i], first));
  progress_clear(&s->progress);
  return st;
}

// What an earlier run of the sweep left, killed or not, counts.
static Status resume(Cmd *c, Tuner *t) {
  DeviceInfo dev;
  bool some = !cli_has(c->cli, OPT_AGAIN) && tune_has_store(t);
  bool into = cli_has(c->cli, OPT_INTO);
  Status st = some || into ? cmd_device_info(c, &dev) : ST_OK;
  if (!st && into && dev.is_sim)
    return diag_error(c->diag, NOWHERE,
                      "sweep: --into: a row of the planner's table is a measurement, and times on "
                      "sim are modelled");
  if (!st && some) st = tune_resume(t, &dev, c->diag);
  if (!st && t->before.damaged)
    fprintf(stderr, "%s: %d damaged line%s left out\n", t->store.path, t->before.damaged,
            t->before.damaged == 1 ? "" : "s");
  return st;
}

// Rows are of launches as the planner makes them: what can make none is told before it runs.
static Status check_into(const Sweep *s) {
  static const CliOptId others[] = {OPT_GRID, OPT_HOOK, OPT_TARGET};
  const Cli *cli = s->c->cli;
  int n;
  const Run *runs = script_runs(s->script, &n);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (cli_has(cli, others[i]))
      return diag_error(s->c->diag, NOWHERE, "sweep: --into: results with --%s make no rows",
                        cli_opts[others[i]].name);
  for (int i = 0; i < n; i++)
    if (!planner_takes(s->tuner.session, runs[i].template_name))
      return diag_error(s->c->diag, NOWHERE, "sweep: --into: the planner takes no %s",
                        runs[i].template_name);
  return ST_OK;
}

// A sweep that did not come to its end puts no rows in: what was not measured may be the fastest.
static void tell_unfinished(const Sweep *s, const char *store, const char *into) {
  if (!s->timed) {
    fprintf(stderr, "%s: no rows put in: nothing was timed\n", into);
    return;
  }
  fprintf(stderr,
          "%s: no rows put in: %d variant%s timed before the end; the same command goes on, and "
          "ptxsmith plan --from %s --into %s puts in what there is\n",
          into, s->timed, plural(s->timed), store, into);
}

Status cmd_sweep(Cmd *c) {
  Session *session;
  TuneOpts opts;
  Sweep s = {.c = c, .json = cli_has(c->cli, OPT_JSON)};
  const char *into = c->cli->text[OPT_INTO]; // written in the end, tried before the work
  Status st = into ? outfile_probe(c->arena, into, c->diag) : ST_OK;
  if (!st) st = cmd_session(c, &session);
  if (!st) st = script_open(session, c->cli->operand[0], &c->cli->params, c->cli->text[OPT_HOOK],
                           &s.script, c->diag);
  if (st) return st;
  st = script_check_given(s.script, c->diag);
  if (!st) st = cmd_tune_opts(c, session, s.script, &opts);
  if (!st) st = tune_open(session, &opts, script_name(s.script), &s.tuner, c->diag);
  const char *store = NULL;
  if (!st) {
    st = resume(c, &s.tuner);
    if (!st && into) st = check_into(&s);
    if (!st) st = all_runs(&s);
    bool some = tune_has_store(&s.tuner) && (!st || st == ST_INTERRUPTED);
    if (!s.json && some) printf("results: %s\n", s.tuner.store.path);
    store = arena_strdup(c->arena, s.tuner.store.path);
    tune_close(&s.tuner);
  }
  script_close(s.script);
  if (into && (st == ST_INTERRUPTED || (st && s.timed))) tell_unfinished(&s, store, into);
  if (st) return st;
  Status put = into ? cmd_rows_from(c, store) : ST_OK; // of the variants that are right
  Status verdict = cmd_tune_verdict(s.wrong, s.broken, c->diag);
  if (verdict) return verdict;
  if (s.empty) return diag_fail(c->diag, ST_FAILED, "a run ended without a variant that was timed");
  return put;
}
