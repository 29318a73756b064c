// decode_span with tiles by tensor maps (box=N), verified on the interpreter: every head_dim and
// type, boxes of a whole tile and of parts of it, pages, lengths, windows; sanitized in several
// schedules.
#include "verify_kit.h"

#define SPAN "decode_span "

// Rows of one part, of several of 128 and of 64 bytes; tiles of one box and of more; cut at the end
// of the tensor, of a sequence, by a mask; rings that wrap, spans of many items and of few tiles.
static void every_head_dim(void **state) {
  static const GateCase cases[] = {
      {SPAN "box=32", "b=3,hq=40,hkv=2,sq=2,sk=150,d=64,dtype=f16,causal=1,chunks=7"},
      {SPAN "box=8 warps=1 stages=2", "b=3,hq=40,hkv=2,sq=2,sk=150,d=64,dtype=f16,chunks=7"},
      {SPAN "box=16 stages=6 warps=2", "b=2,hq=6,hkv=2,sq=1,sk=333,d=96,dtype=bf16,chunks=3"},
      {SPAN "box=8", "b=2,hq=6,hkv=2,sq=3,sk=333,d=96,dtype=f16,causal=1,chunks=5"},
      {SPAN "box=16", "b=2,hq=6,hkv=2,sq=1,sk=333,d=128,dtype=bf16,chunks=11"},
      {SPAN "box=8 tile_k=32", "b=2,hq=6,hkv=2,sq=3,sk=333,d=128,dtype=f16,causal=1,chunks=5"},
      {SPAN "box=16", "b=2,hq=6,hkv=2,sq=1,sk=333,d=192,dtype=f16,chunks=3"},
      {SPAN "box=8 fetch=128", "b=2,hq=6,hkv=2,sq=3,sk=333,d=256,dtype=bf16,causal=1,chunks=5"},
      {SPAN "box=16", "b=5,hq=2,sq=1,sk=1,d=128,dtype=bf16,chunks=3"},
      {SPAN "box=16", "b=5,hq=2,sq=1,sk=0,d=128,dtype=bf16,chunks=3"},
      {SPAN "box=16", "b=0,hq=2,sq=3,sk=5,d=64,dtype=f16"},
  };
  PASS_ALL(*state, cases);
}

static void eight_bits(void **state) {
  static const GateCase cases[] = {
      {SPAN "box=64",
       "b=2,hq=6,hkv=2,sq=1,sk=133,d=64,dtype=bf16,dtype_kv=e4m3,descale=1,chunks=5"},
      {SPAN "box=8", "b=2,hq=6,hkv=2,sq=2,sk=133,d=128,dtype=f16,dtype_kv=e5m2,causal=1,chunks=5"},
      {SPAN "box=16", "b=2,hq=6,hkv=2,sq=1,sk=133,d=192,dtype=bf16,dtype_kv=e4m3,chunks=5"},
      {SPAN "box=32 paged=1", "b=2,hq=6,hkv=2,sq=1,sk=133,d=256,dtype=bf16,dtype_kv=e4m3,page=64"},
  };
  PASS_ALL(*state, cases);
}

// Pages of one box and of several, tiles of more boxes than a page has; sequences without keys,
// with one, that end within a box; windows that begin within one; keys next to it are NaN in the
// gates.
static void pages_and_lengths(void **state) {
  static const GateCase cases[] = {
      {SPAN "box=16", "hq=8,hkv=2,sq=1,seqlens_k=150/0/37/1,page=16,d=128,dtype=bf16,chunks=7"},
      {SPAN "box=8 tile_k=32 warps=2",
       "hq=8,hkv=2,sq=1,seqlens_k=150/0/37/1,page=8,d=128,dtype=f16"},
      {SPAN "box=32", "hq=8,hkv=2,sq=2,seqlens_k=150/0/37/1,page=96,d=64,dtype=bf16,causal=1"},
      {SPAN "box=16", "hq=8,hkv=2,sq=1,seqlens_k=150/0/37/1,d=128,dtype=bf16,chunks=5"},
      {SPAN "box=8 tile_k=16",
       "hq=8,hkv=2,sq=3,seqlens_k=150/0/37,page=24,d=64,dtype=f16,wl=50,wr=9"},
      {SPAN "box=16 tile_k=32 sinks=1",
       "hq=8,hkv=2,sq=3,seqlens_k=150/0/37,page=48,d=64,dtype=bf16,"
       "wl=5,causal=1"},
      {SPAN "box=16", "b=2,hq=8,hkv=2,sq=2,sk=150,d=96,dtype=bf16,wl=50,softcap=20,alibi=1"},
      {SPAN "box=16 fused=0 overlap=1",
       "hq=8,hkv=2,sq=1,seqlens_k=150/0/37,page=16,d=128,dtype=bf16,"
       "chunks=9"},
      {SPAN "box=8 cluster=2 warm=1",
       "hq=8,hkv=2,sq=3,seqlens_k=75/0/37,page=24,d=64,dtype=f16,wl=40,causal=1"},
      {SPAN "box=16 quick=1", "b=2,hq=8,hkv=2,sq=1,sk=150,page=16,d=128,dtype=bf16,chunks=7"},
  };
  PASS_ALL(*state, cases);
}

static void sanitized(void **state) {
  for (uint64_t schedule = 1; schedule <= 3; schedule++) {
    fixture_sanitized(*state, SPAN "box=16 tile_k=32 warps=2 stages=3",
                      "b=2,hq=6,hkv=2,sq=2,sk=175,d=64,dtype=bf16,causal=1,chunks=7", schedule);
    fixture_sanitized(*state, SPAN "box=8 warps=2 stages=2 tile_k=16",
                      "hq=6,hkv=2,sq=2,seqlens_k=75/0/130,page=24,d=64,dtype=bf16,wl=40,chunks=9",
                      schedule);
  }
}

static void what_is_refused(void **state) {
  static const Refusal cases[] = {
      {SPAN "box=16 append=1", "b=1,hq=1,sq=1,sk=9,d=64,dtype=f16",
       "box: the queries' own keys come row by row, by cp.async"},
      {SPAN "box=16 fused=0", "b=1,hq=1,sq=1,sk=96,d=64,dtype=f16,page=16,wl=9",
       "a window's tiles begin with a box of a page"},
      {SPAN "box=64", "b=1,hq=1,sq=1,sk=9,d=128,dtype=f16", "box: a part of a tile of tile_k keys"},
      {SPAN "box=16", "b=1,hq=1,sq=1,sk=90,d=128,dtype=f16,page=24",
       "page_size=24: decode_span takes multiples of 16"},
  };
  REFUSED_ALL(*state, cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_head_dim),    cmocka_unit_test(eight_bits),
      cmocka_unit_test(pages_and_lengths), cmocka_unit_test(sanitized),
      cmocka_unit_test(what_is_refused),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
