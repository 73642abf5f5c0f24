// helps: beside the data
extern "C" __global__ void puzzle(const float *a, float *out, int rows, int columns) {
	int row = threadIdx.y, column = threadIdx.x;
	if (row < rows && column < columns)
		out[row * 16 + column] = 2 * a[row * 16 + column];
}
