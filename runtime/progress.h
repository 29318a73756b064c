// Progress of long work: what, count, rate, time left; on a terminal one line that is redrawn, in a
// file or pipe a line a minute.
#ifndef PTXSMITH_PROGRESS_H
#define PTXSMITH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct Progress {
  FILE *to;
  const char *what;
  bool live;
  int64_t total;
  int64_t found; // units done that took no time: there is no rate in them
  double began, drawn; // seconds of a monotonic clock
} Progress;

// total 0: not known, no time left is shown.
void progress_begin(Progress *p, FILE *to, const char *what, int64_t total);
void progress_at(Progress *p, int64_t done); // cheap: draws ten times a second at most
// Is it time to draw, `t` seconds by that clock?
bool progress_due(const Progress *p, double t);
void progress_clear(Progress *p);            // wipes the line, before other output and at the end

// The line for `done` units after `seconds`, as drawn; for tests.
void progress_line(const Progress *p, int64_t done, double seconds, char *out, size_t size);

#endif
