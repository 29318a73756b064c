// Tune: the points of a run, one after the other: built, sent to a worker, written to the store.
#ifndef PTXSMITH_TUNE_H
#define PTXSMITH_TUNE_H

#include "json.h"
#include "results.h"
#include "script.h"
#include "store.h"
#include "worker.h"

typedef struct TuneOpts {
  WorkerOpts worker;
  const char *out_dir;  // of the store
  uint64_t seed;
  uint32_t grid;
  int samples, threads; // 0: the run's, else as many as fit; all cores
  bool hot, graph;
  VariantOpts build;    // hook and target; the worker's arguments say the same
  const char *checks;   // how sim checks (sanitize, schedule), "" for nothing besides
  uint64_t steps;       // sim's limit of warp instructions; 0: none given
  double limit_s;       // 0: the run's, else 120 s a variant
} TuneOpts;

typedef enum OutcomeKind {
  OUT_OK,      // verified and timed
  OUT_PRUNED,  // a constraint of the template or of the problem rules it out
  OUT_FAILED,  // does not check, load, launch or verify
  OUT_LATE,    // over its time limit
  OUT_DIED,    // took its worker with it
  OUT_CUT,     // Ctrl-C
  OUT_AGAIN,   // the same variant as an earlier point: not run twice
} OutcomeKind;

typedef struct Outcome {
  const char *point;
  OutcomeKind kind;
  const char *why;     // "" for OUT_OK
  Params fields;       // the worker's reply, with point, kind and why: a row for script_report
  const char *stored;  // when it was measured, where it is the store's; NULL: now
} Outcome;

typedef struct Tuner {
  Session *session;
  Arena *arena;        // outcomes live here
  TuneOpts opts;
  Worker worker;
  Store store;
  const char **seen; int nseen, seen_cap; // of the current run
  Results before;      // of the store, that may stand for a measurement
} Tuner;

// Opens out_dir/NAME.jsonl.  The worker is started by the first point that needs one.
Status tune_open(Session *s, const TuneOpts *o, const char *name, Tuner *out, Diag *d);
void tune_close(Tuner *t);
// What the store has from this device (its name) and driver and passed verification, stands for a
// point of the same texts, problem and conditions: it is not run again.  A campaign measures what
// it predicted, and does not ask for this.
Status tune_resume(Tuner *t, const DeviceInfo *dev, Diag *d);
bool tune_has_store(const Tuner *t); // there may be something to resume from
void tune_begin_run(Tuner *t);
// What a point means: names that the template declares are its parameters, other names of the
// problem (chunks) are its values.  ST_INPUT for a name that is neither, or stands there
// twice.
Status tune_point(Tuner *t, const Run *r, const char *point, Params *params, Problem **problem,
                  Diag *d);
// ST_INPUT for less than one chunk, where a plan would take one.
Status tune_check_chunks(const Problem *p, Diag *d);
// Every point of every run, before the first one runs: templates that are not there, names that are
// none, values that are no numbers.
Status tune_check(Session *s, const Run *runs, int nruns, Diag *d);
// `expected`, `prediction`: what was predicted for this point, and that line's hash; 0 and NULL for
// none.  Only what ends the whole run is a Status: ST_INTERRUPTED, a worker that can't be started,
// a store that can't be written, an unknown name.
Status tune_run(Tuner *t, const Run *r, int point, double expected, const char *prediction,
                Outcome *out, Diag *d);
// Who made a result: the program's version and a hash of what its gates allow and how it times.
// One of another stamp stands for nothing.
const char *tune_stamp(Arena *a);
// Of results that have none: they are older than stamps, and were made by what had this one.
#define TUNE_FIRST_STAMP "0.1.0 3181af67659f4959"
const char *outcome_name(OutcomeKind k);
// A number where the text is one, but for hashes, versions and the like.
void tune_json_field(Json *j, const Param *f);

// The time now as "2026-11-29T19:00:00Z".
const char *utc_now(Arena *a);

#endif
