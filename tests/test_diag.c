#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "diag.h"

static Source *source_of(Arena *a, const char *name, const char *text) {
  return source_new(a, name, text, strlen(text));
}

static void lines_of_a_source(void **state) {
  (void)state;
  Arena *a = arena_new();
  size_t len;
  Source *s = source_of(a, "x", "one\r\n\nthree");
  assert_int_equal(s->nlines, 3);
  assert_memory_equal(source_line(s, 1, &len), "one", 3);
  assert_int_equal(len, 3); // no carriage return
  source_line(s, 2, &len);
  assert_int_equal(len, 0);
  assert_memory_equal(source_line(s, 3, &len), "three", 5);
  assert_int_equal(len, 5);
  assert_string_equal(source_line(s, 4, &len), "");
  assert_int_equal(source_of(a, "x", "one\n")->nlines, 1);
  assert_int_equal(source_of(a, "x", "")->nlines, 1);
  assert_int_equal(source_of(a, "x", "\n\n")->nlines, 2);
  arena_free(a);
}

static void caret_stands_under_the_character(void **state) {
  (void)state;
  Diag *d = diag_new();
  Source *s = source_of(d->arena, "a.ptx", "\tadd.f32 %x, %y;\n// \xc3\xa9 bad\n");
  assert_int_equal(diag_error(d, (Place){.src = s, .line = 1, .col = 10, .span = 2}, "no %s", "it"),
                   ST_INPUT);
  diag_add(d, SEV_WARNING, (Place){.src = s, .line = 2, .col = 7}, "w");
  assert_string_equal(diag_text(d), "a.ptx:1:10: error: no it\n"
                                    "    \tadd.f32 %x, %y;\n"
                                    "    \t        ^~\n"
                                    "a.ptx:2:7: warning: w\n"
                                    "    // \xc3\xa9 bad\n"
                                    "         ^\n");
  assert_int_equal(d->errors, 1);
  assert_int_equal(d->warnings, 1);
  assert_int_equal(d->first->col, 10);
  assert_string_equal(d->first->what, "no it");
  diag_free(d);
}

static void origins_are_told_inside_out(void **state) {
  (void)state;
  Arena *a = arena_new(); // a Diag outlives the sources, not the other way round
  Diag *d = diag_new();
  Source *ptx = source_of(a, "out.ptx", "  bad;\n");
  Source *inc = source_of(a, "soft.inc", "| function f()\n  ${x};\n| end\n");
  Source *tmpl = source_of(a, "t.ptx.in", "| f()\n");
  Origin root = {tmpl, 1, ORIGIN_FILE, NULL};
  Origin leaf = {inc, 2, ORIGIN_CALL, &root};
  diag_error(d, (Place){ptx, 1, 3, 3, &leaf}, "unknown");
  assert_string_equal(diag_text(d), "out.ptx:1:3: error: unknown\n"
                                    "      bad;\n"
                                    "      ^~~\n"
                                    "  soft.inc:2: note: from this template line\n"
                                    "      ${x};\n"
                                    "  t.ptx.in:1: note: called from here\n"
                                    "    | f()\n");
  assert_string_equal(d->first->origin_file, "soft.inc");
  assert_int_equal(d->first->origin_line, 2);
  // With no generated text the innermost origin itself is the place.
  diag_reset(d);
  diag_error(d, (Place){.origin = &leaf}, "early");
  assert_string_equal(d->first->file, "soft.inc");
  assert_string_equal(diag_text(d), "soft.inc:2: error: early\n"
                                    "      ${x};\n"
                                    "  t.ptx.in:1: note: called from here\n"
                                    "    | f()\n");
  diag_free(d);
  arena_free(a);
}

static void twenty_errors_are_kept(void **state) {
  (void)state;
  Diag *d = diag_new();
  for (int i = 0; i < 25; i++) {
    diag_fail(d, ST_DEVICE, "number %d", i);
    diag_add(d, SEV_NOTE, NOWHERE, "note %d", i);
  }
  assert_int_equal(d->errors, 25);
  const char *text = diag_text(d);
  assert_non_null(strstr(text, "error: number 19\nnote: note 19\n5 more errors are not shown\n"));
  assert_null(strstr(text, "number 20"));
  assert_null(strstr(text, "note 20"));
  diag_reset(d);
  assert_string_equal(diag_text(d), "");
  assert_int_equal(d->errors, 0);
  diag_free(d);
}

static void long_lines_and_odd_bytes(void **state) {
  (void)state;
  Diag *d = diag_new();
  char text[1200];
  memset(text, 'a', sizeof text);
  text[0] = 1;
  text[1000] = 'X';
  Source *s = source_new(d->arena, "n", memcpy(arena_alloc(d->arena, 1201), text, 1200), 1200);
  diag_error(d, (Place){.src = s, .line = 1, .col = 1001, .span = 5000}, "far");
  const char *shown = strchr(d->first->text, '\n') + 1;
  const char *under = strchr(shown, '\n') + 1;
  assert_true(under - shown < 180);
  assert_int_equal(shown[strcspn(under, "^")], 'X');
  assert_true(strlen(under) < 200); // a span ends with the line shown
  diag_error(d, (Place){.src = s, .line = 1, .col = 1}, "near");
  assert_int_equal(*(strchr(d->last->text, '\n') + 5), '?');
  diag_error(d, (Place){.src = s, .line = 7, .col = 90000}, "outside"); // must not read outside
  diag_free(d);
}

static void nearest_names(void **state) {
  (void)state;
  Arena *a = arena_new();
  static const char *const names[] = {"head_dim", "tile_q", "tile_k", "vec", "causal"};
  assert_string_equal(diag_nearest(a, "headdim", names, 5), " (did you mean \"head_dim\"?)");
  assert_string_equal(diag_nearest(a, "tile_", names, 5),
                      " (did you mean \"tile_q\" or \"tile_k\"?)");
  assert_string_equal(diag_nearest(a, "cuasal", names, 5), " (did you mean \"causal\"?)");
  assert_string_equal(diag_nearest(a, "warps", names, 5), "");
  assert_string_equal(diag_nearest(a, "", names, 5), "");
  arena_free(a);
}

static void reading_files(void **state) {
  (void)state;
  Arena *a = arena_new();
  Diag *d = diag_new();
  Source *s;
  assert_int_equal(source_read(a, "no/such/file", &s, d), ST_INPUT);
  assert_string_equal(diag_text(d),
                      "error: can't open 'no/such/file': No such file or directory\n");
  diag_reset(d);
  assert_int_equal(source_read(a, "/", &s, d), ST_INPUT); // a folder opens but does not read
  assert_non_null(strstr(diag_text(d), "can't read '/': "));
  assert_null(s);
  char path[] = "/tmp/diag_XXXXXX";
  int fd = mkstemp(path);
  FILE *f = fdopen(fd, "wb");
  for (int i = 0; i < 50000; i++) fprintf(f, "%07d\n", i);
  fclose(f);
  assert_int_equal(source_read(a, path, &s, d), ST_OK);
  unlink(path);
  size_t len;
  assert_int_equal(s->len, 400000);
  assert_int_equal(s->nlines, 50000);
  assert_memory_equal(source_line(s, 43211, &len), "0043210", 7);
  diag_free(d);
  arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_of_a_source),
      cmocka_unit_test(caret_stands_under_the_character),
      cmocka_unit_test(origins_are_told_inside_out),
      cmocka_unit_test(twenty_errors_are_kept),
      cmocka_unit_test(long_lines_and_odd_bytes),
      cmocka_unit_test(nearest_names),
      cmocka_unit_test(reading_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
