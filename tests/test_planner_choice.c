// Which template a problem gets on which device, and that what is planned passes verification.
#include "verify_kit.h"

#include <stdlib.h>

#include "planner.h"

enum { SM_80, SM_90A, SM_120A, GPUS };
static const DeviceInfo gpus[GPUS] = {
    {.name = "sm_80", .sm = 80, .smem_optin = 166912, .ptx_version = 90},
    {.name = "sm_90a", .sm = 90, .sm_suffix = 'a', .smem_optin = 232448, .ptx_version = 90},
    {.name = "sm_120a", .sm = 120, .sm_suffix = 'a', .smem_optin = 101376, .ptx_version = 90},
};

typedef struct Case {
  const char *problem;
  const char *want[GPUS]; // of sim what sm_90a has; NULL: none does it
} Case;

static const Case cases[] = {
    // A type that nobody gives is the template's: the first that does the rest.
    {"hq=4,hkv=2,sq=40,sk=70,d=64,causal=1", {"prefill_mma", "prefill_wgmma", "prefill_mma"}},
    {"hq=4,hkv=2,sq=1,sk=300,d=64", {"decode_mma", "decode_mma", "decode_mma"}},
    {"hq=2,sq=40,sk=70,d=32,dv=64", {"prefill_fma", "prefill_fma", "prefill_fma"}},
    {"hq=4,hkv=2,sq=40,sk=70,d=32,dtype=f32", {"prefill_mma", "prefill_mma", "prefill_mma"}},
    {"hq=4,hkv=2,sq=40,sk=70,d=64,causal=1,dtype=bf16",
     {"prefill_mma", "prefill_wgmma", "prefill_mma"}},
    {"hq=4,hkv=2,sq=40,sk=70,d=32,dtype=f16", {"prefill_mma", "prefill_mma", "prefill_mma"}},
    {"hq=2,sq=40,sk=70,d=256,dtype=f16", {"prefill_mma", "prefill_wgmma", "prefill_mma"}},
    {"hq=4,hkv=2,sq=40,sk=70,d=64,dtype=bf16,wl=9,wr=3",
     {"prefill_mma", "prefill_wgmma", "prefill_mma"}},
    {"hq=4,hkv=2,sq=40,sk=70,d=64,dtype=bf16,softcap=20",
     {"prefill_mma", "prefill_wgmma", "prefill_mma"}},
    {"hq=4,hkv=2,sq=40,sk=70,d=64,dtype=bf16,alibi=1",
     {"prefill_mma", "prefill_wgmma", "prefill_mma"}},
    {"hq=4,hkv=2,sq=40,sk=70,d=64,dtype=bf16,sinks=1",
     {"prefill_mma", "prefill_wgmma", "prefill_mma"}},
    {"hq=4,hkv=2,sq=40,sk=70,d=64,wl=9,sinks=1,softcap=20,dtype=f32",
     {"prefill_mma", "prefill_mma", "prefill_mma"}},
    {"hq=2,sq=40,sk=70,d=192,dv=128,dtype=bf16", {"prefill_mma", "prefill_wgmma", "prefill_mma"}},
    {"hq=2,sq=40,sk=70,d=64,dv=128,dtype=f32", {"prefill_mma", "prefill_mma", "prefill_mma"}},
    {"hq=2,sq=40,sk=70,d=32,dv=64,dtype=f32", {"prefill_mma", "prefill_mma", "prefill_mma"}},
    {"hq=4,hkv=2,sq=40,sk=70,d=64,dtype=e4m3,descale=1", {NULL, "prefill_wgmma", NULL}},
    {"hq=4,hkv=2,sq=40,sk=70,d=64,dtype=bf16,seqlens_q=40/7/0,seqlens_k=70/9/3",
     {"prefill_mma", "prefill_wgmma", "prefill_mma"}},
    {"hq=4,hkv=2,sq=40,sk=70,d=64,seqlens_q=40/7/0,seqlens_k=70/9/3,dtype=f32",
     {"prefill_mma", "prefill_mma", "prefill_mma"}},
    {"hq=4,hkv=2,sq=40,sk=70,d=64,dtype=bf16,page=16",
     {"decode_span", "decode_span", "decode_span"}},
    {"hq=4,hkv=2,sq=40,sk=70,d=64,page=16,dtype=f32", {"decode_fma", "decode_fma", "decode_fma"}},
    {"hq=2,sq=40,sk=70,d=64,dtype=bf16,dtype_kv=e4m3", {NULL, "decode_span", "decode_span"}},
    {"hq=4,hkv=2,sq=1,sk=300,d=64,dtype=f32", {"decode_fma", "decode_fma", "decode_fma"}},
    {"hq=4,hkv=2,sq=1,sk=300,d=64,wl=77,dtype=f32", {"decode_fma", "decode_fma", "decode_fma"}},
    {"hq=4,hkv=2,sq=1,sk=300,d=64,seqlens_k=300/9,dtype=f32",
     {"decode_fma", "decode_fma", "decode_fma"}},
    {"hq=4,hkv=2,sq=1,sk=300,d=64,dtype=bf16", {"decode_mma", "decode_mma", "decode_mma"}},
    {"b=65,hq=2,hkv=2,sq=1,sk=3,d=64,dtype=bf16", {"decode_mma", "decode_mma", "decode_mma"}},
    {"b=66,hq=2,hkv=2,sq=1,sk=3,d=64,dtype=bf16", {"decode_span", "decode_span", "decode_span"}},
    {"hq=4,hkv=2,sq=1,sk=300,d=64,dtype=bf16,seqlens_k=300/9",
     {"decode_span", "decode_span", "decode_span"}},
    {"hq=4,hkv=2,sq=1,sk=300,d=64,dtype=bf16,wl=77,softcap=20",
     {"decode_mma", "decode_mma", "decode_mma"}},
    {"hq=4,hkv=2,sq=1,sk=300,d=64,dtype=bf16,alibi=1,sinks=1",
     {"decode_mma", "decode_mma", "decode_mma"}},
    {"hq=4,hkv=2,sq=1,sk=300,d=64,dtype=bf16,dtype_kv=e4m3,descale=1",
     {NULL, "decode_span", "decode_span"}},
    {"hq=4,hkv=2,sq=1,sk=300,d=64,dtype=f16,dtype_kv=e5m2", {NULL, "decode_span", "decode_span"}},
    {"hq=4,hkv=2,sq=1,sk=300,d=64,dtype=f16,page=16,seqlens_k=300/9",
     {"decode_span", "decode_span", "decode_span"}},
    {"hq=2,sq=1,sk=300,d=192,dv=128,dtype=bf16", {"prefill_mma", "prefill_wgmma", "prefill_mma"}},
    {"hq=2,sq=1,sk=300,d=64,dtype=e4m3", {NULL, "prefill_wgmma", NULL}},
    {"hq=4,hkv=2,sq=1,sk=300,d=32,dtype=f16", {"decode_splitk", "decode_splitk", "decode_splitk"}},
    {"hq=4,hkv=2,sq=1,sk=300,d=32,dtype=f16,wl=77", {"prefill_mma", "prefill_mma", "prefill_mma"}},
    {"hq=4,hkv=2,sq=3,sk=300,d=64,dtype=bf16,causal=1",
     {"decode_mma", "decode_mma", "decode_mma"}},
    {"hq=4,hkv=2,sq=3,sk=200,d=64,dtype=bf16,causal=1",
     {"prefill_mma", "prefill_wgmma", "prefill_mma"}},
    {"hq=16,hkv=1,sq=2,sk=300,d=64,dtype=bf16", {"prefill_mma", "prefill_wgmma", "prefill_mma"}},
    {"hq=16,hkv=1,sq=1,sk=70,d=576,dv=512,shared=1,dtype=bf16", {NULL, "decode_latent", NULL}},
    {"hq=16,hkv=1,sq=1,sk=70,d=576,dv=512,dtype=bf16", {NULL, NULL, NULL}},
    {"hq=2,sq=40,sk=70,d=40,dtype=bf16", {NULL, NULL, NULL}},
    {"hq=2,sq=40,sk=70,d=64,dv=128,dtype=bf16,page=16", {NULL, NULL, NULL}},
};
enum { NCASES = sizeof cases / sizeof *cases };

static Status choose(Fixture *f, const char *problem, const DeviceInfo *dev, PlannerChoice *out) {
  Problem *p;
  PlannerTable none = {0};
  diag_reset(f->d);
  if (problem_parse(f->a, problem, &p, f->d)) fail_msg("%s", diag_text(f->d));
  return planner_choose(f->s, f->a, &none, &(PlannerAsk){0}, p, dev, out, f->d);
}

static void every_feature_has_its_template(void **state) {
  Fixture *f = *state;
  int wrong = 0;
  for (int i = 0; i < NCASES; i++)
    for (int g = 0; g <= GPUS; g++) {
      PlannerChoice c;
      const DeviceInfo *dev = g < GPUS ? &gpus[g] : device_info(f->sim);
      Status st = choose(f, cases[i].problem, dev, &c);
      const char *want = cases[i].want[g < GPUS ? g : SM_90A], *got = st ? "none" : c.template_name;
      if (!strcmp(got, want ? want : "none")) continue;
      print_error("%s on %s: %s, not %s\n", cases[i].problem, dev->name, got, want ? want : "none");
      wrong++;
    }
  assert_int_equal(wrong, 0);
}

static void verify_choice(Fixture *f, const char *problem, const DeviceInfo *dev, bool changed) {
  PlannerChoice c;
  Verdict v = {0};
  if (choose(f, problem, dev, &c) || (changed && !c.params.n)) return;
  VerifyOpts opts = {.seed = 1};
  if (verify(f->s, f->sim, c.template_name, &c.params, c.problem, &opts, &v, f->a, f->d))
    fail_msg("%s on %s: %s\n%s", problem, dev->name, diag_text(f->d), verdict_text(f->a, &v));
}

// The defaults, and what a device with little shared memory gets in their place.
static void what_is_planned_is_right(void **state) {
  Fixture *f = *state;
  for (int i = 0; i < NCASES; i++) {
    verify_choice(f, cases[i].problem, device_info(f->sim), false);
    verify_choice(f, cases[i].problem, &gpus[SM_120A], true);
  }
}

// An item of 8 pieces and of more than 64 KB is merged by a second launch, which begins
// early where it may.
static void many_pieces_take_a_second_launch(void **state) {
  static const struct { const char *problem; int gpu; const char *fused, *overlap; } asked[] = {
      {"b=1,hq=16,hkv=1,sq=1,sk=16384,d=576,dv=512,shared=1,dtype=bf16", SM_90A, "0", NULL},
      {"b=16,hq=16,hkv=1,sq=1,sk=16384,d=576,dv=512,shared=1,dtype=bf16", SM_90A, "0", NULL},
      {"b=32,hq=64,hkv=1,sq=1,sk=16384,d=576,dv=512,shared=1,dtype=bf16", SM_90A, NULL, NULL},
      {"hq=8,hkv=1,sq=1,seqlens_k=9000/7000,d=128,dtype=bf16", SM_90A, "0", "1"},
      {"hq=8,hkv=1,sq=1,seqlens_k=9000/7000,d=128,dtype=bf16", SM_80, "0", NULL},
      {"hq=8,hkv=8,sq=1,seqlens_k=9000/7000,d=128,dtype=bf16", SM_90A, NULL, NULL},
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    PlannerChoice c;
    fixture_ok(f, choose(f, asked[i].problem, &gpus[asked[i].gpu], &c));
    const char *fused = params_get(&c.params, "fused"), *early = params_get(&c.params, "overlap");
    const char *want = asked[i].fused, *soon = asked[i].overlap;
    if (strcmp(fused ? fused : "", want ? want : "") ||
        strcmp(early ? early : "", soon ? soon : ""))
      fail_msg("%s: fused=%s overlap=%s", asked[i].problem, fused, early);
    assert_true(!want == !strstr(c.why, " pieces of an item"));
  }
  const char *text = asked[0].problem;
  PlannerTable none = {0};
  PlannerChoice c;
  Params given = {0};
  params_set(f->a, &given, "fused", "1");
  fixture_ok(f, planner_choose(f->s, f->a, &none, &(PlannerAsk){.given = &given},
                               fixture_problem(f, text), &gpus[SM_90A], &c, f->d));
  assert_string_equal(params_get(&c.params, "fused"), "1");
}

// What is given makes the choice: a template that has it, and of its defaults another one where
// they do not go together.
static void what_is_given_steers_the_choice(void **state) {
  static const char decode[] = "hq=8,hkv=2,sq=1,sk=300,d=64,dtype=bf16",
                    prefill[] = "hq=8,sq=100,sk=300,d=64,dtype=bf16";
  static const struct {
    const char *problem, *given[2][2];
    int gpu;
    const char *name, *changed[2], *why; // name NULL: why none does it
  } asked[] = {
      {decode, {{"overlap", "1"}}, SM_90A, "decode_span", {"fused", "0"},
       ", with fused=0 for overlap=1; "},
      {decode, {{"overlap", "1"}, {"warps", "8"}}, SM_90A, "decode_span", {"fused", "0"},
       ", with fused=0 for overlap=1 warps=8; "},
      {decode, {{"overlap", "1"}, {"fused", "0"}}, SM_90A, "decode_span", {NULL}, "defaults; "},
      {decode, {{"tree", "1"}}, SM_90A, "decode_span", {NULL}, "defaults; "},
      {decode, {{"overlap", "1"}, {"fused", "1"}}, SM_90A, NULL, {NULL},
       "nearest: decode_span: overlap: of a second launch, without fused"},
      {decode, {{"overlap", "1"}}, SM_80, NULL, {NULL}, "decode_span"},
      // The nearest value: two blocks of an SM have two warpgroups each, not three and not one.
      {prefill, {{"per_sm", "2"}}, SM_90A, "prefill_wgmma", {"tile_q", "128"},
       ", with tile_q=128 for per_sm=2; "},
      {prefill, {{"split", "1"}}, SM_90A, NULL, {NULL}, "nearest: prefill_mma: split: for f32"},
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    PlannerTable none = {0};
    PlannerChoice c;
    Params given = {0};
    diag_reset(f->d);
    for (int k = 0; k < 2 && asked[i].given[k][0]; k++)
      params_set(f->a, &given, asked[i].given[k][0], asked[i].given[k][1]);
    Status st = planner_choose(f->s, f->a, &none, &(PlannerAsk){.given = &given},
                               fixture_problem(f, asked[i].problem), &gpus[asked[i].gpu], &c, f->d);
    assert_int_equal(st, asked[i].name ? ST_OK : ST_INPUT);
    const char *why = st ? f->d->first->what : c.why, *changed = asked[i].changed[0];
    if (!strstr(why, asked[i].why)) fail_msg("%zu: %s", i, why);
    if (st) continue;
    assert_string_equal(c.template_name, asked[i].name);
    for (int k = 0; k < given.n; k++)
      assert_string_equal(params_get(&c.params, given.v[k].name), given.v[k].value);
    if (changed) assert_string_equal(params_get(&c.params, changed), asked[i].changed[1]);
    assert_int_equal(c.params.n, given.n + (changed != NULL));
  }
}

// What a template declares for a group is a point of its own parameters, and it has a tile_q.
static void the_point_of_a_group_can_be_built(void **state) {
  Fixture *f = *state;
  const TemplateInfo **all;
  int n, declared = 0;
  assert_int_equal(session_templates(f->s, &all, &n, f->d), ST_OK);
  for (int i = 0; i < n; i++) {
    if (!all[i]->group || !*all[i]->group) continue;
    Params point = {0}, resolved = {0};
    const char *why = NULL;
    fixture_ok(f, params_parse(f->a, &point, all[i]->group, f->d));
    fixture_ok(f, variant_legal(f->s, all[i]->name, &point, NULL, f->a, &resolved, &why, f->d));
    if (why) fail_msg("%s: %s: %s", all[i]->name, all[i]->group, why);
    assert_non_null(params_get(&resolved, "tile_q"));
    declared++;
  }
  assert_true(declared > 0);
}

// decode_fma's tile: 4 rows, 8 where more share a KV head and it may have them.
static void a_tile_holds_a_group(void **state) {
  static const struct { const char *problem; int gpu; const char *tile, *stages; } asked[] = {
      {"hq=8,hkv=2,sq=1,sk=300,d=128,dtype=f32", SM_90A, NULL, NULL},
      {"hq=10,hkv=2,sq=1,sk=300,d=128,dtype=f32", SM_90A, "8", NULL},
      {"hq=4,hkv=2,sq=3,sk=300,d=64,page=16,dtype=f32", SM_90A, "8", NULL},
      {"hq=16,hkv=2,sq=1,sk=300,d=96,dtype=f32", SM_90A, NULL, NULL}, // too many registers
      {"hq=16,hkv=2,sq=1,sk=300,d=128,dtype=f32", SM_120A, "8", "3"},
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    PlannerChoice c;
    fixture_ok(f, choose(f, asked[i].problem, &gpus[asked[i].gpu], &c));
    const char *tile = params_get(&c.params, "tile_q"), *stages = params_get(&c.params, "stages");
    const char *want = asked[i].tile, *fewer = asked[i].stages;
    assert_string_equal(c.template_name, "decode_fma");
    if (strcmp(tile ? tile : "", want ? want : "") ||
        strcmp(stages ? stages : "", fewer ? fewer : ""))
      fail_msg("%s: tile_q=%s stages=%s", asked[i].problem, tile, stages);
    assert_true(!want == !strstr(c.why, " rows of a KV head"));
  }
}

static void what_was_passed_over_is_told(void **state) {
  Fixture *f = *state;
  PlannerChoice c;
  assert_int_equal(choose(f, "hq=2,sq=40,sk=70,d=32,dtype=f16,page=16", &gpus[SM_80], &c),
                   ST_INPUT);
  assert_string_equal(f->d->first->what,
                      "no template does this on sm_80; nearest: decode_span: head_dim=32 is not "
                      "legal: head_dim is 64, 96, 128, 192 or 256");
  assert_int_equal(choose(f, "hq=2,sq=40,sk=70,d=64,dtype=e4m3", &gpus[SM_120A], &c), ST_INPUT);
  assert_string_equal(f->d->first->what, "no template does this on sm_120a; nearest: prefill_wgmma "
                                         "needs sm_90a, sm_120a is sm_120a");
  assert_int_equal(choose(f, "hq=16,hkv=1,sq=1,sk=70,d=576,dv=512,dtype=bf16", &gpus[SM_90A], &c),
                   ST_INPUT); // V is a tensor of its own
  assert_string_equal(f->d->first->what, "no template does this on sm_90a; nearest: decode_latent "
                                         "always has shared_kv=1, and the problem does not say so");
  assert_int_equal(choose(f, "hq=2,sq=40,sk=70,d=64,dtype=bf16", &gpus[SM_80], &c), ST_OK);
  assert_int_equal(c.npassed, 1);
  assert_string_equal(c.passed[0], "prefill_wgmma needs sm_90a, sm_80 is sm_80");
  // Fewer stages first, then fewer warps: 4 warps of decode_mma fit 99 KB with the stages there
  // are.
  assert_int_equal(choose(f, "hq=2,sq=1,sk=300,d=64,dtype=bf16", &gpus[SM_120A], &c), ST_OK);
  assert_string_equal(params_get(&c.params, "warps"), "4");
  assert_non_null(strstr(c.why, ", with warps=4 to fit its shared memory"));
  assert_int_equal(choose(f, "hq=2,sq=1,sk=300,d=64,dtype=bf16", &gpus[SM_90A], &c), ST_OK);
  assert_int_equal(c.params.n, 0);
}

// The order is what the templates declare.
static void every_template_of_the_order_is_there(void **state) {
  Fixture *f = *state;
  const TemplateInfo **all;
  int n, attention = 0;
  PlannerChoice c;
  assert_int_equal(session_templates(f->s, &all, &n, f->d), ST_OK);
  for (int i = 0; i < n; i++)
    attention += all[i]->kind == KIND_PREFILL || all[i]->kind == KIND_DECODE;
  assert_int_equal(choose(f, "hq=2,sq=40,sk=70,d=40", &gpus[SM_90A], &c), ST_INPUT);
  assert_int_equal(c.npassed, attention); // each is asked once
  assert_true(!strncmp(c.passed[0], "prefill_wgmma", 13));
  assert_true(!strncmp(c.passed[4], "prefill_thread", 14));
  assert_true(!strncmp(c.passed[5], "decode_span", 11));
  assert_true(!strncmp(c.passed[8], "decode_splitk", 13));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_feature_has_its_template),
      cmocka_unit_test(many_pieces_take_a_second_launch),
      cmocka_unit_test(a_tile_holds_a_group),
      cmocka_unit_test(the_point_of_a_group_can_be_built),
      cmocka_unit_test(what_is_given_steers_the_choice),
      cmocka_unit_test(what_was_passed_over_is_told),
      cmocka_unit_test(every_template_of_the_order_is_there),
      cmocka_unit_test(what_is_planned_is_right),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
