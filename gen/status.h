// Status: what every fallible function returns.  The values are the program's exit codes.
#ifndef PTXSMITH_STATUS_H
#define PTXSMITH_STATUS_H

typedef enum Status {
  ST_OK = 0,
  ST_FAILED = 1,      // a check or a verification failed
  ST_INPUT = 2,       // bad usage or input: the Diag says what and where
  ST_DEVICE = 3,      // device or driver not available, or a device error
  ST_INTERRUPTED = 4, // Ctrl-C: what was finished is kept; the program exits 130
} Status;

#endif
