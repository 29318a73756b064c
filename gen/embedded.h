// The files of templates/ and lua/, built into the library.
#ifndef PTXSMITH_EMBEDDED_H
#define PTXSMITH_EMBEDDED_H

#include <stddef.h>

typedef struct EmbeddedFile {
  const char *path; // "templates/decode_splitk.ptx.in"; sorted by path
  const char *text; // NUL-terminated at [len]
  size_t len;
} EmbeddedFile;

extern const EmbeddedFile embedded_files[];
extern const int embedded_nfiles;

#endif
