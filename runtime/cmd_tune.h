// What sweep and campaign share.
#ifndef PTXSMITH_CMD_TUNE_H
#define PTXSMITH_CMD_TUNE_H

#include "cmd.h"
#include "tune.h"

// From the command line: the worker's program and arguments, samples, folder ...  Mistakes in the
// script's points are told here, before anything is written.
Status cmd_tune_opts(Cmd *c, Session *s, const Script *script, TuneOpts *out);
// What the device is.  It is closed again: the workers have their own, and its memory is theirs.
Status cmd_device_info(Cmd *c, DeviceInfo *out);
// A row of --json: the outcome's fields as one object.
void cmd_outcome_json(Cmd *c, const Run *r, const Outcome *o);

// Rows of one run, for the report.
typedef struct Rows {
  Params *v; int n, cap;
  int ok, wrong; // timed; did not pass verification
  int stored;    // timed earlier: the store had them
  const char *broken; // the first that ended its worker, its device or is no good PTX; NULL: none
} Rows;
void rows_add(Arena *a, Rows *rows, const Outcome *o);
// spent_text of those that were measured now; NULL where there are none.
char *rows_spent(Arena *a, const Rows *rows);
// What is wrong with a run whose points were all tried, in the end.  ST_OK or ST_FAILED.
Status cmd_tune_verdict(bool wrong, const char *broken, Diag *d);

#endif
