// prefill_tile and prefill_fma verified on the interpreter: every head_dim, shapes of lanes and
// tiles, every rule, lengths near the edges of tiles, and sanitized in several schedules.
#include <math.h>

#include "verify_data.h"
#include "verify_kit.h"

// variant: a template's name and parameters.
static void judge(Fixture *f, const char *variant, const char *problem, const VerifyOpts *opts,
                  Status want) {
  char name[64];
  int n;
  assert_int_equal(sscanf(variant, "%63s%n", name, &n), 1);
  fixture_verify(f, name, variant + n, problem, opts, want);
}

static void pass(Fixture *f, const char *variant, const char *problem) {
  VerifyOpts opts = {.seed = 3, .threads = 2};
  judge(f, variant, problem, &opts, ST_OK);
}

#define FMA "prefill_fma tile_q=32 tile_k=32 warps=4 lanes_q=2"
#define L1 "prefill_tile stages=0 tile_k=16 block=64"
#define TILE "prefill_tile stages=2 tile_k=16 block=64"
static const char *const rungs[] = {FMA, L1, TILE};
enum { RUNGS = sizeof rungs / sizeof *rungs };

// The defaults of every head_dim, causal and not, grouped heads.
static void every_head_dim(void **state) {
  static const int dims[] = {32, 64, 96, 128, 192, 256};
  Fixture *f = *state;
  for (int i = 0; i < 6; i++)
    for (int k = 0; k < 3; k++) {
      static const char *const on[] = {"prefill_fma", "prefill_tile stages=0", "prefill_tile"};
      static const char *const types[] = {"f32", "f16", "bf16"};
      pass(f, on[k],
           arena_printf(f->a, "b=1,hq=3,hkv=1,sq=70,sk=133,d=%d,causal=%d,dtype=%s", dims[i], i % 2,
                        types[k ? (i + k) % 3 : 0]));
    }
}

static void lanes_and_tiles(void **state) {
  static const char *const params[] = {
      "prefill_fma tile_q=64 lanes_q=2 unroll=2",            // 8 rows by 4 keys and 4 columns
      "prefill_fma tile_q=32 tile_k=32 lanes_q=2 unroll=16", // 4 rows by 2 keys
      "prefill_fma tile_q=128 tile_k=128 warps=8 lanes_q=2", // 8 rows by 8 keys
      "prefill_fma tile_q=256 tile_k=32 warps=8 lazy=0", // longer than the sequence
      "prefill_fma tile_q=128 lanes_q=2 unroll=32",          // 16 rows
      "prefill_fma tile_q=64 lanes_q=4 tile_k=128",          // 4 rows by 16 keys
      "prefill_tile queries=1 slice=2 stages=0 unroll=1",
      "prefill_tile queries=8 slice=8 stages=4 unroll=4 block=256",
      "prefill_tile queries=2 slice=16 stages=3 tile_k=64",
  };
  for (size_t i = 0; i < sizeof params / sizeof *params; i++)
    pass(*state, params[i], "b=1,hq=2,hkv=1,sq=150,sk=170,d=64,causal=1");
}

// One key or query less or more than a tile; more queries than keys; nothing at all.
static void lengths_near_the_edges(void **state) {
  static const int edges[] = {1, 3, 4, 5, 31, 32, 33, 63, 64, 65};
  Fixture *f = *state;
  for (int k = 0; k < RUNGS; k++) {
    for (int i = 0; i < 10; i++)
      pass(f, rungs[k], arena_printf(f->a, "b=1,hq=2,sq=%d,sk=%d,d=64,causal=%d", edges[9 - i],
                                     edges[i], i % 2));
    pass(f, rungs[k], "b=2,hq=2,sq=3,sk=0,d=64");
    pass(f, rungs[k], "b=2,hq=2,sq=0,sk=5,d=64");
    pass(f, rungs[k], "b=0,hq=2,sq=3,sk=5,d=64");
  }
}

// A scale below zero turns the order of the scores, and one of zero makes them equal.
static void any_scale(void **state) {
  for (int k = 0; k < RUNGS; k++) {
    pass(*state, rungs[k], "b=1,hq=2,sq=20,sk=90,d=64,scale=-0.2,causal=1");
    pass(*state, rungs[k], "b=1,hq=2,sq=20,sk=90,d=64,scale=0");
  }
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
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    for (int k = 0; k < RUNGS; k++) {
      const char *variant = k ? rungs[k] : "prefill_fma tile_q=64 tile_k=32";
      pass(f, variant, arena_printf(f->a, "b=1,hq=4,hkv=2,sq=70,sk=133,d=64,%s", rules[i]));
      pass(f, variant, arena_printf(f->a, "b=1,hq=2,sq=90,sk=33,d=64,%s", rules[i]));
    }
}

static void hooked(void **state) {
  Fixture *f = *state;
  static const char *const hooks[][2] = {
      {"tests/kernels/slope.hook", "b=2,hq=4,hkv=2,sq=45,sk=90,d=64,causal=1,slope=0.1"},
      {"examples/hooks/causal.hook", "b=1,hq=2,sq=90,sk=130,d=64"},
      {"examples/hooks/document.hook", "b=2,hq=2,sq=90,sk=90,d=64"},
  };
  static const char *const on[] = {"prefill_fma", "prefill_tile"};
  for (int i = 0; i < 6; i++) {
    const char *hook = arena_printf(f->a, SOURCE_DIR "/%s", hooks[i / 2][0]);
    VerifyOpts opts = {.seed = 3, .threads = 2, .build = {.hook_path = hook}};
    Problem *p;
    Verdict v;
    diag_reset(f->d);
    if (problem_open_hooked(f->s, f->a, hooks[i / 2][1], hook, &p, f->d) != ST_OK)
      fail_msg("%s", diag_text(f->d));
    Status st = verify(f->s, f->sim, on[i % 2], NULL, p, &opts, &v, f->a, f->d);
    if (st != ST_OK) fail_msg("%s: %s%s", on[i % 2], diag_text(f->d), verdict_text(f->a, &v));
  }
}

// Infinities of K and V: a weight of 0 where the score is -inf, NaN where it is +inf, an infinite
// output; the other rows and columns as ever.
static void infinities(void **state) {
  Fixture *f = *state;
  static const char *const problems[] = {"b=1,hq=2,hkv=1,sq=45,sk=75,d=64,causal=1",
                                         "b=1,hq=2,sq=45,sk=75,d=64"};
  for (int i = 0; i < 2; i++) {
    AttnInputs in = {0};
    Problem *p;
    if (problem_parse(f->a, problems[i], &p, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
    assert_int_equal(inputs_make(p, DT_F32, FILL_NAN, &in, f->d), ST_OK);
    inputs_fill_random(&in, 5);
    host_set(&in.k, 0, 40, 0, 3, -INFINITY); // some rows see it, with causal
    host_set(&in.v, 0, 5, 0, 7, INFINITY); // and all this
    VerifyOpts opts = {.seed = 3, .threads = 2, .real = &in};
    for (int k = 0; k < RUNGS; k++) judge(f, rungs[k], problems[i], &opts, ST_OK);
    inputs_free(&in);
  }
}

static void what_is_refused(void **state) {
  VerifyOpts opts = {.seed = 3, .threads = 2};
  Fixture *f = *state;
  judge(f, "prefill_fma", "b=1,hq=1,sq=1,sk=1,d=64,dtype=f16", &opts, ST_INPUT);
  judge(f, "prefill_fma", "b=1,hq=1,sq=1,sk=1,d=80", &opts, ST_INPUT);
  judge(f, "prefill_fma tile_q=32 warps=8 lanes_q=4", "b=1,hq=1,sq=1,sk=1,d=64", &opts, ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "tile_q: 4, 8, 12 or 16 rows"));
  judge(f, "prefill_fma lanes_q=2", "b=1,hq=1,sq=1,sk=1,d=96", &opts, ST_INPUT); // 6 columns a lane
  judge(f, "prefill_fma tile_q=256 tile_k=64", "b=1,hq=1,sq=1,sk=1,d=256", &opts, ST_INPUT);
  judge(f, "prefill_tile slice=16 dtype=f16", "b=1,hq=1,sq=1,sk=1,d=64", &opts, ST_INPUT);
  judge(f, "prefill_tile queries=8 slice=2", "b=1,hq=1,sq=1,sk=1,d=64", &opts, ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "192 elements of q, o, k and v"));
}

static void sanitized(void **state) {
  static const char *const params[] = {FMA, "prefill_fma", L1, TILE, TILE " stages=4"};
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
      cmocka_unit_test(infinities),
      cmocka_unit_test(what_is_refused), cmocka_unit_test(sanitized),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
