// The line diff: what it prints, and that its edits turn one text into the other.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "diff.h"

static void small_changes(void **state) {
  Arena *a = *state;
  assert_string_equal(diff_text(a, "x", "1\n2\n", "y", "1\n2\n"), "");
  assert_string_equal(diff_text(a, "x", "1\n2\n3\n", "y", "1\nB\n3\n"),
                      "--- x\n+++ y\n@@ -1,3 +1,3 @@\n 1\n-2\n+B\n 3\n");
  assert_string_equal(diff_text(a, "x", "", "y", "new\n"),
                      "--- x\n+++ y\n@@ -0,0 +1,1 @@\n+new\n");
  assert_string_equal(diff_text(a, "x", "old\n", "y", ""),
                      "--- x\n+++ y\n@@ -1,1 +0,0 @@\n-old\n");
}

// Six unchanged lines join two changes, seven part them.
static void hunks_join_and_part(void **state) {
  Arena *a = *state;
  assert_string_equal(
      diff_text(a, "x", "A\n1\n2\n3\n4\n5\n6\nB\n", "y", "a\n1\n2\n3\n4\n5\n6\nb\n"),
      "--- x\n+++ y\n@@ -1,8 +1,8 @@\n-A\n+a\n 1\n 2\n 3\n 4\n 5\n 6\n-B\n+b\n");
  assert_string_equal(
      diff_text(a, "x", "A\n1\n2\n3\n4\n5\n6\n7\nB\n", "y", "a\n1\n2\n3\n4\n5\n6\n7\nb\n"),
      "--- x\n+++ y\n@@ -1,4 +1,4 @@\n-A\n+a\n 1\n 2\n 3\n"
      "@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-B\n+b\n");
}

// Random texts: the '-' and ' ' lines of a diff with enough context are the one, the '+' and ' '
// lines the other.
static void edits_rebuild_both(void **state) {
  Arena *a = *state;
  uint32_t seed = 1;
  for (int round = 0; round < 300; round++) {
    char t[2][64];
    for (int k = 0; k < 2; k++) {
      seed = seed * 1664525u + 1013904223u;
      int n = (int)(seed >> 24) % 5; // short enough that context covers all
      for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        t[k][2 * i] = (char)('a' + (seed >> 24) % 3);
        t[k][2 * i + 1] = '\n';
      }
      t[k][2 * n] = 0;
    }
    const char *d = diff_text(a, "x", t[0], "y", t[1]);
    if (!*d) {
      assert_string_equal(t[0], t[1]);
      continue;
    }
    char got[2][64] = {"", ""};
    const char *line = strstr(d, "@@\n") + 3;
    for (; *line; line += 3) {
      assert_true(line[2] == '\n');
      if (*line != '+') strncat(got[0], line + 1, 2);
      if (*line != '-') strncat(got[1], line + 1, 2);
    }
    assert_string_equal(got[0], t[0]);
    assert_string_equal(got[1], t[1]);
  }
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
      cmocka_unit_test_setup_teardown(small_changes, setup, teardown),
      cmocka_unit_test_setup_teardown(hunks_join_and_part, setup, teardown),
      cmocka_unit_test_setup_teardown(edits_rebuild_both, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
