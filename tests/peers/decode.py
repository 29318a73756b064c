#!/usr/bin/env python3
"""Decode beside PyTorch's cuDNN and FlashAttention-2, and FlashAttention-3 where the package fa3_fwd (or
flash_attn_interface) loads, with ceiling_read of the same bytes in the same run.

    tests/peers/decode.py --library build/libptxsmith.so --ptxsmith build/ptxsmith [--random 8] > table.md
    tests/peers/decode.py --screen 'decode_mma warps=4 stages=3;decode_mma warps=8' --rows 0,7 --processes 1

Ours is what the planner chooses; --template names one, with its row of the table, --params gives parameters
("": the defaults), and the table's letters say which.

Every output, a peer's too, is held against fp64 before its time counts.  Times follow timing.py: eager and
by graph replay, interleaved, cold L2, medians of five processes; a difference under 1 % is a tie.  The floor
of a row is the least time that anything took in that run to read its K and V.  --screen measures variants
beside each other; --serving measures pages and uneven lengths beside the same bytes in one piece; --latent
the latent form (576 / 512, K and V of one tensor) beside plain PyTorch and FlashMLA where the package
flash_mla loads, with TFLOP/s.
"""
import argparse
import json
import math
import random
import sys

import torch

import fa3
import latent
import ptxsmith
import timing

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
FP8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
UNIT = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-24}
# batch, query heads, KV heads, keys: the rows of the table; head_dim 128
ROWS = ((1, 8, 8, 16384), (1, 32, 8, 16384), (1, 64, 8, 32768), (8, 32, 8, 8192), (1, 32, 32, 16384),
        (1, 32, 8, 131072), (16, 64, 8, 8192), (128, 32, 8, 1024), (16, 32, 8, 16384), (64, 32, 8, 4096),
        (16, 32, 32, 4096))
MB = 1e6
aten = torch.ops.aten


def case(b, hq, hkv, sk, d=128, sq=1, **more):
    return dict(b=b, hq=hq, hkv=hkv, sq=sq, sk=sk, d=d, **more)


def random_cases(count, seed, dims):
    draw = random.Random(seed)
    for _ in range(count):
        hkv, b = draw.choice((1, 2, 4, 8)), draw.choice((1, 2, 3, 7, 20))
        sk = draw.randrange(2000, 600000 // (b * hkv)) if b * hkv < 150 else draw.randrange(500, 4000)
        yield case(b, hkv * draw.choice((1, 2, 4, 7, 8)), hkv, sk, draw.choice(dims))


def kv_bytes(c, size):
    keys = sum(c["lens"]) if "lens" in c else c["b"] * c["sk"]
    if latent.is_latent(c):
        return keys * c["d"] * size
    return 2 * keys * c["hkv"] * c["d"] * size


def name_of(c):
    return ",".join(f"{k}={v}" for k, v in c.items() if k not in ("lens", "page"))


class Data:
    """Random Q, K, V of a case, stored as an engine has them, and what fp64 makes of them."""

    def __init__(self, c, dtype, kv=None, layout="bshd"):
        self.c, self.dtype = c, TYPES[dtype]
        torch.manual_seed(c["b"] * 31 + c["sk"])
        self.q = torch.randn(c["b"], c["sq"], c["hq"], c["d"], device="cuda", dtype=self.dtype)
        shape = c["b"], c["sk"], c["hkv"], c["d"]
        if layout == "bhsd":
            shape = shape[0], shape[2], shape[1], shape[3]
        self.k, self.v = (torch.randn(shape, device="cuda", dtype=self.dtype) for _ in range(2))
        if layout == "bhsd":
            self.k, self.v = self.k.transpose(1, 2), self.v.transpose(1, 2)
        self.k_scale, self.v_scale, self.kv = 1.0, 1.0, kv
        self.stored_k, self.stored_v = self.k, self.v
        if kv:  # scales that differ, so that one in the other's place shows
            self.k_scale, self.v_scale = 0.5, 2.0
            self.stored_k, self.stored_v = self.k.to(FP8[kv]), self.v.to(FP8[kv])
            self.k, self.v = self.stored_k.to(self.dtype), self.stored_v.to(self.dtype)
        self.scale = 1 / math.sqrt(c["d"])
        self.lens = c.get("lens", [c["sk"]] * c["b"])
        self.want = torch.empty(*self.q.shape[:3], c.get("dv", c["d"]), device="cuda", dtype=torch.float64)
        plain = torch.empty_like(self.want)
        wide = self.dtype == torch.float32 and not latent.is_latent(c)
        rows = c["sq"] * c["hq"] // c["hkv"]
        weights = torch.zeros(c["b"], c["hkv"], rows, c["sk"], device="cuda") if wide else None
        for b in range(c["b"]):
            self.want[b], plain[b] = self.answers(b, weights)
        if wide:
            plain = self.sums_in_order(weights).double()
        # the gate of docs/verification.md: twice the plain formula's error, and one unit at max |O|
        top = self.want.abs().max().item()
        self.allowed = 2 * (plain - self.want).abs().max().item() + 2 * UNIT[self.dtype] * 2.0**math.floor(
            math.log2(top))

    def answers(self, b, weights):
        """fp64's O of sequence b, and the plain formula's, or its weights, where sums are in fp32."""
        if latent.is_latent(self.c):
            return latent.answers(self, b)
        c, group, n = self.c, self.c["hq"] // self.c["hkv"], self.lens[b]
        want, plain = [], []
        for h in range(c["hkv"]):
            q = self.q[b, :, h * group:(h + 1) * group].double().flatten(0, 1)
            k, v = self.k[b, :n, h].double() * self.k_scale, self.v[b, :n, h].double() * self.v_scale
            s = q @ k.T * self.scale
            want.append((torch.softmax(s, -1) @ v).view(c["sq"], group, -1))
            s = s.float() if weights is None else q.float() @ k.float().T * self.scale
            p = torch.exp(s - s.amax(-1, keepdim=True))
            if weights is not None:
                weights[b, h, :, :n] = p
            o = (p.to(self.dtype).double() @ v).float() / p.sum(-1, keepdim=True)
            plain.append(o.to(self.dtype).double().view(c["sq"], group, -1))
        return torch.cat(want, 1), torch.cat(plain, 1)

    def sums_in_order(self, weights):
        """P V in fp32 key by key, as the gate has it.  A matrix product's order is its library's choice: of one
        row (as many KV heads as query heads) it makes many short sums, and at 16,384 keys twice the error of 256
        of them is 4.9e-8, while a sum in order, which is the gate's formula and what some peers make, is
        1.6e-7 off (the same formula on a CPU).  Weights are [batch, hkv, rows, keys], rows (query, head)."""
        c, v = self.c, self.v.float() * self.v_scale
        o = torch.zeros(*weights.shape[:3], c["d"], device="cuda")
        for j in range(c["sk"]):
            o.addcmul_(weights[..., j, None], v[:, j, :, None])
        o /= weights.sum(-1, keepdim=True)
        return o.view(c["b"], c["hkv"], c["sq"], -1, c["d"]).transpose(1, 2).reshape(self.want.shape)

    def error(self, o):
        e = (o.double() - self.want).abs().max().item()
        return e if math.isfinite(e) else math.inf


def torch_peers(data):
    q, k, v = (t.transpose(1, 2) for t in (data.q, data.k, data.v))
    calls = {"cuDNN": lambda: aten._scaled_dot_product_cudnn_attention(q, k, v, None, False, 0.0, False),
             "FA2": lambda: aten._scaled_dot_product_flash_attention(q, k, v, 0.0, False)}
    if data.dtype == torch.float32:
        calls = {"mem-eff": lambda: aten._scaled_dot_product_efficient_attention(q, k, v, None, False, 0.0,
                                                                                 False),
                 "math": lambda: (torch.nn.functional.scaled_dot_product_attention(
                     q, k, v, enable_gqa=True),)}
    return {name: (lambda call=call: call()[0].transpose(1, 2)) for name, call in calls.items()}


def fa3_peer(data):
    interface = fa3.module()
    if not interface:
        return {}
    lens = torch.tensor(data.lens, device="cuda", dtype=torch.int32)

    def call(splits):
        out = interface.flash_attn_with_kvcache(data.q, data.k, data.v, cache_seqlens=lens,
                                                num_splits=splits)
        return out[0] if isinstance(out, tuple) else out

    return {"FA3": lambda: call(0)}


def paged(data, page):
    """K and V in pages of a pool, in no order, and the block table."""
    c = data.c
    pages = (c["sk"] + page - 1) // page
    order = torch.randperm(c["b"] * pages, device="cuda")
    pools = []
    for x in (data.stored_k, data.stored_v):
        x = x.view(torch.uint8) if data.kv else x  # few operations know 8-bit floats
        whole = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, pages * page - c["sk"]))
        pool = torch.empty(c["b"] * pages, page, c["hkv"], c["d"], device="cuda", dtype=x.dtype)
        pool[order] = whole.view(c["b"] * pages, page, c["hkv"], c["d"])
        pools.append(pool.view(FP8[data.kv]) if data.kv else pool)
    return pools, order.view(c["b"], pages).to(torch.int32)


def takes(spec, c):
    """A variant whose tile has fewer rows than the case is left out: it would read K and V twice.  So is one
    whose tensor copies bring more keys than a page has."""
    words = dict(w.split("=") for w in spec.split()[1:])
    rows, box = (int(words.get(name, 0)) for name in ("tile_q", "box"))
    return (not rows or rows >= c["sq"] * c["hq"] // c["hkv"]) and (not box or c.get("page", box) % box == 0)


def ours(lib, spec, data, dtype, tuned):
    """spec: TEMPLATE PARAMS, with chunks=N or spans=N of the problem among them; the template `planner` is
    the planner's.  tuned: parameters that are not given are those of its table."""
    c = data.c
    template, *words = spec.split()
    template = None if template == "planner" else template
    ints = {k: int(v) for k, v in (w.split("=") for w in words if w.startswith(("chunks=", "spans=")))}
    params = [w for w in words if not w.startswith(("chunks=", "spans="))]
    tensors = dict(q=data.q, k=data.stored_k, v=data.stored_v)
    if latent.is_latent(c):  # v is a part of k
        del tensors["v"]
    problem = name_of(c) + f",dtype={dtype}"
    if data.kv:
        problem += f",dtype_kv={data.kv}"
        factors = torch.ones(c["b"], c["hkv"], device="cuda")
        tensors.update(descale_k=factors * data.k_scale, descale_v=factors * data.v_scale)
    if "page" in c:
        pools, tensors["block_table"] = paged(data, c["page"])
        tensors.update((n, pool) for n, pool in zip("kv", pools) if n in tensors)
        params.append("paged=1")
        ints.update(page_size=c["page"], pool_pages=len(tensors["k"]), pages=tensors["block_table"].shape[1])
    if "lens" in c:
        params.append("varlen=1")
        tensors["seqlens_k"] = torch.tensor(c["lens"], device="cuda", dtype=torch.int32)
    op = lib.operator(template, " ".join(params), problem, tuned=tuned, **ints)
    o = torch.full_like(data.want, math.nan, dtype=data.q.dtype)
    op.bind(o=o, **tensors)
    if "lse" in op.args():
        op.bind(lse=None)

    def call():
        op.launch()
        return o

    return call, op.choice()


def ceiling(lib, variants, nbytes):
    """ceiling_read as tuned for the size nearest to nbytes; a grid of one block a tile grows with the bytes."""
    words = nbytes // 4
    near = min(variants, key=lambda mb: abs(math.log(float(mb) * 2**20 / nbytes)))
    params, grid = variants[near]
    if grid > 8 * 132:
        grid = max(1, round(grid * nbytes / (float(near) * 2**20)))
    src = torch.ones(words, device="cuda", dtype=torch.int32)
    sums = torch.empty(grid, device="cuda", dtype=torch.int32)
    op = lib.operator("ceiling_read", params, f"words={words}", grid=grid, blocks=grid)
    op.bind(src=src, sums=sums)
    return op.launch


def measure(lib, flush, c, args):
    """{name: {eager, graph, error, good}} for one case."""
    data = Data(c, args.dtype, args.kv, args.layout)
    one = (args.template or ("decode_latent" if args.latent else "planner")) + " " + (args.params or "")
    specs = [s for s in args.screen or [one] if takes(s, c)]
    tuned = not args.screen and args.params is None
    made = {(spec if args.screen else "ptxsmith"): ours(lib, spec, data, args.dtype, tuned) for spec in specs}
    calls = {name: call for name, (call, _) in made.items()}
    if not args.no_peers and not args.kv:
        if latent.is_latent(c):
            calls.update(latent.peers(data) if "page" not in c and "lens" not in c else {})
        elif "page" not in c and "lens" not in c:
            calls.update(torch_peers(data))
        if not latent.is_latent(c) and args.dtype != "f32" and "page" not in c and "FA3" in args.peers:
            calls.update(fa3_peer(data))
        calls = {n: call for n, call in calls.items() if n in specs + ["ptxsmith"] or n in args.peers.split(",")}
    good, result = {}, {}
    for name, call in calls.items():
        try:
            e = data.error(call())
        except Exception as why:
            if name in specs or name == "ptxsmith":
                raise
            print(f"{name} {name_of(c)}: {str(why).splitlines()[0]}", file=sys.stderr)
            continue
        result[name] = {"error": e, "good": e <= data.allowed}
        if name in made:
            result[name]["choice"] = made[name][1]
        if not result[name]["good"] and (name in specs or name == "ptxsmith"):
            sys.exit(f"{name} is wrong at {name_of(c)}: error {e:.3e}, allowed {data.allowed:.3e}")
        if result[name]["good"]:
            good[name] = call
    nbytes = kv_bytes(c, data.stored_k.element_size())
    good["ceiling_read"] = ceiling(lib, args.ceilings, nbytes)
    result["ceiling_read"] = {"error": 0, "good": True}
    samples = 11 if nbytes > 5e8 else 15
    for name, us in timing.eager(good, flush, samples=samples).items():
        result[name]["eager"] = us
    for name, us in timing.graph(good, flush, samples=7, on_stream=lib.use_stream).items():
        result[name]["graph"] = us
    return result


def serving_cases():
    """Pages and uneven lengths, each beside the row of the same bytes; name, case."""
    yield case(8, 32, 8, 8192)
    for page in (64, 16, 1):
        yield case(8, 32, 8, 8192, page=page)
    lens = [100000] + [1024] * 63  # 163 k keys, and as many in 64 equal requests
    yield case(64, 32, 8, sum(lens) // 64)
    yield case(64, 32, 8, 100000, lens=lens)


def cases_of(args):
    if args.latent:
        cases = [case(b, hq, 1, sk, latent.DIM, sq, dv=latent.DIM_V) for b, hq, sk, sq in latent.ROWS]
        return [cases[int(i)] for i in args.rows.split(",")] if args.rows else cases
    if args.serving:
        return list(serving_cases())
    rows = ROWS if args.rows is None else [ROWS[int(i)] for i in args.rows.split(",") if i]
    return [case(*r) for r in rows] + list(random_cases(args.random, args.seed, args.dims))


def medians(runs, i, kind):
    names = dict.fromkeys(n for r in runs for n in r[i])
    us = {n: [r[i][n][kind] for r in runs if kind in r[i].get(n, {})] for n in names}
    return {n: timing.median(v) for n, v in us.items() if v}


def row_name(c):
    extra = f" pages of {c['page']}" if "page" in c else " uneven" if "lens" in c else ""
    if latent.is_latent(c):
        extra += f" queries={c['sq']}"
    return f"{c['b']} {c['hq']} {c['hkv']} {c['sk']} d={c['d']}{extra}"


def report(args, cases, runs):
    names = list(dict.fromkeys(n for r in runs for row in r for n in row))
    own = [n for n in names if n.startswith(("ptxsmith", "decode_"))]
    heads = names + ["TFLOP/s"] * args.latent
    print("| b hq hkv sk | MB | " + " | ".join(heads) + " | best peer / ours | ours / floor | GB/s | error | variant |")
    print("|---|---|" + "---|" * (len(heads) + 5))
    size = (FP8[args.kv] if args.kv else TYPES[args.dtype]).itemsize
    ratios, notes = {"eager": [], "graph": []}, timing.Footnotes()
    for i, c in enumerate(cases):
        both = {kind: medians(runs, i, kind) for kind in ratios}
        cells, over, above = [], [], []
        for n in names:
            cells.append(" / ".join(f"{both[k][n]:.2f}" for k in ("graph", "eager")) if n in both["graph"]
                         else "wrong" if any(not r[i][n]["good"] for r in runs if n in r[i]) else "-")
        for kind in ("graph", "eager"):
            us = both[kind]
            mine = min(us[n] for n in own if n in us)
            peers = [t for n, t in us.items() if n not in own and n != "ceiling_read"]
            if peers:
                ratios[kind].append(min(peers) / mine)
            over.append(f"{ratios[kind][-1]:.3f}" if peers else "-")
            above.append(f"{mine / min(us.values()):.3f}")
        nbytes, fastest = kv_bytes(c, size), min(both["graph"][n] for n in own if n in both["graph"])
        error = max(r[i][n]["error"] for r in runs for n in own if n in r[i])
        if latent.is_latent(c):
            cells.append(f"{latent.flops(c) / fastest / 1e6:.0f}")
        print(f"| {row_name(c)} | {nbytes / MB:.0f} | " + " | ".join(cells) +
              f" | {' / '.join(over)} | {' / '.join(above)} | {nbytes / fastest / 1e3:.0f} | {error:.1e} | " +
              " ".join(notes.mark(runs[0][i][n]["choice"]) for n in own if n in runs[0][i]) + " |")
    notes.print()
    for kind, found in ratios.items():
        if found:
            mean = math.exp(sum(map(math.log, found)) / len(found))
            print(f"\n{kind}: best peer / ours, geometric mean {mean:.3f}, least {min(found):.3f}, level or ahead "
                  f"(0.99) on {sum(r >= 0.99 for r in found)} of {len(found)} rows, {len(runs)} processes")


def tuned(args, sizes):
    from read import tuned as tune
    return {str(mb): tune(args.ptxsmith, mb) for mb in sizes}


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--library", default="build/libptxsmith.so")
    parse.add_argument("--ptxsmith", default="build/ptxsmith")
    parse.add_argument("--template", help="else the planner's, decode_latent with --latent")
    parse.add_argument("--params", help="else the planner's")
    parse.add_argument("--screen", type=lambda s: [x.strip() for x in s.split(";")],
                       help="'TEMPLATE PARAMS; ...': several of ours beside each other")
    parse.add_argument("--dtype", default="bf16", choices=list(TYPES))
    parse.add_argument("--kv", choices=list(FP8), help="8-bit K and V under Q of --dtype")
    parse.add_argument("--layout", default="bshd", choices=("bshd", "bhsd"), help="how K and V are stored")
    parse.add_argument("--dims", default=[128], type=lambda s: [int(x) for x in s.split(",")],
                       help="head dimensions of the random shapes")
    parse.add_argument("--rows", help="rows of the table, comma separated; all")
    parse.add_argument("--random", type=int, default=0, help="shapes drawn besides the table")
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--serving", action="store_true", help="pages and uneven lengths instead")
    parse.add_argument("--latent", action="store_true", help="the latent form (decode_latent) instead")
    parse.add_argument("--no-peers", action="store_true")
    parse.add_argument("--peers", default="cuDNN,FA2,FA3,mem-eff,math,PyTorch,FlashMLA", help="those of them to measure")
    parse.add_argument("--seconds", type=float, default=math.inf, help="start no process after so long")
    parse.add_argument("--processes", type=int, default=5)
    parse.add_argument("--ceilings", type=json.loads, help="tuned ceiling_read variants by MB: {MB: [params, grid]}")
    parse.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parse.parse_args()
    cases = cases_of(args)
    if args.one:
        sys.stdin.readline()  # timing.in_processes: the GPU is ours from here on
        lib, flush = ptxsmith.Library(args.library), timing.Flush()
        print(json.dumps([measure(lib, flush, c, args) for c in cases]))
        return
    arguments = sys.argv[1:]
    if not args.ceilings:
        args.ceilings = tuned(args, (64, 128, 256, 512, 1024))
        arguments += ["--ceilings", json.dumps(args.ceilings)]
        print(f"--ceilings '{json.dumps(args.ceilings)}'", file=sys.stderr)
    runs = timing.in_processes(__file__, arguments, args.processes, args.seconds, waits=True)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN "
          f"{torch.backends.cudnn.version()}; microseconds, graph / eager\n")
    report(args, cases, runs)


if __name__ == "__main__":
    main()
