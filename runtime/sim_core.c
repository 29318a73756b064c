// sim_core.c: Ops that belong to no instruction: guards, blocks, checks of registers, copies.
#include "sim_ops.h"

// lane i's bit, as a vector constant
static const uint32_t lane_bit[32] = {
#define B4(i) 1u << (i), 1u << ((i) + 1), 1u << ((i) + 2), 1u << ((i) + 3)
    B4(0), B4(4), B4(8), B4(12), B4(16), B4(20), B4(24), B4(28)
#undef B4
};

void sim_merge(uint8_t *to, const uint8_t *from, int width, uint32_t lanes) {
  if (width == 1) {
    uint32_t *d = (uint32_t *)to, s = *(const uint32_t *)from;
    *d = (*d & ~lanes) | (s & lanes);
  } else if (width == 4) {
    uint32_t *d = (uint32_t *)to;
    const uint32_t *s = (const uint32_t *)from;
    for (int i = 0; i < 32; i++) {
      uint32_t keep = (lanes & lane_bit[i]) ? 0 : ~0u;
      d[i] = (d[i] & keep) | (s[i] & ~keep);
    }
  } else {
    uint64_t *d = (uint64_t *)to;
    const uint64_t *s = (const uint64_t *)from;
    for (int half = 0; half < width / 8; half++, d += 32, s += 32)
      for (int i = 0; i < 32; i++) {
        uint64_t keep = (lanes & lane_bit[i]) ? 0 : ~UINT64_C(0);
        d[i] = (d[i] & keep) | (s[i] & ~keep);
      }
  }
}

// ---- guards and blocks --------------------------------------------------------------------------
const Op *sim_op_guarded(Warp *w, const Op *op) {
  uint32_t all = w->active, on = all & (*sim_mask(w, op->guard) ^ op->mask_xor);
  if (op->counted)
    sim_count_guarded(w, op, on);
  if (!on)
    return op + 1;
  w->active = on;
  const Op *next = op->guarded(w, op);
  w->active = all;
  return next;
}

// Lanes whose guard is false go past the instruction.
const Op *sim_op_skip(Warp *w, const Op *op) {
  uint32_t on = w->active & (*sim_mask(w, op->guard) ^ op->mask_xor);
  sim_count_guarded(w, op, on);
  if (on == w->active)
    return op + 1;
  if (!on)
    return op + op->target;
  return sim_diverge(w, op, on, op + 1, op + op->target);
}

const Op *sim_op_block(Warp *w, const Op *op) {
  BlockCount *count = &w->blocks[op->target];
  count->warps++;
  count->threads += (uint64_t)__builtin_popcount(w->active);
  w->left -= (int64_t)op->imm;
  if (w->left < 0)
    return sim_leave(w, EV_SLICE, op + 1);
  return op + 1;
}

// ---- registers ----------------------------------------------------------------------------------
const Op *sim_op_check(Warp *w, const Op *op) {
  const OpMore *m = op->more;
  for (int i = 0; i < m->nlist; i++) {
    uint32_t missing = w->active & ~*sim_mask(w, m->list[i]);
    if (missing)
      return sim_trap_at(w, op, (uint32_t)sim_first(missing),
                         "register %s is read before it is written",
                         op->func->ptx->regs[m->names[i]].name);
  }
  return op + 1;
}

const Op *sim_op_mark(Warp *w, const Op *op) {
  const OpMore *m = op->more;
  for (int i = 0; i < m->nlist; i++)
    *sim_mask(w, m->list[i]) |= w->active;
  return op + 1;
}

const Op *sim_op_pred_not(Warp *w, const Op *op) {
  *sim_mask(w, op->d) = ~*sim_mask(w, op->a);
  return op + 1;
}

const Op *sim_op_pred_copy(Warp *w, const Op *op) {
  *sim_mask(w, op->d) = *sim_mask(w, op->a);
  return op + 1;
}

const Op *sim_op_narrow(Warp *w, const Op *op) {
  uint32_t t[32];
  const uint64_t *a = sim_r64(w, op->a);
  for (int i = 0; i < 32; i++)
    t[i] = (uint32_t)a[i];
  sim_put(w, op->d, t, 4);
  return op + 1;
}

const Op *sim_op_widen(Warp *w, const Op *op) {
  uint64_t t[32];
  const uint32_t *a = sim_r32(w, op->a);
  for (int i = 0; i < 32; i++)
    t[i] = a[i];
  sim_put(w, op->d, t, 8);
  return op + 1;
}

const Op *sim_op_sign_extend(Warp *w, const Op *op) {
  uint64_t t[32];
  const uint32_t *a = sim_r32(w, op->a);
  for (int i = 0; i < 32; i++)
    t[i] = (uint64_t)(int64_t)(int32_t)a[i];
  sim_put(w, op->d, t, 8);
  return op + 1;
}

static void broadcast(Warp *w, uint32_t at, int width, uint64_t v) {
  uint32_t t32[32] = {0};
  uint64_t t64[32] = {0};
  for (int i = 0; i < 32; i++) {
    t32[i] = (uint32_t)v;
    t64[i] = v;
  }
  sim_put(w, at, width == 4 ? (void *)t32 : (void *)t64, width);
}

bool sim_sreg_changes(PtxSreg s) {
  switch (s) {
  case PTX_SREG_CLOCK:
  case PTX_SREG_CLOCK_HI:
  case PTX_SREG_CLOCK64:
  case PTX_SREG_GLOBALTIMER:
  case PTX_SREG_GLOBALTIMER_LO:
  case PTX_SREG_GLOBALTIMER_HI:
    return true;
  default:
    return false;
  }
}

// Clocks count the CTA's warp instructions: they only ever grow, and are the same in every run.
const Op *sim_op_clock(Warp *w, const Op *op) {
  uint64_t now = w->cta->steps + (uint64_t)(w->turn_length - w->left);
  bool high = op->kind == PTX_SREG_CLOCK_HI || op->kind == PTX_SREG_GLOBALTIMER_HI;
  broadcast(w, op->d, op->width, high ? now >> 32 : now);
  return op + 1;
}

const Op *sim_op_local_address(Warp *w, const Op *op) {
  broadcast(w, op->d, op->width, op->imm + w->lbase);
  return op + 1;
}
