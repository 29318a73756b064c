// cp.async: stages, fills, groups, and the traps of missing waits.
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
      device_sim_opts(k->dev,
                      &(SimOpts){.threads = 1, .seed = seed, .completion = completions[mode]});
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

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {T(test_stages)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
