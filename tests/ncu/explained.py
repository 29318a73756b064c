"""What the profiler has instead of our figure, computed from our counts, and why."""
import functools
import os
from fractions import Fraction

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# What ptxas makes of one instruction: (f32 or f64, operation): how many.
EXPANSION = {
    "div.rn.f32": {("f32", "fma"): 5},
    "rcp.rn.f32": {("f32", "fma"): 2, ("f32", "add"): 1},
    "lg2.approx.f32": {("f32", "mul"): 1},
    "div.rn.f64": {("f64", "fma"): 7, ("f64", "mul"): 1, ("f32", "fma"): 1},
}
# As many more at most: where ex2's argument is below -126 or lg2's below 2^-126, which the counts don't tell.
SMALL = {
    "ex2.approx.f32": {("f32", "mul"): 2},
    "lg2.approx.f32": {("f32", "add"): 1},
}

# What a launch reads from DRAM besides its code and its data: parameters, descriptors, code behind the end.
LAUNCH_BYTES = 4096


@functools.lru_cache(None)
def source(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read().split("\n")


def find(counts, path):
    for part in path.split("/"):
        counts = counts.get(part, 0) if isinstance(counts, dict) else 0
    return counts


def at(counts, text, path):
    """A figure of the template lines that hold `text`; there must be some."""
    lines = [n for n in counts["lines"] if text in source(n["file"])[n["line"] - 1]]
    if not lines:
        raise LookupError(f"{counts['kernel']}: no line that ran holds {text!r}")
    return sum(find(n, path) for n in lines)


def blocks(line):
    return next(int(word[5:]) for word in line.split() if word.startswith("grid="))


def times(n, d=1):
    return lambda ours, counts, line: ours * Fraction(n, d)


def less(share, text, path):
    """Without a share of what the lines that hold `text` have."""
    return lambda ours, counts, line: ours - Fraction(share) * at(counts, text, path)


def all_of(*changes):
    return lambda ours, counts, line: functools.reduce(lambda x, f: f(x, counts, line), changes, ours)


def less_a_block(n):
    return lambda ours, counts, line: ours - n * blocks(line)


def any_number(ours, counts, line):
    return None


# Of decode_span: a warp that computes or merges makes all that may be needed of the head's factors and of the
# scale; ptxas leaves out what its branch has no use for.
FACTOR_LOAD, FACTOR = "ld.global.nc.f32 %other, [%factor_at]", "${to}, ${to}, %other"
SCALE = "%scale_log2, %scale,"
FACTORS = "the computing warps' load of descale_v, which they don't use, is left out"
# A thread's part of the products of prefill_wgmma's producers, which ptxas leaves to the consumers.
PRODUCERS = "products of the scale are left to the consumers: 128 threads of a block have none"

# Metrics of instructions take P0 for false in LDGSTS.BYPASS: @P0 copies nothing, @!P0 copies with every lane.
GUARD = "LDGSTS.BYPASS with the guard P0, which the metric takes for false; l1tex__t_sectors has them"

# Kernel, words of the launch's line, figure, the profiler's of ours, why.
EXPLAINED = [
    ("decode_splitk", "", "shared load wavefronts", times(24, 32),
     "24 LDS of 32: 8 words stay in registers"),
    ("combine", "", "shared load wavefronts", times(12, 16), "8 LDS and 2 LDS.128 for 16 ld.shared"),
    *(("prefill_mma", words, "shared cp.async wavefronts",
       less(1, '${guard or ""}cp.async', "shared/cp_async/wavefronts"), GUARD)
      for words in ("head_dim=64 dtype=f16 causal", "head_dim=64 varlen")),
    *((f"e_cg_{kernel}", "", "shared cp.async wavefronts", times(n, ours), GUARD)
      for kernel, n, ours in (("guard", 0, 4), ("not", 0, 4), ("guards", 24, 28), ("half", 4, 2), ("loop", 32, 8))),
    *((f"a_16_cg_{kernel}", "", "global read sectors", times(n, 32),
       "l1tex__m_xbar2l1tex_read_sectors has 32, as ours: what comes from L2")
      for kernel, n in (("rotated", 20), ("same", 16), ("src64", 16), ("src32", 16))),
    ("decode_span", "dtype_kv=e4m3", "global read requests",
     less("1/4", FACTOR_LOAD, "global/load/requests"), FACTORS),
    ("decode_span", "dtype_kv=e4m3", "global read sectors",
     less("1/4", FACTOR_LOAD, "global/load/sectors"), FACTORS),
    ("decode_span", "dtype_kv=e4m3", "f32 mul",
     all_of(less("1/4", FACTOR, "thread_insts"), less("3/4", SCALE, "thread_insts")),
     "products of the factors and the scale that a branch doesn't use are left out"),
    ("decode_span", "", "f32 mul", less("1/2", SCALE, "thread_insts"),
     "the mergers don't use the scale's product"),
    ("prefill_wgmma", "head_dim=64", "global bulk read sectors", times(46080, 45056),
     "64 rows of Q past the last query of each head, filled with zeros"),
    ("prefill_wgmma", "head_dim=64", "shared store wavefronts", less_a_block(1),
     "two st.v2 of a block's first item are one STS.128"),
    ("prefill_wgmma", "dtype=e4m3", "global bulk read sectors", times(24576, 20480),
     "rows past the last query and key, filled with zeros: 786432 bytes arrive"),
    ("prefill_wgmma", "dtype=e4m3", "f32 mul", less_a_block(4 * 128), PRODUCERS),
    ("prefill_wgmma", "", "f32 mul", less_a_block(128), PRODUCERS),
    ("x_e4m3_k32", "", "tensor fp8 operations", times(0), "mma of e4m3 runs as two of f16"),
    ("x_e4m3_k32", "", "tensor f16 operations", any_number, "mma of e4m3 runs as two of f16"),
    ("x_e4m3_k32", "", "f32 add", any_number, "mma of e4m3 runs as two of f16"),
    ("box2", "i32:-8 i32:9", "global bulk read sectors", times(16 * 4 + 7, 28),
     "16 rows of 4 sectors, most of them filled with zeros; 7 rows lie across a sector more"),
    *((f"t_{kernel}_same", "", name, times(1, 32), "ptxas adds up in the warp, one lane goes to memory")
      for kernel, name in (("red_shared", "shared atomic wavefronts"),
                           ("atom_shared", "shared atomic wavefronts"),
                           ("red_global", "global red sectors"), ("atom_global", "global atom sectors"))),
    *((f"t_atom_shared_f32{suffix}", "", f"shared {way} wavefronts", change, "a loop of LDS and ATOMS.CAS")
      for suffix in ("", "_4way", "_same") for way, change in (("atomic", times(2)), ("load", any_number))),
    *((f"t_atom_shared_f32{suffix}", "", "f32 add", any_number, "a loop of LDS and ATOMS.CAS")
      for suffix in ("", "_4way", "_same")),
]


def explained(name, line, counts, ours):
    """The profiler's figure and why; ours and nothing where the two are the same."""
    for kernel, words, figure, change, why in EXPLAINED:
        if kernel == counts["kernel"] and words in line and figure == name:
            return change(ours, counts, line), why
    return ours, ""


def expanded(name, counts, least):
    """Arithmetic of PTX in machine instructions: the least, the most, and of what."""
    kind, functions = tuple(name.split()), counts["functions"]
    made = {f: functions.get(f, 0) * n.get(kind, 0) for f, n in EXPANSION.items()}
    small = sum(functions.get(f, 0) * n.get(kind, 0) for f, n in SMALL.items())
    least += sum(made.values())
    return least, least + small, [f"{n} of {f}" for f, n in made.items() if n]


def cold_bytes(counts):
    """Bytes that DRAM must send: what the launch reads and has not left in the workspace itself."""
    return sum(b["read"] - (min(b["read"], b["written"]) if b["name"] == "the workspace" else 0)
               for b in counts["buffers"])


def of_dram(counts):
    """The least and the most of a launch: its data, and with it the code that it may run."""
    data = cold_bytes(counts)
    return data, data + (counts["code_bytes"] or 0) + LAUNCH_BYTES
