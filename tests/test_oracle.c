// The device's oracle, on the interpreter, against the host's: every rule, type and layout.  Both
// work in fp64, so that they differ by its rounding alone: 1e-12 of a value, where scores are of
// size 1.
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "reference.h"
#include "verify_gates.h"
#include "verify_kit.h"
#include "verify_oracle.h"

typedef struct Ran {
  AttnInputs in;
  Reference host, device;
} Ran;

static void ran_free(Ran *r) {
  inputs_free(&r->in);
  reference_free(&r->host);
  reference_free(&r->device);
}

// A complete problem, as verification has it.
static Problem *complete(Fixture *f, const char *text, const char *hook) {
  Problem *p;
  Operator *op;
  PlanOpts plan = {.build = {.hook_path = hook}};
  if (problem_open_hooked(f->s, f->a, text, hook, &p, f->d) != ST_OK ||
      operator_make(f->s, "oracle_f64", NULL, p, &plan, &op, f->d) != ST_OK)
    fail_msg("%s: %s", text, diag_text(f->d));
  p = problem_copy(f->a, op->problem);
  operator_free(op);
  return p;
}

// Both oracles on random inputs; the host's by way of hook_eval where there is a hook.
static Status run_both(Fixture *f, const Problem *p, const char *hook, int64_t every, Ran *r) {
  DeviceOracle o = {.session = f->s, .dev = f->sim, .hook_path = hook, .seed = 3};
  HookRule *rule = hook ? hook_rule_new(f->s, hook, 3, 0) : NULL;
  ReferenceOpts opts = {.threads = 2, .every = every};
  *r = (Ran){0};
  Status st = inputs_make(p, p->dtype, FILL_NAN, &r->in, f->d);
  assert_int_equal(st, ST_OK);
  inputs_fill_random(&r->in, 4);
  inputs_end(p, &r->in);
  if (rule) {
    assert_int_equal(hook_rule_prepare(rule, p, &r->in, &opts, f->d), ST_OK);
    opts.score = hook_rule_score, opts.ctx = rule;
  }
  assert_int_equal(reference_rows(p, &r->in, &opts, &r->host, f->d), ST_OK);
  hook_rule_free(rule);
  return device_oracle(&o, p, &r->in, &r->host, every, &r->device, f->d);
}

static double worst(const double *a, const double *b, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; i++) {
    if (isnan(a[i]) || a[i] == b[i]) continue; // no such row, or -inf
    double err = fabs(a[i] - b[i]) / fmax(fabs(a[i]), 1);
    most = err > most || isnan(err) ? err : most;
  }
  return most;
}

static void same_on(Fixture *f, const Problem *p, const char *hook) {
  Ran r;
  const char *text = problem_text(f->a, p);
  if (run_both(f, p, hook, 1, &r) != ST_OK) fail_msg("%s: %s", text, diag_text(f->d));
  int64_t rows =
      problem_int(p, "batch", 1) * problem_int(p, "seqlen_q", 1) * problem_int(p, "heads_q", 1);
  double o = worst(r.host.o, r.device.o, rows * problem_head_dim_v(p));
  double lse = worst(r.host.lse, r.device.lse, rows);
  if (!(o <= 1e-12 && lse <= 1e-12)) fail_msg("%s: O differs by %g, LSE by %g", text, o, lse);
  ran_free(&r);
}

static void same(Fixture *f, const char *text, const char *hook) {
  diag_reset(f->d);
  same_on(f, complete(f, text, hook), hook);
}

// Each rule alone and all together, on shapes with tails, rows without keys, and groups.
static void every_rule(void **state) {
  static const char *const rules[] = {"",
                                      ",causal=1",
                                      ",wl=5,wr=3",
                                      ",wl=4,causal=1",
                                      ",wr=2",
                                      ",softcap=2",
                                      ",alibi=1",
                                      ",sinks=1",
                                      ",dv=96",
                                      ",scale=-0.3",
                                      ",causal=1,sinks=1",
                                      ",softcap=3,alibi=1,sinks=1",
                                      ",causal=1,wl=6,softcap=3,alibi=1,sinks=1,dv=32"};
  static const char *const shapes[] = {"b=1,hq=4,hkv=2,sq=7,sk=21,d=64", "b=2,hq=2,sq=9,sk=4,d=32",
                                       "b=3,hq=2,hkv=1,seqlens_q=6/0/3,seqlens_k=9/5/0,d=64"};
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    for (int s = 0; s < 3; s++)
      same(f, arena_printf(f->a, "%s%s,dtype=f32", shapes[s], rules[i]), NULL);
}

static void every_type(void **state) {
  static const char *const types[] = {"dtype=f16",
                                      "dtype=bf16",
                                      "dtype=e4m3,descale=1",
                                      "dtype=e4m3,causal=1",
                                      "dtype=bf16,dtype_kv=e4m3,descale=1",
                                      "dtype=f16,dtype_kv=e5m2",
                                      "dtype=f16,dtype_kv=e5m2,wl=3"};
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    same(f, arena_printf(f->a, "b=2,hq=4,hkv=2,sq=3,sk=17,d=128,dv=64,%s", types[i]), NULL);
  same(*state, "b=1,hq=1,sq=2,sk=9,d=192,dv=256,dtype=f16", NULL);
}

// Pages are how the kernel that is verified gets its keys; the oracle gets the rows.
static void pages(void **state) {
  Fixture *f = *state;
  Problem *p = complete(f, "b=2,hq=2,hkv=1,sq=2,seqlens_k=30/11,d=64,dtype=f16", NULL);
  problem_set_int(p, "page_size", 4);
  problem_set_int(p, "chunks", 3);
  same_on(f, p, NULL);
}

// V of a latent tensor is the oracle's as a tensor of its own.
static void one_tensor(void **state) {
  Fixture *f = *state;
  const char *text = "b=2,hq=4,hkv=1,sq=2,seqlens_k=9/20,d=576,dv=512,dtype=bf16,causal=1";
  Problem *p = complete(f, text, NULL);
  problem_set_int(p, "shared_kv", 1);
  same_on(f, p, NULL);
}

// Every number of 8 bits, as the only key's value: O is that number.
static void every_byte(void **state) {
  Fixture *f = *state;
  static const Dtype types[] = {DT_E4M3, DT_E5M2};
  for (int t = 0; t < 2; t++) {
    const Problem *p = complete(
        f,
        arena_printf(f->a, "b=8,hq=1,sq=1,sk=1,d=32,dtype=f16,dtype_kv=%s", dtype_name(types[t])),
        NULL);
    Ran r = {0};
    DeviceOracle o = {.session = f->s, .dev = f->sim};
    assert_int_equal(inputs_make(p, DT_F16, FILL_ZERO, &r.in, f->d), ST_OK);
    for (int n = 0; n < 256; n++)
      ((uint8_t *)r.in.v.host)[tensor_at(&r.in.v.t, n / 32, 0, 0, n % 32)] = (uint8_t)n;
    assert_int_equal(reference_attention(p, &r.in, 1, &r.host, f->d), ST_OK);
    if (device_oracle(&o, p, &r.in, &r.host, 1, &r.device, f->d) != ST_OK)
      fail_msg("%s: %s", dtype_name(types[t]), diag_text(f->d));
    for (int n = 0; n < 256; n++) {
      double want = dtype_load(types[t], &(uint8_t){(uint8_t)n});
      assert_true(isnan(want) ? isnan(r.device.o[n]) : r.device.o[n] == want);
    }
    ran_free(&r);
  }
}

// A cap far above the scores, about them and far below: tanh where it is its argument, curved,
// and 1.
static void caps(void **state) {
  static const char *const caps[] = {"1e-6", "0.01", "0.3", "1", "30", "1e4", "1e9"};
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
    same(f, arena_printf(f->a, "b=1,hq=3,sq=4,sk=30,d=32,dtype=f32,softcap=%s", caps[i]), NULL);
}

static void hooks(void **state) {
  static const char *const names[] = {"bias", "document", "cap", "causal"};
  Fixture *f = *state;
  for (int i = 0; i < 4; i++) {
    const char *path = arena_printf(f->a, "%s/examples/hooks/%s.hook", SOURCE_DIR, names[i]);
    const char *more = i == 2 ? ",cap=3" : "";
    same(f, arena_printf(f->a, "b=2,hq=2,sq=5,sk=33,d=32,dtype=f16%s", more), path);
    same(f,
         arena_printf(f->a, "hq=2,seqlens_q=5/0/3,seqlens_k=9/4/0,d=32,dtype=f32,wl=6,alibi=1%s",
                      more),
         path);
  }
}

// Every third row: the hook gets the scores of those alone, and gives them what it gives all.
static void hooks_on_a_sample(void **state) {
  Fixture *f = *state;
  const char *path = arena_printf(f->a, "%s/examples/hooks/bias.hook", SOURCE_DIR);
  const Problem *p = complete(f, "b=2,hq=2,hkv=1,sq=5,sk=33,d=32,dtype=f16,causal=1", path);
  Ran all, some;
  assert_int_equal(run_both(f, p, path, 1, &all), ST_OK);
  assert_int_equal(run_both(f, p, path, 3, &some), ST_OK);
  for (int64_t i = 0; i < 20; i++) {
    if (i % 3) assert_true(isnan(some.host.lse[i]));
    else assert_true(some.host.lse[i] == all.host.lse[i]);
    assert_true(some.device.lse[i] == all.device.lse[i]);
  }
  ran_free(&all), ran_free(&some);
}

// NaN and infinities come out where the host has them.
static void not_numbers(void **state) {
  Fixture *f = *state;
  const Problem *p = complete(f, "b=1,hq=1,sq=4,sk=6,d=32,dtype=f32,softcap=2", NULL);
  const Problem *q = complete(f, "b=1,hq=1,sq=4,sk=6,d=32,dtype=f32,wl=2,wr=1,sinks=1", NULL);
  for (int n = 0; n < 2; n++) {
    Ran r;
    assert_int_equal(run_both(f, n ? q : p, NULL, 1, &r), ST_OK);
    host_set(&r.in.q, 0, 1, 0, 3, NAN);
    host_set(&r.in.k, 0, 5, 0, 0, INFINITY);
    host_set(&r.in.v, 0, 2, 0, 7, -INFINITY);
    Ran again = {.in = r.in};
    DeviceOracle o = {.session = f->s, .dev = f->sim};
    assert_int_equal(reference_attention(n ? q : p, &r.in, 1, &again.host, f->d), ST_OK);
    if (device_oracle(&o, n ? q : p, &r.in, &again.host, 1, &again.device, f->d) != ST_OK)
      fail_msg("%s", diag_text(f->d));
    assert_true(isnan(again.device.o[1 * 32]));
    reference_free(&again.host), reference_free(&again.device);
    ran_free(&r);
  }
}

// A sample of the host's rows holds the device's: one wrong row of it is told, with its place.
static void held_against_the_host(void **state) {
  Fixture *f = *state;
  const Problem *p = complete(f, "b=2,hq=2,sq=5,sk=9,d=32,dtype=f32,causal=1,alibi=1", NULL);
  Ran r;
  assert_int_equal(run_both(f, p, NULL, 3, &r), ST_OK);
  for (int64_t i = 0; i < 20; i++) {
    assert_true(isnan(r.host.lse[i]) == (i % 3 != 0)); // the host made a sample,
    assert_true(isfinite(r.device.lse[i]));            // the device every row
  }
  DeviceOracle o = {.session = f->s, .dev = f->sim};
  r.host.lse[18] += 1e-9;
  reference_free(&r.device);
  assert_int_equal(device_oracle(&o, p, &r.in, &r.host, 3, &r.device, f->d), ST_FAILED);
  assert_non_null(strstr(diag_text(f->d), "lse at batch 1, head 1, row 3"));
  assert_null(r.device.o);
  ran_free(&r);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
  const struct CMUnitTest tests[] = {T(every_rule),  T(every_type),
                                     T(pages),       T(one_tensor),
                                     T(every_byte),  T(caps),
                                     T(hooks),       T(hooks_on_a_sample),
                                     T(not_numbers), T(held_against_the_host)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
