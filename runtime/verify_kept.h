// Kept: inputs of gates and the answers to them, for the next variant of the same problem.
//
// A sweep asks the same of many variants: tensors that follow from problem, types and seed, and
// what the oracle makes of them.  Neither depends on the variant, so both are made once.
// Everything that a case follows from is in its key; whatever does not follow from the key alone
// (tensors that a user gave, a hook's rule) is never kept.
#ifndef PTXSMITH_VERIFY_KEPT_H
#define PTXSMITH_VERIFY_KEPT_H

#include "plan.h"
#include "verify.h"

// One set of inputs and what is expected of it.  Whoever asked for it only reads it.
typedef struct KeptCase {
  AttnInputs in;
  Reference ref; // o NULL: nobody needs it
  int64_t every; // ref has the rows whose number is a multiple
} KeptCase;

typedef struct Kept Kept;
Kept *kept_new(uint64_t most); // bytes of host memory, at most
void kept_free(Kept *k);       // no case is held, and its operators' device is still open
uint64_t kept_room(void);      // for kept_new: an eighth of the memory, 16 GiB at most
uint64_t kept_bytes(const Kept *k);
int kept_cases(const Kept *k); // there now
int kept_found(const Kept *k); // cases found instead of made, until now

// The case of that key, made by `make` where it is not there, and held until kept_release: it stays
// where it is.  key NULL, or k NULL: made for this once.
typedef Status (*CaseFn)(void *ctx, KeptCase *out, Diag *d);
Status kept_case(Kept *k, const char *key, CaseFn make, void *ctx, const KeptCase **out, Diag *d);
void kept_release(const KeptCase *c); // c may be NULL

// Loaded operators, of the device's oracle: one of the same texts as `like` on `dev`, NULL where
// there is none.  Taking one over may forget the oldest; false: it stays the caller's.
Operator *kept_operator(const Kept *k, const Device *dev, const Operator *like);
bool kept_take_operator(Kept *k, Operator *op);

#endif
