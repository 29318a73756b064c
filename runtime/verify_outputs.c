// Outputs on the host: poisoned before a run, checked for what it left.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify_run.h"

void outputs_free(Outputs *o) {
  host_tensor_free(&o->o);
  host_tensor_free(&o->lse);
}

void poison_fill(void *p, uint64_t bytes) {
  const uint16_t word = POISON;
  for (uint64_t i = 0; i + 1 < bytes; i += 2) memcpy((char *)p + i, &word, 2);
  if (bytes % 2) ((char *)p)[bytes - 1] = (char)(POISON & 255);
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
static void check_element(const HostTensor *t, const char *name, int64_t i, int64_t j, int64_t k,
                          int64_t e, char *covered, Outputs *out) {
  int64_t at = tensor_at(&t->t, i, j, k, e), bytes = dtype_bytes(t->t.dtype);
  covered[at] = 1;
  if (out->damaged || !is_poison(t->t.dtype, (char *)t->host + at * bytes)) return;
  outputs_damage(out, "element not written:", name, (uint64_t)(at * bytes));
  bool rows = t->t.rank == 4; // [batch, seqlen, heads, dim], else [batch, heads, seqlen]
  out->where = (Mismatch){.found = true,
                          .tensor = name,
                          .batch = i,
                          .head = rows ? k : j,
                          .row = rows ? j : k,
                          .col = e,
                          .got = host_get(t, i, j, k, e)};
}

// Every element written, and nothing in the gaps between rows.
static Status check_written(const HostTensor *t, const char *name, Outputs *out, Diag *d) {
  int64_t bytes = dtype_bytes(t->t.dtype), total = (int64_t)t->bytes / bytes;
  char *covered = calloc((size_t)(total > 0 ? total : 1), 1);
  if (!covered) return diag_fail(d, ST_INPUT, "not enough host memory to check %s", name);
  const int64_t *n = t->t.shape;
  int64_t last = t->t.rank == 4 ? n[3] : 1;
  for (int64_t i = 0; i < n[0]; i++)
    for (int64_t j = 0; j < n[1]; j++)
      for (int64_t k = 0; k < n[2]; k++)
        for (int64_t e = 0; e < last; e++) check_element(t, name, i, j, k, e, covered, out);
  for (int64_t at = 0; at < total && !out->damaged; at++)
    if (!covered[at] && !is_poison(t->t.dtype, (char *)t->host + at * bytes))
      outputs_damage(out, "gap between rows overwritten in", name, (uint64_t)(at * bytes));
  free(covered);
  return ST_OK;
}

Status outputs_check(Outputs *out, Diag *d) {
  Status st = check_written(&out->o, "o", out, d);
  return st == ST_OK && out->lse.host ? check_written(&out->lse, "lse", out, d) : st;
}
