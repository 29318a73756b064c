// The C API inside another program's CUDA context, against the fake driver: whose context and
// stream are used, and that a launch is all that a captured graph sees.
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_cuda.h"
#include "ptxsmith.h"

#define DRIVER BUILD_DIR "/tests/libfake_cuda.so"

typedef struct Engine { // the program that embeds ptxsmith
  FakeCuda *fake;
  int (*begin_capture)(CuStream, int);
  int (*end_capture)(CuStream, CuGraph *);
  int (*push)(CuContext), (*pop)(CuContext *);
  psm_session *s;
  psm_device *dev;
  psm_operator *op;
  int first, second; // their addresses are the engine's streams
} Engine;

static void good(const Engine *e, psm_status st) {
  if (st != PSM_OK) fail_msg("status %d: %s", (int)st, psm_error(e->s));
}

static void *driver_function(const char *name) {
  void *library = dlopen(DRIVER, RTLD_NOW);
  int (*get)(const char *, void **, int, uint64_t, int *);
  void *fn = NULL;
  int status;
  assert_non_null(library);
  *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
  assert_int_equal(get(name, &fn, CU_API_VERSION, 0, &status), 0);
  return fn;
}

static FakeCuda *driver_state(void) {
  FakeCudaState state;
  void *library = dlopen(DRIVER, RTLD_NOW);
  assert_non_null(library);
  *(void **)&state = dlsym(library, "fake_cuda_state");
  return state();
}

static int setup(void **state) {
  static Engine engine;
  Engine *e = &engine;
  *e = (Engine){.fake = driver_state()};
  *e->fake = (FakeCuda){.devices = 1, .driver_version = 13000, .free_bytes = (size_t)4 << 30,
                        .contexts = 1, .streams = 2};
  *(void **)&e->begin_capture = driver_function("cuStreamBeginCapture");
  *(void **)&e->end_capture = driver_function("cuStreamEndCapture");
  *(void **)&e->push = driver_function("cuCtxPushCurrent");
  *(void **)&e->pop = driver_function("cuCtxPopCurrent");
  if (psm_session_open(NULL, &e->s)) return -1;
  good(e, psm_device_adopt(e->s, (void *)0x1000, &e->first, &e->dev));
  *state = e;
  return 0;
}

static int teardown(void **state) {
  Engine *e = *state;
  psm_operator_free(e->op);
  psm_device_close(e->dev);
  psm_session_close(e->s);
  // Nothing of the engine's was destroyed, nothing of ptxsmith's is left.
  bool clean = e->fake->contexts == 1 && e->fake->streams == 2 && !e->fake->modules &&
               !e->fake->buffers && !e->fake->events;
  return clean ? 0 : -1;
}

static psm_tensor tensor(int rank, const int64_t *shape) {
  psm_tensor t = {
      .data = 0x100000, .dtype = PSM_F32, .rank = rank}; // never read: kernels do nothing
  memcpy(t.shape, shape, sizeof *shape * (size_t)rank);
  return t;
}

static void open_decode(Engine *e) {
  psm_problem *p;
  good(e, psm_problem_new(e->s, "b=1,hq=4,hkv=2,sq=1,sk=64,d=64,dtype=f32,chunks=2", &p));
  good(e, psm_operator_new(e->dev, "decode_splitk", NULL, p, NULL, &e->op));
  psm_problem_free(p);
  const psm_tensor qo = tensor(4, (int64_t[]){1, 1, 4, 64}),
                   kv = tensor(4, (int64_t[]){1, 64, 2, 64});
  const psm_tensor lse = tensor(3, (int64_t[]){1, 4, 1});
  good(e, psm_bind(e->op, "q", &qo));
  good(e, psm_bind(e->op, "k", &kv));
  good(e, psm_bind(e->op, "v", &kv));
  good(e, psm_bind(e->op, "o", &qo));
  good(e, psm_bind(e->op, "lse", &lse));
  good(e, psm_bind_workspace(e->op, 0x200000, psm_workspace_bytes(e->op)));
}

static void launches_go_to_the_stream_that_was_set(void **state) {
  Engine *e = *state;
  open_decode(e);
  good(e, psm_launch(e->op));
  assert_int_equal(e->fake->launches, 2); // decode_splitk and combine
  assert_ptr_equal(e->fake->stream, &e->first);
  good(e, psm_device_set_stream(e->dev, &e->second));
  good(e, psm_launch(e->op));
  assert_ptr_equal(e->fake->stream, &e->second);
  good(e, psm_device_set_stream(e->dev, NULL)); // the default stream
  good(e, psm_launch(e->op));
  assert_null(e->fake->stream);
}

static void only_adopted_devices_change_their_stream(void **state) {
  Engine *e = *state;
  psm_device *own;
  good(e, psm_device_open(e->s, "sim", &own));
  assert_int_equal(psm_device_set_stream(own, &e->first), PSM_INPUT);
  assert_string_equal(psm_error(e->s), "error: sim has no streams\n");
  psm_device_close(own);
  good(e, psm_device_open(e->s, "cuda:0", &own));
  assert_int_equal(psm_device_set_stream(own, &e->first), PSM_INPUT);
  assert_string_equal(psm_error(e->s),
                      "error: cuda:0 was opened, not adopted: it keeps its own stream\n");
  psm_device_close(own);
}

// The engine captures its stream; the fake driver breaks a capture that allocates, loads or waits.
static void a_captured_graph_sees_launches_and_nothing_else(void **state) {
  Engine *e = *state;
  CuGraph graph;
  CuContext popped;
  open_decode(e);
  int allocations = e->fake->allocations;
  assert_int_equal(e->push((CuContext)0x1000), 0);
  assert_int_equal(e->begin_capture((CuStream)&e->first, CU_CAPTURE_THREAD_LOCAL), 0);
  good(e, psm_launch(e->op));
  good(e, psm_launch(e->op));
  assert_int_equal(e->end_capture((CuStream)&e->first, &graph), 0);
  assert_int_equal(e->fake->captured, 4);
  assert_int_equal(e->fake->allocations, allocations);
  // What can't be captured is the driver's error, said with what was being done.
  assert_int_equal(e->begin_capture((CuStream)&e->first, CU_CAPTURE_THREAD_LOCAL), 0);
  assert_int_equal(psm_sync(e->dev), PSM_DEVICE);
  assert_non_null(strstr(psm_error(e->s), "waiting for the kernels launched"));
  assert_int_equal(e->end_capture((CuStream)&e->first, &graph), 901);
  assert_int_equal(e->pop(&popped), 0);
}

static void a_context_that_is_none_is_told(void **state) {
  Engine *e = *state;
  psm_device *dev;
  assert_int_equal(psm_device_adopt(e->s, NULL, NULL, &dev), PSM_INPUT);
  assert_null(dev);
  assert_string_equal(psm_error(e->s), "error: the CUDA context to adopt is NULL\n");
  psm_device_close(dev);
}

int main(void) {
  setenv("PTXSMITH_LIBCUDA", DRIVER, 1);
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(launches_go_to_the_stream_that_was_set),
      TEST(only_adopted_devices_change_their_stream),
      TEST(a_captured_graph_sees_launches_and_nothing_else),
      TEST(a_context_that_is_none_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
