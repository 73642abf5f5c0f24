package tensor_test

import (
	"errors"
	"runtime"
	"runtime/metrics"
	"testing"
	"weak"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// block is six ops with a weight, as a layer has them.
func block(x, w *tensor.Tensor) *tensor.Tensor {
	h := x.MatMul(w).GELU().Scale(0.5)
	return h.Sub(x).Tanh().Add(x)
}

// liveHeap is what Go's last collection found reachable, in bytes.
func liveHeap() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// TestEvaluationMemory passes through 24 blocks in one scope and bounds the peak: without a graph the only thing that
// ends a value is the collector. On the CPU and in a plan it is paced by bytes: 8 MiB, or twice the live Go heap. The
// memory of a simulated GPU is itself in that heap: there the test collects, and bounds what is made in between.
func TestEvaluationMemory(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	const blocks, ops = 24, 6
	for _, c := range []struct {
		name    string
		device  string
		n       int // activations and weights are n×n float32
		collect int // every so many blocks; 0: only by its pace
	}{{"256 KiB", "cpu", 256, 0}, {"4 MiB", "null:a100-80", 1024, 0}, {"64 KiB collected", testutil.Device(), 128, 4}} {
		t.Run(c.name, func(t *testing.T) {
			env, err := tensor.Fresh(c.device)
			if err != nil {
				t.Fatal(err)
			}
			d := env.Device()
			weights := make([]*tensor.Tensor, blocks)
			for i := range weights {
				weights[i] = tensor.NewParam(env.Ones(c.n, c.n))
			}
			d.Collect()
			heap, weighted := liveHeap(), d.Memory().Allocated.Current
			d.ResetPeak()
			turn(env.NoGrad().Eval(), 1, func(e *tensor.Env) {
				x := e.Ones(c.n, c.n)
				for i, w := range weights {
					x = block(x, w)
					if c.collect > 0 && (i+1)%c.collect == 0 {
						d.Collect()
					}
				}
			})
			size := int64(4 * c.n * c.n)
			live := 4 * size // x, h, the result and scratch memory of the product
			bound := weighted + live + int64(c.collect*ops)*size
			if c.collect == 0 {
				bound = (weighted+live)*3/2 + max(8<<20, 2*max(heap, liveHeap()))
			}
			if m := d.Memory(); m.Allocated.Peak > bound {
				t.Errorf("peak %d bytes after %d collections, bound %d", m.Allocated.Peak, m.Collections, bound)
			}
			runtime.KeepAlive(weights)
		})
	}
}

// TestEveryAllocationMayFail lets each allocation of a step fail in turn: nothing leaks and the next step works.
func TestEveryAllocationMayFail(t *testing.T) {
	env := open(t)
	w, v := param(env, 1, 2, 3), param(env, 0.5, -1, 2)
	step := func(e *tensor.Env) {
		x := w.In(e).Exp()
		y := tensor.Recompute(x, func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(v).Sigmoid() })
		z := e.Do(func(e *tensor.Env) *tensor.Tensor { return y.In(e).Square().Add(x) })
		tensor.Stack(0, z, y).Softmax(1).Log().Sum(0).Mul(v).Sum().Backward()
		w.DropGrad()
		v.DropGrad()
	}
	turn(env, 0, step)
	env.Device().Collect()
	want := env.Device().Memory()
	for k := 1; ; k++ {
		env.Device().FailAt(k)
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { turn(env, k, step); return nil })
		w.DropGrad()
		v.DropGrad()
		env.Device().FailAt(0)
		if err == nil {
			if k < 20 {
				t.Errorf("only %d allocations in a step", k)
			}
			break
		}
		var oom *tensor.OOMError
		if !errors.As(err, &oom) {
			t.Fatal(err)
		}
		if m := env.Device().Memory(); m.Used != want.Used || m.Scopes != want.Scopes || m.ScopeOnly != want.ScopeOnly {
			t.Fatalf("after failure %d: %+v, want %+v", k, m, want)
		}
	}
	turn(env, 0, step)
}

func TestFlatMemory(t *testing.T) {
	env := open(t)
	w := tensor.NewParam(env.Randn(16, 16))
	var early tensor.Memory
	for i := range 500 {
		turn(env, i, func(e *tensor.Env) {
			x := e.Randn(8, 16)
			x.MatMul(w).GELU().MatMul(w.In(e).Transpose(0, 1)).Sub(x).Square().Mean().Backward()
			w.DropGrad()
		})
		if i == 20 {
			early = env.Device().Memory()
		}
	}
	if m := env.Device().Memory(); m.Used != early.Used || m.Allocated.Current != early.Allocated.Current || m.Peak != early.Peak || m.Reserved.Current != early.Reserved.Current {
		t.Errorf("%+v after 500 turns, %+v after 20", m, early)
	}
}

// TestLastLaunchKeepsNothing: a device without further work does not reach what its last work was done for, such as the
// model that a range was opened for. The observers of ranges and of launches are gone too.
func TestLastLaunchKeepsNothing(t *testing.T) {
	type model [1 << 10]float64
	for _, name := range []string{"cpu", "null:a100-80", testutil.Device()} {
		for _, kinds := range [][]device.Kind{{device.KindRange}, {device.KindLaunch}, nil} {
			env, err := tensor.Fresh(name)
			if err != nil {
				t.Fatal(err)
			}
			var kept weak.Pointer[model]
			turn(env.NoGrad(), 0, func(e *tensor.Env) {
				defer env.Device().Observe(func(*device.Event) {}, kinds...)()
				m := new(model)
				kept = weak.Make(m)
				x, end := e.Ones(4).Enter("model", m)
				end(tensor.Chain(x, (*tensor.Tensor).Tanh, (*tensor.Tensor).Exp))
			})
			runtime.GC()
			if kept.Value() != nil {
				t.Errorf("%s reaches a model that nobody uses, after observers of %v", name, kinds)
			}
			runtime.KeepAlive(env)
		}
	}
}

func TestMoreThanTheMachineHas(t *testing.T) {
	env := open(t)
	_, err := env.Try(func(e *tensor.Env) *tensor.Tensor { return e.Zeros(1 << 40) })
	var oom *tensor.OOMError
	if !errors.As(err, &oom) {
		t.Errorf("4 TiB: %v", err)
	}
}

// TestRelease: a value that was kept goes at once, unless a live graph holds it, and is named where it is used after that.
func TestRelease(t *testing.T) {
	for _, n := range []int{1, 5000} { // which Keep copies, and moves
		env := open(t)
		w := tensor.NewParam(env.Full(2, n))
		used := func() int64 { return env.Device().Memory().Used }
		before := used()
		var kept *tensor.Tensor
		turn(env, 0, func(e *tensor.Env) {
			kept = e.Full(3, n).Keep()
			fails(t, e, func() { e.Full(3, n).Release() }, "Release", "values of a batch go with it")
			held := kept.In(e).Scale(2).Keep()
			y := held.In(e).Mul(w) // whose gradient needs it
			held.Release()
			y.Sum().Backward()
			equal(t, "the gradient", w.Grad().Slice(0, 0, 1), 6)
			w.DropGrad()
		})
		kept.Release()
		if now := used(); now != before {
			t.Errorf("%d elements: %d bytes are in use, and %d were before", n, now, before)
		}
		fails(t, env, func() { kept.Sum() }, "was released by Release")
		fails(t, env, func() { kept.Release() }, "was released by Release")
	}
}

// TestReleaseOfOthers: what Keep has not returned is refused, by whatever handle, and stays.
func TestReleaseOfOthers(t *testing.T) {
	for _, n := range []int{2, 5000} {
		env := open(t)
		w, buffer := tensor.NewParam(env.Full(2, n)), tensor.NewBuffer(env.Full(2, n))
		root := env.Full(2, n)
		var slot tensor.Slot
		var kept *tensor.Tensor
		turn(env, 0, func(e *tensor.Env) {
			slot.Set(e.Full(2, n))
			kept = e.Full(2, n).Keep()
		})
		turn(env, 1, func(e *tensor.Env) {
			for name, x := range map[string]*tensor.Tensor{
				"a parameter": w, "a buffer": buffer, "a root value": root, "a slot's value": slot.Get(e), "a batch's value": e.Full(2, n),
			} {
				for way, h := range map[string]*tensor.Tensor{
					"itself": x, "in a batch": x.In(e), "detached": x.Detach(), "as a leaf": x.Detach().RequireGrad(), "reshaped": x.Reshape(n, 1), "a part": x.Slice(0, 0, 1),
				} {
					fails(t, env, func() { h.Release() }, "Release", "is no value that Keep has returned", "with its module")
					if got := x.Slice(0, n-1, n).Floats(); got[0] != 2 {
						t.Errorf("%s, %s, is %v behind a Release", name, way, got)
					}
				}
			}
			for way, h := range map[string]*tensor.Tensor{"the first part": kept.Slice(0, 0, n-1), "the last": kept.Slice(0, 1, n), "a part as large as all": kept.Slice(0, 1, 2).Expand(n), "of In": kept.In(e).Slice(0, 0, 1)} {
				fails(t, env, func() { h.Release() }, "a view with what it is of")
				if got := kept.Slice(0, n-1, n).Floats(); got[0] != 2 {
					t.Errorf("%s is %v behind a Release of a view", way, got)
				}
			}
		})
		parameter := tensor.NewParam(kept) // has a copy
		kept.Detach().Release()
		fails(t, env, func() { kept.Sum() }, "was released by Release")
		if got := parameter.Slice(0, 0, 1).Floats(); got[0] != 2 {
			t.Errorf("a parameter of what was kept is %v behind its Release", got)
		}
	}
}

// TestKeptScalarsAreSmall measures what a scalar costs in Go's heap that outlives its batch: the handle, its storage and its
// place in lists, and nothing of the batch. It is of the CPU: a simulated card has its memory in that heap.
func TestKeptScalarsAreSmall(t *testing.T) {
	if !testutil.Alone(t) {
		return
	}
	const turns, most = 2000, 400
	for name, keep := range map[string]func(loss, w *tensor.Tensor) *tensor.Tensor{
		"a loss":            func(loss, _ *tensor.Tensor) *tensor.Tensor { return loss.Keep() },
		"after Backward":    func(loss, w *tensor.Tensor) *tensor.Tensor { loss.Backward(); w.DropGrad(); return loss.Keep() },
		"beside a read":     func(loss, _ *tensor.Tensor) *tensor.Tensor { loss.Later().Value(); return loss.Keep() },
		"of a no-grad pass": func(loss, _ *tensor.Tensor) *tensor.Tensor { return loss.Detach().Exp().Keep() },
	} {
		env := fresh(t, "cpu")
		w := tensor.NewParam(env.Randn(8, 8))
		kept := make([]*tensor.Tensor, 0, turns)
		heap := func() int64 {
			env.Device().Collect()
			runtime.GC()
			return liveHeap()
		}
		before := heap()
		for i := range turns {
			turn(env, i, func(e *tensor.Env) {
				kept = append(kept, keep(e.Rand(4, 8).MatMul(w).Tanh().Square().Mean(), w))
			})
		}
		if each := (heap() - before) / turns; each > most {
			t.Errorf("%s: a kept scalar costs %d bytes of Go's heap, more than %d", name, each, most)
		}
		if v := kept[turns/2].Item(); !(v > 0) {
			t.Errorf("%s: %v", name, v)
		}
		runtime.KeepAlive(kept)
	}
}

// TestNestedBlocksHoldTheirOwn counts what blocks within blocks hold at most: values live to the end of the block that made
// them, on every engine alike and whenever Go's collector runs.
func TestNestedBlocksHoldTheirOwn(t *testing.T) {
	const n = 400 // bytes of a value
	for _, name := range []string{"cpu", "null:a100-80", "sim:0"} {
		for _, gc := range []bool{false, true} {
			env := fresh(t, name)
			dev := env.Device()
			collect := func(x *tensor.Tensor) *tensor.Tensor {
				if gc {
					runtime.GC()
				}
				return x
			}
			x := env.Ones(n / 4)
			dev.ResetPeak()
			y := env.NoGrad().Do(func(e *tensor.Env) *tensor.Tensor {
				for range 3 {
					e.Do(func(e *tensor.Env) *tensor.Tensor {
						a := x.In(e).Exp().Neg() // 2
						collect(a)
						b := e.Do(func(e *tensor.Env) *tensor.Tensor { return collect(a.In(e).Square().Add(a.In(e)).Tanh()) }) // 3, of which 1 stays
						e.Do(func(e *tensor.Env) *tensor.Tensor { return nil })
						return a.Mul(b) // 4 before the block ends
					})
				}
				return x.In(e).Neg() // beside three results
			})
			if m := dev.Memory(); m.ValuesPeak != (1+2+5)*n || m.Used != 2*n || m.Collections > 0 {
				t.Errorf("%s: a peak of %d values, %d in the end, %d collections", name, m.ValuesPeak/n, m.Used/n, m.Collections)
			}
			runtime.KeepAlive(y)
		}
	}
}
