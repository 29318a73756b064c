// The registers in docs/kernels.md are what ptxas 13.0 gives the defaults on sm_90a.
#include <unistd.h>

#include "page_kit.h"

static char *output_of(Pages *p, const char *command, int *status) {
  FILE *f = popen(command, "r");
  assert_non_null(f);
  char *said = arena_strdup(p->a, ""), line[512];
  while (fgets(line, sizeof line, f)) said = arena_printf(p->a, "%s%s", said, line);
  *status = pclose(f);
  return said;
}

static int registers(Pages *p, const TemplateInfo *t) {
  char path[] = "/tmp/ptxsmith-XXXXXX";
  int status, fd = mkstemp(path);
  Variant *v;
  VariantOpts opts = {.sm = 90, .sm_suffix = 'a'};
  if (variant_build(p->session, t->name, &(Params){0}, &opts, &v, p->d))
    fail_msg("%s", diag_text(p->d));
  assert_true(fd >= 0);
  assert_int_equal(write(fd, v->ptx->text, v->ptx->len), (ssize_t)v->ptx->len);
  close(fd);
  char *said = output_of(
      p, arena_printf(p->a, "ptxas -arch=sm_90a -v -o /dev/null %s 2>&1", path), &status);
  unlink(path);
  const char *used = strstr(said, "Used ");
  if (status || !used) fail_msg("%s: %s", v->id, said);
  if (!strstr(said, " 0 bytes spill stores, 0 bytes spill loads")) fail_msg("%s: %s", v->id, said);
  variant_free(v);
  return atoi(used + 5);
}

static void what_ptxas_gives(void **state) {
  static const char heading[] = "What the defaults take of an SM";
  Pages *p = *state;
  int bad = 0;
  Rows got = table_under(p, page_text(p, "kernels.md"), heading);
  for (int i = 0; i < got.n; i++) {
    const TemplateInfo *t;
    unsigned threads, bytes;
    int said, now;
    char name[32];
    assert_int_equal(
        sscanf(got.v[i], "| `%31[a-z_0-9]` | %u | %u | %d |", name, &threads, &bytes, &said), 4);
    if (session_template(p->session, name, &t, p->d)) fail_msg("%s", diag_text(p->d));
    if ((now = registers(p, t)) == said) continue;
    print_message("docs/kernels.md: %s takes %d registers, not %d\n", name, now, said);
    bad++;
  }
  assert_int_equal(bad, 0);
}

int main(void) {
  if (system("ptxas --version 2>&1 | grep -q 'release 13.0,'")) {
    printf("skipped: the page's figures are of ptxas 13.0\n");
    return 77;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_ptxas_gives)};
  return cmocka_run_group_tests(tests, pages_open, pages_close);
}
