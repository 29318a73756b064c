// f16 and bf16, their packed forms, and conversions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half_mix(const __half2 *a, const __nv_bfloat162 *b, __half2 *o,
                                    __nv_bfloat162 *p, float *f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __half2 x = __hfma2(a[i], a[i], __float2half2_rn(0.5f));
  x = __hadd2(x, h2exp2(a[i]));
  __nv_bfloat162 y = __hmul2(b[i], b[i]);
  y = __hmax2(y, b[i]);
  o[i] = x;
  p[i] = y;
  float2 lo = __half22float2(x), hi = __bfloat1622float2(y);
  f[i] = lo.x + hi.y + (__hgt(x.x, x.y) ? 1.0f : 0.0f);
  o[i].x = __float2half_rn(f[i]);
  p[i] = __floats2bfloat162_rn(lo.y, hi.x);
}
