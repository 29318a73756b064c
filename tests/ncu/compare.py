"""Launches a list under ncu and on the interpreter, prints both columns.  Called by compare.sh.

With NCU_CSV=FILE what ncu printed is kept there, or taken from there where the file exists.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

from explained import expanded, explained, find, of_dram
from machine import code_bytes

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
CODE = "without ptxas the bytes of the code are not known"
MOVES = "ptxas loads constants with HFMA2 and converts with HADD2"


class Metric:
    """Our counters (paths in the JSON) and the profiler's metrics, the sums of which must be the same.

    why: they are no pair, and shown only.
    """

    def __init__(self, name, ours, metrics, why=""):
        self.name, self.why = name, why
        self.ours = ours.split(", ")
        self.metrics = [m + ".sum" for m in metrics.split()]


def shared(name, ours, sass, hardware):
    """Wavefronts: where they are compared, and the hardware's counter."""
    paths = ", ".join(f"ways/shared/{way}/wavefronts" for way in ours.split())
    out = [Metric(f"shared {name} wavefronts", paths, " ".join(SASS_WAVES + op for op in sass.split()))]
    if hardware:
        out.append(Metric("  counted by hardware", paths, WAVES + hardware, why=ARBITRATION))
    return out


METRICS = [
    Metric("warp instructions", "warp_insts", "smsp__inst_executed", why=PTX),
    Metric("global read requests", "ways/global/load/requests, ways/global/cp_async/requests",
           REQUESTS + "ld"),
    Metric("global read sectors", "ways/global/load/sectors, ways/global/cp_async/sectors", SECTORS + "ld"),
    Metric("global write requests", "ways/global/store/requests", REQUESTS + "st"),
    Metric("global write sectors", "ways/global/store/sectors",
           "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_st"),
    Metric("  counted by hardware", "ways/global/store/sectors", SECTORS + "st", why=UNSTEADY),
    Metric("global atom requests", "ways/global/atom/requests", REQUESTS + "atom"),
    Metric("global atom sectors", "ways/global/atom/sectors", SECTORS + "atom"),
    Metric("global red requests", "ways/global/red/requests", REQUESTS + "red"),
    Metric("global red sectors", "ways/global/red/sectors", SECTORS + "red"),
    Metric("global bulk read sectors", "ways/global/bulk_read/sectors",
           "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld"),
    Metric("global bulk write sectors", "ways/global/bulk_write/sectors",
           "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st"),
    Metric("global bulk red sectors", "ways/global/bulk_red/sectors",
           "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red"),
    Metric("DRAM bytes read", "distinct_read_bytes", "dram__bytes_read"),
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
    Metric("tensor f16 operations", "operations/tensor f16/flops", TENSOR + "fp16"),
    Metric("tensor bf16 operations", "operations/tensor bf16/flops", TENSOR + "bf16_dst_fp32"),
    Metric("tensor tf32 operations", "operations/tensor tf32/flops", TENSOR + "tf32_dst_fp32"),
    Metric("tensor fp8 operations", "operations/tensor fp8/flops", TENSOR + "fp8"),
    Metric("tensor int operations", "operations/tensor int/flops", TENSOR + "int8"),
    *(Metric(f"{kind} {op}", f"operations/{kind}/{op}", f"{THREADS}{letter}{op}_pred_on")
      for kind, letter in (("f32", "f"), ("f64", "d")) for op in ("fma", "add", "mul")),
    *(Metric(f"half {op}", f"operations/f16/{op}, operations/bf16/{op}", f"{THREADS}h{op}_pred_on", why=MOVES)
      for op in ("fma", "add", "mul")),
]


def read_list(path):
    with open(path) as f:
        lines = [line.split("#")[0].strip() for line in f]
    return [line for line in lines if line]


def run_ours(launch, path):
    """Counters of every launch, in order, with the bytes of its code."""
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run([launch, "sim", path, folder], capture_output=True, text=True)
        if ran.returncode:
            sys.exit(f"{launch} sim {path}: {ran.stderr}")
        ours = [json.loads(line) for line in ran.stdout.splitlines()]
        for counts, size in zip(ours, code_bytes(folder, [c["kernel"] for c in ours])):
            counts["code_bytes"] = size
    return ours


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


def difference(a, b):
    return (a - b) / b if b else (float("inf") if a else 0.0)


def verdict_dram(line, counts, b):
    least, most = of_dram(line, counts)
    if counts["code_bytes"] is None:
        return CODE, False
    if not least <= b <= most:
        return f"BEYOND {least} to {most}", True
    return f"{least} of the data to {most} with {counts['code_bytes']} of code", False


def verdict(metric, line, a, b, counts):
    """What to say of a row, and whether it is wrong."""
    if metric.name == "DRAM bytes read":
        return verdict_dram(line, counts, b)
    if metric.why:
        return (metric.why if a != b else ""), False
    try:
        expect, why = explained(metric.name, line, counts, a)
    except LookupError as error:
        return f"BEYOND: {error}", True
    causes = []
    if metric.name.startswith("f"):
        expect, causes = expanded(metric.name, counts, expect)
    remark = ", ".join(causes + [why] if why else causes)
    if b != expect:
        return f"BEYOND {float(expect):.0f}" + (f": {remark}" if remark else ""), True
    if metric.name.startswith("f") and expect != a:
        return f"expected of the machine: {float(expect):.0f}, {remark}", False
    return (why if expect != a or b != a else ""), False


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
