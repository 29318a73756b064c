// The ceiling kernels on sim: every variant, sizes with and without tails, any grid.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench.h"

typedef struct Setup {
  Diag *d;
  Session *s;
  Device *dev;
} Setup;

static void must(const Setup *u, Status st) {
  if (st) fail_msg("%s", diag_text(u->d));
}

static Setup on_sim(void) {
  Setup u = {.d = diag_new()};
  u.s = session_open(NULL, u.d);
  must(&u, device_open("sim", &u.dev, u.d));
  device_sim_opts(u.dev, &(SimOpts){.counters = true});
  return u;
}

static void close_setup(Setup *u) {
  device_close(u->dev);
  session_close(u->s);
  diag_free(u->d);
}

enum { MOST = 9000, GRIDS = 3 };
static const int64_t sizes[] = {1, 3, 511, 512, 513, 2048, 2 * 2048 + 5, MOST};
static const uint32_t grids[GRIDS] = {1, 2, 7};

static uint32_t word(int64_t i) { return (uint32_t)i * 2654435761u + 12345u; }

static DevPtr words_on(const Setup *u, int64_t n) {
  uint32_t *w = malloc(4 * (size_t)n);
  DevPtr p;
  for (int64_t i = 0; i < n; i++) w[i] = word(i);
  must(u, device_alloc(u->dev, 4 * (uint64_t)n, "words", &p, u->d)); // exact: sim traps beyond it
  must(u, device_write(u->dev, p, w, 4 * (uint64_t)n, u->d));
  free(w);
  return p;
}

static void read_once(const Setup *u, const char *params, DevPtr src, int64_t n, uint32_t grid) {
  DevPtr sums;
  Operator *op;
  uint32_t got[7], total = 0, want = 0;
  for (int64_t i = 0; i < n; i++) want += word(i);
  must(u, device_alloc(u->dev, 4 * grid, "sums", &sums, u->d));
  must(u, ceiling_read_make(u->s, u->dev, params, src, n, sums, grid, &op, u->d));
  must(u, operator_launch(op, u->dev, u->d));
  must(u, device_sync(u->dev, u->d));
  must(u, device_read(u->dev, got, sums, 4 * grid, u->d));
  for (uint32_t i = 0; i < grid; i++) total += got[i];
  if (total != want) fail_msg("%s, %lld words, grid %u", params, (long long)n, grid);
  operator_free(op);
  device_free(u->dev, sums);
}

static void read_sums_every_word_once(void **state) {
  (void)state;
  Setup u = on_sim();
  static const char *const variants[] = {
      "unroll=1 block=128 hint=plain walk=stride",
      "unroll=1 block=128 hint=nc walk=chunk",
      "unroll=4 block=128 hint=no_allocate walk=stride",
      "unroll=4 block=128 hint=prefetch walk=chunk",
      "unroll=16 block=128 hint=plain walk=chunk",
      "unroll=2 block=1024 hint=nc walk=stride",
  };
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    DevPtr src = words_on(&u, sizes[s]);
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
      for (int g = 0; g < GRIDS; g++) read_once(&u, variants[v], src, sizes[s], grids[g]);
    device_free(u.dev, src);
  }
  close_setup(&u);
}

static Tensor tensor1(Dtype t, int64_t n, DevPtr p) {
  return (Tensor){.dtype = t, .rank = 1, .shape = {n}, .stride = {1}, .data = p};
}

static void copy_copies_every_word(void **state) {
  (void)state;
  Setup u = on_sim();
  uint32_t got[MOST];
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int g = 0; g < GRIDS; g++) {
      int64_t n = sizes[s];
      Problem p = {.arena = u.d->arena, .name = ""};
      Params params = {0};
      Operator *op;
      DevPtr dst, src = words_on(&u, n);
      PlanOpts plan = {.grid = grids[g]};
      problem_set_int(&p, "words", n);
      params_set(u.d->arena, &params, "block", "128");
      params_set(u.d->arena, &params, "hint", g ? "plain" : "no_allocate");
      must(&u, device_alloc(u.dev, 4 * (uint64_t)n, "dst", &dst, u.d));
      must(&u, operator_make(u.s, "ceiling_copy", &params, &p, &plan, &op, u.d));
      must(&u, operator_load(op, u.dev, u.d));
      must(&u, operator_plan(op, u.dev, &plan, u.d));
      Tensor from = tensor1(DT_I32, n, src), to = tensor1(DT_I32, n, dst);
      must(&u, operator_bind(op, "src", &from, u.d));
      must(&u, operator_bind(op, "dst", &to, u.d));
      must(&u, operator_launch(op, u.dev, u.d));
      must(&u, device_read(u.dev, got, dst, 4 * (uint64_t)n, u.d));
      for (int64_t i = 0; i < n; i++) assert_int_equal(got[i], word(i));
      operator_free(op);
      device_free(u.dev, src);
      device_free(u.dev, dst);
    }
  close_setup(&u);
}

static void fma_is_exact_and_counted(void **state) {
  (void)state;
  Setup u = on_sim();
  enum { THREADS = 700, ROUNDS = 3 };
  float got[THREADS];
  Problem p = {.arena = u.d->arena, .name = ""};
  Operator *op;
  DevPtr out;
  PlanOpts plan = {.grid = 2}; // 700 threads in 256-blocks: both stride, the last one half empty
  problem_set_int(&p, "threads", THREADS);
  problem_set_int(&p, "rounds", ROUNDS);
  problem_set_float(&p, "a", 1);
  problem_set_float(&p, "b", 1);
  must(&u, device_alloc(u.dev, sizeof got, "out", &out, u.d));
  must(&u, operator_make(u.s, "ceiling_fma", NULL, &p, &plan, &op, u.d));
  must(&u, operator_load(op, u.dev, u.d));
  must(&u, operator_plan(op, u.dev, &plan, u.d));
  Tensor t = tensor1(DT_F32, THREADS, out);
  must(&u, operator_bind(op, "out", &t, u.d));
  Counters c;
  device_counters(u.dev, &c, true);
  must(&u, operator_launch(op, u.dev, u.d));
  must(&u, device_read(u.dev, got, out, sizeof got, u.d));
  device_counters(u.dev, &c, true);
  // 8 chains, 32 steps a round: c + 96 each, and 0 + 1 + ... + 7.
  for (int i = 0; i < THREADS; i++) assert_true(got[i] == 8 * 96 + 28);
  assert_int_equal(c.flops, (uint64_t)THREADS * (8 * 96 * 2 + 7)); // and the sum's 7 additions
  operator_free(op);
  close_setup(&u);
}

static void measured_on_sim_is_modelled_but_checked(void **state) {
  (void)state;
  Setup u = on_sim();
  Ceiling c, again;
  must(&u, ceiling_measure(u.s, u.dev, 5 << 20, &c, u.d));
  assert_true(c.modelled);
  assert_int_equal(c.bytes, 1 << 20); // on sim a small size stands for all
  assert_true(c.read_gbs == 4491 && c.copy_gbs == 4283);
  assert_true(c.fma_gflops > 66908 && c.fma_gflops < 66909); // 132 SMs x 128 x 2 x 1.98 GHz
  Counters count;
  device_counters(u.dev, &count, true);
  must(&u, ceiling_measure(u.s, u.dev, 1 << 20, &again, u.d)); // remembered: nothing is launched
  device_counters(u.dev, &count, true);
  assert_int_equal(count.warp_insts, 0);
  assert_true(again.read_gbs == c.read_gbs);
  close_setup(&u);
}

// Turns of 8 products.  700 threads are three blocks of 256, the last one half kept; 100 turns in
// e4m3 add 25,600 to an element, more than an accumulator of 8-bit products can hold (2^14).
static void products_are_exact_and_counted(void **state) {
  (void)state;
  enum { MOST = 700 };
  static const struct {
    const char *name, *dtype;
    int threads, rounds, blocks;
    double sum; // elements of a thread x rounds x steps x depth
    uint64_t flops;
    FlopKind kind;
  } cases[] = {
      {"ceiling_wgmma", "e4m3", 256, 100, 1, 128.0 * 100 * 8 * 32,
       2ull * 100 * 8 * 64 * 256 * 32 * 2, FLOP_TENSOR_F8},
      {"ceiling_wgmma", "f32", 700, 5, 3, 128.0 * 5 * 8 * 8,
       3ull * 2 * 5 * 8 * 64 * 256 * 8 * 2, FLOP_TENSOR_TF32},
      {"ceiling_mma", "bf16", 700, 5, 3, 8 * 4.0 * 5 * 8 * 16,
       3ull * 8 * 5 * 8 * 8 * 16 * 8 * 16 * 2, FLOP_TENSOR_BF16},
      {"ceiling_mma", "f32", 700, 5, 3, 8 * 4.0 * 5 * 8 * 8,
       3ull * 8 * 5 * 8 * 8 * 16 * 8 * 8 * 2, FLOP_TENSOR_TF32},
      {"ceiling_mma", "e4m3", 700, 5, 3, 4 * 4.0 * 5 * 8 * 32, // its operands are made at run time
       3ull * 8 * 5 * 8 * 4 * 16 * 8 * 32 * 2, FLOP_TENSOR_F8},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    Setup u = on_sim();
    float got[MOST];
    int threads = cases[k].threads;
    Params params = {0};
    Problem p = {.arena = u.d->arena, .name = ""};
    Operator *op;
    DevPtr out;
    params_set(u.d->arena, &params, "dtype", cases[k].dtype);
    problem_set_int(&p, "threads", threads);
    problem_set_int(&p, "rounds", cases[k].rounds);
    must(&u, device_alloc(u.dev, sizeof got, "out", &out, u.d));
    must(&u, operator_make(u.s, cases[k].name, &params, &p, NULL, &op, u.d));
    must(&u, operator_load(op, u.dev, u.d));
    must(&u, operator_plan(op, u.dev, NULL, u.d));
    Tensor t = tensor1(DT_F32, threads, out);
    must(&u, operator_bind(op, "out", &t, u.d));
    Counters c;
    device_counters(u.dev, &c, true);
    must(&u, operator_launch(op, u.dev, u.d));
    must(&u, device_read(u.dev, got, out, 4 * (uint64_t)threads, u.d));
    device_counters(u.dev, &c, true);
    for (int i = 0; i < threads; i++) assert_true(got[i] == cases[k].sum);
    assert_int_equal(c.flops_by_kind[cases[k].kind], cases[k].flops);
    assert_true(ceiling_thread_flops(op) * cases[k].blocks * 256 == (double)cases[k].flops);
    assert_true(ceiling_thread_sum(op) == cases[k].sum);
    operator_free(op);
    close_setup(&u);
  }
}

static void a_text_names_its_pipe(void **state) {
  (void)state;
  static const struct {
    const char *ptx, *name, *dtype; // name NULL: none
  } cases[] = {
      {"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {", "ceiling_wgmma", "bf16"},
      {"wgmma.mma_async.sync.aligned.m64n96k32.f32.e4m3.e4m3 {", "ceiling_wgmma", "e4m3"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {", "ceiling_mma", "f16"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {", "ceiling_mma", "f32"},
      {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 { // .f16.f16", NULL, NULL},
      {"fma.rn.f32 %f0, %f1, %f2, %f3;", NULL, NULL},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const char *name = NULL, *dtype = NULL;
    assert_int_equal(ceiling_pipe(cases[k].ptx, &name, &dtype), cases[k].name != NULL);
    if (!cases[k].name) continue;
    assert_string_equal(name, cases[k].name);
    assert_string_equal(dtype, cases[k].dtype);
  }
}

// On the interpreter the first of the variants runs alone; on a GPU the fastest is named.
static void a_pipe_names_its_variant(void **state) {
  (void)state;
  Setup u = on_sim();
  Pipe p, again;
  must(&u, ceiling_tensor(u.s, u.dev, "ceiling_mma", "f16", &p, u.d));
  assert_string_equal(p.params, "chains=8 block=256 steps=8");
  assert_string_equal(p.dtype, "f16");
  assert_true(p.gflops > 0);
  must(&u, ceiling_tensor(u.s, u.dev, "ceiling_mma", "f16", &again, u.d));
  assert_true(again.gflops == p.gflops && again.params == p.params);
  close_setup(&u);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(read_sums_every_word_once),
      cmocka_unit_test(copy_copies_every_word),
      cmocka_unit_test(fma_is_exact_and_counted),
      cmocka_unit_test(products_are_exact_and_counted),
      cmocka_unit_test(a_text_names_its_pipe),
      cmocka_unit_test(a_pipe_names_its_variant),
      cmocka_unit_test(measured_on_sim_is_modelled_but_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
