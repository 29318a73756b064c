// cvt between any two types with any rounding: decode to a value, round, encode.  PTX ISA 9.7.9.21.
// The common forms have vectorised rows in sim_lanes_ops_float.h; this is what is left.

typedef struct FloatFormat {
  uint8_t width, mantissa, left; // left: where the code sits in its register (tf32: 13)
  int16_t emin;                  // exponent of the least normal number
  uint64_t inf, max, nan;        // codes without sign; nan as it appears in the register
} FloatFormat;

enum { K_U8, K_S8, K_U16, K_S16, K_U32, K_S32, K_U64, K_S64, K_FLOAT };
enum { K_F16 = K_FLOAT, K_BF16, K_TF32, K_F32, K_F64, K_E4M3, K_E5M2 };

// e4m3 has no infinity: its `inf` is the first code past the largest number, which is the NaN.
static const FloatFormat formats[] = {
    {16, 10, 0, -14, 0x7C00, 0x7BFF, NAN_F16},
    {16, 7, 0, -126, 0x7F80, 0x7F7F, NAN_BF16},
    {19, 10, 13, -126, 0x3FC00, 0x3FBFF, NAN_F32},
    {32, 23, 0, -126, 0x7F800000, 0x7F7FFFFF, NAN_F32},
    {64, 52, 0, -1022, 0x7FF0000000000000, 0x7FEFFFFFFFFFFFFF, NAN_F64},
    {8, 3, 0, -6, 0x7F, 0x7E, 0x7F},
    {8, 2, 0, -14, 0x7C, 0x7B, 0x7F},
};

typedef enum ValueClass { V_ZERO, V_FINITE, V_INF, V_NAN } ValueClass;
typedef struct Value { // finite: +-m * 2^(e-63), bit 63 of m set
  ValueClass cls;
  bool neg;
  int e;
  uint64_t m;
} Value;

static Value value_of(bool neg, int e, uint64_t m) { // m * 2^(e-63), any m
  if (!m) return (Value){V_ZERO, neg, 0, 0};
  int up = __builtin_clzll(m);
  return (Value){V_FINITE, neg, e - up, m << up};
}

static Value decode(int kind, uint64_t bits) {
  const FloatFormat *f = &formats[kind - K_FLOAT];
  bits >>= f->left;
  uint64_t mag = bits & ((1ull << (f->width - 1)) - 1);
  bool neg = bits >> (f->width - 1) & 1;
  if (mag > f->inf || (kind == K_E4M3 && mag == f->inf)) return (Value){V_NAN, neg, 0, 0};
  if (mag == f->inf) return (Value){V_INF, neg, 0, 0};
  int biased = (int)(mag >> f->mantissa);
  uint64_t frac = mag & ((1ull << f->mantissa) - 1);
  if (biased) frac |= 1ull << f->mantissa, biased--;
  return value_of(neg, f->emin + biased + 63 - f->mantissa, frac);
}

static Value value_of_int(int kind, uint64_t bits) {
  int width = 8 << (kind / 2);
  uint64_t v = bits & low_mask((uint32_t)width);
  bool neg = (kind & 1) && (v >> (width - 1) & 1);
  if (neg) v = (0 - v) & low_mask((uint32_t)width);
  Value r = value_of(neg, 63, v);
  if (!v) r.neg = false;
  return r;
}

// m / 2^shift, rounded.
static uint64_t shift_round(uint64_t m, int shift, bool neg, unsigned mode) {
  if (shift <= 0) return m;
  uint64_t q = shift > 63 ? 0 : m >> shift;
  uint64_t rest = shift > 63 ? m : m & low_mask((uint32_t)shift);
  uint64_t half = shift > 64 ? 0 : 1ull << (shift - 1);
  int side = shift > 64 ? -1 : rest > half ? 1 : rest == half ? 0 : -1; // of one half
  bool up = false;
  switch (mode) {
  case M_RN: up = side > 0 || (side == 0 && (q & 1)); break;
  case M_RNA: up = side >= 0; break;
  case M_RM: up = neg && rest; break;
  case M_RP: up = !neg && rest; break;
  default: break;
  }
  return q + up;
}

static Value round_to_integer(Value v, unsigned mode) {
  if (v.cls != V_FINITE || v.e >= 63) return v;
  return value_of(v.neg, 63, shift_round(v.m, 63 - v.e, v.neg, mode));
}

static uint64_t overflow_code(const FloatFormat *f, bool neg, uint64_t flags) {
  unsigned mode = flags & M_ROUND;
  bool to_max = mode == M_RZ || (mode == M_RM && !neg) || (mode == M_RP && neg);
  return to_max || (flags & M_SATFINITE) ? f->max : f->inf;
}

static uint64_t encode(int kind, Value v, uint64_t flags) {
  const FloatFormat *f = &formats[kind - K_FLOAT];
  if (flags & M_SAT) {
    if (v.cls == V_NAN || v.neg) v = (Value){V_ZERO, false, 0, 0};
    else if (v.cls == V_INF || (v.cls == V_FINITE && v.e >= 0)) v = value_of(false, 63, 1);
  }
  if (v.cls == V_NAN) return f->nan;
  if ((flags & M_RELU) && v.neg) v = (Value){V_ZERO, false, 0, 0};
  uint64_t code = 0;
  if (v.cls == V_INF) {
    code = (flags & M_SATFINITE) ? f->max : f->inf;
  } else if (v.cls == V_FINITE) {
    int e = v.e < f->emin ? f->emin : v.e;
    int shift = 63 - f->mantissa + (e - v.e);
    uint64_t k = shift_round(v.m, shift, v.neg, flags & M_ROUND);
    bool over = v.e > 1 - f->emin + (kind == K_E4M3); // past the top binade
    code = over ? f->inf : ((uint64_t)(e - f->emin) << f->mantissa) + k;
    if (code >= f->inf) code = overflow_code(f, v.neg, flags);
    if (kind == K_F32 && (flags & M_FTZ) && code < 0x00800000u) code = 0;
  }
  return (code | (uint64_t)v.neg << (f->width - 1)) << f->left;
}

// Out of range saturates.  NaN: 0, but 1 << (width-1) when the source is f64 or the result 64 bits.
static uint64_t to_integer(int kind, Value v, unsigned mode, bool from_f64) {
  uint32_t width = 8u << (kind / 2);
  uint64_t top = 1ull << (width - 1), mask = low_mask(width);
  if (v.cls == V_NAN) return from_f64 || width == 64 ? top : 0;
  bool is_signed = kind & 1;
  uint64_t largest = is_signed ? top - 1 : mask, magnitude = 0;
  if (v.cls == V_INF || (v.cls == V_FINITE && v.e > 63)) magnitude = ~0ull;
  else if (v.cls == V_FINITE) magnitude = shift_round(v.m, 63 - v.e, v.neg, mode);
  if (!v.neg) return magnitude > largest ? largest : magnitude;
  if (!is_signed) return 0;
  return (magnitude > top ? top : 0 - magnitude) & mask;
}

static uint64_t extend(int kind, uint64_t bits) { // an integer of `kind` to 64 bits
  uint32_t width = 8u << (kind / 2);
  return (kind & 1) ? (uint64_t)bfe_s((int64_t)bits, 0, width) : bits & low_mask(width);
}

static uint64_t convert(int to, int from, uint64_t bits, uint64_t flags) {
  bool is_int = from < K_FLOAT;
  if (is_int && to < K_FLOAT && !(flags & M_SAT)) return extend(from, bits);
  if (from == K_F32 && (flags & M_FTZ)) bits = flush32((uint32_t)bits);
  Value v = is_int ? value_of_int(from, bits) : decode(from, bits);
  if (to < K_FLOAT) return to_integer(to, v, flags & M_ROUND, from == K_F64);
  if (flags & M_INTEGER) v = round_to_integer(v, flags & M_ROUND);
  return encode(to, v, flags);
}

// imm, besides the M_ flags: the kinds, the storage of the source, the destination register's
// width (signed results are extended to it), and for pairs whether both halves come from a.
enum { CVT_TO = 12, CVT_FROM = 16, CVT_DST_BITS = 20, CVT_WIDE_SRC = 1 << 28, CVT_SPLIT = 1 << 29 };

static void cvt_any(LANE_ARGS) {
  UNUSED_ARGS;
  int to = imm >> CVT_TO & 15, from = imm >> CVT_FROM & 15;
  uint32_t dst_bits = imm >> CVT_DST_BITS & 127;
  for (int i = 0; i < LANES; i++) {
    uint64_t x = (imm & CVT_WIDE_SRC) ? ((const uint64_t *)A)[i] : ((const uint32_t *)A)[i];
    uint64_t r = convert(to, from, x, imm);
    if (to < K_FLOAT) r = extend(to, r) & low_mask(dst_bits);
    if (dst_bits == 64) ((uint64_t *)D)[i] = r;
    else ((uint32_t *)D)[i] = (uint32_t)r;
  }
}

// Two conversions packed: a (or a's high half) to d's high half, b (or a's low half) to its low.
static void cvt_pair(LANE_ARGS) {
  UNUSED_ARGS;
  int to = imm >> CVT_TO & 15, from = imm >> CVT_FROM & 15;
  uint32_t in = formats[from - K_FLOAT].width, out = formats[to - K_FLOAT].width;
  const uint32_t *a = A, *b = B;
  for (int i = 0; i < LANES; i++) {
    uint32_t hi = (imm & CVT_SPLIT) ? a[i] >> in : a[i];
    uint32_t lo = (imm & CVT_SPLIT) ? a[i] & (uint32_t)low_mask(in) : b[i];
    ((uint32_t *)D)[i] =
        (uint32_t)(convert(to, from, hi, imm) << out | convert(to, from, lo, imm));
  }
}
