package ir

// The codes of activations, elementwise ops that are made of others.
const (
	GELU         Code = endIndexing + iota // x·Φ(x)
	GELUTanh                               // its tanh form
	SiLU                                   // x·sigmoid(x)
	ReLUGrad                               // (y, g) → 0 where y ≤ 0, else g
	GELUGrad                               // (x, g)
	GELUTanhGrad                           // (x, g)
	SiLUGrad                               // (x, g)
	Softsign                               // x/(1+|x|)
	Mish                                   // x·tanh(log(1+eˣ))

	endActivations
)

// The reference and the engines have those before Softsign by hand, without the cancellation that their values have far
// from 0.
var activationRows = rows{
	GELU: {Name: "gelu", Group: Elementwise, Class: Floats, ByHand: true, min: 1, flops: perResult(5), Tolerance: Elemental,
		Value:    "x * (0.5 + 0.5*erf(x*sqrt(0.5)))",
		Gradient: slopes("gelu_grad(x, g)")},
	GELUTanh: {Name: "gelu_tanh", Group: Elementwise, Class: Floats, ByHand: true, min: 1, flops: perResult(8), Tolerance: Elemental,
		Value:    "k = sqrt(2/pi); x * (0.5 + 0.5*tanh(x * (k + 0.044715*k*(x*x))))",
		Gradient: slopes("gelu_tanh_grad(x, g)")},
	SiLU: {Name: "silu", Group: Elementwise, Class: Floats, ByHand: true, min: 1, flops: perResult(2), Tolerance: Elemental,
		Value:    "x * sigmoid(x)",
		Gradient: slopes("silu_grad(x, g)")},
	ReLUGrad: {Name: "relu_grad", Group: Elementwise, Class: Floats, Strides: AnyStride, ByHand: true, min: 2, flops: perResult(1), Tolerance: Exact, Kink: AtZero, Domain: [3]Domain{Fixed},
		Value:    "where(x <= 0, 0, y)",
		Gradient: slopes("", "relu_grad(x, g)")},
	GELUGrad: {Name: "gelu_grad", Group: Elementwise, Class: Floats, ByHand: true, min: 2, flops: perResult(9), Tolerance: Elemental,
		Value:    "y * ((0.5 + 0.5*erf(x*sqrt(0.5))) + x * (exp(-0.5*(x*x)) / sqrt(2*pi)))",
		Gradient: slopes("g*y * (exp(-0.5*(x*x)) / sqrt(2*pi) * (2 - x*x))", "gelu_grad(x, g)")},
	GELUTanhGrad: {Name: "gelu_tanh_grad", Group: Elementwise, Class: Floats, ByHand: true, min: 2, flops: perResult(14), Tolerance: Elemental,
		// Far from 0 that is 0 or y, also where x³ overflows.
		Value: "k = sqrt(2/pi); v = maximum(minimum(x, 30), -30); t = tanh(v * (k + 0.044715*k*(v*v))); " +
			"y * (0.5 * ((1 + t) + v * (k + 3*0.044715*k*(v*v)) * (1 - t*t)))",
		Gradient: slopes("k = sqrt(2/pi); t = tanh(x * (k + 0.044715*k*(x*x))); u = k + 3*0.044715*k*(x*x); "+
			"g*y * ((1 - t*t) * (u + 3*0.044715*k*(x*x) - x*t*(u*u)))", "gelu_tanh_grad(x, g)")},
	SiLUGrad: {Name: "silu_grad", Group: Elementwise, Class: Floats, ByHand: true, min: 2, flops: perResult(6), Tolerance: Elemental,
		Value:    "s = sigmoid(x); y*s * (1 + x*(1-s))",
		Gradient: slopes("s = sigmoid(x); g*y * (s*(1-s) * (2 + x*(1-2*s)))", "silu_grad(x, g)")},

	Softsign: {Name: "softsign", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Tolerance: Stepwise, Kink: AtZero,
		Value:    "x / (1 + abs(x))",
		Gradient: slopes("a = 1 + abs(x); g / (a*a)")},
	Mish: {Name: "mish", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Tolerance: Stepwise,
		Value:    "x * tanh(log1p(exp(x)))",
		Gradient: slopes("t = tanh(log1p(exp(x))); g * (t + x * sigmoid(x) * (1 - t*t))")},
}
