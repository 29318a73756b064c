// The C API: problems and operators.
#include "api.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "planner.h"

#define X(id, ...) _Static_assert((int)PSM_##id == DT_##id, "psm_dtype mirrors Dtype");
DTYPES(X)
#undef X
_Static_assert((int)PSM_VALUE == ARG_VALUE && (int)PSM_IN == ARG_IN && (int)PSM_OUT == ARG_OUT &&
                   (int)PSM_INOUT == ARG_INOUT && (int)PSM_WORK == ARG_WORK,
               "psm_role mirrors ArgRole");
_Static_assert((int)PSM_MAX_RANK == TENSOR_MAX_RANK, "psm_tensor mirrors Tensor");

// ---- problems ----------------------------------------------------------------------------------
psm_status psm_problem_new(psm_session *s, const char *values, psm_problem **out) {
  Diag *d = api_begin(s);
  *out = NULL;
  if (!api_needs(values, "values", d)) return PSM_INPUT;
  psm_problem *p = calloc(1, sizeof *p);
  if (!p) abort();
  p->owner = s;
  p->arena = arena_new();
  Status st = problem_open(s->session, p->arena, values, &p->problem, d);
  if (!st) *out = p;
  else psm_problem_free(p);
  return api_status(st);
}

void psm_problem_free(psm_problem *p) {
  if (!p) return;
  arena_free(p->arena);
  free(p);
}

// Names of the problem have kinds; others (a hook's values) take either.
static bool takes(const char *name, ProblemKind kind, Diag *d) {
  if (!api_needs(name, "name", d)) return false;
  const ProblemName *known = problem_name_find(name);
  if (!known ||
      (kind == PROBLEM_SIZE && known->kind != PROBLEM_DTYPE && known->kind != PROBLEM_LIST) ||
      known->kind == kind)
    return true;
  diag_error(d, NOWHERE, "problem: %s takes no %s", name,
             kind == PROBLEM_FLOAT ? "floating-point number" : "number");
  return false;
}

// A copy takes the problem's place when it is good.
static psm_status adopt(psm_problem *p, Problem *changed, Diag *d) {
  Status st = problem_check(changed, d);
  arena_free(st ? changed->arena : p->arena);
  if (!st) *p = (psm_problem){.owner = p->owner, .arena = changed->arena, .problem = changed};
  return api_status(st);
}

psm_status psm_problem_set_int(psm_problem *p, const char *name, int64_t value) {
  Diag *d = api_begin(p->owner);
  if (!takes(name, PROBLEM_SIZE, d)) return PSM_INPUT;
  Problem *changed = problem_copy(arena_new(), p->problem);
  problem_set_int(changed, name, value);
  return adopt(p, changed, d);
}

psm_status psm_problem_set_float(psm_problem *p, const char *name, double value) {
  Diag *d = api_begin(p->owner);
  if (!takes(name, PROBLEM_FLOAT, d)) return PSM_INPUT;
  Status st = problem_check_float(name, value, d);
  if (st != ST_OK) return api_status(st);
  Problem *changed = problem_copy(arena_new(), p->problem);
  problem_set_float(changed, name, value);
  return adopt(p, changed, d);
}

// ---- making ------------------------------------------------------------------------------------
static psm_operator *wrap(psm_device *dev, Operator *op, int64_t chunks, uint32_t grid) {
  psm_operator *w = calloc(1, sizeof *w);
  if (!w) abort();
  *w = (psm_operator){.device = dev, .op = op, .chunks = chunks, .grid = grid};
  for (int i = 0; i < op->nsteps; i++)
    w->step[i] = (psm_variant){.owner = dev->owner, .variant = op->step[i].variant};
  return w;
}

// What `ptxsmith plan` says, by the built-in table.
static Status choose(psm_device *dev, Arena *a, const Problem *p, const PlannerAsk *ask,
                     PlannerChoice *out, Diag *d) {
  Session *s = dev->owner->session;
  PlannerTable table = {0};
  const Source *rows;
  Status st = session_file(s, "lua/planner.txt", &rows, d);
  if (!st) st = planner_parse(a, rows, &table, d);
  return st ? st : planner_choose(s, a, &table, ask, p, device_info(dev->device), out, d);
}

psm_status psm_operator_new(psm_device *dev, const char *template_name, const char *params,
                            const psm_problem *p, const psm_options *options, psm_operator **out) {
  Diag *d = api_begin(dev->owner);
  *out = NULL;
  if (!api_needs(p, "problem", d)) return PSM_INPUT;
  Arena *a = arena_new();
  Params given = {0};
  PlannerChoice choice = {.template_name = template_name, .problem = p->problem};
  PlanOpts opts = {.grid = options ? options->grid : 0};
  Operator *op = NULL;
  Status st = params ? parse_params(a, params, &given, d) : ST_OK;
  if (!st && options) st = api_build_opts(options->target, options->hook, &opts.build, d);
  const PlannerAsk ask = {.template_name = template_name, .given = &given, .build = opts.build,
                          .device = dev->device, .op = &op};
  if (template_name && !(options && options->tuned)) choice.params = given;
  else if (!st) st = choose(dev, a, p->problem, &ask, &choice, d);
  if (!st && !op)
    st = operator_make(dev->owner->session, choice.template_name, &choice.params, choice.problem,
                       &opts, &op, d);
  if (!st) st = operator_load(op, dev->device, d);
  if (!st) st = operator_plan(op, dev->device, &opts, d);
  if (!st) *out = wrap(dev, op, problem_int(choice.problem, "chunks", 0), opts.grid);
  else operator_free(op);
  if (!st && choice.why &&
      !((*out)->why = strdup(arena_printf(a, "%s: %s", choice.template_name, choice.why))))
    abort();
  arena_free(a);
  return api_status(st);
}

void psm_operator_free(psm_operator *op) {
  if (!op) return;
  operator_free(op->op);
  free(op->why);
  free(op);
}

const char *psm_operator_why(const psm_operator *op) { return op->why; }

int psm_operator_steps(const psm_operator *op) { return op->op->nsteps; }

const psm_variant *psm_operator_variant(const psm_operator *op, int step) {
  return step >= 0 && step < op->op->nsteps ? &op->step[step] : NULL;
}

// ---- changing the problem ----------------------------------------------------------------------
static Status replan(psm_operator *w, Diag *d) {
  Operator *op = w->op;
  int64_t chunks = w->chunks ? w->chunks : plan_chunks(op);
  PlanOpts opts = {.grid = w->grid};
  Status st = operator_complete(op, chunks, d);
  if (!st) st = operator_lay_out(op, d);
  for (int i = 0; !st && i < op->nsteps; i++) op->step[i].bound = 0;
  return st ? st : operator_plan(op, w->device->device, &opts, d);
}

psm_status psm_operator_set_int(psm_operator *w, const char *name, int64_t value) {
  Diag *d = api_begin(w->device->owner);
  if (!api_needs(name, "name", d)) return PSM_INPUT;
  const Value *old = problem_value(w->op->problem, name);
  if (!old || old->is_float || old->list)
    return api_status(diag_error(d, NOWHERE, "the problem has no whole number named %s", name));
  for (int i = 0; i < w->op->nsteps; i++)
    if (params_get(&w->op->step[i].variant->params, old->name))
      return api_status(diag_error(d, NOWHERE, "%s is built into %s", name,
                                   w->op->step[i].variant->id));
  int64_t before = old->i, chunks = w->chunks;
  if (!strcmp(old->name, "chunks")) w->chunks = value > 0 ? value : 0;
  problem_set_int(w->op->problem, name, value);
  Status st = replan(w, d);
  if (!st) return PSM_OK;
  w->chunks = chunks;
  problem_set_int(w->op->problem, name, before);
  Diag *quiet = diag_new(); // it was good before
  Status again = replan(w, quiet);
  assert(again == ST_OK);
  (void)again;
  diag_free(quiet);
  return api_status(st);
}

// ---- binding and launching ---------------------------------------------------------------------
uint64_t psm_workspace_bytes(const psm_operator *op) { return op->op->workspace_bytes; }
uint64_t psm_workspace_zero_bytes(const psm_operator *op) { return op->op->workspace_zero_bytes; }

psm_status psm_bind_workspace(psm_operator *op, uint64_t pointer, uint64_t bytes) {
  Diag *d = api_begin(op->device->owner);
  return api_status(operator_bind_workspace(op->op, pointer, bytes, d));
}

// The index-th Arg when those that several steps share are counted once.
static const ArgDecl *nth_arg(const Operator *op, int index, const Variant **v) {
  for (int s = 0; s < op->nsteps; s++) {
    *v = op->step[s].variant;
    for (int i = 0; i < (*v)->nargs; i++) {
      const ArgDecl *arg = &(*v)->args[i];
      if (operator_arg(op, arg->name) == arg && index-- == 0) return arg;
    }
  }
  return NULL;
}

psm_status psm_operator_arg(psm_operator *op, int index, psm_arg *out) {
  Diag *d = api_begin(op->device->owner);
  const Variant *v;
  const ArgDecl *arg = index < 0 ? NULL : nth_arg(op->op, index, &v);
  if (!arg) return api_status(diag_error(d, NOWHERE, "there is no argument %d", index));
  *out = (psm_arg){.name = arg->name,
                   .doc = arg->doc,
                   .role = (psm_role)arg->role,
                   .dtype = (psm_dtype)arg->dtype,
                   .rank = arg->role == ARG_VALUE ? 0 : arg->rank,
                   .alignment = variant_alignment(v, arg),
                   .optional = arg->optional};
  return api_status(out->rank ? arg_shape(arg, op->op->problem, out->shape, d) : ST_OK);
}

psm_status psm_bind(psm_operator *op, const char *name, const psm_tensor *t) {
  Diag *d = api_begin(op->device->owner);
  if (!api_needs(name, "name", d)) return PSM_INPUT;
  if (!t) return api_status(operator_bind(op->op, name, NULL, d));
  if (t->rank < 1 || t->rank > TENSOR_MAX_RANK)
    return api_status(diag_error(d, NOWHERE, "%s: has %d dimensions; 1 to %d are possible", name,
                                 t->rank, TENSOR_MAX_RANK));
  if ((unsigned)t->dtype >= DT_COUNT)
    return api_status(diag_error(d, NOWHERE, "%s: %d is no psm_dtype", name, (int)t->dtype));
  Tensor inner = {.dtype = (Dtype)t->dtype, .rank = t->rank, .data = t->data};
  bool dense = true;
  for (int i = 0; i < t->rank; i++) {
    inner.shape[i] = t->shape[i];
    inner.stride[i] = t->stride[i];
    dense = dense && t->stride[i] == 0;
  }
  if (dense) tensor_dense(&inner);
  return api_status(operator_bind(op->op, name, &inner, d));
}

psm_status psm_launch(psm_operator *op) {
  return api_status(operator_launch(op->op, op->device->device, api_begin(op->device->owner)));
}
