extern "C" __global__ void puzzle(const float *a, float *out) {
	__shared__ float tile[32][33];
	int x = threadIdx.x, y = threadIdx.y;
	tile[y][x] = a[y * 32 + x];
	__syncthreads();
	out[y * 32 + x] = tile[x][y];
}
