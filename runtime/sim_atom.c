// sim_atom.c: atom and red.  Lanes take their turn in lane order; CTAs of other host threads may
// come between, so each update is atomic on the host too.
#include "dtype.h"
#include "sim_mem.h"

static const char *const atom_names[ATOM_KINDS] = {"and", "or",  "xor", "exch", "add",
                                                    "inc", "dec", "min", "max",  "cas"};

static float f32_of(uint64_t bits) {
  uint32_t u = (uint32_t)bits;
  float f;
  memcpy(&f, &u, 4);
  return f;
}

static uint64_t bits_of_f32(float f) {
  uint32_t u;
  if (f != f)
    return 0x7fffffff;
  memcpy(&u, &f, 4);
  return u;
}

static uint64_t flush(uint64_t f32) { return f32 & 0x7f800000 ? f32 : f32 & 0x80000000; }

static uint64_t add_half(uint64_t a, uint64_t b, bool bf) {
  if (bf)
    return bf16_from_double(bf16_to_double((uint16_t)a) + bf16_to_double((uint16_t)b));
  return f16_from_double(f16_to_double((uint16_t)a) + f16_to_double((uint16_t)b));
}

// atom.add.f32 flushes subnormals on global memory, not on shared (ISA 9.7.13.6).
static uint64_t add(uint64_t a, uint64_t b, PtxType t, bool ftz) {
  switch (t) {
  case PTX_T_F32: {
    uint64_t x = ftz ? flush(a) : a, y = ftz ? flush(b) : b;
    uint64_t r = bits_of_f32(f32_of(x) + f32_of(y));
    return ftz ? flush(r) : r;
  }
  case PTX_T_F64: {
    double x, y;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    x += y;
    memcpy(&a, &x, 8);
    return a;
  }
  case PTX_T_F16:
  case PTX_T_BF16:
    return add_half(a, b, t == PTX_T_BF16);
  case PTX_T_F16X2:
  case PTX_T_BF16X2: {
    bool bf = t == PTX_T_BF16X2;
    return add_half(a & 0xffff, b & 0xffff, bf) | add_half(a >> 16 & 0xffff, b >> 16 & 0xffff, bf)
                                                      << 16;
  }
  default:
    return a + b;
  }
}

static double half_value(uint64_t bits, PtxType t) {
  return t == PTX_T_BF16 ? bf16_to_double((uint16_t)bits) : f16_to_double((uint16_t)bits);
}

static bool less(uint64_t a, uint64_t b, PtxType t) {
  if (t == PTX_T_F16 || t == PTX_T_BF16) // not true of a NaN: the old value stays
    return half_value(a, t) < half_value(b, t);
  if (ptx_type_class(t) != 'S')
    return a < b;
  return ptx_type_bits(t) == 32 ? (int32_t)a < (int32_t)b : (int64_t)a < (int64_t)b;
}

static uint64_t combine(AtomKind kind, uint64_t old, uint64_t b, uint64_t c, PtxType t, bool ftz) {
  if ((t == PTX_T_F16X2 || t == PTX_T_BF16X2) && kind != ATOM_ADD) { // by halves
    PtxType half = t == PTX_T_F16X2 ? PTX_T_F16 : PTX_T_BF16;
    return combine(kind, old & 0xffff, b & 0xffff, 0, half, ftz) |
           combine(kind, old >> 16 & 0xffff, b >> 16 & 0xffff, 0, half, ftz) << 16;
  }
  switch (kind) {
  case ATOM_AND: return old & b;
  case ATOM_OR: return old | b;
  case ATOM_XOR: return old ^ b;
  case ATOM_EXCH: return b;
  case ATOM_ADD: return add(old, b, t, ftz);
  case ATOM_INC: return old >= b ? 0 : old + 1;
  case ATOM_DEC: return old == 0 || old > b ? b : old - 1;
  case ATOM_MIN: return less(b, old, t) ? b : old;
  case ATOM_MAX: return less(old, b, t) ? b : old;
  default: return old == b ? c : old;
  }
}

#define UPDATE(NAME, T)                                                                            \
  static uint64_t NAME(uint8_t *at, AtomKind kind, uint64_t b, uint64_t c, PtxType t, bool ftz) {  \
    T *p = (T *)at, old = __atomic_load_n(p, __ATOMIC_SEQ_CST), next;                              \
    do                                                                                             \
      next = (T)combine(kind, old, (T)b, (T)c, t, ftz);                                            \
    while (!__atomic_compare_exchange_n(p, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));\
    return old;                                                                                    \
  }
UPDATE(update16, uint16_t)
UPDATE(update32, uint32_t)
UPDATE(update64, uint64_t)

int sim_atom_kind(const PtxInst *in) {
  int kind = 0;
  while (kind < ATOM_KINDS && !ptx_inst_has(in, atom_names[kind]))
    kind++;
  return kind;
}

// What cp.reduce.async.bulk has (ISA 9.7.9.25.4.2, 9.7.9.27.1.3).
bool sim_atom_takes(AtomKind kind, PtxType t) {
  bool real = t == PTX_T_F32 || t == PTX_T_F64, half = t == PTX_T_F16 || t == PTX_T_BF16;
  int bits = ptx_type_bits(t);
  switch (kind) {
  case ATOM_ADD: return bits >= 32 || half;
  case ATOM_MIN:
  case ATOM_MAX: return !real && (bits >= 32 || half);
  case ATOM_INC:
  case ATOM_DEC: return !real && bits == 32;
  default: return !real && bits >= 32;
  }
}

void sim_atom_reduce(uint8_t *at, AtomKind kind, PtxType t, const uint8_t *value) {
  uint64_t v = 0;
  int bytes = ptx_type_bits(t) / 8;
  memcpy(&v, value, (size_t)bytes);
  if (bytes == 8)
    update64(at, kind, v, 0, t, true);
  else if (bytes == 4)
    update32(at, kind, v, 0, t, true);
  else
    update16(at, kind, v, 0, t, true);
}

static uint64_t lane_value(const Warp *w, uint32_t at, uint32_t lane, int width) {
  return width == 8 ? sim_r64(w, at)[lane] : sim_r32(w, at)[lane];
}

static const Op *op_atom(Warp *w, const Op *op) {
  Access s;
  const Op *stop = sim_access(w, op, ACCESS_ATOMIC, &s);
  if (stop)
    return stop;
  sim_poll(w);
  uint64_t t64[32] = {0};
  uint32_t t32[32] = {0};
  bool ftz = op->more->skip[0];
  AtomKind kind = (AtomKind)op->more->v[0];
  PtxType type = (PtxType)op->type;
  SIM_LANES(i, w->active) {
    uint8_t *at = access_at(&s, i);
    uint64_t b = lane_value(w, op->b, i, op->width), c = lane_value(w, op->c, i, op->width);
    uint64_t old = op->bytes == 8   ? update64(at, kind, b, c, type, ftz)
                   : op->bytes == 4 ? update32(at, kind, b, c, type, ftz)
                                    : update16(at, kind, b, c, type, ftz);
    t64[i] = old;
    t32[i] = (uint32_t)old;
  }
  if (op->d)
    sim_put(w, op->d, op->width == 8 ? (void *)t64 : (void *)t32, op->width);
  return op + 1;
}

// 16 bytes compared and swapped, or exchanged, under the device's lock.
static const Op *op_wide(Warp *w, const Op *op) {
  Access s;
  const Op *stop = sim_access(w, op, ACCESS_ATOMIC, &s);
  if (stop)
    return stop;
  sim_poll(w);
  uint64_t t[64];
  bool swap = op->more->v[0] == ATOM_EXCH;
  const uint64_t *b = sim_r64(w, op->b), *c = sim_r64(w, op->c);
  pthread_mutex_lock(&w->cta->grid->dev->wide);
  SIM_LANES(i, w->active) {
    uint64_t *p = (uint64_t *)access_at(&s, i);
    t[i] = p[0], t[32 + i] = p[1];
    if (swap || (p[0] == b[i] && p[1] == b[32 + i]))
      p[0] = c[i], p[1] = c[32 + i]; // c is b in an exchange
  }
  pthread_mutex_unlock(&w->cta->grid->dev->wide);
  if (op->d)
    sim_put(w, op->d, t, 16);
  return op + 1;
}

bool sim_atom(Decoder *x, const PtxInst *in) {
  bool red = !strcmp(ptx_inst_form(in)->stem, "red");
  int first = red ? 0 : 1, kind = sim_atom_kind(in);
  PtxType t = (PtxType)in->type[0];
  int width = sim_width(t);
  bool real = t == PTX_T_F32 || t == PTX_T_F64;
  if (kind == ATOM_KINDS || (real && kind != ATOM_ADD && kind != ATOM_EXCH))
    return sim_unsupported(x, in, "this atomic operation");
  Address a = sim_address(x, in, &in->opnds[first]);
  uint32_t b = sim_source(x, &in->opnds[first + 1], t, width);
  uint32_t c = kind == ATOM_CAS ? sim_source(x, &in->opnds[first + 2], t, width) : b;
  bool wanted = !red && in->opnds[0].kind == PTX_O_REG;
  x->prog->asks_others |= wanted && in->space != PTX_S_SHARED && in->space != PTX_S_CLUSTER;
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  more->v[0] = (uint32_t)kind;
  more->skip[0] = t == PTX_T_F32 && in->space != PTX_S_SHARED && in->space != PTX_S_CLUSTER;
  Op *op = sim_emit(x, width == 16 ? op_wide : op_atom);
  sim_set_address(op, &a, ptx_type_bits(t) / 8, 1);
  op->b = b;
  op->c = c;
  op->d = wanted ? x->func->reg[in->opnds[0].reg] : 0;
  op->width = (uint8_t)width;
  op->type = (uint8_t)t;
  op->more = more;
  return true;
}

// ---- vectors ------------------------------------------------------------------------------------
// Each element by itself (ISA 9.7.13.5): v the sources, list the destinations, skip[0] the
// AtomKind.
static const Op *op_atom_vec(Warp *w, const Op *op) {
  Access s;
  const Op *stop = sim_access(w, op, ACCESS_ATOMIC, &s);
  if (stop)
    return stop;
  sim_poll(w);
  const OpMore *m = op->more;
  AtomKind kind = (AtomKind)m->skip[0];
  PtxType type = (PtxType)op->type;
  for (int k = 0; k < op->vec; k++) {
    const uint32_t *b = sim_r32(w, m->v[k]);
    uint32_t old[32] = {0};
    SIM_LANES(i, w->active) {
      uint8_t *at = access_at(&s, i) + k * op->bytes;
      old[i] = (uint32_t)(op->bytes == 4 ? update32(at, kind, b[i], 0, type, true)
                                         : update16(at, kind, b[i], 0, type, true));
    }
    if (m->nlist && m->list[k])
      sim_put(w, m->list[k], old, 4);
  }
  return op + 1;
}

bool sim_atom_vec(Decoder *x, const PtxInst *in) {
  bool red = !strcmp(ptx_inst_form(in)->stem, "red");
  const PtxOperand *d = &in->opnds[0], *b = &in->opnds[red ? 1 : 2];
  PtxType t = (PtxType)in->type[0];
  Address a = sim_address(x, in, &in->opnds[red ? 0 : 1]);
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  more->skip[0] = (uint8_t)sim_atom_kind(in);
  x->prog->asks_others |= !red;
  for (int k = 0; k < b->n; k++) {
    more->v[k] = sim_source(x, &b->v[k], t, 4);
    if (!red && d->kind == PTX_O_VEC)
      *arena_push(x->prog->arena, more->list, more->nlist, more->cap) =
          d->v[k].kind == PTX_O_REG ? x->func->reg[d->v[k].reg] : 0;
  }
  Op *op = sim_emit(x, op_atom_vec);
  sim_set_address(op, &a, ptx_type_bits(t) / 8, b->n);
  op->type = (uint8_t)t;
  op->width = 4;
  op->more = more;
  return true;
}
