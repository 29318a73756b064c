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

// The shortest of several runs, in seconds: others may be using the machine.
static inline double bench_best(int times, void (*run)(void *), void *ctx) {
  double best = INFINITY;
  for (int i = 0; i < times; i++) {
    double t = bench_now();
    run(ctx);
    t = bench_now() - t;
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
  printf("%-22s %10s %9s %9s %9s %9s %11s\n", unit, "1 thread", "target", "native", "of native",
         "threads", "sanitized");
}

// One line: one host thread, all of them, and sanitized (always one thread).
static inline void bench_row(BenchRun *r, const BenchRow *row) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  enum { TIMES = 5 };
  device_sim_opts(r->dev, &(SimOpts){.threads = 1});
  double one = bench_best(TIMES, bench_go, r);
  device_sim_opts(r->dev, &(SimOpts){.threads = (int)cores});
  double all = bench_best(TIMES, bench_go, r);
  device_sim_opts(r->dev, &(SimOpts){.threads = 1, .sanitize = true});
  double strict = bench_best(TIMES, bench_go, r);
  double rate = row->work / one / row->scale;
  char target[32] = "-";
  if (row->target > 0)
    snprintf(target, sizeof target, "%.0f", row->target);
  printf("%-22s %10.4g %9s %9.4g %9.2f  x%.2f of %-2ld x%.2f cost\n", row->name, rate, target,
         row->native, rate / row->native, one / all, cores, strict / one);
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
