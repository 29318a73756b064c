// combine_spans verified on the interpreter behind decode_span and the latent kernels: items of one
// piece and of hundreds, rows and sequences beyond a tile and a warp, every rule that moves spans,
// sanitized in several schedules.
#include "verify_kit.h"

#define SPAN "decode_span fused=0 "
#define LATENT "decode_latent fused=0 "
#define FEW "decode_latent_few fused=0 "

// Pieces: of each tile; as many as a block reads at once, 256, and one more; items within a span
// beside others; more spans than tiles.
static void pieces_of_an_item(void **state) {
  static const GateCase cases[] = {
      {SPAN, "b=1,hq=8,hkv=1,sq=1,sk=3000,d=128,dtype=bf16,chunks=187"},
      {SPAN, "b=1,hq=2,hkv=1,sq=1,sk=4130,d=128,dtype=f16,chunks=256"},
      {SPAN, "b=1,hq=2,hkv=1,sq=1,sk=4130,d=128,dtype=f16,chunks=257"},
      {SPAN, "b=2,hq=6,hkv=2,sq=1,sk=300,d=96,dtype=bf16,chunks=33"},
      {SPAN, "b=9,hq=6,hkv=2,sq=1,sk=40,d=192,dtype=bf16,chunks=5"},
      {SPAN, "b=2,hq=2,hkv=1,sq=1,sk=40,d=256,dtype=bf16,chunks=70"},
      {LATENT, "b=1,hq=16,hkv=1,sq=1,sk=4200,d=576,dtype=bf16,chunks=66"}, // 64 are read at once
      {LATENT, "b=3,hq=16,hkv=1,sq=1,sk=150,d=576,dtype=f16,chunks=4"},
      {FEW, "b=1,hq=16,hkv=1,sq=1,sk=1100,d=576,dtype=bf16,chunks=18"},
  };
  PASS_ALL(*state, cases);
}

// What decides where items begin: several tiles of rows, masks, lengths; then what the end does.
static void rows_masks_and_lengths(void **state) {
  static const GateCase cases[] = {
      {SPAN, "b=3,hq=12,hkv=2,sq=7,sk=300,d=64,dtype=bf16,causal=1,chunks=50"},
      {SPAN "tile_q=4", "b=2,hq=3,hkv=1,sq=5,sk=90,d=64,dtype=f16,wl=40,wr=7,chunks=31"},
      {SPAN, "b=1,hq=8,hkv=2,sq=1,sk=1000,d=128,dtype=bf16,wl=300,sinks=1,chunks=23"},
      {SPAN, "hq=8,hkv=2,sq=2,seqlens_k=700/0/37/1,page=16,d=128,dtype=bf16,chunks=61"},
      // the item's sequence is in the second 32, is the 32nd, comes after sequences without a key
      {SPAN, "b=70,hq=2,hkv=2,sq=1,seqlens_k=seed:3,sk=90,d=64,dtype=bf16,causal=1,chunks=333"},
      {SPAN, "b=32,hq=1,hkv=1,sq=1,seqlens_k=seed:5,sk=90,d=64,dtype=bf16,chunks=120"},
      {SPAN, "b=1,hq=8,hkv=2,sq=1,sk=500,d=128,dtype=bf16,dtype_kv=e4m3,descale=1,chunks=30"},
      {SPAN, "b=1,hq=8,hkv=2,sq=1,sk=500,d=128,dtype=f16,dtype_kv=e5m2,chunks=30"},
      {SPAN, "b=1,hq=1,sq=33,sk=32,d=64,dtype=f16,causal=1,chunks=4"}, // rows that see no key
      {SPAN, "hq=2,hkv=2,sq=1,seqlens_k=0/0/0,d=64,dtype=f16,chunks=2"},
      {LATENT, "b=1,hq=128,hkv=1,sq=2,sk=700,d=576,dtype=f16,causal=1"},
      {LATENT, "hq=16,hkv=1,sq=2,seqlens_k=900/0/37/1,page=16,d=576,dtype=bf16,causal=1,chunks=9"},
      {LATENT, "b=1,hq=16,hkv=1,sq=3,sk=150,d=576,dtype=f16,causal=1,wl=70,sinks=1,chunks=3"},
      {FEW, "hq=16,hkv=1,sq=2,seqlens_k=900/0/37/1,page=16,d=576,dtype=bf16,causal=1,chunks=9"},
      {FEW "tile_q=32",
       "b=1,hq=16,hkv=1,sq=3,sk=150,d=576,dtype=f16,causal=1,wl=70,sinks=1,chunks=3"},
  };
  PASS_ALL(*state, cases);
  fixture_nothing(*state, SPAN, "d=64,dtype=f16");
  fixture_nothing(*state, LATENT, "d=576,dtype=f16");
}

// Teams of 4, 2 and 1 warps (work items of a row's 32 columns: 280, 558, 1,050), the last of a
// block with nothing to do; a latent row has 8.
static void many_rows(void **state) {
  static const GateCase cases[] = {
      {SPAN, "b=70,hq=2,hkv=2,sq=1,seqlens_k=seed:3,sk=90,d=64,dtype=bf16,chunks=333"},
      {SPAN, "b=3,hq=93,hkv=1,sq=1,sk=90,d=64,dtype=bf16,chunks=40"},
      {SPAN, "b=5,hq=105,hkv=1,sq=1,sk=60,d=64,dtype=f16,chunks=64"},
      // and two turns
      {SPAN "tile_q=32", "b=1,hq=520,hkv=1,sq=1,sk=1100,d=64,dtype=f16,chunks=595"},
      {LATENT, "b=1,hq=300,hkv=1,sq=1,sk=190,d=576,dtype=bf16,chunks=13"},
  };
  PASS_ALL(*state, cases);
}

static void sanitized(void **state) {
  for (uint64_t seed = 1; seed <= 2; seed++) {
    fixture_sanitized(*state, SPAN "overlap=1",
                      "b=2,hq=6,hkv=2,sq=3,sk=300,d=64,dtype=f16,causal=1,chunks=40", seed);
    fixture_sanitized(*state, SPAN "overlap=1",
                      "hq=4,hkv=2,sq=1,seqlens_k=70/0/330,page=16,d=64,dtype=bf16,chunks=40", seed);
    fixture_sanitized(*state, SPAN, "b=3,hq=93,hkv=1,sq=1,sk=40,d=64,dtype=bf16,chunks=130", seed);
    fixture_sanitized(*state, LATENT, "b=1,hq=16,hkv=1,sq=1,sk=500,d=576,dtype=bf16,chunks=7",
                      seed);
  }
}

static void what_is_refused(void **state) {
  static const Refusal cases[] = {
      {SPAN "tree=1", "hq=2,sq=1,sk=50,d=64,dtype=f16", "tree: for pieces that the last block"},
      {"decode_span overlap=1", "hq=2,sq=1,sk=50,d=64,dtype=f16", "overlap: of a second launch"},
      {"combine_spans", "hq=1,sq=1,sk=1", "combine_spans makes no answer of its own"},
  };
  REFUSED_ALL((Fixture *)*state, cases);
}

// Two launches; no counters, so nothing of the workspace must be zero; as many chunks at most as
// with the counters: of 3 tiles of rows, not of 1 sequence.
static void what_is_planned(void **state) {
  Fixture *f = *state;
  for (int fused = 0; fused < 2; fused++) {
    Params given;
    Operator *op;
    PlanOpts opts = {.chunks = 1000};
    const Problem *p = fixture_problem(f, "b=1,hq=40,hkv=1,sq=1,sk=50,d=64,dtype=bf16");
    const char *name = fixture_variant(f, fused ? "decode_span" : SPAN, &given);
    fixture_ok(f, operator_make(f->s, name, &given, p, &opts, &op, f->d));
    assert_int_equal(op->nsteps, fused ? 1 : 2);
    assert_int_equal((int)op->workspace_zero_bytes, fused ? 256 : 0);
    assert_int_equal((int)problem_int(op->problem, "chunks", 0), 150);
    int64_t bytes;
    assert_int_equal((int)plan_pieces(op, &bytes), 50);
    assert_int_equal((int)bytes, 50 * 16 * 64 * 4);
    operator_free(op);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pieces_of_an_item), cmocka_unit_test(rows_masks_and_lengths),
      cmocka_unit_test(many_rows),
      cmocka_unit_test(sanitized),         cmocka_unit_test(what_is_refused),
      cmocka_unit_test(what_is_planned),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
