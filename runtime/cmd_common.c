// What several verbs ask for: the session, the device, the problem, options of the build.
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "parse.h"
#include "sim_lanes.h"

Status cmd_session(Cmd *c, Session **out) {
  if (!c->session) c->session = session_open(c->cli->text[OPT_TEMPLATES], c->diag);
  *out = c->session;
  return c->session ? ST_OK : ST_INPUT;
}

void cmd_schedule(Cmd *c, uint64_t seed) {
  const Cli *cli = c->cli;
  SimOpts opts = {.threads = (int)cli->number[OPT_THREADS],
                  .isa = cli->text[OPT_ISA],
                  .seed = seed,
                  .completion = sim_completion_of(seed),
                  .step_limit = c->cli->number[OPT_STEPS],
                  .sanitize = cli_has(cli, OPT_SANITIZE),
                  // times on sim are made of counts; else they are taken where they are asked for
                  .counters = cli->verb == CLI_COUNTERS || IN_MODELLED >> cli->verb & 1};
  device_sim_opts(c->device, &opts);
}

// What only the interpreter can do is never left out in silence.
static Status refuse_sim_options(Cmd *c, const char *device) {
  static const CliOptId only[] = {OPT_SANITIZE, OPT_SCHEDULES, OPT_SCHEDULE,
                                   OPT_STEPS,    OPT_ISA};
  for (size_t i = 0; i < sizeof only / sizeof *only; i++)
    if (cli_has(c->cli, only[i]))
      return diag_error(c->diag, NOWHERE,
                        "--%s is the interpreter's: it needs --device sim, not %s",
                        cli_opts[only[i]].name, device);
  return ST_OK;
}

Status cmd_device(Cmd *c, Device **out) {
  const Cli *cli = c->cli;
  if (!c->device) {
    const char *isa = cli->text[OPT_ISA];
    if (isa && !lane_isa(isa))
      return diag_error(c->diag, NOWHERE,
                        "--isa: this host has no %s; it is baseline, avx2 or avx512", isa);
    bool counts = cli->verb == CLI_COUNTERS || cli_has(cli, OPT_COUNTERS);
    const char *spec = cli_has(cli, OPT_DEVICE) ? cli->text[OPT_DEVICE] : counts ? "sim" : "auto";
    Status st = strncmp(spec, "cuda:", 5) ? ST_OK : refuse_sim_options(c, spec);
    if (!st) st = device_open(spec, &c->device, c->diag);
    if (!st && !device_info(c->device)->is_sim)
      st = refuse_sim_options(c, device_info(c->device)->id);
    if (st) return st;
    cmd_schedule(c, cli->number[OPT_SCHEDULE]);
  }
  *out = c->device;
  return ST_OK;
}

Status cmd_refuse(Cmd *c, const CliOptId *opts, int n, const char *for_what) {
  for (int i = 0; i < n; i++)
    if (cli_has(c->cli, opts[i]))
      return diag_error(c->diag, NOWHERE, "--%s is %s, and %s is none", cli_opts[opts[i]].name,
                        for_what, c->cli->operand[0]);
  return ST_OK;
}

Status cmd_build_opts(Cmd *c, VariantOpts *out) {
  *out = (VariantOpts){.loc = cli_has(c->cli, OPT_LOC), .hook_path = c->cli->text[OPT_HOOK]};
  const char *target = c->cli->text[OPT_TARGET];
  return target ? parse_target(target, &out->sm, &out->sm_suffix, c->diag) : ST_OK;
}

Status cmd_planner_tables(Cmd *c, PlannerTable *out) {
  const char *own = "out/planner.txt";
  const Source *built_in;
  Source *src;
  Status st = ST_OK;
  if (!access(own, F_OK)) {
    st = source_read(c->arena, own, &src, c->diag);
    if (!st) st = planner_parse(c->arena, src, out, c->diag);
  }
  if (!st) st = session_file(c->session, "lua/planner.txt", &built_in, c->diag);
  if (!st) st = planner_parse(c->arena, built_in, out, c->diag);
  return st;
}

Status cmd_choose(Cmd *c, const PlannerAsk *ask, const Problem *p, PlannerChoice *out) {
  PlannerTable *table = arena_new_of(c->arena, PlannerTable);
  Status st = cmd_planner_tables(c, table);
  if (st) return st;
  PlannerAsk here = *ask;
  here.device = c->device;
  return planner_choose(c->session, c->arena, table, &here, p, device_info(c->device), out,
                        c->diag);
}

Status cmd_problem_of(Cmd *c, const char *spec, Problem **out) {
  Session *s;
  Status st = cmd_session(c, &s);
  return st ? st : problem_open_hooked(s, c->arena, spec, c->cli->text[OPT_HOOK], out, c->diag);
}

Status cmd_problem(Cmd *c, Problem **out) {
  *out = NULL;
  const char *spec = c->cli->text[OPT_PROBLEM];
  if (spec) return cmd_problem_of(c, spec, out);
  return diag_error(c->diag, NOWHERE, "%s needs --problem: a name or b=1,hq=8,sq=1,sk=4096,d=128",
                    cli_verbs[c->cli->verb].name);
}
