// mbarriers and bulk copies: values on PTXSMITH_DEVICE (else sim), misuse on sim.
#define KIT_SANITIZE false
#include "sim_kit.h"

static const SimOpts modes[] = {
    {.threads = 1, .completion = SIM_LATE},
    {.threads = 1, .completion = SIM_LATE, .seed = 5},
    {.threads = 1, .completion = SIM_RANDOM, .seed = 1},
    {.threads = 1, .completion = SIM_RANDOM, .seed = 2},
    {.threads = 1, .completion = SIM_RANDOM, .seed = 3},
    {.threads = 1, .completion = SIM_EAGER},
};
enum { MODES = sizeof modes / sizeof *modes };

// ---- values -------------------------------------------------------------------------------------
static void test_pipeline(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "mbarrier.ptx", "pipeline");
  uint32_t in[7 * 64], got[64];
  for (uint32_t i = 0; i < 7 * 64; i++)
    in[i] = i * i + 1;
  DevPtr args[2] = {kit_words(k, "in", in, 7 * 64), kit_words(k, "out", NULL, 64)};
  for (int mode = 0; mode < MODES; mode++) {
    device_sim_opts(k->dev, &modes[mode]);
    kit_run(k, kernel, 1, 96, args, sizeof args);
    kit_read(k, args[1], got, 64);
    for (uint32_t i = 0; i < 64; i++) {
      uint32_t want = 0;
      for (uint32_t round = 0; round < 7; round++)
        want += in[round * 64 + 63 - i];
      assert_int_equal(got[i], want);
    }
  }
}

static void test_states(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "mbarrier.ptx", "states");
  DevPtr out = kit_fill(k, "out", 99, 9);
  uint32_t got[9];
  static const uint32_t want[9] = {5, 4, 2, 0, 1, 3, 1, 0, 1};
  kit_run(k, kernel, 1, 1, &out, 8);
  kit_read(k, out, got, 9);
  for (int i = 0; i < 9; i++)
    if (got[i] != want[i])
      fail_msg("value %d is %u, not %u", i, got[i], want[i]);
}

static void test_copy_arrive(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "mbarrier.ptx", "copy_arrive");
  uint32_t in[256], got[256];
  for (uint32_t i = 0; i < 256; i++)
    in[i] = 7 * i;
  DevPtr args[3] = {kit_words(k, "in", in, 256), kit_words(k, "out", NULL, 256), 0};
  for (args[2] = 0; args[2] < 2; args[2]++)
    for (int mode = 0; mode < MODES; mode++) {
      device_sim_opts(k->dev, &modes[mode]);
      kit_run(k, kernel, 1, 64, args, sizeof args);
      kit_read(k, args[1], got, 256);
      for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(got[i], in[(63 - i / 4) * 4 + i % 4]);
    }
}

static void test_stores(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "mbarrier.ptx", "stores");
  for (int mode = 0; mode < MODES; mode++) {
    DevPtr out = kit_fill(k, "out", 5, 48);
    uint32_t got[48];
    device_sim_opts(k->dev, &modes[mode]);
    kit_run(k, kernel, 1, 16, &out, 8);
    kit_read(k, out, got, 48);
    for (uint32_t i = 0; i < 16; i++) {
      assert_int_equal(got[i], 3 * i);
      assert_int_equal(got[16 + i], 3 * i + 1000);
      assert_int_equal(got[32 + i], 3 * i + 1005);
    }
    device_free(k->dev, out);
  }
}

static void test_multicast(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "multicast.ptx", "multicast");
  uint32_t in[32], got[128];
  for (uint32_t i = 0; i < 32; i++)
    in[i] = 3 * i + 7;
  DevPtr args[2] = {kit_words(k, "in", in, 32), kit_words(k, "out", NULL, 128)};
  for (int mode = 0; mode < MODES; mode++) {
    device_sim_opts(k->dev, &modes[mode]);
    Launch l = {.kernel = kernel, .grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1},
                .args = args, .arg_bytes = sizeof args};
    if (device_launch(k->dev, &l, k->diag) != ST_OK || device_sync(k->dev, k->diag) != ST_OK)
      fail_msg("%s", diag_text(k->diag));
    kit_read(k, args[1], got, 128);
    for (uint32_t i = 0; i < 128; i++)
      assert_int_equal(got[i], 3 * (i % 32) + 7 + i % 64 / 32);
  }
}

// ---- misuse -------------------------------------------------------------------------------------
// Runs the body and compares the first message's beginning and its first note's.
static void expect(Kit *k, uint32_t block, const char *body, const char *what, const char *note) {
  static const char prologue[] = ".shared .align 128 .b8 s[1024]; .shared .align 8 .b64 b[2];\n"
                                 "mov.u32 %r1, s; mov.u32 %r2, b;\n";
  uint32_t words[256] = {1, 2, 3};
  DevPtr in = kit_words(k, "in", words, 256);
  Kernel *kernel = kit_body(k, 1, arena_printf(k->arena, "%s%s", prologue, body));
  assert_int_equal(kit_try(k, kernel, 1, block, &in, 8), ST_FAILED);
  const DiagMsg *m = k->diag->first;
  assert_int_equal(k->diag->errors, 1);
  if (strncmp(m->what, what, strlen(what)))
    fail_msg("%s\nexpected: %s", m->what, what);
  if (note && (!m->next || strncmp(m->next->what, note, strlen(note))))
    fail_msg("%s\nexpected: %s", m->next ? m->next->what : "no note", note);
  diag_reset(k->diag);
  kernel_free(kernel);
  device_free(k->dev, in);
}

#define INIT "mbarrier.init.shared.b64 [%r2], 2;\n"
#define LOAD(bytes)                                                                                \
  "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0], " #bytes      \
  ", [%r2];\n"

static void test_counts(void **state) {
  Kit *k = *state;
  expect(k, 1, "mbarrier.arrive.shared.b64 _, [%r2];",
         "no mbarrier at offset 1024 of shared memory: it was not initialised: mbarrier.arrive",
         NULL);
  expect(k, 1, LOAD(16), "no mbarrier at offset 1024 of shared memory: it was not initialised: cp",
         NULL);
  expect(k, 1, "mbarrier.init.shared.b64 [%r2+4], 1;",
         "misaligned: the mbarrier is at offset 1028 of shared memory, which is no multiple of 8",
         NULL);
  expect(k, 1, "mbarrier.init.shared.b64 [%r2+16], 1;",
         "out of bounds: the mbarrier is 8 bytes at offset 1040 of shared memory (1040 bytes)",
         NULL);
  expect(k, 1, "mbarrier.init.shared.b64 [%r2], 0;",
         "mbarrier.init with 0 arrivals: 1 to 2^20-1", NULL);
  expect(k, 1, INIT "mbarrier.arrive.shared.b64 _, [%r2], 3;",
         "3 arrivals at the mbarrier at offset 1024, of which 2 are missing in phase 0",
         "it was initialised here");
  expect(k, 3, "setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [%r2], 2; bar.sync 0;\n"
               "setp.lt.u32 %p2, %r0, 2; @%p2 mbarrier.arrive.shared.b64 _, [%r2];\n"
               "mbarrier.arrive.noComplete.shared.b64 _, [%r2], 2;",
         "the arrival with .noComplete completes phase 1", NULL);
  expect(k, 1, INIT "mov.u32 %r3, 1048575;\n"
                    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], %r3;\n"
                    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 1;",
         "the transaction count of the mbarrier at offset 1024 would be 1048576", NULL);
  expect(k, 1, INIT INIT, "there is an mbarrier at offset 1024 already (phase 0, 2 of 2 arrivals "
                          "missing)", "it was initialised here; mbarrier.inval ends its life");
  expect(k, 1, INIT "ld.shared.u64 %rd1, [%r2];",
         "the mbarrier at offset 1024 of shared memory is used as data", NULL);
  expect(k, 1, INIT "mov.u32 %r3, 0; st.shared.u32 [%r2+4], %r3;",
         "the mbarrier at offset 1024 of shared memory is used as data", NULL);
  expect(k, 1, INIT LOAD(16) "mbarrier.inval.shared.b64 [%r2];",
         "mbarrier.inval while operations in flight will signal the mbarrier (1 due, 0 bytes "
         "expected)", NULL);
  expect(k, 1, INIT "mov.u32 %r3, 2; mbarrier.test_wait.parity.shared.b64 %p1, [%r2], %r3;",
         "a phase parity of 2: 0 or 1", NULL);
  expect(k, 1, "mbarrier.init.shared.b64 [%r2], 1; mbarrier.arrive.shared.b64 %rd1, [%r2];\n"
               "mbarrier.arrive.shared.b64 _, [%r2];\n"
               "mbarrier.test_wait.shared.b64 %p1, [%r2], %rd1;",
         "a wait for phase 0 of the mbarrier at offset 1024, which is in phase 2", NULL);
}

// The first warp completes two phases before the second, which waits for one, can look.
static void test_overrun(void **state) {
  Kit *k = *state;
  expect(
      k, 64,
      "setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [%r2], 1; bar.sync 0;\n"
      "setp.lt.u32 %p2, %r0, 32; @%p2 bra A;\n"
      "W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W; ret;\n"
      "A: setp.ne.u32 %p1, %r0, 0; @%p1 ret;\n"
      "mbarrier.arrive.shared.b64 _, [%r2]; mbarrier.arrive.shared.b64 _, [%r2];",
      "phases 0 and 1 of the mbarrier at offset 1024 were both completed while this thread waited "
      "for the first: it can't tell",
      NULL);
}

static void test_deadlocks(void **state) {
  Kit *k = *state;
#define WAIT "W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W;"
  expect(k, 1, INIT "mbarrier.arrive.shared.b64 _, [%r2];\n" WAIT,
         "deadlock: no thread of the block can go on",
         "warp 0, lanes 00000001: for phase 0 of the mbarrier at 1024 (line 10), where 1 of 2 "
         "arrivals are missing");
  expect(k, 1, "mbarrier.init.shared.b64 [%r2], 1;\n"
               "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 96;\n" LOAD(64) WAIT,
         "deadlock: no thread of the block can go on",
         "warp 0, lanes 00000001: for phase 0 of the mbarrier at 1024 (line 10), where 0 of 1 "
         "arrivals are missing; 32 bytes are missing: 96 expected at line 11, 64 copied");
  expect(k, 1, "mbarrier.init.shared.b64 [%r2], 1;\n"
               "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 48;\n" LOAD(64) WAIT,
         "deadlock: no thread of the block can go on",
         "warp 0, lanes 00000001: for phase 0 of the mbarrier at 1024 (line 10), where 0 of 1 "
         "arrivals are missing; 16 bytes too many came: 48 expected, 64 copied");
}

static void test_in_flight(void **state) {
  Kit *k = *state;
  static const char issued[] =
      "the other party: it was issued here by thread (0,0,0), and nothing that makes it "
      "complete has been waited for";
#define EXPECT                                                                                     \
  "mbarrier.init.shared.b64 [%r2], 1;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;\n"
  expect(k, 1, EXPECT LOAD(64) "ld.shared.u32 %r3, [%r1+60];",
         "in flight: reads 4 bytes of shared memory, of which byte 60 is not written yet", issued);
  expect(k, 1, EXPECT LOAD(64) "mov.u32 %r3, 1; st.shared.u32 [%r1+4], %r3;",
         "in flight: writes 4 bytes of shared memory, of which byte 4 is not written yet", issued);
  expect(k, 1, EXPECT LOAD(64) LOAD(64),
         "in flight: writes 64 bytes of shared memory, of which byte 0 is not written yet", issued);
  expect(k, 1, EXPECT LOAD(64) "mov.u32 %r3, 1; st.global.u32 [%rd0+8], %r3;",
         "in flight: writes 4 bytes of global memory that an operation in flight still reads",
         issued);
  expect(k, 1, EXPECT LOAD(64), "the block ends while this is in flight: nothing waited for it",
         NULL);
#define STORED "mov.u64 %rd2, 0; st.shared.v2.u64 [%r1], {%rd2, %rd2};\n"                          \
  "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r1], 16;\ncp.async.bulk.commit_group;\n"
  expect(k, 1, STORED "st.shared.u64 [%r1+8], %rd2;",
         "in flight: writes 8 bytes of shared memory, of which byte 8 is still read", issued);
  expect(
      k, 1, STORED "cp.async.bulk.wait_group.read 0;\nld.global.u32 %r3, [%rd0];",
      "in flight: reads 4 bytes of global memory that an operation in flight has not written yet",
      issued);
  expect(
      k, 1, STORED "cp.async.bulk.wait_group.read 0;\nld.u32 %r3, [%rd0];", // a generic address
      "in flight: reads 4 bytes of global memory that an operation in flight has not written yet",
      issued);
  expect(k, 1, STORED, "the block ends before this has read its shared memory: no "
                       "cp.async.bulk.wait_group waited for it", NULL);
  expect(k, 1, STORED "cp.async.bulk.wait_group 1;\nst.shared.u64 [%r1+8], %rd2;",
         "in flight: writes 8 bytes of shared memory, of which byte 8 is still read", issued);
  expect(k, 1, "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r1], 16;",
         "uninitialised read: byte 0 of shared memory was never written", NULL);
  expect(k, 1, EXPECT "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+8], "
                      "[%rd0], 16, [%r2];",
         "misaligned: the destination is at offset 8 of shared memory, which is no multiple of 16",
         NULL);
  expect(k, 1, EXPECT LOAD(24), "a bulk copy of 24 bytes: multiples of 16", NULL);
  expect(k, 1, EXPECT "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 48;",
         "the block ends while the mbarrier at offset 1024 has 16 bytes still to come in phase 0",
         NULL);
}

int main(void) {
#define D(f) cmocka_unit_test_setup_teardown(f, kit_setup_anywhere, kit_teardown)
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {D(test_pipeline), D(test_states),    D(test_copy_arrive),
                                     D(test_stores),   D(test_multicast), T(test_counts),
                                     T(test_overrun),  T(test_deadlocks), T(test_in_flight)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
