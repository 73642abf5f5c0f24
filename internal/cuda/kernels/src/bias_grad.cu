// The gradient of a product's sums and bias from that of what an activation made of them, in one pass: d = g·act'(x), and
// sums of d, or of g alone, over the rows.
//
// A block of 8 warps takes 128 columns and a range of rows, its warps take the rows in turn, four columns a lane. The last
// block of some columns adds the sums of the ranges in their order. The number of ranges depends on the sizes only.
//
//warpline:module bias_grad_f32 -DT=f32 -DNAME(op)=op##_f32
//warpline:module bias_grad_f64 -DT=f64 -DNAME(op)=op##_f64
//warpline:module bias_grad_f16 -DT=f16 -DNAME(op)=op##_f16
//warpline:module bias_grad_bf16 -DT=bf16 -DNAME(op)=op##_bf16
#include "epilogue.cuh"
#include "last.cuh"
#include "rows.cuh"

typedef wide<T> W;

const int columns = 128, perLane = 4, warps = 8;

// slope is g times an activation's derivative at x, for ReLU at a place where its result is x.
DEVICE W slope(W x, W g, i32 act) {
	switch (act) {
	case actReLU:
		return x <= 0 ? W(0) : g;
	case actGELU:
		return geluGrad(x, g);
	case actGELUTanh:
		return geluTanhGrad(x, g);
	case actSiLU:
		return siluGrad(x, g);
	}
	return g;
}

// slopes takes its numbers in turn: the code of all side by side would be long.
DEVICE void slopes(Pack<W, perLane> &v, Pack<W, perLane> &x, i32 act) {
#pragma unroll 1
	for (int e = 0; e < perLane; e++) {
		W d = slope(x[0], v[0], act);
#pragma unroll
		for (int l = 1; l < perLane; l++) {
			x[l - 1] = x[l];
			v[l - 1] = v[l];
		}
		v[perLane - 1] = d;
	}
}

// Lane is a lane's columns: four neighbours if in steps, else four that lie 32 apart. Beyond the last there are zeros.
struct Lane {
	i32 first, n;
	bool steps;

	DEVICE i32 column(int j) const { return steps ? first + laneID() * perLane + j : first + laneID() + 32 * j; }
	DEVICE bool has(int j) const { return column(j) < n; }
	DEVICE Pack<W, perLane> read(const T *row) const {
		if (steps && has(0))
			return load<perLane>(row + column(0));
		Pack<W, perLane> v;
#pragma unroll
		for (int j = 0; j < perLane; j++)
			v[j] = !steps && has(j) ? widen(row[column(j)]) : W(0);
		return v;
	}
	DEVICE void write(T *row, const Pack<W, perLane> &v) const {
		if (steps && has(0)) {
			store<perLane>(row + column(0), v);
			return;
		}
#pragma unroll
		for (int j = 0; j < perLane; j++)
			if (!steps && has(j))
				row[column(j)] = narrow<T>(v[j]);
	}
};

// bias_grad leaves the sums in total, of type W if that is asked for, else T.
KERNEL(warps * 32)
NAME(bias_grad)(void *total, i32 isWide, u32 *tickets, W *parts, T *__restrict__ d, const T *__restrict__ g,
                const T *__restrict__ x, i64 rows, i32 n, i64 perRange, i32 act) {
	__shared__ W shared[warps][columns];
	i32 warp = threadIdx.x / 32, first = blockIdx.x * columns;
	i64 begin = blockIdx.y * perRange, end = begin + perRange < rows ? begin + perRange : rows;
	Lane lane{first, n, act == noAct ? inSteps<perLane>(n, g) : inSteps<perLane>(n, g, d, x)};
	W sums[perLane] = {};
	for (i64 row = begin + warp; row < end; row += warps) {
		auto v = lane.read(g + row * n);
		if (act != noAct) {
			auto at = lane.read(x + row * n);
			slopes(v, at, act);
			lane.write(d + row * n, v);
		}
#pragma unroll
		for (int j = 0; j < perLane; j++)
			sums[j] += v[j];
	}
#pragma unroll
	for (int j = 0; j < perLane; j++)
		shared[warp][lane.column(j) - first] = sums[j];
	barrier();
	i32 column = first + threadIdx.x;
	bool mine = threadIdx.x < columns && column < n;
	if (mine) {
		W sum = 0;
#pragma unroll
		for (int i = 0; i < warps; i++)
			sum += shared[i][threadIdx.x];
		parts[i64(blockIdx.y) * n + column] = sum;
	}
	if (!lastOfColumn(tickets) || !mine)
		return;
	W sum = inOrder(parts + column, gridDim.y, n);
	if (isWide)
		((W *)total)[column] = sum;
	else
		((T *)total)[column] = narrow<T>(sum);
}
