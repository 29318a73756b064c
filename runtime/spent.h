// Spent: where the time of a measurement goes.  Each second counts in one place, the innermost.
#ifndef PTXSMITH_SPENT_H
#define PTXSMITH_SPENT_H

#include "../gen/arena.h"

// id, its field in a result
#define SPENT_PLACES(X)                                                                            \
  X(OTHER, "other_s")                                                                              \
  X(LOAD, "load_s")           /* variants expanded and checked, modules loaded (the JIT) */        \
  X(INPUTS, "inputs_s")       /* tensors of the gates made on the host */                          \
  X(COPY, "copy_s")           /* buffers allocated, written, read back; guard zones and poison */  \
  X(RUN, "run_s")             /* launches of the gates, waited for */                              \
  X(REFERENCE, "reference_s") /* the host's oracle and expected means */                           \
  X(ORACLE, "oracle_s")       /* the device's oracle: its load, copies, launch and comparison */   \
  X(COMPARE, "compare_s")     /* answers against what is expected */                               \
  X(TIME, "time_s")           /* tensors for timing, warm-up, samples */                           \
  X(CEILING, "ceiling_s")     /* rooflines that were not measured before */
typedef enum SpentOn {
#define X(id, name) SPENT_##id,
  SPENT_PLACES(X)
#undef X
  SPENT_PLACES_N
} SpentOn;
extern const char *const spent_names[SPENT_PLACES_N];

typedef struct Spent {
  double s[SPENT_PLACES_N];
  SpentOn now;
  double since; // seconds of a monotonic clock; 0: it does not run
} Spent;

// From now on time counts there; returns where it counted before, to go back to.  The first call
// starts the clock.  NULL: nobody asks.
SpentOn spent_on(Spent *x, SpentOn place);
double spent_all(const Spent *x);
// "1.62 s a point: load 0.40, time 0.25 ...": the mean of n, without what is less than 5 ms.
char *spent_text(Arena *a, const Spent *sum, int n);

#endif
