// LuaEnv: a closed Lua state for templates, sweeps and campaigns.
//
// What runs in it has no file, process or clock, an undefined name is an error, the order of
// `pairs` is sorted, and steps and memory are bounded.  A limit passes through pcall.  Errors
// become diagnostics with file:line of the Source and the calls above it.
//
//   LuaEnv *e = lua_env_new();
//   lua_env_register(e, NULL, my_functions);      // once: known to every environment opened later
//   lua_env_limit(e, (LuaLimits){0});             // resets the counters
//   lua_env_load(e, source, NULL, 0, ORIGIN_FILE, diag);          // pushes the chunk
//   lua_env_open(e); lua_env_bind(e);             // a fresh set of globals for it
//   lua_env_call(e, 0, 1, diag);                  // runs it; one result on the stack
#ifndef PTXSMITH_LUA_ENV_H
#define PTXSMITH_LUA_ENV_H

#include <lauxlib.h>
#include <lua.h>

#include "diag.h"

typedef struct LuaEnv LuaEnv;

typedef struct LuaLimits { // 0: the defaults
  uint64_t steps;          // Lua instructions, and units of work in library functions
  size_t memory;           // bytes
} LuaLimits;
#define LUA_ENV_STEPS ((uint64_t)20 * 1000 * 1000)
#define LUA_ENV_MEMORY ((size_t)256 << 20)

LuaEnv *lua_env_new(void);
void lua_env_free(LuaEnv *e); // NULL is fine
lua_State *lua_env_state(LuaEnv *e);
LuaEnv *lua_env_of(lua_State *L);
// A pointer for the functions registered here.
void lua_env_set_user(LuaEnv *e, void *user);
void *lua_env_user(lua_State *L);

// Functions that every environment opened later knows: globals, or fields of a global `module`.
void lua_env_register(LuaEnv *e, const char *module, const luaL_Reg *functions);
// The same for one value: pops it.
void lua_env_define(LuaEnv *e, const char *name);
// Replaces the table on top of the stack by a read-only view; a field that is not there is an error
// that calls the table `what`.
void lua_env_protect(lua_State *L, const char *what);

// New limits, counted from now.  Without it the defaults hold, counted from lua_env_new.
void lua_env_limit(LuaEnv *e, LuaLimits limits);

// Compiles a text (never bytecode) and pushes the chunk.  `lua` NULL: the Source's own text; else a
// text with the same lines.  `kind` says how code of this file is reached when it is not the first.
// The Source must outlive the LuaEnv.
Status lua_env_load(LuaEnv *e, const Source *src, const char *lua, size_t len, OriginKind kind,
                    Diag *d);
// Pushes a fresh environment: a table of globals with everything registered.
void lua_env_open(LuaEnv *e);
// Pops an environment and makes it that of the chunk below it.
void lua_env_bind(LuaEnv *e);
// As lua_pcall: pops function and arguments, pushes results.  After an error nothing is pushed and
// the Diag has the message.  ST_OK without results when lua_env_stop ended the call.
Status lua_env_call(LuaEnv *e, int nargs, int nresults, Diag *d);
// load, open, bind and call.
Status lua_env_run(LuaEnv *e, const Source *src, int nresults, Diag *d);

// ---- for functions called from Lua (these jump: hold nothing but arena memory) -----------------
// An error at the Lua line that called; no position is put into the text.
int lua_env_error(lua_State *L, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Ends the running lua_env_call without an error, through any pcall.
int lua_env_stop(lua_State *L);
// Ends it with diagnostics that were already added to the Diag.
int lua_env_reported(lua_State *L);
// Counts work done outside Lua's own instructions; an error past the limit.
void lua_env_charge_steps(lua_State *L, uint64_t steps);
void lua_env_charge_bytes(lua_State *L, size_t bytes); // until the next lua_env_limit

// Where the Lua code stands: frames from the innermost out, beginning at stack level `level` (1:
// the caller of the running C function).  Frames of C functions are left out.
typedef struct LuaFrame {
  const Source *src;
  uint32_t line;
  OriginKind kind; // how this frame was reached from the next one
} LuaFrame;
int lua_env_frames(lua_State *L, int level, LuaFrame *out, int max);

// Text of a value as templates print it: integers, strings, booleans as 0 and 1, values with a
// __tostring.  NULL for what has no exact text (floats, nil, tables): *why says so.
// The text is anchored by the value at `index`, or by one pushed in its place.
const char *lua_env_text(lua_State *L, int index, size_t *len, const char **why);

#endif
