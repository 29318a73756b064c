// The planner's table.
#include "planner.h"

#include <stdlib.h>
#include <string.h>

#include "tune.h"
#include "worker.h"

// ---- shapes -------------------------------------------------------------------------------------

static int64_t bucket(int64_t n) {
  int64_t b = n > 0;
  while (b > 0 && b <= n / 2) b *= 2;
  return b;
}

char *planner_shape(Arena *a, const Problem *p) {
  int64_t hq = problem_int(p, "heads_q", 1), hkv = problem_int(p, "heads_kv", hq);
  int64_t sq = problem_int(p, "seqlen_q", 1);
  const char *kv = p->has_dtype_kv && p->dtype_kv != p->dtype ? dtype_name(p->dtype_kv) : NULL;
  return arena_printf(a, "dtype=%s%s%s d=%lld group=%lld causal=%lld sq=%lld sk=%lld work=%lld",
                      p->has_dtype ? dtype_name(p->dtype) : "f32", kv ? "/" : "", kv ? kv : "",
                      (long long)problem_int(p, "head_dim", 0),
                      (long long)(hkv > 0 ? hq / hkv : 0),
                      (long long)problem_int(p, "causal", 0), (long long)bucket(sq),
                      (long long)bucket(problem_int(p, "seqlen_k", 0)),
                      (long long)bucket(problem_int(p, "batch", 1) * hkv));
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

// One query of 16-bit elements: docs/measurements.md has decode_mma ahead where there are fewer items
// (sequence, KV head) than an H200 has SMs, decode_span elsewhere and by far where lengths differ.
static const char *default_template(const Problem *p) {
  enum { SMS = 132 };
  if (problem_int(p, "seqlen_q", 1) != 1) return "prefill_thread";
  int64_t d = problem_int(p, "head_dim", 0);
  bool halves = p->has_dtype && dtype_bytes(p->dtype) == 2;
  if (!halves || !(d == 64 || d == 96 || d == 128 || d == 192 || d == 256)) return "decode_splitk";
  bool eight = dtype_bytes(problem_kv_dtype(p, p->dtype)) == 1;
  int64_t items = problem_int(p, "batch", 1) * problem_int(p, "heads_kv", 1);
  return eight || problem_varlen(p) || items >= SMS ? "decode_span" : "decode_mma";
}

static Status point_of(Session *s, Arena *a, const char *template_name, const char *params,
                       const Problem *p, PlannerChoice *out, Diag *d) {
  Tuner scratch = {.session = s, .arena = a}; // only to read the point
  Run run = {.template_name = template_name, .problem = p};
  out->template_name = template_name;
  out->params = (Params){0};
  return tune_point(&scratch, &run, params, &out->params, &out->problem, d);
}

static void set_given(Arena *a, const PlannerAsk *ask, PlannerChoice *out) {
  for (int i = 0; ask->given && i < ask->given->n; i++)
    params_set(a, &out->params, ask->given->v[i].name, ask->given->v[i].value);
}

// The problem with what it leaves open as the template's parameters have it: the shape names an
// element type and a head size even where the asker leaves them to the template.
static Status completed(Session *s, Arena *a, const char *template_name, const PlannerAsk *ask,
                        const Problem *p, Problem **out, Diag *d) {
  const TemplateInfo *info;
  PlannerChoice asked = {0};
  Params resolved = {0};
  const char *why_not; // a failing constraint is told by whoever builds it
  *out = problem_copy(a, p);
  set_given(a, ask, &asked);
  Status st = session_template(s, template_name, &info, d);
  if (!st) st = problem_fix_params(a, p, info, &asked.params, d);
  if (!st)
    st = variant_legal(s, template_name, &asked.params, NULL, a, &resolved, &why_not, d);
  if (!st) problem_fill_from_params(*out, &resolved);
  return st;
}

// Whether what the row's parameters make, with those given, is the text that was measured.
static const char *why_not_text(Session *s, Arena *a, const PlannerRow *r, const PlannerAsk *ask,
                                const Problem *p, PlannerChoice *choice, Diag *quiet) {
  Operator *op = NULL;
  Status st = point_of(s, a, r->template_name, r->params, p, choice, quiet);
  set_given(a, ask, choice);
  int64_t chunks = st ? 0 : problem_int(choice->problem, "chunks", 0);
  if (!st && problem_gives(p, "chunks") && problem_int(p, "chunks", 0) != chunks)
    return arena_printf(a, "measured with chunks=%lld", (long long)chunks);
  if (!st) st = operator_make(s, r->template_name, &choice->params, choice->problem, NULL, &op,
                              quiet);
  const char *why = NULL;
  if (st)
    why = arena_printf(a, "can't be built any more: %s",
                       quiet->first ? quiet->first->what : "no reason given");
  else if (strcmp(op->step[0].variant->hash, r->hash))
    why = ask->given && ask->given->n ? "measured with other parameters than those given"
                                      : "the generator makes another text now";
  operator_free(op);
  return why;
}

// NULL when the row holds, else why it does not.  The generator's hash comes last: it costs a build.
static const char *why_not(Session *s, Arena *a, const PlannerRow *r, const PlannerAsk *ask,
                           const Problem *p, const DeviceInfo *dev, PlannerChoice *choice) {
  if (strcmp(r->device, dev->name)) return arena_printf(a, "measured on %s", r->device);
  if (strcmp(r->driver, dev->driver))
    return arena_printf(a, "measured with driver %s, this is %s", r->driver, dev->driver);
  Diag *quiet = diag_new();
  const char *why = why_not_text(s, a, r, ask, p, choice, quiet);
  if (why) why = arena_strdup(a, why); // it may be the Diag's
  diag_free(quiet);
  return why;
}

Status planner_choose(Session *s, Arena *a, const PlannerTable *t, const PlannerAsk *ask,
                      const Problem *given, const DeviceInfo *dev, PlannerChoice *out, Diag *d) {
  *out = (PlannerChoice){0};
  const char *name = ask->template_name ? ask->template_name : default_template(given);
  Problem *p;
  Status st = completed(s, a, name, ask, given, &p, d);
  if (st) return st;
  char *shape = planner_shape(a, p);
  for (int i = 0; i < t->n; i++) {
    const PlannerRow *r = &t->v[i];
    if (strcmp(r->shape, shape)) continue;
    if (ask->template_name && strcmp(r->template_name, ask->template_name)) continue;
    const char *why = why_not(s, a, r, ask, p, dev, out);
    if (!why) {
      out->row = r;
      out->why = arena_printf(a, "%s:%u: %s", r->file, r->line, r->measured);
      return ST_OK;
    }
    *arena_push(a, out->passed, out->npassed, out->passed_cap) =
        arena_printf(a, "%s:%u: %s", r->file, r->line, why);
  }
  out->why = arena_printf(a, "no measurement for %s on %s: the template's defaults", shape,
                          dev->name);
  st = point_of(s, a, name, "", p, out, d);
  set_given(a, ask, out);
  return st;
}

const char *planner_source(const PlannerChoice *c) { return c->row ? "tuned" : "default"; }

// ---- making rows --------------------------------------------------------------------------------

static const char *field(const Params *p, const char *name) {
  const char *v = params_get(p, name);
  return v ? v : "";
}

const char *planner_row_of(Arena *a, const Run *r, const Params *rows, int nrows) {
  const Params *best = NULL;
  for (int i = 0; i < nrows; i++) {
    if (strcmp(field(&rows[i], "kind"), "ok") || wire_number(&rows[i], "modelled")) continue;
    if (!best || wire_number(&rows[i], "median_us") < wire_number(best, "median_us"))
      best = &rows[i];
  }
  if (!best) return NULL;
  const char *point = field(best, "point");
  return arena_printf(a, "%s | %s | %s | %s | %s | %s | %.2f us, %.1f %s, %.1f %% of roof, %s",
                      field(best, "device_name"), field(best, "driver"), field(best, "hash"),
                      r->template_name, planner_shape(a, r->problem),
                      strcmp(point, "defaults") ? point : "", wire_number(best, "median_us"),
                      wire_number(best, "rate"),
                      wire_number(best, "by_bytes") ? "GB/s" : "GFLOP/s",
                      100 * wire_number(best, "rate") / wire_number(best, "roof"), utc_now(a));
}
