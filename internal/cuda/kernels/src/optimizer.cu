// Updates of many parameters in one launch: SGD, AdamW, and the sum of squares that gradients are clipped by.
//
// Blocks of 256 threads take the chunks of a table of tensors.
//
//warpline:module optimizer_f32 -DT=f32 -DNAME(op)=op##_f32
//warpline:module optimizer_f64 -DT=f64 -DNAME(op)=op##_f64
//warpline:module optimizer_f16 -DT=f16 -DNAME(op)=op##_f16
//warpline:module optimizer_bf16 -DT=bf16 -DNAME(op)=op##_bf16
#include "update.cuh"

typedef Tensors<T, 4, T, 3, 1, 48> Updated;

enum : u32 { nesterov = 1, coupled = 4 };

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
