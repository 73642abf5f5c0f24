// Movement of elements by their size: copies between any strides, and choices. Nothing is computed, so one kernel serves
// all types of a size.
//
// A transposition goes through shared memory: a block of 8 warps reads squares of 32×32 elements along the dimension in
// which the source is contiguous and writes them along the one in which the result is. The rows of a square are padded
// by a bank, so that neither direction has conflicts.
//
//warpline:module copy_1 -DELEMENT=u8 -DNAME(op)=op##_1
//warpline:module copy_2 -DELEMENT=u16 -DNAME(op)=op##_2
//warpline:module copy_4 -DELEMENT=u32 -DNAME(op)=op##_4
//warpline:module copy_8 -DELEMENT=u64 -DNAME(op)=op##_8
#include "layout.cuh"

typedef ELEMENT T;

// Operand 0 of the layout is the result.
KERNEL(256) NAME(copy)(T *out, const T *x, const Layout<2> l) {
	const int W = 16 / sizeof(T);
	for (u32 i = globalThread(); i < l.chunks; i += u32(globalThreads())) {
		Chunk<2> c = locate<W>(l, i);
		store<W>(out + c.at[0], l.step[0], c.n, load<W>(x + c.at[1], l.step[1], c.n));
	}
}

KERNEL(256) NAME(where)(T *out, const boolean *c, const T *x, const T *y, const Layout<3> l) {
	const int W = sizeof(T) == 1 ? 8 : 16 / sizeof(T);
	for (u32 i = globalThread(); i < l.chunks; i += u32(globalThreads())) {
		Chunk<3> at = locate<W>(l, i);
		Vec<boolean, W> truth = load<W>(c + at.at[0], l.step[0], at.n);
		Vec<T, W> a = load<W>(x + at.at[1], l.step[1], at.n);
		Vec<T, W> b = load<W>(y + at.at[2], l.step[2], at.n);
		for (int k = 0; k < W; k++)
			a.v[k] = truth.v[k] ? a.v[k] : b.v[k];
		store<W>(out + at.out, 1, at.n, a);
	}
}

// Squares says where the squares of a transposition are: those along the columns of the result first, then those along
// its rows, then the other dimensions. Its twin in Go is squares.
struct Squares {
	u32 count, rows, columns; // rows and columns in elements
	u32 outer;                // number of other dimensions
	Divisor across, down;     // squares along a row and along a column
	i64 row[2], column[2];    // strides of the result and of the source
	Dim<2> dims[6];
};

const u32 side = 32, warps = 8;

// origin is where a square begins in the result and in the source: dims counts the squares' other dimensions.
DEVICE Chunk<2> origin(const Squares &s, u32 rest) {
	Chunk<2> c = {};
#pragma unroll 1
	for (u32 d = 0; d < s.outer; d++) {
		const Dim<2> &dim = s.dims[d];
		u32 next = rest / dim.size, i = rest - next * dim.size.by;
		c.at[0] += i * dim.stride[0];
		c.at[1] += i * dim.stride[1];
		rest = next;
	}
	return c;
}

DEVICE u32 atMost(u32 x, u32 y) { return x < y ? x : y; }

// What a square has beyond the edges is read from within them, so that all of a thread's loads are under way at once, and
// not written.
KERNEL(256) NAME(transpose)(T *out, const T *x, const Squares s) {
	const u32 pad = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
	__shared__ T square[side][side + pad];
	u32 lane = threadIdx.x % side, warp = threadIdx.x / side;
	for (u32 i = blockIdx.x; i < s.count; i += gridDim.x) {
		u32 line = i / s.across, batch = line / s.down;
		u32 column = (i - line * s.across.by) * side, row = (line - batch * s.down.by) * side;
		Chunk<2> c = origin(s, batch);
		const T *from = x + c.at[1] + atMost(row + lane, s.rows - 1) * s.row[1];
		T v[side / warps];
		for (u32 k = 0; k < side / warps; k++)
			v[k] = from[atMost(column + warp + k * warps, s.columns - 1) * s.column[1]];
		for (u32 k = 0; k < side / warps; k++)
			square[warp + k * warps][lane] = v[k];
		barrier();
		T *to = out + c.at[0] + (column + lane) * s.column[0] + (row + warp) * s.row[0];
		for (u32 k = 0; k < side / warps; k++, to += warps * s.row[0])
			if (column + lane < s.columns && row + warp + k * warps < s.rows)
				*to = square[lane][warp + k * warps];
		barrier();
	}
}
