// helps: wrong places
extern "C" __global__ void puzzle(const float *a, float *out) {
	__shared__ float tile[128];
	int t = threadIdx.x, i = blockIdx.x * 128 + t;
	tile[t] = a[i];
	__syncthreads();
	out[255 - i] = tile[t];
}
