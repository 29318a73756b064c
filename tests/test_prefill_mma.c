// prefill_mma verified on the interpreter: every head_dim, tile and stage count, lengths near the
// edges of tiles, and sanitized in several schedules.
#include <math.h>

#include "verify_data.h"
#include "verify_kit.h"

static void judge(Fixture *f, const char *params, const char *problem, const VerifyOpts *opts,
                  Status want) {
  fixture_verify(f, "prefill_mma", params, problem, opts, want);
}

static void pass(Fixture *f, const char *params, const char *problem) {
  VerifyOpts opts = {.seed = 3, .threads = 2};
  judge(f, params, problem, &opts, ST_OK);
}

// The defaults of every head_dim, both types, causal and not, grouped heads.
static void every_head_dim(void **state) {
  static const int dims[] = {32, 64, 96, 128, 192, 256};
  for (int i = 0; i < 6; i++)
    for (int causal = 0; causal < 2; causal++) {
      Fixture *f = *state;
      pass(f, arena_printf(f->a, "head_dim=%d", dims[i]),
           arena_printf(f->a, "b=2,hq=3,hkv=1,sq=70,sk=133,d=%d,causal=%d,dtype=%s", dims[i],
                        causal, i % 2 ? "f16" : "bf16"));
    }
}

// fp32 as sums of two tf32: rows of one and of many groups of chunks; a negative scale.
static void split_tf32(void **state) {
  static const int dims[] = {32, 64, 96, 128, 192, 256};
  Fixture *f = *state;
  for (int i = 0; i < 6; i++)
    pass(
        f, arena_printf(f->a, "head_dim=%d", dims[i]),
        arena_printf(f->a, "b=2,hq=3,hkv=1,sq=70,sk=133,d=%d,causal=%d,dtype=f32", dims[i], i % 2));
  pass(f, "tile_q=64 tile_k=32 stages=3", "b=1,hq=2,hkv=1,sq=75,sk=170,d=64,dtype=f32,causal=1");
  pass(f, "", "b=1,hq=2,sq=20,sk=90,d=64,dtype=f32,scale=-0.2");
}

static void tiles_and_stages(void **state) {
  static const char *const params[] = {
      "tile_q=32 tile_k=16 warps=2",
      "tile_q=64 tile_k=32 stages=2",
      "tile_q=64 tile_k=64 stages=4 q_regs=0",
      "tile_q=128 tile_k=32 stages=3 q_regs=1",
      "tile_q=192 tile_k=96",
      "tile_q=128 tile_k=128 warps=8 lazy=0",
  };
  for (size_t i = 0; i < sizeof params / sizeof *params; i++)
    pass(*state, params[i], "b=1,hq=2,hkv=1,sq=201,sk=170,d=64,dtype=f16,causal=1");
}

// One key or query less or more than a tile; more queries than keys; nothing at all.
static void lengths_near_the_edges(void **state) {
  static const int edges[] = {1, 15, 16, 17, 31, 32, 33, 63, 64, 65};
  Fixture *f = *state;
  for (int i = 0; i < 10; i++) {
    pass(f, "tile_q=32 tile_k=16 warps=2",
         arena_printf(f->a, "b=1,hq=2,sq=%d,sk=%d,d=32,dtype=bf16,causal=%d", edges[9 - i],
                      edges[i], i % 2));
    pass(f, "tile_q=32 tile_k=32 warps=2 stages=3",
         arena_printf(f->a, "b=1,hq=2,sq=33,sk=%d,d=32,dtype=f16,causal=%d", edges[i], 1 - i % 2));
  }
  pass(f, "", "b=2,hq=2,sq=3,sk=0,d=64,dtype=f16");
  pass(f, "", "b=2,hq=2,sq=0,sk=5,d=64,dtype=f16");
  pass(f, "", "b=0,hq=2,sq=3,sk=5,d=64,dtype=f16");
}

// A scale below zero turns the order of the scores, and one of zero makes them equal.
static void any_scale(void **state) {
  pass(*state, "", "b=1,hq=2,sq=20,sk=90,d=64,dtype=bf16,scale=-0.2");
  pass(*state, "q_regs=0", "b=1,hq=2,sq=20,sk=90,d=64,dtype=bf16,scale=-0.2,causal=1");
  pass(*state, "", "b=1,hq=2,sq=20,sk=90,d=64,dtype=f16,scale=0");
}

// Infinities of K and V: a weight of 0 where the score is -inf, NaN where it is +inf, an infinite
// output; the other rows and columns as ever.
static void infinities(void **state) {
  Fixture *f = *state;
  static const char *const problems[] = {"b=1,hq=2,hkv=1,sq=45,sk=75,d=64,causal=1,dtype=f32",
                                         "b=1,hq=2,sq=45,sk=75,d=64,dtype=f32",
                                         "b=1,hq=2,sq=45,sk=75,d=64,dtype=bf16"};
  for (int i = 0; i < 3; i++) {
    AttnInputs in = {0};
    Problem *p;
    if (problem_parse(f->a, problems[i], &p, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
    assert_int_equal(inputs_make(p, p->dtype, FILL_NAN, &in, f->d), ST_OK);
    inputs_fill_random(&in, 5);
    host_set(&in.k, 0, 40, 0, 3, -INFINITY); // some rows see it, with causal
    host_set(&in.v, 0, 5, 0, 7, INFINITY); // and all this
    VerifyOpts opts = {.seed = 3, .threads = 2, .real = &in};
    judge(f, "tile_q=32 tile_k=16 warps=2", problems[i], &opts, ST_OK);
    inputs_free(&in);
  }
}

static void what_is_refused(void **state) {
  VerifyOpts opts = {.seed = 3, .threads = 2};
  judge(*state, "", "b=1,hq=1,sq=1,sk=1,d=64,dtype=f64", &opts, ST_INPUT);
  judge(*state, "split=0", "b=1,hq=1,sq=1,sk=1,d=64,dtype=f32", &opts, ST_INPUT);
  judge(*state, "split=1", "b=1,hq=1,sq=1,sk=1,d=64,dtype=f16", &opts, ST_INPUT);
  judge(*state, "", "b=1,hq=1,sq=1,sk=1,d=80,dtype=f16", &opts, ST_INPUT);
  judge(*state, "tile_q=32 warps=4", "b=1,hq=1,sq=1,sk=1,d=64,dtype=f16", &opts, ST_INPUT);
  judge(*state, "tile_q=256 tile_k=128 stages=2", "b=1,hq=1,sq=1,sk=1,d=256,dtype=f16", &opts,
        ST_INPUT);
}

static void sanitized(void **state) {
  static const char *const params[] = {
      "tile_q=32 tile_k=16 warps=2 stages=1", "tile_q=32 tile_k=16 warps=2 stages=2 q_regs=0",
      "tile_q=64 tile_k=32 warps=4 stages=3", "tile_q=32 tile_k=16 warps=2 stages=2 dtype=f32"};
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof params / sizeof *params; i++)
    for (uint64_t seed = 1; seed <= 3; seed++) {
      device_sim_opts(f->sim, &(SimOpts){.threads = 1, .sanitize = true, .seed = seed});
      VerifyOpts opts = {.seed = seed, .threads = 2, .sanitize = true, .schedule = seed};
      judge(f, params[i],
            arena_printf(f->a, "b=1,hq=2,hkv=1,sq=40,sk=75,d=64,dtype=%s,causal=%d",
                         i == 3 ? "f32" : "bf16", (int)i & 1),
            &opts, ST_OK);
    }
  device_sim_opts(f->sim, &(SimOpts){.threads = 0});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_head_dim),   cmocka_unit_test(split_tf32),
      cmocka_unit_test(tiles_and_stages), cmocka_unit_test(lengths_near_the_edges),
      cmocka_unit_test(any_scale),        cmocka_unit_test(infinities),
      cmocka_unit_test(what_is_refused),  cmocka_unit_test(sanitized),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
