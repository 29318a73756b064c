// RunPtx: any kernel of any PTX, launched on arguments given one after the other.
#ifndef PTXSMITH_RUN_PTX_H
#define PTXSMITH_RUN_PTX_H

#include "compare.h"
#include "device.h"
#include "npy.h"

// Elements of arrays and scalars.  The Dtype is how values are compared and converted; integers
// that no Dtype has are compared exactly.
//    name   bytes  in a .npy  as numbers
#define RUN_TYPES(X)                                                                               \
  X(f64, 8, F64, F64) X(f32, 4, F32, F32) X(f16, 2, F16, F16) X(bf16, 2, U16, BF16)                \
  X(e4m3, 1, U8, E4M3) X(e5m2, 1, U8, E5M2) X(i8, 1, I8, COUNT) X(u8, 1, U8, COUNT)                \
  X(i16, 2, I16, COUNT) X(u16, 2, U16, COUNT) X(i32, 4, I32, COUNT) X(u32, 4, U32, COUNT)          \
  X(i64, 8, I64, COUNT) X(u64, 8, U64, COUNT)

typedef struct RunType {
  const char *name;
  int bytes;
  NpyType npy;
  Dtype dtype; // DT_COUNT: an integer
} RunType;

// RUN_TMAP: a tensor map over one of the arrays, 128 bytes by value or behind a pointer.
typedef enum RunRole { RUN_VALUE, RUN_TMAP, RUN_IN, RUN_INOUT, RUN_OUT } RunRole;

typedef struct RunArg {
  RunRole role;
  const char *spec;     // as written, for messages
  const RunType *type;  // NULL: raw bytes
  int rank;
  int64_t shape[TENSOR_MAX_RANK], count;
  uint8_t *data;        // the value (arena), or an array's elements before and after (malloc'ed)
  uint64_t bytes;
  DevPtr ptr;           // of an array, while it runs
  int64_t unwritten, hole; // OUT, after the launch: elements never written, index of the first
  int array;            // TMAP: index of the argument it describes
  TensorMapDesc map;    // TMAP: what is written in the spec; the rest follows from the array
  int dims, strides, steps; // TMAP: how many of each are written
  uint64_t offset;      // TMAP: elements of the array in front of it
  bool typed, pointer;  // TMAP: map.type is written; passed in global memory
} RunArg;

// "in:FILE.npy", "inout:FILE.npy", "out:f32[64,32]", "in:f32[64]=iota" (or random, or a number),
// "i32:7", "f32:0.5", "bytes:00ff", "tmap:0,box=32x8,swizzle=128,fill=nan" (box: dimension 0, the
// contiguous one, first; run_tmap.c has the other words).  Arrays are passed as pointers.
Status run_arg_parse(Arena *a, const char *spec, uint64_t seed, RunArg *out, Diag *d);
void run_args_free(RunArg *args, int n); // the arrays, of arguments parsed or all zero

// Of tensor maps: what is behind "tmap:"; the 128 bytes, once arrays have addresses.
Status run_tmap_parse(Arena *a, RunArg *out, const char *text, Diag *d);
Status run_tmap_encode(Device *dev, RunArg *arg, const RunArg *args, int n, Diag *d);

// The number of arguments and their sizes held against the kernel's parameters.
Status run_args_check(const PtxModule *m, const PtxFunc *entry, const RunArg *args, int n, Diag *d);

// Allocates the arrays, launches, waits, reads the outputs back, frees.  `l` has the kernel and the
// shape.  What an output's elements hold that nothing wrote is all ones, a NaN in every format.  A
// device that does not know what was written (cuda) is launched a second time, on other contents,
// when an element looks like that.
Status run_launch(Device *dev, Launch *l, const PtxModule *m, const PtxFunc *entry, RunArg *args,
                  int n, Diag *d);

// Writes DIR/argN.npy for every output.
Status run_save(Arena *a, const char *dir, const RunArg *args, int n, Diag *d);

// One error for each output that was not written whole.
Status run_unwritten(const RunArg *args, int n, Diag *d);

// What an output must hold: a file of its type and shape.
typedef struct RunExpect {
  const char *path; // NULL: nothing is expected
  NpyArray npy;
  char *bytes;      // malloc'ed
} RunExpect;
Status run_expect_read(Arena *a, const RunArg *arg, const char *path, RunExpect *out, Diag *d);
void run_expect_free(RunExpect *e, int n);

typedef struct RunDiff {
  int64_t count, bad, first; // elements; those that differ; index of the first
  double expected, found, worst;
} RunDiff;
RunDiff run_compare(const RunArg *arg, const RunExpect *expect, Tolerance tol);
// "abs=1e-5,rel=1e-3,ulps=2"
Status run_tolerance(Arena *a, const char *text, Tolerance *out, Diag *d);

#endif
