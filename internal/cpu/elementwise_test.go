package cpu

import (
	"math"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

var (
	numberTypes  = append(slices.Clone(floatTypes), dtype.I64, dtype.I32, dtype.U8)
	boolTypes    = []dtype.DType{dtype.Bool}
	bitTypes     = []dtype.DType{dtype.I64, dtype.I32, dtype.U8}
	orderedTypes = append(slices.Clone(numberTypes), dtype.Bool)
)

// elementwise gives each op its value in float64. a are the elements of the operands, p the parameters; values of
// integers may lie outside of their range and are wrapped by the test.
var elementwise = []struct {
	code   ir.Code
	types  []dtype.DType
	params []float64
	want   func(a, p []float64) float64
}{
	{ir.Neg, numberTypes, nil, func(a, _ []float64) float64 { return -a[0] }},
	{ir.Abs, numberTypes, nil, func(a, _ []float64) float64 { return math.Abs(a[0]) }},
	{ir.Sign, numberTypes, nil, func(a, _ []float64) float64 { return signOf(a[0]) }},
	{ir.Floor, floatTypes, nil, func(a, _ []float64) float64 { return math.Floor(a[0]) }},
	{ir.Ceil, floatTypes, nil, func(a, _ []float64) float64 { return math.Ceil(a[0]) }},
	{ir.Round, floatTypes, nil, func(a, _ []float64) float64 { return math.RoundToEven(a[0]) }},
	{ir.Trunc, floatTypes, nil, func(a, _ []float64) float64 { return math.Trunc(a[0]) }},
	{ir.Sqrt, floatTypes, nil, func(a, _ []float64) float64 { return math.Sqrt(a[0]) }},
	{ir.Rsqrt, floatTypes, nil, func(a, _ []float64) float64 { return 1 / math.Sqrt(a[0]) }},
	{ir.Exp, floatTypes, nil, func(a, _ []float64) float64 { return math.Exp(a[0]) }},
	{ir.Expm1, floatTypes, nil, func(a, _ []float64) float64 { return math.Expm1(a[0]) }},
	{ir.Log, floatTypes, nil, func(a, _ []float64) float64 { return math.Log(a[0]) }},
	{ir.Log1p, floatTypes, nil, func(a, _ []float64) float64 { return math.Log1p(a[0]) }},
	{ir.Sin, floatTypes, nil, func(a, _ []float64) float64 { return math.Sin(a[0]) }},
	{ir.Cos, floatTypes, nil, func(a, _ []float64) float64 { return math.Cos(a[0]) }},
	{ir.Tanh, floatTypes, nil, func(a, _ []float64) float64 { return math.Tanh(a[0]) }},
	{ir.Sigmoid, floatTypes, nil, func(a, _ []float64) float64 { return 1 / (1 + math.Exp(-a[0])) }},
	{ir.Erf, floatTypes, nil, func(a, _ []float64) float64 { return math.Erf(a[0]) }},
	{ir.ReLU, numberTypes, nil, func(a, _ []float64) float64 { return max(a[0], 0) }},
	{ir.Not, boolTypes, nil, func(a, _ []float64) float64 { return 1 - a[0] }},
	{ir.Affine, numberTypes, []float64{3, -2}, func(a, p []float64) float64 { return p[0]*a[0] + p[1] }},
	{ir.PowScalar, floatTypes, []float64{2}, func(a, p []float64) float64 { return a[0] * a[0] }},
	{ir.PowScalar, floatTypes, []float64{3}, func(a, p []float64) float64 { return a[0] * a[0] * a[0] }},
	{ir.PowScalar, floatTypes, []float64{-1}, func(a, p []float64) float64 { return 1 / a[0] }},
	{ir.PowScalar, floatTypes, []float64{0.5}, func(a, p []float64) float64 { return math.Pow(a[0], p[0]) }},
	{ir.Clamp, numberTypes, []float64{-1.5, 2.5}, func(a, p []float64) float64 { return min(max(a[0], p[0]), p[1]) }},
	{ir.Clamp, numberTypes, []float64{math.Inf(-1), 3}, func(a, p []float64) float64 { return min(a[0], 3) }},
	{ir.Clamp, numberTypes, []float64{3, math.Inf(1)}, func(a, p []float64) float64 { return max(a[0], 3) }},
	{ir.Axpy, numberTypes, []float64{3}, func(a, p []float64) float64 { return a[0] + p[0]*a[1] }},
	{ir.Lerp, floatTypes, []float64{0.25}, func(a, p []float64) float64 { return a[0] + p[0]*(a[1]-a[0]) }},
	{ir.Add, numberTypes, nil, func(a, _ []float64) float64 { return a[0] + a[1] }},
	{ir.Sub, numberTypes, nil, func(a, _ []float64) float64 { return a[0] - a[1] }},
	{ir.Mul, numberTypes, nil, func(a, _ []float64) float64 { return a[0] * a[1] }},
	{ir.Div, floatTypes, nil, func(a, _ []float64) float64 { return a[0] / a[1] }},
	{ir.Div, []dtype.DType{dtype.I64, dtype.I32, dtype.U8}, nil, func(a, _ []float64) float64 {
		if a[1] == 0 {
			return 0
		}
		return math.Trunc(a[0] / a[1])
	}},
	{ir.Rem, floatTypes, nil, func(a, _ []float64) float64 { return floorMod(a[0], a[1]) }},
	{ir.Rem, []dtype.DType{dtype.I64, dtype.I32, dtype.U8}, nil, func(a, _ []float64) float64 {
		if a[1] == 0 {
			return 0
		}
		return a[0] - a[1]*math.Floor(a[0]/a[1])
	}},
	{ir.Pow, floatTypes, nil, func(a, _ []float64) float64 { return math.Pow(a[0], a[1]) }},
	{ir.Maximum, orderedTypes, nil, func(a, _ []float64) float64 { return max(a[0], a[1]) }},
	{ir.Minimum, orderedTypes, nil, func(a, _ []float64) float64 { return min(a[0], a[1]) }},
	{ir.Eq, orderedTypes, nil, func(a, _ []float64) float64 { return truth(a[0] == a[1]) }},
	{ir.Ne, orderedTypes, nil, func(a, _ []float64) float64 { return truth(a[0] != a[1]) }},
	{ir.Lt, orderedTypes, nil, func(a, _ []float64) float64 { return truth(a[0] < a[1]) }},
	{ir.Le, orderedTypes, nil, func(a, _ []float64) float64 { return truth(a[0] <= a[1]) }},
	{ir.And, boolTypes, nil, func(a, _ []float64) float64 { return a[0] * a[1] }},
	{ir.Or, boolTypes, nil, func(a, _ []float64) float64 { return max(a[0], a[1]) }},
	{ir.Xor, boolTypes, nil, func(a, _ []float64) float64 { return truth(a[0] != a[1]) }},
	{ir.BitAnd, bitTypes, nil, func(a, _ []float64) float64 { return float64(int64(a[0]) & int64(a[1])) }},
	{ir.BitOr, bitTypes, nil, func(a, _ []float64) float64 { return float64(int64(a[0]) | int64(a[1])) }},
	{ir.BitXor, bitTypes, nil, func(a, _ []float64) float64 { return float64(int64(a[0]) ^ int64(a[1])) }},
	{ir.ShiftLeft, bitTypes[:1], nil, func(a, _ []float64) float64 { return float64(int64(a[0]) << uint64(int64(a[1]))) }},
	{ir.ShiftRight, bitTypes, nil, func(a, _ []float64) float64 { return float64(int64(a[0]) >> uint64(int64(a[1]))) }},
	{ir.GCD, bitTypes, nil, func(a, _ []float64) float64 {
		x, y := int64(a[0]), int64(a[1])
		for y != 0 {
			x, y = y, x%y
		}
		return math.Abs(float64(x))
	}},
	{ir.GELU, floatTypes, nil, func(a, _ []float64) float64 { return a[0] * 0.5 * math.Erfc(-a[0]/math.Sqrt2) }},
	{ir.GELUTanh, floatTypes, nil, func(a, _ []float64) float64 {
		return 0.5 * a[0] * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(a[0]+0.044715*a[0]*a[0]*a[0])))
	}},
	{ir.SiLU, floatTypes, nil, func(a, _ []float64) float64 { return a[0] / (1 + math.Exp(-a[0])) }},
	{ir.ReLUGrad, floatTypes, nil, func(a, _ []float64) float64 { return a[1] * truth(!(a[0] <= 0)) }},
	{ir.GELUGrad, floatTypes, nil, func(a, _ []float64) float64 {
		return a[1] * (0.5*math.Erfc(-a[0]/math.Sqrt2) + a[0]*math.Exp(-a[0]*a[0]/2)/math.Sqrt(2*math.Pi))
	}},
	{ir.GELUTanhGrad, floatTypes, nil, func(a, _ []float64) float64 {
		c := math.Sqrt(2 / math.Pi)
		th := math.Tanh(c * (a[0] + 0.044715*a[0]*a[0]*a[0]))
		return a[1] * (0.5*(1+th) + 0.5*a[0]*(1-th*th)*c*(1+3*0.044715*a[0]*a[0]))
	}},
	{ir.SiLUGrad, floatTypes, nil, func(a, _ []float64) float64 {
		s := 1 / (1 + math.Exp(-a[0]))
		return a[1] * (s + a[0]*s*(1-s))
	}},
}

func signOf(v float64) float64 { return truth(v > 0) - truth(v < 0) }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// held is a value as a dtype holds it, but for rounding: integers truncated and wrapped, large numbers infinite.
func held(dt dtype.DType, v float64) float64 {
	switch {
	case dt == dtype.I64:
		return float64(int64(v))
	case dt == dtype.I32:
		return float64(int32(int64(v)))
	case dt == dtype.U8:
		return float64(uint8(int64(v)))
	case math.Abs(v) > dt.Max()*(1+dt.Epsilon()/4):
		return math.Inf(int(signOf(v)))
	}
	return v
}

func TestElementwise(t *testing.T) {
	r := testutil.Rand(t)
	for _, c := range elementwise {
		for _, dt := range c.types {
			for i := range 4 {
				shape := randomShape(r)
				if i == 0 { // more than a chunk
					shape = []int{70, 61}
					if dt == c.types[0] {
						shape = []int{130, 131}
					}
				}
				x := randomView(r, dt, shape)
				op := ir.New(c.code, ir.Attr{}, x)
				in := [][]float64{numbersFor(r, x)}
				if rows := []ir.Code{ir.Axpy, ir.Lerp}; c.code >= ir.Add && c.code <= ir.Xor || c.code >= ir.BitAnd && c.code <= ir.GCD || c.code >= ir.ReLUGrad && c.code <= ir.SiLUGrad || slices.Contains(rows, c.code) {
					y := randomView(r, dt, shape)
					op = ir.New(c.code, ir.Attr{}, x, y)
					in = append(in, numbersFor(r, y))
				}
				got := mustLaunch(t, op, ir.Scalars(c.params...), in...)
				want := make([]float64, x.Size())
				for j := range want {
					var a []float64
					for _, v := range got.in {
						a = append(a, v[j])
					}
					want[j] = held(dt, c.want(a, c.params))
				}
				compare(t, op, got.out[0], want, precision(dt), 2)
			}
		}
	}
}

// Special values: NaN, infinities and zeros of both signs, in each combination.
func TestElementwiseSpecial(t *testing.T) {
	special := []float64{0, math.Copysign(0, -1), 1, -1, 2.5, -3, math.Inf(1), math.Inf(-1), math.NaN()}
	var xs, ys []float64
	for _, x := range special {
		for _, y := range special {
			xs, ys = append(xs, x), append(ys, y)
		}
	}
	for _, c := range elementwise {
		for _, dt := range c.types {
			if !dt.IsFloat() || c.code == ir.ReLU || c.code == ir.ReLUGrad {
				continue
			}
			x := ir.Dense(dt, len(xs))
			op, in := ir.New(c.code, ir.Attr{}, x), [][]float64{xs}
			if _, err := op.Infer(); err != nil {
				op, in = ir.New(c.code, ir.Attr{}, x, x), [][]float64{xs, ys}
			}
			got := mustLaunch(t, op, ir.Scalars(c.params...), in...)
			want := make([]float64, len(xs))
			for i := range want {
				want[i] = c.want([]float64{xs[i], ys[i]}, c.params)
			}
			if c.code >= ir.GELU { // their limits at infinity are 0·∞, which forms differ in
				for i := range want {
					if math.IsInf(xs[i], 0) || math.IsInf(ys[i], 0) {
						want[i] = got.out[0][i]
					}
				}
			}
			compare(t, op, got.out[0], want, precision(dt), 2)
		}
	}
}

func TestReLUKeepsNaN(t *testing.T) {
	for _, dt := range floatTypes {
		x := ir.Dense(dt, 4)
		got := mustLaunch(t, ir.New(ir.ReLU, ir.Attr{}, x), ir.Params{}, []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1})
		if v := got.out[0]; v[0] == v[0] || !math.IsInf(v[1], 1) || v[2] != 0 || v[3] != 0 {
			t.Errorf("%s: %v", dt, v)
		}
	}
}

// Remainders of numbers far apart need the exact way.
func TestRemainderOfLargeQuotients(t *testing.T) {
	xs := []float64{1e30, -1e30, 16777216, 1e10, -1e-30, 3e38, 0x1p28, 5, -5}
	ys := []float64{7, 7, 3, 0.3, 1, 1e-38, 1, math.Inf(1), math.Inf(1)}
	x := ir.Dense(dtype.F32, len(xs))
	op := ir.New(ir.Rem, ir.Attr{}, x, x)
	got := mustLaunch(t, op, ir.Params{}, xs, ys)
	for i := range xs {
		a, b := got.in[0][i], got.in[1][i]
		want := math.Mod(a, b)
		if want != 0 && want < 0 != (b < 0) {
			want += b
		}
		if g := got.out[0][i]; g != float64(float32(want)) {
			t.Errorf("%g rem %g is %g, want %g", a, b, g, want)
		}
	}
}

func TestWhere(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range dtype.All() {
		for range 6 {
			shape := randomShape(r)
			c, x, y := randomView(r, dtype.Bool, shape), randomView(r, dt, shape), randomView(r, dt, shape)
			op := ir.New(ir.Where, ir.Attr{}, c, x, y)
			got := mustLaunch(t, op, ir.Params{}, numbersFor(r, c), numbersFor(r, x), numbersFor(r, y))
			want := make([]float64, x.Size())
			for i := range want {
				want[i] = got.in[2][i]
				if got.in[0][i] != 0 {
					want[i] = got.in[1][i]
				}
			}
			compare(t, op, got.out[0], want, 0, 0)
		}
	}
}

// The result may be the memory of an operand of the same type.
func TestElementwiseInPlace(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range numberTypes {
		for _, n := range []int{5, 3000, 17000} {
			x := ir.Dense(dt, n)
			for _, op := range []ir.Op{ir.New(ir.Add, ir.Attr{}, x, x), ir.New(ir.Neg, ir.Attr{}, x), ir.New(ir.Maximum, ir.Attr{}, x, ir.Strided(dt, []int{n}, []int{0}))} {
				in := [][]float64{numbersFor(r, x), numbersFor(r, x)}
				want := mustLaunch(t, op, ir.Params{}, in[:op.NumIn()]...)
				k, _ := New().Prepare(op)
				var args []device.Arg
				for i, x := range op.Ins() {
					b := newBuffer(t, bytesOf(x))
					write(b.arg, x, in[i])
					args = append(args, b.arg)
				}
				q, _ := New().NewQueue()
				if err := q.Launch(k, append([]device.Arg{args[0]}, args...), nil); err != nil {
					t.Fatal(err)
				}
				compare(t, op, read(args[0], x), want.out[0], 0, 0)
			}
		}
	}
}

func TestSmallLaunchDoesNotAllocate(t *testing.T) {
	x := ir.Dense(dtype.F32, 4)
	row := ir.Strided(dtype.F32, []int{4}, []int{0})
	for _, op := range []ir.Op{
		ir.New(ir.Add, ir.Attr{}, x, x),
		ir.New(ir.Add, ir.Attr{}, x, row),
		ir.New(ir.Affine, ir.Attr{}, x),
		ir.New(ir.Affine, ir.Attr{}, ir.Dense(dtype.I64, 4)),
		ir.New(ir.Copy, ir.Attr{}, x),
		ir.New(ir.Cast, ir.Attr{DType: dtype.BF16}, x),
		ir.New(ir.Sum, ir.Attr{Axes: 1}, x),
		ir.New(ir.Full, ir.Attr{Out: x}),
		ir.New(ir.Uniform, ir.Attr{Out: x}),
		ir.New(ir.Cat, ir.Attr{}, x, x),
		ir.New(ir.ArgMax, ir.Attr{}, x),
	} {
		k, err := New().Prepare(op)
		if err != nil {
			t.Fatal(err)
		}
		var args []device.Arg
		for _, ts := range [][]*ir.Type{k.Out, op.Ins()} {
			for _, x := range ts {
				args = append(args, newBuffer(t, bytesOf(x)).arg)
			}
		}
		q, _ := New().NewQueue()
		p := new(device.Params)
		if n := testutil.Allocations(200, func() {
			if err := q.Launch(k, args, p); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s of %v allocates %v times", op.Code, op.Ins(), n)
		}
	}
}

func BenchmarkElementwise(b *testing.B) {
	x := ir.Dense(dtype.F32, 512, 512)
	row := ir.Strided(dtype.F32, []int{512, 512}, []int{0, 1})
	turned := ir.Strided(dtype.F32, []int{512, 512}, []int{1, 512})
	h := ir.Dense(dtype.BF16, 512, 512)
	b.Run("add", func(b *testing.B) { bench(b, ir.New(ir.Add, ir.Attr{}, x, x), ir.Params{}) })
	b.Run("add-row", func(b *testing.B) { bench(b, ir.New(ir.Add, ir.Attr{}, x, row), ir.Params{}) })
	b.Run("add-transposed", func(b *testing.B) { bench(b, ir.New(ir.Add, ir.Attr{}, x, turned), ir.Params{}) })
	b.Run("add-bf16", func(b *testing.B) { bench(b, ir.New(ir.Add, ir.Attr{}, h, h), ir.Params{}) })
	b.Run("gelu", func(b *testing.B) { bench(b, ir.New(ir.GELU, ir.Attr{}, x), ir.Params{}) })
	b.Run("tanh", func(b *testing.B) { bench(b, ir.New(ir.Tanh, ir.Attr{}, x), ir.Params{}) })
	b.Run("affine", func(b *testing.B) { bench(b, ir.New(ir.Affine, ir.Attr{}, x), ir.Scalars(2, 1)) })
}
