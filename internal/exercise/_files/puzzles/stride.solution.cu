extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		out[i] = a[i] * a[i];
}
