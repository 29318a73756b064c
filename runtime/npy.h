// Npy: NumPy's array files, format versions 1 to 3, C order.
#ifndef PTXSMITH_NPY_H
#define PTXSMITH_NPY_H

#include "../gen/dtype.h"
#include "verify.h"

typedef enum NpyType {
  NPY_F64, NPY_F32, NPY_F16, NPY_U16, // what tensors may be
  NPY_I8, NPY_U8, NPY_I16, NPY_I32, NPY_U32, NPY_I64, NPY_U64,
} NpyType;

typedef struct NpyArray {
  NpyType type;
  int rank;
  int64_t shape[TENSOR_MAX_RANK];
  int64_t count;     // elements
  const void *data;  // in the parsed bytes; not aligned
} NpyArray;

// Parses a file's bytes.  `name` is for messages.  Little-endian floats and integers only.
Status npy_parse(const void *bytes, size_t n, const char *name, NpyArray *out, Diag *d);

// Reads a [batch, seqlen, heads, dim] tensor for a kernel of element type `want`, in `layout`.
// f4 and f8 are rounded to it; f2 is taken for f16 only and u2 for bf16 only (its raw bits).
typedef struct Layout Layout;
Status npy_read_tensor(const char *path, Dtype want, const Layout *layout, HostTensor *out,
                       Diag *d);

// Reads and parses a file; *bytes is malloc'ed, and out->data points into it.
Status npy_read(const char *path, NpyArray *out, char **bytes, Diag *d);
int npy_bytes(NpyType t);
const char *npy_descr(NpyType t); // "<f4"
// Writes a dense array.  Whole or not at all.
Status npy_write(Arena *a, const char *path, NpyType type, int rank, const int64_t *shape,
                 const void *data, Diag *d);

// Writes a tensor densely: f32 and f16 as such, bf16 as u2, f64 as f8.  Whole or not at all.
Status npy_write_tensor(Arena *a, const char *path, const HostTensor *t, Diag *d);

#endif
