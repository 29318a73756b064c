#include "outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static Status cannot_write(const char *path, int err, Diag *d) {
  return diag_error(d, NOWHERE, "%s: can't be written: %s", path, strerror(err));
}

Status outfile_open(Arena *a, const char *path, Outfile *out, Diag *d) {
  struct stat st;
  bool there = !stat(path, &st);
  char *real = there ? realpath(path, NULL) : NULL; // a link stays one: its target is replaced
  *out = (Outfile){.path = arena_strdup(a, real ? real : path)};
  free(real);
  if (there && !S_ISREG(st.st_mode)) { // a pipe or /dev/null can't be renamed onto
    out->f = fopen(path, "wb");
    return out->f ? ST_OK : cannot_write(path, errno, d);
  }
  out->temp = arena_printf(a, "%s.%ld.tmp", out->path, (long)getpid());
  int fd = open(out->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd >= 0 && there) fchmod(fd, st.st_mode & 07777); // who may read it stays as it was
  out->f = fd < 0 ? NULL : fdopen(fd, "wb");
  if (out->f) return ST_OK;
  int err = errno;
  if (fd >= 0) close(fd), unlink(out->temp);
  return cannot_write(path, err, d);
}

int outfile_why(int fd) {
  errno = 0;
  return write(fd, "\n", 1) == 1 ? 0 : errno;
}

Status outfile_commit(Outfile *o, Diag *d) {
  errno = 0;
  bool bad = fflush(o->f) || ferror(o->f);
  int why = bad && !errno ? outfile_why(fileno(o->f)) : errno;
  bad = fclose(o->f) || bad;
  if (!errno) errno = why;
  o->f = NULL;
  if (!bad && (!o->temp || !rename(o->temp, o->path))) return ST_OK;
  int err = errno;
  if (o->temp) unlink(o->temp);
  if (err) return cannot_write(o->path, err, d);
  // A write before this one failed, and its errno is gone.
  return diag_error(d, NOWHERE, "%s: can't be written in full (is the disk full?)", o->path);
}

Status outfile_folder(Arena *a, const char *dir, Diag *d) {
  char *path = arena_strdup(a, dir);
  for (char *p = path + 1; *path && *p; p++) {
    if (*p != '/') continue;
    *p = 0;
    mkdir(path, 0777);
    *p = '/';
  }
  if (mkdir(path, 0777) && errno != EEXIST) return cannot_write(dir, errno, d);
  struct stat st;
  if (stat(path, &st) || !S_ISDIR(st.st_mode)) return cannot_write(dir, ENOTDIR, d);
  if (access(path, W_OK | X_OK)) return cannot_write(dir, errno, d);
  return ST_OK;
}

const char *outfile_missing(Arena *a, const char *dir) {
  struct stat st;
  for (const char *p = dir + 1; *dir && *p; p++) {
    if (*p != '/') continue;
    const char *parent = arena_strndup(a, dir, (size_t)(p - dir));
    if (stat(parent, &st)) return parent;
  }
  return stat(dir, &st) ? arena_strdup(a, dir) : NULL;
}

void outfile_unmake(Arena *a, const char *dir, const char *missing) {
  char *path = arena_strdup(a, dir);
  size_t least = missing ? strlen(missing) : SIZE_MAX;
  for (size_t n = strlen(path); n >= least && n; n--) {
    if (path[n] && path[n] != '/') continue;
    path[n] = 0;
    if (path[n - 1] != '/' && rmdir(path)) return;
  }
}

// ---- before the work ---------------------------------------------------------------------------
// A file is made there and removed: what else there is to ask does not tell of every file system.
static Status probe_in(Arena *a, const char *dir, const char *shown, Diag *d) {
  char *path = arena_printf(a, "%s/.%ld.XXXXXX", dir, (long)getpid());
  int fd = mkstemp(path);
  if (fd < 0) return cannot_write(shown, errno, d);
  close(fd);
  unlink(path);
  return ST_OK;
}

// "." for a name without a folder.
static char *folder_of(Arena *a, const char *path) {
  const char *slash = strrchr(path, '/');
  return !slash ? arena_strdup(a, ".")
                : arena_strndup(a, path, slash == path ? 1 : (size_t)(slash - path));
}

Status outfile_probe(Arena *a, const char *path, Diag *d) {
  struct stat st;
  size_t n = strlen(path);
  if (n && path[n - 1] == '/') return cannot_write(path, EISDIR, d);
  if (stat(path, &st)) return probe_in(a, folder_of(a, path), path, d);
  if (S_ISDIR(st.st_mode)) return cannot_write(path, EISDIR, d);
  if (!S_ISREG(st.st_mode)) return access(path, W_OK) ? cannot_write(path, errno, d) : ST_OK;
  char *real = realpath(path, NULL);
  Status probed = probe_in(a, folder_of(a, real ? real : path), path, d);
  free(real);
  return probed;
}

Status outfile_probe_folder(Arena *a, const char *dir, const char *const *names, Diag *d) {
  struct stat st;
  char *there = arena_strdup(a, dir);
  for (size_t n = strlen(there); n > 1 && there[n - 1] == '/'; n--) there[n - 1] = 0;
  bool exists = !stat(there, &st);
  while (stat(there, &st)) { // the first that is there holds those that would be made
    if (errno != ENOENT) return cannot_write(dir, errno, d);
    there = folder_of(a, there);
  }
  if (!S_ISDIR(st.st_mode)) return cannot_write(dir, ENOTDIR, d);
  Status probed = probe_in(a, there, dir, d);
  for (int i = 0; !probed && exists && names[i]; i++)
    probed = outfile_probe(a, arena_printf(a, "%s/%s", there, names[i]), d);
  return probed;
}

// ---- one at a time -----------------------------------------------------------------------------

Status outfile_lock(Arena *a, const char *path, int *lock, Diag *d) {
  struct stat st;
  *lock = -1;
  if (!stat(path, &st) && !S_ISREG(st.st_mode)) return ST_OK; // a pipe is not read before
  char *real = realpath(path, NULL);
  const char *dir = folder_of(a, real ? real : path);
  free(real);
  *lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (*lock < 0) return cannot_write(path, errno, d);
  while (flock(*lock, LOCK_EX))
    if (errno != EINTR) {
      int err = errno;
      outfile_unlock(*lock);
      return diag_error(d, NOWHERE, "%s: its folder can't be locked: %s", path, strerror(err));
    }
  return ST_OK;
}

void outfile_unlock(int lock) {
  if (lock >= 0) close(lock);
}
