// Products of f32 matrices in f32: every product is exact to half an ulp, as no tensor core's is.
//
// A block makes a tile of the result. Its operands pass through shared memory in steps of 32 terms, copied ahead of their
// use; a warp makes 32×64 of the tile's sums. gemm128 has 128×128 sums in 8 warps, gemm64 64×64 in 2, for results that make
// few tiles. Names tell the dimension along which each operand's elements are neighbours. Results with few tiles and many
// terms are cut along k: parts are summed by gemm_sum of gemm_any.cu.
//
//warpline:module gemm_kk_f32 -DT=f32 -DNAME(op)=op##_kk_f32 -DA_ALONG_K=true -DB_ALONG_K=true
//warpline:module gemm_kn_f32 -DT=f32 -DNAME(op)=op##_kn_f32 -DA_ALONG_K=true -DB_ALONG_K=false
//warpline:module gemm_mk_f32 -DT=f32 -DNAME(op)=op##_mk_f32 -DA_ALONG_K=false -DB_ALONG_K=true
//warpline:module gemm_mn_f32 -DT=f32 -DNAME(op)=op##_mn_f32 -DA_ALONG_K=false -DB_ALONG_K=false
//warpline:module gemm_large_kk_f32 -DT=f32 -DNAME(op)=op##_kk_f32 -DA_ALONG_K=true -DB_ALONG_K=true -DLARGE
//warpline:module gemm_large_kn_f32 -DT=f32 -DNAME(op)=op##_kn_f32 -DA_ALONG_K=true -DB_ALONG_K=false -DLARGE
//warpline:module gemm_large_mk_f32 -DT=f32 -DNAME(op)=op##_mk_f32 -DA_ALONG_K=false -DB_ALONG_K=true -DLARGE
//warpline:module gemm_large_mn_f32 -DT=f32 -DNAME(op)=op##_mn_f32 -DA_ALONG_K=false -DB_ALONG_K=false -DLARGE
#include "ffma.cuh"
#include "gemm.cuh"

// Eight warps are to fit on a multiprocessor: with no such bound ptxas spills registers for the sake of more.
#define GEMM(name, side, blocks) \
	extern "C" __global__ void __launch_bounds__(side *side / 64, blocks) NAME(name)(T *__restrict__ c, const T *__restrict__ a, const T *__restrict__ b, Epilogue end, f32 *__restrict__ partial, Product p) { \
		alignas(1024) extern __shared__ u8 shared[]; \
		gemm<FmaBlock<side, side, A_ALONG_K, B_ALONG_K>, 2>(shared, c, a, b, end, partial, p); \
	}
#ifdef LARGE
GEMM(gemm128, 128, 1)
#else
GEMM(gemm64, 64, 4)
#endif
