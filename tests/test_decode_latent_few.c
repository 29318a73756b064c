// decode_latent_few verified on the interpreter: tiles of 16 and 32 rows with fewer and more of
// them, items of one tile after each other, maxima that are raised late, sanitized in several
// schedules. Pages out of bounds: test_decode_latent.c.
#include "verify_kit.h"

static void pass(Fixture *f, const char *params, const char *problem) {
  fixture_pass(f, arena_printf(f->a, "decode_latent_few %s", params),
               arena_printf(f->a, "%s,d=576", problem));
}

// Two spans and more of items around one, two and three tiles of keys.
static void lengths_near_the_edges(void **state) {
  static const int edges[] = {0, 1, 63, 64, 65, 128, 191, 193};
  Fixture *f = *state;
  for (int i = 0; i < 8; i++)
    pass(f, i % 2 ? "chains=2" : "",
         arena_printf(f->a, "b=%d,hq=16,hkv=1,sq=1,sk=%d,dtype=%s,chunks=%d", 1 + i % 3, edges[i],
                      i % 2 ? "f16" : "bf16", 1 + 2 * i % 7));
  pass(f, "", "b=0,hq=16,hkv=1,sq=1,sk=5,dtype=bf16");
  pass(f, "tile_q=32", "b=2,hq=16,hkv=1,sq=0,sk=5,dtype=bf16");
}

// Fewer rows than a tile has, as many, one more; two KV heads; queries that see no key.
static void heads_and_queries(void **state) {
  static const struct { int heads, queries, rows; } shapes[] = {
      {5, 1, 16}, {17, 1, 16}, {16, 2, 32}, {11, 3, 32}};
  Fixture *f = *state;
  for (int i = 0; i < 4; i++)
    pass(f, arena_printf(f->a, "tile_q=%d", shapes[i].rows),
         arena_printf(f->a, "b=%d,hq=%d,hkv=1,sq=%d,sk=%d,dtype=bf16,causal=%d,chunks=%d",
                      1 + i % 2, shapes[i].heads, shapes[i].queries, 150 + 40 * i, i > 1, 2 + i));
  pass(f, "", "b=1,hq=4,hkv=1,sq=8,sk=3,dtype=f16,causal=1");
  pass(f, "tile_q=32", "b=1,hq=8,hkv=2,sq=3,sk=90,dtype=f16,causal=1,chunks=3");
}

// The maker of weights runs ahead of those who use them by two slots: items of one tile, of none,
// whole and in pieces, many in a span.
static void items_of_one_tile(void **state) {
  Fixture *f = *state;
  pass(f, "", "b=9,hq=16,hkv=1,sq=1,sk=20,dtype=bf16,chunks=2");
  pass(f, "", "b=7,hq=20,hkv=2,sq=1,sk=64,dtype=f16,chunks=3");
  pass(f, "tile_q=32 fused=0", "b=5,hq=40,hkv=1,sq=1,sk=65,dtype=bf16,chunks=4");
  pass(f, "", "b=1,hq=16,hkv=1,sq=1,sk=600,dtype=bf16,chunks=10"); // a piece for each tile
}

static void pages_and_lengths(void **state) {
  static const int pages[] = {1, 16, 128, 24};
  Fixture *f = *state;
  for (int i = 0; i < 4; i++)
    pass(f, i % 2 ? "tile_q=32" : "",
         arena_printf(f->a, "hq=16,hkv=1,sq=%d,seqlens_k=130/0/37/1/0/64,page=%d,dtype=bf16,"
                      "causal=1,chunks=%d", 1 + i, pages[i], 1 + 2 * i));
  pass(f, "", "hq=16,hkv=1,sq=1,seqlens_k=0/0/0,dtype=f16,chunks=2");
}

// With scale=2 the largest scores of later tiles exceed the first one's by hundreds; a weight that
// is made with an old maximum is infinite in f16.
static void maxima_raised_late(void **state) {
  static const char *const given[] = {"", "lazy=0", "tile_q=32 lazy=2", "fused=0"};
  Fixture *f = *state;
  for (int i = 0; i < 4; i++)
    pass(f, given[i], arena_printf(f->a, "b=1,hq=%d,hkv=1,sq=1,sk=300,dtype=f16,scale=%d,chunks=%d",
                                   i == 2 ? 32 : 16, i % 2 ? -2 : 2, 1 + i));
}

static void rules(void **state) {
  static const char *const given[] = {"", "tile_q=32", "alibi=1", "sinks=1", "sinks=1", ""};
  static const char *const rest[] = {"window_left=70", "softcap=5", "sk=150", "sk=150",
                                     "window_right=2", "scale=0"};
  Fixture *f = *state;
  for (int i = 0; i < 6; i++)
    pass(f, given[i], arena_printf(f->a, "b=1,hq=9,hkv=1,sq=3,%s%s,dtype=f16,causal=%d,chunks=%d",
                                   strstr(rest[i], "sk") ? "" : "sk=150,", rest[i], i != 4,
                                   1 + i % 3));
}

// Copies of 512 bytes of a row: the last rows of a tile, pages of any size, heads side by side.
static void wide_copies(void **state) {
  static const char *const problems[] = {
      "b=2,hq=16,hkv=1,sq=1,sk=61,chunks=2", "b=1,hq=6,hkv=3,sq=2,sk=197,chunks=5",
      "hq=16,hkv=1,sq=2,seqlens_k=130/0/37/1,page=24,causal=1,chunks=3"};
  Fixture *f = *state;
  for (int i = 0; i < 3; i++)
    pass(f, i % 2 ? "wide=1 tile_q=32 quick=1" : "wide=1",
         arena_printf(f->a, "%s,dtype=bf16", problems[i]));
  pass(f, "quick=1", "b=3,hq=20,hkv=2,sq=2,sk=197,dtype=f16,causal=1,chunks=5");
  pass(f, "quick=1 wide=1", "b=0,hq=16,hkv=1,sq=1,sk=5,dtype=bf16");
  pass(f, "quick=1", "b=2,hq=16,hkv=1,sq=0,sk=5,dtype=bf16");
  fixture_sanitized(f, "decode_latent_few wide=1 quick=1",
                    "hq=16,hkv=1,sq=1,seqlens_k=70/0/150,page=16,d=576,dtype=bf16,chunks=3", 1);
}

// An item's two pieces are a cluster's: pairs in several rounds of one cluster; fewer rows than a
// tile; items of more pieces, of one, and not at a pair's beginning, which go their usual way.
static void pairs_of_pieces(void **state) {
  static const char *const problems[] = {
      "b=3,hq=16,hkv=1,sq=1,sk=640,chunks=6", "b=2,hq=20,hkv=1,sq=2,sk=120,chunks=12,sinks=1",
      "b=2,hq=5,hkv=1,sq=1,sk=300,chunks=5",  "b=3,hq=16,hkv=1,sq=1,sk=90,chunks=3",
      "hq=16,hkv=1,sq=1,seqlens_k=256/250/64/192/0,page=16,chunks=8"};
  Fixture *f = *state;
  for (int i = 0; i < 5; i++)
    pass(f, "pair=1", arena_printf(f->a, "%s,dtype=%s", problems[i], i % 2 ? "f16" : "bf16"));
  for (uint64_t seed = 1; seed <= 2; seed++)
    fixture_sanitized(f, "decode_latent_few pair=1",
                      "b=2,hq=16,hkv=1,sq=1,sk=256,d=576,dtype=bf16,chunks=4", seed);
}

static void sanitized(void **state) {
  Fixture *f = *state;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    fixture_sanitized(f, "decode_latent_few",
                      seed == 1 ? "b=1,hq=20,hkv=1,sq=2,sk=200,d=576,dtype=bf16,causal=1,chunks=3"
                                : "b=5,hq=16,hkv=1,sq=1,sk=70,d=576,dtype=bf16,chunks=3", seed);
    fixture_sanitized(f, seed == 1 ? "decode_latent_few" : "decode_latent_few tile_q=32 fused=0",
                      "hq=16,hkv=1,sq=2,seqlens_k=70/0/230,page=16,d=576,dtype=bf16,chunks=3",
                      seed);
  }
}

static void what_is_refused(void **state) {
  static const Refusal cases[] = {
      {"decode_latent_few", "hq=16,hkv=1,sq=1,sk=5,d=576,dtype=f32", "dtype=f32"},
      {"decode_latent_few tile_q=64", "hq=16,hkv=1,sq=1,sk=5,d=576,dtype=bf16", "tile_q=64"},
      {"decode_latent_few check=1", "hq=16,hkv=1,sq=1,sk=5,d=576,dtype=bf16",
       "check: for keys in pages"},
      {"decode_latent_few pair=1 tile_q=32", "hq=16,hkv=1,sq=1,sk=5,d=576,dtype=bf16",
       "pair: of 16 rows, fused"},
  };
  REFUSED_ALL((Fixture *)*state, cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lengths_near_the_edges), cmocka_unit_test(heads_and_queries),
      cmocka_unit_test(items_of_one_tile),      cmocka_unit_test(pages_and_lengths),
      cmocka_unit_test(maxima_raised_late),     cmocka_unit_test(rules),
      cmocka_unit_test(sanitized),              cmocka_unit_test(what_is_refused),
      cmocka_unit_test(wide_copies),
      cmocka_unit_test(pairs_of_pieces),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
