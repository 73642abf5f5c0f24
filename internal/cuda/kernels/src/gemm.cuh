// What the kernels for products of matrices share: the description of a product, the order of tiles, and the way of a tile
// from copies through a block's sums to the epilogue.
#pragma once
#include "base.cuh"
#include "epilogue.cuh"
#include "pipeline.cuh"

const int maxBatchDims = 6;

// Product is c[batch][m][n] = a[batch][m][k]·b[batch][k][n] with c row-major. Strides count elements; any are allowed.
// The Go planner lays out the same fields.
struct Product {
	i64 aRow, aCol, bRow, bCol;
	i64 aStep[maxBatchDims], bStep[maxBatchDims]; // of the batch's dimensions
	i32 size[maxBatchDims];
	i32 rank, m, n, k;
	i32 splits, perSplit; // parts that k is cut into, each but the last of perSplit
	i32 work;             // tiles in all; elements of the result for dot
	i32 pitch; // elements from row to row of c
	i32 adds;  // whether partial sums are added to what is there
	i32 unused; // to a multiple of 8 bytes
};

// batchAt is where the operands of one product of the batch begin.
DEVICE void batchAt(const Product &p, i32 batch, i64 &a, i64 &b) {
	a = b = 0;
	for (i32 d = p.rank - 1; d >= 0; d--) {
		i32 at = batch % p.size[d];
		batch /= p.size[d];
		a += at * p.aStep[d];
		b += at * p.bStep[d];
	}
}

// Tile is a block's share of the result at a time.
struct Tile {
	i32 batch, split, row, col; // row and col of its first element
};

// tileAt is the i-th tile in the order in which blocks take them: a grid of any size does all. Neighbours in time lie in
// bands of eight rows of tiles, whose operands the second-level cache then holds.
template <int rows, int cols> DEVICE Tile tileAt(i32 m, i32 n, i32 splits, i32 i) {
	const i32 band = 8;
	i32 down = (opaque(m) - 1) / rows + 1, across = (n - 1) / cols + 1, perBatch = down * across;
	i32 product = i / perBatch, in = i - product * perBatch;
	i32 first = in / (band * across) * band;
	i32 high = down - first < band ? down - first : band, rest = in - first * across;
	Tile t;
	t.batch = product / splits;
	t.split = product - t.batch * splits;
	t.row = (first + rest % high) * rows;
	t.col = rest / high * cols;
	return t;
}

// storeSums passes a block's sums on: to the result, whose rows are pitch elements apart, or as they are to its part of the
// partial sums, if there are such: when k is cut, and where a result of 16 bits is wanted in f32.
template <class Block, class E> DEVICE void storeSums(const Block &block, u8 *shared, i32 m, i32 n, i32 pitch, i32 splits, const Tile &at, E *c, Epilogue end, f32 *partial, bool adds) {
	i64 size = i64(m) * pitch;
	if (end.before)
		end.before = (E *)end.before + at.batch * size;
	Rows<E> rows{c + at.batch * size, end, m, n, pitch, partial ? partial + (i64(at.batch) * splits + at.split) * (i64(m) * n) : 0, adds};
	block.each(shared, [&](u32 r, u32 s, const Vec<f32, 4> &v) INLINED { rows(at.row + r, at.col + s, v); });
}

// gemm makes a block's tiles of a product. What comes after the sums is for rows times rows, as Linear has them; other
// layouts are compiled without it.
template <class Block, int stages, bool byWords = false, class E> DEVICE void gemm(u8 *shared, E *c, const E *a, const E *b, const Epilogue &end, f32 *partial, const Product &p) {
	typedef MatrixCopy<E, Block::rows, Block::aAlongK, Block::threads, byWords> CopyA;
	typedef MatrixCopy<E, Block::cols, Block::bAlongK, Block::threads, byWords> CopyB;
#pragma unroll 1
	for (i32 i = blockIdx.x; i < p.work; i += gridDim.x) {
		Tile at = tileAt<Block::rows, Block::cols>(p.m, p.n, p.splits, i);
		i64 aAt, bAt;
		batchAt(p, at.batch, aAt, bAt);
		i32 k = at.split * p.perSplit, terms = p.k - k < p.perSplit ? p.k - k : p.perSplit;
		CopyA copyA(a + aAt + at.row * p.aRow + k * p.aCol, p.aRow, p.aCol, p.m - at.row);
		CopyB copyB(b + bAt + at.col * p.bCol + k * p.bRow, p.bCol, p.bRow, p.n - at.col);
		Block block;
		feed<stages, CopyA::bytes + CopyB::bytes, Block::depth>(
			sharedAddress(shared), terms,
			[&](u32 stage, i32 left) INLINED {
				copyA.fill(stage, left);
				copyB.fill(stage + CopyA::bytes, left);
			},
			[&](u32 stage) INLINED { block.step(stage, stage + CopyA::bytes); },
			[&](u32 stage, i32 left) INLINED {
				copyA.settle(stage, left, stages - 1);
				copyB.settle(stage + CopyA::bytes, left, stages - 1);
			});
		at = tileAt<Block::rows, Block::cols>(p.m, p.n, p.splits, opaque(i)); // again, so that no register holds it meanwhile
		storeSums(block, shared, p.m, p.n, p.pitch, p.splits, at, c, Block::aAlongK && Block::bAlongK ? end : Epilogue{}, partial, p.adds);
	}
}
