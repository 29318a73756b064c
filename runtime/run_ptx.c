// Launching a kernel on its arguments, and what came out.
#include "run_ptx.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outfile.h"

// Arrays are passed as pointers, and tensor maps that say so.
static bool by_pointer(const RunArg *arg) {
  return arg->role > RUN_TMAP || (arg->role == RUN_TMAP && arg->pointer);
}
static uint64_t passed_bytes(const RunArg *arg) { return by_pointer(arg) ? 8 : arg->bytes; }

static char *type_text(Arena *a, const PtxVar *v) {
  if (v->is_array) return arena_printf(a, "%llu bytes", (unsigned long long)v->bytes);
  return arena_printf(a, ".%s", ptx_type_text(v->type));
}

Status run_args_check(const PtxModule *m, const PtxFunc *entry, const RunArg *args, int n,
                      Diag *d) {
  if (n != entry->nparams)
    return diag_error(d, (Place){m->src, entry->line, entry->col, 0, NULL},
                      "%s has %d parameter%s, %d argument%s given", entry->name, entry->nparams,
                      entry->nparams == 1 ? "" : "s", n, n == 1 ? " is" : "s are");
  Status st = ST_OK;
  for (int i = 0; i < n; i++) {
    const PtxVar *v = &m->vars[entry->params[i]];
    if (passed_bytes(&args[i]) == v->bytes) continue;
    st = diag_error(d, (Place){m->src, v->line, v->col, 0, NULL},
                    "argument %d (%s) is %llu bytes%s, parameter %s is %s", i, args[i].spec,
                    (unsigned long long)passed_bytes(&args[i]),
                    by_pointer(&args[i]) ? " (a pointer)" : "", v->name,
                    type_text(d->arena, v));
  }
  return st;
}

// ---- the launch ---------------------------------------------------------------------------------
enum { HOLE = 0xff, OTHER_HOLE = 0x7f }; // what stands in an output that nothing has written

static Status place_array(Device *dev, RunArg *arg, int index, uint8_t hole, Diag *d) {
  char *name = arena_printf(d->arena, "arg%d", index);
  Status st = device_alloc(dev, arg->bytes, name, &arg->ptr, d);
  bool fresh = arg->role == RUN_OUT;
  if (fresh) memset(arg->data, hole, arg->bytes);
  // The interpreter must see that nobody has written it.
  if (!st && !(fresh && device_info(dev)->is_sim))
    st = device_write(dev, arg->ptr, arg->data, arg->bytes, d);
  return st;
}

static Status place_all(Device *dev, RunArg *args, int n, uint8_t hole, Diag *d) {
  Status st = ST_OK;
  for (int i = 0; i < n && !st; i++)
    if (args[i].role >= RUN_IN) st = place_array(dev, &args[i], i, hole, d);
  for (int i = 0; i < n && !st; i++)
    if (args[i].role == RUN_TMAP) {
      st = run_tmap_encode(dev, &args[i], args, n, d);
      if (!st && args[i].pointer) st = place_array(dev, &args[i], i, hole, d);
    }
  return st;
}

static void pack(uint8_t *block, const PtxModule *m, const PtxFunc *entry, const RunArg *args,
                 int n) {
  for (int i = 0; i < n; i++) {
    const void *from = by_pointer(&args[i]) ? &args[i].ptr : (const void *)args[i].data;
    memcpy(block + m->vars[entry->params[i]].offset, from, passed_bytes(&args[i]));
  }
}

static bool all_bytes(const uint8_t *at, int n, uint8_t what) {
  for (int i = 0; i < n; i++)
    if (at[i] != what) return false;
  return true;
}

// Elements that may never have been written: known on sim, elsewhere those that look as before.
static Status find_holes(Device *dev, RunArg *arg, uint8_t hole, Diag *d) {
  uint8_t *marks = malloc(arg->bytes + 1);
  if (!marks) return diag_fail(d, ST_DEVICE, "not enough host memory for %s", arg->spec);
  bool known = device_written(dev, arg->ptr, arg->bytes, marks);
  int size = arg->type->bytes;
  arg->unwritten = 0;
  for (int64_t i = 0; i < arg->count; i++) {
    uint8_t *at = arg->data + i * size;
    bool whole = known ? all_bytes(marks + i * size, size, 1) : !all_bytes(at, size, hole);
    for (int k = 0; known && !whole && k < size; k++)
      if (!marks[i * size + k]) at[k] = hole;
    if (!whole && !arg->unwritten++) arg->hole = i;
  }
  free(marks);
  return ST_OK;
}

static Status read_back(Device *dev, RunArg *args, int n, uint8_t hole, Diag *d) {
  Status st = ST_OK;
  for (int i = 0; i < n && !st; i++) {
    if (args[i].role < RUN_INOUT) continue;
    st = device_read(dev, args[i].data, args[i].ptr, args[i].bytes, d);
    if (!st && args[i].role == RUN_OUT) st = find_holes(dev, &args[i], hole, d);
  }
  return st;
}

static Status launch_once(Device *dev, Launch *l, const PtxModule *m, const PtxFunc *entry,
                          RunArg *args, int n, uint8_t hole, Diag *d) {
  Status st = place_all(dev, args, n, hole, d);
  uint8_t *block = calloc(1, entry->param_bytes + 1u);
  if (!block) abort();
  if (!st) {
    pack(block, m, entry, args, n);
    l->args = block;
    l->arg_bytes = entry->param_bytes;
    st = device_launch(dev, l, d);
  }
  if (!st) st = device_sync(dev, d);
  if (!st) st = read_back(dev, args, n, hole, d);
  for (int i = 0; i < n; i++)
    if (args[i].ptr) device_free(dev, args[i].ptr), args[i].ptr = 0;
  free(block);
  l->args = NULL;
  return st;
}

// The arguments with arrays of their own; false when there is no memory.
static bool copy_args(RunArg *to, const RunArg *from, int n) {
  bool ok = true;
  for (int i = 0; i < n; i++) {
    to[i] = from[i];
    if (from[i].role < RUN_IN) continue;
    to[i].data = malloc(from[i].bytes + 1);
    if (to[i].data) memcpy(to[i].data, from[i].data, from[i].bytes);
    else ok = false;
  }
  return ok;
}

// Only what looks unwritten in both launches, on different contents, is.
static void both_holes(RunArg *first, const RunArg *second) {
  int size = first->type->bytes;
  first->unwritten = 0;
  for (int64_t i = 0; i < first->count; i++)
    if (all_bytes(first->data + i * size, size, HOLE) &&
        all_bytes(second->data + i * size, size, OTHER_HOLE) && !first->unwritten++)
      first->hole = i;
}

Status run_launch(Device *dev, Launch *l, const PtxModule *m, const PtxFunc *entry, RunArg *args,
                  int n, Diag *d) {
  Status st = run_args_check(m, entry, args, n, d);
  if (st) return st;
  bool outputs = false, holes = false;
  for (int i = 0; i < n; i++) outputs |= args[i].role == RUN_OUT;
  if (!outputs || device_info(dev)->is_sim)
    return launch_once(dev, l, m, entry, args, n, HOLE, d);
  RunArg *again = arena_array(d->arena, RunArg, n + 1);
  if (!copy_args(again, args, n))
    st = diag_fail(d, ST_DEVICE, "not enough host memory for a copy of the arguments");
  if (!st) st = launch_once(dev, l, m, entry, args, n, HOLE, d);
  for (int i = 0; i < n; i++) holes |= args[i].role == RUN_OUT && args[i].unwritten;
  if (!st && holes) st = launch_once(dev, l, m, entry, again, n, OTHER_HOLE, d);
  for (int i = 0; i < n && !st && holes; i++)
    if (args[i].role == RUN_OUT) both_holes(&args[i], &again[i]);
  run_args_free(again, n);
  return st;
}

// ---- what came out ------------------------------------------------------------------------------
Status run_save(Arena *a, const char *dir, const RunArg *args, int n, Diag *d) {
  const char *missing = outfile_missing(a, dir), **written = arena_array(a, const char *, n + 1);
  int nwritten = 0;
  Status st = outfile_folder(a, dir, d);
  for (int i = 0; i < n && !st; i++) {
    if (args[i].role < RUN_INOUT) continue;
    const char *path = arena_printf(a, "%s/arg%d.npy", dir, i);
    st = npy_write(a, path, args[i].type->npy, args[i].rank, args[i].shape, args[i].data, d);
    if (!st) written[nwritten++] = path;
  }
  while (st && nwritten) unlink(written[--nwritten]); // all or none
  if (st) outfile_unmake(a, dir, missing);
  return st;
}

static double element(const RunType *t, const uint8_t *at) {
  if (t->dtype != DT_COUNT) return dtype_load(t->dtype, at);
  uint64_t u = 0;
  memcpy(&u, at, (size_t)t->bytes);
  int shift = 64 - 8 * t->bytes;
  return t->name[0] == 'u' ? (double)u : (double)((int64_t)(u << shift) >> shift);
}

static bool agrees(const RunType *t, const uint8_t *want, const uint8_t *got, Tolerance tol,
                   double *err) {
  double x = element(t, want), y = element(t, got);
  if (t->dtype != DT_COUNT) return element_agrees(x, y, tol, t->dtype, err);
  *err = y > x ? y - x : x - y;
  // Doubles do not hold all 64-bit integers: without tolerance the bytes decide.
  bool same = !memcmp(want, got, (size_t)t->bytes);
  return same || (*err > 0 && *err <= tol.abs + tol.rel * (x < 0 ? -x : x));
}

Status run_unwritten(const RunArg *args, int n, Diag *d) {
  Status st = ST_OK;
  for (int i = 0; i < n; i++) {
    const RunArg *a = &args[i];
    if (a->role != RUN_OUT || !a->unwritten) continue;
    st = diag_fail(d, ST_FAILED,
                   "arg%d: %lld of %lld elements were never written, the first is [%lld] (%s; "
                   "in%s=0 begins with zeros)", i, (long long)a->unwritten, (long long)a->count,
                   (long long)a->hole, a->spec, a->spec);
  }
  return st;
}

// The file's elements may be named otherwise but are as many bits: bf16 is u2 there.
Status run_expect_read(Arena *a, const RunArg *arg, const char *path, RunExpect *out, Diag *d) {
  *out = (RunExpect){.path = NULL};
  Status st = npy_read(path, &out->npy, &out->bytes, d);
  if (st) return st;
  out->path = path;
  bool same = out->npy.type == arg->type->npy && out->npy.rank == arg->rank &&
              !memcmp(out->npy.shape, arg->shape, (size_t)arg->rank * sizeof *arg->shape);
  return same ? ST_OK
              : diag_error(d, (Place){.src = source_new(a, path, "", 0)},
                           "its type ('%s') or shape is not that of %s", npy_descr(out->npy.type),
                           arg->spec);
}

void run_expect_free(RunExpect *e, int n) {
  for (int i = 0; i < n; i++)
    if (e[i].path) free(e[i].bytes);
}

RunDiff run_compare(const RunArg *arg, const RunExpect *expect, Tolerance tol) {
  RunDiff out = {.first = -1, .count = arg->count};
  for (int64_t i = 0; i < arg->count; i++) {
    const uint8_t *want = (const uint8_t *)expect->npy.data + i * arg->type->bytes;
    const uint8_t *got = arg->data + i * arg->type->bytes;
    double err;
    bool ok = agrees(arg->type, want, got, tol, &err);
    if (err > out.worst) out.worst = err;
    if (ok) continue;
    if (!out.bad++) {
      out.first = i;
      out.expected = element(arg->type, want);
      out.found = element(arg->type, got);
    }
  }
  return out;
}
