#include "expand.h"
#include "session.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FRAMES = 24, MAX_EXPRS = 256, OPERAND_COLUMN = 16, ROW_INDENT = 16 };

// ---- origins -----------------------------------------------------------------------------------

// Each distinct origin exists once per variant: open addressing on (up, source, line, kind).
typedef struct OriginTable {
  const Origin **slot;
  uint32_t used, mask;
} OriginTable;

static uint32_t origin_hash(const Origin *o) {
  uint64_t h = (uintptr_t)o->up * 0x9E3779B97F4A7C15u;
  h = (h ^ (uintptr_t)o->src ^ o->line) * 0x9E3779B97F4A7C15u;
  return (uint32_t)(h >> 32) ^ (uint32_t)o->kind;
}

static bool origin_equal(const Origin *a, const Origin *b) {
  return a->up == b->up && a->src == b->src && a->line == b->line && a->kind == b->kind;
}

static void origins_grow(Expansion *x, uint32_t size) {
  OriginTable *t = x->origins, old = *t;
  t->slot = arena_array(x->arena, const Origin *, size);
  t->mask = size - 1;
  for (uint32_t i = 0; old.slot && i <= old.mask; i++) {
    if (!old.slot[i]) continue;
    uint32_t at = origin_hash(old.slot[i]) & t->mask;
    while (t->slot[at]) at = (at + 1) & t->mask;
    t->slot[at] = old.slot[i];
  }
}

static const Origin *origin_intern(Expansion *x, Origin key) {
  if (!x->origins) {
    x->origins = arena_new_of(x->arena, OriginTable);
    origins_grow(x, 256);
  }
  OriginTable *t = x->origins;
  uint32_t at = origin_hash(&key) & t->mask;
  for (; t->slot[at]; at = (at + 1) & t->mask)
    if (origin_equal(t->slot[at], &key)) return t->slot[at];
  Origin *o = arena_new_of(x->arena, Origin);
  *o = key;
  t->slot[at] = o;
  if (++t->used * 2 > t->mask) origins_grow(x, (t->mask + 1) * 2);
  return o;
}

static const Origin *origin_from(lua_State *L, Expansion *x, int level) {
  LuaFrame f[MAX_FRAMES];
  const Origin *up = NULL;
  for (int n = lua_env_frames(L, level, f, MAX_FRAMES); n-- > 0;)
    up = origin_intern(x, (Origin){f[n].src, f[n].line, up ? f[n].kind : ORIGIN_FILE, up});
  return up;
}

const char *expansion_keep(lua_State *L, const char *text) {
  lua_env_charge_bytes(L, strlen(text) + 1);
  return arena_strdup(expansion_of(L)->arena, text);
}

const Origin *expansion_origin(lua_State *L) { return origin_from(L, expansion_of(L), 1); }

// ---- emission ----------------------------------------------------------------------------------

void emit_line(lua_State *L, const Line *line) {
  Expansion *x = expansion_of(L);
  if (x->hook_trial) {
    x->hook_saw_ptx = true;
    return;
  }
  lua_env_charge_bytes(L, sizeof *line + line->len);
  Line *to = arena_push(x->arena, x->sink->v, x->sink->n, x->sink->cap);
  *to = *line;
  if (!x->hook_runs || line->use == x->hook_runs) return; // of a block: it was renamed before
  to->use = x->hook_runs;
  hook_rename(x, to);
}

void emit_text(lua_State *L, LineKind kind, const char *text) {
  TemplateLine t = {0};
  template_classify(&t, text, strlen(text));
  Line line = {.text = text,
               .len = (uint32_t)strlen(text),
               .kind = (uint8_t)(kind == LINE_CODE ? t.kind : kind),
               .opens = t.opens,
               .closes_first = t.closes_first,
               .ends_statement = t.ends_statement,
               .origin = expansion_origin(L)};
  emit_line(L, &line);
}

void emitf(lua_State *L, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *text = arena_vprintf(expansion_of(L)->arena, fmt, ap);
  va_end(ap);
  emit_text(L, LINE_CODE, text);
}

void emit_op(lua_State *L, const char *op, const char *fmt, ...) {
  Arena *a = expansion_of(L)->arena;
  va_list ap;
  va_start(ap, fmt);
  char *operands = arena_vprintf(a, fmt, ap);
  va_end(ap);
  size_t nop = strlen(op), n = strlen(operands);
  size_t at = nop < OPERAND_COLUMN ? OPERAND_COLUMN : nop + 1;
  char *text = arena_alloc(a, at + n + 2);
  memcpy(text, op, nop);
  memset(text + nop, ' ', at - nop);
  memcpy(text + at, operands, n);
  text[at + n] = ';';
  emit_line(L, &(Line){.text = text,
                       .len = (uint32_t)(at + n + 1),
                       .kind = LINE_CODE,
                       .ends_statement = true,
                       .origin = expansion_origin(L)});
}

const char *emit_digits(int64_t v, char buf[24], size_t *len) {
  char *p = buf + 24;
  uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
  do *--p = (char)('0' + u % 10);
  while (u /= 10);
  if (v < 0) *--p = '-';
  *len = (size_t)(buf + 24 - p);
  return p;
}

// The text of a line with expressions: their values are arguments 2, 3, ...
static const char *fill_in(lua_State *L, Expansion *x, const TemplateLine *t, size_t *len) {
  const char *value[MAX_EXPRS], *why = NULL;
  char number[MAX_EXPRS][24];
  size_t n[MAX_EXPRS], total = t->piece_len[0];
  assert(t->nexprs < MAX_EXPRS); // more arguments than Lua compiles
  for (int i = 0; i < t->nexprs; i++) {
    if (lua_isinteger(L, i + 2)) {
      value[i] = emit_digits(lua_tointeger(L, i + 2), number[i], &n[i]);
    } else {
      value[i] = lua_env_text(L, i + 2, &n[i], &why);
      if (!value[i]) lua_env_error(L, "${%s} %s", t->expr[i], why);
    }
    total += n[i] + t->piece_len[i + 1];
  }
  lua_env_charge_bytes(L, total);
  char *text = arena_alloc(x->arena, total + 1), *to = text;
  for (int i = 0; i <= t->nexprs; i++) {
    memcpy(to, t->piece[i], t->piece_len[i]);
    to += t->piece_len[i];
    if (i == t->nexprs) break;
    memcpy(to, value[i], n[i]);
    to += n[i];
  }
  if (memchr(text, '\n', total)) { // a template's line has none of its own
    int i = 0;
    while (!memchr(value[i], '\n', n[i])) i++;
    lua_env_error(L, "${%s} has a line break in it: PTX lines belong into the template",
                  t->expr[i]);
  }
  *len = total;
  return text;
}

// The line knows its own place; only its callers are asked for (`up`).  How it was reached depends
// on where it stands in its file, in a function or not, so that it is found once.
static const Origin *line_origin(lua_State *L, Expansion *x, TemplateLine *t, const Origin *up) {
  if (!up) return origin_intern(x, (Origin){t->src, t->line, ORIGIN_FILE, NULL});
  if (!t->reached_known) {
    LuaFrame own;
    lua_env_frames(L, 1, &own, 1);
    t->reached = own.kind;
    t->reached_known = true;
  }
  return origin_intern(x, (Origin){t->src, t->line, t->reached, up});
}

// A line that was emitted right after the one before it, with no Lua line between them, has its
// callers: asking Lua for them takes more than all else that a line needs.
static const Origin *line_callers(lua_State *L, Expansion *x, lua_Integer id, bool follows) {
  lua_Debug ar;
  if (!follows || x->last != id)
    x->last_up = lua_getstack(L, 2, &ar) ? origin_from(L, x, 2) : NULL;
  x->last = id + 1;
  return x->last_up;
}

// __line(id, values...): a PTX line of a template.
static int emit_template_line(lua_State *L) {
  Expansion *x = expansion_of(L);
  lua_Integer id = lua_tointeger(L, 1);
  TemplateLine *t = &x->session->lines.v[id];
  if (x->hook_trial) {
    x->last = 0;
    if (t->kind == LINE_COMMENT) return 0;
    if (!x->hook_saw_ptx) x->hook_line = t->line;
    x->hook_saw_ptx = true;
    return 0;
  }
  if (!x->in_body) {
    // Comments above the first declaration open the PTX; later ones speak of the template.
    if (t->kind == LINE_COMMENT && x->declared) {
      x->last = 0;
      return 0;
    }
    if (t->kind != LINE_COMMENT) expansion_end_block(L, x);
  }
  size_t len = t->piece_len[0];
  const char *text = t->nexprs ? fill_in(L, x, t, &len) : t->piece[0];
  Line line = {.text = text,
               .len = (uint32_t)len,
               .kind = (uint8_t)t->kind,
               .opens = t->opens,
               .closes_first = t->closes_first,
               .after_blank = t->after_blank,
               .ends_statement = t->ends_statement,
               .origin = line_origin(L, x, t, line_callers(L, x, id, t->follows))};
  emit_line(L, &line);
  return 0;
}

const luaL_Reg emit_functions[] = {{"__line", emit_template_line}, {NULL, NULL}};

// ---- assembly ----------------------------------------------------------------------------------

typedef struct Assembly {
  Expansion *x;
  char *text;
  size_t n, cap;
  const Origin **map;
  int nmap, map_cap;
  uint32_t use, *uses; // of the line in hand; of every row, where there is a hook
  int nuses, uses_cap;
  const Source **files; // .file i + 1
  int nfiles, files_cap;
  const Origin *loc; // of the last .loc
} Assembly;

static void add_row(Assembly *s, int indent, const char *text, size_t len, const Origin *origin) {
  size_t need = s->n + (size_t)indent + len + 2;
  if (need > s->cap) {
    s->text = arena_grow(s->x->arena, s->text, s->cap, need * 2);
    s->cap = need * 2;
  }
  memset(s->text + s->n, ' ', (size_t)indent);
  memcpy(s->text + s->n + indent, text, len);
  s->n += (size_t)indent + len;
  s->text[s->n++] = '\n';
  *arena_push(s->x->arena, s->map, s->nmap, s->map_cap) = origin;
  if (s->x->hook) *arena_push(s->x->arena, s->uses, s->nuses, s->uses_cap) = s->use;
}

static int file_number(Assembly *s, const Source *src) {
  for (int i = 0; i < s->nfiles; i++)
    if (s->files[i] == src) return i + 1;
  *arena_push(s->x->arena, s->files, s->nfiles, s->files_cap) = src;
  return s->nfiles;
}

static bool is_instruction(const Line *l) {
  return l->kind == LINE_CODE && l->len && l->text[0] != '.' && l->text[0] != '{' &&
         l->text[0] != '}';
}

static void add_files(Assembly *s) {
  for (int i = 0; i < s->x->main.n; i++) // in the order of their first instruction
    if (s->x->main.v[i].origin && is_instruction(&s->x->main.v[i]))
      file_number(s, s->x->main.v[i].origin->src);
  for (int i = 0; i < s->nfiles; i++) {
    const char *row = arena_printf(s->x->arena, ".file %d \"%s\"", i + 1, s->files[i]->name);
    add_row(s, 0, row, strlen(row), NULL);
  }
}

static void add_loc(Assembly *s, const Line *l) {
  const Origin *o = l->origin;
  if (!o || (s->loc && s->loc->src == o->src && s->loc->line == o->line)) return;
  s->loc = o;
  const char *row = arena_printf(s->x->arena, ".loc %d %u 0", file_number(s, o->src), o->line);
  add_row(s, 8, row, strlen(row), o);
}

// Columns: labels 0, comments 4, instructions 8; four more in each nested scope and for the later
// lines of a statement; 0 outside of the entry.
static void add_line(Assembly *s, const Line *l, int *depth, bool continues) {
  if (l->after_blank && s->nmap && s->text[s->n - 1] == '\n' && s->n > 1 &&
      s->text[s->n - 2] != '\n')
    add_row(s, 0, "", 0, NULL);
  int at = l->closes_first ? *depth - 1 : *depth;
  int indent = at > 0 ? 4 + 4 * at : 0;
  if (at > 0 && l->kind == LINE_LABEL) indent = 0;
  if (at == 1 && l->kind == LINE_COMMENT) indent = 4;
  if (at > 0 && l->kind == LINE_CODE && continues) indent += 4;
  if (s->x->opts->loc && at > 0 && is_instruction(l) && !continues) add_loc(s, l);
  add_row(s, indent, l->text, l->len, l->origin);
  *depth += l->opens;
}

// Room for the usual text at once: what does not fit grows.
static Assembly assembly_new(Expansion *x) {
  Assembly s = {.x = x, .map_cap = x->main.n + x->main.n / 4};
  for (int i = 0; i < x->main.n; i++) s.cap += x->main.v[i].len + ROW_INDENT;
  s.text = arena_alloc(x->arena, s.cap + 1);
  s.map = arena_array(x->arena, const Origin *, s.map_cap + 1);
  return s;
}

// By line of the whole text: two lines stand above the rows.
static void keep_uses(const Assembly *s) {
  Expansion *x = s->x;
  x->nrow_use = (uint32_t)s->nuses + 2;
  x->row_use = arena_array(x->arena, uint32_t, (int)x->nrow_use);
  if (s->nuses) memcpy(x->row_use + 2, s->uses, sizeof *s->uses * (size_t)s->nuses);
}

// A user's path, on one line.
static const char *shown(Arena *a, const char *path) {
  char *text = arena_strdup(a, path);
  for (char *p = text; *p; p++)
    if (iscntrl((unsigned char)*p)) *p = '?';
  return text;
}

static const char *made_of(const Expansion *x) {
  const VariantOpts *o = x->opts;
  const char *text = x->v->id;
  if (x->hook) text = arena_printf(x->arena, "%s --hook %s", text, shown(x->arena, x->hook->name));
  const char suffix[] = {o->sm_suffix, 0};
  if (o->sm) text = arena_printf(x->arena, "%s --target sm_%d%s", text, o->sm, suffix);
  const char *dir = x->session->dir;
  return dir ? arena_printf(x->arena, "%s --templates %s", text, shown(x->arena, dir)) : text;
}

void expansion_assemble(Expansion *x) {
  Assembly s = assembly_new(x);
  int depth = 0;
  bool continues = false;
  for (int i = 0; i < x->main.n; i++) {
    const Line *l = &x->main.v[i];
    if (l->kind == LINE_FILES) {
      if (x->opts->loc) add_files(&s);
      continue;
    }
    s.use = l->use;
    add_line(&s, l, &depth, continues);
    if (l->kind == LINE_CODE) continues = !l->ends_statement;
  }
  Variant *v = x->v;
  snprintf(v->hash, sizeof v->hash, "%016llx", (unsigned long long)ptx_text_hash(s.text, s.n));
  // The hash is that of all that follows its line.
  v->made_of = made_of(x);
  const char *head = arena_printf(x->arena, "// ptxsmith %s\n// hash %s\n", v->made_of, v->hash);
  size_t nhead = strlen(head);
  char *text = arena_alloc(x->arena, nhead + s.n + 1);
  memcpy(text, head, nhead);
  if (s.n) memcpy(text + nhead, s.text, s.n);
  const char *name = arena_printf(x->arena, "%s.ptx", v->tmpl->name);
  v->ptx = source_new(x->arena, name, text, nhead + s.n);
  if (x->hook) keep_uses(&s);
  v->map.n = (uint32_t)s.nmap + 2;
  v->map.at = arena_array(x->arena, const Origin *, v->map.n);
  if (s.nmap) memcpy(v->map.at + 2, s.map, sizeof *s.map * (size_t)s.nmap);
}
