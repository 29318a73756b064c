// Driver results as messages.
#ifndef PTXSMITH_CU_ERROR_H
#define PTXSMITH_CU_ERROR_H

#include "cu_api.h"

// Adds "WHAT: NAME (number): the driver's text; what to do" and returns the Status that fits:
// ST_INPUT where the PTX is to blame, ST_DEVICE otherwise.
Status cu_result(const CuApi *api, CuResult r, Diag *d, const char *what, ...)
    __attribute__((format(printf, 4, 5)));
// The context is lost: every later call fails with the same result.
bool cu_sticky(CuResult r);
// "CUDA_ERROR_ILLEGAL_ADDRESS (700)", in `a`.
const char *cu_result_name(const CuApi *api, Arena *a, CuResult r);

#endif
