// A folder of a test's own, for one file.
#ifndef PTXSMITH_FOLDER_KIT_H
#define PTXSMITH_FOLDER_KIT_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/ptxsmith_test_XXXXXX", path[64];

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/file", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

#endif
