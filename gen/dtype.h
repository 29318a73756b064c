// Dtype: element types of tensors, and exact conversions on the host.
#ifndef PTXSMITH_DTYPE_H
#define PTXSMITH_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

//   id    name    bytes  PTX register  PTX memory type   mantissa bits (with the hidden one)
#define DTYPES(X)                                                                                  \
  X(F64, "f64", 8, ".f64", ".f64", 53)                                                             \
  X(F32, "f32", 4, ".f32", ".f32", 24)                                                             \
  X(F16, "f16", 2, ".b16", ".b16", 11)                                                             \
  X(BF16, "bf16", 2, ".b16", ".b16", 8)                                                            \
  X(E4M3, "e4m3", 1, ".b8", ".b8", 4)                                                              \
  X(E5M2, "e5m2", 1, ".b8", ".b8", 3)                                                              \
  X(I32, "i32", 4, ".s32", ".s32", 0)                                                              \
  X(I64, "i64", 8, ".s64", ".s64", 0)                                                              \
  X(U8, "u8", 1, ".b8", ".u8", 0)

typedef enum Dtype {
#define X(id, ...) DT_##id,
  DTYPES(X)
#undef X
  DT_COUNT
} Dtype;

const char *dtype_name(Dtype t);
int dtype_bytes(Dtype t);
int dtype_mantissa(Dtype t); // 0 for integers
bool dtype_parse(const char *name, Dtype *out);

// Widening is exact.  Narrowing rounds to nearest, ties to even; f16 and bf16 and e5m2 overflow to
// infinity, e4m3 saturates to 448 (cvt.rn.satfinite); NaN becomes the canonical NaN of the type.
double f16_to_double(uint16_t h);
double bf16_to_double(uint16_t h);
double e4m3_to_double(uint8_t v);
double e5m2_to_double(uint8_t v);
uint16_t f16_from_double(double x);
uint16_t bf16_from_double(double x);
uint8_t e4m3_from_double(double x);
uint8_t e5m2_from_double(double x);

double dtype_load(Dtype t, const void *p);
void dtype_store(Dtype t, void *p, double x); // integers: rounds to nearest, saturates
double dtype_round(Dtype t, double x);        // load(store(x))
// Distance from |x| to the next larger magnitude of the type.
double dtype_ulp(Dtype t, double x);

#endif
