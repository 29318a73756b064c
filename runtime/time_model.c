// A modelled time for sim: what the counted work would take on an H200 if nothing but the slowest
// of its pipes mattered.  It ranks variants by work; it knows nothing of latency, and it is never
// shown as a measurement.
#include "bench.h"
#include "counters.h"

#include <math.h>

// The modelled device: an H200 at its highest clock, rates as measured (docs/measurements.md).
enum { SMS = 132, WARP = 32, FMA_LANES = 128, XU_LANES = 16, LSU_LANES = 32, ISSUE = 4 };
static const double clock_hz = 1.98e9;
static const double l1_bytes_per_clock = 128; // of one SM
static const double sm_hbm_gbs = 68;          // one SM alone: about twice its share of the whole
static const double launch_us = 1.0;          // in a graph

const Ceiling model_ceiling = {
    .read_gbs = 4491,
    .copy_gbs = 4283,
    .fma_gflops = SMS * FMA_LANES * 2 * 1.98,
    .modelled = true,
    .read_variant = "modelled",
};

// Bytes that have to move at least once: every tensor of the step, whole.
static Status tensor_bytes(const Operator *op, const Step *step, double *out, Diag *d) {
  *out = 0;
  for (int i = 0; i < step->variant->nargs; i++) {
    const ArgDecl *arg = &step->variant->args[i];
    if (arg->role == ARG_VALUE) continue;
    int64_t shape[TENSOR_MAX_RANK];
    Status st = arg_shape(arg, op->problem, shape, d);
    if (st) return st;
    double n = dtype_bytes(arg->dtype);
    for (int k = 0; k < arg->rank; k++) n *= (double)shape[k];
    *out += n;
  }
  return ST_OK;
}

// Share of the SMs that are busy on average when blocks go round in waves, one an SM.
static double busy_share(double blocks) {
  return blocks > 0 ? blocks / (SMS * ceil(blocks / SMS)) : 1;
}

// Clocks of one SM that the kind's operations take at their peak.
static double flop_clocks(const Counters *c, FlopKind kind) {
  return (double)c->flops_by_kind[kind] / (roof_h200.gflops[kind] * 1e9 / (SMS * clock_hz));
}

static FlopKind longest_flops(const Counters *c) {
  FlopKind longest = FLOP_F32;
  for (int i = 0; i < FLOP_KIND_COUNT; i++)
    if (flop_clocks(c, (FlopKind)i) > flop_clocks(c, longest)) longest = (FlopKind)i;
  return longest;
}

static double step_seconds(const Counters *c, double blocks, double least_bytes) {
  double sectors = (double)(c->global_read_sectors + c->global_write_sectors) * 32;
  double sms = SMS * busy_share(blocks), used = blocks < SMS ? blocks : SMS;
  double hbm = fmin(model_ceiling.read_gbs, used * sm_hbm_gbs) * 1e9;
  const double clocks[] = {
      (double)c->warp_insts / (ISSUE * sms),
      flop_clocks(c, longest_flops(c)) / sms,
      (double)c->xu_ops / (XU_LANES * sms),
      (double)c->by_pipe[PTX_PIPE_LSU] / (LSU_LANES * sms),
      sectors / (l1_bytes_per_clock * sms),
  };
  double seconds = fmin(sectors, least_bytes) / hbm;
  for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
    seconds = fmax(seconds, clocks[i] / clock_hz);
  return seconds;
}

static Status run_step(Device *dev, const Operator *op, const Step *step, double *us, Counters *all,
                       Diag *d) {
  const LaunchRule *rule = &step->variant->launch;
  Launch l = {.kernel = step->kernel, .smem = rule->smem_bytes, .args = step->args,
              .arg_bytes = step->variant->arg_bytes};
  for (int i = 0; i < 3; i++) {
    l.grid[i] = step->grid[i];
    l.block[i] = rule->block[i] ? rule->block[i] : 1;
    l.cluster[i] = rule->cluster[i] ? rule->cluster[i] : 1;
  }
  Counters c;
  double least = 0;
  device_counters(dev, &c, true);
  Status st = tensor_bytes(op, step, &least, d);
  if (!st) st = device_launch(dev, &l, d);
  if (!st) st = device_sync(dev, d);
  if (st) return st;
  device_counters(dev, &c, true);
  if (!c.warp_insts)
    return diag_fail(d, ST_DEVICE, "%s: no work was counted, so no time can be modelled",
                     step->variant->id);
  for (int i = 0; i < FLOP_KIND_COUNT; i++) all->flops_by_kind[i] += c.flops_by_kind[i];
  *us += launch_us + 1e6 * step_seconds(&c, (double)step->work, least);
  return ST_OK;
}

Status model_operator(Device *dev, const Operator *op, Timing *out, Diag *d) {
  double us = 0;
  Counters all = {0};
  Status st = ST_OK;
  for (int i = 0; i < op->nsteps && !st; i++)
    if (op->step[i].work) st = run_step(dev, op, &op->step[i], &us, &all, d);
  *out = (Timing){.samples = 1, .median_us = us, .low_us = us, .high_us = us, .min_us = us,
                  .max_us = us, .cold = true, .modelled = true,
                  .flop = longest_flops(&all)};
  return st;
}
