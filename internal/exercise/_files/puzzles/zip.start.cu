extern "C" __global__ void puzzle(const float *a, const float *b, float *out, int n) {
	int i = threadIdx.x;
	// out[i] is to be a[i] + b[i], in blocks: which element is this thread's?
	if (i < n)
		out[i] = a[i] + b[i];
}
