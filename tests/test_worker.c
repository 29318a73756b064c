// Workers: their lines, their deaths.
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

#include "folder_kit.h"
#include "wire.h"
#include "worker.h"

static void lines_survive_any_text(void **state) {
  (void)state;
  Arena *a = arena_new();
  Params in = {0}, out = {0};
  const char *verb, *odd = "a\tb\nc%d = \xc3\xa9 %09";
  params_set(a, &in, "odd", odd);
  params_set(a, &in, "empty", "");
  char *line = wire_line(a, "done", &in);
  assert_int_equal(strcspn(line, "\n"), strlen(line) - 1); // one line
  assert_true(wire_parse(a, line, &verb, &out));
  assert_string_equal(verb, "done");
  assert_string_equal(params_get(&out, "odd"), odd);
  assert_string_equal(params_get(&out, "empty"), "");
  // What is no code stands for itself, at the line's end too.
  assert_true(wire_parse(a, "done\tat=%5\tend=%\tto=%0\tno=%zz% 4%00\n", &verb, &out));
  assert_string_equal(params_get(&out, "at"), "%5");
  assert_string_equal(params_get(&out, "end"), "%");
  assert_string_equal(params_get(&out, "to"), "%0");
  assert_string_equal(params_get(&out, "no"), "%zz% 4%00");
  assert_false(wire_parse(a, "\n", &verb, &out));
  assert_false(wire_parse(a, "a=b\n", &verb, &out));
  assert_false(wire_parse(a, "job\tno pair\n", &verb, &out));
  arena_free(a);
}

static void assert_starts(const char *text, const char *with) {
  if (strncmp(text, with, strlen(with))) fail_msg("\"%s\" does not begin with \"%s\"", text, with);
}

static JobEnd run_shell(const char *script, double limit_s, Arena *a, Worker *w, Params *reply,
                        const char **why) {
  Diag *d = diag_new();
  const char *stage;
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "#!/bin/sh\n%s\n", script);
  fclose(f);
  chmod(path, 0700);
  assert_int_equal(worker_start(w, &(WorkerOpts){.program = path}, d), ST_OK);
  diag_free(d);
  Params job = {0};
  params_set(a, &job, "template", "x");
  return worker_run(w, a, &job, limit_s, reply, &stage, why);
}

static void deaths_are_described(void **state) {
  (void)state;
  Arena *a = arena_new();
  Worker w;
  Params reply = {0};
  const char *why;
  assert_int_equal(run_shell("read x; echo oh dear >&2; exit 7", 10, a, &w, &reply, &why),
                   JOB_DIED);
  assert_string_equal(why, "the worker ended with exit code 7: oh dear");
  assert_int_equal(w.pid, 0);
  assert_int_equal(run_shell("read x; kill -SEGV $$", 10, a, &w, &reply, &why), JOB_DIED);
  assert_starts(why, "the worker was killed by signal 11 (Segmentation fault)");
  assert_int_equal(
      run_shell("read x; printf 'done\\tmedian_us=3'; exit 0", 10, a, &w, &reply, &why),
      JOB_DIED); // a line that was never finished is no answer
  assert_int_equal(run_shell("sleep 100", 0.2, a, &w, &reply, &why), JOB_LATE);
  assert_int_equal(w.pid, 0);
  assert_int_equal(run_shell("read x; printf 'noise\\nstage\\tname=time\\ndone\\tmedian_us=3\\n'; "
                             "read x; exit 0",
                             10, a, &w, &reply, &why),
                   JOB_DONE);
  assert_true(wire_number(&reply, "median_us") == 3);
  assert_true(w.pid > 0);
  worker_stop(&w);
  assert_int_equal(w.pid, 0);
  arena_free(a);
}

static void missing_program_is_one_message(void **state) {
  (void)state;
  Diag *d = diag_new();
  Worker w;
  assert_int_equal(worker_start(&w, &(WorkerOpts){.program = "/nowhere/ptxsmith"}, d), ST_DEVICE);
  assert_int_equal(d->errors, 1);
  assert_non_null(strstr(diag_text(d), "can't start /nowhere/ptxsmith"));
  assert_int_equal(w.pid, 0);
  worker_stop(&w);
  diag_free(d);
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_survive_any_text),
      cmocka_unit_test(deaths_are_described),
      cmocka_unit_test(missing_program_is_one_message),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
