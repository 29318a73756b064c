"""The latent form for decode.py: one KV head of 576 elements of which the first 512 are the value, in one
tensor.  Peers: plain PyTorch, two batched products and a softmax between them, and FlashMLA where the package
flash_mla loads (which has not been tried)."""
import math

import torch

DIM, DIM_V = 576, 512
# batch, query heads, keys, queries: 16 heads as 8 GPUs share 128, 128 heads on one; short, long and several queries
ROWS = ((1, 16, 16384, 1), (16, 16, 16384, 1), (64, 16, 8192, 1), (1, 128, 16384, 1), (64, 128, 8192, 1),
        (128, 128, 4096, 1), (64, 128, 4096, 2), (64, 16, 8192, 4), (64, 16, 8192, 2))
PAGE = 64  # FlashMLA's only page size


def is_latent(c):
    return "dv" in c


def flops(c):
    keys = sum(c["lens"]) if "lens" in c else c["b"] * c["sk"]
    return 2 * c["hq"] * c["sq"] * keys * (c["d"] + c["dv"])


def answers(data, b):
    """fp64's O of sequence b, and the plain formula's: [sq, hq, 512]."""
    c = data.c
    q = data.q[b].double().flatten(0, 1)
    k = data.k[b, :data.lens[b], 0].double()
    s = q @ k.T * data.scale
    want = torch.softmax(s, -1) @ k[:, :DIM_V]
    s = s.float()
    p = torch.exp(s - s.amax(-1, keepdim=True))
    o = (p.to(data.dtype).double() @ k[:, :DIM_V]).float() / p.sum(-1, keepdim=True)
    return (x.view(c["sq"], c["hq"], DIM_V) for x in (want, o.to(data.dtype).double()))


def plain(data):
    c = data.c

    def call():
        k = data.k[:, :, 0]
        s = (data.q.flatten(1, 2) @ k.mT).float() * data.scale
        return (torch.softmax(s, -1).to(data.dtype) @ k[..., :DIM_V]).view(c["b"], c["sq"], c["hq"], DIM_V)

    return call


def flash_mla(data):
    try:
        import flash_mla as mla
    except Exception:  # absent, or built for another PyTorch
        return {}
    c = data.c
    if c["sk"] % PAGE:
        return {}
    pool = data.k.reshape(-1, PAGE, 1, DIM)
    table = torch.arange(len(pool), device="cuda", dtype=torch.int32).view(c["b"], -1)
    lens = torch.tensor(data.lens, device="cuda", dtype=torch.int32)
    work = mla.get_mla_metadata(lens, c["sq"] * c["hq"], 1)
    return {"FlashMLA": lambda: mla.flash_mla_with_kvcache(data.q, pool, table, lens, DIM_V, *work,
                                                           softmax_scale=data.scale, causal=False)[0]}


def peers(data):
    return {"PyTorch": plain(data), **flash_mla(data)}
