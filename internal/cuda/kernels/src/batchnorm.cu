// BatchNorm of x[n,c,s] by channels, with what is added to it and its ReLU, and its gradient.
//
// A channel is n runs of s neighbours. Blocks of 256 threads take a tile of channels (1, or 32 side by side where s is
// short, so that neighbouring threads read neighbouring elements) and a range of the channel's n·s values. Sums of a range
// go to parts; the second kernel of each op first joins the ranges of its channel, in their order, and then goes over the
// elements. The number of ranges depends on the sizes only. Where runs are whole numbers of steps of four elements, threads
// take a step at once.
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

	// inSteps is whether elements at these places can be taken n at a time. Ranges are whole numbers of steps.
	template <int n, class T, class... Ps> DEVICE bool inSteps(const T *p, const Ps *...more) const {
		return blockDim.x == 1 && ::inSteps<n>(i64(s), p, more...);
	}

	// each calls body(Width<N>, i) for the elements i to i+N that fall to the thread, N at a time.
	template <int N, class Body> DEVICE void each(Body body) const {
		if (channel() >= c)
			return;
		i32 step = blockDim.y * N;
		i64 k = begin(blockIdx.y) + threadIdx.y * N, last = end(blockIdx.y);
		i64 run = k / s;
		i32 within = i32(k - run * s), runs = step / s, rest = step % s;
		for (; k < last; k += step) {
			body(Width<N>{}, (run * c + channel()) * s + within);
			run += runs;
			within += rest;
			if (within >= s) {
				within -= s;
				run++;
			}
		}
	}

	// sweep is each by steps, of four elements or of two f64, or one by one.
	template <class W, class Body> DEVICE void sweep(bool steps, Body body) const {
		if (steps)
			each<16 / sizeof(W)>(body);
		else
			each<1>(body);
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

// Moments are of count values: their mean and Σ (x - mean)².
template <class W> struct Moments {
	W count, mean, squares;

	// join adds those of other values (Chan, Golub and LeVeque).
	DEVICE void join(const Moments &more) {
		if (more.count == 0)
			return;
		W all = count + more.count, apart = more.mean - mean;
		mean += apart - apart == 0 ? apart * (more.count / all) : more.mean; // an infinite one is that of both
		squares += more.squares + apart * apart * (count * more.count / all);
		count = all;
	}
};

// moments reads x once: a thread takes sums of distances from the mean of its first step, which lies among its values.
template <class T> DEVICE void moments(Pair<wide<T>> *parts, const T *x, Channels at) {
	typedef wide<T> W;
	__shared__ Moments<W> shared[threads];
	W count = 0, from = 0, sum = 0, squares = 0;
	at.sweep<W>(at.inSteps<16 / sizeof(W)>(x), [&](auto width, i64 i) INLINED {
		auto v = load<width.value>(x + i);
		if (count == 0) {
#pragma unroll
			for (int e = 0; e < width.value; e++)
				from += v[e] / width.value;
			if (from - from != 0)
				from = 0; // nothing has a distance from it
		}
#pragma unroll
		for (int e = 0; e < width.value; e++) {
			W d = v[e] - from;
			sum += d;
			squares += d * d;
		}
		count += width.value;
	});
	W off = count > 0 ? sum / count : 0, apart = squares - sum * off;
	i32 place = threadIdx.y * blockDim.x + threadIdx.x;
	shared[place] = {count, from + off, apart < 0 ? 0 : apart};
	barrier();
	for (i32 half = blockDim.y / 2; half > 0; half /= 2) {
		if (threadIdx.y < half)
			shared[place].join(shared[place + half * blockDim.x]);
		barrier();
	}
	leave(parts, at, shared[place].mean, shared[place].squares);
}

// joined combines the moments of a channel's ranges: mean and variance.
template <class W> DEVICE Pair<W> joined(const Pair<W> *parts, const Channels &at) {
	Moments<W> all = {};
	for (i32 r = 0; r < at.ranges; r++) {
		Pair<W> p = parts[i64(r) * at.c + at.channel()];
		all.join({W(at.end(r) - at.begin(r)), p.a, p.b});
	}
	return {all.mean, all.squares / all.count};
}

// normalize writes act((x - mean)/√(variance + eps)·w + b + r), with r where there is one. The moments are those of parts,
// which are then also written, or with no parts those given.
template <class T>
DEVICE void normalize(T *y, wide<T> *means, wide<T> *variances, const T *x, const wide<T> *w, const wide<T> *b, const T *r,
                      const Pair<wide<T>> *parts, Channels at, wide<T> eps, bool relu) {
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
	at.sweep<W>(at.inSteps<16 / sizeof(W)>(x, y, r), [&](auto width, i64 i) INLINED {
		auto v = load<width.value>(x + i), more = v;
		if (r)
			more = load<width.value>(r + i);
#pragma unroll
		for (int e = 0; e < width.value; e++) {
			W z = (v[e] - m.a) * scale + shift;
			if (r)
				z += more[e];
			v[e] = relu && z < 0 ? 0 : z;
		}
		store<width.value>(y + i, v);
	});
}

// behind is g from i on, 0 where relu's result y, if there is one, is not above 0.
template <int N, class T> DEVICE Pack<wide<T>, N> behind(const T *g, const T *y, i64 i) {
	auto h = load<N>(g + i);
	if (y) {
		auto v = load<N>(y + i);
#pragma unroll
		for (int e = 0; e < N; e++)
			h[e] = v[e] <= 0 ? 0 : h[e];
	}
	return h;
}

// gradSums also leaves the gradient behind the activation in dr, if that is wanted.
template <class T>
DEVICE void gradSums(Pair<wide<T>> *parts, T *dr, const T *g, const T *x, const wide<T> *means, const wide<T> *variances, const T *y,
                     Channels at, wide<T> eps) {
	typedef wide<T> W;
	W plain = 0, along = 0, mean = 0, rstd = 0;
	if (at.channel() < at.c) {
		mean = means[at.channel()];
		rstd = 1 / sqrt(variances[at.channel()] + eps);
	}
	at.sweep<W>(at.inSteps<16 / sizeof(W)>(g, x, y, dr), [&](auto width, i64 i) INLINED {
		auto h = behind<width.value>(g, y, i), v = load<width.value>(x + i);
		if (dr)
			store<width.value>(dr + i, h);
#pragma unroll
		for (int e = 0; e < width.value; e++) {
			plain += h[e];
			along += h[e] * ((v[e] - mean) * rstd);
		}
	});
	plain = byChannel(plain);
	leave(parts, at, plain, byChannel(along));
}

// gradient is dx = w·rstd·(g - (db + x̂·dw)/count).
template <class T>
DEVICE void gradient(T *dx, wide<T> *dw, wide<T> *db, const T *g, const T *x, const wide<T> *means, const wide<T> *variances,
                     const wide<T> *w, const T *y, const Pair<wide<T>> *parts, Channels at, wide<T> eps) {
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
	at.sweep<W>(at.inSteps<16 / sizeof(W)>(dx, g, x, y), [&](auto width, i64 i) INLINED {
		auto h = behind<width.value>(g, y, i), v = load<width.value>(x + i);
#pragma unroll
		for (int e = 0; e < width.value; e++)
			v[e] = scale * (h[e] - plain - (v[e] - mean) * along);
		store<width.value>(dx + i, v);
	});
}

typedef wide<ELEM> STAT;

KERNEL(threads) NAME(batchnorm_moments)(Pair<STAT> *parts, const ELEM *x, Channels at) { moments(parts, x, at); }
KERNEL(threads)
NAME(batchnorm)(ELEM *y, STAT *mean, STAT *variance, const ELEM *x, const STAT *w, const STAT *b, const ELEM *r,
                const Pair<STAT> *parts, Channels at, STAT eps, i32 relu) {
	normalize(y, mean, variance, x, w, b, r, parts, at, eps, relu);
}
KERNEL(threads)
NAME(batchnormgrad_sums)(Pair<STAT> *parts, ELEM *dr, const ELEM *g, const ELEM *x, const STAT *mean, const STAT *variance,
                         const ELEM *y, Channels at, STAT eps) {
	gradSums(parts, dr, g, x, mean, variance, y, at, eps);
}
KERNEL(threads)
NAME(batchnormgrad)(ELEM *dx, STAT *dw, STAT *db, const ELEM *g, const ELEM *x, const STAT *mean, const STAT *variance,
                    const STAT *w, const ELEM *y, const Pair<STAT> *parts, Channels at, STAT eps) {
	gradient(dx, dw, db, g, x, mean, variance, w, y, parts, at, eps);
}
