// BatchNorm of x[n,c,s] by channels, and its gradient.
//
// A channel is n runs of s neighbours. Blocks of 256 threads take a tile of channels (1, or 32 side by side where s is
// short, so that neighbouring threads read neighbouring elements) and a range of the channel's n·s values. Sums of a range
// go to parts; the second kernel of each op first joins the ranges of its channel, in their order, and then goes over the
// elements. The number of ranges depends on the sizes only.
//
//warpline:module batchnorm_f32 -DELEM=f32 -DNAME(op)=op##_f32
//warpline:module batchnorm_f64 -DELEM=f64 -DNAME(op)=op##_f64
//warpline:module batchnorm_f16 -DELEM=f16 -DNAME(op)=op##_f16
//warpline:module batchnorm_bf16 -DELEM=bf16 -DNAME(op)=op##_bf16
#include "rows.cuh"

const int threads = 256;

// Channels is how x is cut. blockDim.x channels are in a tile; blockIdx.x is the tile, blockIdx.y the range.
struct Channels {
	i64 n, perRange; // runs; values in a range
	i32 c, s;
	i32 ranges;

	DEVICE i32 channel() const { return i32(blockIdx.x * blockDim.x + threadIdx.x); }
	DEVICE i64 values() const { return n * s; }
	DEVICE i64 begin(i64 range) const { return range * perRange; }
	DEVICE i64 end(i64 range) const { return begin(range + 1) < values() ? begin(range + 1) : values(); }

	// each calls body with the place of each value that falls to the thread.
	template <class Body> DEVICE void each(Body body) const {
		if (channel() >= c)
			return;
		i32 step = blockDim.y;
		i64 k = begin(blockIdx.y) + threadIdx.y, last = end(blockIdx.y);
		i64 run = k / s;
		i32 within = i32(k - run * s), runs = step / s, rest = step % s;
		for (; k < last; k += step) {
			body((run * c + channel()) * s + within);
			run += runs;
			within += rest;
			if (within >= s) {
				within -= s;
				run++;
			}
		}
	}
};

// byChannel adds the values of a block's threads of equal channel.
template <class W> DEVICE W byChannel(W v) {
	__shared__ W shared[threads];
	i32 place = threadIdx.y * blockDim.x + threadIdx.x;
	shared[place] = v;
	barrier();
	for (i32 half = blockDim.y / 2; half > 0; half /= 2) {
		if (threadIdx.y < half)
			shared[place] += shared[place + half * blockDim.x];
		barrier();
	}
	v = shared[threadIdx.x];
	barrier();
	return v;
}

// Pair is what a range leaves: in the forward pass its mean and Σ (x - mean)², in the gradient Σ g and Σ g·x̂.
template <class W> struct Pair {
	W a, b;
};

template <class W> DEVICE void leave(Pair<W> *parts, const Channels &at, W a, W b) {
	if (threadIdx.y == 0 && at.channel() < at.c)
		parts[i64(blockIdx.y) * at.c + at.channel()] = {a, b};
}

template <class T> DEVICE void moments(Pair<wide<T>> *parts, const T *x, Channels at) {
	typedef wide<T> W;
	W sum = 0, squares = 0;
	at.each([&](i64 i) { sum += widen(x[i]); });
	W mean = byChannel(sum) / W(at.end(blockIdx.y) - at.begin(blockIdx.y));
	at.each([&](i64 i) { squares += (widen(x[i]) - mean) * (widen(x[i]) - mean); });
	leave(parts, at, mean, byChannel(squares));
}

// joined combines the moments of a channel's ranges (Chan, Golub and LeVeque): mean and variance.
template <class W> DEVICE Pair<W> joined(const Pair<W> *parts, const Channels &at) {
	W mean = 0, squares = 0, count = 0;
	for (i32 r = 0; r < at.ranges; r++) {
		Pair<W> p = parts[i64(r) * at.c + at.channel()];
		W more = W(at.end(r) - at.begin(r)), apart = p.a - mean;
		count += more;
		mean += apart * (more / count);
		squares += p.b + apart * apart * (more * (count - more) / count);
	}
	return {mean, squares / count};
}

// normalize writes (x - mean)/√(variance + eps)·w + b. The moments are those of parts, which are then also written, or
// with no parts those given.
template <class T>
DEVICE void normalize(T *y, wide<T> *means, wide<T> *variances, const T *x, const wide<T> *w, const wide<T> *b,
                      const Pair<wide<T>> *parts, Channels at, wide<T> eps) {
	typedef wide<T> W;
	i32 k = at.channel();
	if (k >= at.c)
		return;
	Pair<W> m = parts ? joined(parts, at) : Pair<W>{means[k], variances[k]};
	if (parts && blockIdx.y == 0 && threadIdx.y == 0) {
		means[k] = m.a;
		variances[k] = m.b;
	}
	W scale = w[k] / sqrt(m.b + eps), shift = b[k];
	at.each([&](i64 i) { y[i] = narrow<T>((widen(x[i]) - m.a) * scale + shift); });
}

template <class T>
DEVICE void gradSums(Pair<wide<T>> *parts, const T *g, const T *x, const wide<T> *means, const wide<T> *variances, Channels at,
                     wide<T> eps) {
	typedef wide<T> W;
	W plain = 0, along = 0, mean = 0, rstd = 0;
	if (at.channel() < at.c) {
		mean = means[at.channel()];
		rstd = 1 / sqrt(variances[at.channel()] + eps);
	}
	at.each([&](i64 i) {
		plain += widen(g[i]);
		along += widen(g[i]) * ((widen(x[i]) - mean) * rstd);
	});
	plain = byChannel(plain);
	leave(parts, at, plain, byChannel(along));
}

// gradient is dx = w·rstd·(g - (db + x̂·dw)/count).
template <class T>
DEVICE void gradient(T *dx, wide<T> *dw, wide<T> *db, const T *g, const T *x, const wide<T> *means, const wide<T> *variances,
                     const wide<T> *w, const Pair<wide<T>> *parts, Channels at, wide<T> eps) {
	typedef wide<T> W;
	i32 k = at.channel();
	if (k >= at.c)
		return;
	W plain = 0, along = 0;
	for (i32 r = 0; r < at.ranges; r++) {
		Pair<W> p = parts[i64(r) * at.c + k];
		plain += p.a;
		along += p.b;
	}
	if (blockIdx.y == 0 && threadIdx.y == 0) {
		db[k] = plain;
		dw[k] = along;
	}
	W mean = means[k], rstd = 1 / sqrt(variances[k] + eps), scale = w[k] * rstd, count = W(at.values());
	plain /= count;
	along = along * rstd / count;
	at.each([&](i64 i) { dx[i] = narrow<T>(scale * (widen(g[i]) - plain - (widen(x[i]) - mean) * along)); });
}

typedef wide<ELEM> STAT;

KERNEL(threads) NAME(batchnorm_moments)(Pair<STAT> *parts, const ELEM *x, Channels at) { moments(parts, x, at); }
KERNEL(threads)
NAME(batchnorm)(ELEM *y, STAT *mean, STAT *variance, const ELEM *x, const STAT *w, const STAT *b, const Pair<STAT> *parts,
                Channels at, STAT eps) {
	normalize(y, mean, variance, x, w, b, parts, at, eps);
}
KERNEL(threads)
NAME(batchnormgrad_sums)(Pair<STAT> *parts, const ELEM *g, const ELEM *x, const STAT *mean, const STAT *variance, Channels at,
                         STAT eps) {
	gradSums(parts, g, x, mean, variance, at, eps);
}
KERNEL(threads)
NAME(batchnormgrad)(ELEM *dx, STAT *dw, STAT *db, const ELEM *g, const ELEM *x, const STAT *mean, const STAT *variance,
                    const STAT *w, const Pair<STAT> *parts, Channels at, STAT eps) {
	gradient(dx, dw, db, g, x, mean, variance, w, parts, at, eps);
}
