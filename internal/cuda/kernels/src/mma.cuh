// A warp's work on the tensor cores: fragments out of the tiles of pipeline.cuh, and mma.sync. The layout of fragments is
// that of the PTX manual, "Matrix Fragments for mma.m16n8k16": lane l holds rows l/4 and l/4+8, columns 2·(l%4) and the
// next one of the 16×8 sums.
#pragma once
#include "base.cuh"
#include "epilogue.cuh"

DEVICE void loadMatrices(u32 (&r)[4], u32 at) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
DEVICE void loadTransposed(u32 (&r)[4], u32 at) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

#if TURING
DEVICE void multiply(f16, f32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#pragma unroll
	for (int half = 0; half < 2; half++)
		asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
			: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
			: "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(half ? b1 : b0));
}
#else
#define MMA(shape, type) \
	asm("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) \
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
DEVICE void multiply(f16, f32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { MMA("m16n8k16", "f16"); }
DEVICE void multiply(bf16, f32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { MMA("m16n8k16", "bf16"); }
#undef MMA
#endif

// Fragments reads one operand's fragments of 16 lines by 32 bytes of k. A block has two rows and two columns of warps;
// of every 64 lines each takes 32. A lane's addresses within a tile differ by an exclusive or and a sum with constants,
// because tiles begin at multiples of 1024 bytes.
template <bool alongK, bool isA> struct Fragments {
	u32 lane;

	// half is 0 or 1, the warp's place among the two.
	DEVICE Fragments(u32 half) {
		u32 l = laneID(), low = l % 8, second = l / 8 % 2, third = l / 16;
		if constexpr (alongK) {
			u32 row = half * 32 + (isA ? l % 16 : third * 8 + low), chunk = isA ? third : second;
			lane = row * 128 + ((chunk ^ low) << 4);
		} else {
			u32 row = isA ? third * 8 + low : l % 16, chunk = half * 4 + (isA ? second : third);
			lane = row * 128 + ((chunk ^ low) << 4);
		}
	}

	// load reads the warp's i-th 16 lines, of the step's k-th 32 bytes of k.
	DEVICE void load(u32 (&r)[4], u32 tile, int i, int k) const {
		if constexpr (alongK)
			loadMatrices(r, (tile + lane ^ k << 5) + i / 2 * (64 * 128) + i % 2 * (16 * 128));
		else
			loadTransposed(r, (tile + lane ^ i % 2 << 5) + i / 2 * (64 * 128) + k * (16 * 128));
	}
};

// FragmentsOf are the fragments of operands of a type.
template <class E, bool alongK, bool isA> struct FragmentsOf : Fragments<alongK, isA> {
	using Fragments<alongK, isA>::Fragments;
};

// onTensorCores is whether products of a type's elements are.
template <class E> const bool onTensorCores = !TURING;
template <> inline const bool onTensorCores<f16> = true;

// The two bf16 of a word, in f32.
DEVICE f32 lowHalf(u32 pair) { return __builtin_bit_cast(f32, pair << 16); }
DEVICE f32 highHalf(u32 pair) { return __builtin_bit_cast(f32, pair & 0xffff0000); }
DEVICE u32 loadPair(u32 at) {
	u32 pair;
	asm volatile("ld.shared.b32 %0, [%1];" : "=r"(pair) : "r"(at) : "memory");
	return pair;
}

#if TURING
// Where bf16 goes to no tensor core a lane reads the lines that its sums are of: one of every eight of a, two of every
// eight of b, two terms at a time. Its sums are those that it has of mma.sync.
template <bool alongK, bool isA> struct FragmentsOf<bf16, alongK, isA> {
	static const int lines = isA ? 1 : 2; // of eight
	u32 half, first;

	DEVICE FragmentsOf(u32 half) : half(half), first(isA ? laneID() / 4 : laneID() % 4 * 2) {}

	// read reads the terms k, an even number, and k+1.
	template <int n> DEVICE void read(f32 (&v)[2][n], u32 tile, u32 k) const {
#pragma unroll
		for (int i = 0; i < n / lines; i++) {
			if constexpr (alongK) {
#pragma unroll
				for (int e = 0; e < lines; e++) {
					u32 pair = loadPair(tile + (half * 32 + first + e) * 128 + ((k / 8 ^ first + e) << 4) + k % 8 * 2 + (i / 4 * 64 + i % 4 * 8) * 128);
					v[0][i * lines + e] = lowHalf(pair), v[1][i * lines + e] = highHalf(pair);
				}
			} else {
#pragma unroll
				for (int t = 0; t < 2; t++) {
					u32 pair = loadPair(tile + (k + t) * 128 + ((half * 4 + i % 4 ^ (k + t) % 8) << 4) + first / 2 * 4 + i / 4 * (64 * 128));
					if constexpr (isA)
						v[t][i] = first % 2 ? highHalf(pair) : lowHalf(pair);
					else
						v[t][2 * i] = lowHalf(pair), v[t][2 * i + 1] = highHalf(pair);
				}
			}
		}
	}
};
#endif

// WarpTile is the sums of a warp, 16·tall rows by 16·broad columns.
template <class E, int tall, int broad> struct WarpTile {
	f32 sum[tall][2 * broad][4] = {};

	// step adds the products of one stage: 128 bytes of k.
	template <class A, class B> DEVICE void step(const A &fa, u32 aTile, const B &fb, u32 bTile) {
		if constexpr (onTensorCores<E>)
			stepTensor(fa, aTile, fb, bTile);
		else
			stepSingly(fa, aTile, fb, bTile);
	}

	template <class A, class B> DEVICE void stepTensor(const A &fa, u32 aTile, const B &fb, u32 bTile) {
#pragma unroll
		for (int k = 0; k < 4; k++) {
			u32 a[tall][4];
#pragma unroll
			for (int i = 0; i < tall; i++)
				fa.load(a[i], aTile, i, k);
#pragma unroll
			for (int j = 0; j < broad; j++) {
				u32 b[4];
				fb.load(b, bTile, j, k);
#pragma unroll
				for (int i = 0; i < tall; i++)
					add(i, j, a[i], b);
			}
		}
	}

	// stepSingly does so by multiply-adds, in the order of k.
	template <class A, class B> DEVICE void stepSingly(const A &fa, u32 aTile, const B &fb, u32 bTile) {
#pragma unroll 1
		for (u32 k = 0; k < 64; k += 2) {
			f32 a[2][2 * tall], b[2][4 * broad];
			fa.read(a, aTile, k);
			fb.read(b, bTile, k);
#pragma unroll
			for (int n = 0; n < 2 * 2 * tall * 4 * broad; n++) {
				int t = n / (8 * tall * broad), i = n / (4 * broad) % (2 * tall), j = n % (4 * broad);
				sum[i / 2][j / 2][i % 2 * 2 + j % 2] += a[t][i] * b[t][j];
			}
		}
	}

	// add adds the products of 16 rows and 16 columns.
	DEVICE void add(int i, int j, const u32 (&a)[4], const u32 (&b)[4]) {
		multiply(E(), sum[i][2 * j], a, b[0], b[1]);
		multiply(E(), sum[i][2 * j + 1], a, b[2], b[3]);
	}

	// stage puts the sums of the warp's h-th 32 rows into a Staging of cols columns at `to`. Of 64 rows and of every 64
	// columns the warp has the first 32, or the second where top or left is 1. Addresses differ by an exclusive or and a sum
	// with constants.
	template <int cols> DEVICE void stage(u32 to, int h, u32 top, u32 left) const {
		u32 l = opaque(laneID()), g = l / 4, q = l % 4;
		to += (32 * top + g) * (cols * 4) + ((8 * left + q / 2 ^ ((g ^ g / 4) % 4 << 1)) << 4) + q % 2 * 8;
#pragma unroll
		for (int i = 0; i < 2; i++)
#pragma unroll
			for (int j = 0; j < 2 * broad; j++)
#pragma unroll
				for (int low = 0; low < 2; low++) {
					u32 at = (to ^ (j % 4 ^ 2 * low) << 5) + (16 * i + 8 * low) * (cols * 4) + j / 4 * 256;
					const f32 *v = &sum[2 * h + i][j][2 * low];
					asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(v[0]), "f"(v[1]) : "memory");
				}
	}
};

// MmaBlock is what a block of four warps does on the tensor cores: rows×cols sums of operands of 16 bits, or of f32 that it
// rounds to TF32. It has 64 or 128 rows.
template <class E, int tileRows, int tileCols, bool aAlong, bool bAlong> struct MmaBlock {
	typedef E Element;
	static const int rows = tileRows, cols = tileCols, threads = 128, depth = 128 / sizeof(E);
	static const bool aAlongK = aAlong, bAlongK = bAlong;

	u32 top = threadIdx.x / 64, left = threadIdx.x / 32 % 2;
	FragmentsOf<E, aAlongK, true> fa{top};
	FragmentsOf<E, bAlongK, false> fb{left};
	WarpTile<E, rows / 32, cols / 32> sums;

	DEVICE void step(u32 aTile, u32 bTile) { sums.step(fa, aTile, fb, bTile); }

	// each calls f with the row and column of four neighbours. All threads must be done with the operands in shared memory.
	template <class F> DEVICE void each(u8 *shared, F &&f) const {
		const Staging<64, cols, threads> staging{(f32 *)shared};
#pragma unroll 1
		for (int row = 0; row < rows; row += 64) {
			if (row == 0)
				sums.template stage<cols>(sharedAddress(shared), 0, top, left);
			else if constexpr (rows > 64)
				sums.template stage<cols>(sharedAddress(shared), 1, top, left);
			staging.each([&](u32 r, u32 s, const Vec<f32, 4> &v) INLINED { f(row + r, s, v); });
		}
	}
};
