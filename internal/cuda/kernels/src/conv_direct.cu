// Convolutions element by element, for every floating-point type: those of f64, and those whose groups are too narrow to
// fill tiles, such as depthwise ones. A thread makes an element of y or of x's gradient; a block one of the weight's
// gradient, whose sum it cuts among its threads and adds up as a tree.
//
//warpline:module conv_direct_f32 -DT=f32 -DNAME(op)=op##_f32
//warpline:module conv_direct_f64 -DT=f64 -DNAME(op)=op##_f64
//warpline:module conv_direct_f16 -DT=f16 -DNAME(op)=op##_f16
//warpline:module conv_direct_bf16 -DT=bf16 -DNAME(op)=op##_bf16
#include "conv.cuh"

typedef wide<T> W;

KERNEL(128) NAME(conv_direct)(T *__restrict__ y, const T *__restrict__ x, const T *__restrict__ w, const T *__restrict__ bias, Conv s) {
	i32 plane = s.oh * s.ow, taps = s.perGroupIn() * s.kh * s.kw;
	i64 total = i64(s.n) * s.o * plane;
	Planes planes{s.h, s.w};
	for (i64 i = globalThread(); i < total; i += globalThreads()) {
		i64 channels = i / plane, image = channels / s.o;
		i32 channel = i32(channels - image * s.o);
		Pixel p = windowAt(s, image * plane + (i - channels * plane), channel / s.perGroupOut());
		const T *factor = w + i64(channel) * taps;
		W sum = bias ? widen(bias[channel]) : W(0);
		for (i32 k = 0; k < taps; k++) {
			const T *at;
			if (planes.has(p, windowTap(s, k), x, at))
				sum += widen(*at) * widen(factor[k]);
		}
		y[i] = narrow<T>(sum);
	}
}

KERNEL(128) NAME(conv_direct_input)(T *__restrict__ dx, const T *__restrict__ g, const T *__restrict__ w, Conv s) {
	i32 plane = s.h * s.w, window = s.kh * s.kw, taps = s.perGroupOut() * window;
	i64 total = i64(s.n) * s.c * plane;
	Planes planes{s.oh, s.ow};
	for (i64 i = globalThread(); i < total; i += globalThreads()) {
		i64 channels = i / plane, image = channels / s.c;
		i32 channel = i32(channels - image * s.c), group = channel / s.perGroupIn(), in = channel % s.perGroupIn();
		Pixel p = inputAt(s, image * plane + (i - channels * plane), group);
		const T *factor = w + (i64(group) * s.perGroupOut() * s.perGroupIn() + in) * window;
		W sum = 0;
		for (i32 k = 0; k < taps; k++) {
			const T *at;
			if (planes.has(p, inputTap(s, k), g, at))
				sum += widen(*at) * widen(factor[i64(k / window) * s.perGroupIn() * window + k % window]);
		}
		dx[i] = narrow<T>(sum);
	}
}

KERNEL(128) NAME(conv_direct_weight)(T *__restrict__ dw, const T *__restrict__ g, const T *__restrict__ x, Conv s) {
	__shared__ W parts[128];
	i32 taps = s.perGroupIn() * s.kh * s.kw;
	i64 pixels = i64(s.n) * s.oh * s.ow, total = i64(s.o) * taps;
	Planes planes{s.h, s.w};
	for (i64 i = blockIdx.x; i < total; i += gridDim.x) {
		i32 channel = i32(i / taps), group = channel / s.perGroupOut();
		Tap tap = windowTap(s, i32(i % taps)), out = outputTap(s, channel % s.perGroupOut());
		W sum = 0;
		for (i64 k = threadIdx.x; k < pixels; k += 128) {
			const T *at;
			if (planes.has(windowAt(s, k, group), tap, x, at))
				sum += widen(*at) * widen(g[outputAt(s, k, group).base + out.offset]);
		}
		parts[threadIdx.x] = sum;
		barrier();
#pragma unroll 1
		for (u32 half = 64; half > 0; half /= 2) {
			if (threadIdx.x < half)
				parts[threadIdx.x] += parts[threadIdx.x + half];
			barrier();
		}
		if (threadIdx.x == 0)
			dw[i] = narrow<T>(parts[0]);
		barrier();
	}
}
