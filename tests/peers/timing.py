"""The timing rules, for launches of whatever origin: device events, a cold L2 made by reading a buffer
larger than it, compared launches interleaved, medians over several processes.

A graph sample is (A - B) / N with A = N x (flush, launch) and B = N x flush, replayed in turn.
"""
import json
import math
import subprocess
import sys
import time

import torch

FLUSH_BYTES = 256 << 20
GRAPH_LAUNCHES = 8


class Flush:
    def __init__(self):
        self.buffer = torch.ones(FLUSH_BYTES // 4, device="cuda")
        self.out = torch.empty((), device="cuda")

    def __call__(self):
        torch.sum(self.buffer, 0, out=self.out)


def median(values):
    values = sorted(values)
    n = len(values)
    return values[n // 2] if n % 2 else (values[n // 2 - 1] + values[n // 2]) / 2


def _span(work):
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    a.record()
    work()
    b.record()
    b.synchronize()
    return a.elapsed_time(b) * 1e3


def eager(launches, flush, samples=31, warmup=3):
    """launches: name -> callable.  Microseconds by name; one launch of each in turn, cold."""
    times = {name: [] for name in launches}
    for i in range(samples + warmup):
        for name, launch in launches.items():
            flush()
            t = _span(launch)
            if i >= warmup:
                times[name].append(t)
    return {name: median(t) for name, t in times.items()}


def _graph(work, count):
    stream, g = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g, stream=stream):
        for _ in range(count):
            work()
    return g


def graph(launches, flush, samples=15, on_stream=None):
    """The same by graph replay.  on_stream: called with the capturing stream before each capture."""
    graphs = {}
    for name, launch in launches.items():
        def both(launch=launch):
            if on_stream:
                on_stream(torch.cuda.current_stream())
            flush()
            launch()
        graphs[name] = _graph(both, GRAPH_LAUNCHES)
    if on_stream:
        on_stream(torch.cuda.current_stream())
    empty = _graph(flush, GRAPH_LAUNCHES)
    times = {name: [] for name in launches}
    for i in range(samples + 2):
        for name, g in graphs.items():
            t = (_span(g.replay) - _span(empty.replay)) / GRAPH_LAUNCHES
            if i >= 2:
                times[name].append(t)
    return {name: median(t) for name, t in times.items()}


class Footnotes:
    """A letter for each text that a table's rows have in common."""

    def __init__(self):
        self.texts = []

    def mark(self, text):
        if text not in self.texts:
            self.texts.append(text)
        n = self.texts.index(text)
        return ("" if n < 26 else chr(96 + n // 26)) + chr(97 + n % 26)

    def print(self):
        print()
        for text in self.texts:
            print(f"{self.mark(text)}: {text}  ")


def in_processes(script, arguments, processes, seconds=math.inf, waits=False):
    """Runs `script --one` that many times; each prints one JSON object on its last line.  None is begun
    that would not end within `seconds` if it took as long as the one before it.  waits: the script
    reads a line before it touches the GPU, so that the next one can load its modules meanwhile."""
    def start():
        return subprocess.Popen([sys.executable, script, "--one", *arguments], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    runs, first, took, following = [], time.monotonic(), 0, None
    for i in range(processes):
        began = time.monotonic()
        if began - first + took > seconds:
            break
        child, following = following or start(), None
        if waits and i + 1 < processes:
            following = start()
        out, err = child.communicate("go\n")
        if child.returncode:
            sys.exit(err[-4000:] or f"{script}: exit {child.returncode}")
        runs.append(json.loads(out.splitlines()[-1]))
        took = time.monotonic() - began
        print(f"process {i + 1} of {processes} done, {took:.1f} s", file=sys.stderr)
    if following:
        following.kill()
        following.wait()
    return runs
