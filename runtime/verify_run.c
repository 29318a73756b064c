#include "verify_run.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parallel.h"
#include "verify_hook.h"
#include "verify_layout.h"

// ---- guarded buffers ---------------------------------------------------------------------------
// On the device: `guard` bytes of poison, the span, as many or a few more.
typedef struct Buffer {
  const char *name;
  DevPtr base;
  uint64_t span, guard, bytes; // bytes 0: there is no such buffer
  const void *host;            // what the span is given; NULL: poison
} Buffer;

enum { B_O = NINPUTS, B_LSE, B_WORK, NBUFFERS }; // the inputs come first

static uint64_t guarded(uint64_t span) { return (span + 2 * GUARD_BYTES + 255) / 256 * 256; }
static DevPtr buffer_data(const Buffer *b) { return b->base + b->guard; }
static uint64_t buffer_end(const Buffer *b) { return b->guard + b->span; }

static Buffer buffer_of(const DeviceRun *run, const char *name, uint64_t span, const void *host) {
  Buffer b = {.name = name, .span = span, .host = host};
  b.guard = run->exact ? 0 : GUARD_BYTES;
  b.bytes = run->exact ? span : guarded(span);
  return b;
}

// Bytes of any number, with the two bytes of `pair` over and over.
static Status fill_pairs(Device *dev, DevPtr at, uint16_t pair, uint64_t bytes, Diag *d) {
  uint32_t word = (uint32_t)pair << 16 | pair;
  uint64_t whole = bytes / 4 * 4;
  Status st = whole ? device_fill32(dev, at, word, whole, d) : ST_OK;
  return st == ST_OK && bytes > whole ? device_write(dev, at + whole, &word, bytes - whole, d) : st;
}

static Status buffer_fill(const Buffer *b, Device *dev, Diag *d) {
  Status st = fill_pairs(dev, b->base, POISON, b->bytes, d);
  return st == ST_OK && b->host ? device_write(dev, buffer_data(b), b->host, b->span, d) : st;
}

// Where the interpreter knows the bounds of each buffer it shall; a GPU is asked once.
static Status take_memory(DeviceRun *run, Buffer b[NBUFFERS], Diag *d) {
  bool apart = device_info(run->dev)->is_sim;
  uint64_t sum = 0;
  Status st = ST_OK;
  for (int i = 0; i < NBUFFERS && st == ST_OK; i++) {
    if (apart && (b[i].bytes || i >= NINPUTS))
      st = device_alloc(run->dev, b[i].bytes, b[i].name, &b[i].base, d);
    sum += b[i].bytes;
  }
  if (apart || st != ST_OK) return st;
  if (sum > run->slab_bytes) {
    device_run_end(run);
    st = device_alloc(run->dev, sum, "the buffers of the gates", &run->slab, d);
    if (st == ST_OK) run->slab_bytes = sum;
  }
  sum = 0;
  for (int i = 0; i < NBUFFERS && st == ST_OK; i++) {
    b[i].base = run->slab + sum;
    sum += b[i].bytes;
  }
  return st;
}

static void give_memory(DeviceRun *run, const Buffer b[NBUFFERS]) {
  if (device_info(run->dev)->is_sim)
    for (int i = 0; i < NBUFFERS; i++) device_free(run->dev, b[i].base);
}

void device_run_end(DeviceRun *run) {
  device_free(run->dev, run->slab);
  run->slab = run->slab_bytes = 0;
}

// The first of `n` bytes that is not poison, `n` where all are; the first one's place in its buffer
// is `at`.
static uint64_t not_poison(const char *p, uint64_t at, uint64_t n) {
  const uint16_t word = POISON;
  for (uint64_t i = 0; i < n; i++)
    if (p[i] != ((const char *)&word)[(at + i) % 2]) return i;
  return n;
}

// What lies around the span, as read back.
static void check_guards(const Buffer *b, const char *before, const char *after, Outputs *out) {
  uint64_t n = b->bytes - buffer_end(b), at;
  if ((at = not_poison(before, 0, b->guard)) < b->guard)
    outputs_damage(out, "guard zone overwritten before", b->name, b->guard - at);
  if ((at = not_poison(after, buffer_end(b), n)) < n)
    outputs_damage(out, "guard zone overwritten after", b->name, at);
}

typedef struct Bytes {
  const char *was, *now;
  int64_t changed[PARALLEL_CHUNKS]; // the first of each piece, -1: none
} Bytes;

static void compare_bytes(void *ctx, int chunk, int64_t from, int64_t to) {
  Bytes *b = ctx;
  if (!memcmp(b->was + from, b->now + from, (size_t)(to - from))) return;
  while (b->was[from] == b->now[from]) from++;
  b->changed[chunk] = from;
}

// The first of n bytes that is not what it was, -1 where all are.
static int64_t first_change(const char *was, const char *now, int64_t n) {
  Bytes b = {.was = was, .now = now};
  for (int c = 0; c < PARALLEL_CHUNKS; c++) b.changed[c] = -1;
  parallel_ranges(n, 1 << 20, compare_bytes, &b);
  for (int c = 0; c < PARALLEL_CHUNKS; c++)
    if (b.changed[c] >= 0) return b.changed[c];
  return -1;
}

// All of an input is as it was.
static void check_input(const Buffer *b, const char *all, Outputs *out) {
  check_guards(b, all, all + buffer_end(b), out);
  int64_t at = first_change(b->host, all + b->guard, (int64_t)b->span);
  if (at >= 0) outputs_damage(out, "input overwritten:", b->name, (uint64_t)at);
}

// `p`: the workspace without its guards.
static void check_workspace(const Operator *op, const char *p, Outputs *out) {
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

// Outputs and workspace are poison but for what must be zero; inputs that are not there have none.
static Status make_buffers(DeviceRun *run, const KernelInputs *in, const Outputs *out,
                           Buffer b[NBUFFERS], Diag *d) {
  const Operator *op = run->op;
  for (int i = 0; i < B_WORK; i++) {
    const HostTensor *t = tensor_of(in, out, i);
    if (i >= NINPUTS) b[i] = buffer_of(run, name_of(i), t->bytes, NULL);
    else if (t->host) b[i] = buffer_of(run, name_of(i), t->bytes, t->host);
  }
  b[B_WORK] = buffer_of(run, "workspace", op->workspace_bytes, NULL);
  Status st = take_memory(run, b, d);
  for (int i = 0; i < NBUFFERS && st == ST_OK; i++) st = buffer_fill(&b[i], run->dev, d);
  if (st != ST_OK) return st;
  return fill_pairs(run->dev, buffer_data(&b[B_WORK]), 0, op->workspace_zero_bytes, d);
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

// An output goes where it is wanted, its guards to `room`.
static Status read_output(const DeviceRun *run, const Buffer *b, void *to, char *room, Outputs *out,
                          Diag *d) {
  uint64_t end = buffer_end(b);
  Status st = device_read(run->dev, room, b->base, b->guard, d);
  if (st == ST_OK) st = device_read(run->dev, room + b->guard, b->base + end, b->bytes - end, d);
  if (st == ST_OK && to) st = device_read(run->dev, to, buffer_data(b), b->span, d);
  if (st == ST_OK) check_guards(b, room, room + b->guard, out);
  return st;
}

static Status read_all(const DeviceRun *run, const Buffer b[NBUFFERS], char *room, Outputs *out,
                       Diag *d) {
  Status st = ST_OK;
  for (int i = 0; i < NINPUTS && st == ST_OK; i++) {
    st = device_read(run->dev, room, b[i].base, b[i].bytes, d);
    if (st == ST_OK && b[i].bytes) check_input(&b[i], room, out);
  }
  if (st == ST_OK) st = read_output(run, &b[B_O], out->o.host, room, out, d);
  if (st == ST_OK) st = read_output(run, &b[B_LSE], out->lse.host, room, out, d);
  const Buffer *work = &b[B_WORK];
  if (st == ST_OK) st = device_read(run->dev, room, work->base, work->bytes, d);
  if (st != ST_OK) return st;
  check_guards(work, room, room + buffer_end(work), out);
  st = outputs_check(out, d);
  bool launched = false;
  for (int i = 0; i < run->op->nsteps; i++) launched |= run->op->step[i].work > 0;
  if (launched) check_workspace(run->op, room + work->guard, out);
  return st;
}

static Status read_back(const DeviceRun *run, const Buffer b[NBUFFERS], Outputs *out, Diag *d) {
  uint64_t most = 2 * GUARD_BYTES + 256; // of what is read at once
  for (int i = 0; i < NBUFFERS; i++)
    if (i != B_O && i != B_LSE && b[i].bytes > most) most = b[i].bytes;
  char *room = malloc(most);
  if (!room)
    return diag_fail(d, ST_INPUT, "not enough host memory to read %llu bytes back",
                     (unsigned long long)most);
  Status st = read_all(run, b, room, out, d);
  free(room);
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
  SpentOn was = spent_on(run->spent, SPENT_COPY);
  if (st == ST_OK) st = kernel_inputs(run->op, in, run->seed, &laid, d);
  if (st == ST_OK) st = kernel_outputs(run->op, out, d);
  if (st == ST_OK) st = make_buffers(run, &laid, out, b, d);
  if (st == ST_OK) st = extras_bind(run->op, run->dev, run->seed, &extras, d);
  if (st == ST_OK) st = bind_all(run, &laid, out, b, d);
  spent_on(run->spent, SPENT_RUN);
  if (st == ST_OK) st = operator_launch(run->op, run->dev, d);
  if (st == ST_OK) st = device_sync(run->dev, d);
  spent_on(run->spent, SPENT_COPY);
  if (st == ST_OK) st = read_back(run, b, out, d);
  if (st == ST_OK) st = extras_check(&extras, run->dev, out, d);
  give_memory(run, b);
  extras_free(&extras, run->dev);
  kernel_inputs_free(&laid);
  spent_on(run->spent, was);
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
