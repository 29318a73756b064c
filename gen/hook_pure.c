// What an instruction may do in a hook: a rule is a function of what its part is given, of its Args
// and of registers of its own, and has no effect but its result.  A kernel applies it as often as
// it likes, in any order, at any place and where nobody sees the score.
#include <string.h>

#include "hook.h"

// Forms with one of these effects; '-' and 'R' are none, and 'C' is decided below.
static const struct { char effect; const char *what; } effects[] = {
    {'W', "writes memory"},
    {'A', "is asynchronous"},
    {'B', "waits for other threads, or orders memory for them"},
    {'S', "works on a whole warp"},
};

// Forms that the effects let pass.
static const struct { const char *stem, *what; } stems[] = {
    {"trap", "ends the launch"},
    {"call", "calls a function"},
    {"brkpt", "stops the thread"},
    {"nanosleep", "waits"},
    {"pmevent", "is an event that others count"},
    {"activemask", "tells which threads run together"},
    {"isspacep", "tells where memory lies"},
    {"mbarrier", "is for barriers"},
    {"mapa", "leads to another block's memory"},
    {"getctarank", "tells blocks apart"},
};

// A carry comes from whichever instruction was before, and stays for the template's next one.
static const char carry[] = "uses the carry that the template's instructions have, too";

const char *hook_form_effect(const PtxForm *form) {
  for (size_t i = 0; i < sizeof effects / sizeof *effects; i++)
    if (strchr(form->effects, effects[i].effect)) return effects[i].what;
  for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
    if (!strcmp(form->stem, stems[i].stem)) return stems[i].what;
  return strcmp(form->handler, "carry") ? NULL : carry;
}

// Modifiers of a read of what others may write meanwhile.
static const char *const others_write[] = {"volatile", "relaxed", "acquire", "mmio"};

// Its Args are in global memory, and nothing else is an input.
static const char *memory_effect(const PtxInst *in) {
  for (size_t i = 0; i < sizeof others_write / sizeof *others_write; i++)
    if (ptx_inst_has(in, others_write[i])) return "reads memory as if others wrote it meanwhile";
  if (in->space != PTX_S_GENERIC && in->space != PTX_S_GLOBAL)
    return "goes to memory that is not global, where no Arg of a hook is";
  return NULL;
}

static const char *operand_effect(Arena *a, const PtxOperand *o) {
  switch (o->kind) {
  case PTX_O_SREG:
    return arena_printf(a, "reads %s, which is no input of a rule",
                        ptx_sreg_info((PtxSreg)o->sreg)->text);
  case PTX_O_SYM:
  case PTX_O_FUNC: return "takes the address of what the template declares";
  case PTX_O_ADDR:
    if (o->base == PTX_O_SYM) return "reads what the template declares";
    return o->base == PTX_O_INT ? "reads an address that no Arg has" : NULL;
  case PTX_O_VEC:
  case PTX_O_PAIR:
    for (int i = 0; i < o->n; i++) {
      const char *what = operand_effect(a, &o->v[i]);
      if (what) return what;
    }
    return NULL;
  default: return NULL;
  }
}

const char *hook_inst_effect(Arena *a, const PtxInst *in) {
  const char *what = hook_form_effect(ptx_inst_form(in));
  if (!what) what = memory_effect(in);
  for (int i = 0; i < in->nopnds && !what; i++) what = operand_effect(a, &in->opnds[i]);
  return what;
}
