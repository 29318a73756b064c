// PTX as data: parse, check, print, flow, statistics.  Pure: no device, no clock.
#ifndef PTXSMITH_PTX_H
#define PTXSMITH_PTX_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "diag.h"
#include "ptx_ops.h"
#include "ptx_types.h"

// One row of the table.  What follows from the rows is found once per process, at the first use.
typedef struct PtxForm {
  const char *stem, *mods, *opnds, *effects;
  int ptx, sm; // sm may carry PTX_SM_ARCH
  PtxPipe pipe;
  const char *handler; // "LATER" when the interpreter does not have it yet
  bool later;
} PtxForm;
extern const PtxForm ptx_forms[];
extern const int ptx_nforms;

// Modifiers are interned: every modifier text that occurs in the table has a number.  The common
// ones have names here; ptx_mod_text gives any number's text ("rn", "L2::cache_hint").
typedef uint16_t PtxMod;
const char *ptx_mod_text(PtxMod m);
PtxMod ptx_mod_find(const char *text, size_t len); // 0 when the table has no such modifier

typedef enum PtxOperandKind {
  PTX_O_NONE,
  PTX_O_REG,   // reg
  PTX_O_INT,   // i
  PTX_O_FLOAT, // bits: of a double (0d.. or decimal) unless is_f32 (0f..), then of a float
  PTX_O_SREG,  // sreg
  PTX_O_SYM,   // the address of variable `sym` plus off
  PTX_O_FUNC,  // function `sym` (call)
  PTX_O_LABEL, // target: instruction index; sym: index into PtxFunc.labels
  PTX_O_ADDR,  // [base + off]: base_kind REG (reg), SYM (sym) or INT (absolute)
  PTX_O_VEC,   // {v[0], v[1], ...}
  PTX_O_PAIR,  // v[0] | v[1]  (either may be the sink)
  PTX_O_SINK,  // _
  PTX_O_TMAP,  // [v[0], {v[1..n-1]}]: map address (an ADDR) and coordinates
  PTX_O_LIST,  // (v[0], v[1], ...): call arguments or results
  PTX_O_TABLE, // .branchtargets or .callprototype label `sym`
} PtxOperandKind;

typedef struct PtxOperand {
  uint8_t kind;    // PtxOperandKind
  uint8_t base;    // ADDR: kind of the base
  uint8_t negate;  // !p
  uint8_t is_f32;
  uint8_t type;    // PtxType of the register; NONE for untyped immediates
  uint8_t sreg_dim; // 0 x, 1 y, 2 z
  uint16_t n;      // VEC, PAIR, LIST, TMAP: number of v
  int32_t reg;     // index into PtxFunc.regs
  int32_t sym;     // index into PtxModule.vars (or .funcs for FUNC, .tables for TABLE)
  uint32_t col;    // column in the source, 1-based
  union {
    int64_t i;
    int64_t off;
    uint64_t bits;
    int32_t target;
    int32_t sreg; // PtxSreg
    struct PtxOperand *v;
  };
} PtxOperand;

//    id               text              type of the value
#define PTX_SREGS(X)                                                                               \
  X(TID, "%tid", U32) X(NTID, "%ntid", U32) X(CTAID, "%ctaid", U32) X(NCTAID, "%nctaid", U32)      \
  X(LANEID, "%laneid", U32) X(WARPID, "%warpid", U32) X(NWARPID, "%nwarpid", U32)                  \
  X(SMID, "%smid", U32) X(NSMID, "%nsmid", U32) X(GRIDID, "%gridid", U64)                          \
  X(CLUSTERID, "%clusterid", U32) X(NCLUSTERID, "%nclusterid", U32)                                \
  X(CLUSTER_CTAID, "%cluster_ctaid", U32) X(CLUSTER_NCTAID, "%cluster_nctaid", U32)                \
  X(CLUSTER_CTARANK, "%cluster_ctarank", U32) X(CLUSTER_NCTARANK, "%cluster_nctarank", U32)        \
  X(IS_EXPLICIT_CLUSTER, "%is_explicit_cluster", PRED)                                             \
  X(LANEMASK_EQ, "%lanemask_eq", U32) X(LANEMASK_LE, "%lanemask_le", U32)                          \
  X(LANEMASK_LT, "%lanemask_lt", U32) X(LANEMASK_GE, "%lanemask_ge", U32)                          \
  X(LANEMASK_GT, "%lanemask_gt", U32) X(CLOCK, "%clock", U32) X(CLOCK_HI, "%clock_hi", U32)        \
  X(CLOCK64, "%clock64", U64) X(GLOBALTIMER, "%globaltimer", U64)                                  \
  X(GLOBALTIMER_LO, "%globaltimer_lo", U32) X(GLOBALTIMER_HI, "%globaltimer_hi", U32)              \
  X(DYNAMIC_SMEM_SIZE, "%dynamic_smem_size", U32) X(TOTAL_SMEM_SIZE, "%total_smem_size", U32)      \
  X(RESERVED_SMEM_OFFSET_BEGIN, "%reserved_smem_offset_begin", U32)                                \
  X(RESERVED_SMEM_OFFSET_END, "%reserved_smem_offset_end", U32)                                    \
  X(RESERVED_SMEM_OFFSET_CAP, "%reserved_smem_offset_cap", U32)                                    \
  X(RESERVED_SMEM_OFFSET_0, "%reserved_smem_offset_0", U32)                                        \
  X(RESERVED_SMEM_OFFSET_1, "%reserved_smem_offset_1", U32)
typedef enum PtxSreg {
#define X(id, ...) PTX_SREG_##id,
  PTX_SREGS(X)
#undef X
  PTX_SREG_COUNT
} PtxSreg;

typedef struct PtxSregInfo {
  const char *text; // "%tid"
  PtxType type;
} PtxSregInfo;
const PtxSregInfo *ptx_sreg_info(PtxSreg s);
int ptx_sreg_find(const char *text, size_t len); // -1 when there is none
bool ptx_sreg_has_dims(PtxSreg s);               // %tid.x, but not %laneid.x

enum { PTX_MAX_MODS = 14, PTX_MAX_OPERANDS = 10 };

typedef struct PtxInst {
  uint16_t form; // row of ptx_forms
  uint8_t nmods, nopnds;
  PtxMod mods[PTX_MAX_MODS]; // as written, in order, types included
  uint8_t type[4];           // PtxType of T U V W
  uint8_t space;             // PtxSpace of ld/st/atom/cvta/...
  uint8_t vec;               // 1, 2, 4, 8
  uint16_t shape_n;          // wgmma: N
  int32_t guard;             // predicate register, -1 when unguarded
  bool guard_negate;
  uint8_t slot[PTX_MAX_OPERANDS]; // which operand of the form's pattern each one is (ptx_forms.h)
  PtxOperand *opnds;         // in the order written
  uint32_t line, col;
} PtxInst;

bool ptx_inst_has(const PtxInst *in, const char *mod); // "ftz"; for decoders, not inner loops
static inline const PtxForm *ptx_inst_form(const PtxInst *in) { return &ptx_forms[in->form]; }

// Registers that occur in an instruction, numbered densely by first use.
typedef struct PtxReg {
  const char *name; // "%r7"
  PtxType type;
  uint32_t line; // of the declaration
  bool undefined; // the compiler says that its value does not matter ("// implicit-def: %r7")
} PtxReg;

// A declared name, or a range of them: `.reg .b32 %r<10>` declares %r0 to %r9.
typedef struct PtxRegDecl {
  const char *name;
  PtxType type;
  uint32_t count; // 0: one register with this very name
  uint32_t line;
} PtxRegDecl;

// A symbol's address inside an initialiser.
typedef struct PtxReloc {
  uint64_t at;     // byte offset in the variable
  int32_t var, func; // one of them, the other -1
  int64_t addend;
  bool generic;    // generic(sym)
  uint64_t mask;   // 0xFF(sym), 0xFF00(sym) ...; 0: the whole address
} PtxReloc;

typedef struct PtxVar { // global, const, shared, local, or a parameter
  const char *name;
  PtxSpace space;
  PtxType type;
  uint32_t align;
  uint64_t bytes;  // 0 for `.extern .shared x[]`
  uint32_t offset; // parameters: in the argument block; shared, local: in the frame
  bool is_extern, is_visible, is_weak, is_common, is_array;
  bool align_given; // else the type's own
  bool call_param; // .param declared inside a body, for a call: offset in the call frame
  uint8_t vec;     // .v2 .v4, else 1
  const char *ptr_space; // `.ptr .global .align 16`: "global" and 16; NULL and 0 when not given
  bool is_ptr;
  uint32_t ptr_align;
  const char *attribute; // ".attribute(.managed)" or NULL
  int32_t func;    // owner, -1 for module scope
  const uint8_t *init; // bytes, or NULL
  PtxReloc *relocs; int nrelocs;
  uint32_t line, col;
} PtxVar;

typedef struct PtxLabel {
  const char *name;
  int32_t target; // instruction index; ninsts for a label at the end
  uint32_t line;
} PtxLabel;

typedef struct PtxTable { // brx.idx targets, or a prototype for an indirect call
  const char *name;
  int32_t func;
  int32_t *targets; // instruction indices
  int32_t *labels;  // indices into PtxFunc.labels
  int n;
  const char *raw;  // .callprototype and .calltargets: their text, not interpreted
  uint32_t line;
} PtxTable;

typedef struct PtxFunc {
  const char *name;
  bool entry, is_extern, is_visible, is_weak, noreturn;
  bool defined;                   // has a body
  int32_t *params;  int nparams;  // indices of PtxModule.vars, in order
  int32_t *rets;    int nrets;
  uint64_t param_bytes;           // entry: size of the argument block
  uint32_t maxntid[3], reqntid[3], minnctapersm, maxnreg, cluster[3]; // 0 = not given
  const char *extra;              // further performance directives as text, or NULL
  uint32_t regs_declared, preds_declared; // used or not
  uint64_t call_bytes;            // frame of the .param variables its calls use
  PtxReg *regs;     int nregs;
  PtxInst *insts;   int ninsts;
  PtxLabel *labels; int nlabels;
  uint64_t shared_bytes, local_bytes; // static; shared includes the module's own variables
  uint32_t line, col, end_line;
} PtxFunc;

// What stands in the file, in order: the printer follows this list.
typedef enum PtxItemKind {
  PTX_I_COMMENT,   // text, on a line of its own
  PTX_I_TRAILING,  // text, behind the item before it
  PTX_I_RAW,       // text: .file .loc .section .pragma ...
  PTX_I_VAR,       // index of PtxModule.vars
  PTX_I_REGS,      // index of the first of n PtxModule.reg_decls
  PTX_I_FUNC_DECL, // index of PtxModule.funcs: a declaration
  PTX_I_FUNC,      // the body follows, to PTX_I_CLOSE at its level
  PTX_I_OPEN,      // {
  PTX_I_CLOSE,     // }
  PTX_I_LABEL,     // index of the function's labels
  PTX_I_INST,      // index of the function's instructions
  PTX_I_TABLE,     // index of PtxModule.tables
} PtxItemKind;

typedef struct PtxItem {
  uint8_t kind; // PtxItemKind
  int32_t index, n;
  uint32_t len;     // of text
  const char *text; // not NUL-terminated
} PtxItem;

typedef struct PtxModule {
  Arena *arena;
  const Source *src;
  const LineMap *map; // as given, else what .loc says, else NULL
  int version;        // major*10 + minor
  int sm;             // 90
  char sm_suffix;     // 'a', 'f' or 0
  int address_size;   // 64
  uint32_t target_line, target_col, version_line, version_col;
  const char *target_text; // "sm_90a, debug"
  PtxRegDecl *reg_decls; int nreg_decls;
  PtxVar *vars;    int nvars;
  PtxFunc *funcs;  int nfuncs;
  PtxTable *tables; int ntables;
  PtxItem *items; int nitems; // order and comments of the file, for the printer
} PtxModule;

// Parses a whole file.  Returns NULL after adding diagnostics (at most the Diag's limit; the parser
// resynchronises at `;`).  Everything lives in `a`.  `map` may be NULL:
// then the text's own .file and .loc are the map.
PtxModule *ptx_parse(Arena *a, const Source *src, const LineMap *map, Diag *d);

// Proves what can be proved without running.  ST_INPUT with diagnostics, or ST_OK.
Status ptx_check(const PtxModule *m, Diag *d);

// Canonical text: parse(print(parse(x))) == parse(x), and print(parse(print(x))) == print(x).
char *ptx_print(Arena *a, const PtxModule *m);
// One instruction as text, without a newline: for traps and listings.
char *ptx_print_inst(Arena *a, const PtxModule *m, const PtxFunc *f, const PtxInst *in);

const PtxFunc *ptx_entry(const PtxModule *m, const char *name); // NULL name: the only entry

// ---- control flow ------------------------------------------------------------------------------
typedef struct PtxBlock {
  int first, end;   // instructions [first, end)
  int *succ; int nsucc;
  int *pred; int npred;
  int ipdom;        // immediate post-dominator's block, -1: the exit
  int order;        // reverse post-order number, -1: unreachable
  int loop;         // header block of the innermost loop, -1
  int depth;        // loop depth
} PtxBlock;

typedef struct PtxFlow {
  PtxBlock *blocks; int nblocks;
  int *block_of;    // instruction -> block
} PtxFlow;

PtxFlow *ptx_flow(Arena *a, const PtxModule *m, const PtxFunc *f);

typedef enum PtxExit { PTX_FALLS, PTX_JUMPS, PTX_LEAVES } PtxExit;
PtxExit ptx_inst_exit(const PtxInst *in); // what it does when its guard lets it

// Calls `visit` for every register the instruction reads or writes, its guard included.
typedef void PtxRegVisit(void *ctx, int32_t reg, bool reads, bool writes);
void ptx_inst_regs(const PtxInst *in, PtxRegVisit *visit, void *ctx);

// ---- statistics --------------------------------------------------------------------------------
typedef struct PtxStats {
  int insts;                     // static
  int by_pipe[PTX_PIPE_COUNT];
  int regs_declared, preds_declared;
  int live_max;                  // 32-bit registers live at once at most (64-bit ones count two)
  uint32_t live_max_line;
  int preds_live_max;
  uint64_t shared_bytes, local_bytes, param_bytes;
  int barriers;
  // The hot loop: the most floating-point operations, without those of loops in it and twice as
  // many for each level.  Per iteration and thread:
  uint32_t loop_line;            // first line, 0 when there is no loop
  int loop_insts;
  double loop_flops, loop_global_bytes, loop_shared_bytes;
  double loop_intensity;         // flops / global bytes; 0 when it reads none
} PtxStats;

void ptx_stats(const PtxModule *m, const PtxFunc *f, PtxStats *out);

// ---- versions ----------------------------------------------------------------------------------
// Least .version a target needs (sm 90 'a' -> 80); 0 for an unknown target.
int ptx_target_min_version(int sm, char suffix);
// Highest .version a driver takes, from its CUDA version (13000 -> 90); 0 when unknown.
int ptx_version_of_driver(int cuda_version);

#endif
