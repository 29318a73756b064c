// Tensor maps among the arguments of a run: from text, and over their arrays.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "run_ptx.h"

#define BAD(...) diag_error(d, NOWHERE, __VA_ARGS__)

// ---- words --------------------------------------------------------------------------------------
// "64x8x1": at most `most` numbers; 0 when it is none.
static int numbers(const char *text, uint64_t *out, int most) {
  for (int i = 0; i < most; i++) {
    char *end = (char *)text;
    out[i] = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    if (end == text || (*end && *end != 'x')) return 0;
    if (!*end) return i + 1;
    text = end + 1;
  }
  return 0;
}

static bool small_numbers(const char *text, uint32_t out[5], int *n) {
  uint64_t v[5];
  *n = numbers(text, v, 5);
  for (int i = 0; i < *n; i++) {
    if (!v[i] || v[i] > UINT32_MAX) return false;
    out[i] = (uint32_t)v[i];
  }
  return *n > 0;
}

static bool named(const char *text, const char *const *names, int n, uint8_t *out) {
  for (int i = 0; i < n; i++)
    if (names[i] && !strcmp(text, names[i])) {
      *out = (uint8_t)i;
      return true;
    }
  return false;
}

static bool word_box(RunArg *a, const char *v) { return small_numbers(v, a->map.box, &a->rank); }
static bool word_step(RunArg *a, const char *v) { return small_numbers(v, a->map.step, &a->steps); }
static bool word_dims(RunArg *a, const char *v) {
  return (a->dims = numbers(v, a->map.dim, 5)) > 0;
}
static bool word_strides(RunArg *a, const char *v) {
  return (a->strides = numbers(v, a->map.stride, 4)) > 0;
}
static bool word_offset(RunArg *a, const char *v) { return numbers(v, &a->offset, 1) == 1; }

static bool word_swizzle(RunArg *a, const char *v) { // by TENSOR_SWIZZLE_
  return named(v, (const char *const[]){"0", "32", "64", "128"}, 4, &a->map.swizzle);
}
static bool word_l2(RunArg *a, const char *v) {
  return named(v, (const char *const[]){"0", "64", "128", "256"}, 4, &a->map.l2);
}
static bool word_fill(RunArg *a, const char *v) { // by TENSOR_FILL_
  return named(v, (const char *const[]){"zero", "nan"}, 2, &a->map.fill);
}
static bool word_type(RunArg *a, const char *v) {
  static const char *const names[TENSOR_TYPES] = {
      [TENSOR_U8] = "u8",   [TENSOR_U16] = "u16", [TENSOR_U32] = "u32",   [TENSOR_S32] = "i32",
      [TENSOR_U64] = "u64", [TENSOR_S64] = "i64", [TENSOR_F16] = "f16",   [TENSOR_F32] = "f32",
      [TENSOR_F64] = "f64", [TENSOR_BF16] = "bf16", [TENSOR_F32_FTZ] = "f32ftz",
      [TENSOR_TF32] = "tf32", [TENSOR_TF32_FTZ] = "tf32ftz"};
  return a->typed = named(v, names, TENSOR_TYPES, &a->map.type);
}
static bool word_by(RunArg *a, const char *v) {
  a->pointer = !strcmp(v, "pointer");
  return a->pointer || !strcmp(v, "value");
}

static const struct TmapWord {
  const char *name, *shape;
  bool (*parse)(RunArg *, const char *);
} words[] = {
    {"box", "32x8, elements of a copy", word_box},
    {"dims", "64x100, elements of the tensor", word_dims},
    {"strides", "256x4096, bytes, of the second dimension and up", word_strides},
    {"offset", "elements in front of the tensor", word_offset},
    {"step", "1x2, element strides of the box", word_step},
    {"swizzle", "0, 32, 64 or 128", word_swizzle},
    {"fill", "zero or nan", word_fill},
    {"type", "u8 u16 u32 i32 u64 i64 f16 bf16 f32 f64 f32ftz tf32 or tf32ftz", word_type},
    {"l2", "0, 64, 128 or 256", word_l2},
    {"by", "value or pointer", word_by},
};
enum { NWORDS = sizeof words / sizeof *words };

static Status parse_word(Arena *a, RunArg *out, const char *item, Diag *d) {
  size_t n = strcspn(item, "=");
  for (int i = 0; i < NWORDS; i++)
    if (item[n] && strlen(words[i].name) == n && !memcmp(words[i].name, item, n))
      return words[i].parse(out, item + n + 1)
                 ? ST_OK
                 : BAD("--arg %s: \"%s\": %s= takes %s", out->spec, item, words[i].name,
                       words[i].shape);
  char *all = arena_strdup(a, "");
  for (int i = 0; i < NWORDS; i++)
    all = arena_printf(a, "%s%s%s=", all, i ? ", " : "", words[i].name);
  return BAD("--arg %s: \"%s\" is none of %s", out->spec, item, all);
}

Status run_tmap_parse(Arena *a, RunArg *out, const char *text, Diag *d) {
  out->role = RUN_TMAP;
  out->bytes = TENSOR_MAP_BYTES;
  out->data = arena_alloc(a, TENSOR_MAP_BYTES);
  char *end = (char *)text;
  long array = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : -1;
  if (array < 0 || array >= 1024 || *end != ',')
    return BAD("--arg %s: a tensor map is tmap:ARGUMENT,box=32x8 and more words", out->spec);
  out->array = (int)array;
  Status st = ST_OK;
  while (!st && *end) {
    const char *word = end + 1;
    size_t n = strcspn(word, ",");
    st = parse_word(a, out, arena_strndup(a, word, n), d);
    end = (char *)word + n;
  }
  if (!st && !out->rank) st = BAD("--arg %s: box= is missing", out->spec);
  int dims = out->dims ? out->dims : out->rank;
  if (!st && (dims != out->rank || (out->steps && out->steps != out->rank) ||
              (out->strides && out->strides != out->rank - 1)))
    st = BAD("--arg %s: a box of %d dimension%s has as many dims and steps, and one stride fewer",
             out->spec, out->rank, out->rank == 1 ? "" : "s");
  return st;
}

// ---- over the array -----------------------------------------------------------------------------
static int tensor_type(const RunType *t) {
  static const struct { NpyType npy; TensorType type; } types[] = {
      {NPY_U8, TENSOR_U8},   {NPY_I8, TENSOR_U8},   {NPY_U16, TENSOR_U16}, {NPY_I16, TENSOR_U16},
      {NPY_U32, TENSOR_U32}, {NPY_I32, TENSOR_S32}, {NPY_U64, TENSOR_U64}, {NPY_I64, TENSOR_S64},
      {NPY_F16, TENSOR_F16}, {NPY_F32, TENSOR_F32}, {NPY_F64, TENSOR_F64},
  };
  if (t->dtype == DT_BF16) return TENSOR_BF16;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].npy == t->npy) return types[i].type;
  return TENSOR_U8;
}

// What is not written follows from the array: its sizes, the last one first; dense rows.
static Status complete(RunArg *arg, const RunArg *of, TensorMapDesc *m, Diag *d) {
  if (!arg->typed) m->type = (uint8_t)tensor_type(of->type);
  if (!arg->dims && of->rank != arg->rank)
    return BAD("--arg %s: argument %d has %d dimension%s; with dims= it may have others than the "
               "box", arg->spec, arg->array, of->rank, of->rank == 1 ? "" : "s");
  for (int i = 0; i < arg->rank && !arg->dims; i++)
    m->dim[i] = (uint64_t)of->shape[of->rank - 1 - i];
  uint64_t row = (uint64_t)tensor_type_bytes((TensorType)m->type);
  for (int i = 0; i + 1 < arg->rank && !arg->strides; i++)
    if (__builtin_mul_overflow(row, m->dim[i], &row))
      return BAD("--arg %s: sizes beyond 2^64", arg->spec);
    else m->stride[i] = row;
  return ST_OK;
}

// The GPU would read what lies behind the array.
static Status inside(const RunArg *arg, const RunArg *of, const TensorMapDesc *m, Diag *d) {
  unsigned __int128 end = (unsigned __int128)arg->offset * (unsigned)of->type->bytes;
  for (int i = 0; i < arg->rank; i++) {
    if (!m->dim[i]) return ST_OK; // said by device_tensor_map
    uint64_t step = i ? m->stride[i - 1] : (uint64_t)tensor_type_bytes((TensorType)m->type);
    end += (unsigned __int128)(m->dim[i] - 1) * step;
  }
  end += (unsigned)tensor_type_bytes((TensorType)m->type);
  return end <= of->bytes ? ST_OK
                          : BAD("--arg %s: its last element is behind argument %d's %llu bytes",
                                arg->spec, arg->array, (unsigned long long)of->bytes);
}

Status run_tmap_encode(Device *dev, RunArg *arg, const RunArg *args, int n, Diag *d) {
  const RunArg *of = arg->array < n ? &args[arg->array] : NULL;
  if (!of || of->role < RUN_IN)
    return BAD("--arg %s: argument %d is no array", arg->spec, arg->array);
  TensorMapDesc m = arg->map;
  m.rank = (uint8_t)arg->rank;
  Status st = complete(arg, of, &m, d);
  if (!st) st = inside(arg, of, &m, d);
  m.address = of->ptr + arg->offset * (uint64_t)of->type->bytes;
  if (st) return st;
  st = device_tensor_map(dev, &m, arg->data, d);
  if (st) diag_add(d, SEV_NOTE, NOWHERE, "for --arg %s", arg->spec);
  return st;
}
