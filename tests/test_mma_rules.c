// What prefill_mma and prefill_wgmma make of scores (windows, soft cap, ALiBi, sinks, values of
// another width), on the interpreter, against an fp64 reference of these tests' own.
enum { BATCH = 2, HEADS = 4, GROUP = 2 };
#include "rules_kit.h"

// A matrix product can't leave out a key of a tile: V of one that no query sees is finite.
// A weight is off by 2^-11 of itself at most, the result by 2^-12.
#define OFF (0x1p-11 + 0x1p-12)
static const Subject mma = {"prefill_mma", DT_F16, DT_F16, "", OFF, 16384};
static const Subject wgmma = {"prefill_wgmma", DT_F16, DT_F16, "", OFF, 16384};

static void run(Fixture *f, const Subject *x, const Rules *r) {
  Case c = case_open(f, x, r);
  case_bind(&c);
  case_workspace(&c);
  case_launch(&c);
  case_check(&c);
  case_close(&c);
}

static void run_all(Fixture *f, const Subject *x, const Rules *cases, size_t n) {
  for (size_t i = 0; i < n; i++) run(f, x, &cases[i]);
}
#define RUN_ALL(x, cases) run_all(*state, x, cases, sizeof cases / sizeof *cases)

// ---- prefill_mma --------------------------------------------------------------------------------
#define SMALL " tile_q=32 tile_k=16 warps=2"

// A causal mask is a right side of 0, and none beyond it is taken.
static int right_side(bool causal, int right) { return causal && right > 0 ? 0 : right; }

static void windows(void **state) {
  // left, right, queries, keys; whole tiles within, none within, rows without a key, more queries
  // than keys
  static const int sides[][4] = {
      {0, 0, 50, 70},   {20, 0, 50, 70},        {60, 5, 70, 90},
      {-1, 7, 50, 70},  {33, -1, 50, 70},       {-1, -1, 50, 70},
      {5, 3, 90, 30},   {40, 40, 33, 120},      {1 << 30, 1 << 30, 20, 50},
      {3, -1, 100, 20}, {2147483647, 0, 40, 60}};
  static const char *const params[] = {"window=1 stages=1" SMALL, "window=1 stages=2" SMALL,
                                       "window=1 stages=3" SMALL};
  for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
    for (int k = 0; k < 3; k++) {
      const int *s = sides[i];
      bool causal = (i % 3 == 1) ^ (k == 2);
      run(*state, &mma,
          &(Rules){params[k], .sq = s[2], .sk = s[3], .d = 64, .window = true, .causal = causal,
                   .left = s[0], .right = right_side(causal, s[1])});
    }
}

// Warps that see a part of a tile, all of it or none: windows about the edges of 16, of a warp's
// rows and of tiles, queries that end before, with and after the keys.
#define ROWS32 " tile_q=64 tile_k=64 warps=2"
static void narrow_windows(void **state) {
  static const int lefts[] = {0, 1, 15, 16, 17, 127, 128, 129};
  static const int lengths[][2] = {{70, 230}, {150, 70}, {140, 140}, {97, 128}, {129, 113}};
  static const char *const params[] = {"window=1 narrow=32 stages=1 slack=8" ROWS32,
                                       "window=1 narrow=16 stages=2" ROWS32,
                                       "window=1 narrow=48 stages=3 slack=2 tile_q=128 tile_k=64"};
  for (int i = 0; i < 16; i++) {
    const int *s = lengths[i % 5];
    bool causal = i / 2 % 2;
    run(*state, &mma,
        &(Rules){params[i % 3], .sq = s[0], .sk = s[1], .d = i == 5 ? 128 : 32, .window = true,
                 .causal = causal, .left = lefts[i % 8], .right = causal ? 0 : lefts[7 - i % 8]});
  }
}

static void narrow_with_rules(void **state) {
  static const Rules cases[] = {
      {"narrow=32" ROWS32, .sq = 150, .sk = 150, .d = 64, .causal = 1},
      {"narrow=16 slack=4" ROWS32, .sq = 80, .sk = 130, .d = 64}, // the end of the keys only
      {"narrow=32 sinks=1" ROWS32, .sq = 150, .sk = 90, .d = 64, .causal = 1, .sinks = 1},
      {"window=1 softcap=1 alibi=1 narrow=32 slack=8" ROWS32, .sq = 100, .sk = 190, .d = 64,
       .causal = 1, .window = true, .left = 40, .cap = 20, .alibi = true},
      {"window=1 softcap=1 alibi=1 sinks=1 narrow=32" ROWS32, .sq = 100, .sk = 190, .d = 64,
       .causal = 1, .window = true, .left = 40, .cap = 20, .alibi = true, .sinks = true},
      {"window=1 head_dim_v=64 narrow=32" ROWS32, .sq = 100, .sk = 190, .d = 128, .dv = 64,
       .window = true, .left = 30, .right = 20},
  };
  RUN_ALL(&mma, cases);
}

// O and LSE of a case; of queries other than `but` q becomes `factor` times as large.
static Case answers(Fixture *f, const Subject *x, const Rules *r, int but, double factor) {
  Case c = case_open(f, x, r);
  for (int64_t i = 0; i < (int64_t)BATCH * r->sq * HEADS * r->d; i++)
    if (i / (HEADS * r->d) % r->sq != but) put(&c.t[Q], i, factor * get(&c.t[Q], i));
  case_bind(&c);
  case_workspace(&c);
  case_launch(&c);
  return c;
}

// What is left out has weight 0: with one part a tile not a bit of the answer changes.
static void parts_leave_the_bits(void **state) {
  static const Subject *const subjects[] = {&mma, &mma, &wgmma};
  static const Rules cases[][2] = {
      {{"window=1" ROWS32, .sq = 150, .sk = 190, .d = 64, .causal = 1, .window = true, .left = 75},
       {"window=1 narrow=32" ROWS32, .sq = 150, .sk = 190, .d = 64, .causal = 1, .window = true,
        .left = 75}},
      {{"stages=1 slack=4" ROWS32, .sq = 90, .sk = 141, .d = 64},
       {"stages=1 slack=4 narrow=16" ROWS32, .sq = 90, .sk = 141, .d = 64}},
      {{"window=1 tile_q=128", .sq = 150, .sk = 330, .d = 64, .window = true, .left = 130,
        .right = 5},
       {"window=1 tile_q=128 half=1", .sq = 150, .sk = 330, .d = 64, .window = true, .left = 130,
        .right = 5}}};
  for (int i = 0; i < 3; i++) {
    Case a = answers(*state, subjects[i], &cases[i][0], 0, 1);
    Case b = answers(*state, subjects[i], &cases[i][1], 0, 1);
    for (int k = O; k <= LSE; k++) assert_memory_equal(a.t[k].host, b.t[k].host, bytes_of(&a.t[k]));
    case_close(&a);
    case_close(&b);
  }
}

// A row that keeps its maximum does so whatever the other rows of its warp do: they grow here where
// it does not.
static void slack_is_a_rows_own(void **state) {
  static const Rules r = {"slack=4" ROWS32, .sq = 40, .sk = 300, .d = 64};
  Case a = answers(*state, &mma, &r, 9, 1), b = answers(*state, &mma, &r, 9, 6);
  for (int n = 0; n < BATCH; n++)
    for (int h = 0; h < HEADS; h++) {
      int64_t o = query_at(&r, r.d, n, 9, h, 0), lse = (int64_t)(n * HEADS + h) * r.sq + 9;
      assert_memory_equal(at(&a.t[O], o), at(&b.t[O], o), (size_t)r.d * 2);
      assert_memory_equal(at(&a.t[LSE], lse), at(&b.t[LSE], lse), 4);
    }
  assert_memory_not_equal(a.t[O].host, b.t[O].host, bytes_of(&a.t[O]));
  case_close(&a);
  case_close(&b);
}

static void caps_slopes_and_sinks(void **state) {
  static const Rules cases[] = {
      {"softcap=1" SMALL, .sq = 40, .sk = 70, .d = 64, .cap = 3},
      {"softcap=1", .sq = 40, .sk = 70, .d = 64, .causal = 1, .cap = 30},
      {"alibi=1" SMALL, .sq = 40, .sk = 70, .d = 64, .alibi = true},
      {"alibi=1", .sq = 90, .sk = 40, .d = 32, .causal = 1, .alibi = true},
      {"sinks=1" SMALL, .sq = 40, .sk = 70, .d = 64, .sinks = true},
      {"sinks=1", .sq = 90, .sk = 40, .d = 32, .causal = 1, .sinks = true}, // rows without a key
      {"window=1 softcap=1 alibi=1 sinks=1 head_dim_v=64" SMALL, .sq = 60, .sk = 90, .d = 128,
       .dv = 64, .causal = 1, .window = true, .left = 25, .right = -1, .cap = 20, .alibi = true,
       .sinks = true},
  };
  RUN_ALL(&mma, cases);
}

static void values_of_another_width(void **state) {
  static const Rules cases[] = {
      {"head_dim_v=128", .sq = 70, .sk = 75, .d = 192, .dv = 128, .causal = 1},
      {"head_dim_v=64 stages=2 q_regs=0", .sq = 70, .sk = 75, .d = 128, .dv = 64},
      {"head_dim_v=128" SMALL, .sq = 70, .sk = 75, .d = 64, .dv = 128, .causal = 1},
      {"head_dim_v=96", .sq = 40, .sk = 75, .d = 32, .dv = 96, .causal = 1},
  };
  RUN_ALL(&mma, cases);
}

// ---- prefill_wgmma: the same include, tiles of 64 or more keys, rows of 64 ----------------------
static void windows_on_hopper(void **state) {
  static const int sides[][4] = {{0, 0, 150, 170},  {70, 5, 200, 300}, {-1, 7, 70, 150},
                                 {33, -1, 70, 200}, {5, 3, 190, 60},   {1 << 30, 1 << 30, 20, 50},
                                 {3, -1, 200, 20},  {90, 90, 130, 400}};
  for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
    for (int causal = 0; causal < 2; causal++) {
      const int *s = sides[i];
      run(*state, &wgmma,
          &(Rules){"window=1 tile_q=128 tile_k=64", .sq = s[2], .sk = s[3], .d = 64,
                   .causal = causal, .window = true, .left = s[0],
                   .right = right_side(causal, s[1])});
    }
}

static void rules_on_hopper(void **state) {
  static const Rules cases[] = {
      // halves of a tile: each side of a window, both together, the end of the keys, one tile alone
      {"window=1 half=1 tile_q=128", .sq = 130, .sk = 330, .d = 64, .causal = 1, .window = true,
       .left = 127, .right = -1},
      {"window=1 half=1 tile_q=192 lazy=0", .sq = 190, .sk = 250, .d = 64, .causal = 1,
       .window = true, .left = 64, .right = -1},
      {"window=1 half=1 tile_q=64 q_stages=1", .sq = 70, .sk = 200, .d = 64, .window = true,
       .left = 16, .right = 15},
      {"half=1 tile_q=64", .sq = 70, .sk = 170, .d = 64},
      {"half=1 sinks=1", .sq = 150, .sk = 50, .d = 64, .causal = 1, .sinks = true},
      // masks by bits: a row's word full, not full, two of them
      {"window=1 tile_q=64 tile_k=128", .sq = 70, .sk = 260, .d = 64, .window = true, .left = 127,
       .right = 3},
      {"window=1 tile_q=64 tile_k=48", .sq = 70, .sk = 150, .d = 64, .window = true, .left = 31,
       .right = 9},
      {"window=1 tile_q=64 tile_k=224", .sq = 70, .sk = 460, .d = 64, .causal = 1, .window = true,
       .left = 140, .right = -1},
      {"softcap=1 tile_k=64", .sq = 70, .sk = 150, .d = 64, .causal = 1, .cap = 3},
      {"alibi=1 tile_k=64", .sq = 70, .sk = 150, .d = 64, .alibi = true},
      {"alibi=1", .sq = 150, .sk = 90, .d = 128, .causal = 1, .alibi = true},
      {"sinks=1 tile_k=64", .sq = 70, .sk = 150, .d = 64, .sinks = true},
      {"sinks=1", .sq = 150, .sk = 60, .d = 64, .causal = 1, .sinks = true}, // rows without a key
      {"window=1 softcap=1 alibi=1 sinks=1 head_dim_v=64", .sq = 150, .sk = 190, .d = 128, .dv = 64,
       .causal = 1, .window = true, .left = 25, .right = -1, .cap = 20, .alibi = true,
       .sinks = true},
  };
  RUN_ALL(&wgmma, cases);
}

static void widths_on_hopper(void **state) {
  static const Rules cases[] = {
      {"head_dim_v=128", .sq = 70, .sk = 150, .d = 192, .dv = 128, .causal = 1},
      {"head_dim_v=96", .sq = 70, .sk = 150, .d = 96, .dv = 96},
      {"head_dim_v=64", .sq = 70, .sk = 150, .d = 256, .dv = 64},
      {"head_dim_v=192", .sq = 70, .sk = 150, .d = 64, .dv = 192, .causal = 1},
  };
  RUN_ALL(&wgmma, cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(windows),
      cmocka_unit_test(narrow_windows),
      cmocka_unit_test(narrow_with_rules),
      cmocka_unit_test(parts_leave_the_bits),
      cmocka_unit_test(slack_is_a_rows_own),
      cmocka_unit_test(caps_slopes_and_sinks),
      cmocka_unit_test(values_of_another_width),
      cmocka_unit_test(windows_on_hopper),
      cmocka_unit_test(rules_on_hopper),
      cmocka_unit_test(widths_on_hopper),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
