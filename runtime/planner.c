// The planner's table.
#include "planner.h"

#include <stdlib.h>
#include <string.h>

// ---- shapes -------------------------------------------------------------------------------------

static int64_t bucket(int64_t n) {
  int64_t b = n > 0;
  while (b > 0 && b <= n / 2) b *= 2;
  return b;
}

// A rule that makes another text (factors of 8-bit inputs do not), as the shape names it.
static const char *rule_word(const ProblemRule *r) {
  const ProblemName *known = problem_name_find(r->param);
  return known ? known->short_name : r->param;
}

char *planner_shape(Arena *a, const Problem *p) {
  int64_t hq = problem_int(p, "heads_q", 1), hkv = problem_int(p, "heads_kv", hq);
  int64_t sq = problem_int(p, "seqlen_q", 1), d = problem_int(p, "head_dim", 0);
  const char *kv = p->has_dtype_kv && p->dtype_kv != p->dtype ? dtype_name(p->dtype_kv) : NULL;
  char *text = arena_printf(
      a, "dtype=%s%s%s d=%lld group=%lld causal=%lld sq=%lld sk=%lld work=%lld",
      p->has_dtype ? dtype_name(p->dtype) : "f32", kv ? "/" : "", kv ? kv : "", (long long)d,
      (long long)(hkv > 0 ? hq / hkv : 0), (long long)problem_int(p, "causal", 0),
      (long long)bucket(sq), (long long)bucket(problem_int(p, "seqlen_k", 0)),
      (long long)bucket(problem_int(p, "batch", 1) * hkv));
  if (problem_int(p, "head_dim_v", d) != d)
    text = arena_printf(a, "%s dv=%lld", text, (long long)problem_head_dim_v(p));
  for (int i = 0; i < problem_nrules; i++)
    if (problem_rules[i].flag && problem_rules[i].asked(p))
      text = arena_printf(a, "%s %s=1", text, rule_word(&problem_rules[i]));
  return text;
}

// What makes the least problem ask for the rule that a word of the shape names, NULL when it names
// none.
static const char *rule_values(Arena *a, const Param *word, const char *sq, const char *sk) {
  for (int i = 0; i < problem_nrules; i++) {
    const ProblemRule *r = &problem_rules[i];
    if (!r->flag || strcmp(rule_word(r), word->name) || strcmp(word->value, "1")) continue;
    return r->least ? r->least : arena_printf(a, "seqlens_q=%s,seqlens_k=%s", sq, sk);
  }
  return NULL;
}

// The least problem of a shape: its own planner_shape is that text again.
static Status shape_problem(Arena *a, const char *shape, Problem **out, Diag *d) {
  Params w = {0};
  char *save = NULL, *copy = arena_strdup(a, shape);
  const char *text = "b=1";
  for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
    if (params_parse(a, &w, word, d)) return ST_INPUT;
  const char *sq = params_get(&w, "sq"), *sk = params_get(&w, "sk"), *work = params_get(&w, "work");
  const char *group = params_get(&w, "group"), *type = params_get(&w, "dtype"), *kv;
  if (!sq || !sk || !work || !group || !type)
    return diag_fail(d, ST_INPUT, "\"%s\" is no shape", shape);
  long long heads = strtoll(work, NULL, 10), of_kv = heads > 0 ? heads : 1, of_q;
  if (__builtin_mul_overflow(of_kv, strtoll(group, NULL, 10), &of_q))
    return diag_fail(d, ST_INPUT, "\"%s\" is no shape", shape);
  text = arena_printf(a, "b=1,hkv=%lld,hq=%lld,sq=%s,sk=%s,dtype=%.*s", of_kv, of_q, sq, sk,
                      (int)strcspn(type, "/"), type);
  if ((kv = strchr(type, '/'))) text = arena_printf(a, "%s,dtype_kv=%s", text, kv + 1);
  for (int i = 0; i < w.n; i++) {
    const char *name = w.v[i].name, *more = rule_values(a, &w.v[i], sq, sk);
    if (!strcmp(name, "d") || !strcmp(name, "dv") || !strcmp(name, "causal"))
      more = arena_printf(a, "%s=%s", name, w.v[i].value);
    if (more) text = arena_printf(a, "%s,%s", text, more);
  }
  Status st = problem_parse(a, text, out, d);
  if (!st && heads > 0 && strcmp(planner_shape(a, *out), shape))
    return diag_fail(d, ST_INPUT, "\"%s\" is no shape", shape);
  return st;
}

// ---- reading ------------------------------------------------------------------------------------

static char *trimmed(Arena *a, const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  while (end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) end--;
  return arena_strndup(a, p, (size_t)(end - p));
}

enum { COLUMNS = 7 };
static const char *const column_names[COLUMNS] = {"device", "driver", "hash",    "template",
                                                  "shape",  "params", "measured"};

static int split(Arena *a, const char *line, size_t len, const char *cell[COLUMNS]) {
  const char *p = line, *end = line + len;
  int n = 0;
  for (;;) {
    const char *bar = memchr(p, '|', (size_t)(end - p));
    if (n < COLUMNS) cell[n] = trimmed(a, p, bar ? bar : end);
    n++;
    if (!bar) return n;
    p = bar + 1;
  }
}

static bool pairs_only(const char *text) {
  while (*text) {
    size_t n = strcspn(text, " ");
    const char *eq = memchr(text, '=', n);
    if (!eq || eq == text || eq == text + n - 1) return false;
    text += n + strspn(text + n, " ");
  }
  return true;
}

static Status read_row(Arena *a, const Source *src, uint32_t line, const char *text, size_t len,
                       PlannerTable *out, Diag *d) {
  const char *cell[COLUMNS];
  Place at = {.src = src, .line = line};
  int n = split(a, text, len, cell);
  if (n != COLUMNS)
    return diag_error(d, at, "a planner row has %d columns separated by |, this one %d", COLUMNS,
                      n);
  for (int i = 0; i < COLUMNS; i++) {
    bool may_be_empty = i == 1 || i == 5; // no driver's name, no parameters
    if (!cell[i][0] && !may_be_empty)
      return diag_error(d, at, "the column %s is empty", column_names[i]);
  }
  if (strspn(cell[2], "0123456789abcdef") != 16 || cell[2][16])
    return diag_error(d, at, "the hash \"%s\" is not 16 hexadecimal digits", cell[2]);
  for (int i = 4; i <= 5; i++)
    if (!pairs_only(cell[i]))
      return diag_error(d, at, "the column %s is not a list of name=value", column_names[i]);
  *arena_push(a, out->v, out->n, out->cap) =
      (PlannerRow){cell[0], cell[1], cell[2], cell[3], cell[4], cell[5], cell[6], src->name, line};
  return ST_OK;
}

Status planner_parse(Arena *a, const Source *src, PlannerTable *out, Diag *d) {
  Status st = ST_OK;
  for (uint32_t line = 1; line <= src->nlines; line++) {
    size_t len;
    const char *text = source_line(src, line, &len);
    size_t blank = 0;
    while (blank < len && (text[blank] == ' ' || text[blank] == '\t')) blank++;
    if (blank == len || text[blank] == '#') continue;
    Status row = read_row(a, src, line, text, len, out, d);
    if (row) st = row;
  }
  return st;
}

// ---- choosing -----------------------------------------------------------------------------------

// The problem with what it leaves open as the template's parameters have it: the shape names an
// element type and a head size even where the asker leaves them to the template.
static Status completed(Session *s, Arena *a, const PlannerAsk *ask, const Problem *p,
                        Problem **out, Diag *d) {
  const TemplateInfo *info;
  Params params = {0}, resolved = {0};
  const char *why_not; // a failing constraint is told by whoever builds it
  *out = problem_copy(a, p);
  for (int i = 0; ask->given && i < ask->given->n; i++)
    params_set(a, &params, ask->given->v[i].name, ask->given->v[i].value);
  Status st = session_template(s, ask->template_name, &info, d);
  if (!st) st = problem_fix_params(a, p, info, &params, d);
  if (!st)
    st = variant_legal(s, ask->template_name, &params, NULL, a, &resolved, &why_not, d);
  if (!st) problem_fill_from_params(*out, &resolved);
  return st;
}

static bool same_params(const Params *x, const Params *y) {
  for (int i = 0; i < x->n; i++) {
    const char *other = params_get(y, x->v[i].name);
    if (!other || strcmp(x->v[i].value, other)) return false;
  }
  return x->n == y->n;
}

// Whether what was measured can still be built, with those parameters that the asker gives.
static const char *why_not_text(Session *s, Arena *a, const PlannerRow *r, const PlannerAsk *ask,
                                const Problem *p, const DeviceInfo *dev, PlannerChoice *choice) {
  const PlannerAsk plain = {.template_name = r->template_name};
  Fit measured = planner_fit(s, a, r->params, &plain, p, dev, r->template_name, choice);
  if (measured.step != FIT_DONE)
    return arena_printf(a, "can't be built any more: %s", measured.why);
  PlannerChoice defaults = {0};
  Fit asked = planner_fit(s, a, "", &plain, p, dev, r->template_name, &defaults);
  if (asked.step == FIT_DONE && strcmp(asked.args, measured.args))
    return arena_printf(a, "measured with the arguments %s, and the problem has %s", measured.args,
                        asked.args);
  choice->older = strcmp(measured.hash, r->hash) != 0;
  int64_t chunks = problem_int(choice->problem, "chunks", 0);
  if (problem_gives(p, "chunks") && problem_int(p, "chunks", 0) != chunks)
    return arena_printf(a, "measured with chunks=%lld", (long long)chunks);
  if (!(ask->given && ask->given->n) && !ask->build.hook_path && !ask->build.sm) return NULL;
  Fit fit = planner_fit(s, a, r->params, ask, p, dev, r->template_name, choice);
  if (fit.step != FIT_DONE)
    return arena_printf(a, "can't be built with what is given: %s", fit.why);
  if (!same_params(&fit.resolved, &measured.resolved))
    return "measured with other parameters than those given";
  return NULL;
}

// NULL when the row holds, else why it does not.
static const char *why_not(Session *s, Arena *a, const PlannerRow *r, const PlannerAsk *ask,
                           const Problem *p, const DeviceInfo *dev, PlannerChoice *choice) {
  if (strcmp(r->device, dev->name)) return arena_printf(a, "measured on %s", r->device);
  if (strcmp(r->driver, dev->driver))
    return arena_printf(a, "measured with driver %s, this is %s", r->driver, dev->driver);
  return why_not_text(s, a, r, ask, p, dev, choice);
}

// The first row of the problem's shape that holds.
static bool by_row(Session *s, Arena *a, const PlannerTable *t, const PlannerAsk *ask,
                   const Problem *p, const DeviceInfo *dev, PlannerChoice *out) {
  char *shape = planner_shape(a, p);
  for (int i = 0; i < t->n; i++) {
    const PlannerRow *r = &t->v[i];
    if (strcmp(r->shape, shape)) continue;
    if (ask->template_name && strcmp(r->template_name, ask->template_name)) continue;
    const char *why = why_not(s, a, r, ask, p, dev, out);
    if (!why) {
      out->row = r;
      out->why = arena_printf(a, "%s:%u: %s%s%s", r->file, r->line, r->measured,
                              out->older ? "; measured on an older text of the template" : "",
                              ask->build.hook_path ? "; measured without a hook" : "");
      return true;
    }
    *arena_push(a, out->passed, out->npassed, out->passed_cap) =
        arena_printf(a, "%s:%u: %s", r->file, r->line, why);
  }
  out->older = false;
  out->why = arena_printf(a, "no measurement for %s on %s: the template's defaults", shape,
                          dev->name);
  return false;
}

// A template by name: what is wrong with it is told by whoever builds it.
static Status choose_params(Session *s, Arena *a, const PlannerTable *t, const PlannerAsk *ask,
                            const Problem *given, const DeviceInfo *dev, PlannerChoice *out,
                            Diag *d) {
  Problem *p;
  Status st = completed(s, a, ask, given, &p, d);
  if (st || by_row(s, a, t, ask, p, dev, out)) return st;
  out->template_name = ask->template_name;
  out->params = (Params){0};
  out->problem = p;
  for (int i = 0; ask->given && i < ask->given->n; i++)
    params_set(a, &out->params, ask->given->v[i].name, ask->given->v[i].value);
  return ST_OK;
}

Status planner_choose(Session *s, Arena *a, const PlannerTable *t, const PlannerAsk *ask,
                      const Problem *given, const DeviceInfo *dev, PlannerChoice *out, Diag *d) {
  *out = (PlannerChoice){0};
  if (ask->template_name) return choose_params(s, a, t, ask, given, dev, out, d);
  Problem *p = problem_copy(a, given);
  const char *type = ask->given ? params_get(ask->given, "dtype") : NULL;
  if (!p->has_dtype && !type) problem_set_dtype(p, "dtype", DT_F32); // else the template's own says
  PlannerChoice found = {0};
  Fit fit;
  Status st = planner_candidate(s, a, ask, p, dev, &found, &fit, d);
  if (st) return *out = found, st;
  problem_fill_from_params(p, &fit.resolved);
  if (by_row(s, a, t, ask, p, dev, out)) return ST_OK;
  found.why = fit.smaller
                  ? arena_printf(a, "%s, with %s to fit its shared memory", out->why, fit.smaller)
                  : out->why;
  for (int i = 0; i < found.npassed; i++)
    *arena_push(a, out->passed, out->npassed, out->passed_cap) = found.passed[i];
  found.passed = out->passed, found.npassed = out->npassed, found.passed_cap = out->passed_cap;
  *out = found;
  return ST_OK;
}

PlannerText planner_row_text(Session *s, Arena *a, const PlannerRow *r, const char **why) {
  const PlannerAsk ask = {.template_name = r->template_name};
  const DeviceInfo any = {.name = "any"};
  PlannerChoice choice = {0};
  Problem *p = NULL;
  Diag *quiet = diag_new();
  *why = NULL;
  if (shape_problem(a, r->shape, &p, quiet))
    *why = arena_strdup(a, quiet->first ? quiet->first->what : "its shape is no problem");
  diag_free(quiet);
  if (*why) return TEXT_NONE;
  Fit fit = planner_fit(s, a, r->params, &ask, p, &any, r->template_name, &choice);
  *why = fit.why;
  if (fit.step != FIT_DONE) return TEXT_NONE;
  return strcmp(fit.hash, r->hash) ? TEXT_OTHER : TEXT_SAME;
}

const char *planner_source(const PlannerChoice *c) { return c->row ? "tuned" : "default"; }
