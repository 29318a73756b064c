// Functions: head, performance directives, body.
#include "ptx_parse.h"

#include <string.h>

// ( .param ..., .param ... )
static bool parse_params(Parser *p, PtxFunc *f, int32_t **list, int *n) {
  int cap = 0;
  uint64_t dims[4];
  int ndims;
  parse_next(p);
  while (!parse_is(p, ')')) {
    Token t = p->tok, name;
    PtxVar v = {.space = PTX_S_PARAM};
    if (token_is(&t, "reg"))
      return parse_error(p, &t, "register parameters are not supported: use .param");
    if (!token_is(&t, "param")) return parse_error(p, &t, "\".param\" is expected here");
    parse_next(p);
    if (!parse_var_head(p, &v, &name)) return false;
    v.space = PTX_S_PARAM;
    v.func = p->func;
    if (!parse_dims(p, &v, dims, &ndims)) return false;
    if (v.bytes > 1 << 20) return parse_error(p, &name, "this parameter is too large");
    v.offset = parse_place(&f->param_bytes, &v);
    int32_t index = parse_var_add(p, &v, &name);
    if (index < 0) return false;
    *arena_push(p->arena, *list, *n, cap) = index;
    if (!parse_is(p, ',')) break;
    parse_next(p);
  }
  return parse_expect(p, ')', "the parameters");
}

static bool parse_counts(Parser *p, uint32_t *v, int most) {
  parse_next(p);
  for (int i = 0; i < most; i++) v[i] = most > 1 ? 1 : 0;
  for (int i = 0;; i++) {
    Token t = p->tok;
    int64_t n;
    if (!parse_const(p, &n)) return false;
    if (i == most || n < 1 || n > UINT32_MAX)
      return parse_error(p, &t, i == most ? "at most %d number%s here" : "a count is expected here",
                         most, most == 1 ? "" : "s");
    v[i] = (uint32_t)n;
    if (!parse_is(p, ',')) return true;
    parse_next(p);
  }
}

static void extra_directive(Parser *p, PtxFunc *f, const char *from) {
  size_t len = (size_t)(p->tok.text - from);
  if (p->tok.kind == TK_DOT) len--;
  while (len && (from[len - 1] == ' ' || from[len - 1] == '\n' || from[len - 1] == '\t' ||
                 from[len - 1] == '\r'))
    len--;
  char *text = arena_strndup(p->arena, from, len);
  f->extra = f->extra ? arena_printf(p->arena, "%s\n%s", f->extra, text) : text;
}

// .maxntid and its like, between the parameters and the body.
static bool parse_performance(Parser *p, PtxFunc *f) {
  const struct { const char *name; uint32_t *v; int n; } known[] = {
      {"maxntid", f->maxntid, 3},        {"reqntid", f->reqntid, 3},
      {"minnctapersm", &f->minnctapersm, 1}, {"maxnreg", &f->maxnreg, 1},
      {"reqnctapercluster", f->cluster, 3},
  };
  while (p->tok.kind == TK_DOT) {
    Token t = p->tok;
    size_t i = 0, n = sizeof known / sizeof *known;
    while (i < n && !token_is(&t, known[i].name)) i++;
    if (i < n) {
      if (!parse_counts(p, known[i].v, known[i].n)) return false;
    } else if (token_is(&t, "noreturn")) {
      f->noreturn = true;
      parse_next(p);
    } else if (token_is(&t, "pragma") || token_is(&t, "maxclusterrank") ||
               token_is(&t, "explicitcluster") || token_is(&t, "blocksareclusters") ||
               token_is(&t, "abi_preserve") || token_is(&t, "abi_preserve_control") ||
               token_is(&t, "unified")) {
      do parse_next(p);
      while (p->tok.kind == TK_INT || p->tok.kind == TK_STRING || parse_is(p, ','));
      if (token_is(&t, "pragma") && !parse_expect(p, ';', ".pragma")) return false;
      extra_directive(p, f, t.text - 1);
    } else {
      return parse_error(p, &t, "unknown directive \".%.*s\" in a function's head", (int)t.len,
                         t.text);
    }
  }
  return true;
}

static bool table_directive(const Token *t) {
  return token_is(t, "branchtargets") || token_is(t, "calltargets") || token_is(t, "callprototype");
}

// name: or name: .branchtargets ...;
static bool parse_label(Parser *p) {
  Token name = p->tok;
  parse_next(p);
  Lex before = p->lex;
  Token colon = p->tok;
  if (lex_peek(&p->lex) == '.') {
    parse_next(p);
    if (table_directive(&p->tok)) return parse_table(p, &name);
    p->lex = before;
    p->tok = colon;
  }
  if (!label_define(p, &name)) return false;
  parse_next(p);
  return true;
}

// Line-wise directives and blocks; everything else is a statement that ends at `;`.
static bool parse_statement(Parser *p) {
  Token t = p->tok;
  if (t.kind == TK_DOT) {
    if (token_is(&t, "reg")) return parse_reg_decl(p);
    if (token_is(&t, "shared")) return parse_var_decl(p, PTX_S_SHARED, (Linkage){0});
    if (token_is(&t, "local")) return parse_var_decl(p, PTX_S_LOCAL, (Linkage){0});
    if (token_is(&t, "param")) return parse_var_decl(p, PTX_S_PARAM, (Linkage){0});
    if (token_is(&t, "global")) return parse_var_decl(p, PTX_S_GLOBAL, (Linkage){0});
    if (token_is(&t, "const")) return parse_var_decl(p, PTX_S_CONST, (Linkage){0});
    if (token_is(&t, "loc")) return parse_raw_line(p);
    if (token_is(&t, "pragma")) return parse_raw_statement(p);
    return parse_error(p, &t, "unknown directive \".%.*s\" in a function", (int)t.len, t.text);
  }
  if (t.kind == TK_WORD && lex_peek(&p->lex) == ':') return parse_label(p);
  return parse_instruction(p);
}

static bool too_many(const Parser *p) { return p->diag->errors >= p->diag->limit; }

// A brace that closes a vector or an initialiser, not a block.
static bool closes_operand(const Parser *p) {
  char next = lex_peek(&p->lex);
  return next == ',' || next == ';' || next == ']';
}

// Behind the next `;`, or at a brace that closes a block.
static void resync(Parser *p) {
  while (p->tok.kind != TK_END && !parse_is(p, ';') && !(parse_is(p, '}') && !closes_operand(p)))
    parse_next(p);
  if (parse_is(p, ';')) parse_next(p);
}

static bool parse_body(Parser *p) {
  int outer = p->depth;
  PtxFunc *f = p->f;
  parse_next(p); // {
  while (!too_many(p)) {
    if (p->tok.kind == TK_END)
      return parse_error(p, &p->tok, "the body of \"%s\" has no closing brace", f->name);
    if (parse_is(p, '{')) {
      if (!scope_open(p)) return false;
      parse_item(p, PTX_I_OPEN, 0);
      parse_next(p);
    } else if (parse_is(p, '}')) {
      f->end_line = p->tok.line;
      parse_item(p, PTX_I_CLOSE, 0);
      if (p->depth == outer) return true;
      scope_close(p);
      parse_next(p);
    } else if (parse_is(p, ';')) {
      parse_next(p);
    } else if (!parse_statement(p)) {
      resync(p);
    }
  }
  return false;
}

static PtxFunc *function_named(Parser *p, const Token *t, int32_t *index) {
  Sym *s = sym_find(p, t->text, t->len, sym_hash(t->text, t->len), SYM_FUNC);
  if (s && p->m->funcs[s->index].defined) {
    parse_error(p, t, "function \"%.*s\" is defined twice", (int)t->len, t->text);
    return NULL;
  }
  if (s) {
    *index = s->index;
    return &p->m->funcs[s->index];
  }
  int32_t next = p->m->nfuncs;
  if (!sym_add(p, t, SYM_FUNC, next)) return NULL;
  PtxFunc *f = arena_push(p->arena, p->m->funcs, p->m->nfuncs, p->funcs_cap);
  *index = next; // only now is there such a function
  *f = (PtxFunc){.name = arena_strndup(p->arena, t->text, t->len)};
  return f;
}

// Opens the scope that parameters and body share.
static bool parse_head(Parser *p, PtxFunc *f, bool entry) {
  Token name;
  Lex before = p->lex;
  Token at = p->tok;
  // The results come before the name: skip to the name first, since it decides which function.
  if (parse_is(p, '(')) {
    if (entry) return parse_error(p, &at, "an entry returns nothing");
    while (!parse_is(p, ')') && p->tok.kind != TK_END) lex_next(&p->lex, &p->tok);
    lex_next(&p->lex, &p->tok);
  }
  name = p->tok;
  if (name.kind != TK_WORD) return parse_error(p, &name, "the name of a function is expected here");
  PtxFunc *slot = function_named(p, &name, &p->func);
  if (!slot) return false;
  f->name = slot->name;
  f->entry = entry;
  f->line = name.line;
  f->col = name.col;
  f->shared_bytes = p->module_shared;
  p->lex = before;
  p->tok = at;
  if (!scope_open(p)) return false;
  if (parse_is(p, '(') && !parse_params(p, f, &f->rets, &f->nrets)) return false;
  parse_next(p); // the name
  if (parse_is(p, '(') && !parse_params(p, f, &f->params, &f->nparams)) return false;
  return parse_performance(p, f);
}

// Room for about one instruction and one item a line of what is left of the file, within reason.
static void make_room(Parser *p, PtxFunc *f) {
  uint32_t lines = p->m->src->nlines - p->lex.line;
  int n = lines < 4096 ? (int)lines + 8 : 4096;
  f->insts = arena_array(p->arena, PtxInst, n);
  p->insts_cap = n;
  if (p->m->nitems + n <= p->items_cap) return;
  size_t bytes = sizeof *p->m->items * (size_t)p->m->nitems;
  p->items_cap = p->m->nitems + n;
  p->m->items =
      arena_grow(p->arena, p->m->items, bytes, sizeof *p->m->items * (size_t)p->items_cap);
}

static bool parse_rest(Parser *p, PtxFunc *f) {
  if (parse_is(p, ';')) {
    parse_item(p, PTX_I_FUNC_DECL, p->func);
    parse_next(p);
    return true;
  }
  if (!parse_is(p, '{')) return parse_error(p, &p->tok, "\"{\" or \";\" is expected here");
  parse_item(p, PTX_I_FUNC, p->func);
  f->defined = true;
  p->regs_cap = p->labels_cap = 0;
  make_room(p, f);
  p->f = f;
  bool ok = parse_body(p);
  if (ok && p->depth != 1) ok = false;
  return ok;
}

bool parse_function(Parser *p, Linkage link, bool entry) {
  PtxFunc f = {.is_extern = link.is_extern, .is_visible = link.visible, .is_weak = link.weak};
  parse_next(p); // .entry or .func
  p->func = -1;
  bool ok = parse_head(p, &f, entry) && parse_rest(p, &f);
  p->f = &f;
  while (p->depth > 0) scope_close(p);
  p->f = NULL;
  if (p->func >= 0) p->m->funcs[p->func] = f;
  if (ok && f.defined) parse_next(p); // }
  return ok;
}
