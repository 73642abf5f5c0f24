package tensor_test

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor"
)

// TestFirstResultEmpty: an operation of several results computes the others where the first has no elements.
func TestFirstResultEmpty(t *testing.T) {
	env := open(t)
	one := func(v float64, shape ...int) *tensor.Tensor { return env.Full(v, shape...) }
	zeros := []float64{0, 0, 0}
	slopes := func(y *tensor.Tensor, of ...*tensor.Tensor) []*tensor.Tensor { return tensor.Grad(y.Sum(), of...) }
	cell := func(v float64) *tensor.Tensor { return tensor.NewCell(env, v) }
	list := func(ts ...*tensor.Tensor) []*tensor.Tensor { return ts }
	w, b := one(1, 3).RequireGrad(), one(1, 3).RequireGrad()
	for _, c := range []struct {
		name string
		f    func() *tensor.Tensor
		want []float64
	}{
		{"a weight's gradient of a layer norm of no rows", func() *tensor.Tensor { return slopes(env.Ones(0, 3).RequireGrad().LayerNorm(w, b, 1e-5), w)[0] }, zeros},
		{"a bias's", func() *tensor.Tensor { return slopes(env.Ones(0, 3).RequireGrad().LayerNorm(w, b, 1e-5), b)[0] }, zeros},
		{"a weight's of an rms norm", func() *tensor.Tensor { return slopes(env.Ones(0, 3).RequireGrad().RMSNorm(w, 1e-5), w)[0] }, zeros},
		{"a bias's of a sum's norm", func() *tensor.Tensor {
			x := env.Ones(0, 3).RequireGrad()
			_, y := x.AddLayerNorm(x, w, b, 1e-5)
			return slopes(y, b)[0]
		}, zeros},
		{"a weight's of a linear layer", func() *tensor.Tensor {
			return slopes(env.Ones(0, 2).RequireGrad().LinearAct(one(1, 3, 2), w, tensor.ActGELU), w)[0]
		}, zeros},
		{"a weight's of a head", func() *tensor.Tensor {
			u := one(1, 3, 1).RequireGrad()
			total, _ := env.Ones(0, 1).RequireGrad().LinearCrossEntropyTotal(u, env.FullOf(dtype.I64, 0, 0), 0, -100)
			return slopes(total, u)[0].Flatten(0)
		}, zeros},
		{"a key's of attention of no queries", func() *tensor.Tensor {
			q, k, v := env.Ones(1, 1, 0, 1).RequireGrad(), env.Ones(1, 1, 3, 1).RequireGrad(), env.Ones(1, 1, 3, 1)
			return slopes(tensor.Attention(q, k, v, tensor.Mask{}), k)[0].Flatten(0)
		}, zeros},
		{"the log-sum-exp of attention to values of no width", func() *tensor.Tensor {
			return tensor.ApplyForTest(ir.Attention, ir.Scalars(1), env.Zeros(1, 1, 3, 1), env.Ones(1, 1, 2, 1), env.Ones(1, 1, 2, 0))[1].Flatten(0)
		}, []float64{math.Log(2), math.Log(2), math.Log(2)}},
		{"the rstd of a norm of nothing", func() *tensor.Tensor {
			return tensor.ApplyForTest(ir.LayerNorm, ir.Scalars(0.25), env.Ones(3, 0), env.Ones(0), env.Ones(0))[1]
		}, []float64{math.NaN(), math.NaN(), math.NaN()}},
		{"the mean of a sum's norm of nothing", func() *tensor.Tensor {
			return tensor.ApplyForTest(ir.AddNorm, ir.Scalars(0.25), env.Ones(3, 0), env.Ones(0), env.Ones(0), env.Ones(3, 0))[1]
		}, []float64{math.NaN(), math.NaN(), math.NaN()}},
		{"the log-sum-exp of self-attention of no width", func() *tensor.Tensor {
			return tensor.ApplyForTest(ir.SelfAttention, ir.Scalars(1), env.Ones(1, 3, 3, 1, 0))[1].Flatten(0)
		}, []float64{math.Log(3), math.Log(3), math.Log(3)}},
		{"a weight's gradient of a batch norm of nothing", func() *tensor.Tensor {
			none, c := env.Ones(2, 3, 0), env.Ones(3)
			return tensor.ApplyForTest(ir.BatchNormGrad, ir.Scalars(1), none, none, c, c, c)[1]
		}, zeros},
		{"sgd", func() *tensor.Tensor {
			p := one(1, 3)
			tensor.SGDInPlace(tensor.SGDStep{LR: cell(1), Scale: 1}, one(1), list(one(1, 0), p), list(one(1, 0), one(1, 3)), nil)
			return p
		}, zeros},
		{"adamw", func() *tensor.Tensor {
			p, m := one(1, 3), one(0, 3)
			tensor.AdamWInPlace(tensor.AdamWStep{LR: cell(1), Scale: 1, Beta1: 0.5, Beta2: 0.5}, one(1), list(one(1, 0), p), list(one(1, 0), one(1, 3)),
				list(one(0, 0), m), list(one(0, 0), one(0, 3)), list(env.FullOf(dtype.I64, 1), env.FullOf(dtype.I64, 1)))
			return p.Round()
		}, zeros},
	} {
		equal(t, c.name, c.f(), c.want...)
	}
}
