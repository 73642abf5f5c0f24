extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	// There are more threads than elements.
	out[i] = a[i] + 10;
}
