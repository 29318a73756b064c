/* Prompts of different lengths in one launch, through the C API: the sequences lie one after the
 * other and `cu_seqlens_q`, `cu_seqlens_k` on the device say where each begins (`varlen=1`).
 * Causal; one has keys from before (a prefix in the cache), one no queries, one fewer keys than
 * queries.
 *
 * With Q = 0 every weight is equal, so O is the mean of the values that a query sees and the LSE
 * the logarithm of their number; a query that sees no key gives O = 0 and LSE = -inf.
 *
 *   example_varlen [sim | cuda:N [TEMPLATE]]    prefill_mma; or prefill_wgmma, prefill_tile ... */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxsmith.h"

enum { BATCH = 4, HEADS = 4, HEADS_KV = 2, DIM = 64, LONGEST_Q = 40, LONGEST_K = 70 };
static const int32_t len_q[BATCH] = {5, 0, 40, 1}, len_k[BATCH] = {3, 9, 40, 70};

/* Ends the program with the session's message when a call did not succeed. */
static void must(psm_session *s, psm_status st) {
  if (st == PSM_OK) return;
  fputs(psm_error(s), stderr);
  exit((int)st);
}

/* bf16 is the upper half of a float; what is converted here has no more than 8 digits. */
static uint16_t bf16_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static float of_bf16(uint16_t h) {
  uint32_t bits = (uint32_t)h << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The operator and its device, for what follows. */
typedef struct Job {
  psm_session *s;
  psm_device *dev;
  psm_operator *op;
} Job;

/* A dense tensor on the device, bound under its name; returns its address. */
static uint64_t bind(const Job *j, const char *name, psm_dtype t, const void *host, int rank,
                     int64_t n0, int64_t n1, int64_t n2) {
  psm_tensor x = {.dtype = t, .rank = rank, .shape = {n0, n1, n2}};
  uint64_t bytes = t == PSM_BF16 ? 2 : 4;
  for (int i = 0; i < rank; i++) bytes *= (uint64_t)x.shape[i];
  must(j->s, psm_alloc(j->dev, bytes, &x.data));
  must(j->s, psm_write(j->dev, x.data, host, bytes));
  must(j->s, psm_bind(j->op, name, &x));
  return x.data;
}

/* Prefill needs none, or a counter. */
static void give_workspace(const Job *j) {
  uint64_t workspace, bytes = psm_workspace_bytes(j->op);
  if (!bytes) return;
  must(j->s, psm_alloc(j->dev, bytes, &workspace));
  must(j->s, psm_zero(j->dev, workspace, psm_workspace_zero_bytes(j->op)));
  must(j->s, psm_bind_workspace(j->op, workspace, bytes));
}

static int value(int b, int h, int j) { return 1 + j % 16 + 3 * b + 20 * h; }

/* Whole numbers below 256 are exact in bf16 and so are their sums: O is rounded once, by half of
 * 2^-7 at most.  The LSE is within a few roundings of fp32. */
static int count_wrong(const int32_t *at_q, const uint16_t *o, const float *lse) {
  int wrong = 0;
  for (int b = 0; b < BATCH; b++)
    for (int i = 0; i < len_q[b]; i++)
      for (int h = 0; h < HEADS; h++) {
        int seen = i + len_k[b] - len_q[b] + 1, row = at_q[b] + i;
        double mean = 0;
        for (int k = 0; k < seen; k++) mean += (double)value(b, h / (HEADS / HEADS_KV), k) / seen;
        for (int e = 0; e < DIM; e++) {
          double found = of_bf16(o[((size_t)row * HEADS + (size_t)h) * DIM + (size_t)e]);
          if (!(fabs(found - mean) <= mean * 0x1p-8)) wrong++;
        }
        float l = lse[h * at_q[BATCH] + row];
        if (seen > 0 ? !(fabs(l - log(seen)) <= 1e-5) : l != -INFINITY) wrong++;
      }
  return wrong;
}

int main(int argc, char **argv) {
  const char *where = argc > 1 ? argv[1] : "auto", *name = argc > 2 ? argv[2] : "prefill_mma";
  if (argc > 3) {
    fputs("usage: example_varlen [DEVICE [TEMPLATE]]\n", stderr);
    return PSM_INPUT;
  }
  int32_t at_q[BATCH + 1] = {0}, at_k[BATCH + 1] = {0};
  for (int b = 0; b < BATCH; b++) {
    at_q[b + 1] = at_q[b] + len_q[b];
    at_k[b + 1] = at_k[b] + len_k[b];
  }
  int64_t total_q = at_q[BATCH], total_k = at_k[BATCH];

  Job j;
  psm_status st = psm_session_open(NULL, &j.s);
  must(j.s, st);
  must(j.s, psm_device_open(j.s, where, &j.dev));
  /* sq and sk are the longest that may come: they size the launch; tq and tk are all rows. */
  char values[160];
  psm_problem *p;
  snprintf(values, sizeof values,
           "b=%d,hq=%d,hkv=%d,sq=%d,sk=%d,tq=%d,tk=%d,d=%d,dtype=bf16,causal=1", BATCH, HEADS,
           HEADS_KV, LONGEST_Q, LONGEST_K, (int)total_q, (int)total_k, DIM);
  must(j.s, psm_problem_new(j.s, values, &p));
  must(j.s, psm_operator_new(j.dev, name, "varlen=1", p, NULL, &j.op));

  size_t nq = (size_t)total_q * HEADS * DIM, nk = (size_t)total_k * HEADS_KV * DIM;
  uint16_t *zero = calloc(nq + nk, 2), *v = malloc(nk * 2), *o = malloc(nq * 2);
  size_t nlse = (size_t)(HEADS * total_q);
  float *lse = malloc(nlse * 4);
  for (int b = 0; b < BATCH; b++)
    for (int i = 0; i < len_k[b] * HEADS_KV * DIM; i++)
      v[(size_t)at_k[b] * HEADS_KV * DIM + (size_t)i] =
          bf16_of((float)value(b, i / DIM % HEADS_KV, i / (DIM * HEADS_KV)));
  bind(&j, "q", PSM_BF16, zero, 3, total_q, HEADS, DIM);
  bind(&j, "k", PSM_BF16, zero, 3, total_k, HEADS_KV, DIM);
  bind(&j, "v", PSM_BF16, v, 3, total_k, HEADS_KV, DIM);
  bind(&j, "cu_seqlens_q", PSM_I32, at_q, 1, BATCH + 1, 0, 0);
  bind(&j, "cu_seqlens_k", PSM_I32, at_k, 1, BATCH + 1, 0, 0);
  uint64_t o_at = bind(&j, "o", PSM_BF16, memset(o, 0xff, nq * 2), 3, total_q, HEADS, DIM);
  memset(lse, 0xff, nlse * 4); /* as o: NaN where nothing is written */
  uint64_t lse_at = bind(&j, "lse", PSM_F32, lse, 2, HEADS, total_q, 0);
  give_workspace(&j);
  must(j.s, psm_launch(j.op));
  must(j.s, psm_read(j.dev, o, o_at, nq * 2)); /* waits for it */
  must(j.s, psm_read(j.dev, lse, lse_at, nlse * 4));

  int wrong = count_wrong(at_q, o, lse);
  printf("%s: %d rows of %d sequences on %s: %d wrong: %s\n", name, (int)total_q * HEADS, BATCH,
         psm_device_name(j.dev), wrong, wrong ? "WRONG" : "good");
  psm_operator_free(j.op);
  psm_problem_free(p);
  psm_device_close(j.dev);
  psm_session_close(j.s);
  free(zero);
  free(v);
  free(o);
  free(lse);
  return wrong ? PSM_FAILED : PSM_OK;
}
