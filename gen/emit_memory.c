// Vector loads and stores with conversion between a storage dtype and arithmetic in f32 or f64.
#include "expand.h"

#include <string.h>

// One access: registers PREFIX<first> .. of type .f32 (or .f64) against elements of a dtype.
typedef struct Access {
  const char *prefix;
  int n, first;
  Dtype dtype;
  const char *address; // a register or a symbol
  lua_Integer offset;  // bytes
  const char *space;   // "global" "shared"
  const char *mods;    // ".nc", ".L1::no_allocate" ...
  const char *guard;   // "" or "@%p "
  bool f64;            // the registers are .f64
} Access;

static Access read_access(lua_State *L, const char *what) {
  static const char *const fields[] = {"first", "space", "mods", "pred", "f64", NULL};
  Access a = {.prefix = luaL_checkstring(L, 1),
              .n = (int)luaL_checkinteger(L, 2),
              .address = luaL_checkstring(L, 4),
              .offset = luaL_optinteger(L, 5, 0),
              .space = "global",
              .mods = "",
              .guard = ""};
  if (!lua_to_dtype(L, 3, &a.dtype)) lua_env_error(L, "%s: the third argument is a dtype", what);
  if (a.dtype != DT_F64 && a.dtype != DT_F32 && a.dtype != DT_F16 && a.dtype != DT_BF16)
    lua_env_error(L, "%s: f64, f32, f16 or bf16, not %s", what, dtype_name(a.dtype));
  a.f64 = a.dtype == DT_F64;
  if (a.n < 1 || a.n > 1024) lua_env_error(L, "%s: %d elements", what, a.n);
  lua_settop(L, 6);
  if (lua_isnil(L, 6)) return a;
  luaL_checktype(L, 6, LUA_TTABLE);
  lua_check_fields(L, 6, fields, what);
  a.first = (int)lua_field_int(L, 6, "first", 0, what);
  a.space = lua_field_text(L, 6, "space", "global", what);
  a.mods = lua_field_text(L, 6, "mods", "", what);
  const char *pred = lua_field_text(L, 6, "pred", NULL, what);
  if (pred) a.guard = arena_printf(expansion_of(L)->arena, "@%s ", pred);
  return a;
}

// "{%q4, %q5}", or "%q4" alone.
static const char *list(lua_State *L, const char *prefix, int first, int n) {
  Arena *a = expansion_of(L)->arena;
  if (n == 1) return arena_printf(a, "%s%d", prefix, first);
  const char *s = "";
  for (int i = 0; i < n; i++) s = arena_printf(a, "%s%s%s%d", s, i ? ", " : "", prefix, first + i);
  return arena_printf(a, "{%s}", s);
}

static const char *place(lua_State *L, const Access *a, lua_Integer more) {
  lua_Integer at = a->offset + more;
  if (!at) return arena_printf(expansion_of(L)->arena, "[%s]", a->address);
  return arena_printf(expansion_of(L)->arena, "[%s%+lld]", a->address, (long long)at);
}

// "ld.global.nc.v4" + ".b32" for `n` elements of `type`.
static const char *opcode(lua_State *L, const Access *a, const char *op, int n, const char *type) {
  const char *vec = n == 1 ? "" : n == 2 ? ".v2" : ".v4";
  return arena_printf(expansion_of(L)->arena, "%s%s.%s%s%s%s", a->guard, op, a->space, a->mods, vec,
                      type);
}

// The largest power of two of `unit`-byte elements, at most 16 bytes and at most `left`.
static int piece(int left, int unit) {
  int n = 16 / unit;
  while (n > left) n /= 2;
  return n;
}

// ---- 32 and 64 bits ----------------------------------------------------------------------------

static void move_wide(lua_State *L, const Access *a, bool store) {
  int unit = dtype_bytes(a->dtype);
  for (int at = 0, n; at < a->n; at += n) {
    n = piece(a->n - at, unit);
    const char *regs = list(L, a->prefix, a->first + at, n);
    const char *mem = place(L, a, (lua_Integer)at * unit);
    const char *op = opcode(L, a, store ? "st" : "ld", n, unit == 8 ? ".f64" : ".f32");
    emit_op(L, op, "%s, %s", store ? mem : regs, store ? regs : mem);
  }
}

// ---- 16 bits: two elements in a word, the lower index in the lower half ------------------------

// bf16 is the upper half of an f32: shifting widens it.
static void widen_pair(lua_State *L, const Access *a, int word, int reg) {
  const char *p = a->prefix;
  if (a->dtype == DT_BF16) {
    emit_op(L, "shl.b32", "%s%d, %%w%d, 16", p, reg, word);
    emit_op(L, "and.b32", "%s%d, %%w%d, 0xFFFF0000", p, reg + 1, word);
    return;
  }
  emit_op(L, "mov.b32", "{%%h0, %%h1}, %%w%d", word);
  emit_op(L, "cvt.f32.f16", "%s%d, %%h0", p, reg);
  emit_op(L, "cvt.f32.f16", "%s%d, %%h1", p, reg + 1);
}

static void load_half(lua_State *L, const Access *a, int at, int n) {
  const char *mem = place(L, a, (lua_Integer)at * 2);
  int reg = a->first + at;
  if (n == 1) {
    emit_op(L, opcode(L, a, "ld", 1, ".b16"), "%%h0, %s", mem);
    emit_op(L, arena_printf(expansion_of(L)->arena, "cvt.f32.%s", dtype_name(a->dtype)),
            "%s%d, %%h0", a->prefix, reg);
    return;
  }
  emit_op(L, opcode(L, a, "ld", n / 2, ".b32"), "%s, %s", list(L, "%w", 0, n / 2), mem);
  for (int i = 0; i < n / 2; i++) widen_pair(L, a, i, reg + 2 * i);
}

static void store_half(lua_State *L, const Access *a, int at, int n) {
  const char *mem = place(L, a, (lua_Integer)at * 2), *t = dtype_name(a->dtype), *p = a->prefix;
  int reg = a->first + at;
  Arena *arena = expansion_of(L)->arena;
  if (n == 1) {
    emit_op(L, arena_printf(arena, "cvt.rn.%s.f32", t), "%%h0, %s%d", p, reg);
    emit_op(L, opcode(L, a, "st", 1, ".b16"), "%s, %%h0", mem);
    return;
  }
  for (int i = 0; i < n / 2; i++) // the first source goes to the upper half
    emit_op(L, arena_printf(arena, "cvt.rn.%sx2.f32", t), "%%w%d, %s%d, %s%d", i, p,
            reg + 2 * i + 1, p, reg + 2 * i);
  emit_op(L, opcode(L, a, "st", n / 2, ".b32"), "%s, %s", mem, list(L, "%w", 0, n / 2));
}

static void move_half(lua_State *L, const Access *a, bool store) {
  emitf(L, "{");
  if (a->n > 1) emitf(L, ".reg .b32       %%w<%d>;", piece(a->n, 2) / 2);
  bool halves = a->n % 2 || (!store && a->dtype == DT_F16);
  if (halves) emitf(L, ".reg .b16       %%h<2>;");
  for (int at = 0, n; at < a->n; at += n) {
    n = piece(a->n - at, 2);
    if (store) store_half(L, a, at, n);
    else load_half(L, a, at, n);
  }
  emitf(L, "}");
}

// load_vec("%q", n, dtype, "%address", offset, { first =, space =, mods =, pred = })
static int load_vec(lua_State *L) {
  Access a = read_access(L, "load_vec");
  if (dtype_bytes(a.dtype) == 2) move_half(L, &a, false);
  else move_wide(L, &a, false);
  return 0;
}

// store_vec: likewise; rounds to nearest even.
static int store_vec(lua_State *L) {
  Access a = read_access(L, "store_vec");
  if (dtype_bytes(a.dtype) == 2) move_half(L, &a, true);
  else move_wide(L, &a, true);
  return 0;
}

// convert(dtype_to, dtype_from, "%d", "%s"): one element between f16, bf16, f32 and f64 registers.
static int convert(lua_State *L) {
  Dtype to, from;
  if (!lua_to_dtype(L, 1, &to) || !lua_to_dtype(L, 2, &from) || dtype_mantissa(to) < 8 ||
      dtype_mantissa(from) < 8)
    return lua_env_error(L, "convert: two of f64, f32, f16, bf16");
  const char *d = luaL_checkstring(L, 3), *s = luaL_checkstring(L, 4);
  if (to == from) {
    emit_op(L,
            dtype_bytes(to) == 2   ? "mov.b16"
            : dtype_bytes(to) == 4 ? "mov.f32"
                                   : "mov.f64",
            "%s, %s", d, s);
    return 0;
  }
  if (dtype_bytes(to) == 2 && dtype_bytes(from) == 2)
    return lua_env_error(L, "convert: f16 and bf16 convert through f32");
  const char *round = dtype_mantissa(to) < dtype_mantissa(from) ? ".rn" : "";
  emit_op(
      L,
      arena_printf(expansion_of(L)->arena, "cvt%s.%s.%s", round, dtype_name(to), dtype_name(from)),
      "%s, %s", d, s);
  return 0;
}

const luaL_Reg memory_functions[] = {
    {"load_vec", load_vec},
    {"store_vec", store_vec},
    {"convert", convert},
    {NULL, NULL},
};
