// Cmd: what a verb of the program works with.  Verbs are the users of the library: they may print.
// Each returns a Status; main prints the Diag to standard error and turns the Status into the exit
// code.  What was asked for goes to standard output, all else to standard error.
#ifndef PTXSMITH_CMD_H
#define PTXSMITH_CMD_H

#include <stdio.h>

#include "cli.h"
#include "json.h"
#include "planner.h"

typedef struct Cmd {
  Arena *arena;
  Diag *diag;
  const Cli *cli;
  const char *program; // argv[0]: sweeps start workers with it
  Session *session;    // NULL until cmd_session; main closes it
  Device *device;      // NULL until cmd_device; main closes it
} Cmd;

#define X(id, name, ...) Status cmd_##name(Cmd *c);
CLI_VERBS(X)
#undef X

Status cmd_session(Cmd *c, Session **out); // with --templates
void cmd_schedule(Cmd *c, uint64_t seed); // of what runs on the open device from now on
Status cmd_device(Cmd *c, Device **out);   // --device, --threads, --isa, --seed
Status cmd_problem(Cmd *c, Problem **out); // --problem: a name or values
Status cmd_problem_of(Cmd *c, const char *spec, Problem **out);
// The planner's tables: out/planner.txt, if it is there, then the built-in one.
Status cmd_planner_tables(Cmd *c, PlannerTable *out);
// What the planner's tables say of it on the open device: the user's own rows of out/planner.txt
// first, so that they win.
Status cmd_choose(Cmd *c, const PlannerAsk *ask, const Problem *p, PlannerChoice *out);
// The rows that a store's results make: printed, or put into the table --into.
Status cmd_rows_from(Cmd *c, const char *store);
// An error when one of these options is given: they are `for_what`, and what is asked for is none.
Status cmd_refuse(Cmd *c, const CliOptId *opts, int n, const char *for_what);
Status cmd_build_opts(Cmd *c, VariantOpts *out); // --target, --hook, --loc

#endif
