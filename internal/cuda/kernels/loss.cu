// Cross-entropy of rows of logits against labels, and its gradient; teams and modules as in softmax.cu.
//
//warpline:module loss_f32 -DELEM=f32 -DNAME(op)=op##_f32
//warpline:module loss_f64 -DELEM=f64 -DNAME(op)=op##_f64
//warpline:module loss_f16 -DELEM=f16 -DNAME(op)=op##_f16
//warpline:module loss_bf16 -DELEM=bf16 -DNAME(op)=op##_bf16
//warpline:module loss_long_f32 -DELEM=f32 -DNAME(op)=op##_f32 -DLONG
//warpline:module loss_long_f64 -DELEM=f64 -DNAME(op)=op##_f64 -DLONG
//warpline:module loss_long_f16 -DELEM=f16 -DNAME(op)=op##_f16 -DLONG
//warpline:module loss_long_bf16 -DELEM=bf16 -DNAME(op)=op##_bf16 -DLONG
#include "rows.cuh"

// Labels are the classes of rows. Rows with the ignored one do not count; one that is no class is reported.
struct Labels {
	const i64 *of;
	f64 ignored;
	i32 classes;
	Fault *fault;
	u32 launch;

	// at is the class of a row, -1 if it does not count.
	DEVICE i32 at(i64 row, bool reports) const {
		i64 label = of[row];
		if (f64(label) == ignored)
			return -1;
		if (label >= 0 && label < classes)
			return i32(label);
		if (reports)
			outOfRange(fault, launch, label, classes);
		return -1;
	}
};

// crossEntropy is (1-ε)·nll + ε·mean over classes of -log p, as PyTorch has it, with nll = lse - x[label] and the mean
// lse - mean(x).
template <class Team, class T>
DEVICE void crossEntropy(Team team, wide<T> *loss, wide<T> *lse, const T *x, Labels labels, i64 rows, i32 d, wide<T> smoothing) {
	typedef wide<T> W;
	bool steps = inSteps<perStep<T>>(d, x);
	for (i64 row = team.first(); row < rows; row += team.stride()) {
		const T *from = x + row * d;
		Online<W> o;
		W plain = 0;
		sweep<T>(team, steps, d, [&](auto width, i32 i) {
			auto v = load<width.value>(from + i);
			o.add(v);
#pragma unroll
			for (int j = 0; j < width.value; j++)
				plain += v[j];
		});
		o.join(team);
		if (smoothing != 0)
			plain = team.all(plain, Plus{});
		if (team.rank() != 0)
			continue;
		W whole = o.max + fastLog(o.sum), l = 0;
		i32 label = labels.at(row, true);
		if (label >= 0) {
			l = whole - widen(from[label]);
			if (smoothing != 0) // a logit of -∞ would give 0·∞
				l = (1 - smoothing) * l + smoothing * (whole - plain / d);
		}
		loss[row] = l;
		lse[row] = whole;
	}
}

// crossEntropyGrad is g·(softmax(x) - (1-ε)·onehot - ε/classes).
template <class Team, class T>
DEVICE void crossEntropyGrad(Team team, T *dx, const T *x, Labels labels, const wide<T> *lse, const wide<T> *g, i64 rows, i32 d,
                             wide<T> smoothing) {
	typedef wide<T> W;
	bool steps = inSteps<perStep<T>>(d, x, dx);
	W even = smoothing / d;
	for (i64 row = team.first(); row < rows; row += team.stride()) {
		i32 label = labels.at(row, team.rank() == 0);
		W shift = lse[row], scale = g[row];
		i64 at = row * d;
		sweep<T>(team, steps, d, [&](auto width, i32 i) {
			auto v = load<width.value>(x + at + i);
#pragma unroll
			for (int j = 0; j < width.value; j++) {
				W target = i + j == label ? even + (1 - smoothing) : even;
				v[j] = label >= 0 ? (fastExp(v[j] - shift) - target) * scale : W(0);
			}
			store<width.value>(dx + at + i, v);
		});
	}
}

#define KERNELS(suffix, Team, threads)                                                                                   \
	KERNEL(threads)                                                                                                      \
	NAME(crossentropy_##suffix)(wide<ELEM> * loss, wide<ELEM> * lse, const ELEM *x, const i64 *labels, i64 rows, i32 d,  \
	                            wide<ELEM> smoothing, f64 ignored, Fault *fault, u32 launch) {                           \
		crossEntropy(Team{}, loss, lse, x, Labels{labels, ignored, d, fault, launch}, rows, d, smoothing);               \
	}                                                                                                                    \
	KERNEL(threads)                                                                                                      \
	NAME(crossentropygrad_##suffix)(ELEM * dx, const ELEM *x, const i64 *labels, const wide<ELEM> *lse,                  \
	                                const wide<ELEM> *g, i64 rows, i32 d, wide<ELEM> smoothing, f64 ignored,             \
	                                Fault *fault, u32 launch) {                                                          \
		crossEntropyGrad(Team{}, dx, x, Labels{labels, ignored, d, fault, launch}, lse, g, rows, d, smoothing);          \
	}

#ifndef LONG
KERNELS(warp, WarpTeam, 256)
#else
KERNELS(block, BlockTeam, 512)
#endif
