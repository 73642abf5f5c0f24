// helps: by hand
extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	__shared__ float tile[128];
	int t = threadIdx.x;
	tile[t] = a[t];
	__syncthreads();
	float s = tile[t];
	if (t >= 1)
		s += tile[t - 1];
	if (t >= 2)
		s += tile[t - 2];
	out[t] = s / 3;
}
