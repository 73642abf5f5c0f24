package tensor_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// TestIntegersStayIntegers: what PyTorch computes in integers is exact where float32 is not.
func TestIntegersStayIntegers(t *testing.T) {
	env := open(t)
	const big = 25010001 // float32 has 25010000 and 25010002
	n := tensor.From(env, []int64{big, -7, 3, 0}, 4)
	for name, c := range map[string]struct {
		got  *tensor.Tensor
		want []float64
	}{
		"floor": {n.Floor(), []float64{big, -7, 3, 0}}, "ceil": {n.Ceil(), []float64{big, -7, 3, 0}},
		"round": {n.Round(), []float64{big, -7, 3, 0}}, "trunc": {n.Trunc(), []float64{big, -7, 3, 0}},
		"squared":      {n.PowScalar(2), []float64{big * big, 49, 9, 0}},
		"to the 0th":   {n.PowScalar(0), []float64{1, 1, 1, 1}},
		"to the 1st":   {n.PowScalar(1), []float64{big, -7, 3, 0}},
		"by integers":  {n.Pow(tensor.From(env, []int64{1, 3, -1, 0}, 4)), []float64{big, -343, 0, 1}},
		"of -1":        {tensor.From(env, []int64{-1, -1, 1, 0}, 4).Pow(tensor.From(env, []int64{-3, -2, -5, -1}, 4)), []float64{-1, 1, 1, 0}},
		"wrapped":      {tensor.From(env, []uint8{3, 2, 255, 0}, 4).Pow(tensor.From(env, []uint8{5, 8, 3, 0}, 4)), []float64{243, 0, 255, 1}},
		"rounded down": {n.FloorDiv(tensor.From(env, []int64{2, 2, -2, 5}, 4)), []float64{12505000, -4, -2, 0}},
	} {
		if dt := c.got.DType(); dt.IsFloat() {
			t.Errorf("%s: %s", name, dt)
		}
		equal(t, name, c.got, c.want...)
	}
	if dt := n.PowScalar(0.5).DType(); dt != dtype.F32 {
		t.Errorf("the root of integers is %s", dt)
	}
	fails(t, env, func() { n.PowScalar(-1) }, "i64", "to the power -1", "Cast")
}

// TestIntegerFloorDiv compares with arithmetic that does not wrap, up to the limits.
func TestIntegerFloorDiv(t *testing.T) {
	env := open(t)
	floorDivs[int32](t, env, math.MinInt32, math.MaxInt32)
	floorDivs[int64](t, env, math.MinInt64, math.MaxInt64)
	floorDivs[uint8](t, env, 0, math.MaxUint8)
}

func floorDivs[T int32 | int64 | uint8](t *testing.T, env *tensor.Env, lowest, highest T) {
	var x, y, want []T
	numbers := []T{0, 1, 2, 3, 7, highest / 2}
	for _, k := range numbers[:5] {
		numbers = append(numbers, lowest+k, highest-k, 0-k)
	}
	for _, a := range numbers {
		for _, b := range numbers {
			x, y, want = append(x, a), append(y, b), append(want, floorDiv(a, b))
		}
	}
	got := tensor.Data[T](tensor.From(env, x, len(x)).FloorDiv(tensor.From(env, y, len(y))).To(fresh(t, "cpu")))
	for i, q := range got {
		if q != want[i] {
			t.Errorf("%T: %d // %d = %d, want %d", q, x[i], y[i], q, want[i])
		}
	}
}

// floorDiv is big.Int's Euclidean quotient made a floor, wrapped; 0 by 0.
func floorDiv[T int32 | int64 | uint8](a, b T) T {
	if b == 0 {
		return 0
	}
	x, y, rest := big.NewInt(int64(a)), big.NewInt(int64(b)), new(big.Int)
	q, _ := new(big.Int).DivMod(x, y, rest)
	if b < 0 && rest.Sign() != 0 { // Euclid rounds up where the divisor is negative
		q.Sub(q, big.NewInt(1))
	}
	return T(new(big.Int).And(q, new(big.Int).SetUint64(math.MaxUint64)).Uint64())
}

// TestIntegerPowersLeaveNothing: what the squarings make goes at once, and but for the power nothing stays.
func TestIntegerPowersLeaveNothing(t *testing.T) {
	env := open(t)
	dev := env.Device()
	const size = 100 * 8
	for name, c := range map[string]struct {
		f    func(n *tensor.Tensor) *tensor.Tensor
		most int64 // in values of n's size
	}{
		"by integers":    {func(n *tensor.Tensor) *tensor.Tensor { return n.Pow(n) }, 8},
		"to a number":    {func(n *tensor.Tensor) *tensor.Tensor { return n.PowScalar(1e6) }, 4},
		"floor division": {func(n *tensor.Tensor) *tensor.Tensor { return n.FloorDiv(n) }, 8},
	} {
		turn(env.NoGrad(), 0, func(e *tensor.Env) {
			n := e.FullOf(dtype.I64, 3, 100)
			before := dev.Memory().Used
			dev.ResetPeak()
			c.f(n)
			if m := dev.Memory(); m.Used != before+size || m.ValuesPeak > before+c.most*size {
				t.Errorf("%s: %d bytes are in use and were %d, a value has %d; at most %d", name, m.Used, before, size, m.ValuesPeak)
			}
		})
	}
}

// TestFloorDiv has what PyTorch's div with rounding_mode="floor" gives at the edges.
func TestFloorDiv(t *testing.T) {
	env := open(t)
	inf, nan := math.Inf(1), math.NaN()
	x := tensor.From(env, []float64{5, -5, 1, -1, 1, 0, 3, -3, 0, inf, 2, nan, 1e300}, 13)
	y := tensor.From(env, []float64{2, 2, 0.1, 0.1, 0, 0, inf, inf, inf, inf, nan, 2, 1e-300}, 13)
	equal(t, "quotients", x.FloorDiv(y), 2, -3, 9, -10, inf, nan, 0, -1, 0, nan, nan, nan, inf)
	a, b := x.RequireGrad(), y.RequireGrad()
	for _, g := range tensor.Grad(a.FloorDiv(b).Sum(), a, b) {
		equal(t, "gradient", g, make([]float64, 13)...)
	}
}

// TestBatchNormOfInfinity: the mean of a channel with an infinite element is infinite, wherever in its rows that lies, and
// other channels are as without it.
func TestBatchNormOfInfinity(t *testing.T) {
	env := open(t)
	inf := math.Inf(1)
	const n, c, s = 67, 3, 131
	for _, at := range []int{0, 5, s - 1, c * s * 40, c*s*(n-1) + s - 1} {
		for _, sign := range []float64{1, -1} {
			v := make([]float32, n*c*s)
			for i := range v {
				v[i] = float32(i/s%c) + float32(i%2)
			}
			v[at] = float32(sign * inf)
			_, mean, variance := tensor.From(env, v, n, c, s).BatchNorm(env.Ones(c), env.Zeros(c), 1e-5)
			equal(t, "mean", mean.Slice(0, 0, 1), sign*inf)
			if d := tensor.Data[float32](mean.To(fresh(t, "cpu"))); math.Abs(float64(d[2])-2.5) > 1e-4 {
				t.Errorf("with %v at %d the mean of another channel is %v, want 2.5", v[at], at, d[2])
			}
			if d := tensor.Data[float32](variance.To(fresh(t, "cpu"))); !math.IsNaN(float64(d[0])) {
				t.Errorf("with %v at %d the variance is %v, want NaN", v[at], at, d[0])
			}
		}
	}
}

// TestFloorDivZeros: a zero has the sign of the quotient, as PyTorch's div with rounding_mode="floor" gives it.
func TestFloorDivZeros(t *testing.T) {
	env := open(t)
	inf, minus := math.Inf(1), math.Copysign(0, -1)
	x := []float64{-0.5, 0.5, -3, 3, 0, minus, 0, minus, minus, 0}
	y := []float64{-1, 1, -inf, inf, -inf, inf, inf, 2, -inf, -2}
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16, dtype.F32, dtype.F64} {
		q := tensor.From(env, x, len(x)).Cast(dt).FloorDiv(tensor.From(env, y, len(y)).Cast(dt))
		for i, v := range tensor.Data[float64](q.Cast(dtype.F64).To(fresh(t, "cpu"))) {
			if v != 0 || math.Signbit(v) != math.Signbit(x[i]/y[i]) {
				t.Errorf("%v: %v // %v = %v, want the zero of %v", dt, x[i], y[i], v, x[i]/y[i])
			}
		}
	}
}

func TestLerpEnds(t *testing.T) {
	env := open(t)
	x, y := tensor.From(env, []float32{1e8, 1, -3}, 3), tensor.From(env, []float32{1, 3e8, 7}, 3)
	equal(t, "at 0", x.Lerp(y, 0), 1e8, 1, -3)
	equal(t, "at 1", x.Lerp(y, 1), 1, 3e8, 7)
	equal(t, "in place at 1", x.Clone().LerpInPlace(y, 1), 1, 3e8, 7)
	w := param(env, 2)
	turn(env, 1, func(e *tensor.Env) {
		h := w.In(e).Scale(1)
		h.LerpInPlace(w.In(e).Square(), 0.75).Sum().Backward() // 0.25w + 0.75w²
		equal(t, "gradient in place", w.Grad(), 0.25+0.75*4)
	})
}

func TestNormOfZero(t *testing.T) {
	env := open(t)
	x := tensor.From(env, []float64{0, 0, 3, 4}, 2, 2).RequireGrad()
	n := x.Norm(1)
	equal(t, "norms", n, 0, 5)
	equal(t, "gradient", tensor.Grad(n.Sum(), x)[0], 0, 0, 0.6, 0.8)
}

func TestScaleKeepsTheSignOfZero(t *testing.T) {
	env := open(t)
	z := tensor.From(env, []float64{math.Copysign(0, -1), 0}, 2)
	equal(t, "scaled", z.FullLike(1).Div(z.Scale(3)), math.Inf(-1), math.Inf(1))
	equal(t, "scaled in place", z.FullLike(1).Div(z.ScaleInPlace(3)), math.Inf(-1), math.Inf(1))
}

func TestConvTransposeInEvaluation(t *testing.T) {
	env := open(t)
	x, w, b := env.Randn(2, 4, 3, 3), tensor.NewParam(env.Randn(4, 1, 3, 2)), tensor.NewParam(env.Ones(2))
	c := tensor.ConvTranspose{Conv: tensor.Conv{Stride: [2]int{2, 1}, Padding: [2]int{1, 0}, Groups: 2}, OutputPadding: [2]int{1, 0}}
	for _, e := range []*tensor.Env{env, env.NoGrad(), env.Eval(), env.NoGrad().Eval()} {
		if y := x.In(e).ConvTranspose2d(w, b, c); !y.SameShape(env.Zeros(2, 2, 6, 4)) {
			t.Errorf("shape %v", y.Shape())
		}
	}
	c.OutputPadding[0] = 2
	fails(t, env, func() { x.ConvTranspose2d(w, b, c) }, "output padding [2 0]", "numbers_test.go")
	fails(t, env, func() { x.Select(0, 0).ConvTranspose2d(w, b, c) }, "[4 3 3]")
}

// TestFuncGradients: a Func must account for every operand, and for what it saved.
func TestFuncGradients(t *testing.T) {
	env := open(t)
	w := param(env, 1, 2)
	w.SetPath("head.weight")
	mul := func(backward func(c *tensor.Call, g []*tensor.Tensor) []*tensor.Tensor, save func(c *tensor.Call, in []*tensor.Tensor, y *tensor.Tensor)) tensor.Func {
		return tensor.Func{Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor {
			y := in[0].Mul(in[1])
			save(c, in, y)
			return []*tensor.Tensor{y}
		}, Backward: backward}
	}
	few := mul(func(_ *tensor.Call, g []*tensor.Tensor) []*tensor.Tensor { return g },
		func(*tensor.Call, []*tensor.Tensor, *tensor.Tensor) {})
	x := tensor.From(env, []float64{3, 4}, 2)
	fails(t, env, func() { few.Apply(x, w)[0].Sum().Backward() }, "1 gradients for 2 operands", "operand 1, f64[2] (head.weight)", "nil")

	cube := func(saved func(in []*tensor.Tensor, y *tensor.Tensor) *tensor.Tensor) tensor.Func { // x³, which needs x²
		return tensor.Func{Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor {
			square := in[0].Square()
			c.Save(in[0], saved(in, square))
			return []*tensor.Tensor{square.Mul(in[0])}
		}, Backward: func(c *tensor.Call, g []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{g[0].Scale(3).Mul(c.Saved()[1])}
		}}
	}
	computed := cube(func(_ []*tensor.Tensor, square *tensor.Tensor) *tensor.Tensor { return square })
	leaf := x.RequireGrad()
	equal(t, "once", tensor.Grad(computed.Apply(leaf)[0].Sum(), leaf)[0], 27, 48)
	first := tensor.GradGraph(computed.Apply(leaf)[0].Sum(), leaf)[0]
	equal(t, "the first, recorded", first, 27, 48)
	fails(t, env, func() { tensor.Grad(first.Sum(), leaf) }, "differentiated twice", "computed and saved", "numbers_test.go")

	result := tensor.Func{Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor {
		y := in[0].Exp()
		c.Save(y)
		return []*tensor.Tensor{y}
	}, Backward: func(c *tensor.Call, g []*tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{g[0].Mul(c.Saved()[0])}
	}}
	if err := tensor.GradCheck(func(in []*tensor.Tensor) *tensor.Tensor { return result.Apply(in[0])[0] }, []*tensor.Tensor{x.Detach()}, tensor.GradCheckConfig{Second: true}); err != nil {
		t.Errorf("a saved result: %v", err)
	}
}

// TestLogSumExpOfInfinities: of -Inf alone the gradient is 0 and not NaN, as PyTorch's is; of other rows it is the softmax.
func TestLogSumExpOfInfinities(t *testing.T) {
	env := open(t)
	inf := math.Inf(-1)
	x := tensor.From(env, []float64{inf, inf, inf, 0, 0, inf, 1, 1, 1}, 3, 3).RequireGrad()
	y := x.LogSumExp(1)
	if got, want := y.Floats(), []float64{inf, math.Log(2), 1 + math.Log(3)}; !slices.EqualFunc(got, want, closeTo) {
		t.Errorf("%v, want %v", got, want)
	}
	got := tensor.Grad(y.Sum(), x)[0].Floats()
	if want := []float64{0, 0, 0, 0.5, 0.5, 0, 1. / 3, 1. / 3, 1. / 3}; !slices.EqualFunc(got, want, closeTo) {
		t.Errorf("gradient %v, want %v", got, want)
	}
}

func closeTo(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-6 }
