#include "../sim/cuda.h"

// y[row, i] = x[row, 0] + … + x[row, i]: a row a block, in pieces of as many values as the block has threads, a power of 2. The
// shared memory of the launch is a float for each.
extern "C" __global__ void scan(const float *x, float *y, int n) {
	extern __shared__ float part[];
	int t = threadIdx.x, threads = blockDim.x;
	x += (size_t)blockIdx.x * n;
	y += (size_t)blockIdx.x * n;
	float carry = 0;
	for (int at = 0; at < n; at += threads) {
		part[t] = at + t < n ? x[at + t] : 0;
		__syncthreads();
		for (int o = 1; o < threads; o *= 2) {
			float before = t >= o ? part[t - o] : 0;
			__syncthreads();
			part[t] += before;
			__syncthreads();
		}
		if (at + t < n)
			y[at + t] = carry + part[t];
		carry += part[threads - 1];
		__syncthreads();
	}
}
