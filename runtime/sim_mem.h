// Memory access of a warp: from 32 addresses to host memory, checked.
#ifndef PTXSMITH_SIM_MEM_H
#define PTXSMITH_SIM_MEM_H

#include "sim_decode.h"
#include "sim_ops.h"

// Atomics and strong or volatile loads are how threads wait for each other: they cost this much of
// the turn, so that a warp that spins soon lets others run.
enum { SIM_POLL_COST = 1024 };
static inline void sim_poll(Warp *w) {
  w->left -= SIM_POLL_COST;
  w->cta->events++;
}

typedef enum AccessKind { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_ATOMIC = 3 } AccessKind;

// Where each lane's bytes are: base + lane * stride, or at[lane].
typedef struct Access {
  uint8_t *base;
  int64_t stride;
  bool strided;
  uint8_t *at[32];
} Access;

static inline uint8_t *access_at(const Access *s, uint32_t lane) {
  return s->strided ? s->base + (int64_t)lane * s->stride : s->at[lane];
}

// Bounds, alignment and written-before checks for the active lanes, then the marks of writes.
// NULL when all is well, else what the Op returns (a trap).
const Op *sim_access(Warp *w, const Op *op, AccessKind kind, Access *out);
// The same in two steps, for instructions that make addresses of their own; `a` is overwritten.
void sim_addresses(const Warp *w, const Op *op, uint64_t a[32]);
const Op *sim_access_at(Warp *w, const Op *op, uint64_t a[32], AccessKind kind, Access *out);

// The load belongs to the setting of a bit field: what it brings beside the field does not matter.
bool sim_sets_field(const PtxFunc *f, const PtxInst *ld);
// The store that takes what a load brings from memory to memory; NULL where it may go elsewhere.
const PtxInst *sim_copy_of(const PtxFunc *f, const PtxFlow *flow, const PtxInst *ld);
// Bytes of local memory at the lanes' addresses that nobody wrote: a mask of them in each lane of
// `holes` (may be NULL); they count as written until sim_put_holes.
void sim_take_holes(Warp *w, const Op *op, uint32_t *holes);
void sim_put_holes(Warp *w, const Op *op, const uint32_t *holes);

// ---- atomic updates -----------------------------------------------------------------------------
typedef enum AtomKind {
  ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_EXCH, ATOM_ADD, ATOM_INC, ATOM_DEC, ATOM_MIN, ATOM_MAX,
  ATOM_CAS,
  ATOM_KINDS,
} AtomKind;
int sim_atom_kind(const PtxInst *in); // ATOM_KINDS: none
bool sim_atom_takes(AtomKind kind, PtxType t);
// *at = kind(*at, *value), as a global update.
void sim_atom_reduce(uint8_t *at, AtomKind kind, PtxType t, const uint8_t *value);

// One range of one lane, of any size, checked as above but for the marks; `out` may be NULL.
typedef struct Span { uint8_t *data, *shadow; } Span;
const Op *sim_check(Warp *w, const Op *op, uint32_t lane, uint8_t space, uint64_t address,
                    uint64_t size, uint64_t align, AccessKind kind, Span *out);

// Fills the Op's address fields; false after a message.
typedef struct Address {
  uint32_t at;     // of the register, when `uniform` is false
  uint64_t offset; // added to it, or the whole address
  uint8_t space, width;
  bool uniform, frame; // frame: the offset is in the lane's own memory, moves with recursion
} Address;
Address sim_address(Decoder *x, const PtxInst *in, const PtxOperand *o);
void sim_set_address(Op *op, const Address *a, int bytes, int vec);

#endif
