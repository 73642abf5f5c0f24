// The words of CUDA C++ that the puzzles use, for clang without NVIDIA's headers; nvcc needs none of it.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#include <__clang_cuda_builtin_vars.h>
