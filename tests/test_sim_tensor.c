// Tensor maps, and tensor copies of every rank, swizzle and fill, on PTXSMITH_DEVICE (else sim).
// The interpreter's own traps are tested on sim only.
#include <math.h>

#include "dtype.h"
#include "sim_kit.h"

enum { BOX_MOST = 32768 };

typedef struct Args {
  uint8_t map[TENSOR_MAP_BYTES];
  DevPtr data;
  uint32_t bytes;
  int32_t at[5];
} Args;

static uint32_t box_count(const TensorMapDesc *m, int d) {
  uint32_t step = d && m->step[d] ? m->step[d] : 1;
  return (m->box[d] + step - 1) / step;
}

static uint32_t box_bytes(const TensorMapDesc *m) {
  uint32_t n = (uint32_t)tensor_type_bytes((TensorType)m->type);
  for (int d = 0; d < m->rank; d++)
    n *= box_count(m, d);
  return n;
}

// Element `index` of the box: its offset in the tensor, or -1 when it is outside.
static int64_t source_of(const TensorMapDesc *m, const int32_t at[5], uint32_t index) {
  int64_t offset = 0;
  for (int d = 0; d < m->rank; d++) {
    int64_t x = at[d] + (int64_t)(index % box_count(m, d)) * (d && m->step[d] ? m->step[d] : 1);
    index /= box_count(m, d);
    if (x < 0 || x >= (int64_t)m->dim[d])
      return -1;
    offset += x * (d ? (int64_t)m->stride[d - 1] : tensor_type_bytes((TensorType)m->type));
  }
  return offset;
}

// ISA 5.5.7: bits of the row number are XORed into the number of the 16-byte chunk.
static uint32_t place(int swizzle, uint32_t offset) {
  static const uint32_t rows[] = {0, 1, 3, 7};
  return offset ^ (((offset >> 7) & rows[swizzle]) << 4);
}

static void fill_bytes(uint8_t *p, uint64_t n, uint32_t seed) {
  for (uint64_t i = 0; i < n; i++) {
    seed = seed * 1664525 + 1013904223;
    p[i] = (uint8_t)(seed >> 24);
  }
}

static void launch(Kit *k, const char *entry, Args *args, const TensorMapDesc *m) {
  static const char *const file = "tensor.ptx";
  Kernel *kernel = kit_load(k, file, entry);
  if (device_tensor_map(k->dev, m, args->map, k->diag) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
  Launch l = {.kernel = kernel, .grid = {1, 1, 1}, .block = {32, 1, 1}, .args = args,
              .smem = BOX_MOST + 1024, .arg_bytes = sizeof *args};
  Status st = device_launch(k->dev, &l, k->diag);
  if (st == ST_OK)
    st = device_sync(k->dev, k->diag);
  if (st != ST_OK)
    fail_msg("%s: %s", entry, diag_text(k->diag));
  kernel_free(kernel);
}

static bool is_nan(TensorType t, const uint8_t *p) {
  uint16_t h;
  float f;
  double d;
  memcpy(&h, p, 2);
  memcpy(&f, p, 4);
  memcpy(&d, p, tensor_type_bytes(t) == 8 ? 8 : 4);
  return t == TENSOR_F16    ? isnan(f16_to_double(h))
         : t == TENSOR_BF16 ? isnan(bf16_to_double(h))
         : t == TENSOR_F64  ? isnan(d)
                            : isnan(f);
}

// Loads the box at `at` and compares every byte of shared memory with the closed form.
static void check_load(Kit *k, TensorMapDesc m, uint64_t tensor_bytes, const int32_t at[5]) {
  uint32_t bytes = box_bytes(&m), size = (uint32_t)tensor_type_bytes((TensorType)m.type);
  uint8_t *tensor = malloc(tensor_bytes + 16), *got = malloc(bytes);
  fill_bytes(tensor, tensor_bytes, 7 * bytes + m.rank);
  DevPtr data;
  assert_int_equal(device_alloc(k->dev, tensor_bytes, "tensor", &m.address, k->diag), ST_OK);
  assert_int_equal(device_alloc(k->dev, bytes, "data", &data, k->diag), ST_OK);
  assert_int_equal(device_write(k->dev, m.address, tensor, tensor_bytes, k->diag), ST_OK);
  Args args = {.data = data, .bytes = bytes};
  memcpy(args.at, at, sizeof args.at);
  launch(k, arena_printf(k->arena, "load%d", m.rank), &args, &m);
  assert_int_equal(device_read(k->dev, got, data, bytes, k->diag), ST_OK);
  static const uint8_t zeros[8];
  for (uint32_t i = 0; i < bytes / size; i++) {
    int64_t from = source_of(&m, at, i);
    const uint8_t *g = got + place(m.swizzle, i * size);
    bool ok = from >= 0                     ? !memcmp(g, tensor + from, size)
              : m.fill == TENSOR_FILL_NAN ? is_nan((TensorType)m.type, g)
                                          : !memcmp(g, zeros, size);
    if (!ok)
      fail_msg("rank %d swizzle %d fill %d: element %u (tensor offset %lld) is wrong", m.rank,
               m.swizzle, m.fill, i, (long long)from);
  }
  device_free(k->dev, m.address);
  device_free(k->dev, data);
  free(tensor), free(got);
}

// ---- loads --------------------------------------------------------------------------------------
static void test_swizzles(void **state) {
  Kit *k = *state;
  for (uint8_t swizzle = 0; swizzle < 4; swizzle++) { // rows as wide as the swizzle
    uint32_t wide = (16u << (swizzle ? swizzle : 3)) / 2;
    TensorMapDesc m = {.dim = {96, 70}, .stride = {256}, .box = {wide, 64}, .type = TENSOR_F16,
                       .rank = 2, .swizzle = swizzle};
    check_load(k, m, 70 * 256, (int32_t[5]){0, 0});
    check_load(k, m, 70 * 256, (int32_t[5]){16, 5});
    check_load(k, m, 70 * 256, (int32_t[5]){-8, -3}); // clipped at the start
    check_load(k, m, 70 * 256, (int32_t[5]){88, 60}); // at the end
    check_load(k, m, 70 * 256, (int32_t[5]){96, 0});  // all outside
  }
}

static void test_ranks(void **state) {
  Kit *k = *state;
  TensorMapDesc m = {.dim = {20, 9, 5, 4, 3}, .stride = {96, 96 * 9, 96 * 9 * 5, 96 * 9 * 5 * 4},
                     .box = {8, 4, 3, 2, 2}, .type = TENSOR_U32};
  uint64_t bytes = 96 * 9 * 5 * 4 * 3;
  for (m.rank = 1; m.rank <= 5; m.rank++) {
    check_load(k, m, bytes, (int32_t[5]){4, 2, 1, 1, 1});
    check_load(k, m, bytes, (int32_t[5]){-4, -1, -1, -1, -1});
    check_load(k, m, bytes, (int32_t[5]){16, 7, 4, 3, 2});
  }
}

static void test_types_and_fills(void **state) {
  Kit *k = *state;
  static const TensorType types[] = {TENSOR_U8, TENSOR_U16, TENSOR_S32, TENSOR_U64, TENSOR_S64,
                                     TENSOR_F16, TENSOR_F32, TENSOR_F64, TENSOR_BF16};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    uint32_t size = (uint32_t)tensor_type_bytes(types[i]);
    TensorMapDesc m = {.dim = {64 / size, 10}, .stride = {64}, .box = {32 / size, 8},
                       .type = (uint8_t)types[i], .rank = 2, .swizzle = TENSOR_SWIZZLE_32B};
    for (m.fill = 0; m.fill <= (types[i] >= TENSOR_F16); m.fill++)
      check_load(k, m, 640, (int32_t[5]){(int32_t)(48 / size), -2});
  }
}

static void test_steps(void **state) {
  Kit *k = *state;
  TensorMapDesc m = {.dim = {16, 40, 6}, .stride = {64, 64 * 40}, .box = {16, 12, 3},
                     .step = {4, 3, 2}, .type = TENSOR_F32, .rank = 3};
  check_load(k, m, 64 * 40 * 6, (int32_t[5]){0, 5, 1});
  check_load(k, m, 64 * 40 * 6, (int32_t[5]){0, 34, -1});
}

// Rows narrower than the swizzle's span lie a span apart, and nothing is written between them; all
// of shared memory, against a formula.
static void check_narrow(Kit *k, uint32_t wide, uint32_t rows, uint8_t swizzle) {
  static struct {
    DevPtr x, pad[7];
    uint8_t map[TENSOR_MAP_BYTES];
    DevPtr y;
    uint32_t bytes;
    int32_t at[2];
  } args;
  uint16_t tensor[16 * 64], got[4096], want[4096];
  for (int i = 0; i < 16 * 64; i++)
    tensor[i] = (uint16_t)i;
  uint32_t from = wide < 64 ? 8 : 0;
  memset(want, 0xcd, sizeof want);
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t c = 0; c < wide; c++)
      want[place(swizzle, r * (16u << swizzle) + 2 * c) / 2] = tensor[64 * r + from + c];
  args.x = kit_words(k, "x", (uint32_t *)tensor, sizeof tensor / 4);
  args.y = kit_words(k, "y", NULL, 2048);
  args.bytes = 2 * wide * rows, args.at[0] = (int32_t)from;
  TensorMapDesc m = {.address = args.x, .dim = {64, 16}, .stride = {128}, .box = {wide, rows},
                     .type = TENSOR_U16, .rank = 2, .swizzle = swizzle};
  assert_int_equal(device_tensor_map(k->dev, &m, args.map, k->diag), ST_OK);
  Kernel *kernel = kit_load(k, "../gpu/tensor_maps.ptx", "box2");
  kit_run(k, kernel, 1, 128, &args, offsetof(typeof(args), at) + sizeof args.at);
  kit_read(k, args.y, (uint32_t *)got, 2048);
  for (int i = 0; i < 4096; i++)
    if (got[i] != want[i])
      fail_msg("%u wide, swizzle %u: half-word %d is %x, not %x", wide, swizzle, i, got[i],
               want[i]);
  kernel_free(kernel);
  device_free(k->dev, args.x);
  device_free(k->dev, args.y);
}

static void test_narrow(void **state) {
  for (uint8_t swizzle = 1; swizzle <= 3; swizzle++)
    for (uint32_t wide = 8; wide <= 8u << swizzle; wide += 8)
      check_narrow(*state, wide, 13, swizzle);
}

// ---- stores and reductions ----------------------------------------------------------------------
static uint64_t word_of(const uint8_t *p) {
  uint32_t u;
  memcpy(&u, p, 4);
  return u;
}

static uint32_t reduced(const char *kind, uint32_t old, uint32_t b) {
  return !strcmp(kind, "add")   ? old + b
         : !strcmp(kind, "min") ? (b < old ? b : old)
         : !strcmp(kind, "max") ? (b > old ? b : old)
         : !strcmp(kind, "inc") ? (old >= b ? 0 : old + 1)
         : !strcmp(kind, "dec") ? (old == 0 || old > b ? b : old - 1)
         : !strcmp(kind, "and") ? (old & b)
         : !strcmp(kind, "or")  ? (old | b)
         : !strcmp(kind, "xor") ? (old ^ b)
                                : b;
}

// Stores the box and compares the whole tensor: words only.
static void check_store(Kit *k, TensorMapDesc m, uint64_t tensor_bytes, const int32_t at[5],
                        const char *kind) {
  uint32_t bytes = box_bytes(&m);
  uint8_t *tensor = malloc(tensor_bytes), *got = malloc(tensor_bytes), *box = malloc(bytes);
  fill_bytes(tensor, tensor_bytes, 3);
  fill_bytes(box, bytes, 99);
  Args args = {.bytes = bytes};
  assert_int_equal(device_alloc(k->dev, tensor_bytes, "tensor", &m.address, k->diag), ST_OK);
  assert_int_equal(device_alloc(k->dev, bytes, "data", &args.data, k->diag), ST_OK);
  assert_int_equal(device_write(k->dev, m.address, tensor, tensor_bytes, k->diag), ST_OK);
  assert_int_equal(device_write(k->dev, args.data, box, bytes, k->diag), ST_OK);
  memcpy(args.at, at, sizeof args.at);
  launch(k,
         kind ? arena_printf(k->arena, "reduce_%s", kind)
              : arena_printf(k->arena, "store%d", m.rank),
         &args, &m);
  assert_int_equal(device_read(k->dev, got, m.address, tensor_bytes, k->diag), ST_OK);
  for (uint32_t i = 0; i < bytes / 4; i++) {
    int64_t to = source_of(&m, at, i);
    if (to < 0)
      continue;
    uint32_t b = (uint32_t)word_of(box + place(m.swizzle, 4 * i));
    uint32_t v = reduced(kind ? kind : "", (uint32_t)word_of(tensor + to), b);
    memcpy(tensor + to, &v, 4);
  }
  if (memcmp(got, tensor, tensor_bytes))
    fail_msg("%s of rank %d, swizzle %d", kind ? kind : "store", m.rank, m.swizzle);
  device_free(k->dev, m.address);
  device_free(k->dev, args.data);
  free(tensor), free(got), free(box);
}

static void test_stores(void **state) {
  Kit *k = *state;
  TensorMapDesc m = {.dim = {20, 9, 5, 4, 3}, .stride = {96, 96 * 9, 96 * 9 * 5, 96 * 9 * 5 * 4},
                     .box = {8, 4, 3, 2, 2}, .type = TENSOR_U32};
  for (m.rank = 1; m.rank <= 5; m.rank++) {
    check_store(k, m, 96 * 9 * 5 * 4 * 3, (int32_t[5]){4, 2, 1, 1, 1}, NULL);
    check_store(k, m, 96 * 9 * 5 * 4 * 3, (int32_t[5]){16, 7, 4, 3, 2}, NULL); // clipped
  }
  for (uint8_t swizzle = 0; swizzle < 4; swizzle++) {
    TensorMapDesc s = {.dim = {40, 20}, .stride = {160}, .box = {swizzle ? 4u << swizzle : 32, 16},
                       .type = TENSOR_U32, .rank = 2, .swizzle = swizzle};
    check_store(k, s, 160 * 20, (int32_t[5]){8, 8}, NULL);
  }
}

static void test_reductions(void **state) {
  Kit *k = *state;
  static const char *const kinds[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  TensorMapDesc m = {.dim = {40, 20}, .stride = {160}, .box = {32, 16}, .type = TENSOR_U32,
                     .rank = 2, .swizzle = TENSOR_SWIZZLE_128B};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    check_store(k, m, 160 * 20, (int32_t[5]){16, 8}, kinds[i]);
}

// ---- misuse, on sim -----------------------------------------------------------------------------
static void expect_trap(Kit *k, const char *entry, const TensorMapDesc *m, Args args,
                        const char *what) {
  Kernel *kernel = kit_load(k, "tensor.ptx", entry);
  if (m)
    assert_int_equal(device_tensor_map(k->dev, m, args.map, k->diag), ST_OK);
  Launch l = {.kernel = kernel, .grid = {1, 1, 1}, .block = {32, 1, 1}, .args = &args,
              .smem = BOX_MOST + 1024, .arg_bytes = sizeof args};
  assert_int_equal(device_launch(k->dev, &l, k->diag), ST_FAILED);
  if (strncmp(k->diag->first->what, what, strlen(what)))
    fail_msg("%s\nexpected: %s", k->diag->first->what, what);
  diag_reset(k->diag);
  kernel_free(kernel);
}

static void test_misuse(void **state) {
  Kit *k = *state;
  DevPtr p = kit_fill(k, "tensor", 1, 1024), small = kit_fill(k, "small", 1, 1000);
  TensorMapDesc m = {.address = p, .dim = {32, 32}, .stride = {128}, .box = {32, 8},
                     .type = TENSOR_U32, .rank = 2};
  Args a = {.data = p, .bytes = 1024};
  expect_trap(k, "load2", NULL, a,
              "there is no tensor map at this address: cp.async.bulk.tensor.2d");
  expect_trap(k, "load3", &m, a, "3 coordinates for a tensor map of rank 2");
  a.at[0] = 6;
  expect_trap(k, "load2", &m, a,
              "coordinate 0 is 6: 24 bytes into a row, which must be a multiple of "
              "16");
  expect_trap(k, "store2", &m, a, "coordinate 0 is 6: 24 bytes into a row");
  a.at[0] = 0;
  a.at[1] = -1;
  expect_trap(k, "store2", &m, a, "a store at coordinate -1 of dimension 1: it can't be negative");
  a.at[0] = 2, a.at[1] = 0;
  expect_trap(k, "store2", &m, a,
              "coordinate 0 is 2: 8 bytes into a row, which must be a multiple of 16");
  a.at[0] = 0;
  a.at[1] = 24; // the last rows of a tensor that is larger than its buffer
  m.address = small;
  expect_trap(k, "load2", &m, a, "out of bounds: reads 128 bytes at offset 3968 of \"small\" (4000 "
                                 "bytes)");
  m.type = TENSOR_F32; // no such reduction
  m.address = p;
  expect_trap(k, "reduce_min", &m, a, "a reduction that the tensor map's type does not have");
  m.box[1] = 4; // half of what the kernel expects
  expect_trap(k, "load2", &m, a, "deadlock: no thread of the block can go on");
  uint8_t copy[TENSOR_MAP_BYTES];
  assert_int_equal(device_tensor_map(k->dev, &m, copy, k->diag), ST_OK);
  memcpy(a.map, copy, sizeof copy);
  a.map[30] ^= 1; // overwritten
  expect_trap(k, "load2", NULL, a, "there is no tensor map at this address");
}

// The map in global memory, the destination off the 128 bytes that tensor copies need.
static void test_global_map(void **state) {
  Kit *k = *state;
  static const char body[] =
      ".shared .align 128 .b8 s[1024]; .shared .align 8 .b64 b;\nmov.u32 %r1, s; mov.u32 %r2, b;\n"
      "mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;\n"
      "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;\n"
      "mov.u32 %r3, 4; cvt.u32.u64 %r4, %rd2; add.u32 %r1, %r1, %r4;\n"
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
      "[%rd0, {%r3}], [%r2];\n"
      "W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W;\n"
      "ld.shared.u32 %r5, [%r1]; st.global.u32 [%rd1], %r5;";
  uint32_t words[32], got;
  for (uint32_t i = 0; i < 32; i++)
    words[i] = 100 + i;
  TensorMapDesc m = {.address = kit_words(k, "tensor", words, 32), .dim = {32}, .box = {16},
                     .type = TENSOR_U32, .rank = 1};
  uint32_t map[TENSOR_MAP_BYTES / 4];
  assert_int_equal(device_tensor_map(k->dev, &m, map, k->diag), ST_OK);
  DevPtr args[3] = {kit_words(k, "map", map, TENSOR_MAP_BYTES / 4), kit_words(k, "out", NULL, 1),
                    0};
  Kernel *kernel = kit_body(k, 3, body);
  kit_run(k, kernel, 1, 1, args, sizeof args);
  kit_read(k, args[1], &got, 1);
  assert_int_equal(got, 104);
  args[2] = 16;
  assert_int_equal(kit_try(k, kernel, 1, 1, args, sizeof args), ST_FAILED);
  assert_non_null(strstr(k->diag->first->what,
                         "misaligned: the destination is at offset 16 of shared "
                         "memory, which is no multiple of 128"));
}

// ---- maps ---------------------------------------------------------------------------------------
static void expect_bad(Kit *k, TensorMapDesc m, const char *what) {
  uint8_t map[TENSOR_MAP_BYTES];
  diag_reset(k->diag);
  assert_int_equal(device_tensor_map(k->dev, &m, map, k->diag), ST_INPUT);
  assert_int_equal(k->diag->errors, 1);
  assert_string_equal(k->diag->first->what, what);
  diag_reset(k->diag);
}

static void test_bad_maps(void **state) {
  Kit *k = *state;
  DevPtr p;
  assert_int_equal(device_alloc(k->dev, 4096, "p", &p, k->diag), ST_OK);
  const TensorMapDesc good = {.address = p, .dim = {64, 8, 1}, .stride = {128, 1024},
                              .box = {64, 8, 1}, .type = TENSOR_F16, .rank = 3, .swizzle = 3};
  uint8_t map[TENSOR_MAP_BYTES];
  assert_int_equal(device_tensor_map(k->dev, &good, map, k->diag), ST_OK);
  TensorMapDesc m;
#define BAD(change, what)                                                                          \
  m = good;                                                                                        \
  change;                                                                                          \
  expect_bad(k, m, "tensor map: " what)
  BAD(m.rank = 0, "rank 0: 1 to 5");
  BAD(m.rank = 6, "rank 6: 1 to 5");
  BAD((m.interleave = 1, m.swizzle = 0),
      "interleave 1: only 0, none: the layout of the others in shared "
      "memory is not documented");
  BAD(m.type = 16, "type 16 is not one of the 16 types");
  BAD(m.type = TENSOR_U4_ALIGN8, "type 13 needs sm_100");
  BAD(m.swizzle = 4, "swizzle 4: 0 none, 1 32 bytes, 2 64 bytes, 3 128 bytes");
  BAD((m.interleave = 2, m.swizzle = 1),
      "interleave 2: only 0, none: the layout of the others in shared "
      "memory is not documented");
  BAD((m.type = TENSOR_U16, m.fill = 1), "filling with NaN needs a floating-point type");
  m = good;
  m.address += 8;
  expect_bad(k, m, arena_printf(k->arena, "tensor map: address 0x%llx is not a multiple of 16",
                                (unsigned long long)m.address));
  BAD(m.dim[1] = 0, "dimension 1 has 0 elements: 1 to 2^32");
  BAD(m.dim[0] = (UINT64_C(1) << 32) + 1, "dimension 0 has 4294967297 elements: 1 to 2^32");
  BAD(m.stride[0] = 136, "dimension 1 has a stride of 136 bytes, which is no multiple of 16");
  BAD(m.stride[1] = UINT64_C(1) << 40,
      "dimension 2 has a stride of 1099511627776 bytes: less than 2^40");
  BAD(m.box[1] = 257, "the box has 257 elements in dimension 1: 1 to 256");
  BAD(m.box[2] = 0, "the box has 0 elements in dimension 2: 1 to 256");
  BAD(m.step[1] = 9, "an element stride of 9 in dimension 1: 1 to 8");
  BAD(m.box[0] = 4, "the box is 8 bytes wide, which is no multiple of 16");
  BAD(m.box[0] = 72, "the box is 144 bytes wide: 128 at most with this swizzle");
  device_free(k->dev, p);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup_anywhere, kit_teardown)
#define S(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {
      T(test_swizzles), T(test_ranks),      T(test_types_and_fills), T(test_steps), T(test_narrow),
      T(test_stores),   T(test_reductions), T(test_bad_maps),
      S(test_misuse),   S(test_global_map)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
