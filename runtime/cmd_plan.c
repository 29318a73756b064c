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

static void print_text(Cmd *c, const PlannerChoice *choice, const Operator *op, const char *shape) {
  printf("problem    %s\nshape      %s\ndevice     %s\n", problem_text(c->arena, op->problem), shape,
         device_info(c->device)->name);
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

static void print_json(Cmd *c, const PlannerChoice *choice, const Operator *op, const char *shape) {
  Json j;
  json_begin(&j, c->arena);
  json_str(&j, "problem", problem_text(c->arena, op->problem));
  json_str(&j, "shape", shape);
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

static Status show(Cmd *c, Session *s, const PlannerChoice *choice) {
  Operator *op;
  Status st = operator_make(s, choice->template_name, &choice->params, choice->problem, NULL, &op,
                            c->diag);
  if (st) return st;
  st = operator_load(op, c->device, c->diag); // a persistent grid asks for the occupancy
  if (!st) st = operator_plan(op, c->device, NULL, c->diag);
  if (!st) {
    const char *shape = planner_shape(c->arena, choice->problem);
    (cli_has(c->cli, OPT_JSON) ? print_json : print_text)(c, choice, op, shape);
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
  printf("%s: %d rows, %d of the present text, %d of an older one, %d can't be built\n", t->file,
         t->rows, t->rows - t->older - t->broken, t->older, t->broken);
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
  if (c->cli->noperands)
    return diag_error(c->diag, NOWHERE, "plan: --rows is about the tables, not about a problem");
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
  return broken ? diag_fail(c->diag, ST_FAILED, "a row of the planner's tables can't be built") : ST_OK;
}

Status cmd_plan(Cmd *c) {
  Session *s;
  Device *dev;
  Problem *p;
  PlannerChoice choice;
  Status st = cmd_session(c, &s);
  if (!st && cli_has(c->cli, OPT_ROWS)) return rows(c, s);
  if (!st && !c->cli->noperands)
    return diag_error(c->diag, NOWHERE, "usage: ptxsmith plan PROBLEM");
  if (!st) st = cmd_problem_of(c, c->cli->operand[0], &p);
  if (!st) st = cmd_device(c, &dev);
  if (!st) st = cmd_choose(c, &(PlannerAsk){0}, p, &choice);
  return st ? st : show(c, s, &choice);
}
