// What the test kernels need of CUDA, written for clang alone: no NVIDIA header is read.
#pragma once
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __restrict__ __restrict
#include <__clang_cuda_builtin_vars.h>
typedef float float4v __attribute__((ext_vector_type(4)));
typedef unsigned uint32_t;
#define KERNEL extern "C" __global__ void
