// NaN and infinity in the inputs of the tensor-core kernels: they stand in the outputs where the
// oracle has them and nowhere else.  V under a tile that a mask cuts is excepted, so it is a key
// that every query sees here.
#include <float.h>
#include <math.h>

#include "verify_data.h"
#include "verify_kit.h"

typedef struct Subject {
  const char *name, *shape;
  bool infinity; // the type has one
} Subject;
static const Subject subjects[] = {
    {"prefill_mma", "sq=70,sk=150,d=64,dtype=f16", true},
    {"prefill_mma", "sq=70,sk=150,d=64,dtype=f32", true},
    {"prefill_wgmma", "sq=70,sk=150,d=64,dtype=bf16", true},
    {"prefill_wgmma", "sq=70,sk=150,d=64,dtype=e4m3", false},
    {"decode_mma", "sq=3,sk=150,d=64,dtype=f16,chunks=2", true},
    {"decode_span", "sq=3,sk=150,d=64,dtype=bf16,chunks=5", true},
    {"decode_span lanes=1", "sq=3,sk=150,d=128,dtype=bf16,chunks=5", true},
    {"decode_span lanes=1 cluster=2 helpers=1", "sq=3,sk=150,d=64,dtype=f16", true},
    {"decode_latent", "sq=3,sk=150,d=576,dv=512,shared=1,dtype=bf16,chunks=5",
     false}, // 0 x infinity is NaN
    {"decode_latent_few", "sq=3,sk=150,d=576,dv=512,shared=1,dtype=bf16,chunks=5", false},
    {"decode_span", "sq=3,sk=150,d=64,dtype=f16,dtype_kv=e5m2,chunks=5", true},
    {"decode_span", "sq=3,sk=150,d=64,dtype=bf16,dtype_kv=e4m3,chunks=5", false},
};

// What is put where, besides random numbers.
typedef enum Spoil {
  NAN_IN_Q,  // one query of one head
  NAN_IN_K,  // a key that the last queries see
  NAN_IN_V,  // the first key, one column
  INF_IN_K,  // the scores become inf or -inf, by the sign of q
  INF_IN_V,  // in one column inf, in another inf and -inf
  LARGEST,   // in V, the largest number of its type, and the nearest below it
  NO_WEIGHT, // all scores of the last query are -inf
  SPOILS
} Spoil;
static const char *const spoil_names[SPOILS] = {"NaN in Q", "NaN in K", "NaN in V",
                                                "inf in K", "inf in V", "the largest V",
                                                "a row of -inf"};

// Weights are near each other: none may round to 0 in one precision and not in another.
static double gentle(void *ctx, int64_t i, int64_t j, int64_t k, int64_t e) {
  uint64_t r = random_bits(*(uint64_t *)ctx, (uint64_t)(((i * 1000 + j) * 10 + k) * 1000 + e));
  return ((double)(r % 17) - 8) / 16;
}

// fp32: has more digits than tf32, and rounded to those it would be infinity.  bf16: weights are up
// to 2^8 before they are divided, and O is fp32.
static double largest(Dtype t) {
  switch (t) {
  case DT_F32: return FLT_MAX;
  case DT_BF16: return 0x1.fep119;
  case DT_F16: return 65504;
  case DT_E5M2: return 57344;
  default: return 448;
  }
}

static void spoil(AttnInputs *in, Spoil what) {
  double most = largest(in->v.t.dtype);
  int64_t rows = in->q.t.shape[1], keys = in->k.t.shape[1], dim = in->q.t.shape[3];
  switch (what) {
  case NAN_IN_Q: host_set(&in->q, 1, rows - 1, 1, 5, NAN); break;
  case NAN_IN_K: host_set(&in->k, 0, keys - 2, 0, dim - 1, NAN); break; // no part of V
  case NAN_IN_V: host_set(&in->v, 1, 0, 0, 9, NAN); break;
  case INF_IN_K: host_set(&in->k, 0, 3, 0, 7, INFINITY); break;
  case INF_IN_V:
    host_set(&in->v, 0, 0, 0, 3, INFINITY);
    host_set(&in->v, 1, 0, 0, 4, INFINITY);
    host_set(&in->v, 1, 1, 0, 4, -INFINITY);
    break;
  case LARGEST:
    host_set(&in->v, 0, 0, 0, 3, most);
    host_set(&in->v, 1, 0, 0, 4, -most);
    host_set(&in->v, 1, 1, 0, 5, most - dtype_ulp(in->v.t.dtype, most / 2)); // most: 2^n less
    break;
  default:
    for (int64_t e = 0; e < dim; e++) host_set(&in->q, 0, rows - 1, 0, e, e == 2 ? 0.5 : 0);
    for (int64_t j = 0; j < keys; j++) host_set(&in->k, 0, j, 0, 2, -INFINITY);
  }
}

static void judge(Fixture *f, const Subject *s, const char *problem, Spoil what) {
  Problem *p;
  AttnInputs in;
  Verdict v = {0};
  VerifyOpts opts = {.seed = 1, .threads = 2, .real = &in};
  diag_reset(f->d);
  if (problem_parse(f->a, problem, &p, f->d) || inputs_make(p, p->dtype, FILL_NAN, &in, f->d))
    fail_msg("%s", diag_text(f->d));
  HostTensor *t[] = {&in.q, &in.k, &in.v};
  for (uint64_t i = 0; i < 3; i++) host_fill_with(t[i], gentle, &(uint64_t){i + 1});
  spoil(&in, what);
  Params given;
  const char *name = fixture_variant(f, s->name, &given);
  if (verify(f->s, f->sim, name, &given, p, &opts, &v, f->a, f->d) != ST_OK)
    fail_msg("%s %s, %s\n%s%s", s->name, problem, spoil_names[what], diag_text(f->d),
             verdict_text(f->a, &v));
  inputs_free(&in);
}

static void as_in_the_reference(void **state) {
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
    for (int what = 0; what < SPOILS; what++)
      for (int causal = 0; causal < 2; causal++)
        if (subjects[i].infinity || what <= NAN_IN_V)
          judge(f, &subjects[i],
                arena_printf(f->a, "b=2,hq=2,hkv=1,causal=%d,%s", causal, subjects[i].shape),
                (Spoil)what);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_in_the_reference)};
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
