#!/usr/bin/env python3
"""Is ceiling_read a ceiling?  It, a Triton read kernel and cuDNN's decode of the same bytes, interleaved in
one process, in five processes; medians.

    tests/peers/read.py --ptxsmith build/ptxsmith --library build/libptxsmith.so

ceiling_read is tuned for each size by `ptxsmith bench`, the Triton kernel over its own configurations
(the best of a short run each); then the winners meet.
"""
import argparse
import json
import subprocess

import torch
import triton
import triton.language as tl
from torch.nn.attention import SDPBackend, sdpa_kernel

import ptxsmith
import timing

MB = 1 << 20
SIZES = (64, 128, 256, 512, 1024, 4096)
CONFIGS = [(tile, tiles, warps) for tile in (1024, 2048, 4096, 8192) for tiles in (1, 4)
           for warps in (4, 8)]


@triton.jit
def read(src, out, TILE: tl.constexpr, TILES: tl.constexpr):
    acc = tl.zeros((TILE,), tl.int32)
    for i in range(TILES):
        at = (tl.program_id(0).to(tl.int64) * TILES + i) * TILE + tl.arange(0, TILE)
        acc = acc ^ tl.load(src + at)
    tl.store(out + tl.program_id(0), tl.xor_sum(acc, 0))


def tuned(program, mb):
    """The fastest ceiling_read for this size: (params, grid)."""
    done = subprocess.run([program, "bench", "ceiling_read", "--problem", f"words={mb * MB // 4}",
                           "--device", "cuda:0", "--json"], capture_output=True, text=True, check=True)
    words = json.loads(done.stdout.splitlines()[-1])["ceiling_read_variant"].split()
    params = " ".join(w for w in words if not w.startswith("grid="))
    return params, int([w for w in words if w.startswith("grid=")][0][5:])


def one_size(lib, flush, mb, params, grid):
    words = mb * MB // 4
    src = torch.randint(-9, 9, (words,), device="cuda", dtype=torch.int32)
    out = torch.empty(words // 1024, device="cuda", dtype=torch.int32)
    sums = torch.empty(grid, device="cuda", dtype=torch.int32)
    op = lib.operator("ceiling_read", params, f"words={words}", grid=grid, blocks=grid)
    op.bind(src=src, sums=sums)
    op.launch()
    assert sums.sum(dtype=torch.int32).item() == src.sum(dtype=torch.int32).item(), "a wrong sum"

    def triton_read(tile, tiles, warps):
        return lambda: read[(words // (tile * tiles),)](src, out, tile, tiles, num_warps=warps)

    short = timing.eager({c: triton_read(*c) for c in CONFIGS}, flush, samples=5, warmup=2)
    best = min(short, key=short.get)
    q = torch.randn(1, 8, 1, 128, device="cuda", dtype=torch.bfloat16)
    kv = src.view(torch.bfloat16).view(2, 1, 8, -1, 128)

    def attention():
        torch.nn.functional.scaled_dot_product_attention(q, kv[0], kv[1])

    src.view(torch.bfloat16).normal_()
    launches = {"ceiling_read": op.launch, "triton": triton_read(*best), "cudnn": attention}
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):  # once: entering it takes longer than the flush
        return {"eager": timing.eager(launches, flush, samples=41),
                "graph": timing.graph(launches, flush, on_stream=lib.use_stream)}


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--ptxsmith", default="build/ptxsmith")
    parse.add_argument("--library", default="build/libptxsmith.so")
    parse.add_argument("--processes", type=int, default=5)
    parse.add_argument("--sizes", default=",".join(map(str, SIZES)), help="MB, comma separated")
    parse.add_argument("--tuned", help=argparse.SUPPRESS)
    parse.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parse.parse_args()
    sizes = [int(s) for s in args.sizes.split(",")]
    if args.one:
        lib, flush = ptxsmith.Library(args.library), timing.Flush()
        variants = json.loads(args.tuned)
        print(json.dumps([one_size(lib, flush, mb, *v) for mb, v in zip(sizes, variants)]))
        return
    variants = [tuned(args.ptxsmith, mb) for mb in sizes]
    runs = timing.in_processes(__file__, ["--library", args.library, "--sizes", args.sizes, "--tuned",
                                          json.dumps(variants)], args.processes)
    print("| MB | ceiling_read, us | graph | GB/s | Triton | graph | cuDNN decode | graph | variant |")
    print("|---|---|---|---|---|---|---|---|---|")
    for i, (mb, (params, grid)) in enumerate(zip(sizes, variants)):
        cells = [f"{timing.median([r[i][kind][name] for r in runs]):.2f}"
                 for name in ("ceiling_read", "triton", "cudnn") for kind in ("eager", "graph")]
        rate = mb * MB / min(float(cells[0]), float(cells[1])) / 1e3
        print(f"| {mb} | {cells[0]} | {cells[1]} | {rate:.0f} | " + " | ".join(cells[2:]) +
              f" | {params} grid={grid} |", flush=True)


if __name__ == "__main__":
    main()
