// Rows of the planner's table that compete, and where they stand in it.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../gen/number.h"
#include "outfile.h"
#include "planner.h"

// ---- what competes ------------------------------------------------------------------------------

bool planner_same_key(const PlannerRow *x, const PlannerRow *y) {
  return !strcmp(x->device, y->device) && !strcmp(x->driver, y->driver) &&
         !strcmp(x->shape, y->shape) && !strcmp(x->template_name, y->template_name);
}

bool planner_rivals(const PlannerRated *x, const PlannerRated *y) {
  return planner_same_key(&x->row, &y->row) && !x->least.clusters == !y->least.clusters;
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
    return number_parse(at, NULL) * units[i].factor;
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

static void make_row(Session *s, Arena *a, PlannerRated *out) {
  out->least = planner_row_fit(s, a, &out->row);
  bool same = out->least.step == FIT_DONE && !strcmp(out->least.hash, out->row.hash);
  out->made = out->least.step != FIT_DONE ? TEXT_NONE : same ? TEXT_SAME : TEXT_OTHER;
}

bool planner_rate(Session *s, Arena *a, const char *text, PlannerRated *out) {
  if (!rate_row(a, text, out)) return false;
  make_row(s, a, out);
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

// A line with the bytes that end it.
typedef struct Line {
  const char *text;
  size_t len;
} Line;

typedef struct Lines {
  Line *v; int n, cap;
  const char *end; // of a line that is put in
} Lines;

static void lines_insert(Arena *a, Lines *l, int at, const char *text) {
  const char *line = arena_printf(a, "%s%s", text, l->end);
  *arena_push(a, l->v, l->n, l->cap) = (Line){0};
  memmove(l->v + at + 1, l->v + at, sizeof *l->v * (size_t)(l->n - 1 - at));
  l->v[at] = (Line){line, strlen(line)};
}

static void lines_remove(Lines *l, int at) {
  memmove(l->v + at, l->v + at + 1, sizeof *l->v * (size_t)(--l->n - at));
}

static bool row_at(Arena *a, const Lines *l, int at, PlannerRated *out) {
  const char *text = l->v[at].text;
  size_t n = 0;
  while (n < l->v[at].len && text[n] && !strchr("\r\n", text[n])) n++;
  text = arena_strndup(a, text, n);
  text += strspn(text, " \t");
  return *text && *text != '#' && rate_row(a, text, out);
}

static bool same_place(const PlannerRow *x, const PlannerRow *y) {
  return !strcmp(x->device, y->device) && !strcmp(x->driver, y->driver) &&
         !strcmp(x->shape, y->shape);
}

// Before the first row of its shape that is known to be slower, else behind the last one, else at
// `gone`, where the row whose place it takes stood, else at the end.
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

// A row of this template and shape with which the new one competes: a row without clusters holds
// for whatever one with them does, and not the other way.
static bool rival_at(Session *s, Arena *a, const Lines *l, int at, const PlannerRated *row,
                     PlannerRated *out) {
  if (!row_at(a, l, at, out) || !planner_same_key(&out->row, &row->row)) return false;
  make_row(s, a, out);
  return planner_rivals(out, row) || !out->least.clusters;
}

// Why a row that the table has of this template and shape stays, LEFT_COUNT: none does.
static PlannerLeft stays(Session *s, Arena *a, const Lines *l, const PlannerRated *row) {
  for (int i = 0; i < l->n; i++) {
    PlannerRated old;
    if (!rival_at(s, a, l, i, row, &old)) continue;
    PlannerLeft why = planner_behind(row, &old);
    bool worth = why != LEFT_SLOWER || old.made == TEXT_SAME; // what is made no more gives way
    if (why < LEFT_COUNT && worth) return why;
  }
  return LEFT_COUNT;
}

// Rows whose place the new one takes, and those of clusters that it leaves behind.
static bool gives_way(Session *s, Arena *a, const Lines *l, int at, const PlannerRated *row) {
  PlannerRated old;
  if (!row_at(a, l, at, &old) || !planner_same_key(&old.row, &row->row)) return false;
  make_row(s, a, &old);
  if (planner_rivals(&old, row)) return true;
  return old.least.clusters && planner_behind(&old, row) < LEFT_COUNT;
}

static void merge_row(Session *s, Arena *a, Lines *l, const char *text, PlannerMerge *done) {
  PlannerRated row;
  int gone = -1;
  if (!planner_rate(s, a, text, &row)) return;
  PlannerLeft why = stays(s, a, l, &row);
  if (why < LEFT_COUNT) {
    done->kept += why == LEFT_SLOWER;
    done->left[why] += why != LEFT_SLOWER;
    return;
  }
  for (int i = l->n - 1; i >= 0; i--)
    if (gives_way(s, a, l, i, &row)) lines_remove(l, gone = i);
  done->added += gone < 0;
  done->replaced += gone >= 0;
  lines_insert(a, l, place_for(a, l, &row, gone), text);
}

// The last line of a text may have no end: it gets one, since others may come behind it.
static void end_last(Arena *a, Lines *l) {
  Line *last = &l->v[l->n - 1];
  if (last->text[last->len - 1] == '\n') return;
  size_t n = strlen(l->end);
  char *ended = arena_alloc(a, last->len + n);
  memcpy(ended, last->text, last->len);
  memcpy(ended + last->len, l->end, n);
  *last = (Line){ended, last->len + n};
}

// Every byte of the table but its byte order mark.
static Lines lines_of(Arena *a, const Source *table) {
  Lines l = {.end = "\n"};
  size_t at = planner_bom(table);
  while (at < table->len) {
    const char *from = table->text + at, *end = memchr(from, '\n', table->len - at);
    size_t n = end ? (size_t)(end - from) + 1 : table->len - at;
    if (!l.n && n > 1 && end && end[-1] == '\r') l.end = "\r\n";
    *arena_push(a, l.v, l.n, l.cap) = (Line){from, n};
    at += n;
  }
  if (l.n) end_last(a, &l);
  return l;
}

static Source *joined(Arena *a, const char *bom, size_t bytes, const Lines *l) {
  for (int i = 0; i < l->n; i++) bytes += l->v[i].len;
  char *text = arena_alloc(a, bytes + 1), *to = text;
  for (const char *p = bom; *p; p++) *to++ = *p;
  for (int i = 0; i < l->n; i++) {
    memcpy(to, l->v[i].text, l->v[i].len);
    to += l->v[i].len;
  }
  *to = 0;
  return source_new(a, "table", text, bytes);
}

Status planner_merge(Session *s, Arena *a, const Source *table, const PlannerRows *rows,
                     Source **out, PlannerMerge *done, Diag *d) {
  PlannerTable good = {0};
  Lines l = {.end = "\n"};
  *done = (PlannerMerge){0};
  if (table) {
    Status st = planner_parse(a, table, &good, d); // what can't be read is not written over
    if (st) return st;
    l = lines_of(a, table);
  }
  for (int i = 0; i < rows->n; i++) merge_row(s, a, &l, rows->v[i], done);
  size_t bom = table ? planner_bom(table) : 0;
  *out = joined(a, arena_strndup(a, bom ? table->text : "", bom), bom, &l);
  return ST_OK;
}

static Status write_table(Arena *a, const char *path, const Source *text, Diag *d) {
  Outfile out;
  Status st = outfile_open(a, path, &out, d);
  if (st) return st;
  fwrite(text->text, 1, text->len, out.f);
  return outfile_commit(&out, d);
}

Status planner_put(Session *s, Arena *a, const char *path, const PlannerRows *rows,
                   PlannerMerge *done, Diag *d) {
  Source *table = NULL, *text;
  int lock; // two that read the same table would each lose the other's rows
  Status st = outfile_lock(a, path, &lock, d);
  if (st) return st;
  bool file = lock >= 0; // what can't be locked (a pipe, a device) is not read before it is written
  if (file && !access(path, F_OK)) st = source_read(a, path, &table, d);
  if (!st) st = planner_merge(s, a, table, rows, &text, done, d);
  if (!st) st = write_table(a, path, text, d);
  outfile_unlock(lock);
  return st;
}
