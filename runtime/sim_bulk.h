// Bulk copies: between the boxes of global memory and the ranges of shared memory.
#ifndef PTXSMITH_SIM_BULK_H
#define PTXSMITH_SIM_BULK_H

#include "sim_async.h"

// The global side: `bytes` at `base` when the rank is 0, else a box of a tensor.
typedef struct Box {
  int rank;
  uint64_t base, bytes;          // bytes: of the whole box, inside the tensor or not
  uint64_t dim[SIM_MAX_RANK];    // of the tensor, elements
  uint64_t stride[SIM_MAX_RANK]; // bytes
  int64_t at[SIM_MAX_RANK];      // the corner
  uint32_t count[SIM_MAX_RANK];  // elements taken
  uint32_t step[SIM_MAX_RANK];   // of the tensor for one of the box
  uint32_t nrows;
  uint32_t pitch;                // rows narrower than the swizzle's span: the span; else 0, no gaps
  uint8_t element;               // bytes
  uint8_t type;                  // TensorType
  uint8_t swizzle;               // 0 none, else the span is 16 << swizzle bytes
  bool nan;                      // what is outside reads as NaN, not zero
} Box;

// A run of the innermost dimension: bytes `at` ... of the box, its rows without gaps.  lo to hi are
// inside the tensor and lie at `address`.
enum { BOX_ROW = 2048 }; // 256 elements of 8 bytes
typedef struct BoxRow { uint64_t address; uint32_t at, bytes, lo, hi; } BoxRow;
void sim_box_flat(Box *b, uint64_t base, uint64_t bytes);
// Phase of ISA 5.5.7's pattern: where the byte at `a` of shared memory goes.
static inline uint64_t sim_swizzle(int swizzle, uint64_t a) {
  return a ^ ((a >> 7 & ((1u << swizzle) - 1)) << 4);
}
// Where byte `at` of the box lies in its shared memory, before the swizzle; how much that is.
static inline uint64_t sim_box_spread(const Box *b, uint64_t at) {
  uint32_t row = b->count[0] * b->element;
  return b->pitch ? at / row * b->pitch + at % row : at;
}
static inline uint64_t sim_box_room(const Box *b) {
  return b->pitch ? (uint64_t)b->nrows * b->pitch : b->bytes;
}
// The box that a lane's instruction names: reads the tensor map and the coordinates.
const Op *sim_tensor_box(Warp *w, const Op *op, uint32_t lane, bool store, Box *out);
// What a load makes of a row: fills what is outside, converts what the type says.
void sim_tensor_convert(const Box *b, const BoxRow *row, uint8_t *data);
PtxType sim_tensor_type(const Box *b); // of a reduction's elements

// BULK_WORDS: st.async and red.async, whose source are registers.  Those from BULK_STORE on write
// global memory.
typedef enum BulkKind { BULK_LOAD, BULK_PUSH, BULK_WORDS, BULK_STORE, BULK_REDUCE } BulkKind;

struct Bulk {
  const Op *op;
  uint32_t thread;
  uint8_t kind;        // BulkKind
  uint8_t atom, type;  // of a reduction; BULK_WORDS: ATOM_KINDS, a store
  uint16_t multicast;  // ranks that receive it; 0: `to`
  uint64_t group, seq;
  uint32_t event;      // of the race detector, 0 when it is off
  Box box;             // of BULK_PUSH and BULK_WORDS only its bytes
  uint64_t shared;     // destination or source, offset
  uint64_t from;       // BULK_PUSH: source
  Cta *to;             // of loads and pushes
  uint64_t mbar;
  uint8_t *staged;     // stores: what was read; BULK_WORDS: the value
};

// An asynchronous reduction: updates each element atomically.
static inline bool sim_async_reduces(const Op *op) {
  const AsyncArgs *g = op->more ? op->more->async : NULL;
  return g && (g->kind == BULK_REDUCE || (g->kind == BULK_WORDS && g->atom != ATOM_KINDS));
}

// Issues a load, a push or words: finds the destination and its mbarrier, and queues it.
const Op *sim_bulk_issue(Warp *w, Bulk *b, uint32_t lane);

void sim_bulk_drop(Cta *c); // forgets all
// As the functions of cp.async in sim_async.h.
bool sim_bulk_signal(Cta *c, const Cta *owner, uint64_t at, uint64_t *seq);
void sim_bulk_complete(Cta *c, uint64_t seq);
void sim_bulk_random(Cta *c);
void sim_bulk_finish(Cta *c);
const Op *sim_bulk_writer(const Cta *c, uint64_t at, uint64_t bytes, AccessKind kind,
                          uint32_t *thread);
const Op *sim_bulk_reader(const Cta *c, uint64_t at, uint64_t bytes, uint32_t *thread);

#endif
