// helps: follow the thread
extern "C" __global__ void puzzle(const float *a, float *out, int rows, int columns) {
	int row = threadIdx.y, column = threadIdx.x;
	if (row < 1 && column < columns)
		out[row * columns + column] = 2 * a[row * columns + column];
}
