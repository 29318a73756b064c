#include "template.h"

#include <ctype.h>
#include <string.h>

typedef struct Translation {
  Arena *arena;
  const Source *src;
  TemplateLines *lines;
  Diag *d;
  char *out;
  size_t n, cap;
} Translation;

static void put(Translation *t, const char *s, size_t n) {
  arena_append(t->arena, &t->out, &t->n, &t->cap, s, n);
}

static void put_text(Translation *t, const char *s) { put(t, s, strlen(s)); }

// ---- what kind of line -------------------------------------------------------------------------

// Walks PTX text outside comments and strings and adds up its braces.  *last: its last character
// that is not blank, 0 when there is none.  Returns whether it ends inside a comment.
static bool scan(const char *s, size_t len, int *opens, char *last) {
  char quote = 0;
  for (size_t i = 0; i < len; i++) {
    char c = s[i], next = i + 1 < len ? s[i + 1] : 0;
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '/' && next == '/') {
      return true;
    } else if (c == '/' && next == '*') {
      const char *end = memmem(s + i + 2, len - i - 2, "*/", 2);
      if (!end) return true;
      i = (size_t)(end - s) + 1;
      continue;
    } else if (c == '"') {
      quote = c;
    } else if (c == '{') {
      ++*opens;
    } else if (c == '}') {
      --*opens;
    }
    if (!isspace((unsigned char)c)) *last = c;
  }
  return false;
}

static bool is_label(const char *s, size_t len) {
  size_t i = 0;
  if (!len || !(isalpha((unsigned char)s[0]) || strchr("_$%", s[0]))) return false;
  while (i < len && (isalnum((unsigned char)s[i]) || strchr("_$%", s[i]))) i++;
  return i < len && s[i] == ':' && !(i + 1 < len && s[i + 1] == ':');
}

// The line's kind from its first piece and its braces from all of them.
static void classify(TemplateLine *t) {
  const char *first = t->piece[0];
  size_t len = t->piece_len[0];
  if (!len && !t->nexprs) t->kind = LINE_BLANK;
  else if (len >= 2 && first[0] == '/' && (first[1] == '/' || first[1] == '*'))
    t->kind = LINE_COMMENT;
  else t->kind = is_label(first, len) ? LINE_LABEL : LINE_CODE;
  int opens = 0;
  char last = 0;
  for (int i = 0; i <= t->nexprs; i++) {
    if (i > 0) last = 'x'; // an expression may be anything; it is taken to end nothing
    if (scan(t->piece[i], t->piece_len[i], &opens, &last)) break;
  }
  t->opens = (int8_t)opens;
  t->closes_first = len && first[0] == '}';
  t->ends_statement = t->kind != LINE_CODE || !last || strchr(";{}:", last);
}

void template_classify(TemplateLine *t, const char *text, size_t len) {
  uint32_t n = (uint32_t)len;
  t->nexprs = 0;
  t->piece = &text;
  t->piece_len = &n;
  classify(t);
  t->piece = NULL;
  t->piece_len = NULL;
}

// ---- one line ----------------------------------------------------------------------------------

// The '}' that ends the expression at s: braces nest, quotes hide them.  NULL when there is none.
static const char *expression_end(const char *s, const char *end) {
  int depth = 0;
  char quote = 0;
  for (; s < end; s++) {
    if (quote) {
      if (*s == '\\') s++;
      else if (*s == quote) quote = 0;
    } else if (*s == '"' || *s == '\'') {
      quote = *s;
    } else if (*s == '{') {
      depth++;
    } else if (*s == '}' && depth-- == 0) {
      return s;
    }
  }
  return NULL;
}

static bool is_blank(const char *s, const char *end) {
  while (s < end && isspace((unsigned char)*s)) s++;
  return s == end;
}

static void ptx_line(Translation *t, uint32_t line, const char *s, const char *end,
                     bool after_blank, bool follows) {
  size_t whole;
  const char *start = source_line(t->src, line, &whole);
  TemplateLine tl = {.src = t->src, .line = line, .after_blank = after_blank, .follows = follows};
  int npieces = 0, cap = 0, nlens = 0, lens_cap = 0, exprs_cap = 0;
  put_text(t, arena_printf(t->arena, "__line(%d", t->lines->n));
  for (const char *p = s;;) {
    const char *dollar = memmem(p, (size_t)(end - p), "${", 2);
    *arena_push(t->arena, tl.piece, npieces, cap) = p;
    *arena_push(t->arena, tl.piece_len, nlens, lens_cap) = (uint32_t)((dollar ? dollar : end) - p);
    if (!dollar) break;
    const char *close = expression_end(dollar + 2, end);
    Place at = {t->src, line, (uint32_t)(dollar - start) + 1, 2, NULL};
    if (!close || is_blank(dollar + 2, close)) {
      diag_error(t->d, at, close ? "'${}' without an expression" : "'${' without its '}'");
      break;
    }
    const char *expr = arena_strndup(t->arena, dollar + 2, (size_t)(close - dollar - 2));
    *arena_push(t->arena, tl.expr, tl.nexprs, exprs_cap) = expr;
    put_text(t, ",(");
    put_text(t, expr);
    put_text(t, ")");
    p = close + 1;
  }
  put_text(t, ");");
  classify(&tl);
  *arena_push(t->arena, t->lines->v, t->lines->n, t->lines->cap) = tl;
}

const char *template_translate(Arena *a, const Source *src, TemplateLines *lines, size_t *len,
                               Diag *d) {
  Translation t = {.arena = a, .src = src, .lines = lines, .d = d};
  int errors = d->errors;
  bool after_blank = false, follows = false;
  for (uint32_t line = 1; line <= src->nlines; line++) {
    size_t n;
    const char *s = source_line(src, line, &n), *end = s + n;
    while (s < end && isspace((unsigned char)*s)) s++;
    while (end > s && isspace((unsigned char)end[-1])) end--;
    bool blank = s == end;
    if (!blank && *s == '|') put(&t, s + 1, (size_t)(end - s - 1));
    else if (!blank) // an empty line shows above the PTX line that follows it, if one does
      ptx_line(&t, line, s, end, after_blank, follows);
    if (!blank) follows = *s != '|';
    after_blank = blank;
    put(&t, "\n", line < src->nlines); // a last newline would be a line more than the file has
  }
  t.out[t.n] = 0;
  *len = t.n;
  return d->errors > errors ? NULL : t.out;
}
