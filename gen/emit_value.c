// Values for templates: exact floats, dtypes, register lists, dimensions.
#include "expand.h"

#include <string.h>

static const char dtype_key = 0; // registry: dtype object -> number, number -> object

#define X(id, name, bytes, reg, mem, ...) {DT_##id, name, bytes, reg, mem},
static const struct {
  Dtype id;
  const char *name;
  int bytes;
  const char *reg, *mem;
} dtypes[] = {DTYPES(X)};
#undef X

// ---- fields of argument tables -----------------------------------------------------------------

void lua_check_fields(lua_State *L, int index, const char *const *known, const char *what) {
  for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING) continue;
    const char *name = lua_tostring(L, -2);
    int n = 0;
    while (known[n] && strcmp(known[n], name) != 0) n++;
    if (!known[n])
      lua_env_error(L, "%s has no field '%s'%s", what, name,
                    diag_nearest(expansion_of(L)->arena, name, known, n));
  }
}

lua_Integer lua_field_int(lua_State *L, int index, const char *name, lua_Integer otherwise,
                          const char *what) {
  int type = lua_getfield(L, index, name);
  if (type != LUA_TNIL && !lua_isinteger(L, -1))
    lua_env_error(L, "%s: %s is an integer, not %s", what, name,
                  type == LUA_TNUMBER ? "a float (divide with //)" : lua_typename(L, type));
  lua_Integer v = type == LUA_TNIL ? otherwise : lua_tointeger(L, -1);
  lua_pop(L, 1);
  return v;
}

bool lua_field_bool(lua_State *L, int index, const char *name, bool otherwise, const char *what) {
  int type = lua_getfield(L, index, name);
  if (type != LUA_TNIL && type != LUA_TBOOLEAN)
    lua_env_error(L, "%s: %s is true or false, not a %s", what, name, lua_typename(L, type));
  bool v = type == LUA_TNIL ? otherwise : lua_toboolean(L, -1);
  lua_pop(L, 1);
  return v;
}

const char *lua_field_text(lua_State *L, int index, const char *name, const char *otherwise,
                           const char *what) {
  int type = lua_getfield(L, index, name);
  if (type != LUA_TNIL && type != LUA_TSTRING)
    lua_env_error(L, "%s: %s is a text, not a %s", what, name, lua_typename(L, type));
  const char *s = otherwise;
  if (type == LUA_TSTRING) s = expansion_keep(L, lua_tostring(L, -1));
  lua_pop(L, 1);
  return s;
}

// ---- dtypes ------------------------------------------------------------------------------------

static int dtype_tostring(lua_State *L) {
  lua_getfield(L, 1, "name");
  return 1;
}

void values_open(LuaEnv *e) {
  lua_State *L = lua_env_state(e);
  lua_newtable(L);
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    lua_newtable(L);
    lua_pushstring(L, dtypes[i].name);
    lua_setfield(L, -2, "name");
    lua_pushinteger(L, dtypes[i].bytes);
    lua_setfield(L, -2, "bytes");
    lua_pushstring(L, dtypes[i].reg);
    lua_setfield(L, -2, "reg");
    lua_pushstring(L, dtypes[i].mem);
    lua_setfield(L, -2, "mem");
    lua_env_protect(L, "dtype");
    lua_getmetatable(L, -1);
    lua_pushcfunction(L, dtype_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, (lua_Integer)dtypes[i].id + 1);
    lua_pushinteger(L, (lua_Integer)dtypes[i].id);
    lua_rawset(L, -3);
  }
  lua_rawsetp(L, LUA_REGISTRYINDEX, &dtype_key);
}

static void lua_push_dtype(lua_State *L, Dtype t) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &dtype_key);
  lua_rawgeti(L, -1, (lua_Integer)t + 1);
  lua_remove(L, -2);
}

bool lua_to_dtype(lua_State *L, int index, Dtype *out) {
  index = lua_absindex(L, index);
  if (lua_type(L, index) == LUA_TSTRING) return dtype_parse(lua_tostring(L, index), out);
  if (!lua_istable(L, index)) return false;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &dtype_key);
  lua_pushvalue(L, index);
  bool found = lua_rawget(L, -2) == LUA_TNUMBER;
  if (found) *out = (Dtype)lua_tointeger(L, -1);
  lua_pop(L, 2);
  return found;
}

static Dtype check_dtype(lua_State *L, int index) {
  Dtype t = DT_F32;
  if (!lua_to_dtype(L, index, &t)) {
    size_t n;
    const char *why, *s = lua_env_text(L, index, &n, &why);
    lua_env_error(L, "'%s' is not a dtype", s ? s : luaL_typename(L, index));
  }
  return t;
}

// dtypes { "f32", "f16" }: the values of a parameter.
static int value_dtypes(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  int n = (int)lua_rawlen(L, 1);
  lua_createtable(L, n, 0);
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 1, i);
    lua_push_dtype(L, check_dtype(L, -1));
    lua_rawseti(L, 2, i);
    lua_pop(L, 1);
  }
  return 1;
}

static int value_dtype_of(lua_State *L) {
  lua_push_dtype(L, check_dtype(L, 1));
  return 1;
}

// ---- exact floats ------------------------------------------------------------------------------

static uint32_t float_bits(double x) {
  float f = (float)x;
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

static uint64_t double_bits(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static int push_text(lua_State *L, const char *s) {
  lua_pushstring(L, s);
  return 1;
}

static int value_f32(lua_State *L) { // rounded to nearest
  char text[] = "0f00000000"; // as "0f%08X": constants are many, and printf is slow
  uint32_t u = float_bits(luaL_checknumber(L, 1));
  for (int i = 9; u; u >>= 4) text[i--] = "0123456789ABCDEF"[u & 15];
  return push_text(L, text);
}

static int value_f64(lua_State *L) {
  return push_text(L, arena_printf(expansion_of(L)->arena, "0d%016llX",
                                   (unsigned long long)double_bits(luaL_checknumber(L, 1))));
}

static int value_f32_bits(lua_State *L) { // for .b32 registers
  return push_text(
      L, arena_printf(expansion_of(L)->arena, "0x%08X", float_bits(luaL_checknumber(L, 1))));
}

static int value_f64_bits(lua_State *L) {
  return push_text(L, arena_printf(expansion_of(L)->arena, "0x%016llX",
                                   (unsigned long long)double_bits(luaL_checknumber(L, 1))));
}

// The bits of a number in a 16-bit type, and the same twice for packed registers.
static int value_half_bits(lua_State *L) {
  Dtype t = check_dtype(L, 2);
  double x = luaL_checknumber(L, 1);
  if (t != DT_F16 && t != DT_BF16) return lua_env_error(L, "half_bits: f16 or bf16");
  unsigned u = t == DT_F16 ? f16_from_double(x) : bf16_from_double(x);
  if (lua_toboolean(L, 3))
    return push_text(L, arena_printf(expansion_of(L)->arena, "0x%04X%04X", u, u));
  return push_text(L, arena_printf(expansion_of(L)->arena, "0x%04X", u));
}

// ---- integers ----------------------------------------------------------------------------------

// ceil_div(17, 4) = 5; ceil_div("seqlen_q", 64) is a dimension.
static int value_ceil_div(lua_State *L) {
  lua_Integer n = luaL_checkinteger(L, 2);
  if (n < 1) return lua_env_error(L, "ceil_div: the divisor is at least 1, not %lld", (long long)n);
  if (lua_type(L, 1) == LUA_TSTRING) {
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "name");
    lua_pushinteger(L, n);
    lua_setfield(L, -2, "div");
    return 1;
  }
  lua_Integer a = luaL_checkinteger(L, 1);
  lua_pushinteger(L, a / n + (a % n > 0));
  return 1;
}

static int value_round_up(lua_State *L) {
  lua_Integer a = luaL_checkinteger(L, 1), n = luaL_checkinteger(L, 2);
  if (n < 1) return lua_env_error(L, "round_up: the step is at least 1, not %lld", (long long)n);
  lua_pushinteger(L, (a / n + (a % n > 0)) * n);
  return 1;
}

static int value_log2(lua_State *L) {
  lua_Integer a = luaL_checkinteger(L, 1), n = 0;
  if (a < 1 || (a & (a - 1)))
    return lua_env_error(L, "log2: %lld is not a power of two", (long long)a);
  while (a >> n != 1) n++;
  lua_pushinteger(L, n);
  return 1;
}

// range(1, 4) = {1, 2, 3, 4}, with an optional step.
static int value_range(lua_State *L) {
  lua_Integer from = luaL_checkinteger(L, 1), to = luaL_checkinteger(L, 2);
  lua_Integer step = luaL_optinteger(L, 3, 1);
  if (step < 1 || to < from || (to - from) / step > 4096)
    return lua_env_error(L, "range: a rising range of at most 4096 values");
  lua_newtable(L);
  for (lua_Integer i = from, n = 1; i <= to; i += step) {
    lua_pushinteger(L, i);
    lua_rawseti(L, -2, n++);
  }
  return 1;
}

// regs("%q", 3) = "%q0, %q1, %q2"; regs("%q", 3, 4) begins with %q4.
static int value_regs(lua_State *L) {
  const char *prefix = luaL_checkstring(L, 1);
  lua_Integer n = luaL_checkinteger(L, 2), first = luaL_optinteger(L, 3, 0);
  if (n < 1 || n > 4096) return lua_env_error(L, "regs: %lld registers", (long long)n);
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (lua_Integer i = first; i < first + n; i++) {
    if (i > first) luaL_addstring(&b, ", ");
    luaL_addstring(&b, prefix);
    char number[24];
    size_t len;
    const char *s = emit_digits(i, number, &len);
    luaL_addlstring(&b, s, len);
  }
  luaL_pushresult(&b);
  return 1;
}

const luaL_Reg value_functions[] = {
    {"dtypes", value_dtypes},
    {"dtype_of", value_dtype_of},
    {"f32", value_f32},
    {"f64", value_f64},
    {"f32_bits", value_f32_bits},
    {"f64_bits", value_f64_bits},
    {"half_bits", value_half_bits},
    {"ceil_div", value_ceil_div},
    {"round_up", value_round_up},
    {"log2", value_log2},
    {"range", value_range},
    {"regs", value_regs},
    {NULL, NULL},
};
