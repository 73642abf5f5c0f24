// helps: follow the thread
extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n - 1)
		out[i] = a[i] + 10;
}
