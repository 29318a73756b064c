// The decoder: PTX instructions become Ops whose operands are offsets in the frame of registers.
#ifndef PTXSMITH_SIM_DECODE_H
#define PTXSMITH_SIM_DECODE_H

#include "sim.h"

// A store of what a load brings, with the lanes' masks of bytes that were not written.
typedef struct Copy { const PtxInst *st; uint32_t holes; } Copy;

typedef struct Decoder {
  Program *prog;
  SimDevice *dev;
  const LaneIsa *isa;
  Diag *diag;
  Func *func;
  const PtxFunc *ptx;
  const PtxFlow *flow;
  const PtxInst *in;
  uint32_t site;      // of `in`
  uint32_t top;       // bytes of the frame used so far
  uint32_t preds_at, preds_left; // masks are 4 bytes each, carved from 64-byte pieces
  uint32_t carry;     // mask of CC.CF, 0: not made yet
  uint32_t guard;     // of the instruction, 0: none
  bool guard_negate;
  bool split_guard;   // the guard has become a branch: Ops need none
  int *block_op;      // block -> Op index
  const struct WgmmaFlow *wgmma; // NULL: the function has no wgmma
  Copy *copies; int ncopies, copies_cap;
  bool *tracked;      // register -> its writes are noted, its reads checked
} Decoder;

typedef bool (*DecodeFn)(Decoder *x, const PtxInst *in);

// One decoder for each handler of gen/ptx_ops.h; false after a message.
bool sim_alu(Decoder *x, const PtxInst *in);
bool sim_setp(Decoder *x, const PtxInst *in);
bool sim_lop3(Decoder *x, const PtxInst *in);
bool sim_cvt(Decoder *x, const PtxInst *in);
bool sim_mov(Decoder *x, const PtxInst *in);
bool sim_carry(Decoder *x, const PtxInst *in);
bool sim_ld(Decoder *x, const PtxInst *in);
bool sim_st(Decoder *x, const PtxInst *in);
bool sim_discard(Decoder *x, const PtxInst *in);
bool sim_atom(Decoder *x, const PtxInst *in);
bool sim_cvta(Decoder *x, const PtxInst *in);
bool sim_isspacep(Decoder *x, const PtxInst *in);
bool sim_createpolicy(Decoder *x, const PtxInst *in);
bool sim_bra(Decoder *x, const PtxInst *in);
bool sim_brx(Decoder *x, const PtxInst *in);
bool sim_call(Decoder *x, const PtxInst *in);
bool sim_ret(Decoder *x, const PtxInst *in);
bool sim_exit(Decoder *x, const PtxInst *in);
bool sim_trap(Decoder *x, const PtxInst *in);
bool sim_nop(Decoder *x, const PtxInst *in);
bool sim_griddep(Decoder *x, const PtxInst *in);
bool sim_bar(Decoder *x, const PtxInst *in);
bool sim_barwarp(Decoder *x, const PtxInst *in);
bool sim_barcluster(Decoder *x, const PtxInst *in);
bool sim_mapa(Decoder *x, const PtxInst *in);
bool sim_getctarank(Decoder *x, const PtxInst *in);
bool sim_fence(Decoder *x, const PtxInst *in);
bool sim_vote(Decoder *x, const PtxInst *in);
bool sim_elect(Decoder *x, const PtxInst *in);
bool sim_match(Decoder *x, const PtxInst *in);
bool sim_shfl(Decoder *x, const PtxInst *in);
bool sim_redux(Decoder *x, const PtxInst *in);
bool sim_activemask(Decoder *x, const PtxInst *in);
bool sim_mma(Decoder *x, const PtxInst *in);
bool sim_imma(Decoder *x, const PtxInst *in);
bool sim_ldmatrix(Decoder *x, const PtxInst *in);
bool sim_stmatrix(Decoder *x, const PtxInst *in);
bool sim_movmatrix(Decoder *x, const PtxInst *in);
bool sim_wmma_load(Decoder *x, const PtxInst *in);
bool sim_wmma_store(Decoder *x, const PtxInst *in);
bool sim_wmma_mma(Decoder *x, const PtxInst *in);
bool sim_cpasync(Decoder *x, const PtxInst *in);
bool sim_cpasync_commit(Decoder *x, const PtxInst *in);
bool sim_cpasync_wait(Decoder *x, const PtxInst *in);
bool sim_cpasync_arrive(Decoder *x, const PtxInst *in);
bool sim_bulk(Decoder *x, const PtxInst *in);
bool sim_bulk_commit(Decoder *x, const PtxInst *in);
bool sim_bulk_wait(Decoder *x, const PtxInst *in);
bool sim_async_words(Decoder *x, const PtxInst *in);
bool sim_atom_vec(Decoder *x, const PtxInst *in);
bool sim_mbar_init(Decoder *x, const PtxInst *in);
bool sim_mbar_inval(Decoder *x, const PtxInst *in);
bool sim_mbar_tx(Decoder *x, const PtxInst *in);
bool sim_mbar_arrive(Decoder *x, const PtxInst *in);
bool sim_mbar_wait(Decoder *x, const PtxInst *in);
bool sim_mbar_pending(Decoder *x, const PtxInst *in);
bool sim_setmaxnreg(Decoder *x, const PtxInst *in);
bool sim_wgmma(Decoder *x, const PtxInst *in);
bool sim_LATER(Decoder *x, const PtxInst *in);

// ---- for the decoders ---------------------------------------------------------------------------
// A new Op for the instruction at hand, under its guard.  Valid until the next one.
Op *sim_emit(Decoder *x, OpFn fn);
// From here on the lanes whose guard is false are elsewhere: for Ops that move groups of lanes.
void sim_split_guard(Decoder *x);
const char *sim_name(Decoder *x, const PtxInst *in); // "add.rn.f32"
bool sim_unsupported(Decoder *x, const PtxInst *in, const char *what);

// Bytes a lane of a register takes: 4, 8, 16; 1 for a predicate mask.
int sim_width(PtxType t);
uint32_t sim_temp(Decoder *x, int width);
// Source operand as an offset; an immediate is taken as a `type`.  width 0: the type's own.
uint32_t sim_source(Decoder *x, const PtxOperand *o, PtxType type, int width);
uint32_t sim_pred_source(Decoder *x, const PtxOperand *o); // honours !p
// Destination; a sink gets a place nobody reads.
uint32_t sim_dest(Decoder *x, const PtxOperand *o, int width);
uint32_t sim_const(Decoder *x, int width, uint64_t value);
bool sim_is_kernel_param(const Decoder *x, int32_t var);

Status sim_decode_func(SimDevice *dev, Program *p, int index, Diag *d);

// Registers an instruction reads and writes, its guard included.
typedef void (*RegVisit)(void *ctx, int32_t reg, bool write);
void sim_visit_regs(const PtxInst *in, RegVisit visit, void *ctx);
// The registers of `f` that some path may read before they are written: tracked[r] = true.
void sim_unproven(Arena *a, const PtxFunc *f, const PtxFlow *flow, bool *tracked);

#endif
