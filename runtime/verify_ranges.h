// A hook's ranges against its mask.
#ifndef PTXSMITH_VERIFY_RANGES_H
#define PTXSMITH_VERIFY_RANGES_H

#include "problem.h"

// What hook_eval made of sampled rows: (batch, head, query) numbered 0, every, 2 every ..
enum { RANGE_BLOCKS = 31, RANGE_ENDS = 4 };
typedef struct HookRanges {
  const char *any_at, *all_at; // "FILE:LINE" of keys_any() and keys_all(); NULL: there is none
  float *raw;                  // [samples, seqlen_k]: scores as the hook gets them
  float *unmasked;             // as its lines leave them
  int32_t *ends;               // [samples, RANGE_BLOCKS, RANGE_ENDS]
} HookRanges;

typedef struct RangeRows {
  int64_t heads, seqlen_q, seqlen_k, every, samples;
  const float *scores; // after lines and mask
} RangeRows;

// The first key that is outside of keys_any() and has weight, or inside of keys_all() and masked;
// NULL when there is none.
const char *ranges_wrong(Arena *a, const Problem *p, const HookRanges *r, const RangeRows *rows);
void ranges_free(HookRanges *r);

#endif
