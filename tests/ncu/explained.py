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
# As many more of each thread whose argument is small: ex2's below -126, lg2's below 2^-126.
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


def more(share, text, path):
    """With a share of it."""
    return lambda ours, counts, line: ours + Fraction(share) * at(counts, text, path)


def number(n):
    return lambda ours, counts, line: n


def less_a_block(n):
    return lambda ours, counts, line: ours - n * blocks(line)


# Of decode_span: a warp that computes or merges makes all that may be needed of the head's factors and of the
# scale; ptxas leaves out what its branch has no use for.
FACTOR_LOAD, FACTOR = "ld.global.nc.f32 %other, [%factor_at]", "${to}, ${to}, %other"
SCALE = "%scale_log2, %scale,"
FACTORS = "the computing warps' load of descale_v, which they don't use, is left out"
CONSUMERS = "the producers don't use the scale's product"
# ptxas moves the product behind the end of blocks that have no span: to where a span begins, for all its threads.
SPAN, SPANLESS = "%n_end, %span, 1;", ", and blocks without a span don't make it"
# neg of a maximum that only few lanes store: a guarded FADD of theirs.
PIECE_MAX = "@%more st.global.f32 [%o_at], %minus"
# Maxima and sums of 4 rows of 16, 16 bytes of a sector each: read back, each sector's pair comes from DRAM.
STATS = "@%m_lead st.global.f32 [%m_part]"
# Of the merging of slots: a row's first maximum is needed twice and stays in a register; its maximum and sum are
# needed only where a chunk is the only one, and loaded there.
LOADS = "shared/load/wavefronts"
SLOT_MAX, ROW_MAX, ROW_SUM = "ld.shared.f32   %m_m0, [%m_at", "%m_max, [%m_sum_at", "%m_sum, [%m_sum_at"
SLOTS = "a row's first maximum stays in a register, its maximum and sum are loaded where they are needed"
# A thread's part of the products of prefill_wgmma's producers, which ptxas leaves to the consumers.
PRODUCERS = "products of the scale are left to the consumers: 128 threads of a block have none"

FP8_MMA = "mma of e4m3 runs as two of f16"

# Metrics of instructions take P0 for false in LDGSTS.BYPASS: @P0 copies nothing, @!P0 copies with every lane.
GUARD = "LDGSTS.BYPASS with the guard P0, which the metric takes for false; l1tex__t_sectors has them"

# As the operand, too: the wavefronts are those of zeros, 4 of the destination where the source's lines take 8.
FILL = "3 of 16 LDGSTS.BYPASS choose between copy and zeros by P0, which the metric takes for false: half as many"

# Kernel, words of the launch's line, figure, the profiler's of ours, why.
EXPLAINED = [
    ("decode_splitk", "", "shared load wavefronts", times(24, 32),
     "24 LDS of 32: 8 words stay in registers"),
    ("combine", "", "shared load wavefronts", times(12, 16), "8 LDS and 2 LDS.128 for 16 ld.shared"),
    *((kernel, "", "shared load wavefronts",
       all_of(less(f"1/{slots}", SLOT_MAX, LOADS), less(1, ROW_MAX, LOADS), less(1, ROW_SUM, LOADS)), SLOTS)
      for kernel, slots in (("decode_fma", 16), ("decode_mma", 8))),
    *(("prefill_mma", words, "shared cp.async wavefronts",
       less(1, '${guard or ""}cp.async', "shared/cp_async/wavefronts"), GUARD)
      for words in ("head_dim=64 dtype=f16 causal", "head_dim=64 varlen")),
    *((f"e_cg_{kernel}", "", "shared cp.async wavefronts", times(n, ours), GUARD)
      for kernel, n, ours in (("guard", 0, 4), ("not", 0, 4), ("guards", 24, 28), ("half", 4, 2), ("loop", 32, 8))),
    *((f"a_16_cg_{kernel}", "", "global read sectors", times(n, 32),
       "l1tex__m_xbar2l1tex_read_sectors has 32, as ours: what comes from L2")
      for kernel, n in (("rotated", 20), ("same", 16), ("src64", 16), ("src32", 16))),
    ("decode_span", "dtype_kv=e", "global read requests",
     less("1/4", FACTOR_LOAD, "global/load/requests"), FACTORS),
    ("decode_span", "dtype_kv=e", "global read sectors",
     less("1/4", FACTOR_LOAD, "global/load/sectors"), FACTORS),
    ("decode_span", "dtype_kv=e", "f32 mul",
     all_of(less("1/4", FACTOR, "thread_insts"), less("3/4", SCALE, "thread_insts")),
     "products of the factors and the scale that a branch doesn't use are left out"),
    ("decode_span", "cluster=", "f32 mul", less("1/2", SCALE, "thread_insts"),
     "the mergers don't use the scale's product"),
    ("decode_span", "", "f32 mul", all_of(less(1, SCALE, "thread_insts"), more("1/2", SPAN, "thread_insts")),
     "the mergers don't use the scale's product" + SPANLESS),
    *(("decode_span", words, "DRAM bytes read", times(1), "") for words in ("fused=0", "cluster=")),
    ("decode_span", "", "DRAM bytes read", more(64 // 4, STATS, "thread_insts"),
     "sectors of which 16 bytes were written, read back"),
    ("decode_span", "head_dim=64 dtype=f16 dtype_kv=e5m2", "shared cp.async wavefronts", times(29, 32), FILL),
    ("decode_latent", "", "f32 mul", less("1/3", SCALE, "thread_insts"), CONSUMERS),
    ("decode_latent_few", "fused=0", "f32 mul",
     all_of(less(1, SCALE, "thread_insts"), more("3/4", SPAN, "thread_insts")), CONSUMERS + SPANLESS),
    ("decode_latent_few", "", "f32 mul", less("1/4", SCALE, "thread_insts"), CONSUMERS),
    ("decode_latent_few", "", "f32 add", more(1, PIECE_MAX, "thread_insts"),
     "neg of a maximum is a guarded FADD of the lanes that store it"),
    ("ceiling_mma", "dtype=e4m3", "tensor fp8 operations", times(0), FP8_MMA),
    ("ceiling_mma", "dtype=e4m3", "tensor f16 operations",
     lambda ours, counts, line: find(counts, "operations/tensor fp8/flops"), FP8_MMA),
    ("ceiling_mma", "dtype=e4m3", "f32 add", more(4, "mma.sync.aligned", "thread_insts"),
     "and FADDs of the 4 elements of C"),
    ("ceiling_mma", "ceiling_mma grid", "f32 add", more(1, "%round, %round, 1;", "thread_insts"),
     "a turn's FADD makes the word of A and B, -(0x3f803f80)"),
    # Four rows of a thread begin with the same maximum and sink.
    ("prefill_mma", "sinks=1", "f32 add", less("3/4", "${sum}, %sink, ${max}", "thread_insts"),
     "4 rows begin with one difference of sink and maximum"),
    ("prefill_mma", "softcap=1", "f32 fma", lambda ours, counts, line: ours - 1,
     "of a score that is small or not one product has a guard: left out for one of 196,608"),
    ("prefill_wgmma", "half=1", "global bulk read sectors", times(22528, 20480),
     "128 rows of Q past the last query of each head, filled with zeros"),
    ("prefill_wgmma", "half=1", "shared store wavefronts", less_a_block(1),
     "two st.v2 of a block's first item are one STS.128"),
    ("prefill_wgmma", "head_dim=64 dtype=f16", "global bulk read sectors", times(46080, 45056),
     "64 rows of Q past the last query of each head, filled with zeros"),
    ("prefill_wgmma", "head_dim=64 dtype=f16", "shared store wavefronts", less_a_block(1),
     "two st.v2 of a block's first item are one STS.128"),
    ("prefill_wgmma", "dtype=e4m3", "global bulk read sectors", times(24576, 20480),
     "rows past the last query and key, filled with zeros: 786432 bytes arrive"),
    ("prefill_wgmma", "dtype=e4m3", "f32 mul", less_a_block(4 * 128), PRODUCERS),
    ("prefill_wgmma", "", "f32 mul", less_a_block(128), PRODUCERS),
    ("x_e4m3_k32", "", "tensor fp8 operations", times(0), FP8_MMA),
    ("x_e4m3_k32", "", "tensor f16 operations", number(8192), FP8_MMA),
    ("x_e4m3_k32", "", "f32 add", number(32), "and a FADD of the element of C that is stored"),
    ("box2", "i32:-8 i32:9", "global bulk read sectors", times(16 * 4 + 7, 28),
     "16 rows of 4 sectors, most of them filled with zeros; 7 rows lie across a sector more"),
    *((f"t_{kernel}_same", "", name, times(1, 32), "ptxas adds up in the warp, one lane goes to memory")
      for kernel, name in (("red_shared", "shared atomic wavefronts"),
                           ("atom_shared", "shared atomic wavefronts"),
                           ("red_global", "global red sectors"), ("atom_global", "global atom sectors"))),
    # Lanes at one bank succeed one in a turn; those that are left load and add again: 32, 24, 16 and 8 FADD where
    # 4 lanes share a bank, 32, 31 ... 1 where all share a word.
    *((f"t_atom_shared_f32{suffix}", "", figure, change, "a loop of LDS and ATOMS.CAS")
      for suffix, loads, adds in (("", 1, 32), ("_4way", 4 + 3 + 2 + 1, 80), ("_same", 32, 528))
      for figure, change in (("shared atomic wavefronts", times(2)), ("shared load wavefronts", number(loads)),
                             ("f32 add", number(adds)))),
]


def explained(name, line, counts, ours):
    """The profiler's figure and why; ours and nothing where the two are the same."""
    for kernel, words, figure, change, why in EXPLAINED:
        if kernel == counts["kernel"] and words in line and figure == name:
            return change(ours, counts, line), why
    return ours, ""


def expanded(name, counts, figure):
    """Arithmetic of PTX in machine instructions, and of what."""
    kind = tuple(name.split())
    causes = []
    for made, of in ((EXPANSION, "functions"), (SMALL, "functions_small")):
        for function, each in made.items():
            n = counts[of].get(function, 0) * each.get(kind, 0)
            figure += n
            if n:
                causes.append(f"{n} of {'small ' if made is SMALL else ''}{function}")
    return figure, causes


def cold_bytes(counts):
    """Bytes that DRAM must send: pairs of sectors of which the launch reads one, and of the workspace
    those that it has not left there itself."""
    return sum(b["cold64" if b["name"] == "the workspace" else "read64"] for b in counts["buffers"])


def of_dram(line, counts):
    """The least and the most of a launch: its data, and with it the code that it may run."""
    data, _ = explained("DRAM bytes read", line, counts, cold_bytes(counts))
    return data, data + (counts["code_bytes"] or 0) + LAUNCH_BYTES
