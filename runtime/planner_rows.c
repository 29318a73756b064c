// Rows of the planner's table from what sweeps stored.
#include <stdlib.h>
#include <string.h>

#include "planner.h"
#include "results.h"
#include "tune.h"
#include "worker.h"

// ---- one row ------------------------------------------------------------------------------------

// A variant's id is the template's name and all parameters.
static Params built_with(Arena *a, const char *id) {
  Params params = {0};
  Diag *quiet = diag_new();
  char *save = NULL, *copy = arena_strdup(a, id);
  strtok_r(copy, " ", &save); // the template
  for (char *w = strtok_r(NULL, " ", &save); w; w = strtok_r(NULL, " ", &save))
    if (params_parse(a, &params, w, quiet)) break;
  diag_free(quiet);
  return params;
}

static const char *measured(Arena *a, const Params *r) {
  bool graph = wire_number(r, "graph") != 0, cold = wire_number(r, "cold") != 0;
  double rate = wire_number(r, "rate"), roof = wire_number(r, "roof");
  const char *when = result_text(r, "stored");
  if (!*when) when = result_text(r, "time");
  return arena_printf(a, "%.2f us%s%s, %.1f %s, %.1f %% of roof, %s", wire_number(r, "median_us"),
                      graph ? " by graph replay" : "", cold ? "" : " from a warm L2", rate,
                      wire_number(r, "by_bytes") ? "GB/s" : "GFLOP/s",
                      roof > 0 ? 100 * rate / roof : 0, *when ? when : utc_now(a));
}

// The point, and the chunks where the problem pins them.
static const char *row_params(Arena *a, const Problem *p, const char *point) {
  if (!strcmp(point, "defaults")) point = "";
  if (!problem_gives(p, "chunks") || !strncmp(point, "chunks=", 7) || strstr(point, " chunks="))
    return point;
  return arena_printf(a, "%s%schunks=%lld", point, *point ? " " : "",
                      (long long)problem_int(p, "chunks", 0));
}

static const char *row_text(Arena *a, const char *template_name, const Problem *p,
                            const Params *r) {
  Params built = built_with(a, result_text(r, "id"));
  return arena_printf(a, "%s | %s | %s | %s | %s | %s | %s", result_text(r, "device_name"),
                      result_text(r, "driver"), result_text(r, "hash"), template_name,
                      planner_shape_of(a, p, &built),
                      row_params(a, p, result_text(r, "point")), measured(a, r));
}

const char *planner_row_of(Arena *a, const Run *r, const Params *rows, int nrows) {
  const Params *best = NULL;
  for (int i = 0; i < nrows; i++) {
    if (strcmp(result_text(&rows[i], "kind"), "ok") || wire_number(&rows[i], "modelled")) continue;
    if (!best || wire_number(&rows[i], "median_us") < wire_number(best, "median_us"))
      best = &rows[i];
  }
  return best ? row_text(a, r->template_name, r->problem, best) : NULL;
}

// ---- a store ------------------------------------------------------------------------------------

typedef struct Best {
  const char *key, *text;
  double rate;
} Best;

// Device, driver, template and shape of a row's text.
static const char *key_of(Arena *a, const PlannerRow *r) {
  return arena_printf(a, "%s | %s | %s | %s", r->device, r->driver, r->template_name, r->shape);
}

static bool read_row_text(Arena *a, const char *text, PlannerRow *out) {
  PlannerTable t = {0};
  Diag *quiet = diag_new();
  Status st = planner_parse(a, source_new(a, "row", text, strlen(text)), &t, quiet);
  diag_free(quiet);
  if (st || t.n != 1) return false;
  *out = t.v[0];
  return true;
}

// A result as a row's text, NULL where it can't be one.
static const char *row_of_result(Arena *a, const Params *r, PlannerRows *out) {
  Problem *p;
  PlannerRow parsed;
  if (wire_number(r, "modelled")) return out->modelled++, NULL;
  bool plain = !*result_text(r, "hook") && !*result_text(r, "target");
  if (!result_passed(r) || !plain) return out->other++, NULL;
  Diag *quiet = diag_new();
  Status st = problem_parse(a, result_text(r, "problem"), &p, quiet);
  diag_free(quiet);
  const char *text = st ? NULL : row_text(a, result_text(r, "template"), p, r);
  if (!text || !read_row_text(a, text, &parsed)) return out->other++, NULL;
  return text;
}

Status planner_rows_from(Arena *a, const char *store, PlannerRows *out, Diag *d) {
  Results all;
  *out = (PlannerRows){0};
  Status st = results_read(a, store, false, &all, d);
  if (st) return st;
  out->damaged = all.damaged;
  Best *best = arena_array(a, Best, all.n + 1);
  int n = 0;
  for (int i = 0; i < all.n; i++) {
    PlannerRow parsed;
    const char *text = row_of_result(a, &all.v[i], out);
    if (!text || !read_row_text(a, text, &parsed)) continue;
    Best found = {key_of(a, &parsed), text, wire_number(&all.v[i], "rate")};
    int at = 0;
    while (at < n && strcmp(best[at].key, found.key)) at++;
    if (at == n) best[n++] = found;
    else if (found.rate > best[at].rate) best[at] = found;
  }
  for (int i = 0; i < n; i++) *arena_push(a, out->v, out->n, out->cap) = best[i].text;
  if (n) return ST_OK;
  if (out->modelled)
    return diag_fail(d, ST_INPUT, "%s: %d results, all with times that sim modelled: a row of the "
                     "planner's table is a measurement", store, out->modelled);
  return diag_fail(d, ST_INPUT, "%s: no result that was verified and timed", store);
}

// ---- into a table -------------------------------------------------------------------------------

// GFLOP/s or GB/s that the last column names; 0 where it names none.
static double rate_of(const char *text) {
  static const struct { const char *unit; double factor; } units[] = {
      {" GB/s", 1}, {" GFLOP/s", 1}, {" TFLOP/s", 1e3}};
  for (int i = 0; i < 3; i++) {
    const char *at = strstr(text, units[i].unit);
    if (!at) continue;
    while (at > text && strchr("0123456789.", at[-1])) at--;
    return strtod(at, NULL) * units[i].factor;
  }
  return 0;
}

typedef struct Lines {
  const char **v; int n, cap;
} Lines;

static void lines_insert(Arena *a, Lines *l, int at, const char *text) {
  *arena_push(a, l->v, l->n, l->cap) = text;
  memmove(l->v + at + 1, l->v + at, sizeof *l->v * (size_t)(l->n - 1 - at));
  l->v[at] = text;
}

static void lines_remove(Lines *l, int at) {
  memmove(l->v + at, l->v + at + 1, sizeof *l->v * (size_t)(--l->n - at));
}

static bool row_at(Arena *a, const Lines *l, int at, PlannerRow *out) {
  const char *text = l->v[at] + strspn(l->v[at], " \t");
  return *text && *text != '#' && read_row_text(a, text, out);
}

static bool same_place(const PlannerRow *x, const PlannerRow *y) {
  return !strcmp(x->device, y->device) && !strcmp(x->driver, y->driver) &&
         !strcmp(x->shape, y->shape);
}

// Before the first slower row of another template, else behind the last faster one, else at `gone`,
// where the row of this template stood, else at the end.
static int place_for(Arena *a, const Lines *l, const PlannerRow *row, int gone) {
  int behind = -1;
  for (int i = 0; i < l->n; i++) {
    PlannerRow r;
    if (!row_at(a, l, i, &r) || !same_place(&r, row)) continue;
    double rate = rate_of(r.measured);
    if (rate > 0 && rate < rate_of(row->measured)) return i;
    behind = i + 1;
  }
  return behind >= 0 ? behind : gone >= 0 ? gone : l->n;
}

// A row of the table that is faster and still of the present text.
static bool better_there(Session *s, Arena *a, const Lines *l, const PlannerRow *row) {
  const char *key = key_of(a, row), *why;
  for (int i = 0; i < l->n; i++) {
    PlannerRow old;
    if (row_at(a, l, i, &old) && !strcmp(key_of(a, &old), key) &&
        rate_of(old.measured) > rate_of(row->measured) &&
        planner_row_text(s, a, &old, &why) == TEXT_SAME)
      return true;
  }
  return false;
}

static void merge_row(Session *s, Arena *a, Lines *l, const char *text, PlannerMerge *done) {
  PlannerRow row, old;
  int gone = -1;
  if (!read_row_text(a, text, &row)) return;
  if (better_there(s, a, l, &row)) {
    done->kept++;
    return;
  }
  for (int i = l->n - 1; i >= 0; i--)
    if (row_at(a, l, i, &old) && !strcmp(key_of(a, &old), key_of(a, &row)))
      lines_remove(l, gone = i);
  done->added += gone < 0;
  done->replaced += gone >= 0;
  lines_insert(a, l, place_for(a, l, &row, gone), text);
}

Status planner_merge(Session *s, Arena *a, const Source *table, const PlannerRows *rows,
                     const char **out, PlannerMerge *done, Diag *d) {
  PlannerTable good = {0};
  Lines l = {0};
  *done = (PlannerMerge){0};
  if (table) {
    Status st = planner_parse(a, table, &good, d); // what can't be read is not written over
    if (st) return st;
    for (uint32_t i = 1; i <= table->nlines; i++) {
      size_t len;
      const char *text = source_line(table, i, &len);
      *arena_push(a, l.v, l.n, l.cap) = arena_strndup(a, text, len);
    }
  }
  for (int i = 0; i < rows->n; i++) merge_row(s, a, &l, rows->v[i], done);
  size_t bytes = 1;
  for (int i = 0; i < l.n; i++) bytes += strlen(l.v[i]) + 1;
  char *text = arena_alloc(a, bytes), *to = text;
  for (int i = 0; i < l.n; i++) {
    size_t n = strlen(l.v[i]);
    memcpy(to, l.v[i], n);
    to += n;
    *to++ = '\n';
  }
  *to = 0;
  *out = text;
  return ST_OK;
}
