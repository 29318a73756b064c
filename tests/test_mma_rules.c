// What prefill_mma makes of scores (windows, soft cap, ALiBi, sinks, values of another width), on
// the interpreter, against a small fp64 reference of this test's own.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan.h"

typedef struct Context {
  Diag *d;
  Session *session;
  Device *dev;
} Context;

static int open_context(void **state) {
  Context *c = test_calloc(1, sizeof *c);
  c->d = diag_new();
  c->session = session_open(NULL, c->d);
  if (!c->session || device_open("sim", &c->dev, c->d) != ST_OK) fail_msg("%s", diag_text(c->d));
  *state = c;
  return 0;
}

static int close_context(void **state) {
  Context *c = *state;
  device_close(c->dev);
  session_close(c->session);
  diag_free(c->d);
  test_free(c);
  return 0;
}

static void ok(Context *c, Status st) {
  if (st != ST_OK) fail_msg("%s", diag_text(c->d));
}

// One case; a rule that is off has its neutral value.
typedef struct Rules {
  const char *params;
  int sq, sk, causal, d, dv;
  int left, right; // negative: unbounded
  double cap;      // 0: none
  bool alibi, sinks;
  const char *on; // NULL: prefill_mma
} Rules;

enum { BATCH = 2, HEADS = 4, GROUP = 2 };
static double slope_of(int b, int h) { return 0.03 * (h + 1) - 0.02 * b; }
static double sink_of(int h) { return h == 3 ? -INFINITY : 0.7 * h; }

// ---- tensors: dense, of random values below 1 ---------------------------------------------------
typedef struct Dense {
  Tensor t;
  uint8_t *host;
} Dense;

static uint64_t bytes_of(const Dense *x) {
  uint64_t n = (uint64_t)dtype_bytes(x->t.dtype);
  for (int i = 0; i < x->t.rank; i++) n *= (uint64_t)x->t.shape[i];
  return n;
}

static Dense dense(Dtype dtype, int rank, const int64_t *shape) {
  Dense x = {.t = {.dtype = dtype, .rank = rank}};
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; i--) {
    x.t.shape[i] = shape[i];
    x.t.stride[i] = stride;
    stride *= shape[i];
  }
  x.host = malloc(bytes_of(&x) + 1);
  memset(x.host, 0xff, bytes_of(&x)); // NaN
  return x;
}

static void *at(const Dense *x, int64_t i) { return x->host + i * dtype_bytes(x->t.dtype); }
static double get(const Dense *x, int64_t i) { return dtype_load(x->t.dtype, at(x, i)); }

static void fill(Dense *x, uint32_t seed, double scale) {
  int64_t n = (int64_t)(bytes_of(x) / (uint64_t)dtype_bytes(x->t.dtype));
  for (int64_t i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    dtype_store(x->t.dtype, at(x, i), scale * ((double)(seed >> 8) / 0x1p23 - 1));
  }
}

static void bind(Context *c, Operator *op, const char *name, Dense *x) {
  DevPtr p;
  ok(c, device_alloc(c->dev, bytes_of(x) + 16, name, &p, c->d));
  ok(c, device_write(c->dev, p, x->host, bytes_of(x), c->d));
  x->t.data = p;
  ok(c, operator_bind(op, name, &x->t, c->d));
}

// ---- the rules in fp64 --------------------------------------------------------------------------
static bool visible(const Rules *r, int64_t i, int64_t j) {
  int64_t own = i + r->sk - r->sq;
  if (r->causal && j > own) return false;
  if (!r->causal && r->right >= 0 && j > own + r->right) return false;
  return r->left < 0 || j >= own - r->left;
}

static double score(const Rules *r, const Dense *q, const Dense *k, int b, int h, int i, int j) {
  double s = 0;
  for (int e = 0; e < r->d; e++)
    s += get(q, ((int64_t)(b * r->sq + i) * HEADS + h) * r->d + e) *
         get(k, ((int64_t)(b * r->sk + j) * (HEADS / GROUP) + h / GROUP) * r->d + e);
  s *= 1 / sqrt(r->d);
  if (r->cap) s = r->cap * tanh(s / r->cap);
  if (r->alibi) s -= slope_of(b, h) * fabs((double)(i + r->sk - r->sq - j));
  return s;
}

static void check_row(const Rules *r, const Dense *t, int b, int h, int i) {
  double *w = malloc(sizeof *w * (size_t)(r->sk + 1)), max = r->sinks ? sink_of(h) : -INFINITY;
  for (int j = 0; j < r->sk; j++) {
    w[j] = visible(r, i, j) ? score(r, &t[0], &t[1], b, h, i, j) : -INFINITY;
    max = fmax(max, w[j]);
  }
  double sum = r->sinks ? exp(sink_of(h) - max) : 0;
  for (int j = 0; j < r->sk; j++) sum += w[j] = isinf(w[j]) ? 0 : exp(w[j] - max);
  for (int e = 0; e < r->dv; e++) {
    double o = 0;
    for (int j = 0; j < r->sk; j++)
      o += w[j] * get(&t[2], ((int64_t)(b * r->sk + j) * (HEADS / GROUP) + h / GROUP) * r->dv + e);
    o = sum > 0 ? o / sum : 0;
    double got = get(&t[3], ((int64_t)(b * r->sq + i) * HEADS + h) * r->dv + e);
    // values are below 1; a weight is off by 2^-11 of itself at most, the result by 2^-12
    if (!(fabs(got - o) <= 0x1p-11 + 0x1p-12))
      fail_msg("%s: o[b=%d i=%d h=%d e=%d] is %g, not %g", r->params, b, i, h, e, got, o);
  }
  double lse = sum > 0 ? max + log(sum) : -INFINITY;
  double got = get(&t[4], (int64_t)(b * HEADS + h) * r->sq + i);
  if (!(got == lse || fabs(got - lse) <= 2e-5))
    fail_msg("%s: lse[b=%d h=%d i=%d] is %.9g, not %.9g", r->params, b, h, i, got, lse);
  free(w);
}

// ---- running ------------------------------------------------------------------------------------
static Operator *make(Context *c, Arena *a, const Rules *r) {
  Problem *p;
  Params given = {0};
  Operator *op;
  ok(c, problem_parse(a,
                      arena_printf(a, "b=%d,hq=%d,hkv=%d,sq=%d,sk=%d,d=%d,dtype=f16,causal=%d",
                                   BATCH, HEADS, HEADS / GROUP, r->sq, r->sk, r->d, r->causal),
                      &p, c->d));
  problem_set_int(p, "window_left", r->left);
  problem_set_int(p, "window_right", r->right);
  problem_set_float(p, "softcap", r->cap);
  char *rest = arena_strdup(a, r->params);
  for (char *word; (word = strtok_r(rest, " ", &rest));) ok(c, params_parse(a, &given, word, c->d));
  ok(c, operator_make(c->session, r->on ? r->on : "prefill_mma", &given, p, NULL, &op, c->d));
  ok(c, operator_load(op, c->dev, c->d));
  return op;
}

static void bind_rules(Context *c, Operator *op, const Rules *r, Dense *slopes, Dense *sinks) {
  *slopes = dense(DT_F32, 2, (int64_t[]){BATCH, HEADS});
  *sinks = dense(DT_F32, 1, (int64_t[]){HEADS});
  for (int b = 0; b < BATCH; b++)
    for (int h = 0; h < HEADS; h++) dtype_store(DT_F32, at(slopes, b * HEADS + h), slope_of(b, h));
  for (int h = 0; h < HEADS; h++) dtype_store(DT_F32, at(sinks, h), sink_of(h));
  if (r->alibi) bind(c, op, "alibi_slopes", slopes);
  if (r->sinks) bind(c, op, "sinks", sinks);
}

static void run(Context *c, const Rules *r) {
  Arena *a = arena_new();
  Operator *op = make(c, a, r);
  Dense t[] = {dense(DT_F16, 4, (int64_t[]){BATCH, r->sq, HEADS, r->d}),
               dense(DT_F16, 4, (int64_t[]){BATCH, r->sk, HEADS / GROUP, r->d}),
               dense(DT_F16, 4, (int64_t[]){BATCH, r->sk, HEADS / GROUP, r->dv}),
               dense(DT_F16, 4, (int64_t[]){BATCH, r->sq, HEADS, r->dv}),
               dense(DT_F32, 3, (int64_t[]){BATCH, HEADS, r->sq})};
  static const char *const names[] = {"q", "k", "v", "o", "lse"};
  for (int i = 0; i < 3; i++) fill(&t[i], 7u + (uint32_t)i, i == 0 ? 8 : 1);
  for (int i = 0; i < 5; i++) bind(c, op, names[i], &t[i]);
  Dense extra[2];
  bind_rules(c, op, r, &extra[0], &extra[1]);
  DevPtr work = 0;
  if (op->workspace_bytes) {
    ok(c, device_alloc(c->dev, op->workspace_bytes, "workspace", &work, c->d));
    ok(c, device_fill32(c->dev, work, 0, op->workspace_bytes, c->d));
    ok(c, operator_bind_workspace(op, work, op->workspace_bytes, c->d));
  }
  ok(c, operator_plan(op, c->dev, NULL, c->d));
  ok(c, operator_launch(op, c->dev, c->d));
  ok(c, device_sync(c->dev, c->d));
  for (int i = 3; i < 5; i++)
    ok(c, device_read(c->dev, t[i].host, t[i].t.data, bytes_of(&t[i]), c->d));
  for (int b = 0; b < BATCH; b++)
    for (int h = 0; h < HEADS; h++)
      for (int i = 0; i < r->sq; i++) check_row(r, t, b, h, i);
  operator_free(op);
  if (work) device_free(c->dev, work);
  for (int i = 0; i < 5; i++) device_free(c->dev, t[i].t.data), free(t[i].host);
  for (int i = 0; i < 2; i++) {
    if (extra[i].t.data) device_free(c->dev, extra[i].t.data);
    free(extra[i].host);
  }
  arena_free(a);
}

// ---- cases --------------------------------------------------------------------------------------
#define SMALL " tile_q=32 tile_k=16 warps=2"

static void windows(void **state) {
  // left, right; whole tiles within, none within, rows without a key, more queries than keys
  static const int sides[][4] = {
      {0, 0, 50, 70},   {20, 0, 50, 70},        {60, 5, 70, 90},
      {-1, 7, 50, 70},  {33, -1, 50, 70},       {-1, -1, 50, 70},
      {5, 3, 90, 30},   {40, 40, 33, 120},      {1 << 30, 1 << 30, 20, 50},
      {3, -1, 100, 20}, {2147483647, 0, 40, 60}};
  for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
    for (int stages = 1; stages <= 2; stages++) {
      const int *s = sides[i];
      run(*state, &(Rules){stages == 1 ? "window=1 stages=1" SMALL : "window=1 stages=2" SMALL,
                           s[2], s[3], i % 3 == 1, 64, 64, s[0], s[1], .cap = 0});
      run(*state, &(Rules){"window=1 stages=3" SMALL, s[2], s[3], i % 3 != 1, 64, 64, s[0], s[1],
                           .cap = 0});
    }
}

static void soft_cap(void **state) {
  run(*state, &(Rules){"softcap=1" SMALL, 40, 70, 0, 64, 64, -1, -1, .cap = 3});
  run(*state, &(Rules){"softcap=1", 40, 70, 1, 64, 64, -1, -1, .cap = 30});
}

static void alibi(void **state) {
  run(*state, &(Rules){"alibi=1" SMALL, 40, 70, 0, 64, 64, -1, -1, .alibi = true});
  run(*state, &(Rules){"alibi=1", 90, 40, 1, 32, 32, -1, -1, .alibi = true});
}

static void sinks(void **state) {
  run(*state, &(Rules){"sinks=1" SMALL, 40, 70, 0, 64, 64, -1, -1, .sinks = true});
  run(*state, &(Rules){"sinks=1", 90, 40, 1, 32, 32, -1, -1, .sinks = true}); // rows without a key
}

static void values_of_another_width(void **state) {
  run(*state, &(Rules){"head_dim_v=128", 70, 75, 1, 192, 128, -1, -1, .cap = 0});
  run(*state, &(Rules){"head_dim_v=64 stages=2 q_regs=0", 70, 75, 0, 128, 64, -1, -1, .cap = 0});
  run(*state, &(Rules){"head_dim_v=128" SMALL, 70, 75, 1, 64, 128, -1, -1, .cap = 0});
  run(*state, &(Rules){"head_dim_v=96", 40, 75, 1, 32, 96, -1, -1, .cap = 0});
}

static void all_together(void **state) {
  run(*state, &(Rules){"window=1 softcap=1 alibi=1 sinks=1 head_dim_v=64" SMALL, 60, 90, 1, 128, 64,
                       25, -1, 20, true, true, NULL});
}

// prefill_wgmma goes through the same include: tiles of 64 or more keys, rows of 64.
#define WGMMA .on = "prefill_wgmma"

static void windows_on_hopper(void **state) {
  static const int sides[][4] = {{0, 0, 150, 170},  {70, 5, 200, 300}, {-1, 7, 70, 150},
                                 {33, -1, 70, 200}, {5, 3, 190, 60},   {1 << 30, 1 << 30, 20, 50},
                                 {3, -1, 200, 20},  {90, 90, 130, 400}};
  for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
    for (int causal = 0; causal < 2; causal++) {
      const int *s = sides[i];
      run(*state, &(Rules){"window=1 tile_q=128 tile_k=64", s[2], s[3], causal, 64, 64, s[0], s[1],
                           WGMMA});
    }
}

static void rules_on_hopper(void **state) {
  run(*state, &(Rules){"softcap=1 tile_k=64", 70, 150, 1, 64, 64, -1, -1, .cap = 3, WGMMA});
  run(*state, &(Rules){"alibi=1 tile_k=64", 70, 150, 0, 64, 64, -1, -1, .alibi = true, WGMMA});
  run(*state, &(Rules){"alibi=1", 150, 90, 1, 128, 128, -1, -1, .alibi = true, WGMMA});
  run(*state, &(Rules){"sinks=1 tile_k=64", 70, 150, 0, 64, 64, -1, -1, .sinks = true, WGMMA});
  run(*state, &(Rules){"sinks=1", 150, 60, 1, 64, 64, -1, -1, .sinks = true, WGMMA}); // no key
  run(*state, &(Rules){"window=1 softcap=1 alibi=1 sinks=1 head_dim_v=64", 150, 190, 1, 128, 64, 25,
                       -1, 20, true, true, WGMMA});
}

static void widths_on_hopper(void **state) {
  run(*state, &(Rules){"head_dim_v=128", 70, 150, 1, 192, 128, -1, -1, WGMMA});
  run(*state, &(Rules){"head_dim_v=96", 70, 150, 0, 96, 96, -1, -1, WGMMA});
  run(*state, &(Rules){"head_dim_v=64", 70, 150, 0, 256, 64, -1, -1, WGMMA});
  run(*state, &(Rules){"head_dim_v=192", 70, 150, 1, 64, 192, -1, -1, WGMMA});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(windows),
      cmocka_unit_test(soft_cap),
      cmocka_unit_test(alibi),
      cmocka_unit_test(sinks),
      cmocka_unit_test(values_of_another_width),
      cmocka_unit_test(all_together),
      cmocka_unit_test(windows_on_hopper),
      cmocka_unit_test(rules_on_hopper),
      cmocka_unit_test(widths_on_hopper),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
