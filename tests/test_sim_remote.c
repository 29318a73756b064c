// st.async and red.async into another block, and atomics on vectors and 16 bytes.  Also on a GPU
// (PTXSMITH_DEVICE=cuda:0), but for what traps.
#include <stdio.h>

#include "dtype.h"
#include "sim_kit.h"

static Status in_cluster(Kit *k, Kernel *kernel, const void *args, uint32_t bytes) {
  Launch l = {.kernel = kernel, .grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1},
              .args = args, .arg_bytes = bytes};
  Status st = device_launch(k->dev, &l, k->diag);
  return st == ST_OK ? device_sync(k->dev, k->diag) : st;
}

// Block 1 (%p1 false) owns s and bar, which expects %r9 bytes; both addresses there are in %r3 (its
// thread's 8 bytes), %r4 (a word at 256) and %r5 (bar).
#define BEGIN                                                                                      \
  ".shared .align 16 .b8 s[512]; .shared .align 8 .b64 bar;\n"                                     \
  "mov.u32 %r1, s; mov.u32 %r2, bar; mov.u32 %r10, %cluster_ctarank; setp.eq.u32 %p1, %r10, 0;\n"  \
  "setp.eq.u32 %p2, %r0, 0; not.pred %p3, %p1; and.pred %p3, %p2, %p3; @!%p2 bra READY;\n"         \
  "mbarrier.init.shared.b64 [%r2], 1; mov.u32 %r11, 1000; st.shared.b32 [%r1+256], %r11;\n"        \
  "fence.mbarrier_init.release.cluster;\n"                                                         \
  "@%p3 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], %r9;\n"                                     \
  "READY: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"                         \
  "shl.b32 %r3, %r0, 3; add.u32 %r3, %r1, %r3; mov.u32 %r12, %r3; add.u32 %r4, %r1, 256;\n"        \
  "mapa.shared::cluster.u32 %r3, %r3, 1; mapa.shared::cluster.u32 %r4, %r4, 1;\n"                  \
  "mapa.shared::cluster.u32 %r5, %r2, 1; mul.lo.u32 %r6, %r0, 3;\n@!%p1 bra OWNER;\n"
#define BYTES "mbarrier::complete_tx::bytes"
#define STORE "st.async.shared::cluster." BYTES ".v2.b32 [%r3], {%r0, %r6}, [%r5];\n"
#define ADD "red.async.relaxed.cluster.shared::cluster." BYTES ".add.u32 [%r4], %r0, [%r5];\n"
#define OWNER "OWNER: @%p1 bra END;\n"
#define WAIT "W: mbarrier.try_wait.parity.shared.b64 %p4, [%r2], 0; @!%p4 bra W;\n"
#define READ "ld.shared.v2.b32 {%r7, %r8}, [%r12]; ld.shared.b32 %r13, [%r1+256];\n"
#define END "END: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"

static void test_words(void **state) {
  Kit *k = *state;
  static const char body[] =
      "mov.u32 %r9, 384;\n" BEGIN STORE "mov.u32 %r6, 0;\n" ADD OWNER WAIT READ
      "mul.wide.u32 %rd1, %r0, 16; add.u64 %rd1, %rd0, %rd1;\n"
      "st.global.v2.b32 [%rd1], {%r7, %r8}; st.global.b32 [%rd1+8], %r13;\n" END;
  Kernel *kernel = kit_body(k, 1, body);
  for (int completion = SIM_LATE; completion <= SIM_EAGER; completion++) {
    uint32_t got[128];
    DevPtr out = kit_fill(k, "out", 7, 128);
    device_sim_opts(k->dev, &(SimOpts){.threads = 1, .sanitize = true, .seed = 5,
                                       .completion = (SimCompletion)completion});
    if (in_cluster(k, kernel, &out, 8) != ST_OK || diag_text(k->diag)[0])
      fail_msg("%s", diag_text(k->diag));
    kit_read(k, out, got, 128);
    for (uint32_t i = 0; i < 32; i++) {
      assert_int_equal(got[4 * i], i);
      assert_int_equal(got[4 * i + 1], 3 * i);
      assert_int_equal(got[4 * i + 2], 1000 + 496);
    }
    device_free(k->dev, out);
  }
  device_sim_opts(k->dev, &(SimOpts){.threads = 1, .sanitize = true});
  kernel_free(kernel);
}

// A barrier of the cluster that orders nothing (.relaxed) and no fence before it: the
// initialisation of the mbarrier may come after its first signal. Either of the two is enough.
static void test_initialised_before(void **state) {
#define FENCE "fence.mbarrier_init.release.cluster;\n"
#define FIRST "READY: barrier.cluster.arrive"
  static const struct {
    bool fenced, releases;
  } cases[] = {{false, false}, {true, false}, {false, true}};
  static const char body[] =
      "mov.u32 %r9, 384;\n" BEGIN STORE "mov.u32 %r6, 0;\n" ADD OWNER WAIT READ END;
  Kit *k = *state;
  for (int i = 0; i < 3; i++) {
    char text[sizeof body + 32];
    const char *at = strstr(body, FENCE), *behind = at + strlen(FENCE);
    const char *arrive = strstr(behind, FIRST) + strlen(FIRST);
    snprintf(text, sizeof text, "%.*s%s%.*s%s%s", (int)(at - body), body,
             cases[i].fenced ? FENCE : "", (int)(arrive - behind), behind,
             cases[i].releases ? "" : ".relaxed", arrive);
    Kernel *kernel = kit_body(k, 1, text);
    DevPtr out = kit_fill(k, "out", 7, 128);
    diag_reset(k->diag);
    bool sound = cases[i].fenced || cases[i].releases;
    Status st = in_cluster(k, kernel, &out, 8); // else what was stored there before races, too
    if (sound && st != ST_OK) fail_msg("%d: %s", i, diag_text(k->diag));
    const char *said = strstr(diag_text(k->diag), "missing fence.mbarrier_init");
    if (!said != sound) fail_msg("%d: %s", i, diag_text(k->diag));
    diag_reset(k->diag);
    device_free(k->dev, out);
    kernel_free(kernel);
  }
}

// Every width and reduction into one's own block, through generic addresses too.  On sim only: of
// these an H200 ends one with an illegal instruction, and it is not known which.
static void test_kinds(void **state) {
  Kit *k = *state;
  static const char body[] =
      ".shared .align 16 .b8 s[256]; .shared .align 8 .b64 bar; .reg .b32 %v<8>;\n"
      "mov.u32 %r1, s; mov.u32 %r2, bar; setp.ne.u32 %p1, %r0, 0; @%p1 bra END;\n"
      "mov.u32 %v0, 0xf0f0; mov.u32 %v1, 5; mov.u32 %v2, -6; mov.u32 %v3, 0xffffffff;\n"
      "mov.b64 %rd2, 0xffffffffffffffff; mov.b64 %rd3, 0x123456789abcdef0;\n"
      "st.shared.b32 [%r1], %v0; st.shared.b32 [%r1+4], %v0; st.shared.b32 [%r1+8], %v0;\n"
      "st.shared.b32 [%r1+12], %v1; st.shared.b32 [%r1+16], %v1; st.shared.b32 [%r1+20], %v1;\n"
      "st.shared.b32 [%r1+24], %v1; st.shared.b32 [%r1+28], %v1; st.shared.b32 [%r1+32], %v1;\n"
      "st.shared.b32 [%r1+36], %v1; st.shared.b64 [%r1+40], %rd3;\n"
      "mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;\n"
      "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 88;\n"
      "cvt.u64.u32 %rd4, %r1; cvta.shared.u64 %rd4, %rd4; cvt.u64.u32 %rd5, %r2; cvta.shared.u64 "
      "%rd5, %rd5;\n"
#define RED "red.async.relaxed.cluster.shared::cluster." BYTES
      RED ".and.b32 [%r1], 0xff00, [%r2];\n" RED ".or.b32 [%r1+4], 0x0f00, [%r2];\n" RED
      ".xor.b32 [%r1+8], 0xff00, [%r2];\n" RED ".min.u32 [%r1+12], %v2, [%r2];\n" RED
      ".min.s32 [%r1+16], %v2, [%r2];\n" RED ".max.u32 [%r1+20], %v2, [%r2];\n" RED
      ".max.s32 [%r1+24], %v2, [%r2];\n" RED ".inc.u32 [%r1+28], 5, [%r2];\n" RED
      ".dec.u32 [%r1+32], 3, [%r2];\n" RED ".add.s32 [%r1+36], %v2, [%r2];\n" RED
      ".add.u64 [%r1+40], %rd2, [%r2];\n"
      "st.async.weak.shared::cluster." BYTES ".b64 [%r1+48], %rd3, [%r2];\n"
      "st.async.shared::cluster." BYTES ".b32 [%r1+56], %v2, [%r2];\n"
      "st.async." BYTES ".b32 [%rd4+60], %v1, [%rd5];\n"
      "st.async.shared::cluster." BYTES ".v4.b32 [%r1+64], {%v0, %v1, %v2, %v3}, [%r2];\n"
      "st.async.shared::cluster." BYTES ".b64 [%r1+80], %rd2, [%r2];\n"
      "W: mbarrier.try_wait.parity.shared.b64 %p4, [%r2], 0; @!%p4 bra W;\n"
      "mov.u32 %r3, 0;\nL: add.u32 %r4, %r1, %r3; ld.shared.b32 %r5, [%r4]; cvt.u64.u32 %rd6, "
      "%r3;\n"
      "add.u64 %rd6, %rd0, %rd6; st.global.b32 [%rd6], %r5; add.u32 %r3, %r3, 4;\n"
      "setp.lt.u32 %p2, %r3, 88; @%p2 bra L;\nEND: \n";
  static const uint32_t want[22] = {
      0xf000,       0xfff0,     0x0ff0,     5,          (uint32_t)-6, (uint32_t)-6, 5, 0,      3,
      (uint32_t)-1, 0x9abcdeef, 0x12345678, 0x9abcdef0, 0x12345678,   (uint32_t)-6, 5, 0xf0f0, 5,
      (uint32_t)-6, 0xffffffff, 0xffffffff, 0xffffffff};
  DevPtr out = kit_fill(k, "out", 7, 22);
  uint32_t got[22];
  Kernel *kernel = kit_body(k, 1, body);
  kit_run(k, kernel, 1, 32, &out, 8);
  kit_read(k, out, got, 22);
  for (int i = 0; i < 22; i++)
    if (got[i] != want[i]) fail_msg("word %d is %x, not %x", i, got[i], want[i]);
  kernel_free(kernel);
  device_free(k->dev, out);
}

static uint32_t pair(double low, double high, bool bf) {
  return bf ? bf16_from_double(low) | (uint32_t)bf16_from_double(high) << 16
            : f16_from_double(low) | (uint32_t)f16_from_double(high) << 16;
}

// Two lanes on the same 16 bytes; the first's results are what was there.
static void test_vectors(void **state) {
  Kit *k = *state;
  static const char body[] =
      "setp.gt.u32 %p1, %r0, 1; @%p1 exit; setp.ne.u32 %p2, %r0, 0;\n"
      "mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f40400000; mov.f32 %f3, "
      "%f0;\n"
      "red.global.add.v4.f32 [%rd0], {%f0, %f1, %f2, %f3}; red.global.add.v2.f32 [%rd0+16], {%f2, "
      "%f1};\n"
      "mov.b32 %r1, 0x40003c00; mov.b32 %r2, 0xc0003c00; mov.b32 {%h0, %h1}, %r1; mov.b32 {%h2, "
      "%h3}, %r2;\n"
      "red.global.add.noftz.v4.f16 [%rd0+24], {%h0, %h1, %h2, %h3};\n"
      "red.global.max.noftz.v2.f16x2 [%rd0+32], {%r1, %r2}; red.global.min.noftz.v2.f16x2 "
      "[%rd0+40], {%r1, %r2};\n"
      "red.global.add.noftz.v2.bf16x2 [%rd0+48], {%r1, %r2};\n@%p2 exit;\n"
      "L: ld.relaxed.gpu.global.f32 %f4, [%rd0]; setp.neu.f32 %p3, %f4, 0f40400000; @%p3 bra L;\n"
      "atom.global.add.v2.f32 {%f4, %f5}, [%rd0], {%f0, %f1}; st.global.v2.f32 [%rd0+56], {%f4, "
      "%f5};\n";
  uint32_t words[16], got[16], one = 0x3f800000;
  for (int i = 0; i < 16; i++) words[i] = one;
  words[6] = words[7] = pair(10, 20, false),
  words[8] = words[9] = words[10] = words[11] = pair(-1, 1.5, false);
  words[12] = words[13] = pair(1, 1, true);
  DevPtr p = kit_words(k, "p", words, 16);
  Kernel *kernel = kit_body(k, 1, body);
  kit_run(k, kernel, 1, 32, &p, 8);
  kit_read(k, p, got, 16);
  // bf16 0x3c00 is 2^-7, 0x4000 is 2, 0xc000 is -2; f16 0x3c00 is 1, 0x4000 2, 0xc000 -2
  const uint32_t want[16] = {0x40800000,
                             0x40e00000,
                             0x40e00000,
                             0x40400000,
                             0x40e00000,
                             0x40a00000,
                             pair(12, 24, false),
                             pair(12, 16, false),
                             pair(1, 2, false),
                             pair(1, 1.5, false),
                             pair(-1, 1.5, false),
                             pair(-1, -2, false),
                             pair(1 + 2 / 128., 5, true),
                             pair(1 + 2 / 128., -3, true),
                             0x40400000,
                             0x40a00000};
  for (int i = 0; i < 16; i++)
    if (got[i] != want[i]) fail_msg("word %d is %x, not %x", i, got[i], want[i]);
  kernel_free(kernel);
  device_free(k->dev, p);
}

// 16 bytes: 32 lanes swap a counter's halves in turns, by cas; exch leaves one lane's pair.
static void test_wide(void **state) {
  Kit *k = *state;
  static const char body[] =
      ".reg .b128 %q<4>;\n"
      "AGAIN: ld.relaxed.gpu.global.b128 %q0, [%rd0]; mov.b128 {%rd2, %rd3}, %q0;\n"
      "add.u64 %rd4, %rd2, 1; add.u64 %rd5, %rd3, 3; mov.b128 %q1, {%rd4, %rd5};\n"
      "atom.relaxed.gpu.global.cas.b128 %q2, [%rd0], %q0, %q1; mov.b128 {%rd6, %rd7}, %q2;\n"
      "setp.ne.u64 %p1, %rd6, %rd2; @%p1 bra AGAIN;\n"
      "setp.ne.u32 %p2, %r0, 9; @%p2 exit; cvt.u64.u32 %rd8, %r0; mov.b128 %q3, {%rd8, %rd8};\n"
      "atom.relaxed.gpu.global.exch.b128 %q2, [%rd0+16], %q3; mov.b128 {%rd6, %rd7}, %q2;\n"
      "st.global.v2.b64 [%rd0+32], {%rd6, %rd7};\n";
  uint32_t words[12] = {5, 0, 6, 0, 1, 2, 3, 4, 0, 0, 0, 0}, got[12];
  static const uint32_t want[12] = {37, 0, 102, 0, 9, 0, 9, 0, 1, 2, 3, 4};
  DevPtr p = kit_words(k, "p", words, 12);
  Kernel *kernel = kit_body(k, 1, body);
  kit_run(k, kernel, 1, 32, &p, 8);
  kit_read(k, p, got, 12);
  for (int i = 0; i < 12; i++)
    if (got[i] != want[i]) fail_msg("word %d is %u, not %u", i, got[i], want[i]);
  kernel_free(kernel);
  device_free(k->dev, p);
}

static void test_misuse(void **state) {
  static const struct { const char *what, *body;
  } cases[] = {
      {"is not written yet by an operation in flight", // read before the wait
       "mov.u32 %r9, 256;\n" BEGIN STORE OWNER
       "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n" READ WAIT "bra LAST;\n"
       "END: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nLAST: \n"},
      {"misaligned: the destination is at offset 4",
       "mov.u32 %r9, 256;\n" BEGIN "add.u32 %r3, %r3, 4;\n" STORE OWNER WAIT END},
      {"this is in flight: nothing waited for it", "mov.u32 %r9, 256;\n" BEGIN STORE OWNER END},
      {"deadlock", "mov.u32 %r9, 252;\n" BEGIN STORE OWNER WAIT END},
      {"deadlock", "mov.u32 %r9, 260;\n" BEGIN STORE OWNER WAIT END},
      {"the mbarrier is not in the block of the destination",
       "mov.u32 %r9, 256;\n" BEGIN "mov.u32 %r5, %r2;\n" STORE OWNER WAIT END},
      {"no mbarrier at offset",
       "mov.u32 %r9, 256;\n" BEGIN "add.u32 %r5, %r4, 64;\n" STORE OWNER WAIT END},
      {"data race", // the owner's word and the store's, nothing between them
       "mov.u32 %r9, 256;\n" BEGIN STORE OWNER "st.shared.b32 [%r12], 1;\n" WAIT END},
  };
  Kit *k = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Kernel *kernel = kit_body(k, 0, cases[i].body);
    Status st = in_cluster(k, kernel, NULL, 0);
    if (st != ST_FAILED || !strstr(diag_text(k->diag), cases[i].what))
      fail_msg("case %d, status %d\nwanted: %s\ngot:    %s", (int)i, st, cases[i].what,
               diag_text(k->diag));
    diag_reset(k->diag);
    kernel_free(kernel);
  }
}

int main(void) {
  const struct CMUnitTest anywhere[] = {
      cmocka_unit_test(test_words), cmocka_unit_test(test_vectors), cmocka_unit_test(test_wide)};
  const struct CMUnitTest on_sim[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_misuse),
                                      cmocka_unit_test(test_initialised_before)};
  int failed = cmocka_run_group_tests(anywhere, kit_setup_anywhere, kit_teardown);
  return failed + cmocka_run_group_tests(on_sim, kit_setup, kit_teardown);
}
