// Diag: messages with places.  Every message reads
//
//   file:line:column: error: what
//       the offending line
//           ^~~~
//     file:line: note: called from here            (one line per origin above the place)
//
// Messages are rendered when they are added, so a Diag outlives the sources it speaks of.
#ifndef PTXSMITH_DIAG_H
#define PTXSMITH_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "status.h"

// A text with a name.  `text` is NUL-terminated at [len]; it may hold any byte.
typedef struct Source {
  const char *name;
  const char *text;
  size_t len;
  uint32_t *line_at; // line_at[i] = offset of line i+1; made by source_new
  uint32_t nlines;
} Source;

Source *source_new(Arena *a, const char *name, const char *text, size_t len); // keeps the pointers
// Reads a file whole.  ST_INPUT with a message when it can't be read or is larger than 256 MiB.
struct Diag;
#define SOURCE_MOST ((size_t)256 << 20) // bytes of a text that a user gives
Status source_read(Arena *a, const char *path, Source **out, struct Diag *d);
// The same; "-" is standard input, and its name.
Status source_read_input(Arena *a, const char *path, Source **out, struct Diag *d);
// The text of a line (1-based), without its newline.
const char *source_line(const Source *s, uint32_t line, size_t *len);

// Origin: a place, and how we came to it.  The origins of generated PTX form a tree: a line of an
// include file, called from a line of a template, and so on.  `up` is NULL at the root.
typedef enum OriginKind {
  ORIGIN_FILE,    // root: a line of a file
  ORIGIN_CALL,    // this place was reached by a call at `up`
  ORIGIN_INCLUDE, // this file was included at `up`
  ORIGIN_HOOK,    // this line belongs to a user's hook put in at `up`
} OriginKind;

typedef struct Origin {
  const Source *src;
  uint32_t line;
  OriginKind kind;
  const struct Origin *up;
} Origin;

// LineMap: for every line of a generated text the template line it came from.
typedef struct LineMap {
  const Origin **at; // at[i] for line i+1; NULL where the generator itself wrote the line
  uint32_t n;
} LineMap;

static inline const Origin *linemap_at(const LineMap *m, uint32_t line) {
  return m && line >= 1 && line <= m->n ? m->at[line - 1] : NULL;
}

// Place: where a message points.  col and span are 1-based and 0 when unknown.
typedef struct Place {
  const Source *src;    // may be NULL: the message has no place (say, a command-line value)
  uint32_t line, col, span;
  const Origin *origin; // may be NULL
} Place;

typedef enum Severity { SEV_ERROR, SEV_WARNING, SEV_NOTE } Severity;

typedef struct DiagMsg {
  Severity severity;
  const char *file;        // "" when there is no place
  uint32_t line, col;
  const char *what;        // the message alone
  const char *origin_file; // innermost template line, "" when none
  uint32_t origin_line;
  const char *text;        // fully rendered, several lines, ends in a newline
  struct DiagMsg *next;
} DiagMsg;

typedef struct Diag {
  Arena *arena; // its own
  DiagMsg *first, *last;
  int errors, warnings;
  int limit; // errors kept; further ones are counted only.  20 by default
} Diag;

Diag *diag_new(void);
void diag_free(Diag *d);
void diag_reset(Diag *d);

void diag_add(Diag *d, Severity s, Place at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
// The usual case: an error.  Returns ST_INPUT so that callers can write `return diag_error(...)`.
Status diag_error(Diag *d, Place at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
// The same without a place.  Returns `st`.
Status diag_fail(Diag *d, Status st, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// All messages as one text (arena of the Diag); "" when there are none.
const char *diag_text(const Diag *d);

// Whether the word is one of the names, of which some may be NULL.
bool diag_among(const char *word, const char *const *names, int n);
// The names nearest to `word` by edit distance, as ` (did you mean "a" or "b"?)`, else "".
// At most two names, distance at most a third of the length, at least 1.
const char *diag_nearest(Arena *a, const char *word, const char *const *names, int n);

#define NOWHERE ((Place){0})

#endif
