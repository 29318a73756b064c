"""Runs launches under ncu and on the interpreter, prints both columns.  Called by compare.sh."""
import csv
import io
import json
import os
import re
import subprocess
import sys

program = os.environ["PROGRAM"]

# our counter (a path in the JSON), the profiler's metric, bound on the relative difference (None: shown)
METRICS = [
    ("warp_insts", "smsp__inst_executed.sum", None),
    ("thread_insts", "smsp__thread_inst_executed_pred_on.sum", None),
    ("operations/f32/fma", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", None),
    ("operations/f32/add", "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", None),
    ("operations/f32/mul", "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", None),
    ("operations/f64/fma", "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", None),
    ("operations/tensor f16/flops", "sm__ops_path_tensor_src_fp16_dst_fp32.sum", 0.01),
    ("operations/tensor bf16/flops", "sm__ops_path_tensor_src_bf16_dst_fp32.sum", 0.01),
    ("global_read_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 0.01),
    ("global_read_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 0.01),
    ("global_write_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", 0.01),
    ("global_write_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", 0.01),
    ("distinct_read_bytes", "dram__bytes_read.sum", None),
    ("shared_read_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", 0.03),
    ("shared_write_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", 0.03),
    ("shared_conflicts", ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                          "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"], None),
    ("local_read_sectors", "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", None),
    ("branches", "smsp__sass_branch_targets.sum", None),
    ("divergent_branches", "smsp__sass_branch_targets_threads_divergent.sum", None),
]


def names(metric):
    return [metric] if isinstance(metric, str) else metric


def ours(args):
    """Counters of every kernel that the command launches, by name, in order."""
    text = subprocess.run([program, "counters", *args, "--json"], capture_output=True, text=True)
    if text.returncode:
        sys.exit(f"{program} counters {' '.join(args)}: {text.stderr}")
    return [json.loads(line) for line in text.stdout.splitlines() if '"counters"' in line]


def theirs(args, kernel, skip):
    """The profiler's figures of the `skip`+1st launch of a kernel."""
    metrics = ",".join(n for _, m, _ in METRICS for n in names(m))
    text = subprocess.run(
        ["ncu", "--csv", "--page", "raw", "--cache-control", "all", "--metrics", metrics, "-k",
         f"regex:^{re.escape(kernel)}$", "-s", str(skip), "-c", "1", program, *args],
        capture_output=True, text=True)
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


def compare(title, counts, profile):
    bad = 0
    print(title)
    for path, metric, bound in METRICS:
        if not all(n in profile for n in names(metric)):
            continue
        a, b = find(counts, path), sum(profile[n] for n in names(metric))
        if not a and not b:
            continue
        diff = (a - b) / b if b else float("inf")
        wrong = bound is not None and abs(diff) > bound
        bad += wrong
        print(f"  {path:32} {a:>16.0f} {b:>16.0f} {100 * diff:>9.2f} %{'  BEYOND' if wrong else ''}")
    return bad


def main():
    bad = 0
    print(f"  {'counter':32} {'ptxsmith':>16} {'ncu':>16} {'difference':>11}")
    patterns = "tests/ncu/patterns.ptx"
    shape = ["--grid", "1", "--block", "32", "--arg", "in:f32[16384]=iota", "--arg", "out:f32[32]"]
    with open(patterns) as f:
        kernels = re.findall(r"\.entry (\w+)\(", f.read())
    for kernel in kernels:
        args = [patterns, "--kernel", kernel, *shape]
        profile = theirs(["run", *args, "--device", "cuda:0"], kernel, 0)
        if profile:
            bad += compare(kernel, ours(args)[0], profile)
    templates = [
        ["decode_splitk", "head_dim=128", "dtype=f16", "--problem", "b=1,hq=32,hkv=8,sq=1,sk=4096,d=128"],
        ["decode_splitk", "head_dim=128", "dtype=f32", "--problem", "b=1,hq=8,hkv=8,sq=1,sk=4096,d=128"],
        ["prefill_thread", "head_dim=64", "--problem", "b=1,hq=4,sq=256,sk=256,d=64"],
    ]
    for args in templates:
        # The timed launches come last; all launches of a bench have the same shape, the gates' have not.
        for counts in ours(args):
            kernel = counts["kernel"]
            bench = ["bench", *args, "--device", "cuda:0", "--samples", "20", "--hot"]
            launches = launch_count(bench, kernel)
            profile = theirs(bench, kernel, timed_launch(launches))
            if profile:
                bad += compare(counts["counters"], counts, profile)
    print(f"{bad} figures beyond their bounds" if bad else "all figures within their bounds")
    return 1 if bad else 0


def launch_count(args, kernel):
    """Grid sizes of the kernel's launches, in order."""
    text = subprocess.run(
        ["ncu", "--csv", "--page", "raw", "--metrics", "launch__grid_size", "-k",
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
