// helps: one of 32 banks
extern "C" __global__ void puzzle(const float *a, float *out) {
	int x = threadIdx.x, y = threadIdx.y;
	__shared__ float tile[32][48];
	tile[y][x] = a[y * 32 + x];
	__syncthreads();
	out[y * 32 + x] = tile[x][y];
}
