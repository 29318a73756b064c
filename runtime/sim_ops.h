// The Ops that several files of the interpreter name, and what their functions share.
#ifndef PTXSMITH_SIM_OPS_H
#define PTXSMITH_SIM_OPS_H

#include <string.h>

#include "sim.h"

// sim_core.c
const Op *sim_op_guarded(Warp *w, const Op *op);
const Op *sim_op_block(Warp *w, const Op *op);
const Op *sim_op_check(Warp *w, const Op *op);
const Op *sim_op_mark(Warp *w, const Op *op);
const Op *sim_op_pred_not(Warp *w, const Op *op);
const Op *sim_op_pred_copy(Warp *w, const Op *op);
const Op *sim_op_narrow(Warp *w, const Op *op);      // 8 bytes to 4
const Op *sim_op_widen(Warp *w, const Op *op);       // 4 bytes to 8
const Op *sim_op_sign_extend(Warp *w, const Op *op); // 4 bytes to 8
const Op *sim_op_clock(Warp *w, const Op *op);
const Op *sim_op_local_address(Warp *w, const Op *op);
// sim_ctrl.c
const Op *sim_op_skip(Warp *w, const Op *op);
const Op *sim_op_jump(Warp *w, const Op *op);
const Op *sim_op_bra(Warp *w, const Op *op);
const Op *sim_op_brx(Warp *w, const Op *op);
const Op *sim_op_ret(Warp *w, const Op *op);
const Op *sim_op_exit(Warp *w, const Op *op);

bool sim_sreg_changes(PtxSreg s); // within a launch of a CTA: clocks

// ---- registers ----------------------------------------------------------------------------------
#define SIM_FULL 0xffffffffu

static inline uint32_t *sim_r32(const Warp *w, uint32_t at) { return (uint32_t *)(w->regs + at); }
static inline uint64_t *sim_r64(const Warp *w, uint32_t at) { return (uint64_t *)(w->regs + at); }
static inline uint32_t *sim_mask(const Warp *w, uint32_t at) { return (uint32_t *)(w->regs + at); }

// Lanes that ended have registers that nobody reads: writing them is harmless.
static inline bool sim_all(const Warp *w) { return (w->active | w->gone) == SIM_FULL; }

// Writes the active lanes of a destination.  width: bytes of a lane, 1 for a mask.
void sim_merge(uint8_t *to, const uint8_t *from, int width, uint32_t lanes);

static inline void sim_put(Warp *w, uint32_t at, const void *from, int width) {
  if (width == 1)
    sim_merge(w->regs + at, from, 1, w->active);
  else if (sim_all(w))
    memcpy(w->regs + at, from, 32 * (size_t)width);
  else
    sim_merge(w->regs + at, from, width, w->active);
}

static inline int sim_first(uint32_t lanes) { return __builtin_ctz(lanes); }
#define SIM_LANES(i, lanes)                                                                        \
  for (uint32_t left_ = (lanes), i; left_ && (i = (uint32_t)__builtin_ctz(left_), 1);              \
       left_ &= left_ - 1)

// Instructions with a guard are counted when they run, with the lanes that the guard lets through.
static inline void sim_count_guarded(Warp *w, const Op *op, uint32_t lanes) {
  InstCount *n = w->cta->counts ? &w->cta->counts[op->site] : NULL;
  if (!n)
    return;
  n->warps++;
  n->threads += (uint64_t)__builtin_popcount(lanes);
}

// ---- groups of lanes ----------------------------------------------------------------------------
// Stops the running group: the scheduler looks at `event`.
static inline const Op *sim_leave(Warp *w, WarpEvent event, const Op *pc) {
  w->event = event;
  w->limit = NULL;
  if (w->cur >= 0) // a deadlocked warp has no running group
    w->groups[w->cur].pc = pc;
  return pc;
}

// Lanes of the running group go on at `pc` as a group of their own.
Group *sim_split(Warp *w, uint32_t lanes, const Op *pc);
// Sends `lanes` to `target` and the other active ones to `other`; `op` is what parts them.
const Op *sim_diverge(Warp *w, const Op *op, uint32_t lanes, const Op *target, const Op *other);
// The group waits until `need` lanes of its warp are at this instruction too.
const Op *sim_wait_lanes(Warp *w, const Op *op, uint32_t need);
// .aligned of a barrier: every lane of the warp that has not ended must be at this instruction;
// NULL when they are.  Lanes that have ended hold no barrier up (ISA 9.7.12.5, exit).
const Op *sim_aligned_barrier(Warp *w, const Op *op);
void sim_enter(Warp *w, const Group *g); // registers and lanes of a group become current

// Ends the launch: one message about `lane` (of the warp) at `op`.
const Op *sim_trap_at(Warp *w, const Op *op, uint32_t lane, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

// Adds a note at another instruction, `at`, to the trap just made; returns op.  A party: the thread
// of the block that executed it.
const Op *sim_trap_note(Cta *c, const Op *op, const Op *at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
const Op *sim_trap_party(Warp *w, const Op *op, const Op *at, uint32_t thread);
void sim_thread_of(const Cta *c, uint32_t linear, uint32_t out[3]); // %tid

// Memory of another CTA of the cluster, by the rank in the address's high bits: why it can't be
// accessed, or NULL.  `out` is left alone when there is no such rank.
const char *sim_remote(const Warp *w, uint8_t space, uint64_t address, Memory *out);

// Writes to the operands of a wgmma in flight: NULL when there are none.
const Op *sim_wgmma_touch(Warp *w, const Op *op, const uint64_t a[32], uint64_t bytes);

// ---- barriers and turns -------------------------------------------------------------------------
void sim_lanes_ended(Warp *w); // barriers may now be complete
void sim_warp_run(Warp *w);    // one turn
bool sim_warp_ready(const Warp *w);

#endif
