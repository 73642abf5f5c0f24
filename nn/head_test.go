package nn

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// headCase is a loss of hidden values [lead..., width] against a weight [classes, width].
type headCase struct {
	lead           []int
	width, classes int
	opts           []CrossEntropyOption
}

func headCases() (all []headCase) {
	for _, opts := range [][]CrossEntropyOption{nil, {Summed()}, {Unreduced()}, {Smoothing(0.1), Ignore(2)}, {Summed(), Smoothing(0.3)}, {Unreduced(), Ignore(0)}} {
		all = append(all, headCase{[]int{2, 3}, 5, 7, opts}, headCase{[]int{1}, 1, 3, opts}, headCase{[]int{70}, 8, 65, opts})
	}
	return append(all, headCase{[]int{1100}, 2, 300, nil}) // several chunks on the CPU and on a GPU
}

// TestLinearCrossEntropy compares with the loss of logits that are kept, in float32 and under Autocast, with gradients of
// either operand, of both and of none.
func TestLinearCrossEntropy(t *testing.T) {
	r := testutil.Rand(t)
	for _, device := range []string{"cpu", "sim:0"} {
		root, err := tensor.Fresh(device)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range headCases() {
			shape := append(slices.Clone(c.lead), c.width)
			x, w := numbers(root, r.NormFloat64, shape...), numbers(root, r.NormFloat64, c.classes, c.width)
			labels := numbers(root, func() float64 { return float64(r.IntN(c.classes)) }, c.lead...).Cast(dtype.I64)
			for _, policy := range []dtype.DType{dtype.F32, dtype.BF16, dtype.F16} {
				env := root.Autocast(policy)
				for wanted := range 4 {
					if c.classes == 300 && wanted != 3 {
						continue // one form is enough of many rows
					}
					t.Run(fmt.Sprint(device, c.lead, len(c.opts), policy, wanted), func(t *testing.T) { c.check(t, env, x, w, labels, wanted) })
				}
			}
		}
	}
}

func numbers(env *tensor.Env, draw func() float64, shape ...int) *tensor.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(draw())
	}
	return tensor.From(env, v, shape...)
}

// check compares losses and gradients where bits 0 and 1 of wanted ask for those of x and w.
func (c *headCase) check(t *testing.T, env *tensor.Env, x, w, labels *tensor.Tensor, wanted int) {
	run := func(loss func(x, w *tensor.Tensor) *tensor.Tensor) (*tensor.Tensor, []*tensor.Tensor) {
		in := []*tensor.Tensor{x.In(env), w.In(env)}
		var asked []*tensor.Tensor
		for i := range in {
			if wanted>>i&1 == 1 {
				in[i] = in[i].RequireGrad()
				asked = append(asked, in[i])
			}
		}
		l := loss(in[0], in[1])
		if l.Recorded() != (wanted > 0) {
			t.Errorf("recorded %t", l.Recorded())
		}
		if wanted == 0 {
			return l, nil
		}
		weights := make([]float32, l.Size())
		for i := range weights {
			weights[i] = 1 + float32(i%3)
		}
		return l, tensor.Grad(l.Mul(tensor.From(env, weights, l.Shape()...)).Sum(), asked...)
	}
	got, grads := run(func(x, w *tensor.Tensor) *tensor.Tensor { return LinearCrossEntropy(x, w, labels, c.opts...) })
	want, wants := run(func(x, w *tensor.Tensor) *tensor.Tensor { return CrossEntropy(x.Linear(w, nil), labels, c.opts...) })
	if got.DType() != dtype.F32 || !slices.Equal(got.Shape(), want.Shape()) {
		t.Fatalf("%s%v, want %s%v", got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	tol := 2e-5 // the dtype of logits says how far apart both may be
	if p := x.In(env).Linear(w.In(env), nil).DType(); p != dtype.F32 {
		tol = 4 * p.Epsilon()
	}
	near(t, "loss", got, want, tol, 1e-3)
	// Terms of a gradient, which may cancel, are as large as the operands.
	term := math.Max(largest(x), largest(w)) / float64(x.Dim(0))
	for i := range grads {
		near(t, fmt.Sprintf("gradient %d of those asked for", i), grads[i], wants[i], tol, max(1e-3, term))
	}
}

// largest is the largest absolute value, 0 of none.
func largest(x *tensor.Tensor) (m float64) {
	for _, v := range x.Floats() {
		m = max(m, math.Abs(v))
	}
	return m
}

// near compares relative to the largest element, or to scale.
func near(t *testing.T, what string, got, want *tensor.Tensor, tol, scale float64) {
	t.Helper()
	g, w := got.Floats(), want.Floats()
	for _, v := range w {
		scale = max(scale, math.Abs(v))
	}
	testutil.Close(t, g, w, 0, tol*scale)
	if got.DType() != want.DType() {
		t.Errorf("%s is of %s, want %s", what, got.DType(), want.DType())
	}
}

// TestLinearCrossEntropyTwice checks first and second derivatives against differences, of the sum and of losses apart, and
// with a constant operand.
func TestLinearCrossEntropyTwice(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	labels := tensor.From(env, []int64{3, 0, -100, 1}, 4)
	x, w := env.Randn(4, 2).Cast(dtype.F64), env.Randn(5, 2).Cast(dtype.F64)
	for _, opts := range [][]CrossEntropyOption{nil, {Summed(), Smoothing(0.2)}, {Unreduced()}} {
		both := func(in []*tensor.Tensor) *tensor.Tensor { return LinearCrossEntropy(in[0], in[1], labels, opts...) }
		one := func(in []*tensor.Tensor) *tensor.Tensor { return LinearCrossEntropy(in[0], w, labels, opts...) }
		other := func(in []*tensor.Tensor) *tensor.Tensor { return LinearCrossEntropy(x, in[0], labels, opts...) }
		for i, err := range []error{
			tensor.GradCheck(both, []*tensor.Tensor{x, w}, tensor.GradCheckConfig{Second: true}),
			tensor.GradCheck(one, []*tensor.Tensor{x}, tensor.GradCheckConfig{Second: true}),
			tensor.GradCheck(other, []*tensor.Tensor{w}, tensor.GradCheckConfig{Second: true}),
		} {
			if err != nil {
				t.Errorf("%d options, %d: %v", len(opts), i, err)
			}
		}
	}
}

// TestLinearCrossEntropyOfNothing: the mean of no losses is NaN and their sum 0, as CrossEntropy's.
func TestLinearCrossEntropyOfNothing(t *testing.T) {
	for _, device := range []string{"cpu", "sim:0"} {
		env, err := tensor.Fresh(device)
		if err != nil {
			t.Fatal(err)
		}
		x, w, labels := env.Ones(2, 3).RequireGrad(), env.Ones(4, 3), tensor.From(env, []int64{-100, -100}, 2)
		mean := LinearCrossEntropy(x, w, labels)
		if v := mean.Item(); !math.IsNaN(v) {
			t.Errorf("%s: the mean is %v", device, v)
		}
		if g := tensor.Grad(mean, x)[0].Floats(); slices.Max(g) != 0 || slices.Min(g) != 0 {
			t.Errorf("%s: the gradient of the mean is %v", device, g)
		}
		sum := LinearCrossEntropy(x, w, labels, Summed())
		if v := sum.Item(); v != 0 {
			t.Errorf("%s: the sum is %v", device, v)
		}
		if g := tensor.Grad(sum, x)[0].Floats(); slices.Max(g) != 0 || slices.Min(g) != 0 {
			t.Errorf("%s: the gradient is %v", device, g)
		}
	}
}
