// Template text -> Lua chunk, line by line.
//
// A line whose first non-blank character is `|` is Lua; every other line is PTX with ${expr}.  PTX
// line n of the file becomes the Lua statement `__line(id, (expr), ...)` on line n of the chunk, so
// that Lua's own messages carry the template's lines.
#ifndef PTXSMITH_TEMPLATE_H
#define PTXSMITH_TEMPLATE_H

#include "diag.h"

typedef enum LineKind {
  LINE_CODE,    // an instruction, a directive, a brace
  LINE_COMMENT, // nothing but a comment
  LINE_LABEL,
  LINE_BLANK,
  LINE_FILES, // where .file directives go
} LineKind;

// A PTX line of a template: text pieces with expressions between them.
typedef struct TemplateLine {
  const Source *src;
  uint32_t line;
  LineKind kind;
  int8_t opens;        // braces opened minus closed, comments aside
  bool closes_first;   // begins with a closing brace
  bool after_blank;    // an empty line stands above it
  bool ends_statement; // with ; { } : or it is no code at all
  bool follows;        // no Lua line of the file stands between the PTX line before it and it
  int nexprs;
  const char **piece;    // nexprs + 1 texts
  uint32_t *piece_len;
  const char **expr;     // nexprs texts, for messages
  OriginKind reached;    // how its frame of the chunk is reached from another
  bool reached_known;
} TemplateLine;

typedef struct TemplateLines {
  TemplateLine *v;
  int n, cap;
} TemplateLines;

// Appends the file's PTX lines to `lines` and returns the Lua text; NULL after diagnostics.
const char *template_translate(Arena *a, const Source *src, TemplateLines *lines, size_t *len,
                               Diag *d);

// Kind, braces and end of a line without expressions.
void template_classify(TemplateLine *t, const char *text, size_t len);

#endif
