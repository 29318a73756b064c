// The CUDA device against a driver that is told what to answer: no GPU needed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>

#include "cu_device.h"
#include "fake_cuda.h"

#define FAKE BUILD_DIR "/tests/libfake_cuda.so"
#define FAKE_OLD_LIB BUILD_DIR "/tests/libfake_cuda_old.so"
#define FAKE_LACKS_LIB BUILD_DIR "/tests/libfake_cuda_lacks.so"

static FakeCuda *fake_of(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
  FakeCudaState state;
  *(void **)&state = dlsym(library, "fake_cuda_state");
  return state();
}

static FakeCuda *fresh(const char *path) {
  FakeCuda *f = fake_of(path);
  *f = (FakeCuda){.devices = 2, .driver_version = 12000, .free_bytes = (size_t)1 << 30};
  return f;
}

static void assert_nothing_left(const FakeCuda *f) {
  assert_int_equal(f->contexts, 0);
  assert_int_equal(f->streams, 0);
  assert_int_equal(f->buffers, 0);
  assert_int_equal(f->modules, 0);
  assert_int_equal(f->events, 0);
  assert_int_equal(f->graphs, 0);
  assert_int_equal(f->execs, 0);
}

static void assert_says(const Diag *d, const char *part) {
  if (!strstr(diag_text(d), part)) fail_msg("no \"%s\" in:\n%s", part, diag_text(d));
}

static const char three_lines[] = ".version 8.0\n"
                                  ".target sm_90a // .entry no\n"
                                  ".visible .entry k(.param .u64 p) { ret; }\n";

static Source *source_of(Arena *a, const char *text) {
  return source_new(a, "k.ptx", text, strlen(text));
}

static Device *opened(const char *path, Diag *d) {
  Device *dev;
  if (cu_open(path, 0, &dev, d)) fail_msg("%s", diag_text(d));
  return dev;
}

// ---- opening ------------------------------------------------------------------------------------

static void no_driver_is_one_message(void **state) {
  (void)state;
  Diag *d = diag_new();
  Device *dev = (Device *)d;
  assert_int_equal(cu_open("/nowhere/libcuda.so.1", 0, &dev, d), ST_DEVICE);
  assert_null(dev);
  assert_int_equal(d->errors, 1);
  assert_says(d, "no CUDA driver");
  assert_says(d, "/nowhere/libcuda.so.1");
  diag_free(d);
}

static void driver_that_lacks_a_function_is_named(void **state) {
  (void)state;
  fresh(FAKE_LACKS_LIB);
  Diag *d = diag_new();
  Device *dev;
  assert_int_equal(cu_open(FAKE_LACKS_LIB, 0, &dev, d), ST_DEVICE);
  assert_says(d, "has no cuEventElapsedTime: the driver is too old");
  diag_free(d);
}

static void driver_without_a_device(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev;
  f->fail_call = "cuInit";
  f->fail_result = CU_NO_DEVICE;
  assert_int_equal(cu_open(FAKE, 0, &dev, d), ST_DEVICE);
  assert_says(d, "CUDA_ERROR_NO_DEVICE (100)");
  assert_says(d, "CUDA_VISIBLE_DEVICES");
  diag_reset(d);
  f->fail_call = NULL;
  f->devices = 0; // the other way in which drivers say it
  assert_int_equal(cu_open(FAKE, 0, &dev, d), ST_DEVICE);
  assert_says(d, "CUDA_ERROR_NO_DEVICE (100)");
  diag_free(d);
}

static void device_index_out_of_range(void **state) {
  (void)state;
  fresh(FAKE);
  Diag *d = diag_new();
  Device *dev;
  assert_int_equal(cu_open(FAKE, 2, &dev, d), ST_DEVICE);
  assert_says(d, "there is no cuda:2; this machine has cuda:0 to cuda:1");
  diag_free(d);
}

static void info_comes_from_the_driver(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev;
  assert_int_equal(cu_open(FAKE, 1, &dev, d), ST_OK);
  const DeviceInfo *i = &dev->info;
  assert_string_equal(i->id, "cuda:1");
  assert_string_equal(i->name, "Fake GPU");
  assert_int_equal(i->sm, 90);
  assert_int_equal(i->sm_suffix, 'a');
  assert_int_equal(i->sm_count, 132);
  assert_int_equal(i->smem_optin, 232448);
  assert_int_equal(i->l2_bytes, CU_DEV_L2_BYTES); // the fake answers with the attribute's number
  assert_int_equal(i->ptx_version, 80);           // driver 12.0
  assert_int_equal(i->memory_bytes, (uint64_t)8 << 30);
  assert_int_equal(i->memory_free, (uint64_t)1 << 30);
  assert_false(i->is_sim);
  device_close(dev);
  assert_nothing_left(f);
  diag_free(d);
}

static void round_trip(const char *path) {
  FakeCuda *f = fresh(path);
  Diag *d = diag_new();
  Device *dev = opened(path, d);
  DevPtr p, q;
  uint32_t in[4] = {1, 2, 3, 4}, out[4] = {0};
  assert_int_equal(device_alloc(dev, sizeof in, "p", &p, d), ST_OK);
  assert_int_equal(device_alloc(dev, sizeof in, "q", &q, d), ST_OK);
  assert_int_equal(device_write(dev, p, in, sizeof in, d), ST_OK);
  assert_int_equal(device_fill32(dev, q, 7, sizeof in, d), ST_OK);
  assert_int_equal(device_copy(dev, q, p + 4, 8, d), ST_OK);
  assert_int_equal(device_read(dev, out, q, sizeof out, d), ST_OK);
  const uint32_t want[4] = {2, 3, 7, 7};
  assert_memory_equal(out, want, sizeof want);
  device_free(dev, q);
  assert_int_equal(f->buffers, 1);
  device_close(dev); // frees the other
  assert_nothing_left(f);
  diag_free(d);
}

static void functions_through_get_proc_address(void **state) {
  (void)state;
  round_trip(FAKE);
}

static void functions_by_their_suffixes(void **state) {
  (void)state;
  round_trip(FAKE_OLD_LIB);
}

// ---- memory -------------------------------------------------------------------------------------

static void too_much_memory_is_said_before_allocating(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  DevPtr p = 1;
  f->free_bytes = 3u << 28;
  assert_int_equal(device_alloc(dev, (uint64_t)5 << 28, "keys", &p, d), ST_DEVICE);
  assert_int_equal(p, 0);
  assert_int_equal(f->allocations, 0);
  assert_says(d, "cuda:0: not enough memory for keys: 1.250 GiB (1342177280 bytes) needed, "
                 "0.750 GiB free of 8.000 GiB");
  diag_reset(d);
  f->fail_call = "cuMemAlloc"; // fragmentation: free, and yet not to be had
  f->fail_result = CU_OUT_OF_MEMORY;
  assert_int_equal(device_alloc(dev, 4096, "keys", &p, d), ST_DEVICE);
  assert_says(d, "allocating 4096 bytes for keys: CUDA_ERROR_OUT_OF_MEMORY (2)");
  assert_true(device_alive(dev));
  device_close(dev);
  assert_nothing_left(f);
  diag_free(d);
}

static void empty_tensors_have_an_address(void **state) {
  (void)state;
  fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  DevPtr p = 0;
  assert_int_equal(device_alloc(dev, 0, "nothing", &p, d), ST_OK);
  assert_int_not_equal(p, 0);
  assert_int_equal(device_write(dev, p, NULL, 0, d), ST_OK);
  device_close(dev);
  diag_free(d);
}

static void *allocate_elsewhere(void *arg) {
  Diag *d = diag_new();
  DevPtr p;
  Status st = device_alloc(arg, 64, "p", &p, d);
  if (!st) st = device_fill32(arg, p, 1, 64, d);
  diag_free(d);
  return (void *)(uintptr_t)st;
}

static void calls_from_a_fresh_thread_work(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  pthread_t thread;
  void *st = (void *)9;
  assert_int_equal(pthread_create(&thread, NULL, allocate_elsewhere, dev), 0);
  pthread_join(thread, &st);
  assert_int_equal((uintptr_t)st, ST_OK);
  assert_int_equal(f->buffers, 1);
  device_close(dev);
  assert_nothing_left(f);
  diag_free(d);
}

// ---- loading ------------------------------------------------------------------------------------

static Status load(Device *dev, const char *text, const LineMap *map, Kernel **k, Diag *d) {
  return device_load_ptx(dev, source_of(d->arena, text), map, NULL, k, d);
}

static void newer_ptx_than_the_driver(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  Kernel *k;
  f->fail_call = "cuModuleLoadDataEx";
  f->fail_result = CU_UNSUPPORTED_PTX_VERSION;
  assert_int_equal(load(dev, "// .version 7.0\n.version 8.4 .target sm_90\n.entry k() { ret; }\n",
                        NULL, &k, d),
                   ST_DEVICE);
  assert_null(k);
  assert_says(d, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)");
  assert_says(d, ".version 8.4");
  assert_says(d, "takes 8.0 at most");
  assert_says(d, "driver r550 or newer");
  device_close(dev);
  assert_nothing_left(f);
  diag_free(d);
}

static LineMap map_of(Arena *a, const Source *tmpl, const uint32_t *lines, uint32_t n) {
  LineMap m = {arena_array(a, const Origin *, n), n};
  for (uint32_t i = 0; i < n; i++) {
    if (!lines[i]) continue;
    Origin *o = arena_new_of(a, Origin);
    *o = (Origin){.src = tmpl, .line = lines[i]};
    m.at[i] = o;
  }
  return m;
}

static void jit_errors_name_template_lines(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Arena *a = arena_new();
  Device *dev = opened(FAKE, d);
  Kernel *k;
  Source *tmpl = source_new(a, "t.ptx.in", "a\nb\nc\nd\n", 8);
  LineMap map = map_of(a, tmpl, (const uint32_t[]){0, 2, 4}, 3);
  f->fail_call = "cuModuleLoadDataEx";
  f->fail_result = CU_INVALID_PTX;
  f->error_log =
      "ptxas application ptx input, line 3; error   : Unknown symbol 'x'\n"
      "ptxas application ptx input, line 900; error   : far away\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n";
  assert_int_equal(load(dev, three_lines, &map, &k, d), ST_INPUT);
  assert_int_equal(d->errors, 3); // two lines and the result; "aborted" says nothing more
  assert_string_equal(d->first->file, "k.ptx");
  assert_int_equal(d->first->line, 3);
  assert_string_equal(d->first->what, "ptxas: Unknown symbol 'x'");
  assert_string_equal(d->first->origin_file, "t.ptx.in");
  assert_int_equal(d->first->origin_line, 4);
  assert_string_equal(d->first->next->what, "ptxas: far away");
  assert_string_equal(d->first->next->file, "");
  assert_says(d, "CUDA_ERROR_INVALID_PTX (218)");
  device_close(dev);
  assert_nothing_left(f);
  arena_free(a);
  diag_free(d);
}

static void jit_info_is_kept_and_remarks_are_warnings(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Arena *a = arena_new();
  Device *dev = opened(FAKE, d);
  Kernel *k;
  Source *tmpl = source_new(a, "t.ptx.in", "a\nb\nc\nd\n", 8);
  LineMap map = map_of(a, tmpl, (const uint32_t[]){0, 2, 4}, 3);
  f->info_log = "ptxas info    : Used 40 registers, used 1 barriers\n"
                "ptxas info    : (C7510) Potential Performance Loss: serialized\n"
                "ptxas application ptx input, line 2; warning : slow\n";
  assert_int_equal(load(dev, three_lines, &map, &k, d), ST_OK);
  assert_string_equal(kernel_info(k)->log,
                      "ptxas info    : Used 40 registers, used 1 barriers\n"
                      "ptxas info    : (C7510) Potential Performance Loss: serialized\n"
                      "ptxas application t.ptx.in:2 (PTX line 2); warning : slow\n");
  assert_int_equal(d->errors, 0);
  assert_int_equal(d->warnings, 2);
  assert_string_equal(d->first->what, "ptxas: (C7510) Potential Performance Loss: serialized");
  assert_string_equal(d->last->what, "ptxas: slow");
  assert_int_equal(d->last->origin_line, 2);
  assert_string_equal(f->entry, "k"); // not the one in the comment
  assert_int_equal(f->image_bytes, strlen(three_lines));
  assert_int_equal(kernel_info(k)->regs, 10 + CU_FUNC_REGS);
  assert_int_equal(kernel_info(k)->max_threads, 10 + CU_FUNC_MAX_THREADS);
  assert_int_equal(kernel_info(k)->static_smem, 1024);
  assert_int_equal(kernel_info(k)->local_bytes, 10 + CU_FUNC_LOCAL_BYTES);
  kernel_free(k);
  assert_int_equal(f->modules, 0);
  device_close(dev);
  assert_nothing_left(f);
  arena_free(a);
  diag_free(d);
}

static void entry_must_be_the_only_one(void **state) {
  (void)state;
  fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  Kernel *k;
  assert_int_equal(load(dev, ".version 8.0 .entry a() {} /* */ .entry b() {}", NULL, &k, d),
                   ST_INPUT);
  assert_says(d, "not exactly one .entry");
  diag_reset(d);
  assert_int_equal(load(dev, ".version 8.0 /* .entry a() {} */", NULL, &k, d), ST_INPUT);
  device_close(dev);
  diag_free(d);
}

// ---- launching ----------------------------------------------------------------------------------

static Launch launch_of(Kernel *k, const void *args, uint32_t bytes) {
  return (Launch){.kernel = k, .grid = {5, 1, 1}, .block = {128, 1, 1}, .cluster = {1, 1, 1},
                  .args = args, .arg_bytes = bytes};
}

static void launches_pass_the_argument_block(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  Kernel *k;
  assert_int_equal(load(dev, three_lines, NULL, &k, d), ST_OK);
  const uint64_t args[2] = {0x1122334455667788, 42};
  Launch l = launch_of(k, args, sizeof args);
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(f->arg_bytes, sizeof args);
  assert_memory_equal(f->args, args, sizeof args);
  assert_int_equal(f->grid[0], 5);
  assert_int_equal(f->block[0], 128);
  assert_int_equal(f->cluster[0], 0); // the plain launch
  l.cluster[0] = 4;
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(f->cluster[0], 4);
  assert_int_equal(f->cluster[2], 1);
  l.grid[1] = 0; // nothing to do is no error
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(f->launches, 2);
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
  Launch l = launch_of(k, NULL, 0);
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
  assert_int_equal(f->launches, 2);
  device_close(dev);
  diag_free(d);
}

static void launch_errors_that_do_not_stick(void **state) {
  (void)state;
  FakeCuda *f = fresh(FAKE);
  Diag *d = diag_new();
  Device *dev = opened(FAKE, d);
  Kernel *k;
  assert_int_equal(load(dev, three_lines, NULL, &k, d), ST_OK);
  Launch l = launch_of(k, NULL, 0);
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
  Launch l = launch_of(k, NULL, 0);
  assert_int_equal(device_graph_begin(dev, d), ST_OK);
  assert_int_equal(device_launch(dev, &l, d), ST_OK);
  assert_int_equal(device_alloc(dev, 16, "p", &p, d), ST_DEVICE);
  assert_says(d, "not while a graph is being captured");
  assert_int_equal(device_graph_end(dev, &g, d), ST_OK);
  assert_int_equal(device_record(dev, 0, d), ST_OK);
  assert_int_equal(device_graph_launch(dev, g, d), ST_OK);
  assert_int_equal(device_record(dev, 1, d), ST_OK);
  assert_int_equal(device_elapsed(dev, 0, 1, &ms, d), ST_OK);
  assert_true(ms == 0.25);
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
  Launch l = launch_of(k, NULL, 0);
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
  int blocks;
  Status st = cu_open(FAKE, 0, &dev, d);
  if (st) return st;
  Launch l = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}, .smem = 60000};
  if (!st) st = device_alloc(dev, 4, "p", &p, d);
  uint8_t map[TENSOR_MAP_BYTES];
  TensorMapDesc m = {.address = 64, .dim = {4}, .box = {4}, .type = TENSOR_F32, .rank = 1};
  if (!st) st = device_tensor_map(dev, &m, map, d);
  if (!st) st = device_write(dev, p, &word, 4, d);
  if (!st) st = device_fill32(dev, p, 1, 4, d);
  if (!st) st = device_copy(dev, p, p, 4, d);
  if (!st) st = load(dev, three_lines, NULL, &k, d);
  if (!st) st = dev->ops->occupancy(k, 32, 0, &blocks, d);
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
      cmocka_unit_test(no_driver_is_one_message),
      cmocka_unit_test(driver_that_lacks_a_function_is_named),
      cmocka_unit_test(driver_without_a_device),
      cmocka_unit_test(device_index_out_of_range),
      cmocka_unit_test(info_comes_from_the_driver),
      cmocka_unit_test(functions_through_get_proc_address),
      cmocka_unit_test(functions_by_their_suffixes),
      cmocka_unit_test(too_much_memory_is_said_before_allocating),
      cmocka_unit_test(empty_tensors_have_an_address),
      cmocka_unit_test(calls_from_a_fresh_thread_work),
      cmocka_unit_test(newer_ptx_than_the_driver),
      cmocka_unit_test(jit_errors_name_template_lines),
      cmocka_unit_test(jit_info_is_kept_and_remarks_are_warnings),
      cmocka_unit_test(entry_must_be_the_only_one),
      cmocka_unit_test(launches_pass_the_argument_block),
      cmocka_unit_test(shared_memory_above_48_kib_is_asked_for),
      cmocka_unit_test(launch_errors_that_do_not_stick),
      cmocka_unit_test(sticky_errors_kill_the_device),
      cmocka_unit_test(graphs_capture_launches_and_nothing_else),
      cmocka_unit_test(tensor_maps_come_from_the_driver),
      cmocka_unit_test(adopted_contexts_are_left_alone),
      cmocka_unit_test(clean_up_on_every_path),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
