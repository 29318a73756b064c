// Operator: the launches of one answer, from a template's name to the device's queue.
#include "plan.h"

#include <assert.h>
#include <string.h>

static Operator *operator_new(const Problem *p) {
  Arena *a = arena_new();
  Operator *op = arena_new_of(a, Operator);
  op->arena = a;
  op->problem = problem_copy(a, p);
  return op;
}

static Status add_step(Operator *op, Variant *v, Diag *d) {
  op->step[op->nsteps++] = (Step){.variant = v, .args = arena_alloc(op->arena, v->arg_bytes)};
  if (v->nargs <= OPERATOR_MAX_ARGS) return ST_OK;
  return diag_fail(d, ST_INPUT, "%s: %d arguments, %d at most", v->id, v->nargs, OPERATOR_MAX_ARGS);
}

Status operator_make(Session *s, const char *template_name, const Params *given, const Problem *p,
                     const PlanOpts *opts, Operator **out, Diag *d) {
  *out = NULL;
  const TemplateInfo *info;
  Status st = session_template(s, template_name, &info, d);
  if (st != ST_OK) return st;
  Operator *op = operator_new(p);
  Params params = {0};
  for (int i = 0; given && i < given->n; i++)
    params_set(op->arena, &params, given->v[i].name, given->v[i].value);
  st = problem_fix_params(op->arena, p, info, &params, d);
  VariantOpts build = opts ? opts->build : (VariantOpts){0};
  const char *name = template_name;
  const Params *with = &params;
  while (st == ST_OK) {
    Variant *v;
    st = variant_build(s, name, with, &build, &v, d);
    if (st == ST_OK) st = add_step(op, v, d);
    if (st != ST_OK || !v->next) break;
    if (op->nsteps == OPERATOR_MAX_STEPS)
      st = diag_fail(d, ST_INPUT, "%s: more than %d steps", template_name, OPERATOR_MAX_STEPS);
    name = v->next->template_name;
    with = &v->next->params;
    build.hook_path = NULL; // the rule acts on scores, which only the first step sees
  }
  if (st == ST_OK) st = operator_complete(op, opts ? opts->chunks : 0, d);
  if (st == ST_OK) st = operator_lay_out(op, d);
  if (st == ST_OK) *out = op;
  else operator_free(op);
  return st;
}

void operator_free(Operator *op) {
  if (!op) return;
  for (int i = 0; i < op->nsteps; i++) {
    if (op->step[i].kernel) kernel_free(op->step[i].kernel);
    variant_free(op->step[i].variant);
  }
  arena_free(op->arena);
}

// A step that waits for the one in front by itself may begin before that one has ended.
static bool waits_itself(const Variant *v) {
  static const char wait[] = "griddepcontrol.wait";
  for (const char *at = v->ptx->text; (at = strstr(at, wait)); at++) {
    const char *line = at;
    while (line > v->ptx->text && line[-1] != '\n') line--;
    const char *comment = strstr(line, "//");
    if (!comment || comment > at) return true;
  }
  return false;
}

Status operator_load(Operator *op, Device *dev, Diag *d) {
  const DeviceInfo *info = device_info(dev);
  for (int i = 0; i < op->nsteps; i++) {
    Step *step = &op->step[i];
    uint32_t smem = step->variant->launch.smem_bytes;
    if (info->smem_optin && smem > info->smem_optin)
      return diag_fail(d, ST_INPUT, "%s: needs %u bytes of shared memory, %s gives a block %u",
                       step->variant->id, smem, info->id, info->smem_optin);
    step->dependent = i > 0 && waits_itself(step->variant);
    if (step->kernel && step->kernel->dev == dev) continue; // something was asked of it already
    if (step->kernel) kernel_free(step->kernel);
    step->kernel = NULL;
    Status st = device_load(dev, step->variant, &step->kernel, d);
    if (st != ST_OK) return st;
  }
  return ST_OK;
}

// ---- grids -------------------------------------------------------------------------------------
Status operator_work(const Operator *op, Step *step, Diag *d) {
  const LaunchRule *rule = &step->variant->launch;
  int64_t work = 1;
  for (int i = 0; i < rule->nwork; i++) {
    int64_t n;
    Status st = dim_eval(&rule->work[i], op->problem, &n, d);
    if (st != ST_OK) return st;
    if (__builtin_mul_overflow(work, n, &work))
      return diag_fail(d, ST_INPUT, "%s: the number of work items overflows", step->variant->id);
  }
  step->work = (uint64_t)work;
  return ST_OK;
}

static Status choose_grid(Step *step, const Device *dev, uint32_t given, Diag *d) {
  const LaunchRule *rule = &step->variant->launch;
  uint32_t cluster = rule->cluster[0] > 1 ? rule->cluster[0] : 1;
  uint64_t blocks = step->work;
  if (rule->persistent && dev) {
    int occupancy = step->kernel ? kernel_info(step->kernel)->blocks_per_sm : 1;
    uint64_t fit = (uint64_t)device_info(dev)->sm_count * (uint64_t)(occupancy > 0 ? occupancy : 1);
    if (fit > 0 && fit < blocks) blocks = fit;
  }
  const uint64_t most = INT32_MAX; // grid.x; kernels stride over the rest
  blocks = (blocks + cluster - 1) / cluster * cluster;
  if (blocks > most) blocks = most / cluster * cluster;
  if (given && given % cluster)
    return diag_fail(d, ST_INPUT, "grid=%u is not a multiple of the cluster's %u blocks", given,
                     cluster);
  step->left_out = 0;
  if (given && step->work) {
    uint64_t useful = (step->work + PLAN_IDLE_BLOCKS + cluster - 1) / cluster * cluster;
    bool cap = dev && device_info(dev)->is_sim && given > useful;
    blocks = cap ? useful : given;
    step->left_out = given - (uint32_t)blocks;
  }
  step->grid[0] = (uint32_t)blocks;
  step->grid[1] = step->grid[2] = 1;
  return ST_OK;
}

Status operator_plan(Operator *op, const Device *dev, const PlanOpts *opts, Diag *d) {
  for (int i = 0; i < op->nsteps; i++) {
    Status st = operator_work(op, &op->step[i], d);
    if (st == ST_OK) st = choose_grid(&op->step[i], dev, opts ? opts->grid : 0, d);
    if (st != ST_OK) return st;
  }
  if (op->step[0].variant->kind == KIND_CEILING) // one sum for each block
    problem_set_int(op->problem, "blocks", op->step[0].grid[0]);
  return operator_pack_values(op, d);
}

Status operator_replan(Operator *op, const Problem *p, const Device *dev, const PlanOpts *opts,
                       Diag *d) {
  op->problem = problem_copy(op->arena, p);
  for (int i = 0; i < op->nsteps; i++) op->step[i].bound = 0;
  Status st = operator_complete(op, opts ? opts->chunks : 0, d);
  if (st == ST_OK) st = operator_lay_out(op, d);
  return st == ST_OK ? operator_plan(op, dev, opts, d) : st;
}

Status operator_launch(const Operator *op, Device *dev, Diag *d) {
  Status st = operator_all_bound(op, d);
  for (int i = 0; st == ST_OK && i < op->nsteps; i++) {
    const Step *step = &op->step[i];
    const LaunchRule *rule = &step->variant->launch;
    assert(step->kernel);
    if (step->work == 0) continue; // an empty batch: nothing to compute, nothing to write
    Launch launch = {.kernel = step->kernel,
                     .smem = rule->smem_bytes,
                     .args = step->args,
                     .arg_bytes = step->variant->arg_bytes,
                     .dependent = step->dependent};
    for (int k = 0; k < 3; k++) {
      launch.grid[k] = step->grid[k];
      launch.block[k] = rule->block[k] ? rule->block[k] : 1;
      launch.cluster[k] = rule->cluster[k] ? rule->cluster[k] : 1;
    }
    st = device_launch(dev, &launch, d);
  }
  return st;
}
