// Sequences of different lengths through the C API: the problem has the longest one and the sums,
// the lengths are on the device alone.  Each sequence must come out as it does by itself.
#include "api_kit.h"

enum { DIM = 32, HEADS = 2, BATCH = 4, ROW = HEADS * DIM };
static const int32_t at_q[BATCH + 1] = {0, 5, 5, 17, 18}, at_k[BATCH + 1] = {0, 9, 11, 11, 31};

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

static psm_operator *operator_of(const Fixture *f, const char *params, const char *values) {
  psm_problem *p;
  psm_operator *op;
  good(f, psm_problem_new(f->s, values, &p));
  good(f, psm_operator_new(f->dev, "prefill_thread", params, p, NULL, &op));
  psm_problem_free(p);
  return op;
}

static void each_as_by_itself(void **state) {
  const Fixture *f = *state;
  static float q[18 * ROW], k[31 * ROW], v[31 * ROW], o[18 * ROW], lse[HEADS * 18], own[18 * ROW],
      own_lse[HEADS * 18];
  for (int i = 0; i < 18 * ROW; i++) q[i] = (float)(i * 7 % 23 - 11) / 8;
  for (int i = 0; i < 31 * ROW; i++)
    k[i] = (float)(i * 5 % 19 - 9) / 8, v[i] = (float)(i * 3 % 17 - 8) / 4;
  uint64_t q_at = put(f, q, sizeof q), k_at = put(f, k, sizeof k), v_at = put(f, v, sizeof v);
  uint64_t o_at = put(f, NULL, sizeof o), lse_at = put(f, NULL, sizeof lse);
  psm_operator *op = operator_of(f, "varlen=1", "b=4,hq=2,sq=12,sk=20,tq=18,tk=31,d=32,causal=1");
  bind(f, op, "q", q_at, PSM_F32, 3, 18, HEADS, DIM, 0);
  bind(f, op, "k", k_at, PSM_F32, 3, 31, HEADS, DIM, 0);
  bind(f, op, "v", v_at, PSM_F32, 3, 31, HEADS, DIM, 0);
  bind(f, op, "o", o_at, PSM_F32, 3, 18, HEADS, DIM, 0);
  bind(f, op, "lse", lse_at, PSM_F32, 2, HEADS, 18, 0, 0);
  bind(f, op, "cu_seqlens_q", put(f, at_q, sizeof at_q), PSM_I32, 1, BATCH + 1, 0, 0, 0);
  bind(f, op, "cu_seqlens_k", put(f, at_k, sizeof at_k), PSM_I32, 1, BATCH + 1, 0, 0, 0);
  good(f, psm_launch(op));
  good(f, psm_read(f->dev, o, o_at, sizeof o));
  good(f, psm_read(f->dev, lse, lse_at, sizeof lse));
  psm_operator_free(op);
  for (int b = 0; b < BATCH; b++) {
    int rows = at_q[b + 1] - at_q[b], keys = at_k[b + 1] - at_k[b];
    if (!rows) continue;
    char values[80];
    snprintf(values, sizeof values, "hq=2,sq=%d,sk=%d,d=32,causal=1", rows, keys);
    op = operator_of(f, NULL, values);
    bind(f, op, "q", q_at + 4u * ROW * (unsigned)at_q[b], PSM_F32, 4, 1, rows, HEADS, DIM);
    bind(f, op, "k", k_at + 4u * ROW * (unsigned)at_k[b], PSM_F32, 4, 1, keys, HEADS, DIM);
    bind(f, op, "v", v_at + 4u * ROW * (unsigned)at_k[b], PSM_F32, 4, 1, keys, HEADS, DIM);
    bind(f, op, "o", o_at, PSM_F32, 4, 1, rows, HEADS, DIM);
    bind(f, op, "lse", lse_at, PSM_F32, 3, 1, HEADS, rows, 0);
    good(f, psm_launch(op));
    good(f, psm_read(f->dev, own, o_at, 4u * ROW * (unsigned)rows));
    good(f, psm_read(f->dev, own_lse, lse_at, 4u * HEADS * (unsigned)rows));
    psm_operator_free(op);
    assert_memory_equal(own, o + ROW * at_q[b], 4u * ROW * (unsigned)rows);
    for (int h = 0; h < HEADS; h++)
      assert_memory_equal(own_lse + h * rows, lse + h * 18 + at_q[b], 4u * (unsigned)rows);
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
                                     cmocka_unit_test(what_is_refused),
                                     cmocka_unit_test(a_table_of_the_host)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
