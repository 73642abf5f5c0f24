package cpu

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestWords: every elementwise op that a value may call has a pass.
func TestWords(t *testing.T) {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		row := code.Row()
		if row.Group != ir.Elementwise || row.Params > 0 || row.Class == ir.Bools || row.Class == ir.Bits || code == ir.Where || row.Value != "" && !row.ByHand {
			continue
		}
		if words[code].f32 == nil && tests[code].f32 == nil {
			t.Errorf("%s has no pass", code)
		}
	}
}

// TestSteps compares expressions with Go's own arithmetic over several tiles, in place too: numbers on either side, parameters,
// registers used again, choices.
func TestSteps(t *testing.T) {
	r := testutil.Rand(t)
	const n = 2*stepTile + 37
	for text, f := range map[string]func(x, y, p, q float64) float64{
		"x":                               func(x, _, _, _ float64) float64 { return x },
		"3":                               func(_, _, _, _ float64) float64 { return 3 },
		"q":                               func(_, _, _, q float64) float64 { return q },
		"2 - x":                           func(x, _, _, _ float64) float64 { return 2 - x },
		"2/x + x/2":                       func(x, _, _, _ float64) float64 { return 2/x + x/2 },
		"(x + 1) * (y - 2) * (3 + y)":     func(x, y, _, _ float64) float64 { return (x + 1) * (y - 2) * (3 + y) },
		"p*x + q*y - p":                   func(x, y, p, q float64) float64 { return p*x + q*y - p },
		"maximum(x, 0.5) * minimum(1, y)": func(x, y, _, _ float64) float64 { return max(x, 0.5) * min(1, y) },
		"a = x*y; b = a + x; c = b*a; c - a + b*y": func(x, y, _, _ float64) float64 {
			a := x * y
			b := a + x
			return b*a - a + b*y
		},
		"where(x < y, where(x <= 0, p, x*x), abs(y))": func(x, y, p, _ float64) float64 {
			switch {
			case !(x < y):
				return math.Abs(y)
			case x <= 0:
				return p
			}
			return x * x
		},
	} {
		e, err := ir.ParseExpr(text, 2)
		if err != nil {
			t.Fatal(err)
		}
		s := newSteps(e, func(c ir.Code) pass[float64, float64] { return words[c].f64 }, func(c ir.Code) pass[bool, float64] { return tests[c].f64 })
		x, y, want := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = r.NormFloat64(), r.NormFloat64()
			want[i] = f(x[i], y[i], 0.25, -3)
		}
		got := make([]float64, n)
		s.pass(got, x, y, 0.25, -3)
		testutil.Close(t, got, want, 1e-14, 1e-14)
		s.pass(x, x, y, 0.25, -3)
		testutil.Close(t, x, want, 1e-14, 1e-14)
	}
}

func BenchmarkSoftsign(b *testing.B) {
	x := make([]float32, 1<<14)
	for i := range x {
		x[i] = float32(i) - 1<<13
	}
	e, err := ir.Softsign.ValueExpr(func(ir.Code) bool { return true })
	if err != nil {
		b.Fatal(err)
	}
	s := newSteps(e, func(c ir.Code) pass[float32, float32] { return words[c].f32 }, func(c ir.Code) pass[bool, float32] { return tests[c].f32 })
	b.SetBytes(int64(8 * len(x)))
	for b.Loop() {
		s.pass(x, x, nil, 0, 0)
	}
}

// TestStepsRefuse: a value of an operand that the steps have no register for is refused when the table is made.
func TestStepsRefuse(t *testing.T) {
	e, err := ir.ParseExpr("where(c, x, y)", 3)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a third operand was taken")
		}
	}()
	newSteps(e, func(c ir.Code) pass[float64, float64] { return words[c].f64 }, func(c ir.Code) pass[bool, float64] { return tests[c].f64 })
}
