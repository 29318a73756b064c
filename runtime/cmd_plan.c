// plan: what would run for a problem, and why.
#include <string.h>

#include "cmd.h"
#include "planner.h"

static const char *params_text(Arena *a, const Params *p) {
  const char *text = "";
  for (int i = 0; i < p->n; i++)
    text = arena_printf(a, "%s%s%s=%s", text, i ? " " : "", p->v[i].name, p->v[i].value);
  return text;
}

static void print_text(Cmd *c, const PlannerChoice *choice, const Operator *op) {
  printf("problem    %s\nshape      %s\ndevice     %s\n", problem_text(c->arena, op->problem),
         choice->shape, device_info(c->device)->name);
  for (int i = 0; i < op->nsteps; i++) {
    const Step *s = &op->step[i];
    printf("launch %d   %s\n           grid %u, block %u, %u bytes of shared memory, hash %s\n",
           i + 1, s->variant->id, s->grid[0], s->variant->launch.block[0],
           s->variant->launch.smem_bytes, s->variant->hash);
  }
  printf("workspace  %llu bytes, the first %llu zero\nparameters %s: %s\n",
         (unsigned long long)op->workspace_bytes, (unsigned long long)op->workspace_zero_bytes,
         planner_source(choice), choice->why);
  for (int i = 0; i < choice->npassed; i++) printf("not        %s\n", choice->passed[i]);
}

static void print_json(Cmd *c, const PlannerChoice *choice, const Operator *op) {
  Json j;
  json_begin(&j, c->arena);
  json_str(&j, "problem", problem_text(c->arena, op->problem));
  json_str(&j, "shape", choice->shape);
  json_str(&j, "device", device_info(c->device)->id);
  json_str(&j, "template", choice->template_name);
  json_str(&j, "params", params_text(c->arena, &choice->params));
  json_int(&j, "chunks", problem_int(op->problem, "chunks", 0));
  json_array(&j, "launches");
  for (int i = 0; i < op->nsteps; i++) {
    json_object(&j, NULL);
    json_str(&j, "variant", op->step[i].variant->id);
    json_str(&j, "hash", op->step[i].variant->hash);
    json_uint(&j, "grid", op->step[i].grid[0]);
    json_close(&j);
  }
  json_close(&j);
  json_uint(&j, "workspace_bytes", op->workspace_bytes);
  json_str(&j, "source", planner_source(choice));
  json_str(&j, "why", choice->why);
  json_bool(&j, "older_text", choice->older);
  json_array(&j, "passed");
  for (int i = 0; i < choice->npassed; i++) json_str(&j, NULL, choice->passed[i]);
  json_close(&j);
  fputs(json_end(&j), stdout);
}

static Status show(Cmd *c, Session *s, const PlannerAsk *ask, const PlannerChoice *choice) {
  Operator *op;
  const PlanOpts opts = {.build = ask->build};
  Status st = operator_make(s, choice->template_name, &choice->params, choice->problem, &opts, &op,
                            c->diag);
  if (st) return st;
  st = operator_load(op, c->device, c->diag); // a persistent grid asks for the occupancy
  if (!st) st = operator_plan(op, c->device, &opts, c->diag);
  if (!st) {
    (cli_has(c->cli, OPT_JSON) ? print_json : print_text)(c, choice, op);
  }
  operator_free(op);
  return st;
}

// ---- the tables ---------------------------------------------------------------------------------

typedef struct Tally {
  const char *file;
  int rows, older, broken;
} Tally;

static void print_tally(const Tally *t) {
  if (!t->rows) return;
  printf("%s: %d row%s, %d of the present text, %d of an older one, %d can't be built\n", t->file,
         t->rows, plural(t->rows), t->rows - t->older - t->broken, t->older, t->broken);
}

static void tell_row(Session *s, Arena *a, const PlannerRow *r, Tally *t) {
  const char *why;
  PlannerText text = planner_row_text(s, a, r, &why);
  t->rows++;
  t->older += text == TEXT_OTHER;
  t->broken += text == TEXT_NONE;
  if (text == TEXT_OTHER)
    printf("%s:%u: measured on an older text of %s\n", r->file, r->line, r->template_name);
  else if (text == TEXT_NONE)
    printf("%s:%u: can't be built: %s\n", r->file, r->line, why);
}

static Status rows(Cmd *c, Session *s) {
  PlannerTable table = {0};
  Tally t = {0};
  bool broken = false;
  Status st = cmd_planner_tables(c, &table);
  if (st) return st;
  for (int i = 0; i < table.n; i++) {
    if (!t.file || strcmp(t.file, table.v[i].file)) {
      print_tally(&t);
      t = (Tally){.file = table.v[i].file};
    }
    tell_row(s, c->arena, &table.v[i], &t);
    broken = broken || t.broken;
  }
  print_tally(&t);
  return broken ? diag_fail(c->diag, ST_FAILED, "a row of the planner's tables can't be built")
                : ST_OK;
}

static void tell_left(Arena *a, const char *store, const int left[LEFT_COUNT], const char *where) {
  for (int i = 0; i < LEFT_COUNT; i++)
    if (left[i])
      fprintf(stderr, "%s: left out: %s%s\n", store,
              planner_left_text(a, (PlannerLeft)i, left[i]), where);
}

Status cmd_rows_from(Cmd *c, const char *store) {
  Session *s;
  PlannerRows found;
  PlannerMerge done;
  const char *into = c->cli->text[OPT_INTO];
  Status st = cmd_session(c, &s);
  if (!st) st = planner_rows_from(s, c->arena, store, &found, c->diag);
  if (st) return st;
  tell_left(c->arena, store, found.left, "");
  for (int i = 0; i < found.n && !into; i++) puts(found.v[i]);
  if (!into) return ST_OK;
  st = planner_put(s, c->arena, into, &found, &done, c->diag);
  if (st) return st;
  tell_left(c->arena, store, done.left, arena_printf(c->arena, " in %s", into));
  if (!cli_has(c->cli, OPT_JSON))
    printf("%s: %d row%s added, %d replaced, %d kept (faster, and of the present text)\n", into,
           done.added, plural(done.added), done.replaced, done.kept);
  return ST_OK;
}

// What else plan does than to plan.
static Status about_tables(Cmd *c, Session *s) {
  static const CliOptId of_plans[] = {OPT_DEVICE, OPT_THREADS, OPT_ISA,
                                      OPT_HOOK,   OPT_TARGET,  OPT_JSON};
  bool from = cli_has(c->cli, OPT_FROM);
  const char *what = from ? "from" : "rows";
  if (c->cli->noperands || (from && cli_has(c->cli, OPT_ROWS)))
    return diag_error(c->diag, NOWHERE, "plan: --%s is about the planner's tables and stands alone",
                      what);
  for (size_t i = 0; i < sizeof of_plans / sizeof *of_plans; i++)
    if (cli_has(c->cli, of_plans[i]))
      return diag_error(c->diag, NOWHERE, "plan: --%s does nothing with --%s",
                        cli_opts[of_plans[i]].name, what);
  return from ? cmd_rows_from(c, c->cli->text[OPT_FROM]) : rows(c, s);
}

Status cmd_plan(Cmd *c) {
  Session *s;
  Device *dev;
  Problem *p;
  PlannerChoice choice;
  PlannerAsk ask = {0};
  Status st = cmd_session(c, &s);
  if (!st && cli_has(c->cli, OPT_INTO) && !cli_has(c->cli, OPT_FROM))
    return diag_error(c->diag, NOWHERE, "plan: --into needs --from STORE.jsonl");
  if (!st && (cli_has(c->cli, OPT_ROWS) || cli_has(c->cli, OPT_FROM))) return about_tables(c, s);
  if (!st && !c->cli->noperands)
    return diag_error(c->diag, NOWHERE, "usage: ptxsmith plan PROBLEM [name=value ...]");
  if (!st)
    st = problem_open_planned(s, c->arena, c->cli->operand[0], c->cli->text[OPT_HOOK], &p, c->diag);
  if (!st) st = cmd_device(c, &dev);
  if (!st) st = cmd_build_opts(c, &ask.build);
  ask.given = &c->cli->params;
  if (!st) st = cmd_choose(c, &ask, p, &choice);
  return st ? st : show(c, s, &ask, &choice);
}
