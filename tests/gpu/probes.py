#!/usr/bin/env python3
"""Inputs of probes.ptx, and what its outputs say.   probes.py make FOLDER | probes.py read FOLDER"""
import struct
import sys

from specials import npy_read, npy_write

MASKS = [0xffffffff, 0xfffffffe, 0x80000000, 0x0000ff00, 0xaaaaaaaa, 0x80000001, 0x00018000, 0x7fff0000]
SPANS = {1: 3, 2: 2, 3: 1}  # descriptor's mode -> B of the swizzle
DESCS = [(mode, start, base) for mode in (1, 2, 3) for start in [0, 32, 128, 256, 384, 512, 640, 768, 896]
         for base in range(8)]


def desc(mode, start, base):
    return mode << 62 | base << 49 | 64 << 32 | 1 << 16 | start >> 4


def make(folder):
    npy_write(folder + '/masks.npy', (len(MASKS),), MASKS)
    words = []
    for d in DESCS:
        v = desc(*d)
        words += [v & 0xffffffff, v >> 32]
    npy_write(folder + '/descs.npy', (len(DESCS), 2), words)


def half(i):
    """Byte offset of element i of the image, from its value: 0 to 2047 in f16."""
    return 2 * i


def expected(mode, start, base, n, k, rule):
    """Byte that element (n, k) of B comes from, under a reading of the base offset."""
    b = SPANS[mode]
    span = 16 << b
    at = n % 8 * span + n // 8 * 1024 + 2 * k + start
    return rule(at, base, b, start)


def xor(at, by, b):
    return at ^ ((by >> 7) & ((1 << b) - 1)) << 4


RULES = {
    'ignored': lambda at, base, b, start: xor(at, at, b),
    'added to the row before the XOR': lambda at, base, b, start: xor(at, at + 128 * base, b),
    'subtracted from the row': lambda at, base, b, start: xor(at, at - 128 * base, b),
    'XORed with the row': lambda at, base, b, start: xor(at, at ^ base << 7, b),
}


def read(folder):
    e = npy_read(folder + '/elect/arg1.npy')
    for m, lane in zip(MASKS, e):
        print('elect.sync %08x: lane %d, %s' % (m, lane, 'lowest' if m & -m == 1 << lane else 'highest'
              if m >> lane == 1 else 'neither'))
    out = npy_read(folder + '/base/arg1.npy')
    for mode in (1, 2, 3):
        for name, rule in RULES.items():
            good = sum(all(int(struct.unpack('<f', struct.pack('<I', out[256 * i + 16 * k + n]))[0]) * 2 ==
                           expected(*d, n, k, rule) for n in range(16) for k in range(16))
                       for i, d in enumerate(DESCS) if d[0] == mode)
            print('base offset, swizzle mode %d: %s: %d of %d descriptors' % (mode, name, good, len(DESCS) // 3))
    for i, d in enumerate(DESCS):
        row = [int(struct.unpack('<f', struct.pack('<I', out[256 * i + n]))[0]) * 2 for n in range(9)]
        if d[2] in (0, 1, 3):
            print(d, row)
    for name in ('mbar', 'dynamic'):
        v = npy_read('%s/%s/arg0.npy' % (folder, name))
        print(name, ' '.join('%08x' % x for x in v))


if __name__ == '__main__':
    make(sys.argv[2]) if sys.argv[1] == 'make' else read(sys.argv[2])
