// helps: follow the thread
extern "C" __global__ void puzzle(const float *a, const float *b, float *out, int n) {
	int i = threadIdx.x * blockDim.x + blockIdx.x;
	if (i < n)
		out[i] = a[i] + b[i];
}
