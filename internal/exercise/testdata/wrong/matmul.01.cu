// helps: __syncthreads\(\).* that all threads reach
extern "C" __global__ void puzzle(const float *a, const float *b, float *out, int n) {
	__shared__ float as[16][16], bs[16][16];
	int x = threadIdx.x, y = threadIdx.y;
	int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
	float sum = 0;
#pragma unroll 1
	for (int k = 0; k < n; k += 16) {
		as[y][x] = a[row * n + k + x];
		bs[y][x] = b[(k + y) * n + column];
		__syncthreads();
		for (int i = 0; i < 16; i++)
			sum += as[y][i] * bs[i][x];
	}
	__syncthreads();
	out[row * n + column] = sum;
}
