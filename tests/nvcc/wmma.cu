// d = a b + c by the wmma interface: every shape, type and order of elements that the interpreter has.
#include <mma.h>
using namespace nvcuda::wmma;

template <int M, int N, int K, class In, class T, class Acc, class OrderA, class OrderB>
__device__ void product(const T *a, const T *b, const Acc *c, Acc *d, int lda, int ldb, int ldc,
                        layout_t order) {
  fragment<matrix_a, M, N, K, In, OrderA> fa;
  fragment<matrix_b, M, N, K, In, OrderB> fb;
  fragment<accumulator, M, N, K, Acc> fc;
  load_matrix_sync(fa, a, lda);
  load_matrix_sync(fb, b, ldb);
  load_matrix_sync(fc, c, ldc, order);
  for (int i = 0; i < fa.num_elements; i++)
    fa.x[i] = fa.x[i] * (T)2.0f; // every copy of an element
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(d, fc, ldc, order);
}

#define ROW row_major
#define COL col_major
#define KERNEL(name, M, N, K, In, T, Acc, OrderA, OrderB, order)                                   \
  extern "C" __global__ void name(const T *a, const T *b, const Acc *c, Acc *d, int lda, int ldb,  \
                                  int ldc) {                                                       \
    product<M, N, K, In, T, Acc, OrderA, OrderB>(a, b, c, d, lda, ldb, ldc, order);                \
  }
KERNEL(f16_16_rr, 16, 16, 16, half, half, float, ROW, ROW, mem_row_major)
KERNEL(f16_16_cc, 16, 16, 16, half, half, half, COL, COL, mem_col_major)
KERNEL(f16_32_rc, 32, 8, 16, half, half, half, ROW, COL, mem_row_major)
KERNEL(f16_8_cr, 8, 32, 16, half, half, float, COL, ROW, mem_row_major)
KERNEL(f16_8_rc, 8, 32, 16, half, half, half, ROW, COL, mem_col_major)
KERNEL(bf16_16_rc, 16, 16, 16, __nv_bfloat16, __nv_bfloat16, float, ROW, COL, mem_col_major)
KERNEL(bf16_32_cr, 32, 8, 16, __nv_bfloat16, __nv_bfloat16, float, COL, ROW, mem_row_major)
KERNEL(bf16_8_rr, 8, 32, 16, __nv_bfloat16, __nv_bfloat16, float, ROW, ROW, mem_col_major)
KERNEL(tf32_16_rc, 16, 16, 8, precision::tf32, float, float, ROW, COL, mem_row_major)
KERNEL(tf32_16_cr, 16, 16, 8, precision::tf32, float, float, COL, ROW, mem_col_major)
