// helps: follow the thread
extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (blockIdx.x == 0)
		out[i] = a[i] + 10;
}
