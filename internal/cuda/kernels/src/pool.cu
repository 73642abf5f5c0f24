// Pooling of planes. A thread makes a result; gradients are gathered, each element of a plane from the windows that it
// lies in, so that nothing is added by two threads.
//
//warpline:module pool_f32 -DT=f32 -DNAME(op)=op##_f32
//warpline:module pool_f64 -DT=f64 -DNAME(op)=op##_f64
//warpline:module pool_f16 -DT=f16 -DNAME(op)=op##_f16
//warpline:module pool_bf16 -DT=bf16 -DNAME(op)=op##_bf16
#include "index.cuh"

// Pool is the sizes of a pooling; its twin in Go is pooling. Sides of planes fit in 32 bits, their areas need not.
struct Pool {
	i64 planes;
	Divisor64 h, w, oh, ow; // of the planes before and after
	i32 kernelH, kernelW, strideH, strideW, padH, padW;

	DEVICE i64 in() const { return h.by * w.by; }
	DEVICE i64 out() const { return oh.by * ow.by; }
};

typedef wide<T> W;

// Span is a half-open range.
struct Span {
	i32 from, to;

	DEVICE bool has(i32 i) const { return i >= from && i < to; }
};

// Rect is a part of a plane.
struct Rect {
	Span rows, columns;
};

// Place is an element of a plane.
struct Place {
	i64 plane;
	i32 row, column;
};

DEVICE Place placeOf(i64 i, const Divisor64 &height, const Divisor64 &width) {
	i64 column = i, row = width.split(column), plane = height.split(row);
	return {plane, i32(row), i32(column)};
}

// within is the part of window i that lies in 0..n.
DEVICE Span within(i32 i, i32 stride, i32 pad, i32 kernel, i32 n) {
	i32 from = i * stride - pad, to = from + kernel;
	return {from < 0 ? 0 : from, to < n ? to : n};
}

// covering is the windows, below n, that element i lies in.
DEVICE Span covering(i32 i, i32 stride, i32 pad, i32 kernel, i32 n) {
	i32 last = i + pad, first = last - kernel;
	i32 from = first < 0 ? 0 : u32(first) / u32(stride) + 1, to = u32(last) / u32(stride) + 1;
	return {from, to < n ? to : n};
}

// windowOf is what the result at a place is made of, windowsOf the results that an element is in.
DEVICE Rect windowOf(const Pool &p, Place at) {
	return {within(at.row, p.strideH, p.padH, p.kernelH, p.h.by), within(at.column, p.strideW, p.padW, p.kernelW, p.w.by)};
}
DEVICE Rect windowsOf(const Pool &p, Place at) {
	return {covering(at.row, p.strideH, p.padH, p.kernelH, p.oh.by), covering(at.column, p.strideW, p.padW, p.kernelW, p.ow.by)};
}

// each calls f with the places of a part of a plane of some width.
template <class F> DEVICE void each(const Rect &r, i64 width, F f) {
#pragma unroll 1
	for (i32 y = r.rows.from; y < r.rows.to; y++) {
		i64 at = y * width + r.columns.from;
#pragma unroll 1
		for (i32 n = r.columns.to - r.columns.from; n > 0; n--, at++)
			f(at);
	}
}

// wins reports whether v takes the place of the largest so far: the first of equals stays; of NaN the last does.
DEVICE bool wins(W v, W best) { return v > best || v != v; }

KERNEL(256) NAME(max_pool2d)(T *out, i64 *places, const T *__restrict__ x, Pool p) {
	for (i64 i = globalThread(), n = p.planes * p.out(); i < n; i += globalThreads()) {
		Place at = placeOf(i, p.oh, p.ow);
		Rect window = windowOf(p, at);
		const T *in = x + at.plane * p.in();
		i64 best = window.rows.from * p.w.by + window.columns.from;
		T most = in[best];
		each(window, p.w.by, [&](i64 j) {
			T v = in[j];
			if (wins(widen(v), widen(most))) {
				most = v;
				best = j;
			}
		});
		out[i] = most;
		places[i] = best;
	}
}

KERNEL(256) NAME(avg_pool2d)(T *out, const T *__restrict__ x, Pool p) {
	W scale = 1 / (W(p.kernelH) * W(p.kernelW));
	for (i64 i = globalThread(), n = p.planes * p.out(); i < n; i += globalThreads()) {
		Place at = placeOf(i, p.oh, p.ow);
		const T *in = x + at.plane * p.in();
		W sum = 0;
		each(windowOf(p, at), p.w.by, [&](i64 j) { sum += widen(in[j]); });
		out[i] = narrow<T>(sum * scale);
	}
}

KERNEL(256) NAME(avg_pool2d_grad)(T *dx, const T *__restrict__ g, Pool p) {
	W scale = 1 / (W(p.kernelH) * W(p.kernelW));
	for (i64 i = globalThread(), n = p.planes * p.in(); i < n; i += globalThreads()) {
		Place at = placeOf(i, p.h, p.w);
		const T *out = g + at.plane * p.out();
		W sum = 0;
		each(windowsOf(p, at), p.ow.by, [&](i64 o) { sum += widen(out[o]); });
		dx[i] = narrow<T>(sum * scale);
	}
}

const i32 held = 2048; // elements of a plane that are added up in shared memory at a time

// inWindow reports whether an element of a plane lies in the window of result o.
DEVICE bool inWindow(const Pool &p, i64 o, i64 element) {
	Rect window = windowOf(p, placeOf(o, p.oh, p.ow));
	Place at = placeOf(element, p.h, p.w);
	return window.rows.has(at.row) && window.columns.has(at.column);
}

// fromWindows is the gradient of an element of a plane from the windows that it lies in.
DEVICE W fromWindows(const T *g, const i64 *places, const Pool &p, i64 element) {
	W sum = 0;
	each(windowsOf(p, placeOf(element, p.h, p.w)), p.ow.by, [&](i64 o) {
		if (places[o] == element)
			sum += widen(g[o]);
	});
	return sum;
}

// withStrays is the gradient of a plane with places outside of their windows: one thread adds these, in order.
DEVICE void withStrays(T *dx, const T *g, const i64 *places, const Pool &p) {
	__shared__ W sums[held];
	i64 in = p.in(), out = p.out();
	for (i64 base = 0; base < in; base += held) {
		i32 n = in - base < held ? in - base : held;
		for (i32 i = threadIdx.x; i < n; i += blockDim.x)
			sums[i] = fromWindows(g, places, p, base + i);
		barrier();
		for (i64 o = 0; o < out && threadIdx.x == 0; o++)
			if (i64 at = places[o]; at >= base && at < base + n && !inWindow(p, o, at))
				sums[at - base] += widen(g[o]);
		barrier();
		for (i32 i = threadIdx.x; i < n; i += blockDim.x)
			dx[base + i] = narrow<T>(sums[i]);
	}
}

// max_pool2d_grad has a block for a plane. Places that max_pool2d made lie in their windows, so an element asks the
// windows that it lies in; the operation allows others.
KERNEL(256, 4) NAME(max_pool2d_grad)(T *dx, const T *__restrict__ g, const i64 *__restrict__ places, Pool p, Fault *fault, u32 launch) {
	i64 in = p.in(), out = p.out();
	dx += blockIdx.x * in;
	g += blockIdx.x * out;
	places += blockIdx.x * out;
	int strays = 0;
#pragma unroll 1
	for (i64 o = threadIdx.x; o < out; o += blockDim.x) {
		i64 at = places[o];
		if (u64(at) >= u64(in))
			outOfRange(fault, launch, at, in);
		else
			strays |= !inWindow(p, o, at);
	}
	if (__nvvm_bar0_or(strays)) {
		withStrays(dx, g, places, p);
		return;
	}
#pragma unroll 1
	for (i64 i = threadIdx.x; i < in; i += blockDim.x)
		dx[i] = narrow<T>(fromWindows(g, places, p, i));
}
