#!/usr/bin/env python3
"""The foundation's tables of docs/measurements.md: chunk ladder, vec ladder, block scaling.

    tests/peers/foundation.py --ptxsmith build/ptxsmith [--device cuda:0] [--quick] > tables.md

Every row comes from `ptxsmith bench`, which verifies before and after it times.  With PyTorch present,
its attention reads the same bytes in the same run, by the same rules: device events, cold L2 by reading
a large buffer before each launch, medians.  The read ceiling has a program of its own, read.py.
"""
import argparse
import json
import subprocess
import sys
import time

MB = 1 << 20


def bench(args, template, problem, *extra):
    """One verified and timed run as a dict; exits with the program's message when it fails."""
    command = [args.ptxsmith, "bench", template, *extra, "--problem", problem,
               "--device", args.device, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr or done.stdout}")
    row = json.loads(done.stdout.splitlines()[-1])
    assert row["passed"]
    print(f"{time.perf_counter():7.1f} s  {' '.join(command[2:])}", file=sys.stderr)
    return row


def table(title, head, rows):
    print(f"\n### {title}\n\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    sys.stdout.flush()


def us(row):
    t = row["timing"]
    return f"{t['median_us']:.2f} ({t['low_us']:.2f} to {t['high_us']:.2f})"


class Peers:
    """What else can read the same bytes here.  Every method returns microseconds, or None."""

    def __init__(self):
        try:
            import torch
        except ImportError as why:
            print(f"\n(no peers here: {why})")
            self.torch = None
            return
        self.torch = torch
        self.flush_buffer = torch.ones(256 * MB // 4, device="cuda")

    def time(self, launch, samples=21):
        torch = self.torch
        times = []
        for i in range(samples + 5):
            self.flush_buffer.sum()
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            launch()
            b.record()
            b.synchronize()
            if i >= 5:
                times.append(a.elapsed_time(b) * 1e3)
        return sorted(times)[len(times) // 2]

    def decode(self, b, hq, hkv, sk, d, dtype):
        torch = self.torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        kind = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[dtype]
        q = torch.randn(b, hq, 1, d, device="cuda", dtype=kind)
        k, v = (torch.randn(b, hkv, sk, d, device="cuda", dtype=kind) for _ in range(2))
        best, who = None, "-"
        for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION,
                        SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH):
            try:
                with sdpa_kernel(backend):
                    t = self.time(lambda: torch.nn.functional.scaled_dot_product_attention(
                        q, k, v, enable_gqa=hq != hkv))
            except RuntimeError:
                continue
            if best is None or t < best:
                best, who = t, backend.name.split("_")[0].lower()
        return best, who


def chunk_ladder(args, peers, dtype):
    sk = 1024 if args.quick else 16384
    rows, peer = [], "-"
    for chunks in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        row = bench(args, "decode_splitk", f"b=1,hq=8,hkv=8,sq=1,sk={sk},d=128,chunks={chunks}",
                    f"dtype={dtype}")
        closed = {g["name"]: g for g in row["gates"]}
        rows.append([chunks, us(row), f"{row['rate']:.0f}",
                     f"{100 * row['rate'] / row['ceiling']:.1f} %",
                     f"{closed['closed-form']['max_error']:.2e} "
                     f"of {closed['closed-form']['max_allowed']:.2e}",
                     closed["integer"]["max_error"]])
    if peers.torch:
        t, who = peers.decode(1, 8, 8, sk, 128, dtype)
        peer = f"; best of PyTorch in this run: {t:.1f} us ({who})"
    table(f"decode_splitk, {dtype}, b=1 hq=8 hkv=8 sk={sk} d=128 (ceiling {row['ceiling']:.0f} GB/s"
          f"{peer})", ["chunks", "us (95 %)", "GB/s of KV", "of read ceiling",
                       "closed form, error of bound", "integer form, error"], rows)


def vec_ladder(args, peers):
    shapes = [(8, 64, 64)] if args.quick else [(8, 1024, 64), (32, 1024, 64), (32, 1024, 128)]
    for heads, s, d in shapes:
        rows, first = [], None
        for vec in (1, 2, 4):
            row = bench(args, "prefill_thread", f"b=1,hq={heads},hkv={heads},sq={s},sk={s},d={d}",
                        f"vec={vec}")
            first = first or row["timing"]["median_us"]
            rows.append([vec, us(row), f"{row['rate']:.0f}",
                         f"{100 * row['rate'] / row['ceiling']:.1f} %", row["registers"],
                         f"{first / row['timing']['median_us']:.2f}x"])
        table(f"prefill_thread, f32, b=1 h={heads} s={s} d={d} (ceiling {row['ceiling']:.0f} GFLOP/s)",
              ["vec", "us (95 %)", "GFLOP/s", "of FMA ceiling", "registers", "over scalar"], rows)


def block_scaling(args, peers):
    cases = [("decode_splitk", "b=1,hq=8,hkv=8,sq=1,sk=16384,d=128,chunks=64", []),
             ("prefill_thread", "b=1,hq=32,hkv=32,sq=1024,sk=1024,d=64", [])]
    if args.quick:
        cases = [("decode_splitk", "b=1,hq=2,hkv=2,sq=1,sk=1024,d=64,chunks=16", [])]
    for template, problem, extra in cases:
        rows, one = [], None
        grid = 1
        while grid <= (8 if args.quick else 264):
            row = bench(args, template, problem, *extra, "--grid", str(grid))
            t = row["timing"]["median_us"]
            one = one or t
            rows.append([grid, us(row), f"{row['rate']:.1f}", f"{one / t:.1f}x",
                         f"{100 * one / t / grid:.0f} %"])
            grid = {64: 132, 128: 132, 132: 264}.get(grid, grid * 2)
        table(f"{template}, {problem}: blocks", ["grid", "us (95 %)", row["unit"], "speed-up",
                                                 "efficiency"], rows)


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--ptxsmith", default="build/ptxsmith")
    parse.add_argument("--device", default="cuda:0")
    parse.add_argument("--quick", action="store_true", help="tiny sizes, for a try without a GPU")
    args = parse.parse_args()
    print(subprocess.run([args.ptxsmith, "info"], capture_output=True, text=True).stdout)
    peers = Peers()
    for dtype in ("f32", "bf16"):
        chunk_ladder(args, peers, dtype)
    vec_ladder(args, peers)
    block_scaling(args, peers)


if __name__ == "__main__":
    main()
