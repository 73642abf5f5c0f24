// helps: __syncthreads\(\).* that all threads reach
extern "C" __global__ void puzzle(const float *a, float *out) {
	__shared__ float x[128];
	int t = threadIdx.x;
	x[t] = a[t];
	__syncthreads();
#pragma unroll 1
	for (int step = 1; step < 128; step *= 2) {
		__syncthreads();
		if (t >= step)
			x[t] += x[t - step];
		__syncthreads();
	}
	out[t] = x[t];
}
