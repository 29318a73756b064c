// sim_wgmma.c: wgmma.fence, mma_async, commit_group, wait_group; what is in flight.  ISA 9.7.15.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim_async.h"
#include "sim_count.h"
#include "sim_matrix_ops.h"
#include "sim_race.h"
#include "sim_run.h"
#include "sim_wgmma.h"

// ---- the state of a CTA -------------------------------------------------------------------------
enum { GROUPS = SIM_MAX_WARPS / WGMMA_WARPS, ALL = (1 << WGMMA_WARPS) - 1 };

bool sim_wgmma_new(Cta *c) {
  int n = c->grid->prog->wgmma_suspects;
  c->wgmma = calloc(1, sizeof *c->wgmma);
  for (int i = 0; c->wgmma && i < GROUPS && n; i++) {
    c->wgmma->groups[i].writers = calloc((size_t)n * WGMMA_WARPS, sizeof(Op *));
    if (!c->wgmma->groups[i].writers)
      return false;
  }
  return c->wgmma != NULL;
}

void sim_wgmma_free(Cta *c) {
  for (int i = 0; c->wgmma && i < GROUPS; i++)
    free(c->wgmma->groups[i].issues), free(c->wgmma->groups[i].writers);
  free(c->wgmma);
}

void sim_wgmma_start(Cta *c) {
  int n = c->grid->prog->wgmma_suspects;
  c->wgmma->in_flight = 0;
  for (int i = 0; i < GROUPS; i++) {
    WarpGroup *g = &c->wgmma->groups[i], old = *g;
    *g = (WarpGroup){.issues = old.issues, .cap = old.cap, .writers = old.writers};
    if (n)
      memset(g->writers, 0, (size_t)n * WGMMA_WARPS * sizeof *g->writers);
  }
}

static WarpGroup *group_of(const Warp *w) { return &w->cta->wgmma->groups[w->index / WGMMA_WARPS]; }
static int quarter_of(const Warp *w) { return w->index % WGMMA_WARPS; }
static Warp *warp_of(const Warp *w, int quarter) {
  return &w->cta->warps[w->index - quarter_of(w) + quarter];
}
static WgmmaIssue *issue_at(WarpGroup *g, uint64_t number) { return &g->issues[number - g->first]; }

// The issues that every warp has waited for are over.
static void retire(const Warp *w) {
  WarpGroup *g = group_of(w);
  uint64_t least = g->waited[0];
  for (int q = 1; q < WGMMA_WARPS; q++)
    least = g->waited[q] < least ? g->waited[q] : least;
  int over = (int)(least - g->first);
  if (!over)
    return;
  g->n -= over;
  memmove(g->issues, g->issues + over, (size_t)g->n * sizeof *g->issues);
  g->first = least;
  w->cta->wgmma->in_flight -= over;
}

// ---- fence, commit, wait ------------------------------------------------------------------------
static const Op *whole_group(Warp *w, const Op *op) {
  const Op *stop = sim_together(w, op);
  int first = w->index - quarter_of(w), have = w->cta->nwarps - first;
  if (stop || have >= WGMMA_WARPS)
    return stop;
  return sim_trap_at(w, op, 0, "wgmma needs a warpgroup of four warps: this one has %d", have);
}

static const Op *op_fence(Warp *w, const Op *op) {
  const Op *stop = whole_group(w, op);
  if (stop)
    return stop;
  WarpGroup *g = group_of(w);
  int n = w->cta->grid->prog->wgmma_suspects;
  g->fenced[quarter_of(w)] = true;
  if (n)
    memset(g->writers + quarter_of(w) * n, 0, (size_t)n * sizeof *g->writers);
  return op + 1;
}

static const Op *op_commit(Warp *w, const Op *op) {
  const Op *stop = whole_group(w, op);
  if (!stop)
    group_of(w)->committed[quarter_of(w)]++;
  return stop ? stop : op + 1;
}

// The number of the first issue that may still be in flight behind `wait_group pending`.
static uint64_t wait_end(WarpGroup *g, int q, uint64_t pending) {
  uint64_t end = g->waited[q];
  while (end < g->issued[q] && issue_at(g, end)->group[q] + pending < g->committed[q])
    end++;
  return end;
}

static const Op *multiply_up_to(Warp *w, uint64_t end) {
  WarpGroup *g = group_of(w);
  const Op *stop = NULL;
  for (uint64_t i = g->first; i < end && !stop; i++)
    if (!issue_at(g, i)->done)
      stop = sim_wgmma_multiply(w, issue_at(g, i));
  return stop;
}

// imm: groups that may be pending.
static const Op *op_wait(Warp *w, const Op *op) {
  const Op *stop = whole_group(w, op);
  if (stop)
    return stop;
  WarpGroup *g = group_of(w);
  int q = quarter_of(w);
  uint64_t end = wait_end(g, q, op->imm);
  for (uint64_t i = g->waited[q]; i < end; i++) {
    if (issue_at(g, i)->warps == ALL)
      continue;
    w->groups[w->cur].state = GROUP_WGMMA; // until the other warps have issued it
    return sim_leave(w, EV_BLOCK, op);
  }
  if ((stop = multiply_up_to(w, end)))
    return stop;
  for (uint64_t i = g->waited[q]; i < end; i++)
    if (issue_at(g, i)->event)
      sim_race_async_end(w->cta, w->index, SIM_FULL, issue_at(g, i)->event);
  g->waited[q] = end;
  retire(w);
  return op + 1;
}

static void wake_group(Warp *w) {
  for (int q = 0; q < WGMMA_WARPS; q++) {
    Warp *o = warp_of(w, q);
    for (int i = 0; i < o->ngroups; i++)
      if (o->groups[i].state == GROUP_WGMMA)
        o->groups[i].state = GROUP_READY;
  }
}

void sim_wgmma_describe(const Warp *w, const Group *g, char *out, size_t n) {
  WarpGroup *wg = group_of(w);
  int q = quarter_of(w);
  for (uint64_t i = wg->waited[q]; i < wg->issued[q]; i++) {
    const WgmmaIssue *issue = issue_at(wg, i);
    if (issue->warps != ALL) {
      snprintf(out, n, "warp %d, lanes %08x: for all warps of its warpgroup to issue the wgmma of "
               "line %u: mask %x of f has", w->index, g->mask, issue->op->in->line, issue->warps);
      return;
    }
  }
}

void sim_wgmma_finish(Cta *c) {
  for (int i = 0; i < GROUPS; i++) {
    WarpGroup *g = &c->wgmma->groups[i];
    if (!g->n || c->trap.set)
      continue;
    int q = __builtin_ctz(g->issues[0].warps);
    for (int k = 0; k < WGMMA_WARPS; k++) // a warp that has issued it and not waited
      q = g->waited[k] == g->first && g->issued[k] > g->first ? k : q;
    Warp *w = &c->warps[WGMMA_WARPS * i + q];
    w->cur = -1;
    if (g->issues[0].warps == ALL)
      sim_trap_at(w, g->issues[0].op, 0, "the warp ended without wgmma.wait_group for this");
    else
      sim_trap_at(w, g->issues[0].op, 0, "warps %x of the warpgroup ended without issuing this",
                  ~g->issues[0].warps & 0xf);
  }
}

// ---- issue --------------------------------------------------------------------------------------
static const Op *same_lanes(Warp *w, const Op *op, uint32_t at, char name) {
  const uint64_t *r = sim_r64(w, at);
  for (uint32_t i = 1; i < 32; i++)
    if (r[i] != r[0])
      return sim_trap_at(w, op, i, "the descriptor of %c is 0x%llx here, 0x%llx in lane 0", name,
                         (unsigned long long)r[i], (unsigned long long)r[0]);
  return NULL;
}

// Bounds of an operand's bytes, all inside shared memory.
static const Op *measure(Warp *w, const Op *op, uint64_t bits, bool mn_major, int rows, char name,
                         uint32_t *low, uint32_t *high) {
  const DescChunks *list = sim_desc_list(w->cta->wgmma, name == 'B', bits, mn_major, rows);
  const uint32_t *at = list->at;
  uint64_t size = w->cta->shared.bytes;
  int n = list->n;
  *low = UINT32_MAX, *high = 0;
  for (int i = 0; i < n; i++) {
    *low = at[i] < *low ? at[i] : *low;
    *high = at[i] + WGMMA_CHUNK > *high ? at[i] + WGMMA_CHUNK : *high;
  }
  if (*high > size)
    return sim_trap_at(w, op, 0,
                       "out of bounds: %c, by its descriptor 0x%llx, is at offsets %u to %u "
                       "of shared memory (%llu bytes)",
                       name, (unsigned long long)bits, *low, *high - 1, (unsigned long long)size);
  return NULL;
}

// What the other warps have issued at this place must be the same.
static const Op *same_warps(Warp *w, const Op *op, const WgmmaIssue *mine, const WgmmaIssue *old) {
  int other = __builtin_ctz(old->warps);
  if (old->op != op) {
    sim_trap_at(w, op, 0, "warp %d of the warpgroup issued the wgmma of line %u here: all four "
                "must execute the same", warp_of(w, other)->index, old->op->in->line);
    return sim_trap_party(w, op, old->op, (uint32_t)warp_of(w, other)->index * 32);
  }
  const char *what = old->a != mine->a ? "descriptor of A" : old->b != mine->b ? "descriptor of B"
                     : old->scale_d != mine->scale_d ? "scale-d" : NULL;
  uint64_t here = old->a != mine->a ? mine->a : old->b != mine->b ? mine->b : mine->scale_d;
  uint64_t there = old->a != mine->a ? old->a : old->b != mine->b ? old->b : old->scale_d;
  if (!what)
    return NULL;
  sim_trap_at(w, op, 0, "the %s is 0x%llx here, 0x%llx in warp %d of the warpgroup", what,
              (unsigned long long)here, (unsigned long long)there, warp_of(w, other)->index);
  return sim_trap_party(w, op, old->op, (uint32_t)warp_of(w, other)->index * 32);
}

static int32_t common(const uint64_t *a, const uint64_t *b, int words) {
  for (int i = 0; i < words; i++)
    if (a[i] & b[i])
      return 64 * i + __builtin_ctzll(a[i] & b[i]);
  return -1;
}

static const Op *trap_register(Warp *w, const Op *op, int32_t reg, const WgmmaIssue *by,
                               bool written) {
  sim_trap_at(w, op, 0, "register %s is in flight: the wgmma of line %u %s it until "
              "wgmma.wait_group", op->func->ptx->regs[reg].name, by->op->in->line,
              written ? "writes" : "reads");
  return sim_trap_party(w, op, by->op, (uint32_t)w->index * 32);
}

// Accumulators in flight may be used again by the same accumulation only; A in registers may not
// be a result in flight.
static const Op *check_registers(Warp *w, const Op *op) {
  WarpGroup *g = group_of(w);
  const WgmmaShape *s = op->more->wgmma;
  int q = quarter_of(w);
  for (uint64_t i = g->waited[q]; i < g->issued[q]; i++) {
    const WgmmaIssue *p = issue_at(g, i);
    const WgmmaShape *o = p->op->more->wgmma;
    if (p->regs[q] != w->regs)
      continue;
    bool same = o->nd == s->nd && o->half == s->half &&
                !memcmp(p->op->more->list, op->more->list, (size_t)s->nd * sizeof(uint32_t));
    int32_t both = same ? -1 : common(s->d_set, o->d_set, s->set_words);
    if (both < 0)
      both = common(s->a_set, o->d_set, s->set_words);
    if (both >= 0)
      return trap_register(w, op, both, p, true);
    both = common(s->d_set, o->a_set, s->set_words);
    if (both >= 0)
      return trap_register(w, op, both, p, false);
  }
  return NULL;
}

static const Op *check_fence(Warp *w, const Op *op) {
  WarpGroup *g = group_of(w);
  const WgmmaShape *s = op->more->wgmma;
  int q = quarter_of(w), n = w->cta->grid->prog->wgmma_suspects;
  if (!g->fenced[q])
    return sim_trap_at(w, op, 0, "no wgmma.fence came before the warp's first wgmma");
  for (int i = 0; i < s->nsuspects; i++) {
    const Op *by = g->writers[q * n + (int)s->suspects[i]];
    if (!by)
      continue;
    sim_trap_at(w, op, 0, "no wgmma.fence since line %u wrote a register of it", by->in->line);
    return sim_trap_party(w, op, by, (uint32_t)w->index * 32);
  }
  return NULL;
}

static const Op *read_operands(Warp *w, const Op *op, WgmmaIssue *out) {
  const WgmmaShape *s = op->more->wgmma;
  uint32_t scale = *sim_mask(w, op->c);
  const Op *stop = s->a_regs ? NULL : same_lanes(w, op, op->a, 'A');
  if (!stop)
    stop = same_lanes(w, op, op->b, 'B');
  if (!stop && scale && scale != SIM_FULL)
    stop = sim_trap_at(w, op, (uint32_t)sim_first(~scale), "scale-d differs among the lanes of the "
                       "warp: %08x", scale);
  *out = (WgmmaIssue){.op = op, .a = s->a_regs ? 0 : sim_r64(w, op->a)[0],
                      .b = sim_r64(w, op->b)[0], .scale_d = scale != 0};
  return stop;
}

// Chunks that come in any order, as runs: as bits they fall into them.
static int runs_of(const uint32_t *at, int n, uint32_t low, uint32_t nchunks, AsyncRun *runs) {
  enum { WORDS = (1 << 18) / WGMMA_CHUNK / 64 }; // what start addresses reach
  uint32_t nwords = nchunks / 64 + 1;
  uint64_t set[WORDS + 1];
  int nruns = 0;
  if (nwords > WORDS) { // strides may be larger than any shared memory
    for (int i = 0; i < n; i++)
      runs[i] = (AsyncRun){at[i], WGMMA_CHUNK};
    return n;
  }
  memset(set, 0, nwords * sizeof *set);
  for (int i = 0; i < n; i++) {
    uint32_t k = (at[i] - low) / WGMMA_CHUNK;
    set[k / 64] |= UINT64_C(1) << k % 64;
  }
  for (uint32_t k = 0, end; k < nchunks; k = end) {
    uint64_t rest = set[k / 64] >> k % 64;
    if (!rest) {
      end = (k / 64 + 1) * 64;
      continue;
    }
    k += (uint32_t)__builtin_ctzll(rest);
    for (end = k + 1; end < nchunks && (set[end / 64] >> end % 64 & 1); end++)
      continue;
    runs[nruns++] = (AsyncRun){low + WGMMA_CHUNK * k, WGMMA_CHUNK * (end - k)};
  }
  return nruns;
}

// Sanitized runs: the operand, between those bounds, is read by the asynchronous proxy from now on.
static void note_reads(Warp *w, const Op *op, uint32_t event, const DescChunks *list, uint32_t low,
                       uint32_t high) {
  AsyncRun runs[WGMMA_MAX_CHUNKS];
  uint32_t nchunks = (high - low) / WGMMA_CHUNK;
  sim_race_async_reads(w, op, event, runs, runs_of(list->at, list->n, low, nchunks, runs));
}

static const Op *new_issue(Warp *w, const Op *op, WgmmaIssue *issue) {
  WarpGroup *g = group_of(w);
  const WgmmaShape *s = op->more->wgmma;
  const Op *stop = NULL;
  if (!s->a_regs)
    stop = measure(w, op, issue->a, s->mn_a, 64, 'A', &issue->low_a, &issue->high_a);
  if (!stop)
    stop = measure(w, op, issue->b, s->mn_b, s->n, 'B', &issue->low_b, &issue->high_b);
  if (stop)
    return stop;
  issue->event = sim_race_async_event(w, op, 0);
  if (issue->event && !s->a_regs)
    note_reads(w, op, issue->event, sim_desc_list(w->cta->wgmma, 0, issue->a, s->mn_a, 64),
               issue->low_a, issue->high_a);
  if (issue->event)
    note_reads(w, op, issue->event, sim_desc_list(w->cta->wgmma, 1, issue->b, s->mn_b, s->n),
               issue->low_b, issue->high_b);
  if (g->n == g->cap) {
    g->cap = g->cap ? 2 * g->cap : 16;
    g->issues = realloc(g->issues, (size_t)g->cap * sizeof *g->issues);
    if (!g->issues)
      abort();
  }
  g->issues[g->n++] = *issue;
  w->cta->wgmma->in_flight++;
  return NULL;
}

static const Op *op_mma_async(Warp *w, const Op *op) {
  const Op *stop = whole_group(w, op);
  if (stop)
    return stop;
  WarpGroup *g = group_of(w);
  int q = quarter_of(w);
  WgmmaIssue mine;
  stop = read_operands(w, op, &mine);
  if (!stop)
    stop = check_fence(w, op);
  if (!stop)
    stop = check_registers(w, op);
  if (!stop)
    stop = g->issued[q] < g->first + (uint64_t)g->n
               ? same_warps(w, op, &mine, issue_at(g, g->issued[q]))
               : new_issue(w, op, &mine);
  if (stop)
    return stop;
  WgmmaIssue *issue = issue_at(g, g->issued[q]++);
  issue->warps |= (uint8_t)(1 << q);
  issue->regs[q] = w->regs;
  issue->group[q] = g->committed[q];
  if (issue->warps != ALL)
    return op + 1;
  wake_group(w);
  stop = sim_wgmma_check(w, issue);
  if (!stop && sim_completion(w->cta) == SIM_EAGER)
    stop = multiply_up_to(w, g->issued[q]);
  return stop ? stop : op + 1;
}

// Issues are computed in their order, but at any moment: SIM_RANDOM.
void sim_wgmma_random(Cta *c) {
  for (int i = 0; i < GROUPS && !c->trap.set; i++) {
    WarpGroup *g = &c->wgmma->groups[i];
    for (int k = 0; k < g->n && g->issues[k].warps == ALL && !c->trap.set; k++)
      if (!g->issues[k].done && (sim_random(c) % 4 == 0 ||
                                 sim_wgmma_multiply(&c->warps[WGMMA_WARPS * i], &g->issues[k])))
        break;
  }
}

// ---- memory in flight ---------------------------------------------------------------------------
static bool covers(uint64_t bits, bool mn_major, int rows, uint64_t at, uint64_t bytes) {
  uint32_t chunk[WGMMA_MAX_CHUNKS];
  MatrixDesc d = sim_desc(bits);
  int n = sim_desc_chunks(&d, mn_major, rows, chunk);
  for (int i = 0; i < n; i++)
    if (at < chunk[i] + WGMMA_CHUNK && chunk[i] < at + bytes)
      return true;
  return false;
}

// Its warpgroup as well.
static const Op *reader(const Cta *c, uint64_t at, uint64_t bytes, uint32_t *group) {
  for (int i = 0; i < GROUPS && c->wgmma->in_flight; i++) {
    const WarpGroup *g = &c->wgmma->groups[i];
    for (int k = 0; k < g->n; k++) {
      const WgmmaIssue *p = &g->issues[k];
      const WgmmaShape *s = p->op->more->wgmma;
      bool near_a = !s->a_regs && at < p->high_a && p->low_a < at + bytes;
      bool near_b = at < p->high_b && p->low_b < at + bytes;
      if ((near_a && covers(p->a, s->mn_a, 64, at, bytes)) ||
          (near_b && covers(p->b, s->mn_b, s->n, at, bytes)))
        return *group = (uint32_t)i, p->op;
    }
  }
  return NULL;
}

const Op *sim_wgmma_reads(Warp *w, const Op *op, uint32_t lane, const Cta *owner, uint64_t at,
                          uint64_t bytes) {
  uint32_t group;
  const Op *by = reader(owner, at, bytes, &group);
  if (!by)
    return NULL;
  sim_trap_at(w, op, lane, "writes byte %llu of shared memory in flight: the wgmma of line %u "
              "reads it until wgmma.wait_group", (unsigned long long)at, by->in->line);
  uint32_t first[3];
  sim_thread_of(owner, group * WGMMA_WARPS * 32, first);
  return sim_trap_note(w->cta, op, by, "the other party: the warpgroup of thread (%u,%u,%u) of %s",
                       first[0], first[1], first[2],
                       owner == w->cta ? "the same block" : "another block of the cluster");
}

// Whose shared memory an address is in; NULL: nobody's.
static const Cta *owner_of(const Warp *w, const Op *op, uint64_t address) {
  if (op->space == PTX_S_GENERIC && (address & ~SIM_OFFSET_MASK) != SIM_WINDOW_SHARED)
    return NULL;
  uint64_t rank = (address & SIM_OFFSET_MASK) >> SIM_RANK_SHIFT;
  return rank ? sim_cluster_cta(w->cta, (uint32_t)rank - 1) : w->cta;
}

const Op *sim_wgmma_touch(Warp *w, const Op *op, const uint64_t a[32], uint64_t bytes) {
  SIM_LANES(i, w->active) {
    const Cta *c = owner_of(w, op, a[i]);
    uint64_t at = a[i] & ((1u << SIM_RANK_SHIFT) - 1);
    const Op *stop = c ? sim_wgmma_reads(w, op, i, c, at, bytes) : NULL;
    if (stop)
      return stop;
  }
  return NULL;
}

// ---- registers in flight ------------------------------------------------------------------------
// names: register << 1 | written
static const Op *op_flight(Warp *w, const Op *op) {
  WarpGroup *g = group_of(w);
  int q = quarter_of(w);
  for (uint64_t i = g->waited[q]; i < g->issued[q]; i++) {
    const WgmmaIssue *p = issue_at(g, i);
    const WgmmaShape *s = p->op->more->wgmma;
    if (p->regs[q] != w->regs)
      continue;
    for (int k = 0; k < op->more->nlist; k++) {
      uint32_t reg = op->more->list[k] >> 1, write = op->more->list[k] & 1;
      uint64_t bit = UINT64_C(1) << (reg & 63);
      if (s->d_set[reg >> 6] & bit)
        return trap_register(w, op, (int32_t)reg, p, true);
      if (write && (s->a_set[reg >> 6] & bit))
        return trap_register(w, op, (int32_t)reg, p, false);
    }
  }
  return op + 1;
}

// list: numbers of suspects
static const Op *op_note_write(Warp *w, const Op *op) {
  WarpGroup *g = group_of(w);
  int n = w->cta->grid->prog->wgmma_suspects;
  for (int k = 0; k < op->more->nlist; k++)
    g->writers[quarter_of(w) * n + (int)op->more->list[k]] = op;
  return op + 1;
}

typedef struct Guarding { Decoder *x; OpMore *flight, *note; } Guarding;

static void guard_register(void *ctx, int32_t reg, bool write) {
  Guarding *g = ctx;
  Arena *a = g->x->prog->arena;
  *arena_push(a, g->flight->list, g->flight->nlist, g->flight->cap) = (uint32_t)reg << 1 | write;
  if (write && g->x->wgmma->suspect[reg] >= 0)
    *arena_push(a, g->note->list, g->note->nlist, g->note->cap) =
        (uint32_t)g->x->wgmma->suspect[reg];
}

void sim_wgmma_guard(Decoder *x, const PtxInst *in) {
  if (!x->wgmma || sim_is_wgmma(in, "mma_async"))
    return;
  Guarding g = {x, arena_new_of(x->prog->arena, OpMore), arena_new_of(x->prog->arena, OpMore)};
  sim_visit_regs(in, guard_register, &g);
  if (x->wgmma->meets[in - x->ptx->insts] && g.flight->nlist)
    sim_emit(x, op_flight)->more = g.flight;
  if (g.note->nlist)
    sim_emit(x, op_note_write)->more = g.note;
}

// ---- decoding -----------------------------------------------------------------------------------
static void add_registers(Decoder *x, WgmmaShape *s, const PtxOperand *o, uint64_t *set) {
  for (int i = 0; i < o->n; i++) {
    int32_t reg = o->v[i].kind == PTX_O_REG ? o->v[i].reg : -1;
    if (reg < 0)
      continue;
    set[reg >> 6] |= UINT64_C(1) << (reg & 63);
    if (x->wgmma->suspect[reg] >= 0)
      *arena_push(x->prog->arena, s->suspects, s->nsuspects, s->cap) =
          (uint32_t)x->wgmma->suspect[reg];
  }
}

static uint32_t sign_bits(MatrixType t) {
  int bits = matrix_type_bits(t);
  return bits == 32 ? 0x80000000u : bits == 16 ? 0x80008000u : 0x80808080u;
}

static WgmmaShape *decode_shape(Decoder *x, const PtxInst *in, const int shape[3]) {
  WgmmaShape *s = arena_new_of(x->prog->arena, WgmmaShape);
  const PtxOperand *v = in->opnds;
  s->n = (uint16_t)shape[1], s->k = (uint8_t)shape[2];
  s->a_regs = v[1].kind == PTX_O_VEC;
  s->integer = in->type[0] == PTX_T_S32;
  s->sign_a = in->type[1] == PTX_T_S8, s->sign_b = in->type[2] == PTX_T_S8;
  s->saturate = ptx_inst_has(in, "satfinite");
  s->set_words = (x->ptx->nregs + 63) / 64;
  s->d_set = arena_array(x->prog->arena, uint64_t, s->set_words);
  s->a_set = arena_array(x->prog->arena, uint64_t, s->set_words);
  if (s->integer)
    return s;
  s->a = (uint8_t)sim_matrix_type(in->type[1]), s->b = (uint8_t)sim_matrix_type(in->type[2]);
  s->half = in->type[0] == PTX_T_F16;
  bool small = matrix_type_bits(s->a) == 8;
  s->rule = (uint8_t)(small ? (s->half ? MATRIX_RULE_WGMMA8_F16 : MATRIX_RULE_WGMMA8_F32)
                            : (s->half ? MATRIX_RULE_F16 : MATRIX_RULE_F32));
  s->negate = v[4].i != v[5].i ? sign_bits(s->a) : 0; // -a * b = a * -b
  if (matrix_type_bits(s->a) == 16) {
    s->mn_a = !s->a_regs && v[6].i;
    s->mn_b = v[s->a_regs ? 6 : 7].i;
  }
  return s;
}

static bool decode_mma(Decoder *x, const PtxInst *in) {
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  int shape[3];
  sim_matrix_shape(in, shape);
  WgmmaShape *s = decode_shape(x, in, shape);
  sim_list_regs(x, more, &in->opnds[0], PTX_T_B32, true);
  s->nd = more->nlist;
  add_registers(x, s, &in->opnds[0], s->d_set);
  uint32_t a = 0;
  if (s->a_regs) {
    sim_list_regs(x, more, &in->opnds[1], PTX_T_B32, false);
    add_registers(x, s, &in->opnds[1], s->a_set);
  } else {
    a = sim_source(x, &in->opnds[1], PTX_T_B64, 8);
  }
  s->na = more->nlist - s->nd;
  assert(s->nd == s->n / (s->half ? 4 : 2) && (!s->na || s->na == 4));
  uint32_t b = sim_source(x, &in->opnds[2], PTX_T_B64, 8);
  uint32_t scale = sim_pred_source(x, &in->opnds[3]);
  more->wgmma = s;
  Op *op = sim_emit(x, op_mma_async);
  op->a = a, op->b = b, op->c = scale;
  op->more = more;
  op->flops = s->integer ? 0 : (uint16_t)(s->n * s->k); // 2 * 64 * N * K for 128 threads
  return true;
}

bool sim_wgmma(Decoder *x, const PtxInst *in) {
  sim_split_guard(x);
  if (ptx_inst_has(in, "mma_async"))
    return decode_mma(x, in);
  bool wait = ptx_inst_has(in, "wait_group");
  Op *op = sim_emit(x, wait ? op_wait : ptx_inst_has(in, "fence") ? op_fence : op_commit);
  op->imm = wait ? (uint64_t)in->opnds[0].i : 0;
  return true;
}
