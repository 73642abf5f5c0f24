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

func TestLeafOperandsOfWritesAreConstants(t *testing.T) {
	env := open(t)
	ema := tensor.NewParam(env.Ones(2))
	ema.LerpInPlace(tensor.NewParam(env.FullOf(dtype.BF16, 3, 2)), 0.5)
	equal(t, "an average of another dtype", ema, 2, 2)
	x := env.Ones(2, 2)
	if x.AddInPlace(tensor.NewParam(env.Ones(2))); x.Recorded() {
		t.Error("a broadcast parameter started a graph")
	}
}

func TestWriteThroughAnotherHandle(t *testing.T) {
	env := open(t)
	w := param(env, 2)
	h := w.In(env).Scale(1)
	row := h.Unsqueeze(0)
	h.ScaleInPlace(3)
	fails(t, env, func() { row.Sum() }, "another handle or view", "inplace_test.go", "Clone")
	fails(t, env, func() { row.AddInPlace(env.FullOf(dtype.F64, 1, 1, 1)) }, "another handle or view")
	h.Sum().Backward()
	equal(t, "the handle that wrote", w.Grad(), 3)
	turn(env, 1, func(e *tensor.Env) {
		buf := e.FullOf(dtype.F64, 0, 4)
		fails(t, e, func() { buf.Slice(0, 0, 1).CopyInPlace(w.In(e).Scale(2)) }, "a part of a value that carries no graph", "Cat")
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
