package train

import (
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
)

// average is a running mean of a model's weights: of its own at first little is kept, (1+t)/(10+t) in step t from 0, so that the
// start is soon forgotten, and decay of it later.
type average struct {
	mean  *nn.Average[any]
	decay float64
	own   averager // nil: the mean is computed here
}

// averager is an optimizer that has the mean.
type averager interface{ Averaged(f func()) }

// newAverage starts with the model's weights. A run whose optimizer has no mean, and that asks for none, has none.
func newAverage(m any, o optim.Optimizer, decay float64) *average {
	own, has := o.(averager)
	if decay == 0 && !has {
		return nil
	}
	return &average{nn.NewEMA(m, decay), decay, own}
}

// update takes in the weights after step t.
func (a *average) update(t int) {
	if a != nil && a.own == nil {
		a.mean.UpdateBy(1 - min(a.decay, float64(1+t)/float64(10+t)))
	}
}

// or is the averaged model, or m when there is none.
func (a *average) or(m any) any {
	if a == nil {
		return m
	}
	if a.own != nil {
		a.own.Averaged(func() { a.mean.UpdateBy(1) })
	}
	return a.mean.Model
}
