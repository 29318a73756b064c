// Rules of single instructions that types don't tell: ranges of immediates, barriers, calls.
#include "ptx_check.h"

#include <string.h>

// An immediate that stands for operand `name` of a form with this stem and modifier lies in
// [lo, hi] and is a multiple of `step`.
typedef struct ImmRule {
  const char *stem, *mod; // mod NULL: any
  char name;
  int64_t lo, hi, step;
  const char *what;
} ImmRule;

enum { MBAR_MAX = (1 << 20) - 1 }; // ISA 9.7.13.15.2

static const ImmRule imm_rules[] = {
    {"bar", "cta", 'a', 0, 15, 1, "a barrier id"},
    {"bar", "cta", 'b', 32, 1024, 32, "a thread count"},
    {"bar", "sync", 'a', 0, 15, 1, "a barrier id"},
    {"bar", "sync", 'b', 32, 1024, 32, "a thread count"},
    {"bar", "arrive", 'a', 0, 15, 1, "a barrier id"},
    {"bar", "arrive", 'b', 32, 1024, 32, "a thread count"},
    {"bar", "red", 'a', 0, 15, 1, "a barrier id"},
    {"bar", "red", 'b', 32, 1024, 32, "a thread count"},
    {"barrier", NULL, 'a', 0, 15, 1, "a barrier id"},
    {"barrier", NULL, 'b', 32, 1024, 32, "a thread count"},
    {"setmaxnreg", NULL, 'i', 24, 256, 8, "a register count"},
    {"lop3", NULL, 'i', 0, 255, 1, "the truth table"},
    {"pmevent", NULL, 'i', 0, 65535, 1, "an event"},
    {"cp", "ca", 'n', 0, 16, 1, "the source size"},
    {"cp", "cg", 'n', 0, 16, 1, "the source size"},
    {"cp", "cg", 'i', 16, 16, 1, "the size of a .cg copy"},
    {"cp", "ca", 'i', 4, 16, 4, "the size of a copy"},
    {"cp", "bulk", 'n', 0, INT64_C(0xffffffff), 16, "the size of a bulk copy"},
    {"cp", "wait_group", 'i', 0, INT32_MAX, 1, "a group count"},
    {"mbarrier", "init", 'n', 1, MBAR_MAX, 1, "an arrival count"},
    {"mbarrier", "arrive", 'n', 1, MBAR_MAX, 1, "an arrival or byte count"},
    {"mbarrier", "arrive_drop", 'n', 1, MBAR_MAX, 1, "an arrival count"},
    {"mbarrier", "expect_tx", 'n', 0, MBAR_MAX, 1, "a byte count"},
    {"mbarrier", "complete_tx", 'n', 0, MBAR_MAX, 1, "a byte count"},
    {"mbarrier", "parity", 's', 0, 1, 1, "a parity"},
    {"discard", NULL, 'i', 128, 128, 1, "the size"},
    {"applypriority", NULL, 'i', 128, 128, 1, "the size"},
    {"fence", "acquire", 'i', 128, 128, 1, "the size"},
};

static void check_imm_rule(Check *c, const PtxInst *in, const ImmRule *r) {
  if (r->mod && !ptx_inst_has(in, r->mod)) return;
  for (int i = 0; i < in->nopnds; i++) {
    const PtxOperand *o = &in->opnds[i];
    const PtxSpec *s = ptx_inst_spec(in, i);
    if (o->kind != PTX_O_INT || s->kind != PTX_SPEC_VALUE || s->name != r->name) continue;
    if (o->i >= r->lo && o->i <= r->hi && o->i % r->step == 0) continue;
    if (r->lo == r->hi)
      check_opnd_error(c, in, o, "%s is %lld, not %lld", r->what, (long long)r->lo,
                       (long long)o->i);
    else if (r->step > 1)
      check_opnd_error(c, in, o, "%s is a multiple of %lld from %lld to %lld, not %lld", r->what,
                       (long long)r->step, (long long)r->lo, (long long)r->hi, (long long)o->i);
    else
      check_opnd_error(c, in, o, "%s is %lld to %lld, not %lld", r->what, (long long)r->lo,
                       (long long)r->hi, (long long)o->i);
    return;
  }
}

static const PtxOperand *imm_named(const PtxInst *in, char name) {
  for (int i = 0; i < in->nopnds; i++)
    if (in->opnds[i].kind == PTX_O_INT && ptx_inst_spec(in, i)->name == name) return &in->opnds[i];
  return NULL;
}

static void check_cp_async(Check *c, const PtxInst *in) {
  const PtxOperand *size = imm_named(in, 'i'), *from = imm_named(in, 'n');
  if (!size) return;
  if (size->i == 12) check_opnd_error(c, in, size, "the size of a copy is 4, 8 or 16, not 12");
  if (from && from->i > size->i)
    check_opnd_error(c, in, from, "the source size %lld is larger than the copy of %lld bytes",
                     (long long)from->i, (long long)size->i);
}

// Floating-point types: N = 8, 16 .. 256.  Integers: 8, 16, 24, 32, then multiples of 16.
static void check_wgmma(Check *c, const PtxInst *in) {
  if (!in->shape_n) return;
  if (in->type[0] == PTX_T_S32 && in->shape_n > 32 && in->shape_n % 16)
    check_inst_error(c, in,
                     "integer wgmma takes N = 8, 16, 24, 32 and then multiples of 16, not %d",
                     in->shape_n);
  int immediates = 0;
  bool a_in_registers = in->nopnds > 1 && in->opnds[1].kind == PTX_O_VEC;
  int transposes = 0;
  for (int i = 0; i < in->nopnds; i++) {
    const PtxOperand *o = &in->opnds[i];
    if (o->kind != PTX_O_INT || ptx_inst_spec(in, i)->name != 'i') continue;
    bool scale = immediates++ < 2;
    transposes += !scale;
    if (scale && o->i != 1 && o->i != -1)
      check_opnd_error(c, in, o, "a scale is 1 or -1, not %lld", (long long)o->i);
    if (!scale && o->i != 0 && o->i != 1)
      check_opnd_error(c, in, o, "a transpose flag is 0 or 1, not %lld", (long long)o->i);
  }
  if (transposes && transposes != (a_in_registers ? 1 : 2))
    check_inst_error(c, in, "with A in %s this takes %d transpose flag%s, not %d",
                     a_in_registers ? "registers" : "shared memory", a_in_registers ? 1 : 2,
                     a_in_registers ? "" : "s", transposes);
}

// ptxas ignores setmaxnreg when it can't know the count at entry (C7508): .maxnreg says it, or
// .minnctapersm and the number of threads.
static void check_setmaxnreg(Check *c, const PtxInst *in) {
  const PtxFunc *f = c->f;
  if (!f->entry || f->maxnreg) return;
  if (!f->maxntid[0] && !f->reqntid[0])
    check_inst_error(c, in, "setmaxnreg needs .maxnreg, or .maxntid or .reqntid, on \"%s\": "
                            "without it ptxas ignores the instruction", f->name);
  else if (!f->minnctapersm)
    check_inst_warning(c, in, "setmaxnreg is ignored by ptxas unless \"%s\" also has .minnctapersm "
                              "or .maxnreg", f->name);
}

static void check_guard(Check *c, const PtxInst *in) {
  if (in->guard < 0 || !ptx_inst_has(in, "sync") || !ptx_inst_has(in, "aligned")) return;
  check_inst_warning(c, in,
                     "a .sync.aligned instruction under a guard is defined only if %s is the "
                     "same in all lanes of the warp",
                     c->f->regs[in->guard].name);
}

static void check_call_list(Check *c, const PtxInst *in, const PtxOperand *list, int want,
                            const char *what, const char *callee) {
  int n = list ? list->n : 0;
  if (n == want) return;
  check_inst_error(c, in, "\"%s\" has %d %s%s, not %d", callee, want, what, want == 1 ? "" : "s",
                   n);
}

static void check_call(Check *c, const PtxInst *in) {
  const PtxOperand *rets = NULL, *args = NULL, *callee = NULL;
  for (int i = 0; i < in->nopnds; i++) {
    const PtxOperand *o = &in->opnds[i];
    if (o->kind == PTX_O_FUNC) callee = o;
    if (o->kind == PTX_O_LIST) *(callee || i ? &args : &rets) = o;
  }
  if (!callee) return;
  const PtxFunc *f = &c->m->funcs[callee->sym];
  if (f->entry) check_opnd_error(c, in, callee, "\"%s\" is an entry and can't be called", f->name);
  check_call_list(c, in, rets, f->nrets, "result", f->name);
  check_call_list(c, in, args, f->nparams, "argument", f->name);
}

// The state of another CTA's mbarrier can't be returned.
static void check_mbarrier(Check *c, const PtxInst *in) {
  if (in->space != PTX_S_CLUSTER || !in->nopnds || in->opnds[0].kind != PTX_O_REG) return;
  check_opnd_error(c, in, &in->opnds[0],
                   "arriving at a .shared::cluster mbarrier returns nothing: "
                   "write _ instead of %s",
                   c->f->regs[in->opnds[0].reg].name);
}

static bool has_immediate(const PtxInst *in) {
  for (int i = 0; i < in->nopnds; i++)
    if (in->opnds[i].kind == PTX_O_INT) return true;
  return false;
}

static bool check_immediates(Check *c, const PtxInst *in, const char *stem) {
  int before = c->diag->errors;
  for (size_t i = 0; i < sizeof imm_rules / sizeof *imm_rules && c->diag->errors == before; i++)
    if (imm_rules[i].stem[0] == stem[0] && !strcmp(imm_rules[i].stem, stem))
      check_imm_rule(c, in, &imm_rules[i]);
  return c->diag->errors == before;
}

void check_rules(Check *c, const PtxInst *in) {
  const char *stem = ptx_inst_form(in)->stem;
  if (has_immediate(in) && !check_immediates(c, in, stem)) return;
  check_guard(c, in);
  switch (stem[0]) {
  case 'c':
    if (!strcmp(stem, "cp")) check_cp_async(c, in);
    if (!strcmp(stem, "call")) check_call(c, in);
    break;
  case 's':
    if (!strcmp(stem, "setmaxnreg")) check_setmaxnreg(c, in);
    break;
  case 'm':
    if (!strcmp(stem, "mbarrier")) check_mbarrier(c, in);
    break;
  case 'w': check_wgmma(c, in); break;
  default: break;
  }
}
