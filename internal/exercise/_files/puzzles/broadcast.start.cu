extern "C" __global__ void puzzle(const float *a, const float *b, float *out, int rows, int columns) {
	int row = threadIdx.y, column = threadIdx.x;
	// a has a number for each row, b one for each column; out is to have their sums.
	if (row < rows && column < columns)
		out[row * columns + column] = a[column] + b[row];
}
