// sim_warp.c: a warp is a set of groups of lanes; a group has one place in the program.
//
// Ops are laid out so that what lies lower comes before the common post-dominator
// (sim_decode.c): the lowest group runs first, up to the place of the next one, and there they
// become one.  Groups inside calls run before their callers.  When a group has used up its turn
// the others get a short one each, so that a lane that spins can't starve the lane it waits for.
#include <assert.h>

#include "sim_ops.h"

enum { SHORT_TURN = 256 }; // warp instructions of a group that is ahead of another

void sim_enter(Warp *w, const Group *g) {
  const Func *f = g->frame->func;
  w->active = g->mask;
  w->regs = w->file + f->frame + (size_t)g->frame->level * f->frame_bytes;
  w->lbase = (uint32_t)g->frame->level * f->local_bytes;
}

static bool runnable(const Group *g) { return g->state == GROUP_READY; }

bool sim_warp_ready(const Warp *w) {
  for (int i = 0; i < w->ngroups; i++)
    if (runnable(&w->groups[i]))
      return true;
  return false;
}

static void remove_group(Warp *w, int i) { w->groups[i] = w->groups[--w->ngroups]; }

// Groups at one place with one stack are one group.
static void merge(Warp *w) {
  for (int i = 0; i < w->ngroups; i++)
    for (int k = i + 1; k < w->ngroups;) {
      Group *a = &w->groups[i], *b = &w->groups[k];
      bool meets = a->pc == b->pc && a->frame == b->frame && a->state <= GROUP_SYNC &&
                   b->state <= GROUP_SYNC;
      if (!meets) {
        k++;
        continue;
      }
      a->mask |= b->mask;
      a->state = GROUP_READY; // a wait for lanes is tried again
      remove_group(w, k);
    }
}

static bool before(const Group *a, const Group *b) {
  return a->frame->depth != b->frame->depth ? a->frame->depth > b->frame->depth : a->pc < b->pc;
}

static int lowest(const Warp *w) {
  int best = -1;
  for (int i = 0; i < w->ngroups; i++)
    if (runnable(&w->groups[i]) && (best < 0 || before(&w->groups[i], &w->groups[best])))
      best = i;
  return best;
}

// The group whose turn it is.  w->turn counts the short turns since the lowest group's last one.
static int pick(Warp *w) {
  int low = lowest(w);
  if (low < 0 || !w->turn || w->ngroups == 1)
    return low;
  for (int step = 0; step < w->ngroups; step++) {
    int i = (w->last + 1 + step) % w->ngroups;
    if (i != low && runnable(&w->groups[i]))
      return i;
  }
  return low;
}

// Where the running group must stop: the next place at which it could meet another.
static const Op *next_place(const Warp *w, const Group *g) {
  const Op *limit = (const Op *)UINTPTR_MAX;
  for (int i = 0; i < w->ngroups; i++) {
    const Group *o = &w->groups[i];
    if (o != g && o->frame == g->frame && o->state <= GROUP_SYNC && o->pc > g->pc && o->pc < limit)
      limit = o->pc;
  }
  return limit;
}

Group *sim_split(Warp *w, uint32_t lanes, const Op *pc) {
  assert(w->ngroups < 32);
  Group *g = &w->groups[w->cur], *n = &w->groups[w->ngroups++];
  *n = (Group){.mask = lanes, .pc = pc, .frame = g->frame, .state = GROUP_READY};
  g->mask &= ~lanes;
  return n;
}

const Op *sim_diverge(Warp *w, const Op *op, uint32_t lanes, const Op *target, const Op *other) {
  if (w->cta->counts)
    w->cta->counts[op->site].divergent++;
  sim_split(w, lanes, target);
  return sim_leave(w, EV_SPLIT, other);
}

const Op *sim_wait_lanes(Warp *w, const Op *op, uint32_t need) {
  Group *g = &w->groups[w->cur];
  g->state = GROUP_SYNC;
  g->need = need;
  return sim_leave(w, EV_BLOCK, op);
}

// Waiting for lanes that are gone is tried again, to be reported where it stands.
static void lanes_ended(Warp *w) {
  remove_group(w, w->cur);
  for (int i = 0; i < w->ngroups; i++) {
    Group *g = &w->groups[i];
    if (g->state == GROUP_SYNC || (g->state == GROUP_WARPBAR && (g->need & w->gone)))
      g->state = GROUP_READY;
  }
  sim_lanes_ended(w);
}

static void take_turn(Warp *w) {
  bool is_short = w->turn && w->ngroups > 1;
  w->turn_length = is_short && SHORT_TURN < w->cta->turn ? SHORT_TURN : w->cta->turn;
  w->left = w->turn_length;
}

static void end_turn(Warp *w) {
  w->cta->steps += (uint64_t)(w->turn_length - w->left);
  w->turn_length = w->left; // told
}

// Turns of the lowest group until those ahead of it have theirs.  The hardware holds those back
// where lanes meet again, but they must not wait for ever here: one may hold a lock.  Counting
// waits longer, so that lanes that ended a loop do not go on alone, which would be requests that
// the hardware has not.
static int patience(const Warp *w) { return w->cta->counts ? 64 : 1; }

// Everyone else once, then the lowest again.
static void end_slice(Warp *w) {
  w->last = w->cur;
  if (w->ngroups > 1 && !w->turn && ++w->waited < patience(w))
    return;
  w->waited = 0;
  w->turn = w->ngroups > 1 && w->turn + 1 < w->ngroups ? w->turn + 1 : 0;
}

// Runs until the turn is over or no group can go on.
void sim_warp_run(Warp *w) {
  take_turn(w);
  for (;;) {
    merge(w);
    w->cur = pick(w);
    if (w->cur < 0)
      break;
    Group *g = &w->groups[w->cur];
    sim_enter(w, g);
    w->event = EV_NONE;
    w->limit = w->ngroups == 1 ? (const Op *)UINTPTR_MAX : next_place(w, g);
    const Op *op = g->pc;
    do
      op = op->fn(w, op);
    while (op < w->limit);
    if (w->event == EV_NONE)
      w->groups[w->cur].pc = op;
    if (w->event == EV_EXIT)
      lanes_ended(w);
    if (w->event == EV_TRAP)
      break;
    if (w->event == EV_SLICE) {
      end_slice(w);
      break;
    }
  }
  end_turn(w);
}
