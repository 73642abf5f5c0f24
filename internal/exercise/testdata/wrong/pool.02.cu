// helps: follow the thread
extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	__shared__ float tile[128];
	int t = threadIdx.x;
	tile[t] = a[t];
	__syncthreads();
	if (t >= 2)
		out[t] = tile[t - 2] + tile[t - 1] + tile[t];
}
