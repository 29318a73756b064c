#!/usr/bin/env python3
"""Prefill beside PyTorch's cuDNN, FlashAttention-2 and memory-efficient attention, and FlashAttention-3
where the package fa3_fwd (or flash_attn_interface) loads.

    tests/peers/prefill.py --library build/libptxsmith.so [--dtype bf16] [--random 12] > table.md

Ours is what the planner chooses (its table's row for the shape, else defaults); --template names one, with
its row of the table, --params gives parameters ("": the defaults).  The table's letters say which.
--screen measures variants beside each other and beside the peers:

    tests/peers/prefill.py --template prefill_wgmma --screen 'tile_k=64;tile_k=80 even=1' --dims 256

Every output, a peer's too, is held against fp64 on sampled rows before its time counts.  Times follow
timing.py: interleaved, cold L2, medians of five processes; a difference under 1 % is a tie.  Rows:
batch x seqlen = 16,384 tokens, heads x head_dim = 2,048, and shapes drawn from --seed.
"""
import argparse
import json
import math
import random
import sys

import torch

import fa3
import ptxsmith
import timing

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32,
         "e4m3": torch.float8_e4m3fn}
E4M3_MAX = 448
PEERS = ["cuDNN", "FA3", "FA2", "mem-eff"]
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
aten = torch.ops.aten


def table_cases(dims, masks, lengths):
    for d in dims:
        for causal in masks:
            for s in lengths:
                yield dict(b=16384 // s, hq=2048 // d, hkv=2048 // d, sq=s, sk=s, d=d, causal=causal)


def random_cases(dims, count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        d, hkv, causal = draw.choice(dims), draw.choice((1, 2, 4, 8)), draw.randrange(2)
        sk = draw.randrange(300, 9000)
        sq = sk if causal or draw.randrange(2) else draw.randrange(300, 9000)
        b = draw.choice((1, 1, 2, 3, 5))
        yield dict(b=b, hq=hkv * draw.choice((1, 2, 4, 6)), hkv=hkv, sq=sq, sk=sk, d=d, causal=causal)


def flops(c):
    """4 batch heads pairs head_dim; causal pairs as the tables count them, half of all."""
    return 4.0 * c["b"] * c["hq"] * c["sq"] * c["sk"] * c["d"] / (2 if c["causal"] else 1)


def name_of(c):
    return ",".join(f"{k}={v}" for k, v in c.items())


class Data:
    """Random Q, K, V of a case in one dtype, and what fp64 makes of some of their rows.  e4m3 comes
    with a factor for each head, its largest magnitude by 448; `outliers` is the share of elements
    that are ten times as large."""

    def __init__(self, c, dtype, outliers=0.0):
        self.c, self.dtype, self.outliers, self.descale = c, TYPES[dtype], outliers, {}
        self.dtype_o = torch.bfloat16 if dtype == "e4m3" else self.dtype
        torch.manual_seed(c["sq"] * 31 + c["sk"])
        self.q = self.make("q", c["sq"], c["hq"])
        self.k, self.v = self.make("k", c["sk"], c["hkv"]), self.make("v", c["sk"], c["hkv"])
        self.scale = 1 / math.sqrt(c["d"])
        ends = torch.tensor([0, 1, c["sq"] - 1, c["sq"] // 2], device="cuda")
        self.rows = torch.cat([ends, torch.randint(0, c["sq"], (28,), device="cuda")])
        self.want = torch.empty(c["b"], len(self.rows), c["hq"], c["d"], device="cuda",
                                dtype=torch.float64)
        plain = torch.empty_like(self.want)
        weights = torch.empty(c["b"], len(self.rows), c["hq"], c["sk"], device="cuda")
        for b in range(c["b"]):
            for h in range(c["hq"]):
                self.want[b, :, h], plain[b, :, h], weights[b, :, h] = self.row_answers(b, h)
        if self.dtype == torch.float32:
            plain = self.sums_in_order(weights).double()
        # the gate of docs/verification.md: twice the plain formula's error, and one unit at max |O|
        # (four times for e4m3)
        unit = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-24}[self.dtype_o]
        top = self.want.abs().max().item()
        times = 4 if self.descale else 2
        self.allowed = times * (plain - self.want).abs().max().item() + 2 * unit * 2.0 ** math.floor(
            math.log2(top))

    def make(self, name, s, h):
        c, e4m3 = self.c, self.dtype == torch.float8_e4m3fn
        x = torch.randn(c["b"], s, h, c["d"], device="cuda", dtype=torch.float32 if e4m3 else self.dtype)
        if self.outliers:
            x *= 1 + 9 * (torch.rand_like(x, dtype=torch.float32) < self.outliers)
        if not e4m3:
            return x
        self.descale[name] = x.abs().amax((1, 3)) / E4M3_MAX  # [batch, heads]
        return (x / self.descale[name][:, None, :, None]).to(self.dtype)

    def row_of(self, name, x, b, h):
        """fp64 numbers of a head, its factor included."""
        return x.to(torch.float32).double() * (
            self.descale[name][b, h].double() if self.descale else 1)

    def row_answers(self, b, h):
        kv = h // (self.c["hq"] // self.c["hkv"])
        q = self.row_of("q", self.q[b, self.rows, h], b, h)
        k, v = self.row_of("k", self.k[b, :, kv], b, kv), self.row_of("v", self.v[b, :, kv], b, kv)
        sees = None
        if self.c["causal"]:
            last = self.rows + self.c["sk"] - self.c["sq"]
            sees = torch.arange(self.c["sk"], device="cuda")[None] <= last[:, None]
        s64 = q @ k.T * self.scale
        s32 = (q @ k.T).float() * self.scale
        if sees is not None:
            s64, s32 = s64.masked_fill(~sees, -math.inf), s32.masked_fill(~sees, -math.inf)
        p = torch.exp(s32 - s32.amax(-1, keepdim=True))
        lift = 256 if self.descale else 1  # weights of 8 bits are rounded where e4m3 has most digits
        rounded = (p * lift).to(self.dtype).to(torch.float32).double() / lift
        plain = (rounded @ v).float() / p.sum(-1, keepdim=True)
        return torch.softmax(s64, -1) @ v, plain.to(self.dtype_o).double(), p

    def sums_in_order(self, p):
        """P V in fp32, key by key: the error that 16-bit answers hide."""
        v = self.v.repeat_interleave(self.c["hq"] // self.c["hkv"], 2)
        o = torch.zeros(self.want.shape, device="cuda")
        for j in range(self.c["sk"]):
            o.addcmul_(p[..., j, None], v[:, None, j])
        return o / p.sum(-1, keepdim=True)

    def mean_square(self, o):
        """Root of the mean square error of the sampled rows, by the mean square of the answer."""
        e = o[:, self.rows].double() - self.want
        return (e.square().mean() / self.want.square().mean()).sqrt().item()

    def error(self, o):
        e = (o[:, self.rows].double() - self.want).abs().max().item()
        return e if math.isfinite(e) else math.inf


def torch_peers(data):
    c = data.c
    group = c["hq"] // c["hkv"]
    q, k, v = (t.transpose(1, 2) for t in (data.q, data.k, data.v))
    if group > 1:  # these entry points take as many K and V heads as Q heads
        k, v = (t.repeat_interleave(group, 1) for t in (k, v))
    causal = bool(c["causal"])
    if causal and c["sq"] != c["sk"] or data.descale:
        return {}  # theirs is aligned top-left, and has no 8-bit types
    calls = {
        "cuDNN": lambda: aten._scaled_dot_product_cudnn_attention(q, k, v, None, False, 0.0, causal),
        "FA2": lambda: aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal),
        "mem-eff": lambda: aten._scaled_dot_product_efficient_attention(q, k, v, None, False, 0.0,
                                                                        causal),
    }
    return {name: (lambda call=call: call()[0].transpose(1, 2)) for name, call in calls.items()}


def fa3_peer(data):
    interface = fa3.module()
    if not interface:
        return {}

    factors = {f"{n}_descale": x for n, x in data.descale.items()}

    def call():
        out = interface.flash_attn_func(data.q, data.k, data.v, causal=bool(data.c["causal"]), **factors)
        return out[0] if isinstance(out, tuple) else out

    return {"FA3": call}


def ours(lib, template, params, data, dtype):
    problem = name_of(data.c) + f",dtype={dtype}"
    op = lib.operator(template, params, problem)
    o = torch.full(data.q.shape, math.nan, device="cuda", dtype=data.dtype_o)
    op.bind(q=data.q, k=data.k, v=data.v, o=o)
    op.bind(**{f"descale_{n}": x for n, x in data.descale.items()})
    if "lse" in op.args():
        op.bind(lse=None)

    def call():
        op.launch()
        return o

    return call, op.choice()


def measure(lib, flush, c, args):
    """{name: {us, error, good}} for one case."""
    data = Data(c, args.dtype, args.outliers)
    specs = {spec: spec for spec in args.screen} if args.screen else {"ptxsmith": args.params}
    made = {name: ours(lib, args.template, spec, data, args.dtype) for name, spec in specs.items()}
    peers = {**torch_peers(data), **(fa3_peer(data) if args.dtype != "f32" else {})}
    calls = {name: call for name, (call, _) in made.items()}
    calls.update({n: call for n, call in peers.items() if n in args.peers})
    good, result = {}, {}
    for name, call in calls.items():
        try:
            o = call()
            e = data.error(o)
        except Exception as why:
            if name in made:
                raise
            print(f"{name} {name_of(c)}: {str(why).splitlines()[0]}", file=sys.stderr)
            continue
        result[name] = {"error": e, "good": e <= data.allowed, "square": data.mean_square(o)}
        if name in made and not result[name]["good"]:
            sys.exit(f"{name} is wrong at {name_of(c)}: error {e:.3e}, allowed {data.allowed:.3e}")
        if result[name]["good"]:
            good[name] = call
    samples = 11 if flops(c) > 1e12 else 21
    for name, us in timing.eager(good, flush, samples=samples).items():
        result[name]["us"] = us
    for name, (_, choice) in made.items():
        result[name]["choice"] = choice
    return result


def numbers(text):
    return [int(n) for n in text.split(",")]


def cases_of(args):
    dims = numbers(args.dims)
    table = [] if args.no_table else list(table_cases(dims, numbers(args.causal), numbers(args.lengths)))
    return table + list(random_cases(dims, args.random, args.seed))


def screened(args, cases, runs):
    """TFLOP/s of each variant and peer, a column for each case; the best of ours is marked."""
    rates = []
    for i, c in enumerate(cases):
        us = {n: [r[i][n]["us"] for r in runs if "us" in r[i].get(n, {})] for n in runs[0][i]}
        rates.append({n: flops(c) / timing.median(t) / 1e6 for n, t in us.items() if t})
    best = [max(args.screen, key=lambda n: rate[n]) for rate in rates]
    print("| variant | " + " | ".join(f"d={c['d']} causal={c['causal']} {c['sq']}" for c in cases) + " |")
    print("|---|" + "---|" * len(cases))
    for n in args.screen + [n for n in PEERS if n in args.peers]:
        cells = [(f"**{r[n]:.1f}**" if n == b else f"{r[n]:.1f}") if n in r else "-"
                 for r, b in zip(rates, best)]
        print(f"| {n or 'defaults'} | " + " | ".join(cells) + " |")


def report(args, cases, runs):
    if args.screen:
        return screened(args, cases, runs)
    names = ["ptxsmith"] + [n for n in PEERS if n in args.peers]
    print("| case | " + " | ".join(f"{n}, TFLOP/s" for n in names) + " | ours / best peer | error | variant |")
    print("|---|" + "---|" * (len(names) + 3))
    ratios, squares, notes = [], [], timing.Footnotes()
    for i, c in enumerate(cases):
        us = {}
        for n in names:
            found = [r[i][n]["us"] for r in runs if "us" in r[i].get(n, {})]
            if found:
                us[n] = timing.median(found)
        rate = {n: flops(c) / t / 1e6 for n, t in us.items()}
        peers = [r for n, r in rate.items() if n != "ptxsmith"]
        ratio = rate["ptxsmith"] / max(peers) if peers else math.nan
        if peers:
            ratios.append(ratio)
        squares.append({n: runs[0][i][n]["square"] for n in names if n in runs[0][i]})
        cells = [f"{rate[n]:.1f}" if n in rate else
                 "wrong" if any(not r[i][n]["good"] for r in runs if n in r[i]) else "-" for n in names]
        error = lambda n: f"{max(r[i][n]['error'] for r in runs):.1e}"
        exact = f", mem-eff {error('mem-eff')}" if args.dtype == "f32" and "mem-eff" in us else ""
        print(f"| {name_of(c)} | " + " | ".join(cells) +
              f" | {ratio:.3f} | {error('ptxsmith')}{exact} | {notes.mark(runs[0][i]['ptxsmith']['choice'])} |")
    notes.print()
    if args.dtype == "e4m3":
        print(f"\nroot mean square error by the answer's, {args.outliers:g} of the inputs outliers:")
        for c, found in zip(cases, squares):
            print(f"  {name_of(c)}: " + ", ".join(f"{n} {e:.4f}" for n, e in found.items()))
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\n{args.template or 'planner'} {args.params or ''} {args.dtype}: geometric mean {mean:.3f}, least "
              f"{min(ratios):.3f}, level or ahead (0.99) on {sum(r >= 0.99 for r in ratios)} of "
              f"{len(ratios)} rows, {len(runs)} processes")


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--library", default="build/libptxsmith.so")
    parse.add_argument("--template", help="else the planner's")
    parse.add_argument("--params", help="else the planner's")
    parse.add_argument("--screen", type=lambda s: s.split(";"), help="variants' parameters, ; between them")
    parse.add_argument("--dtype", default="bf16", choices=list(TYPES))
    parse.add_argument("--dims", default="128,64,256", help="head dimensions")
    parse.add_argument("--causal", default="0,1", help="rows of the table: without a mask, causal")
    parse.add_argument("--lengths", default=",".join(map(str, LENGTHS)), help="rows of the table")
    parse.add_argument("--random", type=int, default=0, help="shapes drawn besides the table")
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--peers", default=PEERS, type=lambda s: s.split(","), help="those of them to measure")
    parse.add_argument("--outliers", type=float, default=0, help="share of elements ten times as large")
    parse.add_argument("--no-table", action="store_true")
    parse.add_argument("--seconds", type=float, default=math.inf, help="start no process after so long")
    parse.add_argument("--processes", type=int, default=5)
    parse.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parse.parse_args()
    if args.screen and (not args.template or args.params is not None):
        parse.error("--screen has its variants' parameters; it needs --template and takes no --params")
    cases = cases_of(args)
    if args.one:
        sys.stdin.readline()  # timing.in_processes: the GPU is ours from here on
        lib, flush = ptxsmith.Library(args.library), timing.Flush()
        print(json.dumps([measure(lib, flush, c, args) for c in cases]))
        return
    runs = timing.in_processes(__file__, sys.argv[1:], args.processes, args.seconds, waits=True)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN "
          f"{torch.backends.cudnn.version()}\n")
    report(args, cases, runs)


if __name__ == "__main__":
    main()
