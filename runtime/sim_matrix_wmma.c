// sim_matrix_wmma.c: wmma.load, wmma.mma, wmma.store.  ISA 9.7.14.4.
//
// Which element a register holds is left open by the ISA.  Here a product is two of mma's 16 x 8
// tiles with mma's fragments, side by side or one above the other; m8n32 is computed transposed,
// D' = B' A'.  So one of A and B is cut into tiles of 16 rows (the outer operand), the other into
// blocks of 8 columns (the inner one).  Fragments with more registers than that takes (f16 A and B)
// repeat it.
#include "sim_matrix_ops.h"
#include "sim_mem.h"

// A matrix in memory and in registers: elements (o, i) with o along the rows (A-like: of tiles of
// 16; else of blocks of 8) and i along K; accumulators: o along the outer, i along the inner
// operand.
typedef struct WmmaPart {
  uint8_t outer, inner; // extents
  uint8_t bytes;        // of an element
  bool acc, a_like;
  bool inner_lines; // lines of memory run along i
} WmmaPart;

// Word and byte of element (o, i).
typedef struct Where {
  int reg, lane, byte;
} Where;

static Where where(const WmmaPart *p, int o, int i) {
  if (p->acc) { // pieces of 16 x 8
    int piece = (o >> 4) + (i >> 3), lane = 4 * (o & 7) + (i & 7) / 2;
    if (p->bytes == 2)
      return (Where){2 * piece + (o >> 3 & 1), lane, 2 * (i & 1)};
    return (Where){4 * piece + 2 * (o >> 3 & 1) + (i & 1), lane, 0};
  }
  int at = i * p->bytes, part = at >> 4, lane = 4 * (o & 7) + (at >> 2 & 3);
  int reg = p->a_like ? 4 * (o >> 4) + (o >> 3 & 1) + 2 * part : 2 * (o >> 3) + part;
  return (Where){reg, lane, at & 3};
}

static int distinct_regs(const WmmaPart *p) { return p->outer * p->inner * p->bytes / 128; }

// ---- memory -------------------------------------------------------------------------------------
enum { MAX_BYTES = 1024, CHUNK = 16 };

// The tile's lines in pieces of 16 bytes, 32 at a time, each checked like a lane's access.
typedef void (*ChunkFn)(uint8_t *memory, uint8_t *tile);
static void chunk_in(uint8_t *memory, uint8_t *tile) { memcpy(tile, memory, CHUNK); }
static void chunk_out(uint8_t *memory, uint8_t *tile) { memcpy(memory, tile, CHUNK); }

static const Op *move_tile(Warp *w, const Op *op, const WmmaPart *p, AccessKind kind, ChunkFn move,
                           uint8_t *tile) {
  uint64_t base[32], at[32];
  sim_addresses(w, op, base);
  const uint32_t *pitch = sim_r32(w, op->b);
  for (uint32_t i = 1; i < 32; i++)
    if (base[i] != base[0] || pitch[i] != pitch[0])
      return sim_trap_at(w, op, i, "address or stride differs from that of lane 0");
  int line = (p->inner_lines ? p->inner : p->outer) * p->bytes, each = line / CHUNK;
  int nchunks = p->outer * p->inner * p->bytes / CHUNK;
  for (int first = 0; first < nchunks; first += 32) {
    int n = nchunks - first < 32 ? nchunks - first : 32;
    for (int i = 0; i < n; i++) {
      uint64_t row = (uint64_t)((first + i) / each), part = (uint64_t)((first + i) % each);
      at[i] = base[0] + row * pitch[0] * p->bytes + CHUNK * part;
    }
    Access chunks;
    w->active = n == 32 ? SIM_FULL : (1u << n) - 1;
    const Op *stop = sim_access_at(w, op, at, kind, &chunks);
    w->active = SIM_FULL;
    if (stop)
      return stop;
    for (int i = 0; i < n; i++)
      move(access_at(&chunks, (uint32_t)i), tile + CHUNK * (first + i));
  }
  return NULL;
}

static const WmmaPart *part_of(const Op *op) { return op->more->wmma; }

// Calls for every element with its place in the tile's bytes.
#define EACH_ELEMENT(p, o, i, offset)                                                              \
  for (int o = 0; o < (p)->outer; o++)                                                             \
    for (int i = 0, offset; i < (p)->inner &&                                                      \
                            (offset = (p)->bytes * ((p)->inner_lines ? o * (p)->inner + i          \
                                                                     : i * (p)->outer + o),        \
                            1);                                                                    \
         i++)

static const Op *op_wmma_load(Warp *w, const Op *op) {
  const WmmaPart *p = part_of(op);
  uint8_t tile[MAX_BYTES];
  const Op *stop = sim_together(w, op);
  if (!stop)
    stop = move_tile(w, op, p, ACCESS_READ, chunk_in, tile);
  if (stop)
    return stop;
  uint32_t *d[8];
  sim_words(w, op->more->list, op->more->nlist, d);
  EACH_ELEMENT(p, o, i, offset) {
    Where at = where(p, o, i);
    memcpy((uint8_t *)&d[at.reg][at.lane] + at.byte, tile + offset, p->bytes);
  }
  for (int r = distinct_regs(p), n = r; r < op->more->nlist; r++)
    memcpy(d[r], d[r % n], 128);
  return op + 1;
}

static const Op *op_wmma_store(Warp *w, const Op *op) {
  const WmmaPart *p = part_of(op);
  uint8_t tile[MAX_BYTES];
  const Op *stop = sim_together(w, op);
  if (stop)
    return stop;
  uint32_t *s[8];
  sim_words(w, op->more->list, op->more->nlist, s);
  EACH_ELEMENT(p, o, i, offset) {
    Where at = where(p, o, i);
    memcpy(tile + offset, (uint8_t *)&s[at.reg][at.lane] + at.byte, p->bytes);
  }
  stop = move_tile(w, op, p, ACCESS_WRITE, chunk_out, tile);
  return stop ? stop : op + 1;
}

static WmmaPart part_for(const PtxInst *in) {
  int shape[3];
  sim_matrix_shape(in, shape);
  bool a = ptx_inst_has(in, "a"), b = ptx_inst_has(in, "b"), transposed = shape[0] == 8;
  bool row = ptx_inst_has(in, "row");
  WmmaPart p = {.bytes = (uint8_t)(ptx_type_bits(in->type[0]) / 8), .acc = !a && !b};
  if (p.acc) {
    p.outer = (uint8_t)shape[transposed];
    p.inner = (uint8_t)shape[!transposed];
    p.inner_lines = row != transposed;
  } else {
    p.outer = (uint8_t)shape[b];
    p.inner = (uint8_t)shape[2];
    p.a_like = a != transposed;
    p.inner_lines = row == a;
  }
  return p;
}

static bool decode_move(Decoder *x, const PtxInst *in, OpFn fn, int regs, int address) {
  sim_split_guard(x);
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  WmmaPart *p = arena_new_of(x->prog->arena, WmmaPart);
  *p = part_for(in);
  more->wmma = p;
  sim_list_regs(x, more, &in->opnds[regs], PTX_T_B32, regs == 0);
  // Without a stride the lines follow each other.
  int line = p->inner_lines ? p->inner : p->outer;
  uint32_t pitch = in->nopnds > 2 ? sim_source(x, &in->opnds[2], PTX_T_U32, 4)
                                  : sim_const(x, 4, (uint64_t)line);
  Address a = sim_address(x, in, &in->opnds[address]);
  Op *op = sim_emit(x, fn);
  sim_set_address(op, &a, CHUNK, 1);
  op->b = pitch;
  op->more = more;
  return true;
}

bool sim_wmma_load(Decoder *x, const PtxInst *in) { return decode_move(x, in, op_wmma_load, 0, 1); }
bool sim_wmma_store(Decoder *x, const PtxInst *in) {
  return decode_move(x, in, op_wmma_store, 1, 0);
}

// ---- the product --------------------------------------------------------------------------------
enum { D_HALF = 1, C_HALF = 2, TRANSPOSED = 4, TALL = 8 }; // Op.type

// kind: type of A and B; bytes: K; list: d, a, b, c, of vec[0..3] registers.
static const Op *op_wmma_mma(Warp *w, const Op *op) {
  const Op *stop = sim_together(w, op);
  if (stop)
    return stop;
  const MatrixIsa *isa = w->cta->grid->dev->isa->matrix;
  const uint32_t *n = op->more->v, *list = op->more->list;
  bool d_half = op->type & D_HALF, c_half = op->type & C_HALF;
  uint32_t *d[8], *a[8], *b[8], *c[8];
  sim_words(w, list, (int)n[0], d);
  sim_words(w, list += n[0], (int)n[1], a);
  sim_words(w, list += n[1], (int)n[2], b);
  sim_words(w, list += n[2], (int)n[3], c);
  uint32_t **outer = op->type & TRANSPOSED ? b : a, **inner = op->type & TRANSPOSED ? a : b;
  Acc acc[2];
  for (int piece = 0; piece < 2; piece++) { // tiles one above the other, or blocks side by side
    MatrixA x;
    MatrixB y;
    int tile = op->type & TALL ? piece : 0, block = op->type & TALL ? 0 : piece;
    isa->load_a(&x, op->kind, op->bytes, (const uint32_t *const *)outer + 4 * tile);
    isa->load_b(&y, op->kind, op->bytes, (const uint32_t *const *)inner + 2 * block);
    sim_load_acc(isa, &acc[piece], c + piece * (c_half ? 2 : 4), c_half);
    isa->multiply(&matrix_rules[d_half ? MATRIX_RULE_F16 : MATRIX_RULE_F32], op->bytes, &x, &y,
                  (const float *const *)acc[piece].p, acc[piece].p);
  }
  for (int piece = 0; piece < 2; piece++)
    sim_store_acc(isa, &acc[piece], d + piece * (d_half ? 2 : 4), d_half);
  return op + 1;
}

bool sim_wmma_mma(Decoder *x, const PtxInst *in) {
  sim_split_guard(x);
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  int shape[3];
  sim_matrix_shape(in, shape);
  for (int i = 0; i < 4; i++) {
    PtxType t = i == 3 && in->type[3] == PTX_T_F32 ? PTX_T_F32 : PTX_T_B32;
    sim_list_regs(x, more, &in->opnds[i], t, i == 0);
    more->v[i] = (uint32_t)in->opnds[i].n;
  }
  Op *op = sim_emit(x, op_wmma_mma);
  op->more = more;
  op->kind = (uint8_t)sim_matrix_type(in->type[1]);
  op->bytes = (uint8_t)shape[2];
  op->type = (uint8_t)((in->type[0] == PTX_T_F16 ? D_HALF : 0) |
                       (in->type[3] == PTX_T_F16 ? C_HALF : 0) |
                       (shape[0] == 8 ? TRANSPOSED : 0) | (shape[0] != 16 ? TALL : 0));
  op->flops = (uint16_t)(2 * shape[0] * shape[1] * shape[2] / 32);
  return true;
}
