// Worker: a program of its own that runs candidates, because a variant that faults, hangs or breaks
// the device's context must cost only itself.  Workers are spawned (`ptxsmith worker`), never
// forked: a driver that was initialised does not survive a fork.
//
// Both directions speak lines (wire.h):
//     parent   job    template= params= problem= seed= samples= hot= graph= grid=
//     worker   stage  name=              as it goes, so that a death can be placed
//              done   ...                what was verified and timed: fields of a Measurement
//              failed status= why=       alive and ready for the next job unless lost=1
#ifndef PTXSMITH_WORKER_H
#define PTXSMITH_WORKER_H

#include <sys/types.h>

#include "../gen/variant.h"

typedef struct WorkerOpts {
  const char *program;      // this program; argv[0] where /proc has nothing better
  const char *const *args;  // after "worker", NULL-terminated: --device, --threads ...
} WorkerOpts;

enum { WORKER_STDERR_KEPT = 2048 };
typedef struct Worker {
  pid_t pid;            // 0: not running
  int to, from, err;    // pipes
  char *line; size_t len, cap; // of `from`, not complete yet
  char last[WORKER_STDERR_KEPT]; size_t nlast; // the end of its standard error
} Worker;

typedef enum JobEnd {
  JOB_DONE,        // fields: the reply
  JOB_FAILED,      // fields: status, why
  JOB_DIED,        // the process ended; *why says how
  JOB_LATE,        // over its time limit, killed
  JOB_INTERRUPTED, // Ctrl-C, killed
} JobEnd;

Status worker_start(Worker *w, const WorkerOpts *o, Diag *d);
// `stage`: the last one the worker named.  After DIED, LATE, INTERRUPTED and a reply with lost=1
// the worker is gone and has to be started again.
JobEnd worker_run(Worker *w, Arena *a, const Params *job, double limit_s, Params *reply,
                  const char **stage, const char **why);
void worker_stop(Worker *w); // closes its input and waits a little; then kills

#endif
