// helps: must reach each barrier|that all threads reach
extern "C" __global__ void puzzle(const float *a, float *out) {
	__shared__ float tile[128];
	int t = threadIdx.x, i = blockIdx.x * 128 + t;
	tile[t] = a[i];
	if (t < 64)
		__syncthreads();
	out[i] = tile[127 - t];
}
