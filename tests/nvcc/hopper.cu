// mbarriers, bulk copies, clusters, wgmma and setmaxnreg: sm_90a only.
#include <cstdint>

static __device__ __forceinline__ unsigned smem(const void *p) {
  return (unsigned)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void wait(unsigned bar, unsigned parity) {
  asm volatile("{\n"
               ".reg .pred P1;\n"
               "LAB_WAIT:\n"
               "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 P1, [%0], %1;\n"
               "@P1 bra DONE;\n"
               "bra LAB_WAIT;\n"
               "DONE:\n"
               "}\n" ::"r"(bar), "r"(parity) : "memory");
}

static __device__ __forceinline__ unsigned peer(unsigned at, unsigned rank) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
  return there;
}

enum { A = 64 * 128, B = 8 * 128 }; // rows of 64 halves, K-major, swizzled by 128 bytes

// Each of two blocks has two A and one B behind each other in x.  Warpgroup w makes D = A[w] B^T, 64 x 8;
// out = D + the sum of the four elements that the same thread of the other block has.
extern "C" __global__ void __cluster_dims__(2, 1, 1) __maxnreg__(128) hopper(const char *x, float *out) {
  __shared__ __align__(1024) char tile[2 * A + B];
  __shared__ float sums[256];
  __shared__ __align__(8) uint64_t bar[2];
  unsigned t = threadIdx.x, rank = blockIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(smem(&bar[0])));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(smem(&bar[1])));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(&bar[0])),
                 "r"(2 * A + B));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(smem(tile)), "l"(x + rank * (2 * A + B)),
                 "r"(2 * A + B), "r"(smem(&bar[0])) : "memory");
  }
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  wait(smem(&bar[0]), 0);
  if (t < 128) asm volatile("setmaxnreg.dec.sync.aligned.u32 88;");
  else asm volatile("setmaxnreg.inc.sync.aligned.u32 168;");
  float d[4] = {0, 0, 0, 0};
  uint64_t form = 0x4000004000010000; // swizzle of 128 bytes, 1024 from 8 rows to the next
  uint64_t a = form | (smem(tile + (t >> 7) * A) & 0x3ffff) >> 4, b = form | (smem(tile + 2 * A) & 0x3ffff) >> 4;
  asm volatile("{\n"
               ".reg .b64 A1, A2, A3, B1, B2, B3;\n"
               "add.s64 A1, %4, 2; add.s64 A2, %4, 4; add.s64 A3, %4, 6;\n"
               "add.s64 B1, %5, 2; add.s64 B2, %5, 4; add.s64 B3, %5, 6;\n"
               "wgmma.fence.sync.aligned;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, A1, B1, 1, 1, 1, 0, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, A2, B2, 1, 1, 1, 0, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, A3, B3, 1, 1, 1, 0, 0;\n"
               "wgmma.commit_group.sync.aligned;\n"
               "wgmma.wait_group.sync.aligned 0;\n"
               "}\n"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b) : "memory");
  sums[t] = d[0] + d[1] + d[2] + d[3];
  __syncthreads();
  if (t < 2) // to both blocks: this one's sums are there
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(peer(smem(&bar[1]), t))
                 : "memory");
  wait(smem(&bar[1]), 0);
  float other;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(other) : "r"(peer(smem(&sums[t]), rank ^ 1)) : "memory");
  for (int i = 0; i < 4; i++) out[(rank * 256 + t) * 4 + i] = d[i] + other;
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
