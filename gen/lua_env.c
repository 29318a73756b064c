#include "lua_env_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HOOK_INTERVAL = 1000, MAX_FRAMES = 16 };
// A small request past the memory limit is granted, and the next Lua instruction looks whether a
// collection helps; a large one is refused.  Large means: too large to be the Lua stack itself
// (LUAI_MAXSTACK slots of 16 bytes), so that the call chain may be read when it is refused.
static const size_t SMALL_REQUEST = (size_t)20 << 20;

static void note_place(LuaEnv *e, lua_State *L, int level);

// ---- memory ------------------------------------------------------------------------------------

static void count_hook(lua_State *L, lua_Debug *ar);

static void set_interval(LuaEnv *e, lua_State *L, int n) {
  e->interval = n;
  lua_sethook(L, count_hook, LUA_MASKCOUNT, n);
}

static bool grant(LuaEnv *e, size_t more) {
  size_t after = e->bytes + e->charged + more;
  if (!e->depth || after <= e->memory_limit) return true;
  if (more <= SMALL_REQUEST && after <= e->memory_limit + 4 * SMALL_REQUEST) {
    e->look_at_memory = true;
    set_interval(e, e->L, 1);
    return true;
  }
  if (more > SMALL_REQUEST) note_place(e, e->L, 0);
  return false;
}

static void *env_alloc(void *ud, void *p, size_t old, size_t size) {
  LuaEnv *e = ud;
  if (!p) old = 0; // Lua passes a type here
  if (!size) {
    free(p);
    e->bytes -= old;
    return NULL;
  }
  if (size > old && !grant(e, size - old)) return NULL;
  void *q = realloc(p, size);
  if (q) e->bytes += size - old;
  return q;
}

// ---- limits ------------------------------------------------------------------------------------

static const char *stop_text(const LuaEnv *e, LuaStop why) {
  switch (why) {
  case LUA_STOP_STEPS:
    return arena_printf(e->error_arena,
                        "the Lua code took more than %llu steps (a loop without an end?)",
                        (unsigned long long)e->step_limit);
  case LUA_STOP_MEMORY:
    return arena_printf(e->error_arena, "the Lua code needs more than %zu MiB of memory",
                        e->memory_limit >> 20);
  case LUA_STOP_STACK: return "stack overflow (a recursion without an end?)";
  default: return NULL;
  }
}

int lua_env_raise(lua_State *L, LuaStop why, int level) {
  LuaEnv *e = lua_env_of(L);
  if (!e->stop) {
    e->stop = why;
    e->error_text = stop_text(e, why);
    bool placed = why == LUA_STOP_MEMORY && e->error_at; // where the request was refused
    if (e->error_text && !placed) note_place(e, L, level);
  }
  lua_pushnil(L);
  return lua_error(L);
}

static void count_hook(lua_State *L, lua_Debug *ar) {
  (void)ar;
  LuaEnv *e = lua_env_of(L);
  e->steps += (uint64_t)e->interval;
  if (e->look_at_memory) {
    e->look_at_memory = false;
    set_interval(e, L, HOOK_INTERVAL);
    lua_gc(L, LUA_GCCOLLECT, 0);
    if (e->bytes + e->charged > e->memory_limit - e->memory_limit / 8)
      lua_env_raise(L, LUA_STOP_MEMORY, 0);
  }
  if (e->stop) lua_env_raise(L, e->stop, 0); // caught by something: again
  if (e->steps > e->step_limit) lua_env_raise(L, LUA_STOP_STEPS, 0);
}

void lua_env_charge_steps(lua_State *L, uint64_t steps) {
  LuaEnv *e = lua_env_of(L);
  e->steps += steps;
  if (e->steps > e->step_limit) lua_env_raise(L, LUA_STOP_STEPS, 1);
}

void lua_env_charge_bytes(lua_State *L, size_t bytes) {
  LuaEnv *e = lua_env_of(L);
  e->charged += bytes;
  if (e->bytes + e->charged > e->memory_limit) lua_env_raise(L, LUA_STOP_MEMORY, 1);
}

void lua_env_limit(LuaEnv *e, LuaLimits limits) {
  e->step_limit = limits.steps ? limits.steps : LUA_ENV_STEPS;
  e->memory_limit = limits.memory ? limits.memory : LUA_ENV_MEMORY;
  e->steps = 0;
  e->charged = 0;
}

// ---- life --------------------------------------------------------------------------------------

// The registry holds the base globals, and the metatable of environments.
static const char base_key = 0, meta_key = 0;

static int undefined_name(lua_State *L);

LuaEnv *lua_env_new(void) {
  LuaEnv *e = calloc(1, sizeof *e);
  lua_State *L = e ? lua_newstate(env_alloc, e) : NULL;
  if (!L) abort();
  e->L = L;
  e->arena = arena_new();
  e->error_arena = arena_new();
  *(LuaEnv **)lua_getextraspace(L) = e;
  lua_env_limit(e, (LuaLimits){0});
  lua_newtable(L);
  lua_base_open(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &base_key);
  lua_createtable(L, 0, 2);
  lua_pushcfunction(L, undefined_name);
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &meta_key);
  set_interval(e, L, HOOK_INTERVAL);
  lua_gc(L, LUA_GCINC, 1000, 400, 0); // the live part is small: collect seldom
  return e;
}

void lua_env_free(LuaEnv *e) {
  if (!e) return;
  lua_close(e->L);
  arena_free(e->arena);
  arena_free(e->error_arena);
  free(e);
}

lua_State *lua_env_state(LuaEnv *e) { return e->L; }
LuaEnv *lua_env_of(lua_State *L) { return *(LuaEnv **)lua_getextraspace(L); }
void lua_env_set_user(LuaEnv *e, void *user) { e->user = user; }
void *lua_env_user(lua_State *L) { return lua_env_of(L)->user; }

void lua_env_define(LuaEnv *e, const char *name) {
  lua_rawgetp(e->L, LUA_REGISTRYINDEX, &base_key);
  lua_insert(e->L, -2);
  lua_setfield(e->L, -2, name);
  lua_pop(e->L, 1);
}

void lua_env_register(LuaEnv *e, const char *module, const luaL_Reg *functions) {
  lua_State *L = e->L;
  if (module) lua_newtable(L);
  else lua_rawgetp(L, LUA_REGISTRYINDEX, &base_key);
  luaL_setfuncs(L, functions, 0);
  if (!module) {
    lua_pop(L, 1);
    return;
  }
  lua_env_protect(L, module);
  lua_env_define(e, module);
}

// ---- environments and chunks -------------------------------------------------------------------

void lua_env_open(LuaEnv *e) {
  lua_State *L = e->L;
  lua_createtable(L, 0, 160);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &base_key);
  for (lua_pushnil(L); lua_next(L, -2);) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -5);
  }
  lua_pop(L, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
  lua_setmetatable(L, -2);
}

void lua_env_bind(LuaEnv *e) {
  const char *up = lua_setupvalue(e->L, -2, 1);
  if (!up) lua_pop(e->L, 1); // a chunk that uses no global
}

const char *lua_env_split(const LuaEnv *e, const char *msg, int *chunk, uint32_t *line) {
  *chunk = -1;
  *line = 0;
  if (msg[0] != '#') return msg;
  char *end;
  long c = strtol(msg + 1, &end, 10);
  if (end == msg + 1 || *end != ':' || c < 0 || c >= e->nchunks) return msg;
  const char *num = end + 1;
  long n = strtol(num, &end, 10);
  if (end == num || strncmp(end, ": ", 2) != 0) return msg;
  *chunk = (int)c;
  *line = (uint32_t)n;
  return end + 2;
}

Status lua_env_load(LuaEnv *e, const Source *src, const char *lua, size_t len, OriginKind kind,
                    Diag *d) {
  *arena_push(e->arena, e->chunks, e->nchunks, e->cap) = (LuaChunk){src, kind};
  const char *name = arena_printf(e->arena, "=#%d", e->nchunks - 1);
  e->depth++;
  int st = luaL_loadbufferx(e->L, lua ? lua : src->text, lua ? len : src->len, name, "t");
  e->depth--;
  if (st == LUA_OK) return ST_OK;
  int chunk;
  uint32_t line;
  const char *msg = lua_tostring(e->L, -1);
  if (st == LUA_ERRMEM) msg = stop_text(e, LUA_STOP_MEMORY);
  msg = lua_env_split(e, msg ? msg : "can't be compiled", &chunk, &line);
  diag_error(d, (Place){.src = src, .line = line}, "%s", msg);
  lua_pop(e->L, 1);
  arena_reset(e->error_arena);
  return ST_INPUT;
}

// ---- frames and errors -------------------------------------------------------------------------

// Of a chunk called "=#12".
static int chunk_number(const char *name) {
  int n = 0;
  for (const char *p = name + 2; *p >= '0' && *p <= '9'; p++) n = n * 10 + (*p - '0');
  return n;
}

int lua_env_frames(lua_State *L, int level, LuaFrame *out, int max) {
  const LuaEnv *e = lua_env_of(L);
  lua_Debug ar;
  int n = 0;
  for (; n < max && lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Sl", &ar);
    if (ar.currentline < 0 || ar.source[0] != '=' || ar.source[1] != '#') continue;
    const LuaChunk *c = &e->chunks[chunk_number(ar.source)];
    out[n].src = c->src;
    out[n].line = (uint32_t)ar.currentline;
    out[n++].kind = ar.what[0] == 'm' ? c->kind : ORIGIN_CALL; // "main": the chunk itself
  }
  return n;
}

static const Origin *chain_of(Arena *a, const LuaFrame *f, int n) {
  const Origin *up = NULL;
  while (n-- > 0) {
    if (up && f[n].src == up->src && f[n].line == up->line) continue; // recursion: once is enough
    Origin *o = arena_new_of(a, Origin);
    *o = (Origin){f[n].src, f[n].line, up ? f[n].kind : ORIGIN_FILE, up};
    up = o;
  }
  return up;
}

// The frames as a chain of Origins.  NULL when no Lua code runs.
static const Origin *lua_env_origin(lua_State *L, int level, Arena *a) {
  LuaFrame f[MAX_FRAMES];
  return chain_of(a, f, lua_env_frames(L, level, f, MAX_FRAMES));
}

static void note_place(LuaEnv *e, lua_State *L, int level) {
  e->error_at = lua_env_origin(L, level, e->error_arena);
}

// The message handler: keeps text and place while the stack still stands.
static int keep_error(lua_State *L) {
  LuaEnv *e = lua_env_of(L);
  if (e->stop) return 1;
  const char *msg = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : NULL;
  if (!msg)
    msg = arena_printf(e->error_arena, "error with a %s as its message", luaL_typename(L, 1));
  int chunk;
  uint32_t line;
  e->error_text = arena_strdup(e->error_arena, lua_env_split(e, msg, &chunk, &line));
  LuaFrame f[MAX_FRAMES];
  int n = lua_env_frames(L, 1, f, MAX_FRAMES), from = 0;
  if (chunk >= 0) { // error(msg, 2) speaks of a frame further out
    while (from < n && !(f[from].src == e->chunks[chunk].src && f[from].line == line)) from++;
    if (from == n) from = 0;
  }
  e->error_at = chain_of(e->error_arena, f + from, n - from);
  return 1;
}

int lua_env_error(lua_State *L, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  lua_pushstring(L, arena_vprintf(lua_env_of(L)->error_arena, fmt, ap));
  va_end(ap);
  return lua_error(L);
}

int lua_env_stop(lua_State *L) { return lua_env_raise(L, LUA_STOP_ASKED, 1); }
int lua_env_reported(lua_State *L) { return lua_env_raise(L, LUA_STOP_REPORTED, 1); }

// The names an environment knows, sorted, for "did you mean".
enum { STEPS_OF_A_NAME = 8 }; // its place among the others and how far it is from the one asked for
static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int undefined_name(lua_State *L) {
  LuaEnv *e = lua_env_of(L);
  if (lua_type(L, 2) != LUA_TSTRING)
    return lua_env_error(L, "a %s is no name of anything here", luaL_typename(L, 2));
  const char **names = NULL;
  int n = 0, cap = 0;
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1))
    if (lua_type(L, -2) == LUA_TSTRING)
      *arena_push(e->error_arena, names, n, cap) = lua_tostring(L, -2);
  lua_env_charge_steps(L, (uint64_t)n * STEPS_OF_A_NAME);
  if (names) qsort(names, (size_t)n, sizeof *names, compare_names);
  const char *name = lua_tostring(L, 2);
  return lua_env_error(L, "undefined name '%s'%s", name,
                       diag_nearest(e->error_arena, name, names, n));
}

void lua_env_forget(LuaEnv *e) {
  e->error_at = NULL;
  arena_reset(e->error_arena);
}

// ---- calls -------------------------------------------------------------------------------------

static Status report(LuaEnv *e, int st, Diag *d) {
  if (e->stop == LUA_STOP_ASKED) return ST_OK;
  if (e->stop == LUA_STOP_REPORTED) return ST_INPUT;
  if (st == LUA_ERRMEM) e->error_text = stop_text(e, LUA_STOP_MEMORY);
  const char *text = e->error_text;
  if (!text) text = lua_type(e->L, -1) == LUA_TSTRING ? lua_tostring(e->L, -1) : "error in Lua";
  return diag_error(d, (Place){.origin = e->error_at}, "%s", text);
}

Status lua_env_call(LuaEnv *e, int nargs, int nresults, Diag *d) {
  lua_State *L = e->L;
  assert(!e->depth && "one call at a time");
  int at = lua_gettop(L) - nargs;
  lua_pushcfunction(L, keep_error);
  lua_insert(L, at);
  e->stop = LUA_RUNS;
  e->error_text = NULL;
  e->error_at = NULL;
  e->depth++;
  int st = lua_pcall(L, nargs, nresults, at);
  e->depth--;
  lua_remove(L, at);
  Status result = ST_OK;
  if (st != LUA_OK) {
    result = report(e, st, d);
    lua_pop(L, 1);
  }
  e->stop = LUA_RUNS;
  e->look_at_memory = false;
  arena_reset(e->error_arena);
  return result;
}

Status lua_env_run(LuaEnv *e, const Source *src, int nresults, Diag *d) {
  Status st = lua_env_load(e, src, NULL, 0, ORIGIN_FILE, d);
  if (st != ST_OK) return st;
  lua_env_open(e);
  lua_env_bind(e);
  return lua_env_call(e, 0, nresults, d);
}
