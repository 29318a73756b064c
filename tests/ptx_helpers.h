// Shared by the tests of the PTX layer.
#ifndef PTXSMITH_TESTS_PTX_HELPERS_H
#define PTXSMITH_TESTS_PTX_HELPERS_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx.h"

#define HEAD ".version 8.0\n.target sm_90a\n.address_size 64\n"
#define KERNEL(body) HEAD ".visible .entry k(.param .u64 x)\n{\n" body "\nret;\n}\n"

static inline PtxModule *parse_text(Arena *a, Diag *d, const char *text) {
  return ptx_parse(a, source_new(a, "t.ptx", text, strlen(text)), NULL, d);
}

// Calls `each` for every file of tests/FOLDER whose name ends in `suffix`; returns how many.
static inline int each_file(const char *folder, const char *suffix,
                            void (*each)(const char *path)) {
  char dir[512], path[1024];
  struct dirent **list;
  int files = 0;
  snprintf(dir, sizeof dir, "%s/%s", TESTS_DIR, folder);
  int n = scandir(dir, &list, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    const char *name = list[i]->d_name;
    size_t len = strlen(name), want = strlen(suffix);
    if (len > want && !strcmp(name + len - want, suffix)) {
      snprintf(path, sizeof path, "%s/%s", dir, name);
      each(path);
      files++;
    }
    free(list[i]);
  }
  if (n >= 0) free(list);
  return files;
}

#endif
