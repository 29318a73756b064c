// Whether a template fits a problem on a device, and the first that does.
#include <string.h>

#include "planner.h"
#include "tune.h"

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
  if (dev->sm && !dev->is_sim && !takes) // the interpreter runs what it can, whatever it is for
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

// What the operator asks of its caller, each once.
static const char *args_text(Arena *a, const Operator *op) {
  const char *text = "";
  for (int i = 0; i < op->nsteps; i++)
    for (int k = 0; k < op->step[i].variant->nargs; k++) {
      const ArgDecl *arg = &op->step[i].variant->args[k];
      if (arg->role == ARG_WORK || !strcmp(arg->name, "chunks")) continue;
      if (operator_arg(op, arg->name) != arg) continue; // an earlier step has it
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
  fit.pieces = plan_pieces(op, &fit.piece_bytes);
  fit.lengths = planner_lengths_differ(op);
  if (planner_clusters(op, &op->step[0], &fit.clusters, quiet)) fit = stopped(a, FIT_TEXT, quiet);
  if (ask->op && fit.step == FIT_DONE) *ask->op = op;
  else operator_free(op);
  return fit;
}

static Fit fit_quietly(Session *s, Arena *a, const char *point, const PlannerAsk *ask,
                       const Problem *p, const DeviceInfo *dev, PlannerChoice *out, Diag *quiet) {
  const TemplateInfo *info;
  Tuner scratch = {.session = s, .arena = a}; // only to read the point
  Run run = {.template_name = out->template_name, .problem = p};
  if (tune_point(&scratch, &run, point, &out->params, &out->problem, quiet))
    return stopped(a, FIT_RULES, quiet);
  if (tune_check_chunks(out->problem, quiet)) return stopped(a, FIT_RULES, quiet);
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
  if (fit.step == FIT_DONE) problem_fill_from_params(out->problem, &fit.resolved);
  return fit;
}

void planner_close(PlannerQuestion *q, int keep) {
  for (int i = 0; i < q->nbuilt; i++)
    if (i == keep && q->ask->op) *q->ask->op = q->built[i].op;
    else operator_free(q->built[i].op);
}

Fit planner_fit_once(PlannerQuestion *q, const char *name, const char *point, bool whole,
                     PlannerChoice *out) {
  whole = whole && !q->plain; // the same question then
  PlannerBuilt *b = NULL;
  for (int i = 0; i < q->nbuilt && !b; i++) {
    PlannerBuilt *x = &q->built[i];
    if (x->whole == whole && !strcmp(x->name, name) && !strcmp(x->point, point)) b = x;
  }
  if (!b) {
    Operator *op = NULL;
    PlannerAsk ask = whole ? *q->ask : (PlannerAsk){.given = &q->of_shape};
    PlannerChoice made = {0};
    ask.op = &op;
    Fit fit =
        planner_fit(q->session, q->arena, point, &ask, q->problem, q->dev, name, &made);
    b = arena_push(q->arena, q->built, q->nbuilt, q->built_cap);
    *b = (PlannerBuilt){name, point, whole, op, made.params, made.problem, fit};
  }
  out->template_name = name;
  out->params = b->params;
  out->problem = b->problem;
  out->built = (int)(b - q->built);
  return b->fit;
}

// Most messages name their template.
static const char *told(Arena *a, const char *name, const char *why) {
  size_t n = strlen(name);
  return !strncmp(why, name, n) ? why : arena_printf(a, "%s: %s", name, why);
}

// ---- what was not asked for ---------------------------------------------------------------------

static bool is_rule(const char *name) {
  const ProblemName *known = problem_name_find(name);
  if (known && known->kind == PROBLEM_FLAG) return true;
  for (int i = 0; i < problem_nrules; i++)
    if (problem_rules[i].flag && !strcmp(problem_rules[i].param, name)) return true;
  return false;
}

static bool said(const PlannerQuestion *q, const char *name) {
  if (problem_gives(q->problem, name)) return true;
  if (q->ask->given && params_get(q->ask->given, name)) return true;
  for (int i = 0; i < problem_nrules; i++)
    if (!strcmp(problem_rules[i].param, name)) return problem_rules[i].asked(q->problem);
  return false;
}

const char *planner_unasked(const PlannerQuestion *q, const Fit *fit, const Fit *plain) {
  for (int i = 0; i < fit->resolved.n; i++) {
    const Param *p = &fit->resolved.v[i];
    bool on = !strcmp(p->value, "1") || !strcmp(p->value, "true");
    if (on && is_rule(p->name) && !said(q, p->name))
      return arena_printf(q->arena, "%s=1, and the problem does not say so", p->name);
  }
  if (!plain || plain->step != FIT_DONE || !strcmp(plain->args, fit->args)) return NULL;
  return arena_printf(q->arena, "the arguments %s, and the problem has %s", fit->args,
                      plain->args);
}

const char *planner_args(PlannerQuestion *q, const char *name, const char *point) {
  PlannerChoice scratch = {0};
  Fit fit = planner_fit_once(q, name, point, false, &scratch);
  return fit.step == FIT_DONE ? fit.args : NULL;
}

// ---- the first that does ------------------------------------------------------------------------

static bool nearer(const Fit *x, const Fit *y) {
  if (x->has_given != y->has_given) return x->has_given;
  return x->step != y->step ? x->step > y->step : x->reasons < y->reasons;
}

static Status unknown_param(PlannerQuestion *q, const TemplateInfo *const *t, int n,
                            const char *name, Diag *d) {
  const char **names = NULL;
  int nnames = 0, cap = 0;
  for (int i = 0; i < n; i++)
    if (template_param(t[i], name)) return ST_OK;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < t[i]->nparams; k++)
      if (!diag_among(t[i]->params[k].name, names, nnames))
        *arena_push(q->arena, names, nnames, cap) = t[i]->params[k].name;
  return diag_fail(d, ST_INPUT, "no template has a parameter \"%s\"%s", name,
                   diag_nearest(d->arena, name, names, nnames));
}

Status planner_candidate(PlannerQuestion *q, PlannerChoice *out, Fit *fit, Diag *d) {
  Arena *a = q->arena;
  const TemplateInfo **t;
  const char *nearest = NULL;
  int n;
  Fit best = {0};
  Status st = planner_order(q, &t, &n, d);
  for (int i = 0; q->ask->given && i < q->ask->given->n && !st; i++)
    st = unknown_param(q, t, n, q->ask->given->v[i].name, d);
  if (st) return st;
  for (int i = 0; i < n; i++) {
    const char *name = t[i]->name;
    *fit = planner_fit_once(q, name, "", true, out);
    *fit = planner_change(q, t[i], out, *fit);
    const char *why = fit->step == FIT_DONE ? planner_unasked(q, fit, NULL) : NULL;
    if (why) *fit = (Fit){.step = FIT_PARAMS, .reasons = 1,
                          .why = arena_printf(a, "%s always has %s", name, why)};
    if (fit->step == FIT_DONE) return ST_OK;
    fit->has_given = planner_declares_given(q, t[i]);
    *arena_push(a, out->passed, out->npassed, out->passed_cap) = told(a, name, fit->why);
    if (!nearest || nearer(fit, &best)) nearest = name, best = *fit;
  }
  if (!nearest) return diag_fail(d, ST_INPUT, "there is no attention template");
  return diag_fail(d, ST_INPUT, "no template does this on %s; nearest: %s%s", q->dev->name,
                   told(a, nearest, best.why),
                   best.reasons > 1 ? arena_printf(a, " (and %d more)", best.reasons - 1) : "");
}
