#include "dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// A binary floating-point format of at most 16 bits: sign, ebits of exponent, mbits of fraction.
typedef struct Format {
  int ebits, mbits, bias;
  uint32_t max;      // bits of the largest finite value
  uint32_t overflow; // what a larger magnitude becomes: infinity, or max where it saturates
  uint32_t nan;      // canonical NaN; as PTX's cvt writes it
  bool has_inf;
} Format;

static const Format F16 = {5, 10, 15, 0x7bff, 0x7c00, 0x7fff, true};
static const Format BF16 = {8, 7, 127, 0x7f7f, 0x7f80, 0x7fff, true};
static const Format E5M2 = {5, 2, 15, 0x7b, 0x7c, 0x7f, true};
// OCP e4m3 has no infinity: exponent 15 is an ordinary binade but for the NaN S.1111.111.
static const Format E4M3 = {4, 3, 7, 0x7e, 0x7e, 0x7f, false};

// Places of the floating types' values: ulp(x) = 2^(clamp(floor(log2 |x|), emin, emax) - mbits).
typedef struct Range {
  int emin, emax, mbits;
} Range;

static const Range ranges[DT_COUNT] = {
    [DT_F64] = {-1022, 1023, 52}, [DT_F32] = {-126, 127, 23}, [DT_F16] = {-14, 15, 10},
    [DT_BF16] = {-126, 127, 7},   [DT_E4M3] = {-6, 8, 3},     [DT_E5M2] = {-14, 15, 2},
};

static uint64_t double_bits(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

static double bits_double(uint64_t u) {
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static double widen(const Format *f, uint32_t bits) {
  uint32_t top = 1u << (f->ebits + f->mbits);
  double sign = bits & top ? -1.0 : 1.0;
  uint32_t magnitude = bits & (top - 1);
  if (magnitude > (f->has_inf ? f->overflow : f->max)) return NAN;
  if (f->has_inf && magnitude == f->overflow) return sign * INFINITY;
  int e = (int)(magnitude >> f->mbits);
  uint32_t frac = magnitude & ((1u << f->mbits) - 1);
  // normal: 2^(e - bias) * (1 + frac / 2^mbits); subnormal: 2^(1 - bias) * frac / 2^mbits
  if (e == 0) return sign * ldexp(frac, 1 - f->bias - f->mbits);
  uint64_t u = (uint64_t)(e - f->bias + 1023) << 52 | (uint64_t)frac << (52 - f->mbits);
  return sign * bits_double(u);
}

// Rounds to nearest, ties to even, in integers: the significand m of x = m * 2^(e - 52) loses
// `shift` bits; a carry out of the fraction runs into the exponent, which is the right answer.
static uint32_t narrow(const Format *f, double x) {
  uint64_t u = double_bits(x);
  uint32_t sign = (uint32_t)(u >> 63) << (f->ebits + f->mbits);
  if (isnan(x)) return f->nan;
  int e = (int)(u >> 52 & 0x7ff) - 1023;
  int emin = 1 - f->bias;
  uint64_t m = (u & 0xfffffffffffffull) | 1ull << 52;
  int shift = 52 - f->mbits + (e < emin ? emin - e : 0);
  if (shift > 54) return sign; // below half of the smallest subnormal (double's own included)
  uint64_t n = m >> shift, rest = m & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  if (rest > half || (rest == half && n & 1)) n++;
  uint64_t bits = e < emin ? n : ((uint64_t)(e - emin) << f->mbits) + n;
  return sign | (bits > f->max ? f->overflow : (uint32_t)bits);
}

double f16_to_double(uint16_t h) { return widen(&F16, h); }
double bf16_to_double(uint16_t h) { return widen(&BF16, h); }
double e4m3_to_double(uint8_t v) { return widen(&E4M3, v); }
double e5m2_to_double(uint8_t v) { return widen(&E5M2, v); }
uint16_t f16_from_double(double x) { return (uint16_t)narrow(&F16, x); }
uint16_t bf16_from_double(double x) { return (uint16_t)narrow(&BF16, x); }
uint8_t e4m3_from_double(double x) { return (uint8_t)narrow(&E4M3, x); }
uint8_t e5m2_from_double(double x) { return (uint8_t)narrow(&E5M2, x); }

const char *dtype_name(Dtype t) {
  static const char *const names[] = {
#define X(id, name, ...) name,
      DTYPES(X)
#undef X
  };
  assert(t < DT_COUNT);
  return names[t];
}

int dtype_bytes(Dtype t) {
  static const int bytes[] = {
#define X(id, name, size, ...) size,
      DTYPES(X)
#undef X
  };
  assert(t < DT_COUNT);
  return bytes[t];
}

int dtype_mantissa(Dtype t) {
  static const int bits[] = {
#define X(id, name, size, reg, mem, mantissa) mantissa,
      DTYPES(X)
#undef X
  };
  assert(t < DT_COUNT);
  return bits[t];
}

bool dtype_parse(const char *name, Dtype *out) {
  for (Dtype t = 0; t < DT_COUNT; t++)
    if (!strcmp(name, dtype_name(t))) {
      *out = t;
      return true;
    }
  return false;
}

double dtype_load(Dtype t, const void *p) {
  union {
    double f64;
    float f32;
    uint16_t u16;
    uint8_t u8;
    int32_t i32;
    int64_t i64;
  } v;
  memcpy(&v, p, (size_t)dtype_bytes(t));
  switch (t) {
  case DT_F64: return v.f64;
  case DT_F32: return v.f32;
  case DT_F16: return f16_to_double(v.u16);
  case DT_BF16: return bf16_to_double(v.u16);
  case DT_E4M3: return e4m3_to_double(v.u8);
  case DT_E5M2: return e5m2_to_double(v.u8);
  case DT_I32: return v.i32;
  case DT_I64: return (double)v.i64;
  case DT_U8: return v.u8;
  case DT_COUNT: break;
  }
  assert(!"dtype");
  return 0;
}

// Nearest integer in [lo, hi]; NaN becomes 0, as PTX's cvt does.  hi may be inexact in double
// (2^63 - 1), hence the comparison with the value one above.
static int64_t saturate(double x, int64_t lo, int64_t hi) {
  if (isnan(x)) return 0;
  double r = nearbyint(x);
  if (r >= (double)hi) return hi;
  return r <= (double)lo ? lo : (int64_t)r;
}

static uint32_t f32_bits(double x) {
  uint32_t u;
  float f = (float)x;
  memcpy(&u, &f, sizeof u);
  return isnan(x) ? 0x7fffffffu : u;
}

void dtype_store(Dtype t, void *p, double x) {
  union {
    double f64;
    uint32_t u32;
    uint16_t u16;
    uint8_t u8;
    int32_t i32;
    int64_t i64;
  } v;
  switch (t) {
  case DT_F64: v.f64 = x; break;
  case DT_F32: v.u32 = f32_bits(x); break;
  case DT_F16: v.u16 = f16_from_double(x); break;
  case DT_BF16: v.u16 = bf16_from_double(x); break;
  case DT_E4M3: v.u8 = e4m3_from_double(x); break;
  case DT_E5M2: v.u8 = e5m2_from_double(x); break;
  case DT_I32: v.i32 = (int32_t)saturate(x, INT32_MIN, INT32_MAX); break;
  case DT_I64: v.i64 = saturate(x, INT64_MIN, INT64_MAX); break;
  case DT_U8: v.u8 = (uint8_t)saturate(x, 0, UINT8_MAX); break;
  case DT_COUNT: assert(!"dtype"); return;
  }
  memcpy(p, &v, (size_t)dtype_bytes(t));
}

double dtype_round(Dtype t, double x) {
  uint64_t room;
  dtype_store(t, &room, x);
  return dtype_load(t, &room);
}

double dtype_ulp(Dtype t, double x) {
  if (!dtype_mantissa(t)) return 1;
  const Range *r = &ranges[t];
  if (isnan(x)) return NAN;
  int e = x == 0 ? r->emin : isinf(x) ? r->emax : ilogb(x);
  e = e < r->emin ? r->emin : e > r->emax ? r->emax : e;
  return ldexp(1, e - r->mbits);
}
