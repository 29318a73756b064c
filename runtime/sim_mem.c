// sim_mem.c: ld and st.
#include "sim_mem.h"
#include "sim_race.h"

// ---- ld -----------------------------------------------------------------------------------------
#define LOAD(NAME, FROM, TO)                                                                       \
  static void NAME(const Access *s, int k, TO *to, uint32_t lanes) {                               \
    int64_t skip = k * (int64_t)sizeof(FROM);                                                      \
    if (s->strided && lanes == SIM_FULL) {                                                         \
      for (int i = 0; i < 32; i++) {                                                               \
        FROM v;                                                                                    \
        memcpy(&v, s->base + i * s->stride + skip, sizeof v);                                      \
        to[i] = (TO)v;                                                                             \
      }                                                                                            \
      return;                                                                                      \
    }                                                                                              \
    SIM_LANES(i, lanes) {                                                                          \
      FROM v;                                                                                      \
      memcpy(&v, access_at(s, i) + skip, sizeof v);                                                \
      to[i] = (TO)v;                                                                               \
    }                                                                                              \
  }
LOAD(load_u8_4, uint8_t, uint32_t)
LOAD(load_s8_4, int8_t, uint32_t)
LOAD(load_u16_4, uint16_t, uint32_t)
LOAD(load_s16_4, int16_t, uint32_t)
LOAD(load_u32_4, uint32_t, uint32_t)
LOAD(load_u8_8, uint8_t, uint64_t)
LOAD(load_s8_8, int8_t, uint64_t)
LOAD(load_u16_8, uint16_t, uint64_t)
LOAD(load_s16_8, int16_t, uint64_t)
LOAD(load_u32_8, uint32_t, uint64_t)
LOAD(load_s32_8, int32_t, uint64_t)
LOAD(load_u64_8, uint64_t, uint64_t)

static void load_wide(const Access *s, int k, uint64_t to[64], uint32_t lanes) {
  SIM_LANES(i, lanes) {
    memcpy(&to[i], access_at(s, i) + 16 * k, 8);
    memcpy(&to[32 + i], access_at(s, i) + 16 * k + 8, 8);
  }
}

// kind of conversion: bytes in memory, signed or not, bytes of a lane in the register
static void load(const Access *s, int k, const Op *op, bool sign, void *to, uint32_t lanes) {
  if (op->width == 16) {
    load_wide(s, k, to, lanes);
  } else if (op->width == 8) {
    switch (op->bytes) {
    case 1: (sign ? load_s8_8 : load_u8_8)(s, k, to, lanes); break;
    case 2: (sign ? load_s16_8 : load_u16_8)(s, k, to, lanes); break;
    case 4: (sign ? load_s32_8 : load_u32_8)(s, k, to, lanes); break;
    default: load_u64_8(s, k, to, lanes); break;
    }
  } else {
    switch (op->bytes) {
    case 1: (sign ? load_s8_4 : load_u8_4)(s, k, to, lanes); break;
    case 2: (sign ? load_s16_4 : load_u16_4)(s, k, to, lanes); break;
    default: load_u32_4(s, k, to, lanes); break;
    }
  }
}

enum { TYPE_SIGNED = 1, TYPE_STRONG = 2, TYPE_NARROW = 4 }; // Op.type of ld and st

// Four words a lane, lanes side by side: 4 x 4 pieces are turned round on the way to the registers.
typedef uint32_t Quad __attribute__((vector_size(16), aligned(4), may_alias));
#if defined(__clang__)
#define SHUFFLE(x, y, i, j, k, l) __builtin_shufflevector(x, y, i, j, k, l)
#else
#define SHUFFLE(x, y, i, j, k, l) __builtin_shuffle(x, y, (Quad){i, j, k, l})
#endif

static void load_quads(Warp *w, const OpMore *more, const uint8_t *from) {
  for (int i = 0; i < 32; i += 4, from += 64) {
    const Quad *q = (const Quad *)from;
    Quad ab = SHUFFLE(q[0], q[1], 0, 4, 1, 5);
    Quad cd = SHUFFLE(q[2], q[3], 0, 4, 1, 5);
    Quad ef = SHUFFLE(q[0], q[1], 2, 6, 3, 7);
    Quad gh = SHUFFLE(q[2], q[3], 2, 6, 3, 7);
    *(Quad *)(sim_r32(w, more->v[0]) + i) = SHUFFLE(ab, cd, 0, 1, 4, 5);
    *(Quad *)(sim_r32(w, more->v[1]) + i) = SHUFFLE(ab, cd, 2, 3, 6, 7);
    *(Quad *)(sim_r32(w, more->v[2]) + i) = SHUFFLE(ef, gh, 0, 1, 4, 5);
    *(Quad *)(sim_r32(w, more->v[3]) + i) = SHUFFLE(ef, gh, 2, 3, 6, 7);
  }
}

static bool plain_quads(const Op *op) {
  const uint8_t *skip = op->more->skip;
  return op->vec == 4 && op->bytes == 4 && op->width == 4 &&
         !(skip[0] | skip[1] | skip[2] | skip[3]);
}

static const Op *op_ld(Warp *w, const Op *op) {
  Access s;
  const Op *stop = sim_access(w, op, ACCESS_READ, &s);
  if (stop)
    return stop;
  if (op->type & TYPE_STRONG)
    sim_poll(w);
  if (op->vec == 1 && op->bytes == 4 && op->width == 4 && s.strided && s.stride == 4) {
    memcpy(w->regs + op->d, s.base, 128); // all lanes, side by side
    return op + 1;
  }
  if (op->vec == 4 && s.strided && s.stride == 16 && plain_quads(op)) {
    load_quads(w, op->more, s.base);
    return op + 1;
  }
  uint64_t t[64] __attribute__((aligned(64)));
  for (int k = 0; k < op->vec; k++) {
    if (op->vec > 1 && op->more->skip[k])
      continue;
    load(&s, k, op, op->type & TYPE_SIGNED, t, w->active);
    if (op->type & TYPE_NARROW) // sign-extended into a 16-bit register
      for (int i = 0; i < 32; i++)
        ((uint32_t *)t)[i] &= 0xffff;
    sim_put(w, op->vec > 1 ? op->more->v[k] : op->d, t, op->width);
  }
  return op + 1;
}

static const Op *op_take_holes(Warp *w, const Op *op) {
  sim_take_holes(w, op, op->d ? sim_r32(w, op->d) : NULL);
  return op + 1;
}

static const Op *op_put_holes(Warp *w, const Op *op) {
  sim_put_holes(w, op, sim_r32(w, op->d));
  return op + 1;
}

// ---- st -----------------------------------------------------------------------------------------
static void store(const Access *s, int k, int bytes, const uint8_t *from, int width,
                  uint32_t lanes) {
  int64_t skip = (int64_t)k * bytes;
  SIM_LANES(i, lanes) { // in lane order: of lanes with one address the highest stays
    uint8_t *to = access_at(s, i) + skip;
    const uint8_t *v = from + i * (uint32_t)(width == 4 ? 4 : 8);
    switch (bytes) {
    case 1: memcpy(to, v, 1); break;
    case 2: memcpy(to, v, 2); break;
    case 4: memcpy(to, v, 4); break;
    case 8: memcpy(to, v, 8); break;
    default: memcpy(to, v, 8), memcpy(to + 8, v + 256, 8); break;
    }
  }
}

static const Op *op_st(Warp *w, const Op *op) {
  Access s;
  const Op *stop = sim_access(w, op, ACCESS_WRITE, &s);
  if (stop)
    return stop;
  if (op->vec == 1 && op->bytes == 4 && op->width == 4 && s.strided && s.stride == 4) {
    memcpy(s.base, w->regs + op->b, 128);
    return op + 1;
  }
  for (int k = 0; k < op->vec; k++)
    store(&s, k, op->bytes, w->regs + (op->vec > 1 ? op->more->v[k] : op->b), op->width, w->active);
  return op + 1;
}

// ---- discard ------------------------------------------------------------------------------------
// What was there may or may not stay: nobody may read it before it is written again.  No bytes
// move.
static const Op *op_discard(Warp *w, const Op *op) {
  uint64_t a[32] __attribute__((aligned(64)));
  Access s = {.strided = false};
  sim_addresses(w, op, a);
  SIM_LANES(i, w->active) {
    Span span;
    uint64_t window = a[i] & ~SIM_OFFSET_MASK;
    if (window == SIM_WINDOW_SHARED || window == SIM_WINDOW_LOCAL || window == SIM_WINDOW_PARAM)
      return sim_trap_at(w, op, i, "discards what is not in global memory");
    const Op *stop =
        sim_check(w, op, i, op->space, a[i], op->bytes, op->bytes, ACCESS_WRITE, &span);
    if (stop)
      return stop;
    memset(span.data, 0xff, op->bytes);
    if (span.shadow)
      memset(span.shadow, 0, op->bytes);
    s.at[i] = span.data;
  }
  if (w->cta->race)
    sim_race_access(w, op, a, ACCESS_WRITE, &s);
  return op + 1;
}

// ---- decoding -----------------------------------------------------------------------------------
static uint8_t flags(const PtxInst *in, int reg_bits) {
  PtxType t = (PtxType)in->type[0];
  bool sign = ptx_type_class(t) == 'S';
  bool strong = ptx_inst_has(in, "volatile") || ptx_inst_has(in, "relaxed") ||
                ptx_inst_has(in, "acquire");
  return (uint8_t)((sign ? TYPE_SIGNED : 0) | (strong ? TYPE_STRONG : 0) |
                   (sign && reg_bits == 16 ? TYPE_NARROW : 0));
}

// holes: of the register with the lanes' masks, 0: none.
static void emit_holes(Decoder *x, OpFn fn, const Address *a, int bytes, uint32_t holes) {
  Op *op = sim_emit(x, fn);
  sim_set_address(op, a, bytes, 1);
  op->d = holes;
}

bool sim_ld(Decoder *x, const PtxInst *in) {
  const PtxOperand *d = &in->opnds[0];
  Address a = sim_address(x, in, &in->opnds[1]);
  int bytes = ptx_type_bits((PtxType)in->type[0]) / 8, n = d->kind == PTX_O_VEC ? d->n : 1;
  OpMore *more = n > 1 ? arena_new_of(x->prog->arena, OpMore) : NULL;
  int width = 0, bits = 0;
  uint32_t to = 0;
  for (int k = 0; k < n; k++) {
    const PtxOperand *o = d->kind == PTX_O_VEC ? &d->v[k] : d;
    if (o->kind == PTX_O_REG) {
      PtxType t = x->ptx->regs[o->reg].type;
      if (width && width != sim_width(t))
        return sim_unsupported(x, in, "a vector of registers of different widths");
      width = sim_width(t);
      bits = ptx_type_bits(t);
      to = x->func->reg[o->reg];
    }
    if (more) {
      more->skip[k] = o->kind != PTX_O_REG;
      more->v[k] = to;
    }
  }
  if (!width) { // only sinks: the access itself is still checked
    width = sim_width((PtxType)in->type[0]);
    to = sim_temp(x, width);
  }
  const PtxInst *copy = n == 1 ? sim_copy_of(x->ptx, x->flow, in) : NULL;
  uint32_t holes = copy ? sim_temp(x, 4) : 0;
  if (copy || (n == 1 && sim_sets_field(x->ptx, in)))
    emit_holes(x, op_take_holes, &a, bytes, holes);
  Op *op = sim_emit(x, op_ld);
  sim_set_address(op, &a, bytes, n);
  op->d = to;
  op->width = (uint8_t)width;
  op->type = flags(in, bits);
  x->prog->asks_others |= (op->type & TYPE_STRONG) && in->space != PTX_S_SHARED;
  op->more = more;
  if (copy) {
    emit_holes(x, op_put_holes, &a, bytes, holes);
    *arena_push(x->prog->arena, x->copies, x->ncopies, x->copies_cap) = (Copy){copy, holes};
  }
  return true;
}

bool sim_st(Decoder *x, const PtxInst *in) {
  const PtxOperand *b = &in->opnds[1];
  Address a = sim_address(x, in, &in->opnds[0]);
  PtxType t = (PtxType)in->type[0];
  int bytes = ptx_type_bits(t) / 8, n = b->kind == PTX_O_VEC ? b->n : 1, width = sim_width(t);
  OpMore *more = n > 1 ? arena_new_of(x->prog->arena, OpMore) : NULL;
  uint32_t from = 0;
  for (int k = 0; k < n; k++) {
    from = sim_source(x, b->kind == PTX_O_VEC ? &b->v[k] : b, t, width);
    if (more)
      more->v[k] = from;
  }
  Op *op = sim_emit(x, op_st);
  sim_set_address(op, &a, bytes, n);
  op->b = from;
  op->width = (uint8_t)width;
  op->type = flags(in, 0);
  op->more = more;
  for (int k = 0; k < x->ncopies; k++)
    if (x->copies[k].st == in)
      emit_holes(x, op_put_holes, &a, bytes, x->copies[k].holes);
  return true;
}

bool sim_discard(Decoder *x, const PtxInst *in) {
  Address a = sim_address(x, in, &in->opnds[0]);
  sim_set_address(sim_emit(x, op_discard), &a, 128, 1);
  return true;
}
