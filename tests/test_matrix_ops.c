// Matrix instructions in the interpreter: fragments, rows, layouts, and what they refuse.
#include "sim_kit.h"
#include "tensor_data.h"

// ---- mma: records of an H200 through registers --------------------------------------------------
static const char *reg_list(Arena *a, const char *name, int first, int n) {
  const char *text = "{";
  for (int i = 0; i < n; i++)
    text = arena_printf(a, "%s%s%s%d", text, i ? ", " : "", name, first + i);
  return arena_printf(a, "%s}", text);
}

// Registers 0 to n - 1 hold what the instruction reads, in the order a, b, c; d goes to p1.
static Kernel *mma_kernel(Kit *k, const char *ptx, int na, int nb, int nc, bool f32) {
  Arena *a = k->arena;
  const char *body = "mul.wide.u32 %rd2, %r0, 4; add.u64 %rd3, %rd0, %rd2;\n"
                     "add.u64 %rd4, %rd1, %rd2; .reg .b32 %w<16>; .reg .f32 %g<4>;\n";
  for (int i = 0; i < na + nb + nc; i++)
    body = arena_printf(a, "%sld.global.b32 %%w%d, [%%rd3+%d];\n", body, i, 128 * i);
  for (int i = 0; f32 && i < nc; i++)
    body = arena_printf(a, "%smov.b32 %%g%d, %%w%d;\n", body, i, na + nb + i);
  const char *acc = f32 ? reg_list(a, "%g", 0, nc) : reg_list(a, "%w", na + nb, nc);
  body = arena_printf(a, "%smma.sync.aligned.%s %s, %s, %s, %s;\n", body, ptx, acc,
                      reg_list(a, "%w", 0, na), reg_list(a, "%w", na, nb), acc);
  for (int i = 0; i < nc; i++)
    body = arena_printf(a, "%sst.global.b32 [%%rd4+%d], %s%d;\n", body, 128 * i, f32 ? "%g" : "%w",
                        f32 ? i : na + nb + i);
  return kit_body(k, 2, body);
}

static void test_mma(void **state) {
  Kit *k = *state;
  for (int i = 0; i < NINSTS && insts[i].ptx; i++) {
    const Inst *in = &insts[i];
    int na = words_a(in), nb = na / 2, nc = matrix_rules[in->rule].half ? 2 : 4;
    Kernel *kernel = mma_kernel(k, in->ptx, na, nb, nc, nc == 4);
    DevPtr args[2] = {kit_words(k, "in", NULL, 12 * 32), kit_words(k, "out", NULL, 4 * 32)};
    long bytes;
    uint8_t *data = read_all(NULL, in->file, &bytes);
    for (const uint8_t *p = data; p < data + bytes;) {
      Tile t;
      uint32_t words[12][32] = {{0}}, got[4][32];
      p = next_tile(in, true, p, &t);
      memcpy(words, t.a, 128 * (size_t)na);
      memcpy(words[na], t.b, 128 * (size_t)nb);
      memcpy(words[na + nb], t.c, 128 * (size_t)nc);
      device_write(k->dev, args[0], words, sizeof words, k->diag);
      kit_run(k, kernel, 1, 32, args, sizeof args);
      kit_read(k, args[1], got[0], (uint32_t)nc * 32);
      if (memcmp(got, t.d, 128 * (size_t)nc))
        fail_msg("%s: other bits than the GPU's", in->ptx);
    }
    free(data);
  }
}

// ---- mma on bytes -------------------------------------------------------------------------------
// c + a b by the fragment maps of the ISA, element by element.
static int32_t byte_at(const uint32_t (*w)[32], int reg, int lane, int e, bool sign) {
  uint8_t u = (uint8_t)(w[reg][lane] >> 8 * e);
  return sign ? (int8_t)u : u;
}

static void check_imma(Kit *k, int K, bool sa, bool sb, bool sat) {
  int na = K / 8, nb = K / 16;
  const char *ptx = arena_printf(k->arena, "m16n8k%d.row.col%s.s32.%s.%s.s32", K,
                                 sat ? ".satfinite" : "", sa ? "s8" : "u8", sb ? "s8" : "u8");
  uint32_t w[12][32], got[4][32], seed = 7;
  for (int i = 0; i < 12 * 32; i++)
    w[i >> 5][i & 31] = seed = seed * 1664525 + 1013904223;
  for (int i = 0; i < 4 * 32; i++) // near the end of the range, where sums leave it
    w[na + nb + (i >> 5)][i & 31] = i & 1 ? 0x7fffff00u : 0x80000010u;
  DevPtr args[2] = {kit_words(k, "in", w[0], 12 * 32), kit_words(k, "out", NULL, 4 * 32)};
  kit_run(k, mma_kernel(k, ptx, na, nb, 4, false), 1, 32, args, sizeof args);
  kit_read(k, args[1], got[0], 128);
  for (int row = 0; row < 16; row++)
    for (int n = 0; n < 8; n++) {
      int lane = 4 * (row & 7) + n / 2, i = 2 * (row >> 3) + (n & 1);
      int64_t sum = (int32_t)w[na + nb + i][lane];
      for (int j = 0; j < K; j++)
        sum += byte_at(w, (row >> 3) + 2 * (j >> 4), 4 * (row & 7) + (j & 15) / 4, j & 3, sa) *
               byte_at(w + na, j >> 4, 4 * n + (j & 15) / 4, j & 3, sb);
      if (sat)
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
      assert_int_equal(got[i][lane], (uint32_t)sum);
    }
}

static void test_imma(void **state) {
  for (int v = 0; v < 16; v++)
    check_imma(*state, v & 1 ? 32 : 16, v & 2, v & 4, v & 8);
}

// ---- rows of shared memory ----------------------------------------------------------------------
// Shared memory holds its own half-word numbers; lane l's row is the l-th of a scattered order.
enum { SHARED_WORDS = 512 };
static int row_of(int lane) { return (lane * 37 + 5) & 127; }
static int half_of(int lane, int col) { return 8 * row_of(lane) + col; }

static const char *rows_body(Kit *k, const char *inst) {
  return arena_printf(
      k->arena,
      ".shared .align 16 .b8 s[2048];\n.reg .b32 %%i, %%a; .reg .pred %%q;\n"
      "mul.lo.u32 %%r1, %%r0, 131074; add.u32 %%r1, %%r1, 65536; shl.b32 %%r2, %%r0, 2;\n"
      "mov.u32 %%i, 0; mov.u32 %%a, s; add.u32 %%r2, %%r2, %%a;\n"
      "FILL: st.shared.u32 [%%r2], %%r1; add.u32 %%r2, %%r2, 128; add.u32 %%r1, %%r1, 4194368;\n"
      "add.u32 %%i, %%i, 1; setp.lt.u32 %%q, %%i, 16; @%%q bra FILL;\nbar.sync 0;\n"
      "mul.lo.u32 %%r2, %%r0, 37; add.u32 %%r2, %%r2, 5; and.b32 %%r2, %%r2, 127;\n"
      "shl.b32 %%r2, %%r2, 4; add.u32 %%r2, %%r2, %%a;\nmul.wide.u32 %%rd2, %%r0, 4;\n"
      "add.u64 %%rd2, %%rd2, %%rd0;\n"
      "mul.lo.u32 %%r8, %%r0, 131074; add.u32 %%r8, %%r8, 0x80018000;\n"
      "add.u32 %%r9, %%r8, 4194368; add.u32 %%r10, %%r9, 4194368;\n"
      "add.u32 %%r11, %%r10, 4194368;\n%s",
      inst);
}

static void check_ldmatrix(Kit *k, int tiles, bool trans) {
  const char *list[] = {[1] = "{%r8}", [2] = "{%r8, %r9}", [4] = "{%r8, %r9, %r10, %r11}"};
  const char *body =
      arena_printf(k->arena, "ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 %s, [%%r2];\n", tiles,
                   trans ? ".trans" : "", list[tiles]);
  for (int j = 0; j < tiles; j++)
    body = arena_printf(k->arena, "%sst.global.u32 [%%rd2+%d], %%r%d;\n", body, 128 * j, 8 + j);
  DevPtr out = kit_words(k, "out", NULL, 128);
  uint32_t got[4][32];
  kit_run(k, kit_body(k, 1, rows_body(k, body)), 1, 32, &out, sizeof out);
  kit_read(k, out, got[0], 32 * (uint32_t)tiles);
  for (int j = 0; j < tiles; j++)
    for (int l = 0; l < 32; l++) {
      int g = l >> 2, q = l & 3;
      uint32_t e[2];
      for (int i = 0; i < 2; i++)
        e[i] = (uint32_t)(trans ? half_of(8 * j + 2 * q + i, g) : half_of(8 * j + g, 2 * q + i));
      assert_int_equal(got[j][l], e[0] | e[1] << 16);
    }
}

// Register j of lane l holds halves 0x8000 + 64 j + 2 l and the next.
static void check_stmatrix(Kit *k, int tiles, bool trans) {
  const char *list[] = {[1] = "{%r8}", [2] = "{%r8, %r9}", [4] = "{%r8, %r9, %r10, %r11}"};
  const char *body = arena_printf(
      k->arena,
      "stmatrix.sync.aligned.m8n8.x%d%s.shared.b16 [%%r2], %s;\nbar.sync 0;\n"
      "shl.b32 %%r2, %%r0, 2; add.u32 %%r2, %%r2, %%a; mov.u32 %%i, 0;\n"
      "OUT: ld.shared.u32 %%r1, [%%r2]; st.global.u32 [%%rd2], %%r1; add.u32 %%r2, %%r2, 128;\n"
      "add.u64 %%rd2, %%rd2, 128; add.u32 %%i, %%i, 1; setp.lt.u32 %%q, %%i, 16; @%%q bra OUT;\n",
      tiles, trans ? ".trans" : "", list[tiles]);
  DevPtr out = kit_words(k, "out", NULL, SHARED_WORDS);
  uint32_t words[SHARED_WORDS];
  uint16_t want[2 * SHARED_WORDS];
  kit_run(k, kit_body(k, 1, rows_body(k, body)), 1, 32, &out, sizeof out);
  kit_read(k, out, words, SHARED_WORDS);
  for (int i = 0; i < 2 * SHARED_WORDS; i++)
    want[i] = (uint16_t)i;
  for (int j = 0; j < tiles; j++)
    for (int l = 0; l < 32; l++)
      for (int e = 0; e < 2; e++) {
        int g = l >> 2, c = 2 * (l & 3) + e;
        int at = trans ? half_of(8 * j + c, g) : half_of(8 * j + g, c);
        want[at] = (uint16_t)(0x8000 + 64 * j + 2 * l + e);
      }
  assert_memory_equal(words, want, sizeof want);
}

static void test_rows(void **state) {
  for (int tiles = 1; tiles <= 4; tiles *= 2)
    for (int trans = 0; trans < 2; trans++) {
      check_ldmatrix(*state, tiles, trans);
      check_stmatrix(*state, tiles, trans);
    }
}

static void test_movmatrix(void **state) {
  Kit *k = *state;
  DevPtr out = kit_words(k, "out", NULL, 32);
  uint32_t got[32];
  kit_run(k, kit_body(k, 1,
                      "mul.lo.u32 %r1, %r0, 131074; add.u32 %r1, %r1, 65536;\n"
                      "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r1;\n"
                      "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd1, %rd0;\n"
                      "st.global.u32 [%rd1], %r1;"),
          1, 32, &out, sizeof out);
  kit_read(k, out, got, 32);
  for (uint32_t l = 0; l < 32; l++) { // element (row, col) was 8 row + col
    uint32_t row = 2 * (l & 3), col = l >> 2;
    assert_int_equal(got[l], (8 * row + col) | (8 * (row + 1) + col) << 16);
  }
}

// ---- wmma as nvcc writes it ---------------------------------------------------------------------
typedef struct Wmma {
  const char *name;
  int m, n, k;
  char type;  // h half, b bf16, t tf32
  bool half;  // accumulators
  bool a_row, b_row, c_row;
} Wmma;

static const Wmma wmmas[] = { // tests/nvcc/wmma.cu
    {"f16_16_rr", 16, 16, 16, 'h', false, true, true, true},
    {"f16_16_cc", 16, 16, 16, 'h', true, false, false, false},
    {"f16_32_rc", 32, 8, 16, 'h', true, true, false, true},
    {"f16_8_cr", 8, 32, 16, 'h', false, false, true, true},
    {"f16_8_rc", 8, 32, 16, 'h', true, true, false, false},
    {"bf16_16_rc", 16, 16, 16, 'b', false, true, false, false},
    {"bf16_32_cr", 32, 8, 16, 'b', false, false, true, true},
    {"bf16_8_rr", 8, 32, 16, 'b', false, true, true, false},
    {"tf32_16_rc", 16, 16, 8, 't', false, true, false, true},
    {"tf32_16_cr", 16, 16, 8, 't', false, false, true, false},
};

// Small integers: every sum is exact in every type.
static int a_of(int m, int k) { return (m * 5 + k * 3) % 7 - 3; }
static int b_of(int k, int n) { return (k * 2 + n * 3) % 5 - 2; }
static int c_of(int m, int n) { return (m + 2 * n) % 11 - 5; }

static uint32_t code_of(char type, int v) {
  float f = (float)v;
  uint32_t u;
  memcpy(&u, &f, 4);
  if (type == 'h') // of an integer below 2^11
    return v ? (u >> 16 & 0x8000) | (((u & 0x7fffffff) - (112u << 23)) >> 13) : 0;
  return type == 'b' ? u >> 16 : u;
}

static void put(uint8_t *to, int at, char type, int v) {
  uint32_t u = code_of(type, v);
  size_t bytes = type == 'h' || type == 'b' ? 2 : 4;
  memcpy(to + (size_t)at * bytes, &u, bytes);
}

enum { PITCH = 48, AREA = 32 * PITCH };

static void check_wmma(Kit *k, const Wmma *t, const char *file) {
  static uint8_t a[4 * AREA], b[4 * AREA], c[4 * AREA], want[4 * AREA], got[4 * AREA];
  char acc = t->half ? 'h' : 'f';
  memset(c, 0, sizeof c);
  for (int m = 0; m < t->m; m++)
    for (int i = 0; i < t->k; i++)
      put(a, t->a_row ? m * PITCH + i : i * PITCH + m, t->type, a_of(m, i));
  for (int n = 0; n < t->n; n++)
    for (int i = 0; i < t->k; i++)
      put(b, t->b_row ? i * PITCH + n : n * PITCH + i, t->type, b_of(i, n));
  memcpy(want, c, sizeof want);
  for (int m = 0; m < t->m; m++)
    for (int n = 0; n < t->n; n++) {
      int at = t->c_row ? m * PITCH + n : n * PITCH + m, sum = c_of(m, n);
      put(c, at, acc, sum);
      for (int i = 0; i < t->k; i++)
        sum += 2 * a_of(m, i) * b_of(i, n); // the kernel doubles A in registers
      put(want, at, acc, sum);
    }
  struct { DevPtr p[4]; int32_t pitch[3]; } args = {
      {kit_words(k, "a", (uint32_t *)a, AREA), kit_words(k, "b", (uint32_t *)b, AREA),
       kit_words(k, "c", (uint32_t *)c, AREA), kit_fill(k, "d", 0, AREA)}, {PITCH, PITCH, PITCH}};
  Source *src;
  Kernel *kernel;
  if (source_read(k->arena, file, &src, k->diag) != ST_OK ||
      device_load_ptx(k->dev, src, NULL, t->name, &kernel, k->diag) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
  kit_run(k, kernel, 1, 32, &args, 44);
  kit_read(k, args.p[3], (uint32_t *)got, AREA);
  if (memcmp(got, want, sizeof want))
    fail_msg("%s of %s is wrong", t->name, file);
}

static const char *wmma_file; // argument

static void test_wmma(void **state) {
#define FILES(target)                                                                              \
  TESTS_DIR "/nvcc/wmma." target ".O3.ptx", TESTS_DIR "/nvcc/wmma." target ".O0.ptx",              \
      TESTS_DIR "/nvcc/wmma." target ".debug.ptx"
  static const char *const files[] = {FILES("sm_80"), FILES("sm_90a")};
  enum { NFILES = sizeof files / sizeof *files };
  for (size_t i = 0; i < sizeof wmmas / sizeof *wmmas; i++)
    for (int f = 0; f < NFILES; f++)
      check_wmma(*state, &wmmas[i], wmma_file ? wmma_file : files[f]);
}

// ---- what is refused ----------------------------------------------------------------------------
typedef struct Trap {
  const char *what, *body;
  uint32_t block;
} Trap;

#define ZEROS "mov.b32 %r1, 0; mov.b32 %f1, 0f00000000;\n"
#define MMA                                                                                        \
  "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f2, %f3, %f4}, {%r1, %r1}, {%r1}, "     \
  "{%f1, %f1, %f1, %f1};\n"
#define SHARED                                                                                     \
  ".shared .align 16 .b8 s[512]; mov.u32 %r2, s; shl.b32 %r3, %r0, 4; add.u32 %r2, %r2, %r3;\n"
#define ROWS "st.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1}; bar.sync 0;\n"
#define LDMATRIX "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, "

static void test_traps(void **state) {
  Kit *k = *state;
  static const Trap traps[] = {
      {"a matrix instruction needs 32 threads: this warp has 16: mma.sync", ZEROS MMA, 16},
      {".aligned needs all lanes of the warp: lanes 80000000 have ended: mma.sync",
       ZEROS "setp.eq.u32 %p1, %r0, 31; @%p1 exit;\n" MMA, 32},
      {"register %r1 is read before it is written: mma.sync", "mov.b32 %f1, 0f00000000;" MMA, 32},
      // Lanes 8 to 31 have no row here; their addresses are not looked at.
      {"out of bounds: reads 16 bytes at offset 512 of shared memory (512 bytes): ldmatrix.sync."
       "aligned.m8n8.x1.shared.b16 {%r4}, [%r2+512]; in block (0,0,0) thread (0,0,0)",
       ZEROS SHARED ROWS LDMATRIX "[%r2+512];", 32},
      {"misaligned: reads 16 bytes at offset 8 of shared memory: ldmatrix",
       ZEROS SHARED ROWS LDMATRIX "[%r2+8];", 32},
      {"uninitialised read: byte 64 of shared memory was never written: ldmatrix",
       ZEROS SHARED "setp.ne.u32 %p1, %r0, 4; @%p1 " ROWS LDMATRIX "[%r2];", 32},
      {"out of bounds: writes 16 bytes at offset 512 of shared memory (512 bytes): stmatrix.sync",
       ZEROS SHARED "add.u32 %r2, %r2, 16; "
       "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r2], {%r1, %r1, %r1, %r1};", 32},
      {"0x10 is no address of shared memory: ldmatrix.sync.aligned.m8n8.x1.b16 {%r4}, [%rd2]; in "
       "block (0,0,0) thread (0,0,0)",
       "mov.u64 %rd2, 16; ldmatrix.sync.aligned.m8n8.x1.b16 {%r4}, [%rd2];", 32},
      {"address or stride differs from that of lane 0: wmma.load.c.sync",
       ZEROS SHARED ROWS "wmma.load.c.sync.aligned.row.m16n16k16.shared.f16 {%r4, %r5, %r6, %r7}, "
       "[s], %r0;", 32},
  };
  for (size_t i = 0; i < sizeof traps / sizeof *traps; i++) {
    Kernel *kernel = kit_body(k, 0, traps[i].body);
    Status st = kit_try(k, kernel, 1, traps[i].block, NULL, 0);
    if (st != ST_FAILED || !strstr(k->diag->first->what, traps[i].what))
      fail_msg("status %d\nwanted: %s\ngot:    %s", st, traps[i].what, diag_text(k->diag));
    diag_reset(k->diag);
  }
  // The last of 8 rows ends with the memory; lanes 8 to 31 point behind it.
  kit_run(k, kit_body(k, 0, ZEROS SHARED ROWS LDMATRIX "[%r2+384];"), 1, 32, NULL, 0);
  kit_run(k, kit_body(k, 0, ZEROS SHARED ROWS "cvt.u64.u32 %rd2, %r2; cvta.shared.u64 %rd2, %rd2; "
                            "ldmatrix.sync.aligned.m8n8.x1.b16 {%r4}, [%rd2];"),
          1, 32, NULL, 0);
}

// Lanes that come apart in front of a matrix instruction meet at it; the guarded one runs for all.
static void test_meeting(void **state) {
  Kit *k = *state;
  DevPtr out = kit_words(k, "out", NULL, 32);
  uint32_t got[32];
  kit_run(k, kit_body(k, 1,
                      "mov.b32 %r1, 0x3c003c00; setp.lt.u32 %p1, %r0, 9; mov.b32 %f1, 0f40000000;\n"
                      "@%p1 mov.b32 %f1, 0f3f800000; setp.lt.u32 %p2, %r0, 32;\n"
                      "@%p1 bra ON; mov.b32 %r2, 0;\nON:\n"
                      "@%p2 mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, "
                      "{%r1, %r1}, {%r1}, {%f1, %f1, %f1, %f1};\n"
                      "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd1, %rd0;\n"
                      "st.global.f32 [%rd1], %f2;"),
          1, 32, &out, sizeof out);
  kit_read(k, out, got, 32);
  for (int l = 0; l < 32; l++)
    assert_int_equal(got[l], l < 9 ? 0x41100000 : 0x41200000); // 8 + 1, 8 + 2
}

int main(int argc, char **argv) {
  wmma_file = argc > 1 ? argv[1] : NULL;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_mma, kit_setup_anywhere, kit_teardown),
      cmocka_unit_test_setup_teardown(test_imma, kit_setup_anywhere, kit_teardown),
      cmocka_unit_test_setup_teardown(test_rows, kit_setup_anywhere, kit_teardown),
      cmocka_unit_test_setup_teardown(test_movmatrix, kit_setup_anywhere, kit_teardown),
      cmocka_unit_test_setup_teardown(test_wmma, kit_setup_anywhere, kit_teardown),
      cmocka_unit_test_setup_teardown(test_traps, kit_setup, kit_teardown),
      cmocka_unit_test_setup_teardown(test_meeting, kit_setup_anywhere, kit_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
