// helps: beside the data
extern "C" __global__ void puzzle(const float *a, float *out, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	volatile const float *p = a;
	float v = p[i];
	if (i < n)
		out[i] = v + 10;
}
