package train

import (
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// average is a running mean of a model's weights: a = d·a + (1-d)·w after each step. In the first steps d is smaller,
// (1+t)/(10+t) for step t from 0, so that the start is soon forgotten. Averaging takes the noise of a constant learning
// rate out of the weights (Polyak and Juditsky, 1992).
type average struct {
	model nn.Module
	decay float64
	pairs []pair
	own   averager // nil: the mean is computed here
}

// averager is an optimizer that has the mean.
type averager interface{ Averaged(f func()) }

// pair is a tensor and its mean.
type pair struct {
	from, to *tensor.Tensor
	buffer   bool // copied, not averaged
}

// newAverage starts with the model's weights. A run that asks for none has none.
func newAverage(m nn.Module, c *Config) *average {
	if c.Average == 0 && !recipe.OptimizerOf(c.Optimizer).Averages {
		return nil
	}
	a := &average{model: nn.Clone(m), decay: c.Average}
	for from, to := range nn.Zip(m, a.model) {
		a.pairs = append(a.pairs, pair{from, to, !from.IsParam()})
	}
	return a
}

// update takes in the weights after step t.
func (a *average) update(t int) {
	if a == nil || a.own != nil {
		return
	}
	d := min(a.decay, float64(1+t)/float64(10+t))
	for _, p := range a.pairs {
		if p.buffer {
			p.to.CopyInPlace(p.from)
		} else {
			p.to.LerpInPlace(p.from, 1-d)
		}
	}
}

// or is the averaged model, or m when there is none.
func (a *average) or(m nn.Module) nn.Module {
	if a == nil {
		return m
	}
	if a.own != nil {
		a.own.Averaged(a.copy)
	}
	return a.model
}

// copy takes the weights as they are.
func (a *average) copy() {
	for _, p := range a.pairs {
		p.to.CopyInPlace(p.from)
	}
}
