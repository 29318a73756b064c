// Verification of a template on a device: which gates apply, and what is said about the result.
#include "verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "timer.h"
#include "verify_gates.h"
#include "verify_oracle.h"

// ---- gates -------------------------------------------------------------------------------------
static Status check_real(const AttnInputs *real, const Problem *p, Dtype t, Diag *d) {
  AttnInputs want;
  Status st = inputs_make(p, t, FILL_ZERO, &want, d);
  if (st != ST_OK) return st;
  const HostTensor *a[] = {&real->q, &real->k, &real->v}, *b[] = {&want.q, &want.k, &want.v};
  for (int i = 0; i < 3 && st == ST_OK; i++) {
    const int64_t *x = a[i]->t.shape, *y = b[i]->t.shape;
    if (a[i]->t.dtype != b[i]->t.dtype)
      st = diag_fail(d, ST_INPUT, "%c: holds %s, the kernel takes %s", "qkv"[i],
                     dtype_name(a[i]->t.dtype), dtype_name(b[i]->t.dtype));
    else if (memcmp(x, y, 4 * sizeof *x))
      st =
          diag_fail(d, ST_INPUT,
                    "%c: shape is [%lld, %lld, %lld, %lld], the problem's [%lld, %lld, %lld, %lld]",
                    "qkv"[i], (long long)x[0], (long long)x[1], (long long)x[2], (long long)x[3],
                    (long long)y[0], (long long)y[1], (long long)y[2], (long long)y[3]);
  }
  inputs_free(&want);
  return st;
}

static Status all_gates(GateRun *g, const Source *expect, Diag *d) {
  Status st = gate_equal_weights(g, d);
  if (st == ST_OK) st = gate_expect(g, expect, d);
  // with a hook, slopes, sinks only the gates below run anything
  if (st != ST_OK || (g->opts->quick && verdict_ran(g->verdict))) return st;
  st = gate_one_key(g, d);
  return st == ST_OK ? gate_reference(g, d) : st;
}

static Status verify_attention(Session *s, DeviceRun *run, const VerifyOpts *opts, Verdict *out,
                               Arena *a, Diag *d) {
  Runner runner;
  DeviceOracle oracle = {
      .session = s, .dev = run->dev, .hook_path = run->plan.build.hook_path, .seed = opts->seed,
      .kept = opts->kept};
  GateRun g = {.runner = &runner,
               .problem = problem_copy(a, run->op->problem),
               .opts = opts,
               .arena = a,
               .verdict = out};
  const char *split = params_get(&run->op->step[0].variant->params, "split");
  g.split = split && !strcmp(split, "1");
  if (!device_info(run->dev)->is_sim) {
    g.all_rows = device_oracle;
    g.all_rows_ctx = &oracle;
  }
  const Source *expect;
  Status st = runner_of_operator(run, &runner, d);
  if (st == ST_OK) st = check_memory(run->dev, device_run_bytes(run->op), d);
  if (st == ST_OK && opts->real) st = check_real(opts->real, g.problem, runner.in_dtype, d);
  if (st == ST_OK) st = session_file(s, "lua/expect.txt", &expect, d);
  if (run->plan.build.hook_path)
    g.rule = hook_rule_new(s, run->plan.build.hook_path, opts->seed, opts->step_limit);
  if (st == ST_OK) st = all_gates(&g, expect, d);
  hook_rule_free(g.rule);
  return st;
}

// ---- the verdict -------------------------------------------------------------------------------
char *reproduce_begin(Arena *a, const VerifyOpts *opts, const char *what) {
  const char *program = opts->program ? cli_quote(a, opts->program) : "ptxsmith";
  return arena_printf(a, "%s verify %s", program, what);
}

char *reproduce_end(Arena *a, const Session *s, const VerifyOpts *opts, char *text) {
  const VariantOpts *build = &opts->build;
  if (build->sm) {
    const char suffix[] = {build->sm_suffix, 0};
    text = arena_printf(a, "%s --target sm_%d%s", text, build->sm, suffix);
  }
  const char *folder = session_folder(s);
  if (folder) text = arena_printf(a, "%s --templates %s", text, cli_quote(a, folder));
  if (opts->sanitize) text = arena_printf(a, "%s --sanitize", text);
  if (opts->schedule)
    text = arena_printf(a, "%s --schedule %llu", text, (unsigned long long)opts->schedule);
  if (opts->step_limit)
    text = arena_printf(a, "%s --steps %llu", text, (unsigned long long)opts->step_limit);
  return text;
}

static const char *reproduce(Arena *a, const Session *s, const Device *dev,
                             const char *template_name, const Operator *op,
                             const VerifyOpts *opts) {
  char *text = reproduce_begin(a, opts, template_name);
  const Params *params = &op->step[0].variant->params;
  for (int i = 0; i < params->n; i++)
    text = arena_printf(a, "%s %s=%s", text, params->v[i].name, params->v[i].value);
  text =
      arena_printf(a, "%s --problem %s --device %s --seed %llu", text, problem_text(a, op->problem),
                   device_info(dev)->id, (unsigned long long)opts->seed);
  if (opts->grid) text = arena_printf(a, "%s --grid %u", text, opts->grid);
  if (opts->build.hook_path)
    text = arena_printf(a, "%s --hook %s", text, cli_quote(a, opts->build.hook_path));
  text = reproduce_end(a, s, opts, text);
  if (opts->real_args) text = arena_printf(a, "%s %s", text, opts->real_args);
  return text;
}

static const char *grid_note(Arena *a, const Operator *op, uint32_t asked) {
  for (int i = 0; i < op->nsteps; i++)
    if (op->step[i].left_out)
      return arena_printf(a, "grid: %u of %u blocks run on sim; there is work for %llu",
                          op->step[i].grid[0], asked, (unsigned long long)op->step[i].work);
  return NULL;
}

static Status conclude(Verdict *v) {
  bool any = false;
  v->passed = true;
  for (int i = 0; i < v->ngates; i++) {
    any |= v->gate[i].run;
    if (v->gate[i].run && !v->gate[i].passed) v->passed = false;
  }
  v->passed &= any; // nothing that ran proves nothing
  return v->passed ? ST_OK : ST_FAILED;
}

// The gates run a kernel again and again on inputs that stay what they are.
static Status check_inputs_stay(const Operator *op, Diag *d) {
  for (int s = 0; s < op->nsteps; s++)
    for (int i = 0; i < op->step[s].variant->nargs; i++)
      if (op->step[s].variant->args[i].role == ARG_INOUT)
        return diag_fail(d, ST_INPUT,
                         "%s changes its input %s, and the gates need inputs that stay; "
                         "build it without what writes there",
                         op->step[s].variant->entry->name, op->step[s].variant->args[i].name);
  return ST_OK;
}

static bool sanitized(const Device *dev, const VerifyOpts *opts) {
  return opts->sanitize && device_info(dev)->is_sim;
}

// Of launches that ended: what the sanitizer finds ends them.
static const char *found_nothing(Arena *a, const VerifyOpts *opts) {
  return arena_printf(a,
                      "no race, no access out of bounds, nothing read that was not written, no "
                      "deadlock; schedule %llu",
                      (unsigned long long)opts->schedule);
}

static PlanOpts plan_of(const VerifyOpts *opts) {
  PlanOpts plan = opts->plan;
  if (opts->build.hook_path || opts->build.sm) plan.build = opts->build;
  return plan;
}

Status verify_load(Session *s, Device *dev, const char *template_name, const Params *given,
                   const Problem *p, const VerifyOpts *opts, Operator **out, Diag *d) {
  *out = NULL;
  const TemplateInfo *info;
  Status st = session_template(s, template_name, &info, d);
  if (st != ST_OK) return st;
  if (info->kind == KIND_HELPER || info->kind == KIND_COMBINE)
    return diag_fail(d, ST_INPUT,
                     "%s makes no answer of its own; verify a template that uses it, or launch it: "
                     "`gen -o FILE.ptx`, then `run FILE.ptx`",
                     template_name);
  st = lengths_check_whole(p, d);
  if (st != ST_OK) return st;
  SpentOn was = spent_on(opts->spent, SPENT_LOAD);
  PlanOpts plan = plan_of(opts);
  st = operator_make(s, template_name, given, p, &plan, out, d);
  if (st == ST_OK) st = check_inputs_stay(*out, d);
  if (st == ST_OK) st = operator_load(*out, dev, d);
  spent_on(opts->spent, was);
  if (st == ST_OK) return ST_OK;
  operator_free(*out);
  *out = NULL;
  return st;
}

Status verify_loaded(Session *s, Device *dev, const char *template_name, Operator *op,
                     const Problem *p, const VerifyOpts *opts, Verdict *out, Arena *a, Diag *d) {
  *out = (Verdict){0};
  DeviceRun run = {.dev = dev,
                   .op = op,
                   .plan = plan_of(opts),
                   .seed = opts->seed,
                   .exact = sanitized(dev, opts),
                   .spent = opts->spent};
  Status st = operator_replan(op, p, dev, &run.plan, d);
  if (st == ST_OK) {
    out->note = grid_note(a, op, opts->plan.grid);
    out->reproduce = reproduce(a, s, dev, template_name, op, opts);
    st = verify_attention(s, &run, opts, out, a, d);
    device_run_end(&run);
  }
  if (run.exact) out->sanitizer = found_nothing(a, opts);
  return st == ST_OK ? conclude(out) : st;
}

Status verify(Session *s, Device *dev, const char *template_name, const Params *given,
              const Problem *p, const VerifyOpts *opts, Verdict *out, Arena *a, Diag *d) {
  *out = (Verdict){0};
  const TemplateInfo *info;
  Operator *op = NULL;
  Status st = session_template(s, template_name, &info, d);
  if (st != ST_OK) return st;
  if (info->kind == KIND_CEILING) {
    st = ceiling_verify(s, dev, template_name, given, p, opts, out, a, d);
    if (sanitized(dev, opts)) out->sanitizer = found_nothing(a, opts);
    return st;
  }
  st = verify_load(s, dev, template_name, given, p, opts, &op, d);
  if (st == ST_OK) st = verify_loaded(s, dev, template_name, op, p, opts, out, a, d);
  operator_free(op);
  return st;
}

// ---- text --------------------------------------------------------------------------------------
static char *number(Arena *a, double x) { return arena_printf(a, isfinite(x) ? "%.9g" : "%g", x); }

static char *size(Arena *a, double x) { return isnan(x) ? "NaN" : arena_printf(a, "%.3g", x); }

// What was measured; nothing of a gate that compares no elements.
static char *errors_text(Arena *a, const GateResult *g) {
  if (!g->compared) return arena_strdup(a, "");
  char *text = arena_printf(a, "  worst error %s (allowed %.3g)", size(a, g->max_error),
                            g->max_allowed);
  if (isfinite(g->mean_allowed) && g->mean_allowed > 0)
    text = arena_printf(a, "%s, mean %s (allowed %.3g)", text, size(a, g->mean_error),
                        g->mean_allowed);
  if (g->lse_allowed > 0)
    text = arena_printf(a, "%s, LSE %s (allowed %.3g)", text, size(a, g->lse_error),
                        g->lse_allowed);
  return text;
}

static char *gate_text(Arena *a, const GateResult *g) {
  char *text = arena_printf(a, "  %-14s %s%s\n", g->name, g->passed ? "pass" : "FAIL",
                            errors_text(a, g));
  if (g->bad.found)
    text = arena_printf(a,
                        "%s      first bad element: %s batch %lld, head %lld, row %lld, column "
                        "%lld: expected %s, found %s\n",
                        text, g->bad.tensor, (long long)g->bad.batch, (long long)g->bad.head,
                        (long long)g->bad.row, (long long)g->bad.col, number(a, g->bad.expected),
                        number(a, g->bad.got));
  if (g->note) text = arena_printf(a, "%s      %s\n", text, g->note);
  return text;
}

// The names of gate *i and of those behind it that do not apply for the same reason; *i: the last.
static char *names_without(Arena *a, const Verdict *v, int *i) {
  char *names = arena_strdup(a, v->gate[*i].name);
  const char *why = v->gate[*i].why_not;
  while (*i + 1 < v->ngates && !v->gate[*i + 1].run && !strcmp(v->gate[*i + 1].why_not, why))
    names = arena_printf(a, "%s, %s", names, v->gate[++*i].name);
  return names;
}

int verdict_ran(const Verdict *v) {
  int n = 0;
  for (int i = 0; i < v->ngates; i++) n += v->gate[i].run;
  return n;
}

char *verdict_passed(Arena *a, const Verdict *v) {
  return arena_printf(a, "%d gates passed%s", verdict_ran(v),
                      v->sanitizer ? ", and the sanitizer" : "");
}

char *verdict_not_run(Arena *a, const Verdict *v) {
  char *text = arena_strdup(a, "");
  for (int i = 0; i < v->ngates; i++) {
    if (v->gate[i].run) continue;
    const char *why = v->gate[i].why_not, *names = names_without(a, v, &i);
    text = arena_printf(a, "%s%s%s (%s)", text, *text ? ", " : "", names, why);
  }
  return text;
}

char *verdict_text(Arena *a, const Verdict *v) {
  char *text = arena_strdup(a, "");
  for (int i = 0; i < v->ngates; i++) {
    if (v->gate[i].run) {
      text = arena_printf(a, "%s%s", text, gate_text(a, &v->gate[i]));
      continue;
    }
    const char *why = v->gate[i].why_not, *names = names_without(a, v, &i);
    text = arena_printf(a, "%s  %-14s not applicable: %s\n", text, names, why);
  }
  if (v->sanitizer)
    text = arena_printf(a, "%s  %-14s pass  %s\n", text, "sanitizer", v->sanitizer);
  if (v->note) text = arena_printf(a, "%s  %s\n", text, v->note);
  if (!v->passed && v->reproduce) text = arena_printf(a, "%s  reproduce: %s\n", text, v->reproduce);
  return text;
}
