#include "number.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

// Of this thread alone, and for as long as it takes.  glibc has the C locale as a constant: making
// it costs nothing, and freeing it does nothing.
static locale_t enter(locale_t *c) {
  *c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  return uselocale(*c);
}

static void leave(locale_t before, locale_t c) {
  uselocale(before);
  if (c) freelocale(c);
}

double number_parse(const char *text, char **end) {
  locale_t c, before = enter(&c);
  double x = strtod(text, end);
  int range = errno;
  leave(before, c);
  errno = range;
  return x;
}

int number_text(double x, char out[NUMBER_BYTES]) {
  locale_t c, before = enter(&c);
  int n = 0;
  for (int digits = 6; digits <= 17; digits++) {
    n = snprintf(out, NUMBER_BYTES, "%.*g", digits, x);
    if (strtod(out, NULL) == x) break;
  }
  leave(before, c);
  return n;
}
