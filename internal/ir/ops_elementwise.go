package ir

// The codes of elementwise ops. Operands have one shape, and one dtype, which is the result's but for comparisons.
const (
	Neg Code = endCreation + iota
	Abs
	Sign
	Floor
	Ceil
	Round // half to even
	Trunc
	Sqrt
	Rsqrt
	Exp
	Expm1
	Log
	Log1p
	Sin
	Cos
	Tanh
	Sigmoid
	Erf
	ReLU // max(x, 0), NaN stays
	Not  // of bool

	Affine    // p0·x + p1
	PowScalar // x^p0
	Clamp     // min(max(x, p0), p1)
	Dropout   // x·[u ≥ p0]/(1-p0) with u uniform from key p1 (an integer)
	Axpy      // x + p0·y
	Lerp      // x + p0·(y-x)

	Add
	Sub
	Mul
	Div
	Pow
	Rem      // x - y·floor(x/y), the sign of y
	FloorDiv // floor(x/y), of the exact quotient
	Maximum
	Minimum
	Eq // comparisons give bool
	Ne
	Lt
	Le
	And
	Or
	Xor

	Where // Where(c, x, y): x where c, else y

	endElementwise
)

// Rows without a Value are by hand in every engine and in the reference: they are the words that values are written in,
// take integers too, or have parameters that are no numbers.
var elementwiseRows = rows{
	Neg:     {Name: "neg", Group: Elementwise, Class: Numbers, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("-g"), Tolerance: Exact},
	Abs:     {Name: "abs", Group: Elementwise, Class: Numbers, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("g * sign(x)"), Tolerance: Exact, Kink: AtZero},
	Sign:    {Name: "sign", Group: Elementwise, Class: Numbers, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("0"), Tolerance: Exact, Kink: AtZero},
	Floor:   {Name: "floor", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("0"), Tolerance: Exact, Kink: AtIntegers},
	Ceil:    {Name: "ceil", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("0"), Tolerance: Exact, Kink: AtIntegers},
	Round:   {Name: "round", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("0"), Tolerance: Exact, Kink: AtHalves},
	Trunc:   {Name: "trunc", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("0"), Tolerance: Exact, Kink: AtIntegers},
	Sqrt:    {Name: "sqrt", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("g / (2*out)"), Tolerance: Rounded, Domain: [3]Domain{Positives}},
	Rsqrt:   {Name: "rsqrt", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("-0.5*g * (out*(out*out))"), Autocast: CastWideOnCards, Tolerance: Elemental, Domain: [3]Domain{Positives}},
	Exp:     {Name: "exp", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("g * out"), Autocast: CastWideOnCards, Tolerance: Elemental},
	Expm1:   {Name: "expm1", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("g * (out+1)"), Autocast: CastWideOnCards, Tolerance: Elemental},
	Log:     {Name: "log", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("g / x"), Autocast: CastWideOnCards, Tolerance: Elemental, Domain: [3]Domain{Positives}},
	Log1p:   {Name: "log1p", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("g / (x+1)"), Autocast: CastWideOnCards, Tolerance: Elemental, Domain: [3]Domain{Positives}},
	Sin:     {Name: "sin", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("g * cos(x)"), Tolerance: Elemental},
	Cos:     {Name: "cos", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("-g * sin(x)"), Tolerance: Elemental},
	Tanh:    {Name: "tanh", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("g * (1 - out*out)"), Tolerance: Elemental},
	Sigmoid: {Name: "sigmoid", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("g*out * (1-out)"), Tolerance: Elemental},
	Erf:     {Name: "erf", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("g * (2/sqrt(pi) * exp(-(x*x)))"), Tolerance: Elemental},
	ReLU:    {Name: "relu", Group: Elementwise, Class: Numbers, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: slopes("relu_grad(out, g)"), Tolerance: Exact, Kink: AtZero},
	Not:     {Name: "not", Group: Elementwise, Class: Bools, Strides: AnyStride, min: 1, flops: perResult(1), Gradient: noGradient(isBool), Tolerance: Exact},

	Affine: {Name: "affine", Group: Elementwise, Class: Numbers, Strides: AnyStride, min: 1, Params: 2, flops: perResult(2),
		Gradient: slopes("p*g"), Tolerance: Combined, Try: []Params{Scalars(-1.75, 2.5), Scalars(3, -7), Scalars(0, 0)}},
	PowScalar: {Name: "pow_scalar", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Params: 1, flops: perResult(1),
		Gradient: slopes("where(p == 0, 0, where(p == 2, g * (2*x), g * (p*pow(x, p-1))))"), Autocast: CastWideOnCards, Tolerance: Powers, Domain: [3]Domain{Positives},
		Try: []Params{Scalars(0), Scalars(1), Scalars(2), Scalars(3), Scalars(-1), Scalars(0.5), Scalars(-0.5), Scalars(2.5), Scalars(-7)}},
	Clamp: {Name: "clamp", Group: Elementwise, Class: Numbers, Strides: AnyStride, min: 1, Params: 2, flops: perResult(2),
		// An infinite bound bounds nothing.
		Gradient:  slopes("a = where(p == -inf, g, where(p < x, g, 0)); where(q == inf, a, where(x < q, a, 0))"),
		Tolerance: Rounded, Kink: AtBounds, Try: []Params{Scalars(-0.75, 1), Scalars(2.5, 3), Scalars(negInf, 1), Scalars(0, posInf)}},
	Dropout: {Name: "dropout", Group: Elementwise, Class: Floats, min: 1, Params: 2, flops: perResult(2), Gradient: rule("again"), Tolerance: Combined},
	Axpy: {Name: "axpy", Group: Elementwise, Class: Numbers, Strides: AnyStride, min: 2, Params: 1, flops: perResult(2),
		Gradient: slopes("g", "p*g"), Tolerance: Combined, Try: []Params{Scalars(-0.75)}},
	Lerp: {Name: "lerp", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 2, Params: 1, flops: perResult(3),
		Gradient: slopes("(1-p) * g", "p*g"), Tolerance: Combined, Try: []Params{Scalars(0.3)}},

	Add: {Name: "add", Group: Elementwise, Class: Numbers, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: slopes("g", "g"), Tolerance: Rounded},
	Sub: {Name: "sub", Group: Elementwise, Class: Numbers, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: slopes("g", "-g"), Tolerance: Rounded},
	Mul: {Name: "mul", Group: Elementwise, Class: Numbers, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: slopes("g * y", "g * x"), Tolerance: Rounded},
	Div: {Name: "div", Group: Elementwise, Class: Numbers, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: slopes("g / y", "-g * (x/y/y)"), Tolerance: Rounded, Domain: [3]Domain{Reals, Positives}},
	Pow: {Name: "pow", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 2, flops: perResult(1),
		// Where y is 0 the exponent is replaced, so that 0·∞ does not arise. The second is 0 where x is 0 and y not negative:
		// 0^y falls to 0 there, and jumps to infinity below.
		Gradient: slopes("g * (y * pow(x, where(y == 0, 1, y) - 1))", "z = where(0 <= y, x, 1); where(z == 0, 0, g * (out * log(where(z == 0, 1, x))))"),
		Autocast: CastWideOnCards, Tolerance: Powers, Domain: [3]Domain{Positives}},
	Rem: {Name: "rem", Group: Elementwise, Class: Numbers, Strides: AnyStride, min: 2, flops: perResult(4), Gradient: slopes("g", "-g * floor_div(x, y)"), Tolerance: Remainder, Kink: AtQuotients},
	FloorDiv: {Name: "floor_div", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 2, flops: perResult(6), Gradient: slopes("0", "0"), Tolerance: Stepwise, Kink: AtQuotients,
		// The remainder is exact where the quotient is not. An infinite divisor leaves 0, or -1 where the signs differ. A zero
		// has the quotient's sign.
		Value: "a = x/y; b = round((x - rem(x, y)) / y); where(abs(y) == inf, where(abs(x) == inf, a, where(x*y < 0, -1, a)), where(y == 0, a, where(b == 0, a*abs(b), b)))"},
	// The larger operand gets the gradient, equal ones half of it each, and both a NaN's.
	Maximum: {Name: "maximum", Group: Elementwise, Class: Ordered, Strides: AnyStride, min: 2, flops: perResult(1),
		Gradient: slopes("where(x < y, 0, where(x == y, 0.5*g, g))", "where(y < x, 0, where(y == x, 0.5*g, g))"), Tolerance: Exact, Kink: AtTies},
	Minimum: {Name: "minimum", Group: Elementwise, Class: Ordered, Strides: AnyStride, min: 2, flops: perResult(1),
		Gradient: slopes("where(y < x, 0, where(y == x, 0.5*g, g))", "where(x < y, 0, where(x == y, 0.5*g, g))"), Tolerance: Exact, Kink: AtTies},
	Eq:  {Name: "eq", Group: Elementwise, Class: Ordered, Strides: AnyStride, min: 2, infer: compare, flops: perResult(1), Gradient: noGradient(isBool), Tolerance: Exact},
	Ne:  {Name: "ne", Group: Elementwise, Class: Ordered, Strides: AnyStride, min: 2, infer: compare, flops: perResult(1), Gradient: noGradient(isBool), Tolerance: Exact},
	Lt:  {Name: "lt", Group: Elementwise, Class: Ordered, Strides: AnyStride, min: 2, infer: compare, flops: perResult(1), Gradient: noGradient(isBool), Tolerance: Exact},
	Le:  {Name: "le", Group: Elementwise, Class: Ordered, Strides: AnyStride, min: 2, infer: compare, flops: perResult(1), Gradient: noGradient(isBool), Tolerance: Exact},
	And: {Name: "and", Group: Elementwise, Class: Bools, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: noGradient(isBool), Tolerance: Exact},
	Or:  {Name: "or", Group: Elementwise, Class: Bools, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: noGradient(isBool), Tolerance: Exact},
	Xor: {Name: "xor", Group: Elementwise, Class: Bools, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: noGradient(isBool), Tolerance: Exact},

	Where: {Name: "where", Group: Elementwise, Strides: AnyStride, min: 3, infer: inferWhere, Gradient: slopes("", "where(c, g, 0)", "where(c, 0, g)"), Tolerance: Exact},
}
