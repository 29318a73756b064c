// prefill_mma verified on the interpreter: every head_dim, tile and stage count, lengths near the
// edges of tiles, and sanitized in several schedules.
#include "verify_kit.h"

#define MMA "prefill_mma "
static const int dims[] = {32, 64, 96, 128, 192, 256};

// The defaults of every head_dim, both types, causal and not, grouped heads.
static void every_head_dim(void **state) {
  Fixture *f = *state;
  for (int i = 0; i < 6; i++)
    for (int causal = 0; causal < 2; causal++)
      fixture_pass(f, arena_printf(f->a, MMA "head_dim=%d", dims[i]),
                   arena_printf(f->a, "b=2,hq=3,hkv=1,sq=70,sk=133,d=%d,causal=%d,dtype=%s",
                                dims[i], causal, i % 2 ? "f16" : "bf16"));
}

// fp32 as sums of two tf32: rows of one and of many groups of chunks; a negative scale.
static void split_tf32(void **state) {
  static const GateCase cases[] = {
      {MMA "tile_q=64 tile_k=32 stages=3", "b=1,hq=2,hkv=1,sq=75,sk=170,d=64,dtype=f32,causal=1"},
      {MMA, "b=1,hq=2,sq=20,sk=90,d=64,dtype=f32,scale=-0.2"},
  };
  Fixture *f = *state;
  for (int i = 0; i < 6; i++)
    fixture_pass(
        f, arena_printf(f->a, MMA "head_dim=%d", dims[i]),
        arena_printf(f->a, "b=2,hq=3,hkv=1,sq=70,sk=133,d=%d,causal=%d,dtype=f32", dims[i], i % 2));
  PASS_ALL(f, cases);
}

// The tensor core cuts a score's sum toward zero in every step of 8 columns; the scale gives back
// what is lost in the mean (mma_tf32_restore).  Without that the errors are 6.1e-6 and 1.1e-5.
static void split_tf32_is_not_biased(void **state) {
  static const struct { int d; double lse; } cases[] = {{128, 4.5e-6}, {256, 8e-6}};
  for (int i = 0; i < 4; i++) {
    Fixture *f = *state;
    const char *problem =
        arena_printf(f->a, "b=1,hq=4,hkv=2,sq=100,sk=133,d=%d,causal=%d,dtype=f32",
                     cases[i / 2].d, i % 2);
    Verdict v = fixture_verify(f, MMA, problem, &(VerifyOpts){.seed = 3, .threads = 2}, ST_OK);
    for (int g = 0; g < v.ngates; g++)
      if (!strcmp(v.gate[g].name, "reference"))
        assert_true(v.gate[g].run && v.gate[g].lse_error < cases[i / 2].lse);
  }
}

static void tiles_and_stages(void **state) {
  static const char *const variants[] = {
      MMA "tile_q=32 tile_k=16 warps=2",
      MMA "tile_q=64 tile_k=32 stages=2",
      MMA "tile_q=64 tile_k=64 stages=4 q_regs=0",
      MMA "tile_q=128 tile_k=32 stages=3 q_regs=1",
      MMA "tile_q=192 tile_k=96",
      MMA "tile_q=128 tile_k=128 warps=8 lazy=0",
  };
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
    fixture_pass(*state, variants[i], "b=1,hq=2,hkv=1,sq=201,sk=170,d=64,dtype=f16,causal=1");
}

// More queries than keys too, and nothing at all.
static void lengths_near_the_edges(void **state) {
  static const int edges[] = {1, 15, 16, 17, 31, 32, 33, 63, 64, 65};
  Fixture *f = *state;
  fixture_edges(f, MMA "tile_q=32 tile_k=16 warps=2", "d=32,dtype=bf16", edges, 10);
  for (int i = 0; i < 10; i++)
    fixture_pass(
        f, MMA "tile_q=32 tile_k=32 warps=2 stages=3",
        arena_printf(f->a, "b=1,hq=2,sq=33,sk=%d,d=32,dtype=f16,causal=%d", edges[i], 1 - i % 2));
  fixture_nothing(f, MMA, "d=64,dtype=f16");
}

// Parts of tiles, warps without rows, sequences without any, and hooks that mask with ranges.
static void narrow_parts(void **state) {
  static const GateCase cases[] = {
      {MMA "narrow=32 slack=8",
       "hq=2,hkv=1,seqlens_q=5/0/70/33,seqlens_k=9/3/100/0,d=64,dtype=bf16"},
      {MMA "narrow=48 slack=4 tile_q=64 warps=2",
       "hq=2,hkv=1,seqlens_q=5/0/70/33,seqlens_k=100/3/9/64,d=128,dtype=f16,causal=1"},
      {MMA "narrow=16 stages=3 q_regs=0",
       "hq=2,hkv=1,seqlens_q=66/0/1,seqlens_k=70/3/200,d=64,dtype=bf16,causal=1,wl=17"},
      {MMA "narrow=32", "b=1,hq=2,sq=40,sk=90,d=64,dtype=f16,scale=-0.2,causal=1"},
      {MMA "narrow=32", "b=1,hq=2,hkv=1,sq=33,sk=17,d=128,dtype=bf16,causal=1"},
      {MMA "slack=2", "b=1,hq=2,hkv=1,sq=70,sk=300,d=192,dtype=f16"},
  };
  Fixture *f = *state;
  PASS_ALL(f, cases);
  static const char *const hooks[] = {"causal", "document"};
  for (int i = 0; i < 2; i++)
    fixture_hooked(f, MMA "narrow=32 slack=8",
                   arena_printf(f->a, SOURCE_DIR "/examples/hooks/%s.hook", hooks[i]),
                   "b=1,hq=2,hkv=1,sq=150,sk=150,d=64,dtype=bf16", ST_OK);
}

// A scale below zero turns the order of the scores, and one of zero makes them equal.
static void any_scale(void **state) {
  static const GateCase cases[] = {
      {MMA, "b=1,hq=2,sq=20,sk=90,d=64,dtype=bf16,scale=-0.2"},
      {MMA "q_regs=0", "b=1,hq=2,sq=20,sk=90,d=64,dtype=bf16,scale=-0.2,causal=1"},
      {MMA, "b=1,hq=2,sq=20,sk=90,d=64,dtype=f16,scale=0"},
  };
  PASS_ALL(*state, cases);
}

static void infinities(void **state) {
  static const char *const problems[] = {"b=1,hq=2,hkv=1,sq=45,sk=75,d=64,causal=1,dtype=f32",
                                         "b=1,hq=2,sq=45,sk=75,d=64,dtype=f32",
                                         "b=1,hq=2,sq=45,sk=75,d=64,dtype=bf16"};
  for (int i = 0; i < 3; i++)
    fixture_infinities(*state, MMA "tile_q=32 tile_k=16 warps=2", problems[i]);
}

static void what_is_refused(void **state) {
#define ONE_KEY "b=1,hq=1,sq=1,sk=1,"
  static const Refusal cases[] = {
      {MMA, ONE_KEY "d=64,dtype=f64", "dtype=f64 is not legal: dtype is f16, bf16 or f32"},
      {MMA "split=0", ONE_KEY "d=64,dtype=f32", "split: for f32"},
      {MMA "split=1", ONE_KEY "d=64,dtype=f16", "split: for f32"},
      {MMA, ONE_KEY "d=80,dtype=f16", "head_dim=80 is not legal"},
      {MMA "tile_q=32 warps=4", ONE_KEY "d=64,dtype=f16", "tile_q / warps: whole row blocks of 16"},
      {MMA "narrow=64", ONE_KEY "d=64,dtype=f16", "narrow: fewer keys than tile_k"},
      {MMA "narrow=16", ONE_KEY "d=64,dtype=f32", "narrow: for f16 and bf16"},
      {MMA "slack=8 lazy=0", ONE_KEY "d=64,dtype=f16", "slack: with lazy, for f16 and bf16"},
      // a lone key's weight would be rounded, not 1
      {MMA "slack=8", ONE_KEY "d=64,dtype=f16,sinks=1", "slack: a maximum that begins at a sink"},
      {MMA "tile_q=256 tile_k=128 stages=2", ONE_KEY "d=256,dtype=f16",
       "tile_q, tile_k, stages: 227 KiB of shared memory"},
  };
  REFUSED_ALL(*state, cases);
}

static void sanitized(void **state) {
  static const char *const variants[] = {MMA "tile_q=32 tile_k=16 warps=2 stages=1",
                                         MMA "tile_q=32 tile_k=16 warps=2 stages=2 q_regs=0",
                                         MMA "tile_q=64 tile_k=32 warps=4 stages=3",
                                         MMA "tile_q=32 tile_k=16 warps=2 stages=2 dtype=f32"};
  static const GateCase parts[] = {
      {MMA "narrow=32 slack=8 tile_q=64 warps=2 stages=1",
       "b=1,hq=2,hkv=1,sq=97,sk=130,d=64,dtype=bf16,causal=1,wl=40"},
      {MMA "narrow=16 tile_q=64 warps=2 stages=3",
       "hq=2,hkv=1,seqlens_q=5/0/70,seqlens_k=69/3/100,d=64,dtype=f16"}};
  Fixture *f = *state;
  for (int i = 0; i < 4; i++)
    for (uint64_t schedule = 1; schedule <= 3; schedule++)
      fixture_sanitized(f, variants[i],
                        arena_printf(f->a, "b=1,hq=2,hkv=1,sq=40,sk=75,d=64,dtype=%s,causal=%d",
                                     i == 3 ? "f32" : "bf16", i & 1),
                        schedule);
  for (int i = 0; i < 2; i++)
    for (uint64_t schedule = 1; schedule <= 3; schedule++)
      fixture_sanitized(f, parts[i].variant, parts[i].problem, schedule);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_head_dim),   cmocka_unit_test(split_tf32),
      cmocka_unit_test(split_tf32_is_not_biased),
      cmocka_unit_test(tiles_and_stages), cmocka_unit_test(lengths_near_the_edges),
      cmocka_unit_test(narrow_parts),
      cmocka_unit_test(any_scale),        cmocka_unit_test(infinities),
      cmocka_unit_test(what_is_refused),  cmocka_unit_test(sanitized),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
