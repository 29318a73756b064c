// Throughput of the lane functions by family and host instruction set, in million thread
// instructions a second on one core, and the time find() takes for an instruction.
#include <time.h>

#include "lanes_util.h"

static const char *const families[] = {
    "fma.rn.f32 %r1,%r2,%r3,%r4;", "fma.rn.ftz.f32 %r1,%r2,%r3,%r4;", "add.f32 %r1,%r2,%r3;",
    "max.f32 %r1,%r2,%r3;", "fma.rz.f32 %r1,%r2,%r3,%r4;", "div.rn.f32 %r1,%r2,%r3;",
    "ex2.approx.ftz.f32 %r1,%r2;", "lg2.approx.f32 %r1,%r2;", "rcp.approx.f32 %r1,%r2;",
    "fma.rn.f64 %d1,%d2,%d3,%d4;", "fma.rn.f16x2 %r1,%r2,%r3,%r4;",
    "fma.rn.bf16x2 %r1,%r2,%r3,%r4;", "add.s32 %r1,%r2,%r3;", "mad.lo.s32 %r1,%r2,%r3,%r4;",
    "mad.wide.s32 %d1,%r2,%r3,%d4;", "add.s64 %d1,%d2,%d3;", "shl.b32 %r1,%r2,%r3;",
    "lop3.b32 %r1,%r2,%r3,%r4,0x96;", "prmt.b32 %r1,%r2,%r3,%r4;", "bfe.u32 %r1,%r2,%r3,%r4;",
    "setp.lt.s32 %p1,%r2,%r3;", "setp.gt.f32 %p1,%r2,%r3;", "selp.b32 %r1,%r2,%r3,%p4;",
    "cvt.f32.f16 %r1,%h2;", "cvt.f32.bf16 %r1,%h2;", "cvt.rn.f16x2.f32 %r1,%r2,%r3;",
    "cvt.rn.bf16x2.f32 %r1,%r2,%r3;", "cvt.rn.f32.s32 %r1,%r2;", "cvt.rzi.s32.f32 %r1,%r2;",
    "cvt.rn.satfinite.e4m3x2.f32 %h1,%r2,%r3;", "cvt.rn.f16x2.e4m3x2 %r1,%h2;",
};
enum { NFAMILIES = sizeof families / sizeof *families, BATCH = 2000 };

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Best of several batches, in million lanes a second.
static double rate(const LaneOp *op, Operand *d, const Operand src[4]) {
  double best = 1e30, end = seconds() + 0.02;
  do {
    double t0 = seconds();
    for (int i = 0; i < BATCH; i++) lanes_call(op, d, src, op->imm);
    double t = seconds() - t0;
    if (t < best) best = t;
  } while (seconds() < end);
  return 32.0 * BATCH / best / 1e6;
}

int main(void) {
  Arena *a = arena_new();
  Operand d, src[4];
  for (int k = 0; k < 4; k++)
    for (int i = 0; i < 32; i++) src[k].u[i] = 0x3F8000003F800000u + (uint64_t)(i * 977 + k);
  printf("%-42s", "million thread instructions / s");
  for (int s = 0; s < NLANE_SETS; s++)
    if (lane_isa(lane_sets[s])) printf("%10s", lane_sets[s]);
  printf("   find, ns\n");
  for (int f = 0; f < NFAMILIES; f++) {
    const PtxInst *in = lanes_parse(a, arena_printf(a, "%s\n", families[f]), NULL);
    if (!in) return 1;
    printf("%-42s", families[f]);
    double find_ns = 0;
    for (int s = 0; s < NLANE_SETS; s++) {
      const LaneIsa *isa = lane_isa(lane_sets[s]);
      LaneOp op;
      if (!isa) continue;
      double t0 = seconds();
      for (int i = 0; i < 100; i++)
        if (!isa->find(in, &op)) return 1;
      find_ns = (seconds() - t0) * 1e7;
      printf("%10.0f", rate(&op, &d, src));
    }
    printf("%11.0f\n", find_ns);
  }
  arena_free(a);
  return 0;
}
