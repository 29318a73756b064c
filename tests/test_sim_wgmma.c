// wgmma against the measured model, element by element: every N, type, major and swizzle, A from
// both places.  The products also run on a GPU (PTXSMITH_DEVICE=cuda:0) and must give the same
// bits.
#include <math.h>
#include <stdio.h>

#include "dtype.h"
#define KIT_SANITIZE false
#include "sim_kit.h"
#include "sim_matrix.h"

// ---- elements -----------------------------------------------------------------------------------
typedef struct Type {
  const char *name;
  MatrixType id;
  int bytes, k; // k: elements in the 32 bytes of one instruction
  int least;    // normal exponent
} Type;
enum { F16, BF16, TF32, E4M3, E5M2 };
static const Type types[] = {{"f16", MATRIX_F16, 2, 16, -14},    {"bf16", MATRIX_BF16, 2, 16, -126},
                             {"tf32", MATRIX_TF32, 4, 8, -126},  {"e4m3", MATRIX_E4M3, 1, 32, -6},
                             {"e5m2", MATRIX_E5M2, 1, 32, -14}};

static uint32_t random32(uint64_t *s) {
  *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*s >> 33);
}

// A finite value of moderate size; tf32 with low bits that the instruction drops.
static uint32_t random_bits(int type, uint64_t *s) {
  uint32_t r = random32(s), sign = r & 1, e = r >> 1 & 7, m = random32(s);
  switch (type) {
  case F16: return sign << 15 | (12 + e) << 10 | (m & 0x3ff);
  case BF16: return sign << 15 | (124 + e) << 7 | (m & 0x7f);
  case TF32: return sign << 31 | (124 + e) << 23 | (m & 0x7fffff);
  case E4M3: return sign << 7 | (4 + e) << 3 | (m & 7);
  default: return sign << 7 | (12 + e) << 2 | (m & 3);
  }
}

static float value_of(int type, uint32_t bits) {
  switch (type) {
  case F16: return (float)f16_to_double((uint16_t)bits);
  case BF16: return (float)bf16_to_double((uint16_t)bits);
  case E4M3: return (float)e4m3_to_double((uint8_t)bits);
  case E5M2: return (float)e5m2_to_double((uint8_t)bits);
  default: {
    float f;
    bits &= ~0x1fffu;
    memcpy(&f, &bits, 4);
    return f;
  }
  }
}

// ---- one product --------------------------------------------------------------------------------
typedef struct Config {
  int a, b, n;
  bool half;        // f16 accumulator
  bool a_regs, mn_a, mn_b;
  int swz_a, swz_b; // B: 0 none, 1 32 bytes, 2 64, 3 128
  int step_a, step_b; // 32-byte steps into the span
  bool zero;        // scale-d false in the first
  bool neg_a, neg_b;
} Config;

enum { A_AT = 0, B_AT = 16384, IMAGE = 49152 };
typedef struct Layout { uint32_t leading, stride; } Layout;

// Distances with gaps, so that no two of them can be mistaken for each other.
static Layout layout_of(bool mn, int swz, int rows) {
  uint32_t span = 16u << swz;
  if (!swz) return mn ? (Layout){.leading = 128 * (uint32_t)(rows / 8), .stride = 128}
                      : (Layout){.leading = 128, .stride = 256};
  return mn ? (Layout){.leading = 16 * span, .stride = 8 * span}
            : (Layout){.leading = 16, .stride = 8 * span};
}

// Byte offset of element (row, k) from the start address, by the manual's canonical layouts.
static uint32_t place(bool mn, int swz, Layout l, uint32_t start, uint32_t row, uint32_t k,
                      uint32_t bytes) {
  uint32_t span = 16u << swz, kb = k * bytes, mb = row * bytes, at;
  if (!mn && !swz) at = row % 8 * 16 + row / 8 * l.stride + kb / 16 * l.leading + kb % 16;
  else if (!mn) at = row % 8 * span + row / 8 * l.stride + kb;
  else if (!swz) at = mb % 16 + mb / 16 * l.stride + k % 8 * 16 + k / 8 * l.leading;
  else at = mb % span + mb / span * l.leading + k % 8 * span + k / 8 * l.stride;
  at += start;
  return at ^ (at >> 7 & ((1u << swz) - 1)) << 4;
}

static uint64_t desc_bits(Layout l, int swz) {
  static const uint64_t mode[] = {0, 3, 2, 1};
  return (uint64_t)(l.leading >> 4) << 16 | (uint64_t)(l.stride >> 4) << 32 | mode[swz] << 62;
}

static int regs_of(const Config *c) { return c->n / (c->half ? 4 : 2); }

// D registers as text.
static const char *list(Arena *a, const char *name, int n) {
  char *text = arena_strdup(a, "{");
  for (int i = 0; i < n; i++) text = arena_printf(a, "%s%s%%%s%d", text, i ? ", " : "", name, i);
  return arena_printf(a, "%s}", text);
}

static const char *mma_text(Kit *k, const Config *c, const char *scale) {
  const Type *a = &types[c->a], *b = &types[c->b];
  char *t = arena_printf(
      k->arena, "wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s %s, %s, %%rd9, %s, %d, %d", c->n,
      a->k, c->half ? "f16" : "f32", a->name, b->name, list(k->arena, "d", regs_of(c)),
      c->a_regs ? "{%a0, %a1, %a2, %a3}" : "%rd8", scale, c->neg_a ? -1 : 1, c->neg_b ? -1 : 1);
  if (a->bytes != 2) return arena_printf(k->arena, "%s;", t);
  return c->a_regs ? arena_printf(k->arena, "%s, %d;", t, c->mn_b)
                   : arena_printf(k->arena, "%s, %d, %d;", t, c->mn_a, c->mn_b);
}

// Shared memory from `image`, A registers and accumulators by thread, two products, accumulators
// out.
static char *kernel_text(Kit *k, const Config *c) {
  int nd = regs_of(c);
  const char *type = c->half ? "b32" : "f32";
  Layout la = layout_of(c->mn_a, c->swz_a, 64), lb = layout_of(c->mn_b, c->swz_b, c->n);
  char *t = arena_printf(k->arena,
      ".version 8.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 image, .param .u64 areg, .param .u64 acc, .param .u64 out)\n"
      ".maxntid 128\n{\n.reg .%s %%d<%d>; .reg .b32 %%a<4>; .reg .b32 %%r<16>; .reg .b64 %%rd<16>;"
      ".reg .pred %%p<4>;\n.shared .align 1024 .b8 s[%d];\n"
      "ld.param.u64 %%rd0, [image]; ld.param.u64 %%rd1, [areg]; ld.param.u64 %%rd2, [acc];\n"
      "ld.param.u64 %%rd3, [out]; mov.u32 %%r0, %%tid.x; mov.u32 %%r1, s; shl.b32 %%r2, %%r0, 2;\n"
      "L: cvt.u64.u32 %%rd4, %%r2; add.u64 %%rd4, %%rd0, %%rd4; ld.global.b32 %%r3, [%%rd4];\n"
      "add.u32 %%r4, %%r1, %%r2; st.shared.b32 [%%r4], %%r3; add.u32 %%r2, %%r2, 512;\n"
      "setp.lt.u32 %%p0, %%r2, %d; @%%p0 bra L;\n"
      "fence.proxy.async; bar.sync 0;\n"
      "mul.wide.u32 %%rd5, %%r0, 16; add.u64 %%rd5, %%rd1, %%rd5;\n"
      "ld.global.v4.b32 {%%a0, %%a1, %%a2, %%a3}, [%%rd5];\n"
      "mul.wide.u32 %%rd6, %%r0, %d; add.u64 %%rd7, %%rd2, %%rd6; add.u64 %%rd3, %%rd3, %%rd6;\n",
      type, nd, IMAGE, IMAGE, 4 * nd);
  for (int i = 0; i < nd; i++)
    t = arena_printf(k->arena, "%sld.global.%s %%d%d, [%%rd7+%d];\n", t, type, i, 4 * i);
  t = arena_printf(k->arena,
      "%sshr.u32 %%r5, %%r1, 4; and.b32 %%r5, %%r5, 0x3fff; cvt.u64.u32 %%rd10, %%r5;\n"
      "add.u64 %%rd8, %%rd10, 0x%llx; add.u64 %%rd9, %%rd10, 0x%llx;\n"
      "setp.ne.u32 %%p1, %d, 0;\nwgmma.fence.sync.aligned;\n%s\n%s\n"
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n", t,
      (unsigned long long)(desc_bits(la, c->swz_a) + (uint64_t)((A_AT + 32 * c->step_a) >> 4)),
      (unsigned long long)(desc_bits(lb, c->swz_b) + (uint64_t)((B_AT + 32 * c->step_b) >> 4)),
      c->zero ? 0 : 1, mma_text(k, c, "%p1"), mma_text(k, c, "1"));
  for (int i = 0; i < nd; i++)
    t = arena_printf(k->arena, "%sst.global.%s [%%rd3+%d], %%d%d;\n", t, type, 4 * i, i);
  return arena_printf(k->arena, "%sret;\n}\n", t);
}

typedef struct Data {
  uint8_t image[IMAGE];
  uint32_t areg[128 * 4], acc[128 * 128], out[128 * 128];
  float a[64][32], b[256][32];
} Data;

static void put_element(Data *d, uint32_t at, uint32_t bits, int bytes) {
  memcpy(d->image + at, &bits, (size_t)bytes);
}

// Where a thread holds element (row, k) of A: register, and the bits' position in it.
static void put_register(Data *d, int row, int k, uint32_t bits, const Type *t) {
  int kb = k * t->bytes, w = row >> 4, r = row & 15;
  int thread = 32 * w + 4 * (r & 7) + (kb & 15) / 4, reg = (r >> 3) + 2 * (kb >> 4);
  d->areg[4 * thread + reg] |= bits << 8 * (kb & 3);
}

static void fill(Data *d, const Config *c, uint64_t seed) {
  const Type *ta = &types[c->a], *tb = &types[c->b];
  Layout la = layout_of(c->mn_a, c->swz_a, 64), lb = layout_of(c->mn_b, c->swz_b, c->n);
  memset(d, 0, sizeof *d);
  for (uint32_t i = 0; i < IMAGE / 4; i++) { // what is not an operand must not matter
    uint32_t junk = 0x7fff7fff;
    memcpy(d->image + 4 * i, &junk, 4);
  }
  for (uint32_t row = 0; row < 64; row++)
    for (uint32_t k = 0; k < (uint32_t)ta->k; k++) {
      uint32_t bits = random_bits(c->a, &seed);
      d->a[row][k] = (c->neg_a ? -1 : 1) * value_of(c->a, bits);
      put_register(d, (int)row, (int)k, bits, ta);
      put_element(d, place(c->mn_a, c->swz_a, la, A_AT + 32 * (uint32_t)c->step_a, row, k,
                           (uint32_t)ta->bytes), bits, ta->bytes);
    }
  for (uint32_t col = 0; col < (uint32_t)c->n; col++)
    for (uint32_t k = 0; k < (uint32_t)tb->k; k++) {
      uint32_t bits = random_bits(c->b, &seed);
      d->b[col][k] = (c->neg_b ? -1 : 1) * value_of(c->b, bits);
      put_element(d, place(c->mn_b, c->swz_b, lb, B_AT + 32 * (uint32_t)c->step_b, col, k,
                           (uint32_t)tb->bytes), bits, tb->bytes);
    }
  for (int i = 0; i < 128 * regs_of(c); i++)
    d->acc[i] = c->half ? random_bits(F16, &seed) | random_bits(F16, &seed) << 16
                        : random_bits(TF32, &seed);
}

// Accumulator (row, col): thread and, in 32-bit elements, index.
static float accumulator(const Config *c, const uint32_t *regs, int row, int col) {
  int thread = 32 * (row >> 4) + 4 * (row & 7) + (col & 7) / 2;
  int i = 4 * (col >> 3) + 2 * (row >> 3 & 1) + (col & 1), nd = regs_of(c);
  float f;
  if (c->half)
    return (float)f16_to_double((uint16_t)(regs[thread * nd + i / 2] >> 16 * (i & 1)));
  memcpy(&f, &regs[thread * nd + i], 4);
  return f;
}

static const char *name_of(Kit *k, const Config *c) {
  return arena_printf(k->arena, "n%d %s.%s%s a %s%s swizzle %d, b %s swizzle %d", c->n,
                      types[c->a].name, types[c->b].name, c->half ? " f16" : "",
                      c->a_regs ? "registers" : "memory ", c->mn_a ? "mn" : "k", c->swz_a,
                      c->mn_b ? "mn" : "k", c->swz_b);
}

static void compare(Kit *k, const Config *c, const Data *d) {
  const Type *t = &types[c->a];
  MatrixRuleId rule = t->bytes == 1 ? (c->half ? MATRIX_RULE_WGMMA8_F16 : MATRIX_RULE_WGMMA8_F32)
                                    : (c->half ? MATRIX_RULE_F16 : MATRIX_RULE_F32);
  const MatrixRule *m = &matrix_rules[rule];
  for (int row = 0; row < 64; row++)
    for (int col = 0; col < c->n; col++) {
      float start = c->zero ? 0 : accumulator(c, d->acc, row, col), want = start;
      double plain = start, size = fabs(start);
      for (int turn = 0; turn < 2; turn++) {
        want = matrix_exact(m, t->k, (MatrixLine){d->a[row], 1, t->least},
                            (MatrixLine){d->b[col], 1, types[c->b].least}, want);
        for (int i = 0; i < t->k; i++) {
          plain += (double)d->a[row][i] * d->b[col][i];
          size += fabs((double)d->a[row][i] * d->b[col][i]);
        }
      }
      float got = accumulator(c, d->out, row, col);
      if (memcmp(&got, &want, 4))
        fail_msg("%s: D(%d, %d) = %a, not %a", name_of(k, c), row, col, (double)got, (double)want);
      double loose = c->half ? 0x1p-9 : t->bytes == 1 ? 0x1p-7 : 0x1p-18;
      assert_true(fabs((double)got - plain) <= loose * size);
    }
}

static void product(Kit *k, const Config *c) {
  static Data d;
  fill(&d, c, 1000 + (uint64_t)c->n);
  char *text = kernel_text(k, c);
  Source *src = source_new(k->arena, "wgmma.ptx", text, strlen(text));
  Kernel *kernel = NULL;
  if (device_load_ptx(k->dev, src, NULL, NULL, &kernel, k->diag) != ST_OK)
    fail_msg("%s: %s", name_of(k, c), diag_text(k->diag));
  uint32_t nd = 128 * (uint32_t)regs_of(c);
  DevPtr args[4] = {kit_words(k, "image", (uint32_t *)d.image, IMAGE / 4),
                    kit_words(k, "areg", d.areg, 128 * 4), kit_words(k, "acc", d.acc, nd),
                    kit_words(k, "out", NULL, nd)};
  if (kit_try(k, kernel, 1, 128, args, sizeof args) != ST_OK)
    fail_msg("%s: %s", name_of(k, c), diag_text(k->diag));
  kit_read(k, args[3], d.out, nd);
  compare(k, c, &d);
  for (int i = 0; i < 4; i++) device_free(k->dev, args[i]);
  kernel_free(kernel);
  arena_reset(k->arena);
}

// MN-major strips are whole: rows * 2 bytes is a multiple of the span.
static bool fits(const Config *c) { return !c->mn_b || c->n * 2 % (16 << c->swz_b) == 0; }

static void test_every_n(void **state) {
  static const int pairs[][2] = {
      {F16, F16}, {BF16, BF16}, {TF32, TF32}, {E4M3, E5M2}, {E5M2, E4M3}};
  for (int n = 8; n <= 256; n += 8) {
    int i = n / 8;
    const int *p = pairs[i % 5];
    Config c = {.a = p[0], .b = p[1], .n = n, .a_regs = i % 3 == 0, .swz_a = i % 4,
                .swz_b = (i + 2) % 4, .zero = i & 1};
    product(*state, &c);
  }
}

static void test_layouts(void **state) {
  for (int type = F16; type <= BF16; type++)
    for (int i = 0; i < 64; i++) {
      Config c = {.a = type, .b = type, .n = i & 1 ? 64 : 128, .mn_a = i & 2, .mn_b = i & 4,
                  .swz_a = i >> 3 & 3, .swz_b = (i >> 3 & 3) ^ (i >> 5 ? 3 : 0)};
      if (!c.mn_a) c.step_a = c.swz_a > 1;     // 64 and 128 bytes have room for a second step
      if (!c.mn_b && c.swz_b == 3) c.step_b = 3;
      if (fits(&c)) product(*state, &c);
    }
}

static void test_variants(void **state) {
  static const Config cases[] = {
      {.a = F16, .b = F16, .n = 64, .half = true, .swz_a = 3, .swz_b = 3},
      {.a = F16,
       .b = F16,
       .n = 24,
       .half = true,
       .a_regs = true,
       .mn_b = true,
       .swz_b = 0,
       .zero = true},
      {.a = E4M3, .b = E4M3, .n = 96, .half = true, .swz_a = 2, .swz_b = 1},
      {.a = E5M2, .b = E5M2, .n = 32, .a_regs = true, .swz_b = 3},
      {.a = F16, .b = F16, .n = 40, .swz_a = 1, .swz_b = 2, .neg_a = true},
      {.a = BF16, .b = BF16, .n = 48, .a_regs = true, .mn_b = true, .swz_b = 1, .neg_b = true},
      {.a = TF32, .b = TF32, .n = 72, .a_regs = true, .swz_b = 3, .neg_a = true, .neg_b = true},
      {.a = E4M3, .b = E5M2, .n = 16, .swz_a = 3, .swz_b = 3, .neg_b = true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    product(*state, &cases[i]);
}

// ---- what is wrong ------------------------------------------------------------------------------
// Zeros in 4096 bytes: A, 64 rows of 32 bytes, at 0 (%rd10), B, 8 columns, at 2048 (%rd11); without
// a swizzle.  %f0 to %f7 and %r4 to %r7 are written.
#define ZEROS                                                                                      \
  ".shared .align 128 .b8 s[4096]; shl.b32 %r1, %r0, 5; mov.u32 %r2, s; add.u32 %r2, %r2, %r1;"   \
  "mov.b32 %r3, 0; st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3};"                                  \
  "st.shared.v4.b32 [%r2+16], {%r3, %r3, %r3, %r3}; fence.proxy.async; bar.sync 0;"
#define REGS                                                                                       \
  "mov.u32 %r8, s; and.b32 %r8, %r8, 0x3ffff; shr.u32 %r8, %r8, 4; cvt.u64.u32 %rd9, %r8;"         \
  "add.u64 %rd10, %rd9, 0x0000001000080000; add.u64 %rd11, %rd10, 128;"                            \
  "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;"                 \
  "mov.f32 %f4, %f0; mov.f32 %f5, %f0; mov.f32 %f6, %f0; mov.f32 %f7, %f0;"                        \
  "mov.b32 %r4, 0; mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b32 %r7, 0;"
#define START ZEROS REGS
#define NAME "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
#define FENCE "wgmma.fence.sync.aligned;"
#define MMA NAME "{%f0, %f1, %f2, %f3}, %rd10, %rd11, 1, 1, 1, 0, 0;"
#define MMA_REGS NAME "{%f0, %f1, %f2, %f3}, {%r4, %r5, %r6, %r7}, %rd11, 1, 1, 1, 0;"
#define OTHER NAME "{%f4, %f5, %f6, %f7}, %rd10, %rd11, 1, 1, 1, 0, 0;"
#define COMMIT "wgmma.commit_group.sync.aligned;"
#define WAIT(n) "wgmma.wait_group.sync.aligned " #n ";"

typedef struct Case {
  const char *what; // stands in the first line; NULL: the kernel is right
  const char *body;
  uint32_t block;
} Case;

static void expect(Kit *k, const Case *c) {
  Kernel *kernel = kit_body(k, 0, c->body);
  Status st = kit_try(k, kernel, 1, c->block, NULL, 0);
  bool as_wanted = c->what ? st == ST_FAILED && strstr(k->diag->first->what, c->what) : st == ST_OK;
  if (!as_wanted)
    fail_msg("status %d\nwanted: %s\ngot:    %s", st, c->what ? c->what : "nothing",
             diag_text(k->diag));
  diag_reset(k->diag);
  kernel_free(kernel);
}

static void test_registers(void **state) {
  static const Case cases[] = {
      {"no wgmma.fence came before the warp's first wgmma: wgmma.mma_async",
       START MMA COMMIT WAIT(0), 128},
      {"no wgmma.fence since line 8 wrote a register of it: wgmma.mma_async.sync.aligned.m64n8k16",
       START FENCE "\nmov.f32 %f1, %f0;\n" MMA COMMIT WAIT(0), 128},
      {"no wgmma.fence since line 8 wrote a register of it: wgmma.mma_async.sync.aligned.m64n8k16",
       START FENCE "\nmov.b32 %r6, 1;\n" MMA_REGS COMMIT WAIT(0), 128},
      // On the path that was taken only.
      {NULL,
       START FENCE "setp.gt.u32 %p1, %r0, 500; @%p1 mov.f32 %f1, %f0; @%p1 bra L; " FENCE
                   "L: " MMA COMMIT WAIT(0),
       128},
      {"register %f2 is in flight: the wgmma of line 8 writes it until wgmma.wait_group: add.f32 "
       "%f4, "
       "%f2, %f2;",
       START FENCE "\n" MMA "\n" COMMIT "add.f32 %f4, %f2, %f2;" WAIT(0), 128},
      {"register %f2 is in flight: the wgmma of line 8 writes it until wgmma.wait_group: mov.f32 "
       "%f2, "
       "%f4;",
       START FENCE "\n" MMA "\n" COMMIT "mov.f32 %f2, %f4;" WAIT(0), 128},
      {"register %r5 is in flight: the wgmma of line 8 reads it until wgmma.wait_group: mov.b32 "
       "%r5, "
       "1;",
       START FENCE "\n" MMA_REGS "\n" COMMIT "mov.b32 %r5, 1;" WAIT(0), 128},
      {NULL, START FENCE MMA_REGS COMMIT "add.u32 %r9, %r5, 1;" WAIT(0) "add.f32 %f5, %f2, %f2;",
       128},
      // The older of two groups is complete behind wait_group 1.
      {NULL, START FENCE MMA COMMIT OTHER COMMIT WAIT(1) "add.f32 %f8, %f2, %f2;" WAIT(0), 128},
      {"register %f6 is in flight: the wgmma of line 8 writes it until wgmma.wait_group: add.f32",
       START FENCE MMA COMMIT "\n" OTHER "\n" COMMIT WAIT(1) "add.f32 %f8, %f6, %f2;" WAIT(0), 128},
      // What was not committed is not waited for.
      {"register %f2 is in flight: the wgmma of line 8",
       START FENCE "\n" MMA "\n" WAIT(0) "add.f32 %f4, %f2, %f2;" COMMIT WAIT(0), 128},
      {NULL, START FENCE MMA MMA MMA COMMIT WAIT(0), 128}, // the same accumulators, in order
      {"register %f2 is in flight: the wgmma of line 8 writes it until wgmma.wait_group: "
       "wgmma.mma_a",
       START FENCE "\n" MMA "\n" NAME
                   "{%f2, %f3, %f4, %f5}, %rd10, %rd11, 1, 1, 1, 0, 0;" COMMIT WAIT(0),
       128},
      {"the warp ended without wgmma.wait_group for this: wgmma.mma_async", START FENCE MMA COMMIT,
       128},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect(*state, &cases[i]);
}

#define WARP_1 "shr.u32 %r9, %r0, 5; setp.eq.u32 %p1, %r9, 1;"

static void test_groups(void **state) {
  static const Case cases[] = {
      {"wgmma needs a warpgroup of four warps: this one has 3: wgmma.fence.sync.aligned;", FENCE,
       96},
      {"the descriptor of A is 0x1000080080 here, 0x1000080000 in lane 0: ",
       START "setp.eq.u32 %p1, %r0, 5; @%p1 add.u64 %rd10, %rd10, 128;" FENCE MMA COMMIT WAIT(0),
       128},
      {"the descriptor of B is 0x1000080000 here, 0x1000080080 in warp 0 of the warpgroup: ",
       START WARP_1 "@%p1 sub.u64 %rd11, %rd11, 128;" FENCE MMA COMMIT WAIT(0), 128},
      {"warp 0 of the warpgroup issued the wgmma of line 7 here: all four must execute the same",
       START FENCE WARP_1 "@%p1 bra L;" MMA "bra M;\nL: " MMA "M: " COMMIT WAIT(0), 128},
      {"scale-d differs among the lanes of the warp: fffffff0",
       START FENCE "setp.gt.u32 %p1, %r0, 3;" NAME
                   "{%f0, %f1, %f2, %f3}, %rd10, %rd11, %p1, 1, 1, 0, 0;" COMMIT WAIT(0),
       128},
      {"deadlock: no thread of the block can go on: wgmma.wait_group",
       START FENCE WARP_1 "@%p1 bra L;" MMA COMMIT WAIT(0) "L: bar.sync 1;", 128},
      {"deadlock: no thread of the block can go on: wgmma.wait_group",
       START FENCE WARP_1 "@%p1 exit;" MMA COMMIT WAIT(0), 128},
      {NULL,
       START FENCE WARP_1 "@!%p1 bra L; bar.sync 1, 64; L: @%p1 bra M; setp.gt.u32 %p2, %r0, 95;"
                          "@%p2 bar.sync 1, 64; M: " MMA COMMIT WAIT(0),
       128}, // warps that come late
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect(*state, &cases[i]);
}

static void test_memory(void **state) {
  static const Case cases[] = {
      {"writes byte 0 of shared memory in flight: the wgmma of line 8 reads it until "
       "wgmma.wait_group: "
       "st.shared.b32 [%r2], 7;",
       START FENCE "\n" MMA "\n" COMMIT "st.shared.b32 [%r2], 7;" WAIT(0), 128},
      {NULL,
       START FENCE MMA COMMIT
       "ld.shared.b32 %r9, [%r2]; setp.eq.u32 %p1, %r0, 72;"
       "@%p1 st.shared.b32 [s+2304], %r9;" WAIT(0) "bar.sync 0; st.shared.b32 [%r2], %r9;",
       128},
      // The own wait says nothing about the other warps'.
      {"shared memory in flight: the wgmma of line 7 reads it",
       START FENCE MMA COMMIT WAIT(0) "st.shared.b32 [%r2], 7;", 128},
      {"out of bounds: B, by its descriptor 0x10000800fc, is at offsets 4032 to 4287 of shared "
       "memory "
       "(4096 bytes): wgmma",
       START "add.u64 %rd11, %rd11, 124;" FENCE MMA COMMIT WAIT(0), 128},
      {"uninitialised read: byte 0 of shared memory, in A, was never written: wgmma.mma_async",
       ".shared .align 128 .b8 s[4096];" REGS FENCE MMA COMMIT WAIT(0), 128},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect(*state, &cases[i]);
}

// Sanitized: what threads wrote needs their fence.proxy.async before the barrier.
static void test_proxy(void **state) {
  static const Case cases[] = {
      {NULL, START FENCE MMA COMMIT WAIT(0) "bar.sync 0; st.shared.b32 [%r2], 7;", 128},
      {"fence.proxy.async: reads byte 0 of shared memory, which another thread wrote: wgmma",
       START "st.shared.b32 [%r2], 7; bar.sync 0;" FENCE MMA COMMIT WAIT(0), 128},
  };
  Kit *k = *state;
  device_sim_opts(k->dev, &(SimOpts){.threads = 1, .sanitize = true});
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect(k, &cases[i]);
  Kernel *late = kit_body(k, 0, START "st.shared.b32 [%r2], 7; bar.sync 0; fence.proxy.async;" FENCE
                                MMA COMMIT WAIT(0));
  assert_int_equal(kit_try(k, late, 1, 128, NULL, 0), ST_OK); // a warning
  assert_non_null(
      strstr(diag_text(k->diag), "late fence.proxy.async: reads byte 0 of shared memory"));
  diag_reset(k->diag);
  kernel_free(late);
  product(k, &(Config){.a = F16, .b = F16, .n = 128, .swz_a = 3, .mn_b = true, .swz_b = 3});
  product(k, &(Config){.a = E4M3, .b = E4M3, .n = 40, .a_regs = true, .swz_b = 2});
  device_sim_opts(k->dev, &(SimOpts){.threads = 1});
}

// A bulk copy must not write what a wgmma in flight reads.
static void test_bulk(void **state) {
  static const char body[] = START
      ".shared .align 8 .b64 bar; setp.eq.u32 %p1, %r0, 0; mov.u32 %r8, bar;"
      "@%p1 mbarrier.init.shared.b64 [%r8], 1; fence.mbarrier_init.release.cluster; bar.sync "
      "0;" FENCE "\n" MMA "\n" COMMIT
      "@!%p1 bra L; mbarrier.arrive.expect_tx.shared.b64 _, [%r8], 64;"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0], 64, [%r8];"
      "L: " WAIT(0);
  Kit *k = *state;
  Kernel *kernel = kit_body(k, 1, body);
  DevPtr in = kit_fill(k, "in", 0, 16);
  assert_int_equal(kit_try(k, kernel, 1, 128, &in, 8), ST_FAILED);
  if (!strstr(k->diag->first->what,
              "shared memory in flight: the wgmma of line 9 reads it until "
              "wgmma.wait_group: cp.async.bulk"))
    fail_msg("%s", diag_text(k->diag));
  diag_reset(k->diag);
  kernel_free(kernel);
  device_free(k->dev, in);
}

int main(void) {
  const struct CMUnitTest anywhere[] = {cmocka_unit_test(test_every_n),
                                        cmocka_unit_test(test_layouts),
                                        cmocka_unit_test(test_variants)};
  const struct CMUnitTest on_sim[] = {cmocka_unit_test(test_registers),
                                      cmocka_unit_test(test_groups), cmocka_unit_test(test_memory),
                                      cmocka_unit_test(test_proxy), cmocka_unit_test(test_bulk)};
  int failed = cmocka_run_group_tests(anywhere, kit_setup_anywhere, kit_teardown);
  return failed + cmocka_run_group_tests(on_sim, kit_setup, kit_teardown);
}
