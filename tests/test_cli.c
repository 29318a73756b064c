// The command line's tables and parser, from inside; tests/cli has the program from outside.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli.h"

typedef struct Fixture {
  Arena *a;
  Diag *d;
  Cli c;
} Fixture;

#define parse(f, ...)                                                                              \
  cli_parse((f)->a, (int)(sizeof(const char *[]){"ptxsmith", __VA_ARGS__} / sizeof(char *)),       \
            (const char *[]){"ptxsmith", __VA_ARGS__}, &(f)->c, (f)->d)

static void every_part_is_kept(void **state) {
  Fixture *f = *state;
  assert_int_equal(parse(f, "verify", "--seed=7", "decode_splitk", "head_dim=64", "-d", "sim",
                         "dtype=f16", "--grid", "3", "--json"),
                   ST_OK);
  assert_int_equal(f->c.verb, CLI_VERIFY);
  assert_int_equal(f->c.noperands, 1);
  assert_string_equal(f->c.operand[0], "decode_splitk");
  assert_int_equal(f->c.params.n, 2);
  assert_string_equal(params_get(&f->c.params, "head_dim"), "64");
  assert_string_equal(params_get(&f->c.params, "dtype"), "f16");
  assert_string_equal(f->c.text[OPT_DEVICE], "sim");
  assert_int_equal(f->c.number[OPT_SEED], 7);
  assert_int_equal(f->c.number[OPT_GRID], 3);
  assert_true(cli_has(&f->c, OPT_JSON));
  assert_false(cli_has(&f->c, OPT_SAVE));
}

// A problem as an operand has '=' in it; verbs without parameters take it as it is.
static void a_problem_is_no_parameter(void **state) {
  Fixture *f = *state;
  assert_int_equal(parse(f, "plan", "b=1,hq=8"), ST_OK);
  assert_string_equal(f->c.operand[0], "b=1,hq=8");
  assert_int_equal(f->c.params.n, 0);
}

static void two_dashes_end_options(void **state) {
  Fixture *f = *state;
  assert_int_equal(parse(f, "check", "--", "-odd.ptx", "--json"), ST_OK);
  assert_int_equal(f->c.noperands, 2);
  assert_string_equal(f->c.operand[0], "-odd.ptx");
  assert_false(cli_has(&f->c, OPT_JSON));
  assert_int_equal(parse(f, "check", "-"), ST_OK); // a file's name, as elsewhere
  assert_string_equal(f->c.operand[0], "-");
}

static void help_needs_no_operand(void **state) {
  Fixture *f = *state;
  assert_int_equal(parse(f, "gen", "-h"), ST_OK);
  assert_true(cli_has(&f->c, OPT_HELP));
}

static void the_tables_are_sound(void **state) {
  (void)state;
  for (int i = 0; i < OPT_COUNT; i++) {
    const CliOpt *o = &cli_opts[i];
    assert_int_not_equal(o->verbs, 0);
    assert_true((o->takes == TAKES_FLAG) == (*o->value == 0));
    for (int k = 0; k < i; k++) {
      if (o->verbs & cli_opts[k].verbs) assert_string_not_equal(o->name, cli_opts[k].name);
      assert_false(o->letter && o->letter == cli_opts[k].letter);
    }
  }
}

// Every option of a verb stands in its help, no line is longer than a terminal is wide.
static void help_is_complete(void **state) {
  Fixture *f = *state;
  for (int v = 0; v <= CLI_VERB_COUNT; v++) {
    char *text = cli_help(f->a, (CliVerbId)v);
    for (int i = 0; i < OPT_COUNT && v < CLI_VERB_COUNT; i++) {
      char *name = arena_printf(f->a, " --%s", cli_opts[i].name);
      bool named = strstr(text, name) != NULL;
      if (cli_opts[i].verbs >> v & 1) assert_true(named);
    }
    for (char *line = text; *line; line = strchr(line, '\n') + 1)
      assert_true(strchr(line, '\n') - line <= 100);
  }
}

static void words_are_quoted_for_the_shell(void **state) {
  Fixture *f = *state;
  assert_string_equal(cli_quote(f->a, "b=1,hq=8"), "b=1,hq=8");
  assert_string_equal(cli_quote(f->a, ""), "''");
  assert_string_equal(cli_quote(f->a, "two words"), "'two words'");
  assert_string_equal(cli_quote(f->a, "it's $x"), "'it'\\''s $x'");
}

static int setup(void **state) {
  static Fixture f;
  f = (Fixture){.a = arena_new(), .d = diag_new()};
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  diag_free(f->d);
  arena_free(f->a);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_part_is_kept, setup, teardown),
      cmocka_unit_test_setup_teardown(a_problem_is_no_parameter, setup, teardown),
      cmocka_unit_test_setup_teardown(two_dashes_end_options, setup, teardown),
      cmocka_unit_test_setup_teardown(help_needs_no_operand, setup, teardown),
      cmocka_unit_test_setup_teardown(the_tables_are_sound, setup, teardown),
      cmocka_unit_test_setup_teardown(help_is_complete, setup, teardown),
      cmocka_unit_test_setup_teardown(words_are_quoted_for_the_shell, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
