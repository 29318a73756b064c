// Arena: bump allocation with one owner (one thread, one session or variant).
// Allocation never returns NULL: running out of host memory for these small objects aborts with a
// message on stderr.  Large buffers (tensors) are not arena memory; they are malloc'ed and checked.
#ifndef PTXSMITH_ARENA_H
#define PTXSMITH_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct Arena Arena;

Arena *arena_new(void);
void arena_free(Arena *a);  // NULL is fine
void arena_reset(Arena *a); // forgets everything, keeps the largest block

void *arena_alloc(Arena *a, size_t bytes);                           // zeroed, 16-byte aligned
void *arena_grow(Arena *a, void *p, size_t old_bytes, size_t bytes); // in place when p was last
char *arena_strndup(Arena *a, const char *s, size_t n);              // NUL-terminated copy
char *arena_strdup(Arena *a, const char *s);
char *arena_printf(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *a, const char *fmt, va_list ap);

#define arena_new_of(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define arena_array(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n)))

// Growable array in an arena: `T *v; int n, cap;` then *arena_push(a, v, n, cap) = x;
#define arena_push(a, v, n, cap)                                                                   \
  ((n) == (cap) ? ((v) = arena_push_grow((a), (v), sizeof *(v), (n), &(cap)), &(v)[(n)++])         \
                : &(v)[(n)++])
void *arena_push_grow(Arena *a, void *v, size_t elem, int n, int *cap);
// The same for a text: appends `len` bytes; there is room for a NUL behind them.
void arena_append(Arena *a, char **text, size_t *n, size_t *cap, const char *s, size_t len);

#endif
