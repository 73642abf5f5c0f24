// Elementwise elementary functions; math.cuh has the algorithms, layout.cuh the order of the elements.
//
//warpline:module math_f32 -DELEMENT=f32 -DNAME(op)=op##_f32
//warpline:module math_f64 -DELEMENT=f64 -DNAME(op)=op##_f64
//warpline:module math_f16 -DELEMENT=f16 -DNAME(op)=op##_f16
//warpline:module math_bf16 -DELEMENT=bf16 -DNAME(op)=op##_bf16
#include "elementwise.cuh"

const int W = longWidth;
const bool quick = false;

UNARY(exp, exp)
UNARY(expm1, expm1)
UNARY(log, log)
UNARY(log1p, log1p)
UNARY(sin, sin)
UNARY(cos, cos)
UNARY(tanh, tanh)
UNARY(sigmoid, sigmoid)
UNARY(erf, erf)
BINARY(pow, pow)

// powers has short ways for the exponents of norms, losses and optimizers. The square root is C's pow(x, 0.5).
DEVICE C powers(C x, C p) {
	if (p == 2)
		return x * x;
	if (p == 3)
		return x * x * x;
	if (p == -1)
		return 1 / x;
	if (abs(p) == C(0.5)) {
		C root = x == -C(infinity32) ? C(infinity32) : sqrt(x) + 0;
		return p < 0 ? 1 / root : root;
	}
	return pow(x, p);
}

KERNEL(256) NAME(pow_scalar)(T *out, const T *x, const Layout<1> l, C p) {
	map<W, quick>(out, x, l, [=](C x) -> C { return powers(x, p); });
}
