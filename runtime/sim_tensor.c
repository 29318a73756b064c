// sim_tensor.c: tensor maps of the interpreter: made by the host, read by copies.
//
// What the driver writes into a map is not documented; here it is a record of its own, so that a
// map that was never made, or was overwritten, is noticed.
#include "sim_bulk.h"

typedef struct Record {
  uint64_t magic, address;
  uint64_t stride[SIM_MAX_RANK - 1];
  uint32_t dim_less_1[SIM_MAX_RANK];
  uint16_t box[SIM_MAX_RANK];
  uint8_t step[SIM_MAX_RANK];
  uint8_t type, rank, swizzle, l2, fill;
  uint64_t sum; // of what is in front
} Record;
_Static_assert(sizeof(Record) <= TENSOR_MAP_BYTES, "a map is 128 bytes");
#define MAGIC UINT64_C(0x70616d2d6d696173)

static uint64_t sum_of(const Record *r) { // FNV-1a
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < offsetof(Record, sum); i++)
    h = (h ^ ((const uint8_t *)r)[i]) * UINT64_C(0x100000001b3);
  return h;
}

Status sim_tensor_map(Device *dev, const TensorMapDesc *m, void *map, Diag *d) {
  (void)dev, (void)d; // the driver does not ask what lies at the address either: copies do
  Record r;
  memset(&r, 0, sizeof r); // padding too: it is summed
  r.magic = MAGIC;
  r.address = m->address;
  for (int i = 0; i < m->rank; i++) {
    if (i)
      r.stride[i - 1] = m->stride[i - 1];
    r.dim_less_1[i] = (uint32_t)(m->dim[i] - 1);
    r.box[i] = (uint16_t)m->box[i];
    r.step[i] = (uint8_t)(m->step[i] ? m->step[i] : 1);
  }
  r.type = m->type, r.rank = m->rank;
  r.swizzle = m->swizzle, r.l2 = m->l2, r.fill = m->fill;
  r.sum = sum_of(&r);
  memset(map, 0, TENSOR_MAP_BYTES);
  memcpy(map, &r, sizeof r);
  return ST_OK;
}

// ---- the box of an instruction ------------------------------------------------------------------
static const Op *read_map(Warp *w, const Op *op, uint32_t lane, const Address *a, Record *r) {
  Span s;
  const Op *stop = sim_check(w, op, lane, a->space, sim_lane_address(w, a, lane), TENSOR_MAP_BYTES,
                             64, ACCESS_READ, &s);
  if (stop)
    return stop;
  memcpy(r, s.data, sizeof *r);
  if (r->magic != MAGIC || r->sum != sum_of(r))
    return sim_trap_at(w, op, lane, "there is no tensor map at this address");
  int rank = op->more->async->rank;
  if (r->rank != rank)
    return sim_trap_at(w, op, lane, "%d coordinates for a tensor map of rank %u", rank, r->rank);
  return NULL;
}

const Op *sim_tensor_box(Warp *w, const Op *op, uint32_t lane, bool store, Box *b) {
  const AsyncArgs *g = op->more->async;
  Record r;
  const Op *stop = read_map(w, op, lane, store ? &g->to : &g->from, &r);
  if (stop)
    return stop;
  *b = (Box){.rank = r.rank, .base = r.address, .nrows = 1, .type = r.type,
             .element = (uint8_t)tensor_type_bytes((TensorType)r.type), .swizzle = r.swizzle,
             .nan = r.fill == TENSOR_FILL_NAN};
  b->bytes = b->element;
  for (int i = 0; i < r.rank; i++) {
    b->dim[i] = (uint64_t)r.dim_less_1[i] + 1;
    b->stride[i] = i ? r.stride[i - 1] : b->element;
    b->step[i] = i ? r.step[i] : 1; // the first is ignored
    b->count[i] = (r.box[i] + b->step[i] - 1) / b->step[i];
    b->at[i] = (int32_t)sim_r32(w, g->coords[i])[lane];
    b->bytes *= b->count[i];
    b->nrows *= i ? b->count[i] : 1;
    if (store && b->at[i] < 0) // ISA 9.7.9.27.1.1
      return sim_trap_at(w, op, lane, "a store at coordinate %lld of dimension %d: it can't be "
                         "negative", (long long)b->at[i], i);
  }
  // Not in the manual.  An H200 stops at any other with an illegal instruction, whatever the
  // swizzle.
  if (b->at[0] * (int64_t)b->element % 16)
    return sim_trap_at(w, op, lane, "coordinate 0 is %lld: %lld bytes into a row, which must be a "
                       "multiple of 16", (long long)b->at[0], (long long)b->at[0] * b->element);
  uint32_t row = b->count[0] * b->element, span = 16u << b->swizzle;
  b->pitch = b->swizzle && row < span ? span : 0;
  return NULL;
}

// ---- elements -----------------------------------------------------------------------------------
//    TensorType  of reductions  NaN that fills, as an H200 has it
static const struct { uint8_t ptx; uint64_t nan; } elements[TENSOR_TYPES] = {
    [TENSOR_U8] = {PTX_T_U8, 0},      [TENSOR_U16] = {PTX_T_U16, 0},
    [TENSOR_U32] = {PTX_T_U32, 0},    [TENSOR_S32] = {PTX_T_S32, 0},
    [TENSOR_U64] = {PTX_T_U64, 0},    [TENSOR_S64] = {PTX_T_S64, 0},
    [TENSOR_F16] = {PTX_T_F16, 0x7ff7},
    [TENSOR_BF16] = {PTX_T_BF16, 0x7ff7},
    [TENSOR_F32] = {PTX_T_F32, 0x7ff77ff7},
    [TENSOR_F32_FTZ] = {PTX_T_F32, 0x7ff77ff7},
    [TENSOR_TF32] = {PTX_T_F32, 0x7ff77ff7},
    [TENSOR_TF32_FTZ] = {PTX_T_F32, 0x7ff77ff7},
    [TENSOR_F64] = {PTX_T_F64, UINT64_C(0x7ff77ff77ff77ff7)},
};

PtxType sim_tensor_type(const Box *b) { return (PtxType)elements[b->type].ptx; }

// To 10 bits of fraction, nearest, ties to even; any NaN becomes one.
static uint32_t to_tf32(uint32_t u) {
  if ((u & 0x7fffffff) > 0x7f800000)
    return 0x7fffe000;
  return (u + 0xfff + (u >> 13 & 1)) & ~UINT32_C(0x1fff);
}

static void convert_floats(const Box *b, uint8_t *at, uint32_t bytes) {
  // The .ftz types change no load.
  bool tf32 = b->type == TENSOR_TF32 || b->type == TENSOR_TF32_FTZ;
  for (uint32_t i = 0; tf32 && i < bytes; i += 4) {
    uint32_t u;
    memcpy(&u, at + i, 4);
    u = to_tf32(u);
    memcpy(at + i, &u, 4);
  }
}

static void fill(const Box *b, uint8_t *at, uint32_t bytes) {
  uint64_t nan = elements[b->type].nan;
  memset(at, 0, bytes);
  for (uint32_t i = 0; b->nan && i < bytes; i += b->element)
    memcpy(at + i, &nan, b->element);
}

void sim_tensor_convert(const Box *b, const BoxRow *row, uint8_t *data) {
  if (!b->rank)
    return;
  convert_floats(b, data + row->lo, row->hi - row->lo);
  fill(b, data, row->lo);
  fill(b, data + row->hi, row->bytes - row->hi);
}
