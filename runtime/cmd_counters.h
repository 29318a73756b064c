// Counting for the verbs: a template's launches on sim, and their report.
#ifndef PTXSMITH_CMD_COUNTERS_H
#define PTXSMITH_CMD_COUNTERS_H

#include "cmd_attention.h"

// What verify and bench add with --counters: one launch of the subject, counted and shown.
Status cmd_count_subject(Cmd *c, const Subject *s);
// From here on the device counts, in the fixed order.
void cmd_count(Cmd *c);
// Is --roof good?  Asked before the work.
Status cmd_check_roof(Cmd *c);
// One kernel's counts, as text or as a JSON object with `name` in it.
Status cmd_show_counts(Cmd *c, const char *name, Kernel *k);

#endif
