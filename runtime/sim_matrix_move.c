// sim_matrix_move.c: ldmatrix, stmatrix, movmatrix.  ISA 9.7.14.5.15 to 17.
//
// A tile is 8 rows of 16 bytes.  Row r of tile j is at the address of lane 8 * j + r; its words are
// in lanes 4 * r to 4 * r + 3 of register j, or, transposed, its elements in one half of the lanes
// whose q is r / 2.
#include "sim_matrix_ops.h"
#include "sim_mem.h"

enum { MAX_TILES = 4 };

// An address without a space must be one of shared memory.
static const Op *check_shared(Warp *w, const Op *op) {
  uint64_t a[32];
  sim_addresses(w, op, a);
  SIM_LANES(i, w->active)
    if ((a[i] & ~SIM_OFFSET_MASK) != SIM_WINDOW_SHARED)
      return sim_trap_at(w, op, i, "0x%llx is no address of shared memory",
                         (unsigned long long)a[i]);
  return NULL;
}

// The lanes that have an address are active for the access; other lanes' addresses don't matter.
static const Op *rows_access(Warp *w, const Op *op, AccessKind kind, Access *rows) {
  const Op *stop = sim_together(w, op);
  if (stop)
    return stop;
  int n = op->more->nlist;
  w->active = n == MAX_TILES ? SIM_FULL : (1u << 8 * n) - 1;
  stop = op->space == PTX_S_GENERIC ? check_shared(w, op) : NULL;
  if (!stop)
    stop = sim_access(w, op, kind, rows);
  w->active = SIM_FULL;
  return stop;
}

// to = from transposed: words of pairs, row r in lanes 4 * r ...
static void transpose_tile(uint32_t to[32], const uint32_t from[32]) {
  for (int lane = 0; lane < 32; lane++) {
    int g = lane >> 2, q = lane & 3;
    uint32_t low = from[4 * (2 * q) + (g >> 1)], high = from[4 * (2 * q + 1) + (g >> 1)];
    int shift = 16 * (g & 1);
    to[lane] = (low >> shift & 0xffff) | high >> shift << 16;
  }
}

// type: .trans.  list: registers.
static const Op *op_ldmatrix(Warp *w, const Op *op) {
  Access rows;
  const Op *stop = rows_access(w, op, ACCESS_READ, &rows);
  if (stop)
    return stop;
  for (int j = 0; j < op->more->nlist; j++) {
    uint32_t tile[32], *d = sim_r32(w, op->more->list[j]);
    for (uint32_t r = 0; r < 8; r++)
      memcpy(tile + 4 * r, access_at(&rows, 8 * (uint32_t)j + r), 16);
    if (op->type)
      transpose_tile(d, tile);
    else
      memcpy(d, tile, sizeof tile);
  }
  return op + 1;
}

static const Op *op_stmatrix(Warp *w, const Op *op) {
  Access rows;
  const Op *stop = rows_access(w, op, ACCESS_WRITE, &rows);
  if (stop)
    return stop;
  for (int j = 0; j < op->more->nlist; j++) {
    uint32_t tile[32];
    const uint32_t *s = sim_r32(w, op->more->list[j]);
    if (op->type)
      transpose_tile(tile, s);
    else
      memcpy(tile, s, sizeof tile);
    for (uint32_t r = 0; r < 8; r++)
      memcpy(access_at(&rows, 8 * (uint32_t)j + r), tile + 4 * r, 16);
  }
  return op + 1;
}

static bool decode_rows(Decoder *x, const PtxInst *in, OpFn fn, int regs, int address) {
  sim_split_guard(x);
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  sim_list_regs(x, more, &in->opnds[regs], PTX_T_B32, regs == 0);
  Address a = sim_address(x, in, &in->opnds[address]);
  Op *op = sim_emit(x, fn);
  sim_set_address(op, &a, 16, 1);
  op->more = more;
  op->type = ptx_inst_has(in, "trans");
  return true;
}

bool sim_ldmatrix(Decoder *x, const PtxInst *in) { return decode_rows(x, in, op_ldmatrix, 0, 1); }
bool sim_stmatrix(Decoder *x, const PtxInst *in) { return decode_rows(x, in, op_stmatrix, 1, 0); }

static const Op *op_movmatrix(Warp *w, const Op *op) {
  const Op *stop = sim_together(w, op);
  if (stop)
    return stop;
  uint32_t tile[32];
  transpose_tile(tile, sim_r32(w, op->a));
  memcpy(sim_r32(w, op->d), tile, sizeof tile);
  return op + 1;
}

bool sim_movmatrix(Decoder *x, const PtxInst *in) {
  sim_split_guard(x);
  uint32_t a = sim_source(x, &in->opnds[1], PTX_T_B32, 4);
  uint32_t d = sim_dest(x, &in->opnds[0], 4);
  Op *op = sim_emit(x, op_movmatrix);
  op->d = d, op->a = a;
  return true;
}
