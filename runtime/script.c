// Sweep and campaign scripts.
#include "script.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../gen/lua_env.h"
#include "../gen/number.h"

struct Script {
  Session *session;
  Arena *arena;
  LuaEnv *env;
  Diag *d; // of the call that runs now
  const Source *src;
  const char *name, *hook_path;
  const Params *given; bool *asked; // the command line's name=value pairs; those that were read
  Run *runs; int nruns;
  int runs_ref; // in Lua's registry: the list of runs
};

static Script *script_of(lua_State *L) { return lua_env_user(L); }

// ---- what scripts can call ----------------------------------------------------------------------

static int push_module(lua_State *L, Script *s, const char *path) {
  lua_getfield(L, LUA_REGISTRYINDEX, path);
  if (!lua_isnil(L, -1)) return 1;
  lua_pop(L, 1);
  const Source *src;
  if (session_file(s->session, path, &src, s->d)) return lua_env_reported(L);
  if (lua_env_load(s->env, src, NULL, 0, ORIGIN_INCLUDE, s->d)) return lua_env_reported(L);
  lua_env_open(s->env);
  lua_env_bind(s->env);
  lua_call(L, 0, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, path);
  return 1;
}

static int lua_require(lua_State *L) {
  Script *s = script_of(L);
  const char *module = luaL_checkstring(L, 1);
  char path[128] = "lua/";
  size_t n = strlen(module);
  if (n + 16 > sizeof path || strspn(module, "abcdefghijklmnopqrstuvwxyz0123456789_.") != n)
    return lua_env_error(L, "require: \"%s\" is no name of a module", module);
  for (size_t i = 0; i < n; i++) path[4 + i] = module[i] == '.' ? '/' : module[i];
  memcpy(path + 4 + n, ".lua", 5);
  return push_module(L, s, path);
}

static void push_problem(lua_State *L, const Problem *p) {
  lua_newtable(L);
  for (int i = 0; i < p->n; i++) {
    if (p->v[i].is_float)
      lua_pushnumber(L, p->v[i].f);
    else
      lua_pushinteger(L, p->v[i].i);
    lua_setfield(L, -2, p->v[i].name);
  }
  const struct { const char *name; double value; } work[] = {
      {"flops", problem_flops(p)}, {"kv_bytes", problem_kv_bytes(p)}};
  for (int i = 0; i < 2; i++) {
    lua_pushnumber(L, work[i].value);
    lua_setfield(L, -2, work[i].name);
  }
  lua_pushinteger(L, problem_int(p, "causal", 0));
  lua_setfield(L, -2, "causal");
  if (p->has_dtype) {
    lua_pushstring(L, dtype_name(p->dtype));
    lua_setfield(L, -2, "dtype");
  }
}

static int lua_problem(lua_State *L) {
  enum { STEPS = 1000 }; // so that a loop without an end takes no memory without one
  Script *s = script_of(L);
  Problem *p;
  lua_env_charge_steps(L, STEPS);
  if (problem_open_hooked(s->session, s->arena, luaL_checkstring(L, 1), s->hook_path, &p, s->d))
    return lua_env_reported(L);
  push_problem(L, p);
  return 1;
}

static int lua_refuse(lua_State *L) {
  Script *s = script_of(L);
  diag_error(s->d, (Place){.src = s->src}, "%s", luaL_checkstring(L, 1));
  return lua_env_reported(L);
}

static const luaL_Reg functions[] = {
    {"require", lua_require}, {"problem", lua_problem}, {"refuse", lua_refuse}, {0}};

// ---- running it ---------------------------------------------------------------------------------

static Status find_source(Script *s, const char *path, const Source **out, Diag *d) {
  bool bare = !strpbrk(path, "/."); // "quickstart" is the built-in one, whatever lies in the folder
  if (!bare && access(path, F_OK) == 0) {
    Source *src;
    Status st = source_read(s->arena, path, &src, d);
    *out = src;
    return st;
  }
  const char *const built_in[] = {"%s", "lua/sweeps/%s.lua", "lua/campaigns/%s.lua"};
  Diag *quiet = diag_new();
  Status st = ST_INPUT;
  for (int i = 0; i < 3 && st; i++) {
    const char *pct = strstr(built_in[i], "%s");
    const char *name = arena_printf(s->arena, "%.*s%s%s", (int)(pct - built_in[i]), built_in[i],
                                    path, pct + 2);
    st = session_file(s->session, name, out, quiet);
  }
  diag_free(quiet);
  return st ? diag_fail(d, ST_INPUT, "%s: no such script, neither a file nor built in", path)
            : ST_OK;
}

static const char *base_name(Arena *a, const char *path) {
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  return arena_strndup(a, base, strcspn(base, "."));
}

// `given`: what the script never asks for is told in the end, so reading is seen.
static int given_index(lua_State *L) {
  Script *s = script_of(L);
  const char *name = luaL_checkstring(L, 2), *value = NULL;
  for (int i = 0; s->given && i < s->given->n; i++)
    if (!strcmp(s->given->v[i].name, name)) {
      value = s->given->v[i].value;
      s->asked[i] = true;
    }
  lua_pushstring(L, value); // NULL: nil
  return 1;
}

static int given_pairs(lua_State *L) {
  Script *s = script_of(L);
  lua_newtable(L);
  for (int i = 0; s->given && i < s->given->n; i++) {
    lua_pushstring(L, s->given->v[i].value);
    lua_setfield(L, -2, s->given->v[i].name);
    s->asked[i] = true;
  }
  return 1;
}

static void define_given(Script *s, const Params *given) {
  static const luaL_Reg meta[] = {{"__index", given_index}, {"__pairs", given_pairs}, {0}};
  lua_State *L = lua_env_state(s->env);
  s->given = given;
  s->asked = arena_array(s->arena, bool, given ? given->n + 1 : 1);
  lua_newuserdatauv(L, 0, 0);
  luaL_newlib(L, meta);
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  lua_env_define(s->env, "given");
}

Status script_check_given(const Script *s, Diag *d) {
  for (int i = 0; s->given && i < s->given->n; i++)
    if (!s->asked[i])
      return diag_error(d, (Place){.src = s->src},
                        "the script does not ask for %s, and it is given", s->given->v[i].name);
  return ST_OK;
}

// Runs a chunk that leaves `module`.`function` on the stack.
static Status push_function(Script *s, const char *module, const char *function, Diag *d) {
  const char *text =
      arena_printf(s->arena, "return require(\"%s\").%s", module, function);
  return lua_env_run(s->env, source_new(s->arena, module, text, strlen(text)), 1, d);
}

// ---- runs ---------------------------------------------------------------------------------------

static const char *text_field(Script *s, lua_State *L, const char *name) {
  lua_getfield(L, -1, name);
  const char *text = arena_strdup(s->arena, lua_isstring(L, -1) ? lua_tostring(L, -1) : "");
  lua_pop(L, 1);
  return text;
}

static double number_field(lua_State *L, const char *name) {
  lua_getfield(L, -1, name);
  double x = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return x;
}

// lua/ptxsmith/space.lua has refused what is no such number; 0 where there is none.
static int count_field(lua_State *L, const char *name) {
  double x = number_field(L, name);
  assert(x >= 0 && x <= INT32_MAX && x == (int)x);
  return (int)x;
}

// The run on top of the stack, which space.runs made.
static Status read_run(Script *s, lua_State *L, Run *r, Diag *d) {
  r->name = text_field(s, L, "name");
  r->template_name = text_field(s, L, "template");
  r->spec = text_field(s, L, "problem");
  r->pruned = count_field(L, "pruned");
  r->limit_s = number_field(L, "limit");
  r->samples = count_field(L, "samples");
  lua_getfield(L, -1, "predict");
  r->predicts = lua_isfunction(L, -1);
  lua_pop(L, 1);
  lua_getfield(L, -1, "points");
  r->npoints = (int)lua_rawlen(L, -1);
  r->points = arena_array(s->arena, const char *, r->npoints + 1);
  for (int i = 0; i < r->npoints; i++) {
    lua_rawgeti(L, -1, i + 1);
    r->points[i] = arena_strdup(s->arena, lua_tostring(L, -1));
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  Problem *p;
  Status st = problem_open_hooked(s->session, s->arena, r->spec, s->hook_path, &p, d);
  r->problem = p;
  return st;
}

static Status read_runs(Script *s, Diag *d) {
  lua_State *L = lua_env_state(s->env);
  s->nruns = (int)lua_rawlen(L, -1);
  s->runs = arena_array(s->arena, Run, s->nruns + 1);
  Status st = ST_OK;
  for (int i = 0; i < s->nruns && !st; i++) {
    lua_rawgeti(L, -1, i + 1);
    s->runs[i].index = i + 1;
    st = read_run(s, L, &s->runs[i], d);
    lua_pop(L, 1);
  }
  s->runs_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  return st;
}

static Status evaluate(Script *s, const char *path, const Params *given, Diag *d) {
  Status st = find_source(s, path, &s->src, d);
  if (st) return st;
  s->name = base_name(s->arena, path);
  lua_env_register(s->env, NULL, functions);
  define_given(s, given);
  lua_env_limit(s->env, (LuaLimits){0});
  if ((st = push_function(s, "ptxsmith.space", "runs", d))) return st;
  if ((st = lua_env_run(s->env, s->src, 1, d))) return st;
  if ((st = lua_env_call(s->env, 1, 1, d))) return st;
  return read_runs(s, d);
}

Status script_open(Session *session, const char *path, const Params *given, const char *hook_path,
                   Script **out, Diag *d) {
  Arena *a = arena_new();
  Script *s = arena_new_of(a, Script);
  *s = (Script){.session = session, .arena = a, .env = lua_env_new(), .d = d,
                .hook_path = hook_path};
  lua_env_set_user(s->env, s);
  Status st = evaluate(s, path, given, d);
  *out = st ? NULL : s;
  if (st) script_close(s);
  return st;
}

void script_close(Script *s) {
  if (!s) return;
  lua_env_free(s->env);
  arena_free(s->arena);
}

const char *script_name(const Script *s) { return s->name; }

const Run *script_runs(const Script *s, int *n) {
  *n = s->nruns;
  return s->runs;
}

// ---- predictions and reports --------------------------------------------------------------------

static void push_run(Script *s, const Run *r) {
  lua_State *L = lua_env_state(s->env);
  lua_rawgeti(L, LUA_REGISTRYINDEX, s->runs_ref);
  lua_rawgeti(L, -1, r->index);
  lua_remove(L, -2);
}

static void push_fields(lua_State *L, const Params *fields) {
  lua_newtable(L);
  for (int i = 0; i < fields->n; i++) {
    char *end;
    double x = number_parse(fields->v[i].value, &end);
    if (end != fields->v[i].value && !*end)
      lua_pushnumber(L, x);
    else
      lua_pushstring(L, fields->v[i].value);
    lua_setfield(L, -2, fields->v[i].name);
  }
}

static void push_ceilings(lua_State *L, const Ceiling *c, int sm_count) {
  const struct { const char *name; double value; } fields[] = {
      {"read_gbs", c->read_gbs}, {"copy_gbs", c->copy_gbs}, {"fma_gflops", c->fma_gflops},
      {"sm_count", sm_count}};
  lua_newtable(L);
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    lua_pushnumber(L, fields[i].value);
    lua_setfield(L, -2, fields[i].name);
  }
}

static Status read_prediction(Script *s, const Run *r, Prediction *out, Diag *d) {
  lua_State *L = lua_env_state(s->env);
  *out = (Prediction){.why = ""};
  if (lua_istable(L, -1)) {
    out->us = number_field(L, "us");
    out->why = text_field(s, L, "why");
  } else
    out->us = lua_tonumber(L, -1);
  lua_pop(L, 1);
  if (out->us > 0 && out->us < 1e15) return ST_OK;
  return diag_fail(d, ST_INPUT, "%s: predict gave no time: microseconds, or a table with `us`",
                   r->name);
}

Status script_predict(Script *s, const Run *r, int point, const Params *work, const Ceiling *c,
                      int sm_count, Prediction *out, Diag *d) {
  lua_State *L = lua_env_state(s->env);
  s->d = d;
  lua_env_limit(s->env, (LuaLimits){0});
  push_run(s, r);
  lua_getfield(L, -1, "predict");
  push_problem(L, r->problem);
  push_fields(L, work);
  lua_getfield(L, -4, "params"); // of all points
  lua_rawgeti(L, -1, point + 1);
  lua_remove(L, -2);
  lua_setfield(L, -2, "params");
  push_ceilings(L, c, sm_count);
  Status st = lua_env_call(s->env, 3, 1, d);
  if (!st) st = read_prediction(s, r, out, d);
  lua_pop(L, 1); // the run
  return st;
}

Status script_report(Script *s, const char *function, const Run *r, const Params *rows, int nrows,
                     const char **out, Diag *d) {
  lua_State *L = lua_env_state(s->env);
  s->d = d;
  lua_env_limit(s->env, (LuaLimits){0});
  Status st = push_function(s, "ptxsmith.report", function, d);
  if (st) return st;
  push_run(s, r);
  lua_newtable(L);
  for (int i = 0; i < nrows; i++) {
    push_fields(L, &rows[i]);
    lua_rawseti(L, -2, i + 1);
  }
  if ((st = lua_env_call(s->env, 2, 1, d))) return st;
  const char *text = lua_tostring(L, -1);
  *out = arena_strdup(s->arena, text ? text : "");
  lua_pop(L, 1);
  return ST_OK;
}
