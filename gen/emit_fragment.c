// Tiles in shared memory and the fragments that ldmatrix and mma.sync make of them.
//
// A tile is rows of `pitch` bytes, cut into 16-byte chunks.  ldmatrix reads eight rows of one chunk
// column at once, and they are free of bank conflicts when the eight values (address >> 4) & 7
// differ.  So chunk c of row r lies in place c ^ turn(r):
//     pitch a multiple of 128:   turn(r) = r & 7             rows begin at the same bank
//     pitch an odd multiple of 64:  turn(r) = (r >> 1) & 3   rows r and r + 1 are four chunks apart
// c ^ turn stays in its group of 8 (or 4) chunks, and rows that are 8 apart turn alike: going down
// by 8 rows or right by a whole group is a constant in the address, going right within the group an
// exclusive or.  One register for each even chunk of a group covers all of a tile.
//
// Lane maps of ldmatrix.x4 and fragments: PTX ISA 9.7.14.5.8 (m16n8k16), 9.7.14.5.15 (ldmatrix).
#include "expand.h"

#include <string.h>

typedef enum FragmentKind {
  FRAGMENT_A,  // 16 rows x 16 columns: the A operand
  FRAGMENT_B,  // 16 rows x 16 columns, rows are n: two B operands, n-blocks row and row + 8
  FRAGMENT_BT, // 16 rows x 16 columns, rows are k: two B operands, n-blocks column and column + 8
} FragmentKind;

// Which row and which of two neighbouring chunks lane l points at: row = (l & and_row) + ..., as
// bits of l.
static const struct FragmentForm {
  const char *name, *modifier;
  bool b; // row (l & 7) + 8 (l >> 4), chunk (l >> 3) & 1; else row l & 15, chunk l >> 4
} forms[] = {
    [FRAGMENT_A] = {"a", "", false},
    [FRAGMENT_B] = {"b", "", true},
    [FRAGMENT_BT] = {"bt", ".trans", false},
};

static const struct FragmentForm *check_form(lua_State *L, int index, const char *what) {
  const char *name = luaL_checkstring(L, index);
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (!strcmp(forms[i].name, name)) return &forms[i];
  lua_env_error(L, "%s: a fragment is \"a\", \"b\" or \"bt\", not \"%s\"", what, name);
  return NULL;
}

typedef struct Turn {
  lua_Integer pitch;
  int group; // chunks that a row's turn stays within
} Turn;

static Turn check_pitch(lua_State *L, int index, const char *what) {
  lua_Integer pitch = luaL_checkinteger(L, index);
  if (pitch < 64 || pitch % 64 || pitch > 4096)
    lua_env_error(L, "%s: a row is a multiple of 64 bytes, not %lld", what, (long long)pitch);
  return (Turn){pitch, pitch % 128 ? 4 : 8};
}

// turn_of("%turn", "%row", pitch): turn(row), a number of chunks.
static void emit_turn(lua_State *L, Turn t, const char *turn, const char *row) {
  if (t.group == 8) {
    emit_op(L, "and.b32", "%s, %s, 7", turn, row);
    return;
  }
  emit_op(L, "shr.u32", "%s, %s, 1", turn, row);
  emit_op(L, "and.b32", "%s, %s, 3", turn, turn);
}

// tile_group(pitch): chunks of a group.
static int tile_group(lua_State *L) {
  lua_pushinteger(L, check_pitch(L, 1, "tile_group").group);
  return 1;
}

// tile_chunk("%at", "%row", "%chunk", pitch): at = row pitch + 16 (chunk ^ turn(row)).
static int tile_chunk(lua_State *L) {
  const char *at = luaL_checkstring(L, 1), *row = luaL_checkstring(L, 2);
  const char *chunk = luaL_checkstring(L, 3);
  Turn t = check_pitch(L, 4, "tile_chunk");
  emitf(L, "{");
  emitf(L, ".reg .b32       %%turn;");
  emit_turn(L, t, "%turn", row);
  emit_op(L, "xor.b32", "%%turn, %%turn, %s", chunk);
  emit_op(L, "shl.b32", "%%turn, %%turn, 4");
  emit_op(L, "mad.lo.u32", "%s, %s, %lld, %%turn", at, row, (long long)t.pitch);
  emitf(L, "}");
  return 0;
}

// fragment_lane("%at", "b", "%lane", pitch): the byte in the tile that the lane points at for the
// fragment at row 0, column 0.
static int fragment_lane(lua_State *L) {
  const char *at = luaL_checkstring(L, 1);
  const struct FragmentForm *form = check_form(L, 2, "fragment_lane");
  const char *lane = luaL_checkstring(L, 3);
  Turn t = check_pitch(L, 4, "fragment_lane");
  emitf(L, "{");
  emitf(L, ".reg .b32       %%row, %%side, %%turn;");
  if (form->b) {
    emit_op(L, "shr.u32", "%%side, %s, 4", lane);
    emit_op(L, "and.b32", "%%row, %s, 7", lane);
    emit_op(L, "mad.lo.u32", "%%row, %%side, 8, %%row");
    emit_op(L, "shr.u32", "%%side, %s, 3", lane);
    emit_op(L, "and.b32", "%%side, %%side, 1");
  } else {
    emit_op(L, "and.b32", "%%row, %s, 15", lane);
    emit_op(L, "shr.u32", "%%side, %s, 4", lane);
  }
  emit_turn(L, t, "%turn", "%row");
  emit_op(L, "xor.b32", "%%turn, %%turn, %%side");
  emit_op(L, "shl.b32", "%%turn, %%turn, 4");
  emit_op(L, "mad.lo.u32", "%s, %%row, %lld, %%turn", at, (long long)t.pitch);
  emitf(L, "}");
  return 0;
}

// fragment_spread("%k_at", pitch): from %k_at0 the registers of the group's other even chunks,
// %k_at<n> = %k_at0 ^ 32 n.
static int fragment_spread(lua_State *L) {
  const char *at = luaL_checkstring(L, 1);
  Turn t = check_pitch(L, 2, "fragment_spread");
  for (int n = 1; n < t.group / 2; n++) emit_op(L, "xor.b32", "%s%d, %s0, %d", at, n, at, 32 * n);
  return 0;
}

// fragment_load("%kf", first, "b", "%k_at", pitch, row, column, offset): four registers from
// %kf<first> on.  The column is in elements of 16 bits; the tile begins `offset` bytes (0 unless
// given, a multiple of 128) after what %k_at0 was made for.
static int fragment_load(lua_State *L) {
  const char *to = luaL_checkstring(L, 1), *at = luaL_checkstring(L, 4);
  int first = (int)luaL_checkinteger(L, 2);
  const struct FragmentForm *form = check_form(L, 3, "fragment_load");
  Turn t = check_pitch(L, 5, "fragment_load");
  lua_Integer row = luaL_checkinteger(L, 6), column = luaL_checkinteger(L, 7);
  if (row < 0 || row % 8 || column < 0 || column % 16 || 2 * column >= t.pitch)
    return lua_env_error(L, "fragment_load: row %lld, column %lld of a tile with %lld columns",
                         (long long)row, (long long)column, (long long)(t.pitch / 2));
  int chunk = (int)(column / 8);
  lua_Integer offset = luaL_optinteger(L, 8, 0);
  if (offset % 128)
    return lua_env_error(L, "fragment_load: an offset is a multiple of 128, not %lld",
                         (long long)offset);
  offset += row * t.pitch + chunk / t.group * t.group * 16;
  emit_op(L,
          arena_printf(expansion_of(L)->arena, "ldmatrix.sync.aligned.m8n8.x4%s.shared.b16",
                       form->modifier),
          "{%s%d, %s%d, %s%d, %s%d}, [%s%d+%lld]", to, first, to, first + 1, to, first + 2, to,
          first + 3, at, chunk % t.group / 2, (long long)offset);
  return 0;
}

// "{%s4, %s5, %s6, %s7}"
static const char *operand(lua_State *L, const char *prefix, lua_Integer first, int n) {
  Arena *a = expansion_of(L)->arena;
  const char *s = "";
  for (int i = 0; i < n; i++)
    s = arena_printf(a, "%s%s%s%lld", s, i ? ", " : "", prefix, (long long)first + i);
  return arena_printf(a, "{%s}", s);
}

// fragment_mma(dtype, "%s", d, "%qf", a, "%kf", b, fresh): D += A B for one 16x8 block, in
// m16n8k16 (16-bit types) or m16n8k8 (tf32).  fresh: D = A B, and "%zero" is a register of zero.
static int fragment_mma(lua_State *L) {
  Dtype t;
  bool tf32 = lua_type(L, 1) == LUA_TSTRING && !strcmp(lua_tostring(L, 1), "tf32");
  if (!tf32 && (!lua_to_dtype(L, 1, &t) || (t != DT_F16 && t != DT_BF16)))
    return lua_env_error(L, "fragment_mma: f16, bf16 or \"tf32\"");
  const char *type = tf32 ? "tf32" : dtype_name(t);
  const char *d = operand(L, luaL_checkstring(L, 2), luaL_checkinteger(L, 3), 4);
  const char *a = operand(L, luaL_checkstring(L, 4), luaL_checkinteger(L, 5), 4);
  const char *b = operand(L, luaL_checkstring(L, 6), luaL_checkinteger(L, 7), 2);
  const char *c = lua_toboolean(L, 8) ? "{%zero, %zero, %zero, %zero}" : d;
  emit_op(L,
          arena_printf(expansion_of(L)->arena, "mma.sync.aligned.m16n8k%d.row.col.f32.%s.%s.f32",
                       tf32 ? 8 : 16, type, type),
          "%s, %s, %s, %s", d, a, b, c);
  return 0;
}

const luaL_Reg fragment_functions[] = {
    {"tile_group", tile_group},
    {"tile_chunk", tile_chunk},
    {"fragment_lane", fragment_lane},
    {"fragment_spread", fragment_spread},
    {"fragment_load", fragment_load},
    {"fragment_mma", fragment_mma},
    {NULL, NULL},
};
