// Resampling of a dimension of a dense operand, outer×n×inner. A thread makes a result; gradients are gathered, each element's from
// the results around it, so that nothing is added by two threads.
//
//warpline:module resample_f32 -DT=f32 -DNAME(op)=op##_f32
//warpline:module resample_f64 -DT=f64 -DNAME(op)=op##_f64
//warpline:module resample_f16 -DT=f16 -DNAME(op)=op##_f16
//warpline:module resample_bf16 -DT=bf16 -DNAME(op)=op##_bf16
#include "index.cuh"
#include "math.cuh"

typedef wide<T> W;

// Curve has the numbers of package ir.
enum Curve : i32 { nearest, nearestMiddle, lines, cubics, lineWindows };

// Resampling is the sizes of one; its twin in Go is resampling.
struct Resampling {
	i64 outer;
	Divisor64 n, out, inner;
	i32 curve, corners;
	f64 step, reach, wide; // between results; of a result, to either side; of windows, in elements
};

// keys is Keys' kernel at a distance.
DEVICE W keys(W d, W a) {
	if (d < 1)
		return ((a + 2) * d - (a + 3)) * d * d + 1;
	return d < 2 ? (d - 1) * (d - 2) * (d - 2) * a : W(0);
}

// Taps is the elements that a result is made of: count of them from first on.
struct Taps {
	i64 first;
	i32 count, curve;
	W at, wide, sum; // between elements, or of the window, from the first

	// weight is that of element k, before it is divided by the sum.
	DEVICE W weight(i32 k) const {
		switch (curve) {
		case nearest:
		case nearestMiddle:
			return 1;
		case lines:
			return k ? at : 1 - at;
		case cubics:
			return keys(abs(at + W(1 - k)), W(-0.75));
		}
		W d = abs((W(k) - at + W(0.5)) / wide);
		if (curve > lineWindows)
			return keys(d, W(-0.5));
		return d < 1 ? 1 - d : W(0);
	}
};

// windowOf is what a result around a place covers.
DEVICE Taps windowOf(const Resampling &r, W center) {
	W from = center + W(0.5) - W(r.reach), to = center + W(0.5) + W(r.reach);
	Taps t;
	t.first = from > 0 ? i64(from) : 0;
	i64 end = i64(to) < i64(r.n.by) ? i64(to) : i64(r.n.by);
	t.count = i32(end - t.first);
	t.curve = r.curve;
	t.at = center - W(t.first);
	t.wide = W(r.wide);
	t.sum = 0;
#pragma unroll 1
	for (i32 k = 0; k < t.count; k++)
		t.sum += t.weight(k);
	return t;
}

// tapsOf is what result o is made of. Places are rounded step by step, as on the CPU.
DEVICE Taps tapsOf(const Resampling &r, i64 o) {
	if (r.curve <= nearestMiddle) {
		f32 place = f32(o) + (r.curve == nearest ? 0.f : 0.5f);
		return {i64(place * f32(r.step)), 1, r.curve, 0, 1, 1};
	}
	W step = W(r.step), center = (W(o) + W(0.5)) * step, last = W(r.n.by - 1);
	if (r.curve >= lineWindows)
		return windowOf(r, center);
	W at = center - W(0.5);
	if (r.corners)
		at = W(o) * step;
	if (r.curve == lines)
		at = at > 0 ? at < last ? at : last : W(0);
	W low = floor(at);
	if (r.curve == lines)
		return {i64(low), 2, r.curve, at - low, 1, 1};
	return {i64(low) - 1, 4, r.curve, at - low, 1, 1};
}

// each calls f with the elements of a result and their weights.
template <class F> DEVICE void each(const Resampling &r, i64 o, F f) {
	Taps t = tapsOf(r, o);
	i64 last = r.n.by - 1;
#pragma unroll 1
	for (i32 k = 0; k < t.count; k++) {
		i64 i = t.first + k;
		f(i > 0 ? i < last ? i : last : 0, t.weight(k) / t.sum);
	}
}

KERNEL(256) NAME(resample)(T *y, const T *__restrict__ x, Resampling r) {
	for (i64 i = globalThread(), n = r.outer * r.out.by * r.inner.by; i < n; i += globalThreads()) {
		i64 l = i, o = r.inner.split(l), outer = r.out.split(o);
		const T *line = x + outer * r.n.by * r.inner.by + l;
		W sum = 0;
		each(r, o, [&](i64 at, W w) { sum += w * widen(line[at * r.inner.by]); });
		y[i] = narrow<T>(sum);
	}
}

KERNEL(256) NAME(resample_grad)(T *dx, const T *__restrict__ g, Resampling r) {
	for (i64 i = globalThread(), n = r.outer * r.n.by * r.inner.by; i < n; i += globalThreads()) {
		i64 l = i, e = r.inner.split(l), outer = r.n.split(e), last = r.n.by - 1;
		const T *line = g + outer * r.out.by * r.inner.by + l;
		// Beyond the ends lie elements like the outermost.
		f64 from = e == 0 || r.step == 0 ? 0 : (f64(e) - r.reach - 3) / r.step - 1, to = (f64(e) + r.reach + 4) / r.step + 1;
		i64 o = from > 0 ? i64(from) : 0, end = e == last || !(to < f64(r.out.by)) ? i64(r.out.by) : i64(to);
		W sum = 0;
#pragma unroll 1
		for (; o < end; o++)
			each(r, o, [&](i64 at, W w) {
				if (at == e)
					sum += w * widen(line[o * r.inner.by]);
			});
		dx[i] = narrow<T>(sum);
	}
}
