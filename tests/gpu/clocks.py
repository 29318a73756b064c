#!/usr/bin/env python3
"""Where a block's time goes:   clocks.py PROGRAM 'decode_span PARAMS; ...' B,HQ,HKV,SK [SPANS]

Each variant's PTX gets stamps of the SM's clock, one lane each, and runs nine times on random bf16 numbers, head_dim
128, one query, the L2 full of something else.  Medians over all blocks and runs (and the largest), in us at 1.755
GHz, from the first instruction of the block's own thread.  Stamps cost about 1 us.  --check makes the PTX only.
"""
import ctypes
import re
import statistics
import subprocess
import sys

from clusters import CLUSTER, LARGE, SMEM, Attribute, Config, call

GHZ, SLOTS, RUNS = 1.755, 16, 9
FIRST_THREAD = "%n, %seg_at"  # the warp's first tile
# slot, what, whose thread, before or after which line (the first, but for "the last"), condition
MARKS = ((0, "start", "c", "before", r"mov\.f32 +%zero,", None),
         (1, "first copies issued", "c", "after", r"bra +L_first;", None),
         (2, "first tile there", "c", "after", r"the tile is here", FIRST_THREAD),
         (3, "last tile computed", "c", "after", r"^L_rows:", None),
         (4, "rows handed over", "c", "after", r"bar\.arrive +3,", None),
         (8, "start", "m", "before", r"mov\.f32 +%zero,", None),
         (9, "slots merged", "m", "after", r"^L_slots_done:", None),
         (10, "counted, or pieces there", "m", "after", r"ld\.shared\.u32 +%m_old|bra L_pieces;", None),
         (11, "output written", "m", "after the last", r"st\.global\.f32 .*%m_lse;", None))  # who merges an item


def stamp(slot, thread, condition):
    lines = [".reg .u64 %stamp_at, %stamp;", ".reg .u32 %stamp_thread, %stamp_slot;", ".reg .pred %stamps_it;",
             "mov.u32 %stamp_thread, %tid.x;", f"setp.eq.u32 %stamps_it, %stamp_thread, {thread};"]
    if condition:
        lines.append(f"setp.eq.and.s32 %stamps_it, {condition}, %stamps_it;")
    lines += ["mov.u32 %stamp_slot, %ctaid.x;", f"mad.lo.u32 %stamp_slot, %stamp_slot, {SLOTS}, {slot};",
              "mov.u64 %stamp_at, stamps;", "mad.wide.u32 %stamp_at, %stamp_slot, 8, %stamp_at;",
              "mov.u64 %stamp, %clock64;", "@%stamps_it st.global.u64 [%stamp_at], %stamp;"]
    return ["{", *lines, "}"]


def stamped(ptx, blocks):
    """The text with a stamp at each mark; each place must be there."""
    warps = int(re.search(r" warps=(\d+)", ptx)[1])
    lines = ptx.split("\n")
    for slot, what, whose, where, pattern, condition in MARKS:
        found = [i for i, line in enumerate(lines) if re.search(pattern, line.strip())]
        if not found:
            sys.exit(f"no line for '{what}': {pattern}")
        at = found[-1 if "last" in where else 0] + where.startswith("after")
        lines[at:at] = stamp(slot, 0 if whose == "c" else 32 * warps, condition)
    entry = next(i for i, line in enumerate(lines) if line.startswith(".visible .entry"))
    lines.insert(entry, f".visible .global .align 8 .b64 stamps[{blocks * SLOTS}];")
    return "\n".join(lines)


def arguments(ptx, values, tensors):
    """ctypes values in the order of the parameters; tensors: name -> (pointer, strides in bytes)."""
    kinds = {"s32": ctypes.c_int32, "f32": ctypes.c_float, "u64": ctypes.c_uint64, "s64": ctypes.c_int64}
    out = []
    for kind, name in re.findall(r"\.param \.(\w+) (\w+)", ptx):
        tensor, _, dim = name.partition("_stride_")
        if dim:
            value = tensors[tensor][1][int(dim)]
        else:
            value = tensors[name][0] if name in tensors else values[name]
        out.append(kinds[kind](value))
    return out


def made_tensors(torch, ptx, b, hq, hkv, sk, spans):
    """What the kernel takes, and keeps alive: name -> tensor."""
    tile_q = int(re.search(r" tile_q=(\d+)", ptx)[1])
    half, f32 = dict(device="cuda", dtype=torch.bfloat16), dict(device="cuda", dtype=torch.float32)
    t = {"q": torch.randn(b, 1, hq, 128, **half), "k": torch.randn(b, sk, hkv, 128, **half),
         "v": torch.randn(b, sk, hkv, 128, **half), "o": torch.zeros(b, 1, hq, 128, **half),
         "lse": torch.zeros(b, hq, 1, **f32), "o_part": torch.zeros(2, spans, tile_q, 128, **f32),
         "max_part": torch.zeros(2, spans, tile_q, **f32), "sum_part": torch.zeros(2, spans, tile_q, **f32),
         "arrived": torch.zeros(b, hkv, -(-hq // hkv // tile_q), device="cuda", dtype=torch.int32)}
    return t


def number(ptx, pattern):
    """What a pattern's group finds in the text, as a number."""
    return int(re.search(pattern, ptx)[1])


def run(ptx, b, hq, hkv, sk, blocks, cluster):
    import torch
    torch.cuda.init()
    tensors = made_tensors(torch, ptx, b, hq, hkv, sk, blocks)
    flush = torch.ones(1 << 27, device="cuda", dtype=torch.float32)
    cuda = ctypes.CDLL("libcuda.so.1")
    smem, threads = number(ptx, r"dynamic_smem\[\]; // (\d+)"), number(ptx, r"maxntid (\d+)")
    module, function, at, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t()
    call(cuda, "cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx.encode()))
    call(cuda, "cuModuleGetFunction", ctypes.byref(function), module, b"decode_span")
    call(cuda, "cuModuleGetGlobal_v2", ctypes.byref(at), ctypes.byref(size), module, b"stamps")
    call(cuda, "cuFuncSetAttribute", function, SMEM, smem)
    if cluster > 8:
        call(cuda, "cuFuncSetAttribute", function, LARGE, 1)
    values = dict(batch=b, heads_q=hq, heads_kv=hkv, seqlen_q=1, seqlen_k=sk, chunks=blocks, scale=128**-0.5)
    given = arguments(ptx, values, {n: (t.data_ptr(), [s * t.element_size() for s in t.stride()])
                                    for n, t in tensors.items()})
    pointers = (ctypes.c_void_p * len(given))(*(ctypes.cast(ctypes.pointer(a), ctypes.c_void_p) for a in given))
    attribute = Attribute(CLUSTER, 0, (cluster, 1, 1))
    config = Config((blocks, 1, 1), (threads, 1, 1), smem, None, ctypes.pointer(attribute), int(cluster > 1))
    out = []
    for _ in range(RUNS):
        call(cuda, "cuMemsetD8_v2", at, ctypes.c_ubyte(0), size)  # a block that is not the last one has no last stamps
        flush.sum()
        torch.cuda.synchronize()
        call(cuda, "cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)
        torch.cuda.synchronize()
        words = (ctypes.c_uint64 * (blocks * SLOTS))()
        call(cuda, "cuMemcpyDtoH_v2", words, at, ctypes.c_size_t(ctypes.sizeof(words)))
        out += [words[i * SLOTS:(i + 1) * SLOTS] for i in range(blocks)]
    want = torch.nn.functional.scaled_dot_product_attention(
        *(tensors[n].transpose(1, 2).float() for n in "qkv"), enable_gqa=True).transpose(1, 2)
    print(f"largest error {(tensors['o'].float() - want).abs().max().item():.1e}")
    return out


def main():
    check = "--check" in sys.argv
    args = [a for a in sys.argv[1:] if a != "--check"]
    if len(args) < 3:
        sys.exit(__doc__)
    shape = [int(x) for x in args[2].split(",")]
    for variant in args[1].split(";"):
        made = subprocess.run([args[0], "gen", *variant.split()], stdout=subprocess.PIPE, text=True, check=True).stdout
        found = re.search(r"reqnctapercluster (\d+)", made)
        cluster = int(found[1]) if found else 1
        blocks = shape[0] * shape[2] * cluster if cluster > 1 else int(args[3]) if len(args) > 3 else 128
        ptx = stamped(made, blocks)
        if check:
            print(ptx)
        else:
            print(variant.strip(), flush=True)
            report(run(ptx, *shape, blocks, cluster))


def report(rows):
    """Only blocks that get so far count: what stands last may be that of the latest few, so besides the time from
    the start the time from the mark before, in the same blocks."""
    before = {}
    for slot, what, whose, *_ in MARKS:
        start, last = (0 if whose == "c" else 8), before.get(whose)
        us = [(row[slot] - row[start]) / GHZ / 1000 for row in rows if row[slot]]
        if last is not None and us:
            step = [(row[slot] - row[last]) / GHZ / 1000 for row in rows if row[slot] and row[last]]
            print(f"  {what:25s} {statistics.median(us):6.2f}   least {min(us):6.2f}   largest {max(us):6.2f}   "
                  f"after the one before {statistics.median(step):6.2f}   {len(us)} of {len(rows)}", flush=True)
        before[whose] = slot


if __name__ == "__main__":
    main()
