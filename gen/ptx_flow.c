// Basic blocks, dominators both ways, natural loops.
#include "ptx_forms.h"

#include <string.h>

PtxExit ptx_inst_exit(const PtxInst *in) {
  const PtxForm *f = ptx_inst_form(in);
  if (f->effects[0] != 'C') return PTX_FALLS;
  switch (f->stem[0]) {
  case 'b': return PTX_JUMPS;                                      // bra brx
  case 'r': case 'e': case 't': return PTX_LEAVES;                 // ret exit trap
  default: return PTX_FALLS;                                       // call
  }
}

// ---- registers of an instruction ---------------------------------------------------------------
static void visit_operand(const PtxOperand *o, bool reads, bool writes, PtxRegVisit *visit,
                          void *ctx) {
  switch (o->kind) {
  case PTX_O_REG: visit(ctx, o->reg, reads, writes); break;
  case PTX_O_ADDR:
    if (o->base == PTX_O_REG) visit(ctx, o->reg, true, false);
    break;
  case PTX_O_VEC: case PTX_O_PAIR: case PTX_O_LIST: case PTX_O_TMAP:
    for (int i = 0; i < o->n; i++) visit_operand(&o->v[i], reads, writes, visit, ctx);
    break;
  default: break;
  }
}

static void visit_call(const PtxInst *in, PtxRegVisit *visit, void *ctx) {
  bool results = in->opnds[0].kind == PTX_O_LIST;
  for (int i = 0; i < in->nopnds; i++) {
    bool writes = i == 0 && results;
    visit_operand(&in->opnds[i], !writes, writes, visit, ctx);
  }
}

void ptx_inst_regs(const PtxInst *in, PtxRegVisit *visit, void *ctx) {
  int nspecs;
  const PtxSpec *specs = ptx_form_specs(in->form, &nspecs);
  if (in->guard >= 0) visit(ctx, in->guard, true, false);
  if (nspecs && specs[0].kind == PTX_SPEC_CALL) {
    visit_call(in, visit, ctx);
    return;
  }
  for (int i = 0; i < in->nopnds; i++) {
    const PtxSpec *s = &specs[in->slot[i]];
    visit_operand(&in->opnds[i], s->reads, s->dest, visit, ctx);
  }
}

// ---- blocks ------------------------------------------------------------------------------------
static const PtxOperand *table_operand(const PtxInst *in) {
  for (int i = 0; i < in->nopnds; i++)
    if (in->opnds[i].kind == PTX_O_TABLE) return &in->opnds[i];
  return NULL;
}

// Targets of a jump: one label or a table of them.
static int jump_targets(const PtxModule *m, const PtxInst *in, const int32_t **out) {
  const PtxOperand *t = table_operand(in);
  if (!t) {
    *out = &in->opnds[0].target;
    return 1;
  }
  *out = m->tables[t->sym].targets;
  return m->tables[t->sym].n;
}

static int mark_leaders(const PtxModule *m, const PtxFunc *f, uint8_t *leader) {
  leader[0] = 1;
  for (int i = 0; i < f->ninsts; i++) {
    PtxExit e = ptx_inst_exit(&f->insts[i]);
    if (e == PTX_FALLS) continue;
    leader[i + 1] = 1;
    if (e != PTX_JUMPS) continue;
    const int32_t *targets;
    int n = jump_targets(m, &f->insts[i], &targets);
    for (int k = 0; k < n; k++) leader[targets[k]] = 1;
  }
  int n = 0;
  for (int i = 0; i < f->ninsts; i++) n += leader[i];
  return n;
}

static void add_edge(PtxFlow *g, int from, int inst, int ninsts) {
  if (inst >= ninsts) return; // falls off the end, or a label there
  PtxBlock *b = &g->blocks[from];
  int to = g->block_of[inst];
  for (int i = 0; i < b->nsucc; i++)
    if (b->succ[i] == to) return;
  b->succ[b->nsucc++] = to;
}

static void successors(Arena *a, PtxFlow *g, const PtxModule *m, const PtxFunc *f, int at) {
  PtxBlock *b = &g->blocks[at];
  const PtxInst *last = &f->insts[b->end - 1];
  PtxExit e = ptx_inst_exit(last);
  const int32_t *targets = NULL;
  int n = e == PTX_JUMPS ? jump_targets(m, last, &targets) : 0;
  b->succ = arena_array(a, int, n + 1);
  for (int i = 0; i < n; i++) add_edge(g, at, targets[i], f->ninsts);
  if (e == PTX_FALLS || last->guard >= 0) add_edge(g, at, b->end, f->ninsts);
}

static void predecessors(Arena *a, PtxFlow *g) {
  for (int i = 0; i < g->nblocks; i++)
    for (int k = 0; k < g->blocks[i].nsucc; k++) g->blocks[g->blocks[i].succ[k]].npred++;
  for (int i = 0; i < g->nblocks; i++) {
    g->blocks[i].pred = arena_array(a, int, g->blocks[i].npred + 1);
    g->blocks[i].npred = 0;
  }
  for (int i = 0; i < g->nblocks; i++)
    for (int k = 0; k < g->blocks[i].nsucc; k++) {
      PtxBlock *s = &g->blocks[g->blocks[i].succ[k]];
      s->pred[s->npred++] = i;
    }
}

static void make_blocks(Arena *a, PtxFlow *g, const PtxModule *m, const PtxFunc *f) {
  uint8_t *leader = arena_array(a, uint8_t, f->ninsts + 1);
  g->nblocks = mark_leaders(m, f, leader);
  g->blocks = arena_array(a, PtxBlock, g->nblocks);
  g->block_of = arena_array(a, int, f->ninsts);
  int b = -1;
  for (int i = 0; i < f->ninsts; i++) {
    if (leader[i]) g->blocks[++b] = (PtxBlock){.first = i, .ipdom = -1, .order = -1, .loop = -1};
    g->block_of[i] = b;
    g->blocks[b].end = i + 1;
  }
  for (int i = 0; i < g->nblocks; i++) successors(a, g, m, f, i);
  predecessors(a, g);
}

// ---- dominators --------------------------------------------------------------------------------
// Cooper, Harvey, Kennedy: "A simple, fast dominance algorithm".  Node `root` is the entry, or, for
// post-dominators, a node of its own that every leaving block has an edge to.
typedef struct Graph {
  const PtxFlow *flow;
  bool backward;
  int n, root;
  int *order, *number, norder; // reverse post-order and its inverse (-1: not reached)
  int *idom;
} Graph;

static bool leaves(const PtxBlock *b, const PtxFunc *f) {
  const PtxInst *last = &f->insts[b->end - 1];
  return ptx_inst_exit(last) == PTX_LEAVES || b->nsucc == 0 ||
         (b->end == f->ninsts && ptx_inst_exit(last) == PTX_FALLS);
}

typedef struct Walk { int node, next; } Walk;

// Neighbours of a node in walking direction; the virtual root's are `starts`.
static const int *next_of(const Graph *g, int node, const int *starts, int nstarts, int *n) {
  if (node >= g->flow->nblocks) return *n = nstarts, starts;
  const PtxBlock *b = &g->flow->blocks[node];
  *n = g->backward ? b->npred : b->nsucc;
  return g->backward ? b->pred : b->succ;
}

static void reverse_post_order(Arena *a, Graph *g, const int *starts, int nstarts) {
  Walk *stack = arena_array(a, Walk, g->n + 1);
  int top = 0, at = g->n;
  for (int i = 0; i < g->n; i++) g->number[i] = -1;
  stack[top++] = (Walk){g->root, 0};
  g->number[g->root] = -2;
  while (top) {
    Walk *w = &stack[top - 1];
    int n;
    const int *next = next_of(g, w->node, starts, nstarts, &n);
    if (w->next == n) {
      g->order[--at] = w->node;
      top--;
      continue;
    }
    int to = next[w->next++];
    if (g->number[to] != -1) continue;
    g->number[to] = -2;
    stack[top++] = (Walk){to, 0};
  }
  g->norder = g->n - at;
  memmove(g->order, g->order + at, sizeof(int) * (size_t)g->norder);
  for (int i = 0; i < g->norder; i++) g->number[g->order[i]] = i;
}

static int meet(const Graph *g, int x, int y) {
  while (x != y) {
    while (g->number[x] > g->number[y]) x = g->idom[x];
    while (g->number[y] > g->number[x]) y = g->idom[y];
  }
  return x;
}

static void dominators(Graph *g, const uint8_t *from_root) {
  for (int i = 0; i < g->n; i++) g->idom[i] = -1;
  g->idom[g->root] = g->root;
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 1; i < g->norder; i++) {
      int b = g->order[i], best = from_root && from_root[b] ? g->root : -1;
      const PtxBlock *blk = &g->flow->blocks[b];
      int n = g->backward ? blk->nsucc : blk->npred;
      const int *in = g->backward ? blk->succ : blk->pred;
      for (int k = 0; k < n; k++) {
        if (g->number[in[k]] < 0 || g->idom[in[k]] < 0) continue;
        best = best < 0 ? in[k] : meet(g, best, in[k]);
      }
      if (best != g->idom[b]) g->idom[b] = best, changed = true;
    }
  }
}

static Graph graph_new(Arena *a, const PtxFlow *flow, bool backward) {
  int n = flow->nblocks + backward;
  return (Graph){flow, backward, n, backward ? flow->nblocks : 0, arena_array(a, int, n),
                 arena_array(a, int, n), 0, arena_array(a, int, n)};
}

static void post_dominators(Arena *a, PtxFlow *flow, const PtxFunc *f) {
  Graph g = graph_new(a, flow, true);
  uint8_t *from_root = arena_array(a, uint8_t, g.n);
  int *starts = arena_array(a, int, g.n), nstarts = 0;
  for (int i = 0; i < flow->nblocks; i++)
    if (leaves(&flow->blocks[i], f)) {
      from_root[i] = 1;
      starts[nstarts++] = i;
    }
  reverse_post_order(a, &g, starts, nstarts);
  dominators(&g, from_root);
  for (int i = 0; i < flow->nblocks; i++)
    flow->blocks[i].ipdom = g.idom[i] == g.root ? -1 : g.idom[i];
}

// ---- loops -------------------------------------------------------------------------------------
static bool dominates(const Graph *g, int a, int b) {
  while (g->number[b] > g->number[a]) b = g->idom[b];
  return a == b;
}

// Adds the loop of back edge `tail` -> `head` to in_loop.
static void loop_body(PtxFlow *flow, int head, int tail, uint8_t *in_loop, int *stack) {
  int top = 0;
  if (!in_loop[tail]) in_loop[tail] = 1, stack[top++] = tail;
  while (top) {
    const PtxBlock *b = &flow->blocks[stack[--top]];
    for (int i = 0; i < b->npred; i++) {
      int p = b->pred[i];
      if (p == head || in_loop[p] || flow->blocks[p].order < 0) continue;
      in_loop[p] = 1;
      stack[top++] = p;
    }
  }
}

static void find_loops(Arena *a, PtxFlow *flow) {
  Graph g = graph_new(a, flow, false);
  uint8_t *in_loop = arena_array(a, uint8_t, flow->nblocks);
  int *stack = arena_array(a, int, flow->nblocks);
  reverse_post_order(a, &g, NULL, 0);
  dominators(&g, NULL);
  for (int i = 0; i < g.norder; i++) flow->blocks[g.order[i]].order = i;
  // Outer headers come first in reverse post-order, so that inner loops overwrite `loop`.
  for (int i = 0; i < g.norder; i++) {
    int head = g.order[i];
    bool found = false;
    for (int k = 0; k < flow->blocks[head].npred; k++) {
      int tail = flow->blocks[head].pred[k];
      if (g.number[tail] < 0 || !dominates(&g, head, tail)) continue;
      if (!found) memset(in_loop, 0, (size_t)flow->nblocks), in_loop[head] = 1;
      found = true;
      loop_body(flow, head, tail, in_loop, stack);
    }
    for (int b = 0; found && b < flow->nblocks; b++)
      if (in_loop[b]) flow->blocks[b].depth++, flow->blocks[b].loop = head;
  }
}

PtxFlow *ptx_flow(Arena *a, const PtxModule *m, const PtxFunc *f) {
  PtxFlow *flow = arena_new_of(a, PtxFlow);
  if (!f->ninsts) return flow;
  make_blocks(a, flow, m, f);
  post_dominators(a, flow, f);
  find_loops(a, flow);
  return flow;
}
