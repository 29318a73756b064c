// Counters as a report: totals, buffers, lines of the template, and where the kernel stands under a
// roofline.  docs/counters.md defines every figure.
#ifndef PTXSMITH_COUNTERS_H
#define PTXSMITH_COUNTERS_H

#include <stdio.h>

#include "device.h"
#include "json.h"

// What a device can do at most: GB/s, and GFLOP/s of each kind.
typedef struct Roof {
  const char *name; // "H200, modelled", "given"
  double read_gbs;
  double gflops[FLOP_KIND_COUNT];
} Roof;
extern const Roof roof_h200;
// "dram=4491,f32=66909,tensor-f16=989400": changes what it names.
Status roof_parse(Arena *a, const char *text, Roof *roof, Diag *d);

// Where a launch stands: what each resource needs at least, from counted work.  Never a
// measurement.
typedef struct RoofPosition {
  double dram_us, flop_us[FLOP_KIND_COUNT];
  double floor_us;       // the longest of them
  const char *bound_by;  // "dram", "f32", "tensor f16" ...
  double intensity;      // floating-point operations for each distinct byte; 0: no bytes
  double ridge;          // intensity at which the dominant kind is no longer bound by memory
} RoofPosition;

// Counts of one line of a source: the innermost template line, or the PTX line where there is no
// map.
typedef struct LineCount {
  const Source *src;
  uint32_t line;
  InstCount n;   // warps and threads of all its instructions
  uint64_t flops;
  double heat;   // its largest share of issue slots, global sectors or shared wavefronts
} LineCount;

void counters_print(Arena *a, const KernelCounts *k, const Roof *roof, FILE *out);
// The lines of each source with their counts beside them, the hottest marked.
void counters_listing(Arena *a, const KernelCounts *k, FILE *out);
// Members of the object that is open.
void counters_json(Arena *a, const KernelCounts *k, const Roof *roof, Json *j);

#endif
