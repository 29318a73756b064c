// prefill_thread, prefill_tile and prefill_fma verified on the interpreter: every head_dim, shapes
// of lanes and tiles, every rule, lengths near the edges of tiles, and sanitized in several
// schedules.
#include "verify_kit.h"

#define FMA "prefill_fma tile_q=32 tile_k=32 warps=4 lanes_q=2"
#define L1 "prefill_tile stages=0 tile_k=16 block=64"
#define TILE "prefill_tile stages=2 tile_k=16 block=64"
#define THREAD "prefill_thread block=64" // two warps: each walks from its own first key on
static const char *const rungs[] = {FMA, L1, TILE, THREAD};
enum { RUNGS = sizeof rungs / sizeof *rungs };

// The defaults of every head_dim, causal and not, grouped heads.
static void every_head_dim(void **state) {
  static const int dims[] = {32, 64, 96, 128, 192, 256};
  static const char *const on[] = {"prefill_fma", "prefill_tile stages=0", "prefill_tile",
                                   "prefill_thread"};
  static const char *const types[] = {"f32", "f16", "bf16"};
  Fixture *f = *state;
  for (int i = 0; i < 6; i++)
    for (int k = 0; k < 4; k++)
      fixture_pass(f, on[k],
                   arena_printf(f->a, "b=1,hq=3,hkv=1,sq=70,sk=133,d=%d,causal=%d,dtype=%s",
                                dims[i], i % 2, types[k ? (i + k) % 3 : 0]));
}

static void lanes_and_tiles(void **state) {
  static const char *const params[] = {
      "prefill_fma tile_q=64 lanes_q=2 unroll=2",            // 8 rows by 4 keys and 4 columns
      "prefill_fma tile_q=32 tile_k=32 lanes_q=2 unroll=16", // 4 rows by 2 keys
      "prefill_fma tile_q=128 tile_k=128 warps=8 lanes_q=2", // 8 rows by 8 keys
      "prefill_fma tile_q=256 tile_k=32 warps=8 lazy=0",     // longer than the sequence
      "prefill_fma tile_q=128 lanes_q=2 unroll=32",          // 16 rows
      "prefill_fma tile_q=64 lanes_q=4 tile_k=128",          // 4 rows by 16 keys
      "prefill_tile queries=1 slice=2 stages=0 unroll=1",
      "prefill_tile queries=8 slice=8 stages=4 unroll=4 block=256",
      "prefill_tile queries=2 slice=16 stages=3 tile_k=64",
      "prefill_thread slice=8 block=256 vec=2",
  };
  for (size_t i = 0; i < sizeof params / sizeof *params; i++)
    fixture_pass(*state, params[i], "b=1,hq=2,hkv=1,sq=150,sk=170,d=64,causal=1");
}

// More queries than keys too, and nothing at all.
static void lengths_near_the_edges(void **state) {
  static const int edges[] = {1, 3, 4, 5, 31, 32, 33, 63, 64, 65};
  for (int k = 0; k < RUNGS; k++) {
    fixture_edges(*state, rungs[k], "d=64", edges, 10);
    fixture_nothing(*state, rungs[k], "d=64");
  }
}

// A scale below zero turns the order of the scores, and one of zero makes them equal.
static void any_scale(void **state) {
  for (int k = 0; k < RUNGS; k++) {
    fixture_pass(*state, rungs[k], "b=1,hq=2,sq=20,sk=90,d=64,scale=-0.2,causal=1");
    fixture_pass(*state, rungs[k], "b=1,hq=2,sq=20,sk=90,d=64,scale=0");
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
      fixture_pass(f, variant, arena_printf(f->a, "b=1,hq=4,hkv=2,sq=70,sk=133,d=64,%s", rules[i]));
      fixture_pass(f, variant, arena_printf(f->a, "b=1,hq=2,sq=90,sk=33,d=64,%s", rules[i]));
    }
}

static void hooked(void **state) {
  static const struct {
    const char *hook, *problem;
  } cases[] = {
      {SOURCE_DIR "/tests/kernels/slope.hook",
       "b=2,hq=4,hkv=2,sq=45,sk=90,d=64,causal=1,slope=0.1"},
      {SOURCE_DIR "/examples/hooks/causal.hook", "b=1,hq=2,sq=90,sk=130,d=64"},
      {SOURCE_DIR "/examples/hooks/document.hook", "b=2,hq=2,sq=90,sk=90,d=64"},
  };
  for (int i = 0; i < 3; i++) {
    fixture_hooked(*state, "prefill_fma", cases[i].hook, cases[i].problem, ST_OK);
    fixture_hooked(*state, "prefill_tile", cases[i].hook, cases[i].problem, ST_OK);
    fixture_hooked(*state, "prefill_thread", cases[i].hook, cases[i].problem, ST_OK);
  }
}

static void infinities(void **state) {
  for (int k = 0; k < RUNGS; k++) {
    fixture_infinities(*state, rungs[k], "b=1,hq=2,hkv=1,sq=45,sk=75,d=64,causal=1,dtype=f32");
    fixture_infinities(*state, rungs[k], "b=1,hq=2,sq=45,sk=75,d=64,dtype=f32");
  }
}

static void what_is_refused(void **state) {
#define ONE_KEY "b=1,hq=1,sq=1,sk=1,"
  static const Refusal cases[] = {
      {"prefill_fma", ONE_KEY "d=64,dtype=f16", "dtype=f16 is not legal: dtype is f32"},
      {"prefill_fma", ONE_KEY "d=80", "head_dim=80 is not legal"},
      {"prefill_fma tile_q=32 warps=8 lanes_q=4", ONE_KEY "d=64", "tile_q: 4, 8, 12 or 16 rows"},
      {"prefill_fma lanes_q=2", ONE_KEY "d=96", "head_dim_v: 4, 8 .. columns"}, // 6 columns a lane
      {"prefill_fma tile_q=256 tile_k=64", ONE_KEY "d=256",
       "tile_q, tile_k: 227 KiB of shared memory"},
      {"prefill_tile slice=16 dtype=f16", ONE_KEY "d=64", "slice: whole pieces of vec elements"},
      {"prefill_tile queries=8 slice=2", ONE_KEY "d=64", "192 elements of q, o, k and v"},
  };
  REFUSED_ALL(*state, cases);
}

static void sanitized(void **state) {
  static const char *const variants[] = {FMA, "prefill_fma", L1, TILE, TILE " stages=4"};
  Fixture *f = *state;
  for (int i = 0; i < 5; i++)
    for (uint64_t schedule = 1; schedule <= 3; schedule++)
      fixture_sanitized(f, variants[i],
                        arena_printf(f->a, "b=1,hq=2,hkv=1,sq=40,sk=75,d=64,causal=%d", i & 1),
                        schedule);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_head_dim),
      cmocka_unit_test(lanes_and_tiles),
      cmocka_unit_test(lengths_near_the_edges),
      cmocka_unit_test(any_scale),
      cmocka_unit_test(every_rule),
      cmocka_unit_test(hooked),
      cmocka_unit_test(infinities),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(sanitized),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
