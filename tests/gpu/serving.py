#!/usr/bin/env python3
"""Serving on the GPU: new keys appended, pages and lengths read on the device, one captured graph for all steps.

    tests/gpu/serving.py [LIBRARY]      build/libptxsmith.so

A graph of `varlen=1 append=1 check=1` is captured once and replayed for several steps, in which every request
grows by its new tokens, one begins and one has nothing.  After each step O is held against fp64 by the gate of
docs/verification.md and the pool against a cache that PyTorch keeps, byte by byte; `faults` stays zero.  Then a
page out of the pool and a length beyond the table are given: they set their bits, other requests' answers stay
right, and of the pool only new keys' places change.  Exit 1 with the first thing that is wrong.
"""
import math
import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
import ptxsmith  # noqa: E402

B, HKV, D, LONGEST, STEPS = 6, 2, 128, 700, 4
FP8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def raw(t):
    return t.view(torch.uint8) if t.dtype.itemsize == 1 else t


class Engine:
    """Pages in no order, a cache in one piece beside them, and the operator over the pages."""

    def __init__(self, lib, kind, page, sq, group, params):
        self.name = f"{kind} page={page} sq={sq} group={group} {params}"
        self.sq, self.group, self.page = sq, group, page
        self.stored = FP8.get(kind, torch.bfloat16)
        pages = -(-LONGEST // page)
        self.pool_pages = B * pages + 3
        torch.manual_seed(page + sq)
        order = torch.randperm(self.pool_pages, device="cuda")[:B * pages]
        self.table = order.view(B, pages).to(torch.int32).contiguous()
        self.cache = [self.random(B, pages * page, HKV, D) for _ in range(2)]
        self.pools = [self.random(self.pool_pages, page, HKV, D) for _ in range(2)]
        for cache, pool in zip(self.cache, self.pools):
            raw(pool)[self.table.long()] = raw(cache).view(B, pages, page, HKV, D)
        lens = [300, 0, 17, LONGEST - (STEPS + 1) * sq, 2 * page, 0]
        self.lens = torch.tensor(lens, dtype=torch.int32, device="cuda")
        self.q = torch.empty(B, sq, HKV * group, D, device="cuda", dtype=torch.bfloat16)
        self.new = [self.random(B, sq, HKV, D) for _ in range(2)]
        self.o = torch.zeros_like(self.q)
        self.faults = torch.zeros(B, dtype=torch.int32, device="cuda")
        problem = f"b={B},hq={HKV * group},hkv={HKV},sq={sq},sk={LONGEST},d={D},dtype=bf16"
        if kind in FP8:
            problem += f",dtype_kv={kind}"
        if sq > 1:
            problem += ",causal=1"
        self.op = lib.operator(None if not params.startswith("decode") else params.split()[0],
                               "paged=1 varlen=1 append=1 check=1 " + " ".join(params.split()[1:]), problem,
                               page_size=page, pool_pages=self.pool_pages, pages=pages)
        self.op.bind(q=self.q, k=self.pools[0], v=self.pools[1], k_new=self.new[0], v_new=self.new[1],
                     block_table=self.table, seqlens_k=self.lens, faults=self.faults, o=self.o, lse=None)
        if kind in FP8:
            ones = torch.ones(B, HKV, device="cuda")
            self.op.bind(descale_k=ones * 0.5, descale_v=ones * 2)
        self.factors = (0.5, 2.0) if kind in FP8 else (1.0, 1.0)

    def random(self, *shape):
        return torch.randn(*shape, device="cuda").to(self.stored)

    def grow(self, step):
        """The next tokens: request 1 begins at step 1, request 5 stays empty."""
        self.q.normal_()
        for new in self.new:
            raw(new).copy_(raw(self.random(*new.shape)))
        self.lens += self.sq * torch.tensor([1, int(step >= 1), 1, 1, 1, 0], dtype=torch.int32, device="cuda")
        for b, n in enumerate(self.lens.tolist()):
            if n:
                for cache, new in zip(self.cache, self.new):
                    raw(cache)[b, n - self.sq:n] = raw(new)[b]

    def answers(self, b):
        """fp64's O of request b, and the plain formula's with weights and O in bf16."""
        n, scale = int(self.lens[b]), 1 / math.sqrt(D)
        if not n:
            zero = torch.zeros_like(self.o[b], dtype=torch.float64)
            return zero, zero
        k, v = (cache[b, :n].float().double().mul(f).repeat_interleave(self.group, 1)
                for cache, f in zip(self.cache, self.factors))
        s = torch.einsum("ihd,jhd->hij", self.q[b].double(), k) * scale
        hidden = torch.arange(n, device="cuda") > torch.arange(self.sq, device="cuda")[:, None] + n - self.sq
        s = s.masked_fill(hidden, -math.inf)
        want = torch.einsum("hij,jhd->ihd", torch.softmax(s, -1), v)
        p = torch.exp(s.float() - s.float().amax(-1, keepdim=True))
        plain = torch.einsum("hij,jhd->ihd", p.bfloat16().double(), v) / p.sum(-1).double().T[..., None]
        return want, plain.bfloat16().double()

    def hold(self, step, requests, faults):
        torch.cuda.synchronize()
        if self.faults.tolist() != faults:
            sys.exit(f"{self.name}, step {step}: faults {self.faults.tolist()}, expected {faults}")
        both = [self.answers(b) for b in requests]
        top = max(want.abs().max().item() for want, _ in both)
        allowed = 2 * max((plain - want).abs().max().item() for want, plain in both)
        allowed += 2.0**-7 * 2.0**math.floor(math.log2(top))
        for b, (want, _) in zip(requests, both):
            error = (self.o[b].double() - want).abs().max().item()
            if not error <= allowed:
                sys.exit(f"{self.name}, step {step}, request {b}: error {error:.2e}, allowed {allowed:.2e}")

    def pool_is_cache(self, step):
        for what, pool, cache, before in zip("kv", self.pools, self.cache, self.before):
            want = before.clone()
            want[self.table.long()] = raw(cache).view(B, -1, self.page, HKV, D)
            if not torch.equal(raw(pool), want):
                sys.exit(f"{self.name}, step {step}: the pool of {what} is not the cache")

    def run(self, lib):
        self.before = [raw(pool).clone() for pool in self.pools]
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            lib.use_stream(torch.cuda.current_stream())
            self.op.launch()
        lib.use_stream(torch.cuda.current_stream())
        for step in range(STEPS):
            self.grow(step)
            graph.replay()
            self.hold(step, range(B), [0] * B)
            self.pool_is_cache(step)
        # request 0's newest page is none of the pool's, request 2 is longer than its table
        self.grow(STEPS)
        newest = (int(self.lens[0]) - 1) // self.page
        page, length = int(self.table[0, newest]), int(self.lens[2])
        self.table[0, newest] = self.pool_pages + 7
        self.lens[2] = self.table.shape[1] * self.page + 5
        graph.replay()
        self.hold(STEPS, (1, 3, 4, 5), [1, 0, 2, 0, 0, 0])
        self.table[0, newest], self.lens[2] = page, length
        own = torch.cat((self.table[0, newest:newest + 1], self.table[2])).long()  # whatever they hold now
        for pool, before in zip(self.pools, self.before):
            raw(pool)[own] = before[own]
        for cache, before in zip(self.cache, self.before):
            raw(cache)[2] = before[self.table[2].long()].flatten(0, 1)
            at = newest * self.page
            raw(cache)[0, at:at + self.page] = before[page]
        if self.page >= self.sq:  # else its new keys are on more pages than one
            self.pool_is_cache(STEPS)
        return self.op.choice()


def main():
    lib = ptxsmith.Library(sys.argv[1] if len(sys.argv) > 1 else "build/libptxsmith.so")
    for case in (("bf16", 16, 1, 4, ""), ("bf16", 64, 4, 4, ""), ("bf16", 16, 2, 1, "decode_span fused=0 overlap=1"),
                 ("e4m3", 16, 1, 4, ""), ("e5m2", 1, 3, 8, ""), ("bf16", 16, 1, 4, "decode_span cluster=8 warm=2")):
        engine = Engine(lib, *case)
        print("ok", engine.name.strip(), "|", engine.run(lib), flush=True)


if __name__ == "__main__":
    main()
