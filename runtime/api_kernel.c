// The C API: any kernel of any PTX, launched with a list of arguments.
#include "api.h"

#include <stdlib.h>
#include <string.h>

struct psm_kernel {
  psm_device *device;
  Arena *arena;
  const PtxModule *module;
  const PtxFunc *entry;
  Kernel *kernel;
  uint8_t *block; // arguments, packed
};

psm_status psm_kernel_load(psm_device *dev, const char *name, const char *ptx, size_t bytes,
                           const char *entry, psm_kernel **out) {
  Diag *d = api_begin(dev->owner);
  *out = NULL;
  if (!api_needs(name, "name", d) || !api_needs(ptx, "ptx", d)) return PSM_INPUT;
  psm_kernel *k = calloc(1, sizeof *k);
  if (!k) abort();
  k->device = dev;
  k->arena = arena_new();
  const Source *src = source_new(k->arena, arena_strdup(k->arena, name),
                                 arena_strndup(k->arena, ptx, bytes), bytes);
  k->module = ptx_parse(k->arena, src, NULL, d);
  Status st = k->module ? ptx_check(k->module, d) : ST_INPUT;
  k->entry = st ? NULL : ptx_entry(k->module, entry);
  if (!st && !k->entry)
    st = entry ? diag_error(d, (Place){.src = src}, "no kernel \"%s\" in this module", entry)
               : diag_error(d, (Place){.src = src}, "the module has no kernel, or several: say which");
  if (!st) st = device_load_ptx(dev->device, src, NULL, k->entry->name, &k->kernel, d);
  if (st) {
    psm_kernel_free(k);
    return api_status(st);
  }
  k->block = arena_alloc(k->arena, k->entry->param_bytes + 1u);
  *out = k;
  return PSM_OK;
}

void psm_kernel_free(psm_kernel *k) {
  if (!k) return;
  kernel_free(k->kernel);
  arena_free(k->arena);
  free(k);
}

const char *psm_kernel_name(const psm_kernel *k) { return k->entry->name; }
int psm_kernel_params(const psm_kernel *k) { return k->entry->nparams; }

uint64_t psm_kernel_param_bytes(const psm_kernel *k, int index) {
  bool there = index >= 0 && index < k->entry->nparams;
  return there ? k->module->vars[k->entry->params[index]].bytes : 0;
}

static Status pack(psm_kernel *k, const psm_kernel_arg *args, int nargs, Diag *d) {
  const PtxFunc *f = k->entry;
  if (nargs != f->nparams)
    return diag_error(d, (Place){k->module->src, f->line, f->col, 0, NULL},
                      "%s has %d parameters, %d arguments are given", f->name, f->nparams, nargs);
  memset(k->block, 0, f->param_bytes);
  for (int i = 0; i < nargs; i++) {
    const PtxVar *v = &k->module->vars[f->params[i]];
    if (args[i].bytes != v->bytes)
      return diag_error(d, (Place){k->module->src, v->line, v->col, 0, NULL},
                        "argument %d is %llu bytes, parameter %s has %llu", i,
                        (unsigned long long)args[i].bytes, v->name, (unsigned long long)v->bytes);
    if (!api_needs(args[i].data, v->name, d)) return ST_INPUT;
    memcpy(k->block + v->offset, args[i].data, v->bytes);
  }
  return ST_OK;
}

psm_status psm_kernel_launch(psm_kernel *k, const psm_shape *shape, const psm_kernel_arg *args,
                             int nargs) {
  Diag *d = api_begin(k->device->owner);
  Status st = pack(k, args, nargs, d);
  if (st) return api_status(st);
  Launch l = {.kernel = k->kernel, .smem = shape->shared_bytes, .args = k->block,
              .arg_bytes = k->entry->param_bytes};
  for (int i = 0; i < 3; i++) {
    l.grid[i] = shape->grid[i] ? shape->grid[i] : 1;
    l.block[i] = shape->block[i] ? shape->block[i] : 1;
    l.cluster[i] = shape->cluster[i] ? shape->cluster[i] : 1;
  }
  return api_status(device_launch(k->device->device, &l, d));
}
