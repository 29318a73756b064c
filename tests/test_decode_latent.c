// decode_latent verified on the interpreter: lengths around the edges of tiles and spans, pages,
// lengths of their own, heads and queries, sanitized in several schedules; K and V of one tensor
// elsewhere.
#include "dense.h"
#include "verify_data.h"
#include "verify_kit.h"

static void pass(Fixture *f, const char *params, const char *problem) {
  fixture_pass(f, arena_printf(f->a, "decode_latent %s", params),
               arena_printf(f->a, "%s,d=576", problem));
}

// One key less or more than a tile, than two; spans that begin and end within items, that hold
// several items, none.  An odd number of tiles before an item lets the other group begin it.
static void lengths_near_the_edges(void **state) {
  static const int edges[] = {0, 1, 63, 64, 65, 128, 191, 193};
  Fixture *f = *state;
  for (int i = 0; i < 8; i++)
    pass(f, "", arena_printf(f->a, "b=%d,hq=16,hkv=1,sq=1,sk=%d,dtype=%s,chunks=%d", 1 + i % 3,
                             edges[i], i % 2 ? "f16" : "bf16", 1 + 2 * i % 7));
  pass(f, "", "b=0,hq=16,hkv=1,sq=1,sk=5,dtype=bf16");
  pass(f, "", "b=2,hq=16,hkv=1,sq=0,sk=5,dtype=bf16");
}

// Half a tile of rows, one and two, a last one with few; several queries under the causal mask.
static void heads_and_queries(void **state) {
  static const int shapes[][2] = {{16, 1}, {128, 1}, {16, 16}, {20, 4}};
  Fixture *f = *state;
  for (int i = 0; i < 4; i++)
    pass(f, "", arena_printf(f->a, "b=%d,hq=%d,hkv=1,sq=%d,sk=%d,dtype=bf16,causal=%d,chunks=%d",
                             1 + i % 2, shapes[i][0], shapes[i][1], 150 + 40 * i, i > 1, 2 + i));
  pass(f, "", "b=1,hq=16,hkv=1,sq=16,sk=9,dtype=f16,causal=1"); // queries that see no key
  pass(f, "", "b=1,hq=8,hkv=2,sq=3,sk=90,dtype=f16,causal=1,chunks=3");
  pass(f, "", "b=1,hq=16,hkv=1,sq=1,sk=1200,dtype=bf16,chunks=19"); // a piece for each tile
}

// Pages that are smaller, as large, larger than a tile, no power of two; sequences without a key.
static void pages_and_lengths(void **state) {
  static const int pages[] = {1, 16, 128, 24};
  Fixture *f = *state;
  for (int i = 0; i < 4; i++)
    pass(f, "", arena_printf(f->a, "hq=16,hkv=1,sq=%d,seqlens_k=130/0/37/1/0/64,page=%d,dtype=bf16,"
                             "causal=1,chunks=%d", 1 + i, pages[i], 1 + 2 * i));
  pass(f, "", "b=2,hq=16,hkv=1,sq=1,sk=100,page=16,dtype=f16");
  pass(f, "", "hq=16,hkv=1,sq=1,seqlens_k=0/0/0,dtype=f16,chunks=2");
}

static void rules(void **state) {
  static const char *const given[] = {"", "", "alibi=1", "sinks=1", "lazy=0", ""};
  static const char *const rest[] = {"window_left=70", "softcap=5", "sk=150", "sk=150",
                                     "scale=-0.1", "scale=0"};
  Fixture *f = *state;
  for (int i = 0; i < 6; i++)
    pass(f, given[i], arena_printf(f->a, "b=1,hq=16,hkv=1,sq=3,%s%s,dtype=f16,causal=1,chunks=3",
                                   strstr(rest[i], "sk") ? "" : "sk=150,", rest[i]));
}

static void sanitized(void **state) {
  Fixture *f = *state;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    fixture_sanitized(f, "decode_latent",
                      seed == 1 ? "b=1,hq=48,hkv=1,sq=2,sk=200,d=576,dtype=bf16,causal=1,chunks=3"
                                : "b=1,hq=48,hkv=1,sq=2,sk=200,d=576,dtype=bf16,chunks=5", seed);
    fixture_sanitized(f, "decode_latent",
                      "hq=16,hkv=1,sq=1,seqlens_k=70/0/130,page=16,d=576,dtype=bf16,chunks=3",
                      seed);
  }
}

static void what_is_refused(void **state) {
  static const Refusal cases[] = {
      {"decode_latent", "hq=16,hkv=1,sq=1,sk=5,d=576,dtype=f32", "dtype=f32"},
      {"decode_latent", "hq=16,hkv=1,sq=1,sk=5,d=576,dv=128,dtype=bf16", "head_dim_v=128"},
      {"decode_latent", "hq=16,hkv=1,sq=1,sk=5,d=576,dtype=bf16,shared=0", "shared_kv=0"},
      {"decode_span", "hq=16,hkv=1,sq=1,sk=5,d=64,dtype=bf16,shared=1",
       "decode_span has no K and V of one tensor, and the problem asks for one"},
  };
  REFUSED_ALL((Fixture *)*state, cases);
}

// V is K's memory: what is written to either is in both, and K's bytes are all there is to read.
static void one_tensor(void **state) {
  Fixture *f = *state;
  Problem *p;
  AttnInputs in;
  const char *text = "b=2,hq=16,hkv=1,sq=1,sk=10,d=576,dv=512,shared=1,dtype=bf16";
  assert_int_equal(problem_parse(f->a, text, &p, f->d), ST_OK);
  assert_int_equal((int)problem_kv_bytes(p), 2 * 10 * 576 * 2);
  assert_int_equal(inputs_make(p, DT_BF16, FILL_NAN, &in, f->d), ST_OK);
  inputs_fill_random(&in, 1);
  host_set(&in.v, 1, 9, 0, 511, 3);
  host_set(&in.k, 1, 9, 0, 512, 4);
  assert_true(host_get(&in.k, 1, 9, 0, 511) == 3 && host_get(&in.k, 1, 9, 0, 512) == 4);
  assert_int_equal((int)in.v.t.shape[3], 512);
  inputs_free(&in);
}

static void bind_own(Fixture *f, Operator *op, const char *name, const void *host, DevPtr *out) {
  const ArgDecl *arg = operator_arg(op, name);
  Tensor t = {.dtype = arg->dtype, .rank = arg->rank};
  fixture_ok(f, arg_shape(arg, op->problem, t.shape, f->d));
  tensor_dense(&t);
  uint64_t bytes = tensor_span_bytes(&t);
  if (!*out) fixture_ok(f, device_alloc(f->sim, bytes, name, out, f->d));
  if (host) fixture_ok(f, device_write(f->sim, *out, host, bytes, f->d));
  t.data = *out;
  fixture_ok(f, operator_bind(op, name, &t, f->d));
}

// With check=1 an index that is none of the pool's and a length that can't be are told of their
// sequences, nobody else's memory is read, and the third sequence's answer is as ever.
static void bad_tables(Fixture *f, const char *variant) {
  enum { ROW = 16 * 512 };
  static uint16_t first[3 * ROW], again[3 * ROW];
  const int32_t good[] = {4, 2, 0, 1, 5, 6, 7, 3, 8}, lens[] = {40, 33, 20}, none[3] = {0};
  int32_t table[9], long_lens[] = {40, 1 << 30, 20}, told[3];
  Params given = {0};
  Operator *op;
  Dense buffers = {0};
  PlanOpts plan = {.chunks = 3};
  const char *name = fixture_variant(f, variant, &given);
  const char *text = "hq=16,hkv=1,sq=1,seqlens_k=40/33/20,page=16,pages=3,pool=9,d=576";
  const Problem *p = fixture_problem(f, text);
  device_sim_opts(f->sim, &(SimOpts){.threads = 1, .sanitize = true, .seed = 5});
  fixture_ok(f, operator_make(f->s, name, &given, p, &plan, &op, f->d));
  fixture_ok(f, operator_load(op, f->sim, f->d));
  fixture_ok(f, operator_plan(op, f->sim, &plan, f->d));
  fixture_ok(f, dense_bind(f->sim, op, 1, &buffers, f->d));
  DevPtr at[4] = {0};
  for (int bad = 0; bad < 3; bad++) { // the third is below the pool, its length below 0
    memcpy(table, good, sizeof table);
    if (bad == 2) long_lens[1] = -5;
    if (bad) table[1] = bad == 1 ? 9 : -1;
    bind_own(f, op, "block_table", table, &at[0]);
    bind_own(f, op, "seqlens_k", bad ? long_lens : lens, &at[1]);
    bind_own(f, op, "faults", none, &at[2]);
    bind_own(f, op, "o", NULL, &at[3]);
    fixture_ok(f, operator_launch(op, f->sim, f->d));
    fixture_ok(f, device_read(f->sim, told, at[2], sizeof told, f->d));
    fixture_ok(f, device_read(f->sim, bad ? again : first, at[3], sizeof first, f->d));
    if (told[0] != (bad ? 1 : 0) || told[1] != (bad ? 2 : 0) || told[2])
      fail_msg("table %d: faults %d %d %d", bad, told[0], told[1], told[2]);
    if (bad) assert_memory_equal(first + 2 * ROW, again + 2 * ROW, ROW * sizeof *first);
  }
  for (int i = 0; i < 4; i++) device_free(f->sim, at[i]);
  dense_free(f->sim, &buffers);
  operator_free(op);
  device_sim_opts(f->sim, &(SimOpts){.threads = 0});
}

static void bad_tables_are_told(void **state) {
  bad_tables(*state, "decode_latent check=1");
  bad_tables(*state, "decode_latent check=1 fused=0"); // both launches count keys
  bad_tables(*state, "decode_latent_few check=1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lengths_near_the_edges), cmocka_unit_test(heads_and_queries),
      cmocka_unit_test(pages_and_lengths),      cmocka_unit_test(rules),
      cmocka_unit_test(sanitized),              cmocka_unit_test(what_is_refused),
      cmocka_unit_test(one_tensor),             cmocka_unit_test(bad_tables_are_told),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
