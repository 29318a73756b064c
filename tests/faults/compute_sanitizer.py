"""The planted faults under NVIDIA's compute-sanitizer and under ours: the table of docs/sanitizer.md.

    tests/faults/compute_sanitizer.py [PROGRAM] [--ours-only] [--jobs N] [--seconds S] [--log DIR] [--only KERNEL]

PROGRAM is build/ptxsmith by default.  Each kernel of tests/test_faults.c's table is launched by `run`, with the
fault and without it: on sim with --sanitize under six schedules, and on cuda:0 under memcheck, racecheck,
synccheck and initcheck, each in a process that is killed after S seconds (kernels of this corpus may
hang).  A cell says what was told of the faulty kernel; a report on the sound one is "false alarm".
Exit 0 when the table is complete, 3 without compute-sanitizer or a GPU.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
REFUSED = "not run"  # the check refuses the PTX: nothing was launched
TOLD = 99  # the exit code asked of compute-sanitizer when it has something to say
HERE = pathlib.Path(__file__).resolve().parent
# What test_faults.c puts around a body (kit_body in tests/sim_kit.h).
FRAME = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p0, .param .u64 p1) DIRECTIVES {
.reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .f32 %f<16>; .reg .f64 %fd<8>;
ld.param.u64 %rd0, [p0];
ld.param.u64 %rd1, [p1];
mov.u32 %r0, %tid.x;
BODY
ret;
}
"""


def table():
    """(kind, file, grid, block) of each row of test_faults.c."""
    text = (HERE.parent / "test_faults.c").read_text()
    text = text.replace("{some_orders,", '{"only in some orders",')
    rows = re.findall(r'\{"([^"]*)", "(\w+)", (\d+), (\d+),', text[:text.index("enum { FAULTS")])
    if len(rows) != len(list(HERE.glob("*.ptx"))):
        sys.exit("compute_sanitizer.py: test_faults.c and the files beside this script do not agree")
    return rows


def body(name, faulty):
    mark = "//- " if faulty else "//+ "
    lines = (HERE / f"{name}.ptx").read_text().splitlines()
    return "\n".join(line[4:] if line.startswith(mark) else line for line in lines)


def run(command, seconds):
    """(exit code, text); None as the code when it had to be killed, with all that it started."""
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         errors="replace", start_new_session=True)
    try:
        text, _ = p.communicate(timeout=seconds)
        return p.returncode, text
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        return None, p.communicate()[0]


def theirs(tool, command, seconds):
    """What a tool says: its first words, "hangs", or nothing."""
    code, text = run(["compute-sanitizer", "--tool", tool, "--error-exitcode", str(TOLD),
                      "--print-limit", "3", *command, "--device", "cuda:0"], seconds)
    said = [line.strip("= ").strip() for line in text.splitlines() if line.startswith("=========")]
    said = [s for s in said if s and not re.match(
        r"COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY: 0|Target application returned|"
        r"Error: process didn't|Program hit|Saved host|Host Frame|at |by thread|in block", s)]
    if said and "terminated before first" in said[0]:
        return REFUSED, text
    if said:
        return re.sub(r" at k\+0x\w+", "", said[0]), text
    if code is None:
        return "hangs", text
    return ("" if code in (0, TOLD) else f"exit {code}"), text


def ours(command):
    code, text = run([*command, "--device", "sim", "--sanitize", "--schedules", "6", "--steps",
                      "1000000"], 60)
    for line in text.splitlines():
        found = re.search(r"(?:error|warning): (.*)", line)
        if found:
            return ": ".join(found.group(1).split(": ")[:2]), text  # without the instruction
    return ("" if code == 0 else f"exit {code}"), text


def write_kernels(work, rows):
    """Both forms of every kernel, before any tool runs: a file that a tool reads never changes."""
    paths = {}
    for _, name, _, _ in rows:
        for faulty in (True, False):
            path = work / f"{name}.{'faulty' if faulty else 'sound'}.ptx"
            text = body(name, faulty)
            directives = re.search(r"^//! (.*)", text, re.M)
            frame = FRAME.replace("DIRECTIVES", directives.group(1) if directives else "")
            path.write_text(frame.replace("BODY", text))
            paths[name, faulty] = path
    return paths


def job(program, path, row, tool, seconds):
    _, _, grid, block = row
    command = [program, "run", str(path), "--kernel", "k", "--grid", grid, "--block", block,
               "--arg", "inout:u32[1024]=0", "--arg", "inout:u32[1024]=0"]
    return ours(command) if tool == "ours" else theirs(tool, command, seconds)


def short(text):
    return re.sub(r"\s+", " ", text.split(";")[0].replace("|", "/"))[:70]


def cell(told, alarm):
    """The words of a cell: a kernel that hangs in both forms says nothing of the fault."""
    return (short(told) or "-") + (f" (**false alarm**: {short(alarm)})" if alarm else "")


def tells(words):
    """A hang, a launch that failed or one that was refused names no fault."""
    return bool(words) and words not in ("hangs", REFUSED) and not words.startswith("exit ")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?", default="build/ptxsmith")
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("--only", action="append", help="a kernel's name; may be given again")
    o = parser.parse_args()
    if not o.ours_only and (not shutil.which("compute-sanitizer") or
                            run([o.program, "info", "--device", "cuda:0"], 30)[0] != 0):
        print("compute_sanitizer.py: needs compute-sanitizer and a GPU", file=sys.stderr)
        return 3
    tools = ("ours",) if o.ours_only else ("ours", *TOOLS)
    rows, done = [row for row in table() if not o.only or row[1] in o.only], {}
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        paths = write_kernels(pathlib.Path(work), rows)
        for row in rows:
            for faulty in (True, False):
                for tool in tools:
                    done[row[1], faulty, tool] = pool.submit(job, o.program, paths[row[1], faulty],
                                                             row, tool, o.seconds)
        print("| fault | kernel | ours | compute-sanitizer |\n|---|---|---|---|")
        caught = dict.fromkeys(("ours", "theirs"), 0)
        for kind, name, _, _ in rows:
            told = {t: done[name, True, t].result()[0] for t in tools}
            alarm = {t: done[name, False, t].result()[0] for t in tools}
            other = [f"{t}: {cell(told[t], alarm[t])}" for t in tools[1:] if told[t] or alarm[t]]
            caught["ours"] += bool(told["ours"]) and not alarm["ours"]
            caught["theirs"] += any(tells(told[t]) and not alarm[t] for t in tools[1:])
            print(f"| {kind} | `{name}` | {cell(told['ours'], alarm['ours'])} | "
                  f"{'; '.join(other) or '-'} |", flush=True)
        print(f"\nOf {len(rows)} faults, with no report on the sound kernel: ours tells "
              f"{caught['ours']}, compute-sanitizer {caught['theirs'] if tools[1:] else '(not run)'}.")
        if o.log:
            o.log.mkdir(parents=True, exist_ok=True)
            for (name, faulty, tool), f in done.items():
                text = f.result()[1][:3000]
                (o.log / f"{name}.{'faulty' if faulty else 'sound'}.{tool}").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
