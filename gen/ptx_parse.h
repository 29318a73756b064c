// Inside the parser: one Parser per file, nothing shared between files.
#ifndef PTXSMITH_PTX_PARSE_H
#define PTXSMITH_PTX_PARSE_H

#include "ptx_forms.h"
#include "ptx_lex.h"

typedef enum SymKind {
  SYM_REG = 1,   // decl: PtxModule.reg_decls; regs[0]: index + 1 into PtxFunc.regs, 0 until used
  SYM_RANGE = 2, // the same, one entry for each number
  SYM_VAR = 4,
  SYM_FUNC = 8,
  SYM_TABLE = 16,
  SYM_LABEL = 32,
} SymKind;

typedef struct Sym {
  const char *name;
  uint32_t len, hash;
  uint8_t kind;
  int32_t index, depth;
  int32_t *regs;
  struct Sym *below;      // in its bucket
  struct Sym *same_scope; // declared before it in the scope
} Sym;

// A use of a label that may come later.
typedef struct LabelUse {
  const char *name;
  uint32_t len, hash;
  Token at;
  int32_t *target, *label; // filled when the scope that defines it is left
} LabelUse;

typedef struct Scope {
  Sym *syms;
  int first_use; // its label uses start here
  uint32_t line, col;
} Scope;

enum { SYM_BUCKETS = 4096, MEMO_SLOTS = 256, MAX_SCOPES = 64 };

// What an opcode text means; found once per module.
typedef struct Memo {
  const char *text;
  uint32_t len;
  PtxInst inst; // form, mods, types, space, vec, shape_n
} Memo;

typedef struct Parser {
  Arena *arena;
  const LineMap *map;
  Diag *diag;
  PtxModule *m;
  Lex lex;
  Token tok; // the token in hand
  Sym *buckets[SYM_BUCKETS];
  Memo memo[MEMO_SLOTS];
  Scope scopes[MAX_SCOPES];
  int depth; // scopes[depth] is the innermost; 0 is the module's
  LabelUse *uses; int nuses, uses_cap;
  int vars_cap, funcs_cap, tables_cap, items_cap, decls_cap;
  PtxFunc *f; // NULL outside a body
  int32_t func;
  int regs_cap, insts_cap, labels_cap;
  uint64_t range_total; // numbers in all register ranges
  uint64_t module_shared;
} Parser;

// ptx_parse.c
bool parse_error(Parser *p, const Token *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4))); // returns false
static inline void parse_next(Parser *p) { lex_next(&p->lex, &p->tok); }
static inline bool parse_is(const Parser *p, char punct) {
  return p->tok.kind == TK_PUNCT && *p->tok.text == punct;
}
bool parse_expect(Parser *p, char punct, const char *after); // takes it
PtxItem *parse_item(Parser *p, PtxItemKind kind, int32_t index);

bool parse_raw_line(Parser *p);      // .loc ...
bool parse_raw_statement(Parser *p); // .pragma ...;

// ptx_loc.c
const LineMap *ptx_loc_map(Arena *a, const Source *src); // NULL: it names no lines

// ptx_parse_sym.c
uint32_t sym_hash(const char *s, size_t n);
Sym *sym_find(Parser *p, const char *name, uint32_t len, uint32_t hash, int kinds);
Sym *sym_add(Parser *p, const Token *t, SymKind kind, int32_t index); // NULL after a message
bool scope_open(Parser *p);
void scope_close(Parser *p);
void label_use(Parser *p, const Token *t, int32_t *target, int32_t *label);
bool label_define(Parser *p, const Token *t);
// Register, variable, function or table called t->text; a message when there is none.
bool sym_operand(Parser *p, const Token *t, PtxOperand *o);
// The same, registers only and without a message.
bool sym_register(Parser *p, const Token *t, PtxOperand *o);

// ptx_parse_expr.c
bool parse_const(Parser *p, int64_t *out);

// ptx_parse_decl.c
typedef struct Linkage { bool is_extern, visible, weak, common; } Linkage;
bool parse_reg_decl(Parser *p);
bool parse_var_decl(Parser *p, PtxSpace space, Linkage link);
bool parse_var_head(Parser *p, PtxVar *v, Token *name);
bool parse_dims(Parser *p, PtxVar *v, uint64_t *dims, int *ndims);
bool parse_table(Parser *p, const Token *name);
int32_t parse_var_add(Parser *p, const PtxVar *v, const Token *name); // -1 after a message
// Where the variable lies in a frame of that many bytes, which grows; one that is too large for any
// device stays at UINT32_MAX.
uint32_t parse_place(uint64_t *frame, const PtxVar *v); // its offset, where frames are legal

// ptx_parse_init.c
bool parse_initialiser(Parser *p, PtxVar *v, const uint64_t *dims, int ndims);

// ptx_parse_func.c
bool parse_function(Parser *p, Linkage link, bool entry);

// ptx_parse_inst.c
bool parse_instruction(Parser *p);
// ptx_parse_opnd.c
bool parse_operand(Parser *p, PtxOperand *o);
bool parse_list(Parser *p, PtxOperand *o);
PtxOperand *parse_keep(Parser *p, const PtxOperand *v, int n); // a copy in the arena, of none too
// ptx_parse_nearest.c
void parse_unknown(Parser *p, const Token *opcode);
void parse_misfit(Parser *p, const Token *opcode, const PtxInst *in);

#endif
