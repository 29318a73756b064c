// Rates of the tensor cores' products: mma.sync and wgmma through the interpreter (the threads of
// the host, and what the sanitizer costs), then wgmma's core alone in each host instruction set;
// beside a native loop of single-precision multiply-adds on tiles of the same size in the same run.
#include "bench_kit.h"
#include "sim_lanes.h"

// d[64][n] += a[64][16] b[16][n]: what the compiler makes of it.
BENCH_NATIVE static void native_tile(float *restrict d, const float *restrict a,
                                     const float *restrict b, int n) {
  for (int row = 0; row < 64; row++)
    for (int k = 0; k < 16; k++) {
      float x = a[row * 16 + k];
      for (int i = 0; i < n; i++)
        d[row * n + i] += x * b[k * n + i];
    }
}

static double native_rate(void) {
  enum { N = 128, TURNS = 100, WINDOWS = 20 };
  static float d[64 * N], a[64 * 16], b[16 * N];
  for (int i = 0; i < 64 * 16; i++)
    a[i] = 1;
  for (int i = 0; i < 16 * N; i++)
    b[i] = 1;
  double best = 0;
  for (int window = 0; window < WINDOWS; window++) {
    double t = bench_now();
    for (int i = 0; i < TURNS; i++)
      native_tile(d, a, b, N);
    double rate = 2.0 * 64 * N * 16 * TURNS / (bench_now() - t);
    best = rate > best ? rate : best;
  }
  return best;
}

// m64n128: every K step converts its B once and the A of each warp.
enum { BLOCKS = 16 };
typedef struct Step {
  MatrixA a;
  MatrixB b[BLOCKS];
  float acc[4][BLOCKS][4][32];
} Step;

static void wgmma_step(const MatrixIsa *isa, Step *s, MatrixType t, int k, const MatrixRule *rule,
                       const uint32_t *const *words) {
  for (int n = 0; n < BLOCKS; n++)
    isa->load_b(&s->b[n], t, k, words);
  for (int warp = 0; warp < 4; warp++) {
    isa->load_a(&s->a, t, k, words);
    for (int n = 0; n < BLOCKS; n++) {
      float(*acc)[32] = s->acc[warp][n], *d[4] = {acc[0], acc[1], acc[2], acc[3]};
      isa->multiply(rule, k, &s->a, &s->b[n], (const float *const *)d, d);
    }
  }
}

static double wgmma_rate(const MatrixIsa *isa, MatrixType t, int k, MatrixRuleId rule) {
  enum { WINDOWS = 20, TURNS = 100 };
  static Step s __attribute__((aligned(64)));
  static uint32_t words[4][32] __attribute__((aligned(64)));
  for (int i = 0; i < 128; i++)
    words[i >> 5][i & 31] = ((uint32_t)i * 0x01010101u & 0x0f0f0f0fu) | 0x30303030u;
  const uint32_t *w[4] = {words[0], words[1], words[2], words[3]};
  double best = 0;
  for (int window = 0; window < WINDOWS; window++) {
    memset(s.acc, 0, sizeof s.acc);
    double start = bench_now();
    for (int turn = 0; turn < TURNS; turn++)
      wgmma_step(isa, &s, t, k, &matrix_rules[rule], w);
    double rate = 2.0 * 64 * BLOCKS * 8 * k * TURNS / (bench_now() - start);
    best = rate > best ? rate : best;
  }
  return best;
}

// ---- kernels ------------------------------------------------------------------------------------
static void kernel_row(Device *dev, Arena *a, const char *kind, const char *entry, uint32_t loops,
                       double target, double native, Diag *d) {
  enum { BLOCKS = 4, THREADS = 128 };
  struct { DevPtr out; uint32_t n; } args = {0, loops};
  Kernel *k = bench_load(dev, a, arena_printf(a, "%s.ptx", kind), entry, d);
  bench_check(device_alloc(dev, BLOCKS * THREADS * 4, "out", &args.out, d), d);
  BenchKernel work = {{.kernel = k, .grid = {BLOCKS, 1, 1}, .block = {THREADS, 1, 1},
                       .args = &args, .arg_bytes = 12}};
  BenchRun run = {dev, d, bench_launch, &work};
  bench_row(&run, &(BenchRow){.name = arena_printf(a, "%s %s", kind, entry),
                              .work = bench_count(&run, true), .scale = 1e9, .target = target,
                              .native = native / 1e9});
}

static void kernels(double native) {
  static const char *const mma[] = {"f16", "f16_half", "bf16", "tf32", "e4m3"};
  static const char *const wgmma[] = {"f16", "bf16", "tf32", "e4m3"};
  Diag *d = diag_new();
  Arena *a = arena_new();
  Device *dev;
  bench_check(device_open("sim", &dev, d), d);
  bench_head("GFLOP/s");
  for (size_t i = 0; i < sizeof mma / sizeof *mma; i++)
    kernel_row(dev, a, "mma", mma[i], 500, 4, native, d);
  for (size_t i = 0; i < sizeof wgmma / sizeof *wgmma; i++)
    kernel_row(dev, a, "wgmma", wgmma[i], 50, 8, native, d);
  device_close(dev);
  arena_free(a);
  diag_free(d);
}

int main(void) {
  static const struct { const char *name; MatrixType t; int k; MatrixRuleId rule; } wgmma[] = {
      {"f16, f32 sums", MATRIX_F16, 16, MATRIX_RULE_F32},
      {"bf16, f32 sums", MATRIX_BF16, 16, MATRIX_RULE_F32},
      {"f16, f16 sums", MATRIX_F16, 16, MATRIX_RULE_F16},
      {"tf32", MATRIX_TF32, 8, MATRIX_RULE_F32},
      {"e4m3, f32 sums", MATRIX_E4M3, 32, MATRIX_RULE_WGMMA8_F32},
  };
  double native = native_rate();
  kernels(native);
  printf("\n");
  const char *const sets[] = {"baseline", "avx2", "avx512"};
  for (int s = 0; s < 3; s++) {
    const LaneIsa *isa = lane_isa(sets[s]);
    for (size_t i = 0; isa && i < sizeof wgmma / sizeof *wgmma; i++) {
      double r = wgmma_rate(isa->matrix, wgmma[i].t, wgmma[i].k, wgmma[i].rule);
      printf("wgmma core %-8s %-14s %6.2f GFLOP/s  %.2f of native\n", sets[s], wgmma[i].name,
             r / 1e9, r / native);
    }
  }
  return 0;
}
