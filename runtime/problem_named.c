// Named problems: lua/ptxsmith/problem.lua, run in the closed environment.
#include <string.h>

#include "../gen/lua_env.h"
#include "problem.h"

static const char *field(lua_State *L, Arena *a, const char *name) {
  lua_getfield(L, -1, name);
  const char *text = lua_tostring(L, -1);
  text = text ? arena_strdup(a, text) : NULL;
  lua_pop(L, 1);
  return text;
}

static Status read_list(LuaEnv *e, const Source *src, Arena *a, NamedProblem **out, int *n,
                        Diag *d) {
  Status st = lua_env_run(e, src, 1, d);
  if (st != ST_OK) return st;
  lua_State *L = lua_env_state(e);
  if (!lua_istable(L, -1)) return diag_fail(d, ST_INPUT, "%s: returns no list", src->name);
  int count = (int)lua_rawlen(L, -1);
  *out = arena_array(a, NamedProblem, count);
  for (*n = 0; *n < count; ++*n) {
    lua_rawgeti(L, -1, *n + 1);
    NamedProblem p = {0};
    if (lua_istable(L, -1))
      p = (NamedProblem){field(L, a, "name"), field(L, a, "values"), field(L, a, "doc")};
    lua_pop(L, 1);
    if (!p.name || !p.text || !p.doc)
      return diag_fail(d, ST_INPUT, "%s: entry %d lacks a name, values or doc", src->name, *n + 1);
    (*out)[*n] = p;
  }
  return ST_OK;
}

Status problem_list(Session *s, Arena *a, NamedProblem **out, int *n, Diag *d) {
  const Source *src;
  *out = NULL;
  *n = 0;
  Status st = session_file(s, "lua/ptxsmith/problem.lua", &src, d);
  if (st != ST_OK) return st;
  LuaEnv *e = lua_env_new();
  st = read_list(e, src, a, out, n, d);
  lua_env_free(e);
  return st;
}

static Status unknown(Arena *a, const char *name, const NamedProblem *list, int n, Diag *d) {
  const char **names = arena_array(a, const char *, n);
  for (int i = 0; i < n; i++) names[i] = list[i].name;
  return diag_fail(d, ST_INPUT, "no problem is named \"%s\"%s; list --problems shows all", name,
                   diag_nearest(a, name, names, n));
}

Status problem_open(Session *s, Arena *a, const char *spec, Problem **out, Diag *d) {
  return problem_open_with(s, a, spec, NULL, 0, out, d);
}

Status problem_open_with(Session *s, Arena *a, const char *spec, const char *const *extra,
                         int nextra, Problem **out, Diag *d) {
  *out = NULL;
  size_t len = strcspn(spec, ",");
  if (memchr(spec, '=', len) || !len) return problem_parse_with(a, spec, extra, nextra, out, d);
  char *name = arena_strndup(a, spec, len);
  NamedProblem *list;
  int n;
  Status st = problem_list(s, a, &list, &n, d);
  if (st != ST_OK) return st;
  for (int i = 0; i < n; i++) {
    if (strcmp(list[i].name, name)) continue;
    st =
        problem_parse_over(a, list[i].text, spec[len] ? spec + len + 1 : "", extra, nextra, out, d);
    if (st == ST_OK) (*out)->name = name;
    return st;
  }
  return unknown(a, name, list, n, d);
}
