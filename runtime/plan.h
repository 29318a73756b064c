// Plan and Operator: Variant x Problem -> grids, workspace, packed arguments.
#ifndef PTXSMITH_PLAN_H
#define PTXSMITH_PLAN_H

#include "problem.h"

typedef struct Step {
  Variant *variant; // owned by the Operator
  Kernel *kernel;   // NULL until operator_load
  uint32_t grid[3]; // 0 blocks: nothing to do, the launch is left out
  bool dependent; // waits for the step in front by itself (griddepcontrol.wait); operator_load says
  uint32_t left_out; // blocks that were asked for and are not launched (sim)
  uint8_t *args;    // variant->arg_bytes, filled by operator_bind
  uint64_t work;    // work items: the product of the launch rule
  uint64_t bound;   // bit i: Arg i has its value
} Step;

// What a ceiling's Args are where the Problem does not say.
enum { CEILING_WORDS = (1 << 17) + 77, CEILING_THREADS = 3000, CEILING_ROUNDS = 3 };
enum { OPERATOR_MAX_STEPS = 4, OPERATOR_MAX_ARGS = 64, WORKSPACE_ALIGN = 256 };

// A tensor of the workspace: written by one step, read by the next, known by its Arg name.
typedef struct WorkSlot {
  const ArgDecl *arg;
  uint64_t offset, bytes;
} WorkSlot;

// The ordered launches that make one answer.
typedef struct Operator {
  Arena *arena;
  Problem *problem; // a copy of the given one, with plan values (chunks, scale) filled in
  Step step[OPERATOR_MAX_STEPS]; int nsteps;
  WorkSlot *slot; int nslots, slot_cap;
  // The zero part comes first.  The caller zeroes it once, before the first launch; every launch
  // leaves it zero again.
  uint64_t workspace_bytes, workspace_zero_bytes;
} Operator;

// SMs that work is cut for, whatever the device has: an H200's.  A number of the device would make
// the same problem's chunks, and so its bits, depend on where it runs.
enum { PLAN_SMS = 132 };

// Idle blocks are part of a test; a million of them are only time on the interpreter.
enum { PLAN_IDLE_BLOCKS = 1024 };

typedef struct PlanOpts {
  // 0: the launch rule's own; else exactly this many blocks in x, every step; on sim at most
  // PLAN_IDLE_BLOCKS (and a cluster) more than have work
  uint32_t grid;
  int64_t chunks;  // 0: the Problem's, else plan_chunks
  VariantOpts build;
} PlanOpts;

// Builds the template's variant and those of its `next` steps.  The default chunk count depends on
// the Problem and the Params alone, never on the device.  `chunks` is clamped to [1, max(1,
// seqlen_k)].
Status operator_make(Session *s, const char *template_name, const Params *given, const Problem *p,
                     const PlanOpts *opts, Operator **out, Diag *d);
void operator_free(Operator *op); // and its variants and kernels
Status operator_load(Operator *op, Device *dev, Diag *d);
// Sets step->work, which is of the Problem alone.
Status operator_work(const Operator *op, Step *step, Diag *d);
// Decides grids (needs occupancy for persistent rules; dev may be NULL where there are none) and
// packs the values.
Status operator_plan(Operator *op, const Device *dev, const PlanOpts *opts, Diag *d);
// The same variants and kernels for another Problem of the same parameters: as after operator_make
// and operator_plan.  Everything must be bound again.
Status operator_replan(Operator *op, const Problem *p, const Device *dev, const PlanOpts *opts,
                       Diag *d);

// The first declaration of an Arg by name, NULL when no step has it.
const ArgDecl *operator_arg(const Operator *op, const char *name);
// Binds a tensor by Arg name in every step that declares it: checks dtype, rank, shape, contiguity
// of the last dimension, alignment of pointer and strides to the variant's vector width.  `t` NULL
// binds an optional Arg to nothing.
Status operator_bind(Operator *op, const char *name, const Tensor *t, Diag *d);
Status operator_bind_workspace(Operator *op, DevPtr p, uint64_t bytes, Diag *d);
// Every Arg bound?  Neither allocates nor synchronises.
Status operator_launch(const Operator *op, Device *dev, Diag *d);

int64_t plan_chunks(const Operator *op);
// Pieces of an item, rounded up, where the work is equal pieces of all items; else 0.  bytes: what
// they have of the output's rows in the workspace; may be NULL.
int64_t plan_pieces(const Operator *op, int64_t *bytes);
// Alignment in bytes that a variant's vector width asks of tensor `arg`.
uint32_t variant_alignment(const Variant *v, const ArgDecl *arg);

// plan_map.c: the 128 bytes of the Arg's tensor map over `t`.  The step's kernel must be loaded:
// its device makes them.
Status plan_tensor_map(const Step *step, const ArgDecl *arg, const Tensor *t, void *map, Diag *d);

// plan_pack.c, for plan.c: fill in the plan values, lay out the workspace, pack the value Args.
Status operator_complete(Operator *op, int64_t chunks, Diag *d);
Status operator_lay_out(Operator *op, Diag *d);
Status operator_pack_values(Operator *op, Diag *d);
Status operator_all_bound(const Operator *op, Diag *d);

#endif
