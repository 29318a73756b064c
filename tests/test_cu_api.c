// The CUDA device against a driver that is told what to answer: opening, memory, loading.
#include "cu_kit.h"

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
  assert_int_equal(device_fill32(dev, q, 0, 6, d), ST_INPUT); // whole words only
  assert_int_equal(device_fill32(dev, q + 1, 0, 4, d), ST_INPUT);
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
  assert_int_equal(
      load(dev, ".version 8.0\n.target sm_80\n.entry a() { ret; } /* */ .entry b() { ret; }", NULL,
           &k, d),
      ST_INPUT);
  assert_says(d, "not exactly one .entry");
  diag_reset(d);
  assert_int_equal(load(dev, ".version 8.0\n.target sm_80\n/* .entry a() {} */", NULL, &k, d),
                   ST_INPUT);
  device_close(dev);
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
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
