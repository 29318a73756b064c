// Sequences of different lengths and pages of keys: the Problem's names, the tensors a kernel
// reads, and the gates for kernels that take them, on the interpreter.
#include "dense.h"
#include "verify_kit.h"

static void refuse(Fixture *f, const char *text, const char *why) {
  Problem *p;
  diag_reset(f->d);
  assert_int_equal(problem_parse(f->a, text, &p, f->d), ST_INPUT);
  if (!strstr(diag_text(f->d), why) || f->d->errors != 1)
    fail_msg("%s: %s\nnot: %s", text, diag_text(f->d), why);
}

// ---- names -------------------------------------------------------------------------------------
static void what_a_list_says(void **state) {
  Fixture *f = *state;
  Problem *p = fixture_problem(f, "hq=4,hkv=2,d=8,seqlens_q=3/0/5,seqlens_k=7/2/0");
  int64_t n;
  assert_string_equal(problem_text(f->a, p),
                      "b=3,hq=4,hkv=2,sq=5,sk=7,seqlens_q=3/0/5,seqlens_k=7/2/0,d=8");
  assert_true(problem_varlen(p));
  assert_int_equal(problem_len_q(p, 2), 5);
  assert_int_equal(problem_len_k(p, 1), 2);
  assert_true(problem_whole(p, "total_q", &n) && n == 8);
  assert_true(problem_whole(p, "total_k", &n) && n == 9);
  assert_true(problem_whole(p, "offsets", &n) && n == 4);
  // 21 + 0 + 0 pairs of a head; causal: the last 3 of 7 keys' queries see 5, 6 and 7
  assert_true(problem_flops(p) == 4.0 * 4 * 21 * 8);
  assert_true(problem_kv_bytes(p) == 2.0 * 2 * 9 * 8 * 4);
  p = fixture_problem(f, "hq=1,d=1,causal=1,seqlens_q=3/2,seqlens_k=7/1");
  assert_true(problem_flops(p) == 4.0 * (5 + 6 + 7 + 0 + 1));
  KeyRange r = visible_range(p, 1, 0); // the first of two queries over one key sees none
  assert_int_equal(r.to - r.from, 0);
  r = visible_range(p, 0, 0);
  assert_int_equal(r.to, 5);
}

static void equal_lengths_without_a_list(void **state) {
  Problem *p = fixture_problem(*state, "b=3,hq=1,sq=4,sk=10,d=8");
  int64_t n;
  assert_false(problem_varlen(p));
  assert_int_equal(problem_len_q(p, 2), 4);
  assert_true(problem_whole(p, "total_k", &n) && n == 30);
  assert_false(problem_whole(p, "pages", &n)); // no page_size
  p = fixture_problem(
      *state,
      "b=3,hq=1,sq=4,sk=10,d=8,total_k=12"); // a caller whose lengths are on the device
  assert_true(problem_whole(p, "total_k", &n) && n == 12);
}

static void drawn_lengths(void **state) {
  Fixture *f = *state;
  Problem *p = fixture_problem(f, "b=5,hq=1,d=8,sq=9,sk=100,seqlens_k=seed:6,seqlens_q=seed:6");
  int zeros = 0, longest = 0;
  for (int b = 0; b < 5; b++) {
    assert_in_range(problem_len_k(p, b), 0, 100);
    assert_in_range(problem_len_q(p, b), 0, 9);
    zeros += problem_len_k(p, b) == 0;
    longest += problem_len_k(p, b) == 100;
  }
  assert_true(zeros >= 1 && longest >= 1);
  // What is printed is a list, which says the same again.
  Problem *again = fixture_problem(f, problem_text(f->a, p));
  for (int b = 0; b < 5; b++) assert_int_equal(problem_len_k(again, b), problem_len_k(p, b));
  Problem *other = fixture_problem(f, "b=5,hq=1,d=8,sq=9,sk=100,seqlens_k=seed:7");
  bool same = true;
  for (int b = 0; b < 5; b++) same &= problem_len_k(other, b) == problem_len_k(p, b);
  assert_false(same);
}

static void lengths_that_fit(void **state) {
  Fixture *f = *state;
  Problem *p = fixture_problem(f, "hq=1,d=8,seqlens_q=3/0/5,seqlens_k=70/2/0,total_k=72");
  problem_set_int(p, "batch", 2);
  problem_set_int(p, "seqlen_k", 64);
  problem_fit_lengths(p);
  assert_int_equal(problem_check(p, f->d), ST_OK);
  int64_t n;
  assert_true(problem_whole(p, "total_k", &n) && n == 66);
  assert_int_equal(problem_len_k(p, 0), 64);
  assert_int_equal(problem_len_q(p, 1), 0);
}

static void what_is_refused(void **state) {
  Fixture *f = *state;
  refuse(f, "b=2,hq=1,sq=1,sk=9,d=8,seqlens_k=1/2/3", "seqlens_k has 3 lengths, batch is 2");
  refuse(f, "hq=1,sq=1,sk=9,d=8,seqlens_k=1/10", "seqlens_k has a sequence of 10, seqlen_k is 9");
  refuse(f, "hq=1,sq=1,sk=9,d=8,seqlens_k=1/-1", "a number is between 0 and");
  refuse(f, "hq=1,sq=1,sk=9,d=8,seqlens_k=1//2", "takes a length for each sequence");
  refuse(f, "hq=1,sq=1,sk=9,d=8,seqlens_k=", "takes a length for each sequence");
  refuse(f, "hq=1,sq=1,d=8,seqlens_k=seed:1", "seqlen_k, which is not given");
  refuse(f, "hq=1,sq=1,d=8,seqlens_k=2147483647/1", "the sum is 2^31 or more");
  refuse(f, "hq=1,sq=1,d=8,seqlens_k=5/6,total_k=12", "total_k=12, the sum of seqlens_k is 11");
  refuse(f, "hq=1,sq=1,d=8,sk=65,page=16,pages=4",
         "65 keys reach beyond the block table, whose rows have 4 pages of 16");
  refuse(f, "hq=1,sq=1,d=8,sk=65,page=-1", "page_size is at least 0");
}

// ---- what a kernel reads ------------------------------------------------------------------------
static void offsets(void **state) {
  Fixture *f = *state;
  Problem *p = fixture_problem(f, "hq=1,d=8,seqlens_q=3/0/5,seqlens_k=7/2/0");
  int32_t x[4];
  assert_int_equal(lengths_fill(p, "cu_seqlens_q", 0, x, f->d), ST_OK);
  assert_memory_equal(x, ((int32_t[]){0, 3, 3, 8}), sizeof x);
  assert_int_equal(lengths_fill(p, "cu_seqlens_k", 0, x, f->d), ST_OK);
  assert_memory_equal(x, ((int32_t[]){0, 7, 9, 9}), sizeof x);
  assert_int_equal(lengths_fill(p, "seqlens_k", 0, x, f->d), ST_OK);
  assert_memory_equal(x, ((int32_t[]){7, 2, 0}), 3 * sizeof *x);
}

// 5 + 1 + 0 pages of a pool of 7, each once, in no order; the rest of the table is no page.
static void block_tables(void **state) {
  Fixture *f = *state;
  Problem *p = fixture_problem(f, "hq=1,sq=1,d=8,seqlens_k=70/2/0,page=16,pages=6");
  int32_t table[18], used = 0;
  int64_t pool;
  bool in_order = true, taken[7] = {0};
  assert_true(problem_whole(p, "pool_pages", &pool) && pool == 7);
  assert_int_equal(lengths_fill(p, "block_table", 3, table, f->d), ST_OK);
  for (int b = 0; b < 3; b++)
    for (int c = 0; c < 6; c++) {
      int32_t page = table[b * 6 + c];
      bool needed = c < (b == 0 ? 5 : b == 1 ? 1 : 0);
      if (!needed) {
        assert_int_equal(page, INT32_MAX);
        continue;
      }
      assert_in_range(page, 0, 6);
      assert_false(taken[page]);
      taken[page] = true;
      in_order &= page == used++;
    }
  assert_false(in_order);
  p = fixture_problem(f, "hq=1,sq=1,d=8,seqlens_k=40/20,page=16,block_table=3/1/0/6/2/-1");
  assert_true(problem_whole(p, "pool_pages", &pool) && pool == 7); // the last page that it names
  p = fixture_problem(f, "hq=1,sq=1,d=8,seqlens_k=40/20,page=16,block_table=3/1/0/4/2/-1");
  assert_true(problem_whole(p, "pool_pages", &pool) && pool == 6); // 5 pages, and a spare one
  p = fixture_problem(f, "hq=1,sq=1,d=8,seqlens_k=70/2/0,page=16,pages=6");
  problem_set_int(p, "pool_pages", 5);
  assert_int_equal(lengths_fill(p, "block_table", 3, table, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "pool_pages=5, the sequences need 6 pages"));
}

// ---- gates --------------------------------------------------------------------------------------
static void decode(void **state) {
  Fixture *f = *state;
  fixture_pass(f, "decode_mma",
               "hq=6,hkv=2,sq=2,d=64,dtype=f16,causal=1,chunks=3,seqlens_k=70/0/1/33");
  fixture_pass(f, "decode_mma warps=2",
               "hq=4,hkv=2,sq=1,d=128,dtype=bf16,chunks=2,seqlens_k=50/97,page=16");
  fixture_pass(f, "decode_mma varlen=1 paged=1",
               "b=2,hq=2,hkv=1,sq=1,sk=40,d=64,dtype=f16,chunks=2,page=1");
  fixture_pass(f, "decode_fma",
               "b=4,hq=4,hkv=2,sq=2,sk=90,d=64,chunks=3,seqlens_k=seed:5,page=7,wl=20");
  fixture_pass(f, "decode_fma paged=1", "b=2,hq=2,sq=1,sk=65,d=32,chunks=3,page=64");
}

// Tiles that end in the middle of a sequence's neighbours, sequences without queries or without
// keys.
#define SEQUENCES "seqlens_q=33/0/7/150/20,seqlens_k=40/9/0/200/1"
static void prefill(void **state) {
  static const char *const rules[] = {"", ",causal=1", ",causal=1,wl=30,softcap=20",
                                      ",alibi=1,sinks=1,wr=9"};
  static const char *const cases[][2] = {
      {"prefill_thread", "d=32,dtype=f32"}, {"prefill_mma", "d=64,dtype=f16"},
      {"prefill_mma", "d=128,dtype=bf16"},  {"prefill_mma", "d=32,dtype=f32"},
      {"prefill_wgmma", "d=64,dtype=f16"},  {"prefill_wgmma", "d=192,dv=128,dtype=bf16"},
      {"prefill_fma", "d=32,dtype=f32"},    {"prefill_tile", "d=64,dtype=f32"},
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int r = 0; r < (i ? 4 : 2); r++)
      fixture_pass(f, cases[i][0],
                   arena_printf(f->a, "hq=2,hkv=1," SEQUENCES "%s,%s", rules[r], cases[i][1]));
  fixture_pass(f, "prefill_wgmma", "hq=2,hkv=1," SEQUENCES ",causal=1,d=128,dtype=e4m3");
  fixture_pass(f, "prefill_wgmma varlen=1 q_stages=1", "b=2,hq=2,sq=70,sk=0,d=64,dtype=f16");
  fixture_pass(f, "prefill_wgmma varlen=1", "b=0,hq=2,sq=70,sk=9,d=64,dtype=f16");
  // warpgroups without a key, or without a row, in several tiles
  fixture_pass(f, "prefill_wgmma apart=1 stages=1 q_stages=1 tile_k=48",
               "hq=2,seqlens_q=190/70,seqlens_k=200/260,d=64,dtype=f16,causal=1,wl=50");
  fixture_pass(f, "prefill_wgmma apart=1 turns=0 tile_k=64",
               "hq=2,sq=300,sk=200,d=64,dtype=f16,wl=90,wr=20");
  // groups of 5 heads (even: of 5 and 6), of 6 that share 3, more in a group than there are
  fixture_pass(f, "prefill_wgmma together=1 tile_q=64",
               "hq=11,sq=70,sk=700,d=64,dtype=f16,causal=1");
  fixture_pass(f, "prefill_wgmma together=1 even=1 tile_q=64",
               "hq=11,sq=70,sk=700,d=64,dtype=f16,causal=1");
  fixture_pass(f, "prefill_wgmma together=1 even=1 dynamic=0",
               "b=3,hq=6,hkv=3,sq=140,sk=1100,d=64,dtype=f16,causal=1");
  fixture_pass(f, "prefill_wgmma even=1", "hq=6,hkv=3," SEQUENCES ",d=64,dtype=f16,causal=1");
  fixture_pass(f, "prefill_wgmma together=1 fewest=4",
               "hq=9,hkv=3,sq=70,sk=3000,d=64,dtype=f16,causal=1");
  fixture_pass(f, "prefill_wgmma together=1 fewest=4 tile_q=64",
               "hq=5,sq=70,sk=3000,d=64,dtype=f16");
  fixture_pass(f, "prefill_wgmma even=1", "b=0,hq=2,sq=70,sk=9,d=64,dtype=f16,causal=1");
  // the last product alone, O from the place of Q; blind tiles first; one stage of Q and two
  fixture_pass(f, "prefill_wgmma early=1 staged=1 apart=1 turns=0 tile_k=64",
               "b=2,hq=2,sq=300,sk=200,d=64,dtype=f16,wl=90,wr=20");
  fixture_pass(f, "prefill_wgmma early=1 turns=0 q_stages=1",
               "hq=2,hkv=1," SEQUENCES ",d=64,dtype=f16,causal=1");
  fixture_pass(f, "prefill_wgmma staged=1 q_stages=2 stages=1 tile_k=64",
               "b=2,hq=2,sq=150,sk=90,d=192,dv=96,dtype=bf16,causal=1,sinks=1");
  fixture_pass(f, "prefill_tile stages=0", "hq=2,hkv=1," SEQUENCES ",d=32,dtype=f16,causal=1");
  fixture_pass(f, "prefill_mma varlen=1 stages=3", "b=2,hq=2,sq=70,sk=90,d=64,dtype=f16,causal=1");
}

static void prefill_sanitized(void **state) {
  static const char *const variants[] = {"prefill_wgmma dynamic=1",
                                         "prefill_wgmma dynamic=0 tile_q=64"};
  Fixture *f = *state;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    device_sim_opts(f->sim, &(SimOpts){.threads = 1, .sanitize = true, .seed = seed});
    fixture_pass(f, variants[seed - 1], "hq=2,hkv=1," SEQUENCES ",d=64,dtype=f16,causal=1");
  }
  fixture_pass(f, "prefill_wgmma early=1 staged=1 tile_q=128 apart=1 turns=0 tile_k=64",
               "b=2,hq=2,sq=300,sk=200,d=64,dtype=f16,causal=1,wl=90");
  fixture_pass(f, "prefill_mma", "hq=2,hkv=1," SEQUENCES ",d=64,dtype=f16");
  device_sim_opts(f->sim, &(SimOpts){.threads = 0});
}

// A page may be far longer than any sequence: there is memory for a tile behind the longest only.
static void pages_longer_than_all(void **state) {
  static const char *const on[] = {"decode_fma", "decode_mma dtype=f16", "decode_span dtype=f16"};
  Fixture *f = *state;
  device_sim_opts(f->sim, &(SimOpts){.threads = 1, .sanitize = true});
  for (int i = 0; i < 3; i++)
    fixture_pass(f, on[i], "hq=2,hkv=1,sq=2,seqlens_k=100/0/300,d=64,chunks=2,page=1000000");
  device_sim_opts(f->sim, &(SimOpts){.threads = 0});
}

static uint64_t dense_bytes(Fixture *f, const char *problem) {
  Dense buffers = {0};
  Operator *op;
  fixture_ok(f, operator_make(f->s, "decode_span", NULL, fixture_problem(f, problem), NULL, &op,
                              f->d));
  fixture_ok(f, operator_load(op, f->sim, f->d));
  fixture_ok(f, operator_plan(op, f->sim, NULL, f->d));
  fixture_ok(f, dense_bind(f->sim, op, 1, &buffers, f->d));
  fixture_ok(f, operator_launch(op, f->sim, f->d));
  fixture_ok(f, device_sync(f->sim, f->d));
  dense_free(f->sim, &buffers);
  operator_free(op);
  return buffers.bytes;
}

// So it is for timing: 300 keys and 256 behind them, whatever the page is.
static void long_pages_for_timing(void **state) {
  static const char shape[] = "hq=2,hkv=1,sq=2,seqlens_k=100/0/300,d=64,dtype=f16,chunks=2";
  Fixture *f = *state;
  uint64_t least = dense_bytes(f, arena_printf(f->a, "%s,page=556", shape));
  assert_int_equal(dense_bytes(f, arena_printf(f->a, "%s,page=1000000", shape)), least);
  // two pages and a spare one, K and V
  assert_int_equal(least - dense_bytes(f, arena_printf(f->a, "%s,page=555", shape)),
                   3 * 64 * 2 * 2);
}

static void variants_that_lack_something(void **state) {
  Fixture *f = *state;
  fixture_refused(f, "decode_fma paged=1", "b=2,hq=2,sq=1,sk=65,d=32",
                  "decode_fma was built for K and V in pages, and the problem gives no page_size");
  fixture_refused(f, "decode_fma", "hq=2,sq=2,sk=65,d=32,seqlens_q=2/1",
                  "decode_fma takes as many queries from every sequence");
  fixture_refused(f, "decode_splitk", "hq=2,sq=1,d=32,seqlens_k=2/1",
                  "has no length of its own for each sequence");
  fixture_refused(f, "decode_splitk", "hq=2,sq=1,sk=9,d=32,page=4",
                  "has no block table for pages of keys");
  fixture_refused(f, "decode_fma varlen=0", "hq=2,sq=1,d=32,seqlens_k=2/1", "disagree");
}

// A table of the user's: an entry that a kernel would read is a page of the pool, whatever runs it.
static void bad_tables(void **state) {
  Fixture *f = *state;
  const char *shape = "hq=2,hkv=1,sq=1,d=64,dtype=f16,page=16,seqlens_k=40/20,pool=8,block_table=";
  fixture_pass(f, "decode_mma", arena_printf(f->a, "%s3/1/0/5/2/-1", shape));
  // the last one is not read
  fixture_pass(f, "decode_span", arena_printf(f->a, "%s7/1/0/5/2/99", shape));
  refuse(f, arena_printf(f->a, "%s3/1/0/5/8/-1", shape),
         "block_table: page 1 of sequence 1 is 8, and the pool has 8 pages");
  refuse(f, arena_printf(f->a, "%s3/1/0/-1/2/-1", shape),
         "block_table: page 0 of sequence 1 is -1, no page, and the pool has 8 pages");
  refuse(f, arena_printf(f->a, "%s3/1/5", shape),
         "block_table has 3 pages, which 2 sequences can't share alike");
  refuse(f, arena_printf(f->a, "%s3/1/5/2", shape), "40 keys reach beyond the block table");
  refuse(f, arena_printf(f->a, "%s3/x", shape), "block_table takes numbers of pages");
}

// Good for a caller who has the tensors, and nothing that they can be made from.
static void what_is_not_whole(void **state) {
  static const struct Case {
    const char *text, *why;
  } cases[] = {
      {"b=2,hq=1,sq=4,sk=9,d=8,total_q=5",
       "total_q without seqlens_q, the queries of each sequence"},
      {"b=2,hq=1,sq=4,d=8,seqlens_k=9/2,total_k=11,total_q=8", "total_q without seqlens_q"},
      {"b=2,hq=1,sq=4,sk=9,d=8,tk=18", "total_k without seqlens_k, the keys of each sequence"},
      {"b=2,hq=1,sq=4,sk=9,d=8,pages=3", "pages without page_size, the keys of a page"},
      {"b=2,hq=1,sq=4,sk=9,d=8,pool=3", "pool_pages without page_size"},
      {"b=2,hq=1,sq=4,sk=9,d=8,block_table=0/1", "block_table without page_size"},
      {"b=2,hq=1,sq=4,sk=9,d=8,page=0,block_table=0/1", "block_table without page_size"},
      {"b=2,hq=1,sq=4,sk=9,d=8,page=4,pool=5", "pool_pages=5, the sequences need 6 pages"},
      {"b=2,hq=1,sq=4,sk=9,d=8,page=4,block_table=0/1/2/3/4/2", "page 2 stands there twice"},
      {"b=100000000000000000,hq=1,sq=1,sk=1,d=1,page=4,pool=5", "need 100000000000000000 pages"},
      {"b=2,hq=1,sq=4,sk=9,d=8,page=4,pool=4611686018427387904",
       "pool_pages=4611686018427387904: a block table names 2147483647 pages at most"},
      {"hq=1,sq=1,sk=20,d=8,page=65536,pages=32768,pool=1",
       "32768 pages of 65536 keys: a sequence has 2147483647 keys at most"},
      {"hq=1,sq=1,sk=20,d=8,page=32768,pages=65535,pool=1", NULL},
      {"b=2,hq=1,sq=4,sk=9,d=8,page=4,pool=6", NULL},
      {"hq=1,sq=4,seqlens_k=9/4,d=8,tk=13,page=4,block_table=0/1/2/3/-1/3", NULL},
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Problem *p = fixture_problem(f, cases[i].text);
    Status st = lengths_check_whole(p, f->d);
    const char *why = cases[i].why;
    if (st != (why ? ST_INPUT : ST_OK) || f->d->errors != (why != NULL) ||
        (why && !strstr(diag_text(f->d), why)))
      fail_msg("%s: %s\nnot: %s", cases[i].text, diag_text(f->d), why);
  }
  fixture_refused(f, "decode_fma", "hq=2,sq=1,sk=9,d=32,pages=4", "pages without page_size");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_a_list_says),
      cmocka_unit_test(equal_lengths_without_a_list),
      cmocka_unit_test(drawn_lengths),
      cmocka_unit_test(lengths_that_fit),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(offsets),
      cmocka_unit_test(block_tables),
      cmocka_unit_test(what_is_not_whole),
      cmocka_unit_test(decode),
      cmocka_unit_test(prefill),
      cmocka_unit_test(prefill_sanitized),
      cmocka_unit_test(pages_longer_than_all),
      cmocka_unit_test(long_pages_for_timing),
      cmocka_unit_test(variants_that_lack_something),
      cmocka_unit_test(bad_tables),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
