#include "json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../gen/number.h"

static void put(Json *j, const char *s, size_t n) {
  size_t need = (size_t)j->len + n + 1;
  if (need > (size_t)j->cap) {
    size_t cap = need * 2;
    j->text = arena_grow(j->arena, j->text, (size_t)j->cap, cap);
    j->cap = (int)cap;
  }
  memcpy(j->text + j->len, s, n);
  j->len += (int)n;
  j->text[j->len] = 0;
}

static void puts_(Json *j, const char *s) { put(j, s, strlen(s)); }

// Bytes of the well-formed UTF-8 sequence at s (RFC 3629: no surrogates, no overlong forms), or 0.
static int utf8_len(const unsigned char *s) {
  if (s[0] < 0x80) return 1;
  int n = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
          : s[0] >= 0xe0 && s[0] <= 0xef ? 3
          : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                         : 0;
  if (!n) return 0;
  unsigned char low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
  unsigned char high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
  if (s[1] < low || s[1] > high) return 0;
  for (int i = 2; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return n;
}

static void put_quoted(Json *j, const char *s) {
  static const char escaped[] = "\"\\\b\f\n\r\t", escapes[] = "\"\\bfnrt";
  put(j, "\"", 1);
  for (const unsigned char *p = (const unsigned char *)s; *p;) {
    const char *named = strchr(escaped, *p);
    int n = utf8_len(p);
    if (named) {
      char esc[2] = {'\\', escapes[named - escaped]};
      put(j, esc, 2);
    } else if (*p < 0x20 || *p == 0x7f) {
      char esc[8];
      put(j, esc, (size_t)snprintf(esc, sizeof esc, "\\u%04x", *p));
    } else if (n) {
      put(j, (const char *)p, (size_t)n);
    } else {
      put(j, "\xef\xbf\xbd", 3);
    }
    p += n ? n : 1;
  }
  put(j, "\"", 1);
}

static void member(Json *j, const char *key) {
  assert(j->depth > 0);
  bool in_array = j->close[j->depth - 1] == ']';
  assert(in_array == (key == NULL));
  if (j->some[j->depth - 1]) put(j, ",", 1);
  j->some[j->depth - 1] = true;
  if (in_array) return;
  put_quoted(j, key);
  put(j, ":", 1);
}

static void open_level(Json *j, const char *open, char close) {
  assert(j->depth < JSON_MAX_DEPTH);
  puts_(j, open);
  j->close[j->depth] = close;
  j->some[j->depth] = false;
  j->depth++;
}

void json_begin(Json *j, Arena *a) {
  *j = (Json){.arena = a};
  open_level(j, "{", '}');
}

void json_object(Json *j, const char *key) {
  member(j, key);
  open_level(j, "{", '}');
}

void json_array(Json *j, const char *key) {
  member(j, key);
  open_level(j, "[", ']');
}

void json_close(Json *j) {
  assert(j->depth > 0);
  put(j, &j->close[--j->depth], 1);
}

const char *json_end(Json *j) {
  while (j->depth) json_close(j);
  put(j, "\n", 1);
  return j->text;
}

void json_str(Json *j, const char *key, const char *s) {
  member(j, key);
  if (s) put_quoted(j, s);
  else puts_(j, "null");
}

void json_int(Json *j, const char *key, int64_t i) {
  char text[24];
  member(j, key);
  put(j, text, (size_t)snprintf(text, sizeof text, "%" PRId64, i));
}

void json_uint(Json *j, const char *key, uint64_t u) {
  char text[24];
  member(j, key);
  put(j, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, u));
}

void json_num(Json *j, const char *key, double x) {
  if (!isfinite(x)) {
    json_null(j, key);
    return;
  }
  char text[NUMBER_BYTES];
  int n = number_text(x, text);
  member(j, key);
  put(j, text, (size_t)n);
}

void json_bool(Json *j, const char *key, bool b) {
  member(j, key);
  puts_(j, b ? "true" : "false");
}

void json_null(Json *j, const char *key) {
  member(j, key);
  puts_(j, "null");
}
