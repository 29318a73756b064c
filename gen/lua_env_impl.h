// What the files of the closed Lua environment share.
#ifndef PTXSMITH_LUA_ENV_IMPL_H
#define PTXSMITH_LUA_ENV_IMPL_H

#include "lua_env.h"

typedef enum LuaStop {
  LUA_RUNS,
  LUA_STOP_STEPS,
  LUA_STOP_MEMORY,
  LUA_STOP_STACK,
  LUA_STOP_ASKED,    // lua_env_stop
  LUA_STOP_REPORTED, // lua_env_reported
} LuaStop;

typedef struct LuaChunk {
  const Source *src;
  OriginKind kind;
} LuaChunk;

struct LuaEnv {
  lua_State *L;
  void *user;
  Arena *arena;    // chunks
  LuaChunk *chunks; int nchunks, cap; // chunk i is called "=#i" in Lua

  // Limits.
  uint64_t steps, step_limit;
  size_t bytes, charged, memory_limit;
  int interval;    // of the count hook now
  int depth;       // lua_env_call and lua_env_load under way: limits hold inside only
  bool look_at_memory;

  // The error on its way up.
  LuaStop stop;
  Arena *error_arena;
  const char *error_text;
  const Origin *error_at;
};

// Lua puts "#3:14: " before its own messages.  Returns what follows, and the chunk (-1: there is no
// such prefix) and the line.
const char *lua_env_split(const LuaEnv *e, const char *msg, int *chunk, uint32_t *line);

// Raises a stop: an error that no pcall catches, placed at stack level `level`.
int lua_env_raise(lua_State *L, LuaStop why, int level);
// After an error was caught: what was written for it is gone.
void lua_env_forget(LuaEnv *e);

// Opens the closed library: fills the table of base globals on top of the stack.
void lua_base_open(lua_State *L);
// find, match, gmatch, gsub with bounded work: fills the string table on top of the stack.
void lua_pattern_open(lua_State *L);

#endif
