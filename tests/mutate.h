// What a mutant is: one place of a template without what orders or masks there: a barrier, wait or
// fence taken away, a release or acquire made relaxed, a guard that always holds, a branch that is
// never taken, a selection that is always the value.
//
// A place is a template line with the lines that include or call it, as texts, so that it keeps its
// name when lines move.  A line that a loop of the template repeats makes up to three mutants: all
// its instances changed, the first alone, the last alone.
#ifndef PTXSMITH_MUTATE_H
#define PTXSMITH_MUTATE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan.h"

typedef enum MutateWhich { MUTATE_ALL, MUTATE_FIRST, MUTATE_LAST } MutateWhich;

typedef struct Mutant {
  const char *key; // "prefill_mma: bar.sync 0; #2", "...: last of selp ..."
  bool order;      // a barrier, wait or fence
  uint32_t *line; int nlines; // of the PTX
} Mutant;

// ---- one line -----------------------------------------------------------------------------------
static inline bool is_order(const char *text) {
  static const char *const orders[] = {
      "bar.sync",           "bar.arrive",  "bar.red", "bar.warp.sync",
      "barrier.",           "membar",      "fence.",  "commit_group",
      "wait_group",         "wgmma.fence", "_wait.",  "mbarrier.arrive",
      "griddepcontrol.wait"};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
    if (strstr(text, orders[i])) return true;
  return false;
}

// An access that releases or acquires, made relaxed; NULL for others.
static inline char *weaken(Arena *a, const char *at) {
  static const char *const strong[] = {".acq_rel.", ".release.", ".acquire."};
  for (size_t i = 0; i < sizeof strong / sizeof *strong; i++) {
    const char *found = strstr(at, strong[i]);
    if (found)
      return arena_printf(a, "%.*s.relaxed.%s", (int)(found - at), at, found + strlen(strong[i]));
  }
  return NULL;
}

static inline bool orders(Arena *a, const char *line, size_t n) {
  const char *text = arena_strndup(a, line, n);
  return is_order(text) || weaken(a, text);
}

static inline bool is_constant(const char *operand) { return strchr("-0123456789", *operand); }

// selp between a value and a constant is a mask: the value always.
static inline char *without_mask(Arena *a, const char *at) {
  char type[16], d[64], x[64], y[64];
  if (sscanf(at, "selp.%15s %63[^,], %63[^,], %63[^,],", type, d, x, y) != 4) return NULL;
  if (!is_constant(x) && !is_constant(y)) return NULL;
  return arena_printf(a, "mov.%s %s, %s;", type, d, is_constant(x) && !is_constant(y) ? y : x);
}

// The line without what orders or masks; NULL when there is nothing to take away.
static inline char *mutate_line(Arena *a, const char *line, size_t n) {
  char *text = arena_strndup(a, line, n), *at = text + strspn(text, " \t"), d[64];
  char *comment = strstr(at, "//");
  if (comment) *comment = 0;
  const char *wait = strstr(at, "_wait.");
  if (wait && sscanf(wait, "%*s %63[^,],", d) == 1) // an mbarrier's wait that never waits
    return arena_printf(a, "setp.eq.u32 %s, 0, 0;", d);
  if (strstr(at, "prefetch")) return NULL; // no effect on values (PTX ISA, prefetch)
  if (is_order(at)) return arena_strdup(a, "");
  char *weak = weaken(a, at);
  if (weak) return weak;
  if (*at == '@') {
    char *rest = at + strcspn(at, " \t");
    return strstr(rest, "bra") ? arena_strdup(a, "") : rest; // never taken; always done
  }
  return without_mask(a, at);
}

// ---- places -------------------------------------------------------------------------------------
// The line's text without its comment; one blank for many.
static inline char *origin_text(Arena *a, const Origin *o) {
  size_t n, len = 0;
  const char *line = source_line(o->src, o->line, &n);
  char *text = arena_alloc(a, n + 1);
  for (size_t i = 0; i < n && !(line[i] == '/' && i + 1 < n && line[i + 1] == '/'); i++) {
    char c = line[i] == '|' ? ' ' : line[i];
    if (c != ' ' || (len && text[len - 1] != ' ')) text[len++] = c;
  }
  while (len && text[len - 1] == ' ') len--;
  text[len] = 0;
  return text;
}

static inline bool same_place(const Origin *a, const Origin *b) {
  for (; a && b; a = a->up, b = b->up)
    if (a->src != b->src || a->line != b->line) return false;
  return a == b;
}

static inline char *place_name(Arena *a, const char *template_name, const Origin *o) {
  char *name = arena_printf(a, "%s: %s", template_name, origin_text(a, o));
  for (o = o->up; o; o = o->up)
    if (o->kind == ORIGIN_CALL || o->kind == ORIGIN_HOOK)
      name = arena_printf(a, "%s < %s", name, origin_text(a, o));
  return name;
}

typedef struct Mutants {
  Mutant *v; int n, cap;
} Mutants;

static inline void add_mutant(Arena *a, Mutants *all, const char *name, MutateWhich which,
                              const Mutant *place) {
  static const char *const prefix[] = {"", "first of ", "last of "};
  const char *colon = strstr(name, ": ") + 2;
  Mutant m = *place;
  m.key = arena_printf(a, "%.*s%s%s", (int)(colon - name), name, prefix[which], colon);
  if (which == MUTATE_LAST) m.line += m.nlines - 1;
  if (which != MUTATE_ALL) m.nlines = 1;
  *arena_push(a, all->v, all->n, all->cap) = m;
}

// The n-th place with one name in a variant is NAME #n.
static inline const char *numbered(Arena *a, const char *name, const char **names, int n) {
  int same = 1;
  for (int i = 0; i < n; i++) same += !strcmp(names[i], name);
  return same > 1 ? arena_printf(a, "%s #%d", name, same) : name;
}

static inline void list_mutants(Arena *a, const Variant *v, Mutants *out) {
  const Origin **places = arena_array(a, const Origin *, v->ptx->nlines + 1);
  const char **names = arena_array(a, const char *, v->ptx->nlines + 1);
  int nplaces = 0;
  *out = (Mutants){0};
  for (uint32_t line = 1; line <= v->ptx->nlines; line++) {
    size_t n;
    const char *at = source_line(v->ptx, line, &n);
    const Origin *o = linemap_at(&v->map, line);
    bool seen = !o || !mutate_line(a, at, n);
    for (int i = 0; i < nplaces && !seen; i++) seen = same_place(places[i], o);
    if (seen) continue;
    Mutant m = {.line = arena_array(a, uint32_t, v->ptx->nlines),
                .order = orders(a, at, n)};
    for (uint32_t other = line; other <= v->ptx->nlines; other++) {
      const char *text = source_line(v->ptx, other, &n);
      if (same_place(linemap_at(&v->map, other), o) && mutate_line(a, text, n))
        m.line[m.nlines++] = other;
    }
    const char *plain = place_name(a, v->tmpl->name, o);
    const char *name = numbered(a, plain, names, nplaces);
    names[nplaces] = plain;
    places[nplaces++] = o;
    add_mutant(a, out, name, MUTATE_ALL, &m);
    if (m.nlines > 1) add_mutant(a, out, name, MUTATE_FIRST, &m);
    if (m.nlines > 1) add_mutant(a, out, name, MUTATE_LAST, &m);
  }
}

// The variant's text with the mutant's lines changed; lines keep their numbers.
static inline void mutate_variant(Arena *a, Variant *v, const Mutant *m) {
  char *text = arena_strdup(a, "");
  uint32_t from = 1;
  for (int i = 0; i <= m->nlines; i++) {
    size_t n;
    const char *start = source_line(v->ptx, from, &n);
    const char *end = v->ptx->text + v->ptx->len, *instead = "";
    if (i < m->nlines) {
      end = source_line(v->ptx, m->line[i], &n);
      instead = mutate_line(a, end, n);
      from = m->line[i] + 1;
    }
    text = arena_printf(a, "%s%.*s%s%s", text, (int)(end - start), start, instead,
                        i < m->nlines ? "\n" : "");
  }
  v->ptx = source_new(a, v->ptx->name, text, strlen(text));
  v->module = NULL;
}

#endif
