// The C API: any kernel of any PTX, launched with a list of arguments.
#include "api.h"

#include <stdlib.h>
#include <string.h>

#include "counters.h"

struct psm_kernel {
  psm_device *device;
  Arena *arena;
  const PtxModule *module;
  const PtxFunc *entry;
  Kernel *kernel;
  uint8_t *block; // arguments, packed
  Arena *text;    // what psm_kernel_counters gave last
};

psm_status psm_kernel_load(psm_device *dev, const char *name, const char *ptx, size_t bytes,
                           const char *entry, psm_kernel **out) {
  Diag *d = api_begin(dev->owner);
  *out = NULL;
  psm_kernel *k = calloc(1, sizeof *k);
  if (!k) abort();
  k->device = dev;
  k->arena = arena_new();
  const Source *src = api_source(k->arena, name, ptx, bytes, d);
  k->module = src ? ptx_parse(k->arena, src, NULL, d) : NULL;
  Status st = k->module ? ptx_check(k->module, d) : ST_INPUT;
  k->entry = st ? NULL : ptx_entry(k->module, entry);
  if (!st && !k->entry)
    st = entry ? diag_error(d, (Place){.src = src}, "no kernel \"%s\" in this module", entry)
               : diag_error(d, (Place){.src = src},
                            "the module has no kernel, or several: say which");
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
  if (k->text) arena_free(k->text);
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

psm_status psm_kernel_counters(psm_kernel *k, const char **json) {
  Diag *d = api_begin(k->device->owner);
  KernelCounts counts;
  *json = NULL;
  if (!kernel_counts(k->kernel, &counts))
    return api_status(diag_error(d, NOWHERE, "%s: nothing was counted: launches on the interpreter "
                                 "are, with the option counters", k->entry->name));
  if (k->text) arena_free(k->text);
  k->text = arena_new();
  Json j;
  json_begin(&j, k->text);
  counters_json(k->text, &counts, &roof_h200, &j);
  *json = json_end(&j);
  return PSM_OK;
}

// ---- tensor maps --------------------------------------------------------------------------------
static const uint8_t map_types[] = { // by psm_dtype
    [PSM_F64] = TENSOR_F64,   [PSM_F32] = TENSOR_F32, [PSM_F16] = TENSOR_F16,
    [PSM_BF16] = TENSOR_BF16, [PSM_E4M3] = TENSOR_U8, [PSM_E5M2] = TENSOR_U8,
    [PSM_I32] = TENSOR_S32,   [PSM_I64] = TENSOR_S64, [PSM_U8] = TENSOR_U8};

// 0, first, 2 first, ... as 0, 1, 2, ...; false when it is none.
static bool step_of(int bytes, int first, uint8_t *out) {
  for (*out = 0; *out < 4; ++*out)
    if (bytes == (*out ? first << (*out - 1) : 0)) return true;
  return false;
}

static Status describe(const psm_tensor_map *m, TensorMapDesc *out, Diag *d) {
  const psm_tensor *t = &m->tensor;
  if (t->rank < 1 || t->rank > 5)
    return diag_error(d, NOWHERE, "tensor map: rank %d: 1 to 5", t->rank);
  if ((unsigned)t->dtype >= sizeof map_types)
    return diag_error(d, NOWHERE, "tensor map: %d is no psm_dtype", (int)t->dtype);
  *out = (TensorMapDesc){.address = t->data, .rank = (uint8_t)t->rank, .type = map_types[t->dtype],
                         .fill = m->nan_fill != 0};
  if (!step_of(m->swizzle, 32, &out->swizzle))
    return diag_error(d, NOWHERE, "tensor map: a swizzle of %d bytes: 0, 32, 64 or 128",
                      m->swizzle);
  if (!step_of(m->l2_promotion, 64, &out->l2))
    return diag_error(d, NOWHERE, "tensor map: L2 promotion %d: 0, 64, 128 or 256",
                      m->l2_promotion);
  uint64_t bytes = (uint64_t)tensor_type_bytes((TensorType)out->type), row = bytes;
  bool dense = true;
  for (int i = 0; i < t->rank; i++) dense &= !t->stride[i];
  for (int i = 0; i < t->rank; i++) {
    int from = t->rank - 1 - i;
    if (t->shape[from] < 0 || t->stride[from] < 0)
      return diag_error(d, NOWHERE, "tensor map: dimension %d has a negative size or stride", from);
    out->dim[i] = (uint64_t)t->shape[from];
    out->box[i] = m->box[from];
    out->step[i] = m->step[from];
    if (i) out->stride[i - 1] = dense ? row : (uint64_t)t->stride[from] * bytes;
    row *= out->dim[i];
  }
  if (!dense && t->stride[t->rank - 1] != 1)
    return diag_error(d, NOWHERE,
                      "tensor map: the last dimension has a stride of %lld elements: it must "
                      "be 1",
                      (long long)t->stride[t->rank - 1]);
  return ST_OK;
}

psm_status psm_tensor_map_encode(psm_device *dev, const psm_tensor_map *m, void *map) {
  Diag *d = api_begin(dev->owner);
  TensorMapDesc desc;
  if (!api_needs(m, "m", d) || !api_needs(map, "map", d)) return PSM_INPUT;
  Status st = describe(m, &desc, d);
  return api_status(st ? st : device_tensor_map(dev->device, &desc, map, d));
}
