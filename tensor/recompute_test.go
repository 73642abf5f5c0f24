package tensor_test

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// TestRecomputeNests computes exp(2w²) in regions within regions and blocks, and compares gradient and books.
func TestRecomputeNests(t *testing.T) {
	var w *tensor.Tensor
	plain := func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(w).Exp() }
	for name, f := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"one": plain,
		"a block that captures": func(x *tensor.Tensor) *tensor.Tensor {
			h := x.Scale(1).Mul(w).Scale(1)
			return x.Env().Do(func(e *tensor.Env) *tensor.Tensor { return h.In(e).Square().Sqrt().Exp() })
		},
		"three": func(x *tensor.Tensor) *tensor.Tensor {
			return tensor.Recompute(x.Scale(1), func(x *tensor.Tensor) *tensor.Tensor {
				return tensor.Recompute(x.Scale(1), plain).Scale(1)
			}).Scale(1)
		},
		"a region that captures": func(x *tensor.Tensor) *tensor.Tensor {
			h := x.Scale(1).Mul(w).Scale(1)
			return tensor.Recompute(x.Scale(2), func(x *tensor.Tensor) *tensor.Tensor { return h.Mul(x).Div(x).Exp() })
		},
	} {
		env := open(t)
		w = param(env, 0.5)
		step := func(e *tensor.Env) {
			y := e.Do(func(e *tensor.Env) *tensor.Tensor {
				return tensor.Recompute(tensor.From(e, []float64{2}, 1).Mul(w.In(e)).Scale(1), f)
			}).Sum()
			y.BackwardRetain()
			y.Backward()
			if got, want := w.Grad().Item(), 2*4*0.5*math.Exp(0.5); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: two gradients %v, want %v", name, got, want)
			}
			w.DropGrad()
		}
		for i := range 3 {
			turn(env, i, step)
			env.Device().Collect()
			if m := env.Device().Memory(); m.Scopes != 1 || m.Used != m.ScopeOnly {
				t.Errorf("%s: after turn %d: %d bytes, %d of scopes only, %d scopes", name, i, m.Used, m.ScopeOnly, m.Scopes)
			}
		}
		runtime.KeepAlive(w)
	}
}

func TestRecomputeRefusesAChangedInput(t *testing.T) {
	env := open(t)
	w := param(env, 0.5)
	turn(env, 1, func(e *tensor.Env) {
		x := tensor.From(e, []float64{2}, 1)
		y := tensor.Recompute(x, func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(w).Exp() })
		x.ScaleInPlace(2)
		fails(t, env, func() { y.Sum().Backward() }, "Recompute", "changed in place")
		fails(t, env, func() {
			tensor.Recompute(x, func(x *tensor.Tensor) *tensor.Tensor { return x.ScaleInPlace(2).Mul(w) })
		}, "Recompute", "changed in place")
	})
}

// TestRecomputeDrawsForCapturedValues drops out a value that the region captures from its batch.
func TestRecomputeDrawsForCapturedValues(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	turn(env, 1, func(e *tensor.Env) {
		c := e.Ones(64)
		var runs [][]float64
		y := tensor.Recompute(w.In(e).Scale(0.1), func(x *tensor.Tensor) *tensor.Tensor {
			d := c.Dropout(0.5)
			runs = append(runs, d.Floats())
			return x.Mul(d).Exp()
		})
		next := e.Draws()
		y.Sum().Backward()
		if len(runs) != 2 || !slices.Equal(runs[0], runs[1]) {
			t.Errorf("the runs draw %v", runs)
		}
		if e.Draws() != next {
			t.Errorf("%d draws after Backward, %d before", e.Draws(), next)
		}
	})
}
