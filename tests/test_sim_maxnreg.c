// setmaxnreg: the pool of registers, and what its warps must do together.
#include "sim_kit.h"

static Kernel *load(Kit *k, const char *directives, const char *body) {
  const char *text = arena_printf(k->arena,
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() %s {\n"
      ".reg .pred %%p<4>; .reg .b32 %%r<8>;\nmov.u32 %%r0, %%tid.x; shr.u32 %%r1, %%r0, 5;\n"
      "shr.u32 %%r2, %%r0, 7; setp.eq.u32 %%p0, %%r2, 0;\n%s\n}\n", directives, body);
  Source *src = source_new(k->arena, "k.ptx", text, strlen(text));
  Kernel *kernel = NULL;
  if (device_load_ptx(k->dev, src, NULL, NULL, &kernel, k->diag) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
  return kernel;
}

typedef struct Case {
  const char *what; // stands in the message; NULL: the kernel is right
  const char *directives, *body;
  uint32_t block;
} Case;

static void expect(Kit *k, const Case *c) {
  Kernel *kernel = load(k, c->directives, c->body);
  Status st = kit_try(k, kernel, 1, c->block, NULL, 0);
  if (c->what ? st != ST_FAILED || !strstr(diag_text(k->diag), c->what) : st != ST_OK)
    fail_msg("status %d\nwanted: %s\ngot:    %s", st, c->what ? c->what : "nothing",
             diag_text(k->diag));
  diag_reset(k->diag);
  kernel_free(kernel);
}

#define ONE_PER_SM ".maxntid 384, 1, 1 .minnctapersm 1"
#define SPLIT(dec, inc)                                                                            \
  "@%p0 bra P; setmaxnreg.inc.sync.aligned.u32 " #inc "; ret;"                                     \
  "P: setmaxnreg.dec.sync.aligned.u32 " #dec ";"

static void test_budget(void **state) {
  static const Case cases[] = {
      {NULL, ONE_PER_SM, SPLIT(24, 240), 384},
      {NULL, ONE_PER_SM, SPLIT(40, 232), 384},
      {"deadlock: no thread of the block can go on: setmaxnreg.inc.sync.aligned.u32 240;",
       ONE_PER_SM, SPLIT(32, 240), 384},
      // The last warp's 72 more do not fit: 64512 = 168 * 384.
      {"warp 11, lanes ffffffff: for 240 registers a thread: of the block's 64512, its warpgroups "
       "hold "
       "4096 + 30720 + 28416",
       ONE_PER_SM, SPLIT(32, 240), 384},
      {NULL, ".maxntid 256, 1, 1 .minnctapersm 1", SPLIT(56, 256), 256},
      {NULL, ".maxntid 512, 1, 1 .minnctapersm 1", SPLIT(32, 160), 512},
      {"of the block's 65536, its", ".maxntid 512, 1, 1 .minnctapersm 1", SPLIT(32, 168), 512},
      {NULL, ".maxntid 256, 1, 1 .minnctapersm 2", SPLIT(40, 216), 256},
      {"of the block's 32768, its", ".maxntid 256, 1, 1 .minnctapersm 2", SPLIT(40, 224), 256},
      {NULL, ".maxntid 256, 1, 1 .maxnreg 96", SPLIT(40, 152), 256},
      {"of the block's 24576, its", ".maxntid 256, 1, 1 .maxnreg 96", SPLIT(40, 160), 256},
      {NULL, ".maxntid 256, 1, 1", SPLIT(40, 256), 256}, // no count at entry: ignored
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect(*state, &cases[i]);
}

static void test_rules(void **state) {
  static const Case cases[] = {
      {"setmaxnreg.dec to 176 registers: the warp holds 168: setmaxnreg.dec.sync.aligned.u32 176; "
       "in "
       "block (0,0,0) thread (0,0,0)",
       ONE_PER_SM, "setmaxnreg.dec.sync.aligned.u32 176;", 384},
      {"setmaxnreg.inc to 160 registers: the warp holds 168", ONE_PER_SM,
       "setmaxnreg.inc.sync.aligned.u32 160;", 384},
      {"warps 8 of the warpgroup ended without executing this: setmaxnreg.dec", ONE_PER_SM,
       "setp.eq.u32 %p1, %r1, 3; @%p1 exit; setmaxnreg.dec.sync.aligned.u32 40;", 384},
      {"warps c of the warpgroup have not executed the setmaxnreg of line 8 yet", ONE_PER_SM,
       "setp.gt.u32 %p1, %r1, 1; @%p1 bra L; setmaxnreg.dec.sync.aligned.u32 40;"
       "setp.eq.u32 %p1, %r1, 0; @%p1 bar.sync 1, 64; @%p1 bra L; bar.sync 1, 64;"
       "setmaxnreg.dec.sync.aligned.u32 32; L: ret;",
       384},
      {"other warps of the warpgroup execute the setmaxnreg of line 8: all four must execute the "
       "same",
       ONE_PER_SM,
       "setp.eq.u32 %p1, %r1, 2; @%p1 bra L; setmaxnreg.dec.sync.aligned.u32 40; ret;\nL: "
       "setmaxnreg.dec.sync.aligned.u32 40;",
       384},
      {"setmaxnreg needs a warpgroup of four warps: this one has 2", ".maxntid 64, 1, 1",
       "setmaxnreg.dec.sync.aligned.u32 40;", 64},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect(*state, &cases[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_budget), cmocka_unit_test(test_rules)};
  return cmocka_run_group_tests(tests, kit_setup, kit_teardown);
}
