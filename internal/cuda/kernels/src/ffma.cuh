// A warp's work on exact f32 products: a tile of 32×64 sums, 8×8 to a lane. Lanes stand in 4 rows of 8. Operands come
// from the tiles of pipeline.cuh in 16-byte chunks: of a line's next four terms where k runs along the tile's rows, else
// of four lines at one term.
#pragma once
#include "base.cuh"
#include "epilogue.cuh"

DEVICE Vec<f32, 4> loadChunk(u32 at) {
	Vec<f32, 4> v;
	asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.v[0]), "=f"(v.v[1]), "=f"(v.v[2]), "=f"(v.v[3]) : "r"(at) : "memory");
	return v;
}

// Lines reads what a lane needs of one operand, of which its row or column of lanes has `lanes`: eight lines.
template <bool alongK, int lanes> struct Lines {
	u32 at, mine;

	// line is the first of the warp's lines in the tile, a multiple of 32; mine is the lane's place, below lanes.
	DEVICE Lines(u32 line, u32 mine) : mine(mine << 4) { at = alongK ? (line + mine) * 128 : line / 32 * (32 * 128); }

	// line is the i-th of the lane's lines, counted from the warp's first.
	DEVICE u32 line(int i) const {
		u32 m = mine >> 4;
		return alongK ? m + lanes * i : m * 4 + i / 4 * (4 * lanes) + i % 4;
	}

	// terms reads four terms, from 4·k on, of the i-th line; with alongK.
	DEVICE Vec<f32, 4> terms(u32 tile, int i, u32 k) const {
		static_assert(alongK);
		u32 chunk = mine ^ k << 4 ^ (lanes * i % 8 << 4);
		return loadChunk(tile + at + chunk + i * (lanes * 128));
	}

	// lines reads four lines, from 4·h on, of the k-th term; without alongK.
	DEVICE Vec<f32, 4> lines(u32 tile, int h, u32 k) const {
		static_assert(!alongK);
		u32 chunk = (mine ^ k % 8 << 4) ^ (lanes * h % 8 << 4);
		return loadChunk(tile + at + lanes * h / 8 * (32 * 128) + k * 128 + chunk);
	}
};

// LaneTile is the sums of a lane.
struct LaneTile {
	f32 sum[8][8] = {};

	// step adds the products of one stage: 32 terms.
	template <bool aAlongK, bool bAlongK> DEVICE void step(const Lines<aAlongK, 4> &la, u32 aTile, const Lines<bAlongK, 8> &lb, u32 bTile) {
#pragma unroll 1
		for (u32 k = 0; k < 32; k += 4) {
			f32 b[4][8];
			loadB(b, lb, bTile, k);
			if constexpr (aAlongK) {
#pragma unroll
				for (int i = 0; i < 8; i++) {
					Vec<f32, 4> a = la.terms(aTile, i, k / 4);
#pragma unroll
					for (int e = 0; e < 4; e++)
						addRow(i, a.v[e], b[e]);
				}
			} else {
#pragma unroll
				for (int e = 0; e < 4; e++)
#pragma unroll
					for (int h = 0; h < 2; h++) {
						Vec<f32, 4> a = la.lines(aTile, h, k + e);
#pragma unroll
						for (int i = 0; i < 4; i++)
							addRow(4 * h + i, a.v[i], b[e]);
					}
			}
		}
	}

	DEVICE void addRow(int i, f32 a, const f32 (&b)[8]) {
#pragma unroll
		for (int j = 0; j < 8; j++)
			sum[i][j] += a * b[j];
	}

	template <bool alongK> static DEVICE void loadB(f32 (&b)[4][8], const Lines<alongK, 8> &lb, u32 tile, u32 k) {
#pragma unroll
		for (int j = 0; j < 8; j++) {
			Vec<f32, 4> v;
			if constexpr (alongK)
				v = lb.terms(tile, j, k / 4);
			else
				v = lb.lines(tile, j % 2, k + j / 2);
#pragma unroll
			for (int e = 0; e < 4; e++)
				if constexpr (alongK)
					b[e][j] = v.v[e];
				else
					b[j / 2][j % 2 * 4 + e] = v.v[e];
		}
	}
};

// FmaBlock is what a block of warps does: tileRows×tileCols sums of f32 operands.
template <int tileRows, int tileCols, bool aAlong, bool bAlong> struct FmaBlock {
	typedef f32 Element;
	static const int rows = tileRows, cols = tileCols, threads = rows * cols / 64, depth = 32;
	static const bool aAlongK = aAlong, bAlongK = bAlong;

	u32 top = threadIdx.x / 32 / (cols / 64) * 32, left = threadIdx.x / 32 % (cols / 64) * 64;
	Lines<aAlongK, 4> la{top, laneID() / 8};
	Lines<bAlongK, 8> lb{left, laneID() % 8};
	LaneTile sums;

	DEVICE void step(u32 aTile, u32 bTile) { sums.step(la, aTile, lb, bTile); }

	// each calls f with the row and column of four neighbours. All threads must be done with the operands in shared memory.
	template <class F> DEVICE void each(u8 *shared, F &&f) const {
		const Staging<rows, cols, threads> staging{(f32 *)shared};
#pragma unroll
		for (int r = 0; r < 8; r++)
#pragma unroll
			for (int s = 0; s < 8; s++)
				staging.put(top + la.line(r), left + lb.line(s), sums.sum[r][s]);
		staging.each(f);
	}
};
