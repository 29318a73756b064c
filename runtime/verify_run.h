// One run of what is being verified: inputs in, outputs and damage out.
#ifndef PTXSMITH_VERIFY_RUN_H
#define PTXSMITH_VERIFY_RUN_H

#include "verify_data.h"

typedef struct Outputs {
  HostTensor o, lse;   // as read back; lse.host NULL when the template makes none
  bool damaged;        // something was written that should not be, or not written that should
  Mismatch where;      // of an element that was not written
  char note[200];      // "guard zone after k was overwritten at byte 12", "" when all is well
} Outputs;
// Poisoned, O in layout_o and LSE with gaps too; lse_shape NULL: no LSE.
Status outputs_make(const int64_t o_shape[], Dtype o, const int64_t lse_shape[], Dtype lse,
                    Outputs *out, Diag *d);
// Every element written, and nothing in the gaps between rows: else out->damaged, with a note.
Status outputs_check(Outputs *out, Diag *d);
void outputs_free(Outputs *o);

// Whoever makes answers: a device, or (in the verifier's own tests) something that makes wrong
// ones.
typedef struct Runner {
  Status (*run)(void *ctx, const Problem *p, const AttnInputs *in, uint32_t grid, Outputs *out,
                Diag *d);
  void *ctx;
  Dtype in_dtype, o_dtype, lse_dtype;
  int max_chunks;   // 0: the template has no chunks
  uint32_t cluster; // blocks, of which grids are multiples; 0: 1
} Runner;

// A device runs an Operator.  Every run writes its buffers anew, with guard zones around them, and
// poisons outputs and workspace; `op` is loaded and stays the caller's.
typedef struct DeviceRun {
  Device *dev;
  Operator *op;
  PlanOpts plan;
  uint64_t seed; // of the tensors that a hook brings
  bool exact;    // the device knows the bounds of a buffer: no guard zones
  Spent *spent;  // NULL: nobody asks
  DevPtr slab;   // on a GPU the buffers of a run lie in one, which stays for the next run
  uint64_t slab_bytes;
} DeviceRun;
uint32_t runner_blocks(const Runner *r, uint32_t clusters); // of so many clusters
Status runner_of_operator(DeviceRun *run, Runner *out, Diag *d);
void device_run_end(DeviceRun *run); // gives back what a run left on the device

// Bytes of device memory that a run of op's own problem takes.
uint64_t device_run_bytes(const Operator *op);
// ST_DEVICE with the figures when the device has less: said before anything is allocated.
Status check_memory(const Device *dev, uint64_t bytes, Diag *d);

// Poison of outputs, workspace and guard zones, by 16 bits: a NaN in every floating type, and not
// the NaN that arithmetic makes, so an element that was never written can be told apart.
enum { POISON = 0xfff1, GUARD_BYTES = 4096 };
bool is_poison(Dtype t, const void *element);
void poison_fill(void *p, uint64_t bytes);
// Notes the first damage of a run: "WHAT NAME at byte AT".
void outputs_damage(Outputs *out, const char *what, const char *name, uint64_t at);

#endif
