// The planner's table, read.
#include "planner.h"

#include <string.h>

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
  if (memchr(text, 0, len)) return diag_error(d, at, "a planner row has a NUL in it");
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

size_t planner_bom(const Source *src) {
  static const char bom[] = "\xef\xbb\xbf";
  return src->len >= BOM_BYTES && !memcmp(src->text, bom, BOM_BYTES) ? BOM_BYTES : 0;
}

Status planner_parse(Arena *a, const Source *src, PlannerTable *out, Diag *d) {
  Status st = ST_OK;
  for (uint32_t line = 1; line <= src->nlines; line++) {
    size_t len;
    const char *text = source_line(src, line, &len);
    size_t bom = line == 1 ? planner_bom(src) : 0, blank = 0;
    text += bom, len -= bom;
    while (blank < len && (text[blank] == ' ' || text[blank] == '\t')) blank++;
    if (blank == len || text[blank] == '#') continue;
    Status row = read_row(a, src, line, text, len, out, d);
    if (row) st = row;
  }
  return st;
}
