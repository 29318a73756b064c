#include "diag.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_LIMIT = 20, SHOWN_COLUMNS = 160 };

// ---- Source ------------------------------------------------------------------------------------

Source *source_new(Arena *a, const char *name, const char *text, size_t len) {
  assert(len < UINT32_MAX && text[len] == 0);
  Source *s = arena_new_of(a, Source);
  *s = (Source){.name = name, .text = text, .len = len};
  uint32_t n = 1;
  for (const char *p = text; (p = memchr(p, '\n', len - (size_t)(p - text))); p++) n++;
  if (len && text[len - 1] == '\n') n--; // a final newline ends the last line, it opens none
  s->nlines = n;
  s->line_at = arena_array(a, uint32_t, n);
  const char *p = text;
  for (uint32_t i = 1; i < n; i++) {
    p = (const char *)memchr(p, '\n', len - (size_t)(p - text)) + 1;
    s->line_at[i] = (uint32_t)(p - text);
  }
  return s;
}

const char *source_line(const Source *s, uint32_t line, size_t *len) {
  if (line < 1 || line > s->nlines) return *len = 0, "";
  const char *from = s->text + s->line_at[line - 1];
  const char *end = memchr(from, '\n', s->len - s->line_at[line - 1]);
  size_t n = end ? (size_t)(end - from) : s->len - s->line_at[line - 1];
  if (n && from[n - 1] == '\r') n--;
  *len = n;
  return from;
}

// Reads to the end whatever the file is (a pipe has no size).  NULL: errno says why.
static char *read_all(FILE *in, size_t *len) {
  size_t cap = 64 * 1024, n = 0;
  char *buf = malloc(cap + 1);
  while (buf) {
    n += fread(buf + n, 1, cap - n, in);
    if (n < cap) break;
    if (cap > SOURCE_MOST) break;
    char *more = realloc(buf, cap * 2 + 1);
    if (!more) return free(buf), NULL;
    buf = more;
    cap *= 2;
  }
  if (buf && ferror(in)) return free(buf), NULL;
  *len = n;
  return buf;
}

static Status read_file(Arena *a, FILE *in, const char *path, Source **out, Diag *d) {
  *out = NULL;
  size_t len = 0;
  errno = 0;
  char *text = read_all(in, &len);
  int why = errno;
  if (!text)
    return diag_fail(d, ST_INPUT, "can't read '%s': %s", path, strerror(why ? why : ENOMEM));
  Status st = ST_OK;
  if (len > SOURCE_MOST)
    st = diag_fail(d, ST_INPUT, "'%s' is larger than 256 MiB", path);
  else
    *out = source_new(a, arena_strdup(a, path), arena_strndup(a, text, len), len);
  free(text);
  return st;
}

Status source_read(Arena *a, const char *path, Source **out, Diag *d) {
  *out = NULL;
  FILE *in = fopen(path, "rb");
  if (!in) return diag_fail(d, ST_INPUT, "can't open '%s': %s", path, strerror(errno));
  Status st = read_file(a, in, path, out, d);
  fclose(in);
  return st;
}

Status source_read_input(Arena *a, const char *path, Source **out, Diag *d) {
  return strcmp(path, "-") ? source_read(a, path, out, d) : read_file(a, stdin, path, out, d);
}

// ---- rendering ---------------------------------------------------------------------------------

// A growing text in the Diag's arena.
typedef struct Text {
  Arena *arena;
  char *s;
  int n, cap;
} Text;

static void text_char(Text *t, char c) { *arena_push(t->arena, t->s, t->n, t->cap) = c; }

static void text_add(Text *t, const char *s) {
  while (*s) text_char(t, *s++);
}

static bool is_continuation(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

// The line and, under it, a caret at `col` with `span - 1` tildes.  Tabs stay tabs in both lines so
// that the caret stands under its character; a UTF-8 continuation byte takes no column.
static void add_line(Text *t, const Source *src, uint32_t line, uint32_t col, uint32_t span) {
  size_t len;
  const char *s = source_line(src, line, &len);
  size_t from = 0;
  if (col > SHOWN_COLUMNS - 20) from = col - SHOWN_COLUMNS / 2;
  if (from > len) from = len;
  while (from < len && is_continuation(s[from])) from++;
  size_t end = len - from > SHOWN_COLUMNS ? from + SHOWN_COLUMNS : len;
  while (end < len && is_continuation(s[end])) end++;
  text_add(t, from ? "    ..." : "    ");
  for (size_t i = from; i < end; i++) {
    unsigned char c = (unsigned char)s[i];
    text_char(t, c >= 0x20 || c == '\t' ? s[i] : '?');
  }
  text_add(t, end < len ? "...\n" : "\n");
  if (!col) return;
  text_add(t, from ? "       " : "    ");
  for (size_t i = from; i + 1 < col; i++) {
    char c = i < len ? s[i] : ' ';
    if (!is_continuation(c)) text_char(t, c == '\t' ? '\t' : ' ');
  }
  text_char(t, '^');
  for (size_t i = col; i < (size_t)col + span - 1 && span && i < end; i++)
    if (!is_continuation(s[i])) text_char(t, '~');
  text_char(t, '\n');
}

static void add_origin_note(Text *t, const Origin *o, const char *what) {
  text_add(t, arena_printf(t->arena, "  %s:%u: note: %s\n", o->src->name, o->line, what));
  if (o->src->len) add_line(t, o->src, o->line, 0, 0); // of a file that .loc names there is no text
}

static const char *how_reached(OriginKind kind) {
  switch (kind) {
  case ORIGIN_CALL: return "called from here";
  case ORIGIN_INCLUDE: return "included from here";
  case ORIGIN_HOOK: return "the hook is put in here";
  case ORIGIN_FILE: break;
  }
  return "from here";
}

static const char *const severity_name[] = {"error", "warning", "note"};

static const char *render(Arena *a, Severity sev, const Place *at, const char *what) {
  Text t = {.arena = a};
  if (at->src) {
    text_add(&t, at->src->name);
    if (at->line) text_add(&t, arena_printf(a, ":%u", at->line));
    if (at->line && at->col) text_add(&t, arena_printf(a, ":%u", at->col));
    text_add(&t, ": ");
  }
  text_add(&t, arena_printf(a, "%s: %s\n", severity_name[sev], what));
  if (at->src && at->line) add_line(&t, at->src, at->line, at->col, at->span);
  const Origin *o = at->origin;
  if (o && (o->src != at->src || o->line != at->line))
    add_origin_note(&t, o, o->src->len ? "from this template line" : "from this line, says .loc");
  for (; o && o->up; o = o->up) add_origin_note(&t, o->up, how_reached(o->kind));
  text_char(&t, 0);
  return t.s;
}

// ---- Diag --------------------------------------------------------------------------------------

Diag *diag_new(void) {
  Diag *d = calloc(1, sizeof *d);
  if (!d) {
    fprintf(stderr, "ptxsmith: out of memory\n");
    abort();
  }
  d->arena = arena_new();
  d->limit = DEFAULT_LIMIT;
  return d;
}

void diag_free(Diag *d) {
  if (!d) return;
  arena_free(d->arena);
  free(d);
}

void diag_reset(Diag *d) {
  arena_reset(d->arena);
  d->first = d->last = NULL;
  d->errors = d->warnings = 0;
}

// A message quotes what was read, and that may be megabytes; a driver's log is some kilobytes.
enum { LONGEST_MESSAGE = 16384 };

static char *bounded(char *what) {
  size_t n = strlen(what);
  if (n <= LONGEST_MESSAGE) return what;
  n = LONGEST_MESSAGE;
  while (n && is_continuation(what[n])) n--;
  memcpy(what + n, "...", 4);
  return what;
}

static void add(Diag *d, Severity sev, Place at, const char *fmt, va_list ap) {
  bool dropped = false;
  if (sev == SEV_ERROR)
    dropped = ++d->errors > d->limit;
  else if (sev == SEV_WARNING)
    dropped = ++d->warnings > d->limit;
  else
    dropped = d->errors > d->limit; // a note belongs to the message before it
  if (dropped) return;
  if (!at.src && at.origin) { // no generated text yet: the template line is the place
    at.src = at.origin->src;
    at.line = at.origin->line;
  }
  DiagMsg *m = arena_new_of(d->arena, DiagMsg);
  m->severity = sev;
  m->file = at.src ? arena_strdup(d->arena, at.src->name) : "";
  m->line = at.line;
  m->col = at.col;
  m->what = bounded(arena_vprintf(d->arena, fmt, ap));
  m->origin_file = at.origin ? arena_strdup(d->arena, at.origin->src->name) : "";
  m->origin_line = at.origin ? at.origin->line : 0;
  m->text = render(d->arena, sev, &at, m->what);
  if (d->last)
    d->last->next = m;
  else
    d->first = m;
  d->last = m;
}

void diag_add(Diag *d, Severity s, Place at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add(d, s, at, fmt, ap);
  va_end(ap);
}

Status diag_error(Diag *d, Place at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add(d, SEV_ERROR, at, fmt, ap);
  va_end(ap);
  return ST_INPUT;
}

Status diag_fail(Diag *d, Status st, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add(d, SEV_ERROR, NOWHERE, fmt, ap);
  va_end(ap);
  return st;
}

const char *diag_text(const Diag *d) {
  Text t = {.arena = d->arena};
  for (const DiagMsg *m = d->first; m; m = m->next) text_add(&t, m->text);
  if (d->errors > d->limit)
    text_add(&t, arena_printf(d->arena, "%d more errors are not shown\n", d->errors - d->limit));
  if (d->warnings > d->limit)
    text_add(&t,
             arena_printf(d->arena, "%d more warnings are not shown\n", d->warnings - d->limit));
  text_char(&t, 0);
  return t.s;
}

// ---- nearest names -----------------------------------------------------------------------------

enum { LONGEST_WORD = 64 };

// Edit distance with transpositions of neighbours; `worst` + 1 when it is larger than `worst`.
static int edit_distance(const char *a, const char *b, int worst) {
  int na = (int)strlen(a), nb = (int)strlen(b);
  if (na > LONGEST_WORD || nb > LONGEST_WORD || abs(na - nb) > worst) return worst + 1;
  int row[3][LONGEST_WORD + 1];
  for (int j = 0; j <= nb; j++) row[0][j] = j;
  for (int i = 1; i <= na; i++) {
    int *now = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
    now[0] = i;
    for (int j = 1; j <= nb; j++) {
      int best = up[j - 1] + (a[i - 1] != b[j - 1]);
      if (up[j] + 1 < best) best = up[j] + 1;
      if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped && up2[j - 2] + 1 < best) best = up2[j - 2] + 1;
      now[j] = best;
    }
  }
  return row[na % 3][nb];
}

bool diag_among(const char *word, const char *const *names, int n) {
  for (int i = 0; i < n; i++)
    if (names[i] && !strcmp(names[i], word)) return true;
  return false;
}

const char *diag_nearest(Arena *a, const char *word, const char *const *names, int n) {
  int len = (int)strlen(word), worst = len / 3 > 1 ? len / 3 : 1;
  const char *best[2] = {NULL, NULL};
  int dist[2] = {worst + 1, worst + 1};
  for (int i = 0; i < n; i++) {
    int e = edit_distance(word, names[i], worst);
    if (e < dist[0]) {
      best[1] = best[0], dist[1] = dist[0];
      best[0] = names[i], dist[0] = e;
    } else if (e < dist[1]) {
      best[1] = names[i], dist[1] = e;
    }
  }
  if (!best[0]) return "";
  if (!best[1]) return arena_printf(a, " (did you mean \"%s\"?)", best[0]);
  return arena_printf(a, " (did you mean \"%s\" or \"%s\"?)", best[0], best[1]);
}
