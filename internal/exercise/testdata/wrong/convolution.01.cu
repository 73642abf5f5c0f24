// helps: follow the thread
extern "C" __global__ void puzzle(const float *a, const float *w, float *out, int n, int taps) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n - taps)
		return;
	float sum = 0;
#pragma unroll 1
	for (int k = 0; k < taps; k++)
		sum += a[i + k] * w[k];
	out[i] = sum;
}
