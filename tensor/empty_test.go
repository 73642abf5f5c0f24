package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// empties are calls on values without elements, with the shape that PyTorch gives, and, where it is not empty, the value of
// each element. Without a shape PyTorch refuses them.
var empties = []struct {
	name  string
	f     func(e *tensor.Env) *tensor.Tensor
	shape []int
	each  float64
}{
	{"sum of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 2, 3).Sum(1) }, []int{0, 3}, 0},
	{"sum over nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(2, 0, 3).Sum(1) }, []int{2, 3}, 0},
	{"sum of all", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 3).Sum() }, []int{}, 0},
	{"prod of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 2, 3).Prod(2) }, []int{0, 2}, 0},
	{"prod over nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(2, 0).Prod(1) }, []int{2}, 1},
	{"mean of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 5).Mean(1) }, []int{0}, 0},
	{"mean of nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(3, 0).Mean(1) }, []int{3}, math.NaN()},
	{"var of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 5).Var(1, 1) }, []int{0}, 0},
	{"max of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 2, 3).Max(1) }, []int{0, 3}, 0},
	{"max of no columns", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(2, 3, 0).Min(0) }, []int{3, 0}, 0},
	{"max over nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(2, 0).Max(1) }, nil, 0},
	{"arg max of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 3).ArgMax(1) }, []int{0}, 0},
	{"arg min of no columns", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(3, 2, 0).ArgMin(1) }, []int{3, 0}, 0},
	{"arg max over nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(3, 0).ArgMax(1) }, nil, 0},
	{"any of nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(2, 0).Any(1) }, []int{2}, 0},
	{"all of nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(2, 0).All(1) }, []int{2}, 1},
	{"cumsum of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 3).CumSum(1) }, []int{0, 3}, 0},
	{"cumsum along nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(3, 0).CumSum(1) }, []int{3, 0}, 0},
	{"logsumexp over nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(3, 0).LogSumExp(1) }, []int{3}, math.Inf(-1)},
	{"logsumexp of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 3).LogSumExp(1) }, []int{0}, 0},
	{"softmax of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 3).Softmax(1) }, []int{0, 3}, 0},
	{"softmax over nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(3, 0).Softmax(1) }, []int{3, 0}, 0},
	{"log softmax over nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(3, 0).LogSoftmax(1) }, []int{3, 0}, 0},
	{"norm of nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(3, 0).Norm(1) }, []int{3}, 0},
	{"matmul over nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(2, 0).MatMul(e.Zeros(0, 3)) }, []int{2, 3}, 0},
	{"matmul of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 2).MatMul(e.Zeros(2, 3)) }, []int{0, 3}, 0},
	{"matmul batched over nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(1, 0, 0).MatMul(e.Zeros(0, 0)) }, []int{1, 0, 0}, 0},
	{"matmul of matrices over nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(4, 3, 0).MatMul(e.Zeros(0, 2)) }, []int{4, 3, 2}, 0},
	{"matmul of vectors", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0).MatMul(e.Zeros(0)) }, []int{}, 0},
	{"linear of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 3).Linear(e.Zeros(2, 3), e.Ones(2)) }, []int{0, 2}, 0},
	{"linear over nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(4, 0).Linear(e.Zeros(2, 0), e.Ones(2)) }, []int{4, 2}, 1},
	{"conv of no pictures", func(e *tensor.Env) *tensor.Tensor {
		return e.Zeros(0, 1, 3, 3).Conv2d(e.Zeros(2, 1, 2, 2), nil, tensor.Conv{})
	}, []int{0, 2, 2, 2}, 0},
	{"pool of no pictures", func(e *tensor.Env) *tensor.Tensor {
		return e.Zeros(0, 1, 4, 4).MaxPool2d(tensor.Pool{Kernel: [2]int{2, 2}})
	}, []int{0, 1, 2, 2}, 0},
	{"average pool of no pictures", func(e *tensor.Env) *tensor.Tensor {
		return e.Zeros(0, 1, 4, 4).AvgPool2d(tensor.Pool{Kernel: [2]int{2, 2}})
	}, []int{0, 1, 2, 2}, 0},
	{"layer norm of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 3).LayerNorm(e.Ones(3), e.Ones(3), 1e-5) }, []int{0, 3}, 0},
	{"rms norm of no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 3).RMSNorm(e.Ones(3), 1e-5) }, []int{0, 3}, 0},
	{"batch norm of nothing", func(e *tensor.Env) *tensor.Tensor {
		y, _, _ := e.Zeros(0, 3).BatchNorm(e.Ones(3), e.Ones(3), 1e-5)
		return y
	}, nil, 0},
	{"batch norm in evaluation", func(e *tensor.Env) *tensor.Tensor {
		return e.Zeros(0, 3).BatchNormEval(e.Zeros(3), e.Ones(3), e.Ones(3), e.Ones(3), 1e-5)
	}, []int{0, 3}, 0},
	{"attention of no queries", func(e *tensor.Env) *tensor.Tensor {
		return tensor.Attention(e.Zeros(1, 2, 0, 4), e.Zeros(1, 2, 3, 4), e.Zeros(1, 2, 3, 5), tensor.Mask{})
	}, []int{1, 2, 0, 5}, 0},
	{"attention to nothing", func(e *tensor.Env) *tensor.Tensor {
		return tensor.Attention(e.Zeros(1, 2, 3, 4), e.Zeros(1, 2, 0, 4), e.Zeros(1, 2, 0, 5), tensor.Mask{})
	}, []int{1, 2, 3, 5}, 0},
	{"cross entropy of no rows", func(e *tensor.Env) *tensor.Tensor {
		return e.Zeros(0, 3).CrossEntropy(e.FullOf(dtype.I64, 0, 0), 0, -100)
	}, []int{0}, 0},
	{"linear cross entropy of no rows", func(e *tensor.Env) *tensor.Tensor {
		total, count := e.Zeros(0, 3).LinearCrossEntropyTotal(e.Ones(4, 3), e.FullOf(dtype.I64, 0, 0), 0, -100)
		return total.Add(count)
	}, []int{}, 0},
	{"gather nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(2, 3).Gather(1, e.FullOf(dtype.I64, 0, 2, 0)) }, []int{2, 0}, 0},
	{"scatter nothing", func(e *tensor.Env) *tensor.Tensor {
		return e.Ones(2, 3).ScatterAdd(1, e.FullOf(dtype.I64, 0, 2, 0), e.Zeros(2, 0))
	}, []int{2, 3}, 1},
	{"embedding of nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(5, 3).Embedding(e.FullOf(dtype.I64, 0, 0)) }, []int{0, 3}, 0},
	{"rows without width", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(5, 0).Embedding(e.FullOf(dtype.I64, 0, 2)) }, []int{2, 0}, 0},
	{"select no rows", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(2, 3).IndexSelect(1, e.FullOf(dtype.I64, 0, 0)) }, []int{2, 0}, 0},
	{"cat with nothing", func(e *tensor.Env) *tensor.Tensor { return tensor.Cat(0, e.Ones(2, 3), e.Zeros(0, 3)) }, []int{2, 3}, 1},
	{"cat of nothing", func(e *tensor.Env) *tensor.Tensor { return tensor.Cat(1, e.Zeros(0, 3), e.Zeros(0, 2)) }, []int{0, 5}, 0},
	{"pad nothing", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(2, 0).Pad(1, 1, 2, 7) }, []int{2, 3}, 7},
	{"where", func(e *tensor.Env) *tensor.Tensor {
		return tensor.Where(e.FullOf(dtype.Bool, 1, 0, 1), e.Ones(3), e.Zeros())
	}, []int{0, 3}, 0},
	{"random", func(e *tensor.Env) *tensor.Tensor { return e.Randn(0, 3).Add(e.Rand(0, 1)).Add(e.RandInt(0, 3, 3)) }, []int{0, 3}, 0},
	{"dropout", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 3).Dropout(0.5) }, []int{0, 3}, 0},
	{"cast and copy", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(3, 0).Transpose(0, 1).Clone().Cast(dtype.F16) }, []int{0, 3}, 0},
	{"sum of squares", func(e *tensor.Env) *tensor.Tensor { return tensor.SumSquares(e.Zeros(0, 2), e.Ones(3)) }, []int{}, 3},
	{"write in place", func(e *tensor.Env) *tensor.Tensor { return e.Zeros(0, 3).AddInPlace(e.Ones(3)).MulInPlace(e.Ones(1)) }, []int{0, 3}, 0},
}

// TestEmptyValues calls ops on values without elements, on the CPU, on the simulated GPU and without arithmetic, and takes
// their gradients too.
func TestEmptyValues(t *testing.T) {
	for _, device := range slices.Compact(slices.Sorted(slices.Values([]string{"cpu", "null", "sim:0", testutil.Device()}))) {
		env, err := tensor.Fresh(device)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range empties {
			y, err := env.Try(c.f)
			if c.shape == nil {
				var own *tensor.Error
				if !errors.As(err, &own) || !strings.Contains(err.Error(), "[") {
					t.Errorf("%s: %s: %v, want an error that names the shape", device, c.name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %s: %v", device, c.name, err)
				continue
			}
			if !slices.Equal(y.Shape(), c.shape) {
				t.Errorf("%s: %s: shape %v, want %v", device, c.name, y.Shape(), c.shape)
			}
			if device == "null" {
				continue
			}
			for _, v := range y.Floats() {
				if v != c.each && !(v != v && c.each != c.each) {
					t.Errorf("%s: %s: %v, want %v", device, c.name, y.Floats(), c.each)
					break
				}
			}
		}
		for _, c := range emptyGradients {
			_, err := env.Try(func(e *tensor.Env) *tensor.Tensor {
				x := e.Zeros(c.shape...).RequireGrad()
				g := tensor.Grad(c.f(x).Sum(), x)[0]
				if !g.SameShape(x) {
					return e.Zeros(1).Reshape(g.Shape()...) // an error that names both
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s: gradient of %s: %v", device, fmt.Sprint(c.shape), err)
			}
		}
	}
}

// emptyGradients are functions of values without elements that hang on them.
var emptyGradients = []struct {
	shape []int
	f     func(x *tensor.Tensor) *tensor.Tensor
}{
	{[]int{0, 2, 3}, func(x *tensor.Tensor) *tensor.Tensor { return x.Sum(1) }},
	{[]int{2, 0}, func(x *tensor.Tensor) *tensor.Tensor { return x.Sum(1) }},
	{[]int{2, 0}, func(x *tensor.Tensor) *tensor.Tensor { return x.Prod(1) }},
	{[]int{0, 2}, func(x *tensor.Tensor) *tensor.Tensor { return x.Max(1) }},
	{[]int{3, 0}, func(x *tensor.Tensor) *tensor.Tensor { return x.LogSumExp(1) }},
	{[]int{3, 0}, func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(1) }},
	{[]int{3, 0}, func(x *tensor.Tensor) *tensor.Tensor { return x.CumSum(1) }},
	{[]int{2, 0}, func(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(x.Transpose(0, 1)) }},
	{[]int{1, 0, 0}, func(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(x.Select(0, 0)) }},
	{[]int{0, 3}, func(x *tensor.Tensor) *tensor.Tensor { return x.LayerNorm(x.Env().Ones(3), nil, 1e-5) }},
	{[]int{0, 3}, func(x *tensor.Tensor) *tensor.Tensor { return x.Linear(x.Env().Ones(2, 3), x.Env().Ones(2)) }},
	{[]int{0, 1, 4, 4}, func(x *tensor.Tensor) *tensor.Tensor { return x.MaxPool2d(tensor.Pool{Kernel: [2]int{2, 2}}) }},
	{[]int{0, 1, 4, 4}, func(x *tensor.Tensor) *tensor.Tensor {
		return x.Conv2d(x.Env().Ones(1, 1, 2, 2), nil, tensor.Conv{})
	}},
	{[]int{1, 1, 3, 0}, func(x *tensor.Tensor) *tensor.Tensor { return tensor.Attention(x, x, x, tensor.Mask{}) }},
	{[]int{0, 3}, func(x *tensor.Tensor) *tensor.Tensor { return tensor.Cat(0, x, x.Env().Ones(1, 3)).Square() }},
	{[]int{0, 3}, func(x *tensor.Tensor) *tensor.Tensor { return x.Clone().MulInPlace(x).Norm() }},
}
