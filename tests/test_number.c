// Numbers as text: a host program's locale changes nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "counters.h"
#include "json.h"
#include "number.h"
#include "ptx.h"
#include "results.h"
#include "run_ptx.h"
#include "verify_gates.h"
#include "wire.h"

static void shortest_that_reads_back(void **state) {
  (void)state;
  static const struct { double x; const char *text; } cases[] = {
      {0.1, "0.1"}, {1.0 / 3, "0.3333333333333333"}, {1e300, "1e+300"}, {-2, "-2"},
      {0x1p-1074, "4.94066e-324"}, {0.1 + 0.2, "0.30000000000000004"}};
  char text[NUMBER_BYTES];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(number_text(cases[i].x, text), (int)strlen(cases[i].text));
    assert_string_equal(text, cases[i].text);
    assert_true(number_parse(text, NULL) == cases[i].x);
  }
}

// A locale with a decimal comma: the machine's, or one made for this.
static bool comma_locale(void) {
  static const char make[] = "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1";
  static char folder[] = "/tmp/ptxsmith_test_XXXXXX";
  char command[160];
  if (setlocale(LC_ALL, "de_DE.UTF-8")) return true;
  if (!mkdtemp(folder)) return false;
  snprintf(command, sizeof command, make, folder);
  bool made = system(command) == 0;
  setenv("LOCPATH", folder, 1);
  bool set = made && setlocale(LC_ALL, "de_DE.UTF-8");
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) == 0 && set;
}

// What a line lacks stays NaN.
static void a_committed_row(Arena *a, Diag *d) {
  static const char rows[] = "case 8 0\nlse 1 0 -0.25\no 0 1 3 1.5\no 0 1 4\n";
  Problem *p;
  Reference ref;
  if (problem_parse(a, "hq=2,d=8", &p, d)) fail_msg("%s", diag_text(d));
  assert_true(expect_row(source_new(a, "rows", rows, sizeof rows - 1), p, &ref));
  assert_true(ref.lse[2] == -0.25 && isnan(ref.lse[3]));
  assert_true(ref.o[19] == 1.5 && isnan(ref.o[20]));
  reference_free(&ref);
}

static void a_decimal_comma_changes_nothing(void **state) {
  (void)state;
  if (!comma_locale()) skip();
  assert_string_equal(localeconv()->decimal_point, ",");
  Arena *a = arena_new();
  Diag *d = diag_new();
  Json j;
  json_begin(&j, a);
  json_num(&j, "x", 0.5);
  assert_string_equal(json_end(&j), "{\"x\":0.5}\n");
  Problem *p;
  if (problem_parse(a, "hq=1,scale=0.25", &p, d)) fail_msg("%s", diag_text(d));
  assert_string_equal(problem_text(a, p), "b=1,hq=1,hkv=1,scale=0.25");
  static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                             ".global .f64 x = 1.5;\n";
  PtxModule *m = ptx_parse(a, source_new(a, "x.ptx", text, sizeof text - 1), NULL, d);
  if (!m) fail_msg("%s", diag_text(d));
  double x;
  memcpy(&x, m->vars[0].init, sizeof x);
  assert_true(x == 1.5);
  Tolerance tol;
  RunArg arg;
  Roof roof = roof_h200;
  Params fields = {0};
  if (run_tolerance(a, "abs=0.5,rel=0.25", &tol, d) || roof_parse(a, "dram=1.5", &roof, d) ||
      run_arg_parse(a, "f32:0.125", 0, &arg, d))
    fail_msg("%s", diag_text(d));
  assert_true(tol.abs == 0.5 && tol.rel == 0.25 && roof.read_gbs == 1.5);
  assert_memory_equal(arg.data, &(float){0.125f}, 4);
  assert_int_equal(run_arg_parse(a, "f32:1e400", 0, &arg, d), ST_INPUT); // errno comes through
  assert_true(result_parse(a, "{\"us\": 1.5}", &fields));
  assert_true(wire_number(&fields, "us") == 1.5);
  wire_put_number(a, &fields, "us", 2.5);
  assert_string_equal(params_get(&fields, "us"), "2.5");
  a_committed_row(a, d);
  assert_string_equal(localeconv()->decimal_point, ","); // the host's own is as it was
  setlocale(LC_ALL, "C");
  diag_free(d);
  arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shortest_that_reads_back),
      cmocka_unit_test(a_decimal_comma_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
