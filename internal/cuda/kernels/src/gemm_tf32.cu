// Products of f32 matrices on the tensor cores, of operands rounded to TF32, with sums in f32: as gemm_mma.cu has those of 16
// bits, in steps of 32 terms. Rows at any distance are copied by elements where they do not begin at multiples of 16 bytes.
//
//warpline:module gemm_kk_tf32 -DT=f32 -DNAME(op)=op##_kk_tf32 -DA_ALONG_K=true -DB_ALONG_K=true @sm_80
//warpline:module gemm_kn_tf32 -DT=f32 -DNAME(op)=op##_kn_tf32 -DA_ALONG_K=true -DB_ALONG_K=false @sm_80
//warpline:module gemm_mk_tf32 -DT=f32 -DNAME(op)=op##_mk_tf32 -DA_ALONG_K=false -DB_ALONG_K=true @sm_80
//warpline:module gemm_mn_tf32 -DT=f32 -DNAME(op)=op##_mn_tf32 -DA_ALONG_K=false -DB_ALONG_K=false @sm_80
//warpline:module gemm_large_kk_tf32 -DT=f32 -DNAME(op)=op##_kk_tf32 -DA_ALONG_K=true -DB_ALONG_K=true -DLARGE @sm_80
//warpline:module gemm_large_kn_tf32 -DT=f32 -DNAME(op)=op##_kn_tf32 -DA_ALONG_K=true -DB_ALONG_K=false -DLARGE @sm_80
//warpline:module gemm_large_mk_tf32 -DT=f32 -DNAME(op)=op##_mk_tf32 -DA_ALONG_K=false -DB_ALONG_K=true -DLARGE @sm_80
//warpline:module gemm_large_mn_tf32 -DT=f32 -DNAME(op)=op##_mn_tf32 -DA_ALONG_K=false -DB_ALONG_K=false -DLARGE @sm_80
#include "tf32.cuh"
#include "gemm.cuh"

#define GEMM(name, rows, cols, stages, blocks) \
	extern "C" __global__ void __launch_bounds__(128, blocks) NAME(name)(T *__restrict__ c, const T *__restrict__ a, const T *__restrict__ b, Epilogue end, f32 *__restrict__ partial, Product p) { \
		alignas(1024) extern __shared__ u8 shared[]; \
		gemm<MmaBlock<tf32, rows, cols, A_ALONG_K, B_ALONG_K>, stages>(shared, c, a, b, end, partial, p); \
	}
#ifdef LARGE
GEMM(gemm128, 128, 128, 2, 2)
#else
GEMM(gemm64, 64, 64, 3, 4)
#endif
