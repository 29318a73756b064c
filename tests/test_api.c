// The C API as an embedding program sees it: nothing but the public header and the shared library.
#include <math.h>
#include <stdbool.h>

#include <malloc.h>

#include "api_kit.h"

enum { DIM = 64, HEADS = 4, HEADS_KV = 2, KEYS = 33 };

// ---- generating ---------------------------------------------------------------------------------
static void templates_are_listed(void **state) {
  Fixture *f = *state;
  bool found = false;
  int n = 0;
  for (; psm_template_name(f->s, n); n++) {
    if (n) assert_true(strcmp(psm_template_name(f->s, n - 1), psm_template_name(f->s, n)) < 0);
    found = found || !strcmp(psm_template_name(f->s, n), "decode_splitk");
  }
  assert_true(found);
  assert_null(psm_template_name(f->s, -1));
  assert_null(psm_template_name(f->s, n + 1));
}

static void generated_text_is_checked_text(void **state) {
  Fixture *f = *state;
  psm_variant *v, *again;
  good(f, psm_generate(f->s, "decode_splitk", "head_dim=64 dtype=f16", NULL, &v));
  size_t bytes;
  const char *ptx = psm_variant_ptx(v, &bytes);
  assert_int_equal(strlen(ptx), bytes);
  assert_non_null(strstr(psm_variant_id(v), "head_dim=64"));
  assert_non_null(strstr(psm_variant_id(v), "dtype=f16"));
  assert_int_equal(strlen(psm_variant_hash(v)), 16);
  assert_non_null(strstr(ptx, psm_variant_entry(v)));
  good(f, psm_check(f->s, "again.ptx", ptx, bytes));
  // The order of parameters means nothing.
  good(f, psm_generate(f->s, "decode_splitk", " dtype=f16  head_dim=64 ", NULL, &again));
  assert_string_equal(psm_variant_hash(v), psm_variant_hash(again));
  psm_variant_free(v);
  psm_variant_free(again);
}

// Block and dynamic shared memory are those that the text names; a grid of one is enough.
static void a_variant_says_how_it_is_launched(void **state) {
  static const char *const names[] = {"prefill_wgmma", "decode_splitk"};
  Fixture *f = *state;
  for (int i = 0; i < 2; i++) {
    psm_variant *v;
    psm_shape shape;
    unsigned block, bytes = 0;
    good(f, psm_generate(f->s, names[i], NULL, NULL, &v));
    psm_variant_shape(v, &shape);
    const char *ptx = psm_variant_ptx(v, NULL), *dynamic = strstr(ptx, "dynamic_smem[]; // ");
    assert_int_equal(sscanf(strstr(ptx, ".maxntid"), ".maxntid %u", &block), 1);
    if (dynamic) sscanf(dynamic, "dynamic_smem[]; // %u", &bytes);
    assert_int_equal(shape.block[0], block);
    assert_int_equal(shape.shared_bytes, bytes);
    assert_true((bytes > 0) == (i == 0)); // decode_splitk's is static
    assert_int_equal(shape.block[1] * shape.block[2], 1);
    assert_int_equal(shape.cluster[0] * shape.cluster[1] * shape.cluster[2], 1);
    assert_int_equal(shape.grid[0] + shape.grid[1] + shape.grid[2], 0);
    psm_variant_free(v);
  }
}

static void a_higher_target_is_written(void **state) {
  Fixture *f = *state;
  psm_variant *v;
  good(f, psm_generate(f->s, "decode_splitk", NULL, "sm_90a", &v));
  assert_non_null(strstr(psm_variant_ptx(v, NULL), ".target sm_90a"));
  psm_variant_free(v);
}

static void mistakes_are_told(void **state) {
  Fixture *f = *state;
  psm_variant *v = (psm_variant *)f; // must be overwritten
  assert_error(f, psm_generate(f->s, "decode_splitq", NULL, NULL, &v), PSM_INPUT, "decode_splitk");
  assert_null(v);
  assert_error(f, psm_generate(f->s, "decode_splitk", "hed_dim=64", NULL, &v), PSM_INPUT,
               "head_dim");
  assert_error(f, psm_generate(f->s, "decode_splitk", "head_dim=65", NULL, &v), PSM_INPUT, "65");
  assert_error(f, psm_generate(f->s, "decode_splitk", NULL, "sm_9", &v), PSM_INPUT, "sm_9");
  assert_error(f, psm_generate(f->s, "decode_splitk", NULL, "", &v), PSM_INPUT, "target");
  static const char bad[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                            ".visible .entry k()\n{\n  add.s32 %a, 1, 2;\n  ret;\n}\n";
  assert_error(f, psm_check(f->s, "bad.ptx", bad, sizeof bad - 1), PSM_FAILED, "bad.ptx:6:");
  assert_error(f, psm_check(f->s, "k.ptx", bad, ((size_t)256 << 20) + 1), PSM_INPUT, "256 MiB");
  // A good call forgets the messages.
  good(f, psm_generate(f->s, "combine", NULL, NULL, &v));
  assert_string_equal(psm_error(f->s), "");
  psm_variant_free(v);
}

static void a_missing_text_is_told(void **state) {
  Fixture *f = *state;
  psm_variant *v = (psm_variant *)f;
  psm_problem *p = (psm_problem *)f;
  psm_operator *op = (psm_operator *)f;
  psm_kernel *k = (psm_kernel *)f;
  assert_error(f, psm_generate(f->s, NULL, NULL, NULL, &v), PSM_INPUT, "template_name is NULL");
  assert_error(f, psm_check(f->s, NULL, "", 0), PSM_INPUT, "name is NULL");
  assert_error(f, psm_check(f->s, "x", NULL, 0), PSM_INPUT, "ptx is NULL");
  assert_error(f, psm_kernel_load(f->dev, NULL, "", 0, NULL, &k), PSM_INPUT, "name is NULL");
  assert_error(f, psm_kernel_load(f->dev, "x", NULL, 0, NULL, &k), PSM_INPUT, "ptx is NULL");
  assert_error(f, psm_problem_new(f->s, NULL, &p), PSM_INPUT, "values is NULL");
  assert_error(f, psm_operator_new(f->dev, "combine", NULL, NULL, NULL, &op), PSM_INPUT,
               "problem is NULL");
  assert_true(!v && !p && !op && !k);
}

static void values_are_held_against_their_kind(void **state) {
  Fixture *f = *state;
  psm_problem *p;
  good(f, psm_problem_new(f->s, "b=1,hq=4,hkv=2,sq=1,sk=33,d=64", &p));
  assert_error(f, psm_problem_set_float(p, "scale", NAN), PSM_INPUT, "scale=nan");
  assert_error(f, psm_problem_set_float(p, "scale", 1e39), PSM_INPUT, "scale=1e+39");
  assert_error(f, psm_problem_set_float(p, "seqlen_k", 7.5), PSM_INPUT, "seqlen_k takes no");
  assert_error(f, psm_problem_set_float(p, NULL, 1), PSM_INPUT, "name is NULL");
  assert_error(f, psm_problem_set_int(p, "dtype", 1), PSM_INPUT, "dtype takes no number");
  assert_error(f, psm_problem_set_int(p, "heads_kv", 3), PSM_INPUT, "multiple");
  assert_error(f, psm_problem_set_int(p, NULL, 3), PSM_INPUT, "name is NULL");
  assert_error(f, psm_problem_set_float(p, "scale", 4096.5), PSM_INPUT,
               "scale=4096.5: 4096 at most");
  assert_error(f, psm_problem_set_int(p, "scale", 4097), PSM_INPUT, "scale=4097: 4096 at most");
  assert_error(f, psm_problem_set_int(p, "causal", 2), PSM_INPUT, "causal is 0 or 1");
  assert_error(f, psm_problem_set_float(p, "softcap", -1), PSM_INPUT, "softcap is at least 0");
  assert_error(f, psm_problem_set_float(p, "scale", -7e-37), PSM_INPUT,
               "scale=-7e-37: 0 or at least 2^-120");
  good(f, psm_problem_set_float(p, "scale", 0x1p-120));
  good(f, psm_problem_set_float(p, "scale", 0));
  good(f, psm_problem_set_float(p, "scale", -4096));
  good(f, psm_problem_set_int(p, "causal", 1));
  psm_problem_free(p);
}

// Without a template's name the problem chooses, by what `ptxsmith plan` says.
static void the_planner_chooses(void **state) {
  Fixture *f = *state;
  static const struct { const char *problem, *params, *id; } cases[] = {
      {"b=1,hq=4,hkv=2,sq=1,sk=900,d=64,dtype=bf16,page=16", NULL, "decode_mma head_dim=64"},
      {"b=1,hq=4,hkv=2,sq=1,sk=900,d=64,dtype=bf16,dtype_kv=e4m3", NULL, "decode_span head_dim=64"},
      {"b=1,hq=4,hkv=2,sq=99,sk=99,d=64,wl=8,dtype=f32", NULL, "prefill_mma head_dim=64"},
      {"b=1,hq=4,hkv=2,sq=99,sk=99,d=64", "dtype=f16", "prefill_wgmma head_dim=64"},
      {"b=1,hq=4,hkv=2,sq=99,sk=99,d=64,dtype=f16", "split=0", "prefill_mma head_dim=64"},
  };
  psm_problem *p;
  psm_operator *op;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    good(f, psm_problem_new(f->s, cases[i].problem, &p));
    good(f, psm_operator_new(f->dev, NULL, cases[i].params, p, NULL, &op));
    const char *id = psm_variant_id(psm_operator_variant(op, 0));
    if (strncmp(id, cases[i].id, strlen(cases[i].id))) fail_msg("%s: %s", cases[i].problem, id);
    const char *why = psm_operator_why(op), *name = cases[i].id; // the template, then why
    size_t n = strcspn(name, " ");
    assert_true(!strncmp(why, name, n));
    static const char said[] = ": the template's defaults; no row of the tables is for dtype=";
    assert_true(!strncmp(why + n, said, strlen(said)));
    psm_operator_free(op);
    psm_problem_free(p);
  }
  // Lengths on the device: their means are known by their sums alone.
  good(f, psm_problem_new(f->s, "b=3,hq=4,hkv=2,sq=99,sk=99,d=64,dtype=f16", &p));
  good(f, psm_operator_new(f->dev, NULL, "varlen=1", p, NULL, &op));
  assert_non_null(strstr(psm_operator_why(op), " sq=64 sk=64 work=4 varlen=1 on sim"));
  assert_non_null(strstr(psm_operator_why(op), "mean lengths are not known"));
  psm_operator_free(op);
  good(f, psm_problem_set_int(p, "total_q", 50));
  good(f, psm_problem_set_int(p, "total_k", 100));
  good(f, psm_operator_new(f->dev, NULL, "varlen=1", p, NULL, &op));
  assert_non_null(strstr(psm_operator_why(op), " sq=16 sk=32 work=4 varlen=mean on sim"));
  psm_operator_free(op);
  psm_problem_free(p);
  good(f, psm_problem_new(f->s, "b=1,hq=4,hkv=2,sq=1,sk=99,d=40,dtype=f16", &p));
  assert_error(f, psm_operator_new(f->dev, NULL, NULL, p, NULL, &op), PSM_INPUT,
               "no template does this on sim; nearest: decode_mma: head_dim=40 is not legal");
  assert_null(op);
  psm_problem_free(p);
  good(f, psm_problem_new(f->s, "b=1,hq=4,hkv=2,sq=1,sk=99,d=64", &p));
  good(f, psm_operator_new(f->dev, "decode_splitk", NULL, p, NULL, &op));
  assert_null(psm_operator_why(op)); // named by the caller
  psm_operator_free(op);
  const psm_options tuned = {.tuned = 1}; // a named template's parameters are the planner's
  good(f, psm_operator_new(f->dev, "decode_splitk", NULL, p, &tuned, &op));
  assert_non_null(strstr(psm_operator_why(op), "no row of the tables is for dtype=f32"));
  assert_memory_equal(psm_variant_id(psm_operator_variant(op, 0)), "decode_splitk ", 14);
  psm_operator_free(op);
  psm_problem_free(p);
}

// ---- running ------------------------------------------------------------------------------------
typedef struct Decode {
  psm_operator *op;
  psm_tensor q, k, v, o, lse;
  uint64_t workspace;
} Decode;

static psm_tensor device_tensor(Fixture *f, int rank, const int64_t *shape) {
  psm_tensor t = {.dtype = PSM_F32, .rank = rank};
  uint64_t bytes = 4;
  for (int i = 0; i < rank; i++) bytes *= (uint64_t)shape[i];
  memcpy(t.shape, shape, sizeof *shape * (size_t)rank);
  good(f, psm_alloc(f->dev, bytes, &t.data));
  good(f, psm_zero(f->dev, t.data, bytes));
  return t;
}

static void decode_open(Fixture *f, Decode *d, int64_t keys, int64_t room) {
  psm_problem *p;
  good(f, psm_problem_new(f->s, "b=1,hq=4,hkv=2,sq=1,sk=1,d=64,dtype=f32,chunks=2", &p));
  good(f, psm_problem_set_int(p, "seqlen_k", keys));
  good(f, psm_operator_new(f->dev, "decode_splitk", NULL, p, NULL, &d->op));
  psm_problem_free(p); // it was copied
  d->q = device_tensor(f, 4, (int64_t[]){1, 1, HEADS, DIM});
  d->k = device_tensor(f, 4, (int64_t[]){1, room, HEADS_KV, DIM});
  d->v = device_tensor(f, 4, (int64_t[]){1, room, HEADS_KV, DIM});
  d->o = device_tensor(f, 4, (int64_t[]){1, 1, HEADS, DIM});
  d->lse = device_tensor(f, 3, (int64_t[]){1, HEADS, 1});
  float *host = malloc((size_t)room * HEADS_KV * DIM * sizeof *host);
  for (int64_t i = 0; i < room * HEADS_KV * DIM; i++) host[i] = (float)(i / (HEADS_KV * DIM));
  good(f, psm_write(f->dev, d->v.data, host, (uint64_t)room * HEADS_KV * DIM * sizeof *host));
  free(host);
  good(f, psm_alloc(f->dev, 1 << 20, &d->workspace));
}

static void decode_bind_again(Fixture *f, Decode *d, int64_t keys) {
  d->k.shape[1] = d->v.shape[1] = keys;
  good(f, psm_bind_workspace(d->op, d->workspace, 1 << 20));
  good(f, psm_bind(d->op, "q", &d->q));
  good(f, psm_bind(d->op, "k", &d->k));
  good(f, psm_bind(d->op, "v", &d->v));
  good(f, psm_bind(d->op, "o", &d->o));
  good(f, psm_bind(d->op, "lse", &d->lse));
}

static void decode_bind(Fixture *f, Decode *d, int64_t keys) {
  assert_true(psm_workspace_bytes(d->op) <= 1 << 20);
  good(f, psm_zero(f->dev, d->workspace, 1 << 20));
  decode_bind_again(f, d, keys);
}

// Q = 0: every weight is 1/keys, so O is the mean of V[j] = j, and LSE is ln(keys).
static void decode_is_right(Fixture *f, Decode *d, int64_t keys) {
  float o[HEADS * DIM], lse[HEADS];
  good(f, psm_launch(d->op));
  good(f, psm_sync(f->dev));
  good(f, psm_read(f->dev, o, d->o.data, sizeof o));
  good(f, psm_read(f->dev, lse, d->lse.data, sizeof lse));
  double mean = (double)(keys - 1) / 2;
  for (int i = 0; i < HEADS * DIM; i++) assert_true(fabs(o[i] - mean) <= mean * 0x1p-22);
  for (int i = 0; i < HEADS; i++) assert_true(fabs(lse[i] - log((double)keys)) <= 1e-5);
}

static void decode_gives_the_mean(void **state) {
  Fixture *f = *state;
  Decode d;
  decode_open(f, &d, KEYS, KEYS);
  assert_int_equal(psm_operator_steps(d.op), 2);
  assert_non_null(strstr(psm_variant_id(psm_operator_variant(d.op, 1)), "combine"));
  assert_null(psm_operator_variant(d.op, 2));
  // For every head and chunk a partial O (DIM), a maximum and a sum, each tensor rounded up to 256.
  uint64_t o_part = 2 * HEADS * DIM * 4, max_part = 256, sum_part = 256;
  assert_int_equal(psm_workspace_bytes(d.op), o_part + max_part + sum_part);
  decode_bind(f, &d, KEYS);
  decode_is_right(f, &d, KEYS);
  decode_is_right(f, &d, KEYS); // launches repeat without anything between them
  psm_operator_free(d.op);
}

// A server binds for every token, and asks whether all is well.
static void a_step_of_serving_keeps_no_memory(void **state) {
  Fixture *f = *state;
  Decode d;
  decode_open(f, &d, KEYS, KEYS + 7);
  size_t before = mallinfo2().uordblks;
  for (int64_t i = 0; i < 20000; i++) {
    good(f, psm_operator_set_int(d.op, "seqlen_k", KEYS + 7 * (i % 2)));
    decode_bind_again(f, &d, KEYS + 7 * (i % 2));
    assert_string_equal(psm_error(f->s), "");
  }
  size_t after = mallinfo2().uordblks;
  if (after > before + 4096) fail_msg("%zu bytes more", after - before);
  psm_operator_free(d.op);
}

static void a_growing_cache_needs_no_new_operator(void **state) {
  Fixture *f = *state;
  Decode d;
  decode_open(f, &d, KEYS, KEYS + 7);
  for (int64_t keys = KEYS; keys <= KEYS + 7; keys += 7) {
    good(f, psm_operator_set_int(d.op, "seqlen_k", keys));
    assert_error(f, psm_launch(d.op), PSM_INPUT, "not bound");
    decode_bind(f, &d, keys);
    decode_is_right(f, &d, keys);
  }
  assert_error(f, psm_operator_set_int(d.op, "seqlen_k", -1), PSM_INPUT, "seqlen_k");
  assert_error(f, psm_operator_set_int(d.op, "head_dim", 128), PSM_INPUT, "built into");
  assert_error(f, psm_operator_set_int(d.op, "pages", 1), PSM_INPUT, "pages");
  decode_bind(f, &d, KEYS + 7); // after the refusals all is as before
  decode_is_right(f, &d, KEYS + 7);
  psm_operator_free(d.op);
}

// K and V inside a larger cache: [rows, 2, HEADS_KV, DIM] with K and V side by side.
static void strides_are_in_elements(void **state) {
  Fixture *f = *state;
  Decode d;
  decode_open(f, &d, KEYS, KEYS);
  decode_bind(f, &d, KEYS);
  psm_tensor cache = device_tensor(f, 4, (int64_t[]){KEYS, 2, HEADS_KV, DIM});
  size_t row = HEADS_KV * DIM, n = KEYS * 2 * row;
  float *host = calloc(n, sizeof *host);
  for (size_t i = 0; i < n; i++)
    host[i] = i / row % 2 ? (float)(i / (2 * row)) : 0; // K = 0, V[j] = j
  good(f, psm_write(f->dev, cache.data, host, n * sizeof *host));
  free(host);
  for (int part = 0; part < 2; part++) {
    psm_tensor t = {.data = cache.data + (uint64_t)part * row * 4,
                    .dtype = PSM_F32,
                    .rank = 4,
                    .shape = {1, KEYS, HEADS_KV, DIM},
                    .stride = {(int64_t)n, 2 * HEADS_KV * DIM, DIM, 1}};
    good(f, psm_bind(d.op, part ? "v" : "k", &t));
  }
  decode_is_right(f, &d, KEYS);
  psm_operator_free(d.op);
}

static void bindings_are_held_against_the_declaration(void **state) {
  Fixture *f = *state;
  Decode d;
  decode_open(f, &d, KEYS, KEYS);
  assert_error(f, psm_launch(d.op), PSM_INPUT, "not bound");
  psm_tensor t = d.q;
  t.dtype = PSM_F16;
  assert_error(f, psm_bind(d.op, "q", &t), PSM_INPUT, "f16");
  t = d.q;
  t.shape[2] = HEADS + 1;
  assert_error(f, psm_bind(d.op, "q", &t), PSM_INPUT, "shape");
  t = d.q;
  t.rank = 7;
  assert_error(f, psm_bind(d.op, "q", &t), PSM_INPUT, "7 dimensions");
  t = d.q;
  t.stride[3] = 2;
  assert_error(f, psm_bind(d.op, "q", &t), PSM_INPUT, "contiguous");
  assert_error(f, psm_bind(d.op, "query", &d.q), PSM_INPUT, "query");
  assert_error(f, psm_bind(d.op, "q", NULL), PSM_INPUT, "q");
  assert_error(f, psm_bind_workspace(d.op, d.workspace, 1), PSM_INPUT, "workspace");
  psm_operator_free(d.op);
}

static void arguments_describe_themselves(void **state) {
  Fixture *f = *state;
  Decode d;
  decode_open(f, &d, KEYS, KEYS);
  psm_arg arg;
  int n = 0, outs = 0;
  bool k_seen = false;
  for (; psm_operator_arg(d.op, n, &arg) == PSM_OK; n++) {
    outs += arg.role == PSM_OUT;
    if (strcmp(arg.name, "k")) continue;
    k_seen = true;
    int64_t want[] = {1, KEYS, HEADS_KV, DIM};
    assert_int_equal(arg.role, PSM_IN);
    assert_int_equal(arg.dtype, PSM_F32);
    assert_int_equal(arg.rank, 4);
    assert_memory_equal(arg.shape, want, sizeof want);
    assert_true(arg.alignment >= 4 && arg.alignment <= 16);
  }
  assert_true(k_seen);
  assert_int_equal(outs, 2); // o and lse, each once though two steps exist
  assert_int_equal(psm_operator_arg(d.op, -1, &arg), PSM_INPUT);
  psm_operator_free(d.op);
}

static void problems_are_checked(void **state) {
  Fixture *f = *state;
  psm_problem *p;
  assert_error(f, psm_problem_new(f->s, "b=1,hq=3,hkv=2,sq=1,sk=4,d=64", &p), PSM_INPUT, "heads");
  assert_null(p);
  assert_error(f, psm_problem_new(f->s, "b=1,sx=3", &p), PSM_INPUT, "sx");
  good(f, psm_problem_new(f->s, "b=1,hq=4,hkv=2,sq=1,sk=4,d=64", &p));
  assert_error(f, psm_problem_set_int(p, "heads_q", 3), PSM_INPUT, "heads");
  psm_operator *op;
  good(f, psm_operator_new(f->dev, "decode_splitk", NULL, p, NULL, &op)); // still heads_q = 4
  psm_operator_free(op);
  assert_error(f, psm_operator_new(f->dev, "decode_splitk", "head_dim=128", p, NULL, &op),
               PSM_INPUT, "head_dim");
  assert_null(op);
  psm_problem_free(p);
}

static void absent_devices_are_named(void **state) {
  Fixture *f = *state;
  psm_device *dev;
  assert_error(f, psm_device_open(f->s, "cuda:99", &dev), PSM_DEVICE, "");
  assert_null(dev);
  assert_true(strlen(psm_error(f->s)) > 0);
  assert_error(f, psm_device_open(f->s, "gpu", &dev), PSM_INPUT, "gpu");
  assert_string_equal(psm_device_id(f->dev), "sim");
}

static void a_missing_folder_is_told(void **state) {
  (void)state;
  psm_session *s;
  assert_int_equal(psm_session_open("/nonexistent", &s), PSM_INPUT);
  assert_non_null(strstr(psm_error(s), "/nonexistent"));
  psm_session_close(s);
}

// ---- kernels of other PTX -----------------------------------------------------------------------
static const char fill_ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                               ".visible .entry fill(.param .u64 p, .param .u32 v)\n{\n"
                               ".reg .b32 %r<3>; .reg .b64 %rd<4>;\nld.param.u64 %rd0, [p];\n"
                               "ld.param.u32 %r0, [v];\nmov.u32 %r1, %tid.x;\n"
                               "bar.warp.sync -1;\nadd.u32 %r2, %r0, %r1;\n"
                               "mul.wide.u32 %rd1, %r1, 4;\nadd.u64 %rd2, %rd0, %rd1;\n"
                               "st.global.u32 [%rd2], %r2;\nret;\n}\n";

static void any_kernel_runs(void **state) {
  Fixture *f = *state;
  psm_kernel *k;
  uint64_t p;
  uint32_t v = 100, got[32];
  good(f, psm_kernel_load(f->dev, "fill.ptx", fill_ptx, sizeof fill_ptx - 1, NULL, &k));
  assert_string_equal(psm_kernel_name(k), "fill");
  assert_int_equal(psm_kernel_params(k), 2);
  assert_int_equal(psm_kernel_param_bytes(k, 1), 4);
  assert_int_equal(psm_kernel_param_bytes(k, 2), 0);
  good(f, psm_alloc(f->dev, sizeof got, &p));
  psm_kernel_arg args[] = {{&p, 8}, {&v, 4}};
  psm_shape shape = {.block = {32}};
  good(f, psm_kernel_launch(k, &shape, args, 2));
  good(f, psm_read(f->dev, got, p, sizeof got));
  for (uint32_t i = 0; i < 32; i++) assert_int_equal(got[i], 100 + i);
  assert_error(f, psm_kernel_launch(k, &shape, args, 1), PSM_INPUT, "2 parameters, 1 arguments");
  args[1].bytes = 8;
  assert_error(f, psm_kernel_launch(k, &shape, args, 2), PSM_INPUT, "argument 1 is 8 bytes");
  args[1].bytes = 4;
  shape.block[0] = 64;
  assert_error(f, psm_kernel_launch(k, &shape, args, 2), PSM_FAILED, "out of bounds");
  psm_kernel_free(k);
  assert_error(f, psm_kernel_load(f->dev, "fill.ptx", fill_ptx, sizeof fill_ptx - 1, "fil", &k),
               PSM_INPUT, "no kernel \"fil\"");
  assert_null(k);
  good(f, psm_free(f->dev, p));
  assert_error(f, psm_free(f->dev, p), PSM_INPUT, "no buffer of psm_alloc begins at 0x");
  assert_error(f, psm_free(f->dev, 0x1234567890), PSM_INPUT,
               "no buffer of psm_alloc begins at 0x1234567890");
  good(f, psm_free(f->dev, 0));
}

// ---- tensor maps, and the interpreter's options ------------------------------------------------
// y[i] = element i of a box of 4 x 8 floats at (row 1, column 4), through shared memory.
static const char box_ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry box(.param .align 64 .b8 map[128], .param .u64 y)\n{\n"
    ".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
    ".shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, bar; mov.u32 %r2, tile; mov.b64 %rd0, map;\n"
    "cvta.param.u64 %rd0, %rd0; mov.u32 %r3, 4; mov.u32 %r4, 1; setp.ne.u32 %p, %r0, 0;\n"
    "@%p bra wait; mbarrier.init.shared.b64 [%r1], 1; fence.proxy.async.shared::cta;\n"
    "mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r1], 128;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0, "
    "{%r3, %r4}], "
    "[%r1];\nwait: bar.sync 0;\n"
    "again: mbarrier.try_wait.parity.shared.b64 %p, [%r1], 0; @!%p bra again;\n"
    "shl.b32 %r5, %r0, 2; add.u32 %r6, %r2, %r5; ld.shared.u32 %r7, [%r6]; ld.param.u64 %rd1, "
    "[y];\n"
    "mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r7; ret;\n}\n"
    ".visible .entry loop(.param .u64 y)\n{\n.reg .pred %p;\nsetp.eq.u32 %p, 0, 0;\n"
    "again: @%p bra again;\nret;\n}\n"
    ".visible .entry race(.param .u64 y)\n{\n.reg .b32 %r<4>; .reg .b64 %rd;\nmov.u32 %r0, "
    "%tid.x;\n"
    "ld.param.u64 %rd, [y];\nshr.u32 %r1, %r0, 5;\nst.global.u32 [%rd], %r1;\nret;\n}\n";

static void a_kernel_takes_a_tensor_map(void **state) {
  Fixture *f = *state;
  psm_kernel *k;
  uint64_t x, y;
  float in[8][12], out[32];
  uint8_t map[PSM_TENSOR_MAP_BYTES];
  for (int i = 0; i < 96; i++) in[i / 12][i % 12] = (float)i;
  good(f, psm_alloc(f->dev, sizeof in, &x));
  good(f, psm_alloc(f->dev, sizeof out, &y));
  good(f, psm_write(f->dev, x, in, sizeof in));
  psm_tensor_map m = {
      .tensor = {.data = x, .dtype = PSM_F32, .rank = 2, .shape = {4, 9}, .stride = {24, 1}},
      .box = {4, 8},
      .nan_fill = 1,
      .l2_promotion = 256};
  good(f, psm_tensor_map_encode(f->dev, &m, map));
  good(f, psm_kernel_load(f->dev, "box.ptx", box_ptx, sizeof box_ptx - 1, "box", &k));
  psm_kernel_arg args[] = {{map, sizeof map}, {&y, 8}};
  psm_shape shape = {.block = {32}};
  good(f, psm_kernel_launch(k, &shape, args, 2));
  good(f, psm_read(f->dev, out, y, sizeof out));
  for (int i = 0; i < 32; i++) { // rows 1, 2, 3 of every second row; 5 columns from 4 on
    int row = 1 + i / 8, col = 4 + i % 8;
    if (row < 4 && col < 9) assert_true(out[i] == in[2 * row][col]);
    else assert_true(out[i] != out[i]);
  }
  m.swizzle = 16;
  assert_error(f, psm_tensor_map_encode(f->dev, &m, map), PSM_INPUT,
               "a swizzle of 16 bytes: 0, 32, 64 or 128");
  m.swizzle = 0, m.box[1] = 3;
  assert_error(f, psm_tensor_map_encode(f->dev, &m, map), PSM_INPUT, "12 bytes wide");
  m.tensor.stride[1] = 2;
  assert_error(f, psm_tensor_map_encode(f->dev, &m, map), PSM_INPUT,
               "stride of 2 elements: it must be 1");
  m.tensor.rank = 6;
  assert_error(f, psm_tensor_map_encode(f->dev, &m, map), PSM_INPUT, "rank 6: 1 to 5");
  psm_kernel_free(k);
  good(f, psm_free(f->dev, x));
  good(f, psm_free(f->dev, y));
}

static void the_interpreter_has_options(void **state) {
  Fixture *f = *state;
  psm_kernel *k;
  uint64_t y;
  const char *json;
  psm_shape shape = {.block = {64}};
  good(f, psm_alloc(f->dev, 4, &y));
  psm_kernel_arg arg = {&y, 8};
  good(f, psm_kernel_load(f->dev, "box.ptx", box_ptx, sizeof box_ptx - 1, "loop", &k));
  good(f, psm_device_sim(f->dev, &(psm_sim_options){.limit = 1000}));
  assert_error(f, psm_kernel_launch(k, &shape, &arg, 1), PSM_FAILED,
               "the limit of 1000 warp instructions");
  psm_kernel_free(k);
  good(f, psm_kernel_load(f->dev, "box.ptx", box_ptx, sizeof box_ptx - 1, "race", &k));
  good(f, psm_device_sim(f->dev, &(psm_sim_options){.counters = 1}));
  good(f, psm_kernel_launch(k, &shape, &arg, 1));
  good(f, psm_kernel_counters(k, &json));
  assert_non_null(strstr(json, "\"global_write_requests\":2"));
  good(f, psm_device_sim(f->dev, &(psm_sim_options){.sanitize = 1, .schedule = 3}));
  assert_error(f, psm_kernel_launch(k, &shape, &arg, 1), PSM_FAILED, "data race");
  psm_kernel_free(k);
  good(f, psm_kernel_load(f->dev, "box.ptx", box_ptx, sizeof box_ptx - 1, "race", &k));
  assert_error(f, psm_kernel_counters(k, &json), PSM_INPUT, "nothing was counted");
  psm_kernel_free(k);
  good(f, psm_device_sim(f->dev, &(psm_sim_options){0}));
  good(f, psm_free(f->dev, y));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(templates_are_listed),
      T(generated_text_is_checked_text),
      T(a_variant_says_how_it_is_launched),
      T(a_higher_target_is_written),
      T(mistakes_are_told),
      T(the_planner_chooses),
      T(a_missing_text_is_told),
      T(values_are_held_against_their_kind),
      T(decode_gives_the_mean),
      T(a_growing_cache_needs_no_new_operator),
      T(a_step_of_serving_keeps_no_memory),
      T(strides_are_in_elements),
      T(bindings_are_held_against_the_declaration),
      T(arguments_describe_themselves),
      T(problems_are_checked),
      T(absent_devices_are_named),
      T(a_missing_folder_is_told),
      T(any_kernel_runs),
      T(a_kernel_takes_a_tensor_map),
      T(the_interpreter_has_options),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
