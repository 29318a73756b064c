// Timing: device-event samples of an Operator on a Problem, with the state they were taken in.
//
// eager, cold   [flush] event launch event [flush] event launch event ...     one sample a pair
// graph, cold   graph A = N x (flush, launch), graph B = N x flush, replayed in turn; a sample is
//               (A - B) / N: the launch and its gap, the flush subtracted
// hot           the same without the flush: eager pairs, or graph A = N x launch and a sample A / N
//
// The flush reads a buffer larger than twice the L2 with our ceiling_read kernel.  It reads, and
// does not write, because dirty lines would be written back inside the timed span.
//
// On sim the time is modelled from counted work, is the same in every run, and says so.
#ifndef PTXSMITH_TIMER_H
#define PTXSMITH_TIMER_H

#include "verify.h"

typedef struct Timing {
  int samples;
  double median_us, low_us, high_us; // median with its 95 % interval
  double min_us, max_us;
  bool cold, graph;
  bool modelled;                     // sim: never a measurement
  FlopKind flop;                     // modelled: of the operations that take longest
} Timing;

typedef struct TimeOpts {
  int warmup, samples;   // 0: 5 and as many as fit budget_ms, at least 20
  double budget_ms;      // 0: 200
  bool hot;              // default: cold L2, by reading a buffer larger than it between launches
  bool graph;            // time graph replays instead of eager launches
} TimeOpts;

// `op` is planned, loaded and bound.
Status time_operator(Session *s, Device *dev, const Operator *op, const TimeOpts *o, Timing *out,
                     Diag *d);
// Median and a distribution-free 95 % interval (order statistics) of n samples; sorts them.  With
// fewer than 6 samples no such interval exists: it is then the whole range.
void timing_of_samples(double *us, int n, Timing *out);
char *timer_settings(Arena *a); // of every timing, as text, for the stamp of stored results
// How a Timing was taken, as one phrase for reports.
const char *timing_method(const Timing *t);

// Ceilings: rooflines measured on this device by our own PTX, kept with the Device.
typedef struct Ceiling {
  double read_gbs, copy_gbs, fma_gflops;
  double read_eager_us, read_graph_us; // the best of each kind; read_gbs is of the better one
  uint64_t bytes;        // read by the read ceiling, and by the copy ceiling (which writes as many)
  bool modelled;
  char read_variant[96]; // what was fastest: "unroll=4 block=512 hint=nc walk=stride grid=528"
} Ceiling;
// `bytes`: the size whose best read rate is wanted (the read ceiling is tuned per size); at least
// 1 MiB and at most a third of the free memory are taken.
Status ceiling_measure(Session *s, Device *dev, uint64_t bytes, Ceiling *out, Diag *d);

// Multiplications and additions of one thread of a ceiling that computes, as its template declares
// them (`op` is planned); 0 for the others.
double ceiling_thread_flops(const Operator *op);
double ceiling_thread_sum(const Operator *op); // what each element of its `out` must be
// The first of n elements that is not, n where all are.
int64_t ceiling_wrong(const Operator *op, const float *out, int64_t n);
// The tensor cores' pipe that a variant's text uses: "ceiling_wgmma" or "ceiling_mma" and the dtype
// that measures it (static); false where it uses none.
bool ceiling_pipe(const char *ptx, const char **template_name, const char **dtype);
typedef struct Pipe { // of the tensor cores, by the instruction and the type
  const char *template_name, *dtype, *params; // static; params: of the variant that was the fastest
  double gflops;
} Pipe;
// That pipe, measured once and kept with the Device; names as ceiling_pipe has them.
Status ceiling_tensor(Session *s, Device *dev, const char *template_name, const char *dtype,
                      Pipe *out, Diag *d);

// The problem with what a ceiling's Args need on this device where it does not say: a GPU takes
// sizes that keep it busy for about a millisecond, sim the small ones of operator_make.
Problem *ceiling_problem(Arena *a, const Problem *p, const Device *dev);
// A ceiling's own verification: what it read, copied or computed is right, with 1 block, 2 and the
// plan's.  The Problem may give words; the rest is chosen.
Status ceiling_verify(Session *s, Device *dev, const char *template_name, const Params *given,
                      const Problem *p, const VerifyOpts *opts, Verdict *out, Arena *a,
                      Diag *d);

#endif
