// The line map that a text brings itself: .file names sources, .loc says of which line the
// instructions behind it are (PTX ISA, Debugging Directives).
#include "ptx_parse.h"

typedef struct Named { // .file `number` "name"
  uint64_t number;
  const Source *src;
} Named;

typedef struct Loc {
  uint32_t from;            // the line of the PTX
  uint64_t file[2], row[2]; // of the instruction; of the call that it was put in for
  int n;                    // 0: what follows has no line, 1, or 2: it was inlined
} Loc;

typedef struct Locs {
  Arena *arena;
  Lex lex;
  Token tok;
  Named *files; int nfiles, files_cap;
  Loc *v; int n, cap;
} Locs;

static void next(Locs *l) { lex_next(&l->lex, &l->tok); }

static bool take_int(Locs *l, uint32_t line, uint64_t *out) {
  if (l->tok.kind != TK_INT || l->tok.line != line) return false;
  *out = l->tok.bits;
  next(l);
  return true;
}

// .file 1 "name"; the text is not read: it may have changed since, or be anything.
static void take_file(Locs *l) {
  Named f;
  uint32_t line = l->tok.line;
  next(l);
  if (!take_int(l, line, &f.number) || l->tok.kind != TK_STRING) return;
  f.src = source_new(l->arena, arena_strndup(l->arena, l->tok.text + 1, l->tok.len - 2), "", 0);
  *arena_push(l->arena, l->files, l->nfiles, l->files_cap) = f;
}

// .loc FILE LINE COLUMN[, function_name LABEL, inlined_at FILE LINE COLUMN]; line 0 is none.
static void take_loc(Locs *l) {
  Loc at = {.from = l->tok.line};
  next(l);
  if (take_int(l, at.from, &at.file[0]) && take_int(l, at.from, &at.row[0])) at.n = at.row[0] > 0;
  while (at.n && l->tok.line == at.from && l->tok.kind != TK_END) {
    bool inlined = token_is(&l->tok, "inlined_at");
    next(l);
    if (!inlined) continue;
    if (take_int(l, at.from, &at.file[1]) && take_int(l, at.from, &at.row[1])) at.n = 2;
    break;
  }
  *arena_push(l->arena, l->v, l->n, l->cap) = at;
}

// A function begins without a line.
static void take_function(Locs *l) {
  *arena_push(l->arena, l->v, l->n, l->cap) = (Loc){.from = l->tok.line};
  next(l);
}

static const Source *file_of(const Locs *l, uint64_t number) {
  for (int i = 0; i < l->nfiles; i++)
    if (l->files[i].number == number) return l->files[i].src;
  return NULL;
}

static const Origin *origin_of(const Locs *l, const Loc *at) {
  const Origin *up = NULL;
  for (int i = at->n - 1; i >= 0; i--) {
    const Source *src = file_of(l, at->file[i]);
    if (!src || at->row[i] > UINT32_MAX) continue;
    Origin *o = arena_new_of(l->arena, Origin);
    *o = (Origin){src, (uint32_t)at->row[i], up ? ORIGIN_CALL : ORIGIN_FILE, up};
    up = o;
  }
  return up;
}

static LineMap *map_of(const Locs *l, const Source *src) {
  LineMap *m = arena_new_of(l->arena, LineMap);
  *m = (LineMap){arena_array(l->arena, const Origin *, src->nlines), src->nlines};
  for (int i = 0; i < l->n; i++) {
    const Origin *o = origin_of(l, &l->v[i]);
    uint32_t end = i + 1 < l->n ? l->v[i + 1].from - 1 : src->nlines;
    for (uint32_t line = l->v[i].from; line <= end && line <= src->nlines; line++)
      m->at[line - 1] = o;
  }
  return m;
}

const LineMap *ptx_loc_map(Arena *a, const Source *src) {
  if (!strstr(src->text, ".loc")) return NULL;
  Locs *l = arena_new_of(a, Locs);
  l->arena = a;
  lex_init(&l->lex, a, src);
  next(l);
  while (l->tok.kind != TK_END && !(l->tok.kind == TK_BAD && l->tok.bits == LEX_COMMENT)) {
    if (l->tok.kind != TK_DOT) next(l);
    else if (token_is(&l->tok, "file")) take_file(l);
    else if (token_is(&l->tok, "loc")) take_loc(l);
    else if (token_is(&l->tok, "entry") || token_is(&l->tok, "func")) take_function(l);
    else next(l);
  }
  return l->nfiles ? map_of(l, src) : NULL;
}
