// helps: follow the thread
extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	for (int k = 0; k < 4; k++)
		if (i + k * 64 < n)
			out[i + k * 64] = a[i + k * 64] * a[i + k * 64];
}
