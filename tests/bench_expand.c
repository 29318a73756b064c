// bench_expand [TEMPLATE [NAME=VALUE ...]]: time to expand, parse and check a variant of each
// template with its default parameters, beside a plain tokenizer loop over the same text.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "variant.h"

enum { RUNS = 101 };

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *v) {
  qsort(v, RUNS, sizeof *v, compare);
  return v[RUNS / 2];
}

// The least that reading the text takes: words, numbers and single characters, hashed.
static unsigned tokenize(const char *s, unsigned *tokens) {
  unsigned h = 0;
  while (*s) {
    if (isspace((unsigned char)*s)) {
      s++;
    } else if (s[0] == '/' && s[1] == '/') {
      s += strcspn(s, "\n");
    } else if (isalnum((unsigned char)*s) || strchr("%_$.", *s)) {
      for (; isalnum((unsigned char)*s) || (*s && strchr("%_$.", *s)); s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
      ++*tokens;
    } else {
      h = (h ^ (unsigned char)*s++) * 16777619u;
      ++*tokens;
    }
  }
  return h;
}

static double time_build(Session *s, const char *name, const Params *given, bool no_check,
                         Diag *d) {
  double us[RUNS];
  VariantOpts opts = {.no_check = no_check};
  for (int i = 0; i < RUNS; i++) {
    Variant *v;
    double t = now_us();
    if (variant_build(s, name, given, &opts, &v, d) != ST_OK) return -1;
    variant_free(v);
    us[i] = now_us() - t;
  }
  return median(us);
}

static int bench(Session *s, const char *name, const Params *given, Diag *d) {
  Variant *v;
  VariantOpts expand_only = {.no_check = true};
  if (variant_build(s, name, given, &expand_only, &v, d) != ST_OK) return 2;
  double us[RUNS];
  unsigned tokens = 0, sum = 0;
  for (int i = 0; i < RUNS; i++) {
    double t = now_us();
    tokens = 0;
    sum += tokenize(v->ptx->text, &tokens);
    us[i] = now_us() - t;
  }
  printf("%-16s %7u %8u %10.0f %10.0f %10.0f%s\n", name, v->ptx->nlines, tokens, median(us),
         time_build(s, name, given, true, d), time_build(s, name, given, false, d), sum ? "" : " ");
  variant_free(v);
  return 0;
}

int main(int argc, char **argv) {
  Diag *d = diag_new();
  Session *s = session_open(NULL, d);
  printf("median of %d, us\n%-16s %7s %8s %10s %10s %10s\n", RUNS, "template", "lines", "tokens",
         "tokenize", "expand", "and check");
  const TemplateInfo **t;
  int n = 0, worst = 0;
  Params given = {0};
  for (int i = 2; i < argc; i++)
    if (params_parse(d->arena, &given, argv[i], d) != ST_OK) worst = 2;
  if (argc > 1 && !worst) worst = bench(s, argv[1], &given, d);
  else if (argc == 1 && session_templates(s, &t, &n, d) != ST_OK) worst = 2;
  for (int i = 0; i < n; i++)
    if (bench(s, t[i]->name, NULL, d)) worst = 2;
  fputs(diag_text(d), stderr);
  session_close(s);
  diag_free(d);
  return worst;
}
