// cp.async: values on PTXSMITH_DEVICE (else sim); misuse, a missing wait above all, on sim.
#include "sim_kit.h"

static const SimCompletion completions[] = {SIM_LATE, SIM_RANDOM, SIM_EAGER};

static void test_stages(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "async.ptx", "copies");
  uint32_t in[6 * 128], got[128];
  for (uint32_t i = 0; i < 6 * 128; i++)
    in[i] = i * i;
  DevPtr args[2] = {kit_words(k, "in", in, 6 * 128), kit_words(k, "out", NULL, 128)};
  for (int mode = 0; mode < 3; mode++)
    for (uint64_t seed = 0; seed < 6; seed++) {
      device_sim_opts(k->dev, &(SimOpts){.threads = 1,
                                         .sanitize = true,
                                         .seed = seed,
                                         .completion = completions[mode]});
      kit_run(k, kernel, 1, 128, args, sizeof args);
      kit_read(k, args[1], got, 128);
      for (uint32_t i = 0; i < 128; i++) {
        uint32_t want = 0;
        for (uint32_t round = 0; round < 6; round++)
          want += in[round * 128 + 127 - i];
        assert_int_equal(got[i], want);
      }
    }
}

static void test_sizes(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "async.ptx", "sizes");
  uint8_t in[17 * 16], got[32 * 16]; // the 17th is the last that may be read
  for (uint32_t i = 0; i < sizeof in; i++)
    in[i] = (uint8_t)(i % 251 + 1);
  DevPtr args[2] = {kit_words(k, "in", (uint32_t *)in, sizeof in / 4),
                    kit_words(k, "out", NULL, sizeof got / 4)};
  for (int mode = 0; mode < 3; mode++) {
    device_sim_opts(k->dev,
                    &(SimOpts){.threads = 1, .sanitize = true, .completion = completions[mode]});
    kit_run(k, kernel, 1, 32, args, sizeof args);
    kit_read(k, args[1], (uint32_t *)got, sizeof got / 4);
    for (uint32_t i = 0; i < sizeof got; i++)
      assert_int_equal(got[i], i / 16 < 17 && i % 16 < i / 16 ? in[i] : 0);
  }
}

// ---- misuse, on sim -----------------------------------------------------------------------------
static void expect(Kit *k, const char *body, const char *what, const char *note) {
  uint32_t words[64] = {1, 2, 3};
  DevPtr in = kit_words(k, "in", words, 64);
  Kernel *kernel = kit_body(
      k, 1, arena_printf(k->arena, ".shared .align 16 .b8 s[256];\nmov.u32 %%r1, s;\n%s", body));
  assert_int_equal(kit_try(k, kernel, 1, 1, &in, 8), ST_FAILED);
  assert_int_equal(k->diag->errors, 1);
  const DiagMsg *m = k->diag->first;
  if (strncmp(m->what, what, strlen(what)))
    fail_msg("%s\nexpected: %s", m->what, what);
  if (note && (!m->next || strncmp(m->next->what, note, strlen(note))))
    fail_msg("%s\nexpected: %s", m->next ? m->next->what : "no note", note);
  diag_reset(k->diag);
  kernel_free(kernel);
  device_free(k->dev, in);
}

#define COPY(at, bytes) "cp.async.ca.shared.global [%r1+" #at "], [%rd0], " #bytes ";\n"
#define COMMIT "cp.async.commit_group;\n"

static void test_misuse(void **state) {
  Kit *k = *state;
  static const char issued[] =
      "the other party: it was issued here by thread (0,0,0), and nothing that makes it "
      "complete has been waited for";
  expect(k, COPY(0, 16) COMMIT "ld.shared.u32 %r2, [%r1+12];",
         "in flight: reads 4 bytes of shared memory, of which byte 12 is not written yet by an "
         "operation in flight: ld.shared", issued);
  expect(k, COPY(0, 16) COMMIT COPY(16, 16) COMMIT "cp.async.wait_group 1;\n"
            "ld.shared.u32 %r2, [%r1];\nld.shared.u32 %r2, [%r1+16];",
         "in flight: reads 4 bytes of shared memory, of which byte 16 is not written yet", issued);
  // wait_group counts groups, and the copy is in none yet.
  expect(k, COPY(0, 16) "cp.async.wait_group 0;\nld.shared.u32 %r2, [%r1];",
         "in flight: reads 4 bytes of shared memory, of which byte 0 is not written yet", issued);
  expect(k, COPY(0, 16) "atom.shared.add.u32 %r2, [%r1], %r1;",
         "in flight: updates 4 bytes of shared memory, of which byte 0 is not written yet", issued);
  expect(k, COPY(0, 8) COPY(4, 4),
         "in flight: writes 4 bytes of shared memory, of which byte 4 is not written yet", issued);
  expect(k, COPY(0, 8) "st.global.u32 [%rd0+4], %r1;",
         "in flight: writes 4 bytes of global memory that an operation in flight still reads",
         issued);
  expect(k, COPY(0, 8) "st.u32 [%rd0+4], %r1;", // a generic address
         "in flight: writes 4 bytes of global memory that an operation in flight still reads",
         issued);
  expect(k, COPY(0, 8) COMMIT, "the block ends while this is in flight: nothing waited for it: "
                               "cp.async.ca.shared.global", NULL);
  expect(k, COPY(4, 8), "misaligned: the destination is at offset 4 of shared memory, which is no "
                        "multiple of 8", NULL);
  expect(k, COPY(256, 4),
         "out of bounds: the destination is 4 bytes at offset 256 of shared memory "
         "(256 bytes)",
         NULL);
  expect(k, "cp.async.ca.shared.global [%r1], [%rd0+256], 4;",
         "out of bounds: reads 4 bytes at offset 256 of \"in\" (256 bytes)", NULL);
  expect(k, "mov.u32 %r2, 5; cp.async.ca.shared.global [%r1], [%rd0], 4, %r2;",
         "cp.async of 4 bytes with a source size of 5", NULL);
}

int main(void) {
#define D(f) cmocka_unit_test_setup_teardown(f, kit_setup_anywhere, kit_teardown)
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {D(test_stages), D(test_sizes), T(test_misuse)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
