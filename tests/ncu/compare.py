"""Runs launches under ncu and on the interpreter, prints both columns.  Called by compare.sh."""
import csv
import io
import json
import os
import re
import subprocess
import sys

program = os.environ["PROGRAM"]

# Why a figure is shown but not compared.
PTX = "PTX instructions, not ptxas's"
SCALED = "ptxas scales the argument of ex2 by guarded FMULs, expands div and sqrt"
BRANCHES = "branches of the PTX; ptxas unrolls and predicates them, or makes them of guards"
LAUNCH = "a launch itself reads about 3 KB from DRAM"
REMOVED = "ptxas removed or merged accesses"

LARGE = 1 << 20  # bytes, of which a launch's own traffic is less than 1 %


class Metric:
    """Our counter (a path in the JSON) and the profiler's metrics, whose sum it is compared with.

    bound: of the relative difference, None where `why` tells that the two are no pair.  least: ours
    from which they are.  requests: the counter of the warp instructions that made the accesses.
    """

    def __init__(self, path, metrics, bound=None, why="", least=0, requests=None):
        self.path, self.bound, self.why, self.least = path, bound, why, least
        self.metrics = [metrics] if isinstance(metrics, str) else metrics
        self.requests = requests


SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
THREADS = "smsp__sass_thread_inst_executed_op_"
GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
METRICS = [
    Metric("warp_insts", "smsp__inst_executed.sum", why=PTX),
    Metric("thread_insts", "smsp__thread_inst_executed_pred_on.sum", why=PTX),
    Metric("operations/f32/fma", THREADS + "ffma_pred_on.sum", why=SCALED),
    Metric("operations/f32/add", THREADS + "fadd_pred_on.sum", why=SCALED),
    Metric("operations/f32/mul", THREADS + "fmul_pred_on.sum", why=SCALED),
    Metric("operations/f64/fma", THREADS + "dfma_pred_on.sum", why=SCALED),
    Metric("operations/tensor f16/flops", "sm__ops_path_tensor_src_fp16_dst_fp32.sum", 0.01),
    Metric("operations/tensor bf16/flops", "sm__ops_path_tensor_src_bf16_dst_fp32.sum", 0.01),
    Metric("global_read_requests", GLOBAL.format("requests", "ld"), 0.01),
    Metric("global_read_sectors", GLOBAL.format("sectors", "ld"), 0.01),
    Metric("global_write_requests", GLOBAL.format("requests", "st"), 0.01),
    Metric("global_write_sectors", GLOBAL.format("sectors", "st"), 0.01),
    Metric("distinct_read_bytes", "dram__bytes_read.sum", 0.02, LAUNCH, least=LARGE),
    Metric("shared_read_requests", ["smsp__inst_executed_op_shared_ld.sum",
                                    "smsp__inst_executed_op_ldsm.sum"], why=REMOVED),
    Metric("shared_write_requests", "smsp__inst_executed_op_shared_st.sum", why=REMOVED),
    Metric("shared_read_wavefronts", SHARED + "ld.sum", 0.03, requests="shared_read_requests"),
    Metric("shared_write_wavefronts", SHARED + "st.sum", 0.03, requests="shared_write_requests"),
    Metric("shared_conflicts", [CONFLICTS + "ld.sum", CONFLICTS + "st.sum"],
           why="part of the wavefronts, which are compared"),
    Metric("local_read_sectors", "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
           why="PTX has no spills"),
    Metric("branches", "smsp__sass_branch_targets.sum", why=BRANCHES),
    Metric("divergent_branches", "smsp__sass_branch_targets_threads_divergent.sum", why=BRANCHES),
]


def ours(args):
    """Counters of every kernel that the command launches, by name, in order."""
    text = subprocess.run([program, "counters", *args, "--json"], capture_output=True, text=True)
    if text.returncode:
        sys.exit(f"{program} counters {' '.join(args)}: {text.stderr}")
    return [json.loads(line) for line in text.stdout.splitlines() if '"counters"' in line]


def theirs(args, kernel, skip):
    """The profiler's figures of the `skip`+1st launch of a kernel."""
    metrics = ",".join(name for m in METRICS for name in m.metrics)
    text = subprocess.run(
        ["ncu", "--csv", "--page", "raw", "--cache-control", "all", "--clock-control", "none",
         "--metrics", metrics, "-k", f"regex:^{re.escape(kernel)}$", "-s", str(skip), "-c", "1",
         program, *args], capture_output=True, text=True)
    rows = [line for line in text.stdout.splitlines() if line.startswith('"')]
    if len(rows) < 3:
        print(f"  {kernel}: ncu gave nothing: {text.stdout[-300:]} {text.stderr[-300:]}")
        return None
    table = list(csv.reader(io.StringIO("\n".join(rows))))  # names, units, figures
    scale = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    out = {}
    for name, unit, value in zip(*table[:3]):
        try:
            factor = scale.get(unit[:1], 1) if unit.lower().endswith(("byte", "inst", "sector")) else 1
            out[name] = float(value.replace(",", "")) * factor
        except ValueError:
            pass
    return out


def find(counts, path):
    for part in path.split("/"):
        counts = counts.get(part, 0) if isinstance(counts, dict) else 0
    return counts


def pair(metric, counts, profile):
    """Our figure and the profiler's; None when the profiler has none."""
    if not all(name in profile for name in metric.metrics):
        return None
    return find(counts, metric.path), sum(profile[name] for name in metric.metrics)


def difference(a, b):
    return (a - b) / b if b else (float("inf") if a else 0.0)


def verdict(metric, a, b, counts, profile):
    """What to say of a row, and whether it is wrong."""
    off = abs(difference(a, b))
    if not off or (metric.bound is not None and off <= metric.bound):
        return "", False
    if metric.bound is None or a < metric.least:
        return metric.why, False
    # Where the machine code has other accesses than the PTX, the cost of one access is compared.
    made = metric.requests and pair(next(m for m in METRICS if m.path == metric.requests), counts,
                                    profile)
    if made and all(made) and made[0] != made[1]:
        each = difference(a / made[0], b / made[1])
        if abs(each) <= metric.bound:
            return f"{REMOVED}; each request's differ by {100 * each:.2f} %", False
    return "BEYOND", True


def compare(title, counts, profile):
    bad = 0
    print(title)
    for metric in METRICS:
        figures = pair(metric, counts, profile)
        if not figures or not any(figures):
            continue
        a, b = figures
        remark, wrong = verdict(metric, a, b, counts, profile)
        bad += wrong
        print(f"  {metric.path:32} {a:>16.0f} {b:>16.0f} {100 * difference(a, b):>9.2f} %  {remark}"
              .rstrip())
    return bad


def main():
    bad = 0
    print(f"  {'counter':32} {'ptxsmith':>16} {'ncu':>16} {'difference':>11}")
    templates = [
        ["decode_splitk", "head_dim=128", "dtype=f16", "--problem", "b=1,hq=32,hkv=8,sq=1,sk=4096,d=128"],
        ["decode_splitk", "head_dim=128", "dtype=f32", "--problem", "b=1,hq=8,hkv=8,sq=1,sk=4096,d=128"],
        ["decode_splitk", "head_dim=128", "dtype=bf16", "--problem", "b=1,hq=8,hkv=8,sq=1,sk=4096,d=128"],
        ["prefill_thread", "head_dim=64", "--problem", "b=1,hq=4,sq=256,sk=256,d=64"],
        ["prefill_mma", "head_dim=128", "--problem", "b=1,hq=4,sq=256,sk=256,d=128"],
        ["prefill_wgmma", "head_dim=128", "--problem", "b=1,hq=4,sq=256,sk=256,d=128"],
        ["decode_mma", "head_dim=128", "--problem", "b=1,hq=32,hkv=8,sq=1,sk=4096,d=128"],
    ]
    for args in templates:
        # The timed launches come last; all launches of a bench have the same shape, the gates' have not.
        for counts in ours(args):
            kernel = counts["kernel"]
            bench = ["bench", *args, "--device", "cuda:0", "--samples", "20", "--hot"]
            launches = launch_count(bench, kernel)
            profile = theirs(bench, kernel, timed_launch(launches))
            if profile:
                bad += compare(f"{kernel} of {' '.join(args)}", counts, profile)
    patterns = "tests/ncu/patterns.ptx"
    shape = ["--grid", "1", "--block", "32", "--arg", "in:f32[16384]=iota", "--arg", "out:f32[32]"]
    with open(patterns) as f:
        kernels = re.findall(r"\.entry (\w+)\(", f.read())
    for kernel in kernels:
        args = [patterns, "--kernel", kernel, *shape]
        profile = theirs(["run", *args, "--device", "cuda:0"], kernel, 0)
        if profile:
            bad += compare(kernel, ours(args)[0], profile)
    print(f"{bad} figures beyond their bounds" if bad else "all figures within their bounds")
    return 1 if bad else 0


def launch_count(args, kernel):
    """Grid sizes of the kernel's launches, in order."""
    text = subprocess.run(
        ["ncu", "--csv", "--page", "raw", "--metrics", "launch__grid_size", "--clock-control", "none", "-k",
         f"regex:^{re.escape(kernel)}$", program, *args], capture_output=True, text=True)
    rows = [line for line in text.stdout.splitlines() if line.startswith('"')]
    table = list(csv.reader(io.StringIO("\n".join(rows))))
    column = table[0].index("launch__grid_size") if table else 0
    return [float(r[column].replace(",", "")) for r in table[2:]]


def timed_launch(grids):
    """A launch in the middle of the longest run of equal grids: the timed loop."""
    best, start = (0, 0), 0
    for i in range(1, len(grids) + 1):
        if i == len(grids) or grids[i] != grids[start]:
            best = max(best, (i - start, start))
            start = i
    return best[1] + best[0] // 2


if __name__ == "__main__":
    sys.exit(main())
