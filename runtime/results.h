// Results: the lines of a store (store.h) read back, for whoever goes on where a sweep ended.
#ifndef PTXSMITH_RESULTS_H
#define PTXSMITH_RESULTS_H

#include "../gen/variant.h"

// One flat JSON object as name=value: texts as they were, numbers as they are written, true as 1,
// false as 0, null as "".  False for anything else.
bool result_parse(Arena *a, const char *line, Params *out);

typedef struct Results {
  Params *v; int n, cap; // records of kind "result", in the order they were written
  int damaged;           // lines that are not whole: a writer was killed, or somebody else wrote
} Results;
// A file that is not there holds no results where `may_lack`.
Status results_read(Arena *a, const char *path, bool may_lack, Results *out, Diag *d);

const char *result_text(const Params *r, const char *name); // "" when absent
// Verified before and after, and timed.
bool result_passed(const Params *r);

#endif
