#include "cuda.h"

// Every block of 256 threads sums 256 values; two mistakes are in it.
extern "C" __global__ void sum(const float *x, float *out, int n) {
	__shared__ float part[256];
	int t = threadIdx.x;
	int i = blockIdx.x * 256 + t;
	part[t] = i <= n ? x[i] : 0;
	__syncthreads();
#pragma unroll 1
	for (int o = 128; o > 0; o >>= 1) {
		if (t < o)
			part[t] += part[t + o];
	}
	if (t == 0)
		out[blockIdx.x] = part[0];
}
