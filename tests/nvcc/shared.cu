// Shared memory, barriers, warp collectives, atomics, vector loads, asynchronous copies.
#include <cstdint>
#include <cuda_fp16.h>

extern __shared__ float dynamic[];

extern "C" __global__ void __launch_bounds__(256, 2) reduce(const float4 *x, float *out, int n) {
  __shared__ float part[8];
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float4 v = x[i];
    s += v.x + v.y + v.z + v.w;
  }
  for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    float v = threadIdx.x < 8 ? part[threadIdx.x] : 0;
    for (int d = 4; d; d >>= 1) v += __shfl_down_sync(0xffu, v, d);
    if (__any_sync(~0u, v > 0) && threadIdx.x == 0) atomicAdd(out, v);
  }
}

extern "C" __global__ void staged(const float4 *x, float4 *y, int n) {
  float4 *tile = reinterpret_cast<float4 *>(dynamic);
  unsigned to = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x]);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to),
               "l"(&x[blockIdx.x * blockDim.x + threadIdx.x]));
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;");
  __syncthreads();
  float4 v = tile[blockDim.x - 1 - threadIdx.x];
  unsigned mask = __match_any_sync(~0u, (int)v.x);
  v.w += __popc(mask) + __reduce_add_sync(~0u, n);
  y[blockIdx.x * blockDim.x + threadIdx.x] = v;
  __threadfence();
}

// D = A B, 16 x 8 x 16 by one warp; A and B row by row, through shared memory.
extern "C" __global__ void product(const half *a, const half *b, float *c) {
  uint32_t ra[4], rb[2];
  float d[4] = {0, 0, 0, 0};
  half *as = reinterpret_cast<half *>(dynamic), *bs = as + 256;
  unsigned t = threadIdx.x, tile = t >> 3, row = t & 7;
  // 8 x 8 tiles of A: rows 0 and 8 of columns 0, then of columns 8; of B: rows 0 and 8
  for (int i = 0; i < 8; i++) as[t * 8 + i] = a[((tile & 1) * 8 + row) * 16 + (tile >> 1) * 8 + i];
  for (int i = 0; i < 4; i++) bs[t * 4 + i] = b[t * 4 + i];
  __syncwarp();
  unsigned from = (unsigned)__cvta_generic_to_shared(as + t * 8);
  unsigned from_b = (unsigned)__cvta_generic_to_shared(bs + (t & 15) * 8);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(from));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(rb[0]), "=r"(rb[1]) : "r"(from_b));
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  for (int i = 0; i < 4; i++) c[t * 4 + i] = d[i];
}
