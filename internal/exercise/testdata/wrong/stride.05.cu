// helps: never ends
extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	while (i < n) {
		((volatile float *)out)[i] = a[i] * a[i];
	}
}
