// The frame of a kernel: module directives, parameters, their registers, the shared-memory map.
#include "hook.h"

#include <string.h>

static const char *value_type(Dtype t) {
  switch (t) {
  case DT_I32: return ".s32";
  case DT_I64: return ".s64";
  case DT_F32: return ".f32";
  default: return ".f64";
  }
}

// ---- entry_begin -------------------------------------------------------------------------------

// PTX ISA that a target needs at least; the template's own floor holds besides.
static int version_for(const Expansion *x, int sm, char suffix) {
  int least = ptx_target_min_version(sm, suffix);
  return least > x->min_ptx ? least : x->min_ptx;
}

// The target: the template's least one, or what the user asked for when it is no less.
static void choose_target(lua_State *L, Expansion *x, int *sm, char *suffix) {
  *sm = x->min_sm;
  *suffix = x->sm_suffix;
  if (!x->opts->sm) return;
  bool fits = x->sm_suffix ? x->opts->sm == x->min_sm && x->opts->sm_suffix == x->sm_suffix
                           : x->opts->sm >= x->min_sm;
  if (!fits) {
    diag_fail(x->d, ST_INPUT, "%s needs sm_%d%.1s%s, not sm_%d%.1s", x->info->name, x->min_sm,
              &x->sm_suffix, x->sm_suffix ? "" : " or later", x->opts->sm, &x->opts->sm_suffix);
    lua_env_reported(L);
  }
  *sm = x->opts->sm;
  *suffix = x->opts->sm_suffix;
}

static void emit_param(lua_State *L, const char *type, const char *name, bool last) {
  emitf(L, "        .param %s %s%s", type, name, last ? "" : ",");
}

// A value: NAME.  A tensor of rank R: NAME, NAME_stride_0 .. NAME_stride_<R-2>, NAME_map if it has
// one.
static void emit_params(lua_State *L, Expansion *x) {
  const Variant *v = x->v;
  for (int i = 0; i < v->nargs; i++) {
    const ArgDecl *arg = &v->args[i];
    bool last = i == v->nargs - 1, map = arg->map.box[0] != 0;
    if (arg->role == ARG_VALUE) {
      emit_param(L, value_type(arg->dtype), arg->name, last);
      continue;
    }
    emit_param(L, ".u64", arg->name, last && arg->rank == 1 && !map);
    for (int k = 0; k < arg->rank - 1; k++)
      emit_param(L, ".s64", arena_printf(x->arena, "%s_stride_%d", arg->name, k),
                 last && k == arg->rank - 2 && !map);
    if (map)
      emit_param(L, arena_printf(x->arena, ".align %d .b8", MAP_ALIGN),
                 arena_printf(x->arena, "%s_map[%d]", arg->name, MAP_BYTES), last);
  }
}

static void not_in_hook(lua_State *L, const Expansion *x, const char *what) {
  if (x->hook_trial || x->hook_runs)
    lua_env_error(L, "a hook is put into a template's entry: no %s() in it", what);
}

static int entry_begin(lua_State *L) {
  Expansion *x = expansion_of(L);
  not_in_hook(L, x, "entry_begin");
  expansion_end_block(L, x);
  if (x->in_entry) return lua_env_error(L, "entry_begin() again before entry_end()");
  x->in_entry = true;
  const LaunchRule *rule = &x->v->launch;
  int sm;
  char suffix;
  choose_target(L, x, &sm, &suffix);
  int version = version_for(x, sm, suffix);
  if (x->sink->n) emitf(L, "%s", "");
  emitf(L, ".version %d.%d", version / 10, version % 10);
  emitf(L, ".target sm_%d%.1s", sm, &suffix);
  emitf(L, ".address_size 64");
  emit_text(L, LINE_FILES, "");
  emitf(L, "%s", "");
  if (rule->smem_bytes) {
    emitf(L, ".extern .shared .align 1024 .b8 dynamic_smem[]; // %u bytes", rule->smem_bytes);
    emitf(L, "%s", "");
  }
  emitf(L, ".visible .entry %s(", x->info->name);
  emit_params(L, x);
  emitf(L, ")");
  emitf(L, ".maxntid %u, %u, %u", rule->block[0], rule->block[1], rule->block[2]);
  const uint32_t *c = rule->cluster;
  if (rule->per_sm) emitf(L, ".minnctapersm %u", rule->per_sm);
  if (c[0] * c[1] * c[2] > 1) emitf(L, ".reqnctapercluster %u, %u, %u", c[0], c[1], c[2]);
  emitf(L, "{");
  return 0;
}

static int entry_end(lua_State *L) {
  Expansion *x = expansion_of(L);
  not_in_hook(L, x, "entry_end");
  if (!x->in_entry) return lua_env_error(L, "entry_end() without entry_begin()");
  x->in_entry = false;
  emitf(L, "}");
  return 0;
}

// ---- load_args ---------------------------------------------------------------------------------

static void declare_reg(lua_State *L, const char *type, const char *names, const char *doc) {
  const char *reg = arena_printf(expansion_of(L)->arena, ".reg %-10s %s;", type, names);
  emitf(L, "%-47s // %s", reg, doc);
}

// Of the Arg's register, without the %.
static const char *reg_name(lua_State *L, const ArgDecl *arg) {
  const Expansion *x = expansion_of(L);
  bool of_hook = x->hook && arg - x->v->args >= x->first_hook_arg;
  return of_hook ? arena_printf(x->arena, HOOK_PREFIX "%s", arg->name) : arg->name;
}

static const char *stride_names(Arena *a, const char *reg, int rank) {
  const char *s = "";
  for (int k = 0; k < rank - 1; k++)
    s = arena_printf(a, "%s%s%%%s_stride_%d", s, k ? ", " : "", reg, k);
  return s;
}

static void declare_arg_regs(lua_State *L, const ArgDecl *arg) {
  Arena *a = expansion_of(L)->arena;
  const char *reg = reg_name(L, arg), *name = arena_printf(a, "%%%s", reg);
  if (arg->role == ARG_VALUE) {
    declare_reg(L, value_type(arg->dtype), name, arg->doc);
    return;
  }
  declare_reg(L, ".u64", name, arg->doc);
  if (arg->rank > 1) declare_reg(L, ".s64", stride_names(a, reg, arg->rank), "bytes");
  if (arg->map.box[0])
    declare_reg(L, ".u64", arena_printf(a, "%s_map", name), "its tensor map, generic address");
}

static void load_param(lua_State *L, const char *type, const char *reg, const char *name) {
  emit_op(L, arena_printf(expansion_of(L)->arena, "ld.param%s", type), "%%%s, [%s]", reg, name);
}

static void load_arg(lua_State *L, const ArgDecl *arg) {
  Arena *a = expansion_of(L)->arena;
  const char *reg = reg_name(L, arg);
  if (arg->role == ARG_VALUE) {
    load_param(L, value_type(arg->dtype), reg, arg->name);
    return;
  }
  load_param(L, ".u64", reg, arg->name);
  emit_op(L, "cvta.to.global.u64", "%%%s, %%%s", reg, reg);
  for (int k = 0; k < arg->rank - 1; k++) {
    const char *stride = arena_printf(a, "_stride_%d", k);
    load_param(L, ".s64", arena_printf(a, "%s%s", reg, stride),
               arena_printf(a, "%s%s", arg->name, stride));
  }
  if (!arg->map.box[0]) return;
  emit_op(L, "mov.b64", "%%%s_map, %s_map", reg, arg->name);
  emit_op(L, "cvta.param.u64", "%%%s_map, %%%s_map", reg, reg);
}

static const ArgDecl *named_arg(lua_State *L, Expansion *x, const char *name) {
  const char **names = arena_array(x->arena, const char *, x->v->nargs + 1);
  for (int i = 0; i < x->v->nargs; i++) {
    names[i] = x->v->args[i].name;
    if (strcmp(names[i], name) == 0) return &x->v->args[i];
  }
  lua_env_error(L, "load_args: there is no arg '%s'%s", name,
                diag_nearest(x->arena, name, names, x->v->nargs));
  return NULL;
}

// load_args(): all Args; load_args("q", "scale"): these and the hook's.
static int load_args(lua_State *L) {
  Expansion *x = expansion_of(L);
  not_in_hook(L, x, "load_args");
  if (!x->in_entry) return lua_env_error(L, "load_args() belongs after entry_begin()");
  int n = lua_gettop(L), nargs = x->v->nargs, chosen = 0;
  const ArgDecl **args = arena_array(x->arena, const ArgDecl *, n + nargs);
  for (int k = 1; k <= n; k++) args[chosen++] = named_arg(L, x, luaL_checkstring(L, k));
  int from = n && x->hook ? x->first_hook_arg : n ? nargs : 0;
  for (int i = from; i < nargs; i++) args[chosen++] = &x->v->args[i];
  for (int i = 0; i < chosen; i++) declare_arg_regs(L, args[i]);
  for (int i = 0; i < chosen; i++) load_arg(L, args[i]);
  return 0;
}

// ---- shared memory -----------------------------------------------------------------------------

typedef struct Region {
  const char *name;
  lua_Integer bytes, align, at;
} Region;

static Region read_region(lua_State *L, int i) {
  Region r = {0};
  if (lua_rawgeti(L, 1, i) != LUA_TTABLE)
    lua_env_error(L, "shared_map: element %d is not a { name, bytes, align }", i);
  lua_rawgeti(L, -1, 1);
  lua_rawgeti(L, -2, 2);
  lua_rawgeti(L, -3, 3);
  if (lua_type(L, -3) != LUA_TSTRING || !lua_isinteger(L, -2) || lua_tointeger(L, -2) < 0)
    lua_env_error(L, "shared_map: element %d is not a { name, bytes, align }", i);
  r.name = arena_strdup(expansion_of(L)->arena, lua_tostring(L, -3));
  r.bytes = lua_tointeger(L, -2);
  r.align = lua_isnil(L, -1) ? 16 : lua_tointeger(L, -1);
  if (r.align < 1 || r.align > 1024 || (r.align & (r.align - 1)))
    lua_env_error(L, "shared_map: %s: an alignment is a power of two, 1024 at most", r.name);
  lua_pop(L, 4);
  return r;
}

// shared_map { { "tile_k", bytes, align }, ... } declares `smem`, with the map as comments above
// it, and returns the offsets by name, and their sum as `bytes`.  In dynamic memory (launch.smem)
// the name is dynamic_smem, declared by entry_begin().
static int shared_map(lua_State *L) {
  Expansion *x = expansion_of(L);
  not_in_hook(L, x, "shared_map");
  luaL_checktype(L, 1, LUA_TTABLE);
  int n = (int)lua_rawlen(L, 1);
  lua_Integer at = 0, align = 16;
  lua_newtable(L);
  int offsets = lua_gettop(L);
  if (x->in_entry) emitf(L, "// ---- shared memory: offset, bytes");
  for (int i = 1; i <= n; i++) {
    Region r = read_region(L, i);
    r.at = (at + r.align - 1) / r.align * r.align;
    at = r.at + r.bytes;
    if (r.align > align) align = r.align;
    lua_pushinteger(L, r.at);
    lua_setfield(L, offsets, r.name);
    if (x->in_entry)
      emitf(L, "//      %6lld %6lld  %s", (long long)r.at, (long long)r.bytes, r.name);
  }
  lua_pushinteger(L, at);
  lua_setfield(L, offsets, "bytes");
  lua_Integer most = x->v->launch.smem_bytes ? x->v->launch.smem_bytes : 48 * 1024;
  if (x->in_entry && at > most)
    return lua_env_error(L, "shared_map: %lld bytes, %lld are there%s", (long long)at,
                         (long long)most,
                         x->v->launch.smem_bytes ? "" : " (launch { smem = ... } gives more)");
  if (x->in_entry && !x->v->launch.smem_bytes && at)
    emitf(L, ".shared .align %lld .b8 smem[%lld];", (long long)align, (long long)at);
  return 1;
}

const luaL_Reg entry_functions[] = {
    {"entry_begin", entry_begin},
    {"entry_end", entry_end},
    {"load_args", load_args},
    {"shared_map", shared_map},
    {NULL, NULL},
};
