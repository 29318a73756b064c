// Clusters: ids, the cluster barrier, distributed shared memory; elect.sync.  The kernels that are
// right also run on a GPU (PTXSMITH_DEVICE=cuda:0).
#include "sim_kit.h"

static Status launch(Kit *k, Kernel *kernel, const uint32_t grid[3], const uint32_t cluster[3],
                     uint32_t block, const void *args, uint32_t bytes) {
  Launch l = {.kernel = kernel, .block = {block, 1, 1}, .args = args, .arg_bytes = bytes};
  memcpy(l.grid, grid, sizeof l.grid);
  memcpy(l.cluster, cluster, sizeof l.cluster);
  Status st = device_launch(k->dev, &l, k->diag);
  return st == ST_OK ? device_sync(k->dev, k->diag) : st;
}

static void run(Kit *k, Kernel *kernel, const uint32_t grid[3], const uint32_t cluster[3],
                uint32_t block, const void *args, uint32_t bytes) {
  if (launch(k, kernel, grid, cluster, block, args, bytes) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
}

static void ids_of(Kit *k, const uint32_t grid[3], const uint32_t cluster[3], bool is_cluster) {
  Kernel *kernel = kit_load(k, "cluster.ptx", "ids");
  uint32_t n = grid[0] * grid[1] * grid[2], got[16 * 96];
  DevPtr out = kit_words(k, "out", NULL, 16 * n);
  run(k, kernel, grid, cluster, 32, &out, 8);
  kit_read(k, out, got, 16 * n);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t *g = got + 16 * i;
    uint32_t id[3] = {i % grid[0], i / grid[0] % grid[1], i / grid[0] / grid[1]}, in[3];
    for (int d = 0; d < 3; d++) {
      in[d] = id[d] % cluster[d];
      assert_int_equal(g[d], in[d]);
      assert_int_equal(g[3 + d], cluster[d]);
      assert_int_equal(g[8 + d], id[d] / cluster[d]);
      assert_int_equal(g[11 + d], grid[d] / cluster[d]);
    }
    assert_int_equal(g[6], in[0] + cluster[0] * (in[1] + cluster[1] * in[2]));
    assert_int_equal(g[7], cluster[0] * cluster[1] * cluster[2]);
    assert_int_equal(g[14], is_cluster);
  }
  device_free(k->dev, out);
  kernel_free(kernel);
}

static void test_ids(void **state) {
  ids_of(*state, (uint32_t[]){4, 6, 4}, (uint32_t[]){2, 3, 1}, true);
  ids_of(*state, (uint32_t[]){3, 2, 2}, (uint32_t[]){1, 1, 2}, true);
  ids_of(*state, (uint32_t[]){5, 2, 3}, (uint32_t[]){1, 1, 1}, false);
}

static void test_exchange(void **state) {
  enum { BLOCKS = 16 };
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "cluster.ptx", "exchange");
  DevPtr args[2] = {kit_words(k, "out", NULL, 64 * BLOCKS), kit_words(k, "count", NULL, 4)};
  uint32_t got[64 * BLOCKS], count[BLOCKS / 4];
  for (uint64_t seed = 0; seed < 6; seed++) {
    device_sim_opts(k->dev, &(SimOpts){.threads = 2, .seed = seed});
    run(k, kernel, (uint32_t[]){BLOCKS, 1, 1}, (uint32_t[]){4, 1, 1}, 64, args, sizeof args);
    kit_read(k, args[0], got, 64 * BLOCKS);
    kit_read(k, args[1], count, BLOCKS / 4);
    for (uint32_t b = 0; b < BLOCKS; b++)
      for (uint32_t t = 0; t < 64; t++) {
        uint32_t next = (b & ~3u) | ((b + 1) & 3), sender = next & 3;
        uint32_t mail = 16 * ((sender + 1) & 3) + sender;
        assert_int_equal(got[64 * b + t], mail * 1000000 + 2 * (next * 1000 + t));
      }
    for (int i = 0; i < BLOCKS / 4; i++)
      assert_int_equal(count[i], 4 * 64);
  }
  device_free(k->dev, args[0]);
  device_free(k->dev, args[1]);
  kernel_free(kernel);
}

static void test_leave(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "cluster.ptx", "leave");
  DevPtr out = kit_words(k, "out", NULL, 2);
  uint32_t got[2];
  run(k, kernel, (uint32_t[]){2, 1, 1}, (uint32_t[]){2, 1, 1}, 96, &out, 8);
  kit_read(k, out, got, 2);
  assert_int_equal(got[0], 10);
  assert_int_equal(got[1], 11);
  device_free(k->dev, out);
  kernel_free(kernel);
}

static void test_elect(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "cluster.ptx", "elect");
  DevPtr out = kit_words(k, "out", NULL, 32);
  uint32_t got[32], one[3] = {1, 1, 1};
  run(k, kernel, one, one, 32, &out, 8);
  kit_read(k, out, got, 32);
  for (uint32_t i = 0; i < 32; i++) {
    uint32_t leader = i < 12 ? 0 : 12;
    assert_int_equal(got[i], leader + (i == leader ? 100 : 0));
  }
  device_free(k->dev, out);
  kernel_free(kernel);
}

// ---- what is wrong ------------------------------------------------------------------------------
typedef struct Case {
  const char *what; // must stand in the first line of the message
  const char *body; // clusters of two blocks, %r1 = rank, %r2 = address of 64 bytes
  uint32_t block;
} Case;

#define SYNC "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
#define OTHER "xor.b32 %r3, %r1, 1; mapa.shared::cluster.u32 %r4, %r2, %r3;"

static void expect_trap(Kit *k, const Case *c) {
  char *body = arena_printf(k->arena,
                            ".shared .align 16 .b8 s[64]; mov.u32 %%r1, %%cluster_ctarank; "
                            "mov.u32 %%r2, s;\n%s",
                            c->body);
  Kernel *kernel = kit_body(k, 0, body);
  Status st = launch(k, kernel, (uint32_t[]){2, 1, 1}, (uint32_t[]){2, 1, 1}, c->block, NULL, 0);
  if (st != ST_FAILED || !strstr(k->diag->first->what, c->what))
    fail_msg("status %d\nwanted: %s\ngot:    %s", st, c->what, diag_text(k->diag));
  diag_reset(k->diag);
  kernel_free(kernel);
}

static void test_traps(void **state) {
  static const Case cases[] = {
      {"out of bounds: reads 4 bytes at offset 64 of another block's shared memory (64 bytes): "
       "ld.shared::cluster.u32 %r5, [%r4+64]; in block (1,0,0) thread (0,0,0)",
       SYNC OTHER "ld.shared::cluster.u32 %r5, [%r4+64];" SYNC, 32},
      {"misaligned: reads 4 bytes at offset 2 of another block's shared memory",
       SYNC OTHER "ld.shared::cluster.u32 %r5, [%r4+2];" SYNC, 32},
      {"uninitialised read: byte 0 of another block's shared memory was never written",
       SYNC OTHER "ld.shared::cluster.u32 %r5, [%r4];" SYNC, 32},
      {"reads 4 bytes of block rank 0's shared memory: .shared::cta reaches the own block's memory "
       "only: ld.shared.u32 %r5, [%r4]; in block (1,0,0) thread (0,0,0)",
       SYNC OTHER "ld.shared.u32 %r5, [%r4];" SYNC, 32},
      {"writes 4 bytes of block rank 1's shared memory: that block may not have started: no "
       "cluster "
       "barrier has completed",
       OTHER "st.shared::cluster.u32 [%r4], 1;" SYNC, 32},
      {"writes 4 bytes of block rank 1's shared memory: that block has ended, and its memory is "
       "gone: "
       "st.shared::cluster.u32 [%r4], 1; in block (0,0,0) thread (0,0,0)",
       SYNC "setp.eq.u32 %p1, %r1, 1; @%p1 exit;" OTHER "st.shared::cluster.u32 [%r4], 1;", 32},
      {"block rank 2: the cluster has 2 blocks: mapa.shared::cluster.u32 %r3, %r2, 2;",
       "mapa.shared::cluster.u32 %r3, %r2, 2;", 32},
      {"the generic address 0x40 is not one of shared memory: mapa.u64",
       "mov.u64 %rd1, 64; mapa.u64 %rd2, %rd1, 0;", 32},
      {"cluster barrier: arrived at again before barrier.cluster.wait: barrier.cluster.arrive; in "
       "block (0,0,0) thread (5,0,0)",
       "setp.eq.u32 %p1, %r0, 5; @%p1 barrier.cluster.arrive; barrier.cluster.arrive;"
       "barrier.cluster.wait;",
       32},
      {"cluster barrier: waited for without having arrived: barrier.cluster.wait; in block (0,0,0) "
       "thread (0,0,0)",
       "barrier.cluster.wait;", 32},
      {"deadlock: no thread of the cluster can go on: barrier.cluster.wait; in block (0,0,0) "
       "thread "
       "(0,0,0)",
       "setp.eq.u32 %p1, %r1, 0; @%p1 bra A; bar.sync 1, 64; ret; A: barrier.cluster.arrive;"
       "barrier.cluster.wait;",
       32},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_trap(*state, &cases[i]);
}

// All blocks of the cluster that wait are named.
static void test_deadlock_notes(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_body(k, 0, "mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0;"
                                  "@%p1 bra A; bar.sync 1, 64; ret; A: barrier.cluster.arrive;"
                                  "barrier.cluster.wait;");
  assert_int_equal(launch(k, kernel, (uint32_t[]){2, 1, 1}, (uint32_t[]){2, 1, 1}, 32, NULL, 0),
                   ST_FAILED);
  const char *text = diag_text(k->diag);
  assert_non_null(strstr(text,
                         "block (0,0,0) warp 0, lanes ffffffff: at the cluster barrier, where "
                         "32 of 64 threads have arrived"));
  assert_non_null(strstr(text, "block (1,0,0) warp 0, lanes ffffffff: at barrier 1, where 32 of 64 "
                               "threads have arrived"));
  diag_reset(k->diag);
  kernel_free(kernel);
}

static void test_shapes(void **state) {
  static const struct { uint32_t grid[3], cluster[3]; const char *what; } cases[] = {
      {{6, 1, 1}, {4, 1, 1}, "launch: grid.x is 6: not a multiple of the cluster's 4"},
      {{8, 1, 1}, {2, 1, 1}, "launch: cluster.x is 2, exchange requires 4"},
  };
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "cluster.ptx", "exchange");
  DevPtr args[2] = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(launch(k, kernel, cases[i].grid, cases[i].cluster, 64, args, sizeof args),
                     ST_INPUT);
    assert_string_equal(k->diag->first->what, cases[i].what);
    diag_reset(k->diag);
  }
  kernel_free(kernel);
  kernel = kit_load(k, "cluster.ptx", "ids");
  assert_int_equal(launch(k, kernel, (uint32_t[]){32, 1, 1}, (uint32_t[]){32, 1, 1}, 32, args, 8),
                   ST_INPUT);
  assert_string_equal(k->diag->first->what,
                      "launch: 32 x 1 x 1 blocks in a cluster: 16 at most");
  diag_reset(k->diag);
  kernel_free(kernel);
}

int main(void) {
  const struct CMUnitTest anywhere[] = {
      cmocka_unit_test(test_ids), cmocka_unit_test(test_exchange), cmocka_unit_test(test_leave),
      cmocka_unit_test(test_elect)};
  const struct CMUnitTest on_sim[] = {cmocka_unit_test(test_traps),
                                      cmocka_unit_test(test_deadlock_notes),
                                      cmocka_unit_test(test_shapes)};
  int failed = cmocka_run_group_tests(anywhere, kit_setup_anywhere, kit_teardown);
  return failed + cmocka_run_group_tests(on_sim, kit_setup, kit_teardown);
}
