// Every kernel verified on the interpreter at small shapes: all gates, every template that makes
// attention, the edges of their tiles and chunks.
#include "npy.h"
#include "timer.h"
#include "verify_kit.h"

static void prefill(void **state) {
  Fixture *f = *state;
  fixture_pass(f, "prefill_thread head_dim=32 causal=true", "b=2,hq=4,hkv=2,sq=33,sk=37");
  fixture_pass(f, "prefill_thread head_dim=32 dtype=f16 vec=2", "b=2,hq=2,hkv=2,sq=3,sk=65");
  fixture_pass(f, "prefill_thread head_dim=64 dtype=bf16", "b=2,hq=3,hkv=1,sq=5,sk=20,causal=1");
}

// Tails of both lengths, grouped queries, rows that see no key; Q staged apart and in place (256).
static void prefill_on_hopper(void **state) {
  Fixture *f = *state;
  fixture_pass(f, "prefill_wgmma head_dim=128", "b=2,hq=2,hkv=1,sq=70,sk=333");
  fixture_pass(f, "prefill_wgmma head_dim=128 dtype=f16 tile_q=64",
               "b=1,hq=2,sq=130,sk=100,causal=1");
  fixture_pass(f, "prefill_wgmma head_dim=64", "b=1,hq=2,hkv=2,sq=200,sk=257,causal=1");
  fixture_pass(f, "prefill_wgmma head_dim=256", "b=1,hq=2,hkv=1,sq=150,sk=100,causal=1");
  fixture_pass(f, "prefill_wgmma head_dim=64 stages=1", "b=2,hq=2,hkv=2,sq=1,sk=1");
  fixture_pass(f, "prefill_wgmma", "b=2,hq=2,sq=3,sk=0");
  fixture_pass(f, "prefill_wgmma", "b=0,hq=2,sq=3,sk=5");
  fixture_pass(f, "prefill_wgmma", "b=2,hq=2,sq=0,sk=5");
}

// e4m3: V transposed in boxes of 128 keys (two at 224) and of 128 columns (two at 256), halves of
// both; three warpgroups; O as f16; every rule and a factor for each head.
static void prefill_of_eight_bits(void **state) {
  Fixture *f = *state;
  fixture_pass(f, "prefill_wgmma", "b=2,hq=4,hkv=2,sq=70,sk=333,d=128,dtype=e4m3,descale=1");
  fixture_pass(f, "prefill_wgmma tile_k=224 dtype_o=f16", "b=1,hq=1,sq=64,sk=500,d=128,dtype=e4m3");
  fixture_pass(f, "prefill_wgmma tile_q=192 tile_k=96",
               "b=1,hq=2,sq=200,sk=500,d=64,causal=1,dtype=e4m3");
  fixture_pass(f, "prefill_wgmma", "b=1,hq=2,sq=70,sk=130,d=256,dtype=e4m3,causal=1,descale=1");
  fixture_pass(
      f, "prefill_wgmma",
      "b=2,hq=4,hkv=2,sq=90,sk=150,d=192,dv=128,dtype=e4m3,descale=1,causal=1,wl=60,softcap=20,"
      "alibi=1,sinks=1");
}

// Right answers that an error taken from one run of a few rows, without the split of fp32 numbers
// or without the rounding of O, did not allow.
static void small_problems(void **state) {
  Fixture *f = *state;
  const struct {
    const char *variant, *problem;
    uint64_t seed;
  } c[] = {
      {"prefill_fma", "hq=4,hkv=2,sq=1,sk=197,d=64", 2},
      {"prefill_mma dtype=f32", "hq=2,sq=3,sk=1,d=64", 3},
      // the largest scale: scores whose exponents are known to a quarter
      {"prefill_wgmma", "hq=3,sq=9,sk=40,d=64,dtype=f16,scale=4096", 1},
      {"prefill_wgmma", "hq=3,hkv=1,sq=9,sk=40,d=256,dtype=e4m3,scale=4096,descale=1", 1},
      {"prefill_mma dtype=f32", "hq=3,sq=9,sk=40,d=64,scale=-4096", 1},
      {"decode_mma", "hq=4,hkv=1,sq=1,sk=300,d=128,scale=1000", 1},
      {"prefill_wgmma", "hq=4,hkv=2,sq=3,sk=197,d=64,dtype=e4m3,scale=0", 1},
      {"prefill_wgmma dtype_o=f16", "hq=4,hkv=2,sq=3,sk=600,d=64,dtype=e4m3,scale=0", 1},
      {"prefill_fma", "hq=2,hkv=1,sq=1,sk=5,d=128,scale=10,softcap=100", 2},
      {"decode_fma", "hq=2,hkv=1,sq=1,sk=5,d=128,scale=100,softcap=1000", 15},
      {"prefill_thread", "hq=2,hkv=1,sq=1,sk=9,d=128,scale=10,softcap=30", 8},
  };
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    VerifyOpts opts = {.seed = c[i].seed, .threads = 2};
    fixture_verify(f, c[i].variant, c[i].problem, &opts, ST_OK);
  }
}

static void prefill_at_every_vec(void **state) {
  Fixture *f = *state;
  for (int vec = 1; vec <= 4; vec *= 2)
    fixture_pass(f, arena_printf(f->a, "prefill_thread head_dim=32 vec=%d", vec),
                 "b=1,hq=2,hkv=1,sq=2,sk=9,causal=1");
}

static void decode(void **state) {
  Fixture *f = *state;
  fixture_pass(f, "decode_splitk head_dim=32", "b=2,hq=4,hkv=2,sq=1,sk=257,chunks=3");
  fixture_pass(f, "decode_splitk head_dim=64 dtype=f16", "b=2,hq=8,hkv=2,sq=1,sk=129,chunks=2");
  fixture_pass(f, "decode_splitk head_dim=32 dtype=bf16",
               "b=3,hq=7,hkv=1,sq=2,sk=65,chunks=4,causal=1");
}

// Chunks that get no key, one key in many chunks, as many chunks as keys.
static void decode_with_empty_chunks(void **state) {
  Fixture *f = *state;
  const char *problems[] = {"b=2,hq=2,hkv=1,sq=2,sk=1,chunks=4", "b=2,hq=2,sq=1,sk=5,chunks=5",
                            "b=1,hq=2,sq=1,sk=128,chunks=128", "b=2,hq=2,sq=1,sk=0"};
  for (int i = 0; i < 4; i++) fixture_pass(f, "decode_splitk head_dim=32", problems[i]);
}

static void the_device_oracle(void **state) {
  Fixture *f = *state;
  fixture_pass(f, "oracle_f64 head_dim=32", "b=2,hq=4,hkv=2,sq=3,sk=17,causal=1");
  fixture_pass(f, "oracle_f64 head_dim=32 dtype=bf16", "b=1,hq=2,hkv=2,sq=2,sk=9");
}

static void empty_dimensions(void **state) {
  Fixture *f = *state;
  fixture_pass(f, "prefill_thread head_dim=32", "b=2,hq=2,sq=3,sk=0");
  fixture_pass(f, "prefill_thread head_dim=32", "b=0,hq=2,sq=3,sk=5");
  fixture_pass(f, "prefill_thread head_dim=32", "b=2,hq=2,sq=0,sk=5");
  fixture_pass(f, "prefill_thread head_dim=32 causal=1", "b=2,hq=2,sq=5,sk=2");
  fixture_pass(f, "decode_splitk head_dim=32", "b=0,hq=2,sq=1,sk=5");
}

static void ceilings(void **state) {
  Fixture *f = *state;
  fixture_pass(f, "ceiling_read", "words=40001");
  fixture_pass(f, "ceiling_copy", "words=40001");
  fixture_pass(f, "ceiling_copy", "words=3");
  fixture_pass(f, "ceiling_fma", "");
  fixture_pass(f, "ceiling_mma dtype=e4m3", "");
  fixture_pass(f, "ceiling_wgmma", "");
}

static void head_counts_of_real_models(void **state) {
  Fixture *f = *state;
  const char *heads[] = {"hq=28,hkv=4", "hq=40,hkv=8", "hq=24,hkv=4"};
  for (int i = 0; i < 3; i++) {
    const char *p = arena_printf(f->a, "b=1,%s,sq=1,sk=9", heads[i]);
    VerifyOpts opts = {.seed = 3, .threads = 2, .quick = true};
    fixture_verify(f, "decode_splitk head_dim=32", p, &opts, ST_OK);
    fixture_verify(f, "prefill_thread head_dim=32", p, &opts, ST_OK);
  }
}

static void what_is_refused(void **state) {
  static const Refusal cases[] = {
      {"prefill_thread head_dim=32", "hq=1,sq=1,sk=1,d=64", "disagree"},
      {"prefill_thread", "hq=1,sq=1,sk=1,d=63",
       "head_dim=63 is not legal: head_dim is 32, 64, 96, 128, 192 or 256"},
      {"combine", "hq=1,sq=1,sk=1", "combine makes no answer of its own"},
      {"prefill_thread", "hq=1,sk=1,sq=3000000000", "seqlen_q=3000000000 does not fit"},
  };
  REFUSED_ALL(*state, cases);
}

// Terabytes of keys: refused with both figures and before a byte is allocated, so that the device
// takes the next problem.
static void too_large_for_the_device(void **state) {
  Fixture *f = *state;
  VerifyOpts opts = {.seed = 3, .quick = true};
  uint64_t before = device_info(f->sim)->memory_free;
  const char *names[] = {"prefill_thread", "decode_splitk", "ceiling_read"};
  for (int i = 0; i < 3; i++) {
    const char *p = i < 2 ? "b=64,hq=64,hkv=64,sq=1,sk=100000000,d=128" : "words=9000000000000";
    fixture_verify(f, names[i], p, &opts, ST_DEVICE);
    assert_int_equal(f->d->errors, 1);
    assert_non_null(strstr(diag_text(f->d), "not enough device memory on sim: "));
    assert_non_null(strstr(diag_text(f->d), " MiB free"));
    assert_true(device_info(f->sim)->memory_free == before);
  }
  fixture_pass(f, "prefill_thread head_dim=32", "hq=1,sq=2,sk=3");
}

static void quick_runs_less(void **state) {
  Fixture *f = *state;
  VerifyOpts opts = {.seed = 3, .threads = 2, .quick = true};
  Verdict v = fixture_verify(f, "prefill_thread head_dim=32", "hq=2,sq=2,sk=9", &opts, ST_OK);
  assert_int_equal(v.ngates, 6);
  assert_string_equal(v.gate[5].name, "expect");
  assert_int_equal(verdict_ran(&v), 6);
  // Slopes leave closed form and committed row out: the others, or nothing would be proved.
  v = fixture_verify(f, "prefill_mma", "hq=2,sq=2,sk=9,d=64,alibi=1", &opts, ST_OK);
  assert_int_equal(v.ngates, 10);
  assert_int_equal(verdict_ran(&v), 4); // one-key, reference, unseen, grid
  assert_string_equal(
      verdict_not_run(f->a, &v),
      "closed-form, integer, constant-v, cancelling, one-hot (slopes and sinks make weights "
      "unequal; the reference gate has them), expect (the committed rows are without windows, "
      "caps, slopes, sinks, factors or head_dim_v)");
}

static void the_repeating_command_is_whole(void **state) {
  Fixture *f = *state;
  VerifyOpts opts = {.seed = 3, .grid = 2, .quick = true, .plan = {.grid = 2}};
  Verdict v =
      fixture_verify(f, "decode_splitk head_dim=32", "hq=2,sq=1,sk=9,chunks=2", &opts, ST_OK);
  const char *parts[] = {"ptxsmith verify decode_splitk ", " head_dim=32 ", " vec=4 ",
                         " --problem b=1,hq=2,hkv=2,sq=1,sk=9,d=32,causal=0,chunks=2,scale=",
                         " --device sim --seed 3 --grid 2"};
  for (int i = 0; i < 5; i++)
    if (!strstr(v.reproduce, parts[i])) fail_msg("%s: no \"%s\"", v.reproduce, parts[i]);
  // the program as it was called, a word of the shell's
  opts.program = "my build/ptxsmith";
  v = fixture_verify(f, "decode_splitk head_dim=32", "hq=2,sq=1,sk=9,chunks=2", &opts, ST_OK);
  const char begin[] = "'my build/ptxsmith' verify decode_splitk head_dim=32 ";
  assert_int_equal(strncmp(v.reproduce, begin, sizeof begin - 1), 0);
  // a ceiling's, as the interpreter was told to run it
  VerifyOpts sanitized = {.sanitize = true, .schedule = 4, .step_limit = 999999, .grid = 3};
  v = fixture_verify(f, "ceiling_copy", "words=99", &sanitized, ST_OK);
  assert_non_null(strstr(v.reproduce, " --problem words=99 --device sim --grid 3 --sanitize "
                                      "--schedule 4 --steps 999999"));
  assert_string_equal(v.gate[2].name, "--grid");
  assert_string_equal(verdict_passed(f->a, &v), "3 gates passed, and the sanitizer");
}

// The Q, K and V of one layer of a real model on real text.
static void real_tensors(void **state) {
  Fixture *f = *state;
  AttnInputs in = {0};
  const char *names[] = {"q", "k", "v"};
  HostTensor *t[] = {&in.q, &in.k, &in.v};
  for (int i = 0; i < 3; i++) {
    char *path = arena_printf(f->a, "%s/data/minilm_%s.npy", TESTS_DIR, names[i]);
    if (npy_read_tensor(path, DT_F32, &layout_dense, t[i], f->d) != ST_OK)
      fail_msg("%s", diag_text(f->d));
  }
  const int64_t *n = in.q.t.shape;
  char *problem = arena_printf(f->a, "b=%d,hq=%d,sq=%d,sk=%d,d=%d", (int)n[0], (int)n[2], (int)n[1],
                               (int)in.k.t.shape[1], (int)n[3]);
  VerifyOpts opts = {.seed = 3, .threads = 2, .real = &in};
  fixture_verify(f, "prefill_thread", problem, &opts, ST_OK);
  fixture_verify(f, "decode_splitk", problem, &opts, ST_OK);
  fixture_verify(f, "prefill_thread", "b=1,hq=12,sq=8,sk=8,d=32", &opts, ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "q: shape is"));
  inputs_free(&in);
}

// Every gate stands in a verdict, as passed or with the reason why it does not apply.
static void a_verdict_names_every_gate(void **state) {
  static const char *const gates[] = {"closed-form",   "integer", "constant-v", "cancelling",
                                      "one-hot",       "one-hot-exact", "expect", "one-key",
                                      "reference",     "unseen",        "grid"};
  static const struct {
    const char *problem, *without;
  } cases[] = {
      {"hq=2,sq=2,sk=9,d=64,dtype=f16", ""},
      {"hq=2,sq=2,sk=9,d=64,dtype=f16,causal=1", "one-hot-exact (under a mask "},
      {"hq=2,sq=2,sk=0,d=64,dtype=f16", "one-hot-exact (there are no keys)"},
      {"hq=2,sq=2,sk=9,d=64,dtype=f16,sinks=1", "one-hot, one-hot-exact (slopes and sinks"},
  };
  Fixture *f = *state;
  VerifyOpts opts = {.seed = 3, .threads = 2};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    Verdict v = fixture_verify(f, "prefill_mma", cases[c].problem, &opts, ST_OK);
    const char *text = verdict_text(f->a, &v);
    assert_int_equal(v.ngates, 11);
    for (int i = 0; i < 11; i++)
      if (!strstr(text, gates[i])) fail_msg("%s: no %s in\n%s", cases[c].problem, gates[i], text);
    if (!*cases[c].without) assert_int_equal(verdict_ran(&v), 11);
    else if (!strstr(verdict_not_run(f->a, &v), cases[c].without)) fail_msg("%s", text);
    assert_null(strstr(text, "sanitizer"));
  }
  device_sim_opts(f->sim, &(SimOpts){.threads = 1, .sanitize = true, .seed = 4});
  opts.sanitize = true, opts.schedule = 4;
  Verdict v = fixture_verify(f, "prefill_mma", cases[0].problem, &opts, ST_OK);
  assert_non_null(strstr(verdict_text(f->a, &v), "  sanitizer      pass  no race, "));
  assert_non_null(strstr(verdict_text(f->a, &v), "; schedule 4\n"));
  device_sim_opts(f->sim, &(SimOpts){.threads = 0});
}

// A user's rule with a value of its own: bias, offset and masks, the same lines in the oracle.
static void a_score_hook(void **state) {
  static const GateCase cases[] = {
      {"prefill_thread", "b=2,hq=4,hkv=2,sq=9,sk=40,d=32,causal=1,slope=0.1"},
      {"prefill_mma", "b=2,hq=4,hkv=2,sq=45,sk=90,d=64,causal=1,dtype=bf16,slope=0.1"},
      {"prefill_mma", "b=2,hq=4,hkv=2,sq=45,sk=40,d=32,dtype=f32,slope=0.1"},
      {"decode_splitk", "b=2,hq=4,hkv=2,sq=2,sk=70,d=32,chunks=3,slope=0.1"},
      {"oracle_f64", "b=1,hq=4,hkv=2,sq=2,sk=20,d=32,slope=0.1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Verdict v = fixture_hooked(*state, cases[i].variant, SOURCE_DIR "/tests/kernels/slope.hook",
                               cases[i].problem, ST_OK);
    assert_int_equal(v.ngates, 12);
    assert_int_equal(verdict_ran(&v), 3); // reference, unseen, grid
    assert_non_null(strstr(v.reproduce, "slope=0.1"));
    assert_non_null(strstr(v.reproduce, "--hook "));
  }
}

// Row 69 sees a key that is NaN; row 64, of the same warp, keeps its bits when that one's maximum
// grows (the gate "unseen").
static void a_row_depends_on_itself_alone(void **state) {
  VerifyOpts opts = {.threads = 2};
  fixture_verify(*state, "prefill_wgmma", "b=1,hq=2,hkv=1,sq=70,sk=150,d=64,causal=1", &opts,
                 ST_OK);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(prefill),
      T(prefill_at_every_vec),
      T(prefill_on_hopper),
      T(prefill_of_eight_bits),
      T(small_problems),
      T(a_row_depends_on_itself_alone),
      T(decode),
      T(decode_with_empty_chunks),
      T(the_device_oracle),
      T(empty_dimensions),
      T(ceilings),
      T(head_counts_of_real_models),
      T(what_is_refused),
      T(too_large_for_the_device),
      T(quick_runs_less),
      T(the_repeating_command_is_whole),
      T(real_tensors),
      T(a_score_hook),
      T(a_verdict_names_every_gate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
