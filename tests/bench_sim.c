// Rates of the interpreter: an FMA-bound and a load-bound kernel, beside a native loop over arrays
// of 32 lanes in the same run, on one host thread and on more; and what the sanitizer costs.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The native loop: what the interpreter's fma Op does, without the interpreter.
#if defined(__x86_64__)
__attribute__((noinline, optimize("O3"), target("avx2,fma"))) static void fma32_avx2(
    float *d, const float *a, const float *b, const float *c) {
  for (int i = 0; i < 32; i++)
    d[i] = __builtin_fmaf(a[i], b[i], c[i]);
}
#endif

__attribute__((noinline)) static void fma32(float *d, const float *a, const float *b,
                                            const float *c) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma")) {
    fma32_avx2(d, a, b, c);
    return;
  }
#endif
  for (int i = 0; i < 32; i++)
    d[i] = a[i] * b[i] + c[i];
}

static double native_rate(void) {
  static float regs[8][32] __attribute__((aligned(64)));
  long n = 20 * 1000 * 1000;
  double t = now();
  for (long i = 0; i < n; i += 4)
    for (int k = 0; k < 4; k++)
      fma32(regs[k], regs[k], regs[6], regs[7]);
  t = now() - t;
  return 32.0 * (double)n / t;
}

static void check(Status st, Diag *d) {
  if (st != ST_OK) {
    fputs(diag_text(d), stderr);
    exit(1);
  }
}

static Kernel *load(Device *dev, Arena *a, const char *file, Diag *d) {
  Source *src;
  Kernel *k;
  check(source_read(a, file, &src, d), d);
  check(device_load_ptx(dev, src, NULL, NULL, &k, d), d);
  return k;
}

static void run(Device *dev, Kernel *k, const char *name, uint32_t grid, const void *args,
                uint32_t bytes, double native, Diag *d) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  double one = 0;
  for (int threads = 1; threads <= cores; threads *= 2) {
    device_sim_opts(dev, &(SimOpts){.threads = threads, .counters = true});
    Counters c;
    device_counters(dev, &c, true);
    Launch l = {.kernel = k, .grid = {grid, 1, 1}, .block = {128, 1, 1}, .args = args,
                .arg_bytes = bytes};
    double t = now();
    check(device_launch(dev, &l, d), d);
    t = now() - t;
    device_counters(dev, &c, true);
    double rate = (double)c.thread_insts / t;
    one = threads == 1 ? rate : one;
    printf("%-6s %2d thread%s %8.0f M thread-instructions/s   %.2f of native   x%.2f\n", name,
           threads, threads > 1 ? "s" : " ", rate / 1e6, rate / native, rate / one);
  }
}

// The sanitizer's price: the same launch on one thread with and without it, the best of three.
static void price(Device *dev, Kernel *k, const char *name, uint32_t grid, const void *args,
                  uint32_t bytes, Diag *d) {
  Launch l = {.kernel = k, .grid = {grid, 1, 1}, .block = {128, 1, 1}, .args = args,
              .arg_bytes = bytes};
  double best[2] = {INFINITY, INFINITY};
  for (int i = 0; i < 6; i++) {
    device_sim_opts(dev, &(SimOpts){.threads = 1, .sanitize = i & 1});
    double t = now();
    check(device_launch(dev, &l, d), d);
    t = now() - t;
    best[i & 1] = t < best[i & 1] ? t : best[i & 1];
  }
  printf("%-6s sanitized: %.2f times a plain run\n", name, best[1] / best[0]);
}

int main(void) {
  Diag *d = diag_new();
  Arena *a = arena_new();
  Device *dev;
  check(device_open("sim", &dev, d), d);
  double native = native_rate();
  printf("native        %8.0f M lane-operations/s (fma over 32-lane arrays)\n", native / 1e6);
  DevPtr out, in;
  uint32_t n = 1 << 16; // 256 KiB: the host's caches hold it
  check(device_alloc(dev, 512 * 128 * 4, "out", &out, d), d);
  check(device_alloc(dev, n * 4, "in", &in, d), d);
  check(device_fill32(dev, in, 0x3f800000, n * 4, d), d);
  struct { DevPtr out; uint32_t n; } fma = {out, 4000};
  Kernel *fma_kernel = load(dev, a, TESTS_DIR "/sim/fma.ptx", d);
  run(dev, fma_kernel, "fma", 64, &fma, 12, native, d);
  struct { DevPtr out, in; uint32_t n; } copy = {out, in, n};
  Kernel *load_kernel = load(dev, a, TESTS_DIR "/sim/load.ptx", d);
  run(dev, load_kernel, "load", 512, &copy, 20, native, d);
  price(dev, fma_kernel, "fma", 64, &fma, 12, d);
  price(dev, load_kernel, "load", 512, &copy, 20, d);
  device_close(dev);
  arena_free(a);
  diag_free(d);
  return 0;
}
