// Along the control flow: registers that nothing has written, code that runs off the end.
#include "ptx_bits.h"
#include "ptx_check.h"

#include <string.h>

// ---- definitely uninitialised registers ---------------------------------------------------------
// Forward, "may have been written": a read is wrong only when no path writes the register first.
typedef struct Written {
  Check *c;
  const PtxInst *inst;
  uint64_t *now;
  uint64_t *reported;
} Written;

static void note_write(void *ctx, int32_t reg, bool reads, bool writes) {
  (void)reads;
  if (writes) bit_set(((Written *)ctx)->now, reg);
}

static void note_read(void *ctx, int32_t reg, bool reads, bool writes) {
  Written *w = ctx;
  const PtxReg *r = &w->c->f->regs[reg];
  // Read and written: an accumulator, which scale-d = false may leave unread.
  if (!reads || writes || r->undefined || bit_get(w->now, reg) || bit_get(w->reported, reg)) return;
  bit_set(w->reported, reg);
  check_inst_error(w->c, w->inst, "%s is read here, but nothing on any path has written it",
                   r->name);
}

static bool join_preds(const PtxFlow *flow, int b, const uint64_t *out, uint64_t *now, int words) {
  bool changed = false;
  for (int i = 0; i < flow->blocks[b].npred; i++) {
    int pred = flow->blocks[b].pred[i];
    if (flow->blocks[pred].order >= 0) changed |= bits_join(now, out + pred * words, words);
  }
  return changed;
}

static void enter_block(const PtxFlow *flow, int b, const uint64_t *out, uint64_t *now, int words) {
  memset(now, 0, sizeof(uint64_t) * (size_t)words);
  join_preds(flow, b, out, now, words);
}

static void check_uninitialised(Check *c) {
  const PtxFunc *f = c->f;
  const PtxFlow *flow = c->flow;
  int words = (f->nregs + 63) / 64;
  if (!words) return;
  uint64_t *out = arena_array(c->arena, uint64_t, flow->nblocks * words);
  Written w = {c, NULL, arena_array(c->arena, uint64_t, words),
               arena_array(c->arena, uint64_t, words)};
  for (int b = 0; b < flow->nblocks; b++) {
    w.now = out + b * words;
    for (int i = flow->blocks[b].first; i < flow->blocks[b].end; i++)
      ptx_inst_regs(&f->insts[i], note_write, &w);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (int b = 0; b < flow->nblocks; b++)
      changed |= join_preds(flow, b, out, out + b * words, words);
  }
  w.now = arena_array(c->arena, uint64_t, words);
  for (int b = 0; b < flow->nblocks; b++) {
    if (flow->blocks[b].order < 0) continue;
    enter_block(flow, b, out, w.now, words);
    for (int i = flow->blocks[b].first; i < flow->blocks[b].end; i++) {
      w.inst = &f->insts[i];
      ptx_inst_regs(w.inst, note_read, &w);
      ptx_inst_regs(w.inst, note_write, &w);
    }
  }
}

// ---- the end ------------------------------------------------------------------------------------
static bool calls_noreturn(Check *c, const PtxInst *in) {
  for (int i = 0; i < in->nopnds; i++)
    if (in->opnds[i].kind == PTX_O_FUNC) return c->m->funcs[in->opnds[i].sym].noreturn;
  return false;
}

static void check_end(Check *c) {
  const PtxFunc *f = c->f;
  const PtxInst *last = &f->insts[f->ninsts - 1];
  bool falls = ptx_inst_exit(last) == PTX_FALLS || last->guard >= 0;
  if (c->flow->blocks[c->flow->nblocks - 1].order >= 0 && falls && !calls_noreturn(c, last))
    check_inst_error(c, last, "\"%s\" runs off its end: ret or exit is missing", f->name);
  for (int i = 0; i < f->ninsts; i++) {
    const PtxInst *in = &f->insts[i];
    if (!in->nopnds || in->opnds[0].kind != PTX_O_LABEL || in->opnds[0].target < f->ninsts)
      continue;
    check_opnd_error(c, in, &in->opnds[0],
                     "nothing stands behind label \"%s\": ret or exit is missing",
                     f->labels[in->opnds[0].sym].name);
  }
}

void check_flow(Check *c) {
  const PtxFunc *f = c->f;
  if (!f->ninsts) {
    diag_error(c->diag,
               (Place){.src = c->m->src, .line = f->line, .col = f->col,
                       .span = (uint32_t)strlen(f->name), .origin = linemap_at(c->m->map, f->line)},
               "\"%s\" has no instructions: ret or exit is missing", f->name);
    return;
  }
  c->flow = ptx_flow(c->arena, c->m, f);
  check_uninitialised(c);
  check_end(c);
}
