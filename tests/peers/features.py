#!/usr/bin/env python3
"""What features cost: windows beside their share of the visible keys, sequences of different lengths beside
equal ones, a hook that masks beside the mask that is built in.

    features.py --lib build/libptxsmith.so [--templates prefill_mma,prefill_wgmma] [--what window,lengths,hook]

bf16, causal and not, one process; timing.py has the rules.  A ratio of 1 is the target's best: `share` is
(time / visible pairs) of the plain kernel over that of the feature, `rate` the same of equal lengths.
"""
import argparse
import random

import torch

import ptxsmith
import timing


def pairs_causal(q, k):
    n = min(q, k)
    return n * ((k - n + 1) + k) / 2


def pairs_window(s, left):
    return sum(min(i, left) + 1 for i in range(s))


def tensors(shape_q, shape_k):
    q = torch.randn(shape_q, dtype=torch.bfloat16, device="cuda")
    k, v = (torch.randn(shape_k, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    return dict(q=q, k=k, v=v, o=torch.empty_like(q), lse=None)


def dense(lib, template, params, batch, heads, s, d, extra, bound=None):
    problem = f"b={batch},hq={heads},sq={s},sk={s},d={d},dtype=bf16{extra}"
    op = lib.operator(template, params, problem)
    return op.bind(**(bound or tensors((batch, s, heads, d), (batch, s, heads, d))))


def packed(lib, template, params, lengths, heads, d, extra):
    total = sum(lengths)
    problem = (f"b={len(lengths)},hq={heads},sq={max(lengths)},sk={max(lengths)},tq={total},tk={total},"
               f"d={d},dtype=bf16{extra}")
    offsets = torch.tensor([0] + lengths, dtype=torch.int32).cumsum(0, dtype=torch.int32).cuda()
    bound = tensors((total, heads, d), (total, heads, d))
    return lib.operator(template, f"varlen=1 {params}".strip(), problem).bind(
        cu_seqlens_q=offsets, cu_seqlens_k=offsets, **bound)


def windows(lib, flush, template, d, args):
    s, heads = 16384, 2048 // d
    full = dense(lib, template, "", 1, heads, s, d, ",causal=1")
    shared = {n: full.kept.get(n) for n in ("q", "k", "v", "o")}
    lefts = [256, 512, 1024, 2048, 4096]
    ops = {"full": full}
    for left in lefts:
        ops[left] = dense(lib, template, args.params, 1, heads, s, d, f",causal=1,wl={left}",
                          dict(shared, lse=None))
    t = timing.eager({n: op.launch for n, op in ops.items()}, flush, samples=args.samples)
    base = t["full"] / pairs_causal(s, s)
    for left in lefts:
        share = t[left] / pairs_window(s, left) / base
        print(f"{template:14s} d={d:<4d} window {left:5d}: {t[left]:8.1f} us, full {t['full']:8.1f} us, "
              f"time / share of the keys {share:.3f}", flush=True)


def causal_hook(lib, flush, template, d, args):
    heads = 2048 // d
    for s in (512, 1024, 2048, 8192, 16384):
        batch = 16384 // s
        built_in = dense(lib, template, args.params, batch, heads, s, d, ",causal=1")
        hook = lib.operator(template, args.params, f"b={batch},hq={heads},sq={s},sk={s},d={d},dtype=bf16",
                            hook=args.hook).bind(lse=None, **{n: built_in.kept[n] for n in "qkv"},
                                                 o=torch.empty_like(built_in.kept["q"]))
        t = timing.eager({"built in": built_in.launch, "hook": hook.launch}, flush, samples=args.samples)
        same = (hook.kept["o"] - built_in.kept["o"]).abs().max().item()
        print(f"{template:14s} d={d:<4d} causal, {batch:2d} x {s:5d}: built in {t['built in']:8.1f} us, "
              f"hook {t['hook']:8.1f} us, ratio {t['built in'] / t['hook']:.3f}, outputs differ by {same:.2g}",
              flush=True)


def lengths(lib, flush, template, d, causal, args):
    heads, extra = 2048 // d, f",causal={causal}"
    pairs = (lambda n: pairs_causal(n, n)) if causal else (lambda n: n * n)
    draw = random.Random(7)
    sets = {
        "equal 2048": [2048] * 16,
        "half to 1.5 x 2048": [draw.randint(1024, 3072) for _ in range(16)],
        "half to 1.5 x 4096": [draw.randint(2048, 6144) for _ in range(8)],
        "one 16384, 15 x 1024": [16384] + [1024] * 15,
        "64 of 1 to 1024": [draw.randint(1, 1024) for _ in range(64)],
    }
    for name, list_ in sets.items():
        # equal lengths of the same work a token: sum n^2 / sum n, in whole tiles
        mean = max(512, round(sum(n * n for n in list_) / sum(list_) / 128) * 128)
        batch = max(1, round(sum(list_) / mean))
        ops = {"equal": dense(lib, template, "", batch, heads, mean, d, extra),
               "packed": packed(lib, template, args.params, list_, heads, d, extra)}
        t = timing.eager({n: op.launch for n, op in ops.items()}, flush, samples=args.samples)
        flops = {"equal": batch * pairs(mean), "packed": sum(pairs(n) for n in list_)}
        rate = {n: 4e-6 * heads * d * flops[n] / t[n] for n in t}
        print(f"{template:14s} d={d:<4d} causal={causal} {name:22s}: {t['packed']:8.1f} us {rate['packed']:6.1f} "
              f"TFLOP/s, {batch} x {mean}: {rate['equal']:6.1f}, ratio {rate['packed'] / rate['equal']:.3f}",
              flush=True)


def main():
    ask = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ask.add_argument("--lib", required=True)
    ask.add_argument("--templates", default="prefill_wgmma,prefill_mma")
    ask.add_argument("--what", default="lengths,window")
    ask.add_argument("--dims", default="64,128")
    ask.add_argument("--params", default="")
    ask.add_argument("--hook", default="examples/hooks/causal.hook")
    ask.add_argument("--samples", type=int, default=11)
    args = ask.parse_args()
    torch.manual_seed(1)
    torch.zeros(1, device="cuda")
    lib, flush = ptxsmith.Library(args.lib), timing.Flush()
    for what in args.what.split(","):
        for template in args.templates.split(","):
            for d in (int(x) for x in args.dims.split(",")):
                if what == "window":
                    windows(lib, flush, template, d, args)
                if what == "hook":
                    causal_hook(lib, flush, template, d, args)
                for causal in (0, 1) if what == "lengths" else ():
                    lengths(lib, flush, template, d, causal, args)


if __name__ == "__main__":
    main()
