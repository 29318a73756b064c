// Runs a fuzz harness over the files named: the committed seeds, in every build and without
// libFuzzer.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// One file, whole; 0, or 1 with a message.
static int replay(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f || fseek(f, 0, SEEK_END) != 0) {
    perror(path);
    if (f) fclose(f);
    return 1;
  }
  long size = ftell(f);
  rewind(f);
  uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
  int bad = !data || size < 0 || fread(data, 1, (size_t)size, f) != (size_t)size;
  if (bad) {
    perror(path);
  } else {
    LLVMFuzzerTestOneInput(data, (size_t)size);
  }
  free(data);
  fclose(f);
  return bad;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s FILE...\n", argv[0]);
    return 2;
  }
  int bad = 0;
  for (int i = 1; i < argc; i++) bad |= replay(argv[i]);
  return bad;
}
