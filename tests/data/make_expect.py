#!/usr/bin/env python3
"""Makes lua/expect.txt: attention on a fixed input, computed with exact dot products and 40-digit
arithmetic by nothing but Python's standard library, so independently of the program's own oracle.

    python3 tests/data/make_expect.py > lua/expect.txt
"""
from decimal import Decimal, getcontext

getcontext().prec = 40
MASK = (1 << 64) - 1
HEADS, SEQLEN_Q, SEQLEN_K = 2, 2, 149  # one key head serves both query heads
SCALE = Decimal("0.125")


def random_bits(seed, n):  # runtime/verify_data.c
    z = (seed + (n + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def whole(seed, j, h, heads, dim, e):  # in [-64, 64]; q is this / 16, k and v this / 64
    return random_bits(seed, (j * heads + h) * dim + e) % 129 - 64


def case(dim, causal):
    q = [[[whole(1, i, h, HEADS, dim, e) for e in range(dim)] for i in range(SEQLEN_Q)]
         for h in range(HEADS)]
    k = [[whole(2, j, 0, 1, dim, e) for e in range(dim)] for j in range(SEQLEN_K)]
    v = [[whole(3, j, 0, 1, dim, e) for e in range(dim)] for j in range(SEQLEN_K)]
    print(f"case {dim} {causal}")
    for h in range(HEADS):
        for i in range(SEQLEN_Q):
            keys = i + SEQLEN_K - SEQLEN_Q + 1 if causal else SEQLEN_K
            dots = [sum(a * b for a, b in zip(q[h][i], k[j])) for j in range(keys)]
            weights = [(Decimal(x) / 1024 * SCALE).exp() for x in dots]
            total = sum(weights)
            print(f"lse {h} {i} {float(total.ln())!r}")
            for e in range(dim):
                if (e + h) % 8 == 0:
                    o = sum(w * v[j][e] for j, w in enumerate(weights)) / total / 64
                    print(f"o {h} {i} {e} {float(o)!r}")


print("# Written by tests/data/make_expect.py; read by runtime/verify_expect.c.")
print("# case HEAD_DIM CAUSAL, then lse HEAD QUERY VALUE and o HEAD QUERY COLUMN VALUE.")
for dim in (32, 64, 96, 128, 192, 256):
    for causal in (0, 1):
        case(dim, causal)
