// Every trap of the interpreter, with its exact words, and a device that goes on afterwards.
#define KIT_SANITIZE false
#include "sim_kit.h"

typedef struct Case {
  const char *what;    // must stand in the first line of the message
  const char *body;
  uint32_t block;
} Case;

// p0: "in", 32 words, the first 16 written; p1: "out", 32 words.
static void expect_trap(Kit *k, const Case *c) {
  Kernel *kernel = kit_body(k, 2, c->body);
  DevPtr in = kit_words(k, "in", NULL, 32), out = kit_words(k, "out", NULL, 32);
  uint32_t ones[16];
  memset(ones, 0, sizeof ones);
  assert_int_equal(device_write(k->dev, in, ones, sizeof ones, k->diag), ST_OK);
  DevPtr args[2] = {in, out};
  Status st = kit_try(k, kernel, 1, c->block, args, sizeof args);
  if (st != ST_FAILED || !strstr(k->diag->first->what, c->what))
    fail_msg("status %d\nwanted: %s\ngot:    %s", st, c->what, diag_text(k->diag));
  assert_true(device_alive(k->dev));
  diag_reset(k->diag);
  kernel_free(kernel);
  device_free(k->dev, in);
  device_free(k->dev, out);
}

static void test_memory(void **state) {
  static const Case cases[] = {
      {"out of bounds: reads 4 bytes at offset 128 of \"in\" (128 bytes): ld.global.u32 %r1, "
       "[%rd0+128]; in block (0,0,0) thread (0,0,0)",
       "ld.global.u32 %r1, [%rd0+128];", 32},
      // In front of a buffer is no other buffer: every one has an address range of its own.
      {"bad address: reads 4 bytes at 0x", "ld.global.u32 %r1, [%rd0-4];", 32},
      {"out of bounds: writes 4 bytes at offset 128 of \"out\" (128 bytes): st.global.u32 [%rd2], "
       "%r0; in block (0,0,0) thread (32,0,0)",
       "mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd2, %rd1; st.global.u32 [%rd2], %r0;", 64},
      {"out of bounds: reads 16 bytes at offset 120 of \"in\"",
       "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0+120];", 32},
      {"out of bounds: updates 4 bytes at offset 4096 of \"out\"",
       "atom.global.add.u32 %r1, [%rd1+4096], 1;", 1},
      {"bad address: reads 4 bytes at 0x10, where no buffer is (a null pointer)",
       "mov.u64 %rd2, 16; ld.global.u32 %r1, [%rd2];", 32},
      {"misaligned: writes 4 bytes at offset 2 of out", "st.global.u32 [%rd1+2], %r0;", 32},
      {"misaligned: reads 8 bytes at offset 4 of in", "ld.global.v2.u32 {%r1, %r2}, [%rd0+4];", 1},
      {"uninitialised read: byte 64 of \"in\" was never written: ld.global.u32 %r1, [%rd2]; in "
       "block (0,0,0) thread (16,0,0)",
       "mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd2, %rd0; ld.global.u32 %r1, [%rd2];", 32},
      {"out of bounds: reads 4 bytes at offset 64 of shared memory (64 bytes)",
       ".shared .align 4 .b8 s[64]; mov.u32 %r1, s; ld.shared.u32 %r2, [%r1+64];", 32},
      {"misaligned: writes 4 bytes at offset 1 of shared memory",
       ".shared .align 4 .b8 s[64]; st.shared.u32 [s+1], %r0;", 32},
      {"uninitialised read: byte 4 of shared memory was never written",
       ".shared .align 4 .b8 s[64]; st.shared.u32 [s], %r0; bar.sync 0; ld.shared.v2.u32 {%r1, "
       "%r2}, [s];", 32},
      {"out of bounds: writes 4 bytes at offset 16 of local memory (16 bytes)",
       ".local .align 4 .b8 l[16]; st.local.u32 [l+16], %r0;", 32},
      {"uninitialised read: byte 8 of local memory was never written: ld.local.u32 %r1, [l+8]; in "
       "block (0,0,0) thread (5,0,0)",
       ".local .align 4 .b8 l[16]; setp.ne.u32 %p1, %r0, 5; @%p1 st.local.u32 [l+8], %r0; "
       "ld.local.u32 %r1, [l+8];", 32},
      {"uninitialised read: byte 0 of \"out\" was never written",
       "red.global.add.u32 [%rd1], 1;", 32},
      {"out of bounds: reads 8 bytes at offset 16 of the kernel's parameters (16 bytes)",
       "ld.param.u64 %rd2, [p1+8];", 32},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_trap(*state, &cases[i]);
}

static void test_registers(void **state) {
  static const Case cases[] = {
      {"register %r5 is read before it is written: add.u32 %r1, %r5, 1; in block (0,0,0) thread "
       "(0,0,0)",
       "add.u32 %r1, %r5, 1;", 32},
      // Written by lanes 0 to 6 only.
      {"register %r5 is read before it is written: add.u32 %r1, %r5, 1; in block (0,0,0) thread "
       "(7,0,0)",
       "setp.lt.u32 %p1, %r0, 7; @%p1 mov.u32 %r5, 1; add.u32 %r1, %r5, 1;", 32},
      {"register %r5 is read before it is written: add.u32 %r1, %r5, 1; in block (0,0,0) thread "
       "(9,0,0)",
       "setp.eq.u32 %p1, %r0, 9; @%p1 bra L; mov.u32 %r5, 1; L: add.u32 %r1, %r5, 1;", 32},
      {"register %p2 is read before it is written", "@%p2 mov.u32 %r1, 1;", 32},
      {"register %rd5 is read before it is written", "st.global.u32 [%rd5], 1;", 32},
      {"register %f3 is read before it is written",
       "mov.f32 %f1, 0f00000000; st.global.v2.f32 [%rd1], {%f1, %f3};", 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_trap(*state, &cases[i]);
}

static void test_control(void **state) {
  static const Case cases[] = {
      {"trap: trap; in block (0,0,0) thread (3,0,0)", "setp.ne.u32 %p1, %r0, 3; @%p1 exit; trap;",
       32},
      {"bra.uni diverges: lanes 00000001 of ffffffff jump",
       "setp.eq.u32 %p1, %r0, 0; @%p1 bra.uni L; L: ret;", 32},
      {"brx.idx with index 2: the table has 2 targets",
       "T: .branchtargets A, B; min.u32 %r1, %r0, 2; brx.idx %r1, T; A: ret; B: ret;", 32},
      {"barrier 16: there are 16, 0 to 15",
       "add.u32 %r1, %r0, 16; sub.u32 %r1, %r1, %r0; bar.sync %r1;", 32},
      {"barrier 1: a count of 48 is not a multiple of 32",
       "mov.u32 %r1, 48; mov.u32 %r2, 1; bar.sync %r2, %r1;", 32},
      {"barrier 1: a count of 64, but line",
       "setp.lt.u32 %p1, %r0, 32; @%p1 bra A; bar.sync 1, 64; ret; A: bar.sync 1, 96;", 96},
      {"barrier 2: arrived at twice before it was complete", "bar.arrive 2, 64; bar.arrive 2, 64;",
       32},
      {"the mask 0000ffff does not name the lane that executes: shfl.sync.idx.b32 %r1, %r0, 0, 31, "
       "65535; in block (0,0,0) thread (16,0,0)",
       "shfl.sync.idx.b32 %r1, %r0, 0, 31, 65535;", 32},
      {"lanes 00000001 of the mask ffffffff have ended",
       "setp.eq.u32 %p1, %r0, 0; @%p1 exit; vote.sync.any.pred %p2, %p1, -1;", 32},
      {"reads lane 16, which is not in the mask 0000ffff",
       "setp.gt.u32 %p1, %r0, 15; @%p1 exit; shfl.sync.idx.b32 %r1, %r0, 16, 31, 65535;", 32},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_trap(*state, &cases[i]);
}

// Division by zero is not a trap: integer results are all ones (as the hardware gives).
static void test_division(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_body(k, 1, "mov.u32 %r1, 0; div.u32 %r2, 7, %r1; mov.f32 %f0, 0f00000000; "
                                  "div.rn.f32 %f1, 0f3F800000, %f0; st.global.f32 [%rd0], %f1;");
  DevPtr out = kit_words(k, "out", NULL, 1);
  uint32_t got;
  kit_run(k, kernel, 1, 32, &out, 8);
  kit_read(k, out, &got, 1);
  assert_int_equal(got, 0x7f800000);
}

// The place of a trap: file, line, column and the line itself; the first block that traps is named
// whatever the number of host threads.
static void test_place(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_body(k, 1, "mov.u32 %r1, %ctaid.x;\nsetp.lt.u32 %p1, %r1, 40;\n@%p1 exit;\n"
                                  "  st.global.u32 [%rd0+4], %r1;");
  DevPtr out = kit_words(k, "out", NULL, 1);
  for (int threads = 1; threads <= 4; threads++) {
    device_sim_opts(k->dev, &(SimOpts){.threads = threads});
    assert_int_equal(kit_try(k, kernel, 100, 32, &out, 8), ST_FAILED);
    assert_string_equal(k->diag->first->what,
                        "out of bounds: writes 4 bytes at offset 4 of \"out\" (4 bytes): "
                        "st.global.u32 [%rd0+4], %r1; in block (40,0,0) thread (0,0,0)");
    assert_string_equal(k->diag->first->file, "k.ptx");
    assert_int_equal(k->diag->first->line, 11);
    assert_int_equal(k->diag->first->col, 3);
    assert_int_equal(k->diag->errors, 1);
    diag_reset(k->diag);
  }
}

// A line map leads the message to the template's line.
static void test_template_line(void **state) {
  Kit *k = *state;
  const char *ptx = ".version 7.0\n.target sm_80\n.address_size 64\n.entry k() {\n trap;\n}\n";
  Source *src = source_new(k->arena, "k.ptx", ptx, strlen(ptx));
  Source *tmpl = source_new(k->arena, "k.ptx.in", "| template {}\ntrap;\n", 20);
  Origin at = {tmpl, 2, ORIGIN_FILE, NULL};
  const Origin *lines[6] = {0};
  lines[4] = &at;
  LineMap map = {lines, 6};
  Kernel *kernel;
  assert_int_equal(device_load_ptx(k->dev, src, &map, NULL, &kernel, k->diag), ST_OK);
  assert_int_equal(kit_try(k, kernel, 1, 1, NULL, 0), ST_FAILED);
  assert_string_equal(k->diag->first->origin_file, "k.ptx.in");
  assert_int_equal(k->diag->first->origin_line, 2);
}

// What is outside the table, and what it only knows by name, is said at its line when the kernel is
// loaded: nothing of it is ever computed.
static void test_unsupported(void **state) {
  Kit *k = *state;
  static const struct { const char *version, *target, *text, *says; } cases[] = {
      {"8.6", "sm_100", "add.rn.f32x2 %rd2, %rd1, %rd1;", "does not execute add.rn.f32x2"},
      {"8.6", "sm_100", "mul.rn.ftz.f32x2 %rd2, %rd1, %rd1;", "does not execute mul.rn.ftz.f32x2"},
      {"8.6", "sm_100", "fma.rn.f32x2 %rd2, %rd1, %rd1, %rd1;", "does not execute fma.rn.f32x2"},
      {"8.8", "sm_100", "min.f32 %f2, %f1, %f1, %f1;", "does not execute min.f32"},
      {"8.8", "sm_100", "max.NaN.abs.f32 %f2, %f1, %f1, %f1;", "does not execute max.NaN.abs.f32"},
      {"8.6", "sm_100a", "redux.sync.min.f32 %f2, %f1, -1;", "does not execute redux.sync.min.f32"},
      {"8.0", "sm_90", "cvta.shared.u32 %r2, %r1;", "does not execute 32-bit generic addresses"},
      {"8.1", "sm_90", "multimem.ld_reduce.relaxed.sys.global.add.u32 %r2, [%rd1];",
       "unknown instruction \"multimem\""},
      {"8.1", "sm_90", "multimem.red.relaxed.sys.global.add.u32 [%rd1], %r1;",
       "unknown instruction \"multimem\""},
      {"8.3", "sm_90a", "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd1;",
       "unknown instruction \"tensormap\""},
      {"8.3", "sm_90", "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu"
       ".sync.aligned [%rd1], [%r1], 128;", "unknown instruction \"tensormap\""},
      {"8.6", "sm_100a", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;",
       "unknown instruction \"tcgen05\""},
      {"8.0", "sm_90", "tex.1d.v4.f32.s32 {%f1, %f1, %f1, %f1}, [%rd1, {%r1}];",
       "unknown instruction \"tex\""},
      {"8.0", "sm_90", "mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r1}, "
       "{%r1, %r1}, {%r1, %r1}, {%r1, %r1}, %r1, 0;", "\"mma\" does not take \".sp\""},
      {"8.0", "sm_90", "vadd.u32.u32.u32 %r2, %r1, %r1;", "unknown instruction \"vadd\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *ptx =
        arena_printf(k->arena,
                     ".version %s\n.target %s\n.address_size 64\n.entry k() {\n"
                     ".reg .b32 %%r<4>; .reg .b64 %%rd<4>; .reg .f32 %%f<4>;\n"
                     "mov.b32 %%r1, 0; mov.b64 %%rd1, 0; mov.b32 %%f1, 0f00000000;\n  %s\n}\n",
                     cases[i].version, cases[i].target, cases[i].text);
    Source *src = source_new(k->arena, "k.ptx", ptx, strlen(ptx));
    Kernel *kernel;
    assert_int_equal(device_load_ptx(k->dev, src, NULL, NULL, &kernel, k->diag), ST_INPUT);
    if (!strstr(k->diag->first->what, cases[i].says) || k->diag->first->line != 7)
      fail_msg("%s: %s", cases[i].text, diag_text(k->diag));
    diag_reset(k->diag);
  }
}

// What is discarded must be written again before it is read; the bytes are then no longer the old.
static void test_discard(void **state) {
  Kit *k = *state;
  static const char address[] = "mul.wide.u32 %rd1, %r0, 128; add.u64 %rd1, %rd0, %rd1;\n";
#define BODY(text) arena_printf(k->arena, "%s%s", address, text)
  DevPtr out = kit_fill(k, "out", 7, 128);
  uint32_t got[128];
  kit_run(k, kit_body(k, 1, BODY("discard.global.L2 [%rd1], 128; st.global.u32 [%rd1], %r0;")), 1,
          3, &out, sizeof out);
  kit_read(k, out, got, 128);
  for (uint32_t i = 0; i < 128; i++)
    assert_int_equal(got[i], i >= 96 ? 7 : i % 32 ? 0xffffffff : i / 32);
  static const struct { const char *text, *says; } traps[] = {
      {"st.global.u32 [%rd1], %r0; discard.global.L2 [%rd1], 128; ld.global.u32 %r1, [%rd1];",
       "uninitialised read: byte 0 of \"fresh\" was never written"},
      {"discard.global.L2 [%rd1+64], 128;", "misaligned: writes 128 bytes at offset 64"},
      {"discard.L2 [%rd1+512], 128;", "out of bounds: writes 128 bytes at offset 512"},
      {".shared .align 128 .b8 s[128]; mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; "
       "discard.L2 [%rd2], 128;", "discards what is not in global memory"},
  };
  for (size_t i = 0; i < sizeof traps / sizeof *traps; i++) {
    DevPtr fresh;
    assert_int_equal(device_alloc(k->dev, 512, "fresh", &fresh, k->diag), ST_OK);
    assert_int_equal(kit_try(k, kit_body(k, 1, BODY(traps[i].text)), 1, 1, &fresh, sizeof fresh),
                     ST_FAILED);
    if (!strstr(k->diag->first->what, traps[i].says))
      fail_msg("%s: %s", traps[i].text, diag_text(k->diag));
    diag_reset(k->diag);
    device_free(k->dev, fresh);
  }
}

static void test_launch_shape(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_body(k, 1, "ret;");
  DevPtr out = kit_words(k, "out", NULL, 1);
  assert_int_equal(kit_try(k, kernel, 1, 1025, &out, 8), ST_INPUT);
  assert_int_equal(kit_try(k, kernel, 0, 32, &out, 8), ST_INPUT);
  assert_int_equal(kit_try(k, kernel, 1, 32, &out, 4), ST_INPUT);
  assert_string_equal(k->diag->last->what, "launch: 4 bytes of arguments, k takes 8");
  Launch l = {.kernel = kernel, .grid = {1, 1, 1}, .block = {32, 1, 1}, .args = &out,
              .arg_bytes = 8, .smem = 232449};
  assert_int_equal(device_launch(k->dev, &l, k->diag), ST_INPUT);
}

static void test_step_limit(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_body(k, 0, "L: add.u32 %r0, %r0, 1;\nbra L;");
  device_sim_opts(k->dev, &(SimOpts){.threads = 1, .step_limit = 100000});
  assert_int_equal(kit_try(k, kernel, 1, 32, NULL, 0), ST_FAILED);
  assert_non_null(strstr(k->diag->first->what, "the limit of 100000 warp instructions is reached"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {T(test_memory),      T(test_registers), T(test_control),
                                     T(test_division),    T(test_place),     T(test_template_line),
                                     T(test_unsupported), T(test_discard),   T(test_launch_shape),
                                     T(test_step_limit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
