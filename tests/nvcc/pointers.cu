// A call through a pointer.
typedef int Fn(int);
static __device__ __noinline__ int twice(int x) { return 2 * x; }
static __device__ __noinline__ int less(int x) { return x - 5; }
static __device__ Fn *table[2] = {twice, less};
extern "C" __global__ void indirect(int *out) { out[threadIdx.x] = table[threadIdx.x & 1](threadIdx.x); }
