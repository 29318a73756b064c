// Launching a kernel on its arguments, and what came out.
#include "run_ptx.h"

#include <stdlib.h>
#include <string.h>

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

Status run_args_check(const PtxModule *m, const PtxFunc *entry, const RunArg *args, int n, Diag *d) {
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
static Status place_array(Device *dev, RunArg *arg, int index, Diag *d) {
  char *name = arena_printf(d->arena, "arg%d", index);
  Status st = device_alloc(dev, arg->bytes, name, &arg->ptr, d);
  if (!st && arg->role != RUN_OUT) st = device_write(dev, arg->ptr, arg->data, arg->bytes, d);
  return st;
}

static void pack(uint8_t *block, const PtxModule *m, const PtxFunc *entry, const RunArg *args, int n) {
  for (int i = 0; i < n; i++) {
    const void *from = by_pointer(&args[i]) ? &args[i].ptr : (const void *)args[i].data;
    memcpy(block + m->vars[entry->params[i]].offset, from, passed_bytes(&args[i]));
  }
}

Status run_launch(Device *dev, Launch *l, const PtxModule *m, const PtxFunc *entry, RunArg *args,
                  int n, Diag *d) {
  Status st = run_args_check(m, entry, args, n, d);
  for (int i = 0; i < n && !st; i++)
    if (args[i].role >= RUN_IN) st = place_array(dev, &args[i], i, d);
  for (int i = 0; i < n && !st; i++)
    if (args[i].role == RUN_TMAP) {
      st = run_tmap_encode(dev, &args[i], args, n, d);
      if (!st && args[i].pointer) st = place_array(dev, &args[i], i, d);
    }
  uint8_t *block = calloc(1, entry->param_bytes + 1u);
  if (!block) abort();
  if (!st) {
    pack(block, m, entry, args, n);
    l->args = block;
    l->arg_bytes = entry->param_bytes;
    st = device_launch(dev, l, d);
  }
  if (!st) st = device_sync(dev, d);
  for (int i = 0; i < n && !st; i++)
    if (args[i].role >= RUN_INOUT) st = device_read(dev, args[i].data, args[i].ptr, args[i].bytes, d);
  for (int i = 0; i < n; i++)
    if (args[i].ptr) device_free(dev, args[i].ptr), args[i].ptr = 0;
  free(block);
  l->args = NULL;
  return st;
}

// ---- what came out ------------------------------------------------------------------------------
Status run_save(Arena *a, const char *dir, const RunArg *args, int n, Diag *d) {
  Status st = outfile_folder(a, dir, d);
  for (int i = 0; i < n && !st; i++)
    if (args[i].role >= RUN_INOUT)
      st = npy_write(a, arena_printf(a, "%s/arg%d.npy", dir, i), args[i].type->npy, args[i].rank,
                     args[i].shape, args[i].data, d);
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

// The file's elements may be named otherwise but are as many bits: bf16 is u2 there.
Status run_compare(Arena *a, const RunArg *arg, const char *path, Tolerance tol, RunDiff *out,
                   Diag *d) {
  NpyArray npy;
  char *bytes;
  *out = (RunDiff){.first = -1};
  Status st = npy_read(path, &npy, &bytes, d);
  if (st) return st;
  bool same = npy.type == arg->type->npy && npy.rank == arg->rank &&
              !memcmp(npy.shape, arg->shape, (size_t)arg->rank * sizeof *arg->shape);
  if (!same)
    st = diag_error(d, (Place){.src = source_new(a, path, "", 0)},
                    "its type ('%s') or shape is not that of %s", npy_descr(npy.type), arg->spec);
  out->count = arg->count;
  for (int64_t i = 0; i < arg->count && !st; i++) {
    const uint8_t *want = (const uint8_t *)npy.data + i * arg->type->bytes;
    const uint8_t *got = arg->data + i * arg->type->bytes;
    double err;
    bool ok = agrees(arg->type, want, got, tol, &err);
    if (err > out->worst) out->worst = err;
    if (ok) continue;
    if (!out->bad++) {
      out->first = i;
      out->expected = element(arg->type, want);
      out->found = element(arg->type, got);
    }
  }
  free(bytes);
  return st;
}
