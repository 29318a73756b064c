// Numbers as text: a host program's locale changes nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json.h"
#include "number.h"
#include "problem.h"
#include "ptx.h"

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
