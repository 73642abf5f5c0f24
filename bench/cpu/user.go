package main

import (
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// network is what somebody writes who has read the guide: structs of layers and a Forward of their own.
type network struct {
	Stem   *nn.Conv2d
	Blocks []*block
	Head   *nn.Linear
}

// block adds two convolutions to its input.
type block struct {
	Conv1, Conv2 *nn.Conv2d
	Norm1, Norm2 *nn.BatchNorm
}

func newNetwork(env *tensor.Env) *network {
	same := nn.ConvConfig{Padding: 1}
	n := &network{Stem: nn.NewConv2d(env, 3, 32, 3, same), Head: nn.NewLinear(env, 32, 10)}
	for range 4 {
		n.Blocks = append(n.Blocks, &block{
			nn.NewConv2d(env, 32, 32, 3, same), nn.NewConv2d(env, 32, 32, 3, same), nn.NewBatchNorm(env, 32), nn.NewBatchNorm(env, 32),
		})
	}
	return n
}

// Forward gives the scores of ten classes.
func (n *network) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = n.Stem.Forward(x).ReLU()
	for _, b := range n.Blocks {
		x = b.Forward(x)
	}
	return n.Head.Forward(x.Mean(2, 3))
}

// Forward is relu(x + f(x)).
func (b *block) Forward(x *tensor.Tensor) *tensor.Tensor {
	y := b.Norm1.Forward(b.Conv1.Forward(x)).ReLU()
	return x.Add(b.Norm2.Forward(b.Conv2.Forward(y))).ReLU()
}

// peak is the most bytes of tensors at once in three turns of training or evaluation, weights included.
func peak(training bool) (int64, error) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		return 0, err
	}
	n := newNetwork(env)
	x, y := env.Rand(64, 3, 32, 32), env.RandInt(0, 10, 64)
	opt := optim.NewAdamW(nn.Params(n), optim.AdamWConfig{LR: 1e-3})
	for range 3 {
		e, s := env.Scope(0)
		if training {
			nn.CrossEntropy(n.Forward(x.In(e)), y.In(e)).Backward()
			opt.Step()
		} else {
			n.Forward(x.In(e.NoGrad().Eval()))
		}
		s.End()
	}
	return env.Device().Memory().Peak, nil
}
