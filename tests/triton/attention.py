#!/usr/bin/env python3
"""Remakes attention.TARGET.MASK.ptx: attention in Triton, compiled without a GPU.  Needs triton 3.6.

Arguments of the kernel: q, k, v, o [heads][rows][64] in f16, scale, queries, keys; Triton adds two
pointers to scratch memory that stay null.  A block takes 64 queries of one head with 128 threads.
"""
import os
from pathlib import Path

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # no paths of this machine in the text

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def attention(q, k, v, o, scale, queries, keys, CAUSAL: tl.constexpr, TILE_Q: tl.constexpr,
              TILE_K: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(1)
    q += head * queries * D
    k += head * keys * D
    v += head * keys * D
    o += head * queries * D
    i = tl.program_id(0) * TILE_Q + tl.arange(0, TILE_Q)
    e = tl.arange(0, D)
    rows = tl.load(q + i[:, None] * D + e[None, :], mask=i[:, None] < queries, other=0.0)
    top = tl.full((TILE_Q,), -1e30, tl.float32)
    total = tl.zeros((TILE_Q,), tl.float32)
    acc = tl.zeros((TILE_Q, D), tl.float32)
    end = keys
    if CAUSAL:
        end = tl.minimum(keys, (tl.program_id(0) + 1) * TILE_Q + keys - queries)
    for start in tl.range(0, end, TILE_K):
        j = start + tl.arange(0, TILE_K)
        kt = tl.load(k + j[None, :] * D + e[:, None], mask=j[None, :] < keys, other=0.0)
        s = tl.dot(rows, kt) * (scale * 1.4426950408889634)
        seen = j[None, :] < keys
        if CAUSAL:
            seen = seen & (j[None, :] <= i[:, None] + keys - queries)
        s = tl.where(seen, s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        values = tl.load(v + j[:, None] * D + e[None, :], mask=j[:, None] < keys, other=0.0)
        acc = tl.dot(p.to(values.dtype), values, acc * shrink[:, None])
        top = new
    tl.store(o + i[:, None] * D + e[None, :], (acc / total[:, None]).to(o.dtype.element_ty),
             mask=i[:, None] < queries)


def make(capability, causal):
    types = dict.fromkeys("qkvo", "*fp16") | dict(scale="fp32", queries="i32", keys="i32")
    fixed = dict(CAUSAL=causal, TILE_Q=64, TILE_K=32, D=64)
    aligned = {(n,): [["tt.divisibility", 16]] for n in range(4)}
    source = ASTSource(attention, types | dict.fromkeys(fixed, "constexpr"), fixed, aligned)
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32),
                          options=dict(num_warps=4, num_stages=2))
    name = f"attention.sm_{capability}.{'causal' if causal else 'full'}.ptx"
    Path(__file__).with_name(name).write_text(made.asm["ptx"])
    print(f"{name}: {made.metadata.shared} bytes of dynamic shared memory")


for capability in (80, 90):
    for causal in (False, True):
        make(capability, causal)
