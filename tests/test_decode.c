// decode_mma, decode_span and decode_fma verified on the interpreter: every head_dim, tiles and stages, lengths
// near the edges of tiles and chunks, and sanitized in several schedules.  More on pages, lengths and
// rules is in test_decode_rules.c.
#include "verify_kit.h"

static void judge_of(Fixture *f, const char *name, const char *params, const char *problem,
                     const VerifyOpts *opts, Status want) {
  fixture_verify(f, name, params, problem, opts, want);
}

static void judge(Fixture *f, const char *params, const char *problem, const VerifyOpts *opts,
                  Status want) {
  judge_of(f, "decode_mma", params, problem, opts, want);
}

static void pass_fma(Fixture *f, const char *params, const char *problem) {
  VerifyOpts opts = {.seed = 3, .threads = 2};
  judge_of(f, "decode_fma", params, problem, &opts, ST_OK);
}

static void pass(Fixture *f, const char *params, const char *problem) {
  VerifyOpts opts = {.seed = 3, .threads = 2};
  judge(f, params, problem, &opts, ST_OK);
}

// The defaults of every head_dim, both types, causal and not, several heads and queries in a tile.
static void every_head_dim(void **state) {
  static const int dims[] = {64, 96, 128, 192, 256};
  Fixture *f = *state;
  for (int i = 0; i < 5; i++)
    for (int causal = 0; causal < 2; causal++)
      pass(f, "",
           arena_printf(f->a, "b=2,hq=6,hkv=2,sq=%d,sk=333,d=%d,causal=%d,chunks=3,dtype=%s",
                        1 + 2 * causal, dims[i], causal, i % 2 ? "f16" : "bf16"));
}

static void tiles_and_stages(void **state) {
  static const char *const params[] = {
      "tile_k=16 warps=1 stages=3", "tile_k=32 warps=2 stages=2", "tile_k=64 warps=2 stages=3",
      "tile_k=16 warps=16 stages=2 q_regs=0", "tile_q=32 warps=4 tile_k=32 stages=4 lazy=0",
      "warps=4 fused=0", "warps=4 fetch=128 stages=6",
  };
  for (size_t i = 0; i < sizeof params / sizeof *params; i++)
    pass(*state, params[i], "b=2,hq=20,hkv=1,sq=2,sk=270,d=64,dtype=f16,causal=1,chunks=2");
}

// One key less or more than a tile, than a chunk; more chunks than tiles; more queries than keys;
// nothing at all.
static void lengths_near_the_edges(void **state) {
  static const int edges[] = {1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129};
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
    pass(f, "warps=2",
         arena_printf(f->a, "b=2,hq=2,sq=%d,sk=%d,d=128,dtype=bf16,causal=%d,chunks=%d",
                      i % 3 ? 1 : 4, edges[i], (int)i % 2, 1 + (int)i % 8));
  pass(f, "", "b=2,hq=2,sq=16,sk=9,d=64,dtype=f16,causal=1,chunks=4");
  pass(f, "", "b=2,hq=2,sq=3,sk=0,d=64,dtype=f16");
  pass(f, "", "b=2,hq=2,sq=0,sk=5,d=64,dtype=f16");
  pass(f, "", "b=0,hq=2,sq=3,sk=5,d=64,dtype=f16");
}

// Group sizes that are no power of two, groups that fill more than a tile, chunks up to 256.
static void groups_and_chunks(void **state) {
  pass(*state, "", "b=1,hq=28,hkv=4,sq=1,sk=300,d=128,dtype=bf16,chunks=4");
  pass(*state, "", "b=1,hq=40,hkv=1,sq=1,sk=150,d=64,dtype=f16,chunks=3");
  pass(*state, "warps=1 stages=2", "b=1,hq=2,hkv=1,sq=1,sk=4200,d=64,dtype=f16,chunks=256");
}

// A scale below zero turns the order of the scores, and one of zero makes them equal.
static void any_scale(void **state) {
  pass(*state, "", "b=1,hq=2,sq=1,sk=90,d=64,dtype=bf16,scale=-0.2,chunks=2");
  pass(*state, "", "b=1,hq=2,sq=1,sk=90,d=64,dtype=f16,scale=0,chunks=2");
}

static void what_is_refused(void **state) {
  VerifyOpts opts = {.seed = 3, .threads = 2};
  judge(*state, "", "b=1,hq=1,sq=1,sk=1,d=64,dtype=f32", &opts, ST_INPUT);
  judge(*state, "", "b=1,hq=1,sq=1,sk=1,d=80,dtype=f16", &opts, ST_INPUT);
  judge(*state, "tile_k=64 stages=8", "b=1,hq=1,sq=1,sk=1,d=128,dtype=f16", &opts, ST_INPUT);
  judge(*state, "fused=0 sinks=1", "b=1,hq=1,sq=1,sk=1,d=128,dtype=f16", &opts, ST_INPUT);
}

// The last block's combine is what races would show in: several chunks and schedules.
static void sanitized(void **state) {
  static const char *const params[] = {"warps=2 stages=2", "warps=2 stages=3 tile_k=16 q_regs=0",
                                       "warps=4 stages=3 tile_q=32"};
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof params / sizeof *params; i++)
    for (uint64_t seed = 1; seed <= 3; seed++) {
      device_sim_opts(f->sim, &(SimOpts){.threads = 1, .sanitize = true, .seed = seed});
      VerifyOpts opts = {.seed = seed, .threads = 2, .sanitize = true, .schedule = seed};
      judge(f, params[i],
            arena_printf(f->a, "b=1,hq=6,hkv=2,sq=2,sk=175,d=64,dtype=bf16,causal=%d,chunks=%d",
                         (int)i & 1, 2 + (int)seed),
            &opts, ST_OK);
    }
  device_sim_opts(f->sim, &(SimOpts){.threads = 0});
}

// Through the gates of the verifier, whose oracle and unseen keys are not this file's.
static void rules_through_the_gates(void **state) {
  static const char *const rules[] = {"window_left=20", "window_left=20,window_right=3",
                                      "softcap=5"};
  static const char *const params[] = {"alibi=1", "sinks=1"};
  Fixture *f = *state;
  for (int i = 0; i < 5; i++) {
    const char *given = i < 3 ? "" : params[i - 3];
    const char *rest = i < 3 ? rules[i] : "";
    const char *shape = "b=2,hq=4,hkv=2,sq=2,sk=150,d=64,chunks=3";
    pass(f, given, arena_printf(f->a, "%s,causal=1,dtype=f16,%s", shape, rest));
    pass_fma(f, given, arena_printf(f->a, "%s,%s", shape, rest));
  }
}

static void chunks_are(Fixture *f, const char *name, const char *params, const char *problem, int want) {
  Problem *p;
  Params given = {0};
  Operator *op;
  if (problem_parse(f->a, problem, &p, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
  if (*params) assert_int_equal(params_parse(f->a, &given, params, f->d), ST_OK);
  if (operator_make(f->s, name, &given, p, NULL, &op, f->d))
    fail_msg("%s", diag_text(f->d));
  if (problem_int(op->problem, "chunks", 0) != want)
    fail_msg("%s: %d chunks, not %d", problem, (int)problem_int(op->problem, "chunks", 0), want);
  operator_free(op);
}

// Blocks with much shared memory: whole rounds of 132, or of 264 when two fit an SM.
static void chunks_fill_whole_rounds(void **state) {
  chunks_are(*state, "decode_mma", "", "hq=8,sq=1,sk=16384,d=128,dtype=bf16", 16);
  chunks_are(*state, "decode_mma", "warps=4", "hq=8,sq=1,sk=16384,d=128,dtype=bf16", 32);
  chunks_are(*state, "decode_mma", "", "b=64,hq=32,hkv=8,sq=1,sk=4096,d=128,dtype=bf16", 1);
  chunks_are(*state, "decode_mma", "", "b=8,hq=32,hkv=8,sq=1,sk=8192,d=128,dtype=bf16", 2);
  chunks_are(*state, "decode_mma", "", "hq=100,sq=1,sk=8192,d=128,dtype=bf16", 5); // 500 of 528
  chunks_are(*state, "decode_mma", "", "hq=8,hkv=1,sq=4,sk=8192,d=128,dtype=bf16", 32); // two tiles of rows
  chunks_are(*state, "decode_mma", "", "hq=8,sq=1,sk=300,d=128,dtype=bf16", 2);
  // of all keys together: one round, heads in step, and no span of less than 256 keys
  chunks_are(*state, "decode_span", "", "hq=8,sq=1,sk=16384,d=128,dtype=bf16", 128);
  chunks_are(*state, "decode_span", "", "b=128,hq=32,hkv=8,sq=1,sk=1024,d=128,dtype=bf16", 128);
  chunks_are(*state, "decode_span", "", "hq=28,hkv=7,sq=1,sk=16384,d=128,dtype=bf16", 126);
  chunks_are(*state, "decode_span", "", "hq=50,hkv=50,sq=1,sk=16384,d=128,dtype=bf16", 132);
  chunks_are(*state, "decode_span", "", "b=2,hq=8,sq=1,sk=300,d=128,dtype=bf16", 32);
  chunks_are(*state, "decode_span", "", "b=2,hq=8,sq=1,sk=0,d=128,dtype=bf16", 1);
}

// decode_span: spans that end within items, at their ends, that hold many items, none; more spans than
// tiles; warps without a tile; several tiles of rows; every head_dim.
static void in_spans(void **state) {
  static const int dims[] = {64, 96, 128, 192, 256};
  static const char *const params[] = {"warps=1 stages=2", "warps=8 stages=2 tile_k=16",
                                       "tile_q=32 warps=2 tile_k=32 stages=3", "q_regs=0 lazy=0 fetch=128"};
  static const int lengths[] = {0, 1, 15, 16, 17, 63, 64, 65, 129};
  Fixture *f = *state;
  VerifyOpts opts = {.seed = 3, .threads = 2};
  for (int i = 0; i < 5; i++)
    for (int causal = 0; causal < 2; causal++)
      judge_of(f, "decode_span", "",
               arena_printf(f->a, "b=2,hq=6,hkv=2,sq=%d,sk=333,d=%d,causal=%d,chunks=%d,dtype=%s",
                            1 + 2 * causal, dims[i], causal, 3 + 4 * i, i % 2 ? "f16" : "bf16"),
               &opts, ST_OK);
  for (int i = 0; i < 4; i++)
    judge_of(f, "decode_span", params[i],
             "b=3,hq=40,hkv=2,sq=2,sk=150,d=64,dtype=f16,causal=1,chunks=7", &opts, ST_OK);
  for (int i = 0; i < 9; i++)
    judge_of(f, "decode_span", "",
             arena_printf(f->a, "b=5,hq=2,sq=%d,sk=%d,d=128,dtype=bf16,causal=%d,chunks=%d", 1 + i % 3,
                          lengths[i], i % 2, 1 + 5 * i),
             &opts, ST_OK);
  judge_of(f, "decode_span", "", "b=1,hq=2,hkv=1,sq=1,sk=4200,d=64,dtype=f16,chunks=140", &opts, ST_OK);
  // in two levels: groups of 16 pieces and a rest, one group only, whole items between them
  judge_of(f, "decode_span", "tree=1", "b=1,hq=6,hkv=1,sq=1,sk=4200,d=64,dtype=f16,chunks=140", &opts, ST_OK);
  judge_of(f, "decode_span", "tree=1", "b=2,hq=4,hkv=2,sq=2,sk=700,d=64,dtype=f16,causal=1,chunks=68", &opts, ST_OK);
  judge_of(f, "decode_span", "tree=1 helpers=1", "b=5,hq=2,hkv=2,sq=1,sk=90,d=96,dtype=bf16,chunks=13", &opts, ST_OK);
  judge_of(f, "decode_span", "", "b=0,hq=2,sq=3,sk=5,d=64,dtype=f16", &opts, ST_OK);
  judge_of(f, "decode_span", "", "b=2,hq=2,sq=0,sk=5,d=64,dtype=f16", &opts, ST_OK);
  judge_of(f, "decode_span", "sinks=1", "b=2,hq=4,sq=1,sk=50,d=64,dtype=f16,chunks=5", &opts, ST_OK);
  // 8-bit keys, with factors and without, every head_dim that has them
  for (int i = 0; i < 5; i++)
    if (dims[i] != 96)
      judge_of(f, "decode_span", i % 2 ? "q_regs=0" : "",
               arena_printf(f->a, "b=2,hq=6,hkv=2,sq=%d,sk=133,d=%d,causal=1,chunks=5,dtype=%s,dtype_kv=%s,descale=%d",
                            1 + i, dims[i], i % 3 ? "f16" : "bf16", i % 2 ? "e5m2" : "e4m3", i < 3),
               &opts, ST_OK);
  judge_of(f, "decode_span", "", "b=1,hq=1,sq=1,sk=9,d=96,dtype=f16,dtype_kv=e4m3", &opts, ST_INPUT);
  judge_of(f, "decode_span", "", "b=1,hq=1,sq=1,sk=9,d=64,dtype=f16,dtype_kv=bf16", &opts, ST_INPUT);
  judge_of(f, "decode_mma", "", "b=1,hq=1,sq=1,sk=9,d=64,dtype=f16,dtype_kv=e4m3", &opts, ST_INPUT);
  for (uint64_t seed = 1; seed <= 3; seed++) {
    device_sim_opts(f->sim, &(SimOpts){.threads = 1, .sanitize = true, .seed = seed});
    opts = (VerifyOpts){.seed = seed, .threads = 2, .sanitize = true, .schedule = seed};
    judge_of(f, "decode_span", "warps=2 stages=3",
             "b=2,hq=6,hkv=2,sq=2,sk=175,d=64,dtype=bf16,causal=1,chunks=7", &opts, ST_OK);
    judge_of(f, "decode_span", "tree=1 tile_k=16 warps=2 helpers=2",
             "b=1,hq=6,hkv=2,sq=1,sk=400,d=64,dtype=bf16,chunks=40", &opts, ST_OK);
  }
  device_sim_opts(f->sim, &(SimOpts){.threads = 0});
}

// decode_fma: 8, 16 and 32 lanes to a row, tiles that a group does not fill or overfills.
static void in_fp32(void **state) {
  static const char *const params[] = {"tile_q=1", "tile_q=2 warps=1 stages=2", "unroll=1 stages=3",
                                       "tile_q=8 warps=2 unroll=1", "fetch=256 warps=4 stages=4"};
  static const int dims[] = {32, 64, 96, 128, 192, 256};
  Fixture *f = *state;
  for (int i = 0; i < 6; i++)
    for (int causal = 0; causal < 2; causal++)
      pass_fma(f, "", arena_printf(f->a, "b=2,hq=6,hkv=2,sq=%d,sk=%d,d=%d,causal=%d,chunks=3",
                                   1 + causal, 61 + 130 * causal, dims[i], causal));
  for (int i = 0; i < 5; i++)
    pass_fma(f, params[i], "b=1,hq=6,hkv=2,sq=3,sk=200,d=64,causal=1,chunks=4");
  pass_fma(f, "", "b=2,hq=2,sq=1,sk=0,d=64");
  pass_fma(f, "warps=1", "b=1,hq=2,sq=2,sk=1,d=128,chunks=4,causal=1");
  pass_fma(f, "", "b=1,hq=2,sq=1,sk=90,d=64,scale=-0.2,chunks=2");
  VerifyOpts opts = {.seed = 3, .threads = 2, .sanitize = true, .schedule = 2};
  device_sim_opts(f->sim, &(SimOpts){.threads = 1, .sanitize = true, .seed = 2});
  judge_of(f, "decode_fma", "warps=2", "b=1,hq=6,hkv=2,sq=2,sk=175,d=64,causal=1,chunks=3",
           &opts, ST_OK);
  device_sim_opts(f->sim, &(SimOpts){.threads = 0});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_head_dim),         cmocka_unit_test(tiles_and_stages),
      cmocka_unit_test(lengths_near_the_edges), cmocka_unit_test(groups_and_chunks),
      cmocka_unit_test(any_scale),              cmocka_unit_test(what_is_refused),
      cmocka_unit_test(sanitized),              cmocka_unit_test(in_fp32),
      cmocka_unit_test(chunks_fill_whole_rounds), cmocka_unit_test(rules_through_the_gates),
      cmocka_unit_test(in_spans),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
