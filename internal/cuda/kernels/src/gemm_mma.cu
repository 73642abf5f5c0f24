// Products of 16-bit matrices on the tensor cores, with sums in f32.
//
// A block makes a tile of the result. Its operands pass through shared memory in steps of 64 terms, copied 16 bytes at a
// time ahead of their use, and from there by ldmatrix into the fragments of mma.sync.m16n8k16. gemm128 makes tiles of
// 128×192, 64×96 to a warp: what passes through shared memory bounds such kernels, and of that larger tiles need less, 5/4
// of a pass over its banks per mma. All 255 registers are in use. gemm64 makes tiles of 64×64, 32×32 to a warp, for
// results with few tiles. gemmodd makes tiles of 128×128 of operands whose rows lie at any distance, such as the gradient of
// 50257 logits: copied by words and put right in shared memory, for which gemm128 has no registers left; cards whose blocks have no 80 KiB of shared memory take it for all. Names tell the
// dimension along which each operand's elements are neighbours: gemm128_kn takes row-major matrices. Results with few tiles
// and many terms are cut along k: parts are summed by gemm_sum of gemm_any.cu.
//
//warpline:module gemm_kk_f16 -DT=f16 -DNAME(op)=op##_kk_f16 -DA_ALONG_K=true -DB_ALONG_K=true
//warpline:module gemm_kn_f16 -DT=f16 -DNAME(op)=op##_kn_f16 -DA_ALONG_K=true -DB_ALONG_K=false
//warpline:module gemm_mk_f16 -DT=f16 -DNAME(op)=op##_mk_f16 -DA_ALONG_K=false -DB_ALONG_K=true
//warpline:module gemm_mn_f16 -DT=f16 -DNAME(op)=op##_mn_f16 -DA_ALONG_K=false -DB_ALONG_K=false
//warpline:module gemm_kk_bf16 -DT=bf16 -DNAME(op)=op##_kk_bf16 -DA_ALONG_K=true -DB_ALONG_K=true
//warpline:module gemm_kn_bf16 -DT=bf16 -DNAME(op)=op##_kn_bf16 -DA_ALONG_K=true -DB_ALONG_K=false
//warpline:module gemm_mk_bf16 -DT=bf16 -DNAME(op)=op##_mk_bf16 -DA_ALONG_K=false -DB_ALONG_K=true
//warpline:module gemm_mn_bf16 -DT=bf16 -DNAME(op)=op##_mn_bf16 -DA_ALONG_K=false -DB_ALONG_K=false
//warpline:module gemm_large_kk_f16 -DT=f16 -DNAME(op)=op##_kk_f16 -DA_ALONG_K=true -DB_ALONG_K=true -DLARGE @sm_80
//warpline:module gemm_large_kn_f16 -DT=f16 -DNAME(op)=op##_kn_f16 -DA_ALONG_K=true -DB_ALONG_K=false -DLARGE @sm_80
//warpline:module gemm_large_mk_f16 -DT=f16 -DNAME(op)=op##_mk_f16 -DA_ALONG_K=false -DB_ALONG_K=true -DLARGE @sm_80
//warpline:module gemm_large_mn_f16 -DT=f16 -DNAME(op)=op##_mn_f16 -DA_ALONG_K=false -DB_ALONG_K=false -DLARGE @sm_80
//warpline:module gemm_large_kk_bf16 -DT=bf16 -DNAME(op)=op##_kk_bf16 -DA_ALONG_K=true -DB_ALONG_K=true -DLARGE @sm_80
//warpline:module gemm_large_kn_bf16 -DT=bf16 -DNAME(op)=op##_kn_bf16 -DA_ALONG_K=true -DB_ALONG_K=false -DLARGE @sm_80
//warpline:module gemm_large_mk_bf16 -DT=bf16 -DNAME(op)=op##_mk_bf16 -DA_ALONG_K=false -DB_ALONG_K=true -DLARGE @sm_80
//warpline:module gemm_large_mn_bf16 -DT=bf16 -DNAME(op)=op##_mn_bf16 -DA_ALONG_K=false -DB_ALONG_K=false -DLARGE @sm_80
//warpline:module gemm_odd_kk_f16 -DT=f16 -DNAME(op)=op##_kk_f16 -DA_ALONG_K=true -DB_ALONG_K=true -DODD
//warpline:module gemm_odd_kn_f16 -DT=f16 -DNAME(op)=op##_kn_f16 -DA_ALONG_K=true -DB_ALONG_K=false -DODD
//warpline:module gemm_odd_mk_f16 -DT=f16 -DNAME(op)=op##_mk_f16 -DA_ALONG_K=false -DB_ALONG_K=true -DODD
//warpline:module gemm_odd_mn_f16 -DT=f16 -DNAME(op)=op##_mn_f16 -DA_ALONG_K=false -DB_ALONG_K=false -DODD
//warpline:module gemm_odd_kk_bf16 -DT=bf16 -DNAME(op)=op##_kk_bf16 -DA_ALONG_K=true -DB_ALONG_K=true -DODD
//warpline:module gemm_odd_kn_bf16 -DT=bf16 -DNAME(op)=op##_kn_bf16 -DA_ALONG_K=true -DB_ALONG_K=false -DODD
//warpline:module gemm_odd_mk_bf16 -DT=bf16 -DNAME(op)=op##_mk_bf16 -DA_ALONG_K=false -DB_ALONG_K=true -DODD
//warpline:module gemm_odd_mn_bf16 -DT=bf16 -DNAME(op)=op##_mn_bf16 -DA_ALONG_K=false -DB_ALONG_K=false -DODD
#include "mma.cuh"
#include "gemm.cuh"

// Without a number of blocks to keep on a multiprocessor, ptxas leaves gemm64 too few registers on some targets.
#define GEMM(name, rows, cols, stages, blocks, byWords) \
	extern "C" __global__ void __launch_bounds__(128, blocks) NAME(name)(T *__restrict__ c, const T *__restrict__ a, const T *__restrict__ b, Epilogue end, f32 *__restrict__ partial, Product p) { \
		alignas(1024) extern __shared__ u8 shared[]; \
		gemm<MmaBlock<T, rows, cols, A_ALONG_K, B_ALONG_K>, stages, byWords>(shared, c, a, b, end, partial, p); \
	}
#if defined ODD
GEMM(gemmodd, 128, 128, 2, 2, true)
#elif defined LARGE
GEMM(gemm128, 128, 192, 2, 2, false)
#else
GEMM(gemm64, 64, 64, 3, 4, true)
#endif
