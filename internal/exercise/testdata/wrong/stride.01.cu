// helps: two threads are at one element
extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	for (; i < n; i += blockDim.x)
		out[i] = a[i] * a[i];
}
