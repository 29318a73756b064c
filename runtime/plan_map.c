// Tensor maps from the tensors that are bound: the Arg says the box and the swizzle, the tensor its
// address, sizes and strides.
#include "plan.h"

_Static_assert((int)MAP_BYTES == (int)TENSOR_MAP_BYTES, "what the argument block has room for");

static TensorType map_type(Dtype t) {
  switch (t) {
  case DT_F16: return TENSOR_F16;
  case DT_BF16: return TENSOR_BF16;
  case DT_F32: return TENSOR_F32;
  case DT_F64: return TENSOR_F64;
  case DT_I32: return TENSOR_S32;
  case DT_I64: return TENSOR_S64;
  default: return TENSOR_U8;
  }
}

// A tensor without elements has a map too: of one element at an address that no copy reaches, since
// a kernel that asks for keys beyond the last one (there is none) gets zeros.
enum { PLAN_MAP_NOWHERE = 256 };

// Dimensions of a map start with the contiguous one.  A dimension of one element is never stepped
// over, so that its stride is free; the map's own rules ask for a multiple of 16.  Parts of a row
// are the last dimension: a box has all of its rows of the first part, then those of the second.
static TensorMapDesc describe(const ArgDecl *arg, const Tensor *t) {
  TensorMapDesc m = {.address = t->data,
                     .rank = (uint8_t)t->rank,
                     .type = (uint8_t)map_type(t->dtype),
                     .l2 = (uint8_t)arg->map.l2};
  uint64_t bytes = (uint64_t)dtype_bytes(t->dtype);
  for (int i = 0; i < t->rank; i++) {
    int from = t->rank - 1 - i;
    m.dim[i] = t->shape[from] > 0 ? (uint64_t)t->shape[from] : 1;
    if (t->shape[from] == 0) m.address = PLAN_MAP_NOWHERE;
    m.box[i] = arg->map.box[from];
    if (i > 0) m.stride[i - 1] = t->shape[from] > 1 ? (uint64_t)t->stride[from] * bytes : 16;
  }
  if (arg->map.parts) {
    m.dim[0] = m.box[0];
    m.dim[m.rank] = m.box[m.rank] = arg->map.parts;
    m.stride[m.rank++ - 1] = m.box[0] * bytes;
  }
  while (16u << m.swizzle < arg->map.swizzle) m.swizzle++; // 32, 64, 128 bytes: 1, 2, 3
  return m;
}

Status plan_tensor_map(const Step *step, const ArgDecl *arg, const Tensor *t, void *map, Diag *d) {
  if (!step->kernel)
    return diag_fail(d, ST_INPUT, "%s: its tensor map is made by a device: load the operator first",
                     arg->name);
  TensorMapDesc m = describe(arg, t);
  Status st = device_tensor_map(step->kernel->dev, &m, map, d);
  if (st != ST_OK) diag_add(d, SEV_NOTE, NOWHERE, "for tensor %s", arg->name);
  return st;
}
