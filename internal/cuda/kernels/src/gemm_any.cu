// Products for every element type and any strides.
//
// dot: a thread per element of the result, for products so small that filling tiles would be most of the work.
//
// gemm_any: blocks of 64 threads make tiles of 32×32, 4×4 elements to a thread, over steps of 16 along k through shared
// memory. It serves small products, and the types that have no kernels of their own. Sums run along k, one after the other.
// Of TF32, whose operands are f32 and rounded, there is dot alone.
//
//warpline:module gemm_any_f32 -DT=f32 -DNAME(op)=op##_f32 -DPARTS
//warpline:module gemm_any_f64 -DT=f64 -DNAME(op)=op##_f64 -DPARTS
//warpline:module gemm_any_f16 -DT=f16 -DNAME(op)=op##_f16 -DPARTS -DTILED
//warpline:module gemm_any_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DPARTS -DTILED
//warpline:module gemm_any_tf32 -DT=f32 -DNAME(op)=op##_tf32 -DTILED -DROUNDED @sm_80
//warpline:module gemm_any_i64 -DT=i64 -DNAME(op)=op##_i64 -DINTEGER
//warpline:module gemm_any_i32 -DT=i32 -DNAME(op)=op##_i32 -DINTEGER
//warpline:module gemm_any_u8 -DT=u8 -DNAME(op)=op##_u8 -DINTEGER
#define ONCE __device__ __attribute__((noinline)) // three kernels have activations, at their very end
#include "gemm.cuh"
#include "epilogue.cuh"
#ifdef ROUNDED
#include "tf32.cuh"
#endif

typedef wide<T> W;

// term is an operand as it is multiplied.
DEVICE W term(T x) {
#ifdef ROUNDED
	return __builtin_bit_cast(f32, roundTF32(__builtin_bit_cast(u32, x)));
#else
	return widen(x);
#endif
}

#ifdef INTEGER
#define FINISH(end, sum, at, col) (sum)
#else
#define FINISH(end, sum, at, col) finish<T>(end, sum, at, col)
#endif

KERNEL(128) NAME(dot)(T *__restrict__ c, const T *__restrict__ a, const T *__restrict__ b, Epilogue end, Product p) {
	for (i32 i = globalThread(); i < p.work; i += globalThreads()) {
		i32 batch = i / (p.m * p.n), in = i - batch * (p.m * p.n), row = in / p.n, col = in - row * p.n;
		i64 aAt, bAt;
		batchAt(p, batch, aAt, bAt);
		const T *x = a + aAt + row * p.aRow, *y = b + bAt + col * p.bCol;
		W sum = 0;
		for (i32 k = 0; k < p.k; k++, x += p.aCol, y += p.bRow)
			sum += term(*x) * term(*y);
		c[i] = FINISH(end, sum, i, col);
	}
}

#ifndef TILED // by gemm_mma.cu, whatever the size
const int tile = 32, depth = 16, pitch = tile + 1;

// fill copies the part of an operand that a step needs: 32 lines along the result by 16 along k. Consecutive threads
// read along the dimension whose elements are neighbours.
DEVICE void fill(W (&to)[depth][pitch], const T *from, i64 line, i64 along, i32 lines, i32 left) {
	bool byLine = along != 1;
#pragma unroll 1
	for (int e = threadIdx.x; e < tile * depth; e += 64) {
		i32 l = byLine ? e % tile : e / depth, k = byLine ? e / tile : e % depth;
		to[k][l] = l < lines && k < left ? widen(from[l * line + k * along]) : W(0);
	}
}

KERNEL(64, 8) NAME(gemm_any)(T *__restrict__ c, const T *__restrict__ a, const T *__restrict__ b, Epilogue end, Product p) {
	__shared__ W x[depth][pitch], y[depth][pitch];
	int r = threadIdx.x / 8, s = threadIdx.x % 8;
	for (i32 i = blockIdx.x; i < p.work; i += gridDim.x) {
		Tile at = tileAt<tile, tile>(p.m, p.n, 1, i);
		i64 aAt, bAt;
		batchAt(p, at.batch, aAt, bAt);
		aAt += at.row * p.aRow;
		bAt += at.col * p.bCol;
		W sum[16] = {};
		for (i32 k = 0; k < p.k; k += depth) {
			barrier();
			fill(x, a + aAt + k * p.aCol, p.aRow, p.aCol, p.m - at.row, p.k - k);
			fill(y, b + bAt + k * p.bRow, p.bCol, p.bRow, p.n - at.col, p.k - k);
			barrier();
#pragma unroll 4
			for (int l = 0; l < depth; l++) {
				W u[4], v[4];
				for (int j = 0; j < 4; j++) {
					u[j] = x[l][r + 8 * j];
					v[j] = y[l][s + 8 * j];
				}
				for (int j = 0; j < 16; j++)
					sum[j] += u[j / 4] * v[j % 4];
			}
		}
		i64 first = i64(at.batch) * p.m * p.n;
#ifndef INTEGER
#pragma unroll
		for (int j = 0; j < 16; j++) {
			i32 row = at.row + r + 8 * (j / 4), col = at.col + s + 8 * (j % 4);
			if (row >= p.m || col >= p.n)
				continue;
			sum[j] = biased<T>(end, sum[j], col);
			if (end.before)
				((T *)end.before)[first + i64(row) * p.n + col] = narrow<T>(sum[j]);
		}
		activateAll(sum, end.act);
#endif
#pragma unroll
		for (int j = 0; j < 16; j++) {
			i32 row = at.row + r + 8 * (j / 4), col = at.col + s + 8 * (j % 4);
			if (row < p.m && col < p.n)
				c[first + i64(row) * p.n + col] = narrow<T>(sum[j]);
		}
	}
}
#endif

#ifdef PARTS
KERNEL(256) NAME(gemm_sum)(T *__restrict__ c, const W *__restrict__ partial, Epilogue end, i64 perBatch, i64 total, i32 cols, i32 splits) {
	for (i64 i = globalThread(); i < total; i += globalThreads()) {
		const W *from = partial + i / perBatch * perBatch * splits + i % perBatch;
		W x = 0;
		for (i32 s = 0; s < splits; s++, from += perBatch)
			x += *from;
		c[i] = FINISH(end, x, i, i32(i % cols));
	}
}
#endif
