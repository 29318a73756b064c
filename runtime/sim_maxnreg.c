// sim_maxnreg.c: setmaxnreg: warpgroups give registers back to the block's pool and take them from
// it. ISA 9.7.19.5.
//
// A kernel starts with E registers a thread; all warps together never hold more than that.  E is
// known with .maxnreg or .minnctapersm only; without them ptxas ignores setmaxnreg, and so do we.
#include <stdio.h>

#include "sim_decode.h"
#include "sim_matrix_ops.h"
#include "sim_run.h"

enum { FILE_REGISTERS = 65536, MOST = 256, GROUP_WARPS = 4 };

static uint32_t threads_of(const PtxFunc *f) {
  uint32_t n = 1;
  for (int i = 0; i < 3; i++)
    n *= f->reqntid[i] ? f->reqntid[i] : f->maxntid[i] ? f->maxntid[i] : 1;
  return f->reqntid[0] || f->maxntid[0] ? n : 1024;
}

// What ptxas gives a thread when m blocks must fit: 65536 / (m * threads rounded up to 128), down
// to a multiple of 8; 255 takes the room of 256.
static uint32_t entry_count(const PtxFunc *f) {
  uint32_t e = 0;
  if (f->minnctapersm) {
    uint32_t threads = (threads_of(f) + 127) / 128 * 128;
    e = FILE_REGISTERS / (f->minnctapersm * threads) / 8 * 8;
    e = e > MOST ? MOST : e;
  }
  if (f->maxnreg && (!e || f->maxnreg < e))
    e = (f->maxnreg + 7) / 8 * 8;
  return e;
}

void sim_maxnreg_start(Cta *c) {
  RegPool *p = &c->pool;
  *p = (RegPool){.entry = entry_count(c->grid->prog->entry->ptx)};
  for (int i = 0; i < c->nwarps; i++)
    p->held[i] = (uint16_t)p->entry;
}

static uint32_t taken(const Cta *c) {
  uint32_t sum = 0;
  for (int i = 0; i < c->nwarps; i++)
    sum += c->pool.held[i];
  return sum;
}

void sim_maxnreg_describe(const Warp *w, const Group *g, char *out, size_t n) {
  const Cta *c = w->cta;
  int used = snprintf(out, n,
                      "warp %d, lanes %08x: for %u registers a thread: of the block's %u, its "
                      "warpgroups hold",
                      w->index, g->mask, g->need, c->pool.entry * 32 * (uint32_t)c->nwarps);
  for (int i = 0; i < c->nwarps && used > 0 && (size_t)used < n; i += GROUP_WARPS) {
    uint32_t sum = 0;
    for (int k = i; k < c->nwarps && k < i + GROUP_WARPS; k++)
      sum += 32u * c->pool.held[k];
    used += snprintf(out + used, n - (size_t)used, "%s %u", i ? " +" : "", sum);
  }
}

static void wake(Cta *c) {
  for (int i = 0; i < c->nwarps; i++)
    for (int k = 0; k < c->warps[i].ngroups; k++)
      if (c->warps[i].groups[k].state == GROUP_REGISTERS)
        c->warps[i].groups[k].state = GROUP_READY;
}

// All four warps of the group execute one setmaxnreg before any executes the next.
static const Op *check_group(Warp *w, const Op *op) {
  int first = w->index / GROUP_WARPS * GROUP_WARPS, have = w->cta->nwarps - first;
  uint32_t came = w->cta->pool.came[first / GROUP_WARPS], bit = 1u << (w->index - first);
  const Op *before = w->cta->pool.op[first / GROUP_WARPS];
  if (have < GROUP_WARPS)
    return sim_trap_at(w, op, 0, "setmaxnreg needs a warpgroup of four warps: this one has %d",
                       have);
  if (came & bit)
    sim_trap_at(w, op, 0, "warps %x of the warpgroup have not executed the setmaxnreg of line "
                "%u yet", ~came & 0xf, before->in->line);
  else if (came && before != op)
    sim_trap_at(w, op, 0, "other warps of the warpgroup execute the setmaxnreg of line %u: all "
                "four must execute the same", before->in->line);
  else
    return NULL;
  return sim_trap_party(w, op, before, (uint32_t)(first + __builtin_ctz(came)) * 32);
}

static void executed(Warp *w, const Op *op) {
  int group = w->index / GROUP_WARPS;
  RegPool *p = &w->cta->pool;
  p->came[group] |= (uint8_t)(1u << w->index % GROUP_WARPS);
  p->op[group] = op;
  if (p->came[group] == (1u << GROUP_WARPS) - 1)
    p->came[group] = 0;
}

// imm: registers; kind: .inc.
static const Op *op_setmaxnreg(Warp *w, const Op *op) {
  const Op *stop = sim_together(w, op);
  if (!stop)
    stop = check_group(w, op);
  if (stop)
    return stop;
  Cta *c = w->cta;
  uint32_t n = (uint32_t)op->imm, held = c->pool.held[w->index];
  if (c->pool.entry) {
    if (op->kind ? n < held : n > held)
      return sim_trap_at(w, op, 0, "setmaxnreg.%s to %u registers: the warp holds %u",
                         op->kind ? "inc" : "dec", n, held);
    if (taken(c) - held + n > c->pool.entry * (uint32_t)c->nwarps) {
      Group *g = &w->groups[w->cur];
      g->state = GROUP_REGISTERS;
      g->need = n;
      return sim_leave(w, EV_BLOCK, op);
    }
    c->pool.held[w->index] = (uint16_t)n;
    wake(c);
  }
  executed(w, op);
  return op + 1;
}

void sim_maxnreg_finish(Cta *c) {
  for (int i = 0; i < c->nwarps / GROUP_WARPS; i++) {
    if (!c->pool.came[i])
      continue;
    Warp *w = &c->warps[GROUP_WARPS * i + __builtin_ctz(c->pool.came[i])];
    w->cur = -1;
    sim_trap_at(w, c->pool.op[i], 0, "warps %x of the warpgroup ended without executing this",
                ~c->pool.came[i] & 0xf);
    return;
  }
}

bool sim_setmaxnreg(Decoder *x, const PtxInst *in) {
  sim_split_guard(x);
  Op *op = sim_emit(x, op_setmaxnreg);
  op->imm = (uint64_t)in->opnds[0].i;
  op->kind = ptx_inst_has(in, "inc");
  return true;
}
