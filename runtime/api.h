// The handles of include/ptxsmith.h.  Each knows its session, which keeps the messages.
#ifndef PTXSMITH_API_H
#define PTXSMITH_API_H

#include "ptxsmith.h"

#include "plan.h"

struct psm_session {
  Session *session; // NULL when it could not be opened
  Diag *diag;
};

struct psm_variant {
  psm_session *owner;
  Variant *variant;
};

struct psm_device {
  psm_session *owner;
  Device *device;
  DevPtr *buffers; int nbuffers, cap; // of psm_alloc
};

struct psm_problem {
  psm_session *owner;
  Arena *arena;
  Problem *problem;
};

struct psm_operator {
  psm_device *device;
  Operator *op;
  int64_t chunks; // as the caller's problem gave it, 0: the planner's choice
  uint32_t grid;
  char *why;      // of the planner's choice, NULL where the caller named the template
  psm_variant step[OPERATOR_MAX_STEPS]; // views of op's variants
};

// Every call begins with this: the messages of the one before are forgotten.
Diag *api_begin(psm_session *s);
// A text that may not be NULL: false, and said.
bool api_needs(const void *text, const char *what, Diag *d);
// PTX of the caller's, copied; NULL after a message.
const Source *api_source(Arena *a, const char *name, const char *ptx, size_t bytes, Diag *d);
// The status of a call, from what the inside said.
static inline psm_status api_status(Status st) { return (psm_status)st; }
Status api_build_opts(const char *target, const char *hook, VariantOpts *out, Diag *d);

#endif
