// launch DEVICE LIST [DIR]: launches each kernel of a list once, in order, in one process: on a GPU
// for the profiler, on sim with its counters printed, a JSON object a launch.  Same parameters,
// same inputs.  With DIR the text of launch N is written to DIR/N.ptx on sim.
//
// Lines of the list (words apart by spaces; # begins a comment):
//   TEMPLATE name=value ... problem=VALUES [hook=FILE] [grid=BLOCKS]
//   FILE.ptx KERNEL BLOCK ARG ...     one block of BLOCK threads
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "dense.h"
#include "run_ptx.h"

enum { MAX_WORDS = 32 };

typedef struct Run {
  Arena *arena;
  Session *session;
  Device *dev;
  Diag *diag;
  bool counts;
  const char *dir;
  int shown;
} Run;

static void keep_text(const Run *r, const Source *ptx) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%d.ptx", r->dir, r->shown);
  FILE *out = fopen(path, "w");
  if (!out || fwrite(ptx->text, 1, ptx->len, out) != ptx->len)
    diag_error(r->diag, NOWHERE, "%s: cannot be written", path);
  if (out) fclose(out);
}

static void show(Run *r, Kernel *k, const Source *ptx) {
  KernelCounts n;
  if (!r->counts || !kernel_counts(k, &n)) return;
  if (r->dir) keep_text(r, ptx);
  r->shown++;
  Json j;
  json_begin(&j, r->arena);
  counters_json(r->arena, &n, &roof_h200, &j);
  fputs(json_end(&j), stdout);
}

static void reset(const Run *r) {
  Counters none;
  device_counters(r->dev, &none, true);
}

static Status launch_operator(Run *r, Operator *op, const PlanOpts *opts) {
  Dense buffers = {0};
  Status st = operator_load(op, r->dev, r->diag);
  if (!st) st = operator_plan(op, r->dev, opts, r->diag);
  if (!st) st = dense_bind(r->dev, op, 0, &buffers, r->diag);
  reset(r);
  if (!st) st = operator_launch(op, r->dev, r->diag);
  if (!st) st = device_sync(r->dev, r->diag);
  for (int i = 0; i < op->nsteps && !st; i++)
    if (op->step[i].work) show(r, op->step[i].kernel, op->step[i].variant->ptx);
  dense_free(r->dev, &buffers);
  return st;
}

static Status launch_template(Run *r, char **word, int n) {
  Params params = {0};
  PlanOpts opts = {.grid = 0};
  const char *values = NULL;
  Status st = ST_OK;
  for (int i = 1; i < n && !st; i++) {
    if (!strncmp(word[i], "problem=", 8)) values = word[i] + 8;
    else if (!strncmp(word[i], "hook=", 5)) opts.build.hook_path = word[i] + 5;
    else if (!strncmp(word[i], "grid=", 5)) opts.grid = (uint32_t)atoi(word[i] + 5);
    else st = params_parse(r->arena, &params, word[i], r->diag);
  }
  Problem *p = arena_new_of(r->arena, Problem);
  *p = (Problem){.arena = r->arena, .name = ""};
  if (!st && values)
    st = problem_open_hooked(r->session, r->arena, values, opts.build.hook_path, &p, r->diag);
  Operator *op = NULL;
  if (!st) st = operator_make(r->session, word[0], &params, p, &opts, &op, r->diag);
  if (!st) st = launch_operator(r, op, &opts);
  operator_free(op);
  return st;
}

static Status launch_ptx(Run *r, char **word, int n) {
  RunArg args[MAX_WORDS] = {0};
  Source *src;
  Status st = n < 3 ? diag_fail(r->diag, ST_INPUT, "%s: FILE.ptx KERNEL BLOCK ARG ...", word[0])
                    : source_read(r->arena, word[0], &src, r->diag);
  if (st) return st;
  const PtxModule *m = ptx_parse(r->arena, src, NULL, r->diag);
  const PtxFunc *entry = m ? ptx_entry(m, word[1]) : NULL;
  if (!entry) return diag_fail(r->diag, ST_INPUT, "%s: no kernel %s", word[0], word[1]);
  Launch l = {.grid = {1, 1, 1}, .block = {(uint32_t)atoi(word[2]), 1, 1}, .cluster = {1, 1, 1}};
  int nargs = n - 3;
  for (int i = 0; i < nargs && !st; i++)
    st = run_arg_parse(r->arena, word[3 + i], (uint64_t)i, &args[i], r->diag);
  if (!st) st = run_args_check(m, entry, args, nargs, r->diag);
  Kernel *k = NULL;
  if (!st) st = device_load_ptx(r->dev, src, NULL, word[1], &k, r->diag);
  l.kernel = k;
  reset(r);
  if (!st) st = run_launch(r->dev, &l, m, entry, args, nargs, r->diag);
  if (!st) show(r, k, src);
  kernel_free(k);
  run_args_free(args, nargs);
  return st;
}

static Status launch_line(Run *r, char *line) {
  char *word[MAX_WORDS], *save = NULL;
  int n = 0;
  line[strcspn(line, "#\n")] = 0;
  for (char *w = strtok_r(line, " ", &save); w && n < MAX_WORDS; w = strtok_r(NULL, " ", &save))
    word[n++] = w;
  if (!n) return ST_OK;
  bool ptx = strlen(word[0]) > 4 && !strcmp(word[0] + strlen(word[0]) - 4, ".ptx");
  return ptx ? launch_ptx(r, word, n) : launch_template(r, word, n);
}

int main(int argc, char **argv) {
  Run r = {.arena = arena_new(), .diag = diag_new()};
  FILE *list = argc == 3 || argc == 4 ? fopen(argv[2], "r") : NULL;
  if (argc == 4) r.dir = argv[3];
  if (!list) {
    fputs("launch DEVICE LIST [DIR]\n", stderr);
    return ST_INPUT;
  }
  r.session = session_open(NULL, r.diag);
  Status st = r.session ? device_open(argv[1], &r.dev, r.diag) : ST_INPUT;
  r.counts = !st && device_info(r.dev)->is_sim;
  if (r.counts) device_sim_opts(r.dev, &(SimOpts){.counters = true});
  char line[1024];
  while (!st && fgets(line, sizeof line, list)) st = launch_line(&r, line);
  fclose(list);
  fputs(diag_text(r.diag), stderr);
  device_close(r.dev);
  session_close(r.session);
  diag_free(r.diag);
  arena_free(r.arena);
  return (int)st;
}
