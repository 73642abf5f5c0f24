// C = A·B in float32 through 64×64 tiles of shared memory, 4×4 results per thread; sizes are multiples of 64 and 16.
KERNEL __launch_bounds__(256) sgemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n, int k) {
  __shared__ float4v as[16][16], bs[16][16];
  float* af = (float*)as;
  int t = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 64, tr = t / 16, tc = t % 16;
  float4v acc[4] = {};
  for (int p = 0; p < k; p += 16) {
    float4v v = *(const float4v*)&a[(long)(row + t / 4) * k + p + t % 4 * 4];
#pragma unroll
    for (int i = 0; i < 4; i++) af[(t % 4 * 4 + i) * 64 + t / 4] = v[i];
    bs[tr][tc] = *(const float4v*)&b[(long)(p + tr) * n + col + tc * 4];
    __syncthreads();
#pragma unroll
    for (int q = 0; q < 16; q++) {
      float4v x = as[q][tr], y = bs[q][tc];
#pragma unroll
      for (int i = 0; i < 4; i++) acc[i] += x[i] * y;
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; i++) *(float4v*)&c[(long)(row + tr * 4 + i) * n + col + tc * 4] = acc[i];
}
