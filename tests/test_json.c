// The JSON writer: escaping, numbers, nesting.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "json.h"

static const char *one(Arena *a, const char *s) {
  Json j;
  json_begin(&j, a);
  json_str(&j, "s", s);
  return json_end(&j);
}

static void strings_are_escaped(void **state) {
  Arena *a = *state;
  assert_string_equal(one(a, "plain"), "{\"s\":\"plain\"}\n");
  assert_string_equal(one(a, "\"\\/\b\f\n\r\t"), "{\"s\":\"\\\"\\\\/\\b\\f\\n\\r\\t\"}\n");
  assert_string_equal(one(a, "\x01\x1f\x7f"), "{\"s\":\"\\u0001\\u001f\\u007f\"}\n");
  assert_string_equal(one(a, NULL), "{\"s\":null}\n");
}

static void text_is_utf8(void **state) {
  Arena *a = *state;
  assert_string_equal(one(a, "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
                      "{\"s\":\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"}\n");
  assert_string_equal(one(a, "a\xffz"), "{\"s\":\"a\xef\xbf\xbdz\"}\n");
  // Cut short, overlong, a surrogate: each bad byte becomes one U+FFFD.
  assert_string_equal(one(a, "\xe2\x82"), "{\"s\":\"\xef\xbf\xbd\xef\xbf\xbd\"}\n");
  assert_string_equal(one(a, "\xc0\xaf"), "{\"s\":\"\xef\xbf\xbd\xef\xbf\xbd\"}\n");
  assert_string_equal(one(a, "\xed\xa0\x80"),
                      "{\"s\":\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}\n");
  assert_string_equal(one(a, "\xe0\x9f\xbf"),
                      "{\"s\":\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}\n");
  assert_string_equal(one(a, "\xf4\x90\x80\x80"),
                      "{\"s\":\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}\n");
  // The first and the last of two, three and four bytes.
  assert_string_equal(one(a, "\xc2\x80\xdf\xbf \xe0\xa0\x80\xef\xbf\xbf"),
                      "{\"s\":\"\xc2\x80\xdf\xbf \xe0\xa0\x80\xef\xbf\xbf\"}\n");
  assert_string_equal(one(a, "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"),
                      "{\"s\":\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"}\n");
}

static void numbers_read_back(void **state) {
  Json j;
  json_begin(&j, *state);
  json_int(&j, "least", INT64_MIN);
  json_uint(&j, "most", UINT64_MAX);
  json_num(&j, "tenth", 0.1);
  json_num(&j, "third", 1.0 / 3);
  json_num(&j, "big", 1e300);
  json_num(&j, "nan", NAN);
  json_num(&j, "inf", -INFINITY);
  assert_string_equal(json_end(&j), "{\"least\":-9223372036854775808,\"most\":18446744073709551615,"
                                    "\"tenth\":0.1,\"third\":0.3333333333333333,\"big\":1e+300,"
                                    "\"nan\":null,\"inf\":null}\n");
}

static void levels_nest_and_close(void **state) {
  Json j;
  json_begin(&j, *state);
  json_array(&j, "empty");
  json_close(&j);
  json_array(&j, "rows");
  for (int i = 0; i < 2; i++) {
    json_object(&j, NULL);
    json_bool(&j, "odd", i & 1);
    json_close(&j);
  }
  json_null(&j, NULL);
  json_close(&j);
  json_object(&j, "last");
  assert_string_equal(
      json_end(&j), "{\"empty\":[],\"rows\":[{\"odd\":false},{\"odd\":true},null],\"last\":{}}\n");
}

// Growth past the arena's first block must keep what was written.
static void long_text_is_whole(void **state) {
  Json j;
  json_begin(&j, *state);
  json_array(&j, "v");
  for (int i = 0; i < 50000; i++) json_int(&j, NULL, 7);
  const char *t = json_end(&j);
  assert_int_equal(strlen(t), strlen("{\"v\":[]}\n") + 50000 * 2 - 1);
  assert_string_equal(t + strlen(t) - 5, ",7]}\n");
}

static int setup(void **state) {
  *state = arena_new();
  return 0;
}

static int teardown(void **state) {
  arena_free(*state);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(strings_are_escaped, setup, teardown),
      cmocka_unit_test_setup_teardown(text_is_utf8, setup, teardown),
      cmocka_unit_test_setup_teardown(numbers_read_back, setup, teardown),
      cmocka_unit_test_setup_teardown(levels_nest_and_close, setup, teardown),
      cmocka_unit_test_setup_teardown(long_text_is_whole, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
