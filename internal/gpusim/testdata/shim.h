// The few words of CUDA C++ that the test kernels need, for clang without NVIDIA's headers.
#pragma once
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __restrict__ __restrict
#define __align__(n) __attribute__((aligned(n)))
#define __noinline__ __attribute__((noinline))
#define KERNEL extern "C" __global__ void
#include <__clang_cuda_builtin_vars.h>
typedef unsigned int uint32_t;
typedef unsigned short uint16_t;
typedef float float4v __attribute__((ext_vector_type(4)));
__device__ inline float shflXor(float v, int o) { return __nvvm_shfl_sync_bfly_f32(~0u, v, o, 31); }
__device__ inline float exp2Fast(float v) { return __nvvm_ex2_approx_f(v); }
__device__ inline float rsqrtFast(float v) { return __nvvm_rsqrt_approx_f(v); }
__device__ inline uint32_t sharedAddress(const void *p) {
	return (uint32_t)(unsigned long)(const __attribute__((address_space(3))) void *)p;
}
