// helps: beside the data
extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	for (int k = 0; k < 5; k++)
		out[i + k * 64] = a[i + k * 64] * a[i + k * 64];
}
