// Outfile: a file that is there whole or not at all.  It is written under a temporary name in the
// same folder and renamed when it is complete.
#ifndef PTXSMITH_OUTFILE_H
#define PTXSMITH_OUTFILE_H

#include <stdio.h>

#include "../gen/diag.h"

typedef struct Outfile {
  FILE *f; // write here
  const char *path;
  const char *temp; // NULL: written in place (a pipe, a device)
} Outfile;

Status outfile_open(Arena *a, const char *path, Outfile *out, Diag *d);
// Flushes, checks every error on the way, renames.  The temporary file is gone in either case.
Status outfile_commit(Outfile *o, Diag *d);
// Before the work: could the file be written, or files of these names (NULL-terminated) into the
// folder, which need not be there?  Nothing is left behind.  ST_INPUT with a message when not.
Status outfile_probe(Arena *a, const char *path, Diag *d);
Status outfile_probe_folder(Arena *a, const char *dir, const char *const *names, Diag *d);
// For a file that is read and replaced: whoever has locked it is alone.  The lock is its folder's
// (the file is another one after each change) and leaves nothing behind.
Status outfile_lock(Arena *a, const char *path, int *lock, Diag *d);
void outfile_unlock(int lock);
// Why a write failed before this, whose errno is gone: that of one more byte; 0 when that goes
// through.
int outfile_why(int fd);
// The first of a folder and its parents that is not there: for outfile_unmake, which removes again
// what outfile_folder made, where it is empty.  NULL: all are there.
const char *outfile_missing(Arena *a, const char *dir);
void outfile_unmake(Arena *a, const char *dir, const char *missing);
// Makes a folder and its parents; ST_INPUT when it is not there afterwards or can't be written.
Status outfile_folder(Arena *a, const char *dir, Diag *d);

#endif
