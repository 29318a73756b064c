// libFuzzer harness: whatever the bytes, the parser ends with a tree or with messages, and a tree
// that checks prints to a text that parses to a tree that prints the same.
//
// Built with clang by -DPTXSMITH_FUZZ=ON; fuzz/replay.c makes a program of it that replays files.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx.h"

static void broken(const char *what, const char *text, const char *more) {
  fprintf(stderr, "%s\n----\n%s\n----\n%s\n", what, text, more);
  abort();
}

static void round_trip(Arena *a, const PtxModule *m) {
  Diag *d = diag_new();
  char *once = ptx_print(a, m);
  PtxModule *again = ptx_parse(a, source_new(a, "printed", once, strlen(once)), NULL, d);
  if (!again) broken("the printed text does not parse", once, diag_text(d));
  char *twice = ptx_print(a, again);
  if (strcmp(once, twice)) broken("printing twice differs", once, twice);
  diag_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Arena *a = arena_new();
  Diag *d = diag_new();
  char *text = arena_strndup(a, (const char *)data, size);
  PtxModule *m = ptx_parse(a, source_new(a, "fuzz.ptx", text, size), NULL, d);
  if (!m && !d->errors) broken("no tree and no message", text, "");
  if (m) {
    ptx_check(m, d);
    for (int i = 0; i < m->nfuncs; i++) {
      PtxStats s;
      if (m->funcs[i].defined) ptx_stats(m, &m->funcs[i], &s);
    }
    round_trip(a, m);
  }
  diag_free(d);
  arena_free(a);
  return 0;
}
