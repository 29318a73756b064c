// Measure: one variant on one problem: verified, timed, verified again, held against its roofline.
// No time leaves here for a kernel that did not pass.
#ifndef PTXSMITH_MEASURE_H
#define PTXSMITH_MEASURE_H

#include "timer.h"
#include "verify.h"

typedef struct MeasureOpts {
  VerifyOpts verify; // its plan and build options are those of the timed launches too
  TimeOpts time;
  // Told as each stage begins ("verify", "build", "time" ...), so that a death can be placed.  May
  // be NULL.
  void (*stage)(void *ctx, const char *name);
  void *ctx;
} MeasureOpts;

typedef struct Measurement {
  bool verified;         // before and after the timed loop
  Verdict before, after; // after: run only when `before` passed and the loop ran
  const char *id, *hash; // of the first step's variant
  int regs, chunks;      // registers a thread; 0 chunks: the kernel has no such value
  uint32_t grid;         // blocks of the first step
  Timing timing;
  Ceiling ceiling;
  // Decode is bound by memory and counted in GB/s of K and V, prefill in GFLOP/s.
  bool by_bytes, copies; // copies: every byte is read and written
  double flops, bytes;   // the problem's standard work figures
  double rate, roof;     // GB/s or GFLOP/s: found, and the ceiling's
  const char *roof_of;   // "read", "copy", "f32", "ceiling_mma dtype=bf16 ..."; sim: "tensor bf16"
  const char *pipe, *pipe_dtype; // ceiling_pipe() of the first step; NULL: none
  Spent spent;                   // where the time of the whole measurement went
} Measurement;

// ST_FAILED when verification fails (the Verdict says which gate), other statuses when it could not
// be run.  Texts live in `a`.
Status measure_variant(Session *s, Device *dev, const char *template_name, const Params *given,
                       const Problem *p, const MeasureOpts *opts, Measurement *out, Arena *a,
                       Diag *d);
// The problem that is verified for a timing of `p`: p, or a smaller one of its class.
Problem *measure_class(Arena *a, TemplateKind kind, const Problem *p);
// The first gate that failed and its worst error, as one phrase.
const char *measure_failure(const Measurement *m, Arena *a);

#endif
