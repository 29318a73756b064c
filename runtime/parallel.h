// Host loops over all cores, for the large tensors of verification.
#ifndef PTXSMITH_PARALLEL_H
#define PTXSMITH_PARALLEL_H

#include <stdint.h>

// [0, n) is cut into PARALLEL_CHUNKS pieces, whatever machine this is, so that what is added up
// piece by piece is the same everywhere; f gets the number of its piece, 0 .. PARALLEL_CHUNKS - 1.
// Pieces run at the same time, each once; short loops (n below `least`) run here, in order.
enum { PARALLEL_CHUNKS = 64 };
typedef void (*RangeFn)(void *ctx, int chunk, int64_t from, int64_t to);
void parallel_ranges(int64_t n, int64_t least, RangeFn f, void *ctx);

#endif
