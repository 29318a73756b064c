// The lines that a sweep and its workers speak.
#include "wire.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../gen/number.h"

static void put_escaped(FILE *f, const char *s) {
  for (; *s; s++) {
    if (*s == '\t' || *s == '\n' || *s == '%')
      fprintf(f, "%%%02X", (unsigned char)*s);
    else
      fputc(*s, f);
  }
}

char *wire_line(Arena *a, const char *verb, const Params *fields) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (!f) abort(); // as the arena does: no host memory for a line
  fputs(verb, f);
  for (int i = 0; fields && i < fields->n; i++) {
    fprintf(f, "\t%s=", fields->v[i].name);
    put_escaped(f, fields->v[i].value);
  }
  fputc('\n', f);
  fclose(f);
  char *line = arena_strndup(a, text, n);
  free(text);
  return line;
}

static void unescape(char *s) {
  char *to = s;
  for (; *s; s++) {
    bool coded = *s == '%' && isxdigit((unsigned char)s[1]) && isxdigit((unsigned char)s[2]);
    const char digits[3] = {coded ? s[1] : '0', coded ? s[2] : '0', 0};
    char byte = (char)strtoul(digits, NULL, 16);
    *to++ = byte ? byte : *s;
    if (byte) s += 2;
  }
  *to = 0;
}

bool wire_parse(Arena *a, const char *line, const char **verb, Params *fields) {
  char *save = NULL, *copy = arena_strndup(a, line, strcspn(line, "\n"));
  char *word = strtok_r(copy, "\t", &save);
  if (!word || strchr(word, '=')) return false;
  *verb = word;
  while ((word = strtok_r(NULL, "\t", &save))) {
    char *eq = strchr(word, '=');
    if (!eq || eq == word) return false;
    *eq = 0;
    unescape(eq + 1);
    params_set(a, fields, word, eq + 1);
  }
  return true;
}

void wire_put_number(Arena *a, Params *fields, const char *name, double x) {
  char text[NUMBER_BYTES];
  number_text(x, text);
  params_set(a, fields, name, text);
}

double wire_number(const Params *fields, const char *name) {
  const char *v = params_get(fields, name);
  return v ? number_parse(v, NULL) : 0;
}
