// Small texts that the command line and the C API read alike.
#ifndef PTXSMITH_PARSE_H
#define PTXSMITH_PARSE_H

#include "../gen/variant.h"

// "sm_90a" -> 90, 'a'; suffix 0 when there is none.
Status parse_target(const char *text, int *sm, char *suffix, Diag *d);
// "name=value name=value ...", blanks between; a name given twice is an error.
Status parse_params(Arena *a, const char *text, Params *out, Diag *d);

#endif
