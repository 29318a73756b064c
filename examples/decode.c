/* Decode attention through the C API alone: one query per head over a key cache, on the GPU if
 * there is one and on the interpreter if there is none.
 *
 * The inputs have a closed form: with Q = 0 every weight is equal, so with V[j] = 0.01 j every
 * element of O is 0.01 (seqlen_k - 1) / 2, and the log-sum-exp is ln(seqlen_k).
 *
 *   example_decode [DEVICE [SEQLEN_K]] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ptxsmith.h"

enum { HEADS = 8, HEADS_KV = 2, DIM = 64 };

/* Ends the program with the session's message when a call did not succeed. */
static void must(psm_session *s, psm_status st) {
  if (st == PSM_OK) return;
  fputs(psm_error(s), stderr);
  exit((int)st);
}

static float *floats(size_t n) {
  float *p = calloc(n ? n : 1, sizeof *p);
  if (p) return p;
  fputs("out of host memory\n", stderr);
  exit(PSM_INPUT);
}

/* A dense tensor [1, rows, heads, DIM] on the device, holding `host`. */
static psm_tensor upload(psm_session *s, psm_device *dev, const float *host, int64_t rows,
                         int64_t heads) {
  uint64_t bytes = (uint64_t)(rows * heads * DIM) * sizeof *host;
  psm_tensor t = {.dtype = PSM_F32, .rank = 4, .shape = {1, rows, heads, DIM}};
  must(s, psm_alloc(dev, bytes, &t.data));
  must(s, psm_write(dev, t.data, host, bytes));
  return t;
}

/* Largest distance from the closed form; NaN counts as infinite. */
static double worst(const float *got, size_t n, double expected) {
  double w = 0;
  for (size_t i = 0; i < n; i++) {
    double e = fabs((double)got[i] - expected);
    if (!(e <= w)) w = e;
    if (isnan(e)) return INFINITY;
  }
  return w;
}

/* Workspace of the operator's, zero where it must be. */
static void give_workspace(psm_session *s, psm_device *dev, psm_operator *op) {
  uint64_t workspace = 0, bytes = psm_workspace_bytes(op);
  if (bytes) must(s, psm_alloc(dev, bytes, &workspace));
  if (psm_workspace_zero_bytes(op))
    must(s, psm_zero(dev, workspace, psm_workspace_zero_bytes(op)));
  must(s, psm_bind_workspace(op, workspace, bytes));
}

int main(int argc, char **argv) {
  const char *where = argc > 1 ? argv[1] : "auto";
  char *end = "";
  int64_t keys = argc > 2 ? strtoll(argv[2], &end, 10) : 1000;
  if (argc > 3 || *end || keys < 1 || keys > 1 << 20) {
    fputs("usage: example_decode [DEVICE [SEQLEN_K]], 1 to 1048576 keys\n", stderr);
    return PSM_INPUT;
  }
  psm_session *s;
  psm_device *dev;
  psm_status st = psm_session_open(NULL, &s);
  must(s, st);
  must(s, psm_device_open(s, where, &dev));

  /* The question, and the launches that answer it: decode_splitk, then combine. */
  char values[128];
  snprintf(values, sizeof values, "b=1,hq=%d,hkv=%d,sq=1,sk=%lld,d=%d", HEADS, HEADS_KV,
           (long long)keys, DIM);
  psm_problem *p;
  psm_operator *op;
  must(s, psm_problem_new(s, values, &p));
  must(s, psm_operator_new(dev, "decode_splitk", "dtype=f32", p, NULL, &op));
  printf("%s on %s: %d launches, %llu bytes of workspace\n", values, psm_device_name(dev),
         psm_operator_steps(op), (unsigned long long)psm_workspace_bytes(op));

  size_t nkv = (size_t)keys * HEADS_KV * DIM, no = HEADS * DIM;
  float *zero = floats(nkv), *v = floats(nkv), *o = floats(no), lse[HEADS];
  for (size_t i = 0; i < nkv; i++) v[i] = 0.01f * (float)(i / (HEADS_KV * DIM));
  psm_tensor q = upload(s, dev, zero, 1, HEADS), k = upload(s, dev, zero, keys, HEADS_KV);
  psm_tensor vt = upload(s, dev, v, keys, HEADS_KV), ot = upload(s, dev, o, 1, HEADS);
  psm_tensor lt = {.dtype = PSM_F32, .rank = 3, .shape = {1, HEADS, 1}};
  must(s, psm_alloc(dev, sizeof lse, &lt.data));
  must(s, psm_bind(op, "q", &q));
  must(s, psm_bind(op, "k", &k));
  must(s, psm_bind(op, "v", &vt));
  must(s, psm_bind(op, "o", &ot));
  must(s, psm_bind(op, "lse", &lt));

  give_workspace(s, dev, op);
  must(s, psm_launch(op)); /* reading waits for it */
  must(s, psm_read(dev, o, ot.data, no * sizeof *o));
  must(s, psm_read(dev, lse, lt.data, sizeof lse));

  /* Sums of n terms in fp32, in any order: n roundings of at most 2^-24 of the partial sum, so
   * n 2^-24 of the answer; the division and 0.01f's own rounding are part of the slack of 4. */
  double expected = 0.01 * (double)(keys - 1) / 2;
  double bound = ((double)keys + 4) * 0x1p-24 * expected + 0x1p-24;
  double error = worst(o, no, expected), lse_error = worst(lse, HEADS, log((double)keys));
  int good = error <= bound && lse_error <= 1e-5 * (1 + log((double)keys));
  printf("O = %.6f: expected %.6f, worst error %.2e (at most %.2e); LSE error %.2e: %s\n", o[0],
         expected, error, bound, lse_error, good ? "good" : "WRONG");

  psm_operator_free(op);
  psm_problem_free(p);
  psm_device_close(dev); /* and with it the buffers */
  psm_session_close(s);
  free(zero);
  free(v);
  free(o);
  return good ? PSM_OK : PSM_FAILED;
}
