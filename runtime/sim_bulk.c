// sim_bulk.c: cp.async.bulk, cp.reduce.async.bulk and their tensor forms: what they move, and when.
// ISA 9.7.9.25.4 to 6, 9.7.9.27.
//
// Loads and pushes are done when their bytes are in shared memory and counted by the mbarrier.
// Stores first read shared memory (wait_group.read), then write global memory (wait_group).
#include <stdlib.h>

#include "ptx_forms.h"
#include "sim_bulk.h"
#include "sim_count.h"
#include "sim_race.h"
#include "sim_run.h"

// ---- boxes --------------------------------------------------------------------------------------
void sim_box_flat(Box *b, uint64_t base, uint64_t bytes) {
  *b = (Box){.base = base, .bytes = bytes, .nrows = (uint32_t)((bytes + BOX_ROW - 1) / BOX_ROW)};
}

static BoxRow sim_box_row(const Box *b, uint32_t index) {
  if (!b->rank) {
    uint64_t at = (uint64_t)index * BOX_ROW, n = b->bytes - at;
    n = n < BOX_ROW ? n : BOX_ROW;
    return (BoxRow){b->base + at, (uint32_t)at, (uint32_t)n, 0, (uint32_t)n};
  }
  uint32_t bytes = b->count[0] * b->element;
  BoxRow r = {.address = b->base, .at = index * bytes, .bytes = bytes};
  bool inside = true;
  for (int d = 1; d < b->rank; d++) {
    int64_t x = b->at[d] + (int64_t)(index % b->count[d]) * b->step[d];
    index /= b->count[d];
    inside &= x >= 0 && (uint64_t)x < b->dim[d];
    r.address += (uint64_t)x * b->stride[d];
  }
  int64_t lo = b->at[0] < 0 ? -b->at[0] : 0, hi = (int64_t)b->dim[0] - b->at[0];
  hi = hi < b->count[0] ? hi : b->count[0];
  if (!inside || hi <= lo)
    return (BoxRow){.at = r.at, .bytes = bytes};
  r.lo = (uint32_t)lo * b->element;
  r.hi = (uint32_t)hi * b->element;
  r.address += (uint64_t)(b->at[0] + lo) * b->element;
  return r;
}

// False when not even the range from the box's first byte inside the tensor to its last one meets.
static bool is_near(const Box *b, uint64_t at, uint64_t bytes) {
  uint64_t low = b->base, high = b->base + (b->rank ? b->element : b->bytes);
  for (int d = 0; d < b->rank; d++) {
    int64_t first = b->at[d] > 0 ? b->at[d] : 0, dim = (int64_t)b->dim[d];
    int64_t last = b->at[d] + (int64_t)(b->count[d] - 1) * b->step[d];
    low += (uint64_t)first * b->stride[d];
    high += (uint64_t)(last < dim ? last > 0 ? last : 0 : dim - 1) * b->stride[d];
  }
  return low < at + bytes && at < high;
}

static bool overlaps(const Box *b, uint64_t at, uint64_t bytes) {
  if (!is_near(b, at, bytes))
    return false;
  for (uint32_t i = 0; i < b->nrows; i++) {
    BoxRow r = sim_box_row(b, i);
    if (r.address < at + bytes && at < r.address + (r.hi - r.lo))
      return true;
  }
  return false;
}

const Op *sim_bulk_writer(const Cta *c, uint64_t at, uint64_t bytes, AccessKind kind,
                          uint32_t *thread) {
  for (int i = 0; i < c->async->nbulk; i++) {
    const Bulk *b = &c->async->bulk[i];
    bool writes = b->kind == BULK_STORE || (b->kind == BULK_REDUCE && kind != ACCESS_ATOMIC);
    *thread = b->thread;
    if (writes && overlaps(&b->box, at, bytes))
      return b->op;
  }
  return NULL;
}

const Op *sim_bulk_reader(const Cta *c, uint64_t at, uint64_t bytes, uint32_t *thread) {
  for (int i = 0; i < c->async->nbulk; i++) {
    const Bulk *b = &c->async->bulk[i];
    *thread = b->thread;
    if (b->kind == BULK_LOAD && overlaps(&b->box, at, bytes))
      return b->op;
  }
  return NULL;
}

// ---- the shared side ----------------------------------------------------------------------------
// The ranges that `bytes` from `at` take: a swizzle moves chunks of 16 bytes within spans, so that
// whole spans stay where they are.  Piece `i`; false beyond the last.
static bool piece(const Box *b, uint64_t at, uint64_t i, AsyncAccess *a) {
  int swizzle = b->swizzle;
  uint64_t bytes = b->bytes;
  if (b->pitch) {
    a->at = sim_swizzle(swizzle, at + sim_box_spread(b, 16 * i));
    a->bytes = 16;
    return 16 * i < bytes;
  }
  uint64_t whole = swizzle ? bytes & ~((UINT64_C(16) << swizzle) - 1) : bytes;
  if (i == 0) {
    a->at = at;
    a->bytes = whole;
    return bytes > 0;
  }
  a->at = sim_swizzle(swizzle, at + whole + 16 * (i - 1));
  a->bytes = 16;
  return whole + 16 * (i - 1) < bytes;
}

static AsyncAccess access_of(Cta *c, const Bulk *b, Cta *owner, AccessKind kind) {
  Proxy proxy = b->kind == BULK_WORDS ? PROXY_REMOTE : PROXY_ASYNC;
  return (AsyncAccess){.cta = c, .thread = b->thread, .op = b->op, .proxy = proxy,
                       .kind = kind, .owner = owner, .event = b->event};
}

static const Op *begin(Cta *c, const Bulk *b, Cta *owner, AccessKind kind, uint64_t at) {
  AsyncAccess a = access_of(c, b, owner, kind);
  Warp *w = &c->warps[b->thread / 32];
  const Op *stop = NULL;
  for (uint64_t i = 0; !stop && piece(&b->box, at, i, &a); i++)
    if (a.bytes)
      stop = sim_async_begin(w, b->thread % 32, &a);
  return stop;
}

static void end(Cta *c, const Bulk *b, Cta *owner, AccessKind kind, uint64_t at) {
  AsyncAccess a = access_of(c, b, owner, kind);
  for (uint64_t i = 0; piece(&b->box, at, i, &a); i++)
    if (a.bytes)
      sim_async_end(&a);
}

static const Op *begin_global(Cta *c, const Bulk *b, AccessKind kind) {
  AsyncAccess a = access_of(c, b, NULL, kind);
  const Op *stop = NULL;
  for (uint32_t i = 0; !stop && i < b->box.nrows; i++) {
    BoxRow r = sim_box_row(&b->box, i);
    a.at = r.address;
    a.bytes = r.hi - r.lo;
    if (a.bytes)
      stop = sim_async_begin(&c->warps[b->thread / 32], b->thread % 32, &a);
  }
  return stop;
}

static void end_global(Cta *c, const Bulk *b, AccessKind kind) {
  AsyncAccess a = access_of(c, b, NULL, kind);
  for (uint32_t i = 0; i < b->box.nrows; i++) {
    BoxRow r = sim_box_row(&b->box, i);
    a.at = r.address;
    a.bytes = r.hi - r.lo;
    if (a.bytes)
      sim_async_end(&a);
  }
}

static bool is_global(const Bulk *b) { return b->kind != BULK_PUSH && b->kind != BULK_WORDS; }

static AccessKind global_kind(const Bulk *b) {
  return b->kind == BULK_LOAD ? ACCESS_READ : b->kind == BULK_STORE ? ACCESS_WRITE : ACCESS_ATOMIC;
}

// Copies between shared memory and the box's bytes from `at` on.
static void swizzled_copy(Cta *owner, const Bulk *b, uint64_t at, uint8_t *plain, uint64_t bytes,
                          bool to_shared) {
  int swizzle = b->box.swizzle;
  uint64_t step = swizzle ? 16 : bytes;
  for (uint64_t i = 0; i < bytes; i += step) {
    uint64_t to = b->shared + sim_box_spread(&b->box, at + i);
    uint8_t *s = owner->shared.data + sim_swizzle(swizzle, to);
    memcpy(to_shared ? s : plain + i, to_shared ? plain + i : s, step);
  }
}

// ---- completion ---------------------------------------------------------------------------------
// Receiver k, NULL beyond the last.
static Cta *receiver(Cta *c, const Bulk *b, int k) {
  if (!b->multicast)
    return k ? NULL : b->to;
  for (uint32_t rank = 0; rank < 16; rank++)
    if ((b->multicast >> rank & 1) && k-- == 0)
      return sim_cluster_cta(c, rank);
  return NULL;
}

static void load_rows(Cta *c, const Bulk *b) {
  uint8_t row[BOX_ROW];
  for (uint32_t i = 0; i < b->box.nrows; i++) {
    BoxRow r = sim_box_row(&b->box, i);
    if (r.hi > r.lo) {
      const Memory *m = &sim_buffer(c->grid->dev, r.address)->mem;
      memcpy(row + r.lo, m->data + (r.address - m->base), r.hi - r.lo);
    }
    sim_tensor_convert(&b->box, &r, row);
    Cta *to;
    for (int k = 0; (to = receiver(c, b, k)); k++)
      swizzled_copy(to, b, r.at, row, r.bytes, true);
  }
}

static AccessKind arrives_as(const Bulk *b) {
  return b->kind == BULK_WORDS && b->atom != ATOM_KINDS ? ACCESS_ATOMIC : ACCESS_WRITE;
}

static void put_words(const Bulk *b) {
  uint8_t *at = b->to->shared.data + b->shared;
  if (b->atom == ATOM_KINDS)
    memcpy(at, b->staged, b->box.bytes);
  else
    sim_atom_reduce(at, (AtomKind)b->atom, (PtxType)b->type, b->staged);
}

static void complete_load(Cta *c, Bulk *b) {
  Warp *w = &c->warps[b->thread / 32];
  if (b->kind == BULK_PUSH) {
    memmove(b->to->shared.data + b->shared, c->shared.data + b->from, b->box.bytes);
    end(c, b, c, ACCESS_READ, b->from);
  } else if (b->kind == BULK_WORDS) {
    put_words(b);
  } else {
    load_rows(c, b);
  }
  Cta *to;
  for (int k = 0; (to = receiver(c, b, k)); k++) {
    if (sim_cta_ended(to)) {
      sim_trap_at(w, b->op, b->thread % 32, "block rank %u of the cluster ended before this was "
                  "written into its shared memory", to->rank);
      return;
    }
    end(c, b, to, arrives_as(b), b->shared);
    sim_race_async_signal(to, to->index, b->mbar, b->event);
    if (!sim_mbar_complete_tx(w, b->op, b->thread % 32, to, b->mbar, b->box.bytes))
      return;
  }
}

// The source of a store is read; false after a trap.
static bool read_source(Cta *c, Bulk *b) {
  if (b->staged)
    return true;
  b->staged = malloc(b->box.bytes ? b->box.bytes : 1);
  if (!b->staged) {
    sim_trap_at(&c->warps[b->thread / 32], b->op, b->thread % 32, "out of host memory");
    return false;
  }
  swizzled_copy(c, b, 0, b->staged, b->box.bytes, false);
  end(c, b, c, ACCESS_READ, b->shared);
  return true;
}

static void store_rows(Cta *c, const Bulk *b) {
  for (uint32_t i = 0; i < b->box.nrows; i++) {
    BoxRow r = sim_box_row(&b->box, i);
    if (r.hi <= r.lo)
      continue;
    const Memory *m = &sim_buffer(c->grid->dev, r.address)->mem;
    uint64_t offset = r.address - m->base;
    const uint8_t *from = b->staged + r.at + r.lo;
    uint32_t element = (uint32_t)ptx_type_bits((PtxType)b->type) / 8;
    if (b->kind == BULK_STORE)
      memcpy(m->data + offset, from, r.hi - r.lo);
    else
      for (uint32_t k = 0; k < r.hi - r.lo; k += element)
        sim_atom_reduce(m->data + offset + k, (AtomKind)b->atom, (PtxType)b->type, from + k);
    if (m->shadow)
      memset(m->shadow + offset, SHADOW_WRITTEN, r.hi - r.lo);
  }
}

static void complete(Cta *c, int index) {
  Async *s = c->async;
  Bulk *b = &s->bulk[index];
  if (b->kind < BULK_STORE)
    complete_load(c, b);
  else if (read_source(c, b))
    store_rows(c, b);
  if (is_global(b)) {
    end_global(c, b, global_kind(b));
    s->global--;
  }
  free(b->staged);
  memmove(b, b + 1, sizeof *b * (size_t)(s->nbulk - index - 1));
  s->nbulk--;
  c->events++;
}

void sim_bulk_drop(Cta *c) {
  Async *s = c->async;
  for (int i = 0; i < s->nbulk; i++)
    free(s->bulk[i].staged);
  s->nbulk = 0;
}

bool sim_bulk_signal(Cta *c, const Cta *owner, uint64_t at, uint64_t *seq) {
  for (int i = 0; i < c->async->nbulk; i++) { // in order of issue
    const Bulk *b = &c->async->bulk[i];
    if (b->kind >= BULK_STORE || b->mbar != at)
      continue;
    *seq = b->seq;
    Cta *to;
    for (int k = 0; (to = receiver(c, b, k)); k++)
      if (to == owner)
        return true;
  }
  return false;
}

void sim_bulk_complete(Cta *c, uint64_t seq) {
  for (int i = 0; i < c->async->nbulk; i++)
    if (c->async->bulk[i].seq == seq) {
      complete(c, i);
      return;
    }
}

void sim_bulk_random(Cta *c) {
  for (int i = 0; i < c->async->nbulk && !c->trap.set;) {
    uint64_t dice = sim_random(c) % 8;
    Bulk *b = &c->async->bulk[i];
    if (dice < 2 && b->kind >= BULK_STORE)
      read_source(c, b);
    if (dice < 1 || (dice < 2 && b->kind < BULK_STORE))
      complete(c, i);
    else
      i++;
  }
}

void sim_bulk_finish(Cta *c) {
  while (c->async->nbulk && !c->trap.set) {
    const Bulk *b = &c->async->bulk[0];
    Warp *w = &c->warps[b->thread / 32];
    if (b->kind < BULK_STORE)
      sim_trap_at(w, b->op, b->thread % 32,
                  "the block ends while this is in flight: nothing waited for it");
    else if (!b->staged)
      sim_trap_at(w, b->op, b->thread % 32,
                  "the block ends before this has read its shared memory: "
                  "no cp.async.bulk.wait_group waited for it");
    else
      complete(c, 0); // the write may end after the block
  }
}

// ---- issue --------------------------------------------------------------------------------------
static const Op *check_global(Warp *w, const Bulk *b) {
  uint64_t align = b->box.rank ? b->box.element : 16;
  uint32_t lane = b->thread % 32;
  AccessKind kind = global_kind(b);
  for (uint32_t i = 0; i < b->box.nrows; i++) {
    BoxRow r = sim_box_row(&b->box, i);
    if (r.hi <= r.lo)
      continue;
    uint64_t bytes = r.hi - r.lo;
    const Op *stop = sim_check(w, b->op, lane, PTX_S_GLOBAL, r.address, bytes, align, kind, NULL);
    if (!stop && w->cta->async->global)
      stop = sim_async_global_range(w, b->op, lane, r.address, bytes, kind);
    if (stop)
      return stop;
  }
  return begin_global(w->cta, b, kind);
}

static const Op *enqueue(Warp *w, Bulk *b) {
  Cta *c = w->cta;
  Async *s = c->async;
  if (b->kind == BULK_WORDS) {
    uint8_t *own = malloc(b->box.bytes);
    if (!own)
      abort();
    memcpy(own, b->staged, b->box.bytes);
    b->staged = own;
  }
  b->group = s->bulk_groups[b->thread];
  b->seq = s->seq++;
  if (is_global(b))
    s->global++;
  *arena_push(s->arena, s->bulk, s->nbulk, s->cap_bulk) = *b;
  if (sim_completion(c) == SIM_EAGER)
    complete(c, s->nbulk - 1);
  return c->trap.set ? sim_leave(w, EV_TRAP, b->op) : NULL;
}

// Where a load or push goes, and the mbarrier that counts it: in one CTA, or in each of the mask's.
static const Op *find_destination(Warp *w, Bulk *b, uint32_t lane) {
  const AsyncArgs *g = b->op->more->async;
  Cta *of;
  uint64_t align = b->kind == BULK_WORDS ? b->box.bytes : b->box.rank ? 128 : 16;
  const Op *stop =
      sim_shared_check(w, b->op, lane, g->to.space, sim_lane_address(w, &g->to, lane),
                       sim_box_room(&b->box), align, "the destination", &b->to, &b->shared);
  if (!stop)
    stop = sim_shared_check(w, b->op, lane, g->mbar.space, sim_lane_address(w, &g->mbar, lane), 8,
                            8, "the mbarrier", &of, &b->mbar);
  if (stop)
    return stop;
  if (of != b->to)
    return sim_trap_at(w, b->op, lane, "the mbarrier is not in the block of the destination");
  if (g->multicast) {
    b->multicast = (uint16_t)sim_r32(w, g->multicast)[lane];
    for (uint32_t rank = 0; rank < 16; rank++)
      if ((b->multicast >> rank & 1) && !sim_cluster_cta(w->cta, rank))
        return sim_trap_at(w, b->op, lane, "the mask %04x names block %u of the cluster, which has "
                           "fewer", b->multicast, rank);
    if (!b->multicast)
      return sim_trap_at(w, b->op, lane, "the mask names no block of the cluster");
  }
  return NULL;
}

const Op *sim_bulk_issue(Warp *w, Bulk *b, uint32_t lane) {
  Cta *c = w->cta, *to;
  const Op *stop = find_destination(w, b, lane);
  if (!stop && b->kind == BULK_LOAD)
    stop = check_global(w, b);
  if (!stop && b->kind == BULK_PUSH) {
    const AsyncArgs *g = b->op->more->async;
    Cta *own;
    stop = sim_shared_check(w, b->op, lane, g->from.space, sim_lane_address(w, &g->from, lane),
                            b->box.bytes, 16, "the source", &own, &b->from);
    if (!stop)
      stop = begin(c, b, c, ACCESS_READ, b->from);
  }
  for (int k = 0; !stop && (to = receiver(c, b, k)); k++) {
    stop = sim_mbar_due(w, b->op, lane, to, b->mbar);
    if (!stop && (b->kind == BULK_LOAD || b->kind == BULK_WORDS))
      sim_race_async_mbarrier(w, b->op, lane, to, b->mbar,
                              b->kind == BULK_LOAD ? V_INITED : V_NOW);
    if (!stop)
      stop = begin(c, b, to, arrives_as(b), b->shared);
  }
  return stop ? stop : enqueue(w, b);
}

static const Op *issue_store(Warp *w, Bulk *b, uint32_t lane) {
  const AsyncArgs *g = b->op->more->async;
  Cta *own;
  const Op *stop = sim_shared_check(w, b->op, lane, g->from.space,
                                    sim_lane_address(w, &g->from, lane), sim_box_room(&b->box),
                                    b->box.rank ? 128 : 16, "the source", &own, &b->shared);
  if (!stop)
    stop = check_global(w, b);
  if (!stop)
    stop = begin(w->cta, b, w->cta, ACCESS_READ, b->shared);
  return stop ? stop : enqueue(w, b);
}

static CountWay global_way(const Bulk *b) {
  return b->kind == BULK_LOAD ? COUNT_BULK_READ : b->kind == BULK_STORE ? COUNT_BULK_WRITE
                                                                       : COUNT_BULK_RED;
}

static void count_bytes(Warp *w, const Bulk *b) {
  for (uint32_t i = 0; b->kind != BULK_PUSH && i < b->box.nrows; i++) {
    BoxRow r = sim_box_row(&b->box, i);
    if (r.hi > r.lo)
      sim_count_global_span(w->cta, b->op, r.address, r.hi - r.lo, global_way(b));
  }
  if (b->kind != BULK_LOAD)
    sim_count_shared_span(w->cta, b->op, b->box.bytes, COUNT_BULK_READ);
  if (b->kind == BULK_LOAD || b->kind == BULK_PUSH)
    sim_count_shared_span(w->cta, b->op, b->box.bytes, COUNT_BULK_WRITE);
}

static const Op *flat_box(Warp *w, const Op *op, uint32_t lane, Box *box) {
  const AsyncArgs *g = op->more->async;
  uint32_t bytes = sim_r32(w, g->bytes)[lane];
  if (bytes % 16)
    return sim_trap_at(w, op, lane, "a bulk copy of %u bytes: multiples of 16", bytes);
  const Address *a = g->kind == BULK_LOAD ? &g->from : &g->to;
  sim_box_flat(box, sim_lane_address(w, a, lane), bytes);
  return NULL;
}

static const Op *op_bulk(Warp *w, const Op *op) {
  const AsyncArgs *g = op->more->async;
  SIM_LANES(i, w->active) {
    Bulk b = {.op = op, .thread = (uint32_t)w->index * 32 + i, .kind = g->kind, .atom = g->atom,
              .type = g->type, .event = sim_race_async_event(w, op, i)};
    const Op *stop = g->rank ? sim_tensor_box(w, op, i, g->kind >= BULK_STORE, &b.box)
                             : flat_box(w, op, i, &b.box);
    if (stop)
      return stop;
    if (g->rank && g->kind == BULK_REDUCE)
      b.type = (uint8_t)sim_tensor_type(&b.box);
    if (b.kind == BULK_REDUCE && !sim_atom_takes((AtomKind)b.atom, (PtxType)b.type))
      return sim_trap_at(w, op, i, "a reduction that the tensor map's type does not have");
    if (sim_counts(w))
      count_bytes(w, &b);
    stop = g->kind < BULK_STORE ? sim_bulk_issue(w, &b, i) : issue_store(w, &b, i);
    if (stop)
      return stop;
  }
  return op + 1;
}

// ---- decoding -----------------------------------------------------------------------------------
static Address address_in(Decoder *x, const PtxInst *in, const PtxOperand *o, PtxSpace space) {
  Address a = sim_address(x, in, o);
  a.space = (uint8_t)space;
  return a;
}

// The map's address is generic: a register, or the name of a variable.
static Address map_address(Decoder *x, const PtxInst *in, const PtxOperand *o) {
  Address a = address_in(x, in, o, PTX_S_GENERIC);
  if (o->base == PTX_O_SYM && x->prog->module->vars[o->sym].space == PTX_S_PARAM)
    a.offset |= SIM_WINDOW_PARAM;
  return a;
}

static void decode_tensor(Decoder *x, const PtxInst *in, const PtxOperand *map, AsyncArgs *g) {
  g->rank = map->n - 1;
  for (int d = 0; d < g->rank; d++)
    g->coords[d] = sim_source(x, &map->v[1 + d], PTX_T_S32, 4);
  *(g->kind < BULK_STORE ? &g->from : &g->to) = map_address(x, in, &map->v[0]);
}

bool sim_bulk(Decoder *x, const PtxInst *in) {
  x->prog->uses_async = true;
  AsyncArgs *g = arena_new_of(x->prog->arena, AsyncArgs);
  bool reduce = ptx_inst_has(in, "reduce"), store = ptx_inst_has(in, "bulk_group");
  bool push = ptx_inst_has(in, "shared::cluster") && !ptx_inst_has(in, "global");
  g->kind = (uint8_t)(reduce ? BULK_REDUCE : store ? BULK_STORE : push ? BULK_PUSH : BULK_LOAD);
  PtxSpace to = store ? PTX_S_GLOBAL : (PtxSpace)in->space;
  for (int i = 0; i < in->nopnds; i++) {
    const PtxOperand *o = &in->opnds[i];
    if (o->kind == PTX_O_TMAP) {
      decode_tensor(x, in, o, g);
      continue;
    }
    switch (ptx_inst_spec(in, i)->name) {
    case 'd': g->to = address_in(x, in, o, to); break;
    case 'a':
      g->from = address_in(x, in, o, store || push ? PTX_S_SHARED : PTX_S_GLOBAL);
      break;
    case 'm': g->mbar = address_in(x, in, o, (PtxSpace)in->space); break;
    case 'n': g->bytes = sim_source(x, o, PTX_T_U32, 4); break;
    case 'x': g->multicast = sim_source(x, o, PTX_T_U16, 4); break;
    default: break; // the cache policy
    }
  }
  if (reduce) {
    g->atom = (uint8_t)sim_atom_kind(in);
    g->type = in->type[0];
  }
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  more->async = g;
  sim_emit(x, op_bulk)->more = more;
  return true;
}

// ---- groups -------------------------------------------------------------------------------------
static const Op *op_commit(Warp *w, const Op *op) {
  SIM_LANES(i, w->active) w->cta->async->bulk_groups[w->index * 32 + (int)i]++;
  return op + 1;
}

// imm: groups that may stay in flight; type: .read
static const Op *op_wait(Warp *w, const Op *op) {
  Cta *c = w->cta;
  Async *s = c->async;
  for (int i = 0; i < s->nbulk && !c->trap.set;) {
    Bulk *b = &s->bulk[i];
    bool mine = b->kind >= BULK_STORE && b->thread / 32 == (uint32_t)w->index &&
                (w->active >> b->thread % 32 & 1) && b->group + op->imm < s->bulk_groups[b->thread];
    if (mine && op->type)
      read_source(c, b);
    if (mine && !op->type)
      complete(c, i);
    else
      i++;
  }
  return c->trap.set ? sim_leave(w, EV_TRAP, op) : op + 1;
}

bool sim_bulk_commit(Decoder *x, const PtxInst *in) {
  (void)in;
  x->prog->uses_async = true;
  sim_emit(x, op_commit);
  return true;
}

bool sim_bulk_wait(Decoder *x, const PtxInst *in) {
  x->prog->uses_async = true;
  Op *op = sim_emit(x, op_wait);
  op->imm = (uint64_t)in->opnds[0].i;
  op->type = ptx_inst_has(in, "read");
  return true;
}
