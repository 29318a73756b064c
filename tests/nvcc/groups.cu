// Cooperative groups, a tiled product on wmma fed by asynchronous copies, fp8 both ways.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <mma.h>
namespace cg = cooperative_groups;

// Of each tile of 8 threads the sum; of the block the sum of those; of the odd threads their number.
extern "C" __global__ void groups(const int *x, int *out) {
  __shared__ int sums[16];
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  int i = block.thread_rank(), sum = cg::reduce(tile, x[i], cg::plus<int>());
  if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = sum;
  block.sync();
  int all = 0;
  for (int t = 0; t < 16; t++) all += sums[t];
  int odd = 0;
  if (i & 1) {
    cg::coalesced_group g = cg::coalesced_threads();
    odd = g.size() * 100 + g.shfl(x[i], 0);
  }
  out[3 * i] = sum + tile.shfl_xor(i, 3);
  out[3 * i + 1] = all;
  out[3 * i + 2] = odd;
}

// C = A B, 32 x 64 x 32: four warps, K in steps of 16, two stages.
extern "C" __global__ void tiled(const half *a, const half *b, float *c) {
  using namespace nvcuda;
  __shared__ __align__(128) half as[2][32 * 16], bs[2][16 * 32];
  int t = threadIdx.x, row = (t >> 6) * 16, col = (t >> 5 & 1) * 16;
  auto fetch = [&](int k) {
    int s = k & 1;
    if (t < 64) // 32 rows of 2 pieces of 8 elements
      __pipeline_memcpy_async(&as[s][t * 8], a + (t >> 1) * 64 + k * 16 + (t & 1) * 8, 16);
    else // 16 rows of 4 pieces
      __pipeline_memcpy_async(&bs[s][(t - 64) * 8], b + k * 16 * 32 + (t - 64) * 8, 16);
    __pipeline_commit();
  };
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  fetch(0);
  for (int k = 0; k < 4; k++) {
    if (k + 1 < 4) {
      fetch(k + 1);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    wmma::load_matrix_sync(fa, &as[k & 1][row * 16], 16);
    wmma::load_matrix_sync(fb, &bs[k & 1][col], 32);
    wmma::mma_sync(fc, fa, fb, fc);
    __syncthreads();
  }
  wmma::store_matrix_sync(c + row * 32 + col, fc, 32, wmma::mem_row_major);
}

extern "C" __global__ void eighths(const float *x, float *out) {
  float v = x[threadIdx.x], *o = out + threadIdx.x * 3;
  __nv_fp8x2_e4m3 pair(make_float2(v, -v));
  float2 back = float2(pair);
  o[0] = back.x;
  o[1] = back.y;
  o[2] = float(__nv_fp8_e5m2(v));
}
