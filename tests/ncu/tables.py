"""Prints the tables of docs/counters.md from what compare.sh printed: tables.py compare.log."""
import re
import sys

ROW = re.compile(r"  (.{28}) +(\d+) +(\d+) +(?:-?[\d.]+|inf) %(?:  (.*))?$")
TRAFFIC = ["global read sectors", "global write sectors", "global bulk read sectors", "global atom sectors",
           "shared load wavefronts", "shared store wavefronts", "shared cp.async wavefronts",
           "shared wgmma wavefronts"]
ARITHMETIC = ["f32 fma", "f32 add", "f32 mul"]
DRAM = re.compile(r"(\d+) of the data to \d+ with (\d+) of code")


def launches(path):
    """(kernel, line of the list, {figure: (ours, theirs, remark)}) of each."""
    out = []
    with open(path) as f:
        for text in f:
            row = ROW.match(text.rstrip("\n"))
            if row:
                out[-1][2][row[1].strip()] = (int(row[2]), int(row[3]), row[4] or "")
            elif not text.startswith(" ") and ": " in text and "launches" not in text:
                kernel, line = text.rstrip("\n").split(": ", 1)
                out.append((kernel, line, {}))
    return out


def label(kernel, line):
    words = line.split()
    problem = next((w[8:] for w in words if w.startswith("problem=")), "")
    kept = [w for w in words[1:] if not w.startswith(("problem=", "grid=", "hook="))]
    after = f" after {words[0]}" if words[0] != kernel else ""
    return " ".join([f"`{kernel}`{after}"] + kept) + (f" ({problem})" if problem else "")


def both(figures, name):
    if name not in figures:
        return ""
    ours, theirs, _ = figures[name]
    return f"{ours}" if ours == theirs else f"**{ours} / {theirs}**"


def table(head, rows):
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(c) for c in row) + " |")


def tensor(figures):
    return "; ".join(both(figures, n) for n in figures if n.startswith("tensor"))


def causes(figures):
    """What makes the machine's arithmetic another, by operation."""
    out = []
    for name in ARITHMETIC:
        remark = figures.get(name, (0, 0, ""))[2]
        if remark:
            out.append(f"{name[4:].upper()}: " + re.sub(r"expected of the machine: \d+, ", "", remark))
    return "; ".join(out)


def main():
    ran = launches(sys.argv[1])
    ours = [(label(k, line), f) for k, line, f in ran if not line.split()[0].endswith(".ptx")]
    table(["kernel"] + TRAFFIC + ["tensor operations"],
          [[name] + [both(f, n) for n in TRAFFIC] + [tensor(f)] for name, f in ours])
    table(["kernel", "FFMA", "FADD", "FMUL", "why"],
          [[name] + [both(f, n) for n in ARITHMETIC] + [causes(f)] for name, f in ours])
    rows = []
    for name, f in ours:
        read = f["DRAM bytes read"]
        data, code = map(int, DRAM.search(read[2]).groups())
        rows.append([name, read[0], data, code, read[1], read[1] - data - code])
    table(["kernel", "distinct bytes read", "data", "code", "`dram__bytes_read`", "left"], rows)
    print()
    for kernel, line, f in ran:
        if line.split()[0].endswith(".ptx"):
            for name, (a, b, remark) in f.items():
                if a != b and not name.startswith((" ", "warp", "DRAM", "half", "shared load req", "shared store req")):
                    print(f"{kernel}: {name} {a} / {b}: {remark}")


if __name__ == "__main__":
    main()
