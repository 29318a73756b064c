// Which template a problem gets: what the templates declare decides, a table only says in which
// order they are asked.
#include <stdlib.h>
#include <string.h>

#include "planner.h"
#include "tune.h"

// ---- in which order -----------------------------------------------------------------------------

// Rows (query x head) that share a key head fit a tile of decode_mma, and there are keys for
// several chunks: blocks by query tiles alone would leave most SMs idle.
static bool few_queries(const Problem *p) {
  enum { TILE_ROWS = 16, CHUNK_KEYS = 256 };
  int64_t sq = problem_int(p, "seqlen_q", 1), rows = 0;
  if (sq <= 1) return true;
  return problem_whole(p, "rows", &rows) && rows <= TILE_ROWS &&
         problem_int(p, "seqlen_k", 0) > CHUNK_KEYS;
}

// Items (sequence, KV head) for every SM, or of different lengths.
static bool many_items(const Problem *p) {
  int64_t items = problem_int(p, "batch", 1) * problem_int(p, "heads_kv", 1);
  return few_queries(p) && (problem_varlen(p) || items >= PLAN_SMS);
}

static bool always(const Problem *p) { return p != NULL; }

enum { ORDER_MOST = 12 };
typedef struct Regime {
  const char *what;
  bool (*is)(const Problem *p);
  const char *order[ORDER_MOST]; // templates that are not named follow, by name
} Regime;

// docs/measurements.md: decode_mma is ahead where there are fewer items than SMs, decode_span
// elsewhere and by far where lengths differ; decode_splitk takes 40.35 us, eager, where decode_fma
// takes 38.6 (docs/ladder.md, R4); in prefill every rung of that page is faster than the one below.
// What one kind can't do (pages, V of another width) the other kind may.
#define PREFILL "prefill_wgmma", "prefill_mma", "prefill_fma", "prefill_tile", "prefill_thread"
static const Regime regimes[] = {
    {"few queries, many items", many_items,
     {"decode_span", "decode_mma", "decode_fma", "decode_splitk", PREFILL}},
    {"few queries", few_queries,
     {"decode_mma", "decode_span", "decode_fma", "decode_splitk", PREFILL}},
    {"many queries", always,
     {PREFILL, "decode_span", "decode_mma", "decode_fma", "decode_splitk"}},
};

static const Regime *regime_of(const Problem *p) {
  const Regime *r = regimes;
  while (!r->is(p)) r++;
  return r;
}

static bool named(const char *const *names, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (!strcmp(names[i], name)) return true;
  return false;
}

// Every attention template: the regime's order, then the others.
static Status candidates(Session *s, Arena *a, const Regime *r, const char ***out, int *n,
                         Diag *d) {
  const TemplateInfo **all;
  int nall;
  Status st = session_templates(s, &all, &nall, d);
  if (st) return st;
  *out = arena_array(a, const char *, ORDER_MOST + nall);
  *n = 0;
  for (int i = 0; i < ORDER_MOST && r->order[i]; i++)
    for (int k = 0; k < nall; k++) // a folder of one's own may lack some
      if (!strcmp(all[k]->name, r->order[i])) (*out)[(*n)++] = r->order[i];
  for (int k = 0; k < nall; k++) {
    bool attention = all[k]->kind == KIND_PREFILL || all[k]->kind == KIND_DECODE;
    if (attention && !named(*out, *n, all[k]->name)) (*out)[(*n)++] = all[k]->name;
  }
  return ST_OK;
}

// ---- whether one fits ---------------------------------------------------------------------------

static Fit stopped(Arena *a, FitStep step, const Diag *quiet) {
  const DiagMsg *m = quiet->first;
  while (m && m->severity != SEV_ERROR) m = m->next;
  return (Fit){.step = step, .reasons = quiet->errors,
               .why = m ? arena_strdup(a, m->what) : "no reason given"};
}

static bool exceeds(const Variant *v, const DeviceInfo *dev) {
  return dev->smem_optin && v->launch.smem_bytes > dev->smem_optin;
}

// What the device says of a text: 0 stands for what is not known of it.
static const char *why_not_device(Arena *a, const Variant *v, const DeviceInfo *dev) {
  const PtxModule *m = v->module;
  const char *name = v->tmpl->name;
  bool takes = m->sm_suffix ? dev->sm == m->sm && dev->sm_suffix : dev->sm >= m->sm;
  if (dev->sm && !takes)
    return arena_printf(a, "%s needs sm_%d%.1s, %s is sm_%d%.1s", name, m->sm, &m->sm_suffix,
                        dev->name, dev->sm, &dev->sm_suffix);
  if (dev->ptx_version && m->version > dev->ptx_version)
    return arena_printf(a, "%s needs a driver that takes PTX %d.%d, this one ends at %d.%d",
                        name, m->version / 10, m->version % 10, dev->ptx_version / 10,
                        dev->ptx_version % 10);
  if (exceeds(v, dev))
    return arena_printf(a, "%s needs %u bytes of shared memory, %s gives a block %u", name,
                        v->launch.smem_bytes, dev->name, dev->smem_optin);
  return NULL;
}

// Shared memory is all that is in the way.
static bool too_large(const Operator *op, const DeviceInfo *dev) {
  bool some = false;
  for (int i = 0; i < op->nsteps; i++) {
    const Variant *v = op->step[i].variant;
    DeviceInfo roomy = *dev;
    roomy.smem_optin = 0;
    some = some || exceeds(v, dev);
    if (why_not_device(op->arena, v, &roomy)) return false;
  }
  return some;
}

// What the operator asks of its caller, each once for a step.
static const char *args_text(Arena *a, const Operator *op) {
  const char *text = "";
  for (int i = 0; i < op->nsteps; i++)
    for (int k = 0; k < op->step[i].variant->nargs; k++) {
      const ArgDecl *arg = &op->step[i].variant->args[k];
      if (arg->role == ARG_WORK || !strcmp(arg->name, "chunks")) continue;
      text = arena_printf(a, "%s%s%s", text, *text ? " " : "", arg->name);
    }
  return text;
}

static Fit build(Session *s, Arena *a, const PlannerAsk *ask, const PlannerChoice *c,
                 const DeviceInfo *dev, const Params *resolved, Diag *quiet) {
  Operator *op = NULL;
  const PlanOpts opts = {.build = ask->build};
  if (operator_make(s, c->template_name, &c->params, c->problem, &opts, &op, quiet))
    return stopped(a, FIT_TEXT, quiet);
  Fit fit = {.step = FIT_DONE, .resolved = *resolved, .args = args_text(a, op),
             .hash = arena_strdup(a, op->step[0].variant->hash)};
  for (int i = 0; i < op->nsteps && !fit.why; i++)
    fit.why = why_not_device(a, op->step[i].variant, dev);
  if (fit.why) fit.step = FIT_DEVICE, fit.reasons = 1;
  fit.too_large = too_large(op, dev);
  operator_free(op);
  return fit;
}

static Fit fit_quietly(Session *s, Arena *a, const char *point, const PlannerAsk *ask,
                       const Problem *p, const DeviceInfo *dev, PlannerChoice *out, Diag *quiet) {
  const TemplateInfo *info;
  Tuner scratch = {.session = s, .arena = a}; // only to read the point
  Run run = {.template_name = out->template_name, .problem = p};
  if (tune_point(&scratch, &run, point, &out->params, &out->problem, quiet))
    return stopped(a, FIT_RULES, quiet);
  for (int i = 0; ask->given && i < ask->given->n; i++)
    params_set(a, &out->params, ask->given->v[i].name, ask->given->v[i].value);
  Params all = {0}, resolved = {0};
  for (int i = 0; i < out->params.n; i++)
    params_set(a, &all, out->params.v[i].name, out->params.v[i].value);
  if (session_template(s, out->template_name, &info, quiet) ||
      problem_fix_params(a, p, info, &all, quiet))
    return stopped(a, FIT_RULES, quiet);
  const char *why = NULL;
  if (variant_legal(s, out->template_name, &all, &ask->build, a, &resolved, &why, quiet))
    return stopped(a, FIT_PARAMS, quiet);
  if (why) return (Fit){.step = FIT_PARAMS, .reasons = 1, .why = why};
  return build(s, a, ask, out, dev, &resolved, quiet);
}

Fit planner_fit(Session *s, Arena *a, const char *point, const PlannerAsk *ask, const Problem *p,
                const DeviceInfo *dev, const char *template_name, PlannerChoice *out) {
  Diag *quiet = diag_new();
  out->template_name = template_name;
  out->params = (Params){0};
  Fit fit = fit_quietly(s, a, point, ask, p, dev, out, quiet);
  diag_free(quiet);
  return fit;
}

// Most messages name their template.
static const char *told(Arena *a, const char *name, const char *why) {
  size_t n = strlen(name);
  return !strncmp(why, name, n) ? why : arena_printf(a, "%s: %s", name, why);
}

// ---- defaults in less shared memory -------------------------------------------------------------

// The declared values of a parameter that are less than the one that is resolved, the largest
// first.
static int lower_values(Arena *a, const TemplateInfo *info, const Params *resolved,
                        const char *name, long **out) {
  const char *now = params_get(resolved, name);
  int n = 0;
  *out = NULL;
  for (int i = 0; now && i < info->nparams; i++) {
    const ParamDecl *p = &info->params[i];
    if (strcmp(p->name, name)) continue;
    *out = arena_array(a, long, p->nvalues + 1);
    for (int k = 0; k < p->nvalues; k++) {
      long x = strtol(p->values[k], NULL, 10);
      if (x >= strtol(now, NULL, 10)) continue;
      int at = n++;
      for (; at > 0 && (*out)[at - 1] < x; at--) (*out)[at] = (*out)[at - 1];
      (*out)[at] = x;
    }
  }
  return n;
}

// Buffers are what takes the memory: fewer stages, then fewer warps with as many stages as fit.
static Fit fit_smaller(Session *s, Arena *a, const PlannerAsk *ask, const Problem *p,
                       const DeviceInfo *dev, const char *name, PlannerChoice *out, Fit first) {
  const TemplateInfo *info;
  Diag *quiet = diag_new();
  Status st = session_template(s, name, &info, quiet);
  diag_free(quiet);
  if (st) return first;
  long *stages, *warps;
  int nstages = lower_values(a, info, &first.resolved, "stages", &stages);
  int nwarps = lower_values(a, info, &first.resolved, "warps", &warps);
  for (int w = -1; w < nwarps; w++)
    for (int k = w < 0 ? 0 : -1; k < nstages; k++) {
      const char *fewer = w < 0 ? "" : arena_printf(a, "warps=%ld", warps[w]);
      const char *space = w < 0 ? "" : " ", *point = fewer;
      if (k >= 0) point = arena_printf(a, "%s%sstages=%ld", fewer, space, stages[k]);
      Fit fit = planner_fit(s, a, point, ask, p, dev, name, out);
      fit.smaller = point;
      if (fit.step == FIT_DONE) return fit;
    }
  return first;
}

// ---- the first that does ------------------------------------------------------------------------

static bool nearer(const Fit *x, const Fit *y) {
  return x->step != y->step ? x->step > y->step : x->reasons < y->reasons;
}

// A rule that the template always has and nobody asked for: the answer would be another problem's.
static const char *unasked(Arena *a, const PlannerAsk *ask, const Problem *p, const char *name,
                           const Params *resolved) {
  for (int i = 0; i < problem_nnames; i++) {
    const char *rule = problem_names[i].name;
    const char *has = problem_names[i].kind == PROBLEM_FLAG ? params_get(resolved, rule) : NULL;
    if (!has || !strcmp(has, "0") || !strcmp(has, "false") || problem_gives(p, rule)) continue;
    if (ask->given && params_get(ask->given, rule)) continue;
    return arena_printf(a, "%s always has %s=1, and the problem does not say so", name, rule);
  }
  return NULL;
}

Status planner_candidate(Session *s, Arena *a, const PlannerAsk *ask, const Problem *p,
                         const DeviceInfo *dev, PlannerChoice *out, Fit *fit, Diag *d) {
  const char **name, *nearest = NULL;
  int n;
  Fit best = {0};
  Status st = candidates(s, a, regime_of(p), &name, &n, d);
  if (st) return st;
  for (int i = 0; i < n; i++) {
    *fit = planner_fit(s, a, "", ask, p, dev, name[i], out);
    if (fit->too_large) *fit = fit_smaller(s, a, ask, p, dev, name[i], out, *fit);
    const char *why = fit->step == FIT_DONE ? unasked(a, ask, p, name[i], &fit->resolved) : NULL;
    if (why) *fit = (Fit){.step = FIT_PARAMS, .reasons = 1, .why = why};
    if (fit->step == FIT_DONE) return ST_OK;
    *arena_push(a, out->passed, out->npassed, out->passed_cap) =
        told(a, name[i], fit->why);
    if (!nearest || nearer(fit, &best)) nearest = name[i], best = *fit;
  }
  if (!nearest) return diag_fail(d, ST_INPUT, "there is no attention template");
  return diag_fail(d, ST_INPUT, "no template does this on %s; nearest: %s%s", dev->name,
                   told(a, nearest, best.why),
                   best.reasons > 1 ? arena_printf(a, " (and %d more)", best.reasons - 1) : "");
}
