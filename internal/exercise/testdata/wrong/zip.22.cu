// helps: has to go on
extern "C" __global__ void puzzle(const float *a, const float *b, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = a[i] + b[threadIdx.x];
}
