// The tensor cores' products against what an H200 returned, bit for bit: tests/data/tensor/.
// With a folder as argument: whole tiles from there instead of the upper halves.
#include "sim_lanes.h"
#include "tensor_data.h"

static const char *const sets[] = {"baseline", "avx2", "avx512"};
enum { NSETS = sizeof sets / sizeof *sets };

static const char *folder; // argument

static void multiply(const MatrixIsa *isa, const Inst *in, const Tile *t, uint32_t out[4][32]) {
  static MatrixA a;
  static MatrixB b;
  const MatrixRule *rule = &matrix_rules[in->rule];
  const uint32_t *wa[4] = {t->a[0], t->a[1], t->a[2], t->a[3]}, *wb[2] = {t->b[0], t->b[1]};
  float acc[4][32];
  float *pacc[4] = {acc[0], acc[1], acc[2], acc[3]};
  isa->load_a(&a, in->type, in->k, wa);
  isa->load_b(&b, in->type, in->k, wb);
  if (rule->half)
    isa->unpack(pacc, (const uint32_t *[2]){t->c[0], t->c[1]});
  else
    memcpy(acc, t->c, sizeof acc);
  isa->multiply(rule, in->k, &a, &b, (const float *const *)pacc, pacc);
  if (rule->half)
    isa->pack((uint32_t *[2]){out[0], out[1]}, (const float *const *)pacc);
  else
    memcpy(out, acc, sizeof acc);
}

static int check_file(const MatrixIsa *isa, const Inst *in, const char *suffix, int *wrong) {
  long bytes;
  char name[64];
  snprintf(name, sizeof name, "%s%s", in->file, suffix);
  uint8_t *data = read_all(folder, name, &bytes);
  const uint8_t *p = data;
  int n = 0, words = matrix_rules[in->rule].half ? 2 : 4;
  while (p < data + bytes) {
    Tile t;
    uint32_t out[4][32];
    p = next_tile(in, !folder, p, &t);
    multiply(isa, in, &t, out);
    for (int i = 0; i < words * 32; i++, n++)
      *wrong += out[i >> 5][i & 31] != t.d[i >> 5][i & 31];
  }
  assert_ptr_equal(p, data + bytes);
  free(data);
  return n;
}

static void gpu_bits(void **state) {
  (void)state;
  for (int s = 0; s < NSETS; s++) {
    const LaneIsa *isa = lane_isa(sets[s]);
    int bad = 0;
    for (int i = 0; isa && i < NINSTS; i++) {
      int wrong = 0, n = check_file(isa->matrix, &insts[i], "", &wrong);
      if (folder || wrong)
        print_message("%-9s %-20s %d of %d words differ\n", sets[s], insts[i].file, wrong, n);
      bad += wrong;
    }
    assert_int_equal(bad, 0);
  }
}

// Infinities, NaN with all kinds of payloads, zeros of both signs, overflow, subnormals.
static void gpu_specials(void **state) {
  (void)state;
  for (int s = 0; s < NSETS && !folder; s++) {
    const LaneIsa *isa = lane_isa(sets[s]);
    for (int i = 0; isa && i < NINSTS + 2; i++) {
      const Inst *in = i < NINSTS ? &insts[i] : &special_insts[i - NINSTS];
      int wrong = 0, n = check_file(isa->matrix, in, ".special", &wrong);
      if (wrong) fail_msg("%s %s.special: %d of %d words differ", sets[s], in->file, wrong, n);
    }
  }
}

// ---- the vector code against the model ----------------------------------------------------------
static uint32_t next_random(uint64_t *seed) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*seed >> 32);
}

// Any bits at all: every exponent, subnormals, infinities and NaN; or few of them; or exponents in
// a band so narrow that all products are near the top of the sum's range.
typedef enum Flavour { ANY_BITS, NO_SPECIALS, LARGEST, FLAVOURS } Flavour;

static uint32_t random_word(MatrixType t, Flavour f, uint64_t *seed) {
  uint32_t u = next_random(seed);
  if (f == ANY_BITS)
    return next_random(seed) % 7 ? u : 0;
  static const uint32_t clear[] = {0x40004000, 0x40004000, 0x40000000, 0x40404040, 0x40404040};
  static const uint32_t most[] = {0x03ff03ff, 0x007f007f, 0x007fe000, 0x07070707, 0x03030303};
  return f == NO_SPECIALS ? u & ~clear[t] : (most[t] | clear[t] | (u & 0x80000000));
}

static uint32_t same_bits(float got, float want) { return memcmp(&got, &want, 4) == 0; }

static void against_model(const MatrixIsa *isa, const char *set, const Inst *in, uint64_t *seed,
                          Flavour f) {
  static MatrixA a;
  static MatrixB b;
  uint32_t w[6][32];
  float c[4][32], d[4][32];
  const MatrixRule *rule = &matrix_rules[in->rule];
  for (int i = 0; i < 6 * 32; i++)
    w[i >> 5][i & 31] = random_word(in->type, f, seed);
  isa->load_a(&a, in->type, in->k, (const uint32_t *[4]){w[0], w[1], w[2], w[3]});
  isa->load_b(&b, in->type, in->k, (const uint32_t *[2]){w[4], w[5]});
  uint32_t pairs[2][32];
  for (int i = 0; i < 4 * 32; i++) {
    uint32_t u = f == LARGEST ? 0x40ffffff : next_random(seed);
    memcpy(&c[i >> 5][i & 31], &u, 4);
    pairs[i >> 6][i & 31] = u;
  }
  const float *pc[4] = {c[0], c[1], c[2], c[3]};
  float *pd[4] = {d[0], d[1], d[2], d[3]};
  if (rule->half)
    isa->unpack((float *[4]){c[0], c[1], c[2], c[3]}, (const uint32_t *[2]){pairs[0], pairs[1]});
  isa->multiply(rule, in->k, &a, &b, pc, pd);
  for (int row = 0; row < 16; row++)
    for (int n = 0; n < 8; n++) {
      int i = 2 * (row >> 3) + (n & 1), lane = 4 * (row & 7) + (n >> 1);
      int col = 4 * (n & 1) + (n >> 1);
      MatrixLine x = {a.value + row * in->k, 1, a.least}, y = {b.value + col, 8, b.least};
      float want = matrix_exact(rule, in->k, x, y, c[i][lane]);
      if (!same_bits(d[i][lane], want))
        fail_msg("%s %s flavour %d: %a instead of %a (row %d, column %d)", set, in->file, f,
                 d[i][lane], want, row, n);
    }
}

static void vector_code_is_the_model(void **state) {
  (void)state;
  for (int s = 0; s < NSETS; s++) {
    const LaneIsa *isa = lane_isa(sets[s]);
    uint64_t seed = 20261129;
    for (int i = 0; isa && i < NINSTS; i++)
      for (int n = 0; n < 60; n++)
        against_model(isa->matrix, sets[s], &insts[i], &seed, (Flavour)(n % FLAVOURS));
  }
}

// ---- infinities and NaN -------------------------------------------------------------------------
typedef struct Special {
  uint32_t a, b, c, d; // one product a * b of bf16, then c
} Special;

static void specials(void **state) {
  (void)state;
  static const Special cases[] = {
      {0x7f80, 0x3f80, 0x3f800000, 0x7f800000}, // inf * 1 + 1
      {0xff80, 0x3f80, 0x3f800000, 0xff800000},
      {0x7f80, 0x0000, 0x3f800000, MATRIX_NAN}, // inf * 0
      {0x7f80, 0x3f80, 0xff800000, MATRIX_NAN}, // inf - inf
      {0x3f80, 0x3f80, 0xff800000, 0xff800000},
      {0xffc1, 0x3f80, 0x3f800000, MATRIX_NAN},
      {0x3f80, 0x3f80, 0xff812345, MATRIX_NAN},
      {0x0000, 0x8000, 0x80000000, 0x00000000}, // sums of zeros are +0
      {0x7f7f, 0x7f7f, 0x00000000, 0x7f800000}, // too large
      {0x0001, 0x3f80, 0x80000000, 0x00010000}, // subnormals are not flushed
  };
  for (int s = 0; s < NSETS; s++) {
    const LaneIsa *isa = lane_isa(sets[s]);
    for (size_t i = 0; isa && i < sizeof cases / sizeof *cases; i++) {
      Tile t = {0};
      uint32_t out[4][32];
      t.a[0][0] = cases[i].a, t.b[0][0] = cases[i].b, t.c[0][0] = cases[i].c;
      multiply(isa->matrix, &(Inst){"", NULL, MATRIX_BF16, 8, MATRIX_RULE_F32}, &t, out);
      if (out[0][0] != cases[i].d)
        fail_msg("%s case %zu: %08x instead of %08x", sets[s], i, out[0][0], cases[i].d);
    }
  }
}

// ---- memory as words ----------------------------------------------------------------------------
// Element (row, k) of a matrix of half-words is 32 row + k; B's "rows" are its columns.
static void words_of_memory(void **state) {
  (void)state;
  enum { PITCH = 40 };
  for (int nrows = 8; nrows <= 16; nrows += 8) {
    uint16_t across[16 * PITCH];
    uint32_t v[4][32];
    for (int row = 0; row < nrows; row++)
      for (int k = 0; k < 16; k++)
        across[k * PITCH + row] = (uint16_t)(32 * row + k);
    matrix_words_across(v, across, 2 * PITCH, nrows, 16);
    for (int r = 0; r < nrows / 4; r++)
      for (int lane = 0; lane < 32; lane++) { // the fragments of the ISA: m16n8k16, A and B
        int row = lane / 4 + (nrows == 16 ? 8 * (r & 1) : 0);
        int k = 2 * (lane & 3) + 8 * (nrows == 16 ? r >> 1 : r);
        uint32_t want = (uint32_t)(32 * row + k) | (uint32_t)(32 * row + k + 1) << 16;
        assert_int_equal(v[r][lane], want);
      }
  }
}

int main(int argc, char **argv) {
  folder = argc > 1 ? argv[1] : NULL;
  const struct CMUnitTest tests[] = {cmocka_unit_test(gpu_bits), cmocka_unit_test(gpu_specials),
                                     cmocka_unit_test(vector_code_is_the_model),
                                     cmocka_unit_test(specials),
                                     cmocka_unit_test(words_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
