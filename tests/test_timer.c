// Timing: the statistics, what is launched between the events, the modelled time of sim.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "bench.h"
#include "cu_device.h"
#include "fake_cuda.h"

#define FAKE BUILD_DIR "/tests/libfake_cuda.so"

// ---- statistics ---------------------------------------------------------------------------------

// n samples 1, 2 ... n in a scrambled order (7 has no divisor in common with n).
static Timing of_first(int n) {
  double *us = malloc(sizeof *us * (size_t)n);
  for (int i = 0; i < n; i++) us[i] = 1 + (7 * i + 3) % n;
  Timing t = {0};
  timing_of_samples(us, n, &t);
  for (int i = 1; i < n; i++) assert_true(us[i - 1] <= us[i]);
  free(us);
  return t;
}

static void medians_and_intervals(void **state) {
  (void)state;
  // Ranks of the 95 % interval of the median, from the binomial distribution's table.
  static const struct { int n; double median, low, high; } known[] = {
      {5, 3, 1, 5},        {6, 3.5, 1, 6},      {8, 4.5, 1, 8},   {9, 5, 2, 8},
      {10, 5.5, 2, 9},     {20, 10.5, 6, 15},   {50, 25.5, 18, 33},
      {100, 50.5, 40, 61}, {1000, 500.5, 469, 532},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    Timing t = of_first(known[i].n);
    assert_int_equal(t.samples, known[i].n);
    assert_true(t.median_us == known[i].median);
    if (t.low_us != known[i].low || t.high_us != known[i].high)
      fail_msg("n = %d: %g to %g", known[i].n, t.low_us, t.high_us);
    assert_true(t.min_us == 1);
    assert_true(t.max_us == known[i].n);
  }
}

static void one_sample_is_its_own_interval(void **state) {
  (void)state;
  double us = 7;
  Timing t = {0};
  timing_of_samples(&us, 1, &t);
  assert_true(t.median_us == 7 && t.low_us == 7 && t.high_us == 7);
}

// ---- what is launched ---------------------------------------------------------------------------

typedef struct Setup {
  Diag *d;
  Session *s;
  FakeCuda *fake;
  Device *dev;
  Operator *op;
} Setup;

static void must(const Setup *u, Status st) {
  if (st) fail_msg("%s", diag_text(u->d));
}

static Operator *reader(const Setup *u, const char *params, int64_t words, uint32_t grid,
                        DevPtr *src, DevPtr *sums) {
  Operator *op = NULL;
  must(u, device_alloc(u->dev, 4 * (uint64_t)words, "src", src, u->d));
  must(u, device_alloc(u->dev, 4 * grid, "sums", sums, u->d));
  must(u, ceiling_read_make(u->s, u->dev, params, *src, words, *sums, grid, &op, u->d));
  return op;
}

static Setup on_fake(void) {
  Setup u = {.d = diag_new()};
  void *library = dlopen(FAKE, RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
  FakeCudaState get;
  *(void **)&get = dlsym(library, "fake_cuda_state");
  u.fake = get();
  *u.fake = (FakeCuda){.devices = 1, .driver_version = 13000, .free_bytes = (size_t)1 << 30};
  u.s = session_open(NULL, u.d);
  must(&u, cu_open(FAKE, 0, &u.dev, u.d));
  DevPtr src, sums;
  u.op = reader(&u, "block=128", 4096, 8, &src, &sums);
  return u;
}

static void close_setup(Setup *u) {
  operator_free(u->op);
  device_close(u->dev);
  session_close(u->s);
  diag_free(u->d);
}

static Timing timed(const Setup *u, TimeOpts o) {
  Timing t;
  int before = u->fake->launches;
  must(u, time_operator(u->s, u->dev, u->op, &o, &t, u->d));
  u->fake->launches -= before;
  return t;
}

static void assert_each_is_a_launch(const Timing *t) {
  assert_true(fabs(t->min_us - FAKE_LAUNCH_US) < 1e-3);
  assert_true(fabs(t->median_us - FAKE_LAUNCH_US) < 1e-3);
  assert_true(fabs(t->max_us - FAKE_LAUNCH_US) < 1e-3);
}

static void cold_launches_have_a_flush_each(void **state) {
  (void)state;
  Setup u = on_fake();
  Timing t = timed(&u, (TimeOpts){.warmup = 2, .samples = 10});
  // One to load, two to warm up, ten timed; as many flushes.
  assert_int_equal(u.fake->launches, 2 * (1 + 2 + 10));
  assert_true(t.cold);
  assert_false(t.modelled);
  assert_each_is_a_launch(&t); // the flush is outside of the events
  assert_int_equal(t.samples, 10);
  assert_int_equal(bench_of(u.dev)->flush->step[0].grid[0], 2 * 132);
  close_setup(&u);
  assert_int_equal(u.fake->buffers + u.fake->modules + u.fake->events, 0);
}

static void hot_launches_have_none(void **state) {
  (void)state;
  Setup u = on_fake();
  Timing t = timed(&u, (TimeOpts){.warmup = 2, .samples = 10, .hot = true});
  assert_int_equal(u.fake->launches, 1 + 2 + 10);
  assert_false(t.cold);
  assert_each_is_a_launch(&t);
  assert_null(bench_of(u.dev)->flush);
  close_setup(&u);
}

static void more_samples_than_events(void **state) {
  (void)state;
  Setup u = on_fake();
  Timing t = timed(&u, (TimeOpts){.warmup = 1, .samples = 1300, .hot = true});
  assert_int_equal(u.fake->launches, 1 + 1 + 1300);
  assert_int_equal(t.samples, 1300);
  assert_each_is_a_launch(&t);
  close_setup(&u);
}

static void samples_fit_the_budget(void **state) {
  (void)state;
  Setup u = on_fake(); // a launch is 50 us: 100 ms are 2000
  assert_int_equal(timed(&u, (TimeOpts){.hot = true}).samples, 2000);
  assert_int_equal(timed(&u, (TimeOpts){.hot = true, .budget_ms = 5}).samples, 100);
  assert_int_equal(timed(&u, (TimeOpts){.hot = true, .budget_ms = 0.1}).samples, 20);
  close_setup(&u);
}

static void graphs_hold_twenty_launches(void **state) {
  (void)state;
  Setup u = on_fake();
  Timing t = timed(&u, (TimeOpts){.warmup = 1, .samples = 5, .graph = true, .hot = true});
  assert_int_equal(u.fake->launches, 1 + 1 + 20);
  assert_true(t.graph);
  assert_each_is_a_launch(&t);
  t = timed(&u, (TimeOpts){.warmup = 1, .samples = 5, .graph = true});
  assert_int_equal(u.fake->launches, 2 * (1 + 1) + 20 * 2 + 20); // with flush, and flush alone
  assert_each_is_a_launch(&t); // of 40 launches, 20 flushes off
  assert_int_equal(u.fake->graphs + u.fake->execs, 0);
  close_setup(&u);
}

static void failing_launch_ends_the_capture(void **state) {
  (void)state;
  Setup u = on_fake();
  Timing t;
  u.fake->fail_call = "cuLaunchKernel";
  u.fake->fail_result = 701;
  u.fake->fail_skip = 10;
  TimeOpts o = {.warmup = 1, .samples = 5, .graph = true, .hot = true};
  assert_int_equal(time_operator(u.s, u.dev, u.op, &o, &t, u.d), ST_DEVICE);
  u.fake->fail_call = NULL;
  diag_reset(u.d);
  must(&u, time_operator(u.s, u.dev, u.op, &o, &t, u.d)); // the stream is usable again
  close_setup(&u);
  assert_int_equal(u.fake->graphs + u.fake->execs, 0);
}

// ---- sim ----------------------------------------------------------------------------------------

static Setup on_sim(void) {
  Setup u = {.d = diag_new()};
  u.s = session_open(NULL, u.d);
  must(&u, device_open("sim", &u.dev, u.d));
  device_sim_opts(u.dev, &(SimOpts){.counters = true});
  return u;
}

static Timing modelled(Setup *u, const char *params, int64_t words, uint32_t grid) {
  DevPtr src, sums;
  Timing t, again;
  Operator *op = reader(u, params, words, grid, &src, &sums);
  must(u, device_fill32(u->dev, src, 1, 4 * (uint64_t)words, u->d));
  must(u, time_operator(u->s, u->dev, op, NULL, &t, u->d));
  must(u, time_operator(u->s, u->dev, op, NULL, &again, u->d));
  assert_true(t.median_us == again.median_us); // counted, so the same every time
  operator_free(op);
  device_free(u->dev, src);
  device_free(u->dev, sums);
  return t;
}

static void sim_times_are_modelled_and_say_so(void **state) {
  (void)state;
  Setup u = on_sim();
  Timing t = modelled(&u, "block=128 unroll=4", 1 << 18, 132);
  assert_true(t.modelled);
  assert_string_equal(timing_method(&t), "modelled from counted work, not measured");
  // A launch, and 1 MiB (and 132 sums) at 4,491 GB/s: nothing else of a read is slower.
  double want = 1.0 + ((1 << 20) + 4 * 132) / 4491e3;
  assert_true(t.median_us > 0.999 * want && t.median_us < 1.001 * want);
  // Half a wave of tiles reads with half of the SMs, at no more than 68 GB/s each.
  Timing few = modelled(&u, "block=128 unroll=4", 16 * 2048, 16);
  want = 1.0 + (16 * 8192 + 4 * 16) / (16 * 68e3);
  assert_true(few.median_us > 0.999 * want && few.median_us < 1.001 * want);
  close_setup(&u);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(medians_and_intervals),
      cmocka_unit_test(one_sample_is_its_own_interval),
      cmocka_unit_test(cold_launches_have_a_flush_each),
      cmocka_unit_test(hot_launches_have_none),
      cmocka_unit_test(more_samples_than_events),
      cmocka_unit_test(samples_fit_the_budget),
      cmocka_unit_test(graphs_hold_twenty_launches),
      cmocka_unit_test(failing_launch_ends_the_capture),
      cmocka_unit_test(sim_times_are_modelled_and_say_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
