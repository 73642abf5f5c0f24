extern "C" __global__ void puzzle(const float *a, float *out) {
	__shared__ float tile[128];
	int t = threadIdx.x, i = blockIdx.x * 128 + t;
	tile[t] = a[i];
	// Each block's 128 elements are to come out backwards. Who has written tile[127 - t], and when?
	out[i] = tile[127 - t];
}
