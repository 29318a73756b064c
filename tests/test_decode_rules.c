// What decode_mma, decode_span and decode_fma make of windows, soft cap, ALiBi, sinks, lengths of its own for each
// sequence and pages, split into chunks, on the interpreter, against a small fp64 reference of this test's own.
// Whatever no query may see is NaN: keys past a length or out of every window, spare pages.
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
  device_sim_opts(c->dev, &(SimOpts){.threads = 1, .sanitize = true, .seed = 5});
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

// The kernels; every case runs on each of them.
static const struct Subject {
  const char *name;
  Dtype dtype, kv; // of q and o, of k and v
  const char *params;
} subjects[] = {{"decode_mma", DT_F16, DT_F16, ""},
                {"decode_span", DT_F16, DT_F16, ""},
                {"decode_span", DT_F16, DT_E4M3, "dtype_kv=e4m3"},
                {"decode_fma", DT_F32, DT_F32, ""}};
typedef struct Subject Subject;

// One case; a rule that is off has its neutral value.
typedef struct Rules {
  const char *params;
  int sq, sk, chunks, d, causal;
  int left, right;      // negative: unbounded
  double cap;           // 0: none
  bool alibi, sinks;
  int page;             // keys of a page, 0: dense
  const int *lens;      // of each sequence, NULL: sk
} Rules;

enum { BATCH = 3, HEADS = 6, GROUP = 3, KV = HEADS / GROUP };
static double slope_of(int b, int h) { return 0.03 * (h + 1) - 0.02 * b; }
static double sink_of(int h) { return h == 3 ? -INFINITY : 0.7 * h; }
static int len_of(const Rules *r, int b) { return r->lens ? r->lens[b] : r->sk; }
// The queries' own keys come apart.
static bool appends(const Rules *r) { return strstr(r->params, "append=1") != NULL; }
static int pages_of(const Rules *r) { return r->page ? (r->sk + r->page - 1) / r->page : 0; }
// Pages in an order of no order; one in two of the pool is spare.
static int place_of(const Rules *r, int b, int page) {
  int n = BATCH * pages_of(r), i = b * pages_of(r) + page;
  return 2 * (n - 1 - i) + (b + page) % 2;
}

// ---- tensors: dense, NaN until filled -----------------------------------------------------------
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
// Factors of 8-bit keys and values, which differ; one where there are none.
static double factor_of(const Dense *x, int which, int b, int h_kv) {
  if (dtype_bytes(x->t.dtype) > 1) return 1;
  return which ? 0.75 + 0.25 * (b + 2 * h_kv) : (h_kv ? 1.5 : 0.5) - 0.25 * b;
}
static double get(const Dense *x, int64_t i) { return dtype_load(x->t.dtype, at(x, i)); }

// Element e of key j, in pages or not.
static int64_t key_at(const Rules *r, int b, int j, int h, int e) {
  int64_t row = r->page ? (int64_t)place_of(r, b, j / r->page) * r->page + j % r->page
                        : (int64_t)b * r->sk + j;
  return (row * KV + h) * r->d + e;
}

static double next(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (double)(*seed >> 8) / 0x1p23 - 1;
}

static bool visible(const Rules *r, int b, int i, int j) {
  int own = i + len_of(r, b) - r->sq;
  if (j >= len_of(r, b)) return false;
  if (r->causal && j > own) return false;
  if (!r->causal && r->right >= 0 && j > own + r->right) return false;
  return r->left < 0 || j >= own - r->left;
}

static void fill(const Rules *r, Dense *q, Dense *k, Dense *v) {
  uint32_t seed = 7;
  for (int64_t i = 0; i < (int64_t)BATCH * r->sq * HEADS * r->d; i++)
    dtype_store(q->t.dtype, at(q, i), 8 * next(&seed));
  for (int b = 0; b < BATCH; b++)
    for (int j = 0; j < r->sk; j++) {
      bool seen = false;
      for (int i = 0; i < r->sq; i++) seen = seen || visible(r, b, i, j);
      for (int h = 0; h < KV && seen; h++)
        for (int e = 0; e < r->d; e++) {
          dtype_store(k->t.dtype, at(k, key_at(r, b, j, h, e)), next(&seed));
          dtype_store(v->t.dtype, at(v, key_at(r, b, j, h, e)), next(&seed));
        }
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
static double score(const Rules *r, const Dense *q, const Dense *k, int b, int h, int i, int j) {
  double s = 0;
  for (int e = 0; e < r->d; e++)
    s += get(q, ((int64_t)(b * r->sq + i) * HEADS + h) * r->d + e) *
         get(k, key_at(r, b, j, h / GROUP, e));
  s *= factor_of(k, 0, b, h / GROUP) / sqrt(r->d);
  if (r->cap) s = r->cap * tanh(s / r->cap);
  if (r->alibi) s -= slope_of(b, h) * fabs((double)(i + len_of(r, b) - r->sq - j));
  return s;
}

static void check_row(const Rules *r, const Dense *t, int b, int h, int i) {
  double *w = malloc(sizeof *w * (size_t)(r->sk + 1)), max = r->sinks ? sink_of(h) : -INFINITY;
  for (int j = 0; j < r->sk; j++) {
    w[j] = visible(r, b, i, j) ? score(r, &t[0], &t[1], b, h, i, j) : -INFINITY;
    max = fmax(max, w[j]);
  }
  double sum = r->sinks && !isinf(sink_of(h)) ? exp(sink_of(h) - max) : 0;
  for (int j = 0; j < r->sk; j++) sum += w[j] = isinf(w[j]) ? 0 : exp(w[j] - max);
  for (int e = 0; e < r->d; e++) {
    double o = 0;
    for (int j = 0; j < r->sk; j++)
      if (w[j] > 0) o += w[j] * get(&t[2], key_at(r, b, j, h / GROUP, e));
    o = sum > 0 ? o / sum * factor_of(&t[2], 1, b, h / GROUP) : 0;
    double got = get(&t[3], ((int64_t)(b * r->sq + i) * HEADS + h) * r->d + e);
    // values are below 1, weights are rounded to 11 bits, the result is rounded once
    if (!(fabs(got - o) <= 0x1p-11 * fmax(1, factor_of(&t[2], 1, b, h / GROUP))))
      fail_msg("%s: o[b=%d i=%d h=%d e=%d] is %g, not %g", r->params, b, i, h, e, got, o);
  }
  double lse = sum > 0 ? max + log(sum) : -INFINITY;
  double got = get(&t[4], (int64_t)(b * HEADS + h) * r->sq + i);
  if (!(got == lse || fabs(got - lse) <= 2e-5))
    fail_msg("%s: lse[b=%d h=%d i=%d] is %.9g, not %.9g", r->params, b, h, i, got, lse);
  free(w);
}

// ---- running ------------------------------------------------------------------------------------
static Operator *make(Context *c, Arena *a, const Subject *x, const Rules *r) {
  Problem *p;
  Params given = {0};
  Operator *op;
  ok(c, problem_parse(a,
                      arena_printf(a, "b=%d,hq=%d,hkv=%d,sq=%d,sk=%d,d=%d,dtype=%s,causal=%d,chunks=%d",
                                   BATCH, HEADS, KV, r->sq, r->sk, r->d, dtype_name(x->dtype), r->causal,
                                   r->chunks),
                      &p, c->d));
  problem_set_int(p, "window_left", r->left);
  problem_set_int(p, "window_right", r->right);
  problem_set_float(p, "softcap", r->cap);
  problem_set_int(p, "page_size", r->page);
  if (r->page) problem_set_int(p, "pages", pages_of(r));
  if (r->page) problem_set_int(p, "pool_pages", 2 * BATCH * pages_of(r));
  char *rest = arena_printf(a, "%s %s", r->params, x->params);
  for (char *word; (word = strtok_r(rest, " ", &rest));) ok(c, params_parse(a, &given, word, c->d));
  ok(c, operator_make(c->session, x->name, &given, p, NULL, &op, c->d));
  ok(c, operator_load(op, c->dev, c->d));
  return op;
}

enum { SLOPES, SINKS, LENS, TABLE, FACTOR_K, FACTOR_V, NEW_K, NEW_V, FAULTS, EXTRAS };
static const char *const extra_names[EXTRAS] = {"alibi_slopes", "sinks", "seqlens_k", "block_table",
                                                "descale_k", "descale_v", "k_new", "v_new", "faults"};

static void make_extras(const Subject *subject, const Rules *r, Dense x[EXTRAS]) {
  Dense kind = {.t = {.dtype = subject->kv}};
  for (int w = 0; w < 2; w++) {
    x[FACTOR_K + w] = dense(DT_F32, 2, (int64_t[]){BATCH, KV});
    for (int i = 0; i < BATCH * KV; i++)
      dtype_store(DT_F32, at(&x[FACTOR_K + w], i), factor_of(&kind, w, i / KV, i % KV));
    x[NEW_K + w] = dense(subject->kv, 4, (int64_t[]){BATCH, r->sq, KV, r->d});
  }
  x[FAULTS] = dense(DT_I32, 1, (int64_t[]){BATCH});
  memset(x[FAULTS].host, 0, bytes_of(&x[FAULTS]));
  x[SLOPES] = dense(DT_F32, 2, (int64_t[]){BATCH, HEADS});
  x[SINKS] = dense(DT_F32, 1, (int64_t[]){HEADS});
  x[LENS] = dense(DT_I32, 1, (int64_t[]){BATCH});
  x[TABLE] = dense(DT_I32, 2, (int64_t[]){BATCH, pages_of(r)});
  for (int h = 0; h < HEADS; h++) dtype_store(DT_F32, at(&x[SINKS], h), sink_of(h));
  for (int b = 0; b < BATCH; b++) {
    for (int h = 0; h < HEADS; h++)
      dtype_store(DT_F32, at(&x[SLOPES], b * HEADS + h), slope_of(b, h));
    ((int32_t *)x[LENS].host)[b] = len_of(r, b);
    // entries that no key needs are no page of the pool
    for (int p = 0; p < pages_of(r); p++)
      ((int32_t *)x[TABLE].host)[b * pages_of(r) + p] =
          p * r->page < len_of(r, b) ? place_of(r, b, p) : 2147480000;
  }
}

// The workspace: zero where it must be, else NaN; one for all launches of a case.
static DevPtr bind_workspace(Context *c, Operator *op) {
  DevPtr p;
  uint8_t *host = malloc(op->workspace_bytes + 1);
  memset(host, 0xff, op->workspace_bytes);
  memset(host, 0, op->workspace_zero_bytes);
  ok(c, device_alloc(c->dev, op->workspace_bytes + WORKSPACE_ALIGN, "workspace", &p, c->d));
  ok(c, device_write(c->dev, p, host, op->workspace_bytes, c->d));
  ok(c, operator_bind_workspace(op, p, op->workspace_bytes, c->d));
  free(host);
  return p;
}

// Keys len - sq .. len - 1 move from the cache to a tensor of their own (or, `back`, are compared: the
// cache, read again, must hold them).
static void move_new(const Rules *r, Dense *cache, Dense *own, bool back) {
  size_t bytes = (size_t)(r->d * dtype_bytes(cache->t.dtype));
  for (int b = 0; b < BATCH; b++)
    for (int i = 0; i < r->sq; i++)
      for (int h = 0; h < KV; h++) {
        int j = len_of(r, b) - r->sq + i;
        if (j < 0) continue;
        void *old = at(cache, key_at(r, b, j, h, 0));
        void *mine = at(own, ((int64_t)(b * r->sq + i) * KV + h) * r->d);
        if (back && memcmp(old, mine, bytes))
          fail_msg("%s: key %d of sequence %d was not appended", r->params, j, b);
        if (!back) memcpy(mine, old, bytes), memset(old, 0xff, bytes);
      }
}

// The cache after a run holds what it held, and the new keys.
static void check_cache(Context *c, const Rules *r, Dense *cache, Dense *own) {
  uint8_t *before = cache->host;
  cache->host = malloc(bytes_of(cache) + 1);
  ok(c, device_read(c->dev, cache->host, cache->t.data, bytes_of(cache), c->d));
  move_new(r, cache, own, true);
  move_new(r, cache, own, false); // NaN there again: all else must be as it was
  assert_memory_equal(before, cache->host, bytes_of(cache));
  free(cache->host);
  cache->host = before;
}

static void run_on(Context *c, const Subject *x, const Rules *r) {
  Arena *a = arena_new();
  Operator *op = make(c, a, x, r);
  int64_t outer = r->page ? 2 * BATCH * pages_of(r) : BATCH, inner = r->page ? r->page : r->sk;
  Dense t[] = {dense(x->dtype, 4, (int64_t[]){BATCH, r->sq, HEADS, r->d}),
               dense(x->kv, 4, (int64_t[]){outer, inner, KV, r->d}),
               dense(x->kv, 4, (int64_t[]){outer, inner, KV, r->d}),
               dense(x->dtype, 4, (int64_t[]){BATCH, r->sq, HEADS, r->d}),
               dense(DT_F32, 3, (int64_t[]){BATCH, HEADS, r->sq})};
  static const char *const names[] = {"q", "k", "v", "o", "lse"};
  fill(r, &t[0], &t[1], &t[2]);
  Dense extra[EXTRAS];
  make_extras(x, r, extra);
  for (int w = 0; w < 2 && appends(r); w++) move_new(r, &t[1 + w], &extra[NEW_K + w], false);
  for (int i = 0; i < 5; i++) bind(c, op, names[i], &t[i]);
  for (int i = 0; i < EXTRAS; i++)
    if (operator_arg(op, extra_names[i])) bind(c, op, extra_names[i], &extra[i]);
  DevPtr work = bind_workspace(c, op);
  ok(c, operator_plan(op, c->dev, NULL, c->d));
  for (int turn = 0; turn < 2; turn++) { // the second finds the counters as the first left them
    for (int i = 3; i < 5; i++) {
      memset(t[i].host, 0xff, bytes_of(&t[i]));
      ok(c, device_write(c->dev, t[i].t.data, t[i].host, bytes_of(&t[i]), c->d));
    }
    ok(c, operator_launch(op, c->dev, c->d));
    ok(c, device_sync(c->dev, c->d));
    for (int i = 3; i < 5; i++)
      ok(c, device_read(c->dev, t[i].host, t[i].t.data, bytes_of(&t[i]), c->d));
    for (int w = 0; w < 2 && appends(r); w++) check_cache(c, r, &t[1 + w], &extra[NEW_K + w]);
    Dense whole[5];
    memcpy(whole, t, sizeof t);
    for (int w = 0; w < 2 && appends(r); w++) { // for the reference, and the second turn finds NaN again
      whole[1 + w].host = malloc(bytes_of(&t[1 + w]) + 1);
      ok(c, device_read(c->dev, whole[1 + w].host, t[1 + w].t.data, bytes_of(&t[1 + w]), c->d));
      ok(c, device_write(c->dev, t[1 + w].t.data, t[1 + w].host, bytes_of(&t[1 + w]), c->d));
    }
    for (int b = 0; b < BATCH; b++)
      for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < r->sq; i++) check_row(r, whole, b, h, i);
    for (int w = 0; w < 2 && appends(r); w++) free(whole[1 + w].host);
  }
  operator_free(op);
  device_free(c->dev, work);
  for (int i = 0; i < 5; i++) device_free(c->dev, t[i].t.data), free(t[i].host);
  for (int i = 0; i < EXTRAS; i++) {
    if (extra[i].t.data) device_free(c->dev, extra[i].t.data);
    free(extra[i].host);
  }
  arena_free(a);
}

static void run(Context *c, const Rules *r) {
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
    if (appends(r) && strcmp(subjects[i].name, "decode_span")) continue;
    else if (r->d != 96 || dtype_bytes(subjects[i].kv) > 1) run_on(c, &subjects[i], r);
}

#define SMALL " warps=2 stages=3"
static void windows(void **state) {
  static const int lefts[] = {0, 3, 17, 63, 200, -1};
  for (int i = 0; i < 6; i++)
    for (int causal = 0; causal < 2; causal++)
      run(*state, &(Rules){"window=1" SMALL, 1 + 2 * causal, 135, 2 + i % 2, 64, causal, lefts[i],
                           causal ? 0 : i - 1, 0, 0, 0, 0, NULL});
}

static void caps_slopes_and_sinks(void **state) {
  run(*state, &(Rules){"softcap=1" SMALL, 2, 90, 3, 64, 1, -1, -1, 5, 0, 0, 0, NULL});
  run(*state, &(Rules){"alibi=1" SMALL, 3, 90, 2, 64, 0, -1, -1, 0, 1, 0, 0, NULL});
  run(*state, &(Rules){"sinks=1" SMALL, 1, 90, 4, 64, 0, -1, -1, 0, 0, 1, 0, NULL});
  run(*state, &(Rules){"sinks=1" SMALL, 1, 90, 1, 64, 0, -1, -1, 0, 0, 1, 0, NULL});
  run(*state, &(Rules){"softcap=1 alibi=1 sinks=1 window=1" SMALL, 4, 140, 3, 128, 1, 50, 0, 3, 1, 1,
                       0, NULL});
}

// Lengths that end a tile early, fill one, are zero, are fewer than the queries.
static void lengths(void **state) {
  static const int some[] = {100, 0, 33}, few[] = {1, 64, 2};
  run(*state, &(Rules){"varlen=1" SMALL, 1, 100, 3, 64, 0, -1, -1, 0, 0, 0, 0, some});
  run(*state, &(Rules){"varlen=1" SMALL, 4, 100, 2, 128, 1, -1, -1, 0, 0, 0, 0, few});
  run(*state, &(Rules){"varlen=1 sinks=1" SMALL, 2, 64, 5, 64, 1, -1, -1, 0, 0, 1, 0, few});
  run(*state, &(Rules){"varlen=1 window=1 alibi=1" SMALL, 2, 100, 2, 64, 1, 20, 0, 0, 1, 0, 0, some});
}

// Pages that are no power of two, one key, more keys than a tile; lengths on both sides of a page.
static void pages(void **state) {
  static const int sizes[] = {1, 3, 16, 19, 64, 128};
  for (int i = 0; i < 6; i++)
    for (int more = -1; more <= 1; more++) {
      int n = 2 * sizes[i] + more, lens[] = {n, 0, n - n / 3};
      int sk = n > 40 ? n : 41;
      if (more) lens[1] = sk;
      run(*state, &(Rules){"paged=1 varlen=1" SMALL, 1 + i % 2, sk, 1 + i % 3, i % 2 ? 128 : 64, i % 2,
                           -1, -1, 0, 0, 0, sizes[i], lens});
    }
}

static void pages_without_lengths_and_with_windows(void **state) {
  static const int lens[] = {130, 7, 64};
  run(*state, &(Rules){"paged=1" SMALL, 1, 70, 2, 96, 0, -1, -1, 0, 0, 0, 16, NULL});
  run(*state, &(Rules){"paged=1 varlen=1 window=1" SMALL, 2, 130, 2, 64, 1, 37, 0, 0, 0, 0, 16, lens});
  run(*state, &(Rules){"paged=1 varlen=1 warps=1 stages=2", 1, 130, 3, 256, 0, -1, -1, 0, 0, 0, 8, lens});
}

// An index out of the pool is found by the interpreter, not read from somebody else's memory.
static void a_bad_block_table_is_a_trap(void **state) {
  Context *c = *state;
  Arena *a = arena_new();
  Rules r = {"paged=1" SMALL, 1, 40, 1, 64, 0, -1, -1, 0, 0, 0, 16, NULL};
  Operator *op = make(c, a, &subjects[0], &r);
  Dense q = dense(DT_F16, 4, (int64_t[]){BATCH, 1, HEADS, 64}), o = q, extra[EXTRAS];
  Dense k = dense(DT_F16, 4, (int64_t[]){2 * BATCH * pages_of(&r), 16, KV, 64}), v = k;
  make_extras(&subjects[0], &r, extra);
  ((int32_t *)extra[TABLE].host)[4] = 1000;
  bind(c, op, "q", &q), bind(c, op, "k", &k), bind(c, op, "v", &v), bind(c, op, "o", &o);
  bind(c, op, "block_table", &extra[TABLE]);
  ok(c, operator_bind(op, "lse", NULL, c->d));
  bind_workspace(c, op);
  ok(c, operator_plan(op, c->dev, NULL, c->d));
  Status st = operator_launch(op, c->dev, c->d);
  if (st == ST_OK) st = device_sync(c->dev, c->d);
  assert_int_not_equal(st, ST_OK);
  assert_non_null(strstr(diag_text(c->d), "out of bounds: reads 16 bytes at offset 4096000 of \"k\""));
  diag_reset(c->d);
  operator_free(op);
  arena_free(a);
  free(q.host), free(k.host);
  for (int i = 0; i < EXTRAS; i++) free(extra[i].host);
}

// New keys in a tile with old ones, alone in one, over two; more of them than keys; none.
static void new_keys_are_appended(void **state) {
  static const int some[] = {100, 2, 65}, few[] = {64, 0, 16};
  for (int i = 0; i < 2; i++) {
    const int *lens = i ? few : some;
    run(*state, &(Rules){"append=1 varlen=1 warps=2", 4, 100, 3, 64, 1, -1, -1, 0, 0, 0, 0, lens});
    run(*state, &(Rules){"append=1 varlen=1 paged=1 check=1" SMALL, 1 + 2 * i, 100, 2, 128, i, -1, -1, 0, 0, 0, i ? 1 : 16,
                         lens});
  }
  run(*state, &(Rules){"append=1" SMALL, 2, 49, 5, 128, 0, -1, -1, 0, 0, 0, 0, NULL});
}

// With check=1 a page that is none of the pool's and a length beyond the table are told, of the sequence
// that has them, and nobody else's memory is read; the others' answers are right.
static void bad_tables_are_told(void **state) {
  Context *c = *state;
  Arena *a = arena_new();
  static const int lens[] = {40, 33, 20};
  Rules r = {"paged=1 varlen=1 check=1" SMALL, 1, 40, 2, 64, 0, -1, -1, 0, 0, 0, 16, lens};
  const Subject *x = &subjects[1];
  Operator *op = make(c, a, x, &r);
  int64_t pool = 2 * BATCH * pages_of(&r);
  Dense t[] = {dense(x->dtype, 4, (int64_t[]){BATCH, 1, HEADS, 64}), dense(x->kv, 4, (int64_t[]){pool, 16, KV, 64}),
               dense(x->kv, 4, (int64_t[]){pool, 16, KV, 64}), dense(x->dtype, 4, (int64_t[]){BATCH, 1, HEADS, 64}),
               dense(DT_F32, 3, (int64_t[]){BATCH, HEADS, 1})};
  static const char *const names[] = {"q", "k", "v", "o", "lse"};
  static const int32_t bad[2][2] = {{-1, 41}, {18, 1 << 30}}; // an index, a length
  fill(&r, &t[0], &t[1], &t[2]);
  for (int i = 0; i < 5; i++) bind(c, op, names[i], &t[i]);
  Dense extra[EXTRAS];
  make_extras(x, &r, extra);
  assert_int_equal(pool, 18);
  for (int turn = 0; turn < 2; turn++) {
    ((int32_t *)extra[TABLE].host)[1] = bad[turn][0];
    ((int32_t *)extra[LENS].host)[1] = bad[turn][1];
    bind(c, op, "block_table", &extra[TABLE]), bind(c, op, "seqlens_k", &extra[LENS]);
    bind(c, op, "faults", &extra[FAULTS]);
    bind_workspace(c, op);
    ok(c, operator_plan(op, c->dev, NULL, c->d));
    ok(c, operator_launch(op, c->dev, c->d));
    ok(c, device_sync(c->dev, c->d));
    int32_t told[BATCH];
    ok(c, device_read(c->dev, told, extra[FAULTS].t.data, sizeof told, c->d));
    if (told[0] != 1 || told[1] != 2 || told[2] != 0)
      fail_msg("turn %d: faults %d %d %d, not 1 2 0", turn, told[0], told[1], told[2]);
    for (int i = 3; i < 5; i++) ok(c, device_read(c->dev, t[i].host, t[i].t.data, bytes_of(&t[i]), c->d));
    for (int h = 0; h < HEADS; h++) check_row(&r, t, 2, h, 0);
  }
  operator_free(op);
  arena_free(a);
  for (int i = 0; i < 5; i++) free(t[i].host);
  for (int i = 0; i < EXTRAS; i++) free(extra[i].host);
}

// Rows come in copies of 16 bytes, whatever the type: an address or a stride of 8 is refused.
static void eight_bit_rows_are_aligned_to_a_copy(void **state) {
  Context *c = *state;
  Arena *a = arena_new();
  Rules r = {"varlen=0" SMALL, 1, 40, 2, 64, 0, -1, -1, 0, 0, 0, 0, NULL};
  Operator *op = make(c, a, &subjects[2], &r);
  Dense k = dense(DT_E4M3, 4, (int64_t[]){BATCH, 40, KV, 64});
  k.t.data = 4096 + 8;
  assert_int_equal(operator_bind(op, "k", &k.t, c->d), ST_INPUT);
  assert_non_null(strstr(diag_text(c->d), "is not aligned to 16 bytes"));
  diag_reset(c->d);
  k.t.data = 4096;
  k.t.stride[1] += 8;
  assert_int_equal(operator_bind(op, "k", &k.t, c->d), ST_INPUT);
  assert_non_null(strstr(diag_text(c->d), "not a multiple of 16"));
  diag_reset(c->d);
  operator_free(op);
  arena_free(a);
  free(k.host);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, open_context, close_context)
  const struct CMUnitTest tests[] = {
      T(windows), T(caps_slopes_and_sinks), T(lengths), T(pages),
      T(pages_without_lengths_and_with_windows), T(a_bad_block_table_is_a_trap),
      T(eight_bit_rows_are_aligned_to_a_copy), T(new_keys_are_appended), T(bad_tables_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
