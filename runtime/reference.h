// Reference: attention on the host in fp64, and the error of the plain formula in its dtypes.
#ifndef PTXSMITH_REFERENCE_H
#define PTXSMITH_REFERENCE_H

#include "verify.h"

// Draws of the plain formula at most.
enum { REF_DRAWS = 64 };

// A user's score rule, for the oracle: changes the scaled scores of query `row` against keys
// 0..n-1, those of fp64 (NULL after the first draw) and those of a draw of the plain formula in
// fp32.  -inf masks a key.  Called from several threads.
typedef struct ScoreRow {
  int64_t batch, head, row;
  int draw;
  int64_t n;
} ScoreRow;
typedef Status (*ScoreFn)(void *ctx, const ScoreRow *at, double *s, float *s32);

typedef struct ReferenceOpts {
  int threads;   // 0: all cores
  int64_t every; // only rows (batch, head, query) whose number is a multiple; 0 or 1: all
  int draws;     // of the plain formula; 0: as many as the problem needs
  ScoreFn score; // NULL: none
  void *ctx;
  // The plain formula's O is rounded to dtype_o; else to Q's type, of 8 bits not at all.
  bool has_dtype_o;
  Dtype dtype_o;
} ReferenceOpts;

// Rows that are left out hold NaN in o and lse.
Status reference_rows(const Problem *p, const AttnInputs *in, const ReferenceOpts *opts,
                      Reference *out, Diag *d);
int reference_draws(const Problem *p, const ReferenceOpts *opts); // how often the formula is drawn

// ---- the arithmetic, once per host instruction set, always the same bits -----------------------
// Keys go in blocks of REF_KEYS, transposed: kt[e * REF_KEYS + j].  Rows of V and O are padded with
// zeros to a multiple of REF_KEYS elements.
enum { REF_KEYS = 16 };
typedef struct ReferenceMath {
  // s[0..REF_KEYS) = sum over e < dim of q[e] kt[e][j], added in order of e
  void (*dot_f64)(const double *q, const double *kt, int64_t dim, double *s);
  void (*dot_f32)(const float *q, const float *kt, int64_t dim, float *s);
  // o[0..padded) += p v[0..padded)
  void (*add_f64)(double *o, double p, const double *v, int64_t padded);
  void (*add_f32)(float *o, float p, const float *v, int64_t padded);
} ReferenceMath;
const ReferenceMath *reference_math(void);

#endif
