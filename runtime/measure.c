#include "measure.h"

#include <stdlib.h>

#include "counters.h"
#include "dense.h"

static void begin(const MeasureOpts *o, const char *stage) {
  if (o->stage) o->stage(o->ctx, stage);
}

// A ceiling's own work: words read once, or read and written, or multiply-adds (ceiling_*.ptx.in).
static void ceiling_work(const Operator *op, Measurement *m) {
  const Problem *p = op->problem;
  double words = problem_float(p, "words", 0);
  m->by_bytes = operator_arg(op, "src") != NULL;
  m->copies = operator_arg(op, "dst") != NULL;
  m->bytes = !m->by_bytes ? 0 : m->copies ? 8 * words : 4 * words;
  if (m->by_bytes) return;
  m->flops = problem_float(p, "threads", 0) * ceiling_thread_flops(op);
}

static void count_work(const Operator *op, Measurement *m) {
  TemplateKind kind = op->step[0].variant->kind;
  if (kind == KIND_CEILING) {
    ceiling_work(op, m);
    return;
  }
  m->by_bytes = kind == KIND_DECODE;
  m->flops = problem_flops(op->problem);
  m->bytes = problem_kv_bytes(op->problem);
}

// `op` is loaded and planned.
static Status time_variant(Session *s, Device *dev, Operator *op, const MeasureOpts *o,
                           Measurement *out, Arena *a, Diag *d) {
  Dense buffers = {0};
  begin(o, "time");
  SpentOn was = spent_on(&out->spent, SPENT_TIME);
  Status st = dense_bind(dev, op, o->verify.seed, &buffers, d);
  if (!st) st = time_operator(s, dev, op, &o->time, &out->timing, d);
  if (!st) {
    out->id = arena_strdup(a, op->step[0].variant->id);
    out->hash = arena_strdup(a, op->step[0].variant->hash);
    out->regs = kernel_info(op->step[0].kernel)->regs;
    out->grid = op->step[0].grid[0];
    out->chunks = (int)problem_int(op->problem, "chunks", 0);
    count_work(op, out);
    ceiling_pipe(op->step[0].variant->ptx->text, &out->pipe, &out->pipe_dtype);
  }
  dense_free(dev, &buffers);
  spent_on(&out->spent, was);
  return st;
}

static Status hold_against_roof(Session *s, Device *dev, Measurement *m, Arena *a, Diag *d) {
  uint64_t span = (uint64_t)(m->copies ? m->bytes / 2 : m->bytes); // of one buffer
  Status st = ceiling_measure(s, dev, span, &m->ceiling, d);
  if (st) return st;
  double us = m->timing.median_us; // 1 GB/s = 1e3 bytes a microsecond
  m->rate = us > 0 ? (m->by_bytes ? m->bytes : m->flops) / us * 1e-3 : 0;
  m->roof = m->copies     ? m->ceiling.copy_gbs
            : m->by_bytes ? m->ceiling.read_gbs
                          : m->ceiling.fma_gflops;
  m->roof_of = m->copies ? "copy" : m->by_bytes ? "read" : flop_kind_name[FLOP_F32];
  if (m->timing.modelled && !m->by_bytes) { // of the pipe that the variant uses
    m->roof = roof_h200.gflops[m->timing.flop];
    m->roof_of = flop_kind_name[m->timing.flop];
  } else if (m->pipe && !m->by_bytes) {
    Pipe p = {.params = ""};
    st = ceiling_tensor(s, dev, m->pipe, m->pipe_dtype, &p, d);
    if (st) return st;
    m->roof = p.gflops;
    m->roof_of = arena_printf(a, "%s dtype=%s %s", m->pipe, m->pipe_dtype, p.params);
  }
  return st;
}

// What is verified for a large prefill problem: one of its class, with fewer sequences and heads.
// It takes the same paths as long as every block still has more than one item: 2^15 query rows are
// 170 tiles of 192.  (Chunks of decode depend on batch and heads; those problems are verified as
// they are, and so are lists of lengths.)
#define CLASS_ROWS 0x1p15

Problem *measure_class(Arena *a, TemplateKind kind, const Problem *p) {
  Problem *c = problem_copy(a, p);
  if (kind != KIND_PREFILL || problem_value(p, "seqlens_q") || problem_value(p, "seqlens_k"))
    return c;
  int64_t b = problem_int(p, "batch", 1), hq = problem_int(p, "heads_q", 1);
  int64_t hkv = problem_int(p, "heads_kv", hq), group = hq / hkv;
  double rows = (double)(b * hq) * problem_float(p, "seqlen_q", 1);
  for (; rows >= 2 * CLASS_ROWS && b > 1; b /= 2) rows = rows / (double)b * (double)(b / 2);
  for (; rows >= 2 * CLASS_ROWS && hkv > 1; hkv /= 2) rows = rows / (double)hkv * (double)(hkv / 2);
  problem_set_int(c, "batch", b);
  problem_set_int(c, "heads_kv", hkv);
  problem_set_int(c, "heads_q", hkv * group);
  return c;
}

// A ceiling is verified on kernels of its own.
static Status measure_ceiling(Session *s, Device *dev, const char *template_name,
                              const Params *given, const Problem *p, const MeasureOpts *opts,
                              Measurement *out, Arena *a, Diag *d) {
  Operator *op = NULL;
  p = ceiling_problem(a, p, dev);
  begin(opts, "verify");
  Status st = verify(s, dev, template_name, given, p, &opts->verify, &out->before, a, d);
  if (st) return st;
  begin(opts, "load");
  SpentOn was = spent_on(&out->spent, SPENT_LOAD);
  st = operator_make(s, template_name, given, p, &opts->verify.plan, &op, d);
  if (!st) st = operator_load(op, dev, d);
  if (!st) st = operator_plan(op, dev, &opts->verify.plan, d);
  spent_on(&out->spent, was);
  if (!st) st = time_variant(s, dev, op, opts, out, a, d);
  operator_free(op);
  if (st) return st;
  begin(opts, "verify again");
  return verify(s, dev, template_name, given, p, &opts->verify, &out->after, a, d);
}

// The timed problem has the parameters of the verified one: the same kernels run it.
static Status plan_timed(Operator *op, Device *dev, const TemplateInfo *info, const Problem *p,
                         const PlanOpts *plan, Diag *d) {
  Params own = {0};
  const Params *has = &op->step[0].variant->params;
  for (int i = 0; i < has->n; i++) params_set(op->arena, &own, has->v[i].name, has->v[i].value);
  Status st = problem_fix_params(op->arena, p, info, &own, d);
  return st ? st : operator_replan(op, p, dev, plan, d);
}

// One load of the kernels for the gates before, the timed loop and the gates after: what is timed
// is what was verified, to the module.
static Status measure_loaded(Session *s, Device *dev, const TemplateInfo *info,
                             const Params *given, const Problem *p, const MeasureOpts *opts,
                             Measurement *out, Arena *a, Diag *d) {
  const Problem *check = measure_class(a, info->kind, p);
  VerifyOpts verify = opts->verify;
  verify.spent = &out->spent;
  Operator *op = NULL;
  begin(opts, "load");
  Status st = verify_load(s, dev, info->name, given, check, &verify, &op, d);
  if (st) return st;
  begin(opts, "verify");
  st = verify_loaded(s, dev, info->name, op, check, &verify, &out->before, a, d);
  if (!st) st = plan_timed(op, dev, info, p, &verify.plan, d);
  if (!st) st = time_variant(s, dev, op, opts, out, a, d);
  if (!st) {
    begin(opts, "verify again");
    verify.quick = true; // a kernel that drifts is a wrong kernel
    verify.save_dir = NULL;
    st = verify_loaded(s, dev, info->name, op, check, &verify, &out->after, a, d);
  }
  operator_free(op);
  return st;
}

Status measure_variant(Session *s, Device *dev, const char *template_name, const Params *given,
                       const Problem *p, const MeasureOpts *opts, Measurement *out, Arena *a,
                       Diag *d) {
  *out = (Measurement){0};
  const TemplateInfo *info;
  if (session_template(s, template_name, &info, d) != ST_OK) return ST_INPUT;
  spent_on(&out->spent, SPENT_OTHER);
  Status st = info->kind == KIND_CEILING
                  ? measure_ceiling(s, dev, template_name, given, p, opts, out, a, d)
                  : measure_loaded(s, dev, info, given, p, opts, out, a, d);
  out->verified = !st;
  if (st) return st;
  begin(opts, "ceiling");
  spent_on(&out->spent, SPENT_CEILING);
  st = hold_against_roof(s, dev, out, a, d);
  spent_on(&out->spent, SPENT_OTHER);
  return st;
}

const char *measure_failure(const Measurement *m, Arena *a) {
  const Verdict *both[] = {&m->before, &m->after};
  for (int v = 0; v < 2; v++)
    for (int i = 0; i < both[v]->ngates; i++) {
      const GateResult *g = &both[v]->gate[i];
      if (!g->run || g->passed) continue;
      const char *when = v ? "after the timed loop, " : "";
      if (g->note) return arena_printf(a, "%sgate %s: %s", when, g->name, g->note);
      return arena_printf(a, "%sgate %s: error %.3g, %.3g allowed", when, g->name, g->max_error,
                          g->max_allowed);
    }
  return "verification failed";
}
