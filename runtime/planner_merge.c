// Rows of the planner's table that compete, and where they stand in it.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outfile.h"
#include "planner.h"

// ---- what competes ------------------------------------------------------------------------------

bool planner_same_key(const PlannerRow *x, const PlannerRow *y) {
  return !strcmp(x->device, y->device) && !strcmp(x->driver, y->driver) &&
         !strcmp(x->shape, y->shape) && !strcmp(x->template_name, y->template_name);
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

// GFLOP/s or GB/s that the last column names; 0 where it names none.
static double rate_of(const char *text, bool *by_bytes) {
  static const struct { const char *unit; double factor; bool bytes; } units[] = {
      {" GB/s", 1, true}, {" GFLOP/s", 1, false}, {" TFLOP/s", 1e3, false}};
  *by_bytes = false;
  for (int i = 0; i < 3; i++) {
    const char *at = strstr(text, units[i].unit);
    if (!at) continue;
    while (at > text && strchr("0123456789.", at[-1])) at--;
    *by_bytes = units[i].bytes;
    return strtod(at, NULL) * units[i].factor;
  }
  return 0;
}

// All but what became of its text, which takes a build.
static bool rate_row(Arena *a, const char *text, PlannerRated *out) {
  *out = (PlannerRated){.text = text};
  if (!read_row_text(a, text, &out->row)) return false;
  const char *measured = out->row.measured;
  out->rate = rate_of(measured, &out->by_bytes);
  out->warm = strstr(measured, "from a warm L2") != NULL;
  out->graph = strstr(measured, "by graph replay") != NULL;
  return true;
}

bool planner_rate(Session *s, Arena *a, const char *text, PlannerRated *out) {
  const char *why;
  if (!rate_row(a, text, out)) return false;
  out->made = planner_row_text(s, a, &out->row, &why);
  return true;
}

// Under other conditions a rate says nothing about another one.
static PlannerLeft other_conditions(const PlannerRated *x, const PlannerRated *y) {
  if (x->warm != y->warm) return LEFT_WARM;
  if (x->graph != y->graph) return LEFT_EAGER;
  return x->rate > 0 && y->rate > 0 && x->by_bytes != y->by_bytes ? LEFT_UNIT : LEFT_COUNT;
}

PlannerLeft planner_behind(const PlannerRated *x, const PlannerRated *y) {
  bool old_x = x->made != TEXT_SAME, old_y = y->made != TEXT_SAME;
  if (old_x != old_y) return old_x ? LEFT_OLDER : LEFT_COUNT;
  switch (other_conditions(x, y)) {
  case LEFT_WARM: return x->warm ? LEFT_WARM : LEFT_COUNT;
  case LEFT_EAGER: return x->graph ? LEFT_COUNT : LEFT_EAGER;
  case LEFT_UNIT: return LEFT_COUNT; // no kernel is measured in both
  default: return x->rate < y->rate ? LEFT_SLOWER : LEFT_COUNT;
  }
}

// ---- into a table -------------------------------------------------------------------------------

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

static bool row_at(Arena *a, const Lines *l, int at, PlannerRated *out) {
  const char *text = l->v[at] + strspn(l->v[at], " \t");
  return *text && *text != '#' && rate_row(a, text, out);
}

static bool same_place(const PlannerRow *x, const PlannerRow *y) {
  return !strcmp(x->device, y->device) && !strcmp(x->driver, y->driver) &&
         !strcmp(x->shape, y->shape);
}

// Before the first row of another template that is known to be slower, else behind the last one of
// its shape, else at `gone`, where the row of this template stood, else at the end.
static int place_for(Arena *a, const Lines *l, const PlannerRated *row, int gone) {
  int behind = -1;
  for (int i = 0; i < l->n; i++) {
    PlannerRated r;
    if (!row_at(a, l, i, &r) || !same_place(&r.row, &row->row)) continue;
    bool compare = other_conditions(&r, row) == LEFT_COUNT;
    if (compare && r.rate > 0 && r.rate < row->rate) return i;
    behind = i + 1;
  }
  return behind >= 0 ? behind : gone >= 0 ? gone : l->n;
}

// Why a row that the table has of this template and shape stays, LEFT_COUNT: none does.
static PlannerLeft stays(Session *s, Arena *a, const Lines *l, const PlannerRated *row) {
  const char *why_not;
  for (int i = 0; i < l->n; i++) {
    PlannerRated old;
    if (!row_at(a, l, i, &old) || !planner_same_key(&old.row, &row->row)) continue;
    old.made = planner_row_text(s, a, &old.row, &why_not);
    PlannerLeft why = planner_behind(row, &old);
    bool worth = why != LEFT_SLOWER || old.made == TEXT_SAME; // what is made no more gives way
    if (why < LEFT_COUNT && worth) return why;
  }
  return LEFT_COUNT;
}

static void merge_row(Session *s, Arena *a, Lines *l, const char *text, PlannerMerge *done) {
  PlannerRated row, old;
  int gone = -1;
  if (!planner_rate(s, a, text, &row)) return;
  PlannerLeft why = stays(s, a, l, &row);
  if (why < LEFT_COUNT) {
    done->kept += why == LEFT_SLOWER;
    done->left[why] += why != LEFT_SLOWER;
    return;
  }
  for (int i = l->n - 1; i >= 0; i--)
    if (row_at(a, l, i, &old) && planner_same_key(&old.row, &row.row)) lines_remove(l, gone = i);
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

static Status write_table(Arena *a, const char *path, const char *text, Diag *d) {
  Outfile out;
  Status st = outfile_open(a, path, &out, d);
  if (st) return st;
  fputs(text, out.f);
  return outfile_commit(&out, d);
}

Status planner_put(Session *s, Arena *a, const char *path, const PlannerRows *rows,
                   PlannerMerge *done, Diag *d) {
  Source *table = NULL;
  const char *text;
  int lock; // two that read the same table would each lose the other's rows
  Status st = outfile_lock(a, path, &lock, d);
  if (st) return st;
  if (!access(path, F_OK)) st = source_read(a, path, &table, d);
  if (!st) st = planner_merge(s, a, table, rows, &text, done, d);
  if (!st) st = write_table(a, path, text, d);
  outfile_unlock(lock);
  return st;
}
