// Fuzzing the .npy parser: any bytes give a message or an array that lies within them.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *copy = malloc(size ? size : 1); // of exactly this size, so that a read past it is seen
  if (!copy) return 0;
  if (size) memcpy(copy, data, size);
  Diag *d = diag_new();
  NpyArray a;
  if (npy_parse(copy, size, "fuzz.npy", &a, d) == ST_OK) {
    if ((const char *)a.data - copy + a.count * npy_bytes(a.type) != (int64_t)size) abort();
    if (d->errors) abort();
  } else if (d->errors != 1) {
    abort();
  }
  diag_free(d);
  free(copy);
  return 0;
}
