// sim_count_copy.c: what cp.async costs, which depends on both of its sides.  docs/counters.md,
// "Copies", has the measurements that these rules come from.
#include "sim_count.h"

enum { LINE_SHIFT = 7, SECTOR_SHIFT = 5, SLOT_SHIFT = 4, PHASE_BYTES = 128 };

// Different values of v[lane] >> shift.
static uint32_t different(const uint64_t v[32], uint32_t lanes, uint32_t shift) {
  uint32_t n = 0;
  SIM_LANES(i, lanes) {
    bool seen = false;
    SIM_LANES(k, lanes & ((1u << i) - 1)) seen |= v[k] >> shift == v[i] >> shift;
    n += !seen;
  }
  return n;
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

// Past the L1 cache, 16 bytes a lane: what arrives for a phase goes to one line of shared memory,
// with each slot of 16 bytes moved by the same exclusive or.
static uint32_t bypass_wavefronts(const uint64_t from[32], const uint64_t to[32], uint32_t reads,
                                  uint32_t lanes) {
  uint64_t moved[32] = {0};
  SIM_LANES(i, reads) moved[i] = (from[i] ^ to[i]) >> SLOT_SHIFT & 7;
  uint32_t lines = larger(different(to, lanes, LINE_SHIFT), different(from, reads, LINE_SHIFT));
  return larger(lines, different(moved, reads, 0));
}

// Sectors that come from L2 for a phase: a sector of the source once for each sector of the
// destination that it goes to, and once more if its halves go there swapped and not.
static uint32_t bypass_sectors(const uint64_t from[32], const uint64_t to[32], uint32_t reads) {
  uint32_t n = 0;
  SIM_LANES(i, reads) {
    bool seen = false;
    SIM_LANES(k, reads & ((1u << i) - 1))
      seen |= from[k] >> SECTOR_SHIFT == from[i] >> SECTOR_SHIFT &&
              to[k] >> SECTOR_SHIFT == to[i] >> SECTOR_SHIFT &&
              !((from[k] ^ to[k] ^ from[i] ^ to[i]) >> SLOT_SHIFT & 1);
    n += !seen;
  }
  return n;
}

// Lanes of `lanes` whose source has the most sharers of a bank: none of them is served with
// another.
static uint32_t source_turns(const uint64_t from[32], uint32_t lanes, uint32_t size) {
  uint32_t in_bank[32] = {0}, most = 0;
  SIM_LANES(i, lanes)
    for (uint32_t b = 0; b < size; b += 4)
      most = larger(most, ++in_bank[(from[i] + b) / 4 % 32]);
  return most;
}

// Through the L1 cache: line by line of the source.
static uint32_t cached_wavefronts(const uint64_t from[32], const uint64_t to[32], uint32_t reads,
                                  uint32_t lanes, uint32_t size) {
  uint32_t total = 0, unused;
  for (uint32_t left = reads; left;) {
    uint32_t line = 0;
    SIM_LANES(i, left)
      line |= (uint32_t)(from[i] >> LINE_SHIFT == from[sim_first(left)] >> LINE_SHIFT) << i;
    total += larger(sim_wavefronts(to, line, size, BANK_EACH, &unused),
                    source_turns(from, line, size));
    left &= ~line;
  }
  uint32_t zeros = lanes & ~reads;
  return total + (zeros ? sim_wavefronts(to, zeros, size, BANK_EACH, &unused) : 0);
}

typedef struct CopyCost { uint32_t sectors, wavefronts, ideal; } CopyCost; // ideal: wavefronts
// reads: lanes that read; bypass: past the L1 cache (.cg).
static CopyCost sim_copy_cost(const uint64_t from[32], const uint64_t to[32], uint32_t reads,
                       uint32_t lanes, uint32_t size, bool bypass) {
  CopyCost c = {.sectors = bypass ? 0 : different(from, reads, SECTOR_SHIFT)};
  uint32_t step = PHASE_BYTES / size < 32 ? PHASE_BYTES / size : 32;
  for (uint32_t at = 0; at < 32; at += step) {
    uint32_t mask = step == 32 ? SIM_FULL : ((1u << step) - 1) << at;
    uint32_t some = lanes & mask, read = reads & mask;
    if (!some)
      continue;
    c.ideal++;
    c.wavefronts += bypass ? bypass_wavefronts(from, to, read, some)
                           : cached_wavefronts(from, to, read, some, size);
    if (bypass)
      c.sectors += bypass_sectors(from, to, read);
  }
  return c;
}

void sim_count_copy(Warp *w, const Op *op, const uint64_t from[32], const uint64_t to[32],
                    const uint8_t size[32]) {
  uint32_t reads = 0, bytes = 0;
  SIM_LANES(i, w->active) {
    reads |= (uint32_t)(size[i] > 0) << i;
    bytes += size[i];
    if (size[i])
      sim_count_touch(w->cta->grid->dev, from[i], size[i], COUNT_COPY);
  }
  bool bypass = ptx_inst_has(op->in, "cg");
  CopyCost c = sim_copy_cost(from, to, reads, w->active, op->bytes, bypass);
  InstCount *n = &w->cta->counts[op->site];
  SpaceCount *g = &n->global[COUNT_COPY], *s = &n->shared[COUNT_COPY];
  g->requests += reads != 0;
  g->units += c.sectors;
  g->ideal += (different(from, reads, 0) * (uint64_t)op->bytes + 31) / 32;
  g->bytes += bytes;
  s->requests++;
  s->units += c.wavefronts;
  s->ideal += c.ideal;
  s->bytes += (uint64_t)op->bytes * (uint32_t)__builtin_popcount(w->active);
}
