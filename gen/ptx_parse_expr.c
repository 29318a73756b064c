// Constant expressions: C's integer operators on 64 bits, which wrap.
#include "ptx_parse.h"

#include <string.h>

enum { MAX_NESTING = 64 };

static bool expr(Parser *p, int min_level, int depth, uint64_t *out);

static bool unary(Parser *p, int depth, uint64_t *out) {
  Token t = p->tok;
  if (depth > MAX_NESTING) return parse_error(p, &t, "this expression is nested too deeply");
  if (t.kind == TK_INT) {
    *out = t.bits;
    parse_next(p);
    return true;
  }
  if (t.kind == TK_WORD && token_is(&t, "WARP_SZ")) {
    *out = 32;
    parse_next(p);
    return true;
  }
  if (t.kind != TK_PUNCT || !strchr("-+~!(", *t.text))
    return parse_error(p, &t, "an integer constant is expected here");
  parse_next(p);
  if (*t.text == '(') return expr(p, 0, depth + 1, out) && parse_expect(p, ')', "the expression");
  if (!unary(p, depth + 1, out)) return false;
  if (*t.text == '-') *out = 0 - *out;
  if (*t.text == '~') *out = ~*out;
  if (*t.text == '!') *out = !*out;
  return true;
}

// The operator in hand, as one number, and its level: higher binds tighter; -1: none.
static int operator_level(const Parser *p, int *op) {
  if (p->tok.kind != TK_PUNCT) return -1;
  char c = *p->tok.text;
  *op = c;
  switch (c) {
  case '*': case '/': case '%': return 6;
  case '+': case '-': return 5;
  case '<': case '>': return *p->lex.p == c ? 4 : -1; // << >>
  case '&': return 3;
  case '^': return 2;
  case '|': return 1;
  default: return -1;
  }
}

static bool apply(Parser *p, const Token *at, int op, uint64_t a, uint64_t b, uint64_t *out) {
  switch (op) {
  case '*': *out = a * b; return true;
  case '+': *out = a + b; return true;
  case '-': *out = a - b; return true;
  case '&': *out = a & b; return true;
  case '^': *out = a ^ b; return true;
  case '|': *out = a | b; return true;
  case '<': *out = b < 64 ? a << b : 0; return true;
  case '>': *out = b < 64 ? a >> b : 0; return true;
  }
  if (b == 0) return parse_error(p, at, "division by zero");
  *out = op == '/' ? a / b : a % b;
  return true;
}

static bool expr(Parser *p, int min_level, int depth, uint64_t *out) {
  if (!unary(p, depth, out)) return false;
  int op = 0, level;
  while ((level = operator_level(p, &op)) > min_level) {
    Token at = p->tok;
    uint64_t b;
    if (level == 4) parse_next(p);
    parse_next(p);
    if (!expr(p, level, depth + 1, &b) || !apply(p, &at, op, *out, b, out)) return false;
  }
  return true;
}

bool parse_const(Parser *p, int64_t *out) {
  uint64_t v;
  if (!expr(p, 0, 0, &v)) return false;
  *out = (int64_t)v;
  return true;
}
