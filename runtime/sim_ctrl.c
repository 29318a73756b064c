// sim_ctrl.c: branches, calls, returns, exits.
#include "sim_decode.h"
#include "sim_ops.h"
#include "sim_race.h"

// ---- branches -----------------------------------------------------------------------------------
const Op *sim_op_jump(Warp *w, const Op *op) {
  (void)w;
  return op + (int32_t)op->target;
}

const Op *sim_op_bra(Warp *w, const Op *op) {
  uint32_t on = w->active & (*sim_mask(w, op->guard) ^ op->mask_xor);
  sim_count_guarded(w, op, on);
  if (on == w->active)
    return op + (int32_t)op->target;
  if (!on)
    return op + 1;
  if (op->kind)
    return sim_trap_at(w, op, (uint32_t)sim_first(w->active & ~on),
                       "bra.uni diverges: lanes %08x of %08x jump", on, w->active);
  return sim_diverge(w, op, on, op + (int32_t)op->target, op + 1);
}

bool sim_bra(Decoder *x, const PtxInst *in) {
  x->split_guard = true;
  Op *op = sim_emit(x, x->guard ? sim_op_bra : sim_op_jump);
  op->guard = x->guard;
  op->mask_xor = x->guard_negate ? ~0u : 0;
  op->kind = ptx_inst_has(in, "uni");
  int target = in->opnds[0].target;
  op->target = (uint32_t)(target < x->ptx->ninsts ? x->flow->block_of[target] : x->flow->nblocks);
  return true;
}

// Lanes by their index: one group for each target that is taken.
const Op *sim_op_brx(Warp *w, const Op *op) {
  const uint32_t *index = sim_r32(w, op->a);
  uint32_t first = (uint32_t)sim_first(w->active);
  SIM_LANES(i, w->active)
    if (index[i] >= (uint32_t)op->more->nlist)
      return sim_trap_at(w, op, i, "brx.idx with index %u: the table has %d targets", index[i],
                         op->more->nlist);
  uint32_t same = 0;
  SIM_LANES(i, w->active) same |= (uint32_t)(index[i] == index[first]) << i;
  const Op *to = op + (int32_t)op->more->list[index[first]];
  return same == w->active ? to : sim_diverge(w, op, same, to, op);
}

bool sim_brx(Decoder *x, const PtxInst *in) {
  const PtxTable *table = &x->prog->module->tables[in->opnds[1].sym];
  sim_split_guard(x);
  uint32_t index = sim_source(x, &in->opnds[0], PTX_T_U32, 4);
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  more->list = arena_array(x->prog->arena, uint32_t, table->n + 1);
  more->nlist = table->n;
  for (int i = 0; i < table->n; i++) {
    int t = table->targets[i];
    more->list[i] = (uint32_t)(t < x->ptx->ninsts ? x->flow->block_of[t] : x->flow->nblocks);
  }
  Op *op = sim_emit(x, sim_op_brx);
  op->a = index;
  op->more = more;
  return true;
}

// ---- calls --------------------------------------------------------------------------------------
// One argument or result: the bytes of a .param variable, in every lane's own memory.
typedef struct CallCopy {
  uint32_t from, to, bytes;
} CallCopy;

static int level_of(const Frame *f, const Func *callee) {
  for (; f; f = f->up)
    if (f->func == callee)
      return f->level + 1;
  return 0;
}

static const Frame *push(Warp *w, const Frame *up, const Op *ret, const Func *callee, int level) {
  for (int i = 0; i < w->nframes; i++)
    if (w->frames[i].up == up && w->frames[i].ret == ret && w->frames[i].func == callee)
      return &w->frames[i];
  if (w->nframes == SIM_MAX_FRAMES)
    return NULL;
  Frame *f = &w->frames[w->nframes++];
  *f = (Frame){up, ret, callee, level, up->depth + 1};
  return f;
}

static uint8_t *frame_regs(const Warp *w, const Frame *f) {
  return w->file + f->func->frame + (size_t)f->level * f->func->frame_bytes;
}

static uint32_t frame_local(const Frame *f) { return (uint32_t)f->level * f->func->local_bytes; }

static void copy_values(Warp *w, const CallCopy *c, int n, const Frame *from, const Frame *to) {
  size_t lane_bytes = w->cta->grid->prog->local_bytes;
  for (int k = 0; k < n; k++, c++)
    SIM_LANES(i, w->active) {
      size_t src = i * lane_bytes + c->from + frame_local(from);
      size_t dst = i * lane_bytes + c->to + frame_local(to);
      memcpy(w->local + dst, w->local + src, c->bytes);
      memcpy(w->local_shadow + dst, w->local_shadow + src, c->bytes);
    }
}

// A callee starts with nothing written: not its registers, not its memory.
static void clear_frame(Warp *w, const Frame *f) {
  uint32_t *masks = (uint32_t *)(frame_regs(w, f) + f->func->init_at);
  for (uint32_t i = 0; i < f->func->init_bytes / 4; i++)
    masks[i] &= ~w->active;
  size_t lane_bytes = w->cta->grid->prog->local_bytes;
  SIM_LANES(i, w->active)
    memset(w->local_shadow + i * lane_bytes + f->func->local + frame_local(f), 0,
           f->func->local_bytes);
}

static const Op *op_call(Warp *w, const Op *op) {
  Group *g = &w->groups[w->cur];
  const Func *callee = op->more->callee;
  int level = level_of(g->frame, callee);
  if (level >= callee->levels)
    return sim_trap_at(w, op, (uint32_t)sim_first(w->active),
                       "calls of %s are nested more than %d deep", callee->ptx->name, level);
  const Frame *f = push(w, g->frame, op + 1, callee, level);
  if (!f)
    return sim_trap_at(w, op, (uint32_t)sim_first(w->active),
                       "more than %d call paths in one warp", SIM_MAX_FRAMES);
  clear_frame(w, f);
  copy_values(w, op->more->copies, op->more->nargs, g->frame, f);
  g->frame = f;
  return sim_leave(w, EV_SPLIT, w->cta->grid->prog->ops + callee->first);
}

const Op *sim_op_ret(Warp *w, const Op *op) {
  Group *g = &w->groups[w->cur];
  const Frame *f = g->frame;
  if (!f->up)
    return sim_op_exit(w, op);
  const OpMore *call = (f->ret - 1)->more;
  copy_values(w, call->copies + call->nargs, call->ncopies - call->nargs, f, f->up);
  g->frame = f->up;
  return sim_leave(w, EV_SPLIT, f->ret);
}

bool sim_ret(Decoder *x, const PtxInst *in) {
  (void)in;
  sim_split_guard(x);
  sim_emit(x, sim_op_ret);
  return true;
}

static bool add_copies(Decoder *x, const PtxInst *in, OpMore *more, const PtxOperand *list,
                       const Func *callee, bool result) {
  int n = result ? callee->ptx->nrets : callee->ptx->nparams;
  const int32_t *vars = result ? callee->ptx->rets : callee->ptx->params;
  const PtxVar *all = x->prog->module->vars;
  if ((list ? list->n : 0) != n)
    return sim_unsupported(x, in, "a call with another number of parameters than the function");
  for (int i = 0; i < n; i++) {
    const PtxOperand *o = &list->v[i];
    if (o->kind != PTX_O_SYM || all[o->sym].bytes != all[vars[i]].bytes)
      return sim_unsupported(x, in, "a call whose operand is no .param variable of that size");
    uint32_t here = x->prog->var_at[o->sym], there = x->prog->var_at[vars[i]];
    more->copies[more->ncopies++] = (CallCopy){result ? there : here, result ? here : there,
                                               (uint32_t)all[vars[i]].bytes};
  }
  return true;
}

static const Op *op_assertion(Warp *w, const Op *op) {
  return sim_trap_at(w, op, (uint32_t)sim_first(w->active), "an assertion failed");
}

bool sim_call(Decoder *x, const PtxInst *in) {
  const PtxOperand *rets = NULL, *args = NULL, *func = NULL;
  for (int i = 0; i < in->nopnds; i++) {
    const PtxOperand *o = &in->opnds[i];
    if (o->kind == PTX_O_FUNC)
      func = o;
    else if (o->kind == PTX_O_LIST)
      *(func ? &args : &rets) = o;
  }
  if (!func)
    return sim_unsupported(x, in, "an indirect call");
  const Func *callee = &x->prog->funcs[func->sym];
  if (!callee->ptx && !strcmp(x->prog->module->funcs[func->sym].name, "__assertfail")) {
    sim_emit(x, op_assertion); // what a failed assert of CUDA C++ calls
    return true;
  }
  if (!callee->ptx) {
    char *what = arena_printf(x->prog->arena, "a call of %s, which has no body here,",
                              x->prog->module->funcs[func->sym].name);
    return sim_unsupported(x, in, what);
  }
  sim_split_guard(x);
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  more->callee = callee;
  more->copies =
      arena_array(x->prog->arena, CallCopy, callee->ptx->nparams + callee->ptx->nrets + 1);
  if (!add_copies(x, in, more, args, callee, false))
    return false;
  more->nargs = more->ncopies;
  if (!add_copies(x, in, more, rets, callee, true))
    return false;
  sim_emit(x, op_call)->more = more;
  return true;
}

// ---- exits --------------------------------------------------------------------------------------
const Op *sim_op_exit(Warp *w, const Op *op) {
  w->gone |= w->active;
  return sim_leave(w, EV_EXIT, op + 1);
}

bool sim_exit(Decoder *x, const PtxInst *in) {
  (void)in;
  sim_split_guard(x);
  sim_emit(x, sim_op_exit);
  return true;
}

static const Op *op_trap(Warp *w, const Op *op) {
  return sim_trap_at(w, op, (uint32_t)sim_first(w->active), "trap");
}

bool sim_trap(Decoder *x, const PtxInst *in) {
  (void)in;
  sim_emit(x, op_trap);
  return true;
}

static const Op *op_nop(Warp *w, const Op *op) {
  (void)w;
  return op + 1;
}

// Launches follow each other here; what may overlap is for the race detector.
static const Op *op_launch_wait(Warp *w, const Op *op) {
  sim_order_launch(w);
  return op + 1;
}

bool sim_griddep(Decoder *x, const PtxInst *in) {
  if (!ptx_inst_has(in, "wait"))
    return sim_nop(x, in);
  sim_split_guard(x);
  sim_emit(x, op_launch_wait);
  return true;
}

bool sim_nop(Decoder *x, const PtxInst *in) {
  (void)in;
  sim_emit(x, op_nop);
  return true;
}
