"""Launches a list under ncu and on the interpreter, prints both columns.  Called by compare.sh.

With NCU_CSV=FILE what ncu printed is kept there, or taken from there where the file exists.
"""
import csv
import json
import os
import subprocess
import sys
from fractions import Fraction

SASS_WAVES = "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_"
WAVES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
SASS_INST = "sm__sass_inst_executed_op_"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_"
THREADS = "smsp__sass_thread_inst_executed_op_"
TENSOR = "sm__ops_path_tensor_src_"

# Why a figure is shown but not compared.
PTX = "PTX instructions, not ptxas's"
ARBITRATION = "the hardware's counter has arbitration in it"
UNSTEADY = "the hardware's counter is not the same in every run"
REMOVED = "ptxas removes or merges accesses; the wavefronts are compared"
LAUNCH = "a launch itself reads about 3 KB from DRAM"
MOVES = "ptxas loads constants with HFMA2 and converts with HADD2"

# What ptxas makes of one instruction: (f32 or f64, operation): how many.
EXPANSION = {
    "div.rn.f32": {("f32", "fma"): 5},
    "rcp.rn.f32": {("f32", "fma"): 2, ("f32", "add"): 1},
    "lg2.approx.f32": {("f32", "mul"): 1},
    "div.rn.f64": {("f64", "fma"): 7, ("f64", "mul"): 1, ("f32", "fma"): 1},
}
# And as many more as this where the argument is below -126, which the counts don't tell.
EX2_MULS = 2

# Kernel, words of the launch's line, figure: how many times ours it is (None: any number), and why.
EXPLAINED = [
    ("decode_splitk", "", "shared load wavefronts", Fraction(24, 32),
     "24 LDS of 32: 8 words stay in registers"),
    ("combine", "", "shared load wavefronts", Fraction(12, 16), "8 LDS and 2 LDS.128 for 16 ld.shared"),
    ("prefill_mma", "head_dim=64 dtype=f16 causal", "shared cp.async wavefronts", Fraction(1, 2),
     "half can't be: 2048 wavefronts of 128 bytes for 524288 bytes"),
    *((f"a_16_cg_{kernel}", "", "global read sectors", Fraction(times, 32),
       "l1tex__m_xbar2l1tex_read_sectors has 32, as ours: what comes from L2")
      for kernel, times in (("rotated", 20), ("same", 16), ("src64", 16), ("src32", 16))),
    ("prefill_wgmma", "head_dim=64", "global bulk read sectors", Fraction(46080, 45056),
     "64 rows of Q past the last query of each head, filled with zeros"),
    ("prefill_wgmma", "dtype=e4m3", "global bulk read sectors", Fraction(24576, 20480),
     "rows past the last query and key, filled with zeros: 786432 bytes arrive"),
    ("prefill_wgmma", "dtype=e4m3", "f32 mul", Fraction(286336 + 6144 - 4 * 128 * 8, 286336),
     "6144 of lg2.approx.f32; 4 products are left to the consumers: 128 threads of 8 blocks have none"),
    ("x_e4m3_k32", "", "tensor fp8 operations", Fraction(0), "mma of e4m3 runs as two of f16"),
    ("x_e4m3_k32", "", "tensor f16 operations", None, "mma of e4m3 runs as two of f16"),
    ("x_e4m3_k32", "", "f32 add", None, "mma of e4m3 runs as two of f16"),
    ("box2", "i32:-8 i32:9", "global bulk read sectors", Fraction(16 * 4 + 7, 28),
     "16 rows of 4 sectors, most of them filled with zeros; 7 rows lie across a sector more"),
    *((f"t_{kernel}_same", "", name, Fraction(1, 32), "ptxas adds up in the warp, one lane goes to memory")
      for kernel, name in (("red_shared", "shared atomic wavefronts"),
                           ("atom_shared", "shared atomic wavefronts"),
                           ("red_global", "global red sectors"), ("atom_global", "global atom sectors"))),
    *((f"t_atom_shared_f32{suffix}", "", f"shared {way} wavefronts", times, "a loop of LDS and ATOMS.CAS")
      for suffix in ("", "_4way", "_same") for way, times in (("atomic", Fraction(2)), ("load", None))),
    *((f"t_atom_shared_f32{suffix}", "", "f32 add", None, "a loop of LDS and ATOMS.CAS")
      for suffix in ("", "_4way", "_same")),
]


class Metric:
    """Our counters (paths in the JSON) and the profiler's metrics, the sums of which are compared.

    bound: of the relative difference, None where `why` tells that the two are no pair.  least: ours
    from which they are.
    """

    def __init__(self, name, ours, metrics, bound=None, why="", least=0):
        self.name, self.bound, self.why, self.least = name, bound, why, least
        self.ours = ours.split(", ")
        self.metrics = [m + ".sum" for m in metrics.split()]


def shared(name, ours, sass, hardware):
    """Wavefronts: where they are compared, and the hardware's counter."""
    paths = ", ".join(f"ways/shared/{way}/wavefronts" for way in ours.split())
    out = [Metric(f"shared {name} wavefronts", paths, " ".join(SASS_WAVES + op for op in sass.split()), 0.03)]
    if hardware:
        out.append(Metric("  counted by hardware", paths, WAVES + hardware, why=ARBITRATION))
    return out


METRICS = [
    Metric("warp instructions", "warp_insts", "smsp__inst_executed", why=PTX),
    Metric("global read requests", "ways/global/load/requests, ways/global/cp_async/requests",
           REQUESTS + "ld", 0.01),
    Metric("global read sectors", "ways/global/load/sectors, ways/global/cp_async/sectors", SECTORS + "ld",
           0.01),
    Metric("global write requests", "ways/global/store/requests", REQUESTS + "st", 0.01),
    Metric("global write sectors", "ways/global/store/sectors",
           "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_st", 0.01),
    Metric("  counted by hardware", "ways/global/store/sectors", SECTORS + "st", why=UNSTEADY),
    Metric("global atom requests", "ways/global/atom/requests", REQUESTS + "atom", 0.01),
    Metric("global atom sectors", "ways/global/atom/sectors", SECTORS + "atom", 0.01),
    Metric("global red requests", "ways/global/red/requests", REQUESTS + "red", 0.01),
    Metric("global red sectors", "ways/global/red/sectors", SECTORS + "red", 0.01),
    Metric("global bulk read sectors", "ways/global/bulk_read/sectors",
           "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld", 0.01),
    Metric("global bulk write sectors", "ways/global/bulk_write/sectors",
           "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st", 0.01),
    Metric("global bulk red sectors", "ways/global/bulk_red/sectors",
           "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red", 0.01),
    Metric("DRAM bytes read", "distinct_read_bytes", "dram__bytes_read", 0.02, LAUNCH, least=1 << 20),
    Metric("shared load requests", "ways/shared/load/requests", SASS_INST + "shared_ld " + SASS_INST + "ldsm",
           why=REMOVED),
    *shared("load", "load", "ld ldsm", "ld"),
    Metric("shared store requests", "ways/shared/store/requests",
           SASS_INST + "shared_st " + SASS_INST + "shared_stsm", why=REMOVED),
    *shared("store", "store", "st stsm", "st"),
    *shared("atomic", "atom red", "atom", ""),
    *shared("cp.async", "cp_async", "ldgsts", ""),
    *shared("wgmma", "wgmma", "gmma", "gmma"),
    Metric("  arbitration", "nothing", "l1tex__data_bank_conflicts_type_arbitration", why="timing"),
    Metric("st.async sectors", "ways/shared/st_async/wavefronts",
           "l1tex__m_l1tex2xbar_write_sectors_mem_dshared_op_st", why="4 sectors a wavefront"),
    Metric("tensor f16 operations", "operations/tensor f16/flops", TENSOR + "fp16", 0.01),
    Metric("tensor bf16 operations", "operations/tensor bf16/flops", TENSOR + "bf16_dst_fp32", 0.01),
    Metric("tensor tf32 operations", "operations/tensor tf32/flops", TENSOR + "tf32_dst_fp32", 0.01),
    Metric("tensor fp8 operations", "operations/tensor fp8/flops", TENSOR + "fp8", 0.01),
    Metric("tensor int operations", "operations/tensor int/flops", TENSOR + "int8", 0.01),
    *(Metric(f"{kind} {op}", f"operations/{kind}/{op}", f"{THREADS}{letter}{op}_pred_on", 0.01)
      for kind, letter in (("f32", "f"), ("f64", "d")) for op in ("fma", "add", "mul")),
    *(Metric(f"half {op}", f"operations/f16/{op}, operations/bf16/{op}", f"{THREADS}h{op}_pred_on", why=MOVES)
      for op in ("fma", "add", "mul")),
]


def read_list(path):
    with open(path) as f:
        lines = [line.split("#")[0].strip() for line in f]
    return [line for line in lines if line]


def run_ours(launch, path):
    """Counters of every launch, in order."""
    text = subprocess.run([launch, "sim", path], capture_output=True, text=True)
    if text.returncode:
        sys.exit(f"{launch} sim {path}: {text.stderr}")
    return [json.loads(line) for line in text.stdout.splitlines()]


def run_theirs(launch, path):
    """The profiler's figures of every launch, in order."""
    kept = os.environ.get("NCU_CSV")
    if kept and os.path.exists(kept):
        with open(kept) as f:
            text = f.read()
    else:
        names = ",".join(dict.fromkeys(name for m in METRICS for name in m.metrics))
        ran = subprocess.run(["ncu", "--csv", "--page", "raw", "--cache-control", "all", "--clock-control",
                              "none", "--metrics", names, launch, "cuda:0", path], capture_output=True,
                             text=True)
        text = ran.stdout
        if ran.returncode:
            sys.exit(f"ncu: {text[-600:]} {ran.stderr[-600:]}")
        if kept:
            with open(kept, "w") as f:
                f.write(text)
    table = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    return [figures(*table[:2], row) for row in table[2:]]


def figures(names, units, row):
    scale = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    out = {}
    for name, unit, value in zip(names, units, row):
        factor = scale.get(unit[:1], 1) if unit.lower().endswith(("byte", "inst", "sector")) else 1
        try:
            out[name] = float(value.replace(",", "")) * factor
        except ValueError:
            out[name] = value
    return out


def find(counts, path):
    for part in path.split("/"):
        counts = counts.get(part, 0) if isinstance(counts, dict) else 0
    return counts


def difference(a, b):
    return (a - b) / b if b else (float("inf") if a else 0.0)


def expanded(metric, counts):
    """What ptxas makes of ours: the least, the most, and of what."""
    kind, op = metric.name.split()
    least = sum(find(counts, path) for path in metric.ours)
    functions, causes = counts["functions"], []
    for name, made in EXPANSION.items():
        n = functions.get(name, 0) * made.get((kind, op), 0)
        least += n
        causes += [f"{n} of {name}"] if n else []
    small = EX2_MULS * functions.get("ex2.approx.f32", 0) if (kind, op) == ("f32", "mul") else 0
    return least, least + small, causes


def verdict(metric, line, a, b, counts):
    """What to say of a row, and whether it is wrong."""
    if a == b:
        return "", False
    if metric.bound is None or a < metric.least:
        return metric.why, False
    for kernel, words, name, times, why in EXPLAINED:
        same = kernel == counts["kernel"] and words in line and name == metric.name
        if same and (times is None or abs(difference(float(a * times), b)) <= metric.bound):
            return why, False
    if abs(difference(a, b)) <= metric.bound and not metric.name.startswith("f"):
        return "", False
    if metric.name.startswith("f"):
        least, most, causes = expanded(metric, counts)
        if least * (1 - metric.bound) <= b <= most * (1 + metric.bound):
            span = f"{least} to {most}" if most > least else f"{least}"
            return f"expected of the machine: {span}" + "".join(f", {c}" for c in causes), False
    return "BEYOND", True


def compare(line, counts, profile, rows):
    bad = 0
    print(f"{counts['kernel']}: {line}")
    for metric in METRICS:
        if not all(isinstance(profile.get(name), float) for name in metric.metrics):
            continue
        a = sum(find(counts, path) for path in metric.ours)
        b = sum(profile[name] for name in metric.metrics)
        if not a and not b:
            continue
        remark, wrong = verdict(metric, line, a, b, counts)
        bad += wrong
        rows.append((line, counts["kernel"], metric.name, a, b, remark))
        print(f"  {metric.name:28} {a:>14.0f} {b:>14.0f} {100 * difference(a, b):>9.2f} %  {remark}".rstrip())
    return bad


def launches_of(lines, ours):
    """The list's line of every launch: an operator has several."""
    out, at = [], -1
    for counts in ours:
        words = lines[at + 1].split() if at + 1 < len(lines) else [""]
        name = words[1] if words[0].endswith(".ptx") else words[0]
        at += counts["kernel"] == name
        out.append(lines[at])
    return out


def main():
    launch, path = sys.argv[1:3]
    ours, theirs = run_ours(launch, path), run_theirs(launch, path)
    if [c["kernel"] for c in ours] != [p["Kernel Name"] for p in theirs]:
        sys.exit("the two columns are not of the same launches")
    print(f"  {'counter':28} {'ptxsmith':>14} {'ncu':>14} {'difference':>11}")
    bad, rows = 0, []
    for line, counts, profile in zip(launches_of(read_list(path), ours), ours, theirs):
        bad += compare(line, counts, profile, rows)
    result = f"{bad} figures beyond their bounds" if bad else "all figures within their bounds"
    print(f"{len(ours)} launches: {result}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
