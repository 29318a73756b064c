// Hooks: a user's PTX lines put into a template at a named point.
//
// The file is like an include: `| arg { ... }` lines declare Args of its own, and its PTX lines get
// the registers of the point as ${s}, ${b}, ${h}, ${i}, ${j}.  It runs once to declare, its lines
// going nowhere, and once at each point.
#include "expand.h"
#include "session.h"

static const char hook_environment_key = 0;
static const char *const registers[] = {"s", "b", "h", "i", "j", NULL};

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
  lua_pushstring(L, text);
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
}

static bool is_score(lua_State *L, int index) {
  const char *point = luaL_checkstring(L, index);
  return point[0] == 's' && lua_rawlen(L, index) == 5;
}

static int has_hook(lua_State *L) {
  lua_pushboolean(L, is_score(L, 1) && expansion_of(L)->hook);
  return 1;
}

// hook("score", { s = "%s0", b = ..., h = ..., i = ..., j = ... })
static int hook_emit(lua_State *L) {
  Expansion *x = expansion_of(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_check_fields(L, 2, registers, "hook");
  if (!x->in_body || x->hook_runs) return lua_env_error(L, "hook() belongs into a template's body");
  if (!is_score(L, 1) || !x->hook) return 0;
  for (int i = 0; registers[i]; i++) {
    const char *reg = lua_field_text(L, 2, registers[i], NULL, "hook");
    if (!reg) return lua_env_error(L, "hook: the register '%s' is missing", registers[i]);
    set_register(L, registers[i], reg);
  }
  emitf(L, "{"); // a scope: the hook's own registers and labels, at every point anew
  x->hook_runs = x->hook_used = true;
  run_hook(L, x);
  x->hook_runs = false;
  emitf(L, "}");
  return 0;
}

const luaL_Reg hook_functions[] = {
    {"has_hook", has_hook},
    {"hook", hook_emit},
    {NULL, NULL},
};
