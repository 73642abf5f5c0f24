package kernels

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

var unary32 = []struct {
	name string
	f    func(dst, x []float32)
	want func(x float64) float64
	ulps float64 // of Go's loops
	most float64 // of assembly's
	span float64 // of the arguments that are tried most
}{
	{"exp", Exp, math.Exp, 0.55, 1, 110},
	{"expm1", Expm1, math.Expm1, 0.55, 1.5, 90},
	{"tanh", Tanh, math.Tanh, 0.55, 1.5, 10},
	{"sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 0.55, 2, 110},
	{"log", Log, math.Log, 0.55, 1, 100},
	{"log1p", Log1p, math.Log1p, 0.55, 1.5, 10},
	{"sin", Sin, math.Sin, 0.55, 1.5, 100},
	{"cos", Cos, math.Cos, 0.55, 1.5, 100},
	{"erf", Erf, math.Erf, 0.6, 1, 5},
	{"gelu", GELU, GELU64, 0.6, 6, 12},
	{"gelu_tanh", GELUTanh, GELUTanh64, 0.6, 4, 9},
	{"rsqrt", Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }, 0.55, 1.5, 100},
	{"sqrt", Sqrt, math.Sqrt, 0.5, 0.5, 100},
	{"silu", SiLU, SiLU64, 0.55, 3, 110},
}

// arguments are edge cases, all magnitudes by their bits, and a range of interest.
func arguments(r *rand.Rand, span float64, n int) []float32 {
	inf := float32(math.Inf(1))
	x := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()), 1, -1, math.MaxFloat32, -math.MaxFloat32,
		math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, -0x1p-126, 0x1.fffffcp-127, 0x1p-24, -0x1p-24,
		88.72283, 88.72284, -87.33654, -87.33655, -103.97207, -103.97208, 700, -700, 699.99994, 0.99999994, 1.0000001, -0.99999994,
		0.5, 0.49999997, 4, 3.9999998, 1 << 20, 1<<20 - 1, -(1 << 20), 1.5707964, 3.1415927, 6.2831855, 26, 25.999998, 20, 350,
		0x1p-13, 0.00012207030, -1.0000001, 16.635532, -16.635532, -0.75179}
	for range n {
		x = append(x, math.Float32frombits(r.Uint32()), float32((2*r.Float64()-1)*span), float32(r.ExpFloat64()))
	}
	for i := range 2000 { // neighbourhoods of multiples of π/2, and of 1
		x = append(x, math.Nextafter32(float32(float64(i)*math.Pi/2), inf), 1+float32(i-1000)*0x1p-23)
	}
	return x
}

// ulpsOff is |got-want| in units of the last place of the float32 at want.
func ulpsOff(got float32, want float64) float64 {
	w := float32(want)
	if got == w || got != got && want != want {
		return 0
	}
	a := float32(math.Abs(float64(w)))
	if math.IsInf(float64(got), 0) || math.IsNaN(float64(got)) || math.IsNaN(want) {
		return math.Inf(1)
	}
	if math.IsInf(float64(a), 1) {
		a = math.MaxFloat32
	}
	unit := float64(a) - float64(math.Nextafter32(a, 0))
	return math.Abs(float64(got)-want) / max(unit, math.SmallestNonzeroFloat32)
}

func TestUnary32(t *testing.T) { eachLevel(t, testUnary32) }

func testUnary32(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, seed))
	for _, c := range unary32 {
		if assembly() {
			c.ulps = c.most
		}
		x := arguments(r, c.span, 60000)
		y := make([]float32, len(x))
		c.f(y, x)
		worst, at := 0., float32(0)
		for i, v := range x {
			if math.Abs(c.want(float64(v))) < 0x1p-126 && !ordinary(float64(v), 20) {
				continue // a subnormal far out: checked below, by absolute value
			}
			if e := ulpsOff(y[i], c.want(float64(v))); e > worst {
				worst, at = e, v
			}
		}
		if worst > c.ulps {
			t.Errorf("%s is off by %.3g ulps at %g, want at most %g", c.name, worst, at, c.ulps)
		}
		for i, v := range x {
			if w := c.want(float64(v)); math.Abs(w) < 0x1p-126 && math.Abs(float64(y[i])-w) > max(1, c.ulps)*0x1p-149 {
				t.Errorf("%s(%g) = %g, want %g", c.name, v, y[i], w)
			}
		}
	}
}

func TestSignsOfZero(t *testing.T) { eachLevel(t, testSignsOfZero) }

func testSignsOfZero(t *testing.T) {
	for _, c := range unary32 {
		zero := []float32{float32(math.Copysign(0, -1))}
		want := c.want(float64(zero[0]))
		c.f(zero, zero)
		if math.Signbit(float64(zero[0])) != math.Signbit(want) {
			t.Errorf("%s(-0) = %g, want %g", c.name, zero[0], want)
		}
	}
}

func TestGrad32(t *testing.T) { eachLevel(t, testGrad32) }

func testGrad32(t *testing.T) {
	const seed = 2
	relative, absolute := 1e-7, 2e-9
	if assembly() {
		relative, absolute = 5e-7, 2e-7 // of a sum of terms as large as g
	}
	r := rand.New(rand.NewPCG(seed, seed))
	for _, c := range []struct {
		name string
		f    func(dst, x, g []float32)
		want func(x, g float64) float64
		fwd  func(x float64) float64
	}{
		{"gelu", GELUGrad, GELUGrad64, GELU64},
		{"gelu_tanh", GELUTanhGrad, GELUTanhGrad64, GELUTanh64},
		{"silu", SiLUGrad, SiLUGrad64, SiLU64},
	} {
		x := arguments(r, 12, 20000)
		g := make([]float32, len(x))
		for i := range g {
			g[i] = float32(r.NormFloat64())
		}
		y := make([]float32, len(x))
		c.f(y, x, g)
		for i, v := range x {
			want := c.want(float64(v), float64(g[i]))
			off := math.Abs(float64(y[i]) - want)
			if off > relative*math.Abs(want)+absolute*math.Abs(float64(g[i])) || (y[i] != y[i]) != (want != want) {
				t.Fatalf("%s gradient at %g is %g, want %g", c.name, v, y[i], want)
			}
			if ordinary(float64(v), 12) && v > 1e-3 { // the float64 form against a central difference
				h := 1e-5 * max(1, math.Abs(float64(v)))
				d := (c.fwd(float64(v)+h) - c.fwd(float64(v)-h)) / (2 * h)
				if w := c.want(float64(v), 1); math.Abs(w-d) > 1e-8 {
					t.Fatalf("%s: derivative at %g is %g, difference quotient %g", c.name, v, w, d)
				}
			}
		}
	}
}

func BenchmarkUnary32(b *testing.B) {
	x := make([]float32, 4096)
	y := make([]float32, len(x))
	r := rand.New(rand.NewPCG(3, 3))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for _, c := range unary32 {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			used := cpuTime(func() {
				for b.Loop() {
					c.f(y, x)
				}
			})
			b.ReportMetric(float64(used.Nanoseconds())/float64(b.N)/float64(len(x)), "cpu-ns/elem")
		})
	}
}
