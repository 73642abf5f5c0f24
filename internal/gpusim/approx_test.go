package gpusim

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/oracle"
)

// spreadBits are floats of all magnitudes and signs, and edges.
func spreadBits(f oracle.Format) []uint64 {
	out := f.Edges()
	step := uint64(1)<<f.Mant/7 + 3
	if f.Width() == 64 {
		step *= 41
	}
	for b := uint64(1); b < uint64(2*f.Bias+1)<<f.Mant; b += step {
		out = append(out, b, b|1<<(f.Width()-1))
	}
	return out
}

// TestApproximationBounds holds the approximate instructions to the errors that the manual states, over all magnitudes,
// and to its special results: where the exact answer is zero, infinite or NaN, so is the approximate one.
func TestApproximationBounds(t *testing.T) {
	for _, c := range []struct {
		inst, typ string
		ref       func(x float64) float64
		rel, abs  float64
		within    float64 // of the argument; beyond it no error is stated
	}{
		{"ex2.approx", "f32", math.Exp2, 0x1p-22, 0, 0},
		{"lg2.approx", "f32", math.Log2, 0x1p-22, 0x1p-22, 0},
		{"rcp.approx", "f32", func(x float64) float64 { return 1 / x }, 0x1p-23, 0, 0},
		{"rsqrt.approx", "f32", func(x float64) float64 { return 1 / math.Sqrt(x) }, 0x1.8p-23, 0, 0},
		{"sqrt.approx", "f32", math.Sqrt, 0x1p-23, 0, 0},
		{"sin.approx", "f32", math.Sin, 0, 0x1.6p-21, math.Pi},
		{"cos.approx", "f32", math.Cos, 0, 0x1.6p-21, math.Pi},
		{"tanh.approx", "f32", math.Tanh, 0x1p-11, 0, 0},
		{"ex2.approx", "f16", math.Exp2, 0x1.1p-10, 0, 0},
		{"tanh.approx", "f16", math.Tanh, 0, 0x1p-11, 0},
		{"rcp.approx.ftz", "f64", func(x float64) float64 { return 1 / x }, 0x1p-19, 0, 0},
		{"rsqrt.approx.ftz", "f64", func(x float64) float64 { return 1 / math.Sqrt(x) }, 0x1p-19, 0, 0},
	} {
		f := oracle.Formats[c.typ]
		least := math.Ldexp(1, 1-f.Bias-f.Mant)
		for _, ftz := range []string{"", ".ftz"} {
			if ftz != "" && c.typ != "f32" {
				continue
			}
			flushes := ftz != "" || c.typ == "f64"
			in := triples(spreadBits(f), 1)
			for i, got := range runLanes(t, c.inst+ftz+"."+c.typ+" %d, %a;", f.Reg, [3]string{f.Reg, f.Reg, f.Reg}, in) {
				b := in[i][0]
				if flushes {
					b = f.Flush(b)
				}
				x, g := f.Float(b), f.Float(got)
				want := c.ref(x)
				smallest := least // that the result may be off by where it is subnormal
				if flushes {
					smallest = math.Ldexp(1, 1-f.Bias)
				}
				top := math.Ldexp(2-math.Ldexp(1, -f.Mant), f.Bias)
				switch {
				case c.within > 0 && math.Abs(x) > c.within && !math.IsInf(x, 0):
					continue
				case want != want:
					if _, _, nan := f.Class(got); !nan {
						t.Fatalf("%s%s.%s of %v is %v, want NaN", c.inst, ftz, c.typ, x, g)
					}
				case math.Abs(want) > top && math.IsInf(g, int(math.Copysign(1, want))) || g == want:
				case !(math.Abs(g-want) <= max(c.abs+c.rel*math.Abs(want), smallest)):
					t.Fatalf("%s%s.%s of %v is %v, want %v", c.inst, ftz, c.typ, x, g, want)
				}
				if want == 0 && math.Signbit(want) != math.Signbit(g) {
					t.Fatalf("%s%s.%s of %v is %v, want %v", c.inst, ftz, c.typ, x, g, want)
				}
			}
		}
	}
}

// TestApproximateDivision bounds the error by two units in the last place, for divisors that the manual names.
func TestApproximateDivision(t *testing.T) {
	f := oracle.Formats["f32"]
	all := spreadBits(f)
	var in [][3]uint64
	for i := range all {
		for j := range 4 {
			in = append(in, [3]uint64{all[i], all[(i*13+j*101+5)%len(all)]})
		}
	}
	for _, inst := range []string{"div.approx.f32", "div.full.f32", "div.approx.ftz.f32", "div.full.ftz.f32"} {
		ftz := len(inst) > 14
		for i, got := range runLanes(t, inst+" %d, %a, %b;", "f32", [3]string{"f32", "f32", "f32"}, in) {
			a, b := in[i][0], in[i][1]
			if ftz {
				a, b = f.Flush(a), f.Flush(b)
			}
			x, y, g := f.Float(a), f.Float(b), f.Float(got)
			want := x / y
			small := 0x1p-148 // two units of the least subnormal
			if ftz {
				small = 0x1p-126
			}
			if m := math.Abs(y); inst[4] == 'a' && y == y && (m > 0x1p126 || m < 0x1p-126) {
				continue
			}
			switch {
			case want != want && g != g, g == want:
			case math.Abs(want) >= 0x1.fffffcp127 && math.Abs(g) >= 0x1.fffffcp127 && math.Signbit(g) == math.Signbit(want):
			case !(math.Abs(g-want) <= max(0x1p-22*math.Abs(want), small)):
				t.Fatalf("%s of %v and %v is %v, want %v", inst, x, y, g, want)
			}
		}
	}
}
