// What happens to the sums of a product before they are stored: bias, activation, rounding to the element type.
#pragma once
#include "base.cuh"
#include "math.cuh"
#include "pipeline.cuh"


// The activations, numbered as ir.Act is.
enum { noAct, actReLU, actGELU, actGELUTanh, actSiLU };

#ifndef ONCE
#define ONCE DEVICE
#endif

template <class W> ONCE W activate(W x, i32 act) {
	switch (act) {
	case actReLU:
		return x < 0 ? W(0) : x;
	case actGELU:
		return gelu(x);
	case actGELUTanh:
		return geluTanh(x);
	case actSiLU:
		return silu(x);
	}
	return x;
}

// activateAll takes sums in turn: the code of all side by side would be long.
template <class W, int n> DEVICE void activateAll(W (&v)[n], i32 act) {
	if (act == noAct)
		return;
#pragma unroll 1
	for (int i = 0; i < n; i++) {
		W x = activate(v[0], act);
#pragma unroll
		for (int j = 1; j < n; j++)
			v[j - 1] = v[j];
		v[n - 1] = x;
	}
}

// Staging is a block's tile of sums in the shared memory that its operands lay in. Writers know fragments, readers want
// neighbours. Chunks of 16 bytes change places by their row, so that neither finds bank conflicts.
template <int rows, int cols, int threads> struct Staging {
	f32 *at;

	static DEVICE u32 place(u32 row, u32 col) { return row * cols + ((col / 4 ^ ((row ^ row / 4) % 4 << 1)) * 4 + col % 4); }
	DEVICE void put(u32 row, u32 col, f32 v) const { at[place(row, col)] = v; }

	// each calls f with the row and column of four neighbours, once all threads have put theirs.
	template <class F> DEVICE void each(F &&f) const {
		barrier();
#pragma unroll 1
		for (u32 e = opaque(threadIdx.x); e < rows * cols / 4; e += threads) {
			u32 row = e / (cols / 4), col = e % (cols / 4) * 4;
			f(row, col, *(const Vec<f32, 4> *)&at[place(row, col)]);
		}
		barrier();
	}
};

// storeSome stores the first n of four neighbours, at once where all are there and aligned.
template <class E> DEVICE void storeSome(E *to, const Vec<E, 4> &v, i32 n) {
	if (n >= 4 && u64(to) % sizeof(v) == 0) {
		*(Vec<E, 4> *)to = v;
		return;
	}
#pragma unroll
	for (int e = 0; e < 4; e++)
		if (e < n)
			to[e] = v.v[e];
}

// Epilogue is what becomes of sums: bias, activation, and where they go before it. The Go planner lays out the same fields.
struct Epilogue {
	const void *bias; // of the columns, or null
	void *before;     // or null
	i32 act;
	i32 wideBias; // the bias is of the type of the sums, and not of the elements
};

// biased is a sum of column col with its bias.
template <class E> DEVICE wide<E> biased(const Epilogue &e, wide<E> sum, i32 col) {
	if (e.bias)
		sum += e.wideBias ? ((const wide<E> *)e.bias)[col] : widen(((const E *)e.bias)[col]);
	return sum;
}

// finish is the element at a place of a matrix, in column col, that its sum becomes.
template <class E> DEVICE E finish(const Epilogue &e, wide<E> sum, i64 at, i32 col) {
	sum = biased<E>(e, sum, col);
	if (e.before)
		((E *)e.before)[at] = narrow<E>(sum);
	return narrow<E>(activate(sum, e.act));
}

// Rows stores the elements of a row-major matrix, four neighbours at a time, by their coordinates.
template <class E> struct Rows {
	E *to;
	Epilogue end; // its place before is that of this matrix
	i32 rows, cols, pitch;
	f32 *parts; // where sums go as they are, or null
	bool adds;  // to what is there

	static DEVICE Vec<E, 4> narrowed(const Vec<f32, 4> &v) {
		Vec<E, 4> out;
#pragma unroll
		for (int e = 0; e < 4; e++)
			out.v[e] = narrow<E>(v.v[e]);
		return out;
	}

	DEVICE void operator()(i32 row, i32 col, Vec<f32, 4> v) const {
		i32 n = cols - col;
		if (row >= rows || n <= 0)
			return;
		if (parts) {
			f32 *to = parts + i64(row) * cols + col;
			if (adds)
#pragma unroll
				for (int e = 0; e < 4; e++)
					if (e < n)
						v.v[e] += to[e];
			storeSome(to, v, n);
			return;
		}
#pragma unroll
		for (int e = 0; e < 4; e++)
			if (e < n)
				v.v[e] = biased<E>(end, v.v[e], col + e);
		i64 at = i64(row) * pitch + col;
		if (end.before)
			storeSome((E *)end.before + at, narrowed(v), n);
		activateAll(v.v, end.act);
		storeSome(to + at, narrowed(v), n);
	}
};
