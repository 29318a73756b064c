// Bench: what timing keeps on a Device: the flush and the ceilings already measured.
#ifndef PTXSMITH_BENCH_H
#define PTXSMITH_BENCH_H

#include "timer.h"

enum { BENCH_MAX_PIPES = 16 };

typedef struct Bench {
  Operator *flush; // reads flush_src; NULL until a cold timing asks for it
  DevPtr flush_src, flush_sums;
  Ceiling *ceiling; // one for each size asked for: measuring one takes seconds
  int nceilings, ceiling_cap;
  Pipe pipe[BENCH_MAX_PIPES];
  int npipes;
} Bench;

// The Device's Bench, made when first asked for; device_close frees it.
Bench *bench_of(Device *dev);
// Makes the flush ready.
Status bench_flush(Session *s, Device *dev, const Operator **out, Diag *d);

// ---- ceiling.c, for the flush -------------------------------------------------------------------
// A ceiling_read of `words` words at src on `grid` blocks: planned, loaded and bound.
Status ceiling_read_make(Session *s, Device *dev, const char *params, DevPtr src, int64_t words,
                         DevPtr sums, uint32_t grid, Operator **out, Diag *d);
// "name=value name=value" into Params.
Status ceiling_params(Arena *a, const char *text, Params *out, Diag *d);

// ---- ceiling_products.c -------------------------------------------------------------------------
// A ceiling that computes, the best of a few variants, each checked; `dtype` NULL: the template has
// none.
Status ceiling_products(Session *s, Device *dev, const char *name, const char *dtype, Pipe *best,
                        Diag *d);

// ---- time_model.c -------------------------------------------------------------------------------
// The modelled device's figures, and what one launch of `op` would take there.
extern const Ceiling model_ceiling;
Status model_operator(Device *dev, const Operator *op, Timing *out, Diag *d);

#endif
