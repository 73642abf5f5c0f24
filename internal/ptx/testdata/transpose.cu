// Transpose through a padded tile of dynamic and one of static shared memory.
extern "C" __shared__ float dynamic[];

KERNEL transpose(const float* in, float* out, int rows, int cols) {
  __shared__ float tile[32][33];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  if (r < rows && c < cols) tile[threadIdx.y][threadIdx.x] = in[(long)r * cols + c];
  __syncthreads();
  c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;
  if (r < cols && c < rows) out[(long)r * rows + c] = tile[threadIdx.x][threadIdx.y];
}

KERNEL reverse(const float* in, float* out, int n) {
  if ((int)threadIdx.x < n) dynamic[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if ((int)threadIdx.x < n) out[threadIdx.x] = dynamic[n - 1 - threadIdx.x];
}
