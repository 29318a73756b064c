// shfl, vote, match, redux against their definitions, under full and partial masks.
#include <stdio.h>

#include "sim_kit.h"

// out[2t], out[2t+1] of a body that leaves its results in %r1 and %p1; %r2 holds a value per lane.
static uint32_t value(uint32_t lane) { return lane * 7 + 3; }

static void run(Kit *k, const char *body, uint32_t got[64]) {
  char *text =
      arena_printf(k->arena,
                   "mad.lo.u32 %%r2, %%r0, 7, 3; mov.u32 %%r1, 0; setp.ne.u32 %%p1, %%r1, 0;\n"
                   "%s\nselp.u32 %%r9, 1, 0, %%p1; mul.wide.u32 %%rd1, %%r0, 8;\n"
                   "add.u64 %%rd1, %%rd0, %%rd1; st.global.v2.u32 [%%rd1], {%%r1, %%r9};",
                   body);
  Kernel *kernel = kit_body(k, 1, text);
  DevPtr out = kit_fill(k, "out", 0, 64);
  kit_run(k, kernel, 1, 32, &out, 8);
  kit_read(k, out, got, 64);
  kernel_free(kernel);
  device_free(k->dev, out);
}

typedef enum Mode { UP, DOWN, BFLY, IDX } Mode;

// ISA 9.7.9.6, in signed arithmetic.
static int shfl_source(Mode mode, int lane, int b, int c, int *ok) {
  int clamp = c & 31, seg = c >> 8 & 31, j = 0;
  int max = (lane & seg) | (clamp & ~seg), min = lane & seg;
  b &= 31;
  switch (mode) {
  case UP: j = lane - b, *ok = j >= max; break;
  case DOWN: j = lane + b, *ok = j <= max; break;
  case BFLY: j = lane ^ b, *ok = j <= max; break;
  case IDX: j = min | (b & ~seg), *ok = j <= max; break;
  }
  return *ok ? j : lane;
}

static void test_shfl(void **state) {
  static const char *const names[] = {"up", "down", "bfly", "idx"};
  static const int clamps[] = {0x1f, 0, 0x1c1f, 0x1c00, 0x100f, 0x0f, 0x181f};
  static const int amounts[] = {0, 1, 2, 5, 16, 31, 33};
  uint32_t got[64];
  for (int m = 0; m < 4; m++)
    for (size_t c = 0; c < sizeof clamps / sizeof *clamps; c++)
      for (size_t b = 0; b < sizeof amounts / sizeof *amounts; b++) {
        char body[128];
        snprintf(body, sizeof body, "shfl.sync.%s.b32 %%r1|%%p1, %%r2, %d, %d, -1;", names[m],
                 amounts[b], clamps[c]);
        run(*state, body, got);
        for (int lane = 0; lane < 32; lane++) {
          int ok, j = shfl_source((Mode)m, lane, amounts[b], clamps[c], &ok);
          assert_int_equal(got[2 * lane], value((uint32_t)j));
          assert_int_equal(got[2 * lane + 1], ok);
        }
      }
}

// The lane to read may differ from lane to lane; halves with a mask each go through one
// instruction.
static void test_shfl_lanes(void **state) {
  uint32_t got[64];
  run(*state,
      "setp.lt.u32 %p2, %r0, 16; selp.b32 %r3, 0xffff, 0xffff0000, %p2;\n"
      "mul.lo.u32 %r4, %r0, 5; and.b32 %r4, %r4, 15; and.b32 %r5, %r0, 16; or.b32 %r4, %r4, %r5;\n"
      "shfl.sync.idx.b32 %r1|%p1, %r2, %r4, 31, %r3;",
      got);
  for (uint32_t i = 0; i < 32; i++) {
    assert_int_equal(got[2 * i], value((i * 5 & 15) | (i & 16)));
    assert_int_equal(got[2 * i + 1], 1);
  }
}

// Lanes that come to a collective by different ways wait for each other.
static void test_late_lanes(void **state) {
  uint32_t got[64];
  run(*state,
      "mov.u32 %r3, 0;\nL: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, %r0; @%p2 bra L;\n"
      "setp.gt.u32 %p3, %r0, 9; @!%p3 bra J; add.u32 %r2, %r2, 1; @%p3 bra J; trap;\n"
      "J: shfl.sync.bfly.b32 %r1|%p1, %r2, 31, 31, -1;",
      got);
  for (uint32_t i = 0; i < 32; i++)
    assert_int_equal(got[2 * i], value(31 - i) + (31 - i > 9));
}

// Pairs with masks of their own come to one shuffle together, and of one pair only a half: the
// whole pairs go on, the half waits for its other lane, which is still at work behind the shuffle.
static void test_half_a_pair(void **state) {
  Kit *k = *state;
  uint32_t got[64];
  run(k,
      "and.b32 %r4, %r0, 30; mov.u32 %r5, 3; shl.b32 %r5, %r5, %r4; mov.u32 %r7, 0;\n"
      "L: shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, %r5;\n"
      "add.u32 %r7, %r7, 1; setp.ge.u32 %p3, %r7, 3; @%p3 bra DONE;\n"
      "setp.ne.u32 %p2, %r0, 3; @%p2 bra L;\n"
      "add.u32 %r2, %r2, 1000; bra L;\n"
      "DONE:\n",
      got);
  for (uint32_t i = 0; i < 32; i++)
    assert_int_equal(got[2 * i], value(i ^ 1) + (i == 2 ? 2000 : 0));
}

static void test_vote(void **state) {
  uint32_t got[64];
  const char *third = "rem.u32 %r3, %r0, 3; setp.eq.u32 %p2, %r3, 0;\n";
  char body[512];
  snprintf(body, sizeof body,
           "%svote.sync.ballot.b32 %%r1, !%%p2, -1; vote.sync.any.pred %%p1, %%p2, -1;", third);
  run(*state, body, got);
  assert_int_equal(got[0], ~0x49249249u);
  assert_int_equal(got[63], 1);
  // Lanes that are not named count as 0; all and uni look at the named ones only.
  snprintf(
      body, sizeof body,
      "%ssetp.ge.u32 %%p3, %%r0, 4; @%%p3 bra J;\nvote.sync.ballot.b32 %%r1, %%p2, 15; "
      "vote.sync.all.pred %%p4, %%p2, 15; vote.sync.uni.pred %%p5, %%p2, 15; setp.lt.u32 %%p6, "
      "%%r0, 4; vote.sync.uni.pred %%p1, %%p6, 15; or.pred %%p4, %%p4, %%p5; @%%p4 trap;\nJ:",
      third);
  run(*state, body, got);
  for (uint32_t i = 0; i < 32; i++) {
    assert_int_equal(got[2 * i], i < 4 ? 9 : 0);
    assert_int_equal(got[2 * i + 1], i < 4);
  }
}

static void test_match(void **state) {
  uint32_t got[64];
  run(*state, "rem.u32 %r3, %r0, 5; match.any.sync.b32 %r1, %r3, -1;", got);
  for (uint32_t i = 0; i < 32; i++) {
    uint32_t want = 0;
    for (uint32_t j = i % 5; j < 32; j += 5)
      want |= 1u << j;
    assert_int_equal(got[2 * i], want);
  }
  run(*state, "mov.u64 %rd2, 0x100000000; match.all.sync.b64 %r1|%p1, %rd2, -1;", got);
  assert_int_equal(got[10], 0xffffffff);
  assert_int_equal(got[11], 1);
  run(*state,
      "cvt.u64.u32 %rd2, %r0; shl.b64 %rd2, %rd2, 32; match.all.sync.b64 %r1|%p1, %rd2, -1;", got);
  assert_int_equal(got[10], 0);
  assert_int_equal(got[11], 0);
}

static void test_redux(void **state) {
  // lanes 3 and 7 hold -3 and 100, the others their number + 10
  static const struct { const char *op; uint32_t want; } cases[] = {
      {"add.s32", 31 * 32 / 2 - 10 + 300 - 3 + 100}, {"min.s32", (uint32_t)-3},
      {"max.s32", 100}, {"min.u32", 10}, {"max.u32", (uint32_t)-3},
      {"and.b32", 0}, {"or.b32", 0xffffffff}, {"xor.b32", 0}};
  uint32_t got[64], folded = 0;
  for (uint32_t i = 0; i < 32; i++)
    folded ^= i == 3 ? (uint32_t)-3 : i == 7 ? 100 : i + 10;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char body[256];
    snprintf(body, sizeof body,
             "add.u32 %%r3, %%r0, 10; setp.eq.u32 %%p2, %%r0, 3; @%%p2 mov.u32 %%r3, -3;\n"
             "setp.eq.u32 %%p2, %%r0, 7; @%%p2 mov.u32 %%r3, 100; redux.sync.%s %%r1, %%r3, -1;",
             cases[c].op);
    run(*state, body, got);
    for (uint32_t i = 0; i < 32; i++)
      assert_int_equal(got[2 * i], c == 7 ? folded : cases[c].want);
  }
}

// A block whose last warp has 5 lanes: the others never were, and need not be waited for.
static void test_partial_warp(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_body(k, 1, "setp.ge.u32 %p1, %r0, 0; vote.sync.ballot.b32 %r1, %p1, -1;\n"
                                  "shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1;\n"
                                  "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;\n"
                                  "st.global.u32 [%rd1], %r1;");
  DevPtr out = kit_words(k, "out", NULL, 38);
  uint32_t got[38];
  kit_run(k, kernel, 1, 38, &out, 8);
  kit_read(k, out, got, 38);
  assert_int_equal(got[31], 0xffffffff);
  assert_int_equal(got[32], 0x3f);
  assert_int_equal(got[37], 0x3f);
}

static void test_lane_masks(void **state) {
  uint32_t got[64];
  run(*state,
      "mov.u32 %r3, %lanemask_lt; mov.u32 %r4, %lanemask_ge; mov.u32 %r5, %lanemask_eq;\n"
      "mov.u32 %r6, %lanemask_le; mov.u32 %r7, %lanemask_gt; or.b32 %r8, %r3, %r5;\n"
      "xor.b32 %r8, %r8, %r6; not.b32 %r4, %r4; xor.b32 %r4, %r4, %r3; or.b32 %r8, %r8, %r4;\n"
      "not.b32 %r7, %r7; xor.b32 %r7, %r7, %r6; or.b32 %r8, %r8, %r7; setp.eq.u32 %p1, %r8, 0;\n"
      "mov.u32 %r1, %r3;",
      got);
  for (uint32_t i = 0; i < 32; i++) {
    assert_int_equal(got[2 * i], (1u << i) - 1);
    assert_int_equal(got[2 * i + 1], 1);
  }
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {T(test_shfl),  T(test_shfl_lanes), T(test_late_lanes),
                                     T(test_half_a_pair),
                                     T(test_vote),  T(test_match),      T(test_redux),
                                     T(test_partial_warp), T(test_lane_masks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
