#include "ptx_bits.h"
#include "ptx_forms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- liveness ----------------------------------------------------------------------------------
typedef struct Live {
  const PtxFunc *f;
  const PtxFlow *flow;
  int words;
  uint64_t *in; // registers live at the start of each block
  uint64_t *now;
  bool guarded; // the instruction in hand may not write
} Live;

static void kill_written(void *ctx, int32_t reg, bool reads, bool writes) {
  Live *l = ctx;
  if (writes && !reads && !l->guarded) bit_clear(l->now, reg);
}

static void wake_read(void *ctx, int32_t reg, bool reads, bool writes) {
  (void)writes;
  if (reads) bit_set(((Live *)ctx)->now, reg);
}

static void step_back(Live *l, const PtxInst *in) {
  l->guarded = in->guard >= 0;
  ptx_inst_regs(in, kill_written, l);
  ptx_inst_regs(in, wake_read, l);
}

static void live_out(Live *l, const PtxBlock *b) {
  memset(l->now, 0, sizeof(uint64_t) * (size_t)l->words);
  for (int i = 0; i < b->nsucc; i++) bits_join(l->now, l->in + b->succ[i] * l->words, l->words);
}

static void live_fixpoint(Live *l) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int b = l->flow->nblocks - 1; b >= 0; b--) {
      const PtxBlock *blk = &l->flow->blocks[b];
      live_out(l, blk);
      for (int i = blk->end - 1; i >= blk->first; i--) step_back(l, &l->f->insts[i]);
      changed |= bits_join(l->in + b * l->words, l->now, l->words);
    }
  }
}

static int reg_cost(PtxType t) { return t == PTX_T_PRED ? 0 : (ptx_type_bits(t) + 31) / 32; }

static void note_pressure(const Live *l, const PtxInst *in, PtxStats *out) {
  int regs = 0, preds = 0;
  for (int w = 0; w < l->words; w++)
    for (uint64_t bits = l->now[w]; bits; bits &= bits - 1) {
      PtxType t = l->f->regs[w * 64 + __builtin_ctzll(bits)].type;
      regs += reg_cost(t);
      preds += t == PTX_T_PRED;
    }
  if (preds > out->preds_live_max) out->preds_live_max = preds;
  if (regs <= out->live_max) return;
  out->live_max = regs;
  out->live_max_line = in->line;
}

static void pressure(Arena *a, const PtxFunc *f, const PtxFlow *flow, PtxStats *out) {
  Live l = {.f = f, .flow = flow, .words = (f->nregs + 63) / 64};
  if (!l.words) return;
  l.in = arena_array(a, uint64_t, l.words * flow->nblocks);
  l.now = arena_array(a, uint64_t, l.words);
  live_fixpoint(&l);
  for (int b = 0; b < flow->nblocks; b++) {
    const PtxBlock *blk = &flow->blocks[b];
    live_out(&l, blk);
    for (int i = blk->end - 1; i >= blk->first; i--) {
      note_pressure(&l, &f->insts[i], out); // what lives behind the instruction
      step_back(&l, &f->insts[i]);
    }
  }
}

// ---- work --------------------------------------------------------------------------------------
typedef struct Work {
  int insts;
  double flops, global_bytes, shared_bytes;
} Work;

// "m16n8k16" -> 2 * 16 * 8 * 16
static double shape_flops(const char *s) {
  char *p;
  double m = (double)strtol(s + 1, &p, 10);
  if (*p != 'n') return 0;
  double n = (double)strtol(p + 1, &p, 10);
  if (*p != 'k') return 0;
  return 2 * m * n * (double)strtol(p + 1, &p, 10);
}

static double tensor_flops(const PtxInst *in) {
  int threads = !strcmp(ptx_inst_form(in)->stem, "wgmma") ? 128 : 32;
  for (int i = 0; i < in->nmods; i++) {
    const char *t = ptx_mod_text(in->mods[i]);
    if (t[0] == 'm' && t[1] >= '0' && t[1] <= '9') return shape_flops(t) / threads;
  }
  return 0;
}

static double inst_flops(const PtxInst *in) {
  const PtxForm *f = ptx_inst_form(in);
  PtxType t = (PtxType)in->type[0];
  if (f->pipe == PTX_PIPE_TENSOR) return tensor_flops(in);
  if (f->pipe == PTX_PIPE_XU) return 1;
  if (f->pipe != PTX_PIPE_FMA && f->pipe != PTX_PIPE_HALF && f->pipe != PTX_PIPE_FP64) return 0;
  char class = ptx_type_class(t);
  if (class != 'F' && class != 'X') return 0;
  int lanes = t == PTX_T_F16X2 || t == PTX_T_BF16X2 || t == PTX_T_F32X2 ? 2 : 1;
  bool fused = !strcmp(f->stem, "fma") || !strcmp(f->stem, "mad");
  bool counted = fused || !strcmp(f->stem, "add") || !strcmp(f->stem, "sub") ||
                 !strcmp(f->stem, "mul") || !strcmp(f->stem, "div") || !strcmp(f->stem, "sqrt") ||
                 !strcmp(f->stem, "rcp");
  return counted ? lanes * (fused ? 2 : 1) : 0;
}

// Bytes one thread moves.  cp.async counts as a global read and a shared write.  wgmma, which reads
// by descriptors, moves none of a thread's.
static void inst_bytes(const PtxInst *in, Work *w) {
  const PtxForm *f = ptx_inst_form(in);
  if (f->effects[0] != 'R' && f->effects[0] != 'W') return;
  if (f->pipe == PTX_PIPE_TENSOR) return;
  if (!strcmp(f->stem, "cp")) {
    if (in->nopnds < 3 || in->opnds[2].kind != PTX_O_INT || f->pipe != PTX_PIPE_LSU) return;
    w->global_bytes += (double)in->opnds[2].i;
    w->shared_bytes += (double)in->opnds[2].i;
    return;
  }
  double bytes = ptx_type_bits((PtxType)in->type[0]) / 8.0 * in->vec;
  if (!strcmp(f->stem, "ldmatrix") || !strcmp(f->stem, "stmatrix")) {
    for (int i = 0; i < in->nmods; i++) bytes += 4.0 * ptx_mod_info(in->mods[i])->x;
    w->shared_bytes += bytes;
  } else if (in->space == PTX_S_SHARED || in->space == PTX_S_CLUSTER) {
    w->shared_bytes += bytes;
  } else if (in->space == PTX_S_GLOBAL || in->space == PTX_S_GENERIC) {
    w->global_bytes += bytes;
  }
}

static Work loop_work(const PtxFunc *f, const PtxFlow *flow, int head) {
  Work w = {0};
  for (int b = 0; b < flow->nblocks; b++) {
    if (flow->blocks[b].loop != head) continue;
    for (int i = flow->blocks[b].first; i < flow->blocks[b].end; i++) {
      w.insts++;
      w.flops += inst_flops(&f->insts[i]);
      inst_bytes(&f->insts[i], &w);
    }
  }
  return w;
}

// Is the work of loop a more than that of b, that of loops inside them not counted?  A loop in
// another one is taken to turn twice for each of that one's turns; it may do so more often.
static bool more_work(const PtxBlock *a, const Work *wa, const PtxBlock *b, const Work *wb) {
  double flops_a = ldexp(wa->flops, a->depth), flops_b = ldexp(wb->flops, b->depth);
  if (flops_a != flops_b) return flops_a > flops_b;
  return a->depth != b->depth ? a->depth > b->depth : wa->insts > wb->insts;
}

// A wait or a merge inside a loop takes nothing from it.
static void hot_loop(const PtxFunc *f, const PtxFlow *flow, PtxStats *out) {
  Work best = {0};
  int head = -1;
  for (int b = 0; b < flow->nblocks; b++) {
    if (flow->blocks[b].loop != b) continue;
    Work w = loop_work(f, flow, b);
    if (head >= 0 && !more_work(&flow->blocks[b], &w, &flow->blocks[head], &best)) continue;
    best = w;
    head = b;
  }
  if (head < 0) return;
  out->loop_line = f->insts[flow->blocks[head].first].line;
  out->loop_insts = best.insts;
  out->loop_flops = best.flops;
  out->loop_global_bytes = best.global_bytes;
  out->loop_shared_bytes = best.shared_bytes;
  out->loop_intensity = best.global_bytes > 0 ? best.flops / best.global_bytes : 0;
}

static bool is_barrier(const PtxForm *f) {
  return !strcmp(f->stem, "bar") || !strcmp(f->stem, "barrier");
}

void ptx_stats(const PtxModule *m, const PtxFunc *f, PtxStats *out) {
  *out = (PtxStats){.insts = f->ninsts,
                    .regs_declared = (int)f->regs_declared,
                    .preds_declared = (int)f->preds_declared,
                    .shared_bytes = f->shared_bytes,
                    .local_bytes = f->local_bytes,
                    .param_bytes = f->param_bytes};
  if (!f->ninsts) return;
  for (int i = 0; i < f->ninsts; i++) {
    const PtxForm *form = ptx_inst_form(&f->insts[i]);
    out->by_pipe[form->pipe]++;
    out->barriers += is_barrier(form);
  }
  Arena *a = arena_new();
  const PtxFlow *flow = ptx_flow(a, m, f);
  pressure(a, f, flow, out);
  hot_loop(f, flow, out);
  arena_free(a);
}
