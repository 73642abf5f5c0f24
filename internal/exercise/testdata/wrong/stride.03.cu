// helps: beside the data
extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	for (; i <= n; i += gridDim.x * blockDim.x)
		out[i] = a[i] * a[i];
}
