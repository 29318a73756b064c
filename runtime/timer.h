// Timing: device-event samples of an Operator on a Problem, with the state they were taken in.
#ifndef PTXSMITH_TIMER_H
#define PTXSMITH_TIMER_H

#include "plan.h"

typedef struct Timing {
  int samples;
  double median_us, low_us, high_us; // median with its 95 % interval
  double min_us, max_us;
  bool cold, graph;
  bool modelled;                     // sim: never a measurement
} Timing;

typedef struct TimeOpts {
  int warmup, samples;   // 0: 5 and as many as fit budget_ms, at least 20
  double budget_ms;      // 0: 200
  bool hot;              // default: cold L2, by reading a buffer larger than it between launches
  bool graph;            // time one graph replay instead of eager launches
} TimeOpts;

// `op` is planned, loaded and bound.
Status time_operator(Session *s, Device *dev, const Operator *op, const TimeOpts *o, Timing *out,
                     Diag *d);
// Median and a distribution-free 95 % interval (order statistics) of n samples; sorts them.
void timing_of_samples(double *us, int n, Timing *out);

// Ceilings: rooflines measured on this device by our own PTX, cached per process.
typedef struct Ceiling { double read_gbs, copy_gbs, fma_gflops; uint64_t bytes; bool modelled; } Ceiling;
// `bytes`: the size whose best read rate is wanted (the read ceiling is tuned per size).
Status ceiling_measure(Session *s, Device *dev, uint64_t bytes, Ceiling *out, Diag *d);

#endif
