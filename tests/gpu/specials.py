#!/usr/bin/env python3
"""Infinities, NaN, zeros of both signs and overflow in the tensor cores: inputs and kernels.

    specials.py FOLDER            writes NAME.ptx and NAME.npy for every instruction
    specials.py FOLDER --run DEVICE PROGRAM   runs them, to FOLDER/DEVICE/NAME/arg1.npy
    specials.py FOLDER --compare ONE OTHER    how the outputs of two devices differ
    specials.py FOLDER --keep DEVICE          samples for tests/data/tensor: NAME.special.bin

No module but the standard library's.  A record is 32-bit words of 32 lanes: 4 registers of A, 2 of B,
4 of C (those that the instruction lacks are unused); wgmma takes its A from registers, and B's words lie
in shared memory in the same order (K-major without a swizzle, 128 bytes between the halves of K).
"""
import os
import random
import struct
import subprocess
import sys

# name: (PTX behind mma.sync.aligned or wgmma.mma_async.sync.aligned, type of A, of B, accumulator, K)
INSTS = {
    'mma.f16.k16': ('m16n8k16.row.col.f32.f16.f16.f32', 'f16', 'f16', 'f32', 16),
    'mma.f16.k8': ('m16n8k8.row.col.f32.f16.f16.f32', 'f16', 'f16', 'f32', 8),
    'mma.f16.k16.f16': ('m16n8k16.row.col.f16.f16.f16.f16', 'f16', 'f16', 'f16', 16),
    'mma.f16.k8.f16': ('m16n8k8.row.col.f16.f16.f16.f16', 'f16', 'f16', 'f16', 8),
    'mma.bf16.k16': ('m16n8k16.row.col.f32.bf16.bf16.f32', 'bf16', 'bf16', 'f32', 16),
    'mma.bf16.k8': ('m16n8k8.row.col.f32.bf16.bf16.f32', 'bf16', 'bf16', 'f32', 8),
    'mma.tf32.k8': ('m16n8k8.row.col.f32.tf32.tf32.f32', 'tf32', 'tf32', 'f32', 8),
    'mma.tf32.k4': ('m16n8k4.row.col.f32.tf32.tf32.f32', 'tf32', 'tf32', 'f32', 4),
    'mma.e4m3.k32': ('m16n8k32.row.col.f32.e4m3.e4m3.f32', 'e4m3', 'e4m3', 'f32', 32),
    'mma.e5m2.k32': ('m16n8k32.row.col.f32.e5m2.e5m2.f32', 'e5m2', 'e5m2', 'f32', 32),
    'mma.e4m3.e5m2.k32': ('m16n8k32.row.col.f32.e4m3.e5m2.f32', 'e4m3', 'e5m2', 'f32', 32),
    'mma.e4m3.k32.f16': ('m16n8k32.row.col.f16.e4m3.e4m3.f16', 'e4m3', 'e4m3', 'f16', 32),
    'mma.e5m2.k32.f16': ('m16n8k32.row.col.f16.e5m2.e5m2.f16', 'e5m2', 'e5m2', 'f16', 32),
    'wgmma.f16.k16': ('m64n8k16.f32.f16.f16', 'f16', 'f16', 'f32', 16),
    'wgmma.f16.k16.f16': ('m64n8k16.f16.f16.f16', 'f16', 'f16', 'f16', 16),
    'wgmma.bf16.k16': ('m64n8k16.f32.bf16.bf16', 'bf16', 'bf16', 'f32', 16),
    'wgmma.tf32.k8': ('m64n8k8.f32.tf32.tf32', 'tf32', 'tf32', 'f32', 8),
    'wgmma.e4m3.k32': ('m64n8k32.f32.e4m3.e4m3', 'e4m3', 'e4m3', 'f32', 32),
    'wgmma.e5m2.k32': ('m64n8k32.f32.e5m2.e5m2', 'e5m2', 'e5m2', 'f32', 32),
    'wgmma.e5m2.e4m3.k32': ('m64n8k32.f32.e5m2.e4m3', 'e5m2', 'e4m3', 'f32', 32),
    'wgmma.e4m3.k32.f16': ('m64n8k32.f16.e4m3.e4m3', 'e4m3', 'e4m3', 'f16', 32),
    'wgmma.e5m2.k32.f16': ('m64n8k32.f16.e5m2.e5m2', 'e5m2', 'e5m2', 'f16', 32),
    'wgmma.s8.k32': ('m64n8k32.s32.s8.s8', 's8', 's8', 's32', 32),
    'wgmma.u8.k32': ('m64n8k32.s32.u8.u8', 's8', 's8', 's32', 32),
    'wgmma.s8.u8.k32': ('m64n8k32.s32.s8.u8', 's8', 's8', 's32', 32),
    'wgmma.u8.s8.k32.sat': ('m64n8k32.satfinite.s32.u8.s8', 's8', 's8', 's32', 32),
}
# bits, exponent bits, fraction bits
TYPES = {'f16': (16, 5, 10), 'bf16': (16, 8, 7), 'tf32': (32, 8, 23), 'e4m3': (8, 4, 3),
         'e5m2': (8, 5, 2), 'f32': (32, 8, 23)}
RECORDS = 64
CLASSES = 8


def special(rng, t, what):
    """Bits of a special value of type t."""
    bits, e, m = TYPES[t]
    sign = rng.getrandbits(1) << (bits - 1)
    top = ((1 << e) - 1) << m
    if what == 'zero':
        return sign
    if what == 'tiny':
        return sign | rng.randrange(1, 1 << m)
    if what == 'nan':
        if t == 'e4m3':
            return sign | 0x7f
        return sign | top | rng.choice([1, (1 << m) - 1, 1 << (m - 1), rng.randrange(1, 1 << m)])
    if what == 'inf':
        return sign | 0x7f if t == 'e4m3' else sign | top
    if what == 'huge':  # the two largest exponents
        if t == 'e4m3':
            return sign | rng.randrange(0x70, 0x7f)
        return sign | (((1 << e) - 2 - rng.getrandbits(1)) << m) | rng.getrandbits(m)
    bias = (1 << (e - 1)) - 1  # moderate
    return sign | ((bias - 1 + rng.randrange(3)) << m) | rng.getrandbits(m)


def element(rng, t, kind, k):
    if t == 's8':
        return rng.choice([0, 1, 127, 128, 255, rng.getrandbits(8)])
    if t == 's32':
        return rng.choice([0, 0x7fffffff, 0x80000000, rng.getrandbits(32), rng.getrandbits(12)])
    p = rng.random()
    rare = 0.5 / k if t not in ('acc',) else 0.2
    if kind == 0:    # few specials of any kind among ordinary values
        what = rng.choice(['nan', 'inf', 'zero', 'tiny', 'huge']) if p < rare else 'one'
    elif kind == 1:  # infinities only
        what = 'inf' if p < rare else 'one'
    elif kind == 2:  # infinity times zero
        what = 'inf' if p < rare else 'zero' if p < 0.3 else 'one'
    elif kind == 3:  # NaN only
        what = 'nan' if p < rare else 'one'
    elif kind == 4:  # zeros of both signs
        what = 'zero' if p < 0.97 else 'one'
    elif kind == 5:  # overflow
        what = 'huge' if p < 0.3 else 'one'
    elif kind == 6:  # overflow, denser; tiny beside it
        what = 'huge' if p < 0.6 else 'tiny'
    else:            # subnormals of everything
        what = 'tiny' if p < 0.6 else 'one'
    return special(rng, t, what)


def accumulator(rng, t, kind):
    if t == 's32':
        return element(rng, t, kind, 1)
    p = rng.random()
    what = {0: rng.choice(['nan', 'inf', 'zero', 'tiny', 'huge', 'one']), 1: 'inf' if p < .2 else 'one',
            2: 'zero' if p < .5 else 'inf' if p < .6 else 'one', 3: 'nan' if p < .2 else 'one', 4: 'zero',
            5: 'huge' if p < .5 else 'one', 6: 'huge', 7: 'tiny'}[kind]
    return special(rng, t, what)


def words(rng, t, kind, k, n):
    """n registers of 32 words, element by element."""
    bits = 8 if t == 's8' else TYPES[t][0]
    out = []
    for _ in range(32 * n):
        w = 0
        for i in range(32 // bits):
            w |= element(rng, t, kind, k) << (bits * i)
        out.append(w)
    return out


def record(rng, inst, i, b=None):
    _, ta, tb, tc, k = INSTS[inst]
    kind = i % CLASSES
    a = words(rng, ta, kind, k, 4)
    b = b or words(rng, tb, kind, k, 2)
    c = []
    for _ in range(128):
        w = accumulator(rng, tc, kind)
        if tc == 'f16':
            w |= accumulator(rng, tc, kind) << 16
        c.append(w)
    return a + b + c


def records(inst):
    rng = random.Random(inst)
    out, b = [], None
    for i in range(RECORDS):
        # The four warps of a warpgroup have one B and, for the classes to differ, one class.
        kind = i // 4 if inst.startswith('wgmma') else i
        if not inst.startswith('wgmma') or i % 4 == 0:
            b = None
        r = record(rng, inst, kind, b)
        b = r[128:192]
        out.append(r)
    return out


def npy_write(path, shape, values):
    head = "{'descr': '<u4', 'fortran_order': False, 'shape': (%s,), }" % ', '.join(map(str, shape))
    head += ' ' * (-(len(head) + 11) % 64) + '\n'
    with open(path, 'wb') as f:
        f.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode())
        f.write(struct.pack('<%dI' % len(values), *values))


def npy_read(path):
    with open(path, 'rb') as f:
        data = f.read()
    at = 10 + struct.unpack('<H', data[8:10])[0]
    return list(struct.unpack('<%dI' % ((len(data) - at) // 4), data[at:]))


def counts(inst):
    _, ta, _, tc, k = INSTS[inst]
    bits = 8 if ta == 's8' else TYPES[ta][0]
    na = k * bits // 64
    return na, max(na // 2, 1), 2 if tc == 'f16' else 4


def braces(kind, n):
    return '{' + ', '.join('%%%s%d' % (kind, i) for i in range(n)) + '}'


def ptx(inst):
    text, ta, _, tc, _ = INSTS[inst]
    na, nb, nc = counts(inst)
    wide = inst.startswith('wgmma')
    acc = 'c' if tc != 'f32' else 'f'
    body = ['.version 8.7', '.target sm_90a', '.address_size 64',
            '.visible .entry k(.param .u64 in, .param .u64 out)', '.maxntid 128', '{',
            '  .reg .b32 %a<4>, %b<2>, %c<4>, %r<8>;', '  .reg .f32 %f<4>;', '  .reg .b64 %rd<8>;',
            '  .reg .pred %p;']
    if wide:
        body += ['  .shared .align 128 .b8 image[256];']
    body += ['  ld.param.u64 %rd0, [in];', '  ld.param.u64 %rd1, [out];', '  mov.u32 %r0, %tid.x;',
             '  mov.u32 %r1, %ctaid.x;', '  mov.u32 %r2, %ntid.x;', '  mad.lo.u32 %r0, %r1, %r2, %r0;',
             '  and.b32 %r3, %r0, 31;', '  shr.u32 %r4, %r0, 5;',
             '  mul.lo.u32 %r5, %r4, 320; // a record: 10 registers', '  add.u32 %r5, %r5, %r3;',
             '  mul.wide.u32 %rd2, %r5, 4;', '  add.u64 %rd2, %rd0, %rd2;',
             '  mul.lo.u32 %r6, %r4, 128;', '  add.u32 %r6, %r6, %r3;', '  mul.wide.u32 %rd3, %r6, 4;',
             '  add.u64 %rd3, %rd1, %rd3;']
    for i in range(4):
        body += ['  ld.global.b32 %%a%d, [%%rd2+%d];' % (i, 128 * i)]
    for i in range(2):
        body += ['  ld.global.b32 %%b%d, [%%rd2+%d];' % (i, 512 + 128 * i)]
    for i in range(4):
        body += ['  ld.global.b32 %%c%d, [%%rd2+%d];' % (i, 768 + 128 * i)]
    for i in range(nc if acc == 'f' else 0):
        body += ['  mov.b32 %%f%d, %%c%d;' % (i, i)]
    if wide:
        tail = '' if tc == 's32' else ', 1, 1, 0' if ta in ('f16', 'bf16') else ', 1, 1'
        body += ['  mov.u32 %r7, image;', '  shl.b32 %r2, %r3, 2;', '  add.u32 %r2, %r7, %r2;',
                 '  st.shared.b32 [%r2], %b0;', '  st.shared.b32 [%r2+128], %b1;',
                 '  fence.proxy.async;', '  bar.sync 0;', '  shr.u32 %r7, %r7, 4;',
                 '  cvt.u64.u32 %rd4, %r7;',
                 '  add.u64 %rd4, %rd4, 0x1000080000; // leading 128, stride 256 bytes',
                 '  setp.eq.u32 %p, %r7, %r7;', '  wgmma.fence.sync.aligned;',
                 '  wgmma.mma_async.sync.aligned.%s %s, %s, %%rd4, %%p%s;' %
                 (text, braces(acc, nc), braces('a', 4), tail),
                 '  wgmma.commit_group.sync.aligned;', '  wgmma.wait_group.sync.aligned 0;']
    else:
        body += ['  mma.sync.aligned.%s %s, %s, %s, %s;' %
                 (text, braces(acc, nc), braces('a', na), braces('b', nb), braces(acc, nc))]
    for i in range(4):
        body += ['  st.global.b32 [%%rd3+%d], %%%s%d;' % (128 * i, acc if i < nc else 'c', i)]
    return '\n'.join(body + ['  ret;', '}', ''])


def make(folder):
    os.makedirs(folder, exist_ok=True)
    for inst in INSTS:
        with open('%s/%s.ptx' % (folder, inst), 'w') as f:
            f.write(ptx(inst))
        npy_write('%s/%s.npy' % (folder, inst), (RECORDS, 10, 32), sum(records(inst), []))


def run(folder, device, program):
    for inst in INSTS:
        wide = inst.startswith('wgmma')
        grid = RECORDS // 4 if wide else RECORDS
        r = subprocess.run([program, 'run', '%s/%s.ptx' % (folder, inst), '--device', device, '--grid',
                            str(grid), '--block', '128' if wide else '32', '--arg',
                            'in:%s/%s.npy' % (folder, inst), '--arg', 'out:u32[%d,4,32]' % RECORDS,
                            '--save', '%s/%s/%s' % (folder, device.replace(':', ''), inst)],
                           capture_output=True, text=True)
        if r.returncode:
            print(inst, 'exit', r.returncode, r.stderr.strip()[:300])


def compare(folder, one, other):
    for inst in INSTS:
        try:
            x = npy_read('%s/%s/%s/arg1.npy' % (folder, one, inst))
            y = npy_read('%s/%s/%s/arg1.npy' % (folder, other, inst))
        except OSError:
            print('%-22s not run' % inst)
            continue
        nc = counts(inst)[2]
        half = INSTS[inst][3] == 'f16'
        bad, seen = [], {}
        for i, (u, v) in enumerate(zip(x, y)):
            if i % 128 >= 32 * nc or u == v:
                continue
            kind = (i // 512 if inst.startswith('wgmma') else i // 128) % CLASSES
            for s in ((0, 16) if half else (0,)):
                mask = 0xffff if half else 0xffffffff
                p, q = u >> s & mask, v >> s & mask
                if p != q:
                    bad.append((kind, p, q))
        for b in bad:
            seen.setdefault(b[0], []).append(b[1:])
        print('%-22s %5d apart' % (inst, len(bad)), ' '.join(
            'class %d: %d (%s)' % (k, len(v), ' '.join('%x/%x' % p for p in v[:3])) for k, v in sorted(seen.items())))


def keep(folder, device):
    for inst, form in INSTS.items():
        if form[1] != form[2] or form[1] == 's8':
            continue
        na, nb, nc = counts(inst)
        out = npy_read('%s/%s/%s/arg1.npy' % (folder, device, inst))
        with open('%s/%s.special.bin' % (folder, inst), 'wb') as f:
            for i, r in enumerate(records(inst)):
                wide = inst.startswith('wgmma')  # one record of each class
                if i % 4 or i >= 4 * CLASSES if wide else i >= CLASSES:
                    continue
                w = []
                for j in range(0, na, 2):
                    w += r[32 * j:32 * j + 32]
                w += r[128:128 + 32 * nb] + r[192:192 + 16 * nc]
                w += out[128 * i:128 * i + 16 * nc]
                f.write(struct.pack('<%dI' % len(w), *w))


if __name__ == '__main__':
    args = sys.argv[1:]
    if len(args) == 1:
        make(args[0])
    elif args[1] == '--run':
        run(args[0], args[2], args[3])
    elif args[1] == '--compare':
        compare(args[0], args[2], args[3])
    elif args[1] == '--keep':
        keep(args[0], args[2])
