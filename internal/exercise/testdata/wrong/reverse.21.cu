// helps: has to go on
extern "C" __global__ void puzzle(const float *a, float *out) {
	__shared__ float tile[128];
	int t = threadIdx.x, i = blockIdx.x * 128 + t;
	tile[t] = a[t];
	__syncthreads();
	out[i] = tile[127 - t];
}
