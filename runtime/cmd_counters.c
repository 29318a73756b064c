// counters TEMPLATE name=value ... --problem ... or FILE.ptx with run's options: what a launch
// does.
#include <string.h>

#include "cmd_counters.h"
#include "cmd_run.h"
#include "counters.h"
#include "dense.h"

void cmd_count(Cmd *c) {
  const Cli *cli = c->cli;
  SimOpts opts = {.threads = (int)cli->number[OPT_THREADS], .isa = cli->text[OPT_ISA],
                  .step_limit = c->cli->number[OPT_STEPS], .counters = true};
  device_sim_opts(c->device, &opts);
}

static Status read_roof(Cmd *c, Roof *out) {
  *out = roof_h200;
  const char *text = c->cli->text[OPT_ROOF];
  return text ? roof_parse(c->arena, text, out, c->diag) : ST_OK;
}

Status cmd_check_roof(Cmd *c) {
  Roof roof;
  return read_roof(c, &roof);
}

Status cmd_show_counts(Cmd *c, const char *name, Kernel *k) {
  Roof roof;
  KernelCounts n;
  Status st = read_roof(c, &roof);
  if (st) return st;
  if (!kernel_counts(k, &n))
    return diag_fail(c->diag, ST_DEVICE, "%s: nothing was counted: counters are the interpreter's "
                     "(--device sim)", name);
  if (!cli_has(c->cli, OPT_JSON)) {
    printf("%s\n", name);
    counters_print(c->arena, &n, &roof, stdout);
    if (cli_has(c->cli, OPT_ANNOTATE)) counters_listing(c->arena, &n, stdout);
    return ST_OK;
  }
  Json j;
  json_begin(&j, c->arena);
  json_str(&j, "counters", name);
  counters_json(c->arena, &n, &roof, &j);
  fputs(json_end(&j), stdout);
  return ST_OK;
}

// A step that a problem without queries, sequences or heads leaves out.
static void show_nothing(const Cmd *c, const char *name) {
  if (!cli_has(c->cli, OPT_JSON)) {
    printf("%s\nkernel     no launch: the problem has no work for it\n", name);
    return;
  }
  Json j;
  json_begin(&j, c->arena);
  json_str(&j, "counters", name);
  json_uint(&j, "launches", 0);
  fputs(json_end(&j), stdout);
}

// One launch of every step, on tensors of its own.
static Status count_operator(Cmd *c, const Subject *s, Operator *op) {
  Dense buffers = {0};
  Counters none;
  cmd_count(c);
  Status st = operator_load(op, s->device, c->diag);
  if (!st) st = operator_plan(op, s->device, &s->opts.plan, c->diag);
  if (!st) st = dense_bind(s->device, op, s->opts.seed, &buffers, c->diag);
  device_counters(s->device, &none, true);
  if (!st) st = operator_launch(op, s->device, c->diag);
  if (!st) st = device_sync(s->device, c->diag);
  for (int i = 0; i < op->nsteps && !st; i++) {
    const Step *step = &op->step[i];
    if (step->work) st = cmd_show_counts(c, step->variant->id, step->kernel);
    else show_nothing(c, step->variant->id);
  }
  dense_free(s->device, &buffers);
  return st;
}

Status cmd_count_subject(Cmd *c, const Subject *s) {
  if (!device_info(s->device)->is_sim)
    return diag_fail(c->diag, ST_DEVICE, "--counters: they are the interpreter's: --device sim");
  Operator *op = NULL;
  Status st = operator_make(s->session, s->template_name, s->params, s->problem, &s->opts.plan, &op,
                            c->diag);
  if (!st) st = count_operator(c, s, op);
  operator_free(op);
  return st;
}

Status cmd_counters(Cmd *c) {
  static const CliOptId of_file[] = {OPT_KERNEL, OPT_BLOCK, OPT_CLUSTER, OPT_SMEM, OPT_ARG},
                        of_template[] = {OPT_PROBLEM, OPT_HOOK, OPT_TARGET, OPT_TEMPLATES};
  const char *name = c->cli->operand[0], *dot = strrchr(name, '.');
  Subject s;
  uint32_t grid[3] = {0};
  if (dot && !strcmp(dot, ".ptx")) {
    Status st = cmd_refuse(c, of_template, 4, "for a template");
    if (!st && c->cli->params.n)
      st = diag_error(c->diag, NOWHERE, "%s is PTX: it takes no parameters", name);
    return st ? st : cmd_run(c);
  }
  Status st = cmd_refuse(c, of_file, 5, "for a file's kernel");
  if (!st && cli_has(c->cli, OPT_GRID3)) st = cmd_dims(c, OPT_GRID3, grid);
  if (!st && (grid[1] > 1 || grid[2] > 1))
    st = diag_error(c->diag, NOWHERE, "--grid: \"%s\": a template's grid is a number of blocks",
                    c->cli->text[OPT_GRID3]);
  if (!st) st = subject_open(c, &s);
  if (st) return st;
  s.opts.plan.grid = grid[0];
  st = cmd_count_subject(c, &s);
  subject_close(&s);
  return st;
}
