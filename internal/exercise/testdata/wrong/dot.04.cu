// helps: __syncthreads\(\).* that all threads reach
extern "C" __global__ void puzzle(const float *a, const float *b, float *out, int n) {
	__shared__ float part[128];
	int t = threadIdx.x;
	part[t] = t < n ? a[t] * b[t] : 0;
	__syncthreads();
#pragma unroll 1
	for (int half = 64; half > 0; half /= 2)
		if (t < half)
			part[t] += part[t + half];
	__syncthreads();
	if (t == 0)
		out[0] = part[0];
}
