// wgmma: what a warpgroup has in flight.  ISA 9.7.15.
//
//   sim_wgmma.c       fence, mma_async, commit_group, wait_group
//   sim_wgmma_desc.c  matrix descriptors
//   sim_wgmma_mul.c   the products
//   sim_wgmma_flow.c  which registers need a look at run time
//
// An mma_async is queued when the first warp of the group issues it; the others must issue the
// same. When it is computed, for all four warps at once, is SimOpts.completion: when a wait needs
// it, at a random moment, or when the last warp has issued it.  Whichever: its registers and its
// bytes of shared memory stay in flight until the wait of each warp.
#ifndef PTXSMITH_SIM_WGMMA_H
#define PTXSMITH_SIM_WGMMA_H

#include "sim_decode.h"
#include "sim_ops.h"

enum { WGMMA_WARPS = 4, WGMMA_CHUNK = 16, WGMMA_MAX_CHUNKS = 512 };

// ---- descriptors --------------------------------------------------------------------------------
typedef struct MatrixDesc {
  uint32_t start, leading, stride; // bytes
  uint8_t swizzle;                 // B of ISA 5.5.7: the span is 16 << B bytes
  uint8_t base;
} MatrixDesc;
MatrixDesc sim_desc(uint64_t bits);

// An operand is `rows` (of A: 64, columns of B: N) times 32 bytes along K, in chunks of 16 bytes
// that lie together whatever the swizzle.  K-major: chunk 2 * mn + (kb / 16); MN-major (16-bit
// elements only): chunk k * rows / 8 + mn / 8.  Fills at[] with their addresses and returns their
// number.
int sim_desc_chunks(const MatrixDesc *d, bool mn_major, int rows, uint32_t *at);

// ---- instructions -------------------------------------------------------------------------------
typedef struct WgmmaShape {
  uint8_t a, b;          // MatrixType
  uint8_t rule, k;
  uint16_t n;
  bool half;             // f16 accumulators
  bool integer, sign_a, sign_b, saturate;
  bool a_regs;           // A in registers
  bool mn_a, mn_b;       // MN-major
  uint32_t negate;       // sign bits of a word of A
  int nd, na;            // registers of D and A in OpMore.list
  uint64_t *d_set, *a_set; int set_words; // the same as sets of PtxFunc.regs
  uint32_t *suspects; int nsuspects, cap; // its registers that have a number in WgmmaFlow
} WgmmaShape;

typedef struct WgmmaIssue {
  const Op *op;
  uint64_t a, b;                 // descriptors
  uint32_t low_a, high_a, low_b, high_b; // bounds of their bytes
  uint8_t warps;                 // bit: this warp has issued it
  bool scale_d, done;
  uint32_t event;                // sanitized runs: of its reads of shared memory
  uint8_t *regs[WGMMA_WARPS];    // frames of registers
  uint64_t group[WGMMA_WARPS];   // groups that this warp had committed before
} WgmmaIssue;

typedef struct WarpGroup {
  WgmmaIssue *issues; int n, cap; // in order; [0] is number `first`
  uint64_t first;
  uint64_t issued[WGMMA_WARPS], waited[WGMMA_WARPS]; // issues
  uint64_t committed[WGMMA_WARPS];                   // groups
  bool fenced[WGMMA_WARPS];                          // ever
  const Op **writers;  // [warp][suspect]: who wrote the register since the last fence
} WarpGroup;

// Where the chunks of an operand are, of descriptors seen lately: kernels use few, again and again.
typedef struct DescChunks {
  uint64_t bits;
  int rows, n; // n 0: empty
  bool mn;
  uint32_t at[WGMMA_MAX_CHUNKS];
} DescChunks;
enum { WGMMA_LISTS = 16 };

typedef struct Wgmma {
  DescChunks lists[2][WGMMA_LISTS]; // of A, of B
  WarpGroup groups[SIM_MAX_WARPS / WGMMA_WARPS];
  int in_flight; // issues
} Wgmma;

// Computes one issue for all four warps.  NULL, or a trap.
const Op *sim_wgmma_multiply(Warp *w, WgmmaIssue *issue);
// Its operands in shared memory, when the last warp issues it: written, and nothing due to write
// them.
const Op *sim_wgmma_check(Warp *w, const WgmmaIssue *issue);
void sim_wgmma_random(Cta *c); // SIM_RANDOM: some of what is in flight is computed

// Operand 0 (A) or 1 (B).  Stays as it is until the next call for the same operand.
const DescChunks *sim_desc_list(Wgmma *g, int operand, uint64_t bits, bool mn, int rows);

bool sim_wgmma_new(Cta *c);
void sim_wgmma_free(Cta *c);
void sim_wgmma_start(Cta *c);
void sim_wgmma_finish(Cta *c); // the CTA has ended: what it leaves in flight is a trap
// The trap of a write to bytes of `owner`'s shared memory that a wgmma reads which has not been
// waited for; NULL: none does.
const Op *sim_wgmma_reads(Warp *w, const Op *op, uint32_t lane, const Cta *owner, uint64_t at,
                          uint64_t bytes);
// What a waiting group (GROUP_WGMMA) needs, as text.
void sim_wgmma_describe(const Warp *w, const Group *g, char *out, size_t n);

// ---- registers in flight ------------------------------------------------------------------------
// A forward dataflow finds the instructions that may meet a register in flight, and the registers
// that may be written between a wgmma.fence and the wgmma that uses them.  Programs that are right
// have none, and pay nothing; the others are looked at when they run.
typedef struct WgmmaFlow {
  bool *meets;        // instruction -> check it
  int32_t *suspect;   // register -> number, -1: its writes need no note
} WgmmaFlow;
// NULL: no wgmma.
const WgmmaFlow *sim_wgmma_flow(Program *p, const PtxFunc *f, const PtxFlow *flow);
// Ops in front of an instruction: its registers against those in flight; notes of its writes.
void sim_wgmma_guard(Decoder *x, const PtxInst *in);

static inline bool sim_is_wgmma(const PtxInst *in, const char *what) {
  return !strcmp(ptx_inst_form(in)->stem, "wgmma") && ptx_inst_has(in, what);
}

#endif
