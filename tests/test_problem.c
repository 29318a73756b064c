// Problem: parsing, limits, canonical text, what it fixes in a template, shapes and work figures.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "problem.h"

typedef struct Fixture {
  Arena *a;
  Diag *d;
} Fixture;

static int setup(void **state) {
  Fixture *f = test_malloc(sizeof *f);
  f->a = arena_new();
  f->d = diag_new();
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  arena_free(f->a);
  diag_free(f->d);
  test_free(f);
  return 0;
}

static void refuse(Fixture *f, const char *text, const char *message) {
  Problem *p;
  diag_reset(f->d);
  assert_int_equal(problem_parse(f->a, text, &p, f->d), ST_INPUT);
  assert_null(p);
  assert_int_equal(f->d->errors, 1);
  if (!strstr(diag_text(f->d), message)) fail_msg("%s: %s", text, diag_text(f->d));
}

static Problem *accept(Fixture *f, const char *text) {
  Problem *p;
  diag_reset(f->d);
  if (problem_parse(f->a, text, &p, f->d) != ST_OK) fail_msg("%s: %s", text, diag_text(f->d));
  return p;
}

static void short_and_long_names(void **state) {
  Fixture *f = *state;
  Problem *p = accept(f, "b=2,heads_q=32,hkv=8,seqlen_q=1, sk=16384,d=128,causal=true,dtype=bf16");
  assert_int_equal(problem_int(p, "batch", -1), 2);
  assert_int_equal(problem_int(p, "hq", -1), 32);
  assert_int_equal(problem_int(p, "heads_q", -1), 32);
  assert_int_equal(problem_int(p, "causal", -1), 1);
  assert_int_equal(problem_int(p, "chunks", -1), -1);
  assert_true(p->has_dtype && p->dtype == DT_BF16);
  assert_string_equal(problem_text(f->a, p),
                      "b=2,hq=32,hkv=8,sq=1,sk=16384,d=128,causal=1,dtype=bf16");
}

static void canonical_text_parses_back(void **state) {
  Fixture *f = *state;
  const char *texts[] = {"sk=9,hq=6", "scale=0.1,hq=1", "scale=0.33333333333333331,b=0", "words=77",
                         "chunks=3,sk=0,sq=0,hq=4,hkv=2"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char *once = problem_text(f->a, accept(f, texts[i]));
    assert_string_equal(problem_text(f->a, accept(f, once)), once);
  }
  assert_string_equal(problem_text(f->a, accept(f, "sk=9,hq=6")), "b=1,hq=6,hkv=6,sk=9");
  assert_string_equal(problem_text(f->a, accept(f, "scale=0.1")), "b=1,scale=0.1");
}

static void empty_sizes_are_legal(void **state) {
  Fixture *f = *state;
  assert_int_equal(problem_int(accept(f, "hq=2,sq=3,sk=0"), "sk", -1), 0);
  assert_int_equal(problem_int(accept(f, "b=0,hq=2,sq=3,sk=5"), "b", -1), 0);
}

static void bad_input_is_refused_with_one_message(void **state) {
  Fixture *f = *state;
  refuse(f, "seqlenk=5", "unknown name \"seqlenk\" (did you mean \"seqlen_k\"");
  refuse(f, "sk=-1", "seqlen_k is at least 0");
  refuse(f, "wl=-2", "window_left is at least -1");
  refuse(f, "softcap=-1", "softcap is at least 0");
  refuse(f, "hq=0", "heads_q is at least 1");
  refuse(f, "sk=1e4", "takes a whole number");
  refuse(f, "sk=", "takes a whole number");
  refuse(f, "sk=99999999999999999999", "does not fit 64 bits");
  refuse(f, "sk", "is not name=value");
  refuse(f, "sk=1,seqlen_k=2", "is given twice");
  refuse(f, "dtype=f16,dtype=f16", "is given twice");
  refuse(f, "dtype=half", "dtype=half");
  refuse(f, "dtype=f16,dtype_kv=e4m3,dtype_kv=e4m3", "dtype_kv is given twice");
  refuse(f, "dtype=f16,dtype_kv=fp8", "dtype_kv=fp8: not a floating-point");
  refuse(f, "dtype=i32", "not a floating-point");
  refuse(f, "causal=2", "causal is 0 or 1");
  refuse(f, "scale=nan", "finite number");
  refuse(f, "scale=0.5x", "finite number");
  refuse(f, "hq=16,hkv=5", "heads_q=16 is not a multiple of heads_kv=5");
  refuse(f, "hq=4,hkv=8", "not a multiple");
  refuse(f, "hq=32,sk=4611686018427387904", "elements overflow");
  // Each factor is small; the product is not.  An empty one doesn't hide it.
  refuse(f, "b=0,hq=32,sk=100000000000,d=1000000000", "elements overflow");
}

static void hook_names_are_numbers(void **state) {
  Fixture *f = *state;
  const char *const extra[] = {"cap", "window"};
  Problem *p;
  assert_int_equal(problem_parse_with(f->a, "hq=1,cap=2.5,window=63", extra, 2, &p, f->d), ST_OK);
  assert_true(problem_value(p, "cap")->is_float);
  assert_true(problem_float(p, "cap", 0) == 2.5);
  assert_false(problem_value(p, "window")->is_float);
  assert_string_equal(problem_text(f->a, p), "b=1,hq=1,hkv=1,cap=2.5,window=63");
  assert_int_equal(problem_parse_with(f->a, "windw=63", extra, 2, &p, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "did you mean \"window\""));
}

static const char *dims[] = {"32", "64", "128"}, *bools[] = {"false", "true"};
static ParamDecl decls[] = {
    {.name = "head_dim", .kind = PARAM_INT, .values = dims, .nvalues = 3, .def = "128"},
    {.name = "causal", .kind = PARAM_BOOL, .values = bools, .nvalues = 2, .def = "false"},
    {.name = "tile_q", .kind = PARAM_INT, .values = dims, .nvalues = 3, .def = "64"},
};

static void problem_fixes_params(void **state) {
  Fixture *f = *state;
  TemplateInfo t = {.name = "prefill_x", .kind = KIND_PREFILL, .params = decls, .nparams = 3};
  Params params = {0};
  Problem *p = accept(f, "hq=1,sq=2,sk=2,d=64,causal=1");
  assert_int_equal(problem_fix_params(f->a, p, &t, &params, f->d), ST_OK);
  assert_string_equal(params_get(&params, "head_dim"), "64");
  assert_string_equal(params_get(&params, "causal"), "true");
  assert_null(params_get(&params, "tile_q"));
  params_set(f->a, &params, "causal", "1"); // another spelling of the same
  assert_int_equal(problem_fix_params(f->a, p, &t, &params, f->d), ST_OK);
  params_set(f->a, &params, "head_dim", "32");
  assert_int_equal(problem_fix_params(f->a, p, &t, &params, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "head_dim=32 of the parameters and head_dim=64"));
}

static void a_mask_the_template_lacks_is_refused(void **state) {
  Fixture *f = *state;
  TemplateInfo t = {.name = "decode_x", .kind = KIND_DECODE, .params = decls, .nparams = 1};
  Params params = {0};
  assert_int_equal(problem_fix_params(f->a, accept(f, "sq=2,sk=9,causal=1"), &t, &params, f->d),
                   ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "no causal mask"));
  // One query at the end of its keys sees them all: nothing is masked.
  assert_int_equal(problem_fix_params(f->a, accept(f, "sq=1,sk=9,causal=1"), &t, &params, f->d),
                   ST_OK);
}

static void rules_the_template_lacks_are_refused(void **state) {
  Fixture *f = *state;
  TemplateInfo t = {.name = "prefill_x", .kind = KIND_PREFILL, .params = decls, .nparams = 2};
  const char *const asks[] = {"wl=3",    "wr=0",       "softcap=2", "alibi=1",
                              "sinks=1", "d=64,dv=32", "shared=1"};
  for (int i = 0; i < 7; i++) {
    Params params = {0};
    diag_reset(f->d);
    assert_int_equal(problem_fix_params(f->a, accept(f, asks[i]), &t, &params, f->d), ST_INPUT);
    assert_non_null(strstr(diag_text(f->d), "prefill_x has no"));
  }
  Params params = {0}; // rules that rule nothing
  Problem *p = accept(f, "wl=-1,wr=-1,softcap=0,alibi=0,sinks=0,shared=0,d=64,dv=64");
  assert_int_equal(problem_fix_params(f->a, p, &t, &params, f->d), ST_OK);
}

static void params_fill_the_problem(void **state) {
  Fixture *f = *state;
  Problem *p = accept(f, "hq=1,sk=9,d=32");
  Params params = {0};
  params_set(f->a, &params, "head_dim", "128");
  params_set(f->a, &params, "dtype", "f16");
  params_set(f->a, &params, "causal", "true");
  params_set(f->a, &params, "vec", "4");
  problem_fill_from_params(p, &params);
  assert_int_equal(problem_int(p, "head_dim", 0), 32);
  assert_true(p->has_dtype && p->dtype == DT_F16);
  assert_int_equal(problem_int(p, "causal", 0), 1);
  assert_null(problem_value(p, "vec"));
}

static void shapes_follow_the_declaration(void **state) {
  Fixture *f = *state;
  Problem *p = accept(f, "b=2,hq=3,sq=130,sk=0");
  int64_t shape[TENSOR_MAX_RANK];
  ArgDecl arg = {.name = "x",
                 .dtype = DT_F16,
                 .rank = 3,
                 .dim = {{.name = "batch", .div = 1}, {.name = "seqlen_q", .div = 64}, {.n = 32}}};
  assert_int_equal(arg_shape(&arg, p, shape, f->d), ST_OK);
  assert_int_equal(shape[0], 2);
  assert_int_equal(shape[1], 3); // ceil(130 / 64)
  assert_int_equal(shape[2], 32);
  arg.dim[1] = (Dim){.name = "rows", .div = 4}; // 130 queries of 3 heads that share one key head
  p = accept(f, "b=2,hq=3,hkv=1,sq=130,sk=0");
  assert_int_equal(arg_shape(&arg, p, shape, f->d), ST_OK);
  assert_int_equal(shape[1], 98); // ceil(390 / 4)
  arg.dim[0].name = "chunks";
  assert_int_equal(arg_shape(&arg, p, shape, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "no value for chunks"));
  arg.dim[0] = (Dim){.n = INT64_MAX / 32, .div = 1};
  assert_int_equal(arg_shape(&arg, p, shape, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "overflow"));
}

static void spans_of_tensors(void **state) {
  (void)state;
  Tensor t = {.dtype = DT_BF16, .rank = 3, .shape = {2, 3, 8}};
  tensor_dense(&t);
  assert_int_equal(t.stride[0], 24);
  assert_int_equal(t.stride[2], 1);
  assert_int_equal(tensor_span_bytes(&t), 2 * 3 * 8 * 2);
  t.stride[1] = 100;
  t.stride[0] = 1000;
  assert_int_equal(tensor_span_bytes(&t), (1000 + 200 + 7 + 1) * 2);
  t.stride[0] = 0; // one copy, seen twice
  assert_int_equal(tensor_span_bytes(&t), (200 + 7 + 1) * 2);
  t.stride[0] = 1ll << 31; // offsets need 64 bits
  assert_true(tensor_span_bytes(&t) == ((1ull << 31) + 208) * 2);
  t.shape[1] = 0;
  assert_int_equal(tensor_span_bytes(&t), 0);
}

static void work_figures(void **state) {
  Fixture *f = *state;
  assert_true(problem_flops(accept(f, "b=2,hq=4,sq=3,sk=5,d=64")) == 4.0 * 2 * 4 * 15 * 64);
  // Bottom-right: rows of 3, 4 and 5 keys.
  assert_true(problem_flops(accept(f, "b=1,hq=1,sq=3,sk=5,d=1,causal=1")) == 4.0 * 12);
  // More queries than keys: rows 0..2 see none, then 1 and 2.
  assert_true(problem_flops(accept(f, "b=1,hq=1,sq=5,sk=2,d=1,causal=1")) == 4.0 * 3);
  assert_true(problem_flops(accept(f, "b=1,hq=1,sq=5,sk=0,d=1,causal=1")) == 0);
  Problem *eight = accept(f, "hq=8,hkv=2,sk=10,d=64,dtype=f16,dtype_kv=e5m2");
  assert_true(eight->dtype == DT_F16 && problem_kv_dtype(eight, DT_F16) == DT_E5M2);
  assert_string_equal(problem_text(f->a, eight),
                      "b=1,hq=8,hkv=2,sk=10,d=64,dtype=f16,dtype_kv=e5m2");
  assert_true(problem_kv_bytes(eight) == 2 * 2 * 10 * 64);
  assert_true(problem_kv_bytes(accept(f, "hq=8,hkv=2,sk=10,d=64,dtype=f16")) ==
              2.0 * 2 * 10 * 64 * 2);
  for (int64_t sq = 0; sq < 7; sq++)
    for (int64_t sk = 0; sk < 7; sk++) {
      int64_t pairs = 0;
      for (int64_t i = 0; i < sq; i++)
        for (int64_t j = 0; j < sk; j++) pairs += j <= i + sk - sq;
      Problem *p = accept(f, arena_printf(f->a, "hq=1,d=1,causal=1,sq=%d,sk=%d", (int)sq, (int)sk));
      assert_true(problem_flops(p) == 4.0 * (double)pairs);
      int64_t rows = 0;
      for (int64_t i = 0; i < sq; i++) rows += visible_keys(true, i, sq, sk);
      assert_int_equal(rows, pairs);
    }
}

// Windows, by the formula of the masks, key by key; and sizes at which nobody counts.
static void work_of_windows(void **state) {
  Fixture *f = *state;
  enum { SIDES = 5, SIZES = 6, KINDS = SIZES * SIZES * SIDES * SIDES * 2 };
  for (int k = 0; k < KINDS; k++) {
    int sq = k % SIZES, sk = k / SIZES % SIZES, at = k / (SIZES * SIZES);
    int left = at % SIDES - 1, right = at / SIDES % SIDES - 1, causal = at / (SIDES * SIDES);
    int64_t pairs = 0;
    if (causal && right > 0) continue; // refused
    for (int i = 0; i < sq; i++)
      for (int j = 0; j < sk; j++) {
        int own = i + sk - sq;
        pairs += (!causal || j <= own) && (left < 0 || j >= own - left) &&
                 (right < 0 || j <= own + right);
      }
    Arena *a = arena_new();
    char *text = arena_printf(a, "hq=1,d=1,sq=%d,sk=%d,wl=%d,wr=%d,causal=%d", sq, sk, left, right,
                              causal);
    if (problem_flops(accept(f, text)) != 4.0 * (double)pairs) fail_msg("%s", text);
    arena_free(a);
  }
  // 6 keys a row but for the first five, which see 1 to 5.
  assert_true(problem_flops(accept(f, "hq=1,d=1,sq=1000000000,sk=1000000000,wl=5,causal=1")) ==
              4.0 * (6e9 - 15));
  assert_true(problem_flops(accept(f, "hq=1,d=1,sq=9,sk=9,wl=9223372036854775807,"
                                      "wr=9223372036854775807")) == 4.0 * 81);
}

// Every named problem parses, has all that attention needs, and no name is there twice.
static void named_problems(void **state) {
  Fixture *f = *state;
  Session *s = session_open(NULL, f->d);
  NamedProblem *list;
  int n;
  if (problem_list(s, f->a, &list, &n, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
  assert_true(n >= 20);
  for (int i = 0; i < n; i++) {
    Problem *p;
    if (problem_open(s, f->a, list[i].name, &p, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
    assert_string_equal(p->name, list[i].name);
    assert_string_equal(problem_text(f->a, p), list[i].text);
    for (int j = 0; j < i; j++) assert_string_not_equal(list[i].name, list[j].name);
  }
  session_close(s);
}

static void a_name_and_what_differs(void **state) {
  Fixture *f = *state;
  Session *s = session_open(NULL, f->d);
  Problem *p;
  assert_int_equal(problem_open(s, f->a, "llama3-8b/decode-16k,b=4,hq=64", &p, f->d), ST_OK);
  assert_string_equal(problem_text(f->a, p), "b=4,hq=64,hkv=8,sq=1,sk=16384,d=128,causal=0");
  assert_int_equal(problem_open(s, f->a, "llama3-8b/decode-16k,hkv=5", &p, f->d), ST_INPUT);
  diag_reset(f->d);
  assert_int_equal(problem_open(s, f->a, "lama3-8b/decode-16k", &p, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "did you mean \"llama3-8b/decode-16k\""));
  session_close(s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(short_and_long_names),
      T(canonical_text_parses_back),
      T(problem_fixes_params),
      T(rules_the_template_lacks_are_refused),
      T(params_fill_the_problem),
      T(a_mask_the_template_lacks_is_refused),
      T(empty_sizes_are_legal),
      T(bad_input_is_refused_with_one_message),
      T(hook_names_are_numbers),
      T(shapes_follow_the_declaration),
      T(spans_of_tensors),
      T(work_figures),
      T(work_of_windows),
      T(named_problems),
      T(a_name_and_what_differs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
