// The verifier's tensors as a kernel takes them.  The verifier thinks of [batch, longest, heads,
// dim]; a kernel may want sequences one after the other or K and V in pages.
#ifndef PTXSMITH_VERIFY_LAYOUT_H
#define PTXSMITH_VERIFY_LAYOUT_H

#include "verify_run.h"

// In the order in which they are bound.
enum {
  IN_Q,
  IN_K,
  IN_V,
  IN_SLOPES,
  IN_SINKS,
  IN_DESCALE_Q,
  IN_DESCALE_K,
  IN_DESCALE_V,
  IN_OFFSETS_Q,
  IN_OFFSETS_K,
  IN_LENGTHS,
  IN_TABLE,
  NINPUTS
};
extern const char *const input_names[NINPUTS];

// One after the other: [1, rows of all sequences, heads, dim].  In pages: [pages, page, heads,
// dim].
typedef struct KernelInputs {
  HostTensor t[NINPUTS]; // host NULL: the operator takes none, or the problem has none
  bool own[NINPUTS];     // else AttnInputs has it
} KernelInputs;
// Pages are in an order drawn from `seed`; spare ones hold what `in`'s gaps hold.
Status kernel_inputs(const Operator *op, const AttnInputs *in, uint64_t seed, KernelInputs *out,
                     Diag *d);
void kernel_inputs_free(KernelInputs *x);

// Keys of a page of `size` that there is memory for: of one that is far longer than any sequence no
// more than a tile behind the longest.
int64_t rows_of_page(const Problem *p, int64_t size);

// O and LSE as the kernel writes them, poisoned.
Status kernel_outputs(const Operator *op, Outputs *out, Diag *d);
// Back to [batch, longest, ...], where rows that are not there are poison.
Status outputs_spread(const Operator *op, Outputs *o, Diag *d);

// `t` as the argument takes it: without dimensions of 1 in front.
Tensor layout_bound(const ArgDecl *arg, const HostTensor *t, DevPtr data);
#endif
