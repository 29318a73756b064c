// worker: runs the candidates that a sweep sends over standard input (worker.h has the protocol).
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cmd.h"
#include "measure.h"
#include "verify_kept.h"
#include "wire.h"
#include "worker.h"

static void say(const char *verb, Arena *a, const Params *fields) {
  fputs(wire_line(a, verb, fields), stdout);
  fflush(stdout);
}

static void say_stage(void *ctx, const char *name) {
  Params p = {0};
  params_set(ctx, &p, "name", name);
  say("stage", ctx, &p);
}

// The first error's own words: enough for a table of failures.
static const char *first_words(const Diag *d) {
  for (const DiagMsg *m = d->first; m; m = m->next)
    if (m->severity == SEV_ERROR) return m->what;
  return "no message";
}

static void say_failed(Arena *a, Status st, const char *why, bool lost) {
  Params p = {0};
  params_set(a, &p, "status", arena_printf(a, "%d", st));
  params_set(a, &p, "why", why);
  if (lost) params_set(a, &p, "lost", "1");
  say("failed", a, &p);
}

static const char *field(const Params *job, const char *name) {
  const char *v = params_get(job, name);
  return v ? v : "";
}

typedef struct Job {
  const char *template_name;
  Params params;
  Problem *problem;
  MeasureOpts opts;
} Job;

static Status read_job(Cmd *c, Arena *a, const Params *fields, Job *job, Diag *d) {
  *job = (Job){.template_name = field(fields, "template"),
               .opts = {.verify = {.seed = strtoull(field(fields, "seed"), NULL, 10),
                                   .grid = (uint32_t)wire_number(fields, "grid"),
                                   .threads = (int)wire_number(fields, "threads")},
                        .time = {.samples = (int)wire_number(fields, "samples"),
                                 .hot = wire_number(fields, "hot") != 0,
                                 .graph = wire_number(fields, "graph") != 0},
                        .stage = say_stage,
                        .ctx = a}};
  VerifyOpts *verify = &job->opts.verify;
  verify->step_limit = c->cli->number[OPT_STEPS];
  verify->sanitize = cli_has(c->cli, OPT_SANITIZE); // exact sizes of buffers, too
  Status st = cmd_build_opts(c, &verify->build);
  if (st) return st;
  verify->plan = (PlanOpts){.grid = verify->grid, .build = verify->build};
  char *save = NULL, *text = arena_strdup(a, field(fields, "params"));
  for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
    st = params_parse(a, &job->params, w, d);
    if (st) return st;
  }
  return problem_open_hooked(c->session, a, field(fields, "problem"), verify->build.hook_path,
                             &job->problem, d);
}

static void reply_fields(const Measurement *m, const DeviceInfo *dev, Arena *a, Params *out) {
  const Timing *t = &m->timing;
  const struct { const char *name, *value; } texts[] = {
      {"id", m->id},           {"hash", m->hash},
      {"device", dev->id},     {"device_name", dev->name},
      {"driver", dev->driver}, {"method", timing_method(t)},
      {"read_variant", m->ceiling.read_variant},
  };
  const struct { const char *name; double value; } numbers[] = {
      {"median_us", t->median_us}, {"low_us", t->low_us},   {"high_us", t->high_us},
      {"min_us", t->min_us},       {"max_us", t->max_us},   {"samples", t->samples},
      {"modelled", t->modelled},   {"cold", t->cold},       {"graph", t->graph},
      {"gates", verdict_ran(&m->before)}, {"chunks", m->chunks},   {"grid", m->grid},
      {"regs", m->regs},           {"by_bytes", m->by_bytes}, {"flops", m->flops},
      {"bytes", m->bytes},         {"rate", m->rate},       {"roof", m->roof},
      {"read_gbs", m->ceiling.read_gbs}, {"fma_gflops", m->ceiling.fma_gflops},
      {"sm", dev->sm},             {"sm_count", dev->sm_count},
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    params_set(a, out, texts[i].name, texts[i].value);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    wire_put_number(a, out, numbers[i].name, numbers[i].value);
  for (int i = 0; i < SPENT_PLACES_N; i++)
    wire_put_number(a, out, spent_names[i], round(1e4 * m->spent.s[i]) / 1e4);
}

static void run_job(Cmd *c, Kept *kept, Arena *a, const Params *fields, Diag *d) {
  Job job;
  Measurement found = {0};
  Session *s;
  Device *dev = NULL;
  Status st = cmd_session(c, &s);
  if (!st) st = cmd_device(c, &dev);
  if (st) { // no later job can fare better
    say_failed(a, st, first_words(c->diag), true);
    return;
  }
  st = read_job(c, a, fields, &job, d);
  job.opts.verify.kept = kept;
  if (!st)
    st = measure_variant(s, dev, job.template_name, &job.params, job.problem, &job.opts, &found, a,
                         d);
  if (st) {
    const char *why = d->errors ? first_words(d) : measure_failure(&found, a);
    say_failed(a, st, why, !device_alive(dev));
    return;
  }
  Params reply = {0};
  reply_fields(&found, device_info(dev), a, &reply);
  if (d->warnings) params_set(a, &reply, "warnings", diag_text(d));
  say("done", a, &reply);
}

// Tensors of many MB come and go with every gate.  Their memory stays this process's: the system
// hands out empty pages, one by one.
static void keep_memory(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

Status cmd_worker(Cmd *c) {
  prctl(PR_SET_PDEATHSIG, SIGKILL); // never outlives the sweep that started it
  keep_memory();
  char *line = NULL;
  size_t cap = 0;
  Kept *kept = kept_new(kept_room());
  while (getline(&line, &cap, stdin) > 0) {
    Arena *a = arena_new();
    Diag *d = diag_new();
    const char *verb;
    Params fields = {0};
    if (wire_parse(a, line, &verb, &fields) && !strcmp(verb, "job"))
      run_job(c, kept, a, &fields, d);
    else
      say_failed(a, ST_INPUT, "not a job", false);
    diag_free(d);
    arena_free(a);
  }
  kept_free(kept);
  free(line);
  return ST_OK;
}
