// Random numbers from counters, the same bits as package rng makes on the CPU: Philox4x32-10 (Salmon et al., SC11), and
// what turns its bits into numbers, in f64 without fused operations.
#pragma once
#include "base.cuh"

struct Block {
	u32 r[4];
};

// philox is block number index of a key, the bits behind the elements.
DEVICE Block philox(u64 key, u64 index) {
	u32 c0 = u32(index), c1 = u32(index >> 32), c2 = 0, c3 = 0, k0 = u32(key), k1 = u32(key >> 32);
#pragma unroll
	for (int i = 0; i < 10; i++) {
		u64 p = u64(c0) * 0xd2511f53, q = u64(c2) * 0xcd9e8d57;
		c0 = u32(q >> 32) ^ c1 ^ k0;
		c1 = u32(q);
		c2 = u32(p >> 32) ^ c3 ^ k1;
		c3 = u32(p);
		k0 += 0x9e3779b9;
		k1 += 0xbb67ae85;
	}
	return {{c0, c1, c2, c3}};
}

DEVICE u64 join(u32 low, u32 high) { return u64(high) << 32 | low; }

// unit24 and unit53 are uniform in [0, 1), in steps of 2⁻²⁴ and 2⁻⁵³.
DEVICE f64 unit24(u32 r) { return f64(r >> 8) * 0x1p-24; }
DEVICE f64 unit53(u32 low, u32 high) { return f64(join(low, high) >> 11) * 0x1p-53; }

// logUnit is ln u for a normal u in (0, 1], within an ulp, by FreeBSD's e_log.c.
DEVICE f64 logUnit(f64 u) {
#pragma clang fp contract(off)
	const f64 ln2Hi = 6.93147180369123816490e-01, ln2Lo = 1.90821492927058770002e-10;
	const f64 l1 = 6.666666666666735130e-01, l2 = 3.999999999940941908e-01, l3 = 2.857142874366239149e-01,
		  l4 = 2.222219843214978396e-01, l5 = 1.818357216161805012e-01, l6 = 1.531383769920937332e-01,
		  l7 = 1.479819860511658591e-01;
	const u64 rootHalf = 0x3fe6a09e667f3bcd; // bits of √½
	// u = 2ᵏ·(1+f) with 1+f in [√½, √2).
	u64 bits = __builtin_bit_cast(u64, u) + (0x3ff0000000000000 - rootHalf);
	f64 k = f64(i32(bits >> 52) - 1023);
	f64 f = __builtin_bit_cast(f64, (bits & ((u64(1) << 52) - 1)) + rootHalf) - 1;
	f64 s = f / (2 + f);
	f64 s2 = s * s, s4 = s2 * s2;
	f64 t1 = s2 * (l1 + s4 * (l3 + s4 * (l5 + s4 * l7)));
	f64 t2 = s4 * (l2 + s4 * (l4 + s4 * l6));
	f64 half = 0.5 * (f * f);
	return k * ln2Hi - ((half - (s * (half + t1 + t2) + k * ln2Lo)) - f);
}

// Normals are two independent numbers of the standard normal distribution.
struct Normals {
	f64 a, b;
};

// sincosTurn is cosine and sine of turn/2⁶⁴ turns, by Cephes' sin.c.
DEVICE Normals sincosTurn(u64 turn) {
#pragma clang fp contract(off)
	const f64 s1 = -1.66666666666666307295e-1, s2 = 8.33333333332211858878e-3, s3 = -1.98412698295895385996e-4,
		  s4 = 2.75573136213857245213e-6, s5 = -2.50507477628578072866e-8, s6 = 1.58962301576546568060e-10;
	const f64 c1 = 4.16666666666665929218e-2, c2 = -1.38888888888730564116e-3, c3 = 2.48015872888517045348e-5,
		  c4 = -2.75573141792967388112e-7, c5 = 2.08757008419747316778e-9, c6 = -1.13585365213876817300e-11;
	// The nearest quarter turn, and the rest: an exact integer in [-2⁶¹, 2⁶¹).
	u64 quarter = (turn + (u64(1) << 61)) >> 62;
	f64 x = f64(i64(turn - (quarter << 62))) * (6.28318530717958647692 * 0x1p-64);
	f64 z = x * x;
	f64 p = s1 + z * (s2 + z * (s3 + z * (s4 + z * (s5 + z * s6))));
	f64 q = c1 + z * (c2 + z * (c3 + z * (c4 + z * (c5 + z * c6))));
	f64 sine = x + x * z * p;
	f64 cosine = 1 - 0.5 * z + z * z * q;
	if (quarter & 1) {
		f64 s = sine;
		sine = cosine;
		cosine = -s;
	}
	if (quarter & 2) {
		sine = -sine;
		cosine = -cosine;
	}
	return {cosine, sine};
}

// boxMuller is √(-2·ln u)·cos 2πt and √(-2·ln u)·sin 2πt for u in (0, 1] and t = turn/2⁶⁴ (Box and Muller 1958).
DEVICE Normals boxMuller(f64 u, u64 turn) {
#pragma clang fp contract(off)
	f64 r = __nvvm_sqrt_rn_d(-2 * logUnit(u));
	Normals n = sincosTurn(turn);
	return {r * n.a, r * n.b};
}
