package ref

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

// Integer division truncates towards zero; it and the remainder give 0 where the divisor is 0. Parameters of integer
// ops are converted towards zero, the bounds of Clamp after they are moved into the dtype's range.

var unaryFloat = [ir.Codes]func(x float64) float64{
	ir.Neg: func(x float64) float64 { return -x }, ir.Abs: math.Abs, ir.Sign: sign, ir.ReLU: relu,
	ir.Floor: math.Floor, ir.Ceil: math.Ceil, ir.Round: math.RoundToEven, ir.Trunc: math.Trunc,
	ir.Sqrt: math.Sqrt, ir.Rsqrt: rsqrt, ir.Exp: math.Exp, ir.Expm1: math.Expm1, ir.Log: log, ir.Log1p: math.Log1p,
	ir.Sin: math.Sin, ir.Cos: math.Cos, ir.Tanh: math.Tanh, ir.Sigmoid: sigmoid, ir.Erf: math.Erf,
	ir.GELU: gelu, ir.GELUTanh: geluTanh, ir.SiLU: silu,
}

var unaryInt = map[ir.Code]func(x int64) int64{
	ir.Neg: func(x int64) int64 { return -x }, ir.Abs: func(x int64) int64 { return max(x, -x) },
	ir.Sign: func(x int64) int64 { return min(max(x, -1), 1) }, ir.ReLU: func(x int64) int64 { return max(x, 0) },
	ir.Not: func(x int64) int64 { return 1 - x },
}

var binaryFloat = [ir.Codes]func(x, y float64) float64{
	ir.Add: func(x, y float64) float64 { return x + y }, ir.Sub: func(x, y float64) float64 { return x - y },
	ir.Mul: func(x, y float64) float64 { return x * y }, ir.Div: func(x, y float64) float64 { return x / y },
	ir.Pow: pow, ir.Rem: rem,
	ir.Maximum:  func(x, y float64) float64 { return max(x, y) },
	ir.Minimum:  func(x, y float64) float64 { return min(x, y) },
	ir.ReLUGrad: reluGrad, ir.GELUGrad: geluGrad, ir.GELUTanhGrad: geluTanhGrad, ir.SiLUGrad: siluGrad,
}

var binaryInt = map[ir.Code]func(x, y int64) int64{
	ir.Add: func(x, y int64) int64 { return x + y }, ir.Sub: func(x, y int64) int64 { return x - y },
	ir.Mul: func(x, y int64) int64 { return x * y }, ir.Div: divInt, ir.Rem: remInt,
	ir.Maximum: func(x, y int64) int64 { return max(x, y) }, ir.Minimum: func(x, y int64) int64 { return min(x, y) },
	ir.And: func(x, y int64) int64 { return x & y }, ir.Or: func(x, y int64) int64 { return x | y },
	ir.Xor:    func(x, y int64) int64 { return x ^ y },
	ir.BitAnd: func(x, y int64) int64 { return x & y }, ir.BitOr: func(x, y int64) int64 { return x | y },
	ir.BitXor: func(x, y int64) int64 { return x ^ y }, ir.GCD: gcd,
}

func init() {
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		if unaryFloat[code] != nil {
			set(unary, code)
		}
		if binaryFloat[code] != nil {
			set(pairwise, code)
		}
	}
	set(unary, ir.Not)
	set(pairwise, ir.And, ir.Or, ir.Xor, ir.BitAnd, ir.BitOr, ir.BitXor, ir.GCD)
	set(shift, ir.ShiftLeft, ir.ShiftRight)
	set(comparison, ir.Eq, ir.Ne, ir.Lt, ir.Le)
	set(affine, ir.Affine)
	set(axpy, ir.Axpy)
	set(clamp, ir.Clamp)
	set(powScalar, ir.PowScalar)
	set(lerp, ir.Lerp)
	set(where, ir.Where)
}

// mapped applies f to the elements of the first and last operand, g where they are integers.
func (c *call) mapped(f func(x, y float64) float64, g func(x, y int64) int64) ([]Array, error) {
	x, y := &c.in[0], &c.in[len(c.in)-1]
	if integral(x.Type.DType) {
		v := make([]int64, len(x.Data))
		for i := range v {
			v[i] = g(x.int(i), y.int(i))
		}
		return c.ints(v)
	}
	v := make([]float64, len(x.Data))
	for i := range v {
		v[i] = f(x.Data[i], y.Data[i])
	}
	return c.one(v)
}

func unary(c *call) ([]Array, error) {
	f, g := unaryFloat[c.op.Code], unaryInt[c.op.Code]
	return c.mapped(func(x, _ float64) float64 { return f(x) }, func(x, _ int64) int64 { return g(x) })
}

func pairwise(c *call) ([]Array, error) {
	return c.mapped(binaryFloat[c.op.Code], binaryInt[c.op.Code])
}

// shift knows how many bits there are.
func shift(c *call) ([]Array, error) {
	bits := int64(8 * c.op.In(0).DType.Size())
	return c.mapped(nil, func(x, y int64) int64 {
		switch outside := y < 0 || y >= bits; {
		case c.op.Code == ir.ShiftLeft && outside:
			return 0
		case c.op.Code == ir.ShiftLeft:
			return x << y
		case outside:
			return x >> 63
		}
		return x >> y
	})
}

func comparison(c *call) ([]Array, error) {
	x, y := &c.in[0], &c.in[1]
	v := make([]int64, len(x.Data))
	for i := range v {
		var is bool
		if integral(x.Type.DType) {
			is = Compare(c.op.Code, x.int(i), y.int(i))
		} else {
			is = Compare(c.op.Code, x.Data[i], y.Data[i])
		}
		if is {
			v[i] = 1
		}
	}
	return c.ints(v)
}

// Compare is a comparison of two numbers, by its op: Eq, Ne, Lt or Le.
func Compare[T int64 | float64](code ir.Code, x, y T) bool {
	switch code {
	case ir.Eq:
		return x == y
	case ir.Ne:
		return x != y
	case ir.Lt:
		return x < y
	}
	return x <= y
}

// integer converts a parameter to the dtype of an integer operand.
func (c *call) integer(p float64) int64 {
	a := convertFloats(ir.Dense(c.op.In(0).DType), []float64{p})
	return a.int(0)
}

func affine(c *call) ([]Array, error) {
	p, q := c.scalar(0), c.scalar(1)
	return c.mapped(func(x, _ float64) float64 { return p*x + q },
		func(x, _ int64) int64 { return c.integer(p)*x + c.integer(q) })
}

func axpy(c *call) ([]Array, error) {
	p := c.scalar(0)
	return c.mapped(func(x, y float64) float64 { return x + p*y },
		func(x, y int64) int64 { return x + c.integer(p)*y })
}

func clamp(c *call) ([]Array, error) {
	lo, hi, dt := c.scalar(0), c.scalar(1), c.op.In(0).DType
	within := func(p float64) int64 { return c.integer(min(max(p, dt.Lowest()), dt.Max())) }
	return c.mapped(func(x, _ float64) float64 { return min(max(x, lo), hi) },
		func(x, _ int64) int64 { return min(max(x, within(lo)), within(hi)) })
}

func powScalar(c *call) ([]Array, error) {
	return c.mapped(func(x, _ float64) float64 { return pow(x, c.scalar(0)) }, nil)
}

func lerp(c *call) ([]Array, error) {
	return c.mapped(func(x, y float64) float64 { return x + c.scalar(0)*(y-x) }, nil)
}

func where(c *call) ([]Array, error) {
	n := len(c.in[1].Data)
	both := Array{Type: c.in[1].Type, Data: append(append([]float64(nil), c.in[1].Data...), c.in[2].Data...)}
	if integral(both.Type.DType) {
		both.Int = make([]int64, 2*n)
		for i := range n {
			both.Int[i], both.Int[n+i] = c.in[1].int(i), c.in[2].int(i)
		}
	}
	from := make([]int, n)
	for i := range from {
		from[i] = i
		if c.in[0].int(i) == 0 {
			from[i] = n + i
		}
	}
	return c.pick(&both, from, 0)
}

// sign is 0 of NaN, as PyTorch's.
func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// log repairs math.Log, which on amd64 is wrong by up to 36 for subnormal numbers.
func log(x float64) float64 {
	if x > 0 && x < 0x1p-1000 {
		m, e := math.Frexp(x)
		return math.Log(m) + float64(e)*math.Ln2
	}
	return math.Log(x)
}

// pow repairs math.Pow, which takes the logarithm of subnormal numbers that log repairs.
func pow(x, y float64) float64 {
	if x > 0 && x < 0x1p-1000 && math.Abs(y) < 1 {
		m, e := math.Frexp(x)
		return math.Pow(m, y) * math.Exp2(float64(e)*y)
	}
	return math.Pow(x, y)
}

func relu(x float64) float64    { return max(x, 0) }
func rsqrt(x float64) float64   { return 1 / math.Sqrt(x) }
func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// phi is the standard normal distribution function, without cancellation where it is small.
func phi(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func gelu(x float64) float64 { return x * phi(x) }

// geluArgument is √(2/π)·(x + 0.044715·x³) and its derivative.
func geluArgument(x float64) (u, du float64) {
	k := math.Sqrt(2 / math.Pi)
	return k * (x + 0.044715*x*x*x), k * (1 + 3*0.044715*x*x)
}

func geluTanh(x float64) float64 {
	u, _ := geluArgument(x)
	return x / 2 * (1 + math.Tanh(u))
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }

func reluGrad(y, g float64) float64 {
	if y <= 0 { // NaN is not
		return 0
	}
	return g
}

func geluGrad(x, g float64) float64 {
	return g * (phi(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi))
}

// geluTanhGrad is 0 or 1 times g far from 0, also where the cube of x overflows.
func geluTanhGrad(x, g float64) float64 {
	x = max(-30, min(x, 30))
	u, du := geluArgument(x)
	t := math.Tanh(u)
	return g * ((1+t)/2 + x/2*(1-t*t)*du)
}

func siluGrad(x, g float64) float64 {
	s := sigmoid(x)
	return g * s * (1 + x*(1-s))
}

// rem is x - y·⌊x/y⌋ from the exact remainder of the truncated quotient. Like PyTorch's, a remainder of the wrong sign
// gets y added.
func rem(x, y float64) float64 {
	r := math.Mod(x, y)
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

func divInt(x, y int64) int64 {
	if y == 0 {
		return 0
	}
	return x / y
}

func gcd(x, y int64) int64 {
	for y != 0 {
		x, y = y, x%y
	}
	return max(x, -x)
}

func remInt(x, y int64) int64 {
	if y == 0 {
		return 0
	}
	r := x % y
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}
