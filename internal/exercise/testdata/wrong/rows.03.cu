// helps: beside the data
extern "C" __global__ void puzzle(const float *a, float *out, int rows, int columns) {
	int row = threadIdx.y, column = threadIdx.x;
	if (row < columns && column < rows)
		out[row * columns + column] = 2 * a[row * columns + column];
}
