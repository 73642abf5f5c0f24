// helps: __syncthreads\(\).* that all threads reach
extern "C" __global__ void puzzle(const float *a, float *out) {
	__shared__ float x[128];
	int t = threadIdx.x;
	x[t] = a[t];
	__syncthreads();
#pragma unroll 1
	for (int step = 1; step < 128; step *= 2) {
		float v = t >= step ? x[t - step] : 0;
		x[t] += v;
		__syncthreads();
	}
	out[t] = x[t];
}
