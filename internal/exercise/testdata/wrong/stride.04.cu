// helps: follow the thread
extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	for (int k = i; k < n; k += gridDim.x * blockDim.x)
		out[i] = a[k] * a[k];
}
