// Verification of the ceilings: exact answers, whatever the grid.
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "timer.h"
#include "verify_data.h"
#include "verify_run.h"

typedef struct CeilingRun {
  Device *dev;
  Operator *op;
  int64_t in_words, out_words;
  uint32_t *in, *out; // host copies
  DevPtr in_at, out_at;
} CeilingRun;

static Status bind_words(CeilingRun *r, const char *name, int64_t words, DevPtr at, Diag *d) {
  const ArgDecl *arg = operator_arg(r->op, name);
  if (!arg) return ST_OK;
  Tensor t = {.dtype = arg->dtype, .rank = 1, .shape = {words}, .stride = {1}, .data = at};
  return operator_bind(r->op, name, &t, d);
}

// The output's Arg, under whichever of its names the template has.
static const char *output_name(const Operator *op) {
  const char *const names[] = {"sums", "dst", "out"};
  for (int i = 0; i < 3; i++)
    if (operator_arg(op, names[i])) return names[i];
  return NULL;
}

static Status allocate(CeilingRun *r, Diag *d) {
  if (r->in_words > INT64_MAX / 16)
    return diag_fail(d, ST_INPUT, "words=%lld: their bytes do not fit 64 bits",
                     (long long)r->in_words);
  size_t in = 4 * (size_t)r->in_words + 4, out = 4 * (size_t)r->out_words + 4;
  Status st = check_memory(r->dev, in + out, d);
  if (st != ST_OK) return st;
  r->in = malloc(in);
  r->out = malloc(out);
  if (!r->in || !r->out) return diag_fail(d, ST_INPUT, "not enough host memory for %zu bytes", in);
  for (int64_t i = 0; i < r->in_words; i++) r->in[i] = (uint32_t)random_bits(3, (uint64_t)i);
  st = device_alloc(r->dev, in, "src", &r->in_at, d);
  if (st == ST_OK) st = device_alloc(r->dev, out, "result", &r->out_at, d);
  return st == ST_OK ? device_write(r->dev, r->in_at, r->in, 4 * (uint64_t)r->in_words, d) : st;
}

// ---- what must come out ------------------------------------------------------------------------
static void bad(GateResult *g, const char *what, int64_t at, double expected, double got) {
  g->passed = false;
  if (g->bad.found) return;
  g->bad = (Mismatch){.found = true, .tensor = what, .col = at, .expected = expected, .got = got};
}

static void check_result(const CeilingRun *r, uint32_t grid, GateResult *g) {
  const char *name = output_name(r->op);
  if (!strcmp(name, "sums")) {
    uint32_t want = 0, got = 0;
    for (int64_t i = 0; i < r->in_words; i++) want += r->in[i];
    for (uint32_t i = 0; i < grid; i++) got += r->out[i];
    g->compared = grid;
    if (want != got) bad(g, name, 0, want, got);
  } else if (!strcmp(name, "dst")) {
    g->compared = r->out_words;
    for (int64_t i = 0; i < r->out_words; i++)
      if (r->out[i] != r->in[i]) bad(g, name, i, r->in[i], r->out[i]);
  } else { // exact in fp32
    const float *got = (const float *)(const void *)r->out;
    int64_t at = ceiling_wrong(r->op, got, r->out_words);
    g->compared = r->out_words;
    if (at < r->out_words) bad(g, name, at, ceiling_thread_sum(r->op), got[at]);
  }
}

// ---- running -----------------------------------------------------------------------------------
static Status run_grid(CeilingRun *r, uint32_t given, GateResult *g, Diag *d) {
  Operator *op = r->op;
  PlanOpts opts = {.grid = given};
  Status st = operator_plan(op, r->dev, &opts, d);
  uint32_t grid = op->step[0].grid[0];
  bool sums = operator_arg(op, "sums") != NULL;
  if (st == ST_OK) st = bind_words(r, "src", r->in_words, r->in_at, d);
  if (st == ST_OK) st = bind_words(r, output_name(op), sums ? grid : r->out_words, r->out_at, d);
  if (st == ST_OK) st = device_fill32(r->dev, r->out_at, 0xfff1fff1, 4 * (uint64_t)r->out_words, d);
  if (st == ST_OK) st = operator_launch(op, r->dev, d);
  if (st == ST_OK) st = device_sync(r->dev, d);
  if (st == ST_OK) st = device_read(r->dev, r->out, r->out_at, 4 * (uint64_t)r->out_words, d);
  if (st == ST_OK) check_result(r, grid, g);
  return st;
}

Problem *ceiling_problem(Arena *a, const Problem *p, const Device *dev) {
  enum { GPU_WORDS = (1 << 28) + 77, GPU_ROUNDS = 256 }; // 1 GiB and a tail; about 1 ms
  const DeviceInfo *info = device_info(dev);
  Problem *c = problem_copy(a, p);
  int64_t most = (int64_t)(info->memory_free / 16);
  int64_t words = info->is_sim ? CEILING_WORDS : most < GPU_WORDS ? most : GPU_WORDS;
  if (!problem_gives(c, "words")) problem_set_int(c, "words", words);
  if (info->is_sim) return c; // else the small sizes that operator_make takes
  if (!problem_gives(c, "rounds")) problem_set_int(c, "rounds", GPU_ROUNDS);
  if (!problem_gives(c, "threads"))
    problem_set_int(c, "threads", (int64_t)info->sm_count * info->threads_per_sm);
  return c;
}

static Status run_all(CeilingRun *r, uint32_t grid, Verdict *out, Diag *d) {
  const char *const names[] = {"1 block", "2 blocks", grid ? "--grid" : "plan's grid"};
  Status st = allocate(r, d);
  out->passed = st == ST_OK;
  for (uint32_t i = 0; i < 3 && st == ST_OK; i++) {
    GateResult *g = &out->gate[out->ngates++];
    *g = (GateResult){.name = names[i], .run = true, .passed = true};
    st = run_grid(r, i < 2 ? i + 1 : grid, g, d);
    out->passed &= st == ST_OK && g->passed;
  }
  return st;
}

// Words of the output: as many as the largest of the grids needs.
static int64_t result_words(const Operator *op) {
  int64_t blocks = op->step[0].grid[0];
  if (operator_arg(op, "sums")) return blocks > 2 ? blocks : 2;
  return problem_int(op->problem, operator_arg(op, "dst") ? "words" : "threads", 0);
}

static const char *reproduce(Arena *a, const Session *s, const Operator *op, const Device *dev,
                             const VerifyOpts *opts) {
  char *text = reproduce_begin(a, opts, op->step[0].variant->id);
  text = arena_printf(a, "%s --problem words=%lld --device %s", text,
                      (long long)problem_int(op->problem, "words", 0), device_info(dev)->id);
  if (opts->grid) text = arena_printf(a, "%s --grid %u", text, opts->grid);
  return reproduce_end(a, s, opts, text);
}

Status ceiling_verify(Session *s, Device *dev, const char *template_name, const Params *given,
                      const Problem *p, const VerifyOpts *opts, Verdict *out, Arena *a, Diag *d) {
  *out = (Verdict){0};
  CeilingRun r = {.dev = dev};
  PlanOpts plan = {.build = opts->build};
  Status st = operator_make(s, template_name, given, ceiling_problem(a, p, dev), &plan, &r.op, d);
  if (st != ST_OK) return st;
  out->reproduce = reproduce(a, s, r.op, dev, opts);
  if (!output_name(r.op))
    st = diag_fail(d, ST_INPUT, "%s has none of the outputs sums, dst and out", template_name);
  if (st == ST_OK) st = operator_load(r.op, dev, d);
  plan.grid = opts->grid;
  if (st == ST_OK) st = operator_plan(r.op, dev, &plan, d);
  if (st == ST_OK) {
    r.in_words = problem_int(r.op->problem, "words", 0);
    r.out_words = result_words(r.op);
    st = run_all(&r, opts->grid, out, d);
  }
  if (r.in_at) device_free(dev, r.in_at);
  if (r.out_at) device_free(dev, r.out_at);
  free(r.in);
  free(r.out);
  operator_free(r.op);
  if (st != ST_OK) return st;
  return out->passed ? ST_OK : ST_FAILED;
}
