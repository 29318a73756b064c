// Counters of the interpreter, against numbers found by hand.
#include <math.h>

#define KIT_SANITIZE false
#include "sim_kit.h"

static void count_on(Kit *k) {
  device_sim_opts(k->dev, &(SimOpts){.threads = 1, .counters = true});
}

// One block of `threads` threads runs `body` with %rd0 a buffer of 64 KiB that is written, %r0 the
// thread and %rd1 = %r0 as 64 bits; %r1 = the start of 16 KiB of shared memory.
static Counters count_block(Kit *k, uint32_t threads, const char *body) {
  count_on(k);
  char *text = arena_printf(k->arena,
                            ".shared .align 16 .b8 s[16384];\nmov.u32 %%r1, s;\n"
                            "cvt.u64.u32 %%rd1, %%r0;\n%s\nret;", body);
  Kernel *kernel = kit_body(k, 1, text);
  DevPtr p = kit_fill(k, "x", 0, 16384);
  Counters c;
  device_counters(k->dev, &c, true);
  kit_run(k, kernel, 1, threads, &p, 8);
  device_counters(k->dev, &c, true);
  kernel_free(kernel);
  device_free(k->dev, p);
  return c;
}

// ---- global memory ------------------------------------------------------------------------------
typedef struct GlobalCase {
  const char *what, *body;
  uint32_t threads;
  uint64_t requests, sectors, ideal, bytes, distinct;
} GlobalCase;

#define AT(scale) "mul.lo.u64 %rd2, %rd1, " #scale "; add.u64 %rd2, %rd0, %rd2;\n"
static const GlobalCase global_cases[] = {
    {"coalesced", AT(4) "ld.global.f32 %f0, [%rd2];", 32, 1, 4, 4, 128, 128},
    {"every other word", AT(8) "ld.global.f32 %f0, [%rd2];", 32, 1, 8, 4, 128, 256},
    {"a sector each", AT(128) "ld.global.f32 %f0, [%rd2];", 32, 1, 32, 4, 128, 1024},
    {"one word off", AT(4) "ld.global.f32 %f0, [%rd2+4];", 32, 1, 5, 4, 128, 160},
    {"broadcast", "ld.global.f32 %f0, [%rd0];", 32, 1, 1, 1, 128, 32},
    {"four words a lane", AT(16) "ld.global.v4.f32 {%f0,%f1,%f2,%f3}, [%rd2];", 32, 1, 16, 16, 512,
     512},
    {"ten lanes", AT(4) "ld.global.f32 %f0, [%rd2];", 10, 1, 2, 2, 40, 64},
    {"bytes", AT(1) "ld.global.u8 %r2, [%rd2];", 32, 1, 1, 1, 32, 32},
    {"downwards", "xor.b64 %rd1, %rd1, 31;" AT(4) "ld.global.f32 %f0, [%rd2];", 32, 1, 4, 4, 128,
     128},
    {"pairs of lanes share", "shr.u64 %rd1, %rd1, 1;" AT(8) "ld.global.f64 %fd0, [%rd2];", 32, 1, 4,
     4, 256, 128},
    {"twice the same", AT(4) "ld.global.f32 %f0, [%rd2];\nld.global.f32 %f1, [%rd2];", 32, 2, 8, 8,
     256, 128},
    {"two warps", AT(4) "ld.global.f32 %f0, [%rd2];", 64, 2, 8, 8, 256, 256},
    {"through a generic address", AT(4) "ld.f32 %f0, [%rd2];", 32, 1, 4, 4, 128, 128},
    {"lanes under a guard", AT(4) "setp.lt.u32 %p0, %r0, 8; mov.f32 %f0, 0f00000000;\n"
     "@%p0 ld.global.f32 %f0, [%rd2];", 32, 1, 1, 1, 32, 32},
};

static void test_global(void **state) {
  Kit *k = *state;
  for (size_t i = 0; i < sizeof global_cases / sizeof *global_cases; i++) {
    const GlobalCase *g = &global_cases[i];
    Counters c = count_block(k, g->threads, g->body);
    if (c.global_read_requests != g->requests || c.global_read_sectors != g->sectors ||
        c.global_read_ideal != g->ideal || c.global_read_bytes != g->bytes ||
        c.distinct_read_bytes != g->distinct || c.distinct_bytes != g->distinct ||
        c.global_write_sectors || c.distinct_write_bytes)
      fail_msg("%s: %llu requests, %llu sectors, %llu ideal, %llu bytes, %llu distinct", g->what,
               (unsigned long long)c.global_read_requests,
               (unsigned long long)c.global_read_sectors, (unsigned long long)c.global_read_ideal,
               (unsigned long long)c.global_read_bytes, (unsigned long long)c.distinct_read_bytes);
  }
}

static void test_stores_and_atomics(void **state) {
  Kit *k = *state;
  Counters c = count_block(k, 32, AT(4) "st.global.u32 [%rd2], %r0;");
  assert_int_equal(c.global_write_requests, 1);
  assert_int_equal(c.global_write_sectors, 4);
  assert_int_equal(c.distinct_write_bytes, 128);
  assert_int_equal(c.global_read_sectors, 0);
  // An atomic reads and writes; lanes at one address are work of their own for its sector.
  c = count_block(k, 32, "red.global.add.u32 [%rd0], %r0;");
  assert_int_equal(c.global_write_sectors, 32);
  assert_int_equal(c.global_read_sectors, 32);
  assert_int_equal(c.distinct_bytes, 32);
}

// Read in one place, written in another that overlaps it by half.
static void test_distinct(void **state) {
  Kit *k = *state;
  Counters c =
      count_block(k, 32, AT(4) "ld.global.u32 %r2, [%rd2];\nst.global.u32 [%rd2+64], %r2;");
  assert_int_equal(c.distinct_read_bytes, 128);
  assert_int_equal(c.distinct_write_bytes, 128);
  assert_int_equal(c.distinct_bytes, 192);
}

// DRAM sends 64 bytes: of sectors 1 (read) and 2 (written, then read), 4 and 5 (read) the pairs 0,
// 1 and 2 are sent; but for pair 1 it is enough that the launch wrote what it reads.
static void test_pairs_of_sectors(void **state) {
  Kit *k = *state;
  count_on(k);
  Kernel *kernel = kit_body(k, 1,
                            "ld.global.u32 %r2, [%rd0+32]; st.global.u32 [%rd0+64], %r2;\n"
                            "ld.global.u32 %r2, [%rd0+64]; ld.global.u32 %r2, [%rd0+128];\n"
                            "ld.global.u32 %r2, [%rd0+160]; ret;");
  DevPtr p = kit_fill(k, "x", 0, 64);
  KernelCounts n;
  kit_run(k, kernel, 1, 1, &p, 8);
  assert_true(kernel_counts(kernel, &n));
  assert_int_equal(n.nbuffers, 1);
  assert_int_equal(n.buffer[0].read, 4 * 32);
  assert_int_equal(n.buffer[0].read64, 3 * 64);
  assert_int_equal(n.buffer[0].cold64, 2 * 64);
  kernel_free(kernel);
  device_free(k->dev, p);
}

// ---- small arguments ----------------------------------------------------------------------------
// Lanes 0-2 have -126 and the numbers next to it, 3 -inf, 4 NaN, 5 0, 6 and 7 2^-126 and the one
// below it, the same negative in 8 and 9; the others have 1.  The guard takes lane 3 away.
#define SMALL_ARGUMENTS                                                                            \
  AT(4) "ld.global.f32 %f0, [%rd2]; setp.ne.u32 %p0, %r0, 3;\n"
static const float small_arguments[32] = {
    -126.0f, -0x1.f80002p6f, -0x1.f7fffep6f, -INFINITY, NAN, 0, 0x1p-126f, 0x0.fffffep-126f,
    -0x1p-126f, -0x0.fffffep-126f, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
};
static const struct {
  const char *body;
  uint64_t small;
} small_cases[] = {
    {"ex2.approx.f32 %f1, %f0;", 2},           {"@%p0 ex2.approx.f32 %f1, %f0;", 1},
    {"lg2.approx.f32 %f1, %f0;", 3},           {"ex2.approx.ftz.f32 %f1, %f0;", 0},
    {"lg2.approx.ftz.f32 %f1, %f0;", 0},       {"rcp.approx.f32 %f1, %f0;", 0},
    {"ex2.approx.f32 %f0, %f0;", 2},
};

static void test_small(void **state) {
  Kit *k = *state;
  count_on(k);
  for (size_t i = 0; i < sizeof small_cases / sizeof *small_cases; i++) {
    Kernel *kernel =
        kit_body(k, 1, arena_printf(k->arena, "cvt.u64.u32 %%rd1, %%r0;\n%s%s\nret;",
                                    SMALL_ARGUMENTS, small_cases[i].body));
    DevPtr p = kit_fill(k, "x", 0, 32);
    Status st = device_write(k->dev, p, small_arguments, sizeof small_arguments, k->diag);
    assert_int_equal(st, ST_OK);
    KernelCounts n;
    kit_run(k, kernel, 1, 32, &p, 8);
    assert_true(kernel_counts(kernel, &n));
    uint64_t small = 0;
    for (int s = 0; s < n.n; s++) small += n.count[s].small;
    if (small != small_cases[i].small)
      fail_msg("%s: %llu", small_cases[i].body, (unsigned long long)small);
    kernel_free(kernel);
    device_free(k->dev, p);
  }
}

// ---- shared memory ------------------------------------------------------------------------------
typedef struct SharedCase {
  const char *what, *body;
  uint32_t threads;
  uint64_t wavefronts, conflicts;
} SharedCase;

#define TO(scale) "mad.lo.u32 %r2, %r0, " #scale ", %r1;\n"
#define ST1 "st.shared.u32 [%r2], %r0;"
#define ST2 "st.shared.v2.u32 [%r2], {%r0,%r0};"
#define ST4 "st.shared.v4.u32 [%r2], {%r0,%r0,%r0,%r0};"
static const SharedCase shared_cases[] = {
    {"a bank each", TO(4) ST1, 32, 1, 0},
    {"2-way", TO(8) ST1, 32, 2, 1},
    {"8-way", TO(32) ST1, 32, 8, 7},
    {"32-way", TO(128) ST1, 32, 32, 31},
    {"padded rows", TO(132) ST1, 32, 1, 0},
    {"one word for all", TO(0) ST1, 32, 1, 0},
    {"words of two lanes each", "and.b32 %r3, %r0, 15; mad.lo.u32 %r2, %r3, 4, %r1;" ST1, 32, 1, 0},
    {"bytes", TO(1) "st.shared.u8 [%r2], %r0;", 32, 1, 0},
    {"8 bytes", TO(8) ST2, 32, 2, 0},
    {"8 bytes of 16", TO(16) ST2, 32, 4, 2},
    {"16 bytes", TO(16) ST4, 32, 4, 0},
    {"16 bytes of 32", TO(32) ST4, 32, 8, 4},
    {"16 bytes of 128", TO(128) ST4, 32, 32, 28},
    {"half a warp, 32-way", TO(128) ST1, 16, 16, 15},
    {"eight lanes of 16 bytes", TO(16) ST4, 8, 1, 0},
    {"atomics at one word", TO(0) "red.shared.add.u32 [%r2], %r0;", 32, 32, 31},
};

static void test_shared(void **state) {
  Kit *k = *state;
  for (size_t i = 0; i < sizeof shared_cases / sizeof *shared_cases; i++) {
    const SharedCase *s = &shared_cases[i];
    char *body = arena_printf(k->arena, "%s", s->body);
    if (strstr(body, "red.")) // of a word that is written
      body = arena_printf(k->arena,
                          "setp.ge.u32 %%p0, %%r0, 32;\n@!%%p0 st.shared.u32 [%%r1], 0;\n%s", body);
    Counters c = count_block(k, s->threads, body);
    uint64_t extra = strstr(body, "red.") ? 1 : 0; // the store
    if (c.shared_write_wavefronts - extra != s->wavefronts || c.shared_conflicts != s->conflicts)
      fail_msg("%s: %llu wavefronts, %llu conflicts", s->what,
               (unsigned long long)c.shared_write_wavefronts,
               (unsigned long long)c.shared_conflicts);
  }
}

// Loads of more than 4 bytes whose lanes want the same in pairs take half the passes, stores do
// not. Measured: docs/counters.md.
#define LD2 "ld.shared.v2.u32 {%r4,%r5}, [%r2];"
#define LD4 "ld.shared.v4.u32 {%r4,%r5,%r6,%r7}, [%r2];"
// Lanes that differ in the bit at `n` only want the same; their addresses leave no gap.
#define APART(n) "div.u32 %r3, %r0, 2 * " #n "; and.b32 %r8, %r0, " #n " - 1;" \
                 "mad.lo.u32 %r3, %r3, " #n ", %r8;"
#define MASK(lanes) "and.b32 %r3, %r0, " #lanes ";"
#define OF(scale) "mad.lo.u32 %r2, %r3, " #scale ", %r1;\n"
static const struct {
  const char *what, *body;
  uint32_t threads;
  uint64_t read, written;
} pair_cases[] = {
    {"8 bytes, neighbours", APART(1) OF(8) ST2 LD2, 32, 1, 2},
    {"8 bytes, two apart", APART(2) OF(8) ST2 LD2, 32, 1, 2},
    {"8 bytes, four apart", APART(4) OF(8) ST2 LD2, 32, 2, 2},
    {"16 bytes, neighbours", APART(1) OF(16) ST4 LD4, 32, 2, 4},
    {"16 bytes, two apart", APART(2) OF(16) ST4 LD4, 32, 2, 4},
    {"16 bytes, four apart", APART(4) OF(16) ST4 LD4, 32, 4, 4},
    {"16 bytes, the halves share", MASK(15) OF(16) ST4 LD4, 32, 4, 4},
    {"16 bytes, pairs in the same banks", APART(1) OF(128) ST4 LD4, 32, 16, 16},
    {"16 bytes, a lane without a partner", APART(1) OF(16) ST4 LD4, 17, 2, 3},
    {"16 bytes, one pair differs",
     "setp.eq.u32 %p0, %r0, 31; selp.u32 %r3, 64, 0, %p0;" OF(16) ST4 LD4, 32, 5, 5},
    {"4 bytes, neighbours", APART(1) OF(4) ST1 "ld.shared.u32 %r4, [%r2];", 32, 1, 1},
    {"matrix rows, all the same",
     MASK(0) OF(16) ST4 "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4,%r5,%r6,%r7}, [%r2];", 32, 4,
     4},
};

static void test_pairs(void **state) {
  Kit *k = *state;
  for (size_t i = 0; i < sizeof pair_cases / sizeof *pair_cases; i++) {
    Counters c = count_block(k, pair_cases[i].threads, pair_cases[i].body);
    if (c.shared_read_wavefronts != pair_cases[i].read ||
        c.shared_write_wavefronts != pair_cases[i].written)
      fail_msg("%s: %llu wavefronts of loads, %llu of stores", pair_cases[i].what,
               (unsigned long long)c.shared_read_wavefronts,
               (unsigned long long)c.shared_write_wavefronts);
  }
}

// What Nsight Compute measured of tests/ncu/patterns.ptx on an NVIDIA H200 (driver 580.159.04,
// 2026-11-29 and 30).  Each launch, of one warp, also writes y: one request of 4 sectors.
static const struct {
  const char *entry;
  uint64_t read_sectors, read_wavefronts, write_wavefronts, conflicts;
} measured[] = {
    {"g_coalesced", 4, 0, 0, 0},     {"g_stride8", 8, 0, 0, 0},      {"g_stride128", 32, 0, 0, 0},
    {"g_misaligned", 5, 0, 0, 0},    {"g_broadcast", 1, 0, 0, 0},    {"g_broadcast_v4", 1, 0, 0, 0},
    {"g_v2", 8, 0, 0, 0},            {"g_v4", 16, 0, 0, 0},          {"g_v4_pairs", 8, 0, 0, 0},
    {"s_unit", 0, 1, 1, 0},          {"s_2way", 0, 2, 2, 2},         {"s_4way", 0, 4, 4, 6},
    {"s_8way", 0, 8, 8, 14},         {"s_32way", 0, 32, 32, 62},     {"s_padded", 0, 1, 1, 0},
    {"s_broadcast", 0, 1, 1, 0},     {"s_v2", 0, 2, 2, 0},           {"s_v2_2way", 0, 4, 4, 4},
    {"s_v2_broadcast", 0, 1, 2, 0},  {"s_v4", 0, 4, 4, 0},           {"s_v4_2way", 0, 8, 8, 8},
    {"s_v4_8way", 0, 32, 32, 56},    {"s_v4_broadcast", 0, 2, 4, 0}, {"s_v4_padded", 0, 4, 4, 0},
    {"s_v4_one_in_register", 0, 2, 4, 0},  {"s_v2_pairs", 0, 1, 2, 0},
    {"s_v2_pairs_two_apart", 0, 1, 2, 0},  {"s_v4_pairs", 0, 2, 4, 0},
    {"s_v4_pairs_two_apart", 0, 2, 4, 0},  {"s_v4_pairs_four_apart", 0, 4, 4, 0},
    {"s_v4_halves_share", 0, 4, 4, 0},
    {"m_x4", 0, 4, 4, 0},            {"m_x4_8way", 0, 32, 32, 56},   {"m_x4_padded", 0, 4, 4, 0},
};

static void test_measured(void **state) {
  Kit *k = *state;
  count_on(k);
  DevPtr p[2] = {kit_fill(k, "x", 0, 16384), kit_fill(k, "y", 0, 32)};
  for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
    Kernel *kernel = kit_load(k, "../ncu/patterns.ptx", measured[i].entry);
    Counters c;
    device_counters(k->dev, &c, true);
    kit_run(k, kernel, 1, 32, p, sizeof p);
    device_counters(k->dev, &c, true);
    kernel_free(kernel);
    if (c.global_read_requests != (measured[i].read_sectors > 0) ||
        c.global_read_sectors != measured[i].read_sectors || c.global_write_requests != 1 ||
        c.global_write_sectors != 4 || c.shared_read_wavefronts != measured[i].read_wavefronts ||
        c.shared_write_wavefronts != measured[i].write_wavefronts ||
        c.shared_conflicts != measured[i].conflicts)
      fail_msg("%s: %llu sectors, %llu and %llu wavefronts, %llu conflicts", measured[i].entry,
               (unsigned long long)c.global_read_sectors,
               (unsigned long long)c.shared_read_wavefronts,
               (unsigned long long)c.shared_write_wavefronts,
               (unsigned long long)c.shared_conflicts);
  }
}

// The same of tests/ncu/paths.ptx, 2026-11-30: sectors of global memory and wavefronts of shared
// memory that went this way.
static const struct {
  const char *entry;
  CountWay way;
  uint64_t sectors, wavefronts;
  uint32_t threads; // 0: 32
} measured_ways[] = {
    {"a_4", COUNT_COPY, 4, 1, 0},
    {"a_4_4way", COUNT_COPY, 4, 4, 0},
    {"a_4_32way", COUNT_COPY, 4, 32, 0},
    {"a_4_apart", COUNT_COPY, 32, 8, 0},
    {"a_8", COUNT_COPY, 8, 2, 0},
    {"a_8_2way", COUNT_COPY, 8, 4, 0},
    {"a_16", COUNT_COPY, 16, 4, 0},
    {"a_16_ca_8way", COUNT_COPY, 16, 32, 0},
    {"a_16_ca_padded", COUNT_COPY, 16, 4, 0},
    {"a_16_ca_apart", COUNT_COPY, 32, 32, 0},
    {"a_16_ca_same", COUNT_COPY, 1, 32, 0},
    {"a_16_cg", COUNT_COPY, 16, 4, 0},
    {"a_16_cg_8way", COUNT_COPY, 32, 32, 0},
    {"a_16_cg_padded", COUNT_COPY, 32, 32, 0},
    {"a_16_cg_apart", COUNT_COPY, 32, 32, 0},
    {"a_16_cg_xor1", COUNT_COPY, 16, 4, 0},
    {"a_16_cg_xor2", COUNT_COPY, 16, 4, 0},
    {"a_16_cg_xor3", COUNT_COPY, 16, 4, 0},
    {"a_16_cg_xor8", COUNT_COPY, 16, 4, 0},
    {"a_16_cg_by32", COUNT_COPY, 32, 32, 0},
    {"a_16_cg_by64", COUNT_COPY, 32, 32, 0},
    {"a_16_cg_rotated", COUNT_COPY, 32, 12, 0},
    {"a_16_cg_swizzled", COUNT_COPY, 16, 4, 0},
    {"a_16_cg_same", COUNT_COPY, 32, 32, 0},
    {"a_16_cg_reversed", COUNT_COPY, 16, 4, 0},
    {"a_16_cg_xor5", COUNT_COPY, 16, 4, 0},
    {"a_16_cg_rotated2", COUNT_COPY, 16, 8, 0},
    {"a_16_cg_rotated4", COUNT_COPY, 16, 8, 0},
    {"a_16_cg_rows512", COUNT_COPY, 16, 4, 0},
    {"a_16_ca_rotated", COUNT_COPY, 16, 4, 0},
    {"a_16_ca_src64", COUNT_COPY, 32, 16, 0},
    {"a_4_same", COUNT_COPY, 1, 32, 0},
    {"a_8_src_pairs", COUNT_COPY, 4, 4, 0},
    {"a_16_cg_src64", COUNT_COPY, 32, 32, 0},
    {"a_16_cg_src32", COUNT_COPY, 32, 32, 0},
    {"t_red_global", COUNT_RED, 4, 0, 0},
    {"t_red_global_apart", COUNT_RED, 32, 0, 0},
    {"t_red_global_f32_same", COUNT_RED, 32, 0, 0},
    {"t_red_global_f32_pairs", COUNT_RED, 4, 0, 0},
    {"t_red_global_f32_quads", COUNT_RED, 4, 0, 0},
    {"t_red_global_f32_pairs_apart", COUNT_RED, 32, 0, 0},
    {"t_atom_global", COUNT_ATOM, 4, 0, 0},
    {"t_atom_global_cas_pairs", COUNT_ATOM, 4, 0, 0},
    {"t_atom_global_cas_same", COUNT_ATOM, 32, 0, 0},
    {"t_red_shared_4way", COUNT_RED, 0, 4, 0},
    {"t_atom_shared_exch", COUNT_ATOM, 0, 1, 0},
    {"t_atom_shared_exch_4way", COUNT_ATOM, 0, 4, 0},
    {"t_atom_shared_exch_pairs", COUNT_ATOM, 0, 2, 0},
    {"t_atom_shared_exch_same", COUNT_ATOM, 0, 32, 0},
    {"t_atom_shared_cas", COUNT_ATOM, 0, 2, 0},
    {"t_atom_shared_cas_4way", COUNT_ATOM, 0, 8, 0},
    {"t_atom_shared_cas_same", COUNT_ATOM, 0, 64, 0},
    {"v_stm_x1", COUNT_STORE, 0, 1, 0},
    {"v_stm_x4", COUNT_STORE, 0, 4, 0},
    {"v_stm_x4_8way", COUNT_STORE, 0, 32, 0},
    {"v_ldm_x1", COUNT_LOAD, 0, 1, 0},
    {"v_ldm_x2", COUNT_LOAD, 0, 2, 0},
    {"v_ldm_x4_one_row", COUNT_LOAD, 0, 4, 0},
    {"u_bulk_load", COUNT_BULK_READ, 128, 0, 0},
    {"u_bulk_store", COUNT_BULK_WRITE, 16, 0, 0},
    {"u_bulk_red", COUNT_BULK_RED, 16, 0, 0},
    {"u_st_async", COUNT_ST_ASYNC, 0, 1, 0},
    {"w_ss_n8", COUNT_WGMMA, 0, 18, 128},
    {"w_ss_n64", COUNT_WGMMA, 0, 32, 128},
    {"w_rs_n64", COUNT_WGMMA, 0, 16, 128},
    {"w_ss_n256", COUNT_WGMMA, 0, 80, 128},
};

// Totals of one way.
static void sum_way(const KernelCounts *n, CountWay way, uint64_t *sectors, uint64_t *wavefronts) {
  *sectors = *wavefronts = 0;
  for (int i = 0; i < n->n; i++) {
    *sectors += n->count[i].global[way].units;
    *wavefronts += n->count[i].shared[way].units;
  }
}

static void test_measured_ways(void **state) {
  Kit *k = *state;
  count_on(k);
  DevPtr p[2] = {kit_fill(k, "x", 0, 16384), kit_fill(k, "y", 0, 256)};
  for (size_t i = 0; i < sizeof measured_ways / sizeof *measured_ways; i++) {
    Kernel *kernel = kit_load(k, "../ncu/paths.ptx", measured_ways[i].entry);
    kit_run(k, kernel, 1, measured_ways[i].threads ? measured_ways[i].threads : 32, p, sizeof p);
    KernelCounts n;
    uint64_t sectors, wavefronts;
    assert_true(kernel_counts(kernel, &n));
    sum_way(&n, measured_ways[i].way, &sectors, &wavefronts);
    if (sectors != measured_ways[i].sectors || wavefronts != measured_ways[i].wavefronts)
      fail_msg("%s: %llu sectors, %llu wavefronts", measured_ways[i].entry,
               (unsigned long long)sectors, (unsigned long long)wavefronts);
    kernel_free(kernel);
  }
}

// Rows of 16 bytes side by side, and all in the same four banks.
static void test_ldmatrix(void **state) {
  Kit *k = *state;
  static const struct { int pitch; uint64_t wavefronts, conflicts; } rows[] = {{16, 4, 0},
                                                                              {128, 32, 28}};
  for (int i = 0; i < 2; i++) {
    char *body =
        arena_printf(k->arena,
                     "mad.lo.u32 %%r2, %%r0, %d, "
                     "%%r1;\n%s\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%%r4,%%r5,%%r6,%%r7}, "
                     "[%%r2];",
                     rows[i].pitch, ST4);
    Counters c = count_block(k, 32, body);
    assert_int_equal(c.shared_read_requests, 1);
    assert_int_equal(c.shared_read_bytes, 512);
    assert_int_equal(c.shared_read_wavefronts, rows[i].wavefronts);
    assert_int_equal(c.shared_conflicts, 2 * rows[i].conflicts); // the stores have them too
  }
}

// ---- local memory, instructions -----------------------------------------------------------------
static void test_local(void **state) {
  Kit *k = *state;
  Counters c = count_block(k, 32, ".local .align 16 .b8 l[64];\nmov.u32 %r4, l;\n"
                                  "st.local.u32 [%r4], %r0;\nst.local.u32 [%r4+4], %r0;\n"
                                  "ld.local.v2.u32 {%r2,%r3}, [%r4];\n"
                                  "and.b32 %r5, %r0, 1; mad.lo.u32 %r5, %r5, 4, %r4;\n"
                                  "ld.local.u32 %r6, [%r5];");
  assert_int_equal(c.local_write_sectors, 8);
  assert_int_equal(c.local_read_sectors, 8 + 8); // odd lanes' words lie in other sectors
  assert_int_equal(c.global_read_sectors + c.global_write_sectors, 0);
}

static void test_arithmetic(void **state) {
  Kit *k = *state;
  Counters c = count_block(
      k, 32, "mov.f32 %f0, 0f3F800000; mov.f64 %fd0, 0d3FF0000000000000; mov.b32 %r2, 0;\n"
             "fma.rn.f32 %f1, %f0, %f0, %f0;\nadd.f32 %f1, %f1, %f0;\nfma.rn.f64 %fd1, %fd0, %fd0, "
             "%fd0;\nfma.rn.f16x2 %r3, %r2, %r2, %r2;\nadd.bf16x2 %r3, %r2, %r2;\n"
             "mov.f32 %f4, 0f00000000; mov.f32 %f5, 0f00000000; mov.f32 %f6, 0f00000000; mov.f32 "
             "%f7, 0f00000000;\nmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
             "{%f4,%f5,%f6,%f7}, {%r2,%r2,%r2,%r2}, {%r2,%r2}, {%f4,%f5,%f6,%f7};");
  const uint64_t *f = c.flops_by_kind;
  assert_int_equal(f[FLOP_F32], 32 * (2 + 1));
  assert_int_equal(f[FLOP_F64], 32 * 2);
  assert_int_equal(f[FLOP_F16], 32 * 4);
  assert_int_equal(f[FLOP_BF16], 32 * 2);
  assert_int_equal(f[FLOP_TENSOR_BF16], 2 * 16 * 8 * 16);
  assert_int_equal(c.flops, 32 * 11 + 4096);
  assert_int_equal(c.warps_by_pipe[PTX_PIPE_TENSOR], 1);
  assert_int_equal(c.by_pipe[PTX_PIPE_FP64], 32);
}

// Lanes 0 to 7 go through two instructions more; the branch is one of two.
static void test_divergence(void **state) {
  Kit *k = *state;
  Counters c = count_block(k, 32, "setp.ge.u32 %p0, %r0, 8;\n@%p0 bra over;\nadd.u32 %r2, %r0, 1;\n"
                                  "add.u32 %r2, %r2, 1;\nover:\nbra.uni end;\nend:\nbar.sync 0;");
  assert_int_equal(c.branches, 2);
  assert_int_equal(c.divergent_branches, 1);
  assert_int_equal(c.barriers, 1);
  assert_int_equal(c.barrier_warps, 1);
  // param, mov, mov, cvt, setp; bra; two adds of 8 lanes; bra, bar, ret
  assert_int_equal(c.warp_insts, 11);
  assert_int_equal(c.thread_insts, 5 * 32 + 24 + 2 * 8 + 3 * 32);
}

// ---- per instruction ----------------------------------------------------------------------------
static const InstCount *at_line(const KernelCounts *n, uint32_t line) {
  for (int i = 0; i < n->n; i++)
    if (n->site[i].in->line == line)
      return &n->count[i];
  return NULL;
}

static void test_lines(void **state) {
  Kit *k = *state;
  count_on(k);
  Kernel *kernel = kit_body(k, 1,
                            "setp.lt.u32 %p0, %r0, 4;\nmul.wide.u32 %rd1, %r0, 4;\n"
                            "add.u64 %rd1, %rd0, %rd1;\n@%p0 st.global.u32 [%rd1], %r0;\nret;");
  DevPtr p = kit_fill(k, "x", 0, 1024);
  KernelCounts n;
  assert_false(kernel_counts(kernel, &n));
  for (int i = 0; i < 2; i++)
    kit_run(k, kernel, 3, 64, &p, 8);
  assert_true(kernel_counts(kernel, &n));
  assert_int_equal(n.launches, 2);
  const InstCount *st = at_line(&n, 11), *mul = at_line(&n, 9);
  assert_int_equal(mul->warps, 2 * 3 * 2);
  assert_int_equal(mul->threads, 2 * 3 * 64);
  assert_int_equal(st->warps, 2 * 3 * 2);        // issued by both warps of a block
  assert_int_equal(st->threads, 2 * 3 * 4);      // lanes 0 to 3 of the first
  assert_int_equal(st->global[COUNT_STORE].requests, 2 * 3);
  assert_int_equal(st->global[COUNT_STORE].units, 2 * 3);
  assert_int_equal(n.nbuffers, 1);
  assert_string_equal(n.buffer[0].name, "x");
  assert_int_equal(n.buffer[0].written, 2 * 32); // of each launch
  assert_int_equal(n.buffer[0].read, 0);
  Counters c;
  device_counters(k->dev, &c, true);
  assert_false(kernel_counts(kernel, &n)); // reset with the device's
}

// Which way each instruction goes: nothing of it stands under another.
static const struct {
  const char *body;
  CountWay way;
  uint64_t sectors, wavefronts; // global, shared
} ways[] = {
    {AT(4) "ld.global.u32 %r2, [%rd2];", COUNT_LOAD, 4, 0},
    {AT(4) "st.global.u32 [%rd2], %r0;", COUNT_STORE, 4, 0},
    {AT(32) "red.global.add.u32 [%rd2], %r0;", COUNT_RED, 32, 0},
    {AT(4) "atom.global.add.u32 %r2, [%rd2], %r0;", COUNT_ATOM, 4, 0},
    {AT(16) TO(16) "cp.async.ca.shared.global [%r2], [%rd2], 16; cp.async.wait_all;",
     COUNT_COPY, 16, 4},
    {AT(4) TO(16) "cp.async.ca.shared.global [%r2], [%rd2], 4; cp.async.wait_all;",
     COUNT_COPY, 4, 4},
    {TO(16) ST4, COUNT_STORE, 0, 4},
};

static void test_ways(void **state) {
  Kit *k = *state;
  count_on(k);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    Kernel *kernel = kit_body(
        k, 1, arena_printf(k->arena, ".shared .align 16 .b8 s[16384];\nmov.u32 %%r1, s;\n"
                                     "cvt.u64.u32 %%rd1, %%r0;\n%s\nret;", ways[i].body));
    DevPtr p = kit_fill(k, "x", 0, 16384);
    KernelCounts n;
    kit_run(k, kernel, 1, 32, &p, 8);
    assert_true(kernel_counts(kernel, &n));
    for (int way = 0; way < COUNT_FORMS; way++) {
      uint64_t sectors, wavefronts;
      sum_way(&n, (CountWay)way, &sectors, &wavefronts);
      if (sectors != (way == (int)ways[i].way ? ways[i].sectors : 0) ||
          wavefronts != (way == (int)ways[i].way ? ways[i].wavefronts : 0))
        fail_msg("%s\n%s: %llu sectors, %llu wavefronts", ways[i].body, count_way[way].name,
                 (unsigned long long)sectors, (unsigned long long)wavefronts);
    }
    kernel_free(kernel);
    device_free(k->dev, p);
  }
}

static void test_off(void **state) {
  Kit *k = *state;
  Kernel *kernel = kit_body(k, 1, "st.global.u32 [%rd0], %r0;\nret;");
  DevPtr p = kit_fill(k, "x", 0, 1);
  kit_run(k, kernel, 1, 32, &p, 8);
  KernelCounts n;
  Counters c, zero = {0};
  assert_false(kernel_counts(kernel, &n));
  device_counters(k->dev, &c, false);
  assert_memory_equal(&c, &zero, sizeof c);
}

// Blocks that ask for work: what they count must not depend on which of the host's threads was
// first. A block's first item takes it through two more instructions.
static void test_threads(void **state) {
  Kit *k = *state;
  Kernel *kernel =
      kit_body(k, 1,
               "mov.u32 %r4, 0;\nL: atom.global.add.u32 %r2, [%rd0], 1;\n"
               "setp.ge.u32 %p0, %r2, 400; @%p0 bra DONE;\n"
               "setp.ne.u32 %p1, %r4, 0; @%p1 bra L; add.u32 %r4, %r4, 1; bra L;\nDONE:\n"
               "ret;");
  uint64_t first = 0;
  for (int threads = 1; threads <= 4; threads++) {
    device_sim_opts(k->dev, &(SimOpts){.threads = threads, .counters = true});
    DevPtr p = kit_fill(k, "next", 0, 1);
    Counters c;
    device_counters(k->dev, &c, true);
    kit_run(k, kernel, 64, 1, &p, 8);
    device_counters(k->dev, &c, true);
    device_free(k->dev, p);
    if (threads == 1) first = c.warp_insts;
    assert_int_equal(c.warp_insts, first);
  }
  assert_true(first > 400 * 5 + 64 * 4);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {
      T(test_global),   T(test_stores_and_atomics), T(test_distinct),      T(test_shared),
      T(test_pairs),    T(test_measured),           T(test_measured_ways), T(test_ldmatrix),
      T(test_local),    T(test_arithmetic),         T(test_divergence),    T(test_lines),
      T(test_off),      T(test_ways),               T(test_threads),       T(test_small),
      T(test_pairs_of_sectors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
