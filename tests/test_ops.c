// Runs every kernel of tests/ops on a device (PTXSMITH_DEVICE, else sim).  A file's comment holds
// its cases: "//   in ... -> out ..." in hexadecimal, one thread each, 8 bytes a value in memory.
// "// tolerance: N ulp|relative|absolute|either f32" loosens finite results of approximations.
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "device.h"

enum { MAX_CASES = 64, MAX_VALUES = 16 };

typedef enum Kind { EXACT, ULP, RELATIVE, ABSOLUTE, EITHER } Kind;

typedef struct OpFile {
  int ncases, nin, nout;
  uint64_t in[MAX_CASES][MAX_VALUES], want[MAX_CASES][MAX_VALUES];
  int digits[MAX_VALUES]; // of each result, as written
  Kind kind;
  double bound;
} OpFile;

static int hex_words(const char *p, const char *end, uint64_t *v, int *digits) {
  int n = 0;
  while (p < end && n < MAX_VALUES) {
    while (p < end && *p == ' ') p++;
    char *stop;
    if (p >= end) break;
    v[n] = strtoull(p, &stop, 16);
    if (stop == p) break;
    if (digits) digits[n] = (int)(stop - p);
    n++;
    p = stop;
  }
  return n;
}

static void read_tolerance(OpFile *f, const char *text) {
  static const char *const names[] = {[ULP] = "ulp", [RELATIVE] = "relative",
                                      [ABSOLUTE] = "absolute", [EITHER] = "either"};
  char *rest;
  f->bound = strtod(text, &rest);
  if (*rest == '^') f->bound = pow(f->bound, strtod(rest + 1, &rest));
  for (int k = ULP; k <= EITHER; k++)
    if (!strncmp(rest + 1, names[k], strlen(names[k]))) f->kind = (Kind)k;
  assert_true(f->kind != EXACT);
}

static void read_cases(const Source *src, OpFile *f) {
  memset(f, 0, sizeof *f);
  for (uint32_t n = 1; n <= src->nlines; n++) {
    size_t len;
    const char *line = source_line(src, n, &len), *end = line + len;
    if (!strncmp(line, "// tolerance: ", 14)) read_tolerance(f, line + 14);
    if (len < 5 || strncmp(line, "//   ", 5)) continue;
    const char *arrow = strstr(line, "->");
    assert_true(arrow && arrow < end && f->ncases < MAX_CASES);
    f->nin = hex_words(line + 5, arrow, f->in[f->ncases], NULL);
    f->nout = hex_words(arrow + 2, end, f->want[f->ncases], f->digits);
    f->ncases++;
  }
  if (!f->ncases) fail_msg("%s: no cases", src->name);
}

static double f32_value(uint64_t u) {
  uint32_t w = (uint32_t)u;
  float x;
  memcpy(&x, &w, 4);
  return x;
}

static bool agrees(const OpFile *f, uint64_t got, uint64_t want) {
  if (got == want) return true;
  if (f->kind == EXACT) return false;
  double g = f32_value(got), w = f32_value(want), diff = fabs(g - w);
  if (!isfinite(g) || !isfinite(w)) return false;
  int e;
  frexp(w, &e);
  double ulp = ldexp(1, (e < -125 ? -125 : e) - 24);
  switch (f->kind) {
  case ULP: return diff <= f->bound * ulp;
  case RELATIVE: return diff <= f->bound * fabs(w) + 0.5 * ulp; // the expectation is rounded
  case ABSOLUTE: return diff <= f->bound;
  default: return diff <= f->bound * fmax(1, fabs(w));
  }
}

static int compare(const OpFile *f, const char *path, const uint64_t *out) {
  int bad = 0;
  for (int c = 0; c < f->ncases; c++)
    for (int k = 0; k < f->nout; k++) {
      uint64_t got = out[c * f->nout + k], want = f->want[c][k];
      if (agrees(f, got, want)) continue;
      print_error("%s: case %d, result %d: %0*llX, expected %0*llX\n", path, c + 1, k + 1,
                  f->digits[k], (unsigned long long)got, f->digits[k], (unsigned long long)want);
      bad++;
    }
  return bad;
}

static Status run(Device *dev, const Source *src, const OpFile *f, uint64_t *out, Diag *d) {
  uint64_t in[MAX_CASES * MAX_VALUES];
  for (int c = 0; c < f->ncases; c++)
    memcpy(in + c * f->nin, f->in[c], sizeof *in * (size_t)f->nin);
  uint64_t in_bytes = 8 * (uint64_t)(f->ncases * f->nin);
  uint64_t out_bytes = 8 * (uint64_t)(f->ncases * f->nout);
  DevPtr args[2] = {0};
  Kernel *k = NULL;
  Status st = device_load_ptx(dev, src, NULL, NULL, &k, d);
  if (st == ST_OK) st = device_alloc(dev, in_bytes, "in", &args[0], d);
  if (st == ST_OK) st = device_alloc(dev, out_bytes, "out", &args[1], d);
  if (st == ST_OK) st = device_write(dev, args[0], in, in_bytes, d);
  if (st == ST_OK) st = device_fill32(dev, args[1], 0, out_bytes, d); // narrow results leave it
  Launch l = {.kernel = k, .grid = {1, 1, 1}, .block = {(uint32_t)f->ncases, 1, 1},
              .cluster = {1, 1, 1}, .args = args, .arg_bytes = sizeof args};
  if (st == ST_OK) st = device_launch(dev, &l, d);
  if (st == ST_OK) st = device_sync(dev, d);
  if (st == ST_OK) st = device_read(dev, out, args[1], out_bytes, d);
  if (args[0]) device_free(dev, args[0]);
  if (args[1]) device_free(dev, args[1]);
  if (k) kernel_free(k);
  return st;
}

static void every_op(void **state) {
  (void)state;
  const char *spec = getenv("PTXSMITH_DEVICE");
  Diag *d = diag_new();
  Device *dev = NULL;
  if (device_open(spec ? spec : "sim", &dev, d) != ST_OK) fail_msg("%s", diag_text(d));
  glob_t files;
  assert_int_equal(glob(TESTS_DIR "/ops/*.ptx", 0, NULL, &files), 0);
  assert_true(files.gl_pathc >= 60);
  int bad = 0;
  for (size_t i = 0; i < files.gl_pathc; i++) {
    Arena *a = arena_new();
    Source *src;
    OpFile f;
    uint64_t out[MAX_CASES * MAX_VALUES];
    diag_reset(d);
    Status st = source_read(a, files.gl_pathv[i], &src, d);
    if (st == ST_OK) {
      read_cases(src, &f);
      st = run(dev, src, &f, out, d);
    }
    if (st == ST_OK) {
      bad += compare(&f, files.gl_pathv[i], out);
    } else {
      print_error("%s", diag_text(d));
      bad++;
    }
    arena_free(a);
  }
  globfree(&files);
  device_close(dev);
  diag_free(d);
  assert_int_equal(bad, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_op)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
