extern "C" __global__ void puzzle(const float *a, const float *w, float *out, int n, int taps) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	// out[i] is to be the sum of a[i + k] * w[k], for the n - taps + 1 places where all taps have an element.
	float sum = 0;
	for (int k = 0; k < taps; k++)
		sum += a[i + k] * w[k];
	if (i < n)
		out[i] = sum;
}
