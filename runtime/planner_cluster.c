// Rows of clusters.  The blocks of a cluster share an item, and clusters that do not run at once
// take turns: such a row is fast for equal items that all run at once, and for no others.
#include "planner.h"

bool planner_lengths_differ(const Operator *op) {
  return operator_arg(op, "seqlens_k") || operator_arg(op, "cu_seqlens_k");
}

static const char *first_error(Arena *a, const Diag *d) {
  const DiagMsg *m = d->first;
  while (m && m->severity != SEV_ERROR) m = m->next;
  return m ? arena_strdup(a, m->what) : "no reason given";
}

Status planner_clusters(const Operator *op, Step *step, int64_t *n, Diag *d) {
  uint32_t blocks = dim3_product(step->variant->launch.cluster);
  *n = 0;
  if (blocks <= 1) return ST_OK;
  Status st = operator_work(op, step, d);
  if (!st) *n = (int64_t)(step->work / blocks + (step->work % blocks > 0));
  return st;
}

// Why clusters of the step would wait for each other, NULL: they do not, or nobody can say.
static const char *step_crowded(Arena *a, Operator *op, Step *step, Device *dev, Diag *quiet) {
  int64_t n;
  uint32_t blocks = dim3_product(step->variant->launch.cluster);
  if (planner_clusters(op, step, &n, quiet)) return first_error(a, quiet);
  if (!n) return NULL;
  if (planner_lengths_differ(op))
    return arena_printf(a, "clusters of %u blocks wait for the longest of different lengths",
                        blocks);
  if (!dev || device_info(dev)->is_sim) return NULL;
  if (operator_load(op, dev, quiet))
    return arena_printf(a, "can't be loaded: %s", first_error(a, quiet));
  int at_once = kernel_info(step->kernel)->clusters;
  if (at_once < 1) return "this driver does not say how many clusters run at once";
  if (n <= at_once) return NULL;
  return arena_printf(a, "%lld clusters of %u blocks, of which %d run at once on %s", (long long)n,
                      blocks, at_once, device_info(dev)->name);
}

const char *planner_crowded(Arena *a, Operator *op, Device *dev) {
  const char *why = NULL;
  Diag *quiet = diag_new();
  for (int i = 0; i < op->nsteps && !why; i++)
    why = step_crowded(a, op, &op->step[i], dev, quiet);
  diag_free(quiet);
  return why;
}

bool planner_row_clusters(Session *s, Arena *a, const PlannerRow *r, const Fit *least,
                          const Problem *p) {
  if (!least->clusters) return true;
  const PlannerAsk ask = {.template_name = r->template_name};
  const DeviceInfo any = {.name = "any"};
  PlannerChoice choice;
  Fit fit = planner_fit(s, a, r->params, &ask, p, &any, r->template_name, &choice);
  return fit.step == FIT_DONE && !fit.lengths && fit.clusters <= least->clusters;
}
