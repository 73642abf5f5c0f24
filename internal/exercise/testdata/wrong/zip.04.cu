// helps: beside the data
extern "C" __global__ void puzzle(const float *a, const float *b, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	out[i] = a[i] + b[i];
}
