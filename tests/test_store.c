// The store under damage, a full disk's half lines, and eight writers at once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder_kit.h"
#include "store.h"

static void append(int from, int to, bool safe) {
  Diag *d = diag_new();
  Store s;
  assert_int_equal(store_open(d->arena, path, &s, d), ST_OK);
  for (int i = from; i < to; i++) {
    const char *line = arena_printf(d->arena, "{\"n\":%d,\"text\":\"}\\n\"}\n", i);
    assert_int_equal(store_append(&s, line, safe, d), ST_OK);
  }
  store_close(&s);
  diag_free(d);
}

typedef struct Seen {
  int n, sum;
  char first[128];
} Seen;

static void see(void *ctx, const char *line) {
  Seen *s = ctx;
  int n;
  assert_int_equal(sscanf(line, "{\"n\":%d,", &n), 1);
  if (!s->n) snprintf(s->first, sizeof s->first, "%s", line);
  s->n++;
  s->sum += n;
}

static Seen read_back(int *damaged) {
  Diag *d = diag_new();
  Seen s = {0};
  assert_int_equal(store_read(path, see, &s, damaged, d), ST_OK);
  diag_free(d);
  return s;
}

static void overwrite(long at, int byte, long n) {
  FILE *f = fopen(path, "r+b");
  assert_non_null(f);
  fseek(f, at, SEEK_SET);
  for (long i = 0; i < n; i++) fputc(byte, f);
  fclose(f);
}

static long bytes_now(void) {
  struct stat st;
  assert_int_equal(stat(path, &st), 0);
  return (long)st.st_size;
}

static void lines_come_back(void **state) {
  (void)state;
  int damaged;
  unlink(path);
  append(0, 10, true);
  Seen s = read_back(&damaged);
  assert_int_equal(s.n, 10);
  assert_int_equal(s.sum, 45);
  assert_int_equal(damaged, 0);
  // The line is the object with the sum of what stands before it (FNV-1a, 64 bits).
  assert_string_equal(s.first, "{\"n\":0,\"text\":\"}\\n\",\"sum\":\"616cf074b21b853e\"}");
}

static void cut_file_loses_one_line(void **state) {
  (void)state;
  int damaged;
  unlink(path);
  append(0, 10, false);
  assert_int_equal(truncate(path, bytes_now() - 5), 0);
  Seen s = read_back(&damaged);
  assert_int_equal(s.n, 9);
  assert_int_equal(damaged, 1);
  append(100, 101, false); // not glued to the torn line
  s = read_back(&damaged);
  assert_int_equal(s.n, 10);
  assert_int_equal(s.sum, 36 + 100);
  assert_int_equal(damaged, 1);
}

static void cut_to_half_then_written_again(void **state) {
  (void)state;
  int damaged;
  unlink(path);
  append(0, 10, false);
  assert_int_equal(truncate(path, bytes_now() / 2 + 3), 0);
  append(10, 20, false);
  Seen s = read_back(&damaged);
  assert_int_equal(s.n, 15);
  assert_int_equal(damaged, 1);
}

static void filled_with_ff_is_no_result(void **state) {
  (void)state;
  int damaged;
  unlink(path);
  append(0, 10, false);
  long all = bytes_now();
  overwrite(0, 0xff, all);
  append(7, 8, false);
  Seen s = read_back(&damaged);
  assert_int_equal(s.n, 1);
  assert_int_equal(s.sum, 7);
  assert_int_equal(damaged, 1); // one long line
}

static void changed_digit_is_noticed(void **state) {
  (void)state;
  int damaged;
  unlink(path);
  append(0, 3, false);
  overwrite(5, '9', 1); // {"n":0 -> {"n":9
  Seen s = read_back(&damaged);
  assert_int_equal(s.n, 2);
  assert_int_equal(s.sum, 3);
  assert_int_equal(damaged, 1);
  overwrite(5, 0, 1); // a NUL byte
  s = read_back(&damaged);
  assert_int_equal(s.n, 2);
}

static void eight_writers_at_once(void **state) {
  (void)state;
  enum { WRITERS = 8, LINES = 200 };
  int damaged;
  unlink(path);
  pid_t pid[WRITERS];
  for (int w = 0; w < WRITERS; w++) {
    pid[w] = fork();
    if (!pid[w]) {
      append(w * LINES, (w + 1) * LINES, false);
      _exit(0);
    }
  }
  for (int w = 0; w < WRITERS; w++) {
    int status;
    assert_int_equal(waitpid(pid[w], &status, 0), pid[w]);
    assert_int_equal(status, 0);
  }
  Seen s = read_back(&damaged);
  assert_int_equal(s.n, WRITERS * LINES);
  assert_int_equal(s.sum, WRITERS * LINES * (WRITERS * LINES - 1) / 2); // each exactly once
  assert_int_equal(damaged, 0);
}

static void killed_writer_keeps_what_it_wrote(void **state) {
  (void)state;
  int damaged, ready[2];
  unlink(path);
  assert_int_equal(pipe(ready), 0);
  pid_t pid = fork();
  if (!pid) {
    append(0, 50, false);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    append(50, 1000000, false);
    _exit(0);
  }
  char c;
  assert_int_equal(read(ready[0], &c, 1), 1);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  append(-1, 0, false); // the lock died with its holder
  Seen s = read_back(&damaged);
  assert_true(s.n >= 51);
  assert_int_equal(s.sum, (s.n - 1) * (s.n - 2) / 2 - 1); // 0 .. n-2 without a gap, and -1
  close(ready[0]);
  close(ready[1]);
}

static void folder_that_is_a_file(void **state) {
  (void)state;
  Diag *d = diag_new();
  Store s;
  unlink(path);
  append(0, 1, false);
  const char *below = arena_printf(d->arena, "%s/x.jsonl", path);
  assert_int_equal(store_open(d->arena, below, &s, d), ST_INPUT);
  assert_int_equal(d->errors, 1);
  assert_int_equal(s.fd, -1);
  diag_free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_come_back),
      cmocka_unit_test(cut_file_loses_one_line),
      cmocka_unit_test(cut_to_half_then_written_again),
      cmocka_unit_test(filled_with_ff_is_no_result),
      cmocka_unit_test(changed_digit_is_noticed),
      cmocka_unit_test(eight_writers_at_once),
      cmocka_unit_test(killed_writer_keeps_what_it_wrote),
      cmocka_unit_test(folder_that_is_a_file),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
