package tensor_test

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// TestWritesInPlaceHaveTheirGradients checks every write against finite differences: the rules of products and
// quotients need the value from before the write.
func TestWritesInPlaceHaveTheirGradients(t *testing.T) {
	env := open(t)
	for name, f := range map[string]func(acc, x *tensor.Tensor) *tensor.Tensor{
		"add":         func(acc, x *tensor.Tensor) *tensor.Tensor { return acc.AddInPlace(x) },
		"add a row":   func(acc, x *tensor.Tensor) *tensor.Tensor { return acc.AddInPlace(x.Sum(0)) },
		"sub":         func(acc, x *tensor.Tensor) *tensor.Tensor { return acc.SubInPlace(x) },
		"mul":         func(acc, x *tensor.Tensor) *tensor.Tensor { return acc.MulInPlace(x) },
		"div":         func(acc, x *tensor.Tensor) *tensor.Tensor { return acc.DivInPlace(x) },
		"lerp":        func(acc, x *tensor.Tensor) *tensor.Tensor { return acc.LerpInPlace(x, 0.3) },
		"axpy":        func(acc, x *tensor.Tensor) *tensor.Tensor { return acc.AddScaledInPlace(x, 2) },
		"copy":        func(acc, x *tensor.Tensor) *tensor.Tensor { return acc.CopyInPlace(x) },
		"clamp":       func(_, x *tensor.Tensor) *tensor.Tensor { return x.Scale(1).ClampInPlace(0.5, 1.5) },
		"scale":       func(_, x *tensor.Tensor) *tensor.Tensor { return x.Scale(1).ScaleInPlace(3) },
		"by itself":   func(_, x *tensor.Tensor) *tensor.Tensor { h := x.Scale(1); return h.MulInPlace(h) },
		"by its rows": func(_, x *tensor.Tensor) *tensor.Tensor { h := x.Scale(1); return h.MulInPlace(h.Transpose(0, 1)) },
		"one by one": func(acc, x *tensor.Tensor) *tensor.Tensor {
			return acc.MulInPlace(x).DivInPlace(x.Square()).MulInPlace(x)
		},
		"from a value": func(acc, x *tensor.Tensor) *tensor.Tensor { return acc.MulInPlace(x.Exp()).AddInPlace(x) },
	} {
		in := tensor.From(env, []float64{0.4, 0.9, 1.7, 0.6}, 2, 2)
		g := func(in []*tensor.Tensor) *tensor.Tensor {
			return f(tensor.From(env, []float64{3, -2, 5, 0.5}, 2, 2), in[0].Scale(1)).Square()
		}
		if err := tensor.GradCheck(g, []*tensor.Tensor{in}, tensor.GradCheckConfig{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWriteByAConvertedConstant(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	turn(env, 1, func(e *tensor.Env) {
		w.In(e).Scale(1).MulInPlace(e.Full(3, 1)).Sum().Backward()
		equal(t, "the converted operand lives as long as the graph", w.Grad(), 3)
	})
}

func TestOperandsThatOverlapTheReceiver(t *testing.T) {
	env := open(t)
	x := tensor.From(env, []float64{1, 2, 3, 4}, 2, 2)
	equal(t, "plus its transpose", x.AddInPlace(x.Transpose(0, 1)), 2, 5, 5, 8)
	y := tensor.From(env, []float64{1, 2, 3, 4}, 4)
	y.Slice(0, 1, 4).AddInPlace(y.Slice(0, 0, 3))
	equal(t, "shifted", y, 1, 3, 5, 7)
	y.Slice(0, 2, 4).CopyInPlace(y.Slice(0, 0, 2))
	equal(t, "halves", y, 1, 3, 1, 3)
	z := tensor.From(env, []float64{1, 2, 3, 4}, 2, 2)
	equal(t, "minus its first row", z.SubInPlace(z.Select(0, 0)), 0, 0, 2, 2)
	equal(t, "doubled", z.AddInPlace(z), 0, 0, 4, 4)
}

// TestLeafOperandsOfWrites: what outlives graphs takes a leaf's values; other values take its graph, as in PyTorch.
func TestLeafOperandsOfWrites(t *testing.T) {
	env := open(t)
	ema := tensor.NewParam(env.Ones(2))
	ema.LerpInPlace(tensor.NewParam(env.FullOf(dtype.BF16, 3, 2)), 0.5)
	equal(t, "an average of another dtype", ema, 2, 2)
	if ema.Recorded() {
		t.Error("a parameter written by a parameter carries a graph")
	}
	bias := tensor.NewParam(env.FullOf(dtype.BF16, 3, 2))
	turn(env, 1, func(e *tensor.Env) {
		y := e.Ones(2, 2)
		y.AddInPlace(bias).MulInPlace(y).Sum().Backward()
		equal(t, "a broadcast bias of another dtype", bias.Grad(), 16, 16)
		bias.DropGrad()
		e.Zeros(2).CopyInPlace(bias).Square().Sum().Backward()
		equal(t, "a copied parameter", bias.Grad(), 6, 6)
		if y := e.NoGrad().Ones(2); y.AddInPlace(bias).Recorded() {
			t.Error("a leaf starts a graph under no-grad")
		}
	})
	outer := env.Zeros(2)
	turn(env, 2, func(e *tensor.Env) {
		fails(t, e, func() { outer.In(e).AddInPlace(bias) }, "outlives its graph", "Detach")
	})
}

// TestWritesInFrames: what may be written, and what not, is the same in a chain as without: its graph is that of the scope
// around it.
func TestWritesInFrames(t *testing.T) {
	env := open(t)
	w := param(env, 2, 3)
	for name, frame := range map[string]func(e *tensor.Env, x *tensor.Tensor, f step) *tensor.Tensor{
		"none":  func(_ *tensor.Env, x *tensor.Tensor, f step) *tensor.Tensor { return f(x) },
		"chain": func(_ *tensor.Env, x *tensor.Tensor, f step) *tensor.Tensor { return tensor.Chain(x, f, f) },
		"tidy": func(e *tensor.Env, x *tensor.Tensor, f step) *tensor.Tensor {
			return e.Tidy(func(e *tensor.Env) *tensor.Tensor { return f(x.In(e)) })
		},
	} {
		outer := env.Zeros(2)
		turn(env, 2, func(e *tensor.Env) {
			frame(e, e.Zeros(2), func(x *tensor.Tensor) *tensor.Tensor { return x.AddInPlace(w) }).Square().Sum().Backward()
			times := map[string]float64{"none": 1, "chain": 2, "tidy": 1}[name]
			equal(t, name, w.Grad(), 2*times*times*2, 2*times*times*3)
			w.DropGrad()
			fails(t, e, func() {
				frame(e, outer.In(e), func(x *tensor.Tensor) *tensor.Tensor { return x.AddInPlace(w) })
			}, "outlives its graph", "Detach")
			fails(t, e, func() {
				frame(e, e.Zeros(2), func(x *tensor.Tensor) *tensor.Tensor {
					e.Do(func(e *tensor.Env) *tensor.Tensor { x.In(e).AddInPlace(w); return nil })
					return x
				})
			}, "outlives its graph", "Detach")
		})
	}
}

// TestReturnedAfterDetachedWrite: Do does not ask for the graph of what it returns, but who differentiates does.
func TestReturnedAfterDetachedWrite(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	turn(env, 1, func(e *tensor.Env) {
		h := e.Do(func(e *tensor.Env) *tensor.Tensor {
			h := w.In(e).Scale(1)
			h.Detach().ScaleInPlace(3)
			return h
		})
		equal(t, "the value", h, 6)
		fails(t, e, func() { h.Sum() }, "a detached handle", "inplace_test.go", "Clone")
	})
}

func TestWriteThroughAnotherHandle(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	h := w.In(env).Scale(1)
	row := h.Unsqueeze(0)
	h.ScaleInPlace(3)
	row.MulInPlace(row) // a view from before the write
	h.AddInPlace(row.Select(0, 0)).Sum().Backward()
	equal(t, "both handles have both writes", w.Grad(), 2*3*3*2*2)
	w.DropGrad()

	h = w.In(env).Scale(1)
	h.Detach().ScaleInPlace(3)
	fails(t, env, func() { h.Sum() }, "a detached handle", "inplace_test.go", "Clone")
	fails(t, env, func() { h.AddInPlace(env.FullOf(dtype.F64, 1, 1)) }, "a detached handle")
}

// TestWritesIntoViews checks against finite differences what PyTorch's CopySlices does: the whole value and every view
// follow a write into a part, recorded or not.
func TestWritesIntoViews(t *testing.T) {
	env := open(t)
	type T = tensor.Tensor
	for name, f := range map[string]func(x, y *T) *T{
		"a part of a constant": func(x, _ *T) *T {
			buf := x.Env().FullOf(dtype.F64, 0, 4, 3)
			buf.Slice(0, 1, 3).CopyInPlace(x)
			return buf.Square()
		},
		"parts one by one": func(x, y *T) *T {
			buf := x.Env().FullOf(dtype.F64, 2, 2, 3)
			for i := range 2 {
				buf.Select(0, i).MulInPlace(x.Select(0, 1-i)).AddInPlace(y.Select(0, i))
			}
			return buf.Square()
		},
		"a part of a value": func(x, y *T) *T {
			h := x.Scale(1)
			h.Select(1, 1).MulInPlace(y.Select(1, 0))
			return h.Square()
		},
		"by a constant": func(x, _ *T) *T {
			h := x.Scale(1)
			h.Select(0, 1).FillInPlace(5)
			h.Slice(1, 0, 2).AddInPlace(x.Env().FullOf(dtype.F64, 1))
			return h.Square()
		},
		"a view from before": func(x, y *T) *T {
			h := x.Scale(1)
			v, far := h.Transpose(0, 1).Slice(0, 1, 3), h.Select(0, 0).Expand(4, 3)
			h.Select(0, 0).MulInPlace(y.Select(0, 1))
			return v.Square().Sum().Add(far.Mul(h.Select(0, 0)).Sum())
		},
		"the whole through a view": func(x, y *T) *T {
			h := x.Scale(1)
			h.Transpose(0, 1).MulInPlace(y.Transpose(0, 1).Contiguous())
			return h.Mul(x)
		},
		"strides": func(x, y *T) *T {
			h := tensor.Cat(1, x, x)
			h.SliceStep(1, 1, 6, 2).DivInPlace(y)
			return h.Square()
		},
		"by itself": func(x, _ *T) *T {
			h := x.Scale(1)
			h.Select(0, 0).MulInPlace(h.Select(0, 1))
			return h.Square()
		},
		"used before and after": func(x, y *T) *T {
			h := x.Scale(1)
			before := h.Exp().Sum()
			h.Slice(1, 0, 1).AddInPlace(y.Slice(1, 0, 1))
			return before.Mul(h.Sum())
		},
		"overwritten": func(x, y *T) *T {
			h := x.Scale(1)
			v := h.Select(0, 0)
			h.CopyInPlace(y.Env().FullOf(dtype.F64, 3))
			return v.Sum().Add(y.Square().Sum().Add(x.Sum()))
		},
		"in a block": func(x, y *T) *T {
			h := x.Scale(1)
			return x.Env().Do(func(e *tensor.Env) *T {
				v := h.In(e).Select(0, 1)
				h.Select(0, 1).MulInPlace(y.Select(0, 0))
				return v
			}).Square()
		},
		"recomputed": func(x, y *T) *T {
			return tensor.Recompute(x, func(x *T) *T {
				h := x.Sin()
				h.Select(0, 1).MulInPlace(y.Select(0, 0))
				return h.Exp()
			})
		},
	} {
		in := []*T{normal(env, t, 2, 3), normal(env, t, 2, 3)}
		g := func(in []*T) *T { return f(in[0], in[1]) }
		if err := tensor.GradCheck(g, in, tensor.GradCheckConfig{Second: name != "recomputed", RTol: 1e-4, ATol: 1e-6}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWritesThatStayErrors: into views of leaves, into parts of detached values, and of what a saved value was.
func TestWritesThatStayErrors(t *testing.T) {
	env := open(t)
	w := param(env, 1, 2)
	fails(t, env, func() { w.In(env).Slice(0, 0, 1).FillInPlace(0) }, "a view of a parameter or leaf", "NoGrad")
	w.In(env.NoGrad()).Slice(0, 0, 1).FillInPlace(3)
	equal(t, "under no-grad", w, 3, 2)
	turn(env, 1, func(e *tensor.Env) {
		h := w.In(e).Scale(2)
		fails(t, e, func() { w.In(e.NoGrad()).Slice(0, 0, 1).CopyInPlace(h.Slice(0, 0, 1)) }, "a part of a detached value", "Clone")
		fails(t, e, func() { e.FullOf(dtype.F64, 0, 2).Detach().Slice(0, 0, 1).CopyInPlace(h.Slice(0, 0, 1)) }, "a part of a detached value", "Clone")
		y := h.Square().Sum()
		h.Slice(0, 0, 1).FillInPlace(1)
		fails(t, e, func() { y.Backward() }, "changed in place after it was used", "version 1, saved at 0")
	})
}

// TestHooksFollowWrites: a hook on a view sees the gradient of the value that it has since a write.
func TestHooksFollowWrites(t *testing.T) {
	env := open(t)
	w := param(env, 1, 2)
	turn(env, 1, func(e *tensor.Env) {
		h := w.In(e).Scale(1)
		h.Slice(0, 0, 1).ScaleInPlace(5)
		var seen []float64
		h.OnGrad(func(g *tensor.Tensor) *tensor.Tensor { seen = g.Floats(); return nil })
		h.Square().Sum().Backward()
		equal(t, "the parameter", w.Grad(), 2*25, 2*2)
		if len(seen) != 2 || seen[0] != 10 || seen[1] != 4 {
			t.Errorf("the hook saw %v", seen)
		}
	})
}

func TestWritesLeaveNothingBehind(t *testing.T) {
	env := open(t)
	acc := tensor.NewBuffer(env.Ones(3, 3))
	wide := env.Ones(3, 3).Cast(dtype.F64)
	used := env.Device().Memory().Used
	acc.FillInPlace(2)
	acc.Transpose(0, 1).AddInPlace(acc)
	acc.SubInPlace(wide)
	if n := env.Device().Memory().Used; n != used {
		t.Errorf("%d bytes more in use", n-used)
	}
	equal(t, "value", acc.Sum(), 27)
}

func TestIntegersTakeNoFractions(t *testing.T) {
	env := open(t)
	n := env.Arange(3)
	for _, f := range []func(){
		func() { n.ScaleInPlace(0.5) },
		func() { n.AddScaledInPlace(n, 0.5) },
		func() { n.ClampInPlace(0.5, 2) },
	} {
		fails(t, env, f, "0.5", "i64", "Cast")
	}
	fails(t, env, func() { n.DivInPlace(n) }, "i64", "Div")
	equal(t, "unchanged", n, 0, 1, 2)
	equal(t, "axpy", n.AddScaled(n, 0.5), 0, 1.5, 3)
	equal(t, "clamp", n.Clamp(0.5, 1.5), 0.5, 1, 1.5)
	below, above := n.Clamp(math.Inf(-1), 1), n.Clamp(1, math.Inf(1))
	equal(t, "below", below, 0, 1, 1)
	equal(t, "above", above, 1, 1, 2)
	if below.DType() != dtype.I64 || above.DType() != dtype.I64 {
		t.Errorf("one bound makes %s and %s of i64", below.DType(), above.DType())
	}
}

// TestBoundsBeyondTheDType: a bound that an integer type does not reach bounds nothing, alone or with another.
func TestBoundsBeyondTheDType(t *testing.T) {
	env, inf := open(t), math.Inf(1)
	bytes := tensor.From(env, []uint8{0, 154, 255}, 3)
	words := tensor.From(env, []int32{math.MinInt32, -1, math.MaxInt32}, 3)
	longs := tensor.From(env, []int64{math.MinInt64, -1, math.MaxInt64}, 3)
	for _, far := range []float64{1e10, 1e300, inf} {
		equal(t, "u8", bytes.Clamp(-1, far), 0, 154, 255)
		equal(t, "u8 from -Inf", bytes.Clamp(-far, 300), 0, 154, 255)
		equal(t, "u8 above", bytes.Clamp(7, far), 7, 154, 255)
		equal(t, "i32", words.Clamp(-far, far), math.MinInt32, -1, math.MaxInt32)
		equal(t, "i32 above", words.Clamp(0, far), 0, 0, math.MaxInt32)
	}
	equal(t, "in place", bytes.Clone().ClampInPlace(7, inf), 7, 154, 255)
	for _, far := range []float64{1e300, inf} {
		got := []*tensor.Tensor{longs.Clamp(-far, far), longs.Clamp(-far, 0), longs.Clamp(0, far)}
		for i, want := range [][]int64{{math.MinInt64, -1, math.MaxInt64}, {math.MinInt64, -1, 0}, {0, 0, math.MaxInt64}} {
			if got[i].Ne(tensor.From(env, want, 3)).Any().Item() != 0 {
				t.Errorf("i64 bounded by %g: %v, want %d", far, got[i], want)
			}
		}
	}
}
