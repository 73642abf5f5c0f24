// helps: by hand
extern "C" __global__ void puzzle(const float *a, float *out) {
	int i = threadIdx.x;
	out[i] = a[i];
}
