// Updates of many parameters in one launch: SGD, AdamW, and the sum of squares that gradients are clipped by.
//
// Blocks of 256 threads take the chunks of a table of tensors. Per element these kernels compute little and move up to 28
// bytes: 16-byte accesses wherever all operands allow.
//
//warpline:module optimizer_f32 -DT=f32 -DNAME(op)=op##_f32
//warpline:module optimizer_f64 -DT=f64 -DNAME(op)=op##_f64
//warpline:module optimizer_f16 -DT=f16 -DNAME(op)=op##_f16
//warpline:module optimizer_bf16 -DT=bf16 -DNAME(op)=op##_bf16
#include "cell.cuh"
#include "index.cuh"
#include "tensors.cuh"

typedef Tensors<T, 4, T, 3, 1, 48> Updated;
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

enum : u32 { nesterov = 1, coupled = 4 };

const int N = 16 / sizeof(T);

// State is N neighbours of each operand of a tensor: parameter, gradient, and the optimizer's memory.
template <int operands> struct State {
	W v[operands][N];
};

// each calls step(state, k) for the elements k of this block's chunk and stores all operands but the gradient. With skip
// it only stores them, where they do not lie already.
template <int operands, class F> DEVICE void each(const Updated &t, bool skip, F step) {
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

// sgd is PyTorch's update without a buffer.
KERNEL(256) NAME(sgd)(Updated t, Scale scaling, u32 flags, Word<f64> lr, Word<f64> factor, Word<f64> fading, Word<f64> decaying, Word<i64> skip) {
	W scale = scaling.value(), rate = W(lr * factor), decay = W(decaying);
	each<2>(t, skip != 0, [&](State<2> &s, int k) { s.v[0][k] -= rate * (s.v[1][k] * scale + decay * s.v[0][k]); });
}

KERNEL(256) NAME(sgd_momentum)(Updated t, Scale scaling, u32 flags, Word<f64> lr, Word<f64> factor, Word<f64> fading, Word<f64> decaying, Word<i64> skip) {
	W scale = scaling.value(), rate = W(lr * factor), momentum = W(fading), decay = W(decaying);
	each<3>(t, skip != 0, [&](State<3> &s, int k) {
		W &p = s.v[0][k], &buf = s.v[2][k];
		W d = s.v[1][k] * scale + decay * p;
		buf = momentum * buf + d;
		p -= rate * (flags & nesterov ? d + momentum * buf : buf);
	});
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

// adamw is the update of Loshchilov and Hutter (arXiv 1711.05101), or with the flag coupled that of Kingma and Ba (arXiv
// 1412.6980) with the decay in the gradient. What is close to 1 or a difference from 1 is computed in f64 before it is
// rounded; the powers of β by one thread, since cards have few units for f64.
KERNEL(256) NAME(adamw)(Updated t, Scale scaling, u32 flags, Word<f64> lr, Word<f64> factor, Word<f64> fading1, Word<f64> fading2, Word<f64> eps,
                        Word<f64> decaying, Word<i64> skip) {
	f64 rate = lr * factor, beta1 = fading1, beta2 = fading2, decay = decaying;
	__shared__ f64 correct[2];
	if (threadIdx.x < 2) {
		f64 rest = power(threadIdx.x == 0 ? beta1 : beta2, *t.number[t.mine()]);
		correct[threadIdx.x] = 1 - rest;
	}
	barrier();
	W scale = scaling.value(), add = W(flags & coupled ? decay : 0), keep = W(flags & coupled ? 1 : 1 - rate * decay);
	W rest1 = W(1 - beta1), keep2 = W(beta2), rest2 = W(1 - beta2), least = W(eps);
	W step = W(rate) / W(correct[0]), spread = 1 / root(W(correct[1]));
	each<4>(t, skip != 0, [&](State<4> &s, int k) {
		W &p = s.v[0][k], &m = s.v[2][k], &v = s.v[3][k];
		W d = s.v[1][k] * scale + add * p;
		m += rest1 * (d - m);
		v = v * keep2 + rest2 * d * d;
		p = p * keep - step * m / (root(v) * spread + least);
	});
}

// sum_squares leaves the sum of each chunk's squares, in f64: memory is slower even where f64 is.
KERNEL(256) NAME(sum_squares)(f64 *sums, Tensors<T, 1, T, 0, 0, 200> t) {
	u32 m = t.mine();
	i64 from = t.from(m), to = t.to(m);
	const T *x = t.in[0][m];
	bool whole = aligned(x, 16);
	f64 acc[N] = {};
	i64 i = from + threadIdx.x * N;
	for (; i + N <= to; i += 256 * N) {
		Vec<T, N> v = load<N>(x + i, whole);
#pragma unroll
		for (int k = 0; k < N; k++)
			acc[k] += f64(widen(v.v[k])) * f64(widen(v.v[k]));
	}
	for (; i < to; i++)
		acc[0] += f64(widen(x[i])) * f64(widen(x[i]));
	f64 sum = 0;
#pragma unroll
	for (int k = 0; k < N; k++)
		sum += acc[k];
	for (int m = 16; m > 0; m /= 2)
		sum += shuffleXor(sum, m);
	__shared__ f64 warps[8];
	if (laneID() == 0)
		warps[threadIdx.x / 32] = sum;
	barrier();
	if (threadIdx.x == 0) {
		for (int w = 1; w < 8; w++)
			sum += warps[w];
		sums[blockIdx.x] = sum;
	}
}
