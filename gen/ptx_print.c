// Canonical text: follows PtxModule.items.
#include "dtype.h"
#include "ptx_forms.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct Out {
  Arena *arena;
  const PtxModule *m;
  const PtxFunc *f; // whose body we are in
  char *text;
  size_t n, cap;
  int depth;
  bool line_comment; // the line ends in a `//` comment: nothing may follow on it
} Out;

static void put_n(Out *o, const char *s, size_t n) {
  arena_append(o->arena, &o->text, &o->n, &o->cap, s, n);
}

static void put(Out *o, const char *s) { put_n(o, s, strlen(s)); }

__attribute__((format(printf, 2, 3))) static void putf(Out *o, const char *fmt, ...) {
  char buf[96];
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(buf, sizeof buf, fmt, ap);
  va_end(ap);
  assert(n >= 0 && (size_t)n < sizeof buf); // numbers and fixed text only
  put_n(o, buf, (size_t)n);
}

// Source text as it stood; a NUL in it would end ours.
static void put_source(Out *o, const char *s, size_t n) {
  put_n(o, s, n);
  for (char *p = o->text + o->n - n; n--; p++)
    if (!*p) *p = '?';
}

static void line(Out *o, int depth) {
  if (o->n) put(o, "\n");
  for (int i = 0; i < depth; i++) put(o, "  ");
  o->line_comment = false;
}

// ---- operands ----------------------------------------------------------------------------------
static void operand(Out *o, const PtxOperand *v);

static void sequence(Out *o, const PtxOperand *v, int n, const char *open, const char *between,
                     const char *close) {
  put(o, open);
  for (int i = 0; i < n; i++) {
    if (i) put(o, between);
    operand(o, &v[i]);
  }
  put(o, close);
}

static void plus(Out *o, int64_t off) {
  if (off) putf(o, "+%" PRId64, off);
}

static void address(Out *o, const PtxOperand *v) {
  if (v->base == PTX_O_INT) {
    putf(o, "%" PRId64, v->off);
    return;
  }
  put(o, v->base == PTX_O_REG ? o->f->regs[v->reg].name : o->m->vars[v->sym].name);
  plus(o, v->off);
}

static void operand(Out *o, const PtxOperand *v) {
  if (v->negate) put(o, "!");
  switch ((PtxOperandKind)v->kind) {
  case PTX_O_NONE: break;
  case PTX_O_REG: put(o, o->f->regs[v->reg].name); break;
  case PTX_O_INT: putf(o, "%" PRId64, v->i); break;
  case PTX_O_FLOAT: putf(o, v->is_f32 ? "0f%08" PRIX64 : "0d%016" PRIX64, v->bits); break;
  case PTX_O_SREG:
    put(o, ptx_sreg_info((PtxSreg)v->sreg)->text);
    if (ptx_sreg_has_dims((PtxSreg)v->sreg)) putf(o, ".%c", "xyzw"[v->sreg_dim]);
    break;
  case PTX_O_SYM:
    put(o, o->m->vars[v->sym].name);
    plus(o, v->off);
    break;
  case PTX_O_FUNC: put(o, o->m->funcs[v->sym].name); break;
  case PTX_O_LABEL: put(o, o->f->labels[v->sym].name); break;
  case PTX_O_ADDR:
    put(o, "[");
    address(o, v);
    put(o, "]");
    break;
  case PTX_O_VEC: sequence(o, v->v, v->n, "{", ", ", "}"); break;
  case PTX_O_PAIR: sequence(o, v->v, v->n, "", "|", ""); break;
  case PTX_O_SINK: put(o, "_"); break;
  case PTX_O_TMAP:
    put(o, "[");
    address(o, &v->v[0]);
    sequence(o, v->v + 1, v->n - 1, ", {", ", ", "}]");
    break;
  case PTX_O_LIST: sequence(o, v->v, v->n, "(", ", ", ")"); break;
  case PTX_O_TABLE: put(o, o->m->tables[v->sym].name); break;
  }
}

static void instruction(Out *o, const PtxInst *in) {
  if (in->guard >= 0) {
    put(o, in->guard_negate ? "@!" : "@");
    put(o, o->f->regs[in->guard].name);
    put(o, " ");
  }
  put(o, ptx_inst_form(in)->stem);
  for (int i = 0; i < in->nmods; i++) {
    put(o, ".");
    put(o, ptx_mod_text(in->mods[i]));
  }
  sequence(o, in->opnds, in->nopnds, in->nopnds ? " " : "", ", ", ";");
}

// ---- declarations ------------------------------------------------------------------------------
static void element(Out *o, const PtxVar *v, uint64_t at) {
  uint64_t bits = 0, size = (uint64_t)ptx_type_bits(v->type) / 8;
  for (int i = 0; i < v->nrelocs; i++) {
    const PtxReloc *r = &v->relocs[i];
    if (r->at != at) continue;
    if (r->mask) putf(o, "0x%" PRIX64 "(", r->mask);
    if (r->generic) put(o, "generic(");
    put(o, r->var >= 0 ? o->m->vars[r->var].name : o->m->funcs[r->func].name);
    if (r->generic) put(o, ")");
    plus(o, r->addend);
    if (r->mask) put(o, ")");
    return;
  }
  for (uint64_t i = 0; i < size && i < 8; i++) bits |= (uint64_t)v->init[at + i] << 8 * i;
  if (v->type == PTX_T_F32) putf(o, "0f%08" PRIX64, bits);
  else if (v->type == PTX_T_F64) putf(o, "0d%016" PRIX64, bits);
  else if (v->type == PTX_T_F16) {
    double d = f16_to_double((uint16_t)bits);
    memcpy(&bits, &d, 8);
    putf(o, "0d%016" PRIX64, bits);
  } else putf(o, "%" PRIu64, bits);
}

static void initialiser(Out *o, const PtxVar *v) {
  uint64_t size = (uint64_t)ptx_type_bits(v->type) / 8;
  bool many = v->is_array || v->vec > 1;
  put(o, many ? " = {" : " = ");
  for (uint64_t at = 0; at < v->bytes; at += size) {
    if (at) put(o, ", ");
    element(o, v, at);
  }
  if (many) put(o, "}");
}

static void variable(Out *o, const PtxVar *v) {
  if (v->is_extern) put(o, ".extern ");
  if (v->is_visible) put(o, ".visible ");
  if (v->is_weak) put(o, ".weak ");
  if (v->is_common) put(o, ".common ");
  putf(o, ".%s ", ptx_space_text(v->space));
  if (v->attribute) {
    put(o, v->attribute);
    put(o, " ");
  }
  if (v->align_given) putf(o, ".align %u ", v->align);
  if (v->vec > 1) putf(o, ".v%u ", v->vec);
  putf(o, ".%s ", ptx_type_text(v->type));
  if (v->is_ptr) put(o, ".ptr ");
  if (v->ptr_space) {
    put(o, ".");
    put(o, v->ptr_space);
    put(o, " ");
  }
  if (v->ptr_align) putf(o, ".align %u ", v->ptr_align);
  put(o, v->name);
  uint64_t one = (uint64_t)ptx_type_bits(v->type) / 8 * v->vec;
  if (v->is_array && v->bytes) putf(o, "[%" PRIu64 "]", v->bytes / one);
  else if (v->is_array) put(o, "[]");
  if (v->init && v->bytes) initialiser(o, v);
}

static void registers(Out *o, const PtxRegDecl *d, int n) {
  putf(o, ".reg .%s ", ptx_type_text(d->type));
  for (int i = 0; i < n; i++) {
    if (i) put(o, ", ");
    put(o, d[i].name);
    if (d[i].count) putf(o, "<%u>", d[i].count);
  }
  put(o, ";");
}

static void params(Out *o, const int32_t *list, int n) {
  put(o, "(");
  for (int i = 0; i < n; i++) {
    if (i) put(o, ",");
    if (n > 1) line(o, 1);
    variable(o, &o->m->vars[list[i]]);
  }
  put(o, ")");
}

static void counts(Out *o, const char *name, const uint32_t *v, int n) {
  if (!v[0]) return;
  line(o, 0);
  putf(o, ".%s %u", name, v[0]);
  for (int i = 1; i < n; i++) putf(o, ", %u", v[i]);
}

static void function_head(Out *o, const PtxFunc *f) {
  if (f->is_extern) put(o, ".extern ");
  if (f->is_visible) put(o, ".visible ");
  if (f->is_weak) put(o, ".weak ");
  put(o, f->entry ? ".entry " : ".func ");
  if (f->nrets) {
    params(o, f->rets, f->nrets);
    put(o, " ");
  }
  put(o, f->name);
  params(o, f->params, f->nparams);
  if (f->noreturn) put(o, " .noreturn");
  counts(o, "maxntid", f->maxntid, 3);
  counts(o, "reqntid", f->reqntid, 3);
  counts(o, "minnctapersm", &f->minnctapersm, 1);
  counts(o, "maxnreg", &f->maxnreg, 1);
  counts(o, "reqnctapercluster", f->cluster, 3);
  if (f->extra) {
    line(o, 0);
    put(o, f->extra);
  }
}

static void table(Out *o, const PtxTable *t) {
  put(o, t->name);
  put(o, ": ");
  if (t->raw) {
    put(o, t->raw);
  } else {
    put(o, ".branchtargets ");
    for (int i = 0; i < t->n; i++) {
      if (i) put(o, ", ");
      put(o, o->f->labels[t->labels[i]].name);
    }
  }
  put(o, ";");
}

// ---- the file ----------------------------------------------------------------------------------
static void comment(Out *o, const PtxItem *it, int depth) {
  if (it->kind == PTX_I_TRAILING && !o->line_comment) put(o, " ");
  else line(o, depth);
  put_source(o, it->text, it->len);
  o->line_comment = it->text[1] == '/';
}

static void item(Out *o, const PtxItem *it) {
  switch ((PtxItemKind)it->kind) {
  case PTX_I_COMMENT: case PTX_I_TRAILING: comment(o, it, o->depth); return;
  case PTX_I_OPEN: line(o, o->depth++); break;
  case PTX_I_CLOSE: line(o, --o->depth); break;
  case PTX_I_LABEL: line(o, o->depth ? o->depth - 1 : 0); break;
  case PTX_I_FUNC: case PTX_I_FUNC_DECL:
    line(o, 0);
    line(o, 0);
    break;
  default: line(o, o->depth); break;
  }
  switch ((PtxItemKind)it->kind) {
  case PTX_I_RAW: put_source(o, it->text, it->len); break;
  case PTX_I_VAR:
    variable(o, &o->m->vars[it->index]);
    put(o, ";");
    break;
  case PTX_I_REGS: registers(o, &o->m->reg_decls[it->index], it->n); break;
  case PTX_I_FUNC_DECL:
    function_head(o, &o->m->funcs[it->index]);
    put(o, ";");
    break;
  case PTX_I_FUNC:
    o->f = &o->m->funcs[it->index];
    function_head(o, o->f);
    line(o, 0);
    put(o, "{");
    o->depth = 1;
    break;
  case PTX_I_OPEN: put(o, "{"); break;
  case PTX_I_CLOSE: put(o, "}"); break;
  case PTX_I_LABEL:
    put(o, o->f->labels[it->index].name);
    put(o, ":");
    break;
  case PTX_I_INST: instruction(o, &o->f->insts[it->index]); break;
  case PTX_I_TABLE: table(o, &o->m->tables[it->index]); break;
  default: break;
  }
}

static char *finish(Out *o) {
  put_n(o, "", 1);
  return o->text;
}

char *ptx_print(Arena *a, const PtxModule *m) {
  Out o = {.arena = a, .m = m};
  int i = 0;
  while (i < m->nitems && m->items[i].kind == PTX_I_COMMENT) comment(&o, &m->items[i++], 0);
  line(&o, 0);
  putf(&o, ".version %d.%d", m->version / 10, m->version % 10);
  line(&o, 0);
  put(&o, ".target ");
  put(&o, m->target_text);
  line(&o, 0);
  putf(&o, ".address_size %d", m->address_size);
  for (; i < m->nitems; i++) item(&o, &m->items[i]);
  put(&o, "\n");
  return finish(&o);
}

char *ptx_print_inst(Arena *a, const PtxModule *m, const PtxFunc *f, const PtxInst *in) {
  Out o = {.arena = a, .m = m, .f = f};
  instruction(&o, in);
  return finish(&o);
}
