// Npy: headers of every version, what is refused and why, round trips of every element type.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "npy.h"
#include "verify_data.h"

typedef struct Fixture {
  Arena *a;
  Diag *d;
  char buf[512];
  size_t n;
} Fixture;

static int setup(void **state) {
  Fixture *f = test_calloc(1, sizeof *f);
  f->a = arena_new();
  f->d = diag_new();
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  arena_free(f->a);
  diag_free(f->d);
  test_free(f);
  return 0;
}

static void build(Fixture *f, int version, const char *dict, size_t data) {
  size_t len = strlen(dict), start = version == 1 ? 10 : 12;
  memset(f->buf, 0, sizeof f->buf);
  memcpy(f->buf, "\x93NUMPY", 6);
  f->buf[6] = (char)version;
  f->buf[8] = (char)(len & 255);
  f->buf[9] = (char)(len >> 8);
  memcpy(f->buf + start, dict, len);
  f->n = start + len + data;
}

static void accept(Fixture *f, NpyArray *a) {
  diag_reset(f->d);
  if (npy_parse(f->buf, f->n, "x.npy", a, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
}

static void refuse(Fixture *f, const char *message) {
  NpyArray a;
  diag_reset(f->d);
  assert_int_equal(npy_parse(f->buf, f->n, "x.npy", &a, f->d), ST_INPUT);
  assert_int_equal(f->d->errors, 1);
  const char *text = diag_text(f->d);
  if (!strstr(text, message) || !strstr(text, "x.npy")) fail_msg("%s", text);
}

#define DICT(descr, order, shape)                                                                  \
  "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }     \n"

static void versions_and_spellings(void **state) {
  Fixture *f = *state;
  NpyArray a;
  for (int version = 1; version <= 3; version++) {
    build(f, version, DICT("<f4", "False", "(1, 2, 3, 4)"), 96);
    accept(f, &a);
    assert_int_equal(a.type, NPY_F32);
    assert_int_equal(a.rank, 4);
    assert_int_equal(a.shape[3], 4);
    assert_int_equal(a.count, 24);
    assert_ptr_equal((const char *)a.data, f->buf + f->n - 96);
  }
  build(f, 1, "{\"shape\":(5,),\"fortran_order\":False,\"descr\":\"<u2\"}", 10);
  accept(f, &a);
  assert_int_equal(a.rank, 1);
  assert_int_equal(a.type, NPY_U16);
  build(f, 1, DICT("<f2", "False", "()"), 2);
  accept(f, &a);
  assert_int_equal(a.rank, 0);
  assert_int_equal(a.count, 1);
  build(f, 1, DICT("<f8", "False", "(0, 9223372036854775807)"), 0);
  accept(f, &a);
  assert_int_equal(a.count, 0);
}

static void bad_files(void **state) {
  Fixture *f = *state;
  build(f, 1, DICT("<f4", "False", "(2, 3)"), 23);
  refuse(f, "the shape needs 24 bytes, the file has 23");
  build(f, 1, DICT("<f4", "False", "(2, 3)"), 25);
  refuse(f, "1 bytes after the array");
  build(f, 1, DICT(">f4", "False", "(2, 3)"), 24);
  refuse(f, "element type '>f4'");
  build(f, 1, DICT("|O", "False", "(2, 3)"), 24);
  refuse(f, "element type '|O'");
  build(f, 1, DICT("<f4", "True", "(2, 3)"), 24);
  refuse(f, "Fortran order");
  build(f, 1, DICT("<f4", "None", "(2, 3)"), 24);
  refuse(f, "fortran_order");
  build(f, 1, DICT("<f4", "False", "(2, -3)"), 24);
  refuse(f, "malformed shape");
  build(f, 1, DICT("<f4", "False", "[2, 3]"), 24);
  refuse(f, "malformed shape");
  build(f, 1, DICT("<f4", "False", "2"), 8);
  refuse(f, "malformed shape");
  build(f, 1, DICT("<f4", "False", "(6)"), 24);
  refuse(f, "malformed shape");
  build(f, 1, DICT("<f4", "False", "(1, 1, 1, 1, 1, 1, 1)"), 4);
  refuse(f, "malformed shape");
  build(f, 1, DICT("<f4", "False", "(4294967296, 4294967296)"), 24);
  refuse(f, "shape overflows");
  build(f, 1, DICT("<f4", "False", "(4611686018427387904,)"), 24);
  refuse(f, "shape overflows");
  build(f, 1, DICT("<f4", "False", "(99999999999999999999,)"), 24);
  refuse(f, "malformed shape");
  build(f, 1, "{'descr': '<f4', 'shape': (1,)}", 4);
  refuse(f, "lacks fortran_order");
  build(f, 1, "{'descr': '<f4', 'descr': '<f4'}", 4);
  refuse(f, "repeated key 'descr'");
  build(f, 1, "{'descr': [('a', '<f4')]}", 4);
  refuse(f, "not a plain one");
  build(f, 1, "['descr']", 4);
  refuse(f, "not a dictionary");
  build(f, 1, DICT("<f4", "False", "(1,)") "x", 4);
  refuse(f, "text after");
  build(f, 4, DICT("<f4", "False", "(1,)"), 4);
  refuse(f, "format version 4.0");
  f->buf[0] = 'P';
  refuse(f, "not a .npy file");
}

// A file cut anywhere is refused, whatever is left of it.
static void every_truncation_is_refused(void **state) {
  Fixture *f = *state;
  for (int version = 1; version <= 2; version++) {
    build(f, version, DICT("<f4", "False", "(2, 3)"), 24);
    size_t whole = f->n;
    for (f->n = 0; f->n < whole; f->n++) refuse(f, "");
  }
}

static char *temp_path(Fixture *f) {
  return arena_printf(f->a, "%s/test_npy_%d.npy", BUILD_DIR, (int)getpid());
}

static void tensors_come_back(void **state) {
  Fixture *f = *state;
  Dtype types[] = {DT_F32, DT_F16, DT_BF16};
  int64_t shape[4] = {2, 3, 4, 5};
  char *path = temp_path(f);
  for (int t = 0; t < 3; t++) {
    HostTensor x, y;
    assert_int_equal(host_tensor_make(&x, types[t], 4, shape, &layout_k, FILL_NAN, f->d), ST_OK);
    host_fill_random(&x, 5, 1);
    assert_int_equal(npy_write_tensor(f->a, path, &x, f->d), ST_OK);
    assert_int_equal(npy_read_tensor(path, types[t], &layout_v, &y, f->d), ST_OK);
    for (int64_t b = 0; b < 2; b++)
      for (int64_t i = 0; i < 3; i++)
        for (int64_t h = 0; h < 4; h++)
          for (int64_t e = 0; e < 5; e++)
            assert_true(host_get(&x, b, i, h, e) == host_get(&y, b, i, h, e));
    host_tensor_free(&x);
    host_tensor_free(&y);
  }
  unlink(path);
}

static void the_wrong_type_is_named(void **state) {
  Fixture *f = *state;
  int64_t shape[4] = {1, 1, 2, 2};
  HostTensor x, y;
  char *path = temp_path(f);
  assert_int_equal(host_tensor_make(&x, DT_BF16, 4, shape, &layout_dense, FILL_ZERO, f->d), ST_OK);
  assert_int_equal(npy_write_tensor(f->a, path, &x, f->d), ST_OK);
  assert_int_equal(npy_read_tensor(path, DT_F16, &layout_q, &y, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "raw bf16, but the kernel's dtype is f16"));
  host_tensor_free(&x);
  diag_reset(f->d);
  assert_int_equal(host_tensor_make(&x, DT_F32, 3, shape, &layout_dense, FILL_ZERO, f->d), ST_OK);
  assert_int_equal(npy_write_tensor(f->a, path, &x, f->d), ST_OK);
  assert_int_equal(npy_read_tensor(path, DT_F32, &layout_q, &y, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "has 3 dimensions"));
  host_tensor_free(&x);
  diag_reset(f->d);
  unlink(path);
  assert_int_equal(npy_read_tensor(path, DT_F32, &layout_q, &y, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "can't be read"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(versions_and_spellings),      T(bad_files),
      T(every_truncation_is_refused), T(tensors_come_back),
      T(the_wrong_type_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
