// Sequences of different lengths through the C API: the problem has the longest one and the sums,
// the lengths are on the device alone.  Each sequence must come out as it does by itself.
#include <math.h>

#include "api_kit.h"

enum { DIM = 64, HEADS = 2, ROW = HEADS * DIM, MOST = 160 };

typedef struct Case {
  const char *template, *params;
  psm_dtype type;
  int batch;
  int32_t at_q[5], at_k[5];
} Case;

static uint64_t put(const Fixture *f, const void *data, uint64_t bytes) {
  uint64_t p;
  good(f, psm_alloc(f->dev, bytes + 16, &p));
  if (data && bytes) good(f, psm_write(f->dev, p, data, bytes));
  return p;
}

static void bind(const Fixture *f, psm_operator *op, const char *name, uint64_t at, psm_dtype t,
                 int rank, int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
  psm_tensor x = {.data = at, .dtype = t, .rank = rank, .shape = {n0, n1, n2, n3}};
  psm_status st = psm_bind(op, name, &x);
  if (st) fail_msg("%s: %s", name, psm_error(f->s));
}

static psm_operator *operator_of(const Fixture *f, const Case *c, const char *params,
                                 const char *values) {
  psm_problem *p;
  psm_operator *op;
  char both[120], with[120];
  int half = c->type == PSM_BF16;
  snprintf(both, sizeof both, "%s %s", c->params, params);
  snprintf(with, sizeof with, "%s,hq=2,d=64,causal=1,dtype=%s", values, half ? "bf16" : "f32");
  good(f, psm_problem_new(f->s, with, &p));
  if (psm_operator_new(f->dev, c->template, both, p, NULL, &op))
    fail_msg("%s: %s", c->template, psm_error(f->s));
  psm_problem_free(p);
  return op;
}

static void launch(const Fixture *f, const Case *c, psm_operator *op) {
  static const uint8_t zeros[256];
  uint64_t n = psm_workspace_bytes(op);
  assert_true(n <= sizeof zeros);
  if (n) good(f, psm_bind_workspace(op, put(f, zeros, n), n));
  if (psm_launch(op)) fail_msg("%s: %s", c->template, psm_error(f->s));
}

// Small multiples of 1 / 8, which every type has.
static uint64_t put_numbers(const Fixture *f, const Case *c, int n, int by, int of) {
  static float x[MOST * ROW];
  static uint16_t half[MOST * ROW];
  for (int i = 0; i < n * ROW; i++) {
    uint32_t bits;
    x[i] = (float)(i * by % of - of / 2) / 8;
    memcpy(&bits, &x[i], 4);
    half[i] = (uint16_t)(bits >> 16);
  }
  return c->type == PSM_BF16 ? put(f, half, 2u * (unsigned)(n * ROW))
                             : put(f, x, 4u * (unsigned)(n * ROW));
}

static int most_of(const int32_t *at, int n) {
  int most = 0;
  for (int i = 0; i < n; i++)
    if (at[i + 1] - at[i] > most) most = at[i + 1] - at[i];
  return most;
}

// A sequence's rows of `o` and `lse`, as they come out without the others.
static void check_alone(const Fixture *f, const Case *c, int b, const uint64_t in[3],
                        const uint8_t *o, const float *lse, int rows_q) {
  static uint8_t own[MOST * ROW * 4];
  static float own_lse[HEADS * MOST];
  unsigned row = (c->type == PSM_BF16 ? 2u : 4u) * ROW;
  int from = c->at_q[b], rows = c->at_q[b + 1] - from, keys = c->at_k[b + 1] - c->at_k[b];
  if (rows <= 0) return;
  if (keys <= 0) {
    for (unsigned i = 0; i < row * (unsigned)rows; i++)
      assert_int_equal(o[row * (unsigned)from + i], 0);
    for (int i = 0; i < HEADS * rows; i++)
      assert_true(isinf(lse[i / rows * rows_q + from + i % rows]));
    return;
  }
  char values[60];
  snprintf(values, sizeof values, "sq=%d,sk=%d", rows, keys);
  psm_operator *op = operator_of(f, c, "", values);
  uint64_t o_at = put(f, NULL, sizeof own), lse_at = put(f, NULL, sizeof own_lse);
  bind(f, op, "q", in[0] + row * (unsigned)from, c->type, 4, 1, rows, HEADS, DIM);
  bind(f, op, "k", in[1] + row * (unsigned)c->at_k[b], c->type, 4, 1, keys, HEADS, DIM);
  bind(f, op, "v", in[2] + row * (unsigned)c->at_k[b], c->type, 4, 1, keys, HEADS, DIM);
  bind(f, op, "o", o_at, c->type, 4, 1, rows, HEADS, DIM);
  bind(f, op, "lse", lse_at, PSM_F32, 3, 1, HEADS, rows, 0);
  launch(f, c, op);
  good(f, psm_read(f->dev, own, o_at, row * (unsigned)rows));
  good(f, psm_read(f->dev, own_lse, lse_at, 4u * HEADS * (unsigned)rows));
  psm_operator_free(op);
  assert_memory_equal(own, o + row * (unsigned)from, row * (unsigned)rows);
  for (int h = 0; h < HEADS; h++)
    assert_memory_equal(own_lse + h * rows, lse + h * rows_q + from, 4u * (unsigned)rows);
}

static void check_case(const Fixture *f, const Case *c) {
  static uint8_t o[MOST * ROW * 4];
  static float lse[HEADS * MOST];
  int n = c->batch, nq = 0, nk = 0;
  for (int b = 0; b <= n; b++) { // rows of the tensors: the last offset need not be the largest
    if (c->at_q[b] > nq) nq = c->at_q[b];
    if (c->at_k[b] > nk) nk = c->at_k[b];
  }
  uint64_t in[3] = {put_numbers(f, c, nq, 7, 23), put_numbers(f, c, nk, 5, 19),
                    put_numbers(f, c, nk, 3, 17)};
  uint64_t o_at = put(f, NULL, sizeof o), lse_at = put(f, NULL, sizeof lse);
  char values[100];
  snprintf(values, sizeof values, "b=%d,sq=%d,sk=%d,tq=%d,tk=%d", n, most_of(c->at_q, n),
           most_of(c->at_k, n), nq, nk);
  psm_operator *op = operator_of(f, c, "varlen=1", values);
  bind(f, op, "q", in[0], c->type, 3, nq, HEADS, DIM, 0);
  bind(f, op, "k", in[1], c->type, 3, nk, HEADS, DIM, 0);
  bind(f, op, "v", in[2], c->type, 3, nk, HEADS, DIM, 0);
  bind(f, op, "o", o_at, c->type, 3, nq, HEADS, DIM, 0);
  bind(f, op, "lse", lse_at, PSM_F32, 2, HEADS, nq, 0, 0);
  unsigned bytes = 4u * (unsigned)(n + 1);
  bind(f, op, "cu_seqlens_q", put(f, c->at_q, bytes), PSM_I32, 1, n + 1, 0, 0, 0);
  bind(f, op, "cu_seqlens_k", put(f, c->at_k, bytes), PSM_I32, 1, n + 1, 0, 0, 0);
  launch(f, c, op);
  good(f, psm_read(f->dev, o, o_at, (c->type == PSM_BF16 ? 2u : 4u) * (unsigned)(nq * ROW)));
  good(f, psm_read(f->dev, lse, lse_at, 4u * (unsigned)(nq * HEADS)));
  psm_operator_free(op);
  for (int b = 0; b < n; b++) check_alone(f, c, b, in, o, lse, nq);
}

static void each_as_by_itself(void **state) {
  check_case(*state, &(Case){"prefill_thread", "", PSM_F32, 4, {0, 5, 5, 17, 18},
                             {0, 9, 11, 11, 31}});
}

// Offsets that decrease: a sequence without queries, or without keys; nothing outside is touched.
static void offsets_that_decrease(void **state) {
  static const Case offsets[] = {
      {"", "", PSM_F32, 3, {8, 160, 0, 8}, {9, 31, 0, 9}},
      {"", "", PSM_F32, 3, {0, 5, 17, 18}, {20, 11, 31, 31}},
  };
  static const Case on[] = {{"prefill_thread", "", PSM_F32, 0, {0}, {0}},
                            {"prefill_tile", "", PSM_F32, 0, {0}, {0}},
                            {"prefill_fma", "", PSM_F32, 0, {0}, {0}},
                            {"prefill_mma", "", PSM_F32, 0, {0}, {0}},
                            {"prefill_mma", "tile_q=32 tile_k=16 warps=2", PSM_BF16, 0, {0}, {0}},
                            {"prefill_wgmma", "tile_q=64", PSM_BF16, 0, {0}, {0}},
                            {"prefill_wgmma", "tile_q=64 dynamic=0", PSM_BF16, 0, {0}, {0}}};
  for (size_t i = 0; i < sizeof on / sizeof *on; i++)
    for (int k = 0; k < 2; k++) {
      Case c = offsets[k];
      c.template = on[i].template, c.params = on[i].params, c.type = on[i].type;
      check_case(*state, &c);
    }
}

static void what_is_refused(void **state) {
  const Fixture *f = *state;
  psm_problem *p;
  psm_operator *op;
  good(f, psm_problem_new(f->s, "b=2,hq=2,sq=3,sk=9,d=64", &p));
  assert_error(f, psm_problem_set_int(p, "seqlens_k", 3), PSM_INPUT, "seqlens_k takes no number");
  good(f, psm_problem_set_int(p, "total_k", 11));
  assert_error(f, psm_operator_new(f->dev, "decode_fma", "paged=1", p, NULL, &op), PSM_INPUT,
               "gives no page_size");
  psm_problem_free(p);
}

// A table that the host has is held against the pool, whenever something about it changes.
static void a_table_of_the_host(void **state) {
#define TABLE "hq=2,sq=1,d=32,seqlens_k=20/9,page=8,pool=6,block_table="
  const Fixture *f = *state;
  psm_problem *p;
  psm_operator *op;
  good(f, psm_problem_new(f->s, TABLE "5/0/2/1/3/-1", &p));
  good(f, psm_operator_new(f->dev, "decode_fma", "", p, NULL, &op));
  psm_problem_free(p);
  assert_error(f, psm_operator_set_int(op, "pool_pages", 5), PSM_INPUT,
               "page 0 of sequence 0 is 5, and the pool has 5 pages");
  assert_error(f, psm_operator_set_int(op, "seqlen_k", 25), PSM_INPUT,
               "25 keys reach beyond the block table");
  assert_int_equal(psm_operator_set_int(op, "seqlens_k", 5), PSM_INPUT);
  assert_int_equal(psm_operator_set_int(op, "block_table", 0), PSM_INPUT);
  good(f, psm_operator_set_int(op, "pool_pages", 7));
  psm_operator_free(op);
  assert_error(f, psm_problem_new(f->s, TABLE "5/0/2/1/6/-1", &p), PSM_INPUT,
               "page 1 of sequence 1 is 6, and the pool has 6 pages");
  // two sequences may share a page of a tensor that is there
  good(f, psm_problem_new(f->s, TABLE "5/0/2/5/1/-1", &p));
  psm_problem_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_as_by_itself),
                                     cmocka_unit_test(offsets_that_decrease),
                                     cmocka_unit_test(what_is_refused),
                                     cmocka_unit_test(a_table_of_the_host)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
