// Calls by the .param ABI, recursion, branch tables, generic addresses, moves that pack.
#define KIT_SANITIZE false
#include "sim_kit.h"

static void test_calls(void **state) {
  static const uint32_t factorial[8] = {1, 1, 2, 6, 24, 120, 720, 5040};
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "call.ptx", "calls");
  DevPtr out = kit_words(k, "out", NULL, 64);
  uint32_t got[64];
  kit_run(k, kernel, 3, 32, &out, 8);
  kit_read(k, out, got, 64);
  for (uint32_t i = 0; i < 32; i++) {
    uint32_t even = i + 10 * i + (i & 3) * (i & 3);
    assert_int_equal(got[2 * i], i & 1 ? factorial[i % 8] : even);
    assert_int_equal(got[2 * i + 1], 0xffffffff);
  }
}

static void test_too_deep(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "call.ptx", "deep");
  DevPtr out = kit_words(k, "out", NULL, 1);
  assert_int_equal(kit_try(k, kernel, 1, 32, &out, 8), ST_FAILED);
  assert_non_null(strstr(k->diag->first->what, "calls of forever are nested more than 32 deep"));
}

static void test_tables(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "call.ptx", "tables");
  DevPtr out = kit_words(k, "out", NULL, 32);
  uint32_t got[32];
  kit_run(k, kernel, 1, 32, &out, 8);
  kit_read(k, out, got, 32);
  for (uint32_t i = 0; i < 32; i++)
    assert_int_equal(got[i], i % 3 == 0 ? 1000 : i % 3 == 1 ? 100 : i * i);
}

static void test_generic(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_load(k, "call.ptx", "generic");
  DevPtr out = kit_words(k, "out", NULL, 64), args[2] = {out, 0};
  uint32_t got[64];
  kit_run(k, kernel, 1, 32, args, 16);
  kit_read(k, out, got, 64);
  for (uint32_t i = 0; i < 32; i++) {
    assert_int_equal(got[2 * i], (i & 1 ? i : 11) + 9);
    assert_int_equal(got[2 * i + 1], 1 | 8 | (i & 1 ? 4 : 2));
  }
}

// ---- moves, loads of every width ----------------------------------------------------------------
static void run_body(Kit *k, const char *body, const uint32_t *in, uint32_t nin, uint32_t *got,
                     uint32_t n) {
  Kernel *kernel = kit_body(k, 2, body);
  DevPtr args[2] = {kit_words(k, "in", in, nin), kit_fill(k, "out", 0, n)};
  kit_run(k, kernel, 1, 1, args, 16);
  kit_read(k, args[1], got, n);
}

static void test_pack(void **state) {
  static const uint32_t in[4] = {0x11223344, 0x55667788, 0x99aabbcc, 0xddeeff00};
  uint32_t got[12];
  run_body(
      *state,
      "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0];\n"
      "mov.b32 {%h1, %h2}, %r1; mov.b32 %r5, {%h2, %h1}; st.global.u32 [%rd1], %r5;\n"
      "mov.b64 %rd2, {%r2, %r1}; st.global.u64 [%rd1+8], %rd2;\n"
      "mov.b64 {%r6, %r7}, %rd2; st.global.u32 [%rd1+16], %r7;\n"
      "mov.b64 {%h3, %h4, %h5, _}, %rd2; mov.b32 %r8, {%h5, %h3}; st.global.u32 [%rd1+20], %r8;\n"
      "mov.b64 {_, %r9}, %rd2; st.global.u32 [%rd1+24], %r9;\n"
      "mov.b64 {%r1, %r2}, %rd2; st.global.v2.u32 [%rd1+32], {%r1, %r2};\n"
      ".reg .b128 %q; mov.b128 %q, {%rd2, %rd0}; mov.b128 {%rd3, %rd4}, %q;\n"
      "st.global.u64 [%rd1+40], %rd3;",
      in, 4, got, 12);
  static const uint32_t want[12] = {0x33441122, 0,          0x55667788, 0x11223344,
                                    0x11223344, 0x77883344, 0x11223344, 0,
                                    0x55667788, 0x11223344, 0x55667788, 0x11223344};
  assert_memory_equal(got, want, sizeof want);
}

static void test_widths(void **state) {
  static const uint32_t in[4] = {0xfedcba98, 0x80007fff, 0x01020384, 0xffffffff};
  uint32_t got[16];
  run_body(
      *state,
      "ld.global.s8 %r1, [%rd0]; ld.global.u8 %r2, [%rd0]; st.global.v2.u32 [%rd1], {%r1, %r2};\n"
      "ld.global.s16 %r3, [%rd0+6]; ld.global.s8 %rd2, [%rd0+3]; st.global.u64 [%rd1+8], %rd2;\n"
      "ld.global.s32 %rd3, [%rd0+4]; st.global.u64 [%rd1+16], %rd3;\n"
      "ld.global.u16 %rd4, [%rd0+2]; st.global.u64 [%rd1+24], %rd4;\n"
      "ld.global.s8 %h1, [%rd0]; cvt.u32.u16 %r4, %h1; st.global.v2.u32 [%rd1+32], {%r3, %r4};\n"
      "st.global.u8 [%rd1+41], %r1; st.global.u16 [%rd1+42], %h1; st.global.u8 [%rd1+44], %rd3;\n"
      "cvt.s8.s32 %r5, 200; cvt.u8.u32 %r6, 300; st.global.v2.u32 [%rd1+48], {%r5, %r6};\n"
      "cvt.s32.s8 %rd5, %r2; st.global.u64 [%rd1+56], %rd5;",
      in, 4, got, 16);
  static const uint32_t want[16] = {0xffffff98, 0x98,       0xfffffffe, 0xffffffff,
                                    0x80007fff, 0xffffffff, 0xfedc,     0,
                                    0xffff8000, 0xff98,     0xff989800, 0xff,
                                    0xffffffc8, 44,         0xffffff98, 0xffffffff};
  assert_memory_equal(got, want, sizeof want);
}

// 128-bit additions and a 64 x 64 -> 128 bit product by carries; guards on every kind of write.
static void test_carry(void **state) {
  static const uint32_t in[4] = {0xffffffff, 0xffffffff, 1, 0};
  uint32_t got[8];
  run_body(*state,
           "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0];\n"
           "add.cc.u32 %r5, %r1, %r3; addc.cc.u32 %r6, %r2, %r4; addc.u32 %r7, 0, 0;\n"
           "sub.cc.u32 %r8, 0, 1; subc.u32 %r9, 5, 0;\n"
           "mad.lo.cc.u32 %r10, %r1, %r1, %r3; madc.hi.u32 %r11, %r1, %r1, 0;\n"
           "st.global.v4.u32 [%rd1], {%r5, %r6, %r7, %r8}; st.global.v4.u32 [%rd1+16], {%r9, %r10, "
           "%r11, %r3};",
           in, 4, got, 8);
  static const uint32_t want[8] = {0, 0, 1, 0xffffffff, 4, 2, 0xfffffffe, 1};
  assert_memory_equal(got, want, sizeof want);
}

// A guard decides over its own instruction even when that overwrites the guard; p|q from one setp.
static void test_guards(void **state) {
  static const uint32_t in[1] = {5};
  uint32_t got[4];
  run_body(
      *state,
      "ld.global.u32 %r1, [%rd0]; setp.eq.u32 %p1, %r1, 5;\n"
      "@%p1 setp.gt.and.u32 %p1|%p2, %r1, 9, %p1;\n" // p1 = false, p2 = true
      "selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 1, 0, %p2;\n"
      "mov.u32 %r4, 3; @!%p1 add.u32 %r4, %r4, 4; @%p1 add.u32 %r4, %r4, 8;\n"
      "mov.pred %p3, %p2; not.pred %p4, %p3; xor.pred %p5, %p3, %p4; selp.u32 %r5, 6, 7, %p5;\n"
      "st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};",
      in, 1, got, 4);
  static const uint32_t want[4] = {0, 1, 7, 6};
  assert_memory_equal(got, want, sizeof want);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {T(test_calls), T(test_too_deep), T(test_tables),
                                     T(test_generic), T(test_pack), T(test_widths),
                                     T(test_carry), T(test_guards)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
