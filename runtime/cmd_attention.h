// What verify and bench share: the variant and the problem of the command line, the user's tensors.
#ifndef PTXSMITH_CMD_ATTENTION_H
#define PTXSMITH_CMD_ATTENTION_H

#include "cmd.h"
#include "verify.h"

typedef struct Subject {
  const char *template_name;
  const Params *params; // those given, and the rest of the planner's row where one holds
  PlannerChoice choice;
  Session *session;
  Device *device;
  Problem *problem;
  bool has_real;
  AttnInputs real; // --q --k --v
  VerifyOpts opts; // points at `real` when there is one
} Subject;

// Everything from the command line, checked; the device is opened last.
Status subject_open(Cmd *c, Subject *out);
void subject_close(Subject *s);
// One line: where the parameters that were not given came from.
void subject_source(const Subject *s);
// Adds "template", "params", "problem", "device" to an object.
void subject_json(const Subject *s, const Cmd *c, Json *j);
void verdict_json(const Verdict *v, Json *j);

#endif
