// The fp64 oracle.  For query row i of head h:
//
//   s_j = scale * (q_i . k_j)        over the visible keys only: what is masked is never touched
//   s_j = cap tanh(s_j / cap),  then  s_j - slope |i + shift - j|      where the Problem has them
//   O_i = sum_j exp(s_j - m) v_j / l     m = max s_j,  l = sum_j exp(s_j - m),  LSE_i = m + ln l
//
// A sink is one more logit in m and l, without a value.
//
// and, on the same inputs, the plain formula in the kernel's dtypes: S in fp32, P rounded to the
// dtype, l and PV summed in fp32 (of e4m3: to 14 digits), O rounded once.  Its error is what gate 2
// measures against.
//
// A few rows say little about that error: one score that happens to be rounded well makes it small.
// So a small problem's plain formula is drawn several times, each time with other roundings that
// are as good: elements and keys are added in another order, and weights are relative to another
// maximum.
#include "reference_rules.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Queries of one task; its heads are all that share a key head.  Where rows are sampled a task has
// as many, from that many times the queries: a row's own work is little beside reading the keys,
// so a large problem's tasks have LONG_ROWS rows.
enum { TASK_ROWS = 16, LONG_ROWS = 64, LONG_TASKS = 64, DRAWN_ROWS = 1024 };
#define DRAWN_FLOPS 0x1p31

static Shape shape_of(const Problem *p, const AttnInputs *in, const ReferenceOpts *opts) {
  Shape n = {.batch = problem_int(p, "batch", 1),
             .heads_q = problem_int(p, "heads_q", 1),
             .seqlen_q = problem_int(p, "seqlen_q", 1),
             .seqlen_k = problem_int(p, "seqlen_k", 0),
             .softcap = (float)problem_float(p, "softcap", 0), // as a kernel gets it
             .dtype = in->q.t.dtype};
  n.dtype_o = opts->has_dtype_o ? opts->dtype_o : dtype_bytes(n.dtype) > 1 ? n.dtype : DT_F32;
  n.heads_kv = problem_int(p, "heads_kv", n.heads_q);
  n.dim = problem_int(p, "head_dim", in->q.t.shape[3]);
  n.group = n.heads_q / n.heads_kv;
  n.dim_v = in->v.t.shape[3];
  n.padded = ((n.dim > n.dim_v ? n.dim : n.dim_v) + REF_KEYS - 1) / REF_KEYS * REF_KEYS;
  n.scale = problem_float(p, "scale", 1 / sqrt((double)n.dim));
  return n;
}

// Scores of a row, and some more: rows a power of two apart would share few lines of a cache.
static int64_t score_room(const Shape *n) {
  return (n->seqlen_k + REF_KEYS - 1) / REF_KEYS * REF_KEYS + REF_KEYS;
}

// Widening by bits: f16's exponent and fraction land in f32's fields, 2^112 corrects the bias (and
// makes subnormals normal); bf16 is the upper half of an f32.
static void widen_row(Dtype t, const char *p, int64_t dim, double *to) {
  for (int64_t e = 0; e < dim; e++) {
    uint16_t h;
    memcpy(&h, p + 2 * e, 2);
    uint32_t bits = t == DT_BF16 ? (uint32_t)h << 16 : (uint32_t)(h & 0x7fff) << 13;
    float f;
    memcpy(&f, &bits, 4);
    if (t == DT_F16) f = (h & 0x7c00) == 0x7c00 ? (float)f16_to_double(h) : f * 0x1p112f;
    to[e] = t == DT_F16 && h >> 15 && f > 0 ? -f : f;
  }
}

// Row (b, s, h) of a [batch, seqlen, heads, dim] tensor as doubles.
static void load_row(const HostTensor *x, int64_t b, int64_t s, int64_t h, double *to) {
  int64_t at = b * x->t.stride[0] + s * x->t.stride[1] + h * x->t.stride[2], dim = x->t.shape[3];
  int bytes = dtype_bytes(x->t.dtype);
  const char *p = (const char *)x->host + at * bytes;
  if (x->t.dtype == DT_F16 || x->t.dtype == DT_BF16) {
    widen_row(x->t.dtype, p, dim, to);
  } else {
    for (int64_t e = 0; e < dim; e++) to[e] = dtype_load(x->t.dtype, p + bytes * e);
  }
}

static void load_keys(Worker *w, int64_t b, int64_t hkv, int64_t j0) {
  const Shape *n = &w->job->n;
  int64_t keys = n->seqlen_k - j0 < REF_KEYS ? n->seqlen_k - j0 : REF_KEYS;
  double *row = w->v; // free at this time
  for (int64_t j = 0; j < REF_KEYS; j++) {
    if (j < keys) load_row(&w->job->in->k, b, j0 + j, hkv, row);
    for (int64_t e = 0; e < n->dim; e++) {
      w->kt[e * REF_KEYS + j] = j < keys ? row[e] : 0;
      note_size(&w->k_max, w->kt[e * REF_KEYS + j]);
      w->kt32[e * REF_KEYS + j] = (float)w->kt[e * REF_KEYS + j];
    }
  }
}

static void load_value(Worker *w, int64_t b, int64_t hkv, int64_t j) {
  const Shape *n = &w->job->n;
  load_row(&w->job->in->v, b, j, hkv, w->v);
  for (int64_t e = n->dim_v; e < n->padded; e++) w->v[e] = 0;
  for (int64_t e = 0; e < n->padded; e++) w->v32[e] = (float)w->v[e];
  if (!w->draw)
    for (int64_t e = 0; e < n->dim_v; e++) note_size(&w->v_max, w->v[e]);
}

// An accumulator of 8-bit products keeps 14 digits of a sum of 32 (docs/numerics.md).
enum { CUT_TERMS = 32 };

static void cut_to_14_digits(float *x, int64_t n) {
  for (int64_t e = 0; e < n; e++) {
    uint32_t bits;
    memcpy(&bits, &x[e], 4);
    bits &= 0xfffffc00;
    if (isfinite(x[e])) memcpy(&x[e], &bits, 4);
  }
}

static void scores32(const Worker *w, const float *q, float *s) {
  int64_t dim = w->job->n.dim;
  if (w->job->n.dtype != DT_E4M3) {
    w->job->math->dot_f32(q, w->kt32, dim, s);
    return;
  }
  float some[REF_KEYS];
  memset(s, 0, sizeof some);
  for (int64_t e = 0; e < dim; e += CUT_TERMS) {
    int64_t terms = dim - e < CUT_TERMS ? dim - e : CUT_TERMS;
    w->job->math->dot_f32(q + e, w->kt32 + e * REF_KEYS, terms, some);
    for (int j = 0; j < REF_KEYS; j++) s[j] += some[j];
    cut_to_14_digits(s, REF_KEYS);
  }
}

// The scores of a later draw: elements in its order.
static void draw_scores(Worker *w, int64_t b, int64_t hkv, const Row *rows, int nrows) {
  const Shape *n = &w->job->n;
  Order order = order_of(w->draw, n->dim);
  int64_t ld = score_room(n);
  for (int r = 0; r < nrows; r++)
    for (int64_t x = 0; x < n->dim; x++)
      w->q32[r * n->padded + x] = (float)w->q[r * n->padded + order_at(&order, x)];
  for (int64_t j0 = 0; j0 < n->seqlen_k; j0 += REF_KEYS) {
    for (int64_t j = 0; j < REF_KEYS && j0 + j < n->seqlen_k; j++) {
      load_row(&w->job->in->k, b, j0 + j, hkv, w->v);
      for (int64_t x = 0; x < n->dim; x++)
        w->kt32[x * REF_KEYS + j] = (float)w->v[order_at(&order, x)];
    }
    for (int r = 0; r < nrows; r++)
      if (j0 < rows[r].visible && j0 + REF_KEYS > rows[r].first)
        scores32(w, w->q32 + r * n->padded, w->s32 + r * ld + j0);
  }
}

static void all_scores(Worker *w, int64_t b, int64_t hkv, const Row *rows, int nrows) {
  const Shape *n = &w->job->n;
  int64_t ld = score_room(n);
  for (int64_t j = 0; j < n->seqlen_k; j += REF_KEYS) {
    load_keys(w, b, hkv, j);
    for (int r = 0; r < nrows; r++) {
      if (j >= rows[r].visible || j + REF_KEYS <= rows[r].first) continue;
      w->job->math->dot_f64(w->q + r * n->padded, w->kt, n->dim, w->s + r * ld + j);
      scores32(w, w->q32 + r * n->padded, w->s32 + r * ld + j);
    }
  }
}

static void weigh_values(Worker *w, int64_t b, int64_t hkv, const Row *rows, int nrows) {
  const Shape *n = &w->job->n;
  int64_t ld = score_room(n), most = 0, least = n->seqlen_k;
  for (int r = 0; r < nrows; r++) least = rows[r].first < least ? rows[r].first : least;
  for (int r = 0; r < nrows; r++) most = rows[r].visible > most ? rows[r].visible : most;
  Order order = order_of(w->draw, most - least);
  for (int64_t x = 0; x < most - least; x++) {
    int64_t j = least + order_at(&order, x);
    load_value(w, b, hkv, j);
    for (int r = 0; r < nrows; r++) {
      if (j >= rows[r].visible || j < rows[r].first) continue;
      double p = w->draw ? 0 : w->s[r * ld + j];
      float p32 = w->s32[r * ld + j];
      if (p != 0) w->job->math->add_f64(w->o + r * n->padded, p, w->v, n->padded);
      if (p32 != 0) w->job->math->add_f32(w->o32 + r * n->padded, p32, w->v32, n->padded);
    }
    if (n->dtype == DT_E4M3 && (x + 1) % CUT_TERMS == 0)
      cut_to_14_digits(w->o32, (int64_t)nrows * n->padded);
  }
}

static void note_error(Worker *w, double err) {
  if (isnan(err)) return; // where the answer itself is NaN or infinite there is nothing to measure
  w->sum[w->draw] += err;
  w->count += !w->draw;
  if (err > w->max) w->max = err;
}

static double *row_of_o(const Worker *w, int64_t b, const Row *row) {
  const Shape *n = &w->job->n;
  return w->job->out->o + ((b * n->seqlen_q + row->query) * n->heads_q + row->head) * n->dim_v;
}

static double *row_of_lse(const Worker *w, int64_t b, const Row *row) {
  const Shape *n = &w->job->n;
  return w->job->out->lse + (b * n->heads_q + row->head) * n->seqlen_q + row->query;
}

static bool sees_none(const Row *row) { return row->m == -INFINITY && !isnan(row->l); }

static void store_row(Worker *w, int64_t b, const Row *row, const double *o) {
  bool none = sees_none(row); // no key seen: O = 0, LSE = -inf
  float of_v = factor_of(w, 2, b, row->head / w->job->n.group);
  double *to = row_of_o(w, b, row);
  for (int64_t e = 0; e < w->job->n.dim_v; e++) to[e] = none ? 0 : o[e] / row->l * of_v;
  *row_of_lse(w, b, row) = none ? -INFINITY : row->m + log(row->l);
}

static void measure_row(Worker *w, int64_t b, const Row *row, const float *o) {
  bool none = sees_none(row);
  float of_v = factor_of(w, 2, b, row->head / w->job->n.group);
  const double *want = row_of_o(w, b, row), lse = *row_of_lse(w, b, row);
  for (int64_t e = 0; e < w->job->n.dim_v; e++) {
    float plain = none ? 0 : o[e] / row->l32 * of_v;
    note_error(w, fabs(dtype_round(w->job->n.dtype_o, plain) - want[e]));
  }
  double err = none ? 0 : fabs((double)(row->m32 + logf(row->l32)) - lse);
  if (err > w->lse_max) w->lse_max = err;
}

static int choose_rows(const Job *job, int64_t b, int64_t hkv, int64_t q0, Row *rows) {
  const Shape *n = &job->n;
  int count = 0;
  int64_t end = problem_len_q(job->problem, b);
  if (end > q0 + job->span) end = q0 + job->span;
  for (int64_t g = 0; g < n->group; g++)
    for (int64_t i = q0; i < end; i++) {
      int64_t head = hkv * n->group + g;
      int64_t number = (b * n->heads_q + head) * n->seqlen_q + i;
      if (job->opts->every > 1 && number % job->opts->every) continue;
      KeyRange keys = visible_range(job->problem, b, i);
      rows[count++] =
          (Row){.head = head, .query = i, .first = keys.from, .visible = keys.to};
    }
  return count;
}

// The first draw makes the answer as well.
static Status run_draw(Worker *w, int64_t b, int64_t hkv, Row *rows, int nrows) {
  const Shape *n = &w->job->n;
  int64_t ld = score_room(n);
  memset(w->o32, 0, sizeof *w->o32 * (size_t)(nrows * n->padded));
  if (w->draw) draw_scores(w, b, hkv, rows, nrows);
  else all_scores(w, b, hkv, rows, nrows);
  for (int r = 0; r < nrows; r++) {
    Status st = make_weights(w, b, &rows[r], w->s + r * ld, w->s32 + r * ld);
    if (st != ST_OK) return st;
  }
  weigh_values(w, b, hkv, rows, nrows);
  for (int r = 0; r < nrows; r++) {
    if (!w->draw) store_row(w, b, &rows[r], w->o + r * n->padded);
    measure_row(w, b, &rows[r], w->o32 + r * n->padded);
  }
  return ST_OK;
}

static Status run_task(Worker *w, int64_t task) {
  const Shape *n = &w->job->n;
  int64_t block = task % w->job->blocks, bh = task / w->job->blocks;
  int64_t hkv = bh % n->heads_kv, b = bh / n->heads_kv;
  Row *rows = malloc(sizeof *rows * (size_t)((w->job->rows + 1) * n->group));
  if (!rows) return diag_fail(w->diag, ST_INPUT, "reference: out of host memory");
  int nrows = choose_rows(w->job, b, hkv, block * w->job->span, rows);
  memset(w->o, 0, sizeof *w->o * (size_t)(nrows * n->padded));
  for (int r = 0; r < nrows; r++) {
    load_row(&w->job->in->q, b, rows[r].query, rows[r].head, w->q + r * n->padded);
    for (int64_t e = 0; e < n->dim; e++) {
      w->q32[r * n->padded + e] = (float)w->q[r * n->padded + e];
      note_size(&w->q_max, w->q[r * n->padded + e]);
    }
  }
  Status st = ST_OK;
  for (int draw = 0; draw < w->job->draws && nrows && st == ST_OK; draw++) {
    w->draw = draw;
    st = run_draw(w, b, hkv, rows, nrows);
  }
  free(rows);
  return st;
}

// ---- threads and memory ------------------------------------------------------------------------
static bool worker_alloc(Worker *w) {
  const Shape *n = &w->job->n;
  size_t rows = (size_t)((w->job->rows + 1) * n->group), pad = (size_t)n->padded + 1;
  size_t keys = (size_t)score_room(n);
  w->kt = calloc(pad * REF_KEYS, sizeof *w->kt), w->kt32 = calloc(pad * REF_KEYS, sizeof *w->kt32);
  w->v = calloc(pad, sizeof *w->v), w->v32 = calloc(pad, sizeof *w->v32);
  w->s = calloc(rows * keys, sizeof *w->s), w->s32 = calloc(rows * keys, sizeof *w->s32);
  w->o = calloc(rows * pad, sizeof *w->o), w->o32 = calloc(rows * pad, sizeof *w->o32);
  w->q = calloc(rows * pad, sizeof *w->q), w->q32 = calloc(rows * pad, sizeof *w->q32);
  return w->kt && w->kt32 && w->v && w->v32 && w->s && w->s32 && w->o && w->o32 && w->q && w->q32;
}

static void worker_free(Worker *w) {
  void *all[] = {w->kt, w->kt32, w->v, w->v32, w->s, w->s32, w->o, w->o32, w->q, w->q32};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void *worker_run(void *arg) {
  Worker *w = arg;
  Status st =
      worker_alloc(w) ? ST_OK : diag_fail(w->diag, ST_INPUT, "reference: out of host memory");
  for (;;) {
    if (st != ST_OK) atomic_store(&w->job->status, (int)st);
    if (atomic_load(&w->job->status) != ST_OK) break;
    int64_t task = atomic_fetch_add(&w->job->next, 1);
    if (task >= w->job->tasks) break;
    st = run_task(w, task);
  }
  worker_free(w);
  return NULL;
}

// Threads to use: `asked`, or the cores there are.
static int reference_threads(int asked) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int n = asked > 0 ? asked : (int)cores;
  return n < 1 ? 1 : n > 256 ? 256 : n;
}

static Status run_job(Job *job, int threads, Diag *d) {
  if (threads > job->tasks) threads = job->tasks > 1 ? (int)job->tasks : 1;
  Worker *w = calloc((size_t)threads, sizeof *w);
  pthread_t *id = calloc((size_t)threads, sizeof *id);
  if (!w || !id) {
    free(w), free(id);
    return diag_fail(d, ST_INPUT, "reference: out of host memory");
  }
  int started = 0;
  for (int i = 0; i < threads; i++) w[i] = (Worker){.job = job, .diag = diag_new()};
  for (int i = 1; i < threads && !pthread_create(&id[i], NULL, worker_run, &w[i]); i++) started = i;
  worker_run(&w[0]);
  for (int i = 1; i <= started; i++) pthread_join(id[i], NULL);
  Reference *out = job->out;
  double sum[REF_DRAWS] = {0};
  int64_t count = 0;
  for (int i = 0; i < threads; i++) {
    for (int x = 0; x < job->draws; x++) sum[x] += w[i].sum[x];
    count += w[i].count;
    if (w[i].max > out->plain_max) out->plain_max = w[i].max;
    if (w[i].lse_max > out->plain_lse_max) out->plain_lse_max = w[i].lse_max;
    note_size(&out->score_max, w[i].score_max);
    note_size(&out->v_max, w[i].v_max);
    note_size(&out->score_max, fabs(job->n.scale) * w[i].q_max * w[i].k_max);
    if (w[i].diag->errors && !d->errors) diag_fail(d, ST_INPUT, "%s", diag_text(w[i].diag));
    diag_free(w[i].diag);
  }
  for (int x = 0; x < job->draws && count; x++) note_size(&out->plain_mean, sum[x] / (double)count);
  free(w), free(id);
  return (Status)atomic_load(&job->status);
}

static double *nan_array(int64_t n) {
  double *x = malloc(sizeof *x * (size_t)(n > 0 ? n : 1));
  for (int64_t i = 0; x && i < n; i++) x[i] = NAN;
  return x;
}

// As many draws as make DRAWN_ROWS rows, where the host can make them in a second.
int reference_draws(const Problem *p, const ReferenceOpts *opts) {
  int64_t rows = 0, batch = problem_int(p, "batch", 1);
  if (opts->draws) return opts->draws;
  for (int64_t b = 0; b < batch; b++) rows += problem_len_q(p, b) * problem_int(p, "heads_q", 1);
  if (opts->every > 1 || rows <= 0) return 1;
  double draws = ceil((double)DRAWN_ROWS / (double)rows);
  double can = floor(DRAWN_FLOPS / (problem_flops(p) + 1));
  draws = draws < can ? draws : can;
  return draws < 1 ? 1 : draws > REF_DRAWS ? REF_DRAWS : (int)draws;
}

static void cut_tasks(Job *job, int64_t rows) {
  const Shape *n = &job->n;
  job->rows = rows;
  job->span = rows * (job->opts->every > 1 ? job->opts->every : 1);
  job->blocks = (n->seqlen_q + job->span - 1) / job->span;
  job->tasks = n->batch * n->heads_kv * job->blocks;
}

Status reference_rows(const Problem *p, const AttnInputs *in, const ReferenceOpts *opts,
                      Reference *out, Diag *d) {
  Job job = {.n = shape_of(p, in, opts),
             .problem = p,
             .in = in,
             .opts = opts,
             .out = out,
             .math = reference_math()};
  const Shape *n = &job.n;
  int64_t rows = n->batch * n->seqlen_q * n->heads_q;
  *out = (Reference){.o = nan_array(rows * n->dim_v), .lse = nan_array(rows)};
  if (!out->o || !out->lse) {
    reference_free(out);
    return diag_fail(d, ST_INPUT, "reference: not enough host memory for %lld rows",
                     (long long)rows);
  }
  job.draws = out->draws = reference_draws(p, opts);
  cut_tasks(&job, TASK_ROWS);
  // A row by itself comes out the same in any company, but for what is cut where its task says.
  int64_t tasks = job.tasks;
  if (job.draws == 1 && n->dtype != DT_E4M3 && n->group < LONG_ROWS / TASK_ROWS)
    cut_tasks(&job, LONG_ROWS / n->group);
  if (job.tasks < LONG_TASKS && tasks != job.tasks) cut_tasks(&job, TASK_ROWS);
  Status st = run_job(&job, reference_threads(opts->threads), d);
  if (st != ST_OK) reference_free(out);
  return st;
}

Status reference_attention(const Problem *p, const AttnInputs *in, int threads, Reference *out,
                           Diag *d) {
  return reference_rows(p, in, &(ReferenceOpts){.threads = threads}, out, d);
}

void reference_free(Reference *r) {
  free(r->o);
  free(r->lse);
  *r = (Reference){0};
}
