"""What ptxas makes of a PTX text: bytes of machine code of each kernel."""
import concurrent.futures
import os
import shutil
import struct
import subprocess

ARCH = "sm_90a"
SECTION = struct.Struct("<IIQQQQIIQQ")      # name, type, flags, address, offset, size ...


def sections(cubin):
    """Name and size of every section."""
    table, = struct.unpack_from("<Q", cubin, 40)
    count, names = struct.unpack_from("<HH", cubin, 60)
    all_ = [SECTION.unpack_from(cubin, table + SECTION.size * i) for i in range(count)]
    strings = all_[names][4]
    return {cubin[strings + s[0]:cubin.index(b"\0", strings + s[0])].decode(): s[5] for s in all_}


def assembled(path):
    """Bytes of machine code by kernel, of the text at path."""
    out = path + ".cubin"
    ran = subprocess.run(["ptxas", f"-arch={ARCH}", path, "-o", out], capture_output=True, text=True)
    if ran.returncode:
        return {}
    with open(out, "rb") as f:
        found = sections(f.read())
    return {name[6:]: size for name, size in found.items() if name.startswith(".text.")}


def code_bytes(folder, kernels):
    """Of launch i, whose text is folder/i.ptx: bytes of kernels[i]'s code; None without ptxas."""
    if not shutil.which("ptxas"):
        return [None] * len(kernels)
    texts = {}
    for i in range(len(kernels)):
        with open(os.path.join(folder, f"{i}.ptx"), "rb") as f:
            texts.setdefault(f.read(), []).append(i)
    paths = [os.path.join(folder, f"{launches[0]}.ptx") for launches in texts.values()]
    sizes = [None] * len(kernels)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for launches, code in zip(texts.values(), pool.map(assembled, paths)):
            for i in launches:
                sizes[i] = code.get(kernels[i])
    return sizes
