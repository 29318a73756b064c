// sim_access.c: the checks of every memory access.
//
// Two fast paths carry nearly all of a kernel's traffic: 32 lanes side by side, and 32 lanes at one
// address.  Else the 32 addresses are checked together against one buffer; only when that fails
// are they taken one by one, to find the lane that is wrong.
#include "sim_async.h"
#include "sim_count.h"
#include "sim_race.h"

enum { ADDR_REG64, ADDR_REG32, ADDR_UNIFORM, ADDR_FRAME }; // Op.kind

Address sim_address(Decoder *x, const PtxInst *in, const PtxOperand *o) {
  Address a = {.space = in->space, .offset = (uint64_t)o->off};
  if (o->base == PTX_O_REG) {
    a.at = x->func->reg[o->reg];
    a.width = (uint8_t)sim_width(x->ptx->regs[o->reg].type);
    return a;
  }
  a.uniform = true;
  if (o->base != PTX_O_SYM)
    return a;
  const PtxVar *v = &x->prog->module->vars[o->sym];
  if (v->space == PTX_S_GLOBAL || v->space == PTX_S_CONST) {
    a.offset += x->prog->var_address[o->sym];
    return a;
  }
  a.offset += x->prog->var_at[o->sym];
  if (a.space == PTX_S_GENERIC) // a generic access that names its variable
    a.space = (uint8_t)v->space;
  if (v->space == PTX_S_PARAM && !sim_is_kernel_param(x, o->sym))
    a.space = PTX_S_LOCAL;
  a.frame = a.space == PTX_S_LOCAL;
  return a;
}

void sim_set_address(Op *op, const Address *a, int bytes, int vec) {
  op->a = a->at;
  op->imm = a->offset;
  op->space = a->space;
  op->bytes = (uint8_t)bytes;
  op->vec = (uint8_t)vec;
  op->kind = a->frame ? ADDR_FRAME : a->uniform ? ADDR_UNIFORM
             : a->width == 8 ? ADDR_REG64 : ADDR_REG32;
}

void sim_addresses(const Warp *w, const Op *op, uint64_t a[32]) {
  if (op->kind == ADDR_REG64) {
    const uint64_t *r = sim_r64(w, op->a);
    for (int i = 0; i < 32; i++)
      a[i] = r[i] + op->imm;
  } else if (op->kind == ADDR_REG32) {
    const uint32_t *r = sim_r32(w, op->a);
    for (int i = 0; i < 32; i++)
      a[i] = (uint32_t)(r[i] + (uint32_t)op->imm);
  } else {
    uint64_t at = op->imm + (op->kind == ADDR_FRAME ? w->lbase : 0);
    for (int i = 0; i < 32; i++)
      a[i] = at;
  }
}

// ---- spaces -------------------------------------------------------------------------------------
static const char *space_name(uint8_t space) {
  switch (space) {
  case PTX_S_SHARED:
  case PTX_S_CLUSTER:
    return "shared memory";
  case PTX_S_LOCAL:
    return "local memory";
  case PTX_S_PARAM:
    return "the kernel's parameters";
  default:
    return "global memory";
  }
}

// The memory an address is in, with the address made relative to its window; `space` is resolved.
// False when it can't be accessed: *name is then the reason, or NULL where there is no memory.
static bool resolve(const Warp *w, uint8_t *space, uint64_t *address, uint32_t lane, Memory *out,
                    const char **name) {
  uint64_t window = *address & ~SIM_OFFSET_MASK;
  if (*space == PTX_S_GENERIC) {
    *space = window == SIM_WINDOW_SHARED  ? PTX_S_CLUSTER
             : window == SIM_WINDOW_LOCAL ? PTX_S_LOCAL
             : window == SIM_WINDOW_PARAM ? PTX_S_PARAM
                                          : PTX_S_GLOBAL;
    if (*space != PTX_S_GLOBAL)
      *address &= SIM_OFFSET_MASK;
  }
  const Grid *g = w->cta->grid;
  const char *why;
  *name = space_name(*space);
  switch (*space) {
  case PTX_S_SHARED:
  case PTX_S_CLUSTER:
    *out = w->cta->shared;
    if (!(*address >> SIM_RANK_SHIFT))
      return true;
    why = sim_remote(w, *space, *address, out);
    *name = why ? why : out->base ? "another block's shared memory" : *name;
    return !why;
  case PTX_S_LOCAL: {
    uint64_t bytes = g->prog->local_bytes;
    *out = (Memory){.bytes = bytes, .data = w->local + lane * bytes,
                    .shadow = w->local_shadow + lane * bytes};
    return true;
  }
  case PTX_S_PARAM:
    *out = g->params;
    return true;
  default: {
    const Buffer *b = sim_buffer(g->dev, *address);
    *name = b ? b->name : NULL;
    if (!b)
      return false;
    *out = b->mem;
    return true;
  }
  }
}

// ---- one lane -----------------------------------------------------------------------------------
static const char *verb(AccessKind kind) {
  return kind == ACCESS_READ ? "reads" : kind == ACCESS_WRITE ? "writes" : "updates";
}

static const Op *trap_bounds(Warp *w, const Op *op, uint32_t lane, AccessKind kind, uint64_t offset,
                             uint64_t size, const Memory *m, const char *name, bool named) {
  const char *q = named ? "\"" : "";
  if (!named && offset >= SIM_RESERVED && offset < SIM_RESERVED + SIM_RESERVED_BYTES)
    return sim_trap_at(w, op, lane, "%s %llu byte%s of the shared memory that the system reserves "
                       "(%%reserved_smem_offset): the interpreter has none",
                       verb(kind), (unsigned long long)size, size == 1 ? "" : "s");
  return sim_trap_at(w, op, lane,
                     "out of bounds: %s %llu byte%s at offset %lld of %s%s%s (%llu bytes)",
                     verb(kind), (unsigned long long)size, size == 1 ? "" : "s", (long long)offset,
                     q, name, q, (unsigned long long)m->bytes);
}

static bool all_written(const uint8_t *shadow, uint64_t n) { // and nothing in flight, no mbarrier
  for (; n >= 8; n -= 8, shadow += 8) {
    uint64_t v;
    memcpy(&v, shadow, 8);
    if (v != UINT64_C(0x0101010101010101))
      return false;
  }
  for (; n; n--)
    if (*shadow++ != SHADOW_WRITTEN)
      return false;
  return true;
}

// Nothing in flight in these bytes, and no mbarrier.
static bool all_still(const uint8_t *shadow, uint64_t n) {
  uint8_t marks = 0;
  for (uint64_t i = 0; i < n; i++)
    marks |= shadow[i];
  return !(marks & ~SHADOW_WRITTEN);
}

static const Op *trap_unwritten(Warp *w, const Op *op, uint32_t lane, uint64_t offset,
                                const char *name, bool named) {
  const char *q = named ? "\"" : "";
  return sim_trap_at(w, op, lane, "uninitialised read: byte %llu of %s%s%s was never written",
                     (unsigned long long)offset, q, name, q);
}

// No memory of this thread's; name: why.
static const Op *trap_address(Warp *w, const Op *op, uint32_t lane, AccessKind kind,
                              uint64_t address, uint64_t size, const char *name) {
  if (name)
    return sim_trap_at(w, op, lane, "%s %llu byte%s of block rank %u's shared memory: %s",
                       verb(kind), (unsigned long long)size, size == 1 ? "" : "s",
                       (uint32_t)(address >> SIM_RANK_SHIFT) - 1, name);
  return sim_trap_at(w, op, lane, "bad address: %s %llu bytes at 0x%llx, where no buffer is%s",
                     verb(kind), (unsigned long long)size, (unsigned long long)address,
                     address < 65536 ? " (a null pointer)" : "");
}

const Op *sim_check(Warp *w, const Op *op, uint32_t lane, uint8_t space, uint64_t address,
                    uint64_t size, uint64_t align, AccessKind kind, Span *out) {
  Memory m;
  const char *name;
  if (!resolve(w, &space, &address, lane, &m, &name))
    return trap_address(w, op, lane, kind, address, size, name);
  bool named = space == PTX_S_GLOBAL || space == PTX_S_CONST;
  uint64_t offset = address - m.base;
  if (offset > m.bytes || size > m.bytes - offset)
    return trap_bounds(w, op, lane, kind, offset, size, &m, name, named);
  if (offset & (align - 1))
    return sim_trap_at(w, op, lane, "misaligned: %s %llu bytes at offset %llu of %s", verb(kind),
                       (unsigned long long)size, (unsigned long long)offset, name);
  const Op *stop = NULL;
  if (m.watched && (stop = sim_async_trap(w, op, lane, m.watched, kind, offset, size)))
    return stop;
  if (m.shadow && (kind & ACCESS_READ))
    for (uint64_t at = offset; at < offset + size; at++)
      if (!(m.shadow[at] & SHADOW_WRITTEN))
        return trap_unwritten(w, op, lane, at, name, named);
  if (out)
    *out = (Span){m.data + offset, m.shadow ? m.shadow + offset : NULL};
  return NULL;
}

// Local memory at a lane's address; what else may be wrong there the access itself will say.
static uint8_t *local_shadow(const Warp *w, const Op *op, uint32_t lane, uint64_t address,
                             uint8_t **data) {
  uint8_t space = op->space;
  Memory m;
  const char *name;
  if (!resolve(w, &space, &address, lane, &m, &name) || space != PTX_S_LOCAL ||
      address > m.bytes || op->bytes > m.bytes - address)
    return NULL;
  *data = m.data + address;
  return m.shadow + address;
}

void sim_take_holes(Warp *w, const Op *op, uint32_t *holes) {
  uint64_t a[32] __attribute__((aligned(64)));
  sim_addresses(w, op, a);
  SIM_LANES(i, w->active) {
    uint8_t *data, *shadow = local_shadow(w, op, i, a[i], &data);
    uint32_t mask = 0;
    for (int k = 0; shadow && k < op->bytes; k++)
      if (!(shadow[k] & SHADOW_WRITTEN)) {
        mask |= 1u << k;
        shadow[k] |= SHADOW_WRITTEN;
        data[k] = 0xff;
      }
    if (holes)
      holes[i] = mask;
  }
}

void sim_put_holes(Warp *w, const Op *op, const uint32_t *holes) {
  uint64_t a[32] __attribute__((aligned(64)));
  sim_addresses(w, op, a);
  SIM_LANES(i, w->active) {
    uint8_t *data, *shadow = holes[i] ? local_shadow(w, op, i, a[i], &data) : NULL;
    for (int k = 0; shadow && k < op->bytes; k++)
      if (holes[i] >> k & 1)
        shadow[k] &= (uint8_t)~SHADOW_WRITTEN;
  }
}

// Address of one lane's bytes, or NULL after a trap.  `*stop` is then what the Op returns.
static uint8_t *check_lane(Warp *w, const Op *op, uint32_t lane, uint64_t address, AccessKind kind,
                           const Op **stop) {
  uint64_t size = (uint64_t)op->bytes * op->vec;
  Span s;
  *stop = sim_check(w, op, lane, op->space, address, size, size, kind, &s);
  if (*stop)
    return NULL;
  if (s.shadow && kind == ACCESS_WRITE)
    memset(s.shadow, SHADOW_WRITTEN, size);
  return s.data;
}

static const Op *check_each(Warp *w, const Op *op, const uint64_t a[32], AccessKind kind,
                            Access *out) {
  out->strided = false;
  const Op *stop = NULL;
  SIM_LANES(i, w->active) {
    out->at[i] = check_lane(w, op, i, a[i], kind, &stop);
    if (!out->at[i])
      return stop;
  }
  return NULL;
}

// ---- the warp together --------------------------------------------------------------------------
// True when lane i's address is a[0] + i * step.
static bool is_run(const uint64_t a[32], uint64_t step) {
  uint64_t diff = 0, expect = a[0];
  for (int i = 0; i < 32; i++)
    diff |= a[i] ^ (expect + (uint64_t)i * step);
  return !diff;
}

// Marks or checks the shadow of one piece; false: some byte was not written.
static bool shadow_piece(const Memory *m, uint64_t offset, uint64_t bytes, AccessKind kind) {
  if (!m->shadow)
    return true;
  if ((kind & ACCESS_READ) && !all_written(m->shadow + offset, bytes))
    return false;
  if (kind == ACCESS_WRITE && m->watched && !all_still(m->shadow + offset, bytes))
    return false;
  if (kind & ACCESS_WRITE)
    memset(m->shadow + offset, SHADOW_WRITTEN, bytes);
  return true;
}

// All addresses in [base, base + bytes - size], aligned: everything OR'ed, looked at once.
static bool all_inside(const uint64_t a[32], const Memory *m, uint64_t size) {
  if (m->bytes < size)
    return false;
  uint64_t last = m->bytes - size, low = 0, over = 0;
  for (int i = 0; i < 32; i++) {
    uint64_t offset = a[i] - m->base; // wraps to a huge number below the base
    low |= offset;
    over |= last - offset;
  }
  return !((low | over) >> 63) && !(low & (size - 1));
}

static bool scatter(const Warp *w, const uint64_t a[32], const Memory *m, uint64_t size,
                    AccessKind kind, Access *out) {
  if (!all_inside(a, m, size))
    return false;
  if (m->shadow && kind != ACCESS_WRITE)
    SIM_LANES(i, w->active) if (!all_written(m->shadow + (a[i] - m->base), size)) return false;
  if (m->watched && kind == ACCESS_WRITE)
    SIM_LANES(i, w->active) if (!all_still(m->shadow + (a[i] - m->base), size)) return false;
  if (m->shadow && (kind & ACCESS_WRITE))
    SIM_LANES(i, w->active) memset(m->shadow + (a[i] - m->base), SHADOW_WRITTEN, size);
  for (int i = 0; i < 32; i++)
    out->at[i] = m->data + (a[i] - m->base);
  out->strided = false;
  return true;
}

static const Op *check_all(Warp *w, const Op *op, uint64_t a[32], AccessKind kind, Access *out) {
  uint64_t size = (uint64_t)op->bytes * op->vec;
  uint32_t first = (uint32_t)sim_first(w->active);
  if (w->active != SIM_FULL)
    for (uint32_t i = 0; i < 32; i++)
      if (!(w->active >> i & 1))
        a[i] = a[first];
  if (w->cta->async && w->cta->async->global) {
    const Op *stop = sim_async_global(w, op, a, kind);
    if (stop)
      return stop;
  }
  uint8_t space = op->space;
  uint64_t lead = a[first];
  Memory m;
  const char *name;
  if (!resolve(w, &space, &lead, 0, &m, &name) || space == PTX_S_LOCAL)
    return check_each(w, op, a, kind, out);
  m.base += a[first] - lead; // generic: compare whole addresses
  uint64_t offset = a[first] - m.base, step = a[1] - a[0];
  if (step == 0 || (step == size && w->active == SIM_FULL)) {
    uint64_t bytes = step ? size * 32 : size;
    if (is_run(a, step) && offset <= m.bytes && bytes <= m.bytes - offset &&
        !(offset & (size - 1)) && shadow_piece(&m, offset, bytes, kind)) {
      out->base = m.data + offset; // `at` is left alone: it is large and not needed
      out->stride = (int64_t)step;
      out->strided = true;
      return NULL;
    }
  }
  if (scatter(w, a, &m, size, kind, out))
    return NULL;
  return check_each(w, op, a, kind, out);
}

// Shared memory that a wgmma in flight reads must not be written.
static const Op *check_wgmma(Warp *w, const Op *op, const uint64_t a[32]) {
  bool shared = op->space == PTX_S_SHARED || op->space == PTX_S_CLUSTER ||
                op->space == PTX_S_GENERIC;
  return shared ? sim_wgmma_touch(w, op, a, (uint64_t)op->bytes * op->vec) : NULL;
}

const Op *sim_access_at(Warp *w, const Op *op, uint64_t a[32], AccessKind kind, Access *out) {
  const Op *stop = check_all(w, op, a, kind, out);
  if (!stop && w->cta->wgmma && (kind & ACCESS_WRITE))
    stop = check_wgmma(w, op, a);
  if (!stop && sim_counts(w) && op->in->space != PTX_S_PARAM)
    sim_count_access(w, op, op->space, a, w->active, (uint32_t)op->bytes * op->vec, kind);
  if (!stop && w->cta->race)
    sim_race_access(w, op, a, kind, out);
  return stop;
}

const Op *sim_access(Warp *w, const Op *op, AccessKind kind, Access *out) {
  uint64_t a[32] __attribute__((aligned(64)));
  sim_addresses(w, op, a);
  return sim_access_at(w, op, a, kind, out);
}
