// helps: wrong places
extern "C" __global__ void puzzle(const float *a, float *out) {
	int i = threadIdx.x;
	out[63 - i] = a[i] + 10;
}
