// Arguments of a kernel from text.
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../gen/number.h"
#include "run_ptx.h"

static const RunType run_types[] = {
#define X(name, bytes, npy, dtype) {#name, bytes, NPY_##npy, DT_##dtype},
    RUN_TYPES(X)
#undef X
};
enum { NRUN_TYPES = sizeof run_types / sizeof *run_types };

static const RunType *type_named(const char *name, size_t n) {
  for (int i = 0; i < NRUN_TYPES; i++)
    if (strlen(run_types[i].name) == n && !memcmp(run_types[i].name, name, n)) return &run_types[i];
  return NULL;
}

// The last that fits: bytes and halves of a file are plain integers, not fp8 and bf16.
static const RunType *type_of_npy(NpyType t) {
  const RunType *found = NULL;
  for (int i = 0; i < NRUN_TYPES; i++)
    if (run_types[i].npy == t) found = &run_types[i];
  return found;
}

#define BAD(...) diag_error(d, NOWHERE, __VA_ARGS__)

// ---- values -------------------------------------------------------------------------------------
static bool integer_fits(const RunType *t, bool negative, unsigned long long v) {
  int bits = 8 * t->bytes;
  if (t->name[0] == 'u') return !negative && (bits == 64 || v >> bits == 0);
  return v <= (UINT64_C(1) << (bits - 1)) - !negative;
}

// One element from text; false when it is no number of the type.
static bool parse_element(const RunType *t, const char *text, uint8_t *out) {
  char *end;
  errno = 0;
  if (!*text || isspace((unsigned char)*text)) return false;
  if (t->dtype != DT_COUNT) {
    double v = number_parse(text, &end);
    if (*end || end == text || (isinf(v) && errno == ERANGE)) return false;
    dtype_store(t->dtype, out, v);
    return !isfinite(v) || isfinite(dtype_load(t->dtype, out));
  }
  bool negative = *text == '-';
  unsigned long long v = strtoull(text + negative, &end, 0);
  if (*end || !isdigit((unsigned char)text[negative]) || errno || !integer_fits(t, negative, v))
    return false;
  v = negative ? -v : v;
  memcpy(out, &v, (size_t)t->bytes); // little-endian hosts only, as everywhere
  return true;
}

static void integer_store(const RunType *t, uint8_t *out, uint64_t v) {
  memcpy(out, &v, (size_t)t->bytes);
}

static uint64_t splitmix(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// "iota": 0, 1, 2 ...; "random": uniform in [-1, 1), or any integer; else one value for all.
static Status fill(RunArg *arg, const char *how, uint64_t seed, Diag *d) {
  const RunType *t = arg->type;
  bool iota = !strcmp(how, "iota"), is_random = !strcmp(how, "random");
  uint8_t one[8] = {0};
  if (!iota && !is_random && !parse_element(t, how, one))
    return BAD("--arg %s: \"%s\" is neither iota nor random nor a value of %s", arg->spec, how,
               t->name);
  for (int64_t i = 0; i < arg->count; i++) {
    uint8_t *at = arg->data + i * t->bytes;
    uint64_t r = is_random ? splitmix(&seed) : (uint64_t)i;
    if (!iota && !is_random) memcpy(at, one, (size_t)t->bytes);
    else if (t->dtype == DT_COUNT) integer_store(t, at, r);
    else dtype_store(t->dtype, at, iota ? (double)i : (double)(int64_t)(r >> 11) * 0x1p-52 - 1);
  }
  return ST_OK;
}

// ---- arrays -------------------------------------------------------------------------------------
// Asked of the machine first: a system that overcommits would grant it and kill the program later.
static bool fits_in_memory(uint64_t bytes) {
  return bytes / (uint64_t)sysconf(_SC_PAGESIZE) < (uint64_t)sysconf(_SC_PHYS_PAGES);
}

static Status make_room(RunArg *out, Diag *d) {
  out->data = fits_in_memory(out->bytes) ? calloc(1, out->bytes + 1) : NULL;
  return out->data ? ST_OK
                   : diag_fail(d, ST_DEVICE, "--arg %s: not enough host memory for %llu bytes",
                               out->spec, (unsigned long long)out->bytes);
}

// "f32[64,32]", and "=how" behind it; *rest points at what follows the bracket.
static Status array_shape(Arena *a, RunArg *out, const char *text, const char **rest, Diag *d) {
  size_t n = strcspn(text, "[");
  out->type = type_named(text, n);
  if (!out->type)
    return BAD("--arg %s: no element type \"%s\"; f64 f32 f16 bf16 e4m3 e5m2 and i8 to u64 are",
               out->spec, arena_strndup(a, text, n));
  const char *at = text + n;
  out->count = 1;
  do {
    char *end = (char *)at + 1;
    long long v = isdigit((unsigned char)at[1]) ? strtoll(at + 1, &end, 10) : -1;
    if ((*end == ',' || *end == ']') && v >= 0 &&
        (__builtin_mul_overflow(out->count, v, &out->count) || out->count > INT64_C(1) << 40))
      return BAD("--arg %s: more than 2^40 elements", out->spec);
    if ((*end != ',' && *end != ']') || v < 0 || out->rank == TENSOR_MAX_RANK)
      return BAD("--arg %s: an array is TYPE[N,...], with at most %d sizes", out->spec,
                 TENSOR_MAX_RANK);
    out->shape[out->rank++] = v;
    at = end;
  } while (*at == ',');
  *rest = at + 1;
  out->bytes = (uint64_t)out->count * (uint64_t)out->type->bytes;
  return make_room(out, d);
}

static Status array_file(RunArg *out, const char *path, Diag *d) {
  NpyArray npy;
  char *bytes;
  Status st = npy_read(path, &npy, &bytes, d);
  if (st) return st;
  out->type = type_of_npy(npy.type);
  out->rank = npy.rank;
  memcpy(out->shape, npy.shape, sizeof out->shape);
  out->count = npy.count;
  out->bytes = (uint64_t)npy.count * (uint64_t)out->type->bytes;
  st = make_room(out, d);
  if (!st) memcpy(out->data, npy.data, out->bytes);
  free(bytes);
  return st;
}

static Status parse_array(Arena *a, RunArg *out, const char *text, uint64_t seed, Diag *d) {
  size_t n = strlen(text);
  bool is_file = n > 4 && !strcmp(text + n - 4, ".npy");
  if (out->role != RUN_OUT && is_file) return array_file(out, text, d);
  const char *rest = "";
  if (!strchr(text, '['))
    return BAD(out->role == RUN_OUT
                   ? "--arg %s: an output is out:TYPE[N,...], as out:f32[64,32]"
                   : "--arg %s: an input is FILE.npy or TYPE[N,...]=iota, random or "
                     "a value",
               out->spec);
  Status st = array_shape(a, out, text, &rest, d);
  if (st) return st;
  if (out->role == RUN_OUT)
    return *rest ? BAD("--arg %s: an output has no contents before the launch", out->spec) : ST_OK;
  if (*rest != '=')
    return BAD("--arg %s: say what it holds: =iota, =random or =VALUE", out->spec);
  return fill(out, rest + 1, seed, d);
}

static Status parse_bytes(Arena *a, RunArg *out, const char *hex, Diag *d) {
  size_t n = strlen(hex);
  if (!n || n % 2 || strspn(hex, "0123456789abcdefABCDEF") != n)
    return BAD("--arg %s: bytes are pairs of hexadecimal digits", out->spec);
  out->bytes = n / 2;
  out->data = arena_alloc(a, out->bytes);
  for (size_t i = 0; i < out->bytes; i++) {
    char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
    out->data[i] = (uint8_t)strtoul(pair, NULL, 16);
  }
  return ST_OK;
}

Status run_arg_parse(Arena *a, const char *spec, uint64_t seed, RunArg *out, Diag *d) {
  static const char *const roles[] = {"", "tmap", "in", "inout", "out"}; // by RunRole
  *out = (RunArg){.spec = arena_strdup(a, spec)};
  const char *colon = strchr(spec, ':'), *text = colon ? colon + 1 : "";
  size_t n = colon ? (size_t)(colon - spec) : 0;
  for (int r = RUN_IN; colon && r <= RUN_OUT; r++)
    if (strlen(roles[r]) == n && !memcmp(roles[r], spec, n)) {
      out->role = (RunRole)r;
      return parse_array(a, out, text, seed, d);
    }
  if (n == 4 && !memcmp(spec, "tmap", 4)) return run_tmap_parse(a, out, text, d);
  if (n == 5 && !memcmp(spec, "bytes", 5)) return parse_bytes(a, out, text, d);
  out->type = n ? type_named(spec, n) : NULL;
  if (!out->type)
    return BAD(
        "--arg %s: an argument is in:, inout:, out:, tmap:, bytes: or a scalar such as i32:7",
        spec);
  out->bytes = (uint64_t)out->type->bytes;
  out->data = arena_alloc(a, 8);
  if (!parse_element(out->type, text, out->data))
    return BAD("--arg %s: \"%s\" is no %s", spec, text, out->type->name);
  return ST_OK;
}

void run_args_free(RunArg *args, int n) {
  for (int i = 0; i < n; i++)
    if (args[i].role >= RUN_IN) {
      free(args[i].data);
      args[i].data = NULL;
    }
}

// ---- tolerance ----------------------------------------------------------------------------------
Status run_tolerance(Arena *a, const char *text, Tolerance *out, Diag *d) {
  *out = (Tolerance){.abs = -1, .rel = -1, .ulps = -1};
  for (const char *at = text; *at;) {
    size_t n = strcspn(at, "=");
    double *to = n == 3 && !memcmp(at, "abs", 3)    ? &out->abs
                 : n == 3 && !memcmp(at, "rel", 3)  ? &out->rel
                 : n == 4 && !memcmp(at, "ulps", 4) ? &out->ulps
                                                    : NULL;
    char *end = (char *)at;
    double v = to && at[n] ? number_parse(at + n + 1, &end) : -1;
    if (!to || !(v >= 0) || !isfinite(v) || (*end && *end != ','))
      return BAD("--tolerance: \"%s\" is not abs=A, rel=R or ulps=U with numbers of 0 and more",
                 arena_strdup(a, at));
    if (*to >= 0) return BAD("--tolerance: %.*s is given twice", (int)n, at);
    *to = v;
    at = *end ? end + 1 : end;
  }
  double *all[] = {&out->abs, &out->rel, &out->ulps};
  for (int i = 0; i < 3; i++)
    if (*all[i] < 0) *all[i] = 0;
  return ST_OK;
}
