// The oracle on a device: the template oracle_f64, for problems that take the host too long.
#ifndef PTXSMITH_VERIFY_ORACLE_H
#define PTXSMITH_VERIFY_ORACLE_H

#include "verify_run.h"

typedef struct DeviceOracle {
  Session *session;
  Device *dev;
  const char *hook_path; // NULL: none
  uint64_t seed;         // of the tensors that a hook brings
  struct Kept *kept;     // keeps the kernel loaded; NULL: nobody does
} DeviceOracle;

// A GateRun's all_rows, ctx a DeviceOracle: O and LSE of every row in *out.  ST_FAILED when they
// differ from the host's, `sample`, in a row that both have: those whose number is a multiple of
// `every`.
Status device_oracle(void *ctx, const Problem *p, const AttnInputs *in, Reference *sample,
                     int64_t every, Reference *out, Diag *d);

#endif
