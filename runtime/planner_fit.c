// Which template a problem gets: what the templates declare decides, their order too.
#include <limits.h>
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
static Regime regime_of(const PlannerQuestion *q, const Problem *p) {
  const char *varlen = q->ask->given ? params_get(q->ask->given, "varlen") : NULL;
  bool differ = problem_varlen(p) || (varlen && (!strcmp(varlen, "1") || !strcmp(varlen, "true")));
  int64_t items = problem_int(p, "batch", 1) * problem_int(p, "heads_kv", 1);
  if (!few_queries(p)) return REGIME_MANY_QUERIES;
  return differ || items >= PLAN_SMS ? REGIME_MANY_ITEMS : REGIME_FEW_ITEMS;
}

typedef struct Standing {
  bool other_kind, later;
  int rank;
} Standing;

// A template says where it stands among those of its kind (template { rank, first }); what the
// kind that the regime is for can't do (pages, V of another width) the other kind may.
static Standing standing(Regime r, const TemplateInfo *t) {
  TemplateKind own = r == REGIME_MANY_QUERIES ? KIND_PREFILL : KIND_DECODE;
  return (Standing){t->kind != own, t->first != r, t->rank ? t->rank : INT_MAX};
}

static bool before(Standing x, Standing y) {
  if (x.other_kind != y.other_kind) return y.other_kind;
  if ((x.rank == INT_MAX) != (y.rank == INT_MAX)) return y.rank == INT_MAX;
  return x.later != y.later ? y.later : x.rank < y.rank;
}

// The problem at a corner of its bucket: each size the least or (its bit is set) the largest one.
static Problem *corner(const PlannerQuestion *q, int bits) {
  static const char *const names[] = {"seqlen_q", "seqlen_k", "heads_kv"};
  Problem *p = problem_copy(q->arena, q->problem);
  int64_t items = problem_int(p, "batch", 1) * problem_int(p, "heads_kv", 1), group = 1;
  const int64_t size[] = {problem_int(p, "seqlen_q", 1), problem_int(p, "seqlen_k", 0), items};
  problem_whole(p, "rows", &group);
  if (size[0] > 0) group /= size[0];
  for (int i = 0; i < 3; i++) {
    int64_t least = planner_bucket(size[i]);
    problem_set_int(p, names[i], bits >> i & 1 && least ? least + (least - 1) : least);
  }
  problem_set_int(p, "batch", 1);
  problem_set_int(p, "heads_q", problem_int(p, "heads_kv", 1) * group);
  return p;
}

static const TemplateInfo *info_of(const PlannerQuestion *q, const char *name) {
  const TemplateInfo *info;
  Diag *quiet = diag_new();
  Status st = session_template(q->session, name, &info, quiet);
  diag_free(quiet);
  return st ? NULL : info;
}

bool planner_stands_before(const PlannerQuestion *q, const char *name, const char *other) {
  enum { CORNERS = 8 };
  const TemplateInfo *x = info_of(q, name), *y = info_of(q, other);
  if (!x || !y || !x->rank) return false;
  if (x->kind == y->kind && (!y->rank || x->rank < y->rank)) return true;
  for (int i = 0; i < CORNERS; i++) {
    Regime r = regime_of(q, corner(q, i));
    if (before(standing(r, x), standing(r, y))) return true;
  }
  return false;
}

// Every attention template in the regime's order; those that stand alike by name.
static Status candidates(PlannerQuestion *q, const TemplateInfo ***out, int *n, Diag *d) {
  const TemplateInfo **all;
  Regime r = regime_of(q, q->problem);
  int nall;
  Status st = session_templates(q->session, &all, &nall, d);
  if (st) return st;
  *out = arena_array(q->arena, const TemplateInfo *, nall + 1);
  *n = 0;
  for (int k = 0; k < nall; k++) {
    if (all[k]->kind != KIND_PREFILL && all[k]->kind != KIND_DECODE) continue;
    int at = (*n)++;
    for (; at > 0 && before(standing(r, all[k]), standing(r, (*out)[at - 1])); at--)
      (*out)[at] = (*out)[at - 1];
    (*out)[at] = all[k];
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
  PlannerBuilt *b = q->built, *end = b + q->nbuilt;
  while (b < end && (b->whole != whole || strcmp(b->name, name) || strcmp(b->point, point))) b++;
  if (b == end) {
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

// ---- defaults that take what is given ----------------------------------------------------------

static bool declares(const TemplateInfo *info, const char *name) {
  for (int i = 0; i < info->nparams; i++)
    if (!strcmp(info->params[i].name, name)) return true;
  return false;
}

static bool declares_given(const PlannerQuestion *q, const TemplateInfo *info) {
  for (int i = 0; q->ask->given && i < q->ask->given->n; i++)
    if (!declares(info, q->ask->given->v[i].name)) return false;
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
  if (q->plain || !q->ask->given || !declares_given(q, info)) return first;
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
      if (fit.step != FIT_DONE || planner_unasked(q, &fit, NULL)) continue;
      fit.point = point;
      fit.changed = arena_printf(q->arena, "with %s for %s", point, own_given(q));
      *out = choice;
      return fit;
    }
  }
  return first;
}

// ---- tiles that hold a group --------------------------------------------------------------------

// Rows that share K and V and do not fit a tile read them again: decode_fma's tile has as many as
// it may and they ask (docs/ladder.md, R4).  Larger tiles of other templates are not measured.
static Fit fit_rows(PlannerQuestion *q, const char *name, PlannerChoice *out, Fit first) {
  static const char change[] = "tile_q=8";
  PlannerChoice choice = *out;
  const char *point = change, *was = first.changed;
  int64_t rows = 0;
  bool given = q->ask->given && params_get(q->ask->given, "tile_q");
  if (strcmp(name, "decode_fma") || given || !problem_whole(q->problem, "rows", &rows) ||
      rows <= strtol(params_get(&first.resolved, "tile_q"), NULL, 10))
    return first;
  if (first.point) point = arena_printf(q->arena, "%s %s", first.point, change);
  Fit fit = planner_fit_once(q, name, point, true, &choice);
  if (fit.step != FIT_DONE) return first;
  fit.point = point;
  fit.changed = arena_printf(q->arena, "%s%swith %s for the %lld rows of a KV head",
                             was ? was : "", was ? ", " : "", change, (long long)rows);
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

// ---- the first that does ------------------------------------------------------------------------

static bool nearer(const Fit *x, const Fit *y) {
  if (x->has_given != y->has_given) return x->has_given;
  return x->step != y->step ? x->step > y->step : x->reasons < y->reasons;
}

static bool among(const char *name, const char *const *names, int n) {
  for (int i = 0; i < n; i++)
    if (!strcmp(names[i], name)) return true;
  return false;
}

static Status unknown_param(PlannerQuestion *q, const TemplateInfo *const *t, int n,
                            const char *name, Diag *d) {
  const char **names = NULL;
  int nnames = 0, cap = 0;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < t[i]->nparams; k++) {
      if (!strcmp(t[i]->params[k].name, name)) return ST_OK;
      if (!among(t[i]->params[k].name, names, nnames))
        *arena_push(q->arena, names, nnames, cap) = t[i]->params[k].name;
    }
  return diag_fail(d, ST_INPUT, "no template has a parameter \"%s\"%s", name,
                   diag_nearest(d->arena, name, names, nnames));
}

Status planner_candidate(PlannerQuestion *q, PlannerChoice *out, Fit *fit, Diag *d) {
  Arena *a = q->arena;
  const TemplateInfo **t;
  const char *nearest = NULL;
  int n;
  Fit best = {0};
  Status st = candidates(q, &t, &n, d);
  for (int i = 0; q->ask->given && i < q->ask->given->n && !st; i++)
    st = unknown_param(q, t, n, q->ask->given->v[i].name, d);
  if (st) return st;
  for (int i = 0; i < n; i++) {
    const char *name = t[i]->name;
    *fit = planner_fit_once(q, name, "", true, out);
    if (fit->step == FIT_PARAMS) *fit = fit_given(q, t[i], out, *fit);
    if (fit->too_large) *fit = fit_smaller(q, t[i], out, *fit);
    if (fit->step == FIT_DONE) *fit = fit_rows(q, name, out, *fit);
    if (fit->step == FIT_DONE) *fit = fit_many_pieces(q, name, out, *fit);
    const char *why = fit->step == FIT_DONE ? planner_unasked(q, fit, NULL) : NULL;
    if (why) *fit = (Fit){.step = FIT_PARAMS, .reasons = 1,
                          .why = arena_printf(a, "%s always has %s", name, why)};
    if (fit->step == FIT_DONE) return ST_OK;
    fit->has_given = declares_given(q, t[i]);
    *arena_push(a, out->passed, out->npassed, out->passed_cap) = told(a, name, fit->why);
    if (!nearest || nearer(fit, &best)) nearest = name, best = *fit;
  }
  if (!nearest) return diag_fail(d, ST_INPUT, "there is no attention template");
  return diag_fail(d, ST_INPUT, "no template does this on %s; nearest: %s%s", q->dev->name,
                   told(a, nearest, best.why),
                   best.reasons > 1 ? arena_printf(a, " (and %d more)", best.reasons - 1) : "");
}
