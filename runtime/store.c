// Results as JSON lines that survive what happens to files.
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../gen/variant.h"
#include "outfile.h"

static const char sum_key[] = ",\"sum\":\"";
enum { SUM_DIGITS = 16, SUM_BYTES = sizeof sum_key - 1 + SUM_DIGITS + 2 }; // + "}

Status store_open(Arena *a, const char *path, Store *out, Diag *d) {
  *out = (Store){.fd = -1, .path = arena_strdup(a, path)};
  const char *slash = strrchr(path, '/');
  if (slash && slash > path) {
    Status st = outfile_folder(a, arena_strndup(a, path, (size_t)(slash - path)), d);
    if (st) return st;
  }
  struct stat there;
  if (stat(path, &there)) return ST_OK; // the folder can be written
  if (S_ISREG(there.st_mode) && !access(path, R_OK | W_OK)) return ST_OK;
  const char *why = S_ISREG(there.st_mode) ? strerror(errno) : "it is no plain file";
  return diag_fail(d, ST_INPUT, "%s: can't be written: %s", path, why);
}

void store_close(Store *s) {
  if (s->fd >= 0) close(s->fd);
  s->fd = -1;
}

// The object with its sum, behind a newline if the file's tail needs one.  malloc'ed.
static char *sealed(const char *object, bool close_tail, size_t *len) {
  size_t n = strlen(object);
  while (n && (object[n - 1] == '\n' || object[n - 1] == '}')) { // up to the last brace
    n--;
    if (object[n] == '}') break;
  }
  char *line = malloc(n + SUM_BYTES + 3);
  if (!line) return NULL;
  size_t at = 0;
  if (close_tail) line[at++] = '\n';
  memcpy(line + at, object, n);
  at += n;
  at += (size_t)sprintf(line + at, "%s%016" PRIx64 "\"}\n", sum_key, content_hash(object, n));
  *len = at;
  return line;
}

static Status write_all(int fd, const char *p, size_t n) {
  while (n) {
    ssize_t done = write(fd, p, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return ST_INPUT;
    p += done;
    n -= (size_t)done;
  }
  return ST_OK;
}

// Under the lock: looks at the tail, then writes; what could only be written in part is taken back.
static Status append_locked(Store *s, const char *object, Diag *d) {
  off_t end = lseek(s->fd, 0, SEEK_END);
  char last = '\n';
  if (end > 0 && pread(s->fd, &last, 1, end - 1) != 1) last = 0;
  size_t n;
  char *line = sealed(object, last != '\n', &n);
  if (!line) return diag_fail(d, ST_DEVICE, "out of host memory");
  Status st = write_all(s->fd, line, n);
  free(line);
  if (!st) return ST_OK;
  int why = errno;
  if (ftruncate(s->fd, end)) why = errno;
  return diag_fail(d, ST_INPUT, "%s: %s", s->path, strerror(why));
}

Status store_append(Store *s, const char *object, bool safe, Diag *d) {
  if (s->fd < 0) s->fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (s->fd < 0)
    return diag_fail(d, ST_INPUT, "%s: can't be written: %s", s->path, strerror(errno));
  while (flock(s->fd, LOCK_EX))
    if (errno != EINTR) return diag_fail(d, ST_INPUT, "%s: lock: %s", s->path, strerror(errno));
  Status st = append_locked(s, object, d);
  if (!st && safe && fsync(s->fd) && errno != EINVAL)
    st = diag_fail(d, ST_INPUT, "%s: %s", s->path, strerror(errno));
  flock(s->fd, LOCK_UN);
  return st;
}

// The line is an object whose sum is right.
static bool store_line_sound(const char *line, size_t len) {
  if (len < SUM_BYTES + 1 || line[0] != '{' || memchr(line, 0, len)) return false;
  size_t n = len - SUM_BYTES;
  char want[SUM_BYTES + 1];
  snprintf(want, sizeof want, "%s%016" PRIx64 "\"}", sum_key, content_hash(line, n));
  return memcmp(line + n, want, SUM_BYTES) == 0;
}

Status store_read(const char *path, StoreLine f, void *ctx, int *damaged, Diag *d) {
  Arena *a = arena_new();
  Source *src;
  *damaged = 0;
  Status st = source_read(a, path, &src, d);
  const char *p = st ? NULL : src->text, *end = st ? NULL : p + src->len;
  while (p < end) {
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    size_t n = (size_t)((nl ? nl : end) - p);
    if (store_line_sound(p, n))
      f(ctx, arena_strndup(a, p, n));
    else
      *damaged += n > 0;
    p += n + 1;
  }
  arena_free(a);
  return st;
}
