// Small floats and tiles of a warp's matrix product.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

extern "C" __global__ void small_floats(const float *x, float *out) {
  float v = x[threadIdx.x], *o = out + threadIdx.x * 6;
  __half2 h = __floats2half2_rn(v, -v);
  o[0] = __half2float(__hadd(__low2half(h), __float2half_rn(0.25f)));
  o[1] = __high2float(__hmul2(h, h));
  o[2] = __bfloat162float(__float2bfloat16_rn(v));
  o[3] = __bfloat162float(__hfma(__float2bfloat16_rn(v), __float2bfloat16_rn(2), __float2bfloat16_rn(1)));
  __nv_fp8_e4m3 e(v);
  o[4] = float(e);
  o[5] = __half2float(__float2half_rz(v));
}

// C = A B: 32 x 32, a warp for each 16 x 16 piece.
extern "C" __global__ void tiles(const half *a, const half *b, float *c) {
  using namespace nvcuda;
  int row = threadIdx.y * 16, col = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int k = 0; k < 32; k += 16) {
    wmma::load_matrix_sync(fa, a + row * 32 + k, 32);
    wmma::load_matrix_sync(fb, b + k * 32 + col, 32);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c + row * 32 + col, fc, 32, wmma::mem_row_major);
}

// A double-buffered pipeline of asynchronous copies: the sum of each column of 16 tiles.
extern "C" __global__ void pipeline(const float4 *x, float *out) {
  __shared__ float4 stage[2][32];
  auto fetch = [&](int t) {
    unsigned to = (unsigned)__cvta_generic_to_shared(&stage[t & 1][threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(&x[t * 32 + threadIdx.x]));
    asm volatile("cp.async.commit_group;");
  };
  float s = 0;
  fetch(0);
  for (int t = 0; t < 16; t++) {
    if (t + 1 < 16) fetch(t + 1);
    if (t + 1 < 16) asm volatile("cp.async.wait_group 1;" ::: "memory");
    else asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    const float *f = (const float *)stage[t & 1];
    for (int i = 0; i < 4; i++) s += f[threadIdx.x + 32 * i];
    __syncthreads();
  }
  out[threadIdx.x] = s;
}
