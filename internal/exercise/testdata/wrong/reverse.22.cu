// helps: wrong places
extern "C" __global__ void puzzle(const float *a, float *out) {
	__shared__ float tile[128];
	int t = threadIdx.x, i = blockIdx.x * 128 + t;
	tile[127 - t] = a[i];
	__syncthreads();
	out[i] = tile[127 - t];
}
