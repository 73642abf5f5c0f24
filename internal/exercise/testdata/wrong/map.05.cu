// helps: two threads are at one element
extern "C" __global__ void puzzle(const float *a, float *out) {
	int i = blockIdx.x;
	out[i] = a[i] + 10;
}
