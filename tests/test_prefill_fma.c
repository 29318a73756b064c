// prefill_fma verified on the interpreter: every head_dim, shapes of lanes and tiles, every rule,
// lengths near the edges of tiles, and sanitized in several schedules.
#include "verify_kit.h"

static Verdict judge(Fixture *f, const char *params, const char *problem, const VerifyOpts *opts,
                     Status want) {
  return fixture_verify(f, "prefill_fma", params, problem, opts, want);
}

static void pass(Fixture *f, const char *params, const char *problem) {
  VerifyOpts opts = {.seed = 3, .threads = 2};
  judge(f, params, problem, &opts, ST_OK);
}

#define SMALL "tile_q=32 tile_k=32 warps=4 lanes_q=2"

// The defaults of every head_dim, causal and not, grouped heads.
static void every_head_dim(void **state) {
  static const int dims[] = {32, 64, 96, 128, 192, 256};
  Fixture *f = *state;
  for (int i = 0; i < 6; i++)
    pass(f, "", arena_printf(f->a, "b=1,hq=3,hkv=1,sq=70,sk=133,d=%d,causal=%d", dims[i], i % 2));
}

static void lanes_and_tiles(void **state) {
  static const char *const params[] = {
      "tile_q=64 lanes_q=2 unroll=2",            // 8 rows by 4 keys and 4 columns
      "tile_q=32 tile_k=32 lanes_q=2 unroll=16", // 4 rows by 2 keys
      "tile_q=128 tile_k=128 warps=8 lanes_q=2", // 8 rows by 8 keys
      "tile_q=256 tile_k=32 warps=8 lazy=0",     // one block is longer than the sequence
      "tile_q=128 lanes_q=2 unroll=32",          // 16 rows
      "tile_q=64 lanes_q=4 tile_k=128",          // 4 rows by 16 keys
  };
  for (size_t i = 0; i < sizeof params / sizeof *params; i++)
    pass(*state, params[i], "b=1,hq=2,hkv=1,sq=150,sk=170,d=64,causal=1");
}

// One key or query less or more than a tile; more queries than keys; nothing at all.
static void lengths_near_the_edges(void **state) {
  static const int edges[] = {1, 3, 4, 5, 31, 32, 33, 63, 64, 65};
  Fixture *f = *state;
  for (int i = 0; i < 10; i++)
    pass(f, SMALL, arena_printf(f->a, "b=1,hq=2,sq=%d,sk=%d,d=64,causal=%d", edges[9 - i], edges[i],
                                i % 2));
  pass(f, SMALL, "b=2,hq=2,sq=3,sk=0,d=64");
  pass(f, SMALL, "b=2,hq=2,sq=0,sk=5,d=64");
  pass(f, SMALL, "b=0,hq=2,sq=3,sk=5,d=64");
}

// A scale below zero turns the order of the scores, and one of zero makes them equal.
static void any_scale(void **state) {
  pass(*state, SMALL, "b=1,hq=2,sq=20,sk=90,d=64,scale=-0.2,causal=1");
  pass(*state, SMALL, "b=1,hq=2,sq=20,sk=90,d=64,scale=0");
}

static void every_rule(void **state) {
  static const char *const rules[] = {
      "window_left=20,window_right=5",
      "causal=1,window_left=0",
      "window_right=40,softcap=3",
      "alibi=1",
      "causal=1,alibi=1,sinks=1",
      "sinks=1,window_left=3,window_right=2",
      "dv=128,causal=1",
      "dv=32",
      "causal=1,window_left=40,softcap=20,alibi=1,sinks=1,dv=128",
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    pass(f, "tile_q=64 tile_k=32", arena_printf(f->a, "b=2,hq=4,hkv=2,sq=70,sk=133,d=64,%s",
                                                rules[i]));
    pass(f, "tile_q=64 tile_k=32", arena_printf(f->a, "b=1,hq=2,sq=90,sk=33,d=64,%s", rules[i]));
  }
}

static void hooked(void **state) {
  Fixture *f = *state;
  const char *hook = SOURCE_DIR "/tests/kernels/slope.hook";
  VerifyOpts opts = {.seed = 3, .threads = 2, .build = {.hook_path = hook}};
  Problem *p;
  Verdict v;
  diag_reset(f->d);
  if (problem_open_hooked(f->s, f->a, "b=2,hq=4,hkv=2,sq=45,sk=90,d=64,causal=1,slope=0.1", hook, &p,
                          f->d) != ST_OK)
    fail_msg("%s", diag_text(f->d));
  Status st = verify(f->s, f->sim, "prefill_fma", NULL, p, &opts, &v, f->a, f->d);
  if (st != ST_OK) fail_msg("%s%s", diag_text(f->d), verdict_text(f->a, &v));
}

static void what_is_refused(void **state) {
  VerifyOpts opts = {.seed = 3, .threads = 2};
  Fixture *f = *state;
  judge(f, "", "b=1,hq=1,sq=1,sk=1,d=64,dtype=f16", &opts, ST_INPUT);
  judge(f, "", "b=1,hq=1,sq=1,sk=1,d=80", &opts, ST_INPUT);
  judge(f, "tile_q=32 warps=8 lanes_q=4", "b=1,hq=1,sq=1,sk=1,d=64", &opts, ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "tile_q: 4, 8, 12 or 16 rows"));
  judge(f, "lanes_q=2", "b=1,hq=1,sq=1,sk=1,d=96", &opts, ST_INPUT); // 6 columns a lane
  judge(f, "tile_q=256 tile_k=64", "b=1,hq=1,sq=1,sk=1,d=256", &opts, ST_INPUT);
}

static void sanitized(void **state) {
  static const char *const params[] = {SMALL, "tile_q=64 tile_k=32", "tile_q=128 tile_k=64"};
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof params / sizeof *params; i++)
    for (uint64_t seed = 1; seed <= 3; seed++) {
      device_sim_opts(f->sim, &(SimOpts){.threads = 1, .sanitize = true, .seed = seed});
      VerifyOpts opts = {.seed = seed, .threads = 2, .sanitize = true, .schedule = seed};
      judge(f, params[i],
            arena_printf(f->a, "b=1,hq=2,hkv=1,sq=40,sk=75,d=64,causal=%d", (int)i & 1), &opts,
            ST_OK);
    }
  device_sim_opts(f->sim, &(SimOpts){.threads = 0});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_head_dim), cmocka_unit_test(lanes_and_tiles),
      cmocka_unit_test(lengths_near_the_edges), cmocka_unit_test(any_scale),
      cmocka_unit_test(every_rule), cmocka_unit_test(hooked),
      cmocka_unit_test(what_is_refused), cmocka_unit_test(sanitized),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
