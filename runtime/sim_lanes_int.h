// Integer helpers of the lane functions.  PTX ISA 9.7.1 (integer), 9.7.2 (carry), 9.7.8 (logic).
INLINE int32_t sat_s32(int64_t v) {
  return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

INLINE uint32_t brev32(uint32_t v) {
  v = ((v >> 1) & 0x55555555u) | ((v & 0x55555555u) << 1);
  v = ((v >> 2) & 0x33333333u) | ((v & 0x33333333u) << 2);
  v = ((v >> 4) & 0x0F0F0F0Fu) | ((v & 0x0F0F0F0Fu) << 4);
  return __builtin_bswap32(v);
}
INLINE uint64_t brev64(uint64_t v) {
  return (uint64_t)brev32((uint32_t)v) << 32 | brev32((uint32_t)(v >> 32));
}

INLINE uint32_t clz32(uint32_t v) { return v ? (uint32_t)__builtin_clz(v) : 32; }
INLINE uint32_t clz64(uint64_t v) { return v ? (uint32_t)__builtin_clzll(v) : 64; }
// Most significant bit that differs from the sign; all ones when there is none.
INLINE uint32_t bfind64(uint64_t v) { return 63u - clz64(v); }

INLINE uint64_t low_mask(uint32_t len) { return len >= 64 ? ~0ull : (1ull << len) - 1; }

INLINE uint64_t bfe_u(uint64_t x, uint32_t pos, uint32_t len) {
  return pos > 63 ? 0 : (x >> pos) & low_mask(len);
}
// x is sign-extended from its width, so bits above the register repeat its sign, as bfe.s wants.
INLINE int64_t bfe_s(int64_t x, uint32_t pos, uint32_t len) {
  if (len == 0) return 0;
  int64_t t = x >> (pos > 63 ? 63 : pos);
  return len >= 64 ? t : (int64_t)((uint64_t)t << (64 - len)) >> (64 - len);
}
INLINE uint64_t bfi_u(uint64_t field, uint64_t into, uint32_t pos, uint32_t len) {
  uint64_t mask = pos > 63 ? 0 : low_mask(len) << pos;
  return (into & ~mask) | (pos > 63 ? 0 : (field << pos) & mask);
}

// Bits pos .. pos+len-1; both already clamped to 0..32 or wrapped to 0..31.
INLINE uint32_t bmsk(uint32_t pos, uint32_t len) { return (uint32_t)(low_mask(len) << pos); }
INLINE uint32_t clamp32(uint32_t n) { return n > 32 ? 32 : n; }
INLINE uint32_t zext_from(uint32_t x, uint32_t n) { return x & (uint32_t)low_mask(n); }
INLINE uint32_t sext_from(uint32_t x, uint32_t n) {
  return n == 0 ? 0 : n >= 32 ? x : (uint32_t)((int32_t)(x << (32 - n)) >> (32 - n));
}

// Byte permute: selector nibble k picks byte sel & 7 of {b,a}; bit 3 repeats that byte's sign.
INLINE uint32_t prmt(uint32_t a, uint32_t b, uint32_t sel) {
  uint64_t both = (uint64_t)b << 32 | a;
  uint32_t r = 0;
  for (int k = 0; k < 4; k++) {
    uint32_t s = sel >> (4 * k);
    uint32_t byte = (uint32_t)(both >> (8 * (s & 7))) & 0xFF;
    if (s & 8) byte = (byte & 0x80) ? 0xFF : 0;
    r |= byte << (8 * k);
  }
  return r;
}
// The named modes are selectors chosen by the low two bits of c.
#define PRMT_MODE(s0, s1, s2, s3)                                                                  \
  prmt(x, y, (z & 2) ? (z & 1) ? (s3) : (s2) : (z & 1) ? (s1) : (s0))

// fns: the place of the n-th set bit of m at and above `base` (n > 0), at and below (n < 0); n = 0:
// `base` itself if its bit is set.  All ones where there is none.
INLINE uint32_t fns(uint32_t m, uint32_t base, int32_t n) {
  if (base > 31) return 0xffffffffu;
  if (n == 0) return m >> base & 1 ? base : 0xffffffffu;
  uint32_t left = n < 0 ? 0u - (uint32_t)n : (uint32_t)n;
  for (int at = (int)base; at >= 0 && at < 32; at += n < 0 ? -1 : 1)
    if (m >> at & 1 && --left == 0) return (uint32_t)at;
  return 0xffffffffu;
}

// lop3: the table's bit (a<<2 | b<<1 | c) for each bit position.
INLINE uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t r = 0;
  for (int k = 0; k < 8; k++) {
    uint32_t row = ((k & 4) ? a : ~a) & ((k & 2) ? b : ~b) & ((k & 1) ? c : ~c);
    r |= row & (0u - ((table >> k) & 1));
  }
  return r;
}

// Sum of four products of bytes; T and U tell how a's and b's bytes are extended.
#define DP4A(TA, TB)                                                                               \
  (z + (uint32_t)((int32_t)(TA)x * (TB)y + (int32_t)(TA)(x >> 8) * (TB)(y >> 8) +                  \
                  (int32_t)(TA)(x >> 16) * (TB)(y >> 16) + (int32_t)(TA)(x >> 24) * (TB)(y >> 24)))

// 24-bit operands: the low 24 bits, extended by sign for s32.
INLINE int64_t mul24_s32(int32_t x, int32_t y) {
  return (int64_t)((int32_t)((uint32_t)x << 8) >> 8) * ((int32_t)((uint32_t)y << 8) >> 8);
}
INLINE uint64_t mul24_u32(uint32_t x, uint32_t y) {
  return (uint64_t)(x & 0xFFFFFF) * (y & 0xFFFFFF);
}

// ---- carry --------------------------------------------------------------------------------------
// CC.CF is a bit per lane at *E (a borrow after sub.cc).  imm: what to read and write.
enum { CC_READ = 1, CC_WRITE = 2, CC_SUB = 4 };

#define CARRY_DEF(id, T, has_c, term)                                                              \
  static void id(LANE_ARGS) {                                                                      \
    PROLOGUE(T);                                                                                   \
    OUT(S_##T); IN(S_##T, a, A); IN(S_##T, b, B); IN(S_##T, c, C);                                 \
    uint32_t *cc = (uint32_t *)(uintptr_t)E, cf = (imm & CC_READ) ? *cc : 0, next = 0;             \
    for (int i = 0; i < LANES; i++) {                                                              \
      V x = LD_##T(a[i]), y = LD_##T(b[i]);                                                        \
      U base = (U)(has_c ? (term) : (Arith)x), more = (U)(has_c ? LD_##T(c[i]) : y);               \
      (void)y;                                                                                     \
      U in = (cf >> i) & 1;                                                                        \
      Wide128 sum = (imm & CC_SUB) ? (Wide128)base - more - in : (Wide128)base + more + in;        \
      d[i] = (U)sum;                                                                               \
      next |= (uint32_t)((sum >> BITS) & 1) << i;                                                  \
    }                                                                                              \
    if (imm & CC_WRITE) *cc = next;                                                                \
  }
