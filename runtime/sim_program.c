// sim_program.c: from a module to a Program: variables get places, functions become Ops.
#include <stdlib.h>
#include <string.h>

#include "sim_decode.h"
#include "sim_race.h"

// ---- which functions ----------------------------------------------------------------------------
static const PtxOperand *called(const PtxInst *in) {
  for (int i = 0; i < in->nopnds; i++)
    if (in->opnds[i].kind == PTX_O_FUNC)
      return &in->opnds[i];
  return NULL;
}

static void reach(Program *p, int index) {
  const PtxFunc *f = &p->module->funcs[index];
  if (p->funcs[index].ptx || !f->defined)
    return;
  p->funcs[index] = (Func){.ptx = f, .prog = p, .levels = 1};
  for (int i = 0; i < f->ninsts; i++) {
    const PtxOperand *o = called(&f->insts[i]);
    if (o)
      reach(p, o->sym);
  }
}

static bool calls(const Program *p, int from, int to, bool *seen) {
  const PtxFunc *f = p->funcs[from].ptx;
  if (!f || seen[from])
    return false;
  seen[from] = true;
  for (int i = 0; i < f->ninsts; i++) {
    const PtxOperand *o = called(&f->insts[i]);
    if (o && (o->sym == to || calls(p, o->sym, to, seen)))
      return true;
  }
  return false;
}

// A function that can call itself needs a frame for every level.
static void find_cycles(Program *p) {
  bool *seen = arena_array(p->arena, bool, p->nfuncs + 1);
  for (int i = 0; i < p->nfuncs; i++) {
    memset(seen, 0, (size_t)p->nfuncs);
    if (p->funcs[i].ptx && calls(p, i, i, seen))
      p->funcs[i].levels = SIM_MAX_LEVELS;
  }
}

// ---- variables ----------------------------------------------------------------------------------
static uint64_t align_up(uint64_t at, uint32_t align) {
  return align > 1 ? (at + align - 1) / align * align : at;
}

// Places are 32 bits, and each lane or warp has its own memory: far more than any kernel that runs.
enum { MOST_BYTES = 1 << 30 };

static Status check_bytes(const Program *p, uint64_t bytes, const char *what, Diag *d) {
  if (bytes <= MOST_BYTES)
    return ST_OK;
  return diag_fail(d, ST_INPUT, "sim: \"%s\" takes %llu bytes of %s, %d at most",
                   p->entry->ptx->name, (unsigned long long)bytes, what, MOST_BYTES);
}

static bool in_use(const Program *p, const PtxVar *v) {
  return v->func < 0 || p->funcs[v->func].ptx;
}

static Status place_shared(Program *p, Diag *d) {
  uint32_t dynamic_align = 16;
  uint64_t at = 0;
  const PtxModule *m = p->module;
  for (int i = 0; i < m->nvars; i++) {
    const PtxVar *v = &m->vars[i];
    if (v->space != PTX_S_SHARED || !in_use(p, v))
      continue;
    if (v->is_extern) {
      p->has_dynamic = true;
      dynamic_align = v->align > dynamic_align ? v->align : dynamic_align;
      continue;
    }
    at = align_up(at, v->align);
    p->var_at[i] = (uint32_t)at;
    at += v->bytes;
  }
  p->shared_bytes = (uint32_t)at;
  p->dynamic_at = (uint32_t)align_up(at, dynamic_align);
  for (int i = 0; i < m->nvars; i++)
    if (m->vars[i].space == PTX_S_SHARED && m->vars[i].is_extern)
      p->var_at[i] = p->dynamic_at;
  return check_bytes(p, at, "static shared memory", d);
}

// Local variables and the .param variables of calls: every lane has its own.
static Status place_local(Program *p, Diag *d) {
  const PtxModule *m = p->module;
  uint64_t at = 0;
  for (int f = 0; f < p->nfuncs; f++) {
    Func *func = &p->funcs[f];
    if (!func->ptx)
      continue;
    at = align_up(at, 16);
    func->local = (uint32_t)at;
    for (int i = 0; i < m->nvars; i++) {
      const PtxVar *v = &m->vars[i];
      bool kernel_param = v->space == PTX_S_PARAM && func->ptx->entry && !v->call_param;
      if (v->func != f || kernel_param || (v->space != PTX_S_LOCAL && v->space != PTX_S_PARAM))
        continue;
      at = align_up(at, v->align);
      p->var_at[i] = (uint32_t)at;
      at += v->bytes;
    }
    uint64_t one = align_up(at, 16) - func->local;
    func->local_bytes = (uint32_t)one;
    at = func->local + one * (uint64_t)func->levels;
    Status st = check_bytes(p, at, "local memory in a thread", d);
    if (st != ST_OK)
      return st;
  }
  p->local_bytes = (uint32_t)at;
  for (int i = 0; i < p->entry->ptx->nparams; i++)
    p->var_at[p->entry->ptx->params[i]] = m->vars[p->entry->ptx->params[i]].offset;
  return ST_OK;
}

static void relocate(const Program *p, const PtxVar *v, uint8_t *data) {
  for (int i = 0; i < v->nrelocs; i++) {
    const PtxReloc *r = &v->relocs[i];
    if (r->var < 0)
      continue;
    uint64_t address = p->var_address[r->var] + (uint64_t)r->addend;
    if (!r->mask) // .u32 or .u64
      memcpy(data + r->at, &address, (size_t)ptx_type_bits(v->type) / 8);
    else
      data[r->at] = (uint8_t)((address & r->mask) >> __builtin_ctzll(r->mask));
  }
}

// Module variables are buffers: zero where there is no initialiser.
static Status place_global(SimDevice *dev, SimKernel *k, Diag *d) {
  Program *p = k->prog;
  const PtxModule *m = p->module;
  k->vars = arena_array(k->arena, DevPtr, m->nvars + 1);
  for (int i = 0; i < m->nvars; i++) {
    const PtxVar *v = &m->vars[i];
    if ((v->space != PTX_S_GLOBAL && v->space != PTX_S_CONST) || !in_use(p, v))
      continue;
    Buffer *b;
    Status st = sim_alloc(dev, v->bytes, v->name, v->space == PTX_S_CONST, &b, d);
    if (st != ST_OK)
      return st;
    k->vars[k->nvars++] = p->var_address[i] = b->mem.base;
    if (v->init)
      memcpy(b->mem.data, v->init, v->bytes);
    free(b->mem.shadow);
    b->mem.shadow = NULL;
  }
  for (int i = 0; i < m->nvars; i++)
    if (p->var_address[i])
      relocate(p, &m->vars[i], sim_buffer(dev, p->var_address[i])->mem.data);
  return ST_OK;
}

// ---- the whole ----------------------------------------------------------------------------------
static Status decode_all(SimDevice *dev, Program *p, Diag *d) {
  Status st = ST_OK;
  uint64_t at = 0;
  for (int i = 0; i < p->nfuncs; i++) {
    Func *f = &p->funcs[i];
    if (!f->ptx)
      continue;
    Status one = sim_decode_func(dev, p, i, d);
    st = one != ST_OK ? one : st;
    f->frame = (uint32_t)at;
    at += (uint64_t)f->frame_bytes * (uint64_t)f->levels;
  }
  p->file_bytes = (uint32_t)at;
  return st == ST_OK ? check_bytes(p, at, "registers in a warp", d) : st;
}

static Status make_program(SimDevice *dev, SimKernel *k, const PtxModule *m, const LineMap *map,
                           const PtxFunc *entry, Diag *d) {
  Program *p = k->prog = arena_new_of(k->arena, Program);
  p->arena = k->arena;
  p->module = m;
  p->map = map;
  p->nfuncs = m->nfuncs;
  p->funcs = arena_array(k->arena, Func, m->nfuncs + 1);
  p->var_at = arena_array(k->arena, uint32_t, m->nvars + 1);
  p->var_address = arena_array(k->arena, uint64_t, m->nvars + 1);
  int index = (int)(entry - m->funcs);
  p->entry = &p->funcs[index];
  reach(p, index);
  find_cycles(p);
  Status st = place_shared(p, d);
  if (st == ST_OK) st = place_local(p, d);
  if (st == ST_OK) st = place_global(dev, k, d);
  return st == ST_OK ? decode_all(dev, p, d) : st;
}

static void fill_info(SimDevice *dev, SimKernel *k) {
  const PtxFunc *f = k->prog->entry->ptx;
  PtxStats stats;
  ptx_stats(k->prog->module, f, &stats);
  KernelInfo *info = &k->base.info;
  uint64_t most = 1;
  for (int i = 0; i < 3; i++)
    most *= f->reqntid[i] ? f->reqntid[i] : f->maxntid[i] ? f->maxntid[i] : 1;
  info->regs = stats.live_max;
  info->max_threads = (f->reqntid[0] || f->maxntid[0]) && most < 1024 ? (int)most : 1024;
  info->blocks_per_sm = 1;
  info->static_smem = k->prog->shared_bytes;
  info->local_bytes = k->prog->local_bytes;
  info->log = "";
  k->base.dev = &dev->base;
}

Status sim_load(Device *device, const Source *ptx, const LineMap *map, const PtxModule *module,
                const char *entry, Kernel **out, Diag *d) {
  SimDevice *dev = sim_of(device);
  Arena *a = arena_new();
  if (!module) { // messages of traps need the text as long as the kernel lives
    ptx =
        source_new(a, arena_strdup(a, ptx->name), arena_strndup(a, ptx->text, ptx->len), ptx->len);
    module = ptx_parse(a, ptx, map, d);
  }
  const PtxFunc *f = module ? ptx_entry(module, entry) : NULL;
  if (!f) {
    arena_free(a);
    if (module)
      diag_error(d, (Place){.src = ptx}, entry ? "no kernel \"%s\" in this module"
                                               : "the module has no kernel, or several%s",
                 entry ? entry : ": say which");
    return ST_INPUT;
  }
  SimKernel *k = calloc(1, sizeof *k);
  if (!k)
    abort();
  k->arena = a;
  k->base.dev = device;
  k->next = dev->kernels;
  if (k->next)
    k->next->prev = k;
  dev->kernels = k;
  Status st = make_program(dev, k, module, map ? map : module->map, f, d);
  if (st != ST_OK) {
    sim_kernel_free(&k->base);
    return st;
  }
  fill_info(dev, k);
  *out = &k->base;
  return ST_OK;
}

void sim_kernel_free(Kernel *kernel) {
  SimKernel *k = (SimKernel *)kernel;
  SimDevice *dev = sim_of(kernel->dev);
  race_settle(dev->race);
  for (int i = 0; i < k->nvars; i++)
    sim_free(dev, k->vars[i]);
  if (k->prev)
    k->prev->next = k->next;
  else
    dev->kernels = k->next;
  if (k->next)
    k->next->prev = k->prev;
  arena_free(k->arena);
  free(k);
}
