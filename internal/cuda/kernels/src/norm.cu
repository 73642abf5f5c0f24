// LayerNorm and RMSNorm of rows x[rows,d], and their gradients; teams and modules as in softmax.cu. Statistics take two passes.
// That of f32 also normalises sums x+f, which it stores, and its gradient adds what else reaches such a sum. What lies beside
// such a residual stream, f, the result and the gradients of both, may be of the type LOW.
//
// The gradients of weight and bias are sums over columns, by kernels of the modules named so. A block of 8 warps takes 128
// columns and a range of rows, its warps take the rows in turn, four columns a lane; the sums of the ranges go to parts and
// the last block of some columns adds them in their order. The number of ranges depends on the sizes only.
//
//warpline:module layernorm_f32 -DELEM=f32 -DCENTRED -DNAME(op)=op##_f32
//warpline:module layernorm_f64 -DELEM=f64 -DCENTRED -DNAME(op)=op##_f64
//warpline:module layernorm_f16 -DELEM=f16 -DCENTRED -DNAME(op)=op##_f16
//warpline:module layernorm_bf16 -DELEM=bf16 -DCENTRED -DNAME(op)=op##_bf16
//warpline:module layernorm_long_f32 -DELEM=f32 -DCENTRED -DNAME(op)=op##_f32 -DLONG
//warpline:module layernorm_long_f64 -DELEM=f64 -DCENTRED -DNAME(op)=op##_f64 -DLONG
//warpline:module layernorm_long_f16 -DELEM=f16 -DCENTRED -DNAME(op)=op##_f16 -DLONG
//warpline:module layernorm_long_bf16 -DELEM=bf16 -DCENTRED -DNAME(op)=op##_bf16 -DLONG
//warpline:module layernorm_columns_f32 -DELEM=f32 -DCENTRED -DNAME(op)=op##_f32 -DCOLUMNS
//warpline:module layernorm_columns_f64 -DELEM=f64 -DCENTRED -DNAME(op)=op##_f64 -DCOLUMNS
//warpline:module layernorm_columns_f16 -DELEM=f16 -DCENTRED -DNAME(op)=op##_f16 -DCOLUMNS
//warpline:module layernorm_columns_bf16 -DELEM=bf16 -DCENTRED -DNAME(op)=op##_bf16 -DCOLUMNS
//warpline:module layernorm_f32_bf16 -DELEM=f32 -DLOW=bf16 -DCENTRED -DNAME(op)=op##_f32_bf16
//warpline:module layernorm_long_f32_bf16 -DELEM=f32 -DLOW=bf16 -DCENTRED -DNAME(op)=op##_f32_bf16 -DLONG
//warpline:module layernorm_columns_f32_bf16 -DELEM=f32 -DLOW=bf16 -DCENTRED -DNAME(op)=op##_f32_bf16 -DCOLUMNS
//warpline:module rmsnorm_f32 -DELEM=f32 -DNAME(op)=op##_f32
//warpline:module rmsnorm_f64 -DELEM=f64 -DNAME(op)=op##_f64
//warpline:module rmsnorm_f16 -DELEM=f16 -DNAME(op)=op##_f16
//warpline:module rmsnorm_bf16 -DELEM=bf16 -DNAME(op)=op##_bf16
//warpline:module rmsnorm_long_f32 -DELEM=f32 -DNAME(op)=op##_f32 -DLONG
//warpline:module rmsnorm_long_f64 -DELEM=f64 -DNAME(op)=op##_f64 -DLONG
//warpline:module rmsnorm_long_f16 -DELEM=f16 -DNAME(op)=op##_f16 -DLONG
//warpline:module rmsnorm_long_bf16 -DELEM=bf16 -DNAME(op)=op##_bf16 -DLONG
//warpline:module rmsnorm_columns_f32 -DELEM=f32 -DNAME(op)=op##_f32 -DCOLUMNS
//warpline:module rmsnorm_columns_f64 -DELEM=f64 -DNAME(op)=op##_f64 -DCOLUMNS
//warpline:module rmsnorm_columns_f16 -DELEM=f16 -DNAME(op)=op##_f16 -DCOLUMNS
//warpline:module rmsnorm_columns_bf16 -DELEM=bf16 -DNAME(op)=op##_bf16 -DCOLUMNS
#include "last.cuh"
#include "rows.cuh"

// optional reads N elements, or gives a default where there is no such operand.
template <int N, class T> DEVICE Pack<wide<T>, N> optional(const T *p, i32 i, wide<T> otherwise) {
	if (p)
		return load<N>(p + i);
	Pack<wide<T>, N> out;
#pragma unroll
	for (int j = 0; j < N; j++)
		out[j] = otherwise;
	return out;
}

// isStream is whether other values are added to values of a type.
template <class T> constexpr bool isStream = sizeof(T) == 4;

// norm is LayerNorm if centred, else RMSNorm: (x - mean)·rstd·w + b, where w and b may be null. With f it is that of x + f,
// which goes to sum.
template <bool centred, class Team, class T, class L>
DEVICE void norm(Team team, L *y, wide<T> *means, wide<T> *rstds, const T *x, const T *w, const T *b, i64 rows, i32 d,
                 wide<T> eps, const L *f, T *sum) {
	typedef wide<T> W;
	bool steps = inSteps<perStep<T>>(d, x, w, b, sum) && inSteps<perStep<T>>(d, y, f);
	for (i64 row = team.first(); row < rows; row += team.stride()) {
		const T *from = x + row * d;
		L *to = y + row * d;
		W mean = 0, squares = 0;
		if (centred) {
			sweep<T>(team, steps, d, [&](auto width, i32 i) {
				auto v = load<width.value>(from + i);
				if (isStream<T> && f) {
					auto more = load<width.value>(f + row * d + i);
#pragma unroll
					for (int j = 0; j < width.value; j++)
						v[j] = widen(narrow<T>(v[j] + more[j]));
					store<width.value>(sum + row * d + i, v);
				}
#pragma unroll
				for (int j = 0; j < width.value; j++)
					mean += v[j];
			});
			mean = team.all(mean, Plus{}) / d;
			if (isStream<T> && f)
				from = sum + row * d; // of which each thread reads what it stored
		}
		sweep<T>(team, steps, d, [&](auto width, i32 i) {
			auto v = load<width.value>(from + i);
#pragma unroll
			for (int j = 0; j < width.value; j++)
				squares += (v[j] - mean) * (v[j] - mean);
		});
		W rstd = 1 / sqrt(team.all(squares, Plus{}) / d + eps);
		if (team.rank() == 0) {
			if (centred)
				means[row] = mean;
			rstds[row] = rstd;
		}
		sweep<T>(team, steps, d, [&](auto width, i32 i) {
			auto v = load<width.value>(from + i);
			auto scale = optional<width.value>(w, i, 1), shift = optional<width.value>(b, i, 0);
#pragma unroll
			for (int j = 0; j < width.value; j++)
				v[j] = (v[j] - mean) * rstd * scale[j] + shift[j];
			store<width.value>(to + i, v);
		});
	}
}

// normGrad is dx = rstd·(h - mean(h) - x̂·mean(h·x̂)) with x̂ = (x - mean)·rstd and h = g·w, without mean(h) for RMSNorm; with
// more that is added. low, or null, is where dx goes in another type too.
template <bool centred, class Team, class T, class L>
DEVICE void normGrad(Team team, T *dx, const L *g, const T *x, const wide<T> *means, const wide<T> *rstds, const T *w, i64 rows,
                     i32 d, const T *more, L *low) {
	typedef wide<T> W;
	bool steps = inSteps<perStep<T>>(d, dx, x, w, more) && inSteps<perStep<T>>(d, g, low);
	for (i64 row = team.first(); row < rows; row += team.stride()) {
		i64 at = row * d;
		W mean = centred ? means[row] : W(0), rstd = rstds[row], plain = 0, along = 0;
		sweep<T>(team, steps, d, [&](auto width, i32 i) {
			auto v = load<width.value>(x + at + i), h = load<width.value>(g + at + i);
			auto scale = optional<width.value>(w, i, 1);
#pragma unroll
			for (int j = 0; j < width.value; j++) {
				plain += h[j] * scale[j];
				along += h[j] * scale[j] * ((v[j] - mean) * rstd);
			}
		});
		plain = centred ? team.all(plain, Plus{}) / d : W(0);
		along = team.all(along, Plus{}) / d;
		sweep<T>(team, steps, d, [&](auto width, i32 i) {
			auto v = load<width.value>(x + at + i), h = load<width.value>(g + at + i);
			auto scale = optional<width.value>(w, i, 1);
#pragma unroll
			for (int j = 0; j < width.value; j++)
				v[j] = rstd * (h[j] * scale[j] - plain - (v[j] - mean) * rstd * along);
			if (isStream<T> && more) {
				auto other = load<width.value>(more + at + i);
#pragma unroll
				for (int j = 0; j < width.value; j++)
					v[j] += other[j];
			}
			store<width.value>(dx + at + i, v);
			if (isStream<T> && low)
				store<width.value>(low + at + i, v);
		});
	}
}

const int columns = 128, columnsPerLane = 4, columnWarps = 8;

// columnSums leaves Σ g·x̂ and, if centred, Σ g over rows of the block's range in parts[range][2][d], and the sums of all in
// dw and db, of which either may be null.
template <bool centred, class T, class L>
DEVICE void columnSums(T *dw, T *db, u32 *tickets, wide<T> *parts, const L *g, const T *x, const wide<T> *means, const wide<T> *rstds, i64 rows, i32 d,
                       i64 perRange) {
	typedef wide<T> W;
	const int n = columnsPerLane;
	__shared__ W shared[columnWarps][2][columns];
	bool steps = inSteps<n>(d, g) && inSteps<n>(d, x);
	i32 lane = laneID(), warp = threadIdx.x / 32, first = blockIdx.x * columns;
	i64 end = (blockIdx.y + 1) * perRange < rows ? (blockIdx.y + 1) * perRange : rows;
	W along[n] = {}, plain[n] = {};
	for (i64 row = blockIdx.y * perRange + warp; row < end; row += columnWarps) {
		W mean = centred ? means[row] : W(0), rstd = rstds[row];
		const L *gs = g + row * d + first;
		const T *xs = x + row * d + first;
		if (steps) {
			if (first + lane * n >= d)
				break;
			auto grad = load<n>(gs + lane * n), v = load<n>(xs + lane * n);
#pragma unroll
			for (int j = 0; j < n; j++) {
				along[j] += grad[j] * ((v[j] - mean) * rstd);
				plain[j] += grad[j];
			}
		} else {
#pragma unroll
			for (int j = 0; j < n; j++)
				if (first + lane + 32 * j < d) {
					W grad = widen(gs[lane + 32 * j]);
					along[j] += grad * ((widen(xs[lane + 32 * j]) - mean) * rstd);
					plain[j] += grad;
				}
		}
	}
#pragma unroll
	for (int j = 0; j < n; j++) {
		shared[warp][0][steps ? lane * n + j : lane + 32 * j] = along[j];
		shared[warp][1][steps ? lane * n + j : lane + 32 * j] = plain[j];
	}
	barrier();
	i32 which = threadIdx.x / columns, column = first + threadIdx.x % columns;
	T *to = which ? db : dw;
	bool mine = column < d && to;
	W *part = parts + i64(which) * d + column;
	if (mine) {
		W sum = 0;
#pragma unroll
		for (int i = 0; i < columnWarps; i++)
			sum += shared[i][which][column - first];
		part[i64(blockIdx.y) * 2 * d] = sum;
	}
	if (lastOfColumn(tickets) && mine)
		to[column] = narrow<T>(inOrder(part, gridDim.y, i64(2) * d));
}

typedef wide<ELEM> STAT;
#ifndef LOW
#define LOW ELEM
#endif

#ifdef COLUMNS
#ifdef CENTRED
KERNEL(columnWarps * 32)
NAME(layernormgrad_columns)(ELEM *dw, ELEM *db, u32 *tickets, STAT *parts, const LOW *g, const ELEM *x, const STAT *mean,
                            const STAT *rstd, i64 rows, i32 d, i64 perRange) {
	columnSums<true>(dw, db, tickets, parts, g, x, mean, rstd, rows, d, perRange);
}
#else
KERNEL(columnWarps * 32)
NAME(rmsnormgrad_columns)(ELEM *dw, u32 *tickets, STAT *parts, const ELEM *g, const ELEM *x, const STAT *rstd, i64 rows, i32 d,
                          i64 perRange) {
	columnSums<false>(dw, (ELEM *)nullptr, tickets, parts, g, x, (const STAT *)nullptr, rstd, rows, d, perRange);
}
#endif
#else

#ifdef CENTRED
#define KERNELS(suffix, Team, threads, blocks, gradBlocks)                                                               \
	KERNEL(threads, blocks)                                                                                              \
	NAME(layernorm_##suffix)(LOW * y, STAT * mean, STAT * rstd, const ELEM *x, const ELEM *w, const ELEM *b, i64 rows,   \
	                         i32 d, STAT eps, const LOW *f, ELEM *sum) {                                                 \
		norm<true>(Team{}, y, mean, rstd, x, w, b, rows, d, eps, f, sum);                                                \
	}                                                                                                                    \
	KERNEL(threads, gradBlocks)                                                                                          \
	NAME(layernormgrad_##suffix)(ELEM * dx, const LOW *g, const ELEM *x, const STAT *mean, const STAT *rstd,             \
	                             const ELEM *w, i64 rows, i32 d, const ELEM *more, LOW *low) {                           \
		normGrad<true>(Team{}, dx, g, x, mean, rstd, w, rows, d, more, low);                                             \
	}
#else
#define KERNELS(suffix, Team, threads, blocks, gradBlocks)                                                               \
	KERNEL(threads, blocks)                                                                                              \
	NAME(rmsnorm_##suffix)(ELEM * y, STAT * rstd, const ELEM *x, const ELEM *w, i64 rows, i32 d, STAT eps) {             \
		norm<false>(Team{}, y, (STAT *)nullptr, rstd, x, w, (const ELEM *)nullptr, rows, d, eps,                         \
		            (const ELEM *)nullptr, (ELEM *)nullptr);                                                         \
	}                                                                                                                    \
	KERNEL(threads, gradBlocks)                                                                                          \
	NAME(rmsnormgrad_##suffix)(ELEM * dx, const ELEM *g, const ELEM *x, const STAT *rstd, const ELEM *w, i64 rows,       \
	                           i32 d) {                                                                                  \
		normGrad<false>(Team{}, dx, g, x, (const STAT *)nullptr, rstd, w, rows, d, (const ELEM *)nullptr,                \
		                (ELEM *)nullptr);                                                                                \
	}
#endif

#ifndef LONG
KERNELS(warp, WarpTeam, 256, sizeof(STAT) == 8 ? 2 : 4, sizeof(STAT) == 8 ? 2 : 3)
#else
KERNELS(block, BlockTeam, 512, sizeof(STAT) == 8 ? 1 : 2, sizeof(STAT) == 8 ? 1 : 2)
#endif
#endif
