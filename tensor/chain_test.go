package tensor_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

type step = func(*tensor.Tensor) *tensor.Tensor

// inTurn is a chain's steps without a chain.
func inTurn(x *tensor.Tensor, steps ...step) *tensor.Tensor {
	for _, s := range steps {
		x = s(x)
	}
	return x
}

// randomSteps are n steps on [5, 5], which compose nests by.
func randomSteps(r *rand.Rand, w *tensor.Tensor, n, depth int, compose func(*tensor.Tensor, ...step) *tensor.Tensor) []step {
	steps := make([]step, n)
	for i := range steps {
		var inner []step
		if depth > 0 {
			inner = randomSteps(r, w, r.IntN(4), depth-1, compose)
		}
		steps[i] = []step{
			func(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(w).Tanh() },
			func(x *tensor.Tensor) *tensor.Tensor { return x.Linear(w, nil).Sigmoid().Sub(x) },
			func(x *tensor.Tensor) *tensor.Tensor { return x.Dropout(0.3) },
			func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 1) },
			func(x *tensor.Tensor) *tensor.Tensor { return x },
			func(x *tensor.Tensor) *tensor.Tensor { return x.Scale(0.5).Square().AddInPlace(x) },
			func(x *tensor.Tensor) *tensor.Tensor {
				return x.Env().Do(func(e *tensor.Env) *tensor.Tensor { return x.In(e).Mul(e.Rand(5, 5)).Tanh() })
			},
			func(x *tensor.Tensor) *tensor.Tensor { return x.Add(compose(x, inner...)).Scale(0.7) },
			func(x *tensor.Tensor) *tensor.Tensor { return compose(x, inner...) },
			func(x *tensor.Tensor) *tensor.Tensor {
				return tensor.Recompute(x, func(x *tensor.Tensor) *tensor.Tensor { return compose(x, inner...).Tanh() })
			},
			func(x *tensor.Tensor) *tensor.Tensor { return tensor.Surface(x).Mul(x) },
		}[r.IntN(11)]
	}
	return steps
}

// TestChainIsItsSteps runs random steps in chains, and without: values, gradients, second derivatives and random numbers
// are the same, and nothing is left of either.
func TestChainIsItsSteps(t *testing.T) {
	rnd := testutil.Rand(t)
	for range 60 {
		seed := rnd.Uint64()
		var all [2][][]float64
		for i, compose := range []func(*tensor.Tensor, ...step) *tensor.Tensor{inTurn, tensor.Chain} {
			r := rand.New(rand.NewPCG(seed, 1))
			env := open(t)
			normal := func() *tensor.Tensor { // which leaves nothing to collect
				return env.Tidy(func(e *tensor.Env) *tensor.Tensor { return tensor.NewParam(e.Randn(5, 5)) })
			}
			w, x := normal(), normal()
			before := env.Device().Memory()
			turn(env, 0, func(e *tensor.Env) {
				y := compose(x.In(e), randomSteps(r, w, 1+r.IntN(6), 2, compose)...)
				all[i] = append(all[i], y.Floats())
				switch r.IntN(4) {
				case 0:
					all[i] = append(all[i], compose(x.In(e.NoGrad().Eval()), randomSteps(r, w, 4, 1, compose)...).Floats())
				case 1:
					if y.Recorded() {
						y.Mean().Backward()
					}
				case 2:
					if y.Recorded() {
						y.Square().Mean().BackwardRetain()
						y.Mean().Backward()
					}
				case 3:
					for _, g := range tensor.Grad(y.Square().Mean().Add(x.In(e).Sum()), x, w) {
						all[i] = append(all[i], g.Floats())
					}
				}
				all[i] = append(all[i], e.Rand(3).Floats(), x.Floats())
			})
			for _, p := range []*tensor.Tensor{w, x} {
				if g := p.Grad(); g != nil {
					all[i] = append(all[i], g.Floats())
				}
				p.DropGrad()
			}
			if m := env.Device().Memory(); m.Used != before.Used || m.Scopes != before.Scopes || m.ScopeOnly != before.ScopeOnly {
				t.Fatalf("seed %d: %+v after, %+v before", seed, m, before)
			}
		}
		if !slices.EqualFunc(all[0], all[1], slices.Equal) {
			t.Fatalf("seed %d: %v in a chain, %v without", seed, all[1], all[0])
		}
	}
}

// TestChainHoldsTwo counts what lives at most: a step's operand and its result.
func TestChainHoldsTwo(t *testing.T) {
	env := open(t)
	dev := env.Device()
	steps := slices.Repeat([]step{(*tensor.Tensor).Tanh, (*tensor.Tensor).Square, func(x *tensor.Tensor) *tensor.Tensor { return x.Exp().Neg() }}, 8)
	turn(env.NoGrad(), 0, func(e *tensor.Env) {
		x := e.Ones(100)
		dev.ResetPeak()
		tensor.Chain(x, steps...)
		if m := dev.Memory(); m.ValuesPeak != 4*400 { // x; and of the third step three
			t.Errorf("a peak of %d bytes, %d are in use", m.ValuesPeak, m.Used)
		}
		if m := dev.Memory(); m.Used != 2*400 || m.Collections != 0 {
			t.Errorf("in the end %d bytes are in use, after %d collections", m.Used, m.Collections)
		}
	})
}

// TestChainKeepsWhatTheGraphNeeds: in training a chain holds what the rules saved, and no more.
func TestChainKeepsWhatTheGraphNeeds(t *testing.T) {
	env := open(t)
	w := tensor.NewParam(env.Ones(100))
	env.Device().Collect()
	used := func() int64 { return env.Device().Memory().Used }
	turn(env, 0, func(e *tensor.Env) {
		before := used()
		y := tensor.Chain(w.In(e), func(x *tensor.Tensor) *tensor.Tensor { return x.Neg() }, // saves nothing
			func(x *tensor.Tensor) *tensor.Tensor { return x.Square() }, // saves its operand
			func(x *tensor.Tensor) *tensor.Tensor { return x.Neg() },
			func(x *tensor.Tensor) *tensor.Tensor { return x.Sum() })
		if n := used() - before; n != 400+4 {
			t.Errorf("%d bytes for one saved value and a sum", n)
		}
		y.Backward()
		if n := used() - before; n != 400+4 {
			t.Errorf("%d bytes for a gradient and a sum", n)
		}
	})
	equal(t, "gradient", w.Grad().Slice(0, 0, 1), -2)
	w.DropGrad()
}

// TestChainEndsWithAnError leaves no scope behind, and what was made in it says what released it.
func TestChainEndsWithAnError(t *testing.T) {
	env := open(t)
	scopes := env.Device().Memory().Scopes
	var kept *tensor.Tensor
	fails(t, env, func() {
		tensor.Chain(env.Ones(2), (*tensor.Tensor).Exp, func(x *tensor.Tensor) *tensor.Tensor {
			kept = x.Neg()
			return x.MatMul(env.Ones(3, 3))
		})
	}, "MatMul")
	if n := env.Device().Memory().Scopes; n != scopes {
		t.Errorf("%d scopes are open, %d were", n, scopes)
	}
	fails(t, env, func() { kept.Exp() }, "released by the next step of its chain", "from outside the chain")
	fails(t, env, func() {
		tensor.Chain(env.Ones(2), func(x *tensor.Tensor) *tensor.Tensor { kept = x.Exp(); return kept.Neg() }, (*tensor.Tensor).Exp,
			func(x *tensor.Tensor) *tensor.Tensor { return x.Add(kept) })
	}, "the result of exp at chain_test.go", "next step of its chain")
}

// TestSurface: what a chain gives to strange code lives with the scope around all chains, and so does what that makes.
func TestSurface(t *testing.T) {
	env := open(t)
	var kept []*tensor.Tensor
	stranger := func(x *tensor.Tensor) *tensor.Tensor {
		x = tensor.Surface(x)
		y := x.Neg()
		kept = append(kept, x, y)
		return y.Exp()
	}
	turn(env, 0, func(e *tensor.Env) {
		y := e.Do(func(e *tensor.Env) *tensor.Tensor {
			y := tensor.Chain(e.Ones(1), (*tensor.Tensor).Exp, func(x *tensor.Tensor) *tensor.Tensor {
				return tensor.Chain(x, (*tensor.Tensor).Log, stranger, (*tensor.Tensor).Log)
			}, (*tensor.Tensor).Neg)
			equal(t, "given", kept[0], 1)
			equal(t, "made", kept[1], -1)
			return y
		})
		equal(t, "result", y, 1)
		fails(t, env, func() { kept[0].Exp() }, "the end of its Do or Try block")
		if x := e.Ones(2); tensor.Surface(x) != x {
			t.Error("out of chains it is another handle")
		}
	})
}

// TestChainJoins: a chain that begins with a value of an outer scope and takes one of an inner scope ends with that.
func TestChainJoins(t *testing.T) {
	env := open(t)
	outer := env.Ones(3)
	var y *tensor.Tensor
	turn(env, 0, func(e *tensor.Env) {
		inner := e.Ones(3)
		y = tensor.Chain(tensor.Join(outer, inner), func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(inner) }, (*tensor.Tensor).Exp)
	})
	fails(t, env, func() { y.Exp() }, "released by the end of its batch")
}
