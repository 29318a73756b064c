// What the tests of the rules (windows, soft cap, ALiBi, sinks, lengths, pages) share: one case of
// a kernel on the interpreter, and an fp64 reference of their own, which no code of the verifier is
// in. The test says BATCH, HEADS, GROUP (heads that share a key) before it includes this.
#ifndef PTXSMITH_RULES_KIT_H
#define PTXSMITH_RULES_KIT_H

#include <stdlib.h>

#include "verify_kit.h"

enum { KV = HEADS / GROUP };

typedef struct Subject {
  const char *name;
  Dtype dtype, kv; // of q and o, of k and v
  const char *params;
  double off;    // o may be off by as much, where v is below 1
  double unseen; // V of a key that no query sees, its K is NaN
} Subject;

// One case; a rule that is not named is off.
typedef struct Rules {
  const char *params;
  int sq, sk, d;
  int dv; // 0: d
  int causal, chunks;
  bool window;     // params hold window=1
  int left, right; // negative: unbounded
  double cap;      // 0: none
  bool alibi, sinks;
  int page;        // keys of a page, 0: dense
  const int *lens; // of each sequence, NULL: sk
} Rules;

static inline double slope_of(int b, int h) { return 0.03 * (h + 1) - 0.02 * b; }
static inline double sink_of(int h) { return h == 3 ? -INFINITY : 0.7 * h; }
static inline int width_of(const Rules *r) { return r->dv ? r->dv : r->d; }
static inline int len_of(const Rules *r, int b) { return r->lens ? r->lens[b] : r->sk; }
// The queries' own keys come apart.
static inline bool appends(const Rules *r) { return strstr(r->params, "append=1") != NULL; }
static inline int pages_of(const Rules *r) { return r->page ? (r->sk + r->page - 1) / r->page : 0; }
// Pages in an order of no order; one in two of the pool is spare.
static inline int place_of(const Rules *r, int b, int page) {
  int n = BATCH * pages_of(r), i = b * pages_of(r) + page;
  return 2 * (n - 1 - i) + (b + page) % 2;
}

// ---- tensors: dense, NaN until filled -----------------------------------------------------------
typedef struct Dense {
  Tensor t;
  uint8_t *host;
} Dense;

static inline uint64_t bytes_of(const Dense *x) {
  uint64_t n = (uint64_t)dtype_bytes(x->t.dtype);
  for (int i = 0; i < x->t.rank; i++) n *= (uint64_t)x->t.shape[i];
  return n;
}

static inline Dense dense(Dtype dtype, int rank, const int64_t *shape) {
  Dense x = {.t = {.dtype = dtype, .rank = rank}};
  memcpy(x.t.shape, shape, sizeof *shape * (size_t)rank);
  tensor_dense(&x.t);
  x.host = malloc(bytes_of(&x) + 1);
  memset(x.host, 0xff, bytes_of(&x)); // NaN
  return x;
}

static inline void *at(const Dense *x, int64_t i) { return x->host + i * dtype_bytes(x->t.dtype); }
static inline double get(const Dense *x, int64_t i) { return dtype_load(x->t.dtype, at(x, i)); }
static inline void put(Dense *x, int64_t i, double v) { dtype_store(x->t.dtype, at(x, i), v); }

static inline void bind(Fixture *f, Operator *op, const char *name, Dense *x) {
  if (!x->t.data) fixture_ok(f, device_alloc(f->sim, bytes_of(x) + 16, name, &x->t.data, f->d));
  fixture_ok(f, device_write(f->sim, x->t.data, x->host, bytes_of(x), f->d));
  fixture_ok(f, operator_bind(op, name, &x->t, f->d));
}

static inline void read_back(Fixture *f, Dense *x) {
  fixture_ok(f, device_read(f->sim, x->host, x->t.data, bytes_of(x), f->d));
}

// ---- the rules in fp64 --------------------------------------------------------------------------
enum { Q, K, V, O, LSE, SLOPES, SINKS, LENS, TABLE, FACTOR_K, FACTOR_V, NEW_K, NEW_V, FAULTS, ALL };
static const char *const tensor_names[ALL] = {
    "q",         "k",           "v",         "o",         "lse",   "alibi_slopes", "sinks",
    "seqlens_k", "block_table", "descale_k", "descale_v", "k_new", "v_new",        "faults"};

static inline bool visible(const Rules *r, int b, int i, int j) {
  int64_t own = i + len_of(r, b) - r->sq;
  if (j >= len_of(r, b) || (r->causal && j > own)) return false;
  if (!r->window) return true;
  if (!r->causal && r->right >= 0 && j > own + r->right) return false;
  return r->left < 0 || j >= own - r->left;
}

// Factors of 8-bit keys and values, which differ; one where there are none.
static inline double factor_of(const Dense *x, int which, int b, int h_kv) {
  if (dtype_bytes(x->t.dtype) > 1) return 1;
  return which ? 0.75 + 0.25 * (b + 2 * h_kv) : (h_kv ? 1.5 : 0.5) - 0.25 * b;
}

// Element e of query i; of key j, in pages or not, in rows of `width`.
static inline int64_t query_at(const Rules *r, int width, int b, int i, int h, int e) {
  return ((int64_t)(b * r->sq + i) * HEADS + h) * width + e;
}
static inline int64_t key_at(const Rules *r, int width, int b, int j, int h_kv, int e) {
  int64_t row = r->page ? (int64_t)place_of(r, b, j / r->page) * r->page + j % r->page
                        : (int64_t)b * r->sk + j;
  return (row * KV + h_kv) * width + e;
}

static inline double score(const Rules *r, const Dense *t, int b, int h, int i, int j) {
  double s = 0;
  for (int e = 0; e < r->d; e++)
    s +=
        get(&t[Q], query_at(r, r->d, b, i, h, e)) * get(&t[K], key_at(r, r->d, b, j, h / GROUP, e));
  s *= factor_of(&t[K], 0, b, h / GROUP) / sqrt(r->d);
  if (r->cap) s = r->cap * tanh(s / r->cap);
  if (r->alibi) s -= slope_of(b, h) * fabs((double)(i + len_of(r, b) - r->sq - j));
  return s;
}

// Weights, not yet divided by their sum; what they sum to, and their maximum.
static inline double weigh(const Rules *r, const Dense *t, int b, int h, int i, double *w,
                           double *max) {
  *max = r->sinks ? sink_of(h) : -INFINITY;
  for (int j = 0; j < r->sk; j++) {
    w[j] = visible(r, b, i, j) ? score(r, t, b, h, i, j) : -INFINITY;
    *max = fmax(*max, w[j]);
  }
  double sum = r->sinks && !isinf(sink_of(h)) ? exp(sink_of(h) - *max) : 0;
  for (int j = 0; j < r->sk; j++) sum += w[j] = isinf(w[j]) ? 0 : exp(w[j] - *max);
  return sum;
}

static inline void check_row(const Subject *x, const Rules *r, const Dense *t, int b, int h,
                             int i) {
  double *w = malloc(sizeof *w * (size_t)(r->sk + 1)), max;
  double sum = weigh(r, t, b, h, i, w, &max), factor = factor_of(&t[V], 1, b, h / GROUP);
  for (int e = 0; e < width_of(r); e++) {
    double o = 0, got = get(&t[O], query_at(r, width_of(r), b, i, h, e));
    for (int j = 0; j < r->sk; j++)
      if (w[j] > 0) o += w[j] * get(&t[V], key_at(r, width_of(r), b, j, h / GROUP, e));
    o = sum > 0 ? o / sum * factor : 0;
    if (!(fabs(got - o) <= x->off * fmax(1, factor)))
      fail_msg("%s %s: o[b=%d i=%d h=%d e=%d] is %g, not %g", x->name, r->params, b, i, h, e, got,
               o);
  }
  double lse = sum > 0 ? max + log(sum) : -INFINITY;
  double got = get(&t[LSE], (int64_t)(b * HEADS + h) * r->sq + i);
  if (!(got == lse || fabs(got - lse) <= 2e-5))
    fail_msg("%s %s: lse[b=%d h=%d i=%d] is %.9g, not %.9g", x->name, r->params, b, h, i, got, lse);
  free(w);
}

// ---- one case -----------------------------------------------------------------------------------
typedef struct Case {
  Fixture *f;
  const Subject *x;
  const Rules *r;
  Operator *op;
  Dense t[ALL];
  DevPtr work;
} Case;

static inline Operator *case_operator(Fixture *f, const Subject *x, const Rules *r) {
  Params given;
  Operator *op;
  const char *name =
      fixture_variant(f, arena_printf(f->a, "%s %s %s", x->name, r->params, x->params), &given);
  Problem *p = fixture_problem(
      f, arena_printf(f->a, "b=%d,hq=%d,hkv=%d,sq=%d,sk=%d,d=%d,dtype=%s,causal=%d,chunks=%d",
                      BATCH, HEADS, KV, r->sq, r->sk, r->d, dtype_name(x->dtype), r->causal,
                      r->chunks ? r->chunks : 1));
  problem_set_int(p, "window_left", r->window ? r->left : -1);
  problem_set_int(p, "window_right", r->window ? r->right : -1);
  problem_set_float(p, "softcap", r->cap);
  problem_set_int(p, "page_size", r->page);
  if (r->page) problem_set_int(p, "pages", pages_of(r));
  if (r->page) problem_set_int(p, "pool_pages", 2 * BATCH * pages_of(r));
  fixture_ok(f, operator_make(f->s, name, &given, p, NULL, &op, f->d));
  fixture_ok(f, operator_load(op, f->sim, f->d));
  return op;
}

static inline void case_shape(Case *c) {
  const Rules *r = c->r;
  int64_t outer = r->page ? 2 * BATCH * pages_of(r) : BATCH, inner = r->page ? r->page : r->sk;
  const struct {
    Dtype dtype;
    int rank;
    int64_t shape[4];
  } as[ALL] = {
      [Q] = {c->x->dtype, 4, {BATCH, r->sq, HEADS, r->d}},
      [K] = {c->x->kv, 4, {outer, inner, KV, r->d}},
      [V] = {c->x->kv, 4, {outer, inner, KV, width_of(r)}},
      [O] = {c->x->dtype, 4, {BATCH, r->sq, HEADS, width_of(r)}},
      [LSE] = {DT_F32, 3, {BATCH, HEADS, r->sq}},
      [SLOPES] = {DT_F32, 2, {BATCH, HEADS}},
      [SINKS] = {DT_F32, 1, {HEADS}},
      [LENS] = {DT_I32, 1, {BATCH}},
      [TABLE] = {DT_I32, 2, {BATCH, pages_of(r)}},
      [FACTOR_K] = {DT_F32, 2, {BATCH, KV}},
      [FACTOR_V] = {DT_F32, 2, {BATCH, KV}},
      [NEW_K] = {c->x->kv, 4, {BATCH, r->sq, KV, r->d}},
      [NEW_V] = {c->x->kv, 4, {BATCH, r->sq, KV, width_of(r)}},
      [FAULTS] = {DT_I32, 1, {BATCH}},
  };
  for (int i = 0; i < ALL; i++) c->t[i] = dense(as[i].dtype, as[i].rank, as[i].shape);
}

static inline double next_random(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (double)(*seed >> 8) / 0x1p23 - 1;
}

// Below 1, queries below 8; K of what no query may see stays NaN.
static inline void case_fill(Case *c) {
  const Rules *r = c->r;
  uint32_t seed = 7;
  for (int64_t i = 0; i < (int64_t)BATCH * r->sq * HEADS * r->d; i++)
    put(&c->t[Q], i, 8 * next_random(&seed));
  for (int b = 0; b < BATCH; b++)
    for (int j = 0; j < r->sk; j++) {
      bool seen = false;
      for (int i = 0; i < r->sq; i++) seen = seen || visible(r, b, i, j);
      for (int h = 0; h < KV; h++) {
        for (int e = 0; e < r->d && seen; e++)
          put(&c->t[K], key_at(r, r->d, b, j, h, e), next_random(&seed));
        for (int e = 0; e < width_of(r); e++)
          put(&c->t[V], key_at(r, width_of(r), b, j, h, e),
              seen ? next_random(&seed) : c->x->unseen);
      }
    }
}

// The tensors of the rules; an entry of the table that no key needs is no page of the pool.
static inline void case_fill_rules(Case *c) {
  const Rules *r = c->r;
  memset(c->t[FAULTS].host, 0, bytes_of(&c->t[FAULTS]));
  for (int h = 0; h < HEADS; h++) put(&c->t[SINKS], h, sink_of(h));
  for (int b = 0; b < BATCH; b++) {
    for (int w = 0; w < 2; w++)
      for (int h = 0; h < KV; h++)
        put(&c->t[FACTOR_K + w], b * KV + h, factor_of(&c->t[K], w, b, h));
    for (int h = 0; h < HEADS; h++) put(&c->t[SLOPES], b * HEADS + h, slope_of(b, h));
    ((int32_t *)c->t[LENS].host)[b] = len_of(r, b);
    for (int p = 0; p < pages_of(r); p++)
      ((int32_t *)c->t[TABLE].host)[b * pages_of(r) + p] =
          p * r->page < len_of(r, b) ? place_of(r, b, p) : 2147480000;
  }
}

// The workspace: zero where it must be, else NaN; one for all launches of a case.
static inline void case_workspace(Case *c) {
  Operator *op = c->op;
  uint8_t *host = malloc(op->workspace_bytes + 1);
  memset(host, 0xff, op->workspace_bytes);
  memset(host, 0, op->workspace_zero_bytes);
  if (!c->work)
    fixture_ok(c->f, device_alloc(c->f->sim, op->workspace_bytes + WORKSPACE_ALIGN, "workspace",
                                  &c->work, c->f->d));
  fixture_ok(c->f, device_write(c->f->sim, c->work, host, op->workspace_bytes, c->f->d));
  fixture_ok(c->f, operator_bind_workspace(op, c->work, op->workspace_bytes, c->f->d));
  free(host);
}

static inline void case_bind(Case *c) {
  for (int i = 0; i < ALL; i++)
    if (operator_arg(c->op, tensor_names[i])) bind(c->f, c->op, tensor_names[i], &c->t[i]);
}

// An operator, its tensors filled; nothing is bound.
static inline Case case_open(Fixture *f, const Subject *x, const Rules *r) {
  Case c = {.f = f, .x = x, .r = r, .op = case_operator(f, x, r)};
  case_shape(&c);
  case_fill(&c);
  case_fill_rules(&c);
  return c;
}

// Outputs are NaN before, and read after.
static inline void case_launch(Case *c) {
  for (int i = O; i <= LSE; i++) {
    memset(c->t[i].host, 0xff, bytes_of(&c->t[i]));
    bind(c->f, c->op, tensor_names[i], &c->t[i]);
  }
  fixture_ok(c->f, operator_plan(c->op, c->f->sim, NULL, c->f->d));
  fixture_ok(c->f, operator_launch(c->op, c->f->sim, c->f->d));
  fixture_ok(c->f, device_sync(c->f->sim, c->f->d));
  for (int i = O; i <= LSE; i++) read_back(c->f, &c->t[i]);
}

static inline void case_check(const Case *c) {
  for (int b = 0; b < BATCH; b++)
    for (int h = 0; h < HEADS; h++)
      for (int i = 0; i < c->r->sq; i++) check_row(c->x, c->r, c->t, b, h, i);
}

static inline void case_close(Case *c) {
  operator_free(c->op);
  if (c->work) device_free(c->f->sim, c->work);
  for (int i = 0; i < ALL; i++) {
    if (c->t[i].t.data) device_free(c->f->sim, c->t[i].t.data);
    free(c->t[i].host);
  }
}

#endif
