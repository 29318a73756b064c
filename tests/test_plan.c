// Operator: packed blocks against hand-computed bytes, workspace layout, what binding refuses.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "plan.h"

// Two steps like a split decode: the first writes partial results, the second combines them.
static ArgDecl first_args[] = {
    {.name = "q", .role = ARG_IN, .dtype = DT_F16, .rank = 4, .offset = 0,
     .dim = {{.name = "batch"}, {.name = "seqlen_q"}, {.name = "heads_q"}, {.n = 64}}},
    {.name = "counter", .role = ARG_WORK, .dtype = DT_I32, .rank = 1, .offset = 32, .zero = 1,
     .dim = {{.name = "batch"}}},
    {.name = "o_part", .role = ARG_WORK, .dtype = DT_F32, .rank = 3, .offset = 40,
     .dim = {{.name = "batch"}, {.name = "chunks"}, {.n = 64}}},
    {.name = "seqlen_k", .role = ARG_VALUE, .dtype = DT_I32, .offset = 64},
    {.name = "scale", .role = ARG_VALUE, .dtype = DT_F32, .offset = 68},
    {.name = "sinks", .role = ARG_IN, .dtype = DT_F32, .rank = 1, .offset = 72, .optional = true,
     .dim = {{.name = "heads_q"}}},
    {.name = "chunks", .role = ARG_VALUE, .dtype = DT_I64, .offset = 80},
};
static ArgDecl second_args[] = {
    {.name = "o_part", .role = ARG_IN, .dtype = DT_F32, .rank = 3, .offset = 0,
     .dim = {{.name = "batch"}, {.name = "chunks"}, {.n = 64}}},
    {.name = "o", .role = ARG_OUT, .dtype = DT_F16, .rank = 2, .offset = 24,
     .dim = {{.name = "batch"}, {.n = 64}}},
};
enum { NFIRST = sizeof first_args / sizeof *first_args, FIRST_BYTES = 88, SECOND_BYTES = 40 };

typedef struct Fixture {
  Arena *a;
  Diag *d;
  Variant first, second;
  Operator *op;
} Fixture;

static Operator *make(Fixture *f, const char *problem) {
  Operator *op = arena_new_of(f->a, Operator);
  Problem *p;
  if (problem_parse(f->a, problem, &p, f->d) != ST_OK) fail_msg("%s", diag_text(f->d));
  *op = (Operator){.arena = f->a, .problem = p, .nsteps = 2};
  op->step[0] = (Step){.variant = &f->first, .args = arena_alloc(f->a, FIRST_BYTES)};
  op->step[1] = (Step){.variant = &f->second, .args = arena_alloc(f->a, SECOND_BYTES)};
  return op;
}

static int setup(void **state) {
  Fixture *f = test_calloc(1, sizeof *f);
  f->a = arena_new();
  f->d = diag_new();
  f->first = (Variant){.id = "first", .args = first_args, .nargs = NFIRST,
                       .arg_bytes = FIRST_BYTES};
  f->second = (Variant){.id = "second", .args = second_args, .nargs = 2,
                        .arg_bytes = SECOND_BYTES};
  params_set(f->a, &f->first.params, "vec", "8");
  params_set(f->a, &f->first.params, "head_dim", "64");
  f->op = make(f, "b=3,sq=2,hq=4,sk=1000,chunks=5,d=64");
  assert_int_equal(operator_complete(f->op, 0, f->d), ST_OK);
  assert_int_equal(operator_lay_out(f->op, f->d), ST_OK);
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

static int64_t i64_at(const Step *s, uint32_t at) {
  int64_t x;
  memcpy(&x, s->args + at, sizeof x);
  return x;
}

static Tensor queries(void) {
  Tensor t = {.dtype = DT_F16, .rank = 4, .shape = {3, 2, 4, 64}, .data = 0x10000};
  tensor_dense(&t);
  return t;
}

static void refuse(Fixture *f, const char *name, Tensor t, const char *message) {
  diag_reset(f->d);
  assert_int_equal(operator_bind(f->op, name, &t, f->d), ST_INPUT);
  assert_int_equal(f->d->errors, 1);
  if (!strstr(diag_text(f->d), message)) fail_msg("%s", diag_text(f->d));
}

static void values_are_packed_as_declared(void **state) {
  Fixture *f = *state;
  assert_int_equal(operator_pack_values(f->op, f->d), ST_OK);
  const Step *s = &f->op->step[0];
  int32_t sk;
  float scale;
  memcpy(&sk, s->args + 64, 4);
  memcpy(&scale, s->args + 68, 4);
  assert_int_equal(sk, 1000);
  assert_true(scale == 0.125f);
  assert_int_equal(i64_at(s, 80), 5);
}

static void a_value_too_large_for_its_parameter(void **state) {
  Fixture *f = *state;
  problem_set_int(f->op->problem, "seqlen_k", 3000000000);
  assert_int_equal(operator_pack_values(f->op, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "seqlen_k=3000000000 does not fit"));
}

static void strides_are_packed_without_loss(void **state) {
  Fixture *f = *state;
  Tensor t = queries();
  t.stride[0] = (1ll << 40) + 64; // elements; bytes need 42 bits
  t.stride[1] = 1ll << 31;
  t.data = 0x7fff12345670;
  assert_int_equal(operator_bind(f->op, "q", &t, f->d), ST_OK);
  const Step *s = &f->op->step[0];
  assert_true(i64_at(s, 0) == 0x7fff12345670);
  assert_true(i64_at(s, 8) == 2 * ((1ll << 40) + 64));
  assert_true(i64_at(s, 16) == 1ll << 32);
  assert_int_equal(i64_at(s, 24), 128);
  t.stride[0] = INT64_MAX - 63;
  refuse(f, "q", t, "stride_0");
}

// What a tensor map can't express is refused with the reason; and it takes a device to make one.
static void tensor_maps(void **state) {
  Fixture *f = *state;
  ArgDecl arg = first_args[0];
  arg.map = (MapDecl){.box = {1, 1, 1, 64}, .swizzle = 128};
  arg.map_offset = 64;
  Variant v = {.id = "mapped", .arena = f->a, .args = &arg, .nargs = 1, .arg_bytes = 192};
  f->op->step[0] = (Step){.variant = &v, .args = arena_alloc(f->a, 192)};
  f->op->nsteps = 1;
  Tensor t = queries();
  refuse(f, "q", t, "load the operator first");
  t.stride[1] = 65 * 4;
  refuse(f, "q", t, "q: stride_1 is 520 bytes, not a multiple of 16 (its tensor map)");
  t = queries();
  t.data += 8;
  refuse(f, "q", t, "is not aligned to 16 bytes (its tensor map)");
}

static void workspace_layout(void **state) {
  Fixture *f = *state;
  // 3 counters in the first 256 bytes, zero; then 3 * 5 * 64 floats.
  assert_int_equal(f->op->workspace_zero_bytes, 256);
  assert_int_equal(f->op->workspace_bytes, 256 + 3840);
  assert_int_equal(operator_bind_workspace(f->op, 0x4000, 256 + 3840, f->d), ST_OK);
  assert_int_equal(i64_at(&f->op->step[0], 32), 0x4000);
  assert_int_equal(i64_at(&f->op->step[0], 40), 0x4100);
  assert_int_equal(i64_at(&f->op->step[0], 48), 5 * 64 * 4);
  assert_int_equal(i64_at(&f->op->step[0], 56), 64 * 4);
  assert_int_equal(i64_at(&f->op->step[1], 0), 0x4100); // the same tensor in the second step
  assert_int_equal(operator_bind_workspace(f->op, 0x4000, 4095, f->d), ST_INPUT);
  assert_int_equal(operator_bind_workspace(f->op, 0x4080, 8192, f->d), ST_INPUT);
}

static void steps_that_disagree_about_a_tensor(void **state) {
  Fixture *f = *state;
  ArgDecl other[2];
  memcpy(other, second_args, sizeof other);
  other[0].dim[2].n = 32;
  f->second.args = other;
  assert_int_equal(operator_lay_out(f->op, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "declared otherwise"));
}

static void binding_refuses(void **state) {
  Fixture *f = *state;
  Tensor t = queries();
  t.dtype = DT_BF16;
  refuse(f, "q", t, "element type is bf16, not f16");
  t = queries(), t.shape[1] = 3;
  refuse(f, "q", t, "shape is [3, 3, 4, 64], not [3, 2, 4, 64]");
  t = queries(), t.rank = 3;
  refuse(f, "q", t, "3 dimensions");
  t = queries(), t.stride[3] = 2;
  refuse(f, "q", t, "must be contiguous");
  t = queries(), t.data += 2; // one element on: right for scalar loads, not for 16-byte ones
  refuse(f, "q", t, "not aligned to 16 bytes (vec=8)");
  t = queries(), t.stride[2] = 65;
  refuse(f, "q", t, "stride_2 is 130 bytes, not a multiple of 16 (vec=8)");
  t = queries(), t.stride[1] = -512;
  refuse(f, "q", t, "stride_1 is negative");
  t = queries(), t.data = 0;
  refuse(f, "q", t, "no memory is bound");
  refuse(f, "o_part", t, "part of the workspace");
  refuse(f, "seqlen_k", t, "no step of first takes a tensor named seqlen_k");
  Tensor o = {.dtype = DT_F16, .rank = 2, .shape = {3, 64}, .stride = {0, 1}, .data = 0x100};
  refuse(f, "o", o, "outputs would overlap");
}

static void strides_that_scalar_loads_take(void **state) {
  Fixture *f = *state;
  params_set(f->a, &f->first.params, "vec", "1");
  Tensor t = queries();
  t.stride[2] = 65;
  t.data += 2;
  assert_int_equal(operator_bind(f->op, "q", &t, f->d), ST_OK);
  t.stride[0] = 0; // one copy for the whole batch: fine for an input
  assert_int_equal(operator_bind(f->op, "q", &t, f->d), ST_OK);
  assert_int_equal(i64_at(&f->op->step[0], 8), 0);
}

static void a_stride_of_one_entry_is_never_used(void **state) {
  Fixture *f = *state;
  f->op = make(f, "b=1,sq=1,hq=1,sk=9");
  Tensor t = {.dtype = DT_F16, .rank = 4, .shape = {1, 1, 1, 64}, .stride = {3, 5, 7, 1},
              .data = 0x20};
  assert_int_equal(operator_bind(f->op, "q", &t, f->d), ST_OK);
}

static void everything_must_be_bound(void **state) {
  Fixture *f = *state;
  Tensor t = queries(), o = {.dtype = DT_F16, .rank = 2, .shape = {3, 64}, .data = 0x100};
  tensor_dense(&o);
  assert_int_equal(operator_pack_values(f->op, f->d), ST_OK);
  assert_int_equal(operator_bind(f->op, "q", &t, f->d), ST_OK);
  assert_int_equal(operator_bind_workspace(f->op, 0x4000, 1 << 20, f->d), ST_OK);
  assert_int_equal(operator_all_bound(f->op, f->d), ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), "second: o is not bound"));
  assert_int_equal(operator_bind(f->op, "o", &o, f->d), ST_OK);
  assert_int_equal(operator_all_bound(f->op, f->d), ST_OK); // sinks may stay unbound
  assert_int_equal(operator_bind(f->op, "sinks", NULL, f->d), ST_OK);
  assert_int_equal(i64_at(&f->op->step[0], 72), 0);
  assert_int_equal(operator_bind(f->op, "q", NULL, f->d), ST_INPUT);
}

static int64_t chunks_of(Fixture *f, const char *problem, int64_t given) {
  Operator *op = make(f, problem);
  assert_int_equal(operator_complete(op, given, f->d), ST_OK);
  return problem_int(op->problem, "chunks", -1);
}

static void chunk_counts(void **state) {
  Fixture *f = *state;
  assert_int_equal(chunks_of(f, "hq=8,sk=16384", 0), 64); // 512 blocks over 8 heads
  assert_int_equal(chunks_of(f, "b=64,hq=8,sk=16384", 0), 1);
  assert_int_equal(chunks_of(f, "hq=8,sk=257", 0), 2);
  assert_int_equal(chunks_of(f, "hq=1,sk=1000000", 0), 256);
  assert_int_equal(chunks_of(f, "hq=8,sk=5", 8), 5); // no more than keys
  assert_int_equal(chunks_of(f, "hq=8,sk=0", 8), 1);
  assert_int_equal(chunks_of(f, "b=0,hq=8,sk=9", 0), 1);
  assert_int_equal(chunks_of(f, "hq=8,sk=100,chunks=7", 0), 7);
  assert_int_equal(chunks_of(f, "hq=8,sk=100,chunks=7", 3), 3);
}

static void scale_is_what_the_kernel_gets(void **state) {
  Fixture *f = *state;
  params_set(f->a, &f->first.params, "head_dim", "128");
  Operator *op = make(f, "hq=1,sk=1");
  assert_int_equal(operator_complete(op, 0, f->d), ST_OK);
  assert_true(problem_float(op->problem, "scale", 0) == (double)(float)(1 / sqrt(128)));
  op = make(f, "hq=1,sk=1,scale=0.1");
  assert_int_equal(operator_complete(op, 0, f->d), ST_OK);
  assert_true(problem_float(op->problem, "scale", 0) == (double)0.1f);
}

static void grids(void **state) {
  Fixture *f = *state;
  LaunchRule *rule = &f->first.launch;
  *rule = (LaunchRule){.work = {{.name = "batch"}, {.name = "seqlen_q", .div = 64}}, .nwork = 2,
                       .block = {128}};
  f->second.launch = (LaunchRule){.work = {{.n = 1}}, .nwork = 1};
  Operator *op = make(f, "b=3,sq=129,hq=1,sk=9");
  assert_int_equal(operator_complete(op, 0, f->d), ST_OK);
  assert_int_equal(operator_plan(op, NULL, NULL, f->d), ST_OK);
  assert_int_equal(op->step[0].grid[0], 9);
  PlanOpts one = {.grid = 4};
  assert_int_equal(operator_plan(op, NULL, &one, f->d), ST_OK);
  assert_int_equal(op->step[0].grid[0], 4);
  rule->cluster[0] = 2;
  assert_int_equal(operator_plan(op, NULL, NULL, f->d), ST_OK);
  assert_int_equal(op->step[0].grid[0], 10); // whole clusters
  assert_int_equal(operator_plan(op, NULL, &(PlanOpts){.grid = 3}, f->d), ST_INPUT);
  problem_set_int(op->problem, "batch", 1ll << 40); // striding does the rest
  assert_int_equal(operator_plan(op, NULL, NULL, f->d), ST_OK);
  assert_int_equal(op->step[0].grid[0], INT32_MAX - 1);
  problem_set_int(op->problem, "batch", 0);
  assert_int_equal(operator_plan(op, NULL, &one, f->d), ST_OK);
  assert_int_equal(op->step[0].work, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(values_are_packed_as_declared),
      T(a_value_too_large_for_its_parameter),
      T(strides_are_packed_without_loss),
      T(tensor_maps),
      T(workspace_layout),
      T(steps_that_disagree_about_a_tensor),
      T(binding_refuses),
      T(strides_that_scalar_loads_take),
      T(a_stride_of_one_entry_is_never_used),
      T(everything_must_be_bound),
      T(chunk_counts),
      T(scale_is_what_the_kernel_gets),
      T(grids),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
