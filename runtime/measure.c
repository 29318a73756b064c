#include "measure.h"

#include "dense.h"

static Status time_variant(Session *s, Device *dev, Operator *op, const MeasureOpts *o,
                           Measurement *out, Arena *a, Diag *d) {
  Dense buffers = {0};
  Status st = operator_load(op, dev, d);
  if (!st) st = operator_plan(op, dev, &o->verify.plan, d);
  if (!st) st = dense_bind(dev, op, o->verify.seed, &buffers, d);
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
  Status st = verify(s, dev, template_name, given, p, &opts->verify, &out->before, a, d);
  if (st) return st;
  Operator *op = NULL;
  st = operator_make(s, template_name, given, p, &opts->verify.plan, &op, d);
  if (!st) st = time_variant(s, dev, op, opts, out, a, d);
  operator_free(op);
  if (st) return st;
  VerifyOpts again = opts->verify; // a kernel that drifts is a wrong kernel
  again.quick = true;
  again.save_dir = NULL;
  st = verify(s, dev, template_name, given, p, &again, &out->after, a, d);
  out->verified = !st;
  return st ? st : hold_against_roof(s, dev, out, d);
}
