#include "measure.h"

#include "dense.h"

static void begin(const MeasureOpts *o, const char *stage) {
  if (o->stage) o->stage(o->ctx, stage);
}

static Status time_variant(Session *s, Device *dev, Operator *op, const MeasureOpts *o,
                           Measurement *out, Arena *a, Diag *d) {
  Dense buffers = {0};
  begin(o, "load");
  Status st = operator_load(op, dev, d);
  if (!st) st = operator_plan(op, dev, &o->verify.plan, d);
  if (!st) st = dense_bind(dev, op, o->verify.seed, &buffers, d);
  begin(o, "time");
  if (!st) st = time_operator(s, dev, op, &o->time, &out->timing, d);
  if (!st) {
    out->id = arena_strdup(a, op->step[0].variant->id);
    out->hash = arena_strdup(a, op->step[0].variant->hash);
    out->regs = kernel_info(op->step[0].kernel)->regs;
    out->grid = op->step[0].grid[0];
    out->chunks = (int)problem_int(op->problem, "chunks", 0);
    out->by_bytes = op->step[0].variant->kind == KIND_DECODE;
    out->flops = problem_flops(op->problem);
    out->bytes = problem_kv_bytes(op->problem);
  }
  dense_free(dev, &buffers);
  return st;
}

static Status hold_against_roof(Session *s, Device *dev, Measurement *m, Diag *d) {
  Status st = ceiling_measure(s, dev, (uint64_t)m->bytes, &m->ceiling, d);
  if (st) return st;
  double us = m->timing.median_us; // 1 GB/s = 1e3 bytes a microsecond
  m->rate = us > 0 ? (m->by_bytes ? m->bytes : m->flops) / us * 1e-3 : 0;
  m->roof = m->by_bytes ? m->ceiling.read_gbs : m->ceiling.fma_gflops;
  return ST_OK;
}

Status measure_variant(Session *s, Device *dev, const char *template_name, const Params *given,
                       const Problem *p, const MeasureOpts *opts, Measurement *out, Arena *a,
                       Diag *d) {
  *out = (Measurement){0};
  begin(opts, "verify");
  Status st = verify(s, dev, template_name, given, p, &opts->verify, &out->before, a, d);
  if (st) return st;
  Operator *op = NULL;
  st = operator_make(s, template_name, given, p, &opts->verify.plan, &op, d);
  if (!st) st = time_variant(s, dev, op, opts, out, a, d);
  operator_free(op);
  if (st) return st;
  begin(opts, "verify again");
  VerifyOpts again = opts->verify; // a kernel that drifts is a wrong kernel
  again.quick = true;
  again.save_dir = NULL;
  st = verify(s, dev, template_name, given, p, &again, &out->after, a, d);
  out->verified = !st;
  if (st) return st;
  begin(opts, "ceiling");
  return hold_against_roof(s, dev, out, d);
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
