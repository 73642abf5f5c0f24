extern "C" __global__ void puzzle(const float *a, float *out) {
	__shared__ float tile[32][32];
	int x = threadIdx.x, y = threadIdx.y;
	tile[y][x] = a[y * 32 + x];
	__syncthreads();
	// Right, but all 32 lanes of a warp read from one bank of shared memory: 31 conflicts for each of them.
	out[y * 32 + x] = tile[x][y];
}
