// Clock: what a thread knows of the others' accesses.
//
// Accesses are numbered by events that only ever grow (sim_race.h); "known up to e" means that all
// events up to e of those lanes happened before.  The warps of the thread's own CTA have a place
// each; single lanes, other CTAs and single events are a sorted list.  Operations of the
// asynchronous proxy are known or not, each for itself: a set of bits in the order of their issue.
#ifndef PTXSMITH_SIM_CLOCK_H
#define PTXSMITH_SIM_CLOCK_H

#include "sim.h"

// Who did something: a warp of a CTA, or one of two places that no warp has.
enum { WHO_ASYNC = 62, WHO_ALL = 63 };
#define WHO_EXACT (UINT64_C(1) << 63) // only event `upto` itself, not those before it
static inline uint64_t who_of(uint64_t cta, int warp) { return cta << 6 | (uint64_t)warp; }

typedef struct Known {
  uint64_t who;
  uint32_t lanes;
  uint32_t upto;
} Known;

typedef struct Clock {
  bool used;                    // false: knows nothing
  uint64_t cta;
  int nwarps;
  uint32_t floor;               // the least of warp[]
  uint32_t warp[SIM_MAX_WARPS]; // all lanes
  Known *more; int n, cap;
  uint64_t *async; uint32_t first, words, room; // [0] has the operations 64 * first and up
} Clock;

// Knows everything up to `base` and nothing later.
void clock_reset(Clock *c, uint64_t cta, int nwarps, uint32_t base);
void clock_free(Clock *c);
void clock_add(Clock *c, uint64_t who, uint32_t lanes, uint32_t upto);
void clock_add_async(Clock *c, uint32_t number);
bool clock_async_within(const Clock *c, const Clock *of); // all that c knows of them, of knows
void clock_join(Clock *to, const Clock *from);
void clock_copy(Clock *to, const Clock *from);
// Of WHO_ASYNC `lanes` is the operation's number.
bool clock_knows(const Clock *c, uint64_t who, uint32_t lanes, uint32_t event);

#endif
