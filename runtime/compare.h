// Compare: outputs against fp64 values, element by element, so written that NaN fails.
#ifndef PTXSMITH_COMPARE_H
#define PTXSMITH_COMPARE_H

#include "verify.h"

// An element x expected agrees with `got` when |got - x| <= abs + rel |x| + ulps ulp(x), ulp being
// that of the tensor's dtype.  `rounded` adds what one rounding to that dtype may: ulp(x)/2,
// nothing where x is 0, which is no rounding.  All zero: equality.
typedef struct Tolerance {
  double abs, rel, ulps;
  bool rounded;
} Tolerance;

// What is expected of one run; o and lse dense, as in Reference.
typedef struct Expected {
  const Problem *problem; // rows past a sequence's own queries are not there; NULL: all are
  const double *o, *lse; // NULL: that tensor is not compared
  Tolerance o_max, lse_max;
  double o_mean;         // allowed mean error; < 0: no limit
  int64_t every;         // compare only rows (batch, head, query) whose number is a multiple
  // Only O's columns with (col + head / group) % forms == form; forms 0: all of them.
  int64_t forms, form, group;
} Expected;

// NaN, +inf and -inf must stand exactly where they are expected: else *err is NaN, or infinite.
bool element_agrees(double expected, double got, Tolerance tol, Dtype t, double *err);

bool worse(double err, double than); // larger, or NaN where the other is not

// Adds the comparison of O [batch, seqlen_q, heads_q, head_dim] and LSE [batch, heads_q, seqlen_q]
// to *g; g->passed is false when anything disagrees.
void compare_outputs(const Expected *x, const HostTensor *o, const HostTensor *lse, GateResult *g);

#endif
