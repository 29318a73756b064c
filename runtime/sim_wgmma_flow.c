// sim_wgmma_flow.c: which instructions may meet registers of a wgmma in flight, and which registers
// may be written without a fence before a wgmma uses them.
//
// Forward, over blocks.  age[r]: the least number of commit_group since a wgmma that uses r was
// issued, NONE when none is in flight; wait_group N ends all of age > N.  dirty[r]: written since
// the last fence on some path.
#include <string.h>

#include "sim_wgmma.h"

enum { NONE = 255, OLDEST = 254 };

typedef struct State {
  uint8_t *d, *a; // ages of accumulators, and of A in registers
  uint8_t *dirty;
} State;

typedef struct Walk {
  const PtxFunc *f;
  WgmmaFlow *out;
  State s;
  int index;      // of the instruction
  int *suspects;  // number of them; NULL: not yet the last pass
  bool meets;
} Walk;

static void each_register(const PtxOperand *o, uint8_t *state, uint8_t value) {
  for (int i = 0; i < o->n; i++)
    if (o->v[i].kind == PTX_O_REG)
      state[o->v[i].reg] = value;
}

static void find_suspects(Walk *w, const PtxOperand *o) {
  for (int i = 0; i < o->n; i++)
    if (o->v[i].kind == PTX_O_REG && w->s.dirty[o->v[i].reg] && w->out->suspect[o->v[i].reg] < 0)
      w->out->suspect[o->v[i].reg] = (*w->suspects)++;
}

static void issue(Walk *w, const PtxInst *in) {
  const PtxOperand *d = &in->opnds[0], *a = &in->opnds[1];
  bool regs = a->kind == PTX_O_VEC;
  if (w->suspects) {
    find_suspects(w, d);
    if (regs)
      find_suspects(w, a);
  }
  each_register(d, w->s.d, 0);
  each_register(d, w->s.dirty, 0);
  if (regs)
    each_register(a, w->s.a, 0);
}

static void age_all(uint8_t *age, int n, int64_t wait) {
  for (int i = 0; i < n; i++)
    if (wait >= 0)
      age[i] = age[i] > wait ? NONE : age[i];
    else
      age[i] += age[i] < OLDEST;
}

static void use(void *ctx, int32_t reg, bool write) {
  Walk *w = ctx;
  w->meets |= w->s.d[reg] != NONE || (write && w->s.a[reg] != NONE);
  if (write)
    w->s.dirty[reg] = 1;
}

static void step(Walk *w, const PtxInst *in) {
  int n = w->f->nregs;
  bool always = in->guard < 0;
  if (sim_is_wgmma(in, "mma_async")) {
    issue(w, in);
  } else if (sim_is_wgmma(in, "commit_group")) {
    if (always)
      age_all(w->s.d, n, -1), age_all(w->s.a, n, -1);
  } else if (sim_is_wgmma(in, "wait_group")) {
    if (always)
      age_all(w->s.d, n, in->opnds[0].i), age_all(w->s.a, n, in->opnds[0].i);
  } else if (sim_is_wgmma(in, "fence")) {
    if (always)
      memset(w->s.dirty, 0, (size_t)n);
  } else {
    w->meets = false;
    sim_visit_regs(in, use, w);
    w->out->meets[w->index] = w->meets;
  }
}

// State of block b: three arrays of nregs, side by side.
static State state_of(uint8_t *all, int nregs, int b) {
  uint8_t *at = all + (size_t)b * 3 * (size_t)nregs;
  return (State){at, at + nregs, at + 2 * (size_t)nregs};
}

static bool join(State to, State from, int n) {
  bool changed = false;
  for (int i = 0; i < n; i++) {
    uint8_t d = from.d[i] < to.d[i] ? from.d[i] : to.d[i];
    uint8_t a = from.a[i] < to.a[i] ? from.a[i] : to.a[i], dirty = from.dirty[i] | to.dirty[i];
    changed |= d != to.d[i] || a != to.a[i] || dirty != to.dirty[i];
    to.d[i] = d, to.a[i] = a, to.dirty[i] = dirty;
  }
  return changed;
}

static void run_block(Walk *w, const PtxBlock *b, State in) {
  size_t n = (size_t)w->f->nregs;
  memcpy(w->s.d, in.d, 3 * n); // the three are one
  for (int i = b->first; i < b->end; i++) {
    w->index = i;
    step(w, &w->f->insts[i]);
  }
}

static bool has_wgmma(const PtxFunc *f) {
  for (int i = 0; i < f->ninsts; i++)
    if (sim_is_wgmma(&f->insts[i], "mma_async"))
      return true;
  return false;
}

const WgmmaFlow *sim_wgmma_flow(Program *p, const PtxFunc *f, const PtxFlow *flow) {
  if (!has_wgmma(f))
    return NULL;
  int n = f->nregs, nblocks = flow->nblocks;
  WgmmaFlow *out = arena_new_of(p->arena, WgmmaFlow);
  out->meets = arena_array(p->arena, bool, f->ninsts + 1);
  out->suspect = arena_array(p->arena, int32_t, n + 1);
  memset(out->suspect, 0xff, (size_t)n * sizeof *out->suspect);
  uint8_t *all = arena_array(p->arena, uint8_t, (size_t)(nblocks + 1) * 3 * (size_t)n + 1);
  for (int b = 0; b <= nblocks; b++)
    memset(state_of(all, n, b).d, NONE, 2 * (size_t)n);
  bool *again = arena_array(p->arena, bool, nblocks + 1);
  memset(again, true, (size_t)nblocks);
  Walk w = {.f = f, .out = out, .s = state_of(all, n, nblocks)};
  for (bool more = true; more;) {
    more = false;
    for (int b = 0; b < nblocks; b++) {
      if (!again[b])
        continue;
      again[b] = false;
      run_block(&w, &flow->blocks[b], state_of(all, n, b));
      for (int k = 0; k < flow->blocks[b].nsucc; k++) {
        int to = flow->blocks[b].succ[k];
        if (join(state_of(all, n, to), w.s, n))
          again[to] = more = true;
      }
    }
  }
  w.suspects = &p->wgmma_suspects;
  for (int b = 0; b < nblocks; b++)
    run_block(&w, &flow->blocks[b], state_of(all, n, b));
  p->uses_wgmma = true;
  return out;
}
