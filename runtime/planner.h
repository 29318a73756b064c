// Planner: what to run for a Problem, from a readable text table.
//
//   device | driver | hash | template | shape | params | measured
//   NVIDIA H200 | 580.95.05 | 7f3a... | decode_splitk | dtype=f32 d=128 group=1 causal=0 sq=1 sk=16384 work=8 |
//       vec=4 chunks=64 | 18.20 us, 3687.0 GB/s, 82.1 % of roof, 2026-11-29T20:00:00Z
//
// (one line each; # begins a comment.)  A row counts for the device and driver it was measured on
// and while the generator still makes the same PTX: `hash` is that of the first step's text.  The
// shape is a bucket: dtype, head size, queries per KV head, causal and whether there is one query
// are exact; lengths and batch * heads_kv are rounded down to powers of two.
#ifndef PTXSMITH_PLANNER_H
#define PTXSMITH_PLANNER_H

#include "script.h"

typedef struct PlannerRow {
  const char *device, *driver, *hash, *template_name, *shape, *params, *measured;
  const char *file; uint32_t line;
} PlannerRow;

typedef struct PlannerTable {
  PlannerRow *v; int n, cap;
} PlannerTable;

// Adds a text's rows.  A row that can't be read is an error with its line; the others are kept.
Status planner_parse(Arena *a, const Source *src, PlannerTable *out, Diag *d);
char *planner_shape(Arena *a, const Problem *p); // the bucket, canonical

typedef struct PlannerChoice {
  const char *template_name;
  Params params;          // of the template
  Problem *problem;       // with the row's values (chunks)
  const PlannerRow *row;  // NULL: no row holds, these are the template's defaults
  const char *why;        // one sentence
  const char **passed; int npassed, passed_cap; // rows of this shape that do not hold, and why
} PlannerChoice;
// What the asker has settled already.
typedef struct PlannerAsk {
  const char *template_name; // NULL: whichever the problem asks for
  const Params *given;       // a row holds only when it measured the text that these make; may be NULL
} PlannerAsk;
// Never fails for want of a row.
Status planner_choose(Session *s, Arena *a, const PlannerTable *t, const PlannerAsk *ask,
                      const Problem *p, const DeviceInfo *dev, PlannerChoice *out, Diag *d);
// "tuned" or "default": where a choice's parameters came from.
const char *planner_source(const PlannerChoice *c);

// The row that the best of a sweep's rows makes, NULL when none was measured (sim's are modelled).
const char *planner_row_of(Arena *a, const Run *r, const Params *rows, int nrows);

#endif
