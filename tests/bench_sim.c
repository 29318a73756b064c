// Rates of the interpreter by kind of work, each beside a native loop over arrays of 32 lanes (for
// attention: over rows) that does the same work in the same run; on one host thread and on all; and
// what the sanitizer costs.  Tensor cores: bench_matrix.
#include "bench_kit.h"
#include "dense.h"
#include "verify.h"

typedef float Lanes[32] __attribute__((aligned(64)));

// ---- native loops -------------------------------------------------------------------------------
// The work that one turn of each kernel's loop is for a warp, so often.
static Lanes regs[16];
static float global[1 << 16] __attribute__((aligned(64)));

BENCH_NATIVE static void fma32(float *d, const float *a, const float *b, const float *c) {
  for (int i = 0; i < 32; i++)
    d[i] = a[i] * b[i] + c[i];
}

BENCH_NATIVE static void add32(float *d, const float *a, const float *b) {
  for (int i = 0; i < 32; i++)
    d[i] = a[i] + b[i];
}

BENCH_NATIVE static void take4(Lanes *r, const float *from) {
  for (int i = 0; i < 32; i++)
    for (int k = 0; k < 4; k++)
      r[k][i] = from[4 * i + k];
}

BENCH_NATIVE static void move32(float *to, const float *from) { memcpy(to, from, 128); }

enum { TURNS = 1 << 20 };

static void native_fma(void *ctx) {
  (void)ctx;
  for (int i = 0; i < TURNS; i++)
    fma32(regs[i & 3], regs[i & 3], regs[6], regs[7]);
}

// Nine instructions: a load of four words, four additions (four more have no native counterpart).
static void native_load(void *ctx) {
  (void)ctx;
  for (int i = 0; i < TURNS; i++) {
    take4(regs, global + (i & 511) * 128);
    add32(regs[0], regs[0], regs[1]);
    add32(regs[2], regs[2], regs[3]);
    add32(regs[4], regs[4], regs[0]);
    add32(regs[4], regs[4], regs[2]);
  }
}

// Twelve instructions, eight loads and stores of them.
static void native_copy(void *ctx) {
  static Lanes shared[2], out[2];
  (void)ctx;
  for (int i = 0; i < TURNS; i++) {
    const float *in = global + (i & 255) * 256;
    move32(regs[0], in), move32(regs[1], in + 32);
    move32(shared[0], regs[0]), move32(shared[1], regs[1]);
    move32(regs[2], shared[0]), move32(regs[3], shared[1]);
    move32(out[0], regs[2]), move32(out[1], regs[3]);
  }
}

// Fourteen instructions, eight loads and stores of them.
static void native_shared(void *ctx) {
  static float words[4][32] __attribute__((aligned(64)));
  (void)ctx;
  for (int i = 0; i < TURNS; i++)
    for (int k = 0; k < 4; k++) {
      move32(words[k], regs[(i + k) & 3]);
      move32(regs[4 + k], words[k ^ 1]);
    }
}

BENCH_NATIVE static void spread32(float *to, const float *from) {
  for (int i = 0; i < 32; i++)
    to[33 * i] = from[i];
}
BENCH_NATIVE static void gather32(float *to, const float *from) {
  for (int i = 0; i < 32; i++)
    to[i] = from[33 * i];
}

static void native_columns(void *ctx) {
  (void)ctx;
  for (int i = 0; i < TURNS; i++)
    for (int k = 0; k < 4; k++) {
      spread32(global + k, regs[(i + k) & 3]);
      gather32(regs[4 + k], global + (k ^ 1));
    }
}

// Six instructions, three of them additions to memory.
BENCH_NATIVE static void add_to(uint32_t *to, uint32_t v) {
  for (int i = 0; i < 32; i++)
    to[i] += v;
}

static void native_adds(void *ctx) {
  static uint32_t words[3][32] __attribute__((aligned(64)));
  (void)ctx;
  for (int i = 0; i < TURNS; i++)
    for (int k = 0; k < 3; k++)
      add_to(words[k], words[(k + 1) % 3][0] | 1);
}

static double native_rate(void (*loop)(void *), int instructions) {
  return 32.0 * TURNS * instructions / bench_best(5, loop, NULL) / 1e6;
}

// ---- attention ----------------------------------------------------------------------------------
enum { LENGTH = 1024, DIM = 128 };
typedef struct Rows { float q[LENGTH][DIM], k[LENGTH][DIM], v[LENGTH][DIM], o[LENGTH][DIM]; } Rows;

BENCH_NATIVE static float dot(const float *a, const float *b) {
  float part[16] = {0}, sum = 0;
  for (int i = 0; i < DIM; i += 16)
    for (int k = 0; k < 16; k++)
      part[k] += a[i + k] * b[i + k];
  for (int k = 0; k < 16; k++)
    sum += part[k];
  return sum;
}

BENCH_NATIVE static void add_scaled(float *o, const float *v, float p) {
  for (int i = 0; i < DIM; i++)
    o[i] += p * v[i];
}

// Causal attention of one head in single precision.
static void native_attention(void *ctx) {
  Rows *x = ctx;
  for (int i = 0; i < LENGTH; i++) {
    float s[LENGTH], top = -INFINITY, sum = 0;
    for (int j = 0; j <= i; j++) {
      s[j] = dot(x->q[i], x->k[j]) * 0.088388f;
      top = s[j] > top ? s[j] : top;
    }
    memset(x->o[i], 0, sizeof x->o[i]);
    for (int j = 0; j <= i; j++) {
      float p = expf(s[j] - top);
      sum += p;
      add_scaled(x->o[i], x->v[j], p);
    }
    for (int k = 0; k < DIM; k++)
      x->o[i][k] /= sum;
  }
}

static double native_attention_seconds(void) {
  Rows *x = calloc(1, sizeof *x);
  if (!x)
    exit(1);
  float *all = x->q[0];
  for (int i = 0; i < 3 * LENGTH * DIM; i++)
    all[i] = (float)(i * 7 % 13 - 6);
  double t = bench_best(3, native_attention, x);
  free(x);
  return t;
}

static Status launch_operator(void *ctx, Device *dev, Diag *d) {
  Status st = operator_launch(ctx, dev, d);
  return st == ST_OK ? device_sync(dev, d) : st;
}

// Seconds of a whole verification, all gates, on all threads; sanitized on one.
static double verify_seconds(Session *s, Device *dev, const char *name, const Params *params,
                             const Problem *p, bool sanitize, Diag *d) {
  Arena *a = arena_new();
  Verdict v;
  double t = bench_now();
  device_sim_opts(dev, &(SimOpts){.sanitize = sanitize});
  VerifyOpts opts = {.seed = 1, .sanitize = sanitize};
  bench_check(verify(s, dev, name, params, p, &opts, &v, a, d), d);
  t = bench_now() - t;
  arena_free(a);
  return t;
}

static void attention(Session *s, Device *dev, Arena *a, const char *name, int heads, double native,
                      Diag *d) {
  Problem *p;
  Params params = {0};
  Operator *op;
  Dense buffers = {0};
  char *text = arena_printf(a, "b=1,hq=%d,sq=%d,sk=%d,d=%d,causal=1", heads, LENGTH, LENGTH, DIM);
  bench_check(problem_parse(a, text, &p, d), d);
  bench_check(params_parse(a, &params, "causal=true", d), d);
  bench_check(operator_make(s, name, &params, p, &(PlanOpts){0}, &op, d), d);
  bench_check(operator_load(op, dev, d), d);
  bench_check(operator_plan(op, dev, &(PlanOpts){0}, d), d);
  bench_check(dense_bind(dev, op, 1, &buffers, d), d);
  BenchRun run = {dev, d, launch_operator, op};
  const char *title = arena_printf(a, "%s, %d head%s", name, heads, heads > 1 ? "s" : "");
  double flops = bench_count(&run, true);
  bench_row(&run, &(BenchRow){.name = title, .work = flops, .scale = 1e9,
                              .native = flops / (native * heads) / 1e9});
  device_sim_opts(dev, &(SimOpts){.threads = 1, .sanitize = true});
  printf("  one launch sanitized %.2f s (target: below 2 for one head); native %.2f s\n",
         bench_best(3, bench_go, &run), native * heads);
  printf("  verify, all gates %.2f s, sanitized %.2f s\n",
         verify_seconds(s, dev, name, &params, p, false, d),
         verify_seconds(s, dev, name, &params, p, true, d));
  dense_free(dev, &buffers);
  operator_free(op);
}

// ---- kernels ------------------------------------------------------------------------------------
static void kernel_row(Device *dev, Kernel *k, const char *name, uint32_t grid, const void *args,
                       uint32_t bytes, double target, double native, Diag *d) {
  BenchKernel work = {{.kernel = k, .grid = {grid, 1, 1}, .block = {128, 1, 1}, .args = args,
                       .arg_bytes = bytes}};
  BenchRun run = {dev, d, bench_launch, &work};
  bench_row(&run, &(BenchRow){.name = name, .work = bench_count(&run, false), .scale = 1e6,
                              .target = target, .native = native});
}

int main(void) {
  Diag *d = diag_new();
  Arena *a = arena_new();
  Device *dev;
  Session *s = session_open(NULL, d);
  bench_check(device_open("sim", &dev, d), d);
  DevPtr out, in;
  uint32_t n = 1 << 16; // 256 KiB: the host's caches hold it
  bench_check(device_alloc(dev, 512 * 1024, "out", &out, d), d);
  bench_check(device_alloc(dev, n * 4, "in", &in, d), d);
  bench_check(device_fill32(dev, in, 0x3f800000, n * 4, d), d);
  bench_head("M thread-instructions/s");
  struct { DevPtr out; uint32_t n; } fma = {out, 4000};
  kernel_row(dev, bench_load(dev, a, "fma.ptx", NULL, d), "fma", 64, &fma, 12, 1500,
             native_rate(native_fma, 1), d);
  struct { DevPtr out, in; uint32_t n; } load = {out, in, n}, copy = {out, in, n / 256};
  kernel_row(dev, bench_load(dev, a, "load.ptx", NULL, d), "loads, checked", 512, &load, 20, 300,
             native_rate(native_load, 9), d);
  kernel_row(dev, bench_load(dev, a, "copy.ptx", NULL, d), "loads, stores, checked", 512, &copy, 20,
             300, native_rate(native_copy, 12), d);
  struct { DevPtr out; uint32_t n; } shared = {out, 2000};
  kernel_row(dev, bench_load(dev, a, "shared.ptx", "rows", d), "shared memory, rows", 32, &shared,
             12, 300, native_rate(native_shared, 14), d);
  kernel_row(dev, bench_load(dev, a, "shared.ptx", "columns", d), "shared memory, columns", 32,
             &shared, 12, 0, native_rate(native_columns, 14), d);
  kernel_row(dev, bench_load(dev, a, "atomics.ptx", "adds", d), "atomics", 32, &shared, 12, 0,
             native_rate(native_adds, 6), d);
  printf("\n");
  bench_head("GFLOP/s");
  double native = native_attention_seconds();
  attention(s, dev, a, "prefill_wgmma", 1, native, d);
  attention(s, dev, a, "prefill_wgmma", 8, native, d);
  attention(s, dev, a, "prefill_mma", 1, native, d);
  device_close(dev);
  session_close(s);
  arena_free(a);
  diag_free(d);
  return 0;
}
