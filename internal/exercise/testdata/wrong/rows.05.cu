// helps: by hand
extern "C" __global__ void puzzle(const float *a, float *out, int rows, int columns) {
	int row = threadIdx.y, column = threadIdx.x;
	if (row < rows && column < columns)
		out[row * columns + column] = a[row * columns + column] + 2;
}
