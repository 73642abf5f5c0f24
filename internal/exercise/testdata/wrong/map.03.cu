// helps: follow the thread
extern "C" __global__ void puzzle(const float *a, float *out) {
	int i = threadIdx.x;
	if (i < 63)
		out[i] = a[i] + 10;
}
