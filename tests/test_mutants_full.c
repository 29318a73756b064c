// All mutants of our attention kernels, with their score; those that nobody tells are the ones that
// docs/mutants.md proves to be equivalent, and no others.
#include "mutant_cases.h"

// Rows of docs/mutants.md: | template | `mutant` | proof |.  A row speaks of all instances of its
// line, of the first and of the last.
static const char *plain_key(const char *key, size_t *start) {
  const char *text = strstr(key, ": ") + 2;
  *start = (size_t)(text - key) - 2;
  if (!strncmp(text, "first of ", 9)) return text + 9;
  return strncmp(text, "last of ", 8) ? text : text + 8;
}

static bool is_listed(const char *list, const char *key) {
  char row[1024];
  size_t n;
  const char *text = plain_key(key, &n);
  snprintf(row, sizeof row, "| %.*s | `%s` |", (int)n, key, text);
  return strstr(list, row) != NULL;
}

// A template without a section there has not been gone through yet: it is scored when MUTANTS_OF names
// it, and then only other bits count.
static bool has_section(const char *list, const char *name) {
  char title[128];
  snprintf(title, sizeof title, "\n## %s\n", name);
  return strstr(list, title) != NULL;
}

static int check_list(const char *list, const Bench *b) {
  int bad = 0;
  for (int i = 0; i < b->score.n; i++) {
    const Scored *x = &b->score.v[i];
    if (is_caught(x) || is_listed(list, x->key)) continue;
    bad += x->j.changed || has_section(list, b->tmpl->name);
    print_error("not caught (%s), and not in docs/mutants.md: %s\n",
                x->j.changed ? "other bits" : "same bits", x->key);
  }
  return bad;
}

// A row all of whose mutants are caught, or that names none, is out of date.
static int check_rows(const char *list, const Bench *b) {
  char start[128];
  int bad = 0;
  snprintf(start, sizeof start, "\n| %s | `", b->tmpl->name);
  for (const char *at = strstr(list, start); at; at = strstr(at + 1, start)) {
    const char *text = at + strlen(start), *end = strstr(text, "` |");
    bool due = false;
    for (int i = 0; i < b->score.n && end && !due; i++) {
      size_t n;
      const char *key = plain_key(b->score.v[i].key, &n);
      due = !is_caught(&b->score.v[i]) && strlen(key) == (size_t)(end - text) &&
            !strncmp(key, text, (size_t)(end - text));
    }
    if (!due) bad++, print_error("in docs/mutants.md, but caught: %.*s\n", 120, at + 1);
  }
  return bad;
}

static void test_all(void **state) {
  (void)state;
  Diag *d = diag_new();
  Session *s = session_open(NULL, d);
  Device *dev;
  Source *list;
  const TemplateInfo **t;
  int n, bad = 0;
  assert_int_equal(device_open("sim", &dev, d), ST_OK);
  assert_int_equal(session_templates(s, &t, &n, d), ST_OK);
  if (source_read(d->arena, SOURCE_DIR "/docs/mutants.md", &list, d) != ST_OK)
    fail_msg("%s", diag_text(d));
  const char *only = getenv("MUTANTS_OF");
  for (int i = 0; i < n; i++) {
    if (!is_scored(t[i])) continue;
    if (only ? strcmp(only, t[i]->name) != 0 : !has_section(list->text, t[i]->name)) continue;
    Bench b;
    bench_open(&b, s, dev, t[i]);
    bench_base(&b, PROBLEMS_OF_KIND, 1);
    bench_sweep(&b);
    print_score(&b);
    bad += b.wrong + check_list(list->text, &b) + check_rows(list->text, &b);
    arena_free(b.arena);
  }
  device_close(dev);
  session_close(s);
  diag_free(d);
  assert_int_equal(bad, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
