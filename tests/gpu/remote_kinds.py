#!/usr/bin/env python3
"""st.async and red.async one at a time into the own block:   remote_kinds.py PROGRAM FOLDER DEVICE"""
import subprocess
import sys

B = 'mbarrier::complete_tx::bytes'
RED = 'red.async.relaxed.cluster.shared::cluster.' + B
ST = 'st.async.shared::cluster.' + B
KINDS = [(RED + '.%s.%s [%%r1], %%v, [%%r2];' % k, 4) for k in (
    ('and', 'b32'), ('or', 'b32'), ('xor', 'b32'), ('min', 'u32'), ('min', 's32'), ('max', 'u32'), ('max', 's32'),
    ('inc', 'u32'), ('dec', 'u32'), ('add', 'u32'), ('add', 's32'))]
KINDS += [(RED + '.add.u64 [%r1], %w, [%r2];', 8), (RED + '.add.s64 [%r1], %w, [%r2];', 8),
          (ST + '.b32 [%r1], %v, [%r2];', 4), (ST + '.b64 [%r1], %w, [%r2];', 8),
          (ST + '.v2.b32 [%r1], {%v, %v}, [%r2];', 8), (ST + '.v2.b64 [%r1], {%w, %w}, [%r2];', 16),
          (ST + '.v4.b32 [%r1], {%v, %v, %v, %v}, [%r2];', 16),
          ('st.async.weak.shared::cluster.' + B + '.b32 [%r1], %v, [%r2];', 4),
          ('st.async.' + B + '.b32 [%a], %v, [%b];', 4)]
HEAD = '''.version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .shared .align 16 .b8 s[16];
  .shared .align 8 .b64 bar;
  .reg .pred %p;
  .reg .b32 %r<8>, %v;
  .reg .b64 %rd<4>, %w, %a, %b;
  ld.param.u64 %rd0, [out];
  mov.u32 %r1, s;
  mov.u32 %r2, bar;
  mov.u32 %v, 0x80000003;
  mov.b64 %w, 0x8000000380000003;
  st.shared.v2.b64 [%r1], {%w, %w};
  cvt.u64.u32 %a, %r1;
  cvta.shared.u64 %a, %a;
  cvt.u64.u32 %b, %r2;
  cvta.shared.u64 %b, %b;
  MAP
  mbarrier.init.shared.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], BYTES;
  mov.u32 %r3, %r1;
  mov.u32 %r4, %r2;
  MAP
  INST
again:
  mbarrier.try_wait.parity.shared.b64 %p, [%r4], 0;
  @!%p bra again;
  ld.shared.v2.b64 {%rd1, %rd2}, [%r3];
  st.global.v2.b64 [%rd0], {%rd1, %rd2};
  ret;
}
'''
program, folder, device = sys.argv[1:4]
for i, (inst, size) in enumerate(KINDS):
    for mapped in (False, True):
        text = HEAD.replace('BYTES', str(size)).replace('INST', inst).replace('  MAP\n', '', 1).replace(
            'MAP', 'mapa.shared::cluster.u32 %r1, %r1, 0;\n  mapa.shared::cluster.u32 %r2, %r2, 0;' if mapped else '')
        path = '%s/%d%d.ptx' % (folder, i, mapped)
        open(path, 'w').write(text)
        run = [program, 'run', path, '--grid', '1', '--block', '1', '--arg', 'out:u64[2]']
        if mapped:
            run += ['--cluster', '1']
        one = subprocess.run(run + ['--device', 'sim', '--save', path + '.d'], capture_output=True, text=True)
        two = subprocess.run(run + ['--device', device, '--expect', path + '.d/arg0.npy'], capture_output=True,
                             text=True)
        print(one.returncode, two.returncode, 'mapa' if mapped else 'own ', inst,
              (one.stderr + two.stdout.split('\n')[-2:][0] + two.stderr)[-160:].strip() if one.returncode or
              two.returncode else '')
