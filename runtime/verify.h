// Verification: the gates of docs/verification.md.  No timing is shown without them.
#ifndef PTXSMITH_VERIFY_H
#define PTXSMITH_VERIFY_H

#include "plan.h"
#include "spent.h"

// Host tensors: dense or strided memory of the tensor's dtype; data may be NULL when empty.
typedef struct HostTensor { Tensor t; void *host; uint64_t bytes; } HostTensor;

// What every element of the span holds before values are set; afterwards only gaps still do.
typedef enum Fill { FILL_NAN, FILL_INF, FILL_ZERO } Fill;

typedef struct AttnInputs { // [batch, seqlen, heads, head_dim] each, rounded to the dtype
  HostTensor q, k, v;
  // Natural units, f32: slopes [batch, heads_q] and sinks [heads_q]; host NULL where the Problem
  // has none.
  HostTensor slopes, sinks;
  Fill fill; // of gaps, of rows past a sequence's end and of pages that no sequence needs
  // f32 factors of q [batch, heads_q], k and v [batch, heads_kv]; host NULL likewise
  HostTensor descale[3];
} AttnInputs;

// fp64 oracle: o and lse as doubles, dense [batch, seqlen_q, heads_q, head_dim] and
// [batch, heads_q, seqlen_q].  Threaded and vectorised.  plain_error: the error of the plain
// formula in the kernel's dtypes against the oracle (S in fp32, P rounded to the dtype, PV summed
// in fp32, O rounded once), for gate 2: the largest of all draws, of means that of the worst draw.
typedef struct Reference {
  double *o, *lse;
  double plain_max, plain_mean, plain_lse_max;
  int draws;
  double score_max;         // largest |score| that a row sees, or scaled q_e k_e that one may have
  double v_max;             // largest |v| that a row sees
} Reference;
Status reference_attention(const Problem *p, const AttnInputs *in, int threads, Reference *out,
                           Diag *d);
void reference_free(Reference *r);

typedef struct Mismatch { // first bad element
  bool found;
  const char *tensor;       // "o", "lse", or what was damaged
  int64_t batch, head, row, col;
  double expected, got;
} Mismatch;

typedef struct GateResult {
  const char *name;     // "closed-form", "integer", "constant-v", "cancelling", "one-hot",
                        // "one-hot-exact", "expect", "one-key", "reference", "hook-ranges",
                        // "unseen", "grid"
  bool run, passed;
  const char *why_not;  // when not run
  double max_error, max_allowed, mean_error, mean_allowed; // of O
  double lse_error, lse_allowed;
  int64_t compared;     // elements of O and LSE
  Mismatch bad;
  const char *note;     // what else went wrong ("guard zone after k was written"), NULL for nothing
} GateResult;

// The gates and what they allow, as text: a result is held to these and no others
// (verify_settings.c).
char *verify_settings(Arena *a);

enum { VERIFY_MAX_GATES = 16 };
typedef struct Verdict {
  bool passed;
  GateResult gate[VERIFY_MAX_GATES]; int ngates;
  const char *sanitizer; // what it found nothing of; NULL: it was not asked for
  const char *note;      // what was done otherwise than asked, NULL for nothing
  const char *reproduce; // the one command that repeats a failure
} Verdict;

typedef struct VerifyOpts {
  uint64_t seed;
  uint32_t grid;          // 0: the plan's
  int threads;            // host threads for the oracle, 0 = all
  const AttnInputs *real; // the user's tensors, NULL for generated ones
  const char *real_args;  // how they were given ("--q q.npy ..."), for the command that repeats it
  const char *save_dir;   // o.npy, lse.npy; NULL for none
  uint64_t step_limit;    // of sim: also for what runs there whatever the device
  bool sanitize; uint64_t schedule; // how sim was told to run: for the command that repeats it
  const char *program;              // how that is called; NULL: ptxsmith
  bool quick;             // closed form + expect only (after the timed loop)
  VariantOpts build;
  PlanOpts plan;
  Spent *spent;           // where its time goes; NULL: nobody asks
  struct Kept *kept;      // what earlier runs on this device left (verify_kept.h); NULL: nothing
  double host_flops;      // of a problem that the host's oracle answers whole; 0: 2^34
} VerifyOpts;

// Runs every gate that applies.  ST_FAILED when one fails (the Verdict says which), other statuses
// when it could not be run at all.
Status verify(Session *s, Device *dev, const char *template_name, const Params *given,
              const Problem *p, const VerifyOpts *opts, Verdict *out, Arena *a, Diag *d);

// Its two parts, for whoever runs and times the same kernels besides (but no ceiling): an Operator
// of p's parameters, loaded once; its gates, as often as wanted.  They leave it planned and bound
// for a problem of their own.
Status verify_load(Session *s, Device *dev, const char *template_name, const Params *given,
                   const Problem *p, const VerifyOpts *opts, Operator **out, Diag *d);
Status verify_loaded(Session *s, Device *dev, const char *template_name, Operator *op,
                     const Problem *p, const VerifyOpts *opts, Verdict *out, Arena *a, Diag *d);

// "PROGRAM verify TEMPLATE PARAMS", the beginning of the command that repeats a failure, and its
// end: how sim ran, and the folder of templates.
char *reproduce_begin(Arena *a, const VerifyOpts *opts, const char *what);
char *reproduce_end(Arena *a, const Session *s, const VerifyOpts *opts, char *text);

int verdict_ran(const Verdict *v);                 // gates that ran
char *verdict_passed(Arena *a, const Verdict *v);  // "11 gates passed, and the sanitizer"
char *verdict_not_run(Arena *a, const Verdict *v); // "integer, one-hot (why), ..": the others; ""
char *verdict_text(Arena *a, const Verdict *v);    // a line for each gate, what is wrong below it

#endif
