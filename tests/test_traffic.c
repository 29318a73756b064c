// The traffic of our templates: the decode kernels read every byte of K and V once, whatever the
// chunks, the tails and the group.  And the products that prefill_mma and prefill_wgmma make of cut
// tiles.
#include "dense.h"
#define KIT_SANITIZE false
#include "sim_kit.h"

// Made, bound and launched once.
static Operator *launched(Kit *k, Session *s, const char *name, const char *params,
                          const char *values, int64_t chunks, Dense *buffers) {
  Params given = {0};
  Problem *p = NULL;
  Operator *op = NULL;
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
  if (!st) st = dense_bind(k->dev, op, 1, buffers, k->diag);
  if (!st) st = operator_launch(op, k->dev, k->diag);
  if (st) fail_msg("%s", diag_text(k->diag));
  return op;
}

// mark: what the loads of K and V say.
static void check_decode(Kit *k, Session *s, const char *name, const char *mark, const char *params,
                         const char *values, int64_t chunks, uint64_t kv_bytes) {
  Dense buffers = {0};
  Operator *op = launched(k, s, name, params, values, chunks, &buffers);
  KernelCounts n;
  assert_true(kernel_counts(op->step[0].kernel, &n));
  uint64_t read = 0, sectors = 0, bytes = 0;
  for (int i = 0; i < n.nbuffers; i++)
    if (!strcmp(n.buffer[i].name, "k") || !strcmp(n.buffer[i].name, "v"))
      read += n.buffer[i].read;
  for (int i = 0; i < n.n; i++)
    if (ptx_inst_has(n.site[i].in, mark)) {
      const SpaceCount *g = n.count[i].global;
      sectors += g[COUNT_LOAD].units + g[COUNT_COPY].units + g[COUNT_BULK_READ].units;
      bytes += g[COUNT_LOAD].bytes + g[COUNT_COPY].bytes + g[COUNT_BULK_READ].bytes;
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
#define FEW "decode_latent_few", "async"
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
  check_decode(k, s, SPAN, "head_dim=128 dtype=f16 box=16", "b=2,hq=8,hkv=2,sq=1,sk=301,d=128", 7,
               2 * 2 * 2 * 301 * 256);
  check_decode(k, s, SPAN, "head_dim=96 dtype=bf16 box=8", "b=1,hq=6,hkv=1,sq=2,sk=77,d=96", 3,
               2 * 77 * 192);
  check_decode(k, s, SPAN, "head_dim=256 dtype=bf16 dtype_kv=e4m3 box=32",
               "b=2,hq=8,hkv=2,sq=1,sk=301,d=256", 7, 2 * 2 * 2 * 301 * 256);
  // K and V are one tensor: 1,152 bytes a key
  check_decode(k, s, LATENT, "dtype=bf16", "b=3,hq=16,hkv=1,sq=2,sk=301,d=576,dv=512", 7,
               3 * 301 * 1152);
  check_decode(k, s, LATENT, "dtype=bf16 fused=0", "b=1,hq=16,hkv=1,sq=2,sk=301,d=576,dv=512", 4,
               301 * 1152);
  check_decode(k, s, FEW, "dtype=bf16", "b=3,hq=16,hkv=1,sq=1,sk=301,d=576,dv=512", 7,
               3 * 301 * 1152);
  check_decode(k, s, FEW, "dtype=bf16 tile_q=32 fused=0",
               "b=1,hq=16,hkv=1,sq=2,sk=301,d=576,dv=512", 4, 301 * 1152);
  check_decode(k, s, FMA, "tile_q=4", "b=2,hq=8,hkv=2,sq=1,sk=301,d=128", 7, 2 * 2 * 2 * 301 * 512);
  check_decode(k, s, FMA, "tile_q=8", "b=1,hq=16,hkv=2,sq=1,sk=301,d=128", 3, 2 * 2 * 301 * 512);
  session_close(s);
}

// Products of 16 x 8 x 16 that one head needs whose warps have 32 rows: of each tile of 64 keys
// none, where a warp's rows see none, `narrow` keys where these hold all that it sees, else 64.
// Rows see the `left` keys before their own, a multiple of 16 keys after row 0's begins.
static uint64_t products(int sq, int sk, int left, bool causal, int narrow, int d) {
  uint64_t made = 0;
  for (int first = 0; first < sq; first += 32)
    for (int key = 0; key < sk; key += 64) {
      int from = 0, to = sk - key < 64 ? sk - key : 64;
      if (left >= 0 && first + sk - sq - left > key) from = first + sk - sq - left - key;
      if (causal && first + 32 + sk - sq - key < to) to = first + 32 + sk - sq - key;
      if (to <= from) continue;
      int start = from / 16 * 16 < 64 - narrow ? from / 16 * 16 : 64 - narrow;
      int width = to - start <= narrow ? narrow : 64;
      made += 2 * (uint64_t)(width / 8 * (d / 16) + width / 16 * (d / 8)); // S, O
    }
  return made;
}

static void test_narrow_products(void **state) {
  static const struct {
    int sq, sk, left, causal, narrow, d;
    const char *more;
  } cases[] = {{320, 320, 96, 1, 32, 64, ""},
               {320, 351, 77, 1, 16, 64, " stages=1"},
               {200, 330, 130, 1, 48, 128, ""},
               {170, 170, -1, 1, 32, 64, " tile_q=128 warps=4"},
               {20, 80, -1, 0, 16, 64, " tile_q=128 warps=4 slack=8"}};
  Kit *k = *state;
  Session *s = session_open(NULL, k->diag);
  device_sim_opts(k->dev, &(SimOpts){.counters = true});
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Dense buffers = {0};
    const char *params = arena_printf(k->arena, "tile_q=64 warps=2 tile_k=64 narrow=%d%s",
                                      cases[i].narrow, cases[i].more);
    const char *window =
        cases[i].left < 0 ? "" : arena_printf(k->arena, ",wl=%d", cases[i].left);
    const char *values =
        arena_printf(k->arena, "b=1,hq=1,sq=%d,sk=%d,d=%d,dtype=f16,causal=%d%s", cases[i].sq,
                     cases[i].sk, cases[i].d, cases[i].causal, window);
    Operator *op = launched(k, s, "prefill_mma", params, values, 1, &buffers);
    KernelCounts n;
    assert_true(kernel_counts(op->step[0].kernel, &n));
    uint64_t made = 0;
    for (int j = 0; j < n.n; j++)
      if (ptx_inst_has(n.site[j].in, "m16n8k16")) made += n.count[j].warps;
    assert_int_equal(made, products(cases[i].sq, cases[i].sk, cases[i].left, cases[i].causal,
                                    cases[i].narrow, cases[i].d));
    dense_free(k->dev, &buffers);
    operator_free(op);
  }
  session_close(s);
}

// Rows of 64: 512 .. 575 see the keys 256 .. 575, 576 .. 639 see 320 .. 639. Of the tiles from 256,
// 384, 512 on each warpgroup has one of which it sees a half: its S has 64 columns, other S and O
// have 128.
static void test_half_products(void **state) {
  Kit *k = *state;
  Session *s = session_open(NULL, k->diag);
  device_sim_opts(k->dev, &(SimOpts){.counters = true});
  Dense buffers = {0};
  Operator *op = launched(k, s, "prefill_wgmma", "half=1",
                          "b=1,hq=1,sq=128,sk=640,d=128,dtype=f16,causal=1,wl=256", 1, &buffers);
  KernelCounts n;
  assert_true(kernel_counts(op->step[0].kernel, &n));
  uint64_t narrow = 0, wide = 0;
  for (int j = 0; j < n.n; j++) {
    if (n.site[j].in->shape_n == 64) narrow += n.count[j].warps;
    if (n.site[j].in->shape_n == 128) wide += n.count[j].warps;
  }
  int steps = 4 * 128 / 16;                      // of a product, by four warps
  assert_int_equal(narrow, 2 * steps);           // S
  assert_int_equal(wide, (2 * 2 + 2 * 3) * steps); // S, O
  dense_free(k->dev, &buffers);
  operator_free(op);
  session_close(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_decode_reads_once, kit_setup, kit_teardown),
      cmocka_unit_test_setup_teardown(test_narrow_products, kit_setup, kit_teardown),
      cmocka_unit_test_setup_teardown(test_half_products, kit_setup, kit_teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
