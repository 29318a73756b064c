#include "results.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../gen/number.h"
#include "store.h"
#include "wire.h"

// ---- one line -----------------------------------------------------------------------------------

static const char *skip(const char *p) { return p + strspn(p, " \t"); }

static char *put_utf8(char *to, unsigned long c) {
  if (c < 0x80) return *to++ = (char)c, to;
  if (c < 0x800) return *to++ = (char)(0xc0 | c >> 6), *to++ = (char)(0x80 | (c & 63)), to;
  *to++ = (char)(0xe0 | c >> 12); // the writer escapes control characters only
  *to++ = (char)(0x80 | (c >> 6 & 63));
  *to++ = (char)(0x80 | (c & 63));
  return to;
}

// As it is written, up to the closing quote.
static size_t written_length(const char *p) {
  size_t n = 0;
  while (p[n] && p[n] != '"') n += p[n] == '\\' && p[n + 1] ? 2 : 1;
  return n;
}

// p stands behind the opening quote; NULL when the text does not end.
static const char *read_string(Arena *a, const char *p, const char **out) {
  static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
  char *to = arena_alloc(a, written_length(p) + 1); // escapes are longer than what they stand for
  *out = to;
  for (; *p && *p != '"'; p++) {
    if (*p != '\\') {
      *to++ = *p;
      continue;
    }
    const char *at = p[1] ? strchr(from, p[1]) : NULL;
    if (at) {
      *to++ = into[at - from];
      p++;
    } else if (p[1] == 'u' && strspn(p + 2, "0123456789abcdefABCDEF") >= 4) {
      const char digits[5] = {p[2], p[3], p[4], p[5], 0};
      to = put_utf8(to, strtoul(digits, NULL, 16));
      p += 5;
    } else
      return NULL;
  }
  *to = 0;
  return *p ? p + 1 : NULL;
}

static const char *read_value(Arena *a, const char *p, const char **out) {
  static const char *const words[][2] = {{"true", "1"}, {"false", "0"}, {"null", ""}};
  if (*p == '"') return read_string(a, p + 1, out);
  for (int i = 0; i < 3; i++) {
    size_t n = strlen(words[i][0]);
    if (!strncmp(p, words[i][0], n)) return *out = words[i][1], p + n;
  }
  size_t n = strspn(p, "+-.0123456789eE");
  *out = arena_strndup(a, p, n);
  char *end;
  number_parse(*out, &end);
  return n && !*end ? p + n : NULL;
}

bool result_parse(Arena *a, const char *line, Params *out) {
  const char *p = skip(line), *name, *value;
  if (*p++ != '{') return false;
  for (p = skip(p); *p == '"'; p = skip(p + 1)) {
    if (!(p = read_string(a, p + 1, &name))) return false;
    if (*(p = skip(p)) != ':') return false;
    if (!(p = read_value(a, skip(p + 1), &value))) return false;
    params_set(a, out, name, value);
    if (*(p = skip(p)) != ',') break;
  }
  return *p == '}' && !p[1 + strspn(p + 1, " \t\r\n")];
}

// ---- a store ------------------------------------------------------------------------------------

typedef struct Reader {
  Arena *a;
  Results *out;
} Reader;

static void take_line(void *ctx, const char *line) {
  Reader *r = ctx;
  Params fields = {0};
  if (!result_parse(r->a, line, &fields)) r->out->damaged++;
  else if (!strcmp(result_text(&fields, "record"), "result"))
    *arena_push(r->a, r->out->v, r->out->n, r->out->cap) = fields;
}

Status results_read(Arena *a, const char *path, bool may_lack, Results *out, Diag *d) {
  *out = (Results){0};
  if (may_lack && access(path, F_OK)) return ST_OK;
  int damaged = 0;
  Status st = store_read(path, take_line, &(Reader){a, out}, &damaged, d);
  out->damaged += damaged;
  return st;
}

const char *result_text(const Params *r, const char *name) {
  const char *v = params_get(r, name);
  return v ? v : "";
}

bool result_passed(const Params *r) {
  return !strcmp(result_text(r, "kind"), "ok") && wire_number(r, "gates") > 0 &&
         wire_number(r, "median_us") > 0;
}
