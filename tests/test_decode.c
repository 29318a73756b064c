// decode_mma, decode_span and decode_fma verified on the interpreter: every head_dim, tiles and
// stages, lengths near the edges of tiles and chunks, and sanitized in several schedules.  More on
// pages, lengths and rules is in test_decode_rules.c.
#include <math.h>

#include "verify_data.h"
#include "verify_kit.h"

static const int dims[] = {64, 96, 128, 192, 256};

// ---- decode_mma ---------------------------------------------------------------------------------
#define MMA "decode_mma "

// The defaults of every head_dim, both types, causal and not, several heads and queries in a tile.
static void every_head_dim(void **state) {
  Fixture *f = *state;
  for (int i = 0; i < 5; i++)
    for (int causal = 0; causal < 2; causal++)
      fixture_pass(f, MMA,
                   arena_printf(f->a,
                                "b=2,hq=6,hkv=2,sq=%d,sk=333,d=%d,causal=%d,chunks=3,dtype=%s",
                                1 + 2 * causal, dims[i], causal, i % 2 ? "f16" : "bf16"));
}

static void tiles_and_stages(void **state) {
  static const char *const variants[] = {
      MMA "tile_k=16 warps=1 stages=3",
      MMA "tile_k=32 warps=2 stages=2",
      MMA "tile_k=64 warps=2 stages=3",
      MMA "tile_k=16 warps=16 stages=2 q_regs=0",
      MMA "tile_q=32 warps=4 tile_k=32 stages=4 lazy=0",
      MMA "warps=4 fused=0",
      MMA "warps=4 fetch=128 stages=6",
  };
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
    fixture_pass(*state, variants[i],
                 "b=2,hq=20,hkv=1,sq=2,sk=270,d=64,dtype=f16,causal=1,chunks=2");
}

// One key less or more than a tile, than a chunk; more chunks than tiles; more queries than keys;
// nothing at all.
static void lengths_near_the_edges(void **state) {
  static const int edges[] = {1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129};
  Fixture *f = *state;
  for (int i = 0; i < (int)(sizeof edges / sizeof *edges); i++)
    fixture_pass(f, MMA "warps=2",
                 arena_printf(f->a, "b=2,hq=2,sq=%d,sk=%d,d=128,dtype=bf16,causal=%d,chunks=%d",
                              i % 3 ? 1 : 4, edges[i], i % 2, 1 + i % 8));
  fixture_pass(f, MMA, "b=2,hq=2,sq=16,sk=9,d=64,dtype=f16,causal=1,chunks=4");
  fixture_nothing(f, MMA, "d=64,dtype=f16");
}

static void groups_chunks_and_scales(void **state) {
  static const GateCase cases[] = {
      // Group sizes that are no power of two, groups that fill more than a tile, 256 chunks
      {MMA, "b=1,hq=28,hkv=4,sq=1,sk=300,d=128,dtype=bf16,chunks=4"},
      {MMA, "b=1,hq=40,hkv=1,sq=1,sk=150,d=64,dtype=f16,chunks=3"},
      {MMA "warps=1 stages=2", "b=1,hq=2,hkv=1,sq=1,sk=4200,d=64,dtype=f16,chunks=256"},
      // A scale below zero turns the order of the scores, and one of zero makes them equal.
      {MMA, "b=1,hq=2,sq=1,sk=90,d=64,dtype=bf16,scale=-0.2,chunks=2"},
      {MMA, "b=1,hq=2,sq=1,sk=90,d=64,dtype=f16,scale=0,chunks=2"},
  };
  PASS_ALL(*state, cases);
}

static void what_is_refused(void **state) {
#define ONE_KEY "b=1,hq=1,sq=1,sk=1,"
#define NINE_KEYS "b=1,hq=1,sq=1,sk=9,"
  static const Refusal cases[] = {
      {MMA, ONE_KEY "d=64,dtype=f32", "dtype=f32 is not legal: dtype is f16 or bf16"},
      {MMA, ONE_KEY "d=80,dtype=f16", "head_dim=80 is not legal"},
      {MMA "tile_k=64 stages=8", ONE_KEY "d=128,dtype=f16",
       "tile_k, warps, stages: 227 KiB of shared memory"},
      {MMA "fused=0 sinks=1", ONE_KEY "d=128,dtype=f16", "sinks need fused: combine knows none"},
      {MMA, NINE_KEYS "d=64,dtype=f16,dtype_kv=e4m3", "has no element type of its own for k and v"},
      {"decode_fma lanes=32", NINE_KEYS "d=64", "lanes: each has whole pieces of 16 bytes"},
      {"decode_span", NINE_KEYS "d=96,dtype=f16,dtype_kv=e4m3",
       "8-bit keys: rows of 96 bytes are not laid out"},
      {"decode_span", NINE_KEYS "d=64,dtype=f16,dtype_kv=bf16",
       "k and v have the type of q, or 8 bits"},
      {"decode_span cluster=4 tree=1", NINE_KEYS "d=64,dtype=f16",
       "cluster: merges the pieces itself, fused"},
      {"decode_span warm=1 tree=1", NINE_KEYS "d=64,dtype=f16",
       "warm: where the last block merges"},
      {"decode_span lend=1", NINE_KEYS "d=64,dtype=f16", "lend: of clusters, with cp.async"},
      {"decode_span lend=1 cluster=2 tile_k=16 stages=2 tile_q=32", NINE_KEYS "d=64,dtype=f16",
       "lend: a warp's rows are more than its ring holds"},
      {"decode_span lanes=1 tree=1", NINE_KEYS "d=64,dtype=f16", "lanes: of pieces that the last"},
      {"decode_span quick=1 cluster=2", NINE_KEYS "d=64,dtype=f16", "quick: of chunks"},
      {"decode_span cluster=2", NINE_KEYS "d=64,dtype=f16,chunks=3",
       "chunks=3: decode_span was built with cluster=2, which makes 2 pieces of an item"},
  };
  REFUSED_ALL(*state, cases);
}

// The last block's combine is what races would show in: several chunks and schedules.
static void sanitized(void **state) {
  static const char *const variants[] = {MMA "warps=2 stages=2",
                                         MMA "warps=2 stages=3 tile_k=16 q_regs=0",
                                         MMA "warps=4 stages=3 tile_q=32"};
  Fixture *f = *state;
  for (int i = 0; i < 3; i++)
    for (int schedule = 1; schedule <= 3; schedule++)
      fixture_sanitized(
          f, variants[i],
          arena_printf(f->a, "b=1,hq=6,hkv=2,sq=2,sk=175,d=64,dtype=bf16,causal=%d,chunks=%d",
                       i & 1, 2 + schedule),
          (uint64_t)schedule);
}

// Through the gates of the verifier, whose oracle and unseen keys are not test_decode_rules.c's.
static void rules_through_the_gates(void **state) {
  static const struct {
    const char *params, *rule;
  } rules[] = {{"", "window_left=20"},
               {"", "window_left=20,window_right=3"},
               {"", "softcap=5"},
               {"alibi=1", ""},
               {"sinks=1", ""}};
  static const char shape[] = "b=2,hq=4,hkv=2,sq=2,sk=150,d=64,chunks=3";
  Fixture *f = *state;
  for (int i = 0; i < 5; i++) {
    fixture_pass(f, arena_printf(f->a, MMA "%s", rules[i].params),
                 arena_printf(f->a, "%s,causal=%d,dtype=f16,%s", shape, // which has no right side
                              !strstr(rules[i].rule, "right"), rules[i].rule));
    fixture_pass(f, arena_printf(f->a, "decode_fma %s", rules[i].params),
                 arena_printf(f->a, "%s,%s", shape, rules[i].rule));
  }
}

static void chunks_are(Fixture *f, const char *variant, const char *problem, int want) {
  Operator *op;
  Params given;
  const char *name = fixture_variant(f, variant, &given);
  const Problem *p = fixture_problem(f, problem);
  fixture_ok(f, operator_make(f->s, name, &given, p, NULL, &op, f->d));
  int got = (int)problem_int(op->problem, "chunks", 0);
  if (got != want) fail_msg("%s %s: %d chunks, not %d", variant, problem, got, want);
  operator_free(op);
}

// Blocks with much shared memory: whole rounds of 132, or of 264 when two fit an SM.  Spans are of
// all keys together: one round, heads in step, and no span of less than 256 keys.
static void chunks_fill_whole_rounds(void **state) {
  static const struct {
    const char *variant, *problem;
    int chunks;
  } cases[] = {
      {MMA, "hq=8,sq=1,sk=16384,d=128", 16},
      {MMA "warps=4", "hq=8,sq=1,sk=16384,d=128", 32},
      {MMA, "b=64,hq=32,hkv=8,sq=1,sk=4096,d=128", 1},
      {MMA, "b=8,hq=32,hkv=8,sq=1,sk=8192,d=128", 2},
      {MMA, "hq=100,sq=1,sk=8192,d=128", 5},      // 500 of 528
      {MMA, "hq=8,hkv=1,sq=4,sk=8192,d=128", 32}, // two tiles of rows
      {MMA, "hq=8,sq=1,sk=300,d=128", 2},
      {"decode_span", "hq=8,sq=1,sk=16384,d=128", 128},
      {"decode_span", "b=128,hq=32,hkv=8,sq=1,sk=1024,d=128", 128},
      {"decode_span", "hq=28,hkv=7,sq=1,sk=16384,d=128", 126},
      {"decode_span", "hq=50,hkv=50,sq=1,sk=16384,d=128", 132},
      {"decode_span tile_q=4", "hq=8,sq=1,sk=16384,d=128", 128}, // shared memory of two would fit
      {"decode_span", "b=2,hq=8,sq=1,sk=300,d=128", 32},
      {"decode_span", "b=2,hq=8,sq=1,sk=0,d=128", 1},
      {"decode_span", "hq=40,hkv=1,sq=1,sk=1000,d=128", 12}, // three tiles of rows
      {"decode_latent", "hq=128,hkv=1,sq=1,sk=1000,d=576", 16}, // two of 64; 128 keys a span
      {"decode_latent", "b=64,hq=128,hkv=1,sq=1,sk=8192,d=576", 128}, // whole items
      {"decode_latent", "b=64,hq=128,hkv=1,sq=2,sk=4096,d=576", 256}, // in two rounds
      {"decode_latent", "b=400,hq=128,hkv=1,sq=1,sk=4096,d=576", 132},
      {"decode_latent", "b=16,hq=16,hkv=1,sq=1,sk=16384,d=576", 128}, // eighths
      {"decode_latent", "b=50,hq=16,hkv=1,sq=1,sk=16384,d=576", 132}, // 100 would idle 32
      {"decode_latent", "b=5,hq=16,hkv=1,sq=1,sk=9000,d=576", 130},
      {"decode_latent_few", "b=16,hq=16,hkv=1,sq=1,sk=16384,d=576", 128},
      {"decode_latent_few", "b=64,hq=32,hkv=1,sq=1,sk=8192,d=576", 128}, // two tiles of rows
      {"decode_latent_few tile_q=32", "b=44,hq=16,hkv=1,sq=2,sk=4096,d=576", 132}, // thirds
      {"decode_latent", "hq=16,hkv=1,sq=1,seqlens_k=9000/9000/9000/9000/9000,d=576", 132},
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    chunks_are(f, cases[i].variant, arena_printf(f->a, "%s,dtype=bf16", cases[i].problem),
               cases[i].chunks);
}

// ---- decode_span --------------------------------------------------------------------------------
#define SPAN "decode_span "

// Spans that end within items, at their ends, that hold many items, none; more spans than tiles;
// warps without a tile; several tiles of rows; every head_dim.
static void in_spans(void **state) {
  static const int lengths[] = {0, 1, 15, 16, 17, 63, 64, 65, 129};
  static const char many[] = "b=3,hq=40,hkv=2,sq=2,sk=150,d=64,dtype=f16,causal=1,chunks=7";
  static const GateCase cases[] = {
      {SPAN "warps=1 stages=2", many},
      {SPAN "warps=8 stages=2 tile_k=16", many},
      {SPAN "tile_q=32 warps=2 tile_k=32 stages=3", many},
      {SPAN "q_regs=0 lazy=0 fetch=128", many},
      {SPAN, "b=1,hq=2,hkv=1,sq=1,sk=4200,d=64,dtype=f16,chunks=140"},
      // in two levels: groups of 16 pieces and a rest, one group only, whole items between them
      {SPAN "tree=1", "b=1,hq=6,hkv=1,sq=1,sk=4200,d=64,dtype=f16,chunks=140"},
      {SPAN "tree=1", "b=2,hq=4,hkv=2,sq=2,sk=700,d=64,dtype=f16,causal=1,chunks=68"},
      {SPAN "tree=1 helpers=1", "b=5,hq=2,hkv=2,sq=1,sk=90,d=96,dtype=bf16,chunks=13"},
      {SPAN, "b=0,hq=2,sq=3,sk=5,d=64,dtype=f16"},
      {SPAN, "b=2,hq=2,sq=0,sk=5,d=64,dtype=f16"},
      {SPAN "helpers=8 paged=1",
       "b=2,hq=20,hkv=2,sq=1,sk=300,d=64,dtype=f16,page_size=16,chunks=9"},
      {SPAN "sinks=1", "b=2,hq=4,sq=1,sk=50,d=64,dtype=f16,chunks=5"},
      // code run through before it is needed, by fewer and more warps than rows; tiles counted
      {SPAN "warm=2 quick=1", many},
      {SPAN "warm=2 helpers=1 q_regs=0", "b=5,hq=2,hkv=2,sq=1,sk=90,d=96,dtype=bf16,chunks=13"},
      {SPAN "quick=1 tile_q=4", "b=2,hq=10,hkv=2,sq=2,sk=150,d=64,dtype=f16,chunks=7"},
      {SPAN "quick=1", "b=2,hq=2,sq=0,sk=5,d=64,dtype=f16"},
      // pieces merged lane by lane: whole items, two turns and a rest, one of 8, rows of three
      // loads
      {SPAN "lanes=1 helpers=2", many},
      {SPAN "lanes=1 helpers=1 tile_q=32", "b=1,hq=20,hkv=1,sq=1,sk=700,d=96,dtype=bf16,chunks=41"},
      {SPAN "lanes=1 sinks=1", "b=2,hq=6,hkv=2,sq=1,sk=300,d=192,dtype=f16,chunks=39"},
      {SPAN "lanes=1 quick=1", "b=2,hq=8,hkv=2,sq=1,sk=300,d=256,dtype=bf16,chunks=22"},
      {SPAN "lanes=1", "hq=8,hkv=2,sq=1,seqlens_k=300/0/37/1,page=16,d=128,dtype=f16,chunks=20"},
      {SPAN "lanes=1",
       "b=2,hq=8,hkv=2,sq=1,sk=333,d=128,dtype=bf16,dtype_kv=e4m3,descale=1,chunks=9"},
  };
  Fixture *f = *state;
  for (int i = 0; i < 5; i++)
    for (int causal = 0; causal < 2; causal++)
      fixture_pass(
          f, SPAN,
          arena_printf(f->a, "b=2,hq=6,hkv=2,sq=%d,sk=333,d=%d,causal=%d,chunks=%d,dtype=%s",
                       1 + 2 * causal, dims[i], causal, 3 + 4 * i, i % 2 ? "f16" : "bf16"));
  for (int i = 0; i < 9; i++)
    fixture_pass(f, SPAN,
                 arena_printf(f->a, "b=5,hq=2,sq=%d,sk=%d,d=128,dtype=bf16,causal=%d,chunks=%d",
                              1 + i % 3, lengths[i], i % 2, 1 + 5 * i));
  PASS_ALL(f, cases);
}

// Keys of 8 bits, with factors and without, every head_dim that has them.
static void in_spans_of_eight_bits(void **state) {
  Fixture *f = *state;
  for (int i = 0; i < 5; i++)
    if (dims[i] != 96)
      fixture_pass(f, i % 2 ? SPAN "q_regs=0" : i ? SPAN : SPAN "warm=2",
                   arena_printf(f->a,
                                "b=2,hq=6,hkv=2,sq=%d,sk=133,d=%d,causal=1,chunks=5,dtype=%s,"
                                "dtype_kv=%s,descale=%d",
                                1 + i, dims[i], i % 3 ? "f16" : "bf16", i % 2 ? "e5m2" : "e4m3",
                                i < 3));
}

// Under 8-bit keys a row of bf16 queries goes to f16 by a power of two of its own.
static double steep(void *ctx, int64_t b, int64_t i, int64_t h, int64_t e) {
  uint64_t r = random_bits(7, (uint64_t)(((b * 100 + i) * 10 + h) * 1000 + e));
  return ldexp(64 + (double)(r % 64), *(int *)ctx - 6 - 2 * (int)i - (int)h - (int)(e % 11)) *
         (r & 256 ? 1 : -1);
}

static void queries_of_any_size(void **state) {
  Fixture *f = *state;
  static const int exponents[] = {110, 17, 0, -12};
  for (int i = 0; i < 4; i++) {
    Problem *p;
    AttnInputs in;
    Verdict v = {0};
    VerifyOpts opts = {.seed = 1, .threads = 2, .real = &in};
    const char *problem = arena_printf(
        f->a, "b=1,hq=6,hkv=2,sq=3,sk=75,d=64,dtype=bf16,dtype_kv=e4m3,chunks=3,scale=%a",
        ldexp(1, -exponents[i]));
    diag_reset(f->d);
    if (problem_parse(f->a, problem, &p, f->d) || inputs_make(p, p->dtype, FILL_NAN, &in, f->d))
      fail_msg("%s", diag_text(f->d));
    host_fill_with(&in.q, steep, &(int){exponents[i]});
    host_fill_with(&in.k, steep, &(int){-2});
    host_fill_with(&in.v, steep, &(int){1});
    Params given;
    const char *name = fixture_variant(f, i % 2 ? SPAN "q_regs=0" : SPAN, &given);
    if (verify(f->s, f->sim, name, &given, p, &opts, &v, f->a, f->d) != ST_OK)
      fail_msg("%s\n%s%s", problem, diag_text(f->d), verdict_text(f->a, &v));
    inputs_free(&in);
  }
}

static void in_spans_sanitized(void **state) {
  for (uint64_t schedule = 1; schedule <= 3; schedule++) {
    fixture_sanitized(*state, SPAN "warps=2 stages=3",
                      "b=2,hq=6,hkv=2,sq=2,sk=175,d=64,dtype=bf16,causal=1,chunks=7", schedule);
    fixture_sanitized(*state, SPAN "tree=1 tile_k=16 warps=2 helpers=2",
                      "b=1,hq=6,hkv=2,sq=1,sk=400,d=64,dtype=bf16,chunks=40", schedule);
    fixture_sanitized(*state, SPAN "warm=2 quick=1 warps=2 stages=3",
                      "b=2,hq=6,hkv=2,sq=2,sk=175,d=64,dtype=bf16,causal=1,chunks=7", schedule);
    fixture_sanitized(*state, SPAN "lanes=1 warps=2 stages=3 helpers=2",
                      "b=2,hq=6,hkv=2,sq=2,sk=175,d=64,dtype=bf16,causal=1,chunks=41", schedule);
  }
}

// Pieces that are the blocks of a cluster: more of them than tiles, fewer rows than blocks, more,
// one item and several for a cluster, tiles of rows that end early, sequences of different lengths.
static void in_clusters(void **state) {
  static const char many[] = "b=3,hq=40,hkv=2,sq=2,sk=150,d=64,dtype=f16,causal=1";
  static const GateCase cases[] = {
      {SPAN "cluster=2 warps=1 stages=2", many},
      {SPAN "cluster=4 warm=2 tile_q=32 warps=2", many},
      {SPAN "cluster=16 helpers=1", "b=1,hq=6,hkv=2,sq=1,sk=700,d=96,dtype=bf16"},
      {SPAN "cluster=16 warm=1 warps=2 helpers=2", "b=2,hq=6,hkv=2,sq=1,sk=40,d=128,dtype=bf16"},
      {SPAN "cluster=8 warm=1 tile_q=4", "b=1,hq=8,hkv=2,sq=3,sk=333,d=64,dtype=f16,wl=60"},
      {SPAN "cluster=4 sinks=1", "hq=8,hkv=2,sq=1,seqlens_k=150/0/37,page=16,d=64,dtype=f16"},
      {SPAN "cluster=4 warm=2",
       "b=2,hq=8,hkv=2,sq=1,sk=133,d=128,dtype=bf16,dtype_kv=e4m3,descale=1"},
      // columns of a row by 4 warps, by 2 with 3 columns a lane, by 1 in two passes, by 8; 2 rows
      // at once
      {SPAN "cluster=8 lanes=1", "b=1,hq=8,hkv=2,sq=3,sk=333,d=128,dtype=f16,causal=1"},
      {SPAN "cluster=4 lanes=1 helpers=8", many},
      {SPAN "cluster=16 lanes=1 helpers=4", "b=1,hq=6,hkv=2,sq=1,sk=700,d=192,dtype=bf16,sinks=1"},
      {SPAN "cluster=2 lanes=1 helpers=1", "b=2,hq=20,hkv=2,sq=1,sk=90,d=256,dtype=bf16"},
      {SPAN "cluster=4 lanes=1 helpers=8", "b=1,hq=8,hkv=2,sq=1,sk=133,d=256,dtype=f16"},
      {SPAN "cluster=2 lanes=1 helpers=1", "b=2,hq=8,hkv=2,sq=1,sk=133,d=96,dtype=f16"},
      // rows left in the rings: one item and several, 16 rows of 8 warps, 8-bit keys
      {SPAN "cluster=4 lend=1 warps=2", many},
      {SPAN "cluster=8 lend=1 lanes=1 warps=8 stages=3",
       "b=1,hq=20,hkv=2,sq=1,sk=900,d=128,dtype=bf16"},
      {SPAN "cluster=2 lend=1",
       "b=2,hq=8,hkv=2,sq=1,sk=133,d=128,dtype=f16,dtype_kv=e4m3,descale=1"},
      {SPAN "cluster=2", "b=2,hq=2,sq=1,sk=0,d=64,dtype=f16"},
      {SPAN "cluster=2", "b=2,hq=2,sq=0,sk=5,d=64,dtype=f16"},
  };
  PASS_ALL(*state, cases);
}

static void in_clusters_sanitized(void **state) {
  static const char *const ends[] = {"warm=0", "warm=2", "lanes=1", "lanes=1 lend=1"};
  for (uint64_t schedule = 1; schedule <= 3; schedule++)
    for (int i = 0; i < 4; i++)
      fixture_sanitized(*state,
                        arena_printf(((Fixture *)*state)->a,
                                     SPAN "cluster=4 warps=2 stages=3 %s", ends[i]),
                        "b=2,hq=20,hkv=2,sq=2,sk=175,d=64,dtype=bf16,causal=1", schedule);
}

// ---- decode_fma ---------------------------------------------------------------------------------
#define FMA "decode_fma "

// 8, 16 and 32 lanes to a row, tiles that a group does not fill or overfills.
static void in_fp32(void **state) {
  static const int fp32_dims[] = {32, 64, 96, 128, 192, 256};
  static const char many[] = "b=1,hq=6,hkv=2,sq=3,sk=200,d=64,causal=1,chunks=4";
  static const GateCase cases[] = {
      {FMA "tile_q=1", many},
      {FMA "tile_q=2 warps=1 stages=2", many},
      {FMA "unroll=1 stages=3", many},
      {FMA "tile_q=8 warps=2 unroll=1", many},
      // every lane of a group has a row of its own, every second, every fourth one; half a tile
      {FMA "tile_q=8 lanes=8", "b=1,hq=14,hkv=2,sq=1,sk=150,d=64,chunks=3"},
      {FMA "tile_q=8", "b=2,hq=16,hkv=2,sq=2,sk=150,d=128,causal=1,chunks=2"},
      {FMA "tile_q=8 lanes=32 unroll=4 stages=4",
       "b=1,hq=12,hkv=1,sq=1,sk=333,d=128,wl=99,softcap=9"},
      {FMA "fetch=256 warps=4 stages=4", many},
      {FMA, "b=2,hq=2,sq=1,sk=0,d=64"},
      {FMA "warps=1", "b=1,hq=2,sq=2,sk=1,d=128,chunks=4,causal=1"},
      {FMA, "b=1,hq=2,sq=1,sk=90,d=64,scale=-0.2,chunks=2"},
  };
  Fixture *f = *state;
  for (int i = 0; i < 6; i++)
    for (int causal = 0; causal < 2; causal++)
      fixture_pass(f, FMA,
                   arena_printf(f->a, "b=2,hq=6,hkv=2,sq=%d,sk=%d,d=%d,causal=%d,chunks=3",
                                1 + causal, 61 + 130 * causal, fp32_dims[i], causal));
  PASS_ALL(f, cases);
  fixture_sanitized(f, FMA "warps=2", "b=1,hq=6,hkv=2,sq=2,sk=175,d=64,causal=1,chunks=3", 2);
  fixture_sanitized(f, FMA "warps=2 tile_q=8", "b=1,hq=14,hkv=2,sq=1,sk=175,d=128,chunks=3", 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_head_dim),
      cmocka_unit_test(tiles_and_stages),
      cmocka_unit_test(lengths_near_the_edges),
      cmocka_unit_test(groups_chunks_and_scales),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(sanitized),
      cmocka_unit_test(rules_through_the_gates),
      cmocka_unit_test(chunks_fill_whole_rounds),
      cmocka_unit_test(in_spans),
      cmocka_unit_test(in_spans_of_eight_bits),
      cmocka_unit_test(queries_of_any_size),
      cmocka_unit_test(in_spans_sanitized),
      cmocka_unit_test(in_clusters),
      cmocka_unit_test(in_clusters_sanitized),
      cmocka_unit_test(in_fp32),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
