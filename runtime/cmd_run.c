// run FILE.ptx --kernel NAME --grid X,Y,Z --block X,Y,Z --arg ...: any kernel, on any device.
#include "cmd_run.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_counters.h"
#include "outfile.h"
#include "run_ptx.h"

typedef struct Request {
  const PtxModule *module;
  const PtxFunc *entry;
  Kernel *kernel;
  RunArg *args; int nargs;
  RunExpect *expect; int nexpect; // of the outputs, in order
  Launch launch;
  Tolerance tolerance;
  bool failed; // an output is not what it should be
} Request;

Status cmd_dims(Cmd *c, CliOptId opt, uint32_t out[3]) {
  const char *text = c->cli->text[opt], *at = text;
  int n = 0;
  out[0] = out[1] = out[2] = 1;
  for (bool more = true; more; n++) {
    char *end = (char *)at;
    unsigned long long v = isdigit((unsigned char)*at) ? strtoull(at, &end, 10) : 0;
    if (n == 3 || !v || v > UINT32_MAX || (*end && *end != ','))
      return diag_error(c->diag, NOWHERE, "--%s: \"%s\" is not one to three sizes, as 8,2,1",
                        cli_opts[opt].name, text);
    out[n] = (uint32_t)v;
    more = *end == ',';
    at = end + 1;
  }
  return ST_OK;
}

static Status read_shape(Cmd *c, Request *r) {
  Launch *l = &r->launch;
  static const struct { CliOptId opt; bool needed; } dims[] = {{OPT_GRID3, true}, {OPT_BLOCK, true},
                                                                {OPT_CLUSTER, false}};
  uint32_t *to[] = {l->grid, l->block, l->cluster};
  Status st = ST_OK;
  for (int i = 0; i < 3 && !st; i++) {
    to[i][0] = to[i][1] = to[i][2] = 1;
    if (cli_has(c->cli, dims[i].opt)) st = cmd_dims(c, dims[i].opt, to[i]);
    else if (dims[i].needed)
      st = diag_error(c->diag, NOWHERE, "%s needs --grid and --block, as --grid 8 --block 32,4",
                      cli_verbs[c->cli->verb].name);
  }
  if (!st && c->cli->number[OPT_SMEM] > UINT32_MAX)
    st = diag_error(c->diag, NOWHERE, "--smem: %s bytes are too many", c->cli->text[OPT_SMEM]);
  l->smem = (uint32_t)c->cli->number[OPT_SMEM];
  return st;
}

// Before anything runs: a file that is missing or does not fit is told at once.
static Status read_expected(Cmd *c, Request *r) {
  const CliList *list = &c->cli->list[OPT_EXPECT];
  r->expect = arena_array(c->arena, RunExpect, list->n + 1);
  Status st = ST_OK;
  for (int i = 0; i < r->nargs && r->nexpect < list->n && !st; i++) {
    if (r->args[i].role < RUN_INOUT) continue;
    const char *path = list->v[r->nexpect++];
    if (strcmp(path, "-"))
      st = run_expect_read(c->arena, &r->args[i], path, &r->expect[r->nexpect - 1], c->diag);
  }
  return st;
}

static Status read_args(Cmd *c, Request *r) {
  const CliList *list = &c->cli->list[OPT_ARG];
  r->args = arena_array(c->arena, RunArg, list->n + 1);
  r->nargs = list->n;
  Status st = ST_OK;
  for (int i = 0; i < list->n && !st; i++)
    st = run_arg_parse(c->arena, list->v[i], c->cli->number[OPT_SEED] + (uint64_t)i, &r->args[i],
                       c->diag);
  int outputs = 0;
  for (int i = 0; i < list->n; i++) outputs += r->args[i].role >= RUN_INOUT;
  if (!st && c->cli->list[OPT_EXPECT].n > outputs)
    st = diag_error(c->diag, NOWHERE, "--expect is given %d times, there are %d outputs",
                    c->cli->list[OPT_EXPECT].n, outputs);
  if (!st && cli_has(c->cli, OPT_TOLERANCE))
    st = run_tolerance(c->arena, c->cli->text[OPT_TOLERANCE], &r->tolerance, c->diag);
  return st ? st : read_expected(c, r);
}

// What is written and said in the end, before anything runs.
static Status check_ends(Cmd *c, const Request *r) {
  const char *dir = c->cli->text[OPT_SAVE],
             **names = arena_array(c->arena, const char *, r->nargs + 1);
  int n = 0;
  for (int i = 0; i < r->nargs; i++)
    if (r->args[i].role >= RUN_INOUT) names[n++] = arena_printf(c->arena, "arg%d.npy", i);
  names[n] = NULL;
  if (dir && !n) return diag_error(c->diag, NOWHERE, "--save: the kernel has no output");
  Status st = dir ? outfile_probe_folder(c->arena, dir, names, c->diag) : ST_OK;
  return st ? st : cmd_check_roof(c);
}

static Status find_kernel(Cmd *c, Request *r, const Source *src) {
  const char *name = c->cli->text[OPT_KERNEL], *names[64];
  int n = 0;
  r->module = ptx_parse(c->arena, src, NULL, c->diag);
  if (!r->module) return ST_INPUT;
  Status st = ptx_check(r->module, c->diag);
  if (st) return st;
  r->entry = ptx_entry(r->module, name);
  if (r->entry) return ST_OK;
  char *all = arena_strdup(c->arena, "");
  for (int i = 0; i < r->module->nfuncs && n < 64; i++)
    if (r->module->funcs[i].entry) {
      names[n++] = r->module->funcs[i].name;
      all = arena_printf(c->arena, "%s%s%s", all, n > 1 ? ", " : "", names[n - 1]);
    }
  if (name)
    return diag_error(c->diag, (Place){.src = src}, "no kernel \"%s\"%s", name,
                      diag_nearest(c->arena, name, names, n));
  return diag_error(c->diag, (Place){.src = src}, n ? "several kernels; say which with --kernel: %s"
                                                    : "there is no kernel in it%s", all);
}

// ---- results ------------------------------------------------------------------------------------
static void show_diff(Cmd *c, const RunArg *arg, int index, const char *path, const RunDiff *diff) {
  if (cli_has(c->cli, OPT_JSON)) {
    Json j;
    json_begin(&j, c->arena);
    json_int(&j, "argument", index);
    json_str(&j, "expect", path);
    json_bool(&j, "passed", !diff->bad);
    json_int(&j, "elements", diff->count);
    json_int(&j, "differ", diff->bad);
    json_num(&j, "max_error", diff->worst);
    if (diff->bad) {
      json_int(&j, "first", diff->first);
      json_num(&j, "expected", diff->expected);
      json_num(&j, "found", diff->found);
    }
    fputs(json_end(&j), stdout);
  } else if (!diff->bad) {
    printf("arg%d       %lld elements agree with %s, largest error %.3g\n", index,
           (long long)diff->count, path, diff->worst);
  } else {
    printf("arg%d       %lld of %lld elements differ from %s: [%lld] is %.9g, not %.9g (%s)\n",
           index, (long long)diff->bad, (long long)diff->count, path, (long long)diff->first,
           diff->found, diff->expected, arg->spec);
  }
}

// Told only in the end.
static void compare_all(Cmd *c, Request *r, bool last) {
  for (int i = 0, k = 0; i < r->nargs && k < r->nexpect; i++) {
    if (r->args[i].role < RUN_INOUT) continue;
    const RunExpect *e = &r->expect[k++];
    if (!e->path) continue;
    RunDiff diff = run_compare(&r->args[i], e, r->tolerance);
    if (last) show_diff(c, &r->args[i], i, e->path, &diff);
    r->failed |= diff.bad > 0;
  }
}

// What a run must have done besides reaching its end.
static Status judge(Cmd *c, Request *r, bool last) {
  if (c->cli->verb != CLI_RUN) return ST_OK;
  compare_all(c, r, last);
  return run_unwritten(r->args, r->nargs, c->diag);
}

static void show_run(Cmd *c, const Request *r, const Device *dev) {
  const Launch *l = &r->launch;
  if (cli_has(c->cli, OPT_JSON)) {
    Json j;
    json_begin(&j, c->arena);
    json_str(&j, "kernel", r->entry->name);
    json_str(&j, "device", device_info(dev)->id);
    json_str(&j, "ran", "to its end");
    fputs(json_end(&j), stdout);
    return;
  }
  printf("%s ran on %s: %ux%ux%u blocks of %ux%ux%u threads\n", r->entry->name,
         device_info(dev)->id, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
         l->block[2]);
}

static bool counts(const Cmd *c) {
  return c->cli->verb == CLI_COUNTERS || cli_has(c->cli, OPT_COUNTERS);
}

// Counting has the fixed order and no sanitizer: what else is asked for runs before it.
static bool counts_apart(const Cmd *c) {
  return counts(c) && (cli_has(c->cli, OPT_SCHEDULES) || cli_has(c->cli, OPT_SCHEDULE) ||
                       cli_has(c->cli, OPT_SANITIZE));
}

// What every launch begins with, of the arrays that the kernel changes.
static Status keep_contents(Request *r, uint8_t **before, Diag *d) {
  for (int i = 0; i < r->nargs; i++) {
    if (r->args[i].role != RUN_INOUT) continue;
    before[i] = malloc(r->args[i].bytes + 1);
    if (!before[i])
      return diag_fail(d, ST_DEVICE, "not enough host memory for a copy of arg%d", i);
    memcpy(before[i], r->args[i].data, r->args[i].bytes);
  }
  return ST_OK;
}

static Status launch_again(Cmd *c, Request *r, Device *dev, uint8_t *const *before) {
  for (int i = 0; i < r->nargs; i++)
    if (before[i]) memcpy(r->args[i].data, before[i], r->args[i].bytes);
  return run_launch(dev, &r->launch, r->module, r->entry, r->args, r->nargs, c->diag);
}

// Runs under every schedule asked for; the first that fails is named.  Then once more, to count.
static Status launch_all(Cmd *c, Request *r, Device *dev) {
  uint64_t n = c->cli->number[OPT_SCHEDULES], first = c->cli->number[OPT_SCHEDULE];
  bool last = counts_apart(c);
  uint8_t **before = arena_array(c->arena, uint8_t *, r->nargs + 1);
  Status st = n > 1 || last ? keep_contents(r, before, c->diag) : ST_OK;
  for (uint64_t s = 0; s < (n ? n : 1) && !st && !r->failed; s++) {
    if (n) cmd_schedule(c, first + s);
    st = launch_again(c, r, dev, before);
    if (!st && (s + 1 < n || last)) st = judge(c, r, false);
    if (n && (st == ST_FAILED || r->failed))
      diag_fail(c->diag, ST_FAILED, "schedule %llu is the first of %llu that fails",
                (unsigned long long)(first + s), (unsigned long long)n);
  }
  if (last && !st && !r->failed) {
    cmd_count(c);
    st = launch_again(c, r, dev, before);
  }
  for (int i = 0; i < r->nargs; i++) free(before[i]);
  return st;
}

static Status run_on(Cmd *c, Request *r, Device *dev, const Source *src) {
  Status st = device_load_ptx(dev, src, NULL, r->entry->name, &r->kernel, c->diag);
  r->launch.kernel = r->kernel;
  if (counts(c) && !counts_apart(c)) cmd_count(c);
  if (!st) st = launch_all(c, r, dev);
  if (!st && c->cli->verb == CLI_RUN) show_run(c, r, dev);
  if (!st && cli_has(c->cli, OPT_SAVE))
    st = run_save(c->arena, c->cli->text[OPT_SAVE], r->args, r->nargs, c->diag);
  if (!st) st = judge(c, r, true);
  bool counted = counts(c) && !(r->failed && counts_apart(c));
  if (!st && counted) st = cmd_show_counts(c, r->entry->name, r->kernel);
  return st ? st : r->failed ? ST_FAILED : ST_OK;
}

Status cmd_run(Cmd *c) {
  Request r = {0};
  Source *src;
  Device *dev;
  Status st = source_read(c->arena, c->cli->operand[0], &src, c->diag);
  if (!st) st = find_kernel(c, &r, src);
  if (!st) st = read_shape(c, &r);
  if (!st) st = read_args(c, &r);
  if (!st) st = check_ends(c, &r);
  if (!st) st = run_args_check(r.module, r.entry, r.args, r.nargs, c->diag);
  if (!st) st = cmd_device(c, &dev);
  if (!st) st = run_on(c, &r, dev, src);
  run_expect_free(r.expect, r.nexpect);
  run_args_free(r.args, r.nargs);
  return st;
}
