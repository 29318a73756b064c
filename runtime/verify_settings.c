// What results are held to, as text: the gates' names, and what they allow where every size is 1.
// Whoever changes a gate's tolerance changes this text with it; a stored result carries its hash.
#include "verify_gates.h"

static char *tolerances(Arena *a, const Expected *x) {
  return arena_printf(a, " %a %a %a %a %a", x->o_max.abs, x->o_max.rel, x->o_mean, x->lse_max.abs,
                      x->lse_max.rel);
}

// Of the reference gate, for outputs of one number.
static char *of_reference(Arena *a, Dtype in, Dtype o, bool split) {
  double one = 1;
  const Reference ref = {.o = &one, .lse = &one, .plain_max = 1, .plain_mean = 1,
                         .plain_lse_max = 1, .draws = 1, .score_max = 1, .v_max = 1};
  const Runner runner = {.in_dtype = in, .o_dtype = o, .lse_dtype = DT_F32};
  const Problem p = {.arena = a};
  const GateRun g = {.runner = &runner, .split = split};
  Outputs out = {.o.t = {.dtype = o, .rank = 4, .shape = {1, 1, 1, 1}},
                 .lse = {.t = {.dtype = DT_F32, .rank = 3, .shape = {1, 1, 1}}, .host = &one}};
  Expected x = expect_of_run(&g, &p, &ref, &out, 1);
  return tolerances(a, &x);
}

char *verify_settings(Arena *a) {
  char *text = arena_strdup(a, "gates");
  for (int i = 0; i < gate_nnames; i++) text = arena_printf(a, "%s %s", text, gate_names[i]);
  return arena_printf(a, "%s%s%s%s%s%s%s", text, exact_settings(a),
                      of_reference(a, DT_F32, DT_F32, false), of_reference(a, DT_F32, DT_F32, true),
                      of_reference(a, DT_BF16, DT_BF16, false),
                      of_reference(a, DT_E4M3, DT_BF16, false),
                      of_reference(a, DT_F64, DT_F64, false));
}
