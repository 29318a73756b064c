// Expansion: one run of a template, from Lua to lines of PTX with their origins.  Internal to gen/.
#ifndef PTXSMITH_EXPAND_H
#define PTXSMITH_EXPAND_H

#include "lua_env.h"
#include "template.h"
#include "variant.h"

// One line of the PTX to come.
typedef struct Line {
  const char *text; // without indentation and newline
  uint32_t len;
  uint8_t kind;     // LineKind
  int8_t opens;
  bool closes_first, after_blank, ends_statement;
  uint32_t use;         // of a hook's part: 1 + its index in Expansion.hook_use; 0: the template's
  const Origin *origin; // NULL: the generator's own
} Line;

// Block: captured lines; a Lua value (userdata) when made by block().
typedef struct Block {
  Line *v;
  int n, cap;
} Block;

typedef struct Expansion {
  Session *session;
  LuaEnv *env;
  Variant *v;   // its fields are filled as the template declares them
  Arena *arena; // v->arena
  Diag *d;
  const VariantOpts *opts;
  const Params *given;
  TemplateInfo *info;
  bool declare_only; // stop at the first PTX line
  bool declared;     // the first declaration was seen: comments from here on are the template's
  bool in_body;      // the first PTX line was seen: no declarations from here on
  bool bad;          // diagnostics were added that the run goes on after
  bool in_entry;
  bool probe;        // a constraint that fails is an answer, no error
  const char *failed_constraint;

  int args_cap, params_cap;
  int min_ptx, min_sm; // target{}
  char sm_suffix;

  Block main, *sink;

  const Source **included; int nincluded, included_cap;
  const Source *hook;      // the user's file, NULL for none
  bool hook_trial;         // its first run: declares Args, and its PTX lines go nowhere
  bool hook_saw_ptx;
  uint32_t hook_line;      // of its first PTX line
  uint32_t hook_runs;      // lines of this use are being put in; 0: none
  struct HookUse *hook_use; int nhook_uses, hook_use_cap;
  uint32_t *row_use, nrow_use; // by line of the text, when there is a hook
  bool hook_in_reg;        // a declaration of registers is not at its end
  const char **hook_regs; int nhook_regs, hook_regs_cap; // that this use has declared; no %, no <N>
  bool hook_used;          // a point took it
  int first_hook_arg;      // index in v->args

  struct OriginTable *origins;
  lua_Integer last;      // 1 + number of the template's line that was emitted last, 0: none
  const Origin *last_up; // its callers
} Expansion;

static inline Expansion *expansion_of(lua_State *L) { return lua_env_user(L); }

// The first PTX line (or entry_begin) ends the parameter block.
void expansion_end_block(lua_State *L, Expansion *x);
// Adds a line that C code made; its origin is the Lua line that called.  The text is not copied.
void emit_text(lua_State *L, LineKind kind, const char *text);
void emitf(lua_State *L, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// An instruction: opcode, operands from column 16 on.
void emit_op(lua_State *L, const char *op, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void emit_line(lua_State *L, const Line *line);
// Decimal digits at the end of a buffer: most values are integers, and Lua would print them twice
// over, through printf and into a string of its own.
const char *emit_digits(int64_t v, char buf[24], size_t *len);
// Origin of the Lua line that called the running C function.
const Origin *expansion_origin(lua_State *L);
// A copy in the variant's arena.  It counts: a loop may ask for it again and again.
const char *expansion_keep(lua_State *L, const char *text);

// The finished text and its line map into v->ptx, v->map, v->hash.
void expansion_assemble(Expansion *x);

// "name a=1 b=2": the template and its parameters so far.
const char *variant_id(Arena *a, const Variant *v);

// ---- tables of functions, registered once per session ------------------------------------------
extern const luaL_Reg declare_functions[];
extern const luaL_Reg emit_functions[];
extern const luaL_Reg block_functions[];
extern const luaL_Reg entry_functions[];
extern const luaL_Reg memory_functions[];
extern const luaL_Reg value_functions[];
extern const luaL_Reg hook_functions[];
extern const luaL_Reg fragment_functions[];
void values_open(LuaEnv *e);  // dtype objects
void blocks_open(LuaEnv *e);  // the metatable of blocks

// ---- shared by the files above -----------------------------------------------------------------
// A dtype object or a dtype's name at `index`.
bool lua_to_dtype(lua_State *L, int index, Dtype *out);
// Field `name` of the table at `index`; checked kinds.  Errors name `what`.
lua_Integer lua_field_int(lua_State *L, int index, const char *name, lua_Integer otherwise,
                          const char *what);
bool lua_field_bool(lua_State *L, int index, const char *name, bool otherwise, const char *what);
const char *lua_field_text(lua_State *L, int index, const char *name, const char *otherwise,
                           const char *what);
// Raises an error when the table has a field that is not in `known` (NULL-terminated).
void lua_check_fields(lua_State *L, int index, const char *const *known, const char *what);
// Declares the hook's Args; then its lines can be put in.
void hook_declare(lua_State *L, Expansion *x);
// In a hook's line: the registers of its Args.
void hook_rename(Expansion *x, Line *line);

#endif
