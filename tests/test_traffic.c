// The traffic of our templates: the decode kernels read every byte of K and V once, whatever the
// chunks, the tails and the group.
#include "dense.h"
#define KIT_SANITIZE false
#include "sim_kit.h"

// mark: what the loads of K and V say.
static void check_decode(Kit *k, Session *s, const char *name, const char *mark, const char *params,
                         const char *values, int64_t chunks, uint64_t kv_bytes) {
  Params given = {0};
  Problem *p = NULL;
  Operator *op = NULL;
  Dense buffers = {0};
  PlanOpts opts = {.chunks = chunks};
  Status st = ST_OK;
  for (const char *at = params; *at && !st;) {
    size_t n = strcspn(at, " ");
    st = params_parse(k->arena, &given, arena_strndup(k->arena, at, n), k->diag);
    at += n + (at[n] == ' ');
  }
  if (!st) st = problem_open(s, k->arena, values, &p, k->diag);
  if (!st) st = operator_make(s, name, &given, p, &opts, &op, k->diag);
  if (!st) st = operator_load(op, k->dev, k->diag);
  if (!st) st = operator_plan(op, k->dev, &opts, k->diag);
  if (!st) st = dense_bind(k->dev, op, 1, &buffers, k->diag);
  if (!st) st = operator_launch(op, k->dev, k->diag);
  if (st) fail_msg("%s", diag_text(k->diag));
  KernelCounts n;
  assert_true(kernel_counts(op->step[0].kernel, &n));
  uint64_t read = 0, sectors = 0, bytes = 0;
  for (int i = 0; i < n.nbuffers; i++)
    if (!strcmp(n.buffer[i].name, "k") || !strcmp(n.buffer[i].name, "v"))
      read += n.buffer[i].read;
  for (int i = 0; i < n.n; i++)
    if (ptx_inst_has(n.site[i].in, mark)) {
      const SpaceCount *g = n.count[i].global;
      sectors += g[COUNT_LOAD].units + g[COUNT_COPY].units;
      bytes += g[COUNT_LOAD].bytes + g[COUNT_COPY].bytes;
    }
  if (read != kv_bytes || sectors * 32 != kv_bytes || bytes != kv_bytes)
    fail_msg("%s %s: %llu bytes of K and V, %llu distinct, %llu of sectors, %llu asked for", params,
             values, (unsigned long long)kv_bytes, (unsigned long long)read,
             (unsigned long long)sectors * 32, (unsigned long long)bytes);
  dense_free(k->dev, &buffers);
  operator_free(op);
}

#define SPLITK "decode_splitk", "L1::no_allocate"
#define MMA "decode_mma", "async"
#define SPAN "decode_span", "async"
#define LATENT "decode_latent", "async"
#define FMA "decode_fma", "async"
static void test_decode_reads_once(void **state) {
  Kit *k = *state;
  Session *s = session_open(NULL, k->diag);
  device_sim_opts(k->dev, &(SimOpts){.counters = true});
  check_decode(k, s, SPLITK, "head_dim=128 dtype=f32", "b=1,hq=2,hkv=2,sq=1,sk=256,d=128", 1,
               2 * 2 * 256 * 512);
  check_decode(k, s, SPLITK, "head_dim=128 dtype=f16", "b=2,hq=8,hkv=2,sq=1,sk=301,d=128", 7,
               2 * 2 * 2 * 301 * 256);
  check_decode(k, s, SPLITK, "head_dim=64 dtype=bf16", "b=1,hq=4,hkv=1,sq=1,sk=77,d=64", 3,
               2 * 77 * 128);
  check_decode(k, s, SPLITK, "head_dim=32 dtype=f32 vec=1", "b=1,hq=1,hkv=1,sq=1,sk=33,d=32", 2,
               2 * 33 * 128);
  check_decode(k, s, MMA, "head_dim=128 dtype=f16", "b=2,hq=8,hkv=2,sq=1,sk=301,d=128", 7,
               2 * 2 * 2 * 301 * 256);
  check_decode(k, s, MMA, "head_dim=96 dtype=bf16", "b=1,hq=6,hkv=1,sq=2,sk=77,d=96", 3,
               2 * 77 * 192);
  check_decode(k, s, MMA, "head_dim=256 dtype=bf16", "b=1,hq=1,hkv=1,sq=1,sk=33,d=256", 2,
               2 * 33 * 512);
  check_decode(k, s, SPAN, "head_dim=128 dtype=f16", "b=2,hq=8,hkv=2,sq=1,sk=301,d=128", 7,
               2 * 2 * 2 * 301 * 256);
  check_decode(k, s, SPAN, "head_dim=128 dtype=f16 fused=0", "b=1,hq=8,hkv=1,sq=1,sk=301,d=128", 7,
               2 * 301 * 256);
  check_decode(k, s, SPAN, "head_dim=64 dtype=bf16", "b=3,hq=6,hkv=1,sq=2,sk=77,d=64", 50,
               3 * 2 * 77 * 128);
  check_decode(k, s, SPAN, "head_dim=256 dtype=bf16", "b=2,hq=1,hkv=1,sq=1,sk=33,d=256", 2,
               2 * 2 * 33 * 512);
  check_decode(k, s, SPAN, "head_dim=128 dtype=bf16 dtype_kv=e4m3",
               "b=2,hq=8,hkv=2,sq=1,sk=301,d=128", 7, 2 * 2 * 2 * 301 * 128);
  check_decode(k, s, SPAN, "head_dim=64 dtype=f16 dtype_kv=e5m2", "b=1,hq=6,hkv=1,sq=2,sk=77,d=64",
               3, 2 * 77 * 64);
  // K and V are one tensor: 1,152 bytes a key
  check_decode(k, s, LATENT, "dtype=bf16", "b=3,hq=16,hkv=1,sq=2,sk=301,d=576,dv=512", 7,
               3 * 301 * 1152);
  check_decode(k, s, LATENT, "dtype=bf16 fused=0", "b=1,hq=16,hkv=1,sq=2,sk=301,d=576,dv=512", 4,
               301 * 1152);
  check_decode(k, s, FMA, "tile_q=4", "b=2,hq=8,hkv=2,sq=1,sk=301,d=128", 7, 2 * 2 * 2 * 301 * 512);
  check_decode(k, s, FMA, "tile_q=8", "b=1,hq=16,hkv=2,sq=1,sk=301,d=128", 3, 2 * 2 * 301 * 512);
  session_close(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_decode_reads_once, kit_setup, kit_teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
