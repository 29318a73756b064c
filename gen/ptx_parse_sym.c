// Names: one hash table for registers, variables, functions, tables and labels; `{ }` scopes.
#include "ptx_parse.h"

#include <string.h>

// FNV-1a, carried on from the hash of the characters before.
static uint32_t sym_hash_more(uint32_t h, const char *s, size_t n) {
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 16777619u;
  return h;
}

uint32_t sym_hash(const char *s, size_t n) { return sym_hash_more(2166136261u, s, n); }

static Sym **bucket(Parser *p, uint32_t hash) {
  return &p->buckets[(hash ^ hash >> 15) % SYM_BUCKETS];
}

// Innermost first: inner scopes push in front and pop before outer ones.
Sym *sym_find(Parser *p, const char *name, uint32_t len, uint32_t hash, int kinds) {
  for (Sym *s = *bucket(p, hash); s; s = s->below)
    if (s->hash == hash && (s->kind & kinds) && s->len == len && !memcmp(s->name, name, len))
      return s;
  return NULL;
}

Sym *sym_add(Parser *p, const Token *t, SymKind kind, int32_t index) {
  uint32_t hash = sym_hash(t->text, t->len);
  int rivals = kind == SYM_RANGE ? SYM_RANGE : kind == SYM_LABEL ? SYM_LABEL | SYM_TABLE
                                                                  : ~(SYM_RANGE | SYM_LABEL);
  Sym *old = sym_find(p, t->text, t->len, hash, rivals);
  if (old && old->depth == p->depth) {
    parse_error(p, t, kind == SYM_LABEL ? "label \"%.*s\" is defined twice in this block"
                                        : "\"%.*s\" is declared twice in this block",
                (int)t->len, t->text);
    return NULL;
  }
  Sym *s = arena_new_of(p->arena, Sym);
  Sym **b = bucket(p, hash);
  *s = (Sym){t->text, t->len, hash, (uint8_t)kind, index, p->depth, NULL, *b,
             p->scopes[p->depth].syms};
  *b = s;
  p->scopes[p->depth].syms = s;
  return s;
}

bool scope_open(Parser *p) {
  if (p->depth + 1 == MAX_SCOPES) return parse_error(p, &p->tok, "blocks are nested too deeply");
  p->scopes[++p->depth] = (Scope){NULL, p->nuses, p->tok.line, p->tok.col};
  return true;
}

// Uses that find their label here are done; the others may mean a label of an outer block.
static void settle_uses(Parser *p) {
  int kept = p->scopes[p->depth].first_use;
  for (int i = kept; i < p->nuses; i++) {
    LabelUse *u = &p->uses[i];
    Sym *s = sym_find(p, u->name, u->len, u->hash, SYM_LABEL);
    if (s && s->depth == p->depth) {
      *u->target = p->f->labels[s->index].target;
      *u->label = s->index;
    } else {
      p->uses[kept++] = *u;
    }
  }
  p->nuses = kept;
}

static void undefined_labels(Parser *p) {
  if (!p->nuses) return;
  const char **names = arena_array(p->arena, const char *, p->f->nlabels + 1);
  for (int i = 0; i < p->f->nlabels; i++) names[i] = p->f->labels[i].name;
  for (int i = 0; i < p->nuses; i++) {
    const LabelUse *u = &p->uses[i];
    char *name = arena_strndup(p->arena, u->name, u->len);
    parse_error(p, &u->at, "label \"%s\" is not defined in \"%s\"%s", name, p->f->name,
                diag_nearest(p->arena, name, names, p->f->nlabels));
  }
  p->nuses = 0;
}

void scope_close(Parser *p) {
  settle_uses(p);
  for (Sym *s = p->scopes[p->depth].syms; s; s = s->same_scope) *bucket(p, s->hash) = s->below;
  p->depth--;
  if (p->depth == 0) undefined_labels(p);
}

void label_use(Parser *p, const Token *t, int32_t *target, int32_t *label) {
  *arena_push(p->arena, p->uses, p->nuses, p->uses_cap) =
      (LabelUse){t->text, t->len, sym_hash(t->text, t->len), *t, target, label};
}

bool label_define(Parser *p, const Token *t) {
  PtxFunc *f = p->f;
  if (!sym_add(p, t, SYM_LABEL, f->nlabels)) return false;
  parse_item(p, PTX_I_LABEL, f->nlabels);
  *arena_push(p->arena, f->labels, f->nlabels, p->labels_cap) =
      (PtxLabel){arena_strndup(p->arena, t->text, t->len), f->ninsts, t->line};
  return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Splits "%r12" into the range's name and 12, if that is how it can be read.
static bool split_number(const Token *t, uint32_t *prefix, uint32_t *number) {
  uint32_t n = t->len;
  while (n > 1 && is_digit(t->text[n - 1])) n--;
  if (n == t->len || t->len - n > 9) return false;
  uint32_t v = 0;
  for (uint32_t i = n; i < t->len; i++) v = v * 10 + (uint32_t)(t->text[i] - '0');
  if (t->text[n] == '0' && t->len - n > 1) return false;
  *prefix = n;
  *number = v;
  return true;
}

static void reg_operand(Parser *p, Sym *s, uint32_t number, const Token *t, PtxOperand *o) {
  const PtxRegDecl *d = &p->m->reg_decls[s->index];
  PtxFunc *f = p->f;
  if (!s->regs) s->regs = arena_array(p->arena, int32_t, d->count ? d->count : 1);
  if (!s->regs[number]) {
    *arena_push(p->arena, f->regs, f->nregs, p->regs_cap) =
        (PtxReg){arena_strndup(p->arena, t->text, t->len), d->type, d->line, false};
    s->regs[number] = f->nregs;
  }
  o->kind = PTX_O_REG;
  o->reg = s->regs[number] - 1;
  o->type = (uint8_t)d->type;
}

// So that each undeclared name is reported once: declares it with a type that fits everywhere.
static void declare_unknown(Parser *p, const Token *t) {
  int depth = p->depth;
  if (!p->f) return;
  p->depth = 1;
  *arena_push(p->arena, p->m->reg_decls, p->m->nreg_decls, p->decls_cap) =
      (PtxRegDecl){arena_strndup(p->arena, t->text, t->len), PTX_T_NONE, 0, t->line};
  if (depth <= 1) sym_add(p, t, SYM_REG, p->m->nreg_decls - 1);
  p->depth = depth;
}

static bool undeclared(Parser *p, const Token *t, PtxOperand *o) {
  int n = 0, cap = 0;
  const char **names = NULL;
  char *name = arena_strndup(p->arena, t->text, t->len);
  uint32_t prefix = 0, number = 0;
  bool numbered = split_number(t, &prefix, &number);
  for (int d = p->depth; d >= 0; d--)
    for (Sym *s = p->scopes[d].syms; s; s = s->same_scope) {
      const PtxRegDecl *r = s->kind == SYM_RANGE ? &p->m->reg_decls[s->index] : NULL;
      if (r && numbered && s->len == prefix && !memcmp(s->name, t->text, prefix)) {
        parse_error(p, t, "\"%s\" is not declared: \"%s<%u>\" in line %u ends at %s%d", name,
                    r->name, r->count, r->line, r->name, (int)r->count - 1);
        declare_unknown(p, t);
        return p->f && p->depth <= 1 && sym_operand(p, t, o);
      }
      if (!r && s->kind != SYM_LABEL)
        *arena_push(p->arena, names, n, cap) = arena_strndup(p->arena, s->name, s->len);
    }
  parse_error(p, t, "\"%s\" is not declared%s", name, diag_nearest(p->arena, name, names, n));
  if (p->depth > 1) return false;
  declare_unknown(p, t);
  return p->f && sym_operand(p, t, o);
}

static bool sreg_operand(Parser *p, const Token *t, PtxOperand *o, bool *ok) {
  int s = *t->text == '%' ? ptx_sreg_find(t->text, t->len) : -1;
  if (s < 0) return false;
  o->kind = PTX_O_SREG;
  o->sreg = s;
  o->type = (uint8_t)ptx_sreg_info((PtxSreg)s)->type;
  *ok = true;
  if (!ptx_sreg_has_dims((PtxSreg)s)) return true;
  const Token *d = &p->tok;
  if (d->kind != TK_DOT || d->len != 1 || *d->text < 'w' || *d->text > 'z') {
    *ok = parse_error(p, t, "%.*s needs .x, .y or .z", (int)t->len, t->text);
    return true;
  }
  o->sreg_dim = *d->text == 'w' ? 3 : (uint8_t)(*d->text - 'x');
  parse_next(p);
  return true;
}

// A name as a whole, and split behind a range's name: both hashes in one walk.
typedef struct Name {
  uint32_t hash, prefix, prefix_hash, number;
  bool numbered;
} Name;

static Name read_name(const Token *t) {
  Name n = {.numbered = split_number(t, &n.prefix, &n.number)};
  if (!n.numbered) n.prefix = t->len;
  n.prefix_hash = sym_hash(t->text, n.prefix);
  n.hash = sym_hash_more(n.prefix_hash, t->text + n.prefix, t->len - n.prefix);
  return n;
}

static bool range_operand(Parser *p, const Token *t, const Name *n, PtxOperand *o) {
  if (!n->numbered) return false;
  Sym *s = sym_find(p, t->text, n->prefix, n->prefix_hash, SYM_RANGE);
  if (!s || n->number >= p->m->reg_decls[s->index].count) return false;
  reg_operand(p, s, n->number, t, o);
  return true;
}

bool sym_register(Parser *p, const Token *t, PtxOperand *o) {
  Name n = read_name(t);
  Sym *s = sym_find(p, t->text, t->len, n.hash, SYM_REG);
  if (!s) return range_operand(p, t, &n, o);
  reg_operand(p, s, 0, t, o);
  return true;
}

// `t` has been taken already.
bool sym_operand(Parser *p, const Token *t, PtxOperand *o) {
  bool ok;
  o->col = t->col;
  Name n = read_name(t);
  Sym *s = sym_find(p, t->text, t->len, n.hash, SYM_REG | SYM_VAR | SYM_FUNC | SYM_TABLE);
  if (!s) {
    if (range_operand(p, t, &n, o)) return true;
    return sreg_operand(p, t, o, &ok) ? ok : undeclared(p, t, o);
  }
  o->sym = s->index;
  switch (s->kind) {
  case SYM_REG: reg_operand(p, s, 0, t, o); break;
  case SYM_VAR: o->kind = PTX_O_SYM; break;
  case SYM_FUNC: o->kind = PTX_O_FUNC; break;
  default: o->kind = PTX_O_TABLE; break;
  }
  return true;
}
