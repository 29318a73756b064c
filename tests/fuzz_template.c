// Fuzzing templates and hooks: whatever the text, within the limits of steps and memory there is a
// variant, the same one again, or a message.  Behind a line "====" stands a hook.
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "variant.h"

enum { STEPS = 200 * 1000, MEMORY = 32 << 20 };

// A folder for this process, gone when it ends.
static char folder[64], template_path[128], hook_path[128];

static void remove_folder(void) {
  char templates[80];
  snprintf(templates, sizeof templates, "%s/templates", folder);
  unlink(template_path);
  unlink(hook_path);
  rmdir(templates);
  rmdir(folder);
}

static void make_folder(void) {
  char templates[80];
  if (*folder) return;
  snprintf(folder, sizeof folder, "%s/ptxsmith-fuzz-XXXXXX",
           access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
  if (!mkdtemp(folder)) abort();
  snprintf(templates, sizeof templates, "%s/templates", folder);
  snprintf(template_path, sizeof template_path, "%s/fuzz.ptx.in", templates);
  snprintf(hook_path, sizeof hook_path, "%s/hook.ptx", folder);
  if (mkdir(templates, 0700)) abort();
  atexit(remove_folder);
}

static void write_file(const char *path, const char *text, size_t n) {
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(text, 1, n, f) != n) abort();
  fclose(f);
}

static void build(Session *s, const VariantOpts *opts, Variant **out, Diag *d) {
  static const Params none = {0};
  Status st = variant_build(s, "fuzz", &none, opts, out, d);
  if ((st == ST_OK) != (*out != NULL) || (st == ST_OK) != (d->errors == 0)) {
    fprintf(stderr, "status %d, variant %p\n%s\n", (int)st, (void *)*out, diag_text(d));
    abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char between[] = "\n====\n";
  const char *hook = memmem(data, size, between, sizeof between - 1);
  size_t n = hook ? (size_t)(hook - (const char *)data) : size;
  make_folder();
  write_file(template_path, (const char *)data, n);
  if (hook) write_file(hook_path, hook + sizeof between - 1, size - n - (sizeof between - 1));
  Diag *d = diag_new();
  Session *s = session_open(folder, d);
  VariantOpts opts = {.hook_path = hook ? hook_path : NULL, .step_limit = STEPS,
                      .memory_limit = MEMORY};
  Variant *v = NULL, *again = NULL;
  build(s, &opts, &v, d);
  if (v) {
    opts.loc = !hook; // no other text, but lines that say where it is from
    diag_reset(d);
    build(s, &opts, &again, d);
    if (!again || v->ptx->len > again->ptx->len) abort();
    if (!opts.loc && strcmp(v->ptx->text, again->ptx->text)) abort();
  }
  variant_free(again);
  variant_free(v);
  session_close(s);
  diag_free(d);
  return 0;
}
