// The attention kernels (attention_tiled.cuh) of float32, exact, for heads of up to 128.
//
// A block is 16 rows by 8 columns of threads; rows and columns of a thread lie 16 and 8 apart, so that neighbouring threads
// read neighbouring rows of tiles. Weights go to the second product through shared memory, to threads of the same warp.
// Masks are asked for while they run: kernels without would be as large again, and exact products hide the question.
//
//warpline:module attention_ffma_32_f32 -DELEM=f32 -DWIDTH=32 -DMASKED=true -DNAME(op)=op##_32_f32
//warpline:module attention_ffma_64_f32 -DELEM=f32 -DWIDTH=64 -DMASKED=true -DNAME(op)=op##_64_f32
//warpline:module attention_ffma_128_f32 -DELEM=f32 -DWIDTH=128 -DMASKED=true -DNAME(op)=op##_128_f32
//warpline:module attentiongrad_ffma_32_f32 -DELEM=f32 -DWIDTH=32 -DMASKED=true -DNAME(op)=op##_32_f32 -DGRAD
//warpline:module attentiongrad_ffma_64_f32 -DELEM=f32 -DWIDTH=64 -DMASKED=true -DNAME(op)=op##_64_f32 -DGRAD
//warpline:module attentiongrad_ffma_128_f32 -DELEM=f32 -DWIDTH=128 -DMASKED=true -DNAME(op)=op##_128_f32 -DGRAD
#include "attention_tiled.cuh"

DEVICE void loadShared(f32 (&v)[4], u32 at) {
	asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(at) : "memory");
}
DEVICE void storeShared(u32 at, f32 v) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(v) : "memory"); }

DEVICE i32 threadRow() { return threadIdx.x / 8; }
DEVICE i32 threadColumn() { return threadIdx.x % 8; }

// OwnRows is where the thread's first row of the block's own is.
struct OwnRows {
	u32 from;

	DEVICE OwnRows(u32 tile) : from(tile + placeOf(threadRow(), 0)) {}
	DEVICE void arrive() {}
};

// FfmaScores is tall rows by n/8 columns of a tile for each thread.
template <int tall, int n, int D> struct FfmaScores {
	static const int width = n, lines = tall, lineStep = 16, columns = n / 8, lanes = 8;

	f32 at[lines][columns];

	static DEVICE i32 line(int r) { return threadRow() + r * lineStep; }
	static DEVICE i32 warpFirst() { return threadIdx.x / 32 * 4; }
	static DEVICE i32 warpLast() { return warpFirst() + 3 + (lines - 1) * lineStep; }
	static DEVICE i32 column() { return threadColumn(); }
	static DEVICE constexpr i32 offset(int c) { return c * 8; }
	DEVICE f32 &operator()(int r, int c) { return at[r][c]; }

	template <class F> DEVICE void each(F &&f) {
#pragma unroll
		for (int r = 0; r < lines; r++)
#pragma unroll
			for (int c = 0; c < columns; c++)
				f(at[r][c], r, c);
	}

	// product makes it own·tileᵀ.
	DEVICE void product(const OwnRows &own, u32 tile) {
		u32 a = own.from, b = tile + placeOf(threadColumn(), 0);
		each([&](f32 &x, int, int) INLINED { x = 0; });
#pragma unroll 1
		for (int panel = 0; panel < D / 32; panel++) {
#pragma unroll
			for (int k = 0; k < 8; k++) {
				f32 x[lines][4], y[columns][4];
#pragma unroll
				for (int r = 0; r < lines; r++)
					loadShared(x[r], (a ^ k << 4) + r * (lineStep * 128));
#pragma unroll
				for (int c = 0; c < columns; c++)
					loadShared(y[c], (b ^ k << 4) + c * (8 * 128));
				each([&](f32 &s, int r, int c) INLINED {
#pragma unroll
					for (int i = 0; i < 4; i++)
						s = fma(x[r][i], y[c][i], s);
				});
			}
			a += HeadTile<f32, D, lines * lineStep>::panelBytes;
			b += HeadTile<f32, D, n>::panelBytes;
		}
	}
};

// FfmaResult is tall rows by D/8 columns of sums for each thread, in groups of four neighbours.
template <int tall, int n, int D> struct FfmaResult {
	typedef FfmaScores<tall, n, D> Scores;
	static const int groups = D / 32;

	u32 scratch; // the thread's first row of weights
	f32 at[tall][groups][4] = {};

	// Rows of weights have n floats; chunks are laid out so that neither the threads' stores nor their loads meet a bank
	// twice.
	static DEVICE u32 chunkAt(i32 row, i32 chunk) {
		return n == 32 ? row * 128 + ((chunk ^ row * 2 % 8) << 4) : row * 64 + ((chunk ^ row / 2 * 2 % 4) << 4);
	}

	DEVICE FfmaResult(u32 shared) : scratch(shared + chunkAt(threadRow(), 0)) {}

	// add adds weights·tile.
	DEVICE void add(const Scores &weights, u32 tile) {
		__nvvm_bar_warp_sync(everyLane); // the weights before have been read
		u32 to = (scratch ^ threadColumn() / 4 << 4) + threadColumn() % 4 * 4;
#pragma unroll
		for (int r = 0; r < tall; r++)
#pragma unroll
			for (int c = 0; c < n / 8; c++)
				storeShared((to ^ c << 5) + r * (16 * 4 * n), weights.at[r][c]);
		__nvvm_bar_warp_sync(everyLane);
		u32 from = tile + (threadColumn() << 4);
#pragma unroll 2
		for (int k = 0; k < n / 4; k++) {
			f32 w[tall][4];
#pragma unroll
			for (int r = 0; r < tall; r++)
				loadShared(w[r], (scratch ^ k << 4) + r * (16 * 4 * n));
#pragma unroll
			for (int i = 0; i < 4; i++)
#pragma unroll
				for (int j = 0; j < groups; j++) {
					f32 y[4];
					loadShared(y, (from ^ (k % 2 * 4 + i) << 4) + (k * 4 + i) * 128 + j * HeadTile<f32, D, n>::panelBytes);
#pragma unroll
					for (int r = 0; r < tall; r++)
#pragma unroll
						for (int e = 0; e < 4; e++)
							at[r][j][e] = fma(w[r][i], y[e], at[r][j][e]);
				}
		}
	}

	DEVICE void scale(const f32 (&by)[tall]) {
#pragma unroll
		for (int r = 0; r < tall; r++)
#pragma unroll
			for (int j = 0; j < groups; j++)
#pragma unroll
				for (int e = 0; e < 4; e++)
					at[r][j][e] *= by[r];
	}
	DEVICE void scale(f32 by) {
		f32 all[tall];
#pragma unroll
		for (int r = 0; r < tall; r++)
			all[r] = by;
		scale(all);
	}

	// store writes d columns of the block's rows, of which `left` exist and that lie `apart`.
	DEVICE void store(f32 *to, i32 left, i32 d, i64 apart) const {
		bool whole = inSteps<4>(d | apart, to);
#pragma unroll
		for (int r = 0; r < tall; r++) {
			if (Scores::line(r) >= left)
				continue;
			f32 *line = to + Scores::line(r) * apart;
#pragma unroll
			for (int j = 0; j < groups; j++) {
				i32 column = (j * 8 + threadColumn()) * 4;
				if (whole && column < d) {
					*(Words4 *)(line + column) = __builtin_bit_cast(Words4, at[r][j]);
				} else {
#pragma unroll
					for (int e = 0; e < 4; e++)
						if (column + e < d)
							line[column + e] = at[r][j][e];
				}
			}
		}
	}
};

// A block owns 16·tall rows, a tile of the other side has n: as many as fit 80 KiB of shared memory,
// 64 where there is no more.
template <int tall> struct Kit {
	static const int D = WIDTH, rows = 16 * tall, n = WIDTH <= 64 ? 32 : 16;
	typedef OwnRows Own;
	typedef FfmaScores<tall, n, D> Scores;
	typedef FfmaResult<tall, n, D> Result;
};
typedef Kit<(TURING && WIDTH > 64 ? 2 : 4)> ForwardKit;
typedef Kit<(WIDTH <= 64 ? 4 : 2) / (TURING && WIDTH > 32 ? 2 : 1)> QueryKit;
typedef QueryKit KeyKit;
#include "attention_kernels.cuh"
