extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	// There are fewer threads than elements: each has to take several.
	if (i < n)
		out[i] = a[i] * a[i];
}
