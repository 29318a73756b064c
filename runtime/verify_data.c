#include "verify_data.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parallel.h"

// 0 batch, 1 sequence, 2 head.  Gaps are whole 16-byte vectors, so that every vec may run.
const Layout layout_dense = {{0, 1, 2}, 0};
const Layout layout_q = {{0, 1, 2}, 16};
const Layout layout_k = {{0, 2, 1}, 32};
const Layout layout_v = {{1, 0, 2}, 48};
const Layout layout_o = {{2, 0, 1}, 64};

enum { SHORT_LOOP = 1 << 16 }; // elements for which no thread is started

static void fill_elements(Dtype t, void *to, uint64_t count, double x) {
  uint64_t bytes = (uint64_t)dtype_bytes(t), done = 1;
  if (!count) return;
  dtype_store(t, to, x);
  for (; done < count; done *= 2) { // what is there, once more
    uint64_t more = done < count - done ? done : count - done;
    memcpy((char *)to + done * bytes, to, more * bytes);
  }
}

static double fill_value(Fill fill) {
  return fill == FILL_NAN ? NAN : fill == FILL_INF ? INFINITY : 0;
}

static void host_tensor_fill(HostTensor *h, Fill fill) {
  fill_elements(h->t.dtype, h->host, h->bytes / (uint64_t)dtype_bytes(h->t.dtype),
                fill_value(fill));
}

Status host_tensor_make(HostTensor *h, Dtype t, int rank, const int64_t shape[], const Layout *l,
                        Fill fill, Diag *d) {
  *h = (HostTensor){.t = {.dtype = t, .rank = rank}};
  assert(rank >= 1 && rank <= 4);
  memcpy(h->t.shape, shape, sizeof *shape * (size_t)rank);
  h->t.stride[rank - 1] = 1;
  int64_t step = shape[rank - 1] + l->gap_bytes / dtype_bytes(t);
  for (int i = 2; i >= 0; i--) {
    int dim = l->order[i];
    if (dim >= rank - 1) continue;
    h->t.stride[dim] = step;
    step *= shape[dim] > 1 ? shape[dim] : 1;
  }
  h->bytes = tensor_span_bytes(&h->t);
  h->host = malloc(h->bytes ? h->bytes : 1);
  if (!h->host)
    return diag_fail(d, ST_INPUT, "not enough host memory for a tensor of %llu bytes",
                     (unsigned long long)h->bytes);
  host_tensor_fill(h, fill);
  return ST_OK;
}

void host_tensor_free(HostTensor *h) {
  free(h->host);
  *h = (HostTensor){0};
}

typedef struct Filling {
  HostTensor *h;
  ValueFn f;
  void *ctx;
} Filling;

static int64_t last_dim(const HostTensor *h) { return h->t.rank == 4 ? h->t.shape[3] : 1; }

static void fill_rows(void *arg, int chunk, int64_t from, int64_t to) {
  (void)chunk;
  const Filling *x = arg;
  const int64_t *n = x->h->t.shape, last = last_dim(x->h);
  for (int64_t row = from; row < to; row++)
    for (int64_t k = 0; k < n[2]; k++)
      for (int64_t e = 0; e < last; e++) {
        int64_t i = row / n[1], j = row % n[1];
        host_set(x->h, i, j, k, e, x->f(x->ctx, i, j, k, e));
      }
}

void host_fill_with(HostTensor *h, ValueFn f, void *ctx) {
  const int64_t *n = h->t.shape;
  int64_t row = n[2] * last_dim(h);
  parallel_ranges(n[0] * n[1], SHORT_LOOP / (row + 1), fill_rows,
                  &(Filling){.h = h, .f = f, .ctx = ctx});
}

// splitmix64's finaliser (Steele, Lea, Flood 2014) of a counter.
uint64_t random_bits(uint64_t seed, uint64_t n) {
  uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

typedef struct Stream {
  uint64_t seed;
  int64_t shape[4];
  double scale;
} Stream;

// Four uniform 16-bit numbers: variance 4/12, hence the factor sqrt(3).  Exact but for one product.
static double next_random(void *ctx, int64_t i, int64_t j, int64_t k, int64_t e) {
  const Stream *s = ctx;
  int64_t n = ((i * s->shape[1] + j) * s->shape[2] + k) * s->shape[3] + e;
  uint64_t r = random_bits(s->seed, (uint64_t)n);
  int64_t sum = (int64_t)((r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) + (r >> 48));
  return s->scale * 1.7320508075688772 * ((double)sum + 2 - 131072) / 65536;
}

void host_fill_random(HostTensor *h, uint64_t seed, double scale) {
  const int64_t *n = h->t.shape;
  Stream s = {.seed = seed, .shape = {n[0], n[1], n[2], last_dim(h)}, .scale = scale};
  host_fill_with(h, next_random, &s);
}

static int by_value(const void *x, const void *y) {
  int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
  return (a > b) - (a < b);
}

Status sorted_fill(const Tensor *t, uint64_t seed, char *host, Diag *d) {
  int64_t n = t->shape[t->rank - 1], rows = n ? tensor_elements(t) / n : 0;
  int64_t *row = malloc(sizeof *row * (size_t)(n + 1));
  if (!row) return diag_fail(d, ST_INPUT, "not enough host memory for %lld numbers", (long long)n);
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t i = 0; i < n; i++)
      row[i] = (int64_t)(random_bits(seed, (uint64_t)(r * n + i)) % (uint64_t)n);
    qsort(row, (size_t)n, sizeof *row, by_value);
    for (int64_t i = 0; i < n; i++)
      dtype_store(t->dtype, host + (r * n + i) * dtype_bytes(t->dtype), (double)row[i]);
  }
  free(row);
  return ST_OK;
}

// ---- inputs of a problem -----------------------------------------------------------------------
enum { TAIL_ROWS = 5 };

// A sequence with memory for more rows than it has; at most twice as many and one, so that many
// sequences with few keys stay small.
static Status make_with_tail(HostTensor *h, Dtype t, const int64_t shape[4], const Layout *l,
                             Fill fill, Diag *d) {
  int64_t longer[4] = {shape[0], shape[1] + (shape[1] < TAIL_ROWS ? shape[1] + 1 : TAIL_ROWS),
                       shape[2], shape[3]};
  Status st = host_tensor_make(h, t, 4, longer, l, fill, d);
  h->t.shape[1] = shape[1];
  return st;
}

// Slopes 2^-(1 + 8 h / heads_q) as models have them, other ones in other batches; sinks from -2
// to 2.
static Status make_rules(const Problem *p, int64_t b, int64_t hq, AttnInputs *out, Diag *d) {
  Status st = ST_OK;
  if (problem_int(p, "alibi", 0))
    st = host_tensor_make(&out->slopes, DT_F32, 2, (int64_t[]){b, hq}, &layout_q, FILL_NAN, d);
  if (st == ST_OK && problem_int(p, "sinks", 0))
    st = host_tensor_make(&out->sinks, DT_F32, 1, (int64_t[]){hq}, &layout_dense, FILL_NAN, d);
  for (int64_t h = 0; st == ST_OK && h < hq; h++) {
    if (out->sinks.host) ((float *)out->sinks.host)[h] = (float)(h * 7 % 9 - 4) / 2;
    for (int64_t i = 0; out->slopes.host && i < b; i++)
      ((float *)out->slopes.host)[i * out->slopes.t.stride[0] + h] =
          (float)(exp2(-1 - 8 * (double)h / (double)hq) / (double)(1 + i));
  }
  return st;
}

// Factors that differ between q, k and v, heads and batches; short numbers, so that V times its
// factor still has few digits.
// hq: 0 where q has no factor.
static Status make_descale(const Problem *p, int64_t b, int64_t hq, int64_t hkv, AttnInputs *out,
                           Diag *d) {
  static const float values[3][4] = {
      {0.5f, 1.25f, 2, 1}, {1, 0.75f, 0.5f, 1.5f}, {2, 0.25f, 1.5f, -1}};
  Status st = ST_OK;
  for (int t = 0; t < 3 && st == ST_OK && problem_int(p, "descale", 0); t++) {
    int64_t shape[2] = {b, t ? hkv : hq};
    if (!shape[1]) continue;
    HostTensor *x = &out->descale[t];
    st = host_tensor_make(x, DT_F32, 2, shape, &layout_q, FILL_NAN, d);
    for (int64_t i = 0; st == ST_OK && i < b; i++)
      for (int64_t h = 0; h < shape[1]; h++)
        ((float *)x->host)[i * x->t.stride[0] + h] = values[t][(i + h) % 4];
  }
  return st;
}

Status inputs_make(const Problem *p, Dtype t, Fill fill, AttnInputs *out, Diag *d) {
  *out = (AttnInputs){.fill = fill};
  int64_t b = problem_int(p, "batch", 1), hq = problem_int(p, "heads_q", 1);
  int64_t dim = problem_int(p, "head_dim", 1);
  int64_t q[4] = {b, problem_int(p, "seqlen_q", 1), hq, dim};
  int64_t k[4] = {b, problem_int(p, "seqlen_k", 0), problem_int(p, "heads_kv", hq), dim};
  int64_t v[4] = {b, k[1], k[2], problem_head_dim_v(p)};
  Dtype kv = problem_kv_dtype(p, t);
  Status st = host_tensor_make(&out->q, t, 4, q, &layout_q, fill, d);
  if (st == ST_OK) st = make_with_tail(&out->k, kv, k, &layout_k, fill, d);
  if (st == ST_OK && problem_int(p, "shared_kv", 0)) { // one memory; the last to write
    out->v = out->k;
    out->v.t.shape[3] = v[3];
  } else if (st == ST_OK) {
    st = make_with_tail(&out->v, kv, v, &layout_v, fill, d);
  }
  if (st == ST_OK) st = make_rules(p, b, hq, out, d);
  if (st == ST_OK) st = make_descale(p, b, dtype_bytes(t) > 1 && kv != t ? 0 : hq, k[2], out, d);
  if (st != ST_OK) inputs_free(out);
  return st;
}

void inputs_end(const Problem *p, AttnInputs *in) {
  HostTensor *t[] = {&in->q, &in->k, &in->v};
  for (int x = 0; x < 3 && problem_varlen(p); x++) {
    const int64_t *n = t[x]->t.shape;
    for (int64_t b = 0; b < n[0]; b++)
      for (int64_t i = x ? problem_len_k(p, b) : problem_len_q(p, b); i < n[1]; i++)
        for (int64_t h = 0; h < n[2]; h++)
          for (int64_t e = 0; e < n[3]; e++) host_set(t[x], b, i, h, e, fill_value(in->fill));
  }
}

void inputs_free(AttnInputs *in) {
  if (in->v.host == in->k.host) in->v = (HostTensor){0}; // shared_kv
  host_tensor_free(&in->q);
  host_tensor_free(&in->k);
  host_tensor_free(&in->v);
  host_tensor_free(&in->slopes);
  host_tensor_free(&in->sinks);
  for (int t = 0; t < 3; t++) host_tensor_free(&in->descale[t]);
}

// Heads differ in scale, so that flat and peaked rows both occur: q by 1, 4, 1/4 in turn.
static double head_scale(int64_t head) { return head % 3 == 0 ? 1 : head % 3 == 1 ? 4 : 0.25; }

static double scaled(void *ctx, int64_t i, int64_t j, int64_t k, int64_t e) {
  return host_get(ctx, i, j, k, e) * head_scale(k);
}

void inputs_fill_random(AttnInputs *in, uint64_t seed) {
  host_fill_random(&in->q, seed * 3 + 1, 1);
  host_fill_random(&in->k, seed * 3 + 2, 1);
  host_fill_random(&in->v, seed * 3 + 3, 1);
  host_fill_with(&in->q, scaled, &in->q);
}
