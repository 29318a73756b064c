// What is refused in a hook, with its place: what no point would call, and what would change the
// template around it.
#include <stdarg.h>
#include <string.h>

#include "hook.h"

// ---- places in the file -------------------------------------------------------------------------
static bool in_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

// `word` in a line of the file; its column is 0 when it does not stand there.
static Place word_at(const Source *src, uint32_t line, const char *word) {
  size_t len, n = strlen(word);
  const char *text = source_line(src, line, &len);
  Place at = {.src = src, .line = line};
  for (size_t i = 0; i + n <= len && !at.col; i++)
    if (!memcmp(text + i, word, n) && (!i || !in_word(text[i - 1])) &&
        (i + n == len || !in_word(text[i + n])))
      at.col = (uint32_t)i + 1, at.span = (uint32_t)n;
  return at;
}

// The first Lua line that has `word`; `local_only`: as a local function.
static Place lua_word(const Source *src, const char *word, bool local_only) {
  for (uint32_t line = 1; line <= src->nlines; line++) {
    size_t len;
    const char *text = source_line(src, line, &len);
    size_t at = 0;
    while (at < len && (text[at] == ' ' || text[at] == '\t')) at++;
    if (at == len || text[at++] != '|') continue;
    while (at < len && text[at] == ' ') at++;
    static const char local[] = "local function ";
    if (local_only && (len - at < sizeof local || memcmp(text + at, local, sizeof local - 1)))
      continue;
    Place found = word_at(src, line, word);
    if (found.col) return found;
  }
  return (Place){.src = src};
}

// Where a function of the hook begins.
static Place function_at(lua_State *L, const Source *src, const char *name) {
  lua_Debug ar = {.linedefined = 1};
  if (hook_push_function(L, name)) lua_getinfo(L, ">S", &ar);
  return word_at(src, (uint32_t)ar.linedefined, name);
}

// ---- parts --------------------------------------------------------------------------------------
__attribute__((format(printf, 4, 5)))
static void refuse(lua_State *L, Expansion *x, Place at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *what = arena_vprintf(x->arena, fmt, ap);
  va_end(ap);
  diag_error(x->d, at, "%s", what);
  lua_env_reported(L);
}

// A name that the hook gave away, as a function or not, and that no point calls.
static void check_function(lua_State *L, Expansion *x, const char *name, bool is_function) {
  const char *known[HOOK_PARTS] = {NULL};
  int n = 0;
  for (int i = 0; i < HOOK_PARTS; i++)
    if (hook_part[i].function) known[n++] = hook_part[i].function;
  for (int i = 0; i < n; i++) {
    if (strcmp(known[i], name)) continue;
    if (!is_function)
      refuse(L, x, lua_word(x->hook, name, false), "%s is not a function, and nothing calls it",
             name);
    return;
  }
  const char *near = is_function ? diag_nearest(x->arena, name, known, n) : "";
  if (*near)
    refuse(L, x, function_at(L, x->hook, name),
           "no point calls the hook's %s%s; a helper may be local", name, near);
}

// The hook's globals, at the top of the stack; of several that are wrong the first by name.
static void check_globals(lua_State *L, Expansion *x) {
  const char *last = "";
  for (;;) {
    const char *next = NULL;
    bool is_function = false;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
      if (lua_type(L, -2) != LUA_TSTRING) continue;
      const char *name = lua_tostring(L, -2);
      if (strcmp(name, last) > 0 && (!next || strcmp(name, next) < 0))
        next = name, is_function = lua_isfunction(L, -1);
    }
    if (!next) return;
    check_function(L, x, next, is_function);
    last = next;
  }
}

static const char *place_of(lua_State *L, const Expansion *x, HookPartId id) {
  if (!hook_has_part(L, x, id)) return NULL;
  Place at = function_at(L, x->hook, hook_part[id].function);
  return arena_printf(x->arena, "%s:%u", x->hook->name, at.line);
}

void hook_check_parts(lua_State *L, Expansion *x) {
  check_globals(L, x);
  x->v->keys_any_at = place_of(L, x, HOOK_ANY);
  x->v->keys_all_at = place_of(L, x, HOOK_ALL);
  for (int i = 0; i < HOOK_PARTS; i++) {
    const HookPart *p = &hook_part[i];
    bool there = hook_has_part(L, x, (HookPartId)i);
    if (!there && p->function && lua_word(x->hook, p->function, true).col)
      refuse(L, x, lua_word(x->hook, p->function, true), "%s is local: no point can call it",
             p->function);
    if (there && p->with && !hook_push_function(L, p->with))
      refuse(L, x, function_at(L, x->hook, p->function),
             "%s() without %s(): nothing says which keys are seen", p->function, p->with);
    if (there && p->with) lua_pop(L, 1);
  }
  if (!hook_has_part(L, x, HOOK_LINES) && !hook_has_part(L, x, HOOK_VISIBLE))
    refuse(L, x, (Place){.src = x->hook}, "the hook changes nothing: it has neither lines nor %s()",
           hook_part[HOOK_VISIBLE].function);
}

// ---- scope --------------------------------------------------------------------------------------
// What the lines leave open, after each of them.
typedef struct Scope {
  int depth, least; // braces open; the fewest in the line in hand
  bool comment;     // inside of one that began with /*
  char last;        // character that is neither blank nor of a comment
} Scope;

static void scan_line(Scope *s, const Line *l) {
  bool quote = false;
  s->least = s->depth;
  for (uint32_t i = 0; i < l->len; i++) {
    char c = l->text[i], next = i + 1 < l->len ? l->text[i + 1] : 0;
    if (s->comment) {
      if (c == '*' && next == '/') s->comment = false, i++;
      continue;
    }
    if (!quote && c == '/' && next == '/') return;
    if (!quote && c == '/' && next == '*') {
      s->comment = true, i++;
      continue;
    }
    if (c == '"') quote = !quote;
    else if (!quote && c == '{') s->depth++;
    else if (!quote && c == '}' && --s->depth < s->least) s->least = s->depth;
    if (c != ' ' && c != '\t') s->last = c;
  }
}

void hook_check_scope(lua_State *L, Expansion *x, int first) {
  const Block *b = x->sink;
  const Line *brace = NULL, *comment = NULL, *statement = NULL;
  Scope s = {.last = ';'};
  for (int i = first; i < b->n; i++) {
    const Line *l = &b->v[i];
    bool in_comment = s.comment, begins = strchr(";{}:", s.last) != NULL;
    int depth = s.depth;
    scan_line(&s, l);
    if (s.least < 0)
      refuse(L, x, (Place){.origin = l->origin},
             "a closing brace without one that the hook opened");
    if (!depth && s.depth) brace = l;
    if (!in_comment && s.comment) comment = l;
    if (begins) statement = l;
  }
  if (s.comment)
    refuse(L, x, (Place){.origin = comment->origin}, "a comment that the hook does not close");
  if (s.depth)
    refuse(L, x, (Place){.origin = brace->origin}, "an opening brace that the hook does not close");
  if (!strchr(";{}:", s.last))
    refuse(L, x, (Place){.origin = statement->origin}, "a statement that the hook does not end");
}

// ---- text ---------------------------------------------------------------------------------------
typedef struct TextCheck {
  const Expansion *x;
  const PtxModule *m;
  const PtxFunc *f;
  const PtxInst *in;
  uint32_t use; // of the instruction in hand
  bool *wrote;  // by use: the part changed what it is there for
  Diag *d;
} TextCheck;

static uint32_t use_of(const Expansion *x, uint32_t line) {
  return line >= 1 && line <= x->nrow_use ? x->row_use[line - 1] : 0;
}

static Place inst_place(const TextCheck *c) {
  return (Place){c->m->src, c->in->line, c->in->col, 1, linemap_at(c->m->map, c->in->line)};
}

static char *may_write(Arena *a, const HookPart *p) {
  char *text = arena_printf(a, "${%s}", p->writes[0]);
  return p->writes[1] ? arena_printf(a, "%s and ${%s}", text, p->writes[1]) : text;
}

static void check_reg(void *ctx, int32_t reg, bool reads, bool writes) {
  TextCheck *c = ctx;
  if (reg < 0 || reg >= c->f->nregs) return;
  const PtxReg *r = &c->f->regs[reg];
  if (use_of(c->x, r->line) == c->use) return; // the hook's own
  const HookUse *use = &c->x->hook_use[c->use - 1];
  bool may = diag_among(r->name, use->writes, HOOK_MAX_WRITES);
  if (may && writes) c->wrote[c->use] = true;
  else if (writes)
    diag_error(c->d, inst_place(c), "%s is the template's: of its registers %s may change %s only",
               r->name, use->part->shown, may_write(c->d->arena, use->part));
  else if (reads && !diag_among(r->name, use->given, HOOK_MAX_GIVEN) &&
           strncmp(r->name, "%" HOOK_PREFIX, sizeof HOOK_PREFIX))
    diag_error(c->d, inst_place(c),
               "%s is the template's: a hook knows its part's ${names}, its Args and its own "
               "registers",
               r->name);
}

// Its code is entered at the beginning and left at the end.
static void check_flow(const TextCheck *c) {
  const char *stem = ptx_inst_form(c->in)->stem;
  if (ptx_inst_exit(c->in) == PTX_LEAVES && strcmp(stem, "trap"))
    diag_error(c->d, inst_place(c), "%s in a hook ends the template's thread", stem);
  for (int i = 0; i < c->in->nopnds; i++) {
    const PtxOperand *o = &c->in->opnds[i];
    if (o->kind == PTX_O_LABEL && o->sym >= 0 && o->sym < c->f->nlabels &&
        use_of(c->x, c->f->labels[o->sym].line) != c->use)
      diag_error(c->d, inst_place(c), "a hook jumps to the template's label %s",
                 c->f->labels[o->sym].name);
  }
}

static void check_pure(const TextCheck *c) {
  const char *what = hook_inst_effect(c->d->arena, c->in);
  if (what)
    diag_error(c->d, inst_place(c), "%s %s: a hook is a rule for one score and has no other effect",
               ptx_inst_form(c->in)->stem, what);
}

static void check_inst(TextCheck *c, const PtxInst *in) {
  c->in = in;
  c->use = use_of(c->x, in->line);
  if (!c->use) return;
  ptx_inst_regs(in, check_reg, c);
  check_flow(c);
  check_pure(c);
}

static Place part_place(const Expansion *x, const HookPart *p) {
  lua_State *L = lua_env_state(x->env);
  return p->function ? function_at(L, x->hook, p->function)
                     : (Place){.src = x->hook, .line = x->hook_line};
}

// What the lines declare lives with the thread or the block, not with the score.
static void check_var(const TextCheck *c, const PtxVar *v) {
  if (use_of(c->x, v->line))
    diag_error(c->d, (Place){c->m->src, v->line, v->col, 1, linemap_at(c->m->map, v->line)},
               "%s is a .%s variable: a hook declares registers only", v->name,
               ptx_space_text(v->space));
}

Status hook_check_text(const Expansion *x, const PtxModule *m, Diag *d) {
  TextCheck c = {.x = x, .m = m, .d = d};
  int errors = d->errors;
  for (int i = 0; i < m->nvars && d->errors == errors; i++) check_var(&c, &m->vars[i]);
  c.wrote = arena_array(x->arena, bool, x->nhook_uses + 1);
  for (int f = 0; f < m->nfuncs; f++) {
    c.f = &m->funcs[f];
    // One mistake stands at every place where the part was put in: the first is enough.
    for (int i = 0; i < c.f->ninsts && d->errors == errors; i++) check_inst(&c, &c.f->insts[i]);
  }
  for (int i = 0; i < x->nhook_uses && d->errors == errors; i++) {
    const HookPart *p = x->hook_use[i].part;
    if (p->must_write && !c.wrote[i + 1])
      diag_error(d, part_place(x, p), "%s never change%s ${%s}", p->shown, p->function ? "s" : "",
                 p->writes[0]);
  }
  return d->errors > errors ? ST_INPUT : ST_OK;
}
