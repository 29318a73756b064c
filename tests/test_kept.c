// What a sweep keeps from one variant to the next: the right answers, counted, in bounded memory.
#include "bench.h"
#include "fake_run.h"
#include "measure.h"
#include "verify_kept.h"
#include "verify_kit.h"

// ---- the store of cases -------------------------------------------------------------------------
typedef struct Maker {
  int made;
  int64_t rows;
} Maker;

// rows x 8 floats of Q, K and V, and their answer: rows x (3 x 48 + 72) bytes with the gaps, about.
static Status make_case(void *ctx, KeptCase *out, Diag *d) {
  Maker *m = ctx;
  Problem *p;
  m->made++;
  if (m->rows < 0) return diag_fail(d, ST_DEVICE, "no case");
  Status st = problem_parse(d->arena, arena_printf(d->arena, "hq=1,sq=%d,sk=%d,d=8,dtype=f32",
                                                   (int)m->rows, (int)m->rows), &p, d);
  if (!st) st = inputs_make(p, DT_F32, FILL_ZERO, &out->in, d);
  out->ref.o = calloc((size_t)m->rows * 8, sizeof(double));
  out->ref.lse = calloc((size_t)m->rows, sizeof(double));
  out->every = m->rows;
  return st;
}

static const KeptCase *ask(Fixture *f, Kept *k, const char *key, Maker *m) {
  const KeptCase *c;
  fixture_ok(f, kept_case(k, key, make_case, m, &c, f->d));
  return c;
}

static void ask_only(Fixture *f, Kept *k, const char *key, Maker *m) {
  kept_release(ask(f, k, key, m));
}

static void memory_is_bounded(void **state) {
  Fixture *f = *state;
  Maker m = {.rows = 100};
  Kept *k = kept_new(1 << 20);
  ask_only(f, k, "one", &m);
  uint64_t one = kept_bytes(k);
  // Rows of Q, K, V with gaps of 16, 32, 48 bytes, 5 more of K and V, the last without its gap; O
  // and LSE in doubles; less than 2 KB of its own.
  uint64_t tensors = 100 * 48 - 16 + 105 * 64 - 32 + 105 * 80 - 48 + 100 * 9 * 8;
  assert_in_range(one, tensors + 1, tensors + 2048);
  kept_free(k);
  k = kept_new(3 * one + one / 2);
  m.made = 0;
  ask_only(f, k, "a", &m);
  ask_only(f, k, "b", &m);
  ask_only(f, k, "c", &m);
  ask_only(f, k, "a", &m); // b is now the one asked for longest ago
  assert_int_equal(m.made, 3);
  assert_int_equal(kept_found(k), 1);
  ask_only(f, k, "d", &m);
  assert_int_equal(kept_cases(k), 3);
  assert_true(kept_bytes(k) <= 3 * one + one / 2);
  ask_only(f, k, "a", &m);
  ask_only(f, k, "c", &m);
  ask_only(f, k, "d", &m);
  assert_int_equal(m.made, 4);
  ask_only(f, k, "b", &m);
  assert_int_equal(m.made, 5);
  m.rows = 1000; // more than all of them may take: made for once
  ask_only(f, k, "large", &m);
  ask_only(f, k, "large", &m);
  assert_int_equal(m.made, 7);
  assert_int_equal(kept_cases(k), 3);
  kept_free(k);
}

static void a_case_that_is_held_stays(void **state) {
  Fixture *f = *state;
  Maker m = {.rows = 100};
  Kept *k = kept_new(1 << 20);
  ask_only(f, k, "one", &m);
  uint64_t one = kept_bytes(k);
  kept_free(k);
  k = kept_new(one + one / 2); // room for one
  const KeptCase *held = ask(f, k, "held", &m);
  ((float *)held->in.q.host)[3] = 7;
  const KeptCase *other = ask(f, k, "other", &m); // no room: its own, for this once
  assert_int_equal(kept_cases(k), 1);
  assert_ptr_not_equal(held, other);
  kept_release(other);
  const KeptCase *again = ask(f, k, "held", &m);
  assert_ptr_equal(held, again);
  assert_true(((float *)again->in.q.host)[3] == 7);
  kept_release(again);
  kept_release(held);
  ask_only(f, k, "other", &m); // and now there is room
  ask_only(f, k, "other", &m);
  assert_int_equal(kept_cases(k), 1);
  assert_int_equal(m.made, 4);
  m.rows = -1; // what could not be made is not there
  const KeptCase *none;
  assert_int_equal(kept_case(k, "none", make_case, &m, &none, f->d), ST_DEVICE);
  assert_null(none);
  assert_int_equal(kept_case(k, "none", make_case, &m, &none, f->d), ST_DEVICE);
  assert_int_equal(kept_cases(k), 1);
  kept_free(k);
}

// ---- the right answer ---------------------------------------------------------------------------
static void same_verdict(const char *what, const Verdict *a, const Verdict *b) {
  assert_int_equal(a->passed, b->passed);
  assert_int_equal(a->ngates, b->ngates);
  for (int i = 0; i < a->ngates; i++) {
    const GateResult *x = &a->gate[i], *y = &b->gate[i];
    bool same = !strcmp(x->name, y->name) && x->run == y->run && x->passed == y->passed &&
                x->max_error == y->max_error && x->max_allowed == y->max_allowed &&
                x->mean_error == y->mean_error && x->mean_allowed == y->mean_allowed &&
                x->lse_error == y->lse_error && x->lse_allowed == y->lse_allowed &&
                x->compared == y->compared;
    if (!same) fail_msg("%s: gate %s is another with what was kept", what, x->name);
  }
}

#define SHAPE "b=2,hq=2,hkv=1,sq=9,sk=21,d=32"
typedef struct Asked {
  const char *variant, *problem;
  uint64_t seed;
} Asked;

// Problems a step apart, one after the other with one store: each as it is without.
static const Asked asked[] = {
    {"prefill_thread", SHAPE, 1},
    {"prefill_thread", SHAPE, 2},
    {"prefill_thread dtype=f16", SHAPE, 1},
    {"prefill_thread dtype=bf16", SHAPE, 1},
    {"prefill_thread", SHAPE ",causal=1", 1},
    {"prefill_thread", SHAPE ",scale=0.2", 1},
    {"prefill_thread", SHAPE ",scale=0.20000002", 1},
    {"prefill_thread", SHAPE ",wl=5", 1},
    {"prefill_thread", SHAPE ",wl=6", 1},
    {"prefill_thread", SHAPE ",softcap=3", 1},
    {"prefill_thread", SHAPE ",alibi=1", 1},
    {"prefill_thread", SHAPE ",sinks=1", 1},
    {"prefill_thread", "b=2,hq=2,hkv=1,sq=9,sk=22,d=32", 1},
    {"prefill_thread", "b=2,hq=2,hkv=2,sq=9,sk=21,d=32", 1},
    {"prefill_thread", "hq=2,hkv=1,seqlens_q=9/3,seqlens_k=21/4,d=32", 1},
    {"prefill_thread", "hq=2,hkv=1,seqlens_q=9/3,seqlens_k=21/5,d=32", 1},
    {"decode_splitk", "b=2,hq=2,hkv=1,sq=1,sk=21,d=32,chunks=2", 1},
    {"decode_splitk", "b=2,hq=2,hkv=1,sq=1,sk=21,d=32,chunks=3", 1},
};

static void every_problem_its_own(void **state) {
  Fixture *f = *state;
  Kept *k = kept_new(64 << 20);
  for (int round = 0; round < 2; round++)
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
      VerifyOpts opts = {.seed = asked[i].seed, .threads = 1};
      Verdict plain = fixture_verify(f, asked[i].variant, asked[i].problem, &opts, ST_OK);
      opts.kept = k;
      int found = kept_found(k), cases = kept_cases(k);
      Verdict v = fixture_verify(f, asked[i].variant, asked[i].problem, &opts, ST_OK);
      same_verdict(asked[i].problem, &plain, &v);
      if (round) assert_int_equal(kept_cases(k), cases); // nothing was made
      else if (i == 17) assert_int_equal(kept_cases(k), cases); // chunks are no other problem
      else if (kept_cases(k) == cases) fail_msg("%s: nothing new was made", asked[i].problem);
      if (!round && i == 1) assert_int_equal(kept_found(k), found); // another seed: nothing
    }
  kept_free(k);
}

// A kernel of another template is held to the same answers, and a wrong one is still wrong.
static void another_variant(void **state) {
  Fixture *f = *state;
  Kept *k = kept_new(64 << 20);
  VerifyOpts opts = {.seed = 1, .threads = 1, .kept = k};
  fixture_verify(f, "prefill_thread", SHAPE, &opts, ST_OK);
  int cases = kept_cases(k);
  assert_int_equal(cases, 6); // equal weights, 16 keys, committed, one key, random, unseen
  assert_int_equal(kept_found(k), 0);
  fixture_verify(f, "prefill_thread vec=1", SHAPE, &opts, ST_OK);
  fixture_verify(f, "prefill_tile", SHAPE, &opts, ST_OK);
  assert_int_equal(kept_cases(k), cases);
  assert_int_equal(kept_found(k), 12);
  kept_free(k);
}

static double some(void *ctx, int64_t b, int64_t i, int64_t h, int64_t e) {
  return (double)((b * 5 + i * 3 + h * 7 + e) % 11 - 5) * *(double *)ctx;
}

// The user's tensors change under the same names: no answer to the old ones is taken for theirs.
static void tensors_of_the_user(void **state) {
  Fixture *f = *state;
  Kept *k = kept_new(64 << 20);
  AttnInputs in;
  double by = 0.125;
  Problem *p = fixture_problem(f, SHAPE ",dtype=f32");
  fixture_ok(f, inputs_make(p, DT_F32, FILL_NAN, &in, f->d));
  host_fill_with(&in.q, some, &by), host_fill_with(&in.k, some, &by);
  host_fill_with(&in.v, some, &by);
  VerifyOpts opts = {.seed = 1, .threads = 1, .kept = k, .real = &in};
  fixture_verify(f, "prefill_thread", SHAPE, &opts, ST_OK);
  assert_int_equal(kept_cases(k), 4); // equal weights twice, committed, one key
  host_set(&in.v, 1, 4, 0, 7, 1000);
  fixture_verify(f, "prefill_thread", SHAPE, &opts, ST_OK);
  assert_int_equal(kept_cases(k), 4);
  opts.real = NULL;
  fixture_verify(f, "prefill_thread", SHAPE, &opts, ST_OK);
  assert_int_equal(kept_cases(k), 6);
  inputs_free(&in);
  kept_free(k);
}

// Nothing is kept under a hook: its file, and its tensors, are no part of a problem.
static void hooks(void **state) {
  static const char *const names[] = {"document", "causal", "document"};
  Fixture *f = *state;
  Kept *k = kept_new(64 << 20);
  VerifyOpts opts = {.seed = 3, .threads = 1, .kept = k};
  fixture_verify(f, "prefill_fma", "hq=2,sq=9,sk=33,d=32", &opts, ST_OK);
  int cases = kept_cases(k), found = kept_found(k);
  for (int i = 0; i < 3; i++) {
    opts.build.hook_path = arena_printf(f->a, "%s/examples/hooks/%s.hook", SOURCE_DIR, names[i]);
    fixture_verify(f, "prefill_fma", "hq=2,sq=9,sk=33,d=32", &opts, ST_OK);
  }
  assert_int_equal(kept_cases(k), cases);
  assert_int_equal(kept_found(k), found);
  kept_free(k);
}

// ---- what two points ask of the driver ----------------------------------------------------------
typedef struct Calls {
  int loads, launches, allocations, copies;
  size_t in; // bytes
} Calls;

static Calls calls_of(const FakeCuda *f) {
  return (Calls){f->loads, f->launches, f->allocations, f->copies, f->bytes_in};
}

static void assert_calls(const FakeCuda *f, Calls *since, Calls want) {
  Calls now = calls_of(f);
  assert_int_equal(now.loads - since->loads, want.loads);
  assert_int_equal(now.launches - since->launches, want.launches);
  assert_int_equal(now.allocations - since->allocations, want.allocations);
  assert_int_equal(now.copies - since->copies, want.copies);
  assert_int_equal(now.in - since->in, want.in);
  *since = now;
}

// The ceilings are none of this test's: as if measured.
static void set_ceilings(Device *dev) {
  Bench *b = bench_of(dev);
  b->ceiling = calloc(1, sizeof *b->ceiling);
  b->ceiling[0] = (Ceiling){.bytes = 1 << 20, .read_gbs = 1, .copy_gbs = 1, .fma_gflops = 1};
  b->nceilings = b->ceiling_cap = 1;
}

static Measurement measure_point(Fixture *f, Device *dev, Kept *k, const char *variant,
                                 const char *problem) {
  Params given;
  Measurement m;
  Problem *p = fixture_problem(f, problem);
  const char *name = fixture_variant(f, variant, &given);
  MeasureOpts opts = {.verify = {.seed = 1, .threads = 1, .kept = k, .host_flops = 1e4},
                      .time = {.hot = true, .samples = 6}};
  Status st = measure_variant(f->s, dev, name, &given, p, &opts, &m, f->a, f->d);
  if (st) fail_msg("status %d: %s%s", (int)st, diag_text(f->d), verdict_text(f->a, &m.before));
  assert_true(m.verified);
  return m;
}

// A problem that the host answers in part: 4 x 2 x 9 x 21 x 32 FLOPs of 10,000.
static void two_points_of_one_problem(void **state) {
  enum {
    GATES = 8,         // equal weights, 16 keys, committed, one key, random, unseen, 1 and 2 blocks
    AGAIN = 2,         // equal weights and committed, after the timed loop
    TIMED = 1 + 5 + 6, // the first, warming up, samples
    SLABS = 4,         // before and after: of the problem, and of the committed, larger one
    COPIES = 3 + 3 + 3 + 3 + 1, // inputs there and back, O and LSE with the guards, the workspace
    TENSORS = 5, FILLED = 3,
  };
  const int runs = GATES + AGAIN;
  const Calls next = {.loads = 1,
                      .launches = runs + TIMED,
                      .allocations = SLABS + TENSORS,
                      .copies = runs * COPIES + FILLED,
                      // Q, K and V with their gaps: of 21 keys, 16, 1, the committed ones; dense
                      .in = 6 * 19968 + 16608 + 4512 + 2 * 52224 + 13056};
  const char *problem = "hq=2,sq=9,sk=21,d=32";
  Fixture *f = *state;
  FakeRun run;
  FakeCuda *fake = fake_that_runs(&run, f->sim);
  Device *dev = opened(FAKE, f->d);
  Kept *k = kept_new(64 << 20);
  set_ceilings(dev);
  Calls since = calls_of(fake);
  measure_point(f, dev, k, "prefill_thread vec=1", problem);
  Calls first = next; // and the device's oracle: loaded, and run once
  first.loads++, first.launches++, first.allocations++;
  first.copies += COPIES, first.in += 19968;
  assert_calls(fake, &since, first);
  assert_int_equal(kept_cases(k), 6);
  assert_int_equal(kept_found(k), AGAIN);
  measure_point(f, dev, k, "prefill_thread vec=2", problem);
  assert_calls(fake, &since, next);
  measure_point(f, dev, k, "prefill_tile", problem);
  assert_calls(fake, &since, next);
  assert_int_equal(kept_cases(k), 6);
  assert_int_equal(kept_found(k), AGAIN + 2 * (6 + AGAIN));
  // Another problem: its own answers, the same oracle.
  measure_point(f, dev, k, "prefill_thread vec=1", "hq=2,sq=9,sk=22,d=32");
  first.loads--;
  first.in += 7 * (2 * 40 + 2 * 44) * 4 + 2 * 2 * 32 * 4; // a row more of K and V, of two heads
  assert_calls(fake, &since, first);
  assert_int_equal(kept_cases(k), 6 + 3); // 16 keys, one key and the committed case are the same
  kept_free(k);
  device_close(dev);
  assert_nothing_left(fake);
}

// ---- what a launch must leave alone -------------------------------------------------------------
typedef struct Poke {
  FakeRun run; // first: the kernels' own context
  uint64_t at; // of the gates' memory
} Poke;

static void run_and_poke(void *ctx, const FakeLaunch *l) {
  Poke *p = ctx;
  fake_run(&p->run, l);
  ((uint8_t *)(uintptr_t)p->run.fake->buffer[0].at)[p->at] ^= 0x55;
}

// Q, K, V, O and LSE lie one behind the other, 4096 bytes of poison and more around each: 2576
// bytes of Q in 11008, 8288 of K in 16640, 9104 of V in 17408.
static void a_byte_out_of_place(void **state) {
  enum { K = 11008, V = K + 16640, O = V + 17408, GUARD = 4096 };
  static const struct { uint64_t at; const char *note; } cases[] = {
      {10, "guard zone overwritten before q at byte 4086"},
      {GUARD, "input overwritten: q at byte 0"},
      {GUARD + 2576, "guard zone overwritten after q at byte 0"},
      {K - 1, "guard zone overwritten after q at byte 4335"},
      {K, "guard zone overwritten before k at byte 4096"},
      {K + GUARD + 8287, "input overwritten: k at byte 8287"},
      {V + GUARD + 9104 + 5, "guard zone overwritten after v at byte 5"},
      {O + GUARD - 1, "guard zone overwritten before o at byte 1"},
      {O + GUARD + 128, "gap between rows overwritten in o at byte 128"},
  };
  Fixture *f = *state;
  Poke poke;
  FakeCuda *fake = fake_that_runs(&poke.run, f->sim);
  fake->run = run_and_poke;
  fake->run_ctx = &poke;
  Device *dev = opened(FAKE, f->d);
  Problem *p = fixture_problem(f, "hq=2,sq=9,sk=21,d=32");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Verdict v;
    VerifyOpts opts = {.threads = 1, .quick = true};
    poke.at = cases[i].at;
    Status st = verify(f->s, dev, "prefill_thread", NULL, p, &opts, &v, f->a, f->d);
    assert_int_equal(st, ST_FAILED);
    assert_non_null(v.gate[0].note);
    assert_string_equal(v.gate[0].note, cases[i].note);
  }
  device_close(dev);
  assert_nothing_left(fake);
}

static void a_line_says_what_took_long(void **state) {
  Fixture *f = *state;
  Spent x = {.s = {[SPENT_LOAD] = 1.2, [SPENT_COPY] = 0.06, [SPENT_COMPARE] = 0.012}};
  x.s[SPENT_TIME] = 0.9;
  assert_string_equal(spent_text(f->a, &x, 3), "0.72 s a point: load 0.40, copy 0.02, time 0.30");
  assert_string_equal(spent_text(f->a, &(Spent){0}, 1), "0.00 s a point");
}

// Every second counts in one place.
static void time_is_spent_once(void **state) {
  (void)state;
  Spent x = {0};
  assert_int_equal(spent_on(&x, SPENT_LOAD), SPENT_OTHER);
  assert_int_equal(spent_on(&x, SPENT_RUN), SPENT_LOAD);
  double began = x.since, loading = x.s[SPENT_LOAD];
  assert_int_equal(spent_on(&x, SPENT_LOAD), SPENT_RUN);
  assert_int_equal(spent_on(&x, SPENT_OTHER), SPENT_LOAD);
  assert_true(x.s[SPENT_LOAD] >= loading);
  assert_true(fabs(x.s[SPENT_LOAD] - loading + x.s[SPENT_RUN] - (x.since - began)) < 1e-9);
  assert_true(x.s[SPENT_OTHER] == 0);
  assert_true(fabs(spent_all(&x) - x.s[SPENT_LOAD] - x.s[SPENT_RUN]) < 1e-12);
  assert_int_equal(spent_on(NULL, SPENT_RUN), SPENT_OTHER);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
  const struct CMUnitTest tests[] = {
      T(memory_is_bounded),   T(a_case_that_is_held_stays), T(every_problem_its_own),
      T(another_variant),     T(tensors_of_the_user),       T(hooks),
      T(two_points_of_one_problem), T(a_byte_out_of_place),
      T(a_line_says_what_took_long), cmocka_unit_test(time_is_spent_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
