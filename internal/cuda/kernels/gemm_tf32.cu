// Products of f32 matrices on the tensor cores, for whoever trades precision for speed: gemm64_tf32 and gemm128_tf32 round
// operands to TF32's 11 bits, gemm64_tf32x3 splits each in two and adds three products, which keeps about 21. Operands of
// any strides come to lie along k in shared memory, four bytes at a time unless they do so in global memory.
//
//warpline:module gemm_tf32
#include "mma.cuh"
#include "gemm.cuh"

#define GEMM(name, side, precision) \
	KERNEL(128) name(f32 *__restrict__ c, const f32 *__restrict__ a, const f32 *__restrict__ b, const f32 *__restrict__ bias, f32 *__restrict__ partial, Product p) { \
		alignas(1024) extern __shared__ u8 shared[]; \
		gemm<MmaBlock<f32, side, side, true, true, precision>, 2>(shared, c, a, b, bias, partial, p); \
	}
GEMM(gemm128_tf32, 128, Rounded)
GEMM(gemm64_tf32, 64, Rounded)
GEMM(gemm64_tf32x3, 64, Split)
