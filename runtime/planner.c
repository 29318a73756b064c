// The planner: a row of the table, or the first template that fits.
#include "planner.h"

#include <stdlib.h>
#include <string.h>

// ---- choosing -----------------------------------------------------------------------------------

// What is given and makes the shape, too: a row is measured with these.
static Params shape_params(Arena *a, const Params *given) {
  Params of_shape = {0};
  for (int i = 0; given && i < given->n; i++) {
    const Param *g = &given->v[i];
    bool rule = problem_name_find(g->name) != NULL;
    for (int k = 0; k < problem_nrules; k++)
      rule = rule || !strcmp(problem_rules[k].param, g->name);
    if (rule) params_set(a, &of_shape, g->name, g->value);
  }
  return of_shape;
}

static PlannerQuestion question(Session *s, Arena *a, const PlannerAsk *ask, const Problem *p,
                                const DeviceInfo *dev) {
  PlannerQuestion q = {.session = s, .arena = a, .ask = ask, .dev = dev,
                       .problem = problem_copy(a, p), .of_shape = shape_params(a, ask->given)};
  int given = ask->given ? ask->given->n : 0;
  q.plain = given == q.of_shape.n && !ask->build.hook_path && !ask->build.sm;
  return q;
}

static void set_shape(PlannerQuestion *q, const Params *resolved) {
  problem_fill_from_params(q->problem, resolved);
  q->nforms = planner_shape_forms(q->arena, q->problem, resolved, q->form);
  q->note = planner_shape_note(q->arena, q->problem, resolved);
}

// Whether nothing else was asked for: the problem with what it leaves open as the template's
// parameters have it, and its shape.  A failing constraint is told by whoever builds it.
static Status complete(PlannerQuestion *q, Diag *d) {
  const TemplateInfo *info;
  const char *name = q->ask->template_name, *why_not;
  Params params = {0}, resolved = {0};
  for (int i = 0; q->ask->given && i < q->ask->given->n; i++)
    params_set(q->arena, &params, q->ask->given->v[i].name, q->ask->given->v[i].value);
  Status st = session_template(q->session, name, &info, d);
  if (!st) st = problem_fix_params(q->arena, q->problem, info, &params, d);
  if (!st)
    st = variant_legal(q->session, name, &params, NULL, q->arena, &resolved, &why_not, d);
  if (st) return st;
  set_shape(q, &resolved);
  return ST_OK;
}

// What is given, and other than what was measured: a parameter that adds arguments (append=1) is a
// feature, with which the row's others are still the best known; any other one makes another
// variant.  *without: those features.
static bool only_features(PlannerQuestion *q, const char *name, const Fit *whole,
                          const Fit *measured, const char **without) {
  *without = NULL;
  for (int i = 0; i < whole->resolved.n; i++) {
    const Param *p = &whole->resolved.v[i];
    const char *then = params_get(&measured->resolved, p->name);
    if (then && !strcmp(then, p->value)) continue;
    if (!params_get(q->ask->given, p->name)) return false;
    const char *point = arena_printf(q->arena, "%s=%s", p->name, p->value);
    const char *plain = planner_args(q, name, ""), *with = planner_args(q, name, point);
    if (!plain || !with || !strcmp(plain, with)) return false;
    *without = *without ? arena_printf(q->arena, "%s %s", *without, point) : point;
  }
  return whole->resolved.n == measured->resolved.n;
}

// Whether what was measured can still be built, with those parameters that the asker gives.
static const char *why_not_text(PlannerQuestion *q, const PlannerRow *r, PlannerChoice *choice) {
  Arena *a = q->arena;
  PlannerChoice defaults = {0};
  const char *name = r->template_name, *why;
  Fit measured = planner_fit_once(q, name, r->params, false, choice);
  if (measured.step != FIT_DONE) {
    if (measured.step == FIT_DEVICE) return arena_printf(a, "does not run here: %s", measured.why);
    bool shape_does = planner_row_text(q->session, a, r, &why) != TEXT_NONE;
    return arena_printf(a, "can't be built %s: %s", shape_does ? "for this problem" : "any more",
                        measured.why);
  }
  Fit plain = planner_fit_once(q, name, "", false, &defaults);
  if ((why = planner_unasked(q, &measured, &plain)))
    return arena_printf(a, "measured with %s", why);
  choice->older = strcmp(measured.hash, r->hash) != 0;
  int64_t chunks = problem_int(choice->problem, "chunks", 0);
  if (problem_gives(q->problem, "chunks") && problem_int(q->problem, "chunks", 0) != chunks)
    return arena_printf(a, "measured with chunks=%lld", (long long)chunks);
  if ((why = planner_crowded(a, q->built[choice->built].op, q->ask->device))) return why;
  if (q->plain) return NULL;
  Fit fit = planner_fit_once(q, name, r->params, true, choice);
  if (fit.step != FIT_DONE)
    return arena_printf(a, "can't be built with what is given: %s", fit.why);
  if (q->ask->given && !only_features(q, name, &fit, &measured, &choice->without))
    return "measured with other parameters than those given";
  return NULL;
}

// NULL when the row holds, else why it does not.
static const char *why_not(PlannerQuestion *q, const PlannerRow *r, PlannerChoice *choice) {
  if (strcmp(r->device, q->dev->name)) return arena_printf(q->arena, "measured on %s", r->device);
  if (strcmp(r->driver, q->dev->driver))
    return arena_printf(q->arena, "measured with driver %s, this is %s", r->driver,
                        q->dev->driver);
  return why_not_text(q, r, choice);
}

static bool of_here(const PlannerQuestion *q, const PlannerRow *r) {
  return !strcmp(r->device, q->dev->name) && !strcmp(r->driver, q->dev->driver);
}

// A row says how a template is best run, and it takes two to say which of them is faster: one that
// ranks behind the candidate is taken only where the candidate has a row of its shape, too.
static const char *outranked(PlannerQuestion *q, const PlannerTable *t, const PlannerRow *r) {
  if (!q->candidate || !strcmp(r->template_name, q->candidate)) return NULL;
  if (planner_stands_before(q, r->template_name, q->candidate)) return NULL;
  for (int i = 0; i < t->n; i++)
    if (of_here(q, &t->v[i]) && !strcmp(t->v[i].shape, r->shape) &&
        !strcmp(t->v[i].template_name, q->candidate))
      return NULL;
  return arena_printf(q->arena, "%s is usually faster than %s, and has no row of this shape",
                      q->candidate, r->template_name);
}

static const char *row_why(PlannerQuestion *q, const PlannerRow *r, const ShapeForm *of,
                           const PlannerChoice *c) {
  const ShapeForm *all = &q->form[0]; // what the bucket says and the row does not
  const char *without = c->without ? arena_printf(q->arena, "; measured without %s", c->without)
                                   : "";
  return arena_printf(q->arena, "%s:%u: %s%s%s%s%s%s%s", r->file, r->line, r->measured,
                      all->widths > of->widths ? "; the row is of any window" : "",
                      all->pages > of->pages ? "; the row is of any page size" : "",
                      all->means > of->means ? "; the row is of any mean length" : "",
                      c->older ? "; measured on an older text of the template" : "",
                      q->ask->build.hook_path ? "; measured without a hook" : "", without);
}

static bool by_form(PlannerQuestion *q, const PlannerTable *t, const ShapeForm *of,
                    PlannerChoice *out) {
  for (int i = 0; i < t->n; i++) {
    const PlannerRow *r = &t->v[i];
    if (strcmp(r->shape, of->text)) continue;
    if (q->ask->template_name && strcmp(r->template_name, q->ask->template_name)) continue;
    const char *why = of_here(q, r) ? outranked(q, t, r) : NULL;
    if (!why) why = why_not(q, r, out);
    if (!why) {
      out->row = r;
      out->why = row_why(q, r, of, out);
      return true;
    }
    *arena_push(q->arena, out->passed, out->npassed, out->passed_cap) =
        arena_printf(q->arena, "%s:%u: %s", r->file, r->line, why);
  }
  return false;
}

// The first row that holds of the problem's bucket, else of a shape that says less.
static bool by_row(PlannerQuestion *q, const PlannerTable *t, PlannerChoice *out) {
  out->shape = q->form[0].text;
  for (int i = 0; i < q->nforms; i++)
    if (by_form(q, t, &q->form[i], out)) return true;
  out->older = false, out->without = NULL;
  return false;
}

static const char *default_why(PlannerQuestion *q, const char *changed) {
  const char *note = *q->note ? arena_printf(q->arena, " (%s)", q->note) : "";
  return arena_printf(q->arena,
                      "the template's defaults%s%s; no row of the tables is for %s on %s%s",
                      changed ? ", " : "", changed ? changed : "", q->form[0].text, q->dev->name,
                      note);
}

// A template by name: what is wrong with it is told by whoever builds it.
static Status choose_params(PlannerQuestion *q, const PlannerTable *t, PlannerChoice *out,
                            Diag *d) {
  Status st = complete(q, d);
  if (st || by_row(q, t, out)) return st;
  out->why = default_why(q, NULL);
  out->template_name = q->ask->template_name;
  out->params = (Params){0};
  out->problem = q->problem;
  for (int i = 0; q->ask->given && i < q->ask->given->n; i++)
    params_set(q->arena, &out->params, q->ask->given->v[i].name, q->ask->given->v[i].value);
  return ST_OK;
}

static Status choose_template(PlannerQuestion *q, const PlannerTable *t, PlannerChoice *out,
                              Diag *d) {
  Arena *a = q->arena;
  PlannerChoice found = {0};
  Fit fit;
  Status st = planner_candidate(q, &found, &fit, d);
  if (st) return *out = found, st;
  set_shape(q, &fit.resolved);
  q->candidate = found.template_name;
  if (by_row(q, t, out)) return ST_OK;
  found.shape = out->shape;
  found.why = default_why(q, fit.changed);
  for (int i = 0; i < found.npassed; i++)
    *arena_push(a, out->passed, out->npassed, out->passed_cap) = found.passed[i];
  found.passed = out->passed, found.npassed = out->npassed, found.passed_cap = out->passed_cap;
  *out = found;
  return ST_OK;
}

Status planner_choose(Session *s, Arena *a, const PlannerTable *t, const PlannerAsk *ask,
                      const Problem *given, const DeviceInfo *dev, PlannerChoice *out, Diag *d) {
  PlannerQuestion q = question(s, a, ask, given, dev);
  *out = (PlannerChoice){0};
  if (ask->op) *ask->op = NULL;
  Status st = (ask->template_name ? choose_params : choose_template)(&q, t, out, d);
  bool built = !st && (out->row || !ask->template_name);
  planner_close(&q, built ? out->built : -1);
  return st;
}

Fit planner_row_fit(Session *s, Arena *a, const PlannerRow *r) {
  const PlannerAsk ask = {.template_name = r->template_name};
  const DeviceInfo any = {.name = "any"};
  PlannerChoice choice = {0};
  Problem *p = NULL;
  Diag *quiet = diag_new();
  const char *why = NULL;
  if (planner_shape_problem(a, r->shape, &p, quiet))
    why = arena_strdup(a, quiet->first ? quiet->first->what : "its shape is no problem");
  diag_free(quiet);
  if (why) return (Fit){.step = FIT_RULES, .reasons = 1, .why = why};
  return planner_fit(s, a, r->params, &ask, p, &any, r->template_name, &choice);
}

PlannerText planner_row_text(Session *s, Arena *a, const PlannerRow *r, const char **why) {
  Fit fit = planner_row_fit(s, a, r);
  *why = fit.why;
  if (fit.step != FIT_DONE) return TEXT_NONE;
  return strcmp(fit.hash, r->hash) ? TEXT_OTHER : TEXT_SAME;
}

const char *planner_source(const PlannerChoice *c) { return c->row ? "tuned" : "default"; }
