#include "shim.h"

KERNEL add(const float *a, const float *b, float *c, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		c[i] = a[i] + b[i];
}

KERNEL saxpy(float s, const float *x, float *y, int n) {
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		y[i] = s * x[i] + y[i];
}

// One block sums n values in a tree.
KERNEL reduce(const float *x, float *out, int n) {
	__shared__ float part[256];
	int t = threadIdx.x;
	float s = 0;
	for (int i = t; i < n; i += 256)
		s += x[i];
	part[t] = s;
	__syncthreads();
	for (int o = 128; o > 0; o >>= 1) {
		if (t < o)
			part[t] += part[t + o];
		__syncthreads();
	}
	if (t == 0)
		*out = part[0];
}

// A warp for each row.
KERNEL softmax(const float *x, float *y, int cols) {
	const float *row = x + blockIdx.x * cols;
	float most = -1e30f, sum = 0;
	for (int i = threadIdx.x; i < cols; i += 32)
		most = row[i] > most ? row[i] : most;
	for (int o = 16; o > 0; o >>= 1) {
		float v = shflXor(most, o);
		most = v > most ? v : most;
	}
	for (int i = threadIdx.x; i < cols; i += 32)
		sum += exp2Fast((row[i] - most) * 1.4426950408889634f);
	for (int o = 16; o > 0; o >>= 1)
		sum += shflXor(sum, o);
	for (int i = threadIdx.x; i < cols; i += 32)
		y[blockIdx.x * cols + i] = exp2Fast((row[i] - most) * 1.4426950408889634f) / sum;
}

KERNEL layernorm(const float *x, const float *gain, const float *bias, float *y, int cols) {
	__shared__ float sums[8], squares[8];
	const float *row = x + blockIdx.x * cols;
	float s = 0, q = 0;
	for (int i = threadIdx.x; i < cols; i += 256) {
		s += row[i];
		q += row[i] * row[i];
	}
	for (int o = 16; o > 0; o >>= 1) {
		s += shflXor(s, o);
		q += shflXor(q, o);
	}
	if (threadIdx.x % 32 == 0) {
		sums[threadIdx.x / 32] = s;
		squares[threadIdx.x / 32] = q;
	}
	__syncthreads();
	s = q = 0;
	for (int i = 0; i < 8; i++) {
		s += sums[i];
		q += squares[i];
	}
	float mean = s / cols, scale = rsqrtFast(q / cols - mean * mean + 1e-5f);
	for (int i = threadIdx.x; i < cols; i += 256)
		y[blockIdx.x * cols + i] = (row[i] - mean) * scale * gain[i] + bias[i];
}

KERNEL transpose(const float *x, float *y, int rows, int cols) {
	__shared__ float tile[32][33];
	int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
	for (int i = 0; i < 32; i += 8)
		if (c < cols && r + i < rows)
			tile[threadIdx.y + i][threadIdx.x] = x[(r + i) * cols + c];
	__syncthreads();
	c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;
	for (int i = 0; i < 32; i += 8)
		if (c < rows && r + i < cols)
			y[(r + i) * rows + c] = tile[threadIdx.x][threadIdx.y + i];
}

// 64×64 tiles, 4×4 values for each of 256 threads; m, n multiples of 64, k of 16.
KERNEL sgemm(const float *a, const float *b, float *c, int m, int n, int k) {
	__shared__ float as[16][64];
	__shared__ float4v bs[16][16];
	int t = threadIdx.x, tx = t % 16, ty = t / 16;
	const float *ap = a + blockIdx.y * 64 * k, *bp = b + blockIdx.x * 64;
	float acc[4][4] = {};
	for (int p = 0; p < k; p += 16) {
#pragma unroll
		for (int i = 0; i < 4; i++)
			as[tx][ty + 16 * i] = ap[(ty + 16 * i) * k + p + tx];
		bs[ty][tx] = *(const float4v *)&bp[(p + ty) * n + 4 * tx];
		__syncthreads();
#pragma unroll
		for (int q = 0; q < 16; q++) {
			float4v bv = bs[q][tx];
#pragma unroll
			for (int i = 0; i < 4; i++)
#pragma unroll
				for (int j = 0; j < 4; j++)
					acc[i][j] += as[q][4 * ty + i] * bv[j];
		}
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < 4; i++)
#pragma unroll
		for (int j = 0; j < 4; j++)
			c[(blockIdx.y * 64 + 4 * ty + i) * n + blockIdx.x * 64 + 4 * tx + j] = acc[i][j];
}

KERNEL histogram(const unsigned char *x, uint32_t *bins, int n) {
	__shared__ uint32_t local[256];
	local[threadIdx.x] = 0;
	__syncthreads();
	for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
		__nvvm_atom_add_gen_i((int *)&local[x[i]], 1);
	__syncthreads();
	__nvvm_atom_add_gen_i((int *)&bins[threadIdx.x], local[threadIdx.x]);
}

// Inclusive sum of a block of 256.
KERNEL scan(const uint32_t *x, uint32_t *y) {
	__shared__ uint32_t buf[2][256];
	int t = threadIdx.x, in = 0;
	buf[0][t] = x[blockIdx.x * 256 + t];
	__syncthreads();
	for (int o = 1; o < 256; o <<= 1) {
		buf[1 - in][t] = buf[in][t] + (t >= o ? buf[in][t - o] : 0);
		in = 1 - in;
		__syncthreads();
	}
	y[blockIdx.x * 256 + t] = buf[in][t];
}

#define CP16(d, s) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(d), "l"(s) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#define LDM4(r, a) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" \
	: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory")
#define LDM4T(r, a) asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" \
	: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory")
#define MMA(c, a, b0, b1) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
	: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))

// 64×64 tiles of bf16 by 4 warps, three stages of cp.async; m, n multiples of 64, k of 32.
KERNEL gemm_bf16(const uint16_t *a, const uint16_t *b, float *c, int m, int n, int k) {
	__shared__ __align__(128) uint16_t as[3][64][40], bs[3][32][72];
	int t = threadIdx.x, lane = t & 31, warp = t >> 5;
	float acc[8][4] = {};
	auto fetch = [&](int stage, int p) {
#pragma unroll
		for (int i = 0; i < 2; i++) {
			int q = t + 128 * i;
			CP16(sharedAddress(&as[stage][q / 4][q % 4 * 8]), a + (blockIdx.y * 64 + q / 4) * k + p + q % 4 * 8);
			CP16(sharedAddress(&bs[stage][q / 8][q % 8 * 8]), b + (p + q / 8) * n + blockIdx.x * 64 + q % 8 * 8);
		}
	};
	fetch(0, 0);
	COMMIT();
	if (32 < k)
		fetch(1, 32);
	COMMIT();
	for (int p = 0, s = 0; p < k; p += 32, s = s == 2 ? 0 : s + 1) {
		WAIT(1);
		__syncthreads();
		if (p + 64 < k)
			fetch(s == 0 ? 2 : s - 1, p + 64);
		COMMIT();
#pragma unroll
		for (int kk = 0; kk < 32; kk += 16) {
			uint32_t fa[4];
			LDM4(fa, sharedAddress(&as[s][warp * 16 + (lane & 15)][kk + (lane >> 4) * 8]));
#pragma unroll
			for (int j = 0; j < 4; j++) {
				uint32_t fb[4];
				LDM4T(fb, sharedAddress(&bs[s][kk + (lane & 15)][j * 16 + (lane >> 4) * 8]));
				MMA(acc[2 * j], fa, fb[0], fb[1]);
				MMA(acc[2 * j + 1], fa, fb[2], fb[3]);
			}
		}
	}
#pragma unroll
	for (int j = 0; j < 8; j++) {
		float *p = c + (blockIdx.y * 64 + warp * 16 + lane / 4) * n + blockIdx.x * 64 + j * 8 + lane % 4 * 2;
		p[0] = acc[j][0];
		p[1] = acc[j][1];
		p[8 * n] = acc[j][2];
		p[8 * n + 1] = acc[j][3];
	}
}

// A lock that the lanes of a warp fight for, and a counter behind it.
KERNEL spinlock(int *lock, volatile int *counter) {
	while (__nvvm_atom_cas_gen_i(lock, 0, 1) != 0)
		;
	*counter = *counter + 1;
	__nvvm_membar_gl();
	__nvvm_atom_xchg_gen_i(lock, 0);
}

// Block 1 waits for block 0 or the other way round.
KERNEL handshake(volatile int *flag, int *out) {
	if (blockIdx.x == 0) {
		if (threadIdx.x == 0) {
			while (*flag == 0)
				;
			*out = 7;
		}
	} else if (threadIdx.x == 0) {
		__nvvm_membar_gl();
		*flag = 1;
	}
}

__device__ __noinline__ float poly(float x, const float *c, int n) {
	float s = 0;
	for (int i = 0; i < n; i++)
		s = s * x + c[i];
	return s;
}

__constant__ float coefficients[4] = {1, -2, 3, 0.5f};

// A call, constants and an array in local memory.
KERNEL calls(const float *x, float *y, int k) {
	float local[8];
	for (int i = 0; i < 8; i++)
		local[i] = x[threadIdx.x] * i;
	y[threadIdx.x] = poly(x[threadIdx.x], coefficients, 4) + poly(2, local, k);
}

extern "C" __device__ int vprintf(const char *, void *);
extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, unsigned long) __attribute__((noreturn));

KERNEL talk(int n) {
	struct { int i; double d; const char *s; } args = {(int)threadIdx.x - 1, threadIdx.x * 0.5, "lane"};
	vprintf("%s?\n", &args.s);
	vprintf("i=%d d=%.2f %s %%\n", &args);
	if ((int)threadIdx.x == n)
		__assertfail("threadIdx.x != n", "kernels.cu", 42, "talk", 1);
}

KERNEL forever(int *x) {
	while (*(volatile int *)x == 0)
		;
}

#define SYNCWARP() __nvvm_bar_warp_sync(~0u)
#define BAR_SYNC(b, n) asm volatile("bar.sync %0, %1;" ::"n"(b), "n"(n) : "memory")
#define BAR_ARRIVE(b, n) asm volatile("bar.arrive %0, %1;" ::"n"(b), "n"(n) : "memory")

// A warp for each 32×32 tile, which no other warp touches: two of them one after the other.
KERNEL warptranspose(const float *x, float *y) {
	__shared__ float tile[2][32][33];
	int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
	for (int p = 0; p < 2; p++) {
		int at = ((blockIdx.x * 2 + warp) * 2 + p) * 1024;
		for (int r = 0; r < 32; r++)
			tile[warp][r][lane] = x[at + 32 * r + lane];
		SYNCWARP();
		for (int r = 0; r < 32; r++)
			y[at + 32 * r + lane] = tile[warp][lane][r];
		SYNCWARP();
	}
}

// Means of three neighbours; tiles of 128 with a halo in two stages of cp.async; n a multiple of 4.
KERNEL smooth(const float *x, float *y, int n) {
	__shared__ __align__(16) float buf[2][136];
	int t = threadIdx.x;
	auto fetch = [&](int stage, int tile) {
		if (t >= 34)
			return;
		int from = tile * 128 - 4 + 4 * t;
		if (from >= 0 && from < n)
			CP16(sharedAddress(&buf[stage][4 * t]), x + from);
		else
			*(float4v *)&buf[stage][4 * t] = 0;
	};
	fetch(0, blockIdx.x);
	COMMIT();
	for (int tile = blockIdx.x, s = 0; tile * 128 < n; tile += gridDim.x, s ^= 1) {
		if ((tile + gridDim.x) * 128 < n)
			fetch(s ^ 1, tile + gridDim.x);
		COMMIT();
		WAIT(1);
		__syncthreads();
		int i = tile * 128 + t;
		if (i < n)
			y[i] = (buf[s][t + 3] + buf[s][t + 4] + buf[s][t + 5]) * 0.33333334f;
		__syncthreads();
	}
	WAIT(0);
}

// Warp 0 hands rows of 32 to warp 1 by two named barriers; m rows.
KERNEL handoff(const float *x, float *y, int m) {
	__shared__ float row[32];
	int lane = threadIdx.x & 31;
	if (threadIdx.x < 32) {
		for (int k = 0; k < m; k++) {
			BAR_SYNC(2, 64);
			row[lane] = x[32 * k + lane];
			BAR_ARRIVE(1, 64);
		}
	} else {
		BAR_ARRIVE(2, 64);
		for (int k = 0; k < m; k++) {
			BAR_SYNC(1, 64);
			y[32 * k + lane] = row[31 - lane];
			if (k + 1 < m)
				BAR_ARRIVE(2, 64);
		}
	}
}

// Sums n values: each block a part, the last block to finish the whole. The ticket must be 0, and is again.
KERNEL total(const float *x, volatile float *parts, int *ticket, float *out, int n) {
	__shared__ float part[128];
	__shared__ int last;
	int t = threadIdx.x;
	float s = 0;
	for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128)
		s += x[i];
	part[t] = s;
	__syncthreads();
	for (int o = 64; o > 0; o >>= 1) {
		if (t < o)
			part[t] += part[t + o];
		__syncthreads();
	}
	if (t == 0) {
		parts[blockIdx.x] = part[0];
		__nvvm_membar_gl();
		last = __nvvm_atom_add_gen_i(ticket, 1) == (int)gridDim.x - 1;
	}
	__syncthreads();
	if (last && t == 0) {
		float sum = 0;
		for (int i = 0; i < (int)gridDim.x; i++)
			sum += parts[i];
		*out = sum;
		*ticket = 0;
	}
}

// The greatest of each row of up to 16 values, by half a warp.
KERNEL rowmax(const float *x, float *y, int rows, int cols) {
	int lane = threadIdx.x, row = blockIdx.x;
	if (lane < 16) {
		float v = lane < cols ? x[row * cols + lane] : -1e30f;
		for (int o = 8; o > 0; o >>= 1) {
			float w = __nvvm_shfl_sync_bfly_f32(0xffff, v, o, 31);
			v = w > v ? w : v;
		}
		if (lane == 0)
			y[row] = v;
	}
}

// Rows of a table, or zeros where the id is none of its rows.
KERNEL embed(const int *ids, const float *table, float *y, int tokens, int rows, int cols) {
	int token = blockIdx.x * blockDim.y + threadIdx.y;
	if (token >= tokens)
		return;
	int id = ids[token];
	for (int c = threadIdx.x; c < cols; c += blockDim.x)
		y[token * cols + c] = id >= 0 && id < rows ? table[id * cols + c] : 0;
}

// Sums of 3×3 neighbourhoods, zeros outside.
KERNEL box(const float *x, float *y, int h, int w) {
	int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
	if (r >= h || c >= w)
		return;
	float s = 0;
	for (int i = r - 1; i <= r + 1; i++)
		for (int j = c - 1; j <= c + 1; j++)
			if (i >= 0 && i < h && j >= 0 && j < w)
				s += x[i * w + j];
	y[r * w + c] = s;
}
