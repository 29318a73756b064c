// The module level of the parser, messages, and items.
#include "ptx_parse.h"

#include <string.h>

// ---- tokens and messages -----------------------------------------------------------------------
bool parse_error(Parser *p, const Token *at, const char *fmt, ...) {
  Place place = {.src = p->m->src, .line = at->line, .col = at->col, .span = at->len,
                 .origin = linemap_at(p->map, at->line)};
  if (at->kind == TK_BAD) {
    static const char *const faults[] = {
        [LEX_CHAR] = "this character has no place in PTX",
        [LEX_NUMBER] = "malformed number",
        [LEX_OVERFLOW] = "this number does not fit in 64 bits",
        [LEX_STRING] = "this string has no end on its line",
        [LEX_COMMENT] = "this comment has no end",
    };
    place.span = place.span ? place.span : 1;
    diag_error(p->diag, place, "%s", faults[at->bits]);
    return false;
  }
  va_list ap;
  va_start(ap, fmt);
  diag_error(p->diag, place, "%s", arena_vprintf(p->arena, fmt, ap));
  va_end(ap);
  return false;
}

bool parse_expect(Parser *p, char punct, const char *after) {
  if (!parse_is(p, punct))
    return parse_error(p, &p->tok, "\"%c\" is expected behind %s", punct, after);
  parse_next(p);
  return true;
}

// ---- items -------------------------------------------------------------------------------------
// "// implicit-def: %r7": LLVM says that a register's value does not matter.
static void implicit_def(Parser *p, const Comment *c) {
  static const char mark[] = "// implicit-def: ";
  size_t n = sizeof mark - 1;
  if (!p->f || c->len <= n || memcmp(c->text, mark, n)) return;
  Token t = {.kind = TK_WORD, .text = c->text + n, .len = c->len - (uint32_t)n};
  PtxOperand o = {0};
  if (sym_register(p, &t, &o)) p->f->regs[o.reg].undefined = true;
}

static void take_comments(Parser *p) {
  PtxModule *m = p->m;
  for (int i = 0; i < p->lex.ncomments; i++) {
    const Comment *c = &p->lex.comments[i];
    *arena_push(p->arena, m->items, m->nitems, p->items_cap) =
        (PtxItem){.kind = c->trailing ? PTX_I_TRAILING : PTX_I_COMMENT, .len = c->len,
                  .text = c->text};
    implicit_def(p, c);
  }
  p->lex.ncomments = 0;
}

PtxItem *parse_item(Parser *p, PtxItemKind kind, int32_t index) {
  take_comments(p);
  PtxItem *item = arena_push(p->arena, p->m->items, p->m->nitems, p->items_cap);
  *item = (PtxItem){.kind = (uint8_t)kind, .index = index, .n = 1};
  return item;
}

static void raw_item(Parser *p, const char *from, const char *to) {
  PtxItem *item = parse_item(p, PTX_I_RAW, 0);
  item->text = from;
  item->len = (uint32_t)(to - from);
}

bool parse_raw_line(Parser *p) {
  const char *from = p->tok.text - 1;
  Token rest;
  lex_line(&p->lex, &rest);
  raw_item(p, from, rest.text + rest.len);
  parse_next(p);
  return true;
}

bool parse_raw_statement(Parser *p) {
  const char *from = p->tok.text - 1;
  while (!parse_is(p, ';')) {
    if (p->tok.kind == TK_END || p->tok.kind == TK_BAD)
      return parse_error(p, &p->tok, "\";\" is expected behind this directive");
    parse_next(p);
  }
  raw_item(p, from, p->tok.text + 1);
  parse_next(p);
  return true;
}

static bool parse_section(Parser *p) {
  Token at = p->tok, body;
  if (!lex_braces(&p->lex, &body)) return parse_error(p, &at, "this section has no closing brace");
  raw_item(p, at.text - 1, body.text + body.len);
  parse_next(p);
  return true;
}

// ---- the head of a file ------------------------------------------------------------------------
static bool parse_version(Parser *p) {
  parse_next(p);
  Token t = p->tok;
  const char *s = t.text;
  if (t.kind != TK_FLOAT || t.len != 3 || s[1] != '.' || s[0] < '1' || s[0] > '9' || s[2] < '0' ||
      s[2] > '9')
    return parse_error(p, &t, "a version like 8.0 is expected here");
  p->m->version = (s[0] - '0') * 10 + (s[2] - '0');
  p->m->version_line = t.line;
  p->m->version_col = t.col;
  parse_next(p);
  return true;
}

static bool target_number(Parser *p, const Token *t) {
  int sm = 0;
  uint32_t i = 3;
  if (t->len < 5 || memcmp(t->text, "sm_", 3)) return false;
  for (; i < t->len && i < 7 && t->text[i] >= '0' && t->text[i] <= '9'; i++)
    sm = sm * 10 + (t->text[i] - '0');
  char suffix = i + 1 == t->len ? t->text[i++] : 0;
  if (i != t->len || !ptx_target_min_version(sm, suffix)) return false;
  p->m->sm = sm;
  p->m->sm_suffix = suffix;
  return true;
}

static bool parse_target(Parser *p) {
  parse_next(p);
  Token first = p->tok;
  const char *end = first.text;
  for (;;) {
    Token t = p->tok;
    if (t.kind != TK_WORD) return parse_error(p, &t, "a target like sm_80 is expected here");
    bool sm = t.len > 3 && !memcmp(t.text, "sm_", 3);
    if (sm && !target_number(p, &t))
      return parse_error(p, &t, "unknown target \"%.*s\"", (int)t.len, t.text);
    if (!sm && !token_is(&t, "debug") && !token_is(&t, "texmode_independent") &&
        !token_is(&t, "texmode_unified") && !token_is(&t, "map_f64_to_f32"))
      return parse_error(p, &t, "unknown target \"%.*s\"", (int)t.len, t.text);
    end = t.text + t.len;
    parse_next(p);
    if (!parse_is(p, ',')) break;
    parse_next(p);
  }
  p->m->target_text = arena_strndup(p->arena, first.text, (size_t)(end - first.text));
  p->m->target_line = first.line;
  p->m->target_col = first.col;
  return true;
}

static bool parse_address_size(Parser *p) {
  parse_next(p);
  Token t = p->tok;
  if (t.kind != TK_INT || (t.bits != 64 && t.bits != 32))
    return parse_error(p, &t, "the address size is 64 or 32");
  p->m->address_size = (int)t.bits;
  parse_next(p);
  return true;
}

// ---- the module --------------------------------------------------------------------------------
static bool parse_linkage(Parser *p, Linkage *l) {
  for (;; parse_next(p)) {
    if (token_is(&p->tok, "visible")) l->visible = true;
    else if (token_is(&p->tok, "extern")) l->is_extern = true;
    else if (token_is(&p->tok, "weak")) l->weak = true;
    else if (token_is(&p->tok, "common")) l->common = true;
    else return p->tok.kind == TK_DOT;
  }
}

static bool parse_declaration(Parser *p) {
  Linkage link = {0};
  static const struct { const char *name; PtxSpace space; } spaces[] = {
      {"global", PTX_S_GLOBAL}, {"const", PTX_S_CONST}, {"shared", PTX_S_SHARED},
      {"local", PTX_S_LOCAL},
  };
  if (!parse_linkage(p, &link)) return parse_error(p, &p->tok, "a declaration is expected here");
  if (token_is(&p->tok, "entry")) return parse_function(p, link, true);
  if (token_is(&p->tok, "func")) return parse_function(p, link, false);
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
    if (token_is(&p->tok, spaces[i].name)) return parse_var_decl(p, spaces[i].space, link);
  return parse_error(p, &p->tok, "unknown directive \".%.*s\"", (int)p->tok.len, p->tok.text);
}

static bool parse_top(Parser *p) {
  const Token *t = &p->tok;
  if (token_is(t, "version")) return parse_version(p);
  if (token_is(t, "target")) return parse_target(p);
  if (token_is(t, "address_size")) return parse_address_size(p);
  if (token_is(t, "file") || token_is(t, "loc")) return parse_raw_line(p);
  if (token_is(t, "section")) return parse_section(p);
  if (token_is(t, "pragma") || token_is(t, "alias")) return parse_raw_statement(p);
  if (t->kind != TK_DOT) return parse_error(p, t, "a directive is expected here");
  return parse_declaration(p);
}

// To the next directive that can start a declaration at the module's level.
static void resync(Parser *p) {
  int depth = 0;
  while (p->tok.kind != TK_END) {
    if (parse_is(p, '{')) depth++;
    if (parse_is(p, '}') && depth > 0) depth--;
    bool end = parse_is(p, ';') || (parse_is(p, '}') && lex_peek(&p->lex) != ';');
    if (depth == 0 && end) {
      parse_next(p);
      return;
    }
    parse_next(p);
  }
}

static void check_head(Parser *p) {
  PtxModule *m = p->m;
  Token top = {.line = 1, .col = 1};
  if (!m->version) parse_error(p, &top, ".version is missing");
  else if (!m->target_text) parse_error(p, &top, ".target is missing");
  else if (!m->sm) parse_error(p, &(Token){.line = m->target_line, .col = m->target_col,
                                           .len = (uint32_t)strlen(m->target_text)},
                               ".target names no architecture (sm_80 ...)");
}

PtxModule *ptx_parse(Arena *a, const Source *src, const LineMap *map, Diag *d) {
  Parser *p = arena_new_of(a, Parser);
  int errors = d->errors;
  p->arena = a;
  p->map = map ? map : ptx_loc_map(a, src);
  p->diag = d;
  p->m = arena_new_of(a, PtxModule);
  *p->m = (PtxModule){.arena = a, .src = src, .map = p->map, .address_size = 64};
  lex_init(&p->lex, a, src);
  parse_next(p);
  while (p->tok.kind != TK_END && d->errors < d->limit)
    if (!parse_top(p)) resync(p);
  take_comments(p);
  if (d->errors == errors) check_head(p);
  return d->errors == errors ? p->m : NULL;
}

const PtxFunc *ptx_entry(const PtxModule *m, const char *name) {
  const PtxFunc *found = NULL;
  for (int i = 0; i < m->nfuncs; i++) {
    const PtxFunc *f = &m->funcs[i];
    if (!f->entry || !f->defined) continue;
    if (name ? !strcmp(f->name, name) : true) {
      if (found) return NULL;
      found = f;
    }
  }
  return found;
}
