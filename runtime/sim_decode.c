// sim_decode.c: operands, guards and blocks: what all instructions have in common.
#include <assert.h>
#include <string.h>

#include "sim_decode.h"
#include "sim_ops.h"
#include "sim_wgmma.h"

// Row i of the table decodes with decoders[i]: a row whose handler has no decoder does not link.
static const DecodeFn decoders[] = {
#define F(stem, mods, opnds, ptx, sm, pipe, effects, handler) sim_##handler,
    PTX_FORMS(F)
#undef F
};

static Place place_of(const Decoder *x, const PtxInst *in) {
  const PtxModule *m = x->prog->module;
  return (Place){m->src, in->line, in->col, 0, linemap_at(x->prog->map, in->line)};
}

bool sim_unsupported(Decoder *x, const PtxInst *in, const char *what) {
  diag_error(x->diag, place_of(x, in), "the interpreter does not execute %s yet", what);
  return false;
}

const char *sim_name(Decoder *x, const PtxInst *in) {
  const char *text = ptx_inst_form(in)->stem;
  for (int i = 0; i < in->nmods; i++)
    text = arena_printf(x->prog->arena, "%s.%s", text, ptx_mod_text(in->mods[i]));
  return text;
}

bool sim_LATER(Decoder *x, const PtxInst *in) { return sim_unsupported(x, in, sim_name(x, in)); }

// ---- places in the frame ------------------------------------------------------------------------
int sim_width(PtxType t) {
  int bits = ptx_type_bits(t);
  return t == PTX_T_PRED ? 1 : bits <= 32 ? 4 : bits == 64 ? 8 : 16;
}

// 64-byte aligned.
static uint32_t sim_frame(Decoder *x, uint32_t bytes) {
  uint32_t at = x->top;
  x->top += (bytes + 63) & ~63u;
  return at;
}

static uint32_t mask_place(Decoder *x) {
  if (!x->preds_left) {
    x->preds_at = sim_frame(x, 64);
    x->preds_left = 16;
  }
  return x->preds_at + 4 * --x->preds_left;
}

uint32_t sim_temp(Decoder *x, int width) {
  return width == 1 ? mask_place(x) : sim_frame(x, 32 * (uint32_t)width);
}

uint32_t sim_const(Decoder *x, int width, uint64_t value) {
  Program *p = x->prog;
  for (int i = p->nconsts - 1; i >= 0 && p->consts[i].func == x->func; i--)
    if (p->consts[i].width == width && p->consts[i].value == value)
      return p->consts[i].at;
  uint32_t at = sim_temp(x, width);
  FrameConst c = {at, (uint8_t)width, value, x->func};
  *arena_push(p->arena, p->consts, p->nconsts, p->consts_cap) = c;
  return at;
}

// ---- Ops ----------------------------------------------------------------------------------------
static Op *new_op(Decoder *x, OpFn fn) {
  Program *p = x->prog;
  Op *op = arena_push(p->arena, p->ops, p->nops, p->cap);
  *op = (Op){.fn = fn, .in = x->in, .func = x->func, .site = x->site};
  return op;
}

Op *sim_emit(Decoder *x, OpFn fn) {
  Op *op = new_op(x, fn);
  if (x->guard && !x->split_guard) {
    op->fn = sim_op_guarded;
    op->guarded = fn;
    op->guard = x->guard;
    op->mask_xor = x->guard_negate ? ~0u : 0;
  }
  return op;
}

void sim_split_guard(Decoder *x) {
  if (!x->guard || x->split_guard)
    return;
  Op *op = new_op(x, sim_op_skip);
  op->guard = x->guard;
  op->mask_xor = x->guard_negate ? ~0u : 0;
  x->split_guard = true; // sim_decode_inst points it past the instruction
}

// ---- operands -----------------------------------------------------------------------------------
static uint64_t sim_immediate(const PtxOperand *o, PtxType type) {
  int bits = ptx_type_bits(type);
  uint64_t v = o->bits;
  if (o->kind == PTX_O_FLOAT) {
    if (bits <= 32 && !o->is_f32) {
      double wide;
      memcpy(&wide, &v, 8);
      float f = (float)wide;
      uint32_t u;
      memcpy(&u, &f, 4);
      return u;
    }
    if (bits == 64 && o->is_f32) {
      float f;
      uint32_t u = (uint32_t)v;
      memcpy(&f, &u, 4);
      double wide = f;
      memcpy(&v, &wide, 8);
    }
    return v;
  }
  // An integer written for a floating-point operand is its value.
  if (ptx_type_class(type) == 'F' && bits >= 32) {
    double wide = (double)o->i;
    float f = (float)o->i;
    v = 0;
    memcpy(&v, bits == 64 ? (void *)&wide : (void *)&f, (size_t)bits / 8);
    return v;
  }
  return bits && bits < 64 ? v & ((UINT64_C(1) << bits) - 1) : v;
}

static uint32_t sreg_source(Decoder *x, const PtxOperand *o, int width) {
  Program *p = x->prog;
  if (sim_sreg_changes((PtxSreg)o->sreg)) { // read anew each time
    uint32_t at = sim_temp(x, width);
    Op *op = sim_emit(x, sim_op_clock);
    op->d = at;
    op->width = (uint8_t)width;
    op->kind = (uint8_t)o->sreg;
    return at;
  }
  for (int i = 0; i < p->nsregs; i++)
    if (p->sregs[i].func == x->func && p->sregs[i].sreg == o->sreg &&
        p->sregs[i].dim == o->sreg_dim && p->sregs[i].width == width)
      return p->sregs[i].at;
  FrameSreg s = {sim_temp(x, width), (uint8_t)width, (uint8_t)o->sreg, o->sreg_dim, x->func};
  *arena_push(p->arena, p->sregs, p->nsregs, p->sregs_cap) = s;
  return s.at;
}

bool sim_is_kernel_param(const Decoder *x, int32_t var) {
  const PtxFunc *entry = x->prog->entry->ptx;
  for (int i = 0; i < entry->nparams; i++)
    if (entry->params[i] == var)
      return true;
  return false;
}

// The address of a variable in its own space.
static uint32_t symbol_source(Decoder *x, const PtxOperand *o, int width) {
  const PtxVar *v = &x->prog->module->vars[o->sym];
  if (v->space == PTX_S_GLOBAL || v->space == PTX_S_CONST)
    return sim_const(x, width, x->prog->var_address[o->sym] + (uint64_t)o->off);
  uint64_t at = x->prog->var_at[o->sym] + (uint64_t)o->off;
  bool frame = v->space == PTX_S_LOCAL ||
               (v->space == PTX_S_PARAM && !sim_is_kernel_param(x, o->sym));
  if (!frame || x->func->levels == 1)
    return sim_const(x, width, at);
  uint32_t temp = sim_temp(x, width); // moves with the depth of recursion
  Op *op = sim_emit(x, sim_op_local_address);
  op->d = temp;
  op->width = (uint8_t)width;
  op->imm = at;
  return temp;
}

static uint32_t sim_copy(Decoder *x, uint32_t from, int from_width, int to_width, bool sign) {
  uint32_t temp = sim_temp(x, to_width);
  Op *op = sim_emit(x, from_width == 8 ? sim_op_narrow : sign ? sim_op_sign_extend : sim_op_widen);
  op->d = temp;
  op->a = from;
  op->width = (uint8_t)to_width;
  return temp;
}

uint32_t sim_source(Decoder *x, const PtxOperand *o, PtxType type, int width) {
  int w = width ? width : sim_width(type);
  switch (o->kind) {
  case PTX_O_REG: {
    int have = sim_width(x->ptx->regs[o->reg].type);
    uint32_t at = x->func->reg[o->reg];
    if (have == w || have == 16 || w == 16 || have == 1 || w == 1)
      return at;
    return sim_copy(x, at, have, w, ptx_type_class(type) == 'S');
  }
  case PTX_O_SREG:
    return sreg_source(x, o, w);
  case PTX_O_SYM:
    return symbol_source(x, o, w);
  default:
    return sim_const(x, w, sim_immediate(o, w == 8 && ptx_type_bits(type) < 64 ? PTX_T_B64 : type));
  }
}

uint32_t sim_pred_source(Decoder *x, const PtxOperand *o) {
  if (o->kind == PTX_O_INT)
    return sim_const(x, 1, o->i ? ~0u : 0);
  if (o->kind == PTX_O_SREG)
    return sreg_source(x, o, 1);
  uint32_t at = x->func->reg[o->reg];
  if (!o->negate)
    return at;
  uint32_t temp = sim_temp(x, 1);
  Op *op = sim_emit(x, sim_op_pred_not);
  op->d = temp;
  op->a = at;
  return temp;
}

uint32_t sim_dest(Decoder *x, const PtxOperand *o, int width) {
  if (o->kind == PTX_O_REG)
    return x->func->reg[o->reg];
  return sim_temp(x, width);
}

// ---- checks of registers ------------------------------------------------------------------------
typedef struct Touch { Decoder *x; OpMore *more; bool write; } Touch;

static void touch(void *ctx, int32_t reg, bool write) {
  Touch *t = ctx;
  if (write != t->write || !t->x->tracked[reg])
    return;
  OpMore *m = t->more;
  for (int i = 0; i < m->nlist; i++)
    if (m->names[i] == (uint32_t)reg)
      return;
  Arena *a = t->x->prog->arena;
  int n = m->nlist; // both lists grow together
  *arena_push(a, m->names, n, m->cap2) = (uint32_t)reg;
  *arena_push(a, m->list, m->nlist, m->cap) = t->x->func->init[reg];
}

// The guard is read by every lane, also by those that it then stops.
static void check_guard(Decoder *x, const PtxInst *in) {
  if (in->guard < 0 || !x->tracked[in->guard])
    return;
  uint32_t guard = x->guard;
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  touch(&(Touch){x, more, false}, in->guard, false);
  x->guard = 0;
  sim_emit(x, sim_op_check)->more = more;
  x->guard = guard;
}

// Reads of unproven registers are checked, writes to them noted, before the instruction runs.
static void emit_checks(Decoder *x, const PtxInst *in) {
  check_guard(x, in);
  for (int write = 0; write < 2; write++) {
    OpMore *more = arena_new_of(x->prog->arena, OpMore);
    sim_visit_regs(in, touch, &(Touch){x, more, write});
    if (more->nlist)
      sim_emit(x, write ? sim_op_mark : sim_op_check)->more = more;
  }
}

// A guard that the instruction overwrites is read from a copy.
static void copy_guard(Decoder *x, const PtxInst *in) {
  const PtxOperand *d = in->nopnds ? &in->opnds[0] : NULL;
  bool pred = d && ((d->kind == PTX_O_REG && x->ptx->regs[d->reg].type == PTX_T_PRED) ||
                    d->kind == PTX_O_PAIR);
  if (!pred || !x->guard)
    return;
  uint32_t temp = sim_temp(x, 1);
  Op *op = new_op(x, sim_op_pred_copy);
  op->d = temp;
  op->a = x->guard;
  x->guard = temp;
}

// ---- sites --------------------------------------------------------------------------------------
static FlopKind tensor_kind(const PtxInst *in) {
  for (int i = 1; i < 3; i++)
    switch (in->type[i]) {
    case PTX_T_F16: return FLOP_TENSOR_F16;
    case PTX_T_BF16: return FLOP_TENSOR_BF16;
    case PTX_T_TF32: return FLOP_TENSOR_TF32;
    case PTX_T_E4M3:
    case PTX_T_E5M2: return FLOP_TENSOR_F8;
    case PTX_T_F64: return FLOP_TENSOR_F64;
    default: break;
    }
  // The table leaves A and B unsaid where they can only be one type (wmma of f16).
  bool floating = ptx_type_class((PtxType)in->type[0]) == 'F';
  return floating ? FLOP_TENSOR_F16 : FLOP_TENSOR_INT;
}

static FlopKind flop_kind(const PtxInst *in) {
  if (ptx_inst_form(in)->pipe == PTX_PIPE_TENSOR)
    return tensor_kind(in);
  switch (in->type[0]) {
  case PTX_T_F16:
  case PTX_T_F16X2: return FLOP_F16;
  case PTX_T_BF16:
  case PTX_T_BF16X2: return FLOP_BF16;
  case PTX_T_F64: return FLOP_F64;
  default: return FLOP_F32;
  }
}

static void begin_site(Decoder *x, const PtxInst *in) {
  Program *p = x->prog;
  x->site = (uint32_t)p->nsites;
  InstSite site = {in, x->ptx, in->guard >= 0 ? -1 : p->nblocks - 1, FLOP_KIND_COUNT, 0,
                   {COUNT_LOAD, COUNT_STORE, COUNT_ATOM}};
  const PtxForm *form = ptx_inst_form(in);
  if (!strcmp(form->stem, "red")) site.way[2] = COUNT_RED;
  if (!strcmp(form->handler, "async_words")) site.way[1] = COUNT_ST_ASYNC;
  if (!strcmp(form->handler, "cpasync")) site.way[0] = site.way[1] = COUNT_COPY;
  *arena_push(p->arena, p->sites, p->nsites, p->sites_cap) = site;
}

// The last Op is the one that does the arithmetic.
static void end_site(Decoder *x, const PtxInst *in) {
  InstSite *site = &x->prog->sites[x->site];
  site->flops = x->prog->ops[x->prog->nops - 1].flops;
  site->flop = (uint8_t)(site->flops ? flop_kind(in) : FLOP_KIND_COUNT);
}

static bool decode_inst(Decoder *x, const PtxInst *in) {
  x->in = in;
  x->split_guard = false;
  x->guard = in->guard >= 0 ? x->func->reg[in->guard] : 0;
  x->guard_negate = in->guard_negate;
  begin_site(x, in);
  copy_guard(x, in);
  emit_checks(x, in);
  sim_wgmma_guard(x, in);
  int first = x->prog->nops;
  if (!decoders[in->form](x, in))
    return false;
  Program *p = x->prog;
  end_site(x, in);
  if (x->split_guard) {
    for (int i = first; i < p->nops; i++)
      if (p->ops[i].fn == sim_op_skip)
        p->ops[i].target = (uint32_t)(p->nops - i);
  } else if (x->guard && p->nops > first && p->ops[p->nops - 1].fn == sim_op_guarded) {
    p->ops[p->nops - 1].counted = true;
  }
  return true;
}

// ---- blocks -------------------------------------------------------------------------------------
// Blocks are laid out so that of two places the lower one lies before their common post-dominator:
// reverse post-order of a depth-first walk that leaves loops before it stays in them.  The lanes
// that lag behind are then those with the lowest place.
typedef struct Walk { int block, next; } Walk;

static int pick_succ(const PtxFlow *flow, const PtxBlock *b, int self, int nth) {
  // Shallow ones first; of equals, the one that falls through last.
  int order[64] = {0}, n = b->nsucc < 64 ? b->nsucc : 64;
  for (int i = 0; i < n; i++) {
    int s = b->succ[i], j = i;
#define KEY(s) (flow->blocks[s].depth * 2 + ((s) == self + 1))
    for (; j > 0 && KEY(order[j - 1]) > KEY(s); j--)
      order[j] = order[j - 1];
#undef KEY
    order[j] = s;
  }
  return nth < n ? order[nth] : b->succ[nth];
}

static int layout(Arena *a, const PtxFlow *flow, int *order) {
  int n = flow->nblocks, depth = 0, count = n;
  bool *seen = arena_array(a, bool, n + 1);
  Walk *stack = arena_array(a, Walk, n + 1);
  if (!n)
    return 0;
  stack[depth++] = (Walk){0, 0};
  seen[0] = true;
  while (depth) {
    Walk *w = &stack[depth - 1];
    const PtxBlock *b = &flow->blocks[w->block];
    if (w->next < b->nsucc) {
      int s = pick_succ(flow, b, w->block, w->next++);
      if (!seen[s]) {
        seen[s] = true;
        stack[depth++] = (Walk){s, 0};
      }
    } else {
      order[--count] = w->block;
      depth--;
    }
  }
  memmove(order, order + count, (size_t)(n - count) * sizeof *order);
  return n - count;
}

static void emit_block(Decoder *x, const PtxBlock *b) {
  Program *p = x->prog;
  x->in = NULL;
  Op *op = new_op(x, sim_op_block);
  op->target = (uint32_t)p->nblocks++;
  op->imm = (uint64_t)(b->end - b->first);
}

// Where control goes that falls out of block `b`: -1 when it can't.
static int falls_to(const Decoder *x, int b) {
  const PtxBlock *block = &x->flow->blocks[b];
  if (block->end > block->first) {
    const PtxInst *last = &x->ptx->insts[block->end - 1];
    const char *h = ptx_inst_form(last)->handler;
    bool leaves = !strcmp(h, "bra") || !strcmp(h, "brx") || !strcmp(h, "ret") || !strcmp(h, "exit");
    if (leaves && last->guard < 0)
      return -1;
  }
  return block->end < x->ptx->ninsts ? x->flow->block_of[block->end] : x->flow->nblocks;
}

static void patch_targets(Decoder *x, int first) {
  Program *p = x->prog;
  for (int i = first; i < p->nops; i++) {
    Op *op = &p->ops[i];
    OpFn fn = op->fn == sim_op_guarded ? op->guarded : op->fn;
    if (fn == sim_op_bra || fn == sim_op_jump)
      op->target = (uint32_t)(x->block_op[op->target] - i);
    if (fn == sim_op_brx)
      for (int k = 0; k < op->more->nlist; k++)
        op->more->list[k] = (uint32_t)(x->block_op[op->more->list[k]] - i);
  }
}

static void place_registers(Decoder *x) {
  Func *f = x->func;
  Arena *a = x->prog->arena;
  f->reg = arena_array(a, uint32_t, x->ptx->nregs + 1);
  f->init = arena_array(a, uint32_t, x->ptx->nregs + 1);
  x->tracked = arena_array(a, bool, x->ptx->nregs + 1);
  sim_unproven(a, x->ptx, x->flow, x->tracked);
  for (int i = 0; i < x->ptx->nregs; i++) // the compiler's word that the value does not matter
    x->tracked[i] &= !x->ptx->regs[i].undefined;
  f->init_at = x->top;
  for (int i = 0; i < x->ptx->nregs; i++)
    if (x->tracked[i])
      f->init[i] = mask_place(x);
  x->preds_left = 0;
  f->init_bytes = x->top - f->init_at;
  for (int i = 0; i < x->ptx->nregs; i++)
    f->reg[i] = sim_temp(x, sim_width(x->ptx->regs[i].type));
}

Status sim_decode_func(SimDevice *dev, Program *p, int index, Diag *d) {
  Func *f = &p->funcs[index];
  Decoder x = {.prog = p, .dev = dev, .isa = dev->isa, .diag = d, .func = f, .ptx = f->ptx,
               .top = 64};
  x.flow = ptx_flow(p->arena, p->module, f->ptx);
  int nblocks = x.flow->nblocks, errors = d->errors;
  place_registers(&x);
  x.wgmma = sim_wgmma_flow(p, f->ptx, x.flow);
  x.block_op = arena_array(p->arena, int, nblocks + 1);
  int *order = arena_array(p->arena, int, nblocks + 1);
  int n = layout(p->arena, x.flow, order);
  int first = p->nops;
  f->first = (uint32_t)first;
  for (int k = 0; k < n; k++) {
    const PtxBlock *b = &x.flow->blocks[order[k]];
    x.block_op[order[k]] = p->nops;
    emit_block(&x, b);
    for (int i = b->first; i < b->end; i++)
      decode_inst(&x, &f->ptx->insts[i]);
    int to = falls_to(&x, order[k]);
    x.in = NULL;
    if (to >= 0 && (k + 1 == n ? to < nblocks : to != order[k + 1]))
      new_op(&x, sim_op_jump)->target = (uint32_t)to;
  }
  x.block_op[nblocks] = p->nops; // falling off the end
  x.in = f->ptx->ninsts ? &f->ptx->insts[f->ptx->ninsts - 1] : NULL;
  new_op(&x, f->ptx->entry ? sim_op_exit : sim_op_ret);
  patch_targets(&x, first);
  f->end = (uint32_t)p->nops;
  f->frame_bytes = x.top;
  return d->errors > errors ? ST_INPUT : ST_OK;
}
