// Ceilings: the read and copy rooflines, tuned over a few variants, each verified.
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- what is tried -----------------------------------------------------------------------------

typedef enum GridRule {
  GRID_TILES = 0, // one tile a block: the hardware deals blocks out as SMs get free
  GRID_1 = 1,     // GRID_n: n times as many blocks as fit at once, each with many tiles
  GRID_2 = 2,
  GRID_4 = 4,
} GridRule;

typedef struct Candidate {
  const char *params;
  GridRule grid;
} Candidate;

// One SM needs 29 KB under way (ceiling_read.ptx.in): 2,048 threads x unroll x 16 bytes are 32 KB
// and more from unroll = 1 on, so large unrolls pay only by fewer instructions.  Small blocks and
// one tile a block even out the SMs at the end, which is what small sizes are about.  Rows of a
// warp keep unroll x 512 contiguous bytes with one warp: the fastest on an H200 from 256 MB up
// (4,698 GB/s at 4 GB), first with a block for each tile, persistent blocks of 512 threads 0.3 %
// behind.
static const Candidate read_candidates[] = {
    {"unroll=4 block=256 hint=no_allocate walk=stride rows=warp", GRID_TILES},
    {"unroll=4 block=256 hint=plain walk=stride rows=warp", GRID_TILES},
    {"unroll=4 block=512 hint=no_allocate walk=stride rows=warp", GRID_1},
    {"unroll=2 block=256 hint=no_allocate walk=stride rows=warp", GRID_TILES},
    {"unroll=1 block=256 hint=no_allocate walk=stride rows=warp", GRID_TILES},
    {"unroll=2 block=512 hint=no_allocate walk=stride rows=warp", GRID_TILES},
    {"unroll=4 block=1024 hint=no_allocate walk=stride rows=warp", GRID_1},
    {"unroll=4 block=256 hint=nc walk=stride rows=warp", GRID_1},
    {"unroll=8 block=256 hint=no_allocate walk=stride rows=warp", GRID_TILES},
    {"unroll=4 block=512 hint=no_allocate walk=stride rows=block", GRID_1},
    {"unroll=8 block=256 hint=no_allocate walk=stride rows=block", GRID_1},
    {"unroll=8 block=512 hint=no_allocate walk=stride rows=block", GRID_1},
    {"unroll=2 block=1024 hint=no_allocate walk=stride rows=block", GRID_1},
    {"unroll=4 block=256 hint=no_allocate walk=stride rows=block", GRID_2},
    {"unroll=4 block=512 hint=no_allocate walk=chunk rows=block", GRID_1},
    {"unroll=8 block=256 hint=no_allocate walk=chunk rows=block", GRID_4},
    {"unroll=4 block=128 hint=no_allocate walk=stride rows=block", GRID_TILES},
    {"unroll=8 block=128 hint=no_allocate walk=stride rows=block", GRID_TILES},
    {"unroll=4 block=256 hint=no_allocate walk=stride rows=block", GRID_TILES},
    {"unroll=8 block=256 hint=no_allocate walk=stride rows=block", GRID_TILES},
    {"unroll=8 block=256 hint=nc walk=stride rows=block", GRID_TILES},
    {"unroll=8 block=256 hint=prefetch walk=stride rows=block", GRID_TILES},
    {"unroll=16 block=256 hint=no_allocate walk=stride rows=block", GRID_TILES},
    {"unroll=16 block=128 hint=no_allocate walk=stride rows=block", GRID_1},
    {"unroll=4 block=1024 hint=prefetch walk=stride rows=block", GRID_1},
};
static const Candidate copy_candidates[] = {
    {"unroll=4 block=512 hint=no_allocate", GRID_1},
    {"unroll=4 block=256 hint=no_allocate", GRID_TILES},
    {"unroll=8 block=128 hint=plain", GRID_TILES},
    {"unroll=2 block=1024 hint=plain", GRID_1},
};
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

// ---- one measurement in progress ---------------------------------------------------------------

enum { PATTERN_WORDS = 4 << 20 };

typedef struct Measure {
  Session *s;
  Device *dev;
  Diag *d;
  Arena *arena;
  int64_t words;
  uint32_t *pattern; // PATTERN_WORDS words; src repeats them
  DevPtr src, dst, sums;
  uint32_t max_blocks; // elements of sums
  uint32_t want;       // sum of all words of src
} Measure;

Status ceiling_params(Arena *a, const char *text, Params *out, Diag *d) {
  char *save = NULL;
  for (char *w = strtok_r(arena_strdup(a, text), " ", &save); w; w = strtok_r(NULL, " ", &save)) {
    Status st = params_parse(a, out, w, d);
    if (st) return st;
  }
  return ST_OK;
}

static int64_t param_of(const Params *p, const char *name) {
  const char *v = params_get(p, name);
  return v ? strtoll(v, NULL, 10) : 1;
}

static Status bind1(Operator *op, const char *name, Dtype type, int64_t n, DevPtr p, Diag *d) {
  Tensor t = {.dtype = type, .rank = 1, .shape = {n}, .stride = {1}, .data = p};
  return operator_bind(op, name, &t, d);
}

// An Operator of one ceiling template with named integer values, loaded; its values and grid are
// not planned yet.
static Status make(Session *s, Device *dev, const char *name, const Params *params,
                   const Problem *p, Operator **out, Diag *d) {
  Status st = operator_make(s, name, params, p, NULL, out, d);
  if (st) return st;
  if ((st = operator_load(*out, dev, d))) {
    operator_free(*out);
    *out = NULL;
  }
  return st;
}

// The interpreter has no SMs that must be kept busy.
static int sms_to_fill(const DeviceInfo *info) { return info->is_sim ? 1 : info->sm_count; }

static uint32_t grid_of(const Operator *op, Device *dev, GridRule rule, int64_t tiles,
                        uint32_t most) {
  int fit = kernel_info(op->step[0].kernel)->blocks_per_sm;
  int64_t grid = (int64_t)rule * sms_to_fill(device_info(dev)) * (fit > 0 ? fit : 1);
  if (rule == GRID_TILES || grid > tiles) grid = tiles;
  if (grid > most) grid = most;
  return grid > 0 ? (uint32_t)grid : 1;
}

static Status plan_grid(Operator *op, Device *dev, uint32_t grid, Diag *d) {
  problem_set_int(op->problem, "blocks", grid);
  return operator_plan(op, dev, &(PlanOpts){.grid = grid}, d);
}

Status ceiling_read_make(Session *s, Device *dev, const char *params, DevPtr src, int64_t words,
                         DevPtr sums, uint32_t grid, Operator **out, Diag *d) {
  Arena *a = arena_new();
  Params p = {0};
  Problem problem = {.arena = a, .name = ""};
  problem_set_int(&problem, "words", words);
  problem_set_int(&problem, "blocks", grid);
  *out = NULL;
  Status st = ceiling_params(a, params, &p, d);
  if (!st) st = make(s, dev, "ceiling_read", &p, &problem, out, d);
  if (!st) st = plan_grid(*out, dev, grid, d);
  if (!st) st = bind1(*out, "src", DT_I32, words, src, d);
  if (!st) st = bind1(*out, "sums", DT_I32, grid, sums, d);
  if (st && *out) {
    operator_free(*out);
    *out = NULL;
  }
  arena_free(a);
  return st;
}

// ---- data and checks ---------------------------------------------------------------------------

// A word that depends on all bits of its index (the finaliser of MurmurHash3), so that a piece left
// out or read twice changes the sum.
static uint32_t word_at(uint32_t i) {
  i ^= i >> 16;
  i *= 0x85ebca6b;
  i ^= i >> 13;
  i *= 0xc2b2ae35;
  return i ^ i >> 16;
}

static Status fill_source(Measure *m) {
  m->pattern = malloc(sizeof *m->pattern * PATTERN_WORDS);
  if (!m->pattern) return diag_fail(m->d, ST_DEVICE, "out of host memory");
  uint32_t sum = 0, rest_sum = 0;
  int64_t rest = m->words % PATTERN_WORDS;
  for (uint32_t i = 0; i < PATTERN_WORDS; i++) {
    m->pattern[i] = word_at(i);
    if (i < rest) rest_sum += m->pattern[i];
    sum += m->pattern[i];
  }
  m->want = (uint32_t)(m->words / PATTERN_WORDS) * sum + rest_sum;
  int64_t have = m->words < PATTERN_WORDS ? m->words : PATTERN_WORDS;
  Status st = device_write(m->dev, m->src, m->pattern, 4 * (uint64_t)have, m->d);
  while (!st && have < m->words) { // double it; the period stays PATTERN_WORDS
    int64_t n = have < m->words - have ? have : m->words - have;
    st = device_copy(m->dev, m->src + 4 * (uint64_t)have, m->src, 4 * (uint64_t)n, m->d);
    have += n;
  }
  return st;
}

// The blocks' sums of the last ceiling_read must add up to `want`.
static Status check_sums(Measure *m, uint32_t blocks, const char *what) {
  uint32_t *sums = malloc(4 * (size_t)blocks), total = 0;
  if (!sums) return diag_fail(m->d, ST_DEVICE, "out of host memory");
  Status st = device_sync(m->dev, m->d);
  if (!st) st = device_read(m->dev, sums, m->sums, 4 * (uint64_t)blocks, m->d);
  for (uint32_t i = 0; i < blocks && !st; i++) total += sums[i];
  free(sums);
  if (!st && total != m->want)
    st = diag_fail(m->d, ST_FAILED, "%s: the words add up to 0x%08x, not 0x%08x", what, total,
                   m->want);
  return st;
}

// `n` words of dst from `at` on are those of the pattern.
static Status check_window(Measure *m, int64_t at, int64_t n) {
  uint32_t *got = malloc(4 * (size_t)n);
  if (!got) return diag_fail(m->d, ST_DEVICE, "out of host memory");
  Status st = device_read(m->dev, got, m->dst + 4 * (uint64_t)at, 4 * (uint64_t)n, m->d);
  for (int64_t i = 0; i < n && !st; i++) {
    uint32_t want = m->pattern[(at + i) % PATTERN_WORDS];
    if (got[i] != want)
      st = diag_fail(m->d, ST_FAILED, "ceiling_copy: word %lld is 0x%08x, not 0x%08x",
                     (long long)(at + i), got[i], want);
  }
  free(got);
  return st;
}

// Both ends word by word; all of it by its sum.
static Status check_copy(Measure *m) {
  Operator *op;
  uint32_t grid = m->max_blocks < 256 ? m->max_blocks : 256;
  int64_t ends = m->words < (1 << 20) ? m->words : 1 << 20;
  Status st = check_window(m, 0, ends);
  if (!st) st = check_window(m, m->words - ends, ends);
  if (st) return st;
  st = ceiling_read_make(m->s, m->dev, "", m->dst, m->words, m->sums, grid, &op, m->d);
  if (st) return st;
  st = operator_launch(op, m->dev, m->d);
  if (!st) st = check_sums(m, grid, "ceiling_copy");
  operator_free(op);
  return st;
}

// ---- tuning ------------------------------------------------------------------------------------

enum { FINALISTS = 4 };
typedef struct Candidates { // the fastest so far, fastest first; kept loaded
  struct Finalist {
    double us;
    Operator *op;
    char variant[96];
  } v[FINALISTS];
  int n;
} Candidates;

static void keep(Candidates *c, Operator *op, double us, const char *params) {
  int at = c->n;
  while (at > 0 && us < c->v[at - 1].us) at--;
  if (c->n == FINALISTS) {
    if (at == FINALISTS) {
      operator_free(op);
      return;
    }
    operator_free(c->v[--c->n].op);
  }
  memmove(&c->v[at + 1], &c->v[at], sizeof c->v[0] * (size_t)(c->n - at));
  c->n++;
  c->v[at] = (struct Finalist){.us = us, .op = op};
  snprintf(c->v[at].variant, sizeof c->v[at].variant, "%s grid=%u", params, op->step[0].grid[0]);
}

static void candidates_free(Candidates *c) {
  for (int i = 0; i < c->n; i++) operator_free(c->v[i].op);
}

// What the finalists reach when timed longer, as single launches and as a graph.
typedef struct Fastest {
  double us, eager_us, graph_us; // us: the less of the two, since a ceiling is what nothing passes
  const char *variant;           // of us
} Fastest;

static Status final_times(Measure *m, const Candidates *c, Fastest *out) {
  *out = (Fastest){.us = c->v[0].us, .eager_us = c->v[0].us, .graph_us = c->v[0].us,
                   .variant = c->v[0].variant};
  if (device_info(m->dev)->is_sim) return ST_OK;
  *out = (Fastest){.us = INFINITY, .eager_us = INFINITY, .graph_us = INFINITY};
  for (int i = 0; i < 2 * c->n; i++) {
    Timing t;
    TimeOpts o = {.graph = i % 2, .budget_ms = 60};
    Status st = time_operator(m->s, m->dev, c->v[i / 2].op, &o, &t, m->d);
    if (st) return st;
    double *best = o.graph ? &out->graph_us : &out->eager_us;
    *best = fmin(*best, t.median_us);
    if (t.median_us < out->us) {
      out->us = t.median_us;
      out->variant = c->v[i / 2].variant;
    }
  }
  return ST_OK;
}

static Status quick_time(Measure *m, const Operator *op, double *us) {
  Timing t;
  Status st = time_operator(m->s, m->dev, op, &(TimeOpts){.warmup = 2, .samples = 9}, &t, m->d);
  *us = t.median_us;
  return st;
}

static Status make_memory(Measure *m, const char *name, const Candidate *c, Operator **out) {
  Params params = {0};
  Problem problem = {.arena = m->arena, .name = ""};
  problem_set_int(&problem, "words", m->words);
  problem_set_int(&problem, "blocks", 1); // until the grid is known
  Status st = ceiling_params(m->arena, c->params, &params, m->d);
  if (!st) st = make(m->s, m->dev, name, &params, &problem, out, m->d);
  if (st) return st;
  int64_t tile = param_of(&params, "unroll") * param_of(&params, "block") * 4;
  uint32_t grid =
      grid_of(*out, m->dev, c->grid, (m->words + tile - 1) / tile, m->max_blocks);
  return plan_grid(*out, m->dev, grid, m->d);
}

static Status try_read(Measure *m, const Candidate *c, Candidates *best) {
  Operator *op = NULL;
  double us;
  Status st = make_memory(m, "ceiling_read", c, &op);
  if (!st) st = bind1(op, "src", DT_I32, m->words, m->src, m->d);
  if (!st) st = bind1(op, "sums", DT_I32, op->step[0].grid[0], m->sums, m->d);
  if (!st) st = device_fill32(m->dev, m->sums, 0xdeadbeef, 4 * (uint64_t)m->max_blocks, m->d);
  if (!st) st = quick_time(m, op, &us);
  if (!st) st = check_sums(m, op->step[0].grid[0], c->params);
  if (st)
    operator_free(op);
  else
    keep(best, op, us, c->params);
  return st;
}

static Status try_copy(Measure *m, const Candidate *c, Candidates *best) {
  Operator *op = NULL;
  double us;
  Status st = make_memory(m, "ceiling_copy", c, &op);
  if (!st) st = bind1(op, "src", DT_I32, m->words, m->src, m->d);
  if (!st) st = bind1(op, "dst", DT_I32, m->words, m->dst, m->d);
  if (!st) st = device_fill32(m->dev, m->dst, 0xdeadbeef, 4 * (uint64_t)m->words, m->d);
  if (!st) st = quick_time(m, op, &us);
  if (!st) st = check_copy(m);
  if (st)
    operator_free(op);
  else
    keep(best, op, us, c->params);
  return st;
}

// ---- measuring ---------------------------------------------------------------------------------

static Status allocate(Measure *m) {
  uint64_t bytes = 4 * (uint64_t)m->words;
  int64_t tiles = m->words / (128 * 4) + 1;
  m->max_blocks = (uint32_t)(tiles < (1 << 22) ? tiles : 1 << 22);
  Status st = device_alloc(m->dev, bytes, "the ceilings' source", &m->src, m->d);
  if (!st) st = device_alloc(m->dev, bytes, "the ceilings' copy", &m->dst, m->d);
  if (!st) st = device_alloc(m->dev, 4 * (uint64_t)m->max_blocks, "the ceilings' sums", &m->sums,
                               m->d);
  return st;
}

static Status measure_memory(Measure *m, Ceiling *out) {
  Candidates read = {0}, copy = {0};
  Fastest r = {0}, w = {0};
  double bytes = 4.0 * (double)m->words;
  bool sim = device_info(m->dev)->is_sim; // one variant of each: run and checked, not timed
  Status st = ST_OK;
  for (int i = 0; i < (sim ? 1 : COUNT(read_candidates)) && !st; i++)
    st = try_read(m, &read_candidates[i], &read);
  for (int i = 0; i < (sim ? 1 : COUNT(copy_candidates)) && !st; i++)
    st = try_copy(m, &copy_candidates[i], &copy);
  if (!st) st = final_times(m, &read, &r);
  if (!st) st = final_times(m, &copy, &w);
  if (!st) {
    out->read_gbs = bytes / r.us / 1e3;
    out->read_eager_us = r.eager_us;
    out->read_graph_us = r.graph_us;
    out->copy_gbs = 2 * bytes / w.us / 1e3;
    snprintf(out->read_variant, sizeof out->read_variant, "%s", r.variant);
  }
  candidates_free(&read);
  candidates_free(&copy);
  return st;
}

static Status measure(Measure *m, Ceiling *out) {
  Status st = allocate(m);
  if (!st) st = fill_source(m);
  if (!st) st = measure_memory(m, out);
  if (!st && out->fma_gflops == 0) { // does not depend on the size
    Pipe fma = {0};
    st = ceiling_products(m->s, m->dev, "ceiling_fma", NULL, &fma, m->d);
    out->fma_gflops = fma.gflops;
  }
  device_free(m->dev, m->src);
  device_free(m->dev, m->dst);
  device_free(m->dev, m->sums);
  free(m->pattern);
  return st;
}

static uint64_t size_for(Device *dev, uint64_t bytes) {
  const uint64_t least = 1u << 20;
  uint64_t most = device_info(dev)->is_sim ? least : device_info(dev)->memory_free / 3;
  if (bytes > most) bytes = most;
  return (bytes < least ? least : bytes) / 16 * 16;
}

static Status remember(Bench *b, const Ceiling *c, Diag *d) {
  if (b->nceilings == b->ceiling_cap) {
    int cap = b->ceiling_cap ? 2 * b->ceiling_cap : 16;
    Ceiling *grown = realloc(b->ceiling, sizeof *grown * (size_t)cap);
    if (!grown) return diag_fail(d, ST_DEVICE, "out of host memory");
    b->ceiling = grown;
    b->ceiling_cap = cap;
  }
  b->ceiling[b->nceilings++] = *c;
  return ST_OK;
}

Status ceiling_measure(Session *s, Device *dev, uint64_t bytes, Ceiling *out, Diag *d) {
  Bench *b = bench_of(dev);
  if (!b) return diag_fail(d, ST_DEVICE, "out of host memory");
  bytes = size_for(dev, bytes);
  for (int i = 0; i < b->nceilings; i++)
    if (b->ceiling[i].bytes == bytes) return *out = b->ceiling[i], ST_OK;
  *out = (Ceiling){.bytes = bytes, .fma_gflops = b->nceilings ? b->ceiling[0].fma_gflops : 0};
  Measure m = {.s = s, .dev = dev, .d = d, .arena = arena_new(), .words = (int64_t)(bytes / 4)};
  Status st = measure(&m, out);
  arena_free(m.arena);
  if (st) return st;
  if (device_info(dev)->is_sim) { // what was run is verified; the rates are the modelled device's
    *out = model_ceiling;
    out->bytes = bytes;
  }
  return remember(b, out, d);
}
