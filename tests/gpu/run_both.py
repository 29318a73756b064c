#!/usr/bin/env python3
"""`ptxsmith run` on two devices, output against output:   run_both.py PROGRAM FOLDER [DEVICE]

Each case runs sanitized on sim, then on DEVICE (cuda:0) held against what sim wrote.
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# name: array, words of the map, bytes of the box, corner
MAPS = {
    'narrow 16 of 128': ('u16[16,64]=iota', 'box=8x16,swizzle=128', 256, (8, 0)),
    'narrow 32 of 128': ('u16[16,64]=iota', 'box=16x16,swizzle=128', 512, (0, 0)),
    'narrow 48 of 128': ('u16[16,64]=iota', 'box=24x8,swizzle=128', 384, (0, 0)),
    'narrow 16 of 64': ('u16[16,64]=iota', 'box=8x16,swizzle=64', 256, (0, 0)),
    'narrow 48 of 64': ('u16[16,64]=iota', 'box=24x16,swizzle=64', 768, (0, 0)),
    'narrow 16 of 32': ('u16[16,64]=iota', 'box=8x16,swizzle=32', 256, (0, 0)),
    'full 128': ('u16[16,64]=iota', 'box=64x16,swizzle=128', 2048, (0, 0)),
    'stride 0': ('u16[16,64]=iota', 'box=64x8,dims=64x8,strides=0,swizzle=128', 1024, (0, 0)),
    'stride 16': ('u16[16,64]=iota', 'box=64x8,dims=64x8,strides=16,swizzle=128', 1024, (0, 0)),
    'address 16': ('u16[16,64]=iota', 'box=64x8,dims=56x8,strides=128,offset=8,swizzle=128', 1024, (0, 0)),
    'clipped': ('u16[16,64]=iota', 'box=64x16', 2048, (-8, 9)),
    'long tail': ('u16[16,64]=iota', 'box=64x16,dims=61x15,strides=128', 2048, (8, 3)),
    'corner 8 bytes in': ('u16[16,64]=iota', 'box=64x16', 2048, (4, 0)),
    'corner 2 bytes in, nan': ('f16[16,64]=1', 'box=64x16,fill=nan', 2048, (1, 0)),
    'all outside': ('u16[16,64]=iota', 'box=64x16', 2048, (64, 0)),
    'rows in steps': ('u16[16,64]=iota', 'box=64x15,step=1x2', 1024, (0, 1)),
    'columns in steps': ('u16[16,64]=iota', 'box=64x8,step=2x1', 1024, (0, 0)),
    'columns and rows in steps': ('u16[16,64]=iota', 'box=64x8,step=4x3', 384, (0, 0)),
    'store': ('u16[16,64]=0', 'box=64x8,swizzle=128', 1024, (8, 3)),
    'store, clipped': ('u16[16,64]=0', 'box=64x8', 1024, (24, 12)),
    'store, narrow 16 of 128': ('u16[16,64]=0', 'box=8x8,swizzle=128', 128, (8, 3)),
    'store, narrow 32 of 64': ('u16[16,64]=0', 'box=16x8,swizzle=64', 256, (8, 3)),
    'store, tf32': ('u32[16,64]=0', 'box=32x8,type=tf32', 1024, (0, 0)),
    'corner of a store 8 bytes in': ('u16[16,64]=0', 'box=64x8', 1024, (4, 0)),
    'nan f16': ('f16[8,64]=1', 'box=64x8,fill=nan', 1024, (-8, 4)),
    'nan bf16': ('bf16[8,64]=1', 'box=64x8,fill=nan', 1024, (-8, 4)),
    'nan f32': ('f32[8,64]=1', 'box=64x8,fill=nan', 2048, (-8, 4)),
    'nan f32ftz': ('f32[8,64]=1', 'box=64x8,fill=nan,type=f32ftz', 2048, (-8, 4)),
    'nan tf32': ('f32[8,64]=1', 'box=64x8,fill=nan,type=tf32', 2048, (-8, 4)),
    'nan tf32ftz': ('f32[8,64]=1', 'box=64x8,fill=nan,type=tf32ftz', 2048, (-8, 4)),
    'nan f64': ('f64[8,64]=1', 'box=64x8,fill=nan', 4096, (-8, 4)),
    'nan to the end': ('f16[8,64]=1', 'box=64x8,fill=nan', 1024, (8, 0)),
    'f32ftz': ('u32[8,64]=random', 'box=64x8,type=f32ftz', 2048, (0, 0)),
    'f32ftz, small': ('f32[8,64]=1e-40', 'box=64x8,type=f32ftz', 2048, (0, 0)),
    'f32, any bits': ('u32[8,64]=random', 'box=64x8,type=f32', 2048, (0, 0)),
    'tf32': ('u32[8,64]=random', 'box=64x8,type=tf32', 2048, (0, 0)),
    'tf32ftz': ('u32[8,64]=random', 'box=64x8,type=tf32ftz', 2048, (0, 0)),
    'tf32, numbers': ('f32[8,64]=random', 'box=64x8,type=tf32', 2048, (0, 0)),
    'tf32, small': ('f32[8,64]=1e-40', 'box=64x8,type=tf32', 2048, (0, 0)),
    'tf32ftz, small': ('f32[8,64]=1e-40', 'box=64x8,type=tf32ftz', 2048, (0, 0)),
}


def cases():
    maps = HERE + '/tensor_maps.ptx'
    for name, (array, words, size, at) in MAPS.items():
        yield name, 0 if 'store' in name else 2, [maps, '--kernel', 'put2' if 'store' in name else 'box2', '--grid', '1', '--block', '128', '--arg',
                        ('inout:' if 'store' in name else 'in:') + array, '--arg', 'tmap:0,' + words, '--arg',
                        'in:u32[2048]=iota' if 'store' in name else 'out:u32[2048]', '--arg', 'u32:%d' % size,
                        '--arg', 'i32:%d' % at[0], '--arg', 'i32:%d' % at[1]]
    yield 'inout', 0, [maps, '--kernel', 'add', '--grid', '2', '--block', '32', '--arg', 'inout:f32[40]=iota',
                       '--arg', 'out:f32[64]', '--arg', 'f32:0.5', '--arg', 'u32:40']


def main():
    program, folder = sys.argv[1:3]
    device = sys.argv[3] if len(sys.argv) > 3 else 'cuda:0'
    bad = 0
    for i, (name, out, args) in enumerate(cases()):
        save = '%s/%d' % (folder, i)
        one = subprocess.run([program, 'run'] + args + ['--device', 'sim', '--sanitize', '--save', save],
                             capture_output=True, text=True)
        other = subprocess.run([program, 'run'] + args + ['--device', device, '--save', save + 'b', '--expect',
                                                          '%s/arg%d.npy' % (save, out)],
                               capture_output=True, text=True)
        wrong = name.startswith('corner')  # a trap on sim, an illegal instruction on the GPU
        good = (one.returncode, other.returncode) in ([(1, 1), (1, 3)] if wrong else [(0, 0)])
        bad += not good
        print('%-28s sim %d, %s %d%s' % (name, one.returncode, device, other.returncode, '' if good else
              '\n    ' + (one.stderr + other.stdout + other.stderr).strip().replace('\n', '\n    ')[:600]))
    print('%d cases differ' % bad)
    return bad > 0


sys.exit(main())
