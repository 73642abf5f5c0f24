// Softmax along rows and its gradient. A warp takes a row of up to 1024 elements, a block a longer one, by kernels of the
// modules named so; the maximum and the sum come from one pass (see Online), a second pass, mostly out of the L1 cache,
// writes the results.
//
//warpline:module softmax_f32 -DELEM=f32 -DNAME(op)=softmax##op##_f32 -DLOGARITHM=false @sm_75 @sm_80 @sm_90a
//warpline:module softmax_f64 -DELEM=f64 -DNAME(op)=softmax##op##_f64 -DLOGARITHM=false
//warpline:module softmax_f16 -DELEM=f16 -DNAME(op)=softmax##op##_f16 -DLOGARITHM=false
//warpline:module softmax_bf16 -DELEM=bf16 -DNAME(op)=softmax##op##_bf16 -DLOGARITHM=false
//warpline:module softmax_long_f32 -DELEM=f32 -DNAME(op)=softmax##op##_f32 -DLOGARITHM=false -DLONG
//warpline:module softmax_long_f64 -DELEM=f64 -DNAME(op)=softmax##op##_f64 -DLOGARITHM=false -DLONG
//warpline:module softmax_long_f16 -DELEM=f16 -DNAME(op)=softmax##op##_f16 -DLOGARITHM=false -DLONG
//warpline:module softmax_long_bf16 -DELEM=bf16 -DNAME(op)=softmax##op##_bf16 -DLOGARITHM=false -DLONG
//warpline:module logsoftmax_f32 -DELEM=f32 -DNAME(op)=logsoftmax##op##_f32 -DLOGARITHM=true
//warpline:module logsoftmax_f64 -DELEM=f64 -DNAME(op)=logsoftmax##op##_f64 -DLOGARITHM=true
//warpline:module logsoftmax_f16 -DELEM=f16 -DNAME(op)=logsoftmax##op##_f16 -DLOGARITHM=true
//warpline:module logsoftmax_bf16 -DELEM=bf16 -DNAME(op)=logsoftmax##op##_bf16 -DLOGARITHM=true
//warpline:module logsoftmax_long_f32 -DELEM=f32 -DNAME(op)=logsoftmax##op##_f32 -DLOGARITHM=true -DLONG
//warpline:module logsoftmax_long_f64 -DELEM=f64 -DNAME(op)=logsoftmax##op##_f64 -DLOGARITHM=true -DLONG
//warpline:module logsoftmax_long_f16 -DELEM=f16 -DNAME(op)=logsoftmax##op##_f16 -DLOGARITHM=true -DLONG
//warpline:module logsoftmax_long_bf16 -DELEM=bf16 -DNAME(op)=logsoftmax##op##_bf16 -DLOGARITHM=true -DLONG
#include "rows.cuh"

// A row of -∞ gives NaN: -∞ - -∞.
template <bool logarithm, class Team, class T> DEVICE void softmax(Team team, T *y, const T *x, i64 rows, i32 d) {
	typedef wide<T> W;
	bool steps = inSteps<perStep<T>>(d, x, y);
	for (i64 row = team.first(); row < rows; row += team.stride()) {
		const T *from = x + row * d;
		T *to = y + row * d;
		Online<W> o;
		sweep<T>(team, steps, d, [&](auto width, i32 i) { o.add(load<width.value>(from + i)); });
		o.join(team);
		W scale = logarithm ? fastLog(o.sum) : 1 / o.sum;
		sweep<T>(team, steps, d, [&](auto width, i32 i) {
			auto v = load<width.value>(from + i);
#pragma unroll
			for (int j = 0; j < width.value; j++)
				v[j] = logarithm ? (v[j] - o.max) - scale : fastExp(v[j] - o.max) * scale;
			store<width.value>(to + i, v);
		});
	}
}

// softmaxGrad is y·(g - Σ y·g), and for the logarithm g - exp(y)·Σ g.
template <bool logarithm, class Team, class T>
DEVICE void softmaxGrad(Team team, T *dx, const T *y, const T *g, i64 rows, i32 d) {
	typedef wide<T> W;
	bool steps = inSteps<perStep<T>>(d, y, g, dx);
	for (i64 row = team.first(); row < rows; row += team.stride()) {
		i64 at = row * d;
		W sum = 0;
		sweep<T>(team, steps, d, [&](auto width, i32 i) {
			auto grad = load<width.value>(g + at + i);
			auto out = load<width.value>(y + at + i);
#pragma unroll
			for (int j = 0; j < width.value; j++)
				sum = logarithm ? sum + grad[j] : sum + grad[j] * out[j];
		});
		sum = team.all(sum, Plus{});
		sweep<T>(team, steps, d, [&](auto width, i32 i) {
			auto grad = load<width.value>(g + at + i);
			auto out = load<width.value>(y + at + i);
#pragma unroll
			for (int j = 0; j < width.value; j++)
				out[j] = logarithm ? grad[j] - fastExp(out[j]) * sum : out[j] * (grad[j] - sum);
			store<width.value>(dx + at + i, out);
		});
	}
}

#define KERNELS(suffix, Team, threads, blocks)                                                                           \
	KERNEL(threads, blocks) NAME(_##suffix)(ELEM * y, const ELEM *x, i64 rows, i32 d) {                                  \
		softmax<LOGARITHM>(Team{}, y, x, rows, d);                                                                       \
	}                                                                                                                    \
	KERNEL(threads, blocks) NAME(grad_##suffix)(ELEM * dx, const ELEM *y, const ELEM *g, i64 rows, i32 d) {              \
		softmaxGrad<LOGARITHM>(Team{}, dx, y, g, rows, d);                                                               \
	}

#ifndef LONG
KERNELS(warp, WarpTeam, 256, sizeof(wide<ELEM>) == 8 ? 2 : 4)
#else
KERNELS(block, BlockTeam, 512, sizeof(wide<ELEM>) == 8 ? 1 : 2)
#endif
