// helps: two threads are at one element
extern "C" __global__ void puzzle(const float *a, float *out, int rows, int columns) {
	int row = threadIdx.y, column = threadIdx.x;
	if (row < rows && column < columns)
		out[row * columns + row] = 2 * a[row * columns + row];
}
