// The gates of docs/verification.md, over any Runner.
#ifndef PTXSMITH_VERIFY_GATES_H
#define PTXSMITH_VERIFY_GATES_H

#include "compare.h"
#include "verify_hook.h"
#include "verify_kept.h"
#include "verify_run.h"

typedef struct GateRun {
  const Runner *runner;
  const Problem *problem;   // complete: head_dim, dtype, causal, scale are there
  const VerifyOpts *opts;
  HookRule *rule;           // a hook's, NULL for none
  // Fills in what every row should be where the host would take too long; NULL: there is no such
  // help, and a sample of rows is compared.
  Status (*all_rows)(void *ctx, const Problem *p, const AttnInputs *in, Reference *sample,
                     int64_t every, Reference *out, Diag *d);
  void *all_rows_ctx;
  bool split;               // fp32 products of split tf32: 22 digits of each factor count
  Arena *arena;             // of the Verdict
  Verdict *verdict;
} GateRun;

// Each adds its GateResults to the verdict.  Another status than ST_OK: it could not be run.
// closed-form, integer, constant-v, cancelling, one-hot, one-hot-exact
Status gate_equal_weights(GateRun *g, Diag *d);
Status gate_one_key(GateRun *g, Diag *d);
Status gate_reference(GateRun *g, Diag *d); // reference, unseen, grid
Status gate_expect(GateRun *g, const Source *rows, Diag *d);

// The gates that every variant of attention is held to (a hook has one of its own besides).
extern const char *const gate_names[];
extern const int gate_nnames;
// What equal weights are held to, for verify_settings.
char *exact_settings(Arena *a);

// For gates: a new result; damage of a run as a failure of the gate it happened in.
GateResult *gate_new(GateRun *g, const char *name);
void gate_skip(GateRun *g, const char *name, const char *why);
void gate_note_damage(GateRun *g, GateResult *r, const Outputs *out);
// The case `what` of problem p, kept where the run keeps any; until kept_release().  `make` gets a
// CaseMaker with ctx.  what NULL: it does not follow from p, types and seed, and is not kept.
typedef struct CaseMaker {
  GateRun *g;
  const Problem *p;
  const void *ctx;
} CaseMaker;
Status gate_case(GateRun *g, const char *what, const Problem *p, CaseFn make, const void *ctx,
                 const KeptCase **out, Diag *d);
// Runs the case's inputs on `grid` blocks, 0: the plan's.
Status gate_run(const GateRun *g, const Problem *p, const KeptCase *c, uint32_t grid, Outputs *out,
                Diag *d);
// The oracle's answer to out->in, for tolerances or more.
Status gate_reference_of(const GateRun *g, const Problem *p, KeptCase *out, Diag *d);
// How the oracle is asked: the plain formula in the runner's types.
ReferenceOpts reference_opts(const GateRun *g);
// What a value may lose when it is split into two tf32 numbers, as a part of it: 2^-23, twice where
// the tensor core cuts the sum of the two off.
#define SPLIT_LOSS 0x1p-22
// Gate 2's tolerances from the plain formula's error and the sizes of the outputs, and what
// products of e4m3 and of split tf32 may err by besides.
Expected expect_of_run(const GateRun *g, const Problem *p, const Reference *ref, const Outputs *out,
                       int64_t every);
// A problem with one value changed, and the lengths of its sequences to fit.
Problem *problem_with(Arena *a, const Problem *p, const char *name, int64_t value);

// Gate 3's problem, input and committed row (false: there is none), for tests too.
Problem *expect_problem(Arena *a, const Problem *like);
void expect_inputs(AttnInputs *in);
bool expect_row(const Source *rows, const Problem *p, Reference *out);

// o.npy and lse.npy in `dir`, which is made.
Status save_outputs(Arena *a, const char *dir, const Outputs *out, Diag *d);

#endif
