#!/usr/bin/env python3
"""How many clusters of a variant run at once:   clusters.py PROGRAM TEMPLATE PARAMS ...

    clusters.py build/ptxsmith 'decode_span cluster=16' 'decode_span cluster=8'

One line each: blocks of a cluster, clusters, blocks at once, bytes of shared memory.  A kernel whose grid has
more clusters than that runs them in rounds.
"""
import ctypes
import re
import subprocess
import sys

SMEM, LARGE, CLUSTER = 8, 14, 4  # attributes: of functions, of a launch


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("smem", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)), ("n", ctypes.c_uint)]


def call(cuda, name, *args):
    code = getattr(cuda, name)(*args)
    if code:
        sys.exit(f"{name}: error {code}")


def at_once(cuda, ptx):
    """Blocks of a cluster, clusters at once, bytes."""
    def number(pattern):
        found = re.search(pattern, ptx)
        return int(found[1]) if found else 0
    entry = re.search(r"\.entry (\w+)", ptx)[1].encode()
    smem, threads = number(r"dynamic_smem\[\]; // (\d+) bytes"), number(r"\.maxntid (\d+)")
    blocks = number(r"\.reqnctapercluster (\d+)") or 1
    module, function, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    call(cuda, "cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx.encode()))
    call(cuda, "cuModuleGetFunction", ctypes.byref(function), module, entry)
    call(cuda, "cuFuncSetAttribute", function, SMEM, smem)
    if blocks > 8:
        call(cuda, "cuFuncSetAttribute", function, LARGE, 1)
    attribute = Attribute(CLUSTER, 0, (blocks, 1, 1))
    config = Config((blocks * 64, 1, 1), (threads, 1, 1), smem, None, ctypes.pointer(attribute), 1)
    call(cuda, "cuOccupancyMaxActiveClusters", ctypes.byref(count), function, ctypes.byref(config))
    return blocks, count.value, smem


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    call(cuda, "cuInit", 0)
    call(cuda, "cuDeviceGet", ctypes.byref(device), 0)
    call(cuda, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call(cuda, "cuCtxSetCurrent", context)
    for variant in sys.argv[2:]:
        made = subprocess.run([sys.argv[1], "gen", *variant.split()], stdout=subprocess.PIPE, text=True, check=True)
        blocks, clusters, smem = at_once(cuda, made.stdout)
        print(f"{variant}: clusters of {blocks} blocks: {clusters} at once, {blocks * clusters} blocks, {smem} bytes")


if __name__ == "__main__":
    main()
