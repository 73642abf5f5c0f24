// The elementary functions of f32 and f64: 1 to 2 ulp (pow below 1, erf and its relatives 2 to 3), subnormal numbers,
// zeros, infinities and NaN included. Nothing here is approximate hardware, so the results of all cards are the same bits.
//
//	exp expm1 log log1p sin cos tanh sigmoid erf pow
//	gelu geluTanh silu, geluGrad geluTanhGrad siluGrad (x, g)
//	sqrt floor ceil rint trunc abs copySign fma larger smaller (NaN wins) floorMod
//
// One template serves both types where only the coefficients differ. Those are interpolations on Chebyshev nodes in 80
// digits, rounded; the error named beside them is relative to the function.
#pragma once
#include "base.cuh"

template <class T> const bool isFloat = false;
template <> inline const bool isFloat<f32> = true;
template <> inline const bool isFloat<f64> = true;

DEVICE f32 fma(f32 x, f32 y, f32 z) { return __builtin_fmaf(x, y, z); }
DEVICE f64 fma(f64 x, f64 y, f64 z) { return __builtin_fma(x, y, z); }
DEVICE f32 sqrt(f32 x) { return __builtin_sqrtf(x); }
DEVICE f64 sqrt(f64 x) { return __builtin_sqrt(x); }
DEVICE f32 abs(f32 x) { return __builtin_fabsf(x); }
DEVICE f64 abs(f64 x) { return __builtin_fabs(x); }
DEVICE f32 floor(f32 x) { return __builtin_floorf(x); }
DEVICE f64 floor(f64 x) { return __builtin_floor(x); }
DEVICE f32 ceil(f32 x) { return __builtin_ceilf(x); }
DEVICE f64 ceil(f64 x) { return __builtin_ceil(x); }
DEVICE f32 rint(f32 x) { return __builtin_rintf(x); }
DEVICE f64 rint(f64 x) { return __builtin_rint(x); }
DEVICE f32 trunc(f32 x) { return __builtin_truncf(x); }
DEVICE f64 trunc(f64 x) { return __builtin_trunc(x); }

DEVICE u32 bits(f32 x) { return __builtin_bit_cast(u32, x); }
DEVICE u64 bits(f64 x) { return __builtin_bit_cast(u64, x); }

const f32 infinity32 = __builtin_inff();
const f64 infinity64 = __builtin_inf();

DEVICE f32 copySign(f32 x, f32 sign) { return __builtin_bit_cast(f32, (bits(x) & 0x7fffffff) | (bits(sign) & 0x80000000)); }
DEVICE f64 copySign(f64 x, f64 sign) { return __builtin_bit_cast(f64, (bits(x) & ~(1ull << 63)) | (bits(sign) & 1ull << 63)); }

// larger and smaller are NaN where an operand is.
DEVICE f32 larger(f32 x, f32 y) { return maxNaN(x, y); }
DEVICE f32 smaller(f32 x, f32 y) { return minNaN(x, y); }
template <class T> DEVICE T larger(T x, T y) { return x > y || x != x ? x : y; }
template <class T> DEVICE T smaller(T x, T y) { return x < y || x != x ? x : y; }

// clampNaN is x within [low, high]; NaN stays.
template <class T> DEVICE T clampNaN(T x, T low, T high) { return x < low ? low : x > high ? high : x; }

// poly is c + x·(c₁ + x·(c₂ + …)).
template <class T> DEVICE T poly(T, T c) { return c; }
template <class T, class... More> DEVICE T poly(T x, T c, More... more) { return fma(x, poly(x, more...), c); }

// Format is what the algorithms need to know of a type.
template <class T> struct Format;
template <> struct Format<f32> {
	typedef i32 Int;
	typedef u32 Bits;
	static const int fraction = 23, bias = 127;
	static constexpr f32 rounder = 0x1.8p23f; // adding it rounds to an integer, which the low bits then hold
	static constexpr f32 log2e = 0x1.715476p0f, ln2 = 0x1.62e43p-1f, ln2Low = -0x1.05c61p-29f;
	static constexpr f32 ln2Short = 0x1.62e4p-1f, ln2Rest = 0x1.7f7d1cp-20f; // multiples of ln2Short by exponents are exact
	static constexpr f32 expLeast = -104, expMost = 89, expm1Least = -18, smallest = 0x1p-126f;
	static constexpr u32 logStart = 0x3f2aaaab; // 2/3
};
template <> struct Format<f64> {
	typedef i64 Int;
	typedef u64 Bits;
	static const int fraction = 52, bias = 1023;
	static constexpr f64 rounder = 0x1.8p52;
	static constexpr f64 log2e = 0x1.71547652b82fep0, ln2 = 0x1.62e42fefa39efp-1, ln2Low = 0x1.abc9e3b39803fp-56;
	static constexpr f64 ln2Short = 0x1.62e42fefa2p-1, ln2Rest = 0x1.9ef35793c7673p-41;
	static constexpr f64 expLeast = -746, expMost = 710, expm1Least = -38, smallest = 0x1p-1022;
	static constexpr u64 logStart = 0x3fe5555555555555;
};

// power2 is 2^k for a normal result.
template <class T> DEVICE T power2(int k) {
	typedef Format<T> F;
	return __builtin_bit_cast(T, typename F::Bits(typename F::Int(k + F::bias)) << F::fraction);
}

// scaled is x·2^k, rounded once where x is near 1.
template <class T> DEVICE T scaled(T x, int k) { return x * power2<T>(k >> 1) * power2<T>(k - (k >> 1)); }

// The exponential: x = k·ln2 + r with |r| ≤ ln2/2.
template <class T> struct Reduced {
	T r;
	int k;
};

template <class T> DEVICE Reduced<T> reduceExp(T x) {
	typedef Format<T> F;
	T t = fma(x, F::log2e, F::rounder), n = t - F::rounder;
	return {fma(n, -F::ln2Low, fma(n, -F::ln2, x)), int(bits(t) - bits(F::rounder))};
}

// expSeries is eʳ - 1.
DEVICE f32 expSeries(f32 r) { // 2^-25.3
	return fma(r * r, poly(r, 0.5f, 0.1666657329f, 0.0416665487f, 0.008363774046f, 0.001392692677f), r);
}
DEVICE f64 expSeries(f64 r) { // 2^-60
	return fma(r * r,
			   poly(r, 0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333325544, 0.0013888888888883327, 0.00019841269876864356,
					2.4801587327007187e-05, 2.755725283351691e-06, 2.75572718102198e-07, 2.5106274733573296e-08, 2.0915442297780116e-09),
			   r);
}

template <class T> DEVICE T exp(T x) {
	Reduced<T> e = reduceExp(clampNaN(x, Format<T>::expLeast, Format<T>::expMost));
	return scaled(1 + expSeries(e.r), e.k);
}

template <class T> DEVICE T expm1(T x) {
	Reduced<T> e = reduceExp(clampNaN(x, Format<T>::expm1Least, Format<T>::expMost));
	T half = power2<T>(e.k - 1), y = 2 * fma(expSeries(e.r), half, half - T(0.5));
	return x == 0 ? x : y;
}

template <class T> DEVICE T tanh(T x) {
	T t = expm1(2 * clampNaN(abs(x), T(0), T(22)));
	return copySign(t / (t + 2), x);
}

template <class T> DEVICE T sigmoid(T x) {
	T e = exp(-abs(x));
	return (x < 0 ? e : T(1)) / (1 + e);
}

// The logarithm: x = 2^k·(1 + f) with 1 + f in [2/3, 4/3).

// logSeries is ln(1 + f).
DEVICE f32 logSeries(f32 f) { // 2^-25.4
	f32 p = poly(f, 0.3333331943f, -0.2499998808f, 0.2000385374f, -0.1667020768f, 0.1411610395f, -0.1234416142f, 0.1344166398f, -0.1214022115f);
	return fma(f * f, fma(f, p, -0.5f), f);
}
DEVICE f64 logSeries(f64 f) { // 2^-59; with s = f/(2+f), ln(1+f) = 2·artanh s = f - s·(f - 2·artanh s + 2s)
	f64 s = f / (2 + f), z = s * s;
	f64 r = z * poly(z, 0.6666666666666666, 0.40000000000008523, 0.2857142856701462, 0.2222222309164114, 0.18181734246400322, 0.1538900212516573,
					 0.13207080082069364, 0.13629110721861268);
	return fma(-s, f - r, f);
}

// logExponent is k as the bits of an exponent.
template <class T> DEVICE typename Format<T>::Int logExponent(T x) {
	typedef Format<T> F;
	return typename F::Int(bits(x) - F::logStart) >> F::fraction << F::fraction;
}

// logResult is y, or what the logarithm of anything but a positive finite t is.
template <class T> DEVICE T logResult(T t, T y) {
	T limit = t == 0 ? -T(infinity32) : t < 0 ? T(__builtin_nanf("")) : t;
	return t > 0 && t < T(infinity32) ? y : limit;
}

template <class T> struct Mantissa {
	T m; // in [2/3, 4/3)
	T k;
};

// mantissa takes a positive finite number apart.
template <class T> DEVICE Mantissa<T> mantissa(T x) {
	typedef Format<T> F;
	int k = 0;
	if (x < F::smallest) {
		k = -F::fraction;
		x *= power2<T>(F::fraction);
	}
	typename F::Int e = logExponent(x);
	return {__builtin_bit_cast(T, typename F::Bits(bits(x) - e)), T(k + int(e >> F::fraction))};
}

template <class T> DEVICE T log(T x) {
	Mantissa<T> p = mantissa(x);
	T y = logSeries(p.m - 1);
	return logResult(x, fma(p.k, Format<T>::ln2, fma(p.k, Format<T>::ln2Low, y)));
}

// log1p scales x by the exponent of 1 + x, so that nothing of a small x is lost.
template <class T> DEVICE T log1p(T x) {
	typedef Format<T> F;
	T t = 1 + x;
	int k = int(logExponent(t) >> F::fraction);
	T s = power2<T>(2 - k) * T(0.25), n = T(k);
	T y = logSeries(fma(x, s, s - 1));
	y = logResult(t, fma(n, F::ln2, fma(n, F::ln2Low, y)));
	return x == 0 ? x : y;
}

// Angles: x = q·π/2 + r with |r| ≤ π/4.
template <class T> struct Angle {
	T r;
	u32 q;
};

// fourOverPi has the bits of 4/π, the first word its integer part.
static __constant__ const u64 fourOverPi[20] = {
	0x0000000000000001, 0x45f306dc9c882a53, 0xf84eafa3ea69bb81, 0xb6c52b3278872083, 0xfca2c757bd778ac3, 0x6e48dc74849ba5c0, 0x0c925dd413a32439,
	0xfc3bd63962534e7d, 0xd1046bea5d768909, 0xd338e04d68befc82, 0x7323ac7306a673e9, 0x3908bf177bf25076, 0x3ff12fffbc0b301f, 0xde5e2316b414da3e,
	0xda6cfd9e4f96136e, 0x9e8c7ecd3cbfd45a, 0xea4f758fd7cbe2f6, 0x7a0e73ef14a525d4, 0xd7f6bf623f1aba10, 0xac06608df8f6d757};

// farAngle reduces |x| ≥ 2 (Payne and Hanek 1983): x·4/π modulo 8 needs only three words of 4/π, those that meet the
// mantissa of x at the binary point. It is a function of its own because it is rare and long.
static __device__ __attribute__((noinline)) Angle<f64> farAngle(f64 x) {
	u64 b = bits(x), m = (b & ((1ull << 52) - 1)) | 1ull << 52;
	u32 at = u32(b >> 52 & 0x7ff) - 1023 - 52 + 61, word = at / 64, left = at % 64;
	if ((b >> 52 & 0x7ff) == 0x7ff)
		return {x - x, 0};
	u64 z[3];
	for (int i = 0; i < 3; i++)
		z[i] = fourOverPi[word + i] << left | fourOverPi[word + i + 1] >> 1 >> (63 - left);
	u64 low = z[1] * m + __nvvm_mulhi_ull(z[2], m);
	u64 high = z[0] * m + __nvvm_mulhi_ull(z[1], m) + (low < z[1] * m ? 1 : 0);
	// high has x·2/π modulo 4 as a fraction of 2^62; what is left of the nearest integer is signed.
	i64 rest = i64(high << 2 | low >> 62);
	u32 q = u32(high >> 62) + (rest < 0 ? 1 : 0);
	f64 r = fma(f64(rest), 0x1p-64, f64(low << 2) * 0x1p-128) * 0x1.921fb54442d18p0;
	return x < 0 ? Angle<f64>{-r, 0u - q} : Angle<f64>{r, q};
}

// reduceAngle takes π/2 off in three parts (Cody and Waite 1980); with fma the first two steps are exact.
DEVICE Angle<f32> reduceAngle(f32 x) {
	if (abs(x) > 0x1p16f) {
		Angle<f64> a = farAngle(f64(x));
		return {f32(a.r), a.q};
	}
	f32 t = fma(x, 0x1.45f306p-1f, Format<f32>::rounder), n = t - Format<f32>::rounder;
	f32 r = fma(n, 0x1.ee59dap-50f, fma(n, 0x1.777a5cp-25f, fma(n, -0x1.921fb6p0f, x)));
	return {r, bits(t)};
}
DEVICE Angle<f64> reduceAngle(f64 x) {
	if (abs(x) > 0x1p30)
		return farAngle(x);
	f64 t = fma(x, 0x1.45f306dc9c883p-1, Format<f64>::rounder), n = t - Format<f64>::rounder;
	f64 r = fma(n, 0x1.f1976b7ed8fbcp-110, fma(n, -0x1.1a62633145c07p-54, fma(n, -0x1.921fb54442d18p0, x)));
	return {r, u32(bits(t))};
}

DEVICE f32 sinSeries(f32 r) { // 2^-26.2
	f32 z = r * r;
	return fma(r * z, poly(z, -0.1666666418f, 0.008332700469f, -0.0001957772183f), r);
}
DEVICE f32 cosSeries(f32 r) { // 2^-30
	f32 z = r * r;
	return fma(z, fma(z, poly(z, 0.04166666418f, -0.001388825476f, 2.453775051e-5f), -0.5f), 1.0f);
}
DEVICE f64 sinSeries(f64 r) { // 2^-57
	f64 z = r * r;
	return fma(r * z,
			   poly(z, -0.16666666666666666, 0.008333333333333331, -0.0001984126984126402, 2.7557319218542833e-06, -2.5052105961377e-08,
					1.605848950955874e-10, -7.584263996034166e-13),
			   r);
}
DEVICE f64 cosSeries(f64 r) { // 2^-60
	f64 z = r * r;
	return fma(z,
			   fma(z,
				   poly(z, 0.041666666666666664, -0.001388888888888707, 2.4801587298282115e-05, -2.755731702592346e-07, 2.0876096058995368e-09,
						-1.1379086634729478e-11),
				   -0.5),
			   1.0);
}

// turned is sin(x + ahead·π/2). Neighbours are in different quarters, so both series are computed and bits chosen.
template <class T> DEVICE T turned(T x, u32 ahead) {
	typedef typename Format<T>::Bits Bits;
	Angle<T> a = reduceAngle(x);
	Bits q = a.q + ahead, s = bits(sinSeries(a.r)), c = bits(cosSeries(a.r));
	return __builtin_bit_cast(T, Bits(s ^ ((s ^ c) & (0 - (q & 1))) ^ q >> 1 << (8 * sizeof(T) - 1)));
}

template <class T> DEVICE T sin(T x) { return x == 0 ? x : turned(x, 0); }
template <class T> DEVICE T cos(T x) { return turned(x, 1); }

// The error function, and what is made of it.

// erfSeries is erf x / x - 1 of z = x² ≤ 0.7.
DEVICE f32 erfSeries(f32 z) { // 2^-24
	return poly(z, 0.1283791671f, -0.3761258423f, 0.112828657f, -0.02680898458f, 0.005062406883f, -0.0006384235458f);
}
DEVICE f64 erfSeries(f64 z) { // 2^-55.5
	return poly(z, 0.12837916709551256, -0.3761263890318375, 0.11283791670954801, -0.026866170645044696, 0.005223977624246819, -0.000854832692594625,
				0.00012055327932755238, -1.492547788703476e-05, 1.6458171004652483e-06, -1.6305944317519722e-07, 1.4223426140826797e-08,
				-8.927785427648097e-10);
}

// erfcScaled is e^(z²)·erfc z for z ≥ 0, as t times a polynomial of 2t - 1 with t = 1/(1 + c·z) (after Shepherd and
// Laframboise 1981).
DEVICE f32 erfcScaled(f32 z) { // 2^-23.5
	f32 t = 1 / fma(0.5f, z, 1.0f);
	return t * poly(fma(2.0f, t, -1.0f), 0.5107913613f, 0.3435804248f, 0.1397345811f, 0.01821875572f, -0.01074083243f, -0.003223668784f,
					0.001490042079f, 0.0003837053373f, -0.0002344250242f);
}
DEVICE f64 erfcScaled(f64 z) { // 2^-54
	f64 t = 1 / fma(0.25, z, 1.0);
	return t * poly(fma(2.0, t, -1.0), 0.27399891525012277, 0.24413718227022052, 0.1933021755663094, 0.13521345782830527, 0.08271289696949509,
					0.04350273431010423, 0.019095378727514302, 0.006592513333161514, 0.0015280139117887696, 7.023973339263365e-05,
					-0.00011376315777900479, -4.420329648960674e-05, -9.088390604748416e-07, 4.715535872518233e-06, 1.1736924474005357e-06,
					-3.567316426146716e-07, -2.116276019508663e-07, 1.979474284846362e-08, 3.103180995857141e-08, -8.960485700842807e-10,
					-3.807637719412761e-09, 1.8065564302114134e-10, 2.2031707608271298e-10);
}

// gauss is e^(-s·a²) with the rounding error of the square put back.
template <class T> DEVICE T gauss(T a, T s) {
	T square = a * a, error = fma(a, a, -square), e = exp(-s * square);
	return fma(-s * error, e, e);
}

template <class T> DEVICE T erf(T x) {
	T z = x * x;
	if (z < T(0.7))
		return fma(x, erfSeries(z), x);
	T a = clampNaN(abs(x), T(0), T(6));
	return copySign(1 - gauss(a, T(1)) * erfcScaled(a), x);
}

// normal has the distribution function Φ(x) and the density φ(x) of the standard normal distribution.
template <class T> struct Normal {
	T distribution, density;
};

template <class T> DEVICE Normal<T> normal(T x) {
	T a = clampNaN(abs(x), T(0), T(40)), e = gauss(a, T(0.5));
	T tail = T(0.5) * e * erfcScaled(a * T(0.70710678118654752440));
	return {x > 0 ? 1 - tail : tail, e * T(0.39894228040143267794)};
}

template <class T> DEVICE T gelu(T x) { return x * normal(x).distribution; }

template <class T> DEVICE T geluGrad(T x, T g) {
	Normal<T> n = normal(x);
	return g * fma(x, n.density, n.distribution);
}

// The tanh form of GELU is x·sigmoid(2u) with u = √(2/π)·(x + 0.044715·x³). Beyond ±30 the sigmoid is 0 or 1.
template <class T> DEVICE T geluTanhSlope(T x) { return T(1.59576912160573071176) * fma(T(3 * 0.044715), x * x, T(1)); }

template <class T> DEVICE T geluTanhSigmoid(T x) { return sigmoid(T(1.59576912160573071176) * x * fma(T(0.044715), x * x, T(1))); }

template <class T> DEVICE T geluTanh(T x) { return x * geluTanhSigmoid(clampNaN(x, T(-30), T(30))); }

template <class T> DEVICE T geluTanhGrad(T x, T g) {
	x = clampNaN(x, T(-30), T(30));
	T s = geluTanhSigmoid(x);
	return g * fma(x, s * (1 - s) * geluTanhSlope(x), s);
}

// silu is x·sigmoid(x). Below 0 that is x·eˣ/(1 + eˣ), where eˣ alone may be subnormal.
template <class T> DEVICE T silu(T x) {
	Reduced<T> e = reduceExp(clampNaN(-abs(x), Format<T>::expLeast - 16, T(0)));
	T p = 1 + expSeries(e.r), d = 1 + scaled(p, e.k);
	T below = x < Format<T>::expLeast - 16 ? x * 0 : scaled(x * p / d, e.k);
	return x < 0 ? below : x / d;
}

template <class T> DEVICE T siluGrad(T x, T g) {
	T s = sigmoid(x);
	return g * s * fma(x, 1 - s, T(1));
}

// Powers: the logarithm as a sum of two numbers, so that its product with a large exponent is still exact enough.
template <class T> struct Sum {
	T high, low;
};

// artanhSeries is (2·artanh s - 2s - 2s³/3)/s⁵ of z = s².
DEVICE f32 artanhSeries(f32 z) { return poly(z, 0.4000003934f, 0.2855378985f, 0.2337092906f); }
DEVICE f64 artanhSeries(f64 z) {
	return poly(z, 0.39999999999999997, 0.28571428571436297, 0.22222222218223267, 0.18181818969474525, 0.15384539345948392, 0.13337307085044417,
				0.11650352841898433, 0.12214554814585402);
}

// logSum is ln x for a positive finite x, as 2·artanh(f/(2+f)) + k·ln2 with the first three terms in two parts each.
template <class T> DEVICE Sum<T> logSum(T x) {
	typedef Format<T> F;
	Mantissa<T> p = mantissa(x);
	T f = p.m - 1, d = 2 + f, dLow = f - (d - 2);
	T s = f / d, sLow = fma(-s, dLow, fma(-s, d, f)) / d;
	T z = s * s, zLow = fma(s, s, -z) + 2 * s * sLow;
	T cube = s * z, cubeLow = fma(s, z, -cube) + s * zLow + sLow * z;
	const T third = T(2. / 3), thirdLow = sizeof(T) == 4 ? T(-0x1.555556p-26) : T(0x1.5555555555555p-55);
	T c = fma(z, artanhSeries(z), thirdLow), factor = third + c, factorLow = c - (factor - third);
	T term = cube * factor, termLow = fma(cube, factor, -term) + cube * factorLow + cubeLow * factor;
	T sum = 2 * s + term, sumLow = term - (sum - 2 * s) + (2 * sLow + termLow);
	T whole = p.k * F::ln2Short, high = whole + sum;
	// |whole| is above |sum| unless it is 0.
	T low = p.k == 0 ? sumLow : sum - (high - whole) + fma(p.k, F::ln2Rest, sumLow);
	return {high, low};
}

// powAbs is |x|^y but for the cases where |x| or y is a limit.
template <class T> DEVICE T powAbs(T a, T y) {
	typedef Format<T> F;
	Sum<T> l = logSum(a);
	if (a == 0 || a == T(infinity32) || abs(y) == T(infinity32))
		l = {a < 1 ? -T(infinity32) : T(infinity32), 0};
	T h = y * l.high, low = fma(y, l.high, -h) + y * l.low;
	if (!(h > F::expLeast && h < F::expMost))
		low = 0;
	Reduced<T> e = reduceExp(clampNaN(h, F::expLeast, F::expMost));
	return scaled(1 + expSeries(e.r + low), e.k);
}

// pow follows C's annex F. Its conditions are all evaluated: they cost less than branches.
template <class T> DEVICE T pow(T x, T y) {
	const T infinity = T(infinity32);
	T a = abs(x), half = y * T(0.5);
	T v = powAbs(a, y);
	v = abs(half - trunc(half)) == T(0.5) ? copySign(v, x) : v; // y is odd
	bool none = (x < 0) & (a < infinity) & (trunc(y) != y), one = (y == 0) | (x == 1) | ((a == 1) & (abs(y) == infinity));
	v = none ? T(__builtin_nanf("")) : v;
	v = x != x ? x : y != y ? y : v;
	return one ? T(1) : v;
}

// floorMod is x - y·⌊x/y⌋, from the exact remainder of the truncated quotient. Each step of the loop takes off a multiple
// t of y whose quotient has fewer bits than a mantissa, so that its fma is exact.
template <class T> DEVICE T floorMod(T x, T y) {
	typedef Format<T> F;
	T r = abs(x), b = abs(y);
	if (!(b > 0) || !(r < T(infinity32)))
		return T(__builtin_nanf(""));
	const T most = power2<T>(F::fraction - 1);
	while (r / b >= most && b < T(infinity32)) {
		T t = b, q = r / b;
		while (q == T(infinity32)) {
			t *= power2<T>(F::bias / 2);
			q = r / t;
		}
		if (q >= most)
			t *= power2<T>(int(bits(q) >> F::fraction) - F::bias - (F::fraction - 1));
		r = fma(-trunc(r / t), t, r);
		r = r < 0 ? r + t : r;
	}
	if (b < T(infinity32))
		r = fma(-trunc(r / b), b, r);
	r = copySign(r < 0 ? r + b : r, x);
	return r != 0 && (x < 0) != (y < 0) ? r + y : r;
}
