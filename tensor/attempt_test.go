package tensor_test

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// TestAttempt: after a shortage there is nothing left of an attempt, and the path draws the same numbers; without one it draws as
// if there were no attempt. Other errors go on.
func TestAttempt(t *testing.T) {
	for _, path := range []func(e *tensor.Env) *tensor.Env{func(e *tensor.Env) *tensor.Env { return e }, func(e *tensor.Env) *tensor.Env { return e.Seed(7) }} {
		env := path(open(t).Seed(1))
		turn(env, 1, func(e *tensor.Env) {
			e = path(e)
			first := e.Rand(3).Floats()
			want := e.Rand(3).Floats()
			e.SetDraws(e.Draws() - 1)
			used := e.Device().Memory().Used
			for range 2 {
				e.Device().FailAt(3)
				oom := e.Attempt(func(e *tensor.Env) {
					e.Rand(3).Exp().Exp()
					t.Error("the third allocation fits")
				})
				if m := e.Device().Memory(); oom == nil || m.Used > used {
					t.Errorf("%v; %d bytes are in use, %d were before", oom, m.Used, used)
				}
			}
			var got []float64
			if oom := e.Attempt(func(e *tensor.Env) { got = e.Rand(3).Floats() }); oom != nil || !slices.Equal(got, want) || slices.Equal(got, first) {
				t.Errorf("%v: draws %v, want %v", oom, got, want)
			}
			fails(t, e, func() { e.Attempt(func(e *tensor.Env) { e.Ones(2).Add(e.Ones(3)) }) }, "add", "broadcast")
		})
		step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor {
			x.Env().Attempt(func(e *tensor.Env) {})
			return x.Exp()
		})
		fails(t, env, func() {
			for range 3 {
				step.Run(env.Ones(2))
			}
		}, "Attempt", "within a captured step")
	}
}
