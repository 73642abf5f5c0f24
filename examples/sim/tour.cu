#include "cuda.h"

// What teaching kernels are made of, one after the other. The test beside internal/simrun knows the answers.

__constant__ float table[4] = {1, 2, 4, 8};

__device__ float warpSum(float v) {
	for (int o = 16; o > 0; o /= 2)
		v += __shfl_down_sync(~0u, v, o);
	return v;
}

// dot is the inner product of x and y of 4n numbers; out starts at 0.
extern "C" __global__ void __launch_bounds__(256) dot(const float4 *__restrict__ x, const float4 *__restrict__ y, float *out, int n) {
	__shared__ float part[8];
	float s = 0;
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		float4 a = x[i], b = y[i];
		s = fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, s))));
	}
	s = warpSum(s);
	if (threadIdx.x % warpSize == 0)
		part[threadIdx.x / warpSize] = s;
	__syncthreads();
	if (threadIdx.x < 32) {
		s = warpSum(threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0);
		if (threadIdx.x == 0)
			atomicAdd(out, s);
	}
}

// histogram counts bytes in shared memory of the size that the launch gives, 4 bytes a bin.
extern "C" __global__ void histogram(const unsigned char *x, unsigned *bins, int n, int count) {
	extern __shared__ unsigned local[];
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		local[i] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		assert(x[i] < count);
		atomicAdd(&local[x[i]], 1u);
	}
	__syncthreads();
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		if (local[i])
			atomicAdd(&bins[i], local[i]);
}

// compact keeps the numbers above 0, in any order, and counts them: one atomic for each warp.
extern "C" __global__ void compact(const float *x, float *out, unsigned *count, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	bool keep = i < n && x[i] > 0;
	unsigned mask = __ballot_sync(~0u, keep);
	unsigned lane = threadIdx.x % warpSize, base; // base is set where others read it
	if (lane == 0)
		base = atomicAdd(count, (unsigned)__popc(mask));
	base = __shfl_sync(~0u, base, 0);
	if (keep)
		out[base + __popc(mask & ((1u << lane) - 1))] = x[i];
}

// staged adds up rows that it copies beside the work of the threads, two at a time.
extern "C" __global__ void staged(const float *x, float *out, int rows) {
	__shared__ float buffer[2][128];
	int t = threadIdx.x;
	float s = 0;
	__pipeline_memcpy_async(&buffer[0][t], &x[t], 4);
	__pipeline_commit();
	for (int r = 0; r < rows; r++) {
		if (r + 1 < rows)
			__pipeline_memcpy_async(&buffer[(r + 1) % 2][t], &x[(r + 1) * 128 + t], 4);
		__pipeline_commit();
		__pipeline_wait_prior(1);
		__syncthreads();
		s += buffer[r % 2][127 - t];
		__syncthreads();
	}
	out[t] = s;
}

// exchange reverses a block's numbers by a barrier in shared memory.
extern "C" __global__ void exchange(const float *x, float *out) {
	__shared__ __mbarrier_t barrier;
	__shared__ float place[128];
	int t = threadIdx.x;
	if (t == 0)
		__mbarrier_init(&barrier, blockDim.x);
	__syncthreads();
	place[t] = x[t];
	unsigned long long state = __mbarrier_arrive(&barrier);
	while (!__mbarrier_test_wait(&barrier, state)) {
	}
	out[t] = place[blockDim.x - 1 - t];
}

// functions writes what the words for numbers give for x, eight for each.
extern "C" __global__ void functions(const float *x, float *out) {
	float v = x[threadIdx.x], *o = out + 8 * threadIdx.x;
	o[0] = expf(v);
	o[1] = logf(fabsf(v) + 1);
	o[2] = sqrtf(fmaxf(v, 0)) + floorf(v);
	o[3] = __half2float(__hfma(__float2half(v), __float2half(2), __float2half(1)));
	o[4] = __bfloat162float(__float2bfloat16(v));
	o[5] = table[threadIdx.x % 4] * min(v, 1.5f);
	o[6] = tanhf(v);
	o[7] = (float)__shfl_xor_sync(~0u, (double)v, 1);
	if (threadIdx.x == 3)
		printf("thread %d of block %u has %g and %.3f: %s\n", 3, blockIdx.x, v, fma((double)v, 2.0, 1.0), "done");
}

// rounding writes what the words that round give for x, twelve for each.
extern "C" __global__ void rounding(const float *x, float *out) {
	float v = x[threadIdx.x], *o = out + 12 * threadIdx.x;
	memset(o, 0, 12 * sizeof(float));
	o[0] = roundf(v);
	o[1] = __float2int_rn(v) + 100 * __float2int_rd(v);
	o[2] = __float2int_rz(v) + 100 * __float2int_ru(v);
	o[3] = __fadd_rn(__fmul_rn(v, v), __frcp_rn(v));
	o[4] = __fdiv_rn(v, 3) + __fsqrt_rn(fabsf(v)) + __fmaf_rn(v, 2, 1);
	o[5] = __saturatef(v) + copysignf(2, v);
	o[6] = isnan(v / 0 - v / 0) + 2 * isinf(v / 0) + 4 * isfinite(v) + 8 * isfinite(1e300 * v) + 16 * isinf((float)(1e300 * v));
	o[7] = __clzll(1LL << threadIdx.x) + 100 * __ffsll(1LL << threadIdx.x);
	o[8] = erff(v);
	float2 h = __half22float2(__hfma2(__half2half2(__float2half(v)), __floats2half2_rn(2, 4), __hadd2(make_half2(1, 2), __hmul2(make_half2(3, 4), make_half2(1, 2)))));
	o[9] = h.x;
	o[10] = h.y;
	o[11] = (float)(__longlong_as_double(__double_as_longlong(M_PI)) * (v < FLT_MAX && INT_MIN < 0 && UINT_MAX > 0));
}

// packed writes what the words for bits give for x, ten for each thread and of each the lower 24 bits, which a float holds;
// and what those for pairs of 16-bit floats give, four.
extern "C" __global__ void packed(const unsigned *x, float *bits, float *pairs) {
	int t = threadIdx.x, all;
	unsigned a = x[t], b = x[t + 32], c = x[t + 64], o[10];
	unsigned long long ab = (unsigned long long)a << 32 | b;
	o[0] = __byte_perm(a, b, c & 0x7777);
	o[1] = __funnelshift_l(b, a, c);
	o[2] = __funnelshift_lc(b, a, c % 40);
	o[3] = __funnelshift_r(b, a, c);
	o[4] = __funnelshift_rc(b, a, c % 40);
	o[5] = __dp4a((int)a, (int)b, (int)c);
	o[6] = __dp4a(a, b, c);
	o[7] = __clzll(ab >> c % 64) + 100 * __ffsll(ab << c % 64);
	o[8] = __brevll(ab) >> 16;
	o[9] = __match_all_sync(~0u, t / 32, &all) + all;
#pragma unroll
	for (int i = 0; i < 10; i++)
		bits[10 * t + i] = o[i] & 0xffffff;
	half2 h = __floats2half2_rn(a % 64, -2.0f), g = __float22half2_rn(make_float2(0.5f, b % 64));
	h = __hmax2(__hsub2(__hfma2(h, g, __hadd2(h, g)), __hmul2(h, g)), __hmin2(h, __half2half2(4)));
	__nv_bfloat162 p = __floats2bfloat162_rn(a % 16, -2.0f), q = __floats2bfloat162_rn(0.5f, b % 16);
	float2 v = __half22float2(h), w = __bfloat1622float2(__hmax2(__hfma2(p, q, __hadd2(p, q)), __hmin2(p, __hmul2(p, q))));
	float *f = pairs + 4 * t;
	f[0] = v.x + __low2float(g);
	f[1] = v.y + __high2float(g);
	f[2] = w.x;
	f[3] = w.y;
}
