// Myers, "An O(ND) Difference Algorithm and Its Variations" (1986), the greedy form: for each edit
// count D the furthest reach on every diagonal k = x - y; the reaches are kept to walk back.
#include "diff.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 3, MOST_EDITS = 6000 };

typedef struct Lines {
  const char **at;
  int *len;
  int n;
} Lines;

typedef struct Edit { char kind; int a, b; } Edit; // ' ' kept, '-' a's line, '+' b's line

typedef struct Edits { Edit *v; int n, cap; } Edits;

typedef struct Text { char *s; size_t len, cap; } Text;

static Lines lines_of(Arena *a, const char *text) {
  Lines l = {0};
  for (const char *p = text; *p; p++) l.n += *p == '\n';
  size_t total = strlen(text);
  if (total && text[total - 1] != '\n') l.n++;
  l.at = arena_array(a, const char *, l.n);
  l.len = arena_array(a, int, l.n);
  const char *p = text;
  for (int i = 0; i < l.n; i++) {
    const char *end = strchr(p, '\n');
    l.at[i] = p;
    l.len[i] = (int)(end ? end - p : (long)strlen(p));
    p = end ? end + 1 : p + l.len[i];
  }
  return l;
}

static bool same(const Lines *a, int i, const Lines *b, int j) {
  return a->len[i] == b->len[j] && !memcmp(a->at[i], b->at[j], (size_t)a->len[i]);
}

static int furthest(const int *reach, int d, int k) {
  return k == -d || (k != d && reach[k - 1] < reach[k + 1]) ? reach[k + 1] : reach[k - 1] + 1;
}

// Edits in reverse, from the end back through the kept reaches: trace[d] is what d began with.
static void walk_back(Arena *a, int *const *trace, int d, int x, int y, Edits *out) {
  for (; d > 0; d--) {
    const int *reach = trace[d] + d; // holds diagonals -d .. d
    int k = x - y;
    bool down = k == -d || (k != d && reach[k - 1] < reach[k + 1]);
    int from_k = down ? k + 1 : k - 1;
    int from_x = reach[from_k], from_y = from_x - from_k;
    while (x > from_x && y > from_y) {
      x--, y--;
      *arena_push(a, out->v, out->n, out->cap) = (Edit){' ', x, y};
    }
    if (x == from_x) y--;
    else x--;
    *arena_push(a, out->v, out->n, out->cap) = (Edit){down ? '+' : '-', x, y};
  }
  while (x > 0) {
    x--, y--;
    *arena_push(a, out->v, out->n, out->cap) = (Edit){' ', x, y};
  }
}

// Too many edits: everything of one goes, everything of the other comes.
static void replace_all(Arena *a, int n, int m, Edits *out) {
  for (int j = m - 1; j >= 0; j--) *arena_push(a, out->v, out->n, out->cap) = (Edit){'+', n, j};
  for (int i = n - 1; i >= 0; i--) *arena_push(a, out->v, out->n, out->cap) = (Edit){'-', i, 0};
}

static void edits_of(Arena *a, const Lines *la, const Lines *lb, Edits *out) {
  int n = la->n, m = lb->n, most = n + m < MOST_EDITS ? n + m : MOST_EDITS;
  int *room = arena_array(a, int, 2 * most + 3), *reach = room + most + 1;
  int **trace = arena_array(a, int *, most + 1);
  for (int d = 0; d <= most; d++) {
    trace[d] = arena_array(a, int, 2 * d + 1);
    memcpy(trace[d], reach - d, sizeof(int) * (size_t)(2 * d + 1));
    for (int k = -d; k <= d; k += 2) {
      int x = d ? furthest(reach, d, k) : 0, y = x - k;
      while (x < n && y < m && same(la, x, lb, y)) x++, y++;
      reach[k] = x;
      if (x < n || y < m) continue;
      walk_back(a, trace, d, n, m, out);
      return;
    }
  }
  replace_all(a, n, m, out);
}

static void put(Arena *a, Text *t, const char *s, size_t n) {
  if (t->len + n + 1 > t->cap) {
    size_t cap = (t->len + n + 1) * 2;
    t->s = arena_grow(a, t->s, t->cap, cap);
    t->cap = cap;
  }
  memcpy(t->s + t->len, s, n);
  t->len += n;
  t->s[t->len] = 0;
}

static void put_hunk(Arena *a, const Lines *la, const Lines *lb, const Edit *e, int n, Text *t) {
  int na = 0, nb = 0;
  for (int i = 0; i < n; i++) na += e[i].kind != '+', nb += e[i].kind != '-';
  char head[80];
  int len = snprintf(head, sizeof head, "@@ -%d,%d +%d,%d @@\n", e[0].a + (na > 0), na,
                     e[0].b + (nb > 0), nb);
  put(a, t, head, (size_t)len);
  for (int i = 0; i < n; i++) {
    bool of_b = e[i].kind == '+';
    put(a, t, &e[i].kind, 1);
    put(a, t, of_b ? lb->at[e[i].b] : la->at[e[i].a],
        (size_t)(of_b ? lb->len[e[i].b] : la->len[e[i].a]));
    put(a, t, "\n", 1);
  }
}

// A hunk ends where more than twice the context is unchanged.
static int hunk_end(const Edits *e, int first) {
  int last = first;
  for (int i = first; i < e->n && i - last <= 2 * CONTEXT + 1; i++)
    if (e->v[i].kind != ' ') last = i;
  return last + 1 + CONTEXT < e->n ? last + 1 + CONTEXT : e->n;
}

char *diff_text(Arena *a, const char *name_a, const char *text_a, const char *name_b,
                const char *text_b) {
  if (!strcmp(text_a, text_b)) return arena_strdup(a, "");
  Arena *own = arena_new();
  Lines la = lines_of(own, text_a), lb = lines_of(own, text_b);
  Edits e = {0};
  edits_of(own, &la, &lb, &e);
  for (int i = 0, j = e.n - 1; i < j; i++, j--) {
    Edit x = e.v[i];
    e.v[i] = e.v[j];
    e.v[j] = x;
  }
  Text t = {0};
  char *head = arena_printf(own, "--- %s\n+++ %s\n", name_a, name_b);
  put(a, &t, head, strlen(head));
  for (int i = 0; i < e.n; i++) {
    if (e.v[i].kind == ' ') continue;
    int from = i > CONTEXT ? i - CONTEXT : 0, end = hunk_end(&e, i);
    put_hunk(a, &la, &lb, e.v + from, end - from, &t);
    i = end - 1;
  }
  arena_free(own);
  return t.s;
}
