// What the interpreter's benchmarks share: one row for a kind of work, beside a native loop that
// does the same work in the same run.
#ifndef PTXSMITH_BENCH_KIT_H
#define PTXSMITH_BENCH_KIT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

static inline double bench_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void bench_check(Status st, Diag *d) {
  if (st == ST_OK)
    return;
  fputs(diag_text(d), stderr);
  exit(1);
}

// Functions that use AVX2 where the host has it.
#if defined(__x86_64__)
#define BENCH_NATIVE                                                                               \
  __attribute__((noinline, optimize("O3"), target_clones("avx2", "default")))
#else
#define BENCH_NATIVE __attribute__((noinline))
#endif

// Of this thread alone: what others use of the machine does not count.
static inline double bench_cpu(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The shortest of several runs on this thread, in seconds.
static inline double bench_best(int times, void (*run)(void *), void *ctx) {
  double best = INFINITY;
  for (int i = 0; i < times; i++) {
    double t = bench_cpu();
    run(ctx);
    t = bench_cpu() - t;
    best = t < best ? t : best;
  }
  return best;
}

typedef struct BenchRun {
  Device *dev;
  Diag *d;
  Status (*go)(void *ctx, Device *dev, Diag *d); // one run, with a sync
  void *ctx;
} BenchRun;

static inline void bench_go(void *p) {
  BenchRun *r = p;
  bench_check(r->go(r->ctx, r->dev, r->d), r->d);
}

// What a run counts: thread instructions or FLOPs.
static inline double bench_count(BenchRun *r, bool flops) {
  Counters c;
  device_sim_opts(r->dev, &(SimOpts){.threads = 1, .counters = true});
  device_counters(r->dev, &c, true);
  bench_go(r);
  device_counters(r->dev, &c, true);
  return (double)(flops ? c.flops : c.thread_insts);
}

typedef struct BenchRow {
  const char *name, *unit;
  double work, scale;   // of one run, in units / scale
  double target;        // of section "Speed": in scaled units a second, 0 for none
  double native;        // the same work, scaled units a second
} BenchRow;

static inline void bench_head(const char *unit) {
  double load[3] = {0};
  if (getloadavg(load, 3) < 0) load[0] = NAN;
  printf("load average %.1f on %ld cores; rates: thread time, shortest run; threads: wall time\n",
         load[0], sysconf(_SC_NPROCESSORS_ONLN));
  printf("%-22s %9s %7s %9s %9s %10s   %s\n", unit, "1 thread", "target", "native", "of native",
         "threads", "sanitized costs (at most 4)");
}

static inline int bench_order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

// One run with these options; seconds of this thread, and of the wall.
static inline double bench_once(BenchRun *r, SimOpts opts, double *wall) {
  device_sim_opts(r->dev, &opts);
  double t = bench_cpu(), w = bench_now();
  bench_go(r);
  *wall = bench_now() - w;
  return bench_cpu() - t;
}

// One line: one host thread, all of them, and sanitized (always one thread), one after the other in
// every round, so that a round's ratios are of the same moment; the median of the rounds is shown.
static inline void bench_row(BenchRun *r, const BenchRow *row) {
  enum { ROUNDS = 7 };
  int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
  double best = INFINITY, spread[ROUNDS], cost[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    double wall, wall_all, wall_strict;
    double one = bench_once(r, (SimOpts){.threads = 1}, &wall);
    double strict = bench_once(r, (SimOpts){.threads = 1, .sanitize = true}, &wall_strict);
    bench_once(r, (SimOpts){.threads = cores}, &wall_all);
    best = one < best ? one : best;
    spread[i] = wall / wall_all;
    cost[i] = strict / one;
  }
  qsort(spread, ROUNDS, sizeof *spread, bench_order);
  qsort(cost, ROUNDS, sizeof *cost, bench_order);
  double rate = row->work / best / row->scale;
  char target[32] = "-";
  if (row->target > 0)
    snprintf(target, sizeof target, "%.0f", row->target);
  printf("%-22s %9.4g %7s %9.4g %9.2f  x%.2f of %-2d  x%.2f (%.2f to %.2f)\n", row->name, rate,
         target, row->native, rate / row->native, spread[ROUNDS / 2], cores, cost[ROUNDS / 2],
         cost[0], cost[ROUNDS - 1]);
}

// A kernel on the arguments it takes.
typedef struct BenchKernel {
  Launch launch;
} BenchKernel;

static inline Status bench_launch(void *ctx, Device *dev, Diag *d) {
  BenchKernel *k = ctx;
  Status st = device_launch(dev, &k->launch, d);
  return st == ST_OK ? device_sync(dev, d) : st;
}

static inline Kernel *bench_load(Device *dev, Arena *a, const char *file, const char *entry,
                                 Diag *d) {
  Source *src;
  Kernel *k;
  bench_check(source_read(a, arena_printf(a, "%s/sim/%s", TESTS_DIR, file), &src, d), d);
  bench_check(device_load_ptx(dev, src, NULL, entry, &k, d), d);
  return k;
}

#endif
