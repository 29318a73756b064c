// One point of a sweep after the other.
#include "tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../gen/number.h"
#include "interrupt.h"
#include "json.h"
#include "parse.h"
#include "plan.h"
#include "ptxsmith.h"
#include "wire.h"

static const char *const kind_names[] = {"ok", "pruned", "failed", "late", "died", "cut", "again"};

const char *outcome_name(OutcomeKind k) { return kind_names[k]; }

const char *utc_now(Arena *a) {
  time_t now = time(NULL);
  struct tm tm;
  char text[32];
  gmtime_r(&now, &tm);
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
  return arena_strdup(a, text);
}

Status tune_open(Session *s, const TuneOpts *o, const char *name, Tuner *out, Diag *d) {
  *out = (Tuner){.session = s, .arena = arena_new(), .opts = *o, .store = {.fd = -1}};
  const char *path = arena_printf(out->arena, "%s/%s.jsonl", o->out_dir, name);
  Status st = store_open(out->arena, path, &out->store, d);
  if (st) tune_close(out);
  return st;
}

void tune_close(Tuner *t) {
  worker_stop(&t->worker);
  store_close(&t->store);
  arena_free(t->arena);
  t->arena = NULL;
}

void tune_begin_run(Tuner *t) { t->nseen = 0; }

// ---- what a point means -------------------------------------------------------------------------

static Status unknown_name(Tuner *t, const TemplateInfo *info, const char *name, Diag *d) {
  const char **names = arena_array(t->arena, const char *, info->nparams + 1);
  for (int i = 0; i < info->nparams; i++) names[i] = info->params[i].name;
  names[info->nparams] = "chunks";
  return diag_fail(d, ST_INPUT, "%s: no parameter \"%s\"%s", info->name, name,
                   diag_nearest(d->arena, name, names, info->nparams + 1));
}

static Status set_value(Problem *p, const char *name, const char *text, Diag *d) {
  char *end;
  long long n = strtoll(text, &end, 10);
  if (end == text || *end)
    return diag_fail(d, ST_INPUT, "%s=%s: a number is wanted", name, text);
  problem_set_int(p, problem_name_find(name)->name, n);
  return ST_OK;
}

Status tune_point(Tuner *t, const Run *r, const char *point, Params *params, Problem **problem,
                  Diag *d) {
  const TemplateInfo *info;
  Status st = session_template(t->session, r->template_name, &info, d);
  if (st) return st;
  Params all = {0};
  st = parse_params(t->arena, point, &all, d);
  *problem = problem_copy(t->arena, r->problem);
  for (int i = 0; i < all.n && !st; i++) {
    if (template_param(info, all.v[i].name))
      params_set(t->arena, params, all.v[i].name, all.v[i].value);
    else if (problem_name_find(all.v[i].name))
      st = set_value(*problem, all.v[i].name, all.v[i].value, d);
    else
      st = unknown_name(t, info, all.v[i].name, d);
  }
  return st;
}

Status tune_check_chunks(const Problem *p, Diag *d) {
  int64_t chunks = problem_int(p, "chunks", 1);
  if (chunks >= 1) return ST_OK;
  return diag_fail(d, ST_INPUT, "chunks=%lld: chunks is at least 1", (long long)chunks);
}

Status tune_check(Session *s, const Run *runs, int nruns, Diag *d) {
  Tuner scratch = {.session = s, .arena = arena_new()}; // only to read the points
  Status st = ST_OK;
  for (int r = 0; r < nruns && !st; r++)
    for (int i = 0; i < runs[r].npoints && !st; i++) {
      Params params = {0};
      Problem *problem;
      st = tune_point(&scratch, &runs[r], runs[r].points[i], &params, &problem, d);
      arena_reset(scratch.arena);
    }
  arena_free(scratch.arena);
  return st;
}

// ---- before the worker --------------------------------------------------------------------------

// Why a build failed.  A message that points into the PTX names the template as its origin: the
// text is wrong.  Any other is the template's or the problem's no to this combination.
static void refuse(Outcome *out, Arena *a, const Diag *d) {
  const DiagMsg *m = d->first;
  while (m && m->severity != SEV_ERROR) m = m->next;
  bool in_ptx = m && m->origin_file[0] && strcmp(m->origin_file, m->file);
  out->kind = in_ptx ? OUT_FAILED : OUT_PRUNED;
  out->why = !m       ? "no reason given"
             : in_ptx ? arena_printf(a, "PTX line %u (%s:%u): %s", m->line, m->origin_file,
                                     m->origin_line, m->what)
                      : arena_strdup(a, m->what);
}

static bool seen_before(Tuner *t, const char *id) {
  for (int i = 0; i < t->nseen; i++)
    if (!strcmp(t->seen[i], id)) return true;
  *arena_push(t->arena, t->seen, t->nseen, t->seen_cap) = id;
  return false;
}

// What the parameter block says of the point: a constraint that fails prunes it before anything is
// expanded.
static bool is_legal(Tuner *t, const Run *r, const Params *params, const Problem *p, Outcome *out,
                     Diag *quiet) {
  const TemplateInfo *info;
  Params all = {0}, resolved = {0};
  const char *why_not = NULL;
  for (int i = 0; i < params->n; i++)
    params_set(t->arena, &all, params->v[i].name, params->v[i].value);
  Status st = session_template(t->session, r->template_name, &info, quiet);
  if (!st) st = tune_check_chunks(p, quiet);
  if (!st) st = problem_fix_params(t->arena, p, info, &all, quiet);
  if (!st)
    st = variant_legal(t->session, r->template_name, &all, &t->opts.build, t->arena, &resolved,
                       &why_not, quiet);
  if (st) refuse(out, t->arena, quiet);
  else if (why_not) out->kind = OUT_PRUNED, out->why = why_not;
  return !st && !why_not;
}

// Hashes of all steps: the same texts are the same launches.
static const char *texts_of(Arena *a, const Operator *op) {
  const char *texts = "";
  for (int i = 0; i < op->nsteps; i++)
    texts = arena_printf(a, "%s%s%s", texts, i ? "," : "", op->step[i].variant->hash);
  return texts;
}

// Builds the point here, where it costs a millisecond and no process.  False: it has its outcome.
static bool worth_running(Tuner *t, const Run *r, const Params *params, const Problem *p,
                          const char **texts, Outcome *out) {
  Diag *quiet = diag_new();
  Operator *op = NULL;
  PlanOpts opts = {.grid = t->opts.grid, .build = t->opts.build};
  bool ok = is_legal(t, r, params, p, out, quiet);
  if (ok && operator_make(t->session, r->template_name, params, p, &opts, &op, quiet)) {
    refuse(out, t->arena, quiet);
    ok = false;
  }
  if (ok) {
    *texts = texts_of(t->arena, op);
    const char *id = arena_printf(t->arena, "%s %s", op->step[0].variant->id,
                                  problem_text(t->arena, op->problem)); // with the chunks it makes
    if (seen_before(t, id)) {
      ok = false;
      out->kind = OUT_AGAIN;
      out->why = "the same variant as an earlier one";
    }
  }
  operator_free(op);
  diag_free(quiet);
  return ok;
}

// ---- the worker's part --------------------------------------------------------------------------

// Fields that only some jobs have.
static const char *const optional_fields[] = {"checks", "hook", "target", "steps"};

const char *tune_stamp(Arena *a) {
  const char *text = arena_printf(a, "%s; %s", verify_settings(a), timer_settings(a));
  return arena_printf(a, "%s %016llx", PSM_VERSION,
                      (unsigned long long)content_hash(text, strlen(text)));
}

static Params job_fields(Tuner *t, const Run *r, const Params *params, const Problem *p) {
  Arena *a = t->arena;
  Params job = {0};
  const char *text = "";
  for (int i = 0; i < params->n; i++)
    text = arena_printf(a, "%s%s%s=%s", text, i ? " " : "", params->v[i].name, params->v[i].value);
  params_set(a, &job, "template", r->template_name);
  params_set(a, &job, "params", text);
  params_set(a, &job, "problem", problem_text(a, p));
  if (t->opts.checks && *t->opts.checks) params_set(a, &job, "checks", t->opts.checks);
  params_set(a, &job, "seed", arena_printf(a, "%llu", (unsigned long long)t->opts.seed));
  const VariantOpts *build = &t->opts.build; // the worker has them from its command line
  if (build->hook_path) params_set(a, &job, "hook", build->hook_path);
  if (build->sm)
    params_set(a, &job, "target",
               arena_printf(a, "sm_%d%.*s", build->sm, build->sm_suffix != 0, &build->sm_suffix));
  wire_put_number(a, &job, "samples", t->opts.samples ? t->opts.samples : r->samples);
  wire_put_number(a, &job, "threads", t->opts.threads);
  wire_put_number(a, &job, "grid", t->opts.grid);
  wire_put_number(a, &job, "hot", t->opts.hot);
  wire_put_number(a, &job, "graph", t->opts.graph);
  if (t->opts.steps)
    params_set(a, &job, "steps", arena_printf(a, "%llu", (unsigned long long)t->opts.steps));
  params_set(a, &job, "stamp", tune_stamp(a));
  return job;
}

static double limit_of(const Tuner *t, const Run *r) {
  enum { LIMIT_S = 120 };
  return t->opts.limit_s > 0 ? t->opts.limit_s : r->limit_s > 0 ? r->limit_s : LIMIT_S;
}

static Status run_in_worker(Tuner *t, const Run *r, const Params *job, Outcome *out, Diag *d) {
  static const OutcomeKind kind_of[] = {[JOB_DONE] = OUT_OK, [JOB_FAILED] = OUT_FAILED,
                                        [JOB_DIED] = OUT_DIED, [JOB_LATE] = OUT_LATE,
                                        [JOB_INTERRUPTED] = OUT_CUT};
  Status st = t->worker.pid ? ST_OK : worker_start(&t->worker, &t->opts.worker, d);
  if (st) return st;
  const char *stage, *why;
  JobEnd end =
      worker_run(&t->worker, t->arena, job, limit_of(t, r), &out->fields, &stage, &why);
  out->kind = kind_of[end];
  if (end == JOB_FAILED) {
    const char *text = params_get(&out->fields, "why");
    why = text ? text : "";
    // A device that is not there, or an option that is none, is no fault of the point.
    if (!strcmp(stage, "start") && wire_number(&out->fields, "lost"))
      return diag_fail(d, (Status)wire_number(&out->fields, "status"), "%s", why);
  }
  out->why = end == JOB_DONE ? "" : arena_printf(t->arena, "at %s: %s", stage, why);
  return end == JOB_INTERRUPTED ? ST_INTERRUPTED : ST_OK;
}

// ---- what the store has already -----------------------------------------------------------------

bool tune_has_store(const Tuner *t) { return !access(t->store.path, F_OK); }

Status tune_resume(Tuner *t, const DeviceInfo *dev, Diag *d) {
  Results all;
  Status st = results_read(t->arena, t->store.path, true, &all, d);
  for (int i = 0; i < all.n && !st; i++) {
    const Params *r = &all.v[i];
    bool here = !strcmp(result_text(r, "device_name"), dev->name) &&
                !strcmp(result_text(r, "driver"), dev->driver);
    if (here && result_passed(r) && *result_text(r, "texts"))
      *arena_push(t->arena, t->before.v, t->before.n, t->before.cap) = *r;
  }
  t->before.damaged = all.damaged;
  return st;
}

static bool same_value(const char *x, const char *y) {
  char *end_x, *end_y;
  double a = number_parse(x, &end_x), b = number_parse(y, &end_y);
  bool numbers = *x && *y && !*end_x && !*end_y; // JSON writes 1e3 as it likes
  return numbers ? a == b && (fabs(a) < 0x1p53 || !strcmp(x, y)) : !strcmp(x, y);
}

// What makes two measurements one: all of the job but how its parameters are spelled (texts are
// what they make), and the threads of the host.
static bool same_job(const Params *job, const Params *r) {
  for (int i = 0; i < job->n; i++) {
    const Param *f = &job->v[i];
    if (!strcmp(f->name, "params") || !strcmp(f->name, "threads")) continue;
    const char *was = result_text(r, f->name);
    if (!*was && !strcmp(f->name, "stamp")) was = TUNE_FIRST_STAMP;
    if (!same_value(f->value, was)) return false;
  }
  for (size_t i = 0; i < sizeof optional_fields / sizeof *optional_fields; i++)
    if (*result_text(r, optional_fields[i]) && !params_get(job, optional_fields[i])) return false;
  return true;
}

// The store's last result for the job becomes the outcome.
static bool take_stored(Tuner *t, const Params *job, Outcome *out) {
  static const char *const line[] = {"record", "time", "run", "sum", "expected_us", "prediction"};
  const Params *r = NULL;
  for (int i = t->before.n - 1; i >= 0 && !r; i--)
    if (same_job(job, &t->before.v[i])) r = &t->before.v[i];
  if (!r) return false;
  out->stored = result_text(r, "time");
  for (int i = 0; i < r->n; i++) {
    bool own = params_get(job, r->v[i].name) != NULL;
    for (size_t k = 0; k < sizeof line / sizeof *line; k++) own |= !strcmp(r->v[i].name, line[k]);
    if (!own) params_set(t->arena, &out->fields, r->v[i].name, r->v[i].value);
  }
  params_set(t->arena, &out->fields, "stored", out->stored);
  return true;
}

// ---- the result's line --------------------------------------------------------------------------

void tune_json_field(Json *j, const Param *f) {
  char *end;
  double x = number_parse(f->value, &end);
  static const char *const texts[] = {"hash",   "texts",       "prediction",
                                      "driver", "device_name", "why"};
  bool text = !strcmp(f->name, "seed") && strlen(f->value) > 15; // more digits than a number keeps
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) text |= !strcmp(f->name, texts[i]);
  if (!text && end != f->value && !*end)
    json_num(j, f->name, x);
  else
    json_str(j, f->name, f->value);
}

static Status store_outcome(Tuner *t, const Run *r, const Params *job, const Outcome *out,
                            Diag *d) {
  Json j;
  json_begin(&j, t->arena);
  json_str(&j, "record", "result");
  json_str(&j, "time", utc_now(t->arena));
  json_str(&j, "run", r->name);
  for (int i = 0; i < job->n; i++) tune_json_field(&j, &job->v[i]);
  for (int i = 0; i < out->fields.n; i++)
    if (!params_get(job, out->fields.v[i].name)) tune_json_field(&j, &out->fields.v[i]);
  return store_append(&t->store, json_end(&j), false, d);
}

Status tune_run(Tuner *t, const Run *r, int point, double expected, const char *prediction,
                Outcome *out, Diag *d) {
  Params params = {0};
  Problem *problem;
  *out = (Outcome){.point = r->points[point], .why = ""};
  if (interrupt_pending()) return ST_INTERRUPTED;
  Status st = tune_point(t, r, out->point, &params, &problem, d);
  if (st) return st;
  Params job = job_fields(t, r, &params, problem);
  const char *texts = "";
  bool run = worth_running(t, r, &params, problem, &texts, out);
  if (*texts) params_set(t->arena, &job, "texts", texts);
  if (run && !take_stored(t, &job, out)) st = run_in_worker(t, r, &job, out, d);
  if (st && st != ST_INTERRUPTED) return st;
  params_set(t->arena, &out->fields, "point", out->point[0] ? out->point : "defaults");
  params_set(t->arena, &out->fields, "kind", outcome_name(out->kind));
  params_set(t->arena, &out->fields, "why", out->why);
  if (expected > 0) wire_put_number(t->arena, &out->fields, "expected_us", expected);
  if (prediction) params_set(t->arena, &out->fields, "prediction", prediction);
  if (st || out->kind == OUT_AGAIN || out->stored) return st; // nothing was found out
  return store_outcome(t, r, &job, out, d);
}
