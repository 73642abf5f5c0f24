// A warp's work on the tensor cores in TF32: f32 operands, each rounded as it leaves shared memory, ties away from zero,
// and mma.sync.m16n8k8. Its fragments are those of 16-bit operands with one element where these have two: lane l holds rows
// l/4 and l/4+8 at terms l%4 and l%4+4 (PTX manual, "Matrix Fragments for mma.m16n8k8").
#pragma once
#include "mma.cuh"

struct tf32 {
	u32 bits;
};

DEVICE u32 roundTF32(u32 x) {
	u32 y;
	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "r"(x));
	return y;
}
DEVICE void multiply(tf32, f32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
	asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

DEVICE u32 loadWord(u32 at) {
	u32 x;
	asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
	return x;
}

// Without alongK a panel has 32 lines, and nothing turns words as ldmatrix turns elements of 16 bits: they are read one by
// one, two of a warp's lanes from each bank.
template <bool alongK, bool isA> struct FragmentsOf<tf32, alongK, isA> : Fragments<alongK, isA> {
	u32 word;

	DEVICE FragmentsOf(u32 half) : Fragments<alongK, isA>(half) {
		u32 g = laneID() / 4, q = laneID() % 4;
		word = half * (32 * 128) + q * 128 + ((g / 4 ^ q) << 4) + g % 4 * 4;
	}

	DEVICE void load(u32 (&r)[4], u32 tile, int i, int k) const {
		if constexpr (alongK)
			Fragments<true, isA>::load(r, tile, i, k);
		else
#pragma unroll
			for (int e = 0; e < 4; e++) {
				int line = isA ? e % 2 : e / 2, term = isA ? e / 2 : e % 2; // further by 8 lines, by 4 terms
				r[e] = loadWord((tile + word ^ (i % 2 ^ term) << 6 ^ line << 5) + term * (4 * 128) + i / 2 * (2 * 32 * 128) + k * (8 * 128));
			}
#pragma unroll
		for (int e = 0; e < 4; e++)
			r[e] = roundTF32(r[e]);
	}
};
