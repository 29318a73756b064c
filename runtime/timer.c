// Timing on the device's own clock.
#include "timer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

// How long and how often.  The flush is FLUSH_HALVES / 2 times the L2: more than twice, so that an
// unlucky replacement policy leaves nothing either.
enum { WARM_UPS = 5, BUDGET_MS = 200, LEAST = 20, MOST = 2000, GRAPH_LAUNCHES = 20,
       FLUSH_HALVES = 5 };

char *timer_settings(Arena *a) {
  return arena_printf(a, "timer %d %d %d %d %d %d model %g %g %g", WARM_UPS, BUDGET_MS, LEAST, MOST,
                      GRAPH_LAUNCHES, FLUSH_HALVES, model_ceiling.read_gbs, model_ceiling.copy_gbs,
                      model_ceiling.fma_gflops);
}

// ---- statistics ---------------------------------------------------------------------------------

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The median lies between order statistics j and n+1-j (1-based) with probability
// 1 - 2 P(B <= j-1), B binomial(n, 1/2).  Returns the largest j with P(B <= j-1) <= 0.025, or 0.
static int interval_rank(int n) {
  double below = 0; // P(B <= j-1)
  for (int j = 1; 2 * j <= n; j++) {
    double log_choose = lgamma(n + 1.0) - lgamma((double)j) - lgamma(n - j + 2.0);
    below += exp(log_choose - n * log(2.0)); // + P(B = j-1)
    if (below > 0.025) return j - 1;
  }
  return n / 2;
}

void timing_of_samples(double *us, int n, Timing *out) {
  assert(n > 0);
  qsort(us, (size_t)n, sizeof *us, by_value);
  int j = interval_rank(n);
  if (j < 1) j = 1;
  out->samples = n;
  out->median_us = n % 2 ? us[n / 2] : 0.5 * (us[n / 2 - 1] + us[n / 2]);
  out->low_us = us[j - 1];
  out->high_us = us[n - j];
  out->min_us = us[0];
  out->max_us = us[n - 1];
}

const char *timing_method(const Timing *t) {
  if (t->modelled) return "modelled from counted work, not measured";
  if (t->graph)
    return t->cold ? "graph replay per launch, cold L2: a reading flush before each launch, its "
                     "own graph's time subtracted"
                   : "graph replay per launch, warm L2";
  return t->cold ? "eager launches, cold L2: a reading flush before each, outside the timed span"
                 : "eager launches, warm L2";
}

// ---- one run of timings -------------------------------------------------------------------------

typedef struct Run {
  Device *dev;
  const Operator *op, *flush; // flush NULL: hot
  double *us;
  Diag *d;
} Run;

static Status launch_once(const Run *r) {
  Status st = r->flush ? operator_launch(r->flush, r->dev, r->d) : ST_OK;
  return st ? st : operator_launch(r->op, r->dev, r->d);
}

// One launch at a time: the host waits for its events before it queues the next flush.  With more
// work queued behind, an H200 made every span 1.1 us longer (an empty kernel 4.8 us for 3.7), and
// spans of a program that waits, like PyTorch's, could not be compared with ours.
static Status eager_samples(const Run *r, int samples) {
  Status st = ST_OK;
  for (int i = 0; i < samples && !st; i++) {
    double ms = 0;
    if (r->flush) st = operator_launch(r->flush, r->dev, r->d);
    if (!st) st = device_record(r->dev, 0, r->d);
    if (!st) st = operator_launch(r->op, r->dev, r->d);
    if (!st) st = device_record(r->dev, 1, r->d);
    if (!st) st = device_elapsed(r->dev, 0, 1, &ms, r->d);
    r->us[i] = 1e3 * ms;
  }
  return st;
}

static Status make_graph(const Run *r, bool with_flush, bool with_op, Graph **out) {
  Status st = device_graph_begin(r->dev, r->d);
  if (st) return st;
  for (int i = 0; i < GRAPH_LAUNCHES && !st; i++) {
    if (with_flush) st = operator_launch(r->flush, r->dev, r->d);
    if (!st && with_op) st = operator_launch(r->op, r->dev, r->d);
  }
  Status ended =
      device_graph_end(r->dev, out, r->d); // always: a capture left open blocks the stream
  return st ? st : ended;
}

static Status replay(const Run *r, Graph *g, double *us) {
  double ms = 0;
  Status st = device_record(r->dev, 0, r->d);
  if (!st) st = device_graph_launch(r->dev, g, r->d);
  if (!st) st = device_record(r->dev, 1, r->d);
  if (!st) st = device_elapsed(r->dev, 0, 1, &ms, r->d);
  *us = 1e3 * ms;
  return st;
}

static Status graph_samples(const Run *r, int samples) {
  Graph *both = NULL, *flush = NULL;
  Status st = make_graph(r, r->flush != NULL, true, &both);
  if (!st && r->flush) st = make_graph(r, true, false, &flush);
  for (int i = -1; i < samples && !st; i++) { // the first pair warms up
    double a = 0, b = 0;
    st = replay(r, both, &a);
    if (!st && flush) st = replay(r, flush, &b);
    if (i >= 0) r->us[i] = (a - b) / GRAPH_LAUNCHES;
  }
  device_graph_free(r->dev, both);
  device_graph_free(r->dev, flush);
  return st;
}

// Warms up, and says how long one launch with its flush takes.
static Status warm_up(const Run *r, int n, double *us) {
  double ms = 0;
  Status st = launch_once(r); // loads code, touches pages
  if (!st) st = device_record(r->dev, 0, r->d);
  for (int i = 0; i < n && !st; i++) st = launch_once(r);
  if (!st) st = device_record(r->dev, 1, r->d);
  if (!st) st = device_elapsed(r->dev, 0, 1, &ms, r->d);
  *us = 1e3 * ms / n;
  return st;
}

static int samples_for(const TimeOpts *o, double launch_us) {
  if (o->samples > 0) return o->samples;
  double budget_us = 1e3 * (o->budget_ms > 0 ? o->budget_ms : BUDGET_MS);
  double one = launch_us * (o->graph ? (o->hot ? 1 : 2) * GRAPH_LAUNCHES : 1);
  double n = one > 0 ? budget_us / one : MOST;
  return n < LEAST ? LEAST : n > MOST ? MOST : (int)n;
}

Status time_operator(Session *s, Device *dev, const Operator *op, const TimeOpts *o, Timing *out,
                     Diag *d) {
  static const TimeOpts defaults = {0};
  if (!o) o = &defaults;
  memset(out, 0, sizeof *out);
  if (device_info(dev)->is_sim) return model_operator(dev, op, out, d);
  Run run = {.dev = dev, .op = op, .d = d};
  double launch_us = 0;
  Status st = o->hot ? ST_OK : bench_flush(s, dev, &run.flush, d);
  if (!st) st = warm_up(&run, o->warmup > 0 ? o->warmup : WARM_UPS, &launch_us);
  if (st) return st;
  int samples = samples_for(o, launch_us);
  run.us = malloc(sizeof *run.us * (size_t)samples);
  if (!run.us) return diag_fail(d, ST_DEVICE, "out of host memory");
  st = o->graph ? graph_samples(&run, samples) : eager_samples(&run, samples);
  if (!st) st = device_sync(dev, d);
  if (!st) timing_of_samples(run.us, samples, out);
  out->cold = !o->hot;
  out->graph = o->graph;
  free(run.us);
  return st;
}

// ---- the Bench ----------------------------------------------------------------------------------

static void bench_free(Device *dev) {
  Bench *b = dev->bench;
  if (b) operator_free(b->flush); // buffers go with the device
  if (b) free(b->ceiling);
  free(b);
  dev->bench = NULL;
}

Bench *bench_of(Device *dev) {
  if (!dev->bench) {
    dev->bench = calloc(1, sizeof(Bench));
    dev->bench_free = bench_free;
  }
  return dev->bench;
}

static Status make_flush(Session *s, Device *dev, Bench *b, Diag *d) {
  const uint64_t mib = 1u << 20;
  const uint64_t bytes = (device_info(dev)->l2_bytes * FLUSH_HALVES / 2 + mib) / mib * mib;
  uint32_t grid = 2 * (uint32_t)device_info(dev)->sm_count;
  Status st = ST_OK;
  if (!b->flush_src) st = device_alloc(dev, bytes, "the L2 flush", &b->flush_src, d);
  if (!st && !b->flush_sums) st = device_alloc(dev, 4 * grid, "the L2 flush", &b->flush_sums, d);
  if (!st) st = device_fill32(dev, b->flush_src, 0, bytes, d);
  // hint=nc: the lines must be allowed to stay in the L2.
  if (!st)
    st = ceiling_read_make(s, dev, "unroll=4 block=1024 hint=nc walk=stride", b->flush_src,
                           (int64_t)(bytes / 4), b->flush_sums, grid, &b->flush, d);
  return st;
}

Status bench_flush(Session *s, Device *dev, const Operator **out, Diag *d) {
  Bench *b = bench_of(dev);
  if (!b) return diag_fail(d, ST_DEVICE, "out of host memory");
  Status st = b->flush ? ST_OK : make_flush(s, dev, b, d);
  *out = b->flush;
  return st;
}
