#!/usr/bin/env python3
"""What merging an item's pieces costs: decode_span with its second launch, fused, and its first launch alone.

    tests/peers/combine.py --library build/libptxsmith.so [--processes 5]

One KV head, bf16, head_dim 128, so that all spans are pieces of one item.  `first` is the first launch of
`fused=0 overlap=1` by itself: what the operator would take if nothing had to be merged.  Whole operators are
held against fp64 before their times count.  Times as in timing.py, in microseconds, graph / eager; in
brackets what is above `first`.
"""
import argparse
import ctypes
import faulthandler
import json
import pathlib
import sys

import torch

import decode
import ptxsmith
import timing

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "gpu"))
import clocks  # noqa: E402
from clusters import SMEM, Config, call  # noqa: E402

# batch, query heads, KV heads, keys, pieces
ROWS = ((1, 8, 1, 65536, 256), (1, 1, 1, 65536, 256), (1, 8, 1, 65536, 132), (1, 1, 1, 65536, 132))
WAYS = {"fused": "fused=1", "tree": "fused=1 tree=1", "second launch": "fused=0 overlap=1"}


def first_launch(ptx, row):
    """A call that launches the kernel of this text on the current stream, over tensors of its own."""
    b, hq, hkv, sk, pieces = row
    tensors = clocks.made_tensors(torch, ptx, b, hq, hkv, sk, pieces)
    smem, threads = clocks.number(ptx, r"dynamic_smem\[\]; // (\d+)"), clocks.number(ptx, r"maxntid (\d+)")
    cuda, module, function = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
    call(cuda, "cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx.encode()))
    call(cuda, "cuModuleGetFunction", ctypes.byref(function), module, b"decode_span")
    call(cuda, "cuFuncSetAttribute", function, SMEM, smem)
    values = dict(batch=b, heads_q=hq, heads_kv=hkv, seqlen_q=1, seqlen_k=sk, chunks=pieces, scale=128**-0.5)
    given = clocks.arguments(ptx, values, {n: (t.data_ptr(), [s * t.element_size() for s in t.stride()])
                                           for n, t in tensors.items()})
    pointers = (ctypes.c_void_p * len(given))(*(ctypes.cast(ctypes.pointer(a), ctypes.c_void_p) for a in given))

    def launch():
        config = Config((pieces, 1, 1), (threads, 1, 1), smem, torch.cuda.current_stream().cuda_stream, None, 0)
        call(cuda, "cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)

    launch.kept = tensors, given, module
    return launch


def measure(lib, flush, row):
    c = decode.case(*row[:4])
    data, result, launches = decode.Data(c, "bf16"), {}, {}
    for name, params in WAYS.items():
        run, _ = decode.ours(lib, f"decode_span {params} chunks={row[4]}", data, "bf16", False)
        error = data.error(run())
        if error > data.allowed:
            sys.exit(f"{params} is wrong at {row}: error {error:.3e}, allowed {data.allowed:.3e}")
        launches[name] = run
    op = lib.operator("decode_span", WAYS["second launch"], decode.name_of(c) + ",dtype=bf16", chunks=row[4])
    launches["first"] = first_launch(op.ptx(), row)
    launches["first"]()
    torch.cuda.synchronize()
    for kind, took in (("eager", timing.eager(launches, flush)),
                       ("graph", timing.graph(launches, flush, on_stream=lib.use_stream))):
        for name, us in took.items():
            result.setdefault(name, {})[kind] = us
    return result


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--library", default="build/libptxsmith.so")
    parse.add_argument("--processes", type=int, default=5)
    parse.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parse.parse_args()
    if args.one:
        faulthandler.enable()
        sys.stdin.readline()
        lib, flush = ptxsmith.Library(args.library), timing.Flush()
        print(json.dumps([measure(lib, flush, row) for row in ROWS]))
        return
    runs = timing.in_processes(__file__, sys.argv[1:], args.processes, waits=True)
    print(f"{torch.cuda.get_device_name()}; microseconds, graph / eager, medians of {len(runs)} processes\n")
    print("| b hq hkv sk, pieces | first | " + " | ".join(WAYS) + " |\n|---|---|" + "---|" * len(WAYS))
    for i, row in enumerate(ROWS):
        both = {kind: decode.medians(runs, i, kind) for kind in ("graph", "eager")}
        cells = [" / ".join(f"{us[n]:.2f} ({us[n] - us['first']:.2f})" for us in both.values()) for n in WAYS]
        print(f"| {' '.join(map(str, row[:4]))}, {row[4]} | " +
              " | ".join([" / ".join(f"{us['first']:.2f}" for us in both.values()), *cells]) + " |")


if __name__ == "__main__":
    main()
