// sim_assign.c: which registers may be read before they are written.
//
// A forward dataflow over blocks: assigned_in(b) = intersection of assigned_out over b's
// predecessors.  What is proven costs nothing at run time; only the registers of the remaining
// reads carry a mask of written lanes.
#include <string.h>

#include "sim_decode.h"

static void visit_operand(const PtxOperand *o, bool write, RegVisit visit, void *ctx) {
  switch (o->kind) {
  case PTX_O_REG:
    visit(ctx, o->reg, write);
    break;
  case PTX_O_ADDR:
    if (o->base == PTX_O_REG)
      visit(ctx, o->reg, false);
    break;
  case PTX_O_VEC:
  case PTX_O_PAIR:
  case PTX_O_LIST:
  case PTX_O_TMAP:
    for (int i = 0; i < o->n; i++)
      visit_operand(&o->v[i], write, visit, ctx);
    break;
  default:
    break;
  }
}

void sim_visit_regs(const PtxInst *in, RegVisit visit, void *ctx) {
  const PtxForm *form = ptx_inst_form(in);
  if (in->guard >= 0)
    visit(ctx, in->guard, false);
  bool call = !strcmp(form->handler, "call");
  // D: of wgmma.mma_async is written, and read where scale-d says so.
  bool both = form->opnds[0] == 'D';
  bool dest = (form->opnds[0] == 'd' || both) && form->opnds[1] == ':';
  bool accumulates = both && in->opnds[3].kind == PTX_O_INT && in->opnds[3].i;
  for (int pass = 0; pass < 2; pass++) { // reads first
    bool seen_func = false;
    for (int i = 0; i < in->nopnds; i++) {
      const PtxOperand *o = &in->opnds[i];
      bool write = call ? o->kind == PTX_O_LIST && !seen_func : dest && i == 0;
      seen_func |= o->kind == PTX_O_FUNC;
      if (write == (pass == 1) || (i == 0 && accumulates))
        visit_operand(o, pass == 1, visit, ctx);
    }
  }
}

typedef struct Flow {
  uint64_t *now;
  bool *tracked;
  bool guarded;
} Flow;

static void step(void *ctx, int32_t reg, bool write) {
  Flow *f = ctx;
  uint64_t bit = UINT64_C(1) << (reg & 63);
  if (!write && f->tracked && !(f->now[reg >> 6] & bit))
    f->tracked[reg] = true;
  if (write && !f->guarded)
    f->now[reg >> 6] |= bit;
}

static void run_block(const PtxFunc *f, const PtxBlock *b, Flow *state) {
  for (int i = b->first; i < b->end; i++) {
    state->guarded = f->insts[i].guard >= 0;
    sim_visit_regs(&f->insts[i], step, state);
  }
}

// in = meet of the predecessors; true when it shrank.  The entry block has nothing.
static bool meet(const PtxFlow *flow, int b, int words, uint64_t *in, const uint64_t *out) {
  const PtxBlock *block = &flow->blocks[b];
  bool changed = false;
  for (int w = 0; w < words; w++) {
    uint64_t v = b == 0 ? 0 : ~UINT64_C(0);
    for (int p = 0; p < block->npred; p++)
      v &= out[(size_t)block->pred[p] * words + w];
    changed |= v != in[(size_t)b * words + w];
    in[(size_t)b * words + w] = v;
  }
  return changed;
}

void sim_unproven(Arena *a, const PtxFunc *f, const PtxFlow *flow, bool *tracked) {
  int words = (f->nregs + 63) / 64, n = flow->nblocks;
  if (!words || !n)
    return;
  uint64_t *in = arena_array(a, uint64_t, (size_t)n * words);
  uint64_t *out = arena_array(a, uint64_t, (size_t)n * words);
  uint64_t *now = arena_array(a, uint64_t, words);
  memset(out, 0xff, (size_t)n * words * sizeof *out);
  memset(in, 0xff, (size_t)n * words * sizeof *in);
  for (bool first = true, again = true; again; first = false) {
    again = false;
    for (int b = 0; b < n; b++) {
      if (!meet(flow, b, words, in, out) && !first)
        continue;
      memcpy(now, in + (size_t)b * words, (size_t)words * sizeof *now);
      run_block(f, &flow->blocks[b], &(Flow){.now = now});
      if (memcmp(out + (size_t)b * words, now, (size_t)words * sizeof *now)) {
        memcpy(out + (size_t)b * words, now, (size_t)words * sizeof *now);
        again = true;
      }
    }
  }
  for (int b = 0; b < n; b++) {
    memcpy(now, in + (size_t)b * words, (size_t)words * sizeof *now);
    run_block(f, &flow->blocks[b], &(Flow){.now = now, .tracked = tracked});
  }
}
