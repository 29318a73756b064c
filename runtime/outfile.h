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
void outfile_abandon(Outfile *o);
// Makes a folder and its parents; ST_INPUT when it is not there afterwards or can't be written.
Status outfile_folder(Arena *a, const char *dir, Diag *d);

#endif
