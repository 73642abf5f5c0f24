package tensor_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/testutil"
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
			return y //warpline:ok V27
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

// TestCaptureComparesRecordings: a step that Go values steer is an error when it is recorded for the second time, which names
// the line, and, where they change later, when it is checked.
func TestCaptureComparesRecordings(t *testing.T) {
	env := open(t)
	w := [2]*tensor.Tensor{param(env, 1, 2, 3), param(env, 4, 5, 6)}
	opts := [2]optim.Optimizer{}
	for i := range opts {
		opts[i] = optim.NewSGD(nn.Params(map[string]*tensor.Tensor{"w": w[i]}), optim.SGDConfig{LR: 0.1})
		env.Ones(3).Mul(w[i]).Sum().Backward()
		opts[i].Step() // makes its state
	}
	side := [2]*tensor.Env{env.Seed(1), env.Seed(2)}
	buffers := [2]*tensor.Tensor{tensor.NewBuffer(env.Zeros(3)), tensor.NewBuffer(env.Zeros(3))}
	amp := [2]*tensor.Env{env, env.Autocast(dtype.BF16)}
	square := tensor.NewParam(env.Ones(3, 3))
	for name, c := range map[string]struct {
		f     func(x *tensor.Tensor, i int) *tensor.Tensor // i changes
		words []string
	}{
		"factor":          {func(x *tensor.Tensor, i int) *tensor.Tensor { return x.Scale(0.5 + float64(i)) }, []string{"affine at", "1.5", "0.5"}},
		"whole number":    {func(x *tensor.Tensor, i int) *tensor.Tensor { return x.Add(x.Env().FullOf(dtype.I64, float64(3+i))) }, []string{"at"}},
		"branch":          {func(x *tensor.Tensor, i int) *tensor.Tensor { return []func() *tensor.Tensor{x.Exp, x.Neg}[i]() }, []string{"neg at", "where exp at"}},
		"length":          {func(x *tensor.Tensor, i int) *tensor.Tensor { return x.Exp().Slice(0, 0, 2+i).Neg() }, []string{"neg at"}},
		"place":           {func(x *tensor.Tensor, i int) *tensor.Tensor { return x.Exp().Slice(0, i, i+2).Neg() }, []string{"neg at", "other values"}},
		"one more":        {func(x *tensor.Tensor, i int) *tensor.Tensor { return deep(x.Exp(), i) }, []string{"exp at", "one of 2 operations, 1 before"}},
		"one less":        {func(x *tensor.Tensor, i int) *tensor.Tensor { return deep(x.Exp(), 1-i) }, []string{"exp at", "one of 2 operations, and is none of 1"}},
		"weights":         {func(x *tensor.Tensor, i int) *tensor.Tensor { return x.Mul(w[i].Detach()) }, []string{"mul at", "other values"}},
		"result":          {func(x *tensor.Tensor, i int) *tensor.Tensor { return [2]*tensor.Tensor{x.Exp(), x.Neg()}[i] }, []string{"another value"}},
		"result or none":  {func(x *tensor.Tensor, i int) *tensor.Tensor { return [2]*tensor.Tensor{x.Exp(), nil}[i] }, []string{"another value"}},
		"path":            {func(x *tensor.Tensor, i int) *tensor.Tensor { return x.In(side[i]).Dropout(0.5) }, []string{"dropout at", "another path"}},
		"seed":            {func(x *tensor.Tensor, i int) *tensor.Tensor { return x.Env().Seed(uint64(i)).Rand(3) }, []string{"uniform at", "another path"}},
		"index of a path": {func(x *tensor.Tensor, i int) *tensor.Tensor { return scoped(x, uint64(i)) }, []string{"dropout at", "another path"}},
		"probability":     {func(x *tensor.Tensor, i int) *tensor.Tensor { return x.Dropout(0.25 + 0.25*float64(i)) }, []string{"dropout at", "0.5", "0.25"}},
		"buffer":          {func(x *tensor.Tensor, i int) *tensor.Tensor { buffers[i].AddInPlace(x); return x.Exp() }, []string{"add at", "other values"}},
		"precision":       {func(x *tensor.Tensor, i int) *tensor.Tensor { return x.Unsqueeze(0).In(amp[i]).MatMul(square.Detach()) }, []string{"at"}},
		"which learns": {func(x *tensor.Tensor, i int) *tensor.Tensor {
			l := x.Mul(w[i]).Sum()
			l.Backward()
			opts[i].Step()
			return l
		}, []string{"mul at", "other values"}},
	} {
		for _, at := range []int{2, 5} { // recorded for the second time; checked, after replays
			turns, i := 0, 0
			step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor { return c.f(x, i) })
			_, err := env.Try(func(*tensor.Env) *tensor.Tensor {
				for ; turns <= at; turns++ {
					turn(env, turns, func(e *tensor.Env) {
						run := step.Run
						if turns == at && at > 2 {
							run = step.Check
						}
						if turns == at {
							i = 1
						}
						run(e.Ones(3))
					})
				}
				return nil
			})
			for _, word := range append(c.words, "not ask for the same", "capture_test.go:") {
				if turns != at || err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("%s, turn %d of %d: %v, want %q", name, turns, at, err, word)
				}
			}
			step.Close()
		}
	}
}

// deep is x, or its exponential where i is not 0.
func deep(x *tensor.Tensor, i int) *tensor.Tensor {
	if i > 0 {
		return x.Exp()
	}
	return x
}

// scoped draws from a path of x's scope.
func scoped(x *tensor.Tensor, i uint64) *tensor.Tensor {
	e, scope := x.Env().Scope(i)
	defer scope.End()
	y := x.Exp()
	y.CopyInPlace(x.In(e).Dropout(0.5))
	return y
}

// TestCaptureChecks: a check does the step, as often as one likes, and says nothing where nothing has changed.
func TestCaptureChecks(t *testing.T) {
	env := open(t)
	train := func(check bool) (losses []float64, w *tensor.Tensor) {
		w = param(env.Seed(3), 1, 2, 3)
		opt := optim.NewAdamW(nn.Params(map[string]*tensor.Tensor{"w": w}), optim.AdamWConfig{LR: 0.1})
		step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor {
			loss := x.Mul(w).Dropout(0.3).Square().Sum()
			loss.Backward()
			opt.Step()
			return loss
		})
		for i := range 9 {
			run := step.Run
			if check && i%3 > 0 {
				run = step.Check
			}
			e, s := env.Seed(4).Scope(uint64(i))
			losses = append(losses, run(e.Ones(3)).Item())
			s.End()
		}
		return losses, w
	}
	want, w := train(false)
	if got, v := train(true); !slices.Equal(got, want) || !slices.Equal(v.Floats(), w.Floats()) {
		t.Errorf("%v and %v with checks, want %v and %v", got, v, want, w)
	}
}

// TestCaptureFreezes: a run learns what the step would learn by then, and hooks that come later are called.
func TestCaptureFreezes(t *testing.T) {
	env := open(t)
	train := func(captured bool) (left []float64, runs int) {
		v, w := param(env, 1, 2, 3), param(env, 4, 5, 6)
		opt := optim.NewSGD(nn.Params(map[string]*tensor.Tensor{"v": v, "w": w}), optim.SGDConfig{LR: 0.01, Momentum: 0.9})
		f := func(x *tensor.Tensor) *tensor.Tensor {
			loss := x.Mul(v).Mul(w).Sum()
			loss.Backward()
			opt.Step()
			return loss
		}
		step := tensor.Capture(env, f)
		for i := range 24 {
			w.Freeze(i%12 >= 6)
			if i == 18 {
				v.OnGrad(func(g *tensor.Tensor) *tensor.Tensor { return g.Scale(2) })
			}
			turn(env, i, func(e *tensor.Env) {
				run := f
				if captured {
					run = step.Run
				}
				left = append(left, run(e.Ones(3)).Item())
			})
		}
		runs, _ = step.Replayed()
		return append(append(left, v.Floats()...), w.Floats()...), runs
	}
	want, _ := train(false)
	if got, runs := train(true); !slices.Equal(got, want) || runs != 24-1-3*2 {
		t.Errorf("%v, want %v; %d runs", got, want, runs)
	}
}

// TestCaptureLater: kinds of batches may have optimizers of their own, whose state is made when the first run was long ago.
func TestCaptureLater(t *testing.T) {
	env := open(t)
	type batch struct {
		X    *tensor.Tensor
		Kind int
	}
	train := func(captured bool) (left []float64, runs int) {
		var w [3]*tensor.Tensor
		var opts [3]optim.Optimizer
		for i := range w {
			w[i] = param(env, 1, 2, 3)
			opts[i] = optim.NewAdamW(nn.Params(map[string]*tensor.Tensor{"w": w[i]}), optim.AdamWConfig{LR: 0.1, Clip: 1})
		}
		f := func(b batch) *tensor.Tensor {
			loss := b.X.Mul(w[b.Kind]).Square().Sum()
			loss.Backward()
			opts[b.Kind].Step()
			return loss
		}
		step := tensor.Capture(env, f)
		for i := range 20 {
			turn(env, i, func(e *tensor.Env) {
				b, run := batch{e.Full(float64(i), 3), max(0, i%4-1)}, f
				if captured {
					run = step.Run
				}
				left = append(left, run(b).Item())
			})
		}
		for _, w := range w {
			left = append(left, w.Floats()...)
		}
		runs, _ = step.Replayed()
		return left, runs
	}
	want, _ := train(false)
	if got, runs := train(true); !slices.Equal(got, want) || runs < 20-1-3*3 {
		t.Errorf("%v, want %v; %d runs", got, want, runs)
	}
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
	if runs, kinds := step.Replayed(); kinds != 4 || runs != 15-1-2*4 {
		t.Error(step)
	}
	pair := tensor.Capture(env, func(x [2]*tensor.Tensor) *tensor.Tensor { return x[0].Add(x[1].Scale(2)) })
	for range 4 { // one tensor in two places is another kind than two
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
	for range 4 {
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
	for range 4 {
		run(1, 2, 2)
	}
	w.FillInPlace(5)
	run(1, 5, 5)
	w.Replace(env.Full(7, 2))
	run(1, 7, 7)
	run(2, 14, 14)
	equal(t, "total", total, 34, 34)
	if runs, kinds := step.Replayed(); runs != 2 || kinds != 2 {
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
	for range 4 {
		run(64)
	}
	held := env.Device().Memory().Used - used
	if held > 8*64*64*4 {
		t.Errorf("40 values of %d bytes take %d", 64*64*4, held)
	}
	for range 3 {
		run(16)
	}
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
		for range 4 {
			step.Run(b)
		}
		if n := testutil.Allocations(100, func() { step.Run(b) }); n != 0 {
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
	for range 3 {
		turn(env, 0, func(e *tensor.Env) { step.Run(e.Ones(4, 3)) })
	}
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
		for range 4 {
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

// TestCaptureOutOfMemory: whichever allocation fails, of a run that records or that makes the memory of all others, the next
// run does the step as if nothing had been.
func TestCaptureOutOfMemory(t *testing.T) {
	devices, turns := []string{"cpu"}, []int{2, 3, 4}
	if testutil.NewSpread(t, testutil.Seed(t), 2).All() {
		devices, turns = append(devices, "null:h200", "sim:0"), []int{0, 1, 2, 3, 4}
	}
	for _, name := range devices {
		train := func(at, k int) (left []float64, failed bool) {
			env := fresh(t, name)
			w := param(env, 1, 2, 3)
			opt := optim.NewSGD(nn.Params(map[string]*tensor.Tensor{"w": w}), optim.SGDConfig{LR: 0.1, Momentum: 0.9, Clip: 1})
			step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor {
				loss := x.Mul(w).Square().Sum()
				loss.Backward()
				opt.Step()
				return loss
			})
			for i := range 6 {
				turn(env, i, func(e *tensor.Env) {
					x := e.Full(float64(i), 3)
					if i == at {
						env.Device().FailAt(k)
						_, err := env.Try(func(*tensor.Env) *tensor.Tensor { step.Run(x); return nil })
						env.Device().FailAt(0)
						var short *tensor.OOMError
						if failed = errors.As(err, &short); failed {
							opt.Discard()
						} else if err != nil {
							t.Fatalf("%s, turn %d, allocation %d: %v", name, at, k, err)
						} else {
							return
						}
					}
					left = append(left, step.Run(x).Item())
				})
			}
			return append(left, w.Floats()...), failed
		}
		want, _ := train(-1, 0)
		for _, at := range turns {
			k := 1
			for ; ; k++ {
				got, failed := train(at, k)
				if !failed {
					break
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, allocation %d of turn %d failed: %v, want %v", name, k, at, got, want)
				}
			}
			if least := []int{4, 4, 4, 2, 1}[at]; k < least || at == 4 && k > 1 {
				t.Errorf("%s: turn %d makes %d allocations", name, at, k-1)
			}
		}
	}
}

// TestCaptureKeepsMemory: runs leave memory as it is, and need about what the step itself does at its peak.
func TestCaptureKeepsMemory(t *testing.T) {
	train := func(captured bool) (peak, reserved int64) {
		env := fresh(t, "null:h200")
		m := nn.Sequential{nn.NewLinear(env, 64, 512), nn.ReLU{}, nn.NewLinear(env, 512, 512), nn.ReLU{}, nn.NewLinear(env, 512, 8)}
		opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{Clip: 1})
		f := func(x *tensor.Tensor) *tensor.Tensor {
			loss := m.Forward(x).Square().Mean()
			loss.Backward()
			opt.Step()
			return loss
		}
		if captured {
			f = tensor.Capture(env, f).Run
		}
		d := env.Device()
		var held tensor.Memory
		for i := range 60 {
			turn(env, i, func(e *tensor.Env) { f(e.Ones(4096, 64)) })
			switch now := d.Memory(); {
			case i == 9:
				d.ResetPeak()
				held = d.Memory()
			case i > 9 && (now.Used != held.Used || now.Reserved != held.Reserved):
				t.Fatalf("captured %t, turn %d: %+v, before %+v", captured, i, now, held)
			}
		}
		return d.Memory().Peak, held.Reserved.Current
	}
	eager, reserved := train(false)
	captured, own := train(true)
	if captured > eager+eager/10 { // the batch is there twice
		t.Errorf("at the peak %d bytes, captured %d", eager, captured)
	}
	if own > reserved+reserved/4 { // segments are of whole MiB
		t.Errorf("%d bytes are taken from the device, captured %d", reserved, own)
	}
}
