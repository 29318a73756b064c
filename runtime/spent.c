#include "spent.h"

#include <string.h>
#include <time.h>

const char *const spent_names[SPENT_PLACES_N] = {
#define X(id, name) name,
    SPENT_PLACES(X)
#undef X
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

SpentOn spent_on(Spent *x, SpentOn place) {
  if (!x) return SPENT_OTHER;
  SpentOn was = x->now;
  double t = now();
  if (x->since > 0) x->s[was] += t - x->since;
  x->since = t;
  x->now = place;
  return was;
}

double spent_all(const Spent *x) {
  double sum = 0;
  for (int i = 0; i < SPENT_PLACES_N; i++) sum += x->s[i];
  return sum;
}

char *spent_text(Arena *a, const Spent *sum, int n) {
  char *text = arena_printf(a, "%.2f s a point", spent_all(sum) / n);
  const char *sep = ":";
  for (int i = 0; i < SPENT_PLACES_N; i++) {
    double s = sum->s[i] / n;
    if (s < 0.005) continue;
    int len = (int)strlen(spent_names[i]) - 2; // without its _s
    text = arena_printf(a, "%s%s %.*s %.2f", text, sep, len, spent_names[i], s);
    sep = ",";
  }
  return text;
}
