extern "C" __global__ void puzzle(const float *a, float *out, int rows, int columns) {
	int row = threadIdx.y, column = threadIdx.x;
	// Rows lie one behind the other. This takes the wrong one of the two sizes.
	if (row < rows && column < columns)
		out[row * rows + column] = 2 * a[row * rows + column];
}
