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
    count_work(op, out);
    ceiling_pipe(op->step[0].variant->ptx->text, &out->pipe, &out->pipe_dtype);
  }
  dense_free(dev, &buffers);
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
    st = ceiling_tensor(s, dev, m->pipe, m->pipe_dtype, &m->roof, d);
    m->roof_of = arena_printf(a, "%s dtype=%s", m->pipe, m->pipe_dtype);
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

Status measure_variant(Session *s, Device *dev, const char *template_name, const Params *given,
                       const Problem *p, const MeasureOpts *opts, Measurement *out, Arena *a,
                       Diag *d) {
  *out = (Measurement){0};
  const TemplateInfo *info;
  if (session_template(s, template_name, &info, d) != ST_OK) return ST_INPUT;
  if (info->kind == KIND_CEILING) p = ceiling_problem(a, p, dev);
  begin(opts, "verify");
  const Problem *check = measure_class(a, info->kind, p);
  Status st = verify(s, dev, template_name, given, check, &opts->verify, &out->before, a, d);
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
  st = verify(s, dev, template_name, given, check, &again, &out->after, a, d);
  out->verified = !st;
  if (st) return st;
  begin(opts, "ceiling");
  return hold_against_roof(s, dev, out, a, d);
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
