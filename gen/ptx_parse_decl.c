// .reg, variables, .branchtargets and their like.
#include "ptx_parse.h"

#include <string.h>

enum { MAX_DIMS = 4, MAX_RANGE_TOTAL = 1 << 22 };

static bool type_of(const Token *t, PtxType *out) {
  PtxMod m = t->kind == TK_DOT ? ptx_mod_find(t->text, t->len) : 0;
  *out = m ? (PtxType)ptx_mod_info(m)->type : PTX_T_NONE;
  return *out != PTX_T_NONE;
}

// ---- registers ---------------------------------------------------------------------------------
static bool reg_count(Parser *p, uint32_t *count) {
  parse_next(p);
  Token t = p->tok;
  int64_t n;
  if (!parse_const(p, &n)) return false;
  if (n < 1 || p->range_total + (uint64_t)n > MAX_RANGE_TOTAL)
    return parse_error(p, &t, "a register range holds 1 to %d registers, all together",
                       MAX_RANGE_TOTAL);
  p->range_total += (uint64_t)n;
  *count = (uint32_t)n;
  return parse_expect(p, '>', "the count");
}

static bool reg_name(Parser *p, PtxType type) {
  Token t = p->tok;
  if (t.kind != TK_WORD) return parse_error(p, &t, "a register name is expected here");
  parse_next(p);
  uint32_t count = 0;
  if (parse_is(p, '<') && !reg_count(p, &count)) return false;
  if (!sym_add(p, &t, count ? SYM_RANGE : SYM_REG, p->m->nreg_decls)) return false;
  *arena_push(p->arena, p->m->reg_decls, p->m->nreg_decls, p->decls_cap) =
      (PtxRegDecl){arena_strndup(p->arena, t.text, t.len), type, count, t.line};
  uint32_t *total = type == PTX_T_PRED ? &p->f->preds_declared : &p->f->regs_declared;
  *total += count ? count : 1;
  return true;
}

bool parse_reg_decl(Parser *p) {
  parse_next(p); // .reg
  Token t = p->tok;
  PtxType type;
  if (!p->f) return parse_error(p, &t, "registers are declared inside functions");
  if (t.kind == TK_DOT && (token_is(&t, "v2") || token_is(&t, "v4")))
    return parse_error(p, &t, "vector registers are not supported: declare scalars");
  if (!type_of(&t, &type)) return parse_error(p, &t, "a register type is expected here");
  if (type == PTX_T_B8 || type == PTX_T_U8 || type == PTX_T_S8)
    return parse_error(p, &t, "there are no 8-bit registers; hold bytes in .b16");
  char class = ptx_type_class(type);
  if (class == 'X' && type != PTX_T_F16X2)
    return parse_error(p, &t, "\".%s\" is no register type; use .b%d", ptx_type_text(type),
                       ptx_type_bits(type));
  parse_next(p);
  int32_t first = p->m->nreg_decls;
  for (;;) {
    if (!reg_name(p, type)) return false;
    if (!parse_is(p, ',')) break;
    parse_next(p);
  }
  if (!parse_is(p, ';')) return parse_error(p, &p->tok, "\";\" is expected behind the registers");
  parse_item(p, PTX_I_REGS, first)->n = p->m->nreg_decls - first;
  parse_next(p);
  return true;
}

// ---- variables ---------------------------------------------------------------------------------
static bool power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

static bool parse_align(Parser *p, uint32_t *align) {
  parse_next(p);
  Token t = p->tok;
  int64_t n;
  if (!parse_const(p, &n)) return false;
  if (!power_of_two(n) || n > 1 << 20)
    return parse_error(p, &t, "an alignment is a power of two, not %lld", (long long)n);
  *align = (uint32_t)n;
  return true;
}

// .ptr {.space} {.align n}
static bool parse_ptr(Parser *p, PtxVar *v) {
  parse_next(p);
  v->is_ptr = true;
  while (p->tok.kind == TK_DOT) {
    if (token_is(&p->tok, "align")) {
      if (!parse_align(p, &v->ptr_align)) return false;
    } else {
      v->ptr_space = arena_strndup(p->arena, p->tok.text, p->tok.len);
      parse_next(p);
    }
  }
  return true;
}

// .attribute(.managed): kept as text.
static bool parse_attribute(Parser *p, PtxVar *v) {
  const char *from = p->tok.text - 1;
  parse_next(p);
  while (!parse_is(p, ')')) {
    if (p->tok.kind == TK_END || parse_is(p, ';'))
      return parse_error(p, &p->tok, "\")\" is expected behind the attribute");
    parse_next(p);
  }
  v->attribute = arena_strndup(p->arena, from, (size_t)(p->tok.text + 1 - from));
  parse_next(p);
  return true;
}

// Alignment, vector, type and name; everything before the dimensions.
bool parse_var_head(Parser *p, PtxVar *v, Token *name) {
  v->vec = 1;
  v->func = -1;
  while (p->tok.kind == TK_DOT) {
    Token t = p->tok;
    PtxType type;
    if (token_is(&t, "align")) {
      v->align_given = true;
      if (!parse_align(p, &v->align)) return false;
    } else if (token_is(&t, "ptr")) {
      if (!parse_ptr(p, v)) return false;
    } else if (token_is(&t, "attribute")) {
      if (!parse_attribute(p, v)) return false;
    } else if (token_is(&t, "v2") || token_is(&t, "v4")) {
      v->vec = (uint8_t)(t.text[1] - '0');
      parse_next(p);
    } else if (type_of(&t, &type) && !v->type) {
      v->type = type;
      parse_next(p);
    } else {
      return parse_error(p, &t, "\".%.*s\" can't stand in a declaration", (int)t.len, t.text);
    }
  }
  *name = p->tok;
  if (name->kind != TK_WORD) return parse_error(p, name, "the name of a variable is expected here");
  if (!v->type) return parse_error(p, name, "\"%.*s\" has no type", (int)name->len, name->text);
  if (v->type == PTX_T_PRED || ptx_type_class(v->type) == 'X')
    return parse_error(p, name, "a variable can't be of type .%s", ptx_type_text(v->type));
  v->bytes = (uint64_t)ptx_type_bits(v->type) / 8 * v->vec;
  if (!v->align_given) v->align = (uint32_t)v->bytes;
  v->line = name->line;
  v->col = name->col;
  parse_next(p);
  return true;
}

// [4][3]: 0 stands for an empty first one.
bool parse_dims(Parser *p, PtxVar *v, uint64_t *dims, int *ndims) {
  for (*ndims = 0; parse_is(p, '[');) {
    parse_next(p);
    Token t = p->tok;
    if (*ndims == MAX_DIMS)
      return parse_error(p, &t, "an array has at most %d dimensions", MAX_DIMS);
    int64_t n = 0;
    if (!parse_is(p, ']') && (!parse_const(p, &n) || n <= 0))
      return n <= 0 && parse_error(p, &t, "an array's size is a positive number");
    if (n == 0 && *ndims) return parse_error(p, &t, "only the first size may be left out");
    dims[(*ndims)++] = (uint64_t)n;
    if (__builtin_mul_overflow(v->bytes, (uint64_t)n, &v->bytes) || v->bytes > 1ull << 40)
      return parse_error(p, &t, "this array is too large");
    if (!parse_expect(p, ']', "the size")) return false;
  }
  v->is_array = *ndims > 0;
  return true;
}

int32_t parse_var_add(Parser *p, const PtxVar *v, const Token *name) {
  PtxModule *m = p->m;
  Sym *old = sym_find(p, name->text, name->len, sym_hash(name->text, name->len), SYM_VAR);
  // An extern declaration may be repeated, and be followed by the definition.
  if (old && old->depth == p->depth && (m->vars[old->index].is_extern || v->is_extern)) {
    if (!v->is_extern) {
      const char *kept = m->vars[old->index].name;
      m->vars[old->index] = *v;
      m->vars[old->index].name = kept;
    }
    return old->index;
  }
  bool anonymous = token_is(name, "_");
  if (!anonymous && !sym_add(p, name, SYM_VAR, m->nvars)) return -1;
  PtxVar *kept = arena_push(p->arena, m->vars, m->nvars, p->vars_cap);
  *kept = *v;
  kept->name = arena_strndup(p->arena, name->text, name->len);
  return m->nvars - 1;
}

// A variable has 2^40 bytes at most and a text 2^28 characters: the sum is no more than 2^64.
uint32_t parse_place(uint64_t *frame, const PtxVar *v) {
  uint64_t at = (*frame + v->align - 1) / v->align * v->align;
  *frame = at + v->bytes;
  return (uint32_t)at;
}

static void layout(Parser *p, PtxVar *v) {
  if (v->space == PTX_S_SHARED && !v->is_extern)
    v->offset = parse_place(p->f ? &p->f->shared_bytes : &p->module_shared, v);
  if (v->space == PTX_S_LOCAL && p->f) v->offset = parse_place(&p->f->local_bytes, v);
  if (v->space == PTX_S_PARAM && p->f) v->offset = parse_place(&p->f->call_bytes, v);
}

static bool one_variable(Parser *p, const PtxVar *proto, bool first) {
  PtxVar v = *proto;
  Token name;
  uint64_t dims[MAX_DIMS];
  int ndims;
  if (first) {
    if (!parse_var_head(p, &v, &name)) return false;
  } else {
    name = p->tok;
    if (name.kind != TK_WORD) return parse_error(p, &name, "a name is expected here");
    parse_next(p);
  }
  v.space = proto->space;
  v.func = p->f ? p->func : -1;
  v.call_param = p->f && v.space == PTX_S_PARAM;
  if (!parse_dims(p, &v, dims, &ndims)) return false;
  if (parse_is(p, '=')) {
    if (v.space != PTX_S_GLOBAL && v.space != PTX_S_CONST)
      return parse_error(p, &p->tok, "only .global and .const variables can be initialised");
    parse_next(p);
    if (!parse_initialiser(p, &v, dims, ndims)) return false;
  } else if (v.bytes == 0 && !v.is_extern && v.space != PTX_S_PARAM) {
    return parse_error(p, &name, "\"%.*s\" has no size; only .extern arrays may leave it out",
                       (int)name.len, name.text);
  }
  int32_t index = parse_var_add(p, &v, &name);
  if (index < 0) return false;
  layout(p, &p->m->vars[index]);
  parse_item(p, PTX_I_VAR, index);
  if (!parse_is(p, ',')) return true;
  parse_next(p);
  PtxVar next = v;
  next.bytes = (uint64_t)ptx_type_bits(v.type) / 8 * v.vec;
  next.init = NULL;
  next.relocs = NULL;
  next.nrelocs = 0;
  return one_variable(p, &next, false);
}

bool parse_var_decl(Parser *p, PtxSpace space, Linkage link) {
  parse_next(p); // .shared ...
  PtxVar v = {.space = space, .is_extern = link.is_extern, .is_visible = link.visible,
              .is_weak = link.weak, .is_common = link.common};
  if (!one_variable(p, &v, true)) return false;
  return parse_expect(p, ';', "the declaration");
}

// ---- tables ------------------------------------------------------------------------------------
static bool raw_until_semicolon(Parser *p, PtxTable *t) {
  const char *from = p->tok.text - 1;
  while (!parse_is(p, ';')) {
    if (p->tok.kind == TK_END) return parse_error(p, &p->tok, "\";\" is expected here");
    parse_next(p);
  }
  t->raw = arena_strndup(p->arena, from, (size_t)(p->tok.text - from));
  return true;
}

static bool table_targets(Parser *p, PtxTable *table) {
  Token *names = NULL;
  int n = 0, cap = 0;
  parse_next(p);
  for (;;) {
    if (p->tok.kind != TK_WORD) return parse_error(p, &p->tok, "a label is expected here");
    *arena_push(p->arena, names, n, cap) = p->tok;
    parse_next(p);
    if (!parse_is(p, ',')) break;
    parse_next(p);
  }
  table->n = n;
  table->targets = arena_array(p->arena, int32_t, n);
  table->labels = arena_array(p->arena, int32_t, n);
  for (int i = 0; i < n; i++) label_use(p, &names[i], &table->targets[i], &table->labels[i]);
  return true;
}

// `name` and its colon have been taken; .branchtargets, .calltargets or .callprototype is in hand.
bool parse_table(Parser *p, const Token *name) {
  PtxTable table = {.name = arena_strndup(p->arena, name->text, name->len), .func = p->func,
                    .line = name->line};
  bool targets = token_is(&p->tok, "branchtargets");
  if (!(targets ? table_targets(p, &table) : raw_until_semicolon(p, &table))) return false;
  if (!parse_is(p, ';')) return parse_error(p, &p->tok, "\";\" is expected behind the labels");
  if (!sym_add(p, name, SYM_TABLE, p->m->ntables)) return false;
  parse_item(p, PTX_I_TABLE, p->m->ntables);
  *arena_push(p->arena, p->m->tables, p->m->ntables, p->tables_cap) = table;
  parse_next(p);
  return true;
}
