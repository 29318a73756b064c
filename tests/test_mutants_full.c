// All mutants of our attention kernels, with their score; those that nobody tells are the ones that
// docs/mutants.md proves to be equivalent, and no others.
//
//     test_mutants_full TEMPLATE    scores one (CTest has a test for each)
//     test_mutants_full             looks at the list itself
//
// MUTANTS_DEEP=1 takes all schedules on every problem.
#include "mutant_cases.h"

typedef struct World {
  Diag *diag;
  Session *session;
  Device *dev;
  Source *list;
  const TemplateInfo **t;
  int n;
} World;

static const char *only; // the template that is scored

static int open_world(void **state) {
  World *w = calloc(1, sizeof *w);
  w->diag = diag_new();
  w->session = session_open(NULL, w->diag);
  assert_int_equal(device_open("sim", &w->dev, w->diag), ST_OK);
  assert_int_equal(session_templates(w->session, &w->t, &w->n, w->diag), ST_OK);
  if (source_read(w->diag->arena, SOURCE_DIR "/docs/mutants.md", &w->list, w->diag) != ST_OK)
    fail_msg("%s", diag_text(w->diag));
  *state = w;
  return 0;
}

static int close_world(void **state) {
  World *w = *state;
  device_close(w->dev);
  session_close(w->session);
  diag_free(w->diag);
  free(w);
  return 0;
}

// The section of a template; NULL when there is none.
static const char *section_of(const char *list, const char *name) {
  char title[128];
  snprintf(title, sizeof title, "\n## %s\n", name);
  const char *at = strstr(list, title);
  return at ? at + strlen(title) : NULL;
}

// ---- scored against the list --------------------------------------------------------------------
// Rows of docs/mutants.md: | template | `mutant` | proof |.  A row speaks of all instances of its
// line, of the first and of the last.
static int check_list(const Bench *b) {
  int bad = 0;
  for (int i = 0; i < b->score.n; i++) {
    const Scored *x = &b->score.v[i];
    if (is_caught(x) || x->listed) continue;
    bad++;
    print_error(
        "docs/mutants.md: not told (%s): %s\n  a fault that must be told, or this row:\n%s\n",
        x->j.changed ? "OTHER BITS" : "same bits", x->key, row_of(b->arena, x->key));
  }
  return bad;
}

// Rows whose mutants are all told, or that name none, are out of date.
static int check_rows(const Bench *b) {
  int bad = 0;
  for (const char *at = b->score.list; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
    bool named = false, due = false, ours = false;
    for (int i = 0; i < b->score.n; i++) {
      const char *row = row_of(b->arena, b->score.v[i].key);
      ours |= !strncmp(at, row, strcspn(row, "`"));
      if (strncmp(at, row, strlen(row))) continue;
      named = true;
      due |= !is_caught(&b->score.v[i]);
    }
    if (!ours || due) continue;
    bad++;
    print_error("docs/mutants.md: drop this row (%s): %.*s\n",
                named ? "its mutants are told" : "there is no such line", (int)strcspn(at, "\n"),
                at);
  }
  return bad;
}

static void test_one(void **state) {
  World *w = *state;
  int bad = -1;
  for (int i = 0; i < w->n; i++) {
    if (strcmp(only, w->t[i]->name) || !is_scored(w->t[i])) continue;
    Bench b;
    bench_open(&b, w->session, w->dev, w->t[i], w->list->text);
    bench_all(&b);
    print_score(&b);
    bad = b.wrong + check_list(&b) + check_rows(&b);
    bench_close(&b);
  }
  assert_int_equal(bad, 0);
}

// ---- the list itself ----------------------------------------------------------------------------
static void test_list(void **state) {
  World *w = *state;
  int bad = 0;
  for (int i = 0; i < w->n; i++)
    if (is_scored(w->t[i]) && !section_of(w->list->text, w->t[i]->name))
      bad++, print_error("docs/mutants.md: no section ## %s\n", w->t[i]->name);
  for (const char *at = w->list->text; (at = strstr(at, "\n| ")); at++) {
    const char *end = at + 1 + strcspn(at + 1, "\n"), *proof = strstr(at, "` | ");
    if (strstr(at, "\n| template |") == at) continue;
    bool proven = proof && proof < end && end - proof > 40;
    for (const char *c = at + 1; c < end; c++) proven &= strncmp(c, "not proven", 10) != 0;
    if (!proven)
      bad++, print_error("docs/mutants.md: no proof: %.*s\n", (int)(end - at - 1), at + 1);
  }
  assert_int_equal(bad, 0);
}

int main(int argc, char **argv) {
  only = argc > 1 ? argv[1] : NULL;
  const struct CMUnitTest one[] = {
      cmocka_unit_test_setup_teardown(test_one, open_world, close_world)};
  const struct CMUnitTest list[] = {
      cmocka_unit_test_setup_teardown(test_list, open_world, close_world)};
  return only ? cmocka_run_group_tests(one, NULL, NULL) : cmocka_run_group_tests(list, NULL, NULL);
}
