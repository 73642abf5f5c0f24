// Convolutions as products of matrices that are never laid out (implicit GEMM). All three gather elements of a tensor of
// planes by pairs of a pixel and a tap: a pixel is a place that a window stands at, a tap a channel and a place in the
// window. The element lies at pixel.base + tap.offset, and is one if pixel and tap have the same phase and
// (pixel.y + tap.dy, pixel.x + tap.dx) is in the plane; else it is zero.
//
//	forward      y[o][pixel]  = Σ_tap w[o][tap]·x[pixel, tap]        pixels of y, taps of w
//	input grad   x'[c][pixel] = Σ_tap wᵀ[c][tap]·g[pixel, tap]       pixels of x, taps (o, kh, kw)
//	weight grad  w'[o][tap]   = Σ_pixel g[pixel, o]·x[pixel, tap]    pixels of y
//
// Phases serve the input gradient with strides: a pixel meets only the taps that lie a multiple of the stride away.
#pragma once
#include "base.cuh"
#include "epilogue.cuh"
#include "gemm.cuh"
#include "pipeline.cuh"

// Conv is the sizes of a convolution: x[n,c,h,w] with w[o,c/groups,kh,kw] gives y[n,o,oh,ow]. The Go planner lays out the
// same fields.
struct Conv {
	i32 n, c, h, w, o, kh, kw, oh, ow;
	i32 strideH, strideW, padH, padW, dilationH, dilationW, groups;

	DEVICE i32 perGroupIn() const { return c / groups; }
	DEVICE i32 perGroupOut() const { return o / groups; }
};

struct Tap {
	i32 offset, dy, dx, phase;
};

struct Pixel {
	i64 base;
	i32 y, x, phase;
};

// No pixel and tap have these phases in common.
const i32 noPixel = -1, noTap = -2;

// Planes is the plane that a gather's elements lie in.
struct Planes {
	i32 height, width;

	template <class E> DEVICE bool has(const Pixel &p, const Tap &t, const E *from, const E *&at) const {
		at = from + (p.base + t.offset);
		return p.phase == t.phase && u32(p.y + t.dy) < u32(height) && u32(p.x + t.dx) < u32(width);
	}
};

// windowAt is the pixel for output place i of a forward convolution in x, for the channels of a group.
DEVICE Pixel windowAt(const Conv &s, i64 i, i32 group) {
	i32 plane = s.oh * s.ow;
	if (i >= i64(s.n) * plane)
		return {0, 0, 0, noPixel};
	i32 image = i32(i / plane), in = i32(i - i64(image) * plane);
	i32 y = in / s.ow * s.strideH - s.padH, x = in % s.ow * s.strideW - s.padW;
	return {(i64(image) * s.c + group * s.perGroupIn()) * s.h * s.w + i64(y) * s.w + x, y, x, 0};
}

// outputAt is the pixel for output place i itself, in y, for the channels of a group.
DEVICE Pixel outputAt(const Conv &s, i64 i, i32 group) {
	i32 plane = s.oh * s.ow;
	if (i >= i64(s.n) * plane)
		return {0, 0, 0, noPixel};
	i64 image = i / plane;
	return {(image * s.o + group * s.perGroupOut()) * plane + (i - image * plane), 0, 0, 0};
}

// inputAt is the pixel for input place i in y, for the channels of a group.
DEVICE Pixel inputAt(const Conv &s, i64 i, i32 group) {
	i32 plane = s.h * s.w;
	if (i >= i64(s.n) * plane)
		return {0, 0, 0, noPixel};
	i32 image = i32(i / plane), in = i32(i - i64(image) * plane);
	i32 top = in / s.w + s.padH, left = in % s.w + s.padW;
	i32 y = top / s.strideH, x = left / s.strideW;
	return {(i64(image) * s.o + group * s.perGroupOut()) * s.oh * s.ow + i64(y) * s.ow + x, y, x, (top - y * s.strideH) * s.strideW + left - x * s.strideW};
}

// windowTap is tap i of a forward convolution in x; outputTap is output channel i in y.
DEVICE Tap windowTap(const Conv &s, i32 i) {
	i32 window = s.kh * s.kw, channel = i / window, in = i % window;
	i32 dy = in / s.kw * s.dilationH, dx = in % s.kw * s.dilationW;
	return {(channel * s.h + dy) * s.w + dx, dy, dx, 0};
}
DEVICE Tap outputTap(const Conv &s, i32 i) { return {i * s.oh * s.ow, 0, 0, 0}; }

// inputTap is tap i, of output channel i/(kh·kw), of the input gradient in y.
DEVICE Tap inputTap(const Conv &s, i32 i) {
	i32 window = s.kh * s.kw, channel = i / window, in = i % window;
	i32 down = in / s.kw * s.dilationH, right = in % s.kw * s.dilationW;
	i32 dy = down / s.strideH, dx = right / s.strideW;
	return {(channel * s.oh - dy) * s.ow - dx, -dy, -dx, (down - dy * s.strideH) * s.strideW + right - dx * s.strideW};
}

// fillTaps makes the table of a convolution's taps.
DEVICE void fillTaps(Tap *to, const Conv &s, i32 count, i32 padded, i32 input) {
	for (i64 i = globalThread(); i < padded; i += globalThreads()) {
		Tap t = input ? inputTap(s, i32(i)) : windowTap(s, i32(i));
		if (i >= count)
			t.phase = noTap;
		to[i] = t;
	}
}

// turnWeight makes for each group a matrix of a row per input channel and a column per (output channel, kh, kw).
template <class E> DEVICE void turnWeight(E *turned, const E *w, const Conv &s) {
	i32 window = s.kh * s.kw, in = s.perGroupIn(), out = s.perGroupOut();
	i64 total = i64(s.o) * in * window;
	for (i64 i = globalThread(); i < total; i += globalThreads()) {
		i64 rest = i / window;
		i32 o = i32(rest % out);
		rest /= out;
		turned[i] = w[((rest / in * out + o) * in + rest % in) * window + i % window];
	}
}

// gather fills rows of a tile, one for each tap, with the elements of the pixels that a warp's lanes hold: 4 bytes' worth
// to a lane. tap gives the tap of a row.
template <int rows, int warps, class F> DEVICE void gather(u32 to, const f32 *from, const Planes &planes, const Pixel (&px)[1], F &&tap) {
	u32 lane = laneID();
#pragma unroll 4
	for (int i = 0; i < rows / warps; i++) {
		u32 row = threadIdx.x / 32 + i * warps;
		const f32 *at;
		bool in = planes.has(px[0], tap(row), from, at);
		copyAsync<4>(to + row * 128 + ((lane / 4 ^ row % 8) << 4) + lane % 4 * 4, in ? at : from, in ? 4 : 0);
	}
}
template <int rows, int warps, class E, class F> DEVICE void gather(u32 to, const E *from, const Planes &planes, const Pixel (&px)[2], F &&tap) {
	u32 lane = laneID();
#pragma unroll 1 // more spills beside the 128-wide tiles
	for (int i = 0; i < rows / warps; i++) {
		u32 row = threadIdx.x / 32 + i * warps;
		Tap t = tap(row);
		const E *at;
		u32 pair = 0;
		if (planes.has(px[0], t, from, at))
			pair = at->bits;
		if (planes.has(px[1], t, from, at))
			pair |= u32(at->bits) << 16;
		asm volatile("st.shared.b32 [%0], %1;" ::"r"(to + row * 128 + ((lane / 4 ^ row % 8) << 4) + lane % 4 * 4), "r"(pair) : "memory");
	}
}

// PlaneRows stores sums of channels (rows) at pixels (columns) of images: element (row, col) lies in plane
// image·channels + row at col%plane. Its rows have biases.
template <class E> struct PlaneRows {
	E *to; // the group's first channel
	const E *bias;
	i32 rows;
	i64 cols;
	i32 plane, channels;

	DEVICE void operator()(i32 row, i64 col, Vec<f32, 4> v) const {
		if (row >= rows || col >= cols)
			return;
		i32 n = cols - col < 4 ? i32(cols - col) : 4;
		f32 more = bias ? widen(bias[row]) : 0;
		i64 image = col / plane, in = col - image * plane;
		E *p = to + (image * channels + row) * plane + in;
		Vec<E, 4> out;
#pragma unroll
		for (int e = 0; e < 4; e++)
			out.v[e] = narrow<E>(v.v[e] + more);
		if (in + n <= plane) {
			storeSome(p, out, n);
			return;
		}
#pragma unroll
		for (int e = 0; e < 4; e++)
			if (e < n)
				p[e + (in + e) / plane * (i64(channels) - 1) * plane] = out.v[e];
	}
};

// Sides is the product that a convolution is, for one group: rows×terms by terms×cols.
struct Sides {
	i32 rows, cols, terms;
	i32 work; // tiles in all
};

// convolve makes a block's tiles of y, or with `input` of x's gradient. w holds for each group a matrix of a row per
// channel of the result and a column per tap. The table of taps is filled up to whole tiles with taps that meet no pixel.
template <class Block, int stages, class E> DEVICE void convolve(u8 *shared, E *to, const E *w, const E *from, const E *bias, const Tap *taps, const Sides &p, const Conv &s, bool input) {
	typedef MatrixCopy<E, Block::rows, true, Block::threads> CopyW;
	const int perLane = 4 / sizeof(E), panels = Block::cols / Block::depth, warps = Block::threads / 32;
	const int panelBytes = Block::depth * 128;
	const Planes planes = input ? Planes{s.oh, s.ow} : Planes{s.h, s.w};
#pragma unroll 1
	for (i32 i = blockIdx.x; i < p.work; i += gridDim.x) {
		Tile at = tileAt<Block::rows, Block::cols>(p.rows, p.cols, 1, i);
		CopyW copyW(w + (i64(at.batch) * p.rows + at.row) * p.terms, p.terms, 1, p.rows - at.row);
		Pixel px[panels][perLane];
#pragma unroll
		for (int j = 0; j < panels * perLane; j++) {
			i64 col = i64(at.col) + j / perLane * Block::depth + laneID() * perLane + j % perLane;
			px[j / perLane][j % perLane] = input ? inputAt(s, col, at.batch) : windowAt(s, col, at.batch);
		}
		const Tap *tap = taps;
		Block block;
		feed<stages, CopyW::bytes + panels * panelBytes, Block::depth>(
			sharedAddress(shared), p.terms,
			[&](u32 stage, i32 left) INLINED {
				copyW.fill(stage, left);
#pragma unroll
				for (int j = 0; j < panels; j++)
					gather<Block::depth, warps>(stage + CopyW::bytes + j * panelBytes, from, planes, px[j],
						[&](u32 row) INLINED { return tap[row]; });
				tap += Block::depth;
			},
			[&](u32 stage) INLINED { block.step(stage, stage + CopyW::bytes); },
			[&](u32 stage, i32 left) INLINED { copyW.settle(stage, left, stages - 1); });
		i32 plane = input ? s.h * s.w : s.oh * s.ow;
		PlaneRows<E> rows{to + i64(at.batch) * p.rows * plane, bias ? bias + at.batch * p.rows : 0, p.rows, p.cols, plane, s.groups * p.rows};
		block.each(shared, [&](u32 r, u32 t, const Vec<f32, 4> &v) INLINED { rows(at.row + r, i64(at.col) + t, v); });
	}
}

// convolveWeight makes a block's tiles of w's gradient, whose terms are pixels.
template <class Block, int stages, class E> DEVICE void convolveWeight(u8 *shared, E *dw, const E *g, const E *x, f32 *partial, const Tap *taps, const Sides &p, const Conv &s, i32 splits, i32 perSplit) {
	const int perLane = 4 / sizeof(E), warps = Block::threads / 32, gBytes = Block::rows * 128;
	const Planes plane{s.h, s.w}, point{1, 1};
#pragma unroll 1
	for (i32 i = blockIdx.x; i < p.work; i += gridDim.x) {
		Tile at = tileAt<Block::rows, Block::cols>(p.rows, p.cols, splits, i);
		i32 first = at.split * perSplit, terms = p.terms - first < perSplit ? p.terms - first : perSplit;
		Block block;
		feed<stages, gBytes + Block::cols * 128, Block::depth>(
			sharedAddress(shared), terms,
			[&](u32 stage, i32 left) INLINED {
				Pixel out[perLane], window[perLane];
#pragma unroll
				for (int e = 0; e < perLane; e++) {
					i32 in = laneID() * perLane + e;
					i64 k = in < left ? i64(first) + terms - left + in : i64(p.terms);
					out[e] = outputAt(s, k, at.batch);
					window[e] = windowAt(s, k, at.batch);
				}
				gather<Block::rows, warps>(stage, g, point, out,
					[&](u32 row) INLINED {
						Tap t = outputTap(s, at.row + row);
						t.phase = at.row + i32(row) < p.rows ? t.phase : noTap;
						return t;
					});
				gather<Block::cols, warps>(stage + gBytes, x, plane, window,
					[&](u32 row) INLINED { return taps[at.col + row]; });
			},
			[&](u32 stage) INLINED { block.step(stage, stage + gBytes); });
		storeSums(block, shared, p.rows, p.cols, p.cols, splits, at, dw, Epilogue{}, partial, false);
	}
}
