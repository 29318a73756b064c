#include "arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Block {
  struct Block *prev;
  size_t used, size;
  _Alignas(16) unsigned char data[];
} Block;

struct Arena {
  Block *top;
};

enum { FIRST_BLOCK = 64 * 1024, ALIGN = 16, FIRST_ELEMENTS = 8 };

static Block *block_new(size_t size, Block *prev) {
  Block *b = malloc(sizeof *b + size);
  if (!b) {
    fprintf(stderr, "ptxsmith: out of memory (%zu bytes)\n", size);
    abort();
  }
  b->prev = prev;
  b->used = 0;
  b->size = size;
  return b;
}

Arena *arena_new(void) {
  Arena *a = calloc(1, sizeof *a);
  if (!a) {
    fprintf(stderr, "ptxsmith: out of memory\n");
    abort();
  }
  a->top = block_new(FIRST_BLOCK, NULL);
  return a;
}

void arena_free(Arena *a) {
  if (!a) return;
  for (Block *b = a->top, *prev; b; b = prev) {
    prev = b->prev;
    free(b);
  }
  free(a);
}

void arena_reset(Arena *a) {
  // The newest block is the largest: sizes only grow.
  for (Block *b = a->top->prev, *prev; b; b = prev) {
    prev = b->prev;
    free(b);
  }
  a->top->prev = NULL;
  a->top->used = 0;
}

static size_t round_up(size_t bytes) { return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1); }

// Room that is not zeroed yet.
static void *take(Arena *a, size_t bytes) {
  assert(bytes < SIZE_MAX / 4);
  size_t n = round_up(bytes);
  if (a->top->size - a->top->used < n) {
    size_t size = a->top->size * 2;
    while (size < n) size *= 2;
    a->top = block_new(size, a->top);
  }
  void *p = a->top->data + a->top->used;
  a->top->used += n;
  return p;
}

void *arena_alloc(Arena *a, size_t bytes) { return memset(take(a, bytes), 0, round_up(bytes)); }

void *arena_grow(Arena *a, void *p, size_t old_bytes, size_t bytes) {
  if (bytes <= old_bytes) return p;
  Block *b = a->top;
  size_t old = round_up(old_bytes), want = round_up(bytes);
  int last = p && (unsigned char *)p + old == b->data + b->used;
  if (last && b->size - b->used >= want - old) {
    memset((unsigned char *)p + old_bytes, 0, want - old_bytes);
    b->used += want - old;
    return p;
  }
  unsigned char *q = take(a, bytes);
  if (old_bytes) memcpy(q, p, old_bytes);
  memset(q + old_bytes, 0, want - old_bytes);
  return q;
}

void *arena_push_grow(Arena *a, void *v, size_t elem, int n, int *cap) {
  int want = *cap ? *cap * 2 : FIRST_ELEMENTS;
  v = arena_grow(a, v, elem * (size_t)n, elem * (size_t)want);
  *cap = want;
  return v;
}

void arena_append(Arena *a, char **text, size_t *n, size_t *cap, const char *s, size_t len) {
  if (*n + len + 1 > *cap) {
    size_t want = (*n + len + 1) * 2;
    *text = arena_grow(a, *text, *cap, want);
    *cap = want;
  }
  memcpy(*text + *n, s, len);
  *n += len;
}

char *arena_strndup(Arena *a, const char *s, size_t n) {
  char *p = arena_alloc(a, n + 1);
  if (n) memcpy(p, s, n);
  return p;
}

char *arena_strdup(Arena *a, const char *s) { return arena_strndup(a, s, strlen(s)); }

char *arena_vprintf(Arena *a, const char *fmt, va_list ap) {
  char small[256]; // most texts: formatted once
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(small, sizeof small, fmt, ap);
  assert(n >= 0);
  char *p = arena_alloc(a, (size_t)n + 1);
  if ((size_t)n < sizeof small)
    memcpy(p, small, (size_t)n);
  else
    vsnprintf(p, (size_t)n + 1, fmt, again);
  va_end(again);
  return p;
}

char *arena_printf(Arena *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *p = arena_vprintf(a, fmt, ap);
  va_end(ap);
  return p;
}
