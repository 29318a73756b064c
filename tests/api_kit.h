// What the tests of the C API share: nothing but the public header, a session and the interpreter.
#ifndef PTXSMITH_API_KIT_H
#define PTXSMITH_API_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptxsmith.h"

typedef struct Fixture {
  psm_session *s;
  psm_device *dev;
} Fixture;

static inline void good(const Fixture *f, psm_status st) {
  if (st != PSM_OK) fail_msg("status %d: %s", (int)st, psm_error(f->s));
}

#define assert_error(f, st, want, text)                                                            \
  do {                                                                                             \
    assert_int_equal(st, want);                                                                    \
    if (!strstr(psm_error((f)->s), text)) fail_msg("no \"%s\" in: %s", text, psm_error((f)->s));   \
  } while (0)

static inline int setup(void **state) {
  Fixture *f = test_calloc(1, sizeof *f);
  good(f, psm_session_open(NULL, &f->s));
  good(f, psm_device_open(f->s, "sim", &f->dev));
  *state = f;
  return 0;
}

static inline int teardown(void **state) {
  Fixture *f = *state;
  psm_device_close(f->dev);
  psm_session_close(f->s);
  test_free(f);
  return 0;
}

#endif
