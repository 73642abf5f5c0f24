// What the updates of many parameters in one launch share: a block's chunk of a tensor, in 16-byte accesses wherever all
// operands allow. Per element these kernels compute little and move up to 40 bytes.
#pragma once
#include "cell.cuh"
#include "index.cuh"
#include "tensors.cuh"

typedef wide<T> W;

// Scale is a number of one of the floating types.
struct Scale {
	const void *at;
	u64 type; // f32, f64, f16, bf16

	DEVICE W value() const {
		switch (type) {
		case 0:
			return W(*(const f32 *)at);
		case 1:
			return W(*(const f64 *)at);
		case 2:
			return W(widen(*(const f16 *)at));
		default:
			return W(widen(*(const bf16 *)at));
		}
	}
};

const int N = 16 / sizeof(T);

// State is N neighbours of each operand of a tensor: parameter, gradient, and the optimizer's memory.
template <int operands> struct State {
	W v[operands][N];
};

// each calls step(state, k) for the elements k of this block's chunk and stores all operands but the gradient. With skip
// it only stores them, where they do not lie already.
template <int operands, class Table, class F> DEVICE void each(const Table &t, bool skip, F step) {
	u32 m = t.mine();
	if (skip && t.in[0][m] == t.out[0][m])
		return;
	i64 from = t.from(m), to = t.to(m);
	u64 places = 0;
#pragma unroll
	for (int o = 0; o < operands; o++)
		places |= u64(t.in[o][m]) | (o == 1 ? 0 : u64(t.out[o == 0 ? 0 : o - 1][m]));
	bool whole = places % 16 == 0;
	for (i64 i = from + threadIdx.x * N; i < to; i += 256 * N) {
		State<operands> s;
		int n = to - i < N ? int(to - i) : N;
#pragma unroll
		for (int o = 0; o < operands; o++) {
			if (whole && n == N) {
				Vec<T, N> v = load<N>(t.in[o][m] + i, true);
#pragma unroll
				for (int k = 0; k < N; k++)
					s.v[o][k] = widen(v.v[k]);
			} else {
#pragma unroll
				for (int k = 0; k < N; k++)
					s.v[o][k] = k < n ? widen(t.in[o][m][i + k]) : W(0);
			}
		}
#pragma unroll
		for (int k = 0; k < N; k++)
			if (!skip)
				step(s, k);
#pragma unroll
		for (int o = 0; o < operands; o++) {
			if (o == 1)
				continue;
			T *out = t.out[o == 0 ? 0 : o - 1][m] + i;
			if (whole && n == N) {
				Vec<T, N> v;
#pragma unroll
				for (int k = 0; k < N; k++)
					v.v[k] = narrow<T>(s.v[o][k]);
				storeWhole<N>(out, v);
			} else {
#pragma unroll
				for (int k = 0; k < N; k++)
					if (k < n)
						out[k] = narrow<T>(s.v[o][k]);
			}
		}
	}
}

DEVICE f32 root(f32 x) { return __nvvm_sqrt_rn_f(x); }
DEVICE f64 root(f64 x) { return __nvvm_sqrt_rn_d(x); }

// power is xⁿ by squaring, as on the CPU.
DEVICE f64 power(f64 x, i64 n) {
	f64 y = 1;
	for (; n > 0; n /= 2) {
		if (n % 2 == 1)
			y *= x;
		x *= x;
	}
	return y;
}
