// The CUDA device against a driver that is told what to answer: launches, graphs, clean-up.
#include "cu_kit.h"

static const uint64_t one_arg = 1;

// ---- launching ----------------------------------------------------------------------------------

static Launch launch_of(Kernel *k, const void *args, uint32_t bytes) {
  return (Launch){.kernel = k, .grid = {5, 1, 1}, .block = {128, 1, 1}, .cluster = {1, 1, 1},
                  .args = args, .arg_bytes = bytes};
}

static void launches_pass_each_parameter(void **state) {
  (void)state;
  static const char text[] = ".version 8.0\n.target sm_90\n.visible .entry k(.param .u32 n, "
                             ".param .align 64 .b8 map[128], .param .u64 p) { ret; }\n";
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  Kernel *k;
  f->nparams = 3;
  memcpy(f->param_size, (uint32_t[]){4, 128, 8}, 12);
  assert_int_equal(load(dev, text, NULL, &k, d), ST_OK);
  struct { uint32_t n, pad[15]; uint8_t map[128]; uint64_t p; } args = {.n = 7, .p = 42};
  for (int i = 0; i < 128; i++) args.map[i] = (uint8_t)(200 - i);
  Launch l = launch_of(k, &args, sizeof args);
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_memory_equal(f->args, &args.n, 4);
  assert_memory_equal(f->args + 4, args.map, 128);
  assert_memory_equal(f->args + 132, &args.p, 8);
  assert_int_equal(f->grid[0], 5);
  assert_int_equal(f->block[0], 128);
  assert_int_equal(f->cluster[0], 0); // the plain launch
  l.cluster[0] = 4;
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(f->cluster[0], 4);
  assert_int_equal(f->cluster[2], 1);
  assert_int_equal(f->serialize, 0);
  l.cluster[0] = 8; // what every GPU takes
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(f->large_cluster, 0);
  l.cluster[0] = 16; // more is allowed first, once for a kernel
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(f->cluster[0], 16);
  assert_int_equal(f->large_cluster, 1);
  l.cluster[0] = l.cluster[1] = 1 << 16; // 2^32 blocks are not none
  assert_int_equal(device_launch(dev, &l, d), ST_INPUT);
  assert_says(d, "cluster.x is 65536: 16 blocks in a cluster at most");
  l.cluster[1] = 1;
  l.cluster[0] = 4;
  l.dependent = true; // with a cluster and without
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(f->cluster[0], 4);
  assert_int_equal(f->serialize, 1);
  memset(l.cluster, 0, sizeof l.cluster);
  memset(f->cluster, 0, sizeof f->cluster);
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(f->cluster[0], 0);
  assert_int_equal(f->serialize, 1);
  l.arg_bytes = 196;
  assert_int_equal(device_launch(dev, &l, d), ST_INPUT);
  assert_says(d, "launch: 196 bytes of arguments, k takes 200");
  l.grid[1] = 0; // nothing to do is no error
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(f->launches, 7);
  device_close(dev);
  assert_nothing_left(f);
  diag_free(d);
}

static void shared_memory_above_48_kib_is_asked_for(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  Kernel *k;
  int blocks = 0;
  assert_int_equal(load(dev, three_lines, NULL, &k, d), ST_OK);
  Launch l = launch_of(k, &one_arg, 8);
  l.smem = 48 * 1024 - 1024; // with the 1024 static bytes exactly the limit
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(f->smem_allowed, 0);
  l.smem += 16;
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(f->smem_allowed, 48 * 1024 - 1024 + 16);
  assert_int_equal(dev->ops->occupancy(k, 256, 100000, &blocks, d), ST_OK);
  assert_int_equal(f->smem_allowed, 100000); // else the answer would be for 48 KiB
  assert_int_equal(blocks, 8);
  l.smem = 232448; // + 1024 static
  assert_int_equal(device_launch(dev, &l, d), ST_DEVICE);
  assert_says(d, "k wants 233472 bytes of shared memory (232448 dynamic, 1024 static); a block may "
                 "have 232448");
  l.smem = UINT32_MAX;
  assert_int_equal(device_launch(dev, &l, d), ST_DEVICE);
  assert_says(d, "k wants 4294968319 bytes of shared memory");
  assert_int_equal(f->launches, 2);
  device_close(dev);
  diag_free(d);
}

// What is asked is what will be launched: its blocks, threads and bytes, and leave for a large one.
static void clusters_at_once_are_the_drivers_answer(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  Kernel *k;
  int n = 0;
  assert_int_equal(load(dev, three_lines, NULL, &k, d), ST_OK);
  f->clusters = 7;
  assert_int_equal(dev->ops->clusters(k, (uint32_t[]){16, 1, 0}, 256, 100000, &n, d), ST_OK);
  assert_int_equal(n, 7);
  assert_int_equal(f->asked_cluster, 16);
  assert_int_equal(f->asked_threads, 256);
  assert_int_equal(f->asked_smem, 100000);
  assert_int_equal(f->smem_allowed, 100000);
  assert_int_equal(f->large_cluster, 1);
  f->clusters = 0;
  assert_int_equal(dev->ops->clusters(k, (uint32_t[]){8, 1, 1}, 256, 0, &n, d), ST_DEVICE);
  assert_says(d, "no cluster of 8 blocks of k fits this GPU");
  device_close(dev);
  assert_nothing_left(f);
  diag_free(d);
}

static void launch_errors_that_do_not_stick(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  Kernel *k;
  assert_int_equal(load(dev, three_lines, NULL, &k, d), ST_OK);
  Launch l = launch_of(k, &one_arg, 8);
  f->fail_call = "cuLaunchKernel";
  f->fail_result = 701;
  assert_int_equal(device_launch(dev, &l, d), ST_DEVICE);
  assert_says(d, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)");
  assert_says(d, "registers x threads");
  assert_true(device_alive(dev));
  f->fail_call = NULL;
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  device_close(dev);
  assert_nothing_left(f);
  diag_free(d);
}

static void sticky_errors_kill_the_device(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  Kernel *k;
  DevPtr p;
  assert_int_equal(load(dev, three_lines, NULL, &k, d), ST_OK);
  assert_int_equal(device_alloc(dev, 16, "p", &p, d), ST_OK);
  f->fail_call = "cuStreamSynchronize";
  f->fail_result = 700;
  assert_int_equal(device_sync(dev, d), ST_DEVICE);
  assert_says(d, "waiting for the kernels launched: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
  assert_false(device_alive(dev));
  diag_reset(d);
  int pushes = f->pushes;
  assert_int_equal(device_fill32(dev, p, 0, 16, d), ST_DEVICE);
  assert_says(d, "cuda:0 is lost since this error: waiting for the kernels launched: "
                 "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
  assert_int_equal(f->pushes, pushes); // the driver isn't asked again
  device_free(dev, p);
  device_close(dev);
  free((void *)(uintptr_t)p); // the fake's memory outlives a context that can't be entered
  diag_free(d);
}

// ---- events, graphs, adoption, clean-up ---------------------------------------------------------

static void graphs_capture_launches_and_nothing_else(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  Kernel *k;
  Graph *g;
  DevPtr p;
  double ms = 0;
  assert_int_equal(load(dev, three_lines, NULL, &k, d), ST_OK);
  Launch l = launch_of(k, &one_arg, 8);
  assert_int_equal(device_graph_begin(dev, d), ST_OK);
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(device_alloc(dev, 16, "p", &p, d), ST_DEVICE);
  assert_says(d, "not while a graph is being captured");
  assert_int_equal(device_graph_end(dev, &g, d), ST_OK);
  assert_int_equal(device_record(dev, 0, d), ST_OK);
  assert_int_equal(device_graph_launch(dev, g, d), ST_OK);
  assert_int_equal(device_record(dev, 1, d), ST_OK);
  assert_int_equal(device_elapsed(dev, 0, 1, &ms, d), ST_OK);
  assert_true(ms == 1e-3f * FAKE_LAUNCH_US); // the graph's one launch
  assert_int_equal(f->events, 2);
  device_graph_free(dev, g);
  assert_int_equal(f->graphs + f->execs, 0);
  device_close(dev);
  assert_nothing_left(f);
  diag_free(d);
}

static void adopted_contexts_are_left_alone(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev;
  Kernel *k;
  int theirs = 0;
  f->contexts = 1; // the caller's
  f->streams = 1;
  assert_int_equal(cu_adopt(FAKE, (void *)0x1000, &theirs, &dev, d), ST_OK);
  assert_int_equal(load(dev, three_lines, NULL, &k, d), ST_OK);
  Launch l = launch_of(k, &one_arg, 8);
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_ptr_equal(f->stream, &theirs);
  int other = 0;
  assert_int_equal(device_set_stream(dev, &other, d), ST_OK);
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_ptr_equal(f->stream, &other);
  device_close(dev);
  assert_int_equal(f->contexts, 1);
  assert_int_equal(f->streams, 1);
  assert_int_equal(f->modules, 0);
  assert_int_equal(cu_adopt(FAKE, NULL, NULL, &dev, d), ST_INPUT);
  diag_free(d);
}

// One of everything.
static Status whole_life(Diag *d) {
  Device *dev;
  Kernel *k = NULL;
  Graph *g = NULL;
  DevPtr p = 0;
  uint32_t word = 1;
  double ms;
  int blocks, clusters;
  Status st = cu_open(FAKE, 0, &dev, d);
  if (st) return st;
  Launch l = launch_of(NULL, &one_arg, 8);
  l.cluster[0] = 16;
  l.smem = 60000;
  if (!st) st = device_alloc(dev, 4, "p", &p, d);
  uint8_t map[TENSOR_MAP_BYTES];
  TensorMapDesc m = {.address = 64, .dim = {4}, .box = {4}, .type = TENSOR_F32, .rank = 1};
  if (!st) st = device_tensor_map(dev, &m, map, d);
  if (!st) st = device_write(dev, p, &word, 4, d);
  if (!st) st = device_fill32(dev, p, 1, 4, d);
  if (!st) st = device_copy(dev, p, p, 4, d);
  if (!st) st = load(dev, three_lines, NULL, &k, d);
  if (!st) st = dev->ops->occupancy(k, 32, 0, &blocks, d);
  if (!st) st = dev->ops->clusters(k, (uint32_t[]){2, 1, 1}, 32, 0, &clusters, d);
  l.kernel = k;
  if (!st) st = device_launch(dev, &l, d);
  l.cluster[0] = 1;
  if (!st) st = device_launch(dev, &l, d);
  if (!st && !(st = device_graph_begin(dev, d))) {
    Status launched = device_launch(dev, &l, d);
    st = device_graph_end(dev, &g, d);
    if (launched) st = launched;
  }
  if (!st) st = device_record(dev, 0, d);
  if (!st) st = device_graph_launch(dev, g, d);
  if (!st) st = device_record(dev, 1, d);
  if (!st) st = device_elapsed(dev, 0, 1, &ms, d);
  if (!st) st = device_read(dev, &word, p, 4, d);
  if (!st) st = device_sync(dev, d);
  device_close(dev);
  return st;
}

// Whose failure has no one to tell: clean-up, the words for errors, what adopting alone asks.
static bool fails_silently(const char *name) {
  static const char *const silent[] = {
      "cuGetErrorName", "cuGetErrorString", "cuDevicePrimaryCtxRelease", "cuCtxPopCurrent",
      "cuCtxGetDevice", "cuMemFree", "cuStreamDestroy", "cuModuleUnload", "cuEventDestroy",
      "cuGraphExecDestroy", "cuGraphDestroy"};
  for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
    if (!strcmp(silent[i], name)) return true;
  return false;
}

// Each function of the driver fails once, at its first and at its second call.
static void clean_up_on_every_path(void **state) {
  (void)state;
  static const char *const names[] = {
#define X(need, name, suffix, ...) #name,
      CU_SYMBOLS(X)
#undef X
  };
  Diag *d = diag_new();
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    for (int skip = 0; skip < 2; skip++) {
      FakeCuda *f = fresh(FAKE);
      diag_reset(d);
      f->fail_call = names[i];
      f->fail_result = 999; // unknown, and the driver has no text for it
      f->fail_skip = skip;
      Status st = whole_life(d);
      if (!skip && (st == ST_OK) != fails_silently(names[i])) fail_msg("%s: %d", names[i], st);
      if (st && !strstr(diag_text(d), "CUDA_ERROR_UNKNOWN (999): the driver has no text for it"))
        fail_msg("%s: %s", names[i], diag_text(d));
      if (!st) assert_int_equal(d->errors, 0);
      assert_nothing_left(f);
    }
  fresh(FAKE);
  assert_int_equal(whole_life(d), ST_OK);
  diag_free(d);
}

static void tensor_maps_come_from_the_driver(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  uint8_t map[129]; // the driver wants 64-byte alignment; the caller's bytes need not have it
  TensorMapDesc m = {.address = 0x7f0000001000, .dim = {128, 1000, 8}, .stride = {2048, 256},
                     .box = {64, 32, 1}, .step = {1, 2}, .type = TENSOR_BF16, .rank = 3,
                     .swizzle = TENSOR_SWIZZLE_128B, .l2 = 2, .fill = TENSOR_FILL_NAN};
  assert_int_equal(device_tensor_map(dev, &m, map + 1, d), ST_OK);
  for (int i = 0; i < 128; i++) assert_int_equal(map[1 + i], i + 1);
  assert_int_equal(f->map.type, 9);
  assert_int_equal(f->map.rank, 3);
  assert_int_equal(f->map.address, 0x7f0000001000);
  assert_int_equal(f->map.dims[1], 1000);
  assert_int_equal(f->map.strides[0], 2048);
  assert_int_equal(f->map.strides[1], 256);
  assert_int_equal(f->map.box[0], 64);
  assert_int_equal(f->map.steps[1], 2);
  assert_int_equal(f->map.steps[2], 1); // 0 is 1
  assert_int_equal(f->map.interleave, 0);
  assert_int_equal(f->map.swizzle, 3);
  assert_int_equal(f->map.l2, 2);
  assert_int_equal(f->map.fill, 1);
  m.box[0] = 72; // found before the driver is asked
  f->map.rank = 0;
  assert_int_equal(device_tensor_map(dev, &m, map, d), ST_INPUT);
  assert_says(d, "the box is 144 bytes wide: 128 at most with this swizzle");
  assert_int_equal(f->map.rank, 0);
  m.box[0] = 64;
  f->fail_call = "cuTensorMapEncodeTiled";
  f->fail_result = 1;
  assert_int_equal(device_tensor_map(dev, &m, map, d), ST_DEVICE);
  assert_says(d, "cuda:0: making a tensor map");
  device_close(dev);
  assert_nothing_left(f);
  diag_free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(launches_pass_each_parameter),
      cmocka_unit_test(shared_memory_above_48_kib_is_asked_for),
      cmocka_unit_test(clusters_at_once_are_the_drivers_answer),
      cmocka_unit_test(launch_errors_that_do_not_stick),
      cmocka_unit_test(sticky_errors_kill_the_device),
      cmocka_unit_test(graphs_capture_launches_and_nothing_else),
      cmocka_unit_test(tensor_maps_come_from_the_driver),
      cmocka_unit_test(adopted_contexts_are_left_alone),
      cmocka_unit_test(clean_up_on_every_path),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
