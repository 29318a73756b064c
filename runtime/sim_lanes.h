// Lane functions: the arithmetic of the interpreter, 32 lanes at once.
//
// sim_lanes.c is compiled once per instruction set (baseline, AVX2+FMA, AVX-512) and chosen at run
// time; all builds give the same bits (no contraction, no host transcendental functions).
//
// Register storage: a register of up to 32 bits is uint32_t[32] (narrower values zero-extended), a
// 64-bit one uint64_t[32], a 128-bit one two uint64_t[32] (low, high), a predicate one uint32_t
// with a bit per lane.  All arrays are 64-byte aligned.  Immediates are broadcast by the decoder.
#ifndef PTXSMITH_SIM_LANES_H
#define PTXSMITH_SIM_LANES_H

#include "../gen/ptx.h"
#include "sim_matrix.h"

// Computes all 32 lanes; the caller merges under the active mask.  Operand order as in PTX; unused
// ones are NULL.  `d` may alias any source.  A predicate operand points at its uint32_t mask; a
// predicate destination likewise.  imm: LaneOp.imm, what find() took from the instruction
// (modifiers, lop3's table, whether the predicate c of setp and set is negated).
//
// setp with two destinations p|q: call fn for p with imm and for q with imm | LANE_SECOND (the
// opposite comparison, joined with c in the same way; for f16x2 and bf16x2 the high halves').
// Carry forms: e points at the warp's CC.CF, a uint32_t with a bit per lane, which the function
// reads (addc, subc, madc) and, with .cc, writes for all 32 lanes: the core passes a copy and
// merges.
enum { LANE_SECOND = 1 << 15 };

typedef void (*LaneFn)(void *d, const void *a, const void *b, const void *c, const void *e,
                       uint64_t imm);

typedef struct LaneOp {
  LaneFn fn;
  uint8_t width[5]; // bytes a lane of d, a, b, c, e takes in storage: 4, 8, 16; 1 = predicate mask;
                    // 0 = no such operand
  uint8_t flops;    // floating-point operations per lane (fma 2, f16x2 fma 4 ...); 0 for what
                    // the XU pipe does, which is counted apart
  uint64_t imm;
} LaneOp;

typedef struct LaneIsa {
  const char *name; // "baseline", "avx2", "avx512"
  bool (*usable)(void);
  // Fills *out for an instruction of handler alu, setp, cvt, carry, or mov of plain registers.
  // false: this combination is not implemented (the decoder then reports it with its line).
  bool (*find)(const PtxInst *in, LaneOp *out);
  const MatrixIsa *matrix;
} LaneIsa;

// Best usable first when name is NULL; NULL result: no such set or not usable here.
const LaneIsa *lane_isa(const char *name);

#endif
