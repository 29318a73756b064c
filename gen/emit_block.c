// Blocks: lines captured as a Lua value, put in later, or woven into each other.
#include "expand.h"

#include <string.h>

static const char block_key = 0; // registry: metatable of blocks

void blocks_open(LuaEnv *e) {
  lua_State *L = lua_env_state(e);
  lua_createtable(L, 0, 2);
  lua_pushliteral(L, "block");
  lua_setfield(L, -2, "__name");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &block_key);
}

static const Block *check_block(lua_State *L, int index) {
  bool is = lua_isuserdata(L, index) && lua_getmetatable(L, index);
  if (is) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &block_key);
    is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
  }
  if (!is) lua_env_error(L, "argument %d is a %s, not a block", index, luaL_typename(L, index));
  return lua_touserdata(L, index);
}

static Expansion *emitting(lua_State *L, const char *what) {
  Expansion *x = expansion_of(L);
  if (!x->in_body && !x->hook_trial)
    lua_env_error(L, "%s belongs into the body, after entry_begin()", what);
  return x;
}

// block(function() ... PTX lines ... end)
static int block_capture(lua_State *L) {
  Expansion *x = emitting(L, "block");
  luaL_checktype(L, 1, LUA_TFUNCTION);
  Block *b = lua_newuserdatauv(L, sizeof *b, 0);
  memset(b, 0, sizeof *b);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &block_key);
  lua_setmetatable(L, -2);
  Block *outer = x->sink;
  x->sink = b; // an error ends the whole expansion: nothing to undo then
  lua_pushvalue(L, 1);
  lua_call(L, 0, 0);
  x->sink = outer;
  return 1;
}

static int block_emit(lua_State *L) {
  emitting(L, "emit");
  const Block *b = check_block(L, 1);
  for (int i = 0, n = b->n; i < n; i++) emit_line(L, &b->v[i]);
  return 0;
}

// A unit of weaving ends where a statement and all braces end; comments go with what follows.
static int unit_end(const Block *b, int i) {
  int depth = 0;
  for (; i < b->n; i++) {
    const Line *l = &b->v[i];
    depth += l->opens;
    bool whole = l->kind == LINE_CODE && l->ends_statement && depth <= 0;
    if (whole) return i + 1;
  }
  return i;
}

static int count_units(const Block *b) {
  int n = 0;
  for (int i = 0; i < b->n; n++) i = unit_end(b, i);
  return n;
}

// Emits units of b from *i on, at most n.
static void emit_units(lua_State *L, const Block *b, int *i, lua_Integer n) {
  for (; n > 0 && *i < b->n; n--)
    for (int end = unit_end(b, *i); *i < end; ++*i) emit_line(L, &b->v[*i]);
}

// weave(a, b): b spread evenly over a.  weave(a, b, {3, 2}): three of a, then two of b, and so on.
// weave(a, b, n): n of a for each of b.
static int block_weave(lua_State *L) {
  emitting(L, "weave");
  const Block *a = check_block(L, 1), *b = check_block(L, 2);
  int i = 0, j = 0;
  if (lua_isnoneornil(L, 3)) {
    lua_Integer na = count_units(a), nb = count_units(b), done = 0;
    for (lua_Integer k = 1; k <= na; k++) { // after k of a: floor(k nb / na) of b
      emit_units(L, a, &i, 1);
      emit_units(L, b, &j, k * nb / na - done);
      done = k * nb / na;
    }
  } else {
    lua_Integer of_a, of_b = 1;
    if (lua_istable(L, 3)) {
      lua_rawgeti(L, 3, 1);
      lua_rawgeti(L, 3, 2);
      of_a = luaL_checkinteger(L, -2);
      of_b = luaL_checkinteger(L, -1);
    } else {
      of_a = luaL_checkinteger(L, 3);
    }
    if (of_a < 1 || of_b < 1) return lua_env_error(L, "weave: a ratio of positive integers");
    while (i < a->n && j < b->n) {
      emit_units(L, a, &i, of_a);
      emit_units(L, b, &j, of_b);
    }
  }
  emit_units(L, a, &i, a->n);
  emit_units(L, b, &j, b->n);
  return 0;
}

const luaL_Reg block_functions[] = {
    {"block", block_capture},
    {"emit", block_emit},
    {"weave", block_weave},
    {NULL, NULL},
};
