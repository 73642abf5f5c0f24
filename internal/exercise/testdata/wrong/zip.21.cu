// helps: follow the thread
extern "C" __global__ void puzzle(const float *a, const float *b, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (threadIdx.x == 0)
		out[i] = a[i] + b[i];
}
