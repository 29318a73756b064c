// sim_wgmma_desc.c: matrix descriptors of shared memory.  ISA 9.7.15.5.1.2.
#include "sim_wgmma.h"

// bits 13:0 start / 16, 29:16 leading byte offset / 16, 45:32 stride byte offset / 16, 51:49 base
// offset, 63:62 swizzle: 0 none, 1 128 bytes, 2 64, 3 32
MatrixDesc sim_desc(uint64_t bits) {
  uint32_t mode = (uint32_t)(bits >> 62);
  return (MatrixDesc){.start = (uint32_t)(bits & 0x3fff) << 4,
                      .leading = (uint32_t)(bits >> 16 & 0x3fff) << 4,
                      .stride = (uint32_t)(bits >> 32 & 0x3fff) << 4,
                      .swizzle = (uint8_t)(mode ? 4 - mode : 0),
                      .base = (uint8_t)(bits >> 49 & 7)};
}

// phys(a) = a ^ (((a >> 7) - base) & (2^B - 1)) << 4, of the absolute address: the base offset is
// the row at which the pattern starts.  As measured (docs/numerics.md), for every base, start and
// span.
static uint32_t swizzled(const MatrixDesc *d, uint32_t offset) {
  uint32_t a = d->start + offset;
  return a ^ (((a >> 7) - d->base) & ((1u << d->swizzle) - 1)) << 4;
}

static int k_major(const MatrixDesc *d, int rows, uint32_t *at) {
  uint32_t span = 16u << d->swizzle; // without a swizzle: rows of one chunk
  uint32_t next = d->swizzle ? 16 : d->leading;
  int n = 0;
  for (uint32_t mn = 0; mn < (uint32_t)rows; mn++) {
    uint32_t row = mn % 8 * span + mn / 8 * d->stride;
    at[n++] = swizzled(d, row);
    at[n++] = swizzled(d, row + next);
  }
  return n;
}

static int mn_major(const MatrixDesc *d, int rows, uint32_t *at) {
  uint32_t span = 16u << d->swizzle;
  uint32_t along = d->swizzle ? d->leading : d->stride;  // to the next span of rows
  uint32_t across = d->swizzle ? d->stride : d->leading; // to the next 8 of K
  int n = 0;
  for (uint32_t k = 0; k < 16; k++)
    for (uint32_t mb = 0; mb < 2 * (uint32_t)rows; mb += 16)
      at[n++] = swizzled(d, mb % span + mb / span * along + k % 8 * span + k / 8 * across);
  return n;
}

int sim_desc_chunks(const MatrixDesc *d, bool mn, int rows, uint32_t *at) {
  return mn ? mn_major(d, rows, at) : k_major(d, rows, at);
}

const DescChunks *sim_desc_list(Wgmma *g, int operand, uint64_t bits, bool mn, int rows) {
  uint64_t start = bits & 0x3fff;
  DescChunks *l = &g->lists[operand][(start >> 1 ^ start >> 5 ^ start >> 9) % WGMMA_LISTS];
  if (l->n && l->bits == bits && l->rows == rows && l->mn == mn)
    return l;
  MatrixDesc d = sim_desc(bits);
  *l = (DescChunks){.bits = bits, .rows = rows, .mn = mn};
  l->n = sim_desc_chunks(&d, mn, rows, l->at);
  return l;
}
