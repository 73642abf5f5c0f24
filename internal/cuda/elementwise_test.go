package cuda_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/conform"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// evaluator computes elementwise ops of arrays on the simulated GPU.
func evaluator(t *testing.T) func(code ir.Code, attr ir.Attr, in ...ref.Array) ref.Array {
	t.Helper()
	dev := opener(t, simcuda.Config{})()
	l, err := conform.NewLauncher(dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(code ir.Code, attr ir.Attr, in ...ref.Array) (out ref.Array) {
		t.Helper()
		err := l.Try(func() {
			defer l.Release()
			var v []ir.Value
			for _, a := range in {
				v = append(v, l.Put(a.Type, a))
			}
			out = l.Get(l.Emit(code, attr, ir.Params{}, v...)[0])
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// ulp is the distance from |x| to the next number of a dtype.
func ulp(dt dtype.DType, x float64) float64 {
	if dt == dtype.F32 {
		v := float32(math.Min(math.Abs(x), math.MaxFloat32/2))
		return float64(math.Nextafter32(v, math.MaxFloat32) - v)
	}
	v := math.Min(math.Abs(x), math.MaxFloat64/2)
	return math.Nextafter(v, math.MaxFloat64) - v
}

// TestMathAccuracy measures the elementary functions in units of the last place against package math, far beyond what
// the conformance suite asks for and where it does not look: the whole range of arguments.
func TestMathAccuracy(t *testing.T) {
	eval := evaluator(t)
	r := testutil.Rand(t)
	scales := func(lo, hi float64) func() float64 { // of either sign, magnitudes 2^lo … 2^hi
		return func() float64 { return math.Copysign(math.Exp2(lo+r.Float64()*(hi-lo)), r.Float64()-0.5) }
	}
	positive := func(lo, hi float64) func() float64 {
		return func() float64 { return math.Exp2(lo + r.Float64()*(hi-lo)) }
	}
	for _, c := range []struct {
		code     ir.Code
		f        func(float64) float64
		draw     func() float64
		f32, f64 float64 // the greatest errors, of which package math's own is a part
	}{
		{ir.Exp, math.Exp, scales(-30, 6.47), 1.5, 3},
		{ir.Expm1, math.Expm1, scales(-30, 6.45), 2, 3.5},
		{ir.Log, math.Log, positive(-126, 127), 1.5, 3},
		{ir.Log, math.Log, positive(-0.7, 0.7), 1.5, 3},
		{ir.Log1p, math.Log1p, positive(-40, 127), 2, 3.5},
		{ir.Log1p, math.Log1p, func() float64 { return r.Float64() - 0.9375 }, 2, 3.5},
		{ir.Sin, math.Sin, scales(-20, 20), 2, 3},
		{ir.Cos, math.Cos, scales(-20, 20), 2, 3},
		{ir.Tanh, math.Tanh, scales(-20, 5), 3, 4},
		{ir.Erf, math.Erf, scales(-20, 3), 2, 3.5},
		{ir.SiLU, func(x float64) float64 { return x / (1 + math.Exp(-x)) }, scales(-20, 6.4), 3, 5},
		{ir.Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, scales(-20, 6.4), 3, 5},
		{ir.Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }, positive(-126, 127), 2, 2},
	} {
		for dt, bound := range map[dtype.DType]float64{dtype.F32: c.f32, dtype.F64: c.f64} {
			x := make([]float64, 1<<14)
			for i := range x {
				if x[i] = c.draw(); dt == dtype.F32 {
					x[i] = float64(float32(x[i]))
				}
			}
			worst, at := 0.0, 0.0
			for i, y := range eval(c.code, ir.Attr{}, ref.Floats(ir.Dense(dt, len(x)), x...)).Data {
				want := c.f(x[i])
				if e := math.Abs(y-want) / ulp(dt, want); !(e <= worst) {
					worst, at = e, x[i]
				}
			}
			t.Logf("%s %s: %.2f ulp at %v", c.code, dt, worst, at)
			if !(worst <= bound) {
				t.Errorf("%s of %s: off by %.2f ulp at %v, more than %v", c.code, dt, worst, at, bound)
			}
		}
	}
}

// TestFarAngles compares with values of 200 digits' arithmetic (mpmath): the double nearest to a multiple of π/2 (Muller,
// Elementary Functions, 2006), where no bit of the reduced angle may be lost, and others of all sizes.
func TestFarAngles(t *testing.T) {
	eval := evaluator(t)
	for _, dt := range []dtype.DType{dtype.F64, dtype.F32} {
		var x []float64
		for _, c := range farAngles {
			if c.dt == dt {
				x = append(x, c.x)
			}
		}
		a := ref.Floats(ir.Dense(dt, len(x)), x...)
		sin, cos := eval(ir.Sin, ir.Attr{}, a).Data, eval(ir.Cos, ir.Attr{}, a).Data
		i := 0
		for _, c := range farAngles {
			if c.dt != dt {
				continue
			}
			if e := math.Abs(sin[i]-c.sin) / ulp(dt, c.sin); !(e <= 1.5) {
				t.Errorf("sin %v of %s is %v, want %v, off by %.2f ulp", c.x, dt, sin[i], c.sin, e)
			}
			if e := math.Abs(cos[i]-c.cos) / ulp(dt, c.cos); !(e <= 1.5) {
				t.Errorf("cos %v of %s is %v, want %v, off by %.2f ulp", c.x, dt, cos[i], c.cos, e)
			}
			i++
		}
	}
}

var farAngles = []struct {
	dt          dtype.DType
	x, sin, cos float64
}{
	{dtype.F64, 5.319372648326541e+255, 1.0, -4.687165924254628e-19},
	{dtype.F64, 1e+22, -0.8522008497671888, 0.523214785395139},
	{dtype.F64, 7397583191832943.0, 0.0001320212499347556, -0.9999999912851948},
	{dtype.F64, -8.506264146110309e+20, -0.9999999928902322, 0.00011924569420092294},
	{dtype.F64, 1073741931.3741825, -0.10511293281803094, 0.9944602914920193},
	{dtype.F64, 1.7976931348623157e+308, 0.004961954789184062, -0.9999876894265599},
	{dtype.F64, -2147483648.0, 0.9713101757929392, 0.23781619457280337},
	{dtype.F64, 1.329227995784916e+36, 0.377820109360752, -0.9258790228548379},
	{dtype.F64, 1e+300, -0.8178819121159085, -0.5753861119575491},
	{dtype.F64, 7.476063743655419e+176, -0.8626367684928886, 0.5058238879730241},
	{dtype.F64, -3.0375545720140364e+155, 0.9519894225060533, -0.3061309187857233},
	{dtype.F64, -9948888905233.14, 0.19117958841661645, 0.9815550748546171},
	{dtype.F64, 1.2568264608790778e+179, -0.8231324019814463, -0.5678494948560355},
	{dtype.F64, -2.0053318685934874e+154, 0.7890136212136655, -0.6143757038972965},
	{dtype.F64, -3.725159074330165e+131, 0.6106257172774742, 0.7919193351594405},
	{dtype.F64, 6.527577991758648e+204, 0.9931761045931254, -0.1166242910599035},
	{dtype.F64, -3.9533708013874725e+129, -0.7604411052331874, -0.6494069028519242},
	{dtype.F32, 65537.0, -0.23347843820694436, -0.9723619793535976},
	{dtype.F32, -100000.0, -0.03574879797201651, -0.9993608074382124},
	{dtype.F32, 10000000000.0, -0.4875060250875107, 0.873119622676856},
	{dtype.F32, 3.3999999521443642e+38, -0.24408487440838297, 0.9697538729415026},
	{dtype.F32, 1.329227995784916e+36, 0.377820109360752, -0.9258790228548379},
	{dtype.F32, 1.6366999780188366e+22, 0.3185113292462965, 0.9479190541083966},
	{dtype.F32, 39306048.0, -0.8682972656725132, 0.49604421015231803},
	{dtype.F32, 6113186.0, -0.992161745848705, 0.12496027398517423},
	{dtype.F32, 1195732182761472.0, -0.7324832087270396, 0.6807850974668438},
	{dtype.F32, -8.993333093700783e+19, 0.34092052233255155, 0.940092121790466},
	{dtype.F32, -2.097171535229249e+20, 0.1071809513141325, 0.9942395303323025},
	{dtype.F32, -18501167104.0, 0.43012940282508, -0.9027672439922375},
}

// TestLargeOperands runs grids that are smaller than their work, which the conformance cases are too small for.
func TestLargeOperands(t *testing.T) {
	eval := evaluator(t)
	const n = 1<<20 + 5
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i % 251)
	}
	for i, y := range eval(ir.Neg, ir.Attr{}, ref.Floats(ir.Dense(dtype.F64, n), x...)).Data {
		if y != -x[i] {
			t.Fatalf("element %d is %v, want %v", i, y, -x[i])
		}
	}
	const rows, columns = 1543, 1409
	bytes := make([]float64, rows*columns)
	for i := range bytes {
		bytes[i] = float64(i * 7 % 256)
	}
	turned := ir.Strided(dtype.U8, []int{columns, rows}, []int{1, columns})
	got := eval(ir.Copy, ir.Attr{}, ref.Floats(turned, transposed(bytes, columns)...)).Data
	for i, v := range transposed(bytes, columns) {
		if got[i] != v {
			t.Fatalf("element %d of the transposed copy is %v, want %v", i, got[i], v)
		}
	}
}

// transposed lists a matrix by columns.
func transposed(m []float64, columns int) []float64 {
	rows := len(m) / columns
	out := make([]float64, len(m))
	for i, v := range m {
		out[i%columns*rows+i/columns] = v
	}
	return out
}

// TestCastBits converts random bit patterns, and numbers in the middle between neighbours of a narrower type or just
// beside it, between all pairs of types.
func TestCastBits(t *testing.T) {
	eval := evaluator(t)
	r := testutil.Rand(t)
	for _, from := range dtype.All() {
		in := patterns(r, from)
		for _, to := range dtype.All() {
			attr := ir.Attr{DType: to}
			op := ir.New(ir.Cast, attr, in.Type)
			want, err := ref.Eval(&op, nil, []ref.Array{in})
			if err != nil {
				t.Fatal(err)
			}
			got := eval(ir.Cast, attr, in)
			for i, w := range want[0].Data {
				same := got.Data[i] == w || got.Data[i] != got.Data[i] && w != w
				if !same || got.Int != nil && got.Int[i] != want[0].Int[i] {
					t.Fatalf("%v from %s to %s is %v, want %v", in.Data[i], from, to, got.Data[i], w)
				}
			}
		}
	}
}

// patterns draws elements of a dtype.
func patterns(r *rand.Rand, dt dtype.DType) ref.Array {
	const n = 4000
	t := ir.Dense(dt, n)
	if dt == dtype.Bool {
		v := make([]int64, n)
		for i := range v {
			v[i] = r.Int64N(2)
		}
		return ref.Ints(t, v...)
	}
	b := make([]byte, n*dt.Size())
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	a := ref.Decode(b, t)
	for i := range n / 2 { // 2^p ± 2^q ± 2^q', the first two often half a unit of f32, f16 or bf16 apart
		p := r.IntN(62)
		q := max(p-[]int{8, 9, 10, 11, 24, 25}[r.IntN(6)], 0)
		v := int64(1)<<p + int64(1)<<q*(1-2*r.Int64N(2)) + int64(1)<<r.IntN(q+1)*(r.Int64N(3)-1)
		switch dt {
		case dtype.I64:
			a.Int[i], a.Data[i] = v, float64(v)
		case dtype.F64:
			a.Data[i] = math.Ldexp(float64(v), r.IntN(200)-160)
		case dtype.F32:
			a.Data[i] = float64(float32(math.Ldexp(float64(v), r.IntN(160)-140)))
		}
	}
	return a
}
