// Along the control flow: registers that nothing has written, code that runs off the end.
#include "ptx_bits.h"
#include "ptx_check.h"

#include <string.h>

// ---- definitely uninitialised registers --------------------------------------------------------
// Forward, "may have been written": a read is wrong only when no path writes the register first.
typedef struct Use {
  int32_t reg;
  bool reads, writes;
} Use;

// Registers of every instruction, listed once: instruction i has uses [first[i], first[i + 1]).
typedef struct Uses {
  Arena *arena;
  Use *v;
  int n, cap;
  int *first;
} Uses;

static void note_use(void *ctx, int32_t reg, bool reads, bool writes) {
  Uses *u = ctx;
  *arena_push(u->arena, u->v, u->n, u->cap) = (Use){reg, reads, writes};
}

static Uses list_uses(Arena *a, const PtxFunc *f) {
  Uses u = {.arena = a, .cap = 4 * f->ninsts}; // the list grows where nothing else is allocated
  u.first = arena_array(a, int, f->ninsts + 1);
  u.v = arena_array(a, Use, u.cap);
  for (int i = 0; i < f->ninsts; i++) {
    u.first[i] = u.n;
    ptx_inst_regs(&f->insts[i], note_use, &u);
  }
  u.first[f->ninsts] = u.n;
  return u;
}

static void add_writes(const Uses *u, int inst, uint64_t *now) {
  for (int i = u->first[inst]; i < u->first[inst + 1]; i++)
    if (u->v[i].writes) bit_set(now, u->v[i].reg);
}

static void check_reads(Check *c, const Uses *u, int inst, const uint64_t *now,
                        uint64_t *reported) {
  for (int i = u->first[inst]; i < u->first[inst + 1]; i++) {
    const Use *use = &u->v[i];
    // Read and written: an accumulator, which scale-d = false may leave unread.
    if (!use->reads || use->writes || bit_get(now, use->reg)) continue;
    const PtxReg *r = &c->f->regs[use->reg];
    if (r->undefined || bit_get(reported, use->reg)) continue;
    bit_set(reported, use->reg);
    check_inst_error(c, &c->f->insts[inst],
                     "%s is read here, but nothing on any path has written it", r->name);
  }
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
  Uses uses = list_uses(c->arena, f);
  uint64_t *out = arena_array(c->arena, uint64_t, flow->nblocks * words);
  for (int b = 0; b < flow->nblocks; b++)
    for (int i = flow->blocks[b].first; i < flow->blocks[b].end; i++)
      add_writes(&uses, i, out + b * words);
  for (bool changed = true; changed;) {
    changed = false;
    for (int b = 0; b < flow->nblocks; b++)
      changed |= join_preds(flow, b, out, out + b * words, words);
  }
  uint64_t *now = arena_array(c->arena, uint64_t, words);
  uint64_t *reported = arena_array(c->arena, uint64_t, words);
  for (int b = 0; b < flow->nblocks; b++) {
    if (flow->blocks[b].order < 0) continue;
    enter_block(flow, b, out, now, words);
    for (int i = flow->blocks[b].first; i < flow->blocks[b].end; i++) {
      check_reads(c, &uses, i, now, reported);
      add_writes(&uses, i, now);
    }
  }
}

// ---- the end -----------------------------------------------------------------------------------
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
