// The attention kernels (attention_tiled.cuh) of 16-bit elements on the tensor cores, for heads of up to 128.
//
// A warp has 16 rows. Scores come as 16×8 sums of mma.sync and lie in the registers as the first operand of the second
// product wants them: nothing goes through shared memory but the tiles.
//
// Weights and gradients of scores are rounded to two 16-bit numbers each, a large and a small part, whose products are both
// added: results are as accurate as those of float32 weights, for half as many mma again. In float16 a gradient of a score
// beyond 65504 is infinite, as it is in PyTorch; scaling of the loss backs off then.
//
//warpline:module attention_mma_32_f16 -DELEM=f16 -DWIDTH=32 -DMASKED=false -DNAME(op)=op##_32_f16 @sm_80
//warpline:module attention_mma_32_masked_f16 -DELEM=f16 -DWIDTH=32 -DMASKED=true -DNAME(op)=op##_32_masked_f16
//warpline:module attention_mma_64_f16 -DELEM=f16 -DWIDTH=64 -DMASKED=false -DNAME(op)=op##_64_f16 @sm_80
//warpline:module attention_mma_64_masked_f16 -DELEM=f16 -DWIDTH=64 -DMASKED=true -DNAME(op)=op##_64_masked_f16
//warpline:module attention_mma_128_f16 -DELEM=f16 -DWIDTH=128 -DMASKED=false -DNAME(op)=op##_128_f16 @sm_80
//warpline:module attention_mma_128_masked_f16 -DELEM=f16 -DWIDTH=128 -DMASKED=true -DNAME(op)=op##_128_masked_f16
//warpline:module attention_mma_32_bf16 -DELEM=bf16 -DWIDTH=32 -DMASKED=false -DNAME(op)=op##_32_bf16 @sm_80
//warpline:module attention_mma_32_masked_bf16 -DELEM=bf16 -DWIDTH=32 -DMASKED=true -DNAME(op)=op##_32_masked_bf16
//warpline:module attention_mma_64_bf16 -DELEM=bf16 -DWIDTH=64 -DMASKED=false -DNAME(op)=op##_64_bf16 @sm_80
//warpline:module attention_mma_64_masked_bf16 -DELEM=bf16 -DWIDTH=64 -DMASKED=true -DNAME(op)=op##_64_masked_bf16
//warpline:module attention_mma_128_bf16 -DELEM=bf16 -DWIDTH=128 -DMASKED=false -DNAME(op)=op##_128_bf16 @sm_80
//warpline:module attention_mma_128_masked_bf16 -DELEM=bf16 -DWIDTH=128 -DMASKED=true -DNAME(op)=op##_128_masked_bf16
//warpline:module attentiongrad_mma_32_f16 -DELEM=f16 -DWIDTH=32 -DMASKED=false -DNAME(op)=op##_32_f16 -DGRAD @sm_80
//warpline:module attentiongrad_mma_32_masked_f16 -DELEM=f16 -DWIDTH=32 -DMASKED=true -DNAME(op)=op##_32_masked_f16 -DGRAD
//warpline:module attentiongrad_mma_64_f16 -DELEM=f16 -DWIDTH=64 -DMASKED=false -DNAME(op)=op##_64_f16 -DGRAD @sm_80
//warpline:module attentiongrad_mma_64_masked_f16 -DELEM=f16 -DWIDTH=64 -DMASKED=true -DNAME(op)=op##_64_masked_f16 -DGRAD
//warpline:module attentiongrad_mma_128_f16 -DELEM=f16 -DWIDTH=128 -DMASKED=false -DNAME(op)=op##_128_f16 -DGRAD @sm_80
//warpline:module attentiongrad_mma_128_masked_f16 -DELEM=f16 -DWIDTH=128 -DMASKED=true -DNAME(op)=op##_128_masked_f16 -DGRAD
//warpline:module attentiongrad_mma_32_bf16 -DELEM=bf16 -DWIDTH=32 -DMASKED=false -DNAME(op)=op##_32_bf16 -DGRAD @sm_80
//warpline:module attentiongrad_mma_32_masked_bf16 -DELEM=bf16 -DWIDTH=32 -DMASKED=true -DNAME(op)=op##_32_masked_bf16 -DGRAD
//warpline:module attentiongrad_mma_64_bf16 -DELEM=bf16 -DWIDTH=64 -DMASKED=false -DNAME(op)=op##_64_bf16 -DGRAD @sm_80
//warpline:module attentiongrad_mma_64_masked_bf16 -DELEM=bf16 -DWIDTH=64 -DMASKED=true -DNAME(op)=op##_64_masked_bf16 -DGRAD
//warpline:module attentiongrad_mma_128_bf16 -DELEM=bf16 -DWIDTH=128 -DMASKED=false -DNAME(op)=op##_128_bf16 -DGRAD @sm_80
//warpline:module attentiongrad_mma_128_masked_bf16 -DELEM=bf16 -DWIDTH=128 -DMASKED=true -DNAME(op)=op##_128_masked_bf16 -DGRAD
#include "attention_tiled.cuh"
#include "mma.cuh"

// Two neighbours as a register of mma.sync has them.
#if TURING
template <class T> DEVICE u32 pairOf(T, f32 low, f32 high) { return u32(narrow<T>(high).bits) << 16 | narrow<T>(low).bits; }
#else
DEVICE u32 pairOf(bf16, f32 low, f32 high) {
	u32 r;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
	return r;
}
DEVICE u32 pairOf(f16, f32 low, f32 high) {
	u32 r;
	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
	return r;
}
#endif
template <class T> DEVICE f32 lowOf(u32 pair) { return widen(T{u16(pair)}); }
template <class T> DEVICE f32 highOf(u32 pair) { return widen(T{u16(pair >> 16)}); }
template <> DEVICE f32 highOf<bf16>(u32 pair) { return __builtin_bit_cast(f32, pair & 0xffff0000); }

const int ownRows = 64;

// OwnRows is the first operand of a product, 16 rows of the block's own for each warp: kept in registers, or where these
// are short read again for each tile.
template <class T, int D, bool kept> struct OwnRows {
	u32 from, held[kept ? D / 16 : 1][4];

	DEVICE OwnRows(u32 tile) : from(tile + placeOf(threadIdx.x / 32 * 16 + laneID() % 16, laneID() / 16)) {}

	DEVICE void read(u32 (&r)[4], int k) const {
		loadMatrices(r, (from ^ k % 4 << 5) + k / 4 * HeadTile<T, D, ownRows>::panelBytes);
	}
	// arrive reads the rows once they are there.
	DEVICE void arrive() {
		if constexpr (kept)
#pragma unroll
			for (int k = 0; k < D / 16; k++)
				read(held[k], k);
	}
	DEVICE void get(u32 (&r)[4], int k) const {
		if constexpr (kept)
#pragma unroll
			for (int i = 0; i < 4; i++)
				r[i] = held[k][i];
		else
			read(r, k);
	}
};

#if TURING
// OwnRows of bf16, which goes to no tensor core, are a lane's rows of its sums, two terms at a time.
template <int D, bool kept> struct OwnRows<bf16, D, kept> {
	u32 from;

	DEVICE OwnRows(u32 tile) : from(tile + placeOf(threadIdx.x / 32 * 16 + laneID() / 4, 0)) {}
	DEVICE void arrive() {}
	// get reads the terms k, an even number, and k+1 of the r-th row.
	DEVICE u32 get(int r, u32 k) const { return loadPair((from ^ k / 8 % 8 << 4) + k / 64 * HeadTile<bf16, D, ownRows>::panelBytes + k % 8 * 2 + r * (8 * 128)); }
};
#endif

// MmaScores is a warp's 16 rows by n columns of sums.
template <class T, int n> struct MmaScores {
	static const int width = n, lines = 2, lineStep = 8, columns = n / 4, lanes = 4;

	f32 at[n / 8][4];

	static DEVICE i32 line(int r) { return warpFirst() + laneID() / 4 + r * lineStep; }
	static DEVICE i32 warpFirst() { return threadIdx.x / 32 * 16; }
	static DEVICE i32 warpLast() { return warpFirst() + 15; }
	static DEVICE i32 column() { return laneID() % 4 * 2; }
	static DEVICE constexpr i32 offset(int c) { return c / 2 * 8 + c % 2; }
	DEVICE f32 &operator()(int r, int c) { return at[c / 2][2 * r + c % 2]; }

	template <class F> DEVICE void each(F &&f) {
#pragma unroll
		for (int c = 0; c < columns; c++)
#pragma unroll
			for (int r = 0; r < lines; r++)
				f((*this)(r, c), r, c);
	}

	// product makes it own·tileᵀ.
	template <int D, bool kept> DEVICE void product(const OwnRows<T, D, kept> &own, u32 tile) {
		each([&](f32 &x, int, int) INLINED { x = 0; });
		if constexpr (onTensorCores<T>)
			addTensor(own, tile);
		else
			addSingly(own, tile);
	}

	template <int D, bool kept> DEVICE void addTensor(const OwnRows<T, D, kept> &own, u32 tile) {
		u32 from = tile + placeOf(laneID() / 16 * 8 + laneID() % 8, laneID() / 8 % 2);
#pragma unroll
		for (int k = 0; k < D / 16; k++) {
			u32 a[4];
			own.get(a, k);
#pragma unroll
			for (int j = 0; j < n / 16; j++) {
				u32 b[4];
				loadMatrices(b, (from ^ k % 4 << 5) + k / 4 * HeadTile<T, D, n>::panelBytes + j * (16 * 128));
				multiply(T{}, at[2 * j], a, b[0], b[1]);
				multiply(T{}, at[2 * j + 1], a, b[2], b[3]);
			}
		}
	}

	// addSingly adds by multiply-adds, in the order of terms.
	template <int D, bool kept> DEVICE void addSingly(const OwnRows<T, D, kept> &own, u32 tile) {
		u32 from[2] = {tile + placeOf(column(), 0), tile + placeOf(column() + 1, 0)};
#pragma unroll 1
		for (u32 k = 0; k < D; k += 2) {
			u32 a[2] = {own.get(0, k), own.get(1, k)}, b[columns];
#pragma unroll
			for (int c = 0; c < columns; c++)
				b[c] = loadPair((from[c % 2] ^ k / 8 % 8 << 4) + k / 64 * HeadTile<T, D, n>::panelBytes + k % 8 * 2 + c / 2 * (8 * 128));
			each([&](f32 &x, int r, int c) INLINED {
				x += lowHalf(a[r]) * lowHalf(b[c]);
				x += highHalf(a[r]) * highHalf(b[c]);
			});
		}
	}
};

// MmaResult is a warp's 16 rows by D columns of sums.
template <class T, int D> struct MmaResult {
	f32 at[D / 8][4] = {};

	DEVICE MmaResult(u32) {}

	// add adds weights·tile.
	template <int n> DEVICE void add(const MmaScores<T, n> &weights, u32 tile) {
		if constexpr (onTensorCores<T>)
			addTensor(weights, tile);
		else
			addSingly(weights, tile);
	}

	// addSingly adds by multiply-adds: of every eight weights of a row each of four lanes has two, which it hands to the others.
	template <int n> DEVICE void addSingly(const MmaScores<T, n> &weights, u32 tile) {
		auto of = [](f32 x, u32 lane) INLINED { return __builtin_bit_cast(f32, shuffle(__builtin_bit_cast(u32, x), lane)); };
#pragma unroll 1
		for (u32 t = 0; t < 4; t++)
#pragma unroll
			for (int c = 0; c < n / 4; c++) {
				u32 lane = laneID() / 4 * 4 + t, from = tile + placeOf(2 * t + c % 2, 0) + laneID() % 4 * 4 + c / 2 * (8 * 128);
				f32 x = of(weights.at[c / 2][c % 2], lane), y = of(weights.at[c / 2][2 + c % 2], lane);
#pragma unroll
				for (int j = 0; j < D / 8; j++) {
					u32 v = loadPair((from ^ j % 8 << 4) + j / 8 * HeadTile<T, D, n>::panelBytes);
					at[j][0] += x * lowHalf(v), at[j][1] += x * highHalf(v);
					at[j][2] += y * lowHalf(v), at[j][3] += y * highHalf(v);
				}
			}
	}

	template <int n> DEVICE void addTensor(const MmaScores<T, n> &weights, u32 tile) {
		u32 from = tile + placeOf(laneID() % 16, laneID() / 16);
#pragma unroll
		for (int k = 0; k < n / 16; k++) {
			u32 large[4], small[4];
#pragma unroll
			for (int r = 0; r < 4; r++) {
				f32 x = weights.at[2 * k + r / 2][r % 2 * 2], y = weights.at[2 * k + r / 2][r % 2 * 2 + 1];
				large[r] = pairOf(T{}, x, y);
				small[r] = pairOf(T{}, x - lowOf<T>(large[r]), y - highOf<T>(large[r]));
			}
#pragma unroll
			for (int j = 0; j < D / 16; j++) {
				u32 b[4];
				loadTransposed(b, (from ^ j % 4 << 5) + j / 4 * HeadTile<T, D, n>::panelBytes + k * (16 * 128));
				multiply(T{}, at[2 * j], large, b[0], b[1]);
				multiply(T{}, at[2 * j + 1], large, b[2], b[3]);
				multiply(T{}, at[2 * j], small, b[0], b[1]);
				multiply(T{}, at[2 * j + 1], small, b[2], b[3]);
			}
		}
	}

	DEVICE void scale(const f32 (&by)[2]) {
#pragma unroll
		for (int j = 0; j < D / 8; j++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				at[j][i] *= by[i / 2];
	}
	DEVICE void scale(f32 by) { scale({by, by}); }

	// store writes d columns of the block's rows, of which `left` exist and that lie `apart`.
	DEVICE void store(T *to, i32 left, i32 d, i64 apart) const {
		typedef MmaScores<T, 8> Place;
		bool pairs = (u64(to) | (d | apart) * sizeof(T)) % 4 == 0;
#pragma unroll
		for (int r = 0; r < 2; r++) {
			if (Place::line(r) >= left)
				continue;
			T *line = to + Place::line(r) * apart;
#pragma unroll
			for (int j = 0; j < D / 8; j++) {
				i32 column = Place::column() + j * 8;
				if (pairs && column < d) {
					*(u32 *)(line + column) = pairOf(T{}, at[j][2 * r], at[j][2 * r + 1]);
				} else {
					if (column < d)
						line[column] = narrow<T>(at[j][2 * r]);
					if (column + 1 < d)
						line[column + 1] = narrow<T>(at[j][2 * r + 1]);
				}
			}
		}
	}
};

// A tile of the other side has n rows: as many as leave room for three blocks on a multiprocessor.
template <int n, bool kept> struct Kit {
	static const int D = WIDTH, rows = ownRows;
	typedef OwnRows<ELEM, D, kept> Own;
	typedef MmaScores<ELEM, n> Scores;
	typedef MmaResult<ELEM, D> Result;
};
typedef Kit<(WIDTH <= 64 ? 64 : 32), (WIDTH <= 64)> ForwardKit;
typedef Kit<32, (WIDTH <= 64)> QueryKit;
typedef Kit<(WIDTH <= 64 ? 32 : 16), (WIDTH <= 32)> KeyKit;
#include "attention_kernels.cuh"
