#!/usr/bin/env python3
"""What features cost: windows beside their share of the visible keys, sequences of different lengths
beside equal ones, a hook that masks beside the mask that is built in.

    features.py --lib build/libptxsmith.so [--templates prefill_mma,prefill_wgmma] [--dims 64,128]
                [--what lengths,window,hook] [--processes 5]

A template's parameters are those of the planner's table, its defaults where that has no row; --params
gives the features' own ("": the defaults), several of them with ";" between them: then each has a
column, all are launched in turn beside one plain kernel, which --plain gives parameters.

bf16, 2,048 / head_dim heads; timing.py has the rules.  1 is as good as the plain kernel and more is
better: (its time for the same work) / (the feature's time).
"""
import argparse
import json
import random
import sys

import torch

import ptxsmith
import timing


def pairs_causal(n):
    return n * (n + 1) / 2


def pairs_window(s, left):
    return sum(min(i, left) + 1 for i in range(s))


def tensors(shape):
    q, k, v = (torch.randn(shape, dtype=torch.bfloat16, device="cuda") for _ in range(3))
    return dict(q=q, k=k, v=v, o=torch.empty_like(q), lse=None)


def dense(lib, template, params, shape, extra, bound=None, hook=None):
    batch, s, heads, d = shape
    problem = f"b={batch},hq={heads},sq={s},sk={s},d={d},dtype=bf16{extra}"
    op = lib.operator(template, params, problem, hook=hook)
    return op.bind(**dict(bound or tensors(shape), lse=None))


def packed(lib, template, params, lengths, heads, d, extra):
    total, most = sum(lengths), max(lengths)
    problem = (f"b={len(lengths)},hq={heads},sq={most},sk={most},tq={total},tk={total},d={d},"
               f"dtype=bf16{extra}")
    ends = torch.tensor([0] + lengths, dtype=torch.int32).cumsum(0, dtype=torch.int32).cuda()
    return lib.operator(template, f"varlen=1 {params or ''}".strip(), problem, tuned=params is None).bind(
        cu_seqlens_q=ends, cu_seqlens_k=ends, **tensors((total, heads, d)))


def windows(lib, flush, template, d, args):
    shape = (1, 16384, 2048 // d, d)
    full = dense(lib, template, args.plain, shape, ",causal=1")
    lefts = [256, 512, 1024, 2048, 4096]
    ops = {(left, own): dense(lib, template, own, shape, f",causal=1,wl={left}", full.kept)
           for left in lefts for own in args.params}
    t = timing.eager({n: op.launch for n, op in {"full": full, **ops}.items()}, flush, args.samples)
    each = t["full"] / pairs_causal(shape[1])
    for left, own in ops:
        yield (f"window of {left} keys", own, t[left, own], each * pairs_window(shape[1], left))


def lengths(lib, flush, template, d, causal, args):
    heads, extra, draw = 2048 // d, f",causal={causal}", random.Random(7)
    pairs = pairs_causal if causal else lambda n: n * n
    sets = {
        "16 of 2,048": [2048] * 16,
        "16 of 1,024 to 3,072": [draw.randint(1024, 3072) for _ in range(16)],
        "8 of 2,048 to 6,144": [draw.randint(2048, 6144) for _ in range(8)],
        "one of 16,384, 15 of 1,024": [16384] + [1024] * 15,
        "64 of 1 to 1,024": [draw.randint(1, 1024) for _ in range(64)],
    }
    for name, list_ in sets.items():
        # equal lengths of the same work a token, sum n^2 / sum n, in whole tiles; or as many of the mean
        mean = max(512, round(sum(n * n for n in list_) / sum(list_) / 128) * 128)
        batch = max(1, round(sum(list_) / mean))
        if args.equal == "mean":
            mean, batch = round(sum(list_) / len(list_)), len(list_)
        equal = dense(lib, template, args.plain, (batch, mean, heads, d), extra)
        ops = {own: packed(lib, template, own, list_, heads, d, extra) for own in args.params}
        t = timing.eager({n: op.launch for n, op in {"equal": equal, **ops}.items()}, flush,
                         args.samples)
        fair = t["equal"] / (batch * pairs(mean)) * sum(pairs(n) for n in list_)
        for own in ops:
            yield (f"{name}{', causal' if causal else ''}", own, t[own], fair)


def causal_hook(lib, flush, template, d, args):
    for s, own in ((s, own) for s in (512, 1024, 2048, 8192, 16384) for own in args.params):
        shape = (16384 // s, s, 2048 // d, d)
        built_in = dense(lib, template, own, shape, ",causal=1")
        kept = dict(built_in.kept, o=torch.empty_like(built_in.kept["q"]))
        hook = dense(lib, template, built_in.own(), shape, "", kept, args.hook)
        t = timing.eager({"built in": built_in.launch, "hook": hook.launch}, flush, args.samples)
        if not torch.equal(kept["o"], built_in.kept["o"]):
            sys.exit(f"{template} d={d} s={s}: the hook's output is another one")
        yield (f"causal as a hook, {shape[0]} x {s:,}", own, t["hook"], t["built in"])


def measure(args):
    torch.manual_seed(1)
    lib, flush, found = ptxsmith.Library(args.lib), timing.Flush(), {}
    for template in args.templates.split(","):
        for d in (int(x) for x in args.dims.split(",")):
            ask = (lib, flush, template, d)
            for what in args.what.split(","):
                rows = [windows(*ask, args)] if what == "window" else (
                    [causal_hook(*ask, args)] if what == "hook" else
                    [lengths(*ask, 0, args), lengths(*ask, 1, args)])
                for name, own, us, fair in (row for some in rows for row in some):
                    column = f"{template} {d}" + (f" {own or 'default'}" if args.params[1:] else "")
                    found.setdefault(name, {})[column] = [us, fair / us]
    return found


def report(runs):
    columns = list(dict.fromkeys(c for rows in runs[0].values() for c in rows))
    print("| what | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for name in runs[0]:
        cells = []
        for c in columns:
            us, ratio = (timing.median([r[name][c][i] for r in runs]) for i in (0, 1))
            cells.append(f"{ratio:.2f} ({us:,.0f} us)")
        print(f"| {name} | " + " | ".join(cells) + " |")


def main():
    ask = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    ask.add_argument("--lib", required=True)
    ask.add_argument("--templates", default="prefill_wgmma,prefill_mma")
    ask.add_argument("--what", default="lengths,window,hook")
    ask.add_argument("--dims", default="128,64")
    ask.add_argument("--params", type=lambda s: s.split(";"), default=[None])
    ask.add_argument("--plain")
    ask.add_argument("--equal", choices=("work", "mean"), default="work",
                     help="the lengths beside which different ones stand: whole tiles and the same work "
                     "a token, or the mean of the lengths as it is, whose last tile is not full either")
    ask.add_argument("--hook", default="examples/hooks/causal.hook")
    ask.add_argument("--samples", type=int, default=11)
    ask.add_argument("--processes", type=int, default=5)
    ask.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = ask.parse_args()
    if args.one:
        torch.zeros(1, device="cuda")
        print(json.dumps(measure(args)))
    else:
        report(timing.in_processes(__file__, [a for a in sys.argv[1:]], args.processes))


if __name__ == "__main__":
    main()
