// Store: results as JSON lines, appended one by one.
//
// Every line ends with a hash of what stands before it:   {...,"sum":"1f2e..."}
// A line is written whole, under a lock, in one piece behind whatever is there; a tail that a
// killed writer left is first closed with a newline.  So concurrent writers, kill -9 and damage by
// others cost the lines they hit and no more, and reading tells how many those are.
#ifndef PTXSMITH_STORE_H
#define PTXSMITH_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "../gen/diag.h"

typedef struct Store {
  int fd; // -1 until the first line
  const char *path;
} Store;

// Makes the folder and sees that the file can be written; the first line makes the file.
Status store_open(Arena *a, const char *path, Store *out, Diag *d);
void store_close(Store *s);
// `object`: one JSON object, "{...}\n" as json_end makes it.  `safe`: on the disk when it returns.
Status store_append(Store *s, const char *object, bool safe, Diag *d);

// Calls f with every sound line, without its newline and NUL-terminated, and counts the others.
typedef void (*StoreLine)(void *ctx, const char *line);
Status store_read(const char *path, StoreLine f, void *ctx, int *damaged, Diag *d);

#endif
