// Kernels as they are described where figures of them were published; ours, compiled by examples/sim/build.sh:
//
//	sh ../../examples/sim/build.sh kernels.cu && mv kernels.ptx testdata
#include "cuda.h"

// copy: 16 bytes a thread.
extern "C" __global__ void copy(float4 *y, const float4 *x) {
	size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
	y[i] = x[i];
}

// total: the sum of integers, 8 of 16 bytes a thread, by warps, then by blocks, then by an atomic.
extern "C" __global__ void __launch_bounds__(1024) total(int *sum, const int4 *x) {
	__shared__ int warps[32];
	const int4 *at = x + size_t(blockIdx.x) * 8192 + threadIdx.x;
	int s = 0;
#pragma unroll
	for (int k = 0; k < 8; k++) {
		int4 v = at[k * 1024];
		s += v.x + v.y + v.z + v.w;
	}
#pragma unroll
	for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(~0u, s, d);
	if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = s;
	__syncthreads();
	if (threadIdx.x < 32) {
		s = warps[threadIdx.x];
#pragma unroll
		for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(~0u, s, d);
		if (threadIdx.x == 0) atomicAdd(sum, s);
	}
}

// Where a lane of a warp accesses 16 bytes, in which pattern: groups of lanes, which lie wide apart, and pairs or fours of lanes in
// them. A warp goes through slots, each its own.
__device__ __forceinline__ size_t place(int group, size_t wide, int inner, size_t narrow, size_t slot) {
	int lane = threadIdx.x % 32;
	size_t warp = size_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
	return warp * slot + (lane / group) * wide + (lane % group / inner) * narrow + (lane % inner) * 16;
}

extern "C" __global__ void loads(uint4 *out, const char *x, int group, uint64_t wide, int inner, uint64_t narrow, uint64_t slot, int times) {
	const char *at = x + place(group, wide, inner, narrow, slot);
	size_t step = slot * gridDim.x * (blockDim.x / 32);
	uint4 sum = {0, 0, 0, 0};
	for (int i = 0; i < times; i += 4) {
#pragma unroll
		for (int k = 0; k < 4; k++, at += step) {
			uint4 v = *(const uint4 *)at;
			sum.x ^= v.x, sum.y ^= v.y, sum.z ^= v.z, sum.w ^= v.w;
		}
	}
	if (sum.x == 1 && sum.y == 2 && sum.z == 3 && sum.w == 4) *out = sum;
}

extern "C" __global__ void stores(char *x, int group, uint64_t wide, int inner, uint64_t narrow, uint64_t slot, int times) {
	char *at = x + place(group, wide, inner, narrow, slot);
	size_t step = slot * gridDim.x * (blockDim.x / 32);
	uint4 v = {threadIdx.x, 1, 2, 3};
	for (int i = 0; i < times; i += 4) {
#pragma unroll
		for (int k = 0; k < 4; k++, at += step) *(uint4 *)at = v;
	}
}

__device__ __forceinline__ float sum_of_warp(float v) {
#pragma unroll
	for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
	return v;
}

// norm: a row for each warp, kept in shared memory beside weight and bias; the variance in a pass of its own or, ONE, with the mean.
template <bool ONE> __device__ __forceinline__ void norm(float4 *out, float *mean, float *rstd, const float4 *x, const float4 *weight, const float4 *bias, int rows, int cols) {
	extern __shared__ float4 shared[];
	int n = cols / 4, warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	float4 *w = shared, *b = shared + n, *in = shared + (2 + warp) * n;
	for (int i = threadIdx.x; i < n; i += blockDim.x) w[i] = weight[i], b[i] = bias[i];
	__syncthreads();
	int row = blockIdx.x * warps + warp;
	if (row >= rows) return;
	x += size_t(row) * n, out += size_t(row) * n;
	float s = 0, q = 0;
	for (int i = lane; i < n; i += 32) {
		float4 v = x[i];
		s += v.x + v.y + v.z + v.w;
		if (ONE) q += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
		in[i] = v;
	}
	float m = sum_of_warp(s) / cols, var;
	if (ONE) {
		var = sum_of_warp(q) / cols - m * m;
	} else {
		for (int i = lane; i < n; i += 32) {
			float4 v = in[i];
			q += (v.x - m) * (v.x - m) + (v.y - m) * (v.y - m) + (v.z - m) * (v.z - m) + (v.w - m) * (v.w - m);
		}
		var = sum_of_warp(q) / cols;
	}
	float r = rsqrtf(var + 1e-5f);
	for (int i = lane; i < n; i += 32) {
		float4 v = in[i], g = w[i], c = b[i];
		out[i] = make_float4(r * (v.x - m) * g.x + c.x, r * (v.y - m) * g.y + c.y, r * (v.z - m) * g.z + c.z, r * (v.w - m) * g.w + c.w);
	}
	if (lane == 0) mean[row] = m, rstd[row] = r;
}
extern "C" __global__ void norm_two(float4 *out, float *mean, float *rstd, const float4 *x, const float4 *w, const float4 *b, int rows, int cols) { norm<false>(out, mean, rstd, x, w, b, rows, cols); }
extern "C" __global__ void norm_one(float4 *out, float *mean, float *rstd, const float4 *x, const float4 *w, const float4 *b, int rows, int cols) { norm<true>(out, mean, rstd, x, w, b, rows, cols); }

// norm_half: rows of 1024 halves, each kept in the registers of a warp.
extern "C" __global__ void __launch_bounds__(128) norm_half(uint4 *out, float *mean, float *rstd, const uint4 *x, const uint4 *weight, const uint4 *bias) {
	int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
	union { uint4 u; half h[8]; } v;
	float a[4][8], s = 0, q = 0;
#pragma unroll
	for (int k = 0; k < 4; k++) {
		v.u = x[size_t(row) * 128 + k * 32 + lane];
#pragma unroll
		for (int i = 0; i < 8; i++) s += a[k][i] = __half2float(v.h[i]);
	}
	float m = sum_of_warp(s) / 1024;
#pragma unroll
	for (int k = 0; k < 4; k++)
#pragma unroll
		for (int i = 0; i < 8; i++) q += (a[k][i] - m) * (a[k][i] - m);
	float r = rsqrtf(sum_of_warp(q) / 1024 + 1e-5f);
#pragma unroll
	for (int k = 0; k < 4; k++) {
		union { uint4 u; half h[8]; } g, b;
		g.u = weight[k * 32 + lane], b.u = bias[k * 32 + lane];
#pragma unroll
		for (int i = 0; i < 8; i++) v.h[i] = __float2half(r * (a[k][i] - m) * __half2float(g.h[i]) + __half2float(b.h[i]));
		out[size_t(row) * 128 + k * 32 + lane] = v.u;
	}
	if (lane == 0) mean[row] = m, rstd[row] = r;
}

// Products of float32 matrices of n×n, one step better each: neighbours in different rows; in one row; tiles of 32×32 in shared
// memory; 8 results a thread; 8×8 results a thread; the same with accesses of 16 bytes. Where ptxas joins neighbouring loads of shared
// memory, as the article shows of these, they are written as one: clang's PTX has them apart.
__device__ __forceinline__ void eight(float *u, const float *x) {
	float4 p = *(const float4 *)x, q = *(const float4 *)(x + 4);
	u[0] = p.x, u[1] = p.y, u[2] = p.z, u[3] = p.w, u[4] = q.x, u[5] = q.y, u[6] = q.z, u[7] = q.w;
}

extern "C" __global__ void product_naive(int n, const float *A, const float *B, float *C) {
	int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 32 + threadIdx.y;
	float s = 0;
	for (int k = 0; k < n; k++) s += A[i * n + k] * B[k * n + j];
	C[i * n + j] = s;
}

extern "C" __global__ void product_coalesced(int n, const float *A, const float *B, float *C) {
	int i = blockIdx.x * 32 + threadIdx.x / 32, j = blockIdx.y * 32 + threadIdx.x % 32;
	float s = 0;
	for (int k = 0; k < n; k++) s += A[i * n + k] * B[k * n + j];
	C[i * n + j] = s;
}

extern "C" __global__ void product_shared(int n, const float *A, const float *B, float *C) {
	__shared__ float a[32][32], b[32][32];
	int r = threadIdx.x / 32, c = threadIdx.x % 32, i = blockIdx.x * 32 + r, j = blockIdx.y * 32 + c;
	float s = 0;
	for (int at = 0; at < n; at += 32) {
		a[r][c] = A[i * n + at + c], b[r][c] = B[(at + r) * n + j];
		__syncthreads();
		for (int k = 0; k < 32; k++) s += a[r][k] * b[k][c];
		__syncthreads();
	}
	C[i * n + j] = s;
}

extern "C" __global__ void product_column(int n, const float *A, const float *B, float *C) {
	__shared__ float a[64][8], b[8][64];
	int t = threadIdx.x, c = t % 64, r = t / 64;
	A += blockIdx.y * 64 * n, B += blockIdx.x * 64, C += blockIdx.y * 64 * n + blockIdx.x * 64;
	float s[8] = {};
	for (int at = 0; at < n; at += 8) {
		a[t / 8][t % 8] = A[t / 8 * n + at + t % 8], b[t / 64][t % 64] = B[(at + t / 64) * n + t % 64];
		__syncthreads();
		for (int k = 0; k < 8; k++) {
			float v = b[k][c];
#pragma unroll
			for (int i = 0; i < 8; i++) s[i] += a[r * 8 + i][k] * v;
		}
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < 8; i++) C[(r * 8 + i) * n + c] = s[i];
}

extern "C" __global__ void __launch_bounds__(256, 1) product_tile(int n, const float *A, const float *B, float *C) {
	__shared__ __align__(16) float a[128][8], b[8][128];
	int t = threadIdx.x, c = t % 16 * 8, r = t / 16 * 8;
	A += blockIdx.y * 128 * n, B += blockIdx.x * 128, C += blockIdx.y * 128 * n + blockIdx.x * 128;
	float s[8][8] = {}, u[8], v[8];
	for (int at = 0; at < n; at += 8) {
#pragma unroll
		for (int i = 0; i < 128; i += 32) a[t / 8 + i][t % 8] = A[(t / 8 + i) * n + at + t % 8];
#pragma unroll
		for (int i = 0; i < 8; i += 2) b[t / 128 + i][t % 128] = B[(at + t / 128 + i) * n + t % 128];
		__syncthreads();
		for (int k = 0; k < 8; k++) {
#pragma unroll
			for (int i = 0; i < 8; i++) u[i] = a[r + i][k];
			eight(v, &b[k][c]);
#pragma unroll
			for (int i = 0; i < 8; i++)
#pragma unroll
				for (int j = 0; j < 8; j++) s[i][j] += u[i] * v[j];
		}
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < 8; i++)
#pragma unroll
		for (int j = 0; j < 8; j++) C[(r + i) * n + c + j] = s[i][j];
}

extern "C" __global__ void __launch_bounds__(256, 1) product_wide(int n, const float *A, const float *B, float *C) {
	__shared__ __align__(16) float a[8][128], b[8][128];
	int t = threadIdx.x, c = t % 16 * 8, r = t / 16 * 8;
	A += blockIdx.y * 128 * n, B += blockIdx.x * 128, C += blockIdx.y * 128 * n + blockIdx.x * 128;
	float s[8][8] = {}, u[8], v[8];
	for (int at = 0; at < n; at += 8) {
		float4 x = *(const float4 *)&A[t / 2 * n + at + t % 2 * 4];
		int k0 = t % 2 * 4, i0 = t / 2;
		a[k0][i0] = x.x, a[k0 + 1][i0] = x.y, a[k0 + 2][i0] = x.z, a[k0 + 3][i0] = x.w;
		*(float4 *)&b[t / 32][t % 32 * 4] = *(const float4 *)&B[(at + t / 32) * n + t % 32 * 4];
		__syncthreads();
		for (int k = 0; k < 8; k++) {
			eight(u, &a[k][r]), eight(v, &b[k][c]);
#pragma unroll
			for (int i = 0; i < 8; i++)
#pragma unroll
				for (int j = 0; j < 8; j++) s[i][j] += u[i] * v[j];
		}
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < 8; i++)
#pragma unroll
		for (int j = 0; j < 8; j += 4) *(float4 *)&C[(r + i) * n + c + j] = make_float4(s[i][j], s[i][j + 1], s[i][j + 2], s[i][j + 3]);
}
