// Cross-entropy of rows of logits against labels, and its gradient; teams and modules as in softmax.cu.
//
//warpline:module loss_f32 -DHEAD -DELEM=f32 -DNAME(op)=op##_f32
//warpline:module loss_f64 -DELEM=f64 -DNAME(op)=op##_f64
//warpline:module loss_f16 -DHEAD -DELEM=f16 -DNAME(op)=op##_f16
//warpline:module loss_bf16 -DHEAD -DELEM=bf16 -DNAME(op)=op##_bf16
//warpline:module loss_long_f32 -DHEAD -DELEM=f32 -DNAME(op)=op##_f32 -DLONG
//warpline:module loss_long_f64 -DELEM=f64 -DNAME(op)=op##_f64 -DLONG
//warpline:module loss_long_f16 -DHEAD -DELEM=f16 -DNAME(op)=op##_f16 -DLONG
//warpline:module loss_long_bf16 -DHEAD -DELEM=bf16 -DNAME(op)=op##_bf16 -DLONG
#include "cell.cuh"
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

// crossEntropy is (1-ε)·nll + ε·mean over classes of -log p, as PyTorch has it. It goes by differences from the largest
// logit m: with s = log Σ exp(x-m), nll is s - (x[label]-m) and the mean s - mean(x-m). m and s of each row are kept.
template <class Team, class T> struct RowLoss {
	typedef wide<T> W;
	W most, whole, loss; // m, s and the loss, which the first of the team has

	DEVICE RowLoss(Team team, const T *x, i32 lead, i32 d, i32 label, W smoothing) {
		Online<W> o;
		sweepFrom<T>(team, lead, d, [&](auto width, i32 i) { o.add(load<width.value>(x + i)); });
		o.join(team);
		W plain = 0;
		if (smoothing != 0) {
			sweepFrom<T>(team, lead, d, [&](auto width, i32 i) {
				auto v = load<width.value>(x + i);
#pragma unroll
				for (int j = 0; j < width.value; j++)
					plain += v[j] - o.max;
			});
			plain = team.all(plain, Plus{});
		}
		most = o.max;
		whole = fastLog(o.sum);
		loss = 0;
		if (team.rank() == 0 && label >= 0) {
			loss = whole - (widen(x[label]) - most);
			if (smoothing != 0) // a logit of -∞ would give 0·∞
				loss = (1 - smoothing) * loss + smoothing * (whole - plain / d);
		}
	}
};

template <class Team, class T>
DEVICE void crossEntropy(Team team, wide<T> *loss, wide<T> *stats, const T *x, Labels labels, i64 rows, i32 d, wide<T> smoothing) {
	for (i64 row = team.first(); row < rows; row += team.stride()) {
		const T *from = x + row * d;
		RowLoss<Team, T> r(team, from, lead(d, from), d, labels.at(row, team.rank() == 0), smoothing);
		if (team.rank() != 0)
			continue;
		loss[row] = r.loss;
		stats[row] = r.most;
		stats[rows + row] = r.whole;
	}
}

// rowGrad is the gradient of a row's logits, scale times p - target.
template <class Team, class T>
DEVICE void rowGrad(Team team, T *dx, const T *x, i32 lead, i32 d, i32 label, wide<T> most, wide<T> whole, wide<T> scale, wide<T> smoothing) {
	typedef wide<T> W;
	W even = smoothing / d;
	sweepFrom<T>(team, lead, d, [&](auto width, i32 i) {
		auto v = load<width.value>(x + i);
#pragma unroll
		for (int j = 0; j < width.value; j++) {
			W target = i + j == label ? even + (1 - smoothing) : even;
			v[j] = label >= 0 ? (fastExp(v[j] - most - whole) - target) * scale : W(0);
		}
		store<width.value>(dx + i, v);
	});
}

// crossEntropyGrad is g·(softmax(x) - (1-ε)·onehot - ε/classes), with a g for each row, or one that the number of labels
// divides.
template <class Team, class T>
DEVICE void crossEntropyGrad(Team team, T *dx, const T *x, Labels labels, const wide<T> *stats, const wide<T> *g, const wide<T> *count, i64 rows,
                             i32 d, wide<T> smoothing) {
	for (i64 row = team.first(); row < rows; row += team.stride()) {
		i64 at = row * d;
		rowGrad(team, dx + at, x + at, lead(d, x + at, dx + at), d, labels.at(row, team.rank() == 0), stats[row], stats[rows + row],
		        count ? *g / *count : g[row], smoothing);
	}
}

#ifdef HEAD
// head is the losses of a chunk of rows, whose logits lie pitch elements apart, and their gradient in the logits' place: of
// the sum of the losses, or with a g for each. Without a place for losses, or without grads, it is the other alone.
template <class Team, class T>
DEVICE void head(Team team, wide<T> *loss, T *x, Labels labels, const wide<T> *g, bool grads, i64 rows, i32 d, i32 pitch, wide<T> smoothing) {
	for (i64 row = team.first(); row < rows; row += team.stride()) {
		T *at = x + row * pitch;
		i32 label = labels.at(row, team.rank() == 0), begin = lead(d, at);
		RowLoss<Team, T> r(team, at, begin, d, label, smoothing);
		if (loss && team.rank() == 0)
			loss[row] = r.loss;
		if (!grads)
			continue;
		team.sync(); // the first has read the logit of the label
		rowGrad(team, at, at, begin, d, label, r.most, r.whole, g ? g[row] : 1, smoothing);
	}
}
#endif

#define KERNELS(suffix, Team, threads)                                                                                   \
	KERNEL(threads)                                                                                                      \
	NAME(crossentropy_##suffix)(wide<ELEM> * loss, wide<ELEM> * stats, const ELEM *x, const i64 *labels, i64 rows,       \
	                            i32 d, Number<wide<ELEM>> smoothing, Word<f64> ignored, Fault *fault, u32 launch) {      \
		crossEntropy(Team{}, loss, stats, x, Labels{labels, ignored, d, fault, launch}, rows, d, smoothing);             \
	}                                                                                                                    \
	KERNEL(threads)                                                                                                      \
	NAME(crossentropygrad_##suffix)(ELEM * dx, const ELEM *x, const i64 *labels, const wide<ELEM> *stats,                \
	                                const wide<ELEM> *g, const wide<ELEM> *count, i64 rows, i32 d,                       \
	                                Number<wide<ELEM>> smoothing, Word<f64> ignored, Fault *fault, u32 launch) {         \
		crossEntropyGrad(Team{}, dx, x, Labels{labels, ignored, d, fault, launch}, stats, g, count, rows, d, smoothing); \
	}

#ifdef HEAD
#define HEADS(suffix, Team, threads)                                                                                     \
	KERNEL(threads)                                                                                                      \
	NAME(head_##suffix)(wide<ELEM> * loss, ELEM *x, const i64 *labels, const wide<ELEM> *g, i32 grads, i32 pitch, i64 rows, i32 d, \
	                    Number<wide<ELEM>> smoothing, Word<f64> ignored, Fault *fault, u32 launch) {                     \
		head(Team{}, loss, x, Labels{labels, ignored, d, fault, launch}, g, grads, rows, d, pitch, smoothing);           \
	}
#else
#define HEADS(...)
#endif

#ifndef LONG
KERNELS(warp, WarpTeam, 256)
HEADS(warp, WarpTeam, 256)

// meanOf is the mean of the rows' losses over the labels that count, or the sum, and their number, by one block.
template <class W> DEVICE void meanOf(W *mean, W *count, const W *loss, const i64 *labels, i64 rows, f64 ignored, bool total) {
	f64 sum = 0;
	i64 counted = 0;
	for (i64 i = threadIdx.x; i < rows; i += blockDim.x)
		if (f64(labels[i]) != ignored) {
			sum += loss[i];
			counted++;
		}
	BlockTeam team;
	sum = team.all(sum, Plus{});
	counted = team.all(counted, Plus{});
	if (threadIdx.x == 0) {
		*mean = W(total ? sum : sum / counted);
		*count = W(counted);
	}
}

KERNEL(512) NAME(crossentropy_mean)(wide<ELEM> *mean, wide<ELEM> *count, const wide<ELEM> *loss, const i64 *labels, i64 rows, Word<f64> ignored, i32 total) {
	meanOf(mean, count, loss, labels, rows, ignored, total);
}

// crossentropy_few is all of it for up to 128 rows.
KERNEL(512) NAME(crossentropy_few)(wide<ELEM> *mean, wide<ELEM> *stats, wide<ELEM> *count, const ELEM *x, const i64 *labels, i64 rows, i32 d,
                                    Number<wide<ELEM>> smoothing, Word<f64> ignored, Fault *fault, u32 launch) {
	__shared__ wide<ELEM> loss[128];
	crossEntropy(WarpTeam{}, loss, stats, x, Labels{labels, ignored, d, fault, launch}, rows, d, smoothing);
	barrier();
	meanOf(mean, count, loss, labels, rows, ignored, false);
}
#else
KERNELS(block, BlockTeam, 512)
HEADS(block, BlockTeam, 512)
#endif
