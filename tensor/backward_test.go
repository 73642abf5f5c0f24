package tensor_test

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// TestImplicitConversionsRecordWhereTheResultDoes checks that a weight that is broadcast, promoted or cast by the policy
// takes the data's modes first: none of these may start a graph, or lose evaluation, on the way.
func TestImplicitConversionsRecordWhereTheResultDoes(t *testing.T) {
	env := open(t)
	vector, matrix := tensor.NewParam(env.Ones(2)), tensor.NewParam(env.Ones(2, 2))
	batch := func(e *tensor.Env) *tensor.Tensor { return e.Ones(2, 2) }
	for name, f := range map[string]func(e *tensor.Env) *tensor.Tensor{
		"broadcast":    func(e *tensor.Env) *tensor.Tensor { return batch(e).Add(vector) },
		"left":         func(e *tensor.Env) *tensor.Tensor { return vector.Mul(batch(e)) },
		"promoted":     func(e *tensor.Env) *tensor.Tensor { return batch(e).Cast(dtype.F64).Mul(matrix) },
		"policy":       func(e *tensor.Env) *tensor.Tensor { return batch(e.Autocast(dtype.BF16)).MatMul(matrix) },
		"where":        func(e *tensor.Env) *tensor.Tensor { return tensor.Where(batch(e), batch(e), vector) },
		"vector":       func(e *tensor.Env) *tensor.Tensor { return batch(e).MatMul(vector) },
		"layer norm":   func(e *tensor.Env) *tensor.Tensor { return batch(e).LayerNorm(matrix, matrix, 1e-5) },
		"rms norm":     func(e *tensor.Env) *tensor.Tensor { return batch(e).RMSNorm(matrix, 1e-5) },
		"joined":       func(e *tensor.Env) *tensor.Tensor { return tensor.Cat(0, batch(e).Cast(dtype.F64), matrix) },
		"index select": func(e *tensor.Env) *tensor.Tensor { return matrix.IndexSelect(1, e.Arange(2)) },
		"mask": func(e *tensor.Env) *tensor.Tensor {
			x := e.Ones(1, 1, 2, 2)
			return tensor.Attention(x, x, x, tensor.Mask{Keys: matrix})
		},
	} {
		turn(env, 1, func(e *tensor.Env) {
			if y := f(e.NoGrad().Eval()); y.Recorded() || y.Env().Training() || y.Env().Recording() {
				t.Errorf("%s: recorded %t, training %t", name, y.Recorded(), y.Env().Training())
			}
			if y := f(e); !y.Recorded() {
				t.Errorf("%s: not recorded where the data records", name)
			}
		})
	}
}

func TestLeavesDoNotShareAGradient(t *testing.T) {
	env := open(t)
	w, v := param(env, 2), param(env, 3)
	for _, p := range []*tensor.Tensor{w, v} {
		p.AfterGrad(func(p *tensor.Tensor) { p.Grad().ScaleInPlace(0.5) })
	}
	w.In(env).Add(v).Sum().Backward()
	equal(t, "first", w.Grad(), 0.5)
	equal(t, "second", v.Grad(), 0.5)
}

func TestHooksDoNotWrite(t *testing.T) {
	env := open(t)
	h := param(env, 2).In(env).Scale(1)
	h.OnGrad(func(g *tensor.Tensor) *tensor.Tensor { return g.ScaleInPlace(10) })
	fails(t, env, func() { h.Sum().Backward() }, "OnGrad", "in place", "Scale")
}

func TestGradientBufferOfAnEndedBatch(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	e, s := env.Scope(1)
	w.GradInto(e.FullOf(dtype.F64, 0, 1))
	s.End()
	fails(t, env, func() { w.In(env).Square().Sum().Backward() }, "released by the end of its batch")
}

func TestGradOfAnUnusedLeafIsZero(t *testing.T) {
	env := open(t)
	w, v := param(env, 2), param(env, 3, 4)
	equal(t, "unused", tensor.Grad(w.In(env).Square().Sum(), v)[0], 0, 0)
}

// TestRestrictedBackwardLeavesTheRest walks only to v; what leads to w keeps its graph and its scope.
func TestRestrictedBackwardLeavesTheRest(t *testing.T) {
	env := open(t)
	w, v := param(env, 2), param(env, 3)
	turn(env, 1, func(e *tensor.Env) {
		h := w.In(e).Scale(2)
		e.Do(func(e *tensor.Env) *tensor.Tensor {
			h.In(e).Square().Sum().Add(v.In(e).Sum()).Backward(seq("v", v))
			return nil
		})
		equal(t, "a value of the enclosing batch", h, 4)
		h.Square().Sum().Backward()
		equal(t, "its gradient", w.Grad(), 16)
	})
}

func TestFuncGradientsHaveTheirOperandsShape(t *testing.T) {
	env := open(t)
	w := param(env, 2, 3)
	f := tensor.Func{
		Forward:  func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{in[0].Sum()} },
		Backward: func(c *tensor.Call, g []*tensor.Tensor) []*tensor.Tensor { return g },
	}
	fails(t, env, func() { f.Apply(w.In(env))[0].Backward() }, "f64[]", "operand 0, f64[2]")
}

// TestSlotSetInABlock carries a value out of a block by a Slot while the block's graph, which needs it, lives on.
func TestSlotSetInABlock(t *testing.T) {
	env := open(t)
	w := param(env, 0)
	turn(env, 1, func(e *tensor.Env) {
		var slot tensor.Slot
		y := e.Do(func(e *tensor.Env) *tensor.Tensor {
			h := w.In(e).Exp()
			slot.Set(h)
			return h.Scale(3)
		})
		slot.Set(e.FullOf(dtype.F64, 1, 1))
		y.Sum().Backward()
		equal(t, "gradient", w.Grad(), 3)
	})
}

func TestScopeEndsOnce(t *testing.T) {
	env := open(t)
	e, s := env.Scope(1)
	release := s.Hold()
	x := e.Ones(2)
	s.End()
	s.End()
	equal(t, "held", x, 1, 1)
	release()
	env.Ones(2)
	if m := env.Device().Memory(); m.Scopes != 1 {
		t.Errorf("%d scopes are open", m.Scopes)
	}
}

// TestOwnRandomPathsJoinCommutatively mixes a batch with a constant of a seeded env: the batch's path counts, in either
// order.
func TestOwnRandomPathsJoinCommutatively(t *testing.T) {
	env := open(t)
	c := env.Seed(7).Ones(64)
	draw := func(f func(x *tensor.Tensor) *tensor.Tensor) float64 {
		e, s := env.Scope(1)
		defer s.End()
		return f(e.Ones(64)).Dropout(0.5).Mul(e.Arange(64)).Sum().Item()
	}
	left, right := func(x *tensor.Tensor) *tensor.Tensor { return x.Add(c) }, func(x *tensor.Tensor) *tensor.Tensor { return c.Add(x) }
	if a, b, again := draw(left), draw(right), draw(left); a != b || a != again {
		t.Errorf("%v, %v and %v", a, b, again)
	}
}

// TestErrorsNameTheUsersLine fails below many frames of the library.
func TestErrorsNameTheUsersLine(t *testing.T) {
	env := open(t)
	e, s := env.Scope(1)
	s.End()
	fails(t, env, func() { e.Ones(2) }, "backward_test.go")
}
