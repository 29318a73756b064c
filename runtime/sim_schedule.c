// sim_schedule.c: the one seeded scheduler.  A seed decides the order of blocks and of warps, the
// length of turns and when asynchronous work completes; each block has a sequence of its own, so
// that it runs alike whatever ran before it.
#include "sim_run.h"

static uint64_t mix(uint64_t x) { // splitmix64
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

uint64_t sim_random(Cta *c) {
  c->random += UINT64_C(0x9e3779b97f4a7c15);
  return mix(c->random);
}

void sim_schedule_block(Cta *c) { c->random = mix(c->grid->dev->opts.seed ^ mix(c->index)); }

void sim_schedule_turns(Cta *c, uint8_t *order, int n) {
  bool seeded = c->grid->dev->opts.seed != 0;
  for (int i = 0; i < n; i++) {
    int k = seeded ? (int)(sim_random(c) % (uint64_t)(i + 1)) : i;
    order[i] = order[k];
    order[k] = (uint8_t)i;
  }
}

int64_t sim_schedule_turn(Cta *c) {
  // Mostly short ones, now and then one that runs a warp far ahead of the others.
  uint64_t x = sim_random(c);
  return x % 8 ? (int64_t)(1 + (x >> 8) % 256) : (int64_t)(1 + (x >> 8) % 65536);
}

// A Feistel network over the next even number of bits, walked until it lands inside.
uint64_t sim_schedule_cluster(const Grid *g, uint64_t at) {
  uint64_t seed = g->dev->opts.seed, n = g->nclusters;
  if (!seed || n < 2)
    return at;
  int half = 1;
  while (UINT64_C(1) << 2 * half < n)
    half++;
  uint64_t mask = (UINT64_C(1) << half) - 1;
  do {
    uint64_t left = at >> half, right = at & mask;
    for (int round = 0; round < 4; round++) {
      uint64_t next = left ^ (mix(right ^ mix(seed + (uint64_t)round)) & mask);
      left = right;
      right = next;
    }
    at = left << half | right;
  } while (at >= n);
  return at;
}
