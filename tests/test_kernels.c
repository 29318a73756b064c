// The attention templates on the interpreter, against a small fp64 reference of this test's own.
//
// Q, K, V and O all have different layouts with gaps between their rows; the gaps of the inputs
// hold NaN, and what no kernel may write must be as it was.
#include <stdlib.h>

#include "verify_kit.h"

// ---- inputs -------------------------------------------------------------------------------------
typedef enum Input {
  INPUT_RANDOM, // everything uniform in [-1, 1]
  INPUT_FLAT,   // q = 0, v[j] = j mod 256: O is the mean over the keys seen, rounded once
  INPUT_STEEP,  // large scores: the maximum changes often, and most weights vanish
} Input;

static double uniform(uint64_t *seed) { // splitmix64
  uint64_t z = *seed += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-52 - 1;
}

typedef struct Buffer {
  Tensor t;
  uint64_t bytes;
  uint8_t *host, *before; // before: an output as it was before the launch
} Buffer;

enum { GUARD = 64 }; // bytes in front of the first and after the last element

// Order of the dimensions in memory, slowest first, and elements between rows.
typedef struct Order {
  int order[3], gap;
} Order;
static const Order layouts[] = {{{0, 1, 2}, 8}, {{0, 2, 1}, 0}, {{2, 0, 1}, 16}, {{1, 0, 2}, 24}};
enum { LAYOUT_Q, LAYOUT_K, LAYOUT_V, LAYOUT_O };

static void *element(const Buffer *b, const int64_t at[]) {
  int64_t n = 0;
  for (int i = 0; i < b->t.rank; i++) n += at[i] * b->t.stride[i];
  return b->host + GUARD + n * dtype_bytes(b->t.dtype);
}

static double get4(const Buffer *b, int64_t x, int64_t y, int64_t z, int64_t e) {
  return dtype_load(b->t.dtype, element(b, (int64_t[]){x, y, z, e}));
}

// All bits 1 is NaN in every element type.
static void buffer_alloc(Buffer *b) {
  b->bytes = tensor_span_bytes(&b->t) + 2 * GUARD;
  b->host = malloc(b->bytes);
  memset(b->host, 0xff, b->bytes);
}

static Buffer rows_new(Dtype dtype, int64_t batch, int64_t seqlen, int64_t heads, int64_t head_dim,
                       int layout) {
  Buffer b = {.t = {.dtype = dtype, .rank = 4, .shape = {batch, seqlen, heads, head_dim}}};
  int64_t stride = head_dim + layouts[layout].gap;
  for (int i = 2; i >= 0; i--) {
    int dim = layouts[layout].order[i];
    b.t.stride[dim] = stride;
    stride *= b.t.shape[dim] ? b.t.shape[dim] : 1;
  }
  b.t.stride[3] = 1;
  buffer_alloc(&b);
  return b;
}

static Buffer lse_new(Dtype dtype, int64_t batch, int64_t heads, int64_t seqlen) {
  Buffer b = {.t = {.dtype = dtype, .rank = 3, .shape = {batch, heads, seqlen}}};
  b.t.stride[2] = 1;
  b.t.stride[0] = seqlen + 3; // heads slowest
  b.t.stride[1] = batch * (seqlen + 3);
  buffer_alloc(&b);
  return b;
}

static void rows_fill(Buffer *b, uint64_t seed, double scale, bool counts) {
  const int64_t *n = b->t.shape;
  int64_t at[4];
  for (at[0] = 0; at[0] < n[0]; at[0]++)
    for (at[1] = 0; at[1] < n[1]; at[1]++)
      for (at[2] = 0; at[2] < n[2]; at[2]++)
        for (at[3] = 0; at[3] < n[3]; at[3]++) {
          double x = counts ? (double)(at[1] & 255) : scale * uniform(&seed);
          dtype_store(b->t.dtype, element(b, at), x);
        }
}

// ---- reference ----------------------------------------------------------------------------------
typedef struct Run {
  const Problem *p;
  Operator *op;
  Buffer q, k, v, o, lse;
  Input fill;
  bool hooked;
} Run;

static int64_t dim(const Run *r, const char *name) { return problem_int(r->p, name, 0); }

// The rule of tests/kernels/slope.hook: a bias that names batch, head and distance, and a mask that
// leaves some rows without any key.
enum { SLOPE_PERCENT = -3 };
static double hook_rule(double s, int64_t b, int64_t h, int64_t i, int64_t j) {
  if (((i + j) & 3) == 3 || i == 1) return -INFINITY;
  return s + SLOPE_PERCENT * 0.01 * (double)(h + 1) * (double)(j - i) + (double)b;
}

// One query: o[head_dim] and lse, two passes in fp64.
static double reference(const Run *r, int64_t b, int64_t h, int64_t i, double *o) {
  int64_t d = dim(r, "head_dim"), sk = dim(r, "seqlen_k");
  int64_t hk = h / (dim(r, "heads_q") / dim(r, "heads_kv"));
  int64_t keys = dim(r, "causal") ? i + sk - dim(r, "seqlen_q") + 1 : sk;
  double scale = (float)problem_float(r->op->problem, "scale", 0), max = -INFINITY, sum = 0;
  double *s = malloc(sizeof *s * (size_t)(sk + 1));
  for (int64_t j = 0; j < keys; j++) {
    s[j] = 0;
    for (int64_t e = 0; e < d; e++) s[j] += get4(&r->q, b, i, h, e) * get4(&r->k, b, j, hk, e);
    s[j] *= scale;
    if (r->hooked) s[j] = hook_rule(s[j], b, h, i, j);
    max = fmax(max, s[j]);
  }
  for (int64_t e = 0; e < d; e++) o[e] = 0;
  for (int64_t j = 0; j < keys; j++) {
    double w = isinf(s[j]) ? 0 : exp(s[j] - max);
    sum += w;
    for (int64_t e = 0; e < d; e++) o[e] += w * get4(&r->v, b, j, hk, e);
  }
  for (int64_t e = 0; e < d; e++) o[e] = sum > 0 ? o[e] / sum : 0;
  free(s);
  return sum > 0 ? max + log(sum) : -INFINITY;
}

// Error allowed beside the final rounding.  fp32 sums over at most 300 keys and 128 elements of
// values below 1: a few dozen units of 2^-24.  Steep scores are 30 times larger, and so are their
// errors.  Flat ones have none.
static double allowed(const Run *r, double expected) {
  Dtype t = r->o.t.dtype;
  if (t == DT_F64) return r->hooked ? 1e-6 : 1e-13; // hooks work in fp32
  if (r->fill == INPUT_FLAT) return 0;
  return 0.501 * dtype_ulp(t, expected) + (r->fill == INPUT_STEEP ? 6e-5 : 3e-6);
}

static void check_query(const Run *r, int64_t b, int64_t h, int64_t i) {
  double want[256], lse = reference(r, b, h, i, want);
  for (int64_t e = 0; e < dim(r, "head_dim"); e++) {
    double got = get4(&r->o, b, i, h, e);
    double expected = want[e]; // flat: one division in fp32, then the conversion
    if (r->fill == INPUT_FLAT) expected = dtype_round(r->o.t.dtype, dtype_round(DT_F32, want[e]));
    if (!(fabs(got - expected) <= allowed(r, expected)))
      fail_msg("%s on %s: o[b=%d i=%d h=%d e=%d] is %.9g, not %.9g", r->op->step[0].variant->id,
               problem_text(r->op->arena, r->p), (int)b, (int)i, (int)h, (int)e, got, expected);
  }
  double got = dtype_load(r->lse.t.dtype, element(&r->lse, (int64_t[]){b, h, i}));
  bool exact = r->lse.t.dtype == DT_F64 && !r->hooked;
  double most = exact ? 1e-13 : 1e-5 + 1e-6 * fabs(lse);
  if (!(got == lse || fabs(got - lse) <= most))
    fail_msg("%s on %s: lse[b=%d h=%d i=%d] is %.9g, not %.9g", r->op->step[0].variant->id,
             problem_text(r->op->arena, r->p), (int)b, (int)h, (int)i, got, lse);
}

// Everything but the elements is as it was.
static void check_gaps(const Run *r, const Buffer *b) {
  uint8_t *after = malloc(b->bytes);
  memcpy(after, b->host, b->bytes);
  Buffer was = *b, now = *b;
  was.host = b->before;
  now.host = after;
  size_t row = (size_t)(b->t.shape[b->t.rank - 1] * dtype_bytes(b->t.dtype));
  for (int64_t x = 0; x < b->t.shape[0]; x++)
    for (int64_t y = 0; y < b->t.shape[1]; y++)
      for (int64_t z = 0; z < (b->t.rank == 4 ? b->t.shape[2] : 1); z++) {
        int64_t at[4] = {x, y, b->t.rank == 4 ? z : 0, 0};
        memcpy(element(&now, at), element(&was, at), row);
      }
  if (memcmp(after, b->before, b->bytes))
    fail_msg("%s on %s: wrote outside of the output's elements", r->op->step[0].variant->id,
             problem_text(r->op->arena, r->p));
  free(after);
}

// ---- running ------------------------------------------------------------------------------------
static void upload(Fixture *f, Buffer *b, const char *name) {
  DevPtr at;
  fixture_ok(f, device_alloc(f->sim, b->bytes, name, &at, f->d));
  fixture_ok(f, device_write(f->sim, at, b->host, b->bytes, f->d));
  b->t.data = at + GUARD;
}

static void poison(Fixture *f, Buffer *b) {
  if (!b->before) b->before = malloc(b->bytes);
  memset(b->before, 0xff, b->bytes);
  fixture_ok(f, device_write(f->sim, b->t.data - GUARD, b->before, b->bytes, f->d));
}

static void bind(Fixture *f, Run *r, Buffer *b, const char *name) {
  upload(f, b, name);
  fixture_ok(f, operator_bind(r->op, name, &b->t, f->d));
}

static Dtype out_dtype(const Run *r, const char *name) { return operator_arg(r->op, name)->dtype; }

static void make_tensors(Fixture *f, Run *r) {
  int64_t b = dim(r, "batch"), hq = dim(r, "heads_q"), hkv = dim(r, "heads_kv");
  int64_t sq = dim(r, "seqlen_q"), sk = dim(r, "seqlen_k"), d = dim(r, "head_dim");
  Dtype t = out_dtype(r, "q");
  double steep = r->fill == INPUT_STEEP ? 8 : 1;
  r->q = rows_new(t, b, sq, hq, d, LAYOUT_Q);
  r->k = rows_new(t, b, sk, hkv, d, LAYOUT_K);
  r->v = rows_new(t, b, sk, hkv, d, LAYOUT_V);
  r->o = rows_new(out_dtype(r, "o"), b, sq, hq, d, LAYOUT_O);
  r->lse = lse_new(out_dtype(r, "lse"), b, hq, sq);
  rows_fill(&r->q, 1, r->fill == INPUT_FLAT ? 0 : steep, false);
  rows_fill(&r->k, 2, steep, false);
  rows_fill(&r->v, 3, 1, r->fill == INPUT_FLAT);
  bind(f, r, &r->q, "q");
  bind(f, r, &r->k, "k");
  bind(f, r, &r->v, "v");
  bind(f, r, &r->o, "o");
  bind(f, r, &r->lse, "lse");
}

static void launch(Fixture *f, Run *r, uint32_t grid, DevPtr work) {
  poison(f, &r->o);
  poison(f, &r->lse);
  if (work) fixture_ok(f, device_fill32(f->sim, work, 0xffffffff, r->op->workspace_bytes, f->d));
  fixture_ok(f, operator_plan(r->op, f->sim, &(PlanOpts){.grid = grid}, f->d));
  fixture_ok(f, operator_launch(r->op, f->sim, f->d));
  fixture_ok(f, device_sync(f->sim, f->d));
  fixture_ok(f, device_read(f->sim, r->o.host, r->o.t.data - GUARD, r->o.bytes, f->d));
  fixture_ok(f, device_read(f->sim, r->lse.host, r->lse.t.data - GUARD, r->lse.bytes, f->d));
}

static void check_all(const Run *r) {
  for (int64_t b = 0; b < dim(r, "batch"); b++)
    for (int64_t h = 0; h < dim(r, "heads_q"); h++)
      for (int64_t i = 0; i < dim(r, "seqlen_q"); i++) check_query(r, b, h, i);
  check_gaps(r, &r->o);
  check_gaps(r, &r->lse);
}

static void check_grids(Fixture *f, Run *r, DevPtr work) {
  uint8_t *o = malloc(r->o.bytes), *lse = malloc(r->lse.bytes);
  memcpy(o, r->o.host, r->o.bytes);
  memcpy(lse, r->lse.host, r->lse.bytes);
  const uint32_t grids[] = {1, 2, 5};
  for (int g = 0; g < 3; g++) {
    launch(f, r, grids[g], work);
    if (memcmp(o, r->o.host, r->o.bytes) || memcmp(lse, r->lse.host, r->lse.bytes))
      fail_msg("%s on %s: other bits with grid=%u", r->op->step[0].variant->id,
               problem_text(r->op->arena, r->p), grids[g]);
  }
  free(o);
  free(lse);
}

static void release(Fixture *f, Run *r) {
  Buffer *all[] = {&r->q, &r->k, &r->v, &r->o, &r->lse};
  for (int i = 0; i < 5; i++) {
    device_free(f->sim, all[i]->t.data - GUARD);
    free(all[i]->host);
    free(all[i]->before);
  }
  operator_free(r->op);
}

// params: "vec=1 warps=2".
static void run_hooked(Fixture *f, const char *name, const char *params, const char *problem,
                       Input fill, bool grids, const char *hook) {
  Arena *a = arena_new();
  Problem *p;
  fixture_ok(f, problem_parse(a, problem, &p, f->d));
  Params given = {0};
  char *rest = arena_strdup(a, params);
  for (char *word = strtok_r(rest, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    fixture_ok(f, params_parse(a, &given, word, f->d));
  if (!strncmp(name, "prefill", 7)) problem_drop(p, "chunks"); // of shapes for all
  if (hook) problem_set_float(p, "slope", SLOPE_PERCENT * 0.01);
  Run r = {.p = p, .fill = fill, .hooked = hook != NULL};
  PlanOpts opts = {.build.hook_path = hook};
  fixture_ok(f, operator_make(f->s, name, &given, p, &opts, &r.op, f->d));
  fixture_ok(f, operator_load(r.op, f->sim, f->d));
  make_tensors(f, &r);
  DevPtr work = 0;
  if (r.op->workspace_bytes) {
    fixture_ok(f, device_alloc(f->sim, r.op->workspace_bytes, "workspace", &work, f->d));
    fixture_ok(f, operator_bind_workspace(r.op, work, r.op->workspace_bytes, f->d));
  }
  launch(f, &r, 0, work);
  check_all(&r);
  if (grids) check_grids(f, &r, work);
  if (work) device_free(f->sim, work);
  release(f, &r);
  arena_free(a);
}

static void run(Fixture *f, const char *name, const char *params, const char *problem, Input fill,
                bool grids) {
  run_hooked(f, name, params, problem, fill, grids, NULL);
}

// ---- cases --------------------------------------------------------------------------------------
typedef struct Shape {
  int b, hq, hkv, sq, sk, causal, chunks;
} Shape;

// Tails around warps, blocks and key steps; group sizes 1, 4 and 7; more queries than keys.
static const Shape shapes[] = {
    {2, 4, 4, 1, 0, 0, 1},    {2, 4, 4, 1, 1, 0, 1},   {1, 8, 2, 1, 31, 0, 2},
    {3, 7, 1, 1, 33, 0, 9},   {2, 4, 1, 2, 64, 0, 3},  {1, 4, 4, 5, 65, 1, 2},
    {2, 8, 2, 2, 127, 1, 4},  {1, 7, 1, 5, 129, 1, 9}, {2, 2, 2, 5, 3, 1, 2},
    {1, 14, 2, 1, 256, 0, 5}, {2, 1, 1, 37, 37, 1, 3},
};

static char *shape_text(char *out, size_t n, const Shape *s, int d, const char *dtype) {
  snprintf(out, n, "b=%d,hq=%d,hkv=%d,sq=%d,sk=%d,d=%d,causal=%d,chunks=%d,dtype=%s", s->b, s->hq,
           s->hkv, s->sq, s->sk, d, s->causal, s->chunks, dtype);
  return out;
}

static void run_shapes(Fixture *f, const char *name, const char *params, int d, const char *dtype,
                       Input fill) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    char text[160];
    run(f, name, params, shape_text(text, sizeof text, &shapes[i], d, dtype), fill, i % 3 == 0);
  }
}

static void prefill_shapes(void **state) {
  Fixture *f = *state;
  run_shapes(f, "prefill_thread", "block=32", 32, "f32", INPUT_RANDOM);
  run_shapes(f, "prefill_thread", "block=64 slice=4", 64, "bf16", INPUT_RANDOM);
  run_shapes(f, "prefill_thread", "block=32 slice=2", 64, "f16", INPUT_FLAT);
}

static void decode_shapes(void **state) {
  Fixture *f = *state;
  run_shapes(f, "decode_splitk", "warps=1 unroll=1", 64, "f32", INPUT_RANDOM);
  run_shapes(f, "decode_splitk", "warps=2 unroll=2", 32, "f16", INPUT_RANDOM);
  run_shapes(f, "decode_splitk", "warps=2 unroll=1 tile_q=2", 128, "bf16", INPUT_RANDOM);
  run_shapes(f, "decode_splitk", "warps=1 unroll=2", 32, "f32", INPUT_FLAT);
}

// Each parameter at its other values, on one shape with tails everywhere.
static void parameters(void **state) {
  static const struct {
    const char *name, *params;
    int d;
    const char *dtype;
  } cases[] = {
      {"prefill_thread", "vec=1", 128, "f32"},
      {"prefill_thread", "vec=2", 64, "f32"},
      {"prefill_thread", "vec=4", 128, "f32"},
      {"prefill_thread", "vec=1 slice=8", 64, "f16"},
      {"prefill_thread", "vec=2", 64, "bf16"},
      {"prefill_thread", "vec=4", 128, "f16"},
      {"decode_splitk", "", 128, "f32"},
      {"decode_splitk", "", 64, "f16"},
      {"decode_splitk", "vec=1 unroll=2", 128, "f32"},
      {"decode_splitk", "vec=1 unroll=2", 128, "bf16"},
      {"decode_splitk", "vec=2 warps=8", 64, "f32"},
      {"decode_splitk", "vec=4 tile_q=8", 64, "f16"},
      {"decode_splitk", "tile_q=1 unroll=8", 32, "bf16"},
  };
  const Shape shape = {2, 8, 2, 3, 77, 1, 3};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[160];
    shape_text(text, sizeof text, &shape, cases[i].d, cases[i].dtype);
    run(*state, cases[i].name, cases[i].params, text, INPUT_RANDOM, false);
    run(*state, cases[i].name, cases[i].params, text, INPUT_FLAT, false);
  }
}

// Integer sums are exact in every chunk count, so O is the mean rounded once.
static void exact_for_every_chunk_count(void **state) {
  for (int chunks = 1; chunks <= 9; chunks++) {
    char text[160];
    Shape s = {1, 4, 2, 1, 300, 0, chunks};
    run(*state, "decode_splitk", "warps=1 unroll=1", shape_text(text, sizeof text, &s, 32, "f32"),
        INPUT_FLAT, false);
  }
}

static void steep_scores(void **state) {
  run(*state, "prefill_thread", "", "b=1,hq=4,hkv=2,sq=9,sk=100,d=64,dtype=f32", INPUT_STEEP,
      false);
  run(*state, "decode_splitk", "", "b=1,hq=4,hkv=2,sq=2,sk=300,d=64,chunks=5,dtype=f32",
      INPUT_STEEP, false);
}

static void oracle(void **state) {
  run_shapes(*state, "oracle_f64", "warps=1", 32, "f32", INPUT_RANDOM);
  run_shapes(*state, "oracle_f64", "warps=2", 64, "bf16", INPUT_RANDOM);
  run(*state, "oracle_f64", "", "b=1,hq=4,hkv=2,sq=3,sk=50,d=128,dtype=f16", INPUT_STEEP, false);
}

static const char slope_hook[] = TESTS_DIR "/kernels/slope.hook";

// The same rule in every kernel; row 1 sees no key, and chunks without any are merged.
static void hooks(void **state) {
  static const char problem[] = "b=2,hq=4,hkv=2,sq=5,sk=70,d=32,chunks=4,causal=1,dtype=f32";
  static const struct {
    const char *name, *params;
  } cases[] = {{"prefill_thread", "block=32 slice=2"},
               {"decode_splitk", "warps=1 unroll=2"},
               {"oracle_f64", "warps=2"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    run_hooked(*state, cases[i].name, cases[i].params, problem, INPUT_RANDOM, true, slope_hook);
}

// hook_eval gives what the rule gives, and touches nothing else.
static void hook_alone(void **state) {
  Fixture *f = *state;
  Arena *a = arena_new();
  Problem *p;
  fixture_ok(f, problem_parse(a, "b=2,hq=3,hkv=3,sq=4,sk=133,d=32", &p, f->d));
  problem_set_float(p, "slope", SLOPE_PERCENT * 0.01);
  Operator *op;
  PlanOpts opts = {.build.hook_path = slope_hook};
  fixture_ok(f, operator_make(f->s, "hook_eval", NULL, p, &opts, &op, f->d));
  fixture_ok(f, operator_load(op, f->sim, f->d));
  Buffer s = rows_new(DT_F32, 2, 3, 4, 133, LAYOUT_Q);
  rows_fill(&s, 7, 1, false);
  upload(f, &s, "scores");
  s.before = malloc(s.bytes);
  memcpy(s.before, s.host, s.bytes);
  fixture_ok(f, operator_bind(op, "scores", &s.t, f->d));
  fixture_ok(f, operator_plan(op, f->sim, &opts, f->d));
  fixture_ok(f, operator_launch(op, f->sim, f->d));
  fixture_ok(f, device_read(f->sim, s.host, s.t.data - GUARD, s.bytes, f->d));
  Buffer was = s;
  was.host = s.before;
  for (int64_t n = 0; n < 2 * 3 * 4 * 133; n++) {
    int64_t j = n % 133, i = n / 133 % 4, h = n / 133 / 4 % 3, b = n / 133 / 4 / 3;
    double want = hook_rule(get4(&was, b, h, i, j), b, h, i, j), got = get4(&s, b, h, i, j);
    assert_true(got == want || fabs(got - want) < 1e-5);
  }
  check_gaps(&(Run){.p = p, .op = op}, &s);
  device_free(f->sim, s.t.data - GUARD);
  free(s.host);
  free(s.before);
  operator_free(op);
  arena_free(a);
}

// A persistent kernel is as many blocks as there is work, or as the modelled device holds at once;
// on every host the same.
static void persistent_grids(void **state) {
  Fixture *f = *state;
  static const struct {
    const char *problem;
    uint32_t grid;
  } cases[] = {
      {"b=1,hq=2,sq=300,sk=300,d=128", 6}, // 2 heads x 3 tiles of 128 queries
      {"b=2,hq=16,sq=1024,sk=64,d=128", 132},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Arena *a = arena_new();
    Problem *p;
    Operator *op = NULL;
    Params given = {0};
    fixture_ok(f, problem_parse(a, cases[i].problem, &p, f->d));
    fixture_ok(f, operator_make(f->s, "prefill_wgmma", &given, p, NULL, &op, f->d));
    fixture_ok(f, operator_load(op, f->sim, f->d));
    fixture_ok(f, operator_plan(op, f->sim, NULL, f->d));
    assert_int_equal(op->step[0].grid[0], cases[i].grid);
    operator_free(op);
    arena_free(a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(prefill_shapes),
      cmocka_unit_test(decode_shapes),
      cmocka_unit_test(parameters),
      cmocka_unit_test(exact_for_every_chunk_count),
      cmocka_unit_test(steep_scores),
      cmocka_unit_test(oracle),
      cmocka_unit_test(hooks),
      cmocka_unit_test(hook_alone),
      cmocka_unit_test(persistent_grids),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
