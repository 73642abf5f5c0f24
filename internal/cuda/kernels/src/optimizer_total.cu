// What an optimizer knows once the squares of all gradients are summed: the sum, or the norm with what follows from it. One
// block adds what sum_squares has left. And other small state that a step writes.
//
//warpline:module optimizer_total
#include "cell.cuh"

DEVICE f64 total(const f64 *sums, i64 n) {
	f64 sum = 0;
	for (i64 i = threadIdx.x; i < n; i += 256)
		sum += sums[i];
	for (int m = 16; m > 0; m /= 2)
		sum += shuffleXor(sum, m);
	__shared__ f64 warps[8];
	if (laneID() == 0)
		warps[threadIdx.x / 32] = sum;
	barrier();
	if (threadIdx.x == 0)
		for (int w = 1; w < 8; w++)
			sum += warps[w];
	return sum;
}

KERNEL(256) sum_squares_total_f32(f32 *out, const f64 *__restrict__ sums, i64 n) {
	f64 sum = total(sums, n);
	if (threadIdx.x == 0)
		*out = f32(sum);
}

KERNEL(256) sum_squares_total_f64(f64 *out, const f64 *__restrict__ sums, i64 n) {
	f64 sum = total(sums, n);
	if (threadIdx.x == 0)
		*out = sum;
}

// gradNorm leaves the norm times a factor, what gradients are multiplied by so that it is clip at most (if clip is not 0),
// and whether this step is skipped; if not, the parameters whose turn it is have one more update.
template <class T>
DEVICE void gradNorm(T *norm, T *scale, i64 *skip, i64 *counts, const i64 *before, const i64 *turn, i64 parameters, const f64 *sums, i64 n, f64 clip,
                     f64 factor, i64 judge) {
	__shared__ i64 skipped;
	f64 sum = total(sums, n);
	if (threadIdx.x == 0) {
		f64 length = factor * __nvvm_sqrt_rn_d(sum), part = clip / (length + 1e-6);
		T rounded = T(length);
		*norm = rounded;
		*scale = T(clip > 0 && !(part > 1) ? factor * part : factor);
		skipped = judge != 0 && !(rounded - rounded == 0);
		*skip = skipped;
	}
	barrier();
	for (i64 i = threadIdx.x; i < parameters; i += 256)
		counts[i] = before[i] + (skipped ? 0 : turn[i]);
}

KERNEL(256) grad_norm_f32(f32 *norm, f32 *scale, i64 *skip, i64 *counts, const i64 *before, const i64 *turn, i64 parameters, const f64 *__restrict__ sums,
                          i64 n, Word<f64> clip, Word<f64> factor, Word<i64> judge) {
	gradNorm(norm, scale, skip, counts, before, turn, parameters, sums, n, clip, factor, judge);
}

KERNEL(256) grad_norm_f64(f64 *norm, f64 *scale, i64 *skip, i64 *counts, const i64 *before, const i64 *turn, i64 parameters, const f64 *__restrict__ sums,
                          i64 n, Word<f64> clip, Word<f64> factor, Word<i64> judge) {
	gradNorm(norm, scale, skip, counts, before, turn, parameters, sums, n, clip, factor, judge);
}

// towards is x moved towards y by f, from the nearer of the two: x + (y-x) need not be y.
template <class T> DEVICE T towards(T x, T y, T f) { return f < T(0.5) ? x + f * (y - x) : y - (1 - f) * (y - x); }

// trackMoments is the update of a norm's running statistics by those of a batch.
template <class T>
DEVICE void trackMoments(T *mean, T *variance, i64 *count, const T *meanBefore, const T *varianceBefore, const i64 *countBefore, const T *batchMean,
                         const T *batchVariance, i32 n, T f, T factor) {
	i32 i = i32(globalThread());
	if (i < n) {
		mean[i] = towards(meanBefore[i], batchMean[i], f);
		variance[i] = towards(varianceBefore[i], batchVariance[i] * factor, f);
	}
	if (i == 0)
		*count = *countBefore + 1;
}

KERNEL(256) track_moments_f32(f32 *mean, f32 *variance, i64 *count, const f32 *meanBefore, const f32 *varianceBefore, const i64 *countBefore,
                              const f32 *batchMean, const f32 *batchVariance, i32 n, f32 f, f32 factor) {
	trackMoments(mean, variance, count, meanBefore, varianceBefore, countBefore, batchMean, batchVariance, n, f, factor);
}

KERNEL(256) track_moments_f64(f64 *mean, f64 *variance, i64 *count, const f64 *meanBefore, const f64 *varianceBefore, const i64 *countBefore,
                              const f64 *batchMean, const f64 *batchVariance, i32 n, f64 f, f64 factor) {
	trackMoments(mean, variance, count, meanBefore, varianceBefore, countBefore, batchMean, batchVariance, n, f, factor);
}

// Flags is where several optimizers say that they have skipped a step; its twin in Go is flagTable.
struct Flags {
	const i64 *at[256];
};

DEVICE f32 inverse(f32 v) { return f32(1 / f64(v)); }

// usable is whether gradients can be multiplied by v and divided again.
DEVICE bool usable(f32 v) {
	f32 i = inverse(v);
	return v > 0 && v - v == 0 && i - i == 0;
}

// loss_scale is the update of PyTorch's GradScaler. good is -1 where no smaller scale would do.
KERNEL(32) loss_scale(f32 *scale, f64 *inverted, i64 *good, const f32 *scaleBefore, const i64 *goodBefore, Flags skips, i32 n, Word<f64> growth,
                      Word<f64> backoff, Word<i64> interval) {
	if (threadIdx.x != 0)
		return;
	f32 s = *scaleBefore;
	i64 g = *goodBefore, found = 0;
	for (i32 i = 0; i < n; i++)
		found |= *skips.at[i];
	g = (g > 0 ? g : 0) + 1;
	f32 up = f32(f64(s) * growth), down = f32(f64(s) * backoff);
	if (found) {
		g = usable(down) ? 0 : -1;
		s = usable(down) ? down : s;
	} else if (g >= interval) {
		g = 0;
		s = usable(up) ? up : s;
	}
	*scale = s;
	*inverted = f64(inverse(s));
	*good = g;
}
