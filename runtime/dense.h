// Dense: an Operator's tensors, made for timing: dense, inputs random, bound, on the device.
#ifndef PTXSMITH_DENSE_H
#define PTXSMITH_DENSE_H

#include "plan.h"

typedef struct Dense {
  DevPtr *buffer; int n, cap; // arena of the Operator
  uint64_t bytes;             // of all of them
} Dense;

// `op` is planned.  What all tensors and the workspace need is held against the free memory before
// the first is allocated.  Contents depend on `seed` alone.
Status dense_bind(Device *dev, Operator *op, uint64_t seed, Dense *out, Diag *d);
void dense_free(Device *dev, Dense *b);

#endif
