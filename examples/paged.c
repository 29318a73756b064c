/* Serving, through the C API: decode over a cache in pages, the lengths on the device, so that one
 * captured CUDA graph serves every token.  Three sequences of different lengths get a few tokens
 * each; the kernel reads the new keys and values (`append=1`), puts them into the cache, and
 * nothing but device memory changes from token to token.
 *
 * With Q = 0 every weight is equal, so O is the mean of the values seen so far.
 *
 *   example_paged [sim | cuda:N]      with a GPU if there is one
 *
 * An engine includes cuda.h and links libcuda.  Here the driver's functions are looked up, so that
 * the example builds where there is no CUDA. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxsmith.h"

enum { BATCH = 3, HEADS = 8, HEADS_KV = 2, DIM = 64, PAGE = 16, PAGES = 4, POOL = BATCH * PAGES };
enum { ROW = HEADS_KV * DIM, TOKENS = 5 };
static const int32_t prompt[BATCH] = {37, 0, 15}; /* keys in the cache before the first token */

/* Ends the program with the session's message when a call did not succeed. */
static void must(psm_session *s, psm_status st) {
  if (st == PSM_OK) return;
  fputs(psm_error(s), stderr);
  exit((int)st);
}

/* ---- f16: of small whole numbers, and back --------------------------------------------------- */
static uint16_t half_of(int n) {
  if (!n) return 0;
  int e = ilogb(n); /* n = 2^e (1 + f), f in 10 bits for n < 2048 */
  return (uint16_t)((e + 15) << 10 | ((n << 10 >> e) & 0x3ff));
}

static double of_half(uint16_t h) {
  int e = h >> 10 & 31, f = h & 0x3ff;
  if (e == 31) return NAN; /* or infinity: neither is expected */
  double x = e ? ldexp(1024 + f, e - 25) : ldexp(f, -24);
  return h & 0x8000 ? -x : x;
}

/* ---- the engine's side of CUDA: a context, a stream, a graph --------------------------------- */
typedef struct Gpu {
  void *library, *context, *stream, *graph, *exec;
} Gpu;

static void *driver(const Gpu *g, const char *name) {
  int (*get)(const char *, void **, int, uint64_t, int *);
  void *fn = NULL;
  int status;
  *(void **)&get = dlsym(g->library, "cuGetProcAddress_v2");
  if (get && !get(name, &fn, 12000, 0, &status) && fn) return fn;
  fprintf(stderr, "this driver has no %s\n", name);
  exit(PSM_DEVICE);
}

/* Calls a function of the driver, looked up by name and type. */
#define CU(g, name, types, ...)                                                                    \
  do {                                                                                             \
    int(*fn) types, result;                                                                        \
    *(void **)&fn = driver(g, #name);                                                              \
    result = fn(__VA_ARGS__);                                                                      \
    if (result) fprintf(stderr, "%s: error %d\n", #name, result), exit(PSM_DEVICE);                \
  } while (0)

static int gpu_open(Gpu *g, int index) {
  const char *path = getenv("PTXSMITH_LIBCUDA"); /* as the library itself */
  int device, (*init)(unsigned);
  g->library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
  if (!g->library) return 0;
  *(void **)&init = driver(g, "cuInit");
  if (init(0)) return 0; /* a driver without a GPU */
  CU(g, cuDeviceGet, (int *, int), &device, index);
  CU(g, cuDevicePrimaryCtxRetain, (void **, int), &g->context, device);
  CU(g, cuCtxPushCurrent, (void *), g->context);
  CU(g, cuStreamCreate, (void **, unsigned), &g->stream, 1); /* non-blocking */
  return 1;
}

/* psm_launch neither allocates nor waits: what it queues goes into the graph. */
static void capture(Gpu *g, psm_session *s, psm_operator *op) {
  CU(g, cuStreamBeginCapture, (void *, int), g->stream, 1); /* of this thread */
  must(s, psm_launch(op));
  CU(g, cuStreamEndCapture, (void *, void **), g->stream, &g->graph);
  CU(g, cuGraphInstantiateWithFlags, (void **, void *, unsigned long long), &g->exec, g->graph, 0);
  printf("captured once, launches in the graph: %d\n", psm_operator_steps(op));
}

/* ---- the cache, and a token after the other -------------------------------------------------- */
typedef struct Cache {
  psm_session *s;
  psm_device *dev;
  psm_operator *op;
  psm_tensor q, k, v, k_new, v_new, table, lengths, o, lse;
} Cache;

/* A dense tensor on the device, bound under its name.  `host` NULL: ones in every bit, a NaN. */
static psm_tensor make(Cache *c, const char *name, psm_dtype t, const void *host, int rank,
                       const int64_t *shape) {
  psm_tensor x = {.dtype = t, .rank = rank};
  uint64_t bytes = t == PSM_F16 ? 2 : 4;
  for (int i = 0; i < rank; i++) bytes *= (uint64_t)(x.shape[i] = shape[i]);
  void *ones = memset(malloc(bytes), 0xff, bytes);
  must(c->s, psm_alloc(c->dev, bytes, &x.data));
  must(c->s, psm_write(c->dev, x.data, host ? host : ones, bytes));
  must(c->s, psm_bind(c->op, name, &x));
  free(ones);
  return x;
}
#define SHAPE(...) (sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}

/* The value of key j of sequence b in KV head h, in all columns. */
static int value(int b, int h, int j) { return 1 + j % 8 + 2 * b + 5 * h; }

static int32_t page_of(int b, int i) { return (7 * (PAGES * b + i) + 3) % POOL; }

static void fill(Cache *c) {
  static uint16_t q[BATCH * HEADS * DIM], pool[POOL * PAGE * ROW];
  int32_t table[BATCH * PAGES];
  for (int i = 0; i < BATCH * PAGES; i++) table[i] = page_of(i / PAGES, i % PAGES);
  c->q = make(c, "q", PSM_F16, q, SHAPE(BATCH, 1, HEADS, DIM));
  c->k = make(c, "k", PSM_F16, pool, SHAPE(POOL, PAGE, HEADS_KV, DIM));
  for (int b = 0; b < BATCH; b++)
    for (int j = 0; j < prompt[b]; j++)
      for (int e = 0; e < ROW; e++)
        pool[(page_of(b, j / PAGE) * PAGE + j % PAGE) * ROW + e] = half_of(value(b, e / DIM, j));
  c->v = make(c, "v", PSM_F16, pool, SHAPE(POOL, PAGE, HEADS_KV, DIM));
  c->k_new = make(c, "k_new", PSM_F16, q, SHAPE(BATCH, 1, HEADS_KV, DIM));
  c->v_new = make(c, "v_new", PSM_F16, NULL, SHAPE(BATCH, 1, HEADS_KV, DIM));
  c->table = make(c, "block_table", PSM_I32, table, SHAPE(BATCH, PAGES));
  c->lengths = make(c, "seqlens_k", PSM_I32, NULL, SHAPE(BATCH));
  c->o = make(c, "o", PSM_F16, NULL, SHAPE(BATCH, 1, HEADS, DIM));
  c->lse = make(c, "lse", PSM_F32, NULL, SHAPE(BATCH, HEADS, 1));
}

/* The next token of every sequence: its key and value, and the length that now holds it. */
static void next_token(Cache *c, int token) {
  uint16_t v[BATCH * ROW];
  int32_t lengths[BATCH];
  for (int b = 0; b < BATCH; b++) {
    lengths[b] = prompt[b] + token + 1;
    for (int e = 0; e < ROW; e++) v[b * ROW + e] = half_of(value(b, e / DIM, lengths[b] - 1));
  }
  must(c->s, psm_write(c->dev, c->v_new.data, v, sizeof v));
  must(c->s, psm_write(c->dev, c->lengths.data, lengths, sizeof lengths));
}

/* Largest error of O, by what rounding to f16 allows: half of 2^-10, and as much for P and sums. */
static double check(Cache *c, int token) {
  uint16_t o[BATCH * HEADS * DIM];
  double worst = 0;
  must(c->s, psm_read(c->dev, o, c->o.data, sizeof o));
  for (int i = 0; i < BATCH * HEADS * DIM; i++) {
    int b = i / (HEADS * DIM), h = i / DIM % HEADS / (HEADS / HEADS_KV);
    int n = prompt[b] + token + 1;
    double mean = 0, error;
    for (int j = 0; j < n; j++) mean += (double)value(b, h, j) / n;
    error = fabs(of_half(o[i]) - mean) / (mean * 0x1p-10);
    if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
  }
  return worst;
}

int main(int argc, char **argv) {
  const char *where = argc > 1 ? argv[1] : "auto";
  int named = !strncmp(where, "cuda:", 5) && where[5], index = 0;
  char *end = "";
  if (named) index = (int)strtol(where + 5, &end, 10);
  if (argc > 2 || *end || index < 0 || (!named && strcmp(where, "auto") && strcmp(where, "sim"))) {
    fputs("usage: example_paged [auto|sim|cuda:N]\n", stderr);
    return PSM_INPUT;
  }
  Gpu gpu = {NULL, NULL, NULL, NULL, NULL};
  Cache c;
  psm_status st = psm_session_open(NULL, &c.s);
  must(c.s, st);
  int on_gpu = strcmp(where, "sim") && gpu_open(&gpu, index);
  if (on_gpu)
    must(c.s, psm_device_adopt(c.s, gpu.context, gpu.stream, &c.dev));
  else
    must(c.s, psm_device_open(c.s, where, &c.dev));

  /* sk is the longest that may come; what there is stands in seqlens_k, on the device. */
  char values[128];
  psm_problem *p;
  snprintf(values, sizeof values,
           "b=%d,hq=%d,hkv=%d,sq=1,sk=%d,d=%d,dtype=f16,page=%d,pages=%d,pool=%d", BATCH, HEADS,
           HEADS_KV, PAGES * PAGE, DIM, PAGE, PAGES, POOL);
  must(c.s, psm_problem_new(c.s, values, &p));
  must(c.s, psm_operator_new(c.dev, "decode_span", "varlen=1 paged=1 append=1", p, NULL, &c.op));
  fill(&c);

  uint64_t workspace, bytes = psm_workspace_bytes(c.op);
  must(c.s, psm_alloc(c.dev, bytes, &workspace));
  must(c.s, psm_zero(c.dev, workspace, psm_workspace_zero_bytes(c.op)));
  must(c.s, psm_bind_workspace(c.op, workspace, bytes));

  double worst = 0;
  if (on_gpu) capture(&gpu, c.s, c.op);
  for (int token = 0; token < TOKENS; token++) {
    next_token(&c, token);
    if (on_gpu) CU(&gpu, cuGraphLaunch, (void *, void *), gpu.exec, gpu.stream);
    else must(c.s, psm_launch(c.op));
    must(c.s, psm_sync(c.dev));
    worst = fmax(worst, check(&c, token));
  }
  printf("%d tokens of %d sequences on %s: worst error %.2f of 2^-10: %s\n", TOKENS, BATCH,
         psm_device_name(c.dev), worst, worst <= 1 ? "good" : "WRONG");
  psm_operator_free(c.op);
  psm_problem_free(p);
  psm_device_close(c.dev); /* and with it the buffers; context and stream are the engine's */
  psm_session_close(c.s);
  return worst <= 1 ? PSM_OK : PSM_FAILED;
}
