package main

import "math"

// The elementary functions, in float32 with fused operations. Divisions and roots are the exact instructions: bits are the
// same on every processor of a level, as those of approximations are not.

// The exponential: x = n·ln2 + r, and a polynomial in r of relative error 3e-9 (a least-squares fit, its weights moved
// until the error was even).
var (
	ln2High = 0.693145751953125 // 16 bits: its product with n is exact
	ln2Low  = math.Ln2 - ln2High
	expRest = []float64{0.49999993436911, 0.16666520472666602, 0.04166838996146142, 0.008368736034494473, 0.0013814554973321236}
)

// reduce finds n and r.
func (b *block) reduce(x value) (n, r value) {
	n = b.round(b.mul(x, b.constant(math.Log2E)))
	r = b.fnma(n, b.constant(ln2High), x)
	return n, b.fnma(n, b.constant(ln2Low), r)
}

// expm1Of is eʳ-1 for |r| ≤ ln2/2.
func (b *block) expm1Of(r value) value {
	return b.fma(b.horner(r, expRest...), b.mul(r, r), r)
}

// expOf is eʳ for |r| ≤ ln2/2.
func (b *block) expOf(r value) value { return b.add(b.expm1Of(r), b.constant(1)) }

// exp is eˣ of any x.
func (b *block) exp(x value) value {
	x = b.min(b.held(b.constant(104)), b.max(b.held(b.constant(-105)), x)) // NaN stays
	n, r := b.reduce(x)
	return b.scale(b.expOf(r), n)
}

// expm1 is eˣ-1 for x up to 126·ln2: 2ⁿ·(eʳ-1) + (2ⁿ-1).
func (b *block) expm1(x value) value {
	n, r := b.reduce(x)
	two := b.powerOf(n)
	return b.fma(b.expm1Of(r), two, b.sub(two, b.constant(1)))
}

// powerOf is 2ⁿ of an integer between -126 and 127.
func (b *block) powerOf(n value) value { return b.power(b.unary("VCVTPS2DQ", n)) }

func expm1Body(b *block) {
	x := b.load("x")
	// Above 87 half of x goes first: 2ⁿ would overflow before its product.
	y := b.expm1(b.min(b.held(b.constant(87)), b.max(b.held(b.constant(-87)), x)))
	y = b.choose(above, x, b.constant(87), b.exp(x), y)
	b.store("dst", b.withSign(y, x))
}

// tanh is a polynomial near 0, and 1 - 2/(e²ˣ+1) beyond: 1 from 9.02 on.
func (b *block) tanh(x value) value {
	a := b.min(b.held(b.constant(10)), b.abs(x))
	n, r := b.reduce(b.add(a, a))
	e := b.mul(b.expOf(r), b.powerOf(n))
	two := b.held(b.constant(2))
	far := b.sub(b.held(b.constant(1)), b.div(two, b.add(e, b.constant(1))))
	s := b.mul(x, x)
	near := b.mul(b.horner(s, -0.3333331620894722, 0.13332533224062212, -0.05384610211709147, 0.02104371132947171, -0.006231626558344583), s)
	return b.withSign(b.choose(less, a, b.constant(0.55), b.fma(near, a, a), far), x)
}

// falling is e^a = p·2ⁿ, where a is -|x|, or -120 if that is more. Sigmoid is e^a/(1+e^a) below 0 and 1/(1+e^a) above,
// exact in both tails.
func (b *block) falling(x value) (a, p, n value) {
	a = b.max(b.held(b.constant(-120)), b.or(x, b.bits(1<<31)))
	n, r := b.reduce(a)
	return a, b.expOf(r), n
}

func (b *block) sigmoid(x value) value {
	_, p, n := b.falling(x)
	e := b.scale(p, n)
	top := b.chooseSign(x, e, b.held(b.constant(1)))
	return b.div(top, b.add(e, b.held(b.constant(1))))
}

// silu is x·sigmoid(x). Below 0 it is scaled at last, which rounds subnormal results once.
func (b *block) silu(x value) value {
	a, p, n := b.falling(x)
	e := b.scale(p, n)
	return b.tailed(x, b.div(b.chooseSign(x, b.mul(a, p), x), b.add(e, b.constant(1))), n)
}

// tailed is y where x is positive and y·2ⁿ where it is negative: NaN at -∞, the product of ∞ and 0.
func (b *block) tailed(x, y, n value) value {
	y = b.chooseSign(x, b.scale(y, n), y)
	return b.choose(less, x, b.constant(-math.MaxFloat32), b.bits(0x7fc00000), y)
}

// logOf is ln z for z = 2ᵏ·(1+f) with f in [-1/3, 1/3): k·ln2 + log1p(f). The polynomial is Juffa's (NVIDIA forum, 2016).
func (b *block) logOf(f, k value) value {
	c := b.constant
	s := b.mul(f, f)
	r := b.fma(f, c(-0.130310059), c(0.140869141))
	t := b.fma(f, c(-0.121489234), c(0.139809728))
	r = b.fma(r, s, t)
	for _, k := range []float64{-0.166846126, 0.200120345, -0.249996200, 0.333331972, -0.5} {
		r = b.fma(r, f, c(k))
	}
	r = b.fma(r, s, f)
	return b.fma(k, c(math.Ln2), r)
}

// exponent takes z = 2ᵏ·m apart by its bits: m is in [2/3, 4/3).
func (b *block) exponent(z value) (e, k value) {
	i := b.binary("VPSUBD", z, b.bits(0x3f2aaaab))
	e = b.and(i, b.bits(0xff800000))
	return e, b.mul(b.unary("VCVTDQ2PS", e), b.constant(0x1p-23))
}

func logBody(b *block) {
	x := b.load("x")
	tiny := b.choose(less, x, b.constant(0x1p-126), b.constant(23), b.xor(x, x))
	z := b.choose(less, x, b.constant(0x1p-126), b.mul(x, b.constant(1<<23)), x)
	e, k := b.exponent(z)
	m := b.binary("VPSUBD", z, e)
	y := b.logOf(b.sub(m, b.constant(1)), b.sub(k, tiny))
	b.store("dst", b.logLimits(x, x, y))
}

// logLimits is y for a positive finite z, else NaN, ∞ or -∞ at 0.
func (b *block) logLimits(x, z, y value) value {
	y = b.choose(less, z, b.held(b.constant(math.Inf(1))), y, x) // ∞ and NaN stay
	y = b.choose(atLeast, z, b.constant(0), y, b.held(b.bits(0x7fc00000)))
	return b.choose(equal, z, b.constant(0), b.constant(math.Inf(-1)), y)
}

// log1pBody takes the exponent of 1+x, and m-1 from x itself.
func log1pBody(b *block) {
	x := b.load("x")
	z := b.add(x, b.constant(1))
	e, k := b.exponent(z)
	m := b.binary("VPSUBD", x, e)
	s := b.binary("VPSUBD", b.held(b.constant(4)), e)
	f := b.add(m, b.fma(s, b.constant(0.25), b.constant(-1)))
	b.store("dst", b.withSign(b.logLimits(x, z, b.logOf(f, k)), x))
}

// erf of Juffa (Stack Overflow 35148199): a polynomial near 0, and 1 - eᵖ with another beyond.
func (b *block) erf(x value) value {
	c := b.constant
	a, s := b.abs(x), b.mul(x, x)
	r := b.fma(a, c(-1.72853470e-5), c(3.83197126e-4))
	u := b.fma(a, c(-3.88396438e-3), c(2.42546219e-2))
	r = b.fma(r, s, u)
	for _, k := range []float64{-1.06777877e-1, -6.34846687e-1, -1.28717512e-1} {
		r = b.fma(r, a, c(k))
	}
	r = b.fms(r, a, a)
	far := b.withSign(b.sub(b.held(c(1)), b.exp(r)), x)
	near := b.horner(s, 1.28379166e-1, -3.76125336e-1, 1.12819925e-1, -2.67681349e-2, 4.99119423e-3, -5.96761703e-4)
	return b.choose(less, a, c(0.927734375), b.fma(near, x, x), far)
}

// upperTail is Φ(-|x|) = p·2ⁿ: e^(-x²/2)·t·rest(t)/2 with t = 1/(1+0.4·|x|/√2), the way of math32_gauss.go with a shorter
// polynomial. x² is of two parts: its rounding would be an error of 30 ulps in the exponential.
func (b *block) upperTail(a value) (p, n, e value) {
	h := b.mul(a, a)
	l := b.fms(a, a, h)
	n, r := b.reduce(b.mul(h, b.constant(-0.5)))
	e = b.expOf(b.fma(l, b.constant(-0.5), r))
	t := b.div(b.held(b.constant(1)), b.fma(a, b.constant(0.4/math.Sqrt2), b.constant(1)))
	rest := b.horner(t, half(0.22570250914416987, 0.22503836184816867, 0.2141957944818567, 0.13307890912296672, 0.26217304904131417,
		-0.26583888958401425, 0.5250583160516287, -0.4819668692340223, 0.19082596529065785, -0.02826713663273879)...)
	return b.mul(e, b.mul(t, rest)), n, e
}

func half(c ...float64) []float64 {
	for i := range c {
		c[i] /= 2
	}
	return c
}

// gelu is max(x, 0) - |x|·Φ(-|x|).
func geluBody(b *block) {
	x := b.load("x")
	a := b.abs(x)
	near := b.min(b.held(b.constant(15)), a)
	p, n, _ := b.upperTail(near)
	tail := b.scale(b.mul(p, near), n)
	u := b.mul(a, b.constant(0.5))
	y := b.sub(b.fma(x, b.constant(0.5), u), tail) // NaN at -∞, the product of ∞ and 0
	b.store("dst", b.withSign(y, x))
}

// geluGradBody is g·(Φ(x) + x·φ(x)).
func geluGradBody(b *block) {
	x := b.load("x")
	a := b.min(b.held(b.constant(15)), b.abs(x))
	p, n, e := b.upperTail(a)
	tail := b.scale(p, n)
	cdf := b.chooseSign(x, tail, b.sub(b.held(b.constant(1)), tail))
	density := b.scale(b.mul(e, b.mul(a, b.constant(1/math.Sqrt(2*math.Pi)))), n)
	d := b.add(b.add(cdf, b.or(density, b.sign(x))), b.sub(x, x)) // NaN at ±∞
	b.store("dst", b.mul(d, b.load("y")))
}

// The tanh form of GELU is x·sigmoid(v), v = 2·√(2/π)·(x + 0.044715·x³). v and the exponential's argument are float64,
// where rounding does no harm in the tail; 2^f is a polynomial of float32.
var exp2Rest = []float64{0.6931472063722839, 0.24022651305583806, 0.05550327640390238, 0.0096180084437799, 0.0013400311485850574, 0.00015475095165354475}

const (
	geluRate  = 2 * math.Sqrt2 / math.SqrtPi
	geluCubic = 0.044715
)

// fallingCubic is e^-|v| = p·2ⁿ.
func (b *block) fallingCubic(a value) (p, n value) {
	part := func(z value) (n, f value) {
		w := b.fmaD(b.commuting("VMULPD", z, z), b.double(-geluRate*geluCubic*math.Log2E), b.double(-geluRate*math.Log2E))
		t := b.commuting("VMULPD", w, z)
		if b.s.masks {
			n = b.unary("VRNDSCALEPD $8,", t)
		} else {
			n = b.unary("VROUNDPD $8,", t)
		}
		return n, b.binary("VSUBPD", t, n)
	}
	lo, hi := b.wide(a)
	n0, f0 := part(lo)
	n1, f1 := part(hi)
	f := b.narrow(f0, f1)
	p = b.fma(b.horner(f, exp2Rest...), f, b.held(b.constant(1)))
	return p, b.narrow(n0, n1)
}

func geluTanhBody(b *block) {
	x := b.load("x")
	a := b.min(b.held(b.constant(11)), b.abs(x))
	p, n := b.fallingCubic(a)
	e := b.scale(p, n)
	top := b.chooseSign(x, b.or(b.mul(a, p), b.bits(1<<31)), x)
	b.store("dst", b.tailed(x, b.div(top, b.add(e, b.constant(1))), n))
}

// geluTanhGradBody is g·(s + x·s·(1-s)·v') with s = sigmoid(v): s·(1-s) = e/(1+e)².
func geluTanhGradBody(b *block) {
	x := b.load("x")
	a := b.min(b.held(b.constant(11)), b.abs(x))
	p, n := b.fallingCubic(a)
	e := b.scale(p, n)
	one := b.held(b.constant(1))
	t := b.div(one, b.add(e, one))
	s := b.mul(b.chooseSign(x, e, one), t)
	slope := b.fma(b.mul(a, a), b.constant(3*geluCubic*geluRate), b.constant(geluRate))
	rest := b.mul(b.mul(b.mul(e, t), t), b.mul(slope, a))
	b.store("dst", b.mul(b.add(s, b.or(rest, b.sign(x))), b.load("y")))
}

// siluGradBody is g·s·(1 + x·(1-s)): 1-s is of the other tail.
func siluGradBody(b *block) {
	x := b.load("x")
	_, p, n := b.falling(x)
	e := b.scale(p, n)
	one := b.held(b.constant(1))
	t := b.div(one, b.add(e, one))
	s := b.mul(b.chooseSign(x, e, one), t)
	r := b.mul(b.chooseSign(x, one, e), t)
	b.store("dst", b.mul(b.mul(s, b.fma(x, r, one)), b.load("y")))
}

// turnBody is sin(x + ahead·π/2) for |x| < 2²⁰: the quarter turn is found and taken off in float64. The polynomials are
// Juffa's (NVIDIA forum, 2016).
func turnBody(ahead uint32) func(b *block) {
	return func(b *block) {
		x := b.load("x")
		b.stopUnless(x, 1<<20)
		lo, hi := b.wide(x)
		n0, r0 := b.quarter(lo)
		n1, r1 := b.quarter(hi)
		r := b.narrow(r0, r1)
		q := b.unary("VCVTPS2DQ", b.narrow(n0, n1))
		if ahead > 0 {
			q = b.commuting("VPADDD", q, b.bits(ahead))
		}
		s := b.mul(r, r)
		sin := b.horner(s, -1.66666672e-1, 8.33338592e-3, -1.98559923e-4, 2.86567956e-6)
		sin = b.fma(sin, b.mul(r, s), r)
		cos := b.horner(s, 1, -0.5, 4.16666567e-2, -1.38877297e-3, 2.44677067e-5)
		y := b.chooseSign(b.shift("VPSLLD", 31, q), cos, sin)
		y = b.xor(y, b.sign(b.shift("VPSLLD", 30, q)))
		if ahead == 0 {
			y = b.choose(equal, x, b.constant(0), x, y) // -0 stays
		}
		b.store("dst", y)
	}
}

// quarter is the nearest multiple n of π/2 and what it leaves, for float64.
func (b *block) quarter(x value) (n, r value) {
	t := b.commuting("VMULPD", x, b.double(2/math.Pi))
	if b.s.masks {
		n = b.unary("VRNDSCALEPD $8,", t)
	} else {
		n = b.unary("VROUNDPD $8,", t)
	}
	r = b.fnmaD(n, b.double(1.57079632673412561417), x)
	return n, b.fnmaD(n, b.double(6.07710050650619224932e-11), r)
}
