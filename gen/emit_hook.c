// Hooks: a user's PTX lines put into a template at named points.
//
// The file is like an include: `| arg { ... }` lines declare Args of its own.  It may have
//     lines            that change the score ${s} of ${b}, ${h}, ${i}, ${j}
//     visible()        a function whose lines set the predicate ${sees}: query ${i} sees key ${j}
//     keys_any()       narrows [${from}, ${to}) to the keys that some query of ${first} .. ${last}
//                      sees
//     keys_all()       narrows it to those that visible() lets every one of them see
// and everywhere ${len_q}, ${len_k}, the sequence's lengths.  The file runs once to declare, its
// lines going nowhere, and once at each point where the score is changed.
#include <ctype.h>
#include <string.h>

#include "hook.h"
#include "session.h"

static const char hook_environment_key = 0;
static const char *const registers[] = {"s",     "b",    "h",    "i",  "j",     "len_q",
                                        "len_k", "sees", "from", "to", "first", "last", NULL};
_Static_assert(sizeof registers / sizeof *registers == HOOK_MAX_GIVEN + 1, "HookUse.given");

const HookPart hook_part[HOOK_PARTS] = {
    [HOOK_LINES] = {NULL, "the hook's lines", {"s"}, .must_write = true},
    [HOOK_VISIBLE] = {"visible", "visible()", {"sees"}, .must_write = true, .masks = true},
    [HOOK_ANY] = {"keys_any", "keys_any()", {"from", "to"}, .with = "visible"},
    [HOOK_ALL] = {"keys_all", "keys_all()", {"from", "to"}, .with = "visible"},
};

// What a template calls a point, the parts that serve it, one after the other, and the registers
// that it gives them.
enum { POINT_PARTS = 2, POINT_NEEDS = 6 };
typedef struct Point {
  const char *name;
  int nparts;
  HookPartId part[POINT_PARTS];
  const char *needs[POINT_NEEDS];
} Point;
static const Point points[] = {
    {"score", 2, {HOOK_LINES, HOOK_VISIBLE}, {"s", "b", "h", "i", "j"}},
    {"lines", 1, {HOOK_LINES}, {"s", "b", "h", "i", "j"}},
    {"visible", 1, {HOOK_VISIBLE}, {"s", "b", "h", "i", "j"}},
    {"keys_any", 1, {HOOK_ANY}, {"from", "to", "first", "last", "b", "h"}},
    {"keys_all", 1, {HOOK_ALL}, {"from", "to", "first", "last", "b", "h"}},
};

// A fresh environment over the template's: assignments stay in the hook.
static void open_environment(lua_State *L) {
  lua_newtable(L);
  lua_createtable(L, 0, 2);
  session_push_environment(L);
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &hook_environment_key);
}

static void run_hook(lua_State *L, Expansion *x) {
  if (session_push_chunk(x->session, x->hook, ORIGIN_HOOK, x->d) != ST_OK) lua_env_reported(L);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_environment_key);
  lua_env_bind(x->env);
  lua_call(L, 0, 0);
}

static void set_register(lua_State *L, const char *name, const char *text) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_environment_key);
  lua_pushstring(L, text); // NULL: nil, the name is not known at this point
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

void hook_declare(lua_State *L, Expansion *x) {
  x->first_hook_arg = x->v->nargs;
  open_environment(L);
  for (int i = 0; registers[i]; i++)
    set_register(L, registers[i], arena_printf(x->arena, "%%%s", registers[i]));
  x->hook_trial = true;
  run_hook(L, x);
  x->hook_trial = false;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_environment_key);
  hook_check_parts(L, x);
  lua_pop(L, 1);
}

bool hook_push_function(lua_State *L, const char *name) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_environment_key);
  bool there = false;
  if (lua_istable(L, -1)) {
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    there = lua_isfunction(L, -1);
  }
  if (!there) lua_pop(L, 1);
  return there;
}

// ---- the registers of its Args, and its own ----------------------------------------------------
// %s, as the template has it: behind the %, in the texts that a point gives to a hook, so that a
// register of the template is told from an Arg of the same name.
enum { GIVEN = 1 };

static const char *given(Arena *a, const char *text) {
  return text && *text == '%' ? arena_printf(a, "%%%c%s", GIVEN, text + 1) : text;
}

static size_t name_length(const char *p, const char *end) {
  size_t n = 0;
  while (p + n < end && (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '$')) n++;
  return n;
}

// `.reg .s32 %a, %b<4>;`, wherever in a line it begins and in whichever it ends.
static void note_declared(Expansion *x, const Line *line) {
  const char *end = line->text + line->len;
  for (const char *p = line->text; p < end; p++) {
    size_t left = (size_t)(end - p);
    if (left > 1 && p[0] == '/' && p[1] == '/') return;
    if (left >= 4 && !memcmp(p, ".reg", 4) && !name_length(p + 4, end)) x->hook_in_reg = true;
    if (*p == ';') x->hook_in_reg = false;
    if (*p != '%' || !x->hook_in_reg) continue;
    const char *name = arena_strndup(x->arena, p + 1, name_length(p + 1, end));
    *arena_push(x->arena, x->hook_regs, x->nhook_regs, x->hook_regs_cap) = name;
  }
}

// NAME, or NAME and digits: one of NAME<N>.
static bool is_declared(const Expansion *x, const char *p, size_t len) {
  for (int i = 0; i < x->nhook_regs; i++) {
    size_t n = strlen(x->hook_regs[i]), digits = n;
    if (!n || len < n || memcmp(p, x->hook_regs[i], n)) continue;
    while (digits < len && isdigit((unsigned char)p[digits])) digits++;
    if (digits == len) return true;
  }
  return false;
}

// %NAME, of a tensor %NAME_stride_0 and %NAME_map too: does an Arg of the hook's stand at p, or a
// register that it has declared?
static bool is_own_register(const Expansion *x, const char *p, const char *end) {
  static const char stride[] = "_stride_", map[] = "_map";
  size_t len = name_length(p, end);
  if (is_declared(x, p, len)) return true;
  for (int i = x->first_hook_arg; i < x->v->nargs; i++) {
    const ArgDecl *arg = &x->v->args[i];
    size_t n = strlen(arg->name);
    if (len < n || memcmp(p, arg->name, n)) continue;
    const char *rest = p + n;
    if (len == n) return true;
    if (arg->role == ARG_VALUE) continue;
    if (len - n == sizeof map - 1 && !memcmp(rest, map, sizeof map - 1)) return true;
    if (len - n >= sizeof stride && !memcmp(rest, stride, sizeof stride - 1)) return true;
  }
  return false;
}

void hook_rename(Expansion *x, Line *line) {
  const char *end = line->text + line->len, *from = line->text, *p;
  char *text = NULL;
  size_t n = 0, cap = 0;
  note_declared(x, line);
  while ((p = memchr(from, '%', (size_t)(end - from)))) {
    arena_append(x->arena, &text, &n, &cap, from, (size_t)(p + 1 - from));
    from = p + 1;
    if (from < end && *from == GIVEN) from++;
    else if (is_own_register(x, from, end))
      arena_append(x->arena, &text, &n, &cap, HOOK_PREFIX, sizeof HOOK_PREFIX - 1);
  }
  if (!text) return;
  arena_append(x->arena, &text, &n, &cap, from, (size_t)(end - from));
  line->text = text;
  line->len = (uint32_t)n;
}

// ---- points -------------------------------------------------------------------------------------
static const Point *point_of(lua_State *L, int index) {
  const char *name = luaL_checkstring(L, index);
  for (size_t i = 0; i < sizeof points / sizeof *points; i++)
    if (!strcmp(points[i].name, name)) return &points[i];
  return NULL; // a point of a template's own that no hook serves
}

bool hook_has_part(lua_State *L, const Expansion *x, HookPartId id) {
  const char *function = hook_part[id].function;
  if (!function) return x->hook_saw_ptx;
  bool there = hook_push_function(L, function);
  if (there) lua_pop(L, 1);
  return there;
}

static bool serves(lua_State *L, const Expansion *x, const Point *p) {
  for (int i = 0; x->hook && p && i < p->nparts; i++)
    if (hook_has_part(L, x, p->part[i])) return true;
  return false;
}

// has_hook("lines"): does the user's file say anything there?  Without a point: is there a file?
static int has_hook(lua_State *L) {
  const Expansion *x = expansion_of(L);
  lua_pushboolean(L, lua_isnoneornil(L, 1) ? x->hook != NULL : serves(L, x, point_of(L, 1)));
  return 1;
}

// The registers that a part knows: those of its point, and its predicate.
static void set_registers(lua_State *L, const Point *p, const HookPart *part, HookUse *use) {
  Arena *a = expansion_of(L)->arena;
  for (int i = 0; i < POINT_NEEDS && p->needs[i]; i++)
    if (!lua_field_text(L, 2, p->needs[i], NULL, "hook"))
      lua_env_error(L, "hook: the register '%s' is missing", p->needs[i]);
  for (int i = 0; registers[i]; i++) {
    const char *otherwise = !strcmp(registers[i], "len_q")   ? "%seqlen_q"
                            : !strcmp(registers[i], "len_k") ? "%seqlen_k"
                                                             : NULL;
    const char *text = lua_field_text(L, 2, registers[i], otherwise, "hook");
    if (!strcmp(registers[i], "sees")) text = part->masks ? "%hook_sees" : NULL;
    set_register(L, registers[i], given(a, text));
    use->given[i] = text ? arena_strdup(a, text) : NULL;
  }
}

static void begin_use(lua_State *L, Expansion *x, const HookPart *part, HookUse use) {
  use.part = part;
  for (int i = 0; i < HOOK_MAX_WRITES && part->writes[i]; i++) {
    const char *text =
        part->masks ? "%hook_sees" : lua_field_text(L, 2, part->writes[i], NULL, "hook");
    use.writes[i] = arena_strdup(x->arena, text);
  }
  *arena_push(x->arena, x->hook_use, x->nhook_uses, x->hook_use_cap) = use;
  x->hook_runs = (uint32_t)x->nhook_uses;
  x->nhook_regs = 0;
  x->hook_in_reg = false;
  x->hook_used = true;
}

// In a scope of its own, for its registers and labels.  A score that a mask's query does not see
// becomes -inf.
static void emit_part(lua_State *L, Expansion *x, const Point *p, const HookPart *part) {
  HookUse use = {0};
  set_registers(L, p, part, &use);
  emitf(L, "{");
  if (part->masks) emitf(L, ".reg .pred %%hook_sees;");
  int first = x->sink->n;
  begin_use(L, x, part, use);
  if (!part->function) run_hook(L, x);
  else if (hook_push_function(L, part->function)) lua_call(L, 0, 0);
  x->hook_runs = 0;
  hook_check_scope(L, x, first);
  if (part->masks)
    emitf(L, "@!%%hook_sees mov.f32 %s, 0fFF800000;", lua_field_text(L, 2, "s", NULL, "hook"));
  emitf(L, "}");
}

// hook("score", { s = "%s0", b = ..., h = ..., i = ..., j = ... }), len_q and len_k too where they
// are not the problem's
static int hook_emit(lua_State *L) {
  Expansion *x = expansion_of(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_check_fields(L, 2, registers, "hook");
  if (!x->in_body || x->hook_runs) return lua_env_error(L, "hook() belongs into a template's body");
  const Point *p = point_of(L, 1);
  for (int i = 0; x->hook && p && i < p->nparts; i++)
    if (hook_has_part(L, x, p->part[i])) emit_part(L, x, p, &hook_part[p->part[i]]);
  return 0;
}

const luaL_Reg hook_functions[] = {
    {"has_hook", has_hook},
    {"hook", hook_emit},
    {NULL, NULL},
};
