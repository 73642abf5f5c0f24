// AdamW whose moments are codes of a byte, as torchao's and bitsandbytes' (Dettmers et al., 2022): values of a table from -1 to 1, times
// the largest of a block of 256 neighbours. All parameters in one launch; a warp has a block, a lane 8 elements of it.
//
//warpline:module adam8bit_f32 -DT=f32 -DNAME(op)=op##_f32
//warpline:module adam8bit_f64 -DT=f64 -DNAME(op)=op##_f64
//warpline:module adam8bit_f16 -DT=f16 -DNAME(op)=op##_f16
//warpline:module adam8bit_bf16 -DT=bf16 -DNAME(op)=op##_bf16
#include "update.cuh"

typedef Tensors<void, 6, void, 5, 1, 34> Coded;

const int codes = 256, lane = 8; // values of a table; elements of a lane

// Code is a table: what codes stand for, and the middles between each and the next.
struct Code {
	W value[codes], middle[codes];

	DEVICE void fill(const f64 *table) {
		f64 v = table[threadIdx.x], next = threadIdx.x < codes - 1 ? table[threadIdx.x + 1] : v;
		value[threadIdx.x] = W(v);
		middle[threadIdx.x] = W((v + next) / 2);
	}

	// nearest is the code of a share, by bisection.
	DEVICE u32 nearest(W share) const {
		u32 at = 0;
#pragma unroll
		for (u32 bit = codes / 2; bit > 0; bit /= 2)
			at += share >= middle[at + bit - 1] ? bit : 0;
		return at;
	}

	// put writes the codes of a block's n elements here, and their largest, which is NaN if one is.
	DEVICE void put(const W *x, int n, u8 *out, f32 *largest) const {
		W most = 0;
#pragma unroll
		for (int k = 0; k < lane; k++)
			most = more(most, k < n ? x[k] : W(0));
		for (int m = 16; m > 0; m /= 2)
			most = more(most, shuffleXor(most, m));
		const f32 top = f32(most);
		syncWarp(); // all lanes have read what may lie there
		if (laneID() == 0)
			*largest = top;
#pragma unroll 1
		for (int k = 0; k < n; k++)
			out[k] = u8(nearest(top == 0 ? W(0) : x[k] / W(top)));
	}

	static DEVICE W more(W a, W b) {
		b = b < 0 ? -b : b;
		return b <= a || a != a ? a : b;
	}
};

// adam8bit is adamw's update, decoupled.
KERNEL(256) NAME(adam8bit)(Coded t, Scale scaling, const f64 *table, Word<f64> lr, Word<f64> factor, Word<f64> fading1, Word<f64> fading2, Word<f64> least,
                           Word<f64> decaying, Word<i64> skip) {
	__shared__ Code first, second;
	__shared__ f64 correct[2];
	const u32 m = t.mine();
	if (skip != 0 && t.in[0][m] == t.out[0][m])
		return;
	const f64 rate = lr * factor, beta1 = fading1, beta2 = fading2;
	second.fill(table);
	first.fill(table + codes);
	if (threadIdx.x < 2)
		correct[threadIdx.x] = 1 - power(threadIdx.x == 0 ? beta1 : beta2, *t.number[m]);
	barrier();
	const W scale = scaling.value(), keep = W(1 - rate * decaying), rest1 = W(1 - beta1), keep2 = W(beta2), rest2 = W(1 - beta2), eps = W(least);
	const W step = W(rate / correct[0]), spread = W(1 / root(correct[1]));
	const i64 to = t.to(m);
	for (i64 from = t.from(m) + i64(threadIdx.x / 32) * codes; from < to; from += 8 * codes) {
		const i64 block = from / codes, i = from + laneID() * lane;
		const int n = to - i < lane ? int(to - i < 0 ? 0 : to - i) : lane;
		const T *p = (const T *)t.in[0][m] + i, *g = (const T *)t.in[1][m] + i;
		const u8 *m8 = (const u8 *)t.in[2][m] + i, *v8 = (const u8 *)t.in[3][m] + i;
		const f32 top1 = ((const f32 *)t.in[4][m])[block], top2 = ((const f32 *)t.in[5][m])[block];
		T *out = (T *)t.out[0][m] + i;
		u8 *m8Out = (u8 *)t.out[1][m] + i, *v8Out = (u8 *)t.out[2][m] + i;
		f32 *top1Out = (f32 *)t.out[3][m] + block, *top2Out = (f32 *)t.out[4][m] + block;
		if (skip != 0) {
			for (int k = 0; k < n; k++)
				out[k] = p[k], m8Out[k] = m8[k], v8Out[k] = v8[k];
			syncWarp();
			if (laneID() == 0)
				*top1Out = top1, *top2Out = top2;
			continue;
		}
		W m1[lane], v1[lane];
#pragma unroll
		for (int k = 0; k < lane; k++) {
			m1[k] = v1[k] = 0;
			if (k >= n)
				continue;
			const W d = widen(g[k]) * scale, was = first.value[m8[k]] * W(top1);
			m1[k] = was + rest1 * (d - was);
			v1[k] = second.value[v8[k]] * W(top2) * keep2 + rest2 * d * d;
			out[k] = narrow<T>(widen(p[k]) * keep - step * m1[k] / (root(v1[k]) * spread + eps));
		}
		first.put(m1, n, m8Out, top1Out);
		second.put(v1, n, v8Out, top2Out);
	}
}
