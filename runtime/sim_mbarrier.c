// sim_mbarrier.c: mbarriers.  ISA 9.7.13.15.
//
//     expected  1 .. 2^20-1             arrivals per phase
//     pending   arrivals still missing  tx  bytes expected less bytes copied
//     after every change: pending == 0 and tx == 0  ->  phase + 1, pending = expected
//
// The 64 bits are opaque to programs: the state lives beside shared memory, whose shadow says that
// an mbarrier is there.  A state that arrive returns is phase << 24 | pending before it.
#include "sim_async.h"
#include "sim_race.h"
#include "sim_run.h"

enum { STATE_PHASE_SHIFT = 24 };
#define STATE_PENDING ((UINT64_C(1) << STATE_PHASE_SHIFT) - 1)

typedef unsigned long long Big; // for printf

Mbarrier *sim_mbar_find(const Cta *c, uint64_t at) {
  Async *s = c->async;
  for (int i = 0; i < s->nbars; i++)
    if (s->bars[i].at == at)
      return &s->bars[i];
  return NULL;
}

// The mbarrier that a lane names; NULL after a trap, which `*stop` then is.
static Mbarrier *find_at(Warp *w, const Op *op, uint32_t lane, uint64_t address, Cta **owner,
                         const Op **stop) {
  uint64_t at;
  *stop = sim_shared_check(w, op, lane, op->space, address, 8, 8, "the mbarrier", owner, &at);
  if (*stop)
    return NULL;
  Mbarrier *b = sim_mbar_find(*owner, at);
  if (!b)
    *stop = sim_trap_at(w, op, lane, "no mbarrier at offset %llu of shared memory: it was not "
                        "initialised", (Big)at);
  sim_race_lane(w, op, lane,
                &(AsyncTouch){.owner = *owner, .at = at, .bytes = 8, .kind = ACCESS_READ});
  return b;
}

// ---- phases -------------------------------------------------------------------------------------
static void wake(Cta *c) {
  for (int i = 0; i < c->nwarps; i++)
    for (int k = 0; k < c->warps[i].ngroups; k++)
      if (c->warps[i].groups[k].state == GROUP_MBARRIER)
        c->warps[i].groups[k].state = GROUP_READY;
}

static void changed(Cta *owner, Mbarrier *b) {
  owner->events++;
  if (b->pending || b->tx)
    return;
  sim_order_phase(owner, owner->index, b->at);
  b->phase++;
  b->pending = b->expected;
  b->expected_bytes = b->copied_bytes = 0;
  wake(owner);
}

// Bytes expected (more) or copied (fewer).
static const Op *add_tx(Warp *w, const Op *op, uint32_t lane, Mbarrier *b, int64_t bytes) {
  int64_t tx = b->tx + bytes;
  if (tx > MBAR_MAX || tx < -MBAR_MAX)
    return sim_trap_at(w, op, lane, "the transaction count of the mbarrier at offset %llu would be "
                       "%lld: its range is +-(2^20-1)", (Big)b->at, (long long)tx);
  b->tx = tx;
  if (bytes >= 0) {
    b->expected_bytes += (uint64_t)bytes;
    b->expect = op;
  } else {
    b->copied_bytes += (uint64_t)-bytes;
  }
  return NULL;
}

static const Op *take_arrivals(Warp *w, const Op *op, uint32_t lane, Mbarrier *b, uint32_t count) {
  if (count < 1 || count > b->pending) {
    sim_trap_at(w, op, lane,
                "%u arrivals at the mbarrier at offset %llu, of which %u are missing in "
                "phase %llu",
                count, (Big)b->at, b->pending, (Big)b->phase);
    sim_trap_note(w->cta, op, b->init, "it was initialised here");
    return op;
  }
  b->pending -= count;
  return NULL;
}

bool sim_mbar_complete_tx(Warp *w, const Op *op, uint32_t lane, Cta *owner, uint64_t at,
                          uint64_t bytes) {
  Mbarrier *b = sim_mbar_find(owner, at);
  b->due--;
  if (add_tx(w, op, lane, b, -(int64_t)bytes))
    return false;
  changed(owner, b);
  return true;
}

bool sim_mbar_arrive_async(Warp *w, const Op *op, uint32_t lane, Cta *owner, uint64_t at) {
  Mbarrier *b = sim_mbar_find(owner, at);
  b->due--;
  if (take_arrivals(w, op, lane, b, 1))
    return false;
  sim_order_signal(w, 1u << lane, owner->index, b->at);
  changed(owner, b);
  return true;
}

const Op *sim_mbar_due(Warp *w, const Op *op, uint32_t lane, Cta *owner, uint64_t at) {
  Mbarrier *b = sim_mbar_find(owner, at);
  if (!b)
    return sim_trap_at(w, op, lane, "no mbarrier at offset %llu of shared memory: it was not "
                       "initialised", (Big)at);
  b->due++;
  return NULL;
}

const Op *sim_mbar_raise(Warp *w, const Op *op, uint32_t lane, Cta *owner, uint64_t at) {
  Mbarrier *b = sim_mbar_find(owner, at);
  if (b->pending >= MBAR_MAX)
    return sim_trap_at(w, op, lane,
                       "more than 2^20-1 arrivals are missing at the mbarrier at offset "
                       "%llu",
                       (Big)at);
  b->pending++;
  return NULL;
}

// ---- init, inval --------------------------------------------------------------------------------
static const Op *trap_alive(Warp *w, const Op *op, uint32_t lane, const Mbarrier *b) {
  sim_trap_at(w, op, lane, "there is an mbarrier at offset %llu already (phase %llu, %u of %u "
              "arrivals missing)", (Big)b->at, (Big)b->phase, b->pending, b->expected);
  sim_trap_note(w->cta, op, b->init, "it was initialised here; mbarrier.inval ends its life");
  return op;
}

static const Op *init_one(Warp *w, const Op *op, uint32_t lane, uint64_t address, uint32_t count) {
  Cta *c;
  uint64_t at;
  const Op *stop = sim_shared_check(w, op, lane, op->space, address, 8, 8, "the mbarrier", &c, &at);
  if (stop)
    return stop;
  if (count < 1 || count > MBAR_MAX)
    return sim_trap_at(w, op, lane, "mbarrier.init with %u arrivals: 1 to 2^20-1", count);
  const Mbarrier *old = sim_mbar_find(c, at);
  if (old)
    return trap_alive(w, op, lane, old);
  if ((stop = sim_async_trap(w, op, lane, c, ACCESS_WRITE, at, 8)))
    return stop;
  Async *s = c->async;
  *arena_push(s->arena, s->bars, s->nbars, s->cap_bars) =
      (Mbarrier){.at = at, .expected = count, .pending = count, .init = op};
  memset(c->shared.shadow + at, SHADOW_MBARRIER, 8);
  sim_race_lane(w, op, lane, &(AsyncTouch){.owner = c, .at = at, .bytes = 8, .kind = ACCESS_WRITE});
  return NULL;
}

static const Op *op_init(Warp *w, const Op *op) {
  uint64_t a[32];
  sim_addresses(w, op, a);
  const uint32_t *count = sim_r32(w, op->b);
  SIM_LANES(i, w->active) {
    const Op *stop = init_one(w, op, i, a[i], count[i]);
    if (stop)
      return stop;
  }
  return op + 1;
}

static bool waited_on(const Cta *c, uint64_t at) {
  for (int i = 0; i < c->nwarps; i++)
    for (int k = 0; k < c->warps[i].ngroups; k++) {
      const Group *g = &c->warps[i].groups[k];
      if (g->state == GROUP_MBARRIER && g->mbar == at)
        return true;
    }
  return false;
}

static const Op *op_inval(Warp *w, const Op *op) {
  uint64_t a[32];
  sim_addresses(w, op, a);
  SIM_LANES(i, w->active) {
    Cta *c;
    const Op *stop;
    Mbarrier *b = find_at(w, op, i, a[i], &c, &stop);
    if (!b)
      return stop;
    if (b->due || b->tx)
      return sim_trap_at(w, op, i, "mbarrier.inval while operations in flight will signal the "
                         "mbarrier (%u due, %lld bytes expected)", b->due, (long long)b->tx);
    if (waited_on(c, b->at))
      return sim_trap_at(w, op, i, "mbarrier.inval while a thread waits on the mbarrier");
    memset(c->shared.shadow + b->at, 0, 8);
    *b = c->async->bars[--c->async->nbars];
  }
  return op + 1;
}

static bool decode(Decoder *x, const PtxInst *in, OpFn fn, int address, int value, PtxType type) {
  x->prog->uses_async = true;
  Address a = sim_address(x, in, &in->opnds[address]);
  uint32_t b = value < 0 ? sim_const(x, 4, 1) : sim_source(x, &in->opnds[value], type, 0);
  bool dest = address == 1;
  uint32_t d = dest && in->opnds[0].kind == PTX_O_REG ? x->func->reg[in->opnds[0].reg] : 0;
  Op *op = sim_emit(x, fn);
  sim_set_address(op, &a, 8, 1);
  op->b = b;
  op->d = d;
  return true;
}

static Op *last_op(Decoder *x) { return &x->prog->ops[x->prog->nops - 1]; }

bool sim_mbar_init(Decoder *x, const PtxInst *in) {
  return decode(x, in, op_init, 0, 1, PTX_T_U32);
}
bool sim_mbar_inval(Decoder *x, const PtxInst *in) {
  return decode(x, in, op_inval, 0, -1, PTX_T_U32);
}

// ---- arrivals and bytes -------------------------------------------------------------------------
enum { ARRIVE = 1, DROP = 2, NO_COMPLETE = 4, EXPECT = 8, COMPLETE = 16 }; // Op.type

static const Op *signal_one(Warp *w, const Op *op, uint32_t lane, uint64_t address, uint32_t value,
                            uint64_t *state) {
  Cta *owner;
  const Op *stop;
  Mbarrier *b = find_at(w, op, lane, address, &owner, &stop);
  if (!b)
    return stop;
  if (op->d && owner != w->cta)
    return sim_trap_at(w, op, lane, "an arrival at another block's mbarrier returns no state: its "
                       "destination must be _");
  *state = b->phase << STATE_PHASE_SHIFT | b->pending;
  if (op->type & (EXPECT | COMPLETE)) {
    int64_t bytes = op->type & EXPECT ? (int64_t)value : -(int64_t)value;
    if ((stop = add_tx(w, op, lane, b, bytes)))
      return stop;
    value = 1; // of arrive.expect_tx
  }
  if (op->type & ARRIVE) {
    if ((stop = take_arrivals(w, op, lane, b, value)))
      return stop;
    sim_order_signal(w, 1u << lane, owner->index, b->at);
    if (op->type & DROP)
      b->expected -= value;
    if ((op->type & NO_COMPLETE) && !b->pending && !b->tx)
      return sim_trap_at(w, op, lane, "the arrival with .noComplete completes phase %llu",
                         (Big)b->phase);
  }
  changed(owner, b);
  return NULL;
}

static const Op *op_signal(Warp *w, const Op *op) {
  uint64_t a[32], state[32] = {0};
  sim_addresses(w, op, a);
  const uint32_t *value = sim_r32(w, op->b);
  SIM_LANES(i, w->active) {
    const Op *stop = signal_one(w, op, i, a[i], value[i], &state[i]);
    if (stop)
      return stop;
  }
  if (op->d)
    sim_put(w, op->d, state, 8);
  return op + 1;
}

bool sim_mbar_tx(Decoder *x, const PtxInst *in) {
  decode(x, in, op_signal, 0, 1, PTX_T_U32);
  last_op(x)->type = ptx_inst_has(in, "expect_tx") ? EXPECT : COMPLETE;
  return true;
}

bool sim_mbar_arrive(Decoder *x, const PtxInst *in) {
  decode(x, in, op_signal, 1, in->nopnds > 2 ? 2 : -1, PTX_T_U32);
  int type = ARRIVE | (ptx_inst_has(in, "arrive_drop") ? DROP : 0) |
             (ptx_inst_has(in, "noComplete") ? NO_COMPLETE : 0) |
             (ptx_inst_has(in, "expect_tx") ? EXPECT : 0);
  last_op(x)->type = (uint8_t)type;
  return true;
}

// ---- waits --------------------------------------------------------------------------------------
// Op.type: parity.  True when the phase is complete; `*phase` is the one that is waited for.
static const Op *test_one(Warp *w, const Op *op, uint32_t lane, uint64_t address, uint64_t value,
                          Mbarrier **out, uint64_t *phase, bool *done) {
  Cta *owner;
  const Op *stop;
  Mbarrier *b = *out = find_at(w, op, lane, address, &owner, &stop);
  if (!b)
    return stop;
  if (owner != w->cta)
    return sim_trap_at(w, op, lane, "a wait on another block's mbarrier");
  if (op->type) {
    if (value > 1)
      return sim_trap_at(w, op, lane, "a phase parity of %llu: 0 or 1", (Big)value);
    *done = (b->phase & 1) != value;
    *phase = *done ? b->phase - 1 : b->phase;
    return NULL;
  }
  *phase = value >> STATE_PHASE_SHIFT;
  *done = b->phase > *phase;
  if (b->phase == *phase || b->phase == *phase + 1)
    return NULL;
  return sim_trap_at(w, op, lane,
                     "a wait for phase %llu of the mbarrier at offset %llu, which is in "
                     "phase %llu: only the current phase and the one before can be waited for",
                     (Big)*phase, (Big)b->at, (Big)b->phase);
}

// A group whose lanes are all too early waits until a phase completes, or nobody can move.
static const Op *begin_wait(Warp *w, const Op *op, const Mbarrier *b, uint64_t phase) {
  Group *g = &w->groups[w->cur];
  g->state = GROUP_MBARRIER;
  g->waiting = true;
  g->mbar = b->at;
  g->phase = phase;
  return sim_leave(w, EV_BLOCK, op);
}

// The lanes whose phase is complete see what was done before it.
static void order_waits(Warp *w, const uint64_t at[32], uint32_t done) {
  if (!done)
    return;
  uint32_t first = (uint32_t)sim_first(done), same = 0;
  SIM_LANES(i, done) same |= (uint32_t)(at[i] == at[first]) << i;
  sim_order_wait(w, same, w->cta->index, at[first]);
  SIM_LANES(i, done & ~same) sim_order_wait(w, 1u << i, w->cta->index, at[i]);
}

static const Op *op_wait(Warp *w, const Op *op) {
  uint64_t a[32], at[32] = {0};
  uint32_t bits = 0;
  sim_addresses(w, op, a);
  Group *g = &w->groups[w->cur];
  uint32_t first = (uint32_t)sim_first(w->active);
  Mbarrier *lead = NULL;
  uint64_t lead_phase = 0;
  SIM_LANES(i, w->active) {
    Mbarrier *b;
    uint64_t phase = 0, value = op->type ? sim_r32(w, op->b)[i] : sim_r64(w, op->b)[i];
    bool done = false;
    const Op *stop = test_one(w, op, i, a[i], value, &b, &phase, &done);
    if (stop)
      return stop;
    if (i == first)
      lead = b, lead_phase = phase;
    bits |= (uint32_t)done << i;
    at[i] = b->at;
  }
  if (g->waiting && g->mbar == lead->at && lead->phase > g->phase + 1)
    return sim_trap_at(w, op, first,
                       "phases %llu and %llu of the mbarrier at offset %llu were both "
                       "completed while this thread waited for the first: it can't tell",
                       (Big)g->phase, (Big)g->phase + 1, (Big)lead->at);
  // The time limit of a wait is the system's: under a seed some waits return false at once.
  bool hasty = !g->waiting && w->cta->grid->dev->opts.seed && sim_random(w->cta) % 4 == 0;
  if (!bits && !g->expired && !hasty)
    return begin_wait(w, op, lead, lead_phase);
  g->waiting = g->expired = false;
  order_waits(w, at, bits);
  sim_merge(w->regs + op->d, (const uint8_t *)&bits, 1, w->active);
  return op + 1;
}

bool sim_mbar_wait(Decoder *x, const PtxInst *in) {
  bool parity = ptx_inst_has(in, "parity");
  sim_split_guard(x);
  decode(x, in, op_wait, 1, 2, parity ? PTX_T_U32 : PTX_T_U64);
  last_op(x)->type = parity;
  return true;
}

static const Op *op_pending(Warp *w, const Op *op) {
  uint32_t t[32];
  const uint64_t *state = sim_r64(w, op->a);
  for (int i = 0; i < 32; i++)
    t[i] = (uint32_t)(state[i] & STATE_PENDING);
  sim_put(w, op->d, t, 4);
  return op + 1;
}

bool sim_mbar_pending(Decoder *x, const PtxInst *in) {
  uint32_t a = sim_source(x, &in->opnds[1], PTX_T_B64, 8), d = sim_dest(x, &in->opnds[0], 4);
  Op *op = sim_emit(x, op_pending);
  op->a = a, op->d = d;
  return true;
}
