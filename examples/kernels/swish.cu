#include "../sim/cuda.h"

// y = x·σ(x), of n values.
__global__ void swish(const float *x, float *y, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] = x[i] / (1 + expf(-x[i]));
}

// dx = dy·σ(x)·(1 + x·(1 - σ(x))), the gradient of swish.
__global__ void swish_grad(const float *x, const float *dy, float *dx, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	float s = 1 / (1 + expf(-x[i]));
	dx[i] = dy[i] * s * (1 + x[i] * (1 - s));
}
