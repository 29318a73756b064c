// Hooks in verification: a user's score rule for the oracle, and data for the Args it brings.
#ifndef PTXSMITH_VERIFY_HOOK_H
#define PTXSMITH_VERIFY_HOOK_H

#include "reference.h"
#include "verify_run.h"

// The oracle makes all scores, the template hook_eval runs the user's own lines on them in the
// interpreter, and hook_rule_score gives the results back row by row.
typedef struct HookRule HookRule;
HookRule *hook_rule_new(Session *s, const char *path, uint64_t seed, uint64_t step_limit);
void hook_rule_free(HookRule *h);
// For one set of inputs and the rows that `opts` asks for; needs seqlen_k floats of host memory for
// each of them, twice and once more for every further draw.  Sets opts->draws.
Status hook_rule_prepare(HookRule *h, const Problem *p, const AttnInputs *in, ReferenceOpts *opts,
                         Diag *d);
Status hook_rule_score(void *ctx, const ScoreRow *at, double *s, float *s32);
// That it made NaN or +inf of a finite score, in what hook_rule_score was asked for.
bool hook_rule_no_number(const HookRule *h);

// Do its ranges say what its mask says?  Of the rows that were prepared, each in blocks of queries
// of every power of two, whatever the tiles of the template are.
bool hook_rule_has_ranges(const HookRule *h);
const char *hook_rule_wrong_range(const HookRule *h, const Problem *p, Arena *a); // NULL: they do

// Allocates, fills and binds every input tensor of `op` that is not attention's own (q, k, v,
// scores): what a hook declares.  The values follow from name and seed alone.
enum { EXTRA_MAX = 16 };
typedef struct Extra {
  const char *name; // the Arg's
  DevPtr at;
  char *host; // as it was made
  uint64_t bytes;
} Extra;
typedef struct Extras { Extra v[EXTRA_MAX]; int n; } Extras;
Status extras_bind(Operator *op, Device *dev, uint64_t seed, Extras *out, Diag *d);
// After a launch: notes those that changed.
Status extras_check(const Extras *x, Device *dev, Outputs *out, Diag *d);
void extras_free(Extras *x, Device *dev);

#endif
