#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "ptx_helpers.h"

static PtxStats stats_of(const char *text) {
  Arena *a = arena_new();
  Diag *d = diag_new();
  PtxStats s;
  PtxModule *m = parse_text(a, d, text);
  assert_string_equal(diag_text(d), "");
  ptx_stats(m, ptx_entry(m, NULL), &s);
  diag_free(d);
  arena_free(a);
  return s;
}

// %a and %d (two registers) live together; %c replaces both.
static void pressure(void **state) {
  (void)state;
  PtxStats s = stats_of(KERNEL(".reg .b32 %a, %c; .reg .b64 %d; .reg .pred %p<2>;\n"
                               "mov.u32 %a, 1;\nmov.u64 %d, 2;\nsetp.eq.u32 %p0, %a, 1;\n"
                               "cvt.u32.u64 %c, %d;\nadd.u32 %c, %c, %a;\n"
                               "@%p0 st.global.u32 [0], %c;"));
  assert_int_equal(s.live_max, 3);
  assert_int_equal(s.live_max_line,
                   9);
  assert_int_equal(s.preds_live_max, 1);
  assert_int_equal(s.regs_declared, 3);
  assert_int_equal(s.preds_declared, 2);
  assert_int_equal(s.insts, 7);
}

// A guarded write does not end the life of what the register held before.
static void guarded_write_keeps_alive(void **state) {
  (void)state;
  PtxStats s =
      stats_of(KERNEL(".reg .b32 %a, %b; .reg .pred %p;\nmov.u32 %a, 1;\nmov.u32 %b, 1;\n"
                      "setp.eq.u32 %p, %b, 1;\n@%p mov.u32 %a, 2;\nst.global.u32 [0], %a;"));
  assert_int_equal(s.live_max, 2);
}

static void hot_loop(void **state) {
  (void)state;
  PtxStats s = stats_of(KERNEL(
      ".reg .b32 %i; .reg .f32 %f<9>; .reg .b64 %d; .reg .pred %p;\n"
      "mov.u32 %i, 0;\nmov.u64 %d, 0;\nmov.f32 %f8, 0f00000000;\n"
      "L:\nld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d];\nfma.rn.f32 %f8, %f0, %f1, %f8;\n"
      "fma.rn.f32 %f8, %f2, %f3, %f8;\nadd.f32 %f8, %f8, %f8;\nst.shared.f32 [0], %f8;\n"
      "add.u32 %i, %i, 1;\nsetp.lt.u32 %p, %i, 9;\n@%p bra L;"));
  assert_int_equal(s.loop_line, 11);
  assert_int_equal(s.loop_insts, 8);
  assert_true(s.loop_flops == 5);
  assert_true(s.loop_global_bytes == 16);
  assert_true(s.loop_shared_bytes == 4);
  assert_true(s.loop_intensity == 5.0 / 16);
}

static void tensor_work(void **state) {
  (void)state;
  PtxStats s = stats_of(KERNEL(
      ".reg .b32 %a<4>, %b<2>; .reg .f32 %c<4>; .reg .pred %p;\nmov.pred %p, 1;\n"
      "L: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%c0, %c1, %c2, %c3}, "
      "{%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3};\n@%p bra L;\nbar.sync 0;"));
  assert_int_equal(s.by_pipe[PTX_PIPE_TENSOR], 1);
  assert_int_equal(s.barriers, 1);
  assert_true(s.loop_flops == 2.0 * 16 * 8 * 16 / 32);
}

// The outer loop multiplies matrices behind a wait; the loop that waits, the deepest, is not the
// hot one.  wgmma moves no bytes of a thread.
static void hot_loop_holds_a_wait(void **state) {
  (void)state;
  PtxStats s = stats_of(KERNEL(
      ".reg .b32 %i, %a<4>; .reg .f32 %c<4>; .reg .b64 %d; .reg .pred %p;\n.shared .b64 full;\n"
      "mov.u32 %i, 0;\nmov.u64 %d, 0;\n"
      "L_tile: add.u32 %i, %i, 1;\n"
      "L_wait: mbarrier.try_wait.parity.shared.b64 %p, [full], 0;\n@!%p bra L_wait;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%c0, %c1, %c2, %c3}, %d, %d, "
      "1, 1, 1, 0, 0;\n"
      "setp.lt.u32 %p, %i, 9;\n@%p bra L_tile;"));
  assert_true(s.loop_flops == 2.0 * 64 * 8 * 16 / 128);
  assert_int_equal(s.loop_insts, 4);
  assert_true(s.loop_global_bytes == 0);
}

// A loop in another one turns more often: 3 operations inside are more than 5 outside, 2 are not.
static void hot_loop_by_depth(void **state) {
  (void)state;
  for (int inner = 2; inner <= 3; inner++) {
    char text[1024];
    snprintf(text, sizeof text, KERNEL(
        ".reg .b32 %%i, %%k; .reg .f32 %%f; .reg .pred %%p;\n"
        "mov.u32 %%i, 0;\nmov.u32 %%k, 0;\nmov.f32 %%f, 0f00000000;\n"
        "L_outer:\nfma.rn.f32 %%f, %%f, %%f, %%f;\nfma.rn.f32 %%f, %%f, %%f, %%f;\n"
        "add.f32 %%f, %%f, %%f;\n"
        "L_inner:\nmul.f32 %%f, %%f, %%f;\nmul.f32 %%f, %%f, %%f;\n%s"
        "add.u32 %%k, %%k, 1;\nsetp.lt.u32 %%p, %%k, 9;\n@%%p bra L_inner;\n"
        "add.u32 %%i, %%i, 1;\nsetp.lt.u32 %%p, %%i, 9;\n@%%p bra L_outer;"),
        inner == 3 ? "mul.f32 %f, %f, %f;\n" : "");
    PtxStats s = stats_of(text);
    assert_true(s.loop_flops == (inner == 3 ? 3 : 5));
    assert_int_equal(s.loop_line, inner == 3 ? 15 : 11);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pressure),
                                     cmocka_unit_test(guarded_write_keeps_alive),
                                     cmocka_unit_test(hot_loop), cmocka_unit_test(tensor_work),
                                     cmocka_unit_test(hot_loop_holds_a_wait),
                                     cmocka_unit_test(hot_loop_by_depth)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
