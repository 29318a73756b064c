// Plan and Operator: Variant x Problem -> grids, workspace, packed arguments.
#ifndef PTXSMITH_PLAN_H
#define PTXSMITH_PLAN_H

#include "problem.h"

typedef struct Step {
  Variant *variant; // owned by the Operator
  Kernel *kernel;   // NULL until operator_load
  uint32_t grid[3];
  uint8_t *args;    // variant->arg_bytes, filled by operator_bind
} Step;

enum { OPERATOR_MAX_STEPS = 4 };

// The ordered launches that make one answer.
typedef struct Operator {
  Arena *arena;
  const Problem *problem; // as given, with plan values (chunks, scale) filled in
  Step step[OPERATOR_MAX_STEPS]; int nsteps;
  uint64_t workspace_bytes, workspace_zero_bytes; // the zero part comes first
} Operator;

typedef struct PlanOpts {
  uint32_t grid;   // 0: the launch rule's own; else exactly this many blocks in x, every step
  int64_t chunks;  // 0: the Problem's, else plan_chunks
  VariantOpts build;
} PlanOpts;

// Builds the template's variant and those of its `next` steps.  The default chunk count depends on
// the Problem alone, never on the device.  `chunks` is clamped to [1, max(1, seqlen_k)].
Status operator_make(Session *s, const char *template_name, const Params *given, const Problem *p,
                     const PlanOpts *opts, Operator **out, Diag *d);
void operator_free(Operator *op); // and its variants and kernels
Status operator_load(Operator *op, Device *dev, Diag *d);
// Decides grids (needs occupancy for persistent rules) and lays out the workspace.
Status operator_plan(Operator *op, const Device *dev, const PlanOpts *opts, Diag *d);

// Binds a tensor by Arg name in every step that declares it: checks dtype, rank, shape, contiguity
// of the last dimension, alignment of pointer and strides to the variant's vector width.
Status operator_bind(Operator *op, const char *name, const Tensor *t, Diag *d);
Status operator_bind_workspace(Operator *op, DevPtr p, uint64_t bytes, Diag *d);
// Every Arg bound?  Neither allocates nor synchronises.
Status operator_launch(const Operator *op, Device *dev, Diag *d);

int64_t plan_chunks(const Problem *p);
// Alignment in bytes that a variant's vector width asks of tensor `arg`.
uint32_t variant_alignment(const Variant *v, const ArgDecl *arg);

#endif
