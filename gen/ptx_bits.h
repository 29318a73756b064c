// Bit sets over registers, one per block: for the flow analyses.
#ifndef PTXSMITH_PTX_BITS_H
#define PTXSMITH_PTX_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline bool bit_get(const uint64_t *s, int i) { return s[i / 64] >> (i % 64) & 1; }
static inline void bit_set(uint64_t *s, int i) { s[i / 64] |= 1ull << (i % 64); }
static inline void bit_clear(uint64_t *s, int i) { s[i / 64] &= ~(1ull << (i % 64)); }

// dst |= src; did it change?
static inline bool bits_join(uint64_t *dst, const uint64_t *src, int words) {
  uint64_t news = 0;
  for (int i = 0; i < words; i++) {
    news |= src[i] & ~dst[i];
    dst[i] |= src[i];
  }
  return news != 0;
}

#endif
