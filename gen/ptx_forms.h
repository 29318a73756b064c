// The opcode-form table compiled: modifier patterns and operand patterns as data.
//
// The patterns of ptx_ops.h are compiled at first use, under pthread_once, into static arrays that
// are never written again; every thread reads them without a lock.  A malformed row is a broken
// invariant and asserts.
#ifndef PTXSMITH_PTX_FORMS_H
#define PTXSMITH_PTX_FORMS_H

#include "ptx.h"

typedef enum PtxSpecKind {
  PTX_SPEC_VALUE, // register, immediate, vector ...
  PTX_SPEC_ADDR,  // [a]
  PTX_SPEC_LABEL, // L
  PTX_SPEC_CALL,  // FN
  PTX_SPEC_TMAP,  // TMAP
  PTX_SPEC_TABLE, // SYM
} PtxSpecKind;

// One operand of a form: the notation is explained in ptx_ops.h.
typedef struct PtxSpec {
  uint8_t kind;       // PtxSpecKind
  char name;          // its letter
  uint8_t type;       // PtxType, when `slot` is 0
  uint8_t slot;       // 1..4: the type of T, U, V, W
  int8_t count;       // {n}: that many registers; -1: as the wgmma shape says; 0: not a vector
  bool dest, reads;   // d; D is both; sources only read
  bool imm_only, reg_only;
  bool twice;         // 2T
  bool wider;         // >T
  bool by_vec;        // *
  bool by_x;          // #
  bool optional;      // ?
  bool pair;          // |
  bool must_pair;     // ||
  bool negatable;     // !
  bool sink;          // _
  bool special;       // @
  bool bare;          // ~
} PtxSpec;

// What a modifier is, apart from its text.
typedef struct PtxModInfo {
  const char *text;
  uint8_t len;
  uint8_t type;     // PtxType, or NONE
  uint8_t space;    // PtxSpace, or GENERIC
  uint8_t vec;      // v2 v4 v8: 2 4 8; else 0
  uint8_t x;        // x1 x2 x4: 1 2 4; else 0
  uint16_t shape_n; // m64nNkK: N, else 0
  char brings;      // the operand that stands there because of it: h, x, q; else 0
  bool late;        // PTX_MOD_MINIMA speaks of it
} PtxModInfo;
const PtxModInfo *ptx_mod_info(PtxMod m);

// Operand pattern of a form.
const PtxSpec *ptx_form_specs(int form, int *n);
static inline const PtxSpec *ptx_inst_spec(const PtxInst *in, int operand) {
  int n;
  return &ptx_form_specs(in->form, &n)[in->slot[operand]];
}
// The type a spec has in this instruction; NONE for addresses and the like.
PtxType ptx_spec_type(const PtxSpec *s, const PtxInst *in);

// First form of a stem, -1 when there is none; next form of the same stem, -1 at the end.
int ptx_stem_first(const char *stem, size_t len);
int ptx_form_next(int form);

// Does the form take these modifiers?  Fills type[0..3].
bool ptx_form_takes(int form, const PtxMod *mods, int n, uint8_t type[4]);
// How many of the modifiers the form takes before it gets stuck: to find the nearest forms.
int ptx_form_progress(int form, const PtxMod *mods, int n);
// Fits the operands' shapes to the form; fills slot[].  Types are the checker's business.
bool ptx_form_fits(int form, const PtxInst *in, const PtxOperand *opnds, int n, uint8_t *slot);
// How many of the first operands fit: the next one is the culprit.
int ptx_form_fitting(int form, const PtxInst *in, const PtxOperand *opnds, int n);

// "fma(.rn|.rz|.rm|.rp){.ftz}{.sat}.f32 d, a, b, c", for messages.
char *ptx_form_text(Arena *a, int form);

// Least ISA version and target of an instruction: its form's, raised by modifiers that came later.
// sm may carry PTX_SM_ARCH or PTX_SM_ARCH_UP.
void ptx_inst_minimum(const PtxInst *in, int *ptx, int *sm);
// Does some row allow the instruction at this .version and .target?
bool ptx_inst_allowed(const PtxInst *in, int version, int sm, char suffix);
bool ptx_sm_satisfies(int sm, char suffix, int need);

#endif
