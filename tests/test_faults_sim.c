// Faults that attention kernels of the field were reported for, each with the smallest input that
// shows it and the right answer, on every kernel that could have it.  docs/verification.md has the
// table of kinds.
#include <stdlib.h>

#include "reference.h"
#include "verify_kit.h"
#include "verify_run.h"

typedef struct Bench {
  Fixture f;
  Problem *p;
  DeviceRun run;
  Runner runner;
  AttnInputs in;
  Outputs out;
} Bench;

static int setup(void **state) {
  Bench *b = test_calloc(1, sizeof *b);
  fixture_open(&b->f);
  *state = b;
  return 0;
}

static void drop(Bench *b) {
  inputs_free(&b->in);
  outputs_free(&b->out);
  operator_free(b->run.op);
  b->run.op = NULL;
}

static int teardown(void **state) {
  Bench *b = *state;
  drop(b);
  fixture_close(&b->f);
  test_free(b);
  return 0;
}

// A kernel for a problem, and inputs of the right shapes full of zeros.
static void start(Bench *x, const char *name, const char *problem) {
  Fixture *f = &x->f;
  drop(x);
  x->p = fixture_problem(f, problem);
  x->run = (DeviceRun){.dev = f->sim};
  fixture_ok(f, operator_make(f->s, name, NULL, x->p, NULL, &x->run.op, f->d));
  fixture_ok(f, operator_load(x->run.op, f->sim, f->d));
  fixture_ok(f, runner_of_operator(&x->run, &x->runner, f->d));
  fixture_ok(f, inputs_make(x->p, x->runner.in_dtype, FILL_ZERO, &x->in, f->d));
}

static void launch(Bench *x) {
  outputs_free(&x->out);
  if (x->runner.run(&x->run, x->p, &x->in, 0, &x->out, x->f.d) != ST_OK)
    fail_msg("%s", diag_text(x->f.d));
  if (x->out.damaged) fail_msg("%s", x->out.note);
}

static double o_at(Bench *x, int64_t b, int64_t i, int64_t h, int64_t e) {
  return host_get(&x->out.o, b, i, h, e);
}

static double lse_at(Bench *x, int64_t b, int64_t h, int64_t i) {
  return host_get(&x->out.lse, b, h, i, 0);
}

static void fill_row(HostTensor *t, int64_t b, int64_t s, int64_t h, double to) {
  for (int64_t e = 0; e < t->t.shape[3]; e++) host_set(t, b, s, h, e, to);
}

static const char *const kernels[] = {"prefill_thread", "decode_splitk"};
#define EACH_KERNEL(k) for (int k = 0; k < 2; k++)

// 128 x 64 x 64 = 524288 does not fit f16; the two keys weigh the same.
static void large_f16_scores(void **state) {
  Bench *x = *state;
  EACH_KERNEL(k) {
    start(x, kernels[k], "hq=1,sq=1,sk=2,d=128,dtype=f16");
    fill_row(&x->in.q, 0, 0, 0, 64);
    for (int j = 0; j < 2; j++) {
      fill_row(&x->in.k, 0, j, 0, 64);
      fill_row(&x->in.v, 0, j, 0, 1 + j);
    }
    launch(x);
    assert_true(o_at(x, 0, 0, 0, 100) == 1.5);
    assert_true(isfinite(lse_at(x, 0, 0, 0)));
  }
}

// Q = 0, V one-hot, 2 queries and 5 keys: the rows average 4 and 5 keys (top-left: 1 and 2).
static void causal_is_bottom_right(void **state) {
  Bench *x = *state;
  EACH_KERNEL(k) {
    start(x, kernels[k], "hq=1,sq=2,sk=5,d=32,causal=1");
    for (int64_t j = 0; j < 5; j++) host_set(&x->in.v, 0, j, 0, j, 1);
    launch(x);
    for (int64_t j = 0; j < 5; j++) {
      assert_true(o_at(x, 0, 0, 0, j) == (j < 4 ? 0.25 : 0));
      assert_true(fabs(o_at(x, 0, 1, 0, j) - 0.2) < 1e-7);
    }
  }
}

// Two queries at once are two single queries, one key apart.
static void key_offset_of_a_late_query(void **state) {
  Bench *x = *state;
  EACH_KERNEL(k) {
    double both[2][32];
    start(x, kernels[k], "hq=1,sq=2,sk=9,d=32,causal=1");
    inputs_fill_random(&x->in, 3);
    launch(x);
    for (int i = 0; i < 2; i++)
      for (int e = 0; e < 32; e++) both[i][e] = o_at(x, 0, i, 0, e);
    for (int i = 0; i < 2; i++) {
      AttnInputs two;
      start(x, kernels[k], "hq=1,sq=2,sk=9,d=32,causal=1");
      two = x->in;
      x->in = (AttnInputs){0};
      inputs_fill_random(&two, 3);
      start(x, kernels[k], i ? "hq=1,sq=1,sk=9,d=32" : "hq=1,sq=1,sk=8,d=32");
      for (int64_t e = 0; e < 32; e++) {
        host_set(&x->in.q, 0, 0, 0, e, host_get(&two.q, 0, i, 0, e));
        for (int64_t j = 0; j < 8 + i; j++) {
          host_set(&x->in.k, 0, j, 0, e, host_get(&two.k, 0, j, 0, e));
          host_set(&x->in.v, 0, j, 0, e, host_get(&two.v, 0, j, 0, e));
        }
      }
      inputs_free(&two);
      launch(x);
      for (int e = 0; e < 32; e++) assert_true(fabs(o_at(x, 0, 0, 0, e) - both[i][e]) < 1e-6);
    }
  }
}

// Key 1 is masked for query 0: its NaN must not get into row 0, which is V[0] to the bit.
static void a_masked_nan_key(void **state) {
  Bench *x = *state;
  EACH_KERNEL(k) {
    start(x, kernels[k], "hq=1,sq=2,sk=2,d=32,causal=1");
    inputs_fill_random(&x->in, 4);
    fill_row(&x->in.k, 0, 1, 0, NAN);
    launch(x);
    for (int64_t e = 0; e < 32; e++) {
      assert_true(o_at(x, 0, 0, 0, e) == host_get(&x->in.v, 0, 0, 0, e));
      assert_true(isnan(o_at(x, 0, 1, 0, e)));
    }
  }
}

// Scores live in the upper half of head_dim alone.
static void the_upper_half_of_head_dim(void **state) {
  Bench *x = *state;
  EACH_KERNEL(k) {
    start(x, kernels[k], "hq=1,sq=1,sk=2,d=128,scale=1");
    host_set(&x->in.q, 0, 0, 0, 127, 1);
    host_set(&x->in.k, 0, 0, 0, 127, 20);
    fill_row(&x->in.v, 0, 0, 0, 3);
    fill_row(&x->in.v, 0, 1, 0, -1);
    launch(x);
    assert_true(fabs(o_at(x, 0, 0, 0, 5) - 3) < 1e-6);
  }
}

// Natural logarithm: one key of score x gives LSE = x; n equal keys of score 0 give ln n.
static void lse_is_natural(void **state) {
  Bench *x = *state;
  EACH_KERNEL(k) {
    start(x, kernels[k], "hq=1,sq=1,sk=1,d=32,scale=1");
    host_set(&x->in.q, 0, 0, 0, 0, 3.5);
    host_set(&x->in.k, 0, 0, 0, 0, 2);
    launch(x);
    assert_true(fabs(lse_at(x, 0, 0, 0) - 7) < 2e-6);
    start(x, kernels[k], "hq=1,sq=1,sk=10,d=32");
    launch(x);
    assert_true(fabs(lse_at(x, 0, 0, 0) - log(10)) < 1e-6);
  }
}

// One chunk's scores are 80 above the other's: merged, the smaller one vanishes without overflow.
static void chunks_far_apart(void **state) {
  Bench *x = *state;
  for (int high = 0; high < 2; high++) {
    start(x, "decode_splitk", "hq=1,sq=1,sk=512,d=32,scale=1,chunks=2");
    host_set(&x->in.q, 0, 0, 0, 0, 1);
    for (int64_t j = 0; j < 512; j++) {
      bool upper = (j >= 256) == high;
      host_set(&x->in.k, 0, j, 0, 0, upper ? 80 : 0);
      fill_row(&x->in.v, 0, j, 0, upper ? 1 : -1000);
    }
    launch(x);
    assert_true(o_at(x, 0, 0, 0, 9) == 1);
    assert_true(fabs(lse_at(x, 0, 0, 0) - (80 + log(256))) < 2e-5);
  }
}

// V is the batch's number: a combine without its batch offset mixes them.
static void each_batch_its_own(void **state) {
  Bench *x = *state;
  for (int batches = 2; batches <= 3; batches++) {
    start(x, "decode_splitk", arena_printf(x->f.a, "b=%d,hq=2,sq=2,sk=70,d=32,chunks=2", batches));
    for (int64_t b = 0; b < batches; b++)
      for (int64_t j = 0; j < 70; j++)
        for (int64_t h = 0; h < 2; h++) fill_row(&x->in.v, b, j, h, (double)(10 * b + h + 1));
    launch(x);
    for (int64_t b = 0; b < batches; b++)
      for (int64_t i = 0; i < 2; i++)
        for (int64_t h = 0; h < 2; h++)
          assert_true(o_at(x, b, i, h, 31) == (double)(10 * b + h + 1));
  }
}

// Heads that share memory (stride 0) are heads with equal contents.
static void a_head_stride_of_zero(void **state) {
  Bench *x = *state;
  EACH_KERNEL(k) {
    double want[2][2];
    for (int zero = 0; zero < 2; zero++) {
      start(x, kernels[k], "hq=2,hkv=2,sq=1,sk=33,d=128,dtype=bf16");
      inputs_fill_random(&x->in, 6);
      for (int64_t j = 0; j < 33; j++)
        for (int64_t e = 0; e < 128; e++) {
          host_set(&x->in.k, 0, j, 1, e, host_get(&x->in.k, 0, j, 0, e));
          host_set(&x->in.v, 0, j, 1, e, host_get(&x->in.v, 0, j, 0, e));
        }
      if (zero) x->in.k.t.stride[2] = x->in.v.t.stride[2] = 0;
      launch(x);
      for (int h = 0; h < 2; h++) {
        if (!zero) want[h][0] = o_at(x, 0, 0, h, 0), want[h][1] = o_at(x, 0, 0, h, 127);
        assert_true(o_at(x, 0, 0, h, 0) == want[h][0]);
        assert_true(o_at(x, 0, 0, h, 127) == want[h][1]);
      }
    }
  }
}

// K rows 1 element (2 bytes) further apart than 16-byte loads can take: refused by name before the
// launch, right with scalar loads, and the device still works.
static void unaligned_rows(void **state) {
  Bench *x = *state;
  EACH_KERNEL(k) {
    for (int vec = 8; vec >= 1; vec -= 7) {
      start(x, kernels[k], "hq=1,sq=1,sk=5,d=32,dtype=bf16");
      Params params = {0};
      params_set(x->f.a, &params, "vec", vec == 8 ? "8" : "1");
      operator_free(x->run.op);
      assert_int_equal(operator_make(x->f.s, kernels[k], &params, x->p, NULL, &x->run.op, x->f.d),
                       ST_OK);
      assert_int_equal(operator_load(x->run.op, x->f.sim, x->f.d), ST_OK);
      host_tensor_free(&x->in.k);
      int64_t shape[4] = {1, 5, 1, 32};
      Layout odd = {{0, 1, 2}, 2};
      assert_int_equal(host_tensor_make(&x->in.k, DT_BF16, 4, shape, &odd, FILL_NAN, x->f.d),
                       ST_OK);
      inputs_fill_random(&x->in, 8);
      if (vec == 8) {
        assert_int_equal(x->runner.run(&x->run, x->p, &x->in, 0, &x->out, x->f.d), ST_INPUT);
        assert_non_null(strstr(diag_text(x->f.d), "k: stride_1 is 66 bytes, not a multiple of 16"));
        diag_reset(x->f.d);
        continue;
      }
      launch(x);
      Reference ref;
      assert_int_equal(reference_attention(x->run.op->problem, &x->in, 1, &ref, x->f.d), ST_OK);
      for (int64_t e = 0; e < 32; e++)
        assert_true(fabs(o_at(x, 0, 0, 0, e) - ref.o[e]) <= 2 * dtype_ulp(DT_BF16, 4));
      reference_free(&ref);
    }
  }
}

// ---- one workspace for many problems ------------------------------------------------------------
typedef struct Loose {
  DevPtr q, k, v, o, work;
} Loose; // buffers larger than any of the problems

static double decode_at(Bench *x, const Loose *m, const char *text) {
  Problem *p;
  assert_int_equal(problem_parse(x->f.a, text, &p, x->f.d), ST_OK);
  assert_int_equal(operator_replan(x->run.op, p, x->f.sim, NULL, x->f.d), ST_OK);
  int64_t b = problem_int(p, "b", 1), sk = problem_int(p, "sk", 1);
  Tensor q = {.dtype = DT_F32, .rank = 4, .shape = {b, 2, 2, 32}, .data = m->q}, o = q;
  Tensor k = {.dtype = DT_F32, .rank = 4, .shape = {b, sk, 2, 32}, .data = m->k}, v = k;
  tensor_dense(&q), tensor_dense(&o), tensor_dense(&k), tensor_dense(&v);
  o.data = m->o;
  v.data = m->v;
  Status st = operator_bind(x->run.op, "q", &q, x->f.d);
  if (st == ST_OK) st = operator_bind(x->run.op, "k", &k, x->f.d);
  if (st == ST_OK) st = operator_bind(x->run.op, "v", &v, x->f.d);
  if (st == ST_OK) st = operator_bind(x->run.op, "o", &o, x->f.d);
  if (st == ST_OK) st = operator_bind_workspace(x->run.op, m->work, 1 << 22, x->f.d);
  if (st == ST_OK) st = operator_launch(x->run.op, x->f.sim, x->f.d);
  if (st == ST_OK) st = device_sync(x->f.sim, x->f.d);
  float last;
  if (st == ST_OK)
    st = device_read(x->f.sim, &last, m->o + 4 * (uint64_t)(b * 2 * 2 * 32 - 1), 4, x->f.d);
  if (st != ST_OK) fail_msg("%s", diag_text(x->f.d));
  return last;
}

// 33 batches, twice, then a larger and a smaller problem in the same memory, first full of 0xFF:
// V is 7 everywhere, so every answer is 7.
static void a_workspace_used_again(void **state) {
  Bench *x = *state;
  start(x, "decode_splitk", "b=1,hq=2,sq=2,sk=4,d=32");
  Loose m;
  DevPtr *all[] = {&m.q, &m.k, &m.v, &m.o, &m.work};
  for (int i = 0; i < 5; i++) {
    assert_int_equal(device_alloc(x->f.sim, 1 << 22, "memory", all[i], x->f.d), ST_OK);
    uint32_t word = i < 2 ? 0 : i == 2 ? 0x40e00000 : 0xffffffff;
    assert_int_equal(device_fill32(x->f.sim, *all[i], word, 1 << 22, x->f.d), ST_OK);
  }
  const char *problems[] = {
      "b=33,hq=2,sq=2,sk=40,chunks=3,d=32", "b=33,hq=2,sq=2,sk=40,chunks=3,d=32",
      "b=40,hq=2,sq=2,sk=60,chunks=8,d=32", "b=2,hq=2,sq=2,sk=3,chunks=2,d=32"};
  for (int i = 0; i < 4; i++) assert_true(decode_at(x, &m, problems[i]) == 7);
  for (int i = 0; i < 5; i++) device_free(x->f.sim, *all[i]);
}

// Every length around the places where tiles, chunks and turns of the loop end.
static void every_length_near_an_edge(void **state) {
  Bench *x = *state;
  static const int lengths[] = {1,  9,   12,  15,  16,  17,  31,  32,   33,   63,  64,
                                65, 127, 128, 129, 255, 256, 257, 1017, 1024, 1033};
  EACH_KERNEL(k) for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
    int sk = lengths[n];
    start(x, kernels[k], arena_printf(x->f.a, "hq=2,hkv=1,sq=1,sk=%d,d=32", sk));
    for (int64_t j = 0; j < sk; j++) {
      host_set(&x->in.v, 0, j, 0, 0, 1);                              // counts the keys
      host_set(&x->in.v, 0, j, 0, 1, j % 2 ? -1 - j / 2 : 1 + j / 2); // each key, in pairs
      host_set(&x->in.v, 0, j, 0, 2, j == sk - 1);                    // the last key alone
    }
    launch(x);
    assert_true(o_at(x, 0, 0, 1, 0) == 1);
    double odd = sk % 2 ? (1 + sk / 2) / (double)sk : 0;
    assert_true(fabs(o_at(x, 0, 0, 1, 1) - odd) <= 1e-7 * odd);
    assert_true(fabs(o_at(x, 0, 0, 1, 2) * sk - 1) < 1e-6);
  }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(large_f16_scores), T(causal_is_bottom_right),     T(key_offset_of_a_late_query),
      T(a_masked_nan_key), T(the_upper_half_of_head_dim), T(lse_is_natural),
      T(chunks_far_apart), T(each_batch_its_own),         T(a_head_stride_of_zero),
      T(unaligned_rows),   T(a_workspace_used_again),     T(every_length_near_an_edge),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
