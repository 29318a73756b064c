// Tensors for timing.
#include "dense.h"

#include <stdlib.h>
#include <string.h>

#include "parallel.h"
#include "verify_data.h"
#include "verify_layout.h"

typedef struct Work {
  Device *dev;
  Operator *op;
  Dense *out;
  uint64_t seed;
  Diag *d;
} Work;

// Calls f once for every tensor that a Problem binds, in the order of the steps.
static Status each_tensor(Work *w, Status (*f)(Work *, const ArgDecl *)) {
  for (int s = 0; s < w->op->nsteps; s++) {
    const Variant *v = w->op->step[s].variant;
    for (int i = 0; i < v->nargs; i++) {
      const ArgDecl *arg = &v->args[i];
      bool bound = arg->role == ARG_IN || arg->role == ARG_OUT || arg->role == ARG_INOUT;
      if (!bound || operator_arg(w->op, arg->name) != arg) continue; // an earlier step has it
      Status st = f(w, arg);
      if (st) return st;
    }
  }
  return ST_OK;
}

// Of pages that are far longer than any sequence there is no more memory than keys can lie in.
static Status shape_of(Work *w, const ArgDecl *arg, Tensor *t, uint64_t *bytes) {
  *t = (Tensor){.dtype = arg->dtype, .rank = arg->rank};
  Status st = arg_shape(arg, w->op->problem, t->shape, w->d);
  if (st) return st;
  int64_t full[TENSOR_MAX_RANK];
  memcpy(full, t->shape, sizeof full);
  for (int i = 0; i < t->rank; i++)
    if (arg->dim[i].name && !strcmp(arg->dim[i].name, "page_size"))
      t->shape[i] = rows_of_page(w->op->problem, t->shape[i]);
  tensor_dense(t);
  *bytes = tensor_span_bytes(t);
  memcpy(t->shape, full, sizeof full);
  return ST_OK;
}

static Status add_bytes(Work *w, const ArgDecl *arg) {
  Tensor t;
  uint64_t bytes = 0;
  Status st = shape_of(w, arg, &t, &bytes);
  w->out->bytes += bytes;
  return st;
}

static Status take(Work *w, uint64_t bytes, const char *what, DevPtr *p) {
  Status st = device_alloc(w->dev, bytes, what, p, w->d);
  if (!st) *arena_push(w->op->arena, w->out->buffer, w->out->n, w->out->cap) = *p;
  return st;
}

typedef struct Block {
  uint64_t state;
  Dtype dtype;
  char *to;
} Block;

// Sums of four uniform numbers, variance 1 (splitmix64: its state is a counter).
static void near_normal(void *ctx, int chunk, int64_t from, int64_t to) {
  (void)chunk;
  const Block *b = ctx;
  const uint64_t step = 0x9e3779b97f4a7c15;
  int64_t size = dtype_bytes(b->dtype);
  for (int64_t n = from; n < to; n++) {
    double sum = 0;
    for (uint64_t i = 1; i <= 4; i++) {
      uint64_t z = b->state + (4 * (uint64_t)n + i) * step;
      z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
      z = (z ^ z >> 27) * 0x94d049bb133111eb;
      sum += (double)((z ^ z >> 31) >> 11) * 0x1p-53 - 0.5;
    }
    dtype_store(b->dtype, b->to + n * size, sum * 1.7320508075688772);
  }
}

// A block of random elements, doubled on the device until the tensor is full: timing asks for
// ordinary numbers, not for different ones.
static Status fill_random(Work *w, const Tensor *t, DevPtr p, uint64_t bytes) {
  enum { BLOCK = 1 << 20, SHORT_LOOP = 1 << 14 };
  uint64_t size = (uint64_t)dtype_bytes(t->dtype), n = bytes / size;
  if (n > BLOCK) n = BLOCK;
  char *block = malloc(n * size + 1);
  if (!block) return diag_fail(w->d, ST_DEVICE, "out of host memory");
  parallel_ranges((int64_t)n, SHORT_LOOP, near_normal,
                  &(Block){.state = w->seed + 0x632be59bd9b4e019 * (uint64_t)w->out->n,
                           .dtype = t->dtype,
                           .to = block});
  uint64_t have = n * size;
  Status st = device_write(w->dev, p, block, have, w->d);
  free(block);
  while (!st && have < bytes) {
    uint64_t more = have < bytes - have ? have : bytes - have;
    st = device_copy(w->dev, p + have, p, more, w->d);
    have += more;
  }
  return st;
}

static Status fill_lengths(Work *w, const ArgDecl *arg, const Tensor *t, uint64_t bytes) {
  char *host = malloc(bytes + 1);
  if (!host) return diag_fail(w->d, ST_DEVICE, "out of host memory");
  Status st = ST_OK;
  if (arg->sorted)
    st = sorted_fill(t, w->seed ^ content_hash(arg->name, strlen(arg->name)), host, w->d);
  else st = lengths_fill(w->op->problem, arg->name, w->seed, (int32_t *)(void *)host, w->d);
  if (!st) st = device_write(w->dev, t->data, host, bytes, w->d);
  free(host);
  return st ? st : operator_bind(w->op, arg->name, t, w->d);
}

static Status make_tensor(Work *w, const ArgDecl *arg) {
  Tensor t;
  uint64_t bytes = 0;
  Status st = shape_of(w, arg, &t, &bytes);
  uint64_t words = (bytes + 3) / 4 * 4;
  if (!st) st = take(w, words, arg->name, &t.data);
  if (st) return st;
  if (lengths_tensor(arg->name) || arg->sorted) return fill_lengths(w, arg, &t, bytes);
  bool random = arg->role == ARG_IN && dtype_mantissa(arg->dtype) > 0;
  st = random ? fill_random(w, &t, t.data, bytes) : device_fill32(w->dev, t.data, 0, words, w->d);
  return st ? st : operator_bind(w->op, arg->name, &t, w->d);
}

static Status make_workspace(Work *w) {
  uint64_t bytes = (w->op->workspace_bytes + 3) / 4 * 4;
  uint64_t zero = (w->op->workspace_zero_bytes + 3) / 4 * 4;
  if (!bytes) return ST_OK;
  DevPtr p;
  Status st = take(w, bytes, "the workspace", &p);
  if (!st) st = device_fill32(w->dev, p, 0, zero, w->d);
  return st ? st : operator_bind_workspace(w->op, p, w->op->workspace_bytes, w->d);
}

static Status check_room(Work *w) {
  const DeviceInfo *info = device_info(w->dev);
  const double gib = 1 << 30;
  if (w->out->bytes <= info->memory_free) return ST_OK;
  return diag_fail(w->d, ST_DEVICE,
                   "%s: the problem's tensors need %.3f GiB, %.3f GiB are free; nothing was "
                   "allocated",
                   info->id, (double)w->out->bytes / gib, (double)info->memory_free / gib);
}

Status dense_bind(Device *dev, Operator *op, uint64_t seed, Dense *out, Diag *d) {
  *out = (Dense){.bytes = op->workspace_bytes};
  Work w = {.dev = dev, .op = op, .out = out, .seed = seed, .d = d};
  Status st = lengths_check_whole(op->problem, d);
  if (!st) st = each_tensor(&w, add_bytes);
  if (!st) st = check_room(&w);
  if (!st) st = each_tensor(&w, make_tensor);
  if (!st) st = make_workspace(&w);
  if (st) dense_free(dev, out);
  return st;
}

void dense_free(Device *dev, Dense *b) {
  for (int i = 0; i < b->n; i++) device_free(dev, b->buffer[i]);
  b->n = 0;
}
