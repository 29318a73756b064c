#include "verify_run.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify_hook.h"
#include "verify_layout.h"

// ---- guarded buffers ---------------------------------------------------------------------------
// On the device and in `image`: `guard` bytes of poison, the span, as many or a few more.
typedef struct Buffer {
  const char *name;
  DevPtr base;
  uint64_t span, guard, bytes;
  char *image; // as written before the launch
  char *after; // as read back
} Buffer;

enum { B_O = NINPUTS, B_LSE, B_WORK, NBUFFERS }; // the inputs come first

static uint64_t guarded(uint64_t span) { return (span + 2 * GUARD_BYTES + 255) / 256 * 256; }
static DevPtr buffer_data(const Buffer *b) { return b->base + b->guard; }

static Status buffer_make(Buffer *b, const DeviceRun *run, const char *name, uint64_t span,
                          const void *contents, Diag *d) {
  *b = (Buffer){.name = name, .span = span, .guard = run->exact ? 0 : GUARD_BYTES};
  b->bytes = run->exact ? span : guarded(span);
  b->image = malloc(b->bytes + 1), b->after = malloc(b->bytes + 1);
  if (!b->image || !b->after)
    return diag_fail(d, ST_INPUT, "not enough host memory for %llu bytes of %s",
                     (unsigned long long)b->bytes, name);
  poison_fill(b->image, b->bytes);
  if (contents && span) memcpy(b->image + b->guard, contents, span);
  Status st = device_alloc(run->dev, b->bytes, name, &b->base, d);
  return st == ST_OK ? device_write(run->dev, b->base, b->image, b->bytes, d) : st;
}

static void buffer_free(Buffer *b, Device *dev) {
  if (b->base) device_free(dev, b->base);
  free(b->image);
  free(b->after);
  *b = (Buffer){0};
}

// The first byte of [from, to) that is not as it was, or `to`.
static uint64_t changed(const Buffer *b, uint64_t from, uint64_t to) {
  if (!memcmp(b->image + from, b->after + from, to - from)) return to;
  while (b->image[from] == b->after[from]) from++;
  return from;
}

static void check_guards(const Buffer *b, bool constant, Outputs *out) {
  uint64_t end = b->guard + b->span, bytes = b->bytes, at;
  if ((at = changed(b, 0, b->guard)) < b->guard)
    outputs_damage(out, "guard zone overwritten before", b->name, b->guard - at);
  if ((at = changed(b, end, bytes)) < bytes)
    outputs_damage(out, "guard zone overwritten after", b->name, at - end);
  if (constant && (at = changed(b, b->guard, end)) < end)
    outputs_damage(out, "input overwritten:", b->name, at - b->guard);
}

static void check_workspace(const Operator *op, const Buffer *work, Outputs *out) {
  const char *p = work->after + work->guard;
  for (int s = 0; s < op->nslots; s++) {
    const WorkSlot *slot = &op->slot[s];
    uint64_t step = (uint64_t)dtype_bytes(slot->arg->dtype);
    for (uint64_t at = slot->offset; at < slot->offset + slot->bytes; at += step) {
      if (slot->arg->zero) {
        for (uint64_t i = 0; i < step; i++)
          if (p[at + i]) outputs_damage(out, "not zero again:", slot->arg->name, at - slot->offset);
      } else if (!slot->arg->partial && is_poison(slot->arg->dtype, p + at)) {
        outputs_damage(out, "element not written:", slot->arg->name, at - slot->offset);
      }
    }
  }
}

// ---- a run on a device -------------------------------------------------------------------------
static const char *name_of(int buffer) {
  return buffer < NINPUTS ? input_names[buffer] : buffer == B_O ? "o" : "lse";
}

static const HostTensor *tensor_of(const KernelInputs *in, const Outputs *out, int buffer) {
  return buffer < NINPUTS ? &in->t[buffer] : buffer == B_O ? &out->o : &out->lse;
}

static Status make_buffers(const DeviceRun *run, const KernelInputs *in, const Outputs *out,
                           Buffer b[NBUFFERS], Diag *d) {
  Status st = ST_OK;
  for (int i = 0; i < B_WORK && st == ST_OK; i++) {
    const HostTensor *t = tensor_of(in, out, i);
    st = buffer_make(&b[i], run, name_of(i), t->bytes, t->host, d);
  }
  if (st != ST_OK) return st;
  Buffer *work = &b[B_WORK];
  const Operator *op = run->op;
  st = buffer_make(work, run, "workspace", op->workspace_bytes, NULL, d);
  if (st != ST_OK || !op->workspace_zero_bytes) return st;
  memset(work->image + work->guard, 0, op->workspace_zero_bytes);
  return device_write(run->dev, work->base, work->image, work->bytes, d);
}

static Status bind_all(const DeviceRun *run, const KernelInputs *in, const Outputs *out,
                       const Buffer b[NBUFFERS], Diag *d) {
  Status st = ST_OK;
  for (int i = 0; i < B_WORK && st == ST_OK; i++) {
    const HostTensor *t = tensor_of(in, out, i);
    const ArgDecl *arg = operator_arg(run->op, name_of(i));
    if (!t->host && arg && arg->optional) { // a factor that is 1
      st = operator_bind(run->op, name_of(i), NULL, d);
      continue;
    }
    if (!t->host || (!arg && i > IN_DESCALE_V)) continue; // of rules the problem lacks
    if (!arg)
      return diag_fail(d, ST_INPUT, "%s takes no tensor %s", run->op->step[0].variant->id,
                       name_of(i));
    Tensor bound = layout_bound(arg, t, buffer_data(&b[i]));
    st = operator_bind(run->op, name_of(i), &bound, d);
  }
  return st == ST_OK ? operator_bind_workspace(run->op, buffer_data(&b[B_WORK]), b[B_WORK].span, d)
                     : st;
}

static Status read_back(const DeviceRun *run, Buffer b[NBUFFERS], Outputs *out, Diag *d) {
  for (int i = 0; i < NBUFFERS; i++) {
    Status st = device_read(run->dev, b[i].after, b[i].base, b[i].bytes, d);
    if (st != ST_OK) return st;
    check_guards(&b[i], i < NINPUTS, out);
  }
  memcpy(out->o.host, b[B_O].after + b[B_O].guard, out->o.bytes);
  if (out->lse.host) memcpy(out->lse.host, b[B_LSE].after + b[B_LSE].guard, out->lse.bytes);
  Status st = outputs_check(out, d);
  bool launched = false;
  for (int i = 0; i < run->op->nsteps; i++) launched |= run->op->step[i].work > 0;
  if (launched) check_workspace(run->op, &b[B_WORK], out);
  return st == ST_OK ? outputs_spread(run->op, out, d) : st;
}

static Status run_on_device(void *ctx, const Problem *p, const AttnInputs *in, uint32_t grid,
                            Outputs *out, Diag *d) {
  DeviceRun *run = ctx;
  *out = (Outputs){0};
  PlanOpts opts = run->plan;
  if (grid) opts.grid = grid;
  if (problem_int(p, "chunks", 0) > 0) opts.chunks = problem_int(p, "chunks", 0);
  Buffer b[NBUFFERS] = {0};
  KernelInputs laid = {0};
  Extras extras = {0};
  Status st = operator_replan(run->op, p, run->dev, &opts, d);
  if (st == ST_OK) st = check_memory(run->dev, device_run_bytes(run->op), d);
  if (st == ST_OK) st = kernel_inputs(run->op, in, run->seed, &laid, d);
  if (st == ST_OK) st = kernel_outputs(run->op, out, d);
  if (st == ST_OK) st = make_buffers(run, &laid, out, b, d);
  if (st == ST_OK) st = extras_bind(run->op, run->dev, run->seed, &extras, d);
  if (st == ST_OK) st = bind_all(run, &laid, out, b, d);
  if (st == ST_OK) st = operator_launch(run->op, run->dev, d);
  if (st == ST_OK) st = device_sync(run->dev, d);
  if (st == ST_OK) st = read_back(run, b, out, d);
  if (st == ST_OK) st = extras_check(&extras, run->dev, out, d);
  for (int i = 0; i < NBUFFERS; i++) buffer_free(&b[i], run->dev);
  extras_free(&extras, run->dev);
  kernel_inputs_free(&laid);
  if (st != ST_OK) outputs_free(out);
  return st;
}

uint32_t runner_blocks(const Runner *r, uint32_t clusters) {
  return clusters * (r->cluster > 1 ? r->cluster : 1);
}

Status runner_of_operator(DeviceRun *run, Runner *out, Diag *d) {
  const char *const needed[] = {"q", "k", "v", "o"};
  bool shared = problem_int(run->op->problem, "shared_kv", 0); // V is a part of K
  for (int i = 0; i < 4; i++)
    if (!operator_arg(run->op, needed[i]) && !(shared && i == 2))
      return diag_fail(d, ST_INPUT, "%s takes no tensor %s: it is not attention",
                       run->op->step[0].variant->id, needed[i]);
  const ArgDecl *lse = operator_arg(run->op, "lse");
  *out = (Runner){.run = run_on_device,
                  .ctx = run,
                  .in_dtype = operator_arg(run->op, "q")->dtype,
                  .o_dtype = operator_arg(run->op, "o")->dtype,
                  .lse_dtype = lse ? lse->dtype : DT_F32,
                  .max_chunks = operator_arg(run->op, "chunks") ? 256 : 0,
                  .cluster = run->op->step[0].variant->launch.cluster[0]};
  return ST_OK;
}

// ---- memory ------------------------------------------------------------------------------------
uint64_t device_run_bytes(const Operator *op) {
  uint64_t sum = guarded(op->workspace_bytes);
  const char *const names[] = {"q", "k", "v", "o", "lse"};
  Diag *quiet = diag_new();
  for (int i = 0; i < 5; i++) {
    const ArgDecl *arg = operator_arg(op, names[i]);
    Tensor t = {0};
    if (!arg || arg_shape(arg, op->problem, t.shape, quiet) != ST_OK) continue;
    t.rank = arg->rank;
    t.dtype = arg->dtype;
    tensor_dense(&t);
    // Gaps of at most 64 bytes a row, and the rows that no query sees.
    uint64_t row = (uint64_t)t.shape[arg->rank - 1] * (uint64_t)dtype_bytes(arg->dtype);
    uint64_t dense = tensor_span_bytes(&t), rows = row ? dense / row : 0;
    uint64_t tail =
        5 * (uint64_t)t.shape[0] * (uint64_t)(arg->rank > 2 ? t.shape[arg->rank - 2] : 0);
    sum += guarded(dense + 64 * rows + tail * (row + 64));
  }
  diag_free(quiet);
  return sum;
}

Status check_memory(const Device *dev, uint64_t bytes, Diag *d) {
  uint64_t have = device_info(dev)->memory_free;
  if (!have || bytes <= have) return ST_OK;
  return diag_fail(d, ST_DEVICE, "not enough device memory on %s: %.1f MiB needed, %.1f MiB free",
                   device_info(dev)->id, (double)bytes / (1 << 20), (double)have / (1 << 20));
}
