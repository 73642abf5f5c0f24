// helps: follow the thread
extern "C" __global__ void puzzle(const float *a, const float *b, float *out, int rows, int columns) {
	int row = threadIdx.x, column = threadIdx.y;
	if (row < rows && column < columns)
		out[row * columns + column] = a[row] + b[column];
}
