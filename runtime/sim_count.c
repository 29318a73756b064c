// sim_count.c: what memory accesses cost, and the counts of instructions as the device's Counters.
//
// Everything is a sum over warp instructions, so the order in which threads of the host add it up
// does not matter.
#include <stdlib.h>

#include "sim_count.h"

const CountWayInfo count_way[COUNT_FORMS] = {
#define X(id, name, ...) {name, __VA_ARGS__},
    COUNT_WAYS(X)
#undef X
};

enum { SECTOR_SHIFT = 5, WORD_SHIFT = 2, BANKS = 32 };

// ---- global memory ------------------------------------------------------------------------------
// Sectors first .. last of a buffer are touched.  Bits that are set already cost a load only.
static void touch_range(Buffer *b, uint64_t first, uint64_t last, bool write) {
  _Atomic uint64_t *map = b->touched[write];
  if (!map)
    return;
  for (uint64_t word = first >> 6; word <= last >> 6; word++) {
    uint64_t low = word == first >> 6 ? first & 63 : 0, high = word == last >> 6 ? last & 63 : 63;
    uint64_t bits = ~UINT64_C(0) << low & ~UINT64_C(0) >> (63 - high);
    if (bits & ~atomic_load_explicit(&map[word], memory_order_relaxed))
      atomic_fetch_or_explicit(&map[word], bits, memory_order_relaxed);
  }
  if (!atomic_load_explicit(&b->dirty, memory_order_relaxed))
    atomic_store_explicit(&b->dirty, true, memory_order_relaxed);
}

static void touch(const SimDevice *dev, uint64_t first, uint64_t last, CountWay way) {
  Buffer *b = sim_buffer(dev, first << SECTOR_SHIFT);
  uint64_t base = b->mem.base >> SECTOR_SHIFT;
  if (count_way[way].global_read)
    touch_range(b, first - base, last - base, false);
  if (count_way[way].global_write)
    touch_range(b, first - base, last - base, true);
}

void sim_count_touch(const SimDevice *dev, uint64_t address, uint64_t bytes, CountWay way) {
  touch(dev, address >> SECTOR_SHIFT, (address + bytes - 1) >> SECTOR_SHIFT, way);
}

// Where all lanes are a[0] + i * step.
static bool is_run(const uint64_t a[32], uint64_t step) {
  uint64_t diff = 0;
  for (int i = 0; i < 32; i++)
    diff |= a[i] ^ (a[0] + (uint64_t)i * step);
  return !diff;
}

// A set of numbers that mostly come in rising order.
typedef struct Set { uint64_t v[128], high; uint32_t n; } Set;

static bool set_add(Set *s, uint64_t x) {
  if (!s->n || x > s->high) { // beyond all of them: new without a look
    s->high = x;
    s->v[s->n++] = x;
    return true;
  }
  for (uint32_t i = s->n; i > 0; i--)
    if (s->v[i - 1] == x)
      return false;
  s->v[s->n++] = x;
  return true;
}

// An atomic's lanes at one address are separate pieces of work for its sector.
static uint32_t atomic_sectors(const uint64_t a[32], uint32_t lanes) {
  uint32_t total = 0;
  for (uint32_t left = lanes; left;) {
    uint32_t same = 0, most = 0;
    SIM_LANES(i, left)
      same |= (uint32_t)(a[i] >> SECTOR_SHIFT == a[sim_first(left)] >> SECTOR_SHIFT) << i;
    left &= ~same;
    SIM_LANES(i, same) {
      uint32_t n = 0;
      SIM_LANES(k, same) n += a[k] == a[i];
      most = n > most ? n : most;
    }
    total += most;
  }
  return total;
}

static void count_global(Warp *w, InstCount *n, const uint64_t a[32], uint32_t lanes, uint32_t size,
                         CountWay way) {
  const SimDevice *dev = w->cta->grid->dev;
  SpaceCount *g = &n->global[way];
  uint64_t sectors, ideal;
  if (lanes == SIM_FULL && is_run(a, size)) {
    uint64_t first = a[0] >> SECTOR_SHIFT, last = (a[31] + size - 1) >> SECTOR_SHIFT;
    touch(dev, first, last, way);
    sectors = last - first + 1;
    ideal = size; // 32 lanes of `size` bytes
  } else {
    Set sector = {.n = 0}, address = {.n = 0};
    SIM_LANES(i, lanes) {
      set_add(&address, a[i]);
      for (uint64_t s = a[i] >> SECTOR_SHIFT; s <= (a[i] + size - 1) >> SECTOR_SHIFT; s++)
        if (set_add(&sector, s))
          touch(dev, s, s, way);
    }
    sectors = way == COUNT_ATOM || way == COUNT_RED ? atomic_sectors(a, lanes) : sector.n;
    ideal = ((uint64_t)address.n * size + 31) >> SECTOR_SHIFT;
  }
  g->requests++;
  g->units += sectors;
  g->ideal += ideal;
  g->bytes += (uint64_t)size * (uint32_t)__builtin_popcount(lanes);
}

// ---- shared memory ------------------------------------------------------------------------------
// Lanes whose words are looked up together: 32 of 4 bytes, 16 of 8, 8 of 16.
static uint32_t phase_lanes(uint32_t size) { return size <= 4 ? 32 : size >= 128 ? 1 : 128 / size; }

// Each active lane wants what lane ^ apart wants, unless that one is inactive.
static bool lanes_pair(const uint64_t a[32], uint32_t lanes, uint32_t apart) {
  SIM_LANES(i, lanes)
    if (lanes >> (i ^ apart) & 1 && a[i] != a[i ^ apart])
      return false;
  return true;
}

// A load whose lanes want the same in pairs returns two registers' worth in one pass, so twice the
// lanes are looked up together (docs/counters.md, "Shared memory").
static bool packs(const uint64_t a[32], uint32_t lanes, uint32_t size) {
  return size > 4 && (lanes_pair(a, lanes, 1) || lanes_pair(a, lanes, 2));
}

// Most words in one bank: a word counts once however many lanes want it, but an atomic's lanes take
// turns at it.
static uint32_t phase_wavefronts(const uint64_t a[32], uint32_t lanes, uint32_t size, bool atomic) {
  uint32_t seen = 0, most = 1, n = 0, in_bank[BANKS] = {0};
  uint64_t word[64], first[BANKS];
  SIM_LANES(i, lanes) {
    for (uint64_t x = a[i] >> WORD_SHIFT; x <= (a[i] + size - 1) >> WORD_SHIFT; x++) {
      uint32_t bank = (uint32_t)x % BANKS;
      bool fresh = !(seen >> bank & 1);
      if (!fresh && !atomic) {
        if (first[bank] == x)
          continue;
        uint32_t k = 0;
        while (k < n && word[k] != x)
          k++;
        if (k < n)
          continue;
      }
      if (fresh)
        first[bank] = x;
      seen |= 1u << bank;
      word[n < 63 ? n++ : n] = x;
      most = ++in_bank[bank] > most ? in_bank[bank] : most;
    }
  }
  return most;
}

uint32_t sim_wavefronts(const uint64_t a[32], uint32_t lanes, uint32_t size, BankRule rule,
                        uint32_t *ideal) {
  uint32_t step = phase_lanes(size), total = 0;
  *ideal = 0;
  bool plain = lanes == SIM_FULL && !(a[0] & (size - 1)) && size >= 4 && is_run(a, size);
  if (!plain && rule == BANK_LOAD && packs(a, lanes, size))
    step *= 2;
  for (uint32_t at = 0; at < 32; at += step) {
    uint32_t phase = lanes & (step == 32 ? SIM_FULL : ((1u << step) - 1) << at);
    if (!phase)
      continue;
    ++*ideal;
    total += plain ? 1 : phase_wavefronts(a, phase, size, rule == BANK_ATOMIC);
  }
  return total;
}

// Matrix loads (ldmatrix, wmma.load) have rows of their own, which do not pair.
static BankRule bank_rule(const Op *op, AccessKind kind) {
  if (kind == ACCESS_ATOMIC)
    return BANK_ATOMIC;
  bool load = kind == ACCESS_READ && op->in && !strcmp(ptx_inst_form(op->in)->stem, "ld");
  return load ? BANK_LOAD : BANK_EACH;
}

static void count_shared(InstCount *n, const Op *op, const uint64_t a[32], uint32_t lanes,
                         uint32_t size, AccessKind kind, CountWay way) {
  uint32_t ideal;
  SpaceCount *s = &n->shared[way];
  uint32_t twice = way == COUNT_ATOM && ptx_inst_has(op->in, "cas") ? 2 : 1; // reads, then writes
  s->units += (uint64_t)twice * sim_wavefronts(a, lanes, size, bank_rule(op, kind), &ideal);
  s->ideal += (uint64_t)twice * ideal;
  s->requests++;
  s->bytes += (uint64_t)size * (uint32_t)__builtin_popcount(lanes);
}

// ---- local memory -------------------------------------------------------------------------------
// The hardware lays the lanes' words side by side: word x of lane i is at 128 x + 4 i.
static void count_local(InstCount *n, const uint64_t a[32], uint32_t lanes, uint32_t size,
                        CountWay way) {
  Set sector = {.n = 0};
  SIM_LANES(i, lanes) {
    uint64_t last = (a[i] + size - 1) >> WORD_SHIFT;
    for (uint64_t x = a[i] >> WORD_SHIFT; x <= last && sector.n < 128; x++)
      set_add(&sector, x * 4 + i / 8);
  }
  uint32_t bytes = size * (uint32_t)__builtin_popcount(lanes);
  SpaceCount *l = &n->local[way];
  l->requests++;
  l->units += sector.n;
  l->ideal += (bytes + 31) / 32;
  l->bytes += bytes;
}

// ---- all of them --------------------------------------------------------------------------------
static void count_space(Warp *w, const Op *op, uint8_t space, const uint64_t a[32], uint32_t lanes,
                        uint32_t size, AccessKind kind) {
  InstCount *n = &w->cta->counts[op->site];
  CountWay way = (CountWay)w->cta->grid->prog->sites[op->site].way[kind - 1];
  if (way == COUNT_COPY) // sim_count_copy
    return;
  switch (space) {
  case PTX_S_SHARED:
  case PTX_S_CLUSTER: count_shared(n, op, a, lanes, size, kind, way); break;
  case PTX_S_LOCAL:
    if (way <= COUNT_STORE) // nothing else is allowed there
      count_local(n, a, lanes, size, way);
    break;
  case PTX_S_GLOBAL: count_global(w, n, a, lanes, size, way); break;
  default: break; // constants and parameters have a cache of their own
  }
}

static uint8_t space_of(uint64_t address) {
  switch (address & ~SIM_OFFSET_MASK) {
  case SIM_WINDOW_SHARED: return PTX_S_SHARED;
  case SIM_WINDOW_LOCAL: return PTX_S_LOCAL;
  case SIM_WINDOW_PARAM: return PTX_S_PARAM;
  default: return PTX_S_GLOBAL;
  }
}

void sim_count_access(Warp *w, const Op *op, uint8_t space, const uint64_t a[32], uint32_t lanes,
                      uint32_t size, AccessKind kind) {
  if (space != PTX_S_GENERIC) {
    count_space(w, op, space, a, lanes, size, kind);
    return;
  }
  while (lanes) {
    uint8_t window = space_of(a[sim_first(lanes)]);
    uint32_t same = 0;
    SIM_LANES(i, lanes) same |= (uint32_t)(space_of(a[i]) == window) << i;
    count_space(w, op, window, a, same, size, kind);
    lanes &= ~same;
  }
}

void sim_count_global_span(Cta *c, const Op *op, uint64_t address, uint64_t bytes, CountWay way) {
  if (!c->counts || !bytes)
    return;
  SpaceCount *g = &c->counts[op->site].global[way];
  uint64_t first = address >> SECTOR_SHIFT, last = (address + bytes - 1) >> SECTOR_SHIFT;
  touch(c->grid->dev, first, last, way);
  g->requests++;
  g->units += last - first + 1;
  g->ideal += (bytes + 31) >> SECTOR_SHIFT;
  g->bytes += bytes;
}

void sim_count_shared_span(Cta *c, const Op *op, uint64_t bytes, CountWay way) {
  if (!c->counts || !bytes)
    return;
  SpaceCount *s = &c->counts[op->site].shared[way];
  s->requests++;
  s->units += (bytes + 127) / 128;
  s->ideal += (bytes + 127) / 128;
  s->bytes += bytes;
}

// ---- a launch -----------------------------------------------------------------------------------
static uint64_t map_words(const Buffer *b) { return b->mem.bytes / 2048 + 1; } // 64 sectors a word

bool sim_count_begin(SimDevice *dev) {
  for (uint32_t i = 1; i < dev->nbuffers; i++) {
    Buffer *b = dev->buffers[i];
    for (int k = 0; b && k < 2; k++)
      if (!b->touched[k] && !(b->touched[k] = calloc(map_words(b), sizeof *b->touched[k])))
        return false;
  }
  return true;
}

static void add_words(void *to, const void *from, size_t bytes) {
  for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
    ((uint64_t *)to)[i] += ((const uint64_t *)from)[i];
}
_Static_assert(sizeof(Counters) % sizeof(uint64_t) == 0, "Counters holds uint64_t only");
_Static_assert(sizeof(InstCount) % sizeof(uint64_t) == 0, "InstCount holds uint64_t only");

void sim_count_cta(const Cta *c, InstCount *sum) {
  const Program *p = c->grid->prog;
  for (int i = 0; i < p->nsites; i++) {
    const InstSite *s = &p->sites[i];
    add_words(&sum[i], &c->counts[i], sizeof *sum);
    if (s->block < 0)
      continue;
    sum[i].warps += c->blocks[s->block].warps;
    sum[i].threads += c->blocks[s->block].threads;
  }
}

static bool is_barrier(const PtxInst *in) {
  const char *stem = ptx_inst_form(in)->stem;
  return !strcmp(stem, "bar") || !strcmp(stem, "barrier");
}

static void add_global(Counters *t, const SpaceCount *g, const CountWayInfo *way) {
  if (way->global_read) {
    t->global_read_requests += g->requests;
    t->global_read_sectors += g->units;
    t->global_read_ideal += g->ideal;
    t->global_read_bytes += g->bytes;
  }
  if (way->global_write) {
    t->global_write_requests += g->requests;
    t->global_write_sectors += g->units;
    t->global_write_ideal += g->ideal;
    t->global_write_bytes += g->bytes;
  }
}

static void add_shared(Counters *t, const SpaceCount *m, const CountWayInfo *way) {
  if (way->shared_read) {
    t->shared_read_requests += m->requests;
    t->shared_read_wavefronts += m->units;
    t->shared_read_bytes += m->bytes;
  }
  if (way->shared_write) {
    t->shared_write_requests += m->requests;
    t->shared_write_wavefronts += m->units;
    t->shared_write_bytes += m->bytes;
  }
  t->shared_conflicts += m->units - m->ideal;
}

static void add_site(Counters *t, const InstSite *s, const InstCount *n) {
  const PtxForm *f = ptx_inst_form(s->in);
  t->warp_insts += n->warps;
  t->thread_insts += n->threads;
  t->by_pipe[f->pipe] += n->threads;
  t->warps_by_pipe[f->pipe] += n->warps;
  if (s->flop != FLOP_KIND_COUNT) {
    t->flops_by_kind[s->flop] += n->threads * s->flops;
    t->flops += s->flop == FLOP_TENSOR_INT ? 0 : n->threads * s->flops;
  }
  for (int way = 0; way < COUNT_FORMS; way++) {
    add_global(t, &n->global[way], &count_way[way]);
    add_shared(t, &n->shared[way], &count_way[way]);
  }
  t->local_read_sectors += n->local[COUNT_LOAD].units;
  t->local_write_sectors += n->local[COUNT_STORE].units;
  if (is_barrier(s->in))
    t->barrier_warps += n->warps;
  if (ptx_inst_exit(s->in) == PTX_JUMPS) {
    t->branches += n->warps;
    t->divergent_branches += n->divergent;
  }
}

static BufferCount *buffer_count(SimKernel *k, const Buffer *b) {
  for (int i = 0; i < k->ntouched; i++)
    if (!strcmp(k->touched[i].name, b->name) && k->touched[i].bytes == b->mem.bytes)
      return &k->touched[i];
  BufferCount *n = arena_push(k->arena, k->touched, k->ntouched, k->touched_cap);
  *n = (BufferCount){.bytes = b->mem.bytes};
  memcpy(n->name, b->name, sizeof n->name);
  return n;
}

// Bytes of the pairs of sectors that hold one of `sectors`.
static uint64_t pair_bytes(uint64_t sectors) {
  uint64_t pairs = (sectors | sectors >> 1) & UINT64_C(0x5555555555555555);
  return (uint64_t)__builtin_popcountll(pairs) << (SECTOR_SHIFT + 1);
}

// Adds a buffer's touched sectors to the kernel's and clears the maps.
static void collect_buffer(SimKernel *k, Buffer *b, Counters *t) {
  BufferCount *count = buffer_count(k, b);
  uint64_t n[3] = {0};
  for (uint64_t i = 0; i < map_words(b); i++) {
    uint64_t read = b->touched[0][i], write = b->touched[1][i];
    if (!(read | write))
      continue;
    n[0] += (uint64_t)__builtin_popcountll(read);
    n[1] += (uint64_t)__builtin_popcountll(write);
    n[2] += (uint64_t)__builtin_popcountll(read | write);
    count->read64 += pair_bytes(read);
    count->cold64 += pair_bytes(read & ~write);
    b->touched[0][i] = b->touched[1][i] = 0;
  }
  b->dirty = false;
  count->read += n[0] << SECTOR_SHIFT;
  count->written += n[1] << SECTOR_SHIFT;
  count->either += n[2] << SECTOR_SHIFT;
  t->distinct_read_bytes += n[0] << SECTOR_SHIFT;
  t->distinct_write_bytes += n[1] << SECTOR_SHIFT;
  t->distinct_bytes += n[2] << SECTOR_SHIFT;
}

void sim_count_end(SimDevice *dev, SimKernel *k, const InstCount *sum, uint64_t barriers) {
  const Program *p = k->prog;
  Counters t = {.barriers = barriers};
  if (!k->counts)
    k->counts = arena_array(k->arena, InstCount, p->nsites + 1);
  for (int i = 0; i < p->nsites; i++) {
    add_site(&t, &p->sites[i], &sum[i]);
    add_words(&k->counts[i], &sum[i], sizeof *sum);
  }
  t.xu_ops = t.by_pipe[PTX_PIPE_XU];
  for (uint32_t i = 1; i < dev->nbuffers; i++)
    if (dev->buffers[i] && dev->buffers[i]->dirty)
      collect_buffer(k, dev->buffers[i], &t);
  k->launches++;
  add_words(&k->total, &t, sizeof t);
  add_words(&dev->count, &t, sizeof t);
}

bool sim_kernel_counts(Kernel *kernel, KernelCounts *out) {
  SimKernel *k = (SimKernel *)kernel;
  if (!k->launches)
    return false;
  const Program *p = k->prog;
  *out = (KernelCounts){.module = p->module, .map = p->map, .entry = p->entry->ptx,
                        .launches = k->launches, .total = k->total, .site = p->sites,
                        .count = k->counts, .n = p->nsites, .buffer = k->touched,
                        .nbuffers = k->ntouched};
  return true;
}

void sim_count_reset(SimDevice *dev) {
  memset(&dev->count, 0, sizeof dev->count);
  for (SimKernel *k = dev->kernels; k; k = k->next) {
    if (k->counts)
      memset(k->counts, 0, (size_t)k->prog->nsites * sizeof *k->counts);
    memset(&k->total, 0, sizeof k->total);
    k->ntouched = 0;
    k->launches = 0;
  }
}
