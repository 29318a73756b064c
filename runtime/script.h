// Script: a sweep or a campaign in Lua, evaluated into runs (lua/ptxsmith/space.lua says what it
// may return).  Its environment is closed; beyond Lua's own it has
//     require("ptxsmith.attention")     a module of lua/
//     problem("b=1,..." or a name)      a problem's values as a table, with flops and kv_bytes
//     refuse("what is wrong")           ends it with a message about the script as a whole
//     given                             the name=value pairs of the command line, as text:
//                                       given.NAME, pairs(given)
#ifndef PTXSMITH_SCRIPT_H
#define PTXSMITH_SCRIPT_H

#include "timer.h"

typedef struct Script Script;

typedef struct Run {
  const char *name, *template_name, *spec; // spec: the problem as the script wrote it
  const Problem *problem;
  const char **points; int npoints;        // "chunks=8 vec=4"
  int pruned;                              // by the script's `where`
  double limit_s;                          // 0: the default
  int samples;                             // 0: the default
  bool predicts;
  int index;                               // in the script's list
} Run;

// `hook_path`: a hook whose values the problems may give; NULL: none.
// `path`: a file, or the name of a built-in script ("quickstart", "lua/sweeps/quickstart.lua").
Status script_open(Session *s, const char *path, const Params *given, const char *hook_path,
                   Script **out, Diag *d);
// ST_INPUT when one of `given` was never read.
Status script_check_given(const Script *s, Diag *d);
void script_close(Script *s);
const char *script_name(const Script *s); // the file's name without folder and ending
const Run *script_runs(const Script *s, int *n);

typedef struct Prediction {
  double us;
  const char *why; // "" when the script gave none
} Prediction;
// Calls the run's `predict` for one point with the problem, `work` (numbers about the variant; they
// become a table, next to `params`) and the ceilings.  ST_INPUT when it is no positive number.
Status script_predict(Script *s, const Run *r, int point, const Params *work, const Ceiling *c,
                      int sm_count, Prediction *out, Diag *d);

// A table of lua/ptxsmith/report.lua ("sweep", "rung") for one run; the text is the script's.
// Each row is a set of fields; those that read as numbers become numbers.
Status script_report(Script *s, const char *function, const Run *r, const Params *rows, int nrows,
                     const char **out, Diag *d);

#endif
