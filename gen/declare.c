// The parameter block: template, param, constrain, arg, launch and its like, include.
#include "expand.h"
#include "session.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

// ---- checks ------------------------------------------------------------------------------------

static Expansion *declaring(lua_State *L, const char *what) {
  Expansion *x = expansion_of(L);
  if (x->hook_trial) lua_env_error(L, "a hook declares Args only: no %s in it", what);
  if (x->in_body) lua_env_error(L, "%s after the first PTX line: declarations come first", what);
  x->declared = true;
  return x;
}

static bool is_identifier(const char *s) {
  static const char *const keywords[] = {"and",   "break", "do",       "else", "elseif", "end",
                                         "false", "for",   "function", "goto", "if",     "in",
                                         "local", "nil",   "not",      "or",   "repeat", "return",
                                         "then",  "true",  "until",    "while"};
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
    if (strcmp(s, keywords[i]) == 0) return false;
  if (!isalpha((unsigned char)*s) && *s != '_') return false;
  while (isalnum((unsigned char)*s) || *s == '_') s++;
  return !*s;
}

// Element `i` of the table at `index` as a text in the variant's arena.
static const char *element_text(lua_State *L, int index, int i, const char *what) {
  if (lua_rawgeti(L, index, i) != LUA_TSTRING)
    lua_env_error(L, "%s: element %d must be a text, not a %s", what, i, luaL_typename(L, -1));
  const char *s = expansion_keep(L, lua_tostring(L, -1));
  lua_pop(L, 1);
  return s;
}

static const char *element_name(lua_State *L, const char *what) {
  const char *name = element_text(L, 1, 1, what);
  if (!is_identifier(name)) lua_env_error(L, "%s: '%s' is not a name", what, name);
  return name;
}

// ---- template, target --------------------------------------------------------------------------

static const struct {
  const char *name;
  TemplateKind kind;
} kinds[] = {{"prefill", KIND_PREFILL}, {"decode", KIND_DECODE}, {"combine", KIND_COMBINE},
             {"ceiling", KIND_CEILING}, {"oracle", KIND_ORACLE}, {"helper", KIND_HELPER}};

static const char *const regime_names[REGIME_NONE] = {"many queries", "few items", "many items"};

static Regime regime_named(lua_State *L, const char *name) {
  int i = 0;
  while (i < REGIME_NONE && strcmp(regime_names[i], name) != 0) i++;
  if (*name && i == REGIME_NONE)
    lua_env_error(L, "template: first is one of \"%s\", \"%s\", \"%s\", not '%s'",
                  regime_names[0], regime_names[1], regime_names[2], name);
  return (Regime)i;
}

static int declare_template(lua_State *L) {
  static const char *const fields[] = {"kind", "summary", "rank", "first", "group", NULL};
  Expansion *x = declaring(L, "template");
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_check_fields(L, 1, fields, "template");
  const char *kind = lua_field_text(L, 1, "kind", "", "template");
  size_t i = 0, n = sizeof kinds / sizeof *kinds;
  while (i < n && strcmp(kinds[i].name, kind) != 0) i++;
  if (i == n)
    return lua_env_error(L,
                         "template: kind is one of prefill, decode, combine, ceiling, oracle, "
                         "helper, not '%s'",
                         kind);
  x->info->kind = x->v->kind = kinds[i].kind;
  x->info->summary = lua_field_text(L, 1, "summary", "", "template");
  x->info->first = regime_named(L, lua_field_text(L, 1, "first", "", "template"));
  x->info->group = lua_field_text(L, 1, "group", "", "template");
  int rank = (int)lua_field_int(L, 1, "rank", 0, "template");
  bool planned = x->info->kind == KIND_PREFILL || x->info->kind == KIND_DECODE;
  if (rank < 0 || rank > 1000)
    lua_env_error(L, "template: rank is 1 (first) to 1000, not %d", rank);
  if (!planned && (rank || x->info->first != REGIME_NONE || *x->info->group))
    lua_env_error(L,
                  "template: rank, first and group are for prefill and decode: the planner takes "
                  "no %s",
                  kind);
  x->info->rank = rank;
  return 0;
}

static int declare_target(lua_State *L) {
  static const char *const fields[] = {"ptx", "sm", NULL};
  Expansion *x = declaring(L, "target");
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_check_fields(L, 1, fields, "target");
  x->min_ptx = (int)lua_field_int(L, 1, "ptx", x->min_ptx, "target");
  lua_getfield(L, 1, "sm"); // 80 or "90a"
  const char *sm = lua_isnil(L, -1) ? "" : luaL_tolstring(L, -1, NULL);
  char *end;
  long n = strtol(sm, &end, 10);
  bool suffix = *end == 'a' || *end == 'f';
  if (*sm && (n < 50 || n > 200 || end[suffix]))
    return lua_env_error(L, "target: sm is a number like 80 or a text like \"90a\"");
  if (*sm) x->min_sm = (int)n;
  if (*sm) x->sm_suffix = *end;
  return 0;
}

// ---- param -------------------------------------------------------------------------------------

static ParamKind kind_of_value(lua_State *L, int index) {
  Dtype t;
  if (lua_isboolean(L, index)) return PARAM_BOOL;
  if (lua_isinteger(L, index)) return PARAM_INT;
  if (lua_type(L, index) == LUA_TSTRING) return PARAM_NAME;
  if (!lua_istable(L, index) || !lua_to_dtype(L, index, &t))
    lua_env_error(L, "param: a value is an integer, a boolean, a text or a dtype");
  return PARAM_DTYPE;
}

static const char *value_text(lua_State *L, int index) {
  size_t n;
  const char *why, *s = lua_env_text(L, index, &n, &why);
  if (!s) lua_env_error(L, "param: a value %s", why);
  return expansion_keep(L, s);
}

static void read_domain(lua_State *L, Expansion *x, ParamDecl *p) {
  if (lua_rawgeti(L, 1, 2) != LUA_TTABLE)
    lua_env_error(L, "param '%s': the second element is the list of its values", p->name);
  int n = (int)lua_rawlen(L, -1);
  if (n < 1 || n > 4096) lua_env_error(L, "param '%s': 1 to 4096 values, not %d", p->name, n);
  p->values = arena_array(x->arena, const char *, n);
  p->nvalues = n;
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, -1, i + 1);
    ParamKind k = kind_of_value(L, -1);
    if (i && k != p->kind) lua_env_error(L, "param '%s': values of one kind, please", p->name);
    p->kind = k;
    p->values[i] = value_text(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

// The index of a text among the legal values, -1 when it is none.
static int find_value(const ParamDecl *p, const char *text) {
  if (p->kind == PARAM_BOOL && strcmp(text, "true") == 0) text = "1";
  if (p->kind == PARAM_BOOL && strcmp(text, "false") == 0) text = "0";
  char *end;
  long long n = strtoll(text, &end, 10);
  bool number = p->kind == PARAM_INT && *text && !*end;
  for (int i = 0; i < p->nvalues; i++)
    if (number ? strtoll(p->values[i], NULL, 10) == n : strcmp(p->values[i], text) == 0) return i;
  return -1;
}

// "1, 2, 4 or 8"; long lists lose their middle.
static const char *legal_values(Arena *a, const ParamDecl *p) {
  char *s = arena_strdup(a, "");
  for (int i = 0; i < p->nvalues; i++) {
    if (p->nvalues > 16 && i == 8) {
      s = arena_printf(a, "%s, ...", s);
      i = p->nvalues - 2;
      continue;
    }
    const char *sep = i == 0 ? "" : i == p->nvalues - 1 ? " or " : ", ";
    s = arena_printf(a, "%s%s%s", s, sep, p->values[i]);
  }
  return s;
}

static void set_global(lua_State *L, const char *name) { // pops the value
  session_push_environment(L);
  lua_insert(L, -2);
  lua_pushstring(L, name);
  lua_insert(L, -2);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

static int declare_param(lua_State *L) {
  static const char *const fields[] = {"default", NULL};
  Expansion *x = declaring(L, "param");
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_check_fields(L, 1, fields, "param");
  ParamDecl p = {.name = element_name(L, "param")};
  if (params_get(&x->v->params, p.name))
    return lua_env_error(L, "param '%s' is declared twice", p.name);
  read_domain(L, x, &p);
  p.doc = element_text(L, 1, 3, "param");
  p.def = p.values[0];
  if (lua_getfield(L, 1, "default") != LUA_TNIL) p.def = value_text(L, -1);
  int chosen = find_value(&p, p.def);
  if (chosen < 0)
    return lua_env_error(L, "param '%s': its default %s is not among its values", p.name, p.def);
  const char *given = x->given ? params_get(x->given, p.name) : NULL;
  int i = given ? find_value(&p, given) : chosen;
  if (i < 0) {
    diag_fail(x->d, ST_INPUT, "%s: %s=%s is not legal: %s is %s", x->info->name, p.name, given,
              p.name, legal_values(x->arena, &p));
    x->bad = true;
    i = chosen;
  }
  *arena_push(x->arena, x->info->params, x->info->nparams, x->params_cap) = p;
  params_set(x->arena, &x->v->params, p.name, p.values[i]);
  lua_rawgeti(L, 1, 2);
  lua_rawgeti(L, -1, i + 1);
  set_global(L, p.name);
  return 0;
}

static int declare_constrain(lua_State *L) {
  Expansion *x = declaring(L, "constrain");
  luaL_checkany(L, 1);
  const char *msg = luaL_checkstring(L, 2);
  if (lua_toboolean(L, 1) || x->bad) return 0; // after a bad value it judges a stand-in
  x->failed_constraint = expansion_keep(L, msg);
  if (x->probe) return lua_env_stop(L);
  Place at = {.origin = expansion_origin(L)};
  diag_error(x->d, at, "%s", msg);
  diag_add(x->d, SEV_NOTE, NOWHERE, "with %s", variant_id(x->arena, x->v));
  return lua_env_reported(L);
}

// ---- arg ---------------------------------------------------------------------------------------

static const struct {
  const char *name;
  ArgRole role;
} roles[] = {{"in", ARG_IN}, {"out", ARG_OUT}, {"inout", ARG_INOUT}, {"work", ARG_WORK}};

static bool find_role(const char *s, ArgRole *out) {
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    if (strcmp(roles[i].name, s) == 0) return *out = roles[i].role, true;
  return false;
}

// Pops a dimension: a Problem value's name, a constant, or ceil_div(name, n).
static Dim read_dim(lua_State *L, const char *what) {
  Dim dim = {.div = 1};
  if (lua_isinteger(L, -1)) {
    dim.n = lua_tointeger(L, -1);
    if (dim.n < 1) lua_env_error(L, "%s: a dimension of %d", what, (int)dim.n);
  } else if (lua_type(L, -1) == LUA_TSTRING) {
    dim.name = expansion_keep(L, lua_tostring(L, -1));
  } else if (lua_istable(L, -1)) {
    dim.name = lua_field_text(L, -1, "name", "", what);
    dim.div = lua_field_int(L, -1, "div", 1, what);
    if (!*dim.name || dim.div < 1)
      lua_env_error(L, "%s: a dimension is a name, an integer or ceil_div(name, n)", what);
  } else {
    lua_env_error(L, "%s: a dimension is a name, an integer or ceil_div(name, n), not a %s", what,
                  luaL_typename(L, -1));
  }
  lua_pop(L, 1);
  return dim;
}

// The list of dimensions at -1; pops it.
static int read_dims(lua_State *L, Dim *out, int max, const char *what) {
  if (!lua_istable(L, -1)) lua_env_error(L, "%s: a list of dimensions is missing", what);
  int n = (int)lua_rawlen(L, -1);
  if (n < 1 || n > max) lua_env_error(L, "%s: 1 to %d dimensions, not %d", what, max, n);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, -1, i + 1);
    out[i] = read_dim(L, what);
  }
  lua_pop(L, 1);
  return n;
}

// map = { box = { elements of each dimension }, swizzle = 0 | 32 | 64 | 128, parts = n,
//   promote = 0 | 64 | 128 | 256 }
static void read_map(lua_State *L, ArgDecl *arg) {
  static const char *const fields[] = {"box", "swizzle", "parts", "promote", NULL};
  if (lua_getfield(L, 1, "map") == LUA_TNIL) {
    lua_pop(L, 1);
    return;
  }
  if (!lua_istable(L, -1)) lua_env_error(L, "arg '%s': map = { box = { ... } }", arg->name);
  int map = lua_gettop(L);
  lua_check_fields(L, map, fields, "map");
  lua_Integer swizzle = lua_field_int(L, map, "swizzle", 0, "map");
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    lua_env_error(L, "arg '%s': a map's swizzle is 0, 32, 64 or 128 bytes", arg->name);
  arg->map.swizzle = (uint32_t)swizzle;
  lua_Integer promote = lua_field_int(L, map, "promote", 256, "map");
  if (promote != 0 && promote != 64 && promote != 128 && promote != 256)
    lua_env_error(L, "arg '%s': a map's promote is 0, 64, 128 or 256 bytes", arg->name);
  arg->map.l2 = promote ? (uint32_t)(promote / 128 + 1) : 0;
  lua_Integer parts = lua_field_int(L, map, "parts", 0, "map");
  if (parts < 0 || parts > 256)
    lua_env_error(L, "arg '%s': a map's parts are 256 at most", arg->name);
  arg->map.parts = (uint32_t)parts;
  if (lua_getfield(L, map, "box") != LUA_TTABLE || (int)lua_rawlen(L, -1) != arg->rank)
    lua_env_error(L, "arg '%s': a map's box has as many extents as the tensor: %d", arg->name,
                  arg->rank);
  if (arg->rank + (arg->map.parts > 0) > 5)
    lua_env_error(L, "arg '%s': a map has 5 dimensions at most", arg->name);
  for (int i = 0; i < arg->rank; i++) {
    lua_rawgeti(L, -1, i + 1);
    if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < 1 || lua_tointeger(L, -1) > 256)
      lua_env_error(L, "arg '%s': an extent of a map's box is an integer from 1 to 256", arg->name);
    arg->map.box[i] = (uint32_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  Dim row = arg->dim[arg->rank - 1];
  if (arg->map.parts && (row.name || row.n != arg->map.parts * arg->map.box[arg->rank - 1]))
    lua_env_error(L, "arg '%s': a map's parts are of the box's last extent, and make a row",
                  arg->name);
  lua_pop(L, 2);
}

static void read_tensor(lua_State *L, ArgDecl *arg) {
  lua_rawgeti(L, 1, 3);
  if (!lua_to_dtype(L, -1, &arg->dtype))
    lua_env_error(L, "arg '%s': the third element is a dtype", arg->name);
  lua_pop(L, 1);
  lua_rawgeti(L, 1, 4);
  arg->rank = read_dims(L, arg->dim, TENSOR_MAX_RANK, arg->name);
  arg->doc = element_text(L, 1, 5, "arg");
  arg->zero = lua_field_bool(L, 1, "zero", false, "arg");
  arg->optional = lua_field_bool(L, 1, "optional", false, "arg");
  arg->sorted = lua_field_bool(L, 1, "sorted", false, "arg");
  arg->partial = lua_field_bool(L, 1, "partial", false, "arg");
  read_map(L, arg);
  if (arg->zero && arg->role != ARG_WORK)
    lua_env_error(L, "arg '%s': only workspace can be asked to be zero", arg->name);
  if (arg->partial && (arg->role != ARG_WORK || arg->zero))
    lua_env_error(L, "arg '%s': only workspace that need not be zero can be partial", arg->name);
  if (arg->optional && (arg->role == ARG_WORK || arg->role == ARG_INOUT))
    lua_env_error(L, "arg '%s': only an input or an output can be optional", arg->name);
  if (arg->map.box[0] && (arg->optional || arg->role == ARG_WORK))
    lua_env_error(L, "arg '%s': a tensor with a map is neither optional nor workspace", arg->name);
}

static void read_value(lua_State *L, ArgDecl *arg, const char *type) {
  bool known = dtype_parse(type, &arg->dtype) && (arg->dtype == DT_I32 || arg->dtype == DT_I64 ||
                                                  arg->dtype == DT_F32 || arg->dtype == DT_F64);
  if (!known)
    lua_env_error(L,
                  "arg '%s': '%s' is neither a role (in, out, inout, work) nor the type of a "
                  "value (i32, i64, f32, f64)",
                  arg->name, type);
  arg->doc = element_text(L, 1, 3, "arg");
  arg->not_negative = lua_field_bool(L, 1, "not_negative", false, "arg");
  lua_Integer multiple = lua_field_int(L, 1, "multiple", 0, "arg");
  if (multiple < 0 || multiple > INT_MAX || (multiple && dtype_mantissa(arg->dtype)))
    lua_env_error(L, "arg '%s': multiple is a positive number, of a value that is a whole one",
                  arg->name);
  arg->multiple = (int)multiple;
}

static int declare_arg(lua_State *L) {
  static const char *const fields[] = {"zero", "optional", "partial", "sorted", "map",
                                       "not_negative", "multiple", NULL};
  Expansion *x = expansion_of(L);
  if (x->hook_runs) return 0; // declared by its trial run
  if (x->hook_saw_ptx) return lua_env_error(L, "arg after the hook's first PTX line");
  if (!x->hook_trial) declaring(L, "arg");
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_check_fields(L, 1, fields, "arg");
  ArgDecl arg = {.name = element_name(L, "arg")};
  for (int i = 0; i < x->v->nargs; i++) {
    if (strcmp(x->v->args[i].name, arg.name) != 0) continue;
    if (x->hook_trial && i < x->first_hook_arg)
      return lua_env_error(L, "arg '%s': %s has one of that name; a hook's own needs another",
                           arg.name, x->info->name);
    return lua_env_error(L, "arg '%s' is declared twice", arg.name);
  }
  const char *second = element_text(L, 1, 2, "arg");
  if (find_role(second, &arg.role)) read_tensor(L, &arg);
  else read_value(L, &arg, second);
  if (x->hook_trial) {
    arg.origin = expansion_origin(L);
    if (arg.role != ARG_VALUE && arg.role != ARG_IN)
      return lua_env_error(L, "arg '%s': a hook's tensors are inputs, not \"%s\"", arg.name,
                           second);
  }
  *arena_push(x->arena, x->v->args, x->v->nargs, x->args_cap) = arg;
  return 0;
}

// ---- launch, next_step -------------------------------------------------------------------------

// A field that is an integer or a list of up to three.
static void read_extent(lua_State *L, const char *name, uint32_t out[3]) {
  out[0] = out[1] = out[2] = 1;
  int type = lua_getfield(L, 1, name), n = 1;
  if (type == LUA_TTABLE) n = (int)lua_rawlen(L, -1);
  if (n < 1 || n > 3) lua_env_error(L, "launch: %s has one to three extents", name);
  for (int i = 0; i < n && type != LUA_TNIL; i++) {
    if (type == LUA_TTABLE) lua_rawgeti(L, -1, i + 1);
    else lua_pushvalue(L, -1);
    if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < 1 || lua_tointeger(L, -1) > 1024)
      lua_env_error(L, "launch: an extent of %s is an integer from 1 to 1024", name);
    out[i] = (uint32_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static int declare_launch(lua_State *L) {
  static const char *const fields[] = {"work", "items",  "block",      "cluster",
                                       "smem", "per_sm", "persistent", NULL};
  Expansion *x = declaring(L, "launch");
  LaunchRule *rule = &x->v->launch;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_check_fields(L, 1, fields, "launch");
  if (rule->nwork) return lua_env_error(L, "launch is declared twice");
  lua_getfield(L, 1, "work");
  rule->nwork = read_dims(L, rule->work, LAUNCH_MAX_WORK, "launch: work");
  if (lua_getfield(L, 1, "items") == LUA_TNIL) lua_pop(L, 1);
  else rule->nitems = read_dims(L, rule->items, LAUNCH_MAX_WORK, "launch: items");
  read_extent(L, "block", rule->block);
  read_extent(L, "cluster", rule->cluster);
  if (rule->block[0] * rule->block[1] * rule->block[2] > 1024)
    return lua_env_error(L, "launch: a block has at most 1024 threads");
  if (rule->cluster[0] * rule->cluster[1] * rule->cluster[2] > 16)
    return lua_env_error(L, "launch: a cluster has at most 16 blocks");
  lua_Integer smem = lua_field_int(L, 1, "smem", 0, "launch");
  if (smem < 0 || smem > 227 * 1024)
    return lua_env_error(L, "launch: %lld bytes of shared memory, at most 227 KiB are there",
                         (long long)smem);
  rule->smem_bytes = (uint32_t)smem;
  lua_Integer per_sm = lua_field_int(L, 1, "per_sm", 0, "launch");
  if (per_sm < 0 || per_sm > 32)
    return lua_env_error(L, "launch: per_sm is the number of blocks an SM holds: 1 to 32");
  rule->per_sm = (uint32_t)per_sm;
  rule->persistent = lua_field_bool(L, 1, "persistent", false, "launch");
  return 0;
}

// ceiling { flops = of a thread in a round, first = what its sum begins with }
static int declare_ceiling(lua_State *L) {
  static const char *const fields[] = {"flops", "first", NULL};
  Expansion *x = declaring(L, "ceiling");
  CeilingRule *rule = &x->v->ceiling;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_check_fields(L, 1, fields, "ceiling");
  if (x->info->kind != KIND_CEILING || rule->flops)
    return lua_env_error(L, rule->flops ? "ceiling is declared twice"
                                        : "ceiling: the template's kind is another");
  rule->flops = lua_field_int(L, 1, "flops", 0, "ceiling");
  rule->first = lua_field_int(L, 1, "first", 0, "ceiling");
  if (rule->flops < 1 || rule->first < 0)
    return lua_env_error(L, "ceiling: flops is at least 1, first at least 0");
  return 0;
}

static int compare_params(const void *a, const void *b) {
  return strcmp(((const Param *)a)->name, ((const Param *)b)->name);
}

static int declare_next_step(lua_State *L) {
  Expansion *x = declaring(L, "next_step");
  if (x->v->next) return lua_env_error(L, "next_step is declared twice");
  NextStep *next = arena_new_of(x->arena, NextStep);
  next->template_name = expansion_keep(L, luaL_checkstring(L, 1));
  lua_settop(L, 2);
  if (!lua_isnil(L, 2)) luaL_checktype(L, 2, LUA_TTABLE);
  if (lua_istable(L, 2))
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
      if (lua_type(L, -2) != LUA_TSTRING)
        return lua_env_error(L, "next_step: parameters are NAME = value");
      params_set(x->arena, &next->params, lua_tostring(L, -2), value_text(L, -1));
    }
  if (next->params.n)
    qsort(next->params.v, (size_t)next->params.n, sizeof(Param), compare_params);
  x->v->next = next;
  return 0;
}

// ---- include -----------------------------------------------------------------------------------

enum { INCLUDE_STEPS = 1000 }; // looking for a file, and among all names for one like it

static int declare_include(lua_State *L) {
  Expansion *x = expansion_of(L);
  const char *name = luaL_checkstring(L, 1);
  if (x->hook_trial || x->hook_runs) return lua_env_error(L, "a hook includes no files");
  x->declared = true;
  if (name[0] == '/' || strstr(name, ".."))
    return lua_env_error(L, "include: '%s' is not a path below templates/", name);
  lua_env_charge_steps(L, INCLUDE_STEPS);
  const char *path = arena_printf(x->arena, "templates/%s", name);
  const Source *src;
  if (session_find(x->session, path, &src, x->d) != ST_OK) return lua_env_reported(L);
  if (!src)
    return lua_env_error(L, "include: there is no '%s'%s", path,
                         session_nearest(x->session, x->arena, path));
  for (int i = 0; i < x->nincluded; i++)
    if (x->included[i] == src) return 0; // once is enough: a file may include what it needs
  *arena_push(x->arena, x->included, x->nincluded, x->included_cap) = src;
  if (session_push_chunk(x->session, src, ORIGIN_INCLUDE, x->d) != ST_OK)
    return lua_env_reported(L);
  session_push_environment(L);
  lua_env_bind(x->env);
  lua_call(L, 0, 0);
  return 0;
}

const luaL_Reg declare_functions[] = {
    {"template", declare_template},   {"target", declare_target},   {"param", declare_param},
    {"constrain", declare_constrain}, {"arg", declare_arg},         {"launch", declare_launch},
    {"next_step", declare_next_step}, {"include", declare_include}, {"ceiling", declare_ceiling},
    {NULL, NULL},
};

// ---- the end of the parameter block ------------------------------------------------------------

static void lay_out_args(Variant *v) {
  uint32_t at = 0;
  for (int i = 0; i < v->nargs; i++) {
    ArgDecl *arg = &v->args[i];
    uint32_t size = arg->role == ARG_VALUE ? (uint32_t)dtype_bytes(arg->dtype) : 8;
    at = (at + size - 1) / size * size;
    arg->offset = at;
    at += arg->role == ARG_VALUE ? size : 8 * (uint32_t)arg->rank; // pointer, rank - 1 strides
    if (!arg->map.box[0]) continue;
    arg->map_offset = (at + MAP_ALIGN - 1) / MAP_ALIGN * MAP_ALIGN;
    at = arg->map_offset + MAP_BYTES;
  }
  v->arg_bytes = at;
}

static void check_names(Expansion *x) {
  const TemplateInfo *info = x->info;
  const char **names = arena_array(x->arena, const char *, info->nparams + 1);
  char *all = arena_strdup(x->arena, "");
  for (int i = 0; i < info->nparams; i++) {
    names[i] = info->params[i].name;
    all = arena_printf(x->arena, "%s%s%s", all, i ? ", " : "", names[i]);
  }
  for (int i = 0; x->given && i < x->given->n; i++) {
    const char *name = x->given->v[i].name;
    if (params_get(&x->v->params, name)) continue;
    const char *near = diag_nearest(x->arena, name, names, info->nparams);
    diag_fail(x->d, ST_INPUT, "%s has no parameter '%s'%s; it has %s", info->name, name, near,
              *all ? all : "none");
    x->bad = true;
  }
}

void expansion_end_block(lua_State *L, Expansion *x) {
  if (x->in_body) return;
  if (!x->info->summary)
    lua_env_error(L, "a template begins with template { kind = ..., summary = ... }");
  check_names(x);
  if (x->bad) lua_env_reported(L);
  if (!x->v->launch.nwork) lua_env_error(L, "there is no launch { ... } above the first PTX line");
  if (x->hook) hook_declare(L, x);
  x->in_body = true;
  lay_out_args(x->v);
  if (x->declare_only) lua_env_stop(L);
}
