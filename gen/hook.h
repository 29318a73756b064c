// Hook: the parts that a user's file may have, and what each of them may change.  Internal to gen/.
#ifndef PTXSMITH_HOOK_H
#define PTXSMITH_HOOK_H

#include "expand.h"

enum { HOOK_MAX_WRITES = 2, HOOK_MAX_GIVEN = 12 };

// A part of a hook: the file's own lines, or one of its functions.
typedef struct HookPart {
  const char *function;                // NULL: the lines
  const char *shown;                   // in messages
  const char *writes[HOOK_MAX_WRITES]; // the registers that it may change; the others are inputs
  bool must_write;                     // a part that changes none of them says nothing
  bool masks;                          // sets ${sees}; a score that is not seen becomes -inf
  const char *with;                    // the function without which it says nothing
} HookPart;

typedef enum HookPartId { HOOK_LINES, HOOK_VISIBLE, HOOK_ANY, HOOK_ALL, HOOK_PARTS } HookPartId;
extern const HookPart hook_part[HOOK_PARTS];

// One time that a part was put in: Line.use - 1 is its index in x->hook_use.
typedef struct HookUse {
  const HookPart *part;
  const char *writes[HOOK_MAX_WRITES]; // the template's registers behind those names
  const char *given[HOOK_MAX_GIVEN];   // and behind all names that the part knows
} HookUse;

// The hook's own function of that name is pushed; false (nothing pushed) when it has none.
bool hook_push_function(lua_State *L, const char *name);
bool hook_has_part(lua_State *L, const Expansion *x, HookPartId id);
// What the file has and lacks, seen in its trial run; raises an error with its place.
void hook_check_parts(lua_State *L, Expansion *x);
// The lines that a part has just put in, from index `first` on, stay in their scope: braces,
// comments and statements that they open they close, and no others.
void hook_check_scope(lua_State *L, Expansion *x, int first);
// The registers of a hook's Args begin with it: in the hook's lines, where they are %NAME, they are
// renamed, so that they are never a register of the template.
#define HOOK_PREFIX "user_"
// The expanded text, parsed: hooks read what their part is given, write to registers of their own
// and to what the part may change, have no other effect, and their code is left where it ends.
Status hook_check_text(const Expansion *x, const PtxModule *m, Diag *d);
// What an instruction does that a rule may not do, as the rest of a sentence; NULL: nothing.
const char *hook_inst_effect(Arena *a, const PtxInst *in);
const char *hook_form_effect(const PtxForm *form);

#endif
