// Machine code: ptxas makes a cubin, nvdisasm or cuobjdump prints it.  Neither is ours nor needed
// for anything else.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dump.h"
#include "json.h"

extern char **environ;

static bool on_path(Arena *a, const char *tool) {
  char *save = NULL, *path = arena_strdup(a, getenv("PATH") ? getenv("PATH") : "");
  for (char *dir = strtok_r(path, ":", &save); dir; dir = strtok_r(NULL, ":", &save))
    if (!access(arena_printf(a, "%s/%s", dir, tool), X_OK)) return true;
  return false;
}

// Runs a tool with both its outputs into the file `to`.
static bool run_tool(char *const *argv, const char *to) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid;
  int status = -1;
  bool started = !posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  while (started && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return started && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

typedef struct Sass {
  Arena *a;
  char *dir, *ptx, *cubin, *out;
} Sass;

static Status sass_folder(Sass *s, const Source *ptx, Diag *d) {
  const char *tmp = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
  s->dir = arena_printf(s->a, "%s/ptxsmith-XXXXXX", tmp);
  if (!mkdtemp(s->dir))
    return diag_error(d, NOWHERE, "%s: no temporary folder: %s", tmp, strerror(errno));
  s->ptx = arena_printf(s->a, "%s/kernel.ptx", s->dir);
  s->cubin = arena_printf(s->a, "%s/kernel.cubin", s->dir);
  s->out = arena_printf(s->a, "%s/output", s->dir);
  FILE *f = fopen(s->ptx, "wb");
  bool good = f && fwrite(ptx->text, 1, ptx->len, f) == ptx->len;
  if (f && fclose(f)) good = false;
  return good ? ST_OK : diag_error(d, NOWHERE, "%s: can't be written: %s", s->ptx, strerror(errno));
}

static void sass_remove(const Sass *s) {
  const char *files[] = {s->ptx, s->cubin, s->out};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (files[i]) unlink(files[i]);
  rmdir(s->dir);
}

static Status tool_failed(const Sass *s, const char *tool, Diag *d) {
  Source *said;
  bool read = !source_read(s->a, s->out, &said, d);
  return diag_fail(d, ST_FAILED, "%s failed:\n%s", tool, read ? said->text : "");
}

static Status sass_make(Sass *s, const PtxModule *m, bool nvdisasm, Source **text, Diag *d) {
  char suffix[2] = {m->sm_suffix, 0};
  char *arch = arena_printf(s->a, "-arch=sm_%d%s", m->sm, suffix);
  char *compile[] = {"ptxas", arch, s->ptx, "-o", s->cubin, NULL};
  if (!run_tool(compile, s->out)) return tool_failed(s, "ptxas", d);
  char *by_nvdisasm[] = {"nvdisasm", s->cubin, NULL};
  char *by_cuobjdump[] = {"cuobjdump", "-sass", s->cubin, NULL};
  char **show = nvdisasm ? by_nvdisasm : by_cuobjdump;
  if (!run_tool(show, s->out)) return tool_failed(s, show[0], d);
  return source_read(s->a, s->out, text, d);
}

Status dump_sass(Arena *a, const DumpSubject *s, bool json, FILE *out, Diag *d) {
  bool nvdisasm = on_path(a, "nvdisasm");
  if (!on_path(a, "ptxas"))
    return diag_fail(d, ST_DEVICE, "--sass needs ptxas on the PATH (from a CUDA toolkit)");
  if (!nvdisasm && !on_path(a, "cuobjdump"))
    return diag_fail(d, ST_DEVICE, "--sass needs nvdisasm or cuobjdump on the PATH");
  Sass work = {.a = a};
  Source *text = NULL;
  Status st = sass_folder(&work, s->ptx, d);
  if (!st) st = sass_make(&work, s->module, nvdisasm, &text, d);
  sass_remove(&work);
  if (st) return st;
  if (!json) {
    fwrite(text->text, 1, text->len, out);
    return ST_OK;
  }
  Json j;
  json_begin(&j, a);
  json_str(&j, "variant", s->name);
  json_str(&j, "sass", text->text);
  fputs(json_end(&j), out);
  return ST_OK;
}
