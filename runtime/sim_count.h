// Counting what instructions do, for the files that execute them.  docs/counters.md defines each
// counter.  Nothing here is reached unless the launch counts (sim_counts).
#ifndef PTXSMITH_SIM_COUNT_H
#define PTXSMITH_SIM_COUNT_H

#include "sim_mem.h"

static inline bool sim_counts(const Warp *w) { return w->cta->counts != NULL; }

// An access of `size` bytes at a[lane] for every lane of `lanes`, all inside their memory.  `space`
// may be PTX_S_GENERIC; each window's lanes are then a request of their own.
void sim_count_access(Warp *w, const Op *op, uint8_t space, const uint64_t a[32], uint32_t lanes,
                      uint32_t size, AccessKind kind);

// Copies that no lane's address describes (bulk and tensor copies, wgmma's operands): `bytes` side
// by side at `address`.  They go to the instruction `op` of the CTA that issued it.
void sim_count_global_span(Cta *c, const Op *op, uint64_t address, uint64_t bytes, CountWay way);
void sim_count_shared_span(Cta *c, const Op *op, uint64_t bytes, CountWay way);

// Which lanes of a request to shared memory share a pass.
typedef enum BankRule {
  BANK_EACH,   // stores, matrices: lanes of the same 128 bytes; a word once for all that want it
  BANK_LOAD,   // the same, and lanes that want the same in pairs count as one
  BANK_ATOMIC, // lanes take turns at a word
} BankRule;
// Wavefronts that shared memory takes for one request; *ideal: those it takes without conflicts.
uint32_t sim_wavefronts(const uint64_t a[32], uint32_t lanes, uint32_t size, BankRule rule,
                        uint32_t *ideal);

// cp.async of op->bytes from global to shared memory; size: what each lane reads, the rest is zero.
void sim_count_copy(Warp *w, const Op *op, const uint64_t from[32], const uint64_t to[32],
                    const uint8_t size[32]);
// Marks the sectors of `bytes` at `address` as touched.
void sim_count_touch(const SimDevice *dev, uint64_t address, uint64_t bytes, CountWay way);

// ---- for the launch -----------------------------------------------------------------------------
bool sim_count_begin(SimDevice *dev);         // bitmaps of all buffers; false: out of memory
void sim_count_cta(const Cta *c, InstCount *sum); // a worker's counts added to the launch's
// The launch's counts become the kernel's and the device's.
void sim_count_end(SimDevice *dev, SimKernel *k, const InstCount *sum, uint64_t barriers);
bool sim_kernel_counts(Kernel *k, KernelCounts *out);
void sim_count_reset(SimDevice *dev);

#endif
