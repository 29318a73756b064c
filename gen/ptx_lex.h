// Tokens of PTX.  No token allocates: its text points into the source.
#ifndef PTXSMITH_PTX_LEX_H
#define PTXSMITH_PTX_LEX_H

#include "arena.h"
#include "diag.h"

#include <string.h>

typedef enum TokenKind {
  TK_END,
  TK_WORD,   // add, %r1, $L__BB0_1
  TK_DOT,    // .reg; text without the dot
  TK_INT,    // bits
  TK_FLOAT,  // bits: of a double, or of a float when is_f32
  TK_STRING, // with its quotes
  TK_PUNCT,  // one character, text[0]
  TK_BAD,    // bits: why, a LexFault
} TokenKind;

typedef enum LexFault { LEX_CHAR, LEX_NUMBER, LEX_OVERFLOW, LEX_STRING, LEX_COMMENT } LexFault;

typedef struct Token {
  TokenKind kind;
  bool is_f32;
  uint32_t len, line, col;
  const char *text;
  uint64_t bits;
} Token;

typedef struct Comment {
  const char *text; // with its marks
  uint32_t len;
  bool trailing; // something stands before it on its line
} Comment;

typedef struct Lex {
  Arena *arena;
  const char *p, *end, *line_start;
  uint32_t line;
  uint32_t token_line; // line of the last token
  Comment *comments; int ncomments, comments_cap; // found since the parser last took them
} Lex;

void lex_init(Lex *l, Arena *a, const Source *src);
void lex_next(Lex *l, Token *t);
// The word `t`, just read, is an opcode: takes the modifiers behind it in, "fma" -> "fma.rn.f32".
void lex_opcode(Lex *l, Token *t);
// The first character after the token just read that is not a blank, without reading it.
char lex_peek(const Lex *l);
// The rest of the line, without a comment; the next token is on the next line.
void lex_line(Lex *l, Token *t);
// From where we stand to the brace that closes the next `{`; false when there is none.
bool lex_braces(Lex *l, Token *t);

// WORD or DOT with this text.  Inline: the length of a literal is known where it is called.
static inline bool token_is(const Token *t, const char *text) {
  return (t->kind == TK_WORD || t->kind == TK_DOT) && strlen(text) == t->len &&
         !memcmp(t->text, text, t->len);
}

#endif
