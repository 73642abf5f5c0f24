package tensor_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// TestCaptureRefuses: what runs would not repeat, or not find again, is an error that names the line.
func TestCaptureRefuses(t *testing.T) {
	env := open(t)
	cpu := fresh(t, "cpu")
	w := param(env, 1, 2, 3)
	opt := optim.NewSGD(nn.Params(map[string]*tensor.Tensor{"w": w}), optim.SGDConfig{LR: 0.1})
	other := env.NewQueue()
	loss := func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(w).Sum() }
	program, _ := tensor.Record(env.Ones(3), func(x *tensor.Tensor) *tensor.Tensor { return x.Exp() })
	inner := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor { return x })
	var last, kept *tensor.Tensor
	for name, c := range map[string]struct {
		f     func(x *tensor.Tensor) *tensor.Tensor
		words []string
	}{
		"Item":           {func(x *tensor.Tensor) *tensor.Tensor { return x.Scale(x.Sum().Item()) }, []string{"the host would read"}},
		"Later":          {func(x *tensor.Tensor) *tensor.Tensor { x.Sum().Later(); return x }, []string{"the host would read"}},
		"printing":       {func(x *tensor.Tensor) *tensor.Tensor { _ = fmt.Sprint(x.Floats()); return x }, []string{"the host would read"}},
		"From":           {func(x *tensor.Tensor) *tensor.Tensor { return x.Add(tensor.From(x.Env(), []float32{1, 2, 3}, 3)) }, []string{"copied once"}},
		"Sync":           {func(x *tensor.Tensor) *tensor.Tensor { env.Sync(); return x }, []string{"wait"}},
		"Key":            {func(x *tensor.Tensor) *tensor.Tensor { return x.Scale(float64(x.Env().Key(1))) }, []string{"the same numbers"}},
		"another device": {func(x *tensor.Tensor) *tensor.Tensor { x.To(cpu); return x }, []string{"another device"}},
		"work elsewhere": {func(x *tensor.Tensor) *tensor.Tensor { cpu.Ones(3).Exp(); return x }, []string{"work on cpu"}},
		"another queue":  {func(x *tensor.Tensor) *tensor.Tensor { return x.In(x.Env().On(other)).Exp() }, []string{"another queue"}},
		"a batch before": {func(x *tensor.Tensor) *tensor.Tensor {
			y := x
			if last != nil {
				y = x.Add(last)
			}
			last = x
			return y.Exp()
		}, []string{"released"}},
		"Backward alone":  {func(x *tensor.Tensor) *tensor.Tensor { l := loss(x); l.Backward(); return l }, []string{"behind", "Step"}},
		"Keep":            {func(x *tensor.Tensor) *tensor.Tensor { kept = x.Exp().Keep(); return x }, []string{"behind"}},
		"SetLR":           {func(x *tensor.Tensor) *tensor.Tensor { opt.SetLR(1); return x }, []string{"SetLR", "before Run"}},
		"a program":       {func(x *tensor.Tensor) *tensor.Tensor { program.Run(x); return x }, []string{"Program.Run"}},
		"a recording":     {func(x *tensor.Tensor) *tensor.Tensor { tensor.Record(x, (*tensor.Tensor).Exp); return x }, []string{"Record"}},
		"a captured step": {func(x *tensor.Tensor) *tensor.Tensor { return inner.Run(x) }, []string{"within a captured step"}},
		"a released result": {func(x *tensor.Tensor) *tensor.Tensor {
			var y *tensor.Tensor
			x.Env().Do(func(e *tensor.Env) *tensor.Tensor { y = x.In(e).Exp(); return nil })
			return y
		}, []string{"released"}},
	} {
		if c.words[0] == "work on cpu" && env.Device().Name() == "cpu" {
			c.words[0] = "within a step captured on"
		}
		step := tensor.Capture(env, c.f)
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor {
			for i := range 3 {
				turn(env, i, func(e *tensor.Env) { step.Run(e.Ones(3)) })
				opt.Discard()
			}
			return nil
		})
		for _, word := range append(c.words, "capture_test.go:") {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v, want %q", name, err, word)
			}
		}
	}
	turn(env, 0, func(e *tensor.Env) {
		beside := e.Ones(3)
		step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor { return x.Add(beside) })
		step.Run(e.Ones(3))
		fails(t, env, func() { step.Run(e.Ones(3)) }, "not of its batch", "pass it in the batch", "capture_test.go:")
	})
	if tensor.Capturing() {
		t.Error("an error has left a step open")
	}
	_ = kept
}

// TestCaptureRefusesBatches that hold what a run could not take.
func TestCaptureRefusesBatches(t *testing.T) {
	env := open(t)
	w := param(env, 1, 2, 3)
	step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor { return x.Exp() })
	fails(t, env, func() { step.Run(w) }, "a parameter or buffer")
	fails(t, env, func() { step.Run(w.In(env).Exp()) }, "carries a graph")
	fails(t, env, func() { step.Run(env.Ones(3).RequireGrad()) }, "leaf")
	fails(t, env, func() { step.Run(fresh(t, "null:h200").Ones(3)) }, "null:h200", "To(env)")
	fails(t, env, func() { tensor.Capture[*tensor.Tensor](env, nil) }, "nil")
	type numbered struct {
		X *tensor.Tensor
		N int
	}
	many := tensor.Capture(env, func(b numbered) *tensor.Tensor { return b.X.Exp() })
	fails(t, env, func() {
		for i := range 100 {
			many.Run(numbered{env.Ones(2), i})
		}
	}, "kinds of batches", "change beside")
}

// TestCaptureBatches: tensors are found in any struct, slice and map; what else f may look at makes another kind of batch.
func TestCaptureBatches(t *testing.T) {
	env := open(t)
	type part struct{ Xs []*tensor.Tensor }
	type whole struct {
		Part  *part
		ByKey map[string]*tensor.Tensor
		Any   any
		Twice bool
	}
	step := tensor.Capture(env, func(b *whole) *tensor.Tensor {
		y := b.Part.Xs[0].Sub(b.Part.Xs[1]).Add(b.ByKey["a"].Scale(10)).Add(b.ByKey["b"].Scale(100))
		if x, ok := b.Any.(*tensor.Tensor); ok {
			y = y.Mul(x)
		}
		if b.Twice {
			y = y.Scale(2)
		}
		return y
	})
	run := func(want float64, twice bool, over any, v ...float64) {
		t.Helper()
		turn(env, 0, func(e *tensor.Env) {
			at := func(i int) *tensor.Tensor { return e.Full(v[i], 1) }
			if f, ok := over.(float64); ok {
				over = e.Full(f, 1)
			}
			equal(t, fmt.Sprint(v), step.Run(&whole{&part{[]*tensor.Tensor{at(0), at(1)}}, map[string]*tensor.Tensor{"a": at(2), "b": at(3)}, over, twice}), want)
		})
	}
	for range 3 {
		run(433, false, nil, 5, 2, 3, 4)
		run(124, false, nil, 5, 1, 2, 1)
		run(248, true, nil, 5, 1, 2, 1)
		run(62, false, 0.5, 5, 1, 2, 1)
		run(124, false, "no tensor", 5, 1, 2, 1)
	}
	if runs, kinds := step.Replayed(); kinds != 4 || runs != 15-1-4 {
		t.Error(step)
	}
	pair := tensor.Capture(env, func(x [2]*tensor.Tensor) *tensor.Tensor { return x[0].Add(x[1].Scale(2)) })
	for range 3 { // one tensor in two places is another kind than two
		x, y := env.Ones(1), env.Full(3, 1)
		equal(t, "one twice", pair.Run([2]*tensor.Tensor{x, x}), 3)
		equal(t, "two", pair.Run([2]*tensor.Tensor{x, y}), 7)
	}
}

// TestCaptureLayouts: a run takes views as they lie in memory, and parts of a memory that others lie in.
func TestCaptureLayouts(t *testing.T) {
	env := open(t)
	step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor { return x.Sum(1) })
	m := env.Arange(12).Cast(dtype.F32).Reshape(3, 4)
	for range 3 {
		equal(t, "whole", step.Run(m), 6, 22, 38)
		equal(t, "transposed", step.Run(m.Transpose(0, 1)), 12, 15, 18, 21)
		equal(t, "a part", step.Run(m.Slice(1, 1, 3)), 3, 11, 19)
		equal(t, "another part", step.Run(m.Slice(1, 2, 4)), 5, 13, 21)
		equal(t, "repeated", step.Run(m.Slice(0, 0, 1).Expand(3, 4)), 6, 6, 6)
		equal(t, "none", step.Run(m.Slice(0, 0, 0)))
	}
	if _, kinds := step.Replayed(); kinds != 5 {
		t.Error(step)
	}
}

// TestCaptureFollows: a run finds values of the root scope as they are, adds to them, and is recorded anew where one is
// another by now.
func TestCaptureFollows(t *testing.T) {
	env := open(t)
	w, total := tensor.NewBuffer(env.Full(2, 2)), env.Zeros(2)
	step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor {
		y := x.Mul(w)
		total.AddInPlace(y)
		return y
	})
	run := func(x float64, want ...float64) {
		t.Helper()
		turn(env, 0, func(e *tensor.Env) { equal(t, "result", step.Run(e.Full(x, 2)), want...) })
	}
	for range 3 {
		run(1, 2, 2)
	}
	w.FillInPlace(5)
	run(1, 5, 5)
	w.Replace(env.Full(7, 2))
	run(1, 7, 7)
	run(2, 14, 14)
	equal(t, "total", total, 32, 32)
	if runs, kinds := step.Replayed(); runs != 3 || kinds != 2 {
		t.Error(step)
	}
	graph := total.In(env).Mul(tensor.NewParam(env.Ones(2))).Sum()
	run(1, 7, 7)
	fails(t, env, func() { graph.Backward() }, "changed in place")
}

// TestCaptureDraws: the numbers of a run are those that the step would have drawn, from all paths that it draws from.
func TestCaptureDraws(t *testing.T) {
	for _, name := range []string{"cpu", "sim:0"} {
		run := func(captured bool) (all []float64, draws uint64) {
			env := fresh(t, name)
			side := env.Seed(9)
			f := func(x *tensor.Tensor) *tensor.Tensor {
				y := x.Dropout(0.5).Add(x.In(side).Dropout(0.5))
				env.Do(func(e *tensor.Env) *tensor.Tensor { y.AddInPlace(e.Randn(4)); return nil })
				y = y.Add(x.Env().Do(func(e *tensor.Env) *tensor.Tensor { return e.Rand(4).Add(e.RandInt(0, 9, 4)) }))
				inner, scope := x.Env().Scope(3)
				defer scope.End()
				y.AddInPlace(inner.Rand(4))
				return y.Add(x.Env().Seed(4).Rand(4)).Add(x.Dropout(0.1))
			}
			step := tensor.Capture(env, f)
			for i := range 6 {
				turn(env, i, func(e *tensor.Env) {
					x := e.Ones(4)
					e.Rand(i + 1) // what else the batch draws
					if captured {
						all = append(all, step.Run(x).Floats()...)
					} else {
						all = append(all, f(x).Floats()...)
					}
					all = append(all, e.Rand(1).Item())
				})
			}
			return append(all, side.Rand(1).Item()), env.Draws()
		}
		want, n := run(false)
		if got, draws := run(true); !slices.Equal(got, want) || draws != n {
			t.Errorf("%s: %v after %d draws, want %v after %d", name, got, draws, want, n)
		}
	}
}

// TestCaptureMemory: runs allocate nothing on the device; other kinds of batches share memory; Close gives it back.
func TestCaptureMemory(t *testing.T) {
	env := open(t)
	w := tensor.NewBuffer(env.Ones(64, 64))
	step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor {
		for range 20 {
			x = x.MatMul(w).Tanh()
		}
		return x.Mean()
	})
	used := env.Device().Memory().Used
	run := func(rows int) { turn(env, 0, func(e *tensor.Env) { step.Run(e.Ones(rows, 64)) }) }
	run(64)
	run(64)
	run(64)
	held := env.Device().Memory().Used - used
	if held > 8*64*64*4 {
		t.Errorf("40 values of %d bytes take %d", 64*64*4, held)
	}
	run(16)
	run(16)
	if now := env.Device().Memory().Used - used; now != held {
		t.Errorf("%d bytes for two kinds of batches, %d for the larger", now, held)
	}
	allocs := 0
	x := env.Ones(64, 64)
	stop := env.Device().Observe(func(*device.Event) { allocs++ }, device.KindAlloc)
	step.Run(x)
	if stop(); allocs != 0 {
		t.Errorf("%d allocations in a run", allocs)
	}
	step.Close()
	if now := env.Device().Memory().Used - x.Bytes(); now != used {
		t.Errorf("%d bytes after Close, %d before", now, used)
	}
	run(64)
}

// TestCaptureCostsNothing: a run allocates nothing in Go.
func TestCaptureCostsNothing(t *testing.T) {
	for _, name := range []string{"null:h200", "cpu"} {
		env := fresh(t, name)
		w := param(env, 1, 2, 3)
		opt := optim.NewAdamW(nn.Params(map[string]*tensor.Tensor{"w": w}), optim.AdamWConfig{Clip: 1})
		type batch struct{ X, Y *tensor.Tensor }
		step := tensor.Capture(env, func(b *batch) *tensor.Tensor {
			loss := b.X.Mul(w).Dropout(0.1).Sub(b.Y).Square().Sum()
			loss.Backward()
			opt.Step()
			return loss
		})
		b := &batch{env.Ones(3), env.Ones(3)}
		step.Run(b)
		step.Run(b)
		if n := testing.AllocsPerRun(100, func() { step.Run(b) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestCapturedIsObserved: observers of a run are told each launch with its line, its parameters and its range.
func TestCapturedIsObserved(t *testing.T) {
	env := open(t)
	l := nn.NewLinear(env, 3, 2)
	for range nn.Params(&struct{ Head *nn.Linear }{l}) {
	}
	opt := optim.NewSGD(nn.Params(l), optim.SGDConfig{LR: 0.1})
	step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor {
		loss := l.Forward(x).Sum()
		loss.Backward()
		opt.Step()
		return loss
	})
	told := func(timed bool) (all []string) {
		if timed {
			defer env.Device().Time()()
		}
		defer env.Device().Observe(func(e *device.Event) {
			name := "-"
			if e.Range != nil {
				name = e.Range.Name
			}
			all = append(all, fmt.Sprint(e.Kernel.Op.Code, e.Step, e.Paths, e.Backward, e.Site.String(), name, len(e.Args)))
		}, device.KindLaunch, device.KindFill, device.KindRange)()
		turn(env, 0, func(e *tensor.Env) { step.Run(e.Ones(4, 3)) })
		return all
	}
	defer env.Device().Observe(func(*device.Event) {}, device.KindRange)()
	turn(env, 0, func(e *tensor.Env) { step.Run(e.Ones(4, 3)) })
	turn(env, 0, func(e *tensor.Env) { step.Run(e.Ones(4, 3)) })
	plain, timed := told(false), told(true)
	if !slices.Equal(plain, timed) || len(plain) < 5 || !strings.Contains(strings.Join(plain, " "), "weight") {
		t.Errorf("told %q, with times %q", plain, timed)
	}
}

// TestCaptureFaults: an index out of range in a run is an error that names the operation of the step, in each such run.
func TestCaptureFaults(t *testing.T) {
	for _, name := range []string{"cpu", "sim:0"} {
		env, line := fresh(t, name), ""
		w := tensor.NewBuffer(env.Arange(6).Cast(dtype.F32).Reshape(3, 2))
		step := tensor.Capture(env, func(i *tensor.Tensor) *tensor.Tensor {
			_, _, at, _ := runtime.Caller(0)
			line = fmt.Sprintf("capture_test.go:%d", at+2)
			y := w.Gather(0, i.Unsqueeze(1).Expand(2, 2))
			for range 300 { // more launches than an engine remembers
				y = y.Scale(1)
			}
			return y.Sum()
		})
		at := func(i int64) float64 {
			return step.Run(tensor.From(env, []int64{0, i}, 2)).Item()
		}
		for range 3 {
			at(2)
		}
		for range 2 {
			fails(t, env, func() { at(7) }, "index 7", "out of range", "gather", line)
			if got := at(2); got != 10 {
				t.Errorf("%s: %v after an error, want 10", name, got)
			}
		}
	}
}
