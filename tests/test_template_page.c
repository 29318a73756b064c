// The template of docs/templates.md, taken from the page, built in every legal way and run.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "device.h"

enum { COUNT = 1000 };

static void write_template(Arena *a, const char *dir, Diag *d) {
  Source *page;
  if (source_read(a, SOURCE_DIR "/docs/templates.md", &page, d) != ST_OK)
    fail_msg("%s", diag_text(d));
  const char *from = strstr(page->text, "```ptx\n") + 7, *end = strstr(from, "```");
  assert_int_equal(mkdir(arena_printf(a, "%s/templates", dir), 0700), 0);
  FILE *f = fopen(arena_printf(a, "%s/templates/scale_add.ptx.in", dir), "wb");
  assert_int_equal(fwrite(from, 1, (size_t)(end - from), f), (size_t)(end - from));
  fclose(f);
}

static void run(Device *dev, const Variant *v, uint32_t grid, Diag *d) {
  float x[COUNT], y[COUNT];
  for (int i = 0; i < COUNT; i++) x[i] = (float)i, y[i] = 1.0f;
  DevPtr dx, dy;
  Kernel *k = NULL;
  Status st = device_alloc(dev, sizeof x, "x", &dx, d);
  if (!st) st = device_alloc(dev, sizeof y, "y", &dy, d);
  if (!st) st = device_write(dev, dx, x, sizeof x, d);
  if (!st) st = device_write(dev, dy, y, sizeof y, d);
  if (!st) st = device_load(dev, v, &k, d);
  if (st) fail_msg("%s", diag_text(d));
  _Alignas(8) uint8_t args[64] = {0};
  int32_t count = COUNT;
  float factor = 0.5f;
  memcpy(args + v->args[0].offset, &count, 4);
  memcpy(args + v->args[1].offset, &factor, 4);
  memcpy(args + v->args[2].offset, &dx, 8);
  memcpy(args + v->args[3].offset, &dy, 8);
  const uint32_t *b = v->launch.block;
  Launch l = {k, {grid, 1, 1}, {b[0], b[1], b[2]}, {1, 1, 1}, 0, args, v->arg_bytes, false};
  st = device_launch(dev, &l, d);
  if (!st) st = device_sync(dev, d);
  if (!st) st = device_read(dev, y, dy, sizeof y, d);
  if (st) fail_msg("%s", diag_text(d));
  for (int i = 0; i < COUNT; i++) assert_true(y[i] == 0.5f * (float)i + 1.0f);
  kernel_free(k);
  device_free(dev, dx);
  device_free(dev, dy);
}

static void page_template(void **state) {
  (void)state;
  Arena *a = arena_new();
  Diag *d = diag_new();
  char dir[] = "/tmp/page_XXXXXX";
  assert_non_null(mkdtemp(dir));
  write_template(a, dir, d);
  Session *s = session_open(dir, d);
  Device *dev;
  if (device_open("sim", &dev, d) != ST_OK) fail_msg("%s", diag_text(d));
  const TemplateInfo *t;
  if (session_template(s, "scale_add", &t, d) != ST_OK) fail_msg("%s", diag_text(d));
  for (int i = 0; i < t->params[0].nvalues * t->params[1].nvalues; i++) {
    Params p = {0}, all = {0};
    const char *why;
    params_set(a, &p, "block", t->params[0].values[i / t->params[1].nvalues]);
    params_set(a, &p, "unroll", t->params[1].values[i % t->params[1].nvalues]);
    assert_int_equal(variant_legal(s, "scale_add", &p, NULL, a, &all, &why, d), ST_OK);
    assert_true((why != NULL) ==
                (atoi(params_get(&p, "block")) * atoi(params_get(&p, "unroll")) > 512));
    if (why) continue;
    Variant *v;
    if (variant_build(s, "scale_add", &p, NULL, &v, d) != ST_OK) fail_msg("%s", diag_text(d));
    run(dev, v, 1, d);
    run(dev, v, 3, d);
    variant_free(v);
  }
  device_close(dev);
  session_close(s);
  unlink(arena_printf(a, "%s/templates/scale_add.ptx.in", dir));
  rmdir(arena_printf(a, "%s/templates", dir));
  rmdir(dir);
  diag_free(d);
  arena_free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(page_template)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
