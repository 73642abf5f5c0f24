package tensor_test

import (
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// These tests state the rules of Env and ownership, one after the other, by the numbers of docs/architecture.md.

func TestOverlayChangesOnlyWhatTheEnvSets(t *testing.T) {
	env := open(t)
	x := tensor.From(env, []float64{1, 2}, 2).In(env.NoGrad().Eval())
	if x.Env().Recording() || x.Env().Training() {
		t.Error("In lost a mode")
	}
	y := x.In(env.Grad())
	if !y.Env().Recording() || y.Env().Training() {
		t.Error("In(env.Grad()) must switch recording on again and leave evaluation")
	}
	if !env.Recording() || !env.Training() {
		t.Error("a fresh env records and trains")
	}
}

func TestOverlayNeverMovesToAnOuterScope(t *testing.T) {
	env := open(t)
	e, s := env.Scope(1)
	x := e.Ones(4)
	y := x.In(env.NoGrad()).Scale(2)
	s.End()
	fails(t, env, func() { y.Scale(1) }, "released by the end of its batch", "Keep", "rules_test.go")
}

func TestClosedBatchEnvIsAnError(t *testing.T) {
	env := open(t)
	e, s := env.Scope(1)
	s.End()
	fails(t, env, func() { e.Zeros(1) }, "batch has ended")
}

func TestJoinIsCommutative(t *testing.T) {
	env := open(t)
	e, s := env.Scope(1)
	inner, outer := e.Ones(2), env.Ones(2).In(env.NoGrad())
	for _, z := range []*tensor.Tensor{inner.Add(outer), outer.Add(inner)} {
		if z.Env().Recording() {
			t.Error("no-grad wins among constants")
		}
	}
	a, b := inner.Add(outer), outer.Add(inner)
	s.End()
	fails(t, env, func() { a.Neg() }, "released")
	fails(t, env, func() { b.Neg() }, "released")
}

// TestPartsJoin: of two operands' parts to recompute the same count in either order, and an env that says nothing takes the other's.
func TestPartsJoin(t *testing.T) {
	env := open(t)
	all := []*tensor.Env{env, env.Recompute(tensor.PartsOf(tensor.PartNone)), env.Recompute(tensor.PartsOf(tensor.PartAttention)),
		env.Recompute(tensor.PartsOf(tensor.PartBlock)), env.Recompute(tensor.PartsAt("a")), env.Recompute(tensor.PartsAt("b", "a"))}
	for i, a := range all {
		for _, b := range all[i:] {
			x, y := a.Ones(1).Add(b.Ones(1)).Env(), b.Ones(1).Add(a.Ones(1)).Env()
			if x.Parted() != y.Parted() || a == env && x.Parted() != b.Parted() {
				t.Errorf("%d: parted %v and %v", i, x.Parted(), y.Parted())
			}
			if in := a.Ones(1).In(b).Env(); b != env && in.Parted() != b.Parted() || b == env && in.Parted() != a.Parted() {
				t.Errorf("%d: In gives parted %v", i, in.Parted())
			}
		}
	}
}

func TestGraphModesCountBeforeConstants(t *testing.T) {
	env := open(t)
	w, v := param(env, 1, 2), param(env, 5, 6)
	turn(env, 1, func(e *tensor.Env) {
		quiet := tensor.From(e.NoGrad(), []float64{3, 4}, 2)
		w.In(e).Neg().Mul(quiet).Mul(v).Sum().Backward()
		equal(t, "through a constant made under no-grad", w.Grad(), -15, -24)
		equal(t, "a weight met after that constant", v.Grad(), -3, -8)
	})
}

func TestParametersSetOnlyTheDevice(t *testing.T) {
	env := open(t)
	w := param(env, 1)
	turn(env, 1, func(e *tensor.Env) {
		x := tensor.From(e.Eval(), []float64{1}, 1)
		if w.Mul(x).Env().Training() || x.Mul(w).Env().Training() {
			t.Error("the data's modes must win over a parameter's")
		}
	})
}

func TestTwoPoliciesAreAnError(t *testing.T) {
	env := open(t)
	a, b := env.Autocast(dtype.BF16).Ones(2), env.Autocast(dtype.F16).Ones(2)
	fails(t, env, func() { a.Add(b) }, "bf16", "f16", "Autocast")
}

func TestTwoDevicesAreAnError(t *testing.T) {
	env := open(t)
	other := open(t)
	x, y := env.Ones(2, 3), other.Ones(2, 3)
	fails(t, env, func() { x.Add(y) }, "two devices", "To(env)", "rules_test.go")
	equal(t, "To copies", y.To(env).Add(x).Sum(), 12)
}

func TestRecordingFollowsTheGraph(t *testing.T) {
	env := open(t)
	w, frozen := param(env, 2), param(env, 5)
	turn(env, 1, func(e *tensor.Env) {
		h := w.In(e).Scale(3)
		y := e.Do(func(e *tensor.Env) *tensor.Tensor { return h.In(e.NoGrad()).Mul(frozen) })
		if !y.Recorded() || !y.Env().Recording() {
			t.Error("a value with a graph is recorded under no-grad too, and no mode leaks out of the block")
		}
		y.Sum().Backward()
		equal(t, "gradient through the frozen factor", w.Grad(), 15)
		if frozen.Grad() != nil {
			t.Error("a leaf under no-grad is a constant")
		}
	})
}

func TestGradInsideNoGrad(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	y := w.In(env.NoGrad().Grad()).Square().Sum()
	y.Backward()
	equal(t, "gradient", w.Grad(), 4)
}

func TestBackwardSaysWhereRecordingStopped(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	fails(t, env, func() { w.In(env.NoGrad()).Square().Sum().Backward() }, "nothing was recorded", "rules_test.go")
	fails(t, env, func() { env.Ones(1).Sum().Backward() }, "nothing was recorded")
	v := param(env, 3)
	fails(t, env, func() {
		v.In(env).Mul(tensor.From(env, []float64{1}, 1)).Sum().Backward(seq("w", w))
	}, "no parameter is reached")
}

// seq is a list of one parameter.
func seq(name string, p *tensor.Tensor) func(func(string, *tensor.Tensor) bool) {
	return maps.All(map[string]*tensor.Tensor{name: p})
}

func TestBackwardOnly(t *testing.T) {
	env := open(t)
	w, v := param(env, 2), param(env, 3)
	w.In(env).Mul(v).Sum().Backward(seq("w", w))
	equal(t, "the one asked for", w.Grad(), 3)
	if v.Grad() != nil {
		t.Error("the other parameter got a gradient")
	}
}

func TestBlockReleasesWhatIsNotReturned(t *testing.T) {
	env := open(t)
	turn(env, 1, func(e *tensor.Env) {
		before := e.Device().Memory().Used
		var lost *tensor.Tensor
		out := e.Do(func(e *tensor.Env) *tensor.Tensor {
			lost = e.Ones(1000)
			return lost.Sum()
		})
		if used := e.Device().Memory().Used - before; used != 4 {
			t.Errorf("%d bytes remain of the block, want 4", used)
		}
		fails(t, e, func() { lost.Sum() }, "the end of its Do or Try block")
		equal(t, "returned", out, 1000)
		if e.Do(func(*tensor.Env) *tensor.Tensor { return nil }) != nil {
			t.Error("nil is allowed")
		}
	})
}

func TestDoReturnsStructs(t *testing.T) {
	env := open(t)
	type pair struct {
		A *tensor.Tensor
		B map[string][]*tensor.Tensor
	}
	p := tensor.Do(env, func(e *tensor.Env) pair {
		return pair{e.Ones(2), map[string][]*tensor.Tensor{"x": {e.Full(3, 2)}}}
	})
	equal(t, "struct", p.A.Add(p.B["x"][0]), 4, 4)
}

func TestTryReleasesAfterOutOfMemory(t *testing.T) {
	env := open(t)
	turn(env, 1, func(e *tensor.Env) {
		held := e.Ones(10) // so that the allocator holds a segment
		defer runtime.KeepAlive(held)
		before := e.Device().Memory()
		e.Device().SetLimit(before.Used + 1<<20)
		defer e.Device().SetLimit(0)
		_, err := e.Try(func(e *tensor.Env) *tensor.Tensor { return e.Ones(1 << 20).Add(e.Ones(1 << 20)) })
		var oom *tensor.OOMError
		if !errors.As(err, &oom) {
			t.Fatal(err)
		}
		for _, w := range []string{"out of memory on " + testutil.Device(), "MiB", "rules_test.go", "smaller batch"} {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q", err, w)
			}
		}
		if m := e.Device().Memory(); m.Used != before.Used || m.Scopes != before.Scopes {
			t.Errorf("%+v after the failure, %+v before", m, before)
		}
	})
}

func TestHeadStaysReadableAfterBackward(t *testing.T) {
	env := open(t)
	w, v := param(env, 1, 2), param(env, 3, 4)
	turn(env, 1, func(e *tensor.Env) {
		hidden := w.In(e).Scale(2)
		logits := hidden.Mul(v)
		loss := logits.Exp().Sum()
		loss.Backward()
		equal(t, "logits", logits, 6, 16)
		if loss.Item() == 0 {
			t.Error("the loss is readable")
		}
		fails(t, e, func() { hidden.Neg() }, "the result of affine", "released by Backward", "rules_test.go", "Keep")
	})
}

func TestDetachAndKeepLeaveBackwardsReach(t *testing.T) {
	env := open(t)
	w := param(env, 1, 2)
	var kept *tensor.Tensor
	turn(env, 1, func(e *tensor.Env) {
		a, b := w.In(e).Scale(2), w.In(e).Scale(3)
		detached := a.Detach()
		kept = b.Keep()
		a.Mul(b).Square().Sum().Mul(e.FullOf(dtype.F64, 2)).Backward()
		equal(t, "detached", detached, 2, 4)
		equal(t, "kept stays recorded for others", b, 3, 6)
	})
	equal(t, "kept beyond the batch", kept, 3, 6)
}

func TestSecondBackwardIsAnError(t *testing.T) {
	env := open(t)
	w := param(env, 1)
	y := w.In(env).Exp().Sum()
	y.Backward()
	fails(t, env, func() { y.Backward() }, "already walked", "BackwardRetain")
	z := w.In(env).Exp().Sum()
	z.BackwardRetain()
	z.Backward()
}

func TestVersionCheck(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	x := tensor.From(env, []float64{3}, 1)
	y := w.In(env).Mul(x).Sum()
	x.AddInPlace(tensor.From(env, []float64{1}, 1))
	fails(t, env, func() { y.Backward() }, "changed in place", "version 1, saved at 0")
}

func TestInPlaceContinuesButNeverStartsAGraph(t *testing.T) {
	env := open(t)
	w, ema := param(env, 2), param(env, 0)
	ema.LerpInPlace(w, 0.5)
	equal(t, "average", ema, 1)
	if ema.Recorded() {
		t.Error("writing in place started a graph")
	}
	sum := env.FullOf(dtype.F64, 0, 1)
	h := w.In(env).Scale(3)
	fails(t, env, func() { ema.AddInPlace(h) }, "into a leaf", "Detach")
	turn(env, 1, func(e *tensor.Env) {
		g := w.In(e).Scale(3)
		fails(t, e, func() { sum.AddInPlace(g) }, "outlives its graph", "Detach")
		acc := e.FullOf(dtype.F64, 1, 1)
		acc.AddInPlace(g)
		acc.Square().Sum().Backward()
		equal(t, "gradient through the write", w.Grad(), 2*7*3)
	})
	fails(t, env, func() { env.Ones(1).Expand(4).AddInPlace(env.Ones(4)) }, "repeats")
	fails(t, env, func() { env.RandInt(0, 3, 2).AddInPlace(env.Ones(2)) }, "f32", "i64", "Cast")
}

func TestWritesThroughViews(t *testing.T) {
	env := open(t)
	x := env.Zeros(2, 3)
	x.Transpose(0, 1).Slice(0, 1, 3).AddInPlace(env.Ones(2, 2))
	equal(t, "view", x, 0, 1, 1, 0, 1, 1)
	x.Select(0, 1).FillInPlace(7)
	equal(t, "row", x, 0, 1, 1, 7, 7, 7)
}

func TestSlot(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	var slot tensor.Slot
	var used int64
	for i := range 50 {
		turn(env, i, func(e *tensor.Env) {
			h := w.In(e)
			if old := slot.Get(e); old != nil {
				h = h.Mul(old)
			}
			h = h.Tanh()
			slot.Set(h)
			h.Square().Sum().Backward()
			w.DropGrad()
		})
		if i == 10 {
			used = env.Device().Memory().Used
		}
	}
	if m := env.Device().Memory(); m.Used != used {
		t.Errorf("%d bytes after 50 turns, %d after 10", m.Used, used)
	}
}

func TestRandomNumbersFollowThePath(t *testing.T) {
	draw := func(env *tensor.Env, path ...uint64) []float64 {
		e, s := env.Scope(path...)
		defer s.End()
		return e.Randn(5).Floats()
	}
	a, b := open(t), open(t)
	a.Randn(3) // draws of the root do not matter inside a batch
	if !slices.Equal(draw(a, 1, 2), draw(b, 1, 2)) {
		t.Error("the same path gives other numbers")
	}
	if slices.Equal(draw(a, 1, 2), draw(a, 2, 1)) || slices.Equal(draw(a, 1), draw(a.Seed(7), 1)) || slices.Equal(draw(a.Replica(0), 1), draw(a.Replica(1), 1)) {
		t.Error("another path gives the same numbers")
	}
	n := b.Draws()
	x := b.Rand(3).Floats()
	b.SetDraws(n)
	if !slices.Equal(x, b.Rand(3).Floats()) {
		t.Error("SetDraws does not resume")
	}
}

func TestHooks(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	h := w.In(env).Scale(3)
	var order []string
	h.OnGrad(func(g *tensor.Tensor) *tensor.Tensor { order = append(order, "value"); return g.Scale(10) })
	w.OnGrad(func(g *tensor.Tensor) *tensor.Tensor { order = append(order, "leaf"); return nil })
	w.AfterGrad(func(p *tensor.Tensor) { order = append(order, "after"); equal(t, "seen", p.Grad(), 30*5) })
	h.Scale(5).Sum().Backward()
	if strings.Join(order, " ") != "value leaf after" {
		t.Error("order", order)
	}
	fails(t, env, func() { env.Ones(1).OnGrad(nil) }, "carries no graph")
}

func TestAfterGradOncePerBackward(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	calls := 0
	w.AfterGrad(func(*tensor.Tensor) { calls++ })
	w.In(env).Mul(w).Add(w).Sum().Backward()
	equal(t, "three uses", w.Grad(), 5)
	if calls != 1 {
		t.Errorf("%d calls for one Backward", calls)
	}
}

func TestGradIntoBuffer(t *testing.T) {
	env := open(t)
	w := param(env, 2, 3)
	bucket := env.FullOf(dtype.F64, 0, 4)
	w.GradInto(bucket.Slice(0, 1, 3))
	for range 2 {
		w.In(env).Square().Sum().Backward()
	}
	equal(t, "bucket", bucket, 0, 8, 12, 0)
	equal(t, "gradient", w.Grad(), 8, 12)
	w.DropGrad()
	w.In(env).Sum().Backward()
	equal(t, "after a drop", bucket, 0, 1, 1, 0)
}

func TestAccumulation(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	for range 3 {
		w.In(env).Square().Sum().Backward()
	}
	equal(t, "sum of three", w.Grad(), 12)
}

func TestRecomputeIsExact(t *testing.T) {
	run := func(recompute bool) []float64 {
		env := open(t)
		w, v := param(env, 1, 2, 3), param(env, 0.5, -1, 2)
		f := func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(v).Tanh().Dropout(0.5).Exp() }
		turn(env, 1, func(e *tensor.Env) {
			x := w.In(e).Scale(0.3)
			y := x
			if recompute {
				y = tensor.Recompute(x, f)
			} else {
				y = f(x)
			}
			y.Square().Sum().Backward()
		})
		return append(w.Grad().Floats(), v.Grad().Floats()...)
	}
	if a, b := run(true), run(false); !slices.Equal(a, b) {
		t.Errorf("recomputed %v, plain %v", a, b)
	}
}

func TestSecondDerivatives(t *testing.T) {
	env := open(t)
	x := tensor.From(env, []float64{0.3, -0.7}, 2).RequireGrad()
	y := x.Exp().Mul(x.Sin()).Sum()
	g := tensor.GradGraph(y, x)[0]
	h := tensor.Grad(g.Sum(), x)[0]
	want := x.Exp().Mul(x.Cos()).Scale(2)
	equal(t, "d²(eˣ sin x) = 2 eˣ cos x", h, want.Floats()...)
}

func TestQueuesCrossSafely(t *testing.T) {
	env := open(t)
	side := env.NewQueue()
	x := env.Ones(100)
	y := x.In(env.On(side)).Scale(2)
	equal(t, "joined", y.Add(x).Mean(), 3)
}

func TestGoroutinesShareParameters(t *testing.T) {
	env := open(t)
	w := param(env, 1, 2)
	var wg sync.WaitGroup
	for r := range 4 {
		wg.Go(func() {
			e := env.Replica(r)
			for i := range 100 {
				turn(e, i, func(e *tensor.Env) { w.In(e).Square().Sum().Item() })
			}
		})
	}
	wg.Wait()
	if m := env.Device().Memory(); m.Scopes != 1 {
		t.Errorf("%d scopes are open", m.Scopes)
	}
}

func TestReplaceKeepsTheHandle(t *testing.T) {
	env := open(t)
	w := param(env, 1, 2)
	w.Replace(tensor.From(env, []float64{5, 6}, 2))
	equal(t, "new value", w, 5, 6)
	w.In(env).Sum().Backward()
	equal(t, "it still learns", w.Grad(), 1, 1)
	fails(t, env, func() { w.Replace(env.Ones(3)) }, "[3]", "[2]")
}

func TestLater(t *testing.T) {
	env := open(t)
	var p *tensor.Pending
	turn(env, 1, func(e *tensor.Env) { p = e.Full(4, 1).Later() })
	if v := p.Value(); v != 4 || !p.Ready() {
		t.Errorf("value %v", v)
	}
}

func TestUnreachableValuesAreReclaimed(t *testing.T) {
	env := open(t)
	for range 400 {
		env.Ones(64 << 10) // 256 KiB in the root scope, dropped at once
	}
	if m := env.Device().Memory(); m.Peak > 64<<20 || m.Collections == 0 {
		t.Errorf("peak %d bytes after %d collections", m.Peak, m.Collections)
	}
}

// TestSmallValuesAreReclaimed: what is kept of values that are smaller than their records does not put collections off.
func TestSmallValuesAreReclaimed(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	env := open(t)
	runtime.GC()
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	for range 130_000 {
		env.Ones(64) // 256 bytes in the root scope, dropped at once
	}
	bound := 16<<20 + 3*int64(heap.HeapAlloc)
	if testutil.Device() != "cpu" {
		bound *= 2 // blocks of 512 bytes there
	}
	if m := env.Device().Memory(); m.Peak > bound || m.Collections == 0 {
		t.Errorf("peak %d bytes after %d collections, bound %d", m.Peak, m.Collections, bound)
	}
}
