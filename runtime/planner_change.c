// Defaults that are changed for a problem, a device or what is given, and why.
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "planner.h"

// ---- defaults that take what is given ----------------------------------------------------------

bool planner_declares_given(const PlannerQuestion *q, const TemplateInfo *info) {
  for (int i = 0; q->ask->given && i < q->ask->given->n; i++)
    if (!template_param(info, q->ask->given->v[i].name)) return false;
  return true;
}

// A parameter's values, those that its default stands next to first.
static int nearest_values(Arena *a, const ParamDecl *p, const char *now, const char ***out) {
  int at = 0, n = 0;
  while (at < p->nvalues && strcmp(p->values[at], now)) at++;
  *out = arena_array(a, const char *, p->nvalues + 1);
  for (int step = 1; step <= p->nvalues; step++) {
    if (at - step >= 0 && at < p->nvalues) (*out)[n++] = p->values[at - step];
    if (at + step < p->nvalues) (*out)[n++] = p->values[at + step];
  }
  return n;
}

// What is given and makes no shape, as text.
static const char *own_given(const PlannerQuestion *q) {
  const char *text = "";
  for (int i = 0; i < q->ask->given->n; i++) {
    const Param *p = &q->ask->given->v[i];
    if (params_get(&q->of_shape, p->name)) continue;
    text = arena_printf(q->arena, "%s%s%s=%s", text, *text ? " " : "", p->name, p->value);
  }
  return text;
}

// The defaults do the problem, but not with what is given (overlap=1, and fused is 1): another
// value of one of them may, if it asks for no other arguments.
static Fit fit_given(PlannerQuestion *q, const TemplateInfo *info, PlannerChoice *out, Fit first) {
  PlannerChoice scratch = {0};
  if (q->plain || !q->ask->given || !planner_declares_given(q, info)) return first;
  Fit plain = planner_fit_once(q, info->name, "", false, &scratch);
  for (int i = 0; plain.step == FIT_DONE && i < info->nparams; i++) {
    const ParamDecl *p = &info->params[i];
    const char **values, *now = params_get(&plain.resolved, p->name);
    if (!now || params_get(q->ask->given, p->name) || problem_name_find(p->name)) continue;
    int n = nearest_values(q->arena, p, now, &values);
    for (int k = 0; k < n; k++) {
      PlannerChoice choice = *out;
      const char *point = arena_printf(q->arena, "%s=%s", p->name, values[k]);
      Fit fit = planner_fit_once(q, info->name, point, true, &choice);
      const char *args = fit.step == FIT_DONE ? planner_args(q, info->name, point) : NULL;
      if (!args || strcmp(args, plain.args)) continue;
      fit.point = point;
      fit.changed = arena_printf(q->arena, "with %s for %s", point, own_given(q));
      *out = choice;
      return fit;
    }
  }
  return first;
}

// ---- defaults in less shared memory -------------------------------------------------------------

// The declared values of a parameter that are less than the one that is resolved, the largest
// first.
static int lower_values(Arena *a, const TemplateInfo *info, const Params *resolved,
                        const char *name, long **out) {
  const char *now = params_get(resolved, name);
  const ParamDecl *p = now ? template_param(info, name) : NULL;
  int n = 0;
  *out = p ? arena_array(a, long, p->nvalues + 1) : NULL;
  for (int k = 0; p && k < p->nvalues; k++) {
    long x = strtol(p->values[k], NULL, 10);
    if (x >= strtol(now, NULL, 10)) continue;
    int at = n++;
    for (; at > 0 && (*out)[at - 1] < x; at--) (*out)[at] = (*out)[at - 1];
    (*out)[at] = x;
  }
  return n;
}

// Buffers are what takes the memory: fewer stages, then fewer warps with as many stages as fit.
static Fit fit_smaller(PlannerQuestion *q, const TemplateInfo *info, PlannerChoice *out,
                       Fit first) {
  Arena *a = q->arena;
  long *stages, *warps;
  int nstages = lower_values(a, info, &first.resolved, "stages", &stages);
  int nwarps = lower_values(a, info, &first.resolved, "warps", &warps);
  for (int w = -1; w < nwarps; w++)
    for (int k = w < 0 ? 0 : -1; k < nstages; k++) {
      const char *fewer = w < 0 ? "" : arena_printf(a, "warps=%ld", warps[w]);
      const char *space = w < 0 ? "" : " ", *point = fewer;
      if (k >= 0) point = arena_printf(a, "%s%sstages=%ld", fewer, space, stages[k]);
      Fit fit = planner_fit_once(q, info->name, point, true, out);
      fit.point = point;
      fit.changed = arena_printf(a, "with %s to fit its shared memory", point);
      if (fit.step == FIT_DONE) return fit;
    }
  return first;
}

// ---- tiles that hold a group --------------------------------------------------------------------

static bool gives_one_of(const PlannerQuestion *q, const char *point) {
  Params named = {0};
  Diag *quiet = diag_new();
  bool given = parse_params(q->arena, point, &named, quiet) != ST_OK;
  for (int i = 0; q->ask->given && i < named.n; i++)
    given = given || params_get(q->ask->given, named.v[i].name);
  diag_free(quiet);
  return given;
}

// Rows that share K and V and do not fit a tile read them again: a template says which larger tile
// was measured to be worth it (docs/ladder.md, R4).
static Fit fit_rows(PlannerQuestion *q, const TemplateInfo *info, PlannerChoice *out, Fit first) {
  PlannerChoice choice = *out;
  const char *point = info->group, *was = first.changed;
  const char *tile = params_get(&first.resolved, "tile_q");
  int64_t rows = 0;
  if (!info->group || !*info->group || !tile || gives_one_of(q, info->group)) return first;
  if (!problem_whole(q->problem, "rows", &rows) || rows <= strtol(tile, NULL, 10)) return first;
  if (first.point) point = arena_printf(q->arena, "%s %s", first.point, point);
  Fit fit = planner_fit_once(q, info->name, point, true, &choice);
  if (fit.step != FIT_DONE) return first;
  fit.point = point;
  fit.changed = arena_printf(q->arena, "%s%swith %s for the %lld rows of a KV head",
                             was ? was : "", was ? ", " : "", info->group, (long long)rows);
  *out = choice;
  return fit;
}

// ---- items in many pieces -----------------------------------------------------------------------

// One block merges an item's pieces in a time that grows with their number and their bytes; a
// second launch, over the whole machine, takes about 3 us (docs/measurements.md, "Pieces").
static Fit fit_many_pieces(PlannerQuestion *q, const char *name, PlannerChoice *out, Fit first) {
  enum { MANY_PIECES = 8, FUSED_BYTES = 64 << 10 };
  static const char *const changes[] = {"fused=0 overlap=1", "fused=0"};
  const char *fused = params_get(&first.resolved, "fused"), *was = first.changed;
  bool given = q->ask->given && params_get(q->ask->given, "fused");
  if (first.pieces < MANY_PIECES || first.piece_bytes <= FUSED_BYTES) return first;
  if (given || !fused || strcmp(fused, "1")) return first;
  for (int i = 0; i < 2; i++) {
    PlannerChoice choice = *out;
    const char *more = changes[i], *point = more;
    if (first.point) point = arena_printf(q->arena, "%s %s", first.point, more);
    Fit fit = planner_fit_once(q, name, point, true, &choice);
    if (fit.step != FIT_DONE) continue;
    fit.changed = arena_printf(q->arena, "%s%swith %s to merge the %lld pieces of an item",
                               was ? was : "", was ? ", " : "", more, (long long)first.pieces);
    *out = choice;
    return fit;
  }
  return first;
}

// ---- all of them --------------------------------------------------------------------------------

Fit planner_change(PlannerQuestion *q, const TemplateInfo *info, PlannerChoice *out, Fit fit) {
  if (fit.step == FIT_PARAMS) fit = fit_given(q, info, out, fit);
  if (fit.too_large) fit = fit_smaller(q, info, out, fit);
  if (fit.step == FIT_DONE) fit = fit_rows(q, info, out, fit);
  return fit.step == FIT_DONE ? fit_many_pieces(q, info->name, out, fit) : fit;
}
