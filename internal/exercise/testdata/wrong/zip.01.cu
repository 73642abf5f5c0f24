// helps: two threads are at one element
extern "C" __global__ void puzzle(const float *a, const float *b, float *out, int n) {
	int i = blockIdx.x + threadIdx.x;
	if (i < n)
		out[i] = a[i] + b[i];
}
