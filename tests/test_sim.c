// The interpreter as a device: buffers, grids, divergence, calls, graphs, counters.
#include "sim_kit.h"

// ---- divergence ---------------------------------------------------------------------------------
// Nested branches and loops whose trip counts differ: lane i adds 0 .. i, odd lanes twice that.
static void test_nested(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "diverge.ptx", "nested");
  DevPtr out = kit_words(k, "out", NULL, 64);
  uint32_t got[64];
  kit_run(k, kernel, 1, 64, &out, 8);
  kit_read(k, out, got, 64);
  for (uint32_t i = 0; i < 64; i++)
    assert_int_equal(got[i], (i & 1 ? 2 : 1) * (i * (i + 1) / 2));
}

// Behind the loop all lanes are one group again: activemask tells.
static void test_reconverge(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "diverge.ptx", "reconverge");
  DevPtr out = kit_words(k, "out", NULL, 96);
  uint32_t got[96];
  kit_run(k, kernel, 1, 32, &out, 8);
  kit_read(k, out, got, 96);
  for (uint32_t i = 0; i < 32; i++) {
    assert_int_equal(got[3 * i], i % 3 == 0 ? 0x49249249 : i % 3 == 1 ? 0x92492492 : 0x24924924);
    assert_int_equal(got[3 * i + 1], 0xffffffff);
    assert_int_equal(got[3 * i + 2], 0xffffffff << i); // trip i of a loop: lanes i to 31
  }
}

// A lock taken by the lanes of one warp in turn: the one that holds it must get to run although the
// others spin at a lower place.
static void test_spin_lock(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "diverge.ptx", "spin");
  uint32_t zero[2] = {0, 0}, got[2];
  DevPtr lock = kit_words(k, "lock", zero, 2);
  for (uint64_t seed = 0; seed < 3; seed++) {
    device_write(k->dev, lock, zero, 8, k->diag);
    device_sim_opts(k->dev, &(SimOpts){.threads = 1, .seed = seed, .step_limit = 50000000});
    kit_run(k, kernel, 2, 96, &lock, 8);
    kit_read(k, lock, got, 2);
    assert_int_equal(got[0], 0);
    assert_int_equal(got[1], 192);
  }
}

// One warp waits for a flag that another sets.
static void test_spin_warps(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "diverge.ptx", "flag");
  DevPtr out = kit_words(k, "out", NULL, 1);
  uint32_t got;
  kit_run(k, kernel, 1, 64, &out, 8);
  kit_read(k, out, &got, 1);
  assert_int_equal(got, 7);
}

// ---- grids --------------------------------------------------------------------------------------
static void test_special_registers(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "grid.ptx", "sregs");
  enum { N = 2 * 3 * 2 * 30 };
  DevPtr out = kit_words(k, "out", NULL, N * 4);
  static uint32_t got[N * 4];
  Launch l = {
      .kernel = kernel, .grid = {2, 3, 2}, .block = {5, 3, 2}, .args = &out, .arg_bytes = 8};
  assert_int_equal(device_launch(k->dev, &l, k->diag), ST_OK);
  kit_read(k, out, got, N * 4);
  for (uint32_t i = 0; i < N; i++) {
    uint32_t t = i % 30, b = i / 30;
    assert_int_equal(got[4 * i], t % 5 | t / 5 % 3 << 8 | t / 15 << 16);
    assert_int_equal(got[4 * i + 1], b % 2 | b / 2 % 3 << 8 | b / 6 << 16);
    assert_int_equal(got[4 * i + 2], 5 | 3 << 8 | 2 << 16);
    assert_int_equal(got[4 * i + 3], 2 | 3 << 8 | 2 << 16);
  }
}

// Any grid gives the same answer, on any number of host threads, and the same counts.
static void test_grids(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "grid.ptx", "stride");
  uint32_t in[1000], got[1000];
  for (uint32_t i = 0; i < 1000; i++)
    in[i] = i * i;
  struct { DevPtr in, out; uint64_t n; } args = {kit_words(k, "in", in, 1000), 0, 1000};
  args.out = kit_words(k, "out", NULL, 1000);
  Counters one[4] = {0}, c;
  static const uint32_t grids[4] = {1, 3, 8, 100};
  for (int threads = 1; threads <= 3; threads++) {
    device_sim_opts(k->dev, &(SimOpts){.threads = threads, .counters = true});
    for (int g = 0; g < 4; g++) {
      device_counters(k->dev, &c, true);
      kit_run(k, kernel, grids[g], 64, &args, sizeof args);
      kit_read(k, args.out, got, 1000);
      for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(got[i], i * i + 1);
      device_counters(k->dev, &c, true);
      assert_int_equal(c.global_read_bytes, 4000);
      assert_int_equal(c.global_read_sectors, 125);
      if (threads == 1)
        one[g] = c;
      assert_memory_equal(&one[g], &c, sizeof c);
    }
  }
}

// Counts of a kernel that can be done by hand: 32 lanes, of which 8 take the guarded fma.
static void test_counters(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_body(k, 1, "mov.f32 %f0, 0f3F800000;\nsetp.lt.u32 %p1, %r0, 8;\n"
                                  "fma.rn.f32 %f1, %f0, %f0, %f0;\n@%p1 fma.rn.f32 %f1, %f0, %f0, "
                                  "%f1;\nex2.approx.f32 %f1, %f1;\nmul.wide.u32 %rd1, %r0, 128;\n"
                                  "add.u64 %rd1, %rd0, %rd1;\nst.global.f32 [%rd1], %f1;\nret;");
  DevPtr out = kit_words(k, "out", NULL, 1024);
  Counters c;
  device_sim_opts(k->dev, &(SimOpts){.threads = 1, .counters = true});
  kit_run(k, kernel, 1, 32, &out, 8);
  device_counters(k->dev, &c, true);
  assert_int_equal(c.warp_insts, 11);
  assert_int_equal(c.thread_insts, 10 * 32 + 8);
  assert_int_equal(c.by_pipe[PTX_PIPE_FMA], 32 + 8 + 32); // both fma and the wide multiply
  assert_int_equal(c.flops, 2 * (32 + 8));
  assert_int_equal(c.xu_ops, 32);
  assert_int_equal(c.global_write_bytes, 128);
  assert_int_equal(c.global_write_sectors, 32);
  assert_int_equal(c.divergent_branches, 0);
}

// Every lane of many CTAs adds to the same words.
static void test_atomics(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "grid.ptx", "atomics");
  uint32_t start[8] = {0, 0, 0xffffffff, 0, 0, 0, 0, 5}, got[8];
  DevPtr out = kit_words(k, "out", start, 8);
  device_sim_opts(k->dev, &(SimOpts){.threads = 4});
  kit_run(k, kernel, 50, 96, &out, 8);
  kit_read(k, out, got, 8);
  assert_int_equal(got[0], 4800);            // add
  assert_int_equal(got[1], 95);              // max.u32 of tid
  assert_int_equal(got[2], 0xffffffff - 95); // min.s32 of -1 - tid
  assert_int_equal(got[3], 0x7f);            // or of tid
  assert_int_equal(got[4], 4800 % 10);       // inc, wraps after 9
  assert_int_equal(got[5], 0x45960000);      // f32: 4800
  assert_int_equal(got[6], 4800);            // by cas
  assert_int_equal(got[7], 5);               // exch with itself
}

// 16-byte loads of a whole warp side by side, of a part of it, and at a stride: the same sums.
// Braces around one register, as Triton writes its stores.
static void test_vector_of_one(void **state) {
  Kit *k = *state;
  uint32_t in[2] = {7, 9}, got[1];
  Kernel *kernel =
      kit_body(k, 2, "ld.global.b32 {%r1}, [%rd0+4]; st.global.b32 [ %rd1 + 0 ], { %r1 };");
  DevPtr args[2] = {kit_words(k, "in", in, 2), kit_fill(k, "out", 0, 1)};
  kit_run(k, kernel, 1, 1, args, 16);
  kit_read(k, args[1], got, 1);
  assert_int_equal(got[0], 9);
  kernel_free(kernel);
}

static void test_vector_loads(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "load.ptx", NULL);
  uint32_t in[2048], got[128];
  for (uint32_t i = 0; i < 2048; i++) {
    float f = (float)(i % 97);
    memcpy(&in[i], &f, 4);
  }
  struct { DevPtr out, in; uint32_t n; } args = {kit_words(k, "out", NULL, 128),
                                                 kit_words(k, "in", in, 2048), 2048};
  static const uint32_t blocks[] = {128, 100}; // the last warp of 100 is a partial one
  for (int b = 0; b < 2; b++) {
    kit_run(k, kernel, 1, blocks[b], &args, 20);
    kit_read(k, args.out, got, 128);
    for (uint32_t t = 0; t < blocks[b]; t++) {
      float want = 0, f;
      for (uint32_t i = 4 * t; i < 2048; i += 512)
        for (uint32_t e = 0; e < 4; e++)
          want += (float)((i + e) % 97);
      memcpy(&f, &got[t], 4);
      assert_true(f == want);
    }
  }
  // Elements in their order, from a place that only some lanes share.
  kernel = kit_body(k, 2,
                    "and.b32 %r1, %r0, 7; mul.wide.u32 %rd2, %r1, 48; add.u64 %rd2, %rd0, %rd2;\n"
                    "ld.global.v4.u32 {%r2, _, _, %r5}, [%rd2]; mul.wide.u32 %rd3, %r0, 8;\n"
                    "add.u64 %rd3, %rd1, %rd3;\n"
                    "st.global.v2.u32 [%rd3], {%r2, %r5};");
  DevPtr two[2] = {args.in, kit_words(k, "pairs", NULL, 64)};
  kit_run(k, kernel, 1, 32, two, 16);
  kit_read(k, two[1], got, 64);
  for (uint32_t t = 0; t < 32; t++) {
    assert_int_equal(got[2 * t], in[12 * (t & 7)]);
    assert_int_equal(got[2 * t + 1], in[12 * (t & 7) + 3]);
  }
}

// The benchmark's chain of fma, against the host's.
static void test_fma(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "fma.ptx", NULL);
  struct { DevPtr out; uint32_t n; } args = {kit_words(k, "out", NULL, 64), 8};
  uint32_t got[64];
  kit_run(k, kernel, 2, 32, &args, 12);
  kit_read(k, args.out, got, 64);
  for (uint32_t t = 0; t < 64; t++) {
    float x = (float)t, f;
    for (int i = 0; i < 8; i++)
      x = x * 0.5f + 1.0f; // every product is exact
    memcpy(&f, &got[t], 4);
    assert_true(f == (x + x) + (x + x));
  }
}

// ---- shared memory, graphs ----------------------------------------------------------------------
// 160 KiB of dynamic shared memory, reversed through it.
static void test_dynamic_shared(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "grid.ptx", "reverse");
  struct { DevPtr out; uint64_t words; } args = {kit_words(k, "out", NULL, 40960), 40960};
  Launch l = {.kernel = kernel, .grid = {1, 1, 1}, .block = {256, 1, 1}, .smem = 160 * 1024,
              .args = &args, .arg_bytes = 16};
  static uint32_t got[40960];
  assert_int_equal(device_launch(k->dev, &l, k->diag), ST_OK);
  kit_read(k, args.out, got, 40960);
  for (uint32_t i = 0; i < 40960; i++)
    assert_int_equal(got[i], 40959 - i);
}

// A graph keeps its own copy of the arguments and may be launched again and again.
static void test_graph(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_body(k, 1, "atom.global.add.u32 %r1, [%rd0], 1;");
  uint32_t zero = 0, got;
  DevPtr out = kit_words(k, "out", &zero, 1), args = out;
  Graph *g;
  assert_int_equal(device_graph_begin(k->dev, k->diag), ST_OK);
  kit_run(k, kernel, 1, 32, &args, 8);
  kit_run(k, kernel, 2, 32, &args, 8);
  assert_int_equal(device_graph_end(k->dev, &g, k->diag), ST_OK);
  args = 0;
  kit_read(k, out, &got, 1);
  assert_int_equal(got, 0); // captured, not run
  for (uint32_t n = 1; n <= 3; n++) {
    assert_int_equal(device_graph_launch(k->dev, g, k->diag), ST_OK);
    kit_read(k, out, &got, 1);
    assert_int_equal(got, 96 * n);
  }
  device_graph_free(k->dev, g);
  double ms;
  assert_int_equal(device_elapsed(k->dev, 0, 1, &ms, k->diag), ST_DEVICE); // no times here
}

static void test_buffers(void **state) {
  Kit *k = *state;
  DevPtr a = kit_fill(k, "a", 7, 8), b = kit_words(k, "b", NULL, 8);
  uint32_t got[8];
  assert_int_equal(device_copy(k->dev, b + 4, a, 8, k->diag), ST_OK);
  kit_read(k, b, got, 8);
  assert_int_equal(got[1], 7);
  assert_int_equal(got[3], 0);
  // What was not written stays so in a copy over what was.
  DevPtr from = kit_words(k, "from", NULL, 8);
  uint8_t marks[32];
  assert_int_equal(device_write(k->dev, from + 4, got, 4, k->diag), ST_OK);
  assert_int_equal(device_copy(k->dev, a + 8, from, 8, k->diag), ST_OK);
  assert_true(device_written(k->dev, a, 32, marks));
  for (int i = 0; i < 32; i++) assert_int_equal(marks[i], i < 8 || i >= 12);
  assert_int_equal(device_write(k->dev, a + 28, got, 8, k->diag), ST_INPUT);
  assert_string_equal(k->diag->last->what,
                      "sim: write of 8 bytes at offset 28 of \"a\" (32 bytes)");
  assert_int_equal(device_fill32(k->dev, a + 2, 0, 4, k->diag), ST_INPUT);
  DevPtr huge;
  assert_int_equal(device_alloc(k->dev, UINT64_C(1) << 50, "huge", &huge, k->diag), ST_DEVICE);
  assert_int_equal(huge, 0);
  device_free(k->dev, a);
  assert_int_equal(device_read(k->dev, got, a, 4, k->diag), ST_INPUT);
}

static void test_open(void **state) {
  Kit *k = *state;
  Device *dev;
  assert_int_equal(device_open("simm", &dev, k->diag), ST_INPUT);
  assert_null(dev);
  assert_int_equal(device_open("cuda:x", &dev, k->diag), ST_INPUT);
  assert_true(device_info(k->dev)->is_sim);
  assert_string_equal(device_info(k->dev)->id, "sim");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {
      T(test_nested), T(test_reconverge), T(test_spin_lock), T(test_spin_warps),
      T(test_special_registers), T(test_grids), T(test_counters), T(test_atomics),
      T(test_vector_of_one), T(test_vector_loads), T(test_fma),
      T(test_dynamic_shared), T(test_graph), T(test_buffers), T(test_open)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
