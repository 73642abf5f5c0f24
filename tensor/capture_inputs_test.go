package tensor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

type fed struct{ X, H *tensor.Tensor }

// TestCaptureTakesItsResults: a run takes results of the last one, and views of them, as any other tensors of the batch,
// though it works in the memory that they lie in.
func TestCaptureTakesItsResults(t *testing.T) {
	sum := func(b fed) *tensor.Tensor { return b.X.Exp().Add(b.H) }
	for name, c := range map[string]struct {
		f    func(b fed) *tensor.Tensor
		next func(e *tensor.Env, i int, h *tensor.Tensor) fed
	}{
		"result": {sum, func(e *tensor.Env, i int, h *tensor.Tensor) fed { return fed{e.Full(float64(i), 2, 2), h} }},
		"first":  {sum, func(e *tensor.Env, i int, h *tensor.Tensor) fed { return fed{h.Scale(0.1), h} }},
		"view": {sum, func(e *tensor.Env, i int, h *tensor.Tensor) fed {
			return fed{e.Full(float64(i), 2, 2), h.Transpose(0, 1)}
		}},
		"both": {func(b fed) *tensor.Tensor { return b.X.Mul(b.H).Sin() }, func(e *tensor.Env, i int, h *tensor.Tensor) fed {
			return fed{h.Transpose(0, 1), h}
		}},
		"rows exchanged": {func(b fed) *tensor.Tensor { return tensor.Cat(0, b.X, b.H.Neg()) }, func(e *tensor.Env, i int, h *tensor.Tensor) fed {
			return fed{h.Slice(0, 1, 2), h.Slice(0, 0, 1)}
		}},
		"unchanged": {func(b fed) *tensor.Tensor { b.H.Sin(); return b.X }, func(e *tensor.Env, i int, h *tensor.Tensor) fed {
			if i%2 == 0 {
				return fed{e.Full(float64(i), 2, 2), h}
			}
			return fed{h, e.Ones(2, 2)}
		}},
		"of another kind": {sum, func(e *tensor.Env, i int, h *tensor.Tensor) fed {
			if h.Dim(0) == 2 {
				return fed{e.Full(float64(i), 1, 2), h.Slice(0, 0, 1)}
			}
			return fed{e.Full(float64(i), 2, 2), h.Expand(2, 2)}
		}},
	} {
		run := func(captured bool) (all [][]float64, runs int) {
			env := open(t)
			step := tensor.Capture(env, c.f)
			f := c.f
			if captured {
				f = step.Run
			}
			h := tensor.From(env, []float32{1, 2, 3, 4}, 2, 2)
			for i := range 12 {
				h = f(c.next(env, i, h))
				all = append(all, h.Floats())
			}
			runs, _ = step.Replayed()
			return all, runs
		}
		want, _ := run(false)
		if got, runs := run(true); !slices.EqualFunc(got, want, slices.Equal) || runs < 5 {
			t.Errorf("%s: %v, want %v; %d runs", name, got, want, runs)
		}
	}
}

// TestCaptureTakesItsResultsForNothing: what results are put aside in is taken once, and given back by Close.
func TestCaptureTakesItsResultsForNothing(t *testing.T) {
	env := fresh(t, "cpu") // a simulated card's work is Go's
	step := tensor.Capture(env, func(b *fed) *tensor.Tensor { return b.X.Exp().Add(b.H) })
	used := env.Device().Memory().Used
	turn(env, 0, func(e *tensor.Env) {
		b := &fed{e.Zeros(100), e.Zeros(100)}
		for range 5 {
			b.H = step.Run(b)
		}
		held := env.Device().Memory().Used
		if n := testutil.Allocations(100, func() { b.H = step.Run(b) }); n != 0 || env.Device().Memory().Used != held {
			t.Errorf("%v allocations, %d bytes on the device, then %d", n, held, env.Device().Memory().Used)
		}
	})
	if step.Close(); env.Device().Memory().Used != used {
		t.Errorf("%d bytes after Close, %d before", env.Device().Memory().Used, used)
	}
}

// TestCaptureFindsItsResults: a kind of batches may read the result of another one, which its runs leave as it is.
func TestCaptureFindsItsResults(t *testing.T) {
	env := open(t)
	var last *tensor.Tensor
	step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor {
		if x.Dim(0) == 2 {
			return x.Exp().Neg().Add(last)
		}
		return x.Scale(2).Scale(3).Slice(0, 0, 2).Scale(1)
	})
	for range 4 {
		last = step.Run(env.Ones(9))
	}
	for range 5 {
		equal(t, "the other's result and more", step.Run(env.Zeros(2)), 5, 5)
		equal(t, "the other's result", last, 6, 6)
	}
}

// TestCaptureLeavesBatches: a write in place into a batch is an error in each run, that of a replayed one too.
func TestCaptureLeavesBatches(t *testing.T) {
	for name, write := range map[string]func(b fed){
		"a tensor":     func(b fed) { b.X.AddInPlace(b.H) },
		"filled":       func(b fed) { b.X.FillInPlace(1) },
		"as a cell":    func(b fed) { tensor.SetCell(b.X, 1) },
		"a view":       func(b fed) { b.X.Slice(0, 0, 1).ScaleInPlace(2) },
		"detached":     func(b fed) { b.X.Detach().CopyInPlace(b.H) },
		"two overlap":  func(b fed) { b.H.MulInPlace(b.X) },
		"another mode": func(b fed) { b.X.In(b.X.Env().NoGrad()).ClampInPlace(0, 1) },
	} {
		for bad := range 3 { // the run that writes
			env, i := open(t), 0
			step := tensor.Capture(env, func(b fed) *tensor.Tensor {
				if i == bad {
					write(b)
				}
				return b.X.Add(b.H)
			})
			for ; i < bad; i++ {
				step.Run(fed{env.Ones(2), env.Ones(2)})
			}
			m := env.Arange(3)
			fails(t, env, func() { step.Run(fed{m.Slice(0, 0, 2), m.Slice(0, 1, 3)}) }, "in place", "of the batch", "Clone", "capture_inputs_test.go:")
			if got := m.Floats(); !slices.Equal(got, []float64{0, 1, 2}) {
				t.Errorf("%s: the caller's values are %v", name, got)
			}
		}
	}
	for before := range 5 { // the batch is a part of what the step writes: before that, it is not
		env := open(t)
		total := tensor.NewBuffer(env.Zeros(4))
		step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor {
			total.AddInPlace(x.Sum())
			return x.Exp()
		})
		for range before {
			step.Run(env.Ones(2))
		}
		part := total.Detach().Slice(0, 0, 2)
		fails(t, env, func() { step.Run(part) }, "in place", "batch", "Clone", "capture_inputs_test.go:")
		step.Run(part.Clone())
		equal(t, "total", total, slices.Repeat([]float64{6 * float64(before)}, 4)...)
	}
}

// TestCaptureRefusesGoroutines: work of another goroutine on values of the step is an error; other work beside a recording is
// nobody's business.
func TestCaptureRefusesGoroutines(t *testing.T) {
	apart := func(f func()) {
		done := make(chan struct{})
		go func() { defer close(done); f() }()
		<-done
	}
	env := open(t)
	sum := tensor.NewBuffer(env.Zeros(3))
	for name, f := range map[string]func(x *tensor.Tensor) *tensor.Tensor{
		"batch":  func(x *tensor.Tensor) *tensor.Tensor { apart(func() { sum.AddInPlace(x) }); return x.Exp() },
		"value":  func(x *tensor.Tensor) *tensor.Tensor { y := x.Exp(); apart(func() { sum.AddInPlace(y) }); return y },
		"made":   func(x *tensor.Tensor) *tensor.Tensor { apart(func() { x.Env().Ones(3) }); return x.Exp() },
		"result": func(x *tensor.Tensor) (y *tensor.Tensor) { apart(func() { y = x.Exp() }); return y },
		"used":   func(x *tensor.Tensor) (y *tensor.Tensor) { apart(func() { y = x.Exp() }); return y.Neg() },
		"scope": func(x *tensor.Tensor) *tensor.Tensor {
			return x.Env().Do(func(e *tensor.Env) *tensor.Tensor {
				y := x.In(e).Exp()
				apart(func() { sum.AddInPlace(y) })
				return y
			})
		},
	} {
		step := tensor.Capture(env, f)
		step.Run(env.Ones(3))
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { return step.Run(env.Ones(3)) })
		for _, word := range []string{"another goroutine", "capture_inputs_test.go:"} {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v, want %q", name, err, word)
			}
		}
	}
	n := 0
	step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor {
		apart(func() { // as a loader, and as another training
			turn(env, n, func(e *tensor.Env) { tensor.From(e, []float32{1, 2, 3}, 3).Mul(sum).Exp() })
			beside := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor { return x.Exp() })
			for range 4 {
				turn(env, n, func(e *tensor.Env) { beside.Run(e.Ones(3)) })
			}
			n++
		})
		return x.Scale(2)
	})
	for range 5 {
		equal(t, "beside others", step.Run(env.Ones(3)), 2, 2, 2)
	}
	if n != 3 {
		t.Errorf("%d of 3 calls", n)
	}
}
