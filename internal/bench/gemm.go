package bench

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// products are the cases of gemm.
var products = []*Case{
	gemm("square", "n×n times n×n", []int{64, 256, 512, 1024, 2048}, func(n int) operands { return operands{n, n, n, false, false, 0} }),
	gemm("transposed", "the same, both operands transposed", []int{1024}, func(n int) operands { return operands{n, n, n, true, true, 0} }),
	gemm("vector", "1×n times n×n", []int{4096}, func(n int) operands { return operands{1, n, n, false, false, 0} }),
	gemm("tall", "n×128 times 128×128", []int{4096}, func(n int) operands { return operands{n, 128, 128, false, false, 0} }),
	gemm("odd", "n×33 times 33×65", []int{17}, func(n int) operands { return operands{n, 65, 33, false, false, 0} }),
	gemm("batched", "n products of 64×64 times 64×64", []int{64}, func(n int) operands { return operands{64, 64, 64, false, false, n} }),
	gemm("linear", "a layer of n×128 to 512, forward", []int{4096}, func(n int) operands { return operands{n, 512, 128, false, true, 0} }),
	gemm("linear-dx", "the gradient of its input", []int{4096}, func(n int) operands { return operands{n, 128, 512, false, false, 0} }),
	gemm("linear-dw", "the gradient of its weight", []int{4096}, func(n int) operands { return operands{512, 128, n, true, false, 0} }),
}

// operands are an M×K matrix and a K×N one, each stored transposed or not, once or so many times.
type operands struct {
	m, n, k int
	ta, tb  bool
	batch   int
}

func gemm(name, help string, sizes []int, of func(n int) operands) *Case {
	return &Case{Bench: "gemm", Name: name, Help: help, Sizes: sizes, Unit: "GFLOP/s", Own: name != "square",
		Make: func(env *tensor.Env, n int, dt dtype.DType) (Work, error) { return of(n).work(env.NoGrad(), dt), nil }}
}

func (o operands) work(env *tensor.Env, dt dtype.DType) Work {
	a, b := o.matrix(env, dt, o.m, o.k, o.ta), o.matrix(env, dt, o.k, o.n, o.tb)
	return Work{Turn: scoped(env, func(e *tensor.Env) { a.In(e).MatMul(b) })}
}

func (o operands) matrix(env *tensor.Env, dt dtype.DType, rows, cols int, transposed bool) *tensor.Tensor {
	shape := []int{rows, cols}
	if transposed {
		shape = []int{cols, rows}
	}
	if o.batch > 0 {
		shape = append([]int{o.batch}, shape...)
	}
	t := drawn(env, dt, shape...)
	if transposed {
		return t.Transpose(-1, -2)
	}
	return t
}
