// Files that are whole or not there, and the progress line.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "outfile.h"
#include "progress.h"

typedef struct Fixture {
  Arena *a;
  Diag *d;
  char dir[64];
} Fixture;

static char *in_dir(Fixture *f, const char *name) {
  return arena_printf(f->a, "%s/%s", f->dir, name);
}

static char *content(Fixture *f, const char *path) {
  Source *src;
  return source_read(f->a, path, &src, f->d) ? NULL : arena_strdup(f->a, src->text);
}

static void nothing_is_there_before_the_end(void **state) {
  Fixture *f = *state;
  char *path = in_dir(f, "a.txt");
  Outfile o;
  assert_int_equal(outfile_open(f->a, path, &o, f->d), ST_OK);
  fputs("new", o.f);
  fflush(o.f);
  assert_int_not_equal(access(path, F_OK), 0);
  assert_int_equal(outfile_commit(&o, f->d), ST_OK);
  assert_string_equal(content(f, path), "new");
  assert_int_not_equal(access(o.temp, F_OK), 0);
}

static void an_abandoned_file_leaves_the_old_one(void **state) {
  Fixture *f = *state;
  char *path = in_dir(f, "a.txt");
  Outfile o;
  outfile_open(f->a, path, &o, f->d);
  fputs("old", o.f);
  outfile_commit(&o, f->d);
  assert_int_equal(outfile_open(f->a, path, &o, f->d), ST_OK);
  fputs("half", o.f);
  fflush(o.f);
  assert_string_equal(content(f, path), "old");
  assert_int_equal(outfile_commit(&o, f->d), ST_OK);
  assert_string_equal(content(f, path), "half");
  assert_int_not_equal(access(o.temp, F_OK), 0);
}

static void places_that_cannot_be_written_are_told(void **state) {
  Fixture *f = *state;
  Outfile o;
  assert_int_equal(outfile_open(f->a, in_dir(f, "no/such/x"), &o, f->d), ST_INPUT);
  assert_non_null(strstr(f->d->first->what, "no/such/x: can't be written: No such file"));
  assert_int_equal(outfile_open(f->a, f->dir, &o, f->d), ST_INPUT);
  assert_int_equal(outfile_open(f->a, "/dev/full", &o, f->d), ST_OK);
  fputs("x", o.f);
  assert_int_equal(outfile_commit(&o, f->d), ST_INPUT);
  assert_non_null(strstr(f->d->last->what, "No space left"));
}

static void folders_are_made_with_their_parents(void **state) {
  Fixture *f = *state;
  struct stat st;
  assert_int_equal(outfile_folder(f->a, in_dir(f, "x/y/z"), f->d), ST_OK);
  assert_int_equal(stat(in_dir(f, "x/y/z"), &st), 0);
  assert_int_equal(outfile_folder(f->a, in_dir(f, "x/y/z/"), f->d), ST_OK); // there already
  fclose(fopen(in_dir(f, "file"), "w"));
  assert_int_equal(outfile_folder(f->a, in_dir(f, "file"), f->d), ST_INPUT);
  assert_int_equal(outfile_folder(f->a, in_dir(f, "file/sub"), f->d), ST_INPUT);
}

static void the_line_says_count_rate_and_time_left(void **state) {
  (void)state;
  char line[160];
  Progress p = {.what = "variants", .total = 100};
  progress_line(&p, 0, 0, line, sizeof line);
  assert_string_equal(line, "variants 0 of 100");
  progress_line(&p, 20, 10, line, sizeof line);
  assert_string_equal(line, "variants 20 of 100, 2.0/s, 40 s left");
  progress_line(&p, 2, 10, line, sizeof line);
  assert_string_equal(line, "variants 2 of 100, 5.0 s each, 8 min 10 s left");
  progress_line(&p, 1, 200, line, sizeof line);
  assert_string_equal(line, "variants 1 of 100, 200.0 s each, 5 h 30 min left");
  progress_line(&p, 100, 10, line, sizeof line);
  assert_string_equal(line, "variants 100 of 100, 10.0/s");
  p.found = 80; // the store's
  progress_line(&p, 80, 1, line, sizeof line);
  assert_string_equal(line, "variants 80 of 100");
  progress_line(&p, 90, 20, line, sizeof line);
  assert_string_equal(line, "variants 90 of 100, 2.0 s each, 20 s left");
  p = (Progress){.what = "variants"};
  progress_line(&p, 5, 1, line, sizeof line);
  assert_string_equal(line, "variants 5, 5.0/s");
}

static void when_a_line_is_drawn(void **state) {
  (void)state;
  Progress p = {.live = true, .began = 100};
  assert_true(progress_due(&p, 100)); // on a terminal at once, then ten times a second
  p.drawn = 100;
  assert_false(progress_due(&p, 100.05));
  assert_true(progress_due(&p, 100.125));
  p = (Progress){.began = 100};
  assert_false(progress_due(&p, 159)); // in a file after a minute, then every one
  assert_true(progress_due(&p, 160));
  p.drawn = 165;
  assert_false(progress_due(&p, 224));
  assert_true(progress_due(&p, 225));
}

static void a_file_sees_no_progress(void **state) {
  Fixture *f = *state;
  char *path = in_dir(f, "log");
  FILE *log = fopen(path, "w");
  Progress p;
  progress_begin(&p, log, "files", 3);
  for (int i = 1; i <= 3; i++) progress_at(&p, i);
  progress_clear(&p);
  fclose(log);
  assert_string_equal(content(f, path), "");
}

static int setup(void **state) {
  static Fixture f;
  f = (Fixture){.a = arena_new(), .d = diag_new(), .dir = "/tmp/ptxsmith-test-XXXXXX"};
  *state = &f;
  return mkdtemp(f.dir) ? 0 : -1;
}

static int teardown(void **state) {
  Fixture *f = *state;
  char *remove = arena_printf(f->a, "rm -rf '%s'", f->dir);
  int rc = system(remove);
  diag_free(f->d);
  arena_free(f->a);
  return rc;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(nothing_is_there_before_the_end, setup, teardown),
      cmocka_unit_test_setup_teardown(an_abandoned_file_leaves_the_old_one, setup, teardown),
      cmocka_unit_test_setup_teardown(places_that_cannot_be_written_are_told, setup, teardown),
      cmocka_unit_test_setup_teardown(folders_are_made_with_their_parents, setup, teardown),
      cmocka_unit_test_setup_teardown(the_line_says_count_rate_and_time_left, setup, teardown),
      cmocka_unit_test_setup_teardown(when_a_line_is_drawn, setup, teardown),
      cmocka_unit_test_setup_teardown(a_file_sees_no_progress, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
