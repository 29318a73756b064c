// Ceilings that compute: multiply-adds, and products of the tensor cores, each checked exactly.
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *template_name, *params;
} candidates[] = {
    {"ceiling_fma", "chains=8 block=256 steps=32"},
    {"ceiling_fma", "chains=16 block=256 steps=8"},
    {"ceiling_fma", "chains=4 block=512 steps=32"},
    {"ceiling_mma", "chains=8 block=256 steps=8"},
    {"ceiling_mma", "chains=4 block=512 steps=8"},
    {"ceiling_mma", "chains=8 block=512 steps=8"},
    {"ceiling_wgmma", "block=256 steps=8"},
    {"ceiling_wgmma", "block=384 steps=8"},
    {"ceiling_wgmma", "block=256 steps=16"},
};

double ceiling_thread_flops(const Operator *op) {
  return problem_float(op->problem, "rounds", 0) * (double)op->step[0].variant->ceiling.flops;
}

double ceiling_thread_sum(const Operator *op) {
  return ceiling_thread_flops(op) / 2 + (double)op->step[0].variant->ceiling.first;
}

int64_t ceiling_wrong(const Operator *op, const float *out, int64_t n) {
  double want = ceiling_thread_sum(op);
  int64_t i = 0;
  while (i < n && out[i] == want) i++;
  return i;
}

// ---- one variant -------------------------------------------------------------------------------
typedef struct Products {
  Device *dev;
  const Problem *problem; // of the device: threads, rounds
  Operator *op;
  int64_t threads;
  DevPtr out;
  float *got;
} Products;

static Status make(Products *p, Session *s, const char *name, const Params *params, Diag *d) {
  Status st = operator_make(s, name, params, p->problem, NULL, &p->op, d);
  if (!st) st = operator_load(p->op, p->dev, d);
  if (!st) st = operator_plan(p->op, p->dev, NULL, d);
  Tensor t = {.dtype = DT_F32, .rank = 1, .shape = {p->threads}, .stride = {1}, .data = p->out};
  return st ? st : operator_bind(p->op, "out", &t, d);
}

static Status check(Products *p, const char *name, Diag *d) {
  Status st = device_sync(p->dev, d);
  if (!st) st = device_read(p->dev, p->got, p->out, 4 * (uint64_t)p->threads, d);
  int64_t at = st ? p->threads : ceiling_wrong(p->op, p->got, p->threads);
  if (at == p->threads) return st;
  return diag_fail(d, ST_FAILED, "%s: out[%lld] is %.9g, not %.9g", name, (long long)at,
                   (double)p->got[at], ceiling_thread_sum(p->op));
}

static Status try_one(Products *p, Session *s, const char *name, const Params *params,
                      double *rate, Diag *d) {
  Timing t = {0};
  p->op = NULL;
  Status st = make(p, s, name, params, d);
  if (!st) st = device_fill32(p->dev, p->out, 0xffffffff, 4 * (uint64_t)p->threads, d);
  if (!st) st = time_operator(s, p->dev, p->op, &(TimeOpts){.warmup = 2, .samples = 9}, &t, d);
  if (!st) st = check(p, name, d);
  if (!st) *rate = ceiling_thread_flops(p->op) * (double)p->threads / t.median_us * 1e-3;
  operator_free(p->op);
  return st;
}

Status ceiling_products(Session *s, Device *dev, const char *name, const char *dtype, Pipe *best,
                        Diag *d) {
  Arena *a = arena_new();
  Products p = {.dev = dev};
  *best = (Pipe){.template_name = name, .dtype = dtype};
  p.problem = ceiling_problem(a, &(Problem){.arena = a, .name = ""}, dev);
  p.threads = problem_int(p.problem, "threads", CEILING_THREADS);
  p.got = malloc(4 * (size_t)p.threads);
  Status st = p.got ? ST_OK : diag_fail(d, ST_DEVICE, "out of host memory");
  if (!st) st = device_alloc(dev, 4 * (uint64_t)p.threads, "a ceiling's sums", &p.out, d);
  for (size_t i = 0; i < sizeof candidates / sizeof *candidates && !st; i++) {
    if (strcmp(candidates[i].template_name, name)) continue;
    if (device_info(dev)->is_sim && best->gflops > 0) continue; // run and checked, not timed
    Params params = {0};
    double rate = 0;
    st = ceiling_params(a, candidates[i].params, &params, d);
    if (!st && dtype) params_set(a, &params, "dtype", dtype);
    if (!st) st = try_one(&p, s, name, &params, &rate, d);
    if (rate > best->gflops) best->gflops = rate, best->params = candidates[i].params;
  }
  if (p.out) device_free(dev, p.out);
  free(p.got);
  arena_free(a);
  return st;
}

// ---- the pipe of a variant ---------------------------------------------------------------------
bool ceiling_pipe(const char *ptx, const char **template_name, const char **dtype) {
  static const char *const kinds[][2] = {{".f16.f16", "f16"},   {".bf16.bf16", "bf16"},
                                         {".tf32.tf32", "f32"}, {".e4m3.e4m3", "e4m3"},
                                         {".e5m2.e5m2", "e4m3"}};
  const char *wg = strstr(ptx, "wgmma.mma_async."), *at = wg ? wg : strstr(ptx, "mma.sync.");
  if (!at) return false;
  size_t n = strcspn(at, " \t\n");
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    const char *found = strstr(at, kinds[k][0]);
    if (!found || found >= at + n) continue;
    *template_name = wg ? "ceiling_wgmma" : "ceiling_mma";
    *dtype = kinds[k][1];
    return true;
  }
  return false;
}

Status ceiling_tensor(Session *s, Device *dev, const char *template_name, const char *dtype,
                      Pipe *out, Diag *d) {
  Bench *b = bench_of(dev);
  if (!b) return diag_fail(d, ST_DEVICE, "out of host memory");
  for (int i = 0; i < b->npipes; i++)
    if (!strcmp(b->pipe[i].template_name, template_name) && !strcmp(b->pipe[i].dtype, dtype))
      return *out = b->pipe[i], ST_OK;
  Status st = ceiling_products(s, dev, template_name, dtype, out, d);
  if (!st && b->npipes < BENCH_MAX_PIPES) b->pipe[b->npipes++] = *out;
  return st;
}
