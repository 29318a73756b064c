// sim_cpasync.c: cp.async, its groups, and its arrivals at mbarriers.  ISA 9.7.9.25.3.
//
// Groups are a thread's: it has committed g of them, and what it issues now has number g.
// wait_group N completes what has a number below g - N.
#include "ptx_forms.h"
#include "sim_async.h"
#include "sim_count.h"
#include "sim_run.h"

static Warp *warp_at(Cta *c, int index) { return &c->warps[index]; }

static AsyncAccess access_of(Cta *c, int warp, const Copies *p, uint32_t lane) {
  return (AsyncAccess){.cta = c, .thread = (uint32_t)warp * 32 + lane, .op = p->op,
                       .proxy = PROXY_GENERIC, .kind = ACCESS_WRITE, .owner = c,
                       .at = p->to[lane], .bytes = p->bytes};
}

// ---- completion ---------------------------------------------------------------------------------
static void complete_lane(Cta *c, int warp, const Copies *p, uint32_t lane) {
  if (!p->bytes) {
    sim_mbar_arrive_async(warp_at(c, warp), p->op, lane, c, p->to[lane]);
    return;
  }
  uint8_t *to = c->shared.data + p->to[lane];
  uint32_t n = p->size[lane];
  if (n) {
    const Memory *m = &sim_buffer(c->grid->dev, p->from[lane])->mem;
    memcpy(to, m->data + (p->from[lane] - m->base), n);
  }
  memset(to + n, 0, p->bytes - n);
  AsyncAccess a = access_of(c, warp, p, lane);
  sim_async_end(&a);
}

static void complete(Cta *c, int warp, Copies *p, uint32_t lanes) {
  lanes &= p->left;
  SIM_LANES(i, lanes) complete_lane(c, warp, p, i);
  p->left &= ~lanes;
  if (lanes && !p->left && p->bytes)
    c->async->global--;
  c->events++;
}

static void drop_done(CopyQueue *q) {
  int n = 0;
  for (int i = 0; i < q->n; i++)
    if (q->v[i].left) {
      if (n != i)
        q->v[n] = q->v[i];
      n++;
    }
  q->n = n;
}

// Arrivals count as they come: cp.async.mbarrier.arrive is in the queue behind its copies.
bool sim_copies_signal(Cta *c, const Cta *owner, uint64_t at, uint64_t *seq) {
  *seq = UINT64_MAX;
  for (int k = 0; owner == c && k < c->nwarps; k++) {
    const CopyQueue *q = &c->async->copies[k];
    for (int i = 0; i < q->n; i++) {
      const Copies *p = &q->v[i];
      if (p->bytes || p->seq > *seq)
        continue;
      SIM_LANES(lane, p->left) if (p->to[lane] == at) *seq = p->seq;
    }
  }
  return *seq != UINT64_MAX;
}

void sim_copies_complete(Cta *c, uint64_t seq) {
  for (int k = 0; k < c->nwarps; k++) {
    CopyQueue *q = &c->async->copies[k];
    int last = 0;
    while (last < q->n && q->v[last].seq != seq)
      last++;
    if (last == q->n)
      continue;
    uint32_t lanes = q->v[last].left;
    for (int i = 0; i <= last && !c->trap.set; i++)
      complete(c, k, &q->v[i], lanes);
    drop_done(q);
    return;
  }
}

void sim_copies_random(Cta *c) {
  for (int k = 0; k < c->nwarps; k++) {
    CopyQueue *q = &c->async->copies[k];
    if (!q->n || sim_random(c) % 4)
      continue;
    int n = (int)(sim_random(c) % (uint64_t)(q->n + 1)); // a prefix: they complete in order
    for (int i = 0; i < n && !c->trap.set; i++)
      complete(c, k, &q->v[i], SIM_FULL);
    drop_done(q);
  }
}

void sim_copies_finish(Cta *c) {
  for (int k = 0; k < c->nwarps; k++) {
    const CopyQueue *q = &c->async->copies[k];
    if (!q->n)
      continue;
    const Copies *p = &q->v[0];
    sim_trap_at(warp_at(c, k), p->op, (uint32_t)sim_first(p->left),
                "the block ends while this is in flight: nothing waited for it");
    return;
  }
}

// ---- who ----------------------------------------------------------------------------------------
const Op *sim_copies_holder(const Cta *c, uint64_t at, uint32_t *thread) {
  for (int k = 0; k < c->nwarps; k++) {
    const CopyQueue *q = &c->async->copies[k];
    for (int i = 0; i < q->n; i++) {
      const Copies *p = &q->v[i];
      SIM_LANES(lane, p->left) {
        *thread = (uint32_t)k * 32 + lane;
        if (at - p->to[lane] < p->bytes)
          return p->op;
      }
    }
  }
  return NULL;
}

const Op *sim_copies_reader(const Cta *c, uint64_t at, uint64_t bytes, uint32_t *thread) {
  for (int k = 0; k < c->nwarps; k++) {
    const CopyQueue *q = &c->async->copies[k];
    for (int i = 0; i < q->n; i++) {
      const Copies *p = &q->v[i];
      if (!p->bytes || p->low >= at + bytes || at >= p->high)
        continue;
      SIM_LANES(lane, p->left) {
        *thread = (uint32_t)k * 32 + lane;
        if (p->from[lane] < at + bytes && at < p->from[lane] + p->size[lane])
          return p->op;
      }
    }
  }
  return NULL;
}

// ---- cp.async -----------------------------------------------------------------------------------
// Lanes of the instruction by the number of groups behind them; nearly always all have the same.
static Copies *queue(Warp *w, const Op *op, uint32_t lanes, uint8_t bytes) {
  Async *s = w->cta->async;
  CopyQueue *q = &s->copies[w->index];
  Copies *p = arena_push(s->arena, q->v, q->n, q->cap);
  uint64_t group = q->committed[sim_first(lanes)];
  p->op = op;
  p->left = 0;
  SIM_LANES(i, lanes) p->left |= (uint32_t)(q->committed[i] == group) << i;
  p->group = group;
  p->seq = s->seq++;
  p->bytes = bytes;
  return p;
}

// How many bytes each lane copies: src-size, or none where ignore-src holds.
static const Op *sizes(Warp *w, const Op *op, uint8_t size[32]) {
  memset(size, op->bytes, 32);
  if (op->c)
    SIM_LANES(i, *sim_mask(w, op->c)) size[i] = 0;
  if (!op->b)
    return NULL;
  const uint32_t *given = sim_r32(w, op->b);
  SIM_LANES(i, w->active) {
    if (given[i] > op->bytes)
      return sim_trap_at(w, op, i, "cp.async of %u bytes with a source size of %u", op->bytes,
                         given[i]);
    size[i] = (uint8_t)given[i];
  }
  return NULL;
}

// The source as a load would check it; lanes that copy fewer bytes, each for itself.
static const Op *check_sources(Warp *w, const Op *op, const uint64_t from[32],
                               const uint8_t size[32]) {
  uint32_t all = w->active, full = 0;
  SIM_LANES(i, all) {
    full |= (uint32_t)(size[i] == op->bytes) << i;
    if (!size[i] || size[i] == op->bytes)
      continue;
    const Op *stop = sim_check(w, op, i, PTX_S_GLOBAL, from[i], size[i], op->bytes, ACCESS_READ,
                                NULL);
    if (stop)
      return stop;
  }
  if (!full)
    return NULL;
  uint64_t a[32];
  Access unused;
  memcpy(a, from, sizeof a);
  w->active = full;
  const Op *stop = sim_access_at(w, op, a, ACCESS_READ, &unused);
  w->active = all;
  return stop;
}

static const Op *issue(Warp *w, const Op *op, Copies *p) {
  Cta *c = w->cta, *owner;
  const Address *to = &op->more->async->to;
  uint32_t lanes = p->left;
  p->left = 0;
  SIM_LANES(i, lanes) {
    uint64_t at;
    const Op *stop = sim_shared_check(w, op, i, PTX_S_SHARED, sim_lane_address(w, to, i), op->bytes,
                                      op->bytes, "the destination", &owner, &at);
    if (stop)
      return stop;
    p->to[i] = (uint32_t)at;
    AsyncAccess a = access_of(c, w->index, p, i);
    if ((stop = sim_async_begin(w, i, &a)))
      return stop;
    p->left |= 1u << i;
  }
  c->async->global++;
  return NULL;
}

static void note_range(Copies *p, uint32_t lanes) {
  p->low = UINT64_MAX, p->high = 0;
  SIM_LANES(i, lanes) {
    if (p->from[i] < p->low) p->low = p->from[i];
    if (p->from[i] + p->size[i] > p->high) p->high = p->from[i] + p->size[i];
  }
}

static void count_copy(Warp *w, const Op *op, const uint64_t from[32], const uint8_t size[32]) {
  uint64_t to[32] = {0};
  SIM_LANES(i, w->active) to[i] = sim_lane_address(w, &op->more->async->to, i);
  sim_count_copy(w, op, from, to, size);
}

static const Op *op_copy(Warp *w, const Op *op) {
  uint64_t from[32];
  uint8_t size[32];
  sim_addresses(w, op, from);
  const Op *stop = sizes(w, op, size);
  if (!stop)
    stop = check_sources(w, op, from, size);
  Cta *c = w->cta;
  for (uint32_t lanes = w->active; lanes && !stop;) {
    Copies *p = queue(w, op, lanes, op->bytes);
    memcpy(p->from, from, sizeof from);
    memcpy(p->size, size, sizeof size);
    note_range(p, p->left);
    lanes &= ~p->left;
    stop = issue(w, op, p);
    if (!stop && sim_completion(c) == SIM_EAGER) {
      complete(c, w->index, p, SIM_FULL);
      drop_done(&c->async->copies[w->index]);
    }
  }
  if (stop)
    return stop;
  if (sim_counts(w))
    count_copy(w, op, from, size);
  return op + 1;
}

bool sim_cpasync(Decoder *x, const PtxInst *in) {
  x->prog->uses_async = true;
  AsyncArgs *args = arena_new_of(x->prog->arena, AsyncArgs);
  args->to = sim_address(x, in, &in->opnds[0]);
  Address from = sim_address(x, in, &in->opnds[1]);
  from.space = PTX_S_GLOBAL;
  int64_t bytes = in->opnds[2].i;
  if (bytes != 16 && (ptx_inst_has(in, "cg") || (bytes != 4 && bytes != 8)))
    return sim_unsupported(x, in, "cp.async of this size");
  uint32_t size = 0, ignore = 0;
  for (int i = 3; i < in->nopnds; i++) {
    char name = ptx_inst_spec(in, i)->name;
    if (name == 'n')
      size = sim_source(x, &in->opnds[i], PTX_T_U32, 4);
    else if (name == 'p')
      ignore = sim_pred_source(x, &in->opnds[i]);
  }
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  more->async = args;
  Op *op = sim_emit(x, op_copy);
  sim_set_address(op, &from, (int)bytes, 1);
  op->b = size;
  op->c = ignore;
  op->more = more;
  return true;
}

// ---- groups -------------------------------------------------------------------------------------
static const Op *op_commit(Warp *w, const Op *op) {
  CopyQueue *q = &w->cta->async->copies[w->index];
  SIM_LANES(i, w->active) q->committed[i]++;
  return op + 1;
}

// imm: groups that may stay in flight.  Arrivals belong to no group.
static const Op *op_wait(Warp *w, const Op *op) {
  Cta *c = w->cta;
  CopyQueue *q = &c->async->copies[w->index];
  if (op->kind) // wait_all
    op_commit(w, op);
  for (int i = 0; i < q->n; i++) {
    Copies *p = &q->v[i];
    uint32_t lanes = p->left & w->active, ready = 0;
    if (!p->bytes)
      continue;
    SIM_LANES(k, lanes) ready |= (uint32_t)(p->group + op->imm < q->committed[k]) << k;
    if (ready)
      complete(c, w->index, p, ready);
  }
  drop_done(q);
  return op + 1;
}

bool sim_cpasync_commit(Decoder *x, const PtxInst *in) {
  (void)in;
  x->prog->uses_async = true;
  sim_emit(x, op_commit);
  return true;
}

bool sim_cpasync_wait(Decoder *x, const PtxInst *in) {
  x->prog->uses_async = true;
  Op *op = sim_emit(x, op_wait);
  op->kind = ptx_inst_has(in, "wait_all");
  op->imm = in->nopnds ? (uint64_t)in->opnds[0].i : 0;
  return true;
}

// ---- arrivals -----------------------------------------------------------------------------------
// type: .noinc.  Else the pending count is raised first, so that the arrival leaves it as it was.
static const Op *op_arrive(Warp *w, const Op *op) {
  uint64_t a[32];
  sim_addresses(w, op, a);
  Cta *c = w->cta;
  Copies *p = queue(w, op, w->active, 0);
  p->left = w->active;
  SIM_LANES(i, w->active) {
    Cta *owner;
    uint64_t at;
    const Op *stop = sim_shared_check(w, op, i, op->space, a[i], 8, 8, "the mbarrier", &owner, &at);
    if (!stop)
      stop = sim_mbar_due(w, op, i, owner, at);
    if (!stop && !op->type)
      stop = sim_mbar_raise(w, op, i, owner, at);
    if (stop)
      return stop;
    p->to[i] = (uint32_t)at;
  }
  bool first = true;
  for (int i = 0; i < c->async->copies[w->index].n - 1; i++)
    first &= !(c->async->copies[w->index].v[i].left & p->left);
  if (first && sim_completion(c) != SIM_RANDOM) // nothing before it: it is due now
    sim_copies_complete(c, p->seq);
  return c->trap.set ? sim_leave(w, EV_TRAP, op) : op + 1;
}

bool sim_cpasync_arrive(Decoder *x, const PtxInst *in) {
  x->prog->uses_async = true;
  Address a = sim_address(x, in, &in->opnds[0]);
  bool noinc = ptx_inst_has(in, "noinc");
  Op *op = sim_emit(x, op_arrive);
  sim_set_address(op, &a, 8, 1);
  op->type = noinc;
  return true;
}
