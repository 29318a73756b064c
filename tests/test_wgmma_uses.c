// wgmma in use: integers, probabilities that go from accumulators into A registers, other blocks'
// memory, the moment of completion.  The products also run on a GPU (PTXSMITH_DEVICE=cuda:0).
#include <math.h>
#include <stdio.h>

#include "dtype.h"
#define KIT_SANITIZE false
#include "sim_kit.h"

static const char *list(Arena *a, const char *name, int n) {
  char *text = arena_strdup(a, "{");
  for (int i = 0; i < n; i++) text = arena_printf(a, "%s%s%%%s%d", text, i ? ", " : "", name, i);
  return arena_printf(a, "%s}", text);
}

static uint32_t next(uint32_t *seed) { return *seed = *seed * 1664525 + 1013904223; }

// K-major, no swizzle: 128 bytes between the halves of K, 256 between groups of 8 rows.
static uint32_t place(int row, int byte) {
  return (uint32_t)(row % 8 * 16 + row / 8 * 256 + byte / 16 * 128 + byte % 16);
}
#define DESC "0x0000001000080000" // leading 128, stride 256 bytes

// Thread t's accumulator i of an m64nN product, f32 or s32.
static int row_of(int t, int i) { return 16 * (t / 32) + t % 32 / 4 + 8 * (i >> 1 & 1); }
static int col_of(int t, int i) { return 8 * (i >> 2) + 2 * (t & 3) + (i & 1); }

// Copies `bytes` (a multiple of 512) from %rd0 to s, by 128 threads.
static const char *image_in(Kit *k, int bytes) {
  return arena_printf(
      k->arena,
      ".shared .align 1024 .b8 s[%d];\nmov.u32 %%r1, s; shl.b32 %%r2, %%r0, 2;\n"
      "COPY: cvt.u64.u32 %%rd20, %%r2; add.u64 %%rd20, %%rd0, %%rd20; ld.global.b32 %%r3, "
      "[%%rd20];\n"
      "add.u32 %%r4, %%r1, %%r2; st.shared.b32 [%%r4], %%r3; add.u32 %%r2, %%r2, 512;\n"
      "setp.lt.u32 %%p0, %%r2, %d; @%%p0 bra COPY;\nfence.proxy.async; bar.sync 0;\n"
      "shr.u32 %%r5, %%r1, 4; cvt.u64.u32 %%rd21, %%r5;\n",
      bytes, bytes);
}

// ---- integers -----------------------------------------------------------------------------------
enum { INT_B = 8192, INT_IMAGE = 16384 }; // A at 0; N <= 256 columns of 32 bytes

typedef struct Integers { int n; bool sa, sb, sat, a_regs; } Integers;

static Kernel *integer_kernel(Kit *k, const Integers *c) {
  int nd = c->n / 2;
  const char *t = arena_printf(k->arena, ".reg .s32 %%d<%d>; .reg .b32 %%a<4>;\n%s"
      "mul.wide.u32 %%rd4, %%r0, 16; add.u64 %%rd4, %%rd1, %%rd4;\n"
      "ld.global.v4.b32 {%%a0, %%a1, %%a2, %%a3}, [%%rd4];\n"
      "mul.wide.u32 %%rd5, %%r0, %d; add.u64 %%rd5, %%rd2, %%rd5;\n"
      "add.u64 %%rd6, %%rd21, " DESC "; add.u64 %%rd7, %%rd6, %d; setp.eq.u32 %%p1, %%r0, %%r0;\n",
      nd, image_in(k, INT_IMAGE), 4 * nd, INT_B / 16);
  for (int i = 0; i < nd; i++)
    t = arena_printf(k->arena, "%sld.global.s32 %%d%d, [%%rd5+%d];\n", t, i, 4 * i);
  t = arena_printf(k->arena, "%swgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n%dk32%s.s32.%s.%s %s, %s, %%rd7, %%p1;\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n", t, c->n,
      c->sat ? ".satfinite" : "", c->sa ? "s8" : "u8", c->sb ? "s8" : "u8", list(k->arena, "d", nd),
      c->a_regs ? "{%a0, %a1, %a2, %a3}" : "%rd6");
  for (int i = 0; i < nd; i++)
    t = arena_printf(k->arena, "%sst.global.s32 [%%rd5+%d], %%d%d;\n", t, 4 * i, i);
  return kit_body(k, 3, t);
}

static int value_of(uint8_t byte, bool sign) { return sign ? (int8_t)byte : byte; }

static void integers(Kit *k, const Integers *c) {
  static uint8_t image[INT_IMAGE], a[64][32], b[256][32];
  static uint32_t regs[128 * 4], acc[128 * 128], got[128 * 128];
  uint32_t seed = (uint32_t)c->n + 1000;
  int nd = c->n / 2;
  for (int row = 0; row < 64; row++)
    for (int i = 0; i < 32; i++) image[place(row, i)] = a[row][i] = (uint8_t)(next(&seed) >> 24);
  for (int col = 0; col < c->n; col++)
    for (int i = 0; i < 32; i++)
      image[INT_B + place(col, i)] = b[col][i] = (uint8_t)(next(&seed) >> 24);
  for (int t = 0; t < 128; t++)
    for (int r = 0; r < 4; r++)
      memcpy(&regs[4 * t + r],
             &a[16 * (t / 32) + t % 32 / 4 + 8 * (r & 1)][16 * (r >> 1) + 4 * (t & 3)], 4);
  for (int i = 0; i < 128 * nd; i++) // some near the ends of the range, where sums leave it
    acc[i] = i % 3 == 0 ? 0x7fffff00u : i % 3 == 1 ? 0x80000010u : next(&seed) >> 8;
  DevPtr args[3] = {kit_words(k, "image", (uint32_t *)image, INT_IMAGE / 4),
                    kit_words(k, "areg", regs, 512), kit_words(k, "acc", acc, 128 * (uint32_t)nd)};
  Kernel *kernel = integer_kernel(k, c);
  kit_run(k, kernel, 1, 128, args, sizeof args);
  kit_read(k, args[2], got, 128 * (uint32_t)nd);
  for (int t = 0; t < 128; t++)
    for (int i = 0; i < nd; i++) {
      int64_t sum = (int32_t)acc[t * nd + i];
      for (int j = 0; j < 32; j++)
        sum += value_of(a[row_of(t, i)][j], c->sa) * value_of(b[col_of(t, i)][j], c->sb);
      if (c->sat) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
      if (got[t * nd + i] != (uint32_t)sum)
        fail_msg("n %d: row %d, column %d is %d, not %d", c->n, row_of(t, i), col_of(t, i),
                 (int)got[t * nd + i], (int)sum);
    }
  kernel_free(kernel);
  for (int i = 0; i < 3; i++) device_free(k->dev, args[i]);
}

// Every N that integers have, the four pairs of types, with and without saturation, A in both
// places.
static void test_integers(void **state) {
  int index = 0;
  for (int n = 8; n <= 256; n += n < 32 ? 8 : 16, index++)
    integers(*state, &(Integers){n, index & 1, index & 2, index & 4, index & 8});
  for (int v = 0; v < 16; v++)
    integers(*state, &(Integers){32, v & 1, v & 2, v & 4, v & 8});
}

// ---- P in registers -----------------------------------------------------------------------------
// O = 2^(Q K') V: Q 64 x 16, K 16 keys x 16, V 16 keys x 16 (MN-major).  Small integers: S, 2^S and
// O are exact.  Each thread's S of two blocks of 8 columns is its A fragment of one k16 step.
enum { Q_AT = 0, K_AT = 2048, V_AT = 2560, P_IMAGE = 3072 };

static const char softmax_body[] =
    ".reg .f32 %s<8>, %o<8>; .reg .b32 %a<4>;\n"
    "add.u64 %rd4, %rd21, " DESC "; add.u64 %rd5, %rd4, 128;\n"
    // V: rows of 8 dimensions, k across: stride along N 128, leading along K 256
    "add.u64 %rd6, %rd21, 0x00000008001000A0; setp.ne.u32 %p1, %r0, %r0;\n"
    "wgmma.fence.sync.aligned;\n"
    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%s0, %s1, %s2, %s3, %s4, %s5, %s6, %s7}, "
    "%rd4, "
    "%rd5, %p1, 1, 1, 0, 0;\n"
    "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
    "ex2.approx.ftz.f32 %s0, %s0; ex2.approx.ftz.f32 %s1, %s1; ex2.approx.ftz.f32 %s2, %s2;\n"
    "ex2.approx.ftz.f32 %s3, %s3; ex2.approx.ftz.f32 %s4, %s4; ex2.approx.ftz.f32 %s5, %s5;\n"
    "ex2.approx.ftz.f32 %s6, %s6; ex2.approx.ftz.f32 %s7, %s7;\n"
    "cvt.rn.f16x2.f32 %a0, %s1, %s0; cvt.rn.f16x2.f32 %a1, %s3, %s2;\n"
    "cvt.rn.f16x2.f32 %a2, %s5, %s4; cvt.rn.f16x2.f32 %a3, %s7, %s6;\n"
    "wgmma.fence.sync.aligned;\n"
    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%o0, %o1, %o2, %o3, %o4, %o5, %o6, %o7}, "
    "{%a0, %a1, %a2, %a3}, %rd6, %p1, 1, 1, 1;\n"
    "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
    "mul.wide.u32 %rd7, %r0, 32; add.u64 %rd7, %rd1, %rd7;\n"
    "st.global.v4.f32 [%rd7], {%o0, %o1, %o2, %o3}; st.global.v4.f32 [%rd7+16], {%o4, %o5, %o6, "
    "%o7};\n";

static void put_half(uint8_t *image, uint32_t at, int v) {
  uint16_t h = f16_from_double(v);
  memcpy(image + at, &h, 2);
}

static void test_softmax_registers(void **state) {
  static uint8_t image[P_IMAGE];
  static float got[128 * 8];
  int q[64][16], key[16][16], v[16][16];
  uint32_t seed = 5;
  Kit *k = *state;
  for (int row = 0; row < 64; row++) // three ones: S is a sum of three small integers
    for (int d = 0; d < 16; d++) {
      q[row][d] = d == row % 16 || d == (row * 3 + 1) % 16 || d == (row / 4 + 7) % 16;
      put_half(image, Q_AT + place(row, 2 * d), q[row][d]);
    }
  for (int j = 0; j < 16; j++)
    for (int d = 0; d < 16; d++) {
      key[j][d] = (int)(next(&seed) >> 24) % 4 - 1;
      v[j][d] = (int)(next(&seed) >> 24) % 16 - 8;
      put_half(image, K_AT + place(j, 2 * d), key[j][d]);
      put_half(image, (uint32_t)(V_AT + d % 8 * 2 + d / 8 * 128 + j % 8 * 16 + j / 8 * 256),
               v[j][d]);
    }
  DevPtr args[2] = {kit_words(k, "image", (uint32_t *)image, P_IMAGE / 4),
                    kit_words(k, "o", NULL, 1024)};
  Kernel *kernel =
      kit_body(k, 2, arena_printf(k->arena, "%s%s", image_in(k, P_IMAGE), softmax_body));
  kit_run(k, kernel, 1, 128, args, sizeof args);
  kit_read(k, args[1], (uint32_t *)got, 1024);
  for (int t = 0; t < 128; t++)
    for (int i = 0; i < 8; i++) {
      double want = 0;
      for (int j = 0; j < 16; j++) {
        int s = 0;
        for (int d = 0; d < 16; d++) s += q[row_of(t, i)][d] * key[j][d];
        want += ldexp(v[j][col_of(t, i)], s);
      }
      if (got[8 * t + i] != want)
        fail_msg("row %d, column %d: %g, not %g", row_of(t, i), col_of(t, i),
                 (double)got[8 * t + i], want);
    }
  kernel_free(kernel);
  device_free(k->dev, args[0]);
  device_free(k->dev, args[1]);
}

// ---- base offsets -------------------------------------------------------------------------------
// D = B: which bytes a descriptor names when its pattern starts at another row than a period's
// first.  As an H200 does: the row of the XOR is counted from the base offset on.
static void test_base_offset(void **state) {
  static const int starts[] = {0, 32, 128, 256, 384, 512, 640, 768, 896};
  static uint64_t desc[27 * 8];
  static float got[27 * 8][16][16];
  Kit *k = *state;
  for (int i = 0; i < 27 * 8; i++)
    desc[i] = (uint64_t)(i / 72 + 1) << 62 | (uint64_t)(i & 7) << 49 | UINT64_C(0x4000010000) |
              (uint64_t)starts[i / 8 % 9] >> 4;
  DevPtr args[2] = {kit_words(k, "descs", (uint32_t *)desc, 2 * 27 * 8),
                    kit_words(k, "out", NULL, 27 * 8 * 256)};
  Kernel *kernel = kit_load(k, "../gpu/probes.ptx", "base");
  kit_run(k, kernel, 27 * 8, 128, args, sizeof args);
  kit_read(k, args[1], (uint32_t *)got, 27 * 8 * 256);
  for (int i = 0; i < 27 * 8; i++)
    for (int n = 0; n < 16; n++)
      for (int kk = 0; kk < 16; kk++) { // the image holds the numbers of its elements
        int b = 3 - i / 72, span = 16 << b;
        uint32_t at = (uint32_t)(n % 8 * span + n / 8 * 1024 + 2 * kk + starts[i / 8 % 9]);
        uint32_t want = at ^ (((at >> 7) - (uint32_t)(i & 7)) & ((1u << b) - 1)) << 4;
        if (got[i][kk][n] != (float)(want / 2))
          fail_msg("descriptor %llx: column %d, k %d is byte %g, not %u",
                   (unsigned long long)desc[i], n, kk, 2 * (double)got[i][kk][n], want);
      }
  kernel_free(kernel);
  device_free(k->dev, args[0]);
  device_free(k->dev, args[1]);
}

// ---- what is in flight --------------------------------------------------------------------------
// Zeros in 4096 bytes: A at 0 (%rd10), B at 2048 (%rd11); %r2 is the thread's place.
#define ZEROS                                                                                      \
  ".shared .align 128 .b8 s[4096]; .shared .align 8 .b64 bar;\nshl.b32 %r1, %r0, 5;"               \
  "mov.u32 %r2, s; add.u32 %r2, %r2, %r1; mov.b32 %r3, 0;"                                         \
  "st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3}; st.shared.v4.b32 [%r2+16], {%r3, %r3, %r3, "      \
  "%r3};\n"                                                                                        \
  "setp.eq.u32 %p4, %r0, 0; mov.u32 %r10, bar; @%p4 mbarrier.init.shared.b64 [%r10], 1;"           \
  "fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0;\n"                          \
  "mov.u32 %r8, s; shr.u32 %r8, %r8, 4; cvt.u64.u32 %rd9, %r8; add.u64 %rd10, %rd9, " DESC ";"     \
  "add.u64 %rd11, %rd10, 128; mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0;"        \
  "mov.f32 %f3, %f0; mov.u32 %r11, %cluster_ctarank; setp.eq.u32 %p5, %r11, 0;"                    \
  "wgmma.fence.sync.aligned;\n"
#define MMA                                                                                        \
  "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd10, %rd11, 1, 1, "   \
  "1, 0, 0;\n"                                                                                     \
  "wgmma.commit_group.sync.aligned;\n"
#define WAIT "wgmma.wait_group.sync.aligned 0;\n"
#define CLUSTER "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
#define PEER "mapa.shared::cluster.u32 %r12, %r2, 1;\n"

static Status in_cluster(Kit *k, const char *body) {
  Kernel *kernel = kit_body(k, 0, body);
  Launch l = {.kernel = kernel, .grid = {2, 1, 1}, .block = {128, 1, 1}, .cluster = {2, 1, 1}};
  Status st = device_launch(k->dev, &l, k->diag);
  if (!st) st = device_sync(k->dev, k->diag);
  kernel_free(kernel);
  return st;
}

// Block 0 writes into block 1's memory while a wgmma of its own, or of block 1, is in flight at the
// same offset.
static void test_other_blocks(void **state) {
  Kit *k = *state;
  static const char *const writes[] = {
      "@%p5 st.shared::cluster.b32 [%r12], %r3;\n",
      "cvta.shared.u64 %rd12, %r2; mapa.u64 %rd12, %rd12, 1; @%p5 st.b32 [%rd12], %r3;\n",
      "@%p5 atom.shared::cluster.add.u32 %r13, [%r12], 1;\n",
  };
  for (int i = 0; i < 3; i++) {
    const char *own = arena_printf(k->arena, "%s%s%s", ZEROS CLUSTER PEER "@!%p5 bra L;\n" MMA,
                                   writes[i], WAIT "L: " CLUSTER);
    if (in_cluster(k, own) != ST_OK)
      fail_msg("a write to another block's bytes:\n%s", diag_text(k->diag));
    const char *other =
        arena_printf(k->arena, "%s%s%s", ZEROS CLUSTER PEER "@%p5 bra L;\n" MMA "L: " CLUSTER,
                     writes[i], CLUSTER "@%p5 bra M;\n" WAIT "M: " CLUSTER);
    assert_int_equal(in_cluster(k, other), ST_FAILED);
    if (!strstr(diag_text(k->diag), "of shared memory in flight: the wgmma of line"))
      fail_msg("%s", diag_text(k->diag));
    diag_reset(k->diag);
  }
}

// The copy into A is waited for, but behind the wgmma: found whenever it completes.
static void test_issue_before_copy(void **state) {
  static const char body[] =
      ZEROS "@!%p4 bra L; mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 64;\n"
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0], 64, "
            "[%r10];\n"
            "L: bar.sync 0;\n" MMA
            "W: mbarrier.try_wait.parity.shared.b64 %p6, [%r10], 0; @!%p6 bra W;\n" WAIT;
  Kit *k = *state;
  Kernel *kernel = kit_body(k, 1, body);
  DevPtr in = kit_fill(k, "in", 0, 16);
  for (int completion = SIM_LATE; completion <= SIM_RANDOM; completion++) {
    device_sim_opts(k->dev,
                    &(SimOpts){.threads = 1, .completion = (SimCompletion)completion, .seed = 3});
    Status st = kit_try(k, kernel, 1, 128, &in, 8);
    // At random the copy may be over before the wgmma is issued.
    if (completion == SIM_RANDOM && st == ST_OK) continue;
    assert_int_equal(st, ST_FAILED);
    if (!strstr(diag_text(k->diag), "is not written yet by an operation in flight"))
      fail_msg("%s", diag_text(k->diag));
    diag_reset(k->diag);
  }
  device_sim_opts(k->dev, &(SimOpts){.threads = 1});
  kernel_free(kernel);
  device_free(k->dev, in);
}

// The same bits whenever products are computed; A registers are taken at the issue or they are in
// flight.
static void test_completion(void **state) {
  Kit *k = *state;
  for (int completion = SIM_LATE; completion <= SIM_EAGER; completion++)
    for (uint64_t seed = 1; seed < 6; seed++) {
      device_sim_opts(
          k->dev, &(SimOpts){.threads = 1, .completion = (SimCompletion)completion, .seed = seed});
      test_softmax_registers(state);
      integers(k, &(Integers){64, true, false, true, true});
    }
  // Products that complete early are in flight until the wait all the same.
  device_sim_opts(k->dev, &(SimOpts){.threads = 1, .completion = SIM_EAGER});
  Kernel *kernel = kit_body(k, 0, ZEROS MMA "add.f32 %f5, %f1, %f0;\n" WAIT);
  assert_int_equal(kit_try(k, kernel, 1, 128, NULL, 0), ST_FAILED);
  assert_non_null(strstr(diag_text(k->diag), "is in flight: the wgmma of line"));
  diag_reset(k->diag);
  kernel_free(kernel);
  device_sim_opts(k->dev, &(SimOpts){.threads = 1});
}

int main(void) {
  const struct CMUnitTest anywhere[] = {cmocka_unit_test(test_integers),
                                        cmocka_unit_test(test_softmax_registers),
                                        cmocka_unit_test(test_base_offset)};
  const struct CMUnitTest on_sim[] = {cmocka_unit_test(test_other_blocks),
                                      cmocka_unit_test(test_issue_before_copy),
                                      cmocka_unit_test(test_completion)};
  int failed = cmocka_run_group_tests(anywhere, kit_setup_anywhere, kit_teardown);
  return failed + cmocka_run_group_tests(on_sim, kit_setup, kit_teardown);
}
