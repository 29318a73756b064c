// Integer and floating-point arithmetic, conversions, control flow, switch tables, local arrays.
#include <cstdint>

__constant__ float table[4] = {1.0f, 2.5f, -3.0f, 1e-20f};
__device__ unsigned long long counter = 7;
__device__ const char *names[2] = {"first", "second"};

extern "C" __global__ void scalar_mix(const float *x, const double *y, const int64_t *z, int *out,
                                      int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = x[i] * table[i & 3] + 0.5f;
  double b = y[i] / (1.0 + a);
  int64_t c = z[i] * n + (z[i] >> 3);
  unsigned u = __umulhi((unsigned)c, 0x9e3779b9u) ^ __brev((unsigned)n);
  switch (n % 7) {
  case 0: u += __popc(u); break;
  case 1: u = __clz(u); break;
  case 2: u = __ffs(u); break;
  case 3: u = u / 7; break;
  case 4: u = u % 13; break;
  case 5: u = __byte_perm(u, i, 0x3210); break;
  default: u = ~u;
  }
  float s = __sinf(a) + rsqrtf(a) + exp2f(a) + sqrtf(a) + __logf(a) + fmaxf(a, 0.25f) + fabsf(a);
  out[i] = (int)s + (int)b + (int)(c % 1000003) + (int)u + __float2int_rn(a) + (int)__double2ll_rz(b);
  atomicAdd(&counter, (unsigned long long)u);
}

__device__ __noinline__ float poly(float x, const float *c, int n) {
  float r = 0;
  for (int i = 0; i < n; i++) r = r * x + c[i];
  return r;
}

extern "C" __global__ void local_array(float *out, int n) {
  float c[8];
  for (int i = 0; i < 8; i++) c[i] = out[i] * i;
  out[n] = poly(out[n & 7], c, n & 7) + names[n & 1][n & 3];
}
