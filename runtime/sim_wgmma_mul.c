// sim_wgmma_mul.c: the products of one wgmma: A of four warps, each tile of B converted once.
#include "sim_async.h"
#include "sim_count.h"
#include "sim_matrix_ops.h"
#include "sim_wgmma.h"

// ---- operands in shared memory ------------------------------------------------------------------
typedef struct Operand {
  const uint8_t *data; // shared memory
  const uint32_t *at;  // of the chunks
  int chunks, rows;
  bool mn_major;
} Operand;

#define WRITTEN UINT64_C(0x0101010101010101) // SHADOW_WRITTEN in every byte

static const Op *trap_shadow(Warp *w, const WgmmaIssue *issue, const Operand *o, char name) {
  const Op *stop = NULL;
  for (int i = 0; i < o->chunks && w->cta->async && !stop; i++)
    stop = sim_async_trap(w, issue->op, 0, w->cta, ACCESS_READ, o->at[i], WGMMA_CHUNK);
  if (stop)
    return stop;
  for (int i = 0; i < o->chunks; i++)
    for (uint32_t at = o->at[i]; at < o->at[i] + WGMMA_CHUNK; at++)
      if (!(w->cta->shared.shadow[at] & SHADOW_WRITTEN))
        return sim_trap_at(w, issue->op, 0,
                           "uninitialised read: byte %u of shared memory, in %c, was "
                           "never written",
                           at, name);
  return NULL;
}

static const Op *open_operand(Warp *w, const WgmmaIssue *issue, Operand *o, uint64_t bits,
                              bool mn_major, int rows, char name) {
  const Memory *m = &w->cta->shared;
  const DescChunks *list = sim_desc_list(w->cta->wgmma, name == 'B', bits, mn_major, rows);
  o->data = m->data;
  o->rows = rows;
  o->mn_major = mn_major;
  o->at = list->at;
  o->chunks = list->n;
  uint64_t all = ~UINT64_C(0), any = 0, v[2];
  for (int i = 0; i < o->chunks; i++) {
    memcpy(v, m->shadow + o->at[i], sizeof v);
    all &= v[0] & v[1];
    any |= v[0] | v[1];
  }
  bool good = (all & WRITTEN) == WRITTEN && !(any & (SHADOW_FILLING | SHADOW_MBARRIER) * WRITTEN);
  return good ? NULL : trap_shadow(w, issue, o, name);
}

// Words of rows first .. first + n - 1, n = 16 (A) or 8 (B): sim_matrix.h.
static void gather(const Operand *o, int first, int n, uint32_t (*words)[32]) {
  if (!o->mn_major) {
    for (int row = 0; row < n; row++)
      for (int part = 0; part < 2; part++)
        memcpy(&words[part * (n / 8) + (row >> 3)][4 * (row & 7)],
               o->data + o->at[2 * (first + row) + part], WGMMA_CHUNK);
    return;
  }
  uint8_t lines[16][32];
  for (int k = 0; k < 16; k++)
    for (int part = 0; part < n / 8; part++)
      memcpy(lines[k] + WGMMA_CHUNK * part,
             o->data + o->at[k * (o->rows / 8) + first / 8 + part], WGMMA_CHUNK);
  matrix_words_across(words, lines, sizeof lines[0], n, 16);
}

static void words_of_a(const WgmmaIssue *issue, const Operand *a, int warp,
                       uint32_t (*words)[32]) {
  const WgmmaShape *s = issue->op->more->wgmma;
  if (s->a_regs)
    for (int r = 0; r < 4; r++)
      memcpy(words[r], issue->regs[warp] + issue->op->more->list[s->nd + r], sizeof words[r]);
  else
    gather(a, 16 * warp, 16, words);
  if (s->negate)
    for (int r = 0; r < 4; r++)
      for (int i = 0; i < 32; i++)
        words[r][i] ^= s->negate;
}

// ---- floats -------------------------------------------------------------------------------------
static const float zeros[32];

// One tile of 8 columns for one warp.
static void multiply_tile(const MatrixIsa *isa, const WgmmaIssue *issue, const MatrixA *a,
                          const MatrixB *b, int warp, int tile) {
  const WgmmaShape *s = issue->op->more->wgmma;
  const MatrixRule *rule = &matrix_rules[s->rule];
  const uint32_t *list = issue->op->more->list;
  const float *c[4] = {zeros, zeros, zeros, zeros};
  if (!s->half) {
    float *d[4];
    for (int i = 0; i < 4; i++) {
      d[i] = (float *)(issue->regs[warp] + list[4 * tile + i]);
      c[i] = issue->scale_d ? d[i] : zeros;
    }
    isa->multiply(rule, s->k, a, b, c, d);
    return;
  }
  uint32_t *pairs[2];
  Acc acc;
  for (int i = 0; i < 2; i++)
    pairs[i] = (uint32_t *)(issue->regs[warp] + list[2 * tile + i]);
  sim_load_acc(isa, &acc, pairs, true);
  for (int i = 0; i < 4 && issue->scale_d; i++)
    c[i] = acc.p[i];
  isa->multiply(rule, s->k, a, b, c, acc.p);
  sim_store_acc(isa, &acc, pairs, true);
}

static void multiply_floats(const MatrixIsa *isa, const WgmmaIssue *issue, const Operand *a,
                            const Operand *b) {
  const WgmmaShape *s = issue->op->more->wgmma;
  MatrixA rows[WGMMA_WARPS];
  uint32_t words[4][32];
  const uint32_t *at[4] = {words[0], words[1], words[2], words[3]};
  for (int warp = 0; warp < WGMMA_WARPS; warp++) {
    words_of_a(issue, a, warp, words);
    isa->load_a(&rows[warp], (MatrixType)s->a, s->k, at);
  }
  for (int tile = 0; tile < s->n / 8; tile++) {
    MatrixB columns;
    gather(b, 8 * tile, 8, words);
    isa->load_b(&columns, (MatrixType)s->b, s->k, at);
    for (int warp = 0; warp < WGMMA_WARPS; warp++)
      multiply_tile(isa, issue, &rows[warp], &columns, warp, tile);
  }
}

// ---- integers -----------------------------------------------------------------------------------
// The 32 bytes of row (or column) g of 8: words of lanes 4g to 4g + 3, then the next 16 bytes.
static void bytes_of(int32_t *to, uint32_t (*words)[32], int step, int g, bool sign) {
  for (int i = 0; i < 32; i++) {
    uint8_t u = (uint8_t)(words[(i >> 4) * step][4 * g + (i >> 2 & 3)] >> 8 * (i & 3));
    to[i] = sign ? (int8_t)u : u;
  }
}

static void integer_tile(const WgmmaIssue *issue, int32_t (*row)[32], int32_t (*col)[32], int warp,
                         int tile) {
  const WgmmaShape *s = issue->op->more->wgmma;
  for (int m = 0; m < 16; m++)
    for (int n = 0; n < 8; n++) {
      int i = 2 * (m >> 3) + (n & 1), lane = 4 * (m & 7) + (n >> 1);
      uint8_t *at = issue->regs[warp] + issue->op->more->list[4 * tile + i];
      int32_t *d = (int32_t *)at + lane;
      int64_t sum = issue->scale_d ? *d : 0;
      for (int k = 0; k < 32; k++)
        sum += row[m][k] * col[n][k];
      if (s->saturate)
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
      *d = (int32_t)(uint32_t)sum;
    }
}

static void multiply_integers(const WgmmaIssue *issue, const Operand *a, const Operand *b) {
  const WgmmaShape *s = issue->op->more->wgmma;
  int32_t row[WGMMA_WARPS][16][32], col[8][32];
  uint32_t words[4][32];
  for (int warp = 0; warp < WGMMA_WARPS; warp++) {
    words_of_a(issue, a, warp, words);
    for (int m = 0; m < 16; m++)
      bytes_of(row[warp][m], words + (m >> 3), 2, m & 7, s->sign_a);
  }
  for (int tile = 0; tile < s->n / 8; tile++) {
    gather(b, 8 * tile, 8, words);
    for (int n = 0; n < 8; n++)
      bytes_of(col[n], words, 1, n, s->sign_b);
    for (int warp = 0; warp < WGMMA_WARPS; warp++)
      integer_tile(issue, row[warp], col, warp, tile);
  }
}

static const Op *open_both(Warp *w, const WgmmaIssue *issue, Operand *a, Operand *b) {
  const WgmmaShape *s = issue->op->more->wgmma;
  const Op *stop = NULL;
  if (!s->a_regs)
    stop = open_operand(w, issue, a, issue->a, s->mn_a, 64, 'A');
  return stop ? stop : open_operand(w, issue, b, issue->b, s->mn_b, s->n, 'B');
}

const Op *sim_wgmma_check(Warp *w, const WgmmaIssue *issue) {
  Operand a, b;
  return open_both(w, issue, &a, &b);
}

const Op *sim_wgmma_multiply(Warp *w, WgmmaIssue *issue) {
  const WgmmaShape *s = issue->op->more->wgmma;
  Operand a, b;
  const Op *stop = open_both(w, issue, &a, &b);
  if (stop)
    return stop;
  if (s->integer)
    multiply_integers(issue, &a, &b);
  else
    multiply_floats(w->cta->grid->dev->isa->matrix, issue, &a, &b);
  if (sim_counts(w))
    sim_count_shared_span(w->cta, issue->op, 32 * ((s->a_regs ? 0 : 64) + (uint64_t)s->n),
                          COUNT_WGMMA);
  issue->done = true;
  return NULL;
}
