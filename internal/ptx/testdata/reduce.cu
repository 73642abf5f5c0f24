// A sum over rows: shuffles inside a warp, shared memory across warps, one atomic; and a last-block counter.
__device__ unsigned finished = 0;
__constant__ float scale[2] = {1.0f, 0.5f};

__device__ __noinline__ float weight(float v, int k) { return v * scale[k & 1]; }

KERNEL __launch_bounds__(256) row_sum(const float* x, float* y, int cols) {
  __shared__ float part[8];
  float s = 0;
  for (int c = threadIdx.x; c < cols; c += 256) s += weight(x[(long)blockIdx.x * cols + c], c);
  for (int o = 16; o; o >>= 1) s += __nvvm_shfl_sync_bfly_f32(~0u, s, o, 31);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
    s = 0;
    for (int i = 0; i < 8; i++) s += part[i];
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(y), "f"(s) : "memory");
    __nvvm_membar_gl();
    unsigned old;
    asm volatile("atom.global.inc.u32 %0, [%1], %2;" : "=r"(old) : "l"(&finished), "r"(gridDim.x - 1) : "memory");
    if (old == gridDim.x - 1) y[1] = 1.0f;
  }
}
