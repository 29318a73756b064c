// Barriers of the CTA and of the warp, and what happens when they can't complete.
#include "sim_kit.h"

static void test_pipeline(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "barrier.ptx", "pipeline");
  DevPtr out = kit_words(k, "out", NULL, 64);
  uint32_t got[64];
  for (uint64_t seed = 0; seed < 8; seed++) {
    device_sim_opts(k->dev, &(SimOpts){.threads = 1, .sanitize = true, .seed = seed});
    kit_run(k, kernel, 1, 128, &out, 8);
    kit_read(k, out, got, 64);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(got[i], 1000 + 2 * (63 - i));
  }
}

static void test_reduce(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "barrier.ptx", "reduce");
  DevPtr out = kit_words(k, "out", NULL, 3 * 69);
  uint32_t got[3 * 69];
  kit_run(k, kernel, 1, 69, &out, 8);
  kit_read(k, out, got, 3 * 69);
  for (uint32_t i = 0; i < 69; i++) {
    assert_int_equal(got[3 * i], 40);
    assert_int_equal(got[3 * i + 1], 0);
    assert_int_equal(got[3 * i + 2], 3);
  }
}

static void test_unaligned(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "barrier.ptx", "unaligned");
  DevPtr out = kit_words(k, "out", NULL, 60);
  uint32_t got[60];
  kit_run(k, kernel, 1, 64, &out, 8);
  kit_read(k, out, got, 60);
  for (uint32_t i = 0; i < 60; i++) assert_int_equal(got[i], 30 + 30000);
}

static void test_leave(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "barrier.ptx", "leave");
  DevPtr out = kit_fill(k, "out", 0, 96);
  uint32_t got[96];
  kit_run(k, kernel, 1, 96, &out, 8);
  kit_read(k, out, got, 96);
  for (uint32_t i = 0; i < 96; i++) assert_int_equal(got[i], i < 32 ? 0 : 127 - i);
}

// .aligned names the lanes of the warp that have not ended, whether they ended before the others
// came or while those waited.
static void test_aligned_without_ended_lanes(void **state) {
#define STORE "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r1;"
  static const char *const bodies[] = {
      "setp.lt.u32 %p1, %r0, 5; @%p1 exit; bar.red.popc.u32 %r1, 0, !%p1;" STORE,
      "setp.lt.u32 %p1, %r0, 5; @%p1 bra LATE; bar.red.popc.u32 %r1, 0, !%p1;" STORE
      "ret; LATE: mov.u32 %r1, 9; L: sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; "
      "ret;",
  };
  Kit *k = *state;
  DevPtr out = kit_fill(k, "out", 0, 64);
  for (int n = 0; n < 2; n++) {
    uint32_t got[64];
    kit_run(k, kit_body(k, 1, bodies[n]), 1, 64, &out, 8);
    kit_read(k, out, got, 64);
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(got[i], i < 5 ? 0 : 59);
  }
#undef STORE
}

static void test_halves(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "barrier.ptx", "halves");
  DevPtr out = kit_words(k, "out", NULL, 32);
  uint32_t got[32];
  kit_run(k, kernel, 1, 32, &out, 8);
  kit_read(k, out, got, 32);
  for (uint32_t i = 0; i < 32; i++) assert_int_equal(got[i], i < 16 ? i ^ 1 : i ^ 15);
}

// ---- deadlock
// -------------------------------------------------------------------------------------
static void expect_deadlock(Kit *k, const char *body, uint32_t block, const char *const *notes,
                            int n) {
  Kernel *kernel = kit_body(k, 0, body);
  assert_int_equal(kit_try(k, kernel, 1, block, NULL, 0), ST_FAILED);
  const DiagMsg *m = k->diag->first;
  assert_non_null(strstr(m->what, "deadlock: no thread of the block can go on"));
  for (int i = 0; i < n; i++) {
    m = m->next;
    assert_non_null(m);
    assert_int_equal(m->severity, SEV_NOTE);
    assert_string_equal(m->what, notes[i]);
  }
  assert_null(m->next);
  diag_reset(k->diag);
  kernel_free(kernel);
}

static void test_deadlock(void **state) {
  Kit *k = *state;
  // One warp at a barrier for two.
  expect_deadlock(
      k, "bar.sync 1, 64;", 32,
      (const char *[]){"warp 0, lanes ffffffff: at barrier 1, where 32 of 64 threads have arrived"},
      1);
  // The two warps wait at different barriers.
  expect_deadlock(
      k, "setp.lt.u32 %p1, %r0, 32; @%p1 bra A; bar.sync 0; ret; A: bar.sync 5;", 64,
      (const char *[]){"warp 0, lanes ffffffff: at barrier 5, where 32 of 64 threads have arrived",
                       "warp 1, lanes ffffffff: at barrier 0, where 32 of 64 threads have arrived"},
      2);
  // .aligned in two branches: either half waits for the other to come.
  expect_deadlock(
      k, "setp.lt.u32 %p1, %r0, 8; @%p1 bra A; bar.sync 0; ret; A: bar.sync 0; ret;", 32,
      (const char *[]){"warp 0, lanes 000000ff: for lanes ffffff00 of their warp to come here",
                       "warp 0, lanes ffffff00: for lanes 000000ff of their warp to come here"},
      2);
  // A shuffle that half of the named lanes never execute.
  expect_deadlock(
      k,
      "setp.lt.u32 %p1, %r0, 16; @%p1 bra A; bar.warp.sync -1; ret;\n"
      "A: shfl.sync.idx.b32 %r1, %r0, 0, 31, -1; ret;",
      32,
      (const char *[]){"warp 0, lanes 0000ffff: for lanes ffff0000 of their warp to come here",
                       "warp 0, lanes ffff0000: for lanes 0000ffff of their warp to come here"},
      2);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {T(test_pipeline),
                                     T(test_reduce),
                                     T(test_unaligned),
                                     T(test_leave),
                                     T(test_aligned_without_ended_lanes),
                                     T(test_halves),
                                     T(test_deadlock)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
