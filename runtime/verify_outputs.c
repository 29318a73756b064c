// Outputs on the host: poisoned before a run, checked for what it left.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parallel.h"
#include "verify_run.h"

void outputs_free(Outputs *o) {
  host_tensor_free(&o->o);
  host_tensor_free(&o->lse);
}

void poison_fill(void *p, uint64_t bytes) {
  const uint16_t word = POISON;
  memcpy(p, &word, bytes < 2 ? (size_t)bytes : 2);
  for (uint64_t done = 2; done < bytes; done *= 2)
    memcpy((char *)p + done, p, (size_t)(done < bytes - done ? done : bytes - done));
}

bool is_poison(Dtype t, const void *element) {
  uint64_t word = 0, want = 0;
  memcpy(&word, element, (size_t)dtype_bytes(t));
  poison_fill(&want, (uint64_t)dtype_bytes(t));
  return word == want;
}

Status outputs_make(const int64_t o_shape[], Dtype o, const int64_t lse_shape[], Dtype lse,
                    Outputs *out, Diag *d) {
  *out = (Outputs){0};
  Status st = host_tensor_make(&out->o, o, 4, o_shape, &layout_o, FILL_ZERO, d);
  if (st == ST_OK && lse_shape)
    st = host_tensor_make(&out->lse, lse, 3, lse_shape, &layout_o, FILL_ZERO, d);
  if (st != ST_OK) return st;
  poison_fill(out->o.host, out->o.bytes);
  if (lse_shape) poison_fill(out->lse.host, out->lse.bytes);
  return ST_OK;
}

void outputs_damage(Outputs *out, const char *what, const char *name, uint64_t at) {
  if (out->damaged) return;
  out->damaged = true;
  snprintf(out->note, sizeof out->note, "%s %s at byte %llu", what, name, (unsigned long long)at);
}

// ---- what a run must have written --------------------------------------------------------------
// The first bad place of each piece: an element that is still poison, or a gap that is not.
typedef struct Written {
  const HostTensor *t;
  char *covered;
  int64_t bad[PARALLEL_CHUNKS]; // of an element, in order of rows; of a gap, an offset; -1: none
} Written;

static int64_t rows_last(const HostTensor *t) { return t->t.rank == 4 ? t->t.shape[3] : 1; }

static int64_t place(const HostTensor *t, int64_t number, int64_t at[4]) {
  const int64_t *n = t->t.shape, last = rows_last(t);
  at[3] = number % last, at[2] = number / last % n[2];
  at[1] = number / last / n[2] % n[1], at[0] = number / last / n[2] / n[1];
  return tensor_at(&t->t, at[0], at[1], at[2], at[3]);
}

static const void *element(const HostTensor *t, int64_t at) {
  return (const char *)t->host + at * dtype_bytes(t->t.dtype);
}

// Whether one of n elements in a row is poison: without an end in between, so that it is fast.
static bool any_poison(const void *row, int64_t n, int bytes) {
  bool any = false;
  uint64_t want = 0;
  poison_fill(&want, (uint64_t)bytes);
  if (bytes == 2)
    for (int64_t e = 0; e < n; e++) any |= ((const uint16_t *)row)[e] == (uint16_t)want;
  else if (bytes == 4)
    for (int64_t e = 0; e < n; e++) any |= ((const uint32_t *)row)[e] == (uint32_t)want;
  else
    for (const char *p = row; n-- > 0; p += bytes) any |= !memcmp(p, &want, (size_t)bytes);
  return any;
}

static void check_rows(void *ctx, int chunk, int64_t from, int64_t to) {
  Written *w = ctx;
  Dtype t = w->t->t.dtype;
  int64_t last = rows_last(w->t), at[4];
  for (int64_t row = from; row < to; row++) {
    int64_t first = place(w->t, row * last, at);
    memset(w->covered + first, 1, (size_t)last);
    if (w->bad[chunk] >= 0 || !any_poison(element(w->t, first), last, dtype_bytes(t))) continue;
    int64_t e = 0;
    while (!is_poison(t, element(w->t, first + e))) e++;
    w->bad[chunk] = row * last + e;
  }
}

static void check_gaps(void *ctx, int chunk, int64_t from, int64_t to) {
  Written *w = ctx;
  size_t bytes = (size_t)dtype_bytes(w->t->t.dtype);
  uint64_t want = 0;
  poison_fill(&want, bytes);
  for (int64_t at = from; at < to && w->bad[chunk] < 0; at++)
    if (!w->covered[at] && memcmp(element(w->t, at), &want, bytes)) w->bad[chunk] = at;
}

static int64_t first_bad(Written *w, int64_t n, int64_t least, RangeFn f) {
  for (int c = 0; c < PARALLEL_CHUNKS; c++) w->bad[c] = -1;
  parallel_ranges(n, least, f, w);
  for (int c = 0; c < PARALLEL_CHUNKS; c++)
    if (w->bad[c] >= 0) return w->bad[c];
  return -1;
}

static void note_unwritten(const HostTensor *t, const char *name, int64_t number, Outputs *out) {
  int64_t x[4], at = place(t, number, x);
  bool rows = t->t.rank == 4; // [batch, seqlen, heads, dim], else [batch, heads, seqlen]
  outputs_damage(out, "element not written:", name, (uint64_t)(at * dtype_bytes(t->t.dtype)));
  out->where = (Mismatch){.found = true,
                          .tensor = name,
                          .batch = x[0],
                          .head = rows ? x[2] : x[1],
                          .row = rows ? x[1] : x[2],
                          .col = x[3],
                          .got = host_get(t, x[0], x[1], x[2], x[3])};
}

// Every element written, and nothing in the gaps between rows.
static Status check_written(const HostTensor *t, const char *name, Outputs *out, Diag *d) {
  int64_t bytes = dtype_bytes(t->t.dtype), total = (int64_t)t->bytes / bytes;
  const int64_t *n = t->t.shape;
  Written w = {.t = t, .covered = calloc((size_t)(total > 0 ? total : 1), 1)};
  if (!w.covered) return diag_fail(d, ST_INPUT, "not enough host memory to check %s", name);
  int64_t bad = first_bad(&w, n[0] * n[1] * n[2], (1 << 16) / rows_last(t), check_rows);
  if (bad >= 0 && !out->damaged) note_unwritten(t, name, bad, out);
  int64_t gap = first_bad(&w, total, 1 << 16, check_gaps);
  if (gap >= 0)
    outputs_damage(out, "gap between rows overwritten in", name, (uint64_t)(gap * bytes));
  free(w.covered);
  return ST_OK;
}

Status outputs_check(Outputs *out, Diag *d) {
  Status st = check_written(&out->o, "o", out, d);
  return st == ST_OK && out->lse.host ? check_written(&out->lse, "lse", out, d) : st;
}
