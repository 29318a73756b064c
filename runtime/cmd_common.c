// What several verbs ask for: the session, the device, the problem, options of the build.
#include "cmd.h"
#include "parse.h"
#include "sim_lanes.h"

Status cmd_session(Cmd *c, Session **out) {
  if (!c->session) c->session = session_open(c->cli->text[OPT_TEMPLATES], c->diag);
  *out = c->session;
  return c->session ? ST_OK : ST_INPUT;
}

Status cmd_device(Cmd *c, Device **out) {
  const Cli *cli = c->cli;
  if (!c->device) {
    const char *isa = cli->text[OPT_ISA];
    if (isa && !lane_isa(isa))
      return diag_error(c->diag, NOWHERE,
                        "--isa: this host has no %s; it is baseline, avx2 or avx512", isa);
    const char *spec = cli_has(cli, OPT_DEVICE) ? cli->text[OPT_DEVICE] : "auto";
    Status st = device_open(spec, &c->device, c->diag);
    if (st) return st;
    SimOpts opts = {.threads = (int)cli->number[OPT_THREADS],
                    .isa = isa,
                    .seed = cli->number[OPT_SEED],
                    .counters = true};
    device_sim_opts(c->device, &opts);
  }
  *out = c->device;
  return ST_OK;
}

Status cmd_build_opts(Cmd *c, VariantOpts *out) {
  *out = (VariantOpts){.loc = cli_has(c->cli, OPT_LOC), .hook_path = c->cli->text[OPT_HOOK]};
  const char *target = c->cli->text[OPT_TARGET];
  return target ? parse_target(target, &out->sm, &out->sm_suffix, c->diag) : ST_OK;
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
