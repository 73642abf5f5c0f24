package tensor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// TestProgram compares runs of programs with what they were recorded from, on operands of the same type, while other values
// come and go in the device's memory.
func TestProgram(t *testing.T) {
	env := open(t)
	r := testutil.Rand(t)
	random := func(e *tensor.Env, shape ...int) *tensor.Tensor { return e.Seed(r.Uint64()).Randn(shape...) }
	w, b := tensor.NewParam(random(env, 5, 4)), tensor.NewParam(random(env, 5))
	for name, f := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"a view":       func(x *tensor.Tensor) *tensor.Tensor { return x.Exp().Transpose(0, 1) },
		"products":     func(x *tensor.Tensor) *tensor.Tensor { return x.LinearAct(w, b, tensor.ActGELUTanh).MatMul(w) },
		"a part of it": func(x *tensor.Tensor) *tensor.Tensor { return x.Slice(0, 1, 3).Exp().Add(x.Select(0, 2)) },
		"several results": func(x *tensor.Tensor) *tensor.Tensor {
			m, _ := x.Add(x).AddLayerNorm(x, x.Env().Ones(4), x.Env().Zeros(4), 1e-5)
			return m.Mul(x)
		},
		"a chain": func(x *tensor.Tensor) *tensor.Tensor {
			return tensor.Chain(x, (*tensor.Tensor).Exp, (*tensor.Tensor).Tanh, func(y *tensor.Tensor) *tensor.Tensor { return y.Mul(x) })
		},
		"a block": func(x *tensor.Tensor) *tensor.Tensor {
			return x.Env().Do(func(e *tensor.Env) *tensor.Tensor { return x.In(e).Square().Sum(0).Sqrt() })
		},
		"casts": func(x *tensor.Tensor) *tensor.Tensor {
			return x.In(x.Env().Autocast(dtype.BF16)).Linear(w, b).Cast(dtype.F32)
		},
		"a decomposition": func(x *tensor.Tensor) *tensor.Tensor { return x.LogSumExp(1) },
		"a made operand":  func(x *tensor.Tensor) *tensor.Tensor { return x.Add(x.Env().Arange(4)) },
	} {
		turn(env, 0, func(e *tensor.Env) {
			p, y := tensor.Record(random(e, 2, 3, 4).Select(0, 1), f)
			for range 3 {
				turn(e, 1, func(inner *tensor.Env) {
					x := random(inner, 3, 4)
					p.Run(x)
					random(inner, 3, 5).Exp()
					want := f(x.In(inner.NoGrad()))
					equal(t, name, y, want.Floats()...)
					if y.Type() != want.Type() && !slices.Equal(y.Shape(), want.Shape()) || y.Recorded() {
						t.Errorf("%s: %v, recorded: %v; want %v", name, y, y.Recorded(), want.Type())
					}
				})
			}
		})
	}
}

// TestProgramsReadOthers: what else lies in the operand's memory is read where it is.
func TestProgramsReadOthers(t *testing.T) {
	env := open(t)
	turn(env, 0, func(e *tensor.Env) {
		rows := e.Arange(300).Cast(dtype.F32).Reshape(100, 3)
		p, y := tensor.Record(rows.Select(0, 0), func(x *tensor.Tensor) *tensor.Tensor { return x.Add(rows.Select(0, 5)) })
		equal(t, "when it was recorded", y, 15, 17, 19)
		p.Run(e.Zeros(3))
		equal(t, "with zeros", y, 15, 16, 17)
		p.Run(rows.Select(0, 1))
		equal(t, "with a row of the same", y, 18, 20, 22)
	})
}

// TestProgramsFollow: a program reads what another left, and weights as they are when it runs.
func TestProgramsFollow(t *testing.T) {
	env := open(t)
	turn(env, 0, func(e *tensor.Env) {
		w := tensor.NewBuffer(e.Full(2, 3))
		first, y := tensor.Record(e.Ones(3), func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(w) })
		second, z := tensor.Record(e.Ones(3), func(x *tensor.Tensor) *tensor.Tensor { return x.Add(y) })
		w.FillInPlace(5)
		first.Run(e.Full(3, 3))
		second.Run(e.Full(1, 3))
		equal(t, "the first", y, 15, 15, 15)
		equal(t, "the second", z, 16, 16, 16)
	})
}

// TestProgramRefuses what would be wrong in another run.
func TestProgramRefuses(t *testing.T) {
	env := open(t)
	turn(env, 0, func(e *tensor.Env) {
		x, rate, scale := e.Ones(3), tensor.NewCell(e, 1), e.Ones()
		twice := func(x *tensor.Tensor) *tensor.Tensor { return x.Scale(2) }
		p, y := tensor.Record(x, twice)
		fails(t, env, func() { p.Run(e.Ones(4)) }, "f32[4]", "f32[3]")
		fails(t, env, func() { p.Run(nil) }, "Program.Run")
		fails(t, env, func() { tensor.Record(x, func(x *tensor.Tensor) *tensor.Tensor { return x.Add(x.Env().Rand(3)) }) }, "random")
		fails(t, env, func() {
			tensor.Record(x, func(x *tensor.Tensor) *tensor.Tensor {
				y := []*tensor.Tensor{x.Exp()}
				tensor.SGDInPlace(tensor.SGDStep{LR: rate}, scale, y, y, nil)
				return y[0]
			})
		}, "cannot be recorded")
		fails(t, env, func() { tensor.Record(x, func(x *tensor.Tensor) *tensor.Tensor { return x.Dropout(0.5) }) }, "random")
		fails(t, env, func() { tensor.Record(x, func(x *tensor.Tensor) *tensor.Tensor { return x.Unsqueeze(0) }) }, "part of the operand")
		w := tensor.NewParam(e.Ones(3))
		loss := w.In(e).Mul(y).Sum()
		p.Run(x)
		fails(t, env, func() { loss.Backward() }, "changed in place")
		fails(t, env, func() { p.Run(y) }, "a copy", "affine")
		fails(t, env, func() {
			tensor.Record(x, func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(w.Exp()) })
		}, "outside", "exp")
		if other := fresh(t, "cpu"); other.Device() != env.Device() {
			fails(t, env, func() {
				tensor.Record(x, func(x *tensor.Tensor) *tensor.Tensor { return x.Add(x.Scale(2).To(other).To(x.Env())) })
			}, "another device")
		}
		var late *tensor.Program
		turn(e, 1, func(inner *tensor.Env) { late, _ = tensor.Record(inner.Ones(3), twice) })
		fails(t, env, func() { late.Run(x) }, "released")
	})
}

// TestProgramIsObserved: observers are told of each launch, with its site and parameters.
func TestProgramIsObserved(t *testing.T) {
	env := open(t)
	turn(env, 0, func(e *tensor.Env) {
		p, _ := tensor.Record(e.Ones(3), func(x *tensor.Tensor) *tensor.Tensor { return x.Exp().Tanh() })
		var names []string
		stop := env.Device().Observe(func(ev *device.Event) {
			if ev.Kind == device.KindRange {
				return
			}
			names = append(names, ev.Kernel.Op.Code.String())
			if ev.Site == nil || ev.Range == nil || ev.Range.Name != "again" {
				t.Errorf("%s: site %v, range %v", ev.Kernel.Op.Code, ev.Site, ev.Range)
			}
		}, device.KindLaunch, device.KindRange)
		defer stop()
		inner, end := e.Range("again")
		p.Run(inner.Zeros(3).Detach())
		end()
		if want := []string{"full", "exp", "tanh"}; !slices.Equal(names, want) {
			t.Errorf("%v, want %v", names, want)
		}
	})
}

// TestProgramKeepsPaths: an observer of a later run is told the parameters of the program, whatever ran between.
func TestProgramKeepsPaths(t *testing.T) {
	env := open(t)
	turn(env, 0, func(e *tensor.Env) {
		a, b := nn.NewLinear(e, 3, 3), nn.NewLinear(e, 3, 3)
		for range nn.Params(&struct{ A, B *nn.Linear }{a, b}) {
		}
		p, _ := tensor.Record(e.Ones(3, 3), a.Forward)
		q, _ := tensor.Record(e.Ones(3, 3), b.Forward)
		for range 2 {
			var paths []string
			stop := env.Device().Observe(func(ev *device.Event) { paths = append(paths, ev.Paths...) }, device.KindLaunch)
			p.Run(e.Ones(3, 3))
			stop()
			if len(paths) == 0 || slices.ContainsFunc(paths, func(s string) bool { return !strings.HasPrefix(s, "A.") }) {
				t.Errorf("a run of A is of %v", paths)
			}
			q.Run(e.Ones(3, 3))
		}
	})
}
