// Tensor maps: what may be in one.  The rules of cuTensorMapEncodeTiled (driver API, tensor memory
// management), checked here so that each device says the same, and says which rule it is.
#include "device.h"

//    bytes; 0: packed types of fewer bits than a byte each, which this code does not know
static const uint8_t type_bytes[TENSOR_TYPES] = {
    [TENSOR_U8] = 1,  [TENSOR_U16] = 2, [TENSOR_U32] = 4,     [TENSOR_S32] = 4,  [TENSOR_U64] = 8,
    [TENSOR_S64] = 8, [TENSOR_F16] = 2, [TENSOR_F32] = 4,     [TENSOR_F64] = 8,  [TENSOR_BF16] = 2,
    [TENSOR_F32_FTZ] = 4,               [TENSOR_TF32] = 4,    [TENSOR_TF32_FTZ] = 4,
};

int tensor_type_bytes(TensorType t) { return type_bytes[t]; }

static bool is_real(TensorType t) { return t >= TENSOR_F16 && t <= TENSOR_TF32_FTZ; }

typedef unsigned long long Big; // for printf

#define FAIL(...) return diag_fail(d, ST_INPUT, "tensor map: " __VA_ARGS__)

static Status check_modes(const TensorMapDesc *m, Diag *d) {
  if (m->type >= TENSOR_TYPES)
    FAIL("type %u is not one of the %d types", m->type, TENSOR_TYPES);
  if (m->interleave) // where slices lie in shared memory is not documented: nothing to check by
    FAIL("interleave %u: only 0, none: the layout of the others in shared memory is not documented",
         m->interleave);
  if (m->swizzle > TENSOR_SWIZZLE_128B)
    FAIL("swizzle %u: 0 none, 1 32 bytes, 2 64 bytes, 3 128 bytes", m->swizzle);
  if (m->l2 > 3)
    FAIL("L2 promotion %u: 0 none, 1 64 bytes, 2 128 bytes, 3 256 bytes", m->l2);
  if (m->fill > TENSOR_FILL_NAN)
    FAIL("fill %u: 0 zeros, 1 NaN", m->fill);
  if (m->fill == TENSOR_FILL_NAN && !is_real((TensorType)m->type))
    FAIL("filling with NaN needs a floating-point type");
  if (m->rank < 1 || m->rank > 5)
    FAIL("rank %u: 1 to 5", m->rank);
  return ST_OK;
}

static Status check_tensor(const TensorMapDesc *m, Diag *d) {
  if (!m->address || m->address % 16)
    FAIL("address 0x%llx is not a multiple of 16", (Big)m->address);
  for (int i = 0; i < m->rank; i++)
    if (!m->dim[i] || m->dim[i] > UINT64_C(1) << 32)
      FAIL("dimension %d has %llu elements: 1 to 2^32", i, (Big)m->dim[i]);
  for (int i = 1; i < m->rank; i++) {
    if (m->stride[i - 1] % 16)
      FAIL("dimension %d has a stride of %llu bytes, which is no multiple of 16", i,
           (Big)m->stride[i - 1]);
    if (m->stride[i - 1] >= UINT64_C(1) << 40)
      FAIL("dimension %d has a stride of %llu bytes: less than 2^40", i, (Big)m->stride[i - 1]);
  }
  return ST_OK;
}

static Status check_box(const TensorMapDesc *m, Diag *d) {
  for (int i = 0; i < m->rank; i++) {
    if (m->box[i] < 1 || m->box[i] > 256)
      FAIL("the box has %u elements in dimension %d: 1 to 256", m->box[i], i);
    if (m->step[i] > 8)
      FAIL("an element stride of %u in dimension %d: 1 to 8", m->step[i], i);
  }
  unsigned bytes = m->box[0] * type_bytes[m->type], span = 16u << m->swizzle;
  if (bytes % 16)
    FAIL("the box is %u bytes wide, which is no multiple of 16", bytes);
  if (m->swizzle && bytes > span)
    FAIL("the box is %u bytes wide: %u at most with this swizzle", bytes, span);
  return ST_OK;
}

Status device_tensor_map(Device *dev, const TensorMapDesc *m, void *map, Diag *d) {
  Status st = check_modes(m, d);
  if (st == ST_OK && !type_bytes[m->type])
    st = diag_fail(d, ST_INPUT, "tensor map: type %u needs sm_100", m->type);
  if (st == ST_OK)
    st = check_tensor(m, d);
  if (st == ST_OK)
    st = check_box(m, d);
  return st == ST_OK ? dev->ops->tensor_map(dev, m, map, d) : st;
}
