// Rows of the planner's table from what sweeps stored.
#include <stdlib.h>
#include <string.h>

#include "planner.h"
#include "results.h"
#include "tune.h"
#include "wire.h"

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

// A row with clusters is none where its problem has more items than the least one of its shape.
static bool holds_for_shape(Session *s, Arena *a, const Run *r, const Params *fields) {
  PlannerRated row;
  return !planner_rate(s, a, row_text(a, r->template_name, r->problem, fields), &row) ||
         planner_row_clusters(s, a, &row.row, &row.least, r->problem);
}

const char *planner_row_of(Session *s, Arena *a, const Run *r, const Params *rows, int nrows) {
  const Params *best = NULL;
  if (!planner_takes(s, r->template_name)) return NULL;
  for (int i = 0; i < nrows; i++) {
    if (strcmp(result_text(&rows[i], "kind"), "ok") || wire_number(&rows[i], "modelled")) continue;
    bool better = !best || wire_number(&rows[i], "median_us") < wire_number(best, "median_us");
    if (better && holds_for_shape(s, a, r, &rows[i])) best = &rows[i];
  }
  return best ? row_text(a, r->template_name, r->problem, best) : NULL;
}

// ---- a store ------------------------------------------------------------------------------------

static const char *const left_texts[LEFT_COUNT] = {
    [LEFT_MODELLED] = "result%s whose times sim modelled",
    [LEFT_FAILED] = "result%s that did not pass",
    [LEFT_BUILD] = "result%s of a hook or a raised target",
    [LEFT_GRID] = "result%s of a fixed grid",
    [LEFT_CLUSTERS] = ("result%s of clusters where lengths differ, or their shape has problems of "
                       "fewer items"),
    [LEFT_TEMPLATE] = "result%s of templates that the planner does not take",
    [LEFT_UNREADABLE] = "result%s that make no row",
    [LEFT_UNBUILT] = "result%s whose variants can't be built any more",
    [LEFT_OLDER] = "result%s of an older text, where there are some of the present one",
    [LEFT_WARM] = "result%s from a warm L2, where there are some from a cold one",
    [LEFT_EAGER] = "result%s of single launches, where there are some by graph replay",
    [LEFT_UNIT] = "result%s in GB/s or GFLOP/s, where there are some in the other one",
    [LEFT_SLOWER] = "result%s no faster than another of their template and shape",
    [LEFT_DAMAGED] = "damaged line%s",
};

const char *planner_left_text(Arena *a, PlannerLeft why, int n) {
  const char *text = left_texts[why], *at = strstr(text, "%s");
  return arena_printf(a, "%d %.*s%s%s", n, (int)(at - text), text, plural(n), at + 2);
}

const char *planner_left_all(Arena *a, const int left[LEFT_COUNT]) {
  const char *all = NULL;
  for (int i = 0; i < LEFT_COUNT; i++)
    if (left[i])
      all = arena_printf(a, "%s%s%s", all ? all : "", all ? ", " : "",
                         planner_left_text(a, (PlannerLeft)i, left[i]));
  return all;
}

bool planner_takes(Session *s, const char *template_name) {
  const TemplateInfo *t;
  Diag *quiet = diag_new();
  Status st = session_template(s, template_name, &t, quiet);
  diag_free(quiet);
  return !st && (t->kind == KIND_PREFILL || t->kind == KIND_DECODE);
}

// Why a result can't be a row, LEFT_COUNT where it can.
static PlannerLeft left_for(Session *s, const Params *r) {
  if (wire_number(r, "modelled")) return LEFT_MODELLED;
  if (!result_passed(r)) return LEFT_FAILED;
  if (*result_text(r, "hook") || *result_text(r, "target")) return LEFT_BUILD;
  if (wire_number(r, "grid")) return LEFT_GRID;
  return planner_takes(s, result_text(r, "template")) ? LEFT_COUNT : LEFT_TEMPLATE;
}

static PlannerLeft rate_result(Session *s, Arena *a, const Params *r, PlannerRated *out) {
  Problem *p;
  Diag *quiet = diag_new();
  Status st = problem_parse(a, result_text(r, "problem"), &p, quiet);
  diag_free(quiet);
  if (st || !planner_rate(s, a, row_text(a, result_text(r, "template"), p, r), out))
    return LEFT_UNREADABLE;
  if (out->made == TEXT_NONE) return LEFT_UNBUILT;
  if (!planner_row_clusters(s, a, &out->row, &out->least, p)) return LEFT_CLUSTERS;
  out->rate = wire_number(r, "rate"); // with all digits
  return LEFT_COUNT;
}

// ---- the best of them ---------------------------------------------------------------------------

typedef struct Best {
  PlannerRated *v; int n;
  int *left;
} Best;

static void add_result(Best *b, const PlannerRated *found) {
  int at = 0;
  while (at < b->n && !planner_rivals(&b->v[at], found)) at++;
  if (at == b->n) {
    b->v[b->n++] = *found;
    return;
  }
  PlannerLeft why = planner_behind(&b->v[at], found); // why the one that was best is not
  PlannerLeft other = planner_behind(found, &b->v[at]); // equal ones: neither has a reason
  b->left[why < LEFT_COUNT ? why : other < LEFT_COUNT ? other : LEFT_SLOWER]++;
  if (why < LEFT_COUNT) b->v[at] = *found;
}

// The row with clusters stands in front of the one without, which is for the problems that it does
// not hold for; one that is no better is none.
static void push_rows(Arena *a, const Best *b, int at, PlannerRows *out) {
  int other = 0;
  const PlannerRated *x = &b->v[at];
  while (other < b->n && (other == at || !planner_same_key(&b->v[other].row, &x->row))) other++;
  if (other < at) return; // with that one
  const PlannerRated *y = other < b->n ? &b->v[other] : NULL;
  if (y && !x->least.clusters) x = y, y = &b->v[at];
  bool better = !y || planner_behind(y, x) < LEFT_COUNT;
  PlannerLeft why = better ? LEFT_COUNT : planner_behind(x, y);
  if (better) *arena_push(a, out->v, out->n, out->cap) = x->text;
  else out->left[why < LEFT_COUNT ? why : LEFT_SLOWER]++;
  if (y) *arena_push(a, out->v, out->n, out->cap) = y->text;
}

Status planner_rows_from(Session *s, Arena *a, const char *store, PlannerRows *out, Diag *d) {
  Results all;
  *out = (PlannerRows){0};
  Status st = results_read(a, store, false, &all, d);
  if (st) return st;
  out->left[LEFT_DAMAGED] = all.damaged;
  Best best = {.v = arena_array(a, PlannerRated, all.n + 1), .left = out->left};
  for (int i = 0; i < all.n; i++) {
    PlannerRated found;
    PlannerLeft left = left_for(s, &all.v[i]);
    if (left == LEFT_COUNT) left = rate_result(s, a, &all.v[i], &found);
    if (left < LEFT_COUNT) out->left[left]++;
    else add_result(&best, &found);
  }
  for (int i = 0; i < best.n; i++) push_rows(a, &best, i, out);
  if (out->n) return ST_OK;
  const char *left = planner_left_all(a, out->left);
  if (!left) return diag_fail(d, ST_INPUT, "%s: holds no result", store);
  bool modelled = out->left[LEFT_MODELLED] > 0;
  const char *why = modelled ? "; a row of the planner's table is a measurement" : "";
  return diag_fail(d, ST_INPUT, "%s: makes no row: left out: %s%s", store, left, why);
}
