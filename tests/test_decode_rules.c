// What decode_mma, decode_span and decode_fma make of windows, soft cap, ALiBi, sinks, lengths of
// its own for each sequence and pages, split into chunks, on the interpreter, against an fp64
// reference of these tests' own.  Whatever no query may see is NaN: keys past a length or out of
// every window, spare pages.
enum { BATCH = 3, HEADS = 6, GROUP = 3 };
#include "rules_kit.h"

// Every case runs on each of them.  Weights are rounded to 11 bits, the result is rounded once.
static const Subject subjects[] = {{"decode_mma", DT_F16, DT_F16, "", 0x1p-11, NAN},
                                   {"decode_span", DT_F16, DT_F16, "", 0x1p-11, NAN},
                                   {"decode_span", DT_F16, DT_E4M3, "dtype_kv=e4m3", 0x1p-11, NAN},
                                   {"decode_fma", DT_F32, DT_F32, "", 0x1p-11, NAN}};
static const Subject *const mma = &subjects[0], *const span = &subjects[1],
                            *const fp8 = &subjects[2];

static int setup(void **state) {
  fixture_setup(state);
  device_sim_opts(((Fixture *)*state)->sim, &(SimOpts){.threads = 1, .sanitize = true, .seed = 5});
  return 0;
}

// ---- keys that a launch appends -----------------------------------------------------------------
// Keys len - sq .. len - 1 move from the cache to a tensor of their own (or, `back`, are compared:
// the cache, read again, must hold them).
static void move_new(const Rules *r, Dense *cache, Dense *own, bool back) {
  size_t bytes = (size_t)(r->d * dtype_bytes(cache->t.dtype));
  for (int b = 0; b < BATCH; b++)
    for (int i = 0; i < r->sq; i++)
      for (int h = 0; h < KV; h++) {
        int j = len_of(r, b) - r->sq + i;
        if (j < 0) continue;
        void *old = at(cache, key_at(r, r->d, b, j, h, 0));
        void *mine = at(own, ((int64_t)(b * r->sq + i) * KV + h) * r->d);
        if (back && memcmp(old, mine, bytes))
          fail_msg("%s: key %d of sequence %d was not appended", r->params, j, b);
        if (!back) memcpy(mine, old, bytes), memset(old, 0xff, bytes);
      }
}

// The cache after a launch holds what it held, and the new keys: for the reference it has them now.
// On the device they are NaN again, for the next turn.
static void check_appended(Case *c, int which, uint8_t *whole) {
  Dense *cache = &c->t[K + which], *own = &c->t[NEW_K + which];
  uint8_t *before = cache->host;
  size_t bytes = bytes_of(cache);
  cache->host = whole;
  read_back(c->f, cache);
  Dense after = {cache->t, malloc(bytes + 1)};
  memcpy(after.host, whole, bytes);
  move_new(c->r, &after, own, true);
  move_new(c->r, &after, own, false);
  assert_memory_equal(before, after.host, bytes);
  fixture_ok(c->f, device_write(c->f->sim, cache->t.data, before, bytes, c->f->d));
  free(after.host);
}

// ---- running ------------------------------------------------------------------------------------
static void run_on(Fixture *f, const Subject *x, const Rules *r) {
  Case c = case_open(f, x, r);
  uint8_t *cache[2];
  for (int w = 0; w < 2 && appends(r); w++)
    move_new(r, &c.t[K + w], &c.t[NEW_K + w], false), cache[w] = c.t[K + w].host;
  case_bind(&c);
  case_workspace(&c);
  for (int turn = 0; turn < 2; turn++) { // the second finds the counters as the first left them
    uint8_t *whole[2];
    case_launch(&c);
    for (int w = 0; w < 2 && appends(r); w++)
      check_appended(&c, w, whole[w] = malloc(bytes_of(&c.t[K + w])));
    case_check(&c);
    for (int w = 0; w < 2 && appends(r); w++) free(whole[w]), c.t[K + w].host = cache[w];
  }
  case_close(&c);
}

static void run(Fixture *f, const Rules *r) {
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
    if (appends(r) && strcmp(subjects[i].name, "decode_span")) continue;
    else if (r->d != 96 || dtype_bytes(subjects[i].kv) > 1) run_on(f, &subjects[i], r);
}

#define SMALL " warps=2 stages=3"
static void windows(void **state) {
  static const int lefts[] = {0, 3, 17, 63, 200, -1};
  for (int i = 0; i < 6; i++)
    for (int causal = 0; causal < 2; causal++)
      run(*state, &(Rules){"window=1" SMALL, .sq = 1 + 2 * causal, .sk = 135, .chunks = 2 + i % 2,
                           .d = 64, .causal = causal, .window = true, .left = lefts[i],
                           .right = causal ? 0 : i - 1});
}

static void caps_slopes_and_sinks(void **state) {
  static const Rules cases[] = {
      {"softcap=1" SMALL, .sq = 2, .sk = 90, .chunks = 3, .d = 64, .causal = 1, .cap = 5},
      {"alibi=1" SMALL, .sq = 3, .sk = 90, .chunks = 2, .d = 64, .alibi = true},
      {"sinks=1" SMALL, .sq = 1, .sk = 90, .chunks = 4, .d = 64, .sinks = true},
      {"sinks=1" SMALL, .sq = 1, .sk = 90, .chunks = 1, .d = 64, .sinks = true},
      {"softcap=1 alibi=1 sinks=1 window=1" SMALL, .sq = 4, .sk = 140, .chunks = 3, .d = 128,
       .causal = 1, .window = true, .left = 50, .cap = 3, .alibi = true, .sinks = true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run(*state, &cases[i]);
}

// Lengths that end a tile early, fill one, are zero, are fewer than the queries.
static void lengths(void **state) {
  static const int some[] = {100, 0, 33}, few[] = {1, 64, 2};
  static const Rules cases[] = {
      {"varlen=1" SMALL, .sq = 1, .sk = 100, .chunks = 3, .d = 64, .lens = some},
      {"varlen=1" SMALL, .sq = 4, .sk = 100, .chunks = 2, .d = 128, .causal = 1, .lens = few},
      {"varlen=1 sinks=1" SMALL, .sq = 2, .sk = 64, .chunks = 5, .d = 64, .causal = 1,
       .sinks = true, .lens = few},
      {"varlen=1 window=1 alibi=1" SMALL, .sq = 2, .sk = 100, .chunks = 2, .d = 64, .causal = 1,
       .window = true, .left = 20, .alibi = true, .lens = some},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run(*state, &cases[i]);
}

// A length below 0 is one of 0: no key is read, O = 0, the LSE is -inf or the sink.
static void negative_lengths(void **state) {
  static const int lens[] = {40, 0, 20};
  static const int32_t below[] = {-1, -40, INT32_MIN};
  static const char *const params[] = {"varlen=1" SMALL, "varlen=1 sinks=1" SMALL,
                                       "varlen=1 paged=1" SMALL};
  for (size_t i = 0; i < 3; i++)
    for (size_t k = 0; k < sizeof subjects / sizeof *subjects; k++) {
      Rules r = {params[i], .sq = 2, .sk = 40, .chunks = 3, .d = 64, .causal = 1, .sinks = i == 1,
                 .page = i == 2 ? 16 : 0, .lens = lens};
      Case c = case_open(*state, &subjects[k], &r);
      ((int32_t *)c.t[LENS].host)[1] = below[(i + k) % 3];
      case_bind(&c);
      case_workspace(&c);
      case_launch(&c);
      case_check(&c);
      case_close(&c);
    }
}

// Pages that are no power of two, one key, more keys than a tile; lengths on both sides of a page.
static void pages(void **state) {
  static const int sizes[] = {1, 3, 16, 19, 64, 128};
  for (int i = 0; i < 6; i++)
    for (int more = -1; more <= 1; more++) {
      int n = 2 * sizes[i] + more, lens[] = {n, 0, n - n / 3};
      int sk = n > 40 ? n : 41;
      if (more) lens[1] = sk;
      run(*state, &(Rules){"paged=1 varlen=1" SMALL, .sq = 1 + i % 2, .sk = sk, .chunks = 1 + i % 3,
                           .d = i % 2 ? 128 : 64, .causal = i % 2, .page = sizes[i], .lens = lens});
    }
}

static void pages_without_lengths_and_with_windows(void **state) {
  static const int lens[] = {130, 7, 64};
  static const Rules cases[] = {
      {"paged=1" SMALL, .sq = 1, .sk = 70, .chunks = 2, .d = 96, .page = 16},
      {"paged=1 varlen=1 window=1" SMALL, .sq = 2, .sk = 130, .chunks = 2, .d = 64, .causal = 1,
       .window = true, .left = 37, .page = 16, .lens = lens},
      {"paged=1 varlen=1 warps=1 stages=2", .sq = 1, .sk = 130, .chunks = 3, .d = 256, .page = 8,
       .lens = lens},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run(*state, &cases[i]);
}

// An index out of the pool is found by the interpreter, not read from somebody else's memory.
static void a_bad_block_table_is_a_trap(void **state) {
  Fixture *f = *state;
  const Rules r = {"paged=1" SMALL, .sq = 1, .sk = 40, .chunks = 1, .d = 64, .page = 16};
  Case c = case_open(f, mma, &r);
  ((int32_t *)c.t[TABLE].host)[4] = 1000;
  case_bind(&c);
  case_workspace(&c);
  fixture_ok(f, operator_plan(c.op, f->sim, NULL, f->d));
  Status st = operator_launch(c.op, f->sim, f->d);
  if (st == ST_OK) st = device_sync(f->sim, f->d);
  assert_int_equal(st, ST_FAILED);
  assert_non_null(
      strstr(diag_text(f->d), "out of bounds: reads 16 bytes at offset 4096000 of \"k\""));
  diag_reset(f->d);
  case_close(&c);
}

// New keys in a tile with old ones, alone in one, over two; more of them than keys; none.
static void new_keys_are_appended(void **state) {
  static const int some[] = {100, 2, 65}, few[] = {64, 0, 16};
  for (int i = 0; i < 2; i++) {
    const int *lens = i ? few : some;
    run(*state, &(Rules){"append=1 varlen=1 warps=2", .sq = 4, .sk = 100, .chunks = 3, .d = 64,
                         .causal = 1, .lens = lens});
    run(*state, &(Rules){"append=1 varlen=1 paged=1 check=1" SMALL, .sq = 1 + 2 * i, .sk = 100,
                         .chunks = 2, .d = 128, .causal = i, .page = i ? 1 : 16, .lens = lens});
    // the blocks of a cluster, with more of them than an item has tiles
    run(*state, &(Rules){"append=1 varlen=1 cluster=8 warm=1 tile_k=16" SMALL, .sq = 4, .sk = 100,
                         .chunks = 1, .d = 64, .causal = 1, .lens = lens});
  }
  run(*state, &(Rules){"append=1" SMALL, .sq = 2, .sk = 49, .chunks = 5, .d = 128});
}

// With check=1 a page that is none of the pool's and a length that can't be are told, of the
// sequence that has them, and nobody else's memory is read; the others' answers are right.
static void bad_tables_tell(Fixture *f, const char *params) {
  static const int lens[] = {40, 33, 20};
  enum { TURNS = 4 };
  static const int32_t bad[TURNS][2] = {
      {-1, 41}, {18, 1 << 30}, {INT32_MIN, -1}, {INT32_MAX, INT32_MIN}}; // an index, a length
  const Rules r = {params,
                   .sq = 1,
                   .sk = 40,
                   .chunks = 2,
                   .d = 64,
                   .page = 16,
                   .lens = lens};
  Case c = case_open(f, span, &r);
  assert_int_equal(c.t[K].t.shape[0], 18);
  for (int turn = 0; turn < TURNS; turn++) {
    ((int32_t *)c.t[TABLE].host)[1] = bad[turn][0];
    ((int32_t *)c.t[LENS].host)[1] = bad[turn][1];
    case_bind(&c);
    case_workspace(&c);
    case_launch(&c);
    int32_t told[BATCH];
    fixture_ok(f, device_read(f->sim, told, c.t[FAULTS].t.data, sizeof told, f->d));
    if (told[0] != 1 || told[1] != 2 || told[2] != 0)
      fail_msg("turn %d: faults %d %d %d, not 1 2 0", turn, told[0], told[1], told[2]);
    for (int h = 0; h < HEADS; h++) check_row(span, &r, c.t, 2, h, 0);
  }
  case_close(&c);
}

static void bad_tables_are_told(void **state) {
  bad_tables_tell(*state, "paged=1 varlen=1 check=1" SMALL);
  bad_tables_tell(*state, "paged=1 varlen=1 check=1 box=8" SMALL);
}

// Rows come in copies of 16 bytes, whatever the type: an address or a stride of 8 is refused.
static void eight_bit_rows_are_aligned_to_a_copy(void **state) {
  const Rules r = {"varlen=0" SMALL, .sq = 1, .sk = 40, .chunks = 2, .d = 64};
  Fixture *f = *state;
  Case c = case_open(f, fp8, &r);
  Tensor k = c.t[K].t;
  k.data = 4096 + 8;
  assert_int_equal(operator_bind(c.op, "k", &k, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "is not aligned to 16 bytes"));
  diag_reset(f->d);
  k.data = 4096;
  k.stride[1] += 8;
  assert_int_equal(operator_bind(c.op, "k", &k, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "not a multiple of 16"));
  diag_reset(f->d);
  case_close(&c);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, fixture_teardown)
  const struct CMUnitTest tests[] = {
      T(windows),
      T(caps_slopes_and_sinks),
      T(lengths),
      T(negative_lengths),
      T(pages),
      T(pages_without_lengths_and_with_windows),
      T(a_bad_block_table_is_a_trap),
      T(eight_bit_rows_are_aligned_to_a_copy),
      T(new_keys_are_appended),
      T(bad_tables_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
