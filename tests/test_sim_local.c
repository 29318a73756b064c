// What compilers do to local memory that nobody has written (bit fields, copies of structs), the
// memory that the system reserves, and failed assertions.
#include "sim_kit.h"

#define FRAME ".local .align 8 .b8 a[16]; .local .align 8 .b8 b[16];\n"                            \
  "mov.u64 %rd1, a; cvta.local.u64 %rd1, %rd1; mov.u64 %rd2, b; cvta.local.u64 %rd2, %rd2;\n"

static const struct { const char *name, *body, *traps; uint32_t want;
} cases[] = {
    {"a bit field of a word that nobody wrote",
     FRAME
     "ld.u32 %r1, [%rd1+4]; and.b32 %r2, %r1, -16; or.b32 %r3, %r2, 5; st.u32 [%rd1+4], %r3;\n"
     "ld.u32 %r4, [%rd1+4]; and.b32 %r4, %r4, 15; st.global.u32 [%rd0], %r4;",
     NULL, 5},
    {"a field set through another pointer is a use",
     FRAME "ld.u32 %r1, [%rd1]; and.b32 %r2, %r1, -16; or.b32 %r3, %r2, 5; st.u32 [%rd2], %r3;",
     "byte 0 of local memory was never written: ld.u32 %r1", 0},
    {"a field that is looked at before it is stored",
     FRAME "ld.u32 %r1, [%rd1]; and.b32 %r2, %r1, -16; or.b32 %r3, %r2, 5; st.u32 [%rd1], %r3;\n"
           "st.global.u32 [%rd0], %r2;",
     "byte 0 of local memory was never written: ld.u32 %r1", 0},
    {"a copy of what is written in part",
     FRAME "mov.b32 %r5, 7; st.u32 [%rd1], %r5; ld.u64 %rd3, [%rd1]; st.u64 [%rd2], %rd3;\n"
           "ld.u32 %r6, [%rd2]; st.global.u32 [%rd0], %r6;",
     NULL, 7},
    {"what was not written is not written in the copy",
     FRAME "mov.b32 %r5, 7; st.u32 [%rd1], %r5; ld.u64 %rd3, [%rd1]; st.u64 [%rd2], %rd3;\n"
           "ld.u32 %r6, [%rd2+4]; st.global.u32 [%rd0], %r6;",
     "byte 20 of local memory was never written: ld.u32 %r6", 0},
    {"nor is it in the original",
     FRAME "mov.b32 %r5, 7; st.u32 [%rd1], %r5; ld.u64 %rd3, [%rd1]; st.u64 [%rd2], %rd3;\n"
           "ld.u32 %r6, [%rd1+4]; st.global.u32 [%rd0], %r6;",
     "byte 4 of local memory was never written: ld.u32 %r6", 0},
    {"a copy over what was written unwrites it",
     FRAME "mov.b32 %r5, 7; st.u32 [%rd2+4], %r5; ld.u32 %r7, [%rd1]; st.u32 [%rd2+4], %r7;\n"
           "ld.u32 %r6, [%rd2+4]; st.global.u32 [%rd0], %r6;",
     "byte 20 of local memory was never written: ld.u32 %r6", 0},
    {"a copy of a copy",
     FRAME
     "mov.b32 %r5, 9; st.u32 [%rd1+8], %r5; ld.u64 %rd3, [%rd1+8]; st.u64 [%rd2], %rd3;\n"
     "ld.u64 %rd4, [%rd2]; st.u64 [%rd1], %rd4; ld.u32 %r6, [%rd1]; st.global.u32 [%rd0], %r6;",
     NULL, 9},
    {"to global memory it is a use", FRAME "ld.u32 %r1, [%rd1]; st.global.u32 [%rd0], %r1;",
     "byte 0 of local memory was never written: ld.u32 %r1", 0},
    {"a value that is copied and used",
     FRAME
     "ld.u32 %r1, [%rd1]; st.u32 [%rd2], %r1; add.u32 %r1, %r1, 1; st.global.u32 [%rd0], %r1;",
     "byte 0 of local memory was never written: ld.u32 %r1", 0},
    {"the system's shared memory",
     ".shared .b8 s[64]; mov.u32 %r1, %reserved_smem_offset_1; st.shared.u32 [%r1+16], %r0;",
     "writes 4 bytes of the shared memory that the system reserves", 0},
    {"its place alone",
     "mov.u32 %r1, %reserved_smem_offset_1; mov.u32 %r2, %reserved_smem_offset_begin;\n" // one
                                                                                         // place
     "mov.u32 %r3, %reserved_smem_offset_end; mov.u32 %r4, %reserved_smem_offset_cap;\n"
     "sub.u32 %r1, %r1, %r2; sub.u32 %r3, %r3, %r2; mad.lo.u32 %r4, %r4, 1000, %r3; add.u32 %r4, "
     "%r4, "
     "%r1; st.global.u32 [%rd0], %r4;",
     NULL, 1024288}, // as on an H200: 288 bytes of 1024
};

static void test_local(void **state) {
  Kit *k = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    DevPtr out = kit_fill(k, "out", 0, 1);
    Status st = kit_try(k, kit_body(k, 1, cases[i].body), 1, 1, &out, sizeof out);
    uint32_t got;
    kit_read(k, out, &got, 1);
    bool right = cases[i].traps ? st == ST_FAILED && strstr(k->diag->first->what, cases[i].traps)
                                : st == ST_OK && got == cases[i].want;
    if (!right)
      fail_msg("%s: status %d, %u\n%s", cases[i].name, (int)st, got, diag_text(k->diag));
    diag_reset(k->diag);
    device_free(k->dev, out);
  }
}

// Frames are 32 bits: what is larger is refused, not cut.
static void test_large(void **state) {
  Kit *k = *state;
  static const struct { const char *vars, *says; } large[] = {
      {".local .b8 a[4294967296];", "4294967296 bytes of local memory in a thread"},
      {".local .b8 a[4294967295]; .local .b8 b[32];", "bytes of local memory in a thread"},
      {".shared .b8 a[1099511627776];", "1099511627776 bytes of static shared memory"},
  };
  for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
    const char *text = arena_printf(k->arena, ".version 9.0\n.target sm_90a\n.address_size 64\n"
                                              ".entry k() { %s ret; }\n", large[i].vars);
    Kernel *kernel;
    const Source *src = source_new(k->arena, "k.ptx", text, strlen(text));
    assert_int_equal(device_load_ptx(k->dev, src, NULL, NULL, &kernel, k->diag), ST_INPUT);
    assert_non_null(strstr(k->diag->first->what, large[i].says));
    diag_reset(k->diag);
  }
}

// An address in 32 bits, as ptxas takes it, leaves what stands behind it alone.
static void test_address(void **state) {
  Kit *k = *state;
  static const char text[] =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.global .u32 y;\n"
      ".global .u32 a[3] = {5, y, 7};\n.entry k(.param .u64 p0) {\n"
      ".reg .b64 %rd<2>; .reg .b32 %r<4>; ld.param.u64 %rd0, [p0];\n"
      "mov.u64 %rd1, y; cvt.u32.u64 %r3, %rd1;\n"
      "ld.global.u32 %r0, [a]; ld.global.u32 %r1, [a+4]; ld.global.u32 %r2, [a+8];\n"
      "sub.u32 %r1, %r1, %r3; st.global.u32 [%rd0], %r0; st.global.u32 [%rd0+4], %r1;\n"
      "st.global.u32 [%rd0+8], %r2; ret; }\n";
  static const uint32_t want[] = {5, 0, 7};
  DevPtr out = kit_fill(k, "out", 1, 3);
  Kernel *kernel;
  const Source *src = source_new(k->arena, "k.ptx", text, strlen(text));
  assert_int_equal(device_load_ptx(k->dev, src, NULL, NULL, &kernel, k->diag), ST_OK);
  kit_run(k, kernel, 1, 1, &out, sizeof out);
  uint32_t got[3];
  kit_read(k, out, got, 3);
  assert_memory_equal(got, want, sizeof want);
  device_free(k->dev, out);
}

// What CUDA's assert calls: the kernel loads, and ends there if it comes there.
static void test_assertion(void **state) {
  Kit *k = *state;
  const char *ptx =
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 u, "
      ".param .b64 s);\n"
      ".visible .entry k(.param .u32 n) {\n.reg .b32 %r<3>; .reg .pred %p; .reg .b64 %z;\n"
      "ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x; setp.lt.u32 %p, %r1, %r0; mov.b64 %z, 0;\n"
      "@%p bra GOOD;\n"
      "{ .param .b64 a0; .param .b64 a1; .param .b32 a2; .param .b64 a3; .param .b64 a4;\n"
      "st.param.b64 [a0], %z; st.param.b64 [a1], %z; st.param.b32 [a2], 1; st.param.b64 [a3], %z;\n"
      "st.param.b64 [a4], %z;\n"
      "call.uni __assertfail, (a0, a1, a2, a3, a4);\n}\n"
      "GOOD: ret;\n}\n";
  Source *src = source_new(k->arena, "k.ptx", ptx, strlen(ptx));
  Kernel *kernel;
  if (device_load_ptx(k->dev, src, NULL, "k", &kernel, k->diag) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
  uint32_t n = 32;
  kit_run(k, kernel, 1, 32, &n, 4);
  n = 20;
  assert_int_equal(kit_try(k, kernel, 1, 32, &n, 4), ST_FAILED);
  assert_string_equal(k->diag->first->what,
                      "an assertion failed: call.uni __assertfail, (a0, a1, a2, "
                      "a3, a4); in block (0,0,0) thread (20,0,0)");
  assert_int_equal(k->diag->first->line, 12);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {T(test_local), T(test_assertion), T(test_large),
                                     T(test_address)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
