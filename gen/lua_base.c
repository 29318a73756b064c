// The closed library: what of Lua's own is safe as it is, and bounded or deterministic versions of
// the rest.  There is no load, no coroutine, no finalizer, no random number and no address.
#include "lua_env_impl.h"

#include <stdlib.h>
#include <string.h>

#include <lualib.h>

// ---- read-only tables --------------------------------------------------------------------------

static int no_field(lua_State *L) {
  luaL_tolstring(L, 2, NULL);
  return lua_env_error(L, "'%s' has no field '%s'", lua_tostring(L, lua_upvalueindex(1)),
                       lua_tostring(L, -1));
}

static int no_write(lua_State *L) {
  return lua_env_error(L, "'%s' can't be changed", lua_tostring(L, lua_upvalueindex(1)));
}

void lua_env_protect(lua_State *L, const char *what) {
  lua_createtable(L, 0, 1); // reads that miss the fields end in no_field
  lua_pushstring(L, what);
  lua_pushcclosure(L, no_field, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_newtable(L); // the view
  lua_createtable(L, 0, 3);
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, "__index");
  lua_pushstring(L, what);
  lua_pushcclosure(L, no_write, 1);
  lua_setfield(L, -2, "__newindex");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  lua_remove(L, -2);
}

// ---- pairs: numbers in order, then strings by bytes, then false and true -----------------------

typedef struct Key {
  int rank; // 0 number, 1 string, 2 boolean
  lua_Number n;
  lua_Integer i;
  const char *s;
  size_t len;
} Key;

static int compare_keys(const void *va, const void *vb) {
  const Key *a = va, *b = vb;
  if (a->rank != b->rank) return a->rank - b->rank;
  if (a->rank == 1) {
    int c = memcmp(a->s, b->s, a->len < b->len ? a->len : b->len);
    return c ? c : (a->len > b->len) - (a->len < b->len);
  }
  if (a->n != b->n) return a->n < b->n ? -1 : 1;
  return (a->i > b->i) - (a->i < b->i);
}

static Key key_at(lua_State *L, int index) {
  Key k = {0};
  switch (lua_type(L, index)) {
  case LUA_TNUMBER:
    k.n = lua_tonumber(L, index);
    k.i = lua_tointeger(L, index);
    break;
  case LUA_TSTRING:
    k.rank = 1;
    k.s = lua_tolstring(L, index, &k.len);
    break;
  case LUA_TBOOLEAN:
    k.rank = 2;
    k.i = lua_toboolean(L, index);
    break;
  default: lua_env_error(L, "pairs: a key that is a %s has no order", luaL_typename(L, index));
  }
  return k;
}

static void push_key(lua_State *L, const Key *k) {
  if (k->rank == 1) lua_pushlstring(L, k->s, k->len);
  else if (k->rank == 2) lua_pushboolean(L, (int)k->i);
  else if ((lua_Number)k->i == k->n) lua_pushinteger(L, k->i);
  else lua_pushnumber(L, k->n);
}

// Upvalues: the sorted keys, the position.
static int pairs_next(lua_State *L) {
  for (;;) {
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(2)) + 1;
    lua_pushinteger(L, i);
    lua_replace(L, lua_upvalueindex(2));
    if (lua_rawgeti(L, lua_upvalueindex(1), i) == LUA_TNIL) return 1;
    lua_pushvalue(L, -1);
    if (lua_rawget(L, 1) != LUA_TNIL) return 2; // a field set to nil meanwhile is passed over
    lua_pop(L, 2);
  }
}

// A value of ours may have a table of its fields: what its __pairs gives.
static int base_pairs(lua_State *L) {
  lua_settop(L, 1);
  if (lua_isuserdata(L, 1) && luaL_callmeta(L, 1, "__pairs")) lua_replace(L, 1);
  luaL_checktype(L, 1, LUA_TTABLE);
  int n = 0;
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) n++;
  lua_env_charge_steps(L, (uint64_t)n);
  Key *keys = lua_newuserdatauv(L, sizeof *keys * (size_t)(n + 1), 0);
  int i = 0;
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) keys[i++] = key_at(L, -2);
  qsort(keys, (size_t)n, sizeof *keys, compare_keys);
  lua_createtable(L, n, 0);
  for (i = 0; i < n; i++) {
    push_key(L, &keys[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, pairs_next, 2);
  lua_pushvalue(L, 1);
  return 2;
}

// ---- text --------------------------------------------------------------------------------------

static bool has_tostring(lua_State *L, int index) {
  bool has = luaL_getmetafield(L, index, "__tostring") != LUA_TNIL;
  if (has) lua_pop(L, 1);
  return has;
}

// Tables and functions print as addresses in plain Lua, other ones in every run.
static int base_tostring(lua_State *L) {
  luaL_checkany(L, 1);
  int t = lua_type(L, 1);
  if (t >= LUA_TTABLE && !has_tostring(L, 1)) lua_pushstring(L, luaL_typename(L, 1));
  else luaL_tolstring(L, 1, NULL);
  return 1;
}

const char *lua_env_text(lua_State *L, int index, size_t *len, const char **why) {
  index = lua_absindex(L, index);
  switch (lua_type(L, index)) {
  case LUA_TSTRING: return lua_tolstring(L, index, len);
  case LUA_TBOOLEAN: *len = 1; return lua_toboolean(L, index) ? "1" : "0";
  case LUA_TNUMBER:
    if (!lua_isinteger(L, index)) {
      *why = "is a float: divide with //, or write it with f32() or f64()";
      return NULL;
    }
    lua_pushvalue(L, index);
    lua_tolstring(L, -1, len);
    lua_replace(L, index);
    return lua_tostring(L, index);
  case LUA_TNIL: *why = "is nil"; return NULL;
  default:
    if (has_tostring(L, index)) {
      luaL_tolstring(L, index, len);
      lua_replace(L, index);
      return lua_tostring(L, index);
    }
    *why = lua_istable(L, index)      ? "is a table"
           : lua_isfunction(L, index) ? "is a function (called without ()?)"
                                      : "is not text";
    return NULL;
  }
}

// string.format without addresses: %p, and %s of what has no text.
static int string_format(lua_State *L) {
  const char *f = luaL_checkstring(L, 1);
  for (; *f; f++) {
    if (*f != '%') continue;
    f += 1 + strspn(f + 1, "-+ #0123456789.");
    if (*f == 'p') return lua_env_error(L, "format: %%p is another number in every run");
    if (!*f) break;
  }
  int n = lua_gettop(L);
  for (int i = 2; i <= n; i++)
    if (lua_type(L, i) >= LUA_TTABLE && !has_tostring(L, i))
      return lua_env_error(L, "format: argument %d is a %s", i - 1, luaL_typename(L, i));
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, n, 1);
  return 1;
}

static int string_rep(lua_State *L) {
  size_t len, sep = 0;
  luaL_checklstring(L, 1, &len);
  lua_Integer n = luaL_checkinteger(L, 2);
  luaL_optlstring(L, 3, "", &sep);
  if (n <= 0 || len + sep == 0) return lua_pushliteral(L, ""), 1; // n empty strings are no work
  lua_env_charge_steps(L, (uint64_t)n);
  lua_settop(L, 3);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, 3, 1);
  return 1;
}

// ---- tables ------------------------------------------------------------------------------------

// Wraps a function of the table library: a plain table only (a metatable could make its length
// anything), explicit bounds inside the table or just after it, work counted.  Upvalues: the
// function, the first argument that is a bound.
static int table_guard(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  if (lua_getmetatable(L, 1)) return lua_env_error(L, "a plain table is needed here");
  lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
  int first = (int)lua_tointeger(L, lua_upvalueindex(2)), top = lua_gettop(L);
  for (int i = first; i <= top && i < first + 2; i++) {
    if (!lua_isinteger(L, i)) continue;
    lua_Integer v = lua_tointeger(L, i);
    if (v < 0 || v > n + 1000)
      return lua_env_error(L, "position %d is far outside the table's %d elements", (int)v, (int)n);
  }
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, top, LUA_MULTRET);
  return lua_gettop(L);
}

static int table_insert(lua_State *L) {
  if (lua_istable(L, 1) && lua_gettop(L) == 3) lua_env_charge_steps(L, lua_rawlen(L, 1));
  return table_guard(L);
}

static int table_remove(lua_State *L) {
  if (lua_istable(L, 1) && lua_gettop(L) == 2) lua_env_charge_steps(L, lua_rawlen(L, 1));
  return table_guard(L);
}

static int table_walk(lua_State *L) { // concat, unpack, sort: about n log n at most
  uint64_t n = lua_istable(L, 1) ? lua_rawlen(L, 1) : 0, log = 1;
  while (n >> log) log++;
  lua_env_charge_steps(L, n * log / 8);
  return table_guard(L);
}

// Finalizers run outside every limit.
static int base_setmetatable(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_argexpected(L, lua_isnoneornil(L, 2) || lua_istable(L, 2), 2, "nil or table");
  if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
    return lua_env_error(L, "setmetatable: this table is protected");
  if (lua_istable(L, 2)) {
    lua_pushliteral(L, "__gc");
    if (lua_rawget(L, 2) != LUA_TNIL) return lua_env_error(L, "setmetatable: no __gc here");
  }
  lua_settop(L, 2);
  lua_setmetatable(L, 1);
  return 1;
}

// ---- pcall -------------------------------------------------------------------------------------

static int base_pcall(lua_State *L) {
  LuaEnv *e = lua_env_of(L);
  luaL_checkany(L, 1);
  int st = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
  if (st == LUA_OK) {
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    return lua_gettop(L);
  }
  if (st == LUA_ERRMEM) return lua_env_raise(L, LUA_STOP_MEMORY, 1);
  if (e->stop) return lua_env_raise(L, e->stop, 1);
  const char *msg = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
  // An overflow caught at the bottom of a deep stack moves the whole stack, without a step.
  if (st == LUA_ERRERR || strstr(msg, "stack overflow")) return lua_env_raise(L, LUA_STOP_STACK, 1);
  int chunk;
  uint32_t line;
  msg = lua_env_split(e, msg, &chunk, &line);
  if (chunk >= 0) lua_pushfstring(L, "%s:%d: %s", e->chunks[chunk].src->name, (int)line, msg);
  lua_env_forget(e);
  lua_pushboolean(L, 0);
  lua_insert(L, -2);
  return 2;
}

// ---- opening -----------------------------------------------------------------------------------

static const char *const base_names[] = {"assert", "error",  "getmetatable", "ipairs",   "rawequal",
                                         "rawget", "rawlen", "select",       "tonumber", "type",
                                         NULL};
static const char *const string_names[] = {"byte",  "char",    "len", "lower",
                                           "upper", "reverse", "sub", NULL};
static const char *const math_names[] = {
    "abs",  "ceil", "floor", "fmod", "max",        "min",  "sqrt", "exp", "log",        "tointeger",
    "type", "ult",  "huge",  "pi",   "maxinteger", "modf", "sin",  "cos", "mininteger", NULL};

// Copies fields of the table at -1 into the table at -2.
static void take(lua_State *L, const char *const *names) {
  for (; *names; names++) {
    lua_getfield(L, -1, *names);
    lua_setfield(L, -3, *names);
  }
}

// Puts `f` around a function of the library at -1 (NULL: nothing inside) into the table at -2.
static void wrap(lua_State *L, const char *name, lua_CFunction f, int bound) {
  lua_getfield(L, -1, name);
  lua_pushinteger(L, bound);
  lua_pushcclosure(L, f, 2);
  lua_setfield(L, -3, name);
}

static void open_string(lua_State *L) {
  lua_newtable(L);
  lua_pushcfunction(L, luaopen_string); // also gives strings their metatable
  lua_call(L, 0, 1);
  take(L, string_names);
  wrap(L, "format", string_format, 0);
  wrap(L, "rep", string_rep, 0);
  lua_pop(L, 1);
  lua_pattern_open(L);
  lua_pushliteral(L, "");
  lua_getmetatable(L, -1); // ("x"):rep(3) finds our functions, and nobody changes them
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 2);
  lua_env_protect(L, "string");
  lua_setfield(L, -2, "string");
}

static void open_table(lua_State *L) {
  lua_newtable(L);
  lua_pushcfunction(L, luaopen_table);
  lua_call(L, 0, 1);
  lua_getfield(L, -1, "pack");
  lua_setfield(L, -3, "pack");
  wrap(L, "insert", table_insert, 4);
  wrap(L, "remove", table_remove, 4);
  wrap(L, "concat", table_walk, 3);
  wrap(L, "unpack", table_walk, 2);
  wrap(L, "sort", table_walk, 4);
  lua_pop(L, 1);
  lua_env_protect(L, "table");
  lua_setfield(L, -2, "table");
}

static void open_math(lua_State *L) {
  lua_newtable(L);
  lua_pushcfunction(L, luaopen_math);
  lua_call(L, 0, 1);
  take(L, math_names);
  lua_pop(L, 1);
  lua_env_protect(L, "math");
  lua_setfield(L, -2, "math");
}

static const luaL_Reg ours[] = {
    {"pairs", base_pairs},
    {"tostring", base_tostring},
    {"setmetatable", base_setmetatable},
    {"pcall", base_pcall},
    {NULL, NULL},
};

void lua_base_open(lua_State *L) {
  lua_pushcfunction(L, luaopen_base);
  lua_call(L, 0, 1);
  take(L, base_names);
  lua_pop(L, 1);
  // The library filled the global table of the state: nothing of ours may find it there.
  lua_newtable(L);
  lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  luaL_setfuncs(L, ours, 0);
  open_string(L);
  open_table(L);
  open_math(L);
}
