#include "ptx_lex.h"

#include <stdlib.h>
#include <string.h>

#include "number.h"

enum { C_BLANK = 1, C_DIGIT = 2, C_HEX = 4, C_WORD = 8, C_START = 16, C_PUNCT = 32 };

// Character classes: words are [A-Za-z_$%][A-Za-z0-9_$]*.
static const uint8_t class_of[256] = {
    [' '] = C_BLANK, ['\t'] = C_BLANK, ['\r'] = C_BLANK, ['\f'] = C_BLANK, ['\v'] = C_BLANK,
    ['0' ... '9'] = C_DIGIT | C_HEX | C_WORD,
    ['a' ... 'f'] = C_HEX | C_WORD | C_START, ['g' ... 'z'] = C_WORD | C_START,
    ['A' ... 'F'] = C_HEX | C_WORD | C_START, ['G' ... 'Z'] = C_WORD | C_START,
    ['_'] = C_WORD | C_START, ['$'] = C_WORD | C_START, ['%'] = C_START,
    [';'] = C_PUNCT, [','] = C_PUNCT, ['{'] = C_PUNCT, ['}'] = C_PUNCT, ['['] = C_PUNCT,
    [']'] = C_PUNCT, ['('] = C_PUNCT, [')'] = C_PUNCT, ['<'] = C_PUNCT, ['>'] = C_PUNCT,
    ['='] = C_PUNCT, ['+'] = C_PUNCT, ['-'] = C_PUNCT, ['*'] = C_PUNCT, ['/'] = C_PUNCT,
    ['&'] = C_PUNCT, ['|'] = C_PUNCT, ['^'] = C_PUNCT, ['~'] = C_PUNCT, ['!'] = C_PUNCT,
    ['@'] = C_PUNCT, [':'] = C_PUNCT, ['?'] = C_PUNCT, ['.'] = C_PUNCT, ['#'] = C_PUNCT,
};

static bool is(char c, int classes) { return class_of[(unsigned char)c] & classes; }

void lex_init(Lex *l, Arena *a, const Source *src) {
  *l = (Lex){.arena = a, .p = src->text, .end = src->text + src->len, .line_start = src->text,
             .line = 1};
}

static void newline(Lex *l) {
  l->line++;
  l->line_start = l->p;
}

static void keep_comment(Lex *l, const char *from, uint32_t line) {
  uint32_t len = (uint32_t)(l->p - from);
  while (len && is(from[len - 1], C_BLANK)) len--;
  *arena_push(l->arena, l->comments, l->ncomments, l->comments_cap) =
      (Comment){from, len, l->token_line == line};
}

// Past a comment that starts here; false when it has no end.
static bool comment(Lex *l) {
  const char *from = l->p;
  uint32_t line = l->line;
  if (l->p[1] == '/') {
    const char *nl = memchr(l->p, '\n', (size_t)(l->end - l->p));
    l->p = nl ? nl : l->end;
    keep_comment(l, from, line);
    return true;
  }
  for (l->p += 2; l->p < l->end; l->p++) {
    if (*l->p == '*' && l->p + 1 < l->end && l->p[1] == '/') {
      l->p += 2;
      keep_comment(l, from, line);
      return true;
    }
    if (*l->p == '\n') l->line++, l->line_start = l->p + 1;
  }
  return false;
}

static bool blanks(Lex *l) {
  static const char indent[8] = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '};
  for (;;) {
    const char *p = l->p, *end = l->end;
    if (end - p >= 8 && !memcmp(p, indent, sizeof indent)) p += 8;
    while (p < end && is(*p, C_BLANK)) p++;
    l->p = p;
    if (p == end) break;
    if (*p == '\n') l->p++, newline(l);
    else if (*p == '/' && p + 1 < end && (p[1] == '/' || p[1] == '*')) {
      if (!comment(l)) return false;
    } else break;
  }
  return true;
}

static void bad(Token *t, LexFault why) {
  t->kind = TK_BAD;
  t->bits = why;
}

static int digit_of(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

// Behind the characters of a word.
static const char *word_end(const char *p, const char *end) {
  while (p < end && is(*p, C_WORD)) p++;
  return p;
}

// Digits of `base` from s to e.
static void integer(Token *t, const char *s, const char *e, unsigned base) {
  uint64_t v = 0;
  t->kind = TK_INT;
  if (s == e) return bad(t, LEX_NUMBER);
  for (; s < e; s++) {
    unsigned d = is(*s, C_HEX) ? (unsigned)digit_of(*s) : 99;
    if (d >= base) return bad(t, LEX_NUMBER);
    if (__builtin_mul_overflow(v, (uint64_t)base, &v) || __builtin_add_overflow(v, (uint64_t)d, &v))
      return bad(t, LEX_OVERFLOW);
  }
  t->bits = v;
}

static void decimal_float(Lex *l, Token *t, const char *from) {
  char text[64];
  while (l->p < l->end && (is(*l->p, C_WORD) || *l->p == '.' ||
                           ((*l->p == '+' || *l->p == '-') && (l->p[-1] | 32) == 'e')))
    l->p++;
  size_t len = (size_t)(l->p - from);
  if (len >= sizeof text) return bad(t, LEX_NUMBER);
  memcpy(text, from, len);
  text[len] = 0;
  char *stop;
  double v = number_parse(text, &stop);
  if (*stop || strpbrk(text, "xXpPnN")) return bad(t, LEX_NUMBER);
  t->kind = TK_FLOAT;
  memcpy(&t->bits, &v, sizeof v);
}

static void number(Lex *l, Token *t) {
  const char *from = l->p, *p = word_end(from, l->end);
  char mark = p - from > 1 && *from == '0' ? (char)(from[1] | 32) : 0;
  bool hex = mark == 'x';
  bool exponent = mark != 'x' && mark != 'f' && mark != 'd' && mark != 'b' &&
                  (memchr(from, 'e', (size_t)(p - from)) || memchr(from, 'E', (size_t)(p - from)));
  if (!hex && (exponent || (p < l->end && *p == '.'))) return decimal_float(l, t, from);
  l->p = p;
  if (mark == 'f' || mark == 'd') {
    size_t want = mark == 'f' ? 8 : 16;
    integer(t, from + 2, p, 16);
    if (t->kind != TK_INT || (size_t)(p - from) != want + 2) return bad(t, LEX_NUMBER);
    t->kind = TK_FLOAT;
    t->is_f32 = mark == 'f';
    return;
  }
  if (p - from > 1 && (p[-1] == 'U' || p[-1] == 'u')) p--;
  if (hex) integer(t, from + 2, p, 16);
  else if (mark == 'b') integer(t, from + 2, p, 2);
  else if (*from == '0' && p - from > 1) integer(t, from + 1, p, 8);
  else integer(t, from, p, 10);
}

static void string(Lex *l, Token *t) {
  for (l->p++; l->p < l->end && *l->p != '"' && *l->p != '\n'; l->p++)
    if (*l->p == '\\' && l->p + 1 < l->end && l->p[1] != '\n') l->p++;
  if (l->p >= l->end || *l->p != '"') return bad(t, LEX_STRING);
  l->p++;
  t->kind = TK_STRING;
}

void lex_next(Lex *l, Token *t) {
  bool closed = blanks(l);
  const char *from = l->p;
  *t = (Token){.kind = TK_END, .text = from, .line = l->line,
               .col = (uint32_t)(from - l->line_start) + 1};
  if (!closed) return bad(t, LEX_COMMENT);
  if (from >= l->end) return;
  l->token_line = l->line;
  if (is(*from, C_START)) {
    l->p = word_end(from + 1, l->end);
    bool lone = *from == '%' && l->p == from + 1; // the remainder operator
    t->kind = lone ? TK_PUNCT : TK_WORD;
  } else if (is(*from, C_DIGIT)) {
    number(l, t);
  } else if (*from == '.' && from + 1 < l->end && is(from[1], C_START | C_DIGIT)) {
    t->kind = TK_DOT;
    t->text++;
    for (l->p++; l->p < l->end; l->p++)
      if (*l->p == ':' && l->p + 1 < l->end && l->p[1] == ':') l->p++;
      else if (!is(*l->p, C_WORD)) break;
  } else if (*from == '"') {
    string(l, t);
  } else {
    l->p++;
    t->kind = TK_PUNCT;
    if (!is(*from, C_PUNCT)) bad(t, LEX_CHAR);
  }
  t->len = (uint32_t)(l->p - t->text);
}

void lex_opcode(Lex *l, Token *t) {
  const char *p = l->p, *end = l->end;
  for (; p < end; p++) {
    if (*p == ':' && p + 1 < end && p[1] == ':') p++;
    else if (!is(*p, C_WORD) && *p != '.') break;
  }
  l->p = p;
  t->len = (uint32_t)(p - t->text);
}

char lex_peek(const Lex *l) {
  const char *p = l->p;
  while (p < l->end && (is(*p, C_BLANK) || *p == '\n')) p++;
  return p < l->end ? *p : 0;
}

void lex_line(Lex *l, Token *t) {
  const char *from = l->p;
  while (l->p < l->end && *l->p != '\n' && !(*l->p == '/' && l->p + 1 < l->end && l->p[1] == '/'))
    l->p++;
  *t = (Token){.kind = TK_WORD, .text = from, .line = l->line,
               .len = (uint32_t)(l->p - from)};
  while (t->len && (is(t->text[t->len - 1], C_BLANK))) t->len--;
}

bool lex_braces(Lex *l, Token *t) {
  const char *from = l->p;
  int depth = 0;
  *t = (Token){.kind = TK_WORD, .text = from, .line = l->line};
  for (; l->p < l->end; l->p++) {
    if (*l->p == '\n') l->line++, l->line_start = l->p + 1;
    if (*l->p == '{') depth++;
    if (*l->p == '}' && --depth <= 0) {
      l->p++;
      t->len = (uint32_t)(l->p - from);
      return depth == 0;
    }
  }
  return false;
}
