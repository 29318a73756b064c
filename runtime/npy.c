#include "npy.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outfile.h"
#include "verify_data.h"

// ---- header ------------------------------------------------------------------------------------
// magic, major, minor, header length (2 bytes in version 1, else 4), then a Python dictionary:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (1, 96, 12, 32), }
typedef struct Cursor {
  const char *p, *end;
} Cursor;

static void skip_space(Cursor *c) {
  while (c->p < c->end && isspace((unsigned char)*c->p)) c->p++;
}

static bool take(Cursor *c, char ch) {
  skip_space(c);
  if (c->p == c->end || *c->p != ch) return false;
  c->p++;
  return true;
}

static bool take_word(Cursor *c, const char *word) {
  size_t n = strlen(word);
  skip_space(c);
  if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n)) return false;
  c->p += n;
  return true;
}

// A quoted string without escapes, into buf.
static bool take_string(Cursor *c, char *buf, size_t size) {
  skip_space(c);
  if (c->p == c->end || (*c->p != '\'' && *c->p != '"')) return false;
  char quote = *c->p++;
  size_t n = 0;
  while (c->p < c->end && *c->p != quote) {
    if (n + 1 == size || *c->p == '\\' || !*c->p) return false;
    buf[n++] = *c->p++;
  }
  buf[n] = 0;
  return c->p < c->end && *c->p++ == quote;
}

static bool take_size(Cursor *c, int64_t *out) {
  skip_space(c);
  const char *start = c->p;
  *out = 0;
  while (c->p < c->end && isdigit((unsigned char)*c->p))
    if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, *c->p++ - '0', out))
      return false;
  return c->p > start;
}

static bool take_shape(Cursor *c, NpyArray *a) {
  if (!take(c, '(')) return false;
  a->rank = 0;
  while (!take(c, ')')) {
    if (a->rank == TENSOR_MAX_RANK || !take_size(c, &a->shape[a->rank++])) return false;
    if (take(c, ',')) continue;
    return a->rank > 1 && take(c, ')'); // "(3)" is no tuple
  }
  return true;
}

static const struct {
  const char *descr;
  NpyType type;
  int bytes;
} npy_types[] = {
    {"<f8", NPY_F64, 8}, {"<f4", NPY_F32, 4}, {"<f2", NPY_F16, 2}, {"<u2", NPY_U16, 2},
    {"|i1", NPY_I8, 1},  {"|u1", NPY_U8, 1},  {"<i2", NPY_I16, 2}, {"<i4", NPY_I32, 4},
    {"<u4", NPY_U32, 4}, {"<i8", NPY_I64, 8}, {"<u8", NPY_U64, 8}};
enum { NTYPES = sizeof npy_types / sizeof *npy_types };

int npy_bytes(NpyType t) { return npy_types[t].bytes; }
const char *npy_descr(NpyType t) { return npy_types[t].descr; }

static Place in_file(Arena *a, const char *name) {
  return (Place){.src = source_new(a, name, "", 0)};
}

#define FAIL(...) return diag_error(d, in_file(d->arena, name), __VA_ARGS__)

static Status set_type(const char *descr, const char *name, NpyArray *a, Diag *d) {
  for (int i = 0; i < NTYPES; i++)
    if (!strcmp(descr, npy_types[i].descr)) {
      a->type = npy_types[i].type;
      return ST_OK;
    }
  FAIL("element type '%s' is none that is known: little-endian floats and integers are", descr);
}

static Status parse_dict(Cursor c, const char *name, NpyArray *a, Diag *d) {
  char key[16], descr[16];
  bool have_descr = false, have_order = false, have_shape = false, fortran = false;
  if (!take(&c, '{')) FAIL("header is not a dictionary");
  while (!take(&c, '}')) {
    if (!take_string(&c, key, sizeof key) || !take(&c, ':')) FAIL("malformed header");
    if (!strcmp(key, "descr") && !have_descr) {
      if (!take_string(&c, descr, sizeof descr)) FAIL("element type is not a plain one");
      have_descr = true;
    } else if (!strcmp(key, "fortran_order") && !have_order) {
      fortran = take_word(&c, "True");
      if (!fortran && !take_word(&c, "False")) FAIL("fortran_order is neither True nor False");
      have_order = true;
    } else if (!strcmp(key, "shape") && !have_shape) {
      if (!take_shape(&c, a)) FAIL("malformed shape, or more than %d dimensions", TENSOR_MAX_RANK);
      have_shape = true;
    } else {
      FAIL("unexpected or repeated key '%s' in the header", key);
    }
    if (!take(&c, ',')) {
      if (!take(&c, '}')) FAIL("malformed header");
      break;
    }
  }
  skip_space(&c);
  if (c.p != c.end) FAIL("text after the header's dictionary");
  if (!have_descr || !have_order || !have_shape)
    FAIL("header lacks %s", !have_descr ? "descr" : !have_order ? "fortran_order" : "shape");
  if (fortran) FAIL("array is in Fortran order; save numpy.ascontiguousarray(x)");
  return set_type(descr, name, a, d);
}

Status npy_parse(const void *bytes, size_t n, const char *name, NpyArray *out, Diag *d) {
  const unsigned char *b = bytes;
  *out = (NpyArray){0};
  if (n < 10 || memcmp(b, "\x93NUMPY", 6)) FAIL("not a .npy file");
  if (b[6] < 1 || b[6] > 3) FAIL("format version %d.%d is not known (1 to 3 are)", b[6], b[7]);
  size_t start = b[6] == 1 ? 10 : 12;
  if (n < start) FAIL("truncated header");
  size_t len = b[8] | (size_t)b[9] << 8;
  if (b[6] > 1) len |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
  if (len > n - start) FAIL("truncated header");
  Cursor c = {(const char *)b + start, (const char *)b + start + len};
  Status st = parse_dict(c, name, out, d);
  if (st != ST_OK) return st;
  int64_t need = npy_types[out->type].bytes;
  out->count = 1;
  for (int i = 0; i < out->rank; i++)
    if (__builtin_mul_overflow(out->count, out->shape[i], &out->count)) FAIL("shape overflows");
  if (__builtin_mul_overflow(need, out->count, &need)) FAIL("shape overflows");
  uint64_t have = n - start - len;
  if ((uint64_t)need > have)
    FAIL("truncated: the shape needs %lld bytes, the file has %llu", (long long)need,
         (unsigned long long)have);
  if ((uint64_t)need < have)
    FAIL("%llu bytes after the array", (unsigned long long)(have - (uint64_t)need));
  out->data = b + start + len;
  return ST_OK;
}

// ---- reading -----------------------------------------------------------------------------------
// The file's bytes, malloc'ed: real tensors may be far larger than any source text.
static Status read_bytes(const char *name, char **out, size_t *n, Diag *d) {
  *out = NULL;
  FILE *f = fopen(name, "rb");
  if (!f) FAIL("can't be read: %s", strerror(errno));
  size_t cap = 1 << 16;
  char *buf = malloc(cap);
  *n = 0;
  for (size_t got; buf && (got = fread(buf + *n, 1, cap - *n, f)) > 0;) {
    *n += got;
    if (*n < cap) continue;
    char *more = realloc(buf, cap *= 2);
    if (!more) free(buf);
    buf = more;
  }
  bool bad = ferror(f);
  int err = errno;
  fclose(f);
  if (!buf) FAIL("not enough memory to read it");
  if (bad) {
    free(buf);
    FAIL("can't be read: %s", strerror(err));
  }
  *out = buf;
  return ST_OK;
}

static Dtype file_dtype(NpyType t) {
  static const Dtype of[] = {DT_F64, DT_F32, DT_F16, DT_BF16};
  return of[t]; // check_tensor lets no other through
}

static Status check_tensor(const NpyArray *a, const char *name, Dtype want, Diag *d) {
  if (a->type > NPY_U16)
    FAIL("element type '%s' is not one of '<f4', '<f2', '<f8' and '<u2' (bf16 as raw bits)",
         npy_descr(a->type));
  if (a->type == NPY_U16 && want != DT_BF16)
    FAIL("holds u2, which is taken for raw bf16, but the kernel's dtype is %s", dtype_name(want));
  if (a->type == NPY_F16 && want != DT_F16)
    FAIL("holds f2, but the kernel's dtype is %s (f4 is rounded to any)", dtype_name(want));
  if (a->rank != 4) FAIL("has %d dimensions; [batch, seqlen, heads, head_dim] has 4", a->rank);
  return ST_OK;
}

Status npy_read(const char *name, NpyArray *out, char **bytes, Diag *d) {
  size_t n = 0;
  Status st = read_bytes(name, bytes, &n, d);
  if (st == ST_OK) st = npy_parse(*bytes, n, name, out, d);
  if (st == ST_OK) return st;
  free(*bytes);
  *bytes = NULL;
  return st;
}

Status npy_read_tensor(const char *name, Dtype want, const Layout *layout, HostTensor *out,
                       Diag *d) {
  char *bytes;
  size_t n = 0;
  *out = (HostTensor){0};
  Status st = read_bytes(name, &bytes, &n, d);
  if (st != ST_OK) return st;
  NpyArray a;
  st = npy_parse(bytes, n, name, &a, d);
  if (st == ST_OK) st = check_tensor(&a, name, want, d);
  if (st == ST_OK) st = host_tensor_make(out, want, 4, a.shape, layout, FILL_NAN, d);
  Dtype from = st == ST_OK ? file_dtype(a.type) : want;
  const char *p = a.data;
  for (int64_t i = 0; st == ST_OK && i < a.count; i++) {
    int64_t e = i % a.shape[3], row = i / a.shape[3];
    int64_t head = row % a.shape[2], seq = row / a.shape[2] % a.shape[1];
    host_set(out, row / a.shape[2] / a.shape[1], seq, head, e,
             dtype_load(from, p + i * dtype_bytes(from)));
  }
  free(bytes);
  if (st != ST_OK) host_tensor_free(out);
  return st;
}

// ---- writing -----------------------------------------------------------------------------------
static NpyType type_for(Dtype t) {
  return t == DT_F16 ? NPY_F16 : t == DT_BF16 ? NPY_U16 : t == DT_F64 ? NPY_F64 : NPY_F32;
}

static void write_header(FILE *f, NpyType type, int rank, const int64_t *shape) {
  char dict[256];
  int n = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                   npy_descr(type));
  for (int i = 0; i < rank; i++)
    n += snprintf(dict + n, sizeof dict - (size_t)n, "%lld,%s", (long long)shape[i],
                  i + 1 < rank ? " " : "");
  n += snprintf(dict + n, sizeof dict - (size_t)n, "), }");
  while ((10 + n + 1) % 64) dict[n++] = ' '; // data starts at a multiple of 64 bytes
  dict[n++] = '\n';
  fwrite("\x93NUMPY\1\0", 1, 8, f);
  fputc(n & 255, f);
  fputc(n >> 8, f);
  fwrite(dict, 1, (size_t)n, f);
}

Status npy_write(Arena *a, const char *path, NpyType type, int rank, const int64_t *shape,
                 const void *data, Diag *d) {
  Outfile file;
  Status st = outfile_open(a, path, &file, d);
  if (st != ST_OK) return st;
  write_header(file.f, type, rank, shape);
  size_t n = 1;
  for (int i = 0; i < rank; i++) n *= (size_t)shape[i];
  fwrite(data, (size_t)npy_bytes(type), n, file.f);
  return outfile_commit(&file, d);
}

Status npy_write_tensor(Arena *a, const char *path, const HostTensor *t, Diag *d) {
  Outfile file;
  Status st = outfile_open(a, path, &file, d);
  if (st != ST_OK) return st;
  write_header(file.f, type_for(t->t.dtype), t->t.rank, t->t.shape);
  const int64_t *n = t->t.shape;
  int64_t last = t->t.rank == 4 ? n[3] : 1;
  size_t bytes = (size_t)dtype_bytes(t->t.dtype);
  for (int64_t i = 0; i < n[0]; i++)
    for (int64_t j = 0; j < n[1]; j++)
      for (int64_t k = 0; k < n[2]; k++)
        for (int64_t e = 0; e < last; e++)
          fwrite((const char *)t->host + (size_t)tensor_at(&t->t, i, j, k, e) * bytes, bytes, 1,
                 file.f);
  return outfile_commit(&file, d);
}
