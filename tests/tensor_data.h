// What an H200 returned (tests/data/tensor/): the instructions and their records.
#ifndef PTXSMITH_TESTS_TENSOR_DATA_H
#define PTXSMITH_TESTS_TENSOR_DATA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim_matrix.h"

typedef struct Inst {
  const char *file;
  const char *ptx; // of mma.sync, without .sync.aligned
  MatrixType type;
  int k;
  MatrixRuleId rule;
} Inst;

static const Inst insts[] = {
    {"mma.f16.k16", "m16n8k16.row.col.f32.f16.f16.f32",
     MATRIX_F16, 16, MATRIX_RULE_F32},
    {"mma.f16.k8", "m16n8k8.row.col.f32.f16.f16.f32",
     MATRIX_F16, 8, MATRIX_RULE_F32},
    {"mma.f16.k16.f16", "m16n8k16.row.col.f16.f16.f16.f16",
     MATRIX_F16, 16, MATRIX_RULE_F16},
    {"mma.f16.k8.f16", "m16n8k8.row.col.f16.f16.f16.f16",
     MATRIX_F16, 8, MATRIX_RULE_F16},
    {"mma.bf16.k16", "m16n8k16.row.col.f32.bf16.bf16.f32",
     MATRIX_BF16, 16, MATRIX_RULE_F32},
    {"mma.bf16.k8", "m16n8k8.row.col.f32.bf16.bf16.f32",
     MATRIX_BF16, 8, MATRIX_RULE_F32},
    {"mma.tf32.k8", "m16n8k8.row.col.f32.tf32.tf32.f32",
     MATRIX_TF32, 8, MATRIX_RULE_F32},
    {"mma.tf32.k4", "m16n8k4.row.col.f32.tf32.tf32.f32",
     MATRIX_TF32, 4, MATRIX_RULE_F32},
    {"mma.e4m3.k32", "m16n8k32.row.col.f32.e4m3.e4m3.f32",
     MATRIX_E4M3, 32, MATRIX_RULE_MMA8_F32},
    {"mma.e5m2.k32", "m16n8k32.row.col.f32.e5m2.e5m2.f32",
     MATRIX_E5M2, 32, MATRIX_RULE_MMA8_F32},
    {"mma.e4m3.k32.f16", "m16n8k32.row.col.f16.e4m3.e4m3.f16",
     MATRIX_E4M3, 32, MATRIX_RULE_MMA8_F16},
    {"wgmma.f16.k16", NULL, MATRIX_F16, 16, MATRIX_RULE_F32},
    {"wgmma.f16.k16.f16", NULL, MATRIX_F16, 16, MATRIX_RULE_F16},
    {"wgmma.bf16.k16", NULL, MATRIX_BF16, 16, MATRIX_RULE_F32},
    {"wgmma.tf32.k8", NULL, MATRIX_TF32, 8, MATRIX_RULE_F32},
    {"wgmma.e4m3.k32", NULL, MATRIX_E4M3, 32, MATRIX_RULE_WGMMA8_F32},
    {"wgmma.e5m2.k32", NULL, MATRIX_E5M2, 32, MATRIX_RULE_WGMMA8_F32},
    {"wgmma.e4m3.k32.f16", NULL, MATRIX_E4M3, 32, MATRIX_RULE_WGMMA8_F16},
};

enum { NINSTS = sizeof insts / sizeof *insts };

// These have records of special values only.
static const Inst special_insts[] = {
    {"mma.e5m2.k32.f16", "m16n8k32.row.col.f16.e5m2.e5m2.f16",
     MATRIX_E5M2, 32, MATRIX_RULE_MMA8_F16},
    {"wgmma.e5m2.k32.f16", NULL, MATRIX_E5M2, 32, MATRIX_RULE_WGMMA8_F16},
};

// One tile as registers: 4 words of A at most, 2 of B, accumulators before and after.
typedef struct Tile {
  uint32_t a[4][32], b[2][32], c[4][32], d[4][32];
} Tile;

// folder: whole tiles from there, or NULL: the upper halves that are kept here.
static inline uint8_t *read_all(const char *folder, const char *name, long *bytes) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s.bin", folder ? folder : TESTS_DIR "/data/tensor", name);
  FILE *f = fopen(path, "rb");
  if (!f)
    fail_msg("%s does not open", path);
  fseek(f, 0, SEEK_END);
  *bytes = ftell(f);
  rewind(f);
  uint8_t *data = malloc((size_t)*bytes);
  assert_int_equal(fread(data, 1, (size_t)*bytes, f), *bytes);
  fclose(f);
  return data;
}

// `n` registers, of which the file has every `step`-th.
static inline const uint8_t *take(const uint8_t *p, uint32_t (*to)[32], int n, int step) {
  for (int i = 0; i < n; i += step, p += 128)
    memcpy(to[i], p, 128);
  return p;
}

static inline int words_a(const Inst *in) { return in->k * matrix_type_bits(in->type) / 64; }

// Reads a tile; from half tiles, rows 8 to 15 become those of rows 0 to 7.
static inline const uint8_t *next_tile(const Inst *in, bool half, const uint8_t *p, Tile *t) {
  int na = words_a(in), nb = na / 2, nc = matrix_rules[in->rule].half ? 2 : 4;
  p = take(p, t->a, na, half ? 2 : 1);
  p = take(p, t->b, nb, 1);
  p = take(p, t->c, half ? nc / 2 : nc, 1);
  p = take(p, t->d, half ? nc / 2 : nc, 1);
  if (!half)
    return p;
  for (int i = 0; i < na; i += 2)
    memcpy(t->a[i + 1], t->a[i], 128);
  memcpy(t->c[nc / 2], t->c[0], 64 * (size_t)nc);
  memcpy(t->d[nc / 2], t->d[0], 64 * (size_t)nc);
  return p;
}

#endif
